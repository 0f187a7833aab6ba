"""Meta jobs: the best place by time and cost is reserved for a job, the reservation moves and survives kill -9, the fifteen steps;
and jobs of several parts that start together, each at a place of its own."""
import os

import pytest

import agents
import openapi
from drover import sh, wait_until

pytest_plugins = ["batch_systems"]

BANK = """bank:
  empty: hold
  lien: 100s
  rates:
    - {place: n1, charge: "1000 + WallSeconds"}
    - charge: "10 + WallSeconds"
"""
OWN = {"accounting_group": "physics"}
CONFIG = "jobs_max: 4\ncpus: 1\nkill_grace: 1s\n"
FIFTEEN = [("user", "meta scheduler"), ("meta scheduler", "schedulers"), ("schedulers", "allocation manager"), ("meta scheduler", "scheduler"),
           ("meta scheduler", "queue manager"), ("queue manager", "scheduler"), ("scheduler", "node manager"), ("scheduler", "allocation manager"),
           ("scheduler", "queue manager"), ("queue manager", "process manager"), ("process manager", "queue manager"),
           ("queue manager", "scheduler"), ("queue manager", "allocation manager"), ("scheduler", "meta scheduler"), ("meta scheduler", "user")]
ELEVEN = [("user", "queue manager"), ("queue manager", "allocation manager"), ("queue manager", "scheduler"), ("scheduler", "node manager"),
          ("scheduler", "allocation manager"), ("scheduler", "queue manager"), ("queue manager", "process manager"),
          ("process manager", "queue manager"), ("queue manager", "scheduler"), ("queue manager", "allocation manager"), ("queue manager", "user")]


def settings(instance, text):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def begin(instance, *names, text=""):
    settings(instance, text)
    instance.server()
    for name in names:
        place(instance, name)


def place(instance, name, more=""):
    process = agents.start(instance, CONFIG + more, name)
    agents.queues(instance, 1, name)
    return process


def opened(instance, amount):
    instance.cli("bank", "account", "physics", "--new", "--member", "*@local=user")
    instance.cli("bank", "deposit", "physics", str(amount))


def trace(instance, request, steps):
    """The steps of the job, each of which has a time, in order."""
    said = instance.json("log", "--trace", f"{request}.0")["steps"]
    assert [s["step"] for s in said] == list(range(1, len(steps) + 1))
    assert [(s["from"], s["to"]) for s in said] == steps
    times = [s["at_ms"] for s in said]
    assert None not in times and times == sorted(times), said
    return said


def blocker(instance, name, seconds=600):
    """A job that fills that agent, until the file go-NAME is there."""
    go = os.path.join(instance.work, f"go-{name}")
    request = instance.submit(sh(f"while [ ! -e {go} ]; do sleep 0.05; done", requirements=f'TARGET.AgentName == "{name}"',
                                 allowed_execute_duration=seconds))
    instance.wait_state(f"{request}.0", "running")
    return request


def where(instance, request):
    return [j["agent"] for j in sorted(instance.history(request), key=lambda j: j["member"])]


def test_the_fifteen_steps(instance):
    """Of two places that are free the cheap one is reserved; every step has its time, and the account has paid once."""
    begin(instance, "n1", "n2", text=BANK)
    opened(instance, 5000)
    request = instance.submit(sh("true", meta="yes", prefer="cost", **OWN))
    instance.wait(request)
    assert where(instance, request) == ["n2"]
    steps = trace(instance, request, FIFTEEN)
    assert steps[3]["details"].startswith("reserved at default of n2: room at once, the result in ")
    assert "for 110; of 2 places" in steps[3]["details"] and "prefer = cost" in steps[3]["details"]
    assert steps[4]["details"] == "authorised at default of n2"
    assert steps[7]["details"] == "lien 110 of physics" and steps[8]["details"] == "default of n2"
    charge, = [m for m in instance.json("bank", "statement", "physics")["movements"] if m["what"] == "charge"]
    assert steps[12]["details"] == f"charge {-charge['amount']} of physics" and 10 <= -charge["amount"] < 110
    assert "exit 0" in steps[10]["details"]
    assert instance.json("bank", "balance", "physics")["held"] == 0
    assert "stages and queues the job" in instance.cli("log", "--trace", str(request))
    assert instance.json("reserve", "list")["reservations"] == []
    openapi.check_answer("GET", "/v1/jobs/{id}/log", 200, instance.api("GET", f"/v1/jobs/{request}.0/log"))
    # a job that is none has the eleven
    plain = instance.submit(sh("true", **OWN))
    instance.wait(plain)
    trace(instance, plain, ELEVEN)
    # one that no place can be paid for is held, and one that cannot pay for the dear place goes to the cheap one
    instance.cli("bank", "withdraw", "physics", str(instance.json("bank", "balance", "physics")["available"] - 200))
    request = instance.submit(sh("true", meta="yes", prefer="time", **OWN))
    instance.wait(request)
    assert where(instance, request) == ["n2"]
    instance.cli("bank", "withdraw", "physics", str(instance.json("bank", "balance", "physics")["available"] - 5))
    request = instance.submit(sh("true", meta="yes", **OWN))
    instance.wait_state(f"{request}.0", "held")
    assert "ask for a deposit" in instance.cli("why", str(request))


def test_a_reservation_moves_and_survives(instance):
    """Reserved at a busy place, seen by why, show, path and the list of reservations; the same after kill -9; moved when a place
    comes that is free; held jobs lose theirs."""
    begin(instance, "n1")
    first = blocker(instance, "n1")
    request = instance.submit(sh("true", meta="yes", queue="queue 2", allowed_execute_duration=60))
    job = f"{request}.0"
    instance.wait_state(job, "reserved")
    instance.wait_state(f"{request}.1", "reserved")

    def look():
        said = instance.api("GET", f"/v1/jobs/{job}/why")
        openapi.check_answer("GET", "/v1/jobs/{id}/why", 200, said)
        return said["meta"]
    meta = look()
    assert (meta["agent"], meta["queue"], meta["moves"], meta["parts"]) == ("n1", "default", 0, 1)
    why = instance.cli("why", job)
    assert "It is reserved: room at queue default of agent n1 is kept for it, starting in " in why and "prefer = time" in why
    assert "room at queue default of agent n1 is kept for it" in instance.cli("show", job)
    assert "default of n1 is reserved for it; when that was made: room in " in instance.cli("path", job)
    reservations = instance.json("reserve", "list")["reservations"]
    openapi.check_answer("GET", "/v1/reservations", 200, {"reservations": reservations})
    assert [r["job"] for r in reservations] == [job, f"{request}.1"] and reservations[0]["id"] == meta["reservation"]
    assert reservations[1]["start_ms"] >= reservations[0]["end_ms"]
    assert sorted(j["state"] for j in instance.jobs(request)) == ["reserved", "reserved"]
    assert len(instance.jobs(request, "&state=idle")) == 2 == len(instance.jobs(request, "&state=reserved"))
    assert instance.json("info", "jobs", "--constraint", 'DroverReserved == "default of n1"')

    instance.kill_server()
    instance.server()
    agents.queues(instance, 1)
    assert {k: look()[k] for k in ("reservation", "agent", "start_ms")} == {k: meta[k] for k in ("reservation", "agent", "start_ms")}
    instance.cli("hold", f"{request}.1")
    assert [r["job"] for r in instance.json("reserve", "list")["reservations"]] == [job]

    place(instance, "n2")
    wait_until(lambda: where(instance, request) == ["n2"])
    log = [e["text"].split(":")[0] for e in instance.events(job) if e["event"] == "reservation"]
    assert log == ["reserved at default of n1", "moved at default of n2", "authorised at default of n2"]
    instance.cli("rm", f"{request}.1")
    instance.write("go-n1", "")
    instance.wait(first)
    assert instance.json("reserve", "list")["reservations"] == []


def test_parts_start_together(instance):
    """Two parts, each for another place, one of which is busy: neither runs until both can, and then at one time; kill -9 in between."""
    begin(instance, "n1", "n2")
    first = blocker(instance, "n1")
    text = f"""parts = together
executable = /bin/sh
request_memory = 32 MB
request_disk = 1 MB
allowed_execute_duration = 60
requirements = TARGET.AgentName == "n1"
arguments = "-c 'date +%s%N >{instance.work}/a; while [ ! -e {instance.work}/end ]; do sleep 0.05; done'"
queue
requirements = TARGET.AgentName == "n2"
arguments = "-c 'date +%s%N >{instance.work}/b; while [ ! -e {instance.work}/end ]; do sleep 0.05; done'"
queue
"""
    request = instance.submit(text)
    for job in (f"{request}.0", f"{request}.1"):
        instance.wait_state(job, "reserved")
    reserved = instance.json("reserve", "list")["reservations"]
    assert [r["places"][0]["agent"] for r in reserved] == ["n1", "n2"] and reserved[0]["start_ms"] == reserved[1]["start_ms"]
    why = instance.cli("why", f"{request}.1")
    assert "start together" in why and "for all 2 parts of the job from one time on" in why
    after = instance.submit(sh("sleep 3600", requirements='TARGET.AgentName == "n2"', allowed_execute_duration=3600))
    instance.kill_server()
    instance.server()
    agents.queues(instance, 1, "n1")
    agents.queues(instance, 1, "n2")
    assert [r["id"] for r in instance.json("reserve", "list")["reservations"]] == [r["id"] for r in reserved]
    assert not instance.exists("b") and instance.job(f"{after}.0")["state"] == "idle"  # it would run into what is reserved
    instance.write("go-n1", "")
    instance.wait(first)
    for job in (f"{request}.0", f"{request}.1"):
        instance.wait_state(job, "running")
    wait_until(lambda: instance.exists("a") and instance.exists("b"))
    assert instance.json("reserve", "list")["reservations"] == []
    instance.write("end", "")
    instance.wait(request)
    assert where(instance, request) == ["n1", "n2"]
    instance.cli("rm", str(after))


def test_by_settings_and_what_is_refused(instance):
    """An initializer makes jobs meta jobs; what makes no sense is refused with its line."""
    begin(instance, "n1", text="initializers:\n  best: {attributes: {Meta: 'true', MetaPrefer: '0.3'}}\n")
    request = instance.submit(sh("true", job_initializer="best"))
    instance.wait(request)
    log = [e["text"] for e in instance.events(f"{request}.0") if e["event"] == "reservation"]
    assert len(log) == 2 and "prefer = 0.3" in log[0]
    for wrong, said in (({"prefer": "cost"}, "write meta = yes as well"), ({"meta": "yes", "prefer": "both"}, "none of time, cost, and a number"),
                        ({"meta": "perhaps"}, "meta"), ({"parts": "3"}, "parts can only be together"),
                        ({"meta": "yes", "gang_size": "1"}, "meta job"), ({"meta": "yes", "reservation": "1"}, "its own reservation")):
        out = instance.cli("submit", "-", stdin=sh("true", **wrong), code=None)
        assert out.code != 0 and said in out.err, (wrong, out)


def test_a_far_server_is_a_place(two):
    """The queue of another Drover server is compared as any place is, and what is reserved for it there is this server's own matter: the
    job is an ordinary one over there."""
    request = two.submit(sh("true", meta="yes"))
    two.wait(request)
    steps = [s for s in two.json("log", "--trace", str(request))["steps"] if s["at_ms"]]
    assert [s["step"] for s in steps] == [1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15]  # without a bank
    assert "of 1 place that could run it" in steps[2]["details"] and "of n1" in steps[2]["details"]
    there = two.far.history()
    assert len(there) == 1 and "Meta" not in two.far.api("GET", f"/v1/history?id={there[0]['request']}&attributes=Meta")["jobs"][0]["ad"]


def test_over_slurm_and_an_agent(instance, clusters):
    """Two Slurm clusters and an agent's own machine, each at a price and with money limits: a job to the queue manager takes the eleven
    steps, a meta job the fifteen, and goes to the cheapest place that its account can pay for; parts go to both clusters at once."""
    one, two = clusters
    settings(instance, """bank:
  empty: hold
  lien: 100s
  rates:
    - {place: n1/alpha, charge: "50 + WallSeconds"}
    - {place: n1/beta, charge: "10 + WallSeconds"}
    - charge: "1000 + WallSeconds"
""")
    instance.server()
    agents.start(instance, agents.batch_queues(one, two))
    agents.queues(instance, 2)
    place(instance, "n2")
    opened(instance, 5000)
    wait_until(lambda: all(q["free"]["cpus"] > 0 for q in agents.queues(instance, 2).values()))

    def ran(**more):
        request = instance.submit(sh("true", **OWN, **more))
        instance.wait(request)
        return request, instance.history(request)[0]["queue"]
    plain, _ = ran(requirements='TARGET.QueueName == "alpha"')
    trace(instance, plain, ELEVEN)
    cheap, queue = ran(meta="yes", prefer="cost")
    assert queue == "beta"
    steps = trace(instance, cheap, FIFTEEN)
    assert "of 3 places that could run it" in steps[3]["details"] and "for 110;" in steps[3]["details"]
    assert steps[7]["details"] == "lien 110 of physics"
    # with so much money the machine of the agent is out of reach, whatever it is worth
    instance.cli("bank", "withdraw", "physics", str(instance.json("bank", "balance", "physics")["available"] - 400))
    _, queue = ran(meta="yes", prefer="time")
    assert queue in ("alpha", "beta")
    request = instance.submit("parts = together\nexecutable = /bin/true\ntransfer_executable = false\nrequest_memory = 32 MB\n"
                              "request_disk = 1 MB\naccounting_group = physics\nrequirements = TARGET.QueueName == \"alpha\"\nqueue\n"
                              "requirements = TARGET.QueueName == \"beta\"\nqueue\n")
    instance.wait(request)
    assert sorted(j["queue"] for j in instance.history(request)) == ["alpha", "beta"]
    trace(instance, request, FIFTEEN)
    said = instance.json("bank")
    assert said["issued"] - said["earned"] == sum(a["balance"] for a in said["accounts"]) and instance.json("bank", "liens")["liens"] == []
    instance.cli("bank", "withdraw", "physics", str(instance.json("bank", "balance", "physics")["available"] - 20))
    request = instance.submit(sh("true", meta="yes", **OWN))
    instance.wait_state(f"{request}.0", "held")


@pytest.mark.parametrize("sooner", ["alpha", "beta"])
def test_slurms_estimate_decides(instance, clusters, sooner):
    """Both clusters are full of other people's jobs, of which this server knows nothing but what sbatch --test-only says: the meta job is
    reserved where Slurm says that it starts sooner, and moves when the other cluster is free before."""
    later, = {"alpha", "beta"} - {sooner}
    instance.server()
    agents.start(instance, agents.batch_queues(*clusters))
    agents.queues(instance, 2)
    minutes = {sooner: 10, later: 30}
    others = {c.name: c.tool("sbatch", "--parsable", "-N4", "-n16", "--mem-per-cpu=10", f"--time={minutes[c.name]}", "--output=/dev/null",
                             "--wrap=sleep 3600").strip() for c in clusters}

    def waits():
        """the queues' ads say how long a job would wait"""
        ads = {q["name"]: q["ad"].get("QueueWait") or 0 for a in instance.agents("connected") for q in a["queues"]}
        return 300 < ads[sooner] < 700 and ads[later] > 1000
    wait_until(waits)
    request = instance.submit(sh("true", meta="yes", prefer="time", allowed_execute_duration=60))
    job = f"{request}.0"
    instance.wait_state(job, "reserved")
    meta = instance.json("why", job)["meta"]
    assert meta["queue"] == sooner and meta["start_ms"] > instance.api("GET", f"/v1/requests/{request}")["submitted_ms"] + 240000
    log = [e["text"] for e in instance.events(job) if e["event"] == "reservation"]
    assert log[0].startswith(f"reserved at {sooner} of n1: room in ") and "of 2 places" in log[0], log
    for c in clusters:
        if c.name == later:
            c.tool("scancel", others[later])
    instance.wait(request)
    assert instance.history(request)[0]["queue"] == later
    assert [e["text"].split(":")[0] for e in instance.events(job) if e["event"] == "reservation"][1] == f"moved at {later} of n1"
    for c in clusters:
        c.tool("scancel", "-u", "root")
        wait_until(lambda c=c: not c.jobs("pending,running,completing"))


@pytest.mark.parametrize("sooner", ["far", "here"])
def test_a_far_servers_queue_decides(two, sooner):
    """Another server's place and one here are both busy: the meta job is reserved where there is room sooner, by what the far server
    says of its queue, and moves to the other one when that is free before."""
    seconds = {"far": 3600, "here": 3600, sooner: 600}
    place(two, "n2")
    full = {"far": two.far.submit(sh(f"while [ ! -e {two.work}/go-far ]; do sleep 0.05; done", allowed_execute_duration=seconds["far"], request_cpus=8)),
            "here": blocker(two, "n2", seconds["here"])}
    two.far.wait_state(f"{full['far']}.0", "running")

    def wait_there():
        """the far server has said how long a job would wait"""
        return next((q["ad"].get("QueueWait") or 0 for a in two.agents("connected") for q in a["queues"] if q["name"] == "east"), 0) > seconds["far"] / 2
    wait_until(wait_there)
    request = two.submit(sh("true", meta="yes", prefer="time", allowed_execute_duration=60))
    job = f"{request}.0"
    queues = {"far": "east", "here": "default"}
    two.wait_state(job, "reserved")
    meta = two.json("why", job)["meta"]
    assert meta["queue"] == queues[sooner] and meta["start_ms"] > two.api("GET", f"/v1/requests/{request}")["submitted_ms"] + 240000
    other = "here" if sooner == "far" else "far"
    two.write("go-n2" if other == "here" else "go-far", "")
    two.wait(request)
    assert two.history(request)[0]["queue"] == queues[other]
    assert [e["text"].split(" of ")[0] for e in two.events(job) if e["event"] == "reservation"][:2] == [f"reserved at {queues[sooner]}", f"moved at {queues[other]}"]
    two.write("go-far", "")
    two.write("go-n2", "")
    two.wait(full["here"])
    two.far.wait(full["far"])
