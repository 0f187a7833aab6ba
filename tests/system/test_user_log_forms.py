"""The user log in its other forms: XML and JSON, read by parsers that know nothing of Drover, and other dates."""
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from datetime import datetime

import pytest

from condor import Condor
from drover import sh, wait_until


def xml_value(node):
    if node.tag == "c":
        return {a.attrib["n"]: xml_value(a[0]) for a in node}
    if node.tag == "b":
        return node.attrib["v"] == "t"
    return {"s": str, "i": int, "r": float}[node.tag](node.text or "")


def read_xml(text):
    return [xml_value(node) for node in ElementTree.fromstring(f"<classads>{text}</classads>")]


def read_json(text):
    found, decoder, at = [], json.JSONDecoder(), 0
    while at < len(text):
        event, at = decoder.raw_decode(text, at)
        found.append(event)
        at = re.compile(r"\s*").match(text, at).end()
    return found


FORMS = {"xml": ({"log_xml": "True"}, read_xml), "json": ({"log_format": "JSON"}, read_json)}


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def events(instance, name, form):
    """What the log has. Its last event may be half written as we read."""
    text = instance.read(name) if instance.exists(name) else ""
    end = {"xml": "</c>\n", "json": "\n}\n"}[form]
    return FORMS[form][1](text[:text.rfind(end) + len(end)] if end in text else "")


def numbers(instance, name, form, request, member=0):
    return [e["EventTypeNumber"] for e in events(instance, name, form)
            if (e["Cluster"], e["Proc"]) == (request, member) and e["EventTypeNumber"] != 6]


def wait_numbers(instance, name, form, request, want, member=0):
    def there():
        """the log has its events"""
        return numbers(instance, name, form, request, member) == want

    wait_until(there)


def test_a_job_that_ends(shared, form):
    name = f"end-{form}.log"
    r = shared.run(sh("echo hello", output="f.out", log=name, submit_event_notes="one <two> & \"three\"",
                      **FORMS[form][0]))
    fails = shared.run(sh("kill -SEGV $$", log=name, **FORMS[form][0]), code=1)
    wait_numbers(shared, name, form, fails, [0, 1, 5])
    submit, execute, end = (e for e in events(shared, name, form)
                            if e["Cluster"] == r and e["EventTypeNumber"] in (0, 1, 5))
    assert submit["MyType"] == "SubmitEvent" and submit["LogNotes"] == 'one <two> & "three"'
    assert re.fullmatch(r"<\S+>", submit["SubmitHost"])
    assert execute["MyType"] == "ExecuteEvent" and re.fullmatch(r"<\S+>", execute["ExecuteHost"])
    assert re.fullmatch(r"\S+@\S+", execute["SlotName"])
    assert end["MyType"] == "JobTerminatedEvent"
    assert end["TerminatedNormally"] is True and end["ReturnValue"] == 0 and "TerminatedBySignal" not in end
    assert end["SentBytes"] == 6.0 and isinstance(end["SentBytes"], float)
    assert re.fullmatch(r"Usr 0 00:00:0\d, Sys 0 00:00:0\d", end["RunRemoteUsage"])
    assert end["RequestMemory"] == 32 and end["Subproc"] == 0
    for e in (submit, execute, end):
        datetime.strptime(e["EventTime"], "%Y-%m-%dT%H:%M:%S")
    (end,) = [e for e in events(shared, name, form) if e["Cluster"] == fails and e["EventTypeNumber"] == 5]
    assert end["TerminatedNormally"] is False and end["TerminatedBySignal"] == 11 and "ReturnValue" not in end


def test_held_released_removed(shared, form):
    name = f"act-{form}.log"
    r = shared.submit(sh("sleep 600", log=name, queue="queue 2", **FORMS[form][0]), "--hold")
    wait_numbers(shared, name, form, r, [0, 12], 1)
    shared.cli("release", f"{r}.1")
    shared.wait_state(f"{r}.1", "running")
    shared.cli("hold", "--reason", "let it <rest>", f"{r}.1")
    shared.wait_state(f"{r}.1", "held")
    shared.cli("rm", f"{r}")
    wait_numbers(shared, name, form, r, [0, 12, 13, 1, 4, 12, 9], 1)
    held = [e for e in events(shared, name, form) if e["EventTypeNumber"] == 12 and e["Proc"] == 1][-1]
    assert "let it <rest>" in held["HoldReason"]
    assert (held["HoldReasonCode"], held["HoldReasonSubCode"]) == (1, 0)
    evicted = [e for e in events(shared, name, form) if e["EventTypeNumber"] == 4][0]
    assert evicted["TerminatedAndRequeued"] is False and evicted["Checkpointed"] is False


@pytest.mark.parametrize("words, want", [
    ("LEGACY", r"\d\d/\d\d \d\d:\d\d:\d\d"),
    ("LEGACY, sub_second", r"\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}"),
    ("ISO_DATE", r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
    ("UTC SUB_SECOND", r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z"),
    ("UTC !ISO_DATE", r"\d\d/\d\d \d\d:\d\d:\d\dZ"),
])
def test_times_in_text(shared, words, want):
    name = "time-" + re.sub(r"\W", "", words) + ".log"
    r = shared.run(sh("exit 0", log=name, log_format=words))
    wait_until(lambda: shared.exists(name) and re.search(r"\n005 \((.|\n)*\.\.\.\n$", shared.read(name)))
    heads = re.findall(r"^\d{3} \(%03d\.000\.000\) (.*?) Job" % r, shared.read(name), re.M)
    assert len(heads) == 3 and all(re.fullmatch(want, h) for h in heads), heads
    Condor(shared)("wait", name)


def test_condor_wait_reads_it(shared, form):
    name = f"wait-{form}.log"
    r = shared.submit(sh("exit $(Process)", log=name, queue="queue 3", **FORMS[form][0]))
    out = Condor(shared)("wait", "-status", name, r)
    assert re.search(r"^%d\.2\.0 submitted$" % r, out, re.M)
    assert re.search(r"^%d\.2\.0 executing on host <\S+>$" % r, out, re.M)
    assert re.search(r"^%d\.2\.0 completed$" % r, out, re.M)
    assert out.endswith("All jobs done.\n")
    echoed = Condor(shared)("wait", "-echo", name, r).removesuffix("All jobs done.\n")
    assert FORMS[form][1](echoed) == events(shared, name, form)


def test_wrong_words(shared):
    p = shared.cli("submit", "-", stdin=sh("exit 0", log="x.log", log_format="ISO_DATES"), code=None)
    assert p.code != 0 and "'ISO_DATES' is no form of a log" in p.err
    p = shared.cli("submit", "-", stdin=sh("exit 0", log="x.log", log_xml="perhaps"), code=None)
    assert p.code != 0 and "neither True nor False" in p.err


def test_as_htcondor_reads_the_attribute(shared):
    """UserLogUseXML is a number for HTCondor's writer: 2 is JSON."""
    r = shared.run(sh("exit 0", log="number.log", **{"+UserLogUseXML": 2}))
    wait_numbers(shared, "number.log", "json", r, [0, 1, 5])


def test_killed_in_the_middle_of_many(instance, form):
    server = instance.server()
    token = instance.cli("token", "agent", "--name", "a1").split()[-1]

    def agent():
        one = instance.start("drover-agent", "--server", instance.server_json()["agents"][0], "--dir",
                             os.path.join(instance.base, "agent"), "--token", token, "--name", "a1", "--cpus", "4")
        wait_until(lambda: instance.agents("connected"))
        return one

    def size():
        return os.path.getsize(os.path.join(instance.work, "many.log")) if instance.exists("many.log") else 0

    one, jobs = agent(), 30000
    r = instance.submit(sh("exit 0", log="many.log", queue=f"queue {jobs}", **FORMS[form][0]), "--hold")
    for _ in range(2):
        before = size()
        wait_until(lambda: size() > before + (1 << 20))
        one.kill()
        server.kill()
        server = instance.server()
        one = agent()
    end = {"xml": "</c>\n", "json": "\n}\n"}[form]
    wait_until(lambda: (text := instance.read("many.log")).count("JobHeldEvent") >= jobs and text.endswith(end))
    found = [(e["EventTypeNumber"], e["Proc"]) for e in events(instance, "many.log", form) if e["Cluster"] == r]
    assert [p for n, p in found if n == 0] == list(range(jobs))
    assert [p for n, p in found if n == 12] == list(range(jobs))
