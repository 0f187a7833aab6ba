"""Placement jobs: transfers between stores, and what else is done at a URL, as jobs that an agent's mover does."""
import contextlib
import hashlib
import json
import os
import pty
import random
import signal
import subprocess
import tempfile
import uuid

import agents
import pytest
from drover import alive, all_pids, free_port, parent, sh, wait_until
from guarded import Authority, Grid, Guarded
from stores import Faulty, Ftp, Nginx, Web
from users import ONE, TWO, Site, as_user, domain

QUICK = "transfer_retry: 20ms\nplacements: 4\nkill_grace: 1s\n"


def data(src, dest=None, **more):
    """A submit file of a placement job."""
    lines = ["universe = data", f"src_url = {src}"] + ([f"dest_url = {dest}"] if dest else [])
    return "\n".join(lines + [f"{k} = {v}" for k, v in more.items()] + ["queue", ""])


@contextlib.contextmanager
def served(server):
    try:
        yield server.wait()
    finally:
        server.stop()


def slow(folder):
    port = free_port()
    server = Web(os.path.join(folder, "slow"), "127.0.0.1", port, "$request_method $uri $status",
                 f"""server {{ listen 127.0.0.1:{port}; location /dav/ {{ limit_rate 2m; {{dav}} }} }}""")
    server.url = f"http://127.0.0.1:{port}/dav/"
    return server


@pytest.fixture
def folder():
    """Not below pytest's own folder, which each run of pytest closes to other users: the servers become users of their own."""
    with tempfile.TemporaryDirectory(prefix="drover-test-") as path:
        os.chmod(path, 0o755)
        yield path


@pytest.fixture
def web(folder):
    with served(Nginx(os.path.join(folder, "web"))) as one:
        yield one


@pytest.fixture
def other(folder):
    with served(Nginx(os.path.join(folder, "other"))) as one:
        yield one


@pytest.fixture
def ftp(folder):
    with served(Ftp(os.path.join(folder, "ftp"))) as one:
        yield one


@pytest.fixture
def one(instance):
    """An agent that tries again at once."""
    instance.server()
    instance.agent = agents.start(instance, QUICK)
    agents.offering(instance, "transfers")
    return instance


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def left(*folders):
    """Temporary files."""
    return [name for folder in folders for _, _, names in os.walk(folder) for name in names if "drover-" in name]


def report(instance, job):
    """What the mover has said at the end of this job."""
    return json.loads(instance.cli("tail", job, "-n", "1").strip().splitlines()[-1])


def progress(instance, request):
    """Bytes that the mover of its first job says it has moved."""
    lines = instance.cli("tail", f"{request}.0", "-n", "1", code=None).strip().splitlines()
    with contextlib.suppress(ValueError, IndexError):
        return json.loads(lines[-1])["bytes"]
    return 0


def children(pid):
    return [one for one in all_pids() if parent(one) == pid]


# ---- what is done


def test_between_stores(one, web, ftp, folder):
    """Any two protocols, there and back, with folders that are made."""
    bytes_ = os.urandom(3 << 20)
    way = [web.put("a", bytes_), ftp.url + "new/b", f"file://{folder}/new/deep/c", web.url + "x/y/d"]
    for src, dest in zip(way, way[1:]):
        request = one.submit(data(src, dest))
        one.wait(request)
        said = report(one, f"{request}.0")
        assert said["ok"] and said["bytes"] == len(bytes_) and said["sha256"] == hashlib.sha256(bytes_).hexdigest()
    assert web.read("x/y/d") == contents(os.path.join(ftp.data, "new/b")) == contents(f"{folder}/new/deep/c") == bytes_
    assert left(web.data, ftp.data, folder) == []


def test_an_empty_file_and_one_onto_another(one, web, other):
    request = one.submit(data(web.put("none", b""), other.put("there", b"before")))
    one.wait(request)
    assert other.read("there") == b""


def test_from_server_to_server(instance, folder):
    """XRootD copies from XRootD by itself; the same bytes go through the agent when its author wants that."""
    authority = Authority(os.path.join(folder, "authority"))
    with served(Grid(os.path.join(folder, "one"), authority)) as here, served(Grid(os.path.join(folder, "two"), authority)) as there:
        instance.server()
        agents.start(instance, QUICK + f"ca_file: {authority.file}\n")
        bytes_ = os.urandom(8 << 20)
        url = here.put("big", bytes_)
        for name, how, third in (("new/a", "auto", True), ("new/b", "never", False), ("new/a", "auto", True)):
            request = instance.submit(data(url, there.url + name, third_party=how))
            instance.wait(request)
            assert report(instance, f"{request}.0")["third_party"] is third
            assert there.read(name) == bytes_
        # with verify_copy = read what the servers say is compared with the bytes that are there
        sum_ = hashlib.sha256(bytes_).hexdigest()
        for name, more in (("own/a", {}), ("own/b", {"checksum": "sha256:" + sum_})):
            request = instance.submit(data(url, there.url + name, verify_copy="read", **more))
            instance.wait(request)
            said = report(instance, f"{request}.0")
            assert said["third_party"] and said["sha256"] == sum_ and there.read(name) == bytes_, said
        request = instance.submit(data(url, there.url + "own/wrong", verify_copy="read", checksum="md5:" + "0" * 32, max_retry=0))
        instance.wait(request, code=1)
        assert sorted(os.listdir(os.path.join(there.data, "own"))) == ["a", "b"]
        # a store that shows what has come so far of a file has nothing of one that is wrong
        request = instance.submit(data(url, there.url + "wrong", checksum="md5:" + "0" * 32, max_retry=0))
        instance.wait(request, code=1)
        assert not os.path.exists(os.path.join(there.data, "wrong")) and left(here.data, there.data) == []
        request = instance.submit(data(there.url + "new", dap_type="rm"))
        instance.wait(request, code=1)
        assert "it is a folder" in instance.cli("tail", f"{request}.0", "--stderr") and there.read("new/a") == bytes_


def test_what_is_done_at_a_url(one, web, ftp):
    sum_ = hashlib.sha256(b"contents").hexdigest()
    for store in (web, ftp):
        path = os.path.join(store.data, "f")
        url = web.put("f", b"contents") if store is web else store.url + "f"
        if store is ftp:
            one.wait(one.submit(data(web.url + "f", url)))
        one.wait(one.submit(data(url, dap_type="verify", checksum=f"sha256:{sum_}")))
        one.wait(one.submit(data(url, dap_type="verify", checksum="adler32:0", max_retry=0)), code=1)
        one.wait(one.submit(data(url, dap_type="stage")))
        one.wait(one.submit(data(store.url + "m/n", dap_type="mkdir")))
        assert os.path.isdir(os.path.join(store.data, "m", "n"))
        if store is ftp:
            for _ in range(2):  # also when it has gone
                one.wait(one.submit(data(url, dap_type="rm")))
            assert not os.path.exists(path)


def test_folders_and_patterns(one, web, ftp, folder):
    for name, text in (("a.txt", b"1"), ("b.txt", b"22"), ("c.dat", b"333"), ("sub/d e.txt", b"4444")):
        path = os.path.join(folder, "from", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(text)
    one.wait(one.submit(data(f"{folder}/from/*.txt", web.url + "some/")))
    assert sorted(os.listdir(os.path.join(web.data, "some"))) == ["a.txt", "b.txt"]
    one.wait(one.submit(data(f"{folder}/from/", ftp.url + "all/")))
    request = one.submit(data(ftp.url + "all/", f"{folder}/back/"))
    one.wait(request)
    assert contents(f"{folder}/back/sub/d e.txt") == b"4444" and contents(f"{folder}/back/c.dat") == b"333"
    assert report(one, f"{request}.0")["files"] == 4
    one.wait(one.submit(data(f"{folder}/from/*.none", web.url + "none/")), code=1)
    request = one.submit(data(f"{folder}/from/", web.url + "one"))
    one.wait(request, code=1)
    assert "write a slash" in one.cli("tail", f"{request}.0", "--stderr")


def many(folder, count, most=20000):
    """Files of various sizes, one of them large; returns their folder and their checksums."""
    dice, sums = random.Random(count), {}
    os.makedirs(f"{folder}/many/sub")
    for i in range(count):
        bytes_ = dice.randbytes(3 << 20 if i == 5 else dice.randrange(most))
        name = f"sub/{i}" if i % 7 == 0 else str(i)
        sums[name] = hashlib.sha256(bytes_).hexdigest()
        with open(f"{folder}/many/{name}", "wb") as f:
            f.write(bytes_)
    return f"{folder}/many/", sums


def sums_of(path):
    return {os.path.relpath(os.path.join(where, name), path): hashlib.sha256(contents(os.path.join(where, name))).hexdigest()
            for where, _, names in os.walk(path) for name in names}


def test_several_files_at_a_time(instance, web, ftp, folder):
    """As many as the agent's file says for the link, or as it finds out; one of them that is refused does not hinder the others."""
    instance.server()
    agents.start(instance, QUICK + f"tuning:\n  {web.url}: streams=3 block=64K buffer=1M\n")
    path, sums = many(folder, 200)
    request = instance.submit(data(path, web.url + "in/"))
    instance.wait(request)
    said = report(instance, f"{request}.0")
    assert said["streams"] == 3 and said["files"] == 200 and said["tried"] == [] and said["bytes"] > 3 << 20
    assert sums_of(os.path.join(web.data, "in")) == sums
    os.mkdir(os.path.join(ftp.data, "in"), 0o777)
    os.chmod(os.path.join(ftp.data, "in"), 0o777)
    os.mkdir(os.path.join(ftp.data, "in", "9"))  # where a file should go
    request = instance.submit(data(path, ftp.url + "in/", max_retry=0))
    instance.wait(request, code=1)
    assert "1 of 200 files: " in instance.cli("tail", f"{request}.0", "--stderr")
    assert sums_of(os.path.join(ftp.data, "in")) == {name: sum_ for name, sum_ in sums.items() if name != "9"}
    assert left(web.data, ftp.data) == []


def test_processes_that_move_files_are_killed(one, folder, other):
    """Those that move the files of one job: others go on with what they had, and no file is wrong or missing."""
    path, sums = many(folder, 300)
    request = one.submit(data(path, other.url + "in/"))

    def workers():
        return [pid for pid in one.pids("drover-mover") if parent(pid) in one.pids("drover-mover")]

    for number in range(4):
        wait_until(lambda n=number: one.job(f"{request}.0")["state"] == "completed" or
                   (workers() and sum(len(names) for _, _, names in os.walk(other.data)) > 30 * n))
        for pid in workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    one.wait(request)
    assert sums_of(os.path.join(other.data, "in")) == sums and report(one, f"{request}.0")["files"] == 300
    assert one.job(f"{request}.0")["starts"] == 1


# ---- the words for it


def test_command(one, web, other):
    bytes_ = os.urandom(1 << 20)
    url = web.put("f", bytes_)
    said = one.cli("transfer", "--wait", url, other.url + "g")
    assert "1 placement job" in said and "1M in " in said and other.read("g") == bytes_
    said = json.loads(one.cli("transfer", "--json", "--wait", "--verify", url, other.url + "h"))
    assert said["ok"] and said["report"]["sha256"] == hashlib.sha256(bytes_).hexdigest()
    one.write("local", "mine")
    one.cli("transfer", "--wait", "local", other.url + "sub/")
    assert other.read("sub/local") == b"mine"
    failed = one.cli("transfer", "--wait", web.url + "none", other.url + "none", code=1)
    assert "it is not there (HTTP 404)" in failed.err
    one.cli("transfer", "--wait", "--type", "rm", other.url + "g", other.url + "h")
    assert os.listdir(other.data) == ["sub"]
    for words in (["only"], ["a", "b", "no-folder"], ["--type", "buy", "x"], ["--timeout", "3", url, other.url]):
        one.cli("transfer", *words, code=2)


def test_a_list_is_one_request(one, web, other):
    lines = "".join(f"{web.put(f'in/{i}', b'%d' % i)} {other.url}out/{i}\n" for i in range(60))
    said = one.cli("transfer", "--wait", "--list", "-", stdin="# comment\n\n" + lines)
    assert "60 placement jobs" in said
    assert sorted(map(int, os.listdir(os.path.join(other.data, "out")))) == list(range(60))
    assert all(other.read(f"out/{i}") == b"%d" % i for i in range(60))
    assert "a line is SRC DEST" in one.cli("transfer", "--list", "-", stdin="a b c\n", code=2).err


def test_storks_ads(one, web, other):
    """As Stork's manual has them; also behind one another, with what is theirs alone."""
    one.write("stork", f"""# placed by hand
[ dap_type = "transfer"; src_url = "{web.put('a', b'1')}"; dest_url = "{other.url}a"; max_retry = 2; restart_in = "2 hours"; ]
[ dap_type = "transfer"; src_url = "{web.put('b', b'2')}"; dest_url = "{other.url}b"; max_retry = 2; restart_in = "2 hours"; ]
[
  Dap_Type = "mkdir";
  dest_url = "{other.url}made";
  Mine = 3 + 4;
]
""")
    request = one.json("submit", "stork")["id"]
    one.wait(str(request))
    assert other.read("a") == b"1" and other.read("b") == b"2" and os.path.isdir(os.path.join(other.data, "made"))
    ads = [one.cli("show", "--ad", f"{request}.{i}") for i in range(3)]
    assert "DapRestartIn = 7200" in ads[0] and "DapTries = 3" in ads[1] and "DapTries" not in ads[2] and "Mine = 3 + 4" in ads[2]
    for text, why in (('[ dap_type = "buy"; src_url = "x" ]', "is not known"), ('[ dap_type = "reserve"; src_url = "x" ]', "needs reserve_id"), ("[ dap_type = ", "bad:"),
                      ('[ src_url = "http://a/b" ]', "dest_url"), ('[ src_url = "http://a/b"; dest_url="http://c"; executable = "/bin/sh" ]', "executable"),
                      ('[ src_url = "http://a/b"; dest_url="http://c"; ] more', "behind ad 1")):
        one.write("bad", text)
        assert why in one.cli("submit", "bad", code=1).err


def test_words_that_are_wrong(instance):
    instance.server()
    for more, why in ((dict(dap_type="copy"), "is not known"), (dict(checksum="sha256:12"), "checksum"), (dict(restart_in="soon"), "is not a time"),
                      (dict(third_party="maybe"), "auto, never or always"), (dict(alt_protocols="http"), "pairs"), (dict(max_retry="-1"), "number")):
        instance.write("bad.sub", data("http://a/b", "http://c/d", **more))
        assert why in instance.cli("submit", "bad.sub", code=1).err
    instance.write("bad.sub", "universe = data\nsrc_url = http://a/b\nqueue\n")
    assert "needs dest_url" in instance.cli("submit", "bad.sub", code=1).err


def test_other_protocols_are_tried(one, web, other):
    url = web.put("f", b"by another way")
    one.wait(one.submit(data(url.replace("http:", "gsiftp:"), other.url + "a", alt_protocols="https-https, http-http", max_retry=0)))
    one.wait(one.submit(data(url.replace("http:", "any:"), other.url + "b", max_retry=0)))
    assert other.read("a") == other.read("b") == b"by another way"


def test_a_program_at_either_end(instance, web, other, folder):
    """A scheme that a program knows is an end like any other, also for more than what is kept on the way."""
    program = os.path.join(os.path.dirname(__file__), "..", "..", "src", "move", "test_mover.py")
    instance.server()
    agents.start(instance, QUICK + f"movers:\n  copy: {os.path.abspath(program)}\n")
    bytes_ = os.urandom(80 << 20)
    web.put("f", bytes_)
    instance.wait(instance.submit(data(web.url + "f", f"copy://{folder}/f")))
    assert contents(f"{folder}/f") == bytes_
    instance.wait(instance.submit(data(f"copy://{folder}/f", other.url + "g")))
    assert other.read("g") == bytes_
    for name, third in (("third", True), ("wrong", False)):  # of a wrong copy nothing is left, and the bytes go through here
        request = instance.submit(data(f"copy://{folder}/f", f"copy://{folder}/{name}"))
        instance.wait(request)
        assert report(instance, f"{request}.0")["third_party"] is third and contents(f"{folder}/{name}") == bytes_
    request = instance.submit(data(f"copy://{folder}/f", dap_type="rm"))  # it takes that for something else
    instance.wait(request, code=1)
    assert "does not know how to rm" in instance.cli("tail", f"{request}.0", "--stderr") and os.path.exists(f"{folder}/f")


def test_xrootd_by_its_own_protocol(instance, folder, ftp):
    authority = Authority(os.path.join(folder, "authority"))
    with served(Grid(os.path.join(folder, "grid"), authority)) as grid:
        instance.server()
        agents.start(instance, QUICK + "movers:\n  root: xrootd\n")
        bytes_ = os.urandom(5 << 20)
        grid.put("f", bytes_)
        instance.wait(instance.submit(data(grid.root + "f", ftp.url + "f")))
        instance.wait(instance.submit(data(ftp.url + "f", grid.root + "g")))
        assert grid.read("g") == contents(os.path.join(ftp.data, "f")) == bytes_
        for how in ("auto", "never"):  # XRootD copies from XRootD by itself
            request = instance.submit(data(grid.root + "f", f"{grid.root}new/{how}", third_party=how))
            instance.wait(request)
            assert report(instance, f"{request}.0")["third_party"] is (how == "auto") and grid.read(f"new/{how}") == bytes_
            instance.wait(instance.submit(data(f"{grid.root}new/{how}", dap_type="rm")))
        assert left(grid.data) == [] and os.listdir(os.path.join(grid.data, "new")) == []
        os.rmdir(os.path.join(grid.data, "new"))
        instance.wait(instance.submit(data(grid.root + "m/n", dap_type="mkdir")))
        for _ in range(2):
            instance.wait(instance.submit(data(grid.root + "g", dap_type="rm")))
        assert sorted(os.listdir(grid.data)) == ["f", "m"] and os.path.isdir(os.path.join(grid.data, "m", "n"))


def test_progress_on_a_terminal(one, folder, other):
    """How much of how much, how quick, and how long it will take."""
    with served(slow(folder)) as source:
        url = source.put("f", os.urandom(8 << 20))
        ours, theirs = pty.openpty()
        with subprocess.Popen([one.program("drover"), "transfer", "--wait", url, other.url + "f"], env=one.env, cwd=one.work,
                              stdout=subprocess.PIPE, stderr=theirs) as shown:
            os.close(theirs)
            text = b""
            with contextlib.suppress(OSError):  # the other end is closed
                while piece := os.read(ours, 4096):
                    text += piece
            assert shown.wait(90) == 0
        os.close(ours)
        assert b" of 8M, " in text and b"/s, " in text and b" left" in text


# ---- who does it


def test_no_processor_is_taken(instance, web, other):
    """Transfers run beside jobs that have every processor, and jobs beside transfers; at most so many at a time."""
    instance.server()
    agents.start(instance, "cpus: 1\nplacements: 2\n")
    agents.offering(instance, "transfers")
    full = instance.submit(sh("sleep 1000"))
    instance.wait_state(f"{full}.0", "running")
    instance.wait(instance.submit(data(web.put("f", b"1"), other.url + "f")))
    instance.cli("rm", str(full))
    hung = Faulty(b"never")
    try:
        hung.faults = ["hang"] * 10
        waits = instance.submit(data(hung.url, other.url + "$(Process)").replace("queue", "queue 5"))
        wait_until(lambda: len(instance.jobs(waits, "&state=running")) == 2)
        instance.run(sh("true"))
        assert len(instance.jobs(waits, "&state=running")) == 2 and len(instance.jobs(waits, "&state=idle")) == 3
        instance.cli("rm", str(waits))
        wait_until(lambda: not instance.jobs(waits, "&state=running"))
    finally:
        hung.stop()


STORES = """\
stores:
  here:
    urls: [{web}]
    concurrency: {reads}
  there:
    urls: [{other}]
    {into}
users: {{max_placements: {mine}}}
"""


@pytest.mark.parametrize("limit,reads,into,mine", [("store/here", 2, "concurrency_in: 9", 9), ("store_in/there", 9, "concurrency_in: 2", 9),
                                                   ("store_from/there/here", 9, "concurrency_from: {here: 2}", 9),
                                                   ("placing/root@local", 9, "concurrency_in: 9", 2)])
def test_so_many_at_a_time(instance, other, limit, reads, into, mine):
    """From a store, into one, from one into another, of a user; who waits is told for what."""
    hung = Faulty(b"never")
    try:
        hung.faults = ["hang"] * 20
        os.makedirs(instance.dir, mode=0o700, exist_ok=True)
        with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
            f.write(STORES.format(web=hung.url[:-4], other=other.url, reads=reads, into=into, mine=mine))
        instance.server()
        agents.start(instance, QUICK)
        agents.offering(instance, "transfers")
        waits = instance.submit(data(hung.url, other.url + "$(Process)").replace("queue", "queue 5"))
        wait_until(lambda: len(instance.jobs(waits, "&state=running")) == 2)
        instance.run(sh("true"))  # nobody else waits
        assert len(instance.jobs(waits, "&state=idle")) == 3
        idle = instance.jobs(waits, "&state=idle")[0]["id"]
        assert limit in instance.cli("why", idle)
        assert any(x["name"] == limit and x["used"] == 2 for x in instance.json("limits")["limits"])
        instance.cli("rm", str(waits))
    finally:
        hung.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_as_its_owner(instance, web):
    """By the API, at an agent of several users: what is written is its owner's, and what others may not read stays theirs."""
    site = Site(instance)
    site.agent(more=QUICK)

    def place(user, src, dest, code=0):
        attributes = {"DapType": "transfer", "SrcUrl": src, "TransferInput": src, "DestUrl": dest, "OutputDestination": dest,
                      "Cmd": "drover-mover", "FileSystemDomain": domain(), "Iwd": site.home(user), "ShouldTransferFiles": "YES"}
        body = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": {
            **{k: json.dumps(v) for k, v in attributes.items()}, "DapTries": "1", "Requirements": 'TARGET.Runner == "mover"'}}]}
        request = as_user(user, lambda: instance.api("POST", "/v1/requests", body))["id"]
        instance.wait(request, code=code)

    place(ONE, web.put("f", b"brought"), f"file://{site.home(ONE)}/sub/f")
    assert site.text(ONE, "sub/f") == "brought" and site.owner(ONE, "sub/f") == (ONE.pw_uid, ONE.pw_gid)
    place(TWO, f"file://{site.home(ONE)}/sub/f", web.url + "stolen", code=1)
    place(TWO, web.url + "f", f"file://{site.home(ONE)}/planted", code=1)
    place(ONE, f"file://{site.home(ONE)}/sub/f", web.url + "mine")
    assert web.read("mine") == b"brought" and sorted(os.listdir(web.data)) == ["f", "mine"]
    assert os.listdir(site.home(ONE)) == ["sub"]


def test_that_queue_runs_no_program_of_a_user(one):
    """Whatever is said to be the program of a placement job, the mover is what runs."""
    one.write("evil.sub", f"universe = data\ndap_type = rm\nsrc_url = file://{one.work}/none\n+Cmd = \"/bin/sh\"\n+Args = \"-c id\"\nqueue\n")
    request = one.json("submit", "evil.sub")["id"]
    one.wait(str(request))
    assert report(one, f"{request}.0")["op"] == "rm"
    waits = one.submit(sh("true", requirements='TARGET.Runner == "mover"'))
    why = one.json("why", f"{waits}.0")
    assert why["state"] == "idle"


def test_a_credential_is_shown_to_its_store_only(instance, folder, web):
    authority = Authority(os.path.join(folder, "authority"))
    with served(Guarded(os.path.join(folder, "guarded"), authority, ("s3cret-of-ann",))) as store:
        instance.server()
        agents.start(instance, QUICK + f"ca_file: {authority.file}\n")
        url = store.put("f", b"mine")
        instance.cli("credential", "add", "grid", "--type", "token", "--for", store.url, "-", stdin="s3cret-of-ann")
        request = instance.submit(data(url, web.url + "f", max_retry=0))
        instance.wait(request, code=1)
        assert "the store does not allow it" in instance.cli("tail", f"{request}.0", "--stderr")
        instance.wait(instance.submit(data(url, web.url + "f", credentials="grid")))
        instance.wait(instance.submit(data(web.url + "f", store.url + "g", credentials="grid")))
        assert web.read("f") == store.read("g") == b"mine"
        for path in (web.log, os.path.join(instance.base, "drover-agent.log")):
            assert b"s3cret" not in contents(path)


def test_a_program_sees_the_credential_of_its_url_only(instance, folder, web):
    spy = os.path.join(folder, "spy")
    with open(spy, "w", encoding="utf-8") as f:
        f.write(f"""#!/bin/sh
read line
(echo "$line"; env; cat "$BEARER_TOKEN_FILE") >>{folder}/seen 2>&1
echo '{{"event":"failed","text":"seen"}}'
""")
    os.chmod(spy, 0o755)
    instance.server()
    agents.start(instance, QUICK + f"movers:\n  spy: {spy}\n")
    instance.cli("credential", "add", "grid", "--type", "token", "--for", "spy://mine/", "-", stdin="s3cret-of-ann")
    for host, sees in (("others", False), ("mine", True)):
        request = instance.submit(data(f"spy://{host}/f", web.url + "f", credentials="grid", max_retry=0))
        instance.wait(request, code=1)
        seen = contents(f"{folder}/seen").decode()
        assert (f'spy://{host}/f' in seen) and ("s3cret-of-ann" in seen) is sees and "_CONDOR_CREDS" not in seen


def test_drovers_own_folder_goes_nowhere(drover, web, folder):
    for src in (f"file://{drover.dir}/server.json", f"file://{drover.dir}/"):
        drover.wait(drover.submit(data(src, web.url + "stolen/", max_retry=0)), code=None)
    found = {name for _, _, names in os.walk(web.data) for name in names}
    assert found <= {".drover_out.0", ".drover_out.1"}, "what is there is the job's own folder"
    url = web.put("f", b"planted")
    for dest in (f"file://{drover.dir}/planted", f"file://{drover.dir}/new/planted"):
        drover.wait(drover.submit(data(url, dest, max_retry=0)), code=1)
    drover.wait(drover.submit(data(f"file://{drover.dir}/server.json", dap_type="rm", max_retry=0)), code=None)
    drover.wait(drover.submit(data(f"file://{drover.dir}/made", dap_type="mkdir", max_retry=0)), code=None)
    assert os.path.exists(os.path.join(drover.dir, "server.json"))
    assert not {"planted", "new", "made"} & set(os.listdir(drover.dir))


def test_labels_go_with_the_data(instance, web, other):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"stores:\n  clinic:\n    urls: [{web.url}]\n    labels: [patient]\n  lab:\n    urls: [{other.url}]\n"
                "clearance:\n  patient:\n    agents: [n1]\n")
    instance.server()
    agents.start(instance, QUICK)
    instance.write("leak.sub", data(web.put("f", b"x"), other.url + "f"))
    assert "its inputs carry the label 'patient'" in instance.cli("submit", "leak.sub", code=1).err
    instance.wait(instance.submit(data(web.url + "f", web.url + "g")))
    assert web.read("g") == b"x" and os.listdir(other.data) == []


# ---- bad days


def test_a_wrong_checksum_leaves_nothing(one, web, other, ftp, folder):
    url = web.put("f", os.urandom(1 << 20))
    for dest in (other.url + "f", ftp.url + "f", f"file://{folder}/f"):
        request = one.submit(data(url, dest, checksum="md5:" + "0" * 32, max_retry=1))
        one.wait(request, code=1)
        assert "and should be 0000" in one.cli("tail", f"{request}.0", "--stderr")
    assert os.listdir(other.data) == os.listdir(ftp.data) == [] and not os.path.exists(f"{folder}/f")


def test_a_source_that_fails_lies_and_is_cut_off(one, other):
    source = Faulty(os.urandom(2 << 20))
    try:
        for fault in ("503", "cut", "lie", "change"):
            source.faults = [fault]
            one.wait(one.submit(data(source.url, other.url + fault)))
            assert other.read(fault) == source.data
        source.faults = ["hang"] * 2
        one.wait(one.submit(data(source.url, other.url + "slow", restart_in=1)))
        assert other.read("slow") == source.data and left(other.data) == []
        source.faults = ["503"] * 50
        request = one.submit(data(source.url, other.url + "never", max_retry=1))
        one.wait(request, code=1)
        assert one.job(f"{request}.0")["exit_code"] == 75 and not os.path.exists(os.path.join(other.data, "never"))
    finally:
        source.stop()


def test_the_server_at_the_end_is_killed_and_comes_back(one, web, other):
    bytes_ = os.urandom(1 << 20)
    url = web.put("f", bytes_)
    other.process.kill()
    other.process.wait()
    request = one.submit(data(url, other.url + "f", max_retry=1000))
    one.wait_state(f"{request}.0", "running")
    other.start()
    one.wait(request)
    assert other.read("f") == bytes_


def test_the_disk_at_the_end_is_full(one, web, folder):
    if os.geteuid() != 0:
        pytest.fail("a small disk is mounted: run this as root")
    small = os.path.join(folder, "small")
    os.mkdir(small)
    assert os.system(f"mount -t tmpfs -o size=1m none {small}") == 0
    try:
        request = one.submit(data(web.put("f", os.urandom(4 << 20)), f"file://{small}/f", max_retry=1))
        one.wait(request, code=1)
        assert "No space left on device" in one.cli("tail", f"{request}.0", "--stderr")
        assert os.listdir(small) == []
    finally:
        os.system(f"umount {small}")


def test_a_mover_that_dies_is_started_again(one, folder, other):
    with served(slow(folder)) as source:
        bytes_ = os.urandom(4 << 20)
        request = one.submit(data(source.put("f", bytes_), other.url + "f"))
        pid = wait_until(lambda: one.job(f"{request}.0").get("state") == "running" and one.pids("drover-mover") and max(
            one.pids("drover-mover")))
        for mover in one.pids("drover-mover"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(mover, signal.SIGKILL)
        wait_until(lambda: not alive(pid))
        one.wait(request)
        assert other.read("f") == bytes_ and left(other.data) == []


def test_an_agent_that_is_killed_loses_no_transfer(one, folder, other):
    """The mover goes on meanwhile, and how it ended is known."""
    with served(slow(folder)) as source:
        bytes_ = os.urandom(4 << 20)
        request = one.submit(data(source.put("f", bytes_), other.url + "f"))
        one.wait_state(f"{request}.0", "running")
        one.agent.kill()
        one.agent = agents.start(one, QUICK)
        one.wait(request)
        assert other.read("f") == bytes_ and one.job(f"{request}.0")["starts"] == 1
        with open(source.log, encoding="utf-8") as f:
            assert f.read().count("GET /dav/f 200") == 1


def test_a_store_that_is_killed_in_the_middle(one, folder, other):
    """Of what it gives, and of what it gets: the file is whole at the end, and had its name at no time before."""
    bytes_ = os.urandom(6 << 20)
    with served(slow(folder)) as source:
        url = source.put("f", bytes_)
        for victim in (source, other):
            request = one.submit(data(url, other.url + victim.argv[0] + str(victim.port), max_retry=1000))
            wait_until(lambda r=request: progress(one, r) > 1 << 20)
            victim.process.kill()
            victim.process.wait()
            assert not os.path.exists(os.path.join(other.data, victim.argv[0] + str(victim.port)))
            victim.start()
            victim.wait()
            one.wait(request)
            assert other.read(victim.argv[0] + str(victim.port)) == bytes_ and left(other.data) == []
            assert one.job(f"{request}.0")["starts"] == 1


def test_a_connection_that_stalls(instance, other):
    """Half of it comes, and then nothing: that attempt is given up, and the next one brings the file."""
    source = Faulty(os.urandom(2 << 20))
    try:
        instance.server()
        agents.start(instance, QUICK + "transfer_stall: 1s\n")
        source.faults = ["stall"]
        instance.wait(instance.submit(data(source.url, other.url + "f", third_party="never")))
        assert other.read("f") == source.data and left(other.data) == []
        assert len([how for how, _ in source.seen if how == "GET"]) == 2
    finally:
        source.stop()


def test_a_process_of_a_mover_that_hangs(instance, folder, other):
    """The one that fetches is stopped and says nothing any more: it is ended, and another one fetches."""
    instance.server()
    agents.start(instance, QUICK + "transfer_stall: 1s\n")
    with served(slow(folder)) as source:
        bytes_ = os.urandom(4 << 20)
        request = instance.submit(data(source.put("f", bytes_), other.url + "f"))
        wait_until(lambda: progress(instance, request) > 0)
        getter = next(pid for pid in instance.pids("drover-mover") if parent(pid) in instance.pids("drover-mover"))
        os.kill(getter, signal.SIGSTOP)
        instance.wait(request)
        assert other.read("f") == bytes_ and not alive(getter) and left(other.data) == []


LIAR = """#!/usr/bin/python3
import json, sys, urllib.parse
request = json.loads(sys.stdin.readline())
path = urllib.parse.urlsplit(request["url"]).path
say = {"event": "done"}
if request["op"] == "put":
    body = open(3, "rb").read(request["size"])
    with open(path, "wb") as f:
        f.write({"half": body[:len(body) // 2], "other": body[::-1]}[path.rsplit("/", 1)[1]])
    say["size"] = len(body)
elif request["op"] == "get":
    with open(path, "rb") as f, open(3, "wb") as to:
        to.write(f.read())
elif request["op"] == "look":
    say.update(op="look", size=int(urllib.parse.urlsplit(request["url"]).query or 0) or len(open(path, "rb").read()))
print(json.dumps(say), flush=True)
"""


def test_a_mover_that_lies(instance, web, folder):
    """It has stored half of the file, or another one, and says that all is well: size and bytes are compared."""
    liar = os.path.join(folder, "liar")
    with open(liar, "w", encoding="utf-8") as f:
        f.write(LIAR)
    os.chmod(liar, 0o755)
    instance.server()
    agents.start(instance, QUICK + f"movers:\n  lie: {liar}\n")
    url = web.put("f", b"honest bytes")
    for name, query, how, why in (("half", "", "store", "the store has 6 bytes of 12"), ("half", "?12", "read", "what was read back is not what was sent"),
                                  ("other", "", "read", "what was read back is not what was sent")):
        request = instance.submit(data(url, f"lie://{folder}/{name}{query}", max_retry=1, verify_copy=how))
        instance.wait(request, code=1)
        assert instance.job(f"{request}.0")["exit_code"] == 75
        assert why in instance.cli("tail", f"{request}.0", "--stderr")


def test_a_token_that_has_expired(instance, folder, web):
    """The job is held for its credential, at either end, and goes on when that was replaced."""
    authority = Authority(os.path.join(folder, "authority"))
    with served(Guarded(os.path.join(folder, "guarded"), authority, ("fresh",))) as store:
        instance.server()
        agents.start(instance, QUICK + f"ca_file: {authority.file}\n")
        instance.cli("credential", "add", "grid", "--type", "token", "--for", store.url, "-", stdin="stale")
        url = store.put("f", b"mine")
        requests = [instance.submit(data(url, web.url + "f", credentials="grid")),
                    instance.submit(data(web.put("g", b"yours"), store.url + "g", credentials="grid"))]
        for request in requests:
            job = instance.wait_state(f"{request}.0", "held")
            assert job["hold_code"] == 4 and "refuses what a credential of the job shows" in job["hold_reason"]
        assert "f" not in os.listdir(web.data) and "g" not in os.listdir(store.data)
        instance.cli("credential", "add", "grid", "--type", "token", "--for", store.url, "-", stdin="fresh")
        for request in requests:
            instance.wait(request)
        assert web.read("f") == b"mine" and store.read("g") == b"yours"


def storm(one, web, other, ftp, folder, files, kills, seed=1):
    """So many random kills of the agent, its shepherd, movers, the server, the stores during so many transfers into three."""
    dice = random.Random(seed)
    sums = {}
    lines = []
    ends = {other.url + "out/": os.path.join(other.data, "out"), ftp.url + "out/": os.path.join(ftp.data, "out"),
            f"file://{folder}/out/": f"{folder}/out"}
    for i in range(files):
        bytes_ = dice.randbytes(dice.randrange(1, 20000) if i % 40 else 3 << 20)
        sums[str(i)] = hashlib.sha256(bytes_).hexdigest()
        lines.append(f"{web.put(f'in/{i}', bytes_)} {sorted(ends)[i % 3]}{i}\n")
    os.makedirs(one.dir, 0o700)
    with open(os.path.join(one.dir, "droverd.yaml"), "w", encoding="utf-8") as f:  # or it takes the node for a bad one, which it is
        f.write("nodes: {max_lost: 1000, lost_pause: 10ms, drain_lossy: no}\n")
    server = one.server()
    agent = agents.start(one, QUICK)
    request = one.json("transfer", "--list", "-", "--max-retry", "1000", stdin="".join(lines))["id"]
    for number in range(kills):
        goal = files * (number + 1) // (kills + 2)
        wait_until(lambda g=goal: one.api("GET", f"/v1/requests/{request}")["completed"] >= g, 300)
        which = dice.choice(("agent", "mover", "store", "ftp", "source", "shepherd", "server", "all"))
        if which in ("agent", "all"):
            agent.kill()
        if which in ("server", "all"):
            server.kill()
        for name in {"mover": ["drover-mover"], "shepherd": ["drover-shepherd"], "all": ["drover-shepherd", "drover-mover"]}.get(which, []):
            for pid in one.pids(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for store in {"store": [other], "source": [web], "ftp": [ftp]}.get(which, []):
            for session in children(store.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(session, signal.SIGKILL)
            store.process.kill()
            store.process.wait()
            store.start()
            store.wait()
        if which in ("server", "all"):
            server = one.server()
        if which in ("agent", "all", "shepherd"):
            if agent.running():
                agent.kill()
            agent = agents.start(one, QUICK)
    one.wait(str(request), seconds=600)
    found = [(name, hashlib.sha256(contents(os.path.join(end, name))).hexdigest())
             for end in ends.values() for name in os.listdir(end) if "drover-" not in name]
    assert sorted(found) == sorted(sums.items())
    assert left(*ends.values()) == []
    assert one.api("GET", f"/v1/requests/{request}")["completed"] == files


def test_random_kills(instance, web, other, ftp, folder):
    storm(instance, web, other, ftp, folder, 60, 4)


@pytest.mark.long
@pytest.mark.parametrize("seed", [20, 21, 22])
def test_twenty_random_kills_in_a_thousand_transfers(instance, web, other, ftp, folder, seed):
    storm(instance, web, other, ftp, folder, 1000, 20, seed)


# ---- with computation

DAG = """\
DATA In in.dap
JOB Work work.sub
DATA Out out.dap
DATA Clean clean.dap
PARENT In CHILD Work
PARENT Work CHILD Out
PARENT Out CHILD Clean
"""


def test_a_workflow_with_its_data(instance, folder, web, ftp):
    """As docs/guides/workflow-with-data.md has it: data are brought, computed on, taken away and compared, by three protocols."""
    authority, numbers = Authority(os.path.join(folder, "authority")), b"3\n1\n2\n"
    with served(Grid(os.path.join(folder, "grid"), authority)) as grid:
        instance.server()
        agents.start(instance, QUICK + "movers:\n  root: xrootd\n")
        with open(os.path.join(ftp.data, "numbers"), "wb") as f:
            f.write(numbers)
        instance.write("in.dap", f'[ dap_type = "transfer"; src_url = "{ftp.url}numbers"; dest_url = "{web.url}run7/numbers";\n'
                       f'  checksum = "sha256:{hashlib.sha256(numbers).hexdigest()}"; ]\n')
        instance.write("work.sub", f"""shell = sort numbers >sorted
transfer_input_files = {web.url}run7/numbers
transfer_output_files = sorted
transfer_output_remaps = "sorted={web.url}run7/sorted"
queue
""")
        instance.write("out.dap", f'[ dap_type = "transfer"; src_url = "{web.url}run7/sorted"; dest_url = "{grid.root}run7/sorted"; ]\n')
        instance.write("clean.dap", f'[ dap_type = "rm"; src_url = "{web.url}run7/numbers"; ]\n[ dap_type = "rm"; src_url = "{web.url}run7/sorted"; ]\n')
        instance.write("run7.dag", DAG)
        request = instance.json("dag", "submit", "run7.dag")["id"]
        instance.wait(str(request))
        assert grid.read("run7/sorted") == b"1\n2\n3\n"
        assert os.listdir(os.path.join(web.data, "run7")) == []
