"""The real server against docs/openapi.json: every operation is called, good and bad, and every answer checked."""
import json
import urllib.parse

import openapi
import pytest
from drover import wait_until
from jsonschema import Draft202012Validator

UUID = "6b1c7c2e-0000-4000-8000-{:012d}"


def caller(instance, seen):
    """call(method, path, body=…, status=…): checks the call and the answer; returns the answer."""

    def call(method, path, body=None, status=None, check=True):
        base, _, query = path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        if check and not isinstance(body, bytes):
            openapi.check_request(method, base, body)
            openapi.check_query(method, base, query)
        got, data = instance.call(method, path, body)
        assert got < 500 or got == 503, (got, data)
        if status:
            assert got == status, (got, data)
        else:
            assert got < 300, (got, data)
        openapi.check_answer(method, base, got, data if not isinstance(data, bytes) else None)
        seen.add(openapi.operation(method, base)["operationId"])
        return data

    return call


def part(**more):
    return {"attributes": {"Cmd": '"/bin/true"', "Iwd": '"/tmp"', "JobUniverse": "5", **more.pop("attributes", {})},
            "late": [], "variables": [], "rows": 1, "steps": 1, **more}


def test_the_document_is_sound():
    Draft202012Validator.check_schema({"components": openapi.DOCUMENT["components"]})
    ids = [o["operationId"] for p in openapi.DOCUMENT["paths"].values() for o in p.values()]
    assert len(ids) == len(set(ids))
    for name, schema in openapi.DOCUMENT["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        for required in schema.get("required", []):
            assert required in schema.get("properties", {required: 1}), f"{name}: {required}"

    def refs(node):
        if isinstance(node, dict):
            for k, v in node.items():
                if k == "$ref":
                    openapi.follow({"$ref": v})
                refs(v)
        elif isinstance(node, list):
            for v in node:
                refs(v)

    refs(openapi.DOCUMENT)


def test_a_checker_that_can_fail():
    good = {"affected": 1, "errors": []}
    openapi.check_answer("POST", "/v1/actions", 200, good)
    for wrong in ({}, {**good, "affected": "1"}, {**good, "errors": [{"id": "7"}]}, []):
        with pytest.raises(AssertionError):
            openapi.check_answer("POST", "/v1/actions", 200, wrong)
    for method, path in (("GET", "/v1/nothing"), ("DELETE", "/v1/actions")):
        with pytest.raises(AssertionError):
            openapi.operation(method, path)
    with pytest.raises(AssertionError):
        openapi.check_query("GET", "/v1/wait", {})


def test_every_operation(instance):
    """With jobs that wait: no agent is needed."""
    instance.server()
    seen = set()
    call = caller(instance, seen)
    assert call("GET", "/healthz") == b"ok\n" and call("GET", "/readyz") == b"ready\n"
    assert call("GET", "/v1/openapi.json") == openapi.DOCUMENT
    assert call("GET", "/v1/server")["admin"] is True

    upload = call("POST", "/v1/uploads")["id"]
    assert call("PUT", f"/v1/uploads/{upload}?offset=0", b"one\n") == {"size": 4}
    assert call("PUT", f"/v1/uploads/{upload}?offset=0", b"one\n") == {"size": 4}
    assert call("PUT", f"/v1/uploads/{upload}?offset=4", b"two\n") == {"size": 8}
    done = call("POST", f"/v1/uploads/{upload}/finish", {"name": "in.txt"})
    assert done["size"] == 8
    call("PUT", "/v1/uploads/nothing?offset=0", b"x", status=404)

    body = {"uuid": UUID.format(1), "parts": [part(steps=3), part(variables=["x"], items="a\nb\n", rows=2)],
            "spooled": [{"name": "in.txt", "sha256": done["sha256"], "size": 8, "executable": False}], "hold": False}
    dry = call("POST", "/v1/requests?dry_run=1", body)
    assert dry["jobs"] == 5 and call("GET", "/v1/requests")["requests"] == []
    assert call("POST", "/v1/quote", body)["jobs"] == 5 and call("GET", "/v1/requests")["requests"] == []
    made = call("POST", "/v1/requests", body, status=201)
    assert made["jobs"] == 5 and not made["existing"]
    again = call("POST", "/v1/requests", body, status=200)
    assert again["id"] == made["id"] and again["existing"]
    number = made["id"]

    again = call("POST", f"/v1/requests/{number}/resubmit?dry_run=1", {"uuid": UUID.format(8), "members": "1-2"}, status=200)
    assert again["jobs"] == 2

    far = {**body, "uuid": UUID.format(9), "lease_ms": 60000, "hold_results": True, "hold": True,
           "origin": {"servers": UUID.format(7), "owner": "ann@far", "job": "3.0", "path": "n1/fast n2", "hops_left": 3}}
    kept = call("POST", "/v1/requests", far, status=201)["id"]
    assert call("PUT", f"/v1/requests/{kept}/lease", {"lease_ms": 90000})["lease_ms"] == 90000
    assert call("GET", f"/v1/requests/{kept}")["origin"]["owner"] == "ann@far"
    call("PUT", f"/v1/requests/{number}/lease", {}, status=409)
    assert call("PUT", f"/v1/requests/{kept}/credentials/t", {"type": "token", "data": "x"})["name"] == "t"
    call("PUT", f"/v1/requests/{number}/credentials/t", {"type": "token", "data": "x"}, status=409)
    assert call("POST", "/v1/actions", {"action": "remove", "ids": [str(kept)]})["affected"] == 5
    assert call("POST", f"/v1/requests/{kept}/taken", {"members": "0-2"}) == {"left": 2}
    call("POST", "/v1/requests", {**far, "uuid": UUID.format(10), "origin": {
        "servers": call("GET", "/v1/server")["uuid"], "hops_left": 1}}, status=409)

    assert call("GET", "/v1/requests?limit=1")["requests"][0]["id"] == number
    assert len(call("GET", f"/v1/requests/{number}")["parts"]) == 2
    assert call("GET", f"/v1/requests/{number}/files")["files"] == []
    page = call("GET", f"/v1/jobs?id={number}&limit=2")
    assert [j["member"] for j in page["jobs"]] == [0, 1] and page["next"]
    rest = call("GET", f"/v1/jobs?id={number}&after={page['next']}")
    assert [j["member"] for j in rest["jobs"]] == [2, 3, 4] and rest["next"] is None
    some = call("GET", f"/v1/jobs?id={number}.0-3&state=idle&constraint=ProcId%20%3E%202&attributes=ProcId,Cmd")
    assert [j["ad"]["ProcId"] for j in some["jobs"]] == [3]
    job = call("GET", f"/v1/jobs/{number}.4")
    assert job["state"] == "idle" and job["ad"]["Cmd"] == "/bin/true"
    assert call("GET", f"/v1/jobs/{number}.4/log")["events"][0]["event"] == "submitted"
    assert call("GET", f"/v1/jobs/{number}.4/why")["text"]
    assert call("GET", f"/v1/jobs/{number}.4/path")["hops"][0]["state"] == "idle"
    assert call("GET", f"/v1/jobs/{number}.4/output?timeout_ms=0&last=10&stream=stderr")["attempt"] == 0
    call("POST", f"/v1/jobs/{number}.4/exec", {"argv": ["true"], "input": True, "terminal": {"rows": 24, "columns": 80, "type": "vt100"}}, status=409)
    call("POST", f"/v1/jobs/{number}.4/exec/input", {"exec": 1, "attempt": 1, "offset": 0, "data": "eA==", "end": False}, status=409)
    assert [p["request"] for p in call("GET", "/v1/paths?after=0")["paths"]] == []
    assert len(call("GET", f"/v1/jobs/{number}.4/priority")["components"]) == 7
    assert call("GET", "/v1/accounts")["accounts"][0]["waiting"] == 5
    assert call("GET", f"/v1/jobs/{number}.4/files")["files"] == []

    act = {"ids": [f"{number}.0-1"], "reason": "because"}
    assert call("POST", "/v1/actions", {"action": "hold", **act})["affected"] == 2
    call("GET", f"/v1/jobs/{number}.0/priority", status=409)
    held = call("GET", f"/v1/jobs/{number}.0")
    assert held["state"] == "held" and held["status"] == 5 and held["hold_reason"] == "because"
    assert "because" in " ".join(call("GET", f"/v1/jobs/{number}.0/why")["text"])
    wait = call("GET", f"/v1/wait?ids={number}&timeout_ms=0")
    assert (wait["jobs"], wait["held"], wait["idle"], wait["done"]) == (5, 2, 3, False)
    call("POST", "/v1/actions", {"action": "release", **act})
    call("POST", "/v1/actions", {"action": "priority", "ids": [str(number)], "value": 7})
    edit = {"action": "edit", "ids": [f"{number}.0"], "attributes": {"Note": "\"n$(Process)\"", "RequestMemory": "9"}, "late": ["Note"]}
    assert call("POST", "/v1/actions", edit) == {"affected": 1, "errors": [], "not_waiting": []}
    call("POST", "/v1/actions", {**edit, "attributes": {"Cmd": "1"}}, status=400)
    assert call("GET", f"/v1/jobs/{number}.0")["ad"]["Note"] == "n0"
    assert call("POST", "/v1/actions", {"action": "remove", "ids": [str(number)]})["affected"] == 5
    wait = call("GET", f"/v1/wait?ids={number}&timeout_ms=10000&seen={wait['seen']}")
    assert wait["done"] and wait["removed"] == 5 and wait["idle"] == 0
    wait_until(lambda: call("GET", "/v1/requests")["requests"] == [])
    assert call("GET", "/v1/requests?all=1")["requests"][0]["removed"] == 5
    wait_until(lambda: len(call("GET", f"/v1/history?id={number}")["jobs"]) == 5)
    assert len(call("GET", "/v1/history?limit=2")["jobs"]) == 2
    events = call("GET", "/v1/events?after=0&limit=3")
    assert len(events["events"]) <= 3 and events["next"] > 0

    assert b"drover_jobs" in call("GET", "/metrics")
    series = wait_until(lambda: call("GET", "/v1/series")["samples"])
    assert series[0]["eta_error_ms"] is None and call("GET", f"/v1/series?since_ms={series[-1]['at_ms'] + 86400000}")["samples"] == []
    call("GET", "/v1/series?since_ms=soon", status=400, check=False)
    assert call("GET", "/v1/stores")["stores"] == []
    call("POST", "/v1/stores/none", {"release": "a"}, status=404)
    call("POST", "/v1/stores/none", {"used_bytes": 5, "owner": "ann@lab"}, status=404)
    call("POST", "/v1/stores/none", {"used_bytes": -5}, status=400, check=False)
    assert call("GET", "/v1/agents")["agents"] == []
    assert call("GET", "/v1/server/status")["kind"] == "single"
    call("POST", "/v1/server/promote", status=409)
    call("POST", "/v1/server/drain", status=409)
    assert call("GET", "/v1/config")["placement"] == "cost"
    assert [x["name"].split("/")[0] for x in call("GET", "/v1/limits")["limits"]] == ["queued_kib"]
    assert call("GET", "/v1/capacity")["free_cpus"] == 0
    assert call("GET", "/v1/wishlist")["shapes"] == []
    token = call("POST", "/v1/tokens", {"kind": "agent", "name": "n1", "uses": 2, "expires_s": 60})
    assert [t["uses"] for t in call("GET", "/v1/tokens")["tokens"] if t["id"] == token["id"]] == [2]
    file = {"name": "d/a", "size": 5, "metadata": {"run": 7, "good": True, "x": 0.5, "p": "q"}, "replicas": [
        {"url": "file://n1/a", "host": "n1", "store": "local"}]}
    assert call("POST", "/v1/catalog/files", {"files": [file, {"name": "b"}]}) == {"added": 2, "changed": 0}
    assert call("POST", "/v1/catalog/files", {"files": [file], "replace": True}) == {"added": 0, "changed": 1}
    call("POST", "/v1/catalog/files", {"files": [{**file, "size": 6}]}, status=409)
    call("POST", "/v1/catalog/files", {"files": [{"name": "x" * 2000}]}, status=400)
    call("POST", "/v1/catalog/files", {"files": [{"name": 5}]}, status=400, check=False)
    call("POST", "/v1/catalog/files", b"[", status=400)
    page = call("GET", "/v1/catalog/files?query=&limit=1&metadata=1")
    assert page["files"] == [file]
    assert [f["name"] for f in call("GET", f"/v1/catalog/files?limit=1&after={page['next']}")["files"]] == ["b"]
    assert call("GET", "/v1/catalog/files?query=run%3E6&count=1") == {"count": 1, "bytes": 5, "next": None}
    call("GET", "/v1/catalog/files?query=run", status=400)
    assert call("GET", "/v1/catalog/files/d%2Fa") == file
    call("GET", "/v1/catalog/files/c", status=404)
    call("PUT", "/v1/catalog/datasets/mine", {"query": "run>6"})
    call("PUT", "/v1/catalog/datasets/list", {"files": ["b"]})
    call("PUT", "/v1/catalog/datasets/list", {}, status=400)
    assert [d["name"] for d in call("GET", "/v1/catalog/datasets?after=list")["datasets"]] == ["mine"]
    call("DELETE", "/v1/catalog/datasets/list")
    call("DELETE", "/v1/catalog/datasets/list", status=404)
    assert call("POST", "/v1/catalog/remove", {"names": ["d/a"], "url": "file://n1/a"}) == {"removed": 1}
    assert call("POST", "/v1/catalog/remove", {"names": ["d/a", "none"]}) == {"removed": 1}
    assert call("GET", "/v1/catalog")["files"] == 1

    tes = "/ga4gh/tes/v1"
    call("GET", f"{tes}/service-info")
    task = call("POST", f"{tes}/tasks", {"name": "t", "executors": [{"image": "a", "command": ["b"]}]})["id"]
    call("POST", f"{tes}/tasks", {"executors": []}, status=400)
    assert call("GET", f"{tes}/tasks?view=BASIC&name_prefix=t&state=QUEUED&page_size=1&tag_key=")["tasks"] == []
    assert call("GET", f"{tes}/tasks?view=BASIC&name_prefix=t&state=QUEUED&page_size=2")["tasks"][0]["name"] == "t"
    assert call("GET", f"{tes}/tasks/{task}?view=FULL")["state"] == "QUEUED"
    call("GET", f"{tes}/tasks?page_token=x", status=400)
    call("GET", f"{tes}/tasks/{task}0", status=404)
    call("POST", f"{tes}/tasks/{task}:cancel")
    call("POST", f"{tes}/tasks/{task}0:cancel", status=404)
    assert call("PUT", "/v1/credentials/t", {"type": "token", "data": "x"})["released"] == 0
    assert [c["name"] for c in call("GET", "/v1/credentials")["credentials"]] == ["t"]
    call("DELETE", "/v1/credentials/t")
    call("DELETE", "/v1/credentials/t", status=404)
    call("POST", "/v1/tokens", {"kind": "user", "role": "operator"})
    call("POST", "/v1/tokens", {"kind": "agent", "name": "n2"})
    call("POST", "/v1/agents/n2/drain", {}, status=404)
    call("POST", "/v1/reservations", {"duration_ms": 60000, "cpus": 1000000}, status=400)
    call("POST", "/v1/reservations", {"duration_ms": 60000, "where": "1 +"}, status=400)
    assert call("GET", "/v1/usage?by=user,month&from_ms=0&to_ms=9&owner=x")["groups"] == []
    assert call("GET", "/v1/usage/keywords?by=keyword,user,month&from_ms=0&to_ms=9&owner=x")["groups"] == []
    assert call("GET", "/v1/usage/records?from_ms=0&to_ms=9&owner=x&after=a")["records"] == []
    assert call("GET", "/v1/reservations")["reservations"] == []
    call("GET", "/v1/reservations/1", status=404)
    call("DELETE", "/v1/reservations/1", status=404)
    call("POST", "/v1/bank/orders", {"op": "open", "new": True, "account": "physics", "why": "the physicists"})
    call("POST", "/v1/bank/orders", {"op": "open", "new": True, "account": "physics"}, status=409)
    call("POST", "/v1/bank/orders", {"op": "account", "account": "none", "why": "x"}, status=404)
    assert call("POST", "/v1/bank/orders", {"op": "account", "account": "physics", "why": "physicists", "state": "active"})["account"]["description"] == "physicists"
    assert call("POST", "/v1/bank/orders", {"op": "deposit", "account": "physics", "amount": 100, "credit": 7})["amount"] == 100
    call("POST", "/v1/bank/orders", {"op": "quote", "account": "physics", "duration_ms": 1000, "cpus": 2})
    lien = call("POST", "/v1/bank/orders", {"op": "lien", "account": "physics", "amount": 10})["id"]
    assert call("GET", "/v1/bank/bill?by=account,month&from_ms=0&to_ms=9")["groups"] == []
    call("GET", "/v1/bank/reserved")
    call("POST", "/v1/bank/orders", {"op": "register", "place": "colony", "arch": "x86_64", "opsys": "Linux", "state": "inactive", "why": "a cluster"})
    assert call("GET", "/v1/bank/machines")["machines"][0]["arch"] == "x86_64"
    call("POST", "/v1/bank/orders", {"op": "unregister", "place": "colony"})
    call("POST", "/v1/bank/orders", {"op": "register", "user": "eve@far", "state": "inactive", "why": "left"})
    assert call("GET", "/v1/bank/users")["users"] == [{"name": "eve@far", "active": False, "description": "left"}]
    assert call("POST", "/v1/bank/orders", {"op": "user", "user": "eve@far", "state": "active"})["user"] == "eve@far"
    quote = call("GET", "/v1/bank/reserved")["quotes"][0]["id"]
    call("POST", "/v1/bank/orders", {"op": "requote", "quote": quote, "why": "for May"})
    assert call("GET", "/v1/bank/reserved")["quotes"][0]["description"] == "for May"
    call("POST", "/v1/bank/orders", {"op": "cancel", "quote": quote})
    call("POST", "/v1/bank/orders", {"op": "charge", "id": lien, "amount": 9})
    call("POST", "/v1/bank/orders", {"op": "lien", "account": "physics", "amount": 1000}, status=409)
    call("POST", "/v1/bank/orders", {"op": "steal"}, status=400, check=False)
    assert call("GET", "/v1/bank")["issued"] == 100
    assert call("GET", "/v1/bank/accounts/physics")["available"] == 98
    call("GET", "/v1/bank/accounts/biology", status=404)
    assert [m["amount"] for m in call("GET", "/v1/bank/accounts/physics/statement?limit=1&after=1")["movements"]] == [-9]
    call("POST", "/SSSRMAP3", b"<Envelope/>", status=404)
    assert json.loads(call("GET", "/.well-known/drover")["description"])["service"] == "drover"
    call("GET", "/v1/nodes")
    call("GET", "/v1/nodes/n2", status=404)
    call("POST", "/v1/nodes/n2", {"state": "draining"}, status=404)
    call("POST", "/v1/nodes/n2", {"state": "asleep"}, status=400, check=False)
    call("POST", "/v1/agents/n2/resume", status=404)
    call("POST", "/v1/agents/n2/wish", {"wishes": ["small-input"]}, status=404)
    assert call("POST", "/v1/agents/n2/revoke")["tokens"] == 1
    call("POST", "/v1/agents/n2/revoke", status=404)
    call("DELETE", f"/v1/tokens/{token['id']}")
    call("DELETE", f"/v1/tokens/{token['id']}", status=404)

    call("GET", "/v1/config/time_limit?policy=none")
    call("GET", "/v1/config/time_limit?virtual_queue=none_such", status=400)

    missing = {o["operationId"] for p in openapi.DOCUMENT["paths"].values() for o in p.values()} - seen
    assert missing == {"getJobFile", "getJobScript"}


@pytest.mark.parametrize("method, path, body, status", [
    ("GET", "/v1/requests/99", None, 404), ("GET", "/v1/jobs/99.0", None, 404), ("GET", "/v1/jobs/1.0/log", None, 404),
    ("GET", "/v1/jobs?id=99", None, 404), ("GET", "/v1/wait?ids=99&timeout_ms=0", None, 404),
    ("GET", "/v1/jobs?constraint=%28%28", None, 400), ("GET", "/v1/jobs?limit=many", None, 400),
    ("GET", "/v1/jobs?state=asleep", None, 400), ("GET", "/v1/jobs?id=x", None, 400),
    ("POST", "/v1/actions", {"action": "hold", "ids": ["99"]}, 404),
    ("POST", "/v1/actions", {"action": "tickle", "ids": ["1"]}, 400),
    ("POST", "/v1/requests", {}, 400), ("POST", "/v1/requests", [], 400), ("POST", "/v1/requests", {"uuid": "x"}, 400),
    ("POST", "/v1/requests", {"uuid": UUID.format(2), "parts": []}, 400),
    ("POST", "/v1/requests", {"uuid": UUID.format(2), "parts": [part(attributes={"Requirements": "1 +"})]}, 400),
    ("POST", "/v1/requests", {"uuid": UUID.format(2), "parts": [part(rows=3, variables=["x"], items="a\n")]}, 400),
    ("POST", "/v1/tokens", {"kind": "king"}, 400), ("POST", "/v1/tokens", {"kind": "agent", "name": "../x"}, 400)])
def test_refusals(shared_server, method, path, body, status):
    """Every refusal has a code and a sentence, and the right status."""
    call = caller(shared_server, set())
    answer = call(method, path, body, status=status, check=False)
    assert answer["error"]["code"] and len(answer["error"]["message"]) > 10


def test_not_json(shared_server):
    for body in (b"", b"{", b"\xff\xfe", b"[" * 100000, b'{"uuid":1e999999}'):
        status, data = shared_server.call("POST", "/v1/requests", body)
        assert status == 400 and data["error"]["message"], (body[:20], status)
    assert shared_server.call("GET", "/v1/nothing")[0] == 404
    assert shared_server.call("DELETE", "/v1/server")[0] == 405
    assert shared_server.api("GET", "/v1/server")["accepting"] is True


@pytest.fixture(scope="module")
def shared_server(request):
    import os
    import tempfile

    from drover import Instance
    one = Instance(request.config.getoption("--build"), tempfile.mkdtemp(prefix="o-", dir=request.config.drover_tmp))
    one.server()
    try:
        yield one
    finally:
        one.stop()
        one.destroy()
    assert os.path.isdir(request.config.drover_tmp)


def test_files_that_the_server_keeps(instance):
    """Of a job that ran where the submitter's files can't be reached."""
    instance.up()
    call = caller(instance, set())
    instance.write("in.txt", "some input\n")
    number = instance.run("executable = /bin/sh\narguments = \"-c 'cat in.txt > out.txt; echo said'\"\noutput = said.txt\n"
                          "transfer_input_files = in.txt\nshould_transfer_files = YES\nqueue\n")
    files = {f["name"]: f for f in call("GET", f"/v1/requests/{number}/files")["files"]}
    assert set(files) == {"out.txt", "said.txt"}
    assert instance.call("GET", f"/v1/jobs/{number}.0/files/out.txt") == (200, b"some input\n")
    openapi.operation("GET", f"/v1/jobs/{number}.0/files/out.txt")
    assert len(call("GET", f"/v1/jobs/{number}.0/files")["files"]) == 2
    assert call("GET", f"/v1/jobs/{number}.0/files/none", status=404)
    assert instance.cli("get", str(number), "-o", "got") == "2 files, 16B\n"
    assert instance.read("got/out.txt") == "some input\n" and instance.read("got/said.txt") == "said\n"
    assert json.loads(instance.cli("get", str(number), "--list", "--json"))["files"]
