"""What a queue offers of a batch system: what could begin there soon, and no more."""
import pytest

import agents
from drover import sh, wait_until
from test_runners import begin, until

pytest_plugins = ["batch_systems"]
COUNTING = {"slurm": "alpha", "rest": "rest", "gridengine": "grid", "htcondor": "condor_pool", "exec": "processes"}


@pytest.fixture
def place(request, instance):
    return begin(instance, request.getfixturevalue(request.param))


def ad_of(instance):
    (queue,) = (q for a in instance.agents("connected") for q in a["queues"])
    return queue["ad"]


def gpus_of(instance):
    """Idle, in all, of the node with the most."""
    ad = ad_of(instance)
    return ad.get("GPUs"), ad.get("TotalGPUs"), ad.get("NodeGPUs")


def free(instance):
    (queue,) = (q for a in instance.agents("connected") for q in a["queues"])
    return queue["free"]["cpus"]


@pytest.mark.parametrize("place", COUNTING.values(), indirect=True)
def test_gpus_are_the_systems(place):
    """Those that are idle are offered: what somebody else has is not, and no more jobs go there than GPUs are left."""
    system, work = place.system, place.work
    wait_until(lambda: gpus_of(place) == (system.gpus, system.gpus, system.gpus))
    system.others(until(f"{work}/others"), gpus=1)
    wait_until(lambda: gpus_of(place) == (system.gpus - 1, system.gpus, system.gpus))
    request = place.submit(sh(f"echo $DROVER_MEMBER >>{work}/ran; {until(work + '/flag')}", request_gpus="1", queue=f"queue {system.gpus}"))
    wait_until(lambda: place.exists("ran") and len(place.read("ran").split()) == system.gpus - 1)
    place.run(sh("true"))
    wait_until(lambda: len(system.jobs()) == system.gpus)  # the last one waits in Drover
    many = place.submit(sh("true", request_gpus=str(system.gpus + 1)))
    assert "GPUs" in place.cli("why", f"{many}.0")
    place.write("others", "")
    wait_until(lambda: len(place.read("ran").split()) == system.gpus)
    place.write("flag", "")
    place.wait(request)
    place.cli("rm", str(many))


@pytest.mark.parametrize("said, offered", [("1", (1, 1, None)), ("0", (None, None, None))])
def test_the_agents_file_goes_before(instance, processes, said, offered):
    begin(instance, processes, agents.batch_queues(processes, more=f"    gpus: {said}\n"))
    assert gpus_of(instance) == offered
    request = instance.submit(sh("true", request_gpus="1"))
    if offered[0]:
        instance.wait(request)
    else:
        assert "GPUs" in instance.cli("why", f"{request}.0")


def room(instance):
    """Processors that are idle, and in all."""
    ad = ad_of(instance)
    return ad["FreeCpus"], ad["TotalCpus"]


def wait_room(instance, *wanted):
    def is_so():
        """the queue's room is as it must be"""
        return room(instance) == wanted

    wait_until(is_so)


def test_nodes_of_slurm_that_take_no_jobs(instance, alpha):
    one = begin(instance, alpha)
    wait_room(one, 16, 16)
    alpha.tool("scontrol", "update", "NodeName=a2", "State=DRAIN", "Reason=test")
    alpha.tool("scontrol", "create", "reservation", "ReservationName=r", "Nodes=a3", "StartTime=now", "Duration=10", "Users=games")
    try:
        wait_room(one, 8, 8)
        wait_until(lambda: agents.offering(instance)["ad"].get("NodesUnavailable") == "1 drained, 1 reserved")
        alpha.others(until(f"{one.work}/others"), 0, "-w", "a1", "-n4")
        wait_room(one, 4, 8)
        wait_until(lambda: gpus_of(one) == (0, 2, 2))  # on a node without a processor
    finally:
        alpha.tool("scontrol", "delete", "ReservationName=r")
        alpha.tool("scontrol", "update", "NodeName=a2", "State=RESUME")
    wait_until(lambda: "NodesUnavailable" not in agents.offering(instance)["ad"])
    wait_room(one, 12, 16)
    one.write("others", "")
    wait_room(one, 16, 16)


def test_what_slurm_plans_for_a_larger_job_is_not_idle(instance, alpha):
    one = begin(instance, alpha)
    alpha.others(until(f"{one.work}/others"), 0, "-w", "a1", "-n1", "--time=20")
    alpha.others("true", 0, "-N4", "-n16", "--time=20")
    wait_room(one, 3, 16)  # of the node that runs the small one
    one.write("others", "")
    wait_room(one, 16, 16)


def test_a_node_in_two_partitions_counts_once(instance, alpha):
    alpha.settings["partition"] = "main,short"
    try:
        one = begin(instance, alpha)
    finally:
        del alpha.settings["partition"]
    wait_room(one, 16, 16)


@pytest.mark.long
def test_a_hosts_own_limit_of_grid_engine(instance, grid):
    """Another queue's jobs have a part of it."""
    one = begin(instance, grid)
    wait_room(one, grid.slots, grid.slots)
    grid.tool("qconf", "-aattr", "exechost", "complex_values", "slots=3", "localhost")
    grid.tool("qmod", "-e", "shut.q")
    try:
        wait_room(one, 3, grid.slots)
        grid.others(until(f"{one.work}/others"), queue="shut.q", slots=2)
        wait_room(one, 1, grid.slots)
        one.write("others", "")
        wait_room(one, 3, grid.slots)
    finally:
        grid.tool("qmod", "-d", "shut.q")
        grid.tool("qconf", "-dattr", "exechost", "complex_values", "slots=3", "localhost")


def test_gpus_of_grid_engines_jobs(instance, grid):
    """A consumable of a job is asked for once, whatever slots it has."""
    grid.settings.update(gpu_resource="job_gpu", gpu_per="job")
    try:
        one = begin(instance, grid)
    finally:
        del grid.settings["gpu_resource"], grid.settings["gpu_per"]
    wait_until(lambda: gpus_of(one) == (2, 2, 2))
    request = one.submit(sh(f"echo up >{one.work}/up; {until(one.work + '/flag')}", request_gpus="1", request_cpus="3"))
    wait_until(lambda: one.exists("up"))
    wait_until(lambda: gpus_of(one) == (1, 2, 2))
    assert "job_gpu=1" in grid.tool("qstat", "-j", grid.jobs()[0][0])
    one.write("flag", "")
    one.wait(request)


@pytest.mark.parametrize("place", ["rest", pytest.param("grid", marks=pytest.mark.long), "pbs", "processes"], indirect=True)
def test_a_full_system_that_gives_no_time_is_not_expected_now(place):
    """Others have all of it, and it cannot say for how long."""
    system = place.system
    for _ in range(room(place)[0]):
        system.others(until(f"{place.work}/others"))
    wait_until(lambda: room(place)[0] == 0)
    place.write("job.sub", sh("true"))
    wait_until(lambda: place.json("quote", "job.sub")["start_ms"] is None)
    said = place.cli("quote", "job.sub")
    row = next(line for line in said.splitlines() if line.startswith("n1 "))
    assert "it is unknown when" in said.splitlines()[0] and "the time is unknown" in row, said
    request = place.submit(sh("true"))
    place.wait_state(f"{request}.0", "staging")
    assert "eta_start_ms" not in place.json("why", f"{request}.0")
    place.write("others", "")
    place.wait(request)
    wait_until(lambda: place.json("quote", "job.sub")["start_ms"] is not None)
