"""Files that are torn when a machine fails: the agent's journal, that of a batch queue, the shepherd's table, an input in the spool.
What is left of them is read up to the tear; no job is lost, told twice or run twice at a time, and none gets a piece of a file for the
whole."""
import os
import random
import signal
import struct
import subprocess

import pytest

import agents
from drover import alive, free_port, processes, sh, wait_until
from exec_runner import Processes
from test_asleep import begin, in_turn, send, whole
from test_kill import FINAL, kill9
from test_outlive import beating, runs
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


# ---- the shepherd's table: a head (what it is, of which boot), and an entry for each child (agent/shepherd/shepherd.h)

HEAD, ENTRY = 48, struct.Struct("=iIIIq")


def entry_of(data, pid):
    for at in range(HEAD, len(data), ENTRY.size):
        if ENTRY.unpack_from(data, at)[0] == pid:
            return at
    raise AssertionError(f"the table has no entry of {pid}")


def half_a_record(data, at, _):
    return data[:at + ENTRY.size // 2]


def garbage_tail(data, at, other):
    """Behind half of the entry, also as an entry of a process that is none of the shepherd's, and further than the file went."""
    noise = random.Random(14).randbytes(len(data) + 5000)
    noise = noise[:ENTRY.size] + ENTRY.pack(other, 0, 0, 0, 1) + noise[ENTRY.size:]
    return data[:at + ENTRY.size // 2] + b"\xff" * (ENTRY.size // 2) + noise[at + ENTRY.size:]


def zeroed_page(data, _, __):
    return b"\0" * 4096 + data[4096:]


def empty(*_):
    return b""


@pytest.mark.parametrize("tear", [half_a_record, garbage_tail, zeroed_page, empty])
def test_the_shepherds_table(instance, tear):
    """With its agent and shepherd killed, a job's process that the shepherd's death does not end lives on, and no control group holds it.
    However the table is torn, the next shepherd ends that process before the job runs again, and no other; and it says that the table is
    damaged. What had ended is not run again."""
    config = os.path.join(instance.base, "droverd.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("lease: 60s\n")
    instance.server("--config", config)
    alone = "cpus: 1\ncgroups: off\n"
    agent = agents.start(instance, alone)
    ended = instance.run(sh(f"echo ran >>{instance.work}/ended"))
    flag = os.path.join(instance.work, "flag")
    instance.write("beats", beating(instance, flag))
    request = instance.submit(sh(f"echo $$ >{instance.work}/main; setsid sh {instance.work}/beats & wait", output="out"))
    job = f"{request}.0"
    wait_until(lambda: instance.exists("log") and runs(instance) and instance.written("main"))
    instance.wait_state(job, "running")
    shepherd, = instance.pids("drover-shepherd")
    agent.kill()
    kill9(shepherd)
    main = int(instance.read("main"))
    wait_until(lambda: not alive(main))
    orphans = processes(os.path.join(instance.work, "beats"))
    assert orphans, "nothing outlived the shepherd"
    path = os.path.join(instance.base, "n1", "shepherd.table")
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as other:
        try:
            left = tear(content(path), entry_of(content(path), main), other.pid)
            with open(path, "wb") as f:
                f.write(left)
            agent = agents.start(instance, alone)
            wait_until(lambda: instance.job(job)["state"] == "running" and len(runs(instance)[job]) == 2)
            assert not [pid for pid in orphans if alive(pid)], agent.output()
            assert other.poll() is None
        finally:
            other.kill()
            for pid in orphans:
                send(pid, signal.SIGKILL)
    assert b"shepherd.table is damaged" in content(os.path.join(instance.base, "n1", "shepherd.log"))
    instance.write("flag", "")
    instance.wait(request)
    in_turn(instance, job)
    assert instance.read("out") == "whole\n"
    assert [e["event"] for e in instance.events(job) if e["event"] in FINAL] == ["exited"]
    assert instance.read("ended") == "ran\n" and instance.history(ended)[0]["starts"] == 1


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
