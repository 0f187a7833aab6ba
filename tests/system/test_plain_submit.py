"""Submits as somebody writes them by hand: a submit file as it is, JSON without quotes within quotes, no uuid. And probes."""
import json
import os
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


def catalog(instance, count=6, **more):
    """Files of /etc/passwd's bytes under several names, with a number each."""
    rows = []
    for n in range(count):
        path = instance.write(f"f{n}", f"of {n}\n")
        rows.append({"name": f"f{n}", "size": 5, "metadata": {"n": n, "events": 10 * n + 1, **more}, "replicas": [{"url": f"file:{path}"}]})
    instance.write("files.json", json.dumps(rows))
    instance.cli("catalog", "import", f"{instance.work}/files.json")


def test_a_dataset_of_the_catalog(instance):
    """The server makes the query, and the jobs have their files, cut as the description says; the same as by drover submit."""
    instance.up()
    catalog(instance)
    text = ("executable = /bin/sh\narguments = \"-c 'cat $(DOLLAR)FILELIST | xargs cat'\"\ntransfer_executable = false\noutput = said\n"
            "dataset = catalog:n<5\nfiles_per_job = 2\nqueue\n")
    assert post(instance, text, "?dry_run=1", status=200)["jobs"] == 3
    got, quote = instance.call("POST", "/v1/quote", text.encode(), headers=TEXT)
    assert got == 200 and quote["jobs"] == 3
    own = str(uuid.uuid4())
    answer = post(instance, text, f"?uuid={own}")
    assert answer["jobs"] == 3 and post(instance, text, f"?uuid={own}", status=200)["id"] == answer["id"]
    instance.wait(answer["id"])
    said = b"".join(output(instance, f"{answer['id']}.{n}") for n in range(3))
    assert said == b"".join(b"of %d\n" % n for n in range(5))
    # The order of a key, and the time of a virtual queue.
    by_hour = "executable = /bin/true\ndataset = catalog:\nfiles_per_hour = 2\n{}queue\n"
    assert post(instance, by_hour.format("allowed_execute_duration = 3600\n"), "?dry_run=1", status=200)["jobs"] == 3
    assert "nothing limits the time of a job" in post(instance, by_hour.format(""), "?dry_run=1", status=200)["warnings"][0]
    # What it cannot find, and what is no query.
    for query, why in (("n=>>", "n=>>"), ("dataset=none", "there is no dataset none"), ("n=99", "no file")):
        error = post(instance, f"executable = /bin/true\ndataset = catalog:{query}\nqueue\n", status=400)["error"]
        assert error["code"] == "bad_submit_file" and "submit file:2: dataset" in error["message"] and why in error["message"], error


def test_a_dataset_of_a_catalog_of_the_settings(instance):
    """Its condition counts, and so does who may use it; the time of jobs is that of their virtual queue."""
    instance.write("../state/droverd.yaml", "catalogs:\n  low: {query: 'n<2'}\n  theirs: {query: 'n<2', users: ['*@elsewhere']}\n"
                   "virtual_queues:\n  hour: {places: 'true', time_limit: 1h}\n  theirs: {places: 'true', users: ['*@elsewhere']}\n")
    instance.up()
    catalog(instance)
    job = "executable = /bin/true\ndataset = {}\n{}queue\n"
    assert post(instance, job.format("catalog:low?n>0", ""), "?dry_run=1", status=200)["jobs"] == 1
    assert post(instance, job.format("catalog:", "files_per_hour = 3\njob_virtual_queue = hour\n"), "?dry_run=1", status=200)["jobs"] == 2
    for text, status, why in ((job.format("catalog:theirs?n>0", ""), 400, 'you may not use the catalog "theirs"'),
                              (job.format("catalog:none?n>0", ""), 400, 'there is no catalog "none"'),
                              (job.format("catalog:", "files_per_hour = 3\njob_virtual_queue = theirs\n"), 403,
                               "you may not use the virtual_queue 'theirs'")):
        assert why in post(instance, text, status=status)["error"]["message"], text
    got, limit = instance.call("GET", "/v1/config/time_limit?virtual_queue=hour")
    assert got == 200 and limit == {"seconds": 3600, "of": "the virtual queue hour"}
    assert instance.call("GET", "/v1/config/time_limit") == (200, {"seconds": 0})
    assert instance.call("GET", "/v1/config/time_limit?virtual_queue=theirs")[0] == 403
    assert instance.call("GET", "/v1/config/time_limit?policy=none_such")[0] == 400


SUMS = """<?xml version="1.0"?>
<job maxFilesPerProcess="4" name="mine">
  <command>cat $FILELIST | xargs cat</command>
  <shell>/bin/sh</shell>
  <stdout URL="file:./said.$JOBINDEX"/>
  <input URL="catalog:?production=P1,n=>2" nFiles="all"/>
</job>
"""
RDL = """AbstractRequest:
  Request:
    - {ID: first, taskRef: one, datasetRef: raw, resourceRef: each}
    - {ID: second, taskRef: two, nProcesses: 1}
  ScriptTask:
    - {ID: one, Text: "cat $INPUTFILE0", stdout: {URL: "file:./said.$JOBINDEX"}}
    - {ID: two, Text: "echo after", stdout: {URL: "file:./said.$JOBINDEX"}}
  Application: {ID: sh, name: /bin/sh}
  Dataset: {ID: raw, input: {URL: "catalog:?production=P1", nFiles: all}}
  ResourceSpecifications: {ID: each, maxFilesPerProcess: 1}
  WorkFlow: {SetupRequestDependancy: {RequestToBeDoneFirstID: {idref: first}, RequestWaitingForInputID: {idref: second}}}
"""


def test_descriptions_of_sums_and_rdl(instance):
    """They are told by their text, and their jobs run; what is for the submitter's machine is refused by name."""
    instance.up()
    catalog(instance, production="P1")
    answer = post(instance, SUMS)
    assert answer["jobs"] == 1
    instance.wait(answer["id"])
    assert output(instance, f"{answer['id']}.0") == b"of 2\nof 3\nof 4\nof 5\n"
    answer = post(instance, RDL)
    assert answer["jobs"] == 7
    instance.wait(answer["id"])
    assert output(instance, f"{answer['id']}.3") == b"of 3\n" and output(instance, f"{answer['id']}.6") == b"after\n"
    ended = {job["id"].split(".")[1]: job for job in instance.history()}
    assert ended["6"]["started_ms"] >= max(ended[str(n)]["ended_ms"] for n in range(6))
    query = "catalog:?production=P1,n=>2"
    for text, why in ((SUMS.replace("<job ", '<job simulateSubmission="true" '), "star-submit"),
                      (SUMS.replace(query, "filelist:/etc/passwd"), "drover submit does"),
                      (SUMS.replace(query, "command:cat /etc/passwd"), "drover submit does"),
                      (SUMS.replace(query, "file:/etc/*"), "drover submit does"),
                      (SUMS.replace("</command>", ""), "description:"), ("\n <request/>", "description:2: <request>"),
                      (RDL.replace("raw, input", "raw, inputs"), "description:")):
        error = post(instance, text, status=400)["error"]
        assert error["code"] == "bad_submit_file" and why in error["message"], (text, error)


def test_outputs_of_descriptions(instance):
    """There is no submit folder: outputs have their names in what drover get fetches, and a destination elsewhere is told."""
    instance.up()
    catalog(instance, production="P1")
    text = SUMS.replace("cat $FILELIST | xargs cat", "mkdir res; echo r > res/y.$JOBINDEX").replace(
        "<input URL", '<output fromScratch="res/y.$JOBINDEX" toURL="file:./res/y.$JOBINDEX"/>\n  <input URL')
    answer = post(instance, text)
    instance.wait(answer["id"])
    instance.cli("get", str(answer["id"]), "-o", "got")
    assert instance.read("got/said.0") == "" and instance.read("got/res/y.0") == "r\n"
    told = post(instance, SUMS.replace("file:./said", "file:/data/said"), "?dry_run=1", status=200)["warnings"]
    assert "the server keeps the outputs until drover get fetches them" in told[0], told
    # What one request writes, another can read in a store only.
    flow = RDL.replace("{ID: second, taskRef: two, nProcesses: 1}", "{ID: second, taskRef: two, datasetRef: first, resourceRef: each}").replace(
        "{ID: one, ", '{ID: one, output: {fromScratch: r, toURL: "file:/data/r.$JOBINDEX"}, ')
    for one in (flow, flow.replace("catalog:?production=P1", "file:/etc/passwd")):
        error = post(instance, one, status=400)["error"]["message"]
        assert "there is no submit folder here to have them in" in error, error
    there = flow.replace("file:/data/r.", "https://store.example/r.")
    assert post(instance, there, "?dry_run=1", status=200)["jobs"] == 12


def test_files_that_are_named(instance):
    """Without a query of the catalog, the names are sent with the request, too."""
    instance.up()
    instance.write("a", "of a\n")
    for url in (f"file:{instance.work}/a", "file:/etc/passwd"):
        text = SUMS.replace("catalog:?production=P1,n=>2", url)
        assert post(instance, text, "?dry_run=1", status=200)["jobs"] == 1
        answer = post(instance, text)
        instance.wait(answer["id"])
    answer = instance.call("POST", "/v1/requests", SUMS.replace("catalog:?production=P1,n=>2", "file:/etc/passwd").encode(),
                           headers={"Content-Type": "application/xml"})
    assert answer[0] == 201, answer
    many = SUMS.replace('name="mine"', 'name="mine" nProcesses="99999999"').replace('<input URL="catalog:?production=P1,n=>2" nFiles="all"/>', "")
    assert "description:2: <job> has more than" in post(instance, many, status=400)["error"]["message"]


def test_a_text_that_comes_again(instance):
    """It is the same request under its uuid, although the query would find another file by now; another text is another request."""
    instance.server()
    catalog(instance)
    own, text = str(uuid.uuid4()), "executable = /bin/true\narguments = $RANDOM_INTEGER(1, 1000000)\ndataset = catalog:n<100\nqueue\n"
    first = post(instance, text, f"?uuid={own}")
    instance.cli("catalog", "add", "more", "--url", "file:/data/more", "--meta", "n=50")
    again = post(instance, text, f"?uuid={own}", status=200)
    assert again["id"] == first["id"] and again["existing"] and again["jobs"] == 6
    assert post(instance, text + "# more\n", f"?uuid={own}", status=409)["error"]["code"] == "uuid_used"
    assert post(instance, text)["jobs"] == 7


def test_refused_texts_leave_nothing(instance):
    """Neither in the spool, nor of what their user may upload."""
    instance.server()
    catalog(instance)
    text = "executable = /bin/true\ndataset = catalog:\njob_policy = none_such\nqueue\n"

    def spooled():
        return sum(len(files) for _, _, files in os.walk(os.path.join(instance.dir, "spool")))
    before = spooled()
    for _ in range(5):
        assert "none_such" in post(instance, text, status=400)["error"]["message"]
    assert spooled() == before


def test_descriptions_that_are_too_much(shared):
    """Depth, entities of entities, aliases of aliases, and requests that read what others write, times thousands."""
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    aliases = "".join(f"  a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    chain = "".join(f"    - {{ID: q{i}, taskRef: one, datasetRef: q{i - 1}, resourceRef: each}}\n" for i in range(1, 600))
    outputs = ",".join(f'{{fromScratch: a{k}, toURL: "https://store.example/a{k}.$JOBINDEX"}}' for k in range(300))
    for text, why in (("<a>" * 20000, "nested too deep"), ("AbstractRequest: " + "[" * 30000, "nested more than 64 deep"),
                      (f'<?xml version="1.0"?><!DOCTYPE job [<!ENTITY a0 "x">{entities}]><job><command>&a9;</command></job>', "made of others"),
                      ('<?xml version="1.0"?><!DOCTYPE job [<!ENTITY a SYSTEM "file:///etc/passwd">]><job><command>&a;</command></job>',
                       "lies in another file"),
                      (f"AbstractRequest:\n  a0: &a0 [{','.join('x' * 9)}]\n{aliases}", "too many values"),
                      ("AbstractRequest:\n  Request:\n    - {ID: q0, taskRef: one, nProcesses: 5000}\n" + chain +
                       f"  ScriptTask:\n    - {{ID: one, Text: cat, output: [{outputs}]}}\n  Application: {{ID: sh, name: /bin/sh}}\n"
                       "  ResourceSpecifications: {ID: each, maxFilesPerProcess: 1}\n", "of more than some MiB")):
        error = post(shared, text, status=400)["error"]
        assert error["code"] == "bad_submit_file" and why in error["message"], (text[:200], error)


def test_datasets_that_the_server_does_not_read(shared):
    """Files, folders and commands of the submitter are refused with that reason, and not as a mistake in a submit file."""
    for dataset in ("filelist:list", "data/*"):
        error = post(shared, f"executable = /bin/true\ndataset = {dataset}\nqueue\n", status=400)["error"]
        assert error["code"] == "bad_submit_file" and "submit file:2: dataset" in error["message"], error
        assert "reads no files, folders and commands; drover submit does" in error["message"], error


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
