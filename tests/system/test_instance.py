"""One folder, one server; what is in it, and what happens when that is damaged."""
import os
import shutil
import signal
import stat
import subprocess

from drover import Instance, UnixConnection, processes, sh, wait_until


def test_the_folder_is_private_and_complete(drover):
    assert stat.S_IMODE(os.stat(drover.dir).st_mode) == 0o700
    info = drover.server_json()
    assert info["api"].startswith("unix:") and info["agents"][0].startswith("unix:")
    assert info["uuid"] == drover.server_info()["uuid"]
    for name in ("drover.db", "server.lock", "spool", "ca"):
        assert os.path.exists(os.path.join(drover.dir, name)), name
    mode = stat.S_IMODE(os.stat(os.path.join(drover.dir, "drover.db")).st_mode)
    assert mode & 0o077 == 0


def test_server_json_goes_with_the_server(drover):
    drover.daemons[0].stop()
    assert not os.path.exists(os.path.join(drover.dir, "server.json"))
    out = drover.cli("queue", code=1)
    assert drover.dir in out.err


def test_it_stops_with_polls_that_wait(instance):
    """Nobody answers them any more, and nothing of them is left (a build with sanitizers tells)."""
    server = instance.server()
    seq = instance.server_info()["seq"]
    polls = [UnixConnection(instance.socket_path(), 20) for _ in range(3)]
    for n, poll in enumerate(polls):
        poll.request("GET", f"/v1/events?after={seq + n}&timeout_ms=60000")
    assert instance.server_info()["seq"] == seq
    assert server.stop() == 0
    for poll in polls:
        poll.close()


def test_a_second_server_is_refused(drover):
    for command in ("up", "server"):
        out = drover.cli(command, code=None)
        assert out.code not in (0, None)
        assert drover.dir in out.err or str(drover.server_pid()) in out.err
    drover.run(sh("true"))


def test_state_survives_a_restart(instance):
    up = instance.up()
    done, held = instance.run(sh("exit 0")), instance.submit(sh("echo later", output="later.out"), "--hold")
    uuid = instance.server_info()["uuid"]
    up.stop()
    instance.up()
    assert instance.server_info()["uuid"] == uuid
    assert instance.history(done)[0]["state"] == "completed"
    assert instance.job(f"{held}.0")["state"] == "held"
    instance.cli("release", str(held))
    instance.wait(held)
    assert instance.read("later.out") == "later\n"
    assert instance.submit(sh("true")) > held


def _refused(instance, *words):
    out = instance.cli("server", code=None)
    assert out.code not in (0, None)
    text = out.err + out.out
    for word in words:
        assert word in text, text
    assert not os.path.exists(os.path.join(instance.dir, "server.json"))


def _database(instance):
    instance.up().stop()
    path = os.path.join(instance.dir, "drover.db")
    for name in ("-wal", "-shm"):
        if os.path.exists(path + name):
            os.unlink(path + name)
    return path


def test_garbage_as_database_is_refused(instance):
    path = _database(instance)
    with open(path, "wb") as f:
        f.write(os.urandom(65536))
    _refused(instance, "drover.db")


def test_truncated_database_is_refused(instance):
    instance.up()
    request = instance.submit("executable=/bin/true\nqueue 3\n", "--hold")
    assert request
    for n in range(300):
        instance.submit(f"executable=/bin/echo\narguments=\"{'x' * 200} {n}\"\nqueue 2\n", "--hold") if n < 40 else None
    path = _database_after_stop(instance)
    size = os.path.getsize(path)
    with open(path, "r+b") as f:
        f.truncate(size // 2 // 4096 * 4096 + 100)
    _refused(instance, "drover.db")


def _database_after_stop(instance):
    for daemon in instance.daemons:
        daemon.stop()
    return os.path.join(instance.dir, "drover.db")


def test_flipped_bytes_in_the_log_are_refused(instance):
    instance.up()
    for n in range(20):
        instance.submit(f"executable=/bin/echo\narguments=\"findme-{n} {'y' * 300}\"\nqueue 2\n", "--hold")
    path = _database_after_stop(instance)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    at = data.find(b"findme-7")
    assert at > 0, "the description should be in the file"
    for n in range(8):
        data[at + n] ^= 0x55
    with open(path, "wb") as f:
        f.write(data)
    _refused(instance, "drover.db")


def test_a_long_path_works(build, instance, request):
    long_base = os.path.join(instance.base, "a" * 60, "b" * 60)
    os.makedirs(long_base)
    other = Instance(build, long_base)
    other.env["XDG_RUNTIME_DIR"] = os.path.join(instance.base, "run")
    os.mkdir(other.env["XDG_RUNTIME_DIR"], 0o700)
    try:
        other.up()
        assert not other.socket_path().startswith(other.dir)
        assert len(other.socket_path()) <= 107
        other.run(sh("echo x", output="x.out"))
        assert other.read("x.out") == "x\n"
    finally:
        other.stop()


def test_drover_up_without_anything_set(instance, build):
    env = {**instance.env}
    del env["DROVER_DIR"]
    home = os.path.join(instance.base, "home")
    os.makedirs(home)
    env["HOME"] = home
    instance.env = env
    instance.dir = os.path.join(home, ".local/state/drover")
    instance.up()
    assert stat.S_IMODE(os.stat(instance.dir).st_mode) == 0o700
    instance.run(sh("true"))


def test_no_write_to_a_readonly_place(instance):
    out = instance.cli("server", "--dir", "/proc/nothing", code=None)
    assert out.code not in (0, None) and "/proc/nothing" in out.err


def test_help_without_a_server(instance):
    assert "submit" in instance.cli("--help")
    out = instance.cli("queue", code=1)
    assert "drover up" in out.err or "server" in out.err


def test_sqlite_finds_no_fault(drover):
    drover.run(sh("true", queue="queue 50"))
    drover.daemons[0].stop()
    out = subprocess.run(["sqlite3", os.path.join(drover.dir, "drover.db"), "pragma integrity_check"],
                         stdout=subprocess.PIPE, text=True, check=True)
    assert out.stdout.strip() == "ok"


def test_two_instances_side_by_side(build, instance, tmp_path_factory):
    other = Instance(build, os.path.join(instance.base, "other"))
    try:
        instance.up()
        other.up()
        a, b = instance.submit(sh("echo a", output="o")), other.submit(sh("echo b", output="o"))
        instance.wait(a)
        other.wait(b)
        assert (instance.read("o"), other.read("o")) == ("a\n", "b\n")
    finally:
        other.stop()
        shutil.rmtree(other.base, ignore_errors=True)
    wait_until(lambda: not processes(other.base))


def test_what_ran_when_up_was_stopped_is_told_as_that(instance):
    """Not as jobs that were never started; and they run again."""
    up = instance.up()
    waits = instance.write("waits.sh", f"#!/bin/sh\necho >> {instance.work}/starts\nwhile [ ! -e {instance.work}/go ]; do sleep 0.05; done\n",
                           mode=0o755)
    request = instance.submit(f"executable = {waits}\nqueue\n")
    wait_until(lambda: instance.exists("starts"), 60)
    up.stop(signal.SIGINT)
    instance.up()
    wait_until(lambda: instance.read("starts").count("\n") == 2, 60)
    instance.write("go", "")
    instance.wait_state(f"{request}.0", "completed")
    told = instance.cli("log", f"{request}.0")
    assert "the agent was stopped, and the job with it" in told and "before it was started" not in told, told


def test_ended_jobs_are_found_by_an_expression(instance):
    """By `history`; who looks for them with `queue -c` is told."""
    instance.up()
    bad = instance.submit(sh("exit $(Process)").replace("queue", "queue 3"))
    good = instance.submit(sh("true"))
    for job in (f"{bad}.0", f"{bad}.1", f"{bad}.2", f"{good}.0"):
        instance.wait_state(job, "completed")
    out = instance.cli("queue", "-c", "ExitCode != 0")
    assert out.startswith("0 jobs") and "drover history -c" in out.err, (out, out.err)
    assert not instance.cli("queue", "-c", "ExitCode != 0", "--json").err

    def found(*args):
        return sorted(job["id"] for job in instance.json("history", *args)["jobs"])

    assert found("-c", "ExitCode != 0") == [f"{bad}.1", f"{bad}.2"]
    assert len(found("-c", "ExitCode != 0", "-l", "1")) == 1
    assert found("-c", 'regexp("^sh$", "sh") && ExitCode == 0', str(bad)) == [f"{bad}.0"]
    assert found("-c", f"ClusterId == {good}") == [f"{good}.0"]
    assert instance.cli("history", "-c", "false") == "no finished jobs\n"
    assert "constraint" in instance.cli("history", "-c", "ExitCode !=", code=2).err
    slow = 'regexp("(?:a?){12}[bc]d", "' + "a" * 5000 + 'd")'
    assert "takes too long" in instance.cli("history", "-c", slow, code=2).err


def test_settings_are_read_again_on_sighup(instance):
    """The server goes on, with who may do what as the file has it now; a file with a mistake changes nothing."""
    path = instance.write("droverd.yaml", "operators: []\n")
    server = instance.server("--config", path)
    ask = ("token", "user", "--name", "ann", "--role", "operator")
    assert "droverd.yaml" in instance.cli(*ask, code=None).err

    def reload(text, said):
        instance.write("droverd.yaml", text)
        before = server.output().count(said)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.output().count(said) > before, 60)

    reload("operators: [ann@local]\nlog_level: debug\n", "the settings were read again")
    token = instance.json(*ask)["token"]
    assert token.startswith("drover-user-token.")
    reload("operators: [\nsurprise: 1\n", "the settings cannot be read again")
    assert "droverd.yaml:" in server.output()
    assert instance.json(*ask)["token"] != token
    reload("operators: []\n", "the settings were read again")
    assert "droverd.yaml" in instance.cli(*ask, code=None).err
    assert server.running() and instance.server_pid() == server.pid
