"""Two agents that have one name: the one that is there keeps it, with its jobs. And a server's address that is not one."""
import os
import socket

import pytest

import agents
from drover import sh, wait_until


@pytest.mark.long
def test_a_second_agent_of_one_name_is_told(instance):
    """It takes neither the session nor the jobs of the first, and is let in when that has gone."""
    instance.server()
    first = agents.start(instance, "", "n1")
    agents.offering(instance)
    request = instance.submit(sh("until test -e flag; do sleep 0.1; done", output="out", should_transfer_files="no"))
    instance.wait_state(f"{request}.0", "running")
    twin = os.path.join(instance.base, "twin")
    token = instance.json("token", "agent", "--name", "n1")["token"]
    second = instance.start("drover-agent", "--server", instance.server_json()["agents"][0], "--dir", twin, "--token", token)
    wait_until(lambda: "another agent is connected as n1, from the host " in second.output())
    assert second.running()
    instance.write("flag", "")
    instance.wait(request)
    assert instance.history(request)[0]["starts"] == 1
    assert first.output().count("msg=connected") == 1 and "msg=connected" not in second.output()
    first.stop()
    wait_until(lambda: "msg=connected" in second.output())


def test_an_agents_copy_does_not_take_turns_with_it(instance):
    """Its folder was copied: nobody can tell which of them is meant, so the last one stays, for a while."""
    instance.server()
    first = agents.start(instance, "", "n1")
    agents.offering(instance)
    copy = os.path.join(instance.base, "copy")
    os.mkdir(copy)
    for name in ("agent.key", "agent.crt", "ca.crt", "instance"):
        with open(os.path.join(instance.base, "n1", name), "rb") as f, open(os.path.join(copy, name), "wb") as to:
            to.write(f.read())
    second = instance.start("drover-agent", "--server", instance.server_json()["agents"][0], "--dir", copy)
    wait_until(lambda: "another session of this agent has taken over" in first.output())
    instance.run(sh("sleep 1"))
    assert first.output().count("msg=connected") + second.output().count("msg=connected") < 10


@pytest.mark.long
def test_a_server_that_is_silent_is_told(instance):
    """As behind a firewall: after the first try, not the sixth, for each takes ten seconds."""
    instance.server()
    token = instance.json("token", "agent", "--name", "n1")["token"]
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.setblocking(False)
        agent = instance.start("drover-agent", "--server", f"127.0.0.1:{silent.getsockname()[1]}", "--dir", f"{instance.base}/n1",
                               "--token", token)
        wait_until(lambda: 'msg="no session with the server"' in agent.output())
        tries = []
        with pytest.raises(BlockingIOError):
            while True:
                tries.append(silent.accept()[0])
        for one in tries:
            one.close()
        assert len(tries) <= 2
