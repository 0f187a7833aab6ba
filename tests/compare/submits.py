"""The submit files of submit/, as condor_submit -dry-run and as Drover's queue have them: jobs, and their attributes."""
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

import answers

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "submit")
JOBS = os.path.join(answers.DATA, "condor-jobs.json")
CLUSTER = 990017  # in what is recorded
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}  # of submits
# What condor_submit writes into every job, or what is about the submit itself.
FIXED = set("""ClusterId ProcId JobStatus QDate Owner MyType TargetType MaxHosts MinHosts NumCkpts DiskUsage ImageSize ExitStatus TransferIn NumRestarts
    TransferErr TransferOut CurrentHosts ExitBySignal NumJobStarts RemoteSysCpu CommittedTime CondorVersion JobSubmitFile RemoteUserCpu SubmitVersion
    CondorPlatform ExecutableSize NumSystemHolds JobSubmitMethod TotalSuspensions CommittedSlotTime NumJobCompletions CumulativeSlotTime
    LastSuspensionTime RemoteWallClockTime TransferInputSizeMB EnteredCurrentStatus CumulativeRemoteSysCpu CommittedSuspensionTime
    CumulativeRemoteUserCpu CumulativeSuspensionTime FileSystemDomain CompletionDate StreamOut StreamErr ExecutableSizeMB LastJobStatus
    User LastMatchTime JobMaterializeDigestFile TotalSubmitProcs HoldReasonCode StreamIn StreamOut StreamErr EnvDelim
    ContainerImageSource WantDockerImage WantFTOnCheckpoint SuccessCheckpointExitCode ScheddInterval DeferralPrepTime JobRequiresSandbox
    WantTransferPluginMethods""".lower().split())
# A default that Drover has by not saying it.
DEFAULTS = {"In": '"/dev/null"', "Out": '"/dev/null"', "Err": '"/dev/null"', "Rank": "0.0", "JobPrio": "0", "JobNotification": "0",
            "LeaveJobInQueue": "false", "JobLeaseDuration": "2400", "RequestMemory": "128", "RequestCpus": "1", "WhenToTransferOutput": '"ON_EXIT"',
            "RequestDisk": "MAX({1024,(TransferInputSizeMB+1)*1.25})*1024", "Environment": '""', "Arguments": '""', "NiceUser": "false",
            "ShouldTransferFiles": '"IF_NEEDED"', "WantDocker": "true", "WantContainer": "true", "EncryptExecuteDirectory": "false",
            "TransferOutput": '""', "OnExitHold": "false", "KillSig": '"SIGTERM"'}
DEFAULTS = {name.lower(): value for name, value in DEFAULTS.items()}
OWN_CLAUSE = re.compile(r"^\(*(TARGET\.)?(Arch==|OpSys==|Disk>=RequestDisk|Memory>=RequestMemory|Cpus>=RequestCpus|HasFileTransfer|FileSystemDomain==|"
                        r"HasDocker|HasContainer|HasDockerURL|GPUs>=|countMatches\(MY\.RequireGPUs|versionGE\(split\(TARGET\.CondorVersion|HasSIF|HasSandboxImage|"
                        r"has_ssh_to_job|Has[A-Za-z]*Image|HasSelfCheckpoint|HasJobDeferral|time\(\)|\(time\(\)|versioncmp\(split\(TARGET\.CondorVersion|stringListIMember\(.(file|https?).,TARGET\.HasFileTransferPluginMethods|Machine==MY\.SubmitHost$|Licences>=|TotalLicences|WalltimeMax)", re.I)


def canonical(value):
    """An expression without its layout: white space, outer parentheses, spelling of words."""
    out = ""
    for part in re.split(r'("(?:[^"\\]|\\.)*")', value):
        out += part if part.startswith('"') else re.sub(r"\s+", "", re.sub(r"\bisnt\b", "=!=", re.sub(r"\bis\b", "=?=", part)))
    out = re.sub(r"(?<![\w.\"])\d+\.\d+(E[-+]?\d+)?", lambda m: repr(float(m[0])), out)
    out = re.sub(r"\bTARGET\.", "TARGET.", out, flags=re.I)
    out = re.sub(r"\b(true|false|undefined|error)\b", lambda m: m[0].lower(), out, flags=re.I)
    while out.startswith("(") and closing(out) == len(out) - 1:
        out = out[1:-1]
    return out


def closing(text):
    depth = 0
    for at, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return at
    return -1


def clauses(requirements):
    """The clauses that the user has written."""
    parts, depth, start, quoted = [], 0, 0, False
    text = canonical(requirements)
    for at, c in enumerate(text):
        quoted ^= c == '"'
        depth += 0 if quoted else (c in "([{") - (c in ")]}")
        if depth == 0 and not quoted and text.startswith("&&", at):
            parts.append(text[start:at])
            start = at + 2
    parts.append(text[start:])
    parts = [canonical(part) for part in parts]
    flat = []
    for part in parts:
        flat += clauses(part) if "&&" in part and part != text else [part]
    return [part for part in flat if not OWN_CLAUSE.match(part)]


def words(job):
    """The arguments."""
    if "arguments" in job:
        return v2(text_of(job["arguments"]))
    return text_of(job.get("args", '""')).split()


def environment(job):
    if "env" in job:
        pairs = [pair for pair in text_of(job["env"]).split(";") if pair]
    else:
        pairs = v2(text_of(job.get("environment", '""')))
    return sorted(pair for pair in pairs if not pair.startswith(("CONDOR_CONFIG=", "DROVER_DIR=", "HOME=", "PATH=", "PWD=", "OLDPWD=", "SHLVL=", "_=")))


def v2(text):
    """Words in the new syntax: single quotes, doubled within."""
    out, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        word = ""
        while at < len(text) and not text[at].isspace():
            if text[at] != "'":
                word += text[at]
                at += 1
                continue
            at += 1
            while at < len(text):
                if text[at] == "'":
                    if text[at + 1:at + 2] != "'":
                        break
                    at += 1
                word += text[at]
                at += 1
            at += 1
        out.append(word)
    return out


def text_of(value):
    """The text of a string in the old syntax, where a backslash escapes a quote only."""
    return value[1:-1].replace('\\"', '"') if value.startswith('"') else value


def theirs(root, folder, name, cluster):
    """The jobs that condor_submit makes, or its error."""
    command = f"cd {shlex.quote(folder)} && CONDOR_CONFIG={folder}/condor_config condor_submit -dry-run:cluster={cluster} - {name}.sub"
    p = subprocess.run((["chroot", root] if root else []) + ["/bin/sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       check=False, env=ENVIRONMENT)
    if p.returncode != 0:
        return (p.stdout + p.stderr).strip().split("\n")[-1]
    jobs, cluster, job = [], {}, {}
    for line in p.stdout.split("\n"):
        if line == ".":
            if "clusterid" in job:
                cluster = job
            jobs.extend(nodes({**cluster, **job}))
            job = {}
        elif re.match(r"\w+=", line):
            attribute, value = line.split("=", 1)
            job[attribute.lower()] = value
    return jobs


def nodes(job):
    """Its nodes, if it is a parallel job: HTCondor puts a node's number in when it starts it, and each is a job here."""
    many = int(job["minhosts"]) if job["jobuniverse"] == "11" else 1
    return [{attribute: value.replace("#pArAlLeLnOdE#", str(n)) for attribute, value in job.items()} for n in range(many)]


class Drover:
    """A server without an agent, and the look-alikes of HTCondor's commands."""

    def __init__(self, build, folder):
        self.cluster = 0  # of the last submit
        self.folder, self.condor = folder, os.path.join(build, "bin", "condor")
        self.env = {**ENVIRONMENT, "DROVER_DIR": os.path.join(folder, "instance")}
        self.up = subprocess.Popen([os.path.join(build, "bin", "drover"), "up", "--no-agent"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if not self.up.stdout.readline().startswith("ready"):
            raise RuntimeError("drover up did not start")

    def stop(self):
        self.up.send_signal(signal.SIGINT)
        self.up.wait()

    def run(self, command, *args):
        return subprocess.run([os.path.join(self.condor, "condor_" + command), *args], cwd=self.folder, env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)

    def jobs(self, name):
        p = self.run("submit", name + ".sub")
        if p.returncode != 0:
            return p.stderr.strip().split("\n")[-1]
        cluster = self.cluster = int(re.search(r"cluster (\d+)", p.stdout)[1])
        ads = json.loads(self.run("q", str(cluster), "-long:json").stdout)
        self.run("rm", str(cluster))
        return [{attribute.lower(): value_text(value) for attribute, value in ad.items()} for ad in sorted(ads, key=lambda ad: ad["ProcId"])]


def value_text(value):
    """A value of JSON in the old syntax of ClassAds."""
    if isinstance(value, str) and value.startswith("/Expr("):
        return value[6:-2].replace("\\\\", "\\")
    if isinstance(value, str):
        return '"' + value.replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "{" + ",".join(value_text(one) for one in value) + "}"
    return "undefined" if value is None else json.dumps(value)


def shown(job, attribute, folder):
    """What is compared of an attribute."""
    value = job.get(attribute, DEFAULTS.get(attribute, "undefined"))
    if attribute == "requirements":
        return clauses(value)
    if attribute in ("cmd", "userlog", "iwd"):
        path = text_of(value) if value != "undefined" else ""
        return path and os.path.normpath(os.path.join(folder if attribute == "cmd" else text_of(job["iwd"]), path))
    if attribute in ("transferinput", "transferoutput"):
        return [one.strip() for one in text_of(value).split(",") if one.strip()]
    if attribute == "killsig":
        name = text_of(value)
        return int(name) if name.isdigit() else signal.Signals.__members__.get(name, name)
    value = canonical(value)
    try:
        return float(value)
    except ValueError:
        return value


def job_differences(a, b, folder):
    """(attribute, theirs, ours)."""
    for what, of in (("arguments", words), ("environment", environment)):
        if of(a) != of(b):
            yield what, of(a), of(b)
    for attribute in sorted((set(a) | {"requirements"}) - FIXED - {"args", "arguments", "env", "environment"}):
        x, y = shown(a, attribute, folder), shown(b, attribute, folder)
        if x != y:
            yield attribute, x, y


def file_differences(a, b, folder):
    if isinstance(a, str) or isinstance(b, str):
        if not (isinstance(a, str) and isinstance(b, str)):
            yield "refused", a if isinstance(a, str) else "takes it", b if isinstance(b, str) else "takes it"
        return
    if len(a) != len(b):
        yield "count", len(a), len(b)
    seen = set()
    for one, other in zip(a, b):
        for attribute, x, y in job_differences(one, other, folder):
            if attribute not in seen:
                seen.add(attribute)
                yield attribute, x, y


def differing(build, folder, jobs_of):
    """(file, attribute, theirs, ours, reason or None) of all submit files, which are in `folder`; jobs_of(name, cluster) is what
    condor_submit makes of one."""
    known = answers.Known()
    drover = Drover(build, folder)
    try:
        for path in sorted(glob.glob(os.path.join(folder, "*.sub"))):
            name = os.path.basename(path)[:-4]
            ours = drover.jobs(name)
            for attribute, x, y in file_differences(jobs_of(name, drover.cluster), ours, folder):
                yield name, attribute, x, y, known.of_submit(name, attribute)
    finally:
        drover.stop()


class Folder:
    """The submit files and what they name, in a folder below /tmp that is there in HTCondor's root as well."""

    def __init__(self, root=""):
        self.root = root

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="compare-", dir="/tmp")
        shutil.copytree(FILES, self.path, dirs_exist_ok=True)
        with open(os.path.join(self.path, "condor_config"), "w", encoding="utf-8") as f:
            f.write(f"LOCAL_DIR={self.path}\nLOG={self.path}\nSPOOL={self.path}\n")
        if self.root:
            shutil.copytree(self.path, self.root + self.path)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
        if self.root:
            shutil.rmtree(self.root + self.path, ignore_errors=True)


def recorded(folder):
    """What condor_submit has made once of each file, as jobs_of."""
    with open(JOBS, encoding="utf-8") as f:
        files = json.load(f)

    def jobs_of(name, cluster):
        return json.loads(json.dumps(files[name]).replace("@FOLDER@", folder).replace(str(CLUSTER), str(cluster)))

    return jobs_of


def record(root):
    """Writes what recorded() reads: facts, without what is the same in every job."""
    with Folder(root) as folder:
        files = {}
        for path in sorted(glob.glob(os.path.join(folder, "*.sub"))):
            name = os.path.basename(path)[:-4]
            jobs = theirs(root, folder, name, CLUSTER)
            if not isinstance(jobs, str):
                jobs = [{attribute: value for attribute, value in job.items() if attribute not in FIXED} for job in jobs]
            files[name] = jobs
        text = json.dumps(files, indent=0, sort_keys=True).replace(folder, "@FOLDER@")
    with open(JOBS, "w", encoding="utf-8") as f:
        f.write(text + "\n")


def compare(root, build):
    """Prints what differs; true: all of it is known."""
    unknown = 0
    with Folder(root) as folder:
        for name, attribute, x, y, reason in differing(build, folder, lambda name, cluster: theirs(root, folder, name, cluster)):
            unknown += reason is None
            print(f"{name}: {attribute}: {'known: ' + reason if reason else 'unknown'}\n        HTCondor {x}\n        Drover   {y}")
    print(f"{len(glob.glob(os.path.join(FILES, '*.sub')))} submit files, {unknown} unknown differences")
    return unknown == 0
