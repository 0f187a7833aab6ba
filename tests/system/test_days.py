"""Budgets of a day: what an agent may take, counted on when it is started again."""
import time

import pytest

import agents
from drover import sh, wait_until


@pytest.fixture(name="one")
def server(instance):
    if time.time() % 86400 > 86400 - 120:  # at midnight (UTC) all budgets are full again
        wait_until(lambda: time.time() % 86400 < 120, 150)
    instance.server()
    return instance


def begin(instance, policy):
    agent = agents.start(instance, f"kill_grace: 1s\npull_policy: {policy}\n")
    agents.queues(instance, 1)
    return agent


def told(instance):
    """Why the queue takes nothing."""
    return instance.agents()[0]["queues"][0].get("closed") or ""


def done(instance, request):
    return sum(job["state"] == "completed" for job in instance.history(request))


def test_so_many_jobs_a_day(one):
    agent = begin(one, "jobs/day=2")
    request = one.submit(sh("true").replace("queue", "queue 3"))
    wait_until(lambda: done(one, request) == 2 and "jobs per day is used up" in told(one))
    assert "closed" in one.cli("agents")
    agent.stop()
    agent = begin(one, "jobs/day=2")
    wait_until(lambda: "jobs per day is used up" in told(one))
    assert done(one, request) == 2
    agent.stop()
    begin(one, "jobs/day=3")
    one.wait(request)


@pytest.mark.parametrize("budget,why", [("walltime/day=1s", "walltime per day"), ("cpu/day=1s", "cpu per day")])
def test_what_jobs_used_counts(one, budget, why):
    """The job that exceeds a budget runs to its end; the next one waits."""
    agent = begin(one, budget)
    one.write("eat.py", "import time\nwhile time.process_time() < 2: pass\n")
    first = one.run(f"executable = /usr/bin/python3\narguments = {one.work}/eat.py\nqueue\n")
    wait_until(lambda: f"{why} is used up" in told(one))
    second = one.submit(sh("true"))
    agent.stop()
    agent = begin(one, budget)
    wait_until(lambda: f"{why} is used up" in told(one))
    assert one.job(f"{second}.0")["state"] == "idle" and done(one, first) == 1
    agent.stop()
    begin(one, "load=100%")
    one.wait(second)
