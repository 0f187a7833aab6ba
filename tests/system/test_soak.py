"""Very many jobs: what the server, the agent and its shepherd keep does not grow with the jobs that are over."""
import os

import pytest

import agents
from drover import wait_until

KEPT = 5000  # finished jobs
SOME, ALL = 50000, 200000
GROWTH_MIB = 16  # of a process, between the two: a byte too many for each job's record of a hundred would be as much


def resident_mib(pid):
    """What the process has in memory now."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) / 1024


@pytest.mark.long
@pytest.mark.timeout(5400)
def test_memory_is_flat(instance):
    """200,000 jobs, in requests of 1 to 5,000, some of which fail: memory is what it was after 50,000, and the store is pruned."""
    os.makedirs(instance.dir, mode=0o700)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"keep_finished: 1s\nkeep: {{history_jobs: {KEPT}, outputs: 1m}}\n")
    instance.server()
    agents.start(instance, "cpus: 64\nqueues:\n  - {name: many, cpus: 64}\n")
    agents.offering(instance, "many")
    sizes, done, memory = (1, 5000, 17, 1200, 300, 3482), 0, {}
    while done < ALL:
        for n, count in enumerate(sizes):
            instance.submit(f"executable = /bin/{'true' if n % 4 else 'false'}\nrequest_cpus = {1 + n % 2}\n"
                            f"request_memory = {32 + n} MB\nrequest_disk = 0\nqueue {count}\n")
        wait_until(lambda: instance.api("GET", "/v1/requests?all=1")["requests"] == [], 1800, every=0.2)
        done += sum(sizes)
        if done in (SOME, ALL):
            memory[done] = {program: resident_mib(instance.pids(program)[0]) for program in ("droverd", "drover-agent", "drover-shepherd")}
    grown = {program: memory[ALL][program] - mib for program, mib in memory[SOME].items()}
    assert all(mib < GROWTH_MIB for mib in grown.values()), memory
    assert len(os.listdir(os.path.join(instance.base, "n1", "jobs"))) == 0
    wait_until(lambda: len(instance.history()) <= 2 * KEPT)
