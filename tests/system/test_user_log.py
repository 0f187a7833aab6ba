"""The user log (`log = file`): HTCondor's job event log, as programs that read it see it."""
import os
import re
import signal
import time

import pytest

from drover import sh, wait_until

HEADER = re.compile(r"^(\d{3}) \((\d{3,})\.(\d{3,})\.000\) (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (.*)$")


def events(text):
    """[(number, cluster, proc, [line, …])]: strict, as HTCondor's reader is."""
    found, block = [], []
    assert text == "" or text.endswith("...\n"), text[-200:]
    for line in text.splitlines():
        if line != "...":
            block.append(line)
            continue
        m = HEADER.match(block[0])
        assert m, block
        time.strptime(m[4], "%Y-%m-%d %H:%M:%S")
        found.append((int(m[1]), int(m[2]), int(m[3]), [m[5], *block[1:]]))
        block = []
    assert not block
    return found


def numbers(instance, name, request, member=0):
    """Of the events that are written whole: the last one may be half written as we read."""
    if not instance.exists(name):
        return []
    text = instance.read(name)
    whole = text[:text.rfind("...\n") + 4] if "...\n" in text else ""
    return [e[0] for e in events(whole) if e[1:3] == (request, member)]


def wait_numbers(instance, name, request, want, member=0):
    last = [None]

    def there():
        last[0] = [n for n in numbers(instance, name, request, member) if n != 6]
        return last[0] == want

    try:
        wait_until(there)
    except Exception:
        raise AssertionError(f"{name} of {request}.{member} says {last[0]}, not {want}") from None


def event(instance, name, number, request, member=0):
    """The lines of the only such event."""
    (found,) = [e[3] for e in events(instance.read(name)) if e[:3] == (number, request, member)]
    return found


def test_a_job_that_succeeds(shared):
    r = shared.run(sh("echo hello", output="ul.out", log="ul.log"))
    wait_numbers(shared, "ul.log", r, [0, 1, 5])
    assert re.fullmatch(r"Job submitted from host: <\S+>", event(shared, "ul.log", 0, r)[0])
    execute = event(shared, "ul.log", 1, r)
    assert re.fullmatch(r"Job executing on host: <\S+>", execute[0])
    assert re.fullmatch(r"\tSlotName: \S+@\S+", execute[1])
    end = event(shared, "ul.log", 5, r)
    assert end[:2] == ["Job terminated.", "\t(1) Normal termination (return value 0)"]
    assert re.fullmatch(r"\t\tUsr 0 00:00:0\d, Sys 0 00:00:0\d  -  Run Remote Usage", end[2])
    assert [line.split("  -  ")[1] for line in end[2:10]] == [
        "Run Remote Usage", "Run Local Usage", "Total Remote Usage", "Total Local Usage",
        "Run Bytes Sent By Job", "Run Bytes Received By Job", "Total Bytes Sent By Job", "Total Bytes Received By Job"]
    assert end[6] == "\t6  -  Run Bytes Sent By Job"
    assert os.stat(os.path.join(shared.work, "ul.log")).st_mode & 0o777 == 0o644


@pytest.mark.parametrize("how", ["YES", "IF_NEEDED", "NO"])
def test_however_files_are_transferred(shared, how):
    r = shared.run(sh("echo hello", output="how.out", log=f"how-{how}.log", should_transfer_files=how))
    wait_numbers(shared, f"how-{how}.log", r, [0, 1, 5])


def test_with_transfer_the_folder_is_not_used_though_it_is_here(shared):
    shared.write("beside.txt", "of the folder")
    r = shared.run(sh("[ ! -e beside.txt ]", log="beside.log", should_transfer_files="YES"))
    wait_numbers(shared, "beside.log", r, [0, 1, 5])


def test_a_log_that_nobody_can_write_is_told(instance):
    instance.server()
    agent_of(instance)()
    doc = {"uuid": "6d0c29ad-61e8-4b0b-96b1-0d9f5a0f0b11", "parts": [{"attributes": {
        "Cmd": '"/bin/true"', "Iwd": f'"{instance.work}"', "UserLog": '"no.log"', "ShouldTransferFiles": '"YES"'}}]}
    answer = instance.api("POST", "/v1/requests", doc)
    assert "log: it is not written" in answer["warnings"][0], answer
    wait_until(lambda: "a user log is not written: the request has no UserLogDomain or FileSystemDomain" in instance.logs())
    doc["uuid"] = doc["uuid"][:-1] + "2"
    doc["parts"][0]["attributes"]["FileSystemDomain"] = '"of.nobody"'
    assert instance.api("POST", "/v1/requests", doc)["warnings"] == []
    wait_until(lambda: "a user log waits: no connected agent sees its folder" in instance.logs())
    assert 'domain="of.nobody"' in instance.logs()


def test_failure_signal_and_notes(shared):
    fails = shared.run(sh("exit 3", log="fail.log", submit_event_notes="DAG Node: A"), code=1)
    killed = shared.run(sh("kill -SEGV $$", log="fail.log"), code=1)
    wait_numbers(shared, "fail.log", killed, [0, 1, 5])
    assert event(shared, "fail.log", 0, fails)[1] == "    DAG Node: A"
    assert event(shared, "fail.log", 5, fails)[1] == "\t(1) Normal termination (return value 3)"
    assert event(shared, "fail.log", 5, killed)[1:3] == [
        f"\t(0) Abnormal termination (signal {int(signal.SIGSEGV)})", "\t(0) No core file"]


def test_held_released_removed(shared):
    r = shared.submit(sh("sleep 600", log="act.log", queue="queue 2"), "--hold")
    wait_numbers(shared, "act.log", r, [0, 12], 1)
    assert event(shared, "act.log", 12, r, 1)[2] in ("\tCode 15 Subcode 0", "\tCode 1 Subcode 0")
    shared.cli("rm", f"{r}.1")
    wait_numbers(shared, "act.log", r, [0, 12, 9], 1)
    shared.cli("release", f"{r}.0")
    shared.wait_state(f"{r}.0", "running")
    wait_numbers(shared, "act.log", r, [0, 12, 13, 1])
    shared.cli("hold", "--reason", "let it rest", f"{r}.0")
    shared.wait_state(f"{r}.0", "held")
    wait_numbers(shared, "act.log", r, [0, 12, 13, 1, 4, 12])
    (text,) = [e[3] for e in events(shared.read("act.log")) if e[0] == 12 and "let it rest" in e[3][1]]
    assert text[2] == "\tCode 1 Subcode 0"
    shared.cli("release", f"{r}.0")
    shared.wait_state(f"{r}.0", "running")
    shared.cli("rm", f"{r}.0")
    wait_numbers(shared, "act.log", r, [0, 12, 13, 1, 4, 12, 13, 1, 9])


def test_suspended_and_not_started(shared):
    r = shared.submit(sh("sleep 600", log="stop.log"))
    shared.wait_state(f"{r}.0", "running")
    for action in ("suspend", "resume"):
        shared.api("POST", "/v1/actions", {"action": action, "ids": [str(r)]})
    wait_numbers(shared, "stop.log", r, [0, 1, 10, 11])
    shared.cli("rm", str(r))
    bad = shared.submit("executable = /nothing/here\nlog = stop.log\nrequest_memory = 32 MB\n"
                        "should_transfer_files = NO\ntransfer_executable = False\nqueue\n")
    shared.wait_state(f"{bad}.0", "held")
    wait_until(lambda: numbers(shared, "stop.log", bad)[-2:] == [2, 12])
    assert numbers(shared, "stop.log", bad) in ([0, 2, 12], [0, 1, 2, 12])  # the agent may take it for started
    assert event(shared, "stop.log", 12, bad)[2].startswith("\tCode 6 Subcode")


def test_run_again(shared):
    r = shared.run(sh("exit 7", log="again.log", max_retries=1), code=1)
    wait_numbers(shared, "again.log", r, [0, 1, 4, 1, 5])
    (evicted,) = [e[3] for e in events(shared.read("again.log")) if e[:3] == (4, r, 0)]
    assert evicted[:2] == ["Job was evicted.", "\t(0) Job terminated and was requeued"]
    assert "\t(1) Normal termination (return value 7)" in evicted


def test_a_file_for_each_job_and_null(shared):
    os.makedirs(os.path.join(shared.work, "logs"), exist_ok=True)
    r = shared.run(sh("exit 0", log="logs/$(Cluster).$(Process).log", queue="queue 5"))
    for member in range(5):
        wait_numbers(shared, f"logs/{r}.{member}.log", r, [0, 1, 5], member)
        assert {e[2] for e in events(shared.read(f"logs/{r}.{member}.log"))} == {member}
    shared.run(sh("exit 0", log="/dev/null"))


def test_what_is_no_file_is_left_alone(shared):
    os.symlink(os.path.join(shared.work, "target"), os.path.join(shared.work, "link.log"))
    first = shared.run(sh("exit 0", log="link.log"))
    last = shared.run(sh("exit 0", log="after.log"))
    wait_numbers(shared, "after.log", last, [0, 1, 5])
    assert first and not shared.exists("target")


def test_many_jobs_in_one_file(shared):
    r = shared.submit(sh("exit 0", log="many.log", queue="queue 20000"), "--hold")

    def all_there():
        """the log has every job"""
        text = shared.read("many.log") if shared.exists("many.log") else ""
        return text.count("\n012 (") == 20000 and text.endswith("...\n")

    wait_until(all_there)
    found = events(shared.read("many.log"))
    assert [e[2] for e in found if e[0] == 0] == list(range(20000))
    assert [e[2] for e in found if e[0] == 12] == list(range(20000))
    shared.cli("rm", str(r))


def agent_of(instance):
    token = instance.cli("token", "agent", "--name", "a1").split()[-1]

    def start():
        one = instance.start("drover-agent", "--server", instance.server_json()["agents"][0], "--dir",
                             os.path.join(instance.base, "agent"), "--token", token, "--name", "a1", "--cpus", "4")
        wait_until(lambda: instance.agents("connected"))
        return one

    return start


def size(instance, name):
    return os.path.getsize(os.path.join(instance.work, name)) if instance.exists(name) else 0


@pytest.mark.parametrize("who", ["server", "agent", "both"])
def test_killed_in_the_middle_of_many(instance, who):
    server = instance.server()
    start_agent = agent_of(instance)
    agent = start_agent()
    jobs = 300000
    r = instance.submit(sh("exit 0", log="many.log", queue=f"queue {jobs}"), "--hold")

    def all_there():
        """the last job is held in the log"""
        if size(instance, "many.log") < 400:
            return False
        with open(os.path.join(instance.work, "many.log"), "rb") as f:
            f.seek(-400, os.SEEK_END)
            return re.search(rb"^012 \(\d+\.%d\.(.|\n)*^\.\.\.$" % (jobs - 1), f.read(), re.M)

    for _ in range(2):
        before = size(instance, "many.log")
        wait_until(lambda: size(instance, "many.log") > before + (3 << 20) or all_there())
        if who != "server":
            agent.kill()
        if who != "agent":
            server.kill()
            server = instance.server()
        if who != "server":
            agent = start_agent()
    wait_until(all_there)
    with open(os.path.join(instance.work, "many.log"), encoding="utf-8") as f:
        found = re.findall(r"^(\d{3}) \(%03d\.(\d+)" % r, f.read(), re.M)
    assert [int(m) for n, m in found if n == "000"] == list(range(jobs))
    assert [int(m) for n, m in found if n == "012"] == list(range(jobs))


def test_killed_server_loses_and_repeats_nothing(instance):
    server = instance.server()
    start_agent = agent_of(instance)
    agent = start_agent()
    requests = []
    for round_ in range(3):
        requests.append(instance.submit(sh("sleep 0.$(Process); exit $(Process)", log="kill.log", queue="queue 8")))
        time.sleep(0.3 + 0.2 * round_)
        server.kill()
        server = instance.server()
    requests.append(instance.submit(sh("exit 0", log="kill.log")))
    instance.wait(*requests, code=1)
    for r in requests[:-1]:
        for member in range(8):
            wait_numbers(instance, "kill.log", r, [0, 1, 5], member)
            assert event(instance, "kill.log", 5, r, member)[1].endswith(f"(return value {member})")
    wait_numbers(instance, "kill.log", requests[-1], [0, 1, 5])
    # Without an agent lines wait; it is the server's restart that has to remember them.
    agent.stop()
    waiting = instance.submit(sh("exit 0", log="kill.log"), "--hold")
    instance.cli("rm", str(waiting))
    server.kill()
    server = instance.server()
    start_agent()
    wait_numbers(instance, "kill.log", waiting, [0, 12, 9])
    for r in requests[:-1]:
        wait_numbers(instance, "kill.log", r, [0, 1, 5], 7)
