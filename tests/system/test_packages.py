"""The Debian packages: built twice with the same bytes, looked at by lintian, and installed, upgraded and purged in a root of their own:
this machine's, on which nothing that the test writes stays."""
import contextlib
import glob
import os
import subprocess

import pytest

from drover import wait_until
from test_docs import tour

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ["drover", "drover-agent", "drover-server"]
ALL = [*PROGRAMS, "drover-doc", "libdrmaa-drover", "libdrmaa-drover-dev", "python3-drover"]


def run(*command, **more):
    p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False, **more)
    assert p.returncode == 0, f"{command}: {p.returncode}\n{p.stdout}"
    return p.stdout


def build_packages(folder, **environment):
    """The names of the packages and their files."""
    run(f"{TOP}/tools/packages", str(folder), env={**os.environ, "DEB_BUILD_OPTIONS": "parallel=2", **environment})
    return {os.path.basename(path).split("_")[0]: path for path in glob.glob(f"{folder}/*.deb")}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    made = build_packages(tmp_path_factory.mktemp("packages"))
    assert set(ALL) <= set(made)
    return made


@pytest.fixture
def root(tmp_path):
    """A root folder that begins as this machine's."""
    where = tmp_path / "root"
    layers = tmp_path / "layers"
    for folder in (where, layers):
        folder.mkdir()
    with contextlib.ExitStack() as stack:
        def mount(*args, at):
            run("mount", *args, str(at))
            stack.callback(run, "umount", "--recursive", "--lazy", str(at))
        mount("-t", "tmpfs", "tmpfs", at=layers)
        for name in ("upper", "work"):
            (layers / name).mkdir()
        mount("-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work", at=where)
        mount("-t", "proc", "proc", at=where / "proc")
        mount("--bind", "/dev", at=where / "dev")
        mount("-t", "tmpfs", "tmpfs", at=where / "tmp")
        (where / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (where / "usr/sbin/policy-rc.d").chmod(0o755)
        yield where


def inside(root, *command, **more):
    return run("chroot", str(root), "env", "-u", "DROVER_DIR", "-u", "DROVER_SERVER", "DEBIAN_FRONTEND=noninteractive",
               "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command, **more)


def install(root, files):
    (root / "tmp/packages").mkdir(exist_ok=True)
    names = []
    for path in files:
        names.append(f"/tmp/packages/{os.path.basename(path)}")
        with open(path, "rb") as f, open(f"{root}{names[-1]}", "wb") as to:
            to.write(f.read())
    return inside(root, "dpkg", "--install", *names)


def test_two_builds_give_the_same_bytes(packages, tmp_path):
    again = build_packages(tmp_path / "another folder".replace(" ", "-"), CCACHE_DISABLE="1")
    assert set(again) == set(packages)
    for name, path in packages.items():
        with open(path, "rb") as one, open(again[name], "rb") as other:
            assert one.read() == other.read(), name


def test_lintian_finds_nothing(packages):
    changes, = glob.glob(f"{os.path.dirname(packages['drover'])}/*.changes")
    assert run("lintian", "--allow-root", "--fail-on", "error,warning", changes) == ""


def test_installed_used_upgraded_and_purged(packages, root, tmp_path):
    install(root, [packages[name] for name in ALL])
    for user in ("drover", "drover-agent"):
        assert f"({user})" in inside(root, "id", user)
    # Nothing runs services here; an installed server is one that starts with the machine, an agent must be told whose it is.
    wanted = root / "etc/systemd/system/multi-user.target.wants"
    assert (wanted / "droverd.service").is_symlink() and not (wanted / "drover-agent.service").is_symlink()

    # Where the service runs, users need say nothing: the commands find it.
    service = ["chroot", "--userspec=drover:drover", str(root), "env", "DROVER_DIR=/var/lib/drover", "PATH=/usr/bin:/bin", "/usr/sbin/droverd"]
    with subprocess.Popen(service, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until((root / "var/lib/drover/server.json").exists)
            inside(root, "useradd", "--create-home", "ann")
            as_ann = ("runuser", "-u", "ann", "--", "env", "HOME=/home/ann")
            assert "1 job" in inside(root, *as_ann, "drover", "submit", "--", "true")
            counted = inside(root, *as_ann, "/usr/bin/python3", "-c", "import drover; print(drover.Client().counts([1]).jobs)")
            assert counted.strip() == "1"
        finally:
            server.terminate()

    # The tour of the README, from the packages alone.
    (root / "tmp/tour.sh").write_text("drover up >/tmp/up.log 2>&1 &\nuntil grep -q ready /tmp/up.log; do sleep 0.1; done\n(set -e\n" +
                                      "\n".join(tour()[2:]) + ")\ncode=$?\nkill $!\nwait\nexit $code\n", encoding="utf-8")
    said = inside(root, *as_ann, "DROVER_DIR=/tmp/drover-tour", "bash", "/tmp/tour.sh", timeout=600)
    assert "request 3: 1000 jobs" in said and "request 8: " in said and "POLICY" in said, said

    # A newer version keeps what the admin wrote and what the server has.
    with open(root / "etc/drover/droverd.yaml", "a", encoding="utf-8") as f:
        f.write("log_level: debug\n")
    newer = []
    for name in PROGRAMS:
        tree = tmp_path / name
        run("dpkg-deb", "--raw-extract", packages[name], str(tree))
        control = tree / "DEBIAN/control"
        control.write_text(control.read_text().replace("Version: 0.1.0", "Version: 0.1.1"))
        newer.append(str(tmp_path / f"{name}_0.1.1_amd64.deb"))
        run("dpkg-deb", "--root-owner-group", "--build", str(tree), newer[-1])
    install(root, newer)
    assert "log_level: debug" in (root / "etc/drover/droverd.yaml").read_text()
    assert (root / "var/lib/drover/drover.db").exists()

    # Removed, what they keep stays; purged, nothing does.
    inside(root, "dpkg", "--remove", *ALL)
    assert not (root / "usr/sbin/droverd").exists()
    assert (root / "var/lib/drover/drover.db").exists()
    assert (root / "etc/drover/droverd.yaml").exists()
    inside(root, "dpkg", "--purge", *ALL)
    for path in ("etc/drover", "var/lib/drover", "var/lib/drover-agent", "usr/share/drover", "usr/libexec/drover", "usr/share/doc/drover"):
        assert not (root / path).exists(), path
