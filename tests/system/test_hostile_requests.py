"""A user whose requests are well formed, and made to get at what is others' or to take the server's memory: each test is a table of
attempts and of what must come of each."""
import contextlib
import json
import os
import threading
import uuid

import pytest

from drover import UnixConnection, made, sh, wait_until
from sssrmap import envelope, request as message
from test_hostile_batch import peak_mib
from test_hostile_client import MIB, World, everything, head, many


@pytest.fixture(scope="module")
def world(request):
    with made(request, "hr-") as plain:
        one = World.__new__(World)
        one.__dict__.update(plain.__dict__)
        try:
            one.begin()
            yield one
        finally:
            one.stop()


@pytest.fixture(autouse=True)
def serves_on(world):
    """Whatever was tried, the server still runs, and serves."""
    pid = world.server_pid()
    yield
    assert world.as_user("alice", "GET", "/v1/server")[0] == 200
    assert world.server_info()["accepting"] is True and world.server_pid() == pid


def submit(world, attributes, rows=1, **more):
    """Mallory's request, on hold. Returns its number."""
    part = {"attributes": {"Cmd": '"/bin/true"', **attributes}, **more}
    if rows > 1:
        part["steps"] = rows
    status, got = world.as_user("mallory", "POST", "/v1/requests", {"uuid": str(uuid.uuid4()), "parts": [part], "hold": True})
    assert status == 201, got
    return got["id"]


def act(world, action, *ids, **more):
    status, got = world.as_user("mallory", "POST", "/v1/actions", {"action": action, "ids": list(ids), **more})
    assert status == 200, got
    return got["affected"]


@contextlib.contextmanager
def grows_by_less(world, most):
    """The server never has so many bytes more than now."""
    pid = world.server_pid()
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as f:
        f.write("5")  # the peak is counted anew: proc_pid_clear_refs(5)
    before = world.memory()
    yield
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        peak = next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))
    assert peak - before < most, (peak - before) / MIB


# ---- a checksum is no key ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def secret(world):
    """The checksum of a file that Alice has in the spool."""
    upload = world.as_user("alice", "POST", "/v1/uploads")[1]["id"]
    assert world.as_user("alice", "PUT", f"/v1/uploads/{upload}?offset=0", b"what Alice alone knows")[0] == 200
    return world.as_user("alice", "POST", f"/v1/uploads/{upload}/finish")[1]["sha256"]


FORGED = '{ [ Name = "%s"; Size = 22; Mode = 420; Sha256 = "HASH" ] }'
CLAIMS = {
    "outputs that it never had": ({"DroverOutputs": FORGED % "x"}, {}),
    "in small letters": ({"droveroutputs": FORGED % "x"}, {}),
    "of each job": ({"DroverOutputs": FORGED % "$(Name)"},
                    {"late": ["DroverOutputs"], "variables": ["Name"], "items": "x\ny\n", "rows": 2}),
    "by another name": ({"DroverOutputs": "Mine", "Mine": FORGED % "x"}, {}),
    "a log that it never had": ({"DroverLog": '{ "1 executing 1 agent queue 0 forged" }'}, {}),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_checksum_is_no_key(world, secret, claim):
    attributes, more = CLAIMS[claim]
    number = submit(world, {k: v.replace("HASH", secret) for k, v in attributes.items()}, **more)
    ask = lambda path: world.as_user("mallory", "GET", f"/v1/jobs/{number}.0/{path}")  # noqa: E731
    for state in ("held", "removed"):
        assert ask("files/x")[0] == 404, state
        assert ask("files")[1]["files"] == []
        assert "forged" not in json.dumps(ask("log")[1])
        if state == "held":
            assert act(world, "remove", str(number)) >= 1
    assert world.as_user("mallory", "GET", f"/v1/requests/{number}/files")[1]["files"] == []


def test_uploads_of_others(world, secret):
    """Items and input files that Mallory knows by their checksum only."""
    part = {"attributes": {"Cmd": '"/bin/true"'}}
    for what in ({"parts": [part], "spooled": [{"name": "x", "size": 22, "sha256": secret}]},
                 {"parts": [{**part, "variables": ["x"], "items_upload": secret}]}):
        status, got = world.as_user("mallory", "POST", "/v1/requests", {"uuid": str(uuid.uuid4()), **what})
        assert (status, got["error"]["code"]) == (400, "bad_upload")


@pytest.mark.parametrize("kind", ["user", "agent"])
def test_a_token_makes_none_that_outlives_it(world, kind):
    """A token that was lent for some minutes is of no use after them."""
    made_by = world.json("token", "user", "--role", "admin", "--expires", "600")
    world.tokens["guest"] = made_by["token"]
    ends = next(t["expires_ms"] for t in world.api("GET", "/v1/tokens")["tokens"] if t["id"] == made_by["id"])
    for seconds in (60, 10 * 365 * 86400):
        status, got = world.as_user("guest", "POST", "/v1/tokens", {"kind": kind, "expires_s": seconds})
        assert status == 201 and got["expires_ms"] <= ends, got


# ---- memory for the asking --------------------------------------------------------------------------------------


EVERYBODY = [f"{n}.0-4294967294" for n in range(1, 301)]


def test_members_that_no_request_has(world):
    """A number of a request with its members is a few letters, and must not become a set of all numbers."""
    with grows_by_less(world, 64 * MIB):
        status, got = world.as_user("mallory", "POST", "/v1/actions", {"action": "hold", "ids": EVERYBODY})
        assert (status, got["error"]["code"]) == (400, "bad_id")
        for path in ("wait?ids=", "jobs?id=", "history?id="):
            assert world.as_user("mallory", "GET", f"/v1/{path}{','.join(EVERYBODY[:100])}")[0] == 400, path


def test_one_job_named_twice_is_one(world):
    number = submit(world, {})
    assert world.as_user("mallory", "GET", f"/v1/wait?ids={number}.0,{number}.0&timeout_ms=0")[1]["jobs"] == 1


def test_more_late_names_than_attributes(world):
    part = {"attributes": {"Cmd": '"/bin/true"'}, "late": ["Cmd"] * 1001}
    status, got = world.as_user("mallory", "POST", "/v1/requests", {"uuid": str(uuid.uuid4()), "parts": [part]})
    assert status == 400 and '"parts[0].late" must have at most 1000 members' in got["error"]["message"], got


def test_jobs_that_come_from_elsewhere(world):
    """Where each of them is is kept for who handed them on; he need not be a server."""
    origin = {"servers": str(uuid.uuid4()), "owner": "x@y", "label": "", "path": "", "job": "1.0", "hops_left": 1}
    part = {"attributes": {"Cmd": '"/bin/true"'}, "steps": 10_000}
    with grows_by_less(world, 100 * MIB):
        for _ in range(80):
            status, got = world.as_user("mallory", "POST", "/v1/requests", {"uuid": str(uuid.uuid4()), "parts": [part], "hold": True,
                                                                            "origin": origin})
            assert status == 201, got
    paths = world.as_user("mallory", "GET", "/v1/paths?after=0")[1]
    assert len(paths["paths"]) == 1000 and paths["next"] > 0
    assert world.as_user("alice", "GET", "/v1/paths?after=0")[1]["paths"] == []


def document(value):
    """A request with a member that the server does not know, a list of as many such values as fit in."""
    return json.dumps({"uuid": str(uuid.uuid4()), "parts": [{"attributes": {"Cmd": '"/bin/true"'}}], "x": 0}).replace(
        '"x": 0', f'"x": [{",".join([value] * (7 * MIB // (len(value) + 1)))}]').encode()


@pytest.mark.parametrize("value", ["{}", "[]", "[[]]", '{"":0}', "0"])
def test_bodies_of_many_values(world, value):
    """An object of two letters takes a hundred times as much once it is read."""
    with grows_by_less(world, 64 * MIB):
        status, got = world.as_user("mallory", "POST", "/v1/requests?dry_run=1", document(value))
        assert (status, got["error"]["code"]) == (413, "too_large")


def test_brackets_in_text_are_text(world):
    body = document('"[{,\\\\\\",[{"')
    assert world.as_user("mallory", "POST", "/v1/requests?dry_run=1", body)[0] == 200


def part(attributes, late=(), items=None, **more):
    made = {"attributes": {"Cmd": '"/bin/true"', **attributes}, "late": list(late), **more}
    return made if items is None else {**made, "variables": ["x"], "items": items + "\n", "rows": 1}


def request_of(**what):
    return {"uuid": str(uuid.uuid4()), "hold": True, "parts": [part(**what)]}


LONG_TEXT = '"' + "z" * 1_000_000 + '"'
CLASSES = {
    "a long condition that all share": {"attributes": {"Requirements": f"{LONG_TEXT} != TARGET.y && TARGET.x > MY.A", "A": "$(Process)"}, "late": ["A"]},
    "a long list of files": {"attributes": {"TransferInput": '"$(x)$(Process)"'}, "late": ["TransferInput"], "items": "http://h/f" + ",http://h/f" * 90_000},
}


@pytest.mark.parametrize("what", CLASSES)
def test_jobs_that_differ_in_what_they_require(world, what):
    """Each of 900 kinds of jobs had all of it: 1.7 GB for a request of one MB, and 15 s of the core."""
    with grows_by_less(world, 300 * MIB):
        for path in "/v1/requests?dry_run=1", "/v1/quote":
            status, got = world.as_user("mallory", "POST", path, request_of(**CLASSES[what], steps=900))
            assert status == 200, got


COUNTED = {
    "kinds of jobs, each long": {"attributes": {"Requirements": '"$(x)" != "$(Process)"'}, "late": ["Requirements"], "items": "z" * 900_000,
                                 "steps": 900},
    "files of ten million jobs": {"attributes": {"TransferInput": '"' + ",".join(f"http://h/{n}/$(Process)" for n in range(16)) + '"'},
                                  "late": ["TransferInput"], "steps": 10_000_000},
    "lists": {"attributes": {"A": "{" + "~1," * 100_000 + "NUMBER}"}},
}


@pytest.mark.parametrize("what", COUNTED)
def test_what_a_request_takes_is_counted(world, what):
    """Also what is made of its text: this user may have 48 MB, and text of a kB, or of one MB, came to hundreds."""
    with grows_by_less(world, 250 * MIB):
        for n in range(30):
            request = json.loads(json.dumps(request_of(**COUNTED[what])).replace("NUMBER", str(n)))
            status, got = world.as_user("counted", "POST", "/v1/requests", request)
            if status != 201:
                break
    assert (status, got["error"]["code"]) == (429, "over_limit") and "max_queued_bytes" in got["error"]["message"], got
    world.as_user("counted", "POST", "/v1/actions", {"action": "remove", "constraint": "true"})


def test_programs_that_nobody_runs(world):
    """What is known of run times is kept by program: a dry run with seven names of a MiB left 24 MiB behind."""
    with grows_by_less(world, 150 * MIB):
        for n in range(20):
            parts = [{"attributes": {"Cmd": f'"{n}-{i}-{"x" * (MIB - 20)}"'}} for i in range(7)]
            assert world.as_user("mallory", "POST", "/v1/requests?dry_run=1", {"uuid": str(uuid.uuid4()), "parts": parts})[0] == 200


# ---- time for the asking -----------------------------------------------------------------------------------------


NAMES = [f"A{n}" for n in range(900)]
TOO_MUCH = "the attributes of one job that have macros come to more than 2048 KiB in all"
EXPANSIONS = {
    "references that never end": ({"A": '"' + "$(x" * 200000 + '"'}, ["A"], ["x"], "1"),
    "the same outside of a text": ({"A": "$(x" * 200000}, ["A"], ["x"], "1"),
    "references to references": ({n: '"' + "$(x)" * 1000 + '"' for n in NAMES}, NAMES, ["x", "y"], "$(y)" * 1000 + "\x1f"),
    "a long item, often": ({n: "$(x)" for n in NAMES}, NAMES, ["x"], "{" + "1," * 450000 + "1}"),
}


@pytest.mark.parametrize("what", EXPANSIONS)
def test_macros_that_expand_without_end(world, what):
    """Each of these held the core for 4 to 75 s in one call, a dry run, and again whenever somebody looked at the job."""
    attributes, late, variables, items = EXPANSIONS[what]
    part = {"attributes": {"Cmd": '"/bin/true"', **attributes}, "late": late, "variables": variables, "items": items + "\n", "rows": 1}
    for path in "/v1/requests?dry_run=1", "/v1/quote":
        status, got = world.as_user("mallory", "POST", path, {"uuid": str(uuid.uuid4()), "parts": [part]})
        assert status == 400 and TOO_MUCH in got["error"]["message"], got


def test_many_parts_and_many_files(world):
    """The names of the files that a request brings were indexed again for each part: one dry run held the core for minutes."""
    files = [{"name": f"f{n}", "size": 1, "sha256": "0" * 64} for n in range(60_000)]
    parts = [{"attributes": {"Cmd": '"x"', "TransferInput": '"f7"'}}] * 10_000
    status, got = world.as_user("mallory", "POST", "/v1/requests?dry_run=1", {"uuid": str(uuid.uuid4()), "parts": parts, "spooled": files})
    assert status == 400 and "make several requests" in got["error"]["message"], got


# ---- tasks of the Task Execution Service ------------------------------------------------------------------------

ONE = [{"image": "a", "command": ["x"]}]
DEEP = "/d/" + ("x" * 250 + "/") * 10
TASKS = {
    "volumes beside each other": {"executors": ONE, "volumes": [f"/v{n}" for n in range(150_000)]},
    "volumes in folders that none is": {"executors": ONE, "volumes": [f"/v{n}/a" for n in range(150_000)]},
    "volumes with long names": {"executors": ONE, "volumes": [f"{DEEP}{n:05}" for n in range(3000)]},
    "a few too many volumes": {"executors": ONE, "volumes": [f"/v{n}" for n in range(1001)]},
    "a few too many outputs": {"executors": ONE, "outputs": [{"path": f"/v/{n}", "url": f"s3://b/{n}"} for n in range(1001)]},
    "outputs with long names": {"executors": ONE, "outputs": [{"path": f"{DEEP}{n:05}", "url": f"s3://b/{n}"} for n in range(1000)]},
    "inputs that are said again": {"executors": ONE, "inputs": [{"path": f"{DEEP}{n // 2:05}", "url": "s3://b/" + "y" * 2000} for n in range(1000)]},
    "zones": {"executors": ONE, "resources": {"zones": [f"z{n}" for n in range(200_000)]}},
    "variables": {"executors": [{**ONE[0], "env": {f"A{n}": "b" for n in range(200_000)}}]},
    "words": {"executors": [{"image": "a", "command": ["x"] * 500_000}]},
    "parameters": {"executors": ONE, "resources": {"backend_parameters": {f"a{n}": "" for n in range(150_000)}}},
}


@pytest.mark.parametrize("what", TASKS)
def test_tasks_that_take_long_to_read(world, what):
    """The thread that reads tasks answers the leases of all agents as well."""
    status, got = world.as_user("mallory", "POST", "/ga4gh/tes/v1/tasks", TASKS[what])
    assert status == 413 and got["error"]["code"] == "too_large", got


def test_pages_of_tasks_with_what_they_printed(instance):
    """A page has so many of them that their texts can be in memory."""
    instance.up()
    for _ in range(140):
        instance.submit(sh("head -c 100000 /dev/zero; exit 0", output="/dev/null", **{"+TesTask": '"{}"'}))
    wait_until(lambda: not instance.json("queue")["requests"])
    seen, token = [], ""
    while token is not None:
        page = instance.api("GET", f"/ga4gh/tes/v1/tasks?view=FULL&page_size=2047&page_token={token}", None, 200)
        assert len(page["tasks"]) <= 128
        seen, token = seen + [task["id"] for task in page["tasks"]], page.get("next_page_token")
    assert sorted(seen, key=int) == [str(n + 1) for n in range(140)]


def test_a_filter_that_no_task_meets(world):
    """The texts of tasks that are not wanted are not all in memory: a page ends, with what it has."""
    text = json.dumps(json.dumps({"task": {"name": "x" * (MIB - 200), "tags": {"n": 1}}}))
    numbers = [submit(world, {"TesTask": text}) for _ in range(100)]
    pages, token = [], ""
    with grows_by_less(world, 60 * MIB):
        while token is not None:
            status, page = world.as_user("mallory", "GET", f"/ga4gh/tes/v1/tasks?name_prefix=none&page_token={token}")
            assert status == 200 and page["tasks"] == [], page
            pages.append(token)
            token = page.get("next_page_token")
    assert 5 < len(pages) < 50, pages
    status, page = world.as_user("mallory", "GET", "/ga4gh/tes/v1/tasks?name_prefix=xx&page_size=3&view=MINIMAL")
    assert [task["id"] for task in page["tasks"]] == [str(n) for n in numbers[:3]]
    assert act(world, "remove", *map(str, numbers)) == 100


@pytest.mark.parametrize("letter, rows, codes", [("x", 60, {b"000", b"720"}), ('\\"', 20, {b"000", b"720"}), ('\\"', 30, {b"720"})])
def test_answers_that_are_made_xml(world, letter, rows, codes):
    """Listings by SSSRMAP are whole in memory before they become XML, and larger then: some of a user's at a time, and others' are answered."""
    number = submit(world, {"Arguments": '"' + letter * 60000 + '"'}, rows=rows)

    def ask(who):
        token = f'<Signature><SecurityToken type="Cleartext">{world.tokens[who]}</SecurityToken></Signature>'
        text = envelope(message("Query", "Job", f"{who}@test", **({"JobId": str(number)} if who == "mallory" else {})), token).encode()
        return f"POST /SSSRMAP3 HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: {len(text)}\r\n".encode(), text

    def known():
        s = world.tls()
        s.sendall(head(world, "mallory", "/v1/server", method="GET"))
        assert b"200 OK" in s.recv(100)
        return s

    first, text = ask("mallory")
    with grows_by_less(world, 400 * MIB), many(100, known) as peers:
        for s in peers:
            s.sendall(first + b"Connection: close\r\n\r\n" + text)
        status, said = world.as_user(None, "POST", "/SSSRMAP3", ask("alice")[1], ["Content-Type: text/xml"])
        assert status == 200 and b"<Code>000</Code>" in said
        got = [everything(s).rpartition(b"<Code>")[2][:3] for s in peers]
    assert codes - {b"720"} <= set(got) <= codes, sorted(got)  # the last ones may have come when the first were answered
    assert act(world, "remove", str(number)) == rows


def test_many_listings_in_one_message(world):
    """Each counts for what it is, and for what it might become only while it is made."""
    number = submit(world, {}, rows=5000)
    token = f'<Signature><SecurityToken type="Cleartext">{world.tokens["mallory"]}</SecurityToken></Signature>'
    one = message("Query", "Job", "mallory@test", '<Get name="State"/>', JobId=str(number))[len("<Body>"):-len("</Body>")]
    status, said = world.as_user(None, "POST", "/SSSRMAP3", envelope(f"<Body>{one * 32}</Body>", token).encode(), ["Content-Type: text/xml"])
    assert status == 200 and said.count(b"<Code>000</Code>") == 32, said[:2000]
    assert act(world, "remove", str(number)) == 5000


def test_answers_of_which_many_attributes_are_wanted(world):
    """Each of a listing's elements costs what it has, and not what two hundred names cost; names that nothing has are refused."""
    number = submit(world, {}, rows=10000)
    token = f'<Signature><SecurityToken type="Cleartext">{world.tokens["mallory"]}</SecurityToken></Signature>'

    def ask(names):
        wanted = "".join(f'<Get name="{name}"/>' for name in names)
        one = message("Query", "Job", "mallory@test", JobId=str(number)).replace("</Request>", wanted + "</Request>")
        return world.as_user(None, "POST", "/SSSRMAP3", envelope(one, token).encode(), ["Content-Type: text/xml"])

    status, said = ask([f"{'x' * 50}{n}" for n in range(190)] + ["State"])
    assert status == 200 and b"<Code>317</Code>" in said and len(said) < 1000
    status, said = ask(["StartTime"] * 190 + ["State"])
    assert status == 200 and said.count(b"<Job><State>held</State></Job>") == 10000
    assert act(world, "remove", str(number)) == 10000


# ---- long answers -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(world):
    """A request of Mallory's whose jobs have ended and have a MiB each."""
    number = submit(world, {"Large": '"' + "x" * (MIB - 100) + '"'}, rows=150)
    assert act(world, "remove", str(number)) == 150
    wait_until(lambda: len(world.as_user("mallory", "GET", f"/v1/history?id={number}")[1]["jobs"]) == 150)
    return number


def test_a_page_of_history(world, large):
    jobs, before = [], ""
    with grows_by_less(world, 200 * MIB):
        while before is not None:
            got = world.api("GET", f"/v1/history?id={large}&limit=10000&attributes=*&before={before or 0}")
            assert 0 < len(got["jobs"]) <= 20
            jobs += [job["member"] for job in got["jobs"]]
            before = got["next"]
    assert sorted(jobs) == list(range(150))


@pytest.mark.parametrize("ids", ["", "id=NUMBER&"])
def test_a_listing_of_jobs(world, large, ids):
    with grows_by_less(world, 250 * MIB):
        got = world.api("GET", f"/v1/jobs?all=1&{ids.replace('NUMBER', str(large))}attributes=*")
        mine = [job for job in got["jobs"] if job["request"] == large]
    assert [job["member"] for job in mine] == list(range(150))
    assert all(len(job["ad"]["Large"]) == MIB - 100 for job in mine)


def test_a_page_of_events(world):
    """Each event names ten thousand jobs that are no neighbours."""
    number = submit(world, {}, rows=20_000)
    every_other = [f"{number}.{n}" for n in range(0, 20_000, 2)]
    after, seen = world.as_user("mallory", "GET", "/v1/server")[1]["seq"], 0
    for n in range(160):
        assert act(world, "priority", *every_other, value=n + 1) == 10_000
    while seen < 160:
        status, got = world.as_user("mallory", "GET", f"/v1/events?after={after}&limit=10000")
        assert status == 200 and 0 < len(got["events"]) < 130
        seen, after = seen + len(got["events"]), got["next"]
    assert seen == 160


def test_a_feed_among_others_events(world):
    """A follower waits for its own events however many others' come, and misses none."""
    start = after = world.as_user("alice", "GET", "/v1/server")[1]["seq"]
    stop, mine, seen = threading.Event(), [], []

    def submit_without_end():
        while not stop.is_set():
            submit(world, {})

    others = threading.Thread(target=submit_without_end)
    others.start()
    try:
        for _ in range(3):
            status, got = world.as_user("alice", "POST", "/v1/requests", {"uuid": str(uuid.uuid4()), "parts": [{"attributes": {"Cmd": '"/bin/true"'}}], "hold": True})
            assert status == 201
            mine.append(got["id"])
            while seen != mine:
                status, got = world.as_user("alice", "GET", f"/v1/events?after={after}&timeout_ms=60000")
                assert status == 200 and got["events"]
                seen, after = seen + [e["request"] for e in got["events"] if e["event"] == "submitted"], got["next"]
        status, got = world.as_user("alice", "GET", f"/v1/events?after={after}&timeout_ms=500")
        assert got["events"] == [] and got["next"] > after  # only others' came
        status, got = world.as_user("alice", "GET", f"/v1/events?after={start}&timeout_ms=0&limit=1")
        assert got["events"][0]["request"] == mine[0]
    finally:
        stop.set()
        others.join()


def test_many_submits_with_long_lists(instance):
    """Of submits whose items were uploaded some are in memory at a time, however long each takes."""
    server = instance.server()
    rows = b"".join(b"y" * 15 + b"%07d\n" % i for i in range(500000))
    upload = instance.api("POST", "/v1/uploads", {})["id"]
    connection = UnixConnection(os.path.join(instance.dir, "api.sock"), 90)
    for at in range(0, len(rows), 4 << 20):
        connection.request("PUT", f"/v1/uploads/{upload}?offset={at}", rows[at:at + (4 << 20)], {"Content-Type": "application/octet-stream"})
        connection.getresponse().read()
    instance.api("POST", f"/v1/uploads/{upload}/finish", {})
    answers = []

    def submit():
        slow = 'strlen(strcat("$(m)", "$(m)", toLower("$(m)"))) % 2'
        part = {"attributes": {"Cmd": '"/bin/true"', "JobPrio": slow, "ShouldTransferFiles": '"YES"', "Iwd": '"/"'}, "late": ["JobPrio"],
                "variables": ["m"], "items_upload": upload, "steps": 1}
        try:
            answers.append(instance.call("POST", "/v1/requests?dry_run=true", {"uuid": str(uuid.uuid4()), "parts": [part]})[0])
        except OSError:
            pass  # the server is stopped before all are done

    for _ in range(80):
        threading.Thread(target=submit, daemon=True).start()
    wait_until(lambda: len(answers) >= 2)
    assert set(answers) == {200}
    assert peak_mib(server.pid) < 500


def test_a_uuid_of_anothers_making(world):
    """Uuids of sources and of jobs that are handed on can be computed: who uses one first is in nobody's way, and gets nothing by it."""
    body = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": {"Cmd": '"/bin/true"'}}], "hold": True}
    status, his = world.as_user("mallory", "POST", "/v1/requests", body)
    assert status == 201
    status, hers = world.as_user("alice", "POST", "/v1/requests", body)
    assert status == 201 and hers["id"] != his["id"], hers
    for user, got in (("mallory", his), ("alice", hers)):
        status, again = world.as_user(user, "POST", "/v1/requests", body)
        assert (status, again["id"], again["existing"]) == (200, got["id"], True)
    # one that is known skips no check of another's files
    stolen = {**body, "spooled": [{"name": "in", "sha256": "0" * 64, "size": 1}], "uuid": str(uuid.uuid4())}
    assert world.as_user("alice", "POST", "/v1/requests", {**body, "uuid": stolen["uuid"]})[0] == 201
    assert world.as_user("mallory", "POST", "/v1/requests", stolen)[0] == 400


def merges_of_merges(when, depth=40):
    ids = [("a", "b"), *((f"m{i}", f"n{i}") for i in range(depth))]
    of = "".join(f'<MergeRequests id="{to}"><RequestID idref="{a}"/><RequestID idref="{b}"/></MergeRequests>'
                 for (a, b), pair in zip(ids, ids[1:]) for to in pair)
    return f"""<AbstractRequest><ScriptTask ID="t"><Text>true</Text></ScriptTask>
        <Request ID="a" taskRef="t"/><Request ID="b" taskRef="t"/><Request ID="c" taskRef="t"/><WorkFlow>{of}
        <SetupRequestDependancy when="{when}"><RequestToBeDoneFirstID idref="{ids[-1][0]}"/><RequestWaitingForInputID idref="c"/>
        </SetupRequestDependancy></WorkFlow></AbstractRequest>"""


# Texts of some kilobytes, and words of what is said of each.
TEXTS = {
    "two merges of two merges, forty deep": (merges_of_merges("ok"), 400, b"more than 1000000 ways"),
    "the same, whatever becomes of them": (merges_of_merges("any"), 400, b"more than 1000000 ways"),
    "a script of 100 kB in a thousand requests": (
        '<!DOCTYPE a [<!ENTITY a "' + "x" * 1000 + '"><!ENTITY b "' + "&a;" * 10 + '">]><AbstractRequest><ScriptTask ID="t"><Text>' + "&b;" * 10 +
        "</Text></ScriptTask>" + '<Request taskRef="t"/>' * 1000 + "</AbstractRequest>", 400, b"more than 16 MiB"),
    "long arguments of many jobs": (
        "executable = /bin/true\narguments = " + "x" * 30000 + "\n" + "queue\n" * 500, 413, b"more than 8 MiB as JSON"),
    "brackets behind a comment that closes them": (
        "# " + "]" * 30000 + "\nAbstractRequest: " + "[" * 30000, 400, b"nested more than 64 deep"),
    "a map of thousands of names, and aliases of it": (
        "AbstractRequest:\n  a: &a {" + ",".join(f"{i:x}" for i in range(9000)) + "}\n  b: [" + "*a," * 9 + "]\n", 400, b"too many settings"),
}


def test_texts_that_become_large(world):
    """A description that is posted as text costs the server what one in JSON may cost."""
    with grows_by_less(world, 200 * MIB):
        for name, (text, code, words) in TEXTS.items():
            status, said = world.as_user("mallory", "POST", "/v1/requests?dry_run=1", text.encode(), ["Content-Type: text/plain"])
            assert status == code and words in json.dumps(said).encode(), (name, status, said)


def stored(world):
    """Bytes in the spool."""
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(os.path.join(world.dir, "spool")) for name in names)


def test_lists_count_before_they_are_stored(world):
    """What a text's datasets make of the catalog counts as uploads do, all lists together."""
    files = [{"name": f"long{i}", "replicas": [{"url": f"http://x/{'y' * 100}{i}"}]} for i in range(16000)]
    assert world.call("POST", "/v1/catalog/files", json.dumps({"files": files[:8000]}).encode())[0] == 200
    assert world.call("POST", "/v1/catalog/files", json.dumps({"files": files[8000:]}).encode())[0] == 200
    text = '<AbstractRequest><ScriptTask ID="t"><Text>true</Text></ScriptTask><Dataset ID="d"><input URL="catalog:?name=long*" nFiles="all"/></Dataset>'
    text += '<ResourceSpecifications ID="l" maxFilesPerProcess="100"/>'
    text += "".join(f'<Request ID="r{i}" taskRef="t" datasetRef="d" resourceRef="l"/>' for i in range(3)) + "</AbstractRequest>"
    before = stored(world)
    status, said = world.as_user("mallory", "POST", "/v1/requests", text.encode(), ["Content-Type: text/plain"])
    assert status == 507 and "max_spool" in json.dumps(said), said
    assert stored(world) - before < MIB
