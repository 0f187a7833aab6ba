"""Files that DAG files ask for: pictures, states, logs and save points, written while somebody waits; graphs in graphs; data nodes."""
import os
import subprocess

from condor import Condor
from drover import wait_until
from test_dag import nodes, order, step, submitted, tracing


def test_files_of_a_graph(drover):
    step(drover, tracing(drover))
    step(drover, f"while ! test -e {drover.work}/go; do sleep 0.05; done; {tracing(drover)}", name="gate.sub")
    drover.write("more.dot", "  rankdir=LR;\n")
    drover.write("w.dag.dot", "mine\n")
    drover.write("w.dag", "JOB A step.sub\nJOB B gate.sub\nJOB C step.sub\nPARENT A CHILD B\nPARENT B CHILD C\n"
                          "DOT w.dag.dot UPDATE DONT-OVERWRITE INCLUDE more.dot\nNODE_STATUS_FILE node.status\nJOBSTATE_LOG jobstate.log\n"
                          "SAVE_POINT_FILE B\nSAVE_POINT_FILE C points.save\n")
    out = drover.cli("dag", "submit", "w.dag")
    request = submitted(out)
    assert f"drover dag watch {request} w.dag" in out.err
    watcher = subprocess.Popen([drover.program("drover"), "dag", "watch", str(request), "w.dag"], cwd=drover.work, env=drover.env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: drover.exists("node.status") and 'Node = "A";\n  NodeStatus = 5' in drover.read("node.status")
               and 'Node = "B";\n  NodeStatus = 3' in drover.read("node.status"))
    assert "NodesTotal = 3;" in drover.read("node.status") and 'Node = "C";\n  NodeStatus = 0' in drover.read("node.status")
    wait_until(lambda: '"B" [fillcolor=lightblue' in drover.read("w.dag.dot.0"))
    drover.write("go", "")
    assert watcher.wait(60) == 0
    assert "DagStatus = 5;" in drover.read("node.status") and "NodesDone = 3;" in drover.read("node.status")
    assert drover.read("w.dag.dot") == "mine\n" and "rankdir=LR;" in drover.read("w.dag.dot.0") and '"C" [fillcolor=palegreen' in drover.read("w.dag.dot.0")
    log = drover.read("jobstate.log")
    assert "INTERNAL *** DAGMAN_STARTED" in log and "INTERNAL *** DAGMAN_FINISHED" in log
    assert all(f" {n} JOB_SUCCESS {request} " in log for n in "ABC") and f" B EXECUTE {request} " in log
    assert [line for line in drover.read("save_files/B-w.dag.save").splitlines() if line[0] != "#"] == ["DONE A"]
    assert [line for line in drover.read("save_files/points.save").splitlines() if line[0] != "#"] == ["DONE A", "DONE B"]
    os.unlink(os.path.join(drover.work, "trace"))
    drover.cli("dag", "submit", "--wait", "--rescue", "save_files/points.save", "w.dag")
    assert order(drover) == ["C"]
    condor = Condor(drover)
    assert "3 nodes" in condor("submit_dag", "-no_submit", "-force", "w.dag")


def test_a_file_that_cannot_be_written_is_said(drover):
    step(drover, tracing(drover))
    drover.write("w.dag", "JOB A step.sub\nNODE_STATUS_FILE absent/node.status\n")
    out = drover.cli("dag", "submit", "--wait", "w.dag")
    assert "absent/node.status" in out.err and order(drover) == ["A"]


def test_a_graph_in_a_graph(drover):
    step(drover, tracing(drover))
    drover.write("inner.dag", "JOB X step.sub\nJOB Y step.sub\nPARENT X CHILD Y\n")
    drover.write("w.dag", "JOB A step.sub\nSUBDAG EXTERNAL S inner.dag\nJOB B step.sub\nPARENT A CHILD S\nPARENT S CHILD B\n")
    drover.cli("dag", "submit", "--wait", "w.dag")
    assert order(drover) == ["A", "S+X", "S+Y", "B"]
    drover.write("w.dag", "JOB A step.sub\nSUBDAG EXTERNAL S later.dag\n")
    assert "later.dag cannot be read: no such file" in drover.cli("dag", "submit", "w.dag", code=1).err


def test_data_nodes(drover):
    """A file is fetched by a placement job, and the job behind it reads it."""
    step(drover, f"cat {drover.work}/here.txt >> {drover.work}/trace")
    drover.write("there.txt", "moved\n")
    drover.write("move.dap", f'[ dap_type = "transfer"; src_url = "file://{drover.work}/there.txt"; dest_url = "file://{drover.work}/here.txt"; ]\n')
    drover.write("w.dag", "DATA D move.dap\nJOB A step.sub\nPARENT D CHILD A\n")
    out = drover.cli("dag", "submit", "--wait", "w.dag")
    assert order(drover) == ["moved"]
    assert nodes(drover, submitted(out)) == {"D": "done", "A": "done"}


def test_files_that_include_each_other_without_end(drover):
    """Not deep, but wide: eighteen files, each of which includes the next one ten times."""
    for n in range(18):
        drover.write(f"f{n}.dag", f"INCLUDE f{n + 1}.dag\n" * 10)
    drover.write("f18.dag", "# nothing\n")
    step(drover, "true")
    drover.write("w.dag", "JOB A step.sub\nINCLUDE f0.dag\n")
    out = drover.cli("dag", "submit", "w.dag", code=None)
    assert out.code == 1 and "more than 100000 files are included" in out.err
