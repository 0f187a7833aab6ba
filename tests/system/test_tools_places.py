"""Jobs of Galaxy tools and of CWL as a batch system's, with what they need from containers (a real podman) and conda (folders made
as conda makes them, under the names that Galaxy gives them)."""
import hashlib
import json
import os

import pytest

import agents
from containers import IMAGE, engine_with_image
from drover import made, wait_until
from test_tools import SORT, several, submit, tool

pytest_plugins = ["batch_systems"]

GREET = """\
    <tool id="greet" profile="20.01">
      <requirements>%s</requirements>
      <command>greet '$name' &gt; '$out'</command>
      <inputs><param name="name" type="text"/></inputs>
      <outputs><data name="out" format="txt"/></outputs>
    </tool>"""
SEVERAL_PACKAGES = "mulled-v1-" + hashlib.sha256(b"__greet@1.9__other@_uv_").hexdigest()
PACKAGE = '<requirement type="package" version="{}">{}</requirement>'.format


def environment(root, name):
    """Of a conda, with one program."""
    for part in ("conda-meta", "bin"):
        os.makedirs(f"{root}/envs/{name}/{part}")
    with open(os.open(f"{root}/envs/{name}/bin/greet", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\necho "$1, says {name} in $CONDA_PREFIX"\n')


@pytest.fixture(scope="module")
def place(request, clusters):
    """A server and an agent with a queue of Slurm, which no test stops."""
    with engine_with_image(request.config.drover_tmp) as podman, made(request, "g-") as one:
        environment(f"{one.base}/conda", "__greet@1.9")
        environment(f"{one.base}/conda", SEVERAL_PACKAGES)
        one.server()
        agents.start(one, f"conda_root: {one.base}/conda\n{agents.batch_queues(clusters[0], more=podman.on_nodes())}")
        agents.offering(one, "alpha")
        yield one
        wait_until(lambda: podman.names() == [])


@pytest.fixture
def slurms(alpha):
    """A test's jobs were the cluster's, so many as it says."""
    def completed():
        return {number for number, _, _ in alpha.jobs("completed")}

    before = completed()
    return lambda count: wait_until(lambda: len(completed() - before) >= count) and len(completed() - before) == count


def test_galaxy(place, slurms):
    assert "usr" in several(place, "plain")
    assert slurms(1)


def test_galaxy_in_the_container_that_the_tool_names(place, slurms):
    """Its image has busybox and no folder usr. If nothing is said, the container goes before the packages."""
    container = f'<container type="docker">{IMAGE}</container>'
    assert "usr" not in several(place, "box", container, "container")
    assert "usr" not in several(place, "auto", PACKAGE("1.9", "greet") + container, None)
    assert slurms(2)


@pytest.mark.parametrize("packages", [["greet@1.9"], ["greet@1.9", "other"]], ids=["one", "two"])
def test_galaxy_in_the_environment_of_its_packages(place, slurms, packages):
    needs = "".join(PACKAGE(p.partition("@")[2], p.partition("@")[0]) for p in packages)
    submit(place, tool(place, "greet", GREET % needs, {"name": "you"}, "conda"))
    name = "__greet@1.9" if len(packages) == 1 else SEVERAL_PACKAGES
    assert place.read("out.txt") == f"you, says {name} in {place.base}/conda/envs/{name}\n"
    assert slurms(1)


def test_packages_that_no_place_has_are_waited_for(place):
    words = tool(place, "older", GREET % PACKAGE("1.8", "greet"), {"name": "you"}, "conda")
    request = place.cli("submit", *words).out.split()[1].rstrip(":")
    assert "CondaEnvs" in place.cli("why", f"{request}.0").out
    place.cli("rm", request)


def test_cwl(place, slurms):
    place.write("sort.cwl", SORT)
    place.write("b.txt", "b\n")
    place.write("c.txt", "c\n")
    place.write("order.yml", "files:\n- {class: File, path: b.txt}\n- {class: File, path: c.txt}\nreverse: true\nlabel: x\n")
    submit(place, ["--cwl", "--params", "order.yml", "sort.cwl"])
    assert place.read("sorted.txt") == "c\nb\n"
    assert json.loads(place.read("cwl_outputs.json"))["sorted"]["path"] == "sorted.txt"
    assert slurms(1)
