"""Stores and labels of the server's configuration: who is given jobs that touch labelled data."""
import os

import pytest

from drover import sh, wait_until

SETTINGS = """\
stores:
  clinic:
    urls: [https://clinic.example/, root://clinic.example//]
    labels: [patient]
    concurrency: 4
  lab:
    urls: https://lab.example/
clearance:
  patient:
    agents: [ward]
"""


@pytest.fixture
def clinic(instance):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    instance.server()
    return instance


def start_agent(instance, name, *more):
    return instance.start("drover-agent", "--dir", os.path.join(instance.base, name), "--server",
                          instance.server_json()["agents"][0], "--name", name, *more)


def token(instance, *more):
    return instance.json("token", "agent", *more)["token"]


def test_stores_are_listed(clinic):
    stores = clinic.json("stores")["stores"]
    assert [s["name"] for s in stores] == ["clinic", "lab"]
    assert stores[0]["urls"] == ["https://clinic.example/", "root://clinic.example/"]
    assert stores[0]["labels"] == ["patient"] and stores[0]["concurrency"] == 4
    assert "clinic" in clinic.cli("stores")


def test_only_the_cleared_agent_runs_it(clinic):
    """The author says nothing; an agent says that it is cleared; neither counts."""
    start_agent(clinic, "liar", "--token", token(clinic, "--name", "liar"), "--attributes",
                'Clearance = "patient"; DataLabels = "patient"; Cleared = true; Name = "ward";')
    wait_until(lambda: clinic.agents("connected"))
    request = clinic.submit(sh("true", **{"+DataLabels": '"patient"', "output": "o"}))
    other = clinic.run(sh("true"))  # it does run what it may
    assert clinic.job(f"{other}.0")["agent"] == "liar"
    why = clinic.json("why", f"{request}.0")
    assert why["state"] == "idle"
    assert [a["text"] for a in why["agents"]] == ["not cleared for label patient"]
    assert why["agents"][0]["side"] == "server"
    assert "not cleared for label patient" in clinic.cli("why", f"{request}.0")
    start_agent(clinic, "ward", "--token", token(clinic, "--name", "ward"))
    clinic.wait(request)
    assert clinic.job(f"{request}.0")["agent"] == "ward"


def test_a_cleared_name_needs_a_token_for_it(clinic):
    """Otherwise any agent could call itself so."""
    anybody = clinic.api("POST", "/v1/tokens", {"kind": "agent"})["token"]
    thief = start_agent(clinic, "ward", "--token", anybody)
    wait_until(lambda: not thief.running())
    assert "needs a token made for this name" in thief.output()
    assert clinic.agents() == []


def test_outputs_that_would_leak_are_refused(clinic):
    answer = clinic.cli("submit", "-", stdin=sh("true", **{"+DataLabels": '"patient"',
                                                           "+OutputDestination": '"https://lab.example/out/"'}), code=1)
    assert "carry the label 'patient'" in answer.err and "https://lab.example/out/" in answer.err
