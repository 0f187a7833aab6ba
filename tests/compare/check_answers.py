#!/usr/bin/python3
"""Compares Drover's answers with the recorded ones of HTCondor's library: check_answers.py EVAL_LINES. Writes TAP."""
import collections
import sys

import answers


def main():
    known = answers.Known()
    rows = list(answers.recorded())
    made = [(syntax, text) for syntax, text, _ in rows]
    mine = answers.ours(sys.argv[1], made)
    found = answers.differences(made, [theirs for _, _, theirs in rows], mine)
    classes = collections.Counter(known.of(text) for text, _, _ in found)
    checks = [("there are 20,000 answers", len(rows) == 20000 and len(mine) == 20000),
              ("each difference is of a class that is known", None not in classes),
              (f"{len(found)} differ, fewer than {answers.MOST:.1%}", len(found) < answers.MOST * len(rows))]
    examples = list(known.examples())
    given = answers.ours(sys.argv[1], [(syntax, text) for syntax, text, _, _ in examples])
    for (_, text, _, want), got in zip(examples, given):
        checks.append((f"{text} is {want}", got == want))
    for text, theirs, own in found:
        if known.of(text) is None:
            print(f"# {text}\n#   the library: {theirs}\n#   Drover:      {own}")
    print(f"1..{len(checks)}")
    for n, (what, fine) in enumerate(checks, 1):
        print(f"{'ok' if fine else 'not ok'} {n} {what.replace('#', '')}")
    for (_, text, _, want), got in zip(examples, given):
        if got != want:
            print(f"# {text}: {got}, not {want}")
    return 0 if all(fine for _, fine in checks) else 1


sys.exit(main())
