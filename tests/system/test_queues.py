"""An agent of several queues: each with its own attributes, requirements, rank and limits."""
import os
import re
import shutil

import pytest

import agents
import exec_runner
from drover import sh, wait_until

THREE = """
attributes: {Site: '"here"'}
queues:
  - name: short
    walltime_max: 1h
    tags: [fast, test]
    cpus: 2
    memory: 512MiB
    requirements: TARGET.AllowedExecuteDuration =!= undefined
  - name: long
    cpus: 1
    memory: 512MiB
    rank: TARGET.JobPrio
    type: batch
    search_order: 7
    price: 0.5
    requirements: TARGET.WantLong =?= true
    attributes: {Rack: 7, Site: '"there"'}
  - name: gpu
    cpus: 4
    memory: 512MiB
    gpus: [a, b]
    resources: {Licence: 1}
    requirements: TARGET.RequestGPUs > 0 || TARGET.RequestLicence > 0
"""


def where(instance, job):
    return instance.job(job)["queue"]


def until_end(flag):
    return f"while [ ! -e {flag} ]; do sleep 0.05; done"


def test_each_queue_takes_what_it_wants(instance):
    instance.server()
    agents.start(instance, THREE)
    offered = agents.queues(instance, 3)
    assert sorted(offered) == ["gpu", "long", "short"]
    assert "short" in instance.cli("agents") and "long" in instance.cli("agents")
    flag = os.path.join(instance.work, "flag")
    short = instance.submit(sh(until_end(flag), allowed_execute_duration="60"))
    too_long = instance.submit(sh("true", allowed_execute_duration="7200"))
    long = instance.submit(sh("true", **{"+WantLong": "true", "requirements": "TARGET.Rack == 7 && TARGET.Site == \"there\" "
                              "&& TARGET.QueueType == \"batch\" && TARGET.SearchOrder == 7 && TARGET.Price == 0.5"}))
    tagged = instance.submit(sh("true", allowed_execute_duration="60", requirements='member("fast", TARGET.Tags) && '
                                'TARGET.WalltimeMax == 3600 && TARGET.Site == "here"'))
    instance.wait_state(f"{short}.0", "running")
    assert where(instance, f"{short}.0") == "short"
    instance.wait(long, tagged)
    assert {instance.history(r)[0]["queue"] for r in (long,)} == {"long"}
    assert instance.history(tagged)[0]["queue"] == "short"
    assert instance.job(f"{too_long}.0")["state"] == "idle"
    assert "WalltimeMax" in instance.cli("why", f"{too_long}.0")
    with open(flag, "w", encoding="utf-8"):
        pass
    instance.wait(short)


def test_rank_of_a_queue_decides_who_is_first(instance):
    instance.server()
    first, second, third = (instance.submit(sh(f"echo {n} >>{instance.work}/order", **{"+WantLong": "true", "+Weight": str(n)}))
                            for n in (1, 3, 2))
    agents.start(instance, THREE.replace("TARGET.JobPrio", "TARGET.Weight"))
    instance.wait(first, second, third)
    assert instance.read("order").split() == ["3", "2", "1"]


@pytest.mark.parametrize("wish, order", [("small-input", "plain brief heavy"), ("short-run", "brief plain heavy"),
                                         ("[large-memory, short-run]", "heavy plain brief")])
def test_wishes_of_a_queue_decide_who_is_first(instance, wish, order):
    """Of jobs of equal priority: those with small inputs, with short runs, with much memory, as the agent's file says."""
    instance.server()
    instance.write("big", "x" * 5000000)
    instance.write("middle", "x" * 500000)
    jobs = {"plain": {"request_memory": "40MB", "+ExpectedRunTime": "50"},
            "heavy": {"request_memory": "90MB", "+ExpectedRunTime": "100", "transfer_input_files": "big", "should_transfer_files": "YES"},
            "brief": {"request_memory": "30MB", "+ExpectedRunTime": "5", "transfer_input_files": "middle", "should_transfer_files": "YES"}}
    requests = [instance.submit(sh(f"echo {name} >>{instance.work}/order", **more)) for name, more in jobs.items()]
    agents.start(instance, f"queues:\n  - {{name: one, cpus: 1, jobs_max: 1, memory: 512MiB, wish: {wish}}}\n")
    instance.wait(*requests)
    assert instance.read("order").split() == order.split()


def test_devices_go_to_one_job_at_a_time(instance):
    instance.server()
    agents.start(instance, THREE)
    agents.queues(instance, 3)
    flag = os.path.join(instance.work, "flag")
    seen = "echo $_CONDOR_AssignedGPUs $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES >out.$DROVER_MEMBER.tmp; " \
           "mv out.$DROVER_MEMBER.tmp out.$DROVER_MEMBER; "
    request = instance.submit(sh("cd " + instance.work + "; " + seen + until_end(flag), request_gpus="1", queue="queue 2"))
    wait_until(lambda: instance.exists("out.0") and instance.exists("out.1"))
    assert sorted([instance.read("out.0").split(), instance.read("out.1").split()]) == [["a"] * 3, ["b"] * 3]
    third = instance.submit(sh("echo $_CONDOR_AssignedGPUs", request_gpus="1", output="third"))
    licence = instance.submit(sh("echo ${CUDA_VISIBLE_DEVICES-unset} $NVIDIA_VISIBLE_DEVICES $_CONDOR_AssignedLicence",
                                 request_Licence="1", output="licence"))
    instance.wait(licence)
    assert instance.read("licence").split() == ["none", "0"]
    assert instance.job(f"{third}.0")["state"] != "running"
    with open(flag, "w", encoding="utf-8"):
        pass
    instance.wait(request, third)
    assert instance.read("third").strip() in ("a", "b")


def test_devices_are_held_through_a_kill(instance):
    """What a running job has is not given out again by the agent that takes the job over."""
    instance.server()
    agent = agents.start(instance, THREE)
    agents.queues(instance, 3)
    flag = os.path.join(instance.work, "flag")
    holder = instance.submit(sh(until_end(flag), request_gpus="2"))
    plain = instance.submit(sh(until_end(flag), allowed_execute_duration="600"))
    instance.wait_state(f"{holder}.0", "running")
    instance.wait_state(f"{plain}.0", "running")
    agent.kill()
    agents.start(instance, THREE)
    wait_until(lambda: instance.agents("connected"))
    later = instance.submit(sh("echo $_CONDOR_AssignedGPUs", request_gpus="1", output="later"))
    after = instance.run(sh("true", allowed_execute_duration="60"))
    assert instance.history(after)[0]["queue"] == "short"
    assert instance.job(f"{holder}.0")["state"] == "running"
    assert where(instance, f"{holder}.0") == "gpu" and where(instance, f"{plain}.0") == "short"
    assert instance.job(f"{later}.0")["state"] != "running"
    with open(flag, "w", encoding="utf-8"):
        pass
    instance.wait(holder, plain, later)
    assert instance.read("later").strip() in ("a", "b")
    assert "lost" not in {e["event"] for r in (holder, plain) for e in instance.events(f"{r}.0")}


def test_queues_share_the_machine(instance):
    """Two queues of two processors each, of an agent that has two in all: never more than two jobs at once."""
    instance.server()
    agents.start(instance, "cpus: 2\nqueues:\n  - name: a\n  - name: b\n")
    agents.queues(instance, 2)
    count = f"cd {instance.work}; mkdir run.$DROVER_MEMBER; ls -d run.* | wc -l >>most; sleep 0.2; rmdir run.$DROVER_MEMBER"
    instance.run(sh(count, queue="queue 12"))
    assert max(int(n) for n in instance.read("most").split()) == 2


def test_no_more_jobs_than_a_queue_may_have(instance):
    """jobs_max, whatever else there is room for: the others wait, and each is begun when one has ended."""
    instance.server()
    agents.start(instance, "queues:\n  - {name: few, cpus: 8, jobs_max: 2}\n")
    agents.queues(instance, 1)
    request = instance.submit(sh(f"cd {instance.work}; mkdir run.$DROVER_MEMBER; ls -d run.* | wc -l >>most; "
                                 + until_end("go.$DROVER_MEMBER") + "; rmdir run.$DROVER_MEMBER", queue="queue 6"))
    ended = 0
    while ended < 6:
        running = wait_until(lambda: len(now := [n for n in range(6) if instance.exists(f"run.{n}")]) == 2 and now)
        row = fr"n1 +connected +few +{8 - len(running)}/8 .* {len(running)} +[0-9]+ +"
        wait_until(lambda r=row: re.search(r, instance.cli("agents")))
        for n in running:
            instance.write(f"go.{n}", "")
        ended += len(running)
        wait_until(lambda: len(instance.history(request)) == ended)
    assert max(int(n) for n in instance.read("most").split()) == 2
    assert [(j["state"], j["exit_code"]) for j in instance.history(request)] == [("completed", 0)] * 6


def test_a_queue_that_has_gone_sees_its_jobs_to_their_end(instance):
    instance.server()
    agent = agents.start(instance, THREE)
    agents.queues(instance, 3)
    flag = os.path.join(instance.work, "flag")
    request = instance.submit(sh(until_end(flag) + "; exit 3", **{"+WantLong": "true"}))
    instance.wait_state(f"{request}.0", "running")
    agent.stop()
    agents.start(instance, "queues:\n  - name: other\n")
    wait_until(lambda: instance.agents("connected"))
    with open(flag, "w", encoding="utf-8"):
        pass
    instance.wait(request, code=None)
    done = instance.history(request)[0]
    assert (done["exit_code"], done["queue"]) == (3, "long")


def test_a_mistake_in_a_queue_is_named_with_its_line(instance):
    instance.server()
    agent = agents.start(instance, "queues:\n  - name: a\n    requirments: x\n")
    assert agent.process.wait(90) == 2
    assert "n1.yaml:5:" in agent.output() and "requirements" in agent.output()


def test_a_machine_without_the_batch_system_is_told(instance):
    """Which command is missing, and that PATH would have it."""
    instance.server()
    empty = os.path.join(instance.base, "empty")
    os.mkdir(empty)
    os.symlink("/usr/bin/python3", os.path.join(empty, "python3"))
    instance.env["PATH"] = empty
    agents.start(instance, "queues:\n  - {name: pool, runner: htcondor}\n  - {name: lsf, runner: exec, exec: {program: lsf, poll: 1}}\n")
    wait_until(lambda: "cannot start condor_q: No such file or directory in PATH" in instance.cli("agents"))
    wait_until(lambda: "cannot start bjobs of LSF: No such file or directory; the agent's PATH" in instance.cli("agents"))


def test_programs_that_come_with_drover_are_named(instance):
    """By name, wherever it is installed; what is not there is a mistake in the file."""
    prefix = os.path.join(instance.base, "prefix")
    os.makedirs(os.path.join(prefix, "bin"))
    os.makedirs(os.path.join(prefix, "share/drover/runners"))
    for name in ("drover-agent", "drover-shepherd", "drover-mover"):
        shutil.copy(os.path.join(instance.build, "bin", name), os.path.join(prefix, "bin"))
    shutil.copy(exec_runner.PROGRAM, os.path.join(prefix, "share/drover/runners/in-a-folder"))
    instance.server()
    config = "queues:\n  - name: here\n    runner: exec\n    exec: {program: %s, folder: " + f"{instance.base}/jobs}}\n"
    wrong = agents.start(instance, config % "ou-a-folder", program=os.path.join(prefix, "bin/drover-agent"))
    wait_until(lambda: not wrong.running())
    assert wrong.process.returncode == 2
    assert ".yaml:6: queue here: " in wrong.output() and "no program 'ou-a-folder' comes with Drover" in wrong.output()
    agents.start(instance, config % "in-a-folder", program=os.path.join(prefix, "bin/drover-agent"))
    agents.offering(instance)
    request = instance.run(sh("echo done", output="out"))
    assert instance.read("out") == "done\n" and instance.history(request)[0]["queue"] == "here"
