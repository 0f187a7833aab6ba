"""Graphs whose nodes have scripts, attempts, categories; what ends a graph, and what runs beside it; on real daemons."""
import os
import random

import agents
from condor import Condor
from drover import sh, wait_until
from test_dag import nodes, order, step, submitted, tracing
from test_kill import apart


def script(instance, name, text):
    """An executable of the submit folder, which writes its name and words to the trace first."""
    path = instance.write(name, f"#!/bin/sh\necho {name.split('.')[0]}:$* | tr ' ' : >> {instance.work}/trace\n{text}\n")
    os.chmod(os.path.join(instance.work, name), 0o755)
    return path


def dag(instance, text, code=0, name="w.dag"):
    instance.write(name, text)
    out = instance.cli("dag", "submit", "--wait", name, code=code)
    return submitted(out), out


def test_scripts_run_around_their_node(drover):
    """PRE, the job, POST, then the children; POST is told how the job ended, and what it says is the node's end."""
    script(drover, "pre.sh", "exit 0")
    script(drover, "post.sh", "exit 0")
    script(drover, "bad.sh", "exit 1")
    step(drover, tracing(drover, code="3"), name="fails.sub")
    step(drover, tracing(drover))
    request, out = dag(drover, "JOB A fails.sub\nJOB B step.sub\nPARENT A CHILD B\n"
                               "SCRIPT PRE A pre.sh $JOB $RETRY $MAX_RETRIES\nSCRIPT POST A post.sh $JOB $RETURN $JOBID $SUCCESS $PRE_SCRIPT_RETURN it's\n")
    assert order(drover) == ["pre:A:0:0", "A", f"post:A:3:{request}.1:False:0:it's", "B"]
    assert nodes(drover, request) == {"A": "done", "B": "done"}
    assert "others decided that the graph succeeded" in out
    waits = drover.submit(sh("exit 0"), "--after", str(request))
    drover.wait(waits)
    os.unlink(os.path.join(drover.work, "trace"))
    request, _ = dag(drover, "JOB A step.sub\nJOB B step.sub\nJOB P step.sub\nPARENT A CHILD B\nSCRIPT POST A bad.sh\nSCRIPT PRE P bad.sh\n", code=1)
    assert sorted(order(drover)) == ["A", "bad:", "bad:"]
    assert nodes(drover, request) == {"A": "failed", "B": "removed", "P": "failed"}


def test_a_node_with_scripts_is_tried_again_as_a_whole(drover):
    script(drover, "pre.sh", "exit 0")
    script(drover, "post.sh", "test $2 = 2")
    script(drover, "never.sh", "exit 6")
    step(drover, "echo $(JOB):$(RETRY) >> " + drover.work + "/trace; exit 0")
    request, out = dag(drover, "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nRETRY A 4\nRETRY B 1\nVARS B try=\"$(RETRY)\"\n"
                               "SCRIPT PRE A pre.sh $RETRY\nSCRIPT POST A post.sh $JOB $RETRY\n")
    assert order(drover) == [w for i in range(3) for w in (f"pre:{i}", f"A:{i}", f"post:A:{i}")] + ["B:0"]
    assert nodes(drover, request) == {"A": "done", "B": "done"}
    assert "2 nodes, 17 jobs" in out
    history = {j["id"]: j["state"] for j in drover.history(request)}
    assert set(history.values()) == {"completed"} and len(history) == 17
    rescue = drover.cli("dag", "rescue", str(request))
    assert "DONE A\n" in rescue and "DONE B\n" in rescue
    os.unlink(os.path.join(drover.work, "trace"))
    request, _ = dag(drover, "JOB A step.sub\nRETRY A 5 UNLESS-EXIT 6\nSCRIPT POST A never.sh\nJOB B step.sub\nRETRY B 1\nSCRIPT POST B never.sh\n", code=1)
    assert nodes(drover, request) == {"A": "failed", "B": "failed"}
    assert [w for w in order(drover) if w.startswith("A")] == ["A:0"] and sorted(w for w in order(drover) if w.startswith("B")) == ["B:0", "B:1"]


def test_pre_skip(drover):
    script(drover, "pre.sh", "exit 5")
    script(drover, "post.sh", "exit 1")
    step(drover, tracing(drover))
    request, _ = dag(drover, "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nSCRIPT PRE A pre.sh\nSCRIPT POST A post.sh\nPRE_SKIP A 5\nRETRY A 2\n")
    assert order(drover) == ["pre:", "B"]
    assert nodes(drover, request) == {"A": "done", "B": "done"}
    assert f"skipped: job {request}." in drover.cli("show", "--ad", f"{request}.3")


def test_an_exit_code_ends_the_graph(drover):
    """What runs is ended, what waits is removed, the final node runs and is told."""
    script(drover, "report.sh", "exit 0")
    step(drover, f"touch {drover.work}/long.$(JOB); sleep 600", name="long.sub")
    step(drover, f"while ! test -e {drover.work}/long.L; do sleep 0.05; done; exit 9", name="bad.sub")
    step(drover, tracing(drover))
    request, _ = dag(drover, "JOB X bad.sub\nJOB L long.sub\nJOB B step.sub\nPARENT L CHILD B\nABORT-DAG-ON X 9 RETURN 4\nRETRY X 5\n"
                             "FINAL F step.sub\nSCRIPT PRE F report.sh $DAG_STATUS $FAILED_COUNT\n", code=4)
    assert order(drover) == ["report:3:1", "F"]
    assert nodes(drover, request) == {"X": "failed", "L": "removed", "B": "removed", "F": "done"}
    assert f"job {request}." in drover.cli("show", "--ad", f"{request}.1") and "which ends the graph" in drover.cli("show", "--ad", f"{request}.1")


def test_a_graph_that_is_ended_may_have_succeeded(drover):
    step(drover, "exit 3")
    dag(drover, "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nABORT-DAG-ON A 3 RETURN 0\n", code=0)
    dag(drover, "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nABORT-DAG-ON A 3\n", code=1)


def test_a_hold_script(drover):
    script(drover, "held.sh", "exit 0")
    step(drover, f"test -e {drover.work}/ok", name="held.sub", on_exit_hold="ExitCode != 0")
    step(drover, tracing(drover))
    drover.write("w.dag", "JOB A held.sub\nJOB B step.sub\nSCRIPT HOLD A held.sh $JOB $JOBID\nSCRIPT HOLD B held.sh $JOB\n")
    request = submitted(drover.cli("dag", "submit", "w.dag"))
    wait_until(lambda: drover.exists("trace") and any(w.startswith("held:A") for w in order(drover)))
    held = next(j["id"] for j in drover.jobs(request) if j["state"] == "held")
    drover.write("ok", "")
    drover.cli("release", held)
    drover.wait(request)
    assert sorted(order(drover)) == ["B", f"held:A:{held}"]
    assert nodes(drover, request) == {"A": "done", "B": "done"}


def test_throttles(instance):
    """Jobs count themselves while they run: never more than the category allows, and others go beside them."""
    drover = instance
    drover.server()
    agents.start(drover, "cpus: 8\n")
    body = (f"d={drover.work}/in.$(kind); mkdir -p $d; touch $d/$(JOB); n=$(ls $d | wc -l); echo $(kind) $n >> {drover.work}/counts; "
            "sleep 0.3; rm $d/$(JOB)")
    step(drover, body, request_memory="16")
    text = "".join(f'JOB N{i} step.sub\nVARS N{i} kind="{"io" if i % 2 else "free"}"\n' + (f"CATEGORY N{i} io\n" if i % 2 else "") for i in range(12))
    dag(drover, text + "MAXJOBS io 1\n")
    counts = [line.split() for line in drover.read("counts").splitlines()]
    assert len(counts) == 12 and max(int(n) for kind, n in counts if kind == "io") == 1
    assert max(int(n) for kind, n in counts if kind == "free") > 1


def test_defer_and_environment(drover):
    script(drover, "wait.sh", f"test -e {drover.work}/now && exit 0; touch {drover.work}/now; exit 4")
    script(drover, "env.sh", f'test "$SITE" = "lab one" && test -n "$PATH"')
    step(drover, tracing(drover))
    dag(drover, "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nENV SET SITE=lab one;X=1\nSCRIPT DEFER 4 0 PRE A wait.sh $JOB\nSCRIPT PRE B env.sh\n")
    assert order(drover) == ["wait:A", "wait:A", "A", "env:", "B"]


def test_services_and_the_provisioner(instance):
    """The provisioner runs before all others, both go along with these, and are ended when these have ended."""
    drover = instance
    drover.server()
    agents.start(drover, "cpus: 8\n")
    body = f"echo $(JOB) >> {drover.work}/trace; touch {drover.work}/up.$(JOB); while :; do sleep 0.1; done"
    step(drover, body, name="beside.sub", request_memory="16")
    step(drover, f"test -e {drover.work}/up.P || exit 1; while ! test -e {drover.work}/up.S; do sleep 0.05; done; echo $(JOB) >> {drover.work}/trace",
         request_memory="16")
    request, _ = dag(drover, "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nSERVICE S beside.sub\nPROVISIONER P beside.sub\nRETRY A 20\n")
    trace = order(drover)
    assert set(trace) == {"A", "B", "P", "S"} and trace[-2:] == ["A", "B"]
    assert nodes(drover, request) == {"A": "done", "B": "done", "S": "done", "P": "done"}


def test_a_pre_script_that_never_ends(drover):
    script(drover, "stuck.sh", "sleep 600")
    script(drover, "post.sh", "exit 0")
    step(drover, f"echo $(JOB) >> {drover.work}/trace; test $(JOB) != C || sleep 600")
    drover.write("w.dag", "JOB A step.sub\nJOB B step.sub\nJOB C step.sub\nPARENT A CHILD B\nSCRIPT PRE A stuck.sh\nSCRIPT POST C post.sh $RETURN\n")
    request = submitted(drover.cli("dag", "submit", "w.dag"))
    wait_until(lambda: drover.exists("trace") and {"stuck:", "C"} <= set(order(drover)))
    shown = nodes(drover, request)
    assert shown == {"A": "running", "B": "waits", "C": "running"}
    stuck, = (j["id"] for j in drover.jobs(request) if j["state"] == "running" and "stuck" in j["cmd"])
    drover.cli("rm", stuck)
    job, = (j["id"] for j in drover.jobs(request) if j["state"] == "running" and "stuck" not in j["cmd"])
    drover.cli("rm", job)  # a node that is removed by hand has failed, and its POST script says what that means
    drover.wait(request, code=1)
    assert nodes(drover, request) == {"A": "removed", "B": "removed", "C": "done"}
    assert "post:-1001" in order(drover)


def test_kills_in_a_graph_with_scripts(instance):
    """Nodes with scripts that fail once: server and agent are killed in turn; each attempt runs in its order, and none twice."""
    _, daemon, agent = apart(instance)
    rnd = random.Random(20261124)
    script(instance, "post.sh", "exit $((1 - $2))")
    step(instance, f"echo $(JOB):$(RETRY) >> {instance.work}/trace; sleep 0.05", request_memory="16")
    parents = {f"N{i}": sorted({f"N{rnd.randrange(i)}" for _ in range(2)}) if i else [] for i in range(10)}
    instance.write("r.dag", "".join(f"JOB {n} step.sub\nSCRIPT POST {n} post.sh $JOB $RETRY\nRETRY {n} 3\nVARS {n} r=\"$(RETRY)\"\n" for n in parents) +
                   "".join(f"PARENT {' '.join(p)} CHILD {n}\n" for n, p in parents.items() if p))
    request = submitted(instance.cli("dag", "submit", "r.dag"))
    for n in range(5):
        wait_until(lambda n=n: instance.exists("trace") and len(order(instance)) > 3 * n)
        if n % 2:
            daemon.kill()
            daemon = agent()
        else:
            instance.kill_server()
            instance.server()
    instance.wait(request)
    trace = order(instance)
    for n, p in parents.items():
        assert [w for w in trace if n in w.split(":")] == [f"{n}:0", f"post:{n}:0", f"{n}:1", f"post:{n}:1"], (n, trace)
        assert all(trace.index(f"post:{one}:1") < trace.index(f"{n}:0") for one in p), (n, p, trace)


def test_condor_submit_dag_bounds_scripts(drover):
    condor = Condor(drover)
    script(drover, "pre.sh", f"mkdir {drover.work}/lock || exit 1; sleep 0.1; rmdir {drover.work}/lock")
    step(drover, tracing(drover))
    drover.write("c.dag", "".join(f"JOB N{i} step.sub\n" for i in range(4)) + "SCRIPT PRE ALL_NODES pre.sh\n")
    out = condor("submit_dag", "-maxpre", "1", "c.dag")
    drover.wait(int(out.split("submitted to cluster ")[1].split(".")[0]))
    assert order(drover).count("pre:") == 4
