"""Workers of the agent that copy and hash files: one that is held, or has much to do, holds up neither other jobs, nor `rm`, nor SIGTERM."""
import contextlib
import os
import signal

import pytest

import agents
import one_thread
from drover import sh, wait_until

# The hole takes a worker a while, and its maker nothing.
HOLE = "truncate -s 48G {name}"
FILES = {"should_transfer_files": "YES", "when_to_transfer_output": "ON_EXIT"}


@pytest.fixture
def one(instance):
    instance.server()
    instance.agent = agents.start(instance, "cpus: 4\nkill_grace: 1s\n")
    agents.offering(instance)
    yield instance


def outputs(one, script, names, **more):
    return one.submit(sh(script, transfer_output_files=names, **FILES, **more))


def used(pid, thread):
    with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as f:
        return int(f.read().rpartition(")")[2].split()[11])


def at_work(pid):
    """A thread beside the first that computes."""

    def there():
        """a worker is at work"""
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            if thread != pid and used(pid, thread) > 20:
                return thread
        return None

    return wait_until(there)


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


def test_a_job_that_delivers_is_removed(one):
    with held(one) as request:
        one.cli("rm", str(request))
        one.wait_state(f"{request}.0", "removed")


def test_an_agent_that_is_told_to_end(one):
    with held(one):
        os.kill(one.agent.pid, signal.SIGTERM)
        wait_until(lambda: "not waited for" in one.agent.output())
    assert one.agent.stop() == 0


def test_a_hole_is_no_work_without_end(one):
    request = outputs(one, "truncate -s 8T big", "big")
    one.wait_state(f"{request}.0", "held")
    assert "holes in outputs are more than 64 GiB" in one.cli("why", f"{request}.0")
    kept = outputs(one, "truncate -s 1G big; echo end >>big", "big", initialdir=one.work)
    one.wait(kept)
