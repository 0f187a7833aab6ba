"""What the settings have for requests under a name: who may use what, what comes of it, and a change without a restart."""
import json
import os
import re
import signal
import subprocess

import agents
from drover import sh, wait_until

QUEUES = """
queues:
  - {name: short, cpus: 4, memory: 512MiB}
  - {name: long, cpus: 4, memory: 512MiB}
  - {name: group, cpus: 4, memory: 512MiB}
"""
SETTINGS = """
virtual_queues:
  short: {{places: 'TARGET.QueueName == "short"', time_limit: 90m, max_memory: 440M, search_order: 1}}
  long: {{places: 'TARGET.QueueName == "long"', search_order: 2}}
  group: {{dispatcher: local, users: ["*@elsewhere"]}}
dispatchers:
  local: {{places: 'TARGET.QueueName == "group"'}}
policies:
  resonance: {{placement: passive, queues: [long, short]}}
  spread: {{placement: passive, queues: [plain]}}
  theirs: {{placement: passive, users: [nobody@elsewhere]}}
applications:
  greet: {{command: /bin/sh, environment: {{GREETING: 'good day', NAME: you}}}}
initializers:
  careful: {{attributes: {{Mark: '"careful"'}}, policy: resonance}}
defaults: {{{defaults}}}
{more}"""
TIMED = """  hour: {places: 'TARGET.QueueName == "short"', time_limit: 1h}
  day: {places: 'TARGET.QueueName == "long"', time_limit: 2h}
  others: {places: 'TARGET.QueueName == "long"', time_limit: 1m, users: ["*@elsewhere"]}
"""
PLAIN = "  plain: {places: 'TARGET.QueueName =!= \"group\"'}\n"


def settings(instance, defaults, more=""):
    text = SETTINGS.format(defaults=defaults, more=more).replace("dispatchers:\n", PLAIN + "dispatchers:\n", 1)
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def where(instance, request):
    return sorted(j["queue"] for j in instance.history(request))


def free(instance):
    """Whether all queues are free."""
    return all(q["offer"] and q["free"]["cpus"] == 4 for q in agents.queues(instance, 3).values())


def ran(instance, text, *args):
    """Where the jobs ran, submitted when all queues are free."""
    wait_until(lambda: free(instance))
    return where(instance, instance.run(text, *args))


def refused(instance, text, *args):
    out = instance.cli("submit", *args, "-", stdin=text, code=None)
    assert out.code != 0, out
    return out.err


def test_named_settings(instance):
    settings(instance, "initializer: careful")
    server = instance.server()
    agents.start(instance, QUEUES)
    agents.queues(instance, 3)

    # the default: an initializer, which names a policy, whose queues are tried in their order
    assert ran(instance, sh("exit 0", queue="queue 6")) == ["long"] * 2 + ["short"] * 4
    request = 1
    shown = instance.api("GET", f"/v1/history?id={request}&attributes=Mark,JobPolicy,PlacementPolicy,JobInitializer")["jobs"][0]["ad"]
    assert shown.items() >= {"Mark": "careful", "JobPolicy": "resonance", "PlacementPolicy": "passive", "JobInitializer": "careful"}.items(), shown
    # a job that does not fit into a queue of the policy goes to the next
    assert ran(instance, sh("exit 0", allowed_execute_duration="7200")) == ["long"]
    # by name: equals take turns; and without any
    assert ran(instance, sh("exit 0", queue="queue 6"), "--policy", "spread") == ["long"] * 3 + ["short"] * 3
    assert ran(instance, sh("exit 0", job_initializer="none", requirements='TARGET.QueueName == "group"')) == ["group"]
    assert ran(instance, sh("exit 0", job_virtual_queue="short", job_policy="none")) == ["short"]
    # an application: its program and its environment, in which the job's own variables win
    out = os.path.join(instance.work, "greeting")
    instance.run(f"job_application = greet\narguments = \"-c 'echo $GREETING $NAME'\"\nenvironment = NAME=Ann\noutput = {out}\n"
                 "request_memory = 32 MB\nqueue\n")
    assert instance.read("greeting") == "good day Ann\n"
    # an earlier request goes where it went
    again = instance.json("resubmit", str(request))["id"]
    instance.wait(again)
    assert set(where(instance, again)) <= {"long", "short"}

    # who may use what
    assert "you may not use the policy 'theirs'" in refused(instance, sh("exit 0"), "--policy", "theirs")
    assert "you may not use the virtual_queue 'group'" in refused(instance, sh("exit 0", job_virtual_queue="group"))
    assert "there is no policy 'nowhere' here" in refused(instance, sh("exit 0"), "--policy", "nowhere")
    assert "there is no application 'x' here" in refused(instance, "job_application = x\nqueue\n")
    assert "you may not use the policy 'theirs'" in refused(instance, sh("exit 0"), "--policy", "theirs", "--dry-run")
    held = instance.submit(sh("exit 0"), "--hold")
    edit = instance.cli("edit", str(held), 'JobPolicy="theirs"', code=None)
    assert edit.code != 0 and "JobPolicy cannot be changed" in edit.err, edit.err
    instance.cli("rm", str(held))

    # what each policy would do
    wait_until(lambda: free(instance))
    dry = instance.cli("submit", "--dry-run", "--policy", "spread", "-", stdin=sh("exit 0", requirements='TARGET.QueueName =!= "group"')).out
    assert re.search(r"^passive +yes +n1/(short, n1/long|long, n1/short)$", dry, re.M), dry
    assert re.search(r"^cost +- +n1/", dry, re.M) and re.search(r"^queue_monitor +- +n1/", dry, re.M), dry
    dry = instance.cli("submit", "--dry-run", "--policy", "resonance", "-", stdin=sh("exit 0")).out
    assert re.search(r"^cost +- +n1/short, n1/long$", dry, re.M), dry

    # what there is, and for whom
    shown = {(p["kind"], p["name"]): p for p in instance.json("config", "show")["presets"]}
    assert shown["initializer", "careful"]["default"] and not shown["policy", "theirs"]["may_use"]
    assert shown["policy", "resonance"]["queues"] == ["short", "long"]
    table = instance.cli("config", "show").out
    assert re.search(r"policy +theirs +- +no +nobody@elsewhere", table), table

    # who uses what: also after a restart
    used = {g["keyword"]: g for g in instance.json("report", "keywords", "--by", "keyword")["groups"]}
    assert used["job_policy=spread"] == {"keyword": "job_policy=spread", "requests": 1, "jobs": 6}, used
    assert used["job_application=greet"]["requests"] == 1 and used["request_memory"]["requests"] >= 7
    server.stop()
    server = instance.server()
    agents.queues(instance, 3)
    assert {g["keyword"]: g for g in instance.json("report", "keywords")["groups"]} == used
    you = instance.server_info()["you"]
    assert re.search(rf"^job_policy=spread +{you} +20\d\d-\d\d +1 +6$", instance.cli("report", "keywords", "--by", "keyword,user,month").out, re.M)
    assert "job_policy=spread" in instance.cli("stats", "--format", "svg").out

    # a change holds without a restart; what cannot says so; a mistake changes nothing
    settings(instance, "policy: spread", "page: yes\napi_listen: 127.0.0.1:1\n")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: 'changed="defaults"' in server.output())
    wait_until(lambda: 'settings="api_listen page"' in server.output())
    assert ran(instance, sh("exit 0", queue="queue 6")) == ["long"] * 3 + ["short"] * 3
    settings(instance, "policy: nothing")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "there is no policy 'nothing'" in server.output())
    assert ran(instance, sh("exit 0", queue="queue 2")) == ["long", "short"]


def test_config_check(instance):
    settings(instance, "policy: resonance")
    assert "right" in instance.cli("config", "check").out
    bad = instance.write("bad.yaml", "page: yes\npolicies:\n  a:\n    placements: passive\n")
    out = instance.cli("config", "check", bad, code=2)
    assert out.err.startswith(f"droverd: {bad}:4: ") and "placement" in out.err, out.err
    settings(instance, "policy: nothing")
    out = instance.cli("config", "check", code=2)
    assert re.search(r"droverd\.yaml:\d+: there is no policy 'nothing'", out.err), out.err


SUMS = """<?xml version="1.0"?>
<java version="1.4" class="java.beans.XMLDecoder">
 <object class="java.util.Hashtable">
  <void method="put"><string>dispatcher</string><object id="Farm" class="gov.bnl.star.offline.scheduler.dispatcher.LocalDispatcher"/></void>
  <void method="put"><string>queue</string>
   <object id="NSFlocalQueueObj" class="gov.bnl.star.offline.scheduler.Queue">
    <void method="setID"><string>localQueue</string></void>
    <void method="setName"><string>long</string></void>
    <void method="setAssociatedDispatcher"><object idref="Farm"/></void>
    <void method="setTimeLimit"><int>90</int></void>
    <void method="setImplementation"><string>local</string></void>
   </object></void>
  <void method="put"><string>resonance</string>
   <object class="gov.bnl.star.offline.scheduler.policy.PassivePolicy">
    <void method="addQueue"><object idref="NSFlocalQueueObj"/></void>
   </object></void>
 </object>
</java>
"""
JOB = """<?xml version="1.0"?>
<job nProcesses="2"><command>echo $PROCESSID</command><stdout URL="file:{work}/out.$PROCESSID"/></job>
"""


def test_a_sums_moves_here(instance):
    """Its configuration becomes settings, and star-submit -p names a policy of them."""
    out = subprocess.run([instance.program("droverd"), "import-sums", instance.write("schedulerConfig.xml", SUMS)], capture_output=True, text=True,
                         timeout=90, check=True)
    assert re.search(r"schedulerConfig\.xml:11: Queue localQueue: Implementation has no equivalent", out.stderr), out.stderr
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(out.stdout)
    assert "right" in instance.cli("config", "check").out
    instance.server()
    agents.start(instance, QUEUES)
    agents.queues(instance, 3)
    job = instance.write("job.xml", JOB.format(work=instance.work))
    star = os.path.join(instance.build, "bin", "sums", "star-submit")
    subprocess.run([star, "-p", "resonance", job], cwd=instance.work, env=instance.env, capture_output=True, timeout=90, check=True)
    instance.wait("1")
    assert where(instance, 1) == ["long", "long"]
    assert instance.read("out.1") == "1\n"
    wrong = subprocess.run([star, "-p", "other", job], cwd=instance.work, env=instance.env, capture_output=True, text=True, timeout=90, check=False)
    assert wrong.returncode == 1 and "there is no policy 'other' here" in wrong.stderr, wrong


MONITORED = """
sensors:
  Farm: {{command: [/bin/cat, {waits}], interval: 1s}}
queues:
  - {{name: short, cpus: 4, memory: 512MiB, attributes: {{QueueWait: FarmShort}}}}
  - {{name: long, cpus: 4, memory: 512MiB, attributes: {{QueueWait: FarmLong}}}}
"""


def test_an_external_monitor(instance):
    """A small program says how long jobs wait in each queue, and the queue monitor goes by it."""
    waits = instance.write("waits", "Short = 600\nLong = 60\n")
    instance.server()
    agents.start(instance, MONITORED.format(waits=waits))

    def first(queue):
        """the queue that the policy gives jobs to first"""
        agents.queues(instance, 2)
        out = instance.cli("submit", "--dry-run", "--policy", "queue_monitor", "-", stdin=sh("exit 0")).out
        return re.search(rf"^queue_monitor +yes +n1/{queue},", out, re.M)

    wait_until(lambda: first("long"))
    assert where(instance, instance.run(sh("exit 0", queue="queue 3"), "--policy", "queue_monitor")) == ["long"] * 3
    instance.write("waits", "Short = 60\nLong = 600\n")
    wait_until(lambda: first("short"))
    assert where(instance, instance.run(sh("exit 0", queue="queue 3"), "--policy", "queue_monitor")) == ["short"] * 3


CATALOGS = """
catalogs:
  good: {query: 'tpc=1'}
  theirs: {query: 'tpc=1', users: ["*@elsewhere"]}
"""


def test_catalogs_of_the_settings(instance):
    """A name for a part of the catalog; who may not use it learns so."""
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(CATALOGS)
    instance.up()
    files = [instance.write(f"f{i}", str(i)) for i in range(4)]
    lines = [json.dumps({"name": f"f{i}", "metadata": {"tpc": i % 2, "run": i}, "replicas": [{"url": f"file:{p}"}]}) for i, p in enumerate(files)]
    instance.cli("catalog", "import", "-", stdin="\n".join(lines))
    text = "executable = /bin/cat\ntransfer_executable = False\narguments = $(file)\nrequest_memory = 32 MB\ndataset = catalog:{}\nfiles_per_job = 1\nqueue\n"
    assert len(instance.history(instance.run(text.format("good?")))) == 2
    assert len(instance.history(instance.run(text.format("good?run=>2")))) == 1
    assert len(instance.history(instance.run(text.format("?run=>2")))) == 2
    assert 'you may not use the catalog "theirs"' in refused(instance, text.format("theirs?"))
    assert 'there is no catalog "other": it would be a program' in refused(instance, text.format("other?"))
    assert instance.call("GET", "/v1/catalog/files?catalog=good&query=where%3Dtrue")[1]["files"][0]["name"] == "f1"


def test_recorders_say_what_is_counted(instance):
    """One that is added or changed counts from then on, without a restart; `{}` counts nothing."""
    def counts():
        return {g["keyword"]: g["requests"] for g in instance.json("stats", "--by", "keyword")["groups"]}

    def record(text, server):
        seen = server.output().count('changed="recorders"')
        settings(instance, "policy: none", f"recorders: {text}\n")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.output().count('changed="recorders"') == seen + 1)

    settings(instance, "policy: none", "recorders: {}\n")
    server = instance.server()
    instance.submit(sh("exit 0", files_per_job="3"), "--hold")
    assert not counts()
    record("{sizes: {keywords: [request_memory]}}", server)
    assert "recorder" in instance.cli("config", "show").out
    instance.submit(sh("exit 0"), "--hold")
    assert counts() == {"request_memory": 1}
    record("{theirs: {users: ['*@elsewhere']}}", server)
    instance.submit(sh("exit 0"), "--hold")
    assert counts() == {"request_memory": 1}


def test_keywords_of_datasets_and_sums_are_counted(instance):
    """Those that leave no attribute of the job, and the parts of a SUMS description; a recorder may name them."""
    settings(instance, "policy: none", "recorders: {a: {keywords: [dataset, files_per_hour, 'sums:maxFilesPerProcess', 'sums:input.nFiles']}}\n")
    instance.server()
    instance.write("list", "file:/a\nfile:/b\n")
    instance.submit("executable = /bin/true\ndataset = filelist:list\nfiles_per_job = 1\nfiles_per_hour = 7\nqueue\n", "--hold")
    instance.submit("executable = /bin/true\nqueue\n", "--hold")
    instance.write("job.xml", '<job maxFilesPerProcess="2" filesPerHour="3"><command>true</command><stdout URL="file:/tmp/$JOBID"/>'
                   '<input URL="filelist:list" nFiles="all"/></job>')
    instance.cli("submit", "--hold", "job.xml")
    counts = {g["keyword"]: (g["requests"], g["jobs"]) for g in instance.json("stats", "--by", "keyword")["groups"]}
    group, = instance.json("stats", "--by", "user")["groups"]
    assert group["requests"] == instance.json("stats", "--by", "month")["groups"][0]["requests"] == 2 and group["jobs"] == 3, group
    assert counts == {"dataset": (1, 2), "files_per_hour": (2, 3), "sums:maxFilesPerProcess": (1, 1), "sums:input.nFiles": (1, 1)}, counts


def test_files_per_hour_in_the_time_of_the_queue(instance):
    """Files are cut so that a job ends within the time that its virtual queue, policy or initializer leaves it."""
    settings(instance, "initializer: none")
    text = SETTINGS.format(defaults="policy: hourly", more="").replace("dispatchers:\n", PLAIN + TIMED + "dispatchers:\n", 1)
    text = text.replace("policies:\n", "policies:\n  hourly: {queues: [plain, others, hour, day]}\n  daily: {queues: [day, plain]}\n", 1)
    text = text.replace("initializers:\n", "initializers:\n  slow: {attributes: {AllowedExecuteDuration: 10800}}\n  shorts: {policy: daily}\n", 1)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(text)
    instance.server()
    instance.write("list", "".join(f"file:/data/{i}\n" for i in range(12)))

    def cut(*lines, args=()):
        text = "executable = /bin/true\ndataset = filelist:list\nfiles_per_job = 12\n" + "".join(line + "\n" for line in lines)
        out = instance.cli("submit", "--dry-run", *args, "-", stdin=text + "queue\n")
        limit = re.search(r"^  a job has (\d+) seconds, a limit of (.*)$", out.out, re.M)
        rows = out.out.split("JOBS")[1].splitlines()[1].split()
        return (int(rows[0]), limit and limit.groups()), out.err
    hour, day = ("3600", "the virtual queue hour"), ("7200", "the virtual queue day")
    assert cut("files_per_hour = 3")[0] == (4, hour)
    assert cut("files_per_hour = 3", "job_policy = daily")[0] == (2, day)
    assert cut("files_per_hour = 3", args=("--policy", "daily"))[0] == (2, day)
    assert cut("files_per_hour = 3", "job_virtual_queue = day")[0] == (2, day)
    assert cut("files_per_hour = 3", "+JobVirtualQueue = \"hour\"", "job_policy = none")[0] == (4, hour)
    assert cut("files_per_hour = 1", "job_initializer = slow")[0] == (4, ("10800", "the initializer slow"))
    assert cut("files_per_hour = 3", "job_initializer = shorts")[0] == (2, day)
    assert cut("files_per_hour = 3", "allowed_execute_duration = 1200")[0] == (12, ("1200", "its description"))
    cuts, said = cut("files_per_hour = 3", "job_policy = none")
    assert cuts == (1, None) and "nothing limits" not in said, said  # files_per_job does
    text = "executable = /bin/true\ndataset = filelist:list\nfiles_per_hour = 3\n{}queue\n"
    assert "nothing limits the time of a job" in instance.cli("submit", "--dry-run", "-", stdin=text.format("job_policy = none\n")).err
    assert "nothing limits" not in instance.cli("submit", "--dry-run", "-", stdin=text.format("")).err
    # SUMS's attribute, and -p
    xml = ('<job filesPerHour="3"><command>true</command><stdout URL="file:/tmp/$JOBID"/>'
           f'<input URL="filelist:{instance.work}/list" nFiles="all"/></job>')
    instance.write("job.xml", xml)
    out = instance.json("submit", "--dry-run", "--policy", "daily", "job.xml")["parts"][0]
    assert [row.split("\x1f")[3] for row in out["items"].splitlines()] == ["6", "6"]
    # what is submitted is what was shown, and goes to the queue
    request = instance.submit("executable = /bin/true\ndataset = filelist:list\nfiles_per_hour = 3\njob_virtual_queue = hour\n"
                              "files_per_job = 12\nqueue\n", "--hold")
    assert len(instance.api("GET", f"/v1/jobs?id={request}")["jobs"]) == 4
    # without a server nothing is known, which is said
    instance.kill_server()
    out = instance.cli("submit", "--dry-run", "job.xml", code=None)
    assert "the time limit of the jobs is not known" in out.err, out
