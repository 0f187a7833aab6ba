"""A hostile client: slow, huge, many, malformed, and curious about what is others'. Each test is a table of attempts and of
what must come of each, and the server serves others all the while."""
import contextlib
import json
import os
import resource
import select
import socket
import ssl
import struct
import uuid

import pytest

import openapi
import rekey
from sssrmap import envelope, request, signature
from drover import LIMIT, Instance, free_port, made, sh, wait_until
from wire import Liar

KIB, MIB = 1 << 10, 1 << 20
KEY = "a key that Mallory does not have"


class World(Instance):
    """A server with both ports on loopback. Alice has a request, its files and a credential; Mallory has a token."""

    def begin(self):
        self.api_port, self.agents_port = free_port(), free_port()
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        with open(os.path.join(self.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
            key = os.path.join(self.dir, "maui.key")
            f.write(f"sssrmap: {{keys: [{{name: maui, file: {key}, actors: any, role: admin}}]}}\n")
            with open(key, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as k:
                k.write(KEY + "\n")
            f.write("users: {mallory@test: {max_spool: 3584K}, counted@test: {max_queued_bytes: 48M}}\noperators: [op@test]\n")
        self.server("--api-listen", f"127.0.0.1:{self.api_port}", "--listen", f"127.0.0.1:{self.agents_port}")
        self.tokens = {name: self.json("token", "user", "--name", f"{name}@test", "--role", "user")["token"]
                       for name in ("alice", "mallory", "counted", "trudy")}
        self.tokens["op"] = self.json("token", "user", "--name", "op@test", "--role", "operator")["token"]

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

    def descriptor_limit(self):
        return resource.prlimit(self.server_pid(), resource.RLIMIT_NOFILE)[0]


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


def test_messages_of_strangers_are_bounded(world):
    """SSSRMAP's messages show who sends them, so they are read before that is known: a quarter of a MB, and no entity of theirs."""
    before = world.memory()
    for head in (f"Content-Length: {8 * MIB}\r\n", "Transfer-Encoding: chunked\r\n"):
        with many(60, world.tls) as peers:
            for s in peers:
                with contextlib.suppress(OSError):
                    s.sendall(f"POST /SSSRMAP3 HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\n{head}\r\n".encode())
                    s.settimeout(0.1)
                    s.sendall((b"800000\r\n" if "chunked" in head else b"") + b"x" * (8 * MIB - 1))
            assert world.memory() - before < 64 * MIB
            for s in peers:
                s.settimeout(LIMIT)
                raw = everything(s)
                assert not raw or answer(raw)[0] in (413, 503)
    laughs = "".join(f'<!ENTITY l{n} "{"&l%d;" % (n - 1) * 10}">' for n in range(1, 12))
    body = "<Body><Request action='Query' actor='alice'><Object>Job</Object></Request></Body>"
    deep = "<Option name='a'>" * 7000
    for text in (f'<!DOCTYPE a [<!ENTITY l0 "ha">{laughs}]><Envelope>&l11;{body}</Envelope>',
                 f"<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><Envelope>&e;{body}</Envelope>",
                 f"<!DOCTYPE Envelope SYSTEM 'http://127.0.0.1:1/x.dtd'><Envelope>{body}</Envelope>",
                 "<Envelope><Body>" + deep, "<Envelope><Body>" + deep + "</Option>" * 7000 + "</Body></Envelope>",
                 "<Envelope><Body><Request action='Query' actor='a'>" + "<Get name='a'/>" * 15000 + "</Request></Body></Envelope>",
                 f"<Envelope {' '.join(f'a{n}={chr(39)}{chr(39)}' for n in range(20000))}>{body}</Envelope>",
                 "<Envelope>" + "<Body>" * 30000, "\x00" * 1000, "<" * 200000, "<Envelope>" + "&lt;" * 50000 + body + "</Envelope>"):
        status, said = world.as_user(None, "POST", "/SSSRMAP3", text.encode(), ["Content-Type: text/xml"])
        assert status == 200 and b"<Code>302</Code>" in said and b"root:" not in said and b"<Signature" not in said, text[:80]
    assert world.memory() - before < 64 * MIB


def test_messages_of_others_do_nothing(world, alices):
    """SSSRMAP with Mallory's token, with no key and with wrong ones: nothing of Alice's is seen or changed."""
    token = f'<Signature><SecurityToken type="Cleartext">{world.tokens["mallory"]}</SecurityToken></Signature>'
    before = state_of(world, alices)
    number = alices["id"]
    for actor, sign, codes in (("alice@test", "", {"424"}), ("alice@test", signature("<Body></Body>", KEY, name="maui"), {"424"}),
                               ("alice@test", token, {"444"}), ("mallory@test", token, {"000", "742", "444", "314", "317", "400"})):
        for action, obj, options in (("Query", "Job", {"JobId": number}), ("Query", "Job", {"UserId": "alice@test"}), ("Cancel", "Job", {"JobId": number}),
                                     ("Hold", "Job", {"JobId": number}), ("Release", "Job", {"JobId": number}), ("Modify", "Job", {"JobId": number, "Priority": 9}),
                                     ("Balance", "Account", {"ProjectId": "alice@test"}), ("Deposit", "Account", {"ProjectId": "alice@test", "Amount": 5}),
                                     ("Charge", "Job", {"JobId": "x", "ProjectId": "alice@test", "Charge": 5}), ("Query", "Reservation", {}),
                                     ("Delete", "Reservation", {"ReservationId": 1}), ("Query", "Account", {})):
            text = envelope(request(action, obj, actor, **options), sign)
            status, said = world.as_user(None, "POST", "/SSSRMAP3", text.encode(), ["Content-Type: text/xml"])
            code = said.decode().partition("<Code>")[2][:3]
            assert status == 200 and code in codes, (actor, action, obj, said)
            assert SECRET not in said.decode() and alices["uuid"] not in said.decode()
    assert state_of(world, alices) == before


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
    most = 512 if port == "api" else world.descriptor_limit() // 2  # those to agents wait for their handshakes
    before = world.descriptors()
    with many(most, lambda: world.tls(number, "127.0.0.2", handshake=False)) as flood:
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


def unread(s):
    """Bytes that were sent on this connection, and that its peer on this machine has not read."""
    def hexed(address):
        return f"{int.from_bytes(socket.inet_aton(address[0]), 'little'):08X}:{address[1]:04X}"

    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f]
    return sum(int(row[4].split(":")[1], 16) for row in rows if row[1:3] == [hexed(s.getpeername()), hexed(s.getsockname())])


def test_new_keys_without_end(world):
    """Forty thousand new TLS keys at once, which whoever has shown no token may ask for as well: others are served before the
    last of them."""
    get = f"GET /v1/server HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {world.tokens['mallory']}\r\n\r\n".encode()
    with contextlib.closing(rekey.Rekey(("127.0.0.1", world.api_port), LIMIT)) as peer, world.tls() as other:
        other.sendall(get)
        assert answer(other.recv(65536))[0] == 200
        peer.socket.sendall(peer.records(get))
        assert peer.socket.recv(65536)
        peer.socket.sendall(peer.updates(40000))
        other.sendall(get)
        assert answer(other.recv(65536))[0] == 200
        assert unread(peer.socket) > 0


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


# ---- with a token: what is others' --------------------------------------------------------------------------------------

SECRET = "the-word-that-only-alice-knows"


@pytest.fixture(scope="module")
def alices(world):
    """What Alice has: a request with a file that she uploaded, an upload under way, a credential and a token of hers."""
    upload = world.as_user("alice", "POST", "/v1/uploads")[1]["id"]
    world.as_user("alice", "PUT", f"/v1/uploads/{upload}?offset=0", SECRET.encode())
    file = world.as_user("alice", "POST", f"/v1/uploads/{upload}/finish", {})[1]["sha256"]
    half = world.as_user("alice", "POST", "/v1/uploads")[1]["id"]
    world.as_user("alice", "PUT", f"/v1/uploads/{half}?offset=0", b"half")
    body = {**described(Note=f'"{SECRET}"'), "lease_ms": 1000000, "spooled": [{"name": "in.txt", "sha256": file, "size": len(SECRET)}],
            "origin": {"servers": str(uuid.uuid4()), "owner": "alice@far", "job": "1.0", "hops_left": 2}}
    status, said = world.as_user("alice", "POST", "/v1/requests", body)
    assert status == 201, said
    number = said["id"]
    assert world.as_user("alice", "PUT", "/v1/credentials/hers", {"type": "file", "data": SECRET})[0] == 200
    token = next(t["id"] for t in world.api("GET", "/v1/tokens")["tokens"] if t["name"] == "alice@test")
    return {"id": number, "job": f"{number}.0", "upload": upload, "half": half, "file": file, "uuid": body["uuid"], "token": token}


def test_an_operator_runs_nothing_as_others(world, alices):
    """He holds and releases her jobs; what they run stays hers to say."""
    for action in ("release", "hold"):
        assert world.as_user("op", "POST", "/v1/actions", {"action": action, "ids": [alices["job"]]}) == (200, {"affected": 1, "errors": []})
    before = world.as_user("alice", "GET", f"/v1/jobs/{alices['job']}")[1]["ad"]
    edit = {"action": "edit", "attributes": {"Arguments": '"mine"'}}
    for whom in ({"ids": [str(alices["id"])]}, {"constraint": "true"}):
        got = world.as_user("op", "POST", "/v1/actions", {**edit, **whom})
        assert got[0] != 200 or got[1]["affected"] == 0, got
    after = world.as_user("alice", "GET", f"/v1/jobs/{alices['job']}")[1]["ad"]
    assert after.get("Arguments") == before.get("Arguments") != "mine"
    status, said = world.as_user("op", "POST", f"/v1/jobs/{alices['job']}/exec", {"argv": ["id"]})
    assert status == 403 and "only its owner" in said["error"]["message"]
    status, said = world.as_user("alice", "POST", f"/v1/jobs/{alices['job']}/exec", {"argv": ["id"]})
    assert status == 409 and "does not run" in said["error"]["message"]
    status, said = world.as_user("alice", "POST", "/v1/actions", {**edit, "ids": [alices["job"]]})
    assert status == 200 and said["affected"] == 1


def state_of(world, hers):
    """All that Alice can see of what is hers."""
    paths = [f"/v1/requests/{hers['id']}", f"/v1/jobs/{hers['job']}", f"/v1/jobs/{hers['job']}/log", "/v1/requests?all=1",
             f"/v1/requests/{hers['id']}/files", "/v1/credentials", "/v1/tokens"]
    seen = [world.as_user("alice", "GET", path) for path in paths]
    assert all(status == 200 for status, _ in seen)
    seen[0][1].pop("lease_left_ms", None)
    for moving in ("ServerTime", "CurrentTime"):
        seen[1][1]["ad"].pop(moving, None)
    return json.dumps(seen)


JOB = ("", "/log", "/path", "/script", "/output", "/why", "/priority", "/files", "/files/in.txt")
REQUEST_LIKE_HERS = {"parts": [{"attributes": {"Cmd": '"/bin/cat"'}}], "hold": True}
REFUSED = (403, 404)
# (method, route): the attempts, each (path, body, status that is right)
ATTEMPTS = {
    ("GET", "/healthz"): [("/healthz", None, 200)],
    ("GET", "/readyz"): [("/readyz", None, 200)],
    ("GET", "/v1/server"): [("/v1/server", None, 200)],
    ("GET", "/v1/openapi.json"): [("/v1/openapi.json", None, 200)],
    ("POST", "/v1/uploads"): [("/v1/uploads", None, 201)],
    ("PUT", "/v1/uploads/{id}"): [("/v1/uploads/{half}?offset=4", b"more", 404), ("/v1/uploads/{upload}?offset=0", b"more", 404),
                                  ("/v1/uploads/..%2f..?offset=0", b"more", 404)],
    ("POST", "/v1/uploads/{id}/finish"): [("/v1/uploads/{half}/finish", {}, 404), ("/v1/uploads/{upload}/finish", {}, 404)],
    ("GET", "/v1/requests"): [("/v1/requests?all=1&limit=1000", None, 200), ("/v1/requests?all=1&owner=alice@test", None, 200)],
    ("POST", "/v1/requests"): [
        ("/v1/requests?dry_run=1", {**REQUEST_LIKE_HERS, "uuid": "{uuid}"}, 200),  # it would be a request of his own
        ("/v1/requests", {**REQUEST_LIKE_HERS, "uuid": "{new}", "spooled": [{"name": "in.txt", "sha256": "{file}", "size": 1}]}, 400),
        ("/v1/requests", {"uuid": "{new}", "parts": [{"attributes": {}, "variables": ["x"], "items_upload": "{upload}"}]}, 400),
        ("/v1/requests?dry_run=1", {"uuid": "{new}", "parts": [{"attributes": {}, "variables": ["x"], "items_upload": "{upload}"}]}, 400)],
    ("GET", "/v1/requests/{id}"): [("/v1/requests/{id}", None, REFUSED)],
    ("PUT", "/v1/requests/{id}/lease"): [("/v1/requests/{id}/lease", {"lease_ms": 1000}, REFUSED)],
    ("PUT", "/v1/requests/{id}/credentials/{name}"): [("/v1/requests/{id}/credentials/hers", {"type": "file", "data": "x"}, REFUSED)],
    ("POST", "/v1/requests/{id}/taken"): [("/v1/requests/{id}/taken", {"members": "0"}, REFUSED)],
    ("GET", "/v1/requests/{id}/files"): [("/v1/requests/{id}/files", None, REFUSED)],
    ("GET", "/v1/jobs"): [("/v1/jobs?id={id}&attributes=*", None, (200, *REFUSED)), ("/v1/jobs?all=1&attributes=*&constraint=true", None, 200),
                          ("/v1/jobs?owner=alice@test&attributes=*", None, 200)],
    **{("GET", "/v1/jobs/{id}" + what.replace("in.txt", "{name}")): [("/v1/jobs/{job}" + what, None, REFUSED)] for what in JOB},
    ("POST", "/v1/jobs/{id}/exec"): [("/v1/jobs/{job}/exec", {"argv": ["id"]}, REFUSED)],
    ("POST", "/v1/jobs/{id}/exec/input"): [("/v1/jobs/{job}/exec/input", {"exec": 1, "attempt": 1, "data": "eA=="}, REFUSED)],
    ("GET", "/v1/paths"): [("/v1/paths?after=0", None, 200)],
    ("POST", "/v1/requests/{id}/resubmit"): [("/v1/requests/{id}/resubmit", {"uuid": "{new}"}, 404)],
    ("POST", "/v1/actions"): [("/v1/actions", {"action": action, "ids": ["{id}"], "value": 9}, (200, *REFUSED)) for action in (
        "hold", "release", "remove", "vacate", "checkpoint", "suspend", "resume", "priority", "signal")] + [
        ("/v1/actions", {"action": "remove", "ids": ["{job}"]}, (200, *REFUSED)),
        ("/v1/actions", {"action": "edit", "ids": ["{id}"], "attributes": {"RequestMemory": "9"}}, REFUSED),
        ("/v1/actions", {"action": "remove", "constraint": f'Note == "{SECRET}"'}, 200)],
    ("GET", "/v1/wait"): [("/v1/wait?ids={id}&timeout_ms=0", None, REFUSED), ("/v1/wait?ids={job}&timeout_ms=0", None, REFUSED)],
    ("GET", "/v1/history"): [("/v1/history?id={id}&attributes=*", None, (200, *REFUSED)), ("/v1/history?owner=alice@test", None, 200)],
    ("GET", "/v1/server/status"): [("/v1/server/status", None, 200)],
    ("POST", "/v1/server/promote"): [("/v1/server/promote?force=1", None, 403)],
    ("POST", "/v1/server/drain"): [("/v1/server/drain", None, 403)],
    ("GET", "/v1/agents"): [("/v1/agents", None, 200)],
    ("POST", "/v1/agents/{name}/revoke"): [("/v1/agents/n1/revoke", None, 403)],
    ("POST", "/v1/agents/{name}/drain"): [("/v1/agents/n1/drain", {"reason": "mine"}, 403)],
    ("GET", "/v1/usage"): [("/v1/usage?by=user&owner=alice@test", None, 200), ("/v1/usage?by=all", None, 400)],
    ("GET", "/v1/usage/keywords"): [("/v1/usage/keywords?by=user&owner=alice@test", None, 200), ("/v1/usage/keywords?by=all", None, 400)],
    ("GET", "/v1/usage/records"): [("/v1/usage/records?owner=alice@test", None, 200), ("/v1/usage/records?after=usage/x", None, 200)],
    ("GET", "/v1/reservations"): [("/v1/reservations", None, 200)],
    ("POST", "/v1/reservations"): [("/v1/reservations", {"duration_ms": 60000, "cpus": 1, **more}, 403) for more in (
        {}, {"maintenance": True}, {"evict": True}, {"check_only": True}, {"account": "alice@test"})],
    ("GET", "/v1/reservations/{id}"): [("/v1/reservations/1", None, 404)],
    ("DELETE", "/v1/reservations/{id}"): [("/v1/reservations/1", None, 404)],
    ("GET", "/v1/bank"): [("/v1/bank", None, 200)],
    ("GET", "/v1/bank/accounts/{name}"): [("/v1/bank/accounts/alice@test", None, 404)],
    ("GET", "/v1/bank/accounts/{name}/statement"): [("/v1/bank/accounts/alice@test/statement", None, 404)],
    ("GET", "/v1/bank/bill"): [("/v1/bank/bill?by=account,month", None, 200), ("/v1/bank/bill?by=all", None, 400), ("/v1/bank/bill?account=secret", None, 404)],
    ("GET", "/v1/bank/reserved"): [("/v1/bank/reserved", None, 200)],
    ("GET", "/v1/bank/machines"): [("/v1/bank/machines", None, 200)],
    ("GET", "/v1/bank/users"): [("/v1/bank/users", None, 200)],
    ("POST", "/v1/bank/orders"): [("/v1/bank/orders", {"op": op, "account": "alice@test", "amount": 5, "id": 1, "credit": 5}, (403, 404)) for op in (
        "open", "deposit", "withdraw", "set", "charge", "release", "extend", "refund", "lien", "register", "machine", "unregister", "close")],
    ("GET", "/v1/nodes"): [("/v1/nodes", None, 200)],
    ("GET", "/v1/nodes/{name}"): [("/v1/nodes/n1", None, (200, 404))],
    ("POST", "/v1/nodes/{name}"): [("/v1/nodes/n1", {"state": state, "reason": "mine"}, 403) for state in (
        "up", "draining", "failed", "down", "retired")],
    ("POST", "/v1/agents/{name}/wish"): [("/v1/agents/n1/wish", {"wishes": ["short-run"]}, 403)],
    ("POST", "/v1/agents/{name}/resume"): [("/v1/agents/n1/resume", None, 403)],
    ("GET", "/v1/accounts"): [("/v1/accounts", None, 200)],
    ("GET", "/v1/wishlist"): [("/v1/wishlist", None, 200)],
    ("GET", "/v1/capacity"): [("/v1/capacity", None, 200)],
    ("GET", "/metrics"): [("/metrics", None, 200)],
    ("GET", "/v1/series"): [("/v1/series", None, 200)],
    ("GET", "/v1/config"): [("/v1/config", None, 200)],
    ("GET", "/v1/config/time_limit"): [("/v1/config/time_limit", None, 200), ("/v1/config/time_limit?virtual_queue=none", None, 200)],
    ("GET", "/v1/limits"): [("/v1/limits", None, 200)],
    ("POST", "/v1/quote"): [("/v1/quote", {"uuid": "{new}", "parts": [
        {"attributes": {}, "variables": ["x"], "items_upload": "{upload}"}]}, 400)],
    ("GET", "/v1/stores"): [("/v1/stores", None, 200)],
    ("POST", "/v1/stores/{name}"): [("/v1/stores/lab", {"release": "a"}, 404), ("/v1/stores/lab", {"release": "a", "owner": "alice@test"}, 403),
                                    ("/v1/stores/lab", {"used_bytes": 0}, 403)],
    ("GET", "/v1/tokens"): [("/v1/tokens", None, (200, 403))],
    ("POST", "/v1/tokens"): [("/v1/tokens", {"kind": "agent"}, 403), ("/v1/tokens", {"kind": "user", "name": "alice@test"}, 403),
                             ("/v1/tokens", {"kind": "user", "role": "admin"}, (400, 403))],
    ("DELETE", "/v1/tokens/{id}"): [("/v1/tokens/{token}", None, REFUSED)],
    ("GET", "/ga4gh/tes/v1/service-info"): [("/ga4gh/tes/v1/service-info", None, 200)],
    ("GET", "/ga4gh/tes/v1/tasks"): [("/ga4gh/tes/v1/tasks?view=FULL", None, 200)],
    ("POST", "/ga4gh/tes/v1/tasks"): [("/ga4gh/tes/v1/tasks", {"executors": []}, 400)],
    ("GET", "/ga4gh/tes/v1/tasks/{id}"): [("/ga4gh/tes/v1/tasks/{id}", None, 404)],
    ("POST", "/ga4gh/tes/v1/tasks/{id}:cancel"): [("/ga4gh/tes/v1/tasks/{id}:cancel", None, 404)],
    ("GET", "/.well-known/drover"): [("/.well-known/drover", None, 200)],
    ("POST", "/SSSRMAP3"): [("/SSSRMAP3", {}, 415)],  # more of it below
    ("GET", "/v1/credentials"): [("/v1/credentials", None, 200)],
    ("DELETE", "/v1/credentials/{name}"): [("/v1/credentials/hers", None, REFUSED)],
    ("PUT", "/v1/credentials/{name}"): [("/v1/credentials/hers", {"type": "file", "data": "mine"}, 200)],
    ("GET", "/v1/catalog"): [("/v1/catalog", None, 200)],
    ("GET", "/v1/catalog/files"): [("/v1/catalog/files", None, 200)],
    ("POST", "/v1/catalog/files"): [("/v1/catalog/files", {"files": [{"name": "x"}]}, 403)],
    ("GET", "/v1/catalog/files/{name}"): [("/v1/catalog/files/x", None, 404)],
    ("POST", "/v1/catalog/remove"): [("/v1/catalog/remove", {"names": ["x"]}, 403)],
    ("GET", "/v1/catalog/datasets"): [("/v1/catalog/datasets", None, 200)],
    ("PUT", "/v1/catalog/datasets/{name}"): [("/v1/catalog/datasets/x", {"query": "a=1"}, 403)],
    ("DELETE", "/v1/catalog/datasets/{name}"): [("/v1/catalog/datasets/x", None, 403)],
    ("GET", "/v1/events"): [("/v1/events?after=0&limit=10000&timeout_ms=0", None, 200)],
}


def test_no_route_shows_or_changes_what_is_others(world, alices):
    """Every route of the document, with another user's token: refused, or an answer in which nothing of hers is."""
    routes = {(method.upper(), path) for path, item in openapi.DOCUMENT["paths"].items() for method in item if method != "parameters"}
    assert routes == set(ATTEMPTS)
    before = state_of(world, alices)
    secrets = {SECRET, alices["half"], alices["file"], alices["uuid"], world.tokens["alice"], f'"request":{alices["id"]},', alices["token"]}
    for (method, _), attempts in ATTEMPTS.items():
        for path, body, right in attempts:
            fill = {**alices, "new": str(uuid.uuid4())}
            path = path.replace("{id}", str(fill["id"])).format(**fill)
            if isinstance(body, dict):
                text = json.dumps(body)
                for name, value in fill.items():
                    text = text.replace("{" + name + "}", str(value))
                body = json.loads(text)
            status, said = world.as_user("mallory", method, path, body)
            assert status in (right if isinstance(right, tuple) else (right,)), (method, path, body, status, said)
            text = said.decode("latin-1") if isinstance(said, bytes) else json.dumps(said, separators=(",", ":"))
            told = {s for s in secrets if s in text and s not in path and s not in json.dumps(body if isinstance(body, dict) else "")}
            assert not told, (method, path, told)
            if "/actions" in path and status == 200:
                assert said["affected"] == 0, body
    assert state_of(world, alices) == before
    world.as_user("mallory", "DELETE", "/v1/credentials/hers")
    assert state_of(world, alices) == before


# ---- with a token: bodies -----------------------------------------------------------------------------------------------

GOOD = '"uuid": "2058e9bf-74d5-46d3-b5e5-ba29ae191711", "hold": true, "parts": [{"attributes": {"Cmd": "1"}}]'
BODIES = {
    "nothing": b"",
    "no object": b"[]",
    "null": b"null",
    "lists within lists": b"[" * 100000,
    "objects within objects": b'{"a":' * 50000 + b"1" + b"}" * 50000,
    "lists within a member": b'{"a": ' + b"[" * 100000 + b"]" * 100000 + b"}",
    "a number that is too large": f'{{{GOOD}, "lease_ms": 99999999999999999999}}'.encode(),
    "a number beyond all": f'{{{GOOD}, "lease_ms": 1e999}}'.encode(),
    "a number with a million digits": f'{{{GOOD}, "lease_ms": {"1" * 1000000}}}'.encode(),
    "NaN": f'{{{GOOD}, "lease_ms": NaN}}'.encode(),
    "Infinity": f'{{{GOOD}, "lease_ms": -Infinity}}'.encode(),
    "no UTF-8": b'{"uuid": "\xff\xfe"}',
    "half a character": b'{"uuid": "\xe2\x82"}',
    "a lone surrogate": b'{"uuid": "\\ud800"}',
    "an encoded NUL": b'{"uuid": "a\\u0000b"}',
    "NULs": b"\0" * 1000,
    "a member twice": f'{{{GOOD}, "hold": false}}'.encode(),
    "half of it": f"{{{GOOD}".encode(),
    "something behind it": f"{{{GOOD}}} 1".encode(),
    "a hold that is a word": f'{{{GOOD.replace("true", chr(34) + "yes" + chr(34))}}}'.encode(),
    "a late list without end": f'{{{GOOD[:-2]}, "late": [{",".join([chr(34) * 2] * 1000000)}]}}]}}'.encode(),
}


def test_bodies_that_are_none(world):
    """Each is refused, whatever route takes it, and nothing is kept of it."""
    before = world.memory()
    for route in ("/v1/requests", "/v1/actions"):
        for what, body in BODIES.items():
            status, said = world.as_user("mallory", "POST", route, body)
            assert (route, what, status) == (route, what, 413 if "too many values" in str(said) else 400), said
            assert said["error"]["message"]
    assert world.memory() - before < 192 * MIB
    assert world.as_user("alice", "GET", "/v1/requests/2058e9bf")[0] == 404


QUERIES = ["/v1/jobs?limit=99999999999999999999", "/v1/jobs?limit=-1", "/v1/jobs?limit=NaN", "/v1/jobs?state=%ff", "/v1/jobs?after=x.y",
           "/v1/history?limit=1e3", "/v1/history?before=99999999999999999999", "/v1/events?after=-1", "/v1/events?limit=99999999999999999999",
           "/v1/wait?ids=1&timeout_ms=99999999999999999999", "/v1/wait?ids=", "/v1/wait?ids=1-", "/v1/requests?limit=%00", "/v1/requests?all=%zz", "/v1/requests?owner=%"]
NUMBERS = ["0", "-1", "1e9", "99999999999999999999", "%00", "%ff", "1.99999999999", "..", "%2e%2e", "NaN"]


def test_numbers_that_are_none(world):
    for path in QUERIES:
        assert (path, world.as_user("mallory", "GET", path)[0]) == (path, 400)
    for number in NUMBERS:
        for route in ("/v1/requests/{}", "/v1/jobs/{}", "/v1/jobs/{}/why", "/v1/jobs/{}/files/x", "/v1/requests/{}/files"):
            assert world.as_user("mallory", "GET", route.format(number))[0] in (400, 404), (route, number)


def head(world, who, path, *fields, method="POST"):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {world.tokens[who]}", *fields, "", ""]).encode()


ENDLESS = {
    "chunks": (b"100000\r\n" + b"x" * MIB + b"\r\n", 413),
    "one chunk": (b"f" * 8 + b"\r\n" + b"x" * MIB, 413),
    "a chunk larger than numbers are": (b"f" * 64 + b"\r\n" + b"x" * MIB, 413),
    "the extension of a chunk": (b"1;" + b"x" * MIB, 400),
    "digits of a chunk": (b"0" * MIB, 400),
    "no chunks": (b"x" * MIB, 400),
    "trailers": (b"0\r\n" + b"A: b\r\n" * 200000, 400),
}


def test_endless_chunks(world):
    """A body without end is refused when it is larger than bodies may be, and what follows is not read."""
    before, told = world.memory(), {}
    for what, (piece, _) in ENDLESS.items():
        with world.tls() as s:
            s.sendall(head(world, "mallory", "/v1/requests", "Transfer-Encoding: chunked"))
            with contextlib.suppress(OSError):
                for _ in range(64):
                    s.sendall(piece)
            told[what] = answer(everything(s))[0]
    assert told == {what: right for what, (_, right) in ENDLESS.items()}
    assert world.memory() - before < 64 * MIB


def test_slow_bodies(world):
    """One user has sixty bodies of 8 MB that never end. Others send theirs, and all of the room is free again."""
    before, files = world.memory(), world.descriptors()
    with many(60, world.tls) as peers:
        for s in peers:
            with contextlib.suppress(OSError):
                s.sendall(head(world, "mallory", "/v1/requests", f"Content-Length: {8 * MIB}"))
                s.settimeout(0.2)
                s.sendall(b"x" * (8 * MIB - 1))
        assert world.memory() - before < 320 * MIB  # 256 MiB for all bodies, of which one user gets half
        large = described(Note='"' + "y" * 1000000 + '"')
        status, said = world.as_user("alice", "POST", "/v1/requests?dry_run=1", large)
        assert status == 200, said
        status, said = world.as_user("mallory", "GET", "/v1/requests")
        assert status == 200, said

    def gone():
        """their descriptors are free"""
        return world.descriptors() <= files + 4

    wait_until(gone)
    status, said = world.as_user("mallory", "POST", "/v1/requests?dry_run=1", large)
    assert status == 200, said


def test_half_closed_connections(world):
    """Who says no more than half and closes this way, or both, holds nothing."""
    files = world.descriptors()
    whole = head(world, "mallory", "/v1/requests", "Content-Length: 100")
    with many(90, world.tls) as peers:
        for i, s in enumerate(peers):
            s.sendall((whole[:40], whole, whole + b"{")[i % 3])
            socket.socket.shutdown(s, socket.SHUT_WR)

        def gone():
            """the server has closed them, too"""
            return world.descriptors() <= files + 4

        wait_until(gone)
    wait = f"/v1/wait?ids={world.as_user('mallory', 'POST', '/v1/requests', described())[1]['id']}&timeout_ms=300000"
    with many(30, world.tls) as peers:
        for s in peers:
            s.sendall(head(world, "mallory", wait, method="GET"))
    wait_until(gone)


# ---- with a token: what is never read ------------------------------------------------------------------------------------


def test_answers_that_nobody_reads(world):
    """Long polls, feeds and listings by the hundred, of which no byte is read: others are served, and memory is bounded."""
    body = {**described(Note='"' + "z" * 400 + '"'), "parts": [{"attributes": {"Cmd": '"x"', "Note": '"' + "z" * 400 + '"'}, "steps": 20000}]}
    status, said = world.as_user("mallory", "POST", "/v1/requests", body)
    assert status == 201, said
    paths = [f"/v1/jobs?id={said['id']}&attributes=*&limit=20000", f"/v1/wait?ids={said['id']}&timeout_ms=300000",
             "/v1/events?after=0&limit=10000&timeout_ms=300000", "/v1/events?after=999999999&timeout_ms=300000"]
    before, files = world.memory(), world.descriptors()
    with many(120, world.tls) as peers:
        for i, s in enumerate(peers):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(head(world, "mallory", paths[i % 4], method="GET") * 20)
        for _ in range(5):
            assert world.as_user("alice", "GET", "/v1/server")[0] == 200
            assert world.as_user("alice", "POST", "/v1/requests?dry_run=1", described())[0] == 200
        status, listing = world.as_user("alice", "GET", "/v1/jobs?all=1&limit=1000")
        assert status == 200 and all(job["request"] != said["id"] for job in listing["jobs"])
        assert world.memory() - before < 192 * MIB

    def gone():
        """their descriptors are free"""
        return world.descriptors() <= files + 4

    wait_until(gone)
    assert world.as_user("mallory", "POST", "/v1/actions", {"action": "remove", "ids": [str(said["id"])]})[1]["affected"] == 20000


def test_listings_that_are_read_in_part(world):
    """A client that stops in a listing keeps what waits to be sent to it in memory, and not the rows that this was made from."""
    body = {**described(), "parts": [{"attributes": {"Cmd": '"x"', "Large": '"' + "z" * (MIB - 100) + '"'}, "steps": 60}]}
    status, said = world.as_user("mallory", "POST", "/v1/requests", body)
    assert status == 201, said

    def asked():
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(LIMIT)
        s.connect(os.path.join(world.dir, "api.sock"))
        s.sendall(f"GET /v1/jobs?id={said['id']}&attributes=Large HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        left = 2 * MIB - 300 * KIB
        while left > 0:
            left -= len(s.recv(min(left, 65536)))
        return s

    before = world.memory()
    with many(12, asked):
        assert (world.memory() - before) / MIB < 12 * 1.2
    assert world.as_user("mallory", "POST", "/v1/actions", {"action": "remove", "ids": [str(said["id"])]})[1]["affected"] == 60


def test_a_listing_of_long_names(world):
    """A slice of a listing of requests ends by its size, whatever their names' is."""
    body = {**described(), "hold": True, "parts": [{"attributes": {"Cmd": '"x"', "JobBatchName": '"' + "z" * (MIB - 100) + '"'}}]}
    numbers = [world.as_user("mallory", "POST", "/v1/requests", {**body, "uuid": str(uuid.uuid4())})[1]["id"] for _ in range(20)]
    raw = b""
    with world.tls() as s:
        s.sendall(head(world, "mallory", "/v1/requests", method="GET"))
        while b"\r\n" not in raw.partition(b"\r\n\r\n")[2]:
            raw += s.recv(1000)
            assert b"Content-Length" not in raw
    assert int(raw.partition(b"\r\n\r\n")[2].partition(b"\r\n")[0], 16) < 4 * MIB, raw[:300]
    assert world.as_user("mallory", "POST", "/v1/actions", {"action": "remove", "ids": [str(n) for n in numbers]})[1]["affected"] == 20


@contextlib.contextmanager
def all_waits(world):
    """Mallory has as many waiting calls as one user may, for two hundred requests each: the connections, and such a call."""
    numbers = []
    with world.tls() as s:
        for _ in range(200):
            body = json.dumps(described()).encode()
            s.sendall(head(world, "mallory", "/v1/requests", f"Content-Length: {len(body)}") + body)
            numbers.append(answer(s.recv(65536))[1]["id"])
    wait = f"/v1/wait?ids={','.join(map(str, numbers))}"
    seen = world.as_user("mallory", "GET", f"{wait}&timeout_ms=0")[1]["seen"]
    wait += f"&timeout_ms=300000&seen={seen}"

    def waiting():
        s = world.tls()
        s.sendall(head(world, "mallory", wait, method="GET"))
        return s

    with many(60, waiting) as peers:
        yield peers, wait
    assert world.as_user("mallory", "POST", "/v1/actions", {"action": "remove", "ids": [str(n) for n in numbers]})[1]["affected"] == 200


def test_waits_for_many_requests(world):
    """Each request that a waiting call names counts: each change of one of them is looked at for every call. Others wait as before."""
    with all_waits(world) as (peers, wait):
        assert world.as_user("mallory", "GET", wait)[0] == 503
        assert not closed(peers[0])
        hers = world.as_user("alice", "POST", "/v1/requests", described())[1]["id"]
        assert world.as_user("alice", "GET", f"/v1/wait?ids={hers}&timeout_ms=100&seen=0.0.1.0.0.0")[0] == 200


def test_scripts_that_nobody_waits_for(world):
    """A question about a script is forgotten with a call that may not wait: others' questions have room, however many such calls there are."""
    agent = Liar(world, "scripts", "--owners", "any")
    agent.hello()
    agent.offer()
    his, hers = (world.as_user(who, "POST", "/v1/requests", {**described(), "hold": False})[1]["id"] for who in ("mallory", "alice"))
    agent.take(his)
    with all_waits(world), world.tls() as s:
        for _ in range(1100):
            s.sendall(head(world, "mallory", f"/v1/jobs/{his}.0/script", method="GET"))
            assert answer(s.recv(65536))[0] in (409, 503)
    with world.tls() as s:
        s.sendall(head(world, "alice", f"/v1/jobs/{hers}.0/script", "Connection: close", method="GET"))
        question = agent.wire.until("script_get", where=lambda m: m["request"] == hers)
        agent.wire.send(script={"serial": question["serial"], "text": "#!/bin/sh\n"})
        status, got = answer(everything(s))
    assert (status, got["script"]) == (200, "#!/bin/sh\n")


def long_text():
    """A submit file of 64 kB that is read for a second: nine thousand kinds of jobs."""
    return b'executable = /bin/true\ntransfer_executable = false\n+A = "' + b"a" * 3000 + b'"\n' + b"queue\n" * 9000


def test_many_submit_files_of_one_user(world):
    """Twenty that each take long to read, at once: another user's history, that is read behind them, waits for few of them."""
    body = long_text()
    with many(20, world.tls) as peers:
        for s in peers:
            s.sendall(head(world, "trudy", "/v1/requests?dry_run=1", "Content-Type: text/plain", f"Content-Length: {len(body)}") + body)
        assert world.as_user("alice", "GET", "/v1/history?limit=10")[0] == 200
        assert len(select.select(peers, [], [], 0)[0]) < 10


def test_a_query_of_thousands_of_patterns(world):
    """Four thousand files with long values, and a query that takes long for each: it is refused, and others' are answered."""
    files = [{"name": f"f{i}", "metadata": {"v": f"{i}" + "a" * 1000}} for i in range(4096)]
    assert world.call("POST", "/v1/catalog/files", json.dumps({"files": files}).encode())[0] == 200
    condition = "v!=" + "||".join(["*b"] * 950)
    with world.tls() as s:
        s.sendall(head(world, "mallory", "/v1/server", method="GET"))
        assert answer(s.recv(65536))[0] == 200  # who is known may send a longer head
        s.sendall(head(world, "mallory", "/v1/catalog/files?query=" + ",".join([condition] * 4), "Connection: close", method="GET"))
        status, said = answer(everything(s))
    assert status == 400 and "takes too long" in said["error"]["message"]
    assert world.as_user("alice", "GET", "/v1/catalog/files?query=v=*a&limit=1")[0] == 200


def test_pages_of_datasets_with_long_queries(world):
    """A page ends with its bytes, and the next one goes on."""
    query = "v=" + "||".join(["a" * 60] * 900)
    for i in range(100):
        assert world.call("PUT", f"/v1/catalog/datasets/d{i:03}", json.dumps({"query": query}).encode())[0] == 200
    names, after, pages = [], "", 0
    while after is not None:
        status, said = world.as_user("mallory", "GET", f"/v1/catalog/datasets?after={after}")
        assert status == 200 and sum(len(d["query"]) for d in said["datasets"]) < 6 * MIB
        names += [d["name"] for d in said["datasets"]]
        after, pages = said["next"], pages + 1
    assert names == [f"d{i:03}" for i in range(100)] and pages > 1
    for name in names:
        assert world.call("DELETE", f"/v1/catalog/datasets/{name}")[0] == 200


# ---- with a token: uploads ------------------------------------------------------------------------------------------------


def test_unfinished_uploads(world):
    """Begun and left, by the hundred: they count as what he has, so that his share is the end of it, and no one else's."""
    sent, status = 0, 201
    while status == 201 and sent < 2000:
        status, said = world.as_user("mallory", "POST", "/v1/uploads")
        sent += 1
        if status == 201 and sent <= 3:
            status = world.as_user("mallory", "PUT", f"/v1/uploads/{said['id']}?offset=0", b"u" * MIB)[0]
            assert status == 200
            status = 201
    assert (status, said["error"]["code"]) == (507, "over_limit") and sent < 700
    assert "max_spool" in said["error"]["message"]
    mine = world.as_user("alice", "POST", "/v1/uploads")
    assert mine[0] == 201
    assert world.as_user("alice", "PUT", f"/v1/uploads/{mine[1]['id']}?offset=0", b"a" * MIB)[0] == 200


def test_items_are_read_once_for_all(world):
    """One upload that is the items of two thousand parts would be two thousand times its size in memory."""
    upload = world.as_user("alice", "POST", "/v1/uploads")[1]["id"]
    piece = (b"i" * 1023 + b"\n") * 1024
    for offset in range(0, 8 * MIB, MIB):
        assert world.as_user("alice", "PUT", f"/v1/uploads/{upload}?offset={offset}", piece)[0] == 200
    assert world.as_user("alice", "POST", f"/v1/uploads/{upload}/finish", {})[0] == 200
    before = world.memory()
    part = {"attributes": {"Cmd": '"x"'}, "variables": ["x"], "items_upload": upload}
    status, said = world.as_user("alice", "POST", "/v1/requests?dry_run=1", {"uuid": str(uuid.uuid4()), "parts": [part] * 2000})
    assert (status, said["error"]["code"]) == (413, "too_large")
    assert world.memory() - before < 400 * MIB
