"""What is particular to Slurm by requests to slurmrestd: answers that are lost, tokens, a unix socket."""
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import pytest

import agents
from drover import sh, wait_until
from slurm import Rest
from test_runner_calls import Place

pytest_plugins = ["batch_systems"]


class Between:
    """A server that hands requests on, and with one that submits does what it is told: "swallow" its answer, or "drop" it."""

    def __init__(self, port):
        self.port, self.todo, self.done, self.asked = port, [], [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    @staticmethod
    def _message(s):
        """One request or answer; nothing at the end."""
        text = b""
        while b"\r\n\r\n" not in text:
            part = s.recv(65536)
            if not part:
                return b""
            text += part
        head, body = text.split(b"\r\n\r\n", 1)
        size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        while len(body) < size:
            body += s.recv(65536)
        return head + b"\r\n\r\n" + body

    def _serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            while request := self._message(client):
                self.asked.append(request.split(b"\r\n")[0].decode())
                what = self.todo.pop(0) if "/job/submit" in self.asked[-1] and self.todo else ""
                if what == "drop":
                    self.done.append(what)
                    return
                server.sendall(request)
                answer = self._message(server)
                if what == "swallow":
                    self.done.append(what)
                    return
                client.sendall(answer)

    def stop(self):
        self.listener.close()


@pytest.fixture
def box(request):
    folder = tempfile.mkdtemp(prefix="sr-", dir=request.config.drover_tmp)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_answers_that_are_lost(request, rest, box):
    """A submission whose answer nobody has is looked for by its name: found, it is taken; else it is made again."""
    between = Between(rest.port)
    settings = {**rest.settings, "rest": f"http://127.0.0.1:{between.at}"}
    place = Place(request.config.getoption("--build"), box, "slurm", settings, rest)
    d = place.start()
    try:
        for task, what in ((1, "swallow"), (2, "drop")):
            between.todo.append(what)
            d.say(f"submit {task} echo once >>ran")
            d.wait(f"ended {task} code=0")
        assert between.done == ["swallow", "drop"]
        assert [d.file(task, "ran") for task in (1, 2)] == ["once\n"] * 2
        said = "\n".join(d.lines())
        assert said.count("found a submission again") == 1 and said.count("it is made again") == 1
    finally:
        d.stop("quit all")
        between.stop()


def test_members_that_are_not_listed(request, rest, box):
    """Slurm cuts the list of an array's waiting members, when it is long: they are not missing, and nobody looks for them."""
    between = Between(rest.port)
    settings = {**rest.settings, "rest": f"http://127.0.0.1:{between.at}", "partition": "shut"}
    place = Place(request.config.getoption("--build"), box, "slurm", settings, rest)
    d = place.start()
    try:
        d.say("\n".join(f"submit {task} true" for task in range(120)))
        wait_until(lambda: len(rest.jobs("pending")) == 120)
        ids = [job[0] for job in rest.jobs("pending")]
        gone = [one for one in ids if "_" in one and int(one.split("_")[1]) % 5 in (1, 3)]
        rest.cluster.tool("scancel", *gone)
        cut = rest.cluster.tool("scontrol", "show", "job")
        assert "..." in cut, cut

        def lists():
            return sum(line.endswith("/jobs HTTP/1.1") for line in between.asked)

        asked = lists()
        wait_until(lambda: lists() > asked + 2)
        assert not [line for line in between.asked if "slurmdb" in line]
        rest.cluster.tool("scontrol", "update", "PartitionName=shut", "State=UP")
        d.wait("ended", count=120 - len(gone))
        assert len(d.lines("lost")) <= len(gone)  # Slurm says no more of what was cancelled before it began
    finally:
        rest.cluster.tool("scontrol", "update", "PartitionName=shut", "State=DOWN")
        d.stop("quit all")
        between.stop()


def test_suspended_while_it_waits(request, rest, box):
    """It is held where the API can do that; should it begin all the same, as when somebody releases it, it is stopped."""
    place = Place(request.config.getoption("--build"), box, "slurm", {**rest.settings, "partition": "shut"}, rest)
    d = place.start()
    try:
        d.say(f"submit 1 while [ ! -e {d.path(1, 'go')} ]; do echo x >>beats; sleep 0.02; done\nsubmit 2 true")
        wait_until(lambda: len(rest.jobs("pending")) == 2)
        d.say("suspend 1")
        reason = ("squeue", "-h", "-r", "-o", "%r")
        wait_until(lambda: rest.new or "Held" in rest.cluster.tool(*reason))
        rest.cluster.tool("scontrol", "release", min(job[0] for job in rest.jobs("pending")))
        rest.cluster.tool("scontrol", "update", "PartitionName=shut", "State=UP")
        d.wait("ended 2 code=0")
        d.wait("running 1")

        def quiet():
            """nothing is written for a while"""
            before = len(d.file(1, "beats"))
            time.sleep(0.3)
            return len(d.file(1, "beats")) == before

        wait_until(quiet)
        d.say("resume 1")
        wait_until(lambda: not quiet())
        with open(d.path(1, "go"), "w", encoding="utf-8"):
            pass
        d.wait("ended 1 code=0")
    finally:
        rest.cluster.tool("scontrol", "update", "PartitionName=shut", "State=DOWN")
        d.stop("quit all")


def test_members_of_an_array_together(request, rest, box):
    """They are held, released, stopped and ended as one sees it: those that are meant, and no others."""
    place = Place(request.config.getoption("--build"), box, "slurm", {**rest.settings, "partition": "shut"}, rest)
    d = place.start()

    def reasons():
        """How many wait, and how many of them are held."""
        out = rest.cluster.tool("squeue", "-h", "-r", "-t", "pending", "-o", "%r").split()
        return len(out), sum("Held" in reason for reason in out)

    def known():
        """All submissions' numbers are in the journal."""
        with open(f"{d.folder}/batch.q/journal", encoding="utf-8") as f:
            words = [line.split()[0] for line in f]
        return words.count("native") == words.count("count") > 0

    try:
        d.say("\n".join(f"submit {task} while :; do sleep 0.1; done" for task in range(40)))
        wait_until(lambda: reasons() == (40, 0) and known())
        if not rest.new:  # whose API cannot hold members
            d.say("\n".join(f"hold {task}" for task in range(0, 40, 3)))
            wait_until(lambda: reasons() == (40, 14))
            d.say("\n".join(f"release {task}" for task in range(0, 40, 6)))
            wait_until(lambda: reasons() == (40, 7))
        d.say("\n".join(f"kill {task}" for task in range(5, 40)))
        wait_until(lambda: reasons() == (5, 0 if rest.new else 1))
        assert "failed" not in "\n".join(d.lines())
    finally:
        d.stop("quit all")
    wait_until(lambda: not rest.jobs("pending"))


def unreachable(instance):
    """Why its queue is, or nothing."""
    return next((q["unreachable"] for a in instance.agents("connected") for q in a["queues"] if q.get("unreachable")), None)


def test_tokens(instance, rest):
    """One that is outdated, of somebody else, or none: the queue says which file; with the next good one all goes on."""
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(rest))
    agents.offering(instance)
    flag = os.path.join(instance.work, "flag")
    request = instance.submit(sh(f"while [ ! -e {flag} ]; do sleep 0.05; done"))
    instance.wait_state(f"{request}.0", "running")
    try:
        rest.token(seconds=1)
        wait_until(lambda: "is outdated" in (unreachable(instance) or ""))
        assert rest.token_file in unreachable(instance)
        rest.token()
        wait_until(lambda: not unreachable(instance))
        rest.token(user="games")
        wait_until(lambda: "is of games" in (unreachable(instance) or ""))
        os.remove(rest.token_file)
        instance.write("flag", "")
    finally:
        rest.token()
    instance.wait(request)
    assert instance.history(request)[0]["starts"] == 1
    with open(rest.token_file, encoding="utf-8") as f:
        assert f.read().split("=")[1].strip() not in instance.logs()


def test_unix_socket(request, rest, build):
    """slurmrestd runs what it is given by its own user as that user: an agent of his has a queue there."""
    ids = pwd.getpwnam("games")
    folder = tempfile.mkdtemp(prefix="drover-rest-box-")
    plain = Rest(rest.cluster, plain=True)
    opened = [request.config.drover_tmp, os.path.dirname(rest.cluster.dir)]  # munge's socket is beneath
    modes = [os.stat(path).st_mode for path in opened]
    for path in opened:
        os.chmod(path, 0o711)
    try:
        os.mkdir(f"{folder}/dir")
        for path in (folder, f"{folder}/dir"):
            os.chown(path, ids.pw_uid, ids.pw_gid)
        plain.start()
        place = Place(build, folder, "slurm", plain.settings, rest)
        place.prefix = ["setpriv", "--reuid", "games", "--regid", "games", "--clear-groups"]
        d = place.start()
        d.say("submit 1 id -un >who")
        d.wait("ended 1 code=0")
        assert d.file(1, "who") == "games\n"
        d.stop("quit all")
    finally:
        plain.stop()
        for path, mode in zip(opened, modes):
            os.chmod(path, mode)
        shutil.rmtree(folder, ignore_errors=True)


def test_settings(instance, rest):
    """What cannot be is refused at the start, with a sentence."""
    for words, said in (({"rest": "https://head:6820"}, "http://HOST:PORT"), ({"rest": "http://head:6820"}, "needs a token_file"),
                        ({"token_file": "/x"}, "for slurmrestd")):
        rest_of = type("Words", (), {"name": "q", "runner": "slurm", "settings": words})
        path = instance.write("agent.yaml", f"server: 127.0.0.1:1\ndir: {instance.base}/a\n{agents.batch_queues(rest_of)}")
        p = subprocess.run([instance.program("drover-agent"), "--config", path, "--token", "x"], env=instance.env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90, check=False)
        assert p.returncode != 0 and said in p.stdout
