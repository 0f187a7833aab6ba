"""One submit over many places: two Slurm clusters, a Grid Engine, a program's batch system, and the agent's own machine."""
import os
import signal

import agents
from drover import sh, wait_until

pytest_plugins = ["batch_systems"]
LONG = os.environ.get("DROVER_CHECK_LONG")


def test_one_submit_over_all_places(instance, clusters, grid):
    """Each takes a share that fits its size. Some jobs are killed in various ways meanwhile, and the agent as well;
    all are accounted for, and none ran twice at a time."""
    count = 2000 if LONG else 300
    instance.server()
    config = agents.batch_queues(*clusters, grid) + "  - name: here\n    cpus: 4\n"
    instance.agent = agents.start(instance, config)
    for queue in ("alpha", "beta", "grid", "here"):
        agents.offering(instance, queue)
    request = instance.submit(sh(f"echo $DROVER_JOB >>{instance.work}/ran; sleep 0.4", request_memory="8", queue=f"queue {count}"))

    def done():
        """some have ended"""
        return len(instance.history(request))

    wait_until(lambda: done() > count // 10, 120)
    instance.agent.stop(signal.SIGKILL)
    instance.agent = agents.start(instance, config)
    wait_until(lambda: done() > count // 4, 120)
    clusters[0].cancel_all()  # behind our back: held
    removed = [f"{request}.{n}" for n in range(count - 20, count)]
    instance.cli("rm", *removed)

    def settled():
        """nothing is on its way"""
        counts = instance.api("GET", f"/v1/requests/{request}")
        on_their_way = count - counts["completed"] - counts["removed"] - counts["held"]
        return counts if on_their_way == 0 else None

    held = wait_until(settled, 170)["held"]
    rows = instance.history(request)
    assert len(rows) + held == count
    assert all(j["exit_code"] == 0 for j in rows if j["state"] == "completed")
    share = {q: sum(j["queue"] == q and j["state"] == "completed" for j in rows) for q in ("alpha", "beta", "grid", "here")}
    assert all(n > 0 for n in share.values()) and sum(share.values()) > count // 2, share
