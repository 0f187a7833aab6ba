"""The API over TLS: libcurl, a token, and the CA whose fingerprint the token has."""
import hashlib
import http.server
import os
import ssl
import subprocess
import threading

import pytest

from fake_server import Handler


class Authority:
    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.key, self.cert = (os.path.join(folder, f"{name}.{x}") for x in ("key", "crt"))
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "10",
                     "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert,
                     "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")

    def openssl(self, *args, **more):
        return subprocess.run(["openssl", *args], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more).stdout

    def issue(self, name, usage="serverAuth", days="10"):
        """A key and a certificate; returns their paths."""
        key, request, cert, extra = (os.path.join(self.folder, f"{name}.{x}") for x in ("key", "csr", "crt", "ext"))
        with open(extra, "w", encoding="utf-8") as f:
            f.write(f"extendedKeyUsage={usage}\nsubjectAltName=DNS:elsewhere\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", key, "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-days", days,
                     "-extfile", extra, "-out", cert)
        return key, cert

    def fingerprint(self):
        der = self.openssl("x509", "-in", self.cert, "-outform", "DER")
        return hashlib.sha256(der).hexdigest()


class TlsHandler(Handler):
    def setup(self):
        try:
            self.request.do_handshake()
        except OSError:
            pass
        super().setup()

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass

    def answer(self):
        self.server.tokens.append(self.headers.get("Authorization"))
        super().answer()

    do_GET = do_POST = do_PUT = do_DELETE = answer


class TlsServer:
    """The fake server's replies on a TCP port with TLS."""

    def __init__(self, fake, key, chain):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), TlsHandler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        path = key + ".chain"
        with open(path, "wb") as out:
            for cert in chain:
                with open(cert, "rb") as f:
                    out.write(f.read())
        context.load_cert_chain(path, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.server.fake, self.server.tokens = fake, []
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        self.address = f"https://127.0.0.1:{self.server.server_address[1]}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def tls(cli, tmp_path):
    """tls(key, chain, token's fingerprint): a server; returns the environment to reach it."""
    started = []
    fake = cli.fake(replies={"GET /v1/agents": {"agents": []}, "POST /v1/actions": {"affected": 1, "errors": []},
                             "GET /v1/jobs/7.0/files": {"files": [{"name": "x", "size": 300000, "sha256": "0" * 64}]},
                             "GET /v1/jobs/7.0/files/x": (200, b"y" * 300000)})

    def start(key, chain, fingerprint):
        server = TlsServer(fake, key, chain)
        started.append(server)
        return {"DROVER_SERVER": server.address, "DROVER_DIR": "",
                "DROVER_TOKEN": f"drover-user-token.v1.{fingerprint}.t1.secret"}

    start.fake, start.started, start.authority = fake, started, Authority(str(tmp_path), "ca")
    start.folder = str(tmp_path)
    yield start
    for server in started:
        server.stop()


def test_over_tls(cli, tls):
    ca = tls.authority
    key, cert = ca.issue("server")
    env = tls(key, [cert, ca.cert], ca.fingerprint())
    assert "no agents" in cli("agents", env=env)
    assert tls.started[0].server.tokens == ["Bearer " + env["DROVER_TOKEN"]]
    assert cli("rm", "7", env=env) == "1 job removed\n"
    assert tls.fake.requests[-1].body == {"action": "remove", "ids": ["7"]}
    cli("get", "7.0", env=env)
    with open(os.path.join(cli.work, "x"), "rb") as f:
        assert f.read() == b"y" * 300000
    cli("show", "9", env=env, code=2)
    assert "there is no /v1/requests/9" in cli.err


def test_from_files(cli, tls):
    ca = tls.authority
    env = tls(*[x if i == 0 else [x, ca.cert] for i, x in enumerate(ca.issue("server"))], ca.fingerprint())
    config = os.path.join(cli.folder, ".config", "drover")
    os.makedirs(config)
    for name, text in (("server", env["DROVER_SERVER"]), ("token", env["DROVER_TOKEN"])):
        with open(os.path.join(config, name), "w", encoding="utf-8") as f:
            f.write(text + "\n")
    assert "no agents" in cli("agents", env={"DROVER_DIR": ""})


def refused(cli, env):
    cli("agents", env=env, code=1)
    assert "is not the server that the token is for" in cli.err, cli.err


def test_another_ca_is_refused(cli, tls):
    ca = tls.authority
    key, cert = ca.issue("server")
    refused(cli, tls(key, [cert, ca.cert], "0" * 64))
    assert not tls.fake.requests  # nothing was sent, the token least of all


def test_a_chain_that_only_mentions_the_ca_is_refused(cli, tls):
    evil = Authority(tls.folder, "evil")
    key, cert = evil.issue("server")
    refused(cli, tls(key, [cert, evil.cert, tls.authority.cert], tls.authority.fingerprint()))


def test_an_agents_certificate_is_refused(cli, tls):
    ca = tls.authority
    key, cert = ca.issue("agent", usage="clientAuth")
    refused(cli, tls(key, [cert, ca.cert], ca.fingerprint()))


def test_what_cannot_work_is_told(cli):
    token = "drover-user-token.v1." + "0" * 64 + ".t1.secret"
    cli("agents", env={"DROVER_SERVER": "https://127.0.0.1:1", "DROVER_TOKEN": token}, code=1)
    assert "no Drover server answers at https://127.0.0.1:1" in cli.err
    cli("agents", env={"DROVER_SERVER": "https://127.0.0.1:1"}, code=1)
    assert "wants a token" in cli.err
    cli("agents", env={"DROVER_SERVER": "http://127.0.0.1:1", "DROVER_TOKEN": token}, code=1)
    assert "must be https" in cli.err
    cli("agents", env={"DROVER_SERVER": "https://127.0.0.1:1", "DROVER_TOKEN": "secret"}, code=1)
    assert "drover token user" in cli.err


def test_the_unix_socket_needs_no_tls_library(cli):
    """Commands on the unix socket load few libraries, and no locale."""
    cli.fake(replies={"GET /v1/agents": {"agents": []}})
    p = subprocess.run(["/usr/bin/env", "LD_DEBUG=files", cli.program, "agents"], env=cli.env, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, check=True)
    for library in ("libcurl", "libssl", "libcrypto", "libsqlite"):
        assert library not in p.stderr
    assert "libc.so" in p.stderr


