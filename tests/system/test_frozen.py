"""Each process stopped for shorter and for longer than a lease, as an administrator, a debugger or a machine that swaps stops it: what
it holds goes on or is run again, nothing is run twice at a time or told twice, and others go on meanwhile."""
import os

import pytest

import agents
from drover import of_process, processes, sh, wait_until
from stores import Nginx
from test_asleep import begin, frozen, in_turn, whole
from test_bad_days import passes
from test_kill import FINAL
from test_outlive import beating, runs

pytest_plugins = ["batch_systems"]


def one_pid(instance, program):
    found, = wait_until(lambda: instance.pids(program))
    return found


@pytest.mark.parametrize("program", ["droverd", "drover-agent", "drover-shepherd"])
def test_for_less_than_a_lease(instance, program):
    """Nobody notices but by the time that it took."""
    job, agent = begin(instance, "60s", "cpus: 2\n")
    with frozen(one_pid(instance, program)):
        passes(3)
    assert instance.history(instance.run(sh("true")))[0]["starts"] == 1
    assert len(whole(instance, job)) == 1, agent.output()
    assert instance.history(job.split(".")[0])[0]["starts"] == 1


@pytest.mark.long
def test_the_shepherd_for_longer_than_a_lease(instance):
    """The agent renews: what runs goes on, what ended is told late and as it ended, what was given meanwhile runs then, once; and
    what was removed ends then."""
    job, agent = begin(instance, "3s", "cpus: 8\n")
    go = os.path.join(instance.work, "go")
    ends = instance.submit(sh(f"while [ ! -e {go} ]; do sleep 0.05; done; echo over >{instance.work}/over; exit 3"))
    removed = instance.submit(sh(f"touch {instance.work}/up; exec sleep 600"))
    instance.wait_state(f"{ends}.0", "running")
    wait_until(lambda: instance.exists("up"))
    with frozen(one_pid(instance, "drover-shepherd")):
        given = instance.submit(sh(f"echo x >>{instance.work}/given"))
        instance.write("go", "")
        wait_until(lambda: instance.exists("over"))
        instance.cli("rm", str(removed))
        passes(20)  # the lease, and what the server adds to it
        assert instance.job(job)["state"] == "running" and not instance.exists("given")
    instance.wait(ends, given, removed, code=None)
    row = instance.history(ends)[0]
    assert (row["exit_code"], row["starts"]) == (3, 1)
    assert instance.read("given") == "x\n" and instance.history(given)[0]["starts"] == 1
    assert instance.history(removed)[0]["state"] == "removed"
    assert len(whole(instance, job)) == 1, agent.output()


@pytest.mark.long
def test_the_agent_and_its_shepherd_for_longer_than_a_lease(instance):
    """As when their whole service stands still, and the jobs do not: nobody of ours can end the job in time, and whoever wakes does
    at once. What the first run says is refused: the job has one end."""
    job, agent = begin(instance, "3s")
    with frozen(agent.pid, one_pid(instance, "drover-shepherd")):
        agents.start(instance, "cpus: 1\n", "n2")
        wait_until(lambda: len(runs(instance)[job]) == 2)
    wait_until(lambda: len(instance.agents("connected")) == 2)
    first = os.path.join(instance.base, "n1", "jobs")
    wait_until(lambda: not [pid for pid in processes(first) if instance.flag.encode() in of_process(pid, "cmdline")])
    instance.write("flag", "")
    instance.wait(job)
    assert instance.read("out") == "whole\n"
    assert [e["event"] for e in instance.events(job) if e["event"] in FINAL] == ["exited"]
    row = instance.history(job.split(".")[0])[0]
    assert (row["agent"], row["starts"]) == ("n2", 2)


# ---- movers

@pytest.fixture
def store(instance):
    one = Nginx(os.path.join(instance.base, "nginx"))
    try:
        yield one.wait()
    finally:
        one.stop()


@pytest.mark.parametrize("seconds", [pytest.param(3, id="shorter"), pytest.param(20, id="longer", marks=pytest.mark.long)])
def test_a_mover(instance, store, seconds):
    """The job that waits for it begins afterwards, once, with the whole file; another one, that needs no mover, runs meanwhile."""
    with open(os.path.join(instance.base, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("lease: 10s\n")
    instance.server("--config", os.path.join(instance.base, "droverd.yaml"))
    agent = agents.start(instance, "cpus: 4\n")
    instance.run(f"executable = /bin/true\ntransfer_input_files = {store.put('small', b'x')}\nqueue\n")  # a mover is there now
    with frozen(one_pid(instance, "drover-mover")):
        url = store.put("f", b"whole\n" * 100000)
        request = instance.submit(f"executable = /usr/bin/wc\narguments = -c f\ntransfer_input_files = {url}\noutput = out\nqueue\n")
        wait_until(lambda: instance.job(f"{request}.0")["state"] == "staging")
        passes(seconds)
        assert instance.history(instance.run(sh("true")))[0]["starts"] == 1
        assert instance.job(f"{request}.0")["state"] == "staging"
    instance.wait(request)
    assert instance.read("out").split()[0] == "600000"
    assert instance.history(request)[0]["starts"] == 1, agent.output()


# ---- batch jobs

def on_cluster(instance, cluster, lease):
    with open(os.path.join(instance.base, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"lease: {lease}\n")
    instance.server("--config", os.path.join(instance.base, "droverd.yaml"))
    agent = agents.start(instance, agents.batch_queues(cluster))
    agents.offering(instance, cluster.name)
    instance.flag = os.path.join(instance.work, "flag")
    request = instance.submit(sh(beating(instance, instance.flag), request_cpus="1", output="out.$(Process)", queue="queue 3"))
    wait_until(lambda: instance.exists("log") and len(runs(instance)) == 3)
    wait_until(lambda: [j["state"] for j in instance.jobs(request)] == ["running"] * 3)
    return request, agent


def all_whole(instance, request):
    """Each job has one end, and its output; never two runs at a time."""
    instance.write("flag", "")
    instance.wait(request, seconds=300)
    for n in range(3):
        job = f"{request}.{n}"
        assert [e["event"] for e in instance.events(job) if e["event"] in FINAL] == ["exited"]
        assert instance.read(f"out.{n}") == "whole\n"
        in_turn(instance, job)
    return {row["starts"] for row in instance.history(request)}


def test_the_agent_of_batch_jobs_for_less_than_a_lease(instance, alpha):
    request, agent = on_cluster(instance, alpha, "60s")
    with frozen(agent.pid):
        passes(3)
    assert all_whole(instance, request) == {1}, agent.output()


@pytest.mark.long
def test_the_agent_of_batch_jobs_for_longer_than_a_lease(instance, alpha):
    """The guards on the nodes end what runs, before the server gives it to somebody else; what the agent says later is refused."""
    request, agent = on_cluster(instance, alpha, "12s")
    with frozen(agent.pid):
        agents.start(instance, "queues:\n  - name: here\n    cpus: 24\n", "n2")
        wait_until(lambda: [len(its) for its in runs(instance).values()] == [2, 2, 2])
    wait_until(lambda: len(instance.agents("connected")) == 2)
    assert all_whole(instance, request) == {2}, agent.output()
    wait_until(lambda: not alpha.jobs())


@pytest.mark.long
def test_a_batch_jobs_processes_for_longer_than_a_lease(instance, alpha):
    """The script, its guard and its program on a node: the agent renews for them, and they go on where they were."""
    request, agent = on_cluster(instance, alpha, "12s")
    held = [pid for pid in processes(f"{instance.base}/n1") if os.path.basename(os.readlink(f"/proc/{pid}/exe")) in ("dash", "bash", "sh", "sleep")]
    assert len(held) >= 3
    with frozen(*held):
        passes(25)
        assert [j["state"] for j in instance.jobs(request)] == ["running"] * 3
    assert all_whole(instance, request) == {1}, agent.output()


@pytest.mark.long
def test_the_controller_for_longer_than_a_lease(instance, alpha):
    """Its queue is unreachable, leases are renewed: what ran goes on, and ends as it ended."""
    request, agent = on_cluster(instance, alpha, "12s")
    with frozen(alpha.controller.pid):
        passes(25)
        assert [j["state"] for j in instance.jobs(request)] == ["running"] * 3
    assert all_whole(instance, request) == {1}, agent.output()
