"""Queues of real Slurm clusters: two private ones, on loopback, of nodes that are all this machine."""
import contextlib
import glob
import os
import re
import shutil
import signal
import tempfile
import time

import pytest

import agents
from containers import IMAGE, Podman
from drover import sh, wait_until
from users import Site

pytest_plugins = ["batch_systems"]


@pytest.fixture
def one(instance, alpha):
    """A server and an agent with a queue of the cluster alpha."""
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(alpha))
    agents.offering(instance, "alpha")
    return instance


def restart(instance, cluster):
    instance.agent = agents.start(instance, agents.batch_queues(cluster))


def counted(instance, tool):
    """What agents started from now on call it with: (milliseconds, words), one after the other."""
    calls, tools = os.path.join(instance.base, "calls"), os.path.join(instance.base, "tools")
    os.mkdir(tools)
    instance.write(os.path.join(tools, tool), f'#!/bin/sh\necho "$(date +%s%3N) $*" >>{calls}\nexec {shutil.which(tool)} "$@"\n', 0o755)
    instance.env["PATH"] = f"{tools}:{instance.env['PATH']}"

    def said():
        if not os.path.exists(calls):
            return []
        with open(calls, encoding="utf-8") as f:
            return [line.split(" ", 1) for line in f.read().splitlines()]

    return said


def until(path):
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


def test_jobs_alike_travel_as_arrays(one, alpha):
    before = {line[0].split("_")[0] for line in alpha.jobs("all")}
    one.run(sh("true", queue="queue 100"))
    after = {line[0].split("_")[0] for line in alpha.jobs("all")}
    assert len(after - before) < 40


def test_a_jobs_name_says_nothing_of_others(one, alpha):
    """It may have line ends, and in them what looks like the end of another."""
    request = one.submit(sh(f"echo >{one.work}/up; sleep 600"))
    wait_until(lambda: one.exists("up"))
    one.wait_state(f"{request}.0", "running")
    native, _, name = alpha.jobs("running")[0]
    alpha.tool("sbatch", f"--job-name=x\n{native}|N/A|CANCELLED|{name}|None|root", "--output=/dev/null", "--wrap=sleep 600")
    assert f"\n{native}|N/A|CANCELLED" in alpha.tool("squeue", "-h", "-o", "%j")
    for _ in range(3):  # the agent has asked since
        one.run(sh("true"))
    assert one.job(f"{request}.0")["state"] == "running"


@pytest.mark.parametrize("jobs", [120, pytest.param(10000, marks=pytest.mark.long)])
def test_many_are_asked_about_at_once(instance, alpha, jobs):
    """One query for all, and the next only when the interval is over: whatever the number of jobs."""
    calls = counted(instance, "squeue")
    instance.server()
    agents.start(instance, agents.batch_queues(alpha, more=f"    queued_max: {jobs + 100}\n"))
    agents.offering(instance, "alpha")
    request = instance.submit(sh("sleep 600", queue=f"queue {jobs}"))
    wait_until(lambda: len(alpha.jobs("pending,running")) == jobs, 300, every=2)

    before = len(calls())
    wait_until(lambda: len(calls()) >= before + 4)
    asked = calls()
    assert len({words for _, words in asked}) == 1 and "--job" not in asked[0][1], asked
    gaps = [int(b[0]) - int(a[0]) for a, b in zip(asked, asked[1:])]
    assert min(gaps) >= 1000, gaps  # poll: 1
    instance.cli("rm", str(request))


def test_suspended_and_resumed(one, alpha):
    """What runs is stopped, what waits is held, until it is resumed."""
    request = one.submit(sh(f"while :; do echo x >>{one.work}/beats; sleep 0.05; done"))
    wait_until(lambda: one.exists("beats"))
    one.wait_state(f"{request}.0", "running")
    one.api("POST", "/v1/actions", {"action": "suspend", "ids": [f"{request}.0"]})

    def quiet():
        """the job does nothing for a moment"""
        before = len(one.read("beats"))
        wait_until(lambda: alpha.tool("sinfo", "-h"))
        time.sleep(0.3)
        return len(one.read("beats")) == before

    wait_until(quiet)
    one.api("POST", "/v1/actions", {"action": "resume", "ids": [f"{request}.0"]})
    wait_until(lambda: not quiet())
    one.cli("rm", f"{request}.0")


def test_a_submission_whose_answer_is_lost_is_found(one, alpha):
    """sbatch has done its work and the agent dies before it hears of it: the name is found, nothing is sent twice."""
    real = shutil.which("sbatch")
    tools = os.path.join(one.base, "tools")
    os.mkdir(tools)
    with open(os.path.join(tools, "sbatch"), "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\ntrap '' TERM\n{real} \"$@\" >{tools}/out || exit\ntouch {tools}/done\nsleep 600\n")
    os.chmod(os.path.join(tools, "sbatch"), 0o755)
    one.agent.stop()
    path = one.env["PATH"]
    one.env["PATH"] = tools + ":" + path
    restart(one, alpha)
    agents.offering(one, "alpha")
    flag = os.path.join(one.work, "flag")
    request = one.submit(sh(f"echo once >>{one.work}/ran; {until(flag)}"))
    wait_until(lambda: os.path.exists(f"{tools}/done"))
    one.agent.kill()
    one.env["PATH"] = path
    restart(one, alpha)
    one.wait_state(f"{request}.0", "running")
    one.write("flag", "")
    one.wait(request)
    assert one.read("ran") == "once\n"
    assert "found a submission again" in one.agent.output()
    for pid in one.pids("dash") + one.pids("sleep"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_most_wait_in_drover(instance, alpha):
    """Not more jobs are in the cluster's queue than queued_max, however many there are; nor fewer, while it is full of our own."""
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(alpha, more="    queued_max: 3\n"))
    agents.offering(instance, "alpha")
    request = instance.submit(sh(until(instance.work + "/flag.$DROVER_MEMBER"), request_cpus="2", queue="queue 40"))

    def there():
        return len(alpha.jobs("running")), len(alpha.jobs("pending"))

    for n in range(0, 16, 4):
        wait_until(lambda: there() == (8, 3))
        for member in range(n, n + 4):
            instance.write(f"flag.{member}", "")
        wait_until(lambda: len(instance.history(request)) == n + 4)
    for n in range(40):
        instance.write(f"flag.{n}", "")
    instance.wait(request)


@pytest.mark.parametrize("bound", ["cpus: 6", "pull_policy: load=40%"])
def test_a_part_of_the_cluster(instance, alpha, bound):
    """What the queue may have of it is not exceeded by jobs that wait there."""
    calls = counted(instance, "sinfo")
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(alpha, more=f"    {bound}\n"))
    agents.offering(instance, "alpha")
    flag = os.path.join(instance.work, "flag")
    request = instance.submit(sh(until(flag), request_cpus="2", queue="queue 20"))
    wait_until(lambda: len(alpha.jobs("running")) == 3)
    before = len(calls())
    wait_until(lambda: len(calls()) >= before + 2)
    assert len(alpha.jobs("running,pending")) == 3
    instance.write("flag", "")
    instance.wait(request)


def test_the_script_is_kept_and_says_what_was_asked_for(one, alpha):
    flag = os.path.join(one.work, "flag")
    request = one.submit(sh(until(flag), request_cpus="2", request_memory="100", allowed_execute_duration="120",
                            **{"+SlurmPartition": '"short"', "+SlurmComment": '"hello"'}))
    one.wait_state(f"{request}.0", "running")
    with open(f"{one.base}/n1/jobs/{request}.0.1/.drover_step.0.sh", encoding="utf-8") as f:
        script = f.read()
    for line in ("--cpus-per-task=2", "--mem=100M", "--time=2", "--partition=short", "--comment=hello"):
        assert f"#SBATCH {line}\n" in script
    shown = alpha.tool("scontrol", "show", "job", alpha.jobs("running")[0][0])
    assert "Partition=short" in shown and "NumCPUs=2" in shown and "TimeLimit=00:02:00" in shown
    one.write("flag", "")
    one.wait(request)


def test_two_clusters_share(instance, clusters):
    """One submit over two clusters and processes of the agent's machine: each takes a part."""
    instance.server()
    agents.start(instance, agents.batch_queues(*clusters) + "  - name: here\n    cpus: 2\n")
    for queue in ("alpha", "beta", "here"):
        agents.offering(instance, queue)
    request = instance.submit(sh("sleep 0.3", request_memory="16", queue="queue 150"))
    instance.wait(request, seconds=150)
    done = instance.history(request)
    assert len(done) == 150 and all(j["exit_code"] == 0 for j in done)
    share = {q: sum(j["queue"] == q for j in done) for q in ("alpha", "beta", "here")}
    assert all(n > 0 for n in share.values()) and sum(share.values()) == 150, share


def test_scripts_end_without_their_agent(instance, alpha):
    """The lease file grows old: the job ends by itself, and the agent's word later is that it was lost."""
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(alpha))
    agents.offering(instance, "alpha")
    request = instance.submit(sh(f"echo $$ >>{instance.work}/pids; sleep 600"))
    instance.wait_state(f"{request}.0", "running")
    wait_until(lambda: instance.written("pids"))
    instance.agent.kill()
    lease = f"{instance.base}/n1/batch.alpha/lease"
    with open(lease, "w", encoding="utf-8") as f:
        f.write("old 1\n")
    pid = int(instance.read("pids").split()[0])
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))

    def said():
        """the script has written that its lease was over"""
        done = glob.glob(f"{instance.base}/n1/jobs/{request}.0.1/.drover_step.0.done")
        return done and re.search(r"^ended \d+ lease$", open(done[0], encoding="utf-8").read(), re.M)

    wait_until(said)


def test_gpus_are_the_clusters(one, alpha):
    """Those that are idle are offered; a job has as many as it asked for, and no other job has them meanwhile."""
    ad = agents.offering(one, "alpha")["ad"]
    assert ad["GPUs"] == 2 and ad["TotalGPUs"] == 2 and ad["NodeGPUs"] == 2, ad
    flag = os.path.join(one.work, "flag")
    request = one.submit(sh(f"echo $CUDA_VISIBLE_DEVICES >>{one.work}/had; {until(flag)}", request_gpus="1", queue="queue 3"))
    wait_until(lambda: one.exists("had") and sorted(one.read("had").split()) == ["0", "1"])
    assert re.search("TresPerNode=gres[:/]gpu:1", alpha.tool("scontrol", "show", "job", alpha.jobs("running")[0][0]))
    plain = one.run(sh("echo [$CUDA_VISIBLE_DEVICES]", output="out"))
    assert one.history(plain)[0]["exit_code"] == 0 and one.read("out") == "[]\n"
    wait_until(lambda: len(alpha.jobs("running,pending")) == 2)  # the plain one is gone; the third one waits in Drover
    many = one.submit(sh("true", request_gpus="3"))
    assert "GPUs" in one.cli("why", f"{many}.0")
    one.write("flag", "")
    one.wait(request)
    assert len(one.read("had").split()) == 3
    one.cli("rm", str(many))


@pytest.fixture
def reservation(alpha):
    """The node a2 is for those who name it."""
    alpha.tool("scontrol", "create", "reservation", "ReservationName=quiet", "StartTime=now", "Duration=60", "Users=root", "Nodes=a2")
    yield "quiet"
    alpha.tool("scontrol", "delete", "ReservationName=quiet")


@pytest.mark.parametrize("named_by", ["job", "queue"])
def test_constraints_licenses_and_reservations(instance, alpha, reservation, named_by):
    """Slurm itself goes by them, whether a job names them or the queue does for all."""
    asked = {"plain": {}, "there": {"constraint": "node3"}, "reserved": {"reservation": reservation}, "licensed": {"license": "solver"}}
    words = {"constraint": "Constraint", "reservation": "Reservation", "license": "Licenses"}
    instance.server()
    text = "queues:\n"
    for name, settings in asked.items():
        more = settings.items() if named_by == "queue" else ()
        text += f"  - name: {name}\n    runner: slurm\n    slurm: {{conf: {alpha.conf}, poll: '1'{''.join(f', {k}: {v}' for k, v in more)}}}\n"
    agents.start(instance, text)

    def submit(name, script, queue):
        agents.offering(instance, name)
        ad = {f"+Slurm{words[k]}": f'"{v}"' for k, v in asked[name].items()} if named_by == "job" else {}
        return instance.submit(sh(script, requirements=f'TARGET.QueueName == "{name}"', queue=f"queue {queue}", **ad))

    node = "echo $SLURMD_NODENAME >>{}/{}"
    instance.wait(*(submit(name, node.format(instance.work, name), 4) for name in ("plain", "there", "reserved")))
    assert set(instance.read("there").split()) == {"a3"} and set(instance.read("reserved").split()) == {"a2"}
    assert instance.read("plain").split() and "a2" not in instance.read("plain")
    request = submit("licensed", f"set -e; mkdir {instance.work}/one; sleep 0.2; rmdir {instance.work}/one", 4)
    instance.wait(request)
    assert {row["exit_code"] for row in instance.history(request)} == {0}, "two had the license at a time"


def test_slurms_own_quote(one, alpha):
    """Somebody else has the cluster for ten minutes: Slurm's word of when a job would begin is what we say, too."""
    others = alpha.tool("sbatch", "--parsable", "-N4", "-n16", "--mem-per-cpu=10", "--time=10", "--output=/dev/null",
                        "--wrap=sleep 600").strip()
    wait_until(lambda: alpha.jobs("running"))

    def wait_s():
        """the ad of the queue says how long a job would wait"""
        (queue,) = (q for a in one.agents("connected") for q in a["queues"])
        return queue["ad"].get("QueueWait")

    assert 240 < wait_until(wait_s) <= 660
    request = one.submit(sh("true"))
    wait_until(lambda: alpha.jobs("pending"))
    now_ms = time.time() * 1000
    there = one.json("why", f"{request}.0")
    assert there["eta_start_ms"] - now_ms > 200000, "it waits there"
    one.write("job.sub", sh("true"))
    quote = one.json("quote", "job.sub")
    assert quote["start_ms"] - now_ms > 200000 and quote["places"][0]["cost"]["wait_ms"] > 200000
    alpha.tool("scancel", others)
    one.wait(request)
    wait_until(lambda: not wait_s())
    wait_until(lambda: one.json("quote", "job.sub")["start_ms"] - time.time() * 1000 < 200000)


def test_what_waits_for_a_closed_partition_is_not_expected_now(one, alpha):
    request = one.submit(sh("true", **{"+SlurmPartition": '"shut"'}))
    wait_until(lambda: re.search(r"Pending in Slurm as \d+: PartitionDown\.", one.cli("why", f"{request}.0")))
    assert "expected to start" not in one.cli("why", f"{request}.0")
    assert "eta_start_ms" not in one.json("why", f"{request}.0")
    one.cli("rm", str(request))
    wait_until(lambda: not alpha.jobs("pending"))


def requeueing(instance, alpha, word):
    """An agent whose queue has the setting requeue, and a job that runs."""
    instance.server()
    alpha.settings["requeue"] = word
    try:
        instance.config = agents.batch_queues(alpha)
    finally:
        del alpha.settings["requeue"]
    instance.agent = agents.start(instance, instance.config)
    agents.offering(instance, "alpha")
    request = instance.submit(sh(f"echo $$ >>{instance.work}/ran; {until(instance.work + '/flag')}"))
    instance.wait_state(f"{request}.0", "running")
    wait_until(lambda: instance.written("ran"))
    return request, alpha.jobs("running")[0][0]


def ran_twice(instance, request):
    """The job was lost where it ran, runs again, and the first one is not there any more."""
    wait_until(lambda: len(instance.read("ran").split()) == 2)
    first, second = instance.read("ran").split()
    assert not os.path.exists(f"/proc/{first}") and os.path.exists(f"/proc/{second}")
    instance.write("flag", "")
    instance.wait(request)
    assert len(instance.read("ran").split()) == 2
    assert instance.job(f"{request}.0")["starts"] == 2


def test_requeued_is_lost_there_and_runs_again(instance, alpha):
    """An administrator puts a running job back: it does not begin there once more, but wherever Drover says."""
    request, native = requeueing(instance, alpha, "yes")
    alpha.tool("scontrol", "requeue", native)
    ran_twice(instance, request)
    assert "put back into the queue" in instance.agent.output()
    wait_until(lambda: not alpha.jobs("pending,running"))


@pytest.mark.parametrize("word", ["killed", "itself"])
def test_requeued_while_the_agent_was_away(instance, alpha, word):
    """Slurm has begun it once more before we hear of it: the script has not. The signal that ended it may have reached the
    program before the script, which then writes that it ended by itself."""
    request, native = requeueing(instance, alpha, "yes")
    instance.agent.kill()
    alpha.tool("scontrol", "requeue", native)
    wait_until(lambda: [native, "PENDING"] in [line[:2] for line in alpha.jobs("pending")])
    # it would wait for two minutes; a node refuses what is started in the second of its kill
    alpha.tool("scontrol", "update", f"JobId={native}", "StartTime=now+2")
    wait_until(lambda: [native, "COMPLETED"] in [line[:2] for line in alpha.jobs("all")])
    assert len(instance.read("ran").split()) == 1
    with open(f"{instance.base}/n1/jobs/{request}.0.1/.drover_step.0.done", "w", encoding="utf-8") as f:
        f.write(f"0m0.00s 0m0.00s\n0m0.00s 0m0.00s\nended 143 {word}\n")
    instance.agent = agents.start(instance, instance.config)
    ran_twice(instance, request)


def test_suspended_by_an_administrator(instance, alpha):
    """Drover did not do it, and does not undo it: the path says it."""
    request, native = requeueing(instance, alpha, "no")
    alpha.tool("scontrol", "suspend", native)
    hop = wait_until(lambda: [h for h in instance.json("path", f"{request}.0")["hops"] if h.get("word") == "suspended"])[0]
    assert (hop["state"], hop["native"]) == ("running", native)
    assert "hop 1: in slurm: suspended\n" in instance.cli("path", f"{request}.0")
    alpha.tool("scontrol", "resume", native)
    wait_until(lambda: "in slurm" not in instance.cli("path", f"{request}.0"))
    instance.write("flag", "")
    instance.wait(request)


def test_requeue_is_not_allowed_unless_said(instance, alpha):
    request, native = requeueing(instance, alpha, "no")
    assert "disabled" in alpha.tool("scontrol", "requeue", native, code=1)
    instance.write("flag", "")
    instance.wait(request)
    bad = agents.start(instance, "queues:\n  - name: a\n    runner: slurm\n    slurm: {requeue: perhaps}\n", "n2")
    assert bad.process.wait(90) == 2 and "requeue is yes or no, not 'perhaps'" in bad.output()


def test_mistakes_are_said_at_the_start(instance):
    instance.server()
    agent = agents.start(instance, "queues:\n  - name: a\n    runner: slurm\n    slurm: {partitions: x}\n")
    assert agent.process.wait(90) == 2
    assert "slurm has no setting 'partitions'" in agent.output()


@pytest.mark.parametrize("partition, why", [("nowhere", "there is none of that name"), ("shut", "it takes no jobs")])
def test_a_partition_that_takes_nothing_is_said(instance, alpha, partition, why):
    """In the agent's log, and to everybody who looks."""
    instance.server()
    agent = agents.start(instance, f"queues:\n  - name: a\n    runner: slurm\n    slurm: {{conf: {alpha.conf}, partition: {partition}}}\n")
    words = f"slurm, partition {partition}: {why}"
    wait_until(lambda: words in agent.output())
    wait_until(lambda: [q["closed"] for a in instance.agents("connected") for q in a["queues"]] == [words])
    assert words in instance.cli("agents") and " closed " in instance.cli("agents")
    request = instance.submit(sh("true"))
    assert words in instance.cli("why", f"{request}.0")


def test_a_partition_that_opens_again(instance, alpha):
    instance.server()
    agents.start(instance, agents.batch_queues(alpha))
    agents.offering(instance, "alpha")
    alpha.close()
    try:
        wait_until(lambda: instance.agents("connected")[0]["queues"][0]["closed"])
    finally:
        alpha.open()
    agents.offering(instance, "alpha")
    assert instance.agents("connected")[0]["queues"][0]["closed"] is None


def test_the_partitions_own_time_limit(instance, alpha):
    """Slurm lets what asks for more wait for ever: so it does not go there, and who says no time asks for no more."""
    instance.server()
    agents.start(instance, "queues:\n  - name: short\n    runner: slurm\n    walltime_max: 1d\n"
                           f"    slurm: {{conf: {alpha.conf}, partition: short, poll: '1'}}\n")
    assert agents.offering(instance, "short")["ad"]["PartitionWalltimeMax"] == 300
    silent = instance.run(sh("true"))
    assert "#SBATCH --time=5\n" in instance.cli("show", f"{silent}.0", "--script")
    an_hour = {"allowed_execute_duration": "3600"}
    elsewhere = instance.run(sh("true", **an_hour, **{"+SlurmPartition": '"main"'}))
    assert "#SBATCH --time=60\n" in instance.cli("show", f"{elsewhere}.0", "--script")
    never = instance.submit(sh("true", **an_hour))
    instance.run(sh("true", allowed_execute_duration="300"))
    assert instance.job(f"{never}.0")["state"] == "idle"
    assert "PartitionWalltimeMax" in instance.cli("why", f"{never}.0")


def test_containers_on_the_nodes(instance, alpha, request):
    """The script runs podman with the queue's words, and what is left at the end it removes."""
    folder = tempfile.mkdtemp(prefix="pod-", dir=request.config.drover_tmp)
    podman = Podman(folder)
    try:
        podman.make_image()
        instance.server()
        instance.agent = agents.start(instance, agents.batch_queues(alpha, more=podman.on_nodes()))
        agents.offering(instance, "alpha")
        image = {"universe": "container", "container_image": f"docker://{IMAGE}"}
        ends = instance.submit(sh("ls /; ls /sys/class/net; echo $GREETING; exit 3", output="out",
                                  environment="\"GREETING='it''s me'\"", **image))
        instance.wait(ends, code=None)
        assert instance.history(ends)[0]["exit_code"] == 3
        out = instance.read("out").splitlines()
        assert "usr" not in out and out[-2:] == ["lo", "it's me"]
        missing = instance.submit(sh("true", universe="container", container_image="docker://localhost:1/nosuch:1"))
        wait_until(lambda: "localhost:1/nosuch:1" in (said := instance.cli("why", f"{missing}.0").out) and "connection refused" in said)
        instance.cli("rm", str(missing))
        lasting = instance.submit(sh("trap '' TERM; sleep 604; sleep 604", **image))
        wait_until(podman.names)
        instance.cli("rm", str(lasting))
        wait_until(lambda: podman.names() == [])
    finally:
        podman.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_two_queues_of_one_cluster(instance, alpha):
    """Each sees the other's jobs in the cluster's list, under names that are not its own, and leaves them alone."""
    words = ", ".join(f"{name}: '{value}'" for name, value in alpha.settings.items())
    queues = "".join(f"  - name: {name}\n    runner: slurm\n    slurm: {{{words}, partition: {name}}}\n" for name in ("main", "short"))
    calls = counted(instance, "squeue")
    instance.server()
    instance.agent = agents.start(instance, f"kill_grace: 1s\nqueues:\n{queues}")
    agents.queues(instance, 2)
    agents.offering(instance)
    flag = os.path.join(instance.work, "flag")
    requests = [instance.submit(sh(f"echo {name} >>{instance.work}/ran; {until(flag)}", requirements=f'TARGET.QueueName == "{name}"'))
                for name in ("main", "short")]
    wait_until(lambda: len(alpha.jobs("running")) == 2)
    asked = len(calls())
    wait_until(lambda: len(calls()) >= asked + 6)
    assert len(alpha.jobs("running")) == 2
    instance.write("flag", "")
    for request in requests:
        instance.wait(request)
    assert sorted(instance.read("ran").split()) == ["main", "short"]


SIMULATED = """<job simulateSubmission="true" maxFilesPerProcess="1" maxMemory="20" maxWallTime="3">
<command>cat `cat $FILELIST`; echo $JOBINDEX $INPUTFILECOUNT; echo wrong >&amp;2</command><shell>sh</shell>
<stdout URL="file:{work}/$JOBID.out"/><stderr URL="file:{work}/$JOBID.err"/><input URL="file:{work}/data/*"/></job>
"""


def test_scripts_of_a_simulated_submit(instance, alpha):
    """They ask Slurm for what the description does, and run there."""
    instance.server()
    for i in range(2):
        instance.write(f"data/f{i}", f"<{i}>\n")
    instance.write("job.xml", SIMULATED.format(work=instance.work))
    instance.cli("submit", "job.xml")
    scripts = sorted(glob.glob(os.path.join(instance.work, "sched*.sh")))
    assert len(scripts) == 2
    for n, path in enumerate(scripts):
        job = alpha.tool("sbatch", "--parsable", "--chdir", instance.base, path).strip()
        shown = alpha.tool("scontrol", "show", "job", job)
        uuid = os.path.basename(path)[len("sched"):].split("_")[0]
        assert f"JobName=sums_{uuid[:8]}_{n}" in shown and "TimeLimit=00:03:00" in shown and f"StdOut={instance.work}/{uuid}_{n}.out" in shown, shown
        assert re.search(r"MinMemoryNode=20M\b", shown) and re.search(r"CPUs/Task=1\b", shown), shown
        wait_until(lambda n=n, uuid=uuid: instance.exists(f"{uuid}_{n}.err") and instance.read(f"{uuid}_{n}.err"))
        assert instance.read(f"{uuid}_{n}.out") == f"<{n}>\n{n} 1\n" and instance.read(f"{uuid}_{n}.err") == "wrong\n"


def test_a_session_outlives_the_server(one, alpha):
    """What Slurm calls the jobs is in the session file, and does for squeue and scancel when nothing of Drover is left."""
    gate = os.path.join(one.work, "gate")
    one.submit(sh(until(gate), queue="queue 3"), "--session", "s.session.xml")
    wait_until(lambda: one.cli("queue", "--session", "s.session.xml") and one.read("s.session.xml").count("<job ") == 3)
    text = one.read("s.session.xml")
    assert re.fullmatch(r'(  <job id="1\.[0-2]" runner="slurm" native="[0-9_]+"/>\n){3}', "".join(re.findall(r"  <job .*\n", text)))
    assert text.count("<script ") == 1 and "#SBATCH --" in text, text
    # What another command adds leaves all of it there.
    one.cli("hold", "--session", "s.session.xml")
    assert one.read("s.session.xml") == text
    one.agent.kill()
    one.kill_server()
    env = {"SLURM_CONF": alpha.conf}
    out = one.cli("queue", "--session", "s.session.xml", env=env)
    assert out.out.count("|RUNNING|") == 3 and "in their batch systems" in out.err, out
    one.cli("rm", "--session", "s.session.xml", env=env)
    wait_until(lambda: not alpha.jobs())
    # Another user's file asks and ends nothing, and neither does a name that would be an option.
    one.write("s.session.xml", text.replace('native="', 'native="-u '))
    assert "|" not in one.cli("queue", "--session", "s.session.xml", env=env, code=1).out


def test_reservations_are_made_in_slurm_too(instance, alpha):
    """A reservation of the queue is one of Slurm's, in which its jobs run; it ends there, too, also if the agent was away meanwhile."""
    instance.server()
    config = agents.batch_queues(alpha).replace("poll:", "reservations: 'yes', poll:")
    agent = agents.start(instance, config)
    agents.offering(instance, "alpha")

    def there():
        lines = [line for line in alpha.tool("scontrol", "show", "reservation", "--oneliner").splitlines() if "ReservationName=drover-" in line]
        return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
    number = int(instance.cli("reserve", "--queue", "n1/alpha", "--cpus", "2", "--for", "1h"))
    made, = wait_until(there)
    assert (made["Users"], made["CoreCnt"]) == ("root", "2") and f"-r{number}-" in made["ReservationName"]
    assert made["Duration"] == "01:00:00" or re.fullmatch(r"00:5[0-9]:[0-9]{2}", made["Duration"]), made  # it began when Slurm heard of it
    go = os.path.join(instance.work, "go")
    request = instance.submit(sh(until(go), reservation=number))
    instance.wait_state(f"{request}.0", "running")
    assert alpha.tool("squeue", "-h", "-o", "%v").split() == [made["ReservationName"]]
    instance.write("go", "")
    instance.wait(request)
    other = instance.run(sh("true"))
    assert instance.history(other)[0]["queue"] == "alpha"
    later = int(instance.cli("reserve", "--queue", "n1/alpha", "--cpus", "1", "--from", "+1d", "--for", "1h", "--every", "week"))
    wait_until(lambda: len(there()) == 2)
    agent.stop()
    instance.cli("reserve", "end", str(number))
    agent = agents.start(instance, config)
    wait_until(lambda: [r["ReservationName"].split("-")[-2] for r in there()] == [f"r{later}"])
    instance.cli("reserve", "end", str(later))
    wait_until(lambda: not there())
    agent.stop()
    agents.start(instance, config.replace("reservations: 'yes'", "reservations: 'nobody-of-this-name'"))
    agents.offering(instance, "alpha")
    refused = int(instance.cli("reserve", "--queue", "n1/alpha", "--cpus", "1", "--for", "1h"))
    wait_until(lambda: "does not take a reservation" in instance.daemons[-1].output())
    wait_until(lambda: instance.json("reserve", "show", str(refused))["state"] == "active")
    instance.cli("reserve", "end", str(refused))


def test_maintenance_is_passed_on(instance, alpha):
    """No job of the cluster begins, whoever submits it, until the maintenance is over; without a partition Slurm is not told."""
    instance.server()
    config = agents.batch_queues(alpha).replace("poll:", "reservations: 'yes', partition: main, poll:")
    agent = agents.start(instance, config)
    agents.offering(instance, "alpha")

    def there():
        return [dict(word.split("=", 1) for word in line.split() if "=" in word)
                for line in alpha.tool("scontrol", "show", "reservation", "--oneliner").splitlines() if "ReservationName=drover-" in line]
    number = int(instance.cli("reserve", "--maintenance", "--queue", "n1/alpha", "--for", "1h"))
    made, = wait_until(there)
    assert made["PartitionName"] == "main" and "MAINT" in made["Flags"].split(",") and int(made["NodeCnt"]) == len(alpha.tool("sinfo", "-h", "-N", "-p", "main", "-o", "%N").split()), made
    directly = alpha.tool("sbatch", "--parsable", "--output=/dev/null", "--wrap=true").strip()
    wait_until(lambda: "Reserv" in alpha.tool("squeue", "-h", "-j", directly, "-o", "%r"))
    request = instance.submit(sh("true"))
    assert instance.cli("wait", "--timeout", "2s", str(request), code=None).code != 0
    instance.cli("reserve", "end", str(number))
    wait_until(lambda: not there())
    instance.wait(request)
    wait_until(lambda: directly not in alpha.tool("squeue", "-h", "-o", "%i").split())
    agent.stop()
    agents.start(instance, config.replace("partition: main, ", ""))
    agents.offering(instance, "alpha")
    instance.cli("reserve", "--maintenance", "--queue", "n1/alpha", "--for", "1h")
    wait_until(lambda: "maintenance is not passed on" in instance.daemons[-1].output())
    assert not there()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_who_may_use_slurms_reservations_is_said(instance, alpha):
    """With a map of users the agent's own user runs no jobs, so the local users must be named; and slurmrestd makes no reservations."""
    site = Site(instance)

    def ends(agent, why):
        agent.process.wait(60)
        assert agent.process.returncode != 0 and why in agent.output(), agent.output()
        instance.daemons.remove(agent)

    def queue(settings):
        return agents.batch_queues(alpha).replace("poll:", f"{settings}, poll:")
    ends(site.agent(more=queue("reservations: 'yes'"), wait=False), "must name the local users")
    for settings, why in (("reservations: 'yes', rest: 'unix:/run/s'", "not by slurmrestd"), ("reservations: 'a b'", "not 'a b'")):
        ends(agents.start(instance, queue(settings), name="n2"), why)


def test_slurm_is_asked_for_the_energy(instance, alpha):
    """By its sstat on the node, at the end of each job of a queue that wants it; what is no number is not taken."""
    tools = os.path.join(instance.base, "tools")
    os.mkdir(tools)
    said = os.path.join(instance.work, "said")
    instance.write(os.path.join(tools, "sstat"), f'#!/bin/sh\necho "$*" >>{said}.args\ncat {said}\n', 0o755)
    instance.env["PATH"] = f"{tools}:{instance.env['PATH']}"
    instance.server()
    agents.start(instance, agents.batch_queues(alpha).replace("poll:", "energy: 'yes', poll:"))
    agents.offering(instance, "alpha")
    for text, joules in (("1234\n", 1234), ("a lot\n", None)):
        instance.write("said", text)
        request = instance.run(sh("true"))
        row, = instance.api("GET", f"/v1/history?id={request}&attributes=EnergyJoules")["jobs"]
        assert row["ad"].get("EnergyJoules") == joules
    assert all("ConsumedEnergyRaw" in line and re.search(r"--jobs=\d+\.batch", line) for line in instance.read("said.args").splitlines())
