"""A Slurm that keeps accounts, in a database of its own: what is over long ago, who may run what, and how much of it."""
import os
import re
import shutil

import pytest

import agents
from drover import sh, wait_until
from slurm import Rest

pytest_plugins = ["batch_systems"]


@pytest.fixture
def one(instance, books):
    """A server and an agent with a queue of the cluster; calls of its tools are counted."""
    tools = os.path.join(instance.base, "tools")
    for tool in ("sacct", "sbatch", "squeue"):
        instance.write(f"{tools}/{tool}", f'#!/bin/sh\necho "$*" >>{tools}/{tool}.calls\nexec {shutil.which(tool)} "$@"\n', 0o755)
    instance.calls = lambda tool: len(instance.read(f"{tools}/{tool}.calls").splitlines()) if instance.exists(f"{tools}/{tool}.calls") else 0
    instance.env["PATH"] = f"{tools}:{instance.env['PATH']}"
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(books))
    agents.offering(instance, "books")
    return instance


def native(one, job):
    """What Slurm calls a job, as Drover knows it."""
    return wait_until(lambda: one.json("path", job)["hops"][0].get("native"))


def held(one, job):
    return one.wait_state(job, "held")["hold_reason"]


def until(path):
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


def by_account(**words):
    return {f"+{name}": f'"{value}"' for name, value in words.items()}


@pytest.mark.long
def test_the_accounting_is_asked_for_what_is_gone_and_waited_for(one, books):
    """While the agent is away jobs end in every way and leave the controller's memory; slurmdbd is away, too. Nothing is
    decided before it is back, and then everything is as it was."""
    flag, last = os.path.join(one.work, "flag"), os.path.join(one.work, "last")
    books.limit("high", GrpJobs=0)
    cancelled = one.submit(sh("sleep 600"))
    waiting = one.submit(sh("true", **by_account(SlurmQOS="high")))
    alone = one.submit(sh(f"echo $$ >>{one.work}/alone; {until(last)}", request_cpus="4"))
    wordless = one.submit(sh(f"echo $$ >>{one.work}/wordless; {until(flag)}"))
    greedy = one.submit(sh(f"{until(flag)}; sleep 0.1; exec /usr/bin/python3 -c 'x = [1] * 30000000; import time; time.sleep(600)'",
                           request_memory="40"))
    numbers = {r: native(one, f"{r}.0") for r in (cancelled, waiting, alone, wordless, greedy)}
    for request in (cancelled, alone, wordless, greedy):
        one.wait_state(f"{request}.0", "running")
    wait_until(lambda: one.written("alone") and one.written("wordless"))
    one.agent.kill()
    node = books.tool("squeue", "-h", "-j", numbers[alone], "-o", "%N").strip()
    books.tool("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    books.accounting.stop_daemon()
    one.write("flag", "")
    books.tool("scancel", numbers[cancelled], numbers[waiting])
    wait_until(lambda: not books.jobs("all"))
    os.unlink(flag)
    os.unlink(f"{one.base}/n1/jobs/{wordless}.0.1/.drover_step.0.done")
    # as when the signal of the cancel has ended the program, and not its script
    with open(f"{one.base}/n1/jobs/{cancelled}.0.1/.drover_step.0.done", "w", encoding="utf-8") as f:
        f.write("0m0.00s 0m0.00s\n0m0.00s 0m0.00s\nended 143 itself\n")
    try:
        one.agent = agents.start(one, agents.batch_queues(books))
        wait_until(lambda: one.calls("sacct") > 12)  # once a second; without an accounting all would be over by now
        jobs = [one.job(f"{r}.0") for r in numbers]
        assert not [j for j in jobs if j["state"] in ("held", "idle", "completed") or j["starts"] > 1], jobs
        assert "what is over cannot be asked about" in one.agent.output()
    finally:
        books.accounting.start()
        books.tool("scontrol", "update", f"NodeName={node}", "State=RESUME", code=None)
    assert "slurm: it was cancelled there (by 0)" in held(one, f"{cancelled}.0")
    assert "slurm: it was cancelled there (by 0)" in held(one, f"{waiting}.0")
    assert "memory" in held(one, f"{greedy}.0")
    for name, request in (("alone", alone), ("wordless", wordless)):
        wait_until(lambda n=name: len(one.read(n).split()) == 2)
        wait_until(lambda r=request: one.job(f"{r}.0")["starts"] == 2)
    assert "why=\"slurm: it ended without a word\"" in one.agent.output()
    one.write("flag", "")
    one.write("last", "")
    one.wait(alone, wordless)


def test_a_member_that_is_cancelled_while_it_waits_is_held(one, books):
    """Slurm forgets it at once, and has it in no accounts."""
    flag = os.path.join(one.work, "flag")
    request = one.submit(sh(until(flag), request_cpus="4", queue="queue 7"))

    def waiting():
        """all are there, and members of an array wait"""
        return len(books.jobs("running,pending")) == 7 and [line[0] for line in books.jobs("pending") if "_" in line[0]]

    wait_until(lambda: len(books.jobs("running")) == 4)
    books.tool("scancel", wait_until(waiting)[-1])

    def cancelled():
        """one is held, and the reason says so"""
        return [j for j in one.jobs(request) if j["state"] == "held" and "cancelled there" in j["hold_reason"]]

    assert len(wait_until(cancelled)) == 1
    one.write("flag", "")
    wait_until(lambda: len(one.history(request)) == 6)
    assert all(j["exit_code"] == 0 and j["starts"] == 1 for j in one.history(request))
    one.cli("rm", str(request))


def test_who_may_run_what(one, books):
    """A right account and QoS are what sacct has the job under; of a wrong one Slurm's words are the reason."""
    right = one.submit(sh("true", queue="queue 3", **by_account(SlurmAccount="biology", SlurmQOS="normal")))
    project = one.submit(sh("true", **by_account(BatchProject="biology")))
    plain = one.submit(sh("true"))
    one.wait(right, project, plain)
    books.manage("modify", "qos", "high", "set", "GrpJobs=-1")
    high = one.run(sh("true", **by_account(SlurmQOS="high")))
    assert "#SBATCH --qos=high\n" in one.cli("show", f"{high}.0", "--script")

    def written():
        """sacct has all of them, under Drover's names and the right accounts"""
        past = [p for p in books.past("JobID", "JobName", "Account", "QOS", "State") if p[1].startswith("drover-") and p[4] == "COMPLETED"]
        accounts = [(p[2], p[3]) for p in past]
        return accounts.count(("biology", "normal")) == 4 and accounts.count(("physics", "high")) == 1 and past

    past = wait_until(written)
    assert {p[0].split("_")[1] for p in past if p[2] == "biology" and "_" in p[0]} <= {"0", "1", "2"}  # three, or two and one alone
    account = one.submit(sh("true", **by_account(SlurmAccount="chemistry")))
    quality = one.submit(sh("true", **by_account(SlurmQOS="low")))
    assert "Invalid account" in held(one, f"{account}.0")
    assert "Invalid qos" in held(one, f"{quality}.0")


def test_too_many_are_sent_again(one, books):
    """A QoS has three jobs at most: the others wait, with Slurm's words, until there is room. Slurm is not asked all the time,
    and another QoS is not in their way."""
    flag = os.path.join(one.work, "flag")
    books.limit("normal", MaxSubmitJobsPerUser=3)
    try:
        request = one.submit(sh(f"echo $DROVER_JOB >>{one.work}/ran; {until(flag)}", queue="queue 9"))
        wait_until(lambda: len(books.jobs("running")) == 3)
        one.run(sh("true", **by_account(SlurmQOS="high")))

        def refused():
            """the six others are refused for now, and the path says why"""
            hops = [one.json("path", f"{request}.{n}")["hops"][0] for n in range(9)]
            return [n for n in range(9) if hops[n].get("word") == "refused for now" and "SubmitJobPerUserLimit" in hops[n]["said"]]

        left = wait_until(lambda: len(refused()) == 6 and refused())
        assert "SubmitJobPerUserLimit" in one.cli("why", f"{request}.{left[0]}")
        assert "hop 1: it waits there: sbatch: error: QOSMaxSubmitJobPerUserLimit" in one.cli("path", f"{request}.{left[0]}")
        sent, asked = one.calls("sbatch"), one.calls("squeue")
        wait_until(lambda: one.calls("squeue") > asked + 5)
        assert one.calls("sbatch") <= sent + 5
        one.cli("rm", f"{request}.{left[0]}")
        wait_until(lambda: len(one.history(request)) == 1)  # at once
        one.agent.kill()
        one.agent = agents.start(one, agents.batch_queues(books))
        one.write("flag", "")
        wait_until(lambda: len(one.history(request)) == 9)
    finally:
        books.limit("normal", MaxSubmitJobsPerUser=-1)
    ran = one.read("ran").split()
    assert len(ran) == len(set(ran)) == 8
    assert all(j["starts"] == 1 for j in one.history(request) if j["member"] != left[0])


def test_why_a_job_waits_there(one, books):
    books.limit("high", GrpJobs=1)
    try:
        flag = os.path.join(one.work, "flag")
        request = one.submit(sh(until(flag), queue="queue 2", **by_account(SlurmQOS="high")))
        wait_until(lambda: any(re.search(r"Pending in Slurm as \d+_\d+: QOSGrpJobsLimit\.", one.cli("why", f"{request}.{n}")) for n in range(2)))
        one.write("flag", "")
        one.wait(request)
    finally:
        books.limit("high", GrpJobs=-1)


def test_what_never_fits_is_held(one, books):
    """A limit that does not pass by itself is a refusal."""
    books.limit("high", MaxTRESPerJob="cpu=2", Flags="DenyOnLimit")
    try:
        request = one.submit(sh("true", request_cpus="3", **by_account(SlurmQOS="high")))
        assert "QOSMaxCpuPerJobLimit" in held(one, f"{request}.0")
    finally:
        books.limit("high", MaxTRESPerJob="cpu=-1", Flags=-1)


def test_the_accounting_is_asked_by_requests(instance, books):
    """As with sacct: slurmrestd, that asks the database, says that it is away; nothing is decided until it is back."""
    rest = Rest(books).start()
    try:
        instance.server()
        instance.agent = agents.start(instance, agents.batch_queues(rest))
        agents.offering(instance, "rest")
        job = f"{instance.submit(sh('sleep 600'))}.0"
        instance.wait_state(job, "running")
        number = native(instance, job)
        instance.agent.kill()
        books.accounting.stop_daemon()
        books.tool("scancel", number)
        wait_until(lambda: not books.jobs("all"))
        os.unlink(f"{instance.base}/n1/jobs/{job}.1/.drover_step.0.done")
        try:
            instance.agent = agents.start(instance, agents.batch_queues(rest))
            wait_until(lambda: "what is over cannot be asked about" in instance.agent.output())
            assert instance.job(job)["state"] not in ("held", "idle")
        finally:
            books.accounting.start()
        assert "slurm: it was cancelled there" in held(instance, job)
    finally:
        rest.stop()
