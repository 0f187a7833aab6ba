"""A server, and an agent that root starts with `users` in its file: each owner's jobs run as the local user named there."""
import json
import os
import pwd
import shutil
import stat
import uuid

from drover import Failed, free_port, wait_until

# Users that every Debian has; min_uid is set so that two of them may run jobs and others may not.
ONE, TWO, LOW, AGENT = (pwd.getpwnam(name) for name in ("games", "man", "daemon", "nobody"))
MAP = f"users:\n  {ONE.pw_name}@local: {ONE.pw_name}\n  {TWO.pw_name}@local: {TWO.pw_name}\n"


def as_user(user, what, folder=None):
    """What a function gives when this user calls it, in that folder."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
            os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
            if folder:
                os.chdir(folder)
            answer = [True, what()]
        except BaseException as e:  # pylint: disable=broad-except
            answer = [False, repr(e)]
        os.write(theirs, json.dumps(answer).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as f:
        text = f.read()
    os.waitpid(pid, 0)
    good, value = json.loads(text)
    if not good:
        raise Failed(value)
    return value


class Site:
    """A server, folders of two users, and agents that root starts."""

    def __init__(self, instance, settings="", *args):
        self.prepare(instance)
        config = os.path.join(instance.base, "droverd.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(settings)
        self.start = lambda: instance.server("--listen", f"127.0.0.1:{instance.port}", "--config", config, *args)
        self.server = self.start()
        os.chmod(instance.dir, 0o755)

    def prepare(self, instance):
        """Programs as they are installed, and homes; no server."""
        self.instance = instance
        self.bin = os.path.join(instance.base, "programs")
        os.chmod(os.path.dirname(instance.base), 0o711)
        os.chmod(instance.base, 0o711)
        os.makedirs(self.bin)
        for name in ("drover", "drover-agent", "drover-mover", "drover-shepherd", "drover-launch"):
            shutil.copy(instance.program(name), self.bin)
            os.chmod(os.path.join(self.bin, name), 0o755 if name in ("drover", "drover-launch") else 0o711)  # as they are installed
        instance.port = free_port()
        self.state = os.path.join(instance.base, "node")
        for user in (ONE, TWO, LOW):
            os.mkdir(self.home(user), 0o700)
            os.chown(self.home(user), user.pw_uid, user.pw_gid)

    def home(self, user):
        return os.path.join(self.instance.base, "home-" + user.pw_name)

    def config(self, text, mode=0o644):
        path = os.path.join(self.instance.base, "node.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def agent(self, text=MAP, min_uid=ONE.pw_uid, more="", wait=True, mode=0o644, token=None):
        config = self.config(f"{text}min_uid: {min_uid}\nuser: {AGENT.pw_name}\n{more}", mode)
        token = token or self.instance.json("token", "agent", "--name", "node")["token"]
        program, self.instance.program = self.instance.program, lambda name: os.path.join(self.bin, name)
        try:
            agent = self.instance.start("drover-agent", "--dir", self.state, "--server",
                                        f"127.0.0.1:{self.instance.port}", "--token", token, "--config", config)
        finally:
            self.instance.program = program
        if wait:
            wait_until(lambda: self.instance.agents("connected") or not agent.running())
            assert agent.running(), agent.output()
        return agent

    def submit(self, user, script, jobs=1, **more):
        """Through the API, so that nothing is shipped: the agent must find the files."""
        attributes = {"Cmd": '"/bin/sh"', "Iwd": json.dumps(self.home(user)), "TransferExecutable": "false",
                      "Arguments": json.dumps("-c '" + script.replace("'", "''") + "'"), "RequestMemory": "32",
                      "RequestDisk": "1024", "Out": '"out"', "Err": '"err"',
                      **{k: json.dumps(v) for k, v in more.items()}}
        attributes["FileSystemDomain"] = json.dumps(domain())
        body = {"uuid": str(uuid.uuid4()), "parts": [{"attributes": attributes, "rows": 1, "steps": jobs}]}
        return as_user(user, lambda: self.instance.api("POST", "/v1/requests", body))["id"]

    def run(self, user, script, **more):
        request = self.submit(user, script, **more)
        self.instance.wait(request)
        return request

    def text(self, user, name):
        with open(os.path.join(self.home(user), name), encoding="utf-8") as f:
            return f.read()

    def write(self, user, name, text=""):
        as_user(user, lambda: open(name, "w", encoding="utf-8").write(text), self.home(user))  # pylint: disable=consider-using-with

    def owner(self, user, name):
        st = os.lstat(os.path.join(self.home(user), name))
        return st.st_uid, st.st_gid


def domain():
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as f:
        return f"{f.read().strip()}:{os.stat('/proc/self/ns/mnt').st_ino}"


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def uids_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return {line.split()[0]: line.split()[1:] for line in f if line[:4] in ("Uid:", "Gid:", "Grou")}
