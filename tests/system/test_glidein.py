"""Agents as jobs of somebody else's cluster: drover glidein, on a real Slurm and a real Grid Engine."""
import json
import os
import re
import subprocess
import uuid

import pytest

import agents
import users
from drover import free_port, processes, sh, wait_until

pytest_plugins = ["batch_systems"]
QUICK = ("--cpus", "2", "--memory", "200M", "--idle", "3s")


def listening(instance, more=""):
    """A server that agents of other machines reach."""
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"listen: 127.0.0.1:{free_port()}\n{more}")
    return instance.server()


def cluster(instance, system):
    """An agent beside the batch system: all that its jobs can be is glide-ins."""
    instance.head = agents.start(instance, agents.batch_queues(system, more="    requirements: TARGET.DroverGlidein isnt undefined\n"), name="head")
    agents.offering(instance, system.name)


def start(instance, system, *options):
    said = instance.cli("glidein", "start", "--queue", system.name, "--walltime", "10m", *QUICK, *options)
    return int(re.match(r"request (\d+): ", said)[1])


def node_states(instance):
    return {n["name"]: n["state"] for n in instance.json("nodes")["nodes"] if n["name"] != "head"}


def in_a_glidein(jobs):
    assert all(j["agent"].startswith("g-") for j in jobs), jobs


@pytest.mark.parametrize("kind", ["alpha", "grid"])
def test_they_run_jobs_and_go_when_idle(instance, request, kind):
    system = request.getfixturevalue(kind)
    listening(instance)
    cluster(instance, system)
    jobs = instance.submit(sh("sleep 0.2; echo $DROVER_QUEUE", queue="queue 6", allowed_execute_duration=60))
    long = instance.submit(sh("true", allowed_execute_duration=86400))
    mine = start(instance, system, "--count", "2", "--name", "g")
    instance.wait(jobs)
    in_a_glidein(instance.history(jobs))
    assert instance.job(f"{long}.0")["state"] == "idle"  # it does not fit into what is left of their walltime
    instance.wait(mine)
    assert [j["exit_code"] for j in instance.history(mine)] == [0, 0]
    wait_until(lambda: not system.jobs())
    assert len(node_states(instance)) == 2
    wait_until(lambda: set(node_states(instance).values()) <= {"drained"})
    # A token is good for one agent, and nothing of the glide-ins is left on the node.
    assert not [t for t in instance.json("token", "list")["tokens"] if t["kind"] == "agent" and t["name"].startswith("g-") and t["uses"]]
    assert not [pid for pid in processes(instance.base, "drover-agent") if pid != instance.head.pid]
    instance.cli("rm", str(long))


def test_their_tokens_are_files_of_their_own(instance, alpha):
    """0600, in a folder that only their user enters; nothing of it in the batch system, or in what the job shows."""
    listening(instance)
    cluster(instance, alpha)
    mine = start(instance, alpha, "--idle", "10m", "--name", "g")
    wait_until(lambda: list(node_states(instance).values()) == ["idle"])
    found = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(instance.base, "head")) for name in names
             if name.startswith("token.")]
    for path in found:
        assert os.stat(path).st_mode & 0o77 == 0
        assert os.stat(os.path.dirname(path)).st_mode & 0o77 == 0
    assert found
    # They are readable to the user whose jobs a glide-in runs: its jobs see none of those that wait to be used.
    job = instance.submit(sh(f"cat {' '.join(found)}; find {instance.base}/head -name 'token*' -exec cat {{}} +; echo looked", output="out", error="err",
                             allowed_execute_duration=60))
    instance.wait(job)
    in_a_glidein(instance.history(job))
    assert instance.read("out") == "looked\n", instance.read("out")
    shown = instance.cli("show", f"{mine}.0", "--ad") + alpha.tool("scontrol", "show", "job")
    assert "drover-agent-token" not in shown
    assert "drover-agent-token" not in instance.cli("show", f"{mine}.0", "--script")
    instance.cli("rm", str(mine))
    wait_until(lambda: not alpha.jobs())


def test_the_portable_agent_is_sent(instance, alpha, build):
    """Its programs are unpacked beside the glide-in's other files, and run from there."""
    tarball = subprocess.run([os.path.join(os.path.dirname(build), "tools", "agent-tarball"), build, instance.base], stdout=subprocess.PIPE,
                             text=True, check=True, timeout=300).stdout.strip()
    listening(instance)
    cluster(instance, alpha)
    jobs = instance.submit(sh("xargs -0 </proc/$PPID/cmdline", allowed_execute_duration=60, output="said"))
    mine = start(instance, alpha, "--name", "g", "--package", tarball)
    instance.wait(jobs)
    in_a_glidein(instance.history(jobs))
    assert re.search(r"/package/drover-agent-[^ ]*/drover-shepherd --inhibit-cache ", instance.read("said")), instance.read("said")
    instance.wait(mine)
    wait_until(lambda: not alpha.jobs())


def test_one_that_is_removed_gives_its_jobs_back(instance, alpha):
    listening(instance)
    cluster(instance, alpha)
    mine = start(instance, alpha, "--idle", "10m", "--name", "g")
    job = instance.submit(sh(f"echo x >>{instance.work}/ran; [ -e {instance.work}/go ] || sleep 600", allowed_execute_duration=60))
    wait_until(lambda: instance.exists("ran"))
    instance.cli("rm", str(mine))
    instance.wait_state(f"{job}.0", "idle")
    wait_until(lambda: not alpha.jobs())
    assert not [pid for pid in processes(instance.base, "drover-shepherd") if pid not in processes(os.path.join(instance.base, "head"))]
    instance.write("go", "")
    start(instance, alpha, "--name", "g")
    instance.wait(job)
    assert instance.read("ran").split() == ["x", "x"]


def test_one_that_is_lost_is_not_begun_again(instance, alpha):
    """Its token is used up: it is removed while it waits, or fails when the batch system starts it again."""
    listening(instance)
    cluster(instance, alpha)
    mine = start(instance, alpha, "--idle", "10m", "--name", "g")
    wait_until(lambda: list(node_states(instance).values()) == ["idle"])
    instance.cli("vacate", f"{mine}.0")
    instance.wait(mine, code=1)
    job, = instance.history(mine)
    assert job["state"] == "removed" or job["exit_code"] == 1
    assert "idle" not in node_states(instance).values()
    wait_until(lambda: not alpha.jobs())


def test_as_many_as_the_queue_needs(instance, alpha, build):
    """The wishlist starts glide-ins by the program that comes with Drover, and lets them go."""
    program = os.path.join(os.path.dirname(build), "dist", "provisioners", "glidein")
    port = free_port()
    instance.env["TMPDIR"] = instance.base
    os.makedirs(instance.dir)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""listen: 127.0.0.1:{port}
provision: {{wait: 0s, horizon: 20s}}
provisioners:
  slurm:
    kind: exec
    command: [{program}, --dir, {instance.dir}]
    server: 127.0.0.1:{port}
    max_nodes: 2
    poll: 1s
    period: 2s
    idle_after: 1s
    boot_limit: 1h
    shapes:
      node: {{cpus: 2, memory: 200M, price: 0, with: {{queue: alpha, walltime: 10m, idle: 5m}}}}
""")
    instance.server()
    cluster(instance, alpha)
    jobs = instance.submit(sh("sleep 0.2", queue="queue 8"))
    instance.wait(jobs)
    assert {re.match(r"slurm-node-\d+$", j["agent"]) is not None for j in instance.history(jobs)} == {True}
    wait_until(lambda: set(node_states(instance).values()) == {"retired"})
    wait_until(lambda: not alpha.jobs())
    wait_until(lambda: instance.json("queue")["requests"] == [])


def test_a_name_of_a_user_s_is_no_machine(instance, build):
    """Machines are told by the names of requests, which every user may give: those of others are neither listed nor removed."""
    instance.server()
    os.chmod(instance.dir, 0o755)
    for folder in (instance.base, os.path.dirname(instance.base)):
        os.chmod(folder, 0o711)
    program = os.path.join(os.path.dirname(build), "dist", "provisioners", "glidein")
    values = {"Cmd": "/bin/true", "JobBatchName": "drover.x.n.1", "JobUniverse": 5}
    theirs = users.as_user(users.ONE, lambda: instance.api("POST", "/v1/requests", {"uuid": str(uuid.uuid4()), "parts": [{"values": values}]}))["id"]
    ours = instance.submit(sh("true", batch_name="drover.x.n.2"))

    def call(verb, **asked):
        return subprocess.run([program, "--dir", instance.dir, verb], input=json.dumps(asked) + "\n", text=True, env=instance.env, check=True,
                              stdout=subprocess.PIPE).stdout.splitlines()

    assert list(map(json.loads, call("list", prefix="drover.x."))) == [{"instance": str(ours), "tag": "drover.x.n.2"}, {"end": True}]
    for number, tag in ((theirs, "drover.x.n.1"), (ours, "drover.x.n.2")):
        call("stop", instance=str(number), tag=tag)
    assert [r["id"] for r in instance.json("queue")["requests"]] == [theirs]


def test_wrong_calls_are_told(instance):
    listening(instance)
    for words, said in ((["--walltime", "1h"], "--queue NAME"), (["--queue", "q"], "--walltime TIME"),
                        (["--queue", 'q" || true || "', "--walltime", "1h"], "letters, digits"),
                        (["--queue", "q", "--walltime", "1h", "--count", "0"], "from 1 to 1000"),
                        (["--queue", "q", "--walltime", "1h", "--memory", "much"], "as in 2G"),
                        (["--queue", "q", "--walltime", "1h", "--token-file", "t"], "--name")):
        assert said in instance.cli("glidein", "start", *words, code=2).err
    assert instance.json("token", "list")["tokens"] == []
