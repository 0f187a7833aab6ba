"""A shepherd that is there and does not answer: the agent notices, its queue closes and says why, and all goes on when it answers."""
import os
import signal
import time

import pytest

import agents
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


def test_an_agent_that_stood_still_itself(one):
    """Its own pause is no silence of the shepherd."""
    os.kill(one.agent.pid, signal.SIGSTOP)
    time.sleep(3)
    os.kill(one.agent.pid, signal.SIGCONT)
    one.run(sh("true"))
    assert WHY not in one.agent.output()
