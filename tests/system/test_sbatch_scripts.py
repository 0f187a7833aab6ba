"""Directives of published batch scripts, as sbatch's look-alike takes them."""
import os
import re

import pytest

from slurm_commands import LookAlikes

DATA = os.path.join(os.path.dirname(__file__), "..", "data", "sbatch.txt")


def scripts():
    """(what must come of it, directives) of each: a paragraph, whose first line says that it is accepted, and which options are
    named and left out, or that it is refused, and what the message must say."""
    with open(DATA, encoding="utf-8") as f:
        for paragraph in f.read().strip("\n").split("\n\n"):
            first, *directives = paragraph.split("\n")
            yield first, directives


@pytest.fixture
def look(instance):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    instance.write(f"{instance.dir}/droverd.yaml", "qos: {lab: {}}\n")
    instance.up()
    return LookAlikes(instance)


def test_published_scripts(look):
    """Each is accepted, with a warning for each option without an equivalent, or refused with a message that names the option."""
    seen, wrong = 0, []
    for expected, directives in scripts():
        text = "#!/bin/bash\n" + "".join(f"#SBATCH {line}\n" for line in directives) + "true\n"
        out = look("sbatch", "--parsable", "--hold", stdin=text, code=None)
        named = re.findall(r"(--[\w-]+)(?:=\S+)? (?:has no equivalent|is not a mail address)", out.err)
        came = " ".join(["accepted", *named]) if out.code == 0 else f"refused {out.err}"
        good = came == expected if out.code == 0 else expected.startswith("refused ") and expected.removeprefix("refused ") in out.err
        if not good or (out.code == 0 and "unknown keyword" in out.err):
            wrong.append(f"{expected}, but {came}:\n{text}")
        seen += 1
    assert not wrong, "\n".join(wrong)
    assert seen > 100
