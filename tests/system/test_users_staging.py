"""With `users`: a process that stages files as a job's user and makes no progress ends in its time, and is the trouble of its owner alone."""
import contextlib
import os
import signal

import pytest

from drover import of_process, processes, wait_until
from silent_disk import silent
from users import ONE, TWO, Site, as_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
FILES = {"ShouldTransferFiles": "YES", "WhenToTransferOutput": "ON_EXIT"}


CONFIG = "staging_silence: 3s\ncpus: 4\n"


@pytest.fixture
def site(instance):
    return Site(instance)


def processor_s(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def long_at_work(site, seconds):
    """The process that stages, once it has used so much of a processor."""

    def there():
        """files are staged for long"""
        for pid in processes(site.state, "drover-agent"):
            with contextlib.suppress(OSError):  # it may go meanwhile
                if b"--stage" in of_process(pid, "cmdline").split(b"\0") and processor_s(pid) > seconds:
                    return pid
        return None

    return wait_until(there)


def queue(site):
    return site.instance.agents()[0]["queues"][0]


def why(site, job):
    return site.instance.cli("why", job)


def test_inputs_on_a_disk_that_does_not_answer(site):
    site.agent(more=CONFIG)
    with silent(os.path.join(site.instance.base, "mnt")) as disk:
        stuck = site.submit(ONE, "true", TransferInput=f"{disk.folder}/data", **FILES)
        assert disk.asked.wait(90)
        site.instance.wait_state(f"{stuck}.0", "idle")
        said = f"staging made no progress for 3 s at {disk.folder}/data"
        assert said in site.instance.cli("log", f"{stuck}.0")
        other = site.submit(ONE, "true")
        wait_until(lambda: said in why(site, f"{other}.0"))
        site.run(TWO, "echo meanwhile")
        assert site.text(TWO, "out") == "meanwhile\n" and queue(site)["unreachable"] is None
        assert site.instance.job(f"{other}.0")["state"] == "idle"
        site.instance.cli("rm", str(stuck))
        disk.end()
        site.instance.wait(other)


def test_outputs_of_who_stops_what_delivers_them(site):
    """A user may stop his own processes. As long as it goes on, it may take its time."""
    site.agent(more=CONFIG + "filesystem_domain: elsewhere.example\n")
    request = site.submit(ONE, "truncate -s 20G big", TransferOutput="big", **FILES)
    child = long_at_work(site, 5)
    # A job that starts and ends in one turn of its agent is not told as started before its outputs are there.
    assert site.instance.job(f"{request}.0")["state"] in ("running", "staging")
    as_user(ONE, lambda: os.kill(child, signal.SIGSTOP))
    site.instance.wait_state(f"{request}.0", "held")
    assert "staging made no progress for 3 s at big" in why(site, f"{request}.0")
    assert queue(site)["unreachable"] is None
    site.instance.wait(site.submit(ONE, "true"))
