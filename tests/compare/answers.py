"""Recorded answers of HTCondor's library, and the differences that are known.

condor-answers.gz has a line for each expression: its syntax, the expression and what the library answers, parted by tabs.
condor-differences has a section for each class of differences: which expressions belong to it, an example with both answers,
and the reason."""
import configparser
import gzip
import os
import re
import subprocess
import tempfile

import expressions

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
ANSWERS = os.path.join(DATA, "condor-answers.gz")
DIFFERENCES = os.path.join(DATA, "condor-differences")
MOST = 0.002  # of expressions made at random may differ


class Known:
    """The classes of differences."""

    def __init__(self, path=DIFFERENCES):
        self.file = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",), inline_comment_prefixes=None)
        with open(path, encoding="utf-8") as f:
            self.file.read_file(f)
        self.names = [name for name in self.file.sections() if not name.startswith(("submit ", "published "))]
        self.patterns = {name: re.compile(self.file[name]["matches"], re.I) for name in self.names}

    def of(self, text):
        """The class of an expression whose answers differ, or None."""
        return next((name for name, pattern in self.patterns.items() if pattern.search(text)), None)

    def of_submit(self, name, attribute):
        """Why an attribute of the jobs of a submit file differs, or None."""
        for section in self.file.sections():
            one = self.file[section]
            if section.startswith("submit ") and re.fullmatch(one["files"], name) and re.fullmatch(one["attributes"], attribute, re.I):
                return one["because"]
        return None

    def of_published(self, text, attribute, theirs, own):
        """Why an attribute of the jobs of a published file, with this text, differs, or None."""
        for section in self.file.sections():
            one = self.file[section]
            if section.startswith("published ") and re.fullmatch(one["attributes"], attribute, re.I) and re.search(one.get("text", ""), text) \
                    and re.fullmatch(one.get("theirs", ".*"), str(theirs), re.S) and re.fullmatch(one.get("ours", ".*"), str(own), re.S):
                return one["because"]
        return None

    def examples(self):
        """(syntax, expression, the library's answer, ours) of each class."""
        for name in self.names:
            one = self.file[name]
            yield one.get("syntax", "n"), one["example"], one["theirs"], one["ours"]


def plain(value):
    """White space between the members of lists is layout; that in strings is not."""
    out = ""
    for part in re.split(r'("(?:[^"\\]|\\.)*")', value):
        out += part if part.startswith('"') else re.sub(r"\s+", " ", part).replace(", ", ",")
    return out.strip()


def ours(program, made):
    """What Drover answers; `program` is eval_lines."""
    with tempfile.TemporaryDirectory() as folder:
        ads = []
        for name, text in (("my", expressions.MY), ("target", expressions.TARGET)):
            ads.append(os.path.join(folder, name))
            with open(ads[-1], "w", encoding="utf-8") as f:
                f.write(text)
        lines = "".join(f"{syntax}\t{text}\n" for syntax, text in made)
        p = subprocess.run([program, *ads], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [plain(line) for line in p.stdout.split("\n")[:-1]]


def recorded(path=ANSWERS):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as f:
        for line in f:
            yield tuple(line.rstrip("\n").split("\t"))


def record(path, rows):
    """Writes what recorded() reads, the same bytes for the same rows."""
    with open(path, "wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=9) as f:
        for row in rows:
            f.write(("\t".join(row) + "\n").encode())


def differences(made, theirs, mine):
    """(expression, their answer, ours) where they are not the same."""
    return [(text, a, b) for (_, text), a, b in zip(made, theirs, mine) if plain(a) != b]
