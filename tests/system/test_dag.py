"""`drover dag`: graphs in the language of HTCondor's DAGMan, run by real daemons."""
import json
import os
import random
import re

import pytest

from condor import Condor
from drover import processes, sh, wait_until
from test_kill import apart


def step(instance, script, name="step.sub", **more):
    """The submit file of a node, whose script knows its name as $(JOB)."""
    return instance.write(name, sh(script, **more))


def submitted(out):
    return int(out.split()[1].rstrip(":"))


def order(instance):
    return instance.read("trace").split()


def tracing(instance, code="0"):
    return f"echo $(JOB) >> {instance.work}/trace; exit {code}"


def nodes(instance, request):
    return {n["name"]: n["state"] for n in instance.json("dag", "show", str(request))["nodes"]}


def test_the_diamond_of_the_manual(drover):
    step(drover, tracing(drover))
    drover.write("diamond.dag", "JOB A step.sub\nJOB B step.sub\nJOB C step.sub\nJOB D step.sub\nPARENT A CHILD B C\nPARENT B C CHILD D\n")
    out = drover.cli("dag", "submit", "--wait", "diamond.dag")
    assert "4 nodes, 4 jobs, 4 arrows" in out
    trace = order(drover)
    assert trace[0] == "A" and trace[3] == "D" and sorted(trace) == list("ABCD")
    request = submitted(out)
    assert nodes(drover, request) == dict.fromkeys("ABCD", "done")
    dot = drover.cli("dag", "show", "--dot", str(request))
    for arrow in ('"A" -> "B";', '"A" -> "C";', '"B" -> "D";', '"C" -> "D";', '"A" [fillcolor=palegreen'):
        assert arrow in dot


def test_failure_and_rescue(drover):
    """B fails: C runs, D and what is behind it does not, FINAL does; with the rescue file the rest runs, and nothing again."""
    bad = os.path.join(drover.work, "bad")
    step(drover, f"echo $(JOB) >> {drover.work}/trace; test $(JOB) != B || test ! -e {bad}")
    drover.write("bad", "")
    drover.write("w.dag", "JOB A step.sub\nJOB B step.sub\nJOB C step.sub\nJOB D step.sub\nJOB E step.sub\n"
                          "PARENT A CHILD B C\nPARENT B C CHILD D\nPARENT D CHILD E\nFINAL F step.sub\n")
    out = drover.cli("dag", "submit", "w.dag")
    request = submitted(out)
    drover.wait(request, code=1)
    assert nodes(drover, request) == {"A": "done", "B": "failed", "C": "done", "D": "removed", "E": "removed", "F": "done"}
    assert sorted(order(drover)) == ["A", "B", "C", "F"]
    assert "6 nodes: 3 done, 1 failed, 2 removed" in drover.cli("dag", "show", str(request))
    assert f"depends on job {request}." in drover.cli("show", "--ad", f"{request}.3")
    rescue = drover.cli("dag", "rescue", str(request))
    assert [line for line in rescue.splitlines() if not line.startswith("#")] == ["DONE A", "DONE C", "DONE F"]
    drover.write("w.dag.rescue001", "DONE nobody\n")
    assert "w.dag.rescue001:1: there is no node nobody" in drover.cli("dag", "submit", "w.dag", code=1).err
    drover.write("w.dag.rescue002", rescue)  # the newest counts
    os.unlink(bad)
    os.unlink(os.path.join(drover.work, "trace"))
    out = drover.cli("dag", "submit", "--wait", "w.dag")
    assert "4 nodes, 4 jobs" in out and "2 nodes are done already" in out and "w.dag.rescue002" in out.err
    assert order(drover) == ["B", "D", "E", "F"]
    assert "6 nodes, 6 jobs" in drover.cli("dag", "submit", "--dry-run", "--no-rescue", "w.dag")


def test_variables_retries_and_several_jobs(drover):
    step(drover, "echo $(JOB) $(what) $(Process) $(Cluster) > out.$(Cluster).$(Process)", name="many.sub", queue="queue 2")
    step(drover, f"echo again >> {drover.work}/tries; exit 3", name="fails.sub")
    drover.write("v.dag", "JOB A many.sub\nJOB B many.sub\nJOB R fails.sub\nJOB U fails.sub\n"
                          'VARS A what="a b" +Kind="\\"x\\""\nVARS B what="\\"quoted\\"" +Kind="7"\nRETRY R 2\nRETRY U 5 UNLESS-EXIT 3\n'
                          "PARENT A CHILD B\nPRIORITY A 5\n")
    request = submitted(drover.cli("dag", "submit", "v.dag"))
    drover.wait(request, code=1)
    ads = [drover.job(f"{request}.{m}") for m in range(6)]
    names = [a["ad"]["DAGNodeName"] for a in ads]
    assert names == ["A", "A", "B", "B", "R", "U"]
    assert [a["ad"].get("Kind") for a in ads] == ["x", "x", 7, 7, None, None]
    assert [a["starts"] for a in ads[4:]] == [3, 1]
    assert drover.read("tries").count("again") == 4


def test_splices_and_inline_descriptions(drover):
    step(drover, tracing(drover))
    drover.write("inner.dag", "JOB X step.sub\nJOB Y step.sub\nPARENT X CHILD Y\n")
    drover.write("outer.dag", "SPLICE S inner.dag\nSPLICE T inner.dag\nJOB N step.sub NOOP\n"
                              f"JOB E {{\n  executable = /bin/sh\n  arguments = \"-c 'echo $(JOB) >> {drover.work}/trace'\"\n}}\n"
                              "PARENT S CHILD N\nPARENT N CHILD T\nPARENT T CHILD E\n")
    drover.cli("dag", "submit", "--wait", "outer.dag")
    assert order(drover) == ["S+X", "S+Y", "T+X", "T+Y", "E"]


def test_condor_submit_dag(drover):
    condor = Condor(drover)
    step(drover, tracing(drover))
    drover.write("c.dag", "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\n")
    out = condor("submit_dag", "-maxjobs", "1", "-batch-name", "night", "c.dag")
    request = int(re.search(r"submitted to cluster (\d+)\.", out)[1])
    drover.wait(request)
    assert order(drover) == ["A", "B"] and drover.job(f"{request}.0")["ad"]["JobBatchName"] == "night"
    drover.write("c.dag.rescue001", "DONE A\n")
    assert "(2 nodes)" in condor("submit_dag", "-no_submit", "c.dag")
    drover.write("c.dag.rescue001", "DONE A\nDONE B\n")
    assert "all its nodes are done" in condor("submit_dag", "c.dag", code=1).err
    again = condor("submit_dag", "-force", "c.dag")
    drover.wait(int(re.search(r"submitted to cluster (\d+)\.", again)[1]))


def test_condor_submit_dag_leaves_a_rescue_file(instance):
    """By a process that outlives the command; it ends with the graph, also across a restart of the server."""
    apart(instance)
    condor = Condor(instance)
    instance.write("ok.sub", sh("true"))
    instance.write("bad.sub", sh(f"while [ ! -e {instance.work}/go ]; do sleep 0.05; done; exit 1"))
    instance.write("c.dag", "JOB A ok.sub\nJOB B bad.sub\nJOB C ok.sub\nPARENT A CHILD B\nPARENT B CHILD C\nNODE_STATUS_FILE status\n")
    out = condor("submit_dag", "c.dag")
    request = int(re.search(r"submitted to cluster (\d+)\.", out)[1])
    assert "c.dag.dagman.out" in out
    wait_until(lambda: nodes(instance, request)["B"] == "running")
    instance.kill_server()
    instance.server()
    instance.write("go", "")
    wait_until(lambda: instance.exists("c.dag.rescue001"))
    assert "DONE A" in instance.read("c.dag.rescue001").splitlines() and "NodeStatus" in instance.read("status")
    wait_until(lambda: not processes(instance.work, "drover"))
    instance.write("bad.sub", sh("true"))
    again = condor("submit_dag", "c.dag")
    instance.wait(int(re.search(r"submitted to cluster (\d+)\.", again)[1]))


def test_a_held_graph_waits_and_goes_as_one(drover):
    step(drover, tracing(drover))
    drover.write("c.dag", "".join(f"JOB N{i} step.sub\n" for i in range(3)) + "PARENT N0 CHILD N1\nPARENT N1 CHILD N2\n")
    first = drover.submit(sh("exit 0"), "--hold")
    request = submitted(drover.cli("dag", "submit", "--hold", "--after", str(first), "-a", "+Mine = 5", "c.dag"))
    assert set(nodes(drover, request).values()) == {"held"}
    drover.cli("release", str(request))
    assert set(nodes(drover, request).values()) == {"waits"}
    drover.cli("release", str(first))
    drover.wait(request)
    assert order(drover) == ["N0", "N1", "N2"] and drover.job(f"{request}.2")["ad"]["Mine"] == 5
    other = submitted(drover.cli("dag", "submit", "--hold", "c.dag"))
    drover.cli("rm", str(other))
    assert len(drover.history(other)) == 3


def test_kills_in_a_random_graph(instance):
    """Forty nodes in layers, the server killed eight times: every node runs once, and after its parents."""
    apart(instance)
    rnd = random.Random(20261123)
    step(instance, f"echo $(JOB) >> {instance.work}/trace; sleep 0.1")
    parents = {f"N{i}": sorted({f"N{rnd.randrange(i)}" for _ in range(3)}) if i else [] for i in range(40)}
    instance.write("r.dag", "".join(f"JOB {n} step.sub\n" for n in parents) +
                   "".join(f"PARENT {' '.join(p)} CHILD {n}\n" for n, p in parents.items() if p))
    request = submitted(instance.cli("dag", "submit", "r.dag"))
    for _ in range(8):
        instance.kill_server()
        instance.server()
    instance.wait(request)
    trace = order(instance)
    assert sorted(trace) == sorted(parents)
    for n, p in parents.items():
        assert all(trace.index(one) < trace.index(n) for one in p), (n, p, trace)


def test_a_hundred_thousand_nodes(drover):
    """In layers of ten, each waiting for all of the layer before; not one process more for it."""
    drover.write("true.sub", "executable = /bin/true\nqueue\n")
    count = 100000
    lines = [f'JOB N{i} true.sub\nVARS N{i} number="{i}"\n' for i in range(count)]
    for i in range(0, count - 10, 10):
        lines.append("PARENT " + " ".join(f"N{i + k}" for k in range(10)) + " CHILD " + " ".join(f"N{i + 10 + k}" for k in range(10)) + "\n")
    drover.write("big.dag", "".join(lines))
    out = drover.cli("dag", "submit", "--hold", "big.dag")
    assert "100000 nodes, 100000 jobs, 999900 arrows" in out
    request = submitted(out)
    assert drover.api("GET", f"/v1/requests/{request}")["held"] == count
    drover.cli("rm", str(request))


def test_two_million_nodes_are_too_many(shared):
    """Refused by their number, before anything is sent."""
    with open(os.path.join(shared.work, "huge.dag"), "w", encoding="utf-8") as f:
        f.writelines(f"JOB N{i} step.sub\n" for i in range(2000000))
    assert "huge.dag:1000001: a DAG has at most 1000000 nodes" in shared.cli("dag", "submit", "huge.dag", code=1).err
    os.unlink(os.path.join(shared.work, "huge.dag"))


@pytest.mark.parametrize("text,words", [
    ("JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nPARENT B CHILD A\n", "in a circle"),
    ("JOB A step.sub\nPARENT A CHILD A\n", "in a circle"),
    ("JOB A absent.sub\n", "bad.dag:1: the submit description of node A, absent.sub, cannot be read"),
    ("JOB A step.sub\nSCRIPT POST A\n", "bad.dag:2: SCRIPT needs PRE, POST or HOLD, a node and a command"),
    ("JOB A step.sub\nABORT-DAG-ON A 0\n", "bad.dag:2: ABORT-DAG-ON needs a node and an exit code"),
    ("JOB A step.sub\nDATA B x.dap\n", "bad.dag:2: the submit description of node B, x.dap, cannot be read"),
    ("JOB A step.sub DONE\n", "all its nodes are done"),
    ("\0\1\2", "unknown keyword"),
    ("", "there is no node in it"),
])
def test_what_is_refused(shared, text, words):
    step(shared, "exit 0")
    shared.write("bad.dag", text)
    before = shared.api("GET", "/v1/requests?all=1")["requests"]
    assert words in shared.cli("dag", "submit", "bad.dag", code=1).err
    assert shared.api("GET", "/v1/requests?all=1")["requests"] == before


def test_what_is_no_graph(shared):
    request = shared.submit(sh("exit 0"), "--hold")
    assert "has no nodes of a DAG" in shared.cli("dag", "show", str(request), code=1).err
    assert "is a job" in shared.cli("dag", "show", f"{request}.0", code=2).err
    assert shared.cli("dag", "show", "999", code=None).code != 0
    assert "No such file" in shared.cli("dag", "submit", "absent.dag", code=1).err
    shared.cli("dag", "draw", "1", code=2)
    assert json.loads(shared.cli("show", "--json", str(request)))["id"] == request
