"""The portable agent: unpacked on a machine that has a shell and no library, and started there by a user without rights."""
import ctypes
import errno
import glob
import os
import shutil
import subprocess
import tarfile

import agents
import pytest
from containers import busybox_tree
from drover import free_port, sh, wait_until
from stores import Nginx
from test_transfer import served

TOOLS = os.path.join(os.path.dirname(__file__), "..", "..", "tools")
NOBODY = 65534


@pytest.fixture(name="bare")
def bare_machine(instance, build):
    """The root folder of a machine with busybox and what the tarball has; commands there run as nobody."""
    tarball = subprocess.run([os.path.join(TOOLS, "agent-tarball"), build, instance.base], check=True, timeout=300, stdout=subprocess.PIPE,
                             text=True).stdout.strip()
    root = os.path.join(instance.base, "bare")
    with tarfile.open(busybox_tree(instance.base)) as t:
        t.extractall(root)
    for folder in ("proc", "dev", "sys", "home", "tmp", "etc"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    with tarfile.open(tarball) as t:
        t.extractall(os.path.join(root, "home"))
    shutil.chown(os.path.join(root, "home"), NOBODY, NOBODY)
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    assert not [f for f in glob.glob(f"{root}/lib*/**", recursive=True) if ".so" in f]
    mounts = f"mount -t proc proc {root}/proc && mount --rbind /dev {root}/dev && mount --rbind /sys {root}/sys"
    home = os.path.join("/home", os.path.basename(tarball).removesuffix(".tar.gz"))

    def command(program, *args):
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                f'{mounts} && exec chroot --userspec={NOBODY}:{NOBODY} {root} "$@"', "sh", f"{home}/{program}", *args]

    instance.bare = command
    return instance


def test_an_agent_without_libraries(bare):
    """It joins over TLS, runs jobs with files both ways, copies from a store, and its client calls it from inside a job."""
    os.makedirs(bare.dir, exist_ok=True)
    with open(os.path.join(bare.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"listen: 127.0.0.1:{free_port()}\n")
    for program in ("drover", "drover-agent", "drover-mover"):
        said = subprocess.run(bare.bare(program, "--version"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90, check=False)
        assert said.returncode == 0 and said.stdout.startswith(program), said.stdout
    bare.server()
    address = next(a for a in bare.server_json()["agents"] if not a.startswith("unix:"))
    token = bare.json("token", "agent", "--name", "bare", "--owners", "any")["token"]
    agent = bare.run_daemon("drover-agent", bare.bare("drover-agent", "--server", address, "--dir", "/home/agent", "--token", token, "--cpus", "2",
                                                     "--owner", "root@local"))
    agents.offering(bare)
    with served(Nginx(os.path.join(bare.base, "web"))) as web:
        with open(os.path.join(web.data, "there"), "w", encoding="utf-8") as f:
            f.write("from a store\n")
        bare.write("here", "from the submit\n")
        request = bare.submit(sh("cat here there >out; ls -d /lib* /usr/lib*; id -u",
                                 should_transfer_files="YES", transfer_executable="False", transfer_input_files=f"here, {web.url}there", transfer_output_files="out",
                                 output="said"))
        bare.wait(request)
        bare.cli("get", str(request))
    assert bare.read("out") == "from the submit\nfrom a store\n"
    assert bare.read("said").split() == [str(NOBODY)]  # there is no /lib
    agent.stop()
    wait_until(lambda: not bare.agents("connected"))


def test_an_old_kernel_is_told(instance):
    """The calls that Linux has had since 5.11 at the latest do not exist for this process."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p

    def without():
        allow, refuse = 0x7FFF0000, 0x00050000 | errno.ENOSYS
        rules = ctypes.c_void_p(seccomp.seccomp_init(allow))
        assert seccomp.seccomp_rule_add(rules, refuse, seccomp.seccomp_syscall_resolve_name(b"openat2"), 0) == 0
        assert seccomp.seccomp_load(rules) == 0

    said = subprocess.run([instance.program("drover-agent"), "--server", "127.0.0.1:1", "--dir", os.path.join(instance.base, "n1")],
                          preexec_fn=without, stderr=subprocess.PIPE, text=True, timeout=90, check=False)
    assert said.returncode == 1 and "needs Linux 5.11 or later, and this machine has Linux " in said.stderr, said.stderr
