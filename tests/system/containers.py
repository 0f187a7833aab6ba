"""Podman and docker with a store of their own and one image, made of busybox without a network; an agent of a test that
is given `env` and the `settings` of a queue uses it. Nothing is fetched: registries are blocked, or not there. Debian 12 has no
apptainer; the one that DROVER_TEST_APPTAINER names takes podman's tests too."""
import contextlib
import gzip
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading

from drover import Failed, alive, processes, wait_until

IMAGE = "localhost/tiny:1"
ENGINES = ["podman"] + ["apptainer"] * ("DROVER_TEST_APPTAINER" in os.environ)


def busybox_tree(folder):
    """A packed root folder with busybox and nothing else."""
    tree = os.path.join(folder, "tree")
    for d in ("bin", "tmp", "proc", "sys", "dev", "etc"):
        os.makedirs(os.path.join(tree, d))
    shutil.copy("/bin/busybox", os.path.join(tree, "bin"))
    for tool in ("sh", "cat", "echo", "env", "id", "ls", "sleep", "dd", "true", "pwd", "kill", "printf", "touch", "mkdir", "mv", "sed",
                 "sort", "wc", "cp"):
        os.symlink("busybox", os.path.join(tree, "bin", tool))
    with open(os.path.join(tree, "etc", "passwd"), "w", encoding="utf-8") as f:
        f.write("root:x:0:0:root:/:/bin/sh\n")
    subprocess.run(["tar", "-C", tree, "-cf", tree + ".tar", "."], check=True)
    return tree + ".tar"


class Podman:
    name, settings, image = "podman", "engine: podman", f"docker://{IMAGE}"
    no_image = "docker://docker.io/library/nosuch:1"

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
        self.runtime = runtime
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
        self("import", "--signature-policy", self.policy, busybox_tree(self.folder), name)

    def trust(self, registry):
        """Asks this one without TLS."""
        with open(self.env["CONTAINERS_REGISTRIES_CONF"], "a", encoding="utf-8") as f:
            f.write(f'[[registry]]\nlocation = "127.0.0.1:{registry.server_address[1]}"\ninsecure = true\n')

    def on_nodes(self):
        """A queue's settings where jobs know nothing of the environment of the test."""
        options = ", ".join([f"--root={self.folder}/store", f"--runroot={self.folder}/run", "--storage-driver=overlay",
                             f"--tmpdir={self.folder}/tmp", "--cgroup-manager=cgroupfs", f"--runtime={self.runtime}",
                             "--events-backend=file"])
        return (f"    container: {{engine: podman, network: none, options: [{options}], "
                "run_options: [--ulimit=nofile=4096:4096, --ulimit=nproc=4096:4096]}\n")

    def names(self):
        """Containers, running or not."""
        return self("ps", "--all", "--format", "{{.Names}}").split()

    def stop(self):
        if self.names():
            self("rm", "--force", "--all", "--time", "0")
        for path in ("store/overlay", "store"):
            subprocess.run(["umount", os.path.join(self.folder, path)], stderr=subprocess.DEVNULL, check=False)


class Apptainer:
    """It keeps nothing of a container but processes. Its image is a folder."""
    name = "apptainer"
    no_image = "/no/such/tree"

    def __init__(self, folder):
        self.folder = os.path.join(folder, "app")
        self.program = os.environ["DROVER_TEST_APPTAINER"]
        self.settings = f"engine: apptainer, program: {self.program}"
        self.image = f"{self.folder}/tree"
        self.env = {"APPTAINER_CACHEDIR": f"{self.folder}/cache", "APPTAINER_TMPDIR": self.folder}

    def make_image(self):
        os.makedirs(self.folder)
        busybox_tree(self.folder)

    def make_file(self, path):
        subprocess.run([self.program, "--silent", "build", path, self.image], env={**os.environ, **self.env}, check=True)

    def names(self):
        """Their numbers: the first process of each has the image in its environment."""
        return [pid for pid in processes(self.image) if alive(pid)]

    def stop(self):
        assert self.names() == []


@contextlib.contextmanager
def engine_with_image(above, name="podman"):
    """One in a folder of its own, which has the image."""
    folder = tempfile.mkdtemp(prefix="pod-", dir=above)
    one = {"podman": Podman, "apptainer": Apptainer, "docker": Docker}[name](folder)
    try:
        one.make_image()
        yield one
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Docker:
    """A daemon of its own on a unix socket, which touches no network of the machine."""
    name, settings, image = "docker", "engine: docker", f"docker://{IMAGE}"

    def __init__(self, folder, group="root"):
        """`group` may use it, too."""
        self.folder = os.path.join(folder, "dk")
        os.makedirs(self.folder)
        self.env = {"DOCKER_HOST": f"unix://{self.folder}/d.sock", "DOCKER_CONFIG": self.folder}
        with open(os.path.join(self.folder, "daemon.json"), "w", encoding="utf-8") as f:
            f.write("{}")
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(
                ["dockerd", "--config-file", f"{self.folder}/daemon.json", "--host", self.env["DOCKER_HOST"],
                 "--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec", "--pidfile",
                 f"{self.folder}/pid", "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
                 "--ip-masq=false", "--userland-proxy=false", "--default-ulimit", "nofile=1024:4096",
                 "--shutdown-timeout", "5", "--group", group], stdout=log, stderr=log, start_new_session=True)
        wait_until(lambda: self("version", code=None).returncode == 0)

    def __call__(self, *args, code=0):
        p = subprocess.run(["docker", *args], env={**os.environ, **self.env}, capture_output=True, text=True, check=False)
        if code is not None and p.returncode != code:
            raise Failed(f"docker {' '.join(args)}: {p.returncode}\n{p.stdout}{p.stderr}")
        return p

    def make_image(self, name=IMAGE):
        self("import", busybox_tree(self.folder), name)

    def names(self):
        return self("ps", "--all", "--format", "{{.Names}}").stdout.split()

    def stop(self):
        for name in self.names():
            self("rm", "--force", name, code=None)  # one may be on its way
        self.process.terminate()
        self.process.wait(90)
        subprocess.run(["umount", f"{self.folder}/exec/netns/default"], stderr=subprocess.DEVNULL, check=False)


UNKNOWN = b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'


@contextlib.contextmanager
def registry(layer):
    """An OCI registry on loopback with one image, tiny:1. What it was asked for is in .asked; while .trouble is a status it answers
    everything with that."""
    with open(layer, "rb") as f:
        plain = f.read()
    blobs, asked = {}, []

    def blob(data, kind):
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        blobs[digest] = (data, kind)
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    kinds = "application/vnd.oci.image."
    layers = [blob(gzip.compress(plain), kinds + "layer.v1.tar+gzip")]
    config = blob(json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
        "type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]}}).encode(), kinds + "config.v1+json")
    tiny = blob(json.dumps({"schemaVersion": 2, "mediaType": kinds + "manifest.v1+json", "config": config,
                            "layers": layers}).encode(), kinds + "manifest.v1+json")
    blobs["1"] = blobs[tiny["digest"]]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            name = self.path.rsplit("/", 1)[1]
            asked.append(self.path)
            if server.trouble:
                self.send_response(server.trouble)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            data, kind = blobs.get(name, (UNKNOWN, "application/json"))
            self.send_response(200 if name in blobs or self.path == "/v2/" else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if name in blobs:
                self.send_header("Docker-Content-Digest", "sha256:" + hashlib.sha256(data).hexdigest())
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.trouble = asked, None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
