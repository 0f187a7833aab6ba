"""What is submitted to a batch system can be read, and a job has the environment that its author captured, and no other."""
import os

import pytest

import agents
from drover import sh, wait_until

pytest_plugins = ["batch_systems"]


@pytest.fixture(params=["slurm", "gridengine"])
def place(request, instance):
    system = request.getfixturevalue("alpha" if request.param == "slurm" else "grid")
    instance.env["DROVER_TEST_AGENTS"] = "the agent's own"
    instance.server()
    instance.config = agents.batch_queues(system) + "  - name: here\n    cpus: 1\n    requirements: TARGET.WantHere =?= true\n"
    instance.agent = agents.start(instance, instance.config)
    agents.offering(instance, system.name)
    instance.resources = "#SBATCH --mem=321" if request.param == "slurm" else "#$ -q all.q"
    instance.number = "SLURM_JOB_ID" if request.param == "slurm" else "JOB_ID"
    del instance.env["DROVER_TEST_AGENTS"]
    return instance


def test_the_script_of_a_job(place):
    """While its place has it, after the agent was killed, and when it is over."""
    go = os.path.join(place.work, "go")
    request = place.submit(sh(f"while [ ! -e {go} ]; do sleep 0.05; done # it's \"quoted\"", request_memory="321 MB",
                              environment='"WORD=\'it\'\'s\'"'))
    place.wait_state(f"{request}.0", "running")
    text = place.cli("show", str(request), "--script")
    head = text.split("# job ")[0].splitlines()
    assert head[0] == "#!/bin/sh" and any(line.startswith(place.resources) for line in head), head
    assert f"# job {request}.0, attempt 1, step 0\n" in text
    assert "export WORD='it'\\''s'\n" in text and f"while [ ! -e {go} ]" in text
    assert place.json("show", f"{request}.0", "--script")["script"] == text
    place.agent.kill()
    agents.start(place, place.config)
    wait_until(lambda: place.agents("connected"))
    wait_until(lambda: "# job" in place.cli("show", f"{request}.0", "--script", code=None))
    place.write("go", "")
    place.wait(request)
    assert place.cli("show", f"{request}.0", "--script") == text
    never = place.submit(sh("true", requirements="false"))
    assert "has not been at a place yet" in place.cli("show", str(never), "--script", code=None).err


def test_the_script_of_a_job_that_is_held(place):
    """Why it is held may stand in it."""
    request = place.submit(sh("true", **{"+BatchQueue": '"nowhere"'}))
    place.wait_state(f"{request}.0", "held")
    assert "nowhere" in place.cli("show", f"{request}.0", "--script").split("# job ")[0]


def test_a_process_has_no_script(place):
    request = place.submit(sh("sleep 60", requirements='TARGET.Runner == "process"', **{"+WantHere": "true"}))
    place.wait_state(f"{request}.0", "running")
    assert "submits no script: its runner is process" in place.cli("show", str(request), "--script", code=None).err
    place.cli("rm", str(request))


def test_the_environment_is_the_authors(place):
    """What getenv names comes along, as the submitter had it; nothing of the agent's or the submit command's does."""
    place.env["DROVER_TEST_MINE"] = "it's $HOME, \"mine\" and ünïcode"
    place.env["DROVER_TEST_MANY"] = "two\nlines"
    place.env["DROVER_TEST_OTHER"] = "not asked for"
    request = place.run(sh(f"env -0 >{place.work}/environment", getenv="DROVER_TEST_M*", environment='"GIVEN=\'a b\'"'))
    with open(os.path.join(place.work, "environment"), encoding="utf-8") as f:
        got = dict(line.split("=", 1) for line in f.read().split("\0") if line)
    assert got["DROVER_TEST_MINE"] == place.env["DROVER_TEST_MINE"] and got["GIVEN"] == "a b"
    assert "DROVER_TEST_OTHER" not in got and "DROVER_TEST_MANY" not in got and "DROVER_TEST_AGENTS" not in got
    assert got["DROVER_JOB"] == f"{request}.0" and got[place.number].isdigit() and "LC_ALL" not in got
    everything = place.run(sh(f"env -0 >{place.work}/environment", getenv="True"))
    with open(os.path.join(place.work, "environment"), encoding="utf-8") as f:
        got = dict(line.split("=", 1) for line in f.read().split("\0") if line)
    assert got["DROVER_TEST_OTHER"] == "not asked for" and got["DROVER_JOB"] == f"{everything}.0"
