"""What is particular to HTCondor: holds and evictions in the pool, what a job's words become there, machines of any domain."""
import glob

import pytest

import agents
from drover import sh, wait_until
from test_runners import begin, until

pytest_plugins = ["batch_systems"]


@pytest.fixture
def queue(instance, condor_pool):
    return begin(instance, condor_pool)


def written(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def started(queue, request, times=1):
    """Waits until it runs; returns its id in the pool."""
    wait_until(lambda: queue.exists("pids") and len(queue.read("pids").split()) == times)
    queue.wait_state(f"{request}.0", "running")
    jobs = wait_until(lambda: [job[0] for job in queue.system.jobs() if job[1] == "2"])
    assert len(jobs) == 1
    return jobs[0]


def test_somebodys_hold_of_what_runs_is_told(queue):
    request = queue.submit(sh(f"echo $$ >>{queue.work}/pids; sleep 600"))
    queue.system.condor("hold", started(queue, request), "-reason", "not in my pool")
    queue.wait_state(f"{request}.0", "held")
    assert "not in my pool" in queue.job(f"{request}.0")["hold_reason"]
    wait_until(lambda: not queue.system.jobs())


@pytest.mark.parametrize("verb", ["hold", "rm"])
def test_what_is_ended_there_may_take_its_time(instance, condor_pool, verb):
    """The pool says held or removed at once; the program goes on until it has done what it must."""
    queue = begin(instance, condor_pool, agents.batch_queues(condor_pool).replace("kill_grace: 1s", "kill_grace: 20s"))
    work = queue.work
    request = queue.submit(sh(f"trap 'echo told >{work}/told; {until(work + '/flag')}; exit 0' TERM; echo $$ >>{work}/pids; "
                              "while :; do sleep 0.2; done"))
    queue.system.condor(verb, started(queue, request))
    wait_until(lambda: queue.written("told"))
    queue.run(sh("true"))  # by when the pool has been asked again
    assert queue.job(f"{request}.0")["state"] == "running"
    queue.write("flag", "")
    queue.wait_state(f"{request}.0", "held")
    assert len(queue.read("pids").split()) == 1
    wait_until(lambda: not queue.system.jobs())


def test_evicted_and_run_again(queue):
    """Not by the pool: that job leaves it, and Drover submits another one."""
    request = queue.submit(sh(f"echo $$ >>{queue.work}/pids; sleep 600"))
    first = started(queue, request)
    queue.system.condor("vacate_job", first)
    assert started(queue, request, 2) != first
    queue.cli("rm", str(request))
    wait_until(lambda: not queue.system.jobs())
    assert len(queue.read("pids").split()) == 2


def test_a_killed_program_may_be_the_pools_doing(queue):
    """A machine that is switched off kills the program a moment before the script, which writes of an end of its own."""
    request = queue.submit(sh(f"echo $$ >>{queue.work}/pids; sleep 600"))
    first = started(queue, request)
    queue.agent.kill()
    queue.system.condor("vacate_job", first)
    pattern = f"{queue.base}/n1/**/.drover_step.0.done"
    done = wait_until(lambda: [path for path in glob.glob(pattern, recursive=True) if written(path).endswith(" killed\n")])[0]
    with open(done, "w", encoding="utf-8") as f:
        f.write("ended 137 itself\n")
    queue.agent = agents.start(queue, queue.config)
    wait_until(lambda: len(queue.read("pids").split()) == 2)
    queue.cli("rm", str(request))
    wait_until(lambda: not queue.system.jobs())


def test_what_a_jobs_words_become(queue):
    """Machines of other domains will do where the queue says so."""
    queue.agent.stop()
    queue.config = agents.batch_queues(queue.system).replace("poll:", "filesystem_domain: any, '+Site': '\"here\"', poll:")
    queue.agent = agents.start(queue, queue.config)
    agents.offering(queue)
    request = queue.submit(sh(f"echo $$ >>{queue.work}/pids; sleep 600", request_cpus="2", request_memory="64",
                              allowed_execute_duration="300", **{"+HtcondorRequirements": '"Cpus > 0"', "+BatchQueue": '"long"'}))
    job = started(queue, request)
    ad = queue.system.condor.json("q", job)[0]
    assert (ad["RequestCpus"], ad["RequestMemory"], ad["AllowedJobDuration"]) == (2, 64, 360)
    assert (ad["Site"], ad["BatchQueue"], ad["DroverCount"]) == ("here", "long", 1)
    assert ad["JobBatchName"] == ad["DroverName"] and ad["DroverName"].startswith("drover-")
    hop = wait_until(lambda: [h for h in queue.json("path", f"{request}.0")["hops"] if h.get("native")])[0]
    assert (hop["runner"], hop["native"]) == ("htcondor", job.split(".", maxsplit=1)[0])
    queue.cli("rm", str(request))
