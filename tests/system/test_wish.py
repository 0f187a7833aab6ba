"""What a queue wishes for: which of the jobs that are alike in the order of the queue it is given first."""
import os

import pytest

import agents
from drover import sh, wait_until

CONFIG = "queues:\n  - name: main\n    cpus: 1\n"


def order_of(instance, *descriptions):
    """In which order these jobs run, which are all there when the one place has room."""
    first = instance.submit(sh(f"while [ ! -e {instance.work}/go ]; do sleep 0.05; done"))
    instance.wait_state(f"{first}.0", "running")
    waiting = [instance.submit(text) for text in descriptions]
    instance.write("go", "")
    instance.wait(*waiting)
    os.unlink(os.path.join(instance.work, "go"))
    lines = instance.read("order").split()
    os.unlink(os.path.join(instance.work, "order"))
    return lines


def says(instance, name, **more):
    return sh(f"echo {name} >>{instance.work}/order", **more)


def with_input(instance, name, size):
    """Of a class of its own: jobs that ask for the same are given in the order in which they came."""
    instance.write(name, "x" * size)
    return says(instance, name, should_transfer_files="YES", transfer_input_files=name, request_memory="30M" if name == "large" else "20M")


@pytest.fixture(name="place")
def one_place(instance):
    def start(more=""):
        instance.server()
        agents.start(instance, CONFIG + more, "one")
        wait_until(lambda: instance.agents("connected"))
        return instance

    return start


def test_small_input_of_the_file(place):
    """The job with little to fetch goes before one that was there before it."""
    instance = place("    wish: [small-input]\n")
    assert order_of(instance, with_input(instance, "large", 4_000_000), with_input(instance, "small", 10)) == ["small", "large"]


def test_no_wish(place):
    instance = place()
    assert order_of(instance, with_input(instance, "large", 4_000_000), with_input(instance, "small", 10)) == ["large", "small"]


def test_a_wish_that_is_said_while_it_runs(place):
    """In place of the file's; and of one queue only. A word that is none, an agent that is none, and too many are refused."""
    instance = place("    wish: [large-memory]\n")
    assert instance.cli("agents", "wish", "one", "small-input", "short-run") == "one wishes for small-input, then short-run, until it ends\n"
    assert order_of(instance, with_input(instance, "large", 4_000_000), with_input(instance, "small", 10)) == ["small", "large"]
    assert "small-input, short-run" in instance.cli("agents", "wish", "one", "fast", code=2).err
    assert "no agent" in instance.cli("agents", "wish", "two", "none", code=2).err
    for body in ({"wishes": ["short-run"] * 4}, {"wishes": "short-run"}, {}, {"wishes": [7]}, {"wishes": [], "queue": 7}):
        assert instance.call("POST", "/v1/agents/one/wish", body)[0] == 400, body


def test_the_wish_of_a_queue_is_taken_away(place):
    instance = place("    wish: [small-input]\n")
    instance.cli("agents", "wish", "other@one", "large-memory")
    instance.cli("agents", "wish", "main@one", "none")
    assert order_of(instance, with_input(instance, "large", 4_000_000), with_input(instance, "small", 10)) == ["large", "small"]
