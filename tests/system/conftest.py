"""Fixtures of the system tests; drover.py has what they give."""
import functools
import os
import random
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

if "DROVER_TEST_SLURM" in os.environ:  # ../README.md
    os.environ["PATH"] = os.environ["DROVER_TEST_SLURM"] + ":" + os.environ["PATH"]

import hops  # noqa: E402  (the path must be there first)
import mirror  # noqa: E402
import postgres  # noqa: E402
from drover import Instance, made  # noqa: E402

# Debian 12 has no apptainer; the others are for tools/prove-NAME
collect_ignore = [name for word, name in (("DROVER_TEST_APPTAINER", "test_apptainer.py"), ("DROVER_LIBVIRT", "test_libvirt_real.py"),
                                          ("DROVER_MOTO_IMAGE", "test_aws_batch_real.py"),
                                          ("DROVER_OLD_BUILD", "test_upgrade_real.py")) if word not in os.environ]
LONG = bool(os.environ.get("DROVER_CHECK_LONG"))
# Files that take over two minutes each, the slowest first. They are begun first, so that no worker is left with one at the end.
SLOW_FILES = ["test_runners.py", "test_hostile_job.py", "test_provision.py", "test_room.py", "test_slurm.py", "test_hostile_client.py"]


def pytest_addoption(parser):
    parser.addoption("--build", default=os.path.join(os.path.dirname(__file__), "..", "..", "build"),
                     help="where the programs were built")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="files, and the tests in them, in an order that the seed gives")


def pytest_configure(config):
    config.option.build = os.path.abspath(config.option.build)
    config.addinivalue_line("markers", "timeout: seconds until a test is given up")
    config.addinivalue_line("markers", "long: only in the long form (make check-long)")
    if not config.getoption("timeout", None):
        config.option.timeout = 600
    # Short: socket paths are limited to 107 bytes, and some tests make their own longer.
    config.drover_tmp = tempfile.mkdtemp(prefix="drover-test-")
    config.drover_postgres = functools.cache(lambda: postgres.Postgres().start())


def pytest_unconfigure(config):
    shutil.rmtree(config.drover_tmp, ignore_errors=True)
    if config.drover_postgres.cache_info().currsize:
        config.drover_postgres().remove()


def pytest_collection_modifyitems(config, items):
    """Tests of the long form are left out of the short one, unless they are asked for by their name."""
    if config.option.shuffle is not None:
        rnd = random.Random(config.option.shuffle)
        files = {item.path: rnd.random() for item in items}
        items.sort(key=lambda item: (files[item.path], rnd.random()))
    else:
        items.sort(key=lambda item: SLOW_FILES.index(item.path.name) if item.path.name in SLOW_FILES else len(SLOW_FILES))
    if LONG or "::" in " ".join(config.args):
        return
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
    items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Instance) and os.path.isdir(value.base):
                report.sections.append(("daemons", value.logs()))


def pytest_runtest_logreport(report):
    """Says at once what has failed: the ring takes a quarter of an hour, and tells the reasons at its end."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed {report.nodeid}", file=sys.stderr, flush=True)


@pytest.fixture
def build(request):
    return os.path.abspath(request.config.getoption("--build"))


@pytest.fixture
def instance(request):
    """An instance that is not started. Whatever it started is stopped at the end, and nothing may be left."""
    with made(request, "i-") as one:
        yield one


@pytest.fixture
def pair(instance, build):
    """Two servers that mirror each other, not started; the first is the instance."""
    pair = mirror.Pair(instance, build)
    try:
        yield pair
    finally:
        pair.end()


@pytest.fixture
def database(request):
    """The PostgreSQL that the tests of this process share; none of them may stop it."""
    return request.config.drover_postgres()


@pytest.fixture
def drover(instance):
    """A server with an agent for this machine."""
    instance.up()
    return instance


@pytest.fixture
def long():
    """Whether more rounds than usual are asked for (make check-long)."""
    return LONG


@pytest.fixture(scope="module")
def shared_instance(request):
    """The instance of `shared`, without its clean-up: for fixtures of a whole file only."""
    with made(request, "s-") as one:
        one.up()
        yield one


@pytest.fixture
def shared(shared_instance):
    """A running instance that the tests of a file share; none of them may stop it. Each finds it without jobs, and with
    an agent that takes some, however the one before it ended."""
    yield shared_instance
    shared_instance.clear()


@pytest.fixture
def two(request, build, instance):
    """A server whose only place is another server, which has processes."""
    instance.far = hops.far(request, build)
    instance.server()
    hops.runs(instance.far)
    hops.link(instance, instance.far)
    return instance
