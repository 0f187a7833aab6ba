"""The bank: accounts, deposits, liens, charges and statements; jobs that are paid for, and those that cannot be; who may do
what; and books that balance whatever has died."""
import contextlib
import csv
import http.client
import io
import json
import os
import random
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


def test_what_jobs_would_cost_is_quoted(instance):
    """drover quote has what the bank would reserve, at each place and for all jobs; and nothing where no account pays."""
    settings(instance, "empty: hold\n  without_account: free")
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    opened(instance)
    instance.write("job.sub", sh("true", queue="queue 3", **OWN))
    quote = instance.json("quote", "job.sub")
    assert (quote["credits"], [p["credits"] for p in quote["places"] if "credits" in p]) == (600, [600])  # 100 and 100 s each
    openapi.check_answer("POST", "/v1/quote", 200, quote)
    assert "the bank would reserve 600 credits" in instance.cli("quote", "job.sub") and "CREDITS" in instance.cli("quote", "job.sub")
    instance.write("free.sub", sh("true"))
    assert instance.json("quote", "free.sub")["credits"] == 0
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
    held = next(n for n, state in enumerate(states) if state == "held")
    why = instance.cli("why", f"{request}.{held}")
    assert "physics" in why and "in the bank" in why and "deposit" in why
    books_balance(instance)
    instance.cli("bank", "deposit", "physics", "5000")
    instance.cli("release", str(request))
    instance.wait(request)
    assert books_balance(instance)["earned"] >= 1000


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
    assert order("ann", "refund", account="physics", amount=20) == 403
    assert order("op", "refund", account="physics", amount=20) == 200
    assert order("ann", "open", account="physics.cms") == 200
    assert order("ann", "transfer", account="physics", to="physics.cms", amount=100) == 200
    assert order("ann", "transfer", account="physics", to="other", amount=100) == 404
    assert order("ann", "member", account="physics.cms", user="eve@test", role="user") == 200
    assert world("eve", "GET", "/v1/bank")[1]["accounts"][0]["name"] == "physics.cms"
    assert order("bob", "quote", account="physics", duration_ms=1000, end_ms=4000000000000) == 400
    assert order("bob", "quote", account="physics", duration_ms=1000, amount=0) == 400
    books_balance(instance)


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
    assert account(instance)["balance"] == 100
    books_balance(instance)


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
