"""What a job prints is shown from wherever it runs."""
import base64
import os
import threading

import pytest

import agents
from drover import sh, wait_until
from hops import far_jobs
from test_hostile_far import Far
from test_tail import Follower, go_on, printed

pytest_plugins = ["batch_systems"]


@pytest.fixture(params=["slurm", "gridengine"])
def place(request, instance):
    system = request.getfixturevalue("alpha" if request.param == "slurm" else "grid")
    instance.server()
    agents.start(instance, agents.batch_queues(system))
    agents.offering(instance, system.name)
    return instance


@pytest.mark.parametrize("named", [True, False], ids=["named", "not named"])
def test_a_job_of_a_batch_system(place, named):
    where = {"output": "out.txt", "error": "err.txt"} if named else {}
    request = place.submit(sh("echo first; echo error >&2; " + go_on(place) + "echo last", **where))
    f = Follower(place, f"{request}.0")
    f.until(lambda: f.text == {"stdout": b"first\n", "stderr": b"error\n"})
    assert not f.answer["ended"]
    place.write("go", "")
    place.wait(request)
    f.all()
    assert f.text == {"stdout": b"first\nlast\n", "stderr": b"error\n"} and f.gaps == 0
    assert printed(place, f"{request}.0").text == f.text
    assert place.cli("tail", "--stderr", str(request)) == "error\n"
    assert sorted(os.listdir(place.work)) == (["err.txt", "go", "out.txt"] if named else ["go"])
    wait_until(lambda: not os.listdir(os.path.join(place.base, "n1", "jobs")))


@pytest.mark.parametrize("named", [True, False], ids=["named", "not named"])
def test_a_job_at_another_server(two, named):
    """It is asked what the job prints there; the end of it is kept here, too."""
    where = {"output": "out.txt", "error": "err.txt"} if named else {}
    request = two.submit(sh("echo first; echo error >&2; " + go_on(two) + "echo last", **where))
    f = Follower(two, f"{request}.0")
    f.until(lambda: f.text == {"stdout": b"first\n", "stderr": b"error\n"})
    assert not f.answer["ended"]
    wait_until(lambda: two.cli("tail", str(request)) == "first\n")
    two.write("go", "")
    two.wait(request)
    f.all()
    assert f.text == {"stdout": b"first\nlast\n", "stderr": b"error\n"} and f.gaps == 0
    assert printed(two, f"{request}.0").text == f.text
    assert sorted(os.listdir(two.work)) == (["err.txt", "go", "out.txt"] if named else ["go"])


def test_much_at_another_server(two):
    """Its follower has every byte, and what is kept here is its end."""
    request = two.submit(sh("echo begin; " + go_on(two) + "seq 100000; sleep 2", request_disk="10 MB"))
    whole = b"begin\n" + b"".join(b"%d\n" % n for n in range(1, 100001))
    f = Follower(two, f"{request}.0")
    f.until(lambda: f.text["stdout"] == b"begin\n")
    two.write("go", "")
    f.until(lambda: len(f.text["stdout"]) == len(whole))
    assert f.text["stdout"] == whole and f.gaps == 0
    f.all()
    kept = printed(two, f"{request}.0")
    assert kept.text["stdout"] == whole[-65536:] and kept.answer["stdout"]["next"] == len(whole)


def test_another_attempt_at_another_server(two):
    """Its output comes behind that of the first."""
    request = two.submit(sh(f"echo start; if [ ! -e {two.work}/once ]; then touch {two.work}/once; {go_on(two, 'never')} fi; {go_on(two)}"))
    f = Follower(two, f"{request}.0")
    f.until(lambda: f.text["stdout"] == b"start\n")
    there, = far_jobs(two.far)
    two.far.cli("vacate", str(there))
    f.until(lambda: f.text["stdout"] == b"start\nstart\n")
    two.write("go", "")
    f.all()
    assert f.attempt == 1


def test_another_server_that_is_away(two):
    """Its job's followers wait, and a job that ends is not kept for what it has printed."""
    request = two.submit(sh("echo one; " + go_on(two) + "echo two; " + go_on(two, "end")))
    f = Follower(two, f"{request}.0")
    f.until(lambda: f.text["stdout"] == b"one\n")
    two.far.kill_server()
    assert f.ask(timeout_ms=500)["over"] is False
    two.write("go", "")
    two.far.server()
    f.until(lambda: f.text["stdout"] == b"one\ntwo\n")
    two.write("end", "")
    two.wait(request)
    f.all()


def test_an_agent_that_is_stopped_while_somebody_follows(two):
    request = two.submit(sh("echo one; " + go_on(two) + "echo two"))
    f = Follower(two, f"{request}.0")
    f.until(lambda: f.text["stdout"] == b"one\n")
    asking = threading.Thread(target=f.ask, args=(3000,))
    asking.start()
    assert two.agent.stop() == 0
    two.agent = agents.start(two, two.config)
    asking.join(60)
    two.write("go", "")
    f.all()
    assert f.text["stdout"] == b"one\ntwo\n"


def part(data, offset=0, **more):
    return {"offset": offset, "next": offset + len(data), "data": base64.b64encode(data).decode(), **more}


def says(**more):
    return lambda *_: (200, {"id": "7.0", "state": "running", "attempt": 1, "over": False, "ended": False, **more})


LIES = {  # and what a follower here is told
    "too much at once": (says(stdout=part(b"x" * 3000000)), b"x" * 65536),
    "no base64": (says(stdout={"offset": 0, "next": 9, "data": "!!!"}), b""),
    "no text": (says(stdout={"offset": [], "next": {}, "data": {"a": 1}}), b""),
    "no object": (lambda *_: (200, b"[1, 2]"), b""),
    "no JSON": (lambda *_: (200, b"<html>" * 100000), b""),
    "deep JSON": (lambda *_: (200, b"[" * 3000000), b""),
    "offsets before the begin and behind the end": (says(stdout=part(b"y", -5), stderr=part(b"", 2**62)), b"y"),
    "attempts that are none": (says(attempt=2**63 - 1, stdout=part(b"z")), b"z"),
    "an end that is none": (says(over=True, ended=False, stdout=part(b"")), b""),
    "an error": (lambda *_: (500, b"\\x1b[2J"), b""),
    "nothing at all": (lambda *_: None, b""),
}


def test_another_server_that_lies(instance, request):
    """What it says that a job prints is bounded here, and makes nothing of the agent fail."""
    far = Far(instance.base)
    far.state = "running"
    request.addfinalizer(lambda: (far.server.shutdown(), far.server.server_close()))
    instance.server()
    agent = agents.start(instance, f"queues:\n  - name: east\n    runner: drover\n    drover: {{server: 'unix:{far.path}'}}\n")
    agents.offering(instance)
    job = f"{instance.submit(sh('true'))}.0"
    instance.wait_state(job, "running")
    for name, (lie, told) in LIES.items():
        far.lies["GET /v1/jobs/7.0/output"] = lie
        f = Follower(instance, job)
        f.ask(timeout_ms=700)
        assert f.text["stdout"] == told and f.text["stderr"] == b"", (name, f.answer)
        assert f.answer["attempt"] == 1 and not f.answer["ended"], name
        assert agent.running(), name
    far.lies["GET /v1/jobs/7.0/output"] = lambda *_: None  # its end, too, is not told: the job ends without it
    far.state = "completed"
    instance.wait(job, code=1)
    assert printed(instance, job).text["stdout"] == b""
