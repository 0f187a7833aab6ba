"""The Python client (python/drover): commands, functions, a server elsewhere, bad days."""
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from drover import free_port, wait_until

HERE = sys.modules["drover"]  # the harness has the same name
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def load():
    """The package, under its own name, beside the harness."""
    kept = {name: module for name, module in sys.modules.items() if name == "drover" or name.startswith("drover.")}
    for name in kept:
        del sys.modules[name]
    sys.path.insert(0, os.path.join(ROOT, "python"))
    try:
        return importlib.import_module("drover")
    finally:
        sys.path.remove(os.path.join(ROOT, "python"))
        sys.modules["drover"] = HERE


client_library = load()


@pytest.fixture
def client(drover, monkeypatch):
    monkeypatch.setenv("DROVER_DIR", drover.dir)
    for name in ("DROVER_SERVER", "DROVER_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(drover.work)
    return client_library.Client()


def test_a_command(client):
    request = client.submit("echo said; echo cried >&2; pwd", name="first")
    counts = request.wait()
    assert (counts.jobs, counts.succeeded, counts.done) == (1, 1, True)
    job, = request.jobs()
    assert (job.id, job.state, job.exit_code, job.succeeded) == (f"{request.id}.0", "completed", 0, True)
    output = job.output()
    assert output.stdout == f"said\n{os.getcwd()}\n" and output.stderr == "cried\n"
    assert client.request(request.id).size == 1 and client.job(job.id) == job
    with pytest.raises(client_library.ApiError) as refused:
        client.request(77)
    assert refused.value.status == 404


WORDS = ["", " ", "a b", "it's", '"', "''", "\\", "\\n", "$", "$HOME", "%", "#", "*", "tab\there", "é", "a=b", "-x", "{", "x;y|z&", "`id`"]


def test_words_arrive_as_they_are(client):
    show = [sys.executable, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))"]
    request = client.submit([*show, *WORDS], env={"MINE": "it's \"so\"\\"})
    request.wait(check=True)
    assert request.client.output(f"{request.id}.0").stdout == json.dumps(WORDS) + "\n"
    environment = client.submit([sys.executable, "-c", "import os; print(os.environ['MINE'])"], env={"MINE": "it's \"so\"\\"})
    environment.wait(check=True)
    assert client.output(f"{environment.id}.0").stdout == "it's \"so\"\\\n"


def test_one_job_for_each_value(client):
    values = ["a.fq", "b c", "x\"y\\", "$HOME", "é"]
    request = client.submit(["printf", "<%s|%s>", "{}", "pre-{}.out"], each=values)
    request.wait(check=True)
    assert [job.output().stdout for job in request.jobs()] == [f"<{v}|pre-{v}.out>" for v in values]
    to_files = client.submit(["echo", "{}"], each=["1", "2"], stdout="out-{}.txt")
    to_files.wait(check=True)
    assert open("out-2.txt", encoding="utf-8").read() == "2\n"


@pytest.mark.parametrize("call, message", [
    (lambda c: c.submit([]), "at least one word"),
    (lambda c: c.submit(["no-such-program-here"]), "no program"),
    (lambda c: c.submit(["true", "$(Process)"]), "meaning of their own"),
    (lambda c: c.submit(["true", "a\nb"]), "line break"),
    (lambda c: c.submit(["true", "{}"], each=[]), "no value"),
    (lambda c: c.submit(["true", "{}"], each=["it's"]), "single quote"),
    (lambda c: c.submit("true", memory="much"), "a size is"),
])
def test_what_cannot_be_meant_is_refused(client, call, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        call(client)
    assert client.connection.call("GET", "/v1/requests")["requests"] == []


def test_what_goes_wrong_is_told(client):
    request = client.submit("echo almost >&2; exit 3")
    with pytest.raises(client_library.JobFailed, match="exit code 3: almost"):
        request.wait(check=True)
    held = client.submit("true", attributes={"PeriodicHold": "true", "PeriodicHoldReason": '"because"', "Requirements": "false"})
    counts = held.wait()
    assert counts.held == 1 and not counts.done
    assert held.remove() == 1
    slow = client.submit("sleep 300")
    with pytest.raises(TimeoutError, match="1 of 1 jobs are not over"):
        slow.wait(timeout=0.3)
    assert slow.remove("enough") == 1 and slow.wait().removed == 1


def test_an_executor(client):
    with client_library.Executor(client, python="/usr/bin/python3") as pool:
        assert list(pool.map(math.factorial, range(30))) == [math.factorial(n) for n in range(30)]
        assert list(pool.map(pow, [2, 3], [10, 2])) == [1024, 9] and list(pool.map(pow, [], [])) == []
        assert pool.submit(dict, a=[1, None, "é"]).result(60) == {"a": [1, None, "é"]}
        with pytest.raises(client_library.RemoteError, match="ValueError: math domain error") as failed:
            pool.submit(math.sqrt, -1).result(60)
        assert "Traceback" in failed.value.traceback
        with pytest.raises(client_library.RemoteError, match="not JSON serializable"):
            pool.submit(complex, 1, 2).result(60)
        with pytest.raises(client_library.JobFailed, match="held: cannot read the output result.json"):
            pool.submit(os.abort).result(60)
        slow = pool.submit(time.sleep, 300)
        assert slow.cancel() and wait_until(lambda: client.job(slow.job).state == "removed")
    with pytest.raises(RuntimeError):
        pool.submit(pow, 2, 2)


def forged(result):
    """The program of a job that replaces its result when Python ends."""
    return f"import atexit\n@atexit.register\ndef _():\n    with open('result.json', 'w') as f: f.write({result})"


def test_results_of_a_liar(client):
    """Each caller is told of his own; others get theirs."""
    with client_library.Executor(client, python="/usr/bin/python3") as pool:
        deep = pool.submit(exec, forged("'[' * 200000"))
        words = pool.submit(exec, forged("""'{"error": "\\\\u001b[2J", "traceback": "\\\\u009b2J"}'"""))
        lists = [pool.submit(exec, forged(repr(text))) for text in ('["error"]', '"error"', "7", "null", "{}", '{"value"')]
        with pytest.raises(RecursionError):
            deep.result(240)
        with pytest.raises(client_library.RemoteError) as told:
            words.result(240)
        assert (str(told.value), told.value.traceback) == ("?[2J", "?2J")
        for future in lists:
            assert isinstance(future.exception(240), (TypeError, KeyError, ValueError))
        assert pool.submit(math.factorial, 5).result(240) == 120


def test_an_answer_that_is_too_large(client):
    whole = client.connection.raw("GET", "/v1/server", most=None)
    assert client.connection.raw("GET", "/v1/server", most=len(whole) + 20)
    with pytest.raises(client_library.DroverError, match="larger than"):
        client.connection.raw("GET", "/v1/server", most=len(whole) // 2)
    assert client.connection.raw("GET", "/v1/server")


def test_many_calls_are_one_request(client):
    before = client.connection.call("GET", "/v1/requests", all=1)["requests"]
    with client_library.Executor(client, python="/usr/bin/python3") as pool:
        assert list(pool.map(abs, range(-200, 0))) == list(range(200, 0, -1))
    after = client.connection.call("GET", "/v1/requests", all=1)["requests"]
    assert len(after) - len(before) == 1


def test_a_server_that_dies_meanwhile(drover, client):
    """The one that answers again knows of the jobs; nobody who waits is told anything wrong."""
    go = os.path.join(drover.work, "go")
    request = client.submit(f"while ! test -e {go}; do sleep 0.1; done; echo went")
    told = []
    waiter = threading.Thread(target=lambda: told.append(request.wait(timeout=80)))
    waiter.start()
    wait_until(lambda: client.job(f"{request.id}.0").state == "running")
    os.kill(drover.server_pid(), signal.SIGKILL)
    with open(go, "w", encoding="utf-8"):
        pass
    waiter.join(85)
    assert told and told[0].succeeded == 1 and client.output(f"{request.id}.0").stdout == "went\n"


def test_nobody_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DROVER_DIR", "DROVER_SERVER", "DROVER_TOKEN", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(client_library.NoServer, match="drover up"):
        client_library.Client()
    with pytest.raises(client_library.DroverError, match="user token"):
        client_library.Client("https://localhost:1")


def test_a_server_elsewhere(instance, monkeypatch):
    """Over TLS, with a token, whose fingerprint the server must have."""
    port = free_port()
    instance.server("--api-listen", f"127.0.0.1:{port}")
    token = instance.json("token", "user", "--name", "ann@test", "--role", "user")["token"]
    monkeypatch.setenv("DROVER_SERVER", f"https://127.0.0.1:{port}")
    monkeypatch.setenv("DROVER_TOKEN", token)
    client = client_library.Client()
    request = client.submit("true", env={"A": "b"})
    assert client.connection.call("GET", "/v1/server")["you"] == "ann@test" and request.counts().idle == 1

    words = token.split(".")
    wrong = ".".join([*words[:2], words[2][:-1] + ("0" if words[2][-1] != "0" else "1"), *words[3:]])
    with pytest.raises(client_library.NoServer, match="another fingerprint"):
        client_library.Client(token=wrong, patience=0).counts([request.id])
    secret = ".".join([*words[:4], "0" * len(words[4])])
    with pytest.raises(client_library.ApiError) as refused:
        client_library.Client(token=secret).counts([request.id])
    assert refused.value.status == 401


def test_the_package_is_installed_where_python_looks(request, tmp_path):
    build = request.config.getoption("--build")
    done = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", str(tmp_path)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    found = [folder for folder, _, names in os.walk(tmp_path) if "executor.py" in names]
    assert len(found) == 1 and "dist-packages" in found[0]
    assert os.path.exists(os.path.join(found[0], "py.typed"))  # checkers of types believe the package's own
    text = subprocess.run([sys.executable, "-c", "import drover; print(drover.Client.__module__, drover.__file__)"],
                          env={**os.environ, "PYTHONPATH": os.path.dirname(found[0])}, stdout=subprocess.PIPE, text=True, check=True)
    assert text.stdout.startswith("drover.client " + found[0])
