"""Queues of the runner `arc`, at a real A-REX: files by its session folders, lost answers, kills, and what a liar answers."""
import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request

import pytest

import agents
from drover import LIMIT, sh, wait_until
from test_runner_calls import Place

pytest_plugins = ["batch_systems"]
ROOM = "    cpus: 8\n    memory: 8 GB\n"


def begin(instance, arex):
    if not os.path.exists(instance.dir):
        instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(arex, more=ROOM), name="n")
    agents.offering(instance, arex.name)


def travelling(script, **more):
    return sh(script, should_transfer_files="YES", **more)


def test_files_go_there_and_come_back(instance, arex):
    """Inputs, outputs, exit codes; the path of the sandbox there; nothing is left."""
    begin(instance, arex)
    instance.write("in.txt", "data\n")
    many = instance.submit(travelling("cat in.txt >out.$(Process); pwd; echo said >&2; exit $(Process)", transfer_input_files="in.txt",
                                      output="o.$(Process)", error="e.$(Process)", queue="queue 3"))
    missing = instance.submit("executable = /no/such/program\nshould_transfer_files = YES\ntransfer_executable = false\nqueue\n")
    words = instance.submit(travelling("true", **{"+ArcQueue": '"no such queue"'}))
    assert "cannot be a queue of ARC" in instance.wait_state(f"{words}.0", "held", seconds=240)["hold_reason"]
    instance.wait(many, code=1)
    instance.cli("get", str(many))
    for n in range(3):
        assert instance.read(f"out.{n}") == "data\n" and instance.read(f"e.{n}") == "said\n"
        assert instance.read(f"o.{n}").startswith(os.path.join(arex.top, "session") + "/")
    assert sorted(j["exit_code"] for j in instance.history(many)) == [0, 1, 2]
    assert "/no/such/program" in instance.wait_state(f"{missing}.0", "held")["hold_reason"]
    wait_until(lambda: not arex.states())
    with open(arex.key, encoding="utf-8") as f:
        secret = f.read().splitlines()[1]
    for folder, _, names in os.walk(instance.base):
        for path in (os.path.join(folder, name) for name in names):
            if os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as f:
                    assert secret not in f.read(), path


class Relay:
    """Stands before A-REX, over plain HTTP, as its user. `change(method, path, status, body)` gives the status and the body of the answer that
    is passed on, and the length that its head says if that is another one; or None for none."""

    def __init__(self, arex):
        relay, self.arex, self.requests, self.change = self, arex, [], None

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, text = relay.forward(self.command, self.path, dict(self.headers), body)
                relay.requests.append((self.command, self.path, body))
                said = relay.change(self.command, self.path, status, text) if relay.change else (status, text)
                if said is None:
                    self.close_connection = True
                    return
                with contextlib.suppress(OSError):
                    self.send_response(said[0])
                    self.send_header("Content-Length", str(said[2] if len(said) > 2 else len(said[1])))
                    self.end_headers()
                    self.wfile.write(said[1])
                    self.close_connection |= len(said) > 2

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.name, self.runner, self.env = "relay", "arc", arex.env
        self.settings = {"rest": f"http://127.0.0.1:{self.server.server_address[1]}", "poll": "1", "watch": "1"}

    def forward(self, method, path, headers, body):
        request = urllib.request.Request(self.arex.settings["rest"] + path, method=method, data=body or None,
                                         headers={k: v for k, v in headers.items() if k in ("Accept", "Content-Type")})
        try:
            with urllib.request.urlopen(request, context=self.arex.context, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()
        except OSError:
            return 503, b""

    def submissions(self):
        return sum(path.endswith("action=new") for _, path, _ in self.requests)

    def sent(self):
        """How often the files of a job were sent."""
        return sum(method == "PUT" and path.endswith("/drover.sh") for method, path, _ in self.requests)


@pytest.fixture
def relayed(request, arex):
    folder = tempfile.mkdtemp(prefix="rc-", dir=request.config.drover_tmp)
    place = Place(request.config.getoption("--build"), folder, "arc", None, Relay(arex))
    place.settings = place.system.settings
    yield place
    if place.driver and place.driver.process.poll() is None:
        place.driver.stop("quit all")
    place.system.server.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def is_new(path):
    return path.endswith("action=new")


def test_a_lost_answer_is_one_submission(relayed):
    """The job is found by its name, and runs once. So is one of a runner that is killed before the answer."""
    relay, lost = relayed.system, []

    def lose(method, path, status, body):
        if is_new(path) and len(lost) < 2:
            lost.append(path)
            if len(lost) == 2:
                relayed.driver.process.kill()
            return None
        return status, body

    relay.change = lose
    d = relayed.start()
    d.say("submit 1 echo x >>starts; cat starts; exit 3")
    wait_until(lambda: relay.sent() == 1)
    d.say("submit 2 echo x >>starts; cat starts; exit 4")
    d.process.wait(60)
    d = relayed.start()
    d.wait("ended 1 code=3")
    d.wait("ended 2 code=4")
    assert (d.file(1, "starts"), d.file(2, "starts"), d.file(2, "out")) == ("x\n", "x\n", "x\n")
    assert (relay.submissions(), len(lost)) == (2, 2)
    d.say("forget 1")
    d.say("forget 2")
    wait_until(lambda: not relay.arex.states())


EVIL = "\x1b]0;x\x07" + "|\n" * 2000
LISTS = {
    "nothing": b"",
    "no JSON": b"<html>",
    "words of another kind": json.dumps({"job": [{"id": 7, "state": ["RUNNING"]}, {"id": None}, "x", {"id": "../../x", "state": "FAILED"}]}).encode(),
    "names that are lines": json.dumps({"job": [{"id": "abc", "state": EVIL, "info_document": {"ComputingActivity": {"Name": EVIL}}}] * 500}).encode(),
    "jobs of others": json.dumps({"job": [{"id": f"Job{n}", "state": "RUNNING"} for n in range(20000)]}).encode(),
}


@pytest.mark.long
def test_what_an_element_answers(relayed):
    """A job that runs goes on and ends as it does, whatever is said meanwhile."""
    relay, d = relayed.system, relayed.start()
    d.say("submit 1 echo x >>starts; while [ ! -e go ]; do sleep 0.1; done; exit 7")
    d.wait("running 1")
    for name, lie in LISTS.items():
        asked = []

        def change(_, path, status, body, lie=lie, asked=asked):
            if "/jobs?" not in path:
                return status, body
            asked.append(path)
            return 200, lie

        relay.change = change
        wait_until(lambda a=asked: len(a) > 2)
        said = [line for line in d.lines() if re.match(r"(ended|failed|lost) 1 ", line)]
        assert d.process.poll() is None and not said, (name, said)
    relay.change = None
    with open(os.path.join(os.path.dirname(relay.arex.find("box.1/starts")), "go"), "w", encoding="utf-8"):
        pass
    assert d.wait("ended 1") == ["ended 1 code=7 why=0"]
    assert not [line for line in d.lines() if "\x1b" in line]


@pytest.mark.long
def test_an_archive_of_a_liar(relayed, tmp_path):
    """What is not an archive has the job lost with the reason; the agent goes on."""
    relay, d = relayed.system, relayed.start()
    relay.change = lambda _, path, status, body: (200, os.urandom(4096)) if path.endswith("/drover.out") else (status, body)
    d.say("submit 1 exit 3")
    d.wait("lost 1", 3 * LIMIT)  # a minute of that is left to a report that comes late
    relay.change = lambda _, path, status, body: (500, EVIL.encode()) if path.endswith("/drover.out") else (status, body)
    d.say("submit 2 exit 3")
    assert "its files could not be fetched from the computing element" in d.wait("lost 2")[0]
    relay.change = None
    d.say("submit 3 exit 3")
    d.wait("ended 3 code=3")


@pytest.mark.long
def test_an_archive_that_is_cut_off_each_time(relayed):
    """It fills a part of the disk with each try, so the next one comes later and later."""
    relay, d, came = relayed.system, relayed.start(), []

    def cut(_, path, status, body):
        if not path.endswith("/drover.out") or len(came) > 1:
            return status, body
        came.append(time.monotonic())
        return 200, bytes(17 << 20), 1 << 40

    relay.change = cut
    d.say("submit 1 exit 3")
    assert d.wait("ended 1", 3 * LIMIT) == ["ended 1 code=3 why=0"]
    assert came[1] - came[0] > 12


@pytest.mark.long
def test_an_end_that_is_taken_back(relayed, tmp_path):
    """The element says in turn that the job is over, with an archive of nothing, and that it runs: the archive is fetched at longer and
    longer intervals."""
    relay, d, came, asked = relayed.system, relayed.start(), [], [0]
    with tarfile.open(tmp_path / "empty.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("nothing"))
    empty = (tmp_path / "empty.tar").read_bytes()

    def lie(_, path, status, body):
        if len(came) > 1:
            return status, body
        if "jobs?state=" in path:
            asked[0] += 1
            return status, body.replace(b"FINISHED", b"RUNNING") if asked[0] % 2 else body
        if path.endswith("/drover.out"):
            came.append(time.monotonic())
            return 200, empty
        return status, body

    relay.change = lie
    d.say("submit 1 exit 3")
    wait_until(lambda: len(came) > 1, 2 * LIMIT)
    assert came[1] - came[0] > 12


@pytest.mark.long
def test_kills_and_signals(relayed):
    d = relayed.start()
    d.say("submit 1 trap 'echo usr1 >heard; exit 5' USR1; echo >up; while :; do sleep 0.1; done")
    d.say("submit 2 sleep 600")
    d.wait("running 1")
    d.wait("running 2")
    d.say("signal 1 10")
    d.wait("ended 1 code=5")
    assert d.file(1, "heard") == "usr1\n"
    d.say("kill 2")
    d.wait("ended 2 signal=15 why=1")
    d.say("forget 1")
    d.say("forget 2")
    wait_until(lambda: not relayed.system.arex.states())


@pytest.mark.long
def test_an_element_that_is_killed_is_waited_for(relayed):
    """Its jobs go on; so does one whose files were being sent."""
    relay, d = relayed.system, relayed.start()
    arex = relay.arex
    d.say("submit 1 echo x >>starts; while [ ! -e go ]; do sleep 0.1; done; exit 7")
    d.wait("running 1")
    arex.stop(signal.SIGKILL)
    d.wait("away")
    d.say("submit 2 echo x >>starts; exit 8")
    with open(os.path.join(os.path.dirname(arex.find("box.1/starts")), "go"), "w", encoding="utf-8"):
        pass
    arex.start()
    d.wait("ended 1 code=7")
    d.wait("ended 2 code=8")
    assert (d.file(1, "starts"), d.file(2, "starts")) == ("x\n", "x\n")


@pytest.mark.long
def test_what_was_cancelled_there_is_told(relayed):
    """In A-REX's words."""
    d = relayed.start()
    d.say("submit 1 sleep 600")
    d.wait("running 1")
    relayed.system.arex.cancel_all()
    assert "it was cancelled there (Job is canceled" in d.wait("failed 1")[0]
