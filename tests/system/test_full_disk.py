"""A full disk: a small tmpfs as the server's folder, or the agent's, without room or without inodes. Accepting stops, running goes on,
nothing is lost."""
import collections
import concurrent.futures
import contextlib
import os
import shutil
import subprocess
import time

import pytest

from drover import free_port, sh, wait_until
from test_kill import apart, final_events, kill9, one
from test_remote import start_remote, token


@contextlib.contextmanager
def small_disk(instance, folder, limits="size=32m"):
    """The folder is a disk of its own; the instance is stopped before it goes."""
    os.makedirs(folder, mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{limits},mode=0700", "tmpfs", folder], check=True)
    try:
        yield instance
        instance.stop()
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


@pytest.fixture
def small(instance):
    with small_disk(instance, instance.dir):
        yield instance


@pytest.fixture
def small_agent(instance):
    with small_disk(instance, os.path.join(instance.base, "agent")):
        yield instance


@pytest.fixture
def few_inodes(instance):
    with small_disk(instance, instance.dir, "size=64m,nr_inodes=400"):
        yield instance


@pytest.fixture
def few_inodes_agent(instance):
    with small_disk(instance, os.path.join(instance.base, "agent"), "size=64m,nr_inodes=400"):
        yield instance


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
        out = small.cli("submit", "-", stdin=sh("true # " + "x" * 60000), code=None)
        if out.code == 0:
            accepted[int(out.split()[1].rstrip(":"))] = 1
            if small.server_info()["accepting"]:  # else it is the server's own reserve that was free
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


@pytest.mark.parametrize("left", [100 << 10, 1 << 20])
def test_a_server_that_ends_on_a_full_disk_begins_again(small, left):
    """Its log is not moved into the database at the end where that would take the last room, which the next start needs."""
    server = small.server()
    requests = [small.submit(sh("true # " + "x" * 60000)) for _ in range(60)]
    free = os.statvfs(small.dir)
    with open(os.path.join(small.dir, "ballast"), "wb") as f:
        os.posix_fallocate(f.fileno(), 0, free.f_bavail * free.f_frsize - left)
    assert server.stop() == 0
    small.server()
    assert all(small.job(f"{request}.0")["state"] == "idle" for request in requests)
    os.unlink(os.path.join(small.dir, "ballast"))
    wait_until(lambda: small.server_info()["accepting"] is True)


def test_outputs_wait_for_room_at_the_server(small):
    """What a job elsewhere has made stays with its agent, and comes when there is room."""
    small.port = free_port()
    small.server("--listen", f"127.0.0.1:{small.port}")
    agent = start_remote(small, "far", token(small, "far"))
    go = os.path.join(small.work, "go")
    request = small.submit(sh(f"echo s >>{small.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; "
                              "head -c 3000000 /dev/zero >made; echo said", output="out", transfer_output_files="made"))
    wait_until(lambda: small.written("starts"))
    fill(small.dir)
    small.write("go", "")
    wait_until(lambda: "the server's disk is full" in agent.output())
    assert small.job(f"{request}.0")["state"] not in ("held", "completed")
    os.unlink(os.path.join(small.dir, "ballast"))
    small.wait(request)
    assert "the server has room again" in agent.output()
    small.cli("get", str(request), "-o", "got")
    assert small.read("got/out") == "said\n" and small.read("got/made") == "\0" * 3000000
    assert small.read("starts") == "s\n"
    agent.stop()


def offered(instance):
    return [q["offer"] for a in instance.agents("connected") for q in a["queues"]]


def test_the_agents_disk_is_full(small_agent):
    """While its journal cannot be written it takes nothing, and says so; what runs ends, and is told. With room it goes on."""
    folder = os.path.join(small_agent.base, "agent")
    _, agent, start_agent = apart(small_agent)
    go = os.path.join(small_agent.work, "go")
    running = small_agent.submit(sh(f"echo s >>{small_agent.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 3",
                                    request_disk="0"))
    wait_until(lambda: small_agent.written("starts"))
    small_agent.wait_state(f"{running}.0", "running")
    wait_until(lambda: any(offered(small_agent)))
    fill(folder)

    def noticed():
        """the journal cannot be written"""
        if "cannot write the journal" in agent.output():
            return True
        small_agent.cli("submit", "-", stdin=sh("true # " + "x" * 2000, request_disk="0"))
        return False

    wait_until(noticed, every=0.3)
    wait_until(lambda: not any(offered(small_agent)))
    waits = small_agent.submit(sh("true", request_disk="0"))
    small_agent.write("go", "")
    small_agent.wait(running, code=1)
    assert small_agent.job(f"{waits}.0")["state"] == "idle"
    assert "its agent cannot write what it takes to its disk: No space left" in small_agent.cli("why", f"{waits}.0")
    os.unlink(os.path.join(folder, "ballast"))
    wait_until(lambda: "the journal is written again" in agent.output())
    small_agent.wait(waits)
    agent.kill()
    start_agent()
    last = small_agent.run(sh("true", request_disk="0"))
    assert small_agent.read("starts") == "s\n" and small_agent.history(running)[0]["exit_code"] == 3
    for request in range(running, last + 1):
        small_agent.wait(request, code=None)
        assert [row["state"] for row in small_agent.history(request)] == ["completed"]
        assert final_events(small_agent, f"{request}.0") == ["exited"]


@pytest.mark.parametrize("table", ["whole", "torn"])
def test_an_agent_is_started_on_a_full_disk(small_agent, table):
    """It says what it cannot write, and begins when there is room; so does its shepherd, whose table has lost the room that it had."""
    folder = os.path.join(small_agent.base, "agent")
    _, agent, start_agent = apart(small_agent)
    shepherd = one(small_agent, "drover-shepherd")
    agent.kill()
    kill9(shepherd)
    if table == "torn":
        os.truncate(os.path.join(folder, "shepherd.table"), 100)
    fill(folder)
    agent = start_agent()
    says = f"cannot make what it needs in {folder}: No space left" if table == "torn" else "No space left"
    wait_until(lambda: says in agent.output() and small_agent.agents("connected"))
    assert not any(offered(small_agent))
    os.unlink(os.path.join(folder, "ballast"))
    small_agent.run(sh("true", request_disk="0"))
    assert agent.running()


def flood(instance, accepted, number):
    """Submits until it is refused. Returns the answer."""
    for n in range(1000):
        status, answer = instance.call("POST", "/v1/requests", {
            "uuid": f"{number:08x}-0000-4000-8000-{n:012x}",
            "parts": [{"attributes": {"Cmd": '"/bin/sh"', "Iwd": f'"{instance.work}"', "RequestMemory": "8", "RequestDisk": "0",
                                      "Arguments": '"-c \'exit 0\' $(word)"'},
                       "late": ["Arguments"], "variables": ["word"], "items": f"{'x' * 9000}\n" * 4, "rows": 4, "steps": 1}]})
        if status not in (200, 201):
            return status, answer
        accepted.append(answer["id"])
    return None


def test_the_disk_fills_while_much_goes_on(small):
    """In the middle of submits, of results and of the snapshot at the server's end: all that was accepted is done once."""
    server, _, _ = apart(small, "--cpus", "4")
    accepted = []
    free = os.statvfs(small.dir)
    with open(os.path.join(small.dir, "ballast"), "wb") as f:
        os.posix_fallocate(f.fileno(), 0, free.f_bavail * free.f_frsize - (2 << 20))
    with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
        answers = list(pool.map(lambda n: flood(small, accepted, n), range(3)))
    assert [status for status, _ in answers] == [503] * 3 and "full" in str(answers[0][1]), answers
    assert small.server_info()["accepting"] is False and accepted
    assert server.stop() == 0
    small.server()
    for request in accepted:
        assert small.api("GET", f"/v1/requests/{request}")["jobs"] == 4
    os.unlink(os.path.join(small.dir, "ballast"))
    wait_until(lambda: small.server_info()["accepting"] is True)
    wait_until(lambda: len(small.history()) >= 4 * len(accepted))
    done = collections.Counter(row["id"] for row in small.history() if row["exit_code"] == 0)
    assert done == {f"{request}.{member}": 1 for request in accepted for member in range(4)}
    assert all(final_events(small, f"{request}.3") == ["exited"] for request in accepted)


# ---- a disk that has room, and no inodes for new files


@contextlib.contextmanager
def no_inodes(folder):
    """Nothing can be made in it, until the end."""
    ballast = os.path.join(folder, "ballast")

    def fill_again():
        """all that were free have gone, those that somebody has given back meanwhile, too"""
        with contextlib.suppress(OSError):
            os.makedirs(ballast, exist_ok=True)
            for n in range(len(os.listdir(ballast)), 10000):
                with open(os.path.join(ballast, str(n)), "xb"):
                    pass
        return os.statvfs(folder).f_favail == 0

    wait_until(fill_again)
    try:
        yield fill_again
    finally:
        shutil.rmtree(ballast)


def test_the_server_has_no_inodes(few_inodes):
    """Files are refused, and the user told why; leases go on, and what runs ends with its outputs waiting at the agent. With inodes all
    goes on, and nothing has begun twice."""
    small = few_inodes
    small.port = free_port()
    small.write("lease.yaml", "lease: 3s\n")
    server = small.server("--listen", f"127.0.0.1:{small.port}", "--config", os.path.join(small.work, "lease.yaml"))
    agent = start_remote(small, "far", token(small, "far"))
    small.write("in", "shipped\n")
    go = os.path.join(small.work, "go")
    running = small.submit(sh(f"echo s >>{small.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; echo said; exit 3", output="out"))
    wait_until(lambda: small.written("starts"))
    with no_inodes(small.dir) as fill_again:
        small.write("in", "shipped later\n")
        refused = small.cli("submit", "-", stdin=sh("cat in", transfer_input_files="in", should_transfer_files="YES", output="got"), code=None)
        assert refused.code != 0 and "disk is full" in refused.err, refused.err
        small.wait_state(f"{running}.0", "running")
        end = time.monotonic() + 10
        wait_until(lambda: time.monotonic() > end)  # three leases
        assert fill_again()
        assert small.job(f"{running}.0")["state"] == "running"
        small.write("go", "")
        wait_until(lambda: "the server's disk is full" in agent.output())
        assert small.job(f"{running}.0")["state"] not in ("held", "completed")
    small.wait(running, code=1)
    assert "the server has room again" in agent.output()
    later = small.run(sh("cat in", transfer_input_files="in", should_transfer_files="YES", output="got"))
    small.cli("get", str(running), str(later), "-o", "files")
    server.stop()
    small.server("--listen", f"127.0.0.1:{small.port}")
    assert small.read("starts") == "s\n"
    assert small.history(running)[0]["exit_code"] == 3 and final_events(small, f"{running}.0") == ["exited"]
    assert small.history(later)[0]["exit_code"] == 0


def test_the_agent_has_no_inodes(few_inodes_agent):
    """No sandbox can be made: it takes nothing, and says why; what runs ends, and is told. With inodes it goes on; no job was held."""
    small = few_inodes_agent
    folder = os.path.join(small.base, "agent")
    _, agent, start_agent = apart(small)
    go = os.path.join(small.work, "go")
    running = small.submit(sh(f"echo s >>{small.work}/starts; while [ ! -e {go} ]; do sleep 0.05; done; exit 3", request_disk="0"))
    wait_until(lambda: small.written("starts"))
    small.wait_state(f"{running}.0", "running")
    wait_until(lambda: any(offered(small)))
    small.write("in", "shipped\n")
    job = sh(f"cat in; echo s >>{small.work}/later", transfer_input_files="in", should_transfer_files="YES", output="out.$(Cluster)", request_disk="0")
    with no_inodes(folder):
        waits = small.submit(job)
        wait_until(lambda: "No space left" in agent.output() or "no inodes" in agent.output())
        wait_until(lambda: not any(offered(small)))
        assert small.job(f"{waits}.0")["state"] == "idle"
        assert "no inodes" in small.cli("why", f"{waits}.0")
        small.write("go", "")
        small.wait(running, code=1)
    small.wait(waits)
    agent.kill()
    start_agent()
    last = small.run(job)
    assert small.read("starts") == "s\n" and small.history(running)[0]["exit_code"] == 3
    assert small.read("later") == "s\ns\n"
    for request in (running, waits, last):
        assert final_events(small, f"{request}.0") == ["exited"]


def test_an_agent_is_started_without_inodes(few_inodes_agent):
    """The agent takes nothing, and says so; with inodes it begins."""
    small = few_inodes_agent
    folder = os.path.join(small.base, "agent")
    _, agent, start_agent = apart(small)
    shepherd = one(small, "drover-shepherd")
    agent.kill()
    kill9(shepherd)
    waits = small.submit(sh(f"echo s >>{small.work}/starts", request_disk="0"))
    with no_inodes(folder):
        agent = start_agent()
        wait_until(lambda: "no inodes left" in agent.output() and small.agents("connected"))
        wait_until(lambda: one(small, "drover-shepherd"))
        assert not any(offered(small)) and small.job(f"{waits}.0")["state"] == "idle"
    small.wait(waits)
    assert agent.running() and small.read("starts") == "s\n"
