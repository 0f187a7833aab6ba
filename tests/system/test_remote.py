"""Agents on other machines: TCP, tokens, the spool, `drover get`. The other machine is another filesystem domain."""
import os
import socket
import ssl
import subprocess

import pytest

from drover import free_port, sh, wait_until


def start_remote(instance, name, token, *more, domain="elsewhere.example"):
    """An agent that shares no filesystem with the submitter."""
    config = os.path.join(instance.base, f"{name}.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"filesystem_domain: {domain}\n")
    return instance.start("drover-agent", "--dir", os.path.join(instance.base, name), "--server",
                          f"127.0.0.1:{instance.port}", *(["--token", token] if token else []), "--config", config, *more)


def token(instance, name, *more):
    return instance.json("token", "agent", "--name", name, *more)["token"]


@pytest.fixture
def listening(instance):
    """A server without an agent, that listens for agents on TCP."""
    instance.port = free_port()
    instance.server("--listen", f"127.0.0.1:{instance.port}")
    return instance


def test_work_goes_there_and_results_come_back(listening):
    assert listening.server_info()["remote_agents"] is True
    start_remote(listening, "far", token(listening, "far", "--uses", "1", "--expires", "1h"))
    wait_until(lambda: listening.agents("connected"))
    assert listening.agents()[0]["name"] == "far"
    listening.write("data.txt", "some data\n")
    listening.write("tool.sh", "#!/bin/sh\ncat data.txt\necho made >made.txt\n", 0o755)
    request = listening.run("executable = tool.sh\ntransfer_input_files = data.txt\ntransfer_output_files = made.txt\n"
                            "output = far-$(Process).out\nrequest_memory = 32 MB\nrequest_disk = 1 MB\nqueue 2\n")
    assert not listening.exists("far-0.out"), "the results are in the spool, not at the submitter's"
    names = {f["name"] for f in listening.api("GET", f"/v1/jobs/{request}.0/files")["files"]}
    assert {"far-0.out", "made.txt"} <= names
    listening.cli("get", str(request), "-o", "fetched")
    got = {}
    for folder, _, files in os.walk(os.path.join(listening.work, "fetched")):
        for name in files:
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                got.setdefault(name, []).append(f.read())
    assert got["far-0.out"] == ["some data\n"] and got["far-1.out"] == ["some data\n"]
    assert got["made.txt"] == ["made\n", "made\n"]


def test_folders_and_each_jobs_own_inputs_go_there(listening):
    """A folder keeps its shape, `folder/` gives what is in it, and no job gets what only another one names."""
    start_remote(listening, "far", token(listening, "far", "--uses", "1", "--expires", "1h"))
    for name in ("data/one.txt", "data/sub/two.txt", "more/three.txt", "in.0", "in.1"):
        listening.write(name, name + "\n")
    listening.write("list.sh", "#!/bin/sh\nfind . -type f ! -name '.drover_*' | sort\ncat\n", 0o755)
    text = ("executable = list.sh\ninput = in.$(Process)\noutput = list.$(Process)\ntransfer_input_files = {}\n"
            "transfer_output_files =\nrequest_memory = 32 MB\nrequest_disk = 1 MB\nqueue 2\n")
    request = listening.run(text.format("data"))
    listening.cli("get", str(request), "-o", "got")
    assert listening.read("got/list.1").split() == ["./data/one.txt", "./data/sub/two.txt", "./in.1", "./list.sh", "in.1"]
    request = listening.run(text.format("more/"))
    listening.cli("get", str(request), "-o", "got")
    assert {"./three.txt", "./in.0", "in.0"} <= set(listening.read("got/list.0").split())


def test_a_large_file_survives_the_way(listening):
    start_remote(listening, "far", token(listening, "far"))
    wait_until(lambda: listening.agents("connected"))
    data = os.urandom(9_000_001)
    with open(os.path.join(listening.work, "big.bin"), "wb") as f:
        f.write(data)
    request = listening.run(sh("cp big.bin copy.bin", transfer_input_files="big.bin", transfer_output_files="copy.bin",
                               request_disk="40 MB").replace("request_disk = 1 MB\n", ""))
    listening.cli("get", f"{request}.0", "-o", "big")
    with open(os.path.join(listening.work, "big", "copy.bin"), "rb") as f:
        assert f.read() == data


def test_a_token_is_shown_to_nobody(listening):
    secret = token(listening, "quiet", "--uses", "2")
    words = ["--server", f"127.0.0.1:{listening.port}", "--name", "quiet", "--dir", os.path.join(listening.base, "quiet")]
    agent = listening.start("drover-agent", *words, "--token", secret)
    wait_until(lambda: listening.agents("connected"))
    with open(f"/proc/{agent.pid}/cmdline", "rb") as f:
        shown = f.read().split(b"\0")
    assert secret.encode() not in shown and shown[shown.index(b"--token") + 1] == b"*" * len(secret)
    agent.stop()
    words[-1] += "2"
    program = [listening.program("drover-agent"), *words, "--token-file", "-"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=listening.env) as p:
        p.stdin.write(secret.encode() + b"\n")
        p.stdin.close()
        try:
            wait_until(lambda: os.path.exists(os.path.join(words[-1], "agent.crt")))
        finally:
            p.terminate()


def test_a_token_is_used_once(listening):
    one = token(listening, "far", "--uses", "1")
    start_remote(listening, "far", one)
    wait_until(lambda: listening.agents("connected"))
    second = start_remote(listening, "far2", one)
    wait_until(lambda: not second.running())
    assert second.process.returncode == 1 and "token" in second.output()
    assert len(listening.agents("connected")) == 1


def test_a_false_token_is_refused(listening):
    good = token(listening, "far")
    head, secret = good.rsplit(".", 1)
    bad = f"{head}.{secret[:-4]}{'aaaa' if not secret.endswith('aaaa') else 'bbbb'}"
    agent = start_remote(listening, "far", bad)
    wait_until(lambda: not agent.running())
    assert agent.process.returncode == 1 and "token" in agent.output()
    assert not listening.agents("connected")


def test_the_agent_believes_only_the_tokens_authority(listening):
    good = token(listening, "far")
    parts = good.split(".")
    ca = parts.index(max(parts, key=len)) if len(parts[2]) != 64 else 2
    parts[ca] = "0" * 64
    agent = start_remote(listening, "far", ".".join(parts))
    wait_until(lambda: not agent.running() or len(agent.output().splitlines()) > 1)
    assert not listening.agents("connected")
    start_remote(listening, "good", good)
    wait_until(lambda: listening.agents("connected"))


def test_a_revoked_token_is_refused(listening):
    made = listening.json("token", "agent", "--name", "far")
    listening.cli("token", "revoke", made["id"])
    agent = start_remote(listening, "far", made["token"])
    wait_until(lambda: not agent.running())
    assert agent.process.returncode == 1 and "token" in agent.output()
    assert not listening.agents("connected")


def test_no_transfer_no_match(listening):
    start_remote(listening, "far", token(listening, "far"))
    wait_until(lambda: listening.agents("connected"))
    request = listening.submit(sh("true", should_transfer_files="NO"))
    assert "FileSystemDomain" in listening.cli("why", f"{request}.0")
    assert listening.job(f"{request}.0")["state"] == "idle"


def test_agents_speak_tls_13_only(listening):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", listening.port), 90) as raw:
        with context.wrap_socket(raw) as tls:
            assert tls.version() == "TLSv1.3"
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError):
        with socket.create_connection(("127.0.0.1", listening.port), 90) as raw, context.wrap_socket(raw) as tls:
            tls.recv(1)


def test_a_connection_that_breaks_is_made_again(listening):
    """The agent's TCP connection is cut; what ran goes on and the result arrives."""
    start_remote(listening, "far", token(listening, "far"))
    wait_until(lambda: listening.agents("connected"))
    go = os.path.join(listening.work, "go")
    request = listening.submit(sh(f"echo s >>{listening.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 6"))
    wait_until(lambda: listening.written("starts"))
    listening.daemons[0].stop()
    listening.write("go", "")
    listening.server("--listen", f"127.0.0.1:{listening.port}")
    listening.wait(request, code=1)
    assert listening.read("starts") == "s\n"
    assert listening.history(request)[0]["exit_code"] == 6
