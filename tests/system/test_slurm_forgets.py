"""A slurmctld that was killed and has lost its memory: it counts its jobs from one again, so numbers that are ours are given to
others. A number is ours only with its submission's name, which no other ever has."""
import contextlib
import os
import shutil
import signal

import pytest

import agents
from drover import processes, sh, wait_until
from slurm import slurm_clusters
from test_kill import FINAL
from test_outlive import beating, runs


@pytest.fixture
def forgetful(request):
    with slurm_clusters(request.config.drover_tmp, {"name": "gamma", "nodes": 2}) as (one,):
        yield one


@pytest.fixture
def one(instance, forgetful):
    """A server whose leases are long, and an agent that asks the cluster seldom."""
    path = os.path.join(instance.base, "droverd.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("lease: 5m\n")
    instance.server("--config", path)
    instance.flag = os.path.join(instance.work, "flag")
    instance.agent = None
    return instance


def queue(instance, cluster, poll):
    cluster.settings["poll"] = str(poll)
    instance.agent = agents.start(instance, agents.batch_queues(cluster))
    agents.offering(instance, cluster.name)


def forget(cluster):
    """Killed, with nothing of what it knew on the disk."""
    cluster.controller.process.send_signal(signal.SIGKILL)
    cluster.controller.process.wait(90)
    state = os.path.join(cluster.dir, "state")
    for name in os.listdir(state):
        path = os.path.join(state, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    cluster.start_controller()


@contextlib.contextmanager
def unheard(cluster):
    """The node of the one job that runs hears nothing meanwhile, so the new controller does not end what it knows nothing of, and has others'
    jobs begin on the other node. On the same node it would take the old job's end for the end of whichever job has the number by then."""
    node = cluster.tool("squeue", "-h", "-t", "running", "-o", "%N").strip()
    process = cluster.node_daemons[int(node[1:]) - 1].process
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def natives(cluster, states="pending,running"):
    """number: name"""
    return {line[0]: line[2] for line in cluster.jobs(states)}


def runs_elsewhere(cluster, native):
    """The job of that number has begun. Until then the controller takes an end that any node tells for its end."""
    wait_until(lambda: native in natives(cluster, "running"))


def asked_to_end(cluster, native):
    """What the controller says of calls that end a job of that number."""
    with open(os.path.join(cluster.dir, "log", "ctld"), encoding="utf-8") as f:
        return [line for line in f if "REQUEST_KILL_JOB" in line and f"JobId={native} " in line]


def strangers(cluster, until):
    """Somebody else's jobs, until one of them has the number: that one's name."""
    for _ in range(50):
        cluster.others("sleep 600")
        if until in natives(cluster):
            return natives(cluster)[until]
    raise AssertionError(f"the cluster does not count from one: {natives(cluster)}")


def held_job(instance, cluster, **more):
    """A job that waits there: its request, and its number there."""
    request = instance.submit(sh(beating(instance, instance.flag), request_cpus="4", output="out.$(Process)", **more))
    return request, wait_until(lambda: [n for n, name in natives(cluster).items() if name.startswith("drover-")])


@pytest.mark.parametrize("poll", [1, 15], ids=["noticed", "not_noticed_yet"])
def test_a_removal_ends_nobody_elses_job(one, forgetful, poll):
    """Whether the number was seen under another name, or was not asked about since."""
    queue(one, forgetful, poll)
    request, (native,) = held_job(one, forgetful)
    wait_until(lambda: one.exists("log"))
    with unheard(forgetful):
        forget(forgetful)
        name = strangers(forgetful, native)
        runs_elsewhere(forgetful, native)
        if poll == 1:
            wait_until(lambda: "a job of another name has the number of one of ours" in one.agent.output())
        assert processes(one.flag)
        one.cli("rm", str(request))
        one.wait(request, code=None)
        assert one.history(request)[0]["state"] == "removed"
        assert natives(forgetful, "running").get(native) == name
        assert not asked_to_end(forgetful, native)
        assert len([e for e in one.events(f"{request}.0") if e["event"] in FINAL]) == 1
    forgetful.tool("scancel", native)
    assert asked_to_end(forgetful, native)  # so it is said
    wait_until(lambda: not processes(one.flag))


def test_a_removal_ends_no_other_job_of_ours(one, forgetful):
    """The next job of the same queue has the number of the one that was forgotten."""
    queue(one, forgetful, 1)
    first, (native,) = held_job(one, forgetful)
    wait_until(lambda: one.exists("log"))
    with unheard(forgetful):
        forget(forgetful)
        second = None
        for _ in range(50):
            if native in natives(forgetful):
                break
            second = one.submit(sh("sleep 600", request_cpus="1"))
            one.wait_state(f"{second}.0", "running", "staging")
            wait_until(lambda: one.api("GET", f"/v1/jobs/{second}.0/path")["hops"][-1].get("native"))  # pylint: disable=cell-var-from-loop
        name = natives(forgetful)[native]
        runs_elsewhere(forgetful, native)
        one.cli("rm", str(first))
        one.wait(first, code=None)
        assert natives(forgetful, "running").get(native) == name
        assert not asked_to_end(forgetful, native)
    one.cli("rm", "--constraint", "true")
    wait_until(lambda: not [n for n in natives(forgetful).values() if n.startswith("drover-")])


def test_what_ran_is_run_again_and_counted_once(one, forgetful):
    """Strangers hold the old numbers; each job has one end, and is never two at a time."""
    queue(one, forgetful, 1)
    request = one.submit(sh(beating(one, one.flag), request_cpus="2", output="out.$(Process)", queue="queue 3"))
    wait_until(lambda: one.exists("log") and len(runs(one)) == 3)
    before = natives(forgetful)
    forget(forgetful)
    for native in sorted(before):
        name = strangers(forgetful, native.split("_")[0])
        assert not name.startswith("drover-") or name != before[native]
    forgetful.tool("scancel", "--name=wrap", code=None)
    one.write("flag", "")
    one.wait(request, seconds=300)
    for n in range(3):
        job = f"{request}.{n}"
        assert [e["event"] for e in one.events(job) if e["event"] in FINAL] == ["exited"]
        its = runs(one)[job]
        for earlier, later in zip(its, its[1:]):
            assert earlier[2] < later[1], f"{job} ran twice at a time: {its}"
        assert one.read(f"out.{n}") == "whole\n"
