"""What is said to a job that has been handed on, when it does not run there at that moment."""
from drover import sh, wait_until
from hops import far_jobs, gone, pids
from test_checkpoint import counter, starts

LISTENS = """#!/bin/sh
trap 'echo USR1 >>{work}/got' USR1
trap 'echo HUP >>{work}/got' HUP
echo $$ >>{work}/pids
while [ ! -e {work}/go ]; do
    if [ -e {work}/save ]; then rm {work}/save; touch state; exit 85; fi
    sleep 0.05
done
"""


def listens(one):
    """A job that tells what signals it gets; it runs."""
    one.write("listens", LISTENS.format(work=one.work), 0o755)
    request = one.submit("executable = listens\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = state\ntransfer_output_files = \"\"\n"
                         "request_memory = 32 MB\nrequest_disk = 1 MB\nqueue\n")
    wait_until(lambda: pids(one))
    one.wait_state(f"{request}.0", "running")
    return f"{request}.0"


def got(one):
    return one.read("got").split() if one.exists("got") else []


def ends(one, job):
    one.write("go", "")
    one.wait(job.split(".", maxsplit=1)[0])
    wait_until(lambda: not far_jobs(one.far))


def test_a_signal_before_its_next_round_begins(two):
    """It has made a checkpoint, and is started once more: it runs here, and waits there."""
    job = listens(two)
    room = two.far.submit(sh(f"while [ ! -e {two.work}/room ]; do sleep 0.05; done", request_cpus=8))  # as soon as it has ended
    two.write("save", "")
    two.far.wait_state(f"{room}.0", "running")
    wait_until(lambda: far_jobs(two.far, "idle"))
    assert two.job(job)["state"] == "running" and gone(pids(two)[0])
    assert "1 job signalled" in two.cli("signal", job, "USR1")
    two.write("room", "")
    wait_until(lambda: len(pids(two)) == 2)
    wait_until(lambda: got(two) == ["USR1"])
    two.cli("signal", job, "HUP")
    wait_until(lambda: got(two) == ["USR1", "HUP"])
    ends(two, job)


def test_a_signal_while_it_waits_again(two):
    """It was vacated there, and has no place for now."""
    job = listens(two)
    there = f"{far_jobs(two.far)[0]}.0"
    two.far.api("POST", "/v1/actions", {"action": "hold", "ids": [there]})
    two.far.wait_state(there, "held")
    assert two.job(job)["state"] == "running"
    for name in ("HUP", "USR1", "HUP"):
        assert "1 job signalled" in two.cli("signal", job, name)
    two.far.cli("release", there)
    wait_until(lambda: len(pids(two)) == 2)
    wait_until(lambda: len(got(two)) == 2)
    assert sorted(got(two)) == ["HUP", "USR1"]
    ends(two, job)


def test_it_is_told_who_did_not_run(two):
    job = listens(two)
    there = far_jobs(two.far)[0]
    request = two.far.submit("executable = /bin/true\nqueue 4\n", "--hold")
    done = two.far.api("POST", "/v1/actions", {"action": "signal", "value": 10, "ids": [f"{there}.0", f"{request}.0", f"{request}.2-3"]})
    assert (done["affected"], done["not_running"]) == (1, [f"{request}.0", f"{request}.2-3"])
    wait_until(lambda: got(two) == ["USR1"])
    done = two.far.api("POST", "/v1/actions", {"action": "checkpoint", "ids": [f"{request}.1"]})
    assert (done["affected"], done["not_running"]) == (0, [f"{request}.1"])
    assert "not_running" not in two.far.api("POST", "/v1/actions", {"action": "suspend", "ids": [f"{request}.1"]})
    two.far.cli("rm", str(request))
    ends(two, job)


def test_vacated_while_it_waits_there(two):
    """Nobody there can make a checkpoint: its time for that is not waited for, and the last one counts."""
    request = counter(two, pause=6, most=8, kill_sig="SIGUSR1", job_max_vacate_time=3600)
    wait_until(lambda: two.exists("at") and two.read("at") == "6\n")
    two.wait_state(f"{request}.0", "running")
    there = f"{far_jobs(two.far)[0]}.0"
    two.far.cli("hold", there)
    two.far.wait_state(there, "held")
    two.cli("vacate", str(request))
    wait_until(lambda: len(starts(two)) == 2)
    two.write("go", "")
    two.wait(request)
    assert starts(two) == [0, 6] and two.read("out") == "from 0\nfrom 6\ndone\n"
