"""Files that are torn when a machine fails: the agent's journal, that of a batch queue, an input in the spool. What is left of them is
read up to the tear; no job is lost, told twice or run twice at a time, and none gets a piece of a file for the whole."""
import os
import signal

import pytest

import agents
from drover import free_port, sh, wait_until
from exec_runner import Processes
from test_asleep import begin, whole
from test_kill import FINAL
from test_outlive import runs
from test_remote import start_remote, token


def torn(path, how):
    """Cut, or with a last record that never reached the disk."""
    with open(path, "rb") as f:
        data = f.read()
    assert data
    keep = {"a_byte": len(data) - 1, "half": len(data) // 2, "all": 0, "zeros": max(len(data) - 20, 0)}[how]
    with open(path, "wb") as f:
        f.write(data[:keep] + (b"\0" * 20 if how == "zeros" else b""))


def content(path):
    with open(path, "rb") as f:
        return f.read()


HOWS = pytest.mark.parametrize("how", ["a_byte", "half", "all", "zeros"])


@HOWS
def test_the_agents_journal(instance, how):
    """Its job runs on under the shepherd: it is known again, or ended before it runs again."""
    job, agent = begin(instance, "60s")
    agent.kill()
    torn(os.path.join(instance.base, "n1", "journal"), how)
    agent = agents.start(instance, "cpus: 1\n")
    wait_until(lambda: instance.agents("connected"))
    wait_until(lambda: instance.job(job)["state"] == "running")
    assert len(whole(instance, job)) <= 2, agent.output()
    assert instance.history(instance.run(sh("true")))[0]["starts"] == 1


@HOWS
def test_the_journal_of_a_batch_queue(instance, how, request):
    """Its job ends once. What the journal has lost is ended there as unknown, within its grace, while it begins again."""
    system = Processes(os.path.join(instance.base, "system"))
    request.addfinalizer(system.stop)
    config = "kill_grace: 1s\n" + agents.batch_queues(system).split("\n", 1)[1]
    job, agent = begin(instance, "60s", config)
    agent.kill()
    torn(os.path.join(instance.base, "n1", "batch.local", "journal"), how)
    agent = agents.start(instance, config)
    wait_until(lambda: instance.agents("connected"))
    wait_until(lambda: instance.job(job)["state"] == "running")
    instance.write("flag", "")
    instance.wait(job)
    assert instance.read("out") == "whole\n"
    assert [e["event"] for e in instance.events(job) if e["event"] in FINAL] == ["exited"]
    assert len(runs(instance)[job]) <= 2, agent.output()
    wait_until(lambda: not system.jobs())
    assert instance.history(instance.run(sh("true")))[0]["starts"] == 1


@pytest.mark.parametrize("how", ["a_byte", "all"])
def test_an_input_in_the_spool(instance, how):
    """The job that would get a piece of it does not begin, and says why; with the file whole again it runs."""
    instance.port = free_port()
    instance.server("--listen", f"127.0.0.1:{instance.port}")
    instance.write("in", "whole\n" * 1000)
    request = instance.submit(sh("wc -l <in", transfer_input_files="in", should_transfer_files="YES", output="out"), "--hold")
    instance.kill_server(signal.SIGKILL)
    objects = os.path.join(instance.dir, "spool", "objects")
    data = b"whole\n" * 1000
    path, = (p for p in (os.path.join(where, name) for where, _, names in os.walk(objects) for name in names) if content(p) == data)
    torn(path, how)
    instance.server("--listen", f"127.0.0.1:{instance.port}")
    agent = start_remote(instance, "far", token(instance, "far"))
    wait_until(lambda: instance.agents("connected"))
    instance.cli("release", str(request))
    job = instance.wait_state(f"{request}.0", "held")
    assert job["hold_reason"] and "in" in job["hold_reason"], job
    with open(path, "wb") as f:
        f.write(data)
    instance.cli("release", str(request))
    instance.wait(request)
    instance.cli("get", str(request), "-o", "got")
    assert instance.read("got/out") == "1000\n"
    assert [row["exit_code"] for row in instance.history(request)] == [0]
    assert agent.running()
