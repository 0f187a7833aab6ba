"""A server that says to the agents which join it whatever a test wants: frames of src/wire/drover.proto over TLS, of an authority
of its own. It answers what an agent cannot do without (joins, greetings, renewals, files of the spool), and keeps all it hears."""
import hashlib
import os
import socket
import ssl
import struct
import subprocess
import threading

from drover import wait_until
from wire import pack, unpack

UUID = "11111111-2222-4333-8444-555555555555"


def run(*words, **more):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=90, **more).stdout


class LyingServer:
    """`objects` are what SpoolRead is answered with, by the name asked for; of others it says nothing. `welcome` is said in addition."""

    def __init__(self, folder, renew_ms=2000):
        self.folder, self.renew_ms = folder, renew_ms
        os.makedirs(folder, mode=0o700)
        self.make_certificates()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.path("chain"), self.path("s.key"))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seen, self.outputs, self.objects = [], {}, {}
        self.welcome = {}
        self.connection, self.sessions = None, 0
        self.lock, self.serial = threading.Lock(), 0
        threading.Thread(target=self.accept, daemon=True).start()

    def path(self, name):
        return os.path.join(self.folder, name)

    def make_certificates(self):
        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        run("openssl", "req", "-x509", *new, "-keyout", self.path("ca.key"), "-out", self.path("ca.crt"), "-subj", "/CN=ca", "-days", "30")
        run("openssl", "req", "-new", *new, "-keyout", self.path("s.key"), "-out", self.path("s.csr"), "-subj", "/CN=droverd")
        self.sign("s.csr", "s.crt", "serverAuth")
        with open(self.path("chain"), "wb") as f:
            for name in ("s.crt", "ca.crt"):
                with open(self.path(name), "rb") as part:
                    f.write(part.read())
        der = run("openssl", "x509", "-in", self.path("ca.crt"), "-outform", "DER")
        self.token = f"drover-agent-token.v1.{hashlib.sha256(der).hexdigest()}.abcdefgh.ijklmnop"

    def sign(self, request, certificate, usage):
        with open(self.path("extensions"), "w", encoding="utf-8") as f:
            f.write(f"extendedKeyUsage={usage}\n")
        run("openssl", "x509", "-req", "-in", self.path(request), "-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key"), "-CAcreateserial",
            "-out", self.path(certificate), "-days", "30", "-extfile", self.path("extensions"))

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(raw,), daemon=True).start()

    def talk(self, raw):
        data = b""
        try:
            connection = self.context.wrap_socket(raw, server_side=True)
            while True:
                while len(data) < 4 or len(data) < 4 + struct.unpack_from("<I", data)[0]:
                    more = connection.recv(1 << 16)
                    if not more:
                        return
                    data += more
                size = struct.unpack_from("<I", data)[0]
                frame, data = data[4:4 + size], data[4 + size:]
                (kind, message), = unpack("ToServer", frame).items()
                self.hear(connection, kind, message)
        except OSError:
            pass

    def hear(self, connection, kind, m):
        if kind == "join":
            with open(self.path("a.csr"), "w", encoding="utf-8") as f:
                f.write(m["csr_pem"])
            self.sign("a.csr", "a.crt", "clientAuth")
            self.connection = connection
            self.send(joined={"name": "node", "cert_pem": self.text("a.crt"), "ca_pem": self.text("ca.crt"), "server_uuid": UUID})
        elif kind == "hello":
            self.connection = connection
            self.send(welcome={"version": 1, "server_uuid": UUID, "name": "node", "renew_ms": self.renew_ms, **self.welcome})
        elif kind == "inventory":
            self.send(inventory_reply={})
            self.sessions += 1
        elif kind == "renew":
            self.send(renew_ack={"serial": m["serial"]})
        elif kind == "spool_read" and m["sha256"] in self.objects:
            self.send(spool_data=self.objects[m["sha256"]](m))
        elif kind == "spool_write":
            self.take(m)
        self.seen.append((kind, m))

    def take(self, m):
        """A piece of an output: kept, and said to be."""
        key = m["request"], m["sha256"]
        self.outputs[key] = self.outputs.get(key, b"")[:m.get("offset", 0)] + m.get("data", b"")
        self.send(spool_stored={"sha256": m["sha256"], "stored": len(self.outputs[key]), "complete": bool(m.get("last"))})

    # -- what a test says, and hears

    def send(self, **kind):
        data = pack("ToAgent", kind)
        self.send_bytes(struct.pack("<I", len(data)) + data)

    def send_bytes(self, data):
        with self.lock:
            self.connection.sendall(data)

    def heard(self, *kinds):
        return [(kind, m) for kind, m in list(self.seen) if kind in kinds]

    def queue(self):
        return wait_until(lambda: self.heard("offer"))[-1][1]["queue"]

    def ping(self, seconds=90):
        """All that was said before has been read by the agent when this returns: it answers in order that it has no such script."""
        self.serial += 1
        serial = self.serial
        self.send(script_get={"serial": serial, "request": 2**63, "member": 7, "fence": 7})
        wait_until(lambda: any(m["serial"] == serial for _, m in self.heard("script")), seconds)

    def results(self, request):
        """What was told of a request's attempts: ("accept" | "refuse" | "result", message), in order."""
        found = []
        for kind, m in self.heard("accept", "refuse", "result"):
            for one in m.get("jobs", []) if kind == "result" else m.get("attempts", []):
                if one.get("request") == request:
                    found.append((kind, m if kind == "refuse" else one))
        return found

    def output(self, request):
        """All that a request's attempts have left in the spool."""
        return b"".join(data for (of, _), data in self.outputs.items() if of == request)

    def close(self):
        self.listener.close()
