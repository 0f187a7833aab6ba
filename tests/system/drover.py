"""An instance of Drover in a temporary folder: start it, talk to it, hurt it, stop it."""
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time


class Failed(AssertionError):
    """A program ended otherwise than the test asked."""


LIMIT = 180.0  # seconds: only what hangs takes so long, however loaded the machine is
_claims = []


def wait_until(what, seconds=LIMIT, every=0.05):
    """Calls what() until it returns something true, and returns that. Fails after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        got = what()
        if got:
            return got
        if time.monotonic() > end:
            raise Failed(f"not true within {seconds} s: {getattr(what, '__doc__', None) or what}")
        time.sleep(every)


def free_port():
    """A TCP port for a daemon that is started later. It is below those which the kernel takes for connections, and no other
    test of this machine is given it while this process lives."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(20000, 32768)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0drover-test-port-{port}")
            with socket.socket() as s:
                s.bind(("", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port
    raise Failed("no port is free")


UNSEEN = b"unseen\n"  # the name of the processes that unseen.py makes: who reads their memory waits for ever


def of_process(pid, name):
    """What /proc/PID/NAME has: nothing if the process has gone, or if it is one that a test beside this one has made unreadable."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as f:
            if f.read() == UNSEEN:
                return b""
        with open(f"/proc/{pid}/{name}", "rb") as f:
            return f.read()
    except OSError:  # ESRCH, too: it was there when its file was opened, and has gone since
        return b""


def all_pids():
    """Numbers of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def processes(dir_text, program=None):
    """Numbers of the living processes whose command line, environment or folder names this one (and whose program
    is so)."""
    found, text = [], dir_text.encode()
    for pid in all_pids():
        try:
            exe = os.readlink(f"/proc/{pid}/exe")
            cwd = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        name = os.path.basename(exe).replace(" (deleted)", "")
        if pid == os.getpid() or (program and name != program):
            continue
        if (dir_text in cwd or text in of_process(pid, "cmdline") or text in of_process(pid, "environ")) and alive(pid):
            found.append(pid)
    return found


def with_command_line(*words):
    """Numbers of the living processes whose command line begins with these words."""
    start = b"".join(word.encode() + b"\0" for word in words)
    return [pid for pid in all_pids() if of_process(pid, "cmdline").startswith(start) and alive(pid)]


def _stat(pid):
    """The fields of its line from the state on; none if it has gone."""
    return of_process(pid, "stat").rpartition(b") ")[2].split()


def alive(pid):
    return _stat(pid)[:1] not in ([], [b"Z"])


def parent(pid):
    """0 if the process has gone."""
    return int((_stat(pid)[1:2] or [0])[0])


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    """A program that we started. Its output is in a file, for the report of a failed test."""

    def __init__(self, name, argv, log, env, cwd):
        self.name, self.log = name, log
        with open(log, "ab") as out:
            out.write(f"--- {' '.join(argv)}\n".encode())
            out.flush()
            self.start_offset = out.tell()
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                            env=env, cwd=cwd)
        self.pid = self.process.pid

    def output(self):
        with open(self.log, "rb") as f:
            f.seek(self.start_offset)
            return f.read().decode(errors="replace")

    def running(self):
        return self.process.poll() is None

    def stop(self, how=signal.SIGTERM, seconds=LIMIT):
        """Ends it by its number. Returns its exit status (negative: the signal)."""
        if self.running():
            self.process.send_signal(how)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise Failed(f"{self.name} did not end within {seconds} s of {signal.Signals(how).name}") from None
        return self.process.returncode

    def kill(self):
        return self.stop(signal.SIGKILL)


class Instance:
    """A folder with a server and agents. Not started until up() or server() is called."""

    def __init__(self, build, folder):
        self.build = os.path.abspath(build)
        self.base = str(folder)
        self.dir = os.path.join(self.base, "state")
        self.work = os.path.join(self.base, "work")
        os.makedirs(self.work)
        self.daemons = []
        self.store = None  # an address for `store:`
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("DROVER_", "XDG_"))}
        self.env.update(DROVER_DIR=self.dir, HOME=self.base, TMPDIR=self.base, NO_COLOR="1", LC_ALL="C.UTF-8",
                        PATH=os.path.join(self.build, "bin") + ":" + os.environ["PATH"])
        if "DROVER_TEST_THREADS" in os.environ:  # reports of ThreadSanitizer: see stop()
            self.env["TSAN_OPTIONS"] = f"log_path={self.base}/races:exitcode=0:die_after_fork=0"

    # -- programs ---------------------------------------------------------------------------------------------

    def program(self, name):
        path = os.path.join(self.build, "bin", name)
        if not os.access(path, os.X_OK):
            raise Failed(f"{path} is not there: run `make build` first")
        return path

    def start(self, name, *args):
        argv = [self.program(name), *args]
        if name == "droverd" and os.geteuid() == 0 and "--user" not in args:  # whoever else this machine has
            argv += ["--user", "root"]
        if self.store and name == "droverd" and "--store" not in args:
            argv += ["--store", self.store]
        elif self.store and args[:1] == ("up",):
            os.makedirs(self.dir, mode=0o700, exist_ok=True)
            with open(os.path.join(self.dir, "droverd.yaml"), "a+", encoding="utf-8") as f:
                f.seek(0)
                if not re.search("^store:", f.read(), re.M):
                    f.write(f"store: {self.store}\n")
        return self.run_daemon(name, argv)

    def run_daemon(self, name, argv):
        daemon = Daemon(name, argv, os.path.join(self.base, f"{name}.log"), self.env, self.base)
        self.daemons.append(daemon)
        return daemon

    def _ready(self, daemon, seconds):
        def ready():
            """the daemon prints `ready`"""
            if not daemon.running():
                raise Failed(f"{daemon.name} ended with {daemon.process.returncode}:\n{daemon.output()}")
            return re.search(r"^ready\b", daemon.output(), re.M)

        wait_until(ready, seconds)
        return daemon

    def up(self, *args, seconds=LIMIT, agent=True):
        """`drover up`, until it prints `ready` and its agent is connected."""
        daemon = self._ready(self.start("drover", "up", *args), seconds)
        if agent:
            wait_until(lambda: self.agents("connected"), seconds)
        return daemon

    def server(self, *args, seconds=LIMIT):
        """A server alone, until its server.json is there."""
        daemon = self.start("droverd", "--dir", self.dir, *args)

        def ready():
            """the server has written server.json"""
            if not daemon.running():
                raise Failed(f"droverd ended with {daemon.process.returncode}:\n{daemon.output()}")
            try:
                return self.server_pid() == daemon.pid
            except (OSError, ValueError):
                return False

        wait_until(ready, seconds)
        return daemon

    def kill_server(self, how=signal.SIGKILL):
        """As it ends in a crash. Another one can be started then: what it had locked is free once it was waited for."""
        daemon, = (d for d in self.daemons if d.name == "droverd" and d.running())
        self.daemons.remove(daemon)
        daemon.stop(how)

    def server_json(self):
        with open(os.path.join(self.dir, "server.json"), encoding="utf-8") as f:
            return json.load(f)

    def server_pid(self):
        return self.server_json()["pid"]

    def pids(self, program):
        return processes(self.base, program)

    def stop(self):
        """Stops what was started, newest first; then nothing of this folder may be running."""
        late = []
        for daemon in reversed(self.daemons):
            try:
                if daemon.running() and daemon.stop() not in (0, -signal.SIGTERM):
                    late.append(f"{daemon.name} ended with {daemon.process.returncode} when it was stopped")
            except Failed as e:
                late.append(str(e))
        self.daemons.clear()
        # Shepherds outlive their agents, with the jobs that run. So does the process that podman keeps for the namespaces
        # of an ordinary user, once it was asked anything.
        for pid in self.pids("drover-shepherd") + processes(self.base, "catatonit"):
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, signal.SIGTERM)

        end = time.monotonic() + LIMIT
        while (left := processes(self.base)) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in left:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    late.append(f"left running: {pid} " + f.read().replace(b"\0", b" ").decode(errors="replace"))
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for name in sorted(os.listdir(self.base)):
            if name.startswith("races."):
                with open(os.path.join(self.base, name), encoding="utf-8", errors="replace") as f:
                    late.append(f.read())
        if late:
            raise Failed("; ".join(late))

    def logs(self):
        text = []
        for name in sorted(os.listdir(self.base)):
            if name.endswith(".log"):
                with open(os.path.join(self.base, name), encoding="utf-8", errors="replace") as f:
                    text.append(f"==== {name}\n" + "".join(f.readlines()[-60:]))
        return "\n".join(text)

    # -- the command line -------------------------------------------------------------------------------------

    def cli(self, *args, code=0, stdin=None, cwd=None, timeout=LIMIT, env=None):
        """Runs `drover ARGS` in the working folder. Returns what it printed; `code` is the exit code it must have
        (None: any). The result has .out, .err and .code."""
        p = subprocess.run([self.program("drover"), *args], cwd=cwd or self.work, env={**self.env, **(env or {})},
                           input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False,
                           text=True)
        result = Output(p.stdout)
        result.out, result.err, result.code = p.stdout, p.stderr, p.returncode
        if code is not None and p.returncode != code:
            raise Failed(f"drover {' '.join(args)}: exit code {p.returncode}, not {code}\n{p.stdout}{p.stderr}")
        return result

    def json(self, *args, **more):
        return json.loads(self.cli(*args, "--json", **more))

    def write(self, name, text, mode=None):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if mode:
            os.chmod(path, mode)
        return path

    def read(self, name):
        with open(os.path.join(self.work, name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def exists(self, name):
        return os.path.exists(os.path.join(self.work, name))

    def written(self, name):
        """Whether anything is in the file: who makes one writes into it a moment later."""
        return self.exists(name) and os.path.getsize(os.path.join(self.work, name)) > 0

    def submit(self, text, *args, **more):
        """Submits a description; returns the number of the request."""
        out = self.cli("submit", *args, "-", stdin=text, **more)
        m = re.search(r"^request (\d+): ", out, re.M)
        if not m:
            raise Failed(f"drover submit printed {out.out!r} {out.err!r}")
        return int(m[1])

    def wait(self, *ids, seconds=300, code=0):
        """Until the jobs have ended, or all that is left is held. `code` None: whatever their exit codes are."""
        out = self.cli("wait", "--timeout", str(seconds), *map(str, ids), code=code, timeout=seconds + LIMIT)
        if out.code == 124 != code:
            raise Failed(out.err)
        return out

    def run(self, text, *args, code=0, seconds=300):
        """Submits and waits. Returns the number of the request."""
        request = self.submit(text, *args)
        self.wait(request, seconds=seconds, code=code)
        return request

    # -- the API ----------------------------------------------------------------------------------------------

    def socket_path(self):
        return self.server_json()["api"].removeprefix("unix:")

    def call(self, method, path, body=None, timeout=LIMIT, headers=None):
        """One HTTP request on the unix socket. Returns (status, parsed JSON or bytes)."""
        connection = UnixConnection(self.socket_path(), timeout)
        try:
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            data = answer.read()
            if answer.getheader("Content-Type", "").startswith("application/json"):
                data = json.loads(data)
            return answer.status, data
        finally:
            connection.close()

    def api(self, method, path, body=None, status=(200, 201), **more):
        got, data = self.call(method, path, body, **more)
        if got not in (status if isinstance(status, tuple) else (status,)):
            raise Failed(f"{method} {path}: status {got}: {data}")
        return data

    def server_info(self):
        return self.api("GET", "/v1/server")

    def agents(self, state=None):
        return [a for a in self.api("GET", "/v1/agents")["agents"] if state in (None, a["state"])]

    def jobs(self, request, query=""):
        """All jobs of a request that are not in history only, following the pages."""
        found, after = [], ""
        while True:
            page = self.api("GET", f"/v1/jobs?id={request}{query}{after}")
            found += page["jobs"]
            if not page["next"]:
                return found
            after = f"&after={page['next']}"

    def job(self, job):
        return self.api("GET", f"/v1/jobs/{job}")

    def events(self, job):
        return self.api("GET", f"/v1/jobs/{job}/log")["events"]

    def clear(self):
        """Removes every job that has not ended, and gives drained agents their work again."""
        if self.json("queue")["requests"]:
            self.cli("rm", "-y", "-c", "true")
        for agent in self.agents():
            if agent.get("drained"):
                self.cli("agents", "resume", agent["name"])

    def history(self, request=None):
        """Finished jobs, of one request or all, following the pages."""
        found, before = [], ""
        query = f"id={request}&" if request is not None else ""
        while True:
            page = self.api("GET", f"/v1/history?{query}limit=1000{before}")
            found += page["jobs"]
            if not page["next"]:
                return found
            before = f"&before={page['next']}"

    def wait_state(self, job, *states, seconds=LIMIT):
        """Until the job is in one of these states; returns the job."""
        last = [None]

        def there():
            last[0] = self.job(job)
            return last[0]["state"] in states

        try:
            wait_until(there, seconds)
        except Failed:
            raise Failed(f"job {job} is {last[0] and last[0]['state']}, not {' or '.join(states)}: {last[0]}") from None
        return last[0]

    def destroy(self):
        shutil.rmtree(self.base, ignore_errors=True)


@contextlib.contextmanager
def made(request, prefix):
    """An instance in a folder of its own, for a fixture. All it started is stopped afterwards, and nothing may be left."""
    one = Instance(request.config.getoption("--build"), tempfile.mkdtemp(prefix=prefix, dir=request.config.drover_tmp))
    if os.environ.get("DROVER_TEST_STORE") == "postgresql":
        one.store = request.config.drover_postgres().new_address()
    try:
        yield one
    finally:
        try:
            one.stop()
        finally:
            one.destroy()


class Output(str):
    """What a command printed to stdout, with .err and .code beside it."""

    out = err = ""
    code = 0


def sh(script, **attributes):
    """A description of one job that runs a shell script; attributes are further submit commands."""
    quoted = script.replace("'", "''").replace('"', '""')
    lines = ["executable = /bin/sh", f"arguments = \"-c '{quoted}'\"", "request_memory = 32 MB", "request_disk = 1 MB"]
    queue = attributes.pop("queue", "queue")
    lines += [f"{name} = {value}" for name, value in attributes.items()]
    return "\n".join([*lines, queue, ""])
