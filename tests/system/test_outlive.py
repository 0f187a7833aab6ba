"""Attempts that outlive their agent, and queues whose batch system has gone: nothing runs twice, nothing is lost."""
import os
import signal

import pytest

import agents
from drover import sh, wait_until

pytest_plugins = ["batch_systems"]


def beating(instance, flag):
    """A script that leaves a line for each start and each moment that it lives, until the flag is there."""
    return (f"say() {{ echo $1 $DROVER_JOB ${{DROVER_SCRATCH##*.}} $(date +%s%N) >>{instance.work}/log; }}; say start; "
            f"while [ ! -e {flag} ]; do say beat; sleep 0.1; done; say end; echo whole")


def runs(instance):
    """For each job its runs, in the order of their starts: (fence, first moment, last moment)."""
    found = {}
    for line in instance.read("log").splitlines():
        what, job, fence, at = line.split()
        run = found.setdefault(job, {}).setdefault(int(fence), [int(at), int(at), what])
        run[1] = int(at)
    return {job: [(fence, *run[:2]) for fence, run in sorted(r.items())] for job, r in found.items()}


def kill_agent(instance):
    """The agent and its shepherd, as when the head node fails."""
    instance.agent.kill()
    for pid in instance.pids("drover-shepherd"):
        os.kill(pid, signal.SIGKILL)


def full_cluster(instance, cluster, lease):
    """The cluster is full with four jobs, and two wait in it."""
    config = os.path.join(instance.base, "droverd.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"lease: {lease}\n")
    instance.server("--config", config)
    instance.config = agents.batch_queues(cluster)
    instance.agent = agents.start(instance, instance.config)
    agents.offering(instance, "alpha")
    instance.flag = os.path.join(instance.work, "flag")
    instance.request = instance.submit(sh(beating(instance, instance.flag), request_cpus="4", queue="queue 6",
                                          output="out.$(Process)"))
    wait_until(lambda: len(cluster.jobs("running")) == 4 and len(cluster.jobs("pending")) == 2)
    wait_until(lambda: instance.exists("log") and len(runs(instance)) == 4)
    return instance


def test_agent_away_for_longer_than_the_lease(instance, alpha):
    """What runs ends before its lease does, what waits does not begin any more: then others run it."""
    full = full_cluster(instance, alpha, "12s")
    kill_agent(full)
    wait_until(lambda: not alpha.jobs("pending,running,completing"))
    agents.start(full, "queues:\n  - name: here\n    cpus: 24\n", "n2")
    wait_until(lambda: [(j["state"], j["queue"]) for j in full.jobs(full.request)] == [("running", "here")] * 6)
    full.agent = agents.start(full, full.config)
    agents.offering(full, "alpha")
    full.write("flag", "")
    full.wait(full.request)
    assert len(runs(full)) == 6
    for job, its in runs(full).items():
        for before, after in zip(its, its[1:]):
            assert before[2] < after[1], f"{job} ran twice at a time: {its}"
    assert [full.read(f"out.{n}") for n in range(6)] == ["whole\n"] * 6
    assert {j["queue"] for j in full.history(full.request)} == {"here"}
    assert not alpha.jobs("pending,running,completing")


def test_agent_back_within_the_lease(instance, alpha):
    """Those that ran and ended, and those that began and ended meanwhile, are adopted: each has run once."""
    full = full_cluster(instance, alpha, "5m")
    kill_agent(full)
    full.write("flag", "")
    wait_until(lambda: not alpha.jobs("pending,running,completing"))
    full.agent = agents.start(full, full.config)
    full.wait(full.request)
    assert all(j["starts"] == 1 and j["queue"] == "alpha" for j in full.history(full.request))
    assert {len(r) for r in runs(full).values()} == {1} and len(runs(full)) == 6
    assert [full.read(f"out.{n}") for n in range(6)] == ["whole\n"] * 6


def unreachable(instance, queue="alpha"):
    for agent in instance.agents("connected"):
        for q in agent["queues"]:
            if q["name"] == queue:
                return q["unreachable"]
    return None


def saved(cluster):
    """Waits until the controller has written down what it knows now, so that it can be killed and remember."""
    path = os.path.join(cluster.dir, "state", "job_state")
    before = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
    cluster.tool("scontrol", "update", f"jobid={cluster.jobs('running')[0][0]}", "comment=x")
    wait_until(lambda: os.path.exists(path) and os.stat(path).st_mtime_ns > before)


@pytest.mark.parametrize("how", ["SIGSTOP", "SIGKILL"])
def test_controller_gone_for_a_while(instance, alpha, how):
    """Its queue is unreachable, its jobs are kept, it is given no new ones; and all are accounted for when it is back."""
    full = full_cluster(instance, alpha, "5m")
    saved(alpha)
    alpha.controller.process.send_signal(getattr(signal, how))
    try:
        wait_until(lambda: unreachable(full))
        assert "slurm does not answer" in unreachable(full)
        assert "unreachable" in full.cli("agents")
        running = next(j for j in full.jobs(full.request) if j["state"] == "running")
        assert "slurm does not answer" in running["unreachable"]
        assert "cannot be reached" in full.cli("why", running["id"])
        later = full.submit(sh("true", queue="queue 3"))
        removed = full.submit(sh("true"))
        assert "unreachable" in full.cli("why", f"{later}.0")
        full.cli("rm", str(removed), running["id"])
        full.write("flag", "")
        ended = [j for j, r in runs(full).items() if j != running["id"]]
        wait_until(lambda: all(f"end {j} " in full.read("log") for j in ended))
        assert {j["state"] for j in full.jobs(later)} == {"idle"}
    finally:
        if how == "SIGSTOP":
            alpha.controller.process.send_signal(signal.SIGCONT)
        else:
            alpha.controller.process.wait(90)
            alpha.start_controller()
    full.wait(full.request, later, code=None)
    wait_until(lambda: not unreachable(full))
    assert {len(r) for r in runs(full).values()} == {1} and len(runs(full)) == 6
    rows = {j["id"]: j for j in full.history()}
    assert rows.pop(running["id"])["state"] == rows.pop(f"{removed}.0")["state"] == "removed"
    assert len(rows) == 8 and all(j["state"] == "completed" and j["starts"] == 1 for j in rows.values())


def test_what_a_query_complains_of_is_shown_while_it_tries_on(instance):
    """squeue looks for its configuration for a minute; only the queue that is lost is called so."""
    instance.server()
    agent = agents.start(instance, "queues:\n  - name: lost\n    runner: slurm\n    slurm: {conf: /no/such/slurm.conf}\n  - name: here\n")
    agents.offering(instance, "here")
    why = wait_until(lambda: unreachable(instance, "lost"))
    assert "slurm does not answer" in why and "/no/such/slurm.conf" in why
    assert "the batch system is gone\" queue=lost" in agent.output()
