"""Jobs that have ended and stay in the queue: leave_in_queue."""
import time

from condor import Condor
from drover import sh, wait_until


def listed(instance, *words):
    """The condor_q's of these: [(job, status)]"""
    out = Condor(instance)("q", *words, "-af", "ClusterId", "ProcId", "JobStatus")
    return [(f"{c}.{p}", int(s)) for c, p, s in (line.split() for line in out.splitlines())]


def test_until_it_is_removed(instance):
    instance.up()
    condor = Condor(instance)
    r = condor.submit(sh("exit $(Process)", leave_in_queue="JobStatus == 4 && ExitCode > 0", queue="queue 3"))
    plain = condor.submit(sh("exit 0"))
    instance.wait(r, plain, code=1)
    want = [(f"{r}.1", 4), (f"{r}.2", 4)]
    assert listed(instance) == want and listed(instance, r) == want
    assert condor("q", "-nobatch").count(" C  ") == 2
    assert f" {r}.0-2" in condor("q") and "2 completed" in condor("q")
    assert condor("q", r, "-constraint", "JobStatus == 4 && ExitCode == 2", "-af", "ProcId").split() == ["2"]
    assert [j["id"] for j in instance.json("queue", "--jobs")["jobs"]] == [f"{r}.1", f"{r}.2"]
    assert [q["id"] for q in instance.json("queue")["requests"]] == [r]
    assert len(instance.history(r)) == 3
    # Also when the server comes back.
    instance.stop()
    instance.up()
    assert listed(instance) == want
    condor("rm", f"{r}.1")
    assert listed(instance) == want[1:]
    condor("rm", "-constraint", "JobStatus == 4")
    assert listed(instance) == [] and instance.json("queue")["requests"] == []
    assert len(instance.history(r)) == 3


def test_until_its_time(shared):
    condor = Condor(shared)
    r = condor.submit(sh("exit 0", leave_in_queue="time() - CompletionDate < 3"))
    shared.wait(r)
    ended = int(condor("history", r, "-af", "CompletionDate"))
    seen = listed(shared, r)
    assert seen == [(f"{r}.0", 4)] or time.time() >= ended + 3
    wait_until(lambda: listed(shared, r) == [])
    assert time.time() >= ended + 3


def test_a_removed_job(shared):
    condor = Condor(shared)
    r = condor.submit(sh("sleep 600", leave_in_queue="true", queue="queue 2"), "-a", "request_cpus = 1 + 9999 * $(Process)")
    shared.wait_state(f"{r}.0", "running")
    condor("rm", r)
    wait_until(lambda: listed(shared, r) == [(f"{r}.0", 3)])
    assert condor("rm", r).startswith("All jobs in cluster")
    assert listed(shared, r) == []
