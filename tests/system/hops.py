"""Servers that hand jobs on to each other, and jobs that tell whether they run."""
import os
import shutil
import tempfile
import time

import agents
from drover import Failed, Instance, sh, wait_until


def far(request, build):
    """Another instance, not started; stopped and removed with the test."""
    one = Instance(build, tempfile.mkdtemp(prefix="f-", dir=request.config.drover_tmp))

    def end():
        try:
            one.stop()
        finally:
            shutil.rmtree(one.base, ignore_errors=True)

    request.addfinalizer(end)
    return one


def hop_queue(name, to, more="", settings=""):
    return f"  - name: {name}\n    runner: drover\n    drover: {{server: 'unix:{to.socket_path()}'{settings}}}\n{more}"


def link(first, second, settings=""):
    """An agent of the first server hands jobs on to the second."""
    first.config = "kill_grace: 1s\nqueues:\n" + hop_queue("east", second, settings=settings)
    first.agent = agents.start(first, first.config)
    agents.offering(first)


PROCESSES = "kill_grace: 1s\nqueues:\n  - {name: here, cpus: 8}\n"


def runs(one, *args):
    """The server, and an agent that runs processes."""
    one.server(*args)
    one.runner = agents.start(one, PROCESSES, name="r1")
    agents.offering(one)


def pids(one):
    return one.read("pids").split() if one.exists("pids") else []


def beating(one):
    """A job that writes its number, and then on and on."""
    return sh(f"echo $$ >>{one.work}/pids; while :; do echo x >>{one.work}/beats; sleep 0.05; done")


def stopped(one):
    """nothing is written for a while"""
    before = os.path.getsize(f"{one.work}/beats")
    time.sleep(0.3)
    return os.path.getsize(f"{one.work}/beats") == before


def gone(pid):
    return not os.path.exists(f"/proc/{pid}")


def far_jobs(one, *states):
    """Numbers of the unfinished requests of a server whose job is in one of the states."""
    rows = one.api("GET", "/v1/requests")["requests"]
    return [r["id"] for r in rows if not states or one.job(f"{r['id']}.0")["state"] in states]


def whole_path(one, job, hops):
    """The path, when it has so many hops and the last one is known to its batch system."""
    path = one.api("GET", f"/v1/jobs/{job}/path")
    return path if len(path["hops"]) == hops and path["hops"][-1].get("native") else None


def path_in(one, job, hops, state):
    """The whole path, once each of so many hops is in the state."""

    def there():
        path = whole_path(one, job, hops)
        return path if path and {h["state"] for h in path["hops"]} == {state} else None

    try:
        return wait_until(there)
    except Failed:
        raise Failed(f"{hops} hops are not {state}: {one.api('GET', f'/v1/jobs/{job}/path')}") from None
