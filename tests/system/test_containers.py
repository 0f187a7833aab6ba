"""Jobs in containers, with a real podman and a real docker, and a real apptainer where there is one (containers.py)."""
import contextlib
import glob
import os
import shutil
import signal
import socket
import tempfile
import time

import pytest

import agents
from containers import ENGINES, IMAGE, Docker, Podman, engine_with_image, registry
from stores import Nginx
from test_credentials import SECRET, add, files_with, told_by_processes
from drover import Instance, alive, of_process, processes, sh, wait_until

QUEUE = ("kill_grace: 2s\nqueues:\n  - name: here\n    cpus: 8\n"
         "    container: {engine: podman, network: none, images: ['localhost/*', 'docker.io/*', '127.0.0.1:*', '/*/tree']}\n")
PODMAN_ONLY = pytest.mark.parametrize("engine", ["podman"], indirect=True)


@pytest.fixture(scope="module")
def podman(request):
    with engine_with_image(request.config.drover_tmp) as one:
        yield one


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    if request.param == "podman":
        yield request.getfixturevalue("podman")
    else:
        with engine_with_image(request.config.drover_tmp, request.param) as one:
            yield one


def start(instance, engine, config=QUEUE, keep=()):
    instance.engine = engine
    instance.config = config.replace("engine: podman", engine.settings)
    instance.env.update({name: value for name, value in engine.env.items() if name not in keep})
    instance.server()
    instance.agent = agents.start(instance, instance.config)
    containers_offered(instance)


def containers_offered(instance, count=1):
    """Waits until so many queues say that containers run there; returns their ads."""

    def offered():
        """queues with HasContainer"""
        ads = [q["ad"] for a in instance.agents("connected") for q in a["queues"] if q["ad"]]
        return ads if sum(ad.get("HasContainer") is True for ad in ads) == count else None

    return wait_until(offered)


def unborn(instance):
    """Processes of runc that wait to become the program of a container."""
    return [pid for pid in processes(instance.base) if of_process(pid, "cmdline").split(b"\0")[1:2] == [b"init"]]


@pytest.fixture(scope="module")
def place(request, engine):
    """A server and an agent, which no test stops."""
    folder = tempfile.mkdtemp(prefix="c-", dir=request.config.drover_tmp)
    one = Instance(request.config.getoption("--build"), folder)
    try:
        start(one, engine)
        yield one
        assert engine.names() == []
        wait_until(lambda: not unborn(one))
    finally:
        try:
            one.stop()
        finally:
            one.destroy()


def job(script, image=IMAGE, **more):
    return sh(script, universe="container", container_image=f"docker://{image}", **more)


def engine_job(place, script, **more):
    return sh(script, universe="container", container_image=place.engine.image, **more)


def inside(place, text):
    """Numbers of the processes, in whatever container, whose command line has the text."""
    return [pid for pid in processes(text) if alive(pid)]


def test_what_is_offered(place):
    ad = containers_offered(place)[0]
    assert ad["HasDocker"] is True and ad["ContainerEngine"] == place.engine.name
    assert ad["HasSIF"] is (place.engine.name == "apptainer")
    assert ad["ContainerEngineVersion"][0].isdigit()


def test_words_streams_and_the_environment(place):
    place.write("in put", "from stdin\n")
    image = place.engine.image.removeprefix("docker://")
    words = place.submit(f'universe = docker\ndocker_image = {image}\nexecutable = /bin/printf\n'
                         'arguments = "\'[%s]\\n\' \'it\'\'s\' \'a ""b""\' \'$HOME `x` \\\' \'grün ☃\' \'\' \'*\' \'--init\'"\n'
                         'output = words\nqueue\n')
    streams = place.submit(engine_job(
        place, "cat; echo err >&2; echo made >new; pwd; echo $HOME; ls /; ls /sys/class/net; id -u; env; cat /proc/self/status",
        input="in put", output="out", error="err", request_cpus="2",
        environment="\"GREETING='gu ten' HASH=#1 QUOTE='a\"\"b' LAST='x ' PLAIN=grün A.B=1 VALUE='$HOME `id` \\n'\""))
    place.wait(words, streams)
    assert place.read("words") == "[it's]\n[a \"b\"]\n[$HOME `x` \\]\n[grün ☃]\n[]\n[*]\n[--init]\n"
    out = place.read("out").splitlines()
    assert out[0] == "from stdin" and "/jobs/" in out[1] and out[2] == out[1]
    assert "usr" not in out and "lo" in out and "eth0" not in out and str(os.getuid()) in out
    for line in ("GREETING=gu ten", "HASH=#1", 'QUOTE=a"b', "LAST=x ", "PLAIN=grün", "OMP_NUM_THREADS=2", "VALUE=$HOME `id` \\n",
                 "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"):
        assert line in out
    assert place.read("err") == "err\n" and place.read("new") == "made\n"
    assert os.stat(os.path.join(place.work, "new")).st_uid == os.getuid()


def test_jobs_of_a_dataset(place):
    """The list of its files is there, cut for each job, with the names of those that were fetched; a path of the host that is not
    mounted is told by name."""
    web = Nginx(os.path.join(place.base, "web"))
    try:
        web.wait()
        for n in range(5):
            web.put(f"f{n}", f"of {n}\n".encode())
        place.write("list", "".join(f"{web.url}f{n}\n" for n in range(5)))
        request = place.submit(engine_job(place, "cat $FILELIST; cat $INPUTFILE0; echo $INPUTFILECOUNT $JOBINDEX", dataset="filelist:list",
                                          files_per_job="2", output="said.$(Process)"))
        place.wait(request)
        assert [place.read(f"said.{n}") for n in range(3)] == [
            "f0\nf1\nof 0\n2 0\n", "f2\nf3\nof 2\n2 1\n", "f4\nof 4\n1 2\n"]
    finally:
        web.stop()
    place.write("f0", "of 0\n")
    request = place.submit(engine_job(place, "true", dataset=f"{place.work}/f0"))
    place.wait_state(f"{request}.0", "held")
    assert f"dataset: the file {place.work}/f0 is not here" in place.cli("why", f"{request}.0")
    place.cli("rm", str(request))
    refused = f"universe = container\ncontainer_image = {place.engine.image}\ndataset = filelist:list\nqueue\n"
    assert "needs an executable" in place.cli("submit", "-", stdin=refused, code=1).err


@PODMAN_ONLY
def test_an_image_starts_its_own_program(place, engine):
    """Without an executable, as HTCondor has it; the arguments are those of its entry point, or take the place of its words."""
    tree = os.path.join(engine.folder, "tree.tar")
    for name, change in (("entry", 'ENTRYPOINT ["/bin/echo", "entry"]'), ("words", 'CMD ["/bin/echo", "words"]')):
        engine("import", "--signature-policy", engine.policy, "--change", change, tree, f"localhost/{name}:1")
    text = "universe = docker\ndocker_image = localhost/{0}:1\noutput = {1}\nerror = err\n{2}\nqueue\n"
    numbers = [place.submit(text.format("entry", "out1", "arguments = a b")), place.submit(text.format("words", "out2", ""))]
    nothing = place.submit(text.format("tiny", "out3", ""))
    place.wait(*numbers)
    assert place.read("out1") == "entry a b\n" and place.read("out2") == "words\n"
    assert "no command or entrypoint" in place.wait_state(f"{nothing}.0", "held")["hold_reason"]
    place.cli("rm", "-y", str(nothing))


def test_credentials_come_along(place):
    """In the container, private, renewed while it runs; nowhere else, and gone at the end."""
    add(place, "grid", SECRET + "one")
    request = place.submit(engine_job(
        place, "echo $BEARER_TOKEN_FILE; ls -l $BEARER_TOKEN_FILE; cat $BEARER_TOKEN_FILE >seen; while [ \"$(cat $BEARER_TOKEN_FILE)\" = "
        "\"$(cat seen)\" ]; do sleep 0.1; done; cat $BEARER_TOKEN_FILE >last", credentials="grid", output="out", container_target_dir="/box",
        transfer_output_files="seen, last"))
    box = wait_until(lambda: glob.glob(f"{place.base}/n1/jobs/{request}.0.*/seen"))[0][:-len("/seen")]
    assert files_with(place.base, SECRET, [f"{box}/.drover_credentials/", place.work, f"{box}/seen"]) == []
    assert told_by_processes(SECRET) == []
    add(place, "grid", SECRET + "two")
    place.wait(request)
    lines = place.read("out").splitlines()
    assert lines[0] == "/box/.drover_credentials/grid.use" and lines[1].startswith("-rw-------") and len(lines) == 2
    assert place.read("last") == SECRET + "two"
    wait_until(lambda: not files_with(place.base, SECRET, [place.work]))


def test_several_steps(place):
    """One after the other in one folder, which is mounted elsewhere in each; the last one's exit code is the job's."""
    image = place.engine.image.removeprefix("docker://")
    second = {"+Step1Cmd": '"/bin/sh"', "+Step1ContainerImage": f'"{place.engine.image}"', "+Step1ContainerWorkDir": '"/data"', "+Step1Out": '"d/two"'}
    text = {"container_image": place.engine.image, "universe": "container", "output": "d/one", "+StreamsInSandbox": "true",
            "+ContainerMounts": '"d/=/data"', "transfer_output_files": "d/one, d/two, d/three", "+StepCount": "2", **second}
    good = place.submit(sh("echo 1; echo made >/data/three; exit 3", **{"+IgnoreFailure": "true"}, **text, **{
        "+Step1Arguments": "\"-c 'pwd; cat one three; exit 4'\""}))
    stops = place.submit(sh("exit 5", **{**text, "when_to_transfer_output": "ON_SUCCESS", "+Step1Arguments": "\"-c 'exit 6'\""}))
    many = place.submit(sh("true", container_image=image, universe="container", **{"+StepCount": "65"}))
    place.wait(good, stops, code=None)
    assert [place.history(r)[0]["exit_code"] for r in (good, stops)] == [4, 5]
    assert place.read("one") == "1\n" and place.read("two") == "/data\n1\nmade\n" and place.read("three") == "made\n"
    place.wait_state(f"{many}.0", "held")
    assert "more than 64" in place.job(f"{many}.0")["hold_reason"]


def test_exit_codes_and_signals(place):
    codes = place.submit(engine_job(place, "exit $(( $DROVER_MEMBER * 25 ))", queue="queue 6"))
    killed = place.submit(engine_job(place, "kill -SEGV $$"))
    place.wait(codes, killed, code=None)
    assert {j["member"]: j["exit_code"] for j in place.history(codes)} == {n: n * 25 for n in range(6)}
    assert place.history(killed)[0]["exit_signal"] == signal.SIGSEGV


def test_a_script_comes_along_and_the_folder_is_elsewhere(place):
    script = ('#!/bin/sh\n[ "$0 $1" = "$2/tool.sh one" ] && [ "$(pwd) $DROVER_SCRATCH" = "/box /box" ] &&\n'
              '[ "$(cat data)" = read ] && exit 7\n')
    place.write("tool.sh", script, 0o755)
    place.write("data", "read")
    text = (f"universe = container\ncontainer_image = {place.engine.image}\nexecutable = tool.sh\n"
            "container_target_dir = /box\ntransfer_input_files = data\n")
    shipped = place.submit(text + "should_transfer_files = YES\narguments = one /box\nqueue\n")
    mounted = place.submit(text + f"arguments = one {place.work}\nqueue\n")
    place.wait(shipped, mounted, code=None)
    assert [place.history(r)[0]["exit_code"] for r in (shipped, mounted)] == [7, 7]


def test_memory_is_kept(place):
    request = place.submit(engine_job(place, "dd if=/dev/zero of=/dev/null bs=200M count=1"))
    place.wait_state(f"{request}.0", "held")
    assert "more than its memory of 32 MiB" in place.job(f"{request}.0")["hold_reason"]


def test_what_cannot_be_is_held(place):
    held = {
        place.submit(sh("true", universe="container", container_image=place.engine.no_image)): place.engine.no_image[9:18],
        place.submit(engine_job(place, "true").replace("/bin/sh", "/no/such/program")): "/no/such/program",
        place.submit(engine_job(place, "sleep 600", allowed_execute_duration="1")): "walltime of 1 s",
        place.submit(engine_job(place, "true", docker_network_type="none", container_target_dir="/a:b")): "cannot mount /a:b",
    }
    for request, words in held.items():
        place.wait_state(f"{request}.0", "held")
        assert words in place.job(f"{request}.0")["hold_reason"], place.job(f"{request}.0")


def test_what_the_queue_does_not_run_waits(place):
    other = place.submit(job("true", image="quay.io/else/where"))
    network = place.submit(engine_job(place, "true", docker_network_type="container:other"))
    wait_until(lambda: "ContainerImage" in place.cli("why", f"{other}.0"))
    wait_until(lambda: "DockerNetworkType" in place.cli("why", f"{network}.0"))
    assert place.job(f"{other}.0")["state"] == place.job(f"{network}.0")["state"] == "idle"
    place.cli("rm", str(other), str(network))


def test_hold_suspend_and_remove(place):
    """A program that ignores being asked is ended all the same, and its container with it."""
    text = f"601.{os.getpid()}"
    sleeps = "sleep\0" + text
    request = place.submit(engine_job(place, f"trap '' TERM; sleep {text}; sleep {text}"))
    wait_until(lambda: inside(place, sleeps))
    act(place, "suspend", request)
    wait_until(lambda: states(place, sleeps) == {b"T"})
    act(place, "resume", request)
    wait_until(lambda: states(place, sleeps) == {b"S"})
    place.cli("hold", f"{request}.0")
    place.wait_state(f"{request}.0", "held")
    assert inside(place, text) == []
    place.cli("release", f"{request}.0")
    wait_until(lambda: inside(place, sleeps))
    place.cli("rm", f"{request}.0")
    wait_until(lambda: not inside(place, text))


def act(place, action, request):
    place.api("POST", "/v1/actions", {"action": action, "ids": [f"{request}.0"]})


def states(place, text):
    return {of_process(pid, "stat").rpartition(b") ")[2][:1] for pid in inside(place, text)}


def test_removed_while_it_starts(place, engine):
    """At whatever moment: neither the container nor its monitor is left."""
    requests = []
    for turn in range(8):
        requests.append(place.submit(engine_job(place, f"sleep 605.{os.getpid()}")))
        place.wait_state(f"{requests[-1]}.0", "running")
        time.sleep(0.04 * turn)  # not to wait for something: to come at another moment each time
        place.cli("rm", str(requests[-1]))
    wait_until(lambda: engine.names() == [])
    wait_until(lambda: not processes(engine.folder, "conmon"))


def slow_to_create(podman, folder):
    """What makes podman's runtime take long after it has made a container's first process, and before it says so; on a loaded machine
    it does so by itself. The path of a file that is there then."""
    made = os.path.join(folder, "made")
    with open(os.open(f"{folder}/slow", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as f:
        f.write(f"""#!/bin/sh
case " $* " in *" create "*) {podman.runtime} "$@" && echo >{made} && exec sleep 600 ;; esac
exec {podman.runtime} "$@"
""")
    with open(podman.env["CONTAINERS_CONF"], encoding="utf-8") as f:
        text = f.read().replace(f'runtime = "{podman.runtime}"', 'runtime = "slow"')
    with open(f"{folder}/slow.conf", "w", encoding="utf-8") as f:
        f.write(f'{text}[engine.runtimes]\nslow = ["{folder}/slow"]\n')
    return made


def test_removed_before_podman_knows_of_its_process(instance, podman):
    """Podman has no process to end then, and forgets the container; the one that waits to become its program is ended all the same."""
    made = slow_to_create(podman, instance.base)
    instance.env["CONTAINERS_CONF"] = f"{instance.base}/slow.conf"
    start(instance, podman, keep=("CONTAINERS_CONF",))
    request = instance.submit(job(f"sleep 608.{os.getpid()}"))
    wait_until(lambda: os.path.exists(made))
    assert unborn(instance)
    instance.cli("rm", str(request))
    instance.wait_state(f"{request}.0", "removed")
    wait_until(lambda: podman.names() == [])
    wait_until(lambda: not unborn(instance) and not processes(podman.folder, "conmon"))


def test_a_removal_that_fails_is_tried_again(instance, podman):
    path = os.path.join(instance.base, "bin")
    os.mkdir(path)
    with open(os.open(f"{path}/podman", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as f:
        f.write(f"""#!/bin/sh
case " $* " in *" rm "*) mkdir {instance.base}/failed 2>/dev/null && {{ echo Error: it is busy >&2; exit 125; }} ;; esac
exec {shutil.which("podman")} "$@"
""")
    instance.env["PATH"] = f"{path}:{os.environ['PATH']}"
    start(instance, podman)
    instance.run(job("true"))
    assert os.path.exists(f"{instance.base}/failed")
    wait_until(lambda: podman.names() == [])


def test_agent_killed_and_container_goes_on(instance, engine):
    start(instance, engine)
    flag = os.path.join(instance.work, "flag")
    request = instance.submit(engine_job(instance, "echo >started; while [ ! -e flag ]; do sleep 0.1; done; exit 5",
                                  should_transfer_files="NO", initialdir=instance.work))
    wait_until(lambda: instance.exists("started"))
    instance.agent.kill()
    instance.agent = agents.start(instance, instance.config)
    containers_offered(instance)
    with open(flag, "w", encoding="utf-8"):
        pass
    instance.wait(request, code=None)
    row = instance.history(request)[0]
    assert (row["exit_code"], row["starts"]) == (5, 1)
    wait_until(lambda: engine.names() == [])


def test_shepherd_killed_leaves_nothing(instance, engine):
    """Its jobs are lost and run again; what is left of the first container is removed."""
    start(instance, engine)
    request = instance.submit(engine_job(instance, "echo $DROVER_ATTEMPT_ >>ran; sleep 606", should_transfer_files="NO",
                                  initialdir=instance.work))
    wait_until(lambda: instance.written("ran"))
    first = engine.names()
    instance.agent.kill()
    for pid in instance.pids("drover-shepherd"):
        os.kill(pid, signal.SIGKILL)
    instance.agent = agents.start(instance, instance.config)
    wait_until(lambda: len(instance.read("ran").splitlines()) == 2)
    wait_until(lambda: not set(first) & set(engine.names()))
    instance.cli("rm", str(request))
    wait_until(lambda: engine.names() == [])


def test_a_job_goes_where_its_image_is(instance, podman, request):
    """Of two agents one has the image, and neither fetches any."""
    folder = tempfile.mkdtemp(prefix="pod2-", dir=request.config.drover_tmp)
    never = QUEUE.replace("engine: podman", "engine: podman, pull: never")
    other = Podman(folder)
    try:
        start(instance, other, never)
        instance.env.update(podman.env)
        second = agents.start(instance, never, name="n2")
        containers_offered(instance, 2)
        jobs = instance.submit(job("true", queue="queue 4"))
        instance.wait(jobs)
        assert {j["agent"] for j in instance.history(jobs)} == {"n2"}
        second.stop()
        waiting = instance.submit(job("true"))
        wait_until(lambda: "ContainerImage" in instance.cli("why", f"{waiting}.0"))
        instance.cli("rm", str(waiting))
    finally:
        other.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_pull_that_nobody_wants_is_ended(place):
    """Of a registry that does not answer: the path says what is awaited; held, the job waits for it no longer, nor does podman."""
    with socket.create_server(("127.0.0.1", 0)) as registry:
        image = f"127.0.0.1:{registry.getsockname()[1]}/far/away:1"
        pulls = f"{image}\0"
        request = place.submit(job("true", image=image))
        other = place.submit(job("true", image=image))
        hops = [wait_until(lambda r=r: [h for h in place.json("path", f"{r}.0")["hops"] if "doing" in h])[0] for r in (request, other)]
        assert [h["doing"] for h in hops] == [f"fetching the image {image}"] * 2
        wait_until(lambda: processes(pulls, place.engine.name))
        place.cli("rm", str(request))
        place.wait_state(f"{request}.0", "removed")
        assert processes(pulls, place.engine.name)
        place.cli("hold", str(other))
        place.wait_state(f"{other}.0", "held")
        wait_until(lambda: not processes(pulls, place.engine.name))
        place.cli("release", str(other))
        wait_until(lambda: processes(pulls, place.engine.name))
        place.cli("rm", str(other))
        wait_until(lambda: not processes(pulls, place.engine.name))


@PODMAN_ONLY
def test_images_count_as_held(place, podman):
    """As the engine lists them; one that came since is found when a job needs it."""

    def held(image):
        place.write("job.sub", job("true", image=image))
        cost = wait_until(lambda: place.json("quote", "job.sub")["places"])[0]["cost"]
        return cost["bytes_held"]

    assert held(IMAGE) > 1000000
    podman("tag", IMAGE, "localhost/other:2")
    assert held("localhost/other:2") == 0
    place.run(job("true", image="localhost/other:2"))
    wait_until(lambda: held("localhost/other:2") > 1000000)


def forgetful_docker(instance, folder):
    """A docker which, once the file whose path this returns is there, does not know who ran out of memory: so
    does the real one now and then, when the end comes before the kernel's word. Only the kernel's log tells."""
    file = os.path.join(folder, "forgets")
    path = os.path.join(folder, "bin")
    os.mkdir(path)
    with open(os.open(f"{path}/docker", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as f:
        f.write(f"""#!/bin/sh
case " $* " in
*OOMKilled*) [ ! -e {file} ] || {{ {shutil.which("docker")} "$@" | sed 's/^true/false/'; exit; }} ;;
esac
exec {shutil.which("docker")} "$@"
""")
    instance.env["PATH"] = f"{path}:{os.environ['PATH']}"
    return file


def test_docker(instance, request):
    """The same through a daemon, whose containers are no children of ours."""
    folder = tempfile.mkdtemp(prefix="dk-", dir=request.config.drover_tmp)
    docker = Docker(folder)
    stack = contextlib.ExitStack()
    try:
        docker.make_image()
        forgets = forgetful_docker(instance, folder)
        start(instance, docker)
        ends = instance.submit(job("id -u; ls /sys/class/net; echo made >new; exit 3", output="out"))
        killed = instance.submit(job("kill -SEGV $$"))
        image = stack.enter_context(registry(f"{docker.folder}/tree.tar"))
        held = {instance.submit(job("dd if=/dev/zero of=/dev/null bs=200M count=1")): "more than its memory of 32 MiB",
                instance.submit(job("true").replace("/bin/sh", "/no/such/program")): "/no/such/program",
                instance.submit(job("true", image=f"127.0.0.1:{image.server_address[1]}/tiny:2")): "manifest unknown"}
        instance.wait(ends, killed, code=None)
        assert instance.history(ends)[0]["exit_code"] == 3 and instance.history(killed)[0]["exit_signal"] == signal.SIGSEGV
        assert instance.read("out").split() == [str(os.getuid()), "lo"] and instance.read("new") == "made\n"
        for number, words in held.items():
            instance.wait_state(f"{number}.0", "held")
            assert words in instance.job(f"{number}.0")["hold_reason"]
        image.trouble = 503
        waits = instance.submit(job("true", image=f"127.0.0.1:{image.server_address[1]}/tiny:1"))
        wait_until(lambda: "503" in instance.cli("why", f"{waits}.0"))
        image.trouble = None
        instance.wait(waits)
        open(forgets, "w", encoding="utf-8").close()
        unsaid = instance.submit(job("dd if=/dev/zero of=/dev/null bs=200M count=1"))
        instance.wait_state(f"{unsaid}.0", "held")
        lasting = instance.submit(job(f"trap '' TERM; sleep 603.{os.getpid()}; sleep 9"))
        sleeps = "sleep\0" + f"603.{os.getpid()}"
        wait_until(lambda: inside(instance, sleeps))
        act(instance, "suspend", lasting)
        wait_until(lambda: states(instance, sleeps) == {b"T"})
        instance.agent.kill()
        for pid in instance.pids("drover-shepherd"):
            os.kill(pid, signal.SIGKILL)
        instance.cli("rm", str(lasting))
        instance.agent = agents.start(instance, instance.config)
        wait_until(lambda: not inside(instance, sleeps))
        wait_until(lambda: docker.names() == [])
    finally:
        stack.close()
        docker.stop()
        shutil.rmtree(folder, ignore_errors=True)
