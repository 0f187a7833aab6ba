"""Jobs that make checkpoints go on from them: in place, after they were vacated, and elsewhere when their place has died."""
import os
import signal

import pytest

import agents
from drover import sh, wait_until

pytest_plugins = ["batch_systems"]

# Counts from what its file says; each start leaves a line. Asked by SIGUSR1, or every 5 steps with `often`, it writes down how
# far it is and ends with 85. What else a checkpoint has is written by `and_then`.
COUNTER = """
n=$(cat state 2>/dev/null || echo 0); echo start $n >>{work}/log; echo from $n
save() {{ echo $n >state; {and_then} exit {code}; }}
trap save USR1
while [ $n -lt {most} ]; do
    n=$((n + 1)); echo $n >{work}/at
    if [ -n "{often}" ] && [ $((n % 5)) = 0 ]; then save; fi
    while [ ! -e {work}/go ] && [ $n -ge {pause} ]; do sleep 0.05; done
done
{last}
"""


def counter(instance, most=20, often="", pause=1000, code=85, and_then="", last="echo done", **more):
    script = COUNTER.format(work=instance.work, most=most, often=often, pause=pause, code=code, and_then=and_then, last=last)
    path = instance.write("counter.sh", "#!/bin/sh\n" + script, 0o755)
    lines = {"executable": path, "checkpoint_exit_code": "85", "transfer_checkpoint_files": "state", "output": "out",
             "request_memory": "32 MB", "request_disk": "1 MB", "transfer_output_files": "", **more}
    return instance.submit("".join(f"{k} = {v}\n" for k, v in lines.items()) + "queue\n")


def starts(instance):
    return [int(line.split()[1]) for line in instance.read("log").splitlines()]


def kinds(instance, job):
    return [e["event"] for e in instance.events(job)]


CONFIG = "kill_grace: 1s\nqueues:\n  - name: here\n    cpus: 2\n"


@pytest.fixture(params=["process", "slurm"])
def place(request, instance):
    config = os.path.join(instance.base, "droverd.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("lease: 9s\n" if request.function is test_asked_for_one_and_its_node_killed else "")
    instance.server("--config", config)
    instance.config = CONFIG if request.param == "process" else agents.batch_queues(request.getfixturevalue("alpha"))
    instance.agent = agents.start(instance, instance.config)
    agents.offering(instance)
    return instance


def test_goes_on_in_place(place):
    """Each checkpoint is kept at the server; the program is started again where it was, and its output goes on."""
    request = counter(place, most=13, often="yes", log="job.log")
    place.wait(request)
    assert starts(place) == [0, 5, 10]
    assert place.read("out") == "from 0\nfrom 5\nfrom 10\ndone\n"
    assert kinds(place, f"{request}.0").count("checkpointed") == 2
    row = place.history(request)[0]
    assert (row["exit_code"], row["starts"]) == (0, 1)
    wait_until(lambda: "\n005 (" in place.read("job.log"))
    events = [e.splitlines() for e in place.read("job.log").split("...\n")]
    assert [e[0][:3] for e in events if e and e[0][:3] != "006"] == ["000", "001", "003", "003", "005"]
    made = next(e for e in events if e[0][:3] == "003")
    assert made[0].endswith(" Job was checkpointed.") and made[1].endswith("  -  Run Remote Usage")
    sent = sum(len(text) for text in ("5\n", "from 0\n"))
    assert made[3:] == [f"\t{sent}  -  Run Bytes Sent By Job For Checkpoint"]


def test_asked_for_one_and_its_node_killed(place):
    """It goes on elsewhere from the checkpoint, not from zero; its output until then is there, too."""
    request = counter(place, pause=7, most=9, **{"+CheckpointSig": '"SIGUSR1"'})
    wait_until(lambda: place.exists("at") and place.read("at") == "7\n")
    place.wait_state(f"{request}.0", "running")
    place.cli("checkpoint", str(request))
    wait_until(lambda: starts(place) == [0, 7])
    wait_until(lambda: "checkpointed" in kinds(place, f"{request}.0"))
    place.agent.kill()
    for pid in place.pids("drover-shepherd"):
        os.kill(pid, signal.SIGKILL)
    agents.start(place, CONFIG, "n2")
    wait_until(lambda: starts(place) == [0, 7, 7])
    place.write("go", "")
    place.wait(request)
    assert place.read("out").splitlines() == ["from 0", "from 7", "done"]
    assert place.history(request)[0]["starts"] == 2


def test_vacated_with_a_checkpoint(place):
    request = counter(place, pause=4, most=6, kill_sig="SIGUSR1")
    wait_until(lambda: place.exists("at") and place.read("at") == "4\n")
    place.wait_state(f"{request}.0", "running")
    place.cli("vacate", str(request))
    wait_until(lambda: starts(place) == [0, 4])
    place.write("go", "")
    place.wait(request)
    assert place.read("out") == "from 0\nfrom 4\ndone\n"


def test_held_and_its_outputs_kept(place):
    """ON_EXIT_OR_EVICT: what it had written is there again."""
    request = place.submit(sh(f"[ -e half ] && cat half && exit 0; echo first >half; touch {place.work}/there; sleep 600",
                              when_to_transfer_output="ON_EXIT_OR_EVICT", output="out"))
    wait_until(lambda: place.exists("there"))
    place.wait_state(f"{request}.0", "running")
    place.cli("hold", str(request))
    place.wait_state(f"{request}.0", "held")
    place.cli("release", str(request))
    place.wait(request)
    assert place.read("out") == "first\n" and place.read("half") == "first\n"
