"""An agent that says whatever a test wants: frames of src/wire/drover.proto over TLS, with a key and certificate that it joined with.

Messages are dicts with the names of drover.proto. A field that is not in the file is named by its number: {99: b"x"} is a field of
bytes and {98: 7} one of a number."""
import os
import re
import socket
import ssl
import struct
import subprocess
import tempfile

PROTO = os.path.join(os.path.dirname(__file__), "..", "..", "src", "wire", "drover.proto")
AD = '[ Arch = "X86_64"; OpSys = "LINUX"; HasFileTransfer = true; Cpus = 4; Memory = 4000; Disk = 4000000 ]'
VARINTS = ("uint32", "uint64", "int32", "int64", "bool")


def _schema():
    with open(PROTO, encoding="utf-8") as f:
        text = re.sub(r"//[^\n]*", "", f.read())
    enums = set(re.findall(r"\benum (\w+)", text))
    messages = {}
    for name, body in re.findall(r"\bmessage (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}", text):
        messages[name] = {field: (int(number), kind, bool(repeated)) for repeated, kind, field, number in
                          re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", body)}
    return messages, enums


MESSAGES, ENUMS = _schema()


def _varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _field(number, kind, value):
    if kind == "fixed64":
        return _varint(number << 3 | 1) + struct.pack("<Q", value)
    if kind in VARINTS or kind in ENUMS:
        return _varint(number << 3) + _varint(int(value))
    if kind in MESSAGES:
        value = pack(kind, value)
    elif isinstance(value, str):
        value = value.encode()
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def pack(name, message):
    """The bytes of a message of that name."""
    out = b""
    for field, value in message.items():
        if isinstance(field, int):
            out += _field(field, "bytes" if isinstance(value, bytes) else "uint64", value)
            continue
        number, kind, repeated = MESSAGES[name][field]
        for one in value if repeated else [value]:
            out += _field(number, kind, one)
    return out


def _read_varint(data, at):
    n = shift = 0
    while True:
        byte = data[at]
        n |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return n, at


def unpack(name, data):
    """A message as a dict, of the fields that were sent; repeated ones are lists."""
    numbers = {number: (field, kind, repeated) for field, (number, kind, repeated) in MESSAGES[name].items()}
    found, at = {}, 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        field, kind, repeated = numbers.get(tag >> 3, (tag >> 3, "bytes", False))
        values = []
        if tag & 7 == 1:
            values, at = [struct.unpack_from("<Q", data, at)[0]], at + 8
        elif tag & 7 == 0:
            value, at = _read_varint(data, at)
            values = [value - (1 << 64) if kind in ("int32", "int64") and value >> 63 else value]
        else:
            size, at = _read_varint(data, at)
            value, at = data[at:at + size], at + size
            if kind in MESSAGES:
                values = [unpack(kind, value)]
            elif kind == "string":
                values = [value.decode(errors="replace")]
            elif kind == "bytes":
                values = [value]
            else:  # numbers that are packed
                inner = 0
                while inner < len(value):
                    one, inner = _read_varint(value, inner)
                    values.append(one)
        if repeated:
            found.setdefault(field, []).extend(values)
        else:
            found[field] = values[-1]
    return found


class Ended(Exception):
    """The server closed the connection."""


class Wire:
    """One connection. With a certificate (of `Liar.join`), or without."""

    def __init__(self, address, folder, certificate=True, seconds=30):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # it has nothing to lose
        if certificate:
            context.load_cert_chain(os.path.join(folder, "agent.crt"), os.path.join(folder, "agent.key"))
        if address.startswith("unix:"):
            raw = socket.socket(socket.AF_UNIX)
            raw.settimeout(seconds)
            raw.connect(address.removeprefix("unix:"))
        else:
            host, port = address.rsplit(":", 1)
            raw = socket.create_connection((host.strip("[]"), int(port)), seconds)
        self.socket = context.wrap_socket(raw, server_hostname="droverd")
        self.bytes = b""

    def send_bytes(self, data):
        try:
            self.socket.sendall(struct.pack("<I", len(data)) + data)
        except OSError as e:
            raise Ended(str(e)) from None

    def send(self, **kind):
        """send(renew={"serial": 1}) sends a ToServer of that kind."""
        self.send_bytes(pack("ToServer", kind))

    def get(self):
        """The next ToAgent, as (kind, message)."""
        while len(self.bytes) < 4 or len(self.bytes) < 4 + struct.unpack_from("<I", self.bytes)[0]:
            try:
                more = self.socket.recv(1 << 16)
            except (ssl.SSLError, ConnectionError) as e:
                raise Ended(str(e)) from None
            if not more:
                raise Ended("closed")
            self.bytes += more
        size = struct.unpack_from("<I", self.bytes)[0]
        frame, self.bytes = self.bytes[4:4 + size], self.bytes[4 + size:]
        (kind, message), = unpack("ToAgent", frame).items()
        return kind, message

    def until(self, *kinds, where=None):
        """The next message of one of these kinds (that is so); others are kept in `seen`."""
        while True:
            kind, message = self.get()
            if kind in kinds and (not where or where(message)):
                return message if len(kinds) == 1 else (kind, message)
            if kind == "error":
                raise Ended(message.get("text", ""))

    def close(self):
        self.socket.close()


class Liar:
    """An agent's credential in a folder of its own, and the words that an honest agent would say."""

    def __init__(self, instance, name, *token_options, token=None):
        self.instance, self.name, self.serial = instance, name, 0
        self.folder = tempfile.mkdtemp(prefix=f"liar-{name}-", dir=instance.base)
        token = token or instance.json("token", "agent", "--name", name, *token_options)["token"]
        key = os.path.join(self.folder, "agent.key")
        csr = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                              "-keyout", key, "-subj", f"/CN={name}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             check=True, timeout=90).stdout
        wire = Wire(self.address(), self.folder, certificate=False)
        wire.send(join={"version": 1, "token": token, "name": name, "csr_pem": csr})
        joined = wire.until("joined")
        wire.close()
        with open(os.path.join(self.folder, "agent.crt"), "w", encoding="utf-8") as f:
            f.write(joined["cert_pem"])
        self.wire = None

    def address(self):
        return self.instance.server_json()["agents"][0]

    def hello(self, running=(), finished=(), **more):
        """Connects and says what it has. Returns the InventoryReply."""
        if self.wire:
            self.wire.close()
        self.wire = Wire(self.address(), self.folder)
        self.wire.send(hello={"version": 1, "instance": self.name, "hostname": "liar.example", "program": "liar 1",
                              "filesystem_domain": "nowhere.example", **more})
        self.welcome = self.wire.until("welcome")
        self.wire.send(inventory={"running": running, "finished": finished})
        return self.wire.until("inventory_reply")

    def offer(self, queue="q", ad=AD, jobs_max=4, owners=(), **more):
        self.serial += 1
        self.wire.send(offer={"queue": queue, "serial": self.serial, "ad": ad, "jobs_max": jobs_max, "owners": owners, **more})

    def ping(self):
        """All that was said before has been done by the server's core when this returns: it answers in order, that there is no
        such file. (A renewal is answered by another thread, which does not wait for the core.)"""
        name = os.urandom(32)
        self.wire.send(spool_read={"request": 1, "sha256": name})
        self.wire.until("spool_data", where=lambda m: m["sha256"] == name)

    def take(self, request, members=1):
        """Accepts what is assigned of a request until it has so many members: the attempts, by member."""
        has = {}
        while len(has) < members:
            assign = self.wire.until("assign")
            for group in assign["groups"]:
                for span in group["members"]:
                    self.wire.send(accept={"queue": assign["queue"], "attempts": [
                        {"request": group["request"], "fence": group["fence"], "members": [span]}]})
                    for member in range(span.get("first", 0), span.get("first", 0) + span["count"]):
                        if group["request"] == request:
                            has[member] = {"request": request, "member": member, "fence": group["fence"]}
        return has

    def ended(self):
        """Until the server has ended the session; returns what it said why."""
        try:
            while True:
                kind, message = self.wire.get()
                if kind == "error":
                    return message.get("text", "")
        except Ended as e:
            return str(e)
