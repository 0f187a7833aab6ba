"""An agent with `users` and containers: each user's podman, without root, with his own images."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

import agents
from containers import IMAGE, Docker, Podman, busybox_tree
from drover import Failed, alive, processes, wait_until
from users import ONE, TWO, Site, mode_of

pytest_plugins = ["batch_systems"]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")

QUEUE = ("kill_grace: 1s\nqueues:\n  - name: here\n    cpus: 4\n"
         "    container: {engine: podman, program: PROGRAM, network: none, pull: never}\n")


class UsersPodman(Podman):
    """A store for each user."""

    def __init__(self, folder):
        super().__init__(folder)
        self._write("storage.conf", f'[storage]\ndriver = "overlay"\nrootless_storage_path = "{self.folder}/$USER/store"\n')
        self._write("containers.conf", f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "{self.runtime}"\n')
        # podman writes in its user's home; those of Debian's users are not theirs
        self.program = self._write("podman", "#!/bin/sh\n" + "".join(f"export {k}={v}\n" for k, v in self.env.items()) +
                                   f"export USER=$(id -un)\nexport XDG_RUNTIME_DIR={self.folder}/$USER/run\n"
                                   f"HOME={self.folder}/$USER exec podman \"$@\"\n")
        os.chmod(self.program, 0o755)
        for user in (ONE, TWO):
            for path in (os.path.join(self.folder, user.pw_name), os.path.join(self.folder, user.pw_name, "run")):
                os.makedirs(path, 0o700 if path.endswith("run") else 0o755)
                os.chown(path, user.pw_uid, user.pw_gid)

    def run(self, user, *args):
        env = {"PATH": os.environ["PATH"], "HOME": user.pw_dir, "USER": user.pw_name, **self.env}
        p = subprocess.run([self.program, *args], env=env, capture_output=True, text=True, check=False, cwd="/", user=user.pw_uid,
                           group=user.pw_gid, extra_groups=[])
        if p.returncode:
            raise Failed(p.stdout + p.stderr)
        return p.stdout

    def names_of(self, user):
        return self.run(user, "ps", "--all", "--format", "{{.Names}}").split()

    def end(self):
        for user in (ONE, TWO):
            self.run(user, "rm", "--force", "--all", "--time", "0")
            for pid in processes(f"{self.folder}/{user.pw_name}"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def podman(request):
    folder = tempfile.mkdtemp(prefix="up-", dir=request.config.drover_tmp)
    one = UsersPodman(folder)
    try:
        tar = one.tar = busybox_tree(one.folder)
        for path in (request.config.drover_tmp, folder, one.folder):
            os.chmod(path, 0o755)
        os.chmod(tar, 0o644)
        one.run(ONE, "import", "--signature-policy", one.policy, tar, IMAGE)
        yield one
    finally:
        one.end()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def place(instance, podman):
    instance.env.update(podman.env)
    site = Site(instance)
    site.more = QUEUE.replace("PROGRAM", podman.program)
    site.node = site.agent(more=site.more)
    agents.offering(instance)
    return site


def submit(place, user, script, **more):
    return place.submit(user, script, ContainerImage=f"docker://{IMAGE}", WantContainer=True, **more)


def test_a_container_is_its_users(place, podman):
    """Files are his, the image is his own, and nobody else's sandbox is seen."""
    home = place.home(ONE)
    place.write(ONE, "in", "data\n")
    go = "go"
    request = submit(place, ONE, f"cat in; echo new >made; pwd >where; while [ ! -e {go} ]; do sleep 0.1; done; echo $DROVER_JOB",
                     TransferInput="in", ShouldTransferFiles="YES", WhenToTransferOutput="ON_EXIT")
    place.instance.wait_state(f"{request}.0", "running")
    sandbox, = [os.path.join(place.state, "jobs", n) for n in os.listdir(os.path.join(place.state, "jobs")) if n[0].isdigit()]
    wait_until(lambda: os.path.exists(os.path.join(sandbox, "where")))
    made = os.stat(os.path.join(sandbox, "made"))
    assert (made.st_uid, made.st_gid) == (ONE.pw_uid, ONE.pw_gid) and mode_of(sandbox) == 0o730
    assert len(podman.names_of(ONE)) == 1 and podman.names_of(TWO) == []
    with open(os.path.join(sandbox, go), "w", encoding="utf-8"):
        pass
    place.instance.wait(request)
    assert place.text(ONE, "out") == f"data\n{request}.0\n"
    assert place.text(ONE, "made") == "new\n" and place.owner(ONE, "made") == (ONE.pw_uid, ONE.pw_gid)
    wait_until(lambda: not podman.names_of(ONE))
    assert os.path.isdir(home)


def test_in_a_batch_system(instance, podman, request):
    """On a node, too, the engine is the user's."""
    cluster = request.getfixturevalue("alpha")
    os.chmod(os.path.dirname(cluster.dir), 0o711)
    site = Site(instance)
    site.agent(more=agents.batch_queues(
        cluster, more=f"    container: {{engine: podman, program: {podman.program}, network: none, pull: never}}\n"))
    agents.offering(instance)
    site.write(ONE, "in", "data\n")
    number = submit(site, ONE, "cat in; echo new >made; [ -d /usr ] || echo inside", TransferInput="in", ShouldTransferFiles="YES",
                    WhenToTransferOutput="ON_EXIT")
    instance.wait(number)
    assert site.text(ONE, "out") == "data\ninside\n" and site.owner(ONE, "made") == (ONE.pw_uid, ONE.pw_gid)
    wait_until(lambda: not podman.names_of(ONE))
    wait_until(lambda: not [n for n in os.listdir(os.path.join(site.state, "jobs")) if n[0].isdigit()])


@pytest.mark.long
def test_words_of_a_job_hold_its_owner_only(place, podman):
    """A job can say that the registry is in trouble as its engine would. Its owner's jobs with the image wait then, nobody else's do."""
    podman.run(TWO, "import", "--signature-policy", podman.policy, podman.tar, IMAGE)
    place.node.stop()
    place.node = place.agent(more="transfer_retry: 10h\n" + place.more)
    liar = submit(place, ONE, "echo Error: reading the manifest: connection refused >&2; exit 125")
    wait_until(lambda: "an image is tried again later" in place.node.output())
    other = submit(place, ONE, "true")
    place.instance.wait(submit(place, TWO, "echo fine"))
    assert place.text(TWO, "out") == "fine\n"
    for request in (liar, other):
        assert "connection refused" in place.instance.cli("why", f"{request}.0")
        place.instance.cli("rm", str(request))
    podman.run(TWO, "rmi", "--force", IMAGE)


def test_an_engine_has_no_word_of_its_agents(instance, podman):
    """What the agent was started with is not given to a user's engine, but for what engines are set by."""
    shown = os.path.join(podman.folder, ONE.pw_name, "environment")
    program = os.path.join(podman.folder, "shows")
    with open(program, "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\nenv >{shown}\nexec {podman.program} "$@"\n')
    os.chmod(program, 0o755)
    instance.env.update(podman.env, SECRET_OF_THE_AGENT="1", CONTAINERS_OF_THE_ADMIN="1")
    site = Site(instance)
    site.agent(more=QUEUE.replace("PROGRAM", program))
    agents.offering(instance)
    instance.wait(submit(site, ONE, "true"))
    with open(shown, encoding="utf-8") as f:
        words = f.read()
    assert "CONTAINERS_OF_THE_ADMIN" in words and "SECRET_OF_THE_AGENT" not in words, words


def test_an_image_of_another_is_not_there(place):
    request = submit(place, TWO, "true")
    job = place.instance.wait_state(f"{request}.0", "held")
    assert IMAGE in job["hold_reason"], job["hold_reason"]


def test_removed_and_agent_killed(place, podman):
    """Neither a process nor a container is left."""
    request = submit(place, ONE, "sleep 54321")
    place.instance.wait_state(f"{request}.0", "running")

    def sleeps():
        return [pid for pid in processes("54321") if alive(pid)]

    wait_until(sleeps)
    place.node.kill()
    place.node = place.agent(more=place.more)
    assert sleeps()
    place.instance.cli("rm", str(request))
    wait_until(lambda: not sleeps())
    wait_until(lambda: not podman.names_of(ONE))
    wait_until(lambda: not [n for n in os.listdir(os.path.join(place.state, "jobs")) if n[0].isdigit()])


def test_docker(instance, request):
    """Only whom its daemon lets in has it; his files are his."""
    folder = tempfile.mkdtemp(prefix="ud-", dir=request.config.drover_tmp)
    for path in (request.config.drover_tmp, folder):
        os.chmod(path, 0o711)
    docker = Docker(folder, group=ONE.pw_name)
    try:
        docker.make_image()
        instance.env.update(docker.env)
        site = Site(instance)
        site.agent(more="kill_grace: 1s\nqueues:\n  - name: here\n    cpus: 4\n    container: {engine: docker, network: none, pull: never}\n")
        agents.offering(instance)
        site.write(ONE, "in", "data\n")
        request = submit(site, ONE, "cat in; echo new >made; id -u; [ -d /usr ] || echo inside", TransferInput="in",
                         ShouldTransferFiles="YES", WhenToTransferOutput="ON_EXIT")
        instance.wait(request)
        assert site.text(ONE, "out") == f"data\n{ONE.pw_uid}\ninside\n"
        assert site.owner(ONE, "made") == (ONE.pw_uid, ONE.pw_gid)
        other = submit(site, TWO, "true")
        reason = instance.wait_state(f"{other}.0", "held")["hold_reason"]
        assert "docker" in reason and "permission denied" in reason, reason
        wait_until(lambda: docker.names() == [])
        wait_until(lambda: not [n for n in os.listdir(os.path.join(site.state, "jobs")) if n[0].isdigit()])
    finally:
        docker.stop()
        shutil.rmtree(folder, ignore_errors=True)
