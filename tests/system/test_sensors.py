"""Sensors, health checks and triggers of an agent's file: what small programs print becomes attributes of its queues' ads."""
import os
import signal

import pytest

import agents
from drover import sh, wait_until


def program(instance, name, text):
    return instance.write(name, "#!/bin/sh\n" + text, mode=0o755) or os.path.join(instance.work, name)


def start(instance, config, name="n1", wait=True):
    agent = agents.start(instance, "jobs_max: 2\nkill_grace: 1s\n" + config, name=name)
    if wait:
        agents.queues(instance, 1, name)
    return agent


def ad(instance, name="n1"):
    """The ad of the agent's only queue, names in small letters; values of texts without their quotes."""
    for agent in instance.agents():
        if agent["name"] == name and agent["queues"]:
            return {key.lower(): value for key, value in (agent["queues"][0]["ad"] or {}).items()}
    return {}


def node(instance, name="n1"):
    return instance.json("node", "show", name)


def test_a_sensor_on_a_schedule(instance):
    """Its values are in the ad with their types and a time; jobs require them, and `why` names them."""
    instance.server()
    instance.write("free", "120")
    path = program(instance, "scratch", f"echo Free = $(cat {instance.work}/free)\necho Good = true\necho 'Say = it is \"so\"'\n"
                                        "echo 'Requirements = false'\necho nonsense\n")
    agent = start(instance, f"sensors:\n  Scratch: {{command: [{path}], interval: 1s, timeout: 2s}}\n")
    wait_until(lambda: ad(instance).get("scratchfree") == 120)
    said = ad(instance)
    assert (said["scratchgood"], said["scratchsay"]) == (True, 'it is "so"') and said["scratchtime"] > 1700000000
    assert said["scratchrequirements"] is False, "what it prints has its name before it, and is nothing else of the ad"
    assert "no attributes" in agent.output()
    instance.run(sh("true", requirements="TARGET.ScratchFree > 100"))
    waits = instance.submit(sh("true", requirements="TARGET.ScratchFree > 1000"))
    wait_until(lambda: "ScratchFree" in instance.cli("why", str(waits)))
    instance.write("free", "5000")
    instance.wait(waits)


def test_what_is_old_is_not_told(instance):
    """A sensor that fails says nothing after three intervals; then it is well again."""
    instance.server()
    instance.write("good", "")
    path = program(instance, "one", f"[ -e {instance.work}/good ] || {{ echo A = 2; echo no disk >&2; exit 3; }}\necho A = 1\n")
    agent = start(instance, f"sensors:\n  one: {{command: {path}, interval: 1s, timeout: 1s}}\n")
    wait_until(lambda: ad(instance).get("onea") == 1)
    os.unlink(os.path.join(instance.work, "good"))
    wait_until(lambda: "onea" not in ad(instance))
    assert "exit code 3: no disk" in agent.output()
    instance.write("good", "")
    wait_until(lambda: ad(instance).get("onea") == 1)


def test_a_sensor_that_is_kept_running(instance):
    """Each "-" ends what it says at a time. It is killed with the agent, and what it says goes with it when it ends."""
    instance.server()
    path = program(instance, "kept", f"echo $$ >{instance.work}/pid\nn=0\nwhile [ ! -e {instance.work}/end ]; do n=$((n+1)); "
                                     "echo Count = $n; [ $n -lt 3 ] || echo Three = true; echo -; sleep 0.2; done\n")
    agent = start(instance, f"sensors:\n  k: {{command: {path}}}\n")
    wait_until(lambda: ad(instance).get("kcount", 0) > 3 and ad(instance).get("kthree") is True)
    pid = int(instance.read("pid"))
    agent.stop(signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
    agent = start(instance, f"sensors:\n  k: {{command: {path}}}\n")
    wait_until(lambda: int(instance.read("pid") or pid) != pid and "kcount" in ad(instance))
    instance.write("end", "")
    wait_until(lambda: "kcount" not in ad(instance))
    assert "it has ended, and is started again" in agent.output()


def test_sensors_that_are_no_good(instance):
    """One floods, one hangs, one is not there, one prints what no ad can have: the agent runs jobs, and says so."""
    instance.server()
    flood = program(instance, "flood", "exec cat /dev/zero\n")
    kept = program(instance, "keptflood", "exec yes A = 1\n")
    hang = program(instance, "hang", "sleep 1000\n")
    garbage = program(instance, "garbage", "head -c 30000 /dev/urandom\necho\necho 'Bytes = \\377\\200x'\n")
    agent = start(instance, "sensors:\n" + "".join(
        f"  {name}: {{command: {path}, {more}timeout: 1s}}\n" for name, path, more in (
            ("flood", flood, "interval: 1s, "), ("kept", kept, ""), ("hang", hang, "interval: 1s, "),
            ("none", "/nonexistent/program", "interval: 1s, "), ("garbage", garbage, "interval: 1s, "))))
    for text in ("name=hang", "name=none", "name=flood", "name=kept", "name=garbage"):
        wait_until(lambda t=text: t in agent.output())
    for _ in range(3):
        instance.run(sh("true"))
    assert agent.running()


def test_a_health_check(instance):
    """It fails: the node does, for its words; what runs goes elsewhere. It passes: jobs come again. A restart of the server keeps it."""
    server = instance.server()
    path = program(instance, "check", f"[ ! -e {instance.work}/bad ] || {{ cat {instance.work}/bad; exit 1; }}\n")
    start(instance, f"health: {{command: {path}, interval: 1s, timeout: 5s}}\n")
    request = instance.submit(sh("sleep 600"))
    instance.wait_state(f"{request}.0", "running")
    start(instance, "", name="n2")
    instance.write("bad", "GPU 3 has fallen off the bus\nmore words\n")
    wait_until(lambda: node(instance)["state"] == "failed")
    assert (node(instance)["by"], node(instance)["reason"]) == ("the node", "GPU 3 has fallen off the bus")
    wait_until(lambda: instance.job(f"{request}.0").get("agent") == "n2")
    server.stop(signal.SIGKILL)
    instance.server()
    assert node(instance)["state"] == "failed"
    os.unlink(os.path.join(instance.work, "bad"))
    wait_until(lambda: node(instance)["state"] == "idle")
    instance.wait(instance.submit(sh("true", requirements='AgentName == "n1"')))
    instance.cli("node", "drain", "n1", "-r", "because")
    instance.write("bad", "again\n")
    wait_until(lambda: node(instance)["state"] == "failed")
    os.unlink(os.path.join(instance.work, "bad"))
    wait_until(lambda: node(instance)["state"] == "drained")
    instance.cli("rm", str(request))


def test_triggers(instance):
    """close_when keeps jobs away while it is true; drain_when drains, until an admin resumes the node."""
    instance.server()
    instance.write("free", "50")
    path = program(instance, "scratch", f"echo Free = $(cat {instance.work}/free)\n")
    start(instance, f"sensors:\n  s: {{command: {path}, interval: 1s, timeout: 5s}}\n"
                    "close_when: sFree < 100\ndrain_when: sFree < 10\n")
    wait_until(lambda: ad(instance).get("sfree") == 50)
    waits = instance.submit(sh("true"))
    wait_until(lambda: "its close_when is true: (sFree < 100)" in instance.cli("why", str(waits)) or
               "its close_when is true: sFree < 100" in instance.cli("why", str(waits)))
    instance.write("free", "500")
    instance.wait(waits)
    instance.write("free", "5")
    wait_until(lambda: node(instance)["state"] == "drained")
    assert "drain_when" in node(instance)["reason"] and node(instance)["by"] == "the node"
    instance.write("free", "500")
    wait_until(lambda: ad(instance).get("sfree") == 500)
    waits = instance.submit(sh("true"))
    assert node(instance)["state"] == "drained"
    instance.cli("node", "resume", "n1")
    instance.wait(waits)


def test_what_the_machine_is(instance):
    """Is in the node's record, which outlives the agent and the server."""
    server = instance.server()
    agent = start(instance, "node:\n  provider_id: i-0abc\n  image: debian-12\n  size: large\n  price: '0.12'\n")
    wait_until(lambda: node(instance)["machine"].get("image") == "debian-12")
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as f:
        boot = f.read().strip()
    agent.stop()
    server.stop(signal.SIGKILL)
    instance.server()
    assert node(instance)["machine"] == {"boot_id": boot, "provider_id": "i-0abc", "image": "debian-12", "size": "large",
                                         "price": "0.12"}
    assert "i-0abc" in instance.cli("node", "show", "n1")


@pytest.mark.parametrize("bad, word", [
    ("sensors: [a]", "sensors"), ("sensors: {a: b}", "command"), ("sensors: {a: {interval: 5s}}", "no command"),
    ("sensors: {1a: {command: /bin/true}}", "name"), ("sensors: {a: {command: true}}", "whole path"),
    ("sensors: {a: {command: /bin/true, interval: 1ms}}", "interval"), ("health: {command: /bin/true, other: 1}", "other"),
    ("health: /bin/true", "health"), ("node: {colour: red}", "colour"), ("close_when: 'a <'", "close_when"),
    ("drain_when: ')'", "drain_when")])
def test_bad_settings(instance, bad, word):
    instance.server()
    agent = start(instance, bad + "\n", wait=False)
    wait_until(lambda: not agent.running())
    assert word in agent.output(), agent.output()
