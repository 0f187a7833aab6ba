"""Notices: mail by a mailer of the admin's, web hooks to hosts that he allows; none lost, none to where it may not go."""
import email
import email.policy
import http.server
import json
import os
import re
import signal
import threading

import pytest

import agents
from drover import parent, processes, sh, wait_until
from test_hostile_expressions import takes_less, texts, TEXT

MAILER = """#!/bin/sh
# Keeps each mail, its arguments first, in a file of its own; fails while "broken" is there.
cd "$1" || exit 75
shift
echo "$@" >> tries
[ -e broken ] && { echo "out of order" >&2; exit 75; }
[ -e nobody ] && { echo "no such user" >&2; exit 67; }
f=$(mktemp new.XXXXXX)
{ echo "X-Words: $*"; cat; } > "$f"
mv "$f" "mail.${f#new.}"
"""


class Box:
    """Where the fake mailer leaves mails."""

    def __init__(self, instance):
        self.folder = os.path.join(instance.base, "box")
        os.makedirs(self.folder)
        self.program = os.path.join(instance.base, "mailer")
        with open(self.program, "w", encoding="utf-8") as f:
            f.write(MAILER)
        os.chmod(self.program, 0o755)

    def set(self, name, on):
        path = os.path.join(self.folder, name)
        if on:
            with open(path, "w", encoding="utf-8"):
                pass
        else:
            os.remove(path)

    def tries(self):
        try:
            with open(os.path.join(self.folder, "tries"), encoding="utf-8") as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []

    def mails(self):
        found = []
        for name in sorted(os.listdir(self.folder)):
            if name.startswith("mail."):
                with open(os.path.join(self.folder, name), "rb") as f:
                    found.append(email.message_from_binary_file(f, policy=email.policy.default))
        return found


class Receiver:
    """A small web server that keeps what is posted to it."""

    def __init__(self):
        self.got, self.answers = [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):  # noqa: N802,N805
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                self.got.append((handler.path, dict(handler.headers), json.loads(body)))
                status, headers = self.answers.pop(0) if self.answers else (200, {})
                handler.send_response(status)
                for name, value in headers.items():
                    handler.send_header(name, value)
                handler.end_headers()

            def do_GET(handler):  # noqa: N802,N805
                self.got.append((handler.path, "GET", None))

            def log_message(handler, *args):  # noqa: N805
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_port
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.http.shutdown()
    one.http.server_close()


def configure(instance, text):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


@pytest.fixture
def box(instance):
    one = Box(instance)
    configure(instance, f"""notify:
  mailer: [{one.program}, {one.folder}, -i]
  from: drover@example.org
  domain: example.org
  gather: 1s
  retry: 200ms
""")
    return one


def hooks(instance, receiver, more=""):
    configure(instance, f"""notify:
  hooks: ['127.0.0.1:{receiver.port}', 'localhost:{receiver.port}']
  gather: 1s
  retry: 200ms
{more}""")
    return f"http://127.0.0.1:{receiver.port}/hook?key=1"


def text_of(mail):
    return mail.get_content().replace("\r", "")


def test_mail_when_a_job_ends(instance, box):
    instance.up()
    r = instance.run(sh("exit 3", notification="complete", email_attributes="RequestCpus, Nothing, Mine",
                        **{"+Mine": '"a\\"b"', "batch_name": "first"}), code=1)
    wait_until(box.mails)
    (mail,) = box.mails()
    user = instance.job(f"{r}.0")["owner"].split("@")[0]
    assert mail["X-Words"] == f"-i {user}@example.org"
    assert mail["From"] == "Drover <drover@example.org>" and mail["To"] == f"{user}@example.org"
    assert mail["Subject"] == f"[Drover] Job {r}.0 failed with exit code 3"
    assert re.fullmatch(r"<[0-9a-f-]{36}@example\.org>", mail["Message-ID"])
    assert mail["Auto-Submitted"] == "auto-generated"
    text = text_of(mail)
    assert f"Job {r}.0 failed with exit code 3.\n" in text and "/bin/sh -c 'exit 3'" in text
    assert "batch      first\n" in text and "RequestCpus = 1\n" in text and 'Mine = "a\\"b"\n' in text
    assert "Nothing" not in text


@pytest.mark.parametrize("asked, code, held, want", [
    ("never", 1, False, 0), ("error", 0, False, 0), ("error", 4, False, 1), ("complete", 0, False, 1),
    ("complete", 0, True, 0), ("always", 0, True, 1), ("error", 0, True, 0), ("start", 0, False, 1)])
def test_when(instance, box, asked, code, held, want):
    instance.up()
    to = {"notify_user": "ann@example.net", "notification": asked}
    if held:
        r = instance.submit(sh("sleep 600", **to))
        instance.wait_state(f"{r}.0", "running")
        instance.cli("hold", str(r))
        instance.wait_state(f"{r}.0", "held")
    else:
        instance.run(sh(f"exit {code}", **to), code=1 if code else 0)
    last = instance.run(sh("exit 0", notification="complete", notify_user="last@example.net"))
    wait_until(lambda: [m for m in box.mails() if m["To"] == "last@example.net"])
    assert last and len([m for m in box.mails() if m["To"] == "ann@example.net"]) == want


def test_held_because_of_a_failure(instance, box):
    instance.up()
    bad = instance.submit("executable = /nothing/here\nrequest_memory = 32 MB\nnotification = error\n"
                          "should_transfer_files = NO\ntransfer_executable = False\nqueue\n")
    wait_until(box.mails)
    assert box.mails()[0]["Subject"] == f"[Drover] Job {bad}.0 is held"
    assert re.search(r"because +\S", text_of(box.mails()[0]))


def test_many_jobs_are_one_mail(instance, box):
    configure(instance, open(os.path.join(instance.dir, "droverd.yaml"), encoding="utf-8").read()
              .replace("gather: 1s", "gather: 1h"))
    instance.up()
    r = instance.submit(sh("exit 0", notification="always", queue="queue 5000"), "--hold")
    instance.cli("rm", str(r))
    instance.run(sh("exit 1", notification="error"), code=1)
    wait_until(lambda: len(instance.history(r)) == 5000)
    instance.stop()
    # what was gathered is sent as it is after a restart
    instance.up()
    wait_until(box.mails)
    (mail,) = box.mails()
    assert mail["Subject"] == "[Drover] 10001 jobs: 1 failed, 5000 held, 5000 removed"
    assert len(re.findall(r"^Job \d+\.\d+ ", text_of(mail), re.M)) == 100
    assert "And 9901 more" in text_of(mail)


def test_a_limit_for_each_user(instance, box):
    with open(os.path.join(instance.dir, "droverd.yaml"), "a", encoding="utf-8") as f:
        f.write("  per_hour: 2\n")
    instance.up()
    for i in range(2):
        instance.run(sh("exit 0", notification="complete", notify_user=f"a{i}@example.org"))
        wait_until(lambda: len(box.mails()) == i + 1)  # pylint: disable=cell-var-from-loop
    instance.run(sh("exit 0", notification="complete", notify_user="a2@example.org"))
    instance.run(sh("exit 0", notification="complete", notify_user="a2@example.org"))
    info = wait_until(lambda: [n for n in os.listdir(box.folder) if n == "tries"])
    assert info and len(box.mails()) == 2 and len(box.tries()) == 2


def test_tried_again_until_it_works(instance, box):
    box.set("broken", True)
    instance.up()
    r = instance.run(sh("exit 0", notification="complete"))
    wait_until(lambda: len(box.tries()) >= 3)
    assert not box.mails()
    assert "ended with 75: out of order" in instance.logs()
    box.set("broken", False)
    wait_until(box.mails)
    (mail,) = box.mails()
    assert mail["Subject"] == f"[Drover] Job {r}.0 completed with exit code 0"


def test_what_never_works_is_dropped(instance, box):
    box.set("nobody", True)
    instance.up()
    instance.run(sh("exit 0", notification="complete"))
    wait_until(lambda: "and is dropped" in instance.logs())
    assert len(box.tries()) == 1 and "no such user" in instance.logs()


def test_killed_server_loses_none(instance, box):
    """What the server had said it would tell is told, by a server that was killed before it could."""
    box.set("broken", True)
    daemon = instance.server()
    token = instance.cli("token", "agent", "--name", "a1").split()[-1]
    instance.start("drover-agent", "--server", instance.server_json()["agents"][0], "--dir",
                   os.path.join(instance.base, "agent"), "--token", token, "--name", "a1", "--cpus", "4")
    wait_until(lambda: instance.agents("connected"))
    done = []
    for _ in range(4):
        done.append(instance.run(sh("exit 0", notification="complete")))
        daemon.kill()  # at once: some are gathering, one is being tried
        daemon = instance.server()
        wait_until(lambda: instance.agents("connected"))
    wait_until(lambda: all(parent(p) != 1 for p in processes(box.program)))  # one of a dead server may have looked already
    box.set("broken", False)

    def told():
        """every job is in a mail"""
        return sorted({int(n) for m in box.mails() for n in re.findall(r"^Job (\d+)\.0 ", text_of(m), re.M)})

    wait_until(lambda: told() == done)
    ids = [m["Message-ID"] for m in box.mails()]
    assert len(set(ids)) == len(ids), "sent twice, though nothing went wrong after it was sent"


@pytest.mark.parametrize("to", ["-oQ/tmp/x", "a b@example.org", "a@example.org,b@example.org", "|id", "a@b\\nBcc: c@d",
                                "$(id)@example.org", "`id`@x"])
def test_addresses_that_are_none(instance, box, to):
    instance.up()
    part = {"attributes": {"Cmd": '"/bin/true"', "JobNotification": "2", "NotifyUser": '"' + to + '"'}}
    status, answer = instance.call("POST", "/v1/requests",
                                   {"uuid": "00000000-0000-4000-8000-000000000001", "parts": [part]})
    assert status == 400 and "is not a mail address" in json.dumps(answer), answer
    assert not box.tries()


def test_no_mailer_is_said(instance):
    instance.up()
    p = instance.cli("submit", "-", stdin=sh("exit 0", notification="complete"))
    assert "this server sends no mail" in p.err
    assert instance.cli("submit", "-", stdin=sh("exit 0", notification="never")).err == ""


def test_hook(instance, receiver):
    url = hooks(instance, receiver)
    instance.up()
    receiver.answers = [(503, {}), (200, {})]
    r = instance.run(sh("exit $(Process)", webhook=url, email_attributes="RequestCpus", queue="queue 2"), code=1)
    wait_until(lambda: len(receiver.got) >= 2 and sum(len(g[2]["jobs"]) for g in receiver.got[1:]) >= 2)
    path, headers, first = receiver.got[0]
    assert path == "/hook?key=1" and headers["Content-Type"] == "application/json"
    assert headers["Idempotency-Key"] == f'"{first["id"]}"'
    assert receiver.got[0] in receiver.got[1:], "tried again with the same id, and the same body"
    jobs = {j["id"]: j for _, _, body in receiver.got[1:] for j in body["jobs"]}
    assert jobs[f"{r}.0"]["what"] == "completed" and jobs[f"{r}.0"]["exit_code"] == 0
    assert jobs[f"{r}.1"]["what"] == "failed" and jobs[f"{r}.1"]["exit_code"] == 1
    assert jobs[f"{r}.1"]["attributes"] == {"RequestCpus": "1"}
    assert first["server"] == instance.server_info()["uuid"] and first["more"] == 0


def test_hooks_follow_no_redirect(instance, receiver):
    url = hooks(instance, receiver)
    instance.up()
    receiver.answers = [(302, {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"})]
    instance.run(sh("exit 0", webhook=url))
    wait_until(lambda: "redirects are not followed" in instance.logs())
    assert [g[0] for g in receiver.got] == ["/hook?key=1"]


def test_hooks_where_they_may_not_go(instance, receiver):
    hooks(instance, receiver)
    instance.up()
    for url in ("http://127.0.0.1:1/", "http://localhost/", "http://169.254.169.254/", "https://example.org/",
                f"http://ann@127.0.0.1:{receiver.port}/", "file:///etc/passwd",
                f"http://127.0.0.2:{receiver.port}/", f"http://[::1]:{receiver.port}/"):
        p = instance.cli("submit", "-", stdin=sh("exit 0", webhook=url), code=None)
        assert p.code != 0 and "DroverWebhook" in p.err, (url, p.err)
    # localhost is a name that the list has; where it leads is one that it has, too
    instance.run(sh("exit 0", webhook=f"http://localhost:{receiver.port}/by-name"))
    wait_until(lambda: [g for g in receiver.got if g[0] == "/by-name"])


def test_expressions_take_no_more_time_than_their_user_has(instance, box):
    """A thousand jobs with five expressions each held the core for more than half a minute. Those that took the time are told by number."""
    instance.up()
    document = texts(steps=100, JobNotification="1", Args=TEXT, JobBatchName=TEXT, EmailAttributes=TEXT, MemoryUsage=TEXT)
    document["parts"] = [{**part, "attributes": {**part["attributes"], "NotifyUser": f'"u{n}@example.org"'}} for n, part in enumerate(document["parts"] * 10)]
    request = instance.api("POST", "/v1/requests", {**document, "hold": False}, 201)["id"]
    with takes_less(instance, 10):
        assert instance.api("POST", "/v1/actions", {"action": "hold", "ids": [str(request)]}, 200)["affected"] == 1000
        wait_until(lambda: len(box.mails()) == 10)
    assert {m["Subject"] for m in box.mails()} == {"[Drover] 100 jobs: 100 held"}


def test_an_address_behind_a_name_is_looked_at(instance, receiver):
    """A name on the list that leads to this machine: refused when it would be connected to."""
    configure(instance, f"notify:\n  hooks: ['localhost:{receiver.port}']\n  gather: 100ms\n")
    instance.up()
    instance.run(sh("exit 0", webhook=f"http://localhost:{receiver.port}/"))
    wait_until(lambda: "address is not public" in instance.logs())
    assert not receiver.got


@pytest.mark.parametrize("text, why", [
    ("notify:\n  mailer: sendmail\n  from: a@b\n", ":2: the mailer's path must begin with /"),
    ("notify:\n  mailer: /usr/sbin/sendmail\n", "a mailer needs an address in from"),
    ("notify:\n  from: -x\n", ":2: "),
    ("notify:\n  hooks: ['http://x']\n", ":2: "),
    ("notify:\n  hook: x\n", ":2: "),
    ("notify:\n  per_hour: 0\n", ":2: per_hour"),
    ("user_log_format: ISO\n", ":1: "),
])
def test_wrong_settings(instance, text, why):
    configure(instance, text)
    daemon = instance.start("droverd", "--dir", instance.dir)
    wait_until(lambda: not daemon.running())
    assert daemon.process.returncode != 0 and why in daemon.output(), daemon.output()
    instance.daemons.clear()


def test_default_form_of_logs(instance):
    configure(instance, "user_log_format: [JSON, UTC]\n")
    instance.up()
    r = instance.run(sh("exit 0", log="a.log"))
    instance.run(sh("exit 0", log="b.log", log_format="LEGACY"))
    wait_until(lambda: instance.exists("a.log") and "JobTerminatedEvent" in instance.read("a.log"))
    first, _ = json.JSONDecoder().raw_decode(instance.read("a.log"))
    assert first["Cluster"] == r and first["EventTime"].endswith("Z")
    wait_until(lambda: instance.exists("b.log") and "Job terminated" in instance.read("b.log"))
    assert re.match(r"000 \(\S+\) \d\d/\d\d \d\d:\d\d:\d\d Job", instance.read("b.log"))


def test_nodes_that_drain_or_report(instance, box, receiver):
    """An admin is told by mail and web hook, once for each change, also by a server that was killed; of an order nobody is told."""
    with open(os.path.join(instance.dir, "droverd.yaml"), "a", encoding="utf-8") as f:
        f.write(f"  hooks: ['127.0.0.1:{receiver.port}']\n  nodes: [admin@example.org, 'http://127.0.0.1:{receiver.port}/nodes']\n")
    server = instance.server()
    instance.write("free", "50")
    sensor = os.path.join(instance.work, "scratch")
    instance.write("scratch", f"#!/bin/sh\necho Free = $(cat {instance.work}/free)\n", mode=0o755)
    agents.start(instance, f"sensors:\n  s: {{command: {sensor}, interval: 1s, timeout: 5s}}\nnotify_when: sFree < 10\ndrain_when: sFree < 5\n")
    agents.queues(instance, 1)
    instance.cli("node", "drain", "n1", "-r", "mine")
    instance.cli("node", "resume", "n1")
    instance.write("free", "7")
    wait_until(lambda: receiver.got)
    server.stop(signal.SIGKILL)
    server = instance.server()
    instance.write("free", "70")
    wait_until(lambda: instance.json("node", "show", "n1")["reason"] == "its notify_when is not true any more")
    instance.write("free", "3")
    wait_until(lambda: instance.json("node", "show", "n1")["state"] == "drained")

    def told():
        return [(n["node"], n["state"], n["by"], n["reason"]) for _, _, body in receiver.got for n in body["nodes"]]

    report = ("n1", "in trouble", "the node", "its notify_when is true: (sFree < 10)")
    drains = ("n1", "draining", "the node", "its drain_when is true: (sFree < 5)")
    wait_until(lambda: drains in told())
    assert told().count(drains) == 1 and set(told()) <= {report, drains}
    assert {path for path, _, _ in receiver.got} == {"/nodes"} and all("owner" not in body and "jobs" not in body for _, _, body in receiver.got)
    wait_until(lambda: any("Node n1 is draining" in text_of(m) for m in box.mails()))
    first = next(m for m in box.mails() if "Node n1 is in trouble" in text_of(m))
    assert first["To"] == "admin@example.org" and "sFree < 10" in text_of(first) and "drover node show" in text_of(first)


@pytest.mark.parametrize("nodes, word", [
    ("a b", "a b"), ("http://elsewhere.example/x", "elsewhere.example"), ("ftp://x/y", "ftp"), ("admin@example.org", "an address of mail needs a mailer")])
def test_addresses_that_cannot_be(instance, nodes, word):
    configure(instance, f"notify:\n  hooks: ['127.0.0.1:1']\n  nodes: ['{nodes}']\n")
    server = instance.start("droverd", "--dir", instance.dir)
    wait_until(lambda: not server.running())
    instance.daemons.remove(server)
    assert word in server.output() and "droverd.yaml:" in server.output()
