"""Workers of the agent that copy and hash files: one that is held, or has much to do, holds up neither other jobs, nor `rm`, nor SIGTERM."""
import contextlib
import os
import signal

import pytest

import agents
import one_thread
import unseen
from drover import sh, wait_until

# The hole takes a worker a while, and its maker nothing.
HOLE = "truncate -s 48G {name}"
CONFIG = "cpus: 4\nkill_grace: 1s\n"
FILES = {"should_transfer_files": "YES", "when_to_transfer_output": "ON_EXIT"}


@pytest.fixture
def one(instance):
    instance.server()
    instance.agent = agents.start(instance, CONFIG)
    agents.offering(instance)
    yield instance


def outputs(one, script, names, **more):
    return one.submit(sh(script, transfer_output_files=names, **FILES, **more))


def used(pid, thread):
    with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13]))


def at_work(pid, ticks=20):
    """A thread beside the first that computes, and has done so for so many hundredths of a second."""

    def there():
        """a worker is at work"""
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            if thread != pid and used(pid, thread) > ticks:
                return thread
        return None

    return wait_until(there, every=0.005)


@contextlib.contextmanager
def held(one):
    """A job delivers, and the worker that has its files stands still."""
    request = outputs(one, HOLE.format(name="big"), "big")
    with one_thread.held(at_work(one.agent.pid)):
        yield request


def test_others_deliver_meanwhile(one):
    with held(one) as request:
        other = outputs(one, "echo here >small", "small")
        one.wait(other)
        assert one.job(f"{request}.0")["state"] == "running"


@pytest.fixture
def silent(one):
    folder = os.path.join(one.base, "silent")
    os.mkdir(folder)
    try:
        system = unseen.Silent(folder)
    except OSError:
        pytest.skip("no file system of one's own here")
    yield system
    system.close()


def test_a_small_file_to_a_file_system_that_does_not_answer(one, silent):
    """The agent's own thread waits for none, however little there is to deliver."""
    request = one.submit(sh("echo here >small", transfer_output_files="small", should_transfer_files="IF_NEEDED",
                            when_to_transfer_output="ON_EXIT", transfer_output_remaps=f'"small={silent.folder}/small"'))
    wait_until(silent.held.is_set)
    one.run(sh("true"))
    assert one.job(f"{request}.0")["state"] == "running"


def test_a_log_on_a_file_system_that_does_not_answer(one, silent):
    """Nor for lines of users' logs."""
    one.run(sh("true", log=f"{silent.folder}/log"))
    wait_until(silent.held.is_set)
    one.run(sh("true", log=f"{one.work}/log"))
    one.run(sh("true"))


def test_a_job_that_delivers_is_removed(one):
    with held(one) as request:
        one.cli("rm", str(request))
        one.wait_state(f"{request}.0", "removed")


def test_an_agent_that_is_told_to_end(one):
    with held(one):
        os.kill(one.agent.pid, signal.SIGTERM)
        wait_until(lambda: "not waited for" in one.agent.output())
    assert one.agent.process.wait(60) == 0  # without a second signal, which would meet an agent that has stopped listening


def test_a_hole_is_no_work_without_end(one):
    request = outputs(one, "truncate -s 8T big", "big")
    one.wait_state(f"{request}.0", "held")
    assert "holes in outputs are more than 64 GiB" in one.cli("why", f"{request}.0")
    kept = outputs(one, "truncate -s 1G big; echo end >>big", "big", initialdir=one.work)
    one.wait(kept)


@pytest.fixture
def hasty(instance):
    instance.server()
    instance.agent = agents.start(instance, CONFIG + "staging_silence: 2s\n")
    agents.offering(instance)
    yield instance


def unreachable(one):
    return one.agents()[0]["queues"][0]["unreachable"]


def test_outputs_without_progress(hasty):
    why = "staging made no progress for 2 s at big"
    with held(hasty) as request:
        hasty.wait_state(f"{request}.0", "held")
        assert why in hasty.cli("why", f"{request}.0")
        wait_until(lambda: unreachable(hasty) == why)
        assert why in hasty.cli("agents")
        waiting = hasty.submit(sh("true"))
        wait_until(lambda: why in hasty.cli("why", f"{waiting}.0"))
    hasty.wait(waiting)
    wait_until(lambda: unreachable(hasty) is None)
    assert hasty.job(f"{request}.0")["state"] == "held"


def test_inputs_without_progress(hasty):
    folder = os.path.join(hasty.work, "many")
    os.mkdir(folder)
    for i in range(12000):
        os.close(os.open(f"{folder}/{i}", os.O_CREAT))
    request = hasty.submit(sh("ls many | wc -l >count", transfer_input_files="many",
                              should_transfer_files="IF_NEEDED"))
    why = f"staging made no progress for 2 s at {folder}"
    with one_thread.held(at_work(hasty.agent.pid, ticks=2)):  # the files are made in a few tenths of a second
        wait_until(lambda: unreachable(hasty) == why)
        hasty.wait_state(f"{request}.0", "idle")
        wait_until(lambda: hasty.agents()[0]["queues"][0]["ad"].get("StagingFailures") == 1)
        assert why in hasty.cli("log", f"{request}.0") + hasty.cli("why", f"{request}.0")
    hasty.wait(request)
    assert hasty.read("count").strip() == "12000"
