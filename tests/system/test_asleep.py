"""Daemons that stand still for longer than a lease, and machines that sleep: nothing runs twice at a time, nothing is lost."""
import contextlib
import os
import signal
import struct
import time

import pytest

import agents
from drover import processes, sh, wait_until
from test_kill import FINAL
from test_outlive import beating, runs

LEASE_OVER = "the lease has ended without the server"


def begin(instance, lease, config="cpus: 1\n"):
    """A server whose leases are so long, an agent with one processor, and a job there that beats until the flag is there."""
    config_path = os.path.join(instance.base, "droverd.yaml")
    with open(config_path, "w", encoding="utf-8") as f:
        f.write(f"lease: {lease}\n")
    instance.server("--config", config_path)
    agent = agents.start(instance, config)
    instance.flag = os.path.join(instance.work, "flag")
    job = f"{instance.submit(sh(beating(instance, instance.flag), request_cpus='1', output='out'))}.0"
    wait_until(lambda: instance.exists("log") and runs(instance))
    instance.wait_state(job, "running")
    return job, agent


def in_turn(instance, job):
    """The runs of the job: each ended before the next began."""
    its = runs(instance)[job]
    for before, after in zip(its, its[1:]):
        assert before[2] < after[1], f"{job} ran twice at a time: {its}"
    return its


def whole(instance, job):
    """The job ended once, by itself, with its output."""
    instance.write("flag", "")
    instance.wait(job)
    assert instance.read("out") == "whole\n"
    assert [e["event"] for e in instance.events(job) if e["event"] in FINAL] == ["exited"]
    return in_turn(instance, job)


def send(pid, what):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)


@contextlib.contextmanager
def frozen(*pids):
    try:
        for pid in pids:
            send(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            send(pid, signal.SIGCONT)


@pytest.mark.long
def test_the_agent_stands_still(instance):
    """Its shepherd ends the job in time, another agent runs it, and what the first one says later is refused."""
    job, agent = begin(instance, "3s")
    with frozen(agent.pid):
        second = agents.start(instance, "cpus: 1\n", "n2")
        wait_until(lambda: len(runs(instance)[job]) == 2)
        lost = [e["text"] for e in instance.events(job) if e["event"] == "lost"]
        assert lost == ["idle: the lease ended: nothing was heard of the agent"]
    wait_until(lambda: len(instance.agents("connected")) == 2)
    assert len(whole(instance, job)) == 2
    row = instance.history(job.split(".")[0])[0]
    assert (row["agent"], row["starts"]) == ("n2", 2)
    assert agent.running() and second.running()


def test_the_server_stands_still(instance):
    """The job ends with its lease, and that is said; it runs again when the server is back."""
    job, agent = begin(instance, "3s")
    with frozen(instance.server_pid()):
        wait_until(lambda: not processes(instance.flag))
    wait_until(lambda: len(runs(instance)[job]) == 2)
    assert len(whole(instance, job)) == 2
    lost = [e["text"] for e in instance.events(job) if e["event"] == "lost"]
    assert LEASE_OVER in agent.output() or "the lease ended" in lost[0], lost


class Sleeper:
    """The machine's clock, for what is started after this."""

    def __init__(self, instance):
        self.instance, self.path = instance, os.path.join(instance.base, "slept")
        self.seconds = 0
        with open(self.path, "wb") as f:
            f.write(struct.pack("=qq", 0, 0))
        preload = os.path.join(instance.build, "tests/conform/libsleeping_clock.so")
        assert os.path.exists(preload), f"{preload} is not there: run `make build` first"
        instance.env.update(LD_PRELOAD=preload, SLEEPING_CLOCK=self.path,
                            ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")

    def set_wall(self, seconds):
        """The wall clock is so far ahead of the true time from now on."""
        with open(self.path, "r+b") as f:
            f.seek(8)
            f.write(struct.pack("=q", seconds))

    def sleep(self, seconds, *last):
        """All that is of the instance stands still, and wakes when the clock has gone on; but who is to wake last stands still
        already."""
        with frozen(*(pid for pid in processes(self.instance.base) if pid not in last)):
            self.seconds += seconds
            with open(self.path, "r+b") as f:
                f.write(struct.pack("=q", self.seconds))


@pytest.mark.parametrize("first", ["server", "agent"])
def test_the_machine_sleeps(instance, first):
    """For longer than all leases. Whoever wakes first, the job goes on or is run again, and is not forgotten."""
    clock = Sleeper(instance)
    job, _ = begin(instance, "30s")
    last = [instance.server_pid()] if first == "agent" else []
    for _ in range(3):
        with frozen(*last):
            clock.sleep(3600, *last)
            woke = time.time_ns()
            if last:
                wait_until(lambda: not processes(instance.flag))
        wait_until(lambda: in_turn(instance, job)[-1][2] > woke)
        wait_until(lambda: instance.agents("connected") and instance.job(job)["state"] == "running")
    assert len(whole(instance, job)) > 1 or first == "server"


def test_the_machine_sleeps_with_nothing_to_do(instance):
    """The job that comes then is run at once, and once."""
    clock = Sleeper(instance)
    job, _ = begin(instance, "30s")
    whole(instance, job)
    for _ in range(3):
        clock.sleep(3600)
        request = instance.run(sh("true"))
        assert instance.history(request)[0]["starts"] == 1
        assert [e["event"] for e in instance.events(f"{request}.0")].count("lost") == 0
