#!/usr/bin/python3
"""Makes a C file of the page's files: embed.py FILE... OUT gives page_files, as page.h declares it."""
import hashlib
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml"}

*sources, target = sys.argv[1:]
texts, rows = [], []
for n, source in enumerate(sources):
    with open(source, "rb") as f:
        data = f.read()
    lines = ["        " + "".join(f"{b}," for b in data[i:i + 24]) for i in range(0, len(data), 24)]
    texts.append(f"static const unsigned char text_{n}[] = {{\n" + "\n".join(lines) + "\n        0};\n")
    name = os.path.basename(source)
    tag = hashlib.sha256(data).hexdigest()[:16]
    rows.append(f'        {{"{name}", "{TYPES[os.path.splitext(name)[1]]}", "\\"{tag}\\"", (const char *)text_{n}, '
                f"sizeof(text_{n}) - 1}},\n")
with open(target, "w", encoding="utf-8") as f:
    f.write('#include "server/page/page.h"\n\n' + "\n".join(texts) + "\nconst struct page_file page_files[] = {\n"
            + "".join(rows) + "};\nconst size_t page_file_count = sizeof(page_files) / sizeof(page_files[0]);\n")
