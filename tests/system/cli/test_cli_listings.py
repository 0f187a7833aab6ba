"""Listings: tables for people, one JSON document for programs."""
import json
import os
import pty
import re
import select
import subprocess
import time

import pytest
from drover import wait_until

UUID = "11111111-2222-4333-8444-555555555555"
NOW_MS = 1763715600000


def request(number, **more):
    return {"id": number, "uuid": UUID, "owner": "ann@local", "submitted_ms": NOW_MS, "jobs": 10, "idle": 4, "running": 3,
            "held": 1, "completed": 2, "failed": 1, "removed": 0, "cmd": "/usr/bin/sleep", "args": "60", **more}


def job(number, member, state="idle", **more):
    status = {"idle": 1, "running": 2, "removed": 3, "completed": 4, "held": 5}[state]
    return {"id": f"{number}.{member}", "request": number, "member": member, "owner": "ann@local", "state": state,
            "status": status, "submitted_ms": NOW_MS, "starts": 0, "cmd": "/bin/echo", "args": "hello", **more}


def test_requests(cli):
    fake = cli.fake(replies={"GET /v1/requests": {"requests": [request(7), request(12, batch="nightly")], "next": None}})
    lines = cli("queue").splitlines()
    assert lines[0].split() == ["ID", "OWNER", "SUBMITTED", "JOBS", "IDLE", "RUN", "HELD", "DONE", "FAIL", "RM",
                                "END", "COMMAND"]
    assert lines[1].split()[0] == "7" and lines[1].endswith("sleep 60")
    assert lines[2].split()[0] == "12" and lines[2].endswith("nightly")
    assert lines[3] == "2 requests: 8 idle, 6 running, 2 held"
    assert "\033" not in cli.out
    assert "all" not in fake.requests[0].query


def test_expected_times_are_ranges(cli):
    """Half of the jobs like it, and nine in ten; nothing where nothing is known."""
    now = int(time.time() * 1000)
    known, jobs = {"eta_start_ms": now + 60 * 60000, "eta_end_ms": now + 90 * 60000, "eta_end_most_ms": now + 150 * 60000}, [job(7, 0), job(7, 1, "running", started_ms=now)]
    cli.fake(replies={"GET /v1/requests": {"requests": [request(7, **known), request(8, eta_end_ms=None)], "next": None},
                      "GET /v1/requests/7": {**request(7, **known), "parts": []}, "GET /v1/requests/8": {**request(8), "parts": []},
                      **{f"GET /v1/jobs/7.{n}": {**jobs[n], "ad": {}} for n in (0, 1)},
                      **{f"GET /v1/jobs/7.{n}/why": {"id": f"7.{n}", "state": jobs[n]["state"], "text": ["It waits."], "agents": [], **known} for n in (0, 1)}})
    lines = cli("queue").splitlines()
    assert re.search(r" 1:(29|30):\d\d-2:(29|30):\d\d ", lines[1]) and ":" not in lines[2]
    end = r"expected end +in 1:(29|30):\d\d \([-\d: ]+\), nine in ten jobs like it in 2:(29|30):\d\d \([-\d: ]+\)\n"
    assert re.search(end, cli("show", "7")) and "expected" not in cli("show", "8")
    assert re.search(r"expected start +in (59|1:00):\d\d.*\n" + end, cli("show", "7.0"))
    out = cli("show", "7.1")
    assert re.search(end, out) and "expected start" not in out and "It waits" not in out
    assert re.search(" and to end " + end.split("+", 1)[1].replace("\\n", ""), cli("why", "7.0"))


def test_options_become_parameters(cli):
    fake = cli.fake(replies={"GET /v1/jobs": {"jobs": [], "next": None}, "GET /v1/requests": {"requests": [], "next": None}})
    cli("queue", "7", "8.0-99", "--owner", "ann", "-s", "held,idle", "-c", 'Cmd == "/a b"&x', "-a")
    query = fake.requests[0].query
    assert query.pop("limit")
    assert query == {"id": "7,8.0-99", "owner": "ann", "state": "held,idle", "constraint": 'Cmd == "/a b"&x', "all": "1"}
    cli("queue", "--owner=bob", "--all")
    assert fake.requests[1].path == "/v1/requests"
    assert fake.requests[1].query["owner"] == "bob" and fake.requests[1].query["all"] == "1"
    cli("queue", "--mine")
    assert fake.requests[-1].query["owner"] == "me@local"
    cli("queue", "--mine", "--owner", "bob", code=2)


def test_jobs(cli):
    jobs = [job(7, 0, "running", agent="node1", starts=1, started_ms=NOW_MS),
            job(7, 1, "held", hold_reason="no such file: \033[2Jx", hold_code=13),
            job(7, 2, "completed", exit_code=3, started_ms=NOW_MS, ended_ms=NOW_MS + 125000),
            job(7, 3, "completed", exit_signal=9, started_ms=NOW_MS, ended_ms=NOW_MS + 1500)]
    cli.fake(replies={"GET /v1/jobs": {"jobs": jobs, "next": None}})
    out = cli("queue", "7")
    assert "node1" in out and "no such file: ?[2Jx" in out and "\033" not in out
    assert "exit 3" in out and "2:05" in out and "signal 9" in out and "1.5s" in out
    assert out.splitlines()[-1] == "4 jobs: 0 idle, 1 running, 1 held, 2 ended, 2 of them failed"
    assert [line.split()[2] for line in out.splitlines()[1:-1] if line.startswith("7.")] == ["running", "held", "failed", "failed"]


def test_jobs_that_are_alike_share_a_row(cli):
    """Until one differs, or has been at a place; whoever asks for columns has a row for each."""
    jobs = [job(7, n) for n in range(4)] + [job(7, 4, "held", hold_reason="by ann")] + [job(7, n) for n in (5, 6, 8)] + [
        job(8, 0), job(8, 1, starts=1), job(8, 2, args="other")]
    cli.fake(replies={"GET /v1/jobs": {"jobs": jobs, "next": None}})
    lines = cli("queue", "-j").splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == ["7.0-3", "7.4", "7.5-6", "7.8", "8.0", "8.1", "8.2"]
    assert lines[-1] == "11 jobs: 10 idle, 0 running, 1 held"
    assert cli("queue", "-j", "-o", "id", "--no-header").split() == [j["id"] for j in jobs]


def test_columns_order_and_csv(cli):
    jobs = [job(7, 9, "running", agent="n,1", starts=1, started_ms=NOW_MS + 1500, queue="q"),
            job(7, 10, "completed", exit_code=3, started_ms=NOW_MS, ended_ms=NOW_MS + 125000, agent='n"2', starts=2),
            job(12, 0)]
    cli.fake(replies={"GET /v1/jobs": {"jobs": jobs, "next": None}, "GET /v1/agents": {"agents": []}})
    assert cli("queue", "-j", "-o", "ID,exit, agent", "--sort=-id").splitlines() == [
        "  ID  EXIT  AGENT", "12.0     -  -", "7.10     3  n\"2", " 7.9     -  n,1"]
    assert cli("queue", "-j", "--csv", "-o", "id,agent,starts,started,exit", "--sort", "starts").splitlines() == [
        "id,agent,starts,started,exit", "12.0,,0,,", '7.9,"n,1",1,2025-11-21T09:00:01Z,', '7.10,"n""2",2,2025-11-21T09:00:00Z,3']
    assert cli("queue", "-j", "--csv", "--no-header", "-o", "time", "-s", "completed").splitlines()[1] == "125.000"
    cli("queue", "-o", "id,color", code=2)
    assert 'there is no column "color"; the columns are id, owner,' in cli.err
    cli("queue", "-o", "", code=2)
    assert cli("agents", "--csv") == "name,state,queue,cpus,memory,disk,run,done,seen,note\n"


def test_jobs_that_failed_are_in_the_history(cli):
    fake = cli.fake(replies={"GET /v1/history": {"jobs": [job(7, 1, "completed", exit_code=1)], "next": None}})
    assert "exit 1" in cli("queue", "7", "--state", "failed", "-c", "ProcId > 0")
    assert fake.requests[0].query["constraint"] == "JobStatus =?= 4 && (ExitSignal isnt undefined || (ExitCode ?: 0) != 0) && (ProcId > 0)"


def test_watching(cli):
    fake = cli.fake(replies={"GET /v1/requests": {"requests": [request(7)], "next": None}})
    p = subprocess.Popen([cli.program, "queue", "--watch"], cwd=cli.work, env=cli.env, stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: len(fake.asked("GET", "/v1/requests")) >= 2)
    finally:
        p.kill()
        assert p.communicate()[0].count("1 request: ") >= 1


def test_times_of_earlier_attempts_count_for_nothing(cli):
    """What runs again has run since it was started last; what waits again waits; what is held is held since then."""
    now = int(time.time() * 1000)
    jobs = [{**job(7, 0, "running", starts=2, started_ms=now - 120500, ended_ms=now - 300000), "submitted_ms": now - 900000},
            {**job(7, 1, "idle", starts=1, started_ms=now - 600000, ended_ms=now - 300000), "submitted_ms": now - 3600500},
            {**job(7, 2, "held", starts=1, started_ms=now - 600000, ended_ms=now - 590000, entered_ms=now - 180500,
                   hold_reason="x"), "submitted_ms": now - 900000}]
    cli.fake(replies={"GET /v1/jobs": {"jobs": jobs, "next": None}})
    out = cli("queue", "7").splitlines()
    assert [line.split()[3][:4] for line in out[1:4]] == ["2:00", "1:00", "3:00"], out


def test_pages_become_one(cli):
    """Tables go on from page to page, and so does --json with a limit; without one it asks for all at once."""
    pages = {None: ([job(7, 0), job(7, 1)], "7.1"), "7.1": ([job(7, 2)], "7.2"), "7.2": ([job(7, 3)], None)}

    def reply(r):
        if "limit" not in r.query:
            return {"jobs": [j for jobs, _ in pages.values() for j in jobs], "next": None}
        jobs, following = pages[r.query.get("after")]
        return {"jobs": jobs, "next": following}

    fake = cli.fake(replies={"GET /v1/jobs": reply})
    document = cli.json("queue", "--jobs")
    assert [j["id"] for j in document["jobs"]] == ["7.0", "7.1", "7.2", "7.3"] and document["next"] is None
    assert len(fake.requests) == 1 and cli.out.endswith("}\n")
    document = cli.json("queue", "--jobs", "--limit", "3")
    assert [j["id"] for j in document["jobs"]] == ["7.0", "7.1", "7.2"] and document["next"] == "7.2"
    assert fake.requests[-1].query["limit"] == "1"
    assert cli("queue", "--jobs").splitlines()[-1].startswith("4 jobs")


def test_a_big_answer_in_chunks(cli):
    fake = cli.fake(replies={"GET /v1/jobs": {"jobs": [job(7, n) for n in range(20000)], "next": None}})
    fake.chunked = True
    assert len(cli.json("queue", "7")["jobs"]) == 20000
    assert len(cli("queue", "7", "-o", "id").splitlines()) == 20001


def test_show(cli):
    ad = {"Cmd": "/bin/echo", "Requirements": "/Expr(TARGET.Cpus >= 1)/", "ProcId": 0}
    cli.fake(replies={"GET /v1/jobs/7.0": {**job(7, 0), "ad": ad},
                      "GET /v1/requests/7": {**request(7), "parts": [{"attributes": {"Cmd": '"/bin/echo"', "Arguments": r'"say \"a\\b\" $(x)"'}, "rows": 5,
                                                                      "steps": 2}]}})
    out = cli("show", "7.0")
    assert "job " in out and "command " in out and "Requirements" not in out
    assert cli("show", "--ad", "7.0") == 'Cmd = "/bin/echo"\nRequirements = TARGET.Cpus >= 1\nProcId = 0\n'
    out = cli("show", "7")
    assert "5 items of 2 jobs\n" in out and "/bin/echo\n" in out and re.search(r'arguments +say "a\\b" \$\(x\)\n', out)
    assert cli("show", "--ad", "7") == 'Cmd = "/bin/echo"\nArguments = ' + r'"say \"a\\b\" $(x)"' + "\n"
    assert cli.json("show", "7.0")["ad"] == ad
    assert len(cli.json("show", "7.0", "7")) == 2
    cli("show", "9", code=2)
    assert "there is no /v1/requests/9" in cli.err
    cli("show", "7.0-9", code=2)


def test_log_and_why(cli):
    cli.fake(replies={
        "GET /v1/requests/7": {**request(7, jobs=1), "parts": []},
        "GET /v1/requests/8": {**request(8, jobs=5), "parts": []},
        "GET /v1/jobs/7.0/log": {"meta": False, "events": [{"seq": 1, "at_ms": NOW_MS, "event": "submitted"},
                                            {"seq": 4, "at_ms": NOW_MS, "event": "matched", "fence": 1, "agent": "n1"}]},
        "GET /v1/jobs/7.0/why": {"id": "7.0", "state": "idle", "text": ["It waits for memory."], "agents": [
            {"name": "n1", "queue": "main", "verdict": "refuses", "side": "job",
             "clause": "TARGET.Memory >= 4096", "value": "false"}]},
        "GET /v1/jobs/7.1/why": {"id": "7.1", "state": "staging", "text": ["It is staging."], "agents": [],
                                 "eta_start_ms": NOW_MS, "eta_end_ms": NOW_MS + 60000,
                                 "eta_end_most_ms": NOW_MS + 3600000}})
    assert "It is expected to start" in cli("why", "7.1")
    lines = cli("log", "7").splitlines()
    assert lines[1].endswith("submitted") and lines[2].endswith("agent n1")
    out = cli("why", "7.0")
    assert out.startswith("It waits for memory.\n") and "TARGET.Memory >= 4096 is false" in out
    assert cli.json("why", "7")["agents"][0]["name"] == "n1"
    assert len(cli.json("log", "7.0")["events"]) == 2
    cli("log", "8", code=2)
    assert "request 8 has 5 jobs: name one, as in 8.0" in cli.err


def test_agents(cli):
    queue = {"name": "main", "offer": True, "jobs_max": 8, "ad": {}, "running": 2,
             "free": {"cpus": 1.5, "memory_mib": 1024, "disk_kib": 1048576},
             "total": {"cpus": 4, "memory_mib": 8192, "disk_kib": 20971520}, "limits": {"memory": "cgroup v1"}}
    agent = {"name": "n1", "hostname": "n1.x", "state": "connected", "since_ms": NOW_MS, "seen_ms": NOW_MS,
             "filesystem_domain": "d", "program": "drover-agent 0.1.0", "queues": [queue], "running": 2, "completed": 9}
    away = {**agent, "name": "n2", "state": "away", "queues": []}
    cli.fake(replies={"GET /v1/agents": [{"agents": [agent, away]}, {"agents": [agent]}, {"agents": []}]})
    lines = cli("agents").splitlines()
    assert lines[1].split()[:8] == ["n1", "connected", "main", "1.5/4", "1G/8G", "1G/20G", "2", "9"]
    assert "memory:" not in lines[1] and cli("agents", "-o", "name,limits").splitlines()[1] == "n1    memory:cgroup v1"
    assert lines[2].split()[:2] == ["n2", "away"]
    assert "no agents" in cli("agents")


def test_history(cli):
    fake = cli.fake(replies={"GET /v1/history": {"jobs": [
        job(7, 1, "completed", exit_code=1, started_ms=NOW_MS, ended_ms=NOW_MS + 61000, agent="n1")], "next": "x"}})
    out = cli("history", "7", "--limit", "1")
    assert "exit 1" in out and "1:01" in out
    assert fake.requests[0].query == {"id": "7", "limit": "1"}
    assert cli.json("history", "--limit", "1")["next"] == "x"


def test_colours_and_width_on_a_terminal(cli):
    cli.fake(replies={"GET /v1/requests": {"requests": [request(7, cmd="/x/" + "long" * 100)], "next": None}})

    def run(**env):
        parent, child = pty.openpty()
        os.set_blocking(parent, False)
        p = subprocess.Popen([cli.program, "queue"], stdout=child, env={**cli.env, "TERM": "xterm", "DROVER_PAGER": "", **env})
        os.close(child)
        out = b""
        while p.poll() is None or select.select([parent], [], [], 0)[0]:
            if select.select([parent], [], [], 0.1)[0]:
                try:
                    out += os.read(parent, 65536)
                except OSError:
                    break
        os.close(parent)
        assert p.wait() == 0
        return out.decode()

    import fcntl
    import struct
    import termios
    openpty = pty.openpty

    def narrow():
        parent, child = openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        return parent, child

    pty.openpty = narrow
    try:
        assert "\033[" in run()
        plain = run(NO_COLOR="1")
    finally:
        pty.openpty = openpty
    assert "\033[" not in plain
    assert max(len(line) for line in plain.splitlines()) <= 80 and "…" in plain


@pytest.mark.parametrize("text", ["{", '{"requests":5}', "", "[1,2", '{"requests":[{"id":'])
def test_nonsense_is_no_crash(cli, text):
    cli.fake(replies={"GET /v1/requests": (200, text.encode())})
    cli("queue")
    assert cli.out.endswith("0 requests: 0 idle, 0 running, 0 held\n") or "1 request" in cli.out


def test_json_is_the_servers(cli):
    document = {"agents": []}
    cli.fake(replies={"GET /v1/agents": document})
    assert json.loads(cli("agents", "--json")) == document
