"""Machines that are network namespaces, on a switch of their own with links as thin as they are asked for. Nothing
leaves them: the switch has no other port."""
import contextlib
import json
import os
import subprocess


def ip(*args):
    p = subprocess.run(["ip", *args], capture_output=True, text=True, check=False)
    assert p.returncode == 0, f"ip {' '.join(args)}: {p.stderr}"
    return p.stdout


class Net:
    def __init__(self):
        self.name, self.hosts = f"drover{os.getpid()}", {}
        self.switch = self.name + "-sw"
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "sw", "type", "bridge")
        ip("-n", self.switch, "link", "set", "sw", "up")

    def add(self, host, rate=None):
        """A machine; what comes to it comes at `rate` (tc's way to write it: 20mbit). Returns its address."""
        number = len(self.hosts) + 1
        space, address = f"{self.name}-{host}", f"10.77.0.{number}"
        self.hosts[host] = space
        ip("netns", "add", space)
        ip("-n", self.switch, "link", "add", f"p{number}", "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("-n", self.switch, "link", "set", f"p{number}", "master", "sw", "up")
        ip("-n", space, "addr", "add", address + "/24", "dev", "eth0")
        for link in ("eth0", "lo"):
            ip("-n", space, "link", "set", link, "up")
        if rate:
            subprocess.run(["tc", "-n", self.switch, "qdisc", "add", "dev", f"p{number}", "root", "tbf", "rate", rate,
                            "burst", "32kb", "latency", "100ms"], check=True)
        return address

    def inside(self, host):
        """What goes before a command to run it there. (`ip netns exec` would hide the control groups.)"""
        return ["nsenter", f"--net=/run/netns/{self.hosts[host]}"]

    def on(self, host):
        """Likewise, on a machine whose name is that of the host, and which knows those of the others."""
        named = 'hostname $0; mount --bind "$1" /etc/hosts; shift; exec "$@"'
        return [*self.inside(host), "unshare", "--uts", "--mount", "sh", "-c", named, host, self.names()]

    def names(self):
        """A file like /etc/hosts."""
        path = f"/tmp/{self.name}.hosts"
        with open(path, "w", encoding="utf-8") as f:
            f.write("127.0.0.1 localhost\n" + "".join(f"10.77.0.{n} {host}\n" for n, host in enumerate(self.hosts, 1)))
        return path

    def received(self, host):
        """Bytes that have come to it."""
        link = json.loads(ip("-n", self.hosts[host], "-s", "-j", "link", "show", "eth0"))[0]
        return link["stats64"]["rx"]["bytes"]

    def remove(self):
        for space in [*self.hosts.values(), self.switch]:
            subprocess.run(["ip", "netns", "del", space], check=False)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/tmp/{self.name}.hosts")
