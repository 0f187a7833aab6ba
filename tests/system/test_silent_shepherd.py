"""A shepherd that is there and does not answer: the agent notices, its queue closes and says why, and all goes on when it answers."""
import os
import signal
import struct
import time

import pytest

import agents
import one_thread
from drover import alive, sh, wait_until

WHY = "the agent's shepherd does not answer"


@pytest.fixture
def one(instance):
    instance.server()
    instance.agent = agents.start(instance, "cpus: 4\nshepherd_silence: 1s\n")
    agents.offering(instance)
    instance.run(sh("true"))
    instance.shepherd, = instance.pids("drover-shepherd")
    yield instance
    if alive(instance.shepherd):
        os.kill(instance.shepherd, signal.SIGCONT)


def unreachable(one):
    queue, = one.agents()[0]["queues"]
    return queue["unreachable"]


def freeze(one):
    os.kill(one.shepherd, signal.SIGSTOP)
    wait_until(lambda: unreachable(one) == WHY)


def test_it_is_noticed_and_comes_back(one):
    mark = os.path.join(one.work, "go")
    running = one.submit(sh(f"echo >{one.work}/began; until [ -e {mark} ]; do sleep 0.1; done; echo done >{one.work}/out"))
    wait_until(lambda: one.exists("began"))
    one.wait_state(f"{running}.0", "running")
    freeze(one)
    waiting = one.submit(sh("true"))
    assert WHY in one.cli("agents", "-l", code=None) + one.cli("agents")
    wait_until(lambda: WHY in one.cli("why", f"{waiting}.0"))
    wait_until(lambda: WHY in one.cli("path", f"{running}.0"))
    assert one.job(f"{waiting}.0")["state"] == "idle"
    with open(mark, "w", encoding="utf-8"):
        pass
    wait_until(lambda: one.exists("out"))
    assert one.job(f"{running}.0")["state"] == "running", "the shepherd has not told of its end"
    os.kill(one.shepherd, signal.SIGCONT)
    one.wait(running, waiting)
    wait_until(lambda: unreachable(one) is None)
    assert one.pids("drover-shepherd") == [one.shepherd]
    assert one.read("out") == "done\n"


def test_an_agent_that_comes_anew(one):
    """It has said nothing to this agent yet."""
    os.kill(one.shepherd, signal.SIGSTOP)
    one.agent.stop()
    one.daemons.remove(one.agent)
    agents.start(one, "cpus: 4\nshepherd_silence: 1s\n")
    wait_until(lambda: one.agents("connected") and unreachable(one) == WHY)
    request = one.submit(sh("true"))
    os.kill(one.shepherd, signal.SIGCONT)
    one.wait(request)
    assert unreachable(one) is None


def test_it_dies_meanwhile(one):
    freeze(one)
    request = one.submit(sh("true"))
    os.kill(one.shepherd, signal.SIGKILL)
    one.wait(request)
    wait_until(lambda: unreachable(one) is None)


RAN = "echo ran >>{work}/{name}"


def ran(one, name):
    """How often."""
    return one.read(name).count("ran\n") if one.exists(name) else 0


def staging(one, name):
    """A job whose start the shepherd, which stands still, has not read."""
    request = one.submit(sh(RAN.format(work=one.work, name=name)))
    one.wait_state(f"{request}.0", "staging")
    return request


@pytest.fixture
def patient(instance):
    """An agent that waits long enough for a job to come before it closes its queue."""
    instance.server()
    instance.agent = agents.start(instance, "cpus: 4\nshepherd_silence: 4s\n")
    agents.offering(instance)
    instance.run(sh("true"))
    instance.shepherd, = instance.pids("drover-shepherd")
    yield instance
    if alive(instance.shepherd):
        os.kill(instance.shepherd, signal.SIGCONT)


def test_what_it_has_not_begun_goes_back(patient):
    os.kill(patient.shepherd, signal.SIGSTOP)
    request = staging(patient, "out")
    gone = staging(patient, "gone")
    patient.cli("rm", str(gone))
    patient.wait_state(f"{request}.0", "idle")
    patient.wait_state(f"{gone}.0", "removed")
    assert unreachable(patient) == WHY
    assert WHY in patient.cli("log", f"{request}.0")
    os.kill(patient.shepherd, signal.SIGCONT)
    patient.wait(request)
    assert ran(patient, "out") == 1 and ran(patient, "gone") == 0


def test_what_an_agent_that_is_gone_had_started(patient):
    mark = os.path.join(patient.work, "go")
    running = patient.submit(sh(RAN.format(work=patient.work, name="first") + f"; until [ -e {mark} ]; do sleep 0.1; done"))
    patient.wait_state(f"{running}.0", "running")
    os.kill(patient.shepherd, signal.SIGSTOP)
    request = staging(patient, "out")
    patient.agent.kill()
    patient.daemons.remove(patient.agent)
    agents.start(patient, "cpus: 4\nshepherd_silence: 1s\n")
    patient.wait_state(f"{request}.0", "idle")
    assert "stopped before it was started" in patient.cli("log", f"{request}.0")
    assert patient.job(f"{running}.0")["state"] == "running"
    with open(mark, "w", encoding="utf-8"):
        pass
    os.kill(patient.shepherd, signal.SIGCONT)
    patient.wait(request, running)
    assert ran(patient, "out") == ran(patient, "first") == 1


def begun(one):
    """The requests of which it has written down that it has begun something."""
    with open(f"{one.base}/n1/shepherd.begun", "rb") as f:
        head, ids = f.read(16), f.read()
    used = struct.unpack("QiI", head)[2]
    return [struct.unpack_from("Q", ids, 24 * i)[0] for i in range(used)]


def test_what_it_has_begun_and_not_told(patient):
    """It stands still as soon as the job's process is there."""
    with one_thread.held_at_fork(patient.shepherd, lambda: request in begun(patient)) as forked:
        request = patient.submit(sh(RAN.format(work=patient.work, name="out")))
        forked()
        wait_until(lambda: ran(patient, "out") == 1)
        patient.wait_state(f"{request}.0", "running")
        assert unreachable(patient) == WHY
    patient.wait(request)
    assert ran(patient, "out") == 1


def test_an_agent_that_stood_still_itself(one):
    """Its own pause is no silence of the shepherd."""
    os.kill(one.agent.pid, signal.SIGSTOP)
    time.sleep(3)
    os.kill(one.agent.pid, signal.SIGCONT)
    one.run(sh("true"))
    assert WHY not in one.agent.output()
