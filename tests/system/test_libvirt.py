"""The provisioner program libvirt, against a virsh that keeps domains and volumes in a file."""
import json
import os
import re
import subprocess
import time

import pytest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dist", "provisioners", "libvirt")
VIRSH = r'''#!/usr/bin/python3
import json, os, re, sys
folder = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
assert words[:2] == ["--quiet", "--connect"] and words[2] == "test:///x" and os.environ["LC_ALL"] == "C"
words = words[3:]
path = os.path.join(folder, "state.json")
state = json.load(open(path)) if os.path.exists(path) else {"domains": {}, "volumes": {"base": 1000}, "fault": {}}
def fail(text):
    sys.exit("error: " + text)
def keep():
    json.dump(state, open(path, "w"))
def domain(name):
    return state["domains"].get(name) or fail(f"failed to get domain '{name}'\nerror: Domain not found: no domain with matching name '{name}'")
verb = words[0]
open(os.path.join(folder, "calls"), "a").write(json.dumps(words) + "\n")
if verb in state["fault"]:
    fail(state["fault"][verb])
if verb == "list":
    print("\n".join(n for n, d in state["domains"].items() if "--state-shutoff" not in words or d["state"] != "running") + "\n")
elif verb == "define":
    xml = open(words[1]).read()
    name = re.search("<name>(.*?)</name>", xml).group(1)
    if name in state["domains"]:
        fail(f"operation failed: domain '{name}' already exists with uuid 1")
    state["domains"][name] = {"xml": xml, "state": "shut off (unknown)"}
elif verb == "start":
    domain(words[1])["state"] = "running"
elif verb == "destroy":
    if domain(words[1])["state"] != "running":
        fail("Failed to destroy domain\nerror: Requested operation is not valid: domain is not running")
    domain(words[1])["state"] = "shut off (destroyed)"
elif verb == "undefine":
    domain(words[1])
    del state["domains"][words[1]]
elif verb == "nodeinfo":
    print("CPU(s):              16\nMemory size:         16777216 KiB")
elif verb == "dominfo":
    memory = re.search("unit='MiB'>([0-9]+)<", domain(words[1])["xml"]).group(1)
    print(f"State:          running\nMax memory:     {int(memory) << 10} KiB\nUsed memory:    1024 KiB")
elif verb == "domstate":
    print(domain(words[2])["state"])
elif verb == "dumpxml":
    print(domain(words[1])["xml"].replace('"', "'"))
elif verb == "vol-info":
    print("Name:           base\nCapacity:       %d bytes" % state["volumes"][words[4]])
elif verb == "vol-create-as":
    state["volumes"][words[2]] = int(words[3])
elif verb == "vol-upload":
    open(os.path.join(folder, words[3]), "wb").write(open(words[4], "rb").read())
elif verb == "vol-delete":
    if words[3] not in state["volumes"]:
        fail(f"failed to get vol '{words[3]}'\nerror: Storage volume not found: no storage vol with matching path")
    del state["volumes"][words[3]]
else:
    fail("unknown command")
keep()
'''
MAKER = "#!/bin/sh\nwhile [ \"$1\" != -output ]; do shift; done\ncat \"$7\" \"$8\" >\"$2\"\n"  # the contents, one after the other


@pytest.fixture
def sky(tmp_path):
    for name, text in (("virsh", VIRSH), ("xorrisofs", MAKER)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def state(sky, **change):
    path = sky / "state.json"
    now = json.loads(path.read_text()) if path.exists() else {"domains": {}, "volumes": {"base": 1000}, "fault": {}}
    if change:
        now.update(change)
        path.write_text(json.dumps(now))
    return now


def call(sky, verb, asked):
    p = subprocess.run([PROGRAM, "--connect", "test:///x", verb], input=json.dumps(asked) + "\n", capture_output=True, text=True, timeout=60, check=False,
                       env={**os.environ, "PATH": f"{sky}:{os.environ['PATH']}"})
    return p.returncode, [json.loads(line) for line in p.stdout.splitlines()], p.stderr


def launch(tag, **shape):
    return {"call": "start", "tag": tag, "name": "vms-small-1", "shape": "small", "cpus": 2, "memory_mib": 2048, "disk_kib": 1 << 20,
            "server": "a.example:7331", "token": "secret'token", "attributes": "", "with": shape}


def test_a_machine_from_start_to_stop(sky):
    """Its domain has its tag as its name, a copy-on-write disk, and a seed with the token; nothing of it is left."""
    assert call(sky, "start", launch("drover.one.n.1", image="base", kvm=False, network="user")) == (0, [{"instance": "drover.one.n.1"}], "")
    call(sky, "start", launch("drover.other.n.1", image="base"))
    now = state(sky)
    xml = now["domains"]["drover.one.n.1"]["xml"]
    assert now["volumes"]["drover.one.n.1-disk"] == 1 << 30 and "<domain type='qemu'>" in xml and "<interface type='user'>" in xml
    assert "<memory unit='MiB'>2048</memory><vcpu>2</vcpu>" in xml and "secret" not in xml
    assert "<domain type='kvm'>" in now["domains"]["drover.other.n.1"]["xml"]
    seed = (sky / "drover.one.n.1-seed").read_text()
    assert "'secret'\"'\"'token'" in seed and "drover-agent --dir" in seed and "iptables" not in seed and '"local-hostname": "vms-small-1"' in seed
    assert call(sky, "start", launch("drover.one.n.1", image="base"))[1][0]["reason"] == "failed"  # never two of one tag
    assert "drover.one.n.1" in state(sky)["domains"]
    assert call(sky, "list", {"prefix": "drover.one."})[1] == [{"instance": "drover.one.n.1", "tag": "drover.one.n.1"}, {"end": True}]
    assert call(sky, "stop", {"instance": "drover.one.n.1", "tag": "drover.one.n.1"}) == (0, [], "")
    assert call(sky, "stop", {"instance": "drover.one.n.1", "tag": "drover.one.n.1"}) == (0, [], "")  # there is none
    assert set(state(sky)["domains"]) == {"drover.other.n.1"}
    assert set(state(sky)["volumes"]) == {"base", "drover.other.n.1-disk", "drover.other.n.1-seed"}
    assert b"secret" not in (sky / "calls").read_bytes()


def test_how_many_fit(sky):
    """Into the host's memory, beside the domains that run; a shape may give its machines more than their agents offer."""
    shapes = [{"shape": name, "cpus": 2, "memory_mib": 2048, "machines": 1, "with": shape} for name, shape in (("a", {}), ("b", {"memory_mib": 12000}), ("c", {"memory_mib": 20000}))]
    call(sky, "start", launch("drover.one.n.1", image="base"))
    call(sky, "start", launch("drover.one.n.2", image="base"))
    call(sky, "stop", {"instance": "drover.one.n.2", "tag": "drover.one.n.2"})
    assert [(o["shape"], o["most"]) for o in call(sky, "describe", {"shapes": shapes})[1]] == [("a", 8), ("b", 2), ("c", 1)]


def test_what_is_left_of_a_machine(sky):
    """One that turned itself off is removed by a list; one that was never started is shown, so that the server stops it."""
    for n in range(3):
        call(sky, "start", launch(f"d.n.{n}", image="base"))
    domains = state(sky)["domains"]
    domains["d.n.0"]["state"], domains["d.n.1"]["state"] = "shut off (shutdown)", "shut off (unknown)"
    state(sky, domains=domains)
    assert [m.get("instance") for m in call(sky, "list", {"prefix": "d."})[1]] == ["d.n.1", "d.n.2", None]
    assert "d.n.0" not in state(sky)["domains"] and "d.n.0-disk" not in state(sky)["volumes"]
    domains = state(sky)["domains"]
    domains["d.n.1"]["xml"] = re.sub(r"<description>\d+", f"<description>{int(time.time()) - 130}", domains["d.n.1"]["xml"])
    state(sky, domains=domains)
    assert [m.get("instance") for m in call(sky, "list", {"prefix": "d."})[1]] == ["d.n.2", None]
    assert set(state(sky)["domains"]) == {"d.n.2"}


@pytest.mark.parametrize("verb", ["vol-info", "vol-create-as", "vol-upload", "start"])
def test_a_start_that_fails(sky, verb):
    """Nothing of it is left, and the reason tells whether another shape may do."""
    for words, reason in (("internal error: cannot set up guest memory 'pc.ram': Cannot allocate memory", "capacity"), ("no such thing", "failed")):
        state(sky, fault={verb: words})
        code, said, _ = call(sky, "start", launch("d.n.1", image="base"))
        assert (code, said[0]["reason"]) == (0, reason) and words in said[0]["error"] and "secret" not in said[0]["error"]
        assert state(sky)["domains"] == {} and set(state(sky)["volumes"]) == {"base"}
    state(sky, fault={"list": "failed to connect to the hypervisor"})
    assert call(sky, "list", {"prefix": "d."})[1][0]["error"] == "virsh list: failed to connect to the hypervisor"
    assert "neither image nor kernel" in call(sky, "start", launch("d.n.1"))[2]
    state(sky, fault={})
    assert "network is user" in call(sky, "start", launch("d.n.1", image="base", network="tap:x"))[2]
