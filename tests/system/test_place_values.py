"""Values that a job takes from the place where it runs, and jobs for places of a certain kind: two agents whose ads
differ."""
import os

import pytest

from drover import sh, wait_until

SITE = """[Type = "GridSite"; Name = "FermiComputeCluster"; Arch = "Intel-Linux"; gatekeeper_url = "globus.example/lsf";
Load = [QueuedJobs = 42; RunningJobs = 200]; Requirements = (other.Type == "Job" && Load.QueuedJobs < 100);
GoodPeople = {"howard", "harry"}; Rank = member(other.Owner, GoodPeople) * 500]"""


def attributes(ad):
    """The inside of an ad, on one line, as --attributes takes it."""
    return " ".join(ad.strip()[1:-1].split())


@pytest.fixture
def places(instance):
    """Agents named `one` and `two`, in the submitter's filesystem domain."""
    instance.server()
    for name, site in (("one", "first"), ("two", "second")):
        token = instance.json("token", "agent", "--name", name, "--uses", "1")["token"]
        instance.start("drover-agent", "--dir", os.path.join(instance.base, name), "--server",
                       instance.server_json()["agents"][0], "--token", token, "--attributes",
                       f'Site = "{site}"; Score = 7; Line = strcat("for ", TARGET.Owner)')
    wait_until(lambda: len(instance.agents("connected")) == 2)
    return instance


def value(instance, job, name):
    """An attribute of a job's ad as it is now, or was when the job ended."""
    return instance.job(job)["ad"].get(name)


def test_each_place_fills_in_its_own(places):
    """In the program's name, arguments, environment and file names; and the job's ad says what it was."""
    for site in ("first", "second"):
        places.write(f"tool.{site}", f"#!/bin/sh\necho {site} $* $SITE; cat in.{site}\n", 0o755)
        places.write(f"in.{site}", f"input of {site}\n")
    request = places.run("executable = tool.$$(Site)\narguments = \"$$(Score) '$$(Nowhere:not there)' $(Process) "
                         "$$([ifThenElse(TARGET.Score > 6, \"\"many\"\", \"\"few\"\")])\"\n"
                         "environment = \"SITE=$$(Site)$$(DOLLARDOLLAR)\"\ntransfer_input_files = in.$$(Site)\n"
                         "output = out.$(Process).$$(Site)\n"
                         "requirements = TARGET.Site == \"$(where)\"\nrequest_memory = 32M\nrequest_disk = 1M\n"
                         "queue where in (first, second)\n")
    assert places.read("out.0.first") == "first 7 not there 0 many first$$\ninput of first\n"
    assert places.read("out.1.second") == "second 7 not there 1 many second$$\ninput of second\n"
    for member, site in ((0, "first"), (1, "second")):
        assert value(places, f"{request}.{member}", "MATCH_Site") == site
        assert value(places, f"{request}.{member}", "MATCH_Score") == 7
        assert value(places, f"{request}.{member}", "MATCH_EXP_Cmd").endswith(f"tool.{site}")
        assert value(places, f"{request}.{member}", "MATCH_EXP_Environment") == f"SITE={site}$$"


def test_the_server_is_killed_in_between(places):
    """The values are in the log: the running job's ad has them after a restart."""
    request = places.submit(sh("echo $$(Site) $$(Line); until [ -e go ]; do sleep 0.05; done", output="out",
                               should_transfer_files="NO"))
    places.wait_state(f"{request}.0", "running")
    site = value(places, f"{request}.0", "MATCH_Site")
    places.daemons[0].kill()
    places.daemons.pop(0)
    places.server()
    assert value(places, f"{request}.0", "MATCH_Site") == site
    assert value(places, f"{request}.0", "MATCH_Line").startswith("for ")
    places.write("go", "")
    places.wait(request)
    assert places.read("out").split()[0] == site


def test_without_a_value_the_job_is_held_and_never_run(places):
    places.write("ran.sh", "#!/bin/sh\ntouch ran\n", 0o755)
    request = places.submit("executable = ran.sh\narguments = $$(Licence)\nshould_transfer_files = NO\nqueue 3\n")
    job = places.wait_state(f"{request}.2", "held")
    assert "Cannot expand $$ expression (Licence): " in job["hold_reason"]
    assert "release the job" in places.cli("why", f"{request}.0")
    assert not places.exists("ran")


def test_every_candidate_is_sent_to_a_far_place(instance):
    from test_remote import start_remote, token
    from drover import free_port
    instance.port = free_port()
    instance.server("--listen", f"127.0.0.1:{instance.port}")
    start_remote(instance, "far", token(instance, "far"), "--attributes", 'Site = "second"')
    for site in ("first", "second"):
        instance.write(f"tool.{site}", f"#!/bin/sh\necho {site}; ls tool.*\n", 0o755)
    request = instance.run("executable = tool.$$(Site)\noutput = out\ntransfer_output_files =\nrequest_memory = 32M\n"
                           "request_disk = 1M\nqueue\n")
    instance.cli("get", str(request), "-o", "got")
    assert instance.read("got/out").split() == ["second", "tool.second"]
    assert "nothing of its name is known" in instance.cli("submit", "-", stdin="executable = $$(Site)\nqueue\n", code=1).err


def test_the_grid_site_of_the_talk(instance):
    """The site's ad, its nested Load included, and the job whose ad it completes."""
    instance.server()
    token = instance.json("token", "agent", "--name", "fermi", "--uses", "1")["token"]
    instance.start("drover-agent", "--dir", os.path.join(instance.base, "fermi"), "--server",
                   instance.server_json()["agents"][0], "--token", token, "--attributes", attributes(SITE))
    instance.write("find_particle.Intel-Linux", "#!/bin/sh\necho found at $0\n", 0o755)
    request = instance.run("universe = grid\ngrid_type = gt2\nexecutable = find_particle.$$(Arch)\noutput = out\n"
                           "requirements = other.Arch == \"Intel-Linux\" || other.Arch == \"Sparc-Solaris\"\n"
                           "rank = 0 - other.Load.QueuedJobs\nglobusscheduler = $$(gatekeeper_url)\nqueue\n")
    assert "find_particle.Intel-Linux" in instance.read("out")
    assert value(instance, f"{request}.0", "MATCH_EXP_GridResource") == "gt2 globus.example/lsf"


def test_a_container_waits_for_a_place_that_runs_it(places):
    """And one that only says it could is not believed: the agent refuses."""
    request = places.submit("universe = container\ncontainer_image = docker://debian:12\nexecutable = /bin/true\nqueue\n")
    wait_until(lambda: "HasContainer" in places.cli("why", f"{request}.0"))
    assert places.job(f"{request}.0")["state"] == "idle"


def test_a_random_choice_is_the_jobs_own(places):
    """Server and agent, which expand for themselves, and a second look at it agree."""
    request = places.run(sh("echo $RANDOM_INTEGER(1,1000000)", output="rand.$RANDOM_INTEGER(1,1000000)", queue="queue 4"))
    outs = [value(places, f"{request}.{i}", "Out") for i in range(4)]
    args = [value(places, f"{request}.{i}", "Arguments") for i in range(4)]
    assert len(set(outs)) == 4 and len(set(args)) == 4
    for out, arg in zip(outs, args):
        number = places.read(out).strip()
        assert f"echo {number}'" in arg and out != f"rand.{number}"


def test_the_machine_of_the_submit(places):
    request = places.run("universe = local\nexecutable = /bin/pwd\ntransfer_executable = False\noutput = out\nqueue\n")
    assert places.read("out").strip() == os.path.realpath(places.work)
    assert places.history(request)
