"""Podman with a store of its own and one image, made of busybox without a network; an agent of a test that is given
`env` uses it. Nothing is fetched: registries are blocked."""
import os
import shutil
import subprocess

from drover import Failed

IMAGE = "localhost/tiny:1"


class Podman:
    def __init__(self, folder, name="pod"):
        self.folder = os.path.join(folder, name)
        os.makedirs(os.path.join(self.folder, "tmp"))
        self.env = {
            "CONTAINERS_CONF": self._write("containers.conf", self._engine()),
            "CONTAINERS_STORAGE_CONF": self._write(
                "storage.conf", f'[storage]\ndriver = "overlay"\ngraphroot = "{self.folder}/store"\n'
                                f'runroot = "{self.folder}/run"\n'),
            "CONTAINERS_REGISTRIES_CONF": self._write(
                "registries.conf", 'unqualified-search-registries = []\n[[registry]]\nlocation = "docker.io"\n'
                                   'blocked = true\n'),
        }
        self.policy = self._write("policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}\n')

    def _engine(self):
        # crun 1.8 refuses a hybrid of control groups with controllers in version 2; runc takes it
        hybrid = "/sys/fs/cgroup/unified/cgroup.controllers"
        runtime = "runc" if os.path.exists(hybrid) and open(hybrid, encoding="utf-8").read().strip() else "crun"
        if not shutil.which(runtime):
            runtime = "crun" if runtime == "runc" else "runc"
        return (f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "{runtime}"\n'
                f'tmp_dir = "{self.folder}/tmp"\n')

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def __call__(self, *args, code=0):
        p = subprocess.run(["podman", *args], env={**os.environ, **self.env}, capture_output=True, text=True, check=False)
        if code is not None and p.returncode != code:
            raise Failed(f"podman {' '.join(args)}: {p.returncode}\n{p.stdout}{p.stderr}")
        return p.stdout

    def make_image(self, name=IMAGE):
        """Of busybox alone."""
        tree = os.path.join(self.folder, "tree")
        if not os.path.isdir(tree):
            for d in ("bin", "tmp", "proc", "sys", "dev", "etc"):
                os.makedirs(os.path.join(tree, d))
            shutil.copy("/bin/busybox", os.path.join(tree, "bin"))
            for tool in ("sh", "cat", "echo", "env", "id", "ls", "sleep", "dd", "true", "pwd", "kill", "printf", "tr",
                         "touch", "sed"):
                os.symlink("busybox", os.path.join(tree, "bin", tool))
            with open(os.path.join(tree, "etc", "passwd"), "w", encoding="utf-8") as f:
                f.write("root:x:0:0:root:/:/bin/sh\n")
            subprocess.run(["tar", "-C", tree, "-cf", tree + ".tar", "."], check=True)
        self("import", "--signature-policy", self.policy, tree + ".tar", name)

    def names(self):
        """Containers, running or not."""
        return self("ps", "--all", "--format", "{{.Names}}").split()

    def stop(self):
        if self.names():
            self("rm", "--force", "--all", "--time", "0")
        for path in ("store/overlay", "store"):
            subprocess.run(["umount", os.path.join(self.folder, path)], stderr=subprocess.DEVNULL, check=False)
