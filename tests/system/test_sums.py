"""Descriptions of SUMS: XML in, jobs out; its commands; what is wrong in one is named by line, element and attribute."""
import glob
import json
import os
import shutil
import subprocess
import tempfile

import pytest
from drover import wait_until
from guarded import Authority, Grid

ROOT4STAR = """#!/bin/sh
# root4star -q -b MACRO("OUTPUT", "LIST"): what it is told of goes into the output.
macro=$3
out=$(printf '%s' "$macro" | sed 's/[^"]*"\\([^"]*\\)".*/\\1/')
list=$(printf '%s' "$macro" | sed 's/[^"]*"[^"]*"[^"]*"\\([^"]*\\)".*/\\1/')
sed 's,^root://[^/]*/,,' "$list" | while read -r f; do cksum <"$f"; done >"$out"
echo "$JOBINDEX $INPUTFILECOUNT $INPUTFILE0 $FILEBASENAME $PWD $SCRATCH $REQUESTID $SUMS_name"
"""

SEED = """<?xml version="1.0" encoding="utf-8" ?>
<job maxFilesPerProcess="10" fileListSyntax="rootd" minMemory="15">
  <command>
    root4star -q -b /star/macro/runMuHeavyMaker.C\\(\\"$SCRATCH/heavy.MuDst.root\\",\\"$FILELIST\\"\\)
  </command>
  <stdout URL="file:{work}/temp/heavy.$JOBID.out" />
  <input URL="catalog:star.bnl.gov?production=P04ik,trgsetupname=proHigh,filetype=daq_reco_MuDst,tpc=1,ftpc=1,sanity=1" nFiles="all"/>
  <output fromScratch="*MuDst.root" toURL="file:{work}/data02/heavy.$JOBID.root" />
</job>
"""
META = {"production": "P04ik", "trgsetupname": "proHigh", "filetype": "daq_reco_MuDst", "tpc": 1, "ftpc": 1, "sanity": 1}


@pytest.fixture(name="sums")
def _sums(instance):
    def run(name, *args, code=0, cwd=None):
        out = subprocess.run([os.path.join(instance.build, "bin", "sums", name), *args], cwd=cwd or instance.work, env=instance.env,
                             capture_output=True, text=True, timeout=90, check=False)
        assert out.returncode == code, out
        return out
    for folder in ("temp", "data02"):
        os.makedirs(os.path.join(instance.work, folder))
    return run


def two_agents(instance, path):
    """Each a host of its own by name, with a PATH for its jobs."""
    instance.server()
    config = instance.write("agent.yaml", f"queues:\n  - name: here\n    cpus: 4\nenvironment: {{PATH: '{path}'}}\n")
    for name in ("n1", "n2"):
        token = instance.json("token", "agent", "--name", name)["token"]
        token = instance.write(f"{name}.token", token + "\n", 0o600)
        instance.start("drover-agent", "--dir", os.path.join(instance.base, name), "--server", instance.server_json()["agents"][0],
                       "--token-file", token, "--name", name, "--config", config, "--attributes", f'Machine = "{name}"')
    wait_until(lambda: len(instance.agents("connected")) == 2)


def job(body, **attributes):
    words = " ".join(f'{k}="{v}"' for k, v in attributes.items())
    return f'<?xml version="1.0"?>\n<job {words}>\n<command>{body[0]}</command>\n' + "\n".join(body[1:]) + "\n</job>\n"


def test_the_seeds_example(instance, sums):
    """Over a catalog of real files, on two agents, each job on the host that has its files."""
    programs = os.path.join(instance.base, "programs")
    os.makedirs(programs)
    path = os.path.join(programs, "root4star")
    with open(path, "w", encoding="utf-8") as f:
        f.write(ROOT4STAR)
    os.chmod(path, 0o755)
    two_agents(instance, f"{programs}:/usr/bin:/bin")
    found = sorted(p for p in glob.glob("/usr/include/*.h") if os.path.isfile(p))[:30]
    assert len(found) == 30
    where = {}
    lines = []
    for i, p in enumerate(found):
        host = "n1" if i % 3 else "n2"
        where[p] = host
        lines.append(json.dumps({"name": p, "metadata": META, "replicas": [{"url": f"file://{host}{p}", "host": host, "store": "local"}]}))
    lines.append(json.dumps({"name": "other", "metadata": {**META, "tpc": 0}, "replicas": [{"url": "file:/nowhere"}]}))
    instance.cli("catalog", "import", "-", stdin="\n".join(lines))
    instance.write("job.xml", SEED.format(work=instance.work))
    out = sums("star-submit", "job.xml")
    assert out.stdout.startswith("3 job(s) submitted to request 1\nReport: sched"), out
    assert "job.xml:7: the catalog star.bnl.gov is this server's own here" in out.stderr
    instance.wait("1")
    done = instance.history("1")
    assert len(done) == 3 and all(r["exit_code"] == 0 for r in done), done
    names = glob.glob(os.path.join(instance.work, "temp", "heavy.*.out"))
    assert len(names) == 3
    seen = 0
    for name in names:
        with open(name, encoding="utf-8") as f:
            index, count, first, base, cwd, scratch, request, *_ = f.read().split()
        jobid = os.path.basename(name)[len("heavy."):-len(".out")]
        agent = next(r["agent"] for r in done if r["member"] == int(index))
        host, p = first[len("root://"):].split("/", 1)
        assert host == agent == where[p] and jobid == f"{request}_{index}" and cwd == scratch
        assert base == os.path.basename(p).split(".")[0]
        with open(os.path.join(instance.work, "data02", f"heavy.{jobid}.root"), encoding="utf-8") as f:
            sums_seen = f.read().splitlines()
        assert len(sums_seen) == int(count) == 10
        seen += int(count)
    assert seen == 30
    report = instance.read(os.path.basename(glob.glob(os.path.join(instance.work, "sched*.report"))[0]))
    assert "number 1 at the server" in report and "30 files, 3 jobs" in report and "root4star -q -b" in report
    assert "catalog star.bnl.gov" in report


def lists(instance, xml, sums):
    """What the jobs of a description see in their lists, job by job."""
    for name in glob.glob(os.path.join(instance.work, "temp", "seen.*")):
        os.unlink(name)
    instance.write("job.xml", xml)
    request = sums("star-submit", "job.xml").stdout.split("request ")[1].split()[0]
    instance.wait(request)
    return [instance.read(f"temp/seen.{n}").split() for n in range(len(instance.history(request)))]


def test_single_copy_prefer_storage_and_input_order(instance, sums):
    """In jobs that run: which replicas they see, and in which order."""
    instance.up()
    lines = []
    for i, run in enumerate((30, 10, 20)):
        for store in ("nfs", "local"):
            instance.write(f"{store}/f{i}", f"{store} {run}\n")
        lines.append(json.dumps({"name": f"f{i}", "metadata": {"run": run}, "replicas": [
            {"url": f"file:{instance.work}/{store}/f{i}", "store": store} for store in (("nfs", "local") if i < 2 else ("nfs",))]}))
    instance.cli("catalog", "import", "-", stdin="\n".join(lines))

    def of(inputs, **attributes):
        return lists(instance, job(["cat `cat $FILELIST`", '<shell>sh</shell><stdout URL="file:temp/seen.$JOBINDEX"/>', inputs], **attributes), sums)
    everything = '<input URL="catalog:?run=>0" nFiles="all"{}/>'
    assert of(everything.format("")) == [["nfs", "30", "nfs", "10", "nfs", "20"]]
    # every replica, or one of each; the one in the preferred store, where there is one
    assert of(everything.format(' singleCopy="false"')) == [["nfs", "30", "local", "30", "nfs", "10", "local", "10", "nfs", "20"]]
    assert of(everything.format(' singleCopy="true" preferStorage="local"')) == [["local", "30", "local", "10", "nfs", "20"]]
    assert of(everything.format(' preferStorage="nfs"')) == [["nfs", "30", "nfs", "10", "nfs", "20"]]
    # by a key, across jobs
    assert of(everything.format(""), inputOrder="run", maxFilesPerProcess=2) == [["nfs", "10", "nfs", "20"], ["nfs", "30"]]
    out = sums("star-submit", instance.write("other.xml", job(["true", '<stdout discard="true"/>', everything.format(' preferStorage="hpss"')])))
    assert "3 files have no replica in the preferred store hpss" in out.stderr


def test_variables_streams_and_sandbox(instance, sums):
    """Without files: nProcesses; files and folders are shipped as they are at the submit."""
    instance.up()
    instance.write("lib/a.txt", "<a>\n")
    instance.write("in.txt", "typed\n")
    instance.write("go", "<go>\n")
    body = ["set x = `cat`\ncat lib/a.txt go\necho $x $JOBID $PROCESSID $SUBMITTINGDIRECTORY $INPUTFILECOUNT $SUMS_name\n"
            "echo wrong > /dev/stderr\necho made > out.txt; echo no > other.txt",
            '<stdin URL="file:in.txt"/><stdout URL="file:./temp/$JOBINDEX.out"/><stderr URL="file:temp/$PROCESSID.err"/>',
            '<SandBox installer="ZIP"><Package name="p"><File>file:./lib/</File><File>file: go </File></Package></SandBox>',
            '<output fromScratch="out.txt" toURL="file:data02/out.$REQUESTID.$JOBINDEX"/>',
            "<Generator><Location>temp</Location></Generator>"]
    instance.write("job.xml", job(body, nProcesses=2, name="two words", maxWallTime=5))
    out = instance.cli("submit", "job.xml").out
    assert out == "request 1: 2 jobs\n"
    instance.wait("1")
    for n in range(2):
        words = instance.read(f"temp/{n}.out").split()
        assert words[:3] == ["<a>", "<go>", "typed"] and words[3].endswith(f"_{n}") and words[4:] == [
            str(n), instance.work, "0", "two", "words"], words
        assert instance.read(f"temp/{n}.err") == "wrong\n"
        assert instance.read(f"data02/out.{words[3][:32]}.{n}") == "made\n"
    assert not instance.exists("other.txt") and not instance.exists("out.txt")
    assert len(glob.glob(os.path.join(instance.work, "temp", "sched*.report"))) == 1


def test_shell_and_command_input(instance, sums):
    """<shell> runs the script; command: runs as the user, at the submit."""
    instance.up()
    for i in range(5):
        instance.write(f"data/f{i}.x.root", f"<{i}>\n")
    body = ["for i in $(seq 0 $((INPUTFILECOUNT - 1))); do eval cat \\$INPUTFILE$i; done >$FILEBASENAME.txt", "<shell>/bin/bash</shell>",
            '<stdout URL="file:temp/o.$JOBINDEX"/><output fromScratch="$FILEBASENAME.txt" toURL="file:data02"/>',
            '<input URL="command:ls $PWD/data/*.root | tail -n 4" nFiles="3"/>', '<input URL="file:data/f?.x.root" nFiles="1"/>']
    instance.write("job.xml", job(body, maxFilesPerProcess=2))
    sums("star-submit", "job.xml")
    instance.wait("1")
    made = {n: instance.read(f"data02/{n}") for n in os.listdir(os.path.join(instance.work, "data02"))}
    assert "".join(made.values()).count("<") == 4 and sum(r["exit_code"] for r in instance.history("1")) == 0, made
    assert all(text.startswith(f"<{n[1]}>") for n, text in made.items()), made


def test_inputs_are_copied(instance, sums):
    """copyInputLocally: the command sees copies in its folder, of files of the same name and of an XRootD server too; without one it does not begin."""
    instance.up()
    folder = tempfile.mkdtemp(prefix="drover-sums-")  # XRootD runs as another user
    os.chmod(folder, 0o755)
    grid = Grid(os.path.join(folder, "grid"), Authority(os.path.join(folder, "authority")))
    try:
        grid.wait()
        grid.put("far.root", b"<far>\n")
        paths = [instance.write(f"{name}/a b.root", f"<{name}>\n") for name in ("one", "two")]
        instance.write("files.list", "\n".join([*paths, grid.root + "far.root"]) + "\n")
        body = ["pwd; cat $FILELIST; while read -r f; do cat \"$f\"; done &lt;$FILELIST; cat \"$INPUTFILE0\"; echo $FILEBASENAME",
                "<shell>sh</shell>", '<stdout URL="file:temp/$JOBINDEX.out"/><stderr URL="file:temp/$JOBINDEX.err"/>', '<input URL="filelist:files.list"/>']
        instance.write("job.xml", job(body, copyInputLocally="true"))
        sums("star-submit", "job.xml")
        instance.wait("1")
        far, near = sorted((instance.read(f"temp/{n}.out").splitlines() for n in range(2)), key=len)  # a group of files each
        assert far[1:] == [f"{far[0]}/INPUTFILES/far.root", "<far>", "<far>", "far"]
        assert near[1:] == [f"{near[0]}/INPUTFILES/a b.root", f"{near[0]}/INPUTFILES/1/a b.root", "<one>", "<two>", "<one>", "a b"]
        assert not os.path.exists(near[0]) and instance.read("one/a b.root") == "<one>\n"
        os.unlink(os.path.join(grid.data, "far.root"))
        sums("star-submit", "job.xml")
        instance.wait("2", code=1)
        assert sorted(r["exit_code"] for r in instance.history("2")) == [0, 125]
        assert f"the input {grid.root}far.root cannot be copied" in "".join(instance.read(f"temp/{n}.err") for n in range(2))
    finally:
        grid.stop()
        shutil.rmtree(folder)


def test_templates_and_kill(instance, sums):
    instance.server()
    text = job(["echo &word; &n;", '<stdout URL="file:&out;/$JOBID"/>'], nProcesses="&n;")
    instance.write("t.xml", text.replace("?>\n", '?>\n<!DOCTYPE j [<!ENTITY n "3">]>\n', 1))
    out = sums("star-submit", "t.xml", code=1)
    assert "t.xml:4: the entity &word; has no value; give it with -entities word=VALUE" in out.stderr, out
    out = sums("star-submit-template", "-template", "t.xml", "-entities", "word=a&b<c,d,out=temp")
    assert "3 job(s) submitted to request 1" in out.stdout
    request = glob.glob(os.path.join(instance.work, "sched*.report"))[0][-39:-7]
    assert "echo a&b<c,d 3" in instance.read(f"sched{request}.report")
    assert sums("star-kill-job", f"{request}_1").stdout == f"{request}_1: 1 job(s) killed\n"
    assert sums("star-kill-job", request).stdout == f"{request}: 2 job(s) killed\n"
    assert "no such job" in sums("star-kill-job", request, code=1).stderr
    for word in ("nonsense", "0123abcd", "1.2.3"):
        assert f"{word} is no id: a request is 32 hexadecimal digits" in sums("star-kill-job", word, code=1).stderr
    assert sums("star-submit-template", "-entities", "x=1", code=1).stderr.endswith("NAME=VALUE,...\n")
    assert "is none" in sums("star-submit-template", "-template", "t.xml", "-entities", "word", code=1).stderr


def test_simulated(instance, sums):
    """Everything is written, and nothing submitted; the scripts run by hand."""
    instance.server()
    for i in range(3):
        instance.write(f"data/f{i}", f"<{i}>\n")
    instance.write("job.xml", job(["cat `cat $FILELIST`; echo $JOBINDEX", '<stdout URL="file:o.$JOBID"/>',
                                   '<input URL="file:data/*"/><Generator><Location>temp</Location></Generator>'],
                                  simulateSubmission="true", maxFilesPerProcess=2))
    out = sums("star-submit", "job.xml")
    assert out.stdout.startswith("2 job(s) simulated, none submitted\nReport: temp/sched"), out
    assert instance.json("queue")["requests"] == []
    scripts = sorted(glob.glob(os.path.join(instance.work, "temp", "sched*.sh")))
    assert [len(scripts), len(glob.glob(os.path.join(instance.work, "temp", "sched*.list")))] == [2, 2]
    run = [subprocess.run([s], cwd=instance.base, env=instance.env, capture_output=True, text=True, timeout=60, check=True).stdout
           for s in scripts]
    assert run == ["<0>\n<1>\n0\n", "<2>\n1\n"]
    assert "simulated, none submitted" in instance.cli("submit", "job.xml").out
    instance.write("gone.xml", instance.read("job.xml").replace("<Location>temp", "<Location>none"))
    assert "could not be written: No such file" in sums("star-submit", "gone.xml", code=1).stderr
    assert len(instance.json("submit", "--dry-run", "job.xml")["parts"]) == 1


@pytest.mark.parametrize("old, new, says", [
    ("maxFilesPerProcess", "maxFilesPerProces", "job.xml:2: <job> has no attribute maxFilesPerProces; it may have name,"),
    ('="10"', '="ten"', 'job.xml:2: <job> maxFilesPerProcess="ten" is not right: a whole number of at least 1 is expected'),
    ('nFiles="all"', 'nFiles="most"', 'job.xml:7: <input> nFiles="most" is not right: "all" or a whole number'),
    ("production=P04ik", "production=none", "job.xml:7: <input> URL: 'catalog:?production=none"),
    ("production=P04ik", "production", "job.xml:7: <input> URL: "),
    ("<stdout", "<sdtout", "job.xml:6: <sdtout> is not known within <job>; it may have <command>, <shell>"),
    ("</job>", "", "job.xml:10: "),
    ("<job", "<!DOCTYPE x SYSTEM '/etc/passwd'><job", "job.xml:2: a document type in another file is not read"),
])
def test_what_is_wrong_is_named(instance, sums, old, new, says):
    instance.server()
    instance.write("job.xml", SEED.format(work=instance.work).replace(old, new, 1))
    out = sums("star-submit", "job.xml", code=1)
    assert says in out.stderr, out.stderr
    assert instance.json("queue")["requests"] == [] and glob.glob(os.path.join(instance.work, "sched*")) == []


def test_no_description(instance, sums):
    instance.server()
    instance.write("x.sub", "executable = /bin/true\nqueue\n")
    assert "is not a description of SUMS" in sums("star-submit", "x.sub", code=1).stderr
    assert sums("star-submit", "none.xml", code=1).stderr
    instance.write("big.xml", "<job>" + "x" * (2 << 20) + "</job>")
    assert "has more than 1 MiB" in sums("star-submit", "big.xml", code=1).stderr
    assert "-template" in sums("star-submit-template", "-help").stdout
