"""A PostgreSQL of a test's own: a primary, and standbys, in a temporary folder, as a user that is not root."""
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

LIMIT = 180.0


def programs():
    """The folder of the newest server's programs."""
    with os.scandir("/usr/lib/postgresql") as entries:
        versions = sorted((e.name for e in entries if e.name.isdigit()), key=int)
    return f"/usr/lib/postgresql/{versions[-1]}/bin"


def as_user():
    """For subprocess: the user postgres, if this one is root, as which PostgreSQL does not run."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def kill_all(postmaster):
    """As SIGKILL of all its processes: the postmaster's children end when they miss it."""
    children = []
    with contextlib.suppress(OSError), open(f"/proc/{postmaster}/task/{postmaster}/children", encoding="ascii") as f:
        children = [int(pid) for pid in f.read().split()]
    for pid in (postmaster, *children):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Postgres:
    """One server. It listens on a unix socket in its folder only, and is stopped by its number."""

    def __init__(self, settings=(), standby_of=None):
        self.bin = programs()
        self.base = tempfile.mkdtemp(prefix="drover-pg-")
        self.data = os.path.join(self.base, "data")
        self.log = os.path.join(self.base, "log")
        os.chmod(self.base, 0o755)
        if os.geteuid() == 0:
            os.chown(self.base, pwd.getpwnam("postgres").pw_uid, -1)
        self.process, self.count = None, 0
        if standby_of:
            self._copy(standby_of)
        else:
            self._do("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        self.set("listen_addresses = ''", f"unix_socket_directories = '{self.base}'", "shared_buffers = 32MB",
                 "max_connections = 60", *settings)

    def _copy(self, primary):
        self._do("pg_basebackup", "-D", self.data, "-h", primary.base, "-U", "postgres", "-X", "stream", "-c", "fast", "-R", "-N")

    def follow(self, primary):
        """Begins anew as a standby, in the folder that it had."""
        shutil.rmtree(self.data)
        self._copy(primary)
        self.set(f"unix_socket_directories = '{self.base}'")
        return self.start()

    def _do(self, program, *args):
        done = subprocess.run([os.path.join(self.bin, program), *args], cwd="/", capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C.UTF-8"}, **as_user())
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def set(self, *lines):
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in lines))

    def start(self):
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen([os.path.join(self.bin, "postgres"), "-D", self.data], cwd="/", stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out, env={**os.environ, "LC_ALL": "C.UTF-8"}, **as_user())
        end = time.monotonic() + LIMIT
        while subprocess.run([os.path.join(self.bin, "pg_isready"), "-q", "-h", self.base], check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                with open(self.log, encoding="utf-8", errors="replace") as f:
                    raise AssertionError(f"PostgreSQL does not start:\n{f.read()[-3000:]}")
            time.sleep(0.05)
        return self

    def sql(self, text, database="postgres", user="postgres"):
        """What a statement gives, its columns with | between them."""
        done = subprocess.run(["psql", "-X", "-At", "-h", self.base, "-U", user, "-d", database, "-v", "ON_ERROR_STOP=1", "-c", text],
                              capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def database(self, name):
        """A new database; its address for `store:`."""
        self.sql(f"CREATE DATABASE {name}")
        return self.address(name)

    def new_address(self):
        """A database that nobody has; its address."""
        self.count += 1
        return self.database(f"d{self.count}")

    def address(self, database, user="postgres", more=""):
        return f"postgresql://{user}@/{database}?host={self.base}{more}"

    def end(self, how=signal.SIGQUIT):
        """SIGINT ends it in order; SIGQUIT at once, as if the machine had lost its power; a frozen one as well."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def kill(self):
        kill_all(self.process.pid)
        self.process.wait()
        self.process = None

    def remove(self):
        self.end()
        shutil.rmtree(self.base, ignore_errors=True)
