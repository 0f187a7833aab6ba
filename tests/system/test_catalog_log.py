"""The catalog of files where another server can take over the queue: what was acknowledged is there, too, with a mirror and with
PostgreSQL; a server's own file is made again from the log when it is another's, damaged or gone."""
import json
import os
import signal
import sqlite3
import threading

import pytest
from drover import Failed, sh, wait_until
from stores import Nginx
from test_postgres import stands_by, standby_of


def names_of(one, query=""):
    return [f["name"] for f in one.json("catalog", "query", query)["files"]]


def blobs(one):
    """The names of the log's parts in an SQLite store."""
    db = sqlite3.connect(f"file:{one.dir}/drover.db?mode=ro", uri=True)
    try:
        return [name for name, in db.execute("SELECT CAST(name AS TEXT) AS n FROM blob ORDER BY n") if name.startswith("catalog/")]
    finally:
        db.close()


def dataset_of(first):
    return f"executable = /bin/sh\narguments = \"-c 'cat $(DOLLAR)FILELIST >> {first.work}/seen'\"\ndataset = catalog:dataset=mine\nqueue\n"


class Adding:
    """Adds files one by one from several threads; `taken` are those that were acknowledged."""

    def __init__(self, one):
        self.one, self.taken, self.over = one, [], threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(i,)) for i in range(3)]
        for thread in self.threads:
            thread.start()

    def _work(self, which):
        for n in range(10000):
            if self.over.is_set():
                return
            name = f"t{which}-{n:05}"
            try:
                self.one.cli("catalog", "add", name, "--url", f"file:/data/{name}", "--meta", f"n={n}")
            except Failed:
                return
            self.taken.append(name)

    def more(self, n):
        wanted = len(self.taken) + n
        wait_until(lambda: len(self.taken) >= wanted)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def test_a_mirror_takes_over_the_catalog(pair):
    """Files, metadata, datasets and the cursors of pages; the leader is killed while files are added."""
    first, second = pair.both()
    leader, _ = pair.up()
    pair.agent()
    rows = [{"name": f"f{i:04}", "size": i, "metadata": {"run": i % 7}, "replicas": [{"url": f"file:/etc/passwd?{i}"}]} for i in range(3000)]
    first.write("files.json", json.dumps(rows))
    first.cli("catalog", "import", f"{first.work}/files.json")
    first.cli("catalog", "add", "passwd", "--url", "file:/etc/passwd")
    first.cli("catalog", "rm", "f0007", "f0100")
    first.cli("catalog", "save", "mine", "name=passwd")
    page = first.json("catalog", "query", "run=3", "--limit", "50")
    adding = Adding(first)
    adding.more(30)
    leader.kill()
    adding.end()
    pair.leads(1)
    about = second.json("catalog", "show")
    assert about["datasets"] == 1 and about["files"] >= 2999 + len(adding.taken)
    there = names_of(second)
    assert there[:2999] == [r["name"] for r in rows if r["name"] not in ("f0007", "f0100")] + ["passwd"]
    assert set(adding.taken) <= set(there) and len(there) <= 2999 + len(adding.taken) + 3
    assert second.json("catalog", "query", "run=3", "--limit", "50") == page
    request = second.submit(dataset_of(first))
    second.wait(request)
    assert first.read("seen") == "/etc/passwd\n"
    # The first one follows, and has what the second one adds when it leads again.
    pair.start(0)
    pair.mirrored(follower=0)
    second.cli("catalog", "add", "late", "--url", "file:/data/late")
    second.cli("catalog", "forget", "mine")
    second.kill_server(signal.SIGTERM)
    pair.leads(0)
    assert names_of(first) == [*there, "late"] and first.json("catalog", "show")["datasets"] == 0


def test_what_a_server_had_of_its_own(pair):
    """An instance that gets a mirror takes its catalog along, and one without a mirror again has it, without a log."""
    first, second = pair.both()
    first.server()
    first.cli("catalog", "add", "old", "--url", "file:/data/old")
    assert not blobs(first)
    first.kill_server(signal.SIGTERM)
    pair.start(0)
    pair.leads(0)
    pair.copy_keys()
    pair.start(1)
    pair.mirrored()
    first.cli("catalog", "add", "new", "--url", "file:/data/new")
    assert [b[:12] for b in blobs(first)] == ["catalog/base", "catalog/from", "catalog/log."]
    # The follower had a catalog before.
    db = os.path.join(second.dir, "catalog.db")
    assert not os.path.exists(db)
    other = type(first)(first.build, os.path.join(first.base, "third"))
    other.server()
    other.cli("catalog", "add", "strange", "--url", "file:/data/strange")
    other.kill_server(signal.SIGTERM)
    os.rename(os.path.join(other.dir, "catalog.db"), db)
    first.kill_server(signal.SIGKILL)
    pair.leads(1)
    assert names_of(second) == ["old", "new"]
    aside = [n for n in os.listdir(second.dir) if n.startswith("catalog.db.aside-")]
    assert len(aside) == 1 and "was moved away" in second.daemons[-1].output()
    # Alone again.
    second.kill_server(signal.SIGTERM)
    second.server("--dir", second.dir)
    assert names_of(second) == ["old", "new"] and not blobs(second)
    second.cli("catalog", "rm", "old")
    second.kill_server(signal.SIGKILL)
    second.server("--dir", second.dir)
    assert names_of(second) == ["new"]


@pytest.mark.parametrize("harm", ["damaged", "gone", "older"])
def test_the_file_is_made_again(instance, database, harm):
    """A server whose queue is in PostgreSQL loses nothing with its own copy of the catalog."""
    instance.store = database.new_address()
    db = os.path.join(instance.dir, "catalog.db")
    instance.server()
    instance.cli("catalog", "add", "a", "--url", "file:/data/a", "--meta", "k=1")
    instance.kill_server(signal.SIGTERM)
    with open(db, "rb") as f:
        early = f.read()
    instance.server()
    instance.cli("catalog", "add", "b", "--url", "file:/data/b", "--meta", "k=2")
    instance.cli("catalog", "rm", "a")
    instance.cli("catalog", "add", "c", "--url", "file:/data/c", "--meta", "k=2")
    instance.kill_server(signal.SIGTERM)
    if harm == "gone":
        os.unlink(db)
    else:
        with open(db, "wb") as f:
            f.write(early if harm == "older" else b"no database\n" * 1000)
    instance.server()
    assert names_of(instance) == ["b", "c"] and names_of(instance, "k=2") == ["b", "c"]
    instance.cli("catalog", "add", "d", "--url", "file:/data/d")
    instance.kill_server(signal.SIGKILL)
    instance.server()
    assert names_of(instance) == ["b", "c", "d"]
    moved = [n for n in os.listdir(instance.dir) if n.startswith("catalog.db.aside-")]
    assert len(moved) == (harm == "damaged")


def overwrite_pages(path, first, last):
    """Every second page of this part of the file, with other bytes."""
    with open(path, "r+b") as f:
        size = f.seek(0, os.SEEK_END) // 4096
        for page in range(int(size * first), int(size * last), 2):
            f.seek(page * 4096 + 100)
            f.write(b"\x5a\xa5" * 500)


def many(instance, count, turn, pad=""):
    rows = [{"name": f"f{i:05}", "metadata": {"turn": turn}, "replicas": [{"url": f"file:/{pad}/{i}"}]} for i in range(count)]
    instance.write("files.json", json.dumps(rows))
    instance.cli("catalog", "import", f"{instance.work}/files.json", "--replace")


def test_a_file_that_is_damaged_in_part(instance, database):
    """It opens, and what reads the damaged part is told to try again; then it is whole. A second time it is not made again."""
    instance.store = database.new_address()
    db = os.path.join(instance.dir, "catalog.db")
    instance.server()
    many(instance, 20000, 1)
    instance.kill_server(signal.SIGTERM)
    overwrite_pages(db, 0.5, 1)
    server = instance.server()

    def count():
        return instance.cli("catalog", "query", "turn=1", "--count", code=None)
    first = count()
    if first.code != 0:
        assert "is made again from its log now: try again" in first.err, first.err
    for n in (0, 9999, 19999):
        said = instance.cli("catalog", "show", f"f{n:05}", code=None)
        assert said.code == 0 or "try again" in said.err, said.err
    wait_until(lambda: "20000" in count().out)
    assert instance.json("catalog", "show", "f19999")["metadata"] == {"turn": 1}
    assert server.output().count("is damaged, and is made again from its log") == 1
    assert len([n for n in os.listdir(instance.dir) if n.startswith("catalog.db.aside-")]) == 1


def test_a_damaged_file_is_no_base(instance, database):
    """Its server goes on writing: the log does not begin anew with what is damaged, and everything is there afterwards."""
    instance.store = database.new_address()
    pad = "x" * 600
    instance.server()
    many(instance, 10000, 0, pad)
    instance.kill_server(signal.SIGTERM)
    overwrite_pages(os.path.join(instance.dir, "catalog.db"), 0.3, 0.5)
    server = instance.server()
    for turn in range(1, 16):
        rows = [{"name": f"g{i:05}", "metadata": {"turn": turn}, "replicas": [{"url": f"file:/{pad}/{i}"}]} for i in range(10000)]
        instance.write("files.json", json.dumps(rows))
        while instance.cli("catalog", "import", f"{instance.work}/files.json", "--replace", code=None).code != 0:
            assert server.output().count("is made again from its log") == 1, server.output()
    said = server.output()
    assert "is made again from its log" in said and said.count("begins with a copy of it") <= 1, said
    assert instance.json("catalog", "query", "turn=15", "--count")["count"] == 10000
    assert instance.json("catalog", "query", "turn=0", "--count")["count"] == 10000
    assert instance.json("catalog", "show", "f04000")["metadata"] == {"turn": 0}


def test_the_log_begins_anew(instance, database):
    """When it is much larger than the catalog, which has the same afterwards, and so has what is made from it."""
    instance.store = database.new_address()
    server = instance.server()
    pad = "x" * 600
    for turn in range(14):
        many(instance, 10000, turn, pad)
    told = [line for line in server.output().splitlines() if "the log of the catalog begins with a copy of it" in line]
    assert len(told) == 2 and "change=1 " in told[0], told
    instance.kill_server(signal.SIGKILL)
    os.unlink(os.path.join(instance.dir, "catalog.db"))
    instance.server()
    assert instance.json("catalog", "query", "turn=13", "--count")["count"] == 10000
    assert instance.json("catalog", "show")["files"] == 10000


def test_a_standby_takes_over_the_catalog(instance, request, database):
    """With PostgreSQL; both servers lead in turn, and each brings its own file up to date."""
    instance.store = database.new_address()
    settings = instance.write("two.yaml", "standby: 3s\n")
    first = instance.server("--config", settings)
    instance.cli("catalog", "add", "a", "--url", "file:/etc/passwd")
    other = standby_of(instance, request, "other")
    try:
        second = other.start("droverd", "--dir", other.dir, "--config", settings)
        stands_by(second)
        adding = Adding(instance)
        adding.more(20)
        first.kill()
        adding.end()
        wait_until(lambda: os.path.exists(os.path.join(other.dir, "server.json")))
        there = names_of(other)
        assert there[0] == "a" and set(adding.taken) <= set(there)
        other.cli("catalog", "add", "b", "--url", "file:/data/b")
        again = instance.start("droverd", "--dir", instance.dir, "--config", settings)
        stands_by(again)
        other.kill_server(signal.SIGTERM)
        wait_until(lambda: os.path.exists(os.path.join(instance.dir, "server.json")))
        assert names_of(instance) == [*there, "b"]
        assert "the catalog has the changes of its log" in again.output()
    finally:
        for one in other.daemons:
            one.stop()


def test_outputs_are_registered_where_it_is_logged(pair, tmp_path):
    """Outputs of a job that runs during the takeover are in the catalog of the server that leads then."""
    first, second = pair.both()
    web = Nginx(os.path.join(tmp_path, "web"))
    try:
        web.wait()
        leader, _ = pair.up()
        pair.agent()
        first.cli("catalog", "add", "a", "--url", "file:/data/a")
        go = os.path.join(first.work, "go")
        request = first.submit(sh(f"while [ ! -e {go} ]; do sleep 0.05; done; echo x >r", output_destination=web.url + "out",
                                  transfer_output_files="r", should_transfer_files="YES", register_outputs="kind=test"))
        first.wait_state(f"{request}.0", "running")
        leader.kill()
        pair.leads(1)
        wait_until(lambda: second.agents("connected"))
        second.write("go", "")
        second.wait(request)
        wait_until(lambda: len(names_of(second)) == 2)
        assert names_of(second)[0] == "a" and names_of(second, f"kind=test,request={request}") == names_of(second)[1:]
    finally:
        web.stop()
