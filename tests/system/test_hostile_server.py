"""A server that lies to an agent which has joined it. The agent is root's with `users`, so that it has most to lose: each attempt
stands in a table with what must come of it, and of none may come that the agent ends, that it does not answer, that anybody but the
mapped user writes a file, or that what is not the mapped user's to read reaches the server."""
import contextlib
import hashlib
import os
import re
import resource
import shutil

import pytest
from drover import Failed, made, processes, wait_until
from lying_server import LyingServer
from test_hostile_job import Own
from users import AGENT, LOW, MAP, ONE, TWO, Site, domain

OWNER = f"{ONE.pw_name}@local"
EVIL = "drover-evil"  # in the names of all that would be written where it must not be
BODY = b"evil"
SUM = hashlib.sha256(BODY).digest()
WRONG = hashlib.sha256(b"not that").digest()
OBJECTS = {SUM: lambda m: {"sha256": SUM, "offset": 0, "size": len(BODY), "data": BODY},
           WRONG: lambda m: {"sha256": WRONG, "offset": 0, "size": len(BODY), "data": BODY}}
SECRET = "of-somebody-else-entirely"


class Lies:
    """The server, the agent, and what may not change."""

    def __init__(self, instance):
        self.site = Site.__new__(Site)
        self.site.prepare(instance)
        self.server = LyingServer(os.path.join(instance.base, "liar"))
        self.server.objects = OBJECTS
        instance.port = self.server.port
        self.agent = self.site.agent(more="cpus: 200\nstaging_silence: 1h\n", token=self.server.token, wait=False)
        self.queue = self.server.queue()
        self.state, self.home = self.site.state, self.site.home(ONE)
        self.key = self.find("agent.key")
        for user in (TWO, LOW):
            self.site.write(user, "secret", SECRET)
        self.site.write(ONE, "mine", "mine\n")
        self.before = self.contents()
        self.request = 1000

    def find(self, name):
        return next(os.path.join(top, name) for top, _, files in os.walk(self.state) if name in files)

    def contents(self):
        """What no server may have changed."""
        found = {}
        for path in ("/etc/passwd", "/etc/shadow", self.key, self.find("ca.crt"), self.find("agent.crt")):
            with open(path, "rb") as f:
                found[path] = f.read(), oct(os.stat(path).st_mode)
        return found

    def template(self, request, step=None, **more):
        one = {"executable": "/bin/sh", "argv": ["-c", "id -un; ls -la . ..; cat ./* 2>&1; true"], "stdout_file": "out", "stderr_file": "err"}
        return {"request": request, "part": 0, "owner": OWNER, "iwd": self.home, "filesystem_domain": "nowhere", "transfer": 1,
                "steps": [{**one, **(step or {})}], "cpus_milli": 1000, "memory_bytes": 64 << 20, "disk_bytes": 1 << 20, **more}

    def assign(self, request, template=None, **group):
        self.server.send(assign={"queue": self.queue, "serial": 1, "templates": [template] if template else [],
                                 "groups": [{"request": request, "part": 0, "fence": 1, "lease_ms": 3600000, "members": [{"first": 0, "count": 1}],
                                             **group}]})

    def next(self):
        self.request += 1
        return self.request

    def sandbox(self, request):
        """A running job's folder."""
        for top, folders, _ in os.walk(self.state):
            for name in folders:
                if name.startswith(f"{request}.0."):
                    return os.path.join(top, name)
        return None

    def check(self):
        assert self.agent.running(), self.agent.output()
        self.server.ping()
        assert self.contents() == self.before
        for folder in ("/", "/etc", "/etc/cron.d", "/root", "/tmp", "/var/tmp", self.state, os.path.dirname(self.key), self.site.home(TWO), self.site.home(LOW),
                       os.path.dirname(self.home)):
            assert not [name for name in os.listdir(folder) if EVIL in name], folder
        with open(self.key, "rb") as f:
            secrets = [SECRET.encode(), f.read().splitlines()[1]]
        with open("/etc/shadow", "rb") as f:
            secrets.append(f.read().splitlines()[0] + b"\n")
        told = repr(self.server.seen).encode() + b"".join(self.server.outputs.values())
        assert not [s for s in secrets if s in told]


@pytest.fixture(scope="module")
def lies(request):
    with made(request, "ls-") as instance:
        one = Lies(instance)
        try:
            yield one
        finally:
            one.server.close()


# -- what each must come to: of the messages about a request

def refused(words):
    return lambda told: told[-1][0] == "refuse" and re.search(words, told[-1][1].get("reason", ""))


def held(words, code=None):
    """It is held, with a reason like that."""
    def right(told):
        kind, m = told[-1]
        return kind == "result" and m.get("hold_code") and code in (None, m["hold_code"]) and re.search(words, m.get("reason", ""))
    return right


def runs(told):
    """As the mapped user, who is the one that says so."""
    kind, m = told[-1]
    return kind == "result" and not m.get("hold_code") and m.get("outcome", 0) == 0


def any_end(told):
    return told[-1][0] in ("result", "refuse")


def waits(told):
    """It is accepted, and that is all."""
    return [kind for kind, _ in told] == ["accept"]


def shipped(name, sha256=SUM, size=4, **more):
    return {"spooled": [{"name": name, "sha256": sha256, "size": size, **more}]}


SH = {"argv": ["-c", "id -un"]}
VISIBLE = {"transfer": 2, "filesystem_domain": domain()}
# of each: the template, the group, what must come of it
ASSIGNMENTS = {
    "an honest one": ({}, {}, runs),
    "a shipped file": (shipped("in"), {}, runs),
    # names and paths
    "a shipped file that climbs": (shipped("../../" + EVIL), {}, any_end),
    "a shipped file at an absolute path": ({**shipped("/etc/" + EVIL), "input_files": ["/etc/" + EVIL]}, {}, held("neither in the spool nor")),
    "a shipped file that is the folder above": ({**shipped(".."), "input_files": [".."]}, {}, held("neither in the spool nor")),
    "a shipped file in the agent's own folder": ({**shipped(".drover_creds/" + EVIL), "input_files": [".drover_creds/"]}, {}, any_end),
    "a shipped file with a line end": (shipped("a\nb" + EVIL), {}, any_end),
    "outputs that climb": ({"output_files": ["../../../etc/passwd"]}, {}, held("output")),
    "outputs at absolute paths": ({"output_files": ["/etc/shadow"]}, {}, held("output")),
    "an output that goes to root's folder": ({"output_files": ["out"], "output_remaps": [{"name": "out", "path": "/root/" + EVIL}]}, {}, any_end),
    "streams in root's folders": ({"step": {"stdout_file": "/root/" + EVIL, "stderr_file": "/etc/" + EVIL}}, {}, any_end),
    "streams in root's folders, seen": ({"step": {"stdout_file": "/root/" + EVIL, "stderr_file": "/etc/" + EVIL}, **VISIBLE}, {}, held("ermission|output|cannot")),
    "a stream that climbs": ({"step": {"stdout_file": "../home-man/" + EVIL}, **VISIBLE}, {}, held("ermission|cannot")),
    "root's folder to run in": ({"iwd": "/root", **VISIBLE}, {}, held("ermission|cannot")),
    "the agent's folder to run in": ({"iwd": "STATE", **VISIBLE}, {}, held("ermission|cannot|own")),
    "the agent's key as an input": ({"filesystem_domain": domain(), "input_files": ["KEY"]}, {}, held("cannot read")),
    "another user's file as an input": ({"filesystem_domain": domain(), "input_files": ["OTHER/secret"]}, {}, held("cannot read")),
    "another user's file by a link of proc": ({"filesystem_domain": domain(), "input_files": ["/proc/self/root/etc/shadow"]}, {}, held("cannot read")),
    "the agent's key by a URL": ({"input_files": ["file://KEY"]}, {}, held("cannot|fetch|own")),
    "/etc/shadow by a URL": ({"input_files": ["file:///etc/shadow"]}, {}, held("cannot|fetch")),
    "another user's file by a URL": ({"input_files": ["file://OTHER/secret"]}, {}, held("cannot|fetch")),
    "a URL of no scheme that is known": ({"input_files": ["gopher://127.0.0.1/x"]}, {}, held("scheme")),
    "a URL of nobody at home": ({"input_files": ["http://127.0.0.1:1/latest/meta-data"]}, {}, held("cannot fetch")),
    "outputs to the agent's folder": ({"output_destination": "file://STATE/", "output_files": ["evil"], "step": {"argv": ["-c", ": >evil"]}}, {}, held("cannot send|own")),
    "outputs to root's folder": ({"output_destination": "file:///root/", "output_files": [EVIL], "step": {"argv": ["-c", ": >" + EVIL]}}, {}, held("cannot send|deni")),
    "a log in root's folder": ({"user_log": "/root/" + EVIL}, {}, runs),
    "a program that is not the user's to run": ({"step": {"executable": "OTHER/secret", "argv": []}}, {}, any_end),
    # who it is run as
    "root": ({"owner": "root@local"}, {}, refused("no local user")),
    "root by his number": ({"owner": "0@local"}, {}, refused("no local user")),
    "the agent's own user": ({"owner": f"{AGENT.pw_name}@local"}, {}, refused("no local user")),
    "a user below min_uid": ({"owner": f"{LOW.pw_name}@local"}, {}, refused("no local user")),
    "a user of another domain": ({"owner": f"{ONE.pw_name}@elsewhere"}, {}, refused("no local user")),
    "an owner with a line end": ({"owner": OWNER + "\n"}, {}, refused("no local user")),
    "nobody": ({"owner": ""}, {}, refused("no local user")),
    # checksums and sizes
    "another file than was named": ({**shipped("in", WRONG), "input_files": ["in"]}, {}, held("checksum")),
    "a checksum that is too short": ({**shipped("in", b"\1" * 5), "input_files": ["in"]}, {}, held("cannot prepare")),
    "a size that is too large": ({**shipped("in", size=2**63), "input_files": ["in"]}, {}, any_end),
    # environments, modules, containers, credentials
    "a credential that climbs": ({"credentials": ["../../" + EVIL]}, {}, held("cannot be the name")),
    "a credential that never comes": ({"credentials": ["good"]}, {}, waits),
    "the same credential twice": ({"credentials": ["good", "good"]}, {}, waits),
    "shell words as modules": ({"modules": f"`touch /root/{EVIL}`,x;touch /var/tmp/{EVIL}"}, {}, any_end),
    "a conda environment by a path": ({"conda_env": "../../../root"}, {}, any_end),
    "an environment's file by a path": ({"python_env": "../../../etc/shadow"}, {}, any_end),
    "an environment of a file that climbs": ({"python_env": "../x.txt", **shipped("../x.txt")}, {}, any_end),
    "a container, where there is none": ({"step": {"container": "--privileged", "container_network": "--pid=host"}}, {}, refused("no containers")),
    "an image by a path": ({"step": {"container": "/etc/shadow"}}, {}, refused("no containers")),
    # numbers and texts
    "no steps": ({"steps": []}, {}, refused("no step, or more")),
    "65 steps": ({"steps": [{"executable": "/bin/true"}] * 65}, {}, refused("no step, or more")),
    "no program": ({"step": {"executable": "", "argv": []}}, {}, held("no program")),
    "macros that lead to themselves": ({"variables": ["x"], "step": {"stdin_file": "$(x)" * 1000}}, {"items": [{"member": 0, "values": ["$(x)$(x)"]}]},
                                       held("macros|larger|long")),
    "a value that climbs": ({"step": {"stdout_file": "$$(a)"}, **VISIBLE}, {"filled": [{"inside": "a", "value": "../../../root/" + EVIL}]}, any_end),
    "more than there is": ({"cpus_milli": 2**63, "memory_bytes": 2**64 - 1, "disk_bytes": 2**64 - 1}, {}, refused("more than this agent has")),
    "a time that does not end": ({"walltime_ms": 2**64 - 1, "vacate_ms": 2**64 - 1}, {}, runs),
    "no member": ({}, {"members": [{"first": 0, "count": 0}]}, None),
    "a gang that is larger than its members": ({}, {"gang": 2**40, "gang_size": 2**31, "gang_machines": "a,b;`id`"}, runs),
    "GPUs without end": ({"resources": [{"name": "GPUs", "count": 2**32 - 1}]}, {}, any_end),
    "signals that there are not": ({"kill_signal": -9, "checkpointing": {"code": -1, "signal": -1, "by_signal": 1}}, {}, runs),
    "a way of thousands of servers": ({"origin": {"servers": "x " * 5000, "owner": "a\nb", "job": "1.0", "hops_left": 2**31}}, {}, any_end),
    "a way of transfer that there is not": ({"transfer": 77}, {}, any_end),
    "checkpoints that climb": ({"checkpointing": {"code": 85}}, {"items": [{"member": 0, "checkpoint": [{"name": "../../" + EVIL, "sha256": SUM, "size": 4}]}]}, any_end),
    "a checkpoint in the agent's own files": ({"checkpointing": {"code": 85}},
                                              {"items": [{"member": 0, "checkpoint": [{"name": ".drover_step.0.done", "sha256": SUM, "size": 4}]}]}, any_end),
}


def filled(lies, value):
    """With the paths of this agent in place of their names."""
    names = {"STATE": os.path.dirname(lies.key), "KEY": lies.key, "OTHER": lies.site.home(TWO)}
    if isinstance(value, dict):
        return {k: filled(lies, v) for k, v in value.items()}
    if isinstance(value, list):
        return [filled(lies, v) for v in value]
    if isinstance(value, str):
        for name, path in names.items():
            value = re.sub(rf"\b{name}\b", path, value) if re.search(rf"(^|//){name}\b", value) else value
    return value


@pytest.fixture(scope="module")
def assigned(lies):
    """All of the table at once; the request of each."""
    numbers = {}
    for what, (template, group, _) in ASSIGNMENTS.items():
        numbers[what] = lies.next()
        lies.assign(numbers[what], lies.template(numbers[what], **filled(lies, template)), **filled(lies, group))
    return numbers


@pytest.mark.parametrize("what", ASSIGNMENTS)
def test_what_it_assigns(lies, assigned, what):
    request, wanted = assigned[what], ASSIGNMENTS[what][2]
    told = lambda: lies.server.results(request)  # noqa: E731
    if wanted is None:
        lies.server.ping()
        assert not told()
    elif wanted is waits:
        wait_until(told)
        assert waits(told()), told()
    else:
        wait_until(lambda: told() and any_end(told()))
        assert wanted(told()), told()
    out = lies.server.output(request)
    if wanted is runs:
        wait_until(lambda: re.search(rb"^" + ONE.pw_name.encode() + rb"$", lies.server.output(request), re.M))
    assert b"root:" not in out and SECRET.encode() not in out
    lies.check()


def spans(*members, request=1, fence=1):
    return {"request": request, "fence": fence, "members": list(members)}


ALL = {"first": 0, "count": 2**32 - 1}
MANY = [spans(*[ALL] * 80000)]
# of each: what it says. Whatever that is, the agent answers what comes behind it.
MESSAGES = {
    "attempts without end are removed": {"control": {"command": 0, "attempts": MANY}},
    "attempts without end are not its own": {"inventory_reply": {"kill": MANY}},
    "results without end are there": {"result_ack": {"attempts": MANY}},
    "checkpoints without end are there": {"checkpoint_ack": {"attempts": MANY}},
    "attempts without end may go": {"go": {"attempts": MANY}},
    "members beyond all numbers": {"go": {"attempts": [spans({"first": 2**32 - 1, "count": 3}, request=2**64 - 1)]}},
    "a command that there is not": {"control": {"command": 77, "attempts": [spans(ALL)]}},
    "a signal that there is not": {"control": {"command": 40, "signal": 2**32 - 1, "attempts": [spans(ALL)]}},
    "an assignment to no queue": {"assign": {"queue": "../../x", "groups": [{"request": 7, "fence": 1, "members": [{"first": 0, "count": 5}]}]}},
    "a template that was never sent": {"assign": {"queue": "default", "groups": [{"request": 999999, "fence": 1, "members": [{"first": 0, "count": 5}]}]}},
    "a file that nobody sends is stored": {"spool_stored": {"sha256": b"\0" * 32, "stored": 2**64 - 1, "complete": 1}},
    "a piece of a file that nobody wants": {"spool_data": {"sha256": b"\0" * 3, "offset": 2**64 - 1, "size": 0, "data": b"x"}},
    "a credential that nobody wants": {"credential": {"request": 1, "name": "../../../etc/" + EVIL, "type": "file", "data": b"x"}},
    "a stream that nobody prints": {"streams_get": {"serial": 1, "request": 2**63, "member": 2**31, "fence": 5, "stdout_wanted": 1, "stdout_offset": 2**64 - 1,
                                                   "wait_ms": 2**64 - 1, "last": 2**64 - 1}},
    "a command beside nothing": {"exec": {"serial": 1, "request": 2**63, "member": 2**31, "fence": 5, "exec": 2**64 - 1, "argv": ["touch", "/root/" + EVIL]}},
    "a command without words": {"exec": {"serial": 1, "request": 1, "member": 0, "fence": 1, "exec": 1}},
    "input for nothing": {"exec_input": {"serial": 1, "request": 2**63, "member": 2**31, "fence": 5, "exec": 1, "offset": 2**64 - 1, "data": b"x" * 70000,
                                         "rows": 2**32 - 1, "columns": 2**32 - 1, "end": 1}},
    "a renewal that was not asked for": {"renew_ack": {"serial": 2**64 - 1}},
    "a second joining": {"joined": {"name": "../x", "cert_pem": "x", "ca_pem": "x", "server_uuid": "x"}},
    "an error that there is not": {"error": {"code": 77, "text": "x\nforged"}},
    "stores that are files": {"stores": {"stores": [{"name": "../x\n", "prefixes": ["file:///etc/"], "probe": "file:///etc/shadow"}]}},
    "a thousand stores without names": {"stores": {"stores": [{"name": "", "prefixes": [f"http://127.0.0.1:1/{i}/" for i in range(20)]}] * 1000}},
    "no stores": {"stores": {}},
    "a word that there is not": {99: b"x"},
    "a greeting that ends all at once": {"welcome": {"version": 1, "renew_ms": 2**63}},
    "a greeting that has no patience": {"welcome": {"version": 1, "renew_ms": 1}},
    "a greeting as it should be": {"welcome": {"version": 1, "renew_ms": 2000}},
}


@pytest.mark.parametrize("what", MESSAGES)
def test_what_it_says(lies, what):
    lies.server.ping()
    lies.server.send(**{k: v for k, v in MESSAGES[what].items() if isinstance(k, str)}) if 99 not in MESSAGES[what] else \
        lies.server.send_bytes(b"\x05\0\0\0" + b"\x9a\x06\x02xy")
    lies.check()
    assert "\nforged" not in lies.agent.output()


LOGS = {"root's folder": ("/root/" + EVIL, OWNER), "cron's": ("/etc/cron.d/" + EVIL, OWNER), "the agent's key": ("KEY", OWNER),
        "another user's folder": ("OTHER/" + EVIL, OWNER), "a process's memory": ("/proc/self/mem", OWNER), "no folder": (EVIL, OWNER),
        "root, in root's folder": ("/root/" + EVIL, "root@local"), "nobody": ("HOME/log", "")}


@pytest.mark.parametrize("where", LOGS)
def test_what_it_has_written_into_logs(lies, where):
    path, owner = LOGS[where]
    serial = lies.next()
    lies.server.send(user_log_write={"serial": serial, "owner": owner, "path": filled(lies, path).replace("HOME", lies.home), "text": b"x\n...\n"})
    answer = wait_until(lambda: [m for _, m in lies.server.heard("user_log_written") if m["serial"] == serial])[-1]
    assert answer.get("error")
    lies.check()


def test_one_attempt_is_assigned_twice(lies):
    """The first one stays as it was: its owner, its program, its number."""
    request = lies.next()
    lies.assign(request, lies.template(request, step={"argv": ["-c", "sleep 3; echo first; id -un"]}))
    wait_until(lambda: lies.server.results(request))
    lies.assign(request, lies.template(request, owner=f"{TWO.pw_name}@local", step={"argv": ["-c", "echo second; id -un"]}))
    wait_until(lambda: any_end(lies.server.results(request)))
    assert [kind for kind, _ in lies.server.results(request)] == ["accept", "result"]
    assert b"first" in lies.server.output(request) and b"second" not in lies.server.output(request)
    assert TWO.pw_name.encode() + b"\n" not in lies.server.output(request)
    lies.check()


def test_what_runs_is_not_forgotten_for_a_word(lies):
    """A result that was never sent is acknowledged, and files are stored that were never sent: the job runs to its end, and is told once."""
    request = lies.next()
    lies.assign(request, lies.template(request, step={"argv": ["-c", "while ! [ -e go ]; do sleep 0.1; done; echo whole"]}))
    wait_until(lambda: lies.server.heard("started") and lies.server.results(request))
    for kind in ("result_ack", "checkpoint_ack"):
        lies.server.send(**{kind: {"attempts": [spans({"first": 0, "count": 1}, request=request)]}})
    lies.server.send(spool_stored={"sha256": SUM, "stored": 2**63, "complete": 1})
    lies.server.send(control={"command": 0, "attempts": [spans({"first": 0, "count": 1}, request=request, fence=2)]})  # another's
    lies.server.ping()
    sandbox = wait_until(lambda: lies.sandbox(request))
    with open(os.path.join(sandbox, "go"), "w", encoding="utf-8"):
        pass
    wait_until(lambda: any_end(lies.server.results(request)))
    assert [kind for kind, _ in lies.server.results(request)] == ["accept", "result"]
    assert b"whole" in lies.server.output(request)
    lies.check()


def test_a_fence_that_goes_back(lies):
    """It names another attempt, and changes nothing of the first."""
    request = lies.next()
    lies.assign(request, lies.template(request, step={"argv": ["-c", "sleep 1; echo fence"]}), fence=5)
    lies.assign(request, None, fence=4)
    wait_until(lambda: len([1 for kind, _ in lies.server.results(request) if kind == "result"]) == 2)
    assert sorted(m["fence"] for kind, m in lies.server.results(request) if kind == "result") == [4, 5]
    lies.check()


# of each: the message, and what must come of it: words of the error, or of what it prints
COMMANDS = {
    "one that looks who it is": ({"argv": ["sh", "-c", f"id -un; touch /root/{EVIL} /etc/{EVIL}; cat /etc/shadow"]}, ONE.pw_name),
    "one in a terminal without end": ({"argv": ["sh", "-c", "id -un; tty"], "terminal": 1, "rows": 2**32 - 1, "columns": 2**31, "term": "x\n;`id`"}, ONE.pw_name),
    "one that looks for its terminal's other end": ({"argv": ["sh", "-c", "ls -l /proc/self/fd; id -un"], "terminal": 1}, ONE.pw_name),
    "one that is no program": ({"argv": ["OTHER/secret"]}, "env: "),
    "an option of env": ({"argv": ["-i", "sh", "-c", "id -un"]}, ONE.pw_name),
    "no words": ({"argv": []}, "there is no command"),
    "a hundred thousand words": ({"argv": ["true"] + ["x"] * 100000}, ""),
    "a word of four MiB": ({"argv": ["true", "x" * (4 << 20)]}, "Argument list too long"),
}


@pytest.fixture(scope="module")
def runs_on(lies):
    """The request of a job that runs until it is removed."""
    request = lies.next()
    lies.assign(request, lies.template(request, step={"argv": ["-c", "sleep 6321"]}))
    wait_until(lambda: [m for _, m in lies.server.heard("started") if any(a["request"] == request for a in m.get("attempts", []))])
    yield request
    it = [spans({"first": 0, "count": 1}, request=request)]
    lies.server.send(control={"command": 0, "attempts": it})
    wait_until(lambda: [m for _, m in lies.server.heard("result") if f"'request': {request}," in f"{m},"])
    lies.server.send(result_ack={"attempts": it})


def told(lies, serial):
    return [m for _, m in lies.server.heard("streams") if m["serial"] == serial]


@pytest.mark.parametrize("what", COMMANDS)
def test_commands_beside_a_job(lies, runs_on, what):
    """Each runs as the mapped user, or not at all."""
    number = 70000 + 10 * list(COMMANDS).index(what)
    job = {"request": runs_on, "member": 0, "fence": 1, "exec": number}
    message, wanted = COMMANDS[what]
    lies.server.send(exec={**job, "serial": number, **filled(lies, message)})
    said = wait_until(lambda: told(lies, number))[-1].get("error", "")
    over = bool(said)
    while not over:
        number += 1
        lies.server.send(streams_get={**job, "serial": number, "stdout_wanted": 1, "stderr_wanted": 1, "wait_ms": 60000, "most": 1 << 16})
        last = wait_until(lambda: told(lies, number))[-1]
        assert not last.get("unknown")
        over = last.get("over")
        said = last.get("error", "") or (last.get("stdout_bytes", b"") + last.get("stderr_bytes", b"")).decode()
    assert wanted in said, said
    assert "root:" not in said
    lies.check()


def test_commands_without_end(lies, runs_on):
    """Hundreds of them, and input that nobody reads: they are as many as their owner's share, and end with their job."""
    for n in range(400):
        job = {"serial": 90000 + n, "request": runs_on, "member": 0, "fence": 1, "exec": 90000 + n}
        lies.server.send(exec={**job, "argv": ["sleep", "6543.2187"], "input": 1, "terminal": n % 2})
        lies.server.send(exec_input={**job, "serial": 95000 + n, "data": b"x" * 300000})
    lies.server.ping()
    refused = [m for _, m in lies.server.heard("streams") if "too many" in m.get("error", "")]
    assert 100 < len(refused) < 300
    lies.server.send(control={"command": 0, "attempts": [spans({"first": 0, "count": 1}, request=runs_on)]})
    wait_until(lambda: not processes("6543.2187"))
    lies.check()


def test_what_one_owners_jobs_print(lies):
    """Who asks for all that hundreds of jobs of his print leaves others theirs."""
    def follow(request, serial, member=0):
        lies.server.send(streams_get={"serial": serial, "request": request, "member": member, "fence": 1, "stdout_wanted": 1, "wait_ms": 60000})

    def has_room():
        """the commands of the test before have given their places back"""
        request = lies.next()
        lies.assign(request, lies.template(request), wait_for_go=1)
        follow(request, request)
        lies.server.ping()
        return not told(lies, request)

    wait_until(has_room, every=1)
    asked = {}
    for user, count in ((ONE, 600), (TWO, 1)):
        request = lies.next()
        lies.assign(request, lies.template(request, owner=f"{user.pw_name}@local"), members=[{"first": 0, "count": count}], wait_for_go=1)
        asked[user] = [(request * 1000 + member, member) for member in range(count)]
        for serial, member in asked[user]:
            follow(request, serial, member)
        asked[user] = [serial for serial, _ in asked[user]]
        lies.server.ping()
    unknown = {m["serial"] for _, m in lies.server.heard("streams") if m.get("unknown")}
    assert asked[ONE][-1] in unknown and asked[ONE][0] not in unknown and asked[TWO][0] not in unknown
    for user, serials in asked.items():
        lies.server.send(control={"command": 0, "attempts": [spans({"first": 0, "count": len(serials)}, request=serials[0] // 1000)]})
    lies.check()


# -- without users, one agent each: what is to be survived

@pytest.fixture
def victim(request):
    """An agent of ours at such a server, that has no more memory than it needs."""
    with made(request, "lv-") as instance:
        server = LyingServer(os.path.join(instance.base, "liar"))
        one = Victim(instance, server)
        yield one
        one.agent.kill()  # it has a great deal to forget
        server.close()


class Victim:
    def __init__(self, instance, server):
        self.instance, self.server = instance, server
        self.start()
        server.queue()

    def start(self):
        self.agent = self.instance.start("drover-agent", "--dir", os.path.join(self.instance.base, "node"), "--server", f"127.0.0.1:{self.server.port}",
                                         "--token", self.server.token)
        resource.prlimit(self.agent.pid, resource.RLIMIT_AS, (4 << 30, 4 << 30))

    def assign(self, request, **group):
        template = {"request": request, "part": 0, "owner": self.owner(), "iwd": self.instance.work, "filesystem_domain": "nowhere", "transfer": 1,
                    "steps": [{"executable": "/bin/true"}], "cpus_milli": 1000}
        self.server.send(assign={"queue": self.server.queue(), "serial": 1, "templates": [template],
                                 "groups": [{"request": request, "part": 0, "fence": 1, "wait_for_go": 1, **group}]})

    def owner(self):
        return self.server.heard("offer")[-1][1]["owners"][0]

    def held(self):
        """How many attempts the agent named when it came last."""
        last = self.server.heard("inventory")[-1][1]
        return sum(span["count"] for a in last.get("running", []) + last.get("finished", []) for span in a["members"])


def test_members_without_end(victim):
    """The agent takes so many of them as an offer may ask for, and comes back with these when it has died."""
    victim.assign(1, members=[{"first": 0, "count": 2**32 - 1}] * 3)
    victim.server.ping()
    victim.agent.kill()
    sessions = victim.server.sessions
    victim.start()
    wait_until(lambda: victim.server.sessions > sessions or not victim.agent.running())
    assert victim.agent.running(), victim.agent.output()
    assert 0 < victim.held() <= 100000
    victim.server.ping()


LARGE = {
    "values": {"filled": [{"inside": f"name{i}", "value": "x" * 40} for i in range(20000)]},
    "machines": {"gang": 0, "gang_size": 100000, "gang_machines": "machine," * 100000},
}


@pytest.mark.parametrize("what", LARGE)
def test_what_each_of_many_has(victim, what):
    """A megabyte that is each attempt's own comes once, and is not kept a hundred thousand times."""
    victim.assign(1, members=[{"first": 0, "count": 100000}], **LARGE[what])
    victim.server.ping()
    assert victim.agent.running(), victim.agent.output()
    victim.agent.kill()
    sessions = victim.server.sessions
    victim.start()
    wait_until(lambda: victim.server.sessions > sessions or not victim.agent.running())
    assert victim.agent.running(), victim.agent.output()


def test_items_in_no_order(victim):
    """Which of a hundred thousand is a member's is not looked for in all of them."""
    victim.assign(1, members=[{"first": 0, "count": 100000}], items=[{"member": 2**32 - 1 - i} for i in range(100000)])
    victim.server.ping()


@pytest.mark.parametrize("certificate", ["x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "OURS"])
def test_a_certificate_that_is_none(victim, certificate):
    """The agent keeps the one that it has, and comes back with it."""
    server = victim.server
    server.welcome = {"cert_pem": server.text("s.crt") if certificate == "OURS" else certificate}
    server.ping()
    server.connection.close()
    sessions = server.sessions
    wait_until(lambda: server.sessions > sessions)
    server.welcome = {}
    server.connection.close()
    wait_until(lambda: server.sessions > sessions + 1)
    server.ping()
    assert len(server.heard("join")) == 1


# -- an agent that runs jobs by a batch system

RUN = """for script; do :; done
printf '%s\\n' "$@" >>"$HOSTILE/words"
cat "$script" >>"$HOSTILE/words"
last=$(sed -n 's/^#SBATCH --array=0-//p' "$script")
for i in $(seq 0 ${last:-0}); do
        SLURM_ARRAY_TASK_ID=$i setsid sh "$script" >/dev/null 2>&1 </dev/null &
done
echo $$"""
LOOK_ALIKES = {
    "slurm": {"sbatch": RUN,
              "sinfo": r"printf 'main* 0/4/0/4 4000 0 up 5:00 a1 idle\n'"},
    "gridengine": {"qsub": RUN,
                   "qstat": "printf \"<?xml version='1.0'?>\\n<job_info><queue_info></queue_info></job_info>\\n\""},
}
# of each: what is said of it beside what stands in ASSIGNMENTS
WORDS = {
    "words of a batch system with line ends": {"attributes": [{"name": "BatchQueue", "value": f"main\n#SBATCH --wrap=touch {EVIL}"},
                                                              {"name": "JobBatchName", "value": f"x\n#$ -b y\ntouch {EVIL}"}]},
    "options as words of a batch system": {"attributes": [{"name": "BatchQueue", "value": f"--wrap=touch /tmp/{EVIL}"},
                                                          {"name": "BatchProject", "value": f"$(touch /tmp/{EVIL})"},
                                                          {"name": "SlurmConstraint", "value": f"`touch /tmp/{EVIL}`"},
                                                          {"name": "JobBatchName", "value": f"'; touch /tmp/{EVIL}; '"}]},
    "a list of files that climbs": {"file_list": "../../etc/passwd 0 1 x y"},
    "a list of files that is not there": {"file_list": f"no-such 0 99999999999 $(touch${{IFS}}/tmp/{EVIL}) `id`"},
    "a list of files in half": {"file_list": "x"},
    "paths of the submitter": {"transfer": 3, "filesystem_domain": domain(), "iwd": "/root/" + EVIL},
}


def of_a_user(instance, request, queue, tools):
    """An agent of an ordinary user's that has joined a lying server; `tools` are programs that it finds first."""
    own = Own(instance, ONE)
    folder = os.path.join(instance.base, "bin")
    os.makedirs(folder)
    for tool, script in tools.items():
        path = os.path.join(folder, tool)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nHOSTILE={instance.work}\n{script}\n")
        os.chmod(path, 0o755)
    instance.env["PATH"] = f"{folder}:{instance.env.get('PATH', os.environ['PATH'])}"
    server = LyingServer(os.path.join(instance.base, "liar"))
    server.objects = OBJECTS
    request.addfinalizer(server.close)
    config = own.write("node.yaml", f"queues:\n  - {{name: q, {queue}}}\n")
    agent = instance.start("drover-agent", "--dir", os.path.join(instance.base, "node"), "--server", f"127.0.0.1:{server.port}",
                           "--token", server.token, "--config", config)
    server.queue()
    return server, agent


def assign_all(instance, server, table):
    """Each of the table as a request of its own, whose number is told."""
    owner, numbers = server.heard("offer")[-1][1]["owners"][0], {}
    for number, (what, (template, group)) in enumerate(table.items(), 1):
        step = {"executable": "/bin/sh", "argv": ["-c", "true"], "stdout_file": "out", "stderr_file": "err", **template.get("step", {})}
        whole = {"request": number, "part": 0, "owner": owner, "iwd": instance.work, "filesystem_domain": "nowhere", "transfer": 1,
                 "cpus_milli": 1000, "memory_bytes": 64 << 20, **template, "steps": template.get("steps", [step])}
        whole.pop("step", None)
        server.send(assign={"queue": server.queue(), "serial": 1, "templates": [whole],
                            "groups": [{"request": number, "part": 0, "fence": 1, "lease_ms": 3600000, "members": [{"first": 0, "count": 1}], **group}]})
        numbers[what] = number
    server.ping()
    return numbers


def all_end(server, agent, numbers):
    def open_ones():
        return [what for what, n in numbers.items() if not (server.results(n) and any_end(server.results(n)))]

    def over():
        """each has an end"""
        return not open_ones() or not agent.running()

    with contextlib.suppress(Failed):
        wait_until(over)
    assert agent.running() and open_ones() == []


TABLE = {what: (template, group) for what, (template, group, wanted) in ASSIGNMENTS.items() if wanted not in (None, waits)}


def evil():
    return [os.path.join(top, name) for top in ("/root", "/etc", "/etc/cron.d", "/tmp", "/var/tmp") for name in os.listdir(top) if EVIL in name]


@pytest.mark.parametrize("kind", LOOK_ALIKES)
def test_what_it_assigns_to_a_batch_system(instance, request, kind):
    """All of the table, and words for the batch system: the agent goes on, tells each one's end, and no text becomes an option, a line of a
    script or a command."""
    tools = dict.fromkeys("squeue scancel sacct scontrol qstat qdel qacct qmod qhold qrls qhost qconf".split(), ":")
    server, agent = of_a_user(instance, request, f"runner: {kind}, {kind}: {{poll: '1'}}", {**tools, **LOOK_ALIKES[kind]})
    before = evil()
    all_end(server, agent, assign_all(instance, server, {**TABLE, **{what: (template, {}) for what, template in WORDS.items()}}))
    assert evil() == before
    words = instance.read("words").splitlines()
    assert not [w for w in words if w.startswith(("--wrap", "#SBATCH --wrap", "touch", "#$ -b"))]
    assert "#!/bin/sh" in words


IMAGES = {
    "an option as an image": {"container": "--privileged"},
    "an option as an image, by name": {"container": "docker://--volume=/:/host"},
    "words as an image": {"container": "docker://localhost/tiny:1 --privileged"},
    "a line end in an image": {"container": "docker://localhost/tiny:1\n--privileged"},
    "a path as an image": {"container": "/etc/shadow"},
    "a folder as an image": {"container": "oci:/etc"},
    "a path that climbs as an image": {"container": "docker-archive:../../../../etc/passwd"},
    "an option as a network": {"container": "docker://localhost/tiny:1", "container_network": "--pid=host"},
    "a network of another container": {"container": "docker://localhost/tiny:1", "container_network": "container:other"},
    "no image": {"container": "docker://"},
    "a long image": {"container": "docker://localhost/" + "x" * 100000},
}
ENGINE_OPTIONS = ("--privileged", "--volume=/:/host", "--pid=host", "--network=--pid=host", "/etc", "/etc/shadow", "oci:/etc")


def test_what_it_assigns_to_containers(instance, request):
    """Names of images and networks that are options, paths or nothing: each has an end, and none is a word of the engine's own."""
    engine = shutil.which("podman")
    server, agent = of_a_user(instance, request, "container: {engine: podman, images: ['*']}", {"podman": f'printf "%s\\n" "$@" "" >>"$HOSTILE/words"; export XDG_RUNTIME_DIR="$HOSTILE/run"; mkdir -p -m 0700 "$HOSTILE/run"; exec {engine} "$@"'})
    wait_until(lambda: "containers run here" in agent.output())
    before = evil()
    table = {what: ({"step": {"argv": [], "executable": "/bin/true", **step}}, {}) for what, step in IMAGES.items()}
    all_end(server, agent, assign_all(instance, server, table))
    assert evil() == before
    calls = [call.split("\n") for call in instance.read("words").split("\n\n")]
    assert not [call for call in calls for word in call if word in ENGINE_OPTIONS], calls
