"""catalog:NAME?QUERY: programs that know the files of a site; the two that come with Drover, and those that hang, lie and babble."""
import functools
import http.server
import json
import os
import sqlite3
import threading
import time

import pytest

SUB = "executable = /bin/true\ndataset = catalog:{}\nfiles_per_job = {}\nqueue\n"


@pytest.fixture(name="book")
def _book(instance):
    """A folder for programs, and what makes one of a shell script."""
    folder = os.path.join(instance.base, "catalogs")
    os.makedirs(folder)
    instance.env["DROVER_CATALOGS"] = folder

    def make(text, name="mine", mode=0o755):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path
    return make


def dry(instance, query, count=1, **more):
    return instance.cli("submit", "--dry-run", "--json", "-", stdin=SUB.format(query, count), **more)


def file(name, *urls, **more):
    return json.dumps({"name": name, "replicas": [{"url": u} for u in urls], **more})


def test_a_program_is_asked(instance, book):
    """It gets the query, and its files are grouped as those of the server's catalog are."""
    lines = [file("a", "file://n1/d/a", size=10), file("b", "file:/d/b"), file("c", "file://n1/d/c", metadata={"events": 3})]
    book("#!/bin/sh\ncat >\"$DROVER_CATALOGS/asked\"\ncat <<'X'\n" + "\n".join(lines) + '\n{"end": 3}\nX\n')
    part = json.loads(dry(instance, "mine?run=1,name=x?,limit=2", 5).out)["parts"][0]
    with open(os.path.join(instance.env["DROVER_CATALOGS"], "asked"), encoding="utf-8") as f:
        assert json.load(f) == {"query": "run=1,name=x?,limit=2", "events": False, "order": None}
    rows = [row.split("\x1f") for row in part["items"].split("\n")[:-1]]
    assert [(r[0], r[3]) for r in rows] == [('TARGET.Machine == "n1" || TARGET.AgentName == "n1"', "2"), ("true", "1")]
    instance.write("job.xml", '<job inputOrder="run"><command>x</command><stdout URL="file:o.$JOBID"/>'
                   '<input URL="catalog:mine?q" nFiles="2"/></job>')
    parts = json.loads(instance.cli("submit", "--dry-run", "--json", "job.xml").out)["parts"]
    assert sum(int(row.split("\x1f")[3]) for row in parts[0]["items"].split("\n")[:-1]) == 2
    with open(os.path.join(instance.env["DROVER_CATALOGS"], "asked"), encoding="utf-8") as f:
        assert json.load(f) == {"query": "q", "events": False, "order": "run"}


@pytest.mark.parametrize("script, says", [
    ("printf '%s\\n' '{\"error\": \"no\\nsuch run\"}'", "catalog mine: no such run"),
    ("echo hello", "line 1 of what it printed is not a JSON object"),
    ("head -c 100000 /dev/urandom", "of what it printed is not a JSON object"),
    ("echo '{\"end\": 1}'", "says another number of files than it has printed"),
    ("echo '" + file("a", "file:/a") + "'", 'it ended without saying {"end": N}'),
    ("echo '{\"end\": 0}'; echo '{\"end\": 0}'", "line 2 of what it printed comes after its end"),
    ("echo '{\"end\": 0}'; exit 3", "it ended with a failure"),
    ("kill -9 $$", 'it ended without saying {"end": N}'),
    ("echo '{\"name\": \"a\"}'", "line 1 of what it printed is not a file: it has no list of replicas"),
    ("echo '" + file("a", "file:/a", size=-4) + "'", "has a size that is not a whole number"),
    ("echo '" + file("a", "file:/a", size="big") + "'", "has a size that is not a whole number"),
    ("echo '" + file("a", "/a") + "'", "line 1 of what it printed has a replica without a URL"),
    ("echo '" + file("a", "file:/a\x01") + "'", "has a control character"),
    ("echo '{\"end\": 0}'", "'catalog:mine?x' has no files"),
    ("head -c 3000000 /dev/zero | tr '\\0' 'x'", "it printed a line of more than a MiB"),
    ("n=$(head -c 100000 /dev/zero | tr '\\0' x); yes \"{\\\"name\\\": \\\"$n\\\", \\\"replicas\\\": []}\"", "it printed more than 512 MiB"),
])
def test_what_it_prints_is_not_believed(instance, book, script, says):
    book("#!/bin/sh\n" + script + "\n")
    out = dry(instance, "mine?x", code=1, timeout=300)
    assert says in out.err, out.err


@pytest.mark.long
def test_one_that_hangs_is_ended(instance, book):
    """With all that it has started."""
    mark = os.path.join(instance.base, "pids")
    book(f"#!/bin/sh\nsleep 5000 &\necho $! $$ >{mark}\nwait\n")
    began = time.monotonic()
    out = dry(instance, "mine?x", code=1, timeout=120)
    assert "it printed nothing for 30 seconds" in out.err and time.monotonic() - began < 100
    with open(mark, encoding="utf-8") as f:
        for pid in f.read().split():
            assert not os.path.exists(f"/proc/{pid}/exe") or "sleep" not in os.readlink(f"/proc/{pid}/exe")
    book("#!/bin/sh\necho '{\"end\": 0}'\nexec >&-\nexec sleep 5000\n")
    assert "it has printed all, and does not end" in dry(instance, "mine?x", code=1, timeout=120).err


@pytest.mark.parametrize("name", ["none", "../mine", "mine.x", "-mine", "a" * 100, "plain"])
def test_there_is_none(instance, book, name):
    book("#!/bin/sh\n")
    book("no program", "plain", 0o644)
    assert f'there is no catalog "{name}' in dry(instance, f"{name}?x", code=1).err


def test_a_web_servers_folders(instance, tmp_path):
    """Walked, matched, and fetched by the jobs."""
    for name in ("a.root", "sub/b c.root", "sub/deep/d.root", "notes.txt"):
        path = os.path.join(tmp_path, "web", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"<{os.path.basename(path)}>\n")
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=os.path.join(tmp_path, "web")))
    threading.Thread(target=web.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{web.server_port}/"
    try:
        instance.up()
        text = ("executable = /bin/cat\narguments = a.root\noutput = out.$(Process)\n"
                f"dataset = catalog:http-directory?{url},pattern=*.root,sizes=1\nqueue\n")
        part = json.loads(instance.cli("submit", "--dry-run", "--json", "-", stdin=text).out)["parts"][0]
        assert "notes" not in part["items"]
        assert [row.split("\x1f")[5] for row in part["items"].split("\n")[:-1]] == ["9", "11", "9"]
        request = instance.submit(text.replace("*.root", "a.*"))
        instance.wait(request)
        assert instance.read("out.0") == "<a.root>\n"
        part = json.loads(dry(instance, f"http-directory?{url},depth=0").out)["parts"][0]
        assert part["items"].count("http") == 2
        assert "is not known: pattern, depth, limit and sizes are" in dry(instance, f"http-directory?{url},color=red", code=1).err
        assert "404" in dry(instance, f"http-directory?{url}none/", code=1).err
        assert "begins with the URL of a folder" in dry(instance, "http-directory?ftp://x/", code=1).err
    finally:
        web.shutdown()


class Maze(http.server.BaseHTTPRequestHandler):
    """/away/ leads to another host; all others are folders with a thousand folders."""

    def do_GET(self):
        away = self.path.startswith("/away/")
        body = b"" if away else "".join(f"<a href={n}/>" for n in range(1000)).encode()
        self.send_response(302 if away else 200)
        if away:
            self.send_header("Location", f"http://localhost:{self.server.server_port}/other/")
            self.server.seen = True
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_web_server_that_leads_astray(instance):
    """To another host, which only the submitting machine may reach, and through folders without end."""
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Maze)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    url = f"http-directory?http://127.0.0.1:{web.server_port}"
    try:
        assert "leads to another host" in dry(instance, f"{url}/away/", code=1).err and web.seen
        assert "more than 1000000 links" in dry(instance, f"{url}/,depth=9", code=1, timeout=300).err
    finally:
        web.shutdown()


def test_a_database(instance, book):
    """By the admin's query: users give values, and nothing else."""
    path = os.path.join(instance.base, "files.db")
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE files (path, bytes, node, run, nevents)")
        db.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?)",
                       [(f"/d/{i // 2}", 5, f"n{i % 2}", i // 4, 7) for i in range(8)])
    book(f"[book]\ndatabase = {path}\nquery = SELECT path AS name, bytes AS size, 'file://' || node || path AS url, node AS host, nevents AS events\n"
         "  FROM files WHERE run = :run ORDER BY path, node\nparameters = run kind\n", "runs.ini", 0o644)
    part = json.loads(dry(instance, "sqlite?runs,run=1", 9).out)["parts"][0]
    rows = [row.split("\x1f") for row in part["items"].split("\n")[:-1]]
    assert len(rows) == 1 and rows[0][3] == "2" and all(n in rows[0][0] for n in ('"n0"', '"n1"'))
    for query, says in [("runs,run=9", "has no files"), ("runs,node=1", "node is not known: run, kind may be given"),
                        ("none", "there is no none.ini"), ("../runs", "begins with the name of a book"),
                        ("runs,run=1;DROP TABLE files", "has no files"), ("runs,run=1' OR '1'='1", "has no files")]:
        assert says in dry(instance, f"sqlite?{query}", code=1).err
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM files").fetchone() == (8,)
    book(f"[book]\ndatabase = {path}\nquery = DELETE FROM files\n", "bad.ini", 0o644)
    assert "readonly database" in dry(instance, "sqlite?bad", code=1).err
