"""Texts of others on the terminal of who looks: an agent, and a user, put what commands a terminal into every text that they can say. Whatever
is listed for people has none of it; with --json it is escaped."""
import json
import os
import re
import subprocess
import time

import pytest

from drover import made, sh, wait_until
from wire import AD, Liar

# Sets a title, clears the screen, puts a text into the clipboard; the last one is the 8-bit form.
EVIL = "\x1b]0;it is mine\x07\x1b[2J\x1b]52;c;b3duZWQ=\x07\u009b31m\r"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f]")


def quoted(text):
    return '"' + text.replace("\r", "\\r") + '"'


class Site:
    """A server; an agent whose every word is evil, with two jobs of a user of the same kind: one runs, one is held; and one in history."""

    def __init__(self, instance):
        self.instance = instance
        instance.server()
        self.liar = Liar(instance, "liar", "--owners", "any")
        self.liar.hello()
        words = "; ".join(f"{name} = {quoted(EVIL)}" for name in (
            "NodeBootId", "NodeProviderId", "NodeImage", "NodeSize", "NodePrice", "Limits", "OpSys2", "PullPolicy"))
        self.ad = AD.replace("[ ", f"[ {words}; TotalCpus = 4; Tags = {{{quoted(EVIL)}}}; ", 1)
        self.liar.offer(ad=self.ad)
        self.running, self.held, self.over = (self.submit() for _ in range(3))
        took = {r: self.liar.take(r)[0] for r in (self.running, self.held, self.over)}
        batch = {r: [{"request": a["request"], "fence": a["fence"], "members": [{"first": 0, "count": 1}]}] for r, a in took.items()}
        self.liar.wire.send(started={"attempts": batch[self.running], "at_ms": 1})
        self.liar.wire.send(whereabouts={"attempts": [{**took[self.running], "runner": EVIL, "native": EVIL, "said": EVIL}]})
        self.liar.wire.send(result={"jobs": [{**took[self.held], "outcome": 1, "hold_code": 6, "reason": EVIL}]})
        self.liar.wire.until("result_ack")
        self.liar.wire.send(result={"jobs": [{**took[self.over], "steps": [{"exit_code": 0}]}]})
        self.liar.wire.until("result_ack")
        self.liar.wire.send(offer={"queue": "shut", "serial": 100, "ad": self.ad.replace("[ ", f"[ WhyClosed = {quoted(EVIL)}; ", 1), "jobs_max": 0})
        self.liar.wire.send(offer={"queue": "away", "serial": 101, "ad": self.ad.replace("[ ", f"[ Unreachable = {quoted(EVIL)}; ", 1), "jobs_max": 0})
        self.liar.ping()
        self.waiting = self.submit(requirements=f"Machine == {quoted(EVIL)}")
        self.liar.wire.send(offer={"queue": "q", "serial": 102, "ad": self.ad.replace("[ ", f"[ NodeFailed = {quoted(EVIL)}; ", 1), "jobs_max": 4})
        self.liar.ping()
        wait_until(lambda: instance.history(self.over))
        instance.api("POST", "/v1/reservations", {"places": ["liar/q"], "cpus": 1, "reason": EVIL, "start_ms": int(time.time() * 1000) + 3600000,
                                                  "duration_ms": 60000})

    def submit(self, **more):
        return self.instance.submit(sh("true", batch_name=EVIL.rstrip("\r"), arguments=f"'a {EVIL} b'", **{"+DroverNode": quoted(EVIL)}, **more))


@pytest.fixture(scope="module")
def site(request):
    with made(request, "texts-") as one:
        yield Site(one)


LOOKS = [
    "nodes", "node show liar", "agents", "queue", "queue --jobs", "show {running}", "show {running}.0", "show {held}.0", "show {waiting}",
    "show {over}.0", "why {running}.0", "why {held}.0", "why {waiting}.0", "path {running}.0", "path --ad {running}.0", "log {held}.0", "log {running}.0",
    "history", "history {over}", "wait --timeout 1 {held}", "get --list {over}", "rm {running}.7", "release {running}.0", "limits", "stores", "dag show {running}",
    "quote {running}.0", "resume liar", "node resume nobody", "info jobs", "info history", "info requests", "info places",
    "info nodes", "info reservations", "info jobs -o Id,JobBatchName,DroverNode,Args", "info jobs -o Id,JobBatchName,DroverNode --csv", "info places -o AgentName,NodeImage",
    "log --trace {running}.0", "log --trace {held}.0", "log {held}.0 --csv", "report usage --by user,account,place,site", "report sites", "report efficiency",
    "report usage --by place --csv", "report usage --by place --format html", "report records", "report records --format csv", "report records --format ur",
    "reserve list", "reserve show 1", "reserve list --csv", "queue --csv", "history --csv", "agents --csv", "exec {held}.0 -- true", "token list", "priority",
]


def look(site, program, words):
    argv = words.format(**{name: getattr(site, name) for name in ("running", "held", "over", "waiting")}).split()
    p = subprocess.run([program, *argv], env=site.instance.env, cwd=site.instance.work, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=90, check=False)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


@pytest.mark.parametrize("words", LOOKS)
def test_nothing_commands_the_terminal(site, words):
    _, out, err = look(site, site.instance.program("drover"), words)
    assert out + err and not COMMANDS.search(out + err), (out, err)


@pytest.mark.parametrize("words", [words for words in LOOKS if words.split()[0] in (
    "nodes", "node", "agents", "queue", "show", "why", "path", "log", "history", "stores", "limits", "token", "info", "reserve") and "csv" not in words])
def test_json_has_it_escaped(site, words):
    """So a program is told the text as it is, and a terminal nothing."""
    _, out, err = look(site, site.instance.program("drover"), words + " --json")
    assert not COMMANDS.search(out + err), (out, err)


def test_json_is_true(site):
    _, out, _ = look(site, site.instance.program("drover"), "node show liar --json")
    assert json.loads(out)["machine"]["price"] == EVIL


@pytest.mark.parametrize("words", ["q", "q -nobatch", "q -hold", "q -run", "q -better-analyze {running}", "history", "status", "ssh_to_job {held}",
                                   "hold {over}", "userprio", "prio -p 1 {over}"])
def test_the_look_alikes(site, words):
    tool, _, rest = words.partition(" ")
    _, out, err = look(site, os.path.join(site.instance.build, "bin", "condor", f"condor_{tool}"), rest)
    assert out + err and not COMMANDS.search(out + err), (out, err)


FIELDS = {
    "SQUEUE": "|".join(f"%{c}" for c in "aAbBcCDefFghHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ"),
    "QUEUES": ",".join(f"{f}:200" for f in "account,comment,command,dependency,jobid,name,nodelist,partition,reason,state,stdout,stderr,username,workdir".split(",")),
    "SACCT": "jobid,jobname,partition,account,state,exitcode,nodelist,user,workdir,comment,admincomment,submitline,reason,derivedexitcode",
    "SINFO": "|".join(f"%{c}" for c in "aAcCDeEfFgGhlLmNopPRtTuUwX"),
}


@pytest.mark.parametrize("words", [
    "squeue", "squeue -o SQUEUE", "squeue -O QUEUES", "squeue --json", "squeue --start", "squeue -j {running} -l", "squeue -r -t all", "sacct -a", "sacct -a -l",
    "sacct -a -p -o SACCT", "sacct -a --json", "sinfo", "sinfo -N -l", "sinfo -R", "sinfo -o SINFO", "scontrol show job", "scontrol show job {held}",
    "scontrol show node", "scontrol show partition"])
def test_the_look_alikes_of_slurm(site, words):
    tool, _, rest = words.partition(" ")
    for name, fields in FIELDS.items():
        rest = rest.replace(name, fields)
    code, out, err = look(site, os.path.join(site.instance.build, "bin", "slurm", tool), rest)
    assert code == 0 and out and not COMMANDS.search(out + err), (code, out, err)
