"""SSSRMAP: each object and action over HTTP, signed and by token; who may speak for whom; and what is no message."""
import os
import subprocess
import time
import xml.etree.ElementTree as ET

import pytest

import agents
from drover import free_port, sh, wait_until
from sssrmap import Client, envelope, job, request, signature

KEY, OLD = "an example of a key", "another, with SHA-1"
SETTINGS = """keep_finished: 2s
bank:
  without_account: free
  rates: [{{charge: Cpus * WallSeconds}}]
admins: [boss@local]
sssrmap:
  keys:
    - {{name: maui, file: {0}/maui.key, actors: any, role: admin}}
    - {{file: {0}/old.key, actors: [amy@local, boss@local], digest: sha1}}
"""


@pytest.fixture
def port(instance):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    for name, key in (("maui", KEY), ("old", OLD)):
        path = os.path.join(instance.dir, f"{name}.key")
        with open(path, "w", encoding="utf-8") as f:
            f.write(key + "\n")
        os.chmod(path, 0o600)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(SETTINGS.format(instance.dir))
    number = free_port()
    instance.server("--api-listen", f"127.0.0.1:{number}")
    return number


def test_each_action(instance, port, tmp_path):
    maui = Client(port, KEY, name="maui")
    agents.start(instance, "jobs_max: 4\n")
    agents.queues(instance, 1)
    instance.cli("bank", "account", "chem", "--new", "--member", "*@local=user", "--description", "a & b")
    instance.cli("bank", "account", "bio", "--new")
    assert maui("Deposit", "Account", ProjectId="chem", Amount=100000, CreditLimit=50, Description="<grant>")[0]["Amount"] == "100000"
    assert maui("Withdraw", "Account", ProjectId="chem", Amount=10)
    assert maui("Transfer", "Account", FromProjectId="chem", ToProjectId="bio", Amount=90)
    balance, = maui("Balance", "Account", ProjectId="chem")
    assert (balance["ProjectId"], balance["Amount"], balance["Available"], balance["Description"]) == ("chem", "99900", "99950", "a & b")
    assert {a["ProjectId"] for a in maui("Query", "Account")} == {"chem", "bio"}
    assert maui("Query", "Account", more='<Get name="Available"/>', ProjectId="chem") == [{"Available": "99950"}]
    use = {"ProjectId": "chem", "UserId": "amy", "MachineName": "colony", "Processors": 16}
    quote, = maui("Quote", "Job", more=job(WallDuration=3600, **use))
    assert quote["Charge"] == "57600"
    lien, = maui("Reserve", "Job", more=job(JobId="PBS.1", WallDuration=3600, QuoteId=quote["QuoteId"], **use))
    assert lien["Charge"] == "57600"
    assert [(r["JobId"], r["ReservationId"]) for r in maui("Query", "Reservation")] == [("PBS.1", lien["ReservationId"])]
    assert maui("Query", "Quote")[0]["Used"] == "True"
    maui("Quote", "Job", more=job(WallDuration=3600, QualityOfService="high", **use))
    assert [q.get("qos") for q in instance.json("bank", "quotes")["quotes"]] == [None, "high"]
    assert maui("Balance", "Account", ProjectId="chem")[0]["Reserved"] == "57600"
    charge, = maui("Charge", "Job", more=job(JobId="PBS.1", WallDuration=1234, **use))
    assert charge == {"Charge": "19744", "ReservationId": lien["ReservationId"]}
    assert maui("Charge", "Job", more=job(JobId="PBS.2", WallDuration=1, **use)) == [{"Charge": "16"}]
    assert maui("Refund", "Job", JobId="PBS.1", ProjectId="chem", Amount=19744)[0]["Charge"] == "19744"
    assert maui("Reserve", "Job", more=job(JobId="PBS.3", WallDuration=10, **use))
    assert maui("Delete", "Reservation", ReservationId=maui("Query", "Reservation")[0]["ReservationId"])
    assert maui("Query", "Reservation") == []
    assert maui("Balance", "Account", ProjectId="chem")[0]["Amount"] == str(99900 - 16)
    assert maui("Charge", "Job", code="782", more=job(JobId="PBS.4", WallDuration=999999, **use)).startswith("the account chem has")
    assert instance.json("bank", "statement", "chem")["movements"][-1]["why"] == "PBS.1"

    script = os.path.join(instance.work, "s.sh")
    with open(script, "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\nprintf "%s\\n" "$@" > out.txt\nwhile [ ! -e go ]; do sleep 0.05; done\n')
    os.chmod(script, 0o755)
    domain = instance.cli("info", "places", "-o", "FileSystemDomain", "--csv").splitlines()[-1]
    made, = maui("Submit", "Job", more=job(Executable=script, Arguments="one 'two three' <&>", InitialWorkingDirectory=instance.work, FileSystemDomain=domain,
                                           JobName="a <b>", Processors=1, Memory=16, WallDuration=600, ProjectId="chem", Priority=3))
    number = made["JobId"]
    wait_until(lambda: maui("Query", "Job", JobId=number)[0]["State"] == "running")
    seen, = maui("Query", "Job", more='<Where name="JobId" op="EQ">' + number + "</Where>")
    assert {k: seen[k] for k in ("JobName", "UserId", "ProjectId", "Processors", "Memory", "Executable", "MachineName", "WallDuration", "Priority")} == {
        "JobName": "a <b>", "UserId": "root@local", "ProjectId": "chem", "Processors": "1", "Memory": "16", "Executable": script,
        "MachineName": "n1", "WallDuration": "600", "Priority": "3"}
    instance.write("go", "")
    wait_until(lambda: maui("Query", "Job", JobId=number)[0]["State"] == "completed", 20)
    wait_until(lambda: "742" in maui.code("Query", "Job", JobId=number), 20)  # forgotten, but for history
    past, = maui("Query", "Job", JobId=f"{number}.0")
    assert (past["JobId"], past["State"], past["ExitCode"], past["ProjectId"]) == (f"{number}.0", "completed", "0", "chem")
    assert instance.read("out.txt") == "one\ntwo three\n<&>\n"
    held, = maui("Submit", "Job", actor="amy", more=job(Executable="/bin/true", Processors=9999))
    number = held["JobId"]
    assert maui("Hold", "Job", actor="amy", JobId=number, Description="wait & see") == [{"JobCount": "1"}]
    assert maui("Query", "Job", UserId="amy@local")[0]["Description"] == "wait & see"
    assert maui("Release", "Job", actor="amy", JobId=number) and maui("Modify", "Job", actor="amy", JobId=number, Priority=-7)
    assert maui("Query", "Job", JobId=number)[0]["Priority"] == "-7"
    assert maui("Modify", "Job", actor="amy", JobId=number, Processors=3, WallDuration=120) == [{"JobCount": "1"}]
    changed = maui("Query", "Job", JobId=number)[0]
    assert (changed["Processors"], changed["WallDuration"], changed["Priority"]) == ("3", "120", "-7")
    assert maui("Modify", "Job", actor="bob", code="742", JobId=number, Processors=1)
    assert maui("Modify", "Job", actor="amy", code="317", JobId=number, Processors="1+1")
    assert maui("Modify", "Job", actor="amy", code="317", JobId=number, Priority=1, Processors=1)
    assert "no such request" in maui("Cancel", "Job", actor="bob", JobId=number, code="742")
    assert maui("Cancel", "Job", actor="amy", JobId=f"{number}.0") == [{"JobCount": "1"}]
    node, = maui("Query", "Node")
    assert (node["NodeId"], node["State"]) == ("n1", "idle")
    queue, = instance.api("GET", "/v1/agents")["agents"][0]["queues"]
    assert [int(node[k]) for k in ("Processors", "Memory", "AvailableProcessors", "AvailableMemory")] == [
        queue["total"]["cpus"], queue["total"]["memory_mib"], queue["free"]["cpus"], queue["free"]["memory_mib"]]
    body = request("Query", "Node", "root")
    said = maui.post(envelope(body, maui.sign(body)), chunked=False)[1]
    schema = os.path.join(os.path.dirname(__file__), "..", "..", "src", "server", "sssrmap", "sssrmap.xsd")
    for name, text in (("response", said), ("request", envelope(body, maui.sign(body)))):
        (tmp_path / name).write_text(text)
        subprocess.run(["xmllint", "--noout", "--nonet", "--schema", schema, str(tmp_path / name)], check=True, stderr=subprocess.PIPE)


def where(name, value, op=None, conj=None, group=None):
    more = "".join(f' {k}="{v}"' for k, v in (("op", op), ("conj", conj), ("group", group)) if v)
    return f'<Where name="{name}"{more}>{value}</Where>'


def get(*names):
    """NAME, or OPERATOR:NAME."""
    return "".join(f'<Get name="{n.rpartition(":")[2]}"' + (f' op="{n.partition(":")[0]}"' if ":" in n else "") + "/>" for n in names)


def test_conditions_and_operators(instance, port):
    """Queries compare, join, group, sort and add up what the call gives; what only equality can be is still the call's parameter."""
    maui = Client(port, KEY, name="maui")

    def ids(more, actor="root", obj="Job", field="JobId"):
        return [j[field] for j in maui("Query", obj, actor=actor, more=get(field) + more)]
    made = [maui("Submit", "Job", actor=actor, more=job(Executable="/bin/true", Processors=n, Priority=p, JobName=name))[0]["JobId"] + ".0"
            for actor, n, p, name in (("amy", 900, 1, "a b"), ("amy", 9000, 2, "ab"), ("bob", 95000, 3, "<&>"))]
    assert ids(where("Processors", 9000, "GE")) == made[1:] and ids(where("Processors", 9000, "LT")) == made[:1]
    assert ids(where("UserId", "amy", "NE")) == made[2:] and ids(where("JobName", "a*b", "Match")) == made[:2]
    assert ids(where("JobName", "&lt;?&gt;", "Match")) == made[2:]
    assert ids(where("UserId", "amy") + where("Priority", 1, "GT", "And")) == made[1:2]
    assert ids(where("Priority", 1, group=1) + where("Priority", 2, conj="Or", group=-1) + where("JobName", "ab", conj="AndNot")) == made[:1]
    assert ids(where("JobId", made[0]) + where("JobId", made[2], conj="Or")) == [made[0], made[2]]
    assert ids(where("Priority", 5, "GT")) == [] and ids(where("JobName", "ab")) == made[1:2]
    assert [j["Priority"] for j in maui("Query", "Job", more=get("Tros:Priority"))] == ["3", "2", "1"]
    assert maui("Query", "Job", more=get("GroupBy:UserId", "Count:JobId", "Sum:Processors", "Average:Priority")) == [
        {"UserId": "amy@local", "JobId": "2", "Processors": "9900", "Priority": "1.5"},
        {"UserId": "bob@local", "JobId": "1", "Processors": "95000", "Priority": "3"}]
    assert maui("Query", "Job", more=get("Max:Processors", "Count:JobId") + where("UserId", "bob")) == [{"Processors": "95000", "JobId": "1"}]
    for code, more in (("317", where("Weather", 1, "GT")), ("317", where("JobId", 1, group=1)), ("302", where("JobId", 1, "LIKE")),
                       ("317", get("JobId", "Sum:Priority")), ("317", where("JobId", 1, "GT") * 33)):
        assert maui("Query", "Job", code=code, more=more)
    for action, more in (("Cancel", where("JobId", made[0], "LT")), ("Cancel", where("JobId", made[0]) + where("JobId", made[1], conj="Or")),
                         ("Hold", where("JobId", made[0], "NE"))):
        assert "equality" in maui(action, "Job", code="317", more=more)
    assert [j["State"] for j in maui("Query", "Job")] == ["idle"] * 3


def test_names_and_ids_are_no_numbers(instance, port):
    maui = Client(port, KEY, name="maui")

    def ids(more, obj="Job", field="JobId"):
        return [j[field] for j in maui("Query", obj, more=get(field) + more)]
    assert instance.submit(sh("exit 0", queue="queue 11")) == 1
    assert ids(where("JobId", "1.1") + where("JobId", "1.5", conj="Or")) == ["1.1", "1.5"]
    assert ids(where("JobId", "1.1", "NE")) == [f"1.{k}" for k in range(11) if k != 1]
    assert ids(get("Sort:JobId")) == [f"1.{k}" for k in range(11)] and ids(get("Tros:JobId"))[0] == "1.10"
    assert maui("Query", "Job", more=get("Max:JobId")) == [{"JobId": "1.10"}]
    for name in ("10", "010", "1e1"):
        maui("Create", "Machine", MachineName=name)
        instance.cli("bank", "account", name, "--new")
    for obj, field in (("Machine", "MachineName"), ("Account", "ProjectId"), ("Project", "ProjectId")):
        assert ids(where(field, 10) + where(field, "zz", conj="Or"), obj, field) == ["10"]
        assert ids(get("Sort:" + field), obj, field) == ["010", "10", "1e1"]


def test_accounts_allocations_and_transactions(instance, port):
    """Projects are opened, closed and queried, allocations and movements listed, with the roles of the bank."""
    maui = Client(port, KEY, name="maui")
    assert maui("Create", "Project", ProjectId="chem", Description="a & b") == [{"ProjectId": "chem", "AccountId": "chem", "Active": "True"}]
    assert maui("Create", "Account", ProjectId="chem.x") and maui("Modify", "Project", ProjectId="chem", Description="<new>")
    assert maui("Create", "Project", actor="amy", code="444", ProjectId="bio") and maui("Create", "Project", code="317", ProjectId="a b")
    assert [(p["ProjectId"], p.get("Description"), p["Active"]) for p in maui("Query", "Project")] == [("chem", "<new>", "True"), ("chem.x", None, "True")]
    assert maui("Modify", "Account", ProjectId="chem.x", Active="False") == [{"ProjectId": "chem.x", "AccountId": "chem.x", "Active": "False"}]
    assert maui("Query", "Project", more=get("ProjectId") + where("Active", "True", "EQ")) == [{"ProjectId": "chem"}]
    assert maui("Modify", "Account", code="317", ProjectId="chem.x", Active="perhaps")
    assert maui("Modify", "Account", ProjectId="chem.x", Active="True") and maui("Delete", "Account", ProjectId="chem.x")
    assert maui("Delete", "Account", code="740", ProjectId="chem.x")
    assert "already" in maui("Create", "Account", code="740", ProjectId="chem.x") and "already" in maui("Create", "Project", code="740", ProjectId="chem", Description="b")
    for action in ("Account", "Project"):
        assert maui("Modify", action, code="742", ProjectId="typo", Description="x") and maui("Modify", action, code="742", ProjectId="typo", Active="True")
    assert "nothing is changed" in maui("Modify", "Project", code="317", ProjectId="chem")
    maui("Create", "Project", ProjectId="bio", Description="a")
    assert maui("Modify", "Project", ProjectId="bio", Active="False", Description="closed in May")[0]["Active"] == "False"
    assert maui("Modify", "Project", ProjectId="bio", Description="closed in June")[0]["Active"] == "False"
    assert [(a["ProjectId"], a.get("Description"), a["Active"]) for a in maui("Query", "Project")][0] == ("bio", "closed in June", "False")
    assert maui("Create", "ProjectUser", ProjectId="chem", UserId="eve", Role="owner") and maui("Create", "ProjectUser", ProjectId="chem", UserId="*@lab")
    assert maui("Query", "ProjectUser") == [{"ProjectId": "chem", "UserId": "eve@local", "Role": "owner"}, {"ProjectId": "chem", "UserId": "*@lab", "Role": "user"}]
    assert maui("Create", "ProjectUser", actor="eve", ProjectId="chem", UserId="bob", Role="manager") and maui("Delete", "ProjectUser", ProjectId="chem", UserId="bob")
    assert maui("Query", "ProjectUser", ProjectId="chem", more=get("UserId") + where("Role", "owner", "NE")) == [{"UserId": "*@lab"}]
    for user in ("z,w", "*@a,*@b", "z z"):
        assert "one user" in maui("Create", "ProjectUser", code="317", ProjectId="chem", UserId=user)
    for action, obj in (("Query", "Project"), ("Query", "Job"), ("Balance", "Account")):
        assert "nosuch" in maui(action, obj, code="317", more=get("nosuch"), **({"ProjectId": "chem"} if action == "Balance" else {}))
    for code, options in (("444", {"actor": "zoe@lab", "UserId": "bob"}), ("742", {"actor": "zoe", "UserId": "bob"}), ("317", {"UserId": "bob", "Role": "god"}),
                          ("314", {})):
        assert maui("Create", "ProjectUser", code=code, ProjectId="chem", **options), options
    for user in ("eve", "*@lab"):
        assert maui("Delete", "ProjectUser", ProjectId="chem", UserId=user)
    start = int(time.time()) - 100
    maui("Create", "Allocation", ProjectId="chem", Amount=1000, StartTime=start, EndTime=start + 90000, CreditLimit=7, UserId="amy,bob@lab")
    maui("Create", "Allocation", ProjectId="chem", Amount=50)
    first, second = maui("Query", "Allocation")
    assert (first["ProjectId"], first["Amount"], first["Reserved"], first["CreditLimit"], first["StartTime"], first["EndTime"], first["UserId"]) == (
        "chem", "1000", "0", "7", str(start), str(start + 90000), "amy@local,bob@lab")
    assert maui("Query", "Allocation", ProjectId="chem") == [first, second] and maui("Query", "Allocation", actor="amy") == []
    assert maui("Query", "Allocation", more=get("Sum:Amount")) == [{"Amount": "1050"}]
    assert maui("Create", "Allocation", actor="amy", code="444", ProjectId="chem", Amount=1)
    instance.cli("bank", "account", "chem", "--member", "amy@local=user")
    maui("Charge", "Job", more=job(JobId="PBS.1", ProjectId="chem", UserId="amy", Charge=30))
    maui("Charge", "Job", more=job(JobId="PBS.2", ProjectId="chem", UserId="bob@lab", Charge=12))
    moved = maui("Query", "Transaction", ProjectId="chem")
    assert [(m["Action"], m["Amount"], m.get("JobId"), m.get("UserId")) for m in moved] == [
        ("deposit", "1000", None, None), ("deposit", "50", None, None), ("charge", "-30", "PBS.1", "amy@local"), ("charge", "-12", "PBS.2", "bob@lab")]
    assert [m["JobId"] for m in maui("Query", "Transaction", actor="amy", ProjectId="chem")] == ["PBS.1"]
    assert maui("Query", "Transaction", ProjectId="chem", more=get("Sum:Amount") + where("Action", "charge")) == [{"Amount": "-42"}]
    assert maui("Query", "Transaction", ProjectId="chem", EndTime=start) == [] and len(maui("Query", "Transaction", ProjectId="chem", StartTime=start)) == 4
    assert maui("Query", "Transaction", code="314") and maui("Query", "Transaction", code="742", ProjectId="none")
    assert maui("Query", "Transaction", code="317", ProjectId="chem", StartTime="-1") and maui("Query", "Transaction", code="742", actor="eve", ProjectId="chem")
    lien, = maui("Reserve", "Job", more=job(JobId="PBS.3", ProjectId="chem", UserId="amy", WallDuration=10))
    longer, = maui("Modify", "Reservation", ReservationId=lien["ReservationId"], EndTime=start + 80000, Amount=5)
    there, = maui("Query", "Reservation")
    assert (longer["EndTime"], there["EndTime"], there["Charge"]) == (str(start + 80000), str(start + 80000), "15")
    assert maui("Modify", "Reservation", code="782", ReservationId=lien["ReservationId"], Amount=99999)
    assert maui("Modify", "Reservation", actor="eve", code="742", ReservationId=lien["ReservationId"], EndTime=start + 80000)


def test_more_transactions_than_one_answer_has(instance, port):
    """All of them or a failure, never a part: sums would be wrong."""
    maui = Client(port, KEY, name="maui")
    instance.cli("bank", "account", "chem", "--new")
    instance.cli("bank", "deposit", "chem", "1000000")
    one = request("Charge", "Job", "root", JobId="j", ProjectId="chem", Charge=1)[len("<Body>"):-len("</Body>")]
    body = "<Body>" + one * 32 + "</Body>"
    for _ in range(312):
        maui.post(envelope(body, maui.sign(body)))
    assert maui("Query", "Transaction", ProjectId="chem", more=get("Count:TransactionId", "Sum:Amount", "GroupBy:Action")) == [
        {"TransactionId": "9984", "Amount": "-9984", "Action": "charge"}, {"TransactionId": "1", "Amount": "1000000", "Action": "deposit"}]
    maui.post(envelope(body, maui.sign(body)))
    assert "more elements" in maui("Query", "Transaction", ProjectId="chem", code="720")
    assert maui("Query", "Transaction", ProjectId="chem", EndTime=1) == []


def test_quotes_allocations_and_users_are_changed(instance, port):
    """Each with the role that the bank asks for; an allocation keeps what is not named."""
    maui = Client(port, KEY, name="maui")
    instance.cli("bank", "account", "chem", "--new", "--member", "amy@local=user")
    start = int(time.time())
    number = maui("Create", "Allocation", ProjectId="chem", Amount=100, EndTime=start + 90000, CreditLimit=7)[0]["AllocationId"]
    maui("Modify", "Allocation", ProjectId="chem", AllocationId=number, EndTime=start + 80000)
    seen, = maui("Query", "Allocation")
    assert (seen["EndTime"], seen["CreditLimit"]) == (str(start + 80000), "7")
    assert "nothing is changed" in maui("Modify", "Allocation", code="317", ProjectId="chem", AllocationId=number)
    assert maui("Modify", "Allocation", actor="amy", code="444", ProjectId="chem", AllocationId=number, CreditLimit=99)
    quote, = maui("Quote", "Job", actor="amy", more=job(ProjectId="chem", WallDuration=10, Description="for May"))
    number_2 = maui("Quote", "Job", more=job(ProjectId="chem", WallDuration=10))[0]["QuoteId"]
    changed, = maui("Modify", "Quote", actor="amy", QuoteId=quote["QuoteId"], EndTime=start + 600, Description="for <June>")
    assert changed == {"QuoteId": quote["QuoteId"], "EndTime": str(start + 600)}
    seen, = maui("Query", "Quote", actor="amy")
    assert (seen["Charge"], seen["EndTime"], seen["Description"]) == ("10", str(start + 600), "for <June>")
    assert maui("Modify", "Quote", actor="amy", code="444", QuoteId=quote["QuoteId"], EndTime=start + 900)
    assert maui("Modify", "Quote", actor="amy", code="742", QuoteId=number_2, EndTime=start + 90)
    assert maui("Delete", "Quote", actor="amy", code="742", QuoteId=number_2) and maui("Modify", "Quote", code="317", QuoteId=number_2, EndTime=5)
    assert maui("Modify", "Quote", QuoteId=quote["QuoteId"], EndTime=start + 900)
    assert maui("Delete", "Quote", actor="amy", QuoteId=quote["QuoteId"]) == [{"QuoteId": quote["QuoteId"]}]
    assert maui("Delete", "Quote", code="742", QuoteId=quote["QuoteId"]) and maui("Delete", "Quote", QuoteId=number_2)
    assert maui("Delete", "Allocation", actor="amy", code="444", ProjectId="chem", AllocationId=number)
    assert maui("Delete", "Allocation", ProjectId="chem", AllocationId=number) and maui("Query", "Allocation") == []
    assert maui("Delete", "Allocation", code="742", ProjectId="chem", AllocationId=number)
    assert maui("Create", "User", UserId="amy", Description="A <b>") == [{"UserId": "amy@local"}]
    assert maui("Create", "User", code="740", UserId="amy") and maui("Create", "User", actor="amy", code="444", UserId="bob")
    assert maui("Modify", "User", UserId="amy@local", Active="False") and maui("Modify", "User", code="742", UserId="bob")
    assert maui("Query", "User") == [{"UserId": "amy@local", "Active": "False", "Description": "A <b>"}]
    assert maui("Query", "User", actor="amy") == maui("Query", "User") and maui("Query", "User", actor="bob") == []
    assert "inactive" in maui("Quote", "Job", code="740", more=job(ProjectId="chem", UserId="amy", WallDuration=10))
    assert maui("Delete", "User", UserId="amy") and maui("Query", "User") == []


def test_answers_are_framed_as_requests(instance, port):
    """In chunks, if the request came in chunks; else with a length. Both have the same text; and so has a failure."""
    maui = Client(port, KEY, name="maui")
    body = request("Query", "Node", "root")
    for text in (envelope(body, maui.sign(body)), envelope(body), "<x/>"):
        seen = [maui.framing(text, chunked) for chunked in (True, False)]
        assert [f[:2] for f in seen] == [(None, "chunked"), (str(len(seen[1][2])), None)], seen
        assert seen[0][2] == seen[1][2] and seen[0][2]


def advance(**fields):
    return "<Data><AdvanceReservation>" + "".join(f"<{k}>{v}</{k}>" for k, v in fields.items()) + "</AdvanceReservation></Data>"


def test_advance_reservations(instance, port):
    """Created by elements or options, queried, deleted; what is wrong is named; and they are not the bank's reservations."""
    maui = Client(port, KEY, name="maui")
    agents.start(instance, "jobs_max: 4\ncpus: 4\n")
    agents.queues(instance, 1)
    start = int(time.time()) + 3600
    made, = maui("Create", "AdvanceReservation", more=advance(StartTime=start, EndTime=start + 600, HostList="n1", ProcessorsPerNode=2, MemoryPerNode=64,
                                                              UserList="amy, *@lab", GroupList="chem", Description="a course"))
    assert made == {"ReservationId": made["ReservationId"], "State": "planned", "UserId": "root@local", "StartTime": str(start), "EndTime": str(start + 600),
                    "HostList": "n1/default", "Processors": "2", "UserList": "amy@local,*@lab", "GroupList": "chem", "Description": "a course"}
    there, = instance.api("GET", "/v1/reservations")["reservations"]
    assert (there["start_ms"], there["end_ms"], there["places"][0]["memory_mib"]) == (start * 1000, (start + 600) * 1000, 64)
    second, = maui("Create", "AdvanceReservation", Duration=60, ProcessorsPerNode=1, Requirements="TARGET.Cpus > 1 || true")
    assert int(second["EndTime"]) - int(second["StartTime"]) == 60
    wait_until(lambda: maui("Query", "AdvanceReservation", ReservationId=second["ReservationId"])[0]["State"] == "active")
    assert [r["ReservationId"] for r in maui("Query", "AdvanceReservation")] == [made["ReservationId"], second["ReservationId"]]
    assert maui("Query", "AdvanceReservation", more='<Get name="HostList"/>', ReservationId=made["ReservationId"]) == [{"HostList": "n1/default"}]
    assert maui("Query", "Reservation") == [] and maui("Delete", "Reservation", ReservationId=second["ReservationId"], code="742")
    for code, given in (("317", {"StartTime": start, "EndTime": start}), ("317", {"EndTime": 5}), ("317", {"EndTime": start, "Duration": 5}),
                        ("317", {"StartTime": "soon", "EndTime": start}), ("317", {"Duration": "1h"}), ("317", {"Duration": 60, "UserList": "@"}),
                        ("317", {}), ("317", {"Duration": 60, "Weather": "fair"}), ("317", {"Duration": 60, "Requirements": "1 +"}),
                        ("317", {"Duration": 60, "ProcessorsPerNode": 4}), ("742", {"Duration": 60, "ProjectId": "none"})):
        assert maui("Create", "AdvanceReservation", code=code, **given), given
    assert maui("Create", "AdvanceReservation", actor="amy", code="444", Duration=60)
    assert maui("Modify", "AdvanceReservation", code="315", ReservationId=made["ReservationId"], Duration=5)
    assert maui("Delete", "AdvanceReservation", actor="amy", code="444", ReservationId=second["ReservationId"])
    assert maui("Delete", "AdvanceReservation", ReservationId=second["ReservationId"]) == [{"ReservationId": second["ReservationId"]}]
    assert maui("Delete", "AdvanceReservation", code="742", ReservationId=second["ReservationId"])
    assert maui("Query", "AdvanceReservation", code="742", ReservationId="99")
    assert [r["id"] for r in instance.api("GET", "/v1/reservations")["reservations"]] == [int(made["ReservationId"])]


def test_several_requests_in_one_message(instance, port):
    """Each has its response, in order, with its id, for its own actor, whatever became of those before; a bad signature stops all."""
    old = Client(port, OLD, "sha1")
    instance.cli("bank", "account", "chem", "--new", "--member", "amy@local=manager")
    instance.cli("bank", "deposit", "chem", "100")

    def one(action, obj, actor, number, **options):
        text = request(action, obj, actor, **options)[len("<Body>"):-len("</Body>")]
        return text.replace('id="r1"', f'id="{number}"')

    def said(body, sign):
        root = ET.fromstring(old.post(envelope(body, sign))[1])
        return [(r.get("id"), r.findtext("Status/Code"), r.findtext("Data/*/Amount")) for r in root.findall("Body/Response")]
    body = "<Body>" + "".join((
        one("Charge", "Job", "amy", "a", JobId="j", ProjectId="chem", Charge=30), one("Balance", "Account", "amy", "b", ProjectId="chem"),
        one("Balance", "Account", "bob", "c", ProjectId="chem"), one("Bake", "Account", "amy", "d"), one("Query", "Job", "a b", "e"),
        one("Query", "Job", "amy", "f").replace("<Object>Job</Object>", "<Get name=\"JobId\"/>"),
        one("Deposit", "Account", "amy", "g", ProjectId="chem", Amount=1), one("Charge", "Job", "amy", "h", JobId="j", ProjectId="chem", Charge=5),
        one("Create", "AdvanceReservation", "amy", "i", Duration=60), one("Balance", "Account", "amy", "j", ProjectId="chem"))) + "</Body>"
    assert said(body, old.sign(body)) == [("a", "000", None), ("b", "000", "70"), ("c", "444", None), ("d", "313", None), ("e", "317", None), ("f", "311", None),
                                          ("g", "444", None), ("h", "000", None), ("i", "444", None), ("j", "000", "65")]
    other = body.replace(">5<", ">6<")
    assert [r[1] for r in said(other, old.sign(body))] == ["424"] and [r[1] for r in said(body, "")] == ["424"]
    many = "<Body>" + one("Balance", "Account", "amy", "n", ProjectId="chem") * 32 + "</Body>"
    assert said(many, old.sign(many)) == [("n", "000", "65")] * 32
    more = many.replace("</Body>", one("Balance", "Account", "amy", "n", ProjectId="chem") + "</Body>")
    assert [r[1] for r in said(more, old.sign(more))] == ["302"]
    token = instance.json("token", "user", "--name", "amy@local")["token"]
    body = "<Body>" + one("Balance", "Account", "amy", "a", ProjectId="chem") + one("Balance", "Account", "boss", "b", ProjectId="chem") + "</Body>"
    assert said(body, f'<Signature><SecurityToken type="Cleartext">{token}</SecurityToken></Signature>') == [("a", "000", "65"), ("b", "444", None)]


def test_machines(instance, port):
    maui = Client(port, KEY, name="maui")
    data = "<Data><Machine><MachineName>colony</MachineName><Architecture>x86_64</Architecture><Active>False</Active></Machine></Data>"
    assert maui("Create", "Machine", more=data) == [{"MachineName": "colony"}]
    assert maui("Create", "Machine", code="740", MachineName="colony")
    assert maui("Modify", "Machine", MachineName="colony", Description="a < b", OperatingSystem="Linux")
    assert maui("Query", "Machine") == [{"MachineName": "colony", "Active": "False", "Architecture": "x86_64", "OperatingSystem": "Linux", "Description": "a < b"}]
    assert maui("Modify", "Machine", MachineName="colony", Active="true") and maui("Query", "Machine")[0]["Active"] == "True"
    assert maui("Modify", "Machine", code="317", MachineName="colony", Active="maybe") and maui("Modify", "Machine", code="742", MachineName="blue")
    assert maui("Delete", "Machine", actor="amy", code="444", MachineName="colony") and maui("Delete", "Machine", MachineName="colony")
    assert maui("Query", "Machine") == []


def test_who_speaks_for_whom(instance, port):
    maui, old, stranger = Client(port, KEY, name="maui"), Client(port, OLD, "sha1"), Client(port)
    instance.cli("bank", "account", "chem", "--new", "--member", "amy@local=user")
    instance.cli("bank", "deposit", "chem", "1000")
    assert old("Balance", "Account", actor="amy", ProjectId="chem")[0]["Amount"] == "1000"
    assert "speak for bob@local" in old("Balance", "Account", actor="bob", ProjectId="chem", code="444")
    # an admin by name; but the key makes nobody more than a user
    assert old("Deposit", "Account", actor="boss", ProjectId="chem", Amount=5, code="444")
    assert maui("Deposit", "Account", actor="boss", ProjectId="chem", Amount=5)
    assert maui("Deposit", "Account", actor="amy", ProjectId="chem", Amount=5, code="444")
    assert maui("Balance", "Account", actor="bob", ProjectId="chem", code="742")
    assert "not signed" in stranger("Query", "Node", code="424")
    for kind in ("Password", "Asymmetric", "X509v3", "Kerberos5"):
        body = request("Query", "Node", "root")
        for sign in (f'<Signature><SecurityToken type="{kind}" name="amy">secret</SecurityToken></Signature>',
                     signature(body, KEY, name="maui").replace("Symmetric", kind)):
            code, message = maui.read(maui.post(envelope(body, sign))[1])[0]
            assert code == "424" and kind in message
    for wrong in (Client(port, KEY), Client(port, OLD, name="maui"), Client(port, KEY, name="other"), Client(port, KEY, "sha1", "maui")):
        said = wrong("Query", "Node", code="424")
        assert "signature is wrong" in said or "SHA-256" in said
    for actor in ("a b", "@", "amy@", "amy;x@local"):
        maui("Query", "Node", actor=actor, code="317")
    token = instance.json("token", "user", "--name", "amy@local")["token"]
    amy = Client(port, token=token)
    assert amy("Balance", "Account", actor="amy", ProjectId="chem") and amy("Balance", "Account", actor="amy@local", ProjectId="chem")
    assert "not the actor's" in amy("Balance", "Account", actor="boss", ProjectId="chem", code="444")
    assert "not valid" in Client(port, token=token[:-1] + ("0" if token[-1] != "0" else "1"))("Query", "Node", actor="amy", code="424")
    assert instance.json("bank", "balance", "chem")["balance"] == 1005
    # a body that was signed is not that of another request
    one, two = request("Deposit", "Account", "boss", ProjectId="chem", Amount=1), request("Deposit", "Account", "boss", ProjectId="chem", Amount=9)
    for text in (envelope(two, signature(one, KEY, name="maui")), envelope(two + one, signature(one, KEY, name="maui")),
                 envelope(f"<!--{one}-->{two}", signature(one, KEY, name="maui")),
                 envelope(one, signature(one, KEY, name="maui")).replace("UTF-8", "UTF-7"),
                 envelope(one, signature(one, KEY, name="maui")).replace("<Envelope>", '<Envelope xmlns="http://x/">')):
        assert maui.read(maui.post(text)[1])[0][0] in ("302", "424")
    assert instance.json("bank", "balance", "chem")["balance"] == 1005


def test_what_is_wrong_is_named(instance, port):
    maui = Client(port, KEY, name="maui")
    instance.cli("bank", "account", "chem", "--new")
    for action, obj, code, options in (
            ("Bake", "Job", "313", {}), ("Query", "Cake", "315", {}), ("Balance", "Account", "314", {}), ("Submit", "Job", "314", {}),
            ("Deposit", "Account", "314", {"ProjectId": "chem"}), ("Deposit", "Account", "317", {"ProjectId": "chem", "Amount": "1e3"}),
            ("Deposit", "Account", "317", {"ProjectId": "chem", "Amount": "-1"}), ("Deposit", "Account", "742", {"ProjectId": "none", "Amount": "1"}),
            ("Deposit", "Account", "317", {"ProjectId": "chem", "Amount": "1", "Weather": "fair"}),
            ("Withdraw", "Account", "782", {"ProjectId": "chem", "Amount": "1"}), ("Balance", "Account", "742", {"ProjectId": "chem/statement"}),
            ("Cancel", "Job", "317", {"JobId": "7; 8"}), ("Query", "Job", "742", {"JobId": "77"}), ("Query", "Job", "317", {"JobId": "x"}),
            ("Modify", "Job", "317", {"JobId": "7"}), ("Delete", "Reservation", "742", {"ReservationId": "77"}),
            ("Quote", "Job", "317", {"ProjectId": "chem", "WallDuration": "99999999999"}), ("Quote", "Job", "317", {"ProjectId": "chem", "UserId": "@"})):
        assert maui(action, obj, code=code, **options), (action, obj)
    assert maui.post("<x/>", content_type="application/json")[0] == 415
    status, said = maui.post("<x/>")
    assert status == 200 and "<Code>302</Code>" in said and "<Signature>" not in said
    assert maui.post(b"<Envelope>" + b" " * 300000)[0] == 413 and maui.post(b"<Envelope>" + b" " * 300000, chunked=False)[0] == 413
    assert maui("Query", "Node") == []


def test_off_and_wrong_settings(instance):
    number = free_port()
    instance.server("--api-listen", f"127.0.0.1:{number}")
    assert Client(number).post("<x/>")[0] == 404
    instance.kill_server()
    os.chmod(instance.work, 0o755)
    short, open_file = os.path.join(instance.work, "short"), os.path.join(instance.work, "open")
    for path, text, mode in ((short, "short\n", 0o600), (open_file, KEY + "\n", 0o644)):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
    config = os.path.join(instance.dir, "droverd.yaml")
    for text, why in (("sssrmap: {keys: [{actors: any}]}", "needs 'file' and 'actors'"), ("sssrmap: {key: 1}", "key"),
                      (f"sssrmap: {{keys: [{{file: {short}, actors: any}}]}}", "at least 16 bytes"), ("sssrmap: {keys: [{file: k, actors: any}]}", "absolute"),
                      (f"sssrmap: {{keys: [{{file: {open_file}, actors: any}}]}}", "open"), ("sssrmap: {keys: [{file: /none, actors: any}]}", "/none")):
        with open(config, "w", encoding="utf-8") as f:
            f.write(text + "\n")
        p = subprocess.run([instance.program("droverd"), "--dir", instance.dir, "--check-config"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           env=instance.env, check=False)
        assert p.returncode != 0 and why in p.stdout and "droverd.yaml:1" in p.stdout, (text, p.stdout)
