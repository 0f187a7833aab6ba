"""Graphs whose data are planned: through one store, brought once, taken out, cleaned up, within a limit."""
import hashlib
import os

import agents
import pytest
from drover import wait_until
from stores import Ftp, Nginx
from test_transfer import QUICK, served

NODES = 6


@pytest.fixture
def site(instance, tmp_path):
    path = tmp_path
    while str(path) != "/tmp":  # servers that become users of their own reach it
        os.chmod(path, 0o755)
        path = path.parent
    with served(Nginx(str(tmp_path / "web"))) as web, served(Nginx(str(tmp_path / "far"))) as far, served(Ftp(str(tmp_path / "ftp"))) as ftp:
        instance.server()
        agents.start(instance, QUICK + "cpus: 2\n")
        agents.offering(instance, "transfers")
        instance.web, instance.far, instance.ftp = web, far, ftp
        for n in range(NODES):
            with open(os.path.join(ftp.data, f"in{n}"), "w", encoding="ascii") as f:
                f.write(f"{n}\n")
        with open(os.path.join(ftp.data, "all"), "w", encoding="ascii") as f:
            f.write("all\n")
        yield instance


def graph(instance):
    """Each node reads a file of its own and one of all from FTP, writes one to WebDAV; the last node reads these."""
    far, ftp = instance.far.url, instance.ftp.url
    instance.write("node.sub", f"""shell = cat in$(n) all >mid$(n)
transfer_input_files = {ftp}in$(n), {ftp}all, note
transfer_output_files = mid$(n)
transfer_output_remaps = "mid$(n)={far}mid$(n)"
queue
""")
    instance.write("note", "here")
    mids = ", ".join(f"{far}mid{n}" for n in range(NODES))
    instance.write("last.sub", f"""shell = cat mid* >end
transfer_input_files = {mids}
transfer_output_files = end
transfer_output_remaps = "end={far}end"
queue
""")
    text = "".join(f'JOB N{n} node.sub\nVARS N{n} n="{n}"\n' for n in range(NODES))
    instance.write("one.dag", text + "JOB Last last.sub\nPARENT " + " ".join(f"N{n}" for n in range(NODES)) + " CHILD Last\n")


def peak(web):
    """Of files in the store at a time, by its log, in which what was done stands in its order."""
    there, most = set(), 0
    for _, method, uri, status, _, _ in web.requests():
        name = uri.split(".drover-")[0]
        if method == "PUT" and status < 300:
            there.add(name)
        elif method == "DELETE" and status < 300:
            there.discard(name)
        most = max(most, len(there))
    assert not there
    return most


def test_through_a_store(site):
    """All is where its author wants it; from FTP each file came once; nothing is left in the store."""
    graph(site)
    said = site.cli("dag", "submit", "--plan", site.web.url + "work", "--dry-run", "one.dag")
    assert f"stage-in   {site.ftp.url.split('/pub')[0]}  7 files" in said, said
    assert f"stage-out  {site.far.url.split('/dav')[0]}  7 files" in said and f"clean-up   {site.web.url.split('/dav')[0]}  14 files" in said
    request = site.json("dag", "submit", "--plan", site.web.url + "work", "--register", "run=7", "one.dag")["id"]
    site.wait(str(request))
    files = wait_until(lambda: (f := site.json("catalog", "query", "run=7")["files"]) and len(f) == NODES + 1 and f)
    assert {"sha256:" + hashlib.sha256(site.far.read(os.path.basename(f["name"]))).hexdigest() for f in files} == {f["checksum"] for f in files}
    assert {r["url"] for f in files for r in f["replicas"]} == {site.far.url + name for name in ["end"] + [f"mid{n}" for n in range(NODES)]}
    assert site.far.read("end") == "".join(f"{n}\nall\n" for n in range(NODES)).encode()
    assert site.far.read("mid3") == b"3\nall\n"
    assert not [row for row in site.far.requests("GET") if "mid" in row[2]]  # read at the store
    assert [name for _, _, names in os.walk(site.web.data) for name in names] == []
    peak(site.web)


def test_within_a_limit(site):
    """One file of all, the seven of the last node, and one more to begin with: no more than nine are there, whatever runs beside."""
    graph(site)
    request = site.json("dag", "submit", "--plan", site.web.url, "--space", "9M", "--file-size", "1M", "one.dag")["id"]
    site.wait(str(request))
    assert peak(site.web) <= 9
    assert site.far.read("end").count(b"all") == NODES


def test_in_a_lot(instance, tmp_path):
    """The space is the graph's: others get none of it while it runs, and all of it afterwards."""
    with served(Nginx(str(tmp_path / "web"))) as web, served(Nginx(str(tmp_path / "far"))) as far, served(Ftp(str(tmp_path / "ftp"))) as ftp:
        os.makedirs(instance.dir, mode=0o700, exist_ok=True)
        with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
            f.write(f"stores:\n  near:\n    urls: [{web.url}]\n    capacity: 10M\n")
        instance.server()
        agents.start(instance, QUICK + "cpus: 2\n")
        agents.offering(instance, "transfers")
        instance.web, instance.far, instance.ftp = web, far, ftp
        for n in range(NODES):
            with open(os.path.join(ftp.data, f"in{n}"), "w", encoding="ascii") as f:
                f.write(f"{n}\n")
        with open(os.path.join(ftp.data, "all"), "w", encoding="ascii") as f:
            f.write("all\n")
        graph(instance)
        words = ["dag", "submit", "--plan", web.url, "--space", "9M", "--file-size", "1M"]
        assert f"reserve    {web.url}  9 MiB for 3600 s" in instance.cli(*words, "--reserve", "1h", "--dry-run", "one.dag")
        assert "--reserve needs --space" in instance.cli("dag", "submit", "--plan", web.url, "--reserve", "1h", "one.dag", code=2).err
        request = instance.json(*words, "--reserve", "1h", "one.dag")["id"]
        instance.wait(str(request))
        assert peak(web) <= 9 and far.read("end").count(b"all") == NODES
        space = wait_until(lambda: (s := instance.json("stores")["stores"][0]["space"])["reserved_bytes"] == 0 and s)
        assert space["files_bytes"] == 0 and space["left_bytes"] == 10 << 20
        for job in (0, NODES, NODES + 1):  # two programs, and what is staged
            assert 'ReserveId = "plan-' in instance.cli("show", "--ad", f"{request}.{job}")
        # A graph that fails keeps its staged files, and no lot.
        instance.write("node.sub", instance.read("node.sub").replace("mid$(n)\n", "mid$(n); test $(n) != 2\n", 1))
        instance.wait(str(instance.json(*words, "--reserve", "1h", "one.dag")["id"]), code=1)
        space = wait_until(lambda: (s := instance.json("stores")["stores"][0]["space"])["reserved_bytes"] == 0 and s["files_bytes"] and s)
        there = [os.path.join(at, name) for at, _, names in os.walk(web.data) for name in names]
        assert space["files_bytes"] == sum(os.path.getsize(path) for path in there)


def test_what_cannot_be_planned(site):
    graph(site)
    assert "more than --space" in site.cli("dag", "submit", "--plan", site.web.url, "--space", "3M", "--file-size", "1M", "one.dag", code=1).err
    assert "--file-size" in site.cli("dag", "submit", "--plan", site.web.url, "--space", "3M", "one.dag", code=2).err
    assert "a folder in a store" in site.cli("dag", "submit", "--plan", "work", "one.dag", code=2).err
    assert "a size with its unit" in site.cli("dag", "submit", "--plan", site.web.url, "--space", "much", "one.dag", code=2).err
    site.write("many.sub", f"shell = true\ntransfer_input_files = {site.ftp.url}in$(Process)\nqueue 3\n")
    site.write("two.dag", "JOB A many.sub\n")
    said = site.cli("dag", "submit", "--plan", site.web.url, "--dry-run", "two.dag")
    assert "unchanged  1 submit description" in said and "no file has to be staged" in said


def test_a_failed_node_leaves_its_files(site):
    """For the graph's next attempt: what was staged for it is not removed, nor taken out."""
    graph(site)
    site.write("node.sub", site.read("node.sub").replace("mid$(n)\n", "mid$(n); test $(n) != 2\n", 1))
    request = site.json("dag", "submit", "--plan", site.web.url, "one.dag")["id"]
    site.wait(str(request), code=1)
    wait_until(lambda: sorted(name for _, _, names in os.walk(site.web.data) for name in names) == ["all", "in2"] + [f"mid{n}" for n in range(NODES)])
    assert not os.path.exists(os.path.join(site.far.data, "mid2"))
