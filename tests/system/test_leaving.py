"""Agents that have an end: leave_after, leave_idle, and SIGTERM to one that has either."""
import os

import agents
from drover import processes, sh, wait_until


def node(instance, name="n1"):
    return instance.json("nodes", "show", name)


def gone(instance, agent):
    """The agent has ended by itself, and its shepherd with it."""
    wait_until(lambda: not agent.running())
    assert agent.process.returncode == 0, agent.output()
    wait_until(lambda: not processes(os.path.join(instance.base, "n1")))


def test_an_idle_agent_ends_and_comes_again(instance):
    instance.server()
    config = "leave_idle: 2s\n"
    request = instance.submit(sh("true"))
    agent = agents.start(instance, config)
    instance.wait(request)
    gone(instance, agent)
    said = node(instance)
    assert (said["state"], said["by"], said["reason"]) == ("drained", "the node, which leaves", "it had nothing to run")
    request = instance.submit(sh("true"))
    agent = agents.start(instance, config)  # nobody needs to resume it
    instance.wait(request)
    gone(instance, agent)


def test_jobs_that_take_too_long_are_not_taken(instance):
    instance.server()
    agents.start(instance, "leave_after: 1h\nleave_unknown: 2h\n")
    agents.offering(instance)
    fits = instance.submit(sh("true", allowed_execute_duration=600))
    instance.wait(fits)
    long = instance.submit(sh("true", allowed_execute_duration=3600))
    unknown = instance.submit(sh("true"))
    instance.run(sh("true", allowed_execute_duration=60))  # the others were looked at as well
    assert [instance.job(f"{r}.0")["state"] for r in (long, unknown)] == ["idle", "idle"]
    assert "AllowedExecuteDuration" in instance.cli("why", f"{long}.0")
    assert "TakesUnknownTimes" in instance.cli("why", f"{unknown}.0")
    agents.start(instance, "", name="n2")
    instance.wait(long, unknown)


def test_what_runs_at_the_end_goes_back(instance):
    instance.server()
    request = instance.submit(sh(f"echo x >>{instance.work}/ran; [ -e {instance.work}/go ] || sleep 600"))
    agent = agents.start(instance, "leave_after: 15s\nleave_unknown: 1ms\nkill_grace: 1s\n")
    wait_until(lambda: instance.exists("ran"))
    gone(instance, agent)
    job = instance.job(f"{request}.0")
    assert (job["state"], node(instance)["losses"]) == ("idle", 0)
    assert node(instance)["reason"] == "its time is over"
    instance.write("go", "")
    agents.start(instance, "", name="n2")
    instance.wait(request)
    assert instance.read("ran").split() == ["x", "x"]


def test_sigterm_gives_jobs_back(instance):
    instance.server()
    agent = agents.start(instance, "leave_idle: 1h\nkill_grace: 1s\n")
    request = instance.submit(sh(f"echo >>{instance.work}/ran; sleep 600"))
    wait_until(lambda: instance.exists("ran"))
    agent.stop()
    assert node(instance)["reason"] == "it was told to end"
    instance.wait_state(f"{request}.0", "idle")
    assert not processes(os.path.join(instance.base, "n1"))
    instance.cli("rm", str(request))
