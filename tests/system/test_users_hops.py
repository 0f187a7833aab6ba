"""An agent with `users` in front of another server: each owner is there in his own name, by a token that only he can read."""
import os

import pytest

import agents
from drover import free_port, wait_until
from hops import far, far_jobs
from test_checkpoint import COUNTER
from test_credentials import files_with
from users import AGENT, ONE, TWO, Site, as_user, mode_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")

# whom the other server knows them as
THERE = {ONE.pw_name: "ann", TWO.pw_name: "ben"}
FAR_MAP = (f"users:\n  ann@local: {ONE.pw_name}\n  ben@local: {TWO.pw_name}\n  grid@local: {ONE.pw_name}\n")
TOKEN = ".config/east.token"


class Hop:
    """`near` hands jobs on to `there`; both run what they run as its user."""

    def __init__(self, near, there, port):
        self.near, self.there = near, there
        self.tokens = {}
        there.node = there.agent(FAR_MAP, more="kill_grace: 1s\nqueues:\n  - {name: here, cpus: 8}\n")
        agents.offering(there.instance)
        for user in (ONE, TWO):
            self.tokens[user.pw_name] = there.instance.json("token", "user", "--name", THERE[user.pw_name])["token"]
        path = os.path.join(near.instance.base, "grid.token")
        with open(path, "w", encoding="utf-8") as f:
            f.write(there.instance.json("token", "user", "--name", "grid")["token"])
        os.chown(path, AGENT.pw_uid, AGENT.pw_gid)
        os.chmod(path, 0o400)
        self.more = (f"kill_grace: 1s\nqueues:\n  - name: east\n    runner: drover\n    drover:\n"
                     f"      server: https://127.0.0.1:{port}\n      token_file: {path}\n"
                     f"      users_token_file: {{}}\n")

    def start(self):
        self.near.node = self.near.agent(more=self.more.format(self.near.home(ONE).replace(ONE.pw_name, "%u") + "/" + TOKEN))
        agents.offering(self.near.instance)

    def give(self, user):
        as_user(user, lambda: os.makedirs(".config", mode=0o700, exist_ok=True), self.near.home(user))
        self.near.write(user, TOKEN, self.tokens[user.pw_name] + "\n")
        os.chmod(os.path.join(self.near.home(user), TOKEN), 0o400)


@pytest.fixture
def hop(request, build, instance):
    os.chmod(request.config.drover_tmp, 0o711)
    port = free_port()
    lease = "lease: 9s\n" if request.function is test_a_token_that_is_gone else ""
    return Hop(Site(instance, lease), Site(far(request, build), lease, "--api-listen", f"127.0.0.1:{port}"), port)


def waits_for(go):
    return f"while [ ! -e {go} ]; do sleep 0.05; done"


def owners(there):
    return sorted(there.api("GET", f"/v1/jobs/{number}.0")["ad"]["User"] for number in far_jobs(there))


def test_each_is_there_in_his_own_name(hop):
    near, there = hop.near, hop.there.instance
    hop.start()
    jobs = {}
    for user in (ONE, TWO):
        home = near.home(user)
        hop.give(user)
        near.write(user, "in", "x")
        near.write(user, "tool", f"#!/bin/sh\nid -u; cat in; echo new >made; chmod 750 made; mkdir sub; echo $HOME; pwd >{home}/where; {waits_for(home + '/go')}\n")
        os.chmod(os.path.join(home, "in"), 0o400)
        os.chmod(os.path.join(home, "tool"), 0o700)
        jobs[user] = near.submit(user, "", Cmd=os.path.join(home, "tool"), TransferInput="in", ShouldTransferFiles="YES",
                                 WhenToTransferOutput="ON_EXIT", Out="deep.out")
    for user in (ONE, TWO):
        wait_until(lambda u=user: os.path.exists(os.path.join(near.home(u), "where")))
    assert owners(there) == ["ann@local", "ben@local"]
    for user in (ONE, TWO):
        sandbox = near.text(user, "where").strip()
        assert sandbox.startswith(hop.there.state) and os.stat(sandbox).st_uid == user.pw_uid
        near.write(user, "go")
        near.instance.wait(jobs[user])
        assert near.text(user, "deep.out") == f"{user.pw_uid}\nx{user.pw_dir}\n"
        assert near.text(user, "made") == "new\n" and mode_of(os.path.join(near.home(user), "made")) == 0o750
        for name in ("deep.out", "made", "err"):
            assert near.owner(user, name) == (user.pw_uid, user.pw_gid), name
    wait_until(lambda: not [n for n in os.listdir(os.path.join(near.state, "jobs")) if n[0].isdigit()])
    wait_until(lambda: not far_jobs(there))
    for user in (ONE, TWO):
        secret = hop.tokens[user.pw_name].rsplit(".", 1)[1]
        for folder in (near.instance.base, there.base):
            assert files_with(folder, secret, [os.path.join(near.home(user), TOKEN)]) == []
        assert mode_of(os.path.join(near.home(user), TOKEN)) == 0o400


def test_who_has_no_token_waits_for_nobody(hop):
    """His jobs are held, with the reason; the others' go on, and his too when he has one."""
    near = hop.near
    hop.start()
    hop.give(ONE)
    lost = near.submit(TWO, "id -u")
    reason = near.instance.wait_state(f"{lost}.0", "held")["hold_reason"]
    assert TWO.pw_name in reason and TOKEN in reason and "No such file" in reason, reason
    near.run(ONE, "id -u")
    assert near.text(ONE, "out") == f"{ONE.pw_uid}\n"
    as_user(TWO, lambda: os.makedirs(".config", mode=0o700), near.home(TWO))
    near.write(TWO, TOKEN, "drover-user-token.v1." + "0" * 64 + ".1.2\n")
    as_user(TWO, lambda: near.instance.api("POST", "/v1/actions", {"action": "release", "ids": [f"{lost}.0"]}))
    wait_until(lambda: near.instance.job(f"{lost}.0")["state"] != "held")
    reason = near.instance.wait_state(f"{lost}.0", "held")["hold_reason"]
    assert "token" in reason, reason
    os.unlink(os.path.join(near.home(TWO), TOKEN))
    hop.give(TWO)
    as_user(TWO, lambda: near.instance.api("POST", "/v1/actions", {"action": "release", "ids": [f"{lost}.0"]}))
    near.instance.wait(lost)
    assert near.text(TWO, "out") == f"{TWO.pw_uid}\n"


def test_its_agent_killed(hop):
    """What was handed on for each is found again, in his name; nothing runs twice."""
    near = hop.near
    hop.start()
    jobs = {}
    for user in (ONE, TWO):
        hop.give(user)
        home = near.home(user)
        jobs[user] = near.submit(user, f"echo start >>{home}/starts; {waits_for(home + '/go')}; exit 3", jobs=3)
    for user in (ONE, TWO):
        near.instance.wait_state(f"{jobs[user]}.2", "running")
    near.node.kill()
    hop.start()
    for user in (ONE, TWO):
        near.write(user, "go")
        near.instance.wait(jobs[user], code=1)
        assert {row["exit_code"] for row in near.instance.history(jobs[user])} == {3}
        assert near.text(user, "starts") == "start\n" * 3


def test_stopped_and_removed(hop):
    near = hop.near
    hop.start()
    hop.give(ONE)
    request = near.submit(ONE, f"echo $$ >{near.home(ONE)}/pid; exec sleep 600")
    name = f"{request}.0"
    near.instance.wait_state(name, "running")
    near.instance.cli("suspend", name)
    there = hop.there.instance
    wait_until(lambda: far_jobs(there, "suspended"))
    near.instance.cli("resume", name)
    wait_until(lambda: far_jobs(there, "running"))
    near.instance.cli("rm", name)
    wait_until(lambda: not far_jobs(there))
    near.instance.wait(request, code=None)
    pid = near.text(ONE, "pid").strip()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_token_that_is_gone(hop):
    """What nobody can look at any more ends there by its lease; and here, when it is removed."""
    near, there = hop.near, hop.there.instance
    hop.start()
    hop.give(ONE)
    request = near.submit(ONE, f"echo $$ >{near.home(ONE)}/pid; exec sleep 600")
    near.instance.wait_state(f"{request}.0", "running")
    near.node.kill()
    os.unlink(os.path.join(near.home(ONE), TOKEN))
    hop.start()
    near.instance.cli("rm", f"{request}.0")
    near.instance.wait(request, code=None)
    wait_until(lambda: not far_jobs(there))
    pid = near.text(ONE, "pid").strip()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))


def starts(near):
    return [int(line.split()[1]) for line in near.text(ONE, "log").splitlines()] if os.path.exists(os.path.join(near.home(ONE), "log")) else []


def counts(near, **more):
    """A job that counts, and makes a checkpoint every five steps and when it is asked to."""
    home = near.home(ONE)
    near.write(ONE, "tool", "#!/bin/sh\n" + COUNTER.format(work=home, most=9, often="yes", pause=7, code=85, last="echo done",
                                                          and_then="mkdir -p sub; echo sub $n >sub/more;"))
    os.chmod(os.path.join(home, "tool"), 0o700)
    return near.submit(ONE, "", Cmd=os.path.join(home, "tool"), ShouldTransferFiles="YES", WhenToTransferOutput="ON_EXIT", CheckpointExitCode=85,
                       KillSig=10, TransferOutput="", **more)


def kept_of(near, job):
    ad = near.instance.job(job)["ad"]
    return {f["Name"]: near.instance.call("GET", f"/v1/jobs/{job}/files/{f['Name']}")[1].decode() for f in ad.get("DroverCheckpoint", [])}


@pytest.mark.parametrize("files", ["named", "all"])
def test_a_checkpoint_kept_there_comes_here(hop, files):
    """And when all behind is lost, the job goes on from it, its output behind what was here."""
    near, there = hop.near, hop.there.instance
    hop.start()
    hop.give(ONE)
    request = counts(near, **({"TransferCheckpoint": "state, sub/more"} if files == "named" else {}))
    wait_until(lambda: os.path.exists(os.path.join(near.home(ONE), "at")) and near.text(ONE, "at") == "7\n")
    job = f"{request}.0"
    near.instance.wait_state(job, "running")
    assert starts(near) == [0, 5] and kept_of(near, job)["state"] == "5\n"
    far_job = f"{far_jobs(there, 'running')[0]}.0"
    there.cli("hold", far_job)
    there.wait_state(far_job, "held")
    wait_until(lambda: kept_of(near, job)["state"] == "7\n")
    kept = {"state": "7\n", ".drover_out.0": "from 0\nfrom 5\n", **({"sub/more": "sub 7\n"} if files == "named" else {})}
    assert {name: text for name, text in kept_of(near, job).items() if name != ".drover_out.1"} == kept
    near.write(ONE, "go")
    there.cli("release", far_job)
    near.instance.wait(request)
    assert near.text(ONE, "out") == "from 0\nfrom 5\nfrom 7\ndone\n"
    wait_until(lambda: not [n for n in os.listdir(os.path.join(near.state, "jobs")) if n[0].isdigit()])


def test_all_behind_is_lost(hop):
    near, there = hop.near, hop.there.instance
    hop.start()
    hop.give(ONE)
    request = counts(near)
    wait_until(lambda: os.path.exists(os.path.join(near.home(ONE), "at")) and near.text(ONE, "at") == "7\n")
    job = f"{request}.0"
    near.instance.wait_state(job, "running")
    there.cli("hold", f"{far_jobs(there, 'running')[0]}.0")
    wait_until(lambda: kept_of(near, job).get("state") == "7\n")
    near.instance.cli("vacate", job)  # it waits there: it is back at once
    wait_until(lambda: [e["event"] for e in near.instance.events(job)].count("matched") == 2)
    near.write(ONE, "go")
    near.instance.wait(request)
    assert starts(near) == [0, 5, 7] and near.text(ONE, "out") == "from 0\nfrom 5\nfrom 7\ndone\n"
