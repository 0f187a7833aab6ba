"""Three servers on one PostgreSQL with a synchronous standby of its own, and six agents: whoever leads is killed, frozen or cut off from
the database, and the database's primary dies, again and again under load. What was acknowledged ends once."""
import collections
import os
import random
import re
import signal
import threading
import time


import pytest

import postgres
from drover import free_port, sh, wait_until
from mirror import Wire
from test_kill import final_events
from test_postgres import standby_of
from test_python import client_library

AGENTS = 6


class Servers:
    """Of whom one leads; each stands by again after its end."""

    def __init__(self, instance, request, store, count=3):
        """store: their address of the queue; or a function that makes one for each."""
        self.all, self.settings, self.addresses = [instance], {}, []
        for name in "abc"[:count]:
            if name != "a":
                self.all.append(standby_of(instance, request, name))
            self.all[-1].store = store if isinstance(store, str) else store(self.all[-1])
            port = free_port()
            self.addresses.append(f"https://127.0.0.1:{port}")
            self.settings[self.all[-1]] = instance.write(f"{name}.yaml", f"standby: 3s\nlease: 1m\napi_listen: 127.0.0.1:{port}\n")
            self.start(self.all[-1])
            if name == "a":
                self.leader()

    def agents(self, count):
        """So many of them, which know all servers."""
        one = self.all[0]
        for n in range(count):
            token = one.json("token", "agent", "--name", f"n{n}", "--uses", "1")["token"]
            sockets = [word for server in self.all for word in ("--server", f"unix:{server.dir}/agents.sock")]
            one.start("drover-agent", "--dir", os.path.join(one.base, f"n{n}"), *sockets, "--token", token, "--cpus", "4")

    def start(self, one):
        one.daemons[:] = [d for d in one.daemons if d.name != "droverd" or d.running()]
        return one.start("droverd", "--dir", one.dir, "--config", self.settings[one])

    @staticmethod
    def daemon(one):
        return next((d for d in one.daemons if d.name == "droverd" and d.running()), None)

    def leads(self, one):
        try:
            return self.daemon(one) and one.server_pid() == self.daemon(one).pid
        except (OSError, ValueError):
            return False

    def leader(self, beside=None):
        """Whoever leads. As a service manager does, starts those again that have ended: a leader whose database has failed over may find
        that another one leads."""
        def leads():
            """one of the others leads"""
            for one in self.all:
                if one.daemons and not self.daemon(one):
                    self.start(one)
            return next((one for one in self.all if one is not beside and self.leads(one)), None)

        return wait_until(leads)

    def cut_off(self, wires):
        """The leader hears nothing of the database until another one leads; then it learns that, ends, and stands by."""
        one = self.leader()
        old = self.daemon(one)
        for wire in wires[one]:
            wire.cut()
        self.leader(beside=one)
        assert old.running()
        for wire in wires[one]:
            wire.cut(False)
        wait_until(lambda: not old.running())
        self.start(one)
        self.leader()

    def lose(self, how):
        """The leader is killed, or frozen until another one leads; then it stands by."""
        one = self.leader()
        old = self.daemon(one)
        old.process.send_signal(how)
        if how == signal.SIGSTOP:
            self.leader(beside=one)
            old.process.send_signal(signal.SIGCONT)
        wait_until(lambda: not old.running())
        self.start(one)
        self.leader()

    def stop(self):
        for one in self.all:
            for daemon in reversed(one.daemons):
                if daemon.running():
                    daemon.process.send_signal(signal.SIGCONT)  # if it is still frozen
                daemon.stop()
            one.daemons.clear()


class Clients:
    """Submit by the command line, at whichever server leads; a call whose answer was lost is made again."""

    def __init__(self, servers, of_one):
        self.instance, self.of_one, self.taken, self.over, self.longest = servers.all[0], of_one, [], threading.Event(), 0.0
        token = self.instance.json("token", "user")["token"]
        self.env = {"DROVER_SERVER": " ".join(servers.addresses), "DROVER_TOKEN": token, "DROVER_DIR": ""}
        self.text = sh(f"echo $(Cluster).$(Process) >>{self.instance.work}/ran", request_memory="16 MB", request_disk="1 MB",
                       queue=f"queue {of_one}")
        self.threads = [threading.Thread(target=self._work) for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def _work(self):
        last = time.monotonic()
        while not self.over.is_set():
            said = self.instance.cli("submit", "-", stdin=self.text, env=self.env, code=None, timeout=150)
            if said.code == 0:
                self.taken.append(int(re.search(r"\b(\d+)", said.out.split("request", 1)[-1])[1]))
                now = time.monotonic()
                self.longest, last = max(self.longest, now - last), now

    def more(self, n):
        enough = len(self.taken) + n
        wait_until(lambda: len(self.taken) >= enough)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def ended_once(self, last):
        """By the server that leads at the end: each job that was taken has one end, and ran once or was lost with a reason."""
        assert len(set(self.taken)) == len(self.taken)
        last.wait(*self.taken, seconds=600)
        jobs = {f"{number}.{member}" for number in self.taken for member in range(self.of_one)}
        past = [job["id"] for job in last.json("history", "--limit", "0")["jobs"]]
        assert len(set(past)) == len(past) and jobs <= set(past)
        ran = collections.Counter(self.instance.read("ran").split())
        for job in jobs:
            if ran[job] != 1:
                events = [e["event"] for e in last.events(job)]
                assert ran[job] > 1 and "lost" in events, (job, events)
        for number in self.taken[::10]:
            assert len(final_events(last, f"{number}.0")) == 1


class Database:
    """A primary and its synchronous standby; a primary that has died becomes the standby of the other."""

    def __init__(self):
        self.one = postgres.Postgres(["wal_level = replica", "max_wal_senders = 4", "hot_standby = on"]).start()
        self.other = None
        self.wires = {}  # of each server to both
        self.follow()

    def address_for(self, server):
        """A database's address over wires of the server's own."""
        self.wires[server] = [Wire(os.path.join(one.base, ".s.PGSQL.5432")) for one in (self.one, self.other)]
        ports = ",".join(str(wire.port) for wire in self.wires[server])
        return f"postgresql://postgres@/d1?host=127.0.0.1,127.0.0.1&port={ports}"

    def follow(self):
        self.other = postgres.Postgres(standby_of=self.one).start()
        self.make_synchronous()

    def make_synchronous(self):
        self.one.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.one.sql("SELECT pg_reload_conf()")
        wait_until(lambda: self.one.sql("SELECT sync_state FROM pg_stat_replication") == "sync")

    def lose(self):
        self.one.kill()
        self.other.sql("SELECT pg_promote()")
        for wire in self.wires_to(self.one):
            wire.refuse()
        self.one, self.other = self.other, self.one

    def rejoin(self):
        """What was the primary becomes the other's standby, in the folder in which it was."""
        self.other.follow(self.one)
        for wire in self.wires_to(self.other):
            wire.listen()
        self.make_synchronous()

    def wires_to(self, one):
        return [w for wires in self.wires.values() for w in wires if w.to.startswith(one.base)]

    def remove(self):
        for wire in (w for wires in self.wires.values() for w in wires):
            wire.end()
        for one in (self.one, self.other):
            if one:
                one.remove()


@pytest.mark.timeout(1800)
def test_three_servers_and_six_agents(instance, request, long):
    database = Database()
    servers = None
    try:
        database.one.database("d1")
        servers = Servers(instance, request, database.address_for)
        servers.agents(AGENTS)
        of_one = 40 if long else 20
        clients = Clients(servers, of_one)
        try:
            losses = ["kill"] * (10 if long else 2) + ["freeze"] * (3 if long else 1)
            losses += (["cut off", "database"]) * (2 if long else 1)
            random.Random(20).shuffle(losses)
            for what in losses:
                clients.more(36 if long else 4)
                if what == "database":
                    database.lose()
                    clients.more(4)  # the standby's death would stop them from here on: nothing commits without one
                    database.rejoin()
                elif what == "cut off":
                    servers.cut_off(database.wires)
                else:
                    servers.lose(signal.SIGKILL if what == "kill" else signal.SIGSTOP)
            clients.more(36 if long else 4)
        finally:
            clients.stop()
        last = servers.leader()
        print(f"{len(clients.taken)} requests of {of_one} jobs; submitting stopped for {clients.longest:.1f} s at most")
        clients.ended_once(last)
        assert not any("when the last is 0" in one.logs() for one in servers.all)  # a server that only reads makes no snapshot
    finally:
        if servers:
            servers.stop()
        database.remove()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_commands_in_the_gap(instance, request, database, how):
    """Commands that begin when the leader has just died, or is frozen, wait for the other one."""
    servers = Servers(instance, request, database.new_address(), count=2)
    one, other = servers.all
    try:
        first = one.submit(sh("true"), "--hold")
        env = {"DROVER_SERVER": " ".join(reversed(servers.addresses)), "DROVER_TOKEN": one.json("token", "user")["token"], "DROVER_DIR": ""}
        old = servers.daemon(one)
        old.process.send_signal(how)
        said = one.cli("submit", "--hold", "-", stdin=sh("true"), env=env)
        assert "request" in said.out, said
        one.cli("rm", str(first), env=env)
        assert {job["id"]: job["state"] for job in other.history()} == {f"{first}.0": "removed"}
        if how == signal.SIGKILL:
            assert "no server leads now; waiting for one to take over" in said.err, said
    finally:
        servers.stop()


def test_the_python_client_finds_who_leads(instance, request, database, monkeypatch):
    """Of several addresses; also after the one that led has died, and with one where nobody listens."""
    servers = Servers(instance, request, database.new_address(), count=2)
    try:
        monkeypatch.setenv("DROVER_SERVER", ", ".join([f"https://127.0.0.1:{free_port()}", *servers.addresses]))
        monkeypatch.setenv("DROVER_TOKEN", instance.json("token", "user")["token"])
        client = client_library.Client()
        ids = [client.submit("true").id]
        for _ in range(2):
            servers.lose(signal.SIGKILL)
            ids.append(client.submit("true").id)
        assert len(set(ids)) == 3 and client.counts(ids).idle == 3
    finally:
        servers.stop()
