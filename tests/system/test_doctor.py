"""`drover doctor`: each thing that can be wrong is broken, and told with how to mend it."""
import http.server
import json
import os
import shutil
import socketserver
import subprocess
import threading
import time

import pytest

from drover import made


@pytest.fixture(scope="module")
def healthy(request):
    """A folder in which server and agent have run, and are stopped: tests work on copies."""
    with made(request, "d-") as one:
        daemon = one.up()
        daemon.stop()
        yield one


@pytest.fixture
def sick(healthy, tmp_path):
    """A copy of the folder, and what the doctor says of it."""
    folder = str(tmp_path / "state")
    shutil.copytree(healthy.dir, folder, symlinks=True, ignore=shutil.ignore_patterns("*.sock", "*.lock", "jobs"))

    class Sick:
        dir = folder

        def path(self, name):
            return os.path.join(folder, name)

        def doctor(self, *args, code=0):
            out = healthy.cli("--dir", folder, "doctor", "--json", *args, code=code, env={"DROVER_DIR": folder})
            return json.loads(out)["checks"]

        def wrong(self, *args):
            """The sentences of what is wrong."""
            return [row["text"] + " -> " + row["mend"] for row in self.doctor(*args, code=1) if row["verdict"] == "wrong"]

    os.chmod(folder, 0o700)
    return Sick()


def test_nothing_is_wrong(sick):
    rows = sick.doctor()
    assert {row["verdict"] for row in rows} <= {"ok", "warning"}
    assert {"folder", "modes", "settings", "certificates", "disk", "limits", "kernel", "server"} <= {row["check"] for row in rows}
    server, = [row for row in rows if row["check"] == "server"]
    assert server["verdict"] == "warning" and "no server answers" in server["text"]


def chmod(name, mode):
    return lambda sick: os.chmod(sick.path(name), mode)


def replaced(name, text):
    def breaks(sick):
        with open(sick.path(name), "w", encoding="utf-8") as f:
            f.write(text)
    return breaks


def linked(name):
    def breaks(sick):
        os.rename(sick.path(name), sick.path("elsewhere"))
        os.symlink(sick.path("elsewhere"), sick.path(name))
    return breaks


def owned(name):
    return lambda sick: os.chown(sick.path(name), 12345, 12345)


def certificate(name):
    def breaks(sick):
        subprocess.run(f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
                       f"-subj /CN=test -keyout /dev/null -days 3650 -out {sick.path(name)}", shell=True, check=True, capture_output=True)
    return breaks


BROKEN = {
    "others may write the folder": (chmod("", 0o777), "others may write into", "chmod go-w"),
    "others may read the authority's key": (chmod("ca/ca.key", 0o644), "ca/ca.key", "chmod go-rwx"),
    "others may read the agent's key": (chmod("agent/agent.key", 0o640), "agent/agent.key", "make a new one"),
    "others may read the key of credentials": (chmod("credential.key", 0o604), "credential.key", "chmod go-rwx"),
    "others may read the log": (chmod("drover.db", 0o644), "drover.db", "chmod go-rwx"),
    "others may read the spool": (chmod("spool", 0o755), "spool", "chmod go-rwx"),
    "others may write the authority": (chmod("ca/ca.crt", 0o666), "others may write", "chmod go-w"),
    "a key is a link": (linked("credential.key"), "is a symbolic link", "the file itself"),
    "a key is another user's": (owned("credential.key"), "belongs to user 12345", "chown"),
    "settings that are no YAML": (replaced("droverd.yaml", "a: [1,\n"), "droverd.yaml:", "correct that line"),
    "a setting that there is not": (replaced("droverd.yaml", "page: no\nlog_levle: info\n"), "droverd.yaml:2: there is no setting 'log_levle'", "correct that line"),
    "settings that are a list": (replaced("droverd.yaml", "- a\n"), "NAME: VALUE", "correct that line"),
    "a certificate that is none": (replaced("ca/ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "not a readable certificate", "backup"),
    "an agent of another server": (certificate("agent/ca.crt"), "another server's authority", "join again"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_is_told(sick, what):
    breaks, says, mend = BROKEN[what]
    breaks(sick)
    told = sick.wrong()
    assert [line for line in told if says in line and mend in line], told


def test_a_certificate_that_has_expired(sick):
    """One that was good from 2019 to 2020, as anybody can look up in it."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=test", "-keyout",
                    sick.path("k"), "-out", sick.path("c")], check=True, capture_output=True)
    subprocess.run(f"openssl req -new -key {sick.path('k')} -subj /CN=test -out {sick.path('r')} && touch {sick.path('index')} && "
                   f"printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase={sick.path('index')}\\nnew_certs_dir={sick.dir}\\nrand_serial=yes\\n"
                   f"default_md=sha256\\npolicy=p\\n[p]\\ncommonName=supplied\\n' >{sick.path('conf')} && "
                   f"openssl ca -batch -selfsign -config {sick.path('conf')} -keyfile {sick.path('k')} -in {sick.path('r')} -notext "
                   f"-startdate 20190101000000Z -enddate 20200101000000Z -out {sick.path('ca/ca.crt')}", shell=True, check=True, capture_output=True)
    told = sick.wrong()
    assert [line for line in told if "has expired (2020-01-01)" in line or "has expired (2019-12-31)" in line], told


def test_a_map_of_users(sick, tmp_path):
    path = str(tmp_path / "agent.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("min_uid: 500\nusers:\n  ann@here: nobody\n  bob@here: root\n  eve@here: no-such-user-at-all\n")
    told = sick.wrong("--agent-config", path)
    assert [line for line in told if "eve@here is mapped to no-such-user-at-all" in line]
    assert [line for line in told if "bob@here is mapped to root" in line and "min_uid" in line]
    assert not [line for line in told if "ann@here" in line]
    with open(path, "w", encoding="utf-8") as f:
        f.write("users: {{{\n")
    assert [line for line in sick.wrong("--agent-config", path) if "agent.yaml:" in line]


def test_few_files_may_be_open(healthy, sick):
    out = subprocess.run(["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", healthy.program("drover"), "--dir", sick.dir, "doctor", "--json"],
                         env=healthy.env, capture_output=True, text=True, check=True)
    row, = [row for row in json.loads(out.stdout)["checks"] if row["check"] == "limits"]
    assert row["verdict"] == "warning" and "256 files open" in row["text"] and "LimitNOFILE" in row["mend"]


def test_no_folder(healthy, tmp_path):
    p = healthy.cli("--dir", str(tmp_path / "none"), "doctor", code=1)
    assert "wrong    folder" in p and "there is no folder" in p and "drover up" in p


class Liar:
    """A server of whose answers one is changed."""

    def __init__(self, folder, path, body):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                bodies = {"/v1/server": {"now_ms": int(time.time() * 1000), "accepting": True}, "/v1/tokens": {"tokens": []},
                          "/v1/agents": {"agents": [{"name": "a1", "state": "connected", "queues": []}]}, path: body}
                text = json.dumps(bodies[self.path]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def address_string(self):
                return "liar"

            def log_message(self, *_):
                pass

        socket = os.path.join(folder, "s.sock")
        self.server = socketserver.ThreadingUnixStreamServer(socket, Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        with open(os.path.join(folder, "server.json"), "w", encoding="utf-8") as f:
            json.dump({"pid": os.getpid(), "uuid": "x", "api": f"unix:{socket}", "api_tls": None, "agents": ["127.0.0.1:9"]}, f)


SERVERS = {
    "its clock is an hour ahead": ("/v1/server", {"now_ms": 4102444800000, "accepting": True}, "wrong", "differ by"),
    "it takes no work": ("/v1/server", {"now_ms": 4102444800000, "accepting": False, "reason": "the disk is full"}, "wrong", "the disk is full"),
    "a token that expires": ("/v1/tokens", {"tokens": [{"id": "t1", "kind": "user", "expires_ms": 1767323045000}]}, "warning", "t1 has expired"),
    "an agent that is away": ("/v1/agents", {"agents": [{"name": "n7", "state": "lost"}]}, "warning", "n7 is not connected"),
    "an agent that was revoked": ("/v1/agents", {"agents": [{"name": "n7", "state": "lost", "revoked": True}]}, "warning", "n7 was revoked"),
    "no agent": ("/v1/agents", {"agents": []}, "warning", "no agent has joined"),
    "limits that are not real": ("/v1/agents", {"agents": [{"name": "n7", "state": "connected", "queues": [
        {"name": "q", "ad": {"Runner": "process"}, "limits": {"walltime": "shepherd"}}]}]}, "warning", "q@n7: memory, cpu, pids, kill"),
    "a queue that cannot be reached": ("/v1/agents", {"agents": [{"name": "n7", "state": "connected", "queues": [
        {"name": "q", "unreachable": "slurm\x1b[2J does not answer"}]}]}, "warning", "slurm"),
    "a port that is closed": ("/v1/tokens", {"tokens": []}, "wrong", "127.0.0.1:9 takes no connections"),
}


@pytest.mark.parametrize("what", SERVERS)
def test_what_only_the_server_knows(healthy, sick, what):
    path, body, verdict, says = SERVERS[what]
    liar = Liar(sick.dir, path, body)
    try:
        rows = sick.doctor(code=1)  # at least the port is closed
        assert [row for row in rows if row["verdict"] == verdict and says in row["text"] and row["mend"]], rows
        assert "\x1b" not in healthy.cli("--dir", sick.dir, "doctor", code=1)
    finally:
        liar.server.shutdown()
        liar.server.server_close()


def test_a_running_one(drover):
    rows = json.loads(drover.cli("doctor", "--json"))["checks"]
    assert not [row for row in rows if row["verdict"] == "wrong"], rows
    assert {"server", "clock", "tokens", "agents"} <= {row["check"] for row in rows}


def test_up_says_what_is_wrong(instance):
    daemon = instance.up()
    daemon.stop()
    os.chmod(os.path.join(instance.dir, "credential.key"), 0o644)
    said = instance.up().output()
    assert "credential.key" in said and "chmod go-rwx" in said, said
    assert "user namespaces" not in said and "inodes" not in said, said
