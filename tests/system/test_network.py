"""Bad networks between an agent and its server: one way is lost, a peer vanishes without a word, only small packets pass. Machines
are network namespaces. No job is lost, none runs twice at a time, and nobody waits for a peer that is not there any more."""
import hashlib
import os
import signal
import subprocess

import pytest

from drover import Daemon, sh, wait_until
from netns import Net
from test_asleep import in_turn, whole
from test_bad_days import passes
from test_outlive import beating, runs

PORT = 7470


class Wires:
    """A server on the machine `srv`, and agents on machines of their own."""

    def __init__(self, instance):
        self.instance, self.net = instance, Net()
        self.address, self.addresses = self.net.add("srv"), {}

    def server(self, lease):
        config = os.path.join(self.instance.base, "droverd.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"lease: {lease}\n")
        argv = [*self.net.inside("srv"), self.instance.program("droverd"), "--dir", self.instance.dir, "--config", config,
                "--listen", f"{self.address}:{PORT}"]
        one = Daemon("droverd", argv, os.path.join(self.instance.base, "droverd.log"), self.instance.env, self.instance.base)
        self.instance.daemons.append(one)

        def ready():
            """the server has written server.json"""
            return os.path.exists(f"{self.instance.dir}/server.json") and self.instance.server_pid() == one.pid

        wait_until(ready)
        return one

    def agent(self, name, *more):
        """On the machine of its name, which is made with the first one."""
        folder = os.path.join(self.instance.base, name)
        if name not in self.net.hosts:
            self.addresses[name] = self.net.add(name)
            more += ("--token", self.instance.json("token", "agent", "--name", name)["token"])
        argv = [*self.net.inside(name), self.instance.program("drover-agent"), "--dir", folder, "--name", name, "--cpus", "1",
                "--server", f"{self.address}:{PORT}", *more]
        one = Daemon("drover-agent", argv, folder + ".log", self.instance.env, self.instance.base)
        self.instance.daemons.append(one)
        return one

    def connected(self, *names):
        wait_until(lambda: sorted(a["name"] for a in self.instance.agents("connected")) == sorted(names))

    def job(self):
        """A job that beats until the flag is there."""
        self.instance.flag = os.path.join(self.instance.work, "flag")
        job = f"{self.instance.submit(sh(beating(self.instance, self.instance.flag), request_cpus='1', output='out'))}.0"
        wait_until(lambda: self.instance.exists("log") and runs(self.instance))
        self.instance.wait_state(job, "running")
        return job

    def lost(self, host, *which):
        """What comes to the machine (and is so) is lost, from now on. `which` are iptables' words."""
        subprocess.run([*self.net.inside(host), "iptables", "-A", "INPUT", "-i", "eth0", *which, "-j", "DROP"], check=True)

    def mended(self, *hosts):
        for host in hosts:
            subprocess.run([*self.net.inside(host), "iptables", "-F", "INPUT"], check=True)


@pytest.fixture
def wires(instance):
    one = Wires(instance)
    try:
        yield one
        instance.stop()
    finally:
        one.net.remove()


def ways(long=None):
    """Which way is lost; one of them in the long form only."""
    return pytest.mark.parametrize("host", [pytest.param(host, id=name, marks=[pytest.mark.long] if host == long else [])
                                            for host, name in (("srv", "to_the_server"), ("n1", "to_the_agent"))])


@ways()
def test_one_way_is_lost_for_less_than_a_lease(wires, host):
    """What is said in time after it is as if nothing had been: the job goes on, and has one start."""
    wires.server("60s")
    agent = wires.agent("n1")
    wires.connected("n1")
    job = wires.job()
    wires.lost(host)
    passes(4)
    wires.mended(host)
    assert len(whole(wires.instance, job)) == 1, agent.output()
    assert wires.instance.history(job.split(".")[0])[0]["starts"] == 1


@ways(long="srv")
def test_one_way_is_lost_for_longer_than_a_lease(wires, host):
    """The agent ends its job before the server gives it to another one, whichever of them hears the other."""
    wires.server("3s")
    agent = wires.agent("n1")
    wires.connected("n1")
    job = wires.job()
    wires.agent("n2")
    wires.connected("n1", "n2")
    wires.lost(host, *(("-s", wires.addresses["n1"]) if host == "srv" else ()))
    wait_until(lambda: len(runs(wires.instance)[job]) == 2)
    in_turn(wires.instance, job)
    wires.mended(host)
    wires.connected("n1", "n2")
    assert len(whole(wires.instance, job)) == 2
    row = wires.instance.history(job.split(".")[0])[0]
    assert (row["agent"], row["starts"]) == ("n2", 2)
    assert agent.running()


def test_the_agent_vanishes_and_comes_again(wires):
    """Killed with its network, so that nobody hears of it: the server still holds the old connection when the next agent of the same
    folder is there, and believes that one. The job, which the shepherd has kept, has one start."""
    wires.server("5m")
    agent = wires.agent("n1")
    wires.connected("n1")
    job = wires.job()
    wires.lost("srv")
    agent.kill()
    passes(1)
    wires.mended("srv")
    agent = wires.agent("n1")
    wait_until(lambda: "msg=connected" in agent.output())
    assert len(whole(wires.instance, job)) == 1
    assert wires.instance.history(job.split(".")[0])[0]["starts"] == 1


def test_the_server_vanishes_and_comes_again(wires):
    """Killed with its network: the agent holds a connection to nobody, and finds the next server. The job has one start."""
    wires.server("30s")
    agent = wires.agent("n1")
    wires.connected("n1")
    job = wires.job()
    wires.lost("n1")
    wires.instance.kill_server(signal.SIGKILL)
    wires.server("30s")
    passes(1)
    wires.mended("n1")
    wires.connected("n1")
    assert len(whole(wires.instance, job)) == 1, agent.output()
    assert wires.instance.history(job.split(".")[0])[0]["starts"] == 1


def moves_files(wires):
    """Three megabytes to a job, and back."""
    data = os.urandom(3 << 20)
    with open(os.path.join(wires.instance.work, "in"), "wb") as f:
        f.write(data)
    return data, wires.instance.submit(sh("cp in made; sha256sum in", transfer_input_files="in", should_transfer_files="YES",
                                          transfer_output_files="made", output="out"))


def came_back(wires, data, request):
    wires.instance.wait(request)
    wires.instance.cli("get", str(request), "-o", "got")
    with open(os.path.join(wires.instance.work, "got", "made"), "rb") as f:
        assert f.read() == data
    assert wires.instance.read("got/out").split()[0] == hashlib.sha256(data).hexdigest()
    assert wires.instance.history(request)[0]["starts"] == 1


def test_a_small_mtu(wires):
    """Joining, jobs and files pass where packets have 576 bytes at most."""
    wires.server("60s")
    wires.net.add("n1")
    subprocess.run([*wires.net.inside("n1"), "ip", "link", "set", "eth0", "mtu", "576"], check=True)
    wires.agent("n1", "--token", wires.instance.json("token", "agent", "--name", "n1")["token"])
    wires.connected("n1")
    came_back(wires, *moves_files(wires))


@ways(long="n1")
def test_only_small_packets_pass_for_a_while(wires, host):
    """As behind a tunnel whose messages about its MTU are lost: handshakes and files stand still, renewals may pass. Mended, all goes
    on, and the agent that could not join joins."""
    wires.server("60s")
    agent = wires.agent("n1")
    wires.connected("n1")
    wires.lost(host, "-m", "length", "--length", "600:")
    data, request = moves_files(wires)
    other = wires.agent("n2")
    if host == "n1":
        wires.lost("n2", "-m", "length", "--length", "600:")
    wait_until(lambda: "no session with the server" in other.output())
    assert wires.instance.job(f"{request}.0")["state"] != "completed"
    wires.mended(*wires.net.hosts)
    wires.connected("n1", "n2")
    came_back(wires, data, request)
    assert agent.running() and other.running()
