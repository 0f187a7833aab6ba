"""Fixtures: batch systems that are started once for a file of tests, and are empty after each.

Each has `name`, `runner` (its kind), `settings` for a queue, `env` for its tools, `jobs()` and `cancel_all()`."""
import os
import shutil
import tempfile

import pytest

from arex import Arex
from aws_batch import AwsBatch
from drover import wait_until
from exec_runner import Processes
from gridengine import GridEngine
from kubernetes import Kubernetes
from openpbs import RealPbs
from pool import Pool, RealPool
from slurm import Munge, Rest, slurm_clusters
from slurm_accounting import accounted_cluster
from task_spooler import TaskSpooler
from torque import Torque

SLOTS = 40 if os.environ.get("DROVER_CHECK_LONG") else 8  # enough for a thousand jobs


@pytest.fixture(scope="module")
def clusters(request):
    """Two Slurm clusters."""
    with slurm_clusters(request.config.drover_tmp, {"name": "alpha", "gpus": ("/dev/null", "/dev/zero")}, {"name": "beta"}) as two:
        yield two


@pytest.fixture
def alpha(clusters):
    yield clusters[0]
    clusters[0].tool("scancel", "-u", "root", code=None)
    wait_until(lambda: not clusters[0].jobs("pending,running,completing,suspended"))


@pytest.fixture(scope="module")
def rest_of_alpha(clusters):
    one = Rest(clusters[0])
    try:
        yield one.start()
    finally:
        one.stop()


@pytest.fixture
def rest(rest_of_alpha, alpha):
    """The first cluster by slurmrestd, over TCP."""
    assert alpha is rest_of_alpha.cluster
    return rest_of_alpha


@pytest.fixture(scope="module")
def accounted(request):
    with accounted_cluster(request.config.drover_tmp, name="books") as one:
        yield one


@pytest.fixture
def books(accounted):
    """A Slurm cluster that keeps accounts."""
    yield accounted
    accounted.cancel_all()
    wait_until(lambda: not accounted.jobs())


@pytest.fixture(scope="module")
def cell():
    """A Grid Engine. It starts as many jobs in a second as it has slots free; so do the processes below."""
    folder = tempfile.mkdtemp(prefix="drover-grid-")
    os.chmod(folder, 0o755)  # its daemons are another user
    one = GridEngine(folder, slots=SLOTS)
    try:
        one.start()
        yield one
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def grid(cell):
    yield cell
    cell.cancel_all()
    wait_until(lambda: not cell.jobs())


@pytest.fixture
def processes(request):
    """What the runner `exec` runs on: processes, behind a program."""
    folder = tempfile.mkdtemp(prefix="pr-", dir=request.config.drover_tmp)
    one = Processes(folder, slots=SLOTS)
    yield one
    one.stop()
    wait_until(lambda: not one.jobs())
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def pbs_cluster(request):
    """A Slurm with the commands of PBS; PBS itself where the environment names its commands."""
    if os.environ.get("DROVER_TEST_PBS"):
        yield RealPbs(os.environ["DROVER_TEST_PBS"])
        return
    folder = tempfile.mkdtemp(prefix="pb-", dir=request.config.drover_tmp)
    munge = Munge(folder)
    one = Torque(folder, munge)
    try:
        one.start()
        yield one
    finally:
        one.stop()
        munge.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def pbs(pbs_cluster):
    yield pbs_cluster
    pbs_cluster.cancel_all()
    wait_until(lambda: not pbs_cluster.jobs())


@pytest.fixture
def condor_pool(request, build):
    """What the runner `htcondor` speaks to: HTCondor itself where the environment names its commands."""
    if os.environ.get("DROVER_TEST_CONDOR"):
        real = RealPool(os.environ["DROVER_TEST_CONDOR"])
        yield real
        real.cancel_all()
        wait_until(lambda: not real.jobs())
        return
    folder = tempfile.mkdtemp(prefix="po-", dir=request.config.drover_tmp)
    one = Pool(build, folder)
    try:
        yield one.start()
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def spooler(request):
    """What the runner `tsp` speaks to."""
    folder = tempfile.mkdtemp(prefix="ts-", dir=request.config.drover_tmp)
    one = TaskSpooler(folder, slots=SLOTS)
    try:
        yield one
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def kubernetes(request):
    """What the runner `kubernetes` speaks to."""
    folder = tempfile.mkdtemp(prefix="ku-", dir=request.config.drover_tmp)
    one = Kubernetes(folder, slots=SLOTS)
    try:
        yield one
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)
        assert not one.wrong


@pytest.fixture
def aws_batch(request):
    """AWS Batch, behind the program `awsbatch` of the runner `exec`."""
    folder = tempfile.mkdtemp(prefix="aw-", dir=request.config.drover_tmp)
    one = AwsBatch(folder, slots=SLOTS)
    try:
        yield one
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)
        assert not one.wrong


@pytest.fixture(scope="module")
def computing_element():
    """ARC's A-REX."""
    folder = tempfile.mkdtemp(prefix="drover-arex-")  # its jobs are another user's
    one = Arex(folder)
    try:
        yield one.start()
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def arex(computing_element):
    if not computing_element.answers():
        computing_element.start()
    yield computing_element
    wait_until(computing_element.emptied, every=0.5)
