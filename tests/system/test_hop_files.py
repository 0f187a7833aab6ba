"""Where a job's files are in the end is the same wherever it ran: here, behind one other server, behind two."""
import json
import os
import shlex
import stat
import types
import uuid

import pytest

import agents
import users
from drover import made, sh
from hops import hop_queue

PROCESSES = "  - {name: here, cpus: 8}\n"
WAYS = {"here": "n1/here", "one hop": "n1/east, n1/here", "two hops": "n1/east, n1/west"}


@pytest.fixture(scope="module")
def row(request):
    """Three servers in a row; the first two have processes of their own, too."""
    with made(request, "a-") as one, made(request, "b-") as two, made(request, "c-") as three:
        for server, queues in ((three, ""), (two, lambda: hop_queue("west", three)), (one, lambda: hop_queue("east", two))):
            server.server()
            server.agent = agents.start(server, "kill_grace: 1s\nqueues:\n" + PROCESSES + (queues and queues()))
            agents.offering(server, "here")
        agents.offering(two, "west")
        agents.offering(one, "east")
        yield types.SimpleNamespace(one=one, two=two, three=three)


def tree(folder):
    """All files of a folder, with their contents and who may execute them."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = (f.read().decode(errors="replace"), stat.S_IMODE(os.stat(path).st_mode) & 0o111)
    return found


def ran(row, way, script, before=(), **more):
    """What is in the folder of a job when it has ended that way, but for what was there before; and its last word."""
    one = row.one
    folder = os.path.join(one.work, f"{len(os.listdir(one.work))}")
    os.makedirs(folder)
    for name in before:
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write("before\n")
    asked = "TARGET.Runner " + ("=!=" if way == "here" else "==") + ' "drover"'
    text = sh(script, requirements=asked, **({} if way == "here" else {"+DroverPath": f'"{WAYS[way]}"'}), **more)
    request = one.submit(text, cwd=folder)
    job = one.wait_state(f"{request}.0", "completed", "held")
    last = (job["state"], job["exit_code"], job.get("hold_reason"))
    if job["state"] == "held":
        one.cli("rm", str(request))
    else:
        one.cli("get", str(request), cwd=folder)
    for name in before:
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            if f.read() == "before\n":
                os.unlink(os.path.join(folder, name))
    return tree(folder), last


@pytest.fixture(params=list(WAYS))
def way(request):
    return request.param


DONE = ("completed", 0, None)


@pytest.mark.parametrize("transfer", ["YES", "IF_NEEDED"])
def test_named_in_a_folder(row, way, transfer):
    found, last = ran(row, way, "mkdir -p sub/deep other; echo x >sub/x; echo y >sub/deep/y; echo no >other/z",
                      transfer_output_files="sub/x, sub/deep/y", should_transfer_files=transfer)
    assert last == DONE and found == {"x": ("x\n", 0), "y": ("y\n", 0)}


def test_the_same_name_in_two_folders(row, way):
    found, last = ran(row, way, "mkdir a b; echo a >a/x; echo b >b/x; echo x >x", transfer_output_files="a/x, b/x, x",
                      transfer_output_remaps='"a/x = ax; b/x = made/deep/bx"', before=["made/deep/is"])
    assert last == DONE and found == {"ax": ("a\n", 0), "made/deep/bx": ("b\n", 0), "x": ("x\n", 0)}


def test_what_is_new_is_at_the_top(row, way):
    found, last = ran(row, way, "mkdir sub; echo x >sub/x; echo new >new; : >none; echo '#!/bin/sh' >tool; chmod 755 tool; ln -s new link; "
                      "echo more >>changed; mkdir empty", before=["same", "changed", "folder/in"], transfer_input_files="same, changed, folder")
    assert last == DONE
    assert found == {"new": ("new\n", 0), "none": ("", 0), "tool": ("#!/bin/sh\n", 0o111), "changed": ("before\nmore\n", 0)}


def test_new_ones_are_renamed(row, way):
    found, last = ran(row, way, "echo 1 >one; echo 2 >two", before=["sub/is"], transfer_output_remaps='"one = sub/eins"')
    assert last == DONE and found == {"sub/eins": ("1\n", 0), "two": ("2\n", 0)}


def test_nothing_is_named(row, way):
    found, last = ran(row, way, "echo 1 >one; echo said", output="out", transfer_output_files='""')
    assert last == DONE and found == {"out": ("said\n", 0)}
    if way != "here":
        there = row.two if way == "one hop" else row.three
        job = there.history()[0]["id"]
        assert [o["Name"] for o in there.job(job)["ad"]["DroverOutputs"]] == [".drover_hop.0.out"]


def test_streams(row, way):
    found, last = ran(row, way, "echo said; echo wrong >&2; exit 3", before=["logs/is"], output="logs/out.$(Process)", error="err")
    assert last == ("completed", 3, None) and found == {"logs/out.0": ("said\n", 0), "err": ("wrong\n", 0)}
    found, last = ran(row, way, "echo said; echo wrong >&2", output="both", error="both")
    assert last == DONE and found == {"both": ("said\nwrong\n", 0)}
    found, last = ran(row, way, "true", output="out", error="err", transfer_output_files="")
    assert last == DONE and found == {"out": ("", 0), "err": ("", 0)}


ODD = ["a b", "%41?#&+", "ümläut ☃", "=;x", "$(x)", "back\\slash", "'quoted\"", "-n", "{j}", "*"]


def test_names(row, way):
    script = "; ".join("echo here >" + shlex.quote("./" + name) for name in ODD)
    found, last = ran(row, way, script.replace("$", "$(DOLLAR)"))
    assert last == DONE and found == {name: ("here\n", 0) for name in ODD}


def test_odd_names_in_a_folder(row, way):
    found, last = ran(row, way, "mkdir 'ü b'; echo x >'ü b/x ☃'; echo y >'ü b/%41'", transfer_output_files="ü b/x ☃, ü b/%41")
    assert last == DONE and found == {"x ☃": ("x\n", 0), "%41": ("y\n", 0)}


@pytest.mark.parametrize("transfer", ["YES", "IF_NEEDED"])
def test_folders(row, way, transfer):
    """Their files come with their names in them; links are left out."""
    found, last = ran(row, way, "mkdir -p sub/deep a/b; echo x >sub/x; : >sub/deep/none; echo y >sub/deep/y; chmod 755 sub/deep/y; ln -s x sub/link; "
                      "echo b >a/b/c; echo z >z", transfer_output_files="sub, a/b, z", should_transfer_files=transfer)
    assert last == DONE
    assert found == {"sub/x": ("x\n", 0), "sub/deep/none": ("", 0), "sub/deep/y": ("y\n", 0o111), "b/c": ("b\n", 0), "z": ("z\n", 0)}


@pytest.mark.parametrize("name", ["never", "sub/y*", "../x", "/etc/hostname", "link"])
def test_what_cannot_be_an_output(row, way, name):
    """A pattern of nothing, a link, what is not there or elsewhere: held everywhere."""
    found, last = ran(row, way, "mkdir sub; echo x >sub/x; ln -s sub/x link", transfer_output_files=name)
    assert last[0] == "held" and found == {} and name.split("/")[-1] in last[2]


def test_a_pattern(row, way):
    found, last = ran(row, way, "mkdir sub; echo x >sub/x1; echo y >sub/x2; echo z >sub/y", transfer_output_files="sub/x*")
    assert last == DONE and found == {"x1": ("x\n", 0), "x2": ("y\n", 0)}


def test_only_when_it_succeeds(row, way):
    for code, files in ((1, {}), (0, {"x": ("x\n", 0)})):
        found, last = ran(row, way, f"mkdir sub; echo x >sub/x; exit {code}", transfer_output_files="sub/x", when_to_transfer_output="ON_SUCCESS")
        assert last == ("completed", code, None) and found == files


@pytest.mark.parametrize("name", ["In", "Cmd"])
def test_drovers_own_folder_goes_nowhere(row, name):
    """Of what a job names outside of its sandbox nothing in the agent's own folder is sent on."""
    one = row.one
    key = os.path.join(one.base, "n1", "agent.key")
    assert os.path.exists(key)
    attributes = {"Cmd": '"/bin/cat"', "Iwd": json.dumps(one.work), "TransferExecutable": "false", "Out": '"own.out"', "Err": '"own.err"',
                  "FileSystemDomain": json.dumps(users.domain()), "Requirements": 'TARGET.Runner == "drover"', "DroverPath": '"n1/east, n1/here"',
                  "RequestMemory": "32", "RequestDisk": "1024", name: json.dumps(key)}
    body = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": attributes, "rows": 1, "steps": 1}]}
    request = one.api("POST", "/v1/requests", body)["id"]
    job = one.wait_state(f"{request}.0", "completed", "held")
    assert job["state"] == "held" and "Permission denied" in job["ad"]["HoldReason"], job
    one.cli("rm", str(request))


@pytest.mark.parametrize("name", ["Out", "Err"])
@pytest.mark.parametrize("by", ["its name", "a link"])
def test_nothing_comes_into_drovers_own_folder(row, name, by):
    """What a job prints at another server is not written into the agent's own folder, by any name of its streams."""
    one = row.one
    own = os.path.join(one.base, "n1")
    key = os.path.join(own, "agent.key")
    with open(key, "rb") as f:
        before = f.read()
    if by == "a link":
        os.makedirs(os.path.join(one.work, "links"), exist_ok=True)
        to = os.path.join(one.work, "links", f"to-{name}")
        os.symlink(own, to)
        key = os.path.join(to, "agent.key")
    attributes = {"Cmd": '"/bin/sh"', "Arguments": '"-c \'echo printed; echo printed >&2\'"', "Iwd": json.dumps(one.work), "TransferExecutable": "false",
                  "Out": '"own.out"', "Err": '"own.err"', "FileSystemDomain": json.dumps(users.domain()), "Requirements": 'TARGET.Runner == "drover"',
                  "DroverPath": '"n1/east, n1/here"', "RequestMemory": "32", "RequestDisk": "1024", "ShouldTransferFiles": '"NO"', name: json.dumps(key)}
    body = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": attributes, "rows": 1, "steps": 1}]}
    request = one.api("POST", "/v1/requests", body)["id"]
    job = one.wait_state(f"{request}.0", "completed", "held")
    with open(os.path.join(own, "agent.key"), "rb") as f:
        assert f.read() == before
    assert job["state"] == "held" and "in a folder of Drover's own" in job["ad"]["HoldReason"], job
    one.cli("rm", str(request))
