"""The look-alikes of HTCondor's commands: what programs and people read of them."""
import os
import json
import re
import subprocess
import threading
import time
from xml.etree import ElementTree

import pytest

from condor import Condor
from drover import sh, wait_until

TOTALS = r"{} jobs; \d+ completed, \d+ removed, {} idle, {} running, {} held, \d+ suspended"


@pytest.fixture
def condor(shared):
    return Condor(shared)


def held(condor, **more):
    return condor.submit(sh("exit 0", hold="true", **more))


def ended(condor, cluster, jobs=1):
    wait_until(lambda: len(condor("history", cluster, "-af", "ProcId").split()) == jobs)


def test_submit_says_the_cluster(condor):
    out = condor("submit", "-", stdin=sh("exit 0", hold="true", queue="queue 3"))
    first, second = out.splitlines()
    assert re.fullmatch(r"Submitting job\(s\)\.+", first)
    cluster = re.fullmatch(r"3 job\(s\) submitted to cluster (\d+)\.", second)[1]
    assert condor("submit", "-terse", "-", stdin=sh("exit 0", queue="queue 2", hold="true")) == \
        f"{int(cluster) + 1}.0 - {int(cluster) + 1}.1\n"
    condor("rm", cluster, int(cluster) + 1)


def test_submit_takes_settings_from_the_command_line(condor):
    condor.instance.write("flags.sub", "executable = /bin/echo\nname = other\narguments = $(what) $(name)\n")
    out = condor("submit", "what=one", "name=two", "-batch-name", "many words", "-a", "hold = true", "-terse",
                 "flags.sub", "-queue", "2", "x", "in", "(a b)")
    cluster = out.split(".")[0]
    assert out == f"{cluster}.0 - {cluster}.3\n"
    # What the file says itself comes later, and wins.
    assert condor("q", cluster + ".0", "-af", "Arguments", "Args", "JobBatchName").strip().endswith("many words")
    assert "one other" in condor("q", cluster + ".0", "-af", "Arguments", "Args")
    condor("rm", cluster)
    assert "-maxjobs" in condor("submit", "-maxjobs", 1, "-file", "flags.sub", "-queue", 2, code=1).err
    assert '\nCmd="/bin/echo"\n' in condor("submit", "-dry-run", "-", "flags.sub", "-queue", 1)
    assert "flags.sub or" in condor("submit", "flags.sub", "flags.sub", code=1).err
    assert "-interactive" in condor("submit", "-interactive", code=1).err


def test_submit_fails_with_a_reason(condor):
    assert "no-such-file" in condor("submit", "no-such-file", code=1).err
    assert condor("submit", "-", stdin="executable = /bin/true\n", code=1) == ""


def test_a_program_or_folder_that_is_missing_here_ends_the_submit(condor):
    before = condor("q", "-af", "ClusterId")
    some = "executable = $(exe)\nqueue exe from (\n/bin/echo\nmissing\n)\n"
    assert "missing: No such file" in condor("submit", "-", stdin=some, code=1).err
    assert "missing: No such file" in condor("submit", "-dry-run", "-", "-", stdin=some, code=1).err
    folder = "executable = /bin/echo\ninitialdir = d$(Process)\nqueue 2\n"
    condor.instance.write("d0/here", "")
    assert "No such directory: " in condor("submit", "-", stdin=folder, code=1).err
    assert condor("q", "-af", "ClusterId") == before
    place = "executable = missing\ntransfer_executable = false\nhold = true\nqueue\n"
    condor("rm", condor.submit(place))
    condor.instance.write("d1/here", "")
    condor("rm", condor.submit("hold = true\n" + folder))


def test_published_conditions_on_slots_are_met(condor):
    """Clauses that files of public repositories ask of HTCondor's slots."""
    clauses = ['versionGE(split(TARGET.CondorVersion)[1], "8.9.7")', "TARGET.KFlops > 1000", "TARGET.Mips > 10",
               "TARGET.UidDomain == TARGET.Machine", '(State == "Unclaimed" && Activity == "Idle")',
               "(CpuIsBusy =?= true || CpuIsBusy =?= false)", 'regexp("^x86_64", TARGET.Microarch)',
               "(TARGET.HasJava =?= false || TARGET.HasJava)", 'TARGET.OpSysShortName == TARGET.OpSysName',
               "TARGET.OpSysVer >= TARGET.OpSysMajorVer * 100", "TARGET.has_avx =!= false"]
    if os.uname().machine != "x86_64":
        clauses = [c for c in clauses if "Microarch" not in c and "KFlops" not in c and "Mips" not in c]
    cluster = condor.submit(sh("exit 0", requirements=" && ".join(clauses), rank="KFlops"))
    wait_until(lambda: condor("history", cluster, "-af", "ExitCode") == "0\n")
    assert condor("status", "-af", "Activity", "State", "CondorVersion") == \
        "Idle Unclaimed " + condor("version").splitlines()[0] + "\n"


def test_programs_of_rows_are_absolute_or_of_the_submit_folder(condor):
    condor.instance.write("own.sh", "#!/bin/sh\necho own $1\n", mode=0o755)
    cluster = condor.submit("executable = $(exe)\narguments = $(word)\noutput = exe.$(Process)\nqueue exe, word from (\n"
                            "/bin/echo, one\nown.sh, two\n)\n")
    wait_until(lambda: condor("q", cluster, "-af", "JobStatus") == "")
    assert [condor.instance.read(f"exe.{n}") for n in (0, 1)] == ["one\n", "own two\n"]


def test_backslashes_of_command_lines_stand_for_themselves(condor):
    cluster = condor.submit(sh("exit 0", hold="true", **{"+Note": r'"a1 C:\new"'}))
    digits = r'regexp("^a\d ", Note)'
    assert condor("q", cluster, "-constraint", digits, "-af", "Note", r'strcat("\d", "!")') == r"a1 C:\new \d!" + "\n"
    assert str(cluster) in condor.instance.cli("queue", "-c", digits)
    condor("rm", "-constraint", digits)
    wait_until(lambda: condor("history", cluster, "-constraint", digits, "-af", "ProcId") == "0\n")


def test_names_are_spelled_as_the_author_of_the_job_wrote_them(condor):
    long = "NameOfAnAttributeOfMoreThanThirtyTwoLetters"
    first = held(condor, **{"+DeepField": "1", "+GrowsBy": "$(Process)", f"+{long}": "3"})
    other = held(condor, **{"+deepfield": "2", "+GROWSBY": "$(Process)", "+Uses": f"DEEPFIELD + MY.growsby + {long.upper()}", f"+{long.lower()}": "4"})
    for cluster, names in ((first, {"DeepField", "GrowsBy", long}), (other, {"deepfield", "GROWSBY", long.lower()})):
        row = condor.json("q", cluster)[0]
        assert {name for name in row if name.lower() in ("deepfield", "growsby", long.lower())} == names
        xml = ElementTree.fromstring(condor("q", cluster, "-xml", "-attributes", f"DEEPfield,growsBY,{long.upper()}"))
        assert {a.get("n") for a in xml.iter("a")} >= names
        for name in names:
            assert f"\n{name} = " in condor("q", cluster, "-long")
    assert f"Uses = DEEPFIELD + MY.growsby + {long.upper()}\n" in condor("q", other, "-long")
    condor("rm", first, other)
    ended(condor, other)
    assert "\ndeepfield = 2\n" in condor("history", other, "-long")
    assert f"\n{long.lower()} = 4\n" in condor("history", other, "-long")


def test_terse_prints_no_warnings(condor):
    text = sh("exit 0", image_size="10", hold="true")
    assert "image_size" in condor("submit", "-", stdin=text).err
    assert condor("submit", "-terse", "-", stdin=text).err == ""
    condor("rm", "-constraint", "JobStatus == 5")


def test_queue_without_batches(condor):
    cluster = condor.submit(sh("sleep 100", queue="queue 2"))
    condor.instance.wait_state(f"{cluster}.0", "running")
    condor("hold", f"{cluster}.1", "-reason", "not now")
    condor.instance.wait_state(f"{cluster}.1", "held")
    out = condor("q", "-nobatch", cluster)
    lines = out.splitlines()
    assert lines[0] == lines[1] == "" and lines[2].startswith("-- Schedd: ")
    assert lines[3] == " ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD"
    owner = condor("q", f"{cluster}.0", "-af", "Owner").strip()
    for line, member, status in ((lines[4], 0, "R"), (lines[5], 1, "H")):
        words = line.split()
        assert words[0] == f"{cluster}.{member}" and words[1] == owner and words[5] == status
        assert re.fullmatch(r"\d+/\d+", words[2]) and re.fullmatch(r"\d\d:\d\d", words[3])
        assert re.fullmatch(r"0\+00:\d\d:\d\d", words[4]) and words[8] == "sh"
    assert lines[6] == ""
    assert re.match("Total for query: " + TOTALS.format(2, 0, 1, 1), lines[7])
    assert "not now" in condor("q", "-hold", cluster) and f"{cluster}.0" not in condor("q", "-hold", cluster)
    assert f"{cluster}.0" in condor("q", "-run", cluster) and "Total" not in condor("q", "-run", cluster)
    assert re.match(r"\nTotal for query: " + TOTALS.format(2, 0, 1, 1), condor("q", "-totals", cluster))
    condor("rm", cluster)
    wait_until(lambda: condor("q", cluster, "-af", "ProcId") == "")


def test_queue_with_batches(condor):
    cluster = condor.submit(sh("exit 0", queue="queue 5", hold="true"), "-batch-name", "five")
    out = condor("q")
    title = [line for line in out.splitlines() if "JOB_IDS" in line][0]
    assert title.split() == ["OWNER", "BATCH_NAME", "SUBMITTED", "DONE", "RUN", "IDLE", "HOLD", "TOTAL", "JOB_IDS"]
    line = [line for line in out.splitlines() if line.endswith(f" {cluster}.0-4")][0]
    assert line.split()[1] == "five" and line.split()[-6:-1] == ["_", "_", "_", "5", "5"]
    assert f" {cluster}.0-4" in condor("q", cluster) and f" {cluster}.0-4" not in condor("q", cluster + 1000)
    assert f" {cluster}.2-3" in condor("q", "-constraint", f"ClusterId == {cluster} && ProcId > 1 && ProcId < 4")
    condor("rm", cluster)


def test_queue_of_nothing_is_no_error(condor):
    out = condor("q", "-nobatch", 99999, "99998.3")
    assert re.search("Total for query: " + TOTALS.format(0, 0, 0, 0), out)
    assert condor("q", 99999, "-af", "JobStatus") == ""
    assert condor.json("q", 99999) == []
    cluster = held(condor)
    assert condor("q", 99999, cluster, "-af:j", "JobStatus") == f"{cluster}.0 5\n"
    condor("rm", cluster)


def test_autoformat_and_json(condor):
    cluster = condor.submit(sh("exit 0", hold="true", priority="3", queue="queue 2"))
    assert condor("q", f"{cluster}.1", "-af:jr", "JobStatus") == f"{cluster}.1 5\n"
    assert condor("q", cluster, "-af", "ProcId + 10", "JobPrio", "nothing") == "10 3 undefined\n11 3 undefined\n"
    assert condor("q", cluster, "-constraint", "ProcId == 1", "-format", "%d.", "ClusterId", "-format", "%d\\n",
                  "ProcId") == f"{cluster}.1\n"
    ads = condor.json("q", cluster)
    assert [(a["ClusterId"], a["ProcId"], a["JobStatus"], a["Cmd"]) for a in ads] == \
        [(cluster, 0, 5, "/bin/sh"), (cluster, 1, 5, "/bin/sh")]
    assert ads[0]["Requirements"].startswith("/Expr(")
    assert condor.json("q", cluster, "-attributes", "ProcId,Owner")[1].keys() == {"ProcId", "Owner"}
    assert len(condor("q", cluster, "-jsonl").splitlines()) == 2
    xml = ElementTree.fromstring(condor("q", cluster, "-xml", "-attributes", "ProcId,Cmd"))
    assert [[(a.get("n"), a[0].text) for a in c] for c in xml] == \
        [[("ProcId", str(n)), ("Cmd", "/bin/sh")] for n in (0, 1)]
    two = ["-attributes", "ProcId,Cmd"]
    assert json.loads(condor("q", cluster, "-long:json", *two)) == json.loads(condor("q", cluster, "-json", *two))
    assert condor("q", cluster, "-long:jsonl", *two) == condor("q", cluster, "-jsonl", *two)
    assert condor("q", cluster, "-l:xml", *two) == condor("q", cluster, "-xml", *two)
    assert condor("q", cluster, "-long:new", "-attributes", "ProcId") == "{\n[ ProcId = 0 ]\n,\n[ ProcId = 1 ]\n}\n"
    long = condor("q", f"{cluster}.0", "-long")
    assert f"ClusterId = {cluster}\n" in long and 'Cmd = "/bin/sh"\n' in long and long.endswith("\n\n")
    assert condor("q", cluster, "-limit", 1, "-af", "ProcId") == "0\n"
    owner = condor("q", f"{cluster}.0", "-af", "Owner").strip()
    assert condor("q", owner, "-constraint", f"ClusterId == {cluster}", "-af", "ProcId") == "0\n1\n"
    assert condor("q", "nobody-at-all", "-af", "ProcId") == ""
    assert int(condor("q", f"{cluster}.0", "-dag", "-format", "%d", "ServerTime-EnteredCurrentStatus")) < 60
    name = condor("q", f"{cluster}.1", "-af", "GlobalJobId").strip()
    assert re.fullmatch(rf"[0-9a-f-]{{36}}#{cluster}\.1#\d+", name)
    assert condor("q", "-constraint", f'GlobalJobId == "{name}"', "-af", "ProcId") == "1\n"
    condor("rm", cluster)
    assert condor("history", f"{cluster}.1", "-af", "GlobalJobId").strip() == name
    assert condor("history", f"{cluster}.1", "-af", "JobRunCount", "NumJobStarts") == "0 0\n"


def test_hold_release_rm(condor):
    cluster = condor.submit(sh("sleep 100", queue="queue 3"))
    assert condor("hold", f"{cluster}.0") == f"Job {cluster}.0 held\n"
    condor.instance.wait_state(f"{cluster}.0", "held")
    assert condor("q", f"{cluster}.0", "-af", "JobStatus", "HoldReasonCode") == "5 1\n"
    assert condor("hold", cluster, "-constraint", "ProcId == 1") == f"All jobs in cluster {cluster} have been held\n"
    condor.instance.wait_state(f"{cluster}.1", "held")
    assert condor("release", f"{cluster}.0") == f"Job {cluster}.0 released\n"
    assert condor("rm", "-held", cluster) == f"All jobs in cluster {cluster} have been marked for removal\n"
    wait_until(lambda: condor("q", cluster, "-af", "ProcId").split() == ["0", "2"])
    out = condor("rm", f"{cluster}.0", "99999.0", 99999, code=1)
    assert out == f"Job {cluster}.0 marked for removal\n"
    assert out.err == "Job 99999.0 not found\nCouldn't find/remove all jobs in cluster 99999\n"
    assert condor("rm", "-constraint", f"ClusterId == {cluster}") == \
        f"All jobs matching constraint (ClusterId == {cluster}) have been marked for removal\n"
    assert "which jobs" in condor("rm", code=1).err
    wait_until(lambda: condor("q", cluster, "-af", "ProcId") == "")


def test_suspend_continue_vacate(condor):
    cluster = condor.submit(sh("sleep 100"))
    job = f"{cluster}.0"
    condor.instance.wait_state(job, "running")
    assert condor("suspend", job) == f"Job {job} suspended\n"
    wait_until(lambda: condor("q", job, "-af", "JobStatus") == "7\n")
    assert condor("continue", cluster) == f"All jobs in cluster {cluster} have been continued\n"
    wait_until(lambda: condor("q", job, "-af", "JobStatus") == "2\n")
    assert condor("vacate_job", "-constraint", f"ClusterId == {cluster}").endswith("have been vacated\n")
    wait_until(lambda: condor("q", job, "-af", "NumJobStarts", "JobStatus") == "2 2\n")
    condor("rm", job)


def test_rm_all_and_of_a_user(drover):
    condor = Condor(drover)
    held(condor)
    assert condor("rm", "-all") == "All jobs have been marked for removal\n"
    owner = condor("q", held(condor), "-af", "Owner").strip()
    assert condor("rm", owner) == f'All jobs of user "{owner}" have been marked for removal\n'
    assert condor("q", "-af", "ClusterId") == ""


def test_history(condor):
    cluster = condor.submit(sh("exit $(Process)", queue="queue 3"))
    ended(condor, cluster, 3)
    rows = condor("history", cluster, "-af:j", "ExitCode", "JobStatus", "ExitBySignal").splitlines()
    assert sorted(rows) == [f"{cluster}.{n} {n} 4 false" for n in range(3)]
    assert condor("history", cluster, "-constraint", "ExitCode == 2", "-af", "ProcId") == "2\n"
    assert len(condor.json("history", cluster, "-limit", 2)) == 2
    assert len(condor.json("history", cluster, "-match", 1)) == 1
    forwards = condor("history", cluster, "-forwards", "-af:j", "ExitCode", "JobStatus", "ExitBySignal").splitlines()
    assert forwards == rows[::-1]
    first = rows[-1].split()[0]
    assert len(condor("history", cluster, "-since", first, "-af", "ProcId").split()) == 2
    table = condor("history", f"{cluster}.1").splitlines()
    assert table[0].split() == ["ID", "OWNER", "SUBMITTED", "RUN_TIME", "ST", "COMPLETED", "CMD"]
    assert table[1].split()[0] == f"{cluster}.1" and table[1].split()[5] == "C"
    assert condor("history", 99999, "-af", "ProcId") == ""
    assert condor("q", cluster, "-af", "ProcId") == ""


LOG = {0: "Job submitted from host: <127.0.0.1:1>", 1: "Job executing on host: <127.0.0.1:2>", 5: "Job terminated.",
       9: "Job was aborted."}


def log_event(number, job):
    cluster, proc = job.split(".")
    return f"{number:03} ({int(cluster):04}.{int(proc):03}.000) 2026-11-21 09:14:05 {LOG[number]}\n\tmore\n...\n"


def test_wait(condor):
    path = condor.instance.write("user.log", log_event(0, "7.0") + log_event(0, "7.1") + log_event(5, "7.1"))
    assert condor("wait", path, "7.1") == "All jobs done.\n"
    assert condor("wait", "-num", 1, path) == "Specifed number of jobs (1) done.\n"
    assert condor("wait", "-wait", 1, path, code=1) == "Time expired.\n"
    assert condor("wait", "-wait", 0, path, 8, code=1) == "Time expired.\n"
    assert "no-such" in condor("wait", "-wait", 0, "no-such.log", code=1).err
    assert "does not begin an event" in condor("wait", condor.instance.write("bad.log", "x\n...\n"), code=1).err

    def go_on():
        time.sleep(0.3)
        for part in (log_event(1, "7.0"), log_event(9, "7.0")[:20], log_event(9, "7.0")[20:]):
            with open(path, "a", encoding="utf-8") as f:
                f.write(part)
            time.sleep(0.1)

    writer = threading.Thread(target=go_on)
    writer.start()
    out = condor("wait", "-status", "-wait", 30, path, 7)
    writer.join()
    assert out.splitlines() == ["7.0.0 submitted", "7.1.0 submitted", "7.1.0 completed",
                                "7.0.0 executing on host <127.0.0.1:2>", "7.0.0 aborted", "All jobs done."]


def test_wait_for_a_log_that_comes(condor):
    def come():
        time.sleep(0.3)
        condor.instance.write("other.log", "")
        condor.instance.write("late.log", log_event(0, "7.0") + log_event(5, "7.0"))

    writer = threading.Thread(target=come)
    writer.start()
    assert condor("wait", "late.log") == "All jobs done.\n"
    writer.join()


def test_wait_for_jobs_that_write_their_log(condor):
    text = sh("exit $(Process)", log="jobs.log", queue="queue 2")
    cluster = condor.submit(text)
    out = condor("wait", "-status", "-wait", 60, "jobs.log", cluster).splitlines()
    assert out[-1] == "All jobs done."
    for n in range(2):
        mine = [line for line in out if line.startswith(f"{cluster}.{n}.0 ")]
        assert [line.split()[1] for line in mine] == ["submitted", "executing", "completed"], out
    second = held(condor, log="jobs.log")
    wait_until(lambda: re.search(rf"^000 \(0*{second}\.", condor.instance.read("jobs.log"), re.M))
    assert condor("wait", "-wait", 1, "jobs.log", second, code=1) == "Time expired.\n"
    condor("rm", second)
    assert "aborted" in condor("wait", "-status", "-wait", 60, "jobs.log", second)


def test_status(condor):
    slots = condor.json("status")
    assert len(slots) == 1 and slots[0]["MyType"] == "Machine" and slots[0]["State"] in ("Claimed", "Unclaimed")
    name = slots[0]["Name"]
    assert condor("status", "-af", "Name", "Arch", "TotalCpus > 0") == f"{name} {slots[0]['Arch']} true\n"
    assert condor("status", "-constraint", "TotalCpus < 0", "-af", "Name") == ""
    assert condor("status", slots[0]["Machine"], "-af", "Name").strip() == name
    assert condor("status", "elsewhere", "-af", "Name") == ""
    assert [line.split()[0] for line in condor("status").splitlines() if line.startswith(name)] == [name]
    assert slots[0]["SlotType"] == "Partitionable" and slots[0]["TotalSlotCpus"] == slots[0]["TotalCpus"]
    assert condor("status", "-compact").startswith("Machine ")
    assert re.search(r"Total +1 ", condor("status", "-total"))


def test_qedit(condor):
    cluster = condor.submit("executable = /bin/true\nrequirements = false\nqueue 2\n")
    assert condor("qedit", f"{cluster}.1", "RequestMemory", 77, "Project", '"atlas"').splitlines() == [
        f'Set attribute "{name}" for 1 matching jobs.' for name in ("RequestMemory", "Project")]
    assert condor("q", cluster, "-af", "RequestMemory", "Project").splitlines()[1] == "77 atlas"
    assert "for 2 matching" in condor("qedit", "-constraint", f"ClusterId == {cluster}", "Note=1 + 1")
    assert condor("q", cluster, "-af", "Note").split() == ["2", "2"]
    assert "Owner cannot be changed" in condor("qedit", cluster, "Owner", '"root"', code=1).err
    assert "has no value" in condor("qedit", cluster, "Note", code=1).err
    assert "which attribute" in condor("qedit", cluster, code=1).err
    condor("qedit", cluster, "Requirements", "true")
    ended(condor, cluster, 2)
    assert "none of them" in condor("qedit", cluster, "Note", 1, code=1).err


def test_a_batch_has_its_name_however_it_is_asked_for(condor):
    cluster = held(condor, batch_name="my batch")
    owner = condor.json("q", cluster)[0]["Owner"]
    for words in ((), (cluster,), (owner,), ("-submitter", owner), ("-constraint", f"ClusterId == {cluster}"), ("-limit", 1)):
        assert re.search(rf"\b{owner} +my batch +", condor("q", *words)), words
    condor("rm", cluster)


def test_a_backslash_stands_for_itself(condor):
    """In what is typed and in what is printed, as HTCondor's old syntax has it; -json has JSON's own."""
    cluster = condor.submit(sh("exit 0", hold="true", **{"+Bar": r'"C:\new\table"'}))
    condor("qedit", cluster, "Node", r'regexp("^n\d+\.cern", "n12.cern")')
    raw = [r'"C:\new\table"', r'regexp("^n\d+\.cern","n12.cern")']
    assert condor("q", cluster, "-af:,r", "Bar", "Node") == ", ".join(raw) + "\n"
    assert condor("q", cluster, "-af:,V", "Bar", "Node") == raw[0] + ", true\n"
    assert condor("q", cluster, "-format", "%r", "Bar", "-format", " %V", "Bar", "-format", " %s\\n", "Bar") == f"{raw[0]} {raw[0]} " + r"C:\new\table" + "\n"
    assert f"Bar = {raw[0]}\n" in condor("q", cluster, "-long")
    assert condor.json("q", cluster)[0]["Bar"] == r"C:\new\table"
    only = rf'ClusterId == {cluster} && regexp("^C:.new\\t", Bar)'
    assert only in condor("rm", "-constraint", only)


def test_prio(condor):
    cluster = held(condor)
    condor("prio", "-p", -7, cluster)
    assert condor("q", cluster, "-af", "JobPrio") == "-7\n"
    assert "which priority" in condor("prio", cluster, code=1).err
    assert "which jobs" in condor("prio", "-p", 1, code=1).err
    condor("rm", cluster)


def test_transfer_data(condor):
    """Outputs that wait at the server come to the folder of the submit."""
    condor.instance.write("deep/job.sub", sh("echo made >made.txt", should_transfer_files="YES", output="out"))
    cluster = int(condor("submit", "-terse", "-spool", "job.sub", cwd=os.path.join(condor.instance.work, "deep")).split(".")[0])
    ended(condor, cluster)
    for name in ("made.txt", "out"):
        if condor.instance.exists(f"deep/{name}"):
            os.unlink(os.path.join(condor.instance.work, "deep", name))
    condor("transfer_data", cluster)
    assert condor.instance.read("deep/made.txt") == "made\n"
    assert "which jobs" in condor("transfer_data", code=1).err


def test_tail_and_run(condor):
    assert condor("run", "echo said; echo more >&2") == "said\n"
    assert condor("run", "exit 7", code=1) == ""
    cluster = condor.submit(sh("echo out; echo err >&2", output="tail.out", error="tail.err"))
    ended(condor, cluster)
    assert condor("tail", cluster) == "out\n" and condor("tail", "-stderr", "-f", cluster) == "err\n"
    assert "999999" in condor("tail", "999999", code=1).err


def test_userprio_and_drain(condor):
    waits = condor.submit(sh("true", requirements="false"))
    out = condor("userprio").splitlines()
    condor("rm", waits)
    assert "Priority" in out[1] and out[-1] == "Number of users: 1" and float(out[2].split()[1]) > 0
    assert "droverd.yaml" in condor("userprio", "-setfactor", "ann", 3, code=1).err
    name = condor("status", "-af", "Name").strip()
    assert condor("drain", "-reason", "tests", name).startswith("Sent request to drain ")
    cluster = condor.submit(sh("true"))
    assert "tests" in condor.instance.cli("why", str(cluster))
    assert condor("drain", "-cancel", name).startswith("Sent request to cancel draining")
    ended(condor, cluster)
    assert "no agent nowhere" in condor("drain", "nowhere", code=1).err


def test_version_and_help(condor):
    assert re.match(r"\$CondorVersion: \d+\.\d+\.\d+ .*\$\n\$CondorPlatform: .*\$\n$", condor("version"))
    for name in ("submit", "q", "rm", "hold", "release", "suspend", "continue", "vacate_job", "history", "wait", "status",
                 "version", "qedit", "prio", "tail", "run", "transfer_data", "chirp", "userprio", "drain"):
        assert condor(name, "-version") == condor("version")
        assert condor(name, "-help").startswith(f"Usage: condor_{name} ")
        assert f"condor_{name}: -bad-flag" in condor(name, "-bad-flag", code=1).err


def test_flags_that_are_not_supported(condor):
    assert "drover why" in condor("q", "-better-analyze", code=1).err
    assert "elsewhere" in condor("q", "-name", "elsewhere", code=1).err
    assert condor("q", "-pool", "localhost", "-totals").err == ""
    assert "-debug is not acted on" in condor("q", "-debug", "-totals").err


def test_another_programs_way_with_them(condor):
    """Submit from a shell script, and read the cluster out of the answer with a regular expression."""
    script = "condor_submit job.sub | sed -n 's/.*submitted to cluster \\([0-9]*\\)\\./\\1/p'"
    condor.instance.write("job.sub", sh("exit 3"))
    cluster = subprocess.run(["sh", "-c", script], cwd=condor.instance.work, env=condor.env, check=True, text=True,
                             stdout=subprocess.PIPE, timeout=90).stdout.strip()
    ended(condor, cluster)
    assert condor("history", cluster, "-limit", 1, "-format", "%d", "ExitCode") == "3"


def test_ssh_to_job(condor, shared):
    """A command beside the job's program, as ssh takes it, with its input; a shell wants a terminal."""
    cluster = condor.submit(sh(f"touch {shared.work}/inside; while [ ! -e {shared.work}/leave ]; do sleep 0.05; done"))
    wait_until(lambda: shared.exists("inside"))
    shared.wait_state(f"{cluster}.0", "running")
    assert condor("ssh_to_job", f"{cluster}.0", "echo $DROVER_JOB;", "wc -c", stdin="four") == f"{cluster}.0\n4\n"
    condor("ssh_to_job", cluster, "exit 3", code=3)
    assert "not a terminal" in condor("ssh_to_job", cluster, code=2).err
    shared.write("leave", "")
    ended(condor, cluster)
