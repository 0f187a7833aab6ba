"""AWS Batch as a place: what is particular to the program awsbatch; what it shares with all runners is in test_runners.py."""
import json
import os
import subprocess

import pytest

import agents
from aws_batch import PROGRAM
from drover import sh, wait_until
from ec2 import ACCESS, SECRET

pytest_plugins = ["batch_systems"]


def ask(settings, op, **words):
    p = subprocess.run([PROGRAM, op], input=json.dumps({"version": 1, "op": op, "settings": settings, **words}) + "\n", capture_output=True, text=True,
                       timeout=90, check=False)
    return p.returncode, [json.loads(line) for line in p.stdout.splitlines()], p.stderr.strip()


def submit(aws, name, count=1, **more):
    script = os.path.join(aws.folder, "script")
    with open(script, "w", encoding="utf-8") as f:
        f.write(f'echo "$DROVER_TASK" >>{aws.folder}/ran; sleep "${{1:-0}}"\n')
    return ask(aws.settings, "submit", name=name, script=script, count=count, resources={"cpus": 1, "memory": 3 << 20, "gpus": 0, "walltime": 7, **more})


def test_what_is_asked_for(aws_batch):
    code, said, _ = submit(aws_batch, "d-1", words={"batchqueue": "spare"}, gpus=2)
    assert code == 0 and said[0]["native"].startswith("11111111-")
    body = aws_batch.calls[-1][1]
    assert body["jobQueue"] == "spare" and body["timeout"] == {"attemptDurationSeconds": 127} and body["retryStrategy"] == {"attempts": 1}
    assert {n["type"]: n["value"] for n in body["containerOverrides"]["resourceRequirements"]} == {"VCPU": "1", "MEMORY": "3", "GPU": "2"}
    for words, text in (({"batchqueue": "x"}, "there is no queue x here: the agent's file names main, other, spare"), ({"batchdefinition": "y"}, "no definition y")):
        code, said, err = submit(aws_batch, "d-2", words=words)
        assert code == 1 and said == [] and text in err


def test_members_of_an_array(aws_batch):
    """They count from 1 to the agent, in pages; one of them is ended alone."""
    native = submit(aws_batch, "d-1", count=5)[1][0]["native"]

    def states():
        return {job["native"]: job["state"] for job in ask(aws_batch.settings, "status", user="me")[1]}

    wait_until(lambda: states() == {f"{native}[{n}]": "ended" for n in range(1, 6)})
    with open(os.path.join(aws_batch.folder, "ran"), encoding="utf-8") as f:
        assert sorted(f.read().split()) == ["1", "2", "3", "4", "5"]
    assert {job["name"] for job in ask(aws_batch.settings, "status", user="me")[1]} == {"d-1"}
    aws_batch.slots = 0
    second = submit(aws_batch, "d-2", count=3)[1][0]["native"]
    wait_until(lambda: states().get(f"{second}[2]") == "waiting")
    assert ask(aws_batch.settings, "kill", natives=[f"{second}[2]", "nobody", "bad[x]"])[0] == 0
    wait_until(lambda: states()[f"{second}[2]"] == "cancelled")
    assert states()[f"{second}[1]"] == "waiting"
    assert ask(aws_batch.settings, "past", natives=[f"{second}[2]"])[1][0]["state"] == "cancelled"


@pytest.mark.parametrize("fault", ["cut after", "cut before", 429, 500, "garbage", "half", "empty"])
def test_a_submission_without_an_answer(instance, aws_batch, fault):
    """It is found by its name, or made again: the job runs once."""
    instance.server()
    agents.start(instance, agents.batch_queues(aws_batch))
    agents.offering(instance)
    aws_batch.faults = [("SubmitJob", fault, 1)]
    lines = os.path.join(instance.work, "ran")
    instance.run(sh(f"echo x >>{lines}"))
    with open(lines, encoding="utf-8") as f:
        assert f.read() == "x\n"
    assert not aws_batch.faults and len(aws_batch.jobs_all) == 1


def test_answers_that_are_errors(aws_batch):
    for fault in ("cut before", 429, 503, "garbage", "half"):
        aws_batch.faults = [("ListJobs", fault, 1)]
        code, said, err = ask(aws_batch.settings, "status", user="me")
        assert code == 75 and said == [] and err.startswith("ListJobs: ")
    with open(aws_batch.settings["credentials"], "w", encoding="utf-8") as f:
        f.write(f"aws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET[:-1]}x\n")
    code, said, err = ask(aws_batch.settings, "capacity")
    assert (code, said) == (75, []) and "403" in err and SECRET[:10] not in err
    os.unlink(aws_batch.settings["credentials"])
    assert "No such file" in ask(aws_batch.settings, "capacity")[2]


def test_the_queue_is_closed(aws_batch):
    def cpus():
        return ask(aws_batch.settings, "capacity")[1][0]["cpus"]

    assert cpus() == aws_batch.slots
    aws_batch.closed = True
    assert cpus() == 0
