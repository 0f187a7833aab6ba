"""Inputs and outputs named by URLs: fetched into the agent's cache, sent to stores, on a real nginx."""
import hashlib
import os
import signal
import socket

import agents
import pytest
from drover import wait_until
from stores import Faulty, Nginx

QUICK = "transfer_retry: 10ms\n"


@pytest.fixture
def store(instance):
    server = Nginx(os.path.join(instance.base, "nginx"))
    try:
        yield server.wait()
    finally:
        server.stop()


def start(instance, store, config=QUICK, urls=None):
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"stores:\n  lab:\n    urls: {urls or store.url}\n")
    instance.server()
    return agents.start(instance, config)


def cost(instance, text):
    """What the server thinks the job would cost at the agent, once it offers."""
    instance.write("job.sub", text)
    return wait_until(lambda: [place["cost"] for place in instance.json("quote", "job.sub")["places"] if "cost" in place])[0]


def gets(store, name):
    return len([r for r in store.requests("GET") if r[2] == "/dav/" + name and r[3] == 200])


def cat(*urls, more=""):
    names = " ".join(u.rsplit("/", 1)[1].split("#")[0] for u in urls)
    return f"""executable = /bin/cat
arguments = {names}
transfer_input_files = {", ".join(urls)}
output = out.$(Process)
{more}
queue
"""


def held(instance, request):
    """Its job, once it is held."""
    return wait_until(lambda: (j := instance.job(f"{request}.0"))["state"] == "held" and j)


def cached(agent_dir, least=0):
    cache = os.path.join(agent_dir, "cache")
    return sorted(n for n in os.listdir(cache) if len(n) == 64 and os.stat(os.path.join(cache, n)).st_size >= least)


def test_an_input_is_fetched_once(instance, store):
    one, two = store.put("one", b"first file\n"), store.put("in/two", b"second file\n" * 20000)
    start(instance, store)
    assert cost(instance, cat(one, two))["unsized"] == 2
    said = instance.cli("quote", instance.write("two.sub", cat(one, two))).out
    assert "at least 0B would be moved" in said and "Nobody knows how large 2 of a job's files are" in said
    assert cost(instance, cat(one, two, more='+TransferInputSizes = "11"'))["unsized"] == 1
    instance.run(cat(one, two))
    assert instance.read("out.0") == "first file\n" + "second file\n" * 20000
    instance.run(cat(one, two, more="output = again"))
    assert instance.read("again") == instance.read("out.0")
    assert gets(store, "one") == 1 and gets(store, "in/two") == 1
    # the server knows what is there, and how far the store is
    place = cost(instance, cat(one, two))
    assert place["bytes_held"] == place["bytes_in"] == len(instance.read("out.0")) and place["unsized"] == 0
    instance.run(cat(store.put("three", os.urandom(240000).hex().encode())))  # the agent knows the store by now

    def link():
        """both its latency, which is probed, and its rate, which is seen when a file comes, are known"""
        links = instance.json("stores")["stores"][0]["links"]
        return links and links[0]["latency_us"] and links[0]["bytes_per_s"] and links[0]

    assert wait_until(link)["agent"] == "n1"


def test_a_changed_file_is_fetched_again(instance, store):
    url = store.put("f", b"old")
    start(instance, store, QUICK + "cache_fresh: 0s\n")
    instance.run(cat(url))
    instance.run(cat(url))
    assert instance.read("out.0") == "old" and gets(store, "f") == 1  # the second time: 304
    assert 304 in [r[3] for r in store.requests("GET")]
    store.put("f", b"newer and longer")
    instance.run(cat(url))
    assert instance.read("out.0") == "newer and longer" and gets(store, "f") == 2


def test_jobs_share_one_fetch(instance, store):
    url = store.put("shared", os.urandom(3000000).hex().encode())
    start(instance, store)
    request = instance.run(f"""executable = /bin/sh
arguments = "-c 'cmp shared shared && echo mine >>shared'"
transfer_output_files = ""
transfer_input_files = {url}
queue 8
""")
    assert len(instance.history(request)) == 8 and gets(store, "shared") == 1
    # what jobs did to their copies is not in the cache
    instance.run(cat(url))
    assert "mine" not in instance.read("out.0")


def test_why_names_the_place_that_a_job_waits_for(instance, store):
    """One agent is free, and the job waits for the other, which has its file."""
    url = store.put("f", b"x")
    start(instance, store, QUICK + "queues:\n  - {name: default, cpus: 1}\n")
    instance.run(cat(url))
    blocker = instance.submit("executable = /bin/sleep\narguments = 600\n+ExpectedRunTime = 100\nqueue\n")
    wait_until(lambda: instance.job(f"{blocker}.0")["state"] == "running")
    agents.start(instance, QUICK, name="n2")
    wait_until(lambda: len(instance.agents("connected")) == 2)
    request = instance.submit(cat(url, more='+TransferInputSizes = "8000000000"'))
    job = f"{request}.0"
    wait_until(lambda: instance.api("GET", f"/v1/jobs/{job}/why")["better_place"])
    why = instance.api("GET", f"/v1/jobs/{job}/why")
    assert why["better_place"]["agent"] == "n1" and 0 <= why["better_place"]["waited_ms"] < why["better_place"]["longest_ms"] == 300000
    said = instance.cli("why", job).out
    assert "1 queue can run it now, but it waits for queue default of agent n1" in said and "at most 300 s" in said, said
    instance.cli("rm", str(blocker))
    wait_until(lambda: instance.job(job)["state"] == "completed")
    assert instance.history(request)[0]["agent"] == "n1"


def test_what_cannot_be_fetched_holds_the_job(instance, store):
    start(instance, store, QUICK + "transfer_tries: 2\n")
    gone = instance.submit(cat(store.url + "nothing-here"))
    busy = instance.submit(cat(store.base + "busy/x"))
    wrong = instance.submit(cat(store.put("f", b"x") + "#sha256=" + "0" * 64))
    for request, words in ((gone, "it is not there (HTTP 404)"), (busy, "HTTP 503"), (wrong, "checksum")):
        job = held(instance, request)
        assert job["hold_code"] == 13 and words in job["hold_reason"], job
    assert "tried 2 times" in held(instance, busy)["hold_reason"]
    # it is there now, and may go on
    store.put("nothing-here", b"at last")
    instance.cli("release", str(gone))
    instance.wait(gone)
    assert instance.read("out.0") == "at last"


def test_a_checksum_names_the_contents(instance, store):
    data = b"known contents"
    url = store.put("f", data) + "#sha256=" + hashlib.sha256(data).hexdigest()
    start(instance, store, QUICK + "cache_fresh: 0s\n")
    instance.run(cat(url))
    instance.run(cat(url))
    assert instance.read("out.0") == data.decode()
    assert len(store.requests("GET")) == 1  # the store is not even asked


def test_a_checksum_is_no_key(instance, store):
    """What others have fetched from elsewhere is not given to who knows its checksum: there it may be labelled."""
    data = b"not for everybody"
    start(instance, store)
    instance.run(cat(store.put("labelled/f", data)))
    request = instance.submit(cat(store.url + "open/f#sha256=" + hashlib.sha256(data).hexdigest()))
    assert "it is not there (HTTP 404)" in held(instance, request)["hold_reason"]


@pytest.mark.parametrize("should", ["IF_NEEDED", "YES"])
def test_outputs_go_to_urls(instance, store, should):
    start(instance, store)
    request = instance.run(f"""executable = /bin/sh
arguments = "-c 'echo a >a; echo b >b; echo c >c; echo out'"
should_transfer_files = {should}
transfer_output_files = a, b, c
transfer_output_remaps = "a={store.url}remapped/$(Process); b=$(Process).local"
output = out.txt
queue
""")
    assert store.read("remapped/0") == b"a\n"
    if should == "YES":  # the rest is in the server's spool
        assert not instance.exists("c")
        instance.cli("get", str(request))
    assert instance.read("0.local") == "b\n" and instance.read("c") == "c\n" and instance.read("out.txt") == "out\n"
    request = instance.run(f"""executable = /bin/sh
arguments = "-c 'echo new >made; echo err >&2'"
should_transfer_files = {should}
output_destination = {store.url}dest/$(Cluster)
error = err.txt
queue
""")
    assert store.read(f"dest/{request}/made") == b"new\n" and store.read(f"dest/{request}/err.txt") == b"err\n"
    assert not instance.exists("made") and not instance.exists("err.txt")


def test_an_output_that_is_refused_holds_the_job(instance, store):
    start(instance, store, QUICK + "transfer_tries: 2\n")
    request = instance.submit(f"""executable = /bin/touch
arguments = a
transfer_output_files = a
transfer_output_remaps = "a={store.base}forbidden/a"
queue
""")
    job = held(instance, request)
    assert job["hold_code"] == 12 and "HTTP 403" in job["hold_reason"]


def test_the_cache_survives_a_crash(instance, store):
    urls = [store.put(f"f{i}", f"file {i}\n".encode() * 1000) for i in range(3)]
    agent = start(instance, store)
    instance.run(cat(*urls))
    folder = os.path.join(instance.base, "n1")
    wait_until(lambda: os.path.exists(os.path.join(folder, "cache", "index")))
    agent.stop(signal.SIGKILL)
    # a file that was torn, and one that has changed behind our back
    names = cached(folder)
    with open(os.path.join(folder, "cache", names[0]), "r+b") as f:
        f.truncate(10)
    with open(os.path.join(folder, "cache", names[1]), "r+b") as f:
        f.write(b"F")
    with open(os.path.join(folder, "cache", "7.part"), "wb") as f:
        f.write(b"half of something")
    agents.start(instance, QUICK)
    instance.run(cat(*urls, more="output = after"))
    assert instance.read("after") == instance.read("out.0")
    assert sorted(gets(store, f"f{i}") for i in range(3)) == [1, 2, 2]
    for name in cached(folder):
        with open(os.path.join(folder, "cache", name), "rb") as f:
            assert hashlib.sha256(f.read()).hexdigest() == name
    assert not os.path.exists(os.path.join(folder, "cache", "7.part"))


def test_what_was_used_longest_ago_goes(instance, store):
    urls = [store.put(f"f{i}", bytes([65 + i]) * 400000) for i in range(4)]
    start(instance, store, QUICK + "cache: 1M\n")
    for url in (urls[0], urls[1], urls[0], urls[2], urls[0], urls[1]):
        instance.run(cat(url))
    assert [gets(store, f"f{i}") for i in range(3)] == [1, 2, 1]
    assert len(cached(os.path.join(instance.base, "n1"), 400000)) == 2
    instance.run(cat(*urls))  # more than fits: for as long as it is needed
    assert len(instance.read("out.0")) == 1600000


def test_a_mover_may_die(instance, store):
    """A program for a scheme, which brings the mover down once."""
    helper = instance.write("helper", f"""#!/bin/sh
read request
if [ ! -e {instance.work}/died ]; then touch {instance.work}/died; kill -9 $PPID; sleep 1; exit; fi
echo contents >&3
echo '{{"event":"done"}}'
""", 0o755)
    start(instance, store, QUICK + f"movers:\n  odd: {helper}\n")
    instance.run(cat("odd://somewhere/file"))
    assert instance.read("out.0") == "contents\n"


def test_another_way_to_the_same_file(instance, store):
    store.put("f", b"by another way")
    start(instance, store, urls=f"[rfio://tape/x/, {store.url}]")
    instance.run(cat("rfio://tape/x/f"))
    assert instance.read("out.0") == "by another way"


def test_a_cut_transfer_goes_on(instance, store):
    faulty = Faulty(b"0123456789" * 100000)
    try:
        start(instance, store)
        faulty.faults = ["cut", "503", "cut"]
        instance.run(cat(faulty.url))
        assert instance.read("out.0").encode() == faulty.data
    finally:
        faulty.stop()


def test_a_job_that_is_removed_fetches_no_more(instance, store):
    """One transfer at a time, and the first never comes: the next begins when nobody waits for it."""
    faulty = Faulty(b"0123456789")
    try:
        start(instance, store, QUICK + "transfers: 1\n")
        faulty.faults = ["hang"]
        first = instance.submit(cat(faulty.url))
        wait_until(lambda: faulty.seen)
        second = instance.submit(cat(store.put("f", b"second"), more="output = second"))
        wait_until(lambda: instance.job(f"{second}.0")["state"] not in ("idle", "matched"))
        instance.cli("rm", str(first))
        instance.wait(second)
        assert instance.read("second") == "second"
    finally:
        faulty.stop()


def test_images_that_are_there_count_as_held(instance, store):
    """Kept by somebody else on the machine: the agent's file says so."""
    start(instance, store, QUICK + "attributes: HasContainer = true\nimages:\n  docker.io/library/debian:12: 120M\n")
    text = "executable = /bin/true\ncontainer_image = docker://docker.io/library/{}\nqueue\n"
    for image, size in (("debian:12", 120 << 20), ("other:1", 0)):
        assert cost(instance, text.format(image))["bytes_held"] == size


def test_an_agent_is_stopped_while_it_fetches(instance, store):
    agent = start(instance, store)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        instance.submit(cat(f"http://127.0.0.1:{mute.getsockname()[1]}/f"))
        mute.accept()
        assert agent.stop() == 0


def test_a_shipped_file_comes_for_who_is_left(instance, store):
    """Two requests wait for the same file; the one in whose name it is fetched is removed, and the other has it."""
    start(instance, store, QUICK + "filesystem_domain: elsewhere.example\nqueues:\n  - {name: here, cpus: 4}\n")
    size = 200 << 20
    with open(os.path.join(instance.work, "large"), "wb") as f:
        f.truncate(size)
    text = ("executable = /usr/bin/stat\ntransfer_executable = false\narguments = -c %s large\nshould_transfer_files = YES\n"
            "transfer_input_files = large\noutput = out\nqueue\n")
    first, second = (instance.submit(text, "--hold") for _ in range(2))
    instance.cli("release", str(first))
    instance.wait_state(f"{first}.0", "staging")
    instance.cli("release", str(second))
    instance.wait_state(f"{second}.0", "staging")
    assert instance.job(f"{first}.0")["state"] == "staging"
    instance.cli("rm", str(first))
    assert instance.wait_state(f"{second}.0", "completed", "held")["state"] == "completed"
    instance.cli("get", str(second), "-o", "got")
    assert instance.read("got/out") == f"{size}\n"
