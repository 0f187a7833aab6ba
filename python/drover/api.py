"""Calls of the server's HTTP API, over its unix socket or TLS.

Which server, as with the command: what is given; else $DROVER_SERVER with $DROVER_TOKEN; else the folder $DROVER_DIR; else
the default folder, if a server was started there; else the lines of ~/.config/drover/server (or /etc/drover/server) and
~/.config/drover/token; else the machine's service. Several addresses, with blanks or commas between them, are those of
servers that stand in for each other: whoever leads is asked.
"""
from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Optional

PATIENCE_S = 60.0  # for which a call is repeated: a server that is started anew is back by then
PAUSE_MAX_S = 2.0
READY_S = 3.0  # for which one of several servers may take to say whether it leads
PIECE = 4 << 20  # bytes of an upload at a time
ANSWER_MAX = 256 << 20  # bytes of an answer, but for an output that the caller asks for


def printable(text: str) -> str:
    """Without what commands a terminal: servers, agents and jobs have a part in what errors say."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


class DroverError(Exception):
    """What this package raises."""

    def __init__(self, message: str = ""):
        super().__init__(printable(message))


class NoServer(DroverError):
    """Nobody answers there."""


class ApiError(DroverError):
    """The server has refused a call."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status, self.code = status, code


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float):
        super().__init__("drover", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class _Pinned(http.client.HTTPSConnection):
    """TLS with the server whose authority the token names: its fingerprint is the third word of the token."""

    def __init__(self, host: str, port: int, fingerprint: str, timeout: float):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the authority signs for this one server only
        context.verify_mode = ssl.CERT_NONE
        super().__init__(host, port, timeout=timeout, context=context)
        self.fingerprint = fingerprint
        self.authority: Optional[str] = None

    def connect(self) -> None:
        if not self.authority:
            self.authority = self._fetch_authority()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.load_verify_locations(cadata=self.authority)
        plain = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = context.wrap_socket(plain, server_hostname=self.host)

    def _fetch_authority(self) -> str:
        """The authority's certificate, as the server shows it; believed by its fingerprint alone."""
        super().connect()
        inner = self.sock._sslobj if not hasattr(self.sock, "get_unverified_chain") else self.sock  # public from Python 3.13 on
        chain = [c if isinstance(c, bytes) else ssl.PEM_cert_to_DER_cert(c.public_bytes()) for c in inner.get_unverified_chain()]
        self.sock.close()  # not self.close(), which would forget the request that connects
        self.sock = None
        for der in chain:
            if hashlib.sha256(der).hexdigest() == self.fingerprint:
                return ssl.DER_cert_to_PEM_cert(der)
        raise NoServer("the server is not the one that the token was made by: its authority has another fingerprint")


def _first_line(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8") as f:
            return f.readline().strip() or None
    except OSError:
        return None


def _socket_of(folder: str) -> Optional[str]:
    try:
        with open(os.path.join(folder, "server.json"), encoding="utf-8") as f:
            address = json.load(f)["api"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return address[5:] if isinstance(address, str) and address.startswith("unix:/") else None


def _is_standby(status: int, body: bytes) -> bool:
    try:
        return status == 503 and json.loads(body)["error"]["code"] == "standby"
    except (ValueError, KeyError, TypeError):
        return False


class Connection:
    """Where the server is. Threads may share one: each has its own connection."""

    def __init__(self, server: Optional[str] = None, token: Optional[str] = None, folder: Optional[str] = None,
                 patience: float = PATIENCE_S):
        self.patience = patience  # seconds for which calls are repeated while nobody answers
        self.token = token or os.environ.get("DROVER_TOKEN")
        self._local = threading.local()
        self._unix: Optional[str] = None
        self._addresses: list[tuple[str, int]] = []
        if server is None and folder is None:
            server = os.environ.get("DROVER_SERVER")
        if server is None:
            folder = folder or os.environ.get("DROVER_DIR")
            default = os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "drover")
            self._unix = _socket_of(folder or default)
            if not self._unix and not folder:
                config = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "drover")
                server = _first_line(os.path.join(config, "server")) or _first_line("/etc/drover/server")
                if server:
                    self.token = self.token or _first_line(os.path.join(config, "token"))
                else:
                    self._unix = _socket_of("/var/lib/drover")
            if not self._unix and not server:
                raise NoServer(f"no server was started in {folder or default}: start one with `drover up`, or set DROVER_SERVER "
                               "and DROVER_TOKEN")
        if server:
            for address in server.replace(",", " ").split():
                where = urllib.parse.urlsplit(address)
                if where.scheme != "https" or not where.hostname:
                    raise DroverError(f"a server is https://HOST:PORT, not {address!r}")
                self._addresses.append((where.hostname, where.port or 7332))
            words = (self.token or "").split(".")
            if len(words) != 5 or words[:2] != ["drover-user-token", "v1"]:
                raise DroverError("a server elsewhere wants a user token (drover token user): set DROVER_TOKEN")
            self._fingerprint = words[2]

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        """A connection to the server; of several, to the one that leads, or to the first one that stands by."""
        if self._unix:
            return _Unix(self._unix, timeout)
        every = [_Pinned(*address, self._fingerprint, timeout) for address in self._addresses]
        standby = None
        for one in every if len(every) > 1 else []:
            try:
                one.timeout = READY_S
                one.request("GET", "/readyz")
                answer = one.getresponse()
                if not _is_standby(answer.status, answer.read()):
                    return one
                standby = standby or one
            except (OSError, http.client.HTTPException):
                one.close()
        return standby or every[0]

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        one = getattr(self._local, "connection", None)
        if one is None:
            one = self._local.connection = self._open(timeout)
        one.timeout = timeout
        if one.sock is not None:
            one.sock.settimeout(timeout)
        return one

    def close(self) -> None:
        """Closes this thread's connection; the next call opens another."""
        one = getattr(self._local, "connection", None)
        if one is not None:
            one.close()
        self._local.connection = None

    def raw(self, method: str, path: str, body: Optional[bytes] = None, timeout: float = 60,
            content_type: str = "application/json", most: Optional[int] = ANSWER_MAX) -> bytes:
        """One call, whose answer has up to `most` bytes; None: any number. Raises ApiError for what the server refuses;
        NoServer when no answer comes, however often it is asked: all calls of this API may be repeated, submits by their
        uuid."""
        headers = {"Content-Type": content_type}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        pause, end = 0.1, time.monotonic() + self.patience
        while True:
            again = time.monotonic() + pause < end
            try:
                connection = self._connection(timeout)
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                data = answer.read() if most is None else answer.read(most + 1)
                if most is not None and len(data) > most:
                    self.close()
                    raise DroverError(f"{method} {path}: the answer is larger than {most >> 20} MiB")
                if answer.length:
                    raise http.client.IncompleteRead(data, answer.length)
            except (OSError, http.client.HTTPException) as e:
                self.close()
                if not again:
                    raise NoServer(f"the server does not answer: {e}") from e
                time.sleep(pause)
                pause = min(2 * pause, PAUSE_MAX_S)
                continue
            if answer.status < 300:
                return data
            if answer.status == 503 and again:
                if _is_standby(answer.status, data):
                    self.close()
                time.sleep(pause)
                pause = min(2 * pause, PAUSE_MAX_S)
                continue
            try:
                error = json.loads(data)["error"]
                raise ApiError(answer.status, str(error["code"]), str(error["message"]))
            except (ValueError, KeyError, TypeError):
                raise ApiError(answer.status, "unknown", f"the server answered {answer.status}") from None

    def call(self, method: str, path: str, body: Any = None, timeout: float = 60, **query: Any) -> Any:
        """One call with JSON both ways. Query parameters that are None are left out."""
        given = {k: v for k, v in query.items() if v is not None}
        if given:
            path += "?" + urllib.parse.urlencode(given)
        data = self.raw(method, path, None if body is None else json.dumps(body).encode(), timeout)
        try:
            return json.loads(data)
        except ValueError:
            raise DroverError(f"{method} {path}: the answer is no JSON") from None

    def upload(self, data: bytes, name: str) -> dict:
        """Sends bytes ahead of a submit. Returns {name, sha256, size} for its `spooled`."""
        number = self.call("POST", "/v1/uploads")["id"]
        for offset in range(0, len(data), PIECE):
            self.raw("PUT", f"/v1/uploads/{number}?offset={offset}", data[offset:offset + PIECE],
                     content_type="application/octet-stream")
        done = self.call("POST", f"/v1/uploads/{number}/finish", {"name": name})
        return {"name": name, "sha256": done["sha256"], "size": done["size"]}
