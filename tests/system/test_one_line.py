"""`drover submit -- COMMAND`: a command is submitted as one types it."""
import json
import os
import re

import pytest

# What a shell, a submit file, or the macros of one would change.
WORDS = ["plain", "two words", "", "it's", 'say "yes"', "$HOME", "$(Process)", "$$(Name)", "$(DOLLAR)", "{}", "a\\b", "a\\", "#x", " blanks ",
         "ä€", "*", "a,b;c", "''", '""', "--cpus", "tab\there", "%d", "[x]", "@", "two\nlines", "\n", " \n'\n\n "]


@pytest.fixture(name="one")
def one_line(shared):
    shared.write("tell.py", "import json, os, sys\nprint(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]))\n")
    return shared


def told(instance, *args, output="told"):
    """What a job of these options and words says about itself."""
    instance.cli("submit", "--wait", "--output", f"{output}.out", *args)
    return json.loads(instance.read(f"{output}.out"))


def test_words_arrive_as_they_are_typed(one):
    words, folder, environment = told(one, "--env", "ODD=" + "|".join(WORDS), "--", "python3", "tell.py", *WORDS)
    assert words == WORDS
    assert os.path.realpath(folder) == os.path.realpath(one.work)
    assert environment["ODD"] == "|".join(WORDS)


def test_what_is_printed_is_what_is_submitted(one):
    text = one.cli("submit", "--print", "--cpus", "1", "--memory", "100M", "--time", "5m", "--array", "3-4", "-a", "priority = 2", "--name", "printed",
                   "--", "python3", "tell.py", "{}", "x{}y", "$(Process)")
    assert "priority = 2\nqueue 2\n" in text
    request = one.submit(text)
    for member in range(2):
        one.wait_state(f"{request}.{member}", "completed")
        number = str(member + 3)
        assert json.loads(one.read(f"printed-{request}.{member}.out"))[0] == [number, f"x{number}y", "$(Process)"]
    shown = one.cli("show", "--ad", f"{request}.1")
    for line in ("RequestMemory = 100", "JobPrio = 2", "AllowedExecuteDuration = 300", 'JobBatchName = "printed"'):
        assert line in shown, (line, shown)


def test_each_resource_is_a_keyword_and_arrives(one):
    asked = ["--disk", "2G", "--gpus", "1", "--nodes", "2", "--tasks-per-node", "3"]
    text = one.cli("submit", "--print", *asked, "--", "true")
    for line in ("request_disk = 2G", "request_gpus = 1", "request_nodes = 2", "tasks_per_node = 3"):
        assert f"\n{line}\n" in text
    request = one.cli("submit", "--hold", *asked, "--", "true").split()[1].rstrip(":")
    ad = one.cli("show", "--ad", f"{request}.0")
    for line in ("RequestDisk = 2097152", "RequestGPUs = 2", "NodeCount = 2", "TasksPerNode = 3", "RequestCpus = 6"):
        assert f"{line}\n" in ad
    assert re.search(r"asked for +6 processors, 2G of disk, 2 GPUs\n", one.cli("show", f"{request}.0"))
    one.cli("rm", request)
    for option, value in (("--disk", "lots"), ("--gpus", "-1"), ("--gpus", "x"), ("--nodes", "0"), ("--tasks-per-node", "0"), ("--memory", "0")):
        assert option in one.cli("submit", option, value, "--", "true", code=2).err


def test_an_image_has_a_name_or_a_path(one):
    for image, becomes in (("debian:12", "docker://debian:12"), ("quay.io/a/b:1", "docker://quay.io/a/b:1"), ("docker://a/b", "docker://a/b"),
                           ("/images/x.sif", "/images/x.sif"), ("x.sif", "x.sif"), ("./unpacked", "./unpacked")):
        text = one.cli("submit", "--print", "--image", image, "--", "python3", "-c", "1")
        assert f"\ncontainer_image = {becomes}\n" in text and text.startswith("executable = python3\ntransfer_executable = false\n")
    request = one.cli("submit", "--hold", "--image", "debian:12", "--", "true").split()[1].rstrip(":")
    assert 'ContainerImage = "docker://debian:12"\n' in one.cli("show", "--ad", f"{request}.0")
    one.cli("rm", request)


def test_an_array_has_its_numbers_and_files(one):
    out = one.cli("submit", "--wait", "--array", "3-5", "--name", "of/a set", "--", "sh", "-c", "echo number {}; echo {} >&2; exit 0")
    request = out.split()[1].rstrip(":")
    assert "3 jobs, all succeeded" in out
    for member in range(3):
        assert one.read(f"of_a_set-{request}.{member}.out") == f"number {member + 3}\n"
        assert one.read(f"of_a_set-{request}.{member}.err") == f"{member + 3}\n"
    assert "of/a set" in one.cli("queue", "--all")


def test_placeholders_of_gnu_parallel(one):
    """{} {.} {/} {//} {/.} {#}, for files that a pattern matches; also in options, and as the last argument where none is used."""
    for name in ("each/a b.csv", "each/b.tar.gz", "each/$x (1).csv"):
        one.write(name, f"in {name}\n")
    words = ["{}", "{.}", "{/}", "{//}", "{/.}", "{#}", '{/}x"{#}\'', "{", "{x}"]
    one.cli("submit", "--wait", "--each", "each/*", "--output", "of-{#}.out", "--env", "ITEM={/}", "--", "python3", "tell.py", *words)
    found = {}
    for number in range(1, 4):
        said, _, environment = json.loads(one.read(f"of-{number}.out"))
        assert environment["ITEM"] == said[2]
        found[said[0]] = said
        assert said[5] == str(number)
    assert sorted(found) == ["each/$x (1).csv", "each/a b.csv", "each/b.tar.gz"]
    for path, said in found.items():
        base, stem = os.path.basename(path), os.path.splitext(os.path.basename(path))[0]
        assert said[:5] == [path, f"each/{stem}", base, "each", stem]
        assert said[6:] == [f'{base}x"{said[5]}\'', "{", "{x}"]
    one.cli("submit", "--wait", "--each", "each/*", "--output", "last-{/}", "--", "cat")
    assert one.read("last-a b.csv") == "in each/a b.csv\n"


def test_a_job_for_each_line(one):
    one.write("lines", "one  two\n\n# three\n$HOME\n")
    out = one.cli("submit", "--wait", "--each", "lines", "--output", "line-{#}", "--", "python3", "tell.py", "a")
    assert "3 jobs, all succeeded" in out
    assert [json.loads(one.read(f"line-{n}"))[0] for n in (1, 2, 3)] == [["a", "one  two"], ["a", "# three"], ["a", "$HOME"]]


def test_an_array_counts_from_one_too(one):
    one.cli("submit", "--wait", "--array", "7-8", "--output", "counted-{}", "--", "echo", "{#}", "{}", "{/}")
    assert one.read("counted-8") == "2 8 {/}\n"
    assert not one.cli("submit", "--wait", "--array", "2", "--", "true").err


def test_folder_and_queue(one):
    os.makedirs(os.path.join(one.work, "there"))
    one.cli("submit", "--wait", "--chdir", "there", "--output", "where", "--", "pwd")
    assert os.path.realpath(one.read("there/where").strip()) == os.path.realpath(os.path.join(one.work, "there"))
    queue = one.json("agents")["agents"][0]["queues"][0]["name"]
    one.cli("submit", "--wait", "--queue", queue, "--", "true")
    request = one.cli("submit", "--queue", "no-such-queue", "--", "true").split()[1].rstrip(":")
    assert "QueueName" in one.cli("why", f"{request}.0")
    one.cli("rm", request)


def test_files_that_are_sent(one):
    one.write("data/in.txt", "sent\n")
    out = one.cli("submit", "--wait", "--output", "sent.out", "--send", "data", "--send", "tell.py", "--", "python3", "tell.py", "data/in.txt")
    one.cli("get", "-o", os.path.join(one.work, "got"), out.split()[1].rstrip(":"))
    found = [os.path.join(d, f) for d, _, fs in os.walk(os.path.join(one.work, "got")) for f in fs if f == "sent.out"]
    with open(found[0], encoding="utf-8") as f:
        words, folder, _ = json.load(f)
    assert words == ["data/in.txt"] and os.path.realpath(folder) != os.path.realpath(one.work)


def test_its_exit_code_is_that_of_wait(one):
    assert one.cli("submit", "--wait", "--", "false", code=1)


def test_what_cannot_be_meant_is_said(one):
    def says(text, *args):
        out = one.cli("submit", *args, code=2)
        assert text in out.err, (args, out.err)

    before = len(one.json("queue", "--all")["requests"])
    says("no program no-such-program in the PATH", "--", "no-such-program")
    says("./tell.py is not a program", "--", "./tell.py")
    says("--array cannot be '5-3'", "--array", "5-3", "--", "true")
    says("--memory cannot be 'much'", "--memory", "much", "--", "true")
    says("--array cannot be '0'", "--array", "0", "--", "true")
    says("--send no-such-file: No such file", "--send", "no-such-file", "--", "true")
    says("no variable NO_SUCH_VARIABLE", "--env", "NO_SUCH_VARIABLE", "--", "true")
    says("leave out the quotes", "--", "echo hi")
    says("a variable is --env A=1", "--", "A=1", "env")
    says("that of this folder is ./tell.py", "--", "tell.py")
    says("quote the pattern", "--each", "a", "b", "--", "true")
    says("--array or --each", "--each", "tell.py", "--array", "2", "--", "true")
    says("nothing here matches 'no-such*'", "--each", "no-such*", "--", "true")
    says("no-such-list", "--each", "no-such-list", "--", "true")
    says("names no folder", "--each", "tell.p*", "--", "echo", "{//}")
    says("--queue cannot be 'a\"b'", "--queue", 'a"b', "--", "true")
    one.write("quoted.list", "it's\n")
    says("single quote", "--each", "quoted.list", "--", "true")
    one.write("macro.list", "a\n$(Process)\n")
    says("'$(Process)': a single quote and $(...)", "--each", "macro.list", "--", "true")
    one.write("empty.list", "\n\n")
    says("no line in empty.list", "--each", "empty.list", "--", "true")
    says("--cpus goes with -- COMMAND", "--cpus", "2", "a.sub")
    one.write("a.sub", "queue\n")
    says("unexpected argument \"b.sub\"", "a.sub", "b.sub")
    says("/bin/true is not a submit file; use `drover submit -- /bin/true`", "/bin/true")
    says("--galaxy and --cwl take a FILE", "--galaxy", "--", "true")
    assert len(one.json("queue", "--all")["requests"]) == before
