"""Jobs that start together: over several agents, with agents and the server killed in between."""
import os
import signal

import agents
from drover import of_process, sh, wait_until

# Each touches its marker and waits until it sees those of all others: alone it would wait for ever.
TOGETHER = ('touch {dir}/here.$0; for i in 0 1 2; do while [ ! -e {dir}/here.$i ]; do sleep 0.02; done; done; '
            'echo "$_CONDOR_PROCNO/$_CONDOR_NPROCS $DROVER_GANG_MACHINES" >node.$0')


def pool(instance, *groups, cpus=1):
    """An agent with its own processors for each group, n0 to nN."""
    instance.server()
    found = [agents.start(instance, f"cpus: {cpus}\nkill_grace: 1s\nattributes: 'Group = \"{g}\";'\n", f"n{i}")
             for i, g in enumerate(groups)]
    wait_until(lambda: sum(q["offer"] is not None and q["free"]["cpus"] == cpus
                           for a in instance.agents("connected") for q in a["queues"]) == len(groups))
    return found


def together(instance, queue="queue 3", **more):
    os.makedirs(os.path.join(instance.work, "marks"), exist_ok=True)
    script = TOGETHER.replace("{dir}", os.path.join(instance.work, "marks"))
    text = sh(script, queue=queue, request_cpus=1, request_memory="10MB", transfer_output_files="node.$(Node)",
              **{"gang_size": 3, **more})
    return text.replace("node.$0'", "node.$0' $(Node)")


def states(instance, request):
    return sorted(j["state"] for j in instance.jobs(request))


def places(instance, request):
    return {j["agent"] for j in instance.history(request)}


def test_a_set_over_a_group_starts_together(instance):
    pool(instance, "red", "blue", "blue", "blue")
    request = instance.run(together(instance, gang_within="group"))
    assert places(instance, request) == {"n1", "n2", "n3"}
    machine = instance.read("node.0").split()[1].split(",")[0]
    assert instance.read("node.2") == f"2/3 {machine},{machine},{machine}\n"
    shown = instance.cli("show", "--ad", f"{request}.1").out
    assert f'DroverGang = "{request}.0-2"' in shown and "DroverNode = 1" in shown, shown
    assert [e["event"] for e in instance.events(f"{request}.1")].count("go") == 1


def test_the_parallel_universe(instance):
    """machine_count makes as many jobs of each that is queued; when the first has ended so has its set."""
    pool(instance, "a", cpus=4)
    done = os.path.join(instance.work, "done")
    script = f'echo $0 #pArAlLeLnOdE# >node.$0; [ $0 = 0 ] || exec sleep 600; while [ ! -e {done} ]; do sleep 0.02; done'
    text = sh(script, queue="queue 2", universe="parallel", machine_count=2, request_cpus=1, request_memory="10MB",
              transfer_output_files="node.$(Node)")
    text = text.replace("sleep 0.02; done'", "sleep 0.02; done' $(Node)")
    request = instance.submit(text)
    wait_until(lambda: states(instance, request) == ["running"] * 4)
    instance.write("done", "")
    instance.wait(request)
    rows = {r["id"].split(".")[1]: r for r in instance.history(request)}
    assert {r["state"] for r in rows.values()} == {"completed"}
    assert instance.read("node.0") == "0 0\n"
    wait_until(lambda: instance.exists("node.1"))  # what was stopped has left its outputs, too
    assert instance.read("node.1") == "1 1\n" and "succeeded" in instance.cli("show", f"{request}.1")


def test_a_set_that_cannot_be_is_explained_and_blocks_nothing(instance):
    pool(instance, "red", "blue", "blue")
    request = instance.submit(together(instance, gang_within="group"))
    why = instance.json("why", f"{request}.0")
    assert why["gang"]["state"] == "waits" and why["gang"]["needs"] == 3 and why["gang"]["node"] == 0
    assert (why["gang"]["places"], why["gang"]["places_ever"], why["gang"]["where"]) == (2, 2, "blue")
    out = instance.cli("why", f"{request}.0").out
    assert "needs 3 places at once within one group (queues with the same Group); the most there is now is 2 at blue" in out
    instance.run(sh("exit 0", request_cpus=1))
    assert states(instance, request) == ["idle"] * 3
    assert instance.cli("hold", f"{request}.1").out  # one stands for all
    assert states(instance, request) == ["held"] * 3
    instance.cli("release", f"{request}.2")
    assert states(instance, request) == ["idle"] * 3
    agents.start(instance, "cpus: 1\nattributes: 'Group = \"blue\";'\n", "n3")
    instance.wait(request)
    refused = instance.cli("submit", "-", stdin=together(instance, queue="queue 4"), code=None)
    assert refused.code != 0 and "4 jobs are no gangs of 3" in refused.err, refused.err


def frozen(instance, found):
    """A set of three is matched, and the last agent does not answer."""
    os.kill(found[2].process.pid, signal.SIGSTOP)
    request = instance.submit(together(instance))
    wait_until(lambda: sorted(states(instance, request)) == ["matched", "staging", "staging"])
    assert "start when all are accepted" in instance.cli("why", f"{request}.0").out
    return request


def test_an_agent_is_killed_before_go(instance):
    found = pool(instance, "a", "a", "a")
    request = frozen(instance, found)
    found[2].kill()
    wait_until(lambda: states(instance, request) == ["idle"] * 3)
    assert not os.listdir(os.path.join(instance.work, "marks")), "half a gang ran"
    agents.start(instance, "cpus: 1\n", "n3")
    instance.wait(request)
    assert places(instance, request) == {"n0", "n1", "n3"}
    assert {r["starts"] for r in instance.history(request)} == {1}


def test_the_server_is_killed_before_go(instance):
    found = pool(instance, "a", "a", "a")
    request = frozen(instance, found)
    instance.kill_server()
    os.kill(found[2].process.pid, signal.SIGCONT)
    instance.server()
    instance.wait(request)
    assert {r["starts"] for r in instance.history(request)} == {1} and places(instance, request) == {"n0", "n1", "n2"}


def test_a_member_that_is_lost_takes_the_set_with_it(instance):
    """And all of it runs again."""
    found = pool(instance, "a", "a", "a")
    again = os.path.join(instance.work, "again")
    script = f'echo $0 >>{instance.work}/starts; [ -e {again} ] || exec sleep 600'
    text = sh(script, queue="queue 3", gang_size=3, request_cpus=1, request_memory="10MB")
    request = instance.submit(text.replace("sleep 600'", "sleep 600' $(Node)"))
    wait_until(lambda: instance.exists("starts") and len(instance.read("starts")) == 6)
    instance.write("again", "")
    found[1].kill()
    for pid in instance.pids("drover-shepherd"):
        if os.path.join(instance.base, "n1").encode() in of_process(pid, "cmdline"):
            os.kill(pid, signal.SIGKILL)
    agents.start(instance, "cpus: 1\n", "n1")
    instance.wait(request)
    assert sorted(instance.read("starts").split()) == ["0", "0", "1", "1", "2", "2"]
    assert found[0].running()


def test_a_parallel_job_goes_on_from_its_checkpoint(instance):
    """Asked of one of its nodes: each makes one, and all begin again together from their own."""
    pool(instance, "a", "b")
    script = ("n=$(cat state 2>/dev/null || echo 0); trap 'echo $((n + 1)) >state; exit 85' USR1; echo $n >>{work}/from.$DROVER_NODE; "
              "while [ ! -e {work}/go ]; do sleep 0.05; done").replace("{work}", instance.work)
    request = instance.submit(sh(script, universe="parallel", machine_count=2, request_cpus=1, request_memory="10MB", should_transfer_files="YES",
                                 kill_sig="SIGUSR1", checkpoint_exit_code=85, transfer_checkpoint_files="state"))

    def begun(times):
        """both nodes have begun so often, and run"""
        return all(instance.exists(f"from.{i}") and instance.read(f"from.{i}") == times for i in (0, 1)) and states(instance, request) == ["running"] * 2

    wait_until(lambda: begun("0\n"))
    instance.cli("vacate", f"{request}.1")
    wait_until(lambda: begun("0\n1\n"))
    instance.write("go", "")
    instance.wait(request)
