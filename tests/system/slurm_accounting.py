"""Slurm clusters that keep accounts: a private MariaDB on a unix socket, slurmdbd on a loopback port, accounts and QoS."""
import contextlib
import os
import shutil
import tempfile

from drover import Daemon, free_port, wait_until
from slurm import Munge, Slurm, daemon_path, jwt_key

SQL = """create database if not exists slurm;
create user if not exists slurm@localhost identified by 'slurm';
grant all on slurm.* to slurm@localhost;
"""


class Database:
    """MariaDB, of this folder only: no port, no file of the machine's configuration, no flush that a test would wait for."""

    def __init__(self, folder):
        self.dir = os.path.join(folder, "db")
        os.mkdir(self.dir)
        self.socket = os.path.join(self.dir, "socket")
        made = Daemon("mariadb-install-db", ["/usr/bin/mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={self.dir}/data",
                                             "--auth-root-authentication-method=socket", "--skip-test-db", "--innodb-log-file-size=4M",
                                             "--innodb-flush-log-at-trx-commit=0"],
                      os.path.join(self.dir, "install.out"), os.environ.copy(), self.dir)
        assert made.process.wait(90) == 0, made.output()
        sql = os.path.join(self.dir, "init.sql")
        with open(sql, "w", encoding="utf-8") as f:
            f.write(SQL)
        self.daemon = Daemon("mariadbd", ["/usr/sbin/mariadbd", "--no-defaults", "--user=root", f"--datadir={self.dir}/data",
                                          f"--socket={self.socket}", f"--pid-file={self.dir}/pid", "--skip-networking", f"--init-file={sql}",
                                          # what slurmdbd asks of a database
                                          "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--innodb-log-file-size=4M",
                                          "--innodb-flush-log-at-trx-commit=0"],
                             os.path.join(self.dir, "out"), os.environ.copy(), self.dir)
        wait_until(lambda: os.path.exists(self.socket))

    def stop(self):
        self.daemon.stop()


class Accounting:
    """A slurmdbd, and its database. It finds its file beside SLURM_CONF, and the database's socket in the environment."""

    def __init__(self, folder, munge):
        self.dir = os.path.join(folder, "dbd")
        self.munge, self.port, self.daemon, self.database = munge, free_port(), None, None
        os.mkdir(self.dir)
        self.key = jwt_key(self.dir)
        lines = ["AuthType=auth/munge", f"AuthInfo=socket={munge.socket}", "AuthAltTypes=auth/jwt", f"AuthAltParameters=jwt_key={self.key}",
                 "DbdHost=localhost", "DbdAddr=127.0.0.1", f"DbdPort={self.port}",
                 "SlurmUser=root", "CommunicationParameters=NoInAddrAny", f"LogFile={self.dir}/log", f"PidFile={self.dir}/pid",
                 "StorageType=accounting_storage/mysql", "StorageHost=localhost", "StorageUser=slurm", "StoragePass=slurm", "StorageLoc=slurm"]
        with open(os.open(f"{self.dir}/slurmdbd.conf", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")

    def start(self):
        if not self.database:
            self.database = Database(os.path.dirname(self.dir))
        env = {**os.environ, "SLURM_CONF": f"{self.dir}/slurm.conf", "MYSQL_UNIX_PORT": self.database.socket}
        self.daemon = Daemon("slurmdbd", [daemon_path("slurmdbd"), "-D"], f"{self.dir}/out", env, self.dir)

    def stop_daemon(self):
        """slurmdbd alone: the database and what is in it stay."""
        self.daemon.stop()

    def stop(self):
        if self.daemon:
            self.daemon.stop()
        if self.database:
            self.database.stop()

    def lines(self):
        """Of the slurm.conf of a cluster that uses it. Jobs that use more memory than they asked for are killed."""
        return ["AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1",
                f"AccountingStoragePort={self.port}", f"AccountingStoragePass={self.munge.socket}",
                "AccountingStorageEnforce=associations,limits,qos",
                "JobAcctGatherType=jobacct_gather/linux", "JobAcctGatherParams=OverMemoryKill", "JobAcctGatherFrequency=task=1"]


class Accounted(Slurm):
    """A cluster with accounts: root may use `physics`, its default, and `biology`; the QoS `normal`, its default, and
    `high`. Ended jobs leave the controller's memory after two seconds."""

    def __init__(self, folder, munge, accounting, **more):
        super().__init__(folder, munge, accounting=accounting, **more)
        self.accounting = accounting

    def start(self):
        wait_until(lambda: "Cluster" in self.tool("sacctmgr", "show", "cluster", code=None))
        self.manage("add", "cluster", self.name)
        self.manage("add", "qos", "high")
        self.manage("add", "account", "physics,biology", f"Cluster={self.name}")
        self.manage("add", "user", "root", "Account=physics,biology", "DefaultAccount=physics", "QOS=normal,high", "DefaultQOS=normal")
        return super().start()

    def manage(self, *words):
        return self.tool("sacctmgr", "--immediate", "--quiet", *words)

    def limit(self, qos, **limits):
        """-1 takes a limit away. The controller hears of it from slurmdbd, at once."""
        self.manage("modify", "qos", qos, "set", *(f"{name}={value}" for name, value in limits.items()))

    def past(self, *columns):
        """What sacct has of jobs, not of their steps, as lists of these columns."""
        out = self.tool("sacct", "--noheader", "--parsable2", "--allocations", "--starttime=now-1day", f"--format={','.join(columns)}")
        return [line.split("|") for line in out.splitlines()]


@contextlib.contextmanager
def accounted_cluster(folder, **more):
    """One, with its database, in a new folder beneath this one."""
    folder = tempfile.mkdtemp(prefix="ac-", dir=folder)
    started = []
    try:
        munge = Munge(folder)
        started.append(munge)
        accounting = Accounting(folder, munge)
        started.append(accounting)
        accounting.start()
        cluster = Accounted(folder, munge, accounting, **more)
        started.append(cluster)
        yield cluster.start()
    finally:
        for one in reversed(started):
            one.stop()
        shutil.rmtree(folder, ignore_errors=True)
