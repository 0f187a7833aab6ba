"""What a job's program asks of its server while it runs: files of the submit's folder, attributes, lines in its log; and what it must not get."""
import base64
import json
import os
import socket
import time

import pytest

import agents
from drover import sh, wait_until
from users import ONE, TWO, Site

ELSEWHERE = "filesystem_domain: elsewhere.example\ncpus: 2\n"


def program(instance, script, **more):
    """A job whose shell has `chirp` and `condor_chirp`."""
    folder = os.path.dirname(instance.program("drover"))
    script = script.strip().replace("\n", "; ")
    return sh(f'chirp() {{ {folder}/drover chirp "$@"; }}; condor_chirp() {{ {folder}/condor/condor_chirp "$@"; }}; {script}',
              **{"want_io_proxy": "true", "output": "out", "error": "err", **more})


def paused(instance, script="", **more):
    """A job that runs until a file *go* is there, with its socket."""
    request = instance.submit(program(instance, f"echo $DROVER_CHIRP >socket; {script} until [ -e {instance.work}/go ]; do sleep 0.05; done", **more))
    wait_until(lambda: instance.written("socket"))
    instance.wait_state(f"{request}.0", "running")
    return request, instance.read("socket").strip()


class Peer:
    """A program that speaks to the socket, and need not mean well."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")

    def send(self, line):
        self.socket.sendall(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")

    def ask(self, line):
        self.send(line)
        answer = self.lines.readline()
        return json.loads(answer) if answer else None

    def close(self):
        self.lines.close()
        self.socket.close()


def welcome(path):
    """The socket takes one more peer."""
    peer = Peer(path)
    try:
        if peer.ask({"op": "owner"}):
            return peer
    except OSError:
        pass
    peer.close()
    return None


FILES = """
set -e
chirp fetch given - | tr a-z A-Z >mine
condor_chirp put mine taken
condor_chirp put -mode wct -perm 600 mine private
chirp put --mode wac mine private
condor_chirp read -offset 2 given 3 >part; echo >>part
condor_chirp read -stride 2 4 given 6 >>part; echo >>part
printf xyz >piece; condor_chirp write -offset 4 taken piece 3
chirp mkdir folder; chirp put mine folder/a; chirp rename folder/a folder/b
chirp getdir folder >>part; chirp stat folder/b | head -1 >>part
chirp truncate folder/b 2; chirp chmod folder/b 640; chirp utime folder/b 1 1000
chirp remove private
if chirp fetch nothing x 2>>part; then exit 9; fi
chirp whoami >>part
chirp put part part
"""


def test_files_of_the_submit(drover):
    drover.write("given", "0123456789abcdefgh")
    drover.run(program(drover, FILES, initialdir=drover.work, should_transfer_files="yes", transfer_output_files='""'))
    assert drover.read("taken") == "0123xyz789ABCDEFGH"
    assert drover.read("part").splitlines() == ["234", "014589", "b", "size: 18", "drover: nothing: No such file or directory", drover.history()[0]["owner"]]
    st = os.stat(os.path.join(drover.work, "folder", "b"))
    assert (st.st_size, st.st_mode & 0o777, st.st_mtime) == (2, 0o640, 1000)
    assert not [name for name in os.listdir(drover.work) if "drover-" in name or name == "private"]


def test_where_the_folder_is_not_seen(instance):
    """Another agent sees it, and touches the file."""
    instance.server()
    agents.start(instance, "cpus: 1\nattributes: 'Sees = true'\n", "near")
    agents.start(instance, ELSEWHERE + "attributes: 'Sees = false'\n", "far")
    wait_until(lambda: len(instance.agents("connected")) == 2)
    big = os.urandom(1 << 20)
    with open(os.path.join(instance.work, "big"), "wb") as f:
        f.write(big)
    request = instance.run(program(instance, "set -e; chirp fetch big b; chirp put b copy; chirp set_job_attr Far 1", requirements="Sees == false",
                                   transfer_input_files=""))
    with open(os.path.join(instance.work, "copy"), "rb") as f:
        assert f.read() == big
    assert instance.json("history", "-c", "Far == 1")["jobs"]


def test_attributes_and_lines(instance):
    """They are in the ad, its policies, the log and history; a server that is killed has them still."""
    instance.server()
    agents.start(instance, "cpus: 1\n")
    request, path = paused(instance, "chirp set_job_attr Progress 10; condor_chirp set_job_attr_delayed Late 1; condor_chirp set_job_attr_delayed Late 2;"
                           "condor_chirp ulog 'half of it'; condor_chirp get_job_attr ClusterId >id;", log="log",
                           on_exit_hold="Progress == 11 && Late == 2", **{"+Before": '"x"'})
    wait_until(lambda: instance.written("id"))
    peer = Peer(path)
    assert peer.ask({"op": "get_attribute", "name": "progress"})["data"] == "MTA="
    assert peer.ask({"op": "set_attribute", "name": "Progress", "data": "MTE="}) == {"data": "", "size": 0, "mode": 0, "changed": 0}
    instance.kill_server()
    assert peer.ask({"op": "get_attribute", "name": "Late"})["data"] == "Mg=="  # the agent has it
    instance.server()
    wait_until(lambda: "data" in (peer.ask({"op": "get_attribute", "name": "Before"}) or {}))
    assert peer.ask({"op": "get_attribute", "name": "Progress"})["data"] == "MTE="
    peer.close()
    assert instance.json("queue", "--all", "-c", "Progress == 11")["jobs"]
    instance.write("go", "")
    instance.wait_state(f"{request}.0", "held")
    wait_until(lambda: instance.exists("log") and " half of it\n..." in instance.read("log"))
    assert "008 (" in instance.read("log")
    assert instance.read("id") == f"{request}\n"
    instance.cli("rm", str(request))
    assert instance.json("history", "-c", "Late == 2")["jobs"]


REFUSED = [
    ({"name": "Requirements", "data": "dHJ1ZQ=="}, "decides by it"),
    ({"name": "owner", "data": "ImV2ZSI="}, "decides by it"),
    ({"name": "NotifyUser", "data": "ImV2ZSI="}, "cannot be set"),
    ({"name": "DroverX", "data": "MQ=="}, "cannot be set"),
    ({"name": "WantIOProxy", "data": "MQ=="}, "decides by it"),
    ({"name": "a b", "data": "MQ=="}, "letters, digits"),
    ({"name": "X" * 200, "data": "MQ=="}, "letters, digits"),
    ({"name": "X", "data": "WSArIDE="}, "a value is a number"),  # Y + 1
    ({"name": "X", "data": "W0E9MV0="}, "a value is a number"),  # [A=1]
    ({"name": "X", "data": "MTEx" * 2000}, "at most 4096 bytes"),
]


def test_attributes_that_a_job_may_not_set(drover):
    _, path = paused(drover)
    peer = Peer(path)
    for change, words in REFUSED:
        said = peer.ask({"op": "set_attribute", **change})
        assert said.get("error") and words in said["text"], (change, said)
    for n in range(100):  # what is kept of one job is bounded
        said = peer.ask({"op": "set_attribute", "name": f"A{n}", "data": "ImFi" + "YWFh" * 1000 + "Ig=="})
        if "error" in said:
            break
    assert "at most 16 KiB" in said["text"] and n < 10
    peer.close()
    drover.write("go", "")


def test_names_that_lead_elsewhere(drover):
    """Nothing above the folder of the submit, nothing of Drover's own, and nothing that is no file."""
    work, secret = drover.work, os.path.join(drover.base, "secret")
    with open(secret, "w", encoding="ascii") as f:
        f.write("secret")
    os.symlink(secret, os.path.join(work, "link"))
    os.symlink(drover.base, os.path.join(work, "up"))
    os.mkfifo(os.path.join(work, "pipe"))
    _, path = paused(drover)
    peer = Peer(path)
    assert base64.b64decode(peer.ask({"op": "read", "name": f"{work}/socket", "length": 1000})["data"]).decode() == path + "\n"
    for name in ("../secret", secret, "link", "up/secret", f"{work}/../secret", "x/../../secret", "pipe", "/etc/passwd", "/", f"{work}2/x", "",
                 "a\0b", "/proc/self/environ", f"{drover.dir}/agent/agent.key"):
        for op in ("read", "write", "truncate", "mode", "time", "remove_folder"):
            said = peer.ask({"op": op, "name": name, "length": 10, "data": "eA==", "flags": 3, "mode": 0o666})
            assert said.get("error"), (op, name, said)
        assert peer.ask({"op": "rename", "name": "socket", "data": base64.b64encode(name.encode()).decode()}).get("error") \
            or name in ("link", "pipe"), name
        if not os.path.exists(os.path.join(work, "socket")):
            drover.write("socket", "again")
    with open(secret, encoding="ascii") as f:
        assert f.read() == "secret"
    peer.close()
    drover.write("go", "")


def test_names_with_a_dot(drover):
    """The folder of a submit may be its owner's home: an agent, or a job in a container, would else read keys there and write .bashrc."""
    os.makedirs(f"{drover.work}/.ssh")
    drover.write(".ssh/id", "key")
    drover.write("plain", "plain")
    os.symlink(".ssh", f"{drover.work}/way")
    os.symlink(".ssh/id", f"{drover.work}/key")
    _, path = paused(drover)
    peer = Peer(path)
    data = base64.b64encode(b"evil").decode()
    for call in ({"op": "write", "name": ".bashrc", "data": data, "flags": 1}, {"op": "read", "name": ".ssh/id", "length": 9}, {"op": "read", "name": "way/id", "length": 9},
                 {"op": "read", "name": "key", "length": 9}, {"op": "list", "name": ".ssh"}, {"op": "list", "name": "way"}, {"op": "stat", "name": ".ssh/id"},
                 {"op": "write", "name": "way/authorized_keys", "data": data, "flags": 1}, {"op": "make_folder", "name": ".config"}, {"op": "remove", "name": "way/id"},
                 {"op": "rename", "name": "plain", "data": base64.b64encode(b".profile").decode()}, {"op": "mode", "name": ".ssh/id", "mode": 0o777},
                 {"op": "rename", "name": "plain", "data": base64.b64encode(b"way/rc").decode()}, {"op": "truncate", "name": f"{drover.work}/./.ssh/id"}):
        said = peer.ask(call)
        assert said.get("error"), (call, said)
    assert "data" in peer.ask({"op": "read", "name": "plain", "length": 9})
    peer.close()
    drover.write("go", "")
    assert drover.read(".ssh/id") == "key" and os.listdir(f"{drover.work}/.ssh") == ["id"]
    assert {name for name in os.listdir(drover.work) if name.startswith(".")} == {".ssh"}


def test_the_folders_of_drover_are_hidden(instance):
    """Also where the folder of the submit has them in it."""
    instance.up()
    request = instance.submit(program(instance, f"chirp fetch {os.path.basename(instance.dir)}/agent/agent.key - || chirp getdir {os.path.basename(instance.dir)}/agent",
                                      initialdir=os.path.dirname(instance.dir), output=f"{instance.work}/out", error=f"{instance.work}/err"))
    instance.wait(request, code=1)
    assert "KEY" not in instance.read("out") and instance.read("err").count("Permission denied") == 2


GARBAGE = [b"\n", b"{}\n", b"[1]\n", b"nonsense\n", b'{"op":7}\n', b'{"op":"read","name":7}\n', b'{"op":"read","name":"a","offset":-1}\n',
           b'{"op":"read","name":"a","length":99999999}\n', b'{"op":"write","name":"a","data":"!"}\n', b'{"op":"chown","name":"a"}\n',
           b'{"op":"set_attribute_later","name":"","data":""}\n', b"\xff\xfe\n", b'{"op":"log","data":7}\n', b"[" * 5000 + b"\n"]


def test_a_peer_that_means_harm(instance):
    """Garbage is refused by words, lines without end and too many peers are cut off, a flood is slowed down; other jobs do not notice."""
    instance.up()
    _, path = paused(instance, log="log")
    for text in GARBAGE:
        peer = wait_until(lambda: welcome(path))
        peer.send(text)
        assert "error" in json.loads(peer.lines.readline()), text
        peer.close()
    peer = Peer(path)
    with pytest.raises(OSError):  # reset, or a broken pipe
        for _ in range(100):
            peer.send(b"x" * 65536)
        raise OSError if peer.lines.readline() == b"" else AssertionError
    many = [Peer(path) for _ in range(30)]
    answers = 0
    for one in many:
        try:
            one.send({"op": "owner"})
            answers += bool(one.lines.readline())
        except OSError:
            pass
    assert 1 <= answers <= 8
    for one in many:
        one.close()
    peer = wait_until(lambda: welcome(path))
    said = [peer.ask({"op": "log", "data": "bGluZQ=="}) for _ in range(300)]
    assert any("too fast" in one.get("text", "") for one in said) and "error" not in said[0]
    begun = time.monotonic()  # each of these costs the server's core
    peer.send(b'{"op": "get_attribute", "name": "Cmd"}\n' * 4000)
    taken = sum(b'"data"' in peer.lines.readline() for _ in range(4000))
    assert 500 <= taken <= 1001 + (time.monotonic() - begun) * 200
    os.unlink(path)  # the job's folder is its own
    assert "data" in peer.ask({"op": "owner"})
    instance.run(sh("true"))
    instance.write("go", "")


def test_calls_that_take_long(instance):
    """An attribute of a MiB with a macro is made for each call that asks for it. Its owner's jobs are refused then, for as long as they have taken
    more of the server's time than they may; calls that take no time are answered again."""
    instance.up()
    _, path = paused(instance, **{"+Large": '"' + "x" * 1000000 + '$(Process)"'})
    peer = Peer(path)
    said = [peer.ask({"op": "get_attribute", "name": "Large"}) for _ in range(300)]
    assert "data" in said[0] and any("more of the server's time than they may" in one.get("text", "") for one in said)
    wait_until(lambda: "data" in peer.ask({"op": "get_attribute", "name": "ProcId"}))
    peer.close()
    instance.write("go", "")


def test_who_has_not_asked_for_it(drover):
    """No socket without want_io_proxy; and nothing for another attempt than the agent's own."""
    drover.run(program(drover, "echo ${DROVER_CHIRP-none}; ls -a $DROVER_SCRATCH; chirp whoami; true", want_io_proxy="false"))
    assert drover.read("out").startswith("none\n") and "chirp" not in drover.read("out")
    assert "want_io_proxy" in drover.read("err")


def test_an_agent_that_is_killed(instance):
    """Its job has a socket again at the same place, whatever the job has put there meanwhile."""
    instance.server()
    agent = agents.start(instance, "cpus: 1\n")
    _, path = paused(instance)
    agent.kill()
    os.unlink(path)
    victim = os.path.join(instance.base, "victim")
    with open(victim, "w", encoding="ascii") as f:
        f.write("mine")
    os.chmod(victim, 0o600)
    os.symlink(victim, path)
    agents.start(instance, "cpus: 1\n")
    peer = wait_until(lambda: not os.path.islink(path) and Peer(path))
    wait_until(lambda: "data" in peer.ask({"op": "get_attribute", "name": "ClusterId"}))
    assert os.stat(victim).st_mode & 0o777 == 0o600
    peer.close()
    instance.write("go", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_as_the_jobs_user(instance):
    """Files are touched with the owner's rights, wherever his names lead; nobody else can use the socket."""
    site = Site(instance)
    site.agent()
    drover = os.path.join(site.bin, "drover")
    site.write(TWO, "private", "of two")
    os.chmod(os.path.join(site.home(TWO), "private"), 0o600)
    os.symlink(os.path.join(site.home(TWO), "private"), os.path.join(site.home(ONE), "link"))
    site.write(ONE, "in", "of one")
    site.run(ONE, f"{drover} chirp put {site.home(ONE)}/in taken && {drover} chirp set_job_attr X 1; {drover} chirp fetch link -; ls -ld . $DROVER_CHIRP", WantIOProxy=True)
    assert os.path.exists(os.path.join(site.home(ONE), "taken")), site.text(ONE, "err")
    assert site.text(ONE, "taken") == "of one" and "it is a link" in site.text(ONE, "err")
    assert site.owner(ONE, "taken")[0] == ONE.pw_uid
    assert site.text(ONE, "out").split()[-1].endswith(".drover_chirp")


def test_a_program_that_goes_on_calling(instance):
    """The socket is there for each step, and gone with the job."""
    instance.up()
    request, path = paused(instance)
    instance.write("go", "")
    instance.wait(request)
    assert not os.path.exists(path)
    with pytest.raises(OSError):
        Peer(path)


@pytest.mark.parametrize("seen", [True, False])
def test_output_while_it_is_printed(instance, seen):
    """In the file that the submit names, also where the job's agent does not see it; whole at the end."""
    instance.server()
    agents.start(instance, "cpus: 1\nattributes: 'Seen = true'\n", "near")
    agents.start(instance, ELSEWHERE + "attributes: 'Seen = false'\n", "far")
    wait_until(lambda: len(instance.agents("connected")) == 2)
    script = "seq 100000; echo wrong >&2; until [ -e {0}/go ]; do sleep 0.05; done; echo last"
    request = instance.submit(sh(script.format(instance.work), output="out", error="err", stream_output="true", stream_error="true",
                                 requirements=f"Seen == {str(seen).lower()}"))
    numbers = "".join(f"{n}\n" for n in range(1, 100001))
    wait_until(lambda: instance.exists("out") and instance.read("out") == numbers and instance.exists("err") and instance.read("err") == "wrong\n")
    assert instance.job(f"{request}.0")["state"] == "running"
    instance.write("go", "")
    instance.wait(request)
    if not seen:
        instance.cli("get", str(request))
    assert instance.read("out") == numbers + "last\n"


def test_output_of_jobs_that_end_while_it_is_brought(drover):
    """What is delivered is whole, whenever the program has ended; what stood in the file before is gone."""
    for n in range(12):
        drover.write(f"out{n}", "old\n" * 1000)
    request = drover.run(sh("seq 2000; sleep 0.$(Process); echo end", output="out$(Process)", stream_output="true", queue="queue 12"))
    for n in range(12):
        assert drover.read(f"out{n}") == "".join(f"{k}\n" for k in range(1, 2001)) + "end\n", (request, n)
