"""A user whose requests are well formed, and made to get at what is others': each test is a table of
attempts and of what must come of each."""
import json
import uuid

import pytest

from drover import made
from test_hostile_client import World


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
