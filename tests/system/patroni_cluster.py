"""A PostgreSQL of a test's own with a synchronous standby, under Patroni and etcd: on loopback, in a temporary folder, as a user that
is not root."""
import contextlib
import http.client
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

import postgres
from drover import Failed, alive, free_port, wait_until

LIMIT = 180.0  # seconds: a leader's key lives for twenty
SETTINGS = {"ttl": 20, "loop_wait": 2, "retry_timeout": 3, "synchronous_mode": True,
            "postgresql": {"use_pg_rewind": True, "parameters": {"max_connections": 60, "shared_buffers": "32MB"}}}


class Member:
    """One PostgreSQL, and the Patroni that runs it."""

    def __init__(self, cluster, name):
        self.base, self.log, self.process = os.path.join(cluster.base, name), os.path.join(cluster.base, f"{name}.log"), None
        self.port, self.rest_port = free_port(), free_port()
        self.postmaster = 0
        cluster.folder(self.base)
        self.config = os.path.join(self.base, "patroni.yaml")
        address = f"127.0.0.1:{self.port}"
        everybody = ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
        config = {"scope": "drover", "name": name, "etcd3": {"host": f"127.0.0.1:{cluster.etcd_port}"},
                  "restapi": {"listen": f"127.0.0.1:{self.rest_port}", "connect_address": f"127.0.0.1:{self.rest_port}"},
                  "bootstrap": {"dcs": SETTINGS, "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}]},
                  "postgresql": {"listen": address, "connect_address": address, "data_dir": os.path.join(self.base, "data"),
                                 "bin_dir": postgres.programs(), "pgpass": os.path.join(self.base, "pgpass"), "pg_hba": everybody,
                                 "parameters": {"unix_socket_directories": self.base},
                                 "authentication": {"superuser": {"username": "postgres"},
                                                    "replication": {"username": "replica", "password": "any"}}}}
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)  # YAML has JSON in it

    def start(self):
        self.process = started(["patroni", self.config], self.log)

    def answers(self, path):
        """Whether its Patroni says that it is the primary, or the synchronous standby."""
        connection = http.client.HTTPConnection("127.0.0.1", self.rest_port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            if self.process.poll() is not None:
                with open(self.log, encoding="utf-8", errors="replace") as f:
                    raise Failed(f"patroni ended:\n{f.read()[-3000:]}") from None
            return False
        finally:
            connection.close()

    def sql(self, text):
        done = subprocess.run(["psql", "-X", "-At", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-c", text],
                              capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def find_postmaster(self):
        with contextlib.suppress(OSError, ValueError), open(os.path.join(self.base, "data", "postmaster.pid"), encoding="ascii") as f:
            self.postmaster = int(f.readline())

    def kill_patroni(self):
        self.find_postmaster()
        self.process.kill()
        self.process.wait()

    def kill(self):
        """Patroni and PostgreSQL, as if the machine had lost its power."""
        self.kill_patroni()
        if self.postmaster and alive(self.postmaster):
            postgres.kill_all(self.postmaster)
            wait_until(lambda: not alive(self.postmaster))

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()  # it stops PostgreSQL first
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
        if self.process:
            self.kill()


def started(argv, log):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    with open(log, "ab") as out:
        return subprocess.Popen(argv, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, **postgres.as_user())


class Cluster:
    """Two members. `start` and `remove` are called by the test."""

    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="drover-patroni-")
        self.folder(self.base)
        os.chmod(self.base, 0o755)
        self.etcd, self.etcd_port = None, free_port()
        self.members = [Member(self, name) for name in ("one", "two")]

    @staticmethod
    def folder(path):
        os.makedirs(path, mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(path, pwd.getpwnam("postgres").pw_uid, pwd.getpwnam("postgres").pw_gid)

    def start(self):
        url, peers = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{free_port()}"
        self.etcd = started(["etcd", "--name", "etcd", "--data-dir", os.path.join(self.base, "etcd"), "--listen-client-urls", url,
                             "--advertise-client-urls", url, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                             "--initial-cluster", f"etcd={peers}"], os.path.join(self.base, "etcd.log"))
        for member in self.members:
            member.start()
        self.complete()

    def primary(self):
        return next((member for member in self.members if member.process.poll() is None and member.answers("/primary")), None)

    def complete(self):
        """Waits until there is a primary, and the other one is its synchronous standby."""

        def complete():
            """the database has a primary and a synchronous standby"""
            return self.primary() and any(member.answers("/sync") for member in self.members)

        wait_until(complete, LIMIT, every=0.5)

    def database(self, name):
        """A new database; its address for `store:`, with both members."""
        self.primary().sql(f"CREATE DATABASE {name}")
        return f"postgresql://postgres@{','.join(f'127.0.0.1:{member.port}' for member in self.members)}/{name}"

    def lose(self):
        """The primary dies. Returns it; Patroni promotes the other one once its key has expired."""
        one = self.primary()
        one.kill()
        return one

    def logs(self):
        text = []
        for name in sorted(os.listdir(self.base)):
            if name.endswith(".log"):
                with open(os.path.join(self.base, name), encoding="utf-8", errors="replace") as f:
                    text.append(f"==== {name}\n{f.read()[-3000:]}")
        return "\n".join(text)

    def remove(self):
        for member in reversed(self.members):
            member.stop()
        if self.etcd:
            self.etcd.send_signal(signal.SIGTERM)
            self.etcd.wait()
        shutil.rmtree(self.base, ignore_errors=True)
