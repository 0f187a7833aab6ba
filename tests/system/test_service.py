"""What the daemons tell the service manager that started them: sd_notify(3)."""
import os
import signal
import socket

import agents

LIMIT = 60


class Manager:
    """A socket in the place of systemd's."""

    def __init__(self, instance):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(LIMIT)
        path = f"{instance.base}/manager"
        self.socket.bind(path)
        instance.env["NOTIFY_SOCKET"] = path

    def hears(self, word):
        """The next message but those of the watchdog begins with it."""
        while (said := self.socket.recv(1000).decode()) == "WATCHDOG=1":
            pass
        assert said.startswith(word), said


def test_the_server_says_when_it_serves(instance):
    """Ready: a client that is started then needs no second try. Then reading again, with good settings and bad ones, and stopping."""
    manager = Manager(instance)
    path = instance.write("droverd.yaml", "operators: []\n")
    server = instance.server("--config", path)
    manager.hears("READY=1")
    assert instance.cli("agents").code == 0
    for text in ("log_level: debug\n", "surprise: [\n"):
        instance.write("droverd.yaml", text)
        server.process.send_signal(signal.SIGHUP)
        manager.hears("RELOADING=1\nMONOTONIC_USEC=")
        manager.hears("READY=1")
    server.process.send_signal(signal.SIGTERM)
    manager.hears("STOPPING=1")
    assert server.process.wait(LIMIT) == 0


def test_a_server_that_stands_still_is_noticed(instance):
    """The watchdog hears of it while its loop turns, and no more when it does not."""
    manager = Manager(instance)
    instance.env["WATCHDOG_USEC"] = "200000"
    server = instance.server()
    manager.hears("READY=1")
    for _ in range(3):
        assert manager.socket.recv(1000) == b"WATCHDOG=1"
    server.process.send_signal(signal.SIGSTOP)
    manager.socket.settimeout(2)  # ten times what the watchdog would wait
    silent = False
    try:
        for _ in range(50):  # what was said before
            manager.socket.recv(1000)
    except TimeoutError:
        silent = True
    server.process.send_signal(signal.SIGCONT)
    assert silent
    manager.socket.settimeout(LIMIT)
    assert manager.socket.recv(1000) == b"WATCHDOG=1"


def test_an_agent_and_its_jobs(instance):
    """The agent says that it is ready and that it stops; its jobs, which could say so in its name, do not know where."""
    instance.server()
    manager = Manager(instance)
    agent = agents.start(instance, "queues:\n  - name: here\n    cpus: 1\n")
    manager.hears("READY=1")
    agents.offering(instance)
    instance.run("executable = /usr/bin/env\noutput = env\nqueue\n")
    assert "NOTIFY_SOCKET" not in instance.read("env")
    agent.process.send_signal(signal.SIGTERM)
    manager.hears("STOPPING=1")
    assert agent.process.wait(LIMIT) == 0


def test_the_units_wait_for_it(instance):
    for unit in ("droverd.service", "drover-agent.service"):
        with open(os.path.join(instance.build, "dist", unit), encoding="utf-8") as f:
            assert "Type=notify\n" in f.read()
