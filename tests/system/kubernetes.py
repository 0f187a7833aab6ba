"""The API of a Kubernetes cluster on loopback, as far as the runner `kubernetes` uses it, over TLS: what is applied is checked against the
published description (tests/data/kubernetes), pods are processes of this machine, and requests fail on demand."""
import datetime
import http.server
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse

from drover import processes

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "kubernetes", "objects.json")
LABEL = {"app.kubernetes.io/managed-by": "drover"}
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
QUANTITY = re.compile(r"[0-9.]+(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$")
UNITS = {"m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
TOLERATE = {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
# Shows a container no more of a folder than what is mounted into it.
ISOLATED = """set -e
mount --make-rprivate /
mkdir "$2"
mount --rbind "$1" "$2"
mount -t tmpfs none "$1"
top=$1 kept=$2
shift 2
while [ "$1" != -- ]; do
    mkdir -p "$2"
    mount --bind "$kept$1" "$2"
    [ "$3" = rw ] || mount -o remount,bind,ro "$2"
    shift 3
done
shift
umount -l "$kept"
exec "$@"
"""


class Refused(Exception):
    """Status, reason and message of an answer that is an error."""


def amount(text):
    number, unit = re.match(r"([0-9.]+)([A-Za-z]*)$", str(text)).groups()
    return float(number) * UNITS[unit]


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Schema:
    def __init__(self):
        with open(DATA, encoding="utf-8") as f:
            self.kinds = json.load(f)

    def check(self, value, kind, path):
        """Every member must be one that there is, and of its type."""
        kind = kind.rstrip("!")
        inner = re.match(r"(list|dict)(?:\[|\(str, )(.*?)[\])]$", kind)
        if inner:
            if not isinstance(value, list if inner.group(1) == "list" else dict):
                raise Refused(400, "BadRequest", f"{path}: a {inner.group(1)} is expected")
            for one in value if isinstance(value, list) else value.values():
                self.check(one, inner.group(2), path + "[]")
        elif kind in self.kinds:
            if not isinstance(value, dict):
                raise Refused(400, "BadRequest", f"{path}: an object is expected")
            for name, one in value.items():
                if name not in self.kinds[kind]:
                    raise Refused(400, "BadRequest", f"{path}.{name}: field not declared in schema")
                self.check(one, self.kinds[kind][name], f"{path}.{name}")
            missing = [n for n, k in self.kinds[kind].items() if k.endswith("!") and n not in value]
            if missing:
                raise Refused(422, "Invalid", f"{path}: Required value: {missing}")
        elif kind in ("str", "datetime") and not isinstance(value, str) or kind == "int" and type(value) is not int or \
                kind == "bool" and not isinstance(value, bool):
            raise Refused(400, "BadRequest", f"{path}: a {kind} is expected, not {value!r}")


class Pod:
    def __init__(self, job, node, number):
        self.job, self.node, self.name = job, node, f"{job['metadata']['name']}-{number:05x}"
        self.spec = job["spec"]["template"]["spec"]
        self.process, self.phase, self.code, self.reason, self.waiting, self.began = None, "Pending", None, "", "", 0

    def cpus(self):
        return amount(self.spec["containers"][0]["resources"]["requests"]["cpu"])

    def item(self):
        conditions = [{"type": "PodScheduled", "status": "True" if self.node else "False", **(
            {} if self.node else {"reason": "Unschedulable", "message": "0/2 nodes are available: 2 Insufficient cpu."})}]
        if self.reason == "Evicted":
            conditions.append({"type": "DisruptionTarget", "status": "True"})
        state = {"terminated": {"exitCode": self.code, "reason": self.reason or ("Error" if self.code else "Completed")}} if self.code is not None else \
            {"running": {}} if self.process else {"waiting": {"reason": self.waiting or "ContainerCreating"}}
        return {"metadata": {"name": self.name, "labels": {**self.job["spec"]["template"]["metadata"].get("labels", {}),
                                                           "job-name": self.job["metadata"]["name"]}},
                "spec": {**self.spec, **({"nodeName": self.node} if self.node else {})},
                "status": {"phase": self.phase, "conditions": conditions, **({"reason": self.reason} if self.reason == "Evicted" else {}),
                           **({"containerStatuses": [{"name": "job", "state": state}]} if self.node else {})}}


class Kubernetes:
    gpus = 2

    def __init__(self, folder, slots=8, isolate=None):
        self.name, self.runner, self.quotes, self.folder, self.isolate = "kube", "kubernetes", False, folder, isolate
        self.lock, self.schema, self.env = threading.RLock(), Schema(), dict(os.environ)
        self.per_node, self.job_objects, self.pods, self.events = slots // 2, {}, [], {}
        self.down = self.closed = self.ended = False
        self.tainted, self.limit, self.quota = False, None, None
        self.faults, self.wrong, self.requests, self.token, self.made = [], [], [], "secret-token", 0
        self.number, self.last = 1, "[]"
        self.refused = {"KubernetesImage": "forbidden/image"}, "denied the request"
        self._certify()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"cluster": self}))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._at("server.pem"), self._at("server.key"))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.settings = {"rest": f"https://127.0.0.1:{self.server.server_address[1]}", "ca_file": self._at("ca.pem"), "token_file": self._at("token"),
                         "namespace": "drover", "image": "debian:12", "volume": f"host:{isolate or '/'}", "mount": isolate or "/", "poll": "1", "watch": "1"}
        self.write_token(self.token)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.controller = threading.Thread(target=self._control, daemon=True)
        self.controller.start()

    def _at(self, name):
        return os.path.join(self.folder, name)

    def write_token(self, text):
        with open(os.open(self._at("token"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(text)

    def _certify(self):
        os.makedirs(self.folder, exist_ok=True)
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
        for argv in (("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=kubernetes"),
                     ("req", "-x509", *key, "-keyout", "server.key", "-out", "server.pem", "-subj", "/CN=api", "-CA", "ca.pem", "-CAkey", "ca.key",
                      "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"),
                     ("req", "-x509", *key, "-keyout", "other.key", "-out", "other.pem", "-subj", "/CN=other")):
            p = subprocess.run(["openssl", *argv], cwd=self.folder, capture_output=True, check=False)
            assert p.returncode == 0, p.stderr.decode()

    # -- what tests do to it

    def jobs(self):
        """Jobs that are not over, as others have them."""
        with self.lock:
            return [[name, "running" if self._ready(job) else "waiting"] for name, job in self.job_objects.items() if not job["status"].get("conditions")]

    def cancel_all(self):
        with self.lock:
            for name in list(self.job_objects):
                self._delete(name)

    def kill_daemon(self):
        self.down = True

    def start_daemon(self):
        self.down = False

    def close(self):
        self.closed = True

    def open(self):
        self.closed = False

    def evict(self, name):
        """As when the node is drained: the pod's processes end at once."""
        with self.lock:
            for pod in self.pods:
                if pod.job["metadata"]["name"] == name:
                    pod.reason = "Evicted"
                    self._kill(pod, signal.SIGKILL)

    def stop(self):
        self.cancel_all()
        self.ended = True
        self.controller.join()
        for pod in self.pods:
            self._kill(pod, signal.SIGKILL)
        self.server.shutdown()
        self.server.server_close()

    # -- the controllers, the scheduler and the nodes

    def _kill(self, pod, number):
        if not pod.process:
            return
        for pid in [pod.process.pid] if number != signal.SIGKILL else processes(pod.name):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def _delete(self, name):
        job = self.job_objects.pop(name)
        self.events.pop(name, None)
        for pod in [p for p in self.pods if p.job is job]:
            if pod.process and pod.code is None:
                self._kill(pod, signal.SIGTERM)
            else:
                self.pods.remove(pod)

    def _pods_of(self, job):
        return [p for p in self.pods if p.job is job]

    def _ready(self, job):
        return sum(p.phase == "Running" for p in self._pods_of(job))

    def _control(self):
        while not self.ended:
            with self.lock:
                for pod in list(self.pods):
                    self._look_at(pod)
                for job in list(self.job_objects.values()):
                    self._advance(job)
            time.sleep(0.02)

    def _advance(self, job):
        pods, status, spec = self._pods_of(job), job["status"], job["spec"]
        if status.get("conditions") or spec.get("suspend"):
            return
        limits = spec["template"]["spec"]["containers"][0]["resources"]["limits"]
        if not pods and self.limit and amount(limits["cpu"]) > self.limit:
            self.events[job["metadata"]["name"]] = f"pods \"x\" is forbidden: maximum cpu usage per Container is {self.limit}, but limit is {limits['cpu']}"
        elif not pods:
            self.made += 1
            self.pods.append(Pod(job, None, self.made))
        elif pods[0].phase == "Failed" or pods[0].phase == "Succeeded":
            good = pods[0].phase == "Succeeded"
            status["conditions"] = [{"type": "Complete" if good else "Failed", "status": "True", **({} if good else {
                "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"})}]
        elif pods[0].began and time.time() - pods[0].began > spec.get("activeDeadlineSeconds", 1e9):
            self._kill(pods[0], signal.SIGKILL)
            status["conditions"] = [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded",
                                     "message": "Job was active longer than specified deadline"}]

    def _look_at(self, pod):
        if pod.process and pod.code is None and pod.process.poll() is not None:
            pod.code = pod.process.returncode if pod.process.returncode >= 0 else 128 - pod.process.returncode
            pod.phase = "Succeeded" if pod.code == 0 else "Failed"
            self._kill(pod, signal.SIGKILL)  # what it left behind
            if pod.job["metadata"]["name"] not in self.job_objects or self.job_objects[pod.job["metadata"]["name"]] is not pod.job:
                self.pods.remove(pod)
        elif not pod.node and not self.closed:
            tolerates = TOLERATE in pod.spec.get("tolerations", [])
            for node in ("node-0", "node-1") if not self.tainted or tolerates else ():
                if sum(p.cpus() for p in self.pods if p.node == node and p.code is None) + pod.cpus() <= self.per_node:
                    pod.node = node
                    break
            if pod.node and pod.spec["containers"][0]["image"].startswith("missing/"):
                pod.waiting = "ImagePullBackOff"
            elif pod.node and " " in pod.spec["containers"][0]["image"]:
                pod.waiting = "InvalidImageName"
            elif pod.node:
                self._run(pod)

    def _run(self, pod):
        container, context = pod.spec["containers"][0], pod.spec["securityContext"]
        argv = container["command"]
        if self.isolate:
            source = pod.spec["volumes"][0]["hostPath"]["path"]
            assert source == self.isolate
            mounts = [w for m in container["volumeMounts"] for w in ("/" + m.get("subPath", ""), m["mountPath"], "ro" if m.get("readOnly") else "rw")]
            argv = ["unshare", "--mount", "sh", "-c", ISOLATED, "isolated", source, tempfile.mktemp(dir=self.folder), *mounts, "--", *argv]
        if context["runAsUser"] != os.geteuid():
            argv = ["setpriv", "--reuid", str(context["runAsUser"]), "--regid", str(context["runAsGroup"]), "--clear-groups", *argv]
        with open(self._at("pods.log"), "ab") as log:
            pod.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True,
                                           env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOSTNAME": pod.name})
        pod.phase, pod.began = "Running", time.time()

    # -- the API

    def apply(self, name, body):
        self.schema.check(body, "V1Job", "Job")
        job = {**body, "status": {}}
        spec = body["spec"]["template"]["spec"]
        if (body["apiVersion"], body["kind"], body["metadata"]["name"]) != ("batch/v1", "Job", name) or not NAME.match(name) or len(name) > 63:
            raise Refused(400, "BadRequest", "the name of the object does not match the name on the URL")
        if spec.get("restartPolicy") not in ("Never", "OnFailure"):
            raise Refused(422, "Invalid", "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"")
        volumes = {v["name"] for v in spec["volumes"]}
        for container in spec["containers"]:
            for mount in container["volumeMounts"]:
                if mount["name"] not in volumes or mount.get("subPath", "").startswith("/") or ".." in mount.get("subPath", "").split("/"):
                    raise Refused(422, "Invalid", f"volumeMounts: Invalid value: {mount}")
            for amounts in container["resources"].values():
                if not all(QUANTITY.match(q) for q in amounts.values()):
                    raise Refused(422, "Invalid", f"resources: quantities must match the regular expression: {amounts}")
        if spec["containers"][0]["image"].startswith("forbidden/"):
            raise Refused(403, "Forbidden", "admission webhook \"images.example.org\" denied the request: image not allowed")
        with self.lock:
            known = self.job_objects.get(name)
            if known:
                if known["spec"] != body["spec"]:
                    raise Refused(422, "Invalid", f"Job.batch \"{name}\" is invalid: spec.template: field is immutable")
                return 200, known
            if self.quota is not None and len(self.job_objects) >= self.quota:
                raise Refused(403, "Forbidden", f"jobs.batch \"{name}\" is forbidden: exceeded quota: small, requested: count/jobs.batch=1")
            job["metadata"] = {**body["metadata"], "namespace": "drover", "uid": f"u-{len(self.requests)}", "creationTimestamp": now()}
            self.job_objects[name] = job
            return 201, job

    def job_item(self, job):
        ready = self._ready(job)
        return {"metadata": job["metadata"], "spec": job["spec"], "status": {**job["status"], **({"active": 1, "ready": ready} if ready else {})}}

    def version(self):
        """That of the list of Jobs: a number that grows with each change."""
        with self.lock:
            last = json.dumps([self.job_item(j) for j in self.job_objects.values()])
            self.number += last != self.last
            self.last = last
            return self.number

    def nodes(self):
        return [{"metadata": {"name": name}, "spec": {**({"unschedulable": True} if self.closed else {}),
                                                      **({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]} if self.tainted else {})},
                 "status": {"allocatable": {"cpu": str(self.per_node), "memory": "16Gi", "nvidia.com/gpu": "1", "pods": "110"},
                            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}}
                for name in ("node-0", "node-1")]

    def used(self):
        return sum(p.cpus() for p in self.pods if p.code is None)

    def answer(self, method, path, query, kind, body):
        jobs = JOBS.format("drover")
        with self.lock:
            if method == "PATCH" and path.startswith(jobs + "/"):
                if (kind, query) != ("application/apply-patch+yaml", {"fieldManager": "drover", "force": "true"}):
                    raise Refused(415, "UnsupportedMediaType", f"{kind} {query}")
                status, job = self.apply(path[len(jobs) + 1:], body)
                return status, {"kind": "Job", "apiVersion": "batch/v1", **self.job_item(job)}
            if method == "DELETE" and path.startswith(jobs + "/"):
                self.schema.check(body, "V1DeleteOptions", "DeleteOptions")
                self._job(path[len(jobs) + 1:])
                self._delete(path[len(jobs) + 1:])
                return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            if method != "GET" or body is not None:
                raise Refused(405, "MethodNotAllowed", f"{method} {path}")
            return 200, self.read(path, query)

    def _job(self, name):
        if name not in self.job_objects:
            raise Refused(404, "NotFound", f"jobs.batch \"{name}\" not found", {"name": name, "group": "batch", "kind": "jobs"})
        return self.job_objects[name]

    def read(self, path, query):
        selected, space, jobs = {"labelSelector": "app.kubernetes.io/managed-by=drover"}, "/api/v1/namespaces/drover/", JOBS.format("drover")
        if path.startswith(jobs + "/"):
            return {"kind": "Job", "apiVersion": "batch/v1", **self.job_item(self._job(path[len(jobs) + 1:]))}
        if path == space + "resourcequotas/small":
            return {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "small"},
                    "status": {"hard": {"requests.cpu": "3", "requests.memory": "4Gi"}, "used": {"requests.cpu": f"{int(self.used() * 1000)}m",
                                                                                                 "requests.memory": "1Gi"}}}
        lists = {jobs: ("JobList", selected, lambda: [self.job_item(j) for j in self.job_objects.values()]),
                 space + "pods": ("PodList", selected, lambda: [p.item() for p in self.pods]),
                 space + "events": ("EventList", {"fieldSelector": "reason=FailedCreate,involvedObject.kind=Job"},
                                    lambda: [{"metadata": {"name": n + ".1"}, "reason": "FailedCreate", "involvedObject": {"kind": "Job", "name": n},
                                              "message": text} for n, text in self.events.items()]),
                 "/api/v1/nodes": ("NodeList", {"resourceVersion": "0"}, self.nodes),
                 "/api/v1/pods": ("PodList", {"resourceVersion": "0", "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
                                  lambda: [p.item() for p in self.pods if p.code is None])}
        if path not in lists or query != lists[path][1]:
            raise Refused(404, "NotFound", f"the server could not find the requested resource: {path} {query}")
        kind, _, items = lists[path]
        return {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": str(self.version()) if path == jobs else "7"}, "items": items()}

    def watch(self, query, say):
        """Says a document for each change of a Job since the version that is asked for."""
        end = time.monotonic() + int(query.pop("timeoutSeconds"))
        seen = int(query.pop("resourceVersion"))
        if query != {"watch": "true", "labelSelector": "app.kubernetes.io/managed-by=drover"}:
            raise Refused(400, "BadRequest", f"a watch of {query}")
        while time.monotonic() < end and not self.ended and not self.down:
            if self.version() != seen:
                seen = self.version()
                say(json.dumps({"type": "MODIFIED", "object": {"kind": "Job", "metadata": {"resourceVersion": str(seen)}}}) + "\n")
            time.sleep(0.02)

    def fault(self, method, path):
        """A fault is (method, a part of the path, what, how often)."""
        with self.lock:
            self.requests.append((method, path))
            for i, (m, part, what, times) in enumerate(self.faults):
                if m == method and part in path:
                    self.faults[i:i + 1] = [(m, part, what, times - 1)] if times > 1 else []
                    return what
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    cluster = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):  # nothing on the terminal
        pass

    def handle(self):
        try:
            super().handle()
        except (OSError, ssl.SSLError):  # whoever does not believe our certificate
            pass

    def _any(self):
        cluster, url = self.cluster, urllib.parse.urlsplit(self.path)
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        if cluster.down:
            self._cut()
            return
        fault = cluster.fault(self.command, url.path + ("?watch" if "watch=" in url.query else ""))
        if fault == "cut before":
            self._cut()
            return
        try:
            if self.headers.get("authorization") != "Bearer " + cluster.token:
                raise Refused(401, "Unauthorized", "Unauthorized")
            if isinstance(fault, int):
                raise Refused(fault, {429: "TooManyRequests", 403: "Forbidden"}.get(fault, "InternalError"), "the server is not well today")
            body = json.loads(data) if data else None
            query = dict(urllib.parse.parse_qsl(url.query, strict_parsing=bool(url.query)))
            if "watch" in query:
                self._watch(query, fault)
                return
            status, answer = cluster.answer(self.command, url.path, query, self.headers.get("content-type"), body)
        except Refused as e:
            status, reason, message, *details = e.args
            if status in (400, 405, 415):
                cluster.wrong.append(message)
            answer = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
                      **({"details": details[0]} if details else {}), "code": status}
        text = json.dumps(answer).encode()
        if fault == "cut after":
            self._cut()
        else:
            self._say(status, b"<html>" if fault == "garbage" else text[:len(text) // 2] if fault == "half" else text)

    do_GET = do_PATCH = do_DELETE = do_POST = do_PUT = _any

    def _cut(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _watch(self, query, fault):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if fault == "expired":
            self._chunk(json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}) + "\n")
        elif fault:
            self._chunk("<html>" if fault == "garbage" else '{"type": "MODIF')
        else:
            self.cluster.watch(query, self._chunk)
        self._chunk("")

    def _chunk(self, text):
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())

    def _say(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
