"""Providers of OpenID Connect: one that answers as a test says, and a real one."""
import base64
import contextlib
import hashlib
import html
import http.client
import http.server
import json
import os
import secrets
import sqlite3
import ssl
import subprocess
import threading
import time
import urllib.parse

from drover import free_port
from guarded import Authority, openssl, texts
from stores import Server


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """A key of RS256 or ES256."""

    def __init__(self, folder, kid, kind="RS256"):
        self.kid, self.kind, self.path = kid, kind, os.path.join(folder, f"{kid}.pem")
        if kind == "RS256":
            openssl("genrsa", "-out", self.path, "2048")
        else:
            openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.path)

    def _public(self, form):
        return subprocess.run(["openssl", "pkey", "-in", self.path, "-pubout", "-outform", form], check=True, capture_output=True).stdout

    def pem(self):
        return self._public("PEM")

    def jwk(self):
        if self.kind == "ES256":
            point = self._public("DER")[-64:]
            return {"kty": "EC", "crv": "P-256", "kid": self.kid, "use": "sig", "x": base64url(point[:32]), "y": base64url(point[32:])}
        modulus = subprocess.run(["openssl", "rsa", "-in", self.path, "-noout", "-modulus"], check=True, capture_output=True, text=True)
        return {"kty": "RSA", "kid": self.kid, "use": "sig", "alg": "RS256", "e": "AQAB", "n": base64url(bytes.fromhex(modulus.stdout.strip().split("=")[1]))}

    def sign(self, text):
        signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.path], input=text, check=True, capture_output=True).stdout
        if self.kind == "RS256":
            return signed
        numbers, at = [], 2
        for _ in range(2):  # of a sequence of two integers
            size = signed[at + 1]
            numbers.append(signed[at + 2:at + 2 + size].lstrip(b"\0").rjust(32, b"\0"))
            at += 2 + size
        return b"".join(numbers)

    def token(self, claims, **head):
        text = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": self.kind, "kid": self.kid, **head}, claims))
        return f"{text}.{base64url(self.sign(text.encode()))}"


class Provider:
    """self.issuer with TLS by self.authority. A test changes what is told: `claims` are added to those of a token, `document` to the
    document, `said` maps a path to (status, headers, body) in the place of its answer, `token` makes another ID token of the claims,
    `gate` holds each answer until it is set. What was asked is in self.asked, by path."""

    def __init__(self, folder, secret="s+cr/t:%", name="localhost"):
        self.authority = Authority(os.path.join(folder, "authority"))
        self.key, self.secret, self.client = Key(folder, "first"), secret, "drover"
        self.keys, self.folder, self.codes = [self.key], folder, {}
        self.redirects = set()
        cert, key = self.authority.issue("provider")
        self.port = free_port()
        self.issuer = f"https://{name}:{self.port}/realm"
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                provider.answer(self, "")

            def do_POST(self):
                provider.answer(self, self.rfile.read(int(self.headers["Content-Length"])).decode())

            def log_message(self, *_):
                pass

        self.reset()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self):
        """As it is when nothing is wrong."""
        self.claims, self.document, self.said, self.userinfo, self.token = {}, {}, {}, {}, None
        self.keys, self.asked, self.gate = [self.key], [], threading.Event()
        self.gate.set()

    def stop(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()

    def settings(self, port, *more):
        """Lines of droverd.yaml."""
        self.redirects.add(f"https://127.0.0.1:{port}/page/openid/callback")
        path = os.path.join(self.folder, "secret")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(self.secret + "\n")
        return ["openid:", f"  issuer: {self.issuer}", f"  address: https://127.0.0.1:{port}", f"  client_id: {self.client}",
                f"  client_secret_file: {path}", f"  ca_file: {self.authority.file}", "  name: Example Lab", *(f"  {line}" for line in more)]

    # ---- what a browser does there

    def authorize(self, url):
        """Agrees to the request of this URL: the URL to which the browser is sent back."""
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query, strict_parsing=True))
        assert asked["response_type"] == "code" and asked["client_id"] == self.client and asked["redirect_uri"] in self.redirects
        assert asked["code_challenge_method"] == "S256" and "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(30)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urllib.parse.urlencode({'code': code, 'state': asked['state']})}"

    # ---- answers

    def answer(self, handler, body):
        path, _, query = handler.path.partition("?")
        self.asked.append(path)
        self.gate.wait()
        status, headers, text = self.said.get(path) or self.told(handler, path, query, body)
        text = text if isinstance(text, bytes) else text.encode()
        try:
            handler.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(text)
        except OSError:
            pass  # who asked has heard enough

    def told(self, handler, path, query, body):
        if path == "/realm/.well-known/openid-configuration":
            base = self.issuer
            return 200, {}, json.dumps({"issuer": base, "authorization_endpoint": f"{base}/auth", "token_endpoint": f"{base}/token", "jwks_uri": f"{base}/keys",
                                        "userinfo_endpoint": f"{base}/userinfo", "end_session_endpoint": f"{base}/logout?x=1", **self.document})
        if path == "/realm/keys":
            return 200, {}, json.dumps({"keys": [k if isinstance(k, dict) else k.jwk() for k in self.keys]})
        if path == "/realm/auth":
            page = f"<!doctype html><title>Lab</title><form method=post action=agree><input type=hidden name=u value=\"{html.escape(handler.path)}\"><button>Agree</button></form>"
            return 200, {"Content-Type": "text/html"}, page
        if path == "/realm/agree":
            return 303, {"Location": self.authorize(dict(urllib.parse.parse_qsl(body))["u"])}, ""
        if path == "/realm/logout":
            return 200, {"Content-Type": "text/html"}, "<!doctype html><title>Out</title><p>signed out of the lab</p>"
        if path == "/realm/userinfo":
            good = handler.headers["Authorization"] == "Bearer access-1"
            return (200, {}, json.dumps({"sub": "4711", **self.userinfo})) if good else (401, {}, "{}")
        return self.redeem(handler, body) if path == "/realm/token" else (404, {}, "{}")

    def redeem(self, handler, body):
        form = dict(urllib.parse.parse_qsl(body, strict_parsing=True))
        pair = base64.b64decode(handler.headers["Authorization"].split()[1]).decode().split(":")
        assert [urllib.parse.unquote(p) for p in pair] == [self.client, self.secret]
        asked = self.codes.pop(form["code"], None)
        challenge = base64url(hashlib.sha256(form["code_verifier"].encode()).digest())
        if not asked or asked["code_challenge"] != challenge or form["redirect_uri"] != asked["redirect_uri"] or form["grant_type"] != "authorization_code":
            return 400, {}, '{"error": "invalid_grant", "error_description": "no such code"}'
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "4711", "aud": self.client, "iat": now, "exp": now + 300, "nonce": asked["nonce"],
                  "preferred_username": "ann", "groups": ["users", "drover"], **self.claims}
        claims = {k: v for k, v in claims.items() if v is not None}
        token = self.token(claims) if self.token else self.key.token(claims)
        return 200, {}, json.dumps({"access_token": "access-1", "token_type": "Bearer", "expires_in": 300, "id_token": token})


class Glewlwyd(Server):
    """A real provider: Debian's glewlwyd, with the user ann, and one client that comes back to `redirect`."""

    SCHEMA = "/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"

    def __init__(self, folder, redirect):
        os.makedirs(folder)
        self.authority, port = Authority(os.path.join(folder, "authority")), free_port()
        self.key, self.url, self.cookies = Key(folder, "signs"), f"https://localhost:{port}", {}
        self.issuer = f"{self.url}/api/oidc"
        cert, key = self.authority.issue("sso")
        with open(self.SCHEMA, encoding="utf-8") as f, contextlib.closing(sqlite3.connect(os.path.join(folder, "db"))) as db:
            db.executescript(f.read())
        modules = "".join(f'{name}_module_path="/usr/lib/glewlwyd/{path}"\n' for name, path in
                          (("user", "user"), ("client", "client"), ("user_auth_scheme", "scheme"), ("plugin", "plugin")))
        with open(os.path.join(folder, "conf"), "w", encoding="utf-8") as f:
            f.write(f"""port={port}
external_url="{self.url}"
bind_address="127.0.0.1"
login_url="login.html"
api_prefix="api"
log_mode="console"
log_level="INFO"
cookie_domain="localhost"
cookie_secure=1
session_expiration=3600
session_key="S"
admin_scope="g_admin"
profile_scope="g_profile"
{modules}use_secure_connection=true
secure_connection_key_file="{key}"
secure_connection_pem_file="{cert}"
hash_algorithm="SHA512"
database = {{ type = "sqlite3"; path = "{folder}/db"; }};
""")
        super().__init__(folder, ["glewlwyd", f"--config-file={folder}/conf"], "127.0.0.1", port)
        self.wait()
        self.call("POST", "/api/auth", {"username": "admin", "password": "password"})
        self.call("POST", "/api/mod/plugin/", {"module": "oidc", "name": "oidc", "display_name": "oidc", "enabled": True, "parameters": {
            "iss": self.issuer, "jwt-type": "rsa", "jwt-key-size": "256", "key": texts(self.key.path), "cert": self.key.pem().decode(),
            "access-token-duration": 3600, "refresh-token-duration": 3600, "code-duration": 600, "refresh-token-rolling": False, "allow-non-oidc": False,
            **{f"auth-type-{kind}-enabled": kind in ("code", "id-token") for kind in ("code", "token", "id-token", "none", "password", "client", "device", "refresh")},
            "subject-type": "public", "pkce-allowed": True, "pkce-method-plain-allowed": False, "jwks-show": True, "allowed-scope": ["openid"],
            "claims": [{"name": "preferred_username", "user-property": "username", "type": "string", "mandatory": True}],
            "name-claim": "no", "email-claim": "mandatory", "email-claim-scope": [], "scope-claim": "no"}})
        self.call("POST", "/api/client/", {"client_id": "drover", "name": "drover", "password": "s3cret", "confidential": True, "redirect_uri": [redirect],
                                           "authorization_type": ["code"], "scope": ["openid"], "enabled": True, "token_endpoint_auth_method": ["client_secret_basic"]})
        self.call("POST", "/api/user/", {"username": "ann", "password": "annspass", "email": "ann@lab.example", "scope": ["openid"], "enabled": True})

    def call(self, method, path, body=None):
        """The headers of an answer, as a browser with self.cookies has it."""
        c = http.client.HTTPSConnection("localhost", self.port, context=ssl.create_default_context(cafile=self.authority.file))
        cookie = {"Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())} if self.cookies else {}
        with contextlib.closing(c):
            c.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json", **cookie})
            answer = c.getresponse()
            text = answer.read()
            assert answer.status < 400, (path, answer.status, text)
            for line in answer.headers.get_all("Set-Cookie") or []:
                name, value = line.split(";")[0].split("=", 1)
                self.cookies[name] = value
            return answer.headers

    def authorize(self, url):
        """ann signs in and agrees: the URL to which the browser is sent back."""
        self.cookies = {}
        self.call("POST", "/api/auth", {"username": "ann", "password": "annspass"})
        self.call("PUT", "/api/auth/grant/drover", {"scope": "openid"})
        return self.call("GET", f"{url[len(self.url):]}&g_continue")["Location"]
