"""Limits on what a job may use, and what is told about them."""
import pytest

from drover import sh


def limits(instance):
    return instance.agents()[0]["queues"][0]["limits"]


def test_agents_say_which_limits_are_real(shared):
    assert limits(shared)
    assert "mem" in shared.cli("agents").lower()


def test_a_job_that_takes_too_much_memory_is_held(shared):
    script = "x = bytearray(400 << 20)\nfor i in range(0, len(x), 4096):\n    x[i] = 1\nimport time\ntime.sleep(20)\n"
    shared.write("eat.py", script)
    request = shared.submit(f"executable = /usr/bin/python3\narguments = {shared.work}/eat.py\nrequest_memory = 64 MB\n"
                            "request_disk = 1 MB\nqueue\n")
    job = shared.wait_state(f"{request}.0", "held", "completed")
    if "v1" in limits(shared).get("memory", "") or "v2" in limits(shared).get("memory", ""):
        assert "emory" in job.get("hold_reason", ""), job
    else:  # a limit on the address space alone: the job is told that there is no memory, and fails by itself
        assert job["state"] == "held" or job["exit_code"] == 1, job
    shared.cli("rm", str(request))


def test_a_child_that_is_killed_for_its_memory_is_told(shared):
    """Though the program that started it does not care, and ends well: what is missing from its output nobody would see."""
    shared.write("parent.py", "import subprocess, sys\nn = int(sys.argv[1]) << 20\n"
                 "subprocess.run([sys.executable, '-c', f'x = bytearray({n})\\nfor i in range(0, len(x), 4096): x[i] = 1'])\n")
    small, large = (shared.submit(f"executable = /usr/bin/python3\narguments = {shared.work}/parent.py {mib}\n"
                                  "request_memory = 64 MB\nrequest_disk = 1 MB\nqueue\n") for mib in (1, 400))
    shared.wait_state(f"{small}.0", "completed")
    job = shared.wait_state(f"{large}.0", "held", "completed")
    if "v1" in limits(shared).get("memory", "") or "v2" in limits(shared).get("memory", ""):
        assert (job["state"], job["hold_code"]) == ("held", 34), job
        assert "exit code 0" in job["hold_reason"] and "killed" in job["hold_reason"], job
        assert "killed" in shared.cli("show", f"{large}.0") and "killed" in shared.cli("log", f"{large}.0")
        assert f"drover edit {large} memory=SIZE" in shared.cli("wait", str(large), code=3).err
    else:  # a limit on the address space alone: the child is told that there is no memory, and nobody kills it
        assert (job["state"], job["exit_code"]) == ("completed", 0), job
    shared.cli("rm", str(large), code=None)


def test_core_files_are_off_and_files_are_few(shared):
    shared.run(sh("ulimit -c; ulimit -n", output="limits.out"))
    core, files = shared.read("limits.out").split()
    assert core == "0" and int(files) >= 1024


def test_the_agents_secrets_are_not_in_the_environment(shared):
    shared.run(sh("env", output="env.out"))
    text = shared.read("env.out")
    assert "token" not in text.lower()
    assert "DROVER_DIR" not in text


def test_no_descriptor_is_inherited(shared):
    shared.run(sh("ls -l /proc/self/fd", output="fd.out"))
    lines = [line for line in shared.read("fd.out").splitlines() if "->" in line]
    assert len(lines) <= 4, lines


@pytest.mark.parametrize("name", ["../escape", "/tmp/drover-escape", "a/../../escape"])
def test_outputs_stay_inside_the_scratch_folder(shared, name):
    out = shared.cli("submit", "-", stdin=sh("true", transfer_output_files=name), code=None)
    if out.code == 0:
        request = int(out.split()[1].rstrip(":"))
        shared.wait_state(f"{request}.0", "held")
        shared.cli("rm", str(request))
    else:
        assert "escape" in out.err


def test_an_output_that_is_a_link_out_of_the_folder(shared):
    request = shared.submit(sh("ln -s /etc/shadow got", transfer_output_files="got"))
    shared.wait_state(f"{request}.0", "held", "completed")
    if shared.exists("got"):
        assert "root:" not in shared.read("got")
    shared.cli("rm", str(request), code=None)
