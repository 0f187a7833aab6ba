"""Two servers that mirror each other, and the wire between them, which can be cut."""
import os
import shutil
import socket
import threading

from drover import Failed, Instance, free_port, wait_until


class Wire:
    """Forwards connections to a port, or to a socket's path, until it is cut: then it holds what comes, and whoever speaks hears
    nothing."""

    def __init__(self, to):
        self.to, self.is_cut, self.ended = to, threading.Event(), False
        self.cut_behind = None  # bytes of one connection
        self.sockets, self.port = [], 0
        self.listen()

    def listen(self):
        """At the port that it had."""
        self.server = socket.create_server(("127.0.0.1", self.port))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.server,), daemon=True).start()

    def refuse(self):
        """Connections are refused, as by a machine on which nobody listens."""
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def _accept(self, server):
        while not self.ended:
            try:
                near, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near):
        self.sockets.append(near)
        self._hold()
        try:
            far = self._dial()
        except OSError:
            near.close()
            return
        self.sockets.append(far)
        for source, to in ((near, far), (far, near)):
            threading.Thread(target=self._forward, args=(source, to), daemon=True).start()

    def _dial(self):
        if isinstance(self.to, int):
            return socket.create_connection(("127.0.0.1", self.to))
        far = socket.socket(socket.AF_UNIX)
        far.connect(self.to)
        return far

    def _hold(self):
        while self.is_cut.is_set() and not self.ended:
            threading.Event().wait(0.02)

    def _forward(self, source, to):
        try:
            passed = 0
            while data := source.recv(65536):
                passed += len(data)
                if self.cut_behind and passed > self.cut_behind:
                    self.cut()
                self._hold()
                to.sendall(data)
        except OSError:
            pass
        for one in (source, to):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self, is_cut=True):
        if is_cut:
            self.is_cut.set()
        else:
            self.is_cut.clear()

    def end(self):
        self.ended = True
        self.server.close()
        for one in self.sockets:
            one.close()


class Pair:
    """`first` is the instance of the test; `second` has a folder beside it. Both are started by `start`."""

    def __init__(self, instance, build, lease="4s", more=""):
        self.first, self.second = instance, Instance(build, os.path.join(instance.base, "second"))
        self.second.work = instance.work
        ports = [free_port(), free_port()]
        self.wires = [Wire(port) for port in ports]  # to the first, to the second
        self.settings = []
        for i, name in enumerate(("first", "second")):
            self.settings.append(instance.write(f"{name}.yaml", f"""
mirror:
  listen: 127.0.0.1:{ports[i]}
  peer: {self.wires[1 - i].address}
  lease: {lease}
{more}"""))
        os.makedirs(self.second.dir, mode=0o700)

    def both(self):
        return (self.first, self.second)

    def start(self, which):
        """Starts one of the two, without waiting for anything."""
        one = self.both()[which]
        return one.start("droverd", "--dir", one.dir, "--config", self.settings[which])

    def copy_keys(self):
        shutil.copytree(os.path.join(self.first.dir, "ca"), os.path.join(self.second.dir, "ca"))
        shutil.copy(os.path.join(self.first.dir, "credential.key"), self.second.dir)

    def up(self):
        """The first leads and the second has all."""
        daemons = [self.start(0)]
        self.leads(0)
        self.copy_keys()
        daemons.append(self.start(1))
        self.mirrored()
        return daemons

    @staticmethod
    def status_of(one):
        """What a server says of itself; nothing while it cannot be asked."""
        try:
            return one.json("server", "status")
        except Failed:
            return {}

    def leads(self, which):
        one = self.both()[which]

        def leads():
            """it has written server.json"""
            assert any(d.name == "droverd" and d.running() for d in one.daemons), one.daemons[-1].output()
            return os.path.exists(os.path.join(one.dir, "server.json"))

        wait_until(leads)

    def mirrored(self, follower=1):
        """The one that follows has all that the leader has."""
        path = os.path.join(self.both()[follower].dir, "mirror")

        def joined():
            """the follower's file says that it is joined"""
            try:
                with open(path, encoding="utf-8") as f:
                    return f.read().split()[::3] == ["follows", "joined"]
            except OSError:
                return False

        wait_until(joined)

    def agent(self, name="n1"):
        token = self.first.json("token", "agent", "--name", name, "--uses", "1")["token"]
        addresses = [arg for one in self.both() for arg in ("--server", f"unix:{one.dir}/agents.sock")]
        daemon = self.first.start("drover-agent", "--dir", os.path.join(self.first.base, f"agent-{name}"), *addresses, "--token", token)
        wait_until(lambda: self.first.agents("connected"))
        return daemon

    def end(self):
        for daemon in reversed(self.second.daemons):
            daemon.stop()
        for wire in self.wires:
            wire.end()
