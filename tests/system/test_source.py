"""Requests that a program offers: `drover source`, the programs that come with it, and the server's setting `sources`."""
import contextlib
import http.server
import json
import os
import signal
import socket
import threading

import pytest

from drover import Failed, all_pids, of_process, wait_until

TRUE = "executable = /bin/true\nshould_transfer_files = yes\ntransfer_executable = no\nqueue\n"

PUPPET = """#!/usr/bin/python3
import os, select, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
data = b"x"
while data:
    for fd in select.select([0, s], [], [])[0]:
        try:
            data = os.read(0, 65536) if fd == 0 else s.recv(65536)
            s.sendall(data) if fd == 0 else os.write(1, data)
        except OSError:
            data = b""
sys.exit(int(os.environ.get("PUPPET_CODE", "0")))
"""


def text_of(arguments="", jobs=1, program="/bin/true"):
    return (f"executable = {program}\narguments = {arguments}\nshould_transfer_files = yes\ntransfer_executable = no\n"
            f"queue {jobs}\n")


class Puppet:
    """A source's program whose lines the test writes and reads."""

    def __init__(self, instance, *options):
        self.instance, self.options = instance, options
        self.path = os.path.join(instance.base, "puppet.sock")
        self.script = instance.write("puppet", PUPPET, 0o755)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.listener.settimeout(60)
        self.daemon = self.connection = None
        self.start()

    def start(self):
        self.daemon = self.instance.start("drover", "source", "--name", "test", *self.options, "--", self.script, self.path)
        self.take()

    def take(self):
        """The next program that was started."""
        if self.connection:
            self.connection.close()
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(90)
        self.lines = self.connection.makefile("r", encoding="utf-8")

    def raw(self, data):
        self.connection.sendall(data)

    def say(self, **message):
        self.raw(json.dumps(message).encode() + b"\n")

    def offer(self, key, text=TRUE):
        self.say(request={"id": key, "submit": text})

    def hear(self, *kinds):
        """The next message of one of these kinds, as (kind, what it says)."""
        for line in self.lines:
            (kind, what), = json.loads(line).items()
            if not kinds or kind in kinds:
                return what if len(kinds) == 1 else (kind, what)
        raise Failed(f"the source has closed its end: {self.daemon.output()}")

    def ends(self, code):
        """The source has ended by itself, with this code. Returns what it printed."""
        wait_until(lambda: not self.daemon.running())
        self.instance.daemons.remove(self.daemon)
        assert self.daemon.process.returncode == code, self.daemon.output()
        return self.daemon.output()

    def kill(self):
        self.instance.daemons.remove(self.daemon)
        self.daemon.kill()

    def end_program(self):
        self.connection.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.connection.close()
        self.listener.close()


@pytest.fixture
def puppet(instance):
    instance.up("--cpus", "2")
    made = Puppet(instance)
    yield made
    made.close()


def requests(instance):
    return instance.api("GET", "/v1/requests?all=1")["requests"]


def test_offered_accepted_done_and_gone(instance, puppet):
    assert puppet.hear("begin") == {"source": "test", "version": 1, "files": False}
    assert puppet.hear("next") == 100
    puppet.offer("a/1", text_of(jobs=3))
    accepted = puppet.hear("accepted")
    assert accepted == {"id": "a/1", "request": requests(instance)[0]["id"], "jobs": 3, "existing": False}
    result = puppet.hear("result")
    assert (result["id"], result["request"], result["jobs"], result["succeeded"]) == ("a/1", accepted["request"], 3, 3)
    assert result["failed"] == result["removed"] == 0 and "failed_jobs" not in result
    puppet.say(gone="a/1")
    assert puppet.hear("next") == 1


def test_states_come_and_what_failed_is_named(instance, puppet):
    go = os.path.join(instance.work, "go")
    script = instance.write("half", f"#!/bin/sh\nwhile [ ! -e {go} ]; do sleep 0.05; done\nexit $1\n", 0o755)
    puppet.offer("half", f"executable = {script}\ntransfer_executable = no\nshould_transfer_files = yes\narguments = $(Process)\nqueue 2\n")
    while puppet.hear("state")["running"] != 2:
        pass
    instance.write("go", "")
    result = puppet.hear("result")
    assert (result["succeeded"], result["failed"]) == (1, 1)
    failed, = result["failed_jobs"]
    assert failed["id"].endswith(".1") and failed["exit_code"] == 1 and failed["state"] == "completed"


def test_an_offer_that_is_asked_to_be_removed(instance, puppet):
    puppet.offer("long", text_of("600", program="/bin/sleep"))
    puppet.hear("accepted")
    puppet.say(remove="long")
    assert puppet.hear("result")["removed"] == 1
    assert not [r for r in requests(instance) if r["idle"] or r["running"]]


@pytest.mark.parametrize("offer, why", [
    ({"submit": "executable = /bin/true\n"}, "queue"),
    ({"submit": "queue\n"}, "executable"),
    ({"submit": "x" * 70000}, "65536 bytes"),
    ({"file": "/etc/hostname"}, "--files"),
    ({}, "one of"),
    ({"submit": TRUE, "file": "x"}, "one of"),
], ids=["no queue", "no executable", "too long", "file", "nothing", "both"])
def test_what_the_server_does_not_take_is_refused(instance, puppet, offer, why):
    puppet.say(request={"id": "bad", **offer})
    refused = puppet.hear("refused")
    assert refused["id"] == "bad" and why in refused["why"]
    puppet.say(gone="bad")
    puppet.offer("good")
    assert puppet.hear("accepted", "refused")[0] == "accepted"
    assert len(requests(instance)) == 1


def test_a_text_reaches_no_file_of_this_machine(instance, puppet):
    """Nor of the server's: a queue elsewhere would read what it likes."""
    secret = instance.write("secret", "secret")
    puppet.offer("steal", f"executable = /bin/cat\narguments = secret\ntransfer_executable = no\ntransfer_input_files = {secret}\n"
                          "should_transfer_files = yes\nqueue\n")
    kind, what = puppet.hear("refused", "result", "accepted")
    if kind == "accepted":
        kind, what = puppet.hear("result", "state")
        while kind == "state" and not what["held"]:
            kind, what = puppet.hear("result", "state")
        assert not what["succeeded"]


def test_no_more_are_open_than_the_program_is_asked_for(instance):
    instance.up("--cpus", "2")
    puppet = Puppet(instance, "--most", "2")
    assert puppet.hear("next") == 2
    for i in range(2):
        puppet.offer(str(i), text_of("600", program="/bin/sleep"))
        puppet.hear("accepted")
    puppet.offer("2")
    assert "more requests than it was asked for" in puppet.ends(1)
    puppet.close()
    instance.cli("rm", "--yes", "--owner", "root")
    assert len(requests(instance)) == 2


@pytest.mark.parametrize("line", [
    b"hello\n", b"{}\n", b"[1]\n", b'{"request": 7}\n', b'{"request": {"id": ""}}\n', b'{"request": {"id": "a\\nb"}}\n', b'{"request": {"id": 7}}\n',
    b'{"request": {"id": "' + b"x" * 129 + b'"}}\n', b'{"request": {"id": "a"}} x\n', b'{"something": 1}\n', b"\0\xff\xfe\n", b"x" * (2 << 20),
], ids=[f"line {i}" for i in range(12)])
def test_a_program_that_prints_something_else(instance, puppet, line):
    with contextlib.suppress(OSError):  # it is stopped before it has printed all
        puppet.raw(line)
    assert "see drover-source(7)" in puppet.ends(1)
    assert requests(instance) == []


def test_a_program_that_does_not_read_is_stopped(instance):
    """It offers requests that are refused, and forgets them at once."""
    instance.server()
    script = instance.write("deaf", "#!/usr/bin/python3\nn = 0\nwhile True:\n"
                            "    print('{\"request\": {\"id\": \"%0100d\"}}\\n{\"gone\": \"%0100d\"}' % (n, n), flush=True)\n    n += 1\n", 0o755)
    said = instance.cli("source", "--", script, code=1)
    assert "does not read" in said.err and requests(instance) == []


def test_the_program_ends(instance, puppet):
    puppet.end_program()
    puppet.ends(0)
    instance.env["PUPPET_CODE"] = "7"
    puppet.start()
    puppet.end_program()
    assert "ended with status 7" in puppet.ends(1)


def test_a_signal_ends_both(instance, puppet):
    pids = [pid for pid in all_pids() if puppet.path.encode() in of_process(pid, "cmdline")]
    assert len(pids) == 2 and puppet.daemon.stop(signal.SIGTERM) == 0
    instance.daemons.remove(puppet.daemon)
    wait_until(lambda: not any(puppet.path.encode() in of_process(pid, "cmdline") for pid in pids))


@pytest.mark.parametrize("victim", ["source", "program"])
def test_offered_again_after_a_kill_it_is_the_same_request(instance, puppet, victim):
    go = os.path.join(instance.work, "go")
    script = instance.write("once", f"#!/bin/sh\necho ran >>{instance.work}/ran\nwhile [ ! -e {go} ]; do sleep 0.05; done\n", 0o755)
    text = f"executable = {script}\ntransfer_executable = no\nshould_transfer_files = yes\nqueue\n"
    puppet.offer("one", text)
    first = puppet.hear("accepted")
    if victim == "source":
        puppet.kill()
    else:
        puppet.end_program()
        puppet.ends(0)
    puppet.start()
    puppet.offer("one", text)
    again = puppet.hear("accepted")
    assert again["request"] == first["request"] and again["existing"]
    instance.write("go", "")
    assert puppet.hear("result")["succeeded"] == 1
    puppet.kill()
    puppet.start()
    puppet.offer("one", text)  # its result was not stored
    assert puppet.hear("accepted")["existing"] and puppet.hear("result")["succeeded"] == 1
    assert instance.read("ran") == "ran\n" and len(requests(instance)) == 1
    puppet.say(gone="one")
    puppet.offer("one", text_of("x"))  # another request under an id that was used
    assert "uuid" in puppet.hear("refused")["why"]


def test_the_server_is_killed(instance):
    """What was offered while it was away is accepted when it is back, and results come."""
    instance.server()
    puppet = Puppet(instance)
    puppet.offer("before")
    puppet.hear("accepted")
    instance.kill_server()
    puppet.offer("while")
    wait_until(lambda: "trying again" in puppet.daemon.output())
    instance.server()
    assert puppet.hear("accepted")["id"] == "while"
    instance.cli("rm", "--yes", "--owner", "root")
    assert {puppet.hear("result")["id"] for _ in range(2)} == {"before", "while"}
    puppet.close()


def test_a_folder(instance):
    instance.up("--cpus", "2")
    inbox = os.path.join(instance.work, "inbox")
    os.makedirs(inbox)
    good = instance.write("inbox/good.sub.new", "executable = /bin/sh\narguments = \"-c 'cat data > copy'\"\n"
                          "output = out\nqueue\n")
    instance.write("inbox/data", "1234")
    os.rename(good, os.path.join(inbox, "good.sub"))
    instance.write("inbox/bad.sub", "executable = /bin/true\nqueue what\n")
    os.symlink("/etc/passwd", os.path.join(inbox, "link.sub"))
    source = instance.start("drover", "source", "--files", "--", "folder", inbox)
    wait_until(lambda: os.path.exists(f"{inbox}/done/good.sub") and os.path.exists(f"{inbox}/refused/bad.sub"))
    with open(f"{inbox}/results/good.sub.json", encoding="utf-8") as f:
        assert json.load(f)["succeeded"] == 1
    with open(f"{inbox}/results/bad.sub.json", encoding="utf-8") as f:
        assert "bad.sub:2" in json.load(f)["why"]
    assert instance.read("inbox/copy") == "1234"
    source.kill()
    instance.daemons.remove(source)
    instance.write("inbox/next.sub", text_of())
    instance.start("drover", "source", "--files", "--", "folder", inbox)
    wait_until(lambda: os.path.exists(f"{inbox}/done/next.sub"))
    assert len(requests(instance)) == 2 and os.path.lexists(f"{inbox}/link.sub")


class Queue(http.server.ThreadingHTTPServer):
    """A queue that speaks HTTP: requests until they have a result."""

    daemon_threads = True

    def __init__(self, work):
        super().__init__(("127.0.0.1", 0), Handler)
        self.work, self.told, self.broken = work, [], 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def ended(self):
        return {m[k]["id"]: k for m in self.told for k in m if k in ("result", "refused")}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def answer(self, status, what):
        data = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self):
        if self.headers.get("Authorization") != "Bearer sesame" or self.server.broken:
            self.server.broken -= self.server.broken > 0
            self.answer(503, {})
            return True
        return False

    def do_GET(self):
        if not self.refuse():
            most = int(self.path.split("most=")[1])
            ended = self.server.ended()
            self.answer(200, {"requests": [r for r in self.server.work if r["id"] not in ended][:most]})

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.refuse():
            self.server.told.append(json.loads(data))
            self.answer(200, {})


def test_a_queue_that_speaks_http(instance):
    """Its answers fail now and then, and the source is killed in the middle: each request runs once."""
    instance.up("--cpus", "2")
    script = instance.write("note", f"#!/bin/sh\necho $1 >>{instance.work}/ran\n", 0o755)
    queue = Queue([{"id": f"r{i}", "submit": text_of(str(i), program=script)} for i in range(12)] + [{"id": "no", "submit": "queue"}])
    queue.broken = 1
    instance.env["HTTP_QUEUE_TOKEN"] = "sesame"
    start = ["source", "--most", "4", "--", "http-queue", "--poll", "0.2", f"http://127.0.0.1:{queue.server_address[1]}/work?x=1"]
    source = instance.start("drover", *start)
    wait_until(lambda: len(queue.ended()) >= 3)
    source.kill()
    instance.daemons.remove(source)
    queue.broken = 2
    instance.start("drover", *start)
    wait_until(lambda: len(queue.ended()) == 13)
    assert queue.ended()["no"] == "refused" and sorted(map(int, instance.read("ran").split())) == list(range(12))
    queue.shutdown()
    queue.server_close()


def test_the_server_keeps_sources_running(instance):
    """Their requests are the owner's, who is no admin by it; the program is started again when it is killed."""
    inbox = os.path.join(instance.work, "inbox")
    os.makedirs(inbox)
    config = instance.write("droverd.yaml", f"domain: local\nsources:\n  inbox: {{command: [folder, {inbox}], owner: ann@local, most: 7}}\n")
    server = instance.server("--config", config)
    instance.write("inbox/one.sub", text_of())
    request, = wait_until(lambda: requests(instance))
    assert request["owner"] == "ann@local"
    pid, = [p for p in instance.pids("drover") if p != server.pid]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: [p for p in instance.pids("drover") if p not in (server.pid, pid)])
    instance.write("inbox/two.sub", text_of())
    wait_until(lambda: len(requests(instance)) == 2)
    instance.write("inbox/files.sub", text_of() + f"log = {instance.work}/log\n")
    instance.cli("rm", "1")
    wait_until(lambda: os.path.exists(f"{inbox}/done/one.sub"))
    assert server.stop() == 0
    wait_until(lambda: instance.pids("drover") == [] and instance.pids("folder") == [])


def test_only_the_servers_user_speaks_for_another(instance):
    instance.server()
    assert instance.call("GET", "/v1/server", headers={"Drover-Owner": "ann@local"})[1]["you"] == "ann@local"
    status, answer = instance.call("GET", "/v1/tokens", headers={"Drover-Owner": "ann@local"})
    assert status == 200 and not instance.call("GET", "/v1/server", headers={"Drover-Owner": "ann@local"})[1]["admin"], answer
    assert instance.call("GET", "/v1/server", headers={"Drover-Owner": "ann"})[0] == 400
    assert instance.call("POST", "/v1/tokens", {"kind": "agent"}, headers={"Drover-Owner": "ann@local"})[0] == 403


@pytest.mark.parametrize("text, why", [
    ("sources: 7", "must be a map"),
    ("sources: {a: {owner: a@b}}", "needs command"),
    ("sources: {a: {command: [x]}}", "needs owner"),
    ("sources: {a: {command: [x], owner: a}}", "NAME@DOMAIN"),
    ("sources: {a: {command: [x], owner: a@b, most: 501}}", "1 to 500"),
    ("sources: {a b: {command: [x], owner: a@b}}", "not a name"),
    ("sources: {a: {command: [x], owner: a@b, token: x}}", "token"),
    ("sources: {a: {command: [], owner: a@b}}", "command"),
], ids=lambda x: None)
def test_wrong_settings_are_told(instance, text, why):
    config = instance.write("droverd.yaml", text + "\n")
    daemon = instance.start("droverd", "--dir", instance.dir, "--config", config)
    wait_until(lambda: not daemon.running())
    instance.daemons.remove(daemon)
    assert why in daemon.output() and "droverd.yaml:1" in daemon.output()
