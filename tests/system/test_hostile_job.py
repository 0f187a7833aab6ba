"""Jobs that mean harm: a table of attempts, and what must come of each. As a user whom root's agent has made of the owner, as the
user whose agent and server they run under, as root, and in a container."""
import contextlib
import glob
import json
import os
import re
import shutil
import socket
import stat
import subprocess

import agents
import containers
import openapi
import pytest
import unseen
import users
from drover import free_port, sh, wait_until, with_command_line
from test_provision import PROCESS, SHAPES, all_gone, configure
from users import ONE, TWO

# Runs in the job: each attempt's outcome is "done", or the name of the error.
ATTACK = r'''
import ctypes, errno, fcntl, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
state, agent_dir, pids, other, secrets = json.loads(sys.argv[1])
out = {}

def attempt(name, what):
    try:
        answer = what()
        out[name] = answer if isinstance(answer, str) else "done"
    except OSError as e:
        out[name] = errno.errorcode[e.errno]

def read(path):
    with open(path, "rb") as f:
        return "done" if f.read(1) else "empty"

def call(*args):
    if libc.syscall(*args) == -1:
        raise OSError(ctypes.get_errno(), "")

def connect(path, kind):
    with socket.socket(socket.AF_UNIX, kind) as s:
        s.connect(path)

def http(method, path, body=b"{}"):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(state + "/api.sock")
        s.sendall(b"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                  % (method, path, len(body), body))
        return s.recv(4096).split()[1].decode()

def api():
    token = json.dumps({"kind": "user", "role": "admin", "name": "x@local"}).encode()
    return " ".join([http(b"GET", b"/v1/jobs"), http(b"POST", b"/v1/tokens", token), http(b"POST", b"/v1/requests"),
                     http(b"POST", b"/v1/actions", b'{"action": "hold", "constraint": "true"}')])

def detached(what):
    """What a process finds that has left session, parents and environment."""
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            libc.clearenv()
            os.execve(sys.executable, [sys.executable, __file__, sys.argv[1], "api", str(w)], {})
        os._exit(0)
    os.wait()
    os.close(w)
    return os.fdopen(r).read()

if len(sys.argv) > 2:
    os.set_inheritable(int(sys.argv[3]), True)
    attempt("api", api)
    os.write(int(sys.argv[3]), out["api"].encode())
    os._exit(0)

for path in secrets:
    attempt("read " + os.path.basename(path), lambda: read(path))
for name, pid in pids.items():
    attempt("root of " + name, lambda: os.listdir("/proc/%d/root/" % pid) and "done")
    attempt("memory of " + name, lambda: read("/proc/%d/mem" % pid))
    attempt("environment of " + name, lambda: read("/proc/%d/environ" % pid))
    attempt("files of " + name, lambda: os.readlink("/proc/%d/fd/0" % pid) and "done")
    attempt("trace " + name, lambda: call(101, 16, pid, 0, 0))
attempt("socket of the login", lambda: connect(f"/run/user/{os.getuid()}/{os.path.basename(os.path.dirname(state))}", socket.SOCK_STREAM))
attempt("socket of the shepherd", lambda: connect(agent_dir + "/shepherd.sock", socket.SOCK_SEQPACKET))
attempt("api", api)
os.set_inheritable(1, True)
r, w = os.pipe()
os.set_inheritable(w, True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, os.path.abspath(__file__), sys.argv[1], "api", str(w)], {})
    os._exit(0)
os.wait()
os.close(w)
out["api of a process that has left all"] = os.fdopen(r).read()
if other:
    attempt("another's sandbox", lambda: os.listdir(other) and "done")
    attempt("leave a file in /var/tmp", lambda: open("/var/tmp/" + os.path.basename(os.path.dirname(state)), "w").close())
attempt("signal to the shepherd", lambda: os.kill(pids["shepherd"], 0) if not secrets[0].startswith("/own") else "")
master, slave = os.openpty()
attempt("type on a terminal", lambda: fcntl.ioctl(slave, 0x5412, b"x"))
attempt("device", lambda: os.mknod("device", 0o60600, os.makedev(8, 0)))
attempt("keys", lambda: call(250, 0, -4, 0))
groups = [line.split(":", 2) for line in open("/proc/self/cgroup").read().split()]
for number, kinds, path in groups:
    top = "/sys/fs/cgroup/" + (kinds.replace("name=", "") or "unified")
    if "/drover-" in path:
        attempt("leave a group", lambda: open(top + "/cgroup.procs", "w").write("%d\n" % os.getpid()) and "done")
        attempt("a group's limits", lambda: open(top + path + "/cgroup.procs", "w").write("") and "done")
out["marks"] = [line.split()[1] for line in open("/proc/self/status") if line.startswith(("NoNewPrivs:", "Seccomp:"))]
print(json.dumps(out))
'''


def attack(folder, user):
    path = os.path.join(folder, "attack.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(ATTACK)
    os.chmod(path, 0o755)
    if user:
        os.chown(path, user.pw_uid, user.pw_gid)
    return path


def check(found, wanted):
    """Each outcome is one of those wanted of its name."""
    wrong = {}
    for name, outcome in found.items():
        allowed = next((v for k, v in wanted.items() if re.fullmatch(k, name)), None)
        if allowed is not None and outcome not in allowed:
            wrong[name] = outcome
    assert not wrong, (wrong, found)


SECRETS = r"read .*"
PRIVATE = r"(root|memory|environment|files) of .*|trace .*"
SHUT = ("EACCES", "EPERM", "ENOENT", "ESRCH")


@contextlib.contextmanager
def logged_in(instance, user):
    """A socket where programs listen that run for a user who is logged in, such as his session manager."""
    folder = f"/run/user/{user.pw_uid}"
    path = f"{folder}/{os.path.basename(instance.base)}"
    made = not os.path.exists(folder)
    os.makedirs(folder, exist_ok=True)
    os.chown(folder, user.pw_uid, user.pw_gid)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        os.chmod(path, 0o777)
        s.listen()
        try:
            yield
        finally:
            os.unlink(path)
            if made:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


@pytest.fixture
def site(instance):
    with logged_in(instance, ONE):
        yield users.Site(instance)


def test_a_user_of_roots_agent(site):
    """Its uid is its own, so what root's and the agent's are is closed to it; and what it may open of its own user's is not more than it was
    given."""
    agent = site.agent()
    shepherd, = site.instance.pids("drover-shepherd")
    shown = os.path.join(site.home(TWO), "pid")
    victim = site.submit(TWO, f"echo $$ >{shown}; echo secret >mine; exec sleep 600")
    wait_until(lambda: os.path.exists(shown) and open(shown, encoding="utf-8").read().strip())
    sandbox, = (os.path.join(site.state, "jobs", d) for d in os.listdir(os.path.join(site.state, "jobs")))
    left = f"/var/tmp/{os.path.basename(site.instance.base)}"
    targets = [site.instance.dir, site.state, {"agent": agent.pid, "shepherd": shepherd, "server": site.server.pid,
                                               "another's job": int(open(shown, encoding="utf-8").read())}, sandbox,
               [f"{site.state}/agent/agent.key", f"{site.state}/shepherd.table", f"{site.instance.dir}/ca/ca.key",
                f"{site.instance.dir}/drover.db", f"{site.instance.dir}/credential.key"]]
    script = attack(site.home(ONE), ONE)
    site.write(ONE, "targets", json.dumps(targets))
    site.instance.wait(site.submit(ONE, f'exec /usr/bin/python3 {script} "$(cat {site.home(ONE)}/targets)"'), code=None)
    assert site.text(ONE, "err") == ""
    found = json.loads(site.text(ONE, "out"))
    check(found, {SECRETS: SHUT, PRIVATE: SHUT, "socket of the (shepherd|login)": SHUT, "api.*": ("403 403 403 403",), "another's sandbox": SHUT,
                  "signal to the shepherd": ("EPERM",), "type on a terminal": ("EPERM",), "device": ("EPERM",), "keys": ("ENOSYS",),
                  "(leave a group|a group's limits)": ("EACCES", "EPERM", "EROFS"), "leave a file.*": ("done",), "marks": (["1", "2"],)})
    assert not os.path.exists(left)  # that /var/tmp was its own
    site.instance.cli("rm", str(victim))
    assert site.run(ONE, "echo fine") and site.text(ONE, "out") == "fine\n"


class Own:
    """`drover up` of an ordinary user."""

    def __init__(self, instance, user):
        self.instance, self.user = instance, user
        self.bin = os.path.join(instance.base, "programs")
        os.makedirs(self.bin + "/as")
        for name in ("drover", "droverd", "drover-agent", "drover-mover", "drover-shepherd"):
            shutil.copy(instance.program(name), self.bin)
            with open(f"{self.bin}/as/{name}", "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\nexec setpriv --reuid={user.pw_uid} --regid={user.pw_gid} --clear-groups {self.bin}/{name} \"$@\"\n")
            os.chmod(f"{self.bin}/as/{name}", 0o755)
        instance.program = lambda name: f"{self.bin}/as/{name}"
        os.chmod(os.path.dirname(instance.base), 0o711)
        for path in (instance.base, instance.work):
            os.chown(path, user.pw_uid, user.pw_gid)

    def server(self, *args):
        return self.instance.server("--user", self.user.pw_name, *args)

    def write(self, name, text):
        path = self.instance.write(name, text, 0o755)
        os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return path


@pytest.fixture
def own(instance):
    with logged_in(instance, ONE):
        yield Own(instance, ONE)


def targets_of(instance):
    shepherd, = instance.pids("drover-shepherd")
    agent, = instance.pids("drover-agent")
    return [instance.dir, instance.dir + "/agent", {"agent": agent, "shepherd": shepherd, "server": instance.server_pid()}, None,
            [f"{instance.dir}/agent/agent.key", f"{instance.dir}/ca/ca.key", f"{instance.dir}/drover.db",
             f"{instance.dir}/credential.key", f"{instance.dir}/server.json"]]


def attack_own(instance, script):
    instance.write("targets", json.dumps(targets_of(instance)))
    return sh(f'exec /usr/bin/python3 {script} "$(cat {instance.work}/targets)"', output="found", error="err", iwd=instance.work)


def test_the_user_of_drover_up(own):
    """One uid for server, agent and job: the job sees no key and no socket, and looks into no process outside."""
    one = own.instance
    one.up()
    one.run(attack_own(one, attack(one.work, ONE)))
    check(json.loads(one.read("found")), {
        SECRETS: ("ENOENT",), PRIVATE: SHUT, "socket of the (shepherd|login)": ("ENOENT",), "api.*": ("ENOENT",), "device": ("EPERM",),
        "(leave a group|a group's limits)": ("EACCES", "EROFS", "EPERM"), "type on a terminal": ("EPERM", "EIO"), "marks": (["1", "0"],)})


def test_its_agent_killed_by_a_job(own):
    """Signals are not kept from one uid: the agent is started again, and nothing is lost."""
    one = own.instance
    one.up()
    agent, = one.pids("drover-agent")
    one.run(sh(f"kill -9 {agent}; sleep 1; echo went on", output="out", error="err"))
    assert one.read("out") == "went on\n"
    wait_until(lambda: one.pids("drover-agent") not in ([], [agent]))
    one.run(sh("echo next", output="out"))
    assert one.read("out") == "next\n"


def test_root_under_drover_up(instance):
    """Root's own job is root's; but what is Drover's is not simply there."""
    instance.up()
    instance.run(attack_own(instance, attack(instance.work, None)))
    check(json.loads(instance.read("found")), {
        SECRETS: ("ENOENT",), PRIVATE: (*SHUT, "empty"), "socket of the shepherd": ("ENOENT",), "api.*": ("ENOENT",)})


def test_a_machine_of_the_process_provisioner(instance):
    """Its agent has the server's uid, and its folder is below the server's: a job there finds its sandbox and nothing else."""
    configure(instance, PROCESS.format(max=1, bounds="") + SHAPES)
    instance.server()
    secrets = " ".join(f"{instance.dir}/{name}" for name in ("ca/ca.key", "drover.db", "credential.key", "ticket.key", "server.json", "provision/here/*/agent.key",
                                                             "provision/here/*/token"))
    instance.run(sh(f"for f in {secrets} {instance.dir}/*.sock; do test -e $f && echo $f; done; echo looked", output="out"))
    assert instance.read("out") == "looked\n"
    all_gone(instance)


def test_a_token_of_the_jobs_own(own):
    """Where a queue hides nothing, a job's process is still not its user: it has the rights of a token that it was given."""
    one = own.instance
    own.server()
    agents.start(one, "name: node\ncontainment: {hide: off}\n", "node")
    agents.offering(one)
    token = one.json("token", "user", "--name", f"{ONE.pw_name}@local", "--role", "user")["token"]
    drover = f"DROVER_DIR={one.dir} {own.bin}/drover"
    own.write("token", token)
    one.run(sh(f"{drover} queue; {drover} token list; DROVER_TOKEN=$(cat {one.work}/token) {drover} queue --json >listed; "
               f"DROVER_TOKEN=$(cat {one.work}/token) {drover} token user --role admin && echo made; env -i setsid sh -c "
               f"'{drover} rm 1' ; true", output="out", error="err", iwd=one.work))
    assert one.read("err").count("a job's processes do not speak for their user") == 3, one.read("err")
    assert json.loads(one.read("listed"))
    assert "made" not in one.read("out")


HAND_OVER = """
import array, os, socket
here = os.open(os.environ["DROVER_SCRATCH"], os.O_RDONLY)
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
    s.connect("\\0{path}")
    s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [here]))])
    s.recv(1)
"""


@contextlib.contextmanager
def delegated(own):
    """The agent is started in a control group that is its user's, as a login's service manager does it."""
    group = f"/sys/fs/cgroup/unified/drover-test-{os.getpid()}"
    try:
        os.mkdir(group)
    except OSError as e:
        pytest.skip(f"no control group can be made: {e}")
    try:
        for path in (group, *(f"{group}/cgroup.{name}" for name in ("procs", "subtree_control", "threads"))):
            os.chown(path, own.user.pw_uid, own.user.pw_gid)
        script = own.instance.program("drover-agent")
        with open(script, encoding="utf-8") as f:
            text = f.read()
        with open(script, "w", encoding="utf-8") as f:
            f.write(text.replace("exec", f"echo $$ >{group}/cgroup.procs\nexec", 1))
        yield
    finally:
        own.instance.stop()
        for folder, _, _ in os.walk(group, topdown=False):
            wait_until(lambda: removed(folder))  # pylint: disable=cell-var-from-loop


def removed(group):
    """nothing is in the group"""
    with contextlib.suppress(OSError):
        os.rmdir(group)
    return not os.path.exists(group)


def test_a_folder_that_another_owner_has_open(own):
    """Several owners share an agent's user. Whoever was handed the open folder of a short job of one of them (this test's own process stands for a
    job of that owner that goes on) does not see in it what is another owner's later, though the folder of a job that leaves nothing is
    given to the next one."""
    one = own.instance
    jobs = f"{one.base}/n1/jobs"

    def emptied():
        """the folder waits for the next job"""
        return os.path.exists(jobs) and [name for name in os.listdir(jobs) if name.startswith(".empty")]

    port = free_port()
    with delegated(own), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        own.server("--api-listen", f"127.0.0.1:{port}")
        agents.start(one, f"cpus: 1\nowner: [ann@local, '{own.user.pw_name}@local']\n", token=("--owners", "any"))
        agents.offering(one)
        path = os.path.join(one.work, "handed")
        listener.bind("\0" + path)
        listener.listen(1)
        first = one.submit(sh(f"exec python3 {own.write('hand_over.py', HAND_OVER.format(path=path))}"))
        listener.settimeout(90)
        connection, _ = listener.accept()
        with connection:
            handed, = socket.recv_fds(connection, 1, 1)[1]
            connection.send(b"x")
        one.wait(first)
        assert wait_until(emptied) == [".empty.0"]
        env = {"DROVER_DIR": "", "DROVER_SERVER": f"https://127.0.0.1:{port}",
               "DROVER_TOKEN": one.json("token", "user", "--name", "ann@local")["token"]}
        go = os.path.join(one.work, "go")
        hers = one.submit(sh(f"cd $DROVER_SCRATCH; echo x >secret; while [ ! -e {go} ]; do sleep 0.05; done"), env=env)
        wait_until(lambda: glob.glob(f"{jobs}/{hers}.0.*/secret"))
        assert "secret" not in os.listdir(handed)
        one.write("go", "")
        one.wait(hers)
        one.run(sh("true"))
        os.close(handed)


# Asks the server for each of a list of [method, path, body], without a token and with one, and prints what was answered.
EVERY_ROUTE = r'''
import json, socket, sys
state, folder = sys.argv[1:3]
with open(folder + "/token") as f:
    token = f.read()
with open(folder + "/calls") as f:
    calls = json.load(f)

def ask(method, path, body, head):
    raw = b"" if body is None else json.dumps(body).encode()
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(state + "/api.sock")
        lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(raw)}", *head, "", ""]
        s.sendall("\r\n".join(lines).encode() + raw)
        return int(s.makefile("rb").readline().split()[1])

print(json.dumps([[ask(*call, []), ask(*call, ["Authorization: Bearer " + token])] for call in calls]))
'''
JOB_PATHS = ("", "/log", "/path", "/why", "/priority", "/files")
ID = "0" * 32
ITS_OWN = {"hold": True, "parts": [{"attributes": {"Cmd": '"/bin/true"'}}]}
# (method, route) of docs/openapi.json: path, body, and what is answered with a token of the job's user who has the role user. Without one every
# answer is 403, but for probes. {job} is a job of another user's.
ROUTES = {
    ("GET", "/healthz"): ("/healthz", None, 200),
    ("GET", "/readyz"): ("/readyz", None, 200),
    ("GET", "/metrics"): ("/metrics", None, 200),
    ("GET", "/v1/series"): ("/v1/series", None, 200),
    ("GET", "/v1/server"): ("/v1/server", None, 200),
    ("GET", "/v1/openapi.json"): ("/v1/openapi.json", None, 200),
    ("POST", "/v1/uploads"): ("/v1/uploads", None, 201),
    ("PUT", "/v1/uploads/{id}"): (f"/v1/uploads/{ID}?offset=0", None, 404),
    ("POST", "/v1/uploads/{id}/finish"): (f"/v1/uploads/{ID}/finish", {}, 404),
    ("POST", "/v1/requests"): ("/v1/requests?dry_run=1", ITS_OWN, 200),
    ("GET", "/v1/requests"): ("/v1/requests", None, 200),
    ("GET", "/v1/requests/{id}"): ("/v1/requests/{request}", None, 404),
    ("GET", "/v1/requests/{id}/files"): ("/v1/requests/{request}/files", None, 404),
    ("PUT", "/v1/requests/{id}/lease"): ("/v1/requests/{request}/lease", {"lease_ms": 1000}, 404),
    ("POST", "/v1/requests/{id}/resubmit"): ("/v1/requests/{request}/resubmit", {}, 404),
    ("POST", "/v1/requests/{id}/taken"): ("/v1/requests/{request}/taken", {"members": "0"}, 404),
    ("PUT", "/v1/requests/{id}/credentials/{name}"): ("/v1/requests/{request}/credentials/x", {"type": "file", "data": "x"}, 404),
    ("GET", "/v1/jobs"): ("/v1/jobs", None, 200),
    **{("GET", "/v1/jobs/{id}" + what): ("/v1/jobs/{job}" + what, None, 404) for what in JOB_PATHS},
    ("GET", "/v1/jobs/{id}/files/{name}"): ("/v1/jobs/{job}/files/x", None, 404),
    ("GET", "/v1/jobs/{id}/script"): ("/v1/jobs/{job}/script", None, 404),
    ("GET", "/v1/jobs/{id}/output"): ("/v1/jobs/{job}/output", None, 404),
    ("POST", "/v1/jobs/{id}/exec"): ("/v1/jobs/{job}/exec", {"argv": ["id"]}, 404),
    ("POST", "/v1/jobs/{id}/exec/input"): ("/v1/jobs/{job}/exec/input", {"exec": 1, "attempt": 1, "data": "eA=="}, 404),
    ("GET", "/v1/paths"): ("/v1/paths?after=0", None, 200),
    ("POST", "/v1/actions"): ("/v1/actions", {"action": "remove", "ids": ["{request}"]}, 404),
    ("GET", "/v1/wait"): ("/v1/wait?ids={request}&timeout_ms=0", None, 404),
    ("GET", "/v1/history"): ("/v1/history", None, 200),
    ("POST", "/v1/quote"): ("/v1/quote", ITS_OWN, 200),
    ("GET", "/v1/server/status"): ("/v1/server/status", None, 200),
    ("POST", "/v1/server/promote"): ("/v1/server/promote?force=1", None, 403),
    ("POST", "/v1/server/drain"): ("/v1/server/drain", None, 403),
    ("GET", "/v1/agents"): ("/v1/agents", None, 200),
    ("POST", "/v1/agents/{name}/revoke"): ("/v1/agents/node/revoke", None, 403),
    ("POST", "/v1/agents/{name}/drain"): ("/v1/agents/node/drain", {}, 403),
    ("POST", "/v1/agents/{name}/wish"): ("/v1/agents/node/wish", {"wishes": []}, 403),
    ("POST", "/v1/agents/{name}/resume"): ("/v1/agents/node/resume", None, 403),
    ("GET", "/v1/usage"): ("/v1/usage", None, 200),
    ("GET", "/v1/usage/keywords"): ("/v1/usage/keywords", None, 200),
    ("GET", "/v1/usage/records"): ("/v1/usage/records", None, 200),
    ("GET", "/v1/reservations"): ("/v1/reservations", None, 200),
    ("POST", "/v1/reservations"): ("/v1/reservations", {"duration_ms": 60000}, 403),
    ("GET", "/v1/reservations/{id}"): ("/v1/reservations/1", None, 404),
    ("DELETE", "/v1/reservations/{id}"): ("/v1/reservations/1", None, 404),
    ("GET", "/v1/bank"): ("/v1/bank", None, 200),
    ("GET", "/v1/bank/accounts/{name}"): ("/v1/bank/accounts/physics", None, 404),
    ("GET", "/v1/bank/accounts/{name}/statement"): ("/v1/bank/accounts/physics/statement", None, 404),
    ("GET", "/v1/bank/bill"): ("/v1/bank/bill?by=account", None, 200),
    ("GET", "/v1/bank/reserved"): ("/v1/bank/reserved", None, 200),
    ("GET", "/v1/bank/machines"): ("/v1/bank/machines", None, 200),
    ("GET", "/v1/bank/users"): ("/v1/bank/users", None, 200),
    ("POST", "/v1/bank/orders"): ("/v1/bank/orders", {"op": "deposit", "account": "physics", "amount": 5}, 403),
    ("GET", "/v1/nodes"): ("/v1/nodes", None, 200),
    ("GET", "/v1/nodes/{name}"): ("/v1/nodes/node", None, 200),
    ("POST", "/v1/nodes/{name}"): ("/v1/nodes/node", {"state": "draining"}, 403),
    ("GET", "/v1/wishlist"): ("/v1/wishlist", None, 200),
    ("GET", "/v1/capacity"): ("/v1/capacity", None, 200),
    ("GET", "/v1/config"): ("/v1/config", None, 200),
    ("GET", "/v1/config/time_limit"): ("/v1/config/time_limit", None, 200),
    ("GET", "/v1/limits"): ("/v1/limits", None, 200),
    ("GET", "/v1/accounts"): ("/v1/accounts", None, 200),
    ("GET", "/v1/stores"): ("/v1/stores", None, 200),
    ("POST", "/v1/stores/{name}"): ("/v1/stores/lab", {"used_bytes": 0}, 403),
    ("GET", "/v1/catalog"): ("/v1/catalog", None, 200),
    ("GET", "/v1/catalog/files"): ("/v1/catalog/files", None, 200),
    ("POST", "/v1/catalog/files"): ("/v1/catalog/files", {"files": [{"name": "x"}]}, 403),
    ("GET", "/v1/catalog/files/{name}"): ("/v1/catalog/files/x", None, 404),
    ("POST", "/v1/catalog/remove"): ("/v1/catalog/remove", {"names": ["x"]}, 403),
    ("GET", "/v1/catalog/datasets"): ("/v1/catalog/datasets", None, 200),
    ("PUT", "/v1/catalog/datasets/{name}"): ("/v1/catalog/datasets/x", {"query": "a=1"}, 403),
    ("DELETE", "/v1/catalog/datasets/{name}"): ("/v1/catalog/datasets/x", None, 403),
    ("GET", "/v1/events"): ("/v1/events?after=0&timeout_ms=0", None, 200),
    ("POST", "/v1/tokens"): ("/v1/tokens", {"kind": "user", "role": "admin"}, 403),
    ("GET", "/v1/tokens"): ("/v1/tokens", None, 200),
    ("DELETE", "/v1/tokens/{id}"): ("/v1/tokens/{token}", None, 404),
    ("GET", "/ga4gh/tes/v1/service-info"): ("/ga4gh/tes/v1/service-info", None, 200),
    ("GET", "/ga4gh/tes/v1/tasks"): ("/ga4gh/tes/v1/tasks", None, 200),
    ("POST", "/ga4gh/tes/v1/tasks"): ("/ga4gh/tes/v1/tasks", {"executors": []}, 400),
    ("GET", "/ga4gh/tes/v1/tasks/{id}"): ("/ga4gh/tes/v1/tasks/{request}", None, 404),
    ("POST", "/ga4gh/tes/v1/tasks/{id}:cancel"): ("/ga4gh/tes/v1/tasks/{request}:cancel", None, 404),
    ("GET", "/.well-known/drover"): ("/.well-known/drover", None, 200),
    ("POST", "/SSSRMAP3"): ("/SSSRMAP3", {}, 404),  # not enabled; its messages show who speaks
    ("GET", "/v1/credentials"): ("/v1/credentials", None, 200),
    ("PUT", "/v1/credentials/{name}"): ("/v1/credentials/x", {"type": "file", "data": "mine"}, 200),
    ("DELETE", "/v1/credentials/{name}"): ("/v1/credentials/x", None, 200),
}


def test_every_route(own):
    """A job's process has on no route more than the token that it was given, nor has a command that is run beside it. A route that is new in
    docs/openapi.json is refused by this test until its table says what a job gets of it."""
    routes = {(method.upper(), path) for path, item in openapi.DOCUMENT["paths"].items() for method in item if method != "parameters"}
    assert routes == set(ROUTES)
    one = own.instance
    own.server()
    agents.start(one, "name: node\ncontainment: {hide: off}\n", "node")
    agents.offering(one)
    other = one.json("token", "user", "--name", "other@local")
    request = one.api("POST", "/v1/requests", ITS_OWN)["id"]  # root's
    names = {"{request}": str(request), "{job}": f"{request}.0", "{token}": other["id"]}

    def filled(value):
        for name, text in names.items():
            value = value.replace(name, text)
        return value

    calls = [[method, filled(path), json.loads(filled(json.dumps(body)))] for (method, _), (path, body, _) in ROUTES.items()]
    own.write("calls", json.dumps(calls))
    own.write("token", one.json("token", "user", "--name", f"{ONE.pw_name}@local", "--role", "user")["token"])
    script = own.write("every.py", EVERY_ROUTE)
    words = f"/usr/bin/python3 {script} {one.dir} {one.work}"
    job = one.submit(sh(f"{words}; echo >asked; while ! [ -e go ]; do sleep 0.1; done", output="out", error="err", iwd=one.work))
    wait_until(lambda: os.path.exists(os.path.join(one.work, "asked")))
    beside = one.cli("exec", f"{job}.0", "--", *words.split())
    own.write("go", "")
    one.wait(job)
    assert one.read("err") == ""
    wanted = {route: [status if route[1] in ("/healthz", "/readyz", "/SSSRMAP3", "/.well-known/drover") else 403, status] for route, (_, _, status) in ROUTES.items()}
    for said in one.read("out"), beside:
        assert dict(zip(ROUTES, json.loads(said))) == wanted
    assert one.job(f"{request}.0")["state"] == "held"


FALSE_SHEPHERD = r'''
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, b"drover-shepherd", 0, 0, 0)
if os.fork() == 0:
    os.execve(sys.argv[1], [sys.argv[1], "token", "user", "--role", "admin"], {"DROVER_DIR": sys.argv[2]})
os.wait()
'''


def test_a_shepherd_of_its_own(own):
    """A job's process that calls itself a shepherd, and has the rights of its children, does not make them their user's."""
    one = own.instance
    own.server()
    agents.start(one, "name: node\ncontainment: {hide: off}\n", "node")
    agents.offering(one)
    script = own.write("false.py", FALSE_SHEPHERD)
    one.run(sh(f"env -i /usr/bin/python3 {script} {own.bin}/drover {one.dir}", output="out", error="err", iwd=one.work))
    assert (one.read("out"), one.read("err").count("a job's processes do not speak for their user")) == ("", 1), one.read("err")


ODD = r'''
import os
os.mkdir("deep")
top = os.open("deep", os.O_RDONLY)
for i in range(3000):
    os.mkdir("d" * 100, dir_fd=top)
    below = os.open("d" * 100, os.O_RDONLY, dir_fd=top)
    os.close(top)
    top = below
os.symlink("/etc/shadow", "link")
os.mkfifo("fifo")
open("odd\nname", "w").write("odd")
open("shell", "w").write("#!/bin/sh\n")
os.chmod("shell", 0o6755)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "987"], {})
    os._exit(0)
os.wait()
'''


@pytest.mark.parametrize("name", ["link", "fifo", "nothing/../../../1", "odd\nname"])
def test_outputs_that_are_none(own, name):
    """A named output that is a link, a pipe, or outside: its job is told, nobody waits, and nothing of others is delivered."""
    one = own.instance
    one.up()
    script = own.write("odd.py", ODD)
    body = sh(f"/usr/bin/python3 {script}", should_transfer_files="YES", when_to_transfer_output="ON_EXIT",
              transfer_output_files=name.replace("\n", "?"))
    job = one.submit(body)
    one.wait_state(f"{job}.0", "held", "completed")
    path = os.path.join(one.work, os.path.basename(name))
    assert not os.path.islink(path) and not (os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode))
    one.cli("rm", str(job), code=None)
    one.run(sh("true"))
    wait_until(lambda: os.listdir(os.path.join(one.dir, "agent", "jobs")) == [])


def test_what_is_left_behind(own):
    """A tree of three thousand folders goes with its sandbox, so does a process that has left session, parents and environment; a
    delivered file gives nobody rights."""
    one = own.instance
    one.up()
    script = own.write("odd.py", ODD)
    job = one.run(sh(f"/usr/bin/python3 {script}", should_transfer_files="YES", when_to_transfer_output="ON_EXIT",
                     transfer_output_files="shell", request_disk="64 MB"))  # a folder is a block of the disk
    one.cli("get", str(job))
    assert not os.stat(os.path.join(one.work, "shell")).st_mode & (stat.S_ISUID | stat.S_ISGID)
    wait_until(lambda: os.listdir(os.path.join(one.dir, "agent", "jobs")) == [])
    wait_until(lambda: not with_command_line("sleep", "987"))


def test_processes_without_end(instance):
    """A job that forks without end meets its limit, and the agent starts the next one."""
    instance.server()
    agents.start(instance, "name: node\npids_max: 100\n", "node")
    agents.offering(instance)
    job = instance.submit(sh("i=0; while [ $i -lt 300 ]; do sleep 600 & i=$((i+1)); done", output="out", error="err"))
    instance.wait(job, code=None)
    assert "fork" in instance.read("err")
    instance.run(sh("echo next", output="out"))
    assert instance.read("out") == "next\n"


DEEP = r"""
import os, time
for _ in range(80):
    if os.fork():
        os.wait()
        os._exit(0)
    os.setsid()
room = os.urandom(1 << 20) * 800
time.sleep(30)
"""


def test_memory_deep_below(site):
    """What the last of a long line of processes takes, each in a session of its own, is its job's."""
    site.agent()
    site.write(ONE, "deep.py", DEEP)
    job = site.submit(ONE, f"exec /usr/bin/python3 {site.home(ONE)}/deep.py", RequestMemory=1100)
    assert "more than its memory" in held_for(site.instance, job)


def test_orphans_without_end(site):
    """What a job leaves to the shepherd, faster than that can be reaped, holds up no other job; and the job can be ended."""
    site.agent()
    program, ready = os.path.join(site.bin, "orphans"), os.path.join(site.home(ONE), "ready")
    shutil.copy(os.path.join(site.instance.build, "tests/conform/orphans"), program)
    job = site.submit(ONE, f"exec {program} 1500 {ready}", RequestMemory=2000)
    wait_until(lambda: os.path.exists(ready))
    for _ in range(3):
        site.run(TWO, "echo fine")
        assert site.text(TWO, "out") == "fine\n"
    site.instance.cli("rm", str(job))
    wait_until(lambda: not site.instance.json("queue")["requests"])
    site.run(TWO, "echo fine")


BACKEND = """
import json, os, socket
found = {{}}
for path in {paths!r}:
    try:
        open(path, "rb").read(1)
        found[path] = "done"
    except OSError as e:
        found[path] = e.strerror
try:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect({socket!r})
        s.sendall(b"GET /v1/jobs HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
        found["api"] = s.recv(4096).split()[1].decode()
except OSError as e:
    found["api"] = e.strerror
open({answer!r}, "w").write(json.dumps(found))
raise SystemExit("no package")
"""


@pytest.mark.parametrize("hide", ["on", "off"])
def test_packages_of_an_environment(own, hide):
    """What a file of requirements brings with it runs before the job does, and gets no further."""
    one = own.instance
    own.server()
    agents.start(one, f"name: node\ncontainment: {{hide: {hide}}}\n", "node")
    wait_until(lambda: one.agents("connected"))
    key, answer = os.path.join(one.base, "node", "agent.key"), os.path.join(one.work, "answer")
    os.mkdir(f"{one.work}/evil")
    own.write("evil/pyproject.toml", '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
    own.write("evil/backend.py", BACKEND.format(paths=[key], socket=one.socket_path(), answer=answer))
    os.chown(f"{one.work}/evil", ONE.pw_uid, ONE.pw_gid)
    own.write("requirements.txt", f"{one.work}/evil\n")
    job = one.submit(sh("true", python_env="requirements.txt"))
    assert "Python environment" in held_for(one, job)
    with open(answer, encoding="utf-8") as f:
        found = json.load(f)
    assert found[key] == ("done" if hide == "off" else "No such file or directory"), found
    assert found["api"] == "403", found


def test_in_a_container(instance):
    """Its engine isolates it: no key, no socket and no process of Drover's is there."""
    with containers.engine_with_image(instance.base) as engine:
        instance.env.update(engine.env)
        instance.up()
        wait_until(lambda: instance.agents("connected"))
        instance.run(sh(f"ls {instance.dir} {instance.dir}/agent; cat /proc/[0-9]*/comm; echo end", container_image=engine.image,
                        universe="container", output="out", error="err"))
        words = instance.read("out").split()
        assert words[-1] == "end" and not [w for w in words if w.startswith("drover") or w.endswith((".key", ".sock", ".db"))], words



def test_a_process_that_nobody_can_look_at(instance):
    """An agent that ends what a container has left looks into no process of another user's: it could wait there for ever."""
    with containers.engine_with_image(instance.base) as engine, unseen.process(f"{instance.base}/silent", TWO) as pid:
        if not pid:
            pytest.skip("no file system of one's own here")
        instance.env.update(engine.env)
        instance.up()
        wait_until(lambda: instance.agents("connected"))
        for _ in range(2):
            instance.run(sh("echo fine", container_image=engine.image, universe="container", output="out", error="err"))
            assert instance.read("out") == "fine\n"


def held_for(one, job):
    """Why the job is held; its other ends are failures here."""
    one.wait_state(f"{job}.0", "held", "completed")
    record = one.job(f"{job}.0")
    assert record["state"] == "held", record
    return record["ad"]["HoldReason"]


OWN_FOLDER = "a folder of Drover's own"


@pytest.mark.parametrize("path", ["agent/agent.key", "ca/ca.key", "agent", "link/agent.key", "work/../state/agent/agent.key"])
def test_inputs_from_drovers_own_folders(own, path):
    """What the agent opens for a job is not what the job is kept from: a path into the hidden folders, or a link there, is refused."""
    one = own.instance
    one.up()
    os.symlink(f"{one.dir}/agent", f"{one.base}/link")
    base = one.dir if path.startswith(("agent", "ca")) else one.base
    job = one.submit(sh("cat *.key */*.key", output="out", error="err", should_transfer_files="IF_NEEDED",
                        when_to_transfer_output="ON_EXIT", transfer_input_files=os.path.join(base, path)))
    assert OWN_FOLDER in held_for(one, job)


def test_a_folder_that_has_drovers_own_in_it(own):
    """What is hidden is left out of a folder that is an input."""
    one = own.instance
    one.up()
    own.write("beside", "in no hidden folder")
    one.run(sh("find . -type f; cat */work/beside", output="out", error="err", should_transfer_files="IF_NEEDED",
               when_to_transfer_output="ON_EXIT", transfer_input_files=one.base))
    assert "/work/beside" in one.read("out") and "in no hidden folder" in one.read("out")
    assert ".key" not in one.read("out")


@pytest.mark.parametrize("name", ["{dir}/agent/left", "file://{dir}/agent/left", "{base}/link/left", "{dir}/agent/journal", "{base}/to_journal"])
def test_outputs_into_drovers_own_folders(own, name):
    one = own.instance
    one.up()
    os.symlink(f"{one.dir}/agent", f"{one.base}/link")
    os.symlink(f"{one.dir}/agent/journal", f"{one.base}/to_journal")
    job = one.submit(sh("echo evil >x", output="out", error="err", should_transfer_files="IF_NEEDED", when_to_transfer_output="ON_EXIT",
                        transfer_output_files="x", transfer_output_remaps=f'"x={name.format(dir=one.dir, base=one.base)}"'))
    assert OWN_FOLDER in held_for(one, job)
    assert not os.path.exists(f"{one.dir}/agent/left")
    assert os.path.getsize(f"{one.dir}/agent/journal") != len("evil\n")


def test_a_tree_into_drovers_own_folder(own):
    one = own.instance
    one.up()
    job = one.submit(sh("mkdir -p d/e; echo evil >d/e/x", output="out", error="err", should_transfer_files="IF_NEEDED",
                        when_to_transfer_output="ON_EXIT", transfer_output_files="d", transfer_output_remaps=f'"d={one.dir}/agent"'))
    assert OWN_FOLDER in held_for(one, job)
    assert not os.path.exists(f"{one.dir}/agent/e")


def test_a_log_in_drovers_own_folder(own):
    one = own.instance
    one.up()
    one.run(sh("true", log=f"{one.dir}/agent/left"))
    one.run(sh("true", log=f"{one.work}/log"))
    wait_until(lambda: "Job terminated" in one.read("log"))
    assert not os.path.exists(f"{one.dir}/agent/left")


def test_a_container_in_drovers_own_folder(instance):
    """A job's folder that is mounted in its container is not Drover's own, and shows nothing of that."""
    with containers.engine_with_image(instance.base) as engine:
        instance.env.update(engine.env)
        instance.up()
        wait_until(lambda: instance.agents("connected"))
        there = dict(container_image=engine.image, universe="container", should_transfer_files="NO", output=f"{instance.work}/out",
                     error=f"{instance.work}/err")
        job = instance.submit(sh("cat agent.key", initialdir=f"{instance.dir}/agent", **there))
        assert OWN_FOLDER in held_for(instance, job)
        key, names = f"{instance.dir}/ca/ca.key", {name: f'"{instance.dir}/agent/{name}"' for name in ("out.left", "err.left")}
        assert OWN_FOLDER in held_for(instance, instance.submit(sh("cat", input=key, **there)))
        for more in ({"+In": f'"{key}"'}, {"+Out": names["out.left"]}, {"+Err": names["err.left"]},
                     {"+StepCount": "2", "+Step1Cmd": '"/bin/cat"', "+Step1ContainerImage": f'"{engine.image}"', "+Step1In": f'"{key}"'}):
            job = instance.submit(sh("cat", **there, **{"+StreamsInSandbox": "true"}, **more))
            assert "is not in the job's folder" in held_for(instance, job), more
        assert not glob.glob(f"{instance.dir}/agent/*.left")
        instance.run(sh(f"find {instance.dir} -name '*.key'; ls; echo end >>$PWD/work/seen", initialdir=instance.base, **there))
        assert ".key" not in instance.read("out") and "work" in instance.read("out").split()
        assert instance.read("seen") == "end\n"


ENGINE = """#!/bin/sh
# The engine, in whose start another job of the same user has its moment: it runs the script of that job, once.
case " $* " in *" run "*) if mv {base}/moment.sh {base}/now.sh 2>/dev/null; then sh {base}/now.sh "$@" >{base}/moment.log 2>&1; fi ;; esac
exec {engine} "$@"
"""
REPLACED = "was replaced|the job's folder is gone"
# what another job does between the agent's look at a name and the engine's: the name, and how the job would see a key
MOMENTS = {
    "the job's folder": ("mv {work}/in {work}/away; ln -s {dir}/agent {work}/in", {"initialdir": "{work}/in"}),
    "another folder above it": ("mv {work}/up {work}/away; mkdir {work}/up; ln -s {dir}/agent {work}/up/in", {"initialdir": "{work}/up/in"}),
    "another folder in its place": ("mv {work}/in {work}/away; mkdir {work}/in", {"initialdir": "{work}/in"}),
    "the job's program": ("mv {work}/prog {work}/away; ln -s {dir}/agent/agent.key {work}/prog",
                          {"executable": "prog", "should_transfer_files": None, "initialdir": None}),
    "the sandbox": ("cd {dir}/agent/jobs; for j in [1-9]*; do mv $j {work}/away; ln -s {dir}/agent $j; done", {"initialdir": "{work}/in"}),
}


def contained(one, script, **more):
    text = {"container_image": one.engine.image, "universe": "container", "should_transfer_files": "NO", "output": f"{one.work}/out",
            "error": f"{one.work}/err", "initialdir": f"{one.work}/in", **more}
    return sh(script, **{key: value for key, value in text.items() if value})


@pytest.fixture(params=["podman"])
def moments(instance, request):
    """An instance whose engine gives another job its moment."""
    name = request.param
    with containers.engine_with_image(instance.base, name) as engine:
        instance.engine = engine
        instance.env.update(engine.env, PATH=f"{instance.base}/bin:{os.environ['PATH']}")
        os.mkdir(f"{instance.base}/bin")
        with open(f"{instance.base}/bin/{name}", "w", encoding="utf-8") as f:
            f.write(ENGINE.format(base=instance.base, engine=shutil.which(name)))
        if name != "podman":
            os.symlink("/bin/false", f"{instance.base}/bin/podman")
        os.chmod(f"{instance.base}/bin/{name}", 0o755)
        instance.up()
        wait_until(lambda: instance.agents("connected"))
        yield instance


@pytest.mark.parametrize("moments", ["podman", "docker"], indirect=True)
def test_names_are_replaced_as_a_container_starts(moments, long):
    """What the engine mounts is what the agent has looked at, or the job's program does not begin."""
    one = moments
    for moment, (does, words) in MOMENTS.items():
        if "another" in moment and not long:
            continue
        for folder in ("in", "up/in"):
            os.makedirs(f"{one.work}/{folder}")
        one.write("prog", "#!/bin/sh\ncat agent.key $DROVER_SCRATCH/agent.key\n")
        os.chmod(f"{one.work}/prog", 0o755)
        with open(f"{one.base}/moment.sh", "w", encoding="utf-8") as f:
            f.write(does.format(work=one.work, dir=one.dir) + "\n")
        words = {key: text and text.format(work=one.work) for key, text in words.items()}
        job = one.submit(contained(one, "cat agent.key $DROVER_SCRATCH/agent.key", **words))
        try:
            assert re.search(REPLACED, held_for(one, job)), moment
        finally:
            assert not os.path.exists(f"{one.base}/moment.sh"), "the engine was started"
            assert subprocess.run(["grep", "-r", "PRIVATE KEY", one.work], stdout=subprocess.PIPE, check=False).stdout == b""
        one.cli("rm", str(job))
        for name in os.listdir(one.work):
            path = f"{one.work}/{name}"
            (shutil.rmtree if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)


def test_variables_of_a_job_do_not_say_what_its_container_shows(moments):
    """What drover-init compares is the agent's word alone: a variable that is too long for the file of variables was podman's last word."""
    one = moments
    os.makedirs(f"{one.work}/in")
    one.run(contained(one, "stat -c %D /proc"))
    device = one.read("out").strip()
    with open(f"{one.base}/moment.sh", "w", encoding="utf-8") as f:
        f.write(f"mv {one.work}/in {one.work}/away; ln -s {one.dir}/agent {one.work}/in\n")
    own = " ".join(f"DROVER_MOUNT_{n}={device}:1:{'/' * 4050}proc" for n in range(4))
    job = one.submit(contained(one, "cat agent.key", environment=f'"{own}"'))
    try:
        assert re.search(REPLACED, held_for(one, job))
    finally:
        assert not one.exists("out") or "PRIVATE KEY" not in one.read("out")


@pytest.mark.parametrize("moments", ["podman", "docker"], indirect=True)
def test_a_command_in_a_container_checks_the_mounts_too(moments):
    """drover exec may come before the container's first process has checked them, which another job of the same user can stop."""
    one = moments
    os.makedirs(f"{one.work}/in")
    job = one.submit(contained(one, "sleep 600"))
    wait_until(lambda: one.cli("exec", f"{job}.0", "--", "echo", "here", code=None) == "here\n")
    said = one.cli("exec", f"{job}.0", "--", "sh", "-c", "pwd; env; exit 7", code=7)
    assert f"{one.work}/in" in said.split() and "DROVER_MOUNT_" not in said
    one.cli("rm", str(job))
    st = os.stat(one.work)
    for variables, code in (({}, 125), ({"DROVER_MOUNT_0": f"1:1:{one.work}"}, 125), ({"DROVER_MOUNT_0": f"{st.st_dev:x}:{st.st_ino:x}:{one.work}"}, 7)):
        p = subprocess.run([one.program("drover-init"), "--", "/bin/sh", "-c", "exit 7"], env=variables, capture_output=True, check=False)
        assert p.returncode == code, p.stderr


def test_folders_of_drovers_beneath_a_containers(moments):
    """They have nothing but the way to the sandbox there, by whatever name the folder above them was mounted, and stay where they are."""
    one = moments
    above = os.path.dirname(one.base)
    os.symlink(above, f"{one.base}/link")
    script = "mv {there} {there}.moved; ls {there}/state; sed -n 1p {there}/state/agent/agent.key; echo end"
    os.mkdir(f"{one.work}/in")
    for there in (one.base, f"{one.base}/link/{os.path.basename(one.base)}"):
        try:
            one.run(contained(one, script.format(there=there), initialdir=os.path.dirname(there), output=f"{one.work}/out"))
        finally:
            if os.path.exists(f"{one.base}.moved"):
                os.rename(f"{one.base}.moved", one.base)
        assert one.read("out").replace("agent\n", "") == "end\n" and "busy" in one.read("err"), one.read("err")


def test_a_container_s_file_of_variables_is_not_in_its_sandbox(moments):
    """Another job that puts a link in its place there has nothing of the agent's in the container's environment."""
    one = moments
    os.mkdir(f"{one.work}/in")
    one.write("secret", "AGENT_SECRET=1\n")
    os.rename(f"{one.work}/secret", f"{one.dir}/agent/secret")
    with open(f"{one.base}/moment.sh", "w", encoding="utf-8") as f:
        f.write(f"for j in {one.dir}/agent/jobs/[1-9]*/.drover_container.0; do ln -sf {one.dir}/agent/secret $j/env; done\n")
    one.run(contained(one, "env", environment='"GIVEN=word"'))
    assert not os.path.exists(f"{one.base}/moment.sh"), "the engine was started"
    assert "GIVEN=word" in one.read("out").split() and "AGENT_SECRET" not in one.read("out")
    wait_until(lambda: not glob.glob(f"{one.dir}/agent/container-env.*"))
