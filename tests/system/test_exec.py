"""Commands beside a job's program: where it runs, as its user, within its limits, and gone with it."""
import os
import subprocess
import time

import pytest

from drover import alive, processes, sh, wait_until
from test_tail import Follower, go_on
from users import ONE, TWO, Site
from wire import Liar


def running(instance, script, **more):
    """A job that runs; the program's first words are on the disk."""
    request = instance.submit(sh(f"echo $$ >{instance.work}/pid; {script}{go_on(instance)}", **more))
    wait_until(lambda: instance.written("pid"))
    instance.wait_state(f"{request}.0", "running")
    return f"{request}.0"


def test_where_the_job_runs(drover):
    """In its folder, with its environment and its streams apart; its exit code is the command's. The job goes on."""
    job = running(drover, "echo mine >note; ", environment='"WORD=\'of the job\'"')
    wait_until(lambda: drover.cli("exec", job, "--", "cat", "note", code=None) == "mine\n")
    said = drover.cli("exec", job, "--", "sh", "-c", 'echo "$WORD $DROVER_JOB $DROVER_SCRATCH"; pwd; echo wrong >&2; exit 7', code=7)
    sandbox = os.path.join(drover.dir, "agent", "jobs", job + ".1")
    assert said == f"of the job {job} {sandbox}\n{drover.work}\n" and said.err == "wrong\n"
    assert drover.cli("exec", job, "--", "sh", "-c", "kill -9 $$", code=128 + 9) == ""
    assert drover.cli("exec", job, "--", "cat", code=0) == ""  # it reads nothing
    assert "No such file" in drover.cli("exec", job, "--", "/nowhere/prog", code=127).err
    assert [name for name in os.listdir(sandbox) if "exec" in name] == []
    assert alive(int(drover.read("pid"))) and drover.job(job)["state"] == "running"
    drover.write("go", "")
    drover.wait(job)
    assert "does not run" in drover.cli("exec", job, "--", "true", code=1).err


def test_much_that_a_command_prints(drover):
    job = running(drover, "")
    said = drover.cli("exec", job, "--", "seq", "300000")
    assert said == "".join(f"{n}\n" for n in range(1, 300001))
    drover.write("go", "")
    drover.wait(job)


def test_it_is_in_the_jobs_control_group(drover):
    """And what of it is left in the background does not end with it, nor the job with either."""
    job = running(drover, "")
    program = int(drover.read("pid"))

    def groups(pid):
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
            return f.read()

    said = drover.cli("exec", job, "--", "cat", "/proc/self/cgroup")
    assert said == groups(program)
    drover.cli("exec", job, "--", "sh", "-c", f"setsid sleep 600 & echo $! >{drover.work}/left")
    assert alive(program) and drover.job(job)["state"] == "running"
    drover.write("go", "")
    drover.wait(job)
    wait_until(lambda: not alive(int(drover.read("left"))))


def test_it_ends_with_its_job(drover):
    job = running(drover, "")
    with subprocess.Popen([drover.program("drover"), "exec", job, "--", "sh", "-c", f"echo $$ >{drover.work}/command; exec sleep 600"],
                          env=drover.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        wait_until(lambda: drover.written("command"))
        drover.write("go", "")
        drover.wait(job)
        assert p.wait(60) != 0
    wait_until(lambda: not alive(int(drover.read("command"))))
    assert processes(drover.base, "sleep") == []


def test_jobs_that_run_none(drover):
    held = drover.submit(sh("true", hold="true"))
    assert "does not run: it is held" in drover.cli("exec", str(held), "--", "true", code=None).err
    assert "no job" in drover.cli("exec", f"{held}.5", "--", "true", code=2).err
    for argv in ([], [1], ["a\0b"], "ls", None):
        assert drover.call("POST", f"/v1/jobs/{held}.0/exec", {"argv": argv})[0] == 400, argv
    assert drover.call("POST", f"/v1/jobs/{held}.0/exec", {"argv": ["x"] * 10001})[0] == 400
    assert drover.call("GET", f"/v1/jobs/{held}.0/output?exec=77&attempt=1")[0] == 404


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_as_the_jobs_user(instance):
    """Of the one whose job it is, in the group that the shepherd has made for it, which does not end with the command."""
    site = Site(instance)
    site.agent()
    go = os.path.join(site.home(ONE), "go")
    request = site.submit(ONE, f"echo $$ >$DROVER_SCRATCH/pid; while [ ! -e {go} ]; do sleep 0.05; done")
    job = f"{request}.0"
    pid = os.path.join(site.state, "jobs", f"{job}.1", "pid")
    wait_until(lambda: os.path.exists(pid) and os.path.getsize(pid))
    instance.wait_state(job, "running")
    with open(pid, encoding="ascii") as f:
        program = int(f.read())
    assert instance.cli("exec", job, "--", "id", "-u") == f"{ONE.pw_uid}\n"
    with open(f"/proc/{program}/cgroup", encoding="ascii") as f:
        assert instance.cli("exec", job, "--", "cat", "/proc/self/cgroup") == f.read()
    assert "Permission denied" in instance.cli("exec", job, "--", "ls", site.home(TWO), code=2).err
    assert alive(program)
    site.write(ONE, "go")
    instance.wait(job)


def test_a_command_that_nobody_waits_for(instance):
    """The agent ends it, some time after the last question; it is not ended while there are any."""
    instance.up()
    job = running(instance, "")
    made = instance.api("POST", f"/v1/jobs/{job}/exec", {"argv": ["sh", "-c", f"echo $$ >{instance.work}/command; exec sleep 600"]})
    wait_until(lambda: instance.written("command"))
    f = Follower(instance, job, exec=made["exec"], attempt=made["attempt"])
    f.attempt = made["attempt"]
    assert f.ask(timeout_ms=500)["over"] is False
    begin = time.monotonic()
    wait_until(lambda: not alive(int(instance.read("command"))), 120)
    assert time.monotonic() - begin > 10 and instance.job(job)["state"] == "running"
    instance.write("go", "")
    instance.wait(job)


def test_an_agent_that_lies_about_a_command(instance):
    instance.server()
    honest = Liar(instance, "honest", "--owners", "any")
    honest.hello()
    request = instance.submit(sh("true"))
    honest.offer()
    attempt = honest.take(request)[0]
    honest.ping()
    with subprocess.Popen([instance.program("drover"), "exec", f"{request}.0", "--", "x", "y z"], env=instance.env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        asked = honest.wire.until("exec")
        assert asked["argv"] == ["x", "y z"] and asked["fence"] == attempt["fence"]
        honest.wire.send(streams={"serial": asked["serial"], "error": "\033[2Jno\n" * 2000})
        assert p.wait(60) != 0
        err = p.stderr.read()
        assert b"\033" not in err and len(err) < 5000, err[:200]


def test_places_without_commands(two):
    """A job at another server."""
    request = two.submit(sh(f"echo here; {go_on(two)}"))
    Follower(two, f"{request}.0").until(lambda: two.job(f"{request}.0")["state"] == "running")
    assert "at another server" in two.cli("exec", str(request), "--", "true", code=None).err
    two.write("go", "")
    two.wait(request)
