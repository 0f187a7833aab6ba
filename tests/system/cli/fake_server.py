"""A server that says what a test wants: the command line is tested against it without the real one.

What it answers, and what it is asked, is checked against docs/openapi.json, so that a test can't be made of things
that the real server would never say.
"""
import http.server
import json
import os
import socketserver
import threading
import urllib.parse

import openapi

DEFAULTS = {
    "/v1/server": {"version": "0.1.0", "uuid": "00000000-0000-4000-8000-000000000000", "domain": "local",
                   "now_ms": 1763715600000, "remote_agents": False, "you": "me@local", "admin": True,
                   "accepting": True, "moved": {"bytes_in": 0, "bytes_out": 0}, "jobs": {"idle": 0}},
}


class Request:
    def __init__(self, method, path, query, body, raw):
        self.method, self.path, self.query, self.body, self.raw = method, path, query, body, raw


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass

    def answer(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        is_json = self.headers.get("Content-Type") == "application/json"
        request = Request(self.command, path, query, json.loads(raw) if is_json and raw else None, raw)
        fake = self.server.fake
        try:
            openapi.check_query(request.method, request.path, query)
            if is_json or not raw:
                openapi.check_request(request.method, request.path, request.body)
            status, body = fake.reply(request)
            if status and isinstance(body, (dict, list)):
                openapi.check_answer(request.method, request.path, status, body)
        except AssertionError as e:
            fake.wrong.append(str(e))
            status, body = 500, {"error": {"code": "internal", "message": str(e)}}
        fake.requests.append(request)
        if not status:  # hang up
            self.close_connection = True
            return
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if fake.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for at in range(0, len(data), 7000):
                piece = data[at:at + 7000]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = answer


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Fake:
    """replies: {"GET /v1/agents": document, or (status, document), or a function of the request that gives one;
    a list of these: one after the other, the last one stays; None as the status hangs up}."""

    def __init__(self, folder, replies, agents=()):
        self.dir = str(folder)
        self.agents = list(agents)
        self.replies, self.requests, self.wrong, self.chunked = dict(replies), [], [], False
        os.makedirs(self.dir, exist_ok=True)
        self.socket = os.path.join(self.dir, "api.sock")
        self.start()

    def start(self):
        self.server = Server(self.socket, Handler)
        self.server.fake = self
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        with open(os.path.join(self.dir, "server.json"), "w", encoding="utf-8") as f:
            json.dump({"pid": os.getpid(), "api": "unix:" + self.socket, "agents": self.agents, "api_tls": None}, f)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        os.unlink(self.socket)

    def reply(self, request):
        got = self.replies.get(f"{request.method} {request.path}", DEFAULTS.get(request.path))
        if isinstance(got, list):
            got = got.pop(0) if len(got) > 1 else got[0]
        if callable(got):
            got = got(request)
        if got is None:
            return 404, {"error": {"code": "not_found", "message": f"there is no {request.path}"}}
        return got if isinstance(got, tuple) else (200, got)

    def asked(self, method, path):
        return [r for r in self.requests if r.method == method and r.path == path]
