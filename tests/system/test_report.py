"""Usage records: what attempts used, kept over a kill -9, summed and written in all forms; each user sees his own."""
import csv
import io
import json
import os
import xml.etree.ElementTree as ET

import agents
import openapi
from drover import sh, wait_until

URF = "{http://schema.ogf.org/urf/2013/04/urf}"


def records(instance, *args):
    return [json.loads(line) for line in instance.cli("report", "records", *args).splitlines()]


def test_reports(instance):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("bank:\n  without_account: free\n  rates: [{charge: 7}]\n")
    instance.server()
    agents.start(instance, "jobs_max: 4\nkill_grace: 1s\n")
    agents.queues(instance, 1)
    instance.cli("bank", "account", "phys", "--new", "--member", "*@local=user")
    instance.cli("bank", "deposit", "phys", "100")
    good = instance.submit(sh("true", queue="queue 3", accounting_group="phys"))
    instance.wait(good)
    bad = instance.submit(sh("exit 3"))
    instance.cli("wait", str(bad), code=None)
    running = instance.submit(sh("while :; do sleep 0.1; done"))
    instance.wait_state(f"{running}.0", "running")
    instance.cli("vacate", f"{running}.0")
    wait_until(lambda: [r["outcome"] for r in records(instance) if r["request"] == running] == ["killed"])
    instance.kill_server()
    instance.server()
    agents.queues(instance, 1)
    there = records(instance)
    assert sorted((r["request"], r["job"], r["attempt"]) for r in there if r["request"] != running) == [(good, 0, 1), (good, 1, 1), (good, 2, 1), (bad, 0, 1)]
    for r in there:
        assert r["submitted_ms"] <= r["started_ms"] <= r["ended_ms"] and r["owner"] == "root@local"
    openapi.check_answer("GET", "/v1/usage/records", 200, instance.api("GET", "/v1/usage/records"))
    said = instance.json("report", "usage", "--by", "account,site")
    openapi.check_answer("GET", "/v1/usage", 200, said)
    mine = {g["account"]: g for g in said["groups"]}
    assert mine["phys"]["completed"] == 3 and mine["phys"]["amount"] == 21 and mine["phys"]["site"] == "n1"
    assert mine["phys"]["first_starts"] == 3
    other = [g for name, g in mine.items() if name != "phys"]
    assert sum(g["failed"] for g in other) == 1
    bill = list(csv.DictReader(io.StringIO(instance.cli("report", "bank", "--format", "csv"))))
    assert [row["amount"] for row in bill if row["account"] == "phys"] == ["21"]
    assert "21" in instance.cli("report", "bank", "--by", "account")
    for kind in ("usage", "wait", "efficiency", "sites"):
        assert "root@local" in instance.cli("report", kind, "--by", "user")
    assert ET.fromstring(instance.cli("report", "usage", "--format", "svg")).tag.endswith("svg")
    assert "<td>phys</td>" in instance.cli("report", "bank", "--format", "html")
    ur = ET.fromstring(instance.cli("report", "records", "--format", "ur"))
    assert len(ur.findall(f"{URF}UsageRecord")) == len(there)
    uuid = instance.server_info()["uuid"]
    assert sorted(r.find(f"{URF}RecordIdentityBlock/{URF}RecordId").text for r in ur) == sorted(
        f"{uuid}/{r['request']}.{r['job']}-{r['attempt']}" for r in there)
    assert ur.find(f"{URF}UsageRecord/{URF}SubjectIdentityBlock/{URF}GlobalUserId").text == "root@local"
    block = ur.find(f"{URF}UsageRecord/{URF}ComputeUsageBlock")
    assert block.find(f"{URF}WallDuration").text.startswith("PT")
    rows = list(csv.DictReader(io.StringIO(instance.cli("report", "records", "--format", "csv"))))
    assert len(rows) == len(there)
    assert records(instance, "--from", "2020-01-01", "--to", "2020-02-01") == []
    assert records(instance, "--owner", "nobody") == []
    assert instance.cli("report", "usage", "--by", "weather", code=2) is not None
    instance.cli("rm", "--yes", str(running), code=None)


def test_energy_is_measured_charged_and_reported(instance):
    """From a tree of counters like the kernel's, of which the job gets the part of the machine's processors that it has; kept over a kill -9."""
    zone = os.path.join(instance.work, "powercap", "intel-rapl:0")
    os.makedirs(zone)
    for file, text in (("name", "package-0"), ("max_energy_range_uj", "262143328850"), ("energy_uj", "262143328850")):
        instance.write(os.path.join(zone, file), text + "\n")
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("bank: {without_account: free, rates: [{charge: EnergyJoules / 1e3}]}\n")
    instance.server()
    agents.start(instance, f"jobs_max: 4\ncpus: 4\npowercap: {os.path.dirname(zone)}\n")
    agents.queues(instance, 1)
    instance.cli("bank", "account", "phys", "--new", "--member", "*@local=user")
    instance.cli("bank", "deposit", "phys", "100000")
    # The counter begins again; the job waits until the agent may look once more.
    request = instance.run(sh(f"echo 36000000000 > {zone}/energy_uj; sleep 0.3", accounting_group="phys", request_cpus="1"))
    joules = 36000 / os.cpu_count()
    instance.kill_server()
    instance.server()
    record, = records(instance)
    assert abs(record["energy_uj"] - joules * 1e6) < 1000
    openapi.check_answer("GET", "/v1/usage/records", 200, instance.api("GET", "/v1/usage/records"))
    assert instance.json("bank", "balance", "phys")["charged"] == -(-joules // 1000)
    row, = instance.api("GET", f"/v1/history?id={request}&attributes=EnergyJoules")["jobs"]
    assert abs(row["ad"]["EnergyJoules"] - joules) < 0.001
    assert f"{joules / 3.6e6:.3f}" in instance.cli("report", "usage")
    row, = csv.DictReader(io.StringIO(instance.cli("report", "records", "--format", "csv")))
    assert row["energy_uj"] == str(record["energy_uj"]) and row["gpus"] == "0" and row["bytes_in"] == str(record["bytes_in"])
    assert instance.json("report", "usage")["groups"][0]["energy_j"] == int(joules)
