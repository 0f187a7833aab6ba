"""A login node: an sshd of this machine, into which a key lets who runs the tests. What is copied there is beneath a folder of its own."""
import contextlib
import os
import signal
import subprocess

from guarded import Sftp
from drover import processes, wait_until


class LoginNode(Sftp):
    def __init__(self, folder):
        self.base = folder
        super().__init__(folder)
        self.folder = os.path.join(folder, "scratch")
        os.mkdir(self.folder)
        known = os.path.join(folder, "known_hosts")
        with open(known, "w", encoding="ascii") as f:
            f.write(self.known_host)
        self.config = os.path.join(folder, "ssh_config")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"Host login\n HostName 127.0.0.1\n Port {self.known_host.split(':')[1].split()[0]}\n User root\n IdentityFile {self.key}\n"
                    f" IdentitiesOnly yes\n UserKnownHostsFile {known}\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n")
        os.chmod(self.key, 0o600)

    def settings(self, system):
        """Of a queue of this batch system, whose commands are run here."""
        return {**system.settings, "ssh": "login", "ssh_folder": self.folder, "ssh_config": self.config}

    def answers(self):
        return subprocess.run(["ssh", "-F", self.config, "-oBatchMode=yes", "login", "true"], check=False, stdin=subprocess.DEVNULL).returncode == 0

    def wait(self, reached=None):
        wait_until(reached or self.answers)

    def cut(self):
        """Ends the connections that there are; those who come again find nobody."""
        self.stop()
        for pid in processes(self.base, "sshd"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def with_tools(self, folder):
        """Sessions find these programs first, those of a connection that is kept, too."""
        self.cut()
        for pid in processes(os.path.dirname(self.base), "ssh"):  # a client that keeps a connection shows its socket only
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with open(os.path.join(self.base, "sshd_config"), "a", encoding="utf-8") as f:
            f.write(f"SetEnv PATH={folder}:{os.environ['PATH']}\n")
        self.start()
        self.wait()

    def left(self):
        """Names of sandboxes, scripts and logs that are still there."""
        return [name for top, _, names in os.walk(self.folder) for name in names if "/jobs/" in top or name.startswith("drover-")]
