"""What every runner must do, on each of them: processes of this machine, the same in containers, and real batch systems."""
import contextlib
import glob
import os
import re
import signal
import tempfile

import pytest

import agents
from containers import ENGINES, engine_with_image
from drover import Instance, processes, sh, wait_until

pytest_plugins = ["batch_systems"]
LONG = os.environ.get("DROVER_CHECK_LONG")


SYSTEMS = {"slurm": "alpha", "rest": "rest", "gridengine": "grid", "pbs": "pbs", "htcondor": "condor_pool", "exec": "processes", "awsbatch": "aws_batch",
           "kubernetes": "kubernetes"}
if LONG:
    SYSTEMS["accounts"] = "books"  # Slurm's, in a database


# What is the script's own, or the table's, and so the same by requests as by commands: there in the long form only.
NOT_OF_REST = ("test_a_script_killed_alone_takes_its_program_along", "test_time_is_kept", "test_what_cannot_start_is_held",
               "test_words_that_cannot_be_are_refused_here", "test_jobs_go_on_without_an_agent")


def pytest_generate_tests(metafunc):
    less = ["rest"] if not LONG and metafunc.definition.originalname in NOT_OF_REST else []
    for fixture, kinds in (("place", ["process", *ENGINES, "drover", *SYSTEMS]), ("batch", SYSTEMS)):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, [kind for kind in kinds if kind not in less], indirect=True)


def system_of(request):
    return request.getfixturevalue(SYSTEMS[request.param]) if request.param in SYSTEMS else None


def begin(instance, system, config=None):
    instance.system = system
    instance.left = system.jobs if system else list
    instance.host_pid = int
    instance.many = 1000 if LONG or not system else 60
    instance.config = config or (agents.batch_queues(system) if system else
                                 "kill_grace: 1s\nqueues:\n  - name: here\n    cpus: 8\n")
    if hasattr(system, "agent_env"):
        instance.env.update(system.agent_env, PATH=system.bin + ":" + instance.env["PATH"])
    instance.server()
    instance.agent = agents.start(instance, instance.config)
    agents.offering(instance)
    return instance


@pytest.fixture(scope="module")
def podman(request):
    with engine_with_image(request.config.drover_tmp) as one:
        yield one


@pytest.fixture(scope="module")
def apptainer(request):
    with engine_with_image(request.config.drover_tmp, "apptainer") as one:
        yield one


def in_containers(instance, engine):
    """All that is submitted runs in the tests' image, where the work folder is mounted."""
    submit = instance.submit
    instance.submit = lambda text, *args, **more: submit(
        f"universe = container\ncontainer_image = {engine.image}\n{text}", *args, **more)
    instance.env.update(engine.env)
    begin(instance, None, "kill_grace: 1s\nqueues:\n  - name: here\n    cpus: 8\n    container: {network: none, pull: never, "
                          f"{engine.settings}, mounts: ['{instance.work}']}}\n")
    instance.left = engine.names
    instance.many = 1000 if LONG else 24
    instance.host_pid = lambda number: pid_outside(instance, int(number))
    return instance


def pid_outside(instance, number):
    """The process that has this number in its container."""
    found = []
    for pid in processes(instance.base):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8") as f:
            numbers = re.search(r"^NSpid:(.*)", f.read(), re.M)[1].split()
            if len(numbers) > 1 and int(numbers[-1]) == number:
                found.append(pid)
    pid, = found
    return pid


@pytest.fixture
def behind(request, build):
    """The configuration of an agent that hands jobs on to another server, which runs them as processes."""
    far = Instance(build, tempfile.mkdtemp(prefix="f-", dir=request.config.drover_tmp))
    try:
        far.up()
        agents.offering(far)
        yield f"kill_grace: 1s\nqueues:\n  - {{name: far, runner: drover, drover: {{server: 'unix:{far.socket_path()}'}}}}\n"
    finally:
        try:
            far.stop()
        finally:
            far.destroy()


@pytest.fixture
def place(request, instance):
    """A server, and an agent with one queue of the runner."""
    if request.param == "drover":
        return begin(instance, None, request.getfixturevalue("behind"))
    if request.param in ENGINES:
        return in_containers(instance, request.getfixturevalue(request.param))
    return begin(instance, system_of(request))


@pytest.fixture
def batch(request, instance):
    """The same, of a runner whose tasks wait in a queue of somebody else's."""
    return begin(instance, system_of(request))


def until(path):
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


def in_system(place):
    """What the batch system, or the container engine, still has, or nothing."""
    return place.left()


def hold_reason(place, request):
    place.wait_state(f"{request}.0", "held")
    return place.job(f"{request}.0")["hold_reason"]


def test_exit_codes_and_signals(place):
    codes = place.submit(sh("exit $DROVER_MEMBER", queue="queue 12"))
    killed = place.submit(sh("kill -KILL $$"))
    place.wait(codes, killed, code=None)
    assert {j["member"]: j["exit_code"] for j in place.history(codes)} == {n: n for n in range(12)}
    assert place.history(killed)[0]["exit_signal"] == 9


def test_words_and_streams(place):
    """Arguments as they were written, input, outputs, the environment, the folder."""
    place.write("in put", "from stdin\n")
    words = place.submit('executable = /bin/printf\narguments = "\'[%s]\\n\' \'it\'\'s\' \'a ""b""\' \'$HOME `x` \\\' '
                         '\'grün ☃\' \'\' \'*\'"\noutput = words\nqueue\n')
    streams = place.submit(sh('cat; echo err >&2; echo made >new; pwd; echo "$GREETING $OMP_NUM_THREADS"', input="in put",
                              output="out", error="err", environment="\"GREETING='gu ten'\"", request_cpus="2",
                              should_transfer_files="IF_NEEDED"))
    place.wait(words, streams)
    assert place.read("words") == "[it's]\n[a \"b\"]\n[$HOME `x` \\]\n[grün ☃]\n[]\n[*]\n"
    out = place.read("out").splitlines()
    assert out[0] == "from stdin" and out[2] == "gu ten 2" and "/jobs/" in out[1]
    assert place.read("err") == "err\n" and place.read("new") == "made\n"


def test_what_cannot_start_is_held(place):
    program = place.submit("executable = /no/such/program\nqueue\n")
    stdin = place.submit("executable = /bin/cat\ninput = /no/such/file\nqueue\n")
    assert "/no/such/program" in hold_reason(place, program)
    assert "/no/such/file" in hold_reason(place, stdin)


def test_time_is_kept(place):
    assert "walltime of 2 s" in hold_reason(place, place.submit(sh("sleep 600", allowed_execute_duration="2")))


def test_hold_release_and_remove(place):
    request = place.submit(sh(f"echo $$ >>{place.work}/pids; sleep 600"))
    wait_until(lambda: place.written("pids"))
    first = place.host_pid(place.read("pids").split()[0])
    place.cli("hold", f"{request}.0")
    place.wait_state(f"{request}.0", "held")
    wait_until(lambda: not os.path.exists(f"/proc/{first}"))
    wait_until(lambda: not in_system(place))
    place.cli("release", f"{request}.0")
    wait_until(lambda: len(place.read("pids").split()) == 2)
    second = place.host_pid(place.read("pids").split()[1])
    place.cli("rm", f"{request}.0")
    wait_until(lambda: not os.path.exists(f"/proc/{second}"))
    wait_until(lambda: not in_system(place))


def test_agent_killed_in_the_middle(place):
    """Again and again, while jobs are submitted and run: each runs once, and none is lost."""
    for turn in range(4):
        place.submit(sh(f"echo $DROVER_JOB >>{place.work}/ran; sleep 0.5", queue="queue 6"))
        if place.system:
            wait_until(lambda: glob.glob(f"{place.base}/n1/batch.*/*.sh"))
        else:
            wait_until(lambda n=turn: place.exists("ran") and len(place.read("ran").split()) > 6 * n)
        place.agent.stop(signal.SIGKILL)
        place.agent = agents.start(place, place.config)
    wait_until(lambda: len(place.history()) == 24)
    ran = place.read("ran").split()
    assert len(ran) == len(set(ran)) == 24
    assert all(j["exit_code"] == 0 and j["starts"] == 1 for j in place.history())


def test_a_new_shepherd_leaves_what_a_batch_system_runs_here(batch):
    """Its node may be this machine. The shepherd ends what its last one has left, and nothing else."""
    flag = os.path.join(batch.work, "flag")
    request = batch.submit(sh(f"echo $$ >>{batch.work}/pids; {until(flag)}; exit 5"))
    wait_until(lambda: batch.written("pids"))
    batch.wait_state(f"{request}.0", "running")
    batch.agent.stop(signal.SIGKILL)
    for pid in batch.pids("drover-shepherd"):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not batch.pids("drover-shepherd"))
    batch.agent = agents.start(batch, batch.config)
    wait_until(lambda: batch.pids("drover-shepherd"))
    batch.run(sh("true"))
    batch.write("flag", "")
    batch.wait(request, code=None)
    assert [(j["exit_code"], j["starts"]) for j in batch.history(request)] == [(5, 1)]


def test_jobs_go_on_without_an_agent(place):
    flag = os.path.join(place.work, "flag")
    request = place.submit(sh(f"echo $$ >>{place.work}/pids; {until(flag)}; exit 5"))
    wait_until(lambda: place.written("pids"))
    place.wait_state(f"{request}.0", "running")
    pid = place.host_pid(place.read("pids").split()[0])
    place.agent.kill()
    place.write("flag", "")
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
    place.agent = agents.start(place, place.config)
    place.wait(request, code=1)
    row = place.history(request)[0]
    assert (row["exit_code"], row["starts"]) == (5, 1)
    assert len(place.read("pids").split()) == 1


@pytest.mark.timeout(900)
def test_many_in_one_go(place):
    """A thousand, in a batch system and in containers in the long form only; each runs once."""
    count = place.many
    request = place.submit(sh(f"echo $DROVER_JOB >>{place.work}/ran", request_memory="8", queue=f"queue {count}"))
    place.wait(request, seconds=600)
    ran = place.read("ran").split()
    assert len(ran) == len(set(ran)) == count
    done = place.history(request)
    assert len(done) == count and all(j["exit_code"] == 0 and j["starts"] == 1 for j in done)


# ---- batch systems


def test_what_is_refused_is_held_with_the_systems_words(batch):
    words, said = batch.system.refused
    request = batch.submit(sh("true", **{f"+{name}": f'"{value}"' for name, value in words.items()}))
    assert said in hold_reason(batch, request)
    assert in_system(batch) == []
    batch.run(sh("true"))


def test_words_that_cannot_be_are_refused_here(batch):
    request = batch.submit(sh("true", **{"+BatchProject": '"a b; c"'}))
    assert "cannot be " in hold_reason(batch, request)


def test_ended_behind_our_back(batch):
    """Somebody's cancel: of what runs, of what waits. Both are held; nothing goes on, nothing is lost. Grid Engine keeps no word of
    what never ran, which is lost and runs again: there of what runs only."""
    has = agents.offering(batch)["ad"]
    if batch.system.runner == "exec":  # it counts jobs
        full, asks = has["Cpus"], {"request_memory": "8"}
    else:
        full, asks = has["Nodes"], {"request_cpus": str(has["NodeCpus"]), "request_memory": str(has["NodeMemory"])}
    count = full + (batch.system.runner != "gridengine")
    request = batch.submit(sh(f"echo $$ >>{batch.work}/pids; sleep 600", queue=f"queue {count}", **asks))
    wait_until(lambda: batch.exists("pids") and len(batch.read("pids").split()) == full)
    wait_until(lambda: len(in_system(batch)) == count)
    wait_until(lambda: [batch.job(f"{request}.{n}")["state"] for n in range(count)].count("running") == full)
    batch.system.cancel_all()
    for n in range(count):
        assert "cancelled" in batch.wait_state(f"{request}.{n}", "held")["hold_reason"]
    pids = batch.read("pids").split()
    assert len(pids) == full
    for pid in pids:
        wait_until(lambda p=pid: not os.path.exists(f"/proc/{p}"))


def test_a_script_killed_alone_takes_its_program_along(batch):
    """SIGKILL to the script, as a system does that knows only what it started."""
    request = batch.submit(sh(f"echo $$ >>{batch.work}/pids; sleep 600", max_retries="0"))
    wait_until(lambda: batch.written("pids"))
    batch.wait_state(f"{request}.0", "running")
    pid = int(batch.read("pids").split()[0])
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        os.kill(int(f.read().split()[3]), signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
    wait_until(lambda: not in_system(batch))
    batch.cli("rm", str(request))


def test_a_closed_queue_takes_nothing(batch):
    """What is submitted meanwhile waits in Drover, and goes when the queue is open again."""
    batch.system.close()
    try:
        if getattr(batch.system, "shows_closed", True):
            wait_until(lambda: all(q["free"]["cpus"] == 0 for a in batch.agents("connected") for q in a["queues"]))
            request = batch.submit(sh("true"))
            assert in_system(batch) == []
            assert batch.job(f"{request}.0")["state"] == "idle"
        else:  # it waits there
            request = batch.submit(sh("true"))
            wait_until(lambda: in_system(batch))
    finally:
        batch.system.open()
    batch.wait(request)


def test_daemon_killed_and_started_again(batch):
    """Its jobs are kept, and what ended meanwhile is accounted for."""
    flag = os.path.join(batch.work, "flag")

    def running():
        one = batch.submit(sh(f"echo >>{batch.work}/up; {until(flag)}; exit $(($DROVER_MEMBER + 3))", queue="queue 2"))
        for n in range(2):
            batch.wait_state(f"{one}.{n}", "running")
        return one

    request = running()
    batch.agent.stop(signal.SIGKILL)
    batch.agent = agents.start(batch, batch.config)
    more = running()  # they run before the agent is killed, and after
    wait_until(lambda: len(batch.read("up")) == 4)
    batch.system.kill_daemon()
    try:
        wait_until(lambda: "does not answer" in batch.logs())
        later = batch.submit(sh("true"))
        batch.write("flag", "")
    finally:
        batch.system.start_daemon()
    batch.wait(later)
    for one in (request, more):
        batch.wait(one, code=1)
        assert sorted((j["exit_code"], j["starts"]) for j in batch.history(one)) == [(3, 1), (4, 1)]
