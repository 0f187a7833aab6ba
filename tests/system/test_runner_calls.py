"""The calls of a runner that no agent makes for us, on every runner: hold and release, signals, quotes, what is known again.

What is driven is tests/conform/drive_runner, which speaks to the runner as an agent does."""
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from drover import LIMIT, wait_until
from exec_runner import PROGRAM, Processes
from test_full_disk import fill

pytest_plugins = ["batch_systems"]


class Driver:
    """A runner in a process of its own. `said` has what it told, line by line."""

    def __init__(self, build, folder, kind, settings, env, prefix=()):
        self.said = os.path.join(folder, "said")
        self.folder = os.path.join(folder, "dir")
        os.makedirs(self.folder, exist_ok=True)
        with open(self.said, "ab") as out:
            self.process = subprocess.Popen([*prefix, os.path.abspath(os.path.join(build, "tests/conform/drive_runner")), kind, self.folder,
                                             *(f"{k}={v}" for k, v in settings.items())],
                                            stdin=subprocess.PIPE, stdout=out, stderr=out, env=env, cwd=folder, text=True)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def lines(self, start=""):
        with open(self.said, encoding="utf-8", errors="replace") as f:
            return [line.rstrip("\n") for line in f if line.startswith(start)]

    def wait(self, start, seconds=LIMIT, count=1):
        """The lines that begin so, when there are as many."""
        return wait_until(lambda: self.lines(start) if len(self.lines(start)) >= count else None, seconds)

    def path(self, task, name):
        return os.path.join(self.folder, f"box.{task}", name)

    def file(self, task, name):
        """What the task has written, or nothing."""
        try:
            with open(self.path(task, name), encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def stop(self, word="quit"):
        if self.process.poll() is None:
            self.say(word)
            self.process.wait(90)


class Place:
    """A kind of runner with what it stands on. `start` opens the runner, again after `driver.stop()`."""

    def __init__(self, build, folder, kind, settings, system):
        self.build, self.folder, self.kind, self.settings, self.system = build, folder, kind, settings, system
        self.env = {**os.environ, **(system.env if system else {})}
        self.driver, self.prefix = None, ()

    def start(self):
        ready = len(self.driver.lines("ready")) if self.driver else 0
        self.driver = Driver(self.build, self.folder, self.kind, self.settings, self.env, self.prefix)
        self.driver.wait("ready", count=ready + 1)
        return self.driver


SYSTEMS = {"slurm": "alpha", "rest": "rest", "gridengine": "grid", "pbs": "pbs", "htcondor": "condor_pool", "exec": "processes", "awsbatch": "aws_batch",
           "tsp": "spooler", "kubernetes": "kubernetes"}


@pytest.fixture(params=["process", *(pytest.param(name, marks=[pytest.mark.long] if name == "kubernetes" else []) for name in SYSTEMS)])
def place(request):
    folder = tempfile.mkdtemp(prefix="rc-", dir=request.config.drover_tmp)
    build = request.config.getoption("--build")
    if request.param == "process":
        one = Place(build, folder, "process", {"PROGRAM": os.path.abspath(os.path.join(build, "src/agent/drover-shepherd"))}, None)
    else:
        system = request.getfixturevalue(SYSTEMS[request.param])
        one = Place(build, folder, system.runner, system.settings, system)
    yield one
    if one.driver:
        one.driver.stop("quit all")
    shutil.rmtree(folder, ignore_errors=True)


def until(path):
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


def test_a_signal_reaches_the_program(place):
    """Several, in their order, each once; the end is the program's own."""
    d = place.start()
    d.say("submit 1 trap 'echo usr1 >>heard' USR1; trap 'echo hup >>heard' HUP; trap 'echo bye >>heard; exit 7' INT; "
          "echo up >up; while :; do sleep 0.05; done")
    d.wait("running 1")
    wait_until(lambda: d.file(1, "up"))
    for number, heard in ((signal.SIGUSR1, "usr1\n"), (signal.SIGHUP, "usr1\nhup\n"), (signal.SIGUSR1, "usr1\nhup\nusr1\n")):
        d.say(f"signal 1 {int(number)}")
        wait_until(lambda h=heard: d.file(1, "heard") == h)
    d.say(f"signal 1 {int(signal.SIGINT)}")
    assert d.wait("ended 1") == ["ended 1 code=7 why=0"]
    assert d.file(1, "heard") == "usr1\nhup\nusr1\nbye\n"
    d.say("signal 1 15")
    d.say("signal 99 15")
    d.say("submit 2 echo still here")
    d.wait("ended 2 code=0")


def test_a_signal_ends_a_program(place):
    d = place.start()
    d.say("submit 1 echo up >up; exec sleep 600")
    wait_until(lambda: d.file(1, "up"))
    d.wait("running 1")
    d.say("signal 1 3")
    assert d.wait("ended 1") == ["ended 1 signal=3 why=0"]


def test_suspended_is_stopped(place):
    d = place.start()
    d.say("submit 1 while :; do echo x >>beats; sleep 0.02; done")
    wait_until(lambda: d.file(1, "beats"))
    d.wait("running 1")
    d.say("suspend 1")

    def quiet():
        """nothing is written for a while"""
        before = len(d.file(1, "beats"))
        time.sleep(0.3)
        return len(d.file(1, "beats")) == before

    wait_until(quiet)
    d.say("resume 1")
    wait_until(lambda: not quiet())
    d.say("suspend 1")
    wait_until(quiet)
    d.say("kill 1")  # what is stopped ends as well
    d.wait("ended 1")


def test_held_does_not_begin(place):
    """Also when it is held before the system has it; what runs is not touched by a hold."""
    d = place.start()
    d.say("submit 1 " + until(d.path(1, "go")))
    d.wait("running 1")
    d.say("hold 1")
    d.say("submit 2 echo began")
    if place.system:  # among processes nothing waits
        d.say("hold 2")
    d.say("submit 3 echo began")
    d.wait("ended 3 code=0")
    assert not place.system or (not d.lines("running 2") and not d.file(2, "out"))
    d.say("release 2")
    d.wait("ended 2 code=0")
    with open(d.path(1, "go"), "w", encoding="utf-8"):
        pass
    d.wait("ended 1 code=0")


@pytest.fixture
def narrow(request):
    """A batch system that runs one job at a time."""
    folder = tempfile.mkdtemp(prefix="rc-", dir=request.config.drover_tmp)
    system = Processes(folder, slots=1)
    one = Place(request.config.getoption("--build"), folder, system.runner, system.settings, system)
    yield one
    one.driver.stop("quit all")
    system.stop()
    shutil.rmtree(folder, ignore_errors=True)


def held_behind(narrow, word):
    """Task 2 waits in the system behind task 1, and is held there."""
    d = narrow.start()
    d.say("submit 1 " + until(d.path(1, "go")))
    d.wait("running 1")
    d.say("submit 2 echo began")
    wait_until(lambda: len(narrow.system.jobs()) == 2)
    d.say(f"{word} 2")
    wait_until(lambda: glob.glob(os.path.join(narrow.system.folder, "*", "held")))
    return d


def let_go(d):
    with open(d.path(1, "go"), "w", encoding="utf-8"):
        pass


@pytest.mark.parametrize("word, back", [("hold", "release"), ("suspend", "resume")])
def test_held_is_known_again(narrow, word, back):
    """What waits held is released also by a runner that was opened since."""
    d = held_behind(narrow, word)
    d.stop()
    d = narrow.start()
    let_go(d)
    d.wait("ended 1 code=0")
    d.say("submit 3 echo began")
    d.wait("ended 3 code=0")
    assert not d.lines("running 2") and not d.file(2, "out")
    d.say(f"{back} 2")
    d.wait("ended 2 code=0")
    assert d.file(2, "out") == "began\n"


def test_what_was_not_heard_is_told_again(narrow):
    """The command fails while the system answers questions."""
    deaf, program = os.path.join(narrow.folder, "deaf"), os.path.join(narrow.folder, "program")
    with open(program, "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\n[ "$1" != release ] || [ ! -e {deaf} ] || {{ echo deaf >&2; exit 1; }}\nexec {PROGRAM} "$@"\n')
    os.chmod(program, 0o755)
    narrow.settings["program"] = program
    d = held_behind(narrow, "hold")
    with open(deaf, "w", encoding="utf-8"):
        pass
    d.say("release 2")
    wait_until(lambda: any("a command of the batch system failed" in line for line in d.lines()))
    os.unlink(deaf)
    let_go(d)
    d.wait("ended 2 code=0")


def test_what_is_told_while_it_is_away_is_told_then(narrow):
    """Nothing is told to a system that does not answer: numbers may be others' when it is back."""
    d = held_behind(narrow, "hold")
    narrow.system.kill_daemon()
    d.say("release 2")
    d.wait("away")
    assert not any("a command of the batch system failed" in line for line in d.lines())
    narrow.system.start_daemon()
    let_go(d)
    d.wait("ended 2 code=0")


def test_a_full_disk_is_no_fault_of_the_task(narrow):
    """It is lost, and runs elsewhere or later."""
    folder = os.path.join(narrow.folder, "dir")
    os.mkdir(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", folder], check=True)
    try:
        d = narrow.start()
        fill(folder)
        d.say("submit 1 true")
        assert "No space left on device" in d.wait("lost 1")[0]
        assert not d.lines("failed")
        d.stop()
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


SLOW = """#!/usr/bin/python3
# Of the first submission nobody hears, and a question that was asked before it is answered after it.
import os, subprocess, sys, time
there = lambda name: os.path.exists(os.path.join({top!r}, name))
def put(name):
    with open(os.path.join({top!r}, name), "a") as f:
        f.write("x")
def until(name):
    while not there(name):
        time.sleep(0.02)
question, op = sys.stdin.read(), sys.argv[1]
first = op == "submit" and not there("lost")
if op == "submit":
    put("submitted")
if first:
    until("asked")
answer = subprocess.run([{program!r}, op], input=question, capture_output=True, text=True)
if first:
    put("lost")
    sys.exit(75)
if op == "status" and there("submitted") and not there("lost"):
    put("asked")
    until("lost")
    time.sleep(0.5)
sys.stdout.write(answer.stdout)
sys.stderr.write(answer.stderr)
sys.exit(answer.returncode)
"""


def test_an_old_answer_says_nothing_of_a_later_submission(narrow):
    """It is in the system, and not in the answer: it is not submitted again."""
    program = os.path.join(narrow.folder, "slow")
    with open(os.open(program, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as f:
        f.write(SLOW.format(top=narrow.folder, program=PROGRAM))
    narrow.settings = {**narrow.settings, "program": program}
    d = narrow.start()
    d.say("submit 1 sleep 3; exit 3")
    d.wait("ended 1 code=3")
    with open(os.path.join(narrow.folder, "submitted"), encoding="utf-8") as f:
        assert f.read() == "x"


def test_quotes(place):
    """What could begin now; what could not for a while; what never will."""
    d = place.start()
    d.say("quote 1 1")
    line = d.wait("quoted 1")[0]
    if not getattr(place.system, "quotes", True):
        assert "in=-99999999 error=0" in line  # unknown
        return
    assert -5000 < int(line.split("in=")[1].split()[0]) < 600000 and "error=0" in line
    if not place.system:
        return
    d.say("quote 2 100000")
    assert ("error=22" if getattr(place.system, "quotes_never", True) else "in=-99999999 error=0") in d.wait("quoted 2")[0]
    for n in range(40):
        d.say(f"quote {100 + n} 1")
    d.wait("quoted 1", count=41)
    assert not d.lines("running") and not d.lines("waiting")


def members(driver):
    """With how many members each submission was made, as the runner has written down."""
    found = {}
    for path in glob.glob(os.path.join(driver.folder, "batch.*", "journal")):
        with open(path, encoding="utf-8") as f:
            found.update((line.split()[1], line.split()[2]) for line in f if line.startswith("count "))
    return found


def test_known_again(place):
    """A runner that is opened again tells what it has, before it is ready."""
    d = place.start()
    d.say(f"submit 1 echo up >up; {until(d.path(1, 'go'))}; exit 4")
    d.say("submit 2 exit 3")
    wait_until(lambda: d.file(1, "up"))
    d.wait("running 1")
    d.wait("ended 2")
    d.stop()
    d = place.start()
    text = d.lines()
    again = text[text.index("ready 0") + 1:]
    assert "running 1 known" in again and "ended 2 known code=3 why=0" in again
    made = members(d)
    assert made or not place.system
    d.say("forget 2")
    for _ in range(2):  # an array stays one when the others are forgotten: the system's numbers are of its members
        d.stop()
        d = place.start()
    left = members(d)
    assert left.items() <= made.items() and (left or not place.system)
    d.say("signal 1 0")
    with open(d.path(1, "go"), "w", encoding="utf-8"):
        pass
    d.wait("ended 1 code=4")
    d.say("forget 1")
    d.stop()
    d = place.start()
    text = d.lines()
    assert text[-2:] == ["ended 1 code=4 why=0", "ready 0"]
