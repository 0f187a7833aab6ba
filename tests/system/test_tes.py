"""The Task Execution Service of the GA4GH on real daemons with a real podman; every answer is checked against the published document
(data/tes) by jsonschema."""
import glob
import http.client
import json
import os
import ssl
import tempfile
import threading

import agents
import pytest
import tes
from containers import IMAGE, engine_with_image
from drover import Instance, free_port, sh, wait_until
from stores import Nginx

ENDED = ("COMPLETE", "EXECUTOR_ERROR", "SYSTEM_ERROR", "CANCELED")
QUEUE = ("kill_grace: 2s\nqueues:\n  - name: here\n    cpus: 8\n"
         "    container: {engine: podman, network: none, images: ['localhost/*', 'docker.io/*']}\n")


@pytest.fixture(scope="module")
def place(request):
    """A server, and an agent with podman, which no test stops."""
    with engine_with_image(request.config.drover_tmp) as engine:
        one = Instance(request.config.getoption("--build"), tempfile.mkdtemp(prefix="t-", dir=request.config.drover_tmp))
        try:
            one.env.update(engine.env)
            one.server()
            one.agent = agents.start(one, QUEUE)
            wait_until(lambda: [q for a in one.agents("connected") for q in a["queues"] if q["ad"] and q["ad"].get("HasContainer")])
            yield one
            assert engine.names() == []
        finally:
            try:
                one.stop()
            finally:
                one.destroy()


def executor(script, **more):
    return {"image": IMAGE, "command": ["sh", "-c", script], **more}


def ended(place, task, view="FULL"):
    return wait_until(lambda: (lambda t: t if t["state"] in ENDED else None)(tes.get(place, task, view)))


def test_executors_share_their_files(place):
    task = tes.create(place, {
        "name": "three steps", "description": "what a task can say", "tags": {"who": "test"},
        "inputs": [{"path": "/data/in", "content": "text: grün\n", "name": "i"}, {"path": "/etc/only", "content": ""}],
        "volumes": ["/vol/A"],
        "resources": {"cpu_cores": 1, "ram_gb": 0.05, "disk_gb": 0.01, "preemptible": False},
        "executors": [
            executor("cat; echo made >/vol/A/one; pwd; echo $GREETING; cat /etc/passwd >&2", stdin="/data/in", stdout="/log/out",
                     workdir="/vol/A", env={"GREETING": "gu ten 'tag'"}),
            executor("cat /log/out /vol/A/one; test -e /etc/only; echo two >&2; exit 3", ignore_error=True),
            executor("pwd; ls /data; echo 'three\nlines'; exit 0"),
        ]})
    done = ended(place, task)
    assert done["state"] == "COMPLETE" and done["name"] == "three steps" and done["tags"] == {"who": "test"}
    assert done["inputs"][0] == {"path": "/data/in", "content": "text: grün\n", "name": "i", "type": "FILE"}
    (log,) = done["logs"]
    one, two, three = log["logs"]
    assert [x["exit_code"] for x in log["logs"]] == [0, 3, 0]
    assert one["stdout"] == "text: grün\n/vol/A\ngu ten 'tag'\n" and one["stderr"].startswith("root:x:0:0")
    assert two["stdout"] == one["stdout"] + "made\n" and two["stderr"] == "two\n"
    assert three["stdout"] == "/\nin\nthree\nlines\n" and three["stderr"] == ""
    assert done["creation_time"] <= one["start_time"] <= one["end_time"] <= two["start_time"] <= three["end_time"] <= log["end_time"]
    basic, minimal = tes.get(place, task, "BASIC"), tes.get(place, task)
    assert minimal == {"id": task, "state": "COMPLETE"}
    assert "content" not in basic["inputs"][0] and "stdout" not in basic["logs"][0]["logs"][0] and "system_logs" not in basic["logs"][0]


def test_files_come_and_go_by_url(place, tmp_path):
    """Single files, a pattern with its prefix, and folders, to and from a web server and the place's own disk."""
    web = Nginx(str(tmp_path / "web")).wait()
    try:
        url = web.put("in/a,b", b"from the web\n")
        os.makedirs(tmp_path / "tree/deep")
        (tmp_path / "tree/deep/leaf").write_text("leaf\n", encoding="utf-8")
        (tmp_path / "here").write_text("here\n", encoding="utf-8")
        os.makedirs(os.path.join(web.data, "out/dir/sub"))
        os.makedirs(os.path.join(web.data, "out/all/x"))
        task = tes.create(place, {
            "inputs": [{"path": "/ref/one", "url": url}, {"path": "/ref/two", "url": url},
                       {"path": "/ref/tree", "url": f"file://{tmp_path}/tree/", "type": "DIRECTORY"},
                       {"path": "/ref/here", "url": str(tmp_path / "here"), "type": "FILE"}],
            "outputs": [{"path": "/out/joined", "url": web.url + "out/joined"}, {"path": "/out/dir", "url": web.url + "out/dir", "type": "DIRECTORY"},
                        {"path": "/out/some/*/*.txt", "path_prefix": "/out/some", "url": web.url + "out/all"},
                        {"path": "/log/stdout", "url": web.url + "out/log"}, {"path": "/out/again", "url": f"file://{tmp_path}/joined"}],
            "executors": [
                executor("cat /ref/one /ref/two /ref/tree/deep/leaf /ref/here >/out/joined; cp /out/joined /out/again; mkdir -p /out/dir/sub /out/some/x; echo s >/out/dir/sub/s"),
                executor("echo a >/out/some/x/a.txt; echo b >/out/some/x/b.not; echo printed", stdout="/log/stdout")]})
        done = ended(place, task)
        assert done["state"] == "COMPLETE", done
        assert web.read("out/joined") == b"from the web\nfrom the web\nleaf\nhere\n"
        assert (tmp_path / "joined").read_text(encoding="utf-8").endswith("here\n")
        assert web.read("out/dir/sub/s") == b"s\n" and web.read("out/log") == b"printed\n"
        assert web.read("out/all/x/a.txt") == b"a\n" and os.listdir(os.path.join(web.data, "out/all/x")) == ["a.txt"]
        assert done["outputs"][0]["type"] == "FILE" and done["logs"][0]["metadata"]["host"] == "n1"
    finally:
        web.stop()


def test_what_fails_says_why(place):
    """The program, its image, what it reads, what it leaves; and no executor follows one that has failed."""
    nothing = f"file://{place.base}/no/such/file"
    codes = tes.create(place, {"executors": [executor("exit 7"), executor("true")]})
    killed = tes.create(place, {"executors": [executor("kill -KILL $$")]})
    ignored = tes.create(place, {"executors": [executor("exit 7", ignore_error=True)]})
    image = tes.create(place, {"executors": [{"image": "nosuch:1", "command": ["true"]}]})
    program = tes.create(place, {"executors": [{"image": IMAGE, "command": ["/no/such/program"]}]})
    missing = tes.create(place, {"inputs": [{"path": "/a/b", "url": nothing}], "executors": [executor("true")]})
    left = tes.create(place, {"outputs": [{"path": "/a/b", "url": nothing}], "executors": [executor("true")]})
    stdin = tes.create(place, {"volumes": ["/a"], "executors": [executor("true", stdin="/a/none")]})
    assert ended(place, codes)["state"] == "EXECUTOR_ERROR"
    assert [x["exit_code"] for x in tes.get(place, codes, "FULL")["logs"][0]["logs"]] == [7]
    assert ended(place, killed)["logs"][0]["logs"][0]["exit_code"] == 137
    done = ended(place, ignored)
    assert done["state"] == "COMPLETE" and done["logs"][0]["logs"][0]["exit_code"] == 7
    for task, words in ((image, "nosuch:1"), (program, "/no/such/program"), (missing, "no/such/file"), (left, "a/b"), (stdin, "none")):
        done = ended(place, task)
        assert done["state"] == "SYSTEM_ERROR", done
        assert any(words in line for line in done["logs"][0]["system_logs"]), done["logs"]
    wait_until(lambda: not place.json("queue")["requests"])  # nobody need release them
    for task in (image, left):
        assert tes.get(place, task)["state"] == "SYSTEM_ERROR" and tes.get(place, task, "FULL")["logs"][0]["system_logs"]


def test_a_link_in_the_place_of_a_mount_leads_nowhere(place):
    """An executor sees its folder of the sandbox whole, and the next one's mounts are looked at again."""
    secret = os.path.join(place.base, "secret")
    os.makedirs(secret)
    task = tes.create(place, {"volumes": ["/vol/A"], "executors": [
        executor(f"cd $DROVER_SCRATCH/tes/vol && mv A B && ln -s {secret} A"), executor("echo bad >/vol/A/file")]})
    done = ended(place, task)
    assert done["state"] == "SYSTEM_ERROR" and "there is a link on its way" in done["logs"][0]["system_logs"][0]
    assert os.listdir(secret) == []


def test_cancel_while_it_runs(place):
    task = tes.create(place, {"executors": [executor("trap '' TERM; while :; do sleep 1; done")]})
    wait_until(lambda: tes.get(place, task)["state"] == "RUNNING")
    tes.cancel(place, task)
    wait_until(lambda: tes.get(place, task)["state"] in ("CANCELING", "CANCELED"))
    assert ended(place, task)["state"] == "CANCELED"
    tes.cancel(place, task)  # once more changes nothing
    assert tes.get(place, task)["state"] == "CANCELED"


def test_the_agent_is_killed_between_executors(place):
    """It comes back and goes on, and knows what the executors before have come to."""
    task = tes.create(place, {"volumes": ["/vol/A"], "executors": [
        executor("echo first; exit 3", ignore_error=True), executor("touch /vol/A/second; while ! [ -e /vol/A/go ]; do sleep 0.1; done; echo second"),
        executor("echo third")]})
    second = wait_until(lambda: glob.glob(f"{place.base}/n1/jobs/{task}.0.*/tes/vol/A/second"))[0]
    place.agent.kill()
    place.agent = agents.start(place, QUEUE)
    wait_until(lambda: place.agents("connected"))
    with open(os.path.join(os.path.dirname(second), "go"), "w", encoding="utf-8"):
        pass
    done = ended(place, task)
    assert done["state"] == "COMPLETE", done["logs"]
    logs = done["logs"][0]["logs"]
    assert [(x["exit_code"], x["stdout"]) for x in logs] == [(3, "first\n"), (0, "second\n"), (0, "third\n")]
    assert logs[0]["start_time"] <= logs[0]["end_time"] <= logs[1]["start_time"] <= logs[2]["end_time"]


# ---- without an agent -------------------------------------------------------------------------------------------

ONE = [{"image": "busybox", "command": ["true"]}]


def test_the_service_says_what_it_is(instance):
    instance.server()
    info = tes.check("tesServiceInfo", instance.api("GET", f"{tes.BASE}/service-info"))
    assert info["type"] == {"group": "org.ga4gh", "artifact": "tes", "version": "1.1.0"}
    assert "priority" in info["tesResources_backend_parameters"]


def test_a_checker_that_can_fail():
    for name, value in (("tesTask", {}), ("tesTask", {"executors": [{"image": "a"}]}), ("tesServiceInfo", {"id": "x"}),
                        ("tesTask", {"executors": [], "state": "DONE"})):
        with pytest.raises(AssertionError):
            tes.check(name, value)


def test_cancel_while_it_waits(instance):
    instance.server()
    waits, held = (tes.create(instance, {"name": n, "executors": ONE}) for n in ("waits", "held"))
    assert tes.get(instance, waits)["state"] == "QUEUED"
    instance.cli("hold", held)
    assert tes.get(instance, held)["state"] == "PAUSED"
    for task in (waits, held):
        tes.cancel(instance, task)
        assert tes.get(instance, task)["state"] == "CANCELED"
        tes.cancel(instance, task)
    job = instance.submit(sh("true"))
    for method, path in (("POST", "/tasks/99:cancel"), ("GET", "/tasks/99"), ("GET", "/tasks/x"), ("GET", f"/tasks/{job}"),
                         ("POST", f"/tasks/{job}:cancel"), ("POST", "/tasks/x:cancel")):
        status, answer = instance.call(method, tes.BASE + path)
        assert status == 404 and answer["error"]["code"] == "not_found", (path, status, answer)
    assert instance.job(f"{job}.0")["state"] == "idle"
    assert instance.call("POST", f"{tes.BASE}/tasks/{waits}")[0] == 405


def all_pages(instance, **query):
    found, token = [], None
    while True:
        page = tes.tasks(instance, {**query, **({"page_token": token} if token else {})})
        found += [t["id"] for t in page["tasks"]]
        token = page.get("next_page_token")
        if not token:
            return found


def test_listing(instance):
    """Those that wait and those that have ended, page by page, by state, name and tags; jobs that are no tasks are not there."""
    instance.server()
    tasks = []
    for n in range(7):
        tasks.append(tes.create(instance, {"name": f"task {n % 2}", "tags": {"n": str(n), "even": str(n % 2 == 0), "none": ""}, "executors": ONE}))
        instance.submit(sh("true"))
    for task in tasks[:3]:
        tes.cancel(instance, task)
    wait, over = tasks[3:], tasks[2::-1]
    assert all_pages(instance) == wait + over == [t["id"] for t in tes.tasks(instance)["tasks"]]
    for size in (1, 2, 3, 4, 7, 2047):
        assert all_pages(instance, page_size=size, view="FULL") == wait + over
    assert all_pages(instance, state="QUEUED") == wait and all_pages(instance, state="CANCELED", page_size=1) == over
    assert all_pages(instance, state="RUNNING") == []
    assert all_pages(instance, name_prefix="task 1") == [tasks[3], tasks[5], tasks[1]]

    def tagged(*pairs):
        return [t["id"] for t in tes.tasks(instance, list(pairs))["tasks"]]

    assert tagged(("tag_key", "n"), ("tag_value", "4")) == [tasks[4]]
    assert tagged(("tag_key", "n")) == wait + over and tagged(("tag_key", "none"), ("tag_value", "")) == wait + over
    assert tagged(("tag_key", "n"), ("tag_value", "2"), ("tag_key", "even"), ("tag_value", "True")) == [tasks[2]]
    assert tagged(("tag_key", "n"), ("tag_value", "2"), ("tag_key", "even"), ("tag_value", "False")) == []
    assert tagged(("tag_key", "other")) == []
    basic = tes.tasks(instance, {"view": "BASIC"})["tasks"][0]
    assert basic["name"] == "task 1" and basic["tags"]["n"] == "3" and basic["executors"] == ONE
    for query in ("page_size=2048", "page_size=x", "page_token=7", "page_token=q0", "page_token=hx", "view=ALL", "state=queued",
                  "&".join(["tag_key=a"] * 65)):
        status, answer = instance.call("GET", f"{tes.BASE}/tasks?{query}")
        assert status == 400 and answer["error"]["code"] == "bad_parameter", (query, status, answer)
    instance.kill_server()
    instance.server()
    assert all_pages(instance, page_size=2, view="BASIC") == wait + over


def test_a_page_that_ends_with_the_queue(instance):
    instance.server()
    tasks = [tes.create(instance, {"executors": ONE}) for _ in range(3)]
    tes.cancel(instance, tasks[0])
    for size in (1, 2, 3):
        assert all_pages(instance, page_size=size) == [tasks[1], tasks[2], tasks[0]]


def test_bad_tasks_are_told_where(instance):
    instance.server()
    cases = {
        "/executors": {}, "/executors/0/image": {"executors": [{"command": ["a"]}]}, "/inputs/0/path": {"executors": ONE, "inputs": [{"url": "s3://a/b"}]},
        "/volumes/0": {"executors": ONE, "volumes": ["../.."]}, "/outputs/0/path_prefix": {"executors": ONE, "outputs": [{"path": "/a/*", "url": "s3://a/b"}]},
        "/resources/backend_parameters/VmSize": {"executors": ONE, "resources": {"backend_parameters": {"VmSize": "x"}, "backend_parameters_strict": True}},
    }
    for where, task in cases.items():
        status, answer = instance.call("POST", f"{tes.BASE}/tasks", task)
        assert status == 400 and answer["error"]["code"] == "bad_task" and answer["error"]["message"].startswith(where + ":"), answer
    for body in (b"", b"[]", b"{", b"7", b'{"executors":[], "executors":[]}', b'{"name":"\xff"}'):
        assert instance.call("POST", f"{tes.BASE}/tasks", body)[0] == 400, body
    content = {"path": "/a/b", "content": "x" * (300 << 10)}
    task = tes.create(instance, {"inputs": [content], "executors": ONE})
    assert tes.get(instance, task, "FULL")["inputs"][0]["content"] == content["content"]
    status, answer = instance.call("POST", f"{tes.BASE}/tasks", {"inputs": [{**content, "path": f"/a/{n}"} for n in range(4)], "executors": ONE})
    assert status == 413 and "KiB" in answer["error"]["message"]
    warned = tes.create(instance, {"resources": {"backend_parameters": {"VmSize": "x", "Priority": "7"}}, "executors": ONE})
    full = tes.get(instance, warned, "FULL")
    assert full["resources"]["backend_parameters"] == {"Priority": "7"} and "VmSize" in full["logs"][0]["system_logs"][0]
    assert instance.job(f"{warned}.0")["priority"] == 7
    assert sorted(all_pages(instance)) == sorted([task, warned])


def test_a_job_that_says_it_is_a_task(instance):
    """The attribute is the submitter's own to set: whatever it holds, the server says id and state itself."""
    instance.server()
    lies = ['7', '[]', '{', '', '{"task": 7}', '{"task": {"id": "1", "state": "COMPLETE", "logs": 7, "inputs": [7, {"path": {}}], "executors": {}}}']
    jobs = [str(instance.submit(sh("true", **{"+TesTask": json.dumps(lie)}))) for lie in lies]
    for job in jobs:
        status, answer = instance.call("GET", f"{tes.BASE}/tasks/{job}?view=FULL")
        assert (status, answer["id"], answer["state"]) == (200, job, "QUEUED")
    assert [t["id"] for t in tes.tasks(instance)["tasks"]] == jobs
    instance.cli("rm", *jobs)
    for job in jobs:
        status, answer = instance.call("GET", f"{tes.BASE}/tasks/{job}?view=BASIC")
        assert status == 404 or (answer["id"], answer["state"]) == (job, "CANCELED")


def test_whose_tasks(instance):
    """By token over TLS: each sees and cancels his own, an operator every one; a listing has one's own."""
    port = free_port()
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "a", encoding="utf-8") as f:
        f.write("operators: [op@test]\n")
    instance.server("--api-listen", f"127.0.0.1:{port}")
    tokens = {who: instance.json("token", "user", "--name", f"{who}@test", "--role", role)["token"]
              for who, role in (("ann", "user"), ("bob", "user"), ("op", "operator"))}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def call(who, method, path, body=None):
        c = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=90)
        c.request(method, tes.BASE + path, json.dumps(body) if body is not None else None,
                  {"Content-Type": "application/json", **({"Authorization": f"Bearer {tokens[who]}"} if who else {})})
        answer = c.getresponse()
        said = json.loads(answer.read() or b"null")
        c.close()
        return answer.status, said

    status, answer = call("ann", "POST", "/tasks", {"inputs": [{"path": "/a/b", "content": "ann's"}], "executors": ONE})
    assert status == 200
    task = answer["id"]
    assert call(None, "GET", f"/tasks/{task}")[0] == 401 and call(None, "POST", "/tasks", {"executors": ONE})[0] == 401
    assert call("bob", "GET", f"/tasks/{task}")[0] == 404 and call("bob", "POST", f"/tasks/{task}:cancel")[0] == 404
    assert call("bob", "GET", "/tasks")[1]["tasks"] == call("op", "GET", "/tasks")[1]["tasks"] == []
    assert call("ann", "GET", "/tasks")[1]["tasks"] == [{"id": task, "state": "QUEUED"}]
    assert call("op", "GET", f"/tasks/{task}?view=FULL")[1]["inputs"][0]["content"] == "ann's"
    assert call("op", "POST", f"/tasks/{task}:cancel") == (200, {})
    assert call("ann", "GET", f"/tasks/{task}")[1]["state"] == "CANCELED" and call("bob", "GET", f"/tasks/{task}")[0] == 404


def test_what_was_acknowledged_survives_kill_9(instance):
    """The server is killed while tasks are created: each that was answered is there whole, and none is there in part."""
    instance.server()
    answered, stop = {}, threading.Event()

    def creating(name):
        n = 0
        while not stop.is_set():
            n += 1
            task = {"name": f"{name} {n}", "inputs": [{"path": "/a/b", "content": f"{name}:{n}"}], "executors": ONE}
            try:
                answered[tes.create(instance, task)] = task
            except (OSError, http.client.HTTPException):
                return

    threads = [threading.Thread(target=creating, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    try:
        wait_until(lambda: len(answered) > 40)
    finally:
        instance.kill_server()
        stop.set()
        for t in threads:
            t.join()
    instance.server()
    there = {}
    token = None
    while True:
        page = tes.tasks(instance, {"view": "FULL", **({"page_token": token} if token else {})})
        there.update({t["id"]: t for t in page["tasks"]})
        token = page.get("next_page_token")
        if not token:
            break
    for task, asked in answered.items():
        assert there[task]["name"] == asked["name"] and there[task]["inputs"][0]["content"] == asked["inputs"][0]["content"]
    for task in there.values():
        assert task["state"] == "QUEUED" and task["inputs"][0]["content"] == task["name"].replace(" ", ":")
