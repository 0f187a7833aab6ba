"""The look-alikes of Slurm's commands, and the real ones beside them where both can say the same."""
import json
import os
import re

import pytest

import agents
from drover import wait_until
from slurm import Munge, Slurm
from slurm_accounting import accounted_cluster
from slurm_commands import Commands, LookAlikes
from terminal import Terminal


@pytest.fixture
def look(shared):
    return LookAlikes(shared)


@pytest.fixture(scope="module")
def cluster(request, tmp_path_factory):
    """A real one."""
    folder = str(tmp_path_factory.mktemp("c"))
    munge = Munge(folder)
    request.addfinalizer(munge.stop)
    one = Slurm(folder, munge, nodes=1)
    request.addfinalizer(one.stop)
    one.start()
    work = os.path.join(folder, "work")
    os.mkdir(work)
    return Commands("", one.env, work)


@pytest.fixture(params=["look", "real"])
def both(request):
    """The same test on the look-alikes and on Slurm's own commands."""
    return request.getfixturevalue("look" if request.param == "look" else "cluster")


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """A real one that keeps accounts."""
    with accounted_cluster(str(tmp_path_factory.mktemp("b")), nodes=1) as one:
        work = os.path.join(one.dir, "work")
        os.mkdir(work)
        yield Commands("", one.env, work)


@pytest.fixture(params=["look", "real"])
def accounted(request):
    return request.getfixturevalue("look" if request.param == "look" else "books")


def over(slurm, job, *states):
    want = list(states) or ["CD"]
    wait_until(lambda: slurm.state(job) == want, 120)


# ---- the same on both

def test_a_script_runs_with_slurms_variables(both):
    job = both.batch("#SBATCH -J name -n 2 --cpus-per-task=1 --mem=50\n"
                     "echo $SLURM_JOB_ID $SLURM_JOBID $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_NPROCS $SLURM_CPUS_PER_TASK\n"
                     "echo $SLURM_CPUS_ON_NODE $SLURM_NNODES $SLURM_PROCID $SLURM_MEM_PER_NODE $SLURM_JOB_NUM_NODES\n"
                     "echo $SLURM_SUBMIT_DIR $PWD $MINE $ENVIRONMENT $SLURM_TASKS_PER_NODE\n"
                     "[ $SLURMD_NODENAME = $SLURM_JOB_NODELIST ] && echo error >&2\n", env={"MINE": "kept"})
    over(both, job)
    work = os.path.realpath(both.work)
    assert both.file(f"slurm-{job}.out") == f"{job} {job} name 2 2 1\n2 1 0 50 1\n{work} {work} kept BATCH 2\nerror\n"


def test_an_array_has_tasks_with_numbers(both):
    job = both.batch("echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN "
                     "$SLURM_ARRAY_TASK_MAX; echo $SLURM_JOB_ID >&2\n", "--array=2,5,9", "-o", "%A_%a.%x.%3a", "-e", "id-%a", "-J", "x")
    over(both, job, "CD", "CD", "CD")
    for task in (2, 5, 9):
        assert both.file(f"{job}_{task}.x.{task:03}") == f"{job} {task} 3 2 9\n"
    ids = {both.file(f"id-{task}") for task in (2, 5, 9)}
    assert len(ids) == 3 and f"{job}\n" in ids
    for number in ids - {f"{job}\n"}:  # which is all of the array's, too
        assert re.fullmatch(rf"{job}_[259]\n", both("squeue", "-h", "-t", "all", "-o", "%i", "-j", number.strip()))
    assert sorted(both("squeue", "-h", "-r", "-t", "all", "-o", "%K %F", "-j", f"{job}_5,{job}_9").split()) == \
        sorted(["5", str(job), "9", str(job)])


def test_the_default_listing_is_slurms(both):
    job = both.batch("sleep 300\n", "-J", "longer-than-eight", "--hold")
    array = both.batch("sleep 300\n", "--array=1-9:2%3", "--hold", "-J", "a")
    lines = both("squeue", "-j", f"{job},{array}").splitlines()
    assert lines[0] == "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
    user = both("squeue", "-h", "-j", job, "-o", "%u").strip()
    part = both("squeue", "-h", "-j", job, "-o", "%P").strip()
    rows = {f"{job:>18} {part:>9} longer-t {user:>8} PD       0:00      1 (JobHeldUser)",
            f"{str(array) + '_[1,3,5,7,9%3]':>18} {part:>9} {'a':>8} {user:>8} PD       0:00      1 (JobHeldUser)"}
    if lines[2].split()[0].endswith("[1-9:2%3]") or lines[1].split()[0].endswith("[1-9:2%3]"):
        rows = {row.replace("_[1,3,5,7,9%3]", "_[1-9:2%3]").rjust(len(row)) for row in rows}
    assert {" ".join(line.split()) for line in lines[1:]} == {" ".join(row.split()) for row in rows}
    assert both("squeue", "-l", "-j", job).splitlines()[1] == \
        "             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)"
    assert len(both("squeue", "-h", "-r", "-j", array).splitlines()) == 5
    assert both("squeue", "-h", "-j", job, "-o", "%i|%.12T|%5D|%.3j") == f"{job}|     PENDING|1    |lon\n"
    assert both("squeue", "-h", "-j", job, "-O", "JobID:10,Name:12,State").rstrip() == f"{job:<10}longer-than-PENDING"
    both("scancel", job, f"{array}_[3,5]")
    wait_until(lambda: both("squeue", "-h", "-j", array, "-r", "-o", "%K").split() == ["1", "7", "9"])
    both("scancel", array)
    wait_until(lambda: both("squeue", "-h", "-j", f"{job},{array}") == "")


def test_dependencies_hold_jobs_back(both):
    first = both.batch("while [ ! -e go ]; do sleep 0.1; done; exit 3\n")
    after = [both.batch("true\n", "-d", f"{kind}:{first}") for kind in ("afterany", "afternotok", "afterok")]
    assert both("squeue", "-h", "-j", after[0], "-o", "%t %r") == "PD Dependency\n"
    with open(os.path.join(both.work, "go"), "w", encoding="utf-8"):
        pass
    over(both, first, "F")
    over(both, after[0])
    over(both, after[1])
    wait_until(lambda: both("squeue", "-h", "-j", after[2], "-o", "%t %r") == "PD DependencyNeverSatisfied\n", 120)
    both("scancel", after[2])
    os.unlink(os.path.join(both.work, "go"))


def test_tasks_correspond(both):
    first = both.batch("[ $SLURM_ARRAY_TASK_ID = 2 ]\n", "--array=1-3")
    second = both.batch("true\n", "--array=1-3", "-d", f"aftercorr:{first}")
    wait_until(lambda: sorted(both.state(second)) == ["CD", "PD", "PD"], 120)
    assert both("squeue", "-h", "-t", "CD", "-j", second, "-o", "%i") == f"{second}_2\n"
    both("scancel", second)


def test_what_is_no_script_is_refused(both):
    work = both.work
    for name, text in (("empty", ""), ("plain", "echo\n"), ("dos", "#!/bin/sh\r\necho\r\n")):
        with open(os.path.join(work, name), "w", encoding="utf-8", newline="") as f:
            f.write(text)
    assert "Batch script is empty!" in both("sbatch", "empty", code=1).err
    assert "This does not look like a batch script" in both("sbatch", "plain", code=1).err
    assert "DOS line breaks" in both("sbatch", "dos", code=1).err
    assert "Unable to open file nofile" in both("sbatch", "nofile", code=1).err
    assert "invalid partition specified: nope" in both("sbatch", "-p", "nope", "--wrap", "true", code=1).err
    assert "Invalid job id" in both("scancel", "foo", code=1).err
    assert both("squeue", "-j", "99999", code=1).err == "slurm_load_jobs error: Invalid job id specified\n"
    both("scancel", "99999")
    for bad in (["-t", "abc"], ["--mem=x"], ["-n", "x"], ["--array=5-1"]):
        assert both("sbatch", *bad, "--wrap", "true", code=None).code != 0, bad
    assert "unrecognized option '--bogus'" in both("sbatch", "--bogus", code=None).err


def test_what_the_call_says_wins_over_the_script(both):
    def limits(*args, **more):
        job = both.batch("#SBATCH -t 30:5 --comment='x # y' -J a#b\n  #SBATCH -c 3\n\n#SBATCH --mem=20\necho\n#SBATCH -n 4\n",
                         "--hold", *args, **more)
        out = both("squeue", "-h", "-j", job, "-o", "%l|%j|%k|%m|%C")
        both("scancel", job)
        return out
    assert limits() == "31:00|a|x # y|20M|1\n"
    assert limits(env={"SBATCH_TIMELIMIT": "2:00:00"}) == "2:00:00|a|x # y|20M|1\n"
    assert limits("-t", "1-0", "-Jc", "-n2", env={"SBATCH_TIMELIMIT": "2:00:00"}) == "1-00:00:00|c|x # y|20M|2\n"


def test_wrap_and_environment(both):
    job = int(both("sbatch", "--parsable", "--wrap", "echo \"$A$B\" 'q' $0 | sed 's/slurm_script//'; exit 4", "--export=A=1,B",
                   "-o", "w.%j", env={"B": "two words", "C": "left"}))
    over(both, job, "F")
    assert both.file(f"w.{job}").startswith("1two words q")
    job = both.batch("echo $A$C; echo ${SLURM_JOB_ID:+id}\n", "--export=NONE", "-o", "w.%j", env={"A": "1", "C": "2"})
    over(both, job)
    assert both.file(f"w.{job}") == "\nid\n"


def test_files_are_appended_when_asked(both):
    for mode in ("append", "append", "truncate"):
        job = both.batch("echo line\n", "-o", "log.txt", f"--open-mode={mode}")
        over(both, job)
        if mode == "append" and both.file("log.txt") != "line\n":
            assert both.file("log.txt") == "line\nline\n"
    assert both.file("log.txt") == "line\n"


def test_wait_gives_the_exit_code(both):
    assert "Submitted batch job" in both("sbatch", "--wait", "--wrap", "exit 7", code=7)
    both("sbatch", "-W", "--wrap", "true")


def test_accounts_name_jobs_and_ends(accounted):
    array = accounted.batch("exit $SLURM_ARRAY_TASK_ID\n", "--array=0,3", "-J", "ends")
    killed = accounted.batch("touch begun; sleep 600\n", "-J", "a-name-of-more-than-ten", "-t", "90", "-c", "2")
    never = accounted.batch("true\n", "--hold")
    wait_until(lambda: os.path.exists(os.path.join(accounted.work, "begun")), 120)
    accounted("scancel", killed, never)

    def past(*words):
        return accounted("sacct", "-X", "-n", "-P", *words, "-j", f"{array},{killed},{never}").splitlines()
    uid = os.getuid()
    want = [f"{array}_0|COMPLETED|0:0", f"{array}_3|FAILED|3:0", f"{killed}|CANCELLED by {uid}|0:0", f"{never}|CANCELLED by {uid}|0:0"]
    wait_until(lambda: sorted(past("-o", "JobID,State,ExitCode")) == sorted(want), 120)
    assert sorted(past("-o", "JobName,NCPUS,Timelimit,User", "-s", "CA"))[0] == "a-name-of-more-than-ten|2|01:30:00|root"
    assert len(past("-o", "JobIDRaw")) == len(set(past("-o", "jobidraw"))) == 4
    heads = accounted("sacct", "-j", array, "-X").splitlines()[:2]
    assert heads == ["JobID           JobName  Partition    Account  AllocCPUS      State ExitCode ",
                     "------------ ---------- ---------- ---------- ---------- ---------- -------- "]
    line = accounted("sacct", "-X", "-n", "-j", killed, "-o", "jobid,jobname,state,elapsedraw%4")
    assert re.fullmatch(rf"{killed:<12} a-name-of\+ CANCELLED\+ +\d+ \n", line)
    assert accounted("sacct", "-p", "-n", "-j", array, "-o", "JobID,JobName").splitlines()[:2] == [f"{array}_0|ends|", f"{array}_0.batch|batch|"]
    assert accounted("sacct", "-n", "-X", "-j", "99999") == ""
    assert "Invalid field requested" in accounted("sacct", "-o", "nonsense", code=1).err
    assert str(killed) in accounted("sacct", "-n", "-X", "-o", "jobid", "-u", "root").split()
    assert str(killed) not in accounted("sacct", "-n", "-X", "-o", "jobid", "-u", "root", "-S", "now-3hours", "-E", "now-2hours").split()


def test_nodes_and_partitions_are_listed(both):
    lines = both("sinfo").splitlines()
    assert lines[0] == "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST"
    part, avail, limit, nodes, state, node = lines[1].split()
    assert part.endswith("*") and (avail, limit, nodes) == ("up", "infinite", "1") and state in ("idle", "mix", "alloc")
    assert both("sinfo", "-s").splitlines()[0] == "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST"
    assert part in both("sinfo", "-h", "-o", "%P").split()
    assert re.fullmatch(rf"{node} +1 +\S+ (idle|mix|alloc) *", both("sinfo", "-h", "-N").splitlines()[0])
    assert re.fullmatch(rf"{node}\|\d+\|\d+\|\d+/\d+/0/\d+\|\d+:\d+:\d+", both("sinfo", "-h", "-p", part[:-1], "-o", "%N|%c|%m|%C|%z").splitlines()[0])
    assert both("sinfo", "-h", "-p", "nope") in ("", f"{'nope':<9}    up   infinite      0    n/a \n") or both("sinfo", "-h", "-p", "nope").split()[3] == "0"
    assert "Invalid node format" in both("sinfo", "-o", "%q", code=None).err


def block(text):
    """KEY=VALUE of a block of scontrol."""
    return dict(re.findall(r"(?:^|\s)([A-Z][\w/:]*)=(\S*)", text))


def test_jobs_are_shown_as_blocks(both):
    job = both.batch("#SBATCH -J shown -t 1:30:00 --mem=40 -o out.%j -n2\ntrue\n", "--hold")
    shown = block(both("scontrol", "show", "job", job))
    want = {"JobId": str(job), "JobName": "shown", "JobState": "PENDING", "TimeLimit": "01:30:00", "Requeue": "1", "Restarts": "0", "BatchFlag": "1",
            "ExitCode": "0:0", "RunTime": "00:00:00", "StartTime": "Unknown", "NumNodes": "1", "NumCPUs": "2", "NumTasks": "2", "CPUs/Task": "1",
            "MinMemoryNode": "40M", "StdErr": f"{os.path.realpath(both.work)}/out.{job}", "StdOut": f"{os.path.realpath(both.work)}/out.{job}",
            "WorkDir": os.path.realpath(both.work), "StdIn": "/dev/null", "Deadline": "N/A", "Nice": "0", "UserId": "root(0)", "BatchHost": None}
    assert {key: shown.get(key) for key in want} == want
    assert len(both("scontrol", "-o", "show", "job", job).splitlines()) == 1
    assert block(both("scontrol", "show", "jobid", "-dd", job))["JobState"] == "PENDING"
    both("scontrol", "release", job)
    over(both, job)
    assert block(both("scontrol", "show", f"job={job}"))["JobState"] == "COMPLETED"
    array = both.batch("true\n", "--array=4-6%2", "--hold")
    shown = block(both("scontrol", "show", "job", f"{array}_5"))
    assert (shown["ArrayJobId"], shown["ArrayTaskThrottle"]) == (str(array), "2") and "5" in shown["ArrayTaskId"]
    both("scancel", array)
    assert "Invalid job id specified" in both("scontrol", "show", "job", 99999, code=1).err


def test_no_key_of_a_block_is_missing(look, cluster):
    keys = {}
    for name, one in (("look", look), ("real", cluster)):
        job = one.batch("sleep 600\n", "-t", "10", "--mem=50")
        wait_until(lambda: one.state(job) == ["R"], 120)
        keys[name] = set(block(one("scontrol", "show", "job", job)))
        one("scancel", job)
    assert keys["real"] == keys["look"]


def test_jobs_that_wait_are_changed(both):
    job = both.batch("true\n", "--hold", "-t", "5")
    both("scontrol", "update", f"jobid={job}", "TimeLimit=20", "Name=other", "Nice=7")
    assert both("squeue", "-h", "-j", job, "-o", "%l %j %y") == "20:00 other 7\n"
    assert "Update of this parameter is not supported: bogus=1" in both("scontrol", "update", f"jobid={job}", "bogus=1", code=1).err
    both("scontrol", "hold", job)
    both("scontrol", "release", job)
    over(both, job)
    for word in ("hold", "release", "requeue"):
        assert "Invalid job id specified for job 99999" in both("scontrol", word, "99999", code=1).err
    assert both("scontrol", "show", "hostnames", "n[08-10],m") == "n08\nn09\nn10\nm\n"
    assert "is UP" in both("scontrol", "ping")
    node = both("sinfo", "-h", "-o", "%N").splitlines()[0]
    assert block(both("scontrol", "show", "node", node))["NodeName"] == node
    assert node in block(both("scontrol", "show", "partition"))["Nodes"]


def test_memory_is_of_a_processor_when_asked_for_so(both):
    job = both.batch("true\n", "--hold", "-n2", "--mem-per-cpu=30")
    assert both("squeue", "-h", "-j", job, "-o", "%m") == "30M\n"
    assert block(both("scontrol", "show", "job", job))["MinMemoryCPU"] == "30M"
    both("scancel", job)


def test_a_running_job_is_put_back(both):
    job = both.batch("echo $SLURM_RESTART_COUNT >>starts; [ -e stop ] || sleep 600\n")
    wait_until(lambda: os.path.exists(os.path.join(both.work, "starts")), 120)
    with open(os.path.join(both.work, "stop"), "w", encoding="utf-8"):
        pass
    both("scontrol", "requeue", job)
    if both.folder:  # Slurm holds a job for two minutes before it starts again
        over(both, job)
        assert both.file("starts") == "\n1\n"
        assert block(both("scontrol", "show", "job", job))["Restarts"] == "1"
    else:
        both("scancel", job)
    os.unlink(os.path.join(both.work, "stop"))


def test_srun_passes_output_and_code_on(both):
    out = both("srun", "sh", "-c", "echo out; echo err >&2; echo $MINE $SLURM_NTASKS $SLURM_PROCID; exit 3", code=3, env={"MINE": "a b"})
    assert out == "out\na b 1 0\n" and "err" in out.err
    out = both("srun", "-n2", "-l", "sh", "-c", "echo $SLURM_PROCID of $SLURM_NTASKS")
    assert sorted(out.splitlines()) == ["0: 0 of 2", "1: 1 of 2"]
    both("srun", "-n1", "-o", "s.%j.%t", "sh", "-c", "echo $SLURM_JOB_ID >id; echo file", cwd=both.work)
    assert both.file(f"s.{both.file('id').strip()}.0") == "file\n"
    assert both("srun", "nosuchprogram", code=None).code != 0
    assert "command" in both("srun", code=1).err.lower()


def test_srun_starts_tasks_within_a_job(both):
    job = both.batch("srun sh -c 'echo task $SLURM_PROCID of $SLURM_NTASKS >>tasks'\n"
                     "srun -n1 sh -c 'exit 7'; echo $?\n"
                     "srun -n 2 -o part.%t sh -c 'echo $SLURM_LOCALID'\n", "-n", "2", "-o", "steps")
    over(both, job)
    assert sorted(both.file("tasks").splitlines()) == ["task 0 of 2", "task 1 of 2"]
    assert "7" in both.file("steps").splitlines() and "Exited with exit code 7" in both.file("steps")
    assert (both.file("part.0"), both.file("part.1")) == ("0\n", "1\n")


def test_salloc_runs_a_command_within_a_job(both):
    out = both("salloc", "-n", "2", "sh", "-c", "srun -l sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'; echo $SLURM_JOB_ID; exit 5", code=5)
    *tasks, number = out.splitlines()
    assert sorted(tasks) == ["0: 0 of 2", "1: 1 of 2"] and f"salloc: Granted job allocation {number}\n" in out.err


# ---- the look-alikes alone

def test_salloc_gives_a_shell_at_the_terminal(look):
    shell = Terminal(os.path.join(look.folder, "salloc"), "-c", "1", env={**look.env, "SHELL": "/bin/sh", "PS1": "> "}, cwd=look.work)
    shell.shows("Granted job allocation")
    shell.type("test -t 0 && echo on a ter''minal in job $SLURM_JOB_ID; exit 3\n")
    shell.shows("on a terminal in job ")
    assert shell.end() == 3
    assert "--no-shell" in look("salloc", "--no-shell", code=1).err
    assert "--array" in look("salloc", "--array=1-2", "true", code=1).err


def test_a_script_is_what_it_was_when_it_was_submitted(look):
    path = os.path.join(look.work, "job.sh")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/bash -e\nwhile [ ! -e changed ]; do sleep 0.1; done\n" + "# padding $(x) $$(y) \"' \\\n" * 8000 +
                "printf '%s|' \"$@\" \"$BASH_VERSION\" $- >args\n")
    assert os.path.getsize(path) > 150000
    job = int(look("sbatch", "--parsable", path, "a b", "c'd\"e", "").strip())
    shown = f"{path} a b c'd\"e"
    assert shown in look.instance.cli("show", f"{job}.0").out and "padding" not in look.instance.cli("show", f"{job}.0").out
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\necho wrong >args\n")
    with open(os.path.join(look.work, "changed"), "w", encoding="utf-8"):
        pass
    over(look, job)
    words = look.file("args").split("|")
    assert words[:3] == ["a b", "c'd\"e", ""] and words[3][0].isdigit() and "e" in words[4]
    assert look("squeue", "-h", "-t", "all", "-j", job, "-o", "%o") == path + "\n"
    rows = [j for j in look.instance.api("GET", "/v1/history")["jobs"] if j["id"] == f"{job}.0"]
    assert [(j["cmd"].strip(), j["args"] or "") for j in rows] == [(shown, "")]
    wrapped = int(look("sbatch", "--parsable", "--wrap", "echo one; echo two").strip())
    assert re.search("^command +echo one; echo two$", look.instance.cli("show", f"{wrapped}.0").out, re.M)
    over(look, wrapped)


def test_output_is_there_while_the_job_runs(look):
    job = look.batch("echo first; while [ ! -e enough ]; do sleep 0.1; done\n")
    wait_until(lambda: os.path.exists(os.path.join(look.work, f"slurm-{job}.out")) and look.file(f"slurm-{job}.out") == "first\n")
    assert look.state(job) == ["R"]
    with open(os.path.join(look.work, "enough"), "w", encoding="utf-8"):
        pass
    over(look, job)


def test_a_signal_comes_before_the_time_limit(look):
    job = look.batch("echo begun; sleep 600\n", "-t", "1", "--signal=B:USR1@58")
    caught = look.batch("trap 'echo caught; exit 5' USR1; sleep 600 & wait\n", "-t", "1", "--signal=B:USR1@58")
    over(look, caught, "F")
    assert look.file(f"slurm-{caught}.out") == "caught\n"
    over(look, job, "F")


@pytest.mark.long
def test_a_job_that_takes_too_long_times_out(look):
    job = look.batch("echo begun; sleep 600\n", "-t", "1")
    after = look.batch("true\n", "-d", f"afternotok:{job}")
    over(look, job, "TO")
    over(look, after)
    assert look.file(f"slurm-{job}.out") == "begun\n"


def test_a_job_that_cannot_start_fails(look):
    job = look.batch("true\n", "-o", "no/such/folder/x")
    over(look, job, "F")
    job = look.batch("true\n", "-D", os.path.join(look.work, "nowhere"))
    wait_until(lambda: look.state(job) == ["F"], 120)
    after = look.batch("true\n", "-d", f"afterany:{job}")
    over(look, after)


def test_an_array_runs_so_many_at_a_time(look):
    job = look.batch("while [ ! -e room ]; do sleep 0.1; done\n", "--array=1-5%1")
    wait_until(lambda: sorted(look.state(job)) == ["PD"] * 4 + ["R"])
    assert look("squeue", "-h", "-j", job, "-t", "PD", "-o", "%i %r") == f"{job}_[2-5%1] JobArrayTaskLimit\n"
    with open(os.path.join(look.work, "room"), "w", encoding="utf-8"):
        pass
    over(look, job, *["CD"] * 5)


def test_options_without_equivalent_are_named(look):
    out = look("sbatch", "--exclusive", "--hint=nomultithread", "--overcommit", "-H", "--wrap", "true")
    assert "--exclusive" in out.err and "--hint" in out.err and "--overcommit" in out.err
    assert look("sbatch", "-Q", "--exclusive", "-H", "--wrap", "true").err == ""
    for option in ("-N0", "--uid=1", "--reservation=x", "--clusters=x", "--container=x", "--container-image=x", "-wa,b", "--constraint=[a*2]"):
        assert look("sbatch", option, "--wrap", "true", code=1).err, option
    assert "there is no reservation 99" in look("sbatch", "--reservation=99", "--wrap", "true", code=1).err
    assert "component" in look("sbatch", stdin="#!/bin/sh\n#SBATCH hetjob\n", code=1).err
    for bad in ("after:99999", "afterok:99999", "afterok:x", "afterok:1?afterok:2", "nonsense:1", "afterok:"):
        assert look("sbatch", "-d", bad, "--wrap", "true", code=1).err, bad
    look("scancel", "--me")


def test_a_place_that_does_not_see_the_folder(instance):
    instance.server()
    instance.agent = agents.start(instance, "filesystem_domain: elsewhere.example\ncpus: 2\npull_policy: load=10000%\n", "far")
    agents.offering(instance)
    look = LookAlikes(instance)
    os.mkdir(os.path.join(look.work, "logs"))
    job = look.batch("echo $0; echo made >made.txt; echo err >&2\n", "-o", "out.%j", "-e", os.path.join(look.work, "logs", "e"))
    over(look, job)
    instance.cli("get", str(job))
    assert look.file(f"out.{job}").endswith("slurm_script\n")
    assert (look.file("made.txt"), look.file("logs/e")) == ("made\n", "err\n")
    assert sorted(os.listdir(look.work)) == ["logs", "made.txt", f"out.{job}"]


def test_singletons_come_one_after_the_other(look):
    first = look.batch("while [ ! -e single ]; do sleep 0.1; done\n", "-J", "only", "-d", "singleton")
    second = look.batch("true\n", "-J", "only", "-d", "singleton")
    assert look("squeue", "-h", "-j", second, "-o", "%r %E") == "Dependency singleton\n"
    with open(os.path.join(look.work, "single"), "w", encoding="utf-8"):
        pass
    over(look, first)
    over(look, second)


def test_begin_and_deadline(look):
    later = look.batch("true\n", "--begin=now+1hour")
    assert look("squeue", "-h", "-j", later, "-o", "%r") == "BeginTime\n"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\n", look("squeue", "-h", "-j", later, "-o", "%S"))
    late = look.batch("sleep 600\n", "--deadline=now+2")
    wait_until(lambda: look.state(late) == ["DL"], 120)
    look("scancel", later)


def test_json_names_jobs_as_slurm_does(look):
    job = look.batch("sleep 300\n", "--array=3,4", "--hold", "-t", "5", "--comment", 'a "b"')
    jobs = json.loads(look("squeue", "--json", "-j", job))["jobs"]
    assert [(j["job_id"], j["array_job_id"], j["array_task_id"]) for j in jobs] == [(job, job, 3), (job + 100000000, job, 4)]
    assert jobs[0]["job_state"] == "PENDING" and jobs[0]["time_limit"] == 5 and jobs[0]["comment"] == 'a "b"'
    assert json.loads(look("squeue", "--json", "-j", job, "-t", "R"))["jobs"] == []
    look("scancel", job)
    wait_until(lambda: [(j["job_id"], j["state"]["current"]) for j in json.loads(look("sacct", "-X", "--json", "-j", job))["jobs"]] ==
               [(job, "CANCELLED"), (job + 100000000, "CANCELLED")])


def the_same_form(ours, theirs, path=""):
    """Every key of ours is one of Slurm's, with a value of the same kind; both may leave a value out."""
    if ours is None or theirs is None:
        return
    assert isinstance(ours, type(theirs)) or {type(ours), type(theirs)} == {int, float}, path
    if isinstance(ours, dict):
        for key, value in ours.items():
            assert key in theirs, f"{path}.{key}"
            the_same_form(value, theirs[key], f"{path}.{key}")
    elif isinstance(ours, list) and theirs:
        for value in ours:
            the_same_form(value, theirs[0], f"{path}[]")


def test_json_has_the_form_of_slurms(look, cluster):
    for commands in (look, cluster):
        commands.held = commands.batch("true\n", "--hold", "-t", "5")
        commands.told = {"sinfo": json.loads(commands("sinfo", "--json"))["nodes"],
                         "squeue": json.loads(commands("squeue", "--json", "-j", commands.held))["jobs"]}
    for name in ("sinfo", "squeue"):
        assert len(look.told[name]) == 1
        the_same_form(look.told[name][0], cluster.told[name][0], name)
    node = look.told["sinfo"][0]
    assert node["state"] in ("idle", "mixed", "allocated") and node["cpus"] == node["alloc_cpus"] + node["idle_cpus"] > 0
    assert json.loads(look("sinfo", "--json", "-n", "nowhere"))["nodes"] == []
    assert json.loads(look("scontrol", "show", "node", "--json"))["nodes"] == json.loads(look("scontrol", "--json", "show", "node", node["name"]))["nodes"]
    part, = json.loads(look("scontrol", "show", "partition", node["partitions"][0], "--json"))["partitions"]
    assert (part["name"], part["nodes"], part["total_cpus"]) == (node["partitions"][0], node["name"], node["cpus"])
    assert json.loads(look("scontrol", "show", "job", look.held, "--json"))["jobs"] == look.told["squeue"]
    assert look("scontrol", "show", "job", "99999", "--json", code=1) == ""
    for commands in (look, cluster):
        commands("scancel", commands.held)


def test_a_drained_node_is_a_flag(instance):
    instance.up()
    look = LookAlikes(instance)
    instance.cli("agents", "drain", json.loads(instance.cli("agents", "--json"))["agents"][0]["name"], "--reason", "a new disk")
    node, = json.loads(look("sinfo", "--json"))["nodes"]
    assert (node["state"], node["state_flags"]) == ("idle", ["DRAIN"]) and node["reason"].endswith(": a new disk")


def test_accounts_as_json_have_the_form_of_slurms(look, books):
    told = {}
    for commands in (look, books):
        ended = commands.batch("exit 3\n", "--array=4", "-t", "5", "--mem=20")
        past = ("sacct", "--json", "-j", ended)
        wait_until(lambda: [(job["state"]["current"], len(job["steps"])) for job in json.loads(commands(*past))["jobs"]] == [("FAILED", 1)], 120)
        told[commands], = json.loads(commands(*past))["jobs"]
    the_same_form(told[look], told[books], "sacct")
    job = told[look]
    assert job["array"]["task_id"] == 4 and job["exit_code"] == {"status": "ERROR", "return_code": 3}
    assert job["time"]["limit"] == 5 and job["time"]["end"] >= job["time"]["start"] >= job["time"]["submission"]
    assert json.loads(look("sacct", "-X", "--json", "-j", job["array"]["job_id"]))["jobs"][0]["steps"] == []


def test_scancel_chooses(look):
    a, b, c = (look.batch("true\n", "--hold", "-J", name) for name in ("one", "two", "three"))
    look("scancel", "-n", "one", "--me")
    wait_until(lambda: look.state(a) == ["CA"])
    look("scancel", "-t", "R", "-u", "root")
    assert look.state(b) == ["PD"]
    look("scancel", "-u", "root", "-t", "PD", "-n", "two,three")
    wait_until(lambda: look.state(b) == ["CA"] and look.state(c) == ["CA"])
    assert "No job identification" in look("scancel", code=1).err
    many = look.batch("true\n", "--hold", "--array=1-5000")
    more = look.batch("true\n", "--hold")
    look("scancel", "-u", "nobody,root")
    wait_until(lambda: look("squeue", "-h", "-j", f"{many},{more}") == "", 120)


def test_signals_reach_jobs(look):
    job = look.batch("trap 'echo caught; exit 9' USR2; touch ready; while :; do sleep 0.1; done\n")
    wait_until(lambda: os.path.exists(os.path.join(look.work, "ready")) and look.state(job) == ["R"])  # the server knows that it runs
    look("scancel", "-s", "USR2", job)
    over(look, job, "F")
    assert look.file(f"slurm-{job}.out").endswith("caught\n")
    assert "nosuch" in look("scancel", "-s", "nosuch", job, code=1).err


def test_nextflow_reads_the_queue(look):
    """The command lines and the patterns of Nextflow's executor for Slurm."""
    script = os.path.join(look.work, ".command.run")
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/bash\n#SBATCH -J nf-a_(1)\n#SBATCH -o {look.work}/.command.log\n#SBATCH --no-requeue\n#SBATCH --signal B:USR2@30\n"
                "#SBATCH -c 2\n#SBATCH -t 01:00:00\n#SBATCH --mem 64M\necho nf $SLURM_CPUS_PER_TASK\nsleep 600\n")
    job = re.search(r"Submitted batch job (\d+)", look("sbatch", ".command.run"))[1]

    def states():
        return dict(line.split() for line in look("squeue", "--noheader", "-o", "%i %t", "-t", "all", "-u", "root").splitlines())
    wait_until(lambda: states().get(job) == "R")
    wait_until(lambda: look.file(".command.log") == "nf 2\n")
    look("scancel", job)
    wait_until(lambda: states().get(job) == "CA")
