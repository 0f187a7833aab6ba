"""The catalog of files, on a real server: adding, importing, querying, who may write, and bad days."""
import json
import os
import shutil
import signal
import socket
import subprocess

import pytest
from drover import wait_until

HOST = socket.gethostname()  # as agents say it in Machine


def names(instance, query="", **more):
    return [f["name"] for f in instance.json("catalog", "query", query, **more)["files"]]


def jsonl(files):
    return "".join(json.dumps(f) + "\n" for f in files)


def test_add_query_show_rm(instance):
    instance.server()
    assert instance.cli("catalog", "query") == "no files\n"
    instance.cli("catalog", "add", "run/1.root", "--url", "file:/nfs/1.root", "--store", "nfs", "--size", "100",
                 "--sum", "sha256:aa", "--meta", "production=P04ik", "--meta", "run=5000", "--meta", "label:text=007")
    instance.cli("catalog", "add", "run/1.root", "-u", "hpss:/a/1.root", "-u", "hpss:/b/1.root", "-s", "hpss")
    file = instance.json("catalog", "show", "run/1.root")
    assert file["metadata"] == {"production": "P04ik", "run": 5000, "label": "007"}
    assert [r["url"] for r in file["replicas"]] == ["file:/nfs/1.root", "hpss:/a/1.root", "hpss:/b/1.root"]
    assert "replica" in instance.cli("catalog", "show", "run/1.root")
    assert names(instance, "run=>5000,storage!=hpss") == ["run/1.root"]
    assert instance.cli("catalog", "query", "storage!=hpss", "--urls") == "file:/nfs/1.root\n"
    assert "1 file, 100B" in instance.cli("catalog", "query", "--count")
    assert "says 99" not in instance.cli("catalog", "add", "run/1.root", "--size", "99", code=1).err
    assert instance.json("catalog", "show", "run/1.root")["size"] == 100
    instance.cli("catalog", "add", "run/1.root", "--size", "99", "--replace")
    assert instance.json("catalog", "show", "run/1.root")["replicas"] == []
    assert "1 files removed" in instance.cli("catalog", "rm", "run/1.root")
    instance.cli("catalog", "rm", "run/1.root", code=2)
    instance.cli("catalog", "show", "run/1.root", code=2)


def test_scan_and_verify(instance):
    """Real files of this machine; one changes, one goes, and one is another machine's."""
    instance.server()
    data = os.path.join(instance.work, "data")
    shutil.copytree("/usr/share/doc/bash", os.path.join(data, "sub"))
    instance.write("data/a file%.txt", "hello")
    instance.write("data/b.txt", "other")
    os.symlink("b.txt", os.path.join(data, "link"))
    count = sum(os.path.isfile(os.path.join(d, f)) and not os.path.islink(os.path.join(d, f))
                for d, _, files in os.walk(data) for f in files)
    out = instance.cli("catalog", "scan", data, "--prefix", "d/", "--checksum", "--meta", "kind=doc", "--store", "local")
    assert out.startswith(f"{count} added") and "were skipped" in out.err
    file = instance.json("catalog", "show", "d/a file%.txt")
    assert file["replicas"] == [{"url": f"file://{HOST}{data}/a%20file%25.txt", "host": HOST, "store": "local"}]
    assert instance.cli("catalog", "scan", data, "--prefix", "d/").startswith(f"0 added, {count} changed")
    assert instance.json("catalog", "verify", "--checksum")["good"] == count
    instance.write("data/b.txt", "OTHER")
    os.unlink(os.path.join(data, "a file%.txt"))
    assert instance.cli("catalog", "verify", code=1).count("is not there") == 1
    bad = instance.json("catalog", "verify", "kind=doc", "--checksum", code=1)["bad"]
    assert sorted(b["problem"] for b in bad) == ["has another checksum", "is not there"]
    instance.write("data/b.txt", "longer than before")
    assert "has 18 bytes, and the catalog says 5" in instance.cli("catalog", "verify", code=1)
    assert instance.json("catalog", "verify", "--host", "elsewhere")["elsewhere"] == count
    # The same folder on another host is another replica of the same files.
    instance.cli("catalog", "scan", os.path.join(data, "sub"), "--prefix", "d/sub/", "--host", "n2")
    assert names(instance, f"host=n2,host={HOST}") == []
    assert len(names(instance, "host=n2")) == count - 2
    instance.cli("catalog", "scan", "/nowhere", code=1)


def test_import_csv_and_json(instance):
    instance.server()
    csv = ('name,size,checksum,url,host,store,production,run:text,events\r\n'
           'a.root,100,,file://n1/d/a.root,n1,local,P04ik,007,12\r\n'
           'a.root,100,,file:/nfs/a.root,,nfs,,,\n'
           '"b, the ""second"".root",,,,,,"two\nlines? no",,1.5\n')
    path = instance.write("files.csv", csv)
    out = instance.cli("catalog", "import", path, code=2)
    assert "not allowed" in out.err and names(instance) == []
    path = instance.write("files.csv", csv.replace("two\nlines? no", "two lines"))
    assert instance.cli("catalog", "import", path) == "2 added, 1 changed\n"
    files = instance.json("catalog", "query")["files"]
    assert files[0]["metadata"] == {"production": "P04ik", "run": "007", "events": 12}
    assert len(files[0]["replicas"]) == 2
    assert files[1]["name"] == 'b, the "second".root' and files[1]["metadata"]["events"] == 1.5
    # What is listed can be imported again, elsewhere or here, and is the same.
    listed = instance.json("catalog", "query")
    instance.cli("catalog", "rm", "--query", "")
    assert names(instance) == []
    again = instance.write("files.json", json.dumps(listed))
    assert instance.cli("catalog", "import", again) == "2 added, 0 changed\n"
    assert instance.json("catalog", "query")["files"] == files
    lines = instance.write("files.jsonl", jsonl(files))
    assert instance.cli("catalog", "import", lines) == "0 added, 2 changed\n"
    assert instance.cli("catalog", "import", "-", stdin=jsonl([{"name": "c"}])) == "1 added, 0 changed\n"
    assert instance.cli("catalog", "import", instance.write("d.json", '{"name": "d"}')) == "1 added, 0 changed\n"


@pytest.mark.parametrize("name, text, says", [
    ("x.csv", "size,url\n1,file:/a\n", "one of them is \"name\""),
    ("x.csv", "", "is empty"),
    ("x.csv", "name,size\na,many\n", "line 2: the size is not a number"),
    ("x.csv", "name\na,b,c\n", "line 2: the row has more fields"),
    ("x.csv", "name\n\"open\n", "a quote is not closed"),
    ("x.csv", "name,run number\na,5\n", "not a metadata key"),
    ("x.csv", "name,url\na,/no/url\n", "is no URL"),
    ("x.jsonl", '{"name": "a"}\n{"name": \n', "line 2: this is not a JSON object"),
    ("x.jsonl", '{"name": "a", "size": "5"}\n', "size"),
    ("x.jsonl", '{"name": "a", "metadata": {"k": [1]}}\n', "is a text, a number, true or false"),
    ("x.json", '{"names": "a"}', 'a list of files is expected'),
    ("x.json", '[1, 2]', "is not an object"),
    ("x.json", '[', "x.json: line"),
])
def test_bad_imports_name_what_is_wrong(instance, name, text, says):
    instance.server()
    out = instance.cli("catalog", "import", instance.write(name, text), code=None)
    assert says in out.err, out.err
    assert names(instance) == []


def test_datasets(instance):
    instance.server()
    instance.cli("catalog", "import", "-", stdin=jsonl({"name": f"f{i}", "metadata": {"n": i}} for i in range(10)))
    instance.cli("catalog", "save", "small/ones", "n<5")
    instance.cli("catalog", "save", "odd", "--files", instance.write("list", "f1\n\nf3\nf7\n"))
    assert names(instance, "dataset=small/ones") == [f"f{i}" for i in range(5)]
    assert names(instance, "dataset=odd,n>1") == ["f3", "f7"]
    assert [(d["name"], d.get("files")) for d in instance.json("catalog", "datasets")["datasets"]] == [
        ("odd", 3), ("small/ones", None)]
    assert "n<5" in instance.cli("catalog", "datasets")
    assert "no file f99" in instance.cli("catalog", "save", "bad", "--files", instance.write("list", "f99\n"), code=2).err
    instance.cli("catalog", "save", "bad", "n", code=2)
    long = instance.write("list", "".join(f"f{i}\n" for i in range(20001)))
    assert "names 20001 files, and a list has from 1 to 20000" in instance.cli("catalog", "save", "bad", "--files", long, code=2).err
    instance.cli("catalog", "forget", "odd")
    assert "no dataset odd" in instance.cli("catalog", "query", "dataset=odd", code=2).err
    instance.cli("catalog", "forget", "odd", code=2)


def test_bad_queries(instance):
    instance.server()
    for query in ("x", "a[]5", "where=a ==", "limit=x", "where=eval(a)", "a=" + "b" * 9000):
        out = instance.cli("catalog", "query", query, code=2)
        assert out.err.startswith("drover: ") and len(out.err) < 700
    instance.cli("catalog", "query", "a=1", "b=2", code=2)
    instance.cli("catalog", "dance", code=2)
    instance.call("GET", "/v1/catalog/files?after=x")
    assert instance.call("GET", "/v1/catalog/files?after=x")[0] == 400
    assert instance.call("GET", "/v1/catalog/files?after=18446744073709551615.0")[0] == 400


def test_who_may_write(instance):
    """A user's token reads. When the settings let users write and are read again, it writes, too."""
    settings = instance.write("server.yaml", "api_listen: 127.0.0.1:0\n")
    instance.server("--config", settings)
    instance.cli("catalog", "add", "mine")
    token = instance.json("token", "user", "--name", "ann@elsewhere")["token"]
    tls = instance.server_json()["api_tls"]

    def call(*args, code=0):
        return instance.cli(*args, code=code, env={"DROVER_SERVER": f"https://{tls}", "DROVER_TOKEN": token, "DROVER_DIR": ""})

    assert "operator: you may not" in call("catalog", "show")
    assert "mine" in call("catalog", "query")
    for args in (("add", "hers"), ("rm", "mine"), ("save", "d", "n=1"), ("forget", "d")):
        assert "catalog_write" in call("catalog", *args, code=1).err
    instance.write("server.yaml", "api_listen: 127.0.0.1:0\ncatalog_write: user\n")
    os.kill(instance.server_pid(), signal.SIGHUP)
    wait_until(lambda: "user: you may\n" in call("catalog", "show"))
    call("catalog", "add", "hers")
    assert names(instance) == ["mine", "hers"]


def test_what_was_acknowledged_stays(instance):
    """The server is killed during an import: each batch is there whole, or not at all, and a second import completes it."""
    instance.server()
    files = [{"name": f"f{i:06}", "size": i, "metadata": {"n": i}} for i in range(40000)]
    path = instance.write("files.jsonl", jsonl(files))
    child = subprocess.Popen([instance.program("drover"), "--dir", instance.dir, "catalog", "import", path],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: instance.call("GET", "/v1/catalog")[1]["files"] >= 5000)
    instance.kill_server()
    child.communicate(timeout=90)
    instance.server()
    there = instance.json("catalog", "show")["files"]
    assert there % 5000 == 0 and there >= 5000
    out = instance.json("catalog", "import", path)
    assert out == {"added": 40000 - there, "changed": there}
    assert instance.json("catalog", "query", "n[]100-299", "--count") == {"count": 200, "bytes": sum(range(100, 300))}
    assert names(instance, "n>=0,limit=12345")[-1] == "f012344"


def test_a_damaged_catalog_stops_nothing_else(instance):
    instance.server()
    instance.cli("catalog", "add", "a")
    instance.kill_server()
    for end in ("-wal", "-shm"):
        if os.path.exists(os.path.join(instance.dir, "catalog.db" + end)):
            os.unlink(os.path.join(instance.dir, "catalog.db" + end))
    with open(os.path.join(instance.dir, "catalog.db"), "wb") as f:
        f.write(b"this is no database at all" * 100)
    instance.server()
    assert "is damaged" in instance.cli("catalog", "query", code=1).err
    assert instance.cli("queue").startswith("no ") or instance.cli("queue")


def test_a_backup_has_it(instance, tmp_path):
    instance.server()
    instance.cli("catalog", "add", "kept", "--meta", "n=1")
    droverd = instance.program("droverd")
    subprocess.run([droverd, "--dir", instance.dir, "--backup", tmp_path / "copy"], check=True, timeout=90)
    instance.cli("catalog", "add", "later")
    instance.kill_server()
    shutil.rmtree(instance.dir)
    subprocess.run([droverd, "--dir", instance.dir, "--restore", tmp_path / "copy"], check=True, timeout=90)
    instance.server()
    assert names(instance, "n=1") == ["kept"] and names(instance) == ["kept"]
