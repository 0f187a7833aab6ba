"""Submit files of others, from folders of them: condor_submit -dry-run and Drover's queue, each file in a copy of its folder."""
import collections
import hashlib
import json
import os
import re
import shutil

import answers
import submits

TEXT_MAX = 200000
ABSENT = re.compile(r"(?:access executable file|Can't open|input file) \"?(.*?)\"?(?:: No such| can't be sent| with flags|$)", re.I)
CODE = (".py", ".pl", ".cpp", ".sh", ".c", ".h", ".html", ".rst", ".run")
PROSE = re.compile(r"```[^\n]*\n(.*?)```|<pre[^>]*>(.*?)</pre>", re.S)


def submit_texts(folder):
    """(name, folder or None, text) of each submit file, and of those within pages of Markdown."""
    for path, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            file = os.path.join(path, name)
            if not os.path.isfile(file) or os.path.getsize(file) > TEXT_MAX or name.endswith(CODE):
                continue
            with open(file, encoding="utf-8", errors="surrogateescape") as f:
                text = f.read()
            if name.endswith(".md"):
                for n, match in enumerate(PROSE.finditer(text)):
                    yield f"{file}#{n}", None, match[1] or match[2] or ""
            else:
                yield file, path, text


def find(folders):
    seen = set()
    for folder in folders:
        for name, path, text in submit_texts(folder):
            if re.search(r"(?im)^\s*queue\b", text) and re.search(r"(?im)^\s*(executable|universe)\s*=", text):
                digest = hashlib.sha256(text.encode(errors="surrogateescape")).digest()
                if digest not in seen:
                    seen.add(digest)
                    yield name, path, text.replace("\r\n", "\n")


def copy(root, top, n, path, text):
    """A folder with the file and what stands beside it, here and in the root."""
    folder = os.path.join(top, f"{n:04}", "a", "b", "c")  # where there is room for ../..
    os.makedirs(folder)
    for name in os.listdir(path)[:400] if path else []:
        if os.path.isfile(os.path.join(path, name)) and os.path.getsize(os.path.join(path, name)) < TEXT_MAX:
            shutil.copy(os.path.join(path, name), folder)
    with open(os.path.join(folder, "published.sub"), "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write(text)
    with open(os.path.join(folder, "condor_config"), "w", encoding="utf-8") as f:
        f.write(f"LOCAL_DIR={folder}\nLOG={folder}\nSPOOL={folder}\n")
    if root:
        shutil.copytree(folder, root + folder)
    return folder


def supply(root, top, folder, answer):
    """Makes the file whose absence was the answer; false: it was something else, or is not within the folder."""
    match = ABSENT.search(answer)
    path = os.path.normpath(os.path.join(folder, match[1])) if match else ""
    if not path.startswith(top + "/") or os.path.exists(path):
        return False
    for at in {root + path, path}:
        os.makedirs(os.path.dirname(at), exist_ok=True)
        with open(at, "w", encoding="utf-8") as f:
            f.write("a\nb\n")
        os.chmod(at, 0o755)
    return True


def compare(root, build, folders):
    """Prints what differs; true: all of it is known."""
    counts, unknown = collections.Counter(), 0
    known = answers.Known()
    with submits.Folder(root) as top:
        drover = submits.Drover(build, top)
        try:
            for n, (name, path, text) in enumerate(find(folders)):
                folder = drover.folder = copy(root, top, n, path, text)
                theirs = submits.theirs(root, folder, "published", 0)
                while isinstance(theirs, str) and supply(root, top, folder, theirs):
                    theirs = submits.theirs(root, folder, "published", 0)
                counts["files"] += 1
                if isinstance(theirs, str):
                    continue
                counts["accepted by HTCondor"] += 1
                ours = drover.jobs("published")
                while isinstance(ours, str) and supply(root, top, folder, ours):
                    ours = drover.jobs("published")
                theirs = submits.theirs(root, folder, "published", drover.cluster)  # in which the same files are there
                for attribute, x, y in submits.file_differences(theirs, ours, folder):
                    reason = known.of_published(text, attribute, x, y)
                    counts[f"differ in {attribute}" + ("" if reason else ", unknown")] += 1
                    if attribute == "refused":
                        print(f"{name}: {y}")
                    if reason is None:
                        unknown += 1
                        print(f"{name}: {attribute}: unknown\n        HTCondor {x}\n        Drover   {y}", flush=True)
        finally:
            drover.stop()
    print(json.dumps(counts, indent=1))
    return unknown == 0
