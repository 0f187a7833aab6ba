#!/usr/bin/python3
"""Makes a C file of a text file: embed.py IN OUT NAME HEADER gives NAME_text and NAME_size."""
import sys

source, target, name, header = sys.argv[1:5]
with open(source, "rb") as f:
    data = f.read()
lines = []
for i in range(0, len(data), 24):
    lines.append("        " + "".join(f"{b}," for b in data[i : i + 24]))
with open(target, "w", encoding="utf-8") as f:
    f.write(f'#include "{header}"\n\nconst char {name}_text[] = {{\n')
    f.write("\n".join(lines))
    f.write(f"\n        0}};\nconst size_t {name}_size = sizeof({name}_text) - 1;\n")
