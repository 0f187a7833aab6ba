"""Queue, show, log, history, wait, hold, release, rm."""
import json
import os
import re
import signal
import time

import agents
import pytest
from drover import alive, processes, sh, wait_until, with_command_line
from terminal import Terminal


SLEEP = f"sleep 601.{os.getpid()}", f"sleep 602.{os.getpid()}"  # no other test's


def test_wait_exit_codes(shared):
    good, bad = shared.submit(sh("exit 0", queue="queue 3")), shared.submit(sh("exit 3"))
    slow = shared.submit(sh("sleep 600"))
    shared.wait(good, code=0)
    shared.wait(bad, code=1)
    shared.wait(good, bad, code=1)
    assert shared.cli("wait", "--timeout", "1", str(slow), code=124).code == 124
    shared.cli("wait", "99999", code=2)
    shared.cli("wait", "nonsense", code=2)
    shared.cli("rm", str(slow))
    shared.wait(slow, code=1)


def test_exit_codes_and_signals_are_kept(shared):
    code = shared.run(sh("exit 42"), code=1)
    killed = shared.run(sh("kill -SEGV $$"), code=1)
    assert shared.history(code)[0]["exit_code"] == 42
    job = shared.job(f"{killed}.0")
    assert job["ad"]["ExitBySignal"] is True and job["ad"]["ExitSignal"] == signal.SIGSEGV


def test_hold_and_release(shared):
    held = shared.submit(sh("echo ran", output="held.out"), "--hold")
    shared.wait_state(f"{held}.0", "held")
    assert not shared.exists("held.out")
    shared.cli("release", str(held))
    shared.wait(held)
    assert shared.read("held.out") == "ran\n"


def test_hold_stops_a_running_job(shared):
    marker = os.path.join(shared.work, "hold-pid")
    request = shared.submit(sh(f"echo $$ >{marker}.new; mv {marker}.new {marker}; sleep 600"))
    shared.wait_state(f"{request}.0", "running")
    wait_until(lambda: os.path.exists(marker))
    pid = int(open(marker, encoding="utf-8").read())
    shared.cli("hold", "--reason", "lunch", str(request))
    job = shared.wait_state(f"{request}.0", "held")
    assert "lunch" in job["hold_reason"]
    wait_until(lambda: not alive(pid))
    os.unlink(marker)
    shared.cli("release", f"{request}.0")
    wait_until(lambda: os.path.exists(marker))
    shared.cli("hold", str(request))
    assert shared.wait_state(f"{request}.0", "held")["hold_reason"] == f"by user {shared.job(f'{request}.0')['owner']}"
    shared.cli("rm", str(request))
    shared.wait_state(f"{request}.0", "removed")


def test_a_release_while_the_job_is_still_being_stopped(shared):
    """The job takes a second to end after the first signal, and runs again."""
    mark = os.path.join(shared.work, "stopping")
    request = shared.submit(sh(f"if [ -e {mark} ]; then exit 0; fi; trap 'sleep 1; exit 3' TERM; echo up >{mark}; sleep 600 & wait"))
    wait_until(lambda: os.path.exists(mark))
    shared.cli("hold", str(request))
    assert "1" in shared.cli("release", str(request))
    shared.wait(request)
    assert shared.history(request)[0]["starts"] == 2


def test_rm_ends_the_whole_process_tree(shared):
    mark = os.path.join(shared.work, "tree-mark")
    request = shared.submit(sh(f"setsid {SLEEP[0]} & ({SLEEP[0]} & echo up >{mark}; {SLEEP[0]}) & wait"))
    wait_until(lambda: os.path.exists(mark))
    shared.cli("rm", f"{request}.0")
    shared.wait_state(f"{request}.0", "removed")
    wait_until(lambda: not with_command_line(*SLEEP[0].split()))


def test_the_tree_ends_with_the_job(shared):
    request = shared.submit(sh(f"setsid {SLEEP[1]} >/dev/null 2>&1 & {SLEEP[1]} >/dev/null 2>&1 & exit 0"))
    shared.wait(request)
    wait_until(lambda: not with_command_line(*SLEEP[1].split()))


@pytest.mark.parametrize("how", ["IN_PLACE", "NO", "YES"])
def test_what_a_removed_job_has_printed_stays_in_the_folder(shared, how):
    """As from a shell, where nothing is transferred; else nothing comes back of it."""
    request = shared.submit(sh(f"echo partial; echo oops >&2; echo >{shared.work}/printed-{how}; sleep 600", output=f"cut-{how}.out", error=f"cut-{how}.err",
                               should_transfer_files=how))
    wait_until(lambda: shared.exists(f"printed-{how}"))
    shared.cli("rm", str(request))
    shared.wait_state(f"{request}.0", "removed")
    if how == "YES":
        assert not shared.exists(f"cut-{how}.out") and not shared.exists(f"cut-{how}.err")
    else:
        assert shared.read(f"cut-{how}.out") == "partial\n" and shared.read(f"cut-{how}.err") == "oops\n"


def test_rm_of_some_members(shared):
    request = shared.submit(sh("true", queue="queue 10"), "--hold")
    shared.cli("rm", f"{request}.2-4")
    states = [j["state"] for j in sorted(shared.jobs(request, "&all=1"), key=lambda j: j["member"])]
    assert shared.api("GET", f"/v1/requests/{request}")["removed"] == 3
    assert states.count("held") == 7
    shared.cli("release", str(request))
    shared.wait(request, code=1)
    wait_until(lambda: len(shared.history(request)) == 10)
    assert sorted(j["member"] for j in shared.history(request) if j["state"] == "removed") == [2, 3, 4]


def test_unknown_ids(shared):
    for command in ("hold", "release", "rm", "show", "log", "why", "get", "wait"):
        out = shared.cli(command, "88888.1" if command in ("log", "why") else "88888", code=2)
        assert "88888" in out.err, command
    assert shared.call("GET", "/v1/jobs/88888.0")[0] == 404
    assert shared.call("GET", "/v1/requests/88888")[0] == 404
    assert shared.call("POST", "/v1/actions", {"action": "hold", "ids": ["88888"]})[0] == 404


def test_queue_and_show(shared):
    request = shared.submit(sh("true", queue="queue 5", priority="7"), "--hold")
    text = shared.cli("queue")
    assert str(request) in text
    listed = shared.json("queue")["requests"]
    one = [r for r in listed if r["id"] == request][0]
    assert (one["jobs"], one["held"], one["owner"]) == (5, 5, shared.server_info()["you"])
    jobs = shared.json("queue", str(request))["jobs"]
    assert [j["id"] for j in jobs] == [f"{request}.{n}" for n in range(5)]
    ad = shared.json("show", f"{request}.3")["ad"]
    assert (ad["ClusterId"], ad["ProcId"], ad["JobPrio"], ad["JobStatus"]) == (request, 3, 7, 5)
    assert "ProcId" in shared.cli("show", "--ad", f"{request}.3")
    page = shared.cli("show", f"{request}.3")
    assert "ProcId" not in page and "held because" in page and f"{request}.3" in page
    some = shared.json("queue", str(request), "--constraint", "ProcId >= 3")["jobs"]
    assert [j["member"] for j in some] == [3, 4]
    shared.cli("rm", str(request))
    wait_until(lambda: not [r for r in shared.json("queue")["requests"] if r["id"] == request])


def test_log_tells_the_way_of_a_job(shared):
    request = shared.run(sh("true"))
    names = [e["event"] for e in shared.json("log", f"{request}.0")["events"]]
    assert [n for n in names if n != "started"] == ["submitted", "matched", "accepted", "exited"]
    seqs = [e["seq"] for e in shared.events(f"{request}.0")]
    assert seqs == sorted(seqs)
    assert "exited" in shared.cli("log", f"{request}.0")


def test_history_is_newest_first(shared):
    first, second = shared.run(sh("true")), shared.run(sh("true"))
    rows = shared.json("history", "--limit", "2")["jobs"]
    assert [r["request"] for r in rows] == [second, first]


def test_history_of_all(shared):
    """More rows than a page has, as a table and as JSON."""
    request = shared.submit("executable = /bin/true\nrequirements = false\nqueue 10100\n")
    shared.cli("rm", str(request))
    wait_until(lambda: len(shared.json("history", "--limit", "0", str(request))["jobs"]) == 10100)
    assert len(shared.cli("history", "--limit", "0", str(request)).splitlines()) == 10101


def test_running_job_is_seen(shared):
    request = shared.submit(sh("sleep 600"))
    shared.wait_state(f"{request}.0", "running")
    agents = shared.json("agents")["agents"]
    assert sum(a["running"] for a in agents) >= 1
    assert shared.job(f"{request}.0")["agent"] in [a["name"] for a in agents]
    shared.cli("rm", str(request))
    shared.wait_state(f"{request}.0", "removed")


def test_priority_runs_first(drover):
    """With one processor taken, of two waiting jobs the one with the higher priority runs first."""
    cpus = drover.agents()[0]["queues"][0]["total"]["cpus"]
    blocker = drover.submit(sh("while [ ! -e $(go) ]; do sleep 0.05; done", go=os.path.join(drover.work, "go"),
                               request_cpus=str(int(cpus))))
    drover.wait_state(f"{blocker}.0", "running")
    text = {n: sh(f"echo {n} >>{drover.work}/order; sleep 0.2", request_cpus=str(int(cpus)), priority=str(n))
            for n in (1, 9)}
    low, high = drover.submit(text[1]), drover.submit(text[9])
    drover.write("go", "")
    drover.wait(low, high)
    assert drover.read("order") == "9\n1\n"


def test_prio_changes_it(instance):
    """Of what waits for the one place, what was raised begins first, and what was lowered last."""
    instance.server()
    agents.start(instance, "jobs_max: 1\n")
    agents.queues(instance, 1)
    first = instance.submit(sh(f"while [ ! -e {instance.work}/go ]; do sleep 0.05; done"))
    instance.wait_state(f"{first}.0", "running")
    low, middle, high = (instance.submit(sh(f"echo {name} >>{instance.work}/order")) for name in ("low", "middle", "high"))
    instance.cli("prio", str(low), "--", "-5")
    instance.cli("prio", str(high), "12")
    assert [instance.job(f"{r}.0")["ad"].get("JobPrio", 0) for r in (low, middle, high)] == [-5, 0, 12]
    instance.write("go", "")
    instance.wait(low, middle, high)
    assert instance.read("order").split() == ["high", "middle", "low"]


def test_requests_finish_while_one_waits(shared):
    """A long poll answers when the job ends, not at its timeout."""
    request = shared.submit(sh("sleep 1"))
    seen = ""
    while True:
        asked, before = time.monotonic(), seen
        answer = shared.api("GET", f"/v1/wait?ids={request}&timeout_ms=60000&seen={seen}")
        seen = answer["seen"]
        if answer["done"]:
            break
        assert seen != before, "it answers when something has changed"
    assert answer["succeeded"] == 1
    assert time.monotonic() - asked < 60


def test_events_feed(shared):
    after = 0
    request = shared.run(sh("true"))
    seen = set()
    for _ in range(200):
        page = shared.api("GET", f"/v1/events?after={after}&timeout_ms=0&limit=500")
        seen |= {e["event"] for e in page["events"] if json.dumps(request) in json.dumps(e)}
        if not page["events"]:
            break
        after = page["next"]
    assert {"submitted", "exited"} <= seen


def test_up_ends_with_its_jobs_and_the_next_runs_them_again(drover):
    """Ctrl-C leaves no process behind; what ran is run again by the next `drover up`, and no job is lost."""
    go = os.path.join(drover.work, "go")
    request = drover.submit(sh(f"echo s >>{drover.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 5"))
    wait_until(lambda: drover.written("starts"))
    drover.daemons[0].stop(signal.SIGINT)
    wait_until(lambda: not processes(drover.base))
    drover.up()
    drover.write("go", "")
    drover.wait(request, code=1)
    assert drover.read("starts") == "s\ns\n"
    assert drover.history(request)[0]["exit_code"] == 5


def test_a_wait_on_a_terminal_shows_how_fast_it_goes(shared):
    request = str(shared.submit(sh("sleep 0.7", queue="queue 16")))
    terminal = Terminal(os.path.join(shared.build, "bin", "drover"), "wait", request, env=shared.env)
    wait_until(lambda: re.search(r"\[#+[=.]+\] .*, [\d.]+/s, [\d.:]+s? left ", terminal.text))
    assert terminal.end() == 0 and "16 jobs, all succeeded" in terminal.text.replace("\r", "").rsplit("\033[K", 1)[1]


def test_many_jobs_are_confirmed_on_a_terminal(shared):
    """Once, and with anything but y nothing happens; nobody is asked where there is no terminal, or with -y."""
    many = str(shared.submit(sh("sleep 600", queue="queue 1001"), "--hold"))
    for command, answer, code, left in (("release", "n", 1, 1001), ("requeue", "n", 1, 1001), ("requeue", "y", 0, 0)):
        terminal = Terminal(os.path.join(shared.build, "bin", "drover"), command, many, env=shared.env)
        terminal.shows("Continue? [y/N] ")
        terminal.type(f"{answer}\n")
        assert terminal.end() == code and "Continue?" not in terminal.text
        assert len(json.loads(shared.cli("queue", many, "--state", "held", "--json"))["jobs"]) == left
    shared.cli("hold", many)
    terminal = Terminal(os.path.join(shared.build, "bin", "drover"), "rm", many, env=shared.env)
    terminal.shows("More than 1000 jobs would be removed. Continue? [y/N] ")
    terminal.type("n\n")
    assert terminal.end() == 1 and shared.job(f"{many}.1000")["state"] == "held"
    terminal = Terminal(os.path.join(shared.build, "bin", "drover"), "rm", "-y", many, env=shared.env)
    terminal.shows("1001 jobs removed")
    assert terminal.end() == 0 and "Continue?" not in terminal.text
