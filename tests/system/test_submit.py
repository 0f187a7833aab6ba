"""From a description to a result on the same machine."""
import concurrent.futures
import json
import os
import uuid

from drover import sh, wait_until


def test_output_in_the_submitters_folder(shared):
    shared.write("a/hello.sub", sh("echo out; echo err >&2; cat", output="hello.out", error="hello.err",
                                   input="hello.in"))
    shared.write("a/hello.in", "from the input\n")
    out = shared.cli("submit", "hello.sub", cwd=os.path.join(shared.work, "a"))
    request = out.split()[1].rstrip(":")
    assert out == f"request {request}: 1 job\n" or out == f"request {request}: 1 jobs\n"
    shared.wait(request)
    assert shared.read("a/hello.out") == "out\nfrom the input\n"
    assert shared.read("a/hello.err") == "err\n"
    job = shared.history(request)[0]
    assert job["state"] == "completed" and job["exit_code"] == 0 and job["starts"] == 1


def test_every_job_has_its_item(shared):
    request = shared.run(sh("echo $(word) $(Process) $(Cluster)", output="item-$(word).out",
                            queue="queue word in (alpha beta gamma)"))
    for n, word in enumerate(["alpha", "beta", "gamma"]):
        assert shared.read(f"item-{word}.out") == f"{word} {n} {request}\n"


def test_items_from_a_file_with_several_variables(shared):
    shared.write("items.txt", "one, 1\ntwo, 2\n")
    shared.run(sh("echo $(name)=$(value)", output="from-$(name).out", queue="queue name, value from items.txt"))
    assert shared.read("from-one.out") == "one=1\n"
    assert shared.read("from-two.out") == "two=2\n"


def test_items_from_matching_files(shared):
    for name in ("m1.dat", "m2.dat", "m3.txt"):
        shared.write(f"match/{name}", name)
    request = shared.submit(sh("cat $Fnx(f)", output="$Fn(f).got", transfer_input_files="$(f)",
                               queue="queue f matching files match/*.dat"))
    shared.wait(request)
    assert shared.read("m1.got") == "m1.dat"
    assert shared.read("m2.got") == "m2.dat"
    assert not shared.exists("m3.got")


def test_arguments_and_environment_arrive_as_quoted(shared):
    shared.write("args.py", "import json, os, sys\n"
                 "print(json.dumps([sys.argv[1:], os.environ.get('ONE'), os.environ.get('TWO')]))\n")
    script = os.path.join(shared.work, "args.py")
    shared.run("executable = /usr/bin/python3\n"
               f"arguments = \"{script} plain 'two words' 'it''s' \"\"quoted\"\" ''\"\n"
               "environment = \"ONE=1 TWO='a b ''c'''\"\n"
               "output = args.out\nrequest_memory = 64 MB\nqueue\n")
    assert json.loads(shared.read("args.out")) == [["plain", "two words", "it's", '"quoted"', ""], "1", "a b 'c'"]


def test_old_arguments(shared):
    shared.run("executable = /bin/echo\narguments = a  'b c' d\noutput = old.out\nrequest_memory = 32 MB\nqueue\n")
    assert shared.read("old.out") == "a 'b c' d\n"


def test_output_files_are_brought_back_and_renamed(shared):
    shared.run(sh("echo 1 >made; mkdir -p sub; echo 2 >sub/made2; echo 3 >other", transfer_output_files="made, sub/made2",
                  transfer_output_remaps='"made = renamed.txt"'))
    assert shared.read("renamed.txt") == "1\n"
    assert shared.read("made2") == "2\n"
    assert not shared.exists("other")


def test_input_files_are_in_the_jobs_folder(shared):
    shared.write("in/data.txt", "data\n")
    shared.run(sh("cat data.txt; ls", transfer_input_files="in/data.txt", output="inputs.out"))
    assert "data\n" in shared.read("inputs.out")


def test_each_job_has_a_scratch_folder_of_its_own(shared):
    shared.run(sh("pwd; ls -A | wc -l; echo $(Process) >f; cat f", output="scratch-$(Process).out", should_transfer_files="IF_NEEDED", queue="queue 3"))
    seen = [shared.read(f"scratch-{n}.out").split() for n in range(3)]
    assert len({s[0] for s in seen}) == 3
    assert [s[2] for s in seen] == ["0", "1", "2"]
    assert not any(os.path.exists(s[0]) for s in seen), "a scratch folder was left behind"


def test_initialdir(shared):
    os.makedirs(os.path.join(shared.work, "there"), exist_ok=True)
    shared.run(sh("echo x", output="dir.out", initialdir="there"))
    assert shared.read("there/dir.out") == "x\n"


def test_several_queue_statements(shared):
    request = shared.run(sh("echo $(n)", output="q-$(n).out", queue="n = 1\nqueue\nn = 2\nqueue 1"))
    assert shared.read("q-1.out") == "1\n" and shared.read("q-2.out") == "2\n"
    assert len(shared.history(request)) == 2


def test_append_on_the_command_line(shared):
    shared.run(sh("echo $(x)", output="append.out"), "-a", "x = appended")
    assert shared.read("append.out") == "appended\n"


def test_dry_run_submits_nothing(shared):
    before = shared.server_info()["jobs"]
    text = shared.cli("submit", "--dry-run", "-", stdin=sh("true", queue="queue 7"))
    assert "7" in text
    assert shared.server_info()["jobs"] == before


def test_submit_json(shared):
    answer = json.loads(shared.cli("submit", "--json", "-", stdin=sh("true", queue="queue 2")))
    assert answer["jobs"] == 2 and answer["existing"] is False
    shared.wait(answer["id"])


def test_submit_and_wait(shared):
    shared.cli("submit", "--wait", "-", stdin=sh("exit 0"))
    shared.cli("submit", "--wait", "-", stdin=sh("exit 3"), code=1)


def test_the_same_uuid_twice_is_one_request(shared):
    body = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": {"Cmd": '"/bin/true"', "Iwd": f'"{shared.work}"'},
                                                  "rows": 1, "steps": 1}]}
    status, first = shared.call("POST", "/v1/requests", body)
    assert (status, first["existing"]) == (201, False)
    status, second = shared.call("POST", "/v1/requests", body)
    assert (status, second["existing"]) == (200, True)
    assert second["id"] == first["id"]
    shared.wait(first["id"])
    assert len(shared.history(first["id"])) == 1


def test_a_thousand_jobs(shared):
    request = shared.submit("executable = /bin/true\nrequest_memory = 16 MB\nrequest_disk = 1 MB\nqueue 1000\n")
    shared.wait(request)
    rows = shared.history(request)
    assert len(rows) == 1000
    assert {r["member"] for r in rows} == set(range(1000))
    assert {r["state"] for r in rows} == {"completed"}


def test_a_million_jobs_are_accepted_as_one(shared):
    request = shared.submit("executable = /bin/true\nqueue 1000000\n", "--hold")
    got = shared.api("GET", f"/v1/requests/{request}")
    assert got["jobs"] == 1000000 and got["held"] == 1000000
    assert shared.job(f"{request}.999999")["state"] == "held"
    shared.cli("rm", str(request))
    assert shared.api("GET", f"/v1/requests/{request}")["removed"] == 1000000


def test_many_late_jobs_are_accepted_whole(shared):
    """They are put into classes in slices; others are accepted in between, and nobody sees a part of them."""
    jobs, size = 100000, [100 + i % 200 for i in range(100000)]
    items = "".join(f"{n}\n" for n in size)
    others = {r["id"] for r in shared.api("GET", "/v1/requests")["requests"]}
    seen = set()
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        big = [pool.submit(shared.submit, f"executable = /bin/true\nrequest_memory = $(size) MB\nqueue size from (\n{items})\n",
                           "--hold") for _ in range(2)]
        while not all(b.done() for b in big):
            small = shared.submit("executable = /bin/true\nqueue\n", "--hold")
            assert shared.job(f"{small}.0")["state"] == "held"
            others.add(small)
            seen |= {r["jobs"] for r in shared.api("GET", "/v1/requests")["requests"] if r["id"] not in others}
    assert seen <= {jobs}
    first, second = (b.result() for b in big)
    assert first != second
    for request in (first, second):
        got = shared.api("GET", f"/v1/requests/{request}")
        assert got["jobs"] == got["held"] == jobs
        assert shared.job(f"{request}.99999")["ad"]["RequestMemory"] == size[99999]
        shared.cli("rm", str(request))


def test_who_waits_is_told_of_outputs_at_the_server(shared):
    kept = shared.cli("submit", "--wait", "-", stdin=sh("echo x", output="kept.out", should_transfer_files="YES"))
    number = kept.out.split()[1].rstrip(":")
    assert f"the server keeps its outputs: drover get {number}" in kept.err and not shared.exists("kept.out")
    back = shared.cli("submit", "--wait", "-", stdin=sh("echo x", output="back.out"))
    assert "drover get" not in back.err and shared.read("back.out") == "x\n"


def test_macros_in_items_take_the_values_of_the_row_and_of_the_job(shared):
    request = shared.run("executable = /bin/echo\narguments = $(args)\noutput = items.$(Process)\nrequest_memory = 32 MB\n"
                         "queue 2 name, args from ( alpha, --name $(name) --out $(name).txt $(Step) $(Process) )\n")
    assert [shared.read(f"items.{i}") for i in (0, 1)] == [f"--name alpha --out alpha.txt {i} {i}\n" for i in (0, 1)]
    assert "alpha.txt 1 1" in shared.cli("show", f"{request}.1")


def test_a_uuid_is_one_request(instance):
    """Sent again it is the same one: while the request is there, when it has been forgotten, after a restart, and after a snapshot.
    With other contents it is refused."""
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("keep_finished: 1s\n")
    instance.server()
    one = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": {"Cmd": '"/bin/true"', "Args": '""'}}]}
    order = {**one, "parts": [{"attributes": {"Args": '""', "Cmd": '"/bin/true"'}}]}
    others = ({**one, "hold": True}, {**one, "parts": one["parts"] * 2},
              {**one, "parts": [{"attributes": {"Cmd": '"/bin/false"', "Args": '""'}}]})
    number = instance.api("POST", "/v1/requests", one)["id"]

    def the_same():
        for body in (one, order):
            said = instance.api("POST", "/v1/requests", body)
            assert (said["id"], said["existing"], said["jobs"]) == (number, True, 1)
        for body in others:
            status, said = instance.call("POST", "/v1/requests", body)
            assert (status, said["error"]["code"]) == (409, "uuid_used") and str(number) in said["error"]["message"]

    the_same()
    instance.cli("rm", str(number))
    wait_until(lambda: instance.call("GET", f"/v1/requests/{number}")[0] == 404)
    for _ in range(2):
        the_same()
        instance.stop()
        instance.server()
    the_same()
    assert instance.api("GET", "/v1/requests")["requests"] == []
