"""Jobs that go through two servers, to processes."""
import json
import os
import time

import agents
from drover import Failed, free_port, sh, wait_until
from hops import PROCESSES, beating, far, far_jobs, gone, hop_queue, link, pids, runs, stopped
from test_asleep import frozen
from test_checkpoint import counter, kinds, starts


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
    wait_until(lambda: not os.listdir(f"{two.base}/n1/hop.east"))


def test_many_jobs_and_their_way_home(two):
    """What was handed on has its results fetched, and nothing is held for us any more."""
    request = two.submit(sh("echo $DROVER_MEMBER; exit $(($DROVER_MEMBER % 3))", output="out.$(Process)",
                            queue="queue 60"))
    two.wait(request, code=1)
    assert {r["member"]: r["exit_code"] for r in two.history(request)} == {n: n % 3 for n in range(60)}
    assert [two.read(f"out.{n}") for n in range(60)] == [f"{n}\n" for n in range(60)]
    wait_until(lambda: not os.listdir(f"{two.base}/n1/hop.east"))
    row = two.history(request)[0]
    there = two.far.api("GET", f"/v1/requests/{two.far.history()[0]['request']}")
    assert there["origin"]["owner"] == row["owner"] and there["origin"]["job"].startswith(f"{request}.")
    assert there["origin"]["servers"] == two.server_info()["uuid"] and there["origin"]["hops_left"] == 7


def test_control_is_carried_down(two):
    request = two.submit(beating(two))
    first = wait_until(lambda: pids(two))[0]
    two.wait_state(f"{request}.0", "running")
    path = two.api("GET", f"/v1/jobs/{request}.0/path")
    two.cli("suspend", f"{request}.0")
    wait_until(lambda: far_jobs(two.far, "suspended"))
    wait_until(lambda: stopped(two))
    hops = wait_until(lambda: [h for h in two.json("path", f"{request}.0")["hops"][1:] if h["state"] == "suspended"])
    assert hops[0]["server"] == two.far.server_info()["uuid"] and path["hops"][0]["agent"] == "n1"
    two.cli("resume", f"{request}.0")
    wait_until(lambda: not stopped(two))
    two.cli("hold", f"{request}.0")
    two.wait_state(f"{request}.0", "held")
    wait_until(lambda: gone(first) and not far_jobs(two.far))
    two.cli("release", f"{request}.0")
    second = wait_until(lambda: pids(two)[1:])[0]
    two.cli("rm", f"{request}.0")
    wait_until(lambda: gone(second) and not far_jobs(two.far))
    assert two.wait_state(f"{request}.0", "removed")


def test_what_was_suspended_is_resumed_by_the_next_agent(two):
    request = two.submit(beating(two))
    wait_until(lambda: pids(two))
    two.wait_state(f"{request}.0", "running")
    two.cli("suspend", f"{request}.0")
    wait_until(lambda: far_jobs(two.far, "suspended"))
    two.agent.kill()
    two.agent = agents.start(two, two.config)
    agents.offering(two)
    assert stopped(two)
    two.cli("resume", f"{request}.0")
    wait_until(lambda: not stopped(two))
    two.cli("rm", f"{request}.0")
    wait_until(lambda: not far_jobs(two.far))


def test_control_in_the_middle(two):
    """Held there the job stays, and goes on when it is released there; removed there it is held here, with the reason."""
    request = two.submit(sh(f"echo $$ >>{two.work}/pids; sleep 600"))
    first = wait_until(lambda: pids(two))[0]
    there = far_jobs(two.far)[0]
    two.wait_state(f"{request}.0", "running")
    two.far.cli("hold", str(there))
    wait_until(lambda: gone(first) and far_jobs(two.far, "held"))
    assert two.job(f"{request}.0")["state"] == "running"
    two.far.cli("release", str(there))
    second = wait_until(lambda: pids(two)[1:])[0]
    two.far.cli("rm", str(there), "--reason", "the room is needed")
    job = two.wait_state(f"{request}.0", "held")
    assert "removed at east" in job["hold_reason"] and "the room is needed" in job["hold_reason"]
    assert gone(second)


def test_a_far_server_that_is_not_there_is_told(request, build, instance):
    """Of one that was never there, and of one that has gone: by name, with the error, to everybody who looks."""
    second = far(request, build)
    second.server()
    instance.server()
    agents.start(instance, "queues:\n" + hop_queue("east", second)
                 + "  - name: west\n    runner: drover\n    drover: {server: 'unix:/no/such/socket'}\n")

    def words(name):
        return agents.queues(instance, 2)[name]["unreachable"] or ""

    wait_until(lambda: "the other server, unix:/no/such/socket, cannot be used: cannot connect" in words("west"))
    assert not words("east")
    second.daemons[0].kill()
    wait_until(lambda: f"the other server, unix:{second.dir}/api.sock, does not answer: " in words("east"))
    assert instance.cli("agents").count("unreachable") == 2
    second.server()
    wait_until(lambda: not words("east"))


def test_far_server_killed_and_back(two):
    request = two.submit(sh(f"echo $$ >>{two.work}/pids; while [ ! -e {two.work}/flag ]; do sleep 0.05; done; exit 5"))
    wait_until(lambda: pids(two))
    two.wait_state(f"{request}.0", "running")
    two.far.kill_server()
    wait_until(lambda: "does not answer" in two.agent.output())
    assert two.job(f"{request}.0")["state"] == "running"
    two.write("flag", "")
    two.far.server()
    two.wait(request, code=1)
    row = two.history(request)[0]
    assert (row["exit_code"], row["starts"]) == (5, 1) and len(pids(two)) == 1


def test_agent_away_for_longer_than_the_lease(request, build, instance):
    """The far job ends by time alone, before the job is run again."""
    one, two = instance, far(request, build)
    os.makedirs(one.dir)
    with open(f"{one.dir}/droverd.yaml", "w", encoding="utf-8") as f:
        f.write("lease: 5s\n")
    one.server()
    runs(two)
    link(one, two)
    number = one.submit(sh(f"echo $$ >>{one.work}/pids; sleep 600"))
    first = wait_until(lambda: pids(one))[0]
    one.wait_state(f"{number}.0", "running")
    one.agent.kill()
    wait_until(lambda: gone(first))
    one.wait_state(f"{number}.0", "idle")
    there = [e["at_ms"] for e in two.api("GET", "/v1/events?after=0")["events"] if e["event"] == "lease_ended"]
    here = [e["at_ms"] for e in one.events(f"{number}.0") if e["event"] == "lost"]
    assert len(there) == len(here) == 1 and there < here
    one.agent = agents.start(one, one.config)
    second = wait_until(lambda: pids(one)[1:])[0]
    one.cli("rm", f"{number}.0")
    wait_until(lambda: gone(second))
    assert len(pids(one)) == 2


def test_no_loops(two):
    """The far server's only other way leads back: it does not take it."""
    back = two.far
    back.config = "queues:\n" + hop_queue("back", two)
    back.agent = agents.start(back, back.config, name="b1")
    agents.offering(back, "back")
    request = two.submit(sh("exit 0", requirements="TARGET.Runner == \"drover\"",
                            **{"+DroverPath": "\"n1/east, b1/back\""}))
    there = wait_until(lambda: far_jobs(back))[0]
    wait_until(lambda: any("DroverServer" in line for line in back.api("GET", f"/v1/jobs/{there}.0/why")["text"]))
    assert back.job(f"{there}.0")["state"] == "idle" and len(far_jobs(two)) == 1
    path = wait_until(lambda: (p := two.json("path", f"{request}.0")) and len(p["hops"]) == 2 and p)
    assert path["summary"] == path["hops"][1]["state"] == "idle" and path["hops"][0]["state"] == "staging"
    two.cli("rm", str(request))
    wait_until(lambda: not far_jobs(back))


def test_hops_are_counted(two):
    request = two.submit(sh("exit 0", **{"+DroverMaxHops": "0"}))
    wait_until(lambda: any("DroverMaxHops" in line for line in two.api("GET", f"/v1/jobs/{request}.0/why")["text"]))
    assert two.job(f"{request}.0")["state"] == "idle" and not far_jobs(two.far)
    two.cli("rm", str(request))


def test_a_quote_knows_what_the_far_server_has(two):
    """One that nothing there fits is refused here for the same reason as there; it fits when there is more."""
    two.write("wide.sub", sh("true", request_cpus="9"))
    for one, path in ((two, "wide.sub"), (two.far, two.far.write("wide.sub", two.read("wide.sub")))):
        quote = one.json("quote", path)
        assert quote["start_ms"] is None and "fewer processors" in quote["places"][0]["text"]
    agents.start(two.far, PROCESSES.replace("cpus: 8", "cpus: 9"), name="r2")
    quote = wait_until(lambda: (q := two.json("quote", "wide.sub"))["start_ms"] and q)
    assert sorted((p["queue"], p["verdict"]) for p in quote["places"]) == [("east", "refuses"), ("east+2", "fits")]


def test_a_quote_knows_when_the_far_server_has_room(two):
    """All there is busy for ten minutes at most: nobody here says that a job would begin at once."""
    two.write("one.sub", sh("true"))
    assert two.json("quote", "one.sub")["places"][0]["cost"]["wait_ms"] == 0
    busy = two.far.submit(sh("sleep 600", request_cpus="8", **{"+ExpectedRunTime": "600"}))
    two.far.wait_state(f"{busy}.0", "running")
    quote = wait_until(lambda: (q := two.json("quote", "one.sub"))["places"][0]["cost"]["wait_ms"] and q)
    assert 300_000 < quote["places"][0]["cost"]["wait_ms"] <= 660_000 and quote["start_ms"] > time.time() * 1000 + 300_000
    two.far.cli("rm", str(busy))
    wait_until(lambda: two.json("quote", "one.sub")["places"][0]["cost"]["wait_ms"] == 0)


def test_the_first_cause_is_told(two):
    request = two.submit("executable = /no/such/program\nqueue\n")
    assert "/no/such/program" in two.wait_state(f"{request}.0", "held")["hold_reason"]
    path = two.json("path", f"{request}.0")
    assert [h["state"] for h in path["hops"]] == ["held", "held"] and path["failed_hop"] == 2
    assert path["hops"][0]["native"] == path["hops"][1]["job"]
    assert all("/no/such/program" in h["error"] for h in path["hops"])
    assert "hop 2 failed first: " in two.cli("path", f"{request}.0").out
    assert "FailedHop = 2; " in two.cli("path", "--ad", f"{request}.0").out
    wait_until(lambda: not far_jobs(two.far))


def test_who_holds_has_not_failed(two):
    before = two.submit(sh("sleep 600"), "--hold")
    later = two.submit(sh("sleep 600"))
    two.cli("hold", str(later))
    two.wait_state(f"{later}.0", "held")
    for number, words in ((before, "submitted on hold at user's request"), (later, "held by user root@local")):
        assert "failed_hop" not in two.json("path", f"{number}.0")
        assert two.cli("path", f"{number}.0").endswith(f"\nhop 1: {words}\n")
        two.cli("rm", str(number))


def test_over_tls_with_a_token(request, build, instance):
    one, two = instance, far(request, build)
    one.server()
    runs(two, "--api-listen", f"127.0.0.1:{(port := free_port())}")
    token = two.json("token", "user",)["token"]
    with open(os.open(f"{two.base}/token", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
        f.write(token + "\n")
    one.config = ("queues:\n  - name: east\n    runner: drover\n    drover:\n"
                  f"      server: https://127.0.0.1:{port}\n      token_file: {two.base}/token\n")
    agents.start(one, one.config)
    number = one.submit(sh("echo there; exit 4", output="out"))
    one.wait(number, code=1)
    assert one.history(number)[0]["exit_code"] == 4 and one.read("out") == "there\n"
    assert one.server_info()["uuid"] in two.api("GET", "/v1/requests/1")["origin"]["servers"]


def test_alike_jobs_are_one_far_request(two):
    """Whatever differs in them arrives as it was: arguments, streams, names of outputs."""
    odd = ["plain", "it's", 'say "so"', "$(Process) $HOME `x` $$", "back\\slash\\n", "a;b|c&d", "ümläut ☃", "%s %d", "$(x:y)", "{j}"]
    for n, text in enumerate(odd):
        two.write(f"in.{n}", text)
    two.write("same.txt", "the same for all")
    request = two.submit(sh("cat in.$DROVER_MEMBER same.txt; echo $DROVER_MEMBER-$1 >named.$DROVER_MEMBER", output="out.$(Process)",
                            transfer_input_files="same.txt, in.$(Process)", queue=f"queue {len(odd)}"))
    two.wait(request)
    with frozen(two.agent.pid):  # it finds all that there is room for at once
        alike = two.submit("executable = /bin/echo\nrequest_memory = 32 MB\nrequest_disk = 1 MB\noutput = echo.$(Process)\n"
                           "transfer_input_files = same.txt\nqueue arguments from (\n"
                           + "\n".join("\"'" + text.replace("'", "''").replace('"', '""').replace("$", "$(DOLLAR)") + "'\"" for text in odd)
                           + "\n)\n")
        wait_until(lambda: [two.job(f"{alike}.{n}")["state"] for n in (0, 1)] == ["matched"] * 2)
    two.wait(alike)
    for n, text in enumerate(odd):
        assert two.read(f"out.{n}") == text + "the same for all"
        assert two.read(f"named.{n}") == f"{n}-\n" and two.read(f"echo.{n}") == text + "\n"
    asked = {row["request"] for row in two.far.history()}
    assert len(two.far.history()) == 2 * len(odd) and len(asked) < 2 * len(odd)


def nothing_is_kept(one):
    """Of what was handed on nothing is left at the agent, nor held for it there."""
    folder = f"{one.base}/n1/hop.east"
    try:
        wait_until(lambda: not os.listdir(folder))
    except Failed:
        raise Failed("left: " + "\n".join(f"{f}: {open(os.path.join(folder, f), encoding='utf-8').read(2000)}" for f in os.listdir(folder))) from None


def kept(one):
    """Members that the agent still has a note of."""
    folder, found = f"{one.base}/n1/hop.east", set()
    for name in os.listdir(folder):
        if "." in name:
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            members = [int(task["task"].split(".")[1]) for task in json.load(f)["tasks"]]
        try:
            with open(os.path.join(folder, name + ".gone"), encoding="utf-8") as f:
                gone_ones = set(map(int, f.read().split()))
        except FileNotFoundError:
            gone_ones = set()
        found |= {m for n, m in enumerate(members) if n not in gone_ones}
    return found


def waiting(one, count):
    """Jobs that each wait for a file of their own, and run; returns their request, and what each is at the other server. How many
    of them are in one far request is a matter of time."""
    request = one.submit(sh(f"echo $DROVER_MEMBER >>{one.work}/ran; while [ ! -e {one.work}/go.$DROVER_MEMBER ]; do sleep 0.05; done; "
                            "exit $DROVER_MEMBER", output="out.$(Process)", queue=f"queue {count}"))
    wait_until(lambda: one.exists("ran") and len(one.read("ran").split()) == count)
    there = {}
    for member in range(count):
        job = f"{request}.{member}"
        one.wait_state(job, "running")
        there[member] = wait_until(lambda j=job: one.json("path", j)["hops"][0].get("native"))
    assert kept(one) == set(range(count)) and len(set(there.values())) == count
    return request, there


def test_each_of_an_array_is_controlled_alone(two):
    request, there = waiting(two, 4)
    origin = two.far.api("GET", f"/v1/requests/{there[0].split('.')[0]}")["origin"]
    assert origin["job"].startswith(f"{request}.0")
    two.cli("suspend", f"{request}.2")
    two.cli("rm", f"{request}.1")
    wait_until(lambda: two.far.job(there[2])["state"] == "suspended")
    wait_until(lambda: two.far.job(there[1])["state"] == "removed")
    assert [two.far.job(there[n])["state"] for n in (0, 3)] == ["running"] * 2
    path = wait_until(lambda: (p := two.json("path", f"{request}.2")) and len(p["hops"]) == 2 and p)
    assert path["hops"][1]["job"] == path["hops"][0]["native"] == there[2]
    two.cli("resume", f"{request}.2")
    for n in (0, 2, 3):
        two.write(f"go.{n}", "")
    two.wait(request, code=1)
    assert {r["member"]: r["exit_code"] for r in two.history(request) if r["state"] == "completed"} == {0: 0, 2: 2, 3: 3}
    nothing_is_kept(two)
    wait_until(lambda: not far_jobs(two.far))


def test_an_array_outlives_its_agent(two):
    """Those that are home are not fetched again, those that run are found again."""
    request, there = waiting(two, 5)
    for n in (0, 3):
        two.write(f"go.{n}", "")
    wait_until(lambda: {r["member"] for r in two.history(request)} == {0, 3})
    wait_until(lambda: kept(two) == {1, 2, 4})
    two.agent.kill()
    two.write("go.1", "")
    wait_until(lambda: two.far.job(there[1])["state"] == "completed")
    two.agent = agents.start(two, two.config)
    wait_until(lambda: {r["member"] for r in two.history(request)} == {0, 1, 3})
    assert two.job(f"{request}.4")["state"] == "running"
    for n in (2, 4):
        two.write(f"go.{n}", "")
    two.wait(request, code=1)
    assert {r["member"]: (r["exit_code"], r["starts"]) for r in two.history(request)} == {n: (n, 1) for n in range(5)}
    assert sorted(two.read("ran").split()) == list("01234")
    nothing_is_kept(two)


def test_the_agent_is_killed_while_it_hands_on(two):
    """Again and again: whatever was on its way arrives once."""
    request = two.submit(sh(f"echo $DROVER_MEMBER >>{two.work}/ran; exit $(($DROVER_MEMBER % 5))", queue="queue 60"))
    for seen in (1, 12, 30):
        wait_until(lambda n=seen: two.exists("ran") and len(two.read("ran").split()) >= n)
        two.agent.kill()
        two.agent = agents.start(two, two.config)
    two.wait(request, code=1)
    assert {r["member"]: r["exit_code"] for r in two.history(request)} == {n: n % 5 for n in range(60)}
    assert sorted(map(int, two.read("ran").split())) == list(range(60))
    nothing_is_kept(two)


def test_signals_go_down(two):
    """In their order, once each; and a checkpoint is asked for by one, kept here, and gone on from there."""
    request = two.submit(sh(f"for s in USR1 USR2 HUP; do trap \"echo $s >>{two.work}/got\" $s; done; trap 'exit 7' TERM; "
                            f"echo $$ >>{two.work}/pids; while :; do sleep 0.05; done"))
    wait_until(lambda: pids(two))
    two.wait_state(f"{request}.0", "running")
    for n, name in enumerate(("USR1", "12", "SIGHUP", "usr1")):
        assert "1 job signalled" in two.cli("signal", str(request), name)
        wait_until(lambda n=n: two.exists("got") and len(two.read("got").split()) == n + 1)
    assert two.read("got").split() == ["USR1", "USR2", "HUP", "USR1"]
    assert "not a signal" in two.cli("signal", str(request), "NONE", code=2).err
    assert "suspend" in two.cli("signal", str(request), "STOP", code=None).err
    two.cli("signal", str(request), "TERM")
    two.wait(request, code=1)
    assert two.history(request)[0]["exit_code"] == 7

    request = counter(two, pause=12, most=20, **{"+CheckpointSig": "10"})
    wait_until(lambda: two.exists("at") and two.read("at") == "12\n")
    two.wait_state(f"{request}.0", "running")
    two.cli("checkpoint", str(request))
    wait_until(lambda: two.exists("log") and len(two.read("log").splitlines()) == 2)
    two.write("go", "")
    two.wait(request)
    assert starts(two) == [0, 12] and two.read("out") == "from 0\nfrom 12\ndone\n"
    assert kinds(two, f"{request}.0").count("checkpointed") == 1
