"""Private Slurm clusters in a folder: daemons on loopback and free ports, a munge of their own, no database."""
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile

from drover import Daemon, Failed, all_pids, free_port, of_process, wait_until


def daemon_path(name):
    """Of this machine's Slurm, or of the one whose programs are in the folder DROVER_TEST_SLURM (which conftest.py puts into PATH)."""
    return os.path.join(os.environ.get("DROVER_TEST_SLURM", "/usr/sbin"), name)


def run(*argv, env=None, code=0):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, check=False, timeout=90)
    if code is not None and p.returncode != code:
        raise Failed(f"{' '.join(argv)}: exit code {p.returncode}\n{p.stdout}")
    return p.stdout


class Munge:
    def __init__(self, folder):
        self.dir = os.path.join(folder, "munge")
        os.mkdir(self.dir, 0o755)
        self.socket = os.path.join(self.dir, "socket")
        key = os.path.join(self.dir, "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o400), "wb") as f:
            f.write(os.urandom(128))
        self.daemon = Daemon("munged", ["/usr/sbin/munged", "--foreground", "--force", f"--socket={self.socket}", f"--key-file={key}",
                                        f"--log-file={self.dir}/log", f"--pid-file={self.dir}/pid",
                                        f"--seed-file={self.dir}/seed", "--num-threads=2"],
                             os.path.join(self.dir, "out"), os.environ.copy(), self.dir)
        wait_until(lambda: os.path.exists(self.socket))

    def stop(self):
        self.daemon.stop()


def jwt_key(folder):
    """A new one, that tokens are signed with."""
    path = os.path.join(folder, "jwt.key")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
        f.write(os.urandom(32))
    return path


class Slurm:
    """One cluster of nodes that are all this machine."""

    def __init__(self, folder, munge, name="alpha", nodes=4, cpus=4, memory=4000, gpus=(), accounting=None):
        """`gpus` are devices which the first node takes for its GPUs; `accounting` (slurm_accounting.py) keeps its accounts."""
        self.name, self.nodes, self.runner, self.accounting, self.gpus = name, nodes, "slurm", accounting, len(gpus)
        self.dir = os.path.join(folder, name)
        self.conf = os.path.join(self.dir, "slurm.conf")
        self.env = {**os.environ, "SLURM_CONF": self.conf}
        self.settings = {"conf": self.conf, "poll": "1"}
        self.refused = {"SlurmPartition": "nowhere"}, "nvalid partition"
        self.controller, self.node_daemons = None, []
        for part in ("state", "spool", "log", "run"):
            os.makedirs(os.path.join(self.dir, part))
        host = socket.gethostname().split(".")[0]
        lines = [
            f"ClusterName={name}", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={free_port()}",
            "SlurmUser=root", "SlurmdUser=root", "AuthType=auth/munge", f"AuthInfo=socket={munge.socket}",
            "AuthAltTypes=auth/jwt", f"AuthAltParameters=jwt_key={accounting.key if accounting else jwt_key(self.dir)}",
            "CredType=cred/munge", "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
            f"StateSaveLocation={self.dir}/state", f"SlurmdSpoolDir={self.dir}/spool/%n",
            f"SlurmctldPidFile={self.dir}/run/ctld.pid", f"SlurmdPidFile={self.dir}/run/%n.pid",
            f"SlurmctldLogFile={self.dir}/log/ctld", f"SlurmdLogFile={self.dir}/log/%n",
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SwitchType=switch/none", "MpiDefault=none",
            *(accounting.lines() if accounting else ["JobAcctGatherType=jobacct_gather/none",
                                                     "AccountingStorageType=accounting_storage/none"]),
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core_Memory", "DefMemPerCPU=10",
            "SlurmdParameters=config_overrides", "ReturnToService=2", "MessageTimeout=3", "KillWait=12", f"MinJobAge={2 if accounting else 60}",
            "CompleteWait=0", "MaxJobCount=20000", "Licenses=solver:1",
            "SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1", "SlurmdTimeout=60",
        ]
        if gpus:
            lines.append("GresTypes=gpu")
            with open(f"{self.dir}/gres.conf", "w", encoding="utf-8") as f:
                f.write("".join(f"NodeName={name[0]}1 Name=gpu Type=tiny File={file}\n" for file in gpus))
        for i in range(1, nodes + 1):
            lines.append(f"NodeName={name[0]}{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs={cpus} "
                         f"RealMemory={memory} Feature=node{i} State=UNKNOWN" + (f" Gres=gpu:tiny:{len(gpus)}" if gpus and i == 1 else ""))
        every = f"{name[0]}[1-{nodes}]"
        lines += [f"PartitionName=main Nodes={every} Default=YES MaxTime=INFINITE State=UP",
                  f"PartitionName=short Nodes={every} MaxTime=00:05:00 State=UP",
                  f"PartitionName=shut Nodes={every} State=DOWN"]
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        self.version = self.tool("sinfo", "--version").split()[-1]
        if self.version >= "23":  # which know no other way to do without
            with open(f"{self.dir}/cgroup.conf", "w", encoding="utf-8") as f:
                f.write("CgroupPlugin=disabled\n")

    def _daemon(self, name, *argv):
        return Daemon(name, list(argv), os.path.join(self.dir, f"{name}.out"), self.env, self.dir)

    def start(self):
        self.start_controller()
        for i in range(1, self.nodes + 1):
            node = f"{self.name[0]}{i}"
            self.node_daemons.append(self._daemon(node, daemon_path("slurmd"), "-D", "-N", node, "-f", self.conf))

        def idle():
            """all nodes are idle"""
            states = self.tool("sinfo", "-h", "-N", "-p", "main", "-o", "%T", code=None).split()
            return states == ["idle"] * self.nodes

        wait_until(idle)
        return self

    def start_controller(self):
        self.controller = self._daemon("ctld", daemon_path("slurmctld"), "-D", "-f", self.conf)
        wait_until(lambda: "is UP" in self.tool("scontrol", "ping", code=None))

    def kill_daemon(self):
        """The controller forgets numbers that it gave since its last save, when it is killed: so it is asked."""
        self.controller.stop()

    def start_daemon(self):
        self.start_controller()

    def close(self):
        self.tool("scontrol", "update", "PartitionName=main", "State=DOWN")

    def open(self):
        self.tool("scontrol", "update", "PartitionName=main", "State=UP")

    def tool(self, *argv, code=0):
        return run(*argv, env=self.env, code=code)

    def cancel_all(self):
        self.tool("scancel", "-u", "root", code=None)

    def others(self, script, gpus=0, *options):
        """Submits somebody else's job."""
        self.tool("sbatch", "--parsable", "--mem=10", "--output=/dev/null", *([f"--gres=gpu:{gpus}"] if gpus else []), *options,
                  f"--wrap={script}")

    def jobs(self, states="pending,running,completing,suspended"):
        """Lines 'id state name' of what the controller knows, arrays one by one."""
        return [line.split() for line in self.tool("squeue", "-h", "-r", "-t", states, "-o", "%i %T %j").splitlines()]

    def stop(self):
        if self.controller and self.controller.running():
            self.tool("scancel", "-u", "root", code=None)
        for d in self.node_daemons:
            d.stop()
        if self.controller:
            self.controller.stop()
        for pid in self.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def left(self):
        """Daemons of steps, and what they run: slurmd leaves them when it is stopped in the middle of a job."""
        for pid in all_pids():
            with contextlib.suppress(OSError):
                if (f"SLURM_CONF={self.conf}".encode() in of_process(pid, "environ").split(b"\0")
                        or os.readlink(f"/proc/{pid}/exe").endswith("/slurmstepd") and os.readlink(f"/proc/{pid}/cwd") == self.dir):
                    yield pid


class Rest:
    """A cluster behind slurmrestd, which must be neither root nor the SlurmUser. Over TCP it believes tokens; on a unix
    socket it runs what it is given by its own user or root as its own."""

    def __init__(self, cluster, user="games", plain=False):
        self.cluster, self.user, self.plain = cluster, user, plain
        self.name, self.runner, self.quotes = "rest", "slurm", False
        self.env, self.refused = cluster.env, cluster.refused
        self.jobs, self.close, self.open, self.cancel_all = cluster.jobs, cluster.close, cluster.open, cluster.cancel_all
        self.others, self.gpus = cluster.others, cluster.gpus
        self.dir = tempfile.mkdtemp(prefix="drover-rest-")  # where its user may look
        os.chmod(self.dir, 0o755)
        self.conf = shutil.copy(cluster.conf, self.dir)
        self.new = cluster.version >= "24"  # the API is of another generation
        kinds = ("slurmctld", "slurmdbd") if self.new else ("v0.0.38", "dbv0.0.38")
        self.plugins = ",".join(f"openapi/{kind}" for kind in kinds[:2 if cluster.accounting else 1])
        self.daemon = None
        ids = pwd.getpwnam(user)
        if plain:
            os.chown(self.dir, ids.pw_uid, ids.pw_gid)
            self.where = f"unix:{self.dir}/socket"
            self.settings = {"rest": self.where, "poll": "1"}
        else:
            self.port = free_port()
            self.where = f"127.0.0.1:{self.port}"
            self.token_file = os.path.join(self.dir, "token")
            self.settings = {"rest": f"http://{self.where}", "token_file": self.token_file, "poll": "1"}
            self.token()
        if "24" <= cluster.version < "26":
            self.settings["partition"] = "main"  # it does not tell which is the default one

    def token(self, user="root", seconds=3600):
        """A new one in the file, as `scontrol` prints it."""
        text = self.cluster.tool("scontrol", "token", f"username={user}", f"lifespan={seconds}")
        with open(os.open(self.token_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(text)

    def start(self):
        jwt = () if self.plain else ("env", "SLURM_JWT=daemon")
        auth = "rest_auth/local" if self.plain else "rest_auth/jwt"
        self.daemon = Daemon("slurmrestd", ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups", *jwt,
                                            daemon_path("slurmrestd"), "-f", self.conf, "-a", auth, "-s", self.plugins,
                                            self.where], os.path.join(self.cluster.dir, "rest.out"), {**os.environ, "SLURM_CONF": self.conf}, self.dir)
        wait_until(self._answers)
        return self

    def _answers(self):
        """slurmrestd listens"""
        kind, to = (socket.AF_UNIX, self.where[5:]) if self.plain else (socket.AF_INET, ("127.0.0.1", self.port))
        with socket.socket(kind) as s:
            return s.connect_ex(to) == 0

    def kill_daemon(self):
        self.daemon.kill()

    def start_daemon(self):
        self.start()

    def stop(self):
        if self.daemon:
            self.daemon.stop(signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)


@contextlib.contextmanager
def slurm_clusters(folder, *each):
    """Clusters that share a munge, in a new folder beneath this one; `each` are the arguments of Slurm."""
    folder = tempfile.mkdtemp(prefix="sl-", dir=folder)
    started = []
    try:
        munge = Munge(folder)
        started.append(munge)
        for more in each:
            cluster = Slurm(folder, munge, **more)
            started.append(cluster)
            cluster.start()
        yield started[1:]
    finally:
        for one in reversed(started):
            one.stop()
        shutil.rmtree(folder, ignore_errors=True)
