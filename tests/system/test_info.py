"""drover info: each kind of thing, as ads, tables and JSON, by conditions and projections; and the page of components names real commands."""
import csv
import io
import json
import os
import re

import agents
from drover import sh


def test_info(instance):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("stores: {lab: {urls: ['https://lab.example/']}}\naccounts: {chemistry: {shares: 60, users: [ann@lab]}, bio: {shares: 4, users: [bob@lab]}}\n")
    instance.server()
    agents.start(instance, "jobs_max: 2\ncpus: 4\n")
    agents.queues(instance, 1)
    instance.cli("bank", "account", "physics", "--new")
    instance.cli("reserve", "--cpus", "1", "--for", "1h", "--from", "+1h")
    done = instance.submit(sh("true", queue="queue 2", **{"+Colour": '"red"'}))
    instance.wait(done)
    held = instance.submit(sh("true", hold="true", **{"+Colour": '"blue"'}))

    def rows(*args):
        return list(csv.DictReader(io.StringIO(instance.cli("info", *args, "--csv"))))
    assert [r["id"] for r in rows("jobs", "-c", 'Colour == "blue"', "-o", "Id,JobStatus")] == [f"{held}.0"]
    assert sorted(r["id"] for r in rows("history", "-c", 'Colour == "red"', "-o", "Id,Colour")) == [f"{done}.0", f"{done}.1"]
    words = r'regexp("^/bin/\w+$", Cmd)'  # a backslash stands for itself, as in submit files
    assert list(rows("jobs", "-c", words, "-o", r'"\d"')[0].values()) == [r"\d"]
    place, = rows("places", "-c", "TotalCpus >= 4", "-o", "AgentName,QueueName,TotalCpus * 2")
    assert place["agentname"] == "n1" and list(place.values())[2] == "8"
    assert rows("places", "-c", "TotalCpus > 4", "-o", "AgentName") == []
    assert rows("places", "-c", "NoSuchThing", "-o", "AgentName") == []
    for kind, condition, name, value in (("nodes", 'state == "up" || state == "idle"', "name", "n1"), ("stores", "true", "name", "lab"),
                                         ("bank", "available < 1000", "name", "physics"), ("requests", f"id == {held}", "id", str(held)),
                                         ("reservations", "size(places) == 1", "owner", "root@local")):
        assert [r[name] for r in rows(kind, "-c", condition, "-o", name)] == [value], kind
    assert rows("stores", "-c", 'name != "lab"', "-o", "name") == []
    assert [r["name"] for r in rows("accounts", "-c", "!user && shares > 10", "-o", "name,shares")] == ["chemistry"]
    assert rows("accounts", "-c", "shares > 60", "-o", "name") == []
    whole = json.loads(instance.cli("info", "jobs", "--json"))
    assert {j["Id"]: j["Colour"] for j in whole}[f"{held}.0"] == "blue"
    assert 'Colour = "blue"' in instance.cli("info", "jobs")
    # commas within brackets and strings are no ends
    row, = rows("jobs", "-c", 'Colour == "blue"', "-o", r'ifThenElse(true, 1, 2), {1, 2}[1], "a,\",b", Id')
    assert list(row.values()) == ["1", "2", 'a,",b', f"{held}.0"]
    some = json.loads(instance.cli("info", "jobs", "-c", 'Colour == "blue"', "-o", "Id, colour,ifThenElse(true,1,2),NoSuchThing,{1,\"b\"},JobStatus == 5", "--json"))
    assert some == [{"Id": f"{held}.0", "colour": "blue", "ifThenElse(true,1,2)": 1, "NoSuchThing": None, '{1,"b"}': [1, "b"], "JobStatus == 5": True}]
    assert json.loads(instance.cli("info", "stores", "-c", 'name == "lab"', "-o", "name", "--json")) == [{"name": "lab"}]
    for bad in (("weather",), ("nodes", "-c", "1 +"), ("nodes", "-o", "1 +"), ("nodes", "-o", "f(1,name"), ("nodes", "-o", "1),name"), ("jobs", "-c", "1 +")):
        assert instance.cli("info", *bad, code=None).code != 0, bad


def test_the_page_of_components_names_what_there_is(instance):
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    with open(os.path.join(root, "docs/guides/components.md"), encoding="utf-8") as f:
        text = f.read()
    with open(os.path.join(root, "docs/openapi.json"), encoding="utf-8") as f:
        paths = " ".join(json.load(f)["paths"])
    for command in set(re.findall(r"`drover ([a-z]+)", text)):
        instance.cli(command, "--help")
    for path in set(re.findall(r"`(?:GET |POST )?(/v1/[a-z]+)", text)):
        assert path in paths, path
    for part in set(re.findall(r"`(src/[a-z/_.]+)`", text)):
        assert os.path.exists(os.path.join(root, part)), part
