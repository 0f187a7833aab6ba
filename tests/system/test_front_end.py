"""One server in front of several: requests are spread over them, and one place shows all."""
import contextlib
import os
import signal

import pytest

import agents
from drover import wait_until
from hops import far, hop_queue, runs

JOBS = 1000


class Front:
    """A server whose agents hand jobs on to others: an agent for each."""

    def __init__(self, instance, request, build, *names):
        self.one, self.back = instance, {}
        instance.server("--config", instance.write("front.yaml", "lease: 6s\n"))
        for name in names:
            self.back[name] = far(request, build)
            runs(self.back[name])

    def add(self, name):
        """The front end's agent for it; it joins, or is started again."""
        self.one.server_json()
        return agents.start(self.one, "kill_grace: 1s\nqueues:\n" + hop_queue(name, self.back[name], more="    queued_max: 8\n"), name=name)

    def lose(self, name):
        """Its machine is switched off."""
        self.back[name].kill_server()
        self.back[name].runner.kill()
        for pid in self.back[name].pids("drover-shepherd"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def done(self, name):
        return sum(r["completed"] for r in self.back[name].api("GET", "/v1/requests?all=1")["requests"])


@pytest.mark.timeout(900)
def test_a_thousand_jobs_over_three_with_one_lost_in_the_middle(instance, request, build):
    """One back end is lost, another comes while the queue is long, and a third one is drained. Every job is done, once unless it was lost."""
    front = Front(instance, request, build, "east", "north", "west")
    script = instance.write("job", f"#!/bin/sh\nsleep 0.05\necho $1 >>{instance.work}/ran\n", 0o755)
    front.add("east")
    front.add("north")
    wait_until(lambda: len(instance.agents("connected")) == 2)
    number = instance.submit(f"executable = {script}\narguments = $(Process)\nrequest_memory = 16 MB\nrequest_disk = 1 MB\nqueue {JOBS}\n")
    wait_until(lambda: front.done("east") > 30 and front.done("north") > 30)
    front.lose("east")
    front.add("west")
    wait_until(lambda: front.done("west") > 30)
    instance.cli("agents", "drain", "north", "--reason", "a new kernel")
    jobs = instance.json("queue", "--state", "running", str(number))["jobs"]
    assert jobs and {j["agent"] for j in jobs} <= {"east", "north", "west"}
    assert len(instance.api("GET", f"/v1/jobs/{jobs[0]['id']}/path")["hops"]) >= 1
    instance.wait(number, seconds=400)
    ran = [int(n) for n in instance.read("ran").split()]
    assert set(ran) == set(range(JOBS))
    assert len(instance.history(number)) == JOBS
    for job in {n for n in ran if ran.count(n) > 1}:  # it had begun at the one that was lost
        events = [e["event"] for e in instance.events(f"{number}.{job}")]
        assert events.count("matched") > 1, (job, events)
    assert all(front.done(name) > 30 for name in ("north", "west"))


def test_what_runs_at_a_back_end_is_seen_and_stopped_in_front(instance, request, build):
    """And when the back end comes back, its jobs are there again."""
    front = Front(instance, request, build, "east")
    front.add("east")
    agents.offering(instance)
    go = os.path.join(instance.work, "go")
    script = instance.write("waits", f"#!/bin/sh\necho $$ >>{instance.work}/pids\nwhile [ ! -e {go} ]; do sleep 0.05; done\n", 0o755)
    number = instance.submit(f"executable = {script}\nrequest_memory = 16 MB\nrequest_disk = 1 MB\nqueue 3\n")
    wait_until(lambda: instance.exists("pids") and len(instance.read("pids").split()) == 3)
    assert "east" in instance.cli("path", f"{number}.1")
    front.back["east"].kill_server()
    front.back["east"].server()
    instance.cli("rm", f"{number}.2")
    wait_until(lambda: sum(os.path.exists(f"/proc/{pid}") for pid in instance.read("pids").split()) == 2)
    instance.write("go", "")
    instance.wait(number, code=1)
    assert len(instance.read("pids").split()) == 3
    assert sorted(row["state"] for row in instance.history(number)) == ["completed", "completed", "removed"]
