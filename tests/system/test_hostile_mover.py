"""A user whose mover lies, with an agent that runs the jobs of two users: it gets nowhere, and nobody else notices.

With `users` a mover is a process of the job's user, who may stop it, take its socket and answer in its place. hostile_mover.py is such
a one: its user ONE tells it in each URL what to do, and TWO is the one who must not notice."""
import ctypes
import errno
import glob
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import uuid

import pytest

from drover import processes, wait_until
from stores import Nginx
from users import AGENT, ONE, TWO, Site, as_user, mode_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")

HELD, RUNS = "held", "completed"
# What its mover does -> what comes of the job, and what its owner is told or the job has read.
ATTEMPTS = {
    "honest": (RUNS, "honest"),
    "rewrite": (RUNS, "honest|REWROT"),  # its own job sees the file as it is when it is taken
    "descriptors": (RUNS, "honest"),
    "more": (HELD, "brought"),
    "sparse": (HELD, "No space left on device"),
    "unchanged": (HELD, "talked nonsense"),
    "nonsense": (HELD, "talked nonsense"),
    "too_large": (HELD, "talked nonsense"),
    "flood": (HELD, "talked nonsense"),
    "never": (HELD, "in the time that it may take"),
    "words": (HELD, "gone"),
    "no_space": (HELD, "No space left on device"),
    "dies": (HELD, "what did it ended"),
}


class Lies:
    """An agent whose movers lie but for its own, and a store that everybody may read."""

    def __init__(self, instance):
        self.instance = instance
        self.store = Nginx(os.path.join(instance.base, "nginx"))
        self.site = Site(instance, f"stores:\n  lab:\n    urls: {self.store.url}lab/\n")
        self.program = os.path.join(self.site.bin, "hostile-mover")
        with open(os.path.join(os.path.dirname(__file__), "hostile_mover.py"), encoding="utf-8") as f:
            text = f.read().replace("@AGENT@", str(AGENT.pw_uid))
        with open(self.program, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.program, 0o755)
        self.store.wait()

    def start(self, more=""):
        self.agent = self.site.agent(more=f"mover: {self.program}\nmovers:\n  lie: /bin/false\nprobe: 0\ntransfer_tries: 1\n"
                                          f"transfer_retry: 1ms\nqueues:\n  - {{name: here, cpus: 16}}\n{more}")

    def submit(self, user, url, script="cat f", **more):
        return self.site.submit(user, script, ShouldTransferFiles="IF_NEEDED", TransferInput=url, **more)

    def wrong_contents(self):
        """Of the agent's cache: files that are not what their names say."""
        return [name for name in glob.glob(os.path.join(self.site.state, "cache", "*"))
                if re.fullmatch("[0-9a-f]{64}", os.path.basename(name)) and sum_of(name) != os.path.basename(name)]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.agent.pid}/fd"))


@pytest.fixture(scope="module")
def installed(request, tmp_path_factory):
    """Where the programs are, by their names, as the build installs them."""
    dest = tmp_path_factory.mktemp("dest")
    build = os.path.abspath(request.config.getoption("--build"))
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], check=True,
                   env={**os.environ, "DESTDIR": str(dest)}, stdout=subprocess.DEVNULL)
    return {name: os.path.join(d, name) for d, _, names in os.walk(dest) for name in names if os.path.basename(d) in ("bin", "sbin")}


def sum_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


@pytest.fixture
def lies(instance):
    lies = Lies(instance)
    yield lies
    lies.store.stop()


def test_what_a_lie_comes_to(lies):
    """Its own jobs bear what comes of it; what the agent keeps is what its names say; another user's job has its file meanwhile."""
    lies.start("transfers: 3\ntransfer_limit: 5s\n")
    instance, site = lies.instance, lies.site
    common = lies.store.put("lab/common", b"for all\n")
    site.run(TWO, "cat common", ShouldTransferFiles="IF_NEEDED", TransferInput=common)
    before = lies.descriptors()
    requests = {how: lies.submit(ONE, f"lie://x/{how}/f?how={how}&data=honest", f"cat f >{site.home(ONE)}/read-{how}")
                for how in ATTEMPTS}
    instance.wait_state(f"{requests['never']}.0", "staging", "held")  # it is held after the time that a transfer may take, not before
    assert site.text(TWO, "out") == "for all\n"
    other = lies.submit(TWO, "lie://x/f?data=mine")
    instance.wait(other)
    assert site.text(TWO, "out") == "mine"
    became = {}
    for how, request in requests.items():
        state = instance.wait_state(f"{request}.0", "held", "completed") if instance.job(f"{request}.0") else None
        became[how] = (state["state"], state.get("hold_reason") or site.text(ONE, f"read-{how}"))
    wrong = {how: got for how, got in became.items() if got[0] != ATTEMPTS[how][0] or not re.search(ATTEMPTS[how][1], got[1]) or
             not got[1].isprintable()}
    assert not wrong
    assert lies.wrong_contents() == []
    assert lies.descriptors() <= before + 5
    # nothing of the others had to go for it
    lies.store.stop()
    site.run(TWO, "cat common", ShouldTransferFiles="IF_NEEDED", TransferInput=common)
    assert site.text(TWO, "out") == "for all\n" and lies.agent.running()


def test_no_bytes_reach_another_owner(lies):
    """Neither as the file of a checksum that is shipped, nor as a file of a store that everybody reads, nor as that of a URL that both ask for."""
    lies.start("filesystem_domain: elsewhere.example\ncache_fresh: 1h\n")
    site, instance = lies.site, lies.instance
    site.write(TWO, "data", "shipped\n")
    common = lies.store.put("lab/common", b"for all\n")
    shipped = sum_of(os.path.join(site.home(TWO), "data"))

    def submit(user, inputs, script):
        home = site.home(user)
        text = ("executable = /bin/sh\ntransfer_executable = false\n" f"arguments = \"-c '{script}'\"\n"
                f"transfer_input_files = {inputs}\noutput = out\nrequest_memory = 32 MB\nrequest_disk = 9 MB\nqueue\n")
        p = subprocess.run([os.path.join(site.bin, "drover"), "submit", "-"], env={**instance.env, "HOME": home, "TMPDIR": home},
                           cwd=home, user=user.pw_uid, group=user.pw_gid, extra_groups=[], input=text, capture_output=True, text=True,
                           timeout=90, check=False)
        assert p.returncode == 0, p.stdout + p.stderr
        return int(re.search(r"\d+", p.stdout.split("cluster")[-1] if "cluster" in p.stdout else p.stdout)[0])

    url = f"{common}?how=forge&sha={shipped}"
    for one in (f"lie://x/f?how=forge&sha={shipped}", url):
        instance.wait(submit(ONE, one, "true"))
    request = submit(TWO, f"data, {url}", "cat data common")
    instance.wait(request)
    home = site.home(TWO)
    subprocess.run([os.path.join(site.bin, "drover"), "get", f"{request}.0", "-o", "got"], env={**instance.env, "HOME": home},
                   cwd=home, user=TWO.pw_uid, group=TWO.pw_gid, extra_groups=[], capture_output=True, timeout=90, check=True)
    assert site.text(TWO, "got/out") == "shipped\nfor all\n"
    both = "lie://x/both?how=whose"
    instance.wait(submit(ONE, both, "cat both"))
    request = submit(TWO, both, "cat both")
    instance.wait(request)
    subprocess.run([os.path.join(site.bin, "drover"), "get", f"{request}.0", "-o", "both"], env={**instance.env, "HOME": home},
                   cwd=home, user=TWO.pw_uid, group=TWO.pw_gid, extra_groups=[], capture_output=True, timeout=90, check=True)
    assert site.text(TWO, "both/out") == str(TWO.pw_uid)
    assert lies.wrong_contents() == []


def test_a_mover_that_dies_holds_nobody_else(lies):
    """Two owners' jobs wait for one file; one of them kills his movers."""
    lies.start("transfers: 1\n")
    site, instance = lies.site, lies.instance
    flag = os.path.join(site.home(ONE), "now")
    os.chmod(site.home(ONE), 0o711)
    common = lies.store.put("lab/f", b"for all\n") + f"?how=dies&when={flag}"
    first = lies.submit(ONE, common)
    wait_until(lambda: instance.job(f"{first}.0")["state"] in ("staging", "completed"))
    second = lies.submit(TWO, common)
    wait_until(lambda: (instance.job(f"{second}.0") or {"state": "completed"})["state"] in ("staging", "completed"))
    site.write(ONE, "now")
    for request in (first, second):
        state = instance.wait_state(f"{request}.0", "completed", "held")
        assert state["state"] == "completed", state
    assert site.text(TWO, "out") == "for all\n"


def test_nobody_waits_for_anothers_movers(lies):
    """However many of one user's transfers never end, the next user's has its turn."""
    lies.start("transfers: 2\n")
    for i in range(4):
        lies.submit(ONE, f"lie://x/{i}/f?how=never")
    wait_until(lambda: len(processes(lies.program)) >= 2)
    lies.instance.wait(lies.submit(TWO, "lie://x/f?data=mine"))
    assert lies.site.text(TWO, "out") == "mine"
    assert len(processes(lies.program)) <= 4
    assert lies.agent.stop() == 0  # with its transfers under way


def test_what_movers_measure_moves_no_job(lies):
    """An output's size is the agent's word, and how fast a store is comes from the agent's own movers."""
    lies.start()
    site, instance = lies.site, lies.instance
    request = site.submit(ONE, "head -c 70000 /dev/zero >made", ShouldTransferFiles="IF_NEEDED", TransferOutput="made",
                          TransferOutputRemaps=f"made={lies.store.url}lab/made?how=sent_lots", Log=os.path.join(site.home(ONE), "log"))
    instance.wait(request)
    assert 70000 <= instance.api("GET", "/v1/server")["moved"]["bytes_out"] < 80000

    def links():
        store, = instance.api("GET", "/v1/stores")["stores"]
        return store["links"]

    assert links() == []
    common = lies.store.put("lab/large", bytes(300000))
    site.run(TWO, "true", ShouldTransferFiles="IF_NEEDED", TransferInput=common)
    wait_until(links)
    assert links()[0]["bytes_per_s"] > 0


def test_its_answers_are_to_its_own_task(lies):
    """One that answers what it has not been asked yet brings its owner the wrong files at worst, and never half of one."""
    lies.start()
    site, instance = lies.site, lies.instance
    site.run(ONE, "cat f", ShouldTransferFiles="IF_NEEDED", TransferInput="lie://x/f?how=twice&data=first")
    request = lies.submit(ONE, "lie://x/g/f?data=another", "cat f")
    state = instance.wait_state(f"{request}.0", "completed", "held")
    assert state["state"] == "held" and "brought" in state["hold_reason"] or site.text(ONE, "out") == "another"
    instance.wait(lies.submit(TWO, "lie://x/g/f?data=mine"))
    assert site.text(TWO, "out") == "mine" and lies.wrong_contents() == []


PAUSES = b"""
#include <unistd.h>
__attribute__((constructor)) static void wait_before_main(void) { for (;;) pause(); }
"""


@pytest.mark.parametrize("name", ["drover-mover", "drover-agent", "drover-shepherd", "droverd"])
def test_nobody_looks_into_a_program_before_its_first_line(instance, installed, name):
    """Installed, a program of ours that runs as a user is closed to that user's other processes from its first instruction on."""
    base = instance.base
    os.chmod(os.path.dirname(base), 0o711)
    os.chmod(base, 0o711)
    program, library = os.path.join(base, name), os.path.join(base, "pauses.so")
    shutil.copy2(installed[name], program)
    assert mode_of(program) == 0o711
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=PAUSES, check=True)
    with subprocess.Popen([program, "--version"], env={"LD_PRELOAD": library}, user=ONE.pw_uid, group=ONE.pw_gid,
                          extra_groups=[], stdin=subprocess.PIPE) as p:
        try:
            wait_until(lambda: waits_in(p.pid, library))
            assert as_user(ONE, lambda: take_descriptor(p.pid)) == errno.EPERM
            assert as_user(ONE, lambda: os.access(f"/proc/{p.pid}/mem", os.R_OK)) is False
        finally:
            p.kill()
    with subprocess.Popen(["/bin/sleep", "1000"], user=ONE.pw_uid, group=ONE.pw_gid, extra_groups=[], stdin=subprocess.PIPE) as p:
        try:
            assert as_user(ONE, lambda: take_descriptor(p.pid)) == 0  # of any other program of its user
        finally:
            p.kill()


def take_descriptor(pid):
    """0: the standard input of that process is ours as well; or an errno."""
    libc = ctypes.CDLL(None, use_errno=True)
    return 0 if libc.syscall(438, os.pidfd_open(pid), 0, 0) >= 0 else ctypes.get_errno()  # pidfd_getfd(2)


def waits_in(pid, library):
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/syscall", encoding="ascii") as call:
        return library in maps.read() and call.read().split()[0] == "34"  # pause


class Literal(http.server.ThreadingHTTPServer):
    """A store to which each spelling of a path is a file of its own, as to those that keep objects: /lab/f0 and its like are the true ones."""

    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            data = b"true\n" if re.fullmatch("/lab/f[0-9]", self.path) else b"another\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def test_one_name_in_other_words(instance):
    """What one owner has fetched by another spelling of a file's URL is not what the next one gets for it."""
    with Literal() as store:
        url = f"http://127.0.0.1:{store.server_port}/"
        site = Site(instance, f"stores:\n  lab:\n    urls: {url}lab/\n")
        site.agent(more="cache_fresh: 1h\nprobe: 0\n")
        for i, spelling in enumerate(("lab//f0", "/lab/f1", "lab/mine/%2e%2e/f2", "lab/mine/../f3", "lab/%2e/f4", "lab/%66%35")):
            for user, name in ((ONE, spelling), (TWO, f"lab/f{i}")):
                site.run(user, "cat *", ShouldTransferFiles="IF_NEEDED", TransferInput=url + name)
                assert user is ONE or site.text(TWO, "out") == "true\n", spelling
        store.shutdown()


def test_thousands_of_inputs(lies):
    """What one job fetches takes no descriptors and no time of the agent's that another user's job needs."""
    lies.start("transfers: 2\n")
    before = lies.descriptors()
    urls = ",".join(f"lie://x/{i}/f?how=never" for i in range(3000))
    lies.submit(ONE, urls)
    wait_until(lambda: processes(lies.program))
    lies.instance.wait(lies.submit(TWO, "lie://x/f?data=mine"))
    assert lies.site.text(TWO, "out") == "mine"
    assert lies.descriptors() < before + 100
    request = lies.submit(ONE, ",".join(f"lie://x/{i}" for i in range(10001)))
    assert "up to 10000 URLs" in lies.instance.wait_state(f"{request}.0", "held")["hold_reason"]
    assert lies.descriptors() < before + 100 and lies.agent.stop() == 0  # with most of them waiting for their turn


def test_thousands_of_names(lies):
    """One job names more than a hundred thousand inputs, and its request has ten thousands of files: who runs beside it keeps his lease."""
    instance, site = lies.instance, lies.site
    with open(os.path.join(instance.base, "droverd.yaml"), "a", encoding="utf-8") as f:
        f.write("lease: 20s\n")
    site.server.stop()
    site.server = site.start()
    lies.start()
    go = os.path.join(site.home(TWO), "go")
    other = site.submit(TWO, f"echo began; while [ ! -e {go} ]; do sleep 0.1; done")
    instance.wait_state(f"{other}.0", "running")

    def upload():
        number = instance.api("POST", "/v1/uploads")["id"]
        instance.api("PUT", f"/v1/uploads/{number}?offset=0", b"x")
        return instance.api("POST", f"/v1/uploads/{number}/finish")["sha256"]

    sha = as_user(ONE, upload)
    files = [{"name": f"f{i}", "sha256": sha, "size": 1} for i in range(60000)]
    names = ",".join(f"{i:x}" for i in range(190000))[:1 << 20].rpartition(",")[0]
    attributes = {"Cmd": '"/bin/true"', "Iwd": json.dumps(site.home(ONE)), "TransferExecutable": "false", "RequestMemory": "32",
                  "RequestDisk": "1024", "ShouldTransferFiles": '"YES"', "TransferInput": json.dumps(names)}
    body = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": attributes, "rows": 1, "steps": 1}], "spooled": files}
    request = as_user(ONE, lambda: instance.api("POST", "/v1/requests", body))["id"]
    assert "nor visible" in instance.wait_state(f"{request}.0", "held")["hold_reason"]
    site.write(TWO, "go")
    instance.wait(other)
    assert instance.history(other)[0]["starts"] == 1
