"""`drover dag show`, and what is done to the nodes of a graph by their names."""
import os
import xml.etree.ElementTree

from condor import Condor
from drover import sh, wait_until
from test_dag import nodes, order, step, submitted, tracing

DIAMOND = "JOB A step.sub\nJOB B step.sub\nJOB C step.sub\nJOB D step.sub\nPARENT A CHILD B C\nPARENT B C CHILD D\n"


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_a_small_graph_is_a_list_by_level(drover):
    step(drover, tracing(drover))
    drover.write("d.dag", DIAMOND)
    request = submitted(drover.cli("dag", "submit", "--wait", "d.dag"))
    shown = rows(drover.cli("dag", "show", str(request)))
    assert shown[0] == ["LEVEL", "NODE", "STATE", "JOBS", "AFTER", "NOTE"]
    assert shown[1][:4] == ["0", "A", "done", "1"] and shown[2] == ["1", "B", "done", "1", "A"] and shown[3] == ["C", "done", "1", "A"]
    assert shown[4] == ["2", "D", "done", "1", "B", "C"] and shown[5] == ["4", "nodes:", "4", "done"]
    assert [n["level"] for n in drover.json("dag", "show", str(request))["nodes"]] == [0, 1, 1, 2]
    picture = xml.etree.ElementTree.fromstring(drover.cli("dag", "show", "--svg", str(request)))
    space = "{http://www.w3.org/2000/svg}"
    assert [t.text for t in picture.iter(space + "text")][1:] == ["A", "B", "C", "D"]
    assert len(list(picture.iter(space + "path"))) == 4


def test_a_large_graph_is_a_line_for_each_level(drover):
    """Five levels of 300 nodes, and a chain behind them: levels that look alike are one line."""
    step(drover, "exit 0", name="step.sub")
    text = "".join(f"JOB L{k}N{i} step.sub\n" for k in range(5) for i in range(300))
    for k in range(4):
        text += "PARENT " + " ".join(f"L{k}N{i}" for i in range(300)) + " CHILD " + " ".join(f"L{k + 1}N{i}" for i in range(300)) + "\n"
    text += "".join(f"JOB C{i} step.sub\n" for i in range(50)) + "PARENT L4N0 CHILD C0\n" + "".join(f"PARENT C{i} CHILD C{i + 1}\n" for i in range(49))
    drover.write("big.dag", text)
    request = submitted(drover.cli("dag", "submit", "--hold", "big.dag"))
    shown = rows(drover.cli("dag", "show", str(request)))
    assert shown[0] == ["LEVEL", "NODES", "PROGRESS", "STATES"]
    assert shown[1][:4] == ["0-4", "300", "each", "!" * 20] and shown[2][:3] == ["5-54", "1", "each"]
    assert "and more" in " ".join(shown[1]) and shown[3] == ["1550", "nodes:", "1550", "held"]
    picture = xml.etree.ElementTree.fromstring(drover.cli("dag", "show", "--svg", str(request)))
    texts = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("300 nodes: 300 held") == 5 and "C49" in texts
    drover.cli("rm", str(request))


def test_actions_on_nodes(drover):
    step(drover, tracing(drover))
    drover.write("d.dag", DIAMOND)
    request = submitted(drover.cli("dag", "submit", "--hold", "d.dag"))
    assert "3 jobs released" in drover.cli("dag", "release", str(request), "A", "B", "D")
    wait_until(lambda: nodes(drover, request) == {"A": "done", "B": "done", "C": "held", "D": "waits"})
    assert "1 job held" in drover.cli("dag", "hold", str(request), "D")
    assert "has no node X" in drover.cli("dag", "rm", str(request), "X", code=1).err
    assert "1 job removed" in drover.cli("dag", "rm", str(request), "C")
    drover.cli("dag", "release", str(request), "D")
    drover.wait(request, code=1)
    assert nodes(drover, request) == {"A": "done", "B": "done", "C": "removed", "D": "removed"}
    assert order(drover) == ["A", "B"]
    again = submitted(drover.cli("dag", "resubmit", str(request)))
    drover.wait(again)
    assert nodes(drover, again) == {"C": "done", "D": "done"} and order(drover)[2:] == ["C", "D"]
    assert "all nodes of request" in drover.cli("dag", "resubmit", str(again), code=1).err
    rescue = drover.cli("dag", "rescue", "--before", "B", str(request))
    assert [line for line in rescue.splitlines() if not line.startswith("#")] == ["DONE A"]
    assert "has not started" in drover.cli("dag", "rescue", "--before", "D", str(request), code=1).err


def test_condor_q_dag(drover):
    condor = Condor(drover)
    step(drover, tracing(drover))
    drover.write("d.dag", DIAMOND)
    other = drover.submit(sh("exit 0"), "--hold")
    request = submitted(drover.cli("dag", "submit", "--hold", "d.dag"))
    shown = rows(condor("q", "-dag"))
    assert ["ID", "OWNER/NODENAME", "SUBMITTED", "RUN_TIME", "ST", "PRI", "SIZE", "CMD"] in shown
    lines = {line[0]: line for line in shown if len(line) > 6}
    assert [lines[f"{request}.{i}"][1] for i in range(4)] == ["|-A", "|-B", "|-C", "|-D"] and lines[f"{request}.0"][5] == "H"
    assert "|-" not in lines[f"{other}.0"][1]
    assert "|-" not in condor("q", "-nobatch")


def test_a_graph_is_resubmitted_in_its_order(drover):
    """B fails, and with it falls the rest: the new request has B, D and E, and their arrows."""
    bad = os.path.join(drover.work, "bad")
    drover.write("bad", "")
    step(drover, f"echo $(JOB) >> {drover.work}/trace; test $(JOB) != B || test ! -e {bad}")
    drover.write("d.dag", DIAMOND + "JOB E step.sub\nPARENT D CHILD E\n")
    request = submitted(drover.cli("dag", "submit", "--wait", "d.dag", code=1))
    os.unlink(bad)
    os.unlink(os.path.join(drover.work, "trace"))
    again = submitted(drover.cli("dag", "resubmit", "--hold", str(request)))
    assert drover.api("GET", f"/v1/requests/{again}?edges=1")["edges"] == "0>1;1>2"
    drover.cli("dag", "release", str(again))
    drover.wait(again)
    assert order(drover) == ["B", "D", "E"]
