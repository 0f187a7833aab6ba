"""Expressions that take long, written to hold up the server: in constraints of calls and in jobs. Each ends at a limit, who wrote
it is told which, and others are served all the while."""
import contextlib
import json
import resource
import uuid

import pytest

import agents
from drover import made, wait_until
from test_hostile_client import MIB, World, described
from test_hostile_requests import grows_by_less
from test_users_staging import processor_s

PATTERN = "(?:a?){12}[bc]d"
LONG = "a" * 10000 + "d"
VERSION = "1" * 900000
BAD = f'regexp("{PATTERN}", "{LONG}")'
EIGHT = " || ".join(f'regexp("{PATTERN}", "{LONG}{i}d")' for i in range(8))
VERSIONS = "sum({" + ",".join(["versioncmp(MY.Version, MY.Version)"] * 10000) + "}) > 0"
PRINTED = "sum({" + ",".join(["size(unparse(MY.Version))"] * 100) + "}) < 0"


@pytest.fixture(scope="module")
def world(request):
    with made(request, "h-") as plain:
        one = World.__new__(World)
        one.__dict__.update(plain.__dict__)
        try:
            one.begin()
            yield one
        finally:
            one.stop()


def constraint(world, text, **more):
    """An action and a listing with this constraint, as Mallory."""
    yield world.as_user("mallory", "POST", "/v1/actions", {"action": "hold", "constraint": text, **more})
    yield from (world.call("GET", "/v1/jobs?constraint=" + quoted(text)),) if len(text) < 20000 else ()


def quoted(text):
    return "".join(c if c.isalnum() else f"%{ord(c):02x}" for c in text)


def submit(world, who, **attributes):
    status, said = world.as_user(who, "POST", "/v1/requests", described(**attributes))
    assert status == 201, said
    return said["id"]


@pytest.mark.parametrize("text", [BAD, EIGHT, VERSIONS, PRINTED], ids=["regexp", "eight", "versioncmp", "unparse"])
def test_constraints(world, text):
    """Eight patterns at once held the core for half a minute. The answer names the limit, and Alice is served before and after."""
    version = json.dumps(VERSION)
    request = submit(world, "mallory", Version=version)
    world.api("POST", "/v1/requests", described(Version=version))
    for status, said in constraint(world, text):
        assert status == 400, said
        assert said["error"]["code"] == "constraint_limit"
        assert "past the limit of 20000 steps for job" in said["error"]["message"]
        assert world.as_user("alice", "GET", "/v1/jobs")[1]["jobs"] == []
        submit(world, "alice")
        world.as_user("alice", "POST", "/v1/actions", {"action": "remove", "constraint": "true"})
    status, said = world.as_user("mallory", "POST", "/v1/actions", {"action": "release", "constraint": 'regexp("^/bin", Cmd)'})
    assert (status, said.get("affected")) == (200, 1), said
    assert world.as_user("mallory", "POST", "/v1/actions", {"action": "remove", "ids": [str(request)]})[0] == 200


def test_a_constraint_over_many_jobs(world):
    """Each job stays below its limit, all of them do not."""
    request = {**described(Numbers="{" + ",".join("1" * 5000) + "}"), "hold": True}
    request["parts"][0]["steps"] = 2000
    assert world.as_user("mallory", "POST", "/v1/requests", request)[0] == 201
    status, said = world.as_user("mallory", "POST", "/v1/actions", {"action": "release", "constraint": "sum(MY.Numbers) + ProcId < 0"})
    assert status == 400, said
    assert "past the limit of 2000000 steps, and 100 for each job, after" in said["error"]["message"]
    # one that is the same for all of them is looked at twice
    status, said = world.as_user("mallory", "POST", "/v1/actions", {"action": "release", "constraint": "sum(MY.Numbers) < 0"})
    assert (status, said.get("affected")) == (200, 0), said
    status, said = world.as_user("mallory", "POST", "/v1/actions", {"action": "release", "constraint": "ProcId < 10"})
    assert (status, said.get("affected")) == (200, 10), said


def hostile(requirements):
    return f'executable = /bin/true\nrequirements = {requirements}\n+Long = "{LONG}"\n+Version = "{VERSION}"\nqueue\n'


def check_held(world, request):
    job = world.wait_state(f"{request}.0", "held")
    assert "take too long: past the limit of 20000 steps, asked at queue" in job["hold_reason"]
    assert job["hold_code"] == 5
    assert "past the limit of 20000 steps" in world.cli("why", f"{request}.0")
    assert "past the limit" in json.dumps(world.events(f"{request}.0"))


def test_requirements(world):
    """Jobs that no queue can be asked for within the limit are held and say so; also after a crash. What runs goes on, and
    other jobs start."""
    agents.start(world, "cpus: 2\n", "n1")
    wait_until(lambda: world.agents("connected"))
    runs = world.submit("executable = /bin/sleep\narguments = 1000\nqueue\n")
    world.wait_state(f"{runs}.0", "running")
    bad = f'TARGET.Cpus > 0 && regexp("{PATTERN}", MY.Long)'
    ids = [world.submit(hostile(text)) for text in [bad] * 8 + ["TARGET.Cpus > 0 && " + VERSIONS]]
    for request in ids:
        check_held(world, request)
    world.run("executable = /bin/true\nqueue\n")
    world.cli("release", *map(str, ids))  # they are asked again, perhaps by the next server
    world.kill_server()
    world.server("--api-listen", f"127.0.0.1:{world.api_port}", "--listen", f"127.0.0.1:{world.agents_port}")
    wait_until(lambda: world.agents("connected"))
    submit(world, "alice")
    assert len(world.as_user("alice", "GET", "/v1/jobs")[1]["jobs"]) == 1
    for request in ids:
        check_held(world, request)
    world.run("executable = /bin/true\nqueue\n")
    job = world.job(f"{runs}.0")
    assert (job["state"], job["starts"]) == ("running", 1)
    world.api("POST", "/v1/actions", {"action": "remove", "ids": [str(runs)]})


def test_policies(world):
    """A periodic policy that takes too long is asked once, and its jobs are held."""
    text = hostile("false").replace("queue\n", f'periodic_remove = regexp("{PATTERN}", MY.Long)\nqueue\n')
    request = world.submit(text)
    job = world.wait_state(f"{request}.0", "held", seconds=120)
    assert "periodic_* policies take too long" in job["hold_reason"]


def test_the_command_line_says_it(world):
    """Of a listing, too."""
    world.submit(f'executable = /bin/true\n+Long = "{LONG}"\nhold = true\nqueue\n')
    said = world.cli("queue", "--constraint", f'regexp("{PATTERN}", MY.Long)', code=2)
    assert "past the limit of 20000 steps" in said.err


def test_a_listing_that_has_begun(world):
    """The status was sent when the limit is reached: the page says so, and the command fails."""
    request = {**described(Long=f'"{LONG}"'), "hold": True}
    request["parts"][0]["steps"] = 6000
    made_id = world.api("POST", "/v1/requests", request)["id"]
    text = f'ProcId < 5000 || regexp("{PATTERN}", MY.Long)'
    page = world.api("GET", f"/v1/jobs?id={made_id}&constraint=" + quoted(text))
    assert len(page["jobs"]) == 5000
    assert page["next"] is None
    assert page["error"]["code"] == "constraint_limit"
    said = world.cli("queue", str(made_id), "--constraint", text, code=1)
    assert f"past the limit of 20000 steps for job {made_id}.5000" in said.err
    world.api("POST", "/v1/actions", {"action": "remove", "ids": [str(made_id)]})


# ---- expressions in place of texts ---------------------------------------------------------------------------------
#
# Texts of jobs are read for many things beside matching: for agents, listings, history, logs and notices. Each of these expressions is
# below the limit of one.

TEXT = f'strcat(string(regexp("{PATTERN}", MY.Long)))'


@contextlib.contextmanager
def takes_less(world, seconds):
    """Less of a processor, whatever else this machine does."""
    before = processor_s(world.server_pid())
    yield
    assert processor_s(world.server_pid()) - before < seconds


def texts(parts=1, steps=1, late=(), long=LONG, **attributes):
    part = {"attributes": {"Cmd": '"/bin/true"', "Long": f'"{long}"', "Requirements": "false", **attributes}, "steps": steps, "late": list(late)}
    return {"uuid": str(uuid.uuid4()), "hold": True, "parts": [part] * parts}


def an_agent(world):
    """The one that there is, or a new one."""
    if not world.agents("connected"):
        agents.start(world, "cpus: 2\n", "n1")
    return wait_until(lambda: world.agents("connected"))[0]


def test_what_an_agent_is_told_of_a_job(world):
    """The template of one job with nine hundred words for a batch system held the core for eighteen seconds."""
    an_agent(world)
    words = texts(Iwd='"/tmp"', Requirements="true", **{f"Slurm{n}": f"size({TEXT})" for n in range(900)})
    with takes_less(world, 5):
        request = world.api("POST", "/v1/requests", {**words, "hold": False}, 201)["id"]
        wait_until(lambda: world.job(f"{request}.0")["state"] == "completed")
    submit(world, "alice")


@pytest.mark.parametrize("name", ["TransferInput", "TransferInputSizes", "TransferOutputRemaps", "HoldOnSubmit", "Args"])
def test_texts_of_many_parts(world, name):
    """Seven hundred of them in one submit held the core for some seconds."""
    with takes_less(world, 5):
        document = {**texts(700, long="a" * 6000 + "d", **{name: TEXT}), "hold": name != "HoldOnSubmit"}
        status, said = world.as_user("mallory", "POST", "/v1/requests", document)
        assert status == 201, said
        submit(world, "alice")
    world.as_user("mallory", "POST", "/v1/actions", {"action": "remove", "ids": [str(said["id"])]})


def test_texts_of_jobs_in_history(world):
    """They are read by one thread for all users. A page of three hundred jobs took eight seconds of it."""
    request = world.as_user("mallory", "POST", "/v1/requests", texts(steps=600, Args=TEXT, LastRemoteHost=TEXT))[1]["id"]
    world.as_user("mallory", "POST", "/v1/actions", {"action": "remove", "ids": [str(request)]})
    wait_until(lambda: all(world.as_user("mallory", "GET", f"/v1/history?id={request}.{n}")[1]["jobs"] for n in (0, 300, 599)))
    jobs, before = 0, 0
    with takes_less(world, 6):
        while before is not None:
            page = world.as_user("mallory", "GET", f"/v1/history?id={request}&limit=10000&before={before}")[1]
            jobs, before = jobs + len(page["jobs"]), page["next"]
    assert jobs == 600


def test_names_of_logs(world):
    """Each job's is made for itself, when its lines are written. A hundred were made in one turn, of three seconds, and so on for all."""
    domain = an_agent(world)["filesystem_domain"]
    own = texts(steps=2000, late=["UserLog"], UserLog=f'{TEXT} == "$(Process)"', Iwd='"/tmp"', FileSystemDomain=json.dumps(domain))
    many = texts(700, long="a" * 6000 + "d", UserLog='"/tmp/drover-log"', UserLogFormat=TEXT, SubmitHost=TEXT, FileSystemDomain=json.dumps(domain))
    for document in own, many:
        with takes_less(world, 8):
            request = world.api("POST", "/v1/requests", document, 201)["id"]
            for _ in range(20):
                submit(world, "alice")
        world.api("POST", "/v1/actions", {"action": "remove", "ids": [str(request)]}, 200)


# ---- what an expression takes in memory -----------------------------------------------------------------------------


def test_parentheses_around_a_long_condition(world):
    """Each pair was a copy of all in it: six such attributes took a gigabyte, and longer ones in one dry run ended the server."""
    condition = "(" * 390 + " && ".join(["a"] * 100000) + ")&&a" * 390
    resource.prlimit(world.server_pid(), resource.RLIMIT_AS, (4 << 30, 4 << 30))
    with grows_by_less(world, 400 * MIB):
        for path in "/v1/requests?dry_run=1", "/v1/quote":
            status, said = world.as_user("mallory", "POST", path, described(**{f"A{n}": condition for n in range(6)}))
            assert status == 200, said
    submit(world, "alice")
