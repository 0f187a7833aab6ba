"""Jobs that go through three servers in a row, to a real Slurm behind the last."""
import os
import time
import types

import pytest

import agents
from drover import sh, wait_until
from hops import beating, far, far_jobs, gone, hop_queue, path_in, pids, stopped

pytest_plugins = ["batch_systems"]


def middle_config(three):
    """Two ways to the last server, so that a path has something to choose."""
    return "kill_grace: 1s\nqueues:\n" + hop_queue("west", three) + hop_queue("north", three)


@pytest.fixture(scope="module")
def chain(request, clusters):
    """drover -> drover -> drover -> slurm, and a way back from the last to the first."""
    build = os.path.abspath(request.config.getoption("--build"))
    one, two, three = [far(request, build) for _ in range(3)]
    for server in (one, two, three):
        server.server()
    three.config = agents.batch_queues(clusters[0]) + hop_queue("back", one)
    two.config = middle_config(three)
    one.config = "kill_grace: 1s\nqueues:\n" + hop_queue("east", two)
    for server, queue in ((three, "alpha"), (two, "west"), (one, "east")):
        server.agent = agents.start(server, server.config)
        agents.offering(server, queue)
    return types.SimpleNamespace(one=one, two=two, three=three)


@pytest.fixture
def row(chain, alpha):
    """The servers, with an empty folder to work in; empty at the end."""
    for server in (chain.one, chain.two, chain.three):
        server.work = os.path.join(server.base, f"work.{time.monotonic_ns()}")
        os.mkdir(server.work)
    chain.alpha = alpha
    yield chain
    left = [str(n) for n in far_jobs(chain.one)]
    if left:
        chain.one.cli("rm", *left)
    wait_until(lambda: not far_jobs(chain.one) and not far_jobs(chain.two) and not far_jobs(chain.three))


def natives(path):
    return [hop.get("native") for hop in path["hops"]]


def test_the_whole_way_is_shown(row):
    one = row.one
    one.write("in", "input\n")
    done = one.submit(sh("cat in; echo $SLURM_JOB_ID; exit 6", transfer_input_files="in", output="out"))
    number = one.submit(beating(one))
    path = path_in(one, f"{number}.0", 3, "running")
    now_ms = time.time() * 1000
    assert path["summary"] == "running"
    assert [h["server"] for h in path["hops"]] == [s.server_info()["uuid"] for s in (one, row.two, row.three)]
    assert [h["runner"] for h in path["hops"]] == ["drover", "drover", "slurm"]
    assert [h["queue"] for h in path["hops"]][::2] == ["east", "alpha"] and path["hops"][1]["queue"] in ("west", "north")
    assert natives(path)[:2] == [h["job"] for h in path["hops"][1:]] and natives(path)[2] in [line[0] for line in row.alpha.jobs("running")]
    assert all(0 <= now_ms - h["since_ms"] < 600000 for h in path["hops"])
    text = one.cli("path", f"{number}.0")
    assert text.startswith("running\n") and len(text.splitlines()) == 5 and natives(path)[2] in text
    ad = one.cli("path", "--ad", f"{number}.0")
    assert ad.count("Next = [") == 2
    middle = row.two.json("path", natives(path)[0])
    assert [h["job"] for h in middle["hops"]] == natives(path)[:2]
    one.wait(done, code=1)
    lines = one.read("out").split()
    assert one.history(done)[0]["exit_code"] == 6 and lines[0] == "input" and lines[1].isdigit()


def test_control_reaches_the_end(row):
    one = row.one
    number = one.submit(beating(one))
    job = f"{number}.0"
    first = path_in(one, job, 3, "running")
    wait_until(lambda: pids(one))
    one.cli("suspend", job)
    assert path_in(one, job, 3, "suspended")["summary"] == "suspended"
    wait_until(lambda: stopped(one))
    one.cli("resume", job)
    assert natives(path_in(one, job, 3, "running")) == natives(first)
    wait_until(lambda: not stopped(one))
    one.cli("hold", job)
    one.wait_state(job, "held")
    wait_until(lambda: gone(pids(one)[0]) and not far_jobs(row.three) and not row.alpha.jobs("pending,running,suspended"))
    assert [h["state"] for h in one.json("path", job)["hops"]] == ["held"]
    one.cli("release", job)
    second = path_in(one, job, 3, "running")
    assert natives(second)[2] != natives(first)[2] and len(wait_until(lambda: pids(one)[1:])) == 1
    one.cli("vacate", job)
    wait_until(lambda: gone(pids(one)[1]) and pids(one)[2:])
    third = path_in(one, job, 3, "running")
    assert natives(third)[2] not in natives(second) + natives(first)
    one.cli("rm", job)
    one.wait_state(job, "removed")
    wait_until(lambda: gone(pids(one)[2]) and not far_jobs(row.two) and not far_jobs(row.three))
    wait_until(lambda: not row.alpha.jobs("pending,running,completing,suspended"))
    assert len(pids(one)) == 3


def kill_middle(row):
    """The server in the middle and its agent, at once."""
    row.two.kill_server()
    row.two.agent.kill()


def restart_middle(row):
    row.two.server()
    row.two.agent = agents.start(row.two, row.two.config)
    agents.offering(row.two, "west")


def test_the_middle_is_killed(row):
    """Those that run go on, those that were on their way arrive, and each runs once."""
    one = row.one
    number = one.submit(sh(f"echo $DROVER_MEMBER >>{one.work}/ran; while [ ! -e {one.work}/flag ]; do sleep 0.1; done; "
                           "exit $(($DROVER_MEMBER % 4))", output="out.$(Process)", queue="queue 12"))
    wait_until(lambda: one.written("ran"))
    kill_middle(row)
    wait_until(lambda: "does not answer" in one.agent.output())
    one.write("flag", "")
    restart_middle(row)
    one.wait(number, code=1)
    assert sorted(map(int, one.read("ran").split())) == list(range(12))
    assert {r["member"]: (r["exit_code"], r["starts"]) for r in one.history(number)} == {n: (n % 4, 1) for n in range(12)}
    wait_until(lambda: not os.listdir(f"{one.base}/n1/hop.east") and not os.listdir(f"{row.two.base}/n1/hop.west"))


def test_no_loops_through_three(row):
    """The last server's way back to the first is not taken: it has been there."""
    one = row.one
    number = one.submit(sh("exit 0", **{"+DroverPath": "\"n1/east, n1/*, n1/back\""}))
    there = wait_until(lambda: far_jobs(row.three))[0]
    wait_until(lambda: any("DroverServer" in line for line in row.three.api("GET", f"/v1/jobs/{there}.0/why")["text"]))
    assert row.three.job(f"{there}.0")["state"] == "idle" and far_jobs(one) == [number]
    path = wait_until(lambda: (p := one.json("path", f"{number}.0")) and len(p["hops"]) == 3 and p)
    assert path["summary"] == "idle" and "server" in path["hops"][2]
    origin = row.three.api("GET", f"/v1/requests/{there}")["origin"]
    status, answer = one.call("POST", "/v1/requests", {
        "uuid": "11111111-2222-4333-8444-555555555555", "lease_ms": 5000,
        "origin": {"servers": origin["servers"] + " " + row.three.server_info()["uuid"], "job": origin["job"], "hops_left": 3},
        "parts": [{"attributes": {"Cmd": "\"/bin/true\""}}]})
    assert status == 409 and "a loop" in answer["error"]["message"]


def test_paths_have_a_length(row):
    one = row.one
    short = one.submit(sh("exit 0", **{"+DroverMaxHops": "1"}))
    enough = one.submit(sh("exit 0", **{"+DroverMaxHops": "2"}))
    one.wait(enough)
    assert one.history(enough)[0]["exit_code"] == 0
    path = wait_until(lambda: (p := one.json("path", f"{short}.0")) and len(p["hops"]) == 2 and p)
    assert path["summary"] == "idle"  # it waits for a place of the second server's own
    one.cli("rm", str(short))


def test_the_way_is_fixed(row):
    one = row.one
    number = one.submit(beating(one).replace("\nqueue", "\n+DroverPath = \"n1/east, n1/north, n1/alpha\"\nqueue 3"))
    for member in range(3):
        path = path_in(one, f"{number}.{member}", 3, "running")
        assert [h["queue"].split("+")[0] for h in path["hops"]] == ["east", "north", "alpha"]  # +2: another kind of place there


def test_the_last_hops_words_come_home(row):
    """What the cluster says when it refuses is the reason at the first server."""
    ask, words = row.alpha.refused
    number = row.one.submit(sh("exit 0", **{f"+{name}": f'"{value}"' for name, value in ask.items()}))
    held = row.one.wait_state(f"{number}.0", "held")
    assert words in held["hold_reason"]
    assert words in row.one.cli("show", f"{number}.0")
    wait_until(lambda: not far_jobs(row.two) and not far_jobs(row.three))


def test_two_servers_and_slurm(request, build, instance, alpha):
    """Server to server to a cluster."""
    one, two = instance, far(request, build)
    one.server()
    two.server()
    two.agent = agents.start(two, agents.batch_queues(alpha))
    agents.offering(two)
    one.agent = agents.start(one, "kill_grace: 1s\nqueues:\n" + hop_queue("east", two))
    agents.offering(one)
    number = one.submit(beating(one))
    path = path_in(one, f"{number}.0", 2, "running")
    assert [h["runner"] for h in path["hops"]] == ["drover", "slurm"] and path["hops"][1]["native"].isdigit()
    for verb, state in (("suspend", "suspended"), ("resume", "running")):
        one.cli(verb, f"{number}.0")
        path_in(one, f"{number}.0", 2, state)
    pid = pids(one)[0]
    one.cli("hold", f"{number}.0")
    one.wait_state(f"{number}.0", "held")
    wait_until(lambda: gone(pid) and not alpha.jobs("pending,running,suspended"))
    one.cli("release", f"{number}.0")
    second = wait_until(lambda: pids(one)[1:])[0]
    one.cli("rm", f"{number}.0")
    wait_until(lambda: gone(second) and not alpha.jobs("pending,running,completing,suspended"))
    one.wait_state(f"{number}.0", "removed")
