#!/usr/bin/python3
"""Runs a program on each input of a folder and compares what it prints with what is kept beside it: NAME.ref for
standard output, NAME.err for standard error; what is empty has no file. The status is 0 if and only if there is a
NAME.ref.

    golden_program [--write] DIR SUFFIXES PROGRAM [WORD...]

The inputs are the files whose names end in one of the suffixes (".xml,.yml"); the name is put behind the words.
"""
import os
import subprocess
import sys


def settle(path, got, write):
    """Whether a file has these contents (b"": it isn't there); --write makes it so."""
    if write:
        if os.path.exists(path):
            os.unlink(path)
        if got:
            with open(path, "wb") as f:
                f.write(got)
        return True
    want = b""
    if os.path.exists(path):
        with open(path, "rb") as f:
            want = f.read()
    if want != got:
        print(f"{path} differs from:\n{got.decode(errors='replace')}", file=sys.stderr)
    return want == got


def main(words):
    write = words[:1] == ["--write"]
    folder, suffixes, program = words[write], tuple(words[write + 1].split(",")), words[write + 2:]
    program[0] = os.path.abspath(program[0])
    os.chdir(folder)
    names = sorted(n for n in os.listdir(".") if n.endswith(suffixes))
    bad = 0
    for name in names:
        done = subprocess.run(program + [name], capture_output=True, check=False, timeout=60)
        bad += not settle(name + ".ref", done.stdout, write)
        bad += not settle(name + ".err", done.stderr, write)
        if (done.returncode == 0) != bool(done.stdout):
            print(f"{name}: status {done.returncode}", file=sys.stderr)
            bad += 1
    if not names:
        print(f"{folder}: nothing is in it", file=sys.stderr)
    return 1 if bad or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
