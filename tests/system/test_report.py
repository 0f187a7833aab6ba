"""Usage records: what attempts used, kept over a kill -9, summed and written in all forms; each user sees his own."""
import csv
import io
import json
import os
import re
import subprocess
import time
import xml.etree.ElementTree as ET

import pytest

import agents
import openapi
from drover import made, sh, wait_until

SCHEMA = os.path.join(os.path.dirname(__file__), "..", "..", "src", "cli", "usage-record.xsd")
URF = "{http://schema.ogf.org/urf/2013/04/urf}"


def records(instance, *args):
    return [json.loads(line) for line in instance.cli("report", "records", *args).splitlines()]


def usage_records(instance):
    """The XML, checked by the schema that ships, as a tree."""
    text = instance.cli("report", "records", "--format", "ur")
    validate(instance, text)
    return ET.fromstring(text)


def validate(instance, text):
    path = os.path.join(instance.work, "records.xml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run(["xmllint", "--noout", "--nonet", "--schema", SCHEMA, path], check=True, stderr=subprocess.PIPE)


def test_reports(instance):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("bank:\n  without_account: free\n  rates: [{charge: 7}]\n")
    instance.server()
    agents.start(instance, "jobs_max: 4\ncpus: 4\nkill_grace: 1s\n")
    agents.queues(instance, 1)
    instance.cli("bank", "account", "phys", "--new", "--member", "*@local=user")
    instance.cli("bank", "deposit", "phys", "100")
    for kind in ("usage", "bank", "records"):
        assert "before the start" in instance.cli("report", kind, "--from", "2027-01-01", "--to", "2026-01-01", code=2).err
    good = instance.submit(sh("true", queue="queue 3", accounting_group="phys"))
    instance.wait(good)
    instance.cli("bank", "account", "waste", "--new", "--member", "*@local=user")
    instance.cli("bank", "deposit", "waste", "100")
    instance.run(sh("sleep 0.5", accounting_group="waste", request_memory="1536M", request_cpus=3))
    hints = {row["account"]: row["hint"] for row in csv.DictReader(io.StringIO(instance.cli("report", "efficiency", "--by", "account", "--csv")))}
    assert re.fullmatch(r"asked 1\.5 GiB, used 0\.\d; asked 3\.0 processors, used [01]\.\d", hints["waste"]) and hints["phys"] == "", hints
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
    assert sorted((r["request"], r["job"], r["attempt"]) for r in there if r["request"] not in (running, bad - 1)) == [(good, 0, 1), (good, 1, 1), (good, 2, 1), (bad, 0, 1)]
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
    ur = usage_records(instance)
    text = instance.cli("report", "records", "--format", "ur")
    for good, bad in (("CreateTime", "MakeTime"), ("Z</urf:CreateTime>", "</urf:CreateTime>"), ('usageType="system"', 'usageType="user"'),
                      ("<urf:Processors>", "<urf:Processors>-"), ("</urf:UsageRecord>", "<urf:OtherBlock/></urf:UsageRecord>"),
                      ("<urf:WallDuration>PT", "<urf:WallDuration>")):
        assert good in text
        with pytest.raises(subprocess.CalledProcessError):
            validate(instance, text.replace(good, bad))
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
    ur = usage_records(instance)
    assert ur.find(f"{URF}UsageRecord/{{urn:drover:usage}}UsageBlock/{{urn:drover:usage}}EnergyMicrojoules").text == str(record["energy_uj"])
    assert instance.json("report", "usage")["groups"][0]["energy_j"] == int(joules)


@pytest.fixture(name="books", scope="module")
def books_of(request):
    """A server with a job that was paid for, and an account that got back what it was charged; the time between the two."""
    with made(request, "r-") as instance:
        os.makedirs(instance.dir, mode=0o700, exist_ok=True)
        with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
            f.write("bank:\n  without_account: free\n  rates: [{charge: 7}]\n")
        instance.server()
        agents.start(instance, "jobs_max: 4\n")
        agents.queues(instance, 1)
        for name in ("phys", "back"):
            instance.cli("bank", "account", name, "--new", "--member", "*@local=user")
            instance.cli("bank", "deposit", name, "100")
        instance.cli("bank", "charge", "back", "14")
        begin = int(time.time()) + 1
        wait_until(lambda: time.time() > begin)
        instance.run(sh("true", accounting_group="phys"))
        instance.cli("bank", "refund", "back", "14")
        yield instance, time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(begin))


def widths(picture):
    return [float(e.get("width")) for e in picture.iter() if e.tag.endswith("rect")]


@pytest.mark.parametrize("form", ("text", "csv", "json", "svg", "html"))
@pytest.mark.parametrize("kind", ("usage", "wait", "efficiency", "sites", "bank"))
def test_every_report_in_every_form(books, kind, form):
    instance, begin = books
    out = instance.cli("report", kind, "--format", form, "--from", begin)
    if form == "csv":
        assert list(csv.DictReader(io.StringIO(out)))
    elif form == "json":
        assert json.loads(out)["groups"]
    elif form == "text":
        assert re.search(r"^From 20\S+Z to 20\S+Z\.$", out.splitlines()[-1])
    else:
        if form == "html":
            assert re.search(r"<p>From 20\S+Z to 20\S+Z\.</p>", out)
            out = out[out.index("<svg"):out.index("</svg>") + len("</svg>")]
        bars = widths(ET.fromstring(out))
        assert bars and min(bars) >= 0
        if kind == "bank":  # -14 and 7, on one scale, on both sides of zero
            assert sorted(bars) == [140, 280]
            assert sorted(float(e.get("x")) for e in ET.fromstring(out).iter() if e.tag.endswith("rect")) == [200, 480]


def test_a_month_is_a_whole_month(books):
    """The bill, and whatever is by month, begins with the first of a month; a time that is given is taken as it is."""
    instance, _ = books

    def month(now):
        return time.strftime("%Y-%m-01T00:00:00Z", time.gmtime(now - 30 * 86400))
    before = time.time()
    begins = {row["from"] for row in csv.DictReader(io.StringIO(instance.cli("report", "bank", "--csv")))}
    text = instance.cli("report", "bank", "--by", "account"), instance.cli("report", "usage", "--by", "user,month")
    days = instance.cli("report", "usage")
    there = {month(before), month(time.time() + 1)}
    assert begins and begins <= there
    for out in text:
        assert out.splitlines()[-1].split()[1] in there
    assert not days.splitlines()[-1].split()[1].endswith("-01T00:00:00Z") or time.gmtime(before).tm_hour == 0
    given = instance.cli("report", "bank", "--from", "-3d", "--csv", "--columns", "from,to,account")
    assert given.splitlines()[0].lower() == "from,to,account" and given.splitlines()[1].split(",")[0] not in there


def test_records_of_a_signal_and_of_a_reservation(instance):
    """CSV has every member that JSON has, under its name; a job that died by a signal has its number, and the status of a shell in XML."""
    instance.server()
    agents.start(instance, "jobs_max: 4\ncpus: 4\n")
    agents.queues(instance, 1)
    dead = instance.submit(sh("kill -9 $$", **{"reservation": instance.cli("reserve", "--cpus", "1", "--for", "1h").strip()}))
    instance.cli("wait", str(dead), code=None)
    done = instance.run(sh("exit 0"))
    there = {r["request"]: r for r in records(instance)}
    assert there[dead]["exit_signal"] == 9 and there[dead]["reservation"] and "exit_code" not in there[dead]
    rows = {int(r["request"]): r for r in csv.DictReader(io.StringIO(instance.cli("report", "records", "--format", "csv")))}
    for request, record in there.items():
        assert {k: v for k, v in rows[request].items() if v} == {k: str(v) for k, v in record.items() if v != ""}
    status = {r.find(f"{URF}JobUsageBlock/{URF}LocalJobId").text: r.find(f"{URF}ComputeUsageBlock/{URF}ExitStatus").text
              for r in usage_records(instance)}
    assert status == {f"{dead}.0": "137", f"{done}.0": "0"}
