"""Writes, flushes and renames that fail, in the server's spool and in what the agent keeps: nothing torn is believed, nothing is
lost, and what the disk has no room for waits."""
import errno
import hashlib
import os

import pytest

import agents
from drover import free_port, sh, wait_until
from stores import Nginx
from test_remote import start_remote, token


class Disk:
    """The disk of what is started after this."""

    def __init__(self, instance):
        self.rules = os.path.join(instance.base, "failing-disk")
        preload = os.path.join(instance.build, "tests/conform/libfailing_disk.so")
        assert os.path.exists(preload), f"{preload} is not there: run `make build` first"
        instance.env.update(LD_PRELOAD=preload, FAILING_DISK=self.rules,
                            ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")

    def fail(self, number, part, *calls):
        with open(self.rules + ".new", "w", encoding="utf-8") as f:
            f.write("".join(f"{call} {number} {part}\n" for call in calls))
        os.rename(self.rules + ".new", self.rules)

    def mend(self):
        os.unlink(self.rules)


@pytest.fixture
def disk(instance):
    return Disk(instance)


@pytest.mark.parametrize("call, part", [("fsync", "/uploads/"), ("fsync", "/objects"), ("rename", "/objects/"), ("write", "/uploads/")])
def test_outputs_wait_until_the_spool_has_room(instance, disk, call, part):
    """Whichever step the disk is full at."""
    instance.port = free_port()
    instance.server("--listen", f"127.0.0.1:{instance.port}")
    agent = start_remote(instance, "far", token(instance, "far"))
    go = os.path.join(instance.work, "go")
    request = instance.submit(sh(f"echo s >>{instance.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; "
                                 "head -c 3000000 /dev/zero >made; echo said", output="out", transfer_output_files="made"))
    wait_until(lambda: instance.written("starts"))
    disk.fail(errno.ENOSPC, part, call)
    instance.write("go", "")
    wait_until(lambda: "the server's disk is full" in agent.output() or instance.job(f"{request}.0")["state"] == "held")
    assert instance.job(f"{request}.0")["state"] not in ("held", "completed")
    disk.mend()
    instance.wait(request)
    instance.cli("get", str(request), "-o", "got")
    assert instance.read("got/out") == "said\n" and instance.read("got/made") == "\0" * 3000000
    assert instance.read("starts") == "s\n"


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_the_agents_journal_fails(instance, disk, number):
    """As on a disk that has become read-only: nothing is taken, what runs goes on, and a torn end is not believed."""
    instance.server()
    agent = agents.start(instance, "")
    go = os.path.join(instance.work, "go")
    running = instance.submit(sh(f"echo s >>{instance.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 3"))
    wait_until(lambda: instance.written("starts"))
    instance.wait_state(f"{running}.0", "running")
    disk.fail(number, "/n1/journal", "write", "rename", "fsync")
    noticed = instance.submit(sh("true"))
    wait_until(lambda: "cannot write the journal" in agent.output())
    wait_until(lambda: not any(q["offer"] for a in instance.agents("connected") for q in a["queues"]))
    waits = instance.submit(sh("true"))
    why = f"its agent cannot write what it takes to its disk: {os.strerror(number)}"
    wait_until(lambda: why in instance.cli("why", f"{waits}.0"))
    instance.wait(noticed)
    agent.kill()
    agent = agents.start(instance, "")
    wait_until(lambda: "cannot write the journal" in agent.output() and instance.agents("connected"))
    disk.mend()
    instance.write("go", "")
    instance.wait(running, code=1)
    instance.wait(waits)
    agent.kill()
    agents.start(instance, "")
    instance.run(sh("true"))
    assert instance.read("starts") == "s\n" and [row["exit_code"] for row in instance.history(running)] == [3]
    assert [row["state"] for row in instance.history(waits)] == ["completed"]


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_the_agents_cache_fails(instance, disk, call):
    """A job whose input cannot be kept is held, and told why; nothing torn is given to the next."""
    store = Nginx(os.path.join(instance.base, "nginx"))
    try:
        store.wait()
        instance.server()
        agents.start(instance, "transfer_tries: 1\ntransfer_retry: 1ms\n")
        data = b"whole\n" * 1000
        url = store.put("f", data)
        text = f"executable = /usr/bin/sha256sum\narguments = f\ntransfer_input_files = {url}\noutput = out\nqueue\n"
        disk.fail(errno.EIO, "/n1/cache/", call)
        request = instance.submit(text)
        job = instance.wait_state(f"{request}.0", "held")
        assert job["hold_code"] == 13 and job["hold_reason"], job
        disk.mend()
        instance.cli("release", str(request))
        instance.wait(request)
        assert instance.read("out").split()[0] == hashlib.sha256(data).hexdigest()
        assert [n for n in os.listdir(os.path.join(instance.base, "n1", "cache")) if n.endswith(".part")] == []
    finally:
        store.stop()
