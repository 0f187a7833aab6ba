"""One submit over many places: two Slurm clusters, a Grid Engine, and the agent's own machine."""
import collections
import os
import signal

import pytest

import agents
from drover import sh, wait_until
from slurm import slurm_clusters

pytest_plugins = ["batch_systems"]
LONG = os.environ.get("DROVER_CHECK_LONG")
SLOTS = {"alpha": 8, "beta": 4, "grid": 4, "here": 2}
SECONDS = 3 if LONG else 2

# They begin together. Half of the jobs end by themselves. The others say where they are, and are ended, by a different hand each.
JOB = """
echo "$DROVER_QUEUE" >>%(work)s/ran
while [ ! -e %(work)s/go ]; do sleep 0.1; done
case $((DROVER_MEMBER %% 8)) in
0 | 2 | 4 | 6) sleep %(seconds)d; exit 0 ;;
7) sleep %(seconds)d; kill -TERM $$ ;;
esac
native=${SLURM_ARRAY_JOB_ID:-${SLURM_JOB_ID:-$JOB_ID}}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
case ${SGE_TASK_ID:-undefined} in *[0-9]*) native="$native -t $SGE_TASK_ID" ;; esac
echo "$DROVER_QUEUE $$ $native" >%(work)s/end/.$DROVER_MEMBER
mv %(work)s/end/.$DROVER_MEMBER %(work)s/end/$DROVER_MEMBER
sleep 600
"""


@pytest.fixture(scope="module")
def unlike(request):
    """A cluster of two nodes, and one of one."""
    with slurm_clusters(request.config.drover_tmp, {"name": "alpha", "nodes": 2}, {"name": "beta", "nodes": 1}) as two:
        yield two


class Hands:
    """What ends the jobs that wait for their end: the user, the batch system's administrator, the kernel."""

    def __init__(self, instance, request, systems):
        self.instance, self.request = instance, request
        self.systems = {one.name: one for one in systems}
        self.folder = os.path.join(instance.work, "end")
        os.mkdir(self.folder)

    def pass_over(self):
        removed, cancelled = [], collections.defaultdict(list)
        for name in os.listdir(self.folder):
            if name.startswith("."):
                continue
            path = os.path.join(self.folder, name)
            with open(path, encoding="utf-8") as f:
                queue, pid, native = (f.read().rstrip("\n").split(" ", 2) + [""])[:3]
            os.unlink(path)
            way = int(name) % 8
            if way == 1:
                removed.append(f"{self.request}.{name}")
            elif way == 3 and queue in self.systems:
                cancelled[queue].append(native)
            else:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass  # with its node
        if removed:
            self.instance.cli("rm", *removed)
        for queue, natives in cancelled.items():
            system = self.systems[queue]
            if system.runner == "slurm":
                system.tool("scancel", *natives, code=None)
            else:
                for native in natives:
                    system.tool("qdel", *native.split(), code=None)


@pytest.mark.timeout(1500)
def test_one_submit_over_all_places(instance, unlike, grid):
    """Each takes what fits its size. Half of the jobs are killed: removed, cancelled behind our back, by signals;
    the agent is killed, and a node is taken away. Each job is in the one state that its end must give."""
    count = 2000 if LONG else 90
    grid.set_slots(SLOTS["grid"])
    instance.server()
    config = agents.batch_queues(*unlike, grid) + f"  - name: here\n    cpus: {SLOTS['here']}\n"
    instance.agent = agents.start(instance, config)
    for queue in SLOTS:
        agents.offering(instance, queue)
    request = 1
    hands = Hands(instance, request, [*unlike, grid])
    script = instance.write("job.sh", JOB % {"work": instance.work, "seconds": SECONDS})
    assert instance.submit(sh(f". {script}", request_memory="8", queue=f"queue {count}")) == request

    def full():
        """each place has as many jobs as it has room for"""
        return instance.exists("ran") and collections.Counter(instance.read("ran").split()) == SLOTS

    wait_until(full)
    instance.write("go", "")

    def settled():
        """nothing is on its way"""
        hands.pass_over()
        counts = instance.api("GET", f"/v1/requests/{request}")
        return counts["completed"] + counts["removed"] + counts["held"]

    wait_until(lambda: settled() > count // 5, 300, every=0.3)
    instance.agent.stop(signal.SIGKILL)
    hands.pass_over()
    instance.agent = agents.start(instance, config)
    wait_until(lambda: settled() > count // 3, 300, every=0.3)

    def node_fell():
        """a job went with its node"""
        state = "DOWN" if unlike[1].jobs("running") else "RESUME"  # it may be back by itself
        unlike[1].tool("scontrol", "update", "NodeName=b1", f"State={state}", "Reason=test", code=None)
        settled()
        return unlike[1].jobs("node_fail")

    wait_until(node_fell, every=0.3)
    unlike[1].tool("scontrol", "update", "NodeName=b1", "State=RESUME", code=None)
    wait_until(lambda: settled() == count, 1200 if LONG else 240, every=0.3)

    ran = collections.Counter(instance.read("ran").split())
    for queue, slots in SLOTS.items() if LONG else ():  # whatever a place takes to start and to end one
        fair = sum(ran.values()) * slots / sum(SLOTS.values())
        assert fair / 2.5 < ran[queue] < fair * 2.5, ran
    rows = instance.history(request)
    held = instance.jobs(request, "&state=held")
    assert sorted(j["member"] for j in rows + held) == list(range(count))
    for j in held:
        assert j["member"] % 8 == 3 and "cancelled" in instance.job(j["id"])["hold_reason"], j
    for j in rows:
        want = {1: ("removed", None, None), 3: ("completed", None, 9), 5: ("completed", None, 9), 7: ("completed", None, 15)}
        state, code, number = want.get(j["member"] % 8, ("completed", 0, None))
        assert j["state"] == state, j
        if state == "completed":
            assert (j["exit_code"], j["exit_signal"]) == (code, number), (j["id"], j["queue"], instance.events(j["id"]))
    assert count <= sum(ran.values()) <= count + 10 * SLOTS["beta"]
