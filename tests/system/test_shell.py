"""Commands beside a job's program that read: standard input, a terminal, a shell; and who lies about it."""
import base64
import os
import signal
import subprocess

import pytest

from containers import engine_with_image
from drover import alive, sh, wait_until, with_command_line
from terminal import Terminal
from test_containers import start
from test_exec import running
from users import ONE, Site
from wire import Liar


@pytest.fixture(name="job")
def running_job(drover):
    made = running(drover, "")
    yield made
    drover.write("go", "")
    drover.wait(made)


@pytest.fixture(name="on_a_terminal")
def programs_on_terminals(drover):
    made = []

    def make(*words, **more):
        made.append(Terminal(drover.program("drover"), *words, env={**drover.env, "TERM": "xterm"}, cwd=drover.work, **more))
        return made[-1]

    yield make
    for one in made:
        if one.code is None:
            one.kill(signal.SIGKILL)
            one.end()


def feed(drover, job, data, *command):
    """What the command prints of these bytes, and its exit code."""
    p = subprocess.run([drover.program("drover"), "exec", "-i", job, "--", *command], env=drover.env, input=data, capture_output=True,
                       timeout=120, check=False)
    return p.stdout, p.returncode


def test_what_it_reads(drover, job):
    """Bytes of any kind and number, up to their end; and a command that reads less, or nothing, of them."""
    data = os.urandom(3_000_000)
    assert feed(drover, job, data, "cat") == (data, 0)
    assert feed(drover, job, b"", "wc", "-c") == (b"0\n", 0)
    assert feed(drover, job, data, "head", "-c", "5") == (data[:5], 0)
    assert feed(drover, job, data, "true") == (b"", 0)
    assert feed(drover, job, b"x\n", "sh", "-c", "exec <&-; sleep 0.2; exit 4") == (b"", 4)
    said = drover.cli("exec", job, "--", "cat", stdin="ours\n")
    assert said == "" and "-i" in said.err


def test_a_slow_reader_takes_it_bit_by_bit(drover, job):
    """More than the agent keeps waits at the client; none of it is lost."""
    data = b"0123456789abcdef" * 40_000
    out, code = feed(drover, job, data, "sh", "-c", "for i in 1 2 3; do dd bs=1000 count=1 2>/dev/null; sleep 0.3; done; cat")
    assert (out, code) == (data, 0)


def test_a_terminal(drover, job, on_a_terminal):
    """The command's own, of the size of ours, also when that changes; keys go to it; ours is as it was at the end."""
    t = on_a_terminal("exec", "-t", job, "--", "sh", "-c", "stty size; echo T=$TERM; read word; echo got $word; trap 'stty size' WINCH; "
                      "echo set; while [ ! -e stop ]; do sleep 0.1; done; exit 9", rows=30, columns=90)
    t.shows("30 90\r\n")
    t.shows("T=xterm\r\n")
    assert not t.is_as_before()
    t.type("hello\r")
    t.shows("got hello\r\n")
    t.shows("set\r\n")
    t.resize(40, 120)
    t.shows("40 120\r\n")
    drover.cli("exec", job, "--", "touch", "stop")
    assert t.end() == 9 and t.was_restored
    t = on_a_terminal("exec", "-it", job, "--", "sh", "-c", "echo on; exec sleep 600")
    t.shows("on\r\n")
    t.type("\x03")
    assert t.end() == 128 + signal.SIGINT and t.was_restored
    t = on_a_terminal("exec", "-t", job, "--", "seq", "50000")
    assert t.end() == 0
    assert t.text.replace("\r", "") == "".join(f"{n}\n" for n in range(1, 50001))
    assert drover.job(job)["state"] == "running"


def test_a_shell(drover, job, on_a_terminal):
    t = on_a_terminal("shell", job)
    t.type("echo $DROVER_JOB-$((6*7))\r")
    t.shows(f"{job}-42\r\n")
    t.type("exit 3\r")
    assert t.end() == 3 and t.was_restored
    assert "not a terminal" in drover.cli("shell", job, code=2).err
    assert "not a terminal" in drover.cli("exec", "-t", job, "--", "true", code=2).err


def test_who_goes_away_hangs_up(drover, job, on_a_terminal, long):
    """A signal ends drover exec, and leaves the terminal as it was; the command ends when nobody has asked for a while, also if
    drover exec could not say a word (which takes a minute: in the long form)."""
    for by, code in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL))[:2 if long else 1]:
        name = f"pid-{by}"
        t = on_a_terminal("exec", "-t", job, "--", "sh", "-c", f"trap '' INT; echo $$ >{drover.work}/{name}; echo on; exec sleep 600")
        t.shows("on\r\n")
        t.kill(by)
        assert t.end() == code and (by == signal.SIGKILL or t.was_restored)
        wait_until(lambda: not alive(int(drover.read(name))), 120)
    assert drover.job(job)["state"] == "running"


def test_it_ends_with_its_job(drover, on_a_terminal):
    job = running(drover, "")
    t = on_a_terminal("exec", "-t", job, "--", "sleep", "600")
    wait_until(lambda: not t.is_as_before())
    drover.write("go", "")
    drover.wait(job)
    assert t.end() != 0 and t.was_restored


def test_calls_that_make_no_sense(drover, job):
    """Input out of order, of nobody, too much, of no terminal; a terminal of absurd sizes and types."""
    path = f"/v1/jobs/{job}/exec"
    for terminal in ({"rows": -1}, {"rows": 10**9}, {"type": "../../x"}, {"type": "x" * 100}, {"type": "a\0b"}, {"type": 7}, []):
        assert drover.call("POST", path, {"argv": ["true"], "terminal": terminal})[0] == 400, terminal
    made = drover.api("POST", path, {"argv": ["cat"], "input": True})

    def bring(**body):
        status, answer = drover.call("POST", path + "/input", {"exec": made["exec"], "attempt": made["attempt"], **body})
        return status if status != 200 else (answer["next"], answer["closed"])

    assert bring(offset=5, data=base64.b64encode(b"late").decode()) == (0, False)
    assert bring(offset=0, data=base64.b64encode(b"one").decode()) == (3, False)
    assert bring(offset=0, data=base64.b64encode(b"one two").decode(), rows=5, columns=5) == (7, False)
    assert bring(offset=2**62, data="eHg=") == (7, False)
    assert bring(data="eHg=", offset=-1) == 400 and bring(data="?") == 400 and bring(rows=10**6) == 400
    assert bring(data=base64.b64encode(b"x" * 70000).decode(), offset=7) == 400
    assert bring(exec=made["exec"] + 1) == 404 and bring(attempt=made["attempt"] + 1) == 404 and bring(exec=0) == 400
    assert bring(offset=7, end=True)[0] == 7
    deaf = drover.api("POST", path, {"argv": ["sleep", "0.2"]})
    assert bring(exec=deaf["exec"], offset=0) == 404  # it was started without
    out = wait_until(lambda: (o := drover.api("GET", f"/v1/jobs/{job}/output?exec={made['exec']}&attempt={made['attempt']}"))["over"] and o)
    assert base64.b64decode(out["stdout"]["data"]) == b"one two"


def test_a_job_that_prints_to_the_terminals_of_others(drover, job, on_a_terminal):
    """The command's terminal is its own: what the job's program writes does not come there, nor can two commands be told apart
    by chance."""
    one, two = on_a_terminal("exec", "-t", job, "--", "cat"), on_a_terminal("exec", "-t", job, "--", "cat")
    wait_until(lambda: not one.is_as_before() and not two.is_as_before())
    one.type("first\r")
    one.shows("first\r\nfirst\r\n")
    two.type("second\r")
    two.shows("second\r\nsecond\r\n")
    assert "second" not in one.text and "first" not in two.text
    for t in (one, two):
        t.type("\x04")
        assert t.end() == 0


def test_an_agent_that_lies_about_input(instance):
    """It says that it took more than there is, or less than before, or nothing: drover exec ends when the agent says so."""
    instance.server()
    liar = Liar(instance, "liar", "--owners", "any")
    liar.hello()
    request = instance.submit(sh("true"))
    liar.offer()
    liar.take(request)
    liar.ping()
    asked_for = {}

    def next_input():
        while True:
            kind, message = liar.wire.until("exec_input", "streams_get")
            asked_for[kind] = message
            if kind == "exec_input":
                return message

    with subprocess.Popen([instance.program("drover"), "exec", "-i", f"{request}.0", "--", "cat"], env=instance.env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        asked = liar.wire.until("exec")
        assert asked["input"] and asked["argv"] == ["cat"]
        liar.wire.send(streams={"serial": asked["serial"]})
        p.stdin.write(b"abc")
        p.stdin.flush()
        for said in (0, 2, 2**63):
            brought = next_input()
            assert (brought["data"], brought.get("offset", 0)) == ((b"c", 2) if said > 2 else (b"abc", 0))
            liar.wire.send(streams={"serial": brought["serial"], "input_next": said})
        p.stdin.write(b"def")
        p.stdin.flush()
        brought = next_input()
        assert (brought["data"], brought["offset"]) == (b"def", 3)
        liar.wire.send(streams={"serial": brought["serial"], "unknown": True})
        get = asked_for.get("streams_get") or liar.wire.until("streams_get")
        liar.wire.send(streams={"serial": get["serial"], "over": True, "exit_code": 6})
        p.stdin.close()
        assert p.wait(60) == 6


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_as_the_jobs_user(instance):
    """The terminal works for a user who is not the agent's."""
    site = Site(instance)
    site.agent()
    go = os.path.join(site.home(ONE), "go")
    request = site.submit(ONE, f"touch $DROVER_SCRATCH/on; while [ ! -e {go} ]; do sleep 0.05; done")
    wait_until(lambda: os.path.exists(os.path.join(site.state, "jobs", f"{request}.0.1", "on")))
    instance.wait_state(f"{request}.0", "running")
    t = Terminal(instance.program("drover"), "exec", "-t", f"{request}.0", "--", "sh", "-c", "id -u; tty; echo to-tty >/dev/tty; read x; echo =$x",
                 env=instance.env)
    t.shows(f"{ONE.pw_uid}\r\n")
    t.shows("to-tty\r\n")
    t.type("word\r")
    t.shows("=word\r\n")
    assert t.end() == 0
    assert feed(instance, f"{request}.0", b"abc", "wc", "-c") == (b"3\n", 0)
    site.write(ONE, "go")
    instance.wait(request)


@pytest.mark.parametrize("name", ["podman", "docker"])
def test_in_the_jobs_container(instance, request, name):
    """It sees what the job sees, and only that; what it leaves ends with it; nothing is left of either."""
    with engine_with_image(request.config.drover_tmp, name) as engine:
        start(instance, engine)
        job = instance.submit(f"executable = /bin/sh\narguments = \"-c 'echo inside >/tmp/mine; echo begun >begun; sleep 600'\"\n"
                              f"container_image = {engine.image}\nuniverse = container\nenvironment = \"WORD=jobs\"\nqueue\n")
        instance.wait_state(f"{job}.0", "running")
        wait_until(lambda: "begun" in instance.cli("exec", f"{job}.0", "--", "cat", "begun", code=None), 60)
        assert instance.cli("exec", f"{job}.0", "--", "cat", "/tmp/mine") == "inside\n"
        assert instance.cli("exec", f"{job}.0", "--", "sh", "-c", "echo $WORD; echo e >&2; exit 7", code=7) == "jobs\n"
        assert not os.path.exists("/tmp/mine")
        assert feed(instance, f"{job}.0", b"some\nbytes\n", "wc", "-l") == (b"2\n", 0)
        t = Terminal(instance.program("drover"), "shell", f"{job}.0", env={**instance.env, "TERM": "xterm"})
        t.type("echo $WORD-$((6*7)) $TERM\r")
        t.shows("jobs-42 xterm")
        t.type("sleep 4321 & exit 3\r")
        assert t.end() == 3
        with subprocess.Popen([instance.program("drover"), "exec", f"{job}.0", "--", "sleep", "6789"], env=instance.env) as p:
            wait_until(lambda: with_command_line("sleep", "6789"))
            instance.cli("rm", str(job))
            assert p.wait(60) != 0
        wait_until(lambda: not with_command_line("sleep", "6789") and not with_command_line("sleep", "4321"))
        wait_until(lambda: not engine.names())


def run_of(drover):
    """The request that drover run -t has just submitted, once its job runs."""
    return wait_until(lambda: [j["id"] for j in drover.json("queue", "-j")["jobs"] if j["state"] == "running"])[0].split(".")[0]


def test_drover_run_on_a_terminal(drover, on_a_terminal):
    """The command runs within a job, whose exit code is the command's; Ctrl-C is the command's; nothing is left in the folder."""
    before = sorted(os.listdir(drover.work))
    t = on_a_terminal("run", "-t", "--name", "by-hand", "--", "sh", "-c", "stty size; read x; echo =$x $DROVER_JOB; tty; exit 7")
    t.shows("24 80\r\n")
    request = run_of(drover)
    t.type("word\r")
    t.shows(f"=word {request}.0\r\n/dev/pts/")
    assert t.end() == 7 and t.was_restored
    assert drover.history(int(request))[0]["exit_code"] == 7
    t = on_a_terminal("run", "-t", "--", "sh", "-c", "echo on; exec sleep 600")
    t.shows("on\r\n")
    request = run_of(drover)
    t.type("\x03")
    assert t.end() == 128 + signal.SIGINT and drover.history(int(request))[0]["exit_code"] == 128 + signal.SIGINT
    assert sorted(os.listdir(drover.work)) == before
    for code in (1, 0):
        t = on_a_terminal("run", "-t", "--", "sh", "-c", f"echo last words; exit {code}")
        t.shows("last words")
        assert t.end() == code and drover.history()[0]["exit_code"] == code
    t = on_a_terminal("run", "-t", "--", "./no-such-program")
    assert t.end() == 127 and "no-such-program" in t.text


def test_drover_run_ended_before_the_command_runs(drover, on_a_terminal):
    """A signal removes the job."""
    t = on_a_terminal("run", "-t", "--memory", "900T", "--", "true")
    t.shows("waits for a place")
    t.type("\x03")
    assert t.end() == 128 + signal.SIGINT
    wait_until(lambda: drover.json("queue")["requests"] == [])


@pytest.mark.long
def test_drover_run_on_a_terminal_that_goes_away(drover, on_a_terminal):
    """A client that is killed takes the command with it, and the job ends: after a minute in which nobody asked."""
    t = on_a_terminal("run", "-t", "--", "sleep", "600")
    request = run_of(drover)
    wait_until(lambda: not t.is_as_before())
    t.kill(signal.SIGKILL)
    t.end()
    drover.cli("wait", "--timeout", "120", request, code=1, timeout=150)
    assert drover.history(int(request))[0]["exit_code"] == 129


def test_what_has_no_terminal(drover):
    assert "not a terminal" in drover.cli("run", "-t", "--", "true", code=2).err
    for option in ("--array=2", "--each=*.x", "--input=x", "--output=x"):
        assert "cannot be together" in drover.cli("run", "-t", option, "--", "true", code=2).err
    assert drover.json("queue")["requests"] == []
