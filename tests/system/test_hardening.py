"""The programs are built hardened, and the server does its work inside the sandbox of its systemd unit."""
import os
import re
import signal
import subprocess

import pytest

import agents
from drover import Daemon, free_port, wait_until

PROGRAMS = ["drover", "droverd", "drover-agent", "drover-shepherd", "drover-mover", "drover-init", "condor/condor_q"]


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_hardened(instance, program):
    path = os.path.realpath(instance.program(program))
    static = program == "drover-init"  # has no symbols of libraries, but those of all that is in it
    header, segments, dynamic, symbols = (output("readelf", "-W", option, path)
                                          for option in ("-h", "-l", "-d", "--syms" if static else "--dyn-syms"))
    assert re.search(r"Type: +DYN", header) and re.search(r"FLAGS_1.*\bPIE\b", dynamic), "position independent"
    assert "GNU_RELRO" in segments and "BIND_NOW" in dynamic, "relocations are read-only before main"
    assert re.search(r"GNU_STACK .* RW +0x", segments), "the stack is not executable"
    assert not re.search(r" RWE +0x", segments), "nothing is writable and executable"
    assert "TEXTREL" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic
    assert "__stack_chk_fail" in symbols, "stack protector"
    if "libasan" not in dynamic:
        assert re.search(r"__\w+_chk\b" if static else r"__\w+_chk@GLIBC", symbols), "checked calls of the C library"
    if "X86-64" in header:
        main = output("objdump", "-d", "--no-show-raw-insn", "--disassemble=main", path)
        assert re.search(r"<main>:\n.*\bendbr64", main), "targets of indirect branches are marked"


def unit(instance, name):
    return os.path.join(instance.build, "dist", name)


def test_the_rating_of_the_server_s_unit(instance):
    """systemd's own scale: 0 is closed, 10 is open; times ten here."""
    p = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager",
                        unit(instance, "droverd.service")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert p.returncode == 0, p.stdout[-300:]


def members(groups):
    """The names of the system calls in systemd's groups (@name) of them."""
    calls = set()
    for line in output("systemd-analyze", "syscall-filter", *groups).splitlines():
        name = line.strip()
        if name.startswith("@") and line.startswith(" "):
            calls |= members([name])
        elif line.startswith(" ") and re.fullmatch(r"\w+", name):
            calls.add(name)
    return calls


def allowed(text):
    """The system calls that a unit's SystemCallFilter lines let through."""
    calls = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", text, re.M):
        groups = line.lstrip("~").split()
        calls = calls - members(groups) if line.startswith("~") else calls | members(groups)
    return calls


def test_the_server_works_within_its_unit_s_system_calls(instance):
    """Every call that it makes from start to stop, while jobs run and clients come by TLS, is one that the unit allows."""
    with open(unit(instance, "droverd.service"), encoding="utf-8") as f:
        may = allowed(f.read())
    assert "read" in may and "mount" not in may and "init_module" not in may
    counts = f"{instance.base}/calls"
    server = Daemon("droverd", ["strace", "-f", "-qq", "-c", "-S", "name", "-o", counts, instance.program("droverd"), "--dir", instance.dir,
                                "--api-listen", f"127.0.0.1:{free_port()}"],
                    f"{instance.base}/droverd.log", instance.env, instance.base)
    instance.daemons.append(server)
    wait_until(lambda: os.path.exists(f"{instance.dir}/server.json"))
    agents.start(instance, "queues:\n  - name: here\n    cpus: 2\n")
    agents.offering(instance)
    instance.run("executable = /bin/true\nqueue 20\n")
    instance.cli("token", "user", "--name", "laptop")
    instance.cli("history")
    os.kill(instance.server_pid(), signal.SIGTERM)
    server.process.wait(60)
    with open(counts, encoding="utf-8") as f:
        made = set(re.findall(r"(\w+)$", f.read(), re.M)) - {"syscall", "total"}
    assert {"accept4", "fdatasync", "openat"} <= made, made
    made.discard("fchown")  # SQLite calls it as root only, to give new files the database's owner
    assert not made - may, made - may
