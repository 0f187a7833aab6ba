"""Bad days: what stands still, comes back from the past, or has a clock that is wrong. Nothing is stuck, lost or run twice."""
import os
import ssl
import socket
import time

import pytest

import agents
import one_thread
from drover import free_port, sh, wait_until
from test_asleep import Sleeper, begin, frozen, in_turn, whole
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


# ---- clocks ---------------------------------------------------------------------------------------------------------------

DAYS = 86400


def shows_a_good_certificate(instance, port):
    """Somebody who verifies dates, as libcurl does, believes the server's certificate."""
    context = ssl.create_default_context(cafile=os.path.join(instance.dir, "ca", "ca.crt"))
    context.check_hostname = False
    with socket.create_connection(("127.0.0.1", port), 30) as s:
        try:
            with context.wrap_socket(s):
                return True
        except ssl.SSLCertVerificationError:
            return False


@pytest.mark.parametrize("ahead", [3600, 300 * DAYS], ids=["an_hour", "300_days"])
def test_the_clock_was_ahead_when_the_server_started(instance, ahead):
    """And then is put right. Agents that joined in the future come again, others join, and clients believe the server."""
    clock = Sleeper(instance)
    clock.set_wall(ahead)
    port = free_port()
    instance.server("--api-listen", f"127.0.0.1:{port}")
    first = agents.start(instance, "cpus: 1\n")
    instance.run(sh("true"))
    first.stop()
    clock.set_wall(0)
    agents.start(instance, "cpus: 1\n")
    wait_until(lambda: [a["name"] for a in instance.agents("connected")] == ["n1"])
    agents.start(instance, "cpus: 1\n", "n2")
    wait_until(lambda: len(instance.agents("connected")) == 2)
    instance.run(sh("true"))
    wait_until(lambda: shows_a_good_certificate(instance, port))


def test_the_clock_is_set_while_jobs_run(instance):
    """Forth and back by hours: no lease ends, jobs go on, others come and go, and what is due is done."""
    clock = Sleeper(instance)
    job, agent = begin(instance, "3s", "cpus: 2\n")
    for ahead in (7200, 30 * DAYS, -7200):
        clock.set_wall(ahead)
        assert instance.history(instance.run(sh("true")))[0]["starts"] == 1
        passes(1)
    held = instance.submit(sh("sleep 300", periodic_hold="JobStatus == 2"))
    instance.wait_state(f"{held}.0", "held")
    assert len(whole(instance, job)) == 1, agent.output()
