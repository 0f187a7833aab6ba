"""Expressions that take long, written to hold up the server: in constraints of calls and in jobs. Each ends at a limit, who wrote
it is told which, and others are served all the while."""
import json
import resource

import pytest

import agents
from drover import made, wait_until
from test_hostile_client import MIB, World, described
from test_hostile_requests import grows_by_less

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
