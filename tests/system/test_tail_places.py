"""What a job prints is shown from wherever it runs."""
import os

import pytest

import agents
from drover import sh, wait_until
from test_tail import Follower, go_on, printed

pytest_plugins = ["batch_systems"]


@pytest.fixture(params=["slurm", "gridengine"])
def place(request, instance):
    system = request.getfixturevalue("alpha" if request.param == "slurm" else "grid")
    instance.server()
    agents.start(instance, agents.batch_queues(system))
    agents.offering(instance, system.name)
    return instance


@pytest.mark.parametrize("named", [True, False], ids=["named", "not named"])
def test_a_job_of_a_batch_system(place, named):
    where = {"output": "out.txt", "error": "err.txt"} if named else {}
    request = place.submit(sh("echo first; echo error >&2; " + go_on(place) + "echo last", **where))
    f = Follower(place, f"{request}.0")
    f.until(lambda: f.text == {"stdout": b"first\n", "stderr": b"error\n"})
    assert not f.answer["ended"]
    place.write("go", "")
    place.wait(request)
    f.all()
    assert f.text == {"stdout": b"first\nlast\n", "stderr": b"error\n"} and f.gaps == 0
    assert printed(place, f"{request}.0").text == f.text
    assert place.cli("tail", "--stderr", str(request)) == "error\n"
    assert sorted(os.listdir(place.work)) == (["err.txt", "go", "out.txt"] if named else ["go"])
    wait_until(lambda: not os.listdir(os.path.join(place.base, "n1", "jobs")))
