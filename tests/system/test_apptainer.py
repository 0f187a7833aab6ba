"""What is particular to apptainer; what it shares with podman is in test_containers.py. Run where DROVER_TEST_APPTAINER names one."""
import os

import pytest

import agents
from containers import engine_with_image, registry
from drover import alive, processes, sh, wait_until
from users import ONE, TWO, Site

pytest_plugins = ["batch_systems"]


@pytest.fixture(scope="module")
def apptainer(request):
    with engine_with_image(request.config.drover_tmp, "apptainer") as one:
        yield one


def start(instance, apptainer, more):
    instance.env.update(apptainer.env)
    instance.server()
    config = f"kill_grace: 1s\nqueues:\n  - name: here\n    cpus: 4\n    container: {{{apptainer.settings}, {more}}}\n"
    instance.config = config
    instance.agent = agents.start(instance, config)
    wait_until(lambda: any(q["ad"] and q["ad"].get("HasSIF") is True for a in instance.agents("connected") for q in a["queues"]))


def job(image, script="true", **more):
    return sh(script, universe="container", container_image=image, **more)


def test_files(instance, apptainer):
    """One that the job brings along, one of the machine; only what the queue allows; none by a way around."""
    start(instance, apptainer, f"images: ['{apptainer.folder}/*', './*']")
    apptainer.make_file(f"{apptainer.folder}/here.sif")
    apptainer.make_file(f"{instance.work}/mine.sif")
    there = instance.submit(job(f"{apptainer.folder}/here.sif", "exit 4"))
    along = instance.submit(job("mine.sif", "ls; exit 5", transfer_input_files="mine.sif", output="out"))
    instance.wait(there, along, code=None)
    assert [instance.history(r)[0]["exit_code"] for r in (there, along)] == [4, 5]
    assert instance.read("out") == "mine.sif\n"
    around = instance.submit(job(f"{apptainer.folder}/../app/here.sif"))
    wait_until(lambda: ".. in it" in instance.cli("log", f"{around}.0"))
    for image in (f"{instance.work}/mine.sif", "docker://localhost/mine.sif/x"):
        other = instance.submit(job(image))
        wait_until(lambda n=other: "ContainerImage" in instance.cli("why", f"{n}.0"))


def hold_reason(instance, request):
    return instance.wait_state(f"{request}.0", "held")["hold_reason"]


def test_what_it_refuses_is_held_with_its_words(instance, apptainer):
    start(instance, apptainer, "network: none")
    instance.write("bad", "#!/no/such/interpreter\n", 0o755)
    instance.write("text", "no image")
    for text, words in {
            job(apptainer.image).replace("/bin/sh", "/no/such"): "cannot run /no/such in the image",
            job(apptainer.image).replace("/bin/sh", "/bin"): "cannot run /bin in the image",
            job(apptainer.image).replace("/bin/sh", "bad"): "fork/exec",
            job("/no/such.sif"): "could not open image",
            job(f"{instance.work}/text"): "image format not recognized",
            job(apptainer.image, "echo FATAL: mine >&2; exit 7", on_exit_hold="true"): "OnExitHold"}.items():
        assert words.lower() in hold_reason(instance, instance.submit(text)).lower()


def test_a_queue_that_fetches_none_runs_files(instance, apptainer):
    start(instance, apptainer, "pull: never")
    instance.run(job(apptainer.image))
    for image in ("docker://localhost/tiny:1", "oras://127.0.0.1:1/a.sif"):
        request = instance.submit(job(image))
        wait_until(lambda n=request: "ContainerImage" in instance.cli("why", f"{n}.0"))


def test_an_image_of_a_registry(instance, apptainer):
    """It is fetched once for all that wait for it, is kept, and counts as held; removed by somebody, it is fetched again."""
    instance.env["APPTAINER_NOHTTPS"] = "1"
    with registry(f"{apptainer.folder}/tree.tar") as server:
        start(instance, apptainer, "network: none")
        image = f"docker://127.0.0.1:{server.server_address[1]}/tiny:1"
        text = job(image, "ls; echo inside >&2; exit 3", output="out", error="err")

        def fetched():
            return len([path for path in server.asked if "/blobs/" in path])

        def held():
            instance.write("job.sub", text)
            places = instance.json("quote", "job.sub")["places"]
            return sum(place["cost"]["bytes_held"] for place in places if "cost" in place)

        assert held() == 0
        several = instance.submit(text.replace("queue\n", "queue 3\n"))
        instance.wait(several, code=1)
        once = fetched()
        assert once and instance.read("err") == "inside\n"
        wait_until(lambda: held() > 500000)
        instance.run(text, code=1)
        assert fetched() == once
        kept = os.path.join(instance.base, "n1", "images")
        file, = os.listdir(kept)
        os.unlink(os.path.join(kept, file))
        instance.run(text, code=1)
        assert fetched() == 2 * once and os.listdir(kept) == [file]
        instance.run(text.replace("queue\n", "docker_pull_policy = always\nqueue\n"), code=1)
        assert fetched() == 3 * once
        assert {j["exit_code"] for j in instance.history()} == {3}
        gone = instance.submit(job(image.replace("tiny:1", "tiny:2")))
        assert "tiny:2" in hold_reason(instance, gone)
        assert os.listdir(kept) == [file]
        instance.agent.stop()
        instance.agent = agents.start(instance, instance.config.replace("network: none", "network: none, pull: never"))
        wait_until(lambda: instance.agents("connected") and held() > 500000)
        instance.run(text, code=1)
        other = instance.submit(job(image.replace("tiny:1", "tiny:2")))
        wait_until(lambda: "ContainerImage" in instance.cli("why", f"{other}.0"))
    assert processes(image) == []


# ---- users


def own(site, user, image, script, **more):
    return site.submit(user, script, ContainerImage=image, WantContainer=True, **more)


@pytest.fixture
def public(request, apptainer):
    """The image, where every user comes to it."""
    for path in (request.config.drover_tmp, os.path.dirname(apptainer.folder), apptainer.folder):
        os.chmod(path, 0o755)
    apptainer.env.pop("APPTAINER_TMPDIR", None)
    return apptainer


def nothing_left(site):
    wait_until(lambda: not [n for n in os.listdir(os.path.join(site.state, "jobs")) if n[0].isdigit()])


def test_a_container_is_its_users(instance, public):
    instance.env.pop("APPTAINER_CACHEDIR", None)
    site = Site(instance)
    more = f"kill_grace: 1s\nqueues:\n  - name: here\n    cpus: 4\n    container: {{{public.settings}, network: none, pull: never}}\n"
    node = site.agent(more=more)
    agents.offering(instance)
    for user in (ONE, TWO):
        site.write(user, "in", "data\n")
        number = own(site, user, public.image, "cat in; echo new >made; id -u; [ -d /usr ] || echo inside; cat /proc/net/dev; cat /proc/self/status",
                     TransferInput="in", ShouldTransferFiles="YES", WhenToTransferOutput="ON_EXIT")
        instance.wait(number)
        out = site.text(user, "out").splitlines()
        assert out[:3] == ["data", str(user.pw_uid), "inside"] and "CapBnd:\t0000000000000000" in out
        assert [line.split(":")[0].strip() for line in out if ":" in line and line.startswith(" ")] == ["lo"]
        assert site.owner(user, "made") == (user.pw_uid, user.pw_gid)
    lasting = own(site, ONE, public.image, f"trap '' TERM; sleep 607.{os.getpid()}; sleep 9")

    def sleeps():
        return [pid for pid in processes("sleep\0" + f"607.{os.getpid()}") if alive(pid)]

    wait_until(sleeps)
    node.kill()
    node = site.agent(more=more)
    assert sleeps()
    instance.cli("rm", str(lasting))
    wait_until(lambda: not sleeps())
    nothing_left(site)


def test_in_a_batch_system(instance, public, alpha):
    os.chmod(os.path.dirname(alpha.dir), 0o711)
    site = Site(instance)
    site.agent(more=agents.batch_queues(alpha, more=f"    container: {{{public.settings}, network: none, pull: never}}\n"))
    agents.offering(instance)
    site.write(ONE, "in", "data\n")
    number = own(site, ONE, public.image, "cat in; echo new >made; [ -d /usr ] || echo inside", TransferInput="in", ShouldTransferFiles="YES",
                 WhenToTransferOutput="ON_EXIT")
    instance.wait(number)
    assert site.text(ONE, "out") == "data\ninside\n" and site.owner(ONE, "made") == (ONE.pw_uid, ONE.pw_gid)
    nothing_left(site)
