"""MPI programs over several agents: drover-launch takes the place of ssh, and starts MPI's daemons on the job's other nodes."""
import os
import shutil

import pytest

import agents
from drover import Daemon, sh, wait_until
from netns import Net
from test_chirp import Peer
from test_parallel import program
from users import ONE, Site

PORT = 7470
# Node 0 has the launcher; the others wait until it has ended.
SCRIPT = "[ $DROVER_NODE = 0 ] || exec sleep 3600; "


def pool(instance, count, cpus=2):
    instance.server()
    found = [agents.start(instance, f"cpus: {cpus}\nkill_grace: 1s\n", f"n{i}") for i in range(count)]
    wait_until(lambda: sum(q["offer"] is not None and q["free"]["cpus"] == cpus for a in instance.agents("connected") for q in a["queues"]) == count)
    return found


def parallel(script, count=2, cpus=2, **more):
    """A job of so many nodes; node 0's streams are *out* and *err*."""
    return sh(SCRIPT + script, universe="parallel", machine_count=count, request_cpus=cpus, request_memory="64MB", error="err.$(Node)",
              output="out.$(Node)", **more)


def ran(instance, text):
    request = instance.submit(text)
    instance.wait(request, code=None)
    instance.cli("get", str(request))
    assert instance.job(f"{request}.0")["exit_code"] == 0, instance.read("out.0") + instance.read("err.0")
    return instance.read("out.0")


ROOT = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
OPENMPI = f"{ROOT} mpirun.openmpi ./sum.openmpi"
MPICH = "mpiexec.mpich -wdir /proc/self/cwd ./sum.mpich"


@pytest.fixture
def machines(instance):
    """Two agents on machines of their own, with names of their own, on one network with the server."""
    net = Net()
    address = net.add("srv")

    def start(host, name, *args):
        one = Daemon(name, [*net.on(host), instance.program(name), *args], f"{instance.base}/{host}.log", instance.env, instance.base)
        instance.daemons.append(one)
        return one

    try:
        for host in ("alpha", "beta"):
            net.add(host)
        server = start("srv", "droverd", "--dir", instance.dir, "--listen", f"{address}:{PORT}", "--user", "root")
        wait_until(lambda: os.path.exists(f"{instance.dir}/server.json") and instance.server_pid() == server.pid)
        for name in ("alpha", "beta"):
            token = instance.json("token", "agent", "--name", name)["token"]
            start(name, "drover-agent", "--dir", f"{instance.base}/{name}", "--name", name, "--cpus", "2", "--server", f"{address}:{PORT}", "--token", token)
        wait_until(lambda: sum(q["offer"] is not None for a in instance.agents("connected") for q in a["queues"]) == 2)
        yield instance
    finally:
        for daemon in instance.daemons:
            daemon.stop()
        instance.daemons.clear()
        net.remove()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make network namespaces")
@pytest.mark.parametrize("kind, command", [("openmpi", OPENMPI), ("mpich", MPICH)], ids=["openmpi", "mpich"])
def test_mpi_over_two_machines(machines, kind, command):
    """Its own launcher finds the nodes and starts a daemon on each, without any ssh; the inputs were brought to both."""
    program(machines, kind)
    said = ran(machines, parallel(command, should_transfer_files="YES", transfer_input_files=f"sum.{kind}")).splitlines()
    assert len(said) == 4 and all(line.endswith("sum 6") and " of 4 " in line for line in said), said
    assert sorted(line.split(" on ")[1].split(":")[0] for line in said) == ["alpha", "alpha", "beta", "beta"], said
    with open(f"{machines.base}/srv.log", encoding="utf-8") as f:
        assert "starts a program on another" in f.read()
    assert {a["hostname"] for a in machines.agents("connected")} == {"alpha", "beta"}


@pytest.mark.parametrize("kind, command", [("openmpi", OPENMPI), ("mpich", MPICH)], ids=["openmpi", "mpich"])
def test_mpi_with_two_nodes_on_one_machine(instance, kind, command):
    """Each node keeps its own processors and folder; no two of them are taken for one."""
    pool(instance, 2)
    program(instance, kind)
    said = ran(instance, parallel(command, should_transfer_files="YES", transfer_input_files=f"sum.{kind}")).splitlines()
    assert len(said) == 4 and all(line.endswith("sum 6") for line in said), said


WORDS = r"""
other=$(sed -n 3p $DROVER_HOSTS)
$DROVER_LAUNCH -x -l nobody $other 'echo $DROVER_NODE "a  b"; echo wrong >&2; pwd; exit 7'; echo $?
$DROVER_LAUNCH $other kill -9 '$$'; echo $?
$DROVER_LAUNCH nowhere true; echo $?
$DROVER_LAUNCH $(head -1 $DROVER_HOSTS) pwd; pwd
"""


def test_it_behaves_like_ssh(instance):
    """Words are joined for a shell there, streams and exit code come back."""
    pool(instance, 2)
    said = ran(instance, parallel(WORDS.strip().replace("\n", "; "), should_transfer_files="YES")).splitlines()
    assert said[0] == "1 a  b" and said[2] == "7" and said[3] == "137" and said[4] == "255"
    assert said[5] == said[6] != said[1] and said[1].startswith(instance.base), said
    errors = instance.read("err.0")
    assert "wrong\n" in errors and "the job has no node 'nowhere'" in errors


def test_the_server_goes_away_meanwhile(instance):
    """What runs on the other node goes on, and its end is told when the server is back."""
    pool(instance, 2)
    go = f"{instance.work}/go"
    request = instance.submit(parallel(f"$DROVER_LAUNCH $(sed -n 3p $DROVER_HOSTS) 'echo begun; until [ -e {go} ]; do sleep 0.1; done; echo done; exit 3'; echo $?"))
    wait_until(lambda: "begun" in instance.cli("tail", f"{request}.0", code=None).out)
    instance.kill_server()
    instance.server()
    instance.write("go", "")
    instance.wait(request)
    assert instance.read("out.0") == "begun\ndone\n3\n"


def test_agents_are_killed_meanwhile(instance):
    """Those of both nodes: what was started goes on, and its end is told, also when it ended without an agent."""
    found = pool(instance, 2)
    script = f"$DROVER_LAUNCH $(sed -n 3p $DROVER_HOSTS) 'echo $$ >{instance.work}/pid; echo begun; until [ -e {instance.work}/go ]; do sleep 0.1; done; echo done; exit 3'; echo $?"
    request = instance.submit(parallel(script))
    wait_until(lambda: "begun" in instance.cli("tail", f"{request}.0", code=None).out)  # the launcher has had its answer
    for one in found:
        one.kill()
    agents.start(instance, "cpus: 2\nkill_grace: 1s\n", "n0")
    wait_until(lambda: instance.agents("connected"))
    instance.write("go", "")
    wait_until(lambda: not os.path.exists(f"/proc/{int(instance.read('pid'))}"))
    agents.start(instance, "cpus: 2\nkill_grace: 1s\n", "n1")
    instance.wait(request)
    wait_until(lambda: instance.exists("out.0"))
    assert instance.read("out.0") == "begun\ndone\n3\n"
    assert instance.job(f"{request}.0")["starts"] == 1


def test_who_may_start_what(instance):
    """Only programs of a parallel job's nodes, on its own nodes, while these run; and only what was started so is told of."""
    pool(instance, 2)
    request = instance.submit(sh(f"echo $DROVER_CHIRP >{instance.work}/socket.$0; exec sleep 3600", universe="parallel", machine_count=2, request_cpus=2,
                                 want_io_proxy="false",
                                 request_memory="10MB").replace("sleep 3600'", "sleep 3600' $(Node)"))
    wait_until(lambda: instance.written("socket.0") and instance.written("socket.1"))
    peer = Peer(instance.read("socket.0").strip())
    launch = {"op": "launch", "node": 1, "data": "dHJ1ZQA="}  # true
    number = wait_until(lambda: peer.ask(launch).get("command"))
    wait_until(lambda: peer.ask({"op": "launched", "node": 1, "command": number}).get("over"))
    for call, words in (({**launch, "node": 2}, "no node 2"), ({**launch, "node": 4294967295}, "no node"), ({**launch, "data": ""}, "no command"),
                        ({**launch, "data": "dHJ1ZQ=="}, "no command"), ({"op": "launched", "node": 1, "command": number & ~1}, "no number"),
                        ({"op": "launched", "node": 1, "command": number ^ 2}, "does not know this program"), ({"op": "launched", "node": 0, "command": number}, "does not know"),
                        ({"op": "get_attribute", "name": "Cmd"}, "want_io_proxy"), ({"op": "read", "name": "x", "length": 1}, "want_io_proxy")):
        said = peer.ask(call)
        assert said.get("error") and words in said["text"], (call, said)
    # A command of the owner beside the node is not told of, whatever its number.
    own = instance.api("POST", f"/v1/jobs/{request}.1/exec", {"argv": ["echo", "secret"]})["exec"]
    assert "no number" in peer.ask({"op": "launched", "node": 1, "command": own})["text"]
    peer.close()
    instance.cli("rm", str(request))
    single = instance.submit(sh(f"echo $DROVER_CHIRP $DROVER_HOSTS >{instance.work}/single; exec sleep 3600", want_io_proxy="true"))
    wait_until(lambda: instance.written("single"))
    peer = Peer(instance.read("single").strip())  # and no list of nodes
    assert "universe = parallel" in peer.ask({**launch, "node": 0})["text"]
    peer.close()
    instance.cli("rm", str(single))
    sets = instance.submit(sh(f"echo ${{DROVER_CHIRP-none}} >{instance.work}/sets.$0", queue="queue 2", gang_size=2).replace("sets.$0'", "sets.$0' $(Node)"))
    instance.wait(sets)
    assert instance.read("sets.0") == "none\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_as_the_jobs_user(instance):
    """Both nodes at root's agent: what one starts on the other is the job's user's, and MPI works so."""
    site = Site(instance)
    site.agent(more="cpus: 4\n")
    shutil.copy(program(instance, "openmpi"), site.home(ONE))
    said = os.path.join(site.home(ONE), "said")
    script = SCRIPT + f"exec >{said} 2>&1; $DROVER_LAUNCH $(sed -n 3p $DROVER_HOSTS) \"id -u; pwd\"; mpirun.openmpi ./sum.openmpi"
    request = site.submit(ONE, script, jobs=2, JobUniverse=11, GangSize=2, RequestCpus=2, ShouldTransferFiles="NO")
    instance.wait(request, code=None)
    said = site.text(ONE, "said").splitlines()
    assert said[:2] == [str(ONE.pw_uid), site.home(ONE)] and sum(" of 4 on " in line and line.endswith(": sum 6") for line in said) == 4, said
