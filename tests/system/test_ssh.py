"""Batch queues whose commands are run at a login node over SSH: a real sshd, a real Slurm, a real Grid Engine. Nothing of Drover is there."""
import contextlib
import os
import signal

import pytest

import agents
from drover import processes, sh, wait_until
from login_node import LoginNode

pytest_plugins = ["batch_systems"]


class Through:
    """A batch system by way of a login node."""

    def __init__(self, system, node):
        self.name, self.runner, self.settings, self.jobs = system.name, system.runner, node.settings(system), system.jobs


@pytest.fixture
def login(instance):
    node = LoginNode(os.path.join(instance.base, "login"))
    node.wait()
    yield node
    node.stop()


def begin(instance, login, system, more=""):
    way = Through(system, login)
    instance.config = agents.batch_queues(way) + more
    if not os.path.exists(instance.dir):
        instance.server()
    instance.agent = agents.start(instance, instance.config, name="n")
    agents.offering(instance, system.name)
    return way


def brought(instance, request, code=0):
    """Waits for it, and takes its outputs home."""
    instance.wait(request, code=code)
    instance.cli("get", str(request))


def travelling(script, **more):
    return sh(script, should_transfer_files="YES", **more)


@pytest.mark.parametrize("kind", ["alpha", "grid"])
def test_files_go_there_and_come_back(instance, login, request, kind):
    system = request.getfixturevalue(kind)
    begin(instance, login, system)
    instance.write("in.txt", "data\n")
    many = instance.submit(travelling("cat in.txt >out.$(Process); pwd; echo said >&2; exit $(Process)", transfer_input_files="in.txt",
                                      output="o.$(Process)", error="e.$(Process)", queue="queue 3"))
    brought(instance, many, code=1)
    for n in range(3):
        assert instance.read(f"out.{n}") == "data\n" and instance.read(f"e.{n}") == "said\n"
        assert instance.read(f"o.{n}").startswith(login.folder + "/")
    assert sorted(j["exit_code"] for j in instance.history(many)) == [0, 1, 2]
    wait_until(lambda: not login.left())
    # One connection for all of it: that of the test, and the agent's.
    with open(os.path.join(login.folder, "..", "server.log"), encoding="utf-8", errors="replace") as f:
        assert f.read().count("Accepted publickey") <= 3


def test_programs_and_steps_are_the_jobs_own(instance, login, alpha):
    """The program travels, too; a job whose program is not there is held with the reason."""
    begin(instance, login, alpha)
    instance.write("tool", "#!/bin/sh\necho tool $1 from ${0%/*}\n", 0o755)
    job = instance.submit("executable = tool\narguments = seven\noutput = out\nshould_transfer_files = YES\nrequest_memory = 32 MB\nqueue\n")
    brought(instance, job)
    assert instance.read("out").startswith("tool seven from ")
    missing = instance.submit("executable = /no/such/program\nshould_transfer_files = YES\ntransfer_executable = false\nqueue\n")
    assert "/no/such/program" in instance.wait_state(f"{missing}.0", "held")["hold_reason"]
    instance.cli("rm", str(missing))


def test_signals_and_ends(instance, login, alpha):
    begin(instance, login, alpha)
    job = instance.submit(travelling(f"trap 'echo got >>{instance.work}/got' USR1; echo >{instance.work}/up; while :; do sleep 0.1; done"))
    wait_until(lambda: instance.exists("up"))
    instance.wait_state(f"{job}.0", "running")
    instance.cli("signal", f"{job}.0", "USR1")
    wait_until(lambda: instance.exists("got"))
    instance.cli("rm", str(job))
    wait_until(lambda: not alpha.jobs())
    wait_until(lambda: not login.left())


def test_an_agent_that_is_killed_finds_its_jobs(instance, login, alpha):
    begin(instance, login, alpha)
    job = instance.submit(travelling(f"echo s >>{instance.work}/starts; while [ ! -e {instance.work}/go ]; do sleep 0.1; done; echo x >out"))
    wait_until(lambda: instance.exists("starts"))
    instance.wait_state(f"{job}.0", "running")
    instance.agent.stop(signal.SIGKILL)
    instance.daemons.remove(instance.agent)
    instance.write("go", "")
    begin(instance, login, alpha)
    brought(instance, job)
    assert (instance.read("starts"), instance.read("out")) == ("s\n", "x\n")
    wait_until(lambda: not login.left())


def test_a_login_node_that_is_away_is_waited_for(instance, login, alpha):
    """Jobs go on there, and are brought home when it is back."""
    begin(instance, login, alpha)
    job = instance.submit(travelling(f"echo s >>{instance.work}/starts; while [ ! -e {instance.work}/go ]; do sleep 0.1; done; echo x >out"))
    wait_until(lambda: instance.exists("starts"))
    instance.wait_state(f"{job}.0", "running")
    login.stop()
    login.cut()
    for pid in processes(os.path.join(instance.base, "n"), "ssh"):
        with contextlib.suppress(ProcessLookupError):  # it has seen that the connection is cut
            os.kill(pid, signal.SIGKILL)

    def told():
        """the agent says that the login node is not there"""
        queue = instance.agents("connected")[0]["queues"][0]
        return "onnection" in (queue.get("closed") or queue.get("reason") or str(queue))

    wait_until(told)
    assert instance.job(f"{job}.0")["state"] == "running"
    instance.write("go", "")
    login.start()
    login.wait()
    brought(instance, job)
    assert (instance.read("starts"), instance.read("out")) == ("s\n", "x\n")


LIAR = """#!/usr/bin/python3
import io, os, sys, tarfile
if sys.argv[1] != "-cf":
    os.execv("/usr/bin/tar", ["tar", *sys.argv[1:]])
box = next(n for n in sys.argv[3:] if n.startswith("jobs/"))
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as out:
    def add(name, **more):
        one = tarfile.TarInfo(name)
        for key, value in more.items():
            setattr(one, key, value)
        one.size = 4 if one.type == tarfile.REGTYPE else 0
        out.addfile(one, io.BytesIO(b"evil"))
    for name in ("agent.key", "evil", "../evil", f"{box}/../../evil", f"{box}/../../../evil", "/tmp/drover-evil", "jobs/other/x"):
        add(name)
    add(f"{box}/link", type=tarfile.SYMTYPE, linkname="TARGET")
    add(f"{box}/link/evil")
    add(f"{box}/setuid", mode=0o6777)
    out.add(box)
"""


def test_a_login_node_that_lies_writes_nothing_elsewhere(instance, login, alpha):
    begin(instance, login, alpha)
    tools = os.path.join(instance.base, "tools")
    os.mkdir(tools)
    target = os.path.join(instance.base, "target")
    os.mkdir(target)
    instance.write(os.path.join(tools, "tar"), LIAR.replace("TARGET", target), 0o755)
    key = os.path.join(instance.base, "n", "agent.key")
    with open(key, encoding="ascii") as f:
        before = f.read()
    login.with_tools(tools)
    job = instance.submit(travelling("echo x >out"))
    brought(instance, job)
    assert instance.read("out") == "x\n"
    with open(key, encoding="ascii") as f:
        assert f.read() == before
    assert not os.listdir(target) and not os.path.exists("/tmp/drover-evil")
    assert not [top for top, _, names in os.walk(instance.base) if "evil" in names and "/jobs/" not in top]
    assert not os.path.exists(os.path.join(instance.base, "n", "jobs", "other"))


UNREADABLE = """#!/bin/sh
[ "$1" != -cf ] || { for f; do [ ! -e "$f/unreadable" ] || exit 2; done; }
exec /usr/bin/tar "$@"
"""


def test_what_one_job_leaves_is_nobody_elses_trouble(instance, login, alpha):
    """A folder that tar cannot read has the whole archive fail, and there are no files of others in it then."""
    begin(instance, login, alpha)
    tools = os.path.join(instance.base, "tools")
    os.mkdir(tools)
    instance.write(os.path.join(tools, "tar"), UNREADABLE, 0o755)
    login.with_tools(tools)
    script = f"echo s >>{instance.work}/starts.$(Process); while [ ! -e {instance.work}/go ]; do sleep 0.3; done; echo x >out.$(Process)"
    good = instance.submit(travelling(script, queue="queue 2"))
    bad = instance.submit(travelling(f"touch unreadable; while [ ! -e {instance.work}/go ]; do sleep 0.02; done", queue="queue 2"))
    for job in (f"{good}.0", f"{good}.1", f"{bad}.0", f"{bad}.1"):
        instance.wait_state(job, "running")
    instance.write("go", "")
    brought(instance, good)
    for n in range(2):
        assert (instance.read(f"starts.{n}"), instance.read(f"out.{n}")) == ("s\n", "x\n")
    instance.cli("rm", str(bad))


def test_mistakes_in_its_settings_are_told(instance, login, alpha):
    instance.server()
    for words, said in (({"ssh_folder": "/x"}, "go with ssh"), ({"ssh": "login"}, "ssh_folder is a folder"), ({"ssh": "-oProxyCommand=x", "ssh_folder": "/x"}, "name of a host"),
                        ({"ssh": "login", "ssh_folder": "/x y"}, "ssh_folder is a folder"), ({"ssh": "login", "ssh_folder": "../x"}, "ssh_folder is a folder")):
        one = Through(alpha, login)
        one.settings = {**alpha.settings, **words}
        agent = agents.start(instance, agents.batch_queues(one))
        wait_until(lambda: not agent.running())
        assert said in agent.output(), agent.output()
        instance.daemons.remove(agent)
