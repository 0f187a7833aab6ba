"""Private Slurm clusters in a folder: daemons on loopback and free ports, a munge of their own, no database."""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile

from drover import Daemon, Failed, free_port, wait_until


def run(*argv, env=None, code=0):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, check=False, timeout=60)
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


class Slurm:
    """One cluster of nodes that are all this machine."""

    def __init__(self, folder, munge, name="alpha", nodes=4, cpus=4, memory=4000, gpus=(), accounting=None):
        """`gpus` are devices which the first node takes for its GPUs; `accounting` (slurm_accounting.py) keeps its accounts."""
        self.name, self.nodes, self.runner = name, nodes, "slurm"
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
            "CredType=cred/munge", "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
            f"StateSaveLocation={self.dir}/state", f"SlurmdSpoolDir={self.dir}/spool/%n",
            f"SlurmctldPidFile={self.dir}/run/ctld.pid", f"SlurmdPidFile={self.dir}/run/%n.pid",
            f"SlurmctldLogFile={self.dir}/log/ctld", f"SlurmdLogFile={self.dir}/log/%n",
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SwitchType=switch/none", "MpiDefault=none",
            *(accounting.lines() if accounting else ["JobAcctGatherType=jobacct_gather/none",
                                                     "AccountingStorageType=accounting_storage/none"]),
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core_Memory", "DefMemPerCPU=10",
            "SlurmdParameters=config_overrides", "ReturnToService=2", "MessageTimeout=3", "KillWait=12", f"MinJobAge={2 if accounting else 60}",
            "CompleteWait=0",
            "SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1", "SlurmdTimeout=60",
        ]
        if gpus:
            lines.append("GresTypes=gpu")
            with open(f"{self.dir}/gres.conf", "w", encoding="utf-8") as f:
                f.write("".join(f"NodeName={name[0]}1 Name=gpu Type=tiny File={file}\n" for file in gpus))
        for i in range(1, nodes + 1):
            lines.append(f"NodeName={name[0]}{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs={cpus} "
                         f"RealMemory={memory} State=UNKNOWN" + (f" Gres=gpu:tiny:{len(gpus)}" if gpus and i == 1 else ""))
        every = f"{name[0]}[1-{nodes}]"
        lines += [f"PartitionName=main Nodes={every} Default=YES MaxTime=INFINITE State=UP",
                  f"PartitionName=short Nodes={every} MaxTime=00:05:00 State=UP",
                  f"PartitionName=shut Nodes={every} State=DOWN"]
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")

    def _daemon(self, name, *argv):
        return Daemon(name, list(argv), os.path.join(self.dir, f"{name}.out"), self.env, self.dir)

    def start(self):
        self.start_controller()
        for i in range(1, self.nodes + 1):
            node = f"{self.name[0]}{i}"
            self.node_daemons.append(self._daemon(node, "/usr/sbin/slurmd", "-D", "-N", node, "-f", self.conf))

        def idle():
            """all nodes are idle"""
            states = self.tool("sinfo", "-h", "-N", "-p", "main", "-o", "%T", code=None).split()
            return states == ["idle"] * self.nodes

        wait_until(idle, 60)
        return self

    def start_controller(self):
        self.controller = self._daemon("ctld", "/usr/sbin/slurmctld", "-D", "-f", self.conf)
        wait_until(lambda: "is UP" in self.tool("scontrol", "ping", code=None), 30)

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
