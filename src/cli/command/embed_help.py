#!/usr/bin/python3
"""Makes a C file of the commands' help: embed_help.py OUT SELF FILE... gives help_texts[] (help_text.h).

A file is help/COMMAND.md: paragraphs of Markdown, which may be wrapped anywhere, and after the line "# EXAMPLES" the
examples as they are printed. Lines that begin with a blank are kept as they are.
"""
import os
import sys


def unwrapped(lines):
    out, paragraph = [], []
    for line in [*lines, ""]:
        plain = line and not line.startswith((" ", "#"))
        if paragraph and not plain:
            out.append(" ".join(paragraph))
            paragraph = []
        if plain:
            paragraph.append(line)
        else:
            out.append(line)
    return "\n".join(out).strip("\n")


def literal(text):
    if not text:
        return "NULL"
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return '"' + quoted.replace("\n", '\\n"\n         "') + '"'


def main():
    target, _, *files = sys.argv[1:]
    rows = []
    for name in files:
        with open(name, encoding="utf-8") as f:
            lines = f.read().splitlines()
        at = lines.index("# EXAMPLES") if "# EXAMPLES" in lines else len(lines)
        examples = "".join(line + "\n" for line in lines[at + 1:])
        command = os.path.splitext(os.path.basename(name))[0]
        rows.append(f'        {{"{command}",\n         {literal(unwrapped(lines[:at]))},\n         {literal(examples)}}},\n')
    with open(target, "w", encoding="utf-8") as f:
        f.write('#include "cli/command/help_text.h"\n\nconst struct help_text help_texts[] = {\n')
        f.writelines(rows)
        f.write("        {0},\n};\n")


main()
