"""Machines that the queue starts and stops: the wishlist, the process provisioner, and a cloud that fails (cloud.py)."""
import json
import os
import signal
import time

import pytest

import cloud
import openapi
from drover import processes, sh, wait_until

CLOUD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cloud.py")
PROCESS = """
provision: {{wait: 0s, horizon: 20s{bounds}}}
provisioners:
  here:
    kind: process
    max_nodes: {max}
    poll: 1s
    period: 2s
    idle_after: 1s
    boot_limit: 60s
    retry: 1s
    shapes:
"""
SHAPES = """
      small: {cpus: 1, memory: 256M, price: 1}
      wide: {cpus: 4, memory: 512M, price: 3}
"""


def configure(instance, text):
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def nodes(instance, *states):
    return [n for n in instance.json("nodes")["nodes"] if n["instance"] and (not states or n["state"] in states)]


def plan(instance):
    said = instance.json("nodes", "plan")
    openapi.check_answer("GET", "/v1/wishlist", 200, said)
    return said


def machines(instance):
    """Processes of agents that were started for the queue."""
    return processes(os.path.join(instance.dir, "provision"))


def all_gone(instance):
    """Every node is retired, and nothing of their machines is left."""
    wait_until(lambda: nodes(instance) and not [n for n in nodes(instance) if n["state"] != "retired"], 120)
    wait_until(lambda: not machines(instance), 120)
    wait_until(lambda: plan(instance)["provisioners"][0]["instances"] == 0, 120)


def counted(instance, count, **more):
    """That many jobs, each of which writes a line when it ends; and the file of the lines."""
    lines = os.path.join(instance.work, f"ran{time.monotonic_ns()}")
    return instance.submit(sh(f"sleep 0.2; echo x >>{lines}", queue=f"queue {count}", **more)), lines


def ran(lines):
    with open(lines, encoding="utf-8") as f:
        return len(f.readlines())


def test_nodes_appear_and_go(instance):
    configure(instance, PROCESS.format(max=3, bounds="") + SHAPES)
    instance.server()
    assert [s["why"] for s in plan(instance)["shapes"]] == ["no job waits that needs more of it"] * 2
    assert [s["max"] for s in plan(instance)["shapes"]] == [3, 3]
    request, lines = counted(instance, 7)
    instance.wait(request)
    assert ran(lines) == 7 and len(nodes(instance)) <= 3
    openapi.check_answer("GET", "/v1/nodes", 200, instance.api("GET", "/v1/nodes"))
    all_gone(instance)
    said = instance.json("nodes", "show", nodes(instance)[0]["name"])
    assert (said["by"], said["reason"]) == ("the wishlist", "it is drained")
    assert plan(instance)["spent_month"] > 0
    assert [t for t in instance.json("token", "list")["tokens"] if t["kind"] == "agent" and t["uses"]] == []


def test_plan_explains(instance):
    """Who asked, which shape is not wished and why, and who waits for nothing that there is."""
    configure(instance, PROCESS.format(max=1, bounds=", budget_hour: 2") + SHAPES)
    instance.server()
    wait_until(lambda: plan(instance)["provisioners"][0]["listed"])
    large = instance.submit(sh("true", request_cpus=3))
    none = instance.submit(sh("true", request_cpus=64))
    said = plan(instance)
    assert said["wishes"] == [] and said["left_out"] == 1
    demand, = said["demands"]
    assert (demand["request"], demand["left"], demand["why"]) == (large, 1, "the budget of an hour does not allow it")
    text = instance.cli("nodes", "plan")
    assert "here/wide" in text and "the budget of an hour does not allow it" in text
    assert "the jobs that wait do not suit it" in text  # small
    instance.cli("rm", str(large), str(none))


@pytest.mark.long
def test_bounds_hold(instance):
    """Never more nodes than the hour's budget pays, never more spent than the month's; what waits is done all the same."""
    text = PROCESS.format(max=9, bounds=", budget_hour: 2, budget_month: 0.02") + SHAPES
    configure(instance, text.replace("period: 2s", "period: 6s"))
    instance.server()
    request = instance.submit(sh("sleep 0.3", queue="queue 400"))
    most = 0.0

    def spent():
        """the month's budget is spent, and all nodes are gone"""
        nonlocal most
        price = sum(n["instance"]["price"] for n in nodes(instance) if n["state"] != "retired")
        assert price <= 2
        most = max(most, plan(instance)["spent_month"])
        assert most <= 0.02
        return most > 0.01 and not nodes(instance, "booting", "idle", "busy", "draining", "drained")

    wait_until(spent, 150)
    assert {d["why"] for d in plan(instance)["demands"]} <= {"the budget of the month does not allow it"}
    wait_until(lambda: not machines(instance))
    instance.cli("rm", str(request))


def test_kill_at_each_step(instance, long):
    """kill -9 of the server whenever a state is seen for the first time, and at times between."""
    configure(instance, PROCESS.format(max=4, bounds="") + SHAPES)
    server = instance.server()
    seen, killed = set(), time.monotonic()
    for turn in range(3 if long else 1):
        request, lines = counted(instance, 12)
        wide, more = counted(instance, 3, request_cpus=4)

        def step():
            """all nodes are retired, and all jobs done"""
            nonlocal server, killed
            states = {n["state"] for n in nodes(instance)}
            new = states - seen
            if new or time.monotonic() - killed > 5:
                seen.update(new)
                server.stop(signal.SIGKILL)
                server = instance.server()
                killed = time.monotonic()
            left = sum(r["idle"] + r["running"] for r in instance.json("queue")["requests"])
            return states == {"retired"} and left == 0

        wait_until(step, 200)
        instance.wait(request, wide)
        assert (ran(lines), ran(more)) == (12, 3), turn
        all_gone(instance)
    assert {"retired"} < seen


# ---- a cloud


class Cloud:
    def __init__(self, instance):
        self.instance = instance
        self.folder = os.path.join(instance.base, "cloud")
        os.makedirs(self.folder)
        agent = instance.program("drover-agent")
        configure(instance, f"""
provision: {{wait: 0s, horizon: 20s}}
provisioners:
  sky:
    kind: exec
    command: [{CLOUD}, {self.folder}]
    server: unix:{instance.dir}/agents.sock
    max_nodes: 4
    poll: 1s
    timeout: 5s
    period: 2s
    idle_after: 1s
    boot_limit: 8s
    retry: 1s
    shapes:
      small: {{cpus: 1, memory: 256M, price: 1, with: {{agent: {agent}}}}}
      wide: {{cpus: 4, memory: 512M, price: 3, with: {{agent: {agent}}}}}
""")

    def faults(self, **faults):
        cloud.write(self.folder, "faults", faults)

    def machines(self):
        return cloud.machines(self.folder)

    def calls(self, verb):
        try:
            with open(os.path.join(self.folder, "calls"), encoding="utf-8") as f:
                return [c for c in map(json.loads, f) if c["call"] == verb]
        except FileNotFoundError:
            return []

    def all_gone(self):
        """No node but retired ones, no machine, and nobody who says that there is one."""
        instance = self.instance
        wait_until(lambda: not [n for n in nodes(instance) if n["state"] != "retired"], 120)
        wait_until(lambda: not self.machines(), 120)
        wait_until(lambda: plan(instance)["provisioners"][0]["instances"] == 0, 120)
        wait_until(lambda: not processes(self.folder))  # a list may be asked for just now

    def power_off(self):
        for one in self.machines():
            cloud.power_off(self.folder, one["instance"])


@pytest.fixture
def sky(instance):
    one = Cloud(instance)
    yield one
    for daemon in list(instance.daemons):
        daemon.stop(signal.SIGKILL)
        instance.daemons.remove(daemon)
    one.power_off()


@pytest.mark.parametrize("fault", [
    "never_boots", pytest.param("boots_twice", marks=pytest.mark.long), "lost_response", "throttled", pytest.param("garbage", marks=pytest.mark.long),
    "half_a_list", "lies", "cannot_be_deleted", pytest.param("slow", marks=pytest.mark.long)])
def test_a_cloud_that_fails(instance, sky, fault):
    """While the fault lasts, and after: jobs are done, each once, and no machine is left."""
    sky.faults(**{fault: 2 if fault == "slow" else True})
    instance.server()
    request, lines = counted(instance, 4)
    if fault in ("never_boots", "lost_response"):
        wait_until(lambda: [n for n in nodes(instance, "retired")], 60)
    elif fault in ("throttled", "garbage", "half_a_list"):
        wait_until(lambda: plan(instance)["provisioners"][0]["error"], 60)
        assert not sky.calls("start")  # what there is was not known
    elif fault == "cannot_be_deleted":
        instance.wait(request)
        wait_until(lambda: plan(instance)["provisioners"][0]["unwanted"] > 0, 60)
        assert sky.machines()
    elif fault == "boots_twice":
        wait_until(lambda: sky.calls("stop"), 60)
    else:
        instance.wait(request)
    sky.faults()
    instance.wait(request)
    assert ran(lines) == 4
    sky.all_gone()


def test_a_list_names_a_machine_twice(instance, sky):
    """As pages of a list do that machines move between: it is one machine, and not one too many to be stopped."""
    sky.faults(pages_repeat=True)
    instance.server()
    go = os.path.join(instance.work, "go")
    request = instance.submit(sh(f"while [ ! -e {go} ]; do sleep 0.1; done"))
    instance.wait_state(f"{request}.0", "running")
    lists = len(sky.calls("list"))
    wait_until(lambda: len(sky.calls("list")) > lists + 4, 60)
    assert not sky.calls("stop") and len(sky.machines()) == 1
    assert (plan(instance)["provisioners"][0]["instances"], plan(instance)["provisioners"][0]["unwanted"]) == (1, 0)
    instance.write("go", "")
    instance.wait(request)
    sky.all_gone()


def test_a_list_of_machines_that_nobody_wants(instance, sky):
    """All are asked to stop, a few at a time: each stop is a process of the server's."""
    sky.faults(strangers=40, slow_stop=1)
    instance.server()
    most = 0

    def all_asked():
        nonlocal most
        most = max(most, len(processes(f"{sky.folder}\0stop")))
        return len({c["instance"] for c in sky.calls("stop")}) == 40

    wait_until(all_asked, 120)
    assert 0 < most <= 8
    sky.faults()
    sky.all_gone()


def test_a_machine_vanishes(instance, sky):
    """Its job goes back as soon as lists show that it is gone, long before a lease ends, and runs on another."""
    instance.server()
    go = os.path.join(instance.work, "go")
    request = instance.submit(sh(f"while [ ! -e {go} ]; do sleep 0.1; done"))
    instance.wait_state(f"{request}.0", "running")
    first = instance.job(f"{request}.0")["fence"] if "fence" in instance.job(f"{request}.0") else None
    sky.power_off()
    wait_until(lambda: nodes(instance, "retired") or len(sky.calls("start")) > 1, 60)
    wait_until(lambda: len(sky.calls("start")) > 1, 60)
    instance.wait_state(f"{request}.0", "running", seconds=60)
    assert first is None or instance.job(f"{request}.0")["fence"] != first
    instance.write("go", "")
    instance.wait(request)
    sky.all_gone()


def test_the_next_best_shape(instance, sky):
    """One without capacity falls to the next best; who needs just that one waits for it, and nobody else does."""
    sky.faults(no_capacity=["small"])
    instance.server()
    request, lines = counted(instance, 2)
    wait_until(lambda: plan(instance)["shapes"][0]["closed"] == "no small is left" or nodes(instance, "idle", "busy"))
    instance.wait(request)
    assert ran(lines) == 2
    assert {c["shape"] for c in sky.calls("start")} == {"small", "wide"}
    sky.all_gone()


def test_the_plan_says_how_long(instance, sky):
    """How long a job's files take at a new machine, whose links nobody has measured, and when the jobs will have ended."""
    sky.faults(garbage=True)  # nothing is started, because nobody knows what there is
    instance.server()
    request = instance.submit(sh("true", transfer_input_files="https://far.example/f", request_cpus=1, queue="queue 2", **{
        "+TransferInputSizes": '"125000000"', "+ExpectedRunTime": 30}))
    wish, = plan(instance)["wishes"]
    assert (wish["request"], wish["jobs"], wish["fetch_ms"]) == (request, 2, 10050)
    assert wish["lasts_ms"] >= 40050
    assert "each of which fetches files there for 10s; they end in about " in instance.cli("nodes", "plan")
    instance.cli("rm", str(request))
    assert not sky.machines()


def test_what_a_program_is_given(instance, sky):
    """A shape's settings are texts, as 0x1 and 1.10 are names of things, but for true and false."""
    with open(os.path.join(instance.dir, "droverd.yaml"), encoding="utf-8") as f:
        text = f.read()
    configure(instance, text.replace("with: {", "with: {spot: false, more: [true, 'true', 1.10, {a: off}], "))
    instance.server()
    instance.run(sh("true"))
    assert sky.calls("start")[0]["price"] == 1
    given = sky.calls("start")[0]["with"]
    assert (given["spot"], given["more"]) == (False, [True, "true", "1.10", {"a": "off"}])
    sky.all_gone()


def test_what_is_being_stopped_still_costs(instance, sky):
    """A retired node's machine counts in the hour's budget until a list no longer shows it."""
    with open(os.path.join(instance.dir, "droverd.yaml"), encoding="utf-8") as f:
        text = f.read()
    configure(instance, text.replace("horizon: 20s", "horizon: 20s, budget_hour: 3"))
    instance.server()
    go = os.path.join(instance.work, "go")
    first = instance.submit(sh(f"while [ ! -e {go} ]; do sleep 0.1; done"))
    instance.wait_state(f"{first}.0", "running")
    second = instance.submit(sh("true", request_cpus=4))
    wait_until(lambda: plan(instance)["demands"][0]["why"] == "the budget of an hour does not allow it")
    sky.faults(slow_list=4)
    instance.write("go", "")
    instance.wait(first)
    wait_until(lambda: nodes(instance, "retired"), 60)
    wait_until(lambda: [m["shape"] for m in sky.machines()] == ["wide"], 60)
    assert sky.calls("stop") and len(sky.calls("start")) == 2
    sky.faults()
    instance.wait(second)
    sky.all_gone()


def test_a_drained_machine_ends_with_the_month(instance):
    """An admin has drained it, and it costs: it is stopped before a period begins that the month's budget does not pay."""
    configure(instance, PROCESS.format(max=1, bounds=", budget_month: 0.01") + SHAPES)
    instance.server()
    instance.run(sh("true"))
    name = nodes(instance)[0]["name"]
    instance.cli("node", "drain", name, "-r", "mine")
    wait_until(lambda: nodes(instance, "retired"), 60)
    assert nodes(instance)[0]["reason"] == "the budget of the month is spent"
    assert plan(instance)["spent_month"] <= 0.01
    samples = dict(line.rsplit(" ", 1) for line in instance.call("GET", "/metrics")[1].decode().splitlines() if line and line[0] != "#")
    assert float(samples["drover_provision_budget"]) == 0.01 and 0 < float(samples["drover_provision_spent"]) <= 0.01
    wait_until(lambda: not machines(instance))


def test_killed_while_a_start_is_answered(instance, sky):
    """The machine is there, and its start was answered to nobody: it is used, or found by its tag and stopped."""
    sky.faults(slow_start=3)
    server = instance.server()
    request, lines = counted(instance, 2)
    wait_until(sky.machines)
    server.stop(signal.SIGKILL)
    sky.faults()
    server = instance.server()
    instance.wait(request)
    assert ran(lines) == 2
    wait_until(lambda: nodes(instance, "draining", "drained", "retired"), 60)
    server.stop(signal.SIGKILL)
    instance.server()
    sky.all_gone()


def test_what_the_program_says_of_shapes(instance, sky):
    sky.faults(offers=[{"shape": "small", "price": 0.25, "most": 1}, {"shape": "wide", "closed": "maintenance"}])
    instance.server()
    wait_until(lambda: plan(instance)["shapes"][0]["price"] == 0.25)
    said = plan(instance)["shapes"]
    assert said[0]["max"] == 1 and said[1]["closed"] == "maintenance"


def test_a_token_is_for_one_boot(instance, sky):
    """It joins once, under its node's name, and not at all when the node is retired or its time is over."""
    sky.faults(never_boots=True)
    instance.server()
    request, _ = counted(instance, 1)
    one = wait_until(sky.machines)[0]
    token, = nodes(instance, "booting")

    def join(name, machine):
        agent = instance.start("drover-agent", "--server", f"unix:{instance.dir}/agents.sock", "--dir",
                               os.path.join(instance.base, name), "--name", name, "--token-file",
                               os.path.join(sky.folder, machine["instance"] + ".token"))
        return agent

    agent = join("other", one)
    instance.cli("nodes")
    wait_until(lambda: nodes(instance, "idle", "busy"))  # under the name of the token, whatever it said
    assert nodes(instance, "idle", "busy")[0]["name"] == token["name"]
    instance.wait(request)
    second = join("second", one)
    wait_until(lambda: not second.running())
    instance.daemons.remove(second)
    instance.cli("nodes", "retire", token["name"])
    wait_until(lambda: not agent.running())
    instance.daemons.remove(agent)
    third, _ = counted(instance, 1)
    late = wait_until(lambda: [m for m in sky.machines() if m["instance"] != one["instance"]])[0]
    instance.cli("nodes", "retire", wait_until(lambda: nodes(instance, "booting"))[0]["name"])
    refused = join("third", late)
    wait_until(lambda: not refused.running())
    instance.daemons.remove(refused)
    assert "token" in refused.output()
    instance.cli("rm", str(third))
    sky.faults()
    sky.all_gone()


BAD = {
    "provisioners: {c: {kind: ec2, shapes: {}}}": "kind must be exec or process",
    "provisioners: {c: {kind: process}}": "c needs shapes",
    "provisioners: {C: {kind: process, shapes: {}}}": "C is not a name here",
    "provisioners: {c: {kind: exec, shapes: {}}}": "c needs command",
    "provisioners: {c: {kind: exec, command: /x, shapes: {}}}": "c needs server",
    "provisioners:\n  c:\n    kind: process\n    shapes:\n      s: {memory: 1G}": "droverd.yaml:5: s needs cpus",
    "provisioners: {c: {kind: process, shapes: {s: {cpus: 1, memory: 1G, min: 3, max: 2}}}}": "min must not be more than max",
    "provisioners: {c: {kind: process, shapes: {s: {cpus: 1, memory: 1G, attributes: 'a ='}}}}": "attributes must be",
    "provisioners: {c: {kind: process, poll: 0s, shapes: {}}}": "poll must be at least a second",
    "provision: {budget_hour: -1}": "budget_hour must be from 0",
    "provision: {accounts: {a: x}}": "'x' is not a whole number",
}


@pytest.mark.parametrize("text", BAD)
def test_settings_that_are_wrong(instance, text):
    configure(instance, text + "\n")
    server = instance.start("droverd", "--dir", instance.dir)
    wait_until(lambda: not server.running())
    instance.daemons.remove(server)
    assert BAD[text] in server.output() and "droverd.yaml:" in server.output()
