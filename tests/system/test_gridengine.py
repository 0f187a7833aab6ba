"""What is particular to queues of a real Grid Engine: a private cell on loopback, whose host is this machine."""
import glob
import os
import re

import pytest

import agents
from drover import sh, wait_until

pytest_plugins = ["batch_systems"]


@pytest.fixture
def one(instance, grid):
    """A server and an agent with a queue of the cell."""
    instance.server()
    instance.agent = agents.start(instance, agents.batch_queues(grid))
    agents.offering(instance, "grid")
    return instance


def until(path):
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


def test_what_is_asked_for(one, grid):
    flag = os.path.join(one.work, "flag")
    request = one.submit(sh(until(flag), request_cpus="3", allowed_execute_duration="120"))
    one.wait_state(f"{request}.0", "running")
    with open(f"{one.base}/n1/jobs/{request}.0.1/.drover_step.0.sh", encoding="utf-8") as f:
        script = f.read()
    for line in ("-pe smp 3", "-l h_rt=150", "-q all.q", "-notify"):
        assert f"#$ {line}\n" in script
    number = grid.jobs()[0][0].split(".")[0]
    shown = grid.tool("qstat", "-j", number)
    assert re.search(r"parallel environment:\s+smp range: 3", shown) and re.search(r"hard resource_list:\s+h_rt=150", shown)
    one.write("flag", "")
    one.wait(request)


@pytest.mark.parametrize("queue, why", [("nope.q", "is there none of that name?"), ("shut.q", "or it is closed")])
def test_a_queue_that_takes_nothing_is_said(instance, grid, queue, why):
    instance.server()
    grid_here = agents.batch_queues(grid).replace("'all.q'", f"'{queue}'")
    agents.start(instance, grid_here)
    closed = wait_until(lambda: [q["closed"] for a in instance.agents("connected") for q in a["queues"] if q["closed"]])[0]
    assert closed.startswith(f"gridengine, queue {queue}: ") and why in closed, closed


def test_what_can_never_run_is_refused(one, grid):
    """Not kept waiting for ever in the system's queue."""
    request = one.submit(sh("true", **{"+GridEngineResources": '"mem_total=90000G"'}))
    one.wait_state(f"{request}.0", "held")
    assert "no suitable queues" in one.job(f"{request}.0")["hold_reason"]
    assert grid.jobs() == []


def test_a_job_in_error_is_told_with_its_reason(one, grid):
    """Eqw: the system has tried, and keeps it for somebody to look at. It is taken back, and its reason told."""
    later = one.submit(sh("true", **{"+GridEngineQueue": '"shut.q"'}))
    wait_until(lambda: grid.jobs())  # it waits there, for the queue is disabled
    grid.tool("qalter", "-wd", "/no/such/folder", grid.jobs()[0][0].split(".")[0])
    grid.tool("qmod", "-e", "shut.q")
    try:
        one.wait_state(f"{later}.0", "held")
    finally:
        grid.tool("qmod", "-d", "shut.q")
    assert "/no/such/folder" in one.job(f"{later}.0")["hold_reason"]
    wait_until(lambda: not grid.jobs())


def test_suspended_in_the_system_too(one, grid):
    request = one.submit(sh(f"while :; do echo x >>{one.work}/beats; sleep 0.05; done"))
    wait_until(lambda: one.exists("beats"))
    one.wait_state(f"{request}.0", "running")
    one.api("POST", "/v1/actions", {"action": "suspend", "ids": [f"{request}.0"]})
    wait_until(lambda: grid.jobs()[0][1] == "s")
    one.api("POST", "/v1/actions", {"action": "resume", "ids": [f"{request}.0"]})
    wait_until(lambda: grid.jobs()[0][1] == "r")
    one.cli("rm", f"{request}.0")


def test_what_has_gone_is_accounted_for(one, grid):
    """The agent is away while the job is killed outright: qacct says what became of it."""
    request = one.submit(sh(f"echo $$ >{one.work}/pid; sleep 600"))
    one.wait_state(f"{request}.0", "running")
    wait_until(lambda: one.written("pid"))
    one.agent.kill()
    with open(f"/proc/{int(one.read('pid'))}/stat", encoding="utf-8") as f:
        os.kill(int(f.read().split()[3]), 9)  # its script
    wait_until(lambda: not grid.jobs())
    one.agent = agents.start(one, agents.batch_queues(grid))
    one.wait_state(f"{request}.0", "held")
    assert "cancelled" in one.job(f"{request}.0")["hold_reason"]


def test_scripts_of_a_simulated_submit(instance, grid):
    """They ask Grid Engine for what the description does, and run there."""
    instance.server()
    instance.write("data/f0", "<0>\n")
    instance.write("job.xml", '<job simulateSubmission="true" maxWallTime="3"><command>cat `cat $FILELIST`; echo $JOBINDEX $INPUTFILECOUNT; '
                   f'echo done >{instance.work}/done</command><shell>sh</shell><stdout URL="file:{instance.work}/$JOBID.out"/>'
                   f'<input URL="file:{instance.work}/data/*"/></job>')
    instance.cli("submit", "job.xml")
    path, = glob.glob(os.path.join(instance.work, "sched*.sh"))
    uuid = os.path.basename(path)[len("sched"):].split("_")[0]
    grid.tool("qsub", "-h", "-wd", instance.base, path)
    number = grid.jobs("p")[0][0].split(".")[0]
    shown = grid.tool("qstat", "-j", number)
    assert re.search(rf"job_name:\s+sums_{uuid[:8]}_0", shown) and re.search(r"hard resource_list:\s+h_rt=180", shown), shown
    assert f"{instance.work}/{uuid}_0.out" in shown, shown
    grid.tool("qrls", number)
    wait_until(lambda: instance.exists("done") and not grid.jobs())
    assert instance.read(f"{uuid}_0.out") == "<0>\n0 1\n"


@pytest.mark.parametrize("noted_by", ["report", "wait"])
def test_a_session_outlives_the_server(instance, grid, noted_by):
    """Of a submit by TLS the file has the server's address, which does for each command; what Grid Engine calls the jobs, and their
    script, are in it, and do for qstat and qdel when nothing of Drover is left."""
    settings = instance.write("server.yaml", "api_listen: 127.0.0.1:0\n")
    instance.server("--config", settings)
    instance.agent = agents.start(instance, agents.batch_queues(grid))
    agents.offering(instance, "grid")
    gate = os.path.join(instance.work, "gate")
    token = instance.json("token", "user", "--name", instance.server_info()["you"])["token"]
    address = f"https://{instance.server_json()['api_tls']}"
    env = {"DROVER_TOKEN": token, "DROVER_DIR": "", "DROVER_SERVER": address}
    instance.cli("submit", "--session", "s.session.xml", "-", stdin=sh(until(gate), queue="queue 3"), env=env)
    assert f'address="{address}"' in instance.read("s.session.xml") and 'dir="' not in instance.read("s.session.xml")
    env.pop("DROVER_SERVER")
    instance.env.pop("DROVER_DIR", None)
    folder = os.path.join(instance.base, "elsewhere")
    os.makedirs(folder)
    path = os.path.join(instance.work, "s.session.xml")

    def noted():
        if noted_by == "report":
            instance.cli("report", "--session", path, env=env, cwd=folder, code=None)
        else:
            instance.cli("wait", "--timeout", "1", "--session", path, env=env, cwd=folder, code=None)
        return instance.read("s.session.xml").count("<job ") == 3
    wait_until(noted)
    text = instance.read("s.session.xml")
    assert re.fullmatch(r'(  <job id="1\.[0-2]" runner="gridengine" native="[0-9.]+"/>\n){3}', "".join(re.findall(r"  <job .*\n", text))), text
    assert text.count("<script ") == 1 and "#$ -q all.q\n" in text and re.search(r'<script runner="gridengine" native="[0-9]+">', text), text
    instance.agent.kill()
    instance.kill_server()
    cell = {k: v for k, v in grid.env.items() if k.startswith("SGE")} | {"PATH": grid.env["PATH"]}
    out = instance.cli("queue", "--session", path, env={**env, **cell}, cwd=folder)
    assert "in their batch systems" in out.err and "job_number:" in out.out and "all.q" in out.out, out
    instance.cli("rm", "--session", path, env={**env, **cell}, cwd=folder)
    wait_until(lambda: not grid.jobs())


def test_reservations_are_made_in_grid_engine_too(instance, grid):
    """A reservation of the queue is an advance reservation there, in which its jobs run, and others do not; it ends there, too, also if
    the agent was away meanwhile."""
    instance.server()
    config = agents.batch_queues(grid).replace("poll:", "reservations: 'yes', poll:")
    agent = agents.start(instance, config)
    agents.offering(instance, "grid")

    def there():
        """the names and ids of what is reserved"""
        return dict(re.findall(r"<id>([0-9]+)</id>\s*<name>(drover-[^<]*)</name>", grid.tool("qrstat", "-xml")))
    number = int(instance.cli("reserve", "--queue", "n1/grid", "--cpus", "2", "--for", "1h"))
    (made, name), = wait_until(there).items()
    assert f"r{number}-" in name
    shown = grid.tool("qrstat", "-ar", made)
    assert re.search(r"granted_parallel_environment +smp slots 2", shown), shown
    go = os.path.join(instance.work, "go")
    request = instance.submit(sh(until(go), reservation=number))
    instance.wait_state(f"{request}.0", "running")
    job, = {j[0].split(".")[0] for j in grid.jobs()}
    assert re.search(rf"ar_id: +{made}\b", grid.tool("qstat", "-j", job))
    instance.write("go", "")
    instance.wait(request)
    instance.run(sh("true"))
    later = int(instance.cli("reserve", "--queue", "n1/grid", "--cpus", "1", "--from", "+1d", "--for", "1h", "--every", "week"))
    wait_until(lambda: len(there()) == 2)
    agent.stop()
    instance.cli("reserve", "end", str(number))
    agents.start(instance, config)
    wait_until(lambda: len(there()) == 1 and f"r{later}-" in next(iter(there().values())))
    instance.cli("reserve", "end", str(later))
    wait_until(lambda: not there())
    instance.cli("reserve", "--maintenance", "--queue", "n1/grid", "--for", "1h")
    wait_until(lambda: "maintenance is not passed on" in instance.daemons[-1].output())
    assert not there()


def test_a_reservation_of_grid_engine_ends_its_jobs(instance, grid):
    """Grid Engine deletes them with it: the job is held, and says so. (It leaves those alone that it is just starting.)"""
    instance.server()
    agents.start(instance, agents.batch_queues(grid).replace("poll:", "reservations: 'yes', poll:"))
    agents.offering(instance, "grid")
    number = int(instance.cli("reserve", "--queue", "n1/grid", "--cpus", "2", "--for", "1h"))
    wait_until(lambda: "drover-" in grid.tool("qrstat", "-xml"))
    request = instance.submit(sh("while :; do sleep 0.1; done", reservation=number))
    instance.wait_state(f"{request}.0", "running")
    wait_until(lambda: [j[1] for j in grid.jobs()] == ["r"])
    instance.cli("reserve", "end", str(number))
    instance.wait_state(f"{request}.0", "held")
    assert "it was cancelled there" in instance.cli("why", f"{request}.0")
    wait_until(lambda: "drover-" not in grid.tool("qrstat", "-xml") and not grid.jobs())
