"""A batch system that lies: commands that look like Slurm's, Grid Engine's, PBS', HTCondor's and a site's own, and print what nobody
should believe. Each attempt stands in a table with what must come of it, for every system whose commands can be made to say it.

What is driven is tests/conform/drive_runner, which speaks to the runner as an agent does. A look-alike writes down its call in `calls`
and is then a script of the attempt's, or its honest self: the submit runs the script, the status query prints the file `status`."""
import concurrent.futures
import contextlib
import glob
import http.server
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import socketserver
import tempfile
import threading

import pytest

from drover import processes, wait_until
from test_runner_calls import Driver, Place

pytest_plugins = ["batch_systems"]

ME = os.popen("id -un").read().strip()
LOOK_ALIKE = """#!/bin/sh
HOSTILE=${0%/bin/*}
name=${0##*/}
[ "$name" = site ] && name=$1
printf '%s\\n' "$name $*" >>"$HOSTILE/calls"
if [ -e "$HOSTILE/$name.lie" ]; then . "$HOSTILE/$name.lie"; exit; fi
if [ -e "$HOSTILE/$name.self" ]; then . "$HOSTILE/$name.self"; fi
"""
RUN = 'for script; do :; done; setsid sh "$script" >/dev/null 2>&1 </dev/null & '


class Slurm:
    kind, settings, submit, status, act, capacity, past = "slurm", {}, "sbatch", "squeue", "scancel", "sinfo", "sacct"
    runs = RUN + "echo 17"
    running, waiting, failed, new = "RUNNING", "PENDING", "FAILED", "HIBERNATING"
    idle = "main* 0/4/0/4 4000 0 up 5:00 a1 idle\\n"

    def jobs(self, *jobs):
        return "".join(f"{native}|N/A|{state}|{name}|{why}|{user}\n" for native, name, state, user, why in jobs)

    def nodes(self, cpus, memory):
        return f"main* 0/{cpus}/0/{cpus} {memory} 0 up 5:00 a1 idle\n"


class Grid:
    kind, settings, submit, status, act, capacity, past = "gridengine", {}, "qsub", "qstat", "qdel", "qstat-f", "qacct"
    runs = RUN + "echo 17"
    running, waiting, failed, new = "r", "qw", "Eqw", "z"

    def jobs(self, *jobs):
        return "<?xml version='1.0'?>\n<job_info>\n<queue_info>\n" + "".join(
            f"<job_list><JB_job_number>{native}</JB_job_number><JB_name>{name}</JB_name><JB_owner>{user}</JB_owner>"
            f"<state>{state}</state></job_list>\n" for native, name, state, user, _ in jobs) + "</queue_info>\n</job_info>\n"

    def nodes(self, cpus, memory):
        return (f"<job_info><Queue-List><name>all.q@a</name><slots_used>0</slots_used><slots_resv>0</slots_resv>"
                f"<slots_total>{cpus}</slots_total><resource name=\"mem_total\" type=\"hl\">{memory}M</resource></Queue-List></job_info>\n")


class Pbs:
    kind, settings, submit, status, act, capacity, past = "pbs", {}, "qsub", "qstat", "qdel", "pbsnodes", "qstat-x"
    runs = RUN + "echo 17.server"
    running, waiting, failed, new = "R", "Q", "F", "Y"

    def jobs(self, *jobs):
        return "".join(f"Job Id: {native}.server\n    Job_Name = {name}\n    Job_Owner = {user}@host\n    job_state = {state}\n"
                       f"    comment = {why}\n\n" for native, name, state, user, why in jobs)

    def nodes(self, cpus, memory):
        return f"a1\n     state = free\n     resources_available.ncpus = {cpus}\n     resources_available.mem = {memory}mb\n\n"


class Torque(Pbs):
    """Its server prints the options of a submit as they were given, with line ends."""

    settings = {"form": "torque"}

    def jobs(self, *jobs):
        return "".join(f"Job Id: {native}.server\n    Job_Name = {name}\n    Job_Owner = {user}@host\n    job_state = {state}\n"
                       f"    submit_args = {why}\n    start_count = 1\n\n" for native, name, state, user, why in jobs)


class Condor:
    kind, settings, submit, status, act, capacity, past = "htcondor", {}, "condor_submit", "condor_q", "condor_rm", "condor_status", "condor_history"
    runs = ("script=$(sed -n 's/^executable = //p'); setsid sh \"$script\" >/dev/null 2>&1 </dev/null & echo '17.0 - 17.0'")
    running, waiting, failed, new = 2, 1, 3, 99

    def jobs(self, *jobs):
        return json.dumps([{"ClusterId": native, "ProcId": 0, "JobStatus": state, "DroverName": name, "DroverCount": 1, "Owner": user,
                            "RemoveReason": why} for native, name, state, user, why in jobs], ensure_ascii=False) + "\n"

    def nodes(self, cpus, memory):
        return json.dumps([{"Machine": "a", "State": "Unclaimed", "SlotType": "Static", "Cpus": cpus, "Memory": memory}]) + "\n"


class Site:
    settings = {}
    kind, submit, status, act, capacity, past = "exec", "submit", "status", "kill", "capacity", "past"
    runs = ("read -r line; script=${line#*\\\"script\\\":\\\"}; script=${script%%\\\"*}; "
            "setsid sh \"$script\" >/dev/null 2>&1 </dev/null & echo '{\"native\": \"17\"}'")
    running, waiting, failed, new = "running", "waiting", "ended", "hibernating"

    def jobs(self, *jobs):
        return "".join(json.dumps({"native": str(native), "name": name, "state": state, "user": user, "reason": why}, ensure_ascii=False) + "\n"
                       for native, name, state, user, why in jobs)

    def nodes(self, cpus, memory):
        return json.dumps({"cpus": cpus, "idle_cpus": cpus, "memory": memory << 20, "nodes": 1, "node_cpus": cpus, "node_memory": memory << 20}) + "\n"


class Lsf:
    """By dist/runners/lsf, a program of the runner exec."""

    kind, submit, status, act, capacity, past = "exec", "bsub", "bjobs", "bkill", "bhosts", "bhist"
    settings = {"program": os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "dist", "runners", "lsf"))}
    runs = RUN + "echo 'Job <17> is submitted to default queue <normal>.'"
    running, waiting, failed, new = "RUN", "PEND", "EXIT", "HIBERNATES"

    def jobs(self, *jobs):
        return "".join(f"{native}|0|{state}|{user}|{why if why != 'None' else '-'}|{name}\n" for native, name, state, user, why in jobs)

    def nodes(self, cpus, memory):
        return f"HOST_NAME STATUS JL/U MAX NJOBS RUN SSUSP USUSP RSV\na{memory} ok - {cpus} 0 0 0 0 0\n"


SYSTEMS = [Slurm, Grid, Pbs, Condor, Site, Lsf]
TOOLS = "sbatch squeue scancel sinfo sacct scontrol qsub qstat qdel qacct qmod qhold qrls pbsnodes condor_submit condor_q condor_rm condor_status " \
        "condor_history condor_hold condor_release condor_suspend condor_continue site bsub bjobs bkill bstop bresume bhosts lshosts"


class Liar:
    """One look-alike with the runner that believes it or not. Task 1 runs, as the system knows, until the file `go` is there."""

    def __init__(self, build, folder, system):
        self.system, self.folder = system(), folder
        self.bin = os.path.join(folder, "bin")
        os.makedirs(self.bin)
        for tool in TOOLS.split():
            path = os.path.join(self.bin, tool)
            with open(path, "w", encoding="utf-8") as f:
                f.write(LOOK_ALIKE)
            os.chmod(path, 0o755)
        self.put(f"{system.submit}.self", system.runs)
        self.put("status", self.system.jobs())
        self.put(f"{system.status}.self", 'case "$*" in *" -F "*|*"-F mem_total"*) cat "$HOSTILE/nodes";; *) cat "$HOSTILE/status";; esac')
        self.put("nodes", self.system.nodes(4, 4000))
        self.put("lshosts.self", r"printf 'HOST_NAME type model cpuf ncpus maxmem maxswp\na1 L x 1 4 4000M 0M\n'")
        self.put(f"{system.capacity}.self", 'cat "$HOSTILE/nodes"')
        self.settings = {"poll": "1", "watch": "1", **system.settings}
        if system is Site:
            self.settings["program"] = os.path.join(self.bin, "site")
        self.env = {**os.environ, "PATH": self.bin + ":/usr/bin:/bin"}
        self.driver, self.build = None, build

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + "~", "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.rename(path + "~", path)

    def start(self):
        self.driver = Driver(self.build, self.folder, self.system.kind, self.settings, self.env)
        self.driver.wait("ready")
        return self

    def calls(self, command=""):
        try:
            with open(os.path.join(self.folder, "calls"), encoding="utf-8", errors="replace") as f:
                return [line.rstrip("\n") for line in f if line.startswith(command)]
        except FileNotFoundError:
            return []

    def name(self):
        found, = glob.glob(os.path.join(self.driver.folder, "batch.q", "*.sh"))
        return os.path.basename(found)[:-3]

    def submit(self):
        go = shlex.quote(os.path.join(self.folder, "go"))
        self.driver.say(f"submit 1 echo ran >>ran; while [ ! -e {go} ]; do sleep 0.1; done; exit 5")
        wait_until(lambda: self.calls(self.system.submit + " ") or self.calls(self.system.submit))

    def honest(self):
        return self.system.jobs((17, self.name(), self.system.running, ME, "None"))

    def run(self):
        """Task 1 runs, and its status is told as it is."""
        self.submit()
        self.put("status", self.honest())
        self.driver.wait("running 1")
        asked([self])
        return self

    def looks(self):
        """So many looks at the nodes there were."""
        return len([call for call in self.calls(self.system.capacity.split("-")[0]) if "qstat" not in call or " -F " in call])

    def queries(self):
        return len(self.calls(self.system.status))

    def lie(self, script, command=None):
        self.put(f"{command or self.system.status}.lie", script)

    def said(self):
        return self.driver.lines()

    def wait(self, start, count=1, what=""):
        try:
            return self.driver.wait(start, count=count)
        except Exception:
            raise AssertionError(f"{self.system.kind} {what}: no {count} of '{start}' in {self.said()}") from None

    def truth(self, command=None):
        os.unlink(os.path.join(self.folder, f"{command or self.system.status}.lie"))

    def ends_well(self):
        """The program's own end is told, once, and it was run once."""
        self.put("go", "")
        ends = {line.replace(" known", "") for line in self.wait("ended 1")}  # known: it was away meanwhile, and is told again
        assert ends == {"ended 1 code=5 why=0"}, self.said()
        assert self.driver.file(1, "ran") == "ran\n"
        assert not [line for line in self.said() if line.startswith(("lost", "failed"))], self.said()

    def close(self):
        self.put("go", "")
        if self.driver and self.driver.process.poll() is None:
            self.driver.stop("quit all")
        for pid in processes(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def asked(liars, times=2):
    """Each status was asked for so often since."""
    before = [one.queries() for one in liars]
    wait_until(lambda: all(one.queries() >= n + times for one, n in zip(liars, before)))


ATTEMPTS = {}


def attempt(scenario):
    """A test that is run at the same time as the others of this file: they mostly wait for the next query."""
    ATTEMPTS[scenario.__name__] = scenario

    def test(outcomes):
        outcomes[scenario.__name__].result()

    test.__doc__ = scenario.__doc__
    return test


def run_attempt(scenario, build, tmp):
    folder = tempfile.mkdtemp(prefix="hb-", dir=tmp)
    made = []

    def liars(systems=None):
        for system in SYSTEMS if systems is None else systems:
            where = os.path.join(folder, str(len(made)))
            os.mkdir(where)
            made.append(Liar(build, where, system))
            made[-1].start()
        return made

    try:
        scenario(liars)
    finally:
        for one in made:
            one.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def outcomes(request):
    with concurrent.futures.ThreadPoolExecutor(len(ATTEMPTS)) as pool:
        yield {name: pool.submit(run_attempt, scenario, request.config.getoption("--build"), request.config.drover_tmp)
               for name, scenario in ATTEMPTS.items()}


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"VmHWM:\s*(\d+)", f.read())[1]) >> 10


# ---- what a status query may print while task 1 runs. "away": it is no answer, and the task is let alone.

def half(liar):
    text = liar.system.jobs(*((100 + i, f"other{i}", liar.system.running, ME, "None") for i in range(50)),
                            (17, liar.name(), liar.system.running, ME, "None"))
    return text[:len(text) - 40]


NO_ANSWERS = {
    "garbage": lambda _: b"\x00\x01\xff<\xfe|{\x80garbage" * 1000,
    "an error, and a status of 0": lambda _: "slurm_load_jobs error: Unable to contact the controller\n",
    "an answer that was cut": half,
    "deep JSON": lambda _: "[" * 200000 + "{" * 200000,
    "NULs": lambda _: b"\0" * 100000 + b"\n",
}


@attempt
def test_what_is_no_answer_ends_nothing(liars):
    all_of_them = liars()
    for one in all_of_them:
        one.run()
    for n, (what, lie) in enumerate(NO_ANSWERS.items(), 1):
        for one in all_of_them:
            one.put("lie", lie(one))
            one.lie('cat "$HOSTILE/lie"')
        for one in all_of_them:
            one.wait("away", count=n, what=what)
            one.truth()
        for one in all_of_them:
            one.wait("ready", count=n + 1, what=what)
    for one in all_of_them:
        one.ends_well()


@attempt
def test_what_is_printed_for_ever_is_ended(liars):
    """It neither fills the memory, nor is it what there is; nor does the limit end with the command, for what that has left behind."""
    all_of_them = liars([Slurm, Site])
    for one in all_of_them:
        one.run()
        one.lie("(setsid yes 17 & yes 18 & wait)")
    for one in all_of_them:
        one.wait("away")
        assert "printed more than 64 MiB" in one.driver.lines("away")[0], one.said()
        assert peak_mib(one.driver.process.pid) < 400
        one.truth()
    for one in all_of_them:
        one.ends_well()


@attempt
def test_what_never_answers_is_away(liars):
    """What it was asked goes on being waited for, for a minute; meanwhile the place is told to be away, and what runs ends as it ends."""
    all_of_them = liars([Slurm, Site])
    for one in all_of_them:
        one.run()
        one.lie('while [ -e "$HOSTILE/$name.lie" ]; do sleep 0.2; done; cat "$HOSTILE/status"')
    for one in all_of_them:
        one.wait("away")
        one.put("go", "")
        one.truth()
    for one in all_of_them:
        one.ends_well()


# ---- what an answer may say beside the truth: lines of other jobs, before and behind the honest one.

TERMINAL = "\x1b]0;owned\x07\x1b[2J"
BESIDE = {
    "our number, as another's job that failed": lambda one, name: [(17, "another", one.system.failed, "mallory", "None")],
    "our number, as another's job that waits": lambda one, name: [(17, "another", one.system.waiting, ME, "None")],
    "no number, a negative one, a huge one": lambda one, name: [(n, "x", one.system.running, ME, "None") for n in ("", -17, 10**40)],
    "our name, with options for numbers": lambda one, name: [(n, name, one.system.running, ME, "None") for n in ("--all", "-u *", "17,18 19")],
    "the same line a thousand times": lambda one, name: [(17, name, one.system.running, ME, "None")] * 1000,
    "a state that nobody knows": lambda one, name: [(17, name, one.system.new, ME, "None")],
    "names that are commands to a terminal": lambda one, name: [(90, TERMINAL + name, one.system.running, ME, TERMINAL)],
}


def jobs(one, lines):
    """HTCondor's numbers are numbers of JSON; others may not be said at all."""
    return one.system.jobs(*(line for line in lines if one.system is not Condor or isinstance(line[0], int)))


@attempt
def test_what_is_said_of_others_is_theirs(liars):
    all_of_them = liars()
    for one in all_of_them:
        one.run()
    for lie in BESIDE.values():
        for one in all_of_them:
            name, truth = one.name(), (17, one.name(), one.system.running, ME, "None")
            lines = lie(one, name)
            if "another" in str(lines):  # of a number twice the last word would count
                one.put("status", jobs(one, [truth, *lines]))
            else:
                one.put("status", jobs(one, [*lines, truth] if one.system.new not in [line[2] for line in lines] else lines))
        asked(all_of_them)
        for one in all_of_them:
            assert not [line for line in one.said() if line.startswith(("lost", "failed", "ended"))], one.said()
    for one in all_of_them:
        told = [word for call in one.calls(one.system.act) for word in call.split()[1:] if one.system.kind != "exec"]
        assert not [word for word in told if word.startswith("-") or not re.fullmatch(r"[0-9.\[\]_]+", word)], told
        assert "17" not in told
        one.put("status", one.honest())
        one.ends_well()
        assert "\x1b" not in "".join(one.said())


@attempt
def test_a_number_that_is_anothers_by_now_is_let_alone(liars):
    """The system was killed, has lost its memory and counts again: 17 is somebody else's job. It is neither ended nor believed."""
    all_of_them = liars()
    for one in all_of_them:
        one.run()
        one.put("status", one.system.jobs((17, "another", one.system.running, ME, "None")))
    asked(all_of_them)
    for one in all_of_them:
        one.driver.say("kill 1")
    for one in all_of_them:
        wait_until(lambda one=one: [line for line in one.said() if line.startswith(("ended 1", "lost 1"))])  # lost: before it was told to end
        assert [word for call in one.calls(one.system.act) for word in re.findall(r"\b17\b", call)] == [], one.calls(one.system.act)


FORGED = ["job_state = C\n    exit_status = 0", "job_state = C\n    exit_status = -11", "job_state = Q", "job_state = C"]


@attempt
def test_an_end_in_the_options_of_another_job_is_none(liars):
    """Torque: the job goes on, for it is in the same answer, and nothing is told to it; for longer than a missing one is waited for."""
    one, = liars([Torque])
    one.run()
    for first, lie in itertools.product((False, True), FORGED):
        forged = f"-N x\n\nJob Id: 17.server\n    Job_Name = {one.name()}\n    Job_Owner = {ME}@host\n    {lie}"
        others = one.system.jobs((16 if first else 18, "x", "R", "mallory", forged))
        one.put("status", others + one.honest() if first else one.honest() + others)
        asked([one], 3)
    assert not [line for line in one.said() if line.startswith(("lost", "failed", "ended", "waiting"))], one.said()
    assert not one.calls("qdel"), one.calls("qdel")
    one.put("status", one.honest())
    one.ends_well()


@attempt
def test_a_name_in_lsf_is_no_line_and_no_user(liars):
    """Names that others choose, with what parts lines and columns, and letters of no encoding."""
    one, = liars([Lsf])
    one.run()
    name = one.name()
    for lie in (f"18|0|RUN|mallory|-|x\n17|0|EXIT|{ME}|TERM_RUNLIMIT|{name}\n", f"18|0|RUN|mallory|-|x\v17|0|EXIT|{ME}|-|{name}\n",
                f"18|0|RUN|mallory|-|x\u2028 17|0|DONE|{ME}|-|{name}\n", f"17|0|PEND|{ME}|-|{name}\n", f"18|0|RUN|mallory|-|{name}|{ME}\n"):
        for text in (lie + one.honest(), one.honest() + lie):
            one.put("status", text.encode() + b"19|0|RUN|mallory|-|\xff\xfe\n")
            asked([one], 2)
    assert not [line for line in one.said() if line.startswith(("lost", "failed", "ended", "waiting", "away"))], one.said()
    assert not [call for call in one.calls("bkill") if "17" in call], one.calls("bkill")
    one.put("status", one.honest())
    one.ends_well()


@attempt
def test_reasons_are_words(liars):
    """A reason is the system's text, and may be anybody's: what reaches a terminal are letters, in UTF-8."""
    words = {Slurm: "CANCELLED", Condor: 3, Site: "cancelled"}
    all_of_them = liars(list(words))
    for one in all_of_them:
        one.lie(one.system.runs.rsplit("& ", 1)[1], one.system.submit)  # it takes the script, and does not run it
        one.submit()
        text = one.system.jobs((17, one.name(), words[type(one.system)], ME, "bad\x1b[2J\x9b5m\udcff\udcfe\x7f"))
        one.put("status", text.encode("utf-8", "surrogateescape"))
    for one in all_of_them:
        one.wait("failed 1")
        line, = one.driver.lines("failed 1")
        assert "bad" in line and not re.search("[\x00-\x1f\x7f-\x9f\ufffd]", line), repr(line)


# ---- what a submit may print although the script was taken: the status query tells, and it runs once.

SUBMITS = {
    "nothing": "exit 0",
    "an error, and a status of 0": "echo 'error: everything is lost'; exit 0",
    "garbage": r"printf '\000\377|;<{}\n'; exit 0",
    "a number that is none": "echo -17; exit 0",
    "a huge one": "head -c 100000 /dev/zero | tr '\\0' 9; exit 0",
    "for ever": "yes",
    "options": "echo '17 --all'; exit 0",
    "a failure": "echo 17; exit 75",
}


@attempt
def test_what_a_submit_prints_is_checked(liars):
    for script, system in zip(SUBMITS.values(), itertools.cycle(SYSTEMS)):
        one = liars([system])[-1]
        one.lie(f"({system.runs}) >/dev/null\n{script}", system.submit)
    all_of_them = liars(())
    for one in all_of_them:
        one.submit()
        one.put("status", one.honest())
    for one in all_of_them:
        one.wait("running 1")
        one.ends_well()


# ---- what an accounting may say of what is gone

@attempt
def test_names_in_an_accounting_are_no_lines(liars):
    """Slurm's sacct prints names with their line ends: it is asked for our own jobs only, for less of a name than makes a line, and
    another's job of our number is not believed."""
    one, = liars([Slurm])
    one.run()
    lines = [("17", "FAILED", "x"), ("17", "TIMEOUT", "another"), ("17", "OUT_OF_MEMORY", f"{one.name()}y"),
             ("99", "COMPLETED", f"x\n17|CANCELLED|{one.name()}"), ("99", "COMPLETED", f"x\n17 CANCELLED {one.name()}")]
    one.put("past", "".join(f"{number:<40} {state:<30} {name:<30}\n" for number, state, name in lines))
    one.lie('cat "$HOSTILE/past"', "sacct")
    one.put("status", one.system.jobs((99, "another", "RUNNING", ME, "None")))
    wait_until(lambda: one.calls("sacct"))
    for call in one.calls("sacct"):
        assert f"--user={ME}" in call and "--allusers" not in call and "--format=JobID%-40,State%-30,JobName%-30" in call
    one.ends_well()


# ---- what nodes there are

NODES = {
    "more than a number holds": lambda one: one.system.nodes(2**64 - 1, 2**63),
    "a million times the same": lambda one: one.system.nodes(10**6, 10**9) * 20000,
}


@attempt
def test_capacity_is_what_there_can_be(liars):
    all_of_them = liars()
    for one in all_of_them:
        one.run()
    for lie in NODES.values():
        for one in all_of_them:
            one.put("nodes", lie(one))
        before = [one.looks() for one in all_of_them]
        wait_until(lambda b=before: all(one.looks() >= n + 2 for one, n in zip(all_of_them, b)))
        for one in all_of_them:
            count = len(one.driver.lines("capacity"))
            one.driver.say("capacity")
            line = one.wait("capacity", count=count + 1)[-1]
            cpus, nodes, memory = (int(re.search(rf"\b{what}=(\d+)", line)[1]) for what in ("cpus", "nodes", "memory"))
            assert cpus <= max(nodes, 1) * 2**50 and nodes <= 10**6 and memory <= max(nodes, 1) * 2**40, line
    for one in all_of_them:
        one.ends_well()


# ---- slurmrestd, whose answers are lists of everybody's jobs


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """It answers that there are `jobs`, and no nodes."""

    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            lists = {"jobs": self.server.jobs, "nodes": [], "partitions": []}
            what = self.path.split("?")[0].rsplit("/", 1)[-1]
            self.server.asked.append(what)
            if what in self.server.endless:
                self.send_response(200)
                self.end_headers()
                self.server.pour(what, self.wfile)
                self.close_connection = True
                return
            text = json.dumps({what: lists.get(what, [])}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    def __init__(self, path):
        super().__init__(path, self.Handler)
        self.jobs, self.asked, self.endless, self.poured = [], [], {}, []
        threading.Thread(target=self.serve_forever, daemon=True).start()


    def pour(self, what, out):
        """Writes objects of which nothing is kept, until nobody reads them or there are 200 million."""
        count, piece = 0, self.endless[what]
        with contextlib.suppress(OSError):
            out.write(b'{"' + what.encode() + b'":[{}')
            while count < 200 * 10**6:
                out.write(piece)
                count += piece.count(b"{")
        self.poured.append(count)


def array(members, user):
    return {"array_job_id": 5, "array_task_string": members, "job_id": 5, "job_state": "PENDING", "name": "drover-12345678-1a",
            "state_reason": "None", "user_name": user}


@pytest.mark.long
def test_what_slurmrestd_answers_is_bounded(request, tmp_path):
    """Anybody may call his arrays as ours are called, and members that wait are written as ranges: neither the lists of one job nor
    those of many fill the memory."""
    daemon = Daemon(str(tmp_path / "socket"))
    driver = Driver(request.config.getoption("--build"), str(tmp_path), "slurm", {"rest": f"unix:{tmp_path}/socket", "poll": "1", "watch": "1"},
                    {**os.environ})
    try:
        driver.wait("ready")
        daemon.jobs = [array("0-99999," * 100, ME), array("0-99999," * 100, "mallory")]
        del daemon.asked[:]
        wait_until(lambda: daemon.asked.count("jobs") > 2)
        daemon.jobs = [array("0-999", ME)] * 3000
        assert "more than 64 MiB" in driver.wait("away", 300)[0]  # after three such answers
        daemon.jobs = [array("0-99999", "mallory")] * 3000  # this is no reason to be away
        driver.wait("ready", 300, count=2)
        assert peak_mib(driver.process.pid) < 400
    finally:
        driver.stop("quit all")
        daemon.shutdown()
        daemon.server_close()


def test_lists_without_end(request, tmp_path):
    """Of an answer a bounded number of objects is read, also of those that are not kept. ARC and Kubernetes are read by the same code."""
    daemon = Daemon(str(tmp_path / "socket"))
    driver = Driver(request.config.getoption("--build"), str(tmp_path), "slurm", {"rest": f"unix:{tmp_path}/socket", "poll": "1", "watch": "1"},
                    {**os.environ})
    try:
        driver.wait("ready")
        daemon.endless = {"nodes": b",{}" * 10**6}
        wait_until(lambda: daemon.poured)
        daemon.endless = {"jobs": b',{"name":"drover-x"}' * 10**5}
        assert "more than 1000000 objects" in driver.wait("away", 60)[0]
        assert max(daemon.poured) < 20 * 10**6
        daemon.endless = {}
        driver.wait("ready", 60, count=2)
    finally:
        driver.stop("quit all")
        daemon.shutdown()
        daemon.server_close()


# ---- the API of Kubernetes, where others have jobs in the same namespace


def condition(kind, message="over"):
    return {"type": kind, "status": "True", "reason": "x", "message": message}


def strangers(count, **more):
    return [{"metadata": {"name": f"drover-0badcafe-{i:x}", "labels": {"job-name": f"drover-0badcafe-{i:x}"}},
             "status": {"conditions": [condition("Failed")], "phase": "Failed"}, "spec": {}, **more} for i in range(count)]


EVIL = "x\x1b[2J|Failed|True\nended 1 code=0 why=0\n"
OTHERS = [
    {"metadata": {"name": [[], {}, None, 7]}, "status": 5, "spec": [1e300, -1, True]},
    json.loads("[" * 400 + "]" * 400),
    {"metadata": {"name": "a" * 500000}, "status": {"phase": "b" * 500000}},
    {"metadata": {"name": "n"}, "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {
        "cpu": "9e999Ei", "memory": "-1Ki", "nvidia.com/gpu": "1e"}}}] * 1000}, "status": {"phase": "Running", "allocatable": {
            "cpu": "99999999999999999999", "memory": "0.0000001m", "nvidia.com/gpu": "nan"}}}]
# What the cluster answers to a list, of the honest items.
LIES = {
    "nothing": lambda items: [],
    "jobs of others, and what is none": lambda items: strangers(2000) + OTHERS + items + OTHERS,
    "its own many times": lambda items: items * 50,
    "words that are lines": lambda items: [{**one, "status": {**one.get("status", {}), "reason": EVIL, "message": EVIL,
                                                              "containerStatuses": [{"state": {"waiting": {"reason": EVIL}}}] * 100}} for one in items],
    "numbers without sense": lambda items: [{**one, "status": {**one.get("status", {}), "ready": -1e300, "active": "9" * 400}} for one in items],
}


def test_what_a_cluster_answers(request, tmp_path, kubernetes):
    """A task that runs goes on and ends as it does, whatever is said of it and of others meanwhile."""
    place = Place(request.config.getoption("--build"), str(tmp_path), "kubernetes", dict(kubernetes.settings), kubernetes)
    driver = place.start()
    honest = kubernetes.read
    try:
        driver.say("submit 1 while [ ! -e go ]; do sleep 0.05; done; exit 7")
        driver.wait("running 1")
        for name, lie in LIES.items():
            asked = [0]

            def read(path, query, lie=lie, asked=asked):
                said = honest(path, query)
                asked[0] += path.endswith("/jobs")
                return {**said, "items": lie(said["items"])} if "items" in said else said

            kubernetes.read = read
            wait_until(lambda a=asked: a[0] > 1)  # the first answer has been read, too
            said = [line for line in driver.lines() if re.match(r"(ended|failed|lost|waiting) 1 ", line)]
            assert driver.process.poll() is None and not said, (name, said)
        kubernetes.read = honest
        with open(driver.path(1, "go"), "w", encoding="utf-8"):
            pass
        assert driver.wait("ended 1") == ["ended 1 code=7 why=0"]
        assert not [line for line in driver.lines() if "\x1b" in line] and peak_mib(driver.process.pid) < 400
    finally:
        kubernetes.read = honest
        driver.stop("quit all")
