"""Credentials of jobs that are handed on, over three servers: where they arrive, and where nothing of them is."""
import os
import sqlite3

import pytest

import agents
from drover import of_process, sh, wait_until
from hops import far, far_jobs, hop_queue, runs
from test_credentials import SECRET, add, files_with


pytest_plugins = ["batch_systems"]
LONG = bool(os.environ.get("DROVER_CHECK_LONG"))


def pytest_generate_tests(metafunc):
    """Behind the last hop are processes, or Slurm: one test there, but for the long form."""
    if "three" in metafunc.fixturenames:
        slurm = LONG or metafunc.function is test_they_go_along_are_renewed_and_go
        metafunc.parametrize("three", ["process", "slurm"] if slurm else ["process"], indirect=True)


@pytest.fixture
def three(request, build, instance):
    """drover -> drover -> drover -> processes, or Slurm."""
    cluster = request.getfixturevalue("alpha") if request.param == "slurm" else None
    one, two, end = instance, far(request, build), far(request, build)
    for server in (one, two):
        server.server()
    if cluster:
        end.server()
        agents.start(end, agents.batch_queues(cluster), name="r1")
        agents.offering(end)
    else:
        runs(end)
    for server, to, queue in ((two, end, "west"), (one, two, "east")):
        server.config = "kill_grace: 1s\nqueues:\n" + hop_queue(queue, to)
        server.agent = agents.start(server, server.config)
        agents.offering(server)
    one.row = [one, two, end]
    one.folders = [server.base for server in one.row] + ([os.path.dirname(cluster.dir)] if cluster else [])
    return one


def carried(one):
    """Names of the credentials in a server's database that came with a request."""
    with sqlite3.connect(f"file:{os.path.join(one.dir, 'drover.db')}?mode=ro", uri=True, timeout=90) as db:
        return [name for (name,) in db.execute("select cast(name as text) from blob where cast(name as text) like 'credential/#%'")]


def told_by_processes(row):
    """What the command lines and environments of the daemons have."""
    text = b""
    for server in row:
        for program in ("droverd", "drover-agent", "drover-shepherd"):
            for pid in server.pids(program):
                for what in ("cmdline", "environ"):
                    text += of_process(pid, what)
    return text


def boxes(end):
    """The private folders of jobs at the last place."""
    jobs = f"{end.base}/r1/jobs"
    return [f"{jobs}/{name}/.drover_credentials/" for name in os.listdir(jobs)]


def test_they_go_along_are_renewed_and_go(three):
    one, two, end = three.row
    add(one, "grid", SECRET + "one\n")
    add(end, "grid", SECRET + "of-another\n")
    number = one.submit(sh(f"exec >>{one.work}/out; echo $BEARER_TOKEN_FILE; stat -c %a $BEARER_TOKEN_FILE $_CONDOR_CREDS; "
                           f"cat $_CONDOR_CREDS/grid.use; echo >{one.work}/there; "
                           "while grep -q one $BEARER_TOKEN_FILE; do sleep 0.1; done; "
                           f"cat $BEARER_TOKEN_FILE; echo >{one.work}/renewed; while [ ! -e {one.work}/go ]; do sleep 0.1; done",
                           credentials="grid"))
    wait_until(lambda: one.exists("there"))
    for folder in three.folders:
        assert files_with(folder, SECRET, [f"{one.work}/", *boxes(end)]) == []
    assert len(carried(two)) == len(carried(end)) == 1 and carried(one) == []
    assert SECRET.encode() not in told_by_processes(three.row)
    two.agent.kill()
    two.agent = agents.start(two, two.config)
    agents.offering(two)
    add(one, "grid", SECRET + "two\n")
    wait_until(lambda: one.exists("renewed"))
    assert [c["name"] for c in end.api("GET", "/v1/credentials")["credentials"]] == ["grid"]
    one.write("go", "")
    one.wait(number)
    path, *modes, first, second = one.read("out").split()
    assert path.endswith("/.drover_credentials/grid.use") and modes == ["600", "700"]
    assert (first, second) == (SECRET + "one", SECRET + "two")
    wait_until(lambda: not carried(two) and not carried(end) and not far_jobs(two) and not far_jobs(end))
    two.agent.stop()
    for folder in three.folders:
        assert files_with(folder, SECRET, [f"{one.work}/"]) == []


def test_only_what_came_along_is_given(three):
    """A job from elsewhere does not get the far user's own; one whose owner has none is held where it came from."""
    one, _, end = three.row
    add(end, "grid", SECRET + "of-another\n")
    number = one.submit(sh("cat $BEARER_TOKEN_FILE", credentials="grid", output="out"))
    assert "no credential grid" in one.wait_state(f"{number}.0", "held")["hold_reason"]
    status, answer = end.call("POST", "/v1/requests", {
        "uuid": "11111111-2222-4333-8444-666666666666", "lease_ms": 600000,
        "origin": {"servers": one.server_info()["uuid"], "job": "9.0", "hops_left": 3},
        "parts": [{"attributes": {"Cmd": "\"/bin/cat\"", "Arguments": "\".drover_credentials/grid.use\"", "Iwd": f"\"{end.work}\"",
                                  "DroverCredentials": "\"grid\"", "Out": f"\"{end.work}/out\""}}]})
    assert status == 201
    there = f"{answer['id']}.0"
    end.wait_state(there, "staging", "running")
    agents.offering(end)
    add(end, "grid", SECRET + "of-another-again\n")
    assert end.job(there)["state"] != "completed" and not end.exists("out")
    path = f"/v1/requests/{answer['id']}/credentials/grid"
    assert end.call("PUT", "/v1/requests/1000/credentials/grid", {"type": "token", "data": "x"})[0] == 404
    assert end.call("PUT", path, {"type": "nothing", "data": "x"})[0] == 400
    end.api("PUT", path, {"type": "token", "data": SECRET + "its-own"})
    end.wait(answer["id"], code=None)
    own = end.submit("executable = /bin/true\nqueue\n", "--hold")
    assert end.call("PUT", f"/v1/requests/{own}/credentials/grid", {"type": "token", "data": "x"})[0] == 409
    end.cli("rm", str(own))
    wait_until(lambda: not carried(end))


def test_alike_jobs_with_credentials_are_one_request(three):
    one, two, _ = three.row
    add(one, "grid", SECRET + "one\n")
    number = one.submit(sh("cat $BEARER_TOKEN_FILE", credentials="grid", output="out.$(Process)", queue="queue 8"))
    one.wait(number)
    assert [one.read(f"out.{n}") for n in range(8)] == [SECRET + "one\n"] * 8
    assert len({row["request"] for row in two.history()}) < 8
