"""Jobs that wait for others: `--after`, `depends_on`, edges inside a request; what is said of them; bad days."""
import json
import os

import pytest

from drover import sh, wait_until
from test_kill import apart


def gated(instance, gate, queue="queue"):
    """Jobs that run until the file is there, and then end with the number in it."""
    path = os.path.join(instance.work, gate)
    return sh(f"while ! test -s {path}; do sleep 0.05; done; exit $(cat {path})", queue=queue)


def open_gate(instance, gate, code=0):
    with open(os.path.join(instance.work, gate + ".new"), "w", encoding="utf-8") as f:
        f.write(f"{code}\n")
    os.rename(os.path.join(instance.work, gate + ".new"), os.path.join(instance.work, gate))


def started_after(instance, child, parent):
    """Whether the first job started when the other one had ended, by the times that the agent gave."""
    def times(job):
        row, = (j for j in instance.history(job.split(".")[0]) if j["id"] == job)
        return row["started_ms"], row["ended_ms"]
    return times(child)[0] >= times(parent)[1]


def test_what_a_waiting_job_says(drover):
    first = drover.submit(gated(drover, "said", queue="queue 2"))
    second = drover.submit(sh("exit 0", queue="queue 3"), "--after", str(first))
    third = drover.submit(sh("exit 0").replace("queue", f"depends_on = {first}.1:any, {second}.0-1\nqueue"))
    words = f"waits for request {first} to succeed: 0 of 2 jobs done"
    assert words in drover.cli("queue", str(second))
    shown = " ".join(drover.cli("show", f"{second}.1").split())
    assert words in shown and f"waits for {words}" not in shown
    assert f"It {words}." in drover.cli("why", f"{second}.1")
    why = drover.json("why", f"{third}.0")
    assert why["depends_on"] == [
        {"request": first, "jobs": "1", "when": "any", "total": 1, "succeeded": 0, "failed": 0, "satisfied": False},
        {"request": second, "jobs": "0-1", "when": "ok", "total": 2, "succeeded": 0, "failed": 0, "satisfied": False}]
    assert f"It waits for job {first}.1 to end." in why["text"]
    assert f"It waits for jobs {second}.0-1 to succeed: 0 of 2 jobs done." in why["text"]
    request = drover.api("GET", f"/v1/requests/{second}")
    assert (request["idle"], request["waiting"]) == (3, 3)
    open_gate(drover, "said")
    drover.wait(third)
    assert started_after(drover, f"{second}.0", f"{first}.1") and started_after(drover, f"{third}.0", f"{second}.1")


def test_what_never_can_start_is_held_or_removed(drover):
    first = drover.submit(gated(drover, "fails"))
    held = drover.submit(sh("exit 0"), "--after", str(first))
    removed = drover.submit(sh("exit 0"), "--after", f"{first}:ok", "-a", "on_dependency_failure = remove")
    behind = drover.submit(sh("exit 0"), "--after", f"{removed}:any", "--after", f"{first}:fail")
    open_gate(drover, "fails", 3)
    drover.wait(behind)
    drover.wait(held, code=3)
    said = f"depends on job {first}.0, which did not succeed"
    assert said in drover.cli("queue", str(held)) and said in drover.cli("why", f"{held}.0")
    job, = drover.history(removed)
    assert job["state"] == "removed"
    assert said in drover.cli("show", "--ad", f"{removed}.0")
    drover.cli("release", str(held))
    drover.wait(held)


def test_a_wait_ends_when_all_that_is_left_waits_for_a_held_job(drover):
    first = drover.submit(gated(drover, "stuck", queue="queue 2"))
    second = drover.submit(sh("exit 0", queue="queue 3"), "--after", str(first))
    third = drover.submit(sh("exit 0"), "--after", f"{second}:any")
    drover.cli("hold", f"{first}.0")
    drover.wait_state(f"{first}.0", "held")
    drover.wait_state(f"{first}.1", "running")
    assert "timed out" in drover.wait(third, seconds=1, code=124).err  # the other one goes on
    open_gate(drover, "stuck")
    said = drover.wait(third, code=3).err
    assert f"all that is left waits for a job that is held: drover release {first}.0" in said
    assert drover.api("GET", f"/v1/wait?ids={third}")["stuck_on"] == f"{first}.0"
    said = drover.wait(f"{first},{third}", code=3).err
    assert f"all that is left is held, or waits for jobs that are held: drover release {first} " in said
    drover.cli("release", f"{first}.0")
    drover.wait(third)


def test_each_waits_for_its_own(drover):
    first = drover.submit(sh("exit $(($(Process) % 2))", queue="queue 4"))
    second = drover.submit(sh("exit 0", queue="queue 4"), "--after", f"{first}:each")
    drover.wait(second, code=3)
    assert [j["state"] for j in drover.jobs(second)] == ["completed", "held", "completed", "held"]


def test_an_edited_job_goes_on_waiting(drover):
    first = drover.submit(gated(drover, "edited"))
    second = drover.submit(sh("exit 0", queue="queue 3"), "--after", str(first))
    drover.cli("edit", f"{second}.1", "request_memory=40M")
    assert "waits for request" in drover.cli("queue", f"{second}.1")
    assert "cannot be changed" in drover.cli("edit", str(second), "depends_on=9", code=None).err
    open_gate(drover, "edited", 1)
    drover.wait(second, code=3)
    drover.cli("release", str(second))
    drover.wait(second)


def test_removing_a_parent(drover):
    first = drover.submit(gated(drover, "never"))
    second = drover.submit(sh("exit 0"), "--after", str(first))
    third = drover.submit(sh("exit 0"), "--after", f"{first}:any")
    drover.cli("rm", str(first))
    drover.wait(third)
    drover.wait_state(f"{second}.0", "held")


@pytest.mark.parametrize("failure", ["hold", "remove"])
def test_edges_inside_a_request(drover, failure):
    """A diamond, and a job behind it that wants it to fail."""
    body = {"uuid": "00000000-0000-4000-8000-0000000000" + ("01" if failure == "hold" else "02"),
            "edges": "0>1,2;1-2>3;3>4:fail;3>5:any",
            "parts": [{"attributes": {"Cmd": '"/bin/sh"', "Arguments": '"-c \'exit $(code)\'"', "Iwd": json.dumps(drover.work),
                                      "OnDependencyFailure": json.dumps(failure), "TransferExecutable": "false"},
                       "late": ["Arguments"], "variables": ["code"], "items": "0\n0\n7\n0\n0\n0\n"}]}
    status, answer = drover.call("POST", "/v1/requests", body)
    assert status == 201, answer
    request = answer["id"]
    if failure == "hold":
        drover.wait_state(f"{request}.3", "held")
        assert [j["state"] for j in drover.jobs(request)][3:] == ["held", "idle", "idle"]
        drover.cli("release", f"{request}.3")
    drover.wait(request, code=3 if failure == "hold" else 1)
    states = {j["id"].split(".")[1]: (j["state"], j["exit_code"]) for j in drover.history(request)}
    assert states["2"] == ("completed", 7) and states["5"] == ("completed", 0)
    if failure == "hold":
        assert states["3"] == ("completed", 0)
        assert f"waits for request {request} to fail, but it succeeded" in drover.cli("why", f"{request}.4")
    else:
        assert states["3"][0] == "removed" and states["4"] == ("completed", 0)


def test_a_server_that_is_killed_goes_on_with_a_chain(instance):
    """At whatever point: a chain of forty jobs over ten kills, each job once and in its turn."""
    apart(instance)
    trace = os.path.join(instance.work, "trace")
    body = {"uuid": "00000000-0000-4000-8000-000000000009", "edges": ";".join(f"{i}>{i + 1}" for i in range(39)),
            "parts": [{"attributes": {"Cmd": '"/bin/sh"', "Arguments": json.dumps(f"-c 'echo $(Process) >> {trace}; sleep 0.2'"),
                                      "Iwd": json.dumps(instance.work), "TransferExecutable": "false"},
                       "late": ["Arguments"], "steps": 40}]}
    request = instance.api("POST", "/v1/requests", body)["id"]
    after = instance.submit(sh("exit 0"), "--after", str(request))
    for n in range(10):
        wait_until(lambda n=n: instance.exists("trace") and len(instance.read("trace").split()) >= 4 * n + 1)
        instance.kill_server()
        instance.server()
    instance.wait(request, after)
    assert instance.read("trace").split() == [str(i) for i in range(40)]
    assert started_after(instance, f"{after}.0", f"{request}.39")


def test_a_parent_in_history_only(instance):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("keep_finished: 1s\n")
    apart(instance)
    good = instance.run(sh("exit 0", queue="queue 3"))
    bad = instance.run(sh("exit $(Process)", queue="queue 2"), code=1)
    wait_until(lambda: instance.api("GET", "/v1/requests?all=1")["requests"] == [])
    after = instance.submit(sh("exit 0"), "--after", str(good), "--after", f"{bad}:fail", "--after", f"{bad}.0")
    never = instance.submit(sh("exit 0"), "--after", str(bad), "--hold")
    instance.wait(after)
    instance.kill_server()
    instance.server()
    instance.cli("release", str(never))
    instance.wait_state(f"{never}.0", "held")
    assert f"depends on request {bad}, which did not succeed" in instance.cli("queue", str(never))
    assert "has only the jobs 0 to 2" in instance.cli("submit", "--after", f"{good}.3", "--", "true", code=1).err


def test_what_cannot_be_waited_for(shared):
    known = shared.submit(sh("exit 0", queue="queue 2"), "--hold")
    for after, words in ((f"{known + 1}", f"there is no request {known + 1} of yours"), ("999", "there is no request 999 of yours"),
                         (f"{known}.2", "has only the jobs 0 to 1"), (f"{known}:each", "the numbers must be the same"),
                         (f"{known}:soon", "ok, fail, any or each"), ("x", "names no jobs to wait for"), ("7.3-1", "names no jobs to wait for"),
                         ("7.", "names no jobs"), ("0", "names no jobs"), ("99999999999999999999999", "names no jobs")):
        assert words in shared.cli("submit", "--after", after, "--", "true", code=1).err, after
    for text, words in ((f"depends_on = {known}.$(Process)\n", "cannot differ from job to job"),):
        assert words in shared.cli("submit", "-", stdin=sh("exit 0").replace("queue", text + "queue"), code=1).err
    for edges, words in (("0>1;1>0", "in a circle"), ("0>2", "has the jobs 0 to 1"), ("0", "is not like"), ("0>1:each", "is not like"),
                         ("0>1:x", "is not like"), (7, "must be a string"), ("0>1;;", "is not like"), ("a>b", "has the jobs 0 to 1")):
        status, answer = shared.call("POST", "/v1/requests", {
            "uuid": "00000000-0000-4000-8000-00000000000a", "edges": edges, "parts": [{"attributes": {"Cmd": '"/bin/true"'}, "steps": 2}]})
        assert status == 400 and words in answer["error"]["message"], (edges, answer)
