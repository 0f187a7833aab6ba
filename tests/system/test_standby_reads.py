"""Reads of a server that stands by: what its leader has acknowledged, with how old it is; and nothing else."""
import difflib
import http.client
import json
import os
import re
import shutil
import signal
import ssl

import pytest

import agents
from drover import Failed, UnixConnection, free_port, sh, wait_until
from mirror import Pair
from test_postgres import standby_of

READ = "stands by has answered"


def reads_of(one, path, method="GET"):
    """Status, headers and JSON of a call at the socket of reads."""
    connection = UnixConnection(os.path.join(one.dir, "reads.sock"), 30)
    try:
        connection.request(method, path, b"{}" if method == "POST" else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), json.loads(answer.read() or b"null")
    finally:
        connection.close()


def readable(one):
    def there():
        """the standby answers reads"""
        try:
            return reads_of(one, "/v1/server")[0] == 200
        except OSError:
            return False

    wait_until(there)


def reader(one):
    """The process that answers them."""
    found = []
    for pid in one.pids("droverd"):
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            if b"--follow" in f.read().split(b"\0"):
                found.append(pid)
    return found


def known(text):
    """Expected times depend on what agents offer, which only the leader knows."""
    return json.loads(re.sub(r'"(?:eta_\w+|from_ms|to_ms)":[^,}]*,?', "", text))


def agrees(one, other, *words):
    """Both print the same as JSON; the other says that it stands by."""
    said = wanted = None

    def same():
        """the standby has what the leader has"""
        nonlocal said, wanted
        said, wanted = other.cli(*words, "--json", code=None), one.cli(*words, "--json").out
        return said.code == 0 and known(said.out) == known(wanted)

    try:
        wait_until(same, 20)
    except Failed:
        ours, theirs = (json.dumps(known(text), indent=1).splitlines() for text in (said.out or "null", wanted))
        raise Failed(f"{words}: {said.err}\n" + "\n".join(difflib.unified_diff(theirs, ours, n=0))) from None
    assert READ in said.err, said.err


@pytest.fixture(name="two")
def _two(instance, request, database):
    """A leader with an agent, and a standby that answers reads, with PostgreSQL."""
    instance.store = database.new_address()
    ports = [free_port(), free_port()]
    settings = [instance.write(f"{n}.yaml", f"standby: 3s\napi_listen: 127.0.0.1:{port}\n") for n, port in enumerate(ports)]
    instance.server("--config", settings[0])
    agents.start(instance, "kill_grace: 1s\nqueues:\n  - {name: here, cpus: 4}\n")
    agents.offering(instance)
    other = standby_of(instance, request, "other")
    other.daemon = other.start("droverd", "--dir", other.dir, "--config", settings[1])
    readable(other)
    instance.addresses = [f"https://127.0.0.1:{port}" for port in ports]
    try:
        yield instance, other
    finally:
        for daemon in other.daemons:
            daemon.stop()


def test_what_it_answers_is_what_the_leader_has(two):
    one, other = two
    done = one.submit(sh("exit 3"))
    one.wait(done, code=1)
    held = one.submit(sh("true", queue="queue 5"), "--hold")
    going = one.submit(sh("sleep 600"))
    one.wait_state(f"{going}.0", "running")
    for words in (["queue"], ["queue", "-j"], ["show", str(held)], ["show", f"{done}.0"], ["history"], ["log", f"{done}.0"], ["report", "usage"]):
        agrees(one, other, *words)
    assert READ not in one.cli("queue").err
    status, headers, _ = reads_of(other, "/v1/requests")
    assert status == 200 and 0 <= int(headers["Drover-Standby"]) < 60000
    one.cli("rm", str(going), str(held))
    agrees(one, other, "queue", "--all")
    assert other.json("server", "status")["role"] == "follower"


def test_it_refuses_everything_else_with_the_leaders_address(two):
    one, other = two
    for method, path in (("POST", "/v1/requests"), ("POST", "/v1/actions"), ("POST", "/v1/tokens"), ("GET", "/v1/agents"), ("GET", "/v1/nodes"),
                         ("GET", "/v1/capacity"), ("POST", "/v1/quote"), ("GET", "/v1/wait?ids=1"), ("GET", "/readyz"), ("GET", "/v1/credentials"),
                         ("POST", "/v1/server/promote"), ("POST", "/v1/server/drain"), ("GET", "/metrics"), ("GET", "/v1/tokens")):
        status, _, answer = reads_of(other, path, method)
        assert status == 503 and answer["error"]["code"] == "standby", (path, answer)
        assert one.addresses[0] in answer["error"]["message"], answer
    before = one.server_info()["seq"]
    said = other.cli("submit", "-", stdin=sh("true"), code=None)
    assert said.code != 0 and one.addresses[0] in said.err, said.err
    assert one.server_info()["seq"] == before


def over_tls(one, address, token, path="/v1/requests"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(os.path.join(one.dir, "ca", "ca.crt"))
    connection = http.client.HTTPSConnection(address.removeprefix("https://"), context=context, timeout=30)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Drover-Standby"), json.loads(answer.read())
    finally:
        connection.close()


def test_over_tls_with_tokens(two):
    """A user sees what the leader shows; a new token is known at once, and a removed one is refused; clients with both addresses ask
    the leader, and the standby only when no other answers."""
    one, other = two
    one.cli("submit", "--hold", "-", stdin=sh("true"))
    assert over_tls(one, one.addresses[1], None)[0] == 401
    made = one.json("token", "user", "--name", "ann", "--role", "user")
    assert wait_until(lambda: over_tls(one, one.addresses[1], made["token"])[0] == 200)
    status, age, answer = over_tls(one, one.addresses[1], made["token"])
    assert status == 200 and age is not None and answer == over_tls(one, one.addresses[0], made["token"])[2]
    env = {**one.env, "DROVER_SERVER": " ".join(reversed(one.addresses)), "DROVER_TOKEN": made["token"]}
    env.pop("DROVER_DIR", None)
    said = one.cli("queue", env=env)
    assert READ not in said.err
    one.cli("submit", "--hold", "-", stdin=sh("true"), env=env)
    one.api("DELETE", f"/v1/tokens/{made['id']}")
    wait_until(lambda: over_tls(one, one.addresses[1], made["token"])[0] == 401)


def test_who_is_an_admin_is_as_in_the_settings_of_today(two):
    """After SIGHUP an admin who is none any more sees nothing of others' at the standby either. A file with a mistake changes nothing, and
    what was read holds when it leads."""
    one, other = two
    servers = {0: one.server_pid(), 1: other.daemon.pid}
    ann = "ann@" + one.server_info()["domain"]
    paths = [os.path.join(one.work, f"{n}.yaml") for n in (0, 1)]
    before = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            before.append(f.read())

    def settings(n, more):
        with open(paths[n], "w", encoding="utf-8") as f:
            f.write(before[n] + more)
        os.kill(servers[n], signal.SIGHUP)

    def sees(n):
        try:
            status, _, answer = over_tls(one, one.addresses[n], token)
        except OSError:
            return None
        return len(answer["requests"]) if status == 200 else None

    one.cli("submit", "--hold", "-", stdin=sh("true"))
    for n in (0, 1):
        settings(n, f"admins: [{ann}]\n")
    token = wait_until(lambda: one.cli("token", "user", "--name", "ann", "--role", "admin", "--json", code=None).out)
    token = json.loads(token)["token"]
    for n in (0, 1):
        wait_until(lambda n=n: sees(n) == 1)
    for n in (0, 1):
        settings(n, "")
        wait_until(lambda n=n: sees(n) == 0)
    pid, = reader(other)
    settings(1, "admins: [\n")
    wait_until(lambda: "cannot be read again" in other.daemon.output())
    assert reader(other) == [pid] and sees(1) == 0
    settings(1, f"admins: [{ann}]\n")
    wait_until(lambda: sees(1) == 1)
    one.kill_server()
    wait_until(lambda: os.path.exists(os.path.join(other.dir, "server.json")))
    wait_until(lambda: sees(1) == 1)
    assert over_tls(one, one.addresses[1], token)[1] is None


def test_it_leads_when_its_leader_dies(two):
    """The process that answered reads is gone before, so that its port is free; the first one stands by then, and answers reads."""
    one, other = two
    held = one.submit(sh("true"), "--hold")
    agrees(one, other, "queue")
    pid, = reader(other)
    one.kill_server()
    wait_until(lambda: os.path.exists(os.path.join(other.dir, "server.json")))
    assert not os.path.exists(f"/proc/{pid}") and reader(other) == []
    assert READ not in other.cli("queue").err and other.job(f"{held}.0")["state"] == "held"
    again = one.start("droverd", "--dir", one.dir, "--config", os.path.join(one.work, "0.yaml"))
    readable(one)
    number = other.submit(sh("true"), "--hold")
    agrees(other, one, "show", str(number))
    assert one.addresses[1] in reads_of(one, "/v1/requests", "POST")[2]["error"]["message"]
    pid, = reader(one)
    again.stop()
    one.daemons.remove(again)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_killed_it_is_started_again_and_it_follows_through_snapshots(two):
    one, other = two
    pid, = reader(other)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: reader(other) not in ([], [pid]))
    readable(other)
    number = one.submit(sh("true", queue="queue 300"))
    one.wait(number)
    agrees(one, other, "show", str(number))
    assert len(json.loads(other.cli("history", "--limit", "0", "--json").out)["jobs"]) == 300


def test_a_leader_that_does_not_say_where_it_is(two, database):
    """As one of an older version."""
    one, other = two
    pid, = reader(other)
    database.sql("DELETE FROM drover_blob WHERE name = 'server/leader'", re.search(r"/(\w+)\?", one.store)[1])
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: reader(other) not in ([], [pid]))
    readable(other)
    pid, = reader(other)
    agrees(one, other, "show", str(one.submit(sh("true"), "--hold")))
    wait_until(lambda: "the server that leads" in reads_of(other, "/v1/requests", "POST")[2]["error"]["message"])
    one.wait(one.run(sh("sleep 3")))  # the follower looks each second who leads
    assert reader(other) == [pid]


def test_without_reads(instance, request, database):
    instance.store = database.new_address()
    settings = instance.write("two.yaml", "standby: 3s\nstandby_reads: no\n")
    instance.server("--config", settings)
    other = standby_of(instance, request, "other")
    try:
        other.start("droverd", "--dir", other.dir, "--config", settings)
        wait_until(lambda: os.path.exists(os.path.join(other.dir, "standby.json")))
        assert "does not lead" in other.cli("queue", code=1).err
        assert reader(other) == []
    finally:
        for daemon in other.daemons:
            daemon.stop()


def test_the_follower_of_a_mirror(instance, build):
    """It answers from its copy; when the two are cut off from each other, what it says is as old as the leader's last word."""
    pair = Pair(instance, build, lease="20s")
    try:
        pair.up()
        one, other = pair.both()
        readable(other)
        number = one.submit(sh("true", queue="queue 4"), "--hold")
        agrees(one, other, "queue")
        agrees(one, other, "show", str(number))
        one.cli("rm", f"{number}.2")
        agrees(one, other, "history")
        for wire in pair.wires:
            wire.cut()
        wait_until(lambda: int(reads_of(other, "/v1/requests")[1]["Drover-Standby"]) > 6000)
        assert READ in other.cli("queue").err
    finally:
        for wire in pair.wires:
            wire.cut(False)
        pair.end()


def test_a_copy_of_the_queue_replaces_what_it_reads(instance, build):
    """A follower whose store is copied anew reads the new one."""
    pair = Pair(instance, build, lease="2s")
    try:
        pair.up()
        one, other = pair.both()
        readable(other)
        other.kill_server(signal.SIGTERM)
        shutil.rmtree(os.path.join(other.dir, "spool"), ignore_errors=True)
        for name in os.listdir(other.dir):
            if name.startswith("drover.db") or name == "mirror":
                os.remove(os.path.join(other.dir, name))
        number = one.submit(sh("true"), "--hold")
        pair.start(1)
        pair.mirrored()
        readable(other)
        agrees(one, other, "show", str(number))
    finally:
        pair.end()
