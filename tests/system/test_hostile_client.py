"""A hostile client: slow, huge, many, malformed, and curious about what is others'. Each test is a table of attempts and of
what must come of each, and the server serves others all the while."""
import contextlib
import json
import os
import resource
import socket
import ssl
import struct
import uuid

import pytest

from drover import LIMIT, Instance, free_port, made, sh, wait_until

KIB, MIB = 1 << 10, 1 << 20


class World(Instance):
    """A server with both ports on loopback. Alice has a request, its files and a credential; Mallory has a token."""

    def begin(self):
        self.api_port, self.agents_port = free_port(), free_port()
        self.server("--api-listen", f"127.0.0.1:{self.api_port}", "--listen", f"127.0.0.1:{self.agents_port}")
        self.tokens = {name: self.json("token", "user", "--name", f"{name}@test", "--role", "user")["token"]
                       for name in ("alice", "mallory")}

    def tls(self, port=None, source="127.0.0.1", handshake=True):
        s = socket.socket()
        s.settimeout(LIMIT)
        s.bind((source, 0))
        s.connect(("127.0.0.1", port or self.api_port))
        if not handshake:
            return s
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(s)

    def as_user(self, who, method, path, body=None, headers=()):
        """One request over TLS with a user's token. Returns (status, parsed JSON or bytes)."""
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(raw)}", *headers]
        if who:
            lines.append(f"Authorization: Bearer {self.tokens[who]}")
        with self.tls() as s:
            s.sendall("\r\n".join([*lines, "", ""]).encode() + raw)
            return answer(everything(s))

    def memory(self):
        """Bytes of memory that the server has."""
        with open(f"/proc/{self.server_pid()}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) * KIB for line in f if line.startswith("VmRSS:"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.server_pid()}/fd"))


def everything(s):
    """What comes until the server closes (or takes its connection back)."""
    got = b""
    try:
        while piece := s.recv(65536):
            got += piece
    except (ConnectionError, ssl.SSLError):
        pass
    return got


def answer(raw):
    """The first answer in these bytes: (status, parsed JSON or bytes). (0, b""): there is none."""
    if not raw:
        return 0, b""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = {k.strip().lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
    if fields.get("transfer-encoding") == "chunked":
        whole = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            whole, body = whole + body[:int(size, 16)], body[int(size, 16) + 2:]
        body = whole
    return int(lines[0].split()[1]), json.loads(body) if fields.get("content-type") == "application/json" and body else body


@pytest.fixture(scope="module")
def world(request):
    with made(request, "h-") as plain:
        one = World.__new__(World)
        one.__dict__.update(plain.__dict__)
        try:
            one.begin()
            yield one
        finally:
            one.stop()


@pytest.fixture(autouse=True)
def serves_on(world):
    """Whatever was tried, the server still runs, and serves."""
    pid = world.server_pid()
    yield
    assert world.as_user("alice", "GET", "/v1/server")[0] == 200
    assert world.server_info()["accepting"] is True and world.server_pid() == pid


@contextlib.contextmanager
def many(count, make):
    """So many connections, as far as the limit of files allows, closed in the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        yield [stack.enter_context(make()) for _ in range(min(count, hard - 200))]


def closed(s):
    """Whether the server has closed this connection, without waiting."""
    s.setblocking(False)
    try:
        return s.recv(1) == b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


# ---- before a token ---------------------------------------------------------------------------------------------


def test_bodies_of_strangers_are_not_kept(world):
    """Sixty bodies of 8 MB from one who has shown no token, or a wrong one."""
    before = world.memory()
    head = f"POST /v1/requests HTTP/1.1\r\nHost: x\r\nContent-Length: {8 * MIB}\r\n"
    for token in "", "Authorization: Bearer drover-user-token.v1.x.y.z\r\n":
        with many(60, world.tls) as peers:
            for s in peers:
                with contextlib.suppress(OSError):
                    s.sendall((head + token + "\r\n").encode())
                    s.settimeout(0.1)
                    s.sendall(b"x" * (8 * MIB - 1))
            assert world.memory() - before < 64 * MIB
            for s in peers:
                s.settimeout(LIMIT)
                raw = everything(s)
                assert not raw or answer(raw)[0] == 401


def test_a_wrong_token_is_told_from_the_head(world):
    """The answer comes before the body: none of it is asked for."""
    with world.tls() as s:
        s.sendall(b"PUT /v1/uploads/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4194304\r\n"
                  b"Authorization: Bearer drover-user-token.v1.x.y.z\r\n\r\n")
        assert answer(everything(s))[0] == 401
    with world.tls() as s:
        s.sendall(f"POST /v1/requests HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
                  f"Connection: close\r\nAuthorization: Bearer {world.tokens['mallory']}\r\n\r\n".encode())
        assert s.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        s.sendall(b"{}")
        assert answer(everything(s))[0] == 400


STRANGE_HEADS = {
    "a byte, and then nothing": (b"G", 408),
    "nothing": (b"", 0),
    "no end": (b"GET /v1/server HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 5000, 431),
    "many fields": (b"GET /v1/server HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 100 + b"\r\n", 431),
    "no HTTP": (b"\x00\xff\xfe" * 10 + b"\r\n\r\n", 400),
    "a length and chunks": (b"POST /v1/requests HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
                            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "two lengths": (b"POST /v1/requests HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", 400),
    "a folded field": (b"GET /v1/server HTTP/1.1\r\nHost: x\r\nAuthorization:\r\n Bearer x\r\n\r\n", 400),
    "a lone line feed": (b"GET /v1/server HTTP/1.1\nHost: x\n\nGET /v1/server HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "a space before the colon": (b"POST /v1/requests HTTP/1.1\r\nHost: x\r\nContent-Length : 4\r\n\r\nabcd", 400),
    "a coding that is no coding": (b"POST /v1/requests HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
    "chunked in HTTP/1.0": (b"POST /v1/requests HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "a route that is not there": (b"GET /v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "a NUL in the path": (b"GET /v1/server%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
}


def test_heads_of_strangers(world):
    """One answer at most, and the connection ends: what follows it is never taken for a request."""
    with contextlib.ExitStack() as stack:
        peers = {what: stack.enter_context(world.tls()) for what in STRANGE_HEADS}
        for what, s in peers.items():
            sent = STRANGE_HEADS[what][0]
            s.sendall(sent + (b"GET /v1/server HTTP/1.1\r\nHost: x\r\n\r\n" if sent.endswith(b"\r\n\r\n") else b""))
        for what, s in peers.items():
            raw = everything(s)
            assert (what, answer(raw)[0]) == (what, STRANGE_HEADS[what][1])
            assert (what, raw.count(b"HTTP/1.1 ")) == (what, 1 if STRANGE_HEADS[what][1] else 0)


@pytest.mark.parametrize("port", ["api", "agents"])
def test_one_address_leaves_room_for_others(world, port):
    """Thousands of connections that say nothing, or the first bytes of a handshake, from one address."""
    number = world.api_port if port == "api" else world.agents_port
    most = 512 if port == "api" else 1024
    before = world.descriptors()
    with many(2 * most, lambda: world.tls(number, "127.0.0.2", handshake=False)) as flood:
        for s in flood[::2]:
            with contextlib.suppress(OSError):
                s.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        assert world.descriptors() - before <= most // 2 + 8
        with world.tls(number, "127.0.0.3") as guest:
            assert guest.version() == "TLSv1.3"
        assert world.as_user("alice", "GET", "/v1/server")[0] == 200
        assert world.server_info()["accepting"] is True

        def gone():
            """those who did not say who they are were closed"""
            return world.descriptors() - before <= 8

        wait_until(gone)


HELLOS = {
    "nothing": b"",
    "a length of 4 GB": b"\xff\xff\xff\xff",
    "a frame that is larger than a hello": struct.pack("<I", 5000) + b"x" * 5000,
    "half a frame": struct.pack("<I", 100) + b"x",
    "no message": struct.pack("<I", 4) + b"\xff\xff\xff\xff",
    "an empty message, for ever": struct.pack("<I", 0) * 1000,
}


def test_hellos_of_strangers(world):
    with contextlib.ExitStack() as stack:
        peers = {what: stack.enter_context(world.tls(world.agents_port)) for what in HELLOS}
        for what, s in peers.items():
            with contextlib.suppress(OSError):
                s.sendall(HELLOS[what])
        for what, s in peers.items():
            assert (what, everything(s)) == (what, b"")


# ---- with a token: names --------------------------------------------------------------------------------------------


def described(requirements="true", **more):
    """A request of one job, held, as the API takes it."""
    attributes = {"Cmd": '"/bin/true"', "Requirements": requirements, **more}
    return {"uuid": str(uuid.uuid4()), "hold": True, "parts": [{"attributes": attributes}]}


def made_up(first, count):
    return " || ".join(f"n{i:07}" for i in range(first, first + count))


def test_made_up_names_are_not_kept(world):
    """More than a million attribute names that nobody has: in dry runs, quotes and constraints. Then others submit as before."""
    for i in range(24):
        path = "/v1/requests?dry_run=1" if i % 8 else "/v1/quote"
        assert world.as_user("mallory", "POST", path, described(made_up(i * 45000, 45000)))[0] == 200
    for i in range(5):
        body = {"action": "hold", "constraint": made_up(2000000 + i * 9000, 9000)}
        assert world.as_user("mallory", "POST", "/v1/actions", body)[0] == 200
    assert world.as_user("mallory", "POST", "/v1/requests?dry_run=1", described(made_up(0, 60000)))[0] == 400
    assert world.as_user("mallory", "POST", "/v1/actions", {"action": "hold", "constraint": made_up(0, 11000)})[0] == 400
    status, said = world.as_user("alice", "POST", "/v1/requests", described("MyOwnName || TARGET.MyOwnName"))
    assert (status, said.get("error")) == (201, None)


def test_one_users_names_are_limited(world):
    """Of requests that stay, one user's names are his share: he is told so, and others submit as before."""
    made = []
    for i in range(3):
        status, said = world.as_user("mallory", "POST", "/v1/requests", described(made_up(3000000 + i * 20000, 20000)))
        assert status == (201 if i < 2 else 400), said
        made.append(said)
    assert "50000" in made[2]["error"]["message"]
    assert world.as_user("alice", "POST", "/v1/requests", described("AnotherName"))[0] == 201
    for said in made[:2]:
        assert world.as_user("mallory", "POST", "/v1/actions", {"action": "remove", "ids": [str(said["id"])]})[0] == 200
