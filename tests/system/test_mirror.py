"""Two servers with SQLite each, of which one keeps a copy of the other's queue: nothing acknowledged is lost with either, and
no job has two ends."""
import hashlib
import http.client
import os
import re
import signal
import socket
import ssl
import threading

import pytest
from drover import sh, wait_until
from test_kill import final_events
from test_postgres import Load


def ended_once(one, requests):
    """Each of them has one end, and is in the history once."""
    past = [job["id"] for job in one.history()]
    assert len(set(past)) == len(past) and {f"{n}.0" for n in requests} <= set(past)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_the_mirror_takes_over(pair, how):
    """The leader dies, or freezes, under load: the other leads, has all that was acknowledged, and what runs goes on and runs once.
    When the first one is back it follows, and leads again when the other is stopped."""
    first, second = pair.both()
    leader, follower = pair.up()
    pair.agent()
    go = os.path.join(first.work, "go")
    running = first.submit(sh(f"echo s >>{first.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 3"))
    wait_until(lambda: first.written("starts"))
    load = Load(first, by_api=True)
    load.more(50)
    leader.process.send_signal(how)
    pair.leads(1)
    new = [second.submit(sh("true")) for _ in range(3)]
    if how == signal.SIGSTOP:
        leader.process.send_signal(signal.SIGCONT)
    wait_until(lambda: not leader.running())
    first.daemons.remove(leader)
    load.over.set()
    for thread in load.threads:  # the call that was on its way has failed
        thread.join()
    wait_until(lambda: second.agents("connected"))
    second.wait(*load.taken, *new)
    second.write("go", "")
    second.wait(running, code=1)
    assert first.read("starts") == "s\n"
    ended_once(second, [*load.taken, *new, running])
    again = pair.start(0)
    pair.mirrored(follower=0)
    late = second.submit(sh("true"))
    second.kill_server(signal.SIGTERM)
    pair.leads(0)
    first.wait(late)
    ended_once(first, [*load.taken, *new, running, late])
    assert again.running() and follower.process.returncode == 0


def test_drain_and_status(pair):
    """`drover server` on either: a drained leader hands over at once, and follows when it is started again."""
    first, second = pair.both()
    leader, _ = pair.up()
    request = first.submit(sh("true"), "--hold")
    assert "role: leader" in first.cli("server", "status", "--dir", first.dir, env={"DROVER_DIR": "/nowhere"})
    assert "unexpected argument" in first.cli("server", "status", "--dir", code=2).err
    assert first.json("server", "status")["mirrored"] and second.json("server", "status")["role"] == "follower"
    assert "role: follower" in second.cli("server", "status")
    assert re.search("does not lead|stands by", second.cli("rm", str(request), code=1).err)
    first.cli("server", "drain")
    assert leader.process.wait(30) == 75
    first.daemons.remove(leader)
    pair.leads(1)
    assert second.json("server", "status")["role"] == "leader"
    assert "has not all" in second.cli("server", "drain", code=1).err
    pair.start(0)
    pair.mirrored(follower=0)
    second.cli("server", "drain")
    pair.leads(0)
    assert first.job(f"{request}.0")["state"] == "held"


def test_a_cut_wire(pair):
    """The two cannot see each other: the leader acknowledges nothing more and ends, the other takes over, and what both have taken
    has one end. The other way round in the second half."""
    first, second = pair.both()
    pair.up()
    pair.agent()
    taken = [first.submit(sh("true")) for _ in range(3)]
    for leader, one, other in ((0, first, second), (1, second, first)):
        load = Load(one, by_api=True)
        load.more(10)
        for wire in pair.wires:
            wire.cut()
        old = next(d for d in one.daemons if d.name == "droverd")
        pair.leads(1 - leader)
        wait_until(lambda d=old: not d.running())
        assert old.process.returncode == 1
        one.daemons.remove(old)
        load.over.set()
        for thread in load.threads:
            thread.join()
        taken += load.taken
        taken.append(other.submit(sh("true")))
        again = pair.start(leader)  # and it does not lead
        wait_until(lambda d=again: "standing by" in d.output())
        assert one.json("server", "status")["role"] != "leader"
        for wire in pair.wires:
            wire.cut(False)
        wait_until(lambda d=again: not d.running() or "has all that" in d.output())
        if not again.running():  # it led last, and has heard of the other now
            one.daemons.remove(again)
            pair.start(leader)
        pair.mirrored(follower=leader)
        wait_until(lambda o=other: o.agents("connected"))
        other.wait(*taken)
        ended_once(other, taken)


def test_a_lost_follower(pair):
    """The follower dies: the leader cannot know, and ends; it leads when it is promoted. The follower comes back and has all."""
    first, second = pair.both()
    leader, _ = pair.up()
    request = first.submit(sh("true"), "--hold")
    second.kill_server()
    wait_until(lambda: not leader.running())
    first.daemons.remove(leader)
    pair.start(0)
    wait_until(lambda: pair.status_of(first).get("role") == "waits for its mirror")
    assert "promoted" in first.cli("server", "status")
    assert first.cli("server", "promote").startswith("role: leader")
    pair.leads(0)
    assert first.job(f"{request}.0")["state"] == "held"
    pair.start(1)
    pair.mirrored()


def test_an_orderly_stop_of_the_follower(pair):
    """The leader goes on alone, and says so; the follower catches up."""
    first, second = pair.both()
    pair.up()
    second.kill_server(signal.SIGTERM)
    wait_until(lambda: not first.json("server", "status")["mirrored"])
    request = first.submit(sh("true"), "--hold")
    pair.start(1)
    pair.mirrored()
    first.kill_server()
    pair.leads(1)
    assert second.job(f"{request}.0")["state"] == "held"


def test_files(pair):
    """Files that were shipped, and those that jobs have brought, are at the other server too."""
    first, second = pair.both()
    pair.up()
    first.write("in", "shipped")
    old = first.submit(sh("cat in >out", transfer_input_files="in", should_transfer_files="YES", transfer_output_files="out"))
    second.daemons[-1].process.send_signal(signal.SIGTERM)
    assert second.daemons.pop().process.wait(30) == 0
    first.write("in", "shipped later")
    new = first.submit(sh("cat in >out", transfer_input_files="in", should_transfer_files="YES", transfer_output_files="out"))
    pair.start(1)
    pair.mirrored()
    first.kill_server()
    pair.leads(1)
    token = second.json("token", "agent", "--name", "n2", "--uses", "1")["token"]
    second.start("drover-agent", "--dir", os.path.join(second.base, "agent"), "--server", f"unix:{second.dir}/agents.sock",
                 "--token", token)
    second.wait(old, new)
    for request, text in ((old, "shipped"), (new, "shipped later")):
        second.cli("get", f"{request}.0", "--output", os.path.join(second.base, f"got{request}"))
        with open(os.path.join(second.base, f"got{request}", "out"), encoding="utf-8") as f:
            assert f.read() == text


def test_a_leader_that_is_cut_off_while_a_file_is_copied(pair):
    """The other does not wait for the rest of a file that nobody was promised."""
    first, second = pair.both()
    leader, _ = pair.up()
    first.write("in", "x" * (16 << 20))
    first.write("big.sub", sh("true", transfer_input_files="in", should_transfer_files="YES"))
    pair.wires[0].cut_behind = 4 << 20
    submit = threading.Thread(target=lambda: first.cli("submit", "big.sub", code=None))
    submit.start()
    wait_until(pair.wires[0].is_cut.is_set)
    pair.wires[1].cut()
    pair.leads(1)
    wait_until(lambda: not leader.running())
    first.daemons.remove(leader)
    submit.join()
    assert second.submit(sh("true")) > 0


def test_what_must_be_mirrored(pair, instance):
    """mirror = yes is refused while the mirror has not all, and by a server that has none; the rest is taken with a warning."""
    first, second = pair.both()
    text = sh("true", mirror="yes")
    leader = pair.start(0)
    pair.leads(0)
    assert "what must be mirrored is refused" in first.cli("submit", "--hold", "-", stdin=text, code=1).err
    assert "on this server only" in first.cli("submit", "--hold", "-", stdin=sh("true")).err
    pair.copy_keys()
    pair.start(1)
    pair.mirrored()
    wait_until(lambda: first.json("server", "status")["mirrored"])
    request = first.submit(text, "--hold")
    leader.process.kill()
    leader.process.wait()
    first.daemons.remove(leader)
    pair.leads(1)
    assert second.job(f"{request}.0")["state"] == "held"
    second.kill_server()
    os.unlink(os.path.join(second.dir, "mirror"))
    second.server()
    assert "has no mirror" in second.cli("submit", "--hold", "-", stdin=text, code=None).err


def test_strangers_learn_nothing(pair):
    """Who has no secret, or a wrong one, gets nothing of the port where the two speak; who has it and says nonsense is refused."""
    first, _ = pair.both()
    leader, _ = pair.up()
    context = ssl.create_default_context(cafile=os.path.join(first.dir, "ca", "ca.crt"))
    with open(os.path.join(first.dir, "credential.key"), "rb") as f:
        secret = hashlib.sha256(b"drover mirror " + f.read()).hexdigest()

    def ask(method, path, token, body=None):
        connection = http.client.HTTPSConnection("droverd", pair.wires[0].port, context=context, timeout=30)
        connection.sock = context.wrap_socket(socket.create_connection(("127.0.0.1", pair.wires[0].port)), server_hostname="droverd")
        connection.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
        with connection.getresponse() as answer:
            return answer.status, answer.read()

    for token in (None, "", secret[:-1], "0" * 64, first.json("token", "user", "--name", "ann")["token"]):
        for method, path in (("POST", "/mirror/beat?epoch=9"), ("GET", "/mirror/database"), ("GET", "/mirror/objects"),
                             ("GET", "/mirror/snapshot"), ("POST", "/mirror/append"), ("GET", "/")):
            status, text = ask(method, path, token)
            assert status == 401 and b"other server" in text, (token, path, text)
    assert ask("POST", "/mirror/beat?epoch=nine", secret)[0] == 400
    assert ask("POST", "/mirror/append", secret, b"x")[0] == 400
    assert ask("GET", "/mirror/object/../../ca/ca.key", secret)[0] == 404
    assert ask("GET", "/mirror/nothing", secret)[0] == 404
    old = "epoch=1&join=1&line=1&serial=1&joined=1&leave=0&hand_over=1"
    status, text = ask("POST", f"/mirror/append?{old}&offset=0&size=1", secret, b"x")
    assert status == 200 and text.split()[4] == b"1"  # it leads, and does as if nothing had been said
    assert leader.running() and first.json("server", "status")["role"] == "leader"


def test_many_failures(pair, long):
    """Whoever leads dies, freezes, is drained or is cut off, again and again, while two clients submit and two agents run jobs: each
    job that was acknowledged ends once."""
    pair.up()
    pair.agent("n1")
    pair.agent("n2")
    taken = []
    for turn in range(24 if long else 4):
        leader = turn % 2
        one, other = pair.both()[leader], pair.both()[1 - leader]
        old = next(d for d in one.daemons if d.name == "droverd")
        load = Load(one, by_api=True)
        load.more(5 + turn % 7 * 5)
        how = ("kill", "freeze", "cut", "drain")[turn // 2 % 4]
        if how == "drain":
            one.cli("server", "drain", code=None)
        elif how == "cut":
            for wire in pair.wires:
                wire.cut()
        else:
            old.process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        pair.leads(1 - leader)
        old.process.send_signal(signal.SIGCONT)
        wait_until(lambda d=old: not d.running())
        one.daemons.remove(old)
        load.over.set()
        for thread in load.threads:
            thread.join()
        taken += load.taken
        for wire in pair.wires:
            wire.cut(False)
        pair.start(leader)
        pair.mirrored(follower=leader)
        wait_until(lambda o=other: o.json("server", "status")["mirrored"])
    last = pair.both()[(turn + 1) % 2]
    wait_until(lambda: len(last.agents("connected")) == 2)
    last.wait(*taken)
    ended_once(last, taken)
    for request in taken[::10]:
        assert len(final_events(last, f"{request}.0")) == 1
