"""Answers expressions by HTCondor's own library: runs where its Python bindings are, reads what eval_lines.c reads.

oracle.py MY TARGET: the two ads, as text."""
import os
import sys

os.environ.setdefault("CONDOR_CONFIG", "ONLY_ENV")
os.environ["TZ"] = "UTC"
import classad2  # noqa: E402  (reads the environment)
import htcondor2  # noqa: E402, F401  (brings HTCondor's functions)


def answer(syntax, text, my, target):
    try:
        if syntax == "n":
            ad = classad2.ClassAd(f"[ x = {text} ]")
        else:
            ad = classad2.parseOne(f"x = {text}\n", classad2.ParserType.Old)
        value = str(ad.lookup("x").simplify(scope=my, target=target))
    except Exception:  # pylint: disable=broad-except  (the library raises what it likes)
        return "!"
    return value.replace("\n", " ")  # lists are laid out over lines


def main():
    my, target = classad2.ClassAd(sys.argv[1]), classad2.ClassAd(sys.argv[2])
    for line in sys.stdin:
        syntax, text = line.rstrip("\n").split("\t", 1)
        print(answer(syntax, text, my, target), flush=True)


main()
