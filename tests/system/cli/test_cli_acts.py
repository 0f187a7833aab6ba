"""Commands that change something, waiting, fetching, tokens, and what goes wrong on the way."""
import hashlib
import os
import signal
import subprocess
import threading
import time

import pytest
from drover import wait_until

COUNTS = {"jobs": 4, "finished": 0, "succeeded": 0, "failed": 0, "removed": 0, "held": 0, "running": 0, "idle": 4}


def counts(seen, **more):
    c = {**COUNTS, "done": False, "seen": seen, **more}
    c["idle"] = c["jobs"] - c["finished"] - c["running"] - c["held"]
    return c


def test_actions(cli):
    fake = cli.fake(replies={"POST /v1/actions": {"affected": 3, "errors": []}})
    assert cli("hold", "7", "8.0-1", "--reason", "lunch") == "3 jobs held\n"
    assert fake.requests[-1].body == {"action": "hold", "ids": ["7", "8.0-1"], "reason": "lunch"}
    assert cli("release", "7", "-c", "ProcId < 3") == "3 jobs released\n"
    assert fake.requests[-1].body == {"action": "release", "ids": ["7"], "constraint": "ProcId < 3"}
    assert cli("rm", "--constraint", "true") == "3 jobs removed\n"
    assert fake.requests[-1].body == {"action": "remove", "ids": [], "constraint": "true"}
    assert cli("prio", "7.3", "--", "-5") == "3 jobs changed\n"
    assert fake.requests[-1].body == {"action": "priority", "ids": ["7.3"], "value": -5}
    assert cli.json("rm", "7") == {"affected": 3, "errors": []}


def test_action_errors(cli):
    cli.fake(replies={"POST /v1/actions": [
        {"affected": 1, "errors": [{"id": "8", "message": "it is bob's"}]},
        (404, {"error": {"code": "not_found", "message": "there is no request 99"}}),
        (403, {"error": {"code": "forbidden", "message": "you may not"}})]})
    assert cli("rm", "7", "8", code=1) == "1 job removed\n"
    assert "8: it is bob's" in cli.err
    cli("rm", "99", code=2)
    assert cli.err == "drover: there is no request 99\n"
    cli("rm", "7", code=1)
    cli("rm", code=2)
    assert "which jobs?" in cli.err
    cli("rm", "seven", code=2)
    assert cli.err == "drover: \"seven\" is not an id: jobs of that name are --name 'seven'\n"
    cli("prio", "7", "high", code=2)


@pytest.mark.parametrize("end, code, text", [
    ({"finished": 4, "succeeded": 4, "done": True}, 0, "4 jobs, all succeeded\n"),
    ({"finished": 4, "succeeded": 3, "failed": 1, "done": True}, 1, "4 jobs: 3 succeeded, 1 failed, 0 removed\n"),
    ({"finished": 4, "succeeded": 3, "removed": 1, "done": True}, 1, "4 jobs: 3 succeeded, 0 failed, 1 removed\n")])
def test_wait(cli, end, code, text):
    held = {"id": "7.3", "request": 7, "member": 3, "owner": "a@b", "state": "held", "status": 5, "submitted_ms": 1,
            "hold_reason": "no such file"}
    fake = cli.fake(replies={"GET /v1/wait": [counts("a", running=2), counts("b", held=1), counts("c", **end)],
                             "GET /v1/jobs": {"jobs": [held], "next": None}})
    assert cli("wait", "7", "8.1", code=code) == text
    assert "1 held (7.3: no such file)" in cli.err
    assert [r.query.get("seen") for r in fake.asked("GET", "/v1/wait")] == [None, "a", "b"]
    assert fake.requests[0].query["ids"] == "7,8.1"


def test_wait_ends_when_all_that_is_left_is_held(cli):
    fake = cli.fake(replies={"GET /v1/wait": [counts("a", finished=3, succeeded=3, held=1),
                                              counts("b", finished=4, succeeded=4, done=True)],
                             "GET /v1/jobs": {"jobs": [], "next": None}})
    assert cli("wait", "7", code=3) == "3 of 4 done, 1 held\n"
    assert "drover release 7 lets it run, drover rm 7 removes it" in cli.err
    assert len(fake.asked("GET", "/v1/wait")) == 1
    assert cli("wait", "7", "--ignore-held") == "4 jobs, all succeeded\n"


def test_wait_ends_with_the_first_failure(cli):
    cli.fake(replies={"GET /v1/wait": [counts("a", running=4), counts("b", finished=1, failed=1, running=3)]})
    assert cli("wait", "7", "--fail-fast", code=1) == "1 of 4 done, 1 failed, 3 running\n"


def test_ctrl_c_ends_the_waiting_only(cli):
    cli.fake(replies={"GET /v1/wait": lambda r: (time.sleep(0.2), counts("a", running=4))[1]})
    p = subprocess.Popen([cli.program, "wait", "7"], cwd=cli.work, env=cli.env, stderr=subprocess.PIPE, text=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # ignored in the background
    try:
        wait_until(lambda: cli.fakes[0].asked("GET", "/v1/wait"))
        p.send_signal(signal.SIGINT)
        assert "the jobs go on; drover wait 7 waits for them again" in p.communicate(timeout=60)[1]
        assert p.returncode == -signal.SIGINT
    finally:
        p.kill()


def test_whom_an_action_is_for(cli):
    """Owners and names become a constraint; a name is a pattern of the shell, and no regular expression."""
    fake = cli.fake(replies={"POST /v1/actions": {"affected": 2, "errors": []}})
    cli("rm", "30.1,30.4-9", "8", "-u", "ann", "-n", "a.b-*")
    cli("hold", "--owner", "ann@lab.org", "-c", "ProcId > 3 || x")
    asked = [r.body for r in fake.asked("POST", "/v1/actions")]
    assert asked[0] == {"action": "remove", "ids": ["30.1", "30.4-9", "8"],
                        "constraint": 'Owner == "ann" && regexp("^a\\\\.b-.*$", JobBatchName)'}
    assert asked[1] == {"action": "hold", "ids": [], "constraint": '(ProcId > 3 || x) && User == "ann@lab.org"'}
    cli("rm", "-u", 'x" || true || "', code=2)
    assert "is not a user's name" in cli.err


def test_other_words_for_commands(cli):
    cli.fake(replies={"GET /v1/requests": {"requests": [], "next": None}, "POST /v1/actions": {"affected": 1, "errors": []}})
    assert cli("cancel", "7") == "1 job removed\n"
    assert cli("status") == cli("queue")
    for word, meant in (("squeue", "queue"), ("sbatch", "submit"), ("results", "get"), ("quue", "queue")):
        cli(word, code=2)
        assert f"did you mean {meant}?" in cli.err, word


def test_wait_runs_out_of_time(cli):
    def reply(r):
        time.sleep(min(int(r.query["timeout_ms"]), 2000) / 1000)
        return counts("a")

    cli.fake(replies={"GET /v1/wait": reply})
    assert cli("wait", "7", "--timeout", "0.3s", code=None) == "0 of 4 done, 4 idle\n"
    assert cli.code == 124
    cli("wait", "7", "-qt0", code=124)
    assert cli.out == cli.err == ""


def test_wait_for_an_unknown_id(cli):
    cli.fake(replies={"GET /v1/wait": (404, {"error": {"code": "not_found", "message": "there is no request 99"}})})
    cli("wait", "99", code=2)
    assert cli.err == "drover: there is no request 99\n"


def test_wait_outlives_the_server(cli):
    """The connection breaks, the server is gone for a while, and comes back."""
    state = {"n": 0}

    def reply(r):
        state["n"] += 1
        if state["n"] == 2:
            return None, None
        return counts("a") if state["n"] == 1 else counts("b", finished=4, succeeded=4, done=True)

    fake = cli.fake(replies={"GET /v1/wait": reply})

    def restart():
        while state["n"] < 2:
            time.sleep(0.01)
        fake.stop()
        time.sleep(0.3)
        fake.start()

    thread = threading.Thread(target=restart)
    thread.start()
    assert cli("wait", "7") == "4 jobs, all succeeded\n"
    thread.join()
    assert "the server went away" in cli.err


def test_no_server(cli):
    cli("queue", code=1)
    assert cli.err == f"drover: no Drover server answers at {cli.dir}/api.sock: start one with `drover up`\n"
    fake = cli.fake(replies={})
    fake.stop()  # server.json stays behind
    cli("wait", "7", code=1)
    assert f"no Drover server answers at {cli.dir}/api.sock" in cli.err
    fake.start()
    os.chdir(cli.work)
    assert "server 0.1.0" in cli("version")
    assert "server 0.1.0" in cli("version", "--dir", cli.dir, env={"DROVER_DIR": "/nowhere"})
    assert "server 0.1.0" in cli("--dir", cli.dir, "version", env={"DROVER_DIR": "/nowhere"})


def listing(files):
    return [{"job": job, "name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "mode": mode}
            for job, name, data, mode in files]


def test_get(cli):
    files = [("7.0", "out/a b.txt", b"first", 0o644), ("7.1", "run.sh", b"#!/bin/sh\n", 0o755),
             ("7.0", "log", b"zero", 0o644), ("7.1", "log", b"one" * 100000, 0o644), ("7.1", "empty", b"", 0o600)]
    replies = {f"GET /v1/jobs/{job}/files/{name.replace('/', '%2F').replace(' ', '%20')}": (200, data)
               for job, name, data, _ in files}
    pages = [listing(files[:2]), listing(files[2:])]
    replies["GET /v1/requests/7/files"] = lambda r: {"files": pages[1 if r.query.get("after") else 0],
                                                     "next": None if r.query.get("after") else "c"}
    cli.fake(replies=replies)
    assert cli("get", "7", "-o", "results") == "5 files, 293K\n"
    to = os.path.join(cli.work, "results")

    def read(name):
        with open(os.path.join(to, name), "rb") as f:
            return f.read()

    assert read("out/a b.txt") == b"first" and read("7.0/log") == b"zero" and read("7.1/log") == b"one" * 100000
    assert read("empty") == b""
    assert os.stat(os.path.join(to, "run.sh")).st_mode & 0o777 == 0o755
    assert not [n for _, _, names in os.walk(to) for n in names if ".part-" in n]
    assert len(cli("get", "7", "--list").splitlines()) == 6
    cli("get", "7", "-o", "results")  # again: what is there is replaced


def test_get_stays_in_its_folder(cli):
    for name in ("../x", "/etc/x", "a/../../x", "", "a//b", "."):
        fake = cli.fake(replies={"GET /v1/jobs/7.0/files": {"files": [
            {"name": name, "size": 1, "sha256": "0" * 64, "mode": 0o644}]}})
        cli("get", "7.0", code=1)
        assert "leads out of the folder" in cli.err
        fake.stop()
        cli.fakes.remove(fake)
    assert os.listdir(cli.folder) == ["state", "work"] or sorted(os.listdir(cli.folder)) == ["state", "work"]


def test_get_refuses_half_a_file(cli):
    cli.fake(replies={"GET /v1/jobs/7.0/files": {"files": [{"name": "x", "size": 10, "sha256": "0" * 64}]},
                      "GET /v1/jobs/7.0/files/x": (200, b"short")})
    cli("get", "7.0", code=1)
    assert "5 bytes of 10 were received" in cli.err and os.listdir(cli.work) == []


def test_tokens(cli):
    token = "drover-agent-token.v1." + "a" * 64 + ".t1.secret"
    fake = cli.fake(replies={
        "POST /v1/tokens": (201, {"id": "t1", "token": token, "expires_ms": 1763719200000}),
        "GET /v1/tokens": {"tokens": [{"id": "t1", "kind": "agent", "name": "n1", "uses": 1, "expires_ms": 1}]},
        "DELETE /v1/tokens/t1": {}})
    assert cli("token", "agent", "--name", "n1", "--uses", "2", "--expires", "2h") == token + "\n"
    assert fake.requests[-1].body == {"kind": "agent", "name": "n1", "uses": 2, "expires_s": 7200}
    assert "keep it secret" in cli.err
    cli("token", "user", "--role", "operator")
    assert fake.requests[-1].body == {"kind": "user", "role": "operator"}  # how long, the server says
    assert cli("token", "list").splitlines()[1].split()[:3] == ["t1", "agent", "n1"]
    cli("token", "revoke", "t1")
    cli("token", "revoke", "t2", code=2)
    cli("token", "agent", code=2)
    cli("token", "make", code=2)
    cli("token", "revoke", code=2)


def test_words_that_are_not_known(cli):
    cli("qeue", code=2)
    assert "did you mean queue?" in cli.err
    cli("queue", "--ownr", "x", code=2)
    assert "did you mean --owner?" in cli.err
    cli("queue", "--limit", "many", code=2)
    cli(code=2)
    assert "drover up" in cli.out
    for args in (["help"], ["--help"], ["help", "queue"], ["queue", "--help"], ["rm", "-h"]):
        assert cli(*args) and not cli.err


def test_output_that_cannot_be_written(cli):
    import subprocess
    cli.fake(replies={"GET /v1/agents": {"agents": []}})
    with open("/dev/full", "w", encoding="utf-8") as full:
        p = subprocess.run([cli.program, "agents"], stdout=full, stderr=subprocess.PIPE, env=cli.env, check=False)
    assert p.returncode == 1 and b"No space left" in p.stderr


def test_completion(cli):
    import subprocess
    cli.fake(replies={"GET /v1/requests": {"requests": [], "next": None}})
    script = cli("completion", "bash")
    ask = script + '\nCOMP_WORDS=(drover "$@"); COMP_CWORD=$#; _drover; printf "%s\\n" "${COMPREPLY[@]}"\n'

    def complete(*words):
        p = subprocess.run(["bash", "-c", ask, "bash", *words], stdout=subprocess.PIPE, text=True, check=True, env=cli.env)
        return p.stdout.split()

    assert complete("hi") == ["history"] and "queue" in complete("")
    assert complete("wait", "--ti") == ["--timeout"]
    assert complete("token", "re") == ["revoke"]
    for command in ("queue", "submit", "up"):
        assert cli("completion", "man", command).startswith(f"% DROVER-{command.upper()}(1)")
