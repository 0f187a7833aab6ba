"""An older build beside this one, for tools/prove-upgrade: servers that stand in for each other, one after the other on one folder, agents and
servers, servers behind each other. Jobs in all states go on, and those that run do so once."""
import contextlib
import os
import signal

import pytest

import agents
import hops
from drover import sh, wait_until
from mirror import Pair
from test_postgres import Load, standby_of, stands_by
from test_standby_reads import reads_of, readable

OLD = os.path.abspath(os.environ["DROVER_OLD_BUILD"])


def of(one, build):
    """From now on the programs of this instance are those of the build."""
    one.build = build
    one.env["PATH"] = os.path.join(build, "bin") + ":" + os.environ["PATH"]


@contextlib.contextmanager
def programs_of(one, build):
    own = one.build
    of(one, build)
    try:
        yield
    finally:
        of(one, own)


def agent(one, build, *servers):
    """Starts the agent, or a build of it in place of another."""
    folder = os.path.join(one.base, "n1")
    args = ["--dir", folder, "--cpus", "4"]
    for server in servers:
        args += ["--server", f"unix:{server.dir}/agents.sock"]
    if not os.path.exists(os.path.join(folder, "agent.crt")):
        args += ["--token", one.json("token", "agent", "--name", "n1", "--uses", "1")["token"]]
    with programs_of(one, build):
        return one.start("drover-agent", *args)


def replaced(one, old, build, *servers):
    """The agent is stopped, and another build is started in its folder."""
    old.stop()
    one.daemons.remove(old)
    agent(one, build, *servers)


class Mixture:
    """Jobs in all states at a server that has an agent of four processors, until a file `go` is there."""

    def __init__(self, one):
        go = f"until [ -e {one.work}/go ]; do sleep 0.05; done"
        one.write("in", "spooled\n")
        self.failed = one.run(sh("exit 3"), code=1)
        self.running = [one.submit(sh(f"echo s >>{one.work}/starts; {go}; exit 3")) for _ in range(2)]
        one.write("step.sub", sh(go))
        one.write("two.dag", "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\n")
        self.graph = int(one.cli("dag", "submit", "two.dag").split()[1].rstrip(":"))
        wait_until(lambda: one.written("starts") and one.read("starts") == "s\ns\n")
        one.wait_state(f"{self.graph}.0", "running")
        self.queued = one.submit(sh("true", request_cpus="4", queue="queue 20"))
        self.held = one.submit(sh("cat in", transfer_input_files="in", should_transfer_files="YES", output="out"), "--hold")
        self.removed = one.submit(sh("true"), "--hold")
        one.cli("rm", str(self.removed))
        self.reservation = one.cli("reserve", "--cpus", "1", "--from", "+10h", "--for", "1h").strip()

    def is_there(self, one):
        """All as it was, at the server that leads now."""
        states = [one.job(f"{number}.0")["state"] for number in (*self.running, self.graph, self.queued, self.held)]
        assert states[:3] == ["running"] * 3 and states[3] in ("idle", "staging") and states[4] == "held", states
        assert one.json("reserve", "show", self.reservation)["id"] == int(self.reservation)
        ended = {job["id"]: job["state"] for job in one.history()}
        assert f"{self.failed}.0" in ended and f"{self.removed}.0" in ended

    def ends(self, one, *more):
        """And so do the others that are named; each once."""
        one.write("go", "")
        one.cli("release", str(self.held))
        one.wait(*self.running, code=1)
        one.wait(self.graph, self.queued, self.held, *more)
        assert one.read("starts") == "s\ns\n"
        one.cli("get", str(self.held), "-o", "got")
        assert one.read("got/out") == "spooled\n"
        past = [job["id"] for job in one.history()]
        assert len(set(past)) == len(past)
        assert {f"{n}.0" for n in (self.failed, *self.running, self.graph, self.held, self.removed, *more)} <= set(past)
        assert {f"{self.queued}.{member}" for member in range(20)} <= set(past)


def leads(one):
    wait_until(lambda: os.path.exists(os.path.join(one.dir, "server.json")))


def killed_under_load(one, server):
    """What was taken until the server was killed."""
    load = Load(one, by_api=True)
    load.more(50)
    server.process.kill()
    server.process.wait()
    one.daemons.remove(server)
    load.over.set()
    for thread in load.threads:  # the call that was on its way has failed
        thread.join()
    return load.taken


def test_two_servers_on_one_database(instance, request, build, database):
    """The old one leads and the new one stands by, answers reads, and takes over; the old one stands by then, until it is upgraded."""
    of(instance, OLD)
    instance.store = database.new_address()
    settings = instance.write("two.yaml", "standby: 3s\n")
    first = instance.server("--config", settings)
    new = standby_of(instance, request, "new")
    try:
        stands_by(new.start("droverd", "--dir", new.dir, "--config", settings))
        readable(new)
        one = agent(instance, OLD, instance, new)
        wait_until(lambda: instance.agents("connected"))
        jobs = Mixture(instance)
        known = [r["id"] for r in instance.api("GET", "/v1/requests")["requests"]]
        wait_until(lambda: [r["id"] for r in reads_of(new, "/v1/requests")[2]["requests"]] == known)
        taken = killed_under_load(instance, first)
        leads(new)
        wait_until(lambda: new.agents("connected"))
        jobs.is_there(new)
        old = instance.start("droverd", "--dir", instance.dir, "--config", settings)
        stands_by(old)
        old.stop()
        instance.daemons.remove(old)
        replaced(instance, one, build, instance, new)
        of(instance, build)
        stands_by(instance.start("droverd", "--dir", instance.dir, "--config", settings))
        new.cli("server", "drain")
        leads(instance)
        wait_until(lambda: instance.agents("connected"))
        jobs.is_there(instance)
        jobs.ends(instance, *taken)
    finally:
        for daemon in new.daemons:
            daemon.stop()


def test_a_mirrored_pair(instance, build):
    """The old one leads and the new one has a copy, and takes over; the old one follows then, until it is upgraded, and leads again."""
    of(instance, OLD)
    pair = Pair(instance, build)
    first, second = pair.both()
    try:
        leader, _ = pair.up()
        one = agent(first, OLD, first, second)
        wait_until(lambda: first.agents("connected"))
        jobs = Mixture(first)
        taken = killed_under_load(first, leader)
        pair.leads(1)
        wait_until(lambda: second.agents("connected"))
        jobs.is_there(second)
        old = pair.start(0)
        pair.mirrored(follower=0)
        taken.append(second.submit(sh("true")))
        old.stop()
        first.daemons.remove(old)
        replaced(first, one, build, first, second)
        of(first, build)
        pair.start(0)
        pair.mirrored(follower=0)
        second.cli("server", "drain")
        pair.leads(0)
        wait_until(lambda: first.agents("connected"))
        jobs.is_there(first)
        jobs.ends(first, *taken)
    finally:
        pair.end()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_one_server_after_the_other(instance, build, how):
    """On one folder with SQLite, with the agent of the old build, and then that of the new one."""
    of(instance, OLD)
    instance.server()
    one = agent(instance, OLD, instance)
    wait_until(lambda: instance.agents("connected"))
    jobs = Mixture(instance)
    instance.kill_server(how)
    of(instance, build)
    instance.server()
    wait_until(lambda: instance.agents("connected"))
    jobs.is_there(instance)
    replaced(instance, one, build, instance)
    wait_until(lambda: instance.agents("connected"))
    jobs.ends(instance, instance.submit(sh("true")))


@pytest.mark.parametrize("old_agent", [True, False], ids=["old-agent", "new-agent"])
def test_an_agent_and_a_server(instance, build, old_agent):
    """Of different builds: files, control, commands beside a job; and the agent becomes one of the server's build while jobs run."""
    own, other = (build, OLD) if old_agent else (OLD, build)
    of(instance, own)
    instance.server()
    one = agent(instance, other, instance)
    wait_until(lambda: instance.agents("connected"))
    going = instance.submit(sh("echo started; sleep 600", output="printed"))
    instance.wait_state(f"{going}.0", "running")
    wait_until(lambda: instance.cli("tail", f"{going}.0").out == "started\n")
    assert instance.cli("exec", f"{going}.0", "--", "/bin/echo", "beside").out == "beside\n"
    instance.cli("suspend", str(going))
    instance.wait_state(f"{going}.0", "suspended")
    instance.cli("resume", str(going))
    instance.wait_state(f"{going}.0", "running")
    instance.cli("rm", str(going))
    instance.run(sh(f"[ -e {instance.work}/again ] || ! touch {instance.work}/again", max_retries="2"))
    jobs = Mixture(instance)
    replaced(instance, one, own, instance)
    wait_until(lambda: instance.agents("connected"))
    jobs.ends(instance, instance.submit(sh("true")))


@pytest.mark.parametrize("old_front", [True, False], ids=["old-front", "new-front"])
def test_servers_behind_each_other(instance, request, build, old_front):
    own, other = (OLD, build) if old_front else (build, OLD)
    of(instance, own)
    far = hops.far(request, build)
    of(far, other)
    instance.server()
    hops.runs(far)
    hops.link(instance, far)
    instance.write("in.txt", "spooled\n")
    fails = instance.run(sh("cat in.txt >out.txt; exit 3", transfer_input_files="in.txt"), code=1)
    assert instance.history(fails)[0]["exit_code"] == 3 and instance.read("out.txt") == "spooled\n"
    many = instance.submit(sh("sleep 600", queue="queue 5"))
    for member in range(5):
        hops.path_in(instance, f"{many}.{member}", 2, "running")
    instance.cli("rm", str(many))
    wait_until(lambda: not hops.far_jobs(far))
    instance.agent.stop()
    instance.daemons.remove(instance.agent)
    with programs_of(instance, other):  # and an agent of the far server's build hands on
        instance.agent = agents.start(instance, instance.config)
    agents.offering(instance)
    instance.run(sh("true", queue="queue 20"))
