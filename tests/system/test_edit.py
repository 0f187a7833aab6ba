"""drover edit and drover requeue: jobs that wait get other attributes."""
import json
import os
import signal

import agents
from drover import sh, wait_until


def ad(instance, job, name):
    return instance.job(job)["ad"].get(name)


def test_what_an_edit_says_is_what_runs(drover):
    """Arguments, environment and what is asked for; of those that wait only, and for each of them."""
    flag = os.path.join(drover.work, "go")
    first = drover.submit(sh(f"while [ ! -e {flag} ]; do sleep 0.05; done; echo $A >>{drover.work}/out.$DROVER_MEMBER",
                             environment="A=old", request_memory="900 TB", queue="queue 3"))
    assert drover.cli("edit", f"{first}.1-2", "request_memory=64M", 'env="A=new$(Process)"', "Project=\"atlas\"", "priority=5") \
        .splitlines() == ["2 jobs changed", "2 jobs given another priority"]
    assert ad(drover, f"{first}.0", "RequestMemory") == 900 << 20
    drover.wait_state(f"{first}.1", "running")
    assert [ad(drover, f"{first}.2", name) for name in ("RequestMemory", "Project", "JobPrio")] == [64, "atlas", 5]
    assert "by user" in drover.cli("log", f"{first}.1") and "RequestMemory = 64" in drover.cli("log", f"{first}.1")
    drover.write("go", "")
    drover.wait(f"{first}.1", f"{first}.2")
    assert [drover.read(f"out.{n}") for n in (1, 2)] == ["new1\n", "new2\n"]
    drover.cli("hold", f"{first}.0")
    assert drover.cli("edit", f"{first}", "request_memory=64M") == "1 job changed\n"
    drover.cli("release", f"{first}.0")
    drover.wait(first)
    assert drover.read("out.0") == "old\n"
    assert {row["member"]: row["ad"].get("Project") for row in drover.api(
        "GET", f"/v1/history?id={first}&attributes=Project")["jobs"]} == {0: None, 1: "atlas", 2: "atlas"}


def test_what_cannot_be_changed_is_said(drover):
    flag = os.path.join(drover.work, "go")
    runs = drover.submit(sh(f"while [ ! -e {flag} ]; do sleep 0.05; done"))
    waits = drover.submit(sh("true", queue="queue 2", requirements="false"))
    drover.wait_state(f"{runs}.0", "running")
    for words, code, said in (((f"{runs}.0", "request_memory=1G"), 1, "vacate"),
                              ((f"{waits}", "executable=/bin/false"), 2, "Cmd cannot be changed"),
                              ((f"{waits}", "Owner=\"root\""), 2, "Owner is set by the server"),
                              ((f"{waits}", "requirements=1 +"), 2, "requirements"),
                              ((f"{waits}", "hold=true"), 2, "drover hold"),
                              ((f"{waits}", "request_memory=-5"), 2, "not a number of 0 or more"),
                              ((f"{waits}", "priority=high"), 2, "whole number"),
                              ((f"{waits}",), 2, "NAME=VALUE"),
                              (("request_memory=1G",), 2, "which jobs"),
                              (("999", "request_memory=1G"), 2, "no such request")):
        assert said in drover.cli("edit", *words, code=code).err, words
    assert ad(drover, f"{waits}.0", "RequestMemory") == 32
    answer = json.loads(drover.cli("edit", "--json", f"{waits}", f"{runs}.0", "Note=1 + 1", code=1))
    assert answer == {"affected": 2, "errors": [], "not_waiting": [f"{runs}.0"]}
    drover.cli("edit", str(waits), "requirements=")
    drover.wait(waits)
    drover.write("go", "")
    drover.wait(runs)


def test_edits_outlive_the_server(instance):
    """kill -9 at once, twice: from the log, and from a snapshot that was made meanwhile."""
    server = instance.server()
    request = instance.submit(sh(f"echo $A >>{instance.work}/out.$DROVER_MEMBER", environment="A=old", requirements="false",
                                 queue="queue 2000"))
    instance.cli("edit", f"{request}.7-8", "env=A=new", "requirements=")
    instance.cli("edit", f"{request}.8-9", "Note=\"n$(Process)\"")
    for _ in range(2):
        server.stop(signal.SIGKILL)
        server = instance.server()
        assert [ad(instance, f"{request}.{n}", "Note") for n in range(7, 11)] == [None, "n8", "n9", None]
        server.stop(signal.SIGTERM)
        server = instance.server()
    agents.start(instance, "queues: [{name: q}]\n")
    instance.wait(f"{request}.7-8")
    assert [instance.read(f"out.{n}") for n in (7, 8)] == ["new\n", "new\n"]
    assert instance.job(f"{request}.9")["state"] == "idle"


def test_requeue(drover):
    """What runs and what is held waits again, and runs."""
    go = os.path.join(drover.work, "go")
    request = drover.submit(sh(f"echo s >>{drover.work}/starts.$DROVER_MEMBER; while [ ! -e {go} ]; do sleep 0.05; done",
                               request_cpus="1", queue="queue 2"))
    drover.wait_state(f"{request}.0", "running")
    drover.cli("hold", f"{request}.1")
    drover.wait_state(f"{request}.1", "held")
    assert drover.cli("requeue", str(request)) == "2 jobs back in the queue\n"
    wait_until(lambda: drover.job(f"{request}.0")["starts"] == 2)
    drover.write("go", "")
    drover.wait(request)
    assert drover.read("starts.0") == "s\ns\n"
    assert drover.cli("requeue", str(request), code=1) == "0 jobs back in the queue\n"


def test_a_misspelled_keyword_is_no_attribute(shared):
    request = shared.submit("executable = /bin/true\nqueue\n", "--hold")
    for word, meant in (("request_memry=1G", "request_memory"), ("requirments=true", "requirements")):
        assert f"did you mean {meant}?" in shared.cli("edit", str(request), word, code=2).err
    shared.cli("edit", str(request), "MY.requirments=true", "Project=\"x\"")
    ad = shared.cli("show", "--ad", f"{request}.0")
    assert "requirments = true\n" in ad and 'Project = "x"\n' in ad
    shared.cli("rm", str(request))


def test_a_word_as_an_amount_is_warned_of(shared):
    request = shared.submit("executable = /bin/true\nqueue\n", "--hold")
    told = shared.cli("edit", str(request), "request_memory=lots").err
    assert "request_memory: lots is the name of an attribute and no amount" in told
    assert shared.cli("edit", str(request), "request_memory=2G").err == ""
    assert "memory: lots is" in shared.cli("resubmit", str(request), "--hold", "-a", "request_memory=lots").err
    shared.cli("rm", str(request), str(request + 1))
