"""A server whose queue is in PostgreSQL: the database is killed, fails over, is full, is another server's; copies go to SQLite and
back. What is the same with every store is shown by tests/conform, and by the other files here with $DROVER_TEST_STORE=postgresql."""
import contextlib
import json
import os
import re
import select
import signal
import shutil
import subprocess
import threading
import time
import uuid

import pytest

import postgres
from drover import LIMIT, Instance, UnixConnection, sh, wait_until
from test_full_disk import fill
from test_kill import apart, final_events, kill9


@pytest.fixture
def own():
    """A PostgreSQL that the test may stop."""
    server = postgres.Postgres(["wal_level = replica", "max_wal_senders = 4", "hot_standby = on"])
    try:
        yield server.start()
    finally:
        server.remove()


def daemon(instance, *args, code=0):
    done = subprocess.run([instance.program("droverd"), "--dir", instance.dir, "--user", "root", *args], env=instance.env,
                          capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def one_job(instance):
    """A request of one job as the API takes it."""
    attributes = {"Cmd": '"/bin/true"', "Iwd": f'"{instance.work}"', "RequestMemory": "16", "RequestDisk": "1024"}
    return {"uuid": str(uuid.uuid4()), "parts": [{"attributes": attributes, "rows": 1, "steps": 1}]}


class Load:
    """Submits jobs one after the other, two at a time, until it is stopped: by the command line, which goes on trying when the
    server has gone, or by the API."""

    def __init__(self, instance, by_api=False):
        self.by_api = by_api
        self.instance, self.taken, self.failures, self.over = instance, [], [], threading.Event()
        self.threads = [threading.Thread(target=self._work) for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def _work(self):
        try:
            while not self.over.is_set():
                self.taken.append(self.instance.api("POST", "/v1/requests", one_job(self.instance))["id"] if self.by_api
                                  else self.instance.submit(sh("true"), timeout=150))
        except Exception as e:  # pylint: disable=broad-exception-caught
            self.failures.append(e)

    def more(self, n=20):
        """Until so many more were taken."""
        enough = len(self.taken) + n
        wait_until(lambda: self.failures or len(self.taken) >= enough)
        assert not self.failures, self.failures

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures
        return self.taken


def all_ended_once(instance, requests):
    """Each ran to its end, and there is no other."""
    assert len(set(requests)) == len(requests)
    instance.wait(*requests)
    past = [job["id"].split(".")[0] for job in instance.history()]
    assert sorted(map(int, past)) == sorted(requests)
    for request in requests[::10]:
        assert len(final_events(instance, f"{request}.0")) == 1


def test_kill_of_the_server(instance, database):
    """What was acknowledged is there after kill -9, what runs goes on, and the history answers."""
    instance.store = database.new_address()
    server, _, _ = apart(instance)
    before = [instance.run(sh("true"), seconds=60) for _ in range(3)]
    go = os.path.join(instance.work, "go")
    running = instance.submit(sh(f"echo s >>{instance.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 3"))
    wait_until(lambda: instance.written("starts"))
    held = instance.submit(sh("true", queue="queue 1000"), "--hold")
    load = Load(instance)
    load.more()
    load.over.set()
    for thread in load.threads:
        thread.join()
    kill9(server.pid)
    instance.daemons.remove(server)
    instance.server()
    assert len(instance.jobs(held)) == 1000
    instance.write("go", "")
    instance.wait(running, code=1)
    assert instance.read("starts") == "s\n"
    instance.cli("rm", str(held))
    all_ended = {int(job["id"].split(".")[0]) for job in instance.history()}
    assert {*before, running} <= all_ended
    instance.wait(*load.stop())
    assert not os.path.exists(os.path.join(instance.dir, "drover.db"))
    assert "is in use by droverd on" in daemon(instance, "--store", instance.store, "--dir", instance.base + "/other", code=1)


def test_restart_of_the_database(instance, own):
    """Killed at once and started again, three times, under load: nobody is told of it, and each job ends once."""
    instance.store = own.new_address()
    instance.up()
    load = Load(instance)
    for how in (own.kill, own.end, lambda: own.end(signal.SIGINT)):
        load.more()
        how()
        own.start()
        load.more()
    all_ended_once(instance, load.stop())
    log = instance.logs()
    assert "was lost" in log and "connected to the PostgreSQL database" in log
    instance.stop()


def test_failover(instance, own):
    """The primary dies under load, and the standby, which had to have each commit, becomes the primary."""
    standby = postgres.Postgres(standby_of=own)
    try:
        standby.start()
        own.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        own.sql("SELECT pg_reload_conf()")
        wait_until(lambda: own.sql("SELECT sync_state FROM pg_stat_replication") == "sync")
        own.database("d1")
        instance.store = f"postgresql://postgres@/d1?host={own.base},{standby.base}"
        instance.up()
        load = Load(instance)
        load.more()
        own.kill()
        standby.sql("SELECT pg_promote()")
        load.more()
        all_ended_once(instance, load.stop())
        instance.stop()
    finally:
        standby.remove()


def test_a_commit_that_only_the_primary_has(instance, own):
    """A session that ends while it waits for a synchronous standby leaves its commit in the primary alone: it is acknowledged when the
    standby has it, too."""
    instance.store = own.new_address()
    instance.server()
    own.sql("ALTER SYSTEM SET synchronous_standby_names = 'missing'")
    own.sql("SELECT pg_reload_conf()")
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    late = instance.start("drover", "submit", "--hold", instance.write("late.sub", sh("true")))
    first = wait_until(lambda: own.sql(waiting))
    own.sql(f"SELECT pg_terminate_backend({first})")
    wait_until(lambda: not late.running() or own.sql(waiting) not in ("", first))
    assert late.running(), late.output()
    own.sql("ALTER SYSTEM RESET synchronous_standby_names")
    own.sql("SELECT pg_reload_conf()")
    assert late.process.wait(60) == 0
    assert len(instance.api("GET", "/v1/jobs")["jobs"]) == 1
    instance.stop()


def test_a_failover_that_loses_records_is_refused(instance, own):
    """A standby that did not have all becomes the primary: the server stops, and does not start on it by itself."""
    standby = postgres.Postgres(standby_of=own)
    try:
        standby.start()
        own.database("d1")
        wait_until(lambda: standby.sql("SELECT count(*) FROM pg_database WHERE datname = 'd1'") == "1")
        instance.store = f"postgresql://postgres@/d1?host={own.base},{standby.base}"
        server = instance.server()
        instance.submit(sh("true"), "--hold")
        seen = own.sql("SELECT max(seq) FROM drover_log", "d1")
        wait_until(lambda: standby.sql("SELECT max(seq) FROM drover_log", "d1") == seen)
        standby.sql("SELECT pg_wal_replay_pause()")
        wait_until(lambda: standby.sql("SELECT pg_get_wal_replay_pause_state()") == "paused")
        standby.end(signal.SIGINT)
        lost = instance.submit(sh("true"), "--hold")
        own.kill()
        standby.start()
        standby.sql("SELECT pg_promote()")
        instance.start("drover", "submit", "--hold", instance.write("late.sub", sh("true")))  # what is idle does not look
        wait_until(lambda: not server.running())
        assert server.process.returncode == 1 and "a failover lost what no standby had" in server.output()
        instance.daemons.remove(server)
        assert "postgresql.mark to go on without what is lost" in daemon(instance, "--store", instance.store, code=1)
        os.unlink(os.path.join(instance.dir, "postgresql.mark"))
        instance.server()
        assert instance.submit(sh("true"), "--hold") >= 1000000 > lost
        instance.stop()
    finally:
        standby.remove()


@pytest.fixture
def small_space(instance, own):
    """A tablespace on a small disk."""
    folder = os.path.join(own.base, "small")
    os.mkdir(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=24m,mode=0700,uid={os.stat(own.data).st_uid}", "tmpfs", folder], check=True)
    try:
        own.sql(f"CREATE TABLESPACE small LOCATION '{folder}'")
        own.sql("CREATE DATABASE d1 TABLESPACE small")
        instance.store = own.address("d1")
        yield folder
        instance.stop()
        own.end()
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


def test_full_database(instance, small_space):
    """New work is refused with a clear error, and taken again when there is room."""
    server = instance.server()
    instance.submit(sh("true"), "--hold")
    fill(small_space)
    text = sh("true", environment="X=" + "x" * 60000)
    waiting = []

    def refused():
        """a submit is refused; those that were taken before wait for room"""
        if instance.server_info()["accepting"]:
            waiting.append(instance.start("drover", "submit", "--hold", instance.write("big.sub", text)))
            return False
        said = instance.cli("submit", "--hold", "-", stdin=text, code=None)
        return said.code != 0 and "disk is full" in said.err

    wait_until(refused)
    assert "takes nothing now" in server.output()
    os.unlink(os.path.join(small_space, "ballast"))
    wait_until(lambda: instance.server_info()["accepting"])
    for one in waiting:
        assert one.process.wait(60) == 0
    instance.submit(text, "--hold")
    instance.kill_server()
    instance.server()
    assert len(instance.api("GET", "/v1/jobs")["jobs"]) == len(waiting) + 2


def test_copies_go_to_sqlite_and_back(instance, database, long):
    """An instance with SQLite moves to PostgreSQL by a copy, and back: its queue, its history and its files."""
    instance.write("../state/droverd.yaml", "lease: 5s\n")  # what waits in a copy waits for as long
    instance.server("--store", "sqlite")
    instance.write("in", "spooled")
    kept = instance.submit(sh("cat in", transfer_input_files="in", should_transfer_files="YES", output="out"), "--hold")
    many = instance.submit(sh("true", queue="queue 500"), "--hold")
    ended = instance.submit(sh("true"), "--hold")
    instance.cli("rm", str(ended))
    instance.kill_server(signal.SIGTERM)
    for number, (store, other) in enumerate([("sqlite", database.new_address()), (None, "sqlite")]):
        backup = f"{instance.base}/backup{number}"
        daemon(instance, "--store", store or instance.store, "--backup", backup)
        assert sorted(os.listdir(backup)) == sorted({"ca", "complete", "credential.key", "drover.db", "droverd.yaml", "spool"} & set(os.listdir(backup)))
        os.rename(instance.dir, f"{instance.dir}.{number}")
        said = json.loads(daemon(instance, "--store", other, "--restore", backup, "--json"))
        assert said["files"] > 2
        assert os.path.exists(os.path.join(instance.dir, "drover.db")) == (other == "sqlite")
        instance.store = other
        assert daemon(instance, "--store", other, "--check").endswith("ok\n")
        if other != "sqlite":
            again = f"{instance.base}/again"
            instance.dir, here = again, instance.dir
            assert "does not say that it is this one's" in daemon(instance, "--store", other, "--restore", backup, code=1)
            instance.dir = here
        instance.server("--store", other)
        assert len(instance.jobs(many)) == 500
        assert [job["id"] for job in instance.history()] == [f"{ended}.0"]
        if other == "sqlite":
            break
        instance.kill_server(signal.SIGTERM)
    if not long:
        return
    agent_of(instance)
    instance.cli("release", str(kept))
    instance.wait(kept)
    instance.cli("get", str(kept), "-o", "got")
    assert instance.read("got/out") == "spooled"


def agent_of(instance):
    token = instance.json("token", "agent", "--name", "n1", "--uses", "1")["token"]
    instance.start("drover-agent", "--dir", os.path.join(instance.base, "agent"), "--server", instance.server_json()["agents"][0],
                   "--token", token)
    wait_until(lambda: instance.agents("connected"))


def test_a_copy_is_made_under_load(instance, database):
    instance.store = database.new_address()
    instance.up()
    load = Load(instance)
    load.more()
    backup = os.path.join(instance.base, "backup")
    daemon(instance, "--store", instance.store, "--backup", backup)
    load.more()
    known = max(load.stop())
    instance.stop()
    os.rename(instance.dir, instance.dir + ".old")
    daemon(instance, "--store", "sqlite", "--restore", backup)
    assert daemon(instance, "--store", "sqlite", "--check").endswith("ok\n")
    instance.store = "sqlite"
    instance.server()
    assert 0 < len(instance.history()) + len(instance.api("GET", "/v1/jobs")["jobs"]) <= known


def test_what_is_no_store_is_refused(instance, own):
    """Each with a sentence that says what is wrong and what to do; no password is told."""
    for statement in ("ROLE ann LOGIN PASSWORD 'right'", "DATABASE anns OWNER ann", "DATABASE empty", "DATABASE others"):
        own.sql("CREATE " + statement)
    own.sql("DROP SCHEMA public", "empty")
    own.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC", "others")
    with open(os.path.join(own.data, "pg_hba.conf"), "w", encoding="utf-8") as f:
        f.write("local all ann scram-sha-256\nlocal all all trust\n")
    own.sql("SELECT pg_reload_conf()")
    ann = f"postgresql://ann:%s@/%s?host={own.base}"
    for address, words in ((ann % ("secret", "anns"), "password authentication failed"),
                           (ann % ("right", "others"), "permission denied"),
                           (own.address("empty"), "has no schema"), (own.address("nosuch"), '"nosuch" does not exist'),
                           ("postgresql://ann:secret@/anns?host=/nowhere", "/nowhere"),
                           ("mysql://ann:secret@/x", "the store is sqlite, or postgresql://")):
        out = daemon(instance, "--store", address, code=2 if "mysql" in address else 1)
        assert words in out and "secret" not in out and "right" not in out
    instance.write("../state/droverd.yaml", "store: ann\n")
    assert "droverd.yaml:1: the store is sqlite, or postgresql://" in daemon(instance, code=2)
    instance.write("../state/droverd.yaml", "store: " + ann % ("right", "anns") + "\n")
    instance.server()
    instance.submit(sh("true"), "--hold")
    instance.kill_server(signal.SIGTERM)
    assert "keeps its queue in PostgreSQL" in daemon(instance, "--store", "sqlite", code=1)
    own.sql("UPDATE drover_state SET version = 99", "anns")
    assert "was made by a newer version" in daemon(instance, code=1)
    own.sql("UPDATE drover_state SET version = 1", "anns")
    here, instance.dir = instance.dir, os.path.join(instance.base, "another")
    assert "does not say that it is this one's" in daemon(instance, "--store", ann % ("right", "anns"), code=1)
    instance.server("--store", "sqlite")
    instance.kill_server(signal.SIGTERM)
    assert "POSTGRESQL in droverd(8)" in daemon(instance, "--store", ann % ("right", "anns"), code=1)
    instance.dir = here


def standby_of(instance, request, name):
    """A second server's folder on the same queue: it shares the files of jobs, and has copies of what the database has not."""
    other = Instance(request.config.getoption("--build"), os.path.join(instance.base, name))
    os.makedirs(other.dir, mode=0o700)
    for kept in ("ca", "credential.key", "postgresql.id", "postgresql.mark"):
        source = os.path.join(instance.dir, kept)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(other.dir, kept))
        elif os.path.exists(source):
            shutil.copy(source, other.dir)
    os.symlink(os.path.join(instance.dir, "spool"), os.path.join(other.dir, "spool"))
    other.work, other.store = instance.work, instance.store
    return other


def stands_by(server):
    wait_until(lambda: "standing by: another server leads" in server.output())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_a_standby_takes_over(instance, request, database, how):
    """The leader dies, or freezes, under load: the other accepts, nothing that was acknowledged is lost, what runs goes on and runs
    once; a frozen one that wakes up writes nothing and ends."""
    instance.store = database.new_address()
    settings = instance.write("two.yaml", "standby: 3s\n")
    first = instance.server("--config", settings)
    other = standby_of(instance, request, "other")
    try:
        second = other.start("droverd", "--dir", other.dir, "--config", settings)
        stands_by(second)
        token = instance.json("token", "agent", "--name", "n1", "--uses", "1")["token"]
        addresses = [f"unix:{one.dir}/agents.sock" for one in (instance, other)]
        instance.start("drover-agent", "--dir", os.path.join(instance.base, "agent"), "--server", addresses[0], "--server", addresses[1],
                       "--token", token)
        wait_until(lambda: instance.agents("connected"))
        go = os.path.join(instance.work, "go")
        running = instance.submit(sh(f"echo s >>{instance.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 3"))
        wait_until(lambda: instance.written("starts"))
        load = Load(instance, by_api=True)
        load.more(100)
        first.process.send_signal(how)
        ready = time.monotonic()
        wait_until(lambda: os.path.exists(os.path.join(other.dir, "server.json")))
        print(f"the standby was ready after {time.monotonic() - ready:.1f} s")
        new = [other.submit(sh("true")) for _ in range(3)]
        if how == signal.SIGSTOP:
            first.process.send_signal(signal.SIGCONT)
        wait_until(lambda: not first.running())
        instance.daemons.remove(first)
        load.over.set()
        for thread in load.threads:  # the call that was on its way has failed
            thread.join()
        if how == signal.SIGSTOP:
            assert first.process.returncode == 1 and "newer term" in first.output()
        wait_until(lambda: other.agents("connected"))
        other.wait(*load.taken, *new)
        other.write("go", "")
        other.wait(running, code=1)
        assert instance.read("starts") == "s\n"
        past = [job["id"] for job in other.history()]
        assert len(set(past)) == len(past) and {f"{n}.0" for n in [*load.taken, *new, running]} <= set(past)
        # The first one stands by now, and is there when it is needed.
        again = instance.start("droverd", "--dir", instance.dir, "--config", settings)
        stands_by(again)
        other.kill_server(signal.SIGTERM)
        wait_until(lambda: os.path.exists(os.path.join(instance.dir, "server.json")))
        instance.run(sh("true"))
    finally:
        for one in other.daemons:  # the rest is stopped with the first one, in whose folder all is
            one.stop()


def test_a_drained_leader(instance, request, database):
    """`drover server` on either of two: the standby says what it is, and leads at once when the leader is drained."""
    instance.store = database.new_address()
    settings = instance.write("two.yaml", "standby: 60s\n")
    first = instance.server("--config", settings)
    other = standby_of(instance, request, "other")
    try:
        second = other.start("droverd", "--dir", other.dir, "--config", settings)
        stands_by(second)
        held = instance.submit(sh("true"), "--hold")
        assert instance.json("server", "status") == {"kind": "standby", "role": "leader", "standby_ms": 60000}
        wait_until(lambda: os.path.exists(os.path.join(other.dir, "standby.json")))
        assert "role: follower" in other.cli("server", "status")
        assert re.search("does not lead|stands by", other.cli("rm", str(held), code=1).err)
        assert "leads by itself" in other.cli("server", "promote", code=1).err
        instance.cli("server", "drain")
        assert first.process.wait(60) == 75
        instance.daemons.remove(first)
        wait_until(lambda: os.path.exists(os.path.join(other.dir, "server.json")))
        assert other.json("server", "status")["role"] == "leader" and other.job(f"{held}.0")["state"] == "held"
        again = instance.start("droverd", "--dir", instance.dir, "--config", settings)
        stands_by(again)
        again.stop()
        instance.daemons.remove(again)
    finally:
        for one in other.daemons:
            one.stop()


@contextlib.contextmanager
def no_commits(database, address):
    """Nothing becomes durable: another session has locked the table of the records against writing."""
    name = address.split("@/")[1].split("?")[0]
    with subprocess.Popen(["psql", "-X", "-q", "-At", "-h", database.base, "-U", "postgres", "-d", name], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, cwd="/") as session:
        session.stdin.write("BEGIN; LOCK TABLE drover_log IN EXCLUSIVE MODE; SELECT 'locked';\n")
        session.stdin.flush()
        assert session.stdout.readline() == "locked\n"
        yield
        session.stdin.close()


def test_reads_beside_a_commit_show_what_is_durable(instance, database):
    """The first read of a request that has changed waits for the commit; later ones are answered at once, with the counts before the
    change. Calls reach the core in the order in which they were sent."""
    instance.store = database.new_address()
    instance.server()
    request = instance.submit(sh("true", queue="queue 9"))
    changes, reads = UnixConnection(instance.socket_path(), LIMIT), UnixConnection(instance.socket_path(), LIMIT)

    def answer(connection):
        reply = connection.getresponse()
        assert reply.status == 200
        return json.loads(reply.read())

    def hold(member):
        changes.request("POST", "/v1/actions", json.dumps({"ids": [f"{request}.{member}"], "action": "hold"}), {"Content-Type": "application/json"})

    def held():
        one, = instance.api("GET", "/v1/requests")["requests"]
        return one["held"], instance.api("GET", f"/v1/requests/{request}")["held"]

    assert held() == (0, 0)
    reads.request("GET", f"/v1/requests/{request}")
    assert answer(reads)["held"] == 0
    hold(0)
    assert answer(changes)["affected"] == 1
    with no_commits(database, instance.store):
        hold(1)
        reads.request("GET", f"/v1/requests/{request}")
        instance.api("GET", "/v1/server/status")  # it came after the read, and does not wait
        readable, _, _ = select.select([changes.sock, reads.sock], [], [], 0.5)
        assert not readable
    assert answer(changes)["affected"] == 1 and answer(reads)["held"] == 2
    with no_commits(database, instance.store):
        hold(2)
        for _ in range(10):
            assert held() == (2, 2)
        assert not select.select([changes.sock], [], [], 0.5)[0]
        assert held() == (2, 2)
    assert answer(changes)["affected"] == 1
    assert held() == (3, 3)
    instance.stop()
