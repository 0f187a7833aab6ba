"""The conformance tests of CWL's CommandLineTools: what they ask for, and whether what came back is what they expect.

data/cwl-tests.json says of each test which tool it runs with which job order, what it expects, and what cwltool made of it; the files are in
data/cwl-tests.tar.xz. data/cwl-differences has the reason why cwltool does not pass some."""
import configparser
import hashlib
import json
import os
import sys
import urllib.parse

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
TESTS = os.path.join(DATA, "cwl-tests.json")
FILES = os.path.join(DATA, "cwl-tests.tar.xz")
DIFFERENCES = os.path.join(DATA, "cwl-differences")
ENGINES = {"docker", "podman", "apptainer", "singularity", "udocker"}


def recorded():
    with open(TESTS, encoding="utf-8") as f:
        return json.load(f)


def reasons():
    """Why cwltool does not pass a test: its id -> the reason."""
    file = configparser.ConfigParser(interpolation=None)
    with open(DIFFERENCES, encoding="utf-8") as f:
        file.read_file(f)
    return {test: file[name]["because"] for name in file.sections() for test in file[name]["tests"].split()}


def link_programs(folder, leave_out=()):
    """Makes a folder for PATH that has the programs of this machine but those of containers."""
    os.mkdir(folder)
    for place in ("/usr/local/bin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"):
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else []:
            if name not in ENGINES and name not in leave_out and not os.path.lexists(os.path.join(folder, name)):
                os.symlink(os.path.join(place, name), os.path.join(folder, name))
    if not os.path.exists(os.path.join(folder, "python")):
        os.symlink(sys.executable, os.path.join(folder, "python"))


def judge(suite, test, code, outputs, folder):
    """What is not as the test expects, in words, of a run with this exit code and these outputs, whose files are in `folder`."""
    if test.get("should_fail"):
        return [] if code else ["it should fail"]
    if code:
        return [f"exit code {code}"]
    want = test.get("output") or {}
    if "$import" in want:
        with open(os.path.join(suite, want["$import"]), encoding="utf-8") as f:
            want = json.load(f)
    return list(differences(want, outputs, folder))


def name_of(value):
    """The last part of its location, in which %3A is a colon."""
    return os.path.basename(urllib.parse.unquote(str(value.get("location") or value.get("path") or value.get("basename"))).rstrip("/"))


def differences(want, got, folder, at=""):
    if want == "Any":
        return
    if isinstance(want, dict) and want.get("class") in ("File", "Directory"):
        yield from file_differences(want, got, folder, at)
    elif isinstance(want, dict) and isinstance(got, dict):
        for key in want:
            yield from differences(want[key], got.get(key), folder, f"{at}/{key}")
        yield from (f"{at}/{key} is too much" for key, value in got.items() if key not in want and value is not None)
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for n, (one, other) in enumerate(zip(want, got)):
            yield from differences(one, other, folder, f"{at}[{n}]")
    elif want != got:
        yield f"{at}: {got!r}, not {want!r}"


def file_differences(want, got, folder, at):
    if not isinstance(got, dict) or got.get("class") != want["class"]:
        yield f"{at}: {got!r} is no {want['class']}"
        return
    for key in ("size", "checksum"):
        if want.get(key, "Any") not in ("Any", got.get(key)):
            yield f"{at}: {key} {got.get(key)}, not {want[key]}"
    if name_of(want) not in ("Any", "None", name_of(got)):
        yield f"{at}: it is called {name_of(got)}, not {name_of(want)}"
    if folder and want["class"] == "File":
        yield from missing(got, folder, at)
    for key in ("listing", "secondaryFiles"):
        for one in want.get(key, []):
            if not any(not list(differences(one, other, None)) for other in got.get(key, [])):
                yield f"{at}: {key} lacks {name_of(one)}"


def missing(got, folder, at):
    """A file that is told of is there; those of a folder came back in its archive."""
    where = urllib.parse.unquote(str(got.get("location") or got.get("path")).removeprefix("file://"))
    path = os.path.join(folder, where)
    if not os.path.exists(path):
        if not os.path.exists(os.path.join(folder, where.split("/")[0] + ".tar")):
            yield f"{at}: {where} did not come back"
    elif "checksum" in got:
        with open(path, "rb") as f:
            if "sha1$" + hashlib.sha1(f.read()).hexdigest() != got["checksum"]:
                yield f"{at}: {where} came back with other bytes"
