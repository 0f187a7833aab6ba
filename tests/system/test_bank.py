"""The bank: accounts, deposits, liens, charges and statements; jobs that are paid for, and those that cannot be; who may do
what; and books that balance whatever has died."""
import concurrent.futures
import contextlib
import csv
import http.client
import io
import json
import os
import random
import re
import signal
import ssl
import time

import pytest

import agents
import openapi
from drover import free_port, sh, wait_until

RATE = "bank:\n  lien: 100s\n  {more}\n  rates:\n    - charge: \"100 + WallSeconds\"\n"
CONFIG = "jobs_max: 4\nkill_grace: 1s\n"
OWN = {"accounting_group": "physics"}


def settings(instance, more="empty: hold"):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(RATE.format(more=more))


def opened(instance, amount=1000, name="physics"):
    """The account, of which everybody here is a user."""
    instance.cli("bank", "account", name, "--new", "--member", "*@local=user")
    if amount:
        instance.cli("bank", "deposit", name, str(amount))


def account(instance, name="physics"):
    return instance.json("bank", "balance", name)


def movements(instance, name="physics"):
    return instance.json("bank", "statement", name)["movements"]


def books_balance(instance):
    """What the accounts have is what was issued and not earned; each account's movements add up to its balance."""
    said = instance.json("bank")
    assert said["issued"] - said["earned"] == sum(a["balance"] for a in said["accounts"])
    for a in said["accounts"]:
        there = movements(instance, a["name"])
        assert sum(m["amount"] for m in there) == a["balance"]
        assert [m["id"] for m in there] == sorted({m["id"] for m in there})
        if there:
            assert there[-1]["balance"] == a["balance"]
        charged = [(m["request"], m["job"], m["attempt"], m["from"]["allocation"]) for m in there if m["what"] == "charge" and "request" in m]
        assert len(charged) == len(set(charged)), "an attempt was charged twice"
    return said


def test_a_job_is_paid_for(instance):
    """Reserved while it runs, charged when it has ended, and the statement says who, where, why and for which job."""
    settings(instance)
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance)
    go = os.path.join(instance.work, "go")
    request = instance.submit(sh(f"while [ ! -e {go} ]; do sleep 0.05; done", **OWN))
    instance.wait_state(f"{request}.0", "running")
    assert account(instance)["held"] == 200  # 100 and 100 s
    assert account(instance)["available"] == 800
    lien, = instance.json("bank", "liens")["liens"]
    assert (lien["request"], lien["job"], lien["attempt"], lien["amount"]) == (request, 0, 1, 200)
    instance.write("go", "")
    instance.wait(request)
    assert account(instance)["held"] == 0
    first, charge = movements(instance)
    assert (first["what"], first["amount"], first["from"]["account"]) == ("deposit", 1000, "@issued")
    assert (charge["what"], charge["to"]["account"]) == ("charge", "@earned")
    assert (charge["request"], charge["job"], charge["attempt"]) == (request, 0, 1)
    assert charge["who"] == "drover" and charge["user"] == "root@local" and charge["place"].startswith("n1/")
    assert 101 <= -charge["amount"] <= 300
    assert re.fullmatch(r"exit code 0 after [0-9]+ s", charge["why"])
    rows = list(csv.DictReader(io.StringIO(instance.cli("bank", "statement", "physics", "--csv"))))
    assert [row["what"] for row in rows] == ["deposit", "charge"] and rows[1]["job"] == f"{request}.0"
    for path, shape in (("/v1/bank", "/v1/bank"), ("/v1/bank/reserved", "/v1/bank/reserved"),
                        ("/v1/bank/accounts/physics", "/v1/bank/accounts/{name}"),
                        ("/v1/bank/accounts/physics/statement", "/v1/bank/accounts/{name}/statement")):
        openapi.check_answer("GET", shape, 200, instance.api("GET", path))
    books_balance(instance)


def test_the_eleven_steps(instance):
    """Each step of a job to the queue manager has a time, in order; without a bank those of the bank have none; a job that waits
    has come to the third."""
    settings(instance)
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance)
    request = instance.submit(sh("true", **OWN))
    instance.wait(request)
    steps = instance.json("log", "--trace", str(request))["steps"]
    assert [s["step"] for s in steps] == list(range(1, 12))
    assert [(s["from"], s["to"]) for s in steps] == [
        ("user", "queue manager"), ("queue manager", "allocation manager"), ("queue manager", "scheduler"), ("scheduler", "node manager"),
        ("scheduler", "allocation manager"), ("scheduler", "queue manager"), ("queue manager", "process manager"),
        ("process manager", "queue manager"), ("queue manager", "scheduler"), ("queue manager", "allocation manager"), ("queue manager", "user")]
    times = [s["at_ms"] for s in steps]
    assert None not in times and times == sorted(times)
    assert steps[4]["details"] == "lien 200 of physics" and steps[5]["details"] == "default of n1"
    charge = next(m for m in movements(instance) if m["what"] == "charge")
    assert steps[9]["details"] == f"charge {-charge['amount']} of physics" and steps[9]["at_ms"] == charge["at_ms"]
    assert "exit 0" in steps[7]["details"]
    assert "withdraws what it cost" in instance.cli("log", "--trace", str(request))
    instance.cli("bank", "withdraw", "physics", str(account(instance)["available"]))
    waits = instance.submit(sh("true", **OWN))
    instance.wait_state(f"{waits}.0", "held")
    assert [s["at_ms"] is not None for s in instance.json("log", "--trace", str(waits))["steps"]] == [True] * 3 + [False] * 8


def test_the_steps_without_a_bank(instance):
    """Nothing asks a bank where there is none: its three steps have no time, in the table neither."""
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    request = instance.submit(sh("true"))
    instance.wait(request)
    steps = instance.json("log", "--trace", str(request))["steps"]
    assert [s["step"] for s in steps if s["at_ms"] is None] == [2, 5, 10]
    assert [s["what"] for s in steps if s["at_ms"] is None] == ["checks the balance", "reserves what it may cost", "withdraws what it cost"]
    rows = list(csv.DictReader(io.StringIO(instance.cli("log", "--trace", str(request), "--csv"))))
    assert [int(r["step"]) for r in rows if r["time"] in ("", "-")] == [2, 5, 10]


def test_what_jobs_would_cost_is_quoted(instance):
    """drover quote has what the bank would reserve, at each place and for all jobs; and nothing where no account pays."""
    settings(instance, "empty: hold\n  without_account: free")
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance)
    instance.write("job.sub", sh("true", queue="queue 3", **OWN))
    quote = wait_until(lambda: (q := instance.json("quote", "job.sub")) and q.get("credits") is not None and q)  # there may be no room at first
    assert (quote["credits"], [p["credits"] for p in quote["places"] if "credits" in p]) == (600, [600])  # 100 and 100 s each
    openapi.check_answer("POST", "/v1/quote", 200, quote)
    assert "the bank would reserve 600 credits" in instance.cli("quote", "job.sub") and "CREDITS" in instance.cli("quote", "job.sub")
    assert (quote["account"], quote["available"]) == ("physics", account(instance)["available"])
    assert "not enough" not in instance.cli("quote", "job.sub")
    instance.cli("bank", "withdraw", "physics", str(quote["available"] - 500))
    assert "600 credits of physics, which has 500 to spend: that is not enough" in instance.cli("quote", "job.sub")
    instance.write("free.sub", sh("true"))
    free = instance.json("quote", "free.sub")
    assert free["credits"] == 0 and "account" not in free
    assert account(instance)["held"] == 0


def test_a_project_that_runs_out(instance):
    """None is lost: those that can be paid for run, the others are held and say why; a deposit and a release let them go on."""
    settings(instance)
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 450)
    request = instance.submit(sh("true", queue="queue 10", **OWN))

    def settled():
        states = [j["state"] for j in instance.jobs(request)]
        return all(s in ("completed", "held") for s in states) and states
    # A charge is 100 and what it ran, a lien 200: with 450 three are paid, and the rest is less than a lien.
    states = wait_until(settled)
    assert states.count("held") == 7 and len(states) == 10
    for n in (n for n, state in enumerate(states) if state == "held"):
        why = instance.cli("why", f"{request}.{n}")
        assert re.search(r"the account physics has [0-9]+ to spend in the bank, and the job needs 200 at n1/", why) and "deposit" in why
    books_balance(instance)
    instance.cli("bank", "deposit", "physics", "5000")
    instance.cli("release", str(request))
    instance.wait(request)
    assert books_balance(instance)["earned"] >= 1000


@pytest.mark.parametrize("empty", ["wait", "refuse"])
def test_a_project_that_runs_out_as_it_is_set(instance, empty):
    """With wait those that cannot be paid for stay idle until a deposit; with refuse they are held as with hold, and the submit is
    refused while nothing is left. None is lost, and each says what its account has."""
    settings(instance, f"empty: {empty}")
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 450)
    request = instance.submit(sh("true", queue="queue 10", **OWN))
    stopped = {"wait": "idle", "refuse": "held"}[empty]

    def settled():
        states = [j["state"] for j in instance.jobs(request)]
        return all(s in ("completed", stopped) for s in states) and account(instance)["held"] == 0 and states
    states = wait_until(settled)
    assert states.count(stopped) == 7 and len(states) == 10
    for n in (n for n, state in enumerate(states) if state == stopped):
        assert re.search(r"physics,? has [0-9]+ to spend .*the job needs 200", instance.cli("why", f"{request}.{n}")), n
    instance.cli("bank", "withdraw", "physics", str(account(instance)["available"]))
    instance.write("job.sub", sh("true", **OWN))
    if empty == "refuse":
        assert "physics has nothing left" in instance.cli("submit", "job.sub", code=1, cwd=instance.work).err
    instance.cli("bank", "deposit", "physics", "5000")
    if empty == "refuse":
        instance.cli("release", str(request))
    instance.wait(request)
    books_balance(instance)


def test_an_empty_account_holds_at_the_submit(instance):
    """Before any place has looked at the jobs: with nothing in the account they are held at once, with too little they wait for a
    place, and in both cases drover why names the account and what it has."""
    settings(instance)
    instance.server()
    opened(instance, 0)
    instance.cli("bank", "account", "biology", "--new", "--member", "*@local=user")
    instance.cli("bank", "deposit", "biology", "150")
    request = instance.submit(sh("true", queue="queue 5", **OWN))
    assert [j["state"] for j in instance.jobs(request)] == ["held"] * 5
    for n in range(5):
        assert "the account physics has nothing to spend in the bank: ask for a deposit" in instance.cli("why", f"{request}.{n}")
    poor = instance.submit(sh("true", accounting_group="biology"))
    assert instance.job(f"{poor}.0")["state"] == "idle"
    assert "in the bank" not in instance.cli("why", str(poor))  # nobody knows a price yet
    instance.cli("rm", str(poor))
    opened(instance, 1000, "chemistry")
    agents.start(instance, CONFIG + "cpus: 4\n")
    agents.queues(instance, 1)
    full = instance.submit(sh("sleep 600", accounting_group="chemistry", request_cpus=4))
    instance.wait_state(f"{full}.0", "running")
    poor = instance.submit(sh("true", accounting_group="biology"))
    assert instance.job(f"{poor}.0")["state"] == "idle"
    wait_until(lambda: "biology, has 150 to spend and 0 that is reserved, the job needs 200" in instance.cli("why", str(poor)))
    instance.cli("bank", "deposit", "biology", "50")
    assert "biology" not in instance.cli("why", str(poor))
    instance.cli("rm", str(full))
    instance.wait(poor)


def test_jobs_wait_where_it_is_so_set(instance):
    settings(instance, "empty: wait")
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 150)
    request = instance.submit(sh("true", **OWN))
    wait_until(lambda: "bank" in instance.cli("why", str(request)))
    assert instance.job(f"{request}.0")["state"] == "idle"
    instance.cli("bank", "deposit", "physics", "100")
    instance.wait(request)
    books_balance(instance)


def test_refused_at_submit(instance):
    settings(instance, "empty: refuse")
    instance.server()
    opened(instance, 0)
    instance.cli("bank", "account", "secret", "--new")

    def refused(**attributes):
        instance.write("job.sub", sh("true", **attributes))
        return instance.cli("submit", "job.sub", code=1, cwd=instance.work).err
    assert "physics has nothing left" in refused(**OWN)
    assert "no account biology" in refused(accounting_group="biology")
    assert "no member of the account secret" in refused(accounting_group="secret")
    assert "no account for jobs of root@local" in refused()
    instance.cli("bank", "deposit", "physics", "100")
    instance.submit(sh("true", **OWN))


def test_a_job_that_outruns_its_account(instance):
    """It is held when its lien cannot be extended, and is charged for what it ran."""
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("bank: {lien: 1s, running: hold, rates: [{charge: WallSeconds * 100}]}\n")
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 350)
    request = instance.submit(sh("sleep 600", **OWN))
    instance.wait_state(f"{request}.0", "held")
    assert "used up what it had reserved" in instance.cli("why", f"{request}.0")
    assert account(instance)["held"] == 0 and account(instance)["balance"] < 350
    books_balance(instance)


@pytest.mark.timeout(1200)
def test_the_books_balance_after_kills(instance, long):
    """kill -9 of server, agent, shepherd or all of them at random moments, with jobs running: every job is paid for once, and nothing
    stays reserved."""
    jobs, kills, length = (10000, 20, "0.0$(Process)") if long else (60, 4, "0.2")
    seed = int(os.environ.get("DROVER_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {seed} (DROVER_SEED={seed} repeats the choices)")
    rnd = random.Random(seed)
    settings(instance)
    instance.server()
    agent = agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 10000000)
    request = instance.submit(sh(f"sleep {length}", queue=f"queue {jobs}", **OWN))
    for n in range(kills):
        # Kills are spread over the first three quarters of the work.
        wait_until(lambda n=n: instance.api("GET", f"/v1/requests/{request}")["completed"] >= jobs * 3 * n // (4 * kills) + 1, 120)
        time.sleep(rnd.uniform(0, 0.2))
        what = rnd.choice(["server", "agent", "shepherd", "all"]) if long else "server"
        if what in ("server", "all"):
            instance.kill_server()
        if what in ("agent", "all"):
            agent.stop(signal.SIGKILL)
        if what in ("shepherd", "all"):
            for pid in instance.pids("drover-shepherd"):
                with contextlib.suppress(ProcessLookupError):  # it ends by itself when its agent is killed
                    os.kill(pid, signal.SIGKILL)
        if what in ("server", "all"):
            instance.server()
        if what in ("agent", "all"):
            agent = agents.start(instance, CONFIG)
    instance.wait(request, seconds=600)
    said = books_balance(instance)
    assert said["accounts"][0]["held"] == 0
    assert instance.json("bank", "liens")["liens"] == []
    assert sorted(m["job"] for m in movements(instance) if m["what"] == "charge") == list(range(jobs))


def test_an_agent_that_dies_costs_nothing(instance):
    settings(instance)
    instance.server()
    agent = agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance)
    request = instance.submit(sh("sleep 600", **OWN))
    instance.wait_state(f"{request}.0", "running")
    assert account(instance)["held"] == 200
    agent.stop(signal.SIGKILL)
    for pid in instance.pids("drover-shepherd"):
        os.kill(pid, signal.SIGKILL)
    agents.start(instance, CONFIG)
    wait_until(lambda: any(x["attempt"] == 2 for x in instance.json("bank", "liens")["liens"]))
    assert [m["what"] for m in movements(instance)] == ["deposit"]
    instance.cli("rm", str(request))
    wait_until(lambda: account(instance)["held"] == 0)
    books_balance(instance)


def test_an_attempt_that_is_lost_is_charged_if_it_is_so_set(instance):
    """For the time that the server saw it run; the next attempt has a lien of its own."""
    settings(instance, "empty: hold\n  lost: charge")
    instance.server()
    agent = agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance)
    request = instance.submit(sh("sleep 600", **OWN))
    instance.wait_state(f"{request}.0", "running")
    agent.stop(signal.SIGKILL)
    for pid in instance.pids("drover-shepherd"):
        os.kill(pid, signal.SIGKILL)
    agents.start(instance, CONFIG)
    wait_until(lambda: any(x["attempt"] == 2 for x in instance.json("bank", "liens")["liens"]))
    charge = movements(instance)[-1]
    assert (charge["what"], charge["request"], charge["attempt"]) == ("charge", request, 1) and charge["why"].startswith("lost after "), charge
    assert 100 <= -charge["amount"] <= 200
    instance.cli("rm", str(request))
    wait_until(lambda: account(instance)["held"] == 0)
    books_balance(instance)


def test_a_quote_outlives_an_agent_that_dies(instance):
    """The attempt that was lost is not charged, and the next one has the promised price again."""
    settings(instance)
    instance.server()
    opened(instance)
    quote = instance.json("bank", "quote", "physics", "--for", "100s")
    instance.kill_server()
    config = os.path.join(instance.dir, "droverd.yaml")
    with open(config, encoding="utf-8") as f:
        text = f.read().replace("100 + WallSeconds", "500 + WallSeconds")
    with open(config, "w", encoding="utf-8") as f:
        f.write(text)
    instance.server()
    agent = agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    request = instance.submit(sh("sleep 600", **OWN, **{"+BankQuote": quote["id"]}))
    instance.wait_state(f"{request}.0", "running")
    assert account(instance)["held"] == 200
    agent.stop(signal.SIGKILL)
    for pid in instance.pids("drover-shepherd"):
        os.kill(pid, signal.SIGKILL)
    agents.start(instance, CONFIG)
    lien = wait_until(lambda: next((x for x in instance.json("bank", "liens")["liens"] if x["attempt"] == 2), None))
    assert (lien["amount"], lien["quote"]) == (200, quote["id"])
    instance.cli("rm", str(request))
    wait_until(lambda: account(instance)["held"] == 0)
    books_balance(instance)


def test_other_systems_use_it(instance):
    """Without jobs, and with the bank off for these: a lien, its charge, a refund, and a lien whose time is over."""
    instance.server()
    opened(instance, 1000)
    lien = instance.json("bank", "lien", "physics", "300", "--for", "1h", "--reason", "beam time")
    assert account(instance)["available"] == 700
    assert "300" in instance.cli("bank", "liens") and "beam time" in instance.cli("bank", "liens")
    assert "has 700 that is not reserved" in instance.cli("bank", "withdraw", "physics", "800", code=1).err
    instance.cli("bank", "extend", str(lien["id"]), "100")
    assert account(instance)["held"] == 400
    instance.cli("bank", "charge", "--lien", str(lien["id"]), "250")
    assert (account(instance)["held"], account(instance)["balance"]) == (0, 750)
    assert "no lien" in instance.cli("bank", "charge", "--lien", str(lien["id"]), "1", code=2).err
    instance.cli("bank", "refund", "physics", "50", "--reason", "half of it was broken")
    assert account(instance)["balance"] == 800
    assert "charged 200 that was not refunded" in instance.cli("bank", "refund", "physics", "201", code=2).err
    instance.cli("bank", "lien", "physics", "10", "--end", "+1s")
    wait_until(lambda: account(instance)["held"] == 0)
    instance.kill_server()
    instance.server()
    assert account(instance)["balance"] == 800
    assert [m["what"] for m in movements(instance)] == ["deposit", "charge", "refund"]
    books_balance(instance)


def test_the_bill_is_the_ledger(instance):
    """What an account is billed in a month is what its statement says it lost: for jobs, reservations and other systems, less refunds;
    and all columns together are the change of its balance. In all forms, for members and for the admin."""
    settings(instance, "empty: hold\n  reserved: all")
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 100000)
    instance.cli("bank", "account", "physics.cms", "--new")
    instance.run(sh("true", **OWN))
    reserved = int(instance.cli("reserve", "--queue", "n1", "--cpus", "1", "--from", "now", "--for", "1h", "--account", "physics"))
    wait_until(lambda: instance.json("reserve", "show", str(reserved))["state"] == "active")
    instance.cli("reserve", "end", str(reserved))
    instance.api("POST", "/v1/bank/orders", {"op": "charge", "account": "physics", "amount": 77, "why": "tape 9", "user": "ann@lab"})
    instance.cli("bank", "refund", "physics", "7", "--reason", "half of tape 9")
    instance.cli("bank", "transfer", "physics", "physics.cms", "500")
    instance.cli("bank", "withdraw", "physics.cms", "20")
    instance.cli("bank", "charge", "physics.cms", "30")
    instance.kill_server()
    instance.server()
    answer = instance.api("GET", "/v1/bank/bill?by=account,month")
    openapi.check_answer("GET", "/v1/bank/bill", 200, answer)
    for g in answer["groups"]:
        assert g["amount"] == -sum(m["amount"] for m in movements(instance, g["account"]) if m["what"] in ("charge", "refund")
                                   and time.strftime("%Y-%m", time.gmtime(m["at_ms"] / 1000)) == g["month"])
    answer = instance.api("GET", "/v1/bank/bill?by=account")
    bill = {g["account"]: g for g in answer["groups"]}
    for name in ("physics", "physics.cms"):
        there = movements(instance, name)
        assert bill[name]["amount"] == -sum(m["amount"] for m in there if m["what"] in ("charge", "refund")) > 0
        g = bill[name]
        assert g["deposited"] + g["received"] - g["sent"] - g["withdrawn"] - g["amount"] == account(instance, name)["balance"]
    g = bill["physics"]
    charged = {m.get("why", ""): -m["amount"] for m in movements(instance) if m["what"] == "charge"}
    assert g["for_reservations"] == charged[f"reservation {reserved}"] > 0
    assert g["for_jobs"] == -next(m["amount"] for m in movements(instance) if m["what"] == "charge" and "request" in m) > 0
    assert (g["for_others"], g["refunded"], g["sent"], g["deposited"]) == (77, 7, 500, 100000)
    assert (bill["physics.cms"]["received"], bill["physics.cms"]["withdrawn"], bill["physics.cms"]["for_others"]) == (500, 20, 30)
    rows = {r["account"]: r for r in csv.DictReader(io.StringIO(instance.cli("report", "bank", "--by", "account", "--format", "csv")))}
    assert {k: int(v) for k, v in rows["physics"].items() if k not in ("account", "from", "to")} == {k: v for k, v in g.items() if k != "account"}
    assert instance.json("report", "bank", "--by", "account")["groups"] == answer["groups"]
    assert "MONTH" in instance.cli("report", "bank")
    page = instance.cli("report", "bank", "--by", "account", "--format", "html")
    assert f"<td class=\"n\">{g['amount']}</td>" in page and f"<th class=\"n\">{sum(b['amount'] for b in bill.values())}</th>" in page
    assert str(g["amount"]) in instance.cli("report", "bank", "--by", "account").split()
    users = {r["user"]: r["amount"] for r in instance.json("report", "bank", "--by", "user", "--owner", "ann")["groups"]}
    assert users == {"ann@lab": 77}
    assert instance.api("GET", "/v1/bank/bill?account=physics.cms")["groups"][0]["amount"] == 30
    assert instance.api("GET", f"/v1/bank/bill?to_ms={movements(instance)[0]['at_ms']}")["groups"] == []


def test_a_jobs_charge_is_given_back(instance):
    """By the job's id, or by its name in another system: all or a part of what was charged for it, and never more, over a kill -9 and
    for refunds at one time."""
    settings(instance)
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 10000)
    request = instance.run(sh("true", queue="queue 2", **OWN))
    charged = {m["job"]: -m["amount"] for m in movements(instance) if m["what"] == "charge"}
    instance.cli("bank", "charge", "physics", "60", "--job", "PBS.9", "--reason", "tape")
    instance.cli("bank", "refund", "--job", f"{request}.1", "30", "--reason", "a bad disk")
    instance.kill_server()
    instance.server()
    said = instance.json("bank", "refund", "--job", f"{request}.1", "physics")
    assert said["amount"] == charged[1] - 30 and said["account"]["name"] == "physics"
    assert "all of it was given back" in instance.cli("bank", "refund", "--job", f"{request}.1", code=2).err
    assert "less than 1000" in instance.cli("bank", "refund", "--job", f"{request}.0", "1000", code=2).err
    assert "no account was charged for job 999.0" in instance.cli("bank", "refund", "--job", "999.0", code=2).err
    with concurrent.futures.ThreadPoolExecutor() as pool:
        got = list(pool.map(lambda _: instance.cli("bank", "refund", "--job", f"{request}.0", str(charged[0]), code=None).code, range(8)))
    assert got.count(0) == 1
    assert instance.json("bank", "refund", "--job", "PBS.9", "20")["amount"] == 20
    assert instance.json("bank", "refund", "--job", "PBS.9")["amount"] == 40
    given = [(m.get("request"), m.get("job"), m.get("attempt"), m.get("job_name"), m["amount"], m["why"], m["user"]) for m in movements(instance) if m["what"] == "refund"]
    assert given == [(request, 1, 1, None, 30, "a bad disk", "root@local"), (request, 1, 1, None, charged[1] - 30, f"{request}.1", "root@local"),
                     (request, 0, 1, None, charged[0], f"{request}.0", "root@local"),
                     (None, None, None, "PBS.9", 20, "PBS.9", "root@local"), (None, None, None, "PBS.9", 40, "PBS.9", "root@local")]
    openapi.check_answer("GET", "/v1/bank/accounts/{name}/statement", 200, instance.api("GET", "/v1/bank/accounts/physics/statement"))
    assert account(instance)["balance"] == 10000
    rows = list(csv.DictReader(io.StringIO(instance.cli("bank", "statement", "physics", "--csv"))))
    assert all(row["why"] for row in rows if row["what"] in ("charge", "refund")) and rows[-1]["job"] == "PBS.9"
    for body in ({"request": 0}, {"request": request, "member": -1}, {"request": request, "amount": -1}, {"request": request, "amount": 0}):
        instance.api("POST", "/v1/bank/orders", {"op": "refund", **body}, status=(400,))
    books_balance(instance)


def test_a_quote_binds_the_charge_of_another_systems_job(instance):
    """The price that was promised, for a use that it covers; and by the job's name, which is apart for each user and account."""
    settings(instance)
    instance.server()
    opened(instance, 100000)
    use = {"account": "physics", "duration_ms": 100000, "cpus": 2}

    def order(op, **more):
        return instance.api("POST", "/v1/bank/orders", {"op": op, **more})
    quote = order("quote", **use)
    lien = order("lien", quote=quote["id"], job="PBS.1", **use)
    order("lien", job="PBS.2", **use)
    order("lien", job="PBS.1", user="ann@lab", **use)
    assert (quote["amount"], lien["amount"]) == (200, 200)
    instance.kill_server()
    config = os.path.join(instance.dir, "droverd.yaml")
    with open(config, encoding="utf-8") as f:
        text = f.read().replace("100 + WallSeconds", "7000 + WallSeconds")
    with open(config, "w", encoding="utf-8") as f:
        f.write(text)
    instance.server()
    charge = order("charge", job="PBS.1", **{**use, "duration_ms": 50000})
    assert (charge["amount"], charge["lien"]) == (100, lien["id"])
    assert order("charge", job="PBS.2", **{**use, "cpus": 3})["amount"] == 7100  # its lien had no quote
    third = order("charge", job="PBS.2", **use)
    assert third["amount"] == 7100 and "lien" not in third  # it had one lien
    assert [(x["why"], x["user"]) for x in instance.json("bank", "liens")["liens"]] == [("PBS.1", "ann@lab")]
    assert [m["why"] for m in movements(instance)[1:]] == ["PBS.1", "PBS.2", "PBS.2"]
    books_balance(instance)


def test_a_quote_is_for_its_place(instance):
    """Not for a lien at another place; and a use elsewhere is charged by the rate there."""
    settings(instance)
    config = os.path.join(instance.dir, "droverd.yaml")
    with open(config, encoding="utf-8") as f:
        text = f.read().replace("rates:\n", "rates:\n    - {place: dear, charge: 5000}\n    - {place: cheap, charge: 10}\n")
    with open(config, "w", encoding="utf-8") as f:
        f.write(text)
    instance.server()
    opened(instance, 100000)
    use = {"account": "physics", "duration_ms": 100000}

    def order(op, status=(200,), **more):
        return instance.api("POST", "/v1/bank/orders", {"op": op, **use, **more}, status=status)
    quotes = [order("quote", place="cheap")["id"] for _ in range(4)]
    price = order("quote", place="dear")["amount"]
    assert price == 5000
    said = order("lien", status=(409,), quote=quotes[0], place="dear")
    assert f"quote {quotes[0]} is for cheap, not for dear" in said["error"]["message"]
    for quote, at, there, amount in zip(quotes, ("cheap", "cheap/long", None, "cheap"), (None, "cheap/long", "dear", "dear"), (10, 10, price, price)):
        lien = order("lien", quote=quote, **({"place": at} if at else {}))
        assert lien["amount"] == 10
        assert order("charge", id=lien["id"], **({"place": there} if there else {}))["amount"] == amount
    books_balance(instance)


def test_a_quote_is_for_its_quality_of_service(instance):
    """It is priced by it, and covers jobs, liens and charges of it; also after a restart."""
    settings(instance)
    config = os.path.join(instance.dir, "droverd.yaml")
    with open(config, encoding="utf-8") as f:
        text = f.read().replace("100 + WallSeconds", "WallSeconds * (QOS =?= \\\"urgent\\\" ? 3 : 1)")
    with open(config, "w", encoding="utf-8") as f:
        f.write(text + "qos: {urgent: {priority: 1}}\n")
    instance.server()
    opened(instance, 100000)
    usual, urgent, third = (instance.json("bank", "quote", "physics", "--for", "100s", *more) for more in ((), ("--qos", "urgent"), ("--qos", "urgent")))
    assert (usual["amount"], urgent["amount"]) == (100, 300)
    instance.kill_server()
    instance.server()
    listed = instance.api("GET", "/v1/bank/reserved")
    assert [q.get("qos") for q in listed["quotes"]] == [None, "urgent", "urgent"]
    openapi.check_answer("GET", "/v1/bank/reserved", 200, listed)
    said = instance.cli("bank", "lien", "physics", "--quote", str(usual["id"]), "--qos", "urgent", code=1).err
    assert f"quote {usual['id']} is for no QOS, not for the QOS urgent" in said
    lien = instance.json("bank", "lien", "physics", "--quote", str(usual["id"]))
    assert instance.json("bank", "charge", "--lien", str(lien["id"]), "--for", "10s", "--qos", "urgent")["amount"] == 30
    lien = instance.json("bank", "lien", "physics", "--quote", str(urgent["id"]))
    assert instance.json("bank", "charge", "--lien", str(lien["id"]), "--for", "10s")["amount"] == 30
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    request = instance.submit(sh("sleep 600", **OWN, **{"+QOS": '"urgent"', "+BankQuote": third["id"]}))
    instance.wait_state(f"{request}.0", "running")
    assert [(x["amount"], x["quote"]) for x in instance.json("bank", "liens")["liens"]] == [(300, third["id"])]
    books_balance(instance)


def test_a_quote_that_is_not_used_is_named(instance):
    """The submit is refused; a job whose quote is used up meanwhile says so while it waits, and its lien does; and a use that is too large."""
    settings(instance)
    config = os.path.join(instance.dir, "droverd.yaml")
    with open(config, encoding="utf-8") as f:
        text = f.read().replace("100 + WallSeconds", "WallSeconds + Memory")
    with open(config, "w", encoding="utf-8") as f:
        f.write(text)
    instance.server()
    opened(instance, 10000)
    quotes = [instance.json("bank", "quote", "physics", "--for", "100s")["id"] for _ in range(2)]
    for command in ("submit", "quote"):
        instance.write("job.sub", sh("true", **OWN, **{"+BankQuote": 999}))
        assert "quote 999 is not used: physics has none of that number" in instance.cli(command, "job.sub", code=1, cwd=instance.work).err
    for wrong in (f"{quotes[0]}.5", f"{quotes[0]}.0", "true", f'"{quotes[0]}"', "0"):
        assert "not the number of a quote" in instance.cli("submit", "-", stdin=sh("true", **OWN, **{"+BankQuote": wrong}), code=1).err, wrong
    late = instance.submit(sh("sleep 600", **OWN, **{"+BankQuote": quotes[0]}))
    instance.api("POST", "/v1/bank/orders", {"op": "lien", "account": "physics", "quote": quotes[0]})
    instance.cli("submit", instance.write("job.sub", sh("true", **OWN, **{"+BankQuote": quotes[0]})), code=1)
    said = f"quote {quotes[0]} is not used: a lien was made with it already"
    assert f"It will be paid by the rates: {said}." in instance.json("why", f"{late}.0")["text"]
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    instance.wait_state(f"{late}.0", "running")
    assert f"of physics: {said}" in instance.cli("log", f"{late}.0")
    instance.write("large.sub", sh("sleep 600", request_memory="64 MB", **OWN, **{"+BankQuote": quotes[1]}))
    quote = wait_until(lambda: (q := instance.json("quote", "large.sub")) and q.get("credits") is not None and q)
    large = f"quote {quotes[1]} is not used: by the rates the job costs more there than it is for"
    assert (quote["unquoted"], quote["credits"]) == (large, 164)
    openapi.check_answer("POST", "/v1/quote", 200, quote)
    assert large in instance.cli("quote", "large.sub")
    books_balance(instance)


def test_allocations_transfers_and_quotes(instance):
    settings(instance)
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 1000)
    instance.cli("bank", "account", "physics.cms", "--new")
    instance.cli("bank", "deposit", "physics.cms", "70", "--start", "+30d", "--end", "+60d")
    assert (account(instance, "physics.cms")["balance"], account(instance, "physics.cms")["available"]) == (70, 0)
    instance.cli("bank", "deposit", "physics.cms", "5", "--places", "elsewhere", "--credit", "9")
    instance.cli("bank", "transfer", "physics", "physics.cms", "400")
    assert account(instance)["balance"] == 600
    assert account(instance, "physics.cms")["available"] == 5 + 9 + 400
    quote = instance.json("bank", "quote", "physics.cms", "--for", "50s", "--cpus", "2")
    assert quote["amount"] == 150
    request = instance.run(sh("true", accounting_group="physics.cms", **{"+BankQuote": quote["id"]}))
    charge = [m for m in movements(instance, "physics.cms") if m["what"] == "charge"][-1]
    assert charge["request"] == request and -charge["amount"] < 100  # by its time alone, as was promised
    assert [q["used"] for q in instance.json("bank", "quotes")["quotes"]] == [True]
    assert "is not a time" in instance.cli("bank", "deposit", "physics", "1", "--end", "tomorrow", code=2).err
    for args, said in ((("deposit", "physics", "1", "--member", "bob=owner"), "deposit takes no --member"), (("account", "physics", "--delete"), "takes no --delete"),
                       (("deposit", "physics"), "write drover bank deposit NAME AMOUNT"), (("quote", "physics"), "--for TIME is missing")):
        assert said in instance.cli("bank", *args, code=2).err
    assert "is not an amount" in instance.cli("bank", "deposit", "physics", "1.5", code=2).err
    assert "would have ended" in instance.cli("bank", "deposit", "physics", "1", "--end", "2020-01-01", code=2).err
    books_balance(instance)


@pytest.fixture(name="world")
def world_of(instance):
    """A server with tokens of users, over TLS: world(who, method, path, body) gives status and answer."""
    port = free_port()
    settings(instance)
    with open(os.path.join(instance.dir, "droverd.yaml"), "a", encoding="utf-8") as f:
        f.write("operators: [op@test]\n")
    instance.server("--api-listen", f"127.0.0.1:{port}")
    tokens = {who: instance.json("token", "user", "--name", f"{who}@test", "--role", role)["token"]
              for who, role in (("ann", "user"), ("bob", "user"), ("eve", "user"), ("op", "operator"))}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def call(who, method, path, body=None):
        c = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=90)
        c.request(method, path, json.dumps(body) if body is not None else None,
                  {"Authorization": f"Bearer {tokens[who]}", "Content-Type": "application/json"})
        answer = c.getresponse()
        said = json.loads(answer.read() or b"null")
        c.close()
        return answer.status, said
    def many(who, body, most):
        """The same order until it is refused, on one connection. Returns how many were carried out, and the refusal."""
        c = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=90)
        for n in range(most):
            c.request("POST", "/v1/bank/orders", json.dumps(body(n)), {"Authorization": f"Bearer {tokens[who]}", "Content-Type": "application/json"})
            answer = c.getresponse()
            said = json.loads(answer.read())
            if answer.status != 200:
                return n, (answer.status, said)
        return most, None
    call.many = many
    return call


def test_machines_are_registered(instance):
    """While none is registered every place may be named; then only those of the register, and an inactive one gets nothing new."""
    settings(instance, "without_account: free")
    config = os.path.join(instance.dir, "droverd.yaml")
    with open(config, "a", encoding="utf-8") as f:
        f.write("    - {place: colny, charge: 1}\n")
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 1000)
    assert instance.cli("bank", "machines") == "no machine is registered\n"
    instance.cli("bank", "deposit", "physics", "10", "--places", "anywhere")
    instance.cli("bank", "machine", "n1", "--new", "--description", "the first", "--arch", "x86_64", "--opsys", "Linux")
    instance.cli("bank", "machine", "colony/long", "--new", "--inactive")
    said = instance.json("bank", "machines")["machines"]
    assert said == [{"name": "colony/long", "active": False},
                    {"name": "n1", "active": True, "description": "the first", "arch": "x86_64", "opsys": "Linux"}]
    instance.cli("bank", "machine", "colony/long", "--description", "x", "--arch", "y", "--opsys", "z")
    instance.cli("bank", "machine", "colony/long", "--description", "", "--arch", "", "--opsys", "")
    assert instance.json("bank", "machines")["machines"] == said
    for code, wrong in ((1, ("n1", "--new")), (2, ("n2", "--active")), (2, ("n2", "--delete")), (2, ("a b", "--new"))):
        assert instance.cli("bank", "machine", *wrong, code=code).err, wrong
    for wrong in ((), ("--delete", "--new"), ("--active", "--inactive")):
        assert "give --delete" in instance.cli("bank", "machine", "n1", *wrong, code=2).err
    assert "no machine n3" in instance.cli("bank", "deposit", "physics", "10", "--places", "n1,n3", code=2).err
    assert "no machine n3" in instance.cli("bank", "quote", "physics", "--for", "10s", "--place", "n3", code=2).err
    assert "no machine colony" in instance.cli("bank", "lien", "physics", "1", "--place", "colony", code=2).err
    assert "is inactive" in instance.cli("bank", "quote", "physics", "--for", "10s", "--place", "colony/long", code=1).err
    assert "is inactive" in instance.cli("bank", "lien", "physics", "1", "--place", "colony/long", code=1).err
    instance.cli("bank", "deposit", "physics", "10", "--places", "n1/default")
    lien = instance.json("bank", "lien", "physics", "1", "--place", "n1/default")["id"]
    instance.cli("bank", "machine", "n1", "--inactive")
    instance.cli("bank", "charge", "--lien", str(lien), "1")
    paid = instance.submit(sh("true", **OWN))
    instance.wait(instance.submit(sh("true")))  # no account pays for it
    said = wait_until(lambda: (w := instance.json("why", f"{paid}.0")) and "register of machines has it as inactive" in str(w) and w)
    assert said["state"] == "idle"
    instance.kill_server()
    daemon = instance.server()
    assert "place=\"colny\"" in daemon.output()
    agents.queues(instance, 1)
    assert [m["active"] for m in instance.json("bank", "machines")["machines"]] == [False, False]
    assert instance.json("show", f"{paid}.0")["state"] == "idle"
    instance.cli("bank", "machine", "n1", "--active")
    instance.wait(paid)
    instance.cli("bank", "machine", "n1", "--delete")
    instance.cli("bank", "machine", "colony/long", "--delete")
    instance.cli("bank", "lien", "physics", "1", "--place", "n3")
    books_balance(instance)


def test_users_quotes_and_allocations_at_the_command_line(instance):
    """The register of users, and what the bank promised, are kept over a restart; who is inactive gets no paid jobs."""
    settings(instance, "without_account: free")
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 1000)
    assert instance.cli("bank", "users") == "no user is registered\n"
    instance.cli("bank", "user", "root@local", "--new", "--description", "the admin")
    instance.cli("bank", "user", "zoe@far", "--new", "--inactive")
    assert instance.json("bank", "users")["users"] == [{"name": "root@local", "active": True, "description": "the admin"}, {"name": "zoe@far", "active": False}]
    instance.cli("bank", "user", "zoe@far", "--description", "left")
    instance.cli("bank", "user", "zoe@far", "--description", "")
    instance.cli("bank", "account", "physics", "--description", "x")
    instance.cli("bank", "account", "physics", "--description", "")
    assert "description" not in instance.json("bank", "balance", "physics")
    for user in ("a@test,b@test", "*@a,*@b"):
        assert "without commas" in instance.cli("bank", "account", "physics", "--member", f"{user}=user", code=2).err
    for change, why in (((), "nothing is changed"), (("--credit", "1", "--reason", "x"), "keeps no reason")):
        assert why in instance.cli("bank", "allocation", "physics", "--allocation", "1", *change, code=2).err
    for order in (("lien", "physics", "1"), ("charge", "physics", "1"), ("refund",)):
        assert "empty" in instance.cli("bank", *order, "--job", "", code=2).err
    for code, wrong in ((1, ("root@local", "--new")), (2, ("eve@far", "--active")), (2, ("eve@far", "--delete")), (2, ("eve", "--new")),
                        (2, ("root@local", "--arch", "x86_64"))):
        assert instance.cli("bank", "user", *wrong, code=code).err, wrong
    assert "give --delete" in instance.cli("bank", "user", "root@local", code=2).err
    quote = instance.json("bank", "quote", "physics", "--for", "100s", "--qos", "high", "--description", "for May")["id"]
    assert instance.cli("bank", "quotes").splitlines()[0].split()[-2:] == ["QOS", "DESCRIPTION"]
    assert "high" in instance.cli("bank", "quotes") and "for May" in instance.cli("bank", "quotes")
    instance.cli("bank", "user", "root@local", "--inactive")
    instance.kill_server()
    instance.server()
    agents.queues(instance, 1)
    assert instance.json("bank", "users")["users"] == [{"name": "root@local", "active": False, "description": "the admin"}, {"name": "zoe@far", "active": False}]
    assert instance.json("bank", "quotes")["quotes"][0]["description"] == "for May"
    assert "root@local is inactive in the bank" in instance.cli("submit", "-", stdin=sh("true", **OWN), code=None).err
    instance.wait(instance.submit(sh("true")))  # no account pays for it
    instance.cli("bank", "user", "root@local", "--active")
    instance.cli("bank", "quote", "--change", str(quote), "--end", "+2h", "--description", "for June")
    assert instance.json("bank", "quotes")["quotes"][0]["description"] == "for June"
    instance.cli("bank", "quote", "--change", str(quote), "--description", "")
    assert "description" not in instance.json("bank", "quotes")["quotes"][0]
    for wrong in (("--cancel", "x"), ("--cancel", "1", "--change", "1"), ("--change", str(quote)), ("--cancel", str(quote), "--end", "+1h"),
                  ("--cancel", str(quote), "--for", "1h"), ("physics", "--cancel", str(quote)), ("--change", str(quote), "--end", "2020-01-01")):
        assert instance.cli("bank", "quote", *wrong, code=2).err, wrong
    instance.cli("bank", "quote", "--cancel", str(quote))
    assert instance.cli("bank", "quotes") == "no quotes\n" and instance.cli("bank", "quote", "--cancel", str(quote), code=2).err
    number = account(instance)["allocations"][0]["id"]
    instance.cli("bank", "allocation", "physics", "--allocation", str(number), "--credit", "5")
    instance.cli("bank", "allocation", "physics", "--allocation", str(number), "--end", "+1d")
    assert account(instance)["allocations"][0]["credit"] == 5  # what is not named stays
    assert "stands alone" in instance.cli("bank", "allocation", "physics", "--allocation", str(number), "--close", "--credit", "5", code=2).err
    instance.cli("bank", "allocation", "physics", "--allocation", str(number), "--close")
    assert (account(instance)["allocations"], account(instance)["balance"]) == ([], 0)
    books_balance(instance)


def test_no_project_takes_what_others_need(instance, world):
    """Quotes and liens cost nothing, or nearly; what all of the bank may have of them is shared."""
    opened(instance, 1000)
    instance.cli("bank", "account", "physics", "--member", "bob@test=owner")
    instance.cli("bank", "account", "other", "--new", "--member", "eve@test=user")
    assert world("bob", "POST", "/v1/bank/orders", {"op": "open", "account": "physics.cms"})[0] == 200
    made, (status, said) = world.many("bob", lambda n: {"op": "quote", "account": ("physics", "physics.cms")[n % 2], "duration_ms": 1000}, 1100)
    assert (made, status) == (1000, 409) and "as many of these" in said["error"]["message"]
    assert world("eve", "POST", "/v1/bank/orders", {"op": "quote", "account": "other", "duration_ms": 1000})[0] == 200
    assert world("op", "POST", "/v1/bank/orders", {"op": "quote", "account": "physics", "duration_ms": 1000})[0] == 200
    books_balance(instance)


def test_who_may_do_what(instance, world):
    """Users, managers and owners of an account, operators, and those who are none of these."""
    opened(instance, 1000)
    instance.cli("bank", "account", "physics", "--member", "ann@test=owner", "--member", "bob@test=user")
    instance.cli("bank", "account", "other", "--new")

    def order(who, op, **more):
        return world(who, "POST", "/v1/bank/orders", {"op": op, **more})[0]
    for who in ("ann", "bob", "eve", "op"):
        assert order(who, "deposit", account="physics", amount=1) == 403
        assert order(who, "withdraw", account="physics", amount=1) == 403
        assert order(who, "open", account="mine") == 403
        assert order(who, "set", account="physics", id=1, credit=1000000) == 403
        for op in ("register", "machine", "unregister", "close"):
            assert order(who, op, place="n1") == 403
        for op in ("register", "user", "unregister"):
            assert order(who, op, user="ann@test", state="inactive") == 403
        assert order(who, "set", account="physics", id=1, state="inactive") == 403
    assert order("eve", "lien", account="physics", amount=1) == 404
    assert order("eve", "quote", account="physics", duration_ms=1000) == 404
    assert world("eve", "GET", "/v1/bank/accounts/physics")[0] == 404
    assert world("eve", "GET", "/v1/bank/accounts/physics/statement")[0] == 404
    assert world("eve", "GET", "/v1/bank")[1]["accounts"] == []
    assert world("bob", "GET", "/v1/bank/accounts/physics")[1]["balance"] == 1000
    assert [m["user"] for m in world("bob", "GET", "/v1/bank/accounts/physics")[1]["members"]] == ["bob@test"]
    assert order("bob", "charge", account="physics", amount=1) == 403
    assert order("bob", "lien", account="physics", amount=1, user="ann@test") == 403
    assert order("bob", "member", account="physics", user="bob@test", role="owner") == 403
    status, lien = world("bob", "POST", "/v1/bank/orders", {"op": "lien", "account": "physics", "amount": 30})
    assert status == 200
    assert order("eve", "charge", id=lien["id"], amount=1) == 404
    assert order("bob", "charge", id=lien["id"], amount=20) == 200
    assert [m["amount"] for m in world("bob", "GET", "/v1/bank/accounts/physics/statement")[1]["movements"]] == [-20]
    assert len(world("ann", "GET", "/v1/bank/accounts/physics/statement")[1]["movements"]) == 2
    assert [world(who, "GET", "/v1/bank/bill")[1]["groups"][0]["deposited"] for who in ("ann", "bob", "op")] == [1000, 0, 1000]
    assert world("bob", "GET", "/v1/bank/bill?account=physics")[1]["groups"][0]["amount"] == 20
    assert world("eve", "GET", "/v1/bank/bill")[1]["groups"] == [] and world("eve", "GET", "/v1/bank/bill?account=physics")[0] == 404
    assert order("ann", "refund", account="physics", amount=20) == 403
    assert order("ann", "refund", request=1) == 403 and order("ann", "refund", job="PBS.1") == 403
    assert order("op", "refund", account="physics", amount=20) == 200
    status, lien = world("op", "POST", "/v1/bank/orders", {"op": "lien", "account": "physics", "amount": 30, "user": "bob@test"})
    assert status == 200 and order("op", "release", id=lien["id"]) == 200
    assert order("op", "charge", account="physics", amount=1) == 200 and order("op", "refund", account="physics", amount=1) == 200
    assert order("op", "transfer", account="physics", to="other", amount=1) == order("op", "member", account="physics", user="eve@test", role="user") == 403
    assert order("ann", "open", account="physics.cms") == 200
    assert order("ann", "transfer", account="physics", to="physics.cms", amount=100) == 200
    assert order("ann", "transfer", account="physics", to="other", amount=100) == 404
    assert order("ann", "member", account="physics.cms", user="eve@test", role="user") == 200
    assert world("eve", "GET", "/v1/bank")[1]["accounts"][0]["name"] == "physics.cms"
    assert order("bob", "quote", account="physics", duration_ms=1000, end_ms=4000000000000) == 400
    assert order("bob", "quote", account="physics", duration_ms=1000, amount=0) == 400
    books_balance(instance)


def test_nobody_spends_what_is_set_aside_for_others(instance, world):
    """By a lien of one's own, which one extends or charges in another user's name; at a place that is not registered; for ever."""
    instance.cli("bank", "account", "physics", "--new", "--member", "ann@test=user", "--member", "bob@test=user")
    instance.cli("bank", "deposit", "physics", "100")
    instance.cli("bank", "deposit", "physics", "5000", "--users", "bob@test")

    def order(who, op, **more):
        status, said = world(who, "POST", "/v1/bank/orders", {"op": op, **more})
        return status, said
    status, lien = order("ann", "lien", account="physics", amount=60)
    assert status == 200 and order("ann", "lien", account="physics", amount=2000)[0] == 409
    for op in ("extend", "charge"):
        status, said = order("ann", op, id=lien["id"], amount=2000, user="bob@test")
        assert status == 403, (op, said)
    assert order("ann", "extend", id=lien["id"], amount=1, user="ann@test")[0] == 200
    far = int(time.time() * 1000) + 400 * 86400000
    for op in ({"op": "lien", "account": "physics", "amount": 1}, {"op": "extend", "id": lien["id"], "amount": 1}):
        status, said = world("ann", "POST", "/v1/bank/orders", {**op, "end_ms": far})
        assert status == 400 and "366 days" in said["error"]["message"], said
    instance.cli("bank", "machine", "n1", "--new")
    assert order("ann", "charge", id=lien["id"], amount=5, place="n9")[0] == 404
    assert order("ann", "charge", id=lien["id"], amount=5)[0] == 200
    charge, = [m for m in movements(instance) if m["what"] == "charge"]
    assert (charge["user"], charge["amount"]) == ("ann@test", -5)
    books_balance(instance)


def test_a_refund_goes_where_the_money_came_from(instance, world):
    """To the allocation that has paid; and one job's name that several users gave is nobody's without a user."""
    instance.cli("bank", "account", "physics", "--new", "--member", "ann@test=user", "--member", "bob@test=user")
    instance.cli("bank", "deposit", "physics", "50", "--users", "bob@test", "--end", "+1d")
    instance.cli("bank", "deposit", "physics", "1000")

    def rest():
        return sorted(a["amount"] for a in account(instance)["allocations"])

    def charge(who, amount):
        assert world("op", "POST", "/v1/bank/orders", {"op": "charge", "account": "physics", "amount": amount, "job": "N1", "user": who})[0] == 200
    charge("ann@test", 500)
    assert rest() == [50, 500]
    instance.cli("bank", "refund", "--job", "N1")
    assert rest() == [50, 1000]
    charge("ann@test", 5)
    charge("bob@test", 40)
    assert rest() == [10, 995]
    assert "several users have a job N1" in instance.cli("bank", "refund", "--job", "N1", code=1).err
    instance.cli("bank", "refund", "--job", "N1", "--user", "bob@test")
    assert rest() == [50, 995]
    assert "less than" in instance.cli("bank", "refund", "--job", "N1", "--user", "ann@test", "physics", "6", code=2).err
    instance.cli("bank", "refund", "--job", "N1", "--user", "ann@test")
    assert rest() == [50, 1000]
    books_balance(instance)


def test_a_quote_is_for_one_of_several_jobs(instance):
    """What is quoted for two is what is reserved for two: the promised price for one, and today's for the other."""
    settings(instance)
    instance.server()
    opened(instance, 100000)
    quote = instance.json("bank", "quote", "physics", "--for", "100s")
    instance.kill_server()
    config = os.path.join(instance.dir, "droverd.yaml")
    with open(config, encoding="utf-8") as f:
        text = f.read().replace("100 + WallSeconds", "5000 + WallSeconds")
    with open(config, "w", encoding="utf-8") as f:
        f.write(text)
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    text = sh("sleep 600", **OWN, **{"+BankQuote": quote["id"]}, queue="queue 2", request_memory="16 MB")
    instance.write("two.sub", text)
    assert instance.json("quote", "two.sub")["credits"] == 200 + 5100
    request = instance.submit(text)
    for n in range(2):
        instance.wait_state(f"{request}.{n}", "running")
    assert sorted(x["amount"] for x in instance.json("bank", "liens")["liens"]) == [200, 5100]
    instance.cli("rm", str(request))


def test_a_quote_is_its_users(instance, world):
    """Another user of the account makes no lien with it; a manager does, and an operator."""
    opened(instance, 10000)
    instance.cli("bank", "account", "physics", "--member", "ann@test=user", "--member", "bob@test=user", "--member", "eve@test=manager")

    def order(who, op, **more):
        return world(who, "POST", "/v1/bank/orders", {"op": op, "account": "physics", **more})
    first, second = (order("ann", "quote", duration_ms=1000)[1]["id"] for _ in range(2))
    status, said = order("bob", "lien", quote=first)
    assert status == 404 and f"no quote {first} for bob@test" in said["error"]["message"]
    assert order("bob", "lien", quote=first, user="ann@test")[0] == 403
    assert not any(q["used"] for q in instance.json("bank", "quotes")["quotes"])
    assert order("ann", "lien", quote=first)[0] == 200
    status, lien = order("eve", "lien", quote=second)
    assert status == 200 and order("eve", "release", id=lien["id"])[0] == 200
    assert order("op", "lien", quote=second)[0] == 200
    books_balance(instance)


def test_what_a_manager_may(instance, world):
    """The statement, charges, and money between managed accounts, those below included; no members, accounts and refunds."""
    opened(instance, 1000)
    instance.cli("bank", "account", "physics.cms", "--new")
    instance.cli("bank", "account", "other", "--new")
    instance.cli("bank", "account", "physics", "--member", "ann@test=manager", "--member", "bob@test=user")

    def order(op, **more):
        return world("ann", "POST", "/v1/bank/orders", {"op": op, **more})[0]
    assert order("transfer", account="physics", to="physics.cms", amount=100) == 200
    assert order("transfer", account="physics", to="other", amount=100) == 404
    assert order("charge", account="physics", amount=5, user="bob@test") == 200
    status, lien = world("bob", "POST", "/v1/bank/orders", {"op": "lien", "account": "physics", "amount": 30})
    assert status == 200 and order("release", id=lien["id"]) == 200
    for refused in (("open", {"account": "physics.new"}), ("close", {"account": "physics.cms"}), ("member", {"account": "physics", "user": "eve@test", "role": "user"}),
                    ("deposit", {"account": "physics", "amount": 1}), ("withdraw", {"account": "physics", "amount": 1}),
                    ("refund", {"account": "physics", "amount": 1}), ("set", {"account": "physics", "id": 1, "credit": 9})):
        assert order(refused[0], **refused[1]) == 403, refused
    assert [m["what"] for m in world("ann", "GET", "/v1/bank/accounts/physics/statement")[1]["movements"]] == ["deposit", "transfer", "charge"]
    said = world("ann", "GET", "/v1/bank/accounts/physics")[1]
    assert (said["role"], said["rights"]) == ("manager", "manager") and {m["user"] for m in said["members"]} == {"*@local", "ann@test", "bob@test"}
    assert world("ann", "GET", "/v1/bank/accounts/physics.cms")[1]["rights"] == "manager"
    books_balance(instance)


def test_an_account_is_closed(instance, world):
    """When it has no money: its jobs are refused, nothing reaches it, its statement and bill stay, and it is opened again."""
    opened(instance, 100)
    instance.cli("bank", "account", "physics.cms", "--new", "--member", "ann@test=owner", "--member", "*@local=user")
    instance.cli("bank", "account", "physics", "--member", "bob@test=owner")
    instance.cli("bank", "charge", "physics", "30")
    assert "has a balance of 70" in instance.cli("bank", "account", "physics", "--close", code=1).err
    instance.cli("bank", "withdraw", "physics", "70")
    assert "physics.cms, below it, is open" in instance.cli("bank", "account", "physics", "--close", code=1).err
    assert world("ann", "POST", "/v1/bank/orders", {"op": "close", "account": "physics.cms"})[0] in (403, 404)  # its own, but not the one above
    assert world("op", "POST", "/v1/bank/orders", {"op": "close", "account": "physics.cms"})[0] == 403
    assert world("bob", "POST", "/v1/bank/orders", {"op": "close", "account": "physics.cms"})[0] == 200
    assert world("bob", "POST", "/v1/bank/orders", {"op": "close", "account": "physics"})[0] == 403
    assert "stands alone" in instance.cli("bank", "account", "physics", "--close", "--new", code=2).err
    assert "closed" in instance.cli("bank", "account", "physics", "--close")
    instance.kill_server()
    instance.server()
    assert "physics" not in instance.cli("bank") and account(instance)["closed"]
    instance.write("job.sub", sh("true", **OWN))
    assert "the account physics is closed in the bank" in instance.cli("submit", "job.sub", code=1, cwd=instance.work).err
    assert "physics is closed" in instance.cli("bank", "deposit", "physics", "5", code=1).err
    assert [m["what"] for m in movements(instance)] == ["deposit", "charge", "withdraw"]
    assert instance.api("GET", "/v1/bank/bill?account=physics")["groups"][0]["amount"] == 30
    instance.cli("bank", "account", "physics", "--new")
    instance.cli("bank", "deposit", "physics", "5")
    instance.submit(sh("true", **OWN))
    books_balance(instance)


def test_an_admin_is_told_what_he_is(instance):
    """ROLE is what the caller may do, not only memberships; and options without a subcommand are not ignored."""
    instance.server()
    instance.cli("bank", "account", "physics", "--new")
    row, = csv.DictReader(io.StringIO(instance.cli("bank", "--csv")))
    assert (row["account"], row["role"]) == ("physics", "admin")
    assert re.search(r"^role +admin$", instance.cli("bank", "balance", "physics"), re.M)
    for args in (("--new",), ("--reason", "x"), ("--member", "bob=user")):
        assert f"takes no {args[0]}" in instance.cli("bank", *args, code=2).err


def test_rates_of_gpus_service_and_place(instance):
    """A rate over GPUs, the job's quality of service and the place's own price, for an attempt that has run; reports by place and month."""
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("bank:\n  rates:\n    - charge: \"GPUs * 100 + (QOS =?= \\\"premium\\\" ? 7 : 1) * TARGET.Price\"\nqos: {premium: {}}\n")
    instance.server()
    agents.start(instance, CONFIG + "resources: {gpus: 2}\nattributes: {Price: 3}\n")
    agents.queues(instance, 1)
    opened(instance, 10000)
    first = instance.run(sh("true", request_gpus=2, **{"+QOS": '"premium"'}, **OWN))
    second = instance.run(sh("true", **OWN))
    charged = {m["request"]: -m["amount"] for m in movements(instance) if m["what"] == "charge"}
    assert charged == {first: 221, second: 3}
    months = {time.strftime("%Y-%m", time.gmtime(r["ended_ms"] / 1000)) for r in instance.api("GET", "/v1/usage/records")["records"]}
    for kind, least in (("usage", "cpus_h"), ("bank", "amount")):
        rows = list(csv.DictReader(io.StringIO(instance.cli("report", kind, "--by", "place,month", "--csv"))))
        ran = [r for r in rows if r["place"] == "n1/default"]
        assert {r["month"] for r in ran} == months and all(float(r[least]) >= 0 for r in ran)
    groups = instance.json("report", "usage", "--by", "place")["groups"]
    assert [(g["place"], g["attempts"], g["amount"]) for g in groups] == [("n1/default", 2, 224)] and groups[0]["gpus_ms"] >= 0
    assert sum(g["amount"] for g in instance.json("report", "bank", "--by", "month")["groups"]) == 224

def test_rates_of_memory_processor_and_bytes(instance):
    """The charge follows what the usage record says of the attempt: memory asked and used, processor time, disk, bytes in and out."""
    rate = "Memory * 1000000 + Disk + BytesIn * 1000 + BytesOut * 10 + (MemoryPeak > 1 ? 3 : 0) + (CpuSeconds > 0.01 ? 5 : 0)"
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"bank:\n  rates:\n    - charge: \"{rate}\"\n")
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance, 10**12)
    instance.write("in", "x" * 12)
    work = "python3 -c 'sum(range(10000000))'; cat in >out; echo more >>out"
    instance.run(f"shell = {work}\nshould_transfer_files = YES\ntransfer_input_files = in\ntransfer_output_files = out\nrequest_memory = 64\n"
                 "request_disk = 5000\naccounting_group = physics\nqueue\n")
    used = json.loads(instance.cli("report", "records"))
    assert (used["bytes_in"], used["bytes_out"]) == (12, 17) and used["memory_peak_bytes"] > 2 << 20
    assert -movements(instance)[-1]["amount"] == used["amount"] == 64 * 1000000 + 5000 + 12 * 1000 + 17 * 10 + 3 + 5


def test_orders_that_make_no_sense(instance):
    instance.server()
    opened(instance, 100)

    def refused(status, **body):
        instance.api("POST", "/v1/bank/orders", body, status=status)
    refused((400,), op="steal", account="physics", amount=1)
    refused((400,), op="deposit", account="physics")
    refused((400,), op="deposit", account="physics", amount=-1)
    refused((400,), op="deposit", account="physics", amount=10 ** 18 + 1)
    refused((400,), op="deposit", account="physics", amount=10 ** 18)
    refused((400,), op="deposit", account="physics", amount="1")
    refused((400,), op="deposit", account="physics", amount=1.5)
    refused((400,), op="member", account="physics", user="a@b", role="god")
    refused((400,), op="open", account="../../etc")
    refused((400,), op="open", account="@earned")
    refused((404,), op="deposit", account="@earned", amount=1)
    refused((400, 404), op="transfer", account="physics", to="@earned", amount=1)
    refused((400,), op="transfer", account="physics", to="physics", amount=1)
    refused((409,), op="lien", account="physics", amount=101)
    refused((400,), op="lien", account="physics", amount=1, why="x" * 2000)
    refused((404,), op="release", id=99)
    refused((404,), op="extend", id=99, amount=1)
    refused((400,), op="register", place="a/b/c")
    refused((400,), op="register", place="n1", arch="x" * 200)
    refused((400,), op="register", place="n1", state="asleep")
    refused((404,), op="machine", place="n1", state="active")
    assert account(instance)["balance"] == 100
    books_balance(instance)


def test_options_that_would_be_ignored_are_refused(instance):
    """Those of tables where a sentence is printed, and those of another subcommand; nothing is done then."""
    settings(instance)
    instance.server()
    opened(instance)
    for option in (["--csv"], ["--columns", "account"], ["--sort", "account"], ["--no-header"]):
        for args in ("balance physics", "account physics", "deposit physics 5", "withdraw physics 5", "transfer physics other 5", "lien physics 5",
                     "quote physics --for 1h", "charge physics 5", "refund physics 5", "extend 1 5", "release 1", "allocation 1 --allocation 1"):
            out = instance.cli("bank", *args.split(), *option, code=2)
            assert f"prints no table, and takes no {option[0]}" in out.err, out.err
        for args in ("show 1", "end 1", "--cpus 1 --for 1h"):
            assert f"prints no table, and takes no {option[0]}" in instance.cli("reserve", *args.split(), *option, code=2).err
    for args in ("reserve list --cpus 4", "reserve show 1 --for 1h", "reserve end 1 --evict", "bank liens --cpus 4"):
        assert "takes no --" in instance.cli(*args.split(), code=2).err
    assert account(instance)["balance"] == 1000 and instance.json("reserve", "list")["reservations"] == []
    for args in ("bank", "bank balance", "bank statement physics", "bank liens", "bank quotes", "bank machines", "reserve list"):
        assert instance.cli(*args.split(), "--csv")


def test_settings_that_make_no_sense(instance):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    for text, said in (("bank: {empty: never}", "empty must be hold, refuse or wait"),
                       ("bank: {rates: [{place: n1}]}", "charge"),
                       ("bank: {rates: [{charge: 'Cpus *'}]}", "droverd.yaml:1"),
                       ("bank: {rate: 1}", "rate"),
                       ("bank: {lien: 0}", "lien")):
        with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
            f.write(text + "\n")
        daemon = instance.start("droverd", "--dir", instance.dir)
        assert daemon.process.wait(90) != 0
        assert said in daemon.output()
        instance.daemons.remove(daemon)
