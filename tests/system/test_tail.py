"""What a job prints can be read while it runs, by its owner, as it is printed."""
import base64
import os
import sqlite3
import subprocess
import threading

import pytest

import agents
from drover import UnixConnection, sh, wait_until
from users import ONE, TWO, Site
from wire import Liar

NAMES = ("stdout", "stderr")


class Follower:
    """Asks for what a job prints, as the last answer says."""

    def __init__(self, instance, job, **first):
        self.instance, self.job = instance, job
        self.text, self.gaps = {name: b"" for name in NAMES}, 0
        self.attempt, self.next, self.first, self.answer, self.calls = 0, {name: 0 for name in NAMES}, first, None, 0

    def ask(self, timeout_ms=20000):
        query = {"timeout_ms": timeout_ms, "attempt": self.attempt, **self.next, **self.first}
        self.first = {}
        path = f"/v1/jobs/{self.job}/output?" + "&".join(f"{k}={v}" for k, v in query.items())
        self.answer = self.instance.api("GET", path, timeout=90)
        self.calls += 1
        for name in NAMES:
            if name not in self.answer:
                continue
            part, data = self.answer[name], base64.b64decode(self.answer[name]["data"])
            assert part["next"] == part["offset"] + len(data) and len(data) <= 65536
            if self.answer["attempt"] == self.attempt:
                self.gaps += part["offset"] - self.next[name]
            self.text[name] += data
            self.next[name] = part["next"]
        self.attempt = self.answer["attempt"]
        return self.answer

    def until(self, what):
        while not what():
            assert not (self.answer and self.answer["ended"] and self.answer["over"]), self.text
            self.ask()

    def all(self):
        while not (self.answer and self.answer["ended"] and self.answer["over"]):
            self.ask()
        return self


def go_on(instance, name="go"):
    return f"while [ ! -e {os.path.join(instance.work, name)} ]; do sleep 0.02; done; "


@pytest.mark.parametrize("named", [True, False], ids=["named", "not named"])
def test_a_line_is_shown_while_its_job_runs(drover, named):
    """Both streams, whether the job names files for them or not; what is not named is left nowhere."""
    where = {"output": "out.txt", "error": "err.txt"} if named else {}
    request = drover.submit(sh("echo first; " + go_on(drover) + "echo second >&2; " + go_on(drover, "end") + "echo third; exit 3",
                               **where))
    f = Follower(drover, f"{request}.0")
    f.until(lambda: f.text["stdout"] == b"first\n")
    assert f.answer["state"] in ("matched", "staging", "running") and not f.answer["over"] and f.text["stderr"] == b""
    drover.write("go", "")
    f.until(lambda: f.text["stderr"] == b"second\n")
    assert not f.answer["ended"]
    drover.write("end", "")
    f.all()
    assert f.text == {"stdout": b"first\nthird\n", "stderr": b"second\n"} and f.gaps == 0
    assert (f.answer["state"], f.answer["exit_code"], f.answer["exit_signal"]) == ("completed", 3, None)
    if named:
        assert drover.read("out.txt") == "first\nthird\n" and drover.read("err.txt") == "second\n"
    else:
        assert sorted(os.listdir(drover.work)) == ["end", "go"]
    wait_until(lambda: not os.listdir(os.path.join(drover.dir, "agent", "jobs")))


def test_one_stream_and_its_end_only(drover):
    request = drover.submit(sh("echo 0123456789; echo error >&2; " + go_on(drover)))
    f = Follower(drover, f"{request}.0", last=4, stream="stdout")
    whole = Follower(drover, f"{request}.0")
    whole.until(lambda: whole.text["stdout"] and whole.text["stderr"])
    f.ask()
    assert f.text["stdout"] == b"789\n" and f.answer["stdout"]["offset"] == 7 and "stderr" not in f.answer
    drover.write("go", "")
    assert drover.call("GET", f"/v1/jobs/{request}.0/output?stream=stdin")[0] == 400
    assert drover.call("GET", f"/v1/jobs/{request}.1/output")[0] == 404
    assert drover.call("GET", "/v1/jobs/99.0/output")[0] == 404


def test_more_than_its_follower_takes_at_once(drover):
    """Who comes late has all of it too, byte by byte, also when the job has long ended and its file was delivered."""
    lines = 700000  # 4.7 MB
    request = drover.submit(sh(f"echo begin; {go_on(drover)} seq {lines}", output="out.txt", request_disk="100 MB"))
    f = Follower(drover, f"{request}.0")
    f.until(lambda: f.text["stdout"] == b"begin\n")
    drover.write("go", "")
    f.ask()
    drover.wait(request)
    os.unlink(os.path.join(drover.work, "out.txt"))
    f.all()
    assert f.gaps == 0 and f.text["stdout"] == b"begin\n" + b"".join(b"%d\n" % n for n in range(1, lines + 1))


def test_who_follows_from_before_its_start(drover):
    """Through an attempt that is put back, whose output is another one."""
    request = drover.submit(sh('echo "start $(cat count 2>/dev/null)"; ' + go_on(drover), hold="true"))
    f = Follower(drover, f"{request}.0")
    assert f.ask(timeout_ms=0)["state"] == "held" and f.attempt == 0
    seen = threading.Thread(target=f.until, args=(lambda: f.text["stdout"],))
    seen.start()
    drover.cli("release", str(request))
    seen.join(60)
    assert f.text["stdout"] == b"start \n" and f.attempt == 1
    drover.api("POST", "/v1/actions", {"action": "vacate", "ids": [str(request)]})
    f.until(lambda: f.attempt > 1 and f.text["stdout"] == b"start \nstart \n")
    drover.write("go", "")
    f.all()


def test_an_agent_and_a_server_that_are_killed(instance):
    """The follower goes on where it was."""
    instance.server()
    token = instance.json("token", "agent", "--name", "n1")["token"]
    start = lambda: instance.start("drover-agent", "--dir", os.path.join(instance.base, "n1"), "--token", token, "--name", "n1",  # noqa: E731
                                   "--server", instance.server_json()["agents"][0])
    agent = start()
    wait_until(lambda: instance.agents("connected"))
    request = instance.submit(sh("echo one; " + go_on(instance, "two") + "echo two; " + go_on(instance, "three") + "echo three; "
                                 + go_on(instance, "end")))
    f = Follower(instance, f"{request}.0")
    f.until(lambda: f.text["stdout"] == b"one\n")
    agent.kill()
    instance.write("two", "")
    start()
    f.until(lambda: f.text["stdout"] == b"one\ntwo\n")
    instance.kill_server()
    instance.write("three", "")
    instance.server()
    f.until(lambda: f.text["stdout"] == b"one\ntwo\nthree\n")
    assert f.gaps == 0 and f.attempt == 1
    instance.write("end", "")
    f.all()


@pytest.mark.parametrize("put", ["ln -s {secret} {file}", "mkfifo {file}", "mkdir {file}", "ln -s /dev/zero {file}"])
def test_what_a_job_puts_in_the_place_of_its_output(drover, put):
    """Nothing of it is read, and nobody waits for it."""
    secret = drover.write("secret", "nobody's business")
    change = put.format(secret=secret, file=".drover_out.0")
    request = drover.submit(sh(f"rm -f .drover_out.0; {change}; touch {drover.work}/put; {go_on(drover)}"))
    wait_until(lambda: drover.exists("put"))
    f = Follower(drover, f"{request}.0")
    f.ask(timeout_ms=300)
    assert f.text["stdout"] == b"" and f.answer["attempt"] == 1
    drover.write("go", "")
    assert f.all().text["stdout"] == b""


def test_an_agent_that_lies_about_what_it_was_asked(instance):
    """Bytes in front of those that were asked for, too many of them, of a stream that nobody asked for, for another agent."""
    instance.server()
    honest, other = (Liar(instance, name, "--owners", "any") for name in ("honest", "other"))
    honest.hello()
    other.hello()
    request = instance.submit(sh("true"))
    honest.offer()
    attempt = honest.take(request)[0]
    honest.ping()
    f = Follower(instance, f"{request}.0", stdout=1000, attempt=attempt["fence"], stream="stdout")
    f.attempt, f.next["stdout"] = attempt["fence"], 1000
    asking = threading.Thread(target=f.ask)
    asking.start()
    question = honest.wire.until("streams_get")
    assert question["stdout_offset"] == 1000 and question.get("stderr_wanted", False) is False
    other.wire.send(streams={"serial": question["serial"], "stdout_bytes": b"of another"})
    other.ping()
    honest.wire.send(streams={"serial": question["serial"] + 1, "stdout_bytes": b"to no question"})
    honest.wire.send(streams={"serial": question["serial"], "stdout_bytes": b"x" * 1000000, "stderr_bytes": b"y" * 1000000,
                              "stdout_offset": 3, "stderr_offset": 2**64 - 1})
    asking.join(60)
    assert f.answer["stdout"]["offset"] == 1000 and f.text["stdout"] == b"x" * 65536 and "stderr" not in f.answer
    honest.wire.send(streams={"serial": question["serial"], "stdout_bytes": b"once more"})
    honest.ping()
    asking = threading.Thread(target=f.ask)
    asking.start()
    question = honest.wire.until("streams_get")
    honest.wire.send(streams={"serial": question["serial"], "unknown": True})
    question = honest.wire.until("streams_get")
    honest.wire.send(streams={"serial": question["serial"], "stdout_bytes": b"behind a gap", "stdout_offset": 2**63})
    asking.join(60)
    assert f.text["stdout"].endswith(b"xbehind a gap") and f.next["stdout"] > 1000 + 65536


def test_followers_that_go_away(drover):
    """What was asked for them is forgotten, and others have their answers."""
    request = drover.submit(sh("echo here; " + go_on(drover)))
    Follower(drover, f"{request}.0").until(lambda: True)
    left = []
    for _ in range(300):
        c = UnixConnection(drover.socket_path(), 30)
        c.request("GET", f"/v1/jobs/{request}.0/output?timeout_ms=3000&stdout=5&attempt=1")
        left.append(c)
    for c in left:
        c.close()
    f = Follower(drover, f"{request}.0")
    f.until(lambda: f.text["stdout"] == b"here\n")
    drover.write("go", "")
    f.all()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_jobs_of_other_users(instance):
    """The agent, which is neither root nor the job's user, reads what they print, and nothing that they put in its place."""
    site = Site(instance)
    site.agent()
    secret = os.path.join(site.home(TWO), "secret")
    site.write(TWO, "secret", "of two\n")
    go = os.path.join(site.home(ONE), "go")
    wait = f"while [ ! -e {go} ]; do sleep 0.02; done"
    for out in ("out", ""):
        request = site.submit(ONE, f"echo mine; {wait}", Out=out)
        f = Follower(instance, f"{request}.0")
        f.until(lambda f=f: f.text["stdout"] == b"mine\n")
        site.write(ONE, "go")
        f.all()
        os.unlink(go)
    request = site.submit(ONE, f"rm .drover_out.0; ln -s {secret} .drover_out.0; touch ready; {wait}", Out="")
    sandbox = os.path.join(site.state, "jobs", f"{request}.0.1")
    wait_until(lambda: os.path.exists(os.path.join(sandbox, "ready")))
    f = Follower(instance, f"{request}.0")
    f.ask(timeout_ms=300)
    assert f.text["stdout"] == b""
    site.write(ONE, "go")
    f.all()


def blocks_of(folder):
    """Bytes that the files of a sandbox take on the disk."""
    return sum(os.lstat(os.path.join(folder, name)).st_blocks * 512 for name in os.listdir(folder))


def test_a_gigabyte_that_goes_nowhere_fills_no_disk(drover):
    """Of a stream without a name only the end stays on the disk while its job runs, and does not count as the job's."""
    request = drover.submit(sh("head -c 1000000000 /dev/zero; echo tail; touch $DROVER_SCRATCH/all; " + go_on(drover)))
    sandbox = os.path.join(drover.dir, "agent", "jobs", f"{request}.0.1")
    wait_until(lambda: os.path.exists(os.path.join(sandbox, "all")), 120)
    wait_until(lambda: blocks_of(sandbox) < 20 << 20)
    assert drover.cli("tail", "-n", "1", str(request)).endswith("\0tail\n")
    late = Follower(drover, f"{request}.0")
    late.until(lambda: late.text["stdout"].endswith(b"tail\n"))
    assert late.gaps == 0 and late.next["stdout"] == 1000000005 and len(late.text["stdout"]) < 20 << 20
    drover.write("go", "")
    drover.wait(request)
    assert printed(drover, f"{request}.0").text["stdout"] == b"\0" * 65531 + b"tail\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_another_users_gigabyte(instance):
    site = Site(instance)
    site.agent()
    go = os.path.join(site.home(ONE), "go")
    request = site.submit(ONE, f"head -c 300000000 /dev/zero; touch all; while [ ! -e {go} ]; do sleep 0.05; done", Out="")
    sandbox = os.path.join(site.state, "jobs", f"{request}.0.1")
    wait_until(lambda: os.path.exists(os.path.join(sandbox, "all")), 120)
    wait_until(lambda: blocks_of(sandbox) < 20 << 20)
    site.write(ONE, "go")
    instance.wait(request)


# ---- when it is over


def printed(instance, job, **first):
    """What the server keeps of a job that has ended, asked for once."""
    f = Follower(instance, job, **first)
    f.ask(timeout_ms=0)
    return f


def test_the_end_is_kept(drover):
    """The last 64 KiB of each stream, also through a restart and of jobs of which the server has only the history."""
    request = drover.submit(sh("seq 100000; echo oops >&2; exit 4", request_disk="10 MB"))
    drover.wait(request, code=1)
    whole = b"".join(b"%d\n" % n for n in range(1, 100001))
    for again in (False, True):
        f = printed(drover, f"{request}.0")
        assert f.answer["ended"] and f.answer["over"] and f.answer["exit_code"] == 4
        assert f.text == {"stdout": whole[-65536:], "stderr": b"oops\n"}
        assert f.answer["stdout"]["offset"] == len(whole) - 65536
        last = printed(drover, f"{request}.0", last=7)
        assert last.text == {"stdout": b"100000\n", "stderr": b"oops\n"} and last.answer["stdout"]["offset"] == len(whole) - 7
        if not again:
            drover.stop()
            drover.up()


def test_jobs_that_print_nothing_are_nothing_to_the_store(drover):
    request = drover.run("executable = /bin/true\nqueue 50\n")
    assert printed(drover, f"{request}.7").text == {"stdout": b"", "stderr": b""}
    drover.stop()
    assert names_of_tails(drover) == []


def names_of_tails(instance):
    with sqlite3.connect(os.path.join(instance.dir, "drover.db")) as db:
        return [name for name, in db.execute(
            "SELECT CAST(name AS TEXT) AS text FROM blob WHERE text LIKE 'tail/%' ORDER BY text")]


def test_the_last_attempt_is_what_is_kept(drover):
    """Of a job that is held after it has failed, and of its next attempt then."""
    request = drover.submit(sh(f"if [ -e {drover.work}/go ]; then echo good; else echo bad; exit 1; fi", on_exit_hold="ExitCode =!= 0"))
    drover.wait_state(f"{request}.0", "held")
    f = printed(drover, f"{request}.0")
    assert f.text["stdout"] == b"bad\n" and f.answer["state"] == "held" and f.answer["over"] and not f.answer["ended"]
    drover.write("go", "")
    drover.cli("release", str(request))
    assert f.all().text["stdout"] == b"bad\ngood\n" and f.attempt > 1
    assert printed(drover, f"{request}.0").text["stdout"] == b"good\n"
    drover.stop()
    assert len(names_of_tails(drover)) == 1


def settings(instance, text):
    path = instance.write("droverd.yaml", text)
    return ["--config", path]


def start(instance, text=""):
    instance.server(*settings(instance, text))
    agents.start(instance, "queues:\n  - name: q\n    cpus: 4\n")
    wait_until(lambda: instance.agents("connected"))


def test_it_goes_with_the_history(instance):
    start(instance, "keep:\n  history_jobs: 1000\n")
    first = instance.run(sh("echo kept; echo also >&2", queue="queue 2"))
    assert printed(instance, f"{first}.1").text["stdout"] == b"kept\n"
    instance.run("executable = /bin/true\nqueue 2000\n", seconds=300)
    wait_until(lambda: instance.call("GET", f"/v1/jobs/{first}.1/output")[0] == 404, 90)
    instance.stop()
    assert names_of_tails(instance) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_who_prints_most_loses_first(instance):
    """Much that one user prints takes the place of what the same user has printed, not of another one's line."""
    site = Site(instance, "keep:\n  printed: 300K\n")
    site.agent()
    little = site.run(TWO, "echo little")
    much = [site.run(ONE, "seq 20000") for _ in range(8)]
    kept = [bool(printed(instance, f"{r}.0").text["stdout"]) for r in much]
    assert printed(instance, f"{little}.0").text["stdout"] == b"little\n"
    assert kept == [False] * 4 + [True] * 4
    instance.stop()
    assert len(names_of_tails(instance)) == 5


def test_nothing_is_kept_where_the_settings_say_so(instance):
    start(instance, "keep:\n  printed: 0\n")
    request = instance.run(sh("echo line"))
    assert printed(instance, f"{request}.0").text["stdout"] == b""
    instance.stop()
    assert names_of_tails(instance) == []


def test_what_an_agent_says_that_jobs_have_printed(instance):
    """More than there may be, sizes that cannot be, of a job that is another agent's, of an attempt that is over."""
    instance.server()
    honest, other = (Liar(instance, name, "--owners", "any") for name in ("honest", "other"))
    honest.hello()
    other.hello()
    request = instance.submit(sh("true", queue="queue 3"))
    honest.offer()
    attempts = honest.take(request, 3)
    honest.ping()
    other.wire.send(result={"jobs": [{**attempts[0], "steps": [{"exit_code": 0}], "stdout_tail": b"forged"}]})
    other.ping()
    honest.wire.send(result={"jobs": [
        {**attempts[0], "steps": [{"exit_code": 0}], "stdout_tail": b"x" * 200000 + b"end", "stdout_size": 5, "stderr_size": 77},
        {**attempts[1], "steps": [{"exit_code": 0}], "stdout_tail": b"y", "stdout_size": 2**64 - 1}]})
    honest.wire.until("result_ack")
    wait_until(lambda: instance.job(f"{request}.1")["state"] == "completed")
    f = printed(instance, f"{request}.0")
    assert f.text == {"stdout": b"x" * 65533 + b"end", "stderr": b""} and f.answer["stdout"]["next"] == 200003
    assert printed(instance, f"{request}.1").text["stdout"] == b"y"
    honest.wire.send(result={"jobs": [{**attempts[1], "steps": [{"exit_code": 0}], "stdout_tail": b"later"}]})
    honest.ping()
    assert printed(instance, f"{request}.1").text["stdout"] == b"y"


def test_an_agent_that_is_killed_before_its_result_is_taken(instance):
    """What was printed comes with the result that the journal has."""
    instance.server()
    config = "queues:\n  - name: q\n    cpus: 4\n"
    agent = agents.start(instance, config)
    wait_until(lambda: instance.agents("connected"))
    request = instance.submit(sh(go_on(instance) + "echo printed", output="out.txt"))
    instance.wait_state(f"{request}.0", "running")
    instance.kill_server()
    instance.write("go", "")
    wait_until(lambda: instance.written("out.txt"))
    journal = os.path.join(instance.base, "n1", "journal")
    wait_until(lambda: b"printed\n" in open(journal, "rb").read())  # pylint: disable=consider-using-with
    agent.kill()
    instance.server()
    agents.start(instance, config)
    instance.wait(request)
    assert printed(instance, f"{request}.0").text["stdout"] == b"printed\n"


# ---- the command


def test_tail(drover):
    """Its last lines; what it prints from then on; its errors; byte by byte as it wrote it."""
    request = drover.submit(sh("seq 20; echo warning >&2; " + go_on(drover) + r"printf '\033]0;title\007raw\n'; exit 1"))
    job = f"{request}.0"
    Follower(drover, job).until(lambda: True)
    wait_until(lambda: drover.cli("tail", str(request)) == "".join(f"{n}\n" for n in range(11, 21)))
    assert drover.cli("tail", "-n", "2", job) == "19\n20\n" and drover.cli("tail", "-n", "0", job) == ""
    assert drover.cli("tail", "--all", job) == "".join(f"{n}\n" for n in range(1, 21))
    assert drover.cli("tail", "--stderr", job) == "warning\n"
    with subprocess.Popen([drover.program("drover"), "tail", "-f", "-n", "1", job], env=drover.env, stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"20\n"
        drover.write("go", "")
        assert p.stdout.read() == b"\033]0;title\007raw\n" and p.wait(60) == 0
    assert drover.cli("tail", "-n", "1", job) == "\033]0;title\007raw\n"
    assert "no job" in drover.cli("tail", f"{request}.5", code=2).err
    many = drover.submit(sh("[ $(Process) = 1 ] || sleep 0.3; echo $(Process)", queue="queue 2"))
    drover.wait(many)
    assert "has 2 jobs" in drover.cli("tail", "-f", str(many), code=2).err
    assert drover.cli("tail", str(many)) == f"==> {many}.0 <==\n0\n\n==> {many}.1 <==\n1\n"


def test_tail_of_one_that_is_held_and_of_a_server_that_goes_away(instance):
    instance.server()
    agents.start(instance, "queues:\n  - name: q\n    cpus: 4\n")
    request = instance.submit(sh("echo at last; " + go_on(instance) + "echo end", hold="true"))
    with subprocess.Popen([instance.program("drover"), "tail", "-f", str(request)], env=instance.env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        assert b"is held" in p.stderr.readline()
        instance.cli("release", str(request))
        assert p.stdout.readline() == b"at last\n"
        instance.kill_server()
        assert b"went away" in p.stderr.readline()
        instance.server()
        instance.write("go", "")
        assert p.stdout.read() == b"end\n" and p.wait(60) == 0


def test_show_and_wait_tell_what_it_has_printed(drover):
    """Its last lines, in a terminal's words only; of jobs that have failed the errors, of a few of them."""
    evil = r"printf 'good\nbad \033[2J\033]0;title\007 \302\2331m\r\n' >&2"
    request = drover.submit(sh(f"seq 30; {evil}; exit 7"))
    waited = drover.cli("wait", str(request), code=1)
    assert waited.err.splitlines()[-3:] == [f"{request}.0 exit 7", "    good", "    bad ?[2J?]0;title? ?1m?"]
    assert waited.out == "1 job: 0 succeeded, 1 failed, 0 removed\n"
    for name in (str(request), f"{request}.0"):
        shown = drover.cli("show", name)
        assert "\nstdout:\n  21\n" in shown and "\n  30\nstderr:\n  good\n  bad ?[2J?]0;title? ?1m?\n" in shown
        assert "\033" not in shown and "stdout:" not in drover.cli("show", "--ad", name)
    silent = drover.run("executable = /bin/true\nqueue\n")
    assert "stdout:" not in drover.cli("show", f"{silent}.0")
    many = drover.submit(sh("echo only output $1; exit 1", queue="queue 5"))
    waited = drover.cli("wait", str(many), code=1)
    assert waited.err.count("    only output\n") == 3 and f"and 2 more: drover queue --state failed {many}\n" in waited.err
    assert "only output" not in drover.cli("wait", "-q", str(many), code=1).err
    assert "only output" not in drover.cli("wait", "--json", str(many), code=1).err
