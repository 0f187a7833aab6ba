"""An agent that root starts with `users` in its file: each owner's jobs run as the local user that the file names."""
import os
import pwd
import socket
import subprocess
import uuid

import pytest

from drover import alive, processes, wait_until
from guarded import Authority, Guarded
from stores import Nginx
from test_credentials import files_with
from users import AGENT, LOW, ONE, TWO, Site, as_user, mode_of, uids_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs of several users")


@pytest.fixture
def site(instance):
    return Site(instance)


def test_each_owners_jobs_run_as_its_user(site):
    agent = site.agent()
    ids = uids_of(agent.pid)
    assert ids["Uid:"] == [str(AGENT.pw_uid)] * 4 and ids["Groups:"] == []
    shepherd, = site.instance.pids("drover-shepherd")
    assert uids_of(shepherd)["Uid:"] == ["0"] * 4
    for user in (ONE, TWO):
        with open(os.path.join(site.home(user), "in"), "w", encoding="utf-8") as f:
            f.write(f"data of {user.pw_name}\n")
        os.chown(os.path.join(site.home(user), "in"), user.pw_uid, user.pw_gid)
        os.chmod(os.path.join(site.home(user), "in"), 0o400)
        site.run(user, "id -u; id -G; echo $USER $HOME; cat in; echo new >made; ls -ldn . | cut -d' ' -f1,3",
                 TransferInput="in", ShouldTransferFiles="YES", WhenToTransferOutput="ON_EXIT")
        assert site.text(user, "out").splitlines() == [
            str(user.pw_uid), str(user.pw_gid), f"{user.pw_name} {user.pw_dir}", f"data of {user.pw_name}",
            f"drwx--x--- {user.pw_uid}"]
        assert site.text(user, "made") == "new\n"
        for name in ("out", "made", "err"):
            assert site.owner(user, name) == (user.pw_uid, user.pw_gid)
    offered = site.instance.agents()[0]
    assert offered["state"] == "connected"
    wait_until(lambda: os.listdir(os.path.join(site.state, "jobs")) == [])


def test_what_a_submit_ships_arrives_and_goes_back(site):
    """Inputs from the server's spool, and outputs into it: the agent's cache is closed to the job's user."""
    site.agent(more="filesystem_domain: elsewhere.example\n")
    home = site.home(ONE)
    with open(os.path.join(home, "tool.sh"), "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nid -u\ncat data\nhead -c 3000000 /dev/zero >big\n")
    os.chmod(os.path.join(home, "tool.sh"), 0o755)
    with open(os.path.join(home, "data"), "w", encoding="utf-8") as f:
        f.write("shipped\n")
    env = {**site.instance.env, "HOME": home, "TMPDIR": home}
    drover = os.path.join(site.bin, "drover")

    def cli(*args):
        p = subprocess.run([drover, *args], env=env, cwd=home, user=ONE.pw_uid, group=ONE.pw_gid, extra_groups=[],
                           input="executable = tool.sh\ntransfer_input_files = data\noutput = out\n"
                                 "transfer_output_files = big\nrequest_memory = 32 MB\nrequest_disk = 9 MB\nqueue\n",
                           capture_output=True, text=True, timeout=90, check=False)
        assert p.returncode == 0, p.stdout + p.stderr
        return p.stdout

    cli("submit", "-")
    cli("wait", "--timeout", "60", "1")
    cli("get", "1.0", "-o", "got")
    assert site.text(ONE, "got/out") == f"{ONE.pw_uid}\nshipped\n"
    assert os.path.getsize(os.path.join(home, "got", "big")) == 3000000


def test_nobody_reads_what_is_another_ones(site):
    agent = site.agent()
    go = os.path.join(site.home(ONE), "go")
    first = site.submit(ONE, f"echo secret >mine; echo $DROVER_SCRATCH; while [ ! -e {go} ]; do sleep 0.05; done")
    site.instance.wait_state(f"{first}.0", "running")
    sandbox, = os.listdir(os.path.join(site.state, "jobs"))
    sandbox = os.path.join(site.state, "jobs", sandbox)
    wait_until(lambda: os.path.exists(os.path.join(sandbox, "mine")))
    st = os.stat(sandbox)
    assert (st.st_uid, st.st_gid, mode_of(sandbox)) == (ONE.pw_uid, AGENT.pw_gid, 0o710)
    own = os.path.join(site.state, "agent")
    tries = [os.path.join(sandbox, "mine"), sandbox, own, *(os.path.join(own, n) for n in (
        "agent.key", "agent.crt", "journal", "cache")), f"/proc/{agent.pid}/environ", f"/proc/{agent.pid}/mem"]
    assert os.path.exists(os.path.join(own, "agent.key")) and os.path.exists(os.path.join(own, "journal"))
    for user in (TWO, ONE):
        for path in tries if user is TWO else tries[2:]:
            script = f"if ls {path}/ || cat {path}; then echo read; else echo refused; fi 2>/dev/null"
            site.run(user, script, Out="tried")
            assert site.text(user, "tried") == "refused\n", f"{user.pw_name} reads {path}"
    site.run(TWO, f"touch {site.state}/jobs/x {site.state}/x {site.state}/users; ls {site.state}/jobs; true")
    assert sorted(os.listdir(os.path.join(site.state, "jobs"))) == [os.path.basename(sandbox)]
    assert not os.path.exists(os.path.join(site.state, "x"))
    assert os.stat(os.path.join(site.state, "users")).st_uid == 0
    with open(go, "w", encoding="utf-8"):
        pass
    site.instance.wait(first)


def test_nothing_of_a_job_outlives_it(site):
    """Not a process in a session of its own that has wiped its environment, while another user's job runs."""
    site.agent()
    other = site.submit(TWO, "exec sleep 600")
    site.instance.wait_state(f"{other}.0", "running")
    site.run(ONE, f"setsid env -i /bin/sh -c 'cd {site.home(ONE)}; echo $$ >left.new; mv left.new left; exec sleep 600' & "
                  f"while [ ! -e {site.home(ONE)}/left ]; do sleep 0.05; done")
    assert not alive(int(site.text(ONE, "left")))
    site.instance.cli("rm", str(other))


def test_who_is_not_in_the_map_is_told_so(site):
    site.agent()
    request = site.submit(LOW, "id")
    why = site.instance.cli("why", f"{request}.0")
    assert "runs jobs of other owners" in why or "owner" in why, why
    assert site.instance.job(f"{request}.0")["state"] == "idle"
    assert not os.path.exists(os.path.join(site.home(LOW), "out"))


@pytest.mark.parametrize("user, says", [("root", "root: no job runs as uid 0"), ("daemon", "is below min_uid"),
                                        (AGENT.pw_name, "which is the agent's own user")])
def test_the_file_cannot_name_them(site, user, says):
    agent = site.agent(f"users:\n  {TWO.pw_name}@local: {user}\n", wait=False)
    wait_until(lambda: not agent.running())
    assert agent.process.returncode == 2 and says in agent.output(), agent.output()


def test_the_file_must_be_roots(site):
    agent = site.agent(wait=False, mode=0o666)
    wait_until(lambda: not agent.running())
    assert agent.process.returncode == 2 and "it must be root's" in agent.output()


@pytest.mark.parametrize("name, says", [("root", "no job runs as uid 0"), (LOW.pw_name, "below min_uid")])
def test_users_of_the_same_name_are_checked_one_by_one(site, name, says):
    """`*@local` offers to everybody there; who may not be is refused with the reason, and nothing runs."""
    site.agent('users:\n  "*@local": same name\n')
    site.run(TWO, "id -u")
    assert site.text(TWO, "out") == f"{TWO.pw_uid}\n"
    user = pwd.getpwnam(name)
    os.makedirs(site.home(user), exist_ok=True)
    request = site.submit(user, "id -u")
    wait_until(lambda: says in site.instance.cli("why", f"{request}.0"))
    assert len(site.instance.events(f"{request}.0")) < 40, "it is not offered again and again"
    site.run(TWO, "id -u")
    assert not os.path.exists(os.path.join(site.home(user), "out"))


def test_links_are_followed_with_the_owners_rights_only(site):
    site.agent()
    secret = os.path.join(site.instance.base, "secret")
    with open(secret, "w", encoding="utf-8") as f:
        f.write("root's\n")
    os.chmod(secret, 0o600)
    for name in ("link", "out-link"):
        os.symlink(secret, os.path.join(site.home(ONE), name))
    request = site.submit(ONE, "cat link", TransferInput="link", ShouldTransferFiles="YES")
    job = site.instance.wait_state(f"{request}.0", "held")
    assert "link" in job["hold_reason"] and "ermission" in job["hold_reason"]
    request = site.submit(ONE, "cat", In="link")
    job = site.instance.wait_state(f"{request}.0", "held")
    assert "ermission" in job["hold_reason"]
    # A regular file that replaces the link's target would need rights on root's folder.
    request = site.submit(ONE, "echo overwritten", Out="out-link")
    job = site.instance.wait_state(f"{request}.0", "held", "completed")
    assert job["state"] == "held" and "ermission" in job["hold_reason"]
    with open(secret, encoding="utf-8") as f:
        assert f.read() == "root's\n"
    assert os.stat(secret).st_uid == 0
    # And an output that is a link in the sandbox is no output.
    request = site.submit(ONE, f"ln -s {secret} made", TransferOutput="made", ShouldTransferFiles="YES",
                          WhenToTransferOutput="ON_EXIT")
    assert site.instance.wait_state(f"{request}.0", "held")["hold_reason"]
    assert not os.path.lexists(os.path.join(site.home(ONE), "made"))


def test_logs_are_the_owners(site):
    """Lines of a user log are added by a process of the owner's user."""
    site.agent()
    secret = os.path.join(site.instance.base, "secret")
    with open(secret, "w", encoding="utf-8"):
        pass
    site.run(ONE, "true", UserLog="job.log")
    wait_until(lambda: os.path.exists(os.path.join(site.home(ONE), "job.log")) and
               "\n005 (" in site.text(ONE, "job.log"))
    assert site.owner(ONE, "job.log") == (ONE.pw_uid, ONE.pw_gid)
    lines = site.text(ONE, "job.log").splitlines()
    assert [line[:3] for line in lines if line[3:5] == " ("] == ["000", "001", "006", "005"]
    os.chmod(secret, 0o600)
    os.symlink(secret, os.path.join(site.home(ONE), "link.log"))
    site.run(ONE, "true", UserLog="link.log")
    site.run(ONE, "true", UserLog=secret)
    site.run(ONE, "true", UserLog="job2.log")
    wait_until(lambda: os.path.exists(os.path.join(site.home(ONE), "job2.log")))
    assert os.path.getsize(secret) == 0


def test_an_agent_that_comes_back_finds_its_jobs(site):
    """The shepherd stays, with root's rights, and the next agent takes over; sandboxes that are nobody's go."""
    agent = site.agent()
    go = os.path.join(site.home(ONE), "go")
    request = site.submit(ONE, f"while [ ! -e {go} ]; do sleep 0.05; done; id -u; exit 3")
    site.instance.wait_state(f"{request}.0", "running")
    agent.kill()
    stray = os.path.join(site.state, "jobs", "99.0.1")
    os.mkdir(stray)
    with open(os.path.join(stray, "left"), "w", encoding="utf-8"):
        pass
    for path in (stray, os.path.join(stray, "left")):
        os.chown(path, TWO.pw_uid, TWO.pw_gid)
    # a child of the shepherd's is of that name, too, until it is in its program
    before = wait_until(lambda: len(found := site.instance.pids("drover-shepherd")) == 1 and found)
    agent = site.agent()
    wait_until(lambda: site.instance.pids("drover-shepherd") == before)
    wait_until(lambda: not os.path.exists(stray))
    with open(go, "w", encoding="utf-8"):
        pass
    site.instance.wait(request, code=1)
    assert site.instance.history(request)[0]["exit_code"] == 3
    assert site.text(ONE, "out") == f"{ONE.pw_uid}\n" and site.owner(ONE, "out")[0] == ONE.pw_uid


def test_without_its_shepherd_it_ends(site):
    """It cannot start another one any more; whoever started it as root does."""
    agent = site.agent()
    for pid in site.instance.pids("drover-shepherd"):
        os.kill(pid, 9)
    wait_until(lambda: not agent.running())
    assert agent.process.returncode == 1
    wait_until(lambda: not processes(site.state))
    site.instance.daemons.remove(agent)


def test_urls_are_fetched_and_sent_as_the_jobs_user(site):
    """The mover is the job's user; what one owner's mover brought from nowhere known is not another's."""
    helper = os.path.join(site.instance.base, "who-mover")
    with open(helper, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nid -u >&3\necho '{\"event\":\"done\"}'\n")
    os.chmod(helper, 0o755)
    site.agent(more=f"movers:\n  who: {helper}\n")
    for user in (ONE, TWO, ONE):
        site.run(user, "cat f", ShouldTransferFiles="IF_NEEDED", TransferInput="who://x/f")
        assert site.text(user, "out").strip() == str(user.pw_uid)
    # a file:// URL is read with the rights of the job's user
    secret = os.path.join(site.home(ONE), "secret")
    as_user(ONE, lambda: open(secret, "w", encoding="utf-8").write("mine"))  # pylint: disable=consider-using-with
    site.run(ONE, "cat secret", ShouldTransferFiles="IF_NEEDED", TransferInput=f"file://{secret}")
    assert site.text(ONE, "out") == "mine"
    request = site.submit(TWO, "cat secret", ShouldTransferFiles="IF_NEEDED", TransferInput=f"file://{secret}")
    job = wait_until(lambda: (j := site.instance.job(f"{request}.0"))["state"] == "held" and j)
    assert "Permission denied" in job["hold_reason"] and job["hold_code"] == 13
    # an output goes there with the user's rights, too
    target = os.path.join(site.home(ONE), "sent")
    site.run(ONE, "echo output >made", ShouldTransferFiles="IF_NEEDED", TransferOutput="made",
             TransferOutputRemaps=f"made=file://{target}")
    assert site.text(ONE, "sent") == "output\n" and site.owner(ONE, "sent")[0] == ONE.pw_uid
    request = site.submit(TWO, "echo output >made", ShouldTransferFiles="IF_NEEDED", TransferOutput="made",
                          TransferOutputRemaps=f"made=file://{target}2")
    job = wait_until(lambda: (j := site.instance.job(f"{request}.0"))["state"] == "held" and j)
    assert "Permission denied" in job["hold_reason"] and job["hold_code"] == 12


def test_credentials_are_their_owners_alone(site):
    """The files are the job's user's; nobody else has them, sees them or may name them, and renewing them reaches the job."""
    site.agent()
    api = site.instance.api

    def put(text):
        as_user(ONE, lambda: api("PUT", "/v1/credentials/grid", {"type": "token", "data": text}))

    put("hush-one")
    request = site.submit(ONE, "stat -c '%U %a' $BEARER_TOKEN_FILE; while grep -q one $BEARER_TOKEN_FILE; do sleep 0.1; done; "
                          "cat $BEARER_TOKEN_FILE", DroverCredentials="grid")
    site.instance.wait_state(f"{request}.0", "running")
    folder, = [os.path.join(site.state, "jobs", d) for d in os.listdir(os.path.join(site.state, "jobs"))]
    path = os.path.join(folder, ".drover_credentials", "grid.use")
    wait_until(lambda: os.path.exists(path))
    assert as_user(TWO, lambda: os.access(path, os.R_OK)) is False
    assert as_user(TWO, lambda: api("GET", "/v1/credentials")) == {"credentials": []}
    thief = site.submit(TWO, "cat $BEARER_TOKEN_FILE", DroverCredentials="grid")
    assert "man@local has no credential grid" in site.instance.wait_state(f"{thief}.0", "held")["hold_reason"]
    put("hush-two")
    site.instance.wait(request)
    assert site.text(ONE, "out") == f"{ONE.pw_name} 600\nhush-two"
    wait_until(lambda: not os.path.exists(folder))


def test_credentials_do_not_outlive_the_last_step_or_the_lease(instance):
    """They go before outputs are sent, however long that takes; and the shepherd removes those of an agent that does not come back."""
    site = Site(instance, "lease: 3s\n")
    agent = site.agent()
    as_user(ONE, lambda: instance.api("PUT", "/v1/credentials/grid", {"type": "token", "data": "hush-one"}))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        request = site.submit(ONE, "grep -q hush $BEARER_TOKEN_FILE && echo new >made", DroverCredentials="grid", TransferOutput="made",
                              ShouldTransferFiles="IF_NEEDED", TransferOutputRemaps=f"made=http://127.0.0.1:{mute.getsockname()[1]}/made")
        wait_until(lambda: [h for h in instance.json("path", f"{request}.0")["hops"] if "sending output 1" in h.get("doing", "")])
        assert files_with(site.state, "hush-one") == []
        instance.cli("rm", str(request))
    began = os.path.join(site.home(ONE), "began")
    site.submit(ONE, f"touch {began}; sleep 1000", DroverCredentials="grid")
    wait_until(lambda: os.path.exists(began))
    assert files_with(site.state, "hush-one")
    agent.kill()
    wait_until(lambda: not files_with(site.state, "hush-one"))


def test_what_came_with_a_credential_is_its_owners_alone(site):
    """Kept for its owner's jobs that have it; another owner's credential of the same name opens nothing."""
    authority = Authority(os.path.join(site.instance.base, "authority"))
    store = Guarded(os.path.join(site.instance.base, "guarded"), authority, ("hush-one",))
    try:
        store.wait()
        site.agent(more=f"ca_file: {authority.file}\ntransfer_tries: 1\n")
        url = store.put("f", b"for one\n")

        def give(user, text):
            body = {"type": "token", "data": text, "urls": [store.url]}
            as_user(user, lambda: site.instance.api("PUT", "/v1/credentials/grid", body))

        def submit(user, **more):
            return site.submit(user, "cat f >g; cat f", ShouldTransferFiles="IF_NEEDED", TransferInput=url, TransferOutput="g",
                               TransferOutputRemaps=f"g={store.url}out/{user.pw_name}", **more)

        give(ONE, "hush-one")
        give(TWO, "hush-two")
        for _ in range(2):
            site.instance.wait(submit(ONE, DroverCredentials="grid"))
        assert site.text(ONE, "out") == "for one\n" and store.gets("f") == 1
        assert store.read(f"out/{ONE.pw_name}") == b"for one\n"
        for more, code in (({"DroverCredentials": "grid"}, 4), ({}, 13)):
            job = site.instance.wait_state(f"{submit(TWO, **more)}.0", "held")
            assert job["hold_code"] == code and "HTTP 401" in job["hold_reason"], job
        assert files_with(site.state, "hush-") == []
    finally:
        store.stop()


def test_what_counts_as_cached_is_given_from_the_cache(instance):
    """A file that one user's job has brought costs another one's job nothing only where he is not sent for it again."""
    authority = Authority(os.path.join(instance.base, "authority"))
    guarded = Guarded(os.path.join(instance.base, "guarded"), authority, ("hush-one", "hush-two"))
    store = Nginx(os.path.join(instance.base, "nginx"))
    # it is everybody's where the configuration names it, without a credential; ONE has one, TWO learns it later
    site = Site(instance, f"limits: {{nothing: 0}}\nstores:\n  lab:\n    urls: {store.url}lab/\n  vault:\n    urls: {guarded.url[:-4]}\n")
    size = 300000
    try:
        store.wait()
        guarded.wait()
        site.agent(more=f"ca_file: {authority.file}\nprobe: 0\n")
        own, common = store.put("own", b"o" * size), store.put("lab/common", b"c" * size)
        secret = guarded.put("secret", b"s" * size)

        def attributes(url):
            return {"TransferInput": url, "TransferInputSizes": str(size), "ShouldTransferFiles": "IF_NEEDED",
                    **({"DroverCredentials": "grid"} if url == secret else {})}

        def held(user, url):
            """what the server thinks that the user's job would find there"""
            ad = {"Cmd": '"/bin/true"', "RequestMemory": "32", "RequestDisk": "1024",
                  **{k: f'"{v}"' for k, v in attributes(url).items()}}
            body = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": ad, "rows": 1, "steps": 1}]}
            cost = wait_until(lambda: as_user(user, lambda: instance.api("POST", "/v1/quote", body))["places"])[0]["cost"]
            assert cost["bytes_in"] == size and cost["bytes_held"] in (0, size)
            return cost["bytes_held"] == size

        def moved(url):
            if url == secret:
                return guarded.gets("secret")
            return len([r for r in store.requests("GET") if store.base[:-1] + r[2] == url and r[3] == 200])

        def give(user, text):
            body = {"type": "token", "data": text, "urls": [guarded.url]}
            as_user(user, lambda: instance.api("PUT", "/v1/credentials/grid", body))

        give(ONE, "hush-one")
        for url in (own, common, secret):
            assert not held(ONE, url)
            site.run(ONE, "true", **attributes(url))
            wait_until(lambda url=url: held(ONE, url))
            assert moved(url) == 1
        assert held(TWO, common) and not held(TWO, own) and not held(TWO, secret)
        # a job that waits is told the same
        for user in (ONE, TWO):
            waits = site.submit(user, "true", ConcurrencyLimits="nothing", **attributes(own))
            why = instance.api("GET", f"/v1/jobs/{waits}.0/why")
            assert why["agents"][0]["cost"]["bytes_held"] == (size if user is ONE else 0), why
        # and that is what is moved
        for user in (ONE, TWO):
            site.run(user, "true", **attributes(own))
        wait_until(lambda: held(TWO, own))
        site.run(TWO, "true", **attributes(common))
        assert moved(own) == 2 and moved(common) == 1
        give(TWO, "hush-two")
        assert not held(TWO, secret)
        site.run(TWO, "true", **attributes(secret))
        wait_until(lambda: held(TWO, secret))
        assert moved(secret) == 2
        for user in (ONE, TWO):
            for url in (own, common, secret):
                assert held(user, url)
                site.run(user, "true", **attributes(url))
        assert (moved(own), moved(common), moved(secret)) == (2, 1, 2)
    finally:
        store.stop()
        guarded.stop()


def test_a_credential_for_other_urls_makes_files_other_ones(instance):
    """Also those of jobs that wait, and of jobs that were recovered when the server started."""
    authority = Authority(os.path.join(instance.base, "authority"))
    guarded = Guarded(os.path.join(instance.base, "guarded"), authority, ("hush-one",))
    site = Site(instance, f"limits: {{nothing: 0}}\nstores:\n  vault:\n    urls: {guarded.url[:-4]}\n")
    try:
        guarded.wait()
        site.agent(more=f"ca_file: {authority.file}\nprobe: 0\n")
        more = {"TransferInput": guarded.put("f", b"f" * 300000), "TransferInputSizes": "300000",
                "ShouldTransferFiles": "IF_NEEDED", "DroverCredentials": "grid"}

        def give(*urls):
            body = {"type": "token", "data": "hush-one", "urls": urls}
            as_user(ONE, lambda: instance.api("PUT", "/v1/credentials/grid", body))

        def held():
            """what the server knows of the job that waits"""
            why = instance.api("GET", f"/v1/jobs/{waits}.0/why")
            return any(a.get("cost", {}).get("bytes_held") == 300000 for a in why["agents"])

        give(guarded.url)
        site.run(ONE, "true", **more)
        waits = site.submit(ONE, "true", ConcurrencyLimits="nothing", **more)
        wait_until(held)
        give(guarded.elsewhere)
        assert not held()
        give(guarded.elsewhere, guarded.url)
        assert held()
        site.server.stop()
        site.server = site.start()
        wait_until(held)
        site.run(ONE, "true", **more)
        assert guarded.gets("f") == 1
    finally:
        guarded.stop()
