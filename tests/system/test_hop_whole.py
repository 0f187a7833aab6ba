"""All that a job is goes along over hops, and what there is for it behind them comes back: places of two kinds stand behind the
third of three servers, and a job matches at each server when it matches there."""
import json

import agents
import pytest
from containers import IMAGE, engine_with_image
from drover import sh, wait_until
from hops import far, far_jobs, link, runs
from test_environments import start as makes_environments, wheel

BLUE = """kill_grace: 1s
queues:
  - name: blue
    cpus: 4
    memory: 4000M
    attributes: 'Model = "blue"; Level = 3;'
    resources: {Licence: 2}
    requirements: 'TARGET.NotBlue =!= true'
"""
RED = """kill_grace: 1s
queues:
  - name: red
    cpus: 8
    memory: 1000M
    attributes: 'Arch = "aarch64"; Model = "red"; HasThing = true;'
"""
KINDS = 2


def offers(one, name="n1"):
    """The hop's offers by their names, once there is one for each kind of places behind it."""
    def there():
        """each kind of places is offered"""
        for agent in one.agents("connected"):
            found = {q["name"]: q for q in agent["queues"] if q["name"].startswith("east") and q["offer"]}
            if agent["name"] == name and len(found) >= KINDS and all(q["free"]["cpus"] > 0 for q in found.values()):
                return found
        return None

    return wait_until(there)


@pytest.fixture(name="row", scope="module")
def _row(request):
    one, two, three = (far(request, request.config.option.build) for _ in range(3))
    one.server()
    two.server()
    three.server()
    agents.start(three, BLUE, name="b1")
    agents.start(three, RED, name="r1")
    agents.offering(three, "blue")
    agents.offering(three, "red")
    link(two, three)
    offers(two)
    link(one, two)
    offers(one)
    return one, two, three


JOBS = {  # what each asks for → the queue at which it can run; None: nowhere
    "nothing but blue": ({"requirements": 'TARGET.Model == "blue"'}, "blue"),
    "the other architecture": ({"requirements": 'TARGET.Arch == "aarch64"'}, "red"),
    "a capability": ({"requirements": "TARGET.HasThing"}, "red"),
    "no capability": ({"requirements": "TARGET.HasThing =!= true"}, "blue"),
    "what is nowhere": ({"requirements": 'TARGET.Arch == "vax"'}, None),
    "a number of each place": ({"requirements": "TARGET.Level >= 3"}, "blue"),
    "too high a number": ({"requirements": "TARGET.Level > 3"}, None),
    "an attribute of its own": ({"requirements": "TARGET.Model == MY.Wanted", "+Wanted": '"red"'}, "red"),
    "what the place refuses": ({"requirements": 'TARGET.Model == "blue"', "+NotBlue": "true"}, None),
    "what one place refuses": ({"requirements": "true", "+NotBlue": "true"}, "red"),
    "processors of one machine": ({"requirements": "true", "request_cpus": "6"}, "red"),
    "processors and memory of two machines": ({"requirements": "true", "request_cpus": "6", "request_memory": "3000"}, None),
    "memory of one machine": ({"requirements": "true", "request_memory": "3000"}, "blue"),
    "units": ({"requirements": "true", "request_Licence": "2"}, "blue"),
    "more units than there are": ({"requirements": "true", "request_Licence": "3"}, None),
    "rank": ({"requirements": "true", "rank": 'TARGET.Model == "red"'}, "red"),
    "the other rank": ({"requirements": "true", "rank": 'TARGET.Model == "blue"'}, "blue"),
    "a macro": ({"requirements": 'TARGET.Model == "$(Kind)"', "queue": "queue Kind in (blue)"}, "blue"),
}


@pytest.mark.parametrize("name", JOBS)
def test_it_matches_through_hops_as_it_does_there(row, name):
    """A quote says the same at each server, and where it says yes the job runs at the same place."""
    words, place = JOBS[name]
    words = {**words, "requirements": f"({words['requirements']}) && TARGET.Arch isnt undefined"}  # else this machine's is added
    text = sh("echo $DROVER_QUEUE", output="place", **words)
    for one in row:
        one.write("job.sub", text)

        def right(one=one):
            """the quote says what it says where the places are"""
            return (one.json("quote", "job.sub")["start_ms"] is not None) == (place is not None)

        wait_until(right)
    if place is None:
        return
    for one in row:
        one.wait(one.submit(text))
        assert one.read("place").strip() == place


def test_the_far_pool_is_offered_not_this_machine(row):
    one, two, three = row
    there = {q["name"]: q for agent in three.agents("connected") for q in agent["queues"]}
    for near in (one, two):
        found = offers(near)
        assert set(found) == {"east", "east+2"}
        ads = {q["ad"]["Model"]: q["ad"] for q in found.values()}
        assert ads["red"]["Arch"] == "aarch64" and ads["blue"]["Arch"] == there["blue"]["ad"]["Arch"]
        assert (ads["red"]["TotalCpus"], ads["blue"]["TotalCpus"]) == (8, 4)
        assert ads["blue"]["TotalLicence"] == 2 and "Licence" not in ads["red"] and "Level" not in ads["red"]
        assert all(ad["Runner"] == "drover" and ad["AgentName"] == "n1" and ad["QueueName"] == "east" for ad in ads.values())


def test_what_goes_along_and_what_stays(row):
    """Priority, rank, policies and attributes of its own; not what each server would count or tell once more."""
    one, two, three = row
    kept = int(one.cli("reserve", "--where", 'Model == "red" && Runner == "drover"', "--cpus", "1", "--for", "1h"))
    request = one.submit(sh("sleep 600", reservation=kept, requirements='TARGET.Model == "red" && TARGET.Arch != "" && TARGET.Runner == "drover"', priority="7", rank="TARGET.Level",
                            periodic_hold="RemoteWallClockTime > 100000", periodic_hold_reason='"too long"', max_retries="3",
                            periodic_remove="NumJobStarts > 40", concurrency_limits="far_limit", notification="never",
                            on_exit_hold="ExitCode == 9", allowed_job_duration="90000", **{"+Colour": '"$(Process) $$"', "+Twice": "Thrice * 2", "+BankQuote": "7"}))
    for near in (two, three):
        job = wait_until(lambda near=near: far_jobs(near, "staging", "running"))[-1]
        ad = near.job(f"{job}.0")["ad"]
        assert (ad["JobPrio"], ad["Colour"], ad["PeriodicHoldReason"], ad["AllowedJobDuration"]) == (7, "0 $$", "too long", 90000)
        assert all(name in ad for name in ("Rank", "PeriodicHold", "PeriodicRemove", "Twice"))
        for name in ("OnExitRemove", "OnExitHold", "JobMaxRetries", "ConcurrencyLimits", "JobNotification", "ReservationId", "BankQuote"):
            assert name not in ad or ad[name] in (True, False), name
        assert 'TARGET.Model == "red"' in json.dumps(ad["Requirements"]).replace('\\"', '"').replace("\\", "")
        assert "Runner" not in json.dumps(ad["DroverOwnRequirements"])
    one.cli("rm", str(request))
    one.cli("reserve", "end", str(kept))
    wait_until(lambda: not far_jobs(three) and not far_jobs(two))


def test_retries_are_counted_at_home_only(row):
    one, _, three = row
    before = len(three.history())
    request = one.submit(sh("exit 1", requirements="true", max_retries="2"))
    one.wait(request, code=1)
    assert one.history(request)[0]["starts"] == 3 and len(three.history()) == before + 3


def test_a_policy_is_evaluated_where_it_runs(row):
    """Held there by what only its place can know; the reason comes home."""
    one, _, three = row
    request = one.submit(sh("sleep 600", requirements="true", periodic_hold='JobStatus == 2 && regexp("^(blue|red)@", RemoteHost)',
                            periodic_hold_reason='strcat("held at ", RemoteHost)'))
    job = one.wait_state(f"{request}.0", "held")
    assert "held at blue@" in job["hold_reason"], job["hold_reason"]
    one.cli("rm", str(request))
    wait_until(lambda: not far_jobs(three))


def test_kinds_come_and_go(request, build, instance):
    """A kind that is there no more is offered no more; one that comes is."""
    one, two = instance, far(request, build)
    one.server()
    runs(two)
    link(one, two)
    one.write("red.sub", sh("echo $DROVER_QUEUE", requirements='TARGET.Model == "red" && TARGET.Arch != ""', output="place"))
    assert one.json("quote", "red.sub")["start_ms"] is None
    red = agents.start(two, RED, name="r9")
    wait_until(lambda: one.json("quote", "red.sub")["start_ms"] is not None)
    one.wait(one.submit(one.read("red.sub")))
    assert one.read("place") == "red\n"
    red.stop()
    wait_until(lambda: one.json("quote", "red.sub")["start_ms"] is None)
    text = "\n".join(one.api("GET", f"/v1/jobs/{one.submit(one.read('red.sub'))}.0/why")["text"])
    assert "Model" in text, text


def shown(one, name, value):
    """Waits until a queue at this server that takes jobs shows this."""
    wait_until(lambda: any(q["ad"] and q["ad"].get(name) == value
                           for agent in one.agents("connected") for q in agent["queues"] if q["offer"]))


def test_a_container_behind_two_hops(request, build, instance):
    """The image is the last place's to fetch and run; inputs, outputs and the folder's name in the container are as at home."""
    one, two, three = instance, far(request, build), far(request, build)
    with engine_with_image(request.config.drover_tmp) as engine:
        three.env.update(engine.env)
        for each in (one, two, three):
            each.server()
        agents.start(three, "kill_grace: 2s\nqueues:\n  - name: here\n    cpus: 2\n    container: {" + engine.settings
                     + ", network: none, images: ['localhost/*']}\n")
        shown(three, "ContainerEngine", "podman")
        link(two, three)
        shown(two, "ContainerEngine", "podman")
        link(one, two)
        shown(one, "ContainerEngine", "podman")
        one.write("in.txt", "brought along\n")
        one.write("prog.sh", "#!/bin/sh\ncat in.txt; pwd; echo new >new.txt\n", 0o755)
        job = one.submit(f"universe = container\ncontainer_image = docker://{IMAGE}\ncontainer_target_dir = /data\nexecutable = prog.sh\n"
                         "transfer_input_files = in.txt\noutput = said\nerror = err\nqueue\n")
        one.wait(job)
        assert one.read("said") == "brought along\n/data\n" and one.read("new.txt") == "new\n"
        refused = one.submit("universe = container\ncontainer_image = docker://example.org/other\nexecutable = /bin/true\n"
                             "transfer_executable = false\nqueue\n")
        wait_until(lambda: any("ContainerImage" in line for line in one.api("GET", f"/v1/jobs/{refused}.0/why")["text"]))
        assert not far_jobs(two)


def test_an_environment_behind_two_hops(request, build, instance):
    """It is made of the file where the job runs, and nowhere on the way."""
    one, two, three = instance, far(request, build), far(request, build)
    for each in (one, two, three):
        each.server()
    wheel(f"{three.base}/wheels", "hopping", "1.0", "WORD = 'from far'\n")
    makes_environments(three)
    shown(three, "HasPythonEnv", True)
    link(two, three)
    shown(two, "HasPythonEnv", True)
    link(one, two)
    shown(one, "HasPythonEnv", True)
    one.write("req.txt", "hopping==1.0\n")
    one.wait(one.submit(sh("python -c 'import hopping; print(hopping.WORD)'", python_env="req.txt", output="said")))
    assert one.read("said") == "from far\n"


def test_why_goes_through_hops(row):
    """Who asks at the first server is told what the last one says; or, when the first one has heard first that the last is full, what it knows of it."""
    one, _, three = row
    three.cli("submit", three.write("full.sub", sh("sleep 600", request_cpus="8", requirements='TARGET.Model == "red" && TARGET.Arch != ""')))
    three.wait_state(f"{(full := far_jobs(three)[-1])}.0", "running")
    waits = one.submit(sh("true", request_cpus="8", requirements='TARGET.Model == "red" && TARGET.Arch != ""'))

    def told():
        """the reason is told at the first"""
        text = "\n".join(one.api("GET", f"/v1/jobs/{waits}.0/why")["text"])
        handed_on = "It waits there: " in text and "waits for resources" in text
        return handed_on or "1 queue can run it when other jobs there have ended" in text

    wait_until(told)
    three.cli("rm", str(full))
    one.wait(waits)
