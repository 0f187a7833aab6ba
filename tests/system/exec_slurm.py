"""The runner `exec` in front of a cluster of Slurm: a program such as a site would write it, for jobs of several users."""
import os

PROGRAM = '''#!/usr/bin/python3
import json
import os
import subprocess
import sys

STATES = {"PENDING": "waiting", "RUNNING": "running", "COMPLETING": "running", "SUSPENDED": "running", "COMPLETED": "ended",
          "FAILED": "ended", "CANCELLED": "cancelled", "TIMEOUT": "timeout", "NODE_FAIL": "lost"}


def run(*argv):
    p = subprocess.run(argv, capture_output=True, text=True, check=False)
    if p.returncode:
        sys.stderr.write(p.stderr)
        sys.exit(1 if "error: Batch job submission failed" in p.stderr else 75)
    return p.stdout.splitlines()


ask = json.loads(sys.stdin.readline())
os.environ["SLURM_CONF"] = ask["settings"]["conf"]
answers = []
if sys.argv[1] == "submit":
    answers = [{"native": run("sbatch", "--parsable", "--output=/dev/null", "--mem=20", "--job-name=" + ask["name"], ask["script"])[-1]}]
elif sys.argv[1] == "status":
    for line in run("squeue", "-h", "-t", "all", "-u", ask["user"], "-o", "%i|%j|%T|%u"):
        answers.append(dict(zip(("native", "name", "state", "user"), line.split("|"))))
        answers[-1]["state"] = STATES[answers[-1]["state"]]
elif sys.argv[1] == "kill":
    run("scancel", *ask["natives"])
elif sys.argv[1] == "nudge":
    run("scancel", "--signal=URG", "--batch", *ask["natives"])
elif sys.argv[1] == "capacity":
    answers = [{"cpus": 16, "idle_cpus": 8, "memory": 1 << 34, "idle_memory": 1 << 33, "nodes": 4, "node_cpus": 4, "node_memory": 1 << 32}]
else:
    sys.exit(64)
for answer in answers:
    print(json.dumps(answer))
'''


class ExecSlurm:
    """`system` is the cluster; the program is put into `folder`, which all may read."""

    def __init__(self, system, folder):
        self.name, self.runner = "site", "exec"
        program = os.path.join(folder, "batch-program")
        with open(program, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        os.chmod(program, 0o755)
        self.settings = {"program": program, "conf": system.conf, "verbs": "nudge", "poll": "1", "watch": "1"}
