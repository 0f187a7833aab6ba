"""Bad days: what stands still, comes back from the past, or has a clock that is wrong. Nothing is stuck, lost or run twice."""
import os
import signal
import time

import pytest

import agents
import one_thread
from drover import wait_until
from test_asleep import begin, frozen, in_turn, whole
from test_outlive import runs


def passes(seconds):
    """Waits for as long as a fault lasts."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, seconds + 60)


@pytest.mark.parametrize("seconds", [5, pytest.param(20, marks=pytest.mark.long)])
def test_the_core_is_held_for_longer_than_a_lease(instance, seconds):
    """Whatever holds the core's thread, renewals are answered: the job goes on, and is not given to the other agent. Twenty
    seconds are longer than the lease and the server's margin."""
    job, agent = begin(instance, "3s")
    second = agents.start(instance, "cpus: 1\n", "n2")
    wait_until(lambda: len(instance.agents("connected")) == 2)
    with one_thread.held(instance.server_pid()):
        passes(seconds)
    assert instance.job(job)["state"] == "running"
    assert len(whole(instance, job)) == 1, agent.output()
    assert instance.history(job.split(".")[0])[0]["starts"] == 1
    assert agent.running() and second.running()


def test_an_agent_that_stops_renewing_loses_its_lease(instance):
    """The front answers renewals, and still a silent agent's job is given to another, once its lease has ended there."""
    job, agent = begin(instance, "3s")
    with frozen(agent.pid):
        agents.start(instance, "cpus: 1\n", "n2")
        wait_until(lambda: len(runs(instance)[job]) == 2)
    wait_until(lambda: len(instance.agents("connected")) == 2)
    assert len(whole(instance, job)) == 2
