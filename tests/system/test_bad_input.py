"""Wrong descriptions, typos, garbage on the sockets."""
import json
import os
import random
import re
import socket
import subprocess

import pytest

from drover import sh, wait_until

WRONG = [
    ("executable = /bin/true\nrequest_memory = 1 XB\nqueue\n", 2),
    ("executable = /bin/true\nqueue x in (a b\n", 2),
    ("executable = /bin/true\nthis is no statement\nqueue\n", 2),
    ("executable = /bin/true\narguments = \"a 'b\"\nqueue\n", 2),
    ("executable = /bin/true\nrequirements = (Memory > \nqueue\n", 2),
    ("executable = /bin/true\n\n# comment\nqueue -3\n", 4),
    ("executable = /bin/true\nqueue x from no-such-file\n", 2),
    ("executable = /bin/true\nrequest_cpus = -1\nqueue\n", 2),
    ("executable = /bin/true\nqueue request_memory in (1, -2)\n", 2),
    ("executable = /bin/true\n\n+PriceWeight = -0.5\nqueue\n", 3),
    ("executable = /bin/true\n+TransferInputSizes = \"1,2\"\ntransfer_input_files = http://h/x\nqueue\n", 2),
]


@pytest.mark.parametrize("text,line", WRONG)
def test_errors_name_file_and_line(shared, text, line):
    path = shared.write("wrong.sub", text)
    out = shared.cli("submit", path, code=None)
    assert out.code in (1, 2)
    assert f"wrong.sub:{line}" in out.err, out.err


def test_files_that_are_not_here_are_a_warning(shared):
    """Names in a list, of other machines, and of an image are not looked for; nor is there a warning for what is here."""
    shared.write("here.txt", "")
    out = shared.cli("submit", "-n", "-", stdin="executable = no-such-program\ninitialdir = nowhere\nqueue\ninitialdir =\n"
                     "executable = /bin/true\ninput = no-such-input\ntransfer_input_files = here.txt, gone.txt\nqueue\n"
                     "input =\ntransfer_input_files = here.txt, $(Process).txt, http://h/x\nqueue\n"
                     "container_image = x\nexecutable = /no/such/program\ntransfer_executable = false\nqueue\n")
    assert re.findall(r"^drover: -:(\d+): (\S+): there is no", out.err, re.M) == [
        ("3", "initialdir"), ("3", "executable"), ("8", "input"), ("8", "transfer_input_files")], out.err


def test_no_queue_statement(shared):
    path = shared.write("noqueue.sub", "executable = /bin/true\n")
    assert "queue" in shared.cli("submit", path, code=None).err


def test_a_typo_gets_a_hint(shared):
    out = shared.cli("submit", "--dry-run", "-", stdin="executable = /bin/true\nrequest_memmory = 1 GB\nqueue\n", code=None)
    assert "request_memory" in out.err


def test_missing_file(shared):
    out = shared.cli("submit", "no-such.sub", code=None)
    assert out.code != 0 and "no-such.sub" in out.err


def test_unknown_command_and_option(shared):
    assert "queue" in shared.cli("queu", code=2).err
    assert "--limit" in shared.cli("queue", "--limmit", "3", code=2).err
    shared.cli(code=2)


def test_mistakes_of_calls_are_named(instance):
    """By every program, with exit code 2; and who only looks makes no folder."""
    def says(argv, code, text, **env):
        p = subprocess.run([instance.program(argv[0]), *argv[1:]], env={**instance.env, **env}, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=90, check=False)
        assert p.returncode == code and text in p.stderr, (argv, p)

    nowhere = os.path.join(instance.base, "nowhere")
    says(["droverd", "--nosuch"], 2, "there is no option --nosuch")
    says(["droverd", "--dir"], 2, "--dir needs a value")
    says(["droverd", "--dir", nowhere, "--check"], 1, f"{nowhere}/drover.db")
    assert not os.path.exists(nowhere)
    says(["drover", "up", "--cpus", "many"], 2, "cpus cannot be 'many'")
    says(["drover", "up", "--cpus", "0"], 2, "cpus cannot be 0")
    says(["drover", "quote", "7.1"], 2, "drover show 7.1 says when it is expected")
    says(["drover", "queue"], 1, "https://host:port", DROVER_SERVER="somewhere")
    path = instance.write("agent.yaml", f"server: unix:/nowhere\ndir: {nowhere}\nqueues:\n  - name: a\n    runner: ssh\n")
    says(["drover-agent", "--config", path], 2, "agent.yaml:5: queue a: there is no runner 'ssh'")


BAD_ATTRIBUTES = [("Rank", "(((1"), ("RequestCpus", "-1"), ("RequestDisk", '"much"'), ("RequestGPUs", "-1"),
                  ("ExpectedRunTime", "-5"), ("BetterPlaceWait", '"never"'), ("PriceWeight", "-1"),
                  ("TransferInputSizes", '"abc"'), ("TransferInputSizes", '"1"')]


@pytest.mark.parametrize("name,value", BAD_ATTRIBUTES)
@pytest.mark.parametrize("query", ["", "?dry_run=1"])
def test_bad_attribute_in_the_api(shared, name, value, query):
    body = {"uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "parts": [{"attributes": {"Cmd": '"/bin/true"', name: value}, "rows": 1, "steps": 1}]}
    status, answer = shared.call("POST", "/v1/requests" + query, body)
    assert status == 400 and answer["error"]["code"] == "bad_attribute"
    assert answer["error"]["message"].startswith(name), answer


BAD_BODIES = [b"", b"{", b"[]", b"null", b'{"uuid":7}', b'{"parts":"x"}', b"\xff\xfe\x00", b'{"a":' * 5000,
              b'{"uuid":"x","parts":[{"attributes":{"Cmd":"\\"/bin/true\\""},"rows":99999999999999,"steps":1}]}',
              json.dumps({"uuid": "u", "parts": [{"attributes": {}, "rows": -1, "steps": -1}]}).encode()]


@pytest.mark.parametrize("body", BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_bad_bodies(shared, body):
    status, answer = shared.call("POST", "/v1/requests", body)
    assert 400 <= status < 500
    assert answer["error"]["message"]
    assert shared.server_info()["accepting"] is True


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/v1/jobs/x", "/v1/jobs?id=-1", "/v1/jobs?limit=x",
                                  "/v1/wait?ids=", "/v1/requests/18446744073709551616", "/v1/jobs?constraint=((",
                                  "/v1/jobs/1.99999999999/log", "/v1/uploads/../../etc/passwd", "/v1/%00"])
def test_bad_paths(shared, path):
    status, answer = shared.call("GET", path)
    assert 400 <= status < 500, (status, answer)
    assert answer["error"]["code"] and answer["error"]["message"]


def test_wrong_method(shared):
    status, _ = shared.call("DELETE", "/v1/server")
    assert 400 <= status < 500


def _throw(path, data):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        try:
            s.connect(path)
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except OSError:
            pass


def test_garbage_on_both_sockets(drover):
    rnd = random.Random(4)
    pid = drover.server_pid()
    info = drover.server_json()
    request = drover.submit(sh("sleep 2; echo fine", output="fine.out"))
    for path in (info["api"].removeprefix("unix:"), info["agents"][0].removeprefix("unix:")):
        for n in range(60):
            size = rnd.choice([0, 1, 5, 100, 5000, 70000])
            data = rnd.randbytes(size)
            if n % 4 == 1:
                data = b"GET /v1/server HTTP/1.1\r\n" + data
            elif n % 4 == 2:
                data = b"\x16\x03\x01" + data  # the beginning of a TLS handshake
            elif n % 4 == 3:
                data = b"\xff\xff\xff\x7f" + data  # a frame that is far too long
            _throw(path, data)
    _throw(drover.socket_path(), b"POST /v1/requests HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n")
    _throw(drover.socket_path(), b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\n\r\n")
    _throw(drover.socket_path(), b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n")
    drover.wait(request)
    assert drover.read("fine.out") == "fine\n"
    assert drover.server_pid() == pid and drover.daemons[0].running()
    assert drover.agents("connected")


def test_silent_peers_are_dropped(drover):
    """Connections that say nothing don't keep others out, and end."""
    path = drover.server_json()["agents"][0].removeprefix("unix:")
    quiet = []
    for _ in range(50):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.setblocking(False)
        quiet.append(s)
    drover.run(sh("true"))

    def all_closed():
        """the server closed the silent connections"""
        for s in quiet:
            try:
                if s.recv(1) != b"":
                    return False
            except BlockingIOError:
                return False
            except OSError:
                pass
        return True

    try:
        wait_until(all_closed)
    finally:
        for s in quiet:
            s.close()


def test_a_large_but_slow_body_holds_nobody_up(drover):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(drover.socket_path())
        s.sendall(b"POST /v1/requests HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
        drover.run(sh("true"))


def test_paths_of_uploads_stay_inside(shared):
    status, _ = shared.call("PUT", "/v1/uploads/..%2f..%2fx?offset=0", b"x")
    assert 400 <= status < 500
    assert not os.path.exists(os.path.join(shared.base, "x"))
