"""Composite requests in RDL: the outputs of one request are the dataset of the next, merged, with a choice, over kills."""
import collections
import glob
import json
import os
import re

import agents
import pytest
from drover import LIMIT, wait_until

pytest_plugins = ["batch_systems"]

SHELL = '<Application ID="sh" name="/bin/sh"/>'


def task(name, text, *outputs):
    out = "".join(f'<output fromScratch="{a}" toURL="file:{b}"/>' for a, b in outputs)
    return f'<ScriptTask ID="t.{name}"><Text>{text}</Text>{out}</ScriptTask>'


def choice(one, other):
    return f'<ChooseBetweenRequests id="sum"><RequestID idref="{one}"/><RequestID idref="{other}"/></ChooseBetweenRequests>'


def order(first, then):
    return (f'<SetupRequestDependancy><RequestToBeDoneFirstID idref="{first}"/><RequestWaitingForInputID idref="{then}"/>'
            "</SetupRequestDependancy>")


def composite(*elements):
    return '<?xml version="1.0"?>\n<AbstractRequest version="V0.52" name="c">\n' + "\n".join(elements) + "\n</AbstractRequest>\n"


def nodes(instance, request):
    return {n["name"]: n["state"] for n in instance.json("dag", "show", str(request))["nodes"]}


def test_a_composite_over_two_agents_that_are_killed(instance):
    """Each job of the first requests runs where its files are; the next ones read what these have written, once each."""
    instance.server()
    config = instance.write("agent.yaml", "queues:\n  - name: here\n    cpus: 4\n")

    def start(name, *more):
        return instance.start("drover-agent", "--dir", os.path.join(instance.base, name), "--server", instance.server_json()["agents"][0],
                              "--name", name, "--config", config, "--attributes", f'Machine = "{name}"', *more)
    both = [start(name, "--token", instance.json("token", "agent", "--name", name)["token"]) for name in ("n1", "n2")]
    wait_until(lambda: len(instance.agents("connected")) == 2)
    found = sorted(p for p in glob.glob("/usr/include/*.h") if os.path.isfile(p))[:20]
    lines = [json.dumps({"name": p, "metadata": {"run": 7}, "replicas": [{"url": f"file://n{1 + i % 2}{p}", "host": f"n{1 + i % 2}"}]})
             for i, p in enumerate(found)]
    instance.cli("catalog", "import", "-", stdin="\n".join(lines))
    out, gate, trace = (os.path.join(instance.work, n) for n in ("out", "gate", "trace"))
    os.makedirs(out)
    note = f"echo %s >>{trace}; "
    instance.write("c.rdl.xml", composite(
        '<Request ID="lines" taskRef="t.lines" appRef="sh" datasetRef="raw" resourceRef="five"/>',
        '<Request ID="bytes" taskRef="t.bytes" appRef="sh" datasetRef="raw" resourceRef="five"/>',
        '<Request ID="fast" taskRef="t.fast" appRef="sh"/>', '<Request ID="slow" taskRef="t.slow" appRef="sh"/>',
        '<Request ID="plot" taskRef="t.plot" appRef="sh"/>', SHELL,
        task("lines", note % "lines" + f"while ! test -e {gate}; do sleep 0.05; done; xargs cat &lt;$FILELIST | wc -l >l",
             ("l", f"{out}/l.$JOBINDEX")),
        task("bytes", note % "bytes" + "xargs cat &lt;$FILELIST | wc -c >b", ("b", f"{out}/b.$JOBINDEX")),
        task("fast", note % "fast" + "exit 1", ("s", f"{out}/s")),
        task("slow", note % "slow" + "xargs cat &lt;$FILELIST | awk '{n += $1} END {print n}' >s", ("s", f"{out}/s")),
        task("plot", note % "plot" + "echo of $(cat $INPUTFILE0) >p", ("p", f"{out}/plot.$INPUTFILECOUNT")),
        '<Dataset ID="raw"><input URL="catalog:?run=7" nFiles="all"/></Dataset>',
        '<ResourceSpecifications ID="five" maxFilesPerProcess="5"/>',
        '<WorkFlow><MergeRequests id="both"><RequestID idref="lines"/><RequestID idref="bytes"/></MergeRequests>',
        choice("fast", "slow"), order("both", "sum"), order("sum", "plot"), "</WorkFlow>"))
    table = instance.cli("submit", "--dry-run", "c.rdl.xml").out
    assert re.search(r"lines +4 +t.lines +sh +raw +-\n", table) and re.search(r"slow +1 +t.slow +sh +both +both; runs if fast fails\n", table)
    assert "merge both: lines and bytes\n  choice sum: fast, else slow\n" in table and "composite request c: 11 jobs" in table
    assert instance.cli("submit", "c.rdl.xml").out == "request 1: 11 jobs\n"
    wait_until(lambda: len(instance.read("trace").splitlines()) == 8 if instance.exists("trace") else False)
    assert nodes(instance, 1)["fast"] == "waits"
    instance.kill_server()
    for agent in both:
        agent.kill()
    instance.write("gate", "")
    instance.server()
    for name in ("n1", "n2"):
        start(name)
    instance.wait("1", seconds=LIMIT * 2)
    assert nodes(instance, 1) == {"lines": "done", "bytes": "done", "fast": "failed", "slow": "done", "plot": "done"}
    want = 0
    for path in found:
        with open(path, "rb") as f:
            data = f.read()
        want += len(data) + data.count(b"\n")
    assert instance.read("out/plot.1") == f"of {want}\n"
    seen = collections.Counter(line for line in instance.read("trace").splitlines())
    assert seen == {"lines": 4, "bytes": 4, "fast": 1, "slow": 1, "plot": 1}
    where = {h["member"]: h["agent"] for h in instance.history("1")}
    assert collections.Counter(where[m] for m in range(4)) == {"n1": 2, "n2": 2}


def test_yaml_conditions_and_what_is_left(instance):
    """A choice whose first succeeds skips the other; when="any" runs whatever came before; a failed one takes what waits along."""
    instance.up()
    instance.write("c.rdl.yaml", """AbstractRequest:
  name: days
  Request:
    - {ID: a, taskRef: make, appRef: sh, nProcesses: 3}
    - {ID: b, taskRef: bad, appRef: sh, nProcesses: 2}
    - {ID: read, taskRef: count, appRef: sh, datasetRef: best, resourceRef: each}
    - {ID: never, taskRef: count, appRef: sh, datasetRef: broken}
    - {ID: clean, taskRef: say, appRef: sh, nProcesses: 1}
    - {ID: broken, taskRef: bad2, appRef: sh, nProcesses: 1}
  Application: {ID: sh, name: /bin/sh}
  ScriptTask:
    - {ID: make, Text: echo $WHAT $JOBINDEX >o, output: {fromScratch: o, toURL: "file:./o.$JOBINDEX"}, Environment: {name: WHAT, text: it's a}}
    - {ID: bad, Text: exit 3, output: [{fromScratch: o, toURL: "file:./o.$JOBINDEX"}]}
    - {ID: bad2, Text: exit 4, output: {fromScratch: o, toURL: "file:./p"}}
    - {ID: count, Text: cat $INPUTFILE0, stdout: {URL: "file:./c.$JOBINDEX"}}
    - {ID: say, Text: echo cleaned, stdout: {URL: "file:./said"}}
  WorkFlow:
    SetupRequestDependancy: {when: any, RequestToBeDoneFirstID: {idref: broken}, RequestWaitingForInputID: {idref: clean}}
    ChooseBetweenRequests: {id: best, RequestID: [{idref: a}, {idref: b}]}
  ResourceSpecifications: {ID: each, maxFilesPerProcess: 1}
""")
    wrong = instance.cli("submit", "c.rdl.yaml", code=1).err
    assert "a and b write different files, so those of best are not known" in wrong
    instance.write("c.rdl.yaml", instance.read("c.rdl.yaml").replace("nProcesses: 2}", "nProcesses: 3}"))
    assert instance.cli("submit", "c.rdl.yaml").out == "request 1: 12 jobs\n"
    instance.wait("1", code=1)
    assert nodes(instance, 1) == {"a": "done", "b": "done", "read": "done", "never": "removed", "clean": "done", "broken": "failed"}
    assert [instance.read(f"c.{i}") for i in range(3)] == [f"it's a {i}\n" for i in range(3)] and instance.read("said") == "cleaned\n"
    session = glob.glob(os.path.join(instance.work, "sched*.session.xml"))
    assert len(session) == 1 and "12 jobs" in instance.cli("queue", "--session", session[0]).out
    report = instance.read(os.path.basename(glob.glob(os.path.join(instance.work, "sched*.report"))[0]))
    assert "composite request days: 12 jobs" in report and 'attributes of "read"' in report


@pytest.mark.parametrize("system", ["alpha", "grid"])
def test_a_batch_system_as_dispatcher(instance, request, system):
    """Jobs of datasets in Slurm and Grid Engine: each finds its files, and the next request what it wrote."""
    batch = request.getfixturevalue(system)
    os.makedirs(instance.dir, mode=0o700)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"dispatchers: {{batch: {{places: 'TARGET.Runner == \"{batch.runner}\"'}}}}\ndefaults: {{dispatcher: batch}}\n")
    instance.server()
    agents.start(instance, agents.batch_queues(batch, more="") + "  - {name: own, cpus: 2}\n")
    agents.offering(instance, batch.name)
    for i in range(4):
        instance.write(f"in/{i}.txt", f"{i}\n")
    instance.write("s.xml", '<job maxFilesPerProcess="2"><command>cat $INPUTFILE0 $INPUTFILE1 >o; echo $JOBINDEX $INPUTFILECOUNT</command>'
                            '<shell>/bin/sh</shell><stdout URL="file:./s.$JOBINDEX"/><input URL="file:./in/*.txt" nFiles="all"/>'
                            '<output fromScratch="o" toURL="file:./o.$JOBINDEX"/></job>')
    instance.cli("submit", "s.xml")
    instance.wait("1")
    assert instance.read("o.0") + instance.read("o.1") == "0\n1\n2\n3\n" and instance.read("s.1") == "1 2\n"
    instance.write("c.rdl.xml", composite(
        '<Request ID="each" taskRef="t.each" appRef="sh" datasetRef="raw" resourceRef="two"/>',
        '<Request ID="all" taskRef="t.all" appRef="sh" datasetRef="each"/>', SHELL,
        task("each", "cat $(cat $FILELIST) >e; echo $PROCESSID >>e", ("e", "./e.$JOBINDEX")),
        task("all", "cat $(cat $FILELIST) >a", ("a", "./all")),
        '<Dataset ID="raw"><input URL="file:./in/*.txt" nFiles="all"/></Dataset>',
        '<ResourceSpecifications ID="two" maxFilesPerProcess="2"/>'))
    instance.cli("submit", "c.rdl.xml")
    instance.wait("2")
    assert instance.read("all").split() == ["0", "1", "0", "2", "3", "1"]
    assert {h["queue"] for h in instance.history("1") + instance.history("2")} == {batch.name}


def test_patterns_come_in_folders(instance):
    """Where outputs are patterns each job of the next request gets what is in the folders of those that it waits for."""
    instance.up()
    instance.write("c.rdl.xml", composite(
        '<Request ID="many" taskRef="t.many" appRef="sh" nProcesses="3"/>',
        '<Request ID="two" taskRef="t.two" appRef="sh" datasetRef="many" resourceRef="pairs"/>', SHELL,
        task("many", "for i in $(seq 0 $JOBINDEX); do echo $JOBINDEX >\"f $i.root\"; done; echo l >a.log",
             ("*.root", "./f/$JOBID/"), ("*.log", "./f/$JOBID/")),
        task("two", 'echo $INPUTFILECOUNT >o; while read -r f; do cat "$f"; done &lt;$FILELIST >>o; echo "$INPUTFILE1" >>o', ("o", "./o.$JOBINDEX")),
        '<ResourceSpecifications ID="pairs" maxFilesPerProcess="2"/>'))
    instance.cli("submit", "c.rdl.xml")
    instance.wait("1")
    for name, want in (("o.0", ["5", "l", "0", "l", "1", "1", "/f 0.root"]), ("o.1", ["4", "l", "2", "2", "2", "/f 0.root"])):
        got = instance.read(name).split("\n")[:-1]
        assert got[:-1] == want[:-1] and got[-1].endswith(want[-1]), got
