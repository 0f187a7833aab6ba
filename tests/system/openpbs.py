"""A PBS that is there already, named by DROVER_TEST_PBS: PBS Pro, OpenPBS, or Torque."""
import os
import re
import signal
import subprocess

from drover import wait_until
from slurm import run


class RealPbs:
    """It is ours alone and has eight processors or more; we are root on its server's machine. The variable is the folder of its
    commands; PBS_CONF_FILE may be set as well."""

    def __init__(self, bin_folder):
        self.name = self.runner = "pbs"
        self.bin = bin_folder
        self.env = {**os.environ, "PATH": bin_folder + ":" + os.environ["PATH"]}
        self.agent_env = {name: os.environ[name] for name in ("PBS_CONF_FILE",) if name in os.environ}
        torque = "pbs_version" not in self.tool("qstat", "--version").lower()
        self.home = self._home_of_torque() if torque else self._home()
        words = self.tool("qmgr", "-c", "print server").split()
        self.queue = words[words.index("default_queue") + 2]
        self.settings = {"form": "torque" if torque else "pro", "queue": self.queue, "poll": "1", "watch": "1"}
        self.refused = {"BatchQueue": "nowhere"}, "Unknown queue"
        self.unended = ["-s", "EHQRTW"] if torque else []  # else it names what is over, too
        self.quotes = self.shows_closed = False

    @staticmethod
    def _home():
        with open(os.environ.get("PBS_CONF_FILE", "/etc/pbs.conf"), encoding="utf-8") as f:
            return dict(line.strip().split("=", 1) for line in f if "=" in line)["PBS_HOME"]

    def _home_of_torque(self):
        about = subprocess.run([os.path.join(self.bin, "qstat"), "--about"], env=self.env, check=True, stderr=subprocess.PIPE, text=True)
        return re.search(r"HomeDir: *(\S+)", about.stderr)[1]

    def tool(self, *argv, code=0):
        return run(*argv, env=self.env, code=code)

    def open(self):
        self.tool("qstart", self.queue)

    def close(self):
        self.tool("qstop", self.queue)

    def kill_daemon(self):
        with open(f"{self.home}/server_priv/server.lock", encoding="utf-8") as f:
            os.kill(int(f.read()), signal.SIGKILL)

    def start_daemon(self):
        self.tool(os.path.join(self.bin, "../sbin/pbs_server"))
        wait_until(lambda: "Active" in self.tool("qstat", "-B", code=None))

    def jobs(self):
        return self.tool("qselect", *self.unended).split()

    def cancel_all(self):
        if self.jobs():
            self.tool("qdel", *self.jobs(), code=None)
