"""Bad days: what stands still, comes back from the past, or has a clock that is wrong. Nothing is stuck, lost or run twice."""
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

import agents
import one_thread
from drover import free_port, sh, wait_until
from test_asleep import Sleeper, begin, frozen, in_turn, whole
from test_outlive import beating, runs

pytest_plugins = ["batch_systems"]


def passes(seconds):
    """Waits for as long as a fault lasts."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, seconds + 60)


@pytest.mark.parametrize("seconds", [5, pytest.param(20, marks=pytest.mark.long)])
def test_the_core_is_held_for_longer_than_a_lease(instance, seconds):
    """Whatever holds the core's thread, renewals are answered: the job goes on, and is not given to the other agent. Twenty
    seconds are longer than the lease and the server's margin."""
    job, agent = begin(instance, "3s")
    second = agents.start(instance, "cpus: 1\n", "n2")
    wait_until(lambda: len(instance.agents("connected")) == 2)
    with one_thread.held(instance.server_pid()):
        passes(seconds)
    assert instance.job(job)["state"] == "running"
    assert len(whole(instance, job)) == 1, agent.output()
    assert instance.history(job.split(".")[0])[0]["starts"] == 1
    assert agent.running() and second.running()


def test_an_agent_that_stops_renewing_loses_its_lease(instance):
    """The front answers renewals, and still a silent agent's job is given to another, once its lease has ended there."""
    job, agent = begin(instance, "3s")
    with frozen(agent.pid):
        agents.start(instance, "cpus: 1\n", "n2")
        wait_until(lambda: len(runs(instance)[job]) == 2)
    wait_until(lambda: len(instance.agents("connected")) == 2)
    assert len(whole(instance, job)) == 2


# ---- clocks ---------------------------------------------------------------------------------------------------------------

DAYS = 86400


def shows_a_good_certificate(instance, port):
    """Somebody who verifies dates, as libcurl does, believes the server's certificate."""
    context = ssl.create_default_context(cafile=os.path.join(instance.dir, "ca", "ca.crt"))
    context.check_hostname = False
    with socket.create_connection(("127.0.0.1", port), 30) as s:
        try:
            with context.wrap_socket(s):
                return True
        except ssl.SSLCertVerificationError:
            return False


@pytest.mark.parametrize("ahead", [3600, 300 * DAYS], ids=["an_hour", "300_days"])
def test_the_clock_was_ahead_when_the_server_started(instance, ahead):
    """And then is put right. Agents that joined in the future come again, others join, and clients believe the server."""
    clock = Sleeper(instance)
    clock.set_wall(ahead)
    port = free_port()
    instance.server("--api-listen", f"127.0.0.1:{port}")
    first = agents.start(instance, "cpus: 1\n")
    instance.run(sh("true"))
    first.stop()
    clock.set_wall(0)
    agents.start(instance, "cpus: 1\n")
    wait_until(lambda: [a["name"] for a in instance.agents("connected")] == ["n1"])
    agents.start(instance, "cpus: 1\n", "n2")
    wait_until(lambda: len(instance.agents("connected")) == 2)
    instance.run(sh("true"))
    wait_until(lambda: shows_a_good_certificate(instance, port))


def test_the_clock_is_set_while_jobs_run(instance):
    """Forth and back by hours: no lease ends, jobs go on, others come and go, and what is due is done."""
    clock = Sleeper(instance)
    job, agent = begin(instance, "3s", "cpus: 2\n")
    for ahead in (7200, 30 * DAYS, -7200):
        clock.set_wall(ahead)
        assert instance.history(instance.run(sh("true")))[0]["starts"] == 1
        passes(1)
    held = instance.submit(sh("sleep 300", periodic_hold="JobStatus == 2"))
    instance.wait_state(f"{held}.0", "held")
    assert len(whole(instance, job)) == 1, agent.output()


# ---- from a copy ------------------------------------------------------------------------------------------------------------


def daemon(instance, *args, code=0):
    """droverd for a moment: its output, or what it complains of."""
    done = subprocess.run([os.path.join(instance.build, "bin", "droverd"), "--dir", instance.dir, *args], env=instance.env,
                          cwd=instance.base, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert code != 0 or done.stderr == "", done.stderr  # not that it is root's, either: no server runs
    return done.stdout if code == 0 else done.stderr


def beats(instance, name, **more):
    """A job that leaves its number and fence in a file as long as it lives."""
    return sh(f"while :; do echo $DROVER_JOB ${{DROVER_SCRATCH##*.}} >>{instance.work}/{name}; sleep 0.1; done", request_cpus="1", **more)


def grows(instance, name):
    path = os.path.join(instance.work, name)
    before = os.path.getsize(path) if os.path.exists(path) else 0
    wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > before)


def stands_still(instance, name):
    path = os.path.join(instance.work, name)

    def same():
        """the job's process has ended"""
        before = os.path.getsize(path)
        time.sleep(0.5)
        return os.path.getsize(path) == before

    wait_until(same)


def after_the_copy(instance, kept, lost):
    """The server has forgotten what came after the copy, and the agent lets go of it; numbers are new; nothing is stuck."""
    wait_until(lambda: instance.agents("connected"))
    grows(instance, "kept")
    stands_still(instance, "lost")
    assert instance.job(f"{kept}.0")["starts"] == 1
    new = [instance.submit(beats(instance, f"new{i}")) for i in range(3)]
    assert min(new) > lost + 100000
    for i in range(3):
        grows(instance, f"new{i}")
        assert set(instance.read(f"new{i}").split()[0::2]) == {f"{new[i]}.0"}
    instance.cli("rm", "--constraint", "true")
    instance.run(sh("true"))


def prepared(instance):
    """A server, an agent with room for four, and a job that is in the copy."""
    instance.server()
    instance.agent = agents.start(instance, "cpus: 4\n")
    kept = instance.submit(beats(instance, "kept"))
    grows(instance, "kept")
    return kept


def test_a_backup_under_load_is_put_back(instance):
    """Made while jobs come and go; put into a new folder while the old agent lives and runs a job from after the backup."""
    kept = prepared(instance)
    instance.write("in", "spooled")
    stop = threading.Event()

    job = sh("cat in", transfer_input_files="in", should_transfer_files="YES", output="out")

    def load():
        while not stop.is_set():
            instance.submit(job)

    instance.run(job)
    thread = threading.Thread(target=load)
    thread.start()
    backup = os.path.join(instance.base, "backup")
    said = json.loads(daemon(instance, "--backup", backup, "--json"))
    stop.set()
    thread.join()
    assert said["files"] > 3 and os.path.exists(os.path.join(backup, "spool", "objects")) and os.stat(backup).st_mode & 0o777 == 0o700
    lost = instance.submit(beats(instance, "lost"))
    grows(instance, "lost")
    instance.kill_server()
    assert "is there already" in daemon(instance, "--restore", backup, code=1)
    os.rename(instance.dir, instance.dir + ".old")
    daemon(instance, "--restore", backup)
    assert daemon(instance, "--check").endswith("ok\n")
    instance.server()
    after_the_copy(instance, kept, lost)


@pytest.mark.parametrize("closed", [True, False], ids=["after_a_clean_stop", "with_its_mark_removed"])
def test_an_older_database_is_put_in_place(instance, closed):
    """By hand, without a word to the server: it notices, and begins new numbers."""
    kept = prepared(instance)
    instance.kill_server(signal.SIGTERM)
    database = os.path.join(instance.dir, "drover.db")
    shutil.copy(database, database + ".copy")
    instance.server()
    wait_until(lambda: instance.agents("connected"))
    lost = instance.submit(beats(instance, "lost"))
    grows(instance, "lost")
    instance.kill_server(signal.SIGTERM if closed else signal.SIGKILL)
    for end in ("-wal", "-shm") + (() if closed else (".mark",)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(database + end)
    os.rename(database + ".copy", database)
    instance.server()
    after_the_copy(instance, kept, lost)


def test_what_is_no_backup_is_refused(instance):
    """A folder that is not empty, one that is no backup, no instance at all."""
    os.mkdir(instance.dir, 0o700)
    assert "drover.db: No such file" in daemon(instance, "--backup", os.path.join(instance.base, "b"), code=1)
    instance.server()
    full = os.path.join(instance.base, "full")
    os.mkdir(full)
    with open(os.path.join(full, "file"), "w", encoding="utf-8"):
        pass
    assert "is not empty" in daemon(instance, "--backup", full, code=1)
    assert "is no backup" in daemon(instance, "--restore", full, code=1)
    daemon(instance, "--backup", full, "--restore", full, code=2)
    backup = os.path.join(instance.base, "backup")
    daemon(instance, "--backup", backup)
    assert "server (pid" in daemon(instance, "--restore", backup, code=1)


def with_lease(instance, lease):
    path = os.path.join(instance.base, "droverd.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"lease: {lease}\n")
    return "--config", path


def copied_and_put_back(instance, between, *config):
    """A backup; then `between` happens; then the server is killed, and the next one begins with the backup."""
    backup = os.path.join(instance.base, "backup")
    daemon(instance, "--backup", backup)
    result = between()
    instance.kill_server()
    os.rename(instance.dir, instance.dir + ".old")
    daemon(instance, "--restore", backup)
    instance.server(*config)
    return result


@pytest.mark.long
def test_what_waits_in_a_copy_may_run_at_an_agent(instance):
    """The job waited when the copy was made, and runs at an agent that nobody hears of when the copy is put back: it is not given to
    another agent before that one's lease has ended. `why` says so."""
    config = with_lease(instance, "20s")
    instance.server(*config)
    first = agents.start(instance, "cpus: 1\n")
    wait_until(lambda: instance.agents("connected"))
    first.stop()
    instance.flag = os.path.join(instance.work, "flag")
    job = f"{instance.submit(sh(beating(instance, instance.flag), request_cpus='1', output='out'))}.0"

    def begins():
        first = agents.start(instance, "cpus: 1\n")
        wait_until(lambda: instance.exists("log") and runs(instance))
        return first

    first = copied_and_put_back(instance, begins, *config)
    with frozen(first.pid):
        agents.start(instance, "cpus: 2\n", "n2")
        wait_until(lambda: [a["name"] for a in instance.agents("connected")] == ["n2"])
        assert instance.history(instance.run(sh("true", request_memory="33 MB")))[0]["starts"] == 1  # what nobody else can have
        assert "an older copy of the database" in instance.cli("why", job)
        assert len(runs(instance)[job]) == 1
        wait_until(lambda: len(runs(instance)[job]) == 2)
        in_turn(instance, job)
    wait_until(lambda: len(instance.agents("connected")) == 2)
    assert len(whole(instance, job)) == 2


def test_several_agents_and_batch_jobs_outlive_a_copy(instance, alpha):
    """What runs as processes and in a batch system when the copy is made goes on, in its first start; what was given later is let go
    of, here and there; new jobs run at both."""
    config = with_lease(instance, "60s")
    instance.server(*config)
    agents.start(instance, "cpus: 4\n")
    agents.start(instance, agents.batch_queues(alpha), "n2")
    agents.offering(instance, "alpha")
    where = ['TARGET.Runner == "process"', 'TARGET.Runner == "slurm"']

    def both(name):
        found = [instance.submit(beats(instance, f"{name}{n}", requirements=asked)) for n, asked in enumerate(where)]
        for n in range(2):
            grows(instance, f"{name}{n}")
        return found

    kept = both("kept")
    for request in kept:
        instance.wait_state(f"{request}.0", "running")
    lost = copied_and_put_back(instance, lambda: both("lost"), *config)
    wait_until(lambda: len(instance.agents("connected")) == 2)
    for n in range(2):
        stands_still(instance, f"lost{n}")
        grows(instance, f"kept{n}")
    assert [instance.job(f"{request}.0")["starts"] for request in kept] == [1, 1]
    new = both("new")
    assert min(new) > max(lost) + 100000
    for n in range(2):
        assert set(instance.read(f"new{n}").split()[0::2]) == {f"{new[n]}.0"}
        assert len({*instance.read(f"kept{n}").split()[1::2]}) == 1
    instance.cli("rm", "--constraint", "true")
    wait_until(lambda: not alpha.jobs())
