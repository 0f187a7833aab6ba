"""Tools of CWL do here what they do with cwltool alone: the conformance tests of CommandLineTools, as tools/compare-cwl has recorded them."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tarfile

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare"))

import cwl_suite  # noqa: E402  (the path must be there first)
import warm_cwltool  # noqa: E402

# Those of limits of time sleep, so they begin first.
TESTS = sorted(cwl_suite.recorded(), key=lambda test: not test["id"].startswith("timelimit"))


def test_what_cwltool_does_not_pass_has_a_reason():
    assert {test["id"] for test in TESTS if test["cwltool"]["differs"]} == set(cwl_suite.reasons())


@pytest.fixture
def programs(instance):
    """A folder for the jobs' PATH: no containers, and a cwltool that is started already."""
    folder = os.path.join(instance.base, "bin")
    cwl_suite.link_programs(folder, {"cwltool"})
    socket = os.path.join(instance.base, "cwltool")
    warm_cwltool.write_program(os.path.join(folder, "cwltool"), socket)
    with subprocess.Popen(["/usr/bin/python3", warm_cwltool.__file__, socket], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout.readline() == "ready\n"
            yield folder
        finally:
            server.kill()


def out(instance, test):
    return os.path.join(instance.work, "out", test["id"])


def submit(instance, suite, programs, test):
    """The request's number. Its outputs come into a folder of its own."""
    os.makedirs(out(instance, test))
    order = ["--params", os.path.join(suite, test["job"])] if "job" in test else []
    done = instance.cli("submit", "-a", f"environment = PATH={programs}", "--cwl", *order, os.path.join(suite, test["tool"]), cwd=out(instance, test))
    return re.match(r"request (\d+)", done.out)[1]


def outcome(suite, test, folder, job):
    """As the test's "cwltool"."""
    outputs = {}
    if job["exit_code"] == 0:
        with open(os.path.join(folder, "cwl_outputs.json"), encoding="utf-8") as f:
            outputs = json.load(f)
    return {"exit": job["exit_code"], "differs": cwl_suite.judge(suite, test, job["exit_code"], outputs, folder)}


def test_tools_of_cwl_do_what_they_do_with_cwltool(instance, programs):
    suite = os.path.join(instance.work, "suite")
    with tarfile.open(cwl_suite.FILES) as archive:
        archive.extractall(suite)
    instance.up("--cpus", "8")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        requests = list(pool.map(lambda test: submit(instance, suite, programs, test), TESTS))
    instance.wait(*requests, code=1, seconds=500)  # all have ended, and some of them with another code than 0
    jobs = {job["id"].split(".")[0]: job for job in instance.history()}
    got = {test["id"]: outcome(suite, test, out(instance, test), jobs[number]) for number, test in zip(requests, TESTS)}
    assert got == {test["id"]: test["cwltool"] for test in TESTS}
