"""Datasets in submit files: files of a catalog, a list or patterns, cut into jobs, each of which sees its own."""
import json
import os
import socket
import subprocess

import pytest
from drover import wait_until
from stores import Nginx

SHOW = """executable = /bin/sh
arguments = "-c 'for f in $(cat $FILELIST); do cat $f; done; echo $INPUTFILECOUNT $INPUTFILE0 $JOBINDEX $PROCESSID $JOBID $REQUESTID $SUBMITTINGNODE $SCRATCH $PWD $SUBMITTINGDIRECTORY'"
output = out.$(Process)
error = err.$(Process)
request_memory = 10
"""


def show(dataset, *lines):
    return SHOW.replace("$(cat", "$(DOLLAR)(cat") + "\n".join([f"dataset = {dataset}", *lines, "queue", ""])


def make_files(instance, count, folder="data"):
    for i in range(count):
        instance.write(f"{folder}/f{i:03}.txt", f"<{i}>\n")
    return os.path.join(instance.work, folder)


def add_replicas(instance, count, host=None, folder=None, **meta):
    """Files of a folder in the catalog, as `host` has them."""
    folder = folder or os.path.join(instance.work, "data")
    lines = "".join(json.dumps({"name": f"f{i:03}", "size": 10 * (i + 1), "metadata": {"n": i, **meta}, "replicas": [
        {"url": f"file://{host}{folder}/f{i:03}.txt" if host else f"file:{folder}/f{i:03}.txt",
         **({"host": host} if host else {}), "store": "local" if host else "nfs"}]}) + "\n" for i in range(count))
    instance.cli("catalog", "import", "-", stdin=lines)


def start_agent(instance, name, token=True):
    """An agent that is a host of its own by name."""
    path = os.path.join(instance.work, f"{name}.token")
    if token:
        instance.write(f"{name}.token", instance.json("token", "agent", "--name", name)["token"] + "\n", 0o600)
    return instance.start("drover-agent", "--dir", os.path.join(instance.base, name), "--server", instance.server_json()["agents"][0],
                          *(["--token-file", path] if token else []), "--name", name, "--attributes", f'Machine = "{name}"')


def test_patterns_and_what_a_job_sees(instance):
    instance.up()
    make_files(instance, 7)
    request = instance.submit(show("data/*.txt", "files_per_job = 3"))
    instance.wait(request)
    assert [instance.read(f"err.{j}") for j in range(3)] == [""] * 3
    seen = [instance.read(f"out.{j}").split() for j in range(3)]
    assert [s[:-10] for s in seen] == [["<0>", "<1>", "<2>"], ["<3>", "<4>"], ["<5>", "<6>"]]
    for j, s in enumerate(seen):
        count, first, index, process, job, uuid, node, scratch, cwd, submitted = s[-10:]
        assert int(count) == len(s) - 10 and first == os.path.join(instance.work, f"data/f{(0, 3, 5)[j]:03}.txt")
        assert index == process == str(j) and job == f"{uuid}_{j}" and len(uuid) == 32 and int(uuid, 16)
        assert node == socket.gethostname() and scratch == cwd and submitted == instance.work
    # What the list and its pieces are called does not come back as an output.
    assert [n for n in os.listdir(instance.work) if n.startswith(".drover")] == []


def test_a_list(instance):
    instance.up()
    data = make_files(instance, 4)
    instance.write("list", f"# mine\n\ndata/f001.txt\nfile:{data}/f003.txt\nfile://localhost{data}/f000.txt\n")
    instance.wait(instance.submit(show("filelist:list", "files_per_job = 5")))
    # The first one is where this file system is, the others are anywhere.
    assert instance.read("out.0").split()[:2] == ["<1>", "1"]
    assert instance.read("out.1").split()[:3] == ["<3>", "<0>", "2"]


def test_each_job_at_the_host_that_has_its_files(instance):
    """Two agents, each a host of its own by name; files at one, at the other, at both, and shared."""
    instance.server()
    for name in ("n1", "n2"):
        start_agent(instance, name)
    wait_until(lambda: len(instance.agents("connected")) == 2)
    data = make_files(instance, 8)
    lines = []
    for hosts, lo, hi in ((["n1"], 0, 3), (["n2"], 3, 5), (["n2", "n1"], 5, 7), ([], 7, 8)):
        for name in (f"f{i:03}" for i in range(lo, hi)):
            replicas = [{"url": f"file://{h}{data}/{name}.txt", "host": h} for h in hosts] or [{"url": f"file:{data}/{name}.txt"}]
            lines.append(json.dumps({"name": name, "replicas": replicas}))
    instance.cli("catalog", "import", "-", stdin="\n".join(lines))
    text = show("catalog:", "files_per_job = 2")
    table = instance.cli("submit", "--dry-run", "-", stdin=text)
    rows = [line.split() for line in table.out.split("JOBS")[1].splitlines()[1:5]]
    assert [(r[0], r[1], r[-1]) for r in rows] == [("2", "3", "n1"), ("1", "2", "n2"), ("1", "2", "n1,n2"), ("1", "1", "anywhere")]
    again = instance.cli("submit", "--dry-run", "-", stdin=text)
    assert [out.split("DatasetId = ")[0] for out in (table.out, again.out)] == [table.out.split("DatasetId = ")[0]] * 2
    request = instance.submit(text)
    instance.wait(request)
    done = {r["member"]: r for r in instance.history(request)}
    ran = [done[m]["agent"] for m in range(5)]
    assert ran[:3] == ["n1", "n1", "n2"], done
    assert [instance.read(f"out.{j}").split()[0] for j in range(5)] == ["<0>", "<2>", "<3>", "<5>", "<7>"]


def test_queries_limits_and_stores(instance):
    instance.server()
    add_replicas(instance, 10, host="gone", kind="a")
    add_replicas(instance, 4, kind="a")

    def dry(*lines):
        return instance.json("submit", "--dry-run", "-", stdin=show(*lines))["parts"][0]

    def pieces(part):
        return [row.split("\x1f") for row in part["items"].split("\n")[:-1]]
    part = dry("catalog:?n<6,limit=5", "files_per_job = 2")
    assert part["variables"] == ["DatasetWhere", "DatasetSegment", "DatasetFirst", "DatasetCount"]
    assert [p[2:] for p in pieces(part)] == [["1", "2"], ["3", "2"], ["5", "1"]]
    assert pieces(part)[0][0] == "true" and '"gone"' in pieces(part)[2][0]
    assert [p[3] for p in pieces(dry("catalog:n>=0,storage=local", "bytes_per_job = 110"))] == ["4", "2", "1", "1", "1", "1"]
    assert [p[3] for p in pieces(dry("catalog:storage=local", "bytes_per_job = 1K"))] == ["10"]
    prefer = pieces(dry("catalog:", "prefer_storage = local, nfs", "files_per_job = 10"))
    assert len(prefer) == 1 and '"gone"' in prefer[0][0]
    by_time = dry("catalog:storage=local", "files_per_hour = 12", "allowed_execute_duration = 900")
    assert [p[3] for p in pieces(by_time)] == ["3", "3", "2", "2"]
    assert by_time["attributes"]["ExpectedRunTime"] == "$(DatasetCount) * 3600.0 / 12"
    add_replicas(instance, 10, host="gone", events=50)
    assert [p[3] for p in pieces(dry("catalog:storage=local", "events_per_job = 150"))] == ["3", "3", "2", "2"]
    assert [p[3] for p in pieces(dry("catalog:", "files_per_job = 4", "min_files_per_job = 3"))] == ["4", "3", "3"]


@pytest.mark.parametrize("lines, says", [
    (["nothing/*.txt"], "'nothing/*.txt' matches no file"),
    (["catalog:n=5"], "'catalog:n=5' has no files"),
    (["catalog:n"], "is not a condition"),
    (["catalog:dataset=none"], "there is no dataset none"),
    (["catalog:star.bnl.gov?n=1"], 'there is no catalog "star.bnl.gov"'),
    (["filelist:none"], "the list 'none' can't be read"),
    (["data/*", "files_per_job = 0"], "'0' is no whole number"),
    (["data/*", "bytes_per_job = many"], "'many' is no whole number of at least 1, as in 500M"),
    (["data/*", "files_per_job = 2", "min_files_per_job = 3"], "min_files_per_job is more than files_per_job"),
    (["data/*", "files_per_hour = 1", "allowed_execute_duration = 60"], "in 60 seconds a job does not do one file"),
    (["data/*", "should_transfer_files = NO"], "is sent its list of files"),
    (["data/$(Process)"], "can't differ from job to job"),
])
def test_what_is_wrong_is_named(instance, lines, says):
    instance.server()
    make_files(instance, 2)
    out = instance.cli("submit", "-", stdin=show(*lines), code=1)
    assert says in out.err, out.err
    assert instance.json("queue")["requests"] == []


def test_queue_names_nothing_else(instance):
    instance.server()
    make_files(instance, 2)
    for queue in ("queue 5", "queue x in (a b)"):
        out = instance.cli("submit", "-", stdin=show("data/*").replace("queue\n", queue + "\n"), code=1)
        assert "write 'queue' and nothing behind it" in out.err


def test_a_file_that_has_vanished(instance):
    """The job of that file is held, and says which; the rest runs. When it is there again the job is released."""
    instance.up()
    data = make_files(instance, 4)
    add_replicas(instance, 4)
    os.unlink(os.path.join(data, "f002.txt"))
    request = instance.submit(show("catalog:", "files_per_job = 1"))
    instance.wait_state(f"{request}.2", "held")
    assert f"the file {data}/f002.txt is not here" in instance.job(f"{request}.2")["hold_reason"]
    instance.wait(request, code=3)
    assert [instance.read(f"out.{j}").split()[0] for j in (0, 1, 3)] == ["<0>", "<1>", "<3>"]
    instance.write("data/f002.txt", "<2>\n")
    instance.cli("release", f"{request}.2")
    instance.wait(request)
    assert instance.read("out.2").split()[0] == "<2>"


def test_files_by_url_are_inputs(instance, tmp_path):
    """They are fetched, with their sizes and labels known; a job goes by the cache, and finds them by their names."""
    web = Nginx(os.path.join(tmp_path, "web"))
    try:
        web.wait()
        for name in ("a.txt", "b,c.txt", "d.txt"):
            with open(os.path.join(web.data, name), "w", encoding="utf-8") as f:
                f.write(f"<{name[0]}>\n")
        instance.up()
        lines = [{"name": n, "size": 4, "replicas": [{"url": web.url + n}]} for n in ("a.txt", "b,c.txt", "d.txt")]
        instance.cli("catalog", "import", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
        request = instance.submit(show("catalog:", "files_per_job = 2"))
        ad = instance.api("GET", f"/v1/jobs?id={request}&attributes=TransferInput,TransferInputSizes")["jobs"][0]["ad"]
        assert ad["TransferInput"].startswith(web.url + "a.txt,") and ad["TransferInputSizes"] == "4,4"
        instance.wait(request)
        assert instance.read("out.0").split()[:2] == ["<a>", "<b>"] and instance.read("out.1").split()[:3] == ["<d>", "1", "d.txt"]
        # Left to the program, they are URLs.
        part = instance.json("submit", "--dry-run", "-", stdin=show("catalog:", "fetch_dataset = false"))["parts"][0]
        assert "DatasetInputs" not in part["variables"] and "http" not in part["items"]
        # Two of one name cannot be in one folder.
        instance.cli("catalog", "add", "other", "--url", web.url + "x/d.txt")
        out = instance.cli("submit", "-", stdin=show("catalog:", "files_per_job = 9"), code=1)
        assert "two files of one job would be called d.txt" in out.err
        instance.cli("submit", "--dry-run", "-", stdin=show("catalog:", "files_per_job = 1"))
    finally:
        web.stop()


def test_killed_in_the_middle(instance):
    """The server is killed while a dataset comes: the request is whole or absent, and the submit says which."""
    instance.server()
    instance.write("list", "".join(f"/data/{'x' * 100}/{i:07}\n" for i in range(60000)))
    instance.write("d.sub", "executable = /bin/true\ndataset = filelist:list\nfiles_per_job = 3\nqueue\n")
    whole = 0
    for after in (1, 4, 9):
        child = subprocess.Popen([instance.program("drover"), "--dir", instance.dir, "submit", "d.sub"], cwd=instance.work,
                                 env=instance.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        spool = os.path.join(instance.dir, "spool")
        before = sum(len(files) for _, _, files in os.walk(spool))
        wait_until(lambda n=before + after: child.poll() is not None or sum(len(files) for _, _, files in os.walk(spool)) >= n)
        instance.kill_server()
        instance.server()
        out, err = child.communicate(timeout=90)
        assert (child.returncode == 0) == out.startswith("request "), (out, err)
        whole += child.returncode == 0
        requests = instance.json("queue")["requests"]
        assert len(requests) == whole and all(r["jobs"] == 20000 for r in requests), requests


def test_why_names_the_host_and_its_files(instance):
    """A host that has died with the only replicas: which files wait for which host, in words; not a condition."""
    instance.server()
    started = {name: start_agent(instance, name) for name in ("n1", "n2")}
    wait_until(lambda: len(instance.agents("connected")) == 2)
    data = make_files(instance, 9)
    lines = "".join(json.dumps({"name": f"f{i}", "replicas": [{"url": f"file://{h}{data}/f{i:03}.txt", "host": h}
                                                              for h in (("n1",) if i < 7 else ("n1", "n3"))]}) + "\n" for i in range(9))
    instance.cli("catalog", "import", "-", stdin=lines)
    started["n1"].stop()
    wait_until(lambda: [a["name"] for a in instance.agents("connected")] == ["n2"])
    request = instance.submit(show("catalog:", "files_per_job = 7"))
    said = instance.cli("why", f"{request}.0").out
    assert f"Its 7 files are on the disk of host n1, of which no agent is connected: {data}/f000.txt, " in said, said
    assert f"{data}/f004.txt and 2 more." in said and "f005" not in said and "TARGET.Machine" not in said, said
    assert "the job's files are on the disk of host n1" in said.split("REASON")[1], said
    why = instance.api("GET", f"/v1/jobs/{request}.1/why")
    assert why["dataset"] == {"hosts": ["n1", "n3"], "connected": False, "count": 2, "files": [f"{data}/f00{i}.txt" for i in (7, 8)]}
    # The host is back, and full: then it is no matter of the host.
    start_agent(instance, "n1", token=False)
    instance.wait(request)
    text = show("catalog:name=f0", "request_cpus = 4000")
    asked = instance.submit(text)
    why = instance.api("GET", f"/v1/jobs/{asked}.0/why")
    assert why["dataset"]["connected"] and "Its 1 file is on the disk of host n1: " in "".join(why["text"]), why


def test_ten_thousand_files_of_this_machine(instance):
    """Real files, shared; the request is small, and every file is seen once. The scan finds what the machine has."""
    def plain(name):
        return name.isprintable() and "\ufffd" not in name
    real = {os.path.join(folder, name) for folder, _, names in os.walk("/usr/share") for name in names
            if os.path.isfile(os.path.join(folder, name)) and not os.path.islink(os.path.join(folder, name)) and plain(name)}
    assert len(real) > 10000
    instance.up()
    instance.cli("catalog", "scan", "/usr/share", "--shared", "--prefix", "share/", timeout=300)
    assert instance.json("catalog", "query", "--count")["count"] == len(real)
    text = show("catalog:limit=10000", "files_per_job = 499").replace("-c '", "-c 'cat $FILELIST; exit 0; ")
    request = instance.submit(text)
    instance.wait(request)
    jobs = len(instance.history(request))
    assert jobs == 21  # 20 of 499 would leave a twenty-first of 20: all are about equal
    seen = [instance.read(f"out.{j}").splitlines() for j in range(jobs)]
    assert {len(s) for s in seen} == {476, 477}
    together = [line for s in seen for line in s]
    assert len(together) == 10000 == len(set(together)) and set(together) <= real
    assert instance.json("catalog", "show", "share/" + os.path.relpath(together[-1], "/usr/share"))["replicas"]


DISK = """mount -t tmpfs -o size=4m none "$1"
for i in $3; do echo "$2 $i" >"$1/f$i"; done
shift 3
exec "$@"
"""


def test_two_agents_with_disks_of_their_own(instance):
    """Two agents, each with a disk that nobody else sees, with other files under the same paths, and a store that both see: each
    job runs where its files are, reads these, and writes to the store."""
    instance.server()
    disk, store = os.path.join(instance.base, "disk"), os.path.join(instance.base, "store")
    os.mkdir(disk)
    os.mkdir(store)
    for name, numbers in (("n1", "0 1 2 3"), ("n2", "2 3 4")):
        token = instance.write(f"{name}.token", instance.json("token", "agent", "--name", name)["token"] + "\n", 0o600)
        instance.run_daemon(f"drover-agent-{name}", [
            "unshare", "--mount", "sh", "-ec", DISK, "sh", disk, name, numbers, instance.program("drover-agent"), "--dir", os.path.join(instance.base, name),
            "--server", instance.server_json()["agents"][0], "--token-file", token, "--name", name, "--attributes", f'Machine = "{name}"'])
    wait_until(lambda: len(instance.agents("connected")) == 2)
    assert os.listdir(disk) == []
    where = {0: ["n1"], 1: ["n1"], 2: ["n1", "n2"], 3: ["n2", "n1"], 4: ["n2"]}
    instance.cli("catalog", "import", "-", stdin="".join(json.dumps(
        {"name": f"f{i}", "replicas": [{"url": f"file://{h}{disk}/f{i}", "host": h, "store": "local"} for h in hosts]}) + "\n" for i, hosts in where.items()))
    request = instance.submit("executable = /bin/sh\ntransfer_executable = false\n"
                              f"arguments = \"-c 'cat $(DOLLAR)(cat $FILELIST) >{store}/$JOBINDEX'\"\n"
                              "request_memory = 10\ndataset = catalog:\nfiles_per_job = 1\nqueue\n")
    instance.wait(request)
    ran = {r["member"]: r["agent"] for r in instance.history(request)}
    written = {}
    for member, agent in ran.items():
        with open(os.path.join(store, str(member)), encoding="utf-8") as f:
            name, number = f.read().split()
        assert name == agent and agent in where[int(number)], (member, agent, name, number)
        written[int(number)] = agent
    assert sorted(written) == [0, 1, 2, 3, 4] and written[0] == written[1] == "n1" and written[4] == "n2", written
