"""Everyday tasks, done as somebody would who has not read the manual."""
import os
import pty
import signal

import pytest

import agents
from drover import free_port, sh, wait_until


@pytest.fixture(name="far")
def far_place(instance):
    """A server whose only place sees none of the submitter's files."""
    instance.server("--listen", f"127.0.0.1:{free_port()}")
    agents.start(instance, "filesystem_domain: elsewhere.example\ncpus: 2\n", "far")
    wait_until(lambda: instance.agents("connected"))
    return instance


def jobs_of(out):
    return out.split()[1].rstrip(":")


def test_a_relative_path_typed_without_thought(shared):
    shared.write("data/f1.csv", "1\n2\n3\n")
    shared.cli("submit", "--wait", "--output", "count", "--", "wc", "-l", "data/f1.csv")
    assert shared.read("count") == "3 data/f1.csv\n"


def test_a_submit_file_that_says_nothing_of_files(shared):
    """It runs in the folder of the submit, and what it makes is there; with a word of files to send it has one of its own."""
    shared.write("data/f3.csv", "1\n2\n")
    job = "executable = /bin/sh\narguments = \"-c 'wc -l {} && pwd && echo >made.{}'\"\noutput = said\n{}queue\n"
    out = shared.cli("submit", "--wait", "-", stdin=job.format("data/f3.csv", 1, ""))
    assert "arguments" not in out.err
    count, folder = shared.read("said").splitlines()
    assert count == "2 data/f3.csv" and os.path.realpath(folder) == os.path.realpath(shared.work) and shared.exists("made.1")
    for line in ("transfer_input_files = data/f3.csv", "should_transfer_files = IF_NEEDED\ntransfer_input_files = data/f3.csv"):
        shared.cli("submit", "--wait", "-", stdin=job.format("f3.csv", 2, line + "\n"))
        assert os.path.realpath(shared.read("said").splitlines()[1]) != os.path.realpath(shared.work) and shared.exists("made.2")


def test_a_script_of_this_folder(shared):
    shared.write("hello.sh", "#!/bin/sh\necho hello $1 from $(basename $PWD) >made\n", 0o755)
    shared.cli("submit", "--wait", "--", "./hello.sh", "you")
    assert shared.read("made") == "hello you from work\n"


def test_folders_of_outputs_are_made(shared):
    """By a command and by a submit file; only beneath the folder of the jobs, which is not made itself."""
    shared.cli("submit", "--wait", "--array", "2", "--output", "logs/{}/out", "--error", "logs/err/{}", "--", "sh", "-c", "echo {}; echo e{} >&2")
    assert [shared.read(f"logs/{n}/out") for n in (0, 1)] == ["0\n", "1\n"]
    assert shared.read("logs/err/1") == "e1\n"
    shared.run(sh("echo x >y", output="deep/$(Process)/a/out", transfer_output_files="y", transfer_output_remaps='"y=else/where/y"'))
    assert shared.exists("deep/0/a/out") and shared.read("else/where/y") == "x\n"
    request = shared.submit(sh("echo x", output=os.path.join(shared.base, "outside/deep/out")))
    shared.wait_state(f"{request}.0", "held")
    assert not os.path.exists(os.path.join(shared.base, "outside"))
    gone = os.path.join(shared.work, "gone")
    os.makedirs(gone)
    request = shared.submit(sh(f"rmdir {gone}; echo x", initialdir=gone, output="a/out"))
    shared.wait_state(f"{request}.0", "held")
    assert not os.path.exists(gone)


def test_one_output_file_for_many_jobs_is_warned_of(shared):
    out = shared.cli("submit", "--array", "3", "--output", "all", "--", "true")
    assert "output: all 3 jobs write all" in out.err
    assert "all 3 jobs" not in shared.cli("submit", "--array", "3", "--output", "all-{}", "--", "true").err
    assert "all 2 jobs" not in shared.cli("submit", "-", stdin=sh("true", output="/dev/null", queue="queue 2")).err


def test_a_file_that_will_not_be_there_is_warned_of(shared):
    shared.write("data/f2.csv", "1\n")
    job = "executable = /usr/bin/wc\narguments = -l {}\n{}\nqueue\n"
    told = shared.cli("submit", "-", stdin=job.format("data/f2.csv", "should_transfer_files = YES")).err
    assert "arguments: data/f2.csv is not in the folder" in told
    assert "arguments: data/f2.csv" in shared.cli("submit", "-", stdin=job.format("data/f2.csv", "should_transfer_files = IF_NEEDED")).err
    for words, line in (("data/f2.csv", ""), ("data/f2.csv", "should_transfer_files = NO"), ("f2.csv", "transfer_input_files = data/f2.csv"),
                        ("data/f2.csv", "transfer_input_files = data"), ("no-such-file", "should_transfer_files = YES"),
                        ("/etc/passwd", "should_transfer_files = YES")):
        assert "arguments" not in shared.cli("submit", "-", stdin=job.format(words, line)).err, (words, line)


def test_a_far_place_has_the_files_that_arguments_name(far):
    """There is one place that does not see this folder: what is named without a folder is sent, the rest is told of."""
    far.write("here.txt", "sent\n")
    far.write("say.sh", "#!/bin/sh\ncat $1\n", 0o755)
    far.write("data/deep.txt", "not sent\n")
    out = far.cli("submit", "--wait", "--output", "said", "--", "./say.sh", "here.txt")
    assert "sent to places" not in out.err
    far.cli("get", "-o", os.path.join(far.work, "got"), jobs_of(out))
    assert far.read("got/said") == "sent\n"
    out = far.cli("submit", "--", "cat", "data/deep.txt")
    assert "data/deep.txt is not sent to places that do not see this folder" in out.err
    far.cli("rm", jobs_of(out))


def test_what_waits_is_given_more_memory(shared):
    request = jobs_of(shared.cli("submit", "--memory", "900T", "--", "sh", "-c", "echo ran >>more-memory"))
    shared.cli("edit", request, "request_memory=50M")
    shared.cli("wait", "--timeout", "60", request, timeout=120)
    assert shared.read("more-memory") == "ran\n"


def test_the_failed_ones_again(shared):
    request = jobs_of(shared.cli("submit", "--array", "3", "--", "sh", "-c", "echo x >>again.{}; [ {} != 1 -o -e mended ]"))
    shared.cli("wait", "--timeout", "60", request, code=1, timeout=120)
    shared.write("mended", "")
    shared.cli("wait", "--timeout", "60", jobs_of(shared.cli("resubmit", request, "--failed")), timeout=120)
    assert [shared.read(f"again.{n}") for n in range(3)] == ["x\n", "x\nx\n", "x\n"]


def test_a_machine_is_taken_out_for_a_while(shared):
    name = shared.agents()[0]["name"]
    shared.cli("agents", "drain", name, "-r", "new disk")
    request = jobs_of(shared.cli("submit", "--", "true"))
    assert "new disk" in shared.cli("why", request) and "new disk" in shared.cli("agents")
    shared.cli("agents", "resume", name)
    shared.cli("wait", "--timeout", "60", request, timeout=120)


def test_what_a_job_was_is_read_on_one_page(shared):
    """Of a job that failed, one that waits, and a request of several."""
    failed = jobs_of(shared.cli("submit", "--", "sh", "-c", "echo said; exit 3"))
    shared.cli("wait", "--timeout", "60", failed, code=1, timeout=120)
    page = shared.cli("show", failed)
    for words in ("failed: exit 3", "echo said", "1 processor", "of processor time", shared.work, "stdout:\n  said\n"):
        assert words in page, words
    assert "Requirements" not in page and "Requirements = " in shared.cli("show", "--ad", f"{failed}.0")
    waits = jobs_of(shared.cli("submit", "--memory", "900T", "--", "true"))
    assert "900T of memory" in shared.cli("show", waits) and "No queue can run this job" in shared.cli("show", waits)
    shared.cli("rm", waits)
    assert "removed" in shared.cli("show", waits)
    several = jobs_of(shared.cli("submit", "--wait", "--array", "3", "--", "true"))
    assert "3 jobs: 3 completed" in shared.cli("show", several)


def on_a_terminal(shared, *words, **env):
    """What `drover WORDS` writes to a terminal, and its exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(shared.work)
        os.execve(shared.program("drover"), ["drover", *words], {**shared.env, "TERM": "dumb", **env})
    text = b""
    try:
        while (more := os.read(terminal, 4096)):
            text += more
    except OSError:  # nobody has the other end
        pass
    os.close(terminal)
    return text.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_long_listings_go_through_a_pager(shared):
    """On a terminal only; none for JSON, and none when that is said."""
    shared.run(sh("true"))
    marks = "sed 's/^/> /'"
    out, code = on_a_terminal(shared, "history", DROVER_PAGER=marks)
    assert code == 0 and all(line.startswith("> ") for line in out.splitlines()), out
    assert not on_a_terminal(shared, "history", "--json", DROVER_PAGER=marks)[0].startswith("> ")
    assert not on_a_terminal(shared, "history", DROVER_PAGER="", PAGER=marks)[0].startswith("> ")
    assert on_a_terminal(shared, "history", PAGER=marks)[0].startswith("> ")
    assert ">" not in shared.cli("history", "-l", "1", env={"DROVER_PAGER": marks}).split("\n", 1)[0]
    out, code = on_a_terminal(shared, "show", "99999", DROVER_PAGER=marks)
    assert code == 2 and "> drover: " in out
    assert on_a_terminal(shared, "history", DROVER_PAGER="exit 1")[1] in (0, -signal.SIGPIPE)


def test_a_copy_of_everything(instance):
    """While the server runs; put back elsewhere it has the same requests."""
    server = instance.server()
    instance.cli("submit", "--", "true")
    copy, there = os.path.join(instance.base, "copy"), os.path.join(instance.base, "there")
    instance.cli("backup", copy)
    assert "not empty" in instance.cli("backup", copy, code=1).err
    assert "another server" in instance.cli("restore", copy, code=1).err
    server.stop(signal.SIGTERM)
    assert "is there already" in instance.cli("restore", copy, code=1).err
    assert instance.json("--dir", there, "restore", copy)["restored"] == copy
    instance.dir = instance.env["DROVER_DIR"] = there
    instance.server()
    assert [r["id"] for r in instance.json("queue")["requests"]] == [1]
