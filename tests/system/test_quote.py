"""What a job would take and when, before it is submitted and while it waits."""
import os

from drover import sh, wait_until


def test_quote_keeps_nothing(drover):
    text = sh("true", **{"+ExpectedRunTime": "60", "queue": "queue 3"})
    drover.write("job.sub", text)
    quote = drover.json("quote", "job.sub")
    assert quote["jobs"] == 3
    place = quote["places"][0]
    assert place["verdict"] in ("fits", "busy") and place["cost"]["run_ms"] == 60000 and place["cost"]["run_known"]
    assert place["end_ms"] - place["start_ms"] >= 60000
    assert quote["end_ms"] - quote["start_ms"] >= 60000
    assert "3 jobs: the first would start" in drover.cli("quote", "job.sub") and "CREDITS" not in drover.cli("quote", "job.sub")
    assert drover.api("GET", "/v1/requests?all=1")["requests"] == []
    assert drover.submit(text) == 1, "no number was used up"


def test_quote_tells_what_excludes_a_place(drover):
    drover.write("huge.sub", sh("true", request_cpus="5000"))
    quote = drover.json("quote", "huge.sub")
    assert quote["start_ms"] is None and quote["end_ms"] is None
    assert "fewer processors" in quote["places"][0]["text"] and "RequestCpus" in quote["places"][0]["clause"]
    assert "1 job: no place would take it" in drover.cli("quote", "huge.sub")


def test_the_parts_of_a_description_are_told_apart(drover):
    out = drover.cli("quote", "-", stdin="executable = /bin/true\nqueue\nrequest_memory = 900 T\nqueue\n")
    rows = [line.split()[0] for line in out[out.index("PART"):].split("\n\n")[0].splitlines()]
    assert rows == ["PART", "1", "2"]


def test_quote_refuses_what_a_submit_would(drover):
    drover.write("bad.sub", sh("true", **{"+DataLabels": '"secret"'}))
    assert "no label 'secret'" in drover.cli("quote", "bad.sub", code=1).err


def test_a_queued_job_knows_its_time(instance):
    instance.up("--cpus", "1")
    text = sh("sleep 600", **{"+ExpectedRunTime": "600"})
    first = instance.submit(text)
    instance.wait_state(f"{first}.0", "running")
    second = instance.submit(text)

    def why():
        """the time of the second job is known"""
        w = instance.json("why", f"{second}.0")
        return w if "eta_start_ms" in w else None

    answer = wait_until(why)
    running = instance.json("why", f"{first}.0")
    assert abs(answer["eta_start_ms"] - running["eta_end_ms"]) < 60000, "it starts when the other one ends"
    assert answer["eta_end_ms"] - answer["eta_start_ms"] >= 590000
    assert answer["agents"][0]["cost"]["run_ms"] == 600000
    assert answer["agents"][0]["cost"]["wait_ms"] > 500000
    assert "It is expected to start in" in instance.cli("why", f"{second}.0")
    rows = {r["id"]: r for r in instance.api("GET", "/v1/requests")["requests"]}
    assert rows[second]["eta_end_ms"] > rows[first]["eta_end_ms"] > 0
    instance.cli("rm", str(first), str(second))


def test_what_was_learned_outlives_the_server(instance):
    """How far an expected start was off is in no log: a server that was stopped and started says it all the same."""
    instance.up("--cpus", "1")
    first = instance.submit(sh("sleep 600", **{"+ExpectedRunTime": "600"}))
    instance.wait_state(f"{first}.0", "running")
    second = instance.submit(sh("true"))
    wait_until(lambda: "eta_start_ms" in instance.json("why", f"{second}.0"))
    instance.cli("rm", str(first))
    instance.wait(second)
    before = instance.json("quote", instance.write("next.sub", sh("true")))["eta_error"]
    assert before["count"] == 1 and before["median_ms"] > 500000
    instance.stop()
    instance.up("--cpus", "1")
    assert instance.json("quote", "next.sub")["eta_error"] == before


def test_a_quote_knows_limits(instance):
    """Where there is room, but no unit of a limit, it says so, and when there will be one."""
    os.makedirs(instance.dir)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write("limits:\n  sw: 1\n  none: 0\n")
    instance.up("--cpus", "4")
    text = sh("sleep 600", concurrency_limits="sw", **{"+ExpectedRunTime": "600"})
    instance.wait_state(f"{instance.submit(text)}.0", "running")
    quote = instance.json("quote", instance.write("next.sub", text))
    assert quote["places"][0]["start_ms"] - quote["places"][0]["cost"]["wait_ms"] < quote["start_ms"]
    assert quote["places"][0]["cost"]["wait_ms"] > 500000 and "limits" in quote["places"][0]["text"]
    never = instance.json("quote", instance.write("never.sub", text.replace("sw", "none")))
    assert never["start_ms"] is None and "the time is unknown" in never["places"][0]["text"]
    instance.cli("rm", "1")
