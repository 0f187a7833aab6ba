"""What is particular to Kubernetes: requests that fail, who is believed, why a pod waits, what it sees, and who ended it (kubernetes.py)."""
import os
import shutil
import subprocess
import tempfile

import pytest
import yaml

import agents
from drover import sh, wait_until
from kubernetes import LABEL, TOLERATE, Kubernetes, Schema
from test_runner_calls import Driver, Place, until
from users import Site

pytest_plugins = ["batch_systems"]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


@pytest.fixture
def drive(request, kubernetes):
    """The runner alone; settings may be changed before it starts."""
    folder = tempfile.mkdtemp(prefix="kr-", dir=request.config.drover_tmp)
    one = Place(request.config.getoption("--build"), folder, "kubernetes", dict(kubernetes.settings), kubernetes)
    yield one
    if one.driver:
        one.driver.stop("quit all")
    shutil.rmtree(folder, ignore_errors=True)


def logged(driver, text):
    return text in "\n".join(driver.lines())


def test_an_answer_that_is_lost_makes_no_second_job(drive, kubernetes):
    """Applied and not told, not applied, refused for the moment: each task runs once, as one Job with one pod."""
    d = drive.start()
    for task, what in enumerate(("cut after", "cut before", 500, 429, "garbage", "half"), 1):
        with kubernetes.lock:
            kubernetes.faults = [("PATCH", "/jobs/", what, 1)]
        d.say(f"submit {task} echo once >>ran")
        d.wait(f"ended {task} code=0")
        assert d.file(task, "ran") == "once\n"
    applied = [path for method, path in kubernetes.requests if method == "PATCH"]
    assert len(set(applied)) == kubernetes.made == 6
    for task in range(1, 7):
        d.say(f"forget {task}")
    wait_until(lambda: not kubernetes.job_objects)  # what is over is deleted


def test_lists_that_fail_end_nothing(drive, kubernetes):
    """Of Jobs, of pods, of events: a half list is none, and nothing is taken to be gone for it."""
    d = drive.start()
    d.say(f"submit 1 echo up >up; {until('go')}")
    d.wait("running 1")
    for part, what in (("/jobs", "half"), ("/jobs", "cut before"), ("/pods", "garbage"), ("/events", 403), ("/events", "half")):
        with kubernetes.lock:
            kubernetes.faults = [("GET", part, what, 1)]
        wait_until(lambda: not kubernetes.faults)
    seen = len(kubernetes.requests)
    wait_until(lambda: sum(path.endswith("/events") for _, path in kubernetes.requests[seen:]) > 2)
    with open(d.path(1, "go"), "w", encoding="utf-8"):
        pass
    d.wait("ended 1 code=0")
    assert kubernetes.made == 1 and not d.lines("lost")


def lists_and_watches(kubernetes):
    """What was asked about Jobs, in order."""
    with kubernetes.lock:
        return [path.rsplit("/", 1)[1] for method, path in kubernetes.requests if method == "GET" and path.endswith(("/jobs", "?watch"))]


def test_a_watch_replaces_lists(drive, kubernetes):
    """While nothing changes there is no list for several times `poll`; a change brings one."""
    d = drive.start()
    d.say(f"submit 1 echo up >up; {until('go')}")
    d.wait("running 1")
    wait_until(lambda: kubernetes.jobs() == [[kubernetes.jobs()[0][0], "running"]])

    def quiet():
        """The nodes were asked for again, which is done every five seconds, and no list of Jobs since the watch."""
        with kubernetes.lock:
            paths = [path for _, path in kubernetes.requests]
        at = max((i for i, path in enumerate(paths) if path.endswith(("/jobs", "?watch"))), default=0)
        return paths[at].endswith("?watch") and paths[at:].count("/api/v1/nodes") >= 2
    wait_until(quiet)
    before = len(lists_and_watches(kubernetes))
    kubernetes.evict(kubernetes.jobs()[0][0])
    d.wait("lost 1")
    assert lists_and_watches(kubernetes)[before] == "jobs"


@pytest.mark.parametrize("what", ["expired", "half", 403])
def test_watches_that_fail(drive, kubernetes, what):
    """Lists go on, and say what has become of the tasks."""
    kubernetes.faults = [("GET", "?watch", what, 1000)]
    d = drive.start()
    d.say(f"submit 1 {until('go')}")
    d.wait("running 1")
    seen = len(lists_and_watches(kubernetes))
    wait_until(lambda: lists_and_watches(kubernetes)[seen:].count("jobs") > 3)
    assert "jobs?watch" in lists_and_watches(kubernetes)
    with open(d.path(1, "go"), "w", encoding="utf-8"):
        pass
    d.wait("ended 1 code=0")
    assert kubernetes.made == 1 and not d.lines("lost")


def test_who_is_believed(drive, kubernetes):
    """A server that another authority has signed for is told nothing, not even the token; a token that is no good is named."""
    drive.settings["ca_file"] = os.path.join(kubernetes.folder, "other.pem")
    d = drive.driver = Driver(drive.build, drive.folder, drive.kind, drive.settings, drive.env)
    wait_until(lambda: logged(d, "does not answer"))
    assert logged(d, "certificate") and not kubernetes.requests
    d.stop("quit")
    drive.settings["ca_file"] = kubernetes.settings["ca_file"]
    kubernetes.write_token("stale")
    d = drive.driver = Driver(drive.build, drive.folder, drive.kind, drive.settings, drive.env)
    wait_until(lambda: logged(d, "Unauthorized"))
    kubernetes.write_token(kubernetes.token)  # it is renewed without a restart
    d.wait("ready")
    d.say("submit 1 true")
    d.wait("ended 1 code=0")


def begin(instance, kubernetes, **settings):
    kubernetes.settings = {**kubernetes.settings, **settings}
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(kubernetes))
    agents.offering(instance)
    return instance


def waits(instance, request, text):
    """The reason is in the job's path, and in why, in the cluster's words."""
    wait_until(lambda: text in instance.cli("path", f"{request}.0"), 60)
    wait_until(lambda: text in instance.cli("why", f"{request}.0"), 60)


def test_what_a_pod_is_made_of(instance, kubernetes):
    kubernetes.tainted = True
    begin(instance, kubernetes, tolerations="gpu=yes:NoSchedule", node_labels="zone=a disk.example.org/kind=ssd", service_account="runner",
          pull_secrets="one two", runtime_class="gvisor", priority_class="low")
    request = instance.submit(sh("sleep 600", request_cpus=2, request_memory="64M", request_gpus=1, **{
        "+KubernetesImage": '"registry.example.org/tools:1.2"', "+BatchProject": '"physics"', "+MaxWallTime": "10"}))
    instance.wait_state(f"{request}.0", "running")
    job, = kubernetes.job_objects.values()
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    container, = pod["containers"]
    assert job["metadata"]["labels"] == {**LABEL, "app.kubernetes.io/part-of": "physics"}
    assert (spec["backoffLimit"], pod["restartPolicy"], container["image"]) == (0, "Never", "registry.example.org/tools:1.2")
    assert container["resources"]["limits"] == container["resources"]["requests"]
    assert container["resources"]["limits"]["cpu"] == "2000m" and container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert pod["nodeSelector"] == {"zone": "a", "disk.example.org/kind": "ssd"} and pod["tolerations"] == [TOLERATE]
    assert (pod["serviceAccountName"], pod["runtimeClassName"], pod["priorityClassName"]) == ("runner", "gvisor", "low")
    assert pod["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
    assert pod["securityContext"]["runAsUser"] == os.geteuid() and container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    instance.cli("rm", str(request))
    wait_until(lambda: not kubernetes.jobs())


def test_why_a_pod_waits(instance, kubernetes):
    """Its image cannot be pulled; a limit keeps the Job from making it; Kueue has not admitted it. What cannot be is held."""
    begin(instance, kubernetes)
    image = instance.submit(sh("true", **{"+KubernetesImage": '"missing/image"'}))
    waits(instance, image, "ImagePullBackOff")
    kubernetes.limit = 1
    large = instance.submit(sh("true", request_cpus=2))
    waits(instance, large, "maximum cpu usage per Container is 1")
    queued = instance.submit(sh("true", **{"+KubernetesQueue": '"team-a"'}))
    waits(instance, queued, "the Job is suspended")
    job, = [j for j in kubernetes.job_objects.values() if j["metadata"]["labels"].get("kueue.x-k8s.io/queue-name") == "team-a"]
    with kubernetes.lock:
        job["spec"]["suspend"] = False  # it is admitted
    instance.wait(queued)
    kubernetes.quota = len(kubernetes.job_objects)
    last = instance.submit(sh("true"))
    wait_until(lambda: "exceeded quota" in instance.logs())
    kubernetes.quota = None
    instance.wait(last)
    instance.cli("rm", str(image), str(large))
    wait_until(lambda: not kubernetes.jobs())


def test_an_eviction_is_no_fault_of_the_job(instance, kubernetes):
    """It runs again, as another attempt; what a person deletes is held."""
    begin(instance, kubernetes)
    go = os.path.join(instance.work, "go")
    request = instance.submit(sh(until(go), max_retries=0))
    instance.wait_state(f"{request}.0", "running")
    kubernetes.evict(kubernetes.jobs()[0][0])
    wait_until(lambda: instance.job(f"{request}.0")["starts"] == 2, 90)
    instance.write("go", "")
    instance.wait(request)
    assert kubernetes.made == 2


def test_what_is_offered(instance, kubernetes):
    """What is left of a quota, or of nodes without a taint; nothing without a reason."""
    begin(instance, kubernetes, quota="small")
    assert agents.offering(instance)["free"]["cpus"] == 3
    instance.agent.stop()
    kubernetes.settings.pop("quota")
    kubernetes.tainted = True
    instance.agent = agents.start(instance, agents.batch_queues(kubernetes))
    wait_until(lambda: "no node is ready and without a taint" in instance.logs())
    kubernetes.tainted = False
    wait_until(lambda: agents.offering(instance)["free"]["cpus"] == 2 * kubernetes.per_node)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts are made")
def test_a_pod_sees_its_sandbox_alone(request, instance):
    """Of the agent's folder it has its queue's scripts, which it cannot write, and nothing of the key or of another job."""
    folder = tempfile.mkdtemp(prefix="ki-", dir=request.config.drover_tmp)
    one = Kubernetes(os.path.join(folder, "cluster"), isolate=instance.base)
    try:
        begin(instance, one)
        other = instance.submit(sh("echo mine >secret; sleep 600", should_transfer_files="YES"))
        instance.wait_state(f"{other}.0", "running")
        looked = instance.run(sh(f"ls -A {instance.base}/n1 >seen; find {instance.base} -name secret -o -name '*key*' >>seen; "
                                 f"touch {instance.base}/n1/batch.kube/x 2>/dev/null && echo wrote >>seen; echo ran >>seen",
                                 should_transfer_files="YES", transfer_output_files="seen"))
        instance.cli("get", str(looked))
        with open(os.path.join(instance.work, "seen"), encoding="utf-8") as f:
            seen = f.read().split()
        assert "batch.kube" in seen and seen[-1] == "ran" and not {"wrote", "agent.key", "secret"} & set(seen)
        assert not [s for s in seen if "key" in s or s.endswith("secret")]
        instance.cli("rm", str(other))
        wait_until(lambda: not one.jobs())
        assert one.wrong == []
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("setting, word", [
    ({"rest": "https://x"}, "rest"), ({"ca_file": None}, "ca_file"), ({"namespace": "A b"}, "namespace"), ({"volume": "nfs:x"}, "claim:NAME"),
    ({"mount": None}, "mount is"), ({"tolerations": "gpu:Never"}, "KEY:EFFECT"), ({"node_labels": "zone"}, "LABEL=VALUE"),
    ({"image": None}, "the setting image"), ({"colour": "red"}, "no setting 'colour'")])
def test_settings_that_are_wrong(instance, setting, word):
    """The agent says which, and does not start."""
    words = {"rest": "https://127.0.0.1:1", "ca_file": "/x", "namespace": "drover", "image": "debian:12", "volume": "claim:drover", "mount": "/", **setting}
    settings = ", ".join(f"{name}: '{value}'" for name, value in words.items() if value is not None)
    path = instance.write("agent.yaml", f"server: unix:/nowhere\ndir: {instance.base}/a\nqueues:\n  - name: k\n    runner: kubernetes\n"
                                        f"    kubernetes: {{{settings}}}\n")
    p = subprocess.run([instance.program("drover-agent"), "--config", path], env=instance.env, capture_output=True, text=True, timeout=90, check=False)
    assert p.returncode != 0 and word in p.stdout + p.stderr


def test_the_manifest(instance):
    """The agent's pod is one by the published description, and the agent takes the file that the manifest gives it."""
    with open(os.path.join(ROOT, "dist", "kubernetes", "agent.yaml"), encoding="utf-8") as f:
        objects = {one["kind"]: one for one in yaml.safe_load_all(f)}
    Schema().check(objects["Deployment"]["spec"]["template"], "V1PodTemplateSpec", "template")
    text = objects["ConfigMap"]["data"]["agent.yaml"].replace("/var/lib", instance.base).replace("/etc/drover/token/token", instance.base + "/none")
    path = instance.write("agent.yaml", text)
    p = subprocess.run([instance.program("drover-agent"), "--config", path], env=instance.env, capture_output=True, text=True, timeout=90, check=False)
    assert "no certificate yet, and no token" in p.stdout + p.stderr or instance.base + "/none" in p.stdout + p.stderr
    rules = {verb for rule in objects["Role"]["rules"] for verb in rule["verbs"] if "jobs" in rule["resources"]}
    assert rules == {"create", "patch", "get", "list", "watch", "delete"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_no_queue_of_an_agent_with_users(instance, kubernetes):
    """All pods have the agent's user: the jobs of several would read each other's files."""
    site = Site(instance)
    agent = site.agent(more=agents.batch_queues(kubernetes), wait=False)
    wait_until(lambda: not agent.running())
    assert agent.process.returncode != 0 and "jobs of several users (`users`) cannot go through kubernetes" in agent.output()
    instance.daemons.remove(agent)
