"""Images that cannot be had: what will not change is held at once, with the engine's words; a registry or a network in trouble is asked
again after pauses, while the jobs wait where everybody sees why, and take no room. On a real podman and a registry on loopback."""
import os
import tempfile

import pytest

import agents
from containers import Podman, busybox_tree, registry
from drover import sh, wait_until

pytest_plugins = ["batch_systems"]

QUEUE = ("kill_grace: 1s\ntransfer_retry: 200ms\nqueues:\n  - name: here\n    cpus: 1\n"
         "    container: {engine: podman, network: none}\n")


@pytest.fixture(scope="module")
def layer(request):
    with tempfile.TemporaryDirectory(prefix="tree-", dir=request.config.drover_tmp) as folder:
        yield busybox_tree(folder)


@pytest.fixture
def place(instance, layer):
    """A server whose agents know podman with nothing in its store, and a registry."""
    podman = Podman(instance.base)
    try:
        with registry(layer) as one:
            podman.trust(one)
            instance.env.update(podman.env)
            instance.podman, instance.registry, instance.address = podman, one, f"127.0.0.1:{one.server_address[1]}"
            instance.server()
            yield instance
            instance.stop()
    finally:
        podman.stop()


def job(place, name, script="true", **more):
    return sh(script, universe="container", container_image=f"docker://{place.address}/{name}", **more)


def start(place):
    place.agent = agents.start(place, QUEUE)
    wait_until(lambda: [q for a in place.agents("connected") for q in a["queues"] if q["ad"] and q["ad"].get("HasContainer")])


def events(place, request, *names):
    return [e["event"] for e in place.events(f"{request}.0") if e["event"] in names]


@pytest.mark.parametrize("trouble, words", [(None, "manifest unknown"), (401, "unauthorized"), (403, "denied")])
def test_what_will_not_change_is_held_at_once(place, trouble, words):
    start(place)
    place.registry.trouble = trouble
    request = place.submit(job(place, "tiny:2"))
    held = place.wait_state(f"{request}.0", "held")
    assert held["hold_code"] == 35 and "podman cannot fetch the image" in held["hold_reason"], held
    assert words in held["hold_reason"].lower() or str(trouble) in held["hold_reason"], held
    assert events(place, request, "matched") == ["matched"]
    for command in ("why", "path"):
        assert "podman cannot fetch the image" in place.cli(command, f"{request}.0").out


def words_of(place, request):
    """`why` and `path` say what the registry answers"""
    why, path = place.json("why", f"{request}.0"), place.json("path", f"{request}.0")["hops"][0]
    refused = [a for a in why["agents"] if "503" in a.get("value", "")]
    said = why["state"] == "idle" and "503" in " ".join(why["text"]) and refused and "503" in path.get("said", "")
    return (why, path) if said else None


def test_a_registry_in_trouble_holds_nobody(place):
    start(place)
    place.registry.trouble = 503
    request = place.submit(job(place, "tiny:1", "echo inside", output="out"))
    why, path = wait_until(lambda: words_of(place, request))
    assert f"podman cannot fetch the image {place.address}/tiny:1: " in path["said"]
    assert f"It was given back: podman cannot fetch the image {place.address}/tiny:1: " in " ".join(why["text"])
    assert "It fits" not in " ".join(why["text"])
    for command in ("why", "path"):
        wait_until(lambda c=command: "503" in place.cli(c, f"{request}.0").out)  # while it is tried again they do not say it
    place.run(sh("true"))  # the only processor is free
    wait_until(lambda: len(events(place, request, "refused")) >= 3)
    assert events(place, request, "held") == []
    place.registry.trouble = None
    place.wait(request)
    assert place.read("out") == "inside\n"
    assert len(events(place, request, "matched")) == len(events(place, request, "refused")) + 1
    assert "ifThenElse" not in place.cli("agents", "--json").out


def test_one_that_the_engine_fetches_itself(place, alpha):
    """In a batch system."""
    program = os.path.join(place.base, "podman")  # a batch job has not the environment of the test
    with open(os.open(program, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n" + "".join(f"export {k}={v}\n" for k, v in place.podman.env.items()) + 'exec podman "$@"\n')
    config = agents.batch_queues(alpha, more=f"    container: {{engine: podman, program: {program}, network: none, run_options: ['--ulimit=nofile=512:512', '--ulimit=nproc=512:512']}}\n") + "transfer_retry: 200ms\n"
    place.agent = agents.start(place, config)
    agents.offering(place)
    place.registry.trouble = 503
    request = place.submit(job(place, "tiny:1", "echo inside", output="out"))
    wait_until(lambda: [a for a in place.json("why", f"{request}.0")["agents"] if "503" in a.get("value", "")])
    assert "503" in place.cli("log", f"{request}.0").out
    place.registry.trouble = None
    place.wait(request)
    assert place.read("out") == "inside\n"
    gone = place.submit(job(place, "tiny:2"))
    assert "manifest unknown" in place.wait_state(f"{gone}.0", "held")["hold_reason"]
