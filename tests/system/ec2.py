"""A server with EC2's Query API, on loopback: it checks signatures, and parameters by Amazon's description of the service, boots agents, and fails on demand.

The instances are its own, or those of another server with that interface (`behind`, as moto's is), before which it stands then:
it boots and ends the agents of the instances there, and brings the faults."""
import base64
import datetime
import hashlib
import hmac
import http.client
import http.server
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

from drover import processes
from service_model import Model

ACCESS, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "test-north-1"
# before: nothing was done; after: it was done, and nobody is told
FAULTS = {"RunInstances": ["throttled", "capacity", "cut before", "cut after", "garbage"],
          "DescribeSpotPriceHistory": ["throttled", "cut before", "garbage"],
          "DescribeInstances": ["throttled", "cut before", "garbage", "half", "slow"],
          "TerminateInstances": ["throttled", "denied", "cut before", "cut after", "garbage"]}
MODEL = Model("ec2")


def answer(action, inside):
    return f'<?xml version="1.0"?><{action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">{inside}</{action}Response>'


def error(code, words):
    return f"<Response><Errors><Error><Code>{code}</Code><Message>{words}</Message></Error></Errors></Response>"


def signature(head, body, service="ec2", path="/"):
    """Computed anew from the request: None if it is not signed as it must be."""
    found = re.match(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/" + service + r"/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$",
                     head.get("authorization", ""))
    if not found or found.group(1) != ACCESS or found.group(3) != REGION or not {"host", "x-amz-date"} <= set(found.group(4).split(";")):
        return None
    day, names = found.group(2), found.group(4)
    at = datetime.datetime.strptime(head["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if abs(at.timestamp() - time.time()) > 300 or not head["x-amz-date"].startswith(day):
        return None
    canonical = f"POST\n{path}\n\n" + "".join(f"{n}:{head[n]}\n" for n in names.split(";")) + f"\n{names}\n{hashlib.sha256(body).hexdigest()}"
    text = f"AWS4-HMAC-SHA256\n{head['x-amz-date']}\n{day}/{REGION}/{service}/aws4_request\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("AWS4" + SECRET).encode()
    for part in (day, REGION, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), found.group(5)) or None


class Sky:
    def __init__(self, folder, behind=None, page=1000):
        self.folder, self.behind, self.page = folder, behind, page
        self.lock = threading.Lock()
        self.instances, self.homes = {}, {}  # what there is; where its agent is
        self.calls, self.wrong, self.injected = [], [], []
        self.faults, self.left, self.random = [], 0, random.Random(0)
        self.boots = True
        self.spot = {"a": "0.020000", "b": "0.030000"}  # prices in the zones
        os.makedirs(folder, exist_ok=True)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"sky": self}))
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def fail_at_random(self, count, seed):
        self.random, self.left = random.Random(seed), count

    def fault(self, action):
        with self.lock:
            if self.left and self.random.random() < 0.7:
                self.left -= 1
                fresh = [kind for kind in FAULTS[action] if (action, kind) not in self.injected]  # each comes, however few calls there are
                self.injected.append((action, self.random.choice(fresh or FAULTS[action])))
                return self.injected[-1][1]
            return next((kind for what, kind in self.faults if what == action), None)

    def alive(self):
        """Instances that cost something, by what the provider knows."""
        if self.behind:
            return re.findall(r"<instanceId>(i-\w+)", self.pass_on({"Action": "DescribeInstances", "Version": "2016-11-15", "Filter.1.Name": "instance-state-name",
                                                                    "Filter.1.Value.1": "pending", "Filter.1.Value.2": "running"})[1])
        with self.lock:
            return list(self.instances)

    # -- the API

    def pass_on(self, words):
        link = http.client.HTTPConnection(urllib.parse.urlsplit(self.behind).netloc, timeout=60)
        # moto takes anybody's signature, but reads the region from it
        link.request("POST", "/", urllib.parse.urlencode(words), {
            "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
            "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=0"})
        said = link.getresponse()
        return said.status, said.read().decode()

    def run(self, words):
        with self.lock:  # a second request with the same token is the same request
            known = next((i for i, one in self.instances.items() if one["token"] == words["ClientToken"]), None)
            instance = known or f"i-{len(self.calls):08x}{len(self.homes):04x}"
            tags = {words[f"TagSpecification.1.Tag.{n}.Key"]: words[f"TagSpecification.1.Tag.{n}.Value"] for n in range(1, 9)
                    if f"TagSpecification.1.Tag.{n}.Key" in words}
            self.instances[instance] = {"token": words["ClientToken"], "tags": tags}
        return instance, 200, answer("RunInstances", f"<instancesSet><item><instanceId>{instance}</instanceId></item></instancesSet>")

    def describe(self, words):
        prefix = re.sub(r"\\(.)", r"\1", words["Filter.1.Value.1"][:-1])
        with self.lock:
            found = sorted((i, one["tags"]) for i, one in self.instances.items() if one["tags"]["drover"].startswith(prefix))
        at = int(words.get("NextToken", "0"))
        items = "".join(
            f"<item><instancesSet><item><instanceId>{i}</instanceId><instanceState><name>running</name></instanceState><tagSet>"
            + "".join(f"<item><key>{escape(k)}</key><value>{escape(v)}</value></item>" for k, v in tags.items())
            + "</tagSet></item></instancesSet></item>" for i, tags in found[at:at + self.page])
        more = f"<nextToken>{at + self.page}</nextToken>" if at + self.page < len(found) else ""
        return 200, answer("DescribeInstances", f"<reservationSet>{items}</reservationSet>{more}")

    def prices(self, words):
        items = "".join(f"<item><instanceType>{words['InstanceType.1']}</instanceType><availabilityZone>{zone}</availabilityZone><spotPrice>{price}</spotPrice></item>"
                        for zone, price in self.spot.items() if words.get("AvailabilityZone", zone) == zone)
        return 200, answer("DescribeSpotPriceHistory", f"<spotPriceHistorySet>{items}</spotPriceHistorySet><nextToken/>")

    def end(self, instance):
        with self.lock:
            known = self.instances.pop(instance, None)
        if not known:
            return 400, error("InvalidInstanceID.NotFound", f"The instance ID '{instance}' does not exist")
        return 200, answer("TerminateInstances", f"<instancesSet><item><instanceId>{instance}</instanceId></item></instancesSet>")

    def act(self, words):
        """What a request does, and its answer."""
        action = words["Action"]
        if action == "RunInstances":
            if self.behind:
                status, text = self.pass_on(words)
                found = re.search(r"<instanceId>(i-\w+)", text)
                instance = found and found.group(1)
            else:
                instance, status, text = self.run(words)
            if instance and self.boots:
                self.boot(instance, base64.b64decode(words["UserData"]))
            return status, text
        if action == "TerminateInstances":
            self.power_off(words["InstanceId.1"])
            return self.pass_on(words) if self.behind else self.end(words["InstanceId.1"])
        if self.behind:
            return self.pass_on(words)
        return self.prices(words) if action == "DescribeSpotPriceHistory" else self.describe(words)

    # -- machines: the shape's settings say @HOME@ where a machine has its folder

    def boot(self, instance, script):
        home = os.path.join(self.folder, instance)
        with self.lock:
            if instance in self.homes:
                return
            self.homes[instance] = home
        os.makedirs(home)
        with open(os.path.join(home, "log"), "wb") as log:
            shell = subprocess.Popen(["/bin/sh", "-s"], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, cwd=home)
        threading.Thread(target=shell.communicate, args=(script.replace(b"@HOME@", home.encode()),), daemon=True).start()

    def power_off(self, instance):
        home = os.path.join(self.folder, instance)
        for pid in processes(home):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        for instance in self.homes:
            self.power_off(instance)
        for instance in self.alive() if self.behind else []:  # the next test has none
            self.pass_on({"Action": "TerminateInstances", "Version": "2016-11-15", "InstanceId.1": instance})


class Handler(http.server.BaseHTTPRequestHandler):
    sky = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):  # nothing on the terminal
        pass

    def do_POST(self):
        sky = self.sky
        body = self.rfile.read(int(self.headers["content-length"]))
        words = {k: v[0] for k, v in urllib.parse.parse_qs(body.decode(), keep_blank_values=True).items()}
        action = words.get("Action", "")
        with sky.lock:
            sky.calls.append(words)
        unknown = MODEL.check_query(action, words) if action in MODEL.operations else [f"{action!r} is unknown"]
        if not signature({k.lower(): v for k, v in self.headers.items()}, body) or unknown:
            sky.wrong.append((action, unknown))
            self.say(403, error("SignatureDoesNotMatch" if not unknown else "UnknownParameter", ", ".join(unknown)))
            return
        fault = sky.fault(action)
        if fault == "throttled":
            self.say(503, error("RequestLimitExceeded", "Request limit exceeded."))
        elif fault == "capacity":
            self.say(500, error("InsufficientInstanceCapacity", "We currently do not have sufficient capacity."))
        elif fault == "denied":
            self.say(400, error("OperationNotPermitted", "The instance may not be terminated."))
        elif fault == "garbage":
            self.say(200, "<html>Bad gateway")
        elif fault == "cut before":
            self.cut()
        else:
            status, text = sky.act(words)
            if fault == "cut after":
                self.cut()
            else:
                time.sleep(1 if fault == "slow" else 0)
                self.say(status, text[:len(text) // 2] if fault == "half" else text)

    def cut(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def say(self, status, text):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
