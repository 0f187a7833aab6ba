"""Stores for the tests: a real nginx with WebDAV, a real vsftpd, and a server that fails as it is told to."""
import hashlib
import http.server
import os
import shutil
import socket
import subprocess
import threading

from drover import Failed, free_port, wait_until

DAV_MODULE = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"


def answers(host, port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex((host, port)) == 0


class Server:
    """A daemon in the foreground, stopped by its number."""

    def __init__(self, folder, argv, host, port, prefix=()):
        if not shutil.which(argv[0], path="/usr/sbin:/usr/bin:/sbin:/bin"):
            raise Failed(f"{argv[0]} is not installed: tools/packages.txt names it")
        self.folder, self.host, self.port, self.argv = folder, host, port, [*prefix, *argv]
        self.start()

    def start(self):
        """Again, once it was stopped; with what it had."""
        with open(os.path.join(self.folder, "server.log"), "ab") as out:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            cwd=self.folder, env={**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    def wait(self, reached=None):
        """Until it answers; `reached` asks it in another way than from here."""
        def there():
            """the server answers"""
            if self.process.poll() is not None:
                with open(os.path.join(self.folder, "server.log"), encoding="utf-8", errors="replace") as f:
                    raise Failed(f"the server ended:\n{f.read()}")
            return reached() if reached else answers(self.host, self.port)
        wait_until(there)
        return self

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Web(Server):
    """nginx: self.url + name is the file self.data/name. `rules` are the rest of its http block; {dav} stands for what
    serves those files. What it was asked is in self.log, a line each in the form `logged`."""

    def __init__(self, folder, host, port, logged, rules, prefix=()):
        os.makedirs(folder)
        self.data, self.log = os.path.join(folder, "data"), os.path.join(folder, "access.log")
        os.mkdir(self.data)
        temporary = "".join(f"{kind}_temp_path {folder}/tmp_{kind};\n"
                            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        dav = f"alias {self.data}/; dav_methods PUT DELETE MKCOL COPY MOVE; client_max_body_size 0;"
        conf = os.path.join(folder, "nginx.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(f"""{f"load_module {DAV_MODULE};" if os.path.exists(DAV_MODULE) else ""}
{"user root;" if os.geteuid() == 0 else ""}
daemon off; master_process off; pid {folder}/pid; error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  log_format ours '{logged}';
  access_log {self.log} ours; default_type application/octet-stream; {temporary}
  {rules.replace("{dav}", dav)} }}
""")
        super().__init__(folder, ["nginx", "-p", folder, "-c", conf, "-e", "stderr"], host, port, prefix)

    def put(self, name, data):
        path = os.path.join(self.data, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        return self.url + name

    def read(self, name):
        with open(os.path.join(self.data, name), "rb") as f:
            return f.read()


class Nginx(Web):
    """WebDAV. `prefix` starts it elsewhere (a network namespace)."""

    def __init__(self, folder, host="127.0.0.1", port=None, prefix=()):
        port = port or free_port()
        super().__init__(folder, host, port, "$remote_addr $request_method $uri $status $body_bytes_sent $request_length",
                         f"""server {{ listen {host}:{port};
    location /dav/ {{ {{dav}} }}
    location /busy/ {{ return 503; }} location /forbidden/ {{ return 403; }} }}""", prefix)
        self.base = f"http://{host}:{port}/"
        self.url = self.base + "dav/"

    def requests(self, method=None):
        """What it was asked: tuples of address, method, path, status, bytes sent, bytes received."""
        with open(self.log, encoding="utf-8") as f:
            rows = [line.split() for line in f]
        return [(r[0], r[1], r[2], int(r[3]), int(r[4]), int(r[5])) for r in rows if method in (None, r[1])]


class Ftp(Server):
    """Anonymous FTP: self.url + name is the file self.data/name. With `tls` (a certificate and its key) FTPS, from the first
    byte on and for the data too."""

    def __init__(self, folder, tls=None):
        os.makedirs(os.path.join(folder, "root", "pub"))
        os.mkdir(os.path.join(folder, "empty"))
        self.data, port = os.path.join(folder, "root", "pub"), free_port()
        os.chmod(folder, 0o755)
        shutil.chown(self.data, "ftp")
        with open(os.path.join(folder, "vsftpd.conf"), "w", encoding="utf-8") as f:
            f.write(f"""background=NO
listen=YES
listen_address=127.0.0.1
listen_port={port}
anonymous_enable=YES
no_anon_password=YES
anon_root={folder}/root
anon_upload_enable=YES
anon_mkdir_write_enable=YES
anon_other_write_enable=YES
anon_umask=022
write_enable=YES
local_enable=NO
connect_from_port_20=NO
pasv_address=127.0.0.1
secure_chroot_dir={folder}/empty
seccomp_sandbox=NO
""")
            if tls:
                f.write(f"""ssl_enable=YES
implicit_ssl=YES
allow_anon_ssl=YES
force_anon_data_ssl=YES
force_anon_logins_ssl=YES
require_ssl_reuse=NO
rsa_cert_file={tls[0]}
rsa_private_key_file={tls[1]}
""")
        super().__init__(folder, ["vsftpd", os.path.join(folder, "vsftpd.conf")], "127.0.0.1", port)
        self.url = f"{'ftps' if tls else 'ftp'}://127.0.0.1:{port}/pub/"


class Faulty:
    """An HTTP server of one file, which does wrong as often as `faults` says: a list of things to do to the next
    requests ("503", "cut": only half of it comes, "change": another file from now on, "lie": a wrong Digest, "hang": no
    answer until the server ends, "stall": no more than half of it until then)."""

    def __init__(self, data):
        self.data, self.faults, self.seen, self.etag = data, [], [], '"one"'
        self.ends = threading.Event()
        faulty = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                faulty.answer(self)

            do_HEAD = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/file"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def answer(self, h):
        fault = self.faults.pop(0) if self.faults else None
        asked, condition = h.headers.get("Range"), h.headers.get("If-Range")
        self.seen.append((h.command, asked))
        if fault == "change":
            self.data, self.etag = self.data[::-1], '"two"'
        if fault == "hang":
            self.ends.wait()
            return
        if fault == "503":
            h.send_response(503)
            h.send_header("Content-Length", "0")
            h.end_headers()
            return
        if h.headers.get("If-None-Match") == self.etag:
            h.send_response(304)
            h.end_headers()
            return
        start = int(asked[6:-1]) if asked and condition == self.etag else 0
        body = self.data[start:]
        h.send_response(206 if start else 200)
        h.send_header("ETag", self.etag)
        h.send_header("Content-Length", str(len(body)))
        if fault == "lie":
            h.send_header("Digest", "sha-256=" + "A" * 43 + "=")
        if start:
            h.send_header("Content-Range", f"bytes {start}-{len(self.data) - 1}/{len(self.data)}")
        h.end_headers()
        if h.command == "GET":
            h.wfile.write(body[:len(body) // 2] if fault in ("cut", "stall") else body)
        if fault == "stall":
            h.wfile.flush()
            self.ends.wait()
        if fault == "cut":
            h.close_connection = True

    def sum(self):
        return hashlib.sha256(self.data).hexdigest()

    def stop(self):
        self.ends.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
