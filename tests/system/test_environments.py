"""Environments that agents make of files: Python's with the real venv and pip, which find a wheel of our own and no
network; conda's by a small program in its place, for Debian has none: only its command line is shown."""
import os
import signal
import subprocess
import time
import zipfile

import agents
import pytest
from drover import processes, sh, wait_until
from users import ONE, TWO, Site

TERMS = ("wait", "fetch", "image", "environment", "run", "send", "price")
CONDA = """#!/bin/sh
# env create -q -p PREFIX -f FILE; a file says how large what is made shall be, or that it waits, or fails
echo "$@" >>{base}/asked
[ "$1 $2 $3 $4 $6" = "env create -q -p -f" ] || exit 2
case $(cat "$7") in
*nowhere*) printf 'Solving\\nResolvePackageNotFound:\\n  - nowhere\\n' >&2; exit 1 ;;
*wait*) mkdir "$5"; echo half >"$5/half"; echo $$ >{base}/began; while [ ! -e {base}/go ]; do sleep 0.05; done ;;
esac
mkdir -p "$5/conda-meta" "$5/bin"
dd if=/dev/zero of="$5/weight" bs=1M count=3 2>{base}/dd
printf '#!/bin/sh\\necho made of %s\\n' "$(cat "$7")" >"$5/bin/hello"
chmod +x "$5/bin/hello"
"""


def wheel(folder, name, version, code):
    """A distribution with one module, as pip takes it."""
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": code, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as z:
        for path, text in files.items():
            z.writestr(path, text)


def start(instance, name="n1", more="", program="drover-agent"):
    """An agent whose pip finds what is in the folder wheels only, and whose conda is ours."""
    return agents.start(instance, f"pip_options: [--no-index, --find-links, {instance.base}/wheels]\n"
                        f"python: /usr/bin/python3\nconda: {instance.base}/conda\n{more}"
                        "queues:\n  - name: here\n    cpus: 4\n", name, program)


def ready(instance, *names):
    """Waits until the agents say what environments they make; returns the first one's ad."""

    def ads():
        """the agents say what they make"""
        found = {a["name"]: q["ad"] for a in instance.agents("connected") for q in a["queues"]
                 if q["ad"] and "HasPythonEnv" in q["ad"]}
        return found if all(n in found for n in names) else None

    return wait_until(ads)[names[0]]


def python(code="import tiny; print(tiny.WORD)", **more):
    return sh(f"exec python -c '{code}'", python_env="requirements.txt", **more)


def conda(instance, name, text=None):
    if text:
        instance.write(name, text)
    return sh("hello", conda_env=name, output=f"{name}.out")


def held(instance, request):
    instance.wait_state(f"{request}.0", "held", seconds=180)
    return instance.job(f"{request}.0")["hold_reason"]


def folders(instance, name="n1"):
    return sorted(f for f in os.listdir(f"{instance.base}/{name}/jobs") if f.startswith("env."))


def asked(instance):
    """The words of each call of conda."""
    path = f"{instance.base}/asked"
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return f.read().splitlines()


def go(instance):
    with open(f"{instance.base}/go", "w", encoding="utf-8"):
        pass


@pytest.fixture
def place(instance):
    wheel(f"{instance.base}/wheels", "tiny", "1.0", "WORD = 'found'\n")
    instance.write("requirements.txt", "tiny==1.0\n")
    with open(f"{instance.base}/conda", "w", encoding="utf-8") as f:
        f.write(CONDA.format(base=instance.base))
    os.chmod(f"{instance.base}/conda", 0o755)
    os.makedirs(instance.dir)
    with open(f"{instance.dir}/droverd.yaml", "w", encoding="utf-8") as f:
        f.write("limits: {nothing: 0}\n")
    instance.server()
    return instance


def costs(places):
    return {p["name"]: p["cost"] for p in places if p.get("cost")}


def test_what_has_one_gets_the_jobs(place):
    """Two agents: one has made it, for three jobs once, and gets the next ones; the terms of the cost say why."""
    agent = start(place)
    assert ready(place, "n1")["PythonVersion"].startswith("3.")
    place.run(python(output="out.$(Process)", queue="queue 3"), seconds=180)
    assert [place.read(f"out.{n}") for n in range(3)] == ["found\n"] * 3
    assert agent.output().count("making an environment") == 1 and len(folders(place)) == 1
    start(place, "n2")
    ready(place, "n1", "n2")
    place.write("job.sub", python())
    waits = place.submit(python(concurrency_limits="nothing"))
    for answer in (place.json("quote", "job.sub")["places"], place.json("why", f"{waits}.0")["agents"]):
        told = costs(answer)
        size = told["n1"]["bytes_held"]
        assert size > 1 << 20 and told["n1"]["environment_ms"] == 0
        assert (told["n2"]["bytes_in"], told["n2"]["bytes_held"]) == (size, 0)
        assert told["n2"]["environment_ms"] == 50 + size * 1000 // 12500000
        for one in told.values():
            assert one["total_ms"] == sum(one[f"{term}_ms"] for term in TERMS), one
    assert "MAKE" in place.cli("quote", "job.sub").out
    place.cli("rm", str(waits))
    for _ in range(3):
        assert place.history(place.run(python()))[0]["agent"] == "n1"
    assert folders(place, "n2") == []


@pytest.mark.parametrize("hours", [19, *(pytest.param(h, marks=pytest.mark.long) for h in (1, 25, 38))])
def test_on_a_machine_that_is_up_for_hours(place, hours):
    """Numbers of commands and transfers begin with the time since the machine was started: all of their bits come to be set."""
    script = os.path.join(place.base, "agent-there")
    with open("/proc/uptime", encoding="ascii") as f:
        ahead = int(hours * 3600 - float(f.read().split()[0]))
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"""#!/bin/sh
unshare --time --boottime {ahead} --fork {place.program("drover-agent")} "$@" &
trap 'pkill -TERM -P $!' TERM
wait $!
wait $!
""")
    os.chmod(script, 0o755)
    start(place, program=script)
    ready(place, "n1")
    place.run(python(output="out"), seconds=180)
    assert place.read("out") == "found\n"


def test_what_cannot_be_made_is_held_with_the_words_of_its_maker(place):
    start(place)
    ready(place, "n1")
    place.write("requirements.txt", "tiny==1.0\nno-such-thing==7\n")
    one, two = place.submit(python()), place.submit(conda(place, "bad.yml", "nowhere\n"))
    reason = held(place, one)
    assert "Python environment of requirements.txt" in reason and "No matching distribution found for no-such-thing==7" in reason
    assert held(place, two) == ("cannot make the conda environment of bad.yml: Solving; ResolvePackageNotFound:; - nowhere")
    wait_until(lambda: folders(place) == [])
    missing = place.cli("submit", "-", code=None, stdin=sh("true", python_env="nothing.txt"))
    assert missing.code != 0 and "nothing.txt" in missing.err


def test_conda_makes_one_of_a_file(place):
    """By its command line; the same contents under another name are the same environment, also after a restart."""
    agent = start(place)
    assert ready(place, "n1")["HasCondaEnv"] is True
    place.run(conda(place, "a.yml", "name: one\n"))
    assert place.read("a.yml.out") == "made of name: one\n"
    assert asked(place) == [f"env create -q -p {place.base}/n1/jobs/{folders(place)[0]}/env -f environment.yml"]
    agent.stop()
    start(place)
    place.run(conda(place, "b.yaml", "name: one\n"))
    assert place.read("b.yaml.out") == "made of name: one\n" and len(asked(place)) == 1


def test_the_least_used_one_goes(place):
    """There is room for two: the third takes the place of the one that was used longest ago, and not of one in use."""
    start(place, more="environments: 8M\n")
    ready(place, "n1")
    place.write("used.yml", "used\n")
    stays = place.submit(sh(f"while [ ! -e {place.base}/go ]; do sleep 0.1; done; hello", conda_env="used.yml", output="used.out"))
    place.wait_state(f"{stays}.0", "running")
    for name in ("a", "b", "c"):
        place.run(conda(place, f"{name}.yml", f"{name}\n"))
    wait_until(lambda: len(folders(place)) == 2)
    place.run(conda(place, "c.yml"))
    assert len(asked(place)) == 4
    place.run(conda(place, "a.yml"))
    assert len(asked(place)) == 5
    go(place)
    place.wait(stays)
    assert place.read("used.out") == "made of used\n"


@pytest.mark.parametrize("whom", ["agent", "shepherd"])
def test_kill_while_one_is_made(place, whom):
    """What was half made is never used, who made it is ended, and the job runs in a new one."""
    agent = start(place)
    ready(place, "n1")
    request = place.submit(conda(place, "slow.yml", "wait\n"))
    wait_until(lambda: os.path.exists(f"{place.base}/began"))
    half = folders(place)
    os.remove(f"{place.base}/began")
    if whom == "agent":
        agent.kill()
        start(place)
    else:
        os.kill(place.pids("drover-shepherd")[0], signal.SIGKILL)
    wait_until(lambda: os.path.exists(f"{place.base}/began"))
    wait_until(lambda: not processes(f"{place.base}/n1/jobs/{half[0]}/env"))
    wait_until(lambda: not set(half) & set(folders(place)))
    go(place)
    place.wait(request)
    assert place.read("slow.yml.out") == "made of wait\n" and len(folders(place)) == 1


def making(instance, name):
    """Submits a job whose environment is made until `go`, and waits until that has begun; its request."""
    request = instance.submit(conda(instance, name, "wait\n"))
    wait_until(lambda: os.path.exists(f"{instance.base}/began"))
    return request


def makers(instance, half):
    return processes(f"{instance.base}/n1/jobs/{half}/env")


def test_the_path_says_what_is_made(place):
    """While the job is staging; not any more when it runs."""
    start(place)
    ready(place, "n1")
    before = time.time() * 1000
    job = f"{making(place, 'slow.yml')}.0"
    hop = wait_until(lambda: [h for h in place.json("path", job)["hops"] if "doing" in h])[0]
    assert (hop["state"], hop["doing"]) == ("staging", "making the conda environment of slow.yml")
    assert before <= hop["doing_since_ms"] <= time.time() * 1000
    assert "hop 1: making the conda environment of slow.yml, for " in place.cli("path", job).out
    assert 'Doing = "making the conda environment of slow.yml"; ' in place.cli("path", "--ad", job).out
    assert "making the conda environment of slow.yml" in place.cli("why", job).out
    go(place)
    place.wait(job)
    last = place.submit(conda(place, "slow.yml").replace("hello", "exec sleep 600"))
    wait_until(lambda: place.json("path", f"{last}.0")["hops"][0].get("native"))
    assert "doing" not in place.json("path", f"{last}.0")["hops"][0]
    place.cli("rm", str(last))


def test_nobody_wants_it_any_more(place):
    """It is made as long as one job waits for it; then who makes it is ended, and what was made goes. A later job has it made anew."""
    start(place)
    ready(place, "n1")
    first = making(place, "slow.yml")
    half = folders(place)[0]
    second = place.submit(conda(place, "slow.yml"))
    place.wait_state(f"{second}.0", "staging")
    wait_until(lambda: place.json("path", f"{second}.0")["hops"][0].get("doing"))
    place.cli("rm", str(first))
    assert makers(place, half) and folders(place) == [half]
    os.remove(f"{place.base}/began")
    place.cli("hold", str(second))
    wait_until(lambda: not makers(place, half) and folders(place) == [])
    place.cli("release", str(second))
    wait_until(lambda: os.path.exists(f"{place.base}/began"))
    assert half not in folders(place)
    go(place)
    place.wait(second)
    assert place.read("slow.yml.out") == "made of wait\n" and len(asked(place)) == 2


def test_the_lease_ends_while_one_is_made(place):
    """The shepherd ends all of an agent that stands still, the making, too: the job is not held for it, and begins anew."""
    with open(f"{place.dir}/droverd.yaml", "a", encoding="utf-8") as f:
        f.write("lease: 5s\n")
    place.stop()
    place.server()
    agent = start(place)
    ready(place, "n1")
    job = f"{making(place, 'slow.yml')}.0"
    half = folders(place)[0]
    os.remove(f"{place.base}/began")
    os.kill(agent.process.pid, signal.SIGSTOP)
    wait_until(lambda: not makers(place, half))
    os.kill(agent.process.pid, signal.SIGCONT)
    wait_until(lambda: os.path.exists(f"{place.base}/began"))
    go(place)
    place.wait(job)
    assert not [e for e in place.events(job) if e["event"] == "held"]


def owners(jobs):
    """What is known of each environment's folder; one may be about to go."""
    found = []
    for name in os.listdir(jobs):
        try:
            found += [os.stat(f"{jobs}/{name}")] if name.startswith("env.") else []
        except FileNotFoundError:
            pass
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")
def test_each_user_makes_his_own(instance):
    """With `users`: the same file, made by two, each as himself, in a folder that nobody else can enter; then one goes."""
    site = Site(instance)
    program = f"{instance.base}/conda"
    with open(program, "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\nmkdir -p "$5/conda-meta" "$5/bin" && dd if=/dev/zero of="$5/weight" bs=1M count=3 2>/dev/null\n'
                'printf \'#!/bin/sh\\necho made by %s for %s in %s\\n\' "$(id -u)" "$(id -un)" "$HOME" >"$5/bin/hello"\n'
                'chmod +x "$5/bin/hello"\n')
    os.chmod(program, 0o755)
    site.agent(more=f"conda: {program}\nenvironments: 4M\n")
    wait_until(lambda: any(q["ad"] and "HasCondaEnv" in q["ad"] for a in instance.agents("connected") for q in a["queues"]))
    for user in (ONE, TWO):
        home = site.home(user)
        site.write(user, "env.yml", "name: shared\n")
        p = subprocess.run([f"{site.bin}/drover", "submit", "-"], env={**instance.env, "HOME": home, "TMPDIR": home}, cwd=home,
                           user=user.pw_uid, group=user.pw_gid, extra_groups=[], input=conda(instance, "env.yml"),
                           capture_output=True, text=True, timeout=90, check=False)
        assert p.returncode == 0, p.stdout + p.stderr
        instance.wait(1 if user is ONE else 2)
        assert site.text(user, "env.yml.out") == f"made by {user.pw_uid} for {user.pw_name} in {user.pw_dir}\n"
        mine = [f for f in owners(f"{site.state}/jobs") if f.st_uid == user.pw_uid]
        assert len(mine) == 1 and mine[0].st_mode & 0o7 == 0
    wait_until(lambda: len(folders(instance, "node")) == 1)
