"""Stores that ask who comes: https with tokens and certificates (nginx), S3, SFTP (OpenSSH), FTPS (vsftpd)."""
import base64
import contextlib
import datetime
import hashlib
import hmac
import http.server
import json
import os
import re
import shutil
import sqlite3
import subprocess
import threading
import time
import urllib.parse

from drover import free_port
from stores import Server, Web


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def texts(*paths):
    text = ""
    for path in paths:
        with open(path, encoding="ascii") as f:
            text += f.read()
    return text


class Authority:
    """Makes certificates; self.file has its own."""

    def __init__(self, folder, kind="ec"):
        os.makedirs(folder)
        self.folder, self.file, self.key = folder, os.path.join(folder, "ca.pem"), os.path.join(folder, "ca.key")
        self.new = {"ec": ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"), "rsa": ("-newkey", "rsa:2048")}[kind]
        openssl("req", "-x509", *self.new, "-nodes", "-days", "2", "-subj", "/CN=authority", "-keyout", self.key, "-out", self.file)

    def issue(self, name, subject=None, more="subjectAltName=DNS:localhost,IP:127.0.0.1", by=None):
        """The paths of a certificate and its key."""
        base, by = os.path.join(self.folder, name), by or (self.file, self.key)
        with open(base + ".ext", "w", encoding="utf-8") as f:
            f.write(f"keyUsage=critical,digitalSignature,keyEncipherment\n{more}\n")
        openssl("req", *self.new, "-nodes", "-subj", subject or f"/CN={name}", "-keyout", base + ".key", "-out", base + ".csr")
        openssl("x509", "-req", "-in", base + ".csr", "-CA", by[0], "-CAkey", by[1], "-CAcreateserial", "-days", "2", "-extfile",
                base + ".ext", "-out", base + ".pem")
        return base + ".pem", base + ".key"

    def certified(self, name):
        """Certificate and key in one text."""
        return texts(*self.issue(name))

    def proxy(self, name):
        """A proxy (RFC 3820) with its key and the certificate it was made with, as grid tools have it."""
        by = self.issue(name)
        cert, key = self.issue(name + "-proxy", f"/CN={name}/CN=1234", "proxyCertInfo=critical,language:id-ppl-inheritAll", by)
        return texts(cert, key, by[0])


class Guarded(Web):
    """WebDAV over TLS. Beneath self.url only who shows one of the tokens may read and write, beneath self.certified only
    who has a certificate of the authority; self.moved redirects there, and self.elsewhere to another host's name."""

    def __init__(self, folder, authority, tokens=("good",)):
        port = free_port()
        cert, key = authority.issue("store")
        shown = "".join(f'"Bearer {t}" 1;' for t in tokens)
        super().__init__(folder, "127.0.0.1", port, "$request_method $uri $status $host $http_authorization",
                         f"""map $http_authorization $known {{ default 0; {shown} }}
  server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key};
    ssl_client_certificate {authority.file}; ssl_verify_client optional; ssl_verify_depth 4;
    location /dav/ {{ if ($known = 0) {{ return 401; }} {{dav}} }}
    location /cert/ {{ if ($ssl_client_verify != SUCCESS) {{ return 403; }} {{dav}} }}
    location /open/ {{ {{dav}} }}
    location /moved/ {{ rewrite ^/moved/(.*) https://127.0.0.1:{port}/dav/$1 redirect; }}
    location /elsewhere/ {{ rewrite ^/elsewhere/(.*) https://localhost:{port}/dav/$1 redirect; }} }}""")
        base = f"https://127.0.0.1:{port}/"
        self.url, self.certified, self.open = base + "dav/", base + "cert/", base + "open/"
        self.moved, self.elsewhere = base + "moved/", base + "elsewhere/"

    def gets(self, name, status=200):
        """How often it was fetched."""
        return len([r for r in self.requests() if r[:3] == ["GET", "/dav/" + name, str(status)]])

    def requests(self):
        """Method, path, status, the host that was meant, what was shown."""
        with open(self.log, encoding="utf-8") as f:
            return [line.split(" ", 4) for line in f.read().splitlines()]


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class S3:
    """Objects by path (self.endpoint/BUCKET/KEY). Each request's signature (AWS Signature Version 4) is made again, with the
    secret that belongs to its key, and compared. `expired` has session tokens that are not good any more."""

    def __init__(self, keys, region="us-east-1"):
        self.keys, self.region, self.objects, self.seen, self.expired = keys, region, {}, [], set()
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def answer(self):
                store.answer(self)

            do_GET = do_HEAD = do_PUT = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def file(self, key, token=None):
        """A credentials file."""
        session = f"aws_session_token = {token}\n" if token else ""
        return (f"[other]\naws_access_key_id = NOBODY\naws_secret_access_key = none\n\n[default]\naws_access_key_id={key}\n"
                f"aws_secret_access_key = {self.keys.get(key, 'wrong')}\n{session}region = {self.region}\n"
                f"endpoint_url = {self.endpoint}\n")

    def wrong(self, h):
        """The code of what is wrong with who asks; None: nothing."""
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?"
                             r"Signature=([0-9a-f]{64})", h.headers.get("Authorization", ""))
        if not found:
            return 403, "AccessDenied"
        key, day, region, signed, signature = found.groups()
        when = h.headers.get("x-amz-date", "")
        if key not in self.keys:
            return 403, "InvalidAccessKeyId"
        if h.headers.get("x-amz-security-token") in self.expired:
            return 400, "ExpiredToken"
        if region != self.region or not when.startswith(day) or "host" not in signed.split(";"):
            return 400, "AuthorizationHeaderMalformed"
        now = datetime.datetime.now(datetime.timezone.utc)
        if abs(now - datetime.datetime.strptime(when + "+0000", "%Y%m%dT%H%M%SZ%z")).total_seconds() > 900:
            return 403, "RequestTimeTooSkewed"
        path, _, query = h.path.partition("?")
        path = urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe="/-_.~")
        lines = "".join(f"{name}:{' '.join(h.headers.get(name, '').split())}\n" for name in signed.split(";"))
        canonical = "\n".join([h.command, path, "&".join(sorted(query.split("&"))), lines, signed,
                               h.headers.get("x-amz-content-sha256", "")])
        scope = f"{day}/{region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        k = mac(b"AWS4" + self.keys[key].encode(), day)
        for step in (region, "s3", "aws4_request"):
            k = mac(k, step)
        for name in ("x-amz-content-sha256", "x-amz-security-token"):
            if h.headers.get(name) and name not in signed.split(";"):
                return 403, "AccessDenied"
        return None if hmac.compare_digest(mac(k, text).hex(), signature) else (403, "SignatureDoesNotMatch")

    def answer(self, h):
        body = h.rfile.read(int(h.headers.get("Content-Length", "0"))) if h.command == "PUT" else b""
        wrong, path = self.wrong(h), urllib.parse.unquote(h.path.partition("?")[0])
        self.seen.append((h.command, path, wrong))
        data, status, start = b"", 200, 0
        if wrong:
            status, data = wrong[0], f"<?xml version='1.0'?><Error><Code>{wrong[1]}</Code></Error>".encode()
        elif h.command == "PUT":
            self.objects[path] = body
        elif path not in self.objects:
            status, data = 404, b"<Error><Code>NoSuchKey</Code></Error>"
        else:
            data = self.objects[path]
        etag = '"' + hashlib.md5(self.objects.get(path, b"")).hexdigest() + '"'
        if status == 200 and h.headers.get("If-None-Match") == etag:
            status, data = 304, b""
        elif status == 200 and h.headers.get("Range"):
            start = int(h.headers["Range"][6:-1])
            status, data = 206, data[start:]
        h.send_response(status)
        if status in (200, 206, 304):
            h.send_header("ETag", etag)
        h.send_header("Content-Length", str(len(data)))
        h.end_headers()
        if h.command != "HEAD":
            h.wfile.write(data)


class Sftp(Server):
    """OpenSSH: self.url + name is the file self.data/name, for who has the key that is in self.key."""

    def __init__(self, folder, user="root"):
        os.makedirs(folder)
        self.data, port = os.path.join(folder, "data"), free_port()
        os.mkdir(self.data)
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for name in ("host", "id", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(folder, name)], check=True)
        self.key, self.stranger = os.path.join(folder, "id"), os.path.join(folder, "stranger")
        shutil.copy(self.key + ".pub", os.path.join(folder, "authorized_keys"))
        with open(os.path.join(folder, "host.pub"), encoding="ascii") as f:
            self.known_host = f"[127.0.0.1]:{port} " + " ".join(f.read().split()[:2]) + "\n"
        with open(os.path.join(folder, "sshd_config"), "w", encoding="utf-8") as f:
            f.write(f"""ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
PidFile {folder}/pid
AuthorizedKeysFile {folder}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
UseDNS no
Subsystem sftp internal-sftp
""")
        super().__init__(folder, ["/usr/sbin/sshd", "-D", "-e", "-f", os.path.join(folder, "sshd_config")], "127.0.0.1", port)
        self.url = f"sftp://{user}@127.0.0.1:{port}{self.data}/"


class Issuer:
    """Signs WLCG's tokens (JSON Web Tokens, RS256). Who checks them knows its key already, from a cache of libscitokens."""

    NAME = "https://issuer.example"

    def __init__(self, folder):
        os.makedirs(os.path.join(folder, "scitokens"))
        self.key = os.path.join(folder, "key.pem")
        openssl("genrsa", "-out", self.key, "2048")
        modulus = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True, capture_output=True, text=True)
        key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k1", "e": "AQAB",
               "n": self._base64(bytes.fromhex(modulus.stdout.strip().split("=")[1]))}
        known = {"jwks": {"keys": [key]}, "expires": int(time.time()) + 86400, "next_update": int(time.time()) + 80000}
        with contextlib.closing(sqlite3.connect(os.path.join(folder, "scitokens", "scitokens_cpp.sqllite"))) as db:
            db.execute("create table keycache (issuer text unique primary key not null, keys text not null)")
            db.execute("insert into keycache values (?, ?)", (self.NAME, json.dumps(known)))
            db.commit()

    @staticmethod
    def _base64(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    def token(self, **claims):
        now = int(time.time())
        claims = {"iss": self.NAME, "sub": "ann", "aud": "https://wlcg.cern.ch/jwt/v1/any", "wlcg.ver": "1.0", "jti": "1",
                  "scope": "storage.read:/store storage.modify:/store", "iat": now, "nbf": now - 5, "exp": now + 600, **claims}
        text = ".".join(self._base64(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT", "kid": "k1"}, claims))
        signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(), check=True, capture_output=True)
        return f"{text}.{self._base64(signed.stdout)}"


GSI = """sec.protocol gsi -certdir:{authorities} -cert:{cert} -key:{key} -crl:0 -gridmap:{folder}/gridmap -gmapopt:2 -dlgpxy:0
sec.protbind * only gsi
acc.authdb {folder}/authdb
"""
ZTN = """sec.protocol ztn
sec.protbind * only ztn
xrootd.tls capable all
ofs.authlib libXrdAccSciTokens.so config={folder}/scitokens
"""


class Xrootd(Server):
    """XRootD for who has a proxy of self.authority in the name of ann: self.url + name over root://, with the proxy's own
    handshake, and self.https + name are the file self.data/name. With tokens: for who has one of self.issuer."""

    def __init__(self, folder, tokens=False):
        os.makedirs(os.path.join(folder, "root", "store"))
        self.authority = Authority(os.path.join(folder, "authority"), "rsa")
        self.data, port, https = os.path.join(folder, "root", "store"), free_port(), free_port()
        cert, key = self.authority.issue("host")
        self.authorities = os.path.join(folder, "authorities")
        os.mkdir(self.authorities)
        known_as = subprocess.run(["openssl", "x509", "-in", self.authority.file, "-noout", "-hash"], check=True,
                                  capture_output=True, text=True).stdout.strip()
        shutil.copy(self.authority.file, os.path.join(self.authorities, known_as + ".0"))
        self.issuer = Issuer(os.path.join(folder, "issuer")) if tokens else None
        for name, text in (("scitokens", "[Global]\naudience = https://wlcg.cern.ch/jwt/v1/any\n[Issuer one]\n"
                            f"issuer = {Issuer.NAME}\nbase_path = /\ndefault_user = xrootd\n"), ("gridmap", '"/CN=ann" ann\n'), ("authdb", "u ann /store a\n"), ("config", f"""all.export /store
oss.localroot {folder}/root
all.adminpath {folder}/adm
all.pidpath {folder}/run
xrd.port {port}
xrd.network nodnr norpipa
xrootd.seclib libXrdSec.so
xrd.tls {cert} {key}
xrd.tlsca certdir {self.authorities}
xrd.protocol XrdHttp:{https} libXrdHttp-5.so
http.gridmap {folder}/gridmap
ofs.authorize 1
""" + (ZTN if tokens else GSI).format(authorities=self.authorities, cert=cert, key=key, folder=folder))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        argv = ["xrootd", "-I", "v4", "-n", "x", "-c", os.path.join(folder, "config"), "-l", os.path.join(folder, "xrd.log")]
        prefix = ["env", f"XDG_CACHE_HOME={folder}/issuer"]
        if os.geteuid() == 0:  # it refuses to be root
            subprocess.run(["chown", "-R", "xrootd", folder], check=True)
            prefix += ["setpriv", "--reuid", "xrootd", "--regid", "xrootd", "--clear-groups"]
        super().__init__(folder, argv, "127.0.0.1", https, prefix)
        self.url, self.https = f"root://localhost:{port}//store/", f"https://localhost:{https}/store/"


class Grid(Server):
    """XRootD that is open to all, by HTTP and WebDAV, with third-party copies (HTTP-TPC) and checksums: self.url + name is the
    file self.data/name."""

    def __init__(self, folder, authority):
        os.makedirs(os.path.join(folder, "root", "store"))
        os.makedirs(os.path.join(folder, "authorities"))
        self.data, port, web = os.path.join(folder, "root", "store"), free_port(), free_port()
        cert, key = authority.issue("grid" + str(web))
        for path in (cert, key):
            shutil.copy(path, folder)
        cert, key = (os.path.join(folder, os.path.basename(p)) for p in (cert, key))
        known_as = subprocess.run(["openssl", "x509", "-in", authority.file, "-noout", "-hash"], check=True,
                                  capture_output=True, text=True).stdout.strip()
        shutil.copy(authority.file, os.path.join(folder, "authorities", known_as + ".0"))
        with open(os.path.join(folder, "config"), "w", encoding="utf-8") as f:
            f.write(f"""all.export /store
oss.localroot {folder}/root
all.adminpath {folder}/adm
all.pidpath {folder}/run
xrd.port {port}
xrd.network nodnr norpipa
xrd.tls {cert} {key}
xrd.tlsca certdir {folder}/authorities
xrd.protocol XrdHttp:{web} libXrdHttp-5.so
http.selfhttps2http no
http.exthandler xrdtpc libXrdHttpTPC.so
http.listingdeny no
ofs.persist off
ofs.tpc ttl 60 60 xfr 4 pgm /usr/bin/xrdcp --server
xrootd.chksum max 2 adler32
""")
        argv = ["xrootd", "-I", "v4", "-n", "x", "-c", os.path.join(folder, "config"), "-l", os.path.join(folder, "xrd.log")]
        prefix = []
        if os.geteuid() == 0:  # it refuses to be root
            subprocess.run(["chown", "-R", "xrootd", folder], check=True)
            prefix = ["setpriv", "--reuid", "xrootd", "--regid", "xrootd", "--clear-groups"]
        super().__init__(folder, argv, "127.0.0.1", web, prefix)
        self.url, self.root = f"http://localhost:{web}/store/", f"root://localhost:{port}//store/"

    def put(self, name, data):
        path = os.path.join(self.data, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        subprocess.run(["chown", "-R", "xrootd", self.data], check=os.geteuid() == 0)
        return self.url + name

    def read(self, name):
        with open(os.path.join(self.data, name), "rb") as f:
            return f.read()
