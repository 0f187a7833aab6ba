"""A full disk: a small tmpfs as the instance's folder. Accepting stops, running goes on, nothing is lost."""
import os
import subprocess

import pytest

from drover import sh, wait_until
from test_kill import apart


@pytest.fixture
def small(instance):
    os.makedirs(instance.dir, mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=0700", "tmpfs", instance.dir], check=True)
    try:
        yield instance
        instance.stop()
    finally:
        subprocess.run(["umount", "-l", instance.dir], check=False)


def fill(folder):
    """Writes until nothing fits any more."""
    with open(os.path.join(folder, "ballast"), "ab", buffering=0) as f:
        block = b"\0" * 65536
        while block:
            try:
                f.write(block)
            except OSError:
                block = block[:len(block) // 2]


def test_full_disk(small):
    server, _, _ = apart(small)
    go = os.path.join(small.work, "go")
    running = small.submit(sh(f"echo s >>{small.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 3"))
    wait_until(lambda: small.written("starts"))
    held = small.submit(sh("true", queue="queue 10"), "--hold")
    accepted = {running: 1, held: 10}
    fill(small.dir)

    def refused():
        """a submit is refused"""
        out = small.cli("submit", "-", stdin=sh("true # " + "x" * 2000), code=None)
        if out.code == 0:
            accepted[int(out.split()[1].rstrip(":"))] = 1
            fill(small.dir)
            return None
        return [out]

    out = wait_until(refused)[0]
    assert "full" in out.err or "space" in out.err, out.err
    assert small.server_info()["accepting"] is False
    assert small.server_info()["reason"]
    small.write("go", "")  # the running job ends meanwhile
    small.wait(running, code=1)
    assert small.read("starts") == "s\n"

    os.unlink(os.path.join(small.dir, "ballast"))
    wait_until(lambda: small.server_info()["accepting"] is True)
    small.cli("release", str(held))
    for request in accepted:
        small.wait(request, code=None)
    new = small.run(sh("true"))
    server.stop()
    small.server()
    for request, jobs in {**accepted, new: 1}.items():
        assert len(small.history(request)) == jobs
    assert small.history(running)[0]["exit_code"] == 3
