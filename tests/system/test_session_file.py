"""The session file: what a submit leaves, and queue, wait, rm, get and resubmit of nothing else."""
import glob
import json
import os
import re
import shutil
import socket
import threading

import pytest

import agents
from drover import wait_until
from test_presets import QUEUES, settings
from users import ONE

JOB = """<job nProcesses="3" name="s"><command>if ( $JOBINDEX == 1 &amp;&amp; ! -e {gate} ) exit 3
echo $JOBINDEX</command>
<stdout URL="file:o.$JOBINDEX"/></job>
"""
SUB = "executable = /bin/sleep\narguments = 5000\nqueue 2\n"


def session_of(instance):
    return glob.glob(os.path.join(instance.work, "*.session.xml"))[0]


def nowhere(instance):
    """Another folder, and nothing in the environment that names the server."""
    folder = os.path.join(instance.base, "elsewhere")
    os.makedirs(folder, exist_ok=True)
    instance.env.pop("DROVER_DIR", None)
    return folder


def test_all_that_is_needed(instance):
    """Of three jobs one fails; the failed part alone is submitted again, and the session goes on with it."""
    instance.up()
    gate = os.path.join(instance.base, "gate")
    instance.write("job.xml", JOB.format(gate=gate))
    instance.cli("submit", "job.xml")
    path, folder = session_of(instance), nowhere(instance)
    assert os.path.exists(path.replace(".session.xml", ".report"))
    instance.cli("wait", "--session", path, code=1, cwd=folder)
    with open(gate, "w", encoding="utf-8"):
        pass
    out = instance.cli("resubmit", "--failed", "--session", path, cwd=folder)
    assert out == "request 2: 1 job\n"
    instance.cli("wait", "2", cwd=folder, env={"DROVER_DIR": instance.dir})
    with open(path, encoding="utf-8") as f:
        text = f.read()
    assert text.count("<request ") == 2 and 'id="2"' in text
    said = instance.cli("report", "--session", path, cwd=folder)
    assert "jobs       3\n" in said and "request 1 now: 0 idle, 0 running, 0 held, 3 completed, 0 removed; 1 of the completed failed\n" in said
    assert "request 2 now: 0 idle, 0 running, 0 held, 1 completed, 0 removed; 0 of the completed failed\n" in said
    assert instance.read("o.1") == "1\n"
    # Nothing has failed of the last part, which is what a resubmit is about.
    out = instance.cli("resubmit", "--failed", "--session", path, cwd=folder, code=None)
    assert out.code != 0, out.out


def test_the_report_says_which_queue_why_and_what_went_wrong(instance):
    """By the submit: queues in their order, and why others are out. Later: each job's place, why it is held or has failed or waits."""
    settings(instance, "policy: resonance")
    instance.server()
    agents.start(instance, QUEUES)
    wait_until(lambda: all(q["offer"] for q in agents.queues(instance, 3).values()))
    instance.write("list", "file:/etc/passwd\nfile:/nowhere/b\nfile:/etc/group\nfile://gone/c\n")
    instance.write("job.xml", '<job maxFilesPerProcess="1"><command>[ $JOBINDEX = 0 ] || exit 3</command>'
                   '<shell>sh</shell><stdout URL="file:o.$JOBINDEX"/><input URL="filelist:list" nFiles="all"/></job>')
    instance.cli("submit", "job.xml")
    path = session_of(instance)
    with open(path.replace(".session.xml", ".report"), encoding="utf-8") as f:
        left = f.read()
    assert "presets    policy resonance" in left
    assert "queue      n1/short: the first choice by the placement policy passive" in left
    assert re.search(r"^ +0 +n1/short +fits +-1 .*\n +0 +n1/long +fits +-2 .*\n +0 +n1/group +refuses +- +- +the job requires", left, re.M), left
    assert re.search(r"^ +0 +1  any place$", left, re.M) and re.search(r"^ +3 +1  the host gone$", left, re.M), left
    assert "script of a job" in left
    instance.wait_state("1.1", "held")
    wait_until(lambda: instance.job("1.0")["state"] == instance.job("1.2")["state"] == "completed")
    said = instance.cli("report", "--session", path)
    assert said.startswith(left)
    assert re.search(r"^ *1\.0 +completed +n1/(short|long) +exit 0$", said, re.M), said
    assert re.search(r"^ *1\.1 +held +n1/(short|long) +dataset: the file /nowhere/b is not here$", said, re.M), said
    assert re.search(r"^ *1\.2 +completed +n1/(short|long) +failed: exit 3$", said, re.M), said
    assert re.search(r"^ *1\.3 +idle +- *$", said, re.M) and "why 1.3 waits:\n  " in said, said
    # The report in the user's folder has it, too, once; a waiting that ends writes it again.
    for _ in range(2):
        instance.cli("report", "--session", path)
    with open(path.replace(".session.xml", ".report"), encoding="utf-8") as f:
        kept = f.read()
    assert kept.startswith(left) and kept.count("the file /nowhere/b is not here") == 1 == kept.count("==== the jobs as they were at ")
    # A resubmit of the failed part says that held jobs are none.
    again = instance.cli("resubmit", "--failed", "1")
    assert again.out == "request 2: 1 job\n" and "1 job of request 1 is held, and not submitted again: `drover why 1`" in again.err, again
    instance.cli("rm", "2")
    instance.cli("rm", "1.1", "1.3")
    instance.cli("wait", "--session", path, code=1)
    with open(path.replace(".session.xml", ".report"), encoding="utf-8") as f:
        kept = f.read()
    assert kept.startswith(left) and re.search(r"^ *1\.3 +removed", kept, re.M), kept
    # As JSON
    shown = json.loads(instance.cli("report", "--session", path, "--json"))
    assert shown["report"] == left and [j["id"] for j in shown["requests"][0]["jobs"]] == [f"1.{n}" for n in range(4)]
    assert shown["requests"][0]["request"]["failed"] == 1 and shown["requests"][0]["jobs"][2]["queue"] in ("short", "long")
    # A session file whose report is another file has nothing written there.
    other = instance.write("precious", "mine\n")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(re.sub('report="[^"]*"', f'report="{other}"', text))
    instance.cli("report", "--session", path)
    assert instance.read("precious") == "mine\n"
    instance.kill_server()
    out = instance.cli("report", "--session", path, "--json", code=1)
    assert json.loads(out.out)["requests"] == [] and out.err


def test_the_report_of_a_large_request(instance):
    """The server is asked about the first jobs only, and gets all."""
    instance.up()
    instance.write("list", "".join(f"file:/data/{'x' * 200}/{i}\n" for i in range(60000)))
    instance.write("job.xml", '<job maxFilesPerProcess="1"><command>true</command><stdout URL="file:o.$JOBID"/>'
                   '<input URL="filelist:list" nFiles="all"/></job>')
    assert instance.cli("submit", "--hold", "job.xml") == "request 1: 60000 jobs\n"
    with open(session_of(instance).replace(".session.xml", ".report"), encoding="utf-8") as f:
        left = f.read()
    assert re.search(r"^queue      \S+/\S+: the first choice by the placement policy cost", left, re.M), left[:2000]
    assert re.search(r"^ +59999 +1  any place$", left, re.M)


def test_plain_submits_leave_one_when_asked(instance):
    """It outlives the server, and moves to another folder with the user."""
    instance.server()
    instance.write("s.sub", SUB)
    instance.cli("submit", "--session", "my.session.xml", "s.sub")
    folder = nowhere(instance)
    shutil.move(session_of(instance), os.path.join(folder, "x"))
    instance.kill_server()
    assert instance.cli("queue", "--session", "x", cwd=folder, code=1).err
    assert re.search(r"^jobs +\d", instance.cli("report", "--session", "x", cwd=folder, code=1).out, re.M)
    instance.server()
    assert "sleep" in instance.cli("queue", "--session", "x", cwd=folder)
    instance.cli("rm", "--session", "x", cwd=folder)
    instance.cli("wait", "--session", "x", cwd=folder, code=1)
    assert "give ids or --session, not both" in instance.cli("rm", "--session", "x", "1", cwd=folder, code=2).err
    instance.write("no.sub", "executable = /bin/true\nqueue none\n")
    assert instance.cli("submit", "--session", "y", "no.sub", env={"DROVER_DIR": instance.dir}, code=1).err
    assert not instance.exists("y")


def test_a_server_that_was_rebuilt(instance):
    """From a backup, in the same folder and in another one; a new server has never heard of the session."""
    server = instance.server()
    instance.cli("submit", "--session", "x", instance.write("s.sub", SUB))
    path, copy = os.path.join(instance.work, "x"), os.path.join(instance.base, "copy")
    instance.cli("backup", copy)
    server.stop()
    shutil.rmtree(instance.dir)
    assert instance.json("restore", copy)["restored"] == copy
    server = instance.server()
    folder = nowhere(instance)
    assert "sleep" in instance.cli("queue", "--session", path, cwd=folder)
    server.stop()
    shutil.rmtree(instance.dir)
    there = os.path.join(instance.base, "there")
    instance.json("--dir", there, "restore", copy)
    instance.dir = instance.env["DROVER_DIR"] = there
    server = instance.server()
    instance.cli("rm", "--session", path, cwd=folder)
    server.stop()
    shutil.rmtree(there)
    instance.server()
    assert "does not know request 1 of the session" in instance.cli("queue", "--session", path, cwd=folder, code=2).err
    instance.submit(SUB)
    assert "is not the session's" in instance.cli("rm", "--session", path, cwd=folder, code=2).err


@pytest.mark.parametrize("old, new, says", [
    ('id="1"', 'id="2"', "request 2 of this server is not the session's"),
    ('id="1"', 'id="7"', "the server does not know request 7 of the session, or no longer"),
    ('id="1"', 'id="-1"', "<request> has no id, which is a number"),
    ('uuid="', 'uuid="x', "<request> has no uuid"),
    ("<session>", "<sessions>", "x.session.xml:"),
    ("<request", "<requests", "it has no <request>"),
    ("<session>", "<!DOCTYPE x [<!ENTITY a 'b'>]><session>", "a document type is not read"),
])
def test_it_is_believed_in_nothing(instance, old, new, says):
    instance.server()
    for text in ("s", "t"):
        instance.submit(SUB, *(["--session", "x.session.xml"] if text == "s" else []))
    path = session_of(instance)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(old, new))
    out = instance.cli("rm", "--session", path, code=2)
    assert says in out.err, out.err
    assert {r["id"]: r["idle"] for r in instance.json("queue")["requests"]} == {1: 2, 2: 2}


@pytest.mark.parametrize("of, heard", [("another user", b""), ("the caller", b"GET /v1/requests/1 ")])
def test_another_users_file_names_no_server(instance, of, heard):
    """Who is given a session file shows no token to a server that only the file's owner has chosen."""
    folder, got = nowhere(instance), []
    path, trap = os.path.join(folder, "x.session.xml"), os.path.join(instance.base, "trap")
    os.mkdir(trap)
    with open(os.path.join(trap, "server.json"), "w", encoding="utf-8") as f:
        json.dump({"api": f"unix:{trap}/s"}, f)
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'<session><server dir="{trap}"/><request id="1" uuid="{"1" * 36}" jobs="1"/></session>')
    os.chown(path, ONE.pw_uid if of == "another user" else os.geteuid(), -1)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(f"{trap}/s")
        s.listen()

        def listen():
            with s.accept()[0] as c:
                got.append(c.recv(65536))
        thread = threading.Thread(target=listen)
        thread.start()
        instance.cli("queue", "--session", path, cwd=folder, code=None, env={"DROVER_TOKEN": "a-secret", "HOME": folder})
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(f"{trap}/s")
            last.shutdown(socket.SHUT_WR)
            thread.join()
    assert got[0].startswith(heard) and bool(heard) == (b"a-secret" in got[0])
