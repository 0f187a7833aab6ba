"""AWS Batch as a place, against the moto server that DROVER_MOTO names, whose jobs are containers of the image DROVER_MOTO_IMAGE: tools/prove-awsbatch."""
import json
import os
import sys
import urllib.parse

import agents
from aws_batch import PROGRAM
from drover import sh, wait_until
from ec2 import ACCESS, SECRET

MOTO, REGION = os.environ["DROVER_MOTO"], "us-east-1"


def test_jobs_in_containers(instance):
    """moto's jobs are containers of the image that DROVER_MOTO_IMAGE names, which see the agent's folder: single ones (moto's members of arrays do not know their numbers), and one that is removed."""
    sys.path.insert(0, os.path.join(os.path.dirname(PROGRAM), "..", "provisioners"))
    import aws  # pylint: disable=import-error,import-outside-toplevel

    def moto(path, **body):
        status, text = aws.post(MOTO, "/v1/" + path, "application/json", json.dumps(body).encode(), "batch", REGION, (ACCESS, SECRET, None))
        assert status == 200, text
        return json.loads(text)

    name = "q" + str(os.getpid())
    role = urllib.parse.urlencode({"Action": "CreateRole", "Version": "2010-05-08", "RoleName": name, "AssumeRolePolicyDocument": "{}"}).encode()
    status, text = aws.post(MOTO, "/", "application/x-www-form-urlencoded", role, "iam", REGION, (ACCESS, SECRET, None))
    assert status == 200, text
    environment = moto("createcomputeenvironment", computeEnvironmentName=name, type="UNMANAGED", state="ENABLED",
                       serviceRole=f"arn:aws:iam::123456789012:role/{name}")
    moto("createjobqueue", jobQueueName=name, state="ENABLED", priority=1, computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment["computeEnvironmentArn"]}])
    moto("registerjobdefinition", jobDefinitionName=name, type="container", containerProperties={
        "image": os.environ["DROVER_MOTO_IMAGE"], "vcpus": 1, "memory": 64, "command": ["true"], "volumes": [{"name": "d", "host": {"sourcePath": instance.base}}],
        "mountPoints": [{"sourceVolume": "d", "containerPath": instance.base, "readOnly": False}]})
    instance.write("keys", f"aws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n")
    settings = {"program": PROGRAM, "region": REGION, "endpoint": MOTO, "credentials": os.path.join(instance.work, "keys"), "queue": name, "definition": name,
                "cpus": "8", "node_cpus": "8", "node_memory_mib": "4096", "poll": "1", "watch": "1"}
    instance.server()
    agents.start(instance, "kill_grace: 1s\nqueues:\n  - name: aws\n    runner: exec\n    exec: {" + ", ".join(f"{k}: '{v}'" for k, v in settings.items()) + "}\n")
    agents.offering(instance)
    request = instance.submit(sh("exit 7"))
    instance.wait(request, code=None, seconds=120)
    many = instance.submit(sh(f"hostname >>{instance.work}/hosts", queue="queue 5"))
    instance.wait(many, seconds=240)
    assert len(set(instance.read("hosts").split())) == 5  # each in a container of its own
    assert instance.history(request)[0]["exit_code"] == 7
    long = instance.submit(sh("sleep 600"))
    instance.wait_state(f"{long}.0", "running", seconds=120)
    instance.cli("rm", str(long))
    wait_until(lambda: instance.json("queue")["requests"] == [], 120)
