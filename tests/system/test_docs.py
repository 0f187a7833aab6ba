"""What is written is true: manual pages, help, the tour of the README."""
import fnmatch
import glob
import os
import re
import subprocess

import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAMS = ["drover", "droverd", "drover-agent", "drover-shepherd"]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def commands(instance):
    """The names of the subcommands, from drover --help."""
    found = re.findall(r"^  ([a-z]+)  +\S", instance.cli("--help"), re.M)
    assert {"submit", "queue", "wait", "up"} <= set(found)
    return found


@pytest.fixture(scope="module")
def installed(request, tmp_path_factory):
    """Everything, installed into a folder."""
    dest = tmp_path_factory.mktemp("dest")
    build = os.path.abspath(request.config.getoption("--build"))
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], check=True,
                   env={**os.environ, "DESTDIR": str(dest)}, stdout=subprocess.DEVNULL)
    return str(dest)


def files_below(folder):
    return [os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_is_installed_with_a_manual_page(installed, program):
    names = files_below(installed)
    assert [n for n in names if os.path.basename(n) == program and os.access(n, os.X_OK)], names
    pages = [n for n in names if re.search(rf"/man/man[18]/{program}\.[18](\.gz)?$", n)]
    assert len(pages) == 1, pages
    text = subprocess.run(["man", "-l", pages[0]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"})
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION"):
        assert heading in text.stdout, heading
    assert text.stderr == ""


def test_no_marks_of_markdown_are_left_in_the_pages(installed):
    """Such as a word that is half subscript since it has tildes, or bold text that never ends; and no macro is a formula."""
    pages = [n for n in files_below(installed) if re.search(r"/man/man\d/.*\.\d(\.gz)?$", n)]
    assert len(pages) > 40, pages
    for page in pages:
        text = subprocess.run(["man", "-l", page], stdout=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, "MANPAGER": "col -bx", "MANWIDTH": "400"}).stdout
        left = [line for line in text.splitlines() if re.search(r"\*\*|\w~\w|\* +\*|(?<!\w)\*_\w|`", line)]
        assert not left, (page, left)
    text = subprocess.run(["man", "-l", next(n for n in pages if "submit-file" in n)], stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "MANPAGER": "col -bx", "MANWIDTH": "400"}).stdout
    text = " ".join(text.split())  # whatever word a line ends with
    for name in ("$X509_USER_PROXY", "$BEARER_TOKEN_FILE", "$_CONDOR_CREDS", " _CONDOR_PROCNO", "$(Process) and $(Step) count nodes",
                 "..._oauth_permissions"):
        assert name in " ".join(text.split()), name  # wherever a line ends


def test_a_package_has_each_installed_file(installed):
    """As dh_missing would say, without building the packages; and no line of theirs is for nothing."""
    names = {os.path.relpath(n, installed).replace("usr/local/", "usr/") for n in files_below(installed)}
    patterns = {}
    for path in glob.glob(os.path.join(ROOT, "debian", "*.install")):
        for line in read(path).splitlines():
            if line.startswith(("usr/", "lib/")):
                where = re.sub("^lib/", "usr/lib/", line)  # debian/rules moves the units
                patterns[where] = re.compile(f"{fnmatch.translate(where)}|{fnmatch.translate(where + '/*')}")
    assert len(patterns) > 30
    assert [n for n in sorted(names) if not any(p.match(n) for p in patterns.values())] == []
    assert [line for line, p in patterns.items() if not any(p.match(n) for n in names)] == []


def test_units_and_completion_are_installed(installed):
    names = files_below(installed)
    for end in ("systemd/system/droverd.service", "systemd/system/drover-agent.service",
                "bash-completion/completions/drover", "zsh/vendor-completions/_drover", "fish/vendor_completions.d/drover.fish"):
        assert [n for n in names if n.endswith(end)], end
    unit = [n for n in names if n.endswith("droverd.service")][0]
    with open(unit, encoding="utf-8") as f:
        program = re.search(r"^ExecStart=(\S+)", f.read(), re.M)[1]
    assert os.access(installed + program, os.X_OK), program


def test_help_has_each_group_once_and_examples_line_by_line(instance):
    """And no marks of manual pages."""
    groups = re.findall(r"^([A-Z][a-z ]+)$", instance.cli("--help"), re.M)
    assert len(groups) == len(set(groups)) == 5, groups
    for command in commands(instance):
        text = instance.cli("help", command)
        assert "**" not in text, command
        for line in text.partition("\nExamples\n")[2].splitlines():
            assert line.count("drover ") == 1 or not line.startswith("  drover"), line


def test_every_command_has_help_and_a_manual_page(instance, installed):
    pages = {os.path.basename(n).removesuffix(".gz") for n in files_below(installed) if "/man/" in n}
    for command in commands(instance):
        text = instance.cli(command, "--help") if command not in ("server", "agent") else instance.cli("help", command)
        assert f"drover {command}" in text, command
        assert f"drover-{command}.1" in pages or command in ("server", "agent"), command


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_and_version(instance, program):
    for option in ("--help", "--version"):
        out = subprocess.run([instance.program(program), option], stdout=subprocess.PIPE, text=True, check=True,
                             timeout=90, env=instance.env)
        assert program in out.stdout


# What each shell is asked to complete: "drover qu", and the options of rm.
COMPLETE = {
    "bash": "COMP_WORDS=(drover qu); COMP_CWORD=1; _drover; printf '%s\n' \"${COMPREPLY[@]}\"; "
            "COMP_WORDS=(drover rm --); COMP_CWORD=2; _drover; printf '%s\n' \"${COMPREPLY[@]}\"",
    "zsh": "CURRENT=2; words=(drover qu); _drover; CURRENT=3; words=(drover rm --); _drover",
    "fish": "complete -C 'drover qu'; complete -C 'drover rm --'",
}
# zsh's own functions work only while somebody types: these print what they were given.
STUBS = {"zsh": "compdef() {}; _describe() { print -l $commands }; _arguments() { print -l -- $@ }; "}


@pytest.mark.parametrize("shell", COMPLETE)
def test_completion(instance, shell, tmp_path):
    script = tmp_path / "completion"
    script.write_text(instance.cli("completion", shell))
    p = subprocess.run([shell, "-c", f"{STUBS.get(shell, '')}source {script}; {COMPLETE[shell]}"], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, env={**instance.env, "HOME": str(tmp_path)}, timeout=60, check=True)
    for expected in ("queue", "quote", "--reason", "--json"):
        assert expected in p.stdout, (expected, p.stdout)


def tour():
    """The blocks of shell of the README, after the build."""
    text = read("README.md")
    return re.findall(r"^```sh\n(.*?)^```", text[text.index("## A tour"):], re.M | re.S)


def test_the_tour_of_the_readme(instance):
    """Typed as it stands; the folders alone are others."""
    blocks = tour()
    assert "make build" in blocks[0] and blocks[1].strip() == "drover up"
    instance.up()
    script = "\n".join(blocks[2:]).replace("/tmp/tour", instance.work)
    p = subprocess.run(["bash", "-e"], input=script, env=instance.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=300, check=False)
    assert p.returncode == 0, p.stdout
    for expected in ("request 1: 4 jobs", "one from job 0\n", "two from job 1\n", "completed", "request 2: 1 job",
                     "request 3: 1000 jobs", "request 7: 4 nodes, 4 jobs, 4 arrows", "request 8: "):
        assert expected in p.stdout, (expected, p.stdout)
    assert "emory" in p.stdout  # why it waits


def files_in(page):
    """The pieces of configuration files that a page shows."""
    shown = re.findall(r"\n\n((?: {4}.*\n|\n(?= {4}))+)", read(f"docs/man/{page}"))
    shown += re.findall(r"^```yaml\n(.*?)^```", read("docs/guides/add-your-cluster.md"), re.M | re.S) if page == "drover-agent.8.md" else []
    texts = [re.sub(r"^ {4}", "", text, flags=re.M) if text.startswith("    ") else text for text in shown]
    return [text for text in texts if re.match(r"[a-z_]+:( |$)", text, re.M)]


RUNNERS = ["process", *re.findall(r"^RUNNER\((\w+)\)", read("src/run/runners.def"), re.M)]
RUNNERS.remove("tsp")  # the first question to a Task Spooler starts its server, which nobody would stop
AGENTS_PAGES = ["drover-agent.8.md", "drover-container.7.md", "drover-environment.7.md", *(f"drover-runner-{name}.7.md" for name in RUNNERS)]
SERVERS_PAGES = ["droverd.8.md", "drover-priority.7.md"]


@pytest.mark.parametrize("page", AGENTS_PAGES)
def test_an_agent_takes_the_files_of_its_pages(instance, page):
    """As they stand, but for folders, and users and servers that are not here."""
    path = os.path.join(instance.base, "agent.yaml")
    found = files_in(page)
    assert found, page
    for n, text in enumerate(found):
        text = re.sub(r"^(server|dir): .*\n", "", text, flags=re.M).replace("/etc/drover", instance.base)
        if text.startswith("users:"):
            for shown, here in (("alice\n", "games\n"), ("robert", "games"), ("1000", "1"), ("drover-agent", "nobody")):
                text = text.replace(f": {shown}", f": {here}")
        with open(os.open(os.path.join(instance.base, "east.token"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(f"drover-user-token.v1.{'0' * 64}.a.b\n")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"server: unix:/nowhere\ndir: {instance.base}/agent{n}\n{text}")
        p = subprocess.run([instance.program("drover-agent"), "--config", path], env=instance.env, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=90, check=False)
        taken = "root's rights were given up" if text.startswith("users:") else "no certificate yet, and no token"
        assert p.returncode == 1 and taken in p.stdout, (text, p.stdout)


@pytest.mark.parametrize("page", SERVERS_PAGES)
def test_a_server_takes_the_files_of_its_pages(instance, page):
    found = files_in(page)
    assert found, page
    for text in found:
        instance.write("openid.secret", "s3cret\n", 0o600)
        text = text.replace("/etc/drover", instance.work).replace("0.0.0.0:7332", "127.0.0.1:0")
        path = instance.write("droverd.yaml", text)
        instance.server("--config", path)
        instance.stop()


def test_links_in_the_documents_lead_somewhere():
    for name in subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split():
        for target in re.findall(r"\]\(([^)#:]+)\)", read(name)):
            assert os.path.exists(os.path.join(ROOT, os.path.dirname(name), target)), f"{name}: {target}"


def test_make_help_lists_every_target():
    out = subprocess.run(["make", "-s", "help"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for target in ("help", "setup", "build", "demo", "check", "check-unit", "check-system", "lint", "format", "bench",
                   "fuzz", "docs", "install", "clean"):
        assert f"make {target} " in out, target


def test_look_alikes_are_installed(installed):
    names = [n for n in files_below(installed) if "/libexec/drover/condor/condor_" in n]
    assert {os.path.basename(n).removeprefix("condor_") for n in names} == {
        "submit", "submit_dag", "q", "rm", "hold", "release", "suspend", "continue", "vacate_job", "history", "wait", "status",
        "version", "qedit", "prio", "tail", "ssh_to_job", "run", "transfer_data", "chirp", "userprio", "drain"}
    for name in names:
        out = subprocess.run([name, "-help"], stdout=subprocess.PIPE, text=True, check=True, timeout=90)
        assert out.stdout.startswith("Usage: " + os.path.basename(name))
    assert [n for n in files_below(installed) if n.endswith("/man1/drover-condor.1")]


def test_slurm_look_alikes_are_installed(installed):
    names = [n for n in files_below(installed) if "/libexec/drover/slurm/" in n]
    assert {os.path.basename(n) for n in names} == {"sbatch", "squeue", "scancel", "sacct", "sinfo", "scontrol", "srun", "salloc"}
    for name in names:
        out = subprocess.run([name, "--help"], stdout=subprocess.PIPE, text=True, check=True, timeout=90)
        assert out.stdout.startswith("Usage: " + os.path.basename(name))
    assert [n for n in files_below(installed) if n.endswith("/man7/drover-slurm.7")]


def test_gold_look_alikes_are_installed(installed):
    names = [n for n in files_below(installed) if "/libexec/drover/gold/" in n]
    assert len(names) == 44 and {"gbalance", "gcharge", "gchargejob", "gstatement"} <= {os.path.basename(n) for n in names}
    for name in names:
        out = subprocess.run([name, "--help"], stdout=subprocess.PIPE, text=True, check=True, timeout=90)
        assert out.stdout.startswith("Usage: " + os.path.basename(name))
    assert [n for n in files_below(installed) if n.endswith("/man7/drover-gold.7")]


def test_the_site_has_every_page(build, tmp_path):
    """`make docs`: guides and manual as HTML; tools/site fails where a page links to one that is not there."""
    p = subprocess.run([f"{ROOT}/tools/site", build, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    assert (p.returncode, p.stdout) == (0, "")
    index = (tmp_path / "index.html").read_text()
    for name in os.listdir(f"{ROOT}/docs/guides"):
        assert f'href="guides/{name.removesuffix(".md")}.html"' in index, name
    assert '<a href="man/drover-submit.1.html">' in index and (tmp_path / "man/drover-submit.1.html").exists()
