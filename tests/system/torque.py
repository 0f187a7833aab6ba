"""PBS in Torque's form: the wrappers of the package slurm-wlm-torque over a private Slurm. The package cannot be installed
beside Grid Engine's; tools/setup unpacks it."""
import os

from slurm import Slurm

TOOLS = "/usr/local/lib/drover-tests/torque/usr/bin"
CALLED = ("sbatch", "srun", "salloc", "squeue", "scancel", "scontrol", "sinfo")


class Torque(Slurm):
    """Its controller and nodes are Slurm's. Arrays are left out: the wrappers cannot name their members."""

    def __init__(self, folder, munge, name="pbs"):
        super().__init__(folder, munge, name)
        self.bin = os.path.join(self.dir, "bin")
        os.mkdir(self.bin)
        for tool in os.listdir(TOOLS):
            os.symlink(os.path.join(TOOLS, tool), os.path.join(self.bin, tool))
        for tool in CALLED:  # they are looked for beside the wrapper
            os.symlink(f"/usr/bin/{tool}", os.path.join(self.bin, tool))
        self.runner, self.quotes, self.shows_closed = "pbs", False, False
        self.settings = {"form": "torque", "queue": "main", "array_max": "1", "poll": "1", "watch": "1"}
        self.refused = {"BatchQueue": "nowhere"}, "There was an error"
        self.env = {**self.env, "PATH": self.bin + ":" + self.env["PATH"]}
        self.agent_env = {"SLURM_CONF": self.conf}
