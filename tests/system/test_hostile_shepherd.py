"""The shepherd, which is root, against a program that has its agent's uid, and asks for all that it should not get."""
import contextlib
import ctypes
import errno
import os
import resource
import signal
import socket
import struct
import subprocess
import time

import pytest
import unseen

from drover import Failed, alive, processes, wait_until
from users import AGENT, LOW, ONE, TWO, as_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the shepherd that has something to give away is root's")

HELLO, START, KILL, SUSPEND, RESUME, FORGET, LEASE, _QUIT, MEMORY, _WELCOME, CHILD, LISTED, SIGNAL = range(1, 14)
START_BY = 16
MAKE, REMOVE, STDIN_FD, CONTAINER, SHARE, CREDENTIALS = 8, 16, 32, 64, 128, 256
RUNNING, EXITED, FAILED = range(3)
REQUEST, _FORK, CGROUP, RLIMIT, USER, SANDBOX = range(6)
DEADLINE = 12
EPERM, EINVAL = 1, 22
NO_SLOT = 0xffffffff
WHOM = {"one@local": ONE.pw_name, "two@local": TWO.pw_name, "low@local": LOW.pw_name, "root@local": "root",
        "agent@local": AGENT.pw_name}
USUAL = [f"{owner} {user}" for owner, user in WHOM.items()]


class Child:
    """What the shepherd tells of one."""

    def __init__(self, record):
        (self.request,) = struct.unpack_from("Q", record, 8)
        self.state, self.why, _slot, self.pid, self.status, self.error, self.where = struct.unpack_from("IIIiiII", record, 32)


class Site:
    """A shepherd as root's agent starts it, in folders as that makes them, and a peer with the agent's uid."""

    def __init__(self, instance):
        self.base, self.program = instance.base, instance.program("drover-shepherd")
        os.chmod(os.path.dirname(self.base), 0o711)
        os.chmod(self.base, 0o711)
        self.state, self.own, self.home = (os.path.join(self.base, name) for name in ("node", "node/agent", "home"))
        for path, mode, user, group in ((self.state, 0o755, 0, 0), (self.own, 0o700, AGENT.pw_uid, AGENT.pw_gid),
                                        (os.path.join(self.state, "jobs"), 0o751, 0, AGENT.pw_gid), (self.home, 0o777, 0, 0)):
            os.mkdir(path)
            os.chown(path, user, group)
            os.chmod(path, mode)
        self.map = self.file(os.path.join(self.state, "users"), "\n".join(USUAL) + "\n", mode=0o644)
        self.number, self.process, self.peer = 0, None, None
        self.serve()

    def serve(self):
        ours, theirs = os.pipe()
        with open(os.path.join(self.base, "shepherd.log"), "ab") as log:
            groups = [word for d in own_groups() for word in ("--cgroup", d)]
            self.process = subprocess.Popen([self.program, "--dir", self.state, "--instance", "hostile", "--users", self.map,
                                             "--min-uid", str(ONE.pw_uid), "--agent-uid", str(AGENT.pw_uid), *groups,
                                             "--ready-fd", str(theirs)], pass_fds=[theirs], stdout=log, stderr=log)
        os.close(theirs)
        with os.fdopen(ours, "rb") as f:
            assert f.read() == b"ready"
        self.connect()

    @staticmethod
    def file(path, text, user=None, mode=0o600):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        if user:
            os.chown(path, user.pw_uid, user.pw_gid)
        return path

    def connect(self):
        """The kernel tells the shepherd who connected: somebody with the agent's uid, who hands the socket to us."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)

        def call():
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.connect(os.path.join(self.state, "shepherd.sock"))
                socket.send_fds(theirs, [b"x"], [s.fileno()])

        with ours, theirs:
            as_user(AGENT, call)
            _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
        if self.peer:
            self.peer.close()
        self.peer = socket.socket(fileno=fd)
        self.peer.settimeout(60)
        return self.peer

    def say(self, kind, *numbers, form="", request=0):
        body = struct.pack("QIIII", request, 0, 1, 0, 0) + struct.pack(form, *numbers)
        self.peer.send(struct.pack("II", 8 + len(body), kind) + body)

    def lease(self, until):
        self.peer.send(struct.pack("IIQ", 16, LEASE, until))

    def hello(self):
        self.peer.send(struct.pack("IIIi", 16, HELLO, 1, 1))

    def packed(self, *argv, owner="one@local", user=ONE.pw_name, sandbox="", cwd="/", out="", cgroups=(), flags=0, env=(),
               rlimits=(), walltime=0, request=None, slot=NO_SLOT, counts=None):
        self.number += 1
        request = request or self.number
        words = [owner, user, sandbox, cwd, "", out, out, argv[0] if argv else "", *cgroups, *argv, *env]
        text = b"".join(w.encode() + b"\0" for w in words)
        limits = b"".join(struct.pack("IIQQ", what, 0, soft, soft) for what, soft in rlimits).ljust(192, b"\0")
        text = (struct.pack("QIIIIIIIIIIQ", request, 0, 1, 0, 0, flags, slot, *(counts or (len(cgroups), len(argv), len(env))),
                            len(rlimits), walltime) + limits + text)
        text += bytes(-(8 + len(text)) % 8)
        return struct.pack("II", 8 + len(text), START) + text

    def start(self, *argv, **more):
        self.peer.send(self.packed(*argv, **more))
        return self.number

    def told(self, request):
        """All that is told of it from now on, until it has ended."""
        while True:
            data = self.peer.recv(1 << 18)
            assert data, "the shepherd has gone, or has dropped us"
            at = 0
            while at < len(data):
                size, kind = struct.unpack_from("II", data, at)
                if kind == CHILD and (child := Child(data[at:at + size])).request == request:
                    yield child
                at += size

    def end(self, request):
        return next(c for c in self.told(request) if c.state != RUNNING)

    def run(self, *argv, **more):
        return self.end(self.start(*argv, **more))

    def serves(self):
        """It lives, and does what it should for an agent that connects."""
        self.connect()
        self.hello()
        child = self.run("/bin/true")
        assert (child.state, child.status) == (EXITED, 0) and self.process.poll() is None

    def refused(self, message, fds=()):
        """The message ends the connection, and nothing else."""
        self.connect()
        socket.send_fds(self.peer, [message], fds) if fds else self.peer.send(message)  # pylint: disable=expression-not-assigned
        assert self.peer.recv(1) == b""
        self.serves()

    def wait_pid(self, name):
        path = os.path.join(self.home, name)
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path) and open(path, encoding="utf-8").read().endswith("\n"))
        with open(path, encoding="utf-8") as f:
            return int(f.read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        self.peer.close()


def own_groups():
    """Where control groups of ours can be made, as the agent tells the shepherd: version 2's, and version 1's freezer."""
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        paths = {names: path for _, names, path in (line.rstrip("\n").split(":", 2) for line in f)}
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            head, tail = line.split(" - ")
            kind, _, options = tail.split(None, 2)
            if kind == "cgroup2" and "" in paths:
                found.insert(0, head.split()[4] + paths[""].rstrip("/"))
            elif kind == "cgroup" and "freezer" in options.strip().split(",") and "freezer" in paths:
                found.append(head.split()[4] + paths["freezer"].rstrip("/"))
    return [d for d in found if os.access(os.path.join(d, "cgroup.procs"), os.W_OK)]


@pytest.fixture
def site(instance):
    one = Site(instance)
    one.hello()
    yield one
    one.stop()


@contextlib.contextmanager
def innocent(user=None, env=None):
    """A process that is nobody's business; it must live."""
    p = subprocess.Popen(["sleep", "1000"], user=user.pw_uid if user else None, env=env, start_new_session=True)
    try:
        yield p.pid
        assert p.poll() is None, "it was ended by somebody"
    finally:
        p.kill()
        p.wait()


def sealed(data, seals=0xe):
    fd = os.memfd_create("t", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    ctypes.CDLL(None).fcntl(fd, 1033, seals)  # F_ADD_SEALS
    return fd


def test_whom_it_makes_of_whom(site):
    """What the map does not say is refused; and what it says, too, where nobody may be that user."""
    for owner, user in (("one@local", TWO.pw_name), ("one@local", "root"), ("root@local", "root"), ("low@local", LOW.pw_name),
                        ("agent@local", AGENT.pw_name), ("one@local", ""), ("", ""), ("", ONE.pw_name), ("nobody@known", ONE.pw_name),
                        ("one@local", "0"), ("one@local", str(ONE.pw_uid)), ("one@local " + ONE.pw_name, "root"),
                        ("one@local\nroot@local", "root"), ("#", "root"), ("*@local", "root"), ("x" * 5000, ONE.pw_name),
                        ("one@local", ONE.pw_name + "\n"), ("two@local", ONE.pw_name)):
        child = site.run("/bin/sh", "-c", f"id -u >{site.home}/who", owner=owner, user=user)
        assert (child.state, child.where, child.error) == (FAILED, USER, EPERM), (owner, user)
    assert not os.path.exists(os.path.join(site.home, "who"))
    assert site.run("/bin/sh", "-c", "id -u; id -G", out=os.path.join(site.home, "who")).state == EXITED
    with open(os.path.join(site.home, "who"), encoding="utf-8") as f:
        assert f.read() == f"{ONE.pw_uid}\n{ONE.pw_gid}\n"


def test_it_opens_nothing_that_its_agent_names(site):
    """Control groups: an agent of another user has none to name, be they files, links, or the kernel's."""
    secret = site.file(os.path.join(site.base, "secret"), "root's\n")
    with innocent() as pid:
        linked, plain = (os.path.join(site.own, name) for name in ("linked", "plain"))
        os.mkdir(linked)
        os.symlink(secret, os.path.join(linked, "cgroup.procs"))
        os.mkdir(plain)
        site.file(os.path.join(plain, "cgroup.procs"), f"{pid}\n", AGENT)
        for name in ("cgroup.kill", "cgroup.freeze", "freezer.state"):
            os.symlink(secret, os.path.join(plain, name))
        for folder in (linked, plain, *own_groups(), "/proc/self/root", "..", ""):
            for slot in (0, 4095, 4096, NO_SLOT):
                child = site.run("/bin/true", cgroups=[folder], slot=slot)
                assert (child.state, child.where, child.error) == (FAILED, CGROUP, EPERM), folder
        with open(secret, encoding="utf-8") as f:
            assert f.read() == "root's\n"
    # standard streams and folders are opened by the job's user
    for more in ({"out": secret}, {"cwd": site.own}, {"sandbox": site.own, "cwd": ""}):
        assert site.run("/bin/true", **more).state == FAILED
    os.symlink(secret, os.path.join(site.home, "link"))
    assert site.run("/bin/true", out=os.path.join(site.home, "link")).state == FAILED
    with open(secret, encoding="utf-8") as f:
        assert f.read() == "root's\n"


def test_sandboxes_are_in_their_folder(site):
    jobs = os.path.join(site.state, "jobs")
    for path in ("..", "../x/..", jobs + "/..", ".", "", "/", jobs + "/a\nb", jobs + "/a b", jobs + "/\x7f", "x" * 300):
        child = site.run("/bin/true", sandbox=path, flags=MAKE | SHARE | REMOVE)
        assert child.state == FAILED and child.where == SANDBOX and child.error, path
    assert os.listdir(jobs) == []
    # only the name counts: whatever folder is named before it, nothing there is touched
    before = os.stat("/etc")
    site.run("/bin/true", sandbox="/etc", flags=MAKE | REMOVE)
    after = os.stat("/etc")
    assert (before.st_uid, before.st_mode, before.st_mtime_ns) == (after.st_uid, after.st_mode, after.st_mtime_ns)
    wait_until(lambda: os.listdir(jobs) in ([], ["etc"]))
    # another user's
    request = site.start("/bin/sleep", "1000", sandbox=jobs + "/7.0.1", flags=MAKE)
    wait_until(lambda: os.path.isdir(jobs + "/7.0.1"))
    child = site.run("/bin/true", sandbox=jobs + "/7.0.1", owner="two@local", user=TWO.pw_name, flags=MAKE | SHARE)
    assert (child.state, child.where, child.error) == (FAILED, SANDBOX, EPERM)
    assert os.stat(jobs + "/7.0.1").st_uid == ONE.pw_uid
    site.say(KILL, 0, form="Q", request=request)
    site.end(request)
    # its folder of credentials may be anything
    victim = os.path.join(site.base, "victim")
    os.makedirs(os.path.join(victim, ".drover_credentials"))
    keep = site.file(os.path.join(victim, ".drover_credentials", "keep"), "")
    os.symlink(os.path.join(victim, ".drover_credentials"), jobs + "/7.0.1/.drover_credentials")
    for path in (victim, jobs + "/7.0.1", jobs + "/../../victim"):
        request = site.start("/bin/sleep", "1000", sandbox=path, flags=CREDENTIALS)
        site.lease(1)
        assert site.end(request).why == 3
        site.lease(0)
    assert os.path.exists(keep)


def test_limits_are_never_raised(site):
    """Root could raise them: real-time priority, locked memory. A job's are no higher than the shepherd's own."""
    most = [resource.getrlimit(r)[1] for r in (resource.RLIMIT_RTPRIO, resource.RLIMIT_NOFILE)]
    got = os.path.join(site.home, "limits")
    site.run("/bin/bash", "-c", "ulimit -Hr; ulimit -Hn", out=got, rlimits=[(14, 99), (7, 1 << 30)])
    with open(got, encoding="utf-8") as f:
        assert [int(line) for line in f] == [min(most[0], 99) if most[0] >= 0 else 99, min(most[1], 1 << 30)]
    for what in (16, 999, 0xffffffff):
        child = site.run("/bin/true", rlimits=[(what, 1)])
        assert (child.state, child.where) == (FAILED, RLIMIT)


@pytest.mark.parametrize("flags", [0, CONTAINER])
def test_processes_of_others(site, flags):
    """It signals what it has started. A marker that it is given makes nobody else's process one of its children's."""
    marker = "_DROVER_ATTEMPT=other/1.0.1"
    with innocent(TWO, {"_DROVER_ATTEMPT": "other/1.0.1"}) as pid:
        request = site.start("/bin/sleep", "1000", env=[marker], flags=flags)
        assert next(site.told(request)).state == RUNNING
        for kind in (SUSPEND, RESUME):
            site.say(kind, request=request)
        for number in (0, -9, 9999, 1 << 30):
            site.say(SIGNAL, number, 0, form="iI", request=request)
        for other in (0, pid, request + 1, 1 << 63):
            site.say(KILL, 0, form="Q", request=other)
            site.say(SIGNAL, 9, 0, form="iI", request=other)
            site.say(SUSPEND, request=other)
        site.say(KILL, 0, form="Q", request=request)
        assert site.end(request).why == 1
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            assert f.read().rsplit(") ", 1)[1][0] in "SR"


def test_nothing_of_a_job_is_left(site):
    """A process in a session of its own, without a variable, whose parent is gone: it ends with its job."""
    other = site.start("/bin/sleep", "1000", owner="two@local", user=TWO.pw_name)
    assert next(site.told(other)).state == RUNNING
    script = "setsid env -i /bin/sh -c 'echo $$ >left.new; mv left.new left; exec sleep 1000' & while [ ! -e left ]; do sleep 0.01; done"
    for how in ("ends", "killed"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(site.home, "left"))
        request = site.start("/bin/sh", "-c", script + ("; sleep 1000" if how == "killed" else ""), cwd=site.home)
        left = site.wait_pid("left")
        if how == "killed":
            site.say(SUSPEND, request=request)
            site.say(KILL, 0, form="Q", request=request)
        assert site.end(request).state == EXITED
        assert not alive(left), how
    # and when the shepherd has died
    os.unlink(os.path.join(site.home, "left"))
    site.start("/bin/sh", "-c", script + "; sleep 1000", cwd=site.home)
    left = site.wait_pid("left")
    site.process.kill()
    site.process.wait()
    site.serve()
    wait_until(lambda: not alive(left))


@pytest.mark.parametrize("begins", [False, True])
def test_a_process_that_nobody_can_look_at(site, begins):
    """Whoever reads its environment waits for ever. Its user's jobs, and those of others, are started, ended and told of all the same; and so
    it is when the shepherd is started and looks for what an earlier one has left."""
    marker = "_DROVER_ATTEMPT=hostile/{}.0.1"
    with unseen.process(os.path.join(site.base, "silent"), TWO) as pid:
        if not pid:
            pytest.skip("no file system of one's own here")
        if begins:
            site.process.kill()
            site.process.wait()
            site.serve()
            site.hello()
        for _ in range(2):
            request = site.number + 1
            site.start("/bin/sh", "-c", "setsid sleep 1000 & echo $! >left.new; mv left.new left; sleep 1000", cwd=site.home,
                       env=[marker.format(request)], flags=CONTAINER)
            left = site.wait_pid("left")
            site.say(KILL, 0, form="Q", request=request)
            assert site.end(request).why == 1
            assert not alive(left)
            os.unlink(os.path.join(site.home, "left"))
        site.serves()
        assert pid not in processes(site.base)  # nor do tests wait that run beside this one


def test_messages_that_are_none(site):
    good = site.packed("/bin/true")
    for message in (b"", b"x", bytes(7), bytes(8), struct.pack("II", 0, START), struct.pack("II", 7, START), struct.pack("II", 12, START) + bytes(4),
                    struct.pack("II", 0xfffffff8, START), struct.pack("II", 1 << 20, START) + bytes(1000), good[:-8], good + b"12345678",
                    good + good[:100], struct.pack("II", 8, MEMORY)[:4], os.urandom(60000)):
        if message == b"":
            continue  # a SEQPACKET's end
        site.refused(message)
    site.connect()
    site.hello()
    # records that are whole, and say too much or too little of what is behind them
    for counts in ((0, 0, 0), (0, 1 << 31, 0), (0, 131072, 131072), (0, 1, 131073), (9, 1, 0), (0xffffffff, 1, 0), (0, 9, 0), (0, 1, 9)):
        child = site.run("/bin/true", counts=counts)
        assert (child.state, child.where, child.error) == (FAILED, REQUEST, EINVAL), counts
    for kind in (KILL, SUSPEND, FORGET, LEASE, SIGNAL, START, 0, 14, 0xffffffff):
        site.peer.send(struct.pack("II", 8, kind))
    for until in (1 << 62, (1 << 63) - 1):
        site.lease(until)
    request = site.start("/bin/sleep", "1000", walltime=(1 << 64) - 1)
    site.say(KILL, (1 << 64) - 1, form="Q", request=request)
    assert site.end(request).why == 1
    site.serves()


def test_descriptors(site):
    """Those that come with a message: as many as are wanted, of the kind that is wanted, and none of them stays."""
    fds = lambda: len(os.listdir(f"/proc/{site.process.pid}/fd"))  # noqa: E731
    assert site.run("/bin/true").state == EXITED  # its group is kept open, for the next one
    before = fds()
    batch = site.packed("/bin/true", request=1 << 40)
    with open("/dev/null", "rb") as null:
        for count in (2, 3, 100, 253):
            site.refused(struct.pack("IIIi", 16, HELLO, 1, 1), [null.fileno()] * count)
        site.connect()
        for _ in range(2000):
            socket.send_fds(site.peer, [struct.pack("II", 8, 0)], [null.fileno()])
    site.serves()
    assert fds() < before + 30  # some groups
    memory = struct.pack("II", 8, MEMORY)
    path = site.file(os.path.join(site.own, "batch"), "", AGENT)
    with open(path, "r+b") as f:
        f.write(batch)
        f.flush()
        site.refused(memory, [f.fileno()])  # it could change, or become shorter, while it is read
    for seals in (0, 0x2, 0x8):
        fd = sealed(batch, seals)
        site.refused(memory, [fd])
        os.close(fd)
    for data in (b"x", batch[:-8], batch + b"x"):
        fd = sealed(data)
        site.refused(memory, [fd])
        os.close(fd)
    ours, theirs = os.pipe()
    site.refused(memory, [ours])
    os.close(ours), os.close(theirs)
    assert site.run("/bin/true", flags=STDIN_FD).state == FAILED
    fd = sealed(site.packed("/bin/true"))
    site.connect()
    site.hello()
    socket.send_fds(site.peer, [memory], [fd])
    os.close(fd)
    assert site.end(site.number).state == EXITED
    assert fds() < before + 30  # some groups


def test_thousands(site):
    """Children that the agent does not forget, and questions whose answers it does not read, cost no more than they may."""
    for _ in range(400):
        site.peer.send(b"".join(site.packed(counts=(0, 0, 0)) for _ in range(100)))
    site.connect()
    site.hello()
    with open(f"/proc/{site.process.pid}/status", encoding="utf-8") as f:
        kib, = [int(line.split()[1]) for line in f if line.startswith("VmRSS")]
    assert kib < 64 << 10
    for request in range(1, site.number + 1):
        if request % 200 == 1:
            site.connect()
            site.peer.send(b"".join(struct.pack("IIQIIII", 32, FORGET, r, 0, 1, 0, 0) for r in range(request, request + 200)))
    site.serves()
    # a peer that never reads does not hold up who would run too long
    began = time.monotonic()
    site.start("/bin/sh", "-c", "echo $$ >late.new; mv late.new late; exec sleep 1000", cwd=site.home, walltime=1000)
    late = site.wait_pid("late")
    site.peer.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        for _ in range(3000):
            site.peer.send(struct.pack("IIIi", 16, HELLO, 1, 1) * 4000)
    wait_until(lambda: not alive(late))
    assert time.monotonic() - began < 60
    site.serves()


def test_nobody_else_connects(site):
    def call():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            try:
                s.connect(os.path.join(site.state, "shepherd.sock"))
            except PermissionError:
                return "refused"
        return "connected"

    for user in (ONE, TWO, LOW):
        assert as_user(user, call) == "refused"


def test_folders_that_are_not_roots(site):
    """Where somebody else could put something in its place, it does not begin."""
    site.stop()
    for path, user, mode in ((site.state, 0, 0o777), (site.state, AGENT.pw_uid, 0o755), (os.path.join(site.state, "jobs"), 0, 0o777),
                             (os.path.join(site.state, "jobs"), AGENT.pw_uid, 0o755)):
        was = os.stat(path)
        os.chown(path, user, -1)
        os.chmod(path, mode)
        p = subprocess.run([site.program, "--dir", site.state, "--instance", "hostile", "--users", site.map, "--agent-uid",
                            str(AGENT.pw_uid)], capture_output=True, timeout=60, check=False)
        assert p.returncode == 1 and b"cannot trust the state folder" in p.stderr, (path, p.stderr)
        os.chown(path, was.st_uid, was.st_gid)
        os.chmod(path, was.st_mode & 0o7777)
    site.serve()
    site.hello()


def has_begun(site, request):
    """By the file that its agent reads."""
    with open(os.path.join(site.state, "shepherd.begun"), "rb") as f:
        _, pid, used = struct.unpack("QiI", f.read(16))
        ids = f.read(24 * used)
    assert pid == site.process.pid
    return any(struct.unpack_from("Q", ids, 24 * i)[0] == request for i in range(used))


def start_by(site, seconds, path):
    """The time of a start goes before it, and is of that one only."""
    boot = int((time.clock_gettime(time.CLOCK_BOOTTIME) + seconds) * 1000)
    site.peer.send(struct.pack("IIQ", 16, START_BY, boot) + site.packed("/bin/sh", "-c", f"echo ran >{path}; exec sleep 1000"))
    return site.number


def test_a_start_that_is_read_too_late(site):
    late, other = os.path.join(site.home, "late"), os.path.join(site.home, "other")
    refused = site.end(start_by(site, -1, late))
    assert (refused.state, refused.where, refused.error) == (FAILED, DEADLINE, errno.ETIMEDOUT)
    assert not has_begun(site, refused.request)
    started = start_by(site, 60, other)
    assert next(site.told(started)).state == RUNNING and has_begun(site, started)
    wait_until(lambda: os.path.exists(other))
    site.say(KILL, 0, form="Q", request=started)
    site.end(started)
    assert has_begun(site, started), "its end may not have been told yet"
    site.say(FORGET, request=started)
    wait_until(lambda: not has_begun(site, started))
    without = site.run("/bin/true")
    assert (without.state, without.status) == (EXITED, 0)
    assert not os.path.exists(late)


def test_a_start_of_an_agent_that_has_gone(site):
    """The next one may rely on it: what has not begun does not any more."""
    mark = os.path.join(site.home, "gone")
    os.kill(site.process.pid, signal.SIGSTOP)
    request = start_by(site, 60, mark)
    site.connect()
    assert not has_begun(site, request)
    os.kill(site.process.pid, signal.SIGCONT)
    site.hello()
    refused = site.end(request)
    assert (refused.state, refused.where) == (FAILED, DEADLINE)
    assert not os.path.exists(mark)
    site.serves()


def test_what_was_begun_is_not_the_agents_to_write(site):
    """A file that shrinks would end who has it in memory."""
    path = os.path.join(site.state, "shepherd.begun")
    for mode in ("r+b", "wb"):
        with pytest.raises(Failed, match="PermissionError"):
            as_user(AGENT, lambda mode=mode: open(path, mode).close())  # pylint: disable=consider-using-with,unspecified-encoding
    as_user(AGENT, lambda: open(path, "rb").close())  # pylint: disable=consider-using-with
    with pytest.raises(Failed):
        as_user(AGENT, lambda: os.unlink(path))
