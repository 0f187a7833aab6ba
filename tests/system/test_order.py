"""Whose turn it is, and limits: named pools of units, and how much one user may have."""
import os
import uuid

from drover import sh, wait_until


def settings(instance, text):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def limit(instance, name):
    found = [x for x in instance.json("limits")["limits"] if x["name"] == name]
    return found[0] if found else None


def states(instance, request):
    return sorted(j["state"] for j in instance.jobs(request) if j["state"] != "removed")


def test_licences_are_drawn_on_and_waited_for(instance):
    settings(instance, "limits: {sw: 2, default: 50}\n")
    instance.up("--cpus", "4")
    first = instance.submit(sh("sleep 600", queue="queue 4", concurrency_limits="SW", request_cpus=1))
    wait_until(lambda: states(instance, first) == ["idle", "idle", "running", "running"])
    other = instance.run(sh("exit 0", concurrency_limits="db"))  # nobody waits behind those who wait for sw
    assert instance.history(other)[0]["exit_code"] == 0
    sw = limit(instance, "sw")
    assert (sw["max"], sw["used"], sw["waiting"]) == (2, 2, 2) and sw["users"][0]["units"] == 2
    why = instance.cli("why", f"{first}.3")
    assert "waits for limit sw: 2 of 2 in use" in why.out
    assert "SW" not in instance.cli("limits").out and "sw" in instance.cli("limits").out

    running = next(j["member"] for j in instance.jobs(first) if j["state"] == "running")
    instance.cli("rm", f"{first}.{running}")
    wait_until(lambda: states(instance, first) == ["idle", "running", "running"])
    instance.stop()  # counted again from the jobs that there are
    instance.up("--cpus", "4")
    wait_until(lambda: limit(instance, "sw")["used"] == 2)
    instance.cli("rm", str(first))
    wait_until(lambda: limit(instance, "sw")["used"] == 0)


def test_what_one_user_may_have(instance):
    settings(instance, "users: {max_running: 1, max_queued: 3}\n")
    instance.up("--cpus", "4")
    jobs = instance.submit(sh("sleep 600", queue="queue 3", request_cpus=1))
    wait_until(lambda: states(instance, jobs) == ["idle", "idle", "running"])
    refused = instance.cli("submit", "-", stdin=sh("exit 0"), code=None)
    assert refused.code != 0 and "3 jobs in the queue and may have 3" in refused.err
    assert "waits for limit user/" in instance.cli("why", f"{jobs}.2").out
    instance.cli("rm", f"{jobs}.2")
    more = instance.submit(sh("exit 0"))
    instance.cli("rm", str(jobs))
    instance.wait(more)


def test_how_much_one_user_may_queue(instance):
    """In bytes, from what was submitted: refused with what to do, the same after a restart, and free again when it is removed."""
    settings(instance, "users: {max_queued_bytes: 256K}\n")
    instance.server()
    attributes = {"Cmd": '"/bin/true"', "Note": '"' + "x" * 100000 + '"'}

    def submit():
        return instance.call("POST", "/v1/requests", {"uuid": str(uuid.uuid4()), "parts": [{"attributes": attributes}]})

    first = [submit() for _ in range(2)]
    assert [status for status, _ in first] == [201, 201]
    for _ in range(2):
        status, said = submit()
        assert (status, said["error"]["code"]) == (429, "over_limit")
        assert "may have 256 (max_queued_bytes)" in said["error"]["message"] and "removed" in said["error"]["message"]
        instance.stop()
        instance.server()
    instance.cli("rm", str(first[0][1]["id"]))
    wait_until(lambda: submit()[0] == 201)


ACCOUNTS = """
accounts:
  physics: {shares: 3, users: ["*"], accounts: {cms: {shares: 2}}}
  secret: {users: [nobody@local]}
qos:
  urgent: {priority: 1000, users: ["*"], max_running: 1}
  admin: {priority: 1, users: [nobody@local]}
fair_share: {half_life: 1d}
priority: {age: 1, user: 10}
"""


def test_accounts_and_quality_of_service(instance):
    settings(instance, ACCOUNTS)
    instance.up("--cpus", "2")
    full = instance.submit(sh("sleep 600", queue="queue 2", request_cpus=1))
    wait_until(lambda: states(instance, full) == ["running", "running"])
    me = instance.server_info()["you"]
    plain = instance.submit(sh("exit 0", queue="queue 2", request_cpus=1))
    cms = instance.submit(sh("exit 0", request_cpus=1, accounting_group="physics.cms", priority=3))
    urgent = instance.submit(sh("exit 0", queue="queue 2", request_cpus=1, qos="urgent"))
    points = instance.json("priority", f"{urgent}.0")
    assert points["account"] == f"physics/{me}" and points["qos"] == "urgent" and points["ahead"] == 0
    assert {c["name"]: c["points"] for c in points["components"]}["qos"] == 1000
    assert instance.json("priority", f"{plain}.0")["ahead"] == 3
    other = instance.json("priority", f"{cms}.0")
    assert other["account"] == f"physics.cms/{me}"
    assert {c["name"]: c["points"] for c in other["components"]}["user"] == 30
    assert "3 jobs before it" in instance.cli("priority", f"{plain}.0").out
    instance.cli("priority", f"{full}.0", code=1)

    accounts = {a["name"]: a for a in instance.json("shares")["accounts"]}
    assert accounts["physics"]["cpus"] == 2 and accounts["physics"]["waiting"] == 5 and not accounts["physics"]["user"]
    assert accounts[f"physics/{me}"]["running"] == 2
    before = accounts["physics"]["usage_s"]
    instance.stop()  # what was charged is charged
    instance.up("--cpus", "2")
    accounts = {a["name"]: a for a in instance.json("shares")["accounts"]}
    assert accounts["physics"]["usage_s"] >= before
    assert "physics.cms" in instance.cli("shares").out
    instance.cli("rm", str(full))
    instance.wait(plain, cms, urgent)

    for wrong, word in (({"accounting_group": "secret"}, "physics"), ({"accounting_group": "none.such"}, "no such"),
                        ({"+QOS": '"admin"'}, "urgent"), ({"+QOS": '"other"'}, "no such")):
        refused = instance.cli("submit", "-", stdin=sh("exit 0", **wrong), code=None)
        assert refused.code != 0 and word in refused.err, refused.err


def test_credentials_count_and_points_add_up(instance):
    """Points of the owner, of his domain, of the account and of the class; the components of a job are exactly its sum, and give
    the order."""
    settings(instance, "priority: {credential: 2, size: 3, user: 0.1, age: 7}\n"
                       "credentials: {users: {root@local: 5}, groups: {local: -1}, accounts: {phys: 10, phys.cms: 20.5},\n"
                       "              classes: {short: 3, long: -8}}\n")
    instance.server()
    plain = instance.submit(sh("true"))
    cms = instance.submit(sh("true", accounting_group="phys.cms", priority="4", request_cpus="2"))
    atlas = instance.submit(sh("true", accounting_group="phys.atlas.run3"))
    long = instance.submit(sh("true", **{"+BatchQueue": '"long"'}))
    short = instance.submit(sh("true", **{"+SlurmPartition": '"short"'}))
    other = instance.submit(sh("true", **{"+BatchQueue": '"other"', "+SlurmPartition": '"short"'}))
    for request, credential in ((plain, 8), (cms, 49), (atlas, 28), (long, -8), (short, 14), (other, 8)):
        said = instance.json("priority", f"{request}.0")
        points = {c["name"]: c["points"] for c in said["components"]}
        assert points["credential"] == credential, said
        assert abs(said["total"] - sum(points.values())) < 1e-6
    ahead = {request: instance.json("priority", f"{request}.0")["ahead"] for request in (plain, cms, atlas, short, long)}
    assert ahead == {plain: 3, cms: 0, atlas: 1, short: 2, long: 5}
    instance.cli("edit", f"{long}.0", "BatchQueue=\"short\"")
    assert instance.json("priority", f"{long}.0")["ahead"] < 4
    assert "points of its owner" in instance.cli("priority", f"{cms}.0")


def test_a_wide_job_gets_its_room(instance):
    """Small jobs that end one by one leave never two processors free, unless they are kept."""
    settings(instance, "reserve_after: 1s\n")
    instance.up("--cpus", "2")
    slow = sh("exec sleep 1.$0", queue="queue 400", request_cpus=1, allowed_execute_duration=5)
    small = instance.submit(slow.replace("sleep 1.$0'", "sleep 1.$0' $(Process)"))
    wait_until(lambda: "running" in states(instance, small))
    wide = instance.submit(sh("exit 0", request_cpus=2, priority=5))
    found = wait_until(lambda: instance.json("why", f"{wide}.0").get("reservation") or instance.history(wide))
    if isinstance(found, dict):
        assert found["first"] and found["start_ms"] > 0
    instance.wait(wide)
    assert "idle" in states(instance, small)
    instance.cli("rm", str(small))


def test_settings_that_make_no_sense_are_refused(instance):
    for text, word in (("limits: {sw: -1}\n", "sw"), ("limits: {a b: 1}\n", "a b"), ("limits: 5\n", "limits"),
                       ("users: {max_runing: 1}\n", "max_runing"), ("users: {ann@local: {max: 1}}\n", "max"),
                       ("accounts: {a: {shares: 0}}\n", "shares"), ("accounts: {a: {users: [ann]}}\n", "ann"),
                       ("qos: {x: {prio: 1}}\n", "prio"), ("priority: {fair: 1}\n", "fair"),
                       ("fair_share: {half_life: 0s}\n", "half_life")):
        settings(instance, text)
        daemon = instance.start("droverd", "--dir", instance.dir)
        assert daemon.process.wait(90) != 0
        assert "droverd.yaml:1" in daemon.output() and word in daemon.output(), daemon.output()
        instance.daemons.remove(daemon)
