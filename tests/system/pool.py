"""A pool with HTCondor's commands: an instance of Drover, and its look-alikes of them as they would be installed there."""
import os
import shutil

import agents
from condor import Commands, Condor
from drover import Instance

COMMANDS = ("submit", "q", "history", "rm", "hold", "release", "suspend", "continue", "status")
AGENT = "name: node\nkill_grace: 20s\npull_policy: load=10000%\ncpus: 8\nmemory: 16GiB\ngpus: 2\n"


def others(condor, script, gpus):
    """Submits somebody else's job."""
    condor.submit(f"executable = /bin/sh\narguments = \"-c '{script}'\"\nrequest_gpus = {gpus}\n+DroverName = \"others\"\nqueue\n")


class Pool:
    """`close` takes its only node away."""

    gpus = 2

    def __init__(self, build, folder):
        self.instance = Instance(build, os.path.join(folder, "pool"))
        self.name = self.runner = "htcondor"
        self.settings = {"poll": "1", "watch": "1"}
        self.refused = {"HtcondorRequirements": "Memory >"}, "htcondor refuses it: condor_submit: "
        self.quotes = False
        self.bin = os.path.join(folder, "bin")
        os.mkdir(self.bin)
        self.server = self.node = None
        self.condor = Condor(self.instance)
        self.wrap(self.condor.folder)
        self.agent_env = {}
        self.env = {**os.environ, "PATH": self.bin + ":" + os.environ["PATH"]}

    def wrap(self, folder):
        for name in COMMANDS:
            path = os.path.join(self.bin, "condor_" + name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(f'#!/bin/sh\nDROVER_DIR={self.instance.dir} exec {folder}/condor_{name} "$@"\n')
            os.chmod(path, 0o755)

    def programs(self, folder):
        """Copies of them there, for users who cannot read the others."""
        for name in COMMANDS:
            shutil.copy(f"{self.condor.folder}/condor_{name}", folder)
        self.wrap(folder)

    def start(self):
        self.server = self.instance.server()
        self.open()
        return self

    def open(self):
        self.node = agents.start(self.instance, AGENT, "node")
        agents.offering(self.instance)

    def close(self):
        self.node.stop()

    def kill_daemon(self):
        self.server.kill()

    def start_daemon(self):
        self.server = self.instance.server()

    def others(self, script, gpus=0):
        others(self.condor, script, gpus)

    def cancel_all(self):
        self.condor("rm", "-all", code=None)

    def jobs(self):
        return [line.split() for line in self.condor("q", "-af:j", "JobStatus", "DroverName").splitlines()]

    def stop(self):
        self.instance.stop()


class RealPool:
    """A pool of HTCondor's that is there already (DROVER_TEST_CONDOR is the folder of its commands): it is ours alone, and
    we may administer it."""

    ours = "DroverName =!= undefined"

    def __init__(self, bin_folder):
        self.name = self.runner = "htcondor"
        self.settings = {"poll": "1", "watch": "1"}
        self.refused = {"HtcondorRequirements": "Memory >"}, "htcondor refuses it: ERROR: "
        self.quotes = False
        self.bin = bin_folder
        self.condor = Commands(bin_folder, {**os.environ, "PATH": bin_folder + ":" + os.environ["PATH"]}, "/")
        self.agent_env = {}
        self.env = self.condor.env

    @property
    def gpus(self):
        """What the pool has: in all its slots that are not cut from others."""
        ads = self.condor.json("status", "-constraint", 'SlotType =!= "Dynamic"')
        return sum(ad.get("TotalSlotGPUs", ad.get("GPUs", 0)) for ad in ads)

    def others(self, script, gpus=0):
        others(self.condor, script, gpus)

    def machines(self):
        return sorted(set(self.condor("status", "-af", "Machine").split()))

    def open(self):
        for machine in self.machines():
            self.condor("drain", "-cancel", machine)

    def close(self):
        for machine in self.machines():
            self.condor("drain", machine)

    def kill_daemon(self):
        self.condor("off", "-fast", "-daemon", "schedd")

    def start_daemon(self):
        self.condor("on", "-daemon", "schedd")

    def cancel_all(self):
        self.condor("rm", "-constraint", self.ours, code=None)

    def jobs(self):
        return [line.split() for line in self.condor("q", "-constraint", self.ours, "-af:j", "JobStatus", "DroverName").splitlines()]
