"""drover agents drain and resume: an agent is given no more jobs, and keeps what it has."""
import os
import signal

import agents
from drover import sh, wait_until

CONFIG = "jobs_max: 2\n"


def agent(instance, name="n1"):
    return next(a for a in instance.api("GET", "/v1/agents")["agents"] if a["name"] == name)


def starts(instance, flag):
    return instance.submit(sh(f"while [ ! -e {flag} ]; do sleep 0.05; done"))


def test_what_runs_goes_on_and_nothing_comes(instance):
    """Also after a kill -9 of the server, and for an agent that connects again; resume lets jobs come at once."""
    server = instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    flag = os.path.join(instance.work, "go")
    runs = starts(instance, flag)
    instance.wait_state(f"{runs}.0", "running")
    assert instance.cli("agents", "drain", "n1", "--reason", "new kernel") == "n1 is given no more jobs; 1 goes on\n"
    assert "draining" in instance.cli("agents") and "new kernel" in instance.cli("agents")
    waits = instance.submit(sh("true"))
    said = instance.cli("why", str(waits))
    assert "drained by" in said and "new kernel" in said
    server.stop(signal.SIGKILL)
    server = instance.server()
    wait_until(lambda: agent(instance)["state"] == "connected" and agent(instance)["queues"][0]["ad"])
    assert agent(instance)["drained"].endswith(": new kernel") and not agent(instance)["queues"][0]["offer"]
    instance.write("go", "")
    instance.wait(runs)
    wait_until(lambda: "drained" in instance.cli("agents"))
    assert instance.job(f"{waits}.0")["state"] == "idle"
    assert instance.cli("agents", "resume", "n1") == "n1 is given jobs again\n"
    instance.wait(waits)
    assert agent(instance)["drained"] is None
    server.stop(signal.SIGKILL)
    instance.server()
    instance.wait(instance.submit(sh("true")))


def test_jobs_go_elsewhere(instance):
    """Of two agents the drained one gets nothing, though it was there first and the job would rather go there."""
    instance.server()
    for name in ("n1", "n2"):
        agents.start(instance, CONFIG, name=name)
        agents.queues(instance, 1, name)
    instance.cli("agents", "drain", "n1")
    for _ in range(3):
        request = instance.run(sh("true", rank='AgentName == "n1"'))
        assert instance.history(request)[0]["agent"] == "n2"
    instance.cli("agents", "resume", "n1")
    request = instance.run(sh("true", rank='AgentName == "n1"'))
    assert instance.history(request)[0]["agent"] == "n1"


def test_bad_calls(shared):
    assert "no agent nobody" in shared.cli("agents", "drain", "nobody", code=2).err
    assert "no agent nobody" in shared.cli("agents", "resume", "nobody", code=2).err
    assert "drain|resume|revoke" in shared.cli("agents", "sink", "x", code=2).err
    name = shared.api("GET", "/v1/agents")["agents"][0]["name"]
    for body in (b"[", b'{"reason": 7}', b"[]"):
        assert shared.call("POST", f"/v1/agents/{name}/drain", body)[0] == 400
    assert shared.json("agents", "drain", name, "-r", "a" * 5000)["drained"].count("a") < 1100
    assert shared.json("agents", "drain", name)["drained"].startswith("drained by")
    assert shared.json("agents", "resume", name) == {"name": name, "drained": None, "jobs": 0}
    assert shared.json("agents", "resume", name)["drained"] is None
    shared.wait(shared.submit(sh("true")))
