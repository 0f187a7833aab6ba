"""An agent whose certificate was revoked is refused at once, also while it is connected, and when it would resume its session."""
import os
import re
import stat
import time

import pytest

from drover import sh, wait_until


@pytest.fixture
def joined(request, instance):
    """A server with agent a1, whose lease is short where a test waits for its end."""
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("lease: 5s\n" if request.function in (test_it_is_refused_at_once, test_sessions_are_resumed) else "")
    server = instance.server()
    start(instance, "a1", instance.cli("token", "agent", "--name", "a1").split()[-1])
    instance.first_server = server
    return instance


def start(instance, name, token=None):
    args = ["--token", token] if token else []
    one = instance.start("drover-agent", "--server", instance.server_json()["agents"][0], "--dir",
                         os.path.join(instance.base, name), "--name", name, "--cpus", "4", *args)
    if token:
        wait_until(lambda: state(instance, name) == "connected")
    return one


def state(instance, name):
    for a in instance.agents():
        if a["name"] == name:
            return "revoked" if a["revoked"] else a["state"]
    return None


def test_it_is_refused_at_once(joined):
    r = joined.submit(sh("sleep 600"))
    joined.wait_state(f"{r}.0", "running")
    out = joined.cli("agents", "revoke", "a1")
    assert "a1 is refused from now on, and was disconnected" in out.err
    wait_until(lambda: state(joined, "a1") == "revoked")
    assert "revoked" in joined.cli("agents")
    # what it ran goes to others when the lease has ended
    wait_until(lambda: joined.job(f"{r}.0")["state"] == "idle")
    start(joined, "a2", joined.cli("token", "agent", "--name", "a2").split()[-1])
    joined.wait_state(f"{r}.0", "running")
    assert joined.job(f"{r}.0")["agent"] == "a2"
    assert state(joined, "a1") == "revoked"
    out = joined.cli("agents")
    assert "a2" in out and "a1" not in out and "1 revoked: see --all" in out.err
    assert "a1" in joined.cli("agents", "--all")
    joined.cli("rm", str(r))


def test_also_after_a_restart(joined):
    joined.cli("agents", "revoke", "a1")
    joined.first_server.kill()
    joined.server()
    one = start(joined, "a1")
    wait_until(lambda: not one.running() or "revoked" in one.output())
    assert not joined.agents("connected")
    if not one.running():
        joined.daemons.remove(one)


def test_sessions_are_resumed(joined):
    joined.daemons.pop().stop()
    agent = start(joined, "a1")  # without a token: it does not join again

    def come_back():
        """Kills the server, starts it again; returns whether the agent resumed its session."""
        time.sleep(2)  # a ticket comes with a renewal, the first of which is due by now
        before = len(re.findall("resumed=", agent.output()))
        joined.kill_server()
        joined.server()
        wait_until(lambda: len(re.findall("resumed=", agent.output())) > before)
        return re.findall("resumed=(yes|no)", agent.output())[-1] == "yes"

    key = os.path.join(joined.dir, "ticket.key")
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    wait_until(come_back)
    os.unlink(key)
    assert not come_back()  # another key: a whole handshake
    wait_until(come_back)
    joined.cli("agents", "revoke", "a1")
    wait_until(lambda: state(joined, "a1") == "revoked")
    welcome = len(re.findall("resumed=", agent.output()))
    refused = agent.output().count("was revoked")
    joined.kill_server()
    joined.server()
    wait_until(lambda: agent.output().count("was revoked") > refused + 1)
    assert len(re.findall("resumed=", agent.output())) == welcome and not joined.agents("connected")


def test_it_can_join_again_with_a_new_token(joined):
    left = joined.cli("token", "agent", "--name", "a1", "--uses", "5").split()[-1]
    answer = joined.api("POST", "/v1/agents/a1/revoke")
    assert answer == {"name": "a1", "certificates": 1, "tokens": 1, "was_connected": True}
    joined.daemons[-1].stop()
    refused = joined.start("drover-agent", "--server", joined.server_json()["agents"][0], "--dir",
                           os.path.join(joined.base, "other"), "--name", "a1", "--token", left)
    wait_until(lambda: not refused.running())
    joined.daemons.remove(refused)
    again = joined.api("POST", "/v1/agents/a1/revoke")
    assert (again["certificates"], again["was_connected"]) == (0, False)
    start(joined, "a1", joined.cli("token", "agent", "--name", "a1").split()[-1])
    joined.run(sh("exit 0"))


def test_who_is_not_there(joined):
    p = joined.cli("agents", "revoke", "nobody", code=None)
    assert p.code != 0 and "there is no agent nobody" in p.err
    assert joined.cli("agents", "revoke", code=2).err
    token = joined.cli("token", "user", "--name", "ann").split()[-1]
    assert token  # a user's token does not make an admin; see test_openapi.py for the roles
