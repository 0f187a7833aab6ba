"""Jobs that go through two servers, to processes."""
import os

import pytest

import agents
from drover import free_port, sh, wait_until
from hops import beating, far, far_jobs, gone, hop_queue, link, pids, runs, stopped


@pytest.fixture
def two(request, build, instance):
    """A server whose only place is another server, which has processes."""
    instance.far = far(request, build)
    instance.server()
    runs(instance.far)
    link(instance, instance.far)
    return instance


def test_exit_codes_and_files(two):
    two.write("in.txt", "some input\n")
    two.write("prog.sh", "#!/bin/sh\ncat in.txt >out.txt; echo said $1; echo error >&2; exit 3\n", 0o755)
    request = two.submit("executable = prog.sh\narguments = \"'a b'\"\noutput = said.txt\nerror = err.txt\n"
                         "transfer_input_files = in.txt\nqueue\n")
    two.wait(request, code=1)
    row = two.history(request)[0]
    assert (row["exit_code"], row["starts"]) == (3, 1)
    assert two.read("out.txt") == "some input\n"
    assert two.read("said.txt") == "said a b\n"
    assert two.read("err.txt") == "error\n"
    there = two.far.history()
    assert len(there) == 1 and there[0]["exit_code"] == 3
    assert not os.listdir(f"{two.base}/n1/hop.east")


def test_many_jobs_and_their_way_home(two):
    """What was handed on has its results fetched, and nothing is held for us any more."""
    request = two.submit(sh("echo $DROVER_MEMBER; exit $(($DROVER_MEMBER % 3))", output="out.$(Process)",
                            queue="queue 60"))
    two.wait(request, code=1, seconds=90)
    assert {r["member"]: r["exit_code"] for r in two.history(request)} == {n: n % 3 for n in range(60)}
    assert [two.read(f"out.{n}") for n in range(60)] == [f"{n}\n" for n in range(60)]
    wait_until(lambda: not os.listdir(f"{two.base}/n1/hop.east"))
    row = two.history(request)[0]
    there = two.far.api("GET", f"/v1/requests/{two.far.history()[0]['request']}")
    assert there["origin"]["owner"] == row["owner"] and there["origin"]["job"].startswith(f"{request}.")
    assert there["origin"]["servers"] == two.server_info()["uuid"] and there["origin"]["hops_left"] == 7


def test_control_is_carried_down(two):
    request = two.submit(beating(two))
    first = wait_until(lambda: pids(two), 30)[0]
    two.wait_state(f"{request}.0", "running", seconds=30)
    path = two.api("GET", f"/v1/jobs/{request}.0/path")
    two.cli("suspend", f"{request}.0")
    wait_until(lambda: stopped(two), 30)
    assert far_jobs(two.far, "suspended")
    hops = wait_until(lambda: [h for h in two.json("path", f"{request}.0")["hops"][1:] if h["state"] == "suspended"], 20)
    assert hops[0]["server"] == two.far.server_info()["uuid"] and path["hops"][0]["agent"] == "n1"
    two.cli("resume", f"{request}.0")
    wait_until(lambda: not stopped(two), 30)
    two.cli("hold", f"{request}.0")
    two.wait_state(f"{request}.0", "held", seconds=30)
    wait_until(lambda: gone(first) and not far_jobs(two.far), 30)
    two.cli("release", f"{request}.0")
    second = wait_until(lambda: pids(two)[1:], 30)[0]
    two.cli("rm", f"{request}.0")
    wait_until(lambda: gone(second) and not far_jobs(two.far), 30)
    assert two.wait_state(f"{request}.0", "removed", seconds=30)


def test_control_in_the_middle(two):
    """Held there the job stays, and goes on when it is released there; removed there it is held here, with the reason."""
    request = two.submit(sh(f"echo $$ >>{two.work}/pids; sleep 600"))
    first = wait_until(lambda: pids(two), 30)[0]
    there = far_jobs(two.far)[0]
    two.wait_state(f"{request}.0", "running", seconds=30)
    two.far.cli("hold", str(there))
    wait_until(lambda: gone(first) and far_jobs(two.far, "held"), 30)
    assert two.job(f"{request}.0")["state"] == "running"
    two.far.cli("release", str(there))
    second = wait_until(lambda: pids(two)[1:], 30)[0]
    two.far.cli("rm", str(there), "--reason", "the room is needed")
    job = two.wait_state(f"{request}.0", "held", seconds=30)
    assert "removed at east" in job["hold_reason"] and "the room is needed" in job["hold_reason"]
    assert gone(second)


def test_far_server_killed_and_back(two):
    request = two.submit(sh(f"echo $$ >>{two.work}/pids; while [ ! -e {two.work}/flag ]; do sleep 0.05; done; exit 5"))
    wait_until(lambda: pids(two), 30)
    two.wait_state(f"{request}.0", "running", seconds=30)
    os.kill(two.far.pids("droverd")[0], 9)
    wait_until(lambda: "does not answer" in two.agent.output(), 30)
    assert two.job(f"{request}.0")["state"] == "running"
    two.write("flag", "")
    two.far.daemons[0].process.wait()
    two.far.server()
    two.wait(request, code=1, seconds=60)
    row = two.history(request)[0]
    assert (row["exit_code"], row["starts"]) == (5, 1) and len(pids(two)) == 1


def test_agent_away_for_longer_than_the_lease(request, build, instance):
    """The far job ends by time alone, before the job is run again."""
    one, two = instance, far(request, build)
    os.makedirs(one.dir)
    with open(f"{one.dir}/droverd.yaml", "w", encoding="utf-8") as f:
        f.write("lease: 3s\n")
    one.server()
    runs(two)
    link(one, two)
    number = one.submit(sh(f"echo $$ >>{one.work}/pids; sleep 600"))
    first = wait_until(lambda: pids(one), 30)[0]
    one.wait_state(f"{number}.0", "running", seconds=30)
    one.agent.kill()
    wait_until(lambda: gone(first), 30)
    assert one.job(f"{number}.0")["state"] == "running"
    one.wait_state(f"{number}.0", "idle", seconds=40)
    assert "lease_ended" in [e["event"] for e in two.api("GET", "/v1/events?after=0")["events"]]
    one.agent = agents.start(one, one.config)
    second = wait_until(lambda: pids(one)[1:], 40)[0]
    one.cli("rm", f"{number}.0")
    wait_until(lambda: gone(second), 30)
    assert len(pids(one)) == 2


def test_no_loops(two):
    """The far server's only other way leads back: it does not take it."""
    back = two.far
    back.config = "queues:\n" + hop_queue("back", two)
    back.agent = agents.start(back, back.config, name="b1")
    agents.offering(back, "back")
    request = two.submit(sh("exit 0", requirements="TARGET.Runner == \"drover\"",
                            **{"+DroverPath": "\"n1/east, b1/back\""}))
    there = wait_until(lambda: far_jobs(back), 30)[0]
    wait_until(lambda: any("DroverServer" in line for line in back.api("GET", f"/v1/jobs/{there}.0/why")["text"]), 20)
    assert back.job(f"{there}.0")["state"] == "idle" and len(far_jobs(two)) == 1
    path = wait_until(lambda: (p := two.json("path", f"{request}.0")) and len(p["hops"]) == 2 and p, 20)
    assert path["summary"] == path["hops"][1]["state"] == "idle" and path["hops"][0]["state"] == "staging"
    two.cli("rm", str(request))
    wait_until(lambda: not far_jobs(back), 20)


def test_hops_are_counted(two):
    request = two.submit(sh("exit 0", **{"+DroverMaxHops": "0"}))
    assert "path is as long as is allowed" in two.wait_state(f"{request}.0", "held", seconds=30)["hold_reason"]


def test_the_first_cause_is_told(two):
    request = two.submit("executable = /no/such/program\nqueue\n")
    assert "/no/such/program" in two.wait_state(f"{request}.0", "held", seconds=30)["hold_reason"]
    wait_until(lambda: not far_jobs(two.far), 20)


def test_over_tls_with_a_token(request, build, instance):
    one, two = instance, far(request, build)
    one.server()
    runs(two, "--api-listen", f"127.0.0.1:{(port := free_port())}")
    token = two.json("token", "user",)["token"]
    with open(f"{two.base}/token", "w", encoding="utf-8") as f:
        f.write(token + "\n")
    one.config = ("queues:\n  - name: east\n    runner: drover\n    drover:\n"
                  f"      server: https://127.0.0.1:{port}\n      token_file: {two.base}/token\n")
    agents.start(one, one.config)
    number = one.submit(sh("echo there; exit 4", output="out"))
    one.wait(number, code=1)
    assert one.history(number)[0]["exit_code"] == 4 and one.read("out") == "there\n"
    assert one.server_info()["uuid"] in two.api("GET", "/v1/requests/1")["origin"]["servers"]
