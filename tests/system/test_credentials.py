"""Credentials of users: given to their jobs in private files, renewed while they run, and nowhere else."""
import base64
import glob
import json
import os
import signal
import socket
import subprocess
import time

import pytest

import agents
from drover import all_pids, free_port, of_process, sh, wait_until

pytest_plugins = ["batch_systems"]

SECRET = "s3cr3t-of-ann-"


def jwt(seconds, mark="x"):
    """A JSON Web Token that is good for so long."""

    def part(doc):
        return base64.urlsafe_b64encode(json.dumps(doc).encode()).rstrip(b"=").decode()

    return ".".join([part({"alg": "none"}), part({"exp": int(time.time()) + seconds, "mark": mark}), SECRET])


@pytest.fixture(params=["process", "slurm"])
def place(request, instance):
    if request.param == "process":
        instance.config = "kill_grace: 1s\nqueues:\n  - name: here\n    cpus: 4\n"
    else:
        instance.config = agents.batch_queues(request.getfixturevalue("alpha"))
    instance.server()
    instance.agent = agents.start(instance, instance.config)
    agents.offering(instance)
    return instance


def files_with(folder, text, but=()):
    """Files below the folder that have this text, without those below the given ones."""
    found = []
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            if any(path.startswith(b) for b in but) or not os.path.isfile(path):
                continue
            try:
                with open(path, "rb") as f:
                    if text.encode() in f.read():
                        found.append(path)
            except FileNotFoundError:
                pass  # it has gone meanwhile
    return found


def add(instance, name, text, kind="token"):
    return instance.cli("credential", "add", name, "--type", kind, "-", stdin=text)


def proxy_of(instance):
    """A certificate with its key, in PEM."""
    key, cert = os.path.join(instance.base, "key.pem"), os.path.join(instance.base, "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                    "2", "-subj", "/CN=ann", "-keyout", key, "-out", cert], check=True, stderr=subprocess.DEVNULL)
    with open(key, encoding="utf-8") as a, open(cert, encoding="utf-8") as b:
        return b.read() + a.read()


def forms(instance, kind):
    """What the type's files are like, with a place for a word; how a job's is called, and what tells it."""
    if kind == "proxy":
        return proxy_of(instance) + SECRET + "%s\n", "grid", "X509_USER_PROXY"
    if kind == "s3":
        return "[default]\naws_access_key_id = ANN\naws_secret_access_key = " + SECRET + "%s\n", "grid", "AWS_SHARED_CREDENTIALS_FILE"
    return SECRET + "%s\n", "grid.use", "BEARER_TOKEN_FILE"


@pytest.mark.parametrize("kind", ["token", "proxy", "s3"])
def test_given_renewed_and_removed(place, kind):
    """A job reads it, sees the new one while it runs, and nothing of either is left anywhere."""
    form, file, variable = forms(place, kind)
    add(place, "grid", form % "one", kind)
    script = (f"echo ${variable}; stat -c '%a %u' ${variable} $_CONDOR_CREDS; cat $_CONDOR_CREDS/{file} >seen; "
              f"cp seen {place.work}/now; while grep -q -e -one ${variable}; do sleep 0.1; done; cp ${variable} {place.work}/last")
    request = place.submit(sh(script, credentials="grid", output="out", transfer_output_files="seen"))
    wait_until(lambda: place.written("now"))
    box = glob.glob(f"{place.base}/n1/jobs/{request}.0.*")[0]
    assert files_with(place.base, SECRET, [f"{box}/.drover_credentials/", place.work, f"{box}/seen"]) == []
    add(place, "grid", form % "two", kind)
    place.wait(request)
    lines = place.read("out").splitlines()
    assert lines == [f"{box}/.drover_credentials/{file}", f"600 {os.getuid()}", f"700 {os.getuid()}"]
    assert place.read("last") == form % "two"
    assert place.read("seen") == form % "one"
    wait_until(lambda: not os.path.exists(box))
    assert files_with(place.base, SECRET, [place.work]) == []
    for command in (["show", f"{request}"], ["log", f"{request}.0"], ["credential", "list"], ["history", "--json"]):
        assert SECRET not in place.cli(*command)


def test_agent_and_server_killed(place):
    """What was replaced while both were dead reaches the job, and goes with it."""
    add(place, "grid", SECRET + "one")
    request = place.submit(sh(f"cp $BEARER_TOKEN_FILE {place.work}/first; while grep -q one $BEARER_TOKEN_FILE; do sleep 0.1; done; "
                              f"cp $BEARER_TOKEN_FILE {place.work}/last", credentials="grid"))
    wait_until(lambda: place.written("first"))
    place.agent.kill()
    place.kill_server()
    place.server()
    add(place, "grid", SECRET + "two")
    place.agent = agents.start(place, place.config)
    place.wait(request)
    assert place.read("last") == SECRET + "two"
    assert place.history(request)[0]["starts"] == 1
    wait_until(lambda: not files_with(place.base, SECRET, [place.work]))


def test_expired_is_held_and_released(instance):
    instance.up()
    add(instance, "wlcg", jwt(-60))
    listed = instance.json("credential", "list")["credentials"]
    assert [(c["name"], c["type"], c["expired"]) for c in listed] == [("wlcg", "token", True)]
    request = instance.submit(sh("cat $_CONDOR_CREDS/wlcg.use", credentials="wlcg", output="out", queue="queue 3"))
    other = instance.submit(sh("true", use_oauth_services="none"))
    for n in range(3):
        job = instance.wait_state(f"{request}.{n}", "held")
        assert job["hold_code"] == 4 and "wlcg has expired" in job["hold_reason"]
    assert "has no credential none" in instance.wait_state(f"{other}.0", "held")["hold_reason"]
    good = jwt(3600, "good")
    said = add(instance, "wlcg", good)
    assert "3 jobs" in said.err and "is good until" in said.err
    instance.wait(request)
    assert instance.read("out") == good
    assert instance.job(f"{other}.0")["state"] == "held"


def test_what_is_none_is_refused_without_a_word_of_it(instance):
    instance.up()
    status, _ = instance.call("PUT", "/v1/credentials/a%20b", {"type": "token", "data": "x"})
    assert status == 400
    for kind in ("proxy", "s3", "key"):
        status, answer = instance.call("PUT", "/v1/credentials/p", {"type": kind, "data": SECRET})
        assert status == 400 and SECRET not in json.dumps(answer)
    add(instance, "grid", SECRET)
    instance.cli("credential", "rm", "grid")
    assert instance.json("credential", "list")["credentials"] == []
    instance.cli("credential", "rm", "grid", code=2)


def test_a_name_with_a_slash(shared):
    for words in (("add", "a/b", "--type", "token", "-"), ("rm", "a/b")):
        said = shared.cli("credential", *words, code=2, stdin="x")
        assert "'a/b' cannot be the name of a credential" in said.err


def test_htcondors_words(instance):
    """A proxy and a token by the path of their files."""
    instance.up()
    proxy = instance.write("x509up_u7", proxy_of(instance))
    instance.write("bt", jwt(3600))
    instance.run(sh("cat $X509_USER_PROXY >p; cat $BEARER_TOKEN_FILE >t", x509userproxy=proxy, use_scitokens="true",
                    scitokens_file=os.path.join(instance.work, "bt")))
    assert instance.read("p") == instance.read("x509up_u7") and instance.read("t") == instance.read("bt")
    listed = {c["name"]: c for c in instance.json("credential", "list")["credentials"]}
    assert set(listed) == {"x509up_u7", "scitokens"}
    assert abs(listed["x509up_u7"]["expires_ms"] / 1000 - time.time() - 2 * 86400) < 600


def told_by_processes(text):
    """Numbers of the processes that have this text in their command line or environment."""
    return [(pid, name) for pid in all_pids() for name in ("cmdline", "environ") if text.encode() in of_process(pid, name)]


def test_no_process_tells_it(place):
    """Neither a command line nor an environment has it, of the job that it is for, of another, or of what serves them; and what dies
    with it in its memory leaves no dump of it."""
    add(place, "grid", SECRET + "one")
    mine = place.submit(sh(f"cp $BEARER_TOKEN_FILE {place.work}/now; while [ ! -e {place.work}/go ]; do sleep 0.1; done; env >env1",
                           credentials="grid", transfer_output_files="env1"))
    wait_until(lambda: place.written("now"))
    other = place.submit(sh(f"env >env2; ls -a >>env2; touch {place.work}/there; while [ ! -e {place.work}/go ]; do sleep 0.1; done",
                            transfer_output_files="env2"))
    wait_until(lambda: place.exists("there"))
    assert told_by_processes(SECRET) == []
    box = glob.glob(f"{place.base}/n1/jobs/{mine}.0.*/.drover_credentials")
    place.agent.stop(signal.SIGABRT)
    place.kill_server(signal.SIGABRT)
    assert files_with(place.base, SECRET, [place.work, *box]) == []
    place.server()
    place.agent = agents.start(place, place.config)
    place.write("go", "")
    place.wait(mine, other)
    assert SECRET not in place.read("env1") + place.read("env2")
    assert "BEARER_TOKEN_FILE" in place.read("env1") and "CREDS" not in place.read("env2") and "drover_cred" not in place.read("env2")


def has_gone(instance):
    return lambda: not files_with(instance.base, SECRET, [instance.work])


def test_removed_while_the_agent_was_dead(instance):
    """A job that is removed, and has died with its shepherd: an agent that is started without a server, and with a batch system that
    does not answer, removes its credentials all the same."""
    program = os.path.join(instance.base, "lsf")
    with open(os.open(program, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexit 7\n")
    instance.config = f"queues:\n  - name: here\n    cpus: 4\n  - name: far\n    runner: exec\n    exec: {{program: {program}}}\n"
    instance.server()
    instance.agent = agents.start(instance, instance.config)
    agents.offering(instance, "here")
    add(instance, "grid", SECRET + "one")
    request = instance.submit(sh(f"cp $BEARER_TOKEN_FILE {instance.work}/now; sleep 1000", credentials="grid"))
    wait_until(lambda: instance.written("now"))
    instance.agent.kill()
    for pid in instance.pids("drover-shepherd"):
        os.kill(pid, signal.SIGKILL)
    instance.cli("rm", str(request))
    server, = [d for d in instance.daemons if d.name == "droverd"]
    address = instance.server_json()["agents"][0]
    server.stop()
    instance.daemons.remove(server)
    assert not has_gone(instance)()
    instance.start("drover-agent", "--config", os.path.join(instance.base, "n1.yaml"), "--server", address)
    wait_until(has_gone(instance))


@pytest.mark.parametrize("system", [None, "alpha"])
def test_gone_with_the_lease(request, instance, system):
    """Of an agent that does not come back the shepherd, or its own script, ends a job, and removes what it was given."""
    config = agents.batch_queues(request.getfixturevalue(system)) if system else "kill_grace: 1s\n"
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"lease: {10 if system else 3}s\n")
    instance.server()
    instance.agent = agents.start(instance, config)
    agents.offering(instance)
    add(instance, "grid", SECRET + "one")
    instance.submit(sh(f"cp $BEARER_TOKEN_FILE {instance.work}/now; sleep 1000", credentials="grid"))
    wait_until(lambda: instance.written("now"))
    instance.agent.kill()
    wait_until(has_gone(instance))


def test_gone_while_outputs_wait(place):
    """Once no step of a job is left its files of credentials go, however long its outputs take."""
    port = free_port()
    with socket.socket() as s:  # one that takes connections and says nothing
        s.bind(("127.0.0.1", port))
        s.listen(50)
        add(place, "grid", SECRET + "one")
        request = place.submit(sh(f"cp $BEARER_TOKEN_FILE {place.work}/now; echo >made", credentials="grid", transfer_output_files="made",
                                  transfer_output_remaps=f"made=http://127.0.0.1:{port}/made"))
        wait_until(lambda: [h for h in place.json("path", f"{request}.0")["hops"] if "sending output 1" in h.get("doing", "")])
        assert place.exists("now") and has_gone(place)()
        place.agent.stop()
