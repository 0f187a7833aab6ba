"""`drover dag import --wfcommons`: recorded workflows run for real, in their order."""
import json
import os
import re

import pytest

import agents
from test_dag import nodes, submitted

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "workflows")


def test_a_recorded_workflow_runs(instance):
    """No task before its parents, and the makespan is at least the longest chain of run times."""
    instance.server()
    agents.start(instance, "cpus: 8\n")
    path = os.path.join(HERE, "srasearch-10a.json")
    out = instance.cli("dag", "import", "--wfcommons", "--hurry", "100", "--wait", path)
    assert "22 nodes, 22 jobs" in out
    request = submitted(out)
    assert set(nodes(instance, request).values()) == {"done"}
    with open(path, encoding="utf-8") as f:
        tasks = json.load(f)["workflow"]
    times = {j["ad"]["DAGNodeName"]: (j["started_ms"], j["ended_ms"]) for j in instance.api("GET", f"/v1/jobs?id={request}&attributes=DAGNodeName")["jobs"]}
    took = {t["id"]: t["runtimeInSeconds"] / 100 for t in tasks["execution"]["tasks"]}
    chain = {}
    for task in sorted(tasks["specification"]["tasks"], key=lambda t: times[t["id"]][0]):
        assert all(times[p][1] <= times[task["id"]][0] for p in task["parents"]), task["id"]
        chain[task["id"]] = took[task["id"]] + max((chain[p] for p in task["parents"]), default=0)
    makespan = float(re.search(r"makespan: ([0-9.]+) s", out)[1])
    assert makespan >= max(chain.values()) - 0.01
    said = instance.cli("dag", "import", "--wfcommons", "--print", path)
    assert "JOB merge_ID0000022 cores1\n" in said and said.count("PARENT ") == sum(len(t["parents"]) for t in tasks["specification"]["tasks"])


OLD = {"workflow": {"tasks": [{"name": "a b", "runtime": 0.01, "cores": 2, "children": ["c"]}, {"name": "c", "runtime": 0.01, "parents": ["a b"]}]}}


@pytest.mark.parametrize("text,words", [
    ("", "no tasks"), ("[1, 2", "no tasks"), ('{"workflow": {"tasks": []}}', "no tasks"), ('{"workflow": {"tasks": [{}]}}', "task number 1 has neither id nor name"),
    ('{"workflow": {"tasks": [{"id": "a", "runtime": -1}]}}', "its run time is invalid"),
    ('{"workflow": {"tasks": [{"id": "a", "runtime": "x"}]}}', "its run time is invalid"),
    ('{"workflow": {"tasks": [{"id": "a", "cores": 1e9}]}}', "its number of cores is invalid"),
    ('{"workflow": {"tasks": [{"id": "a"}, {"id": "a"}]}}', "there are two of this name"),
    ('{"workflow": {"tasks": [{"id": "a", "parents": ["x"]}]}}', "a parent or child of it is not in the workflow"),
    ('{"workflow": {"tasks": [{"id": "a", "parents": ["a"]}]}}', "in a circle"),
])
def test_what_is_no_workflow(shared, text, words):
    shared.write("bad.json", text)
    assert words in shared.cli("dag", "import", "--wfcommons", "bad.json", code=1).err


def test_the_older_form(shared):
    shared.write("old.json", json.dumps(OLD))
    said = shared.cli("dag", "import", "--wfcommons", "--print", "old.json")
    assert 'JOB a_b cores2\nVARS a_b seconds="0.010"\n' in said and said.count("PARENT a_b CHILD c\n") == 1
    assert "2 nodes, 2 jobs, 1 arrow" in shared.cli("dag", "import", "--wfcommons", "--dry-run", "old.json")
    assert "takes a number above 0" in shared.cli("dag", "import", "--wfcommons", "--hurry", "0", "old.json", code=2).err
    assert "the only form" in shared.cli("dag", "import", "old.json", code=2).err
