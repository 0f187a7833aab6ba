"""Submits as somebody writes them by hand: a submit file as it is, JSON without quotes within quotes, no uuid. And probes."""
import ssl
import urllib.error
import urllib.request
import uuid

import pytest

import agents
from drover import free_port, sh

TEXT = {"Content-Type": "text/plain; charset=utf-8"}


def post(instance, text, query="", status=201):
    got, answer = instance.call("POST", f"/v1/requests{query}", text.encode(), headers=TEXT)
    assert got == status, answer
    return answer


def output(instance, job):
    name = instance.api("GET", f"/v1/jobs/{job}/files")["files"][0]["name"]
    return instance.call("GET", f"/v1/jobs/{job}/files/{name}")[1]


def test_a_submit_file_as_it_is(shared):
    answer = post(shared, "executable = /bin/echo\ntransfer_executable = false\narguments = \"$(word) $(Process) 'two words'\"\n"
                          "output = said\nno_such_keyword = 1\nqueue word in (one two)\n")
    assert answer["jobs"] == 2 and uuid.UUID(answer["uuid"]).version == 4
    assert len(answer["warnings"]) == 1 and answer["warnings"][0].startswith("line 5: ")
    shared.wait(answer["id"])
    assert output(shared, f"{answer['id']}.1") == b"two 1 two words\n"


def test_the_same_uuid_is_the_same_request(shared):
    own = str(uuid.uuid4())
    first = post(shared, sh("true"), f"?uuid={own}")
    again = post(shared, sh("true"), f"?uuid={own}", status=200)
    assert first["uuid"] == own and again["id"] == first["id"] and again["existing"]
    assert post(shared, sh("false"), f"?uuid={own}", status=409)["error"]["code"] == "uuid_used"
    assert post(shared, sh("true"))["id"] != post(shared, sh("true"))["id"]
    post(shared, sh("true"), "?uuid=mine", status=400)


def test_it_is_answered_without_being_kept(shared):
    before = len(shared.json("queue", "--all")["requests"])
    assert post(shared, sh("true", queue="queue 7"), "?dry_run=1", status=200)["jobs"] == 7
    got, quote = shared.call("POST", "/v1/quote", sh("true").encode(), headers=TEXT)
    assert got == 200 and quote["jobs"] == 1
    assert len(shared.json("queue", "--all")["requests"]) == before


def test_the_server_reads_nothing_for_others(shared):
    """Neither files nor folders, variables or commands; what is refused is named with its line."""
    shared.write("list", "a\n")
    made = f"{shared.work}/made"
    job = "executable = /bin/true\n"
    for text, line in ((job + f"queue x from {shared.work}/list\n", 2), (job + f"queue x matching {shared.work}/*\n", 2),
                       (job + f"queue x from touch {made}; echo a |\n", 2), (f"include : {shared.work}/list\n{job}queue\n", 1),
                       (f"include command : touch {made}\n{job}queue\n", 1), (f"x = $EVAL(1 + 1)\narguments = $(x)\n{job}queue\n", 2)):
        error = post(shared, text, status=400)["error"]
        assert error["code"] == "bad_submit_file" and f"submit file:{line}" in error["message"], (text, error)
    assert not shared.exists("made")
    ad = shared.api("GET", f"/v1/jobs/{post(shared, 'arguments = <$ENV(HOME:none)>' + chr(10) + job + 'queue' + chr(10))['id']}.0")["ad"]
    assert ad["Args"] == "<none>" if "Args" in ad else "<none>" in ad["Arguments"]


def test_datasets_and_xml_are_for_drover_submit(shared):
    """What names files and queries of its submitter is refused with that reason, and not as a mistake in a submit file."""
    for dataset in ("catalog:n=1", "catalog:mine?n=1", "filelist:list", "data/*"):
        error = post(shared, f"executable = /bin/true\ndataset = {dataset}\nqueue\n", status=400)["error"]
        assert error["code"] == "bad_submit_file" and "submit file:2: dataset" in error["message"], error
        assert "reads no files, folders, commands and catalogs; drover submit does" in error["message"], error
    for text in ('<?xml version="1.0"?>\n<job><command>true</command></job>\n', "\n <request/>"):
        error = post(shared, text, status=400)["error"]
        assert error["code"] == "bad_submit_file" and "are read by drover submit and star-submit only" in error["message"], error


def test_texts_that_are_too_much(shared):
    assert post(shared, "# " + "x" * 70000, status=413)["error"]["code"] == "too_large"
    bomb = "a0 = " + "x" * 1000 + "\n" + "".join(f"a{n} = $(a{n - 1})$(a{n - 1})\n" for n in range(1, 30))
    post(shared, f"{bomb}arguments = $(a29)\nexecutable = /bin/true\nqueue\n", status=400)
    many = bomb + "".join(f"+b{n} = \"$(a9)\"\n" for n in range(2000))
    assert "macro" in post(shared, f"{many}executable = /bin/true\nqueue\n", status=400)["error"]["message"]
    for text in ("", "queue", "executable = /bin/true\n", "\0", "executable = /bin/true\nqueue 99999999999\n", "\x1f\nqueue\n"):
        post(shared, text, status=400)
    got, _ = shared.call("POST", "/v1/requests", b"\xff\xfe\nqueue\n", headers=TEXT)
    assert got == 400


def test_json_without_quotes_within_quotes(shared):
    got, answer = shared.call("POST", "/v1/requests", {"parts": [{"steps": 2, "values": {
        "Cmd": "/bin/sh", "TransferExecutable": False, "Arguments": "-c 'echo \"$(Process)\"'", "Out": "said", "RequestMemory": 32},
        "attributes": {"Requirements": "TARGET.Cpus > 0"}, "late": ["Arguments"]}]})
    assert got == 201 and uuid.UUID(answer["uuid"])
    shared.wait(answer["id"])
    assert output(shared, f"{answer['id']}.1") == b"1\n"
    for part in ({"values": {"Cmd": {}}}, {"values": 7}, {"values": {"Cmd": "x"}, "attributes": {"Cmd": '"y"'}}):
        assert shared.call("POST", "/v1/requests", {"parts": [part]})[0] == 400


def get(url, context):
    try:
        with urllib.request.urlopen(url, context=context, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def test_probes_need_no_token(instance):
    port = free_port()
    instance.server("--api-listen", f"127.0.0.1:{port}")
    context = ssl.create_default_context(cafile=f"{instance.dir}/ca/ca.crt")
    context.check_hostname = False
    assert get(f"https://127.0.0.1:{port}/healthz", context) == (200, b"ok\n")
    assert get(f"https://127.0.0.1:{port}/readyz", context) == (200, b"ready\n")
    assert get(f"https://127.0.0.1:{port}/v1/server", context)[0] == 401


@pytest.mark.parametrize("how", ["text", "json"])
def test_what_an_agent_elsewhere_runs(instance, how):
    """Neither has a folder of a submitter: any place will do."""
    instance.server("--listen", f"127.0.0.1:{free_port()}")
    agents.start(instance, "filesystem_domain: elsewhere.example\ncpus: 1\n", "far")
    if how == "text":
        answer = post(instance, "executable = /bin/echo\ntransfer_executable = false\narguments = far\noutput = said\nqueue\n")
    else:
        _, answer = instance.call("POST", "/v1/requests", {"parts": [{"values": {"Cmd": "/bin/echo", "Arguments": "far", "Out": "said"}}]})
    instance.wait(answer["id"])
    assert output(instance, f"{answer['id']}.0") == b"far\n"
