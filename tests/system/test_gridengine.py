"""What is particular to queues of a real Grid Engine: a private cell on loopback, whose host is this machine."""
import os
import re

import pytest

import agents
from drover import sh, wait_until

pytest_plugins = ["batch_systems"]


@pytest.fixture
def one(instance, grid):
    """A server and an agent with a queue of the cell."""
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(grid))
    agents.offering(instance, "grid")
    return instance


def until(path):
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


def test_what_is_asked_for(one, grid):
    flag = os.path.join(one.work, "flag")
    request = one.submit(sh(until(flag), request_cpus="3", allowed_execute_duration="120"))
    one.wait_state(f"{request}.0", "running")
    with open(f"{one.base}/n1/jobs/{request}.0.1/.drover_step.0.sh", encoding="utf-8") as f:
        script = f.read()
    for line in ("-pe smp 3", "-l h_rt=150", "-q all.q", "-notify"):
        assert f"#$ {line}\n" in script
    number = grid.jobs()[0][0].split(".")[0]
    shown = grid.tool("qstat", "-j", number)
    assert re.search(r"parallel environment:\s+smp range: 3", shown) and re.search(r"hard resource_list:\s+h_rt=150", shown)
    one.write("flag", "")
    one.wait(request)


@pytest.mark.parametrize("queue, why", [("nope.q", "is there none of that name?"), ("shut.q", "or it is closed")])
def test_a_queue_that_takes_nothing_is_said(instance, grid, queue, why):
    instance.server()
    grid_here = agents.batch_queues(grid).replace("'all.q'", f"'{queue}'")
    agents.start(instance, grid_here)
    closed = wait_until(lambda: [q["closed"] for a in instance.agents("connected") for q in a["queues"] if q["closed"]])[0]
    assert closed.startswith(f"gridengine, queue {queue}: ") and why in closed, closed


def test_what_can_never_run_is_refused(one, grid):
    """Not kept waiting for ever in the system's queue."""
    request = one.submit(sh("true", **{"+GridEngineResources": '"mem_total=90000G"'}))
    one.wait_state(f"{request}.0", "held")
    assert "no suitable queues" in one.job(f"{request}.0")["hold_reason"]
    assert grid.jobs() == []


def test_a_job_in_error_is_told_with_its_reason(one, grid):
    """Eqw: the system has tried, and keeps it for somebody to look at. It is taken back, and its reason told."""
    later = one.submit(sh("true", **{"+GridEngineQueue": '"shut.q"'}))
    wait_until(lambda: grid.jobs())  # it waits there, for the queue is disabled
    grid.tool("qalter", "-wd", "/no/such/folder", grid.jobs()[0][0].split(".")[0])
    grid.tool("qmod", "-e", "shut.q")
    try:
        one.wait_state(f"{later}.0", "held")
    finally:
        grid.tool("qmod", "-d", "shut.q")
    assert "/no/such/folder" in one.job(f"{later}.0")["hold_reason"]
    wait_until(lambda: not grid.jobs())


def test_suspended_in_the_system_too(one, grid):
    request = one.submit(sh(f"while :; do echo x >>{one.work}/beats; sleep 0.05; done"))
    wait_until(lambda: one.exists("beats"))
    one.wait_state(f"{request}.0", "running")
    one.api("POST", "/v1/actions", {"action": "suspend", "ids": [f"{request}.0"]})
    wait_until(lambda: grid.jobs()[0][1] == "s")
    one.api("POST", "/v1/actions", {"action": "resume", "ids": [f"{request}.0"]})
    wait_until(lambda: grid.jobs()[0][1] == "r")
    one.cli("rm", f"{request}.0")


def test_what_has_gone_is_accounted_for(one, grid):
    """The agent is away while the job is killed outright: qacct says what became of it."""
    request = one.submit(sh(f"echo $$ >{one.work}/pid; sleep 600"))
    one.wait_state(f"{request}.0", "running")
    wait_until(lambda: one.written("pid"))
    one.agent.kill()
    with open(f"/proc/{int(one.read('pid'))}/stat", encoding="utf-8") as f:
        os.kill(int(f.read().split()[3]), 9)  # its script
    wait_until(lambda: not grid.jobs())
    one.agent = agents.start(one, agents.batch_queues(grid))
    one.wait_state(f"{request}.0", "held")
    assert "cancelled" in one.job(f"{request}.0")["hold_reason"]
