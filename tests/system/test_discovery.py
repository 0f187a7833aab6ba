"""How a server is found: by a domain's SRV records, which the machine's own resolver asks a small name server for; and the description that it signs."""
import base64
import hashlib
import json
import os
import socket
import struct
import subprocess
import threading

import pytest

from drover import free_port, sh

ADDRESS = "127.0.0.153"


def name(text):
    return b"".join(bytes([len(part)]) + part.encode() for part in text.split(".") if part) + b"\0"


class NameServer:
    """Answers SRV questions from a dict: name → list of (priority, weight, port, host). Other names do not exist."""

    def __init__(self, zones):
        self.zones, self.asked = zones, []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((ADDRESS, 53))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                question, peer = self.socket.recvfrom(4096)
            except OSError:
                return
            if not question:
                return
            at, parts = 12, []
            while question[at]:
                parts.append(question[at + 1:at + 1 + question[at]].decode())
                at += 1 + question[at]
            asked, (kind,) = ".".join(parts), struct.unpack("!H", question[at + 1:at + 3])
            self.asked.append((asked, kind))
            records = self.zones.get(asked) if kind == 33 else []
            answer = question[:2] + struct.pack("!HHHHH", 0x8180 if records is not None else 0x8183, 1, len(records or []), 0, 0) + question[12:at + 5]
            for priority, weight, port, host in records or []:
                data = struct.pack("!HHH", priority, weight, port) + name(host)
                answer += b"\xc0\x0c" + struct.pack("!HHIH", 33, 1, 60, len(data)) + data
            self.socket.sendto(answer, peer)

    def stop(self):
        self.socket.sendto(b"", (ADDRESS, 53))
        self.thread.join()
        self.socket.close()


@pytest.fixture
def port(instance):
    number = free_port()
    instance.server("--api-listen", f"127.0.0.1:{number}")
    return number


def test_a_domain_names_its_servers(instance, port):
    token = instance.json("token", "user", "--name", "root@local")["token"]
    dead = free_port()
    zones = {"_drover._tcp.lab.test": [(20, 0, port, "localhost"), (10, 5, dead, "localhost.")],
             "_drover._tcp.none.test": [(0, 0, 0, ".")], "_drover._tcp.evil.test": [(0, 0, port, "-x/..@localhost")]}
    instance.write("resolv.conf", f"nameserver {ADDRESS}\noptions timeout:2 attempts:1\n")
    server = NameServer(zones)

    def drover(*args, code=0, **env):
        """In a mount namespace with a resolv.conf of its own."""
        script = f'mount --bind {instance.work}/resolv.conf /etc/resolv.conf && exec "$@"'
        p = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", instance.program("drover"), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env={"PATH": "/usr/bin:/bin", "HOME": instance.work, "DROVER_TOKEN": token, **env}, timeout=60, check=False)
        assert p.returncode == code, (args, p.stdout, p.stderr)
        return p.stdout + p.stderr
    try:
        assert drover("--server", "lab.test", "version") and drover("--server=lab.test", "version")
        assert "1 job" in drover("submit", "--server", "lab.test", instance.write("job.sub", sh("true", hold="true")))
        assert [r["id"] for r in json.loads(drover("queue", "--json", DROVER_SERVER="lab.test"))["requests"]] == [1]
        assert ("_drover._tcp.lab.test", 33) in server.asked
        for domain, why in (("none.test", "names no server"), ("evil.test", "names no server"), ("nowhere.test", "_drover._tcp.nowhere.test")):
            assert why in drover("queue", "--server", domain, code=1)
        # what the records say is no proof: the token knows its server
        zones["_drover._tcp.lab.test"] = [(0, 0, port, "localhost")]
        other = token.split(".")
        other[2] = "0" * 64
        assert "not the server that the token is for" in drover("queue", "--server", "lab.test", code=1, DROVER_TOKEN=".".join(other))
    finally:
        server.stop()


def test_the_description_is_signed(instance, port):
    status, said = instance.call("GET", "/.well-known/drover")
    assert status == 200 and instance.call("GET", "/.well-known/drover")[1] == said
    described = json.loads(said["description"])
    assert described["api"] == [f"https://127.0.0.1:{port}"] and described["uuid"] == instance.server_info()["uuid"]
    token = instance.json("token", "user", "--name", "root@local")["token"]
    for file, data in (("authority.pem", said["authority"]), ("text", said["description"])):
        instance.write(file, data)
    der = subprocess.run(["openssl", "x509", "-in", os.path.join(instance.work, "authority.pem"), "-outform", "DER"], stdout=subprocess.PIPE, check=True).stdout
    assert hashlib.sha256(der).hexdigest() == described["fingerprint"] == token.split(".")[2]
    with open(os.path.join(instance.work, "signature"), "wb") as f:
        f.write(base64.b64decode(said["signature"]))
    script = ("openssl x509 -in authority.pem -noout -pubkey > key.pem && openssl dgst -sha256 -verify key.pem -signature signature text && echo x >> text && "
              "! openssl dgst -sha256 -verify key.pem -signature signature text")
    subprocess.run(["sh", "-c", script], cwd=instance.work, check=True, stdout=subprocess.PIPE)
