"""An agent with `users` in front of a batch system: the system sees each job's own user, and nobody sees another one's files."""
import os
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import agents
from drover import wait_until
from exec_slurm import ExecSlurm
from pool import AGENT as POOL_AGENT
from pool import Pool
from users import AGENT, ONE, TWO, Site, as_user, mode_of

pytest_plugins = ["batch_systems"]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")


class Slurm:
    """Who owns the jobs of a cluster, and how they are ended."""

    def __init__(self, system):
        self.system = system
        os.chmod(os.path.dirname(system.dir), 0o711)  # its configuration is everybody's to read

    def users(self):
        return sorted(self.system.tool("squeue", "-h", "-r", "-t", "pending,running,suspended", "-o", "%u").split())

    def cancel(self):
        for user in (ONE, TWO):
            self.system.tool("scancel", "-u", user.pw_name, code=None)

    def names(self):
        return [(user.pw_name, name) for user in (ONE, TWO)
                for name in self.system.tool("squeue", "-h", "-t", "pending,running", "-u", user.pw_name, "-o", "%j").split()]

    def submit(self, user, name):
        """One that waits for ever, under that name."""
        subprocess.run(["sbatch", "--hold", f"--job-name={name}", "--output=/dev/null", "--wrap=sleep 600"], env=self.system.env, cwd="/",
                       user=user.pw_uid, group=user.pw_gid, extra_groups=[], check=True, capture_output=True)


class GridEngine:
    def __init__(self, system):
        self.system = system

    def users(self):
        return sorted(line.split()[3] for line in self.system.tool("qstat", "-u", "*", "-g", "d").splitlines()[2:])

    def cancel(self):
        for user in (ONE, TWO):
            self.system.tool("qdel", "-u", user.pw_name, code=None)


class Condor:
    """A pool that each user has in his own name: its only node runs jobs as their users, too."""

    def __init__(self, pool):
        self.pool = pool

    def users(self):
        return sorted(self.pool.condor("q", "-af", "Owner").split())

    def cancel(self):
        self.pool.cancel_all()


@pytest.fixture
def users_pool(request, build):
    """Its agent may see all jobs there, as in HTCondor."""
    folder = tempfile.mkdtemp(prefix="po-", dir=request.config.drover_tmp)
    os.chmod(request.config.drover_tmp, 0o711)
    os.chmod(folder, 0o711)
    pool = Pool(build, folder)
    try:
        node = Site(pool.instance, f"operators: [{AGENT.pw_name}@local]\n")
        pool.programs(node.bin)
        node.agent(more=POOL_AGENT)
        agents.offering(pool.instance)
        yield pool
    finally:
        pool.stop()
        shutil.rmtree(folder, ignore_errors=True)


FIXTURES = {"slurm": "alpha", "rest": "rest", "exec": "alpha", "gridengine": "grid", "pbs": "pbs", "htcondor": "users_pool"}
LONG = bool(os.environ.get("DROVER_CHECK_LONG"))


def pytest_generate_tests(metafunc):
    """Two systems have all tests; the others one, but for the long form."""
    if "place" in metafunc.fixturenames:
        all_of_them = LONG or metafunc.function is test_each_owners_jobs_are_its_users
        only = getattr(metafunc.function, "only", None)
        names = only or (list(FIXTURES) if all_of_them else ["slurm", "gridengine"])
        metafunc.parametrize("place", [n for n in names if n not in getattr(metafunc.function, "but", ())], indirect=True)


@pytest.fixture
def place(request, instance):
    system = request.getfixturevalue(FIXTURES[request.param])
    site = Site(instance, "lease: 9s\n" if request.function is test_no_agent_no_job else "")
    os.chmod(request.config.drover_tmp, 0o711)
    if request.param == "rest":
        os.chown(system.token_file, AGENT.pw_uid, -1)
    site.native = {"gridengine": GridEngine, "htcondor": Condor}.get(request.param, Slurm)(getattr(system, "cluster", system))
    site.more = agents.batch_queues(ExecSlurm(system, instance.base) if request.param == "exec" else system)
    instance.env.update(getattr(system, "agent_env", {}))
    instance.env["PATH"] = system.env.get("PATH", instance.env["PATH"])
    site.node = site.agent(more=site.more)
    agents.offering(instance)
    yield site
    site.native.cancel()
    wait_until(lambda: not site.native.users())


def waits_for(go):
    return f"while [ ! -e {go} ]; do sleep 0.05; done"


def test_each_owners_jobs_are_its_users(place):
    jobs = {}
    for user in (ONE, TWO):
        place.write(user, "in", "x")
        os.chmod(os.path.join(place.home(user), "in"), 0o400)
        go = os.path.join(place.home(user), "go")
        jobs[user.pw_name] = place.submit(
            user, f"id -u; id -g; echo $USER $HOME; cat in; echo new >made; echo $DROVER_SCRATCH >{place.home(user)}/where; {waits_for(go)}",
            TransferInput="in", ShouldTransferFiles="YES", WhenToTransferOutput="ON_EXIT")
    for user in (ONE, TWO):
        wait_until(lambda u=user: os.path.exists(os.path.join(place.home(u), "where")))
    assert place.native.users() == sorted((ONE.pw_name, TWO.pw_name))
    sandbox = place.text(ONE, "where").strip()
    st = os.stat(sandbox)
    assert (st.st_uid, st.st_gid, mode_of(sandbox)) == (ONE.pw_uid, AGENT.pw_gid, 0o730)
    script = os.path.join(sandbox, ".drover_step.0.sh")
    assert as_user(ONE, lambda: os.access(script, os.R_OK))
    for path in (script, os.path.join(sandbox, "made"), sandbox + "/."):
        assert not as_user(TWO, lambda p=path: os.access(p, os.R_OK) or os.path.exists(p)), path
    asked = f"/v1/jobs/{jobs[ONE.pw_name]}.0/script"
    with open(script, encoding="utf-8") as f:
        assert as_user(ONE, lambda: place.instance.api("GET", asked))["script"] == f.read()
    as_user(TWO, lambda: place.instance.api("GET", asked, status=404))
    for user in (ONE, TWO):
        place.write(user, "go")
        place.instance.wait(jobs[user.pw_name])
        assert place.text(user, "out").splitlines() == [
            str(user.pw_uid), str(user.pw_gid), f"{user.pw_name} {user.pw_dir}", "x"]
        for name in ("out", "made", "err"):
            assert place.owner(user, name) == (user.pw_uid, user.pw_gid)
    wait_until(lambda: not [n for n in os.listdir(os.path.join(place.state, "jobs")) if not n.startswith("batch.")])


def test_arrays_do_not_mix_users(place):
    """Jobs that ask for the same are submitted together, but each user's by himself."""
    requests = [(user, i, place.submit(user, f"id -u >{place.home(user)}/got.{i}.$DROVER_MEMBER", jobs=8))
                for i, user in enumerate((ONE, TWO, ONE))]
    for user, i, request in requests:
        place.instance.wait(request)
        for member in range(8):
            assert place.text(user, f"got.{i}.{member}") == f"{user.pw_uid}\n"


def test_stopped_signalled_and_removed(place):
    """The agent is not the user, and may not act on his jobs: the user does."""
    home = place.home(ONE)
    request = place.submit(ONE, f"trap 'touch {home}/asked' USR1; while :; do echo >>{home}/beats; sleep 0.05; done",
                           CheckpointExitCode=85, CheckpointSig="SIGUSR1")
    name, cli = f"{request}.0", place.instance.cli
    place.instance.wait_state(name, "running")
    beats = os.path.join(home, "beats")
    wait_until(lambda: os.path.exists(beats))

    def is_stopped():
        """the job does nothing for a moment"""
        before = os.stat(beats).st_size
        time.sleep(0.4)
        return os.stat(beats).st_size == before

    cli("suspend", name)
    place.instance.wait_state(name, "suspended")
    wait_until(is_stopped)
    cli("resume", name)
    wait_until(lambda: not is_stopped())
    cli("checkpoint", name)
    wait_until(lambda: os.path.exists(os.path.join(home, "asked")))
    cli("rm", name)
    wait_until(lambda: not place.native.users())
    place.instance.wait(request, code=None)


# its node, which has no control groups then, cannot stop what a script has begun in a session of its own
test_stopped_signalled_and_removed.but = ["htcondor"]


def test_its_agent_killed(place):
    """What was submitted for a user is found again, and ends as it ends; nothing runs twice."""
    go = os.path.join(place.home(ONE), "go")
    request = place.submit(ONE, f"echo start >>{place.home(ONE)}/starts; {waits_for(go)}; id -u; exit 3", jobs=4)
    place.instance.wait_state(f"{request}.3", "running")
    second = place.submit(TWO, "id -u")
    place.node.kill()
    place.node = place.agent(more=place.more)
    place.write(ONE, "go")
    place.instance.wait(second)
    place.instance.wait(request, code=1)
    assert {row["exit_code"] for row in place.instance.history(request)} == {3}
    assert place.text(ONE, "starts") == "start\n" * 4
    assert place.text(ONE, "out") == f"{ONE.pw_uid}\n" and place.text(TWO, "out") == f"{TWO.pw_uid}\n"


def test_no_agent_no_job(place):
    """A script whose agent is gone for longer than its lease ends its program."""
    request = place.submit(ONE, f"echo $$ >{place.home(ONE)}/pid; exec sleep 600")
    place.instance.wait_state(f"{request}.0", "running")
    wait_until(lambda: os.path.exists(os.path.join(place.home(ONE), "pid")) and place.text(ONE, "pid"))
    pid = int(place.text(ONE, "pid"))
    assert os.stat(f"/proc/{pid}").st_uid == ONE.pw_uid
    place.node.kill()
    for shepherd in place.instance.pids("drover-shepherd"):
        os.kill(shepherd, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_submitted_twice(place):
    """What arrives late under a name of ours is ended by the user whose it is; another user's of that name is his own affair."""
    request = place.submit(ONE, f"echo start >>{place.home(ONE)}/starts; {waits_for(place.home(ONE) + '/go')}")
    place.instance.wait_state(f"{request}.0", "running")
    (user, name), = place.native.names()
    assert user == ONE.pw_name
    place.native.submit(TWO, name)
    place.native.submit(ONE, name)
    wait_until(lambda: sorted(place.native.names()) == [(ONE.pw_name, name), (TWO.pw_name, name)])
    place.write(ONE, "go")
    place.instance.wait(request)
    assert place.text(ONE, "starts") == "start\n"
    place.native.submit(ONE, name)
    wait_until(lambda: place.native.names() == [(TWO.pw_name, name)])


test_submitted_twice.only = ["slurm"]
