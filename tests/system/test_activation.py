"""Environment modules (real ones) and conda environments (folders made as conda makes them) around a job's program,
run as a process and by a real Slurm."""
import os

import pytest

import agents
from drover import sh, wait_until

pytest_plugins = ["batch_systems"]


def modulefiles(folder):
    os.makedirs(f"{folder}/tool")
    for version in ("1", "2"):
        with open(f"{folder}/tool/{version}", "w", encoding="utf-8") as f:
            f.write(f"#%Module1.0\nsetenv TOOL_VERSION {version}\nprepend-path PATH {folder}/bin{version}\n")
    with open(f"{folder}/broken", "w", encoding="utf-8") as f:
        f.write("#%Module1.0\nputs stderr {the licence server is down}\nbreak\n")
    os.makedirs(f"{folder}/bin2")
    program = f"{folder}/bin2/measure"
    with open(program, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\necho measured with $TOOL_VERSION \"$@\"\n")
    os.chmod(program, 0o755)


def conda_env(prefix, activate=None):
    for part in ("conda-meta", "bin", "etc/conda/activate.d"):
        os.makedirs(f"{prefix}/{part}")
    if activate:
        with open(f"{prefix}/etc/conda/activate.d/one.sh", "w", encoding="utf-8") as f:
            f.write(activate)


@pytest.fixture(params=["process", "slurm"])
def place(request, instance):
    system = request.getfixturevalue("alpha") if request.param == "slurm" else None
    modulefiles(f"{instance.base}/modulefiles")
    conda_env(f"{instance.base}/conda/envs/plain", "SECRET='two words'; export SECRET\n")
    os.makedirs(f"{instance.base}/conda/bin")
    with open(f"{instance.base}/conda/bin/conda", "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\nmkdir -p "$5/conda-meta" "$5/bin"\n')
    os.chmod(f"{instance.base}/conda/bin/conda", 0o755)
    conda_env(f"{instance.base}/conda/envs/broken", "echo no compiler here >&2; false\n")
    config = agents.batch_queues(system) if system else "queues:\n  - name: here\n    cpus: 8\n"
    instance.config = config + (f"conda_root: {instance.base}/conda\n"
                                f"environment: {{MODULEPATH: '{instance.base}/modulefiles', LEVEL: queue}}\n")
    instance.env["CANARY"] = "of the daemons"
    instance.server()
    instance.agent = agents.start(instance, instance.config)
    agents.offering(instance)
    return instance


def hold_reason(place, request):
    place.wait_state(f"{request}.0", "held")
    return place.job(f"{request}.0")["hold_reason"]


def test_modules_are_loaded(place):
    """The program is found by the PATH that they give, and gets its arguments and streams as they are."""
    place.write("in", "fed\n")
    one = place.submit("executable = measure\ntransfer_executable = false\narguments = \"'a b' $HOME\"\n"
                       "modules = tool/1, tool/2\noutput = out\nqueue\n")
    two = place.submit(sh("cat; echo $LEVEL $OMP_NUM_THREADS; exit 7", modules="tool/$(v)", input="in", output="two",
                          environment="LEVEL=job", request_cpus="2", queue="queue v in 1"))
    place.wait(one)
    place.wait(two, code=None)
    assert place.read("out") == "measured with 2 a b $HOME\n"
    assert place.read("two") == "fed\njob 2\n"
    assert place.history(two)[0]["exit_code"] == 7


def test_variables_stay_as_the_job_has_them(place):
    """Whatever their names: what loads and enters has some of its own."""
    names = "words init modules root env venv shell file module conda prefix".split()
    request = place.submit(sh("; ".join(f"echo {n}=${n}" for n in names), conda_env="plain", modules="tool/1", output="out",
                              environment='"' + " ".join(f"{n}=mine" for n in names) + '"'))
    place.wait(request)
    assert place.read("out").split() == [f"{n}=mine" for n in names]


def test_a_conda_environment_is_entered(place):
    text = sh('echo $CONDA_DEFAULT_ENV $CONDA_PREFIX "$SECRET" $PATH $TOOL_VERSION', conda_env="plain", modules="tool/1",
              output="out")
    path = place.submit(sh("echo $CONDA_PREFIX", conda_env=f"{place.base}/conda/envs/plain", output="path"))
    place.wait(place.submit(text), path)
    prefix = f"{place.base}/conda/envs/plain"
    name, folder, secret, rest = place.read("out").replace("two words", "two_words").split(" ", 3)
    assert (name, folder, secret) == ("plain", prefix, "two_words")
    assert rest.startswith(f"{prefix}/bin:") and rest.endswith(" 1\n")
    assert place.read("path") == f"{prefix}\n"


def test_a_conda_environment_is_made_of_a_file(place):
    """By the conda of conda_root; a node of a batch system sees it where it was made."""
    place.write("environment.yml", "name: stats\n")
    wait_until(lambda: agents.offering(place)["ad"].get("HasCondaEnv"))
    text = sh("echo $CONDA_PREFIX $PATH", conda_env="environment.yml", output="out")
    place.wait(place.submit(text))
    prefix, path = place.read("out").split()
    assert prefix.startswith(f"{place.base}/n1/jobs/env.") and path.startswith(f"{prefix}/bin:")


def test_what_cannot_be_activated_is_held_with_its_words(place):
    missing = place.submit(sh("true", modules="tool/9"))
    licence = place.submit(sh("true", modules="tool/1, broken"))
    program = place.submit("executable = measure\ntransfer_executable = false\nmodules = tool/1\nqueue\n")
    folder = place.submit(sh("true", conda_env=f"{place.base}/nothing"))
    script = place.submit(sh("true", conda_env="broken"))
    odd = place.submit(sh("true", modules="tool/*"))
    ended = place.submit(sh("exit 125", modules="tool/1"))
    assert "tool/9" in hold_reason(place, missing) and "could not be loaded" in hold_reason(place, missing)
    assert "the licence server is down" in hold_reason(place, licence)
    assert "measure: it is not in PATH" in hold_reason(place, program)
    assert "nothing is no environment" in hold_reason(place, folder)
    assert "no compiler here" in hold_reason(place, script)
    assert "no names of modules" in hold_reason(place, odd)
    place.wait(ended, code=None)
    assert place.history(ended)[0]["exit_code"] == 125


def test_an_environment_that_no_place_has_is_not_tried(place):
    """The job waits, and why names what is missing."""
    request = place.submit(sh("true", conda_env="no-such"))
    assert "CondaEnvs" in place.cli("why", f"{request}.0").out
    place.cli("rm", str(request))


def test_the_environment_is_the_jobs(place):
    """What getenv took at the submit, what the file says, and what agent and batch system give; nothing of the daemons' own."""
    place.env["CAPTURED"] = "it's \"two\" words $HOME"
    request = place.submit("executable = /usr/bin/env\ngetenv = CAPTURED\nenvironment = \"OWN=1 LEVEL=job\"\noutput = out\nqueue\n")
    place.wait(request)
    got = dict(line.split("=", 1) for line in place.read("out").splitlines())
    assert got.pop("CAPTURED") == "it's \"two\" words $HOME"
    assert (got.pop("OWN"), got.pop("LEVEL")) == ("1", "job")
    if "SLURM_JOB_ID" in got:
        del got["HOSTNAME"], got["ENVIRONMENT"]  # Slurm's
    given = ("DROVER_", "_CONDOR_", "SLURM", "OMP_NUM_THREADS", "TMPDIR", "HOME", "USER", "LOGNAME", "PATH", "PWD", "OLDPWD",
             "SHLVL", "_", "SHELL", "MODULEPATH", "CUDA_VISIBLE_DEVICES")
    assert not [name for name in got if not name.startswith(given)], got
    assert "CANARY" not in got
