"""A disk that becomes read-only while daemons use it, as Linux makes it after an error: the server's folder, or the agent's. It is an
ext4 of its own in a file, whose error the kernel is told of (trigger_fs_error)."""
import contextlib
import http.client
import os
import subprocess
import tempfile
import uuid

import pytest

import agents
from drover import alive, sh, wait_until
from test_kill import FINAL, kill9


class Ext4:
    """The folder is a disk of its own."""

    def __init__(self, folder, image):
        self.folder, self.image = folder, image
        os.makedirs(folder, mode=0o700)
        with open(image, "wb") as f:
            f.truncate(512 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", image], check=True)
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", "loop,errors=remount-ro", self.image, self.folder], check=True)
        os.chmod(self.folder, 0o700)

    def fails(self):
        """From now on it is read-only, also for who has files open."""
        device = subprocess.run(["findmnt", "-n", "-o", "SOURCE", self.folder], check=True, capture_output=True, text=True).stdout.strip()
        with open(f"/sys/fs/ext4/{os.path.basename(device)}/trigger_fs_error", "w", encoding="ascii") as f:
            f.write("1")
        with pytest.raises(OSError):
            tempfile.mkstemp(dir=self.folder)

    def mended(self):
        """As after the machine's restart, with what had reached the disk. Nobody may have a file in it open. (The image is copied: a
        mount namespace of somebody else's may hold the old mount for a while.)"""
        wait_until(lambda: subprocess.run(["umount", self.folder], stderr=subprocess.DEVNULL, check=False).returncode == 0)
        subprocess.run(["cp", "--sparse=always", self.image, self.image + "m"], check=True)
        self.image += "m"
        done = subprocess.run(["e2fsck", "-fy", self.image], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stdout
        self.mount()

    def remove(self):
        subprocess.run(["umount", "-l", self.folder], stderr=subprocess.DEVNULL, check=False)


@pytest.fixture
def disks(instance):
    made = []

    def make(folder):
        made.append(Ext4(folder, os.path.join(instance.base, f"image{len(made)}")))
        return made[-1]

    yield make
    instance.stop()
    for one in made:
        one.remove()


def waits_for_go(instance):
    go = os.path.join(instance.work, "go")
    request = instance.submit(sh(f"echo s >>{instance.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 3", request_disk="0"))
    wait_until(lambda: instance.written("starts"))
    instance.wait_state(f"{request}.0", "running")
    return request


def ended_once(instance, request):
    assert [row["exit_code"] for row in instance.history(request)] == [3]
    assert [e["event"] for e in instance.events(f"{request}.0") if e["event"] in FINAL] == ["exited"]


def test_the_servers_disk_becomes_read_only(instance, disks):
    """Nothing is accepted that could not be kept: the server stops and says why, and does not begin on such a disk. What runs goes
    on; when the disk has been mended what was accepted is there, and the job that ended meanwhile has ended once."""
    disk = disks(instance.dir)
    server = instance.server()
    agent = agents.start(instance, "")
    running = waits_for_go(instance)
    held = instance.submit(sh("true", queue="queue 10"), "--hold")
    disk.fails()

    body = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": {"Cmd": '"/bin/true"', "Iwd": f'"{instance.work}"'}}]}
    with contextlib.suppress(OSError, http.client.HTTPException):  # it may end before it has answered
        assert instance.call("POST", "/v1/requests", body)[0] >= 500
    wait_until(lambda: not server.running())
    assert "the store failed, stopping to recover" in server.output(), server.output()
    instance.daemons.remove(server)
    again = instance.start("droverd", "--dir", instance.dir)
    wait_until(lambda: not again.running())
    instance.daemons.remove(again)
    assert again.process.returncode == 1 and "ead-only" in again.output(), again.output()
    instance.write("go", "")
    wait_until(lambda: not instance.pids("dash"))
    agent.kill()
    disk.mended()
    instance.server()
    agents.start(instance, "")
    instance.wait(running, code=1)
    ended_once(instance, running)
    assert instance.read("starts") == "s\n"
    assert [j["state"] for j in instance.jobs(held)] == ["held"] * 10
    instance.cli("release", str(held))
    instance.wait(held)
    assert len(instance.history()) == 11  # and not what was refused


def test_the_agents_disk_becomes_read_only(instance, disks):
    """It takes nothing more, and says why; the job that runs goes on, and its end is told. Mended, and with all processes started anew as
    after the machine's restart, it takes jobs again, and nothing is told twice."""
    disk = disks(os.path.join(instance.base, "n1"))
    instance.server()
    agent = agents.start(instance, "")
    running = waits_for_go(instance)
    shepherd, = instance.pids("drover-shepherd")
    disk.fails()

    def noticed():
        """the agent offers nothing any more"""
        instance.cli("submit", "-", stdin=sh("true", request_disk="0"))
        return "cannot write the journal" in agent.output() and not any(
            q["offer"] for a in instance.agents("connected") for q in a["queues"])

    wait_until(noticed, every=0.5)
    waits = instance.submit(sh("true", request_disk="0"))
    wait_until(lambda: "Read-only file system" in instance.cli("why", f"{waits}.0"))
    assert alive(shepherd) and agent.running(), agent.output()
    assert instance.job(f"{running}.0")["state"] == "running"
    instance.write("go", "")
    instance.wait(running, code=None)
    ended_once(instance, running)
    agent.kill()
    kill9(shepherd)
    disk.mended()
    agents.start(instance, "")
    for request in range(running, waits + 1):
        instance.wait(request, code=None)
        assert [row["state"] for row in instance.history(request)] == ["completed"]
    assert instance.read("starts") == "s\n"
