"""The server and root's agent drop to system users of their own, and neither has what the other keeps.

The users are those of the installed sysusers.d file; the daemons see them in a mount namespace, and the machine stays as it is."""
import json
import os
import pwd
import shutil
import stat
import subprocess
import types

import pytest

from drover import Daemon, Failed, free_port, wait_until
from users import LOW, ONE, as_user

CONFS = [os.path.join(os.path.dirname(__file__), "..", "..", "dist", "sysusers", name) for name in ("drover-server.conf", "drover-agent.conf")]
SEE = 'mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/group" /etc/group && shift && exec "$@"'


def read_user(etc, name):
    with open(f"{etc}/passwd", encoding="utf-8") as f:
        found = [line.split(":") for line in f if line.startswith(f"{name}:")]
    assert len(found) == 1, f"{name}: {found}"
    return types.SimpleNamespace(pw_name=name, pw_uid=int(found[0][2]), pw_gid=int(found[0][3]), pw_shell=found[0][6].strip())


class Machine:
    """One on which `make install` and systemd-sysusers were run."""

    def __init__(self, instance):
        self.instance, self.etc = instance, f"{instance.base}/machine/etc"
        os.makedirs(self.etc)
        os.chmod(os.path.dirname(instance.base), 0o711)
        os.chmod(instance.base, 0o711)
        for name in ("passwd", "group"):
            with open(f"/etc/{name}", encoding="utf-8") as f, open(f"{self.etc}/{name}", "w", encoding="utf-8") as to:
                to.writelines(line for line in f if not line.startswith("drover"))
        self.before = f"{instance.base}/before"
        shutil.copytree(self.etc, self.before)
        for conf in CONFS:
            with open(conf, encoding="utf-8") as f:
                subprocess.run(["systemd-sysusers", f"--root={instance.base}/machine", "-"], stdin=f, check=True)
        self.server_user, self.agent_user = read_user(self.etc, "drover"), read_user(self.etc, "drover-agent")

    def start(self, name, *args, etc=None, by=None):
        argv = ["unshare", "--mount", "sh", "-c", SEE, "sh", etc or self.etc]
        if by:
            argv += ["setpriv", f"--reuid={by.pw_uid}", f"--regid={by.pw_gid}", "--clear-groups"]
        daemon = Daemon(name, [*argv, self.instance.program(name), *args], f"{self.instance.base}/{name}.log", self.instance.env,
                        self.instance.base)
        self.instance.daemons.append(daemon)
        return daemon

    def server(self, *args, **more):
        """Until it is ready, or has ended."""
        daemon = self.start("droverd", "--dir", self.instance.dir, *args, **more)

        def there():
            try:
                return not daemon.running() or self.instance.server_pid() == daemon.pid
            except (OSError, ValueError):
                return False

        wait_until(there)
        return daemon

    def stop(self, daemon):
        self.instance.daemons.remove(daemon)
        daemon.stop()


@pytest.fixture
def machine(instance):
    return Machine(instance)


def ids(pid):
    """The process's uids and gids: real, effective, saved, of the file system; then its groups."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    return [{int(n) for n in status[name].split()} for name in ("Uid", "Gid", "Groups")]


def runs_as(user):
    return [{user.pw_uid}, {user.pw_gid}, {user.pw_gid}]


def all_of(folder):
    return [os.path.join(where, name) for where, folders, names in os.walk(folder) for name in folders + names]


def cannot_read(user, path):
    assert os.path.exists(path), path
    with pytest.raises(Failed, match="PermissionError"):
        as_user(user, lambda: open(path, "rb").read(1).hex())  # pylint: disable=consider-using-with


def test_the_installed_users(machine):
    """Two system users, of groups of their own, as whom nobody logs in."""
    installed = json.loads(subprocess.run(["meson", "introspect", "--installed", machine.instance.build], stdout=subprocess.PIPE, check=True).stdout)
    for name in ("drover-agent.conf", "drover-server.conf"):
        where, = [to for path, to in installed.items() if path.endswith(f"sysusers/{name}")]
        assert where.endswith(f"/lib/sysusers.d/{name}")
    one, two = machine.server_user, machine.agent_user
    assert len({one.pw_uid, two.pw_uid, 0}) == len({one.pw_gid, two.pw_gid, 0}) == 3
    assert one.pw_uid < 1000 and two.pw_uid < 1000, "jobs are not run as them, and min_uid is 1000 if nothing is said"
    assert one.pw_shell.endswith("nologin") and two.pw_shell.endswith("nologin")


def test_neither_has_what_the_other_keeps(machine):
    instance, port = machine.instance, free_port()
    server = machine.server("--listen", f"127.0.0.1:{port}")
    assert server.running(), server.output()
    assert ids(server.pid) == runs_as(machine.server_user)
    assert stat.S_IMODE(os.stat(instance.dir).st_mode) == 0o755, "users reach the socket in it"
    for path in [instance.dir, *all_of(instance.dir)]:
        st = os.lstat(path)
        assert (st.st_uid, st.st_gid) == (machine.server_user.pw_uid, machine.server_user.pw_gid), path
    config, state = f"{instance.base}/node.yaml", f"{instance.base}/node"
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"users:\n  {ONE.pw_name}@local: {ONE.pw_name}\nmin_uid: {ONE.pw_uid}\n")
    token = instance.json("token", "agent", "--name", "node")["token"]
    agent = machine.start("drover-agent", "--dir", state, "--server", f"127.0.0.1:{port}", "--token", token, "--config", config)
    wait_until(lambda: instance.agents("connected") or not agent.running())
    assert agent.running(), agent.output()
    assert ids(agent.pid) == [{machine.agent_user.pw_uid}, {machine.agent_user.pw_gid}, set()]
    shepherd, = instance.pids("drover-shepherd")
    assert ids(shepherd)[0] == {0}
    key = os.stat(f"{state}/agent/agent.key")
    assert (key.st_uid, stat.S_IMODE(key.st_mode)) == (machine.agent_user.pw_uid, 0o600)
    for name in ("ca/ca.key", "credential.key", "ticket.key", "drover.db"):
        cannot_read(machine.agent_user, f"{instance.dir}/{name}")
        cannot_read(ONE, f"{instance.dir}/{name}")
    for user in (machine.server_user, ONE):
        cannot_read(user, f"{state}/agent/agent.key")
        with pytest.raises(Failed, match="PermissionError"):
            as_user(user, lambda: os.listdir(f"{state}/agent"))


def test_as_whom_a_server_of_root_s_runs(machine):
    """By what it is told; else by whose the database is; else the system user, where there is one. Root only with a warning."""
    instance = machine.instance
    root = pwd.getpwuid(0)

    def runs(user, *args, said="", **more):
        server = machine.server(*args, **more)
        assert server.running(), server.output()
        assert ids(server.pid)[0] == {user.pw_uid}
        warnings = [line for line in server.output().splitlines() if " warn " in line and "as root" in line]
        assert len(warnings) == bool(said) and said in "".join(warnings), server.output()
        machine.stop(server)

    def own(user):
        for path in [instance.dir, *all_of(instance.dir)]:
            os.lchown(path, user.pw_uid, user.pw_gid)

    def ends(said, *args, **more):
        server = machine.server(*args, **more)
        assert server.process.wait(60) == 1 and said in server.output(), server.output()
        machine.stop(server)

    runs(root, etc=machine.before, said="make the system user drover")  # no such user yet
    assert stat.S_IMODE(os.stat(instance.dir).st_mode) == 0o700
    runs(root, said=f"chown -R drover: {instance.dir}")  # installed later: what is there is not touched
    runs(root, "--user", "root")
    ends("belongs to user 0", "--user", "drover")
    own(machine.server_user)
    runs(machine.server_user)
    runs(machine.server_user, "--user", "drover")
    ends(f"`chown -R {ONE.pw_name}: ", "--user", ONE.pw_name)
    ends("there is no user drover", "--user", "drover", etc=machine.before)
    own(ONE)
    runs(ONE)
    runs(ONE, by=ONE)
    runs(ONE, "--user", ONE.pw_name, by=ONE)
    ends("only root can start a server that shall run as drover", "--user", "drover", by=ONE)
    shutil.rmtree(instance.dir)
    os.mkdir(instance.dir)  # with nothing in it, or with its settings
    with open(f"{instance.dir}/droverd.yaml", "w", encoding="utf-8") as f:
        f.write(f"user: {LOW.pw_name}\n")
    runs(LOW)
    shutil.rmtree(instance.dir)
    os.chmod(instance.base, 0o700)
    ends("the folders above it must let that user pass")


def test_who_looks_and_copies_is_the_instance_s_user(machine):
    """What root does with an instance by --check, --backup and --restore has its user's rights, and leaves nothing that is root's in it."""
    instance, user = machine.instance, machine.server_user
    machine.stop(machine.server())
    copy, back = f"{instance.base}/copy", f"{instance.base}/back"

    def does(*args, code=0):
        daemon = machine.start("droverd", *args)
        assert daemon.process.wait(60) == code, daemon.output()
        machine.instance.daemons.remove(daemon)
        return daemon.output()

    def is_all_his(folder):
        assert {os.lstat(p).st_uid for p in [folder, *all_of(folder)]} <= {user.pw_uid}, folder

    assert "ok" in does("--dir", instance.dir, "--check")
    is_all_his(instance.dir)
    assert "Permission denied" in does("--dir", instance.dir, "--backup", copy, code=1)
    os.mkdir(copy)
    os.chown(copy, user.pw_uid, user.pw_gid)
    does("--dir", instance.dir, "--backup", copy)
    is_all_his(copy)
    does("--dir", back, "--restore", copy)
    is_all_his(back)


def test_an_agent_of_another_user_s_folder_says_so(machine):
    """Its key was made as another user, as before there was drover-agent."""
    instance = machine.instance
    state, config = f"{instance.base}/node", f"{instance.base}/node.yaml"
    os.makedirs(f"{state}/agent")
    with open(f"{state}/agent/agent.key", "w", encoding="utf-8"):
        os.chown(f"{state}/agent/agent.key", ONE.pw_uid, ONE.pw_gid)
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"users:\n  {ONE.pw_name}@local: {ONE.pw_name}\nmin_uid: {ONE.pw_uid}\n")
    agent = machine.start("drover-agent", "--dir", state, "--server", f"127.0.0.1:{free_port()}", "--config", config)
    assert agent.process.wait(60) != 0
    assert f"its key in {state}/agent belongs to user {ONE.pw_uid}" in agent.output()
    assert f"chown -R {machine.agent_user.pw_uid}:{machine.agent_user.pw_gid} {state}/agent" in agent.output()
