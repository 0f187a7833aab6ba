"""A server with AWS Batch's API, on loopback: it checks signatures, and requests and its own answers by Amazon's description of the service; jobs are
processes of this machine, so many at a time."""
import contextlib
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
import time

from ec2 import ACCESS, REGION, SECRET, signature
from service_model import Model

PROGRAM = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../dist/runners/awsbatch"))
MODEL = Model("batch")
ACTIONS = {MODEL.operations[name]["http"]["requestUri"]: name for name in MODEL.operations}
LIVE = ("SUBMITTED", "RUNNABLE", "RUNNING")
PAGE = 3


class Refused(Exception):
    """A ClientException."""


class Job:
    def __init__(self, number, body, index=None):
        self.id, self.body, self.index = f"11111111-0000-0000-0000-{number:012d}" + (f":{index}" if index is not None else ""), body, index
        self.status, self.why, self.process, self.members, self.terminated, self.created = "SUBMITTED", "", None, [], False, int(time.time() * 1000)
        needs = {n["type"]: int(n["value"]) for n in body["containerOverrides"]["resourceRequirements"]}
        self.cpus, self.gpus = needs["VCPU"], needs.get("GPU", 0)

    def summary(self):
        array = {"size": len(self.members)} if self.members else {"index": self.index} if self.index is not None else None
        return {"jobId": self.id, "jobName": self.body["jobName"], "createdAt": self.created, "status": self.status, **({"statusReason": self.why} if self.why else {}),
                **({"arrayProperties": array} if array else {})}

    def detail(self):
        return {**self.summary(), "jobQueue": self.body["jobQueue"], "startedAt": self.created, "jobDefinition": self.body["jobDefinition"],
                "isTerminated": self.terminated, "container": {"resourceRequirements": self.body["containerOverrides"]["resourceRequirements"]}}


class AwsBatch:
    gpus = 2

    def __init__(self, folder, slots=8):
        self.name, self.runner, self.quotes, self.folder, self.slots, self.env = "aws", "exec", False, folder, slots, dict(os.environ)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "keys"), "w", encoding="utf-8") as f:
            f.write(f"[default]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n[other]\naws_access_key_id = x\naws_secret_access_key = y\n")
        self.lock, self.jobs_all, self.wrong, self.faults, self.calls = threading.RLock(), {}, [], [], []
        self.down = self.closed = self.ended = False
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"cloud": self}))
        self.settings = {"program": PROGRAM, "region": REGION, "credentials": os.path.join(folder, "keys"), "queue": "main", "queues": "other spare",
                         "definition": "drover:1", "endpoint": f"http://127.0.0.1:{self.server.server_address[1]}", "poll": "1", "watch": "1",
                         "index_variable": "DROVER_TASK", "array_max": "100", "node_memory_mib": "8192"}
        self.refused = {"BatchQueue": "nowhere"}, "there is no queue"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.scheduler = threading.Thread(target=self._schedule, daemon=True)
        self.scheduler.start()

    # -- what tests do to it

    def jobs(self):
        with self.lock:
            return [[j.id, j.status] for j in self._all() if j.status in LIVE and not j.members]

    def others(self, script, gpus=0):
        path = os.path.join(self.folder, "others")
        with open(path, "w", encoding="utf-8") as f:
            f.write(script)
        needs = [{"type": "VCPU", "value": "1"}, *([{"type": "GPU", "value": str(gpus)}] if gpus else [])]
        self.submit({"jobName": "others", "jobQueue": "main", "jobDefinition": "drover:1",
                     "containerOverrides": {"command": ["/bin/sh", path], "resourceRequirements": needs}})

    def cancel_all(self):
        with self.lock:
            for job in list(self._all()):
                self.terminate({"jobId": job.id, "reason": "cancelled by an admin"})

    def kill_daemon(self):
        self.down = True

    def start_daemon(self):
        self.down = False

    def close(self):
        self.closed = True

    def open(self):
        self.closed = False

    def stop(self):
        self.cancel_all()
        self.ended = True
        self.scheduler.join()
        self.server.shutdown()
        self.server.server_close()

    # -- what it does

    def _all(self):
        for job in list(self.jobs_all.values()):
            yield job
            yield from job.members

    def _schedule(self):
        while not self.ended or any(j.process for j in self._all()):
            with self.lock:
                self._turn()
            time.sleep(0.05)

    def _turn(self):
        for job in self._all():
            code = job.process.poll() if job.process else None
            if job.process and code is not None:
                job.process = None
                job.status, job.why = ("SUCCEEDED", "") if code == 0 else ("FAILED", job.why or "Essential container in task exited")
        running = [j for j in self._all() if j.process]
        cpus, gpus = sum(j.cpus for j in running), sum(j.gpus for j in running)
        for job in self._all():
            if job.status == "SUBMITTED":
                job.status = "PENDING" if job.members else "RUNNABLE"
            elif job.status == "RUNNABLE" and cpus + job.cpus <= self.slots and gpus + job.gpus <= self.gpus and not self.ended:
                self._begin(job)
                cpus, gpus = cpus + job.cpus, gpus + job.gpus
            elif job.status == "PENDING" and all(m.status in ("SUCCEEDED", "FAILED") for m in job.members):
                job.status = "FAILED" if any(m.status == "FAILED" for m in job.members) else "SUCCEEDED"

    def _begin(self, job):
        env = {"PATH": os.environ["PATH"], "AWS_BATCH_JOB_ID": job.id, **({"AWS_BATCH_JOB_ARRAY_INDEX": str(job.index)} if job.index is not None else {})}
        job.process = subprocess.Popen(job.body["containerOverrides"]["command"], env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
        job.status = "RUNNING"

    def _find(self, name):
        return next((j for j in self._all() if j.id == name), None)

    def submit(self, body):
        if body["jobQueue"] not in ("main", "other", "spare"):
            raise Refused(f"JobQueue {body['jobQueue']} not found")
        with self.lock:
            job = Job(len(self.jobs_all) + 1, body)
            job.members = [Job(len(self.jobs_all) + 1, body, i) for i in range(body.get("arrayProperties", {}).get("size", 0))]
            self.jobs_all[job.id] = job
        return {"jobName": body["jobName"], "jobId": job.id}

    def listing(self, body):
        """Without a status those that run; with a filter all that it allows."""
        if "arrayJobId" in body:
            parent = self._find(body["arrayJobId"])
            found = parent.members if parent else []
        else:
            found = [j for j in self.jobs_all.values() if j.body["jobQueue"] == body["jobQueue"]]
        if "filters" in body and "arrayJobId" not in body:
            (one,) = body["filters"]
            assert one["name"] == "AFTER_CREATED_AT"
            found = [j for j in found if j.created > int(one["values"][0])]
        else:
            found = [j for j in found if j.status == body.get("jobStatus", "RUNNING")]
        at = int(body.get("nextToken", "0"))
        return {"jobSummaryList": [j.summary() for j in found[at:at + PAGE]], **({"nextToken": str(at + PAGE)} if at + PAGE < len(found) else {})}

    def describe(self, body):
        return {"jobs": [j.detail() for j in map(self._find, body["jobs"]) if j]}

    def terminate(self, body):
        job = self._find(body["jobId"])
        if not job:
            raise Refused(f"Job {body['jobId']} does not exist")
        for one in [job, *job.members]:
            if one.status in ("SUBMITTED", "RUNNABLE"):
                one.status, one.why, one.terminated = "FAILED", body["reason"], True
            elif one.process:
                one.why, one.terminated = body["reason"], True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one.process.pid, signal.SIGTERM)
        return {}

    def queues(self, body):
        return {"jobQueues": [{"jobQueueName": body["jobQueues"][0], "jobQueueArn": "arn:1", "state": "DISABLED" if self.closed else "ENABLED", "status": "VALID",
                               "priority": 1, "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "arn:env"}]}]}

    def environments(self, body):
        assert body["computeEnvironments"] == ["arn:env"]
        return {"computeEnvironments": [{"computeEnvironmentName": "env", "computeEnvironmentArn": "arn:env", "state": "ENABLED",
                                         "computeResources": {"type": "EC2", "maxvCpus": self.slots, "subnets": ["subnet-1"]}}]}

    def answer(self, action, body):
        with self.lock:
            self.calls.append((action, body))
            return {"SubmitJob": self.submit, "ListJobs": self.listing, "DescribeJobs": self.describe, "TerminateJob": self.terminate,
                    "DescribeJobQueues": self.queues, "DescribeComputeEnvironments": self.environments}[action](body)

    def fault(self, action):
        """A fault is (action, what, how often)."""
        with self.lock:
            for i, (name, what, times) in enumerate(self.faults):
                if name == action:
                    self.faults[i:i + 1] = [(name, what, times - 1)] if times > 1 else []
                    return what
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    cloud = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):  # nothing on the terminal
        pass

    def do_POST(self):
        cloud, data = self.cloud, self.rfile.read(int(self.headers.get("content-length") or 0))
        action = ACTIONS.get(self.path)
        fault = cloud.fault(action)
        if cloud.down or fault == "cut before":
            self._cut()
            return
        if not action or not signature({k.lower(): v for k, v in self.headers.items()}, data, "batch", self.path):
            self._say(403, {"message": "The request signature we calculated does not match"})
            return
        if isinstance(fault, int):
            self._say(fault, {"message": "Too many requests" if fault == 429 else "not well today"})
            return
        body = json.loads(data)
        wrong = MODEL.check(action, body)
        cloud.wrong += wrong
        try:
            said = cloud.answer(action, body) if not wrong else None
            cloud.wrong += MODEL.check(action, said, "output") if said is not None else []
            status = 200 if said is not None else 400
        except Refused as e:
            status, said = 400, {"message": str(e)}
        if fault == "cut after":
            self._cut()
        else:
            self._say(status, said if said is not None else {"message": "; ".join(wrong)}, fault)

    def _cut(self):
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _say(self, status, said, fault=None):
        text = json.dumps(said).encode()
        text = {"garbage": b"<html>", "half": text[:len(text) // 2], "empty": b"{}"}.get(fault, text)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
