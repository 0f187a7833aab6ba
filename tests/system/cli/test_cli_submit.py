"""drover submit: what is sent, and what is done when the connection breaks."""
import hashlib
import json
import os
import re
import threading
import time

import pytest

HELLO = "executable = /bin/echo\narguments = hello $(Process)\noutput = out.$(Process)\nqueue 3\n"


class Uploads:
    """The server's side of uploads."""

    def __init__(self, lose=0):
        self.parts, self.done, self.lose = {}, {}, lose

    def replies(self):
        answers = {"POST /v1/uploads": self.begin}
        for n in range(1, 20):
            answers[f"PUT /v1/uploads/u{n}"] = self.put
            answers[f"POST /v1/uploads/u{n}/finish"] = self.finish
        return answers

    def begin(self, r):
        name = f"u{len(self.parts) + 1}"
        self.parts[name] = b""
        return {"id": name}

    def put(self, r):
        name, offset = r.path.split("/")[3], int(r.query["offset"])
        assert len(r.raw) <= 4 << 20 and offset <= len(self.parts[name])
        self.parts[name] = self.parts[name][:offset] + r.raw
        if self.lose:
            self.lose -= 1
            return None, None
        return {"size": len(self.parts[name])}

    def finish(self, r):
        data = self.parts[r.path.split("/")[3]]
        self.done[r.body["name"]] = data
        return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def accepted(r):
    jobs = sum(p["rows"] * p["steps"] for p in r.body["parts"])
    return 201, {"id": 7, "uuid": r.body["uuid"], "jobs": jobs, "existing": False}


def remote(r):
    return {"version": "0.1.0", "uuid": "00000000-0000-4000-8000-000000000000", "domain": "local",
            "now_ms": 1, "remote_agents": True, "you": "me@local", "admin": True, "accepting": True,
            "moved": {"bytes_in": 0, "bytes_out": 0}, "jobs": {}}


def test_submit(cli):
    fake = cli.fake(replies={"POST /v1/requests": accepted})
    assert cli("submit", cli.write("hello.sub", HELLO)) == "request 7: 3 jobs\n"
    body = fake.asked("POST", "/v1/requests")[0].body
    part = body["parts"][0]
    assert part["attributes"]["Cmd"] == '"/bin/echo"' and part["rows"] * part["steps"] == 3
    assert "Out" in part["late"] and part["attributes"]["Iwd"] == f'"{cli.work}"'
    assert re.fullmatch("[0-9a-f-]{36}", body["uuid"]) and body["hold"] is False and body["spooled"] == []
    assert cli("submit", "-", stdin=HELLO.replace("queue 3", "queue")) == "request 7: 1 job\n"
    assert fake.requests[-1].body["uuid"] != body["uuid"]
    assert cli.json("submit", "--hold", "-a", "request_memory = 2G", "-", stdin=HELLO)["id"] == 7
    assert fake.requests[-1].body["hold"] is True
    assert fake.requests[-1].body["parts"][0]["attributes"]["RequestMemory"] == "2048"


def test_submit_and_wait(cli):
    c = {"jobs": 3, "finished": 3, "succeeded": 2, "failed": 1, "removed": 0, "held": 0, "running": 0, "idle": 0,
         "done": True, "seen": "x"}
    fake = cli.fake(replies={"POST /v1/requests": accepted, "GET /v1/wait": c})
    assert cli("submit", "--wait", "-", stdin=HELLO, code=1) == "request 7: 3 jobs\n3 jobs: 2 succeeded, 1 failed, 0 removed\n"
    assert fake.asked("GET", "/v1/wait")[0].query["ids"] == "7"


def test_a_lost_submit_is_repeated_under_its_uuid(cli):
    """The server takes the request and goes away before it has answered; then it is started again."""
    state = {"seen": []}

    def reply(r):
        state["seen"].append(r.body["uuid"])
        if len(state["seen"]) == 1:
            return None, None
        return 200, {"id": 7, "uuid": r.body["uuid"], "jobs": 3, "existing": True}

    fake = cli.fake(replies={"POST /v1/requests": reply})

    def restart():
        while not state["seen"]:
            time.sleep(0.01)
        fake.stop()
        time.sleep(0.5)
        fake.start()

    thread = threading.Thread(target=restart)
    thread.start()
    assert cli("submit", "-", stdin=HELLO) == "request 7: 3 jobs\n"
    thread.join()
    assert len(state["seen"]) == 2 and len(set(state["seen"])) == 1
    assert "trying again" in cli.err


def test_a_refused_submit_is_not_repeated(cli):
    fake = cli.fake(replies={"POST /v1/requests": (503, {"error": {"code": "disk_full", "message": "the disk is full"}})})
    cli("submit", "-", stdin=HELLO, code=1)
    assert cli.err == "drover: the disk is full\n" and len(fake.asked("POST", "/v1/requests")) == 1


def test_no_server_is_told_at_once(cli):
    cli("submit", "-", stdin=HELLO, code=1)
    assert "start one with `drover up`" in cli.err


@pytest.mark.parametrize("text, says", [("quque\n", "-:1: "), ("executable = /bin/true\nfoo bar\nqueue\n", "-:2: "),
                                        ("executable = /bin/true\nqueue x from nothere.txt\n", "nothere.txt"),
                                        ("", "queue")])
def test_wrong_descriptions(cli, text, says):
    fake = cli.fake(replies={})
    cli("submit", "-", stdin=text, code=1)
    assert says in cli.err and not fake.asked("POST", "/v1/requests")


def test_the_world_is_real(cli):
    """Globs, files, environment and commands."""
    for name in ("b.dat", "a.dat", "c.txt"):
        cli.write(f"in/{name}", "x")
    os.mkdir(os.path.join(cli.work, "in/d.dat"))
    cli.write("list", "one\ntwo\n")
    fake = cli.fake(replies={"POST /v1/requests": accepted})

    def items(queue):
        cli("submit", "-", stdin=f"executable = /bin/echo\narguments = $ENV(COLOUR) $(x)\nqueue x {queue}\n",
            env={"COLOUR": "blue"})
        part = fake.requests[-1].body["parts"][0]
        assert "blue" in part["attributes"].get("Arguments", part["attributes"].get("Args"))
        return part["items"].split("\n")[:-1]

    assert items("matching files in/*.dat") == ["in/a.dat", "in/b.dat"]
    assert [i.rstrip("/") for i in items("matching dirs in/*")] == ["in/d.dat"]
    assert len(items("matching in/*.dat")) == 3
    assert items("from list") == ["one", "two"]
    assert items("from printf 'p\\nq\\n' |") == ["p", "q"]


def test_many_items_go_ahead_as_an_upload(cli):
    uploads = Uploads(lose=1)
    fake = cli.fake(replies={"POST /v1/requests": accepted, **uploads.replies()})
    rows = [f"item number {n:06}" for n in range(300000)]
    cli.write("rows", "\n".join(rows) + "\n")
    assert cli("submit", "-", stdin="executable = /bin/echo\narguments = $(x)\nqueue x from rows\n") == \
        "request 7: 300000 jobs\n"
    part = fake.requests[-1].body["parts"][0]
    assert "items" not in part and part["items_upload"] == "u1" and part["rows"] == 300000
    assert uploads.parts["u1"].decode().split("\n")[:-1] == rows
    assert len(fake.asked("PUT", "/v1/uploads/u1")) == 3  # 5.7 MB in two pieces, the first one sent twice


def test_inputs_are_sent_when_agents_are_elsewhere(cli):
    cli.write("run.sh", "#!/bin/sh\n")
    os.chmod(os.path.join(cli.work, "run.sh"), 0o755)
    cli.write("data/one.txt", "1")
    cli.write("data/sub/two.txt", "22")
    cli.write("in.0", "zero")
    cli.write("in.1", "one")
    text = ("executable = run.sh\ninput = in.$(Process)\ntransfer_input_files = data, data/one.txt\n"
            "should_transfer_files = {}\nqueue 2\n")
    uploads = Uploads()
    fake = cli.fake(replies={"POST /v1/requests": accepted, "GET /v1/server": remote, **uploads.replies()})
    cli("submit", "-", stdin=text.format("IF_NEEDED"))
    sent = {s["name"]: s for s in fake.requests[-1].body["spooled"]}
    assert set(sent) == {"run.sh", "in.0", "in.1", "data/one.txt", "data/sub/two.txt", "one.txt"}
    assert sent["run.sh"]["executable"] and not sent["in.0"]["executable"]
    assert sent["data/sub/two.txt"]["sha256"] == hashlib.sha256(b"22").hexdigest()
    assert uploads.done["in.1"] == b"one" and sent["in.1"]["size"] == 3
    out = cli("submit", "-n", "-", stdin=text.format("YES"))
    assert "in.1 as in.1\n" in out


def test_inputs_stay_where_they_can_be_reached(cli):
    fake = cli.fake(replies={"POST /v1/requests": accepted})
    cli.write("x", "1")
    cli("submit", "-", stdin="executable = /bin/cat\ntransfer_input_files = x\nqueue\n")
    assert fake.requests[-1].body["spooled"] == [] and not fake.asked("POST", "/v1/uploads")


def test_sizes_of_inputs_that_can_be_seen(cli):
    """So that the cost of a place counts them. What differs from job to job, is elsewhere or a folder, is not known."""
    fake = cli.fake(replies={"POST /v1/requests": accepted})
    cli.write("big", "x" * 12345)
    cli.write("folder/x", "1")
    url = "file://" + os.path.join(cli.work, "big")

    def told(lines):
        cli("submit", "-", stdin=f"executable = /bin/cat\n{lines}\nqueue 2\n")
        return fake.requests[-1].body["parts"][0]["attributes"].get("TransferInputSizes")

    assert told(f"transfer_input_files = big, folder, http://a/b, in.$(Process), {url}") == '"12345,,,,12345"'
    assert told("transfer_input_files = folder, gone, http://a/b") is None
    assert told("transfer_input_files = big\n+TransferInputSizes = \"7\"") == '"7"'
    assert told("transfer_input_files = big\n+TransferInputSizeMB = 3") is None


@pytest.mark.parametrize("line, says", [("transfer_input_files = gone.txt", "gone.txt can't be sent: No such file"),
                                        ("transfer_input_files = a/x, b/x", 'would both be "x"'),
                                        ("transfer_input_files = x.$(Cluster)", "not known before it is sent")])
def test_inputs_that_cannot_be_sent(cli, line, says):
    cli.write("a/x", "1")
    cli.write("b/x", "2")
    fake = cli.fake(replies={"GET /v1/server": remote})
    cli("submit", "-", stdin=f"executable = /bin/cat\nshould_transfer_files = YES\n{line}\nqueue\n", code=1)
    assert says in cli.err and not fake.asked("POST", "/v1/requests")


def test_dry_run(cli):
    out = cli("submit", "--dry-run", "-", stdin=HELLO)
    assert out.startswith("3 jobs would be submitted\n") and 'Cmd = "/bin/echo"' in out
    assert "no server has checked it" in cli.err
    assert json.loads(cli("submit", "-n", "--json", "-", stdin=HELLO))["parts"][0]["steps"] == 3
    fake = cli.fake(replies={"POST /v1/requests": (400, {"error": {"code": "bad_attribute", "message": "Foo is wrong"}})})
    cli("submit", "-n", "-", stdin=HELLO, code=1)
    assert "Foo is wrong" in cli.err and fake.requests[-1].query == {"dry_run": "1"}


def test_usage(cli):
    cli("submit", code=2)
    cli("submit", "--timeout", "3", "-", code=2)
    cli("submit", "nothere.sub", code=1)
    assert "nothere.sub: No such file" in cli.err or "nothere.sub" in cli.err


def test_items_from_standard_input(cli):
    cli.write("job.sub", "executable = /bin/true\ntransfer_executable = false\narguments = $(x)\nqueue x from -\n")
    out = cli("submit", "--dry-run", "job.sub", stdin="a\nb\n")
    assert "2 jobs would be submitted" in out and "    a\n    b\n" in out
