"""The other provisioner programs that come with Drover: machines by SSH and Wake-on-LAN, on a real sshd, and OpenStack's API as it is published."""
import base64
import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import pytest

from drover import free_port, processes, wait_until
from login_node import LoginNode
from netns import Net, ip
from test_provision import counted, nodes, ran

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dist", "provisioners")


def call(name, verb, asked, *options):
    """The program alone; its answer's lines."""
    p = subprocess.run([os.path.join(FOLDER, name), *options, verb], input=json.dumps(asked) + "\n", capture_output=True, text=True, timeout=120, check=False)
    return p.returncode, [json.loads(line) for line in p.stdout.splitlines()], p.stderr


def launch(tag, **shape):
    return {"call": "start", "tag": tag, "name": "x-small-1", "shape": "small", "cpus": 2, "memory_mib": 2048, "disk_kib": 1 << 20,
            "server": "a.example:7331", "token": "secret'token", "attributes": "", "with": shape}


# ---- machines

@pytest.fixture
def login(request):
    folder = tempfile.mkdtemp(prefix="ow-", dir=request.config.drover_tmp)
    node = LoginNode(os.path.join(folder, "node"))
    node.start()
    node.wait()
    yield node
    node.cut()


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="the sshd of the tests lets root in")
def test_a_machine_is_woken_runs_jobs_and_sleeps(instance, login):
    """It is found by its tag while nobody reaches it, is reached later, and is turned off when it has nothing to do."""
    port, off, woken = free_port(), os.path.join(instance.work, "off"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    woken.bind(("127.0.0.1", 0))
    woken.settimeout(90)
    home = os.path.join(instance.base, "machine")
    os.makedirs(instance.dir)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""listen: 127.0.0.1:{port}
provision: {{wait: 0s, horizon: 20s}}
provisioners:
  office:
    kind: exec
    command: [{FOLDER}/machines, --state, {instance.base}/claims, --ssh, -F {login.config}, --off, echo off >>{off}, --broadcast, '127.0.0.1:{woken.getsockname()[1]}']
    server: 127.0.0.1:{port}
    max_nodes: 2
    poll: 1s
    period: 2s
    idle_after: 1s
    boot_limit: 90s
    retry: 1s
    shapes:
      desk: {{cpus: 2, memory: 512M, price: 0, with: {{hosts: ['login 52:54:00:12:34:56'], agent: {instance.program("drover-agent")}, folder: {home}}}}}
""")
    login.cut()  # it is asleep
    instance.server()
    request, lines = counted(instance, 3)
    assert woken.recv(2000) == b"\xff" * 6 + bytes.fromhex("525400123456") * 16
    wait_until(lambda: os.listdir(instance.base + "/claims") != ["calls.lock"])
    login.start()  # and is up
    instance.wait(request)
    assert ran(lines) == 3 and all(j["agent"].startswith("office-desk-") for j in instance.history(request))
    wait_until(lambda: {n["state"] for n in nodes(instance)} == {"retired"}, 120)
    wait_until(lambda: os.path.exists(off), 120)
    wait_until(lambda: not os.path.exists(home) and not processes(home), 120)
    wait_until(lambda: os.listdir(instance.base + "/claims") == ["calls.lock"])
    assert "secret" not in instance.logs()
    woken.close()


def test_claims_of_machines(tmp_path):
    """Each host is used once, and is known by its tag, whether it was ever reached or not."""
    options = ("--state", str(tmp_path / "claims"), "--ssh", "-F /dev/null -o ConnectTimeout=1 -p 1")
    hosts = ["127.0.0.1", "localhost"]
    assert call("machines", "list", {"prefix": "d."}, *options)[1] == [{"end": True}]
    assert [call("machines", "start", launch(f"d.n.{n}", hosts=hosts), *options)[1] for n in range(2)] == [[{"instance": h}] for h in hosts]
    assert call("machines", "start", launch("d.n.2", hosts=hosts), *options)[1][0]["reason"] == "capacity"
    said = call("machines", "list", {"prefix": "d."}, *options)[1]
    assert said == [{"instance": "127.0.0.1", "tag": "d.n.0"}, {"instance": "localhost", "tag": "d.n.1"}, {"end": True}]
    assert all(os.stat(os.path.join(tmp_path, "claims", n)).st_mode & 0o77 == 0 for n in hosts)
    assert call("machines", "stop", {"instance": "localhost", "tag": "d.n.9"}, *options) == (0, [], "")  # not that one
    assert call("machines", "stop", {"instance": "localhost", "tag": "d.n.1"}, *options) == (0, [], "")  # it was never reached
    assert call("machines", "list", {"prefix": "d."}, *options)[1][1:] == [{"end": True}]
    for bad in ("-oProxyCommand=x", "host 12:34"):
        assert "no host of ssh" in call("machines", "start", launch("d.n.3", hosts=[bad]), *options)[2]


# ---- OpenStack

class Nova(http.server.BaseHTTPRequestHandler):
    """Keystone and Nova, with pages of two servers."""

    servers, fault, seen, paths, elsewhere = {}, None, [], [], None

    def log_message(self, *args):  # nothing on the terminal
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/v3/auth/tokens":
            identity = body["auth"]["identity"]
            if identity != {"methods": ["application_credential"], "application_credential": {"id": "me", "secret": "s3cret"}}:
                self.say(401, {"error": {"code": 401, "message": "The request you have made requires authentication."}})
                return
            at = f"http://{self.headers['host']}/nova/v2.1"
            self.say(201, {"token": {"catalog": [{"type": "compute", "endpoints": [
                {"interface": "public", "region_id": "north", "url": at}, {"interface": "public", "region_id": "south", "url": "http://127.0.0.1:1"},
                {"interface": "internal", "region_id": "north", "url": "http://127.0.0.1:1"}]}]}}, {"X-Subject-Token": "t"})
        elif self.allowed() and self.path == "/nova/v2.1/servers":
            self.seen.append(body["server"])
            if self.fault:
                self.say(*self.fault)
                return
            name = f"s-{len(self.servers)}"
            self.servers[name] = {"id": name, "status": "BUILD", "metadata": body["server"]["metadata"]}
            self.say(202, {"server": {"id": name}})

    def allowed(self):
        self.paths.append(self.path)
        if self.headers["x-auth-token"] != "t":
            self.say(401, {})
        return self.headers["x-auth-token"] == "t"

    def do_GET(self):
        if not self.allowed():
            return
        if self.elsewhere:
            self.say(302, None, {"Location": self.elsewhere})
            return
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        if self.path == "/nova/v2.1/limits":
            self.say(200, {"limits": {"rate": [], "absolute": {"maxTotalInstances": 10, "totalInstancesUsed": 6, "maxTotalCores": 20, "totalCoresUsed": 13,
                                                               "maxTotalRAMSize": -1, "totalRAMUsed": 99999}}})
            return
        names = sorted(self.servers)
        at = names.index(query["marker"][0]) + 1 if "marker" in query else 0
        more = [{"rel": "next", "href": f"http://elsewhere.example{self.path.split('?')[0]}?limit=2&marker={names[at + 1]}"}] if at + 2 < len(names) else []
        self.say(200, {"servers": [self.servers[n] for n in names[at:at + 2]], "servers_links": more})

    def do_DELETE(self):
        if not self.allowed():
            return
        gone = self.servers.pop(self.path.rsplit("/", 1)[1], None)
        self.say(204 if gone else 404, None if gone else {"itemNotFound": {"code": 404, "message": "no"}})

    def say(self, status, body, head=()):
        text = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        for name, value in dict(head).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def test_openstack(tmp_path):
    """Logged in by an application credential; lists in pages, by tag; starts with user data; errors are told by their kind."""
    nova = type("Handler", (Nova,), {"servers": {}, "seen": [], "paths": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), nova)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "credential").write_text("id = me\nsecret = s3cret\n")
    options = ("--url", f"http://127.0.0.1:{server.server_address[1]}/v3", "--credential", str(tmp_path / "credential"), "--region", "north")
    try:
        shape = {"image": "im", "flavor": 42, "networks": ["net"], "groups": ["default"], "key": "k", "zone": "z", "tags": {"team": "physics"}}
        started = [call("openstack", "start", launch(f"d.n.{n}", **shape), *options)[1][0]["instance"] for n in range(5)]
        call("openstack", "start", launch("other.n.1", image="im", flavor="f"), *options)
        assert nova.seen[0]["metadata"] == {"team": "physics", "drover": "d.n.0"} and nova.seen[0]["networks"] == [{"uuid": "net"}]
        assert nova.seen[0]["flavorRef"] == "42" and nova.seen[-1]["networks"] == "auto"
        script = base64.b64decode(nova.seen[0]["user_data"]).decode()
        assert "'secret'\"'\"'token'" in script and "169.254.169.254" in script and "exec drover-agent --dir /var/lib/drover-agent" in script
        nova.servers[started[0]]["status"] = "DELETED"
        shapes = [{"shape": f"c{n}", "cpus": n, "memory_mib": 1024, "machines": 2, "with": shape} for n in (1, 2, 8)]
        assert [(o["shape"], o["most"]) for o in call("openstack", "describe", {"shapes": shapes}, *options)[1]] == [("c1", 6), ("c2", 5), ("c8", 2)]
        said = call("openstack", "list", {"prefix": "d."}, *options)[1]
        assert said == [{"instance": i, "tag": f"d.n.{n}"} for n, i in enumerate(started)][1:] + [{"end": True}]
        assert call("openstack", "stop", {"instance": started[1], "tag": "d.n.1"}, *options) == (0, [], "")
        assert call("openstack", "stop", {"instance": started[1], "tag": "d.n.1"}, *options) == (0, [], "")  # there is none
        for fault, reason in (((403, {"forbidden": {"code": 403, "message": "Quota exceeded for cores"}}), "capacity"),
                              ((429, {"overLimit": {"message": "slow down"}}), "throttled"), ((400, {"badRequest": {"message": "no image"}}), "failed")):
            nova.fault = fault
            assert call("openstack", "start", launch("d.n.9", **shape), *options)[1][0]["reason"] == reason
        nova.fault = None
        assert "with" in call("openstack", "start", launch("d.n.9"), *options)[2]
        nova.elsewhere = f"http://127.0.0.1:{server.server_address[1]}/elsewhere"  # where the token would be let in
        assert "302" in call("openstack", "list", {"prefix": "d."}, *options)[1][0]["error"]
        assert "/elsewhere" not in nova.paths
        nova.elsewhere = None
        (tmp_path / "credential").write_text("id = me\nsecret = wrong\n")
        assert "requires authentication" in call("openstack", "list", {"prefix": "d."}, *options)[1][0]["error"]
        (tmp_path / "credential").write_text("")
        assert "no lines id and secret" in call("openstack", "list", {"prefix": "d."}, *options)[2]
    finally:
        server.shutdown()
        server.server_close()


# ---- user data

SERVICE = "169.254.169.254"


@pytest.fixture
def wires():
    net = Net()
    yield net
    net.remove()


def test_who_reads_user_data(wires):
    """A cloud's metadata service answers root of the machine, and neither its users nor a container behind it."""
    sys.path.insert(0, FOLDER)
    try:
        import booting  # pylint: disable=import-outside-toplevel,import-error
    finally:
        sys.path.remove(FOLDER)
    machine, _, _ = (wires.add(host) for host in ("machine", "service", "container"))
    ip("-n", wires.hosts["service"], "addr", "add", SERVICE + "/32", "dev", "eth0")
    ip("-n", wires.hosts["machine"], "route", "add", SERVICE, "dev", "eth0")
    ip("-n", wires.hosts["container"], "route", "add", SERVICE, "via", machine)
    subprocess.run([*wires.inside("machine"), "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0",
                    "net.ipv4.conf.eth0.send_redirects=0"], check=True)
    dial = f"import socket; socket.create_connection(('{SERVICE}', 80), 3).close()"
    with subprocess.Popen([*wires.inside("service"), "/usr/bin/python3", "-m", "http.server", "-b", SERVICE, "80"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as service:

        def answers(host, *who):
            """Whether the service answers a program there."""
            return subprocess.run([*wires.inside(host), *who, "/usr/bin/python3", "-c", dial], stderr=subprocess.DEVNULL, check=False).returncode == 0

        user = ("setpriv", "--reuid", "65534", "--clear-groups")
        try:
            wait_until(lambda: answers("machine") and answers("machine", *user) and answers("container"))
            subprocess.run([*wires.inside("machine"), "sh", "-euc", booting.CLOSE], check=True)
            assert answers("machine") and not answers("machine", *user) and not answers("container")
        finally:
            service.kill()
