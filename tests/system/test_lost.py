"""Attempts that are lost with their nodes: pauses that grow, a limit, a place alone, and nodes that drain themselves."""
import os
import re
import signal
import time

import pytest

import agents
from drover import Failed, sh, wait_until

# The job's parent is its agent's shepherd.
POISON = "echo $$ >>{file}; kill -9 $PPID; sleep 60"
SETTINGS = "nodes:\n  lost_pause: {pause}\n  max_lost: {most}\n"


def write(instance, text):
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def settings(instance, pause="200ms", most=5, more=""):
    write(instance, SETTINGS.format(pause=pause, most=most) + more)


def poison(instance, **more):
    return instance.submit(sh(POISON.format(file=os.path.join(instance.work, "tries")), **more))


def losses(instance, job):
    return [e for e in instance.events(job) if e["event"] == "lost"]


def lost_at(instance, job):
    return (instance.json("why", job)["losses"] or {"nodes": []})["nodes"]


def test_a_job_that_kills_its_shepherd(instance):
    """Five attempts, each after a longer pause, then it is held and says where; other jobs run beside it."""
    settings(instance)
    server = instance.server()
    agents.start(instance, "jobs_max: 2\n")
    agents.queues(instance, 1)
    request = poison(instance)
    wait_until(lambda: len(losses(instance, f"{request}.0")) >= 3)
    server.stop(signal.SIGKILL)
    server = instance.server()
    job = instance.wait_state(f"{request}.0", "held")
    lost = losses(instance, f"{request}.0")
    assert len(lost) == 5 and len(instance.read("tries").split()) == 5
    between = [(b["at_ms"] - a["at_ms"]) / 1000 for a, b in zip(lost, lost[1:])]
    assert [gap >= least for gap, least in zip(between, (0, 0.2, 0.4, 0.8))] == [True] * 4, between
    said = instance.cli("why", f"{request}.0")
    assert "5 attempts in a row were lost at n1" in said, said
    assert job["hold_code"] == 1002
    instance.wait(instance.submit(sh("true")))
    instance.cli("release", str(request))
    wait_until(lambda: len(losses(instance, f"{request}.0")) >= 6)


def test_why_says_what_it_waits_for(instance):
    settings(instance, pause="1h", most=9)
    instance.server()
    agents.start(instance, "jobs_max: 2\n")
    agents.queues(instance, 1)
    request = poison(instance)
    wait_until(lambda: len(losses(instance, f"{request}.0")) >= 2)
    why = instance.json("why", f"{request}.0")
    assert (why["losses"]["lost"], why["losses"]["most"]) == (2, 9) and not why["losses"]["suspected"]
    assert why["losses"]["nodes"] == ["n1"] and why["losses"]["until_ms"] > time.time() * 1000
    said = instance.cli("why", f"{request}.0")
    assert "2 of its attempts in a row were lost with their nodes (n1); after 9 it is held." in said, said
    assert "before it is tried again" in said
    instance.cli("rm", str(request))
    instance.wait(request, code=1)


def test_three_nodes_make_it_suspected(instance):
    """A job that took down three nodes goes where nothing else runs, and nothing comes beside it; `why` says that."""
    settings(instance, most=9)
    instance.server()
    request = poison(instance)
    for name in ("n1", "n2", "n3"):
        agents.start(instance, "jobs_max: 2\n", name=name)
        wait_until(lambda n=name: n in lost_at(instance, f"{request}.0"))
        instance.cli("agents", "drain", name)
    assert instance.json("why", f"{request}.0")["losses"]["suspected"]
    go = os.path.join(instance.work, "go")
    other = instance.submit(sh(f"while [ ! -e {go} ]; do sleep 0.05; done"))
    agents.start(instance, "jobs_max: 2\n", name="n4")
    instance.wait_state(f"{other}.0", "running")
    before = len(losses(instance, f"{request}.0"))
    said = instance.cli("why", f"{request}.0")
    assert re.search(r"It is suspected, because it was lost with [34] different nodes \(n1, n2, n3(, n4)?\): it runs alone on one\.", said), said
    instance.wait(instance.submit(sh("true")))
    assert len(losses(instance, f"{request}.0")) == before, "it ran beside another job"
    instance.write("go", "")
    instance.wait(other)
    wait_until(lambda: len(losses(instance, f"{request}.0")) > before)


def test_a_black_hole_drains_itself(instance):
    """Three jobs of three requests in a row; the node is resumed by an admin, and that outlives the server."""
    settings(instance, pause="100ms", most=2)
    server = instance.server()
    agents.start(instance, "jobs_max: 1\n")
    agents.queues(instance, 1)
    requests = [poison(instance) for _ in range(3)]
    wait_until(lambda: "drained" in instance.cli("agents"))
    drained = next(a["drained"] for a in instance.agents() if a["name"] == "n1")
    assert drained.startswith("drained by the server: 3 unrelated jobs in a row were lost there"), drained
    assert all(f"{request}.0" in drained for request in requests), drained
    for request in requests:
        instance.cli("rm", str(request))
    server.stop(signal.SIGKILL)
    instance.server()
    waits = instance.submit(sh("true"))
    wait_until(lambda: "3 unrelated jobs" in instance.cli("why", f"{waits}.0"))
    assert instance.job(f"{waits}.0")["state"] == "idle"
    instance.cli("agents", "resume", "n1")
    instance.wait(waits)


@pytest.mark.parametrize("bad", ["max_lost: 0", "max_lost: x", "lost_pause: soon", "drain_lossy: perhaps", "other: 1"])
def test_bad_settings(instance, bad):
    write(instance, f"nodes:\n  {bad}\n")
    with pytest.raises(Failed) as failed:
        instance.server()
    assert "droverd.yaml:2" in str(failed.value), failed.value
