"""Jobs over several nodes of one place: MPI programs, started by the batch system and by their own launchers."""
import subprocess

import pytest

import agents

pytest_plugins = ["batch_systems"]

SUM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
        int rank, size, sum = 0;

        MPI_Init(NULL, NULL);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        printf("rank %d of %d on %s: sum %d\n", rank, size, getenv("SLURMD_NODENAME") ? getenv("SLURMD_NODENAME") : "?", sum);
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
