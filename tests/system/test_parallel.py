"""Jobs over several nodes of one place: MPI programs, started by the batch system and by their own launchers."""
import os
import shutil
import subprocess
import tempfile

import pytest

import agents
from drover import Daemon, sh
from gridengine import GridEngine
from netns import Net

pytest_plugins = ["batch_systems"]

SUM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
        char machine[MPI_MAX_PROCESSOR_NAME];
        int rank, size, length, sum = 0;

        MPI_Init(NULL, NULL);
        MPI_Get_processor_name(machine, &length);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        printf("rank %d of %d on %s: sum %d\n", rank, size, getenv("SLURMD_NODENAME") ? getenv("SLURMD_NODENAME") : machine, sum);
        MPI_Finalize();
        return 0;
}
"""


def program(instance, kind):
    """The program above, by this MPI's compiler."""
    source = instance.write("sum.c", SUM)
    subprocess.run([f"/usr/bin/mpicc.{kind}", "-o", f"{instance.work}/sum.{kind}", source], check=True, timeout=90)
    return f"{instance.work}/sum.{kind}"


@pytest.fixture
def slurm(instance, alpha):
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(alpha))
    agents.offering(instance, "alpha")
    return instance


def test_the_nodes_of_a_job_are_given_by_slurm(slurm):
    """Two nodes with two tasks each, which srun starts on both; the job takes four processors of its queue."""
    request = slurm.submit("""executable = /usr/bin/srun
arguments = "sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME'"
transfer_executable = false
should_transfer_files = NO
request_nodes = 2
tasks_per_node = 2
request_memory = 64
output = tasks
queue
""")
    assert slurm.job(f"{request}.0")["ad"]["RequestCpus"] == 4
    slurm.wait(request)
    said = sorted(line.split() for line in slurm.read("tasks").splitlines())
    assert [rank for rank, _ in said] == ["0", "1", "2", "3"]
    assert len({node for _, node in said}) == 2


OPENMPI = "/usr/bin/mpirun.openmpi", "--allow-run-as-root --mca btl self,tcp --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo"
MPICH = "/usr/bin/mpiexec.mpich", "-iface lo -genvlist PATH"


@pytest.mark.parametrize("kind, launcher", [("openmpi", OPENMPI), ("mpich", MPICH)], ids=["openmpi", "mpich"])
def test_mpi_over_two_nodes_of_slurm(slurm, kind, launcher):
    """Its own launcher learns from Slurm's environment which nodes there are, and starts a program on each by srun."""
    sums = program(slurm, kind)
    request = slurm.submit(f"""executable = {launcher[0]}
arguments = {launcher[1]} {sums}
transfer_executable = false
should_transfer_files = NO
getenv = PATH
request_nodes = 2
tasks_per_node = 2
output = sums
error = errors
queue
""")
    slurm.wait(request)
    said = slurm.read("sums").splitlines()
    assert len(said) == 4 and all(line.endswith("sum 6") and " of 4 " in line for line in said), said
    assert len({line.split(" on ")[1].split(":")[0] for line in said}) == 2


# Where there is no PBS but its commands over a Slurm, what has the nodes is Slurm's.
NODES = 'if [ -n "$PBS_NODEFILE" ]; then cat "$PBS_NODEFILE"; else srun sh -c "echo \\$SLURMD_NODENAME"; fi'


def test_the_nodes_of_a_job_are_given_by_pbs(instance, pbs):
    instance.server()
    instance.env.update(getattr(pbs, "agent_env", {}), PATH=pbs.bin + ":" + instance.env["PATH"])
    agents.start(instance, agents.batch_queues(pbs))
    agents.offering(instance, "pbs")
    sums = program(instance, "openmpi")
    request = instance.submit(sh(f"{NODES}; {' '.join(OPENMPI)} {sums}", request_nodes=2, tasks_per_node=2, should_transfer_files="NO", getenv="PATH", output="said", error="errors"))
    assert instance.job(f"{request}.0")["ad"]["RequestCpus"] == 4
    instance.wait(request)
    said = instance.read("said").splitlines()
    assert len(said) == 8 and len(set(said[:4])) == 2, said
    assert all(line.endswith("sum 6") and " of 4 " in line for line in said[4:]), said


@pytest.fixture
def wide_cell(instance):
    """A Grid Engine of two hosts with names of their own, and an agent on the first."""
    net, folder = Net(), tempfile.mkdtemp(prefix="drover-grid-")
    os.chmod(folder, 0o755)  # its daemons are another user
    for host in ("north", "south"):
        net.add(host)
    cell = GridEngine(folder, slots=4, net=net)
    cell.settings["nodes_environment"] = "pairs"
    try:
        cell.start()
        instance.server()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:  # the host's files are ours, though it has mounts of its own
            domain = f"{f.read().strip()}:{os.stat('/proc/self/ns/mnt').st_ino}"
        config = (f"server: {instance.server_json()['agents'][0]}\ndir: {instance.base}/n1\nfilesystem_domain: '{domain}'\n"
                  f"{agents.batch_queues(cell)}")
        token = instance.json("token", "agent", "--name", "n1")["token"]
        argv = [*cell.on("north"), instance.program("drover-agent"), "--config", instance.write("n1.yaml", config), "--token", token]
        instance.daemons.append(Daemon("drover-agent", argv, f"{instance.base}/n1.log", instance.env, instance.base))
        agents.offering(instance, "grid")
        yield instance
    finally:
        for daemon in instance.daemons:
            daemon.stop()
        instance.daemons.clear()
        cell.stop()
        net.remove()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make network namespaces")
@pytest.mark.parametrize("kind, launcher", [("openmpi", "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi"), ("mpich", "mpiexec.mpich")],
                         ids=["openmpi", "mpich"])
def test_mpi_over_two_nodes_of_grid_engine(wide_cell, kind, launcher):
    """Its parallel environment spreads the slots; MPI's launcher starts its daemon on the other host by qrsh."""
    sums = program(wide_cell, kind)
    command = f"cut -d ' ' -f 1,2 $PE_HOSTFILE; {launcher} {sums}"
    request = wide_cell.submit(sh(command, request_nodes=2, tasks_per_node=2, should_transfer_files="NO", output="said", error="errors"))
    wide_cell.wait(request, code=None)
    said = wide_cell.read("said").splitlines()
    assert said[:2] in (["north 2", "south 2"], ["south 2", "north 2"]), (said, wide_cell.read("errors"))
    assert len(said) == 6 and all(line.endswith("sum 6") and " of 4 " in line for line in said[2:]), (said, wide_cell.read("errors"))


def test_a_place_without_several_nodes_is_none(drover):
    """The job waits, and `why` names the clause; with one node it runs there."""
    several = drover.submit("executable = /bin/true\nrequest_nodes = 2\nqueue\n")
    assert "MaxNodes" in drover.cli("why", f"{several}.0")
    drover.run("executable = /bin/true\nrequest_nodes = 1\ntasks_per_node = 2\nqueue\n")
    assert drover.job(f"{several}.0")["state"] == "idle"


def test_nodes_that_cannot_be_are_refused(drover):
    for text, said in (("request_nodes = 0", "request_nodes"), ("request_nodes = many", "request_nodes"),
                       ("request_nodes = 2\ntasks_per_node = -1", "tasks_per_node"),
                       ("universe = parallel\nmachine_count = 2\nrequest_nodes = 2", "machine_count")):
        drover.write("bad.sub", f"executable = /bin/true\n{text}\nqueue\n")
        assert said in drover.cli("submit", "bad.sub", code=1).err
