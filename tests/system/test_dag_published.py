"""The examples of HTCondor's manual, "Automated Workflows" (25.x), which behave as it says; where they differ,
drover-dag(5), DIFFERENCES, says so."""
import os

from condor import Condor
from drover import sh, wait_until
from test_dag import nodes, order, step, tracing
from test_dag_scripts import dag, script

X = "".join(f"JOB {n} step.sub\n" for n in "ABCDEFG") + "PARENT A B C CHILD D\nPARENT D CHILD E F G\n"
DIAMOND = "JOB A step.sub\nJOB B step.sub\nJOB C step.sub\nJOB D step.sub\nPARENT A CHILD B C\nPARENT B C CHILD D\n"
PRINTS = """#!/usr/bin/python3
import sys
with open("words", "a") as f:
    f.write("\\n".join(sys.argv[1:]) + "\\n--\\n")
"""


def cluster_of(out):
    return out.split("submitted to cluster ")[1].split(".")[0]


def words(instance):
    """The arguments of each job that has run."""
    return [text.splitlines() for text in instance.read("words").split("--\n")[:-1]]


def test_splices(drover):
    """"Composing Workflows from DAGs": a diamond before a splice that is an X, beside one of splices."""
    step(drover, tracing(drover))
    drover.write("X.dag", X)
    drover.write("s1.dag", "JOB A step.sub\nJOB B step.sub\nSPLICE X1 X.dag\nSPLICE X2 X.dag\n"
                           "PARENT A CHILD X1\nPARENT X1 CHILD X2\nPARENT X2 CHILD B\n")
    request, out = dag(drover, DIAMOND + "SPLICE S2 X.dag\nPARENT D CHILD S2\nSPLICE S3 s1.dag\n", name="toplevel.dag")
    assert "27 nodes" in out and set(nodes(drover, request).values()) == {"done"}
    at = {name: n for n, name in enumerate(order(drover))}
    assert len(at) == 27
    for before, after in (("A", "B"), ("C", "D"), ("D", "S2+A"), ("S2+C", "S2+D"), ("S2+D", "S2+G"), ("S3+A", "S3+X1+A"),
                          ("S3+X1+D", "S3+X1+E"), ("S3+X1+G", "S3+X2+A"), ("S3+X2+F", "S3+B")):
        assert at[before] < at[after]


def test_scripts_around_a_splice(drover):
    """By nodes that run nothing else; their description need not exist."""
    script(drover, "prescript.sh", "exit 0")
    script(drover, "postscript.sh", "exit 0")
    step(drover, tracing(drover))
    drover.write("thenode.dag", "JOB A step.sub\n")
    dag(drover, "JOB OnlyPreNode noop.sub NOOP\nJOB OnlyPostNode noop.sub NOOP\nSCRIPT PRE OnlyPreNode prescript.sh\n"
                "SCRIPT POST OnlyPostNode postscript.sh\nSPLICE TheSplice thenode.dag\nPARENT OnlyPreNode CHILD TheSplice\n"
                "PARENT TheSplice CHILD OnlyPostNode\n")
    assert order(drover) == ["prescript:", "TheSplice+A", "postscript:"]


def test_special_characters_in_variables(drover):
    """"Custom Variables for Nodes", with both forms of arguments; and attributes."""
    os.chmod(drover.write("show", PRINTS), 0o755)
    drover.write("a.sub", "executable = show\narguments = \"'$(first)' '$(second)' '$(third)' '$(fourth)' '$(misc)'\"\nqueue\n")
    drover.write("b.sub", "executable = show\narguments = $(first) $(second) $(third) $(fourth) $(misc)\nqueue\n")
    drover.write("c.sub", "executable = show\narguments = \"$(args)\"\nqueue\n")
    drover.write("f.sub", "executable = show\narguments = \"$$([My.A]) $$([My.B])\"\nqueue\n")
    dag(drover, r"""JOB NodeA a.sub
JOB NodeB b.sub
JOB NodeC c.sub
JOB NodeF f.sub
PARENT NodeA CHILD NodeB
PARENT NodeB CHILD NodeC
PARENT NodeC CHILD NodeF
VARS NodeA first="Alberto Contador"
VARS NodeA second="\"\"Andy Schleck\"\""
VARS NodeA third="Lance\\ Armstrong"
VARS NodeA fourth="Vincenzo ''The Shark'' Nibali"
VARS NodeA misc="!@#$%^&*()_-=+=[]{}?/"
VARS NodeB first="Lance_Armstrong"
VARS NodeB second="\\\"Andreas_Kloden\\\""
VARS NodeB third="Ivan_Basso"
VARS NodeB fourth="Bernard_'The_Badger'_Hinault"
VARS NodeB misc="!@#$%^&*()_-=+=[]{}?/"
VARS NodeC args="'Nairo Quintana' 'Chris Froome'"
VARS NodeF My.A="\"bob\""
VARS NodeF +B="\"alice\""
""")
    misc = "!@#$%^&*()_-=+=[]{}?/"
    assert words(drover) == [["Alberto Contador", '"Andy Schleck"', "Lance\\ Armstrong", "Vincenzo 'The Shark' Nibali", misc],
                             ["Lance_Armstrong", '"Andreas_Kloden"', "Ivan_Basso", "Bernard_'The_Badger'_Hinault", misc],
                             ["Nairo Quintana", "Chris Froome"], ["bob", "alice"]]


def test_macros_of_descriptions(drover):
    """JOB, RETRY, DAG_STATUS and FAILED_COUNT, in descriptions themselves; RETRY is 0 where nothing is retried."""
    drover.write("retry.sub", sh(f"echo $(JOB):$(RETRY) >> {drover.work}/trace; exit $((2 - $(RETRY)))"))
    drover.write("once.sub", sh(f"echo $(JOB):$(retry) >> {drover.work}/trace; exit 1"))
    drover.write("last.sub", sh(f"echo $(JOB):$(DAG_STATUS):$(FAILED_COUNT) >> {drover.work}/trace"))
    script(drover, "final_pre.sh", "exit 0")
    request, _ = dag(drover, "JOB A retry.sub\nJOB B once.sub\nRETRY A 3\nPARENT A CHILD B\nFINAL final_node last.sub\n"
                             "SCRIPT PRE final_node final_pre.sh $DAG_STATUS $FAILED_COUNT\n", code=1)
    assert order(drover) == ["A:0", "A:1", "A:2", "B:0", "final_pre:2:1", "final_node:2:1"]
    assert nodes(drover, request) == {"A": "done", "B": "failed", "final_node": "done"}


def test_what_scripts_print(drover):
    """"DEBUG file": of two scripts into one file, each with who wrote it; their exit codes count as ever."""
    script(drover, "pre.sh", "echo out; echo err >&2; exit 0")
    script(drover, "post.sh", "echo out; echo err >&2; exit 3")
    step(drover, tracing(drover))
    request, _ = dag(drover, "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nSCRIPT DEBUG scripts.log ALL PRE A pre.sh $JOB\n"
                             "SCRIPT DEFER 4 1 DEBUG scripts.log STDERR POST A post.sh it's $RETURN\n", code=1)
    assert order(drover) == ["pre:A", "A", "post:it's:0"]
    assert drover.read("scripts.log") == "*** Node=A Type=PRE Status=0\nout\nerr\n*** Node=A Type=POST Status=3\nerr\n"
    assert nodes(drover, request) == {"A": "failed", "B": "removed"}


def test_all_nodes_and_includes(drover):
    script(drover, "my_script.sh", "exit 0")
    step(drover, f"echo $(JOB)=$(name) >> {drover.work}/trace", name="node.sub")
    drover.write("bar.dag", "JOB B node.sub\nJOB C node.sub\n")
    dag(drover, "JOB A node.sub\nINCLUDE bar.dag\nSCRIPT PRE ALL_NODES my_script.sh $JOB\nVARS ALL_NODES name=\"$(JOB)\"\n"
                "VARS B name=\"nodeB\"\nRETRY all_nodes 3\n", name="foo.dag")
    assert sorted(order(drover)) == ["A=A", "B=nodeB", "C=C", "my_script:A", "my_script:B", "my_script:C"]


def test_a_failed_graph_leaves_its_rescue_file(drover):
    """"The Rescue DAG": beside the DAG file, with the next number each time, and none when the graph has succeeded."""
    step(drover, f"echo $(JOB) >> {drover.work}/trace; test $(JOB) != C || test -e {drover.work}/good")
    _, out = dag(drover, DIAMOND, code=1, name="diamond.dag")
    assert "diamond.dag.rescue001" in out.err
    assert [line for line in drover.read("diamond.dag.rescue001").splitlines() if line[0] != "#"] == ["DONE A", "DONE B"]
    drover.cli("dag", "submit", "--wait", "diamond.dag", code=1)
    assert [line for line in drover.read("diamond.dag.rescue002").splitlines() if line[0] != "#"] == ["DONE A", "DONE B"]
    drover.write("good", "")
    out = drover.cli("dag", "submit", "--wait", "diamond.dag")
    assert "diamond.dag.rescue002" in out.err and sorted(order(drover)) == ["A", "B", "C", "C", "C", "D"]
    assert [name for name in os.listdir(drover.work) if "rescue003" in name] == []
    os.unlink(os.path.join(drover.work, "good"))
    cluster = cluster_of(Condor(drover)("submit_dag", "-force", "diamond.dag"))  # nobody waits
    drover.wait(cluster, code=1)
    wait_until(lambda: drover.exists("diamond.dag.rescue003"))
    assert [line for line in drover.read("diamond.dag.rescue003").splitlines() if line[0] != "#"] == ["DONE A", "DONE B"]


def test_several_dag_files(drover):
    """"Single Submission of Multiple, Independent DAGs", and each from its own folder."""
    condor = Condor(drover)
    for name in ("dag1", "dag2"):
        os.mkdir(os.path.join(drover.work, name))
        drover.write(f"{name}/node.sub", sh(f"pwd >> {drover.work}/folders"))
        drover.write(f"{name}/one.dag", "JOB A node.sub\n")
    cluster = cluster_of(condor("submit_dag", "-usedagdir", "dag1/one.dag", "dag2/one.dag"))
    drover.wait(cluster)
    assert sorted(nodes(drover, cluster)) == ["0+A", "1+A"]
    assert sorted(drover.read("folders").split()) == [os.path.join(drover.work, n) for n in ("dag1", "dag2")]
    cluster = cluster_of(condor("submit_dag", "-usedagdir", "dag2/one.dag"))
    drover.wait(cluster)
    assert list(nodes(drover, cluster)) == ["A"]
    step(drover, tracing(drover))
    drover.write("A.dag", "JOB A step.sub\n")
    drover.write("B.dag", DIAMOND)
    drover.write("A.dag_multi.rescue001", "DONE 0+A\n")
    out = condor("submit_dag", "A.dag", "B.dag")
    drover.wait(cluster_of(out))
    assert order(drover)[0] == "1+A" and len(order(drover)) == 4


def test_save_points_are_kept(drover):
    """"DAG Save Point Files": a file of the same name becomes NAME.old; -load_save looks into save_files."""
    step(drover, tracing(drover))
    chain = "JOB A step.sub\nJOB B step.sub\nJOB C step.sub\nPARENT A CHILD B\nPARENT B CHILD C\n"
    dag(drover, chain + "".join(f"SAVE_POINT_FILE {n} progress.save\n" for n in "BC"))
    saved = {name: [line for line in drover.read(f"save_files/{name}").splitlines() if line[0] != "#"]
             for name in ("progress.save", "progress.save.old")}
    assert saved == {"progress.save": ["DONE A", "DONE B"], "progress.save.old": ["DONE A"]}
    out = Condor(drover)("submit_dag", "-load_save", "progress.save", "w.dag")
    drover.wait(cluster_of(out))
    assert order(drover) == ["A", "B", "C", "C"]
