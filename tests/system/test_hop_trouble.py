"""Servers that jobs are handed on to, in trouble: what is said of it, and that every job is accounted for and runs once."""
import os
import shutil

import agents
from drover import free_port, sh, wait_until
from hops import far, far_jobs, link, runs
from test_full_disk import fill, small_disk


def why(one, job):
    return "\n".join(one.api("GET", f"/v1/jobs/{job}/why")["text"])


def queue_of(one):
    return one.agents()[0]["queues"][0]


def waits(one, **more):
    return sh(f"echo $DROVER_MEMBER >>{one.work}/ran; while [ ! -e {one.work}/go ]; do sleep 0.05; done; echo done", output="out.$(Process)", **more)


def test_who_is_away_is_named(two):
    """With the words of what failed: at the queue, of the job that is there, and of one that waits for it."""
    request = two.submit(waits(two))
    two.wait_state(f"{request}.0", "running")
    two.far.kill_server()
    wait_until(lambda: "cannot connect" in (queue_of(two)["unreachable"] or ""))
    gone = queue_of(two)["unreachable"]
    assert "does not answer" in gone and two.far.base in gone, gone
    assert gone in why(two, f"{request}.0")
    assert two.job(f"{request}.0")["unreachable"] == gone and two.job(f"{request}.0")["state"] == "running"
    path = wait_until(lambda: (p := two.json("path", f"{request}.0")) and p["hops"][0].get("said") == gone and p)
    assert path["summary"] == "unreachable" and f"\nhop 1: {gone}\n" in two.cli("path", f"{request}.0")
    later = two.submit(sh("true"))
    assert "is unreachable" in why(two, f"{later}.0")
    assert gone in two.cli("why", f"{later}.0")
    two.far.server()
    wait_until(lambda: not queue_of(two)["unreachable"])
    two.write("go", "")
    two.wait(request, later)
    assert two.read("ran") == "0\n"


def test_a_token_that_is_refused(request, build, instance):
    """From the beginning, and later: the far server's words are told, and a new token is enough."""
    one, two = instance, far(request, build)
    one.far = two
    one.server()
    runs(two, "--api-listen", f"127.0.0.1:{(port := free_port())}")
    good = two.json("token", "user")
    token = os.path.join(two.base, "token")

    def write(text):
        with open(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(text + "\n")

    write(good["token"][:-4] + "0000")
    one.config = f"queues:\n  - name: east\n    runner: drover\n    drover: {{server: 'https://127.0.0.1:{port}', token_file: {token}}}\n"
    one.agent = agents.start(one, one.config)
    job = one.submit(waits(one))
    gone = wait_until(lambda: one.agents("connected") and one.agents()[0]["queues"] and queue_of(one)["unreachable"])
    assert "token" in gone and f"127.0.0.1:{port}" in gone, gone
    assert gone in one.cli("why", f"{job}.0")
    write(good["token"])
    one.wait_state(f"{job}.0", "running")
    two.cli("token", "revoke", good["id"])
    one.write("go", "")
    gone = wait_until(lambda: queue_of(one)["unreachable"])
    assert "token" in gone, gone
    write(two.json("token", "user")["token"])
    one.wait(job)
    assert one.read("ran") == "0\n" and one.read("out.0") == "done\n"
    wait_until(lambda: not far_jobs(two))


def test_who_is_away_further_on(request, build, two):
    """Three servers: the first one says that the second one cannot reach the third."""
    one, middle, last = two, two.far, far(request, build)
    middle.runner.stop()
    runs(last)
    link(middle, last)
    number = one.submit(waits(one))
    wait_until(lambda: one.json("path", f"{number}.0")["summary"] == "running")
    last.kill_server()

    def told():
        path = one.json("path", f"{number}.0")
        return path if len(path["hops"]) > 1 and "cannot connect" in path["hops"][1].get("said", "") else None

    path = wait_until(told)
    assert path["summary"] == "unreachable" and last.base in path["hops"][1]["said"]
    assert "\nhop 2: the other server, " in one.cli("path", f"{number}.0")
    last.server()
    wait_until(lambda: one.json("path", f"{number}.0")["summary"] == "running")
    one.write("go", "")
    one.wait(number)
    assert one.read("ran") == "0\n"


def test_made_anew(two):
    """Another server stands at its address: what is called there as our job was is not ours."""
    request = two.submit(waits(two))
    two.wait_state(f"{request}.0", "running")
    number = far_jobs(two.far)[0]
    two.far.stop()
    shutil.rmtree(two.far.dir)
    shutil.rmtree(f"{two.far.base}/r1")
    two.far.server()
    other = two.far.submit("executable = /bin/false\nqueue\n")
    assert other == number
    two.far.runner = agents.start(two.far, "queues:\n  - {name: here, cpus: 8}\n", name="r1")
    two.far.wait(other, code=1)
    two.write("go", "")
    two.wait(request)
    assert two.history(request)[0]["exit_code"] == 0 and two.read("out.0") == "done\n"


def once(one, request, count):
    """Every job has run once, and its files are here."""
    one.wait(request, code=None)
    assert {r["member"]: (r["state"], r["exit_code"], r["starts"]) for r in one.history(request)} == {n: ("completed", n % 3, 1) for n in range(count)}
    assert sorted(map(int, one.read("ran").split())) == list(range(count))
    assert [one.read(f"ümläut ☃ {n}") for n in range(count)] == [f"file {n}\n" for n in range(count)]
    assert [one.read(f"out.{n}") for n in range(count)] == [f"made {n}\n" for n in range(count)]
    wait_until(lambda: not os.listdir(f"{one.base}/n1/hop.east"))
    wait_until(lambda: not far_jobs(one.far))


def many(one, count):
    for n in range(count):
        one.write(f"in {n} ☃", f"file {n}\n")
    return one.submit(sh(f"echo $DROVER_MEMBER >>{one.work}/ran; cp in* 'ümläut ☃ '$DROVER_MEMBER; echo made $DROVER_MEMBER; exit $(($DROVER_MEMBER % 3))",
                         output="out.$(Process)", transfer_input_files="in $(Process) ☃", request_cpus=0, queue=f"queue {count}"))


def test_killed_again_and_again(two):
    """The far server, wherever it is in taking jobs, running them, and giving their files back."""
    request = many(two, 200)
    for n in range(8):
        before = len(os.listdir(two.work))
        wait_until(lambda b=before: len(os.listdir(two.work)) > b + 5 or not two.jobs(request))
        two.far.kill_server()
        two.far.server()
    once(two, request, 200)


def test_its_disk_is_full(request, build, instance):
    """What it takes nothing for is sent again, and meanwhile it is told why; what runs there comes home when there is room."""
    one, two = instance, far(request, build)
    one.far = two
    one.server()
    with small_disk(two, two.dir):
        runs(two)
        link(one, two)
        running = one.submit(waits(one))
        one.wait_state(f"{running}.0", "running")
        fill(two.dir)
        with open(os.path.join(one.work, "large"), "wb") as f:
            f.write(os.urandom(3 << 20))
        later = one.submit(sh(f"echo later >>{one.work}/ran; wc -c <large; cp large back", output="size", transfer_input_files="large"))
        wait_until(lambda: "disk is full" in one.cli("path", f"{later}.0"))
        assert "disk is full" in one.json("path", f"{later}.0")["hops"][0]["said"]
        one.write("go", "")
        wait_until(lambda: not two.pids("sh"))
        os.unlink(os.path.join(two.dir, "ballast"))
        one.wait(running, later)
        assert one.read("ran") == "0\nlater\n" and one.read("out.0") == "done\n"
        assert one.read("size").strip() == str(3 << 20) and os.path.getsize(os.path.join(one.work, "back")) == 3 << 20
        assert {r["starts"] for r in one.history()} == {1} and len(two.history()) == 2
        wait_until(lambda: not os.listdir(f"{one.base}/n1/hop.east"))
        wait_until(lambda: not far_jobs(two))
        one.agent.stop()
