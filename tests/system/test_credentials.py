"""Credentials of users: given to their jobs in private files, renewed while they run, and nowhere else."""
import base64
import glob
import json
import os
import signal
import subprocess
import time

import pytest

import agents
from drover import sh, wait_until

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


def test_given_renewed_and_removed(place):
    """A job reads it, sees the new one while it runs, and nothing of either is left anywhere."""
    add(place, "grid", SECRET + "one\n")
    script = ("echo $BEARER_TOKEN_FILE; stat -c '%a %u' $BEARER_TOKEN_FILE $_CONDOR_CREDS; cat $_CONDOR_CREDS/grid.use >seen; "
              f"cp seen {place.work}/now; while grep -q one $BEARER_TOKEN_FILE; do sleep 0.1; done; cat $BEARER_TOKEN_FILE")
    request = place.submit(sh(script, credentials="grid", output="out", transfer_output_files="seen"))
    wait_until(lambda: place.written("now"))
    box = glob.glob(f"{place.base}/n1/jobs/{request}.0.*")[0]
    assert files_with(place.base, SECRET, [f"{box}/.drover_credentials/", place.work, f"{box}/seen"]) == []
    add(place, "grid", SECRET + "two\n")
    place.wait(request)
    lines = place.read("out").split()
    assert lines[0] == f"{box}/.drover_credentials/grid.use"
    assert lines[1:] == ["600", str(os.getuid()), "700", str(os.getuid()), SECRET + "two"]
    assert place.read("seen") == SECRET + "one\n"
    wait_until(lambda: not os.path.exists(box))
    assert files_with(place.base, SECRET, [place.work]) == []
    for command in (["show", f"{request}"], ["log", f"{request}.0"], ["credential", "list"], ["history", "--json"]):
        assert SECRET not in place.cli(*command)


def test_agent_and_server_killed(place):
    """What was replaced while both were dead reaches the job, and goes with it."""
    add(place, "grid", SECRET + "one")
    request = place.submit(sh(f"cp $BEARER_TOKEN_FILE {place.work}/first; while grep -q one $BEARER_TOKEN_FILE; do sleep 0.1; done; "
                              "cat $BEARER_TOKEN_FILE", credentials="grid", output="out"))
    wait_until(lambda: place.written("first"))
    place.agent.kill()
    os.kill(place.server_pid(), signal.SIGKILL)
    wait_until(lambda: not place.pids("droverd"))
    place.daemons = [d for d in place.daemons if d.name != "droverd"]
    place.server()
    add(place, "grid", SECRET + "two")
    place.agent = agents.start(place, place.config)
    place.wait(request)
    assert place.read("out") == SECRET + "two"
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
    key, cert = os.path.join(instance.base, "key.pem"), os.path.join(instance.base, "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                    "2", "-subj", "/CN=ann", "-keyout", key, "-out", cert], check=True, stderr=subprocess.DEVNULL)
    with open(key, encoding="utf-8") as a, open(cert, encoding="utf-8") as b:
        proxy = instance.write("x509up_u7", b.read() + a.read())
    instance.write("bt", jwt(3600))
    instance.run(sh("cat $X509_USER_PROXY >p; cat $BEARER_TOKEN_FILE >t", x509userproxy=proxy, use_scitokens="true",
                    scitokens_file=os.path.join(instance.work, "bt")))
    assert instance.read("p") == instance.read("x509up_u7") and instance.read("t") == instance.read("bt")
    listed = {c["name"]: c for c in instance.json("credential", "list")["credentials"]}
    assert set(listed) == {"x509up_u7", "scitokens"}
    assert abs(listed["x509up_u7"]["expires_ms"] / 1000 - time.time() - 2 * 86400) < 600
