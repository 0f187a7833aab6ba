"""An agent with a good certificate that lies about everything: what it may say of others' attempts and of its own, and what must
come of each. docs/protocol.md has the table of what the server checks."""
import contextlib
import hashlib
import os
import socket
import sqlite3
import struct
import subprocess
import threading
import time

import pytest

import agents
from drover import free_port, made, sh, wait_until
from wire import Ended, Liar, pack

DATA = b"what the honest agent's job has written\n"
HASH = hashlib.sha256(DATA).digest()


class Site:
    """A server, an honest agent that has a job with an input file, and one that lies."""

    def __init__(self, instance):
        self.instance = instance
        self.server = instance.server()
        self.honest, self.liar = (Liar(instance, name, "--owners", "any") for name in ("honest", "liar"))
        self.liar.hello()

    def job(self, **more):
        """A job that the honest agent has accepted: its attempt."""
        self.honest.hello()
        request = self.instance.submit(sh("true", queue="queue", transfer_input_files="in.txt",
                                          should_transfer_files="YES", **more))
        self.honest.offer()
        attempt = self.honest.take(request)[0]
        self.honest.ping()
        self.honest.wire.send(withdraw={"queue": "q"})
        return attempt

    def text(self, attempt):
        return f"{attempt['request']}.{attempt['member']}"

    def state(self, attempt):
        return self.instance.job(self.text(attempt))["state"]

    def store(self, agent, attempt, data=DATA):
        agent.wire.send(spool_write={**attempt, "sha256": hashlib.sha256(data).digest(), "data": data, "last": True})
        return agent.wire.until("spool_stored")

    def finish(self, attempt, **more):
        """The honest agent's result; the files that the job has then."""
        self.honest.wire.send(result={"jobs": [{**attempt, "steps": [{"exit_code": 0}], **more}]})
        self.honest.wire.until("result_ack")
        wait_until(lambda: self.state(attempt) == "completed")
        return self.instance.api("GET", f"/v1/jobs/{self.text(attempt)}/files")["files"]

    def welcome_liar(self):
        """The liar has a new session, whatever became of the last."""
        self.liar.hello()


@pytest.fixture(scope="module")
def site(request):
    with made(request, "l-") as one:
        one.write("in.txt", "the input\n")
        yield Site(one)


def output(data=DATA, **more):
    return {"name": "out.txt", "sha256": hashlib.sha256(data).digest(), "size": len(data), "mode": 0o644, **more}


def batch(attempt):
    return [{"request": attempt["request"], "fence": attempt["fence"], "members": [{"first": attempt["member"], "count": 1}]}]


# ---- of an attempt that another agent has: nothing may come of it

OF_OTHERS = {
    "result": lambda a: {"result": {"jobs": [{**a, "steps": [{"exit_code": 3}], "outputs": [output()]}]}},
    "result, lost": lambda a: {"result": {"jobs": [{**a, "outcome": 5}]}},
    "result, held": lambda a: {"result": {"jobs": [{**a, "outcome": 1, "hold_code": 6, "reason": "it is mine"}]}},
    "checkpoint": lambda a: {"checkpoint": {**a, "outputs": [output()]}},
    "accept": lambda a: {"accept": {"queue": "q", "attempts": batch(a)}},
    "refuse": lambda a: {"refuse": {"queue": "q", "attempts": batch(a), "reason": "no", "hold": True}},
    "started": lambda a: {"started": {"attempts": batch(a), "at_ms": 1}},
    "inventory": lambda a: {"inventory": {"running": batch(a)}},
    "inventory, finished": lambda a: {"inventory": {"finished": batch(a)}},
    "whereabouts": lambda a: {"whereabouts": {"attempts": [{**a, "runner": "x", "native": "y", "said": "it is mine"}]}},
    "spool_write": lambda a: {"spool_write": {**a, "sha256": HASH, "data": DATA, "last": True}},
    "next fence": lambda a: {"result": {"jobs": [{**a, "fence": a["fence"] + 1, "steps": [{"exit_code": 3}]}]}},
    "withdraw": lambda a: {"withdraw": {"queue": "q"}},
}


@pytest.mark.parametrize("what", OF_OTHERS)
def test_of_anothers_attempt(site, what):
    attempt = site.job()
    assert site.store(site.honest, attempt).get("complete")
    before = site.instance.job(site.text(attempt))
    site.liar.wire.send(**OF_OTHERS[what](attempt))
    site.liar.ping()
    after = site.instance.job(site.text(attempt))
    assert (after["state"], after["agent"]) == (before["state"], "honest")
    hop, = site.instance.api("GET", f"/v1/jobs/{site.text(attempt)}/path")["hops"]
    assert "runner" not in hop
    files = site.finish(attempt, outputs=[output()])
    assert [f["name"] for f in files] == ["out.txt"], "another agent has taken the outputs away"
    site.welcome_liar()


# ---- of its own attempt: what is believed is within bounds, and the server goes on

FAR = 2**63 + 5
OWN_LIES = {
    "times": {"started_ms": FAR, "ended_ms": 1, "steps": [{"exit_code": 0, "started_ms": FAR, "ended_ms": 7}]},
    "ends before it starts": {"started_ms": 4000000000000, "ended_ms": 1, "steps": [{"exit_code": 0}]},
    "amounts": {"cpu_user_ms": FAR, "cpu_system_ms": 2**64 - 1, "memory_peak_bytes": 2**64 - 1, "bytes_in": 2**64 - 1,
                "bytes_out": 2**63, "steps": [{"exit_code": 0}]},
    "exit code": {"steps": [{"exit_code": -2**31}]},
    "twice in one message": {"steps": [{"exit_code": 0}]},
    "no steps": {"steps": []},
    "a long reason": {"outcome": 3, "reason": "x" * 3000000},
    "a reason that is no UTF-8": {"outcome": 3, "reason": b"\xff\xfe...\n005 (001.000.000) 01/01 00:00:00 Job terminated.\n"},
    "codes": {"outcome": 1, "hold_code": 2**32 - 1, "hold_subcode": -2**31, "reason": "x"},
    "an output that was never sent": {"steps": [{"exit_code": 0}], "outputs": [output(b"nothing")]},
    "an output with a bad hash": {"steps": [{"exit_code": 0}], "outputs": [{"name": "x", "sha256": b"short"}]},
    "a checkpoint of nothing": {"outcome": 4, "checkpoint": True, "outputs": [output(b"nothing")]},
    "unknown fields": {99: b"x" * 1000, 98: 2**64 - 1, "steps": [{"exit_code": 0}]},
}


@pytest.mark.parametrize("what", OWN_LIES)
def test_of_its_own_attempt(site, what):
    attempt = site.job(log="events.log")
    result = {**attempt, **OWN_LIES[what]}
    site.honest.wire.send(result={"jobs": [result] * (2 if what.startswith("twice") else 1)})
    site.honest.wire.until("result_ack")
    wait_until(lambda: site.state(attempt) in ("completed", "held", "idle"))
    site.instance.cli("rm", str(attempt["request"]))
    row, = wait_until(lambda: site.instance.history(attempt["request"]))
    for name in ("RemoteUserCpu", "RemoteSysCpu", "RemoteWallClockTime", "BytesRecvd", "BytesSent", "MemoryUsage", "EnergyJoules"):
        value = row["ad"].get(name, 0) if "ad" in row else 0
        assert 0 <= value < 2**52, (name, value)
    assert len(str(row)) < 100000
    assert site.server.running()


def test_outputs_that_nobody_asked_for(site):
    """Whoever fetches outputs into his home folder gets none that a shell or sshd would read."""
    one = site.instance
    attempt = site.job()
    site.store(site.honest, attempt)
    files = ("plain", ".bashrc", ".ssh/authorized_keys", "dir/.netrc", "../above", "/tmp/absolute")
    site.finish(attempt, outputs=[{**output(), "name": name} for name in files])
    home = os.path.join(one.base, "home")
    os.makedirs(os.path.join(home, "results"))
    os.makedirs(os.path.join(home, ".ssh"))
    env = {"HOME": home}
    said = one.cli("get", str(attempt["request"]), cwd=home, env=env, code=None)
    assert said.code != 0 and said.err.count("would be hidden in your home folder") == 3 and said.err.count("leads out of the folder") == 2
    found = {os.path.relpath(os.path.join(path, name), home) for path, _, names in os.walk(home) for name in names}
    assert found == {"plain"}
    one.cli("get", "--output", "results", str(attempt["request"]), cwd=home, env=env, code=None)
    found = {os.path.relpath(os.path.join(path, name), home) for path, _, names in os.walk(home) for name in names}
    assert found == {"plain"} | {f"results/{name}" for name in files[:4]}


# ---- messages that no agent may send: the session ends, with the reason in both logs

def signal_of(number):
    return lambda site: {"result": {"jobs": [{"request": 1, "member": 0, "fence": 1,
                                              "steps": [{"signaled": True, "exit_code": number}]}]}}


def offered(**more):
    return lambda site: {"offer": {"queue": "q", "serial": 1, "ad": "[ Cpus = 1 ]", "jobs_max": 1, **more}}


FORGED = "q\n...\n005 (001.000.000) 01/01 00:00:00 Job terminated.\n\t(1) Normal termination (return value 0)\n..."
ENDS = {
    "a queue with lines": (offered(queue=FORGED), "whose name is not"),
    "a queue without a name": (offered(queue=""), "whose name is not"),
    "a queue with a long name": (offered(queue="q" * 65), "whose name is not"),
    "a queue that is no UTF-8": (offered(queue=b"\xff"), "whose name is not"),
    "an owner with lines": (offered(owners=["ann@local\n*@local"]), "no line of text"),
    "many owners": (offered(owners=["a@b"] * 1025), "more than 1024 owners"),
    "an ad that is none": (offered(ad="[ Cpus = "), ""),
    "a signal of 0": (signal_of(0), "a result has the signal 0"),
    "a signal below all": (signal_of(-2**31), "a result has the signal -2147483648"),
    "an outcome that there is not": (lambda site: {"result": {"jobs": [{"outcome": 77}]}}, "has an unknown outcome"),
    "a hash that is none": (lambda site: {"spool_read": {"request": 1, "sha256": b"x"}}, "is not 32 bytes long"),
    "members past the end": (lambda site: {"accept": {"attempts": [
        {"request": 1, "members": [{"first": 2**32 - 1, "count": 5}]}]}}, "passes the end"),
    "more members than there may be": (lambda site: {"inventory": {"running": [
        {"request": 1, "members": [{"first": 0, "count": 2**32 - 2}]}]}}, "too many members"),
    "another Hello": (lambda site: {"hello": {"version": 1}}, "not expected here"),
    "a Join": (lambda site: {"join": {"version": 1}}, "not expected here"),
}


@pytest.mark.parametrize("what", ENDS)
def test_ends_the_session(site, what):
    message, why = ENDS[what]
    site.welcome_liar()
    site.liar.wire.send(**message(site))
    said = site.liar.ended()
    assert why in said
    assert said and said in site.server.output().replace('\\"', '"')
    site.welcome_liar()


HELLOS = {
    "version 0": ({"version": 0}, "version 1"),
    "a host with lines": ({"hostname": FORGED}, "no line of text"),
    "a domain with lines": ({"filesystem_domain": "a\nb"}, "no line of text"),
    "a program that is no UTF-8": ({"program": b"\xc3("}, "no line of text"),
    "a long host": ({"hostname": "h" * 257}, "no line of text"),
}


@pytest.mark.parametrize("what", HELLOS)
def test_hellos(site, what):
    more, why = HELLOS[what]
    with pytest.raises(Ended, match=why):
        site.liar.hello(**more)
    site.welcome_liar()


def test_bytes_that_are_no_message(site):
    for data in (b"\xff" * 50, b"\x12\xff\xff\xff\xff\x0f", b"\x0a\x03\x08\x01", b"\x12" * 4000):
        site.welcome_liar()
        site.liar.wire.send_bytes(data)
        site.liar.ended()
    site.welcome_liar()
    site.liar.wire.send(**{})  # of no kind
    site.liar.wire.send_bytes(b"\xba\x3e\x03abc")  # of a kind that there is not
    site.liar.ping()


# ---- ads that lie

ADS = {
    "infinite and no numbers": '[ Cpus = real("INF"); Memory = real("NaN"); Disk = -5; Price = real("NaN"); Speed = real("INF"); '
                               'QueueWait = real("-INF"); SearchOrder = -1; TotalCpus = real("NaN") ]',
    "more than there is": '[ Cpus = 9223372036854775807; Memory = 9223372036854775807; Disk = 9223372036854775807; GPUs = '
                          '9223372036854775807; TotalCpus = 9223372036854775807; TotalMemory = 9223372036854775807 ]',
    "less than nothing": '[ Cpus = -9223372036854775807; Memory = -1; Disk = -1; GPUs = -9223372036854775807; Price = -1e300 ]',
    "texts for numbers": '[ Cpus = "many"; Memory = {1, 2}; Disk = [ x = 1 ]; Requirements = "yes"; Rank = error; Tags = 7 ]',
    "itself": "[ Cpus = Cpus; Memory = Disk; Disk = Memory; Requirements = Requirements ]",
    "names of others": '[ Cpus = 1; Name = "honest"; AgentName = "honest"; Machine = "honest"; QueueName = "q" ]',
}


@pytest.mark.parametrize("what", ADS)
def test_ads(site, what):
    """Jobs are matched all the same, and a queue of the liar is named after it."""
    site.liar.offer("lies", ADS[what], jobs_max=2**32 - 1, owners=["nobody@nowhere"], wishes=[9, 1, 1, 1, 1, 1])
    site.liar.ping()
    attempt = site.job(priority="5")
    site.finish(attempt)
    queues = {q["name"] for a in site.instance.agents() if a["name"] == "liar" for q in a["queues"]}
    assert "lies" in queues
    for agent in site.instance.agents():
        for queue in agent["queues"]:
            assert queue["ad"]["AgentName"] == agent["name"]
    site.liar.wire.send(withdraw={"queue": "lies"})


PATTERN = f'regexp("(?:a?){{12}}[bc]d", "{"a" * 100}d")'
ASKED = ("Cpus", "Memory", "Disk", "TotalCpus", "TotalMemory", "QueueWait", "QueueWaitUnknown", "Price", "Speed", "SearchOrder", "Unreachable",
         "WhyClosed", "NodeFailed", "NodeBootId", "NodeProviderId", "NodeImage", "NodeSize", "NodePrice", "DrainWhen", "CloseWhen", "NotifyWhen", "Leaving", "Tags")


def test_offers_that_take_long_to_read(request):
    """Each attribute that the core asks for is a pattern that takes long. Together they take what one may take: an offer held the core for a
    quarter of a second, and there may be a thousand on their way. Such a queue is closed, and says why."""
    with made(request, "ll-") as one:
        one.server()
        liar = Liar(one, "liar", "--owners", "any", "--tags", "a,b,c")
        liar.hello()
        ad = "[ H = " + PATTERN + "; " + "; ".join(f"{name} = H ? 1 : 2" for name in ASKED) + " ]"
        for _ in range(400):
            liar.offer("slow", ad)
        liar.offer("quick")
        liar.ping()
        queues = {q["name"]: q for a in one.agents() for q in a["queues"]}
        assert "takes more than 20000 steps to find out" in queues["slow"]["closed"]
        assert not queues["quick"].get("closed") and queues["quick"]["offer"]
        assert liar.take(one.submit(sh("true", request_cpus="1")))
        liar.wire.close()


def test_what_a_machine_says_of_itself(request):
    """Its health changes with each offer, and its facts: the log has a few of them. What it says of itself has lines of its own, and is UTF-8."""
    with made(request, "lh-") as one:
        one.server()

        def records():
            with contextlib.closing(sqlite3.connect(f"file:{one.dir}/drover.db?mode=ro", uri=True, timeout=90)) as db:
                return db.execute("SELECT max(seq) FROM log").fetchone()[0] or 0

        liar = Liar(one, "liar", "--owners", "any")
        liar.hello()
        before, began = records(), time.monotonic()
        for n in range(2000):
            failed = f'NodeFailed = "why {n}"; ' if n % 2 else ""
            liar.offer(f"q{n % 4}", f'[ Cpus = 1; {failed}NodeImage = "x{n}"; NodeBootId = "b\\nprice=0\\nname=honest"; NodePrice = "{"é" * 200}" ]')
        liar.ping()
        assert records() - before < 20 + 6 * (time.monotonic() - began)
        machine = wait_until(lambda: one.api("GET", "/v1/nodes/liar")["machine"])
        assert machine["boot_id"] == "b" and set(machine) == {"boot_id", "image", "price"}
        assert machine["price"].strip("é\ufffd") == "" and len(machine["price"]) >= 128
        liar.wire.close()


# ---- what the token allows

USERS = ("ann@local", "bob@local")


def submit_as(site, who, **more):
    """A job of another user, with an input and a credential of his."""
    env = {"DROVER_DIR": "", "DROVER_SERVER": f"https://127.0.0.1:{site.port}",
           "DROVER_TOKEN": site.instance.json("token", "user", "--name", who)["token"]}
    site.instance.cli("credential", "add", "key", "--type", "file", "in.txt", env=env)
    return site.instance.submit(sh("true", transfer_input_files="in.txt", should_transfer_files="YES", credentials="key",
                                   **more), env=env)


class Two(Site):
    """A server whose API is also on TCP, so that there are other users."""

    def __init__(self, instance):
        self.instance = instance
        self.port = free_port()
        self.server = instance.server("--api-listen", f"127.0.0.1:{self.port}")


@pytest.fixture(scope="module")
def two(request):
    with made(request, "lt-") as one:
        one.write("in.txt", "the input\n")
        yield Two(one)


CEILINGS = {
    "one owner": (["--owners", "ann@local"], {"offers": (), "gets": "ann@local"}),
    "one owner, and offers another": (["--owners", "ann@local"], {"offers": ("bob@local",), "gets": None}),
    "one owner, and offers all": (["--owners", "ann@local"], {"offers": ("*@local",), "gets": "ann@local"}),
    "a domain": (["--owners", "*@elsewhere"], {"offers": (), "gets": None}),
    "nothing said, one offered": ([], {"offers": ("bob@local",), "gets": "bob@local"}),
    "nothing said, offers to all": ([], {"offers": (), "gets": None}),
    "nothing said, offers to two": ([], {"offers": USERS, "gets": None}),
    "nothing said, an own user for each": ([], {"offers": (), "own_users": True, "gets": "bob@local"}),
    "any": (["--owners", "any"], {"offers": (), "gets": "bob@local"}),
}


@pytest.mark.parametrize("what", CEILINGS)
def test_the_tokens_owners(two, what):
    options, want = CEILINGS[what]
    liar = Liar(two.instance, f"liar{list(CEILINGS).index(what)}", *options)
    assert liar.hello() == {}
    requests = {who: submit_as(two, who) for who in reversed(USERS)}
    more = {"own_users": True} if want.get("own_users") else {}
    liar.offer(owners=want["offers"], jobs_max=1, **more)
    liar.ping()
    try:
        states = {who: two.instance.job(f"{request}.0") for who, request in requests.items()}
        matched = [who for who, job in states.items() if job["state"] != "idle"]
        assert matched == ([want["gets"]] if want["gets"] else [])
    finally:
        for request in requests.values():
            two.instance.cli("rm", str(request))
        liar.wire.close()


def test_inputs_and_credentials_stay_with_who_may(two):
    """An agent that had a job before its token was bounded is given nothing of it any more."""
    first = Liar(two.instance, "turned", "--owners", "any")
    first.hello()
    request = submit_as(two, "bob@local")
    first.offer(owners=["bob@local"])
    attempt = first.take(request)[0]
    assert read_input(two, first, request) == b"the input\n"
    assert ask_credential(first, request).get("data") == b"the input\n"
    assert "error" in ask_credential(first, request, part=1)
    first.wire.close()
    then = Liar(two.instance, "turned", "--owners", "ann@local")
    then.hello(running=batch(attempt))
    assert read_input(two, then, request) is None
    assert "data" not in ask_credential(then, request)
    other = Liar(two.instance, "other", "--owners", "any")
    other.hello()
    assert read_input(two, other, request) is None
    assert "data" not in ask_credential(other, request)


def read_input(site, agent, request):
    digest = hashlib.sha256(b"the input\n").digest()
    agent.wire.send(spool_read={"request": request, "sha256": digest, "length": 100})
    return agent.wire.until("spool_data").get("data")


def ask_credential(agent, request, part=0):
    agent.wire.send(credential_get={"request": request, "part": part, "name": "key"})
    return agent.wire.until("credential")


def test_folders_of_others(two):
    """condor_transfer_data brings outputs into the folder that a job's owner has named. Whoever may look at jobs of others has none written
    into a folder of his by them."""
    one = two.instance
    folder = os.path.join(one.base, "keys-of-root")
    os.makedirs(folder)
    one.write(f"{folder}/in.txt", "the input\n")
    agent = Liar(one, "runs", "--owners", "any")
    agent.hello()
    request = submit_as(two, "bob@local", initialdir=folder)
    agent.offer(owners=["bob@local"])
    attempt = agent.take(request)[0]
    agent.wire.send(spool_write={**attempt, "sha256": HASH, "data": DATA, "last": True})
    agent.wire.until("spool_stored")
    agent.wire.send(result={"jobs": [{**attempt, "steps": [{"exit_code": 0}], "outputs": [output()]}]})
    agent.wire.until("result_ack")
    wait_until(lambda: one.history(request))
    tool = os.path.join(one.build, "bin", "condor", "condor_transfer_data")
    for words in (["-all"], [str(request)], ["bob@local"]):
        p = subprocess.run([tool, *words], env=one.env, cwd=one.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=90, check=False, text=True)
        assert p.returncode == 1 and "it is bob@local's, who has said into which folder" in p.stderr, (p.stdout, p.stderr)
    assert os.listdir(folder) == ["in.txt"]
    agent.wire.close()


def test_tags(two):
    """Of the Tags that an offer claims those of the token count."""
    for name, options, ad, tags in (("t1", ["--tags", "slow,big"], '{"fast", "BIG"}', ["big"]), ("t2", [], '{"fast"}', ["fast"]),
                                    ("t3", ["--tags", "slow"], 'split("fast slow")', ["slow"]), ("t4", ["--tags", "a"], '7', [])):
        liar = Liar(two.instance, name, "--owners", "any", *options)
        liar.hello()
        liar.offer(ad=f'[ Cpus = 1; Tags = {ad} ]', jobs_max=0)
        liar.ping()
        queue, = (q for a in two.instance.agents() if a["name"] == name for q in a["queues"])
        assert queue["ad"]["Tags"] == tags
        liar.wire.close()


def test_what_an_agent_may_offer_at_most(two):
    """Of the numbers that an offer claims no more counts than the token says, neither by name, nor as a total, nor by an expression for each job."""
    most = "Cpus=2,Memory=4096,gpus=0"
    for name, options, ad, seen in (
            ("m1", ["--most", most], "Cpus = 64; TotalCpus = 64; Memory = 1000000; Disk = 7", {"Cpus": 2, "TotalCpus": 2, "Memory": 4096, "Disk": 7}),
            ("m2", ["--most", most], "Cpus = 1; TotalCpus = 2; Memory = 4095.9; GPUs = 8", {"Cpus": 1, "TotalCpus": 2, "Memory": 4095, "GPUs": 0}),
            ("m3", ["--most", most], 'Cpus = ifThenElse(TARGET.JobPrio is undefined, 1, 999); Memory = "much"; TotalMemory = -1e300',
             {"Cpus": 1, "Memory": 0, "TotalMemory": 0}),
            ("m4", [], "Cpus = 64; Memory = 5000", {"Cpus": 64, "Memory": 5000})):
        liar = Liar(two.instance, name, "--owners", "any", *options)
        liar.hello()
        liar.offer(ad=f"[ {ad} ]", jobs_max=0)
        liar.ping()
        queue, = (q for a in two.instance.agents() if a["name"] == name for q in a["queues"])
        assert {k: queue["ad"].get(k) for k in seen} == seen
        assert "GPUs" in seen or "GPUs" not in queue["ad"]
        liar.wire.close()
    for bad in ("Cpus", "Cpus=-1", "Cpus=8G", "1=2"):
        assert "most is NAME=NUMBER" in two.instance.cli("token", "agent", "--name", "m5", "--most", bad, code=2).err
    assert "for tokens of agents" in two.instance.cli("token", "user", "--most", most, code=2).err


def test_the_role_of_a_token(two):
    """It is never more than its user's today."""
    for role in ("operator", "admin"):
        status, answer = two.instance.call("POST", "/v1/tokens", {"kind": "user", "name": "ann@local", "role": role})
        assert status == 400 and "has the role user here" in answer["error"]["message"]
    own = two.instance.json("token", "user", "--role", "admin")
    left = own["expires_ms"] / 1000 - time.time()
    assert 89 * 86400 < left <= 90 * 86400


def test_the_role_of_a_token_follows_its_user(request):
    with made(request, "lr-") as one:
        port = free_port()
        config = os.path.join(one.base, "droverd.yaml")
        args = ["--api-listen", f"127.0.0.1:{port}", "--config", config]

        def start(text):
            with open(config, "w", encoding="utf-8") as f:
                f.write(text)
            one.server(*args)

        start("admins: [ann@local]\n")
        token = one.json("token", "user", "--name", "ann@local", "--role", "admin")["token"]
        joining = [one.json("token", "agent", "--name", name, env={"DROVER_DIR": "", "DROVER_TOKEN": token,
                                                                   "DROVER_SERVER": f"https://127.0.0.1:{port}"})["token"]
                   for name in ("a1", "a2")]
        env = {"DROVER_DIR": "", "DROVER_SERVER": f"https://127.0.0.1:{port}", "DROVER_TOKEN": token}
        one.cli("token", "list", env=env)
        first = Liar(one, "a1", token=joining[0])
        first.hello()
        assert "owners" not in first.welcome
        one.kill_server()
        start("admins: []\n")
        assert one.cli("token", "agent", "--name", "x", env=env, code=None).code != 0
        then = Liar(one, "a2", token=joining[1])
        then.hello()
        assert then.welcome["owners"] == "ann@local"
        first.wire.close()
        then.wire.close()


def test_a_session_ends_with_its_certificate(request):
    with made(request, "lc-") as one:
        config = os.path.join(one.base, "droverd.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write("agent_certificate: 3s\n")
        one.server("--config", config)
        liar = Liar(one, "brief")
        liar.hello()
        assert "certificate of this session has expired" in liar.ended()
        with pytest.raises(Ended):
            liar.hello()


# ---- floods: what one agent can make the server keep is bounded

def memory(pid):
    with open(f"/proc/{pid}/statm", encoding="utf-8") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rss(site):
    return memory(site.server.pid)


def test_many_queues(two):
    liar = Liar(two.instance, "flood", "--owners", "any")
    liar.hello()
    liar.ping()
    before = rss(two)
    for pad, why in ((25000, "the ads of one agent's queues have more"), (1, "more than 512 queues of one agent")):
        with pytest.raises(Ended, match=why):
            for i in range(4000):
                liar.offer(f"q{i}", f'[ Cpus = 1; Pad = "{"x" * pad}" ]', jobs_max=1)
                if i % 20 == 0:
                    liar.ping()
        for _ in range(2):
            liar.hello()
    assert rss(two) - before < 80 << 20
    for _ in range(2):
        liar.hello()  # what was not offered in the session before is forgotten
    queues, = (a["queues"] for a in two.instance.agents() if a["name"] == "flood")
    assert len(queues) <= 512 and all("Pad" not in q["ad"] for q in queues)
    liar.offer("q1", jobs_max=1)
    liar.ping()
    liar.wire.close()


def test_many_certificates(two):
    """Each certificate is kept until its end: an agent that asks for a new one with each Hello gets so many."""
    liar = Liar(two.instance, "renewing")
    csr = subprocess.run(["openssl", "req", "-new", "-key", os.path.join(liar.folder, "agent.key"), "-subj", "/CN=renewing"],
                         stdout=subprocess.PIPE, check=True, timeout=90).stdout
    given = 1
    for _ in range(70):
        liar.hello(csr_pem=csr)
        given += "cert_pem" in liar.welcome
    assert given == 64
    liar.wire.close()


def test_many_names(two):
    """Names of attributes are kept for ever: one agent brings so many of them and no more."""
    liar = Liar(two.instance, "names", "--owners", "any")
    liar.hello()
    liar.offer(jobs_max=1)  # the names of an ordinary ad are known from now on
    liar.ping()
    refused = 0
    for i in range(30):
        liar.hello()
        liar.offer(ad="[ " + "; ".join(f"N{i}x{k} = 1" for k in range(5000)) + " ]", jobs_max=1)
        try:
            liar.ping()
        except Ended as e:
            assert "names of attributes" in str(e)
            refused += 1
    assert refused >= 25
    liar.hello()
    liar.offer(jobs_max=1)
    liar.ping()
    liar.wire.close()


# ---- floods of messages: one agent holds up neither the others nor the API, and the server keeps little of what it has said

FLOODS = {
    "offers": lambda n: {"offer": {"queue": f"q{n % 4}", "serial": n, "jobs_max": 1, "ad": PAD_AD}},
    "files of its cache": lambda n: {"cache_delta": {"full": True, "added": [{"file": n * 4000 + i, "size": 1} for i in range(4000)]}},
    "where attempts are": lambda n: {"whereabouts": {"attempts": [{"request": n + i, "native": "x" * 40} for i in range(200)]}},
    "inventories": lambda n: {"inventory": {"running": [{"request": n + i, "fence": 1, "members": [{"first": 0, "count": 100}]}
                                                        for i in range(50)]}},
    "questions": lambda n: {"spool_read": {"request": n, "sha256": HASH, "length": 1 << 20}},
}
PAD_AD = "[ Cpus = 1; Memory = 1000; " + "; ".join(f"Pad{i} = {{ 1, 2, 3, 4 }}" for i in range(400)) + " ]"
FLOOD_BYTES = 48 << 20
FLOOD_CHUNK = 2 << 20


class Flood(threading.Thread):
    """An agent that says so much as it can send, and does not listen. When the server has ended its session it begins another."""

    def __init__(self, liar, what):
        super().__init__()
        self.liar, self.sent, self.over, self.why = liar, 0, False, None
        frames, n = b"", 0
        while len(frames) < FLOOD_CHUNK:
            n += 1
            message = pack("ToServer", FLOODS[what](n))
            frames += struct.pack("<I", len(message)) + message
        self.frames = frames

    def run(self):
        try:
            while not self.over:
                self.liar.hello()
                try:
                    while not self.over:
                        self.liar.wire.socket.sendall(self.frames)
                        self.sent += len(self.frames)
                except OSError:
                    pass
        except (Ended, OSError, AssertionError) as e:
            self.why = e

    def stop(self):
        """Ends the session that it writes to. It may be between two, with the old connection closed: then the next one is ended."""
        self.over = True
        for _ in range(900):
            try:
                self.liar.wire.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self.join(0.1)
            if not self.is_alive():
                return
        raise AssertionError("the flood does not end")


@pytest.mark.parametrize("what", FLOODS)
def test_flood_of_messages(request, what):
    with made(request, "lm-") as one:
        server = one.server()
        agents.start(one, "cpus: 2\n", "busy")
        wait_until(lambda: one.agents("connected"))
        flood = Flood(Liar(one, "flood", "--owners", "any"), what)
        one.run(sh("true"))
        before, most = memory(server.pid), 0
        flood.start()
        try:
            while flood.sent < FLOOD_BYTES:
                one.run(sh("true", queue="queue 5"))
                assert one.call("GET", "/v1/agents")[0] == 200
                most = max(most, memory(server.pid))
                assert flood.is_alive(), flood.why
        finally:
            flood.stop()
        assert most - before < 200 << 20
        wait_until(lambda: [a["name"] for a in one.agents("connected")] == ["busy"])


# ---- the end

def test_what_is_kept_is_whole(site):
    """After all of it the server's state passes its own check, also when it is read again."""
    site.server.stop()
    site.instance.daemons.remove(site.server)
    check = subprocess.run([site.instance.program("droverd"), "--dir", site.instance.dir, "--check"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=90, check=False)
    assert check.returncode == 0 and "\nok" in check.stdout, check.stdout
