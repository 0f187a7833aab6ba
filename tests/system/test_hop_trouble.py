"""Servers that jobs are handed on to, in trouble: what is said of it, and that every job is accounted for and runs once."""
import os
import shutil

import pytest

import agents
from drover import free_port, sh, wait_until
from hops import far, far_jobs, link, runs


@pytest.fixture
def two(request, build, instance):
    """A server whose only place is another server, which has processes."""
    instance.far = far(request, build)
    instance.server()
    runs(instance.far)
    link(instance, instance.far)
    return instance


def why(one, job):
    return "\n".join(one.api("GET", f"/v1/jobs/{job}/why")["text"])


def queue_of(one):
    return one.agents()[0]["queues"][0]


def kill_far(one):
    os.kill(one.far.pids("droverd")[0], 9)
    for daemon in one.far.daemons:
        if daemon.name == "droverd":
            daemon.process.wait()


def waits(one, **more):
    return sh(f"echo $DROVER_MEMBER >>{one.work}/ran; while [ ! -e {one.work}/go ]; do sleep 0.05; done; echo done", output="out.$(Process)", **more)


def test_who_is_away_is_named(two):
    """With the words of what failed: at the queue, of the job that is there, and of one that waits for it."""
    request = two.submit(waits(two))
    two.wait_state(f"{request}.0", "running")
    kill_far(two)
    wait_until(lambda: "cannot connect" in (queue_of(two)["unreachable"] or ""))
    gone = queue_of(two)["unreachable"]
    assert "does not answer" in gone and two.far.base in gone, gone
    assert gone in why(two, f"{request}.0")
    assert two.job(f"{request}.0")["unreachable"] == gone and two.job(f"{request}.0")["state"] == "running"
    path = wait_until(lambda: (p := two.json("path", f"{request}.0")) and p["hops"][0].get("said") == gone and p)
    assert path["summary"] == "unreachable" and f"\nhop 1: {gone}\n" in two.cli("path", f"{request}.0")
    later = two.submit(sh("true"))
    assert "can not be reached" in why(two, f"{later}.0")
    assert gone in two.cli("why", f"{later}.0")
    two.far.server()
    wait_until(lambda: not queue_of(two)["unreachable"])
    two.write("go", "")
    two.wait(request, later)
    assert two.read("ran") == "0\n"


def test_a_token_that_is_refused(request, build, instance):
    """From the beginning, and later: the far server's words are told, and a new token is enough."""
    one, two = instance, far(request, build)
    one.far = two
    one.server()
    runs(two, "--api-listen", f"127.0.0.1:{(port := free_port())}")
    good = two.json("token", "user")
    token = os.path.join(two.base, "token")

    def write(text):
        with open(token, "w", encoding="utf-8") as f:
            f.write(text + "\n")

    write(good["token"][:-4] + "0000")
    one.config = f"queues:\n  - name: east\n    runner: drover\n    drover: {{server: 'https://127.0.0.1:{port}', token_file: {token}}}\n"
    one.agent = agents.start(one, one.config)
    job = one.submit(waits(one))
    gone = wait_until(lambda: one.agents("connected") and one.agents()[0]["queues"] and queue_of(one)["unreachable"])
    assert "token" in gone and f"127.0.0.1:{port}" in gone, gone
    assert gone in one.cli("why", f"{job}.0")
    write(good["token"])
    one.wait_state(f"{job}.0", "running")
    two.cli("token", "revoke", good["id"])
    one.write("go", "")
    gone = wait_until(lambda: queue_of(one)["unreachable"])
    assert "token" in gone, gone
    write(two.json("token", "user")["token"])
    one.wait(job)
    assert one.read("ran") == "0\n" and one.read("out.0") == "done\n"
    wait_until(lambda: not far_jobs(two))


def test_who_is_away_further_on(request, build, two):
    """Three servers: the first one says that the second one cannot reach the third."""
    one, middle, last = two, two.far, far(request, build)
    middle.runner.stop()
    runs(last)
    link(middle, last)
    number = one.submit(waits(one))
    wait_until(lambda: one.json("path", f"{number}.0")["summary"] == "running")
    os.kill(last.pids("droverd")[0], 9)
    last.daemons[0].process.wait()

    def told():
        path = one.json("path", f"{number}.0")
        return path if len(path["hops"]) > 1 and "cannot connect" in path["hops"][1].get("said", "") else None

    path = wait_until(told)
    assert path["summary"] == "unreachable" and last.base in path["hops"][1]["said"]
    assert "\nhop 2: the other server, " in one.cli("path", f"{number}.0")
    last.server()
    wait_until(lambda: one.json("path", f"{number}.0")["summary"] == "running")
    one.write("go", "")
    one.wait(number)
    assert one.read("ran") == "0\n"


def test_made_anew(two):
    """Another server stands at its address: what is called there as our job was is not ours."""
    request = two.submit(waits(two))
    two.wait_state(f"{request}.0", "running")
    number = far_jobs(two.far)[0]
    two.far.stop()
    shutil.rmtree(two.far.dir)
    shutil.rmtree(f"{two.far.base}/r1")
    two.far.server()
    other = two.far.submit("executable = /bin/false\nqueue\n")
    assert other == number
    two.far.runner = agents.start(two.far, "queues:\n  - {name: here, cpus: 8}\n", name="r1")
    two.far.wait(other, code=1)
    two.write("go", "")
    two.wait(request)
    assert two.history(request)[0]["exit_code"] == 0 and two.read("out.0") == "done\n"
