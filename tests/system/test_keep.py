"""What jobs have left goes when the settings say so, and not before; also when the server is killed meanwhile."""
import os
import random
import sqlite3
import time

import pytest

import agents
from drover import sh, wait_until


def configure(instance, text):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def stored(instance, sql):
    """One number out of the store, read beside the server."""
    db = sqlite3.connect(f"file:{os.path.join(instance.dir, 'drover.db')}?mode=ro", uri=True, timeout=90)
    try:
        return db.execute(sql).fetchone()[0]
    finally:
        db.close()


def rows(instance):
    return stored(instance, "SELECT count(*) FROM history")


def records(instance):
    return stored(instance, "SELECT count(*) FROM blob WHERE CAST(name AS TEXT) LIKE 'request/%'")


def kept(instance):
    return stored(instance, "SELECT count(*) FROM blob WHERE CAST(name AS TEXT) LIKE 'kept/%'")


def upload(instance, data, code=None):
    """Uploads it in pieces; returns what it is called. With `code` a piece is answered so: the text that is said."""
    status, begun = instance.call("POST", "/v1/uploads", b"{}")
    for at in range(0, len(data), 1 << 20):
        if status >= 300:
            break
        status, answer = instance.call("PUT", f"/v1/uploads/{begun['id']}?offset={at}", data[at:at + (1 << 20)])
    if code:
        assert status == code
        return (answer if "id" in begun else begun)["error"]
    assert status < 300, answer
    status, done = instance.call("POST", f"/v1/uploads/{begun['id']}/finish", b"{}")
    assert status == 200
    return done["sha256"]


def uploaded(instance):
    """What one user has in the spool: his row of `drover limits`."""
    return instance.json("limits")["spool"][0]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def make_old(instance):
    """Says in the store of a stopped server that all uploads came in long ago."""
    db = sqlite3.connect(os.path.join(instance.dir, "drover.db"), timeout=20)
    found = db.execute("SELECT name, data FROM blob WHERE CAST(name AS TEXT) LIKE 'owned/%'").fetchall()
    assert found
    for name, data in found:
        end = next(i for i, byte in enumerate(data) if byte < 0x80)  # the first number is the time
        data = b"\2" + data[end + 1:]
        db.execute("UPDATE blob SET data = ?, crc = ? WHERE name = ?",
                   (data, crc32c(len(name).to_bytes(8, "little") + data), name))
    db.commit()
    db.close()


def test_one_user_may_upload_so_much(instance):
    configure(instance, "users: {max_spool: 3MiB}\nkeep_finished: 1s\n")
    server = instance.server()
    mib = os.urandom(1 << 20)
    first = upload(instance, mib)
    assert upload(instance, mib) == first  # the same content counts once
    used = uploaded(instance)
    assert (used["bytes"], used["uploading"], used["max"]) == (1 << 20, 0, 3 << 20)
    status, begun = instance.call("POST", "/v1/uploads", b"{}")
    assert status == 201
    instance.call("PUT", f"/v1/uploads/{begun['id']}?offset=0", os.urandom(1 << 20))
    assert uploaded(instance)["uploading"] == (1 << 20) + 8192
    refused = upload(instance, os.urandom(1 << 20), 507)
    assert refused["code"] == "over_limit"
    assert "has 2.0 MiB of uploaded files on the server and may have 3.0 MiB (max_spool)" in refused["message"]
    assert "3M" in instance.cli("limits").out
    instance.write("big", "x" * (2 << 20))
    said = instance.cli("submit", "-", code=None,
                        stdin=sh("exit 0", transfer_input_files="big", should_transfer_files="YES"))
    assert said.code != 0 and "may have 3.0 MiB" in said.err

    # What a request needs counts for as long as it is there, whenever it came; what is old and not needed goes.
    instance.write("in", "y" * 5000)
    held = instance.submit(sh("exit 0", transfer_input_files="in", should_transfer_files="YES"), "--hold")
    needed = uploaded(instance)["bytes"] - (1 << 20)
    assert needed >= 8192
    server.stop()
    make_old(instance)
    left = [os.path.join(instance.dir, name) for name in
            ("server.json.0123abcd.tmp", "ca/ca.crt.0123abcd.tmp", f"spool/uploads/{begun['id']}.owner.0123abcd.tmp")]
    for name in left:  # as a kill in the middle of a write leaves them
        with open(name, "w", encoding="utf-8") as f:
            f.write("x")
    server = instance.server()
    assert not any(os.path.exists(name) for name in left)
    wait_until(lambda: uploaded(instance)["bytes"] == needed)
    instance.cli("rm", str(held))
    wait_until(lambda: not instance.call("GET", "/v1/requests?all=1")[1]["requests"])
    server.stop()  # not killed: that the request has gone may not be on the disk yet, and what is needed is kept an hour
    instance.server()
    wait_until(lambda: uploaded(instance)["bytes"] == 0)


def removed_jobs(instance, count):
    """A request whose jobs are all in the history."""
    r = instance.submit(sh("exit 0", queue=f"queue {count}"), "--hold")
    before = rows(instance)
    instance.cli("rm", str(r))
    wait_until(lambda: rows(instance) == before + count)
    return r


def test_nothing_goes_by_itself(instance):
    server = instance.server()
    r = removed_jobs(instance, 10)
    server.stop()
    instance.server()
    assert rows(instance) == 10 and records(instance) == 1
    assert len(instance.history(r)) == 10


def test_history_by_age(instance):
    configure(instance, "keep_finished: 1s\n")
    server = instance.server()
    removed_jobs(instance, 2500)
    wait_until(lambda: instance.api("GET", "/v1/requests?all=1")["requests"] == [])  # the core has forgotten it
    waiting = instance.submit(sh("exit 0", queue="queue 3"), "--hold")
    server.stop()
    configure(instance, "keep_finished: 1s\nkeep:\n  history: 1s\n")
    server = instance.server()
    wait_until(lambda: rows(instance) == 0)
    wait_until(lambda: 'msg="history was pruned" jobs=2500' in server.output())  # which is said when the cut is on the disk
    # its record goes too, once a snapshot is younger; that of the request that waits stays
    wait_until(lambda: records(instance) == 1)
    wait_until(lambda: 'msg="records of requests were pruned" requests=1' in server.output())
    server.kill()
    instance.server()
    assert [j["state"] for j in instance.jobs(waiting)] == ["held"] * 3
    instance.cli("history")


def test_history_by_number(instance):
    server = instance.server()
    removed_jobs(instance, 1500)
    last = removed_jobs(instance, 20)
    server.stop()
    configure(instance, "keep:\n  history_jobs: 100\n")
    instance.server()
    wait_until(lambda: rows(instance) == 100)
    assert len(instance.history(last)) == 20
    assert instance.history()[0]["id"] == f"{last}.19"


def test_killed_in_the_middle(instance):
    """Whenever it is killed, what is left is whole, and the pruning goes on."""
    configure(instance, "keep_finished: 1s\n")
    server = instance.server()
    for _ in range(4):
        removed_jobs(instance, 2000)
    wait_until(lambda: instance.api("GET", "/v1/requests?all=1")["requests"] == [])
    server.stop()
    configure(instance, "keep_finished: 1s\nkeep:\n  history: 1s\n")
    left = 8000
    rng = random.Random(7)
    while left:
        server = instance.server()
        before = left
        wait_until(lambda: rows(instance) < before)  # pylint: disable=cell-var-from-loop
        time.sleep(rng.random() * 0.2)
        server.kill()
        left = rows(instance)
        assert stored(instance, "SELECT max(id) - min(id) + 1 FROM history") in (None, left)
    assert instance.start("droverd", "--dir", instance.dir, "--check").process.wait(90) == 0
    instance.daemons.pop()
    server = instance.server()
    wait_until(lambda: records(instance) == 0)
    server.kill()
    instance.server()
    r = instance.submit(sh("exit 0"), "--hold")
    assert r == 5


def test_outputs(instance):
    instance.up()
    r = instance.run(sh("echo one > a.txt", should_transfer_files="YES", transfer_output_files="a.txt"))
    assert kept(instance) == 1
    instance.stop()
    instance.up()
    assert kept(instance) == 1
    instance.stop()
    configure(instance, "keep:\n  outputs: 1s\n")
    instance.up()
    wait_until(lambda: kept(instance) == 0)
    assert len(instance.history(r)) == 1


@pytest.mark.parametrize("text, why", [
    ("keep:\n  history: 0s\n", ":2: "), ("keep:\n  history: soon\n", ":2: "), ("keep:\n  history_jobs: 0\n", ":2: "),
    ("keep:\n  printed: much\n", ":2: "),
    ("keep:\n  outputs: x\n", ":2: "), ("keep:\n  everything: 1d\n", ":2: "), ("keep: 1d\n", ":1: ")])
def test_wrong_settings(instance, text, why):
    configure(instance, text)
    daemon = instance.start("droverd", "--dir", instance.dir)
    wait_until(lambda: not daemon.running())
    assert daemon.process.returncode != 0 and why in daemon.output(), daemon.output()
    instance.daemons.clear()


def test_history_is_kept_up_with(instance):
    """150,000 jobs that end at once: all but the newest are gone before one that waits for a fixed number a second gives up."""
    configure(instance, "keep: {history_jobs: 2000}\n")
    instance.server()
    request = instance.submit(sh("true", queue="queue 150000"), "--hold")
    instance.cli("rm", str(request))

    def pruned():
        """all rows were written, and all but the newest pruned"""
        return instance.job(f"{request}.149999")["state"] == "removed" and 0 < rows(instance) <= 2000 + 1000

    wait_until(pruned)


def usage_months(instance):
    db = sqlite3.connect(f"file:{os.path.join(instance.dir, 'drover.db')}?mode=ro", uri=True, timeout=90)
    try:
        return [row[0] for row in db.execute("SELECT substr(CAST(name AS TEXT), 7, 6) FROM blob WHERE CAST(name AS TEXT) LIKE 'usage/%'")]
    finally:
        db.close()


def test_old_records_of_usage_go_by_months(instance):
    """Those of a month that is over long enough; those of the present month stay."""
    instance.server()
    agents.start(instance, "")
    instance.run(sh("true"))
    wait_until(lambda: len(usage_months(instance)) == 1)
    instance.kill_server()
    db = sqlite3.connect(os.path.join(instance.dir, "drover.db"))
    with db:
        db.execute("INSERT INTO blob (name, crc, data) SELECT CAST('usage/202001' || substr(CAST(name AS TEXT), 13) AS BLOB), crc, data FROM blob "
                   "WHERE CAST(name AS TEXT) LIKE 'usage/%'")
    db.close()
    assert len(usage_months(instance)) == 2
    configure(instance, "keep:\n  usage: 40d\n")
    instance.server()
    wait_until(lambda: len(usage_months(instance)) == 1)
    assert "202001" not in usage_months(instance) and len(instance.cli("report", "records").splitlines()) == 1
