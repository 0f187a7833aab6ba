"""`backends:` in droverd.yaml: the front end runs by itself what hands jobs on to other servers."""
import contextlib
import json
import os
import pwd
import shutil
import signal
import uuid

import pytest

import agents
import mirror
import users
from drover import free_port, sh, wait_until
from hops import far, runs
from test_no_single_point import Servers

JOBS = 1000


class Front:
    """A server with back ends in its settings, and the back ends."""

    def __init__(self, instance, request, build, *names, start=True):
        self.one, self.back, self.more = instance, {}, {}
        for name in names:
            self.back[name] = far(request, build)
            if start:
                runs(self.back[name])
        self.lines = {name: "queued_max: 8" for name in names}

    def write(self, *names):
        text = "lease: 6s\nbackends:\n" if names else "lease: 6s\n"
        for name in names:
            text += f"  {name}: {{server: 'unix:{self.back[name].socket_path()}', {self.lines[name]}}}\n"
        return self.one.write("front.yaml", text)

    def start(self, *names):
        self.server = self.one.server("--config", self.write(*names))

    def reload(self, *names):
        self.write(*names)
        before = self.server.output().count("settings were read again")
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.server.output().count("settings were read again") > before)

    def status(self):
        return {b["name"]: b for b in self.one.json("server", "status").get("backends", [])}

    def is_in(self, name, state):
        wait_until(lambda: self.status()[name]["state"] == state)

    def lose(self, name):
        """Its machine is switched off."""
        self.back[name].kill_server()
        self.back[name].runner.kill()
        for pid in self.back[name].pids("drover-shepherd"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def done(self, name):
        return sum(r["completed"] for r in self.back[name].api("GET", "/v1/requests?all=1")["requests"])


def counting(front, jobs):
    script = front.one.write("job", f"#!/bin/sh\nsleep 0.05\necho $1 >>{front.one.work}/ran\n", 0o755)
    return front.one.submit(f"executable = {script}\narguments = $(Process)\nrequest_memory = 16 MB\nrequest_disk = 1 MB\nqueue {jobs}\n")


def waiting(front, jobs):
    """Jobs that run until the file `go` is there."""
    return front.one.submit(sh(f"echo $$ >>{front.one.work}/pids; while [ ! -e {front.one.work}/go ]; do sleep 0.05; done",
                               request_memory="16 MB", request_disk="1 MB", queue=f"queue {jobs}"))


def running(front, jobs):
    wait_until(lambda: front.one.exists("pids") and len(front.one.read("pids").split()) == jobs)


@pytest.mark.timeout(900)
def test_a_thousand_jobs_with_one_lost_one_added_one_drained(instance, request, build):
    """Three back ends in one file, one of them lost for good in the middle, one drained and one added by a reload: every job is done,
    and none twice that was not at the lost one."""
    front = Front(instance, request, build, "east", "north", "west", "south")
    front.start("east", "north", "west")
    wait_until(lambda: {b["state"] for b in front.status().values()} == {"connected"})
    number = counting(front, JOBS)
    wait_until(lambda: all(front.done(name) > 20 for name in ("east", "north", "west")))
    front.lose("east")
    front.lines["north"] += ", drain: yes"
    front.reload("east", "north", "west", "south")
    front.is_in("north", "draining")
    front.is_in("east", "unreachable")
    assert "does not answer" in front.status()["east"]["why"]
    assert "unreachable" in instance.cli("server", "status")
    wait_until(lambda: front.done("south") > 20)
    assert {a["name"] for a in instance.agents()} == {"east", "north", "west", "south"}
    assert "droverd.yaml" in instance.cli("nodes")
    instance.wait(number, seconds=400)
    ran = [int(n) for n in instance.read("ran").split()]
    assert set(ran) == set(range(JOBS))
    assert len(instance.history(number)) == JOBS
    for job in {n for n in ran if ran.count(n) > 1}:  # it had begun at the one that was lost
        events = [e["event"] for e in instance.events(f"{number}.{job}")]
        assert events.count("matched") > 1, (job, events)


def test_one_that_is_away_is_told_and_comes_back(instance, request, build):
    front = Front(instance, request, build, "east")
    front.start("east")
    front.is_in("east", "connected")
    number = waiting(front, 3)
    running(front, 3)
    late = instance.submit(sh("true", request_cpus="8"))
    front.back["east"].kill_server()
    front.is_in("east", "unreachable")
    wait_until(lambda: "does not answer" in instance.cli("why", f"{late}.0"))
    front.back["east"].server()
    front.is_in("east", "connected")
    instance.write("go", "")
    instance.wait(number, late)
    assert len(instance.read("pids").split()) == 3


def test_one_that_is_removed_ends_its_jobs_first(instance, request, build):
    """Also over a restart of the front end; then its agent, its rights and its folder are gone, and it may come again."""
    front = Front(instance, request, build, "east", "west")
    front.start("east")
    front.is_in("east", "connected")
    number = waiting(front, 2)
    running(front, 2)
    front.reload("west")
    front.is_in("east", "leaving")
    front.is_in("west", "connected")
    instance.kill_server(signal.SIGTERM)
    front.start("west")
    front.is_in("west", "connected")
    assert front.status()["east"]["state"] == "leaving" and front.status()["east"]["jobs"] == 2
    instance.write("go", "")
    instance.wait(number)
    assert len(instance.read("pids").split()) == 2
    wait_until(lambda: set(front.status()) == {"west"})
    assert sorted(os.listdir(f"{instance.dir}/backends")) == ["west"]
    assert {n["name"]: n["state"] for n in instance.json("nodes")["nodes"]}["east"] == "retired"
    assert len([p for p in instance.pids("drover-agent")]) == 1
    front.reload("east", "west")
    front.is_in("east", "connected")
    os.remove(f"{instance.work}/pids")
    os.remove(f"{instance.work}/go")
    front.lines["west"] += ", drain: yes"
    front.reload("east", "west")
    front.is_in("west", "draining")
    number = waiting(front, 2)
    running(front, 2)
    assert {j["agent"] for j in instance.jobs(number)} == {"east"}
    instance.write("go", "")
    instance.wait(number)


def test_its_agent_is_kept_running(instance, request, build):
    """Killed, it is started again, and its jobs are still its own; with other settings too; and it rejoins when it was revoked."""
    front = Front(instance, request, build, "east")
    front.start("east")
    front.is_in("east", "connected")
    number = waiting(front, 2)
    running(front, 2)
    pid, = instance.pids("drover-agent")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pid not in instance.pids("drover-agent") and len(instance.pids("drover-agent")) == 1)
    front.is_in("east", "connected")
    front.lines["east"] += ", attributes: 'Site = \"east\"', price: 3"
    front.reload("east")
    wait_until(lambda: [q for a in instance.agents("connected") for q in a["queues"] if q["offer"] and "Site" in json.dumps(q)])
    instance.cli("agents", "revoke", "east")
    front.is_in("east", "connected")
    instance.write("go", "")
    instance.wait(number)
    assert len(instance.read("pids").split()) == 2


def test_it_ends_with_its_server_and_its_files_are_private(instance, request, build):
    front = Front(instance, request, build, "east")
    front.start("east")
    front.is_in("east", "connected")
    folder = f"{instance.dir}/backends/east"
    for name in ("token", "agent.yaml", "agent.key"):
        assert os.stat(f"{folder}/{name}").st_mode & 0o077 == 0
    assert front.server.stop() == 0
    instance.daemons.remove(front.server)
    wait_until(lambda: instance.pids("drover-agent") == [])


def as_ann(instance, **attributes):
    part = {"attributes": {"Cmd": '"/bin/true"', "Iwd": f'"{instance.work}"', **attributes}, "rows": 1, "steps": 1}
    return instance.api("POST", "/v1/requests", {"uuid": str(uuid.uuid4()), "parts": [part]}, headers={"Drover-Owner": "ann@local"})["id"]


def test_without_owners_only_the_servers_own_jobs_go_there(instance, request, build):
    front = Front(instance, request, build, "east")
    front.start("east")
    front.is_in("east", "connected")
    instance.wait(instance.submit(sh("true")))
    number = as_ann(instance)
    wait_until(lambda: "this owner" in instance.cli("why", f"{number}.0"))
    assert instance.job(f"{number}.0")["state"] == "idle"
    front.lines["east"] += ", owners: any"  # root's agents run root's jobs only
    front.reload("east")
    front.is_in("east", "failed")
    assert "another user" in front.status()["east"]["why"]
    instance.cli("rm", str(number))
    front.lines["east"] = "queued_max: 8"
    front.reload("east")
    front.is_in("east", "connected")


def test_agents_that_do_not_run_the_front_ends_jobs(instance, request, build):
    """The back end's agents run other users' jobs only: the front end says so, until an agent there maps its user."""
    os.chmod(request.config.drover_tmp, 0o711)
    port = free_port()
    there = users.Site(far(request, build), "", "--api-listen", f"127.0.0.1:{port}")
    east = there.instance
    agent = there.agent(f"users:\n  ann@local: {users.TWO.pw_name}\n")
    agents.offering(east)
    token = instance.write("token", east.json("token", "user", "--name", "front")["token"] + "\n", 0o600)
    text = f"lease: 6s\nbackends:\n  east: {{server: 'https://127.0.0.1:{port}', token_file: {token}}}\n"
    instance.server("--config", instance.write("front.yaml", text))
    number = instance.submit(sh(f"test $(id -un) = {users.ONE.pw_name}", should_transfer_files="YES"))
    wait_until(lambda: "no agent of the other server runs jobs of front@local" in instance.cli("why", f"{number}.0"))
    agent.stop()
    east.daemons.remove(agent)
    there.agent(f"users:\n  front@local: {users.ONE.pw_name}\n")
    instance.wait(number)
    assert [(row["owner"], row["exit_code"]) for row in east.history()] == [("front@local", 0)]


def test_jobs_of_others_reach_no_file_of_the_server(instance, request, build):
    """Over TLS, with a token in a file. With `owners` the agent, which has the server's rights, opens no path that a job names,
    whatever the job says of its file system."""
    nobody = pwd.getpwnam("nobody")
    programs = os.path.join(instance.base, "programs")
    os.makedirs(programs)
    for name in ("drover", "droverd", "drover-agent", "drover-mover", "drover-shepherd"):
        shutil.copy(os.path.join(build, "bin", name), programs)
    instance.program = lambda name: os.path.join(programs, name)
    for folder in (os.path.dirname(instance.base), instance.base, instance.work):
        os.chmod(folder, 0o755)
    os.makedirs(f"{instance.work}/own")
    secret = instance.write("own/secret", "of the server\n", 0o700)
    east = far(request, build)
    runs(east, "--api-listen", f"127.0.0.1:{(port := free_port())}")
    token = instance.write("own/token", east.json("token", "user")["token"] + "\n", 0o600)
    for path in (f"{instance.work}/own", secret, token):
        shutil.chown(path, nobody.pw_uid)
    text = f"lease: 6s\nbackends:\n  east: {{server: 'https://127.0.0.1:{port}', token_file: {token}, owners: OWNERS}}\n"
    config = instance.write("front.yaml", text.replace("OWNERS", "'*@physics'"))
    server = instance.server("--config", config, "--user", "nobody")
    wait_until(lambda: instance.json("server", "status")["backends"][0]["state"] == "connected")
    first = as_ann(instance)
    wait_until(lambda: "this owner" in instance.cli("why", f"{first}.0"))
    instance.write("front.yaml", text.replace("OWNERS", "any"))
    server.process.send_signal(signal.SIGHUP)
    instance.wait(first)
    row, = east.history()
    assert row["owner"] == "root@local" and row["state"] == "completed"
    domain = instance.agents()[0]["filesystem_domain"]
    attacks = [{"TransferInput": f'"{secret}"'}, {"TransferInput": f'"file://{secret}"'}, {"Cmd": f'"{secret}"'}, {"In": f'"{secret}"'},
               {"Out": f'"{secret}"', "Cmd": '"/bin/echo"'}, {"TransferOutput": '"x"', "TransferOutputRemaps": f'"x={secret}"',
                                                              "Cmd": '"/usr/bin/touch"', "Args": '"x"'}]
    for attack in attacks:
        for place in ({}, {"FileSystemDomain": f'"{domain}"'}):
            number = as_ann(instance, ShouldTransferFiles='"YES"', WhenToTransferOutput='"ON_EXIT"', **attack, **place)
            wait_until(lambda n=number: instance.api("GET", f"/v1/requests/{n}")["held"] or instance.history(n))
            with open(secret, encoding="utf-8") as f:
                assert f.read() == "of the server\n", attack
            assert all(b"of the server" not in contents for contents in spooled(east)), (attack, place)
            instance.cli("rm", str(number), code=None)
    assert not [row for row in east.history() if row["exit_code"]]


def spooled(one):
    for folder, _, names in os.walk(one.dir + "/spool"):
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                yield f.read()


def test_jobs_of_a_back_end_without_agents_come_back(instance, request, build):
    """Its server answers, but its only agent is gone: what ran there, and what waits there, runs at the other back end, and ends once."""
    front = Front(instance, request, build, "north", "west", start=False)
    for name in ("north", "west"):
        runs(front.back[name], "--config", front.back[name].write("far.yaml", "lease: 6s\n"))
    front.start("north", "west")
    wait_until(lambda: {b["state"] for b in front.status().values()} == {"connected"})
    script = instance.write("job", f"#!/bin/sh\necho $1 >>{instance.work}/starts\n"
                            f"while [ ! -e {instance.work}/go ]; do sleep 0.05; done\necho $1 >>{instance.work}/ends\n", 0o755)
    number = instance.submit(f"executable = {script}\narguments = $(Process)\nrequest_memory = 16 MB\nrequest_disk = 1 MB\nqueue 32\n")
    wait_until(lambda: instance.exists("starts") and len(instance.read("starts").split()) == 16)

    def at_north(*states):
        return {j["id"] for j in instance.jobs(number) if j["agent"] == "north" and j["state"] in states}

    wait_until(lambda: at_north("running") and at_north("staging"))
    ran, waited = at_north("running"), at_north("staging")
    front.back["north"].runner.kill()
    wait_until(lambda: not at_north("running", "staging"))
    assert front.status()["north"]["state"] == "connected"
    for job in sorted(ran | waited):
        lost, = [e for e in instance.events(job) if e["event"] == ("lost" if job in ran else "refused")]
        assert "no place of the other server" in lost["text"]
    assert [j["state"] for j in front.back["north"].history()].count("removed") == len(ran | waited)
    instance.write("go", "")
    instance.wait(number, seconds=300)
    assert sorted(map(int, instance.read("ends").split())) == list(range(32))
    assert {j["state"] for j in instance.history(number)} == {"completed"}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_a_back_end_of_two_servers(instance, request, build, database, how):
    """Its leader is killed, or freezes, while a job runs there: the front end goes on with the other one, also when the first stands by
    again and answers reads, and the job runs once and is never lost."""
    back = far(request, build)
    pair = Servers(back, request, database.new_address(), count=2)
    try:
        pair.agents(1)
        token = instance.write("token", back.json("token", "user")["token"] + "\n", 0o600)
        addresses = ", ".join(f"'{a}'" for a in pair.addresses)
        text = f"lease: 40s\nbackends:\n  m: {{server: [{addresses}], token_file: {token}}}\n"
        server = instance.server("--config", instance.write("front.yaml", text))

        def met(times):
            wait_until(lambda: server.output().count("in touch with the other server") >= times and state() == "connected")

        def state():
            return instance.json("server", "status")["backends"][0]["state"]

        met(1)
        number = instance.submit(sh(f"echo s >>{instance.work}/starts; while [ ! -e {instance.work}/go ]; do sleep 0.05; done; exit 3"))
        wait_until(lambda: instance.job(f"{number}.0")["state"] == "running")
        first, second = pair.all
        old = pair.daemon(first)
        old.process.send_signal(how)
        wait_until(lambda: pair.leads(second))
        met(2)
        if how == signal.SIGSTOP:
            old.process.send_signal(signal.SIGCONT)
        wait_until(lambda: not old.running())
        standby = pair.start(first)
        wait_until(lambda: "reads are answered" in standby.output())
        assert instance.job(f"{number}.0")["state"] == "running"
        instance.wait(instance.submit(sh("true")))
        pair.daemon(second).process.send_signal(signal.SIGKILL)
        wait_until(lambda: pair.leads(first))
        met(3)
        instance.write("go", "")
        instance.wait(number, code=1)
        assert instance.read("starts") == "s\n" and instance.job(f"{number}.0")["exit_code"] == 3
        assert "lost" not in [e["event"] for e in instance.events(f"{number}.0")]
    finally:
        pair.stop()


def test_a_back_end_of_two_servers_that_mirror_each_other(instance, request, build):
    """The same with sockets, in a text, and with servers that have a copy each."""
    pair = mirror.Pair(far(request, build), build)
    try:
        leader, _ = pair.up()
        pair.agent()
        sockets = " ".join(f"unix:{one.dir}/api.sock" for one in pair.both())
        server = instance.server("--config", instance.write("front.yaml", f"lease: 40s\nbackends:\n  m: {{server: '{sockets}'}}\n"))
        number = instance.submit(sh(f"echo s >>{instance.work}/starts; while [ ! -e {instance.work}/go ]; do sleep 0.05; done; exit 3"))
        wait_until(lambda: instance.job(f"{number}.0")["state"] == "running")
        leader.process.send_signal(signal.SIGKILL)
        pair.leads(1)
        wait_until(lambda: server.output().count("in touch with the other server") == 2)
        instance.write("go", "")
        instance.wait(number, code=1)
        assert instance.read("starts") == "s\n"
        assert "lost" not in [e["event"] for e in instance.events(f"{number}.0")]
    finally:
        pair.end()


@pytest.mark.parametrize("text, why", [
    ("backends: 7", "must be a map"),
    ("backends: {a: 7}", "must be a map"),
    ("backends: {a: {}}", "needs server"),
    ("backends: {a: {server: 'http://h:1'}}", "https://HOST:PORT or unix:PATH"),
    ("backends: {a: {server: 'https://h'}}", "https://HOST:PORT or unix:PATH"),
    ("backends: {a: {server: []}}", "https://HOST:PORT or unix:PATH"),
    ("backends: {a: {server: [{b: c}]}}", "list of words"),
    ("backends: {a: {server: 'https://h:1 g:1', token_file: /t}}", "https://HOST:PORT or unix:PATH"),
    ("backends: {a: {server: 'https://h:1, unix:/s', token_file: /t}}", "https only, or unix only"),
    ("backends: {a: {server: ['unix:/s', 'unix:/t'], token_file: /t}}", "https only: a socket"),
    ("backends: {a: {server: 'https://h:1'}}", "needs token_file"),
    ("backends: {a: {server: 'https://h:1', token_file: here}}", "absolute path"),
    ("backends: {a: {server: 'unix:/s', token_file: /t}}", "https only"),
    ("backends: {a/b: {server: 'unix:/s'}}", "not a name"),
    ("backends: {a: {server: 'unix:/s', tokenfile: /t}}", "token_file"),
    ("backends: {a: {server: 'unix:/s', owners: ann}}", "NAME@DOMAIN"),
    ("backends: {a: {server: 'unix:/s', owners: any, files: shared}}", "only without owners"),
    ("backends: {a: {server: 'unix:/s', files: some}}", "copied or shared"),
    ("backends: {a: {server: 'unix:/s', queued_max: 1000001}}", "0 to 1000000"),
    ("backends: {a: {server: 'unix:/s', jobs_max: 0}}", "1 to 1000000"),
    ("backends: {a: {server: 'unix:/s', price: -1}}", "0 to 1000000"),
    ("backends: {a: {server: 'unix:/s', requirements: 'a +'}}", "an expression"),
    ("backends: {a: {server: 'unix:/s', attributes: 'a'}}", "Name = expression"),
    ("backends: {a: {server: 'unix:/s', drain: soon}}", "drain"),
], ids=lambda x: None)
def test_wrong_settings_are_told(instance, text, why):
    config = instance.write("droverd.yaml", text + "\n")
    daemon = instance.start("droverd", "--dir", instance.dir, "--config", config, "--check-config")
    wait_until(lambda: not daemon.running())
    instance.daemons.remove(daemon)
    assert daemon.process.returncode == 2 and why in daemon.output() and "droverd.yaml:1" in daemon.output()
