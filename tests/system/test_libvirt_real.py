"""Virtual machines for the queue, of the libvirtd that DROVER_LIBVIRT names: tools/prove-libvirt."""
import os
import re
import signal
import subprocess

from drover import free_port, sh, wait_until
from test_libvirt import PROGRAM
from test_provision import nodes, plan

LIBVIRT, POOL = os.environ["DROVER_LIBVIRT"], os.environ["DROVER_LIBVIRT_POOL"]


def configure(instance):
    port = free_port()
    with_ = f"image: small.qcow2, kvm: false, network: user, kernel: {POOL}/vmlinuz, initrd: {POOL}/initrd, cmdline: 'console=ttyS0 quiet'"
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""listen: 127.0.0.1:{port}
provision: {{wait: 0s, horizon: 20s}}
provisioners:
  vms:
    kind: exec
    command: [{PROGRAM}, --connect, '{LIBVIRT}']
    server: 10.0.2.2:{port}
    max_nodes: 2
    poll: 2s
    period: 10s
    idle_after: 10s
    boot_limit: 5m
    retry: 1s
    shapes:
      small: {{cpus: 1, memory: 256M, disk: 1G, price: 1, with: {{{with_}, memory_mib: 512}}}}
""")


def all_gone(instance):
    wait_until(lambda: {n["state"] for n in nodes(instance)} == {"retired"}, 120)
    wait_until(lambda: plan(instance)["provisioners"][0]["instances"] == 0, 120)
    assert not names() and sorted(os.listdir(POOL)) == ["initrd", "small.qcow2", "vmlinuz"]


def names(state="--all"):
    return subprocess.run(["virsh", "--quiet", "--connect", LIBVIRT, "list", state, "--name"], capture_output=True, text=True, check=True).stdout.split()


def test_virtual_machines_run_jobs(instance):
    """Two boot, join with what is on their seed, run jobs while the server is killed and restarted, and are gone with their volumes."""
    configure(instance)
    server = instance.server()
    request = instance.submit(sh("sleep 3; cat /proc/sys/kernel/hostname; cat /proc/version; [ -e /run/user-data ]", queue="queue 6", output="out.$(Process)",
                                 should_transfer_files="YES"))
    wait_until(lambda: len(names("--state-running")) == 2, 60)
    server.stop(signal.SIGKILL)
    server = instance.server()
    wait_until(lambda: nodes(instance, "idle", "busy"), 120)
    server.stop(signal.SIGKILL)
    server = instance.server()
    instance.wait(request, seconds=300)
    assert {j["agent"] for j in instance.history(request)} <= {"vms-small-1", "vms-small-2"}
    instance.cli("get", str(request))
    assert all(re.search(r"Linux version \S+-cloud-amd64", instance.read(f"out.{n}")) for n in range(6))
    all_gone(instance)


def test_a_virtual_machine_that_is_pulled_out(instance):
    """Destroyed from outside, its domain and volumes go with a list, and its job runs on another."""
    configure(instance)
    instance.server()
    request = instance.submit(sh("sleep 1000", should_transfer_files="YES"))
    instance.wait_state(f"{request}.0", "running", seconds=120)
    first = names("--state-running")[0]
    subprocess.run(["virsh", "--quiet", "--connect", LIBVIRT, "destroy", first], check=True)
    wait_until(lambda: names() and first not in names(), 120)
    instance.wait_state(f"{request}.0", "running", seconds=120)
    instance.cli("rm", str(request))
    all_gone(instance)
