"""What a job asks for about its own end."""
import os
import re

import agents
from drover import sh, wait_until


def test_max_retries(shared):
    counter = f"{shared.work}/tries-$(Cluster)"
    request = shared.run(sh(f"echo x >>{counter}; [ `wc -l <{counter}` -ge 3 ]", max_retries="5"))
    assert shared.read(f"tries-{request}") == "x\n" * 3
    assert shared.history(request)[0]["starts"] == 3


def test_max_retries_are_bounded(shared):
    request = shared.run(sh("exit 1", max_retries="2"), code=1)
    job = shared.history(request)[0]
    assert (job["starts"], job["exit_code"]) == (3, 1)


def test_on_exit_hold(shared):
    request = shared.submit(sh("exit 9", on_exit_hold="ExitCode == 9", on_exit_hold_reason='"nine"'))
    job = shared.wait_state(f"{request}.0", "held")
    assert "nine" in job["hold_reason"]
    assert "nine" in shared.cli("why", f"{request}.0")
    shared.cli("rm", str(request))


def test_many_that_have_run_are_removed(shared):
    """Some at a time, and of those that are named only."""
    request = shared.submit(sh("true", on_exit_hold="true", queue="queue 30"))
    wait_until(lambda: shared.api("GET", f"/v1/requests/{request}")["held"] == 30)
    gone = shared.api("POST", "/v1/actions", {"action": "remove", "constraint": f"ClusterId == {request} && ProcId % 2 == 0"})
    assert gone["affected"] == 15
    gone = shared.api("POST", "/v1/actions", {"action": "remove", "ids": [f"{request}.1-19"]})
    assert gone["affected"] == 10
    assert shared.api("GET", f"/v1/requests/{request}")["held"] == 5
    assert shared.api("POST", "/v1/actions", {"action": "remove", "ids": [str(request)]})["affected"] == 5
    wait_until(lambda: len(shared.history(request)) == 30)


def test_on_exit_remove_false_runs_again(shared):
    request = shared.submit(sh(f"echo x >>{shared.work}/again; exit 1", on_exit_remove="NumJobStarts >= 3"))
    shared.wait(request, code=1)
    assert shared.read("again") == "x\n" * 3


def test_periodic_remove(shared):
    request = shared.submit(sh("sleep 600", periodic_remove="time() - QDate > 2"))
    shared.wait(request, code=1)
    assert shared.history(request)[0]["state"] == "removed"


def test_missing_executable_is_held_with_the_reason(shared):
    request = shared.submit("executable = /no/such/program\ntransfer_executable = false\nrequest_memory=16MB\nqueue\n")
    job = shared.wait_state(f"{request}.0", "held")
    assert "/no/such/program" in job["hold_reason"]
    assert "/no/such/program" in shared.cli("why", f"{request}.0")
    shared.cli("rm", str(request))


def test_missing_input_is_held_with_the_reason(shared):
    shared.write("soon-gone", "")
    request = shared.submit(sh("true", transfer_input_files="soon-gone"), "--hold")
    os.unlink(f"{shared.work}/soon-gone")
    shared.cli("release", str(request))
    wait_until(lambda: "soon-gone" in (shared.job(f"{request}.0").get("hold_reason", "")))
    shared.cli("rm", str(request))


def test_missing_output_is_held_with_the_reason(shared):
    request = shared.submit(sh("true", transfer_output_files="never-made"))
    job = shared.wait_state(f"{request}.0", "held")
    assert "never-made" in job["hold_reason"]
    shared.cli("rm", str(request))


def test_why_says_what_would_help(shared):
    """In the words of a submit file and in units that people use; with two things in the way both are named."""
    for text, expected in (
            ("request_memory = 900 TB\n", r"Would fit 1 queue with request_memory <= [0-9.]+[MGT] \(asked 900T\): `drover edit \d+ request_memory=[0-9.]+[MGT]`\."),
            ("request_gpus = 1\n", r"In the way is request_gpus = 1\."),
            ("request_memory = 900 TB\nrequirements = Arch == \"none\"\n",
             r"No single change is enough\. In the way are Arch == \"none\"; request_memory = 900T\.")):
        request = shared.submit(f"executable = /bin/true\n{text}queue\n")
        out = shared.cli("why", f"{request}.0")
        assert "No queue can run this job (1 checked).\nThe job's requirements exclude 1 queue.\n" in out
        assert re.search(expected, out), out
        shared.cli("rm", str(request))


def test_requirements_keep_a_job_idle_and_why_says_so(shared):
    request = shared.submit(sh("true", requirements="Machine == \"no-such-machine\""))
    out = shared.cli("why", f"{request}.0")
    assert "no-such-machine" in out
    answer = shared.json("why", f"{request}.0")
    assert answer["state"] == "idle"
    assert answer["agents"][0]["verdict"] == "refuses"
    shared.cli("rm", str(request))


def test_too_much_memory_is_explained(shared):
    request = shared.submit(sh("true").replace("32 MB", "900 TB"))
    out = shared.cli("why", f"{request}.0")
    assert "emory" in out
    assert shared.job(f"{request}.0")["state"] == "idle"
    shared.cli("rm", str(request))


def test_rank_chooses(instance):
    """Of two places that have room the job's own wish decides, whichever it is."""
    instance.server()
    agents.start(instance, "queues:\n  - {name: low, attributes: Rack = 1}\n  - {name: high, attributes: Rack = 2}\n")
    agents.queues(instance, 2)
    for rank, place in (("Rack", "high"), ("-Rack", "low"), ("TARGET.Rack =?= 1", "low"), ("ifThenElse(Rack > 1, 5, 0)", "high")):
        request = instance.run(sh("true", rank=rank))
        assert instance.history(request)[0]["queue"] == place, rank


def test_own_attributes(shared):
    request = shared.submit(sh("true", **{"+Project": '"atlas"', "requirements": 'MY.Project == "atlas"'}))
    shared.wait(request)
    assert shared.job(f"{request}.0")["ad"]["Project"] == "atlas"
