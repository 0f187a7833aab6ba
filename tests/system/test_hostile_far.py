"""A far server that lies to the agent which hands jobs on to it. Each attempt stands in a table with what must come of it.

What is driven is tests/conform/drive_runner with the runner `drover`; the far server is a thread of this test that says what it is told."""
import concurrent.futures
import contextlib
import http.server
import json
import os
import re
import shutil
import socketserver
import tempfile
import threading
import time
import uuid

import pytest

from drover import wait_until
from test_hostile_batch import peak_mib
from test_runner_calls import Driver

UUID = "11111111-2222-4333-8444-555555555555"


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads, request_queue_size = True, 64


class Far:
    """Answers as a server would whose one job ran and has ended. `lies` are answers by the path's beginning, in place of the honest
    ones: a function of the handler and its path, which returns a status and a body, or has answered itself (None)."""

    def __init__(self, folder):
        far, self.lies, self.asked, self.state, self.files, self.seq = self, {}, [], "completed", {}, 5
        self.next_id = 7

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                far.asked.append((self.command, self.path, body))
                for start, lie in list(far.lies.items()):
                    if f"{self.command} {self.path}".startswith(start):
                        return self.send(lie(self, self.path))
                return self.send(far.honest(self.command, self.path))

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def send(self, answer):
                if answer is None:
                    self.close_connection = True
                    return
                status, body = answer
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def address_string(self):
                return "far"

            def log_message(self, *_):
                pass

        self.path = os.path.join(folder, "far.sock")
        self.server = Server(self.path, Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def job(self, number=7, **more):
        ad = {"DroverLog": True, "GlobalJobId": f"far#{number}", "DroverOutputs": [
            {"Name": name, "Size": len(data), "Mode": 420} for name, data in self.files.items()], **more.pop("ad", {})}
        return {"id": f"{number}.0", "state": self.state, "exit_code": 3, "started_ms": 1767323045000, "ended_ms": 1767323046000, "ad": ad, **more}

    def honest(self, method, path):
        if path == "/v1/server":
            return 200, {"uuid": UUID, "you": "me@far", "seq": self.seq}
        if path.startswith("/v1/events"):
            time.sleep(0.2)
            self.seq += 1
            return 200, {"events": [{"request": 7, "event": "exited", "members": "0"}], "next": self.seq}
        if path.startswith("/v1/capacity"):
            return 200, {"cpus": 8, "memory_mib": 8000, "free_cpus": 8, "free_memory_mib": 8000, "largest_cpus": 8, "largest_memory_mib": 8000, "queues": 1}
        if path.startswith("/v1/paths"):
            return 200, {"paths": []}
        if path == "/v1/requests" and method == "POST":
            self.next_id += 1
            return 201, {"id": self.next_id - 1, "existing": False}
        found = re.fullmatch(r"/v1/jobs/(\d+)\.0/files/(.*)", path)
        if found:
            return 200, self.files.get(found[2], b"")
        found = re.fullmatch(r"/v1/jobs/(\d+)\.0", path)
        if found:
            return 200, self.job(int(found[1]))
        if path.endswith("/path"):
            return 200, {"hops": []}
        return 200, {}


class Hop:
    def __init__(self, build, folder):
        self.folder = folder
        self.far = Far(folder)
        self.build = build
        self.driver = None

    def start(self):
        self.driver = Driver(self.build, self.folder, "drover", {"server": "unix:" + self.far.path}, dict(os.environ))
        return self

    def submit(self, n=1):
        self.driver.say(f"submit {n} echo hello")

    def said(self):
        return self.driver.lines()

    def wait(self, start, count=1):
        try:
            return self.driver.wait(start, count=count)
        except Exception:
            raise AssertionError(f"no {count} of '{start}' in {self.said()}") from None

    def close(self):
        self.far.lies.clear()
        if self.driver and self.driver.process.poll() is None:
            self.driver.process.stdin.close()
            self.driver.process.wait(60)
        self.far.server.shutdown()
        self.far.server.server_close()


@contextlib.contextmanager
def made(config):
    folder = tempfile.mkdtemp(prefix="hf-", dir=config.drover_tmp)
    one = Hop(config.getoption("--build"), folder)
    try:
        yield one
    finally:
        one.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def hop(request):
    with made(request.config) as one:
        yield one


def side_by_side(attempts, ids=None):
    """A test for each attempt, with a far server and a runner of its own. Most of what one takes is waiting between tries, so all of
    them are made at once, by the first that is asked for."""
    def with_all(try_one):
        results = []

        def result(config, attempt):
            with made(config) as one:
                try:
                    try_one(one, attempt)
                except BaseException as e:  # of a thread: raised by the attempt's own test  # pylint: disable=broad-exception-caught
                    return e
            return None

        @pytest.mark.parametrize("number", range(len(attempts)), ids=[str(a) for a in ids or attempts])
        def test(request, number):
            if not results:
                with concurrent.futures.ThreadPoolExecutor(max_workers=len(attempts)) as pool:
                    results.extend(pool.map(lambda attempt: result(request.config, attempt), attempts))
            if results[number]:
                raise results[number]

        return test

    return with_all


def outside(hop):
    """Every file beneath the test's folder that is in no sandbox and none of the runner's own."""
    return sorted(os.path.join(where, name)[len(hop.folder):] for where, _, names in os.walk(hop.folder) for name in names
                  if "/box." not in where and "/hop.q" not in where and name not in ("said", "far.sock"))


def test_the_honest_one_is_believed(hop):
    hop.far.files = {"a": b"one", "sub/b": b"two"}
    hop.start().wait("ready")
    hop.submit()
    assert hop.wait("ended 1") == ["ended 1 code=3 why=0"]
    assert hop.driver.file(1, "a") == "one" and hop.driver.file(1, "sub/b") == "two"


# ---- who it is

HELLOS = {
    "no JSON": (200, b"<html>hello</html>"),
    "another type": (200, b"PNG\x00\xff"),
    "deep JSON": (200, b"[" * 3000000),
    "a name with line ends": (200, {"uuid": "x\nerror drover msg=forged\n", "you": "me@far", "seq": 1}),
    "a name that is no server's": (200, {"uuid": "../../../../../etc/passwd/aaaaaaaaaaaaaa", "you": "me@far", "seq": 1}),
    "somebody with line ends": (200, {"uuid": UUID, "you": "me\nforged", "seq": 1}),
    "a redirect": (301, b""),
    "a wish for a password": (401, b'{"error": {"message": "your password?"}}'),
    "millions of values": (200, b'{"uuid": [' + b"[]," * 5000000 + b"[]]}"),
}


@side_by_side(list(HELLOS))
def test_who_it_is(hop, attempt):
    hop.far.lies["GET /v1/server"] = lambda *_: HELLOS[attempt]
    hop.start()
    hop.wait("away")
    assert not hop.driver.lines("forged") and not hop.driver.lines("error drover"), hop.said()
    assert peak_mib(hop.driver.process.pid) < 300
    hop.far.lies.clear()
    hop.wait("ready")
    hop.submit()
    hop.wait("ended 1")


# ---- what it says of a job: what must be told of it, and never a file elsewhere

def job_says(**more):
    return lambda hop: {"GET /v1/jobs/7.0": lambda _, path: (200, hop.far.job(**more)) if path.endswith("7.0") else hop.far.honest("GET", path)}


def output(name, size=3, data=b"abc"):
    """An output of this name, said to be so large, and what comes of it."""
    def lies(hop):
        files = [{"Name": name, "Size": size, "Mode": 0o6777}]
        return {"GET /v1/jobs/7.0": lambda _, path: (200, data) if "/files/" in path else (200, hop.far.job(ad={"DroverOutputs": files}))}
    return lies


def endless(handler, path):
    if "/files/" not in path:
        return None
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    try:
        for _ in range(1000):  # no more, or who believes it has his disk filled
            handler.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        handler.rfile.read(1)
    except OSError:
        pass
    return None


def endless_output_of(size):
    def lies(hop):
        def lie(handler, path):
            if "/files/" in path:
                return endless(handler, path)
            return 200, hop.far.job(ad={"DroverOutputs": [{"Name": "a", "Size": size, "Mode": 420}]})
        return {"GET /v1/jobs/7.0": lie}
    return lies


endless_output = endless_output_of(10)


JOBS = {
    "an output above the sandbox": (output("../evil"), "failed 1 what=output"),
    "an output at an absolute path": (output("/tmp/drover-evil"), "failed 1 what=output"),
    "an output at a hidden way up": (output("a/../../evil"), "failed 1 what=output"),
    "an output called as the agent's own files": (output(".drover_step.0.done"), "failed 1 what=output"),
    "an output without a name": (output(""), "failed 1 what=output"),
    "an output with a NUL": (output("a\0b"), None),
    "more bytes than it said": (output("a", 2), "failed 1 what=output"),
    "fewer bytes than it said": (output("a", 4), "failed 1 what=output"),
    "an output of a negative size": (output("a", -1), "failed 1 what=output"),
    "an output that never ends": (endless_output, "failed 1 what=output"),
    "an output that is larger than the disk": (endless_output_of(2**60), "failed 1 what=output"),
    "outputs that are no list": (job_says(ad={"DroverOutputs": {"a": 1}}), "ended 1 code=3"),
    "no number for an exit code": (job_says(exit_code="x"), "ended 1 code=0"),
    "a huge exit code": (job_says(exit_code=2**62), "ended 1 code=2147483647"),
    "times in the far future": (job_says(started_ms=2**62, ended_ms=2**62, ad={"DroverStartedMs": 2**62}), "ended 1 code=3"),
    "held with a book for a reason": (job_says(state="held", hold_code=7, hold_reason="\x1b[2Jwhy\n" * 1000000), "failed 1 what=job"),
    "a state that nobody knows": (job_says(state="levitating"), None),
}


@side_by_side(list(JOBS))
def test_what_it_says_of_a_job(hop, attempt):
    lies, told = JOBS[attempt]
    hop.far.lies.update(lies(hop))
    hop.start().wait("ready")
    before = outside(hop)
    hop.submit()
    if told:
        line, = hop.wait(told)
        assert "\x1b" not in line and len(line) < 6000, line[:300]
    else:
        wait_until(lambda: len([path for _, path, _ in hop.far.asked if path.startswith("/v1/jobs/7.0")]) >= 3)
        assert not [line for line in hop.said() if line.startswith(("ended", "lost"))], hop.said()
        hop.far.lies.clear()
    assert outside(hop) == before and not os.path.exists("/tmp/drover-evil")
    assert peak_mib(hop.driver.process.pid) < 400
    sandbox = os.path.join(hop.driver.folder, "box.1")
    assert not os.path.exists(os.path.join(sandbox, ".drover_step.0.done"))
    for name in os.listdir(sandbox):
        assert os.lstat(os.path.join(sandbox, name)).st_size < 1 << 20
        assert not os.lstat(os.path.join(sandbox, name)).st_mode & 0o6000


# ---- what it says of requests, of its log, of room and of paths

def a_number_is_one_requests(hop):
    """It says that two submissions are one request: the second one fails, and the first one goes on."""
    hop.far.state = "running"
    hop.far.lies["POST /v1/requests"] = lambda *_: (201, {"id": 7, "existing": False})
    hop.start().wait("ready")
    hop.submit(1)
    hop.wait("running 1")
    hop.submit(2)
    line, = hop.wait("failed 2 what=request")
    assert "the number of another request" in line
    hop.far.state = "completed"
    hop.wait("ended 1 code=3")


@side_by_side([0, -7, 2**63, "7", None], ids=["nothing", "negative", "huge", "a word", "none"])
def test_numbers_that_are_none(hop, number):
    hop.far.lies["POST /v1/requests"] = lambda *_: (201, {"id": number})
    hop.start().wait("ready")
    hop.submit()
    hop.wait("away")
    hop.far.lies.clear()
    hop.wait("ended 1 code=3")


def a_log_that_goes_back(hop):
    """It is not believed from then on: all is looked at, as after a restart."""
    hop.far.seq = 1000
    hop.far.state = "running"
    hop.start().wait("ready")
    hop.submit()
    hop.wait("running 1")
    hop.far.lies["GET /v1/events"] = lambda *_: (200, {"events": [], "next": 3})
    hop.wait("away")
    hop.far.lies.clear()
    hop.wait("ready", count=2)
    hop.far.state = "completed"
    hop.wait("ended 1 code=3")


def a_log_that_says_nothing_at_once(hop):
    """The long poll returns without delay: it is asked again, but not as fast as it answers."""
    hop.far.lies["GET /v1/events"] = lambda *_: (200, {"events": [], "next": hop.far.seq})
    hop.start().wait("ready")
    begin = time.monotonic()
    wait_until(lambda: len([1 for _, path, _ in hop.far.asked if path.startswith("/v1/events")]) >= 4)
    assert time.monotonic() - begin > 2
    polls = [path for _, path, _ in hop.far.asked if path.startswith("/v1/events")]
    assert len(polls) < 20


def events_of_others_are_nothing(hop):
    """Of requests that were not handed over, of members that there are not, of no form."""
    hop.far.state = "running"
    events = [{"request": 99, "event": "exited", "members": "0-4000000000"}, {"request": 7, "event": "exited", "members": "0-4000000000"},
              {"request": 7, "event": "exited", "members": "-5"}, {"request": "7", "event": 5}, 7, None, [], {"request": -1, "event": "lease_ended"}]

    def lie(*_):
        hop.far.seq += 1
        time.sleep(0.3)
        return 200, {"events": events, "next": hop.far.seq}

    hop.far.lies["GET /v1/events"] = lie
    hop.start().wait("ready")
    hop.submit()
    hop.wait("running 1")
    seen = hop.far.seq
    wait_until(lambda: hop.far.seq > seen + 3)
    assert not [line for line in hop.said() if line.startswith(("ended", "lost", "failed", "away"))]
    hop.far.state = "completed"
    hop.wait("ended 1 code=3")


@side_by_side([b"<html>", b"[" * 100000, b"[" + b"[]," * 2000000 + b"7]"], ids=["no JSON", "deep", "millions of values"])
def test_a_job_that_cannot_be_read(hop, body):
    """It is asked for again, and not as fast as it is answered."""
    hop.far.lies["GET /v1/jobs/7.0"] = lambda *_: (200, body)
    hop.start().wait("ready")
    hop.submit()
    begin = time.monotonic()
    wait_until(lambda: len([1 for _, path, _ in hop.far.asked if path == "/v1/jobs/7.0"]) >= 4)
    assert time.monotonic() - begin > 2
    assert peak_mib(hop.driver.process.pid) < 300
    hop.far.lies.clear()
    hop.wait("ended 1 code=3")


def a_state_that_goes_back_after_the_end(hop):
    """An end that was told is an end."""
    hop.start().wait("ready")
    hop.submit()
    hop.wait("ended 1 code=3")
    hop.far.state = "running"
    seen = hop.far.seq
    wait_until(lambda: hop.far.seq > seen + 3)
    assert len([line for line in hop.said() if line.split()[0] in ("ended", "running", "waiting", "lost")]) <= 2, hop.said()


ROOM = {
    "more than a number holds": {"cpus": 2**63 - 1, "free_cpus": 2**63 - 1, "memory_mib": 2**63 - 1, "free_memory_mib": 2**63 - 1, "largest_cpus": 2**63 - 1,
                                 "queues": 1, "at_ms": 2**62},
    "less than nothing": {"cpus": -5, "memory_mib": -5, "queues": -1},
    "words": {"cpus": "many", "memory_mib": [], "queues": {}},
    "kinds that are none": {"kinds": 5},
    "kinds of nothing": {"kinds": [None, 7, [], {"attributes": 3, "requirements": {}, "resources": "x"}]},
    "more kinds than are offered": {"cpus": 2**62, "kinds": [{"cpus": 2**62, "attributes": {f"A{n}": "x" * 1100 for n in range(300)}}] * 20},
}


@pytest.mark.parametrize("room", ROOM)
def test_room_is_what_there_can_be(hop, room):
    hop.far.lies["GET /v1/capacity"] = lambda *_: (200, ROOM[room])
    hop.start().wait("ready")

    def known():
        """room was told"""
        hop.driver.say("capacity")
        return hop.driver.lines("capacity 1")

    line = wait_until(known)[0]
    assert int(re.search(r"cpus=(\d+)", line)[1]) <= 10**8 and int(re.search(r"memory=(\d+)", line)[1]) <= 2**40, line


def paths_without_end_are_none(hop):
    """Thousands of hops, loops, depth: what is too long is not kept; the job goes on."""
    hop.far.state = "running"
    hops = [{"server": UUID, "host": "x" * 100}] * 100000
    answers = iter([hops, [[[[]]] * 10], [{"server": UUID}] * 3])
    hop.far.lies["GET /v1/paths"] = lambda *_: (200, {"paths": [{"request": 7, "member": 0, "hops": next(answers, [])},
                                                                {"request": 7, "member": 2**62, "hops": []}, 5], "next": 2**62})
    hop.start().wait("ready")
    hop.submit()
    hop.wait("running 1")
    wait_until(lambda: len([1 for _, path, _ in hop.far.asked if path.startswith("/v1/paths")]) >= 4)
    assert peak_mib(hop.driver.process.pid) < 300
    hop.far.lies.clear()
    hop.far.state = "completed"
    hop.wait("ended 1 code=3")


@side_by_side([
    a_number_is_one_requests,
    a_log_that_goes_back,
    a_log_that_says_nothing_at_once,
    events_of_others_are_nothing,
    a_state_that_goes_back_after_the_end,
    paths_without_end_are_none],
    ids=["one number for two requests", "a log that goes back", "a log that says nothing at once", "events of others", "a state that goes back",
         "paths without end"])
def test_what_it_says_besides(hop, attempt):
    attempt(hop)


# ---- checkpoints of a job that waits there: what comes of each, and the job goes on

def checkpoint(*files):
    return {"ad": {"DroverCheckpoint": list(files), "DroverOutputs": []}, "state": "idle"}


CHECKPOINTS = {
    "of less than nothing": [{"Name": "a", "Size": -1, "Mode": 420}],
    "of no size": [{"Name": "a", "Mode": 420}],
    "larger than the disk": [{"Name": "a", "Size": 2**60, "Mode": 420}],
    "above the sandbox": [{"Name": "../a", "Size": 3, "Mode": 420}],
    "at an absolute path": [{"Name": "/tmp/drover-evil", "Size": 3, "Mode": 420}],
    "with a line end": [{"Name": "a\n/tmp/drover-evil", "Size": 3, "Mode": 420}],
    "the agent's own": [{"Name": ".drover_step.0.done", "Size": 3, "Mode": 420}],
    "no names": [3, None, {}],
}


@side_by_side(list(CHECKPOINTS))
def test_a_checkpoint(hop, attempt):
    files = CHECKPOINTS[attempt]

    def lie(handler, path):
        if "/files/" in path:
            return endless(handler, path)
        return 200, hop.far.job(**checkpoint(*files))

    hop.far.lies["GET /v1/jobs/7.0"] = lie
    hop.start().wait("ready")
    hop.submit()
    wait_until(lambda: hop.driver.lines("warn drover") or "a checkpoint is left" in "\n".join(hop.said()))
    assert not hop.driver.lines("checkpointed"), hop.said()
    assert not outside(hop), outside(hop)
    kept = [os.path.join(where, name) for where, _, names in os.walk(hop.folder) for name in names if ".kept." in name]
    assert sum(os.path.getsize(path) for path in kept) < 1 << 20
    hop.far.lies.clear()
    hop.wait("ended 1 code=3")


# ---- the connection itself

def interim(handler, _path):
    handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 200000)
    handler.wfile.flush()


def slow(handler, _path):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{")
    handler.wfile.flush()


def long_head(handler, _path):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000000)
    handler.wfile.flush()


def huge(handler, _path):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999\r\n\r\n")
    try:
        while True:
            handler.wfile.write(b"[" * 65536)
    except OSError:
        return


@side_by_side([interim, slow, long_head, huge], ids=["interim", "slow", "long_head", "huge"])
def test_the_connection(hop, attempt):
    """It is closed in the middle, never ends, or is nothing but beginnings: the far server is away until it answers."""
    hop.far.lies["GET /v1/server"] = attempt
    hop.start()
    hop.wait("away")
    assert peak_mib(hop.driver.process.pid) < 400
    hop.far.lies.clear()
    hop.wait("ready")
    hop.submit()
    hop.wait("ended 1 code=3")


def test_answers_that_are_nearly_too_large(hop):
    """Each is a little less than one may be, and stays unfinished: all together they take no more than some of them."""
    going = threading.Event()

    def nearly(handler, _path):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 66000000\r\n\r\n{")
        try:
            for _ in range(60):
                handler.wfile.write(b" " * (1 << 20))
            going.wait(60)
        except OSError:
            pass

    for path in ("events", "capacity", "paths", "jobs/"):
        hop.far.lies["GET /v1/" + path] = nearly
    hop.start()
    for _ in range(8):
        hop.submit()
    hop.wait("away")
    going.set()
    assert peak_mib(hop.driver.process.pid) < 450
    hop.far.lies.clear()
    hop.wait("ended 1 code=3")


# ---- the other way round: a server that hands a job over, and lies in `origin`

OTHER = "22222222-2222-4333-8444-555555555555"
ORIGINS = {
    "no servers": ({"servers": ""}, 400),
    "servers that are none": ({"servers": "here there"}, 400),
    "a server twice": ({"servers": f"{OTHER} {UUID} {OTHER.upper()}"}, 400),
    "thousands of servers": ({"servers": " ".join(str(uuid.UUID(int=i)) for i in range(5000))}, 400),
    "this server": ({"servers": "HERE"}, 409),
    "a way without end": ({"hops_left": 2**31}, 400),
    "a way back": ({"hops_left": -1}, 400),
    "an owner with line ends": ({"owner": "ann\nforged"}, 400),
    "an owner that is a command to a terminal": ({"owner": "ann\x1b[2J@far"}, 400),
    "an owner that is a list": ({"owner": ["root@here"]}, 400),
    "a book for a label": ({"label": "x" * 5000}, 400),
    "a path that is an expression": ({"path": '"||true||"/q'}, 400),
    "a job that ends its text": ({"job": '7.0"; Evil = "1'}, 201),
}


@pytest.mark.parametrize("what", ORIGINS)
def test_what_an_origin_says(shared, what):
    origin, status = ORIGINS[what]
    origin = {"servers": OTHER, "owner": "ann@far", "job": "3.0", "hops_left": 3, **origin}
    if origin["servers"] == "HERE":
        origin["servers"] = shared.server_info()["uuid"]
    body = {"uuid": str(uuid.uuid4()), "lease_ms": 60000, "origin": origin,
            "parts": [{"attributes": {"Cmd": '"/bin/true"', "Requirements": "false", "ShouldTransferFiles": '"YES"'}}]}
    answer = shared.api("POST", "/v1/requests", body, status=status)
    if status == 201:
        row = shared.api("GET", f"/v1/jobs/{answer['id']}.0")
        assert row["ad"]["DroverOriginJob"] == origin["job"] and "Evil" not in row["ad"]


def test_an_origin_speaks_for_nobody(shared):
    """Whose job it is says the token, and not what the origin says; and the way is never longer than it may be."""
    body = {"uuid": str(uuid.uuid4()), "lease_ms": 60000,
            "origin": {"servers": f"{OTHER} {UUID}", "owner": "somebody.else@another.domain", "job": "3.0", "hops_left": 64},
            "parts": [{"attributes": {"Cmd": '"/bin/true"', "Requirements": "false", "ShouldTransferFiles": '"YES"'}}]}
    request = shared.api("POST", "/v1/requests", body)["id"]
    row = shared.api("GET", f"/v1/requests/{request}")
    assert row["owner"] == shared.server_info()["you"] and row["origin"]["owner"] == "somebody.else@another.domain"
    assert row["origin"]["hops_left"] <= 62


@pytest.mark.parametrize("lease", [-1, 0, 2**62, 10 * 365 * 86400000, "long"])
def test_a_lease_of_years(shared, lease):
    shared.api("POST", "/v1/requests", {"uuid": str(uuid.uuid4()), "lease_ms": lease, "parts": [{"attributes": {"Cmd": '"/bin/true"'}}]}, status=400)
