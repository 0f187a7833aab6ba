"""Everyday tasks, done as somebody would who has not read the manual."""
import fcntl
import getpass
import json
import os
import re
import pty
import select
import signal
import struct
import termios

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
    assert "3 jobs: 3 succeeded" in shared.cli("show", several)


def on_a_terminal(shared, *words, **env):
    """What `drover WORDS` writes to a terminal, and its exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 60, 80, 0, 0))
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


def test_sentences_and_tables_fit_a_terminal(shared):
    """Of 80 columns, broken between words."""
    whole = next(q["total"]["cpus"] for q in shared.agents()[0]["queues"] if q["name"] == "default")
    fills = jobs_of(shared.cli("submit", "--name", "fills-the-queue-before-it", "--cpus", str(whole), "--array", "30", "--", "sleep", "600"))
    wait_until(lambda: shared.json("queue", "--state", "running", fills)["jobs"])
    request = jobs_of(shared.cli("submit", "--name", "a-name-that-is-longer-than-most", "--memory", "1G", "--", "sh", "-c", "sleep 1; exit 3"))
    wait_until(lambda: "`drover priority " in shared.cli("why", f"{request}.0"))
    for words in (("why", f"{request}.0"), ("show", f"{request}.0"), ("quote", "--", "true"), ("agents",), ("queue",)):
        out, code = on_a_terminal(shared, *words, DROVER_PAGER="")
        assert code == 0 and out.strip(), words
        assert [line for line in out.splitlines() if len(line) > 80] == [], words


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


def test_running_a_command_here_and_now(shared):
    """It prints what it prints, and ends as it ends; a file is its input; a signal's end has the shell's code."""
    assert shared.cli("run", "echo", "hello") == "hello\n"
    out = shared.cli("run", "--", "sh", "-c", "echo out; echo err >&2; exit 7", code=7)
    assert out == "out\n" and out.err == "err\n"
    assert shared.cli("run", "--", "sh", "-c", "kill -9 $$", code=128 + signal.SIGKILL) == ""
    shared.write("three.txt", "1\n2\n3\n")
    assert shared.cli("run", "--input", "three.txt", "--", "wc", "-l") == "3\n"
    assert shared.cli("run", "--input", "-", "wc", "-l", stdin="a\nb\n") == "2\n"


def test_one_job_for_each_file(shared):
    for n in (1, 2, 3):
        shared.write(f"parts/p{n}.csv", "x\n" * n)
    out = shared.cli("run", "--each", "parts/*.csv", "--", "wc", "-l")
    assert out.split() == ["1", "parts/p1.csv", "2", "parts/p2.csv", "3", "parts/p3.csv"]
    out = shared.cli("submit", "--each", "parts/*.csv", "--output", "{/.}.count", "--", "wc", "-l", "{}")
    assert out.endswith(": 3 jobs\n")
    shared.cli("wait", "--timeout", "60", jobs_of(out), timeout=120)
    assert shared.read("p3.count") == "3 parts/p3.csv\n"


def test_a_pattern_without_quotes(shared):
    out = shared.cli("run", "--each", "a.csv", "b.csv", "--", "wc", code=2)
    assert "quote the pattern" in out.err


def test_an_array_with_its_number(shared):
    out = shared.cli("submit", "--array", "2-4", "--name", "squares", "--", "sh", "-c", "echo $(({} * {}))")
    shared.cli("wait", "--timeout", "60", jobs_of(out), timeout=120)
    assert sorted(shared.read(f"squares-{jobs_of(out)}.{n}.out") for n in (0, 1, 2)) == ["16\n", "4\n", "9\n"]


def test_the_submit_file_that_a_command_is(shared):
    """It can be kept, and submitted."""
    text = shared.cli("submit", "--cpus", "1", "--memory", "100M", "--print", "--", "echo", "printed")
    assert "executable = /usr/bin/echo" in text and "request_memory = 100M" in text
    shared.write("printed.sub", text)
    shared.cli("submit", "--wait", "-a", "output = printed.out", "printed.sub", code=None)
    assert "printed" in shared.cli("submit", "--dry-run", "printed.sub")


def test_a_command_without_the_dashes(shared):
    out = shared.cli("submit", "echo", "hi", code=2)
    assert "echo is not a submit file" in out.err and "drover submit [OPTIONS] -- COMMAND" in out.err
    assert "use `drover submit -- /bin/true`" in shared.cli("submit", "/bin/true", code=2).err
    assert "No such file" in shared.cli("submit", "nothing.sub", code=1).err


def test_a_program_that_is_not_there(shared):
    assert "there is no such file" in shared.cli("submit", "--", "./nothing.sh", code=2).err
    shared.write("no-x.sh", "#!/bin/sh\n")
    assert "chmod +x" in shared.cli("run", "./no-x.sh", code=2).err
    assert "in the PATH" in shared.cli("run", "no-such-program", code=2).err


def test_a_variable_of_the_environment(shared):
    assert shared.cli("run", "--env", "GREETING=good day", "--", "sh", "-c", 'echo "$GREETING"') == "good day\n"
    assert shared.cli("run", "--env", "FROM_HERE", "--", "sh", "-c", "echo $FROM_HERE", env={"FROM_HERE": "yes"}) == "yes\n"


def test_what_is_queued(shared):
    """A line for each request; jobs that are alike in one line; the columns that are asked for."""
    request = jobs_of(shared.cli("submit", "--array", "500", "--memory", "900T", "--name", "many", "--", "true"))
    line = next(words for words in map(str.split, shared.cli("queue").splitlines()) if words[0] == request)
    assert line[3:5] == ["500", "500"]
    assert f"{request}.0-499" in shared.cli("queue", "-j", request)
    assert shared.cli("queue", "-j", "--no-header", "-o", "id,state", "-l", "2", request).split() == [f"{request}.0", "idle", f"{request}.1", "idle"]
    assert shared.cli("queue", "-j", "--csv", "-o", "state,id", request).splitlines()[0] == "state,id"
    assert shared.cli("queue", "-o", "id,state", "--no-header", "-l", "1").split()[-1] == "idle", "a column of jobs lists jobs"
    out = shared.cli("queue", "-o", "id,colour", code=2)
    assert 'there is no column "colour"' in out.err and "command" in out.err
    assert shared.cli("rm", request) == "500 jobs removed\n"


def test_the_latest_of_what_is_queued(shared):
    """A limit gives the last requests, the newest first, also over several pages and where the last one has ended."""
    first = jobs_of(shared.cli("submit", "--hold", "--", "true"))
    second = jobs_of(shared.cli("submit", "--hold", "--", "true"))
    ended = jobs_of(shared.cli("submit", "--wait", "--", "true"))
    assert shared.cli("queue", "-o", "id", "--no-header", "-l", "2").split()[:2] == [second, first]
    assert shared.cli("queue", "-a", "-o", "id", "--no-header", "-l", "3").split()[:3] == [ended, second, first]
    page = shared.api("GET", "/v1/requests?all=1&latest=1&limit=1")
    assert [r["id"] for r in page["requests"]] == [int(ended)]
    page = shared.api("GET", f"/v1/requests?all=1&latest=1&limit=1&after={page['next']}")
    assert [r["id"] for r in page["requests"]] == [int(second)]
    shared.cli("rm", first, second)


def test_only_those_that_run_or_are_held(shared):
    held = jobs_of(shared.cli("submit", "--hold", "--", "true"))
    assert [j["id"] for j in shared.json("queue", "--state", "held", held)["jobs"]] == [f"{held}.0"]
    assert shared.json("queue", "--state", "running", held)["jobs"] == []
    assert "try idle, running, held" in shared.cli("queue", "--state", "wating", code=2).err
    shared.cli("rm", held)


def test_waiting_for_good_ends_and_bad_ones(shared):
    good, bad = (jobs_of(shared.cli("submit", "--", "sh", "-c", f"echo why it failed >&2; exit {n}")) for n in (0, 3))
    assert shared.cli("wait", good) == "1 job, it succeeded\n"
    out = shared.cli("wait", bad, code=1)
    assert "why it failed" in out + out.err and f"{bad}.0" in out + out.err
    assert shared.cli("wait", "-q", bad, code=1) == ""


def test_waiting_for_what_is_held(shared):
    request = jobs_of(shared.cli("submit", "--hold", "--", "true"))
    out = shared.cli("wait", request, code=3)
    assert f"drover release {request}" in out.err
    shared.cli("release", request)
    shared.cli("wait", "--timeout", "60", request, timeout=120)


def test_waiting_only_so_long(shared):
    request = jobs_of(shared.cli("submit", "--memory", "900T", "--", "true"))
    assert "timed out after 1 s" in shared.cli("wait", "--timeout", "1", request, code=124).err
    assert shared.cli("rm", request) == "1 job removed\n"


def test_why_it_does_not_run(shared):
    """The one thing that is in the way; and both, where there are two."""
    request = jobs_of(shared.cli("submit", "--memory", "900T", "--", "true"))
    out = shared.cli("why", request)
    assert "No queue can run this job" in out and "request_memory" in out and "900T" in out
    shared.cli("hold", request)
    assert f"`drover release {request}.0`" in shared.cli("why", request)
    shared.cli("rm", request)
    request = jobs_of(shared.cli("submit", "--memory", "900T", "--cpus", "4000", "--", "true"))
    out = shared.cli("why", request)
    assert "request_memory = 900T" in out and "request_cpus = 4000" in out
    shared.cli("rm", request)


def test_why_a_request_of_many_does_not_run(shared):
    """The first of its jobs that waits stands for them; one that is held is passed over while others are idle."""
    request = jobs_of(shared.cli("submit", "--array", "3", "--memory", "900T", "--", "true"))
    shared.cli("hold", f"{request}.0")
    assert f"3 jobs of the request {request}.1 is the first that is idle" in shared.cli("why", request)
    assert "less memory than the job asks for" in shared.cli("why", request) and "before it in the order" not in shared.cli("why", request)
    shared.cli("hold", request)
    assert f"{request}.0 is the first that is held" in shared.cli("why", request)
    shared.cli("rm", request)
    assert "name one" in shared.cli("why", request, code=2).err


def test_no_gpu_here(shared):
    request = jobs_of(shared.cli("submit", "--gpus", "1", "--", "true"))
    assert "this queue has no GPUs" in shared.cli("why", request)
    shared.cli("rm", request)


def test_less_is_asked_for_afterwards(shared):
    """In the words of the options, too, and also when that is what one gets without asking."""
    request = jobs_of(shared.cli("submit", "--cpus", "4000", "--memory", "900T", "--", "true"))
    assert shared.cli("edit", request, "cpus=1", "memory=50M") == "1 job changed\n"
    shared.cli("wait", "--timeout", "60", request, timeout=120)
    assert "missing" in shared.cli("edit", "1", code=2).err or "=" in shared.cli("edit", "1", code=2).err


def test_the_end_of_what_a_job_prints(shared):
    request = jobs_of(shared.cli("submit", "--", "sh", "-c", "seq 20; echo bad >&2"))
    shared.cli("wait", request)
    assert shared.cli("tail", request).split() == [str(n) for n in range(11, 21)]
    assert shared.cli("tail", "-n", "2", request) == "19\n20\n"
    assert shared.cli("tail", "--stderr", request) == "bad\n"


def test_the_end_of_what_several_jobs_print(shared):
    """While some run these alone are shown, each beneath its id; later those that have ended."""
    request = jobs_of(shared.cli("submit", "--array", "2", "--", "sh", "-c", "echo this is {}; while [ {} = 1 ] && [ ! -e several ]; do sleep 0.05; done"))
    shared.wait_state(f"{request}.1", "running")
    wait_until(lambda: shared.cli("queue", "-o", "id,state", "--no-header", request).count("completed") == 1)
    wait_until(lambda: shared.cli("tail", request) == f"==> {request}.1 <==\nthis is 1\n")
    assert "name one" in shared.cli("tail", "-f", request, code=2).err
    shared.write("several", "")
    shared.cli("wait", request)
    both = shared.cli("tail", request)
    assert f"==> {request}.0 <==\nthis is 0\n" in both and f"==> {request}.1 <==\nthis is 1\n" in both
    assert shared.cli("tail", f"{request}.0-0") == "this is 0\n"
    waits = jobs_of(shared.cli("submit", "--memory", "900T", "--array", "2", "--", "true"))
    assert f"drover why {waits}" in shared.cli("tail", waits, code=1).err
    shared.cli("rm", waits)


def test_following_what_a_job_prints(shared):
    request = jobs_of(shared.cli("submit", "--", "sh", "-c", "echo one; while [ ! -e follow ]; do sleep 0.05; done; echo two"))
    wait_until(lambda: shared.cli("tail", request, code=None) == "one\n")
    shared.write("follow", "")
    assert shared.cli("tail", "-f", request) == "one\ntwo\n"


def test_looking_at_a_job_that_runs(shared):
    request = jobs_of(shared.cli("submit", "--", "sh", "-c", "while [ ! -e looked ]; do sleep 0.05; done"))
    shared.wait_state(f"{request}.0", "running")
    wait_until(lambda: shared.cli("exec", request, "--", "true", code=None) == "" and "running" in shared.cli("show", request))
    assert shared.cli("exec", request, "--", "sh", "-c", "echo $DROVER_JOB") == f"{request}.0\n"
    assert shared.cli("exec", "-i", request, "--", "wc", "-c", stdin="12345") == "5\n"
    shared.write("looked", "")
    shared.cli("wait", request)
    assert "does not run" in shared.cli("exec", request, "--", "true", code=1).err


def test_a_terminal_somewhere(shared):
    """`drover run -t`: the program has one."""
    out, code = on_a_terminal(shared, "run", "-t", "--", "sh", "-c", "tty; exit 4")
    assert out.startswith("/dev/pts/") and code == 4
    assert "not a terminal" in shared.cli("run", "-t", "true", code=2).err


def test_hold_and_release(shared):
    request = jobs_of(shared.cli("submit", "--array", "3", "--memory", "900T", "--", "true"))
    assert shared.cli("hold", f"{request}.1", "-r", "not yet") == "1 job held\n"
    assert "not yet" in shared.cli("queue", "-j", request) and "not yet" in shared.cli("show", f"{request}.1")
    assert shared.cli("release", request) == "1 job released\n"
    assert shared.cli("rm", f"{request}.0,{request}.2") == "2 jobs removed\n"
    assert shared.cli("cancel", request) == "1 job removed\n"


def test_removing_by_name_and_owner(shared):
    for name in ("red-1", "red-2", "blue"):
        shared.cli("submit", "--memory", "900T", "--name", name, "--", "true")
    assert shared.cli("rm", "--name", "red-*") == "2 jobs removed\n"
    assert shared.cli("rm", "-u", getpass.getuser(), "--name", "blue") == "1 job removed\n"
    assert "--name 'my job'" in shared.cli("rm", "my job", code=2).err
    assert "which jobs?" in shared.cli("rm", code=2).err and "no such request" in shared.cli("rm", "99999", code=2).err


def test_stopping_and_going_on(shared):
    request = jobs_of(shared.cli("submit", "--", "sh", "-c", "while [ ! -e gone-on ]; do sleep 0.05; done"))
    shared.wait_state(f"{request}.0", "running")
    assert shared.cli("suspend", request) == "1 job suspended\n"
    shared.wait_state(f"{request}.0", "suspended")
    assert "1 job" in shared.cli("resume", request)
    shared.write("gone-on", "")
    shared.cli("wait", "--timeout", "60", request, timeout=120)


def test_a_signal_for_a_job(shared):
    request = jobs_of(shared.cli("submit", "--", "sh", "-c", "trap 'echo had it; exit 5' USR1; touch set; while :; do sleep 0.05; done"))
    wait_until(lambda: shared.exists("set"))
    shared.wait_state(f"{request}.0", "running")
    shared.cli("signal", request, "USR1")
    shared.cli("wait", "--timeout", "60", request, code=1, timeout=120)
    assert shared.cli("tail", request) == "had it\n" and "exit 5" in shared.cli("show", request)


def test_from_the_beginning_again(shared):
    """Back into the queue while it runs; and what has ended is submitted again."""
    request = jobs_of(shared.cli("submit", "--", "sh", "-c", "echo x >>starts; [ $(wc -l <starts) = 2 ] || sleep 600"))
    wait_until(lambda: shared.exists("starts"))
    shared.wait_state(f"{request}.0", "running")
    assert shared.cli("requeue", request) == "1 job back in the queue\n"
    shared.cli("wait", "--timeout", "90", request, timeout=120)
    assert shared.read("starts") == "x\nx\n"
    assert "drover resubmit" in shared.cli("requeue", request, code=1).err
    again = jobs_of(shared.cli("resubmit", request))
    shared.cli("rm", again)


def test_one_after_the_other(shared):
    first = jobs_of(shared.cli("submit", "--", "sh", "-c", "echo first >>order"))
    second = jobs_of(shared.cli("submit", "--after", first, "--", "sh", "-c", "echo second >>order"))
    shared.cli("wait", "--timeout", "60", second, timeout=120)
    assert shared.read("order") == "first\nsecond\n"


def test_no_longer_than_a_second(shared):
    request = jobs_of(shared.cli("submit", "--time", "1s", "--", "sleep", "600"))
    assert "ran longer" in shared.cli("wait", "--timeout", "60", request, code=3, timeout=120).err
    assert "ran longer" in shared.cli("queue", "-j", request) and "1.0s at most" in shared.cli("show", request)
    shared.cli("rm", request)


def test_what_has_ended(shared):
    """The latest, with how it ended; the ones that failed; as CSV; and what `queue` says of them."""
    request = jobs_of(shared.cli("submit", "--array", "2", "--name", "old", "--", "sh", "-c", "exit {}"))
    shared.cli("wait", request, code=1)
    assert "exit 1" in shared.cli("history", "-l", "2") and len(shared.cli("history", "-l", "2").splitlines()) == 3
    failed = shared.cli("history", "-c", f"ClusterId == {request} && ExitCode != 0")
    assert f"{request}.1" in failed and f"{request}.0" not in failed
    assert shared.cli("history", "--csv", "-l", "1").splitlines()[0].startswith("id,owner,ended")
    either = ("-c", f"ClusterId == {request} && ExitCode == 1 || ClusterId == {request} && ExitCode == 0")
    assert f"{request}.1" in shared.cli("history", "--since", "-1h", *either)
    removed = jobs_of(shared.cli("submit", "--hold", "--", "true"))
    shared.cli("rm", removed)
    assert f"{removed}.0" in shared.cli("history", "--since", "today", removed)
    assert "no finished jobs" in shared.cli("history", "--since", "2999-01-01", *either)
    assert "--since" in shared.cli("history", "--since", "recently", code=2).err
    assert "drover history" in shared.cli("queue", "-c", "ExitCode != 0").err
    assert f"{request}.1" in shared.cli("queue", "--state", "failed")


def test_what_happened_to_a_job(shared):
    request = jobs_of(shared.cli("submit", "--", "true"))
    shared.cli("wait", request)
    lines = [line.split()[1] for line in shared.cli("log", request).splitlines()[1:]]
    assert lines[0] == "submitted" and "started" in lines and lines[-1] == "exited"


def test_the_places_there_are(shared):
    head, line = shared.cli("agents").splitlines()[:2]
    assert head.split()[:3] == ["NAME", "STATE", "QUEUE"] and "connected" in line and "memory:" not in line
    assert "memory:" in shared.cli("agents", "-o", "name,limits")
    assert shared.cli("doctor", code=None)


def test_a_file_with_a_keyword_that_is_none(shared):
    text = "executable = /bin/echo\nargumnts = hi\nqueue\n"
    err = shared.cli("submit", "--dry-run", "-", stdin=text).err
    assert "argumnts" in err and "did you mean arguments?" in err


def test_what_would_be_submitted(shared):
    before = shared.json("queue", "-a")["requests"]
    out = shared.cli("submit", "--dry-run", "--array", "7", "--", "true")
    assert out.startswith("7 jobs would be submitted")
    assert "start" in shared.cli("quote", "-", stdin="executable = /bin/true\nqueue\n")
    assert shared.json("queue", "-a")["requests"] == before


def test_a_command_where_a_file_is_expected_is_told_how(shared):
    for words, said in ((("submit", "hostname"), "use `drover submit -- hostname`"), (("submit", "wc -l x"), "use `drover submit -- wc -l x`"),
                        (("submit", "wc", "-l", "x"), "behind --, as in drover submit -- ls -l"), (("exec", "7", "ls", "-l"), "behind --, as in drover exec 7.0 -- ls -l"),
                        (("quote", "7"), "drover show 7")):
        assert said in shared.cli(*words, code=2).err, words
    assert "'>' goes to echo as it is; for a shell, write -- sh -c 'echo ... > ...'" in shared.cli("run", "--", "echo", "a", ">", "b").err


def test_one_at_a_time_is_no_refusal(shared):
    shared.write("one.sub", "executable = /bin/sleep\narguments = 600\nmax_materialize = 1\nqueue 2\n")
    request = jobs_of(shared.cli("submit", "one.sub"))
    shared.wait_state(f"{request}.0", "running")
    out = shared.cli("why", request)
    assert f"Of request {request} 1 job may run at once, and 1 does: it waits for one to end.\n" in out and "exclude" not in out
    shared.cli("rm", request)


def test_the_priority_of_a_job_is_shown(shared):
    request = jobs_of(shared.cli("submit", "--hold", "--", "true"))
    shared.cli("prio", request, "-5")
    assert re.search(r"priority +-5\n", shared.cli("show", f"{request}.0"))
    shared.cli("rm", request)


def test_words_of_other_systems(shared):
    """What one is used to works, or says what is meant."""
    for word in ("ps", "status"):
        assert "requests:" in shared.cli(word) or "request:" in shared.cli(word)
    request = jobs_of(shared.cli("submit", "--", "true"))
    shared.cli("wait", request)
    assert shared.cli("logs", request) == shared.cli("tail", request) and "succeeded" in shared.cli("show", request)
    for word, meant in (("sumbit", "submit"), ("qsub", "submit"), ("list", "queue"), ("qdel", "rm"), ("abort", "rm")):
        assert f"did you mean {meant}?" in shared.cli(word, code=2).err, word
        assert f"did you mean {meant}?" in shared.cli("help", word, code=2).err, word


def test_words_and_options_of_other_systems_are_told_what_is_here(shared):
    for words, meant in ((("submit", "--partition", "x", "--", "true"), "--queue"), (("run", "-J", "x", "--", "true"), "--name"),
                         (("submit", "--dependency", "1", "--", "true"), "--after"), (("queue", "--failed"), "--state failed"),
                         (("failed",), "queue --state failed"), (("down",), "Ctrl-C"), (("rm", "all"), "-u USER"), (("wait", "all"), "-u USER"),
                         (("token", "agent", "n1"), "--name n1"), (("agents", "show", "n1"), "drover node show"),
                         (("run", "--cpus", "0", "--", "true"), "--cpus cannot be 0"), (("history", "--failed"), "ExitCode"),
                         (("submit", "--gpus", "-1", "--", "true"), "--gpus cannot be -1"), (("run", "./no such program"), "leave out the quotes")):
        assert meant in shared.cli(*words, code=2).err, words
    out = shared.cli("submit", "--queue", "nosuch", "--", "true")
    assert 'no agent has a queue "nosuch" now' in out.err and jobs_of(out)
    assert "no agent has" not in shared.cli("submit", "--queue", "default", "--", "true").err
    job = jobs_of(shared.cli("submit", "--memory", "4GB", "--time", "1-2:03:04", "--hold", "--", "true"))
    assert f"AllowedExecuteDuration = {(26 * 60 + 3) * 60 + 4}\n" in shared.cli("show", "--ad", f"{job}.0")
    assert "1:30:00" in shared.cli("submit", "--time", "5:00", "--", "true", code=2).err


def test_a_script_is_no_submit_file(shared):
    shared.write("batch.sh", "#!/bin/bash\n#SBATCH --time=5\ntrue\n")
    shared.write("plain.py", "print(1)\n")
    shared.write("submit.it", "#!/usr/bin/env condor_submit\nexecutable = /bin/true\nqueue\n")
    assert "drover submit -- /bin/bash batch.sh`; its #SBATCH lines are for sbatch" in shared.cli("submit", "batch.sh", code=2).err
    shared.write("graph.dag", "JOB A a.sub\n")
    assert "drover dag submit graph.dag" in shared.cli("submit", "graph.dag", code=2).err
    assert "drover submit -- python3 plain.py" in shared.cli("submit", "plain.py", code=2).err
    shared.cli("submit", "submit.it")
    shared.write("odd.sh", "executable = /bin/true\nqueue\n")
    shared.cli("submit", "odd.sh")


def test_nothing_said_is_answered_with_what_is_missing(shared):
    for word in ("show", "tail", "why", "log"):
        assert "missing ID" in shared.cli(word, code=2).err, word
    assert "missing COMMAND" in shared.cli("run", code=2).err
    assert "is not an id" in shared.cli("hold", "everything", code=2).err
    assert "did you mean --memory?" in shared.cli("run", "--memry", "1G", "--", "true", code=2).err
    assert "unexpected argument" in shared.cli("why", "1", "hello", code=2).err


def test_help_has_examples(shared):
    for word in ("submit", "run", "queue", "wait", "tail", "exec", "shell", "edit", "rm"):
        text = shared.cli(word, "--help")
        assert text.startswith(f"drover {word}: ") and f"\n  drover {word}" in text or f"drover {word} " in text, word


def test_the_first_failure_ends_the_waiting(shared):
    request = jobs_of(shared.cli("submit", "--array", "2", "--", "sh", "-c", "[ {} = 1 ] && exit 1; sleep 600"))
    shared.cli("wait", "--fail-fast", "--timeout", "60", request, code=1, timeout=120)
    shared.cli("rm", request)


def test_many_are_removed_by_a_condition(shared):
    request = jobs_of(shared.cli("submit", "--array", "10", "--memory", "900T", "--", "true"))
    assert shared.cli("rm", request, "-c", "ProcId >= 5") == "5 jobs removed\n"
    assert shared.cli("prio", request, "7") == "5 jobs changed\n"
    assert shared.cli("rm", request) == "5 jobs removed\n"


def test_a_graph_of_jobs(shared):
    shared.write("step.sub", "executable = /bin/sh\narguments = \"-c 'echo $(what) >>steps'\"\nqueue\n")
    shared.write("all.dag", "JOB A step.sub\nVARS A what=\"a\"\nJOB B step.sub\nVARS B what=\"b\"\nPARENT A CHILD B\n")
    shared.cli("dag", "submit", "--wait", "all.dag", code=None, timeout=120)
    wait_until(lambda: shared.exists("steps") and shared.read("steps") == "a\nb\n")


def test_ctrl_c_ends_the_waiting_only(shared):
    request = jobs_of(shared.cli("submit", "--memory", "900T", "--", "true"))
    pid, terminal = pty.fork()
    if pid == 0:
        mode = termios.tcgetattr(0)
        mode[3] |= termios.NOFLSH  # else the kernel drops, after the signal, what has been written because of it
        termios.tcsetattr(0, termios.TCSANOW, mode)
        os.execve(shared.program("drover"), ["drover", "wait", request], {**shared.env, "TERM": "dumb"})
    text = b""
    while b"0 of 1" not in text and b"idle" not in text:
        text += os.read(terminal, 4096)
    kept_open = os.open(os.readlink(f"/proc/{pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)  # what is written just before the end stays
    os.write(terminal, b"\x03")
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    shared.cli("rm", request)
    while select.select([terminal], [], [], 1)[0]:
        text += os.read(terminal, 4096)
    os.close(kept_open)
    os.close(terminal)
    assert ended != 0 and f"the jobs go on; drover wait {request}".encode() in text, text


def test_watching_the_queue(shared):
    """The listing is printed again when something has changed, until Ctrl-C."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 60, 80, 0, 0))
        os.execve(shared.program("drover"), ["drover", "queue", "--watch"], {**shared.env, "TERM": "dumb"})
    text = b""
    while b"0 requests" not in text:
        text += os.read(terminal, 4096)
    request = jobs_of(shared.cli("submit", "--name", "seen-by-the-watch", "--memory", "900T", "--", "true"))
    while b"seen-by-the-watch" not in text:
        text += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # nobody has the other end
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    shared.cli("rm", request)


def test_wait_without_an_id_is_for_all_that_is_mine(instance):
    instance.up()
    assert "none of your requests" in instance.cli("wait", timeout=60).err
    for _ in range(2):
        instance.cli("submit", "--hold", "--", "true")
    assert "0 of 2 done, 2 held" in instance.cli("wait", code=3, timeout=60)
    instance.cli("release", "1")
    instance.cli("wait", "1", timeout=60)
    assert "drover release 2 lets it run" in instance.cli("wait", "1", "2", code=3, timeout=60).err, "1 is not held"
    assert "drover release 2.0 lets it run" in instance.cli("wait", "1.0", "2.0", code=3, timeout=60).err
    instance.cli("rm", "2")
    assert "none of your requests" in instance.cli("wait", timeout=60).err


def test_a_command_is_quoted_as_it_is_submitted(shared):
    assert "1 job: no place would take it" in shared.cli("quote", "--cpus", "4000", "--", "sleep", "5")
    shared.cli("run", "--", "true")
    assert "how long it takes is not known yet" in shared.cli("quote", "--", "expr", "5"), "jobs of other programs tell nothing of it"
    assert "it would start now and end now" in shared.cli("quote", "--", "true")
    assert json.loads(shared.cli("quote", "--json", "--array", "7", "--", "sleep", "5"))["jobs"] == 7
    assert "give one FILE, or a command" in shared.cli("quote", "--cpus", "2", "job.sub", code=2).err


def test_an_action_that_changes_nothing_says_so(shared):
    request = jobs_of(shared.cli("submit", "--wait", "--", "true"))
    for words in (("rm", request), ("suspend", request), ("edit", request, "memory=1G")):
        out = shared.cli(*words)
        assert out.startswith("0 jobs ") and f"drover queue {request} shows them" in out.err, words


def test_a_word_that_a_command_does_not_have_is_named(shared):
    assert 'drover dag has no "status": it has submit, import, watch,' in shared.cli("dag", "status", "1", code=2).err
    assert "drover catalog what? It has add, scan," in shared.cli("catalog", code=2).err
    assert 'drover token has no "make": it has agent, user, list and revoke' in shared.cli("token", "make", code=2).err
