"""drover-mover by hand, against real servers and one that fails as it is told to."""
import contextlib
import hashlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading

import pytest
from drover import free_port, wait_until
from guarded import Authority, Guarded, Sftp
from stores import Faulty, Ftp, Nginx


class Mover:
    def __init__(self, build, folder):
        self.program, self.folder = os.path.join(build, "bin", "drover-mover"), str(folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *args, ok=True):
        p = subprocess.run([self.program, "--retry", "10", *args], capture_output=True, text=True, timeout=90, check=False)
        assert (p.returncode == 0) == ok, p.stderr
        return json.loads(p.stdout.splitlines()[-1]), p.stderr

    def get(self, url, *options, ok=True):
        return self.run(*options, "get", url, self.path("got"), ok=ok)

    def got(self):
        with open(self.path("got"), "rb") as f:
            return f.read()

    def put(self, data, url, *options, ok=True):
        with open(self.path("sent"), "wb") as f:
            f.write(data)
        return self.run(*options, "put", self.path("sent"), url, ok=ok)


@pytest.fixture
def mover(build, tmp_path):
    return Mover(build, tmp_path)


@pytest.fixture
def nginx(tmp_path):
    server = Nginx(str(tmp_path / "nginx"))
    try:
        yield server.wait()
    finally:
        server.stop()


@pytest.fixture
def ftp(tmp_path_factory):
    server = Ftp(str(tmp_path_factory.mktemp("ftp")))
    try:
        yield server.wait()
    finally:
        server.stop()


@pytest.fixture
def faulty():
    server = Faulty(bytes(range(256)) * 4096)
    try:
        yield server
    finally:
        server.stop()


def test_webdav_both_ways(mover, nginx):
    data = os.urandom(300000)
    answer, _ = mover.put(data, nginx.url + "new/folder/file")  # MKCOL makes what is missing
    assert answer["ok"] and answer["size"] == len(data)
    assert nginx.read("new/folder/file") == data
    answer, _ = mover.get(nginx.url + "new/folder/file", "--sha256", hashlib.sha256(data).hexdigest())
    assert mover.got() == data and answer["tries"] == 1 and answer["etag"]
    answer, _ = mover.run("probe", nginx.url)
    assert answer["ok"] and answer["latency_us"] > 0
    assert answer["bytes_moved"] == 0


class Ranges:
    """A server of one file that knows ranges, and changes it after some of them, cuts one off, or ignores them all. It shrinks the file when
    others have got pieces of it before the first, heeds no If-Range (blind), or sends another range than the one asked for (beside)."""

    def __init__(self, data, change_after=0, cut=0, ignores=False, shrinks=False, blind=False, beside=False):
        self.data, self.etag, self.ranges, lock = data, '"one"', 0, threading.Lock()
        sent = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                if shrinks and self.headers.get("Range", "").startswith("bytes=0-"):
                    sent.wait(20)
                    outer.data, outer.etag = data[:1 << 20], '"two"'
                with lock:
                    asked = self.headers.get("Range")
                    outer.ranges += asked is not None
                    number = outer.ranges if asked else 0
                    if change_after and number == change_after:
                        outer.data, outer.etag = outer.data[::-1], '"two"'
                    body, etag = outer.data, outer.etag
                first, last = 0, len(body) - 1
                same = asked and not ignores and (blind or self.headers.get("If-Range") == etag)
                if same:
                    first, _, end = asked.removeprefix("bytes=").partition("-")
                    first, last = int(first), int(end or last)
                    if beside and first:
                        first, last = first - 1, last - 1
                self.send_response(206 if same else 200)
                self.send_header("ETag", etag)
                if same and beside:
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
                self.send_header("Content-Length", str(last + 1 - first))
                self.end_headers()
                piece = body[first:last + 1] if self.command == "GET" else b""
                with contextlib.suppress(OSError):
                    self.wfile.write(piece[:len(piece) // 2] if cut and number == cut else piece)
                if first:
                    sent.set()
                self.close_connection = bool(cut and number == cut)

            do_HEAD = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/file"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.mark.parametrize("how", [{}, {"change_after": 4}, {"cut": 3}, {"cut": 6}, {"ignores": True}, {"shrinks": True},
                                 {"change_after": 4, "blind": True}])
def test_a_file_over_several_connections(mover, how):
    """In blocks, of one version; what has come without a gap is gone on with."""
    server = Ranges(os.urandom(30 << 20), **how)
    try:
        answer, _ = mover.get(server.url, "--tune", f"{server.url} streams=3")
        assert mover.got() == server.data and answer["sha256"] == hashlib.sha256(server.data).hexdigest()
        assert server.ranges >= (1 if "ignores" in how or "shrinks" in how else 4)
        assert answer["tries"] in ((1, 2) if "change_after" in how else (2,) if "cut" in how else (1,))
    finally:
        server.stop()


def test_another_range_than_the_one_asked_for_is_not_taken(mover):
    server = Ranges(os.urandom(20 << 20), beside=True)
    try:
        _, text = mover.get(server.url, "--tries", "3", "--tune", f"{server.url} streams=3", ok=False)
        assert "changed" in text and not os.path.exists(mover.path("got"))
    finally:
        server.stop()


class Crowded(http.server.BaseHTTPRequestHandler):
    """A WebDAV server on which somebody else makes the missing folder just before the sender does."""
    protocol_version = "HTTP/1.1"
    puts = 0

    def log_message(self, *args):
        pass

    def answer(self, code, size=0):
        self.send_response(code)
        self.send_header("Content-Length", str(size))
        self.end_headers()

    def do_PUT(self):
        Crowded.puts += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(409 if Crowded.puts == 1 else 201)

    def do_MKCOL(self):
        self.answer(405)

    def do_HEAD(self):
        self.answer(200, 5)


@contextlib.contextmanager
def serving(handler):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def test_a_folder_that_another_makes_at_the_same_time(mover):
    with serving(Crowded) as url:
        answer, _ = mover.put(b"12345", url + "new/file")
        assert answer["ok"] and Crowded.puts == 2


class Locked(Crowded):
    """It takes files, and does not rename them: what is wrong is in the body of its answer (RFC 4918, 9.9.4)."""
    there = False

    def do_PUT(self):
        Locked.there = True
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201)

    def do_MOVE(self):
        self.answer(207 if Locked.there else 404)

    def do_DELETE(self):
        self.answer(204)


def test_a_file_that_is_not_renamed_is_not_moved(mover):
    with open(mover.path("sent"), "wb") as f:
        f.write(b"12345")
    with serving(Locked) as url:
        answer, text = mover.run("place", "transfer", f"file://{mover.path('sent')}", url + "file", "tries=1", ok=False)
        assert not answer["ok"] and "HTTP 207" in text


def test_what_is_not_there_is_not_asked_for_again(mover, nginx):
    _, text = mover.get(nginx.url + "nothing", ok=False)
    assert "it is not there (HTTP 404)" in text
    wait_until(lambda: nginx.requests("GET"))  # its log has a request after the answer
    assert len(nginx.requests("GET")) == 1
    _, text = mover.get(nginx.base + "forbidden/x", ok=False)
    assert "does not allow it (HTTP 403)" in text
    _, text = mover.get(nginx.base + "busy/x", "--tries", "2", ok=False)
    assert "HTTP 503" in text and "tried 2 times" in text
    assert not os.path.exists(mover.path("got"))
    assert [n for n in os.listdir(mover.folder) if n.endswith(".tmp")] == []


def test_an_ftp_upload_is_seen_when_it_is_whole(mover, ftp):
    data = os.urandom(200000)
    mover.put(data, ftp.url + "sub/file")
    assert os.listdir(os.path.join(ftp.data, "sub")) == ["file"]
    with open(os.path.join(ftp.data, "sub", "file"), "rb") as f:
        assert f.read() == data
    answer, _ = mover.get(ftp.url + "sub/file")
    assert mover.got() == data and answer["modified"] > 1600000000
    _, text = mover.get(ftp.url + "nothing", ok=False)
    assert "cannot fetch" in text and "tried" not in text


def test_ftps(mover, tmp_path_factory):
    """As FTP, to a server whose certificate is looked at."""
    folder = tmp_path_factory.mktemp("ftps")
    authority = Authority(str(folder / "authority"))
    server = Ftp(str(folder / "ftp"), authority.issue("ftps"))
    try:
        server.wait()
        data = os.urandom(200000)
        # On a busy machine the server now and then answers 426 to a connection that was closed in order.
        mover.put(data, server.url + "sub/file", "--ca", authority.file, "--retry", "500")
        mover.get(server.url + "sub/file", "--ca", authority.file)
        assert mover.got() == data and os.listdir(os.path.join(server.data, "sub")) == ["file"]
        _, text = mover.get(server.url + "sub/file", ok=False)
        assert "certificate" in text and "tried" not in text
    finally:
        server.stop()


def test_sftp(mover, tmp_path):
    """To a server that is known, for who has a key of its user."""
    server = Sftp(str(tmp_path / "ssh"))
    try:
        server.wait()
        with open(mover.path("known"), "w", encoding="ascii") as f:
            f.write(server.known_host)
        known, key = ("--known-hosts", mover.path("known")), ("--credential", f"file={server.key}")
        data = os.urandom(200000)
        for _ in range(2):  # the second time in place of the first
            mover.put(data, server.url + "sub/file", *known, *key)
        answer, _ = mover.get(server.url + "sub/file", *known, *key)
        assert mover.got() == data and os.listdir(os.path.join(server.data, "sub")) == ["file"]
        assert answer["modified"] > 1600000000
        _, text = mover.get(server.url + "nothing", *known, *key, ok=False)
        assert "cannot fetch" in text and "tried" not in text
        _, text = mover.get(server.url + "sub/file", *known, "--credential", f"file={server.stranger}", ok=False)
        assert "denied" in text and "tried" not in text
        for name in ("few", "others"):
            os.mkdir(os.path.join(server.data, name))
        for i in range(30):
            with open(os.path.join(server.data, "few", str(i)), "w", encoding="ascii") as f:
                f.write("x" * i)

        def keys():
            with open(os.path.join(server.folder, "server.log"), encoding="utf-8", errors="replace") as f:
                return f.read().count("Accepted publickey")

        host, before = server.url[:-len(server.data) - 1], keys()
        shown = [f"credential=file\t{k}\t{host.replace('root@', '')}{server.data}/{n}/" for n, k in (("few", server.key), ("others", server.stranger))]
        mover.run(*known, "--tune", "sftp:// streams=1", "place", "transfer", server.url + "few/", f"file://{mover.folder}/few/", shown[0])
        assert len(os.listdir(mover.path("few"))) == 30 and keys() < before + 5  # its connections are kept
        _, text = mover.run(*known, "--tune", "sftp:// streams=1", "place", "transfer", server.url + "few/", server.url + "others/", *shown,
                            "tries=1", ok=False)  # but for who has the same key
        assert "denied" in text and os.listdir(os.path.join(server.data, "others")) == []
        open(mover.path("known"), "w", encoding="ascii").close()
        _, text = mover.get(server.url + "sub/file", *known, *key, ok=False)
        assert "remote key was not OK" in text and "tried" not in text
    finally:
        server.stop()


def test_https_with_a_token(mover, tmp_path):
    authority = Authority(str(tmp_path / "authority"))
    server = Guarded(str(tmp_path / "guarded"), authority)
    try:
        server.wait()
        for name, text in (("token", "good\n"), ("wrong", "bad")):
            with open(mover.path(name), "w", encoding="ascii") as f:
                f.write(text)
        token, ca = ("--credential", f"token={mover.path('token')}"), ("--ca", authority.file)
        mover.put(b"by token", server.url + "new/file", *token, *ca)
        mover.get(server.url + "new/file", *token, *ca)
        assert mover.got() == b"by token"
        _, text = mover.get(server.url + "new/file", "--credential", f"token={mover.path('wrong')}", *ca, ok=False)
        assert "(HTTP 401), shown the token" in text
        _, text = mover.get("http://127.0.0.1/x", *token, ok=False)
        assert "of no use for http://" in text
        assert {r[4] for r in server.requests()} == {"Bearer good", "Bearer bad"}
    finally:
        server.stop()


def test_a_piece_is_gone_on_with(mover, faulty):
    faulty.faults = ["cut", "503", "cut"]
    answer, _ = mover.get(faulty.url)
    half = len(faulty.data) // 2
    assert answer["sha256"] == faulty.sum() and mover.got() == faulty.data
    assert answer["tries"] == 4 and answer["bytes_moved"] == len(faulty.data)  # nothing came twice
    assert faulty.seen == [("GET", None), ("GET", f"bytes={half}-"), ("GET", f"bytes={half}-"),
                           ("GET", f"bytes={half + half // 2}-")]


def test_a_piece_of_another_version_is_not(mover, faulty):
    faulty.faults = ["cut", "change"]
    answer, _ = mover.get(faulty.url)
    assert mover.got() == faulty.data and answer["sha256"] == faulty.sum() and answer["tries"] == 2


def test_checksums_are_compared(mover, faulty):
    faulty.faults = ["lie"] * 2
    _, text = mover.get(faulty.url, "--tries", "2", ok=False)
    assert "the checksum that the store names" in text
    answer, _ = mover.get(faulty.url, "--sha256", faulty.sum())
    assert answer["ok"]
    _, text = mover.get(faulty.url, "--sha256", "0" * 64, "--tries", "2", ok=False)
    assert "the checksum that it should have" in text


def test_nobody_listens(mover):
    _, text = mover.get(f"http://127.0.0.1:{free_port()}/x", "--tries", "2", ok=False)
    assert "connect" in text and "tried 2 times" in text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_wants_a_certificate_is_there(mover, tmp_path, version):
    """It ends what comes without one, each version of TLS at another moment; but it has answered."""
    authority = Authority(str(tmp_path / "authority"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("localhost"))
    context.load_verify_locations(authority.file)
    context.verify_mode, context.minimum_version, context.maximum_version = ssl.CERT_REQUIRED, version, version
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def turn_away():
            connection, _ = listener.accept()
            with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True):
                pass

        thread = threading.Thread(target=turn_away)
        thread.start()
        answer, _ = mover.run("--ca", authority.file, "--tries", "1", "probe", f"https://127.0.0.1:{listener.getsockname()[1]}/")
        thread.join()
    assert answer["ok"] and answer["latency_us"] > 0


def test_programs_for_other_schemes(mover):
    helper = os.path.join(os.path.dirname(__file__), "..", "..", "src", "move", "test_mover.py")
    with open(mover.path("there"), "wb") as f:
        f.write(b"by a program")
    answer, _ = mover.get(f"copy://{mover.path('there')}", "--exec", f"copy={os.path.abspath(helper)}")
    assert mover.got() == b"by a program" and answer["ok"]
    _, text = mover.get("rfio://somewhere/x", ok=False)
    assert "knows the scheme rfio" in text


class Lost(Crowded):
    """Its answer to the first rename of a file is lost."""
    puts, moves, deleted, silent = 0, 0, [], threading.Event()

    def do_PUT(self):
        Lost.puts += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201)

    def do_MOVE(self):
        Lost.moves += Lost.puts > 0
        if Lost.moves == 1:
            Lost.silent.wait(20)
            self.close_connection = True
        else:
            self.answer(201 if Lost.puts else 404)

    def do_DELETE(self):
        Lost.deleted.append(self.path)
        self.answer(204)


def test_a_file_whose_rename_was_not_answered_is_not_removed(mover):
    with open(mover.path("sent"), "wb") as f:
        f.write(b"12345")
    with serving(Lost) as url:
        answer, _ = mover.run("--stall", "1", "place", "transfer", f"file://{mover.path('sent')}", url + "file", "tries=2")
        Lost.silent.set()
        assert answer["ok"] and "/file" not in Lost.deleted, (answer, Lost.deleted)


def test_a_disk_that_takes_long_to_write(build, mover, monkeypatch):
    """A process that waits for it shows signs of life, and is not taken for one that hangs."""
    for name in ("a", "b"):
        os.makedirs(mover.path("from"), exist_ok=True)
        with open(os.path.join(mover.path("from"), name), "wb") as f:
            f.write(os.urandom(2 << 20))
    with open(mover.path("rules"), "w", encoding="utf-8") as f:
        f.write("slow 4 /to/\n")
    monkeypatch.setenv("LD_PRELOAD", os.path.join(build, "tests/conform/libfailing_disk.so"))
    monkeypatch.setenv("FAILING_DISK", mover.path("rules"))
    answer, _ = mover.run("--stall", "1", "place", "transfer", f"file://{mover.path('from')}/", f"file://{mover.path('to')}/")
    assert answer["files"] == 2 and answer["tries"] == 2 and answer["took_ms"] < 8000


def test_names_are_on_the_disk_too(build, mover, monkeypatch):
    """Of files that count as moved: a machine that loses power then has not lost them."""
    os.mkdir(mover.path("from"))
    for name in ("a", "b"):
        with open(os.path.join(mover.path("from"), name), "wb") as f:
            f.write(b"12345")
    with open(mover.path("rules"), "w", encoding="utf-8") as f:
        f.write("fsync 5 /to$\n")
    monkeypatch.setenv("LD_PRELOAD", os.path.join(build, "tests/conform/libfailing_disk.so"))
    monkeypatch.setenv("FAILING_DISK", mover.path("rules"))
    for source, target in (("from/", "to/"), ("from/a", "to/a")):
        _, text = mover.run("place", "transfer", f"file://{mover.path(source)}", f"file://{mover.path(target)}", "tries=1", ok=False)
        assert "Input/output error" in text
    _, text = mover.run("--tries", "1", "put", mover.path("from/a"), f"file://{mover.path('to')}/a", ok=False)
    assert "Input/output error" in text


@pytest.fixture
def disk(mover):
    """A small file system."""
    disk = mover.path("disk")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def test_several_connections_leave_room_to_others(mover, disk):
    server = Ranges(bytes(80 << 20))
    try:
        answer, text = mover.run("--tries", "1", "--tune", f"{server.url} streams=3", "get", server.url, os.path.join(disk, "f"), ok=False)
        assert "No space left" in text and answer["bytes_moved"] < 63.6 * (1 << 20)
    finally:
        server.stop()


def test_a_body_without_end_leaves_room_to_others(mover, disk):
    """What is sent without a size, and without an end, is given up before the disk is full."""
    listener = socket.create_server(("127.0.0.1", 0))
    room = []

    def send():
        peer, _ = listener.accept()
        peer.recv(65536)
        try:
            peer.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while True:
                peer.sendall(b"x" * 65536)
                at = os.statvfs(disk)
                room.append(at.f_bavail * at.f_frsize)
        except OSError:
            peer.close()

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        said = mover.run("--tries", "1", "get", f"http://127.0.0.1:{listener.getsockname()[1]}/f", os.path.join(disk, "f"), ok=False)[1]
        sender.join(90)
        assert "No space left" in said and min(room) > 500000, (said, min(room))
    finally:
        listener.close()
