"""Checkpoints of jobs that are handed on, over three servers: whoever vacates a job has one made, it goes on from that, and what was
made comes to the servers before."""
import os
import types

import pytest

import agents
from drover import Failed, wait_until
from hops import PROCESSES, far, far_jobs, hop_queue, runs
from test_checkpoint import counter, kinds, starts


@pytest.fixture
def row(request, build, instance):
    """drover -> drover -> drover -> processes"""
    servers = [instance, far(request, build), far(request, build)]
    config = os.path.join(instance.base, "droverd.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("lease: 6s\n" if request.function is test_all_behind_the_first_server_is_lost else "")
    servers[0].server("--config", config)
    servers[1].server()
    runs(servers[2])
    for server, to, queue in ((servers[1], servers[2], "west"), (servers[0], servers[1], "east")):
        server.config = "kill_grace: 1s\nqueues:\n" + hop_queue(queue, to)
        server.agent = agents.start(server, server.config)
        agents.offering(server)
    return types.SimpleNamespace(one=servers[0], two=servers[1], three=servers[2], servers=servers)


def running(one):
    """The one job that the server has, when it runs."""
    return f"{wait_until(lambda: far_jobs(one, 'running'))[0]}.0"


def at(row, number):
    """The job has counted so far, and all know that it runs; what it is called at each server."""
    one = row.one
    wait_until(lambda: one.exists("at") and one.read("at") == f"{number}\n")
    return [running(server) for server in row.servers]


def made(row, jobs):
    """How many checkpoints each server has kept."""
    return [kinds(server, job).count("checkpointed") for server, job in zip(row.servers, jobs)]


def kept(one, job):
    """The files of its checkpoint at the server."""
    return {f["Name"]: one.call("GET", f"/v1/jobs/{job}/files/{f['Name']}")[1].decode() for f in one.job(job)["ad"].get("DroverCheckpoint", [])}


def begun_again(row, number, times):
    """The program has begun so often, the last time from there."""
    try:
        wait_until(lambda: len(starts(row.one)) >= times)
    except Failed:
        raise Failed(f"not begun {times} times: {starts(row.one)}; {[[e['event'] for e in s.api('GET', '/v1/events?after=0')['events']] for s in row.servers]}") from None
    assert starts(row.one)[-1] == number and len(starts(row.one)) == times


def ends(row, request, output):
    row.one.write("go", "")
    row.one.wait(request)
    assert row.one.read("out") == output
    assert row.one.history(request)[0]["starts"] == 1
    for server, queue in ((row.one, "east"), (row.two, "west")):
        wait_until(lambda folder=f"{server.base}/n1/hop.{queue}": not os.listdir(folder))
    wait_until(lambda: not far_jobs(row.two) and not far_jobs(row.three))


@pytest.mark.parametrize("files", ["named", "all"])
@pytest.mark.parametrize("hop", [1, 2])
def test_vacated_at_a_hop(row, hop, files):
    """The server where it is vacated keeps the checkpoint, and the next attempt there begins with it. The servers before get it, too."""
    request = counter(row.one, pause=7, most=9, kill_sig="SIGUSR1", transfer_checkpoint_files="state" if files == "named" else "")
    jobs = at(row, 7)
    row.servers[hop].cli("vacate", jobs[hop])
    begun_again(row, 7, 2)
    wait_until(lambda: made(row, jobs) == [int(n <= hop) for n in range(3)])
    assert row.one.job(jobs[0])["state"] == "running"
    ends(row, request, "from 0\nfrom 7\ndone\n")


def test_what_it_makes_by_itself_goes_home(row):
    """Also when its outputs are not there yet; and from whatever was made last it goes on."""
    request = counter(row.one, often="yes", pause=7, most=12, kill_sig="SIGUSR1", transfer_output_files="end", last="echo done | tee end")
    jobs = at(row, 7)
    assert starts(row.one) == [0, 5] and made(row, jobs) == [1, 0, 0] and kept(row.one, jobs[0]) == {"state": "5\n", ".drover_out.0": "from 0\n"}
    row.three.cli("vacate", jobs[2])
    begun_again(row, 7, 3)
    row.two.cli("vacate", at(row, 8)[1])
    begun_again(row, 8, 4)
    row.three.cli("vacate", at(row, 9)[2])
    begun_again(row, 10, 6)
    at(row, 11)
    assert starts(row.one) == [0, 5, 7, 8, 9, 10]
    row.one.write("go", "")
    row.one.wait(request)
    assert row.one.read("out") == "from 0\nfrom 5\nfrom 7\nfrom 8\nfrom 9\nfrom 10\ndone\n" and row.one.read("end") == "done\n"


def test_held_and_released_at_a_hop(row):
    request = counter(row.one, pause=6, most=8, kill_sig="SIGUSR1")
    jobs = at(row, 6)
    row.three.cli("hold", jobs[2], "--reason", "for a while")
    row.three.wait_state(jobs[2], "held")
    assert starts(row.one) == [0]
    for server, job in zip(row.servers, jobs):
        wait_until(lambda s=server, j=job: kept(s, j) == {"state": "6\n", ".drover_out.0": "from 0\n"})
    path = wait_until(lambda: (p := row.one.json("path", jobs[0])) and p["summary"] == "held" and p)
    assert [h["state"] for h in path["hops"]] == ["running", "running", "held"]
    row.three.cli("release", jobs[2])
    begun_again(row, 6, 2)
    ends(row, request, "from 0\nfrom 6\ndone\n")


def test_outputs_kept_when_it_is_vacated(row):
    """ON_EXIT_OR_EVICT: what it had written is there again, however it ended."""
    one = row.one
    request = one.submit("executable = /bin/sh\narguments = \"-c '[ -e half ] && cat half && exit 0; echo first >half; "
                         f"touch {one.work}/there; exec sleep 600'\"\noutput = out\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\nqueue\n")
    wait_until(lambda: one.exists("there"))
    row.three.cli("vacate", [running(server) for server in row.servers][2])
    one.wait(request)
    assert one.read("out") == "first\n" and one.read("half") == "first\n"


def test_the_wrong_exit_code(row):
    """It has made none: it begins again from the last one that it brought along."""
    request = counter(row.one, pause=6, most=8, kill_sig="SIGUSR1", code=86)
    jobs = at(row, 6)
    row.three.cli("vacate", jobs[2])
    begun_again(row, 0, 2)
    assert made(row, jobs) == [0, 0, 0]
    ends(row, request, "from 0\ndone\n")


LARGE = "head -c 150M /dev/zero >large;"


def sending(one):
    """Waits until the checkpoint is on its way to the server, a part of it there."""
    folder = os.path.join(one.dir, "spool", "uploads")

    def some_is_there():
        try:
            return [f for f in os.listdir(folder) if os.path.getsize(os.path.join(folder, f)) > 1 << 20]
        except FileNotFoundError:  # whole just now
            return None

    wait_until(some_is_there, every=0.01)


@pytest.mark.parametrize("hop", [pytest.param(1, marks=pytest.mark.long), 2])
@pytest.mark.parametrize("victim", ["agent", "server"])
def test_killed_while_it_is_delivered(row, hop, victim):
    """kill -9 of the far agent, or of the far server: it goes on from the same checkpoint."""
    request = counter(row.one, pause=7, most=9, kill_sig="SIGUSR1", and_then=LARGE, transfer_checkpoint_files="state, large", request_memory="256 MB")
    jobs = at(row, 7)
    there = row.servers[hop]
    there.cli("vacate", jobs[hop])
    sending(there)
    if victim == "agent":
        agent = there.runner if hop == 2 else there.agent
        agent.kill()
        agents.start(there, PROCESSES if hop == 2 else there.config, name="r1" if hop == 2 else "n1")
    else:
        there.kill_server()
        there.server()
    begun_again(row, 7, 2)
    ends(row, request, "from 0\nfrom 7\ndone\n")


def test_removed_while_it_is_delivered(row):
    request = counter(row.one, pause=7, most=9, kill_sig="SIGUSR1", and_then=LARGE, transfer_checkpoint_files="state, large", request_memory="256 MB")
    jobs = at(row, 7)
    row.three.cli("vacate", jobs[2])
    sending(row.three)
    row.one.cli("rm", str(request))
    row.one.wait_state(f"{request}.0", "removed")
    wait_until(lambda: not far_jobs(row.two) and not far_jobs(row.three))
    assert starts(row.one) == [0]
    wait_until(lambda: not os.listdir(f"{row.three.base}/r1/jobs"))


def test_the_far_server_restarted_with_a_checkpoint(row):
    """While the job waits there, with its place gone."""
    request = counter(row.one, pause=7, most=9, kill_sig="SIGUSR1")
    jobs = at(row, 7)
    row.three.cli("hold", jobs[2])
    row.three.wait_state(jobs[2], "held")
    row.three.runner.kill()
    row.three.kill_server()
    row.three.server()
    row.three.cli("release", jobs[2])
    row.three.wait_state(jobs[2], "idle")
    row.three.runner = agents.start(row.three, PROCESSES, name="r2")
    begun_again(row, 7, 2)
    ends(row, request, "from 0\nfrom 7\ndone\n")


def test_all_behind_the_first_server_is_lost(row):
    """It goes on elsewhere from the checkpoint that was made at the far end, its output behind what was there."""
    counter(row.one, often="yes", pause=7, most=20, kill_sig="SIGUSR1")
    jobs = at(row, 7)
    row.three.cli("vacate", jobs[2])
    begun_again(row, 7, 3)
    at(row, 8)
    wait_until(lambda: kept(row.one, jobs[0]).get("state") == "7\n")
    assert kept(row.one, jobs[0])[".drover_out.0"] == "from 0\nfrom 5\n"
    row.one.agent.kill()
    row.two.stop()
    row.three.stop()
    agents.start(row.one, PROCESSES, name="r1")
    begun_again(row, 7, 4)
    row.one.write("go", "")
    row.one.wait(1)
    assert starts(row.one) == [0, 5, 7, 7, 10, 15, 20]
    assert row.one.read("out") == "".join(f"from {n}\n" for n in (0, 5, 7, 10, 15, 20)) + "done\n"


@pytest.mark.parametrize("hop", [0, 1])
def test_vacated_while_it_waits_further_on(row, hop):
    """Nobody there can make one; the last that was made is here."""
    request = counter(row.one, pause=6, most=8, kill_sig="SIGUSR1", job_max_vacate_time=1)
    jobs = at(row, 6)
    row.three.cli("hold", jobs[2])
    wait_until(lambda: made(row, jobs) == [1, 1, 1])
    row.servers[hop].cli("vacate", jobs[hop])
    begun_again(row, 6, 2)
    row.one.write("go", "")
    row.one.wait(request)
    assert row.one.read("out") == "from 0\nfrom 6\ndone\n"


def test_agents_on_the_way_are_killed_while_it_is_brought(row):
    """What was on its way to them is brought again."""
    request = counter(row.one, pause=7, most=9, kill_sig="SIGUSR1", and_then=LARGE, transfer_checkpoint_files="state, large", request_memory="256 MB")
    jobs = at(row, 7)
    row.three.cli("hold", jobs[2])
    row.three.wait_state(jobs[2], "held")
    for server in (row.two, row.one):
        sending(server)
        server.agent.kill()
        server.agent = agents.start(server, server.config)
    wait_until(lambda: all(one.job(job)["ad"].get("DroverCheckpoint", []) for one, job in zip(row.servers, jobs)))
    row.three.cli("release", jobs[2])
    begun_again(row, 7, 2)
    ends(row, request, "from 0\nfrom 7\ndone\n")


def test_the_job_ends_while_it_is_brought(row):
    """Its outputs are what is wanted then."""
    request = counter(row.one, pause=7, most=9, kill_sig="SIGUSR1", and_then=LARGE, transfer_checkpoint_files="state, large", request_memory="256 MB")
    row.three.cli("vacate", at(row, 7)[2])
    sending(row.two)
    ends(row, request, "from 0\nfrom 7\ndone\n")
