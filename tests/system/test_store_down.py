"""A store that stops answering, and answers again: who knows of it, where jobs go, and that none is held for it; and that what
was measured of a store outlives its agent. On a real nginx."""
import hashlib
import os
import re
import signal
import socket
import time

import agents
import pytest
from drover import free_port, sh, wait_until
from stores import Nginx

QUICK = "transfer_retry: 10ms\ntransfer_tries: 2\nprobe: 1s\ncache_fresh: 0s\n"


@pytest.fixture
def store(instance):
    server = Nginx(os.path.join(instance.base, "nginx"))
    try:
        yield server.wait()
    finally:
        server.stop()


def serve(instance, stores):
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("stores:\n" + "".join(f"  {name}:\n    urls: {urls}\n" for name, urls in stores.items()))
    instance.server()


def cat(url, more=""):
    return f"""executable = /bin/cat
arguments = {url.rsplit("/", 1)[1].split("#")[0]}
transfer_input_files = {url}
output = out.$(Cluster)
{more}
queue
"""


def link(instance, agent="n1", store=0):
    """What the agent has told of the store, if it has."""
    return next((x for x in instance.json("stores")["stores"][store]["links"] if x["agent"] == agent), None)


def until_down(instance, *names):
    return [wait_until(lambda name=name: (x := link(instance, name)) and "down_ms" in x and x) for name in names]


def until_up(instance, *names):
    for name in names:
        wait_until(lambda name=name: (x := link(instance, name)) and "down_ms" not in x)


def starts(instance, request):
    """How often the job was given to an agent, and what became of that."""
    return [e["event"] for e in instance.events(f"{request}.0") if e["event"] in ("matched", "refused", "held")]


def why(instance, request):
    return instance.json("why", f"{request}.0")


def waits_for_store(instance, request):
    """`why` says that the job waits for a store"""
    answer = why(instance, request)
    return answer["state"] == "idle" and [a for a in answer["agents"] if a["verdict"] == "store down"] and answer


def test_a_job_waits_until_its_store_is_back(instance, store):
    url = store.put("f", b"there again\n")
    serve(instance, {"lab": store.url})
    agents.start(instance, QUICK)
    until_up(instance, "n1")
    store.stop()
    down = until_down(instance, "n1")[0]
    assert "cannot reach" in down["down_why"] and down["latency_us"] > 0
    request = instance.submit(cat(url, "max_retries = 1"))
    other = instance.run("executable = /bin/true\nqueue\n")  # which needs no store
    assert instance.history(other)
    answer = wait_until(lambda: waits_for_store(instance, request))
    assert answer["agents"][0]["store"] == "lab" and answer["agents"][0]["since_ms"] == down["down_ms"]
    assert "eta_start_ms" not in answer
    said = instance.cli("why", f"{request}.0").out
    assert "It waits for a store that does not answer: 1 queue could run it then." in said
    assert re.search(r"Store lab has not answered agent n1 since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC: cannot reach http://", said)
    assert re.search(r"n1 +default +store down +store lab has not answered it since", said)
    assert "hop 1: it waits there: store lab has not answered agent n1 since" in instance.cli("path", f"{request}.0").out
    listed = instance.cli("stores").out
    assert re.search(r"lab +n1 .*not for ", listed) and "lab does not answer n1: cannot reach" in listed
    assert starts(instance, request) == []
    store.start()
    store.wait()
    instance.wait(request)
    assert instance.read(f"out.{request}") == "there again\n"
    assert starts(instance, request) == ["matched"]
    until_up(instance, "n1")
    assert re.search(r"lab +n1 .*yes ", instance.cli("stores").out)


def test_an_attempt_that_finds_it_down_goes_back(instance, store):
    """The store goes away when nobody looks: the attempt that meets the silence is given back, and none after it."""
    url = store.put("f", b"at last\n")
    serve(instance, {"lab": store.url})
    agents.start(instance, QUICK.replace("probe: 1s", "probe: 1h"))
    until_up(instance, "n1")
    store.stop()
    request = instance.submit(cat(url, "max_retries = 0"))
    wait_until(lambda: waits_for_store(instance, request))
    assert starts(instance, request) == ["matched", "refused"]
    assert "store lab does not answer: cannot fetch http://" in instance.cli("log", f"{request}.0").out
    more = [instance.submit(cat(url)) for _ in range(3)]
    for one in more:
        wait_until(lambda one=one: waits_for_store(instance, one))
        assert starts(instance, one) == []
    store.start()
    store.wait()
    agents.start(instance, QUICK, "n2")  # one that has not missed it takes them at once
    instance.wait(request, *more)
    for one in (request, *more):
        assert instance.read(f"out.{one}") == "at last\n"
    ended = instance.history(request)[0]
    assert ended["exit_code"] == 0


def test_a_job_goes_where_a_copy_is(instance, store):
    """Known by its checksum a copy needs no store; and a far agent that reaches the store is better than a near one that does not."""
    data = b"held somewhere\n"
    url = store.put("f", data) + "#sha256=" + hashlib.sha256(data).hexdigest()
    serve(instance, {"lab": store.url})
    agents.start(instance, QUICK)
    agents.start(instance, QUICK, "n2")
    until_up(instance, "n1", "n2")
    instance.run(cat(url, 'requirements = TARGET.AgentName == "n2"'))
    wait_until(lambda: [p for p in instance.json("quote", instance.write("q.sub", cat(url)))["places"] if p["cost"]["bytes_held"]])
    store.stop()
    until_down(instance, "n1", "n2")
    request = instance.run(cat(url))
    assert instance.history(request)[0]["agent"] == "n2"


def test_an_old_copy_does_not_help(instance, store):
    """A copy that its store must be asked about is tried once; then its jobs wait as well."""
    url = store.put("f", b"old or new\n")
    serve(instance, {"lab": store.url})
    agents.start(instance, QUICK)
    until_up(instance, "n1")
    instance.run(cat(url))
    store.stop()
    until_down(instance, "n1")
    request = instance.submit(cat(url))
    wait_until(lambda: waits_for_store(instance, request))
    assert len(starts(instance, request)) <= 2  # given and given back, if it was given at all
    store.put("f", b"new\n")
    store.start()
    instance.wait(request)
    assert instance.read(f"out.{request}") == "new\n"


def test_a_store_that_goes_and_comes(instance, store):
    """However often it goes, no job is held or lost."""
    urls = [store.put(f"f{i}", b"%d\n" % i) for i in range(12)]
    serve(instance, {"lab": store.url})
    agents.start(instance, QUICK)
    until_up(instance, "n1")
    requests = []
    for i, url in enumerate(urls):
        if i % 4 == 1:
            store.stop()
        if i % 4 == 3:
            until_down(instance, "n1")
            store.start()
            store.wait()
        requests.append(instance.submit(cat(url)))
    instance.wait(*requests)
    assert [instance.read(f"out.{r}") for r in requests] == [f"{i}\n" for i in range(12)]


def test_a_missing_file_is_no_missing_store(instance, store):
    """Nor is a store that is there, but has its own troubles with a file: these jobs are held, as ever."""
    serve(instance, {"lab": store.url, "busy": store.base + "busy/"})
    agents.start(instance, QUICK)
    until_up(instance, "n1")
    for url, words in ((store.url + "none", "HTTP 404"), (store.base + "busy/f", "HTTP 503")):
        job = instance.wait_state(f"{instance.submit(cat(url))}.0", "held")
        assert job["hold_code"] == 13 and words in job["hold_reason"], job


def test_a_store_that_only_listens(instance):
    """A connection that leads to silence is no sign by itself, but with a transfer that failed it is."""
    with socket.socket() as s:
        port = free_port()
        s.bind(("127.0.0.1", port))
        s.listen(50)
        serve(instance, {"mute": f"http://127.0.0.1:{port}/"})
        agents.start(instance, "transfer_retry: 10ms\ntransfer_tries: 1\ntransfer_limit: 1s\nprobe: 1h\n")
        agents.offering(instance)
        request = instance.submit(cat(f"http://127.0.0.1:{port}/f"))
        wait_until(lambda: waits_for_store(instance, request), 120)
        assert starts(instance, request) == ["matched", "refused"]


def test_what_was_measured_outlives_the_agent(instance, store):
    url = store.put("f", os.urandom(1000000).hex().encode())
    serve(instance, {"lab": store.url})
    agent = agents.start(instance, QUICK)
    until_up(instance, "n1")
    instance.run(cat(url))
    before = wait_until(lambda: (x := link(instance)) and x["bytes_per_s"] and x)
    agent.stop()
    store.stop()  # nothing can be measured from now on
    stopped_ms = time.time() * 1000
    instance.stop()
    serve(instance, {"lab": store.url})
    assert not link(instance)
    agents.start(instance, QUICK)
    after = until_down(instance, "n1")[0]
    assert after["bytes_per_s"] == before["bytes_per_s"]
    assert before["measured_ms"] - 1000 <= after["measured_ms"] <= stopped_ms + 1000  # give or take what clocks differ by


def writes(instance, store):
    """A job that has begun, runs until `go` is there, and then sends what it made to the store."""
    request = instance.submit(sh(f"echo run >>{instance.work}/runs; while [ ! -e {instance.work}/go ]; do sleep 0.05; done; echo made >made",
                                 transfer_output_files="made", transfer_output_remaps=f"made={store.url}out/made"))
    wait_until(lambda: instance.exists("runs"))
    return request


def waits_to_send(instance, request):
    """the path says that the output waits for its store"""
    hop = instance.json("path", f"{request}.0")["hops"][0]
    return "once store lab answers" in hop.get("doing", "") and hop


@pytest.mark.parametrize("killed", [False, True])
def test_an_output_waits_for_its_store(instance, store, killed):
    """A store that goes away while the job runs: it is not held, its room is free, and what it made is sent when the store is back,
    also by an agent that was killed meanwhile."""
    serve(instance, {"lab": store.url})
    config = QUICK + "queues:\n  - name: here\n    cpus: 1\n"
    agent = agents.start(instance, config)
    until_up(instance, "n1")
    request = writes(instance, store)
    store.stop()
    instance.write("go", "")
    hop = wait_until(lambda: waits_to_send(instance, request))
    assert f"sending output 1 of 1 to {store.url}out/made" in hop["doing"] and "cannot reach" in hop["doing"]
    assert "once store lab answers" in instance.cli("why", f"{request}.0").out
    instance.run("executable = /bin/true\nqueue\n")  # on the only processor
    if killed:
        agent.stop(signal.SIGKILL)
        agents.start(instance, config)
        wait_until(lambda: waits_to_send(instance, request))
    assert starts(instance, request) == ["matched"]
    store.start()
    store.wait()
    instance.wait(request)
    assert store.read("out/made") == b"made\n" and instance.read("runs") == "run\n"
    assert starts(instance, request) == ["matched"]


def test_an_output_that_waits_can_be_given_up(instance, store):
    """Nobody knows how long it would take: the job can be removed, and held, which loses what it made."""
    serve(instance, {"lab": store.url})
    agents.start(instance, QUICK)
    until_up(instance, "n1")
    request = writes(instance, store)
    other = writes(instance, store)
    store.stop()
    instance.write("go", "")
    for one in (request, other):
        wait_until(lambda one=one: waits_to_send(instance, one))
    instance.cli("rm", str(request))
    instance.wait_state(f"{request}.0", "removed")
    instance.cli("hold", str(other))
    instance.wait_state(f"{other}.0", "held")
    store.start()
    store.wait()
    until_up(instance, "n1")
    instance.cli("release", str(other))
    instance.wait(other)
    assert store.read("out/made") == b"made\n"
    assert not [n for n in os.listdir(os.path.join(instance.base, "n1", "jobs")) if n[0].isdigit()]


def test_a_store_taken_out_of_the_configuration(instance, store):
    """What waited for it is tried as any other URL, and holds its job."""
    serve(instance, {"lab": store.url})
    agents.start(instance, QUICK)
    until_up(instance, "n1")
    request = writes(instance, store)
    store.stop()
    instance.write("go", "")
    wait_until(lambda: waits_to_send(instance, request))
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("stores: {}\n")
    server, = [d for d in instance.daemons if d.name == "droverd"]
    server.stop()
    instance.daemons.remove(server)
    instance.server()
    job = instance.wait_state(f"{request}.0", "held")
    assert job["hold_code"] == 12 and "cannot send to" in job["hold_reason"], job
