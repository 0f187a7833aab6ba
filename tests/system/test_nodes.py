"""drover nodes and drover node: records of agents' machines, orders to them, and what these do to jobs."""
import os
import signal
import time

import pytest

import agents
import openapi
from drover import of_process, sh, wait_until

CONFIG = "jobs_max: 2\nkill_grace: 1s\n"


def node(instance, name="n1"):
    return instance.json("nodes", "show", name)


def is_now(instance, state, name="n1"):
    wait_until(lambda: node(instance, name)["state"] == state)
    return node(instance, name)


def ready(instance, name="n1", config=CONFIG):
    agent = agents.start(instance, config, name=name)
    agents.queues(instance, 1, name)
    return agent


def long_job(instance, **more):
    request = instance.submit(sh("sleep 600", **more))
    instance.wait_state(f"{request}.0", "running")
    return request


def test_states_as_jobs_come_and_go(instance):
    """Idle, busy, draining and drained, also after kill -9 of the server at each of them."""
    server = instance.server()
    ready(instance)
    assert is_now(instance, "idle")["by"] is None
    go = os.path.join(instance.work, "go")
    request = instance.submit(sh(f"while [ ! -e {go} ]; do sleep 0.05; done"))
    instance.wait_state(f"{request}.0", "running")
    said = is_now(instance, "busy")
    assert [(j["request"], j["job"], j["state"]) for j in said["running"]] == [(request, 0, "running")]
    for path, shape in (("/v1/nodes", "/v1/nodes"), ("/v1/nodes/n1", "/v1/nodes/{name}")):
        openapi.check_answer("GET", shape, 200, instance.api("GET", path))
    out = instance.cli("node", "drain", "n1", "--reason", "new disk")
    assert out == "n1 is given no more jobs; 1 job is still there\n"

    def is_still(state):
        nonlocal server
        server.stop(signal.SIGKILL)
        server = instance.server()
        said = is_now(instance, state)
        assert said["by"].startswith("root@") and said["reason"] == "new disk"
        return said

    since = is_still("draining")["since_ms"]
    assert since == node(instance)["since_ms"]
    assert "new disk" in instance.cli("nodes") and "draining" in instance.cli("nodes")
    instance.write("go", "")
    instance.wait(request)
    is_still("drained")
    waits = instance.submit(sh("true"))
    wait_until(lambda: "drained by" in instance.cli("why", str(waits)))  # its agent may be on its way back
    assert instance.cli("node", "resume", "n1") == "n1 is given jobs again\n"
    instance.wait(waits)
    is_now(instance, "idle")


def test_a_deadline_sends_back_what_runs(instance):
    """The job runs elsewhere then; its loss counts for nobody."""
    instance.server()
    ready(instance)
    request = long_job(instance)
    ready(instance, "n2")
    instance.cli("node", "drain", "n1", "--deadline", "1")
    assert node(instance)["deadline_ms"] > 0
    is_now(instance, "drained")
    wait_until(lambda: instance.job(f"{request}.0")["agent"] == "n2")
    assert instance.json("why", f"{request}.0")["losses"] is None
    instance.cli("rm", str(request))


def test_fail_sends_back_what_runs(instance):
    instance.server()
    ready(instance)
    request = long_job(instance)
    ready(instance, "n2")
    instance.cli("node", "fail", "n1", "--reason", "its fan")
    wait_until(lambda: instance.job(f"{request}.0")["agent"] == "n2")
    said = is_now(instance, "failed")
    assert said["reason"] == "its fan" and said["jobs"] == 0
    instance.cli("node", "resume", "n1")
    is_now(instance, "idle")
    instance.cli("rm", str(request))


def test_down_needs_no_lease(instance):
    """A machine is gone, and its admin says so: its job runs elsewhere at once, and not when the lease has ended."""
    server = instance.server()
    agent = ready(instance)
    request = long_job(instance)
    ready(instance, "n2")
    shepherds = instance.pids("drover-shepherd")
    agent.kill()
    wait_until(lambda: not node(instance)["connected"])
    for pid in shepherds:
        if b"/n1/" in of_process(pid, "cmdline") + os.readlink(f"/proc/{pid}/cwd").encode():
            os.kill(pid, signal.SIGKILL)
    instance.cli("node", "down", "n1", "-r", "its mainboard")
    wait_until(lambda: instance.job(f"{request}.0").get("agent") == "n2")
    server.stop(signal.SIGKILL)
    instance.server()
    assert node(instance)["state"] == "down" and node(instance)["reason"] == "its mainboard"
    instance.cli("rm", str(request))


def test_a_retired_node_is_refused(instance):
    server = instance.server()
    agent = ready(instance)
    instance.cli("node", "retire", "n1")
    wait_until(lambda: not agent.running())
    assert "its node was retired" in agent.output()
    assert is_now(instance, "retired")["connected"] is False
    server.stop(signal.SIGKILL)
    instance.server()
    assert node(instance)["state"] == "retired"
    assert "cannot become draining" in instance.cli("node", "drain", "n1", code=1).err


def test_silence_makes_it_failed(instance):
    """Of a node that is away; what it was told to be before comes back with it."""
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("nodes:\n  silent_after: 1s\n")
    instance.server()
    for name in ("n1", "n2"):
        agent = ready(instance, name)
        if name == "n2":
            instance.cli("node", "drain", "n2", "-r", "because")
        agent.stop()
    for name in ("n1", "n2"):
        said = is_now(instance, "failed", name)
        assert said["by"] == "the server" and "nothing was heard of it for 1 s" in said["reason"]
    for name in ("n1", "n2"):
        agents.start(instance, CONFIG, name=name)
    is_now(instance, "idle", "n1")
    is_now(instance, "drained", "n2")


def test_bad_calls(shared):
    assert "no agent nobody" in shared.cli("node", "drain", "nobody", code=2).err
    assert "no agent nobody" in shared.cli("node", "show", "nobody", code=2).err
    assert "it has show, drain, resume" in shared.cli("node", "sink", "x", code=2).err
    shared.cli("node", code=2)
    name = shared.api("GET", "/v1/nodes")["nodes"][0]["name"]
    assert "--deadline" in shared.cli("node", "fail", name, "--deadline", "5", code=2).err
    for body in (b"[", b"{}", b"[]", b'{"state": 7}', b'{"state": "idle"}', b'{"state": "draining", "deadline_ms": "x"}',
                 b'{"state": "draining", "deadline_ms": -1}', b'{"state": "up", "deadline_ms": 1}'):
        assert shared.call("POST", f"/v1/nodes/{name}", body)[0] == 400, body
    assert len(shared.json("node", "drain", name, "-r", "a" * 5000)["reason"]) <= 1024
    assert shared.json("node", "resume", name)["state"] == "idle"
    assert shared.json("node", "resume", name)["state"] == "idle"
    assert time.time() * 1000 - node(shared, name)["since_ms"] < 600000
    shared.wait(shared.submit(sh("true")))


@pytest.mark.parametrize("old", ["drain", "resume"])
def test_the_old_words_are_the_same_orders(shared, old):
    name = shared.api("GET", "/v1/nodes")["nodes"][0]["name"]
    shared.cli("agents", "drain", name)
    if old == "resume":
        shared.cli("agents", "resume", name)
    assert node(shared, name)["state"] == ("drained" if old == "drain" else "idle")
    shared.cli("node", "resume", name)
