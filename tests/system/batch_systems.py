"""Fixtures: batch systems that are started once for a file of tests, and are empty after each."""
import shutil
import tempfile

import pytest

from drover import wait_until
from slurm import Munge, Slurm


@pytest.fixture(scope="module")
def clusters(request):
    """Two Slurm clusters."""
    folder = tempfile.mkdtemp(prefix="sl-", dir=request.config.drover_tmp)
    started = []
    try:
        munge = Munge(folder)
        started.append(munge)
        for name in ("alpha", "beta"):
            cluster = Slurm(folder, munge, name)
            started.append(cluster)
            cluster.start()
        yield started[1:]
    finally:
        for one in reversed(started):
            one.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def alpha(clusters):
    yield clusters[0]
    clusters[0].tool("scancel", "-u", "root", code=None)
    wait_until(lambda: not clusters[0].jobs("pending,running,completing,suspended"), 60)
