"""`drover run`: as if the command ran here."""
import glob
import os
import signal
import subprocess

import pytest

import agents
from drover import LIMIT, free_port, wait_until


@pytest.fixture(name="one")
def one_place(shared):
    return shared


@pytest.fixture(name="far")
def far_place(instance):
    """A server whose only place sees none of the submitter's files."""
    instance.server("--listen", f"127.0.0.1:{free_port()}")
    agents.start(instance, "filesystem_domain: elsewhere.example\ncpus: 2\n", "far")
    wait_until(lambda: instance.agents("connected"))
    return instance


@pytest.fixture(name="start")
def starts():
    """Starts `drover run` beside the test."""
    begun = []

    def start(instance, *args):
        begun.append(subprocess.Popen([instance.program("drover"), "run", *args], cwd=instance.work, env=instance.env, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)))  # ignored in the background
        return begun[-1]

    yield start
    for p in begun:
        if p.poll() is None:
            p.kill()
            p.wait()
        p.stdout.close()
        p.stderr.close()


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def left(instance):
    return glob.glob(os.path.join(glob.escape(instance.work), ".drover-run*"))


def running(instance, name):
    """The one job of the request with this name, once its program has said so in a file of that name."""
    wait_until(lambda: instance.written(name))
    return [r for r in instance.json("queue")["requests"] if r["batch"] == name][0]["id"]


def state(instance, request):
    return instance.json("queue", "--all", f"{request}.0")["jobs"][0]["state"]


def test_streams_and_exit_code(one):
    done = one.cli("run", "--", "sh", "-c", "echo out; echo err >&2; exit 7", code=7)
    assert (done.out, done.err) == ("out\n", "err\n")
    assert one.cli("run", "sh", "-c", "kill -KILL $$", code=128 + signal.SIGKILL).out == ""
    assert one.cli("run", "true").out == ""
    assert one.cli("run", "--cpus", "1", "echo", "--cpus", "-x").out == "--cpus -x\n", "the first word ends the options"
    assert not left(one)


def test_bytes_arrive_as_they_are_written(one):
    """More than the agent answers at once, and more than it keeps, also of a job that has ended before anybody asks."""
    script = "import os, sys; os.write(1, bytes(range(256)) * 4000); os.write(2, b'end')"
    done = subprocess.run([one.program("drover"), "run", "--", "python3", "-c", script], cwd=one.work, env=one.env, check=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=90)
    assert done.stdout == bytes(range(256)) * 4000 and done.stderr == b"end"


def test_lines_are_shown_while_it_runs(one, start):
    """The second line is written only when the test has seen the first."""
    one.write("gate", "")
    p = start(one, "--", "sh", "-c", "echo first; while [ -e gate ]; do sleep 0.05; done; echo second")
    assert p.stdout.readline() == "first\n"
    os.unlink(os.path.join(one.work, "gate"))
    assert p.communicate(timeout=90) == ("second\n", "") and p.returncode == 0


def test_it_runs_in_this_folder_with_standard_input(one):
    one.write("sub/data", "from a file\n")
    with open(os.path.join(one.work, "sub/data"), encoding="utf-8") as f:
        done = subprocess.run([one.program("drover"), "run", "--", "sh", "-c", "cat; cat data; echo x >made"], cwd=os.path.join(one.work, "sub"),
                              env=one.env, check=True, stdin=f, capture_output=True, text=True, timeout=90)
    assert done.stdout == "from a file\nfrom a file\n" and one.read("sub/made") == "x\n"
    assert one.cli("run", "--input", "-", "--", "cat", stdin="from a pipe\n").out == "from a pipe\n"
    assert one.cli("run", "--input", "sub/data", "--", "cat").out == "from a file\n"
    assert one.cli("run", "cat", stdin="lost\n").out == ""
    assert not left(one) and os.listdir(os.path.join(one.work, "sub")) in (["data", "made"], ["made", "data"])


def test_streams_with_files_of_their_own(one):
    done = one.cli("run", "--output", "kept.out", "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.out, done.err) == ("", "err\n") and one.read("kept.out") == "out\n"
    done = one.cli("run", "--output", "both", "--error", "both.err", "--", "sh", "-c", "echo out; echo err >&2; exit 3", code=3)
    assert (done.out, done.err) == ("", "") and one.read("both.err") == "err\n"


def test_several_jobs_are_printed_in_their_order(one, start):
    one.write("waits", "")
    p = start(one, "--array", "3", "--", "sh", "-c", "echo a{}; [ {} != 0 ] || while [ -e waits ]; do sleep 0.05; done; echo b{}; exit {}")
    assert p.stdout.readline() == "a0\n"
    os.unlink(os.path.join(one.work, "waits"))
    out, err = p.communicate(timeout=90)
    assert out == "b0\na1\nb1\na2\nb2\n" and p.returncode == 1, err
    assert not left(one)


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "USR1"])
def test_signals_are_passed_on(one, start, name):
    """To the program, which ends by it in its own way."""
    number = getattr(signal, f"SIG{name}")
    p = start(one, "--name", f"on-{name}", "--", "sh", "-c", f"trap 'echo got; exit 9' {name}; echo >on-{name}; while :; do sleep 0.05; done")
    running(one, f"on-{name}")
    p.send_signal(number)
    out, err = p.communicate(timeout=90)
    assert (out, p.returncode) == ("got\n", 9), err


def test_a_second_signal_removes_the_job(one, start):
    p = start(one, "--name", "deaf", "--", "sh", "-c", "trap '' TERM; trap 'echo again >again' INT; echo >deaf; while :; do sleep 0.05; done")
    request = running(one, "deaf")
    p.send_signal(signal.SIGINT)
    wait_until(lambda: one.written("again"))
    assert p.poll() is None
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=90)
    assert p.returncode == 128 + signal.SIGINT and "was removed" in err
    assert state(one, request) == "removed" and not left(one)


def test_a_signal_before_it_runs_removes_it(one, start):
    p = start(one, "--name", "never", "--memory", "900T", "--", "true")
    wait_until(lambda: any(r["batch"] == "never" for r in one.json("queue")["requests"]))
    wait_until(lambda: read(f"/proc/{p.pid}/task/{p.pid}/children"))  # then it waits for signals
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=90)
    assert p.returncode == 128 + signal.SIGINT and "was removed" in err


def test_removed_and_held(one, start):
    p = start(one, "--name", "gone", "--", "sh", "-c", "echo >gone; sleep 600")
    one.cli("rm", str(running(one, "gone")))
    _, err = p.communicate(timeout=90)
    assert p.returncode == 125 and "was removed" in err
    done = one.cli("run", "--output", "/proc/no/such", "--", "echo", "x", code=125)
    assert "is held: cannot write the output /proc/no/such" in done.err and "drover release" in done.err


def test_who_is_killed_leaves_the_job(one, start):
    """And what it prints, in hidden files."""
    p = start(one, "--name", "on", "--", "sh", "-c", "echo >on; while [ -e on ]; do sleep 0.05; done; echo after")
    request = running(one, "on")
    p.kill()
    p.wait()
    os.unlink(os.path.join(one.work, "on"))
    one.wait(request)
    files = left(one)
    assert sorted(read(f) for f in files) == ["", "after\n"]
    for f in files:
        os.unlink(f)


def test_nobody_reads_it(one):
    """As in `yes | head -1`: the job does not go on."""
    p = subprocess.run(f"{one.program('drover')} run --name endless -- yes | head -1", shell=True, cwd=one.work, env=one.env, check=True,
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
    assert p.stdout == "y\n"
    wait_until(lambda: not any(r["batch"] == "endless" for r in one.json("queue")["requests"]))
    assert not left(one)


def test_the_server_is_killed_meanwhile(instance, start):
    instance.server()
    agents.start(instance, "cpus: 2\n")
    p = start(instance, "--", "sh", "-c", "echo >begun; while [ -e begun ]; do sleep 0.05; done; echo good; exit 4")
    wait_until(lambda: instance.written("begun"))
    instance.kill_server()
    instance.server()
    os.unlink(os.path.join(instance.work, "begun"))
    out, err = p.communicate(timeout=90)
    assert (out, p.returncode) == ("good\n", 4), err
    assert "waiting for it to come back" in err


def test_it_is_refused_meanwhile(instance, start):
    """A token that ends while a job runs is none that the server takes again: the job goes on, and this says why it is not followed."""
    port = free_port()
    instance.up("--api-listen", f"127.0.0.1:{port}")
    token = instance.json("token", "user")
    instance.env.update(DROVER_SERVER=f"https://127.0.0.1:{port}", DROVER_TOKEN=token["token"], DROVER_DIR="")
    p = start(instance, "--name", "followed", "sh", "-c", "echo yes >followed; while ! [ -e go ]; do sleep 0.1; done; echo yes >done")
    wait_until(lambda: instance.written("followed"))
    instance.api("DELETE", f"/v1/tokens/{token['id']}")
    _, err = p.communicate(timeout=LIMIT)
    assert p.returncode == 125 and "is not followed any more: " in err and "token is not valid" in err
    instance.write("go", "")
    wait_until(lambda: instance.written("done"))


def test_what_cannot_be_meant_is_said(one):
    assert "missing COMMAND" in one.cli("run", code=2).err
    assert "no program no-such-program in the PATH" in one.cli("run", "no-such-program", code=2).err
    assert "quote the pattern" in one.cli("run", "--each", "a", "b", "--", "true", code=2).err
    assert one.cli("run", "--print", "--", "true").out.startswith("executable = ")


def test_without_a_server(instance):
    assert "drover up" in instance.cli("run", "true", code=125).err


def test_a_far_place(far):
    """It does not see the folder; what it prints comes by the server all the same, live and to the last byte."""
    far.write("say.sh", "#!/bin/sh\ncat $1; seq 100000; exit 3\n", 0o755)
    far.write("in.txt", "sent\n")
    done = far.cli("run", "./say.sh", "in.txt", code=3)
    assert done.out == "sent\n" + "".join(f"{n}\n" for n in range(1, 100001)), done.err
    assert far.cli("run", "--input", "-", "--", "cat", stdin="piped\n").out == "piped\n"
    assert not left(far)
