#!/usr/bin/python3
"""Compares the commands of galaxy/*.xml with what Galaxy's own templates have made of them: check_galaxy.py DROVER_GALAXY. Writes TAP."""
import json
import os
import sys

import galaxy_tools


def main():
    with open(galaxy_tools.RECORDED, encoding="utf-8") as f:
        recorded = json.load(f)
    print(f"1..{len(recorded)}")
    good = len(recorded) == len([name for name in os.listdir(galaxy_tools.TOOLS) if name.endswith(".xml")])
    for n, (name, answer) in enumerate(sorted(recorded.items()), 1):
        other = galaxy_tools.same(sys.argv[1], os.path.join(galaxy_tools.TOOLS, name), answer)
        good = good and other is None
        print(f"{'ok' if other is None else 'not ok'} {n} {name}")
        if other is not None:
            print(f"# Galaxy: {answer['command']} {answer['configs']}\n# Drover: {other}")
    return 0 if good else 1


sys.exit(main())
