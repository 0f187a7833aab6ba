"""libdrmaa: DRMAA 1.0 as programs use it, by Debian's Python module for it, by Snakemake, and from C."""
import http.server
import json
import os
import socketserver
import subprocess
import textwrap
import threading

import pytest


@pytest.fixture
def library(build):
    path = f"{build}/src/cli/libdrmaa.so.1"
    assert os.path.exists(path)
    return path


def env_of(instance, library):
    return {**instance.env, "DRMAA_LIBRARY_PATH": library, "PYTHONPATH": ""}


def python(instance, library, program, timeout=240):
    p = subprocess.run(["/usr/bin/python3", "-c", "import drmaa, drmaa.errors, os, threading\n" + textwrap.dedent(program)], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", env=env_of(instance, library), cwd=instance.base,
                       timeout=timeout, check=False)
    assert p.returncode == 0, p.stdout
    return p.stdout


def test_one_job(shared, library):
    said = python(shared, library, """
        with drmaa.Session() as s:
            t = s.createJobTemplate()
            t.remoteCommand, t.args = "/bin/sh", ["-c", 'echo "$A from $0"; pwd; exit 3', "it's me"]
            t.jobEnvironment = {"A": "a b"}
            t.workingDirectory, t.outputPath, t.joinFiles, t.jobName = os.getcwd(), ":" + os.getcwd() + "/one.out", True, "by drmaa"
            t.nativeSpecification = 'request_memory = 64MB; +Group = "a;b"'
            job = s.runJob(t)
            info = s.wait(job, drmaa.Session.TIMEOUT_WAIT_FOREVER)
            print(job, info.jobId, info.hasExited, info.exitStatus, info.wasAborted, s.jobStatus(job), "ru_wallclock" in info.resourceUsage)
            try:
                s.wait(job, 0)
            except drmaa.InvalidJobException as e:
                print("again:", e)
    """)
    job = said.split()[0]
    assert said == (f"{job} {job} True 3 False failed True\n"
                    f"again: code 18: there is no job {job} that has not been waited for\n")
    with open(f"{shared.base}/one.out", encoding="utf-8") as f:
        assert f.read() == f"a b from it's me\n{shared.base}\n"
    ad = shared.api("GET", f"/v1/jobs/{job}")["ad"]
    assert (ad["RequestMemory"], ad["Group"], ad["JobBatchName"]) == (64, "a;b", "by drmaa")


def test_bulk_jobs_are_one_request(shared, library):
    said = python(shared, library, """
        with drmaa.Session() as s:
            t = s.createJobTemplate()
            t.remoteCommand, t.args = "sh", ["-c", "exit $0", drmaa.JobTemplate.PARAMETRIC_INDEX]
            t.outputPath = ":" + drmaa.JobTemplate.WORKING_DIRECTORY + "/bulk." + drmaa.JobTemplate.PARAMETRIC_INDEX
            t.workingDirectory = os.getcwd()
            jobs = s.runBulkJobs(t, 2, 8, 2)
            s.synchronize(jobs, drmaa.Session.TIMEOUT_WAIT_FOREVER, False)
            print(len(set(j.split(".")[0] for j in jobs)), [s.wait(j, 0).exitStatus for j in jobs])
            try:
                s.wait(drmaa.Session.JOB_IDS_SESSION_ANY, 0)
            except drmaa.InvalidJobException:
                print("all given")
    """)
    assert said == "1 [2, 4, 6, 8]\nall given\n"
    assert sorted(n for n in os.listdir(shared.base) if n.startswith("bulk.")) == ["bulk.2", "bulk.4", "bulk.6", "bulk.8"]


def test_control_and_states(shared, library):
    said = python(shared, library, """
        with drmaa.Session() as s:
            def ran(state, words=("sleep", "600")):
                t = s.createJobTemplate()
                t.remoteCommand, t.args, t.jobSubmissionState = words[0], list(words[1:]), state
                return s.runJob(t)
            def refused(job, action):
                try:
                    s.control(job, action)
                    return "done"
                except drmaa.errors.DrmaaException as e:
                    return type(e).__name__
            held = ran(drmaa.JobSubmissionState.HOLD_STATE)
            print(s.jobStatus(held), refused(held, drmaa.JobControlAction.SUSPEND), refused(held, drmaa.JobControlAction.RESUME))
            s.control(held, drmaa.JobControlAction.RELEASE)
            while s.jobStatus(held) != drmaa.JobState.RUNNING:
                pass
            print(refused(held, drmaa.JobControlAction.RELEASE), refused(held, drmaa.JobControlAction.HOLD))
            s.control(held, drmaa.JobControlAction.SUSPEND)
            print(s.jobStatus(held))
            s.control(held, drmaa.JobControlAction.RESUME)
            print(s.jobStatus(held))
            try:
                s.wait(held, 1)
            except drmaa.ExitTimeoutException:
                print("it runs")
            other = ran(drmaa.JobSubmissionState.ACTIVE_STATE)
            s.control(drmaa.Session.JOB_IDS_SESSION_ALL, drmaa.JobControlAction.TERMINATE)
            infos = [s.wait(drmaa.Session.JOB_IDS_SESSION_ANY, drmaa.Session.TIMEOUT_WAIT_FOREVER) for _ in (held, other)]
            print(sorted(i.jobId for i in infos) == sorted([held, other]), all(i.wasAborted for i in infos), s.jobStatus(held))
            killed = ran(drmaa.JobSubmissionState.ACTIVE_STATE, ("sh", "-c", "kill -TERM $$"))
            info = s.wait(killed, drmaa.Session.TIMEOUT_WAIT_FOREVER)
            print(info.hasSignal, info.terminatedSignal, info.hasExited)
    """)
    assert said.splitlines() == ["user_on_hold SuspendInconsistentStateException ResumeInconsistentStateException",
                                 "ReleaseInconsistentStateException HoldInconsistentStateException",
                                 "user_suspended", "running", "it runs", "True True failed", "True SIGTERM False"]


def test_what_the_system_holds_has_failed(shared, library):
    """Nobody behind DRMAA can release a job whose input is missing: it ends, and says why."""
    said = python(shared, library, """
        with drmaa.Session() as s:
            t = s.createJobTemplate()
            t.remoteCommand, t.inputPath = "/bin/cat", ":/no/such/input"
            job = s.runJob(t)
            info = s.wait(job, drmaa.Session.TIMEOUT_WAIT_FOREVER)
            print(job, info.wasAborted, info.hasExited, s.jobStatus(job))
    """)
    job, *rest = said.split()
    assert rest == ["True", "False", "failed"]
    assert "/no/such/input" in shared.api("GET", f"/v1/jobs/{job}")["ad"]["RemoveReason"]


def test_a_template_is_refused_with_a_reason(shared, library):
    said = python(shared, library, """
        def tell(do):
            try:
                do()
            except drmaa.errors.DrmaaException as e:
                print(type(e).__name__, str(e).split(": ", 1)[1])
        with drmaa.Session() as s:
            t = s.createJobTemplate()
            tell(lambda: s.runJob(t))
            tell(lambda: setattr(t, "outputPath", "/no/colon"))
            t.remoteCommand = "/bin/true"
            t.nativeSpecification = "request_memory = (1 +"
            tell(lambda: s.runJob(t))
            t.nativeSpecification = "queue 5"
            tell(lambda: s.runJob(t))
            t.nativeSpecification = "request_cpus = 1"
            tell(lambda: s.runBulkJobs(t, 5, 1, 1))
            tell(lambda: s.jobStatus("999999.0"))
            tell(lambda: s.jobStatus("not an id"))
            tell(lambda: drmaa.Session.initialize())
        tell(lambda: drmaa.Session.initialize("/no/such/folder"))
        tell(lambda: drmaa.Session.initialize("http://unsafe"))
        tell(lambda: drmaa.Session.exit())
    """)
    lines = said.splitlines()
    assert [line.split()[0] for line in lines] == [
        "DeniedByDrmException", "InvalidAttributeFormatException", "DeniedByDrmException", "DeniedByDrmException", "InvalidArgumentException",
        "InvalidJobException", "InvalidJobException", "AlreadyActiveSessionException", "DrmCommunicationException",
        "InvalidContactStringException", "NoActiveSessionException"], said
    assert "drmaa_remote_command" in lines[0] and "request_memory" in lines[2] and "queue" in lines[3] and "/no/such/folder" in lines[8]


def test_threads_share_a_session(shared, library):
    said = python(shared, library, """
        s = drmaa.Session()
        s.initialize()
        codes, cut = [], []
        def run(n):
            t = s.createJobTemplate()
            t.remoteCommand, t.args = "sh", ["-c", f"exit {n}"]
            for _ in range(5):
                codes.append(s.wait(s.runJob(t), drmaa.Session.TIMEOUT_WAIT_FOREVER).exitStatus == n)
        threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(len(codes), all(codes))
        # The end of the session ends calls that wait; the job goes on.
        t = s.createJobTemplate()
        t.remoteCommand, t.args = "sleep", ["600"]
        job = s.runJob(t)
        def wait():
            try:
                s.wait(job, drmaa.Session.TIMEOUT_WAIT_FOREVER)
            except drmaa.NoActiveSessionException:
                cut.append(True)
        waiting = threading.Thread(target=wait)
        waiting.start()
        s.exit()
        waiting.join()
        s.initialize()
        print(cut, s.jobStatus(job) in (drmaa.JobState.RUNNING, drmaa.JobState.QUEUED_ACTIVE))
        s.control(job, drmaa.JobControlAction.TERMINATE)
        print(s.wait(job, drmaa.Session.TIMEOUT_WAIT_FOREVER).wasAborted)
        s.exit()
    """)
    assert said == "30 True\n[True] True\nTrue\n"


def test_a_server_that_is_killed_meanwhile(instance, library):
    """What was submitted is there afterwards, and a session that was told of the failure goes on."""
    instance.server()
    program = textwrap.dedent("""
        s = drmaa.Session()
        s.initialize()
        t = s.createJobTemplate()
        t.remoteCommand = "/bin/true"
        job = s.runJob(t)
        print(job, flush=True)
        sys.stdin.readline()
        for do in (lambda: s.jobStatus(job), lambda: s.runJob(t), lambda: s.wait(job, 0)):
            try:
                do()
            except drmaa.DrmCommunicationException:
                print("gone", flush=True)
        sys.stdin.readline()
        print(s.jobStatus(job), flush=True)
        s.control(job, drmaa.JobControlAction.TERMINATE)
        print(s.wait(job, drmaa.Session.TIMEOUT_WAIT_FOREVER).wasAborted, flush=True)
    """)
    with subprocess.Popen(["/usr/bin/python3", "-c", "import drmaa, sys\n" + program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
                          env=env_of(instance, library)) as p:
        assert p.stdout.readline() == "1.0\n"
        instance.kill_server()
        p.stdin.write("\n")
        p.stdin.flush()
        assert [p.stdout.readline() for _ in range(3)] == ["gone\n"] * 3
        instance.server()
        out, _ = p.communicate("\n", timeout=120)
        assert (p.returncode, out) == (0, "queued_active\nTrue\n")


@pytest.mark.long
def test_snakemake(shared, library):
    folder = f"{shared.base}/workflow"
    os.mkdir(folder)
    with open(f"{folder}/Snakefile", "w", encoding="utf-8") as f:
        f.write(textwrap.dedent("""
            rule all:
                input: "sum.txt"
            rule part:
                output: "part.{n}"
                shell: "echo {wildcards.n} > {output}"
            rule total:
                input: expand("part.{n}", n=[1, 2, 3])
                output: "sum.txt"
                shell: "cat {input} > {output}"
        """))
    p = subprocess.run(["/usr/bin/snakemake", "--drmaa", " request_cpus = {threads}", "--jobs", "4", "--latency-wait", "20"], cwd=folder,
                       env={**env_of(shared, library), "HOME": folder, "PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=500, check=False)
    assert p.returncode == 0, p.stdout
    with open(f"{folder}/sum.txt", encoding="utf-8") as f:
        assert f.read() == "1\n2\n3\n"
    assert "Submitted DRMAA job" in p.stdout


def test_from_c(shared, library, tmp_path):
    """The header compiles alone, with every warning, and the library has what it declares."""
    source = tmp_path / "a.c"
    header = f"{os.path.dirname(__file__)}/../../src/cli/drmaa"
    source.write_text(textwrap.dedent("""
        #include <drmaa.h>
        #include <stdio.h>
        int main(void)
        {
                char why[DRMAA_ERROR_STRING_BUFFER], id[DRMAA_JOBNAME_BUFFER], value[DRMAA_ATTR_BUFFER];
                const char *argv[] = {"7", NULL};
                drmaa_job_template_t *t;
                drmaa_attr_names_t *names;
                int stat, code, n;

                if (drmaa_init(NULL, why, sizeof(why)) != DRMAA_ERRNO_SUCCESS)
                        return printf("%s", why), 1;
                drmaa_allocate_job_template(&t, NULL, 0);
                drmaa_set_attribute(t, DRMAA_REMOTE_COMMAND, "sleep", NULL, 0);
                drmaa_set_vector_attribute(t, DRMAA_V_ARGV, argv, NULL, 0);
                argv[0] = "0";
                drmaa_set_vector_attribute(t, DRMAA_V_ARGV, argv, NULL, 0);
                drmaa_get_attribute(t, DRMAA_REMOTE_COMMAND, value, 3, NULL, 0);
                drmaa_get_attribute_names(&names, NULL, 0);
                drmaa_get_num_attr_names(names, &n);
                drmaa_release_attr_names(names);
                if (drmaa_run_job(id, sizeof(id), t, why, sizeof(why)) != DRMAA_ERRNO_SUCCESS)
                        return printf("%s", why), 1;
                drmaa_delete_job_template(t, NULL, 0);
                if (drmaa_wait(id, NULL, 0, &stat, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, why, sizeof(why)) != DRMAA_ERRNO_SUCCESS)
                        return printf("%s", why), 1;
                drmaa_wexitstatus(&code, stat, NULL, 0);
                printf("%s %d %d %s", value, n > 10, code, drmaa_strerror(DRMAA_ERRNO_SUCCESS));
                return drmaa_exit(NULL, 0);
        }
    """))
    program = tmp_path / "a"
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{header}", "-o", program, source, library,
                    f"-Wl,-rpath,{os.path.dirname(library)}"], check=True)
    p = subprocess.run([program], env=shared.env, stdout=subprocess.PIPE, encoding="utf-8", timeout=120, check=False)
    assert (p.returncode, p.stdout) == (0, "sl 1 0 success")


class Endless(http.server.BaseHTTPRequestHandler):
    """A server whose list of one job has a page after each page."""

    def do_GET(self):
        row = {"id": "7.0", "state": "held", "hold_code": 1}
        said = {"jobs": [row], "next": "7.0"} if self.path.startswith("/v1/jobs?") else row if "/v1/jobs/" in self.path else {"seen": "1"}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def test_a_list_of_jobs_that_does_not_end(tmp_path, library):
    """Who waits for a job there is told, and can end the session."""
    (tmp_path / "server.json").write_text(json.dumps({"api": f"unix:{tmp_path}/api.sock"}), encoding="utf-8")
    with UnixServer(str(tmp_path / "api.sock"), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        program = textwrap.dedent(f"""
            import drmaa, drmaa.errors
            with drmaa.Session({str(tmp_path)!r}) as s:
                try:
                    s.wait("7.0", drmaa.Session.TIMEOUT_WAIT_FOREVER)
                except drmaa.errors.DrmCommunicationException as e:
                    print(e)
        """)
        p = subprocess.run(["/usr/bin/python3", "-c", program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           encoding="utf-8", env={**os.environ, "DRMAA_LIBRARY_PATH": library}, timeout=60, check=False)
        server.shutdown()
    assert "the server's list of jobs does not end" in p.stdout, p.stdout
