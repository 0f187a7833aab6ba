"""Reservations: jobs that run in one and around it, what survives kill -9, who may do what, what they cost, and maintenance."""
import http.client
import json
import os
import ssl
import time

import agents
import openapi
from drover import free_port, sh, wait_until

CONFIG = "jobs_max: 4\ncpus: 4\nkill_grace: 1s\n"


def settings(instance, text):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def begin(instance, text=""):
    settings(instance, text)
    instance.server()
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)


def reserve(instance, *args):
    return int(instance.cli("reserve", *args))


def refused(instance, *args, **more):
    said = instance.cli(*args, code=None, **more)
    assert said.code != 0
    return said.err


def shown(instance, number):
    return instance.json("reserve", "show", str(number))


def state(instance, request):
    return instance.job(f"{request}.0")["state"]


def test_jobs_run_in_it_and_around_it(instance):
    """A long job waits, a short one goes first, the reserved one starts in its room; after a kill -9 all is as before."""
    begin(instance)
    first = reserve(instance, "--queue", "n1", "--from", "+1h", "--for", "1h", "--reason", "course")
    inside = instance.submit(sh("true", reservation=first))
    long = instance.submit(sh("true", allowed_execute_duration=7200))
    short = instance.submit(sh("true", allowed_execute_duration=60))
    instance.wait(short)
    assert [state(instance, r) for r in (inside, long)] == ["idle", "idle"]
    assert f"reservation {first}, which begins in" in instance.cli("why", str(inside))
    before = shown(instance, first)
    assert (before["state"], before["reason"], before["owner"]) == ("planned", "course", "root@local")
    assert before["places"][0]["cpus"] == 4
    openapi.check_answer("GET", "/v1/reservations", 200, instance.api("GET", "/v1/reservations"))
    body = {"duration_ms": 1000, "cpus": 1, "check_only": True}
    openapi.check_request("POST", "/v1/reservations", body)
    assert instance.api("POST", "/v1/reservations", body) == {"possible": True}
    made = instance.api("POST", "/v1/reservations", {"duration_ms": 1000, "cpus": 1, "check_only": False})
    openapi.check_answer("POST", "/v1/reservations", 200, made)
    instance.cli("reserve", "end", str(made["reservation"]["id"]))
    instance.kill_server()
    instance.server()
    agents.queues(instance, 1)
    assert shown(instance, first)["start_ms"] == before["start_ms"]
    again = instance.submit(sh("true", allowed_execute_duration=60))
    instance.wait(again)
    assert [state(instance, r) for r in (inside, long)] == ["idle", "idle"]
    # Nothing is reserved any more: the long one runs, and the other one says why it does not.
    instance.cli("reserve", "end", str(first))
    instance.wait(long)
    wait_until(lambda: state(instance, inside) == "held")
    assert "is over" in instance.cli("why", str(inside))
    # There is a new one, which begins at once.
    second = reserve(instance, "--queue", "n1", "--cpus", "2", "--for", "1h")
    assert second == first + 2
    instance.cli("edit", str(inside), f"reservation={second}")
    instance.cli("release", str(inside))
    instance.wait(inside)
    assert shown(instance, second)["state"] == "active"
    instance.cli("edit", str(instance.submit(sh("true", reservation=second, hold="true"))), "reservation=")
    assert "nothing is reserved" not in instance.cli("reserve", "list")


def test_where_and_how_often(instance):
    """Places of a group, by a condition and so many at once; every week."""
    settings(instance, "")
    instance.server()
    for name, group, rack in (("n1", "red", 1), ("n2", "blue", 1), ("n3", "blue", 2)):
        agents.start(instance, CONFIG + f"attributes: 'ParallelSchedulingGroup = \"{group}\"; Rack = {rack};'\n", name)
        agents.queues(instance, 1, name)

    def places(*args):
        return sorted(p["agent"] for p in shown(instance, reserve(instance, *args, "--cpus", "1", "--for", "1h"))["places"])
    assert places("--group", "blue", "--nodes", "2") == ["n2", "n3"]
    assert places("--where", 'Rack == 1 && ParallelSchedulingGroup != "red"') == ["n2"]
    assert places("--queue", "n1") == ["n1"]
    for args in (("--group", "blue", "--nodes", "3"), ("--group", "green"), ("--where", "Rack == 3"), ("--queue", "n4")):
        assert refused(instance, "reserve", *args, "--cpus", "1", "--for", "1h"), args
    weekly = reserve(instance, "--where", "Rack == 2", "--cpus", "2", "--from", "+1h", "--for", "1h", "--every", "week")
    assert shown(instance, weekly)["every_ms"] == 7 * 86400000 and "7d00h" in instance.cli("reserve", "list")


def test_it_evicts_and_maintains(instance):
    """Maintenance: what runs goes back to the queue, nothing is given there, and afterwards it runs again."""
    begin(instance)
    go = os.path.join(instance.work, "go")
    running = instance.submit(sh(f"while [ ! -e {go} ]; do sleep 0.05; done"))
    instance.wait_state(f"{running}.0", "running")
    number = reserve(instance, "--maintenance", "--evict", "--queue", "n1", "--from", "now", "--for", "1h")
    wait_until(lambda: state(instance, running) == "idle")
    why = instance.cli("why", str(running))
    assert "n1" in why
    assert "is over" in refused(instance, "submit", "-", stdin="executable = /bin/true\nreservation = 99\nqueue\n")
    assert "may not use" in refused(instance, "submit", "-", stdin=f"executable = /bin/true\nreservation = {number}\nqueue\n")
    instance.write("go", "")
    instance.cli("reserve", "end", str(number))
    instance.wait(running)


def test_what_it_costs(instance):
    """With reserved: all the room is paid for, and its jobs are not; ended early, it is charged for the time that has passed."""
    begin(instance, "bank:\n  reserved: all\n  rates: [{charge: Cpus * WallSeconds}]\n")
    instance.cli("bank", "account", "physics", "--new", "--member", "*@local=user")
    instance.cli("bank", "deposit", "physics", "10000")
    assert "bank" in refused(instance, "reserve", "--cpus", "4", "--for", "1h", "--account", "physics")
    number = reserve(instance, "--cpus", "2", "--for", "1h", "--account", "physics")
    assert instance.json("bank", "balance", "physics")["held"] == 7200
    lien, = instance.json("bank", "liens")["liens"]
    for order in ("release", "extend"):
        assert "end that one" in refused(instance, "bank", order, str(lien["id"]), *(["5"] if order == "extend" else []))
    request = instance.submit(sh("true", reservation=number, accounting_group="physics"))
    instance.wait(request)
    assert instance.json("bank", "balance", "physics")["charged"] == 0
    instance.cli("reserve", "end", str(number))
    after = instance.json("bank", "balance", "physics")
    assert after["held"] == 0 and 0 < after["charged"] < 7200


def test_who_may_reserve(instance):
    """Users within the settings' bounds, for themselves; never maintenance, eviction, or what is another's."""
    settings(instance, "reservations: {users: ['*@lab'], cpus: 2, duration: 2h, ahead: 1d, count: 2}\n")
    port = free_port()
    instance.server("--api-listen", f"127.0.0.1:{port}")
    agents.start(instance, CONFIG)
    agents.queues(instance, 1)
    tokens = {name: instance.json("token", "user", "--name", name, "--role", "user")["token"] for name in ("ann@lab", "bob@lab", "eve@far")}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def ask(who, method, path, body=None):
        link = http.client.HTTPSConnection("127.0.0.1", port, context=context)
        link.request(method, path, json.dumps(body) if body is not None else None, {"Authorization": f"Bearer {tokens[who]}"})
        answer = link.getresponse()
        return answer.status, json.loads(answer.read())
    hour, now = 3600000, int(time.time() * 1000)
    fair = {"cpus": 1, "duration_ms": hour, "reason": "mine", "users": "eve@far"}
    for more in ({"maintenance": True}, {"evict": True}, {"duration_ms": 3 * hour}, {"start_ms": now + 30 * hour}, {"cpus": 3}, {"cpus": 0},
                 {"every_ms": 2 * hour}, {"every_ms": 2 * hour, "until_ms": now + 40 * hour}):
        assert ask("ann@lab", "POST", "/v1/reservations", {**fair, **more})[0] == 403, more
    for more in ({"users": "eve"}, {"users": "a@b,,c@d"}, {"users": "a@b\nc@d"}, {"duration_ms": 5}, {"where": "("}):
        assert ask("ann@lab", "POST", "/v1/reservations", {**fair, **more})[0] == 400, more
    assert ask("ann@lab", "POST", "/v1/reservations", {**fair, "account": "physics"})[0] == 404
    assert ask("eve@far", "POST", "/v1/reservations", fair)[0] == 403
    status, made = ask("ann@lab", "POST", "/v1/reservations", fair)
    assert status == 200
    number = made["reservation"]["id"]
    assert ask("eve@far", "GET", f"/v1/reservations/{number}")[1]["reason"] == "mine"
    assert "reason" not in ask("bob@lab", "GET", f"/v1/reservations/{number}")[1]
    assert ask("bob@lab", "DELETE", f"/v1/reservations/{number}")[0] == 403
    assert ask("eve@far", "DELETE", f"/v1/reservations/{number}")[0] == 403
    assert ask("ann@lab", "POST", "/v1/reservations", fair)[0] == 200
    assert ask("ann@lab", "POST", "/v1/reservations", fair)[0] == 403  # two are the most
    assert ask("ann@lab", "DELETE", f"/v1/reservations/{number}")[0] == 200
