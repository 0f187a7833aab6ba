"""drover resubmit: jobs of an earlier request again."""
import os
import signal

import agents
from drover import sh, wait_until


def numbers(out):
    return int(out.split()[1].rstrip(":"))


def test_those_that_failed_again(shared):
    """They write the files that they should have written, and get what they lacked."""
    first = shared.submit(
        "executable = /bin/sh\narguments = \"-c 'echo $(Process) $(word) $A >out.$(Process); [ $(Process) != 1 -a $(Process) != 3 -o X$A = Xnew ]'\"\n"
        "request_memory = 32MB\nenvironment = A=old\nqueue word from (\na\nb\nc\nd\n)\n")
    shared.wait(first, code=1)
    assert shared.read("out.1") == "1 b old\n"
    again = numbers(shared.cli("resubmit", str(first), "--failed", "-a", "environment=A=new", "-a", "Note=7"))
    shared.wait(again)
    assert [shared.read(f"out.{n}") for n in range(4)] == ["0 a old\n", "1 b new\n", "2 c old\n", "3 d new\n"]
    assert [j["ad"]["Note"] for j in shared.api("GET", f"/v1/history?id={again}&attributes=Note")["jobs"]] == [7, 7]
    assert "no job of request" in shared.cli("resubmit", str(again), "--failed", code=None).err


def test_all_and_some(shared):
    first = shared.run(sh("echo x >>out.$DROVER_MEMBER", queue="queue 3"))
    assert shared.cli("resubmit", str(first)) == f"request {first + 1}: 3 jobs\n"
    shared.wait(first + 1)
    third = shared.json("resubmit", f"{first}.1-2", "--hold")
    assert third["jobs"] == 2 and not third["existing"]
    assert shared.job(f"{third['id']}.0")["state"] == "held"
    shared.cli("rm", str(third["id"]))


def test_what_is_left_out(shared):
    """An edit, and what picked jobs waited for: who resubmits is told."""
    parent = shared.submit(sh("true", hold="true"))
    first = shared.submit(sh("true", queue="queue 2", depends_on=str(parent)))
    assert shared.cli("resubmit", str(first), "--hold").err == ""
    shared.cli("edit", str(first), "Note=1")
    said = shared.cli("resubmit", f"{first}.1", "--hold").err
    assert "what was edited since is left out" in said and "what these waited for is left out" in said
    last = max(r["id"] for r in shared.json("queue")["requests"])
    job = shared.job(f"{last}.0")["ad"]
    assert "Note" not in job and "DependsOn" not in job
    for request in (parent, first, last - 1, last):
        shared.cli("rm", str(request))


def test_inputs_that_were_sent(shared):
    shared.write("in.txt", "hello\n")
    first = shared.run(sh("cat in.txt >out.txt", should_transfer_files="YES", transfer_input_files="in.txt"))
    os.unlink(os.path.join(shared.work, "in.txt"))
    again = numbers(shared.cli("resubmit", str(first)))
    shared.wait(again)
    shared.cli("get", "-o", os.path.join(shared.work, "got"), str(again))
    assert shared.read("got/out.txt") == "hello\n"


def test_it_outlives_the_server(instance):
    """The record is what counts: after a kill -9 as before."""
    server = instance.server()
    agents.start(instance, "cpus: 2\n")
    first = instance.run(sh("exit 3"), code=1)
    server.stop(signal.SIGKILL)
    instance.server()
    wait_until(lambda: instance.agents("connected"))
    again = numbers(instance.cli("resubmit", str(first), "--failed"))
    instance.wait(again, code=1)


def test_bad_calls(shared):
    first = shared.run(sh("true"))
    for words, code, said in ((("9999",), 2, "no request 9999"), ((f"{first}.5",), 2, "only 1 jobs"),
                              ((str(first), "-a", "x"), 2, "NAME=VALUE"), (("x",), 2, "x"),
                              ((str(first), "-a", "Owner=1"), 2, "Owner"), ((str(first), "-a", "request_memory=-5"), 2, "not a number")):
        assert said in shared.cli("resubmit", *words, code=code).err, words
    for body in (b"[", b"{}", b'{"uuid": "x"}', b'{"uuid": "00000000-0000-0000-0000-0000000000aa", "members": "x"}',
                 b'{"uuid": "00000000-0000-0000-0000-0000000000aa", "attributes": {"DroverOutputs": "{}"}}',
                 b'{"uuid": "00000000-0000-0000-0000-0000000000aa", "attributes": {"a b": "1"}}'):
        assert shared.call("POST", f"/v1/requests/{first}/resubmit", body)[0] == 400, body
    body = {"uuid": "00000000-0000-0000-0000-0000000000ab"}
    once = shared.api("POST", f"/v1/requests/{first}/resubmit", body)
    twice = shared.api("POST", f"/v1/requests/{first}/resubmit", body)
    assert twice["existing"] and twice["id"] == once["id"]
    assert shared.api("POST", f"/v1/requests/{first}/resubmit?dry_run=1", {"uuid": "00000000-0000-0000-0000-0000000000ac"})["jobs"] == 1
    for wrong in ("0", "-1", "99999999999999999999", "x"):
        assert shared.call("POST", f"/v1/requests/{wrong}/resubmit", body)[0] == 404, wrong
