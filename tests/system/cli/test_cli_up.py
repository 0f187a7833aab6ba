"""drover up, with a server and an agent that only write down what happens to them."""
import json
import os
import shutil
import signal
import stat
import subprocess
import time

import pytest

TOKEN = "drover-agent-token.v1." + "a" * 64 + ".t1.secret"

COMMON = """#!/usr/bin/python3
import json, os, signal, sys, time
sys.path[:0] = {path!r}
def option(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None
def note(text):
    with open({notes!r}, "a") as f:
        f.write(text + "\\n")
"""
SERVER = COMMON + """
dir = option("--dir")
if os.path.exists(os.path.join(dir, "refuse")):
    sys.exit("droverd: the folder is used by another server")
def end(*_):
    note("server ends")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
note("server " + " ".join(sys.argv[1:]))
from fake_server import Fake
fake = Fake(dir, {{
    "POST /v1/tokens": lambda r: (note("token for " + r.body["name"]), (201, {{"id": "t1", "token": {token!r},
                                                                           "expires_ms": 1}}))[1],
    "GET /v1/agents": lambda r: {{"agents": [{{"name": os.uname().nodename, "state": "connected", "queues": [],
        "running": 0}}] if os.path.exists(os.path.join(dir, "joined")) else []}}}}, ["unix:" + dir + "/agents.sock", "h:1"])
print("ready")
sys.stdout.flush()
while True:
    time.sleep(100)
"""
AGENT = COMMON + """
dir = os.path.dirname(option("--dir"))
path = option("--token-file")
if path:
    with open(path) as f:
        note("agent has %s %o" % (f.read().strip(), os.stat(path).st_mode & 0o777))
note("agent %d " % os.getpid() + " ".join(sys.argv[1:]))
def end(number, _):
    note("agent ends by %d" % number)
    os._exit(0)
signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
open(os.path.join(dir, "joined"), "w").close()
while True:
    time.sleep(100)
"""


class Up:
    def __init__(self, cli):
        self.cli, self.bin, self.dir = cli, os.path.join(cli.folder, "bin"), cli.dir
        self.notes_path = os.path.join(cli.folder, "notes")
        os.makedirs(self.bin)
        shutil.copy(os.path.realpath(cli.program), os.path.join(self.bin, "drover"))
        here = os.path.dirname(os.path.abspath(__file__))
        for name, text in (("droverd", SERVER), ("drover-agent", AGENT)):
            path = os.path.join(self.bin, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.format(path=[os.path.dirname(here), here], notes=self.notes_path, token=TOKEN))
            os.chmod(path, 0o755)
        self.process = None

    def start(self, *args):
        self.process = subprocess.Popen([os.path.join(self.bin, "drover"), "up", *args], env=self.cli.env,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return self.process

    def notes(self):
        if not os.path.exists(self.notes_path):
            return []
        with open(self.notes_path, encoding="utf-8") as f:
            return f.read().splitlines()

    def until(self, what, seconds=90):
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end and self.process.poll() is None, (self.notes(), self.process.poll())
            time.sleep(0.02)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=90)
        return self.process.stdout.read(), self.process.stderr.read()


@pytest.fixture
def up(cli):
    one = Up(cli)
    yield one
    if one.process and one.process.poll() is None:
        one.process.terminate()
        one.process.communicate(timeout=90)


def test_up(up):
    up.start("--cpus", "2", "--listen", "0.0.0.0:7331")
    assert up.process.stdout.readline() == "ready\n"
    assert stat.S_IMODE(os.stat(up.dir).st_mode) == 0o700
    assert not os.path.exists(os.path.join(up.dir, "agent.token"))
    out, err = up.end()
    assert up.process.returncode == 0 and "stopping" in err
    assert f"folder  {up.dir}" in out and f"unix:{up.dir}/api.sock" in out and "ready" not in out
    notes = up.notes()
    assert notes[0] == f"server --dir {up.dir} --user root --listen 0.0.0.0:7331 --log-level warn"
    assert notes[1] == f"token for {os.uname().nodename}"
    assert notes[2] == f"agent has {TOKEN} 600"
    assert "--cpus 2" in notes[3] and f"--server unix:{up.dir}/agents.sock" in notes[3] and TOKEN not in notes[3]
    assert f"--dir {up.dir}/agent" in notes[3] and "--domain local" in notes[3]
    assert notes[4:] == ["agent ends by 2", "server ends"]


def test_a_part_that_crashes_is_started_again(up):
    up.start()
    assert up.process.stdout.readline() == "ready\n"
    for times in (2, 3):
        pid = int([n for n in up.notes() if n.startswith("agent ") and "--dir" in n][-1].split()[1])
        os.kill(pid, signal.SIGKILL)
        up.until(lambda: len([n for n in up.notes() if n.startswith("agent ") and "--dir" in n]) == times)
    assert "--token-file" not in up.notes()[-1]
    with open(os.path.join(up.dir, "server.json"), encoding="utf-8") as f:
        os.kill(json.load(f)["pid"], signal.SIGKILL)
    os.unlink(os.path.join(up.dir, "api.sock"))
    up.until(lambda: len([n for n in up.notes() if n.startswith("server --dir")]) == 2)
    _, err = up.end()
    assert up.process.returncode == 0
    assert err.count("drover-agent was killed by signal 9; starting it again") == 2
    assert err.count("droverd was killed by signal 9; starting it again") == 1


def test_a_server_that_refuses(up):
    os.makedirs(up.dir, 0o700)
    with open(os.path.join(up.dir, "refuse"), "w", encoding="utf-8"):
        pass
    up.start()
    out, err = up.process.communicate(timeout=90)
    assert up.process.returncode == 1 and out == "" and not up.notes()
    assert err.splitlines() == ["droverd: the folder is used by another server", "drover: droverd ended with status 1"]


def test_without_an_agent(up):
    up.start("--no-agent")
    assert up.process.stdout.readline() == "ready\n"
    up.end()
    assert not [n for n in up.notes() if n.startswith("agent")]


def test_killed_itself_it_leaves_nothing_running(up):
    up.start()
    assert up.process.stdout.readline() == "ready\n"
    up.process.kill()
    up.process.communicate()
    end = time.monotonic() + 90
    while not {"server ends", "agent ends by 15"} <= set(up.notes()):
        assert time.monotonic() < end, up.notes()
        time.sleep(0.02)


def test_folders_of_others_are_refused(up):
    if os.getuid() != 0:
        pytest.skip("needs root to make a folder of another user")
    os.makedirs(up.dir)
    os.chown(up.dir, 12345, 12345)
    up.start()
    _, err = up.process.communicate(timeout=90)
    assert up.process.returncode == 1 and "belongs to another user" in err


def test_server_and_agent_become_the_daemons(up):
    for command, program in (("server", "droverd"), ("agent", "drover-agent")):
        with open(os.path.join(up.bin, program), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho \"$0 $*\"\nexit 7\n")
        p = subprocess.run([os.path.join(up.bin, "drover"), "--dir", "/d", command, "--x", "y z", "-h"],
                           stdout=subprocess.PIPE, text=True, env=up.cli.env, check=False)
        assert p.returncode == 7 and p.stdout == f"{up.bin}/{program} --dir /d --x y z -h\n"
    os.unlink(os.path.join(up.bin, "droverd"))
    p = subprocess.run([os.path.join(up.bin, "drover"), "server"], stderr=subprocess.PIPE, text=True, check=False,
                       env={**up.cli.env, "PATH": "/nowhere"})
    assert p.returncode == 1 and "droverd is not installed" in p.stderr
