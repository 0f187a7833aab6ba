"""A batch system's master that was killed and has lost its memory: it counts its jobs from one again, so numbers that are ours are given
to others. Grid Engine, PBS and HTCondor as test_slurm_forgets.py has it for Slurm: a number is ours only with its submission's name."""
import contextlib
import os
import re
import shutil
import signal
import tempfile

import pytest

import agents
from drover import processes, sh, wait_until
from gridengine import GridEngine
from pool import Pool
from slurm import Munge
from test_kill import FINAL
from test_outlive import beating, runs
from test_slurm_forgets import forget as forget_slurm
from torque import Torque


class Grid:
    """What the master knows of its jobs are files (classic spooling). The node's daemon still has the old jobs, and the master has it kill
    those by their numbers; so it is the calls of qdel that count."""

    def __init__(self, folder, _):
        self.system = GridEngine(folder, "grid", slots=16)
        self.system.start()
        self.calls = os.path.join(folder, "calls")
        self.bin = os.path.join(folder, "bin")
        os.mkdir(self.bin)
        with open(os.path.join(self.bin, "qdel"), "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\necho "$@" >>{self.calls}\nexec /usr/bin/qdel "$@"\n')
        os.chmod(os.path.join(self.bin, "qdel"), 0o755)
        self.env = {"PATH": self.bin}

    def forget(self):
        self.system.kill_daemon()
        spool = os.path.join(self.system.top, "spool", "qmaster")
        for name in ("jobs", "job_scripts"):
            shutil.rmtree(os.path.join(spool, name))
            os.mkdir(os.path.join(spool, name))
            shutil.chown(os.path.join(spool, name), "sgeadmin", "sgeadmin")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(spool, "jobseqnum"))
        self.system.start_master()

    def others(self):
        self.system.others("sleep 600")

    def natives(self):
        """number: name"""
        return {line[0]: line[2] for line in self.system.jobs()}

    def lets_alone(self, native, _):
        """Nobody has told it to end the job of this number."""
        with contextlib.suppress(FileNotFoundError), open(self.calls, encoding="utf-8") as f:
            return native not in re.split(r"[\s.]+", f.read())
        return True

    def stop(self):
        self.system.stop()


class Pbs:
    def __init__(self, folder, _):
        self.munge = Munge(folder)
        self.system = Torque(folder, self.munge)
        self.system.start()
        self.env = self.system.agent_env

    def forget(self):
        forget_slurm(self.system)

    def others(self):
        self.system.others("sleep 600")

    def natives(self):
        return {line[0]: line[2] for line in self.system.jobs("pending,running")}

    def lets_alone(self, native, name):
        return numbers(self).get(native) == name

    def stop(self):
        self.system.stop()
        self.munge.stop()


class Condor:
    """The pool's schedd is a server, and its node is one's agent. Who has lost the one has lost the other."""

    def __init__(self, folder, build):
        self.system = Pool(build, folder)
        self.system.start()
        self.env = {}

    def forget(self):
        pool = self.system
        pool.kill_daemon()
        pool.node.kill()
        for pid in pool.instance.pids("drover-shepherd"):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(pool.instance.dir)
        shutil.rmtree(os.path.join(pool.instance.base, "node"))
        pool.start()

    def others(self):
        """As another agent's."""
        self.system.condor.submit("executable = /bin/sleep\narguments = 600\n+DroverName = \"others\"\n+DroverCount = 1\nqueue\n")

    def natives(self):
        return {line[0]: line[2] for line in self.system.jobs() if line[1] in ("1", "2")}

    def lets_alone(self, native, name):
        return numbers(self).get(native) == name

    def stop(self):
        self.system.stop()


@pytest.fixture
def one(request, instance, build):
    """A server whose leases are long, and a batch system that will forget."""
    folder = tempfile.mkdtemp(prefix="drover-fg-")
    os.chmod(folder, 0o755)  # its daemons may be another user
    system = request.param(folder, build)
    request.addfinalizer(lambda: (instance.stop(), system.stop(), shutil.rmtree(folder, ignore_errors=True)))
    path = os.path.join(instance.base, "droverd.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("lease: 5m\n")
    instance.server("--config", path)
    instance.flag = os.path.join(instance.work, "flag")
    instance.master = system
    return instance


def queue(instance, poll):
    system = instance.master.system
    system.settings["poll"] = str(poll)
    first = instance.master.env.get("PATH", system.env["PATH"])
    instance.env.update({**instance.master.env, "PATH": first + ":" + instance.env["PATH"]})
    instance.agent = agents.start(instance, agents.batch_queues(system))
    agents.offering(instance, system.name)



def numbers(master):
    """number: name; members of an array have one number"""
    return {re.split("[._]", native)[0]: name for native, name in master.natives().items()}


def strangers(master, until):
    """Somebody else's jobs, until one of them has the number: that one's name."""
    for _ in range(50):
        master.others()
        if until in numbers(master):
            return numbers(master)[until]
    raise AssertionError(f"it does not count from one: {master.natives()}")


@pytest.mark.parametrize("poll", [pytest.param(1, id="noticed"), pytest.param(15, id="not_noticed_yet", marks=pytest.mark.long)])
@pytest.mark.parametrize("one", [pytest.param(Grid, marks=pytest.mark.long), Pbs, Condor], indirect=True)
def test_a_removal_ends_nobody_elses_job(one, poll):
    """Whether the number was seen under another name, or was not asked about since."""
    queue(one, poll)
    request = one.submit(sh(beating(one, one.flag), request_cpus="2", output="out"))
    native, = wait_until(lambda: list(numbers(one.master)))
    wait_until(lambda: one.exists("log"))
    one.master.forget()
    name = strangers(one.master, native)
    if poll == 1:
        wait_until(lambda: "a job of another name has the number of one of ours" in one.agent.output())
    one.cli("rm", str(request))
    one.wait(request, code=None)
    assert one.history(request)[0]["state"] == "removed"
    assert one.master.lets_alone(native, name)
    assert len([e for e in one.events(f"{request}.0") if e["event"] in FINAL]) == 1
    wait_until(lambda: not processes(one.flag))


@pytest.mark.parametrize("one", [Grid, Pbs, Condor], indirect=True)
def test_what_ran_is_run_again_and_counted_once(one):
    """Strangers hold the old numbers; each job has one end, and is never two at a time."""
    queue(one, 1)
    request = one.submit(sh(beating(one, one.flag), request_cpus="2", output="out.$(Process)", queue="queue 3"))
    wait_until(lambda: one.exists("log") and len(runs(one)) == 3)
    before = numbers(one.master)
    one.master.forget()
    for native in sorted(before):
        assert strangers(one.master, native) != before[native]
    one.write("flag", "")
    one.wait(request, seconds=300)
    for n in range(3):
        job = f"{request}.{n}"
        assert [e["event"] for e in one.events(job) if e["event"] in FINAL] == ["exited"]
        its = runs(one)[job]
        for earlier, later in zip(its, its[1:]):
            assert earlier[2] < later[1], f"{job} ran twice at a time: {its}"
        assert one.read(f"out.{n}") == "whole\n"
