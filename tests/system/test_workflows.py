"""Workflow engines over the look-alikes: what Nextflow's executor for HTCondor does, and Snakemake itself."""
import os
import subprocess
import time

import pytest

from condor import Condor
from drover import LIMIT, wait_until
from slurm_commands import LookAlikes

STATUS = {"U": "pending", "I": "pending", "R": "running", "X": "error", "C": "done", "H": "hold", "E": "error"}


class Polling:
    """Tasks in folders of their own, each with a .command.run and its description, as Nextflow lays them out. It takes
    standard error and output of the commands as one text."""

    def __init__(self, condor):
        self.condor, self.tasks = condor, {}

    def run(self, *argv, cwd=None):
        return subprocess.run(argv, cwd=cwd or self.condor.instance.work, env=self.condor.env, text=True, timeout=90,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def submit(self, name, script, *directives):
        folder = os.path.join(self.condor.instance.work, name)
        os.makedirs(folder)
        run = self.condor.instance.write(f"{name}/.command.run", "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n(\n" + script +
                                         "\n) >.command.out 2>.command.err\necho $? >.exitcode\n", 0o755)
        lines = ["universe = vanilla", f"executable = {run}", "log = .command.log", "getenv = true", *directives, "queue"]
        self.condor.instance.write(f"{name}/.command.condor", "\n".join(lines) + "\n")
        p = self.run("condor_submit", "--terse", ".command.condor", cwd=folder)
        assert p.returncode == 0, p.stdout
        self.tasks[name] = p.stdout.replace("-", " ").split()[0]
        assert self.tasks[name].count(".") == 1, p.stdout

    def states(self):
        p = self.run("condor_q", "-nobatch")
        assert p.returncode == 0, p.stdout
        found, started = {}, False
        for line in p.stdout.splitlines():
            if not started:
                started = line.startswith(" ID ")
            elif not line.strip():
                break
            else:
                words = line.split()
                found[words[0]] = STATUS[words[5]]
        assert started, p.stdout
        return found

    def ended(self, name):
        try:
            return int(self.condor.instance.read(f"{name}/.exitcode"))
        except (OSError, ValueError):
            return None


def test_nextflows_way(drover):
    polling = Polling(Condor(drover))
    polling.submit("one", "echo one")
    polling.submit("two", "exit 2", "request_cpus = 1", "machine_count = 1", "request_memory = 64 MB",
                   "request_disk = 1 MB", "periodic_remove = (RemoteWallClockTime - CumulativeSuspensionTime) > 3600")
    polling.submit("long", "sleep 600")
    polling.submit("held", "exit 0", "hold = true")
    wait_until(lambda: polling.ended("one") is not None and polling.ended("two") is not None)
    assert polling.ended("one") == 0 and polling.ended("two") == 2
    assert drover.read("one/.command.out") == "one\n"
    wait_until(lambda: polling.states() == {polling.tasks["long"]: "running", polling.tasks["held"]: "hold"})
    assert polling.run("condor_rm", polling.tasks["long"], polling.tasks["held"]).returncode == 0
    wait_until(lambda: polling.states() == {})


def test_polling_many(drover):
    polling = Polling(Condor(drover))
    for n in range(12):
        polling.submit(f"t{n}", f"echo {n}", "request_memory = 32 MB")
    seen = set()
    end = time.monotonic() + LIMIT
    while polling.states():
        seen |= set(polling.states())
        assert time.monotonic() < end
    assert seen <= set(polling.tasks.values())
    assert [drover.read(f"t{n}/.command.out") for n in range(12)] == [f"{n}\n" for n in range(12)]


SNAKEFILE = """
rule all:
    input: "sum.txt"

rule part:
    output: "part-{n}.txt"
    shell: "echo {wildcards.n} > {output}"

rule sum:
    input: expand("part-{n}.txt", n=range(3))
    output: "sum.txt"
    shell: "cat {input} > {output}"
"""
SUBMIT = """#!/bin/sh
# Snakemake's script is the last word; the first line that is printed is the job's id from then on.
set -e
id=$(condor_submit -terse -a "executable = $1" -a "output = $1.out" -a "error = $1.err" -a 'getenv = true' \\
        -a 'batch_name = snakemake' -queue 1)
echo "${id%% *}"
"""
JOB_STATUS = """#!/bin/sh
state=$(condor_q "$1" -af JobStatus ExitCode)
[ -n "$state" ] || state=$(condor_history "$1" -limit 1 -af JobStatus ExitCode)
case "$state" in
"4 0") echo success ;;
[345]*) echo failed ;;
*) echo running ;;
esac
"""


@pytest.fixture
def snakemake(drover):
    condor = Condor(drover)
    drover.write("submit", SUBMIT, 0o755)
    drover.write("status", JOB_STATUS, 0o755)

    def run(snakefile, *args):
        drover.write("Snakefile", snakefile)
        return subprocess.run(["/usr/bin/snakemake", "--cluster", "./submit", "--cluster-status", "./status", "--cluster-cancel",
                               "condor_rm", "--jobs", "3", "--latency-wait", "20", "--max-status-checks-per-second", "10",
                               *args], cwd=drover.work, env={**condor.env, "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"},  # it looks every second, not every ten
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)

    return condor, run


def test_snakemake(drover, snakemake):
    condor, run = snakemake
    p = run(SNAKEFILE)
    assert p.returncode == 0, p.stdout
    assert drover.read("sum.txt") == "0\n1\n2\n"
    rows = condor("history", "-af", "JobBatchName", "ExitCode").splitlines()
    assert rows == ["snakemake 0"] * 4


def test_snakemake_sees_a_failure(drover, snakemake):
    condor, run = snakemake
    p = run('rule fails:\n    output: "never.txt"\n    shell: "exit 3"\n')
    assert p.returncode != 0 and "Error" in p.stdout, p.stdout
    assert not drover.exists("never.txt")
    assert condor("history", "-af", "ExitCode").strip() not in ("", "0")


# ---- Snakemake and Slurm's commands

SLURM_STATUS = """#!/bin/sh
state=$(sacct -X -n -P -o State -j "$1")
case "$state" in COMPLETED) echo success ;; PENDING|RUNNING|CONFIGURING|COMPLETING|SUSPENDED) echo running ;; *) echo failed ;; esac
"""


def snakemake_slurm(drover, snakefile, *args):
    slurm = LookAlikes(drover)
    drover.write("status", SLURM_STATUS, 0o755)
    drover.write("Snakefile", snakefile)
    p = subprocess.run(["/usr/bin/snakemake", "--jobs", "3", "--latency-wait", "20", "--max-status-checks-per-second", "10", "--nocolor", *args],
                       cwd=drover.work, env={**slurm.env, "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"},
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500, check=False)
    return slurm, p


CLUSTER = ("--cluster", "sbatch --parsable -n {threads} --mem {resources.mem_mb} -J {rule} -o slurm-%j.out", "--default-resources", "mem_mb=100",
           "--cluster-status", "./status", "--cluster-cancel", "scancel")


def test_snakemake_and_sbatch(drover):
    slurm, p = snakemake_slurm(drover, SNAKEFILE, *CLUSTER)
    assert p.returncode == 0, p.stdout
    assert drover.read("sum.txt") == "0\n1\n2\n"
    assert sorted(slurm("sacct", "-X", "-n", "-P", "-o", "JobName,State,ReqMem").splitlines()) == ["part|COMPLETED|100M"] * 3 + ["sum|COMPLETED|100M"]


def test_snakemake_and_sbatch_see_a_failure(drover):
    slurm, p = snakemake_slurm(drover, 'rule fails:\n    output: "never.txt"\n    shell: "exit 3"\n', *CLUSTER)
    assert p.returncode != 0 and "Error" in p.stdout, p.stdout
    assert slurm("sacct", "-X", "-n", "-P", "-o", "State").splitlines() == ["FAILED"]


@pytest.mark.long
def test_snakemakes_own_executor_for_slurm(drover):
    """The program looks every 40 seconds; its jobs start their work by srun."""
    slurm, p = snakemake_slurm(drover, SNAKEFILE, "--slurm", "--default-resources", "mem_mb=600", "runtime=5")
    assert p.returncode == 0, p.stdout
    assert drover.read("sum.txt") == "0\n1\n2\n"
    assert set(slurm("sacct", "-X", "-n", "-P", "-o", "State").splitlines()) == {"COMPLETED"}
