"""An agent gives the folder of a job that has left nothing to the next one. Whatever a job has done to its folder, the next
one finds its own as if it were made for it. test_hostile_job.py has what other owners see of it."""
import ast
import os

import agents
import pytest
from drover import sh, wait_until

QUIET = "stat -c %i $DROVER_SCRATCH >{work}/{name}"
# mode of the folder, whether files that are made there are open to others, and of each file in it: name, type, size, links, mode
LOOK = ("cd $DROVER_SCRATCH && {{ stat -c '%a' .; : >new; stat -c '%a' new; rm new; "
        "find . -mindepth 1 -printf '%f %y %s %n %m\\n'; }} >{work}/look; "
        "python3 -c 'import os; print({{name: os.listxattr(name) for name in [\".\", *os.listdir()]}})' >{work}/given; echo printed by the second")
DEFAULT_ACL = ('python3 -c "import os, struct; os.setxattr(\\".\\", \\"system.posix_acl_default\\", struct.pack(\\"<I\\", 2) + '
               'b\\"\\".join(struct.pack(\\"<HHi\\", tag, 7, -1) for tag in (1, 4, 32)))"')
DONE = {  # what a job does to its folder
    "nothing": "true",
    "prints": "echo a line; echo another >&2",
    "folder_open": "chmod 777 .",
    "files_by_default_open": DEFAULT_ACL,
    "stream_open": "chmod 666 .drover_out.0",
    "stream_closed": "chmod 000 .drover_out.1",
    "stream_kept": "ln .drover_out.0 ../.kept",
    "stream_is_a_link": "rm .drover_out.1; ln -s .drover_out.0 .drover_out.1",
    "stream_is_a_pipe": "rm .drover_out.1; mkfifo .drover_out.1",
    "stream_is_a_folder": "rm .drover_out.1; mkdir .drover_out.1",
    "streams_gone": "rm .drover_out.0 .drover_out.1",
    "hole_in_stream": "truncate -s 1M .drover_out.1",
    "leaves_a_file": "echo x >file",
    "leaves_a_hidden_file": "echo x >.drover_file",
    "leaves_a_folder": "mkdir folder",
    "leaves_its_process": "(setsid sleep 1000 &)",
    "folder_with_a_text": "python3 -c 'import os; os.setxattr(\".\", \"user.secret\", b\"of the first\")'",
    "stream_with_a_text": "python3 -c 'import os; os.setxattr(\".drover_out.1\", \"user.secret\", b\"of the first\")'",
    "many_files": "for i in $(seq 400); do : >a-name-that-is-longer-than-others-$i; done; rm a-*",
}


@pytest.fixture
def one(instance):
    instance.server()
    instance.agent = agents.start(instance, "cpus: 1\n")
    agents.offering(instance)
    return instance


def empty(one):
    return sorted(name for name in os.listdir(f"{one.base}/n1/jobs") if name.startswith(".empty"))


def test_the_next_job_has_the_same_folder(one):
    for name in ("first", "second"):
        one.run(sh(QUIET.format(work=one.work, name=name)))
    assert one.read("first") == one.read("second")
    assert empty(one) == [".empty.0"]


@pytest.mark.parametrize("done", DONE)
def test_the_next_job_finds_its_own(one, done):
    one.run(sh("cd $DROVER_SCRATCH; " + DONE[done].format(work=one.work)))
    second = one.run(sh(LOOK.format(work=one.work)))
    folder, file, *entries = one.read("look").splitlines()
    assert folder == "700" and file == "644"
    assert {entry.split()[0] for entry in entries} <= {".drover_out.0", ".drover_out.1"}
    assert all(entry.split()[1:] == ["f", "0", "1", "644"] for entry in entries), entries
    assert all(given == [] for given in ast.literal_eval(one.read("given")).values())
    assert one.cli("tail", f"{second}.0").out == "printed by the second\n"
    for kept in (f"{one.work}/kept", f"{one.base}/n1/jobs/.kept"):
        assert not os.path.exists(kept) or os.path.getsize(kept) == 0


def test_those_of_an_agent_that_died_go(one):
    one.agent.kill()
    for n in range(3):
        os.makedirs(f"{one.base}/n1/jobs/.empty.{n}")
    one.agent = agents.start(one, "cpus: 1\n")
    agents.offering(one)
    one.run(sh("true"))
    wait_until(lambda: len(empty(one)) <= 1)
