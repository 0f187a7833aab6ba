"""Suspending jobs, raced with their ends and with the deaths of who runs them: whatever comes of the job that was
suspended, the next ones run."""
import os
import signal

import pytest

from drover import alive, sh, wait_until


@pytest.fixture
def one(instance):
    """One job at a time: each has the control group of the one before, where there are any."""
    instance.daemon = instance.up("--cpus", "1")
    return instance


def suspended_sleeper(one):
    """A job that was suspended; its request, and its process."""
    mark = os.path.join(one.work, "pid")
    if os.path.exists(mark):
        os.unlink(mark)
    request = one.submit(sh(f"echo $$ >{mark}.new; mv {mark}.new {mark}; exec sleep 600"))
    wait_until(lambda: os.path.exists(mark))
    one.wait_state(f"{request}.0", "running")  # what the server does not know to run is not suspended
    one.cli("suspend", str(request))
    one.wait_state(f"{request}.0", "suspended")
    return request, int(one.read("pid"))


def takes_jobs(one):
    one.wait(one.submit(sh("true", queue="queue 3")))


def test_raced_with_ends(one):
    """A group that its job has left frozen is thawed before the next one enters it."""
    request = one.submit(sh("sleep 0.02", queue="queue 100"))

    def over():
        """jobs of 20 ms are done, though they are suspended and resumed all the time"""
        for _ in range(10):
            for action in ("suspend", "resume"):
                one.call("POST", "/v1/actions", {"action": action, "ids": [str(request)]})
        return len(one.history(request)) == 100

    wait_until(over, every=0.001)
    takes_jobs(one)


def test_raced_with_the_death_of_the_job(one):
    for _ in range(5):
        request, pid = suspended_sleeper(one)
        os.kill(pid, signal.SIGKILL)
        one.cli("resume", str(request))
        one.wait(request, code=1)
        wait_until(lambda: not alive(pid))  # pylint: disable=cell-var-from-loop
    request, pid = suspended_sleeper(one)
    one.cli("rm", str(request))
    wait_until(lambda: not alive(pid))
    takes_jobs(one)


def test_raced_with_the_death_of_the_shepherd(one):
    """The job begins anew, in a group that the last shepherd left frozen."""
    for _ in range(3):
        request, pid = suspended_sleeper(one)
        shepherd, = one.pids("drover-shepherd")
        os.kill(shepherd, signal.SIGKILL)
        wait_until(lambda: not alive(pid))  # pylint: disable=cell-var-from-loop
        wait_until(lambda: one.json("show", f"{request}.0")["state"] in ("idle", "suspended", "running"))  # pylint: disable=cell-var-from-loop
        one.cli("rm", str(request))
        takes_jobs(one)


def test_raced_with_the_death_of_the_agent(one):
    """The next agent finds the job as it was left, and can resume it."""
    request, pid = suspended_sleeper(one)
    agent, = one.pids("drover-agent")
    os.kill(agent, signal.SIGKILL)
    wait_until(lambda: one.pids("drover-agent") not in ([], [agent]))
    wait_until(lambda: one.agents("connected"))
    one.cli("resume", str(request))
    one.wait_state(f"{request}.0", "running")
    assert alive(pid)
    os.kill(pid, signal.SIGTERM)
    one.wait(request, code=1)
    takes_jobs(one)
