"""A computing element of ARC in a folder: the real A-REX on loopback, with an authority of its own and the back end that forks."""
import glob
import json
import os
import pwd
import signal
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

from drover import wait_until

USER = "/DC=test/CN=Test User"
OVER = ("FINISHED", "FAILED", "KILLED")
STATES = ",".join(("ACCEPTING", "ACCEPTED", "PREPARING", "PREPARED", "SUBMITTING", "QUEUING", "RUNNING", "HELD", "EXITINGLRMS", "OTHER", "EXECUTED",
                   "FINISHING", "KILLING", *OVER))

CONF = """[common]
hostname = localhost
x509_host_key = {top}/ca/localhost.key
x509_host_cert = {top}/ca/localhost.pem
x509_cert_dir = {top}/certificates
[authgroup:all]
subject = {user}
[mapping]
map_to_user = all nobody:nogroup
[lrms]
lrms = fork
[arex]
controldir = {top}/control
sessiondir = {top}/session
pidfile = {top}/run/arex.pid
logfile = {top}/log/arex.log
joblog = {top}/log/jobs.log
wakeupperiod = 1
delegationdb = sqlite
[arex/ws]
wsurl = https://localhost:{port}/arex
pidfile = {top}/run/ws.pid
logfile = {top}/log/ws.log
[arex/ws/jobs]
allowaccess = all
[infosys]
logfile = {top}/log/infosys.log
[infosys/glue2]
[infosys/cluster]
[queue:fork]
"""

# What arc-arex-start and arc-arex-ws-start make of the configuration, for one process that listens on loopback only.
XML = """<?xml version="1.0"?>
<ArcConfig xmlns="http://www.nordugrid.org/schemas/ArcConfig/2007" xmlns:tcp="http://www.nordugrid.org/schemas/ArcMCCTCP/2007"
           xmlns:arex="http://www.nordugrid.org/schemas/a-rex/Config">
  <Server><PidFile>{top}/run/arex.pid</PidFile><Logger><File>{top}/log/arex.log</File><Level>INFO</Level></Logger></Server>
  <ModuleManager><Path>/usr/lib/arc/</Path></ModuleManager>
  <Plugins><Name>mcctcp</Name></Plugins><Plugins><Name>mcctls</Name></Plugins><Plugins><Name>mcchttp</Name></Plugins>
  <Plugins><Name>mccsoap</Name></Plugins><Plugins><Name>arex</Name></Plugins><Plugins><Name>identitymap</Name></Plugins>
  <Plugins><Name>arcshc</Name></Plugins><Plugins><Name>arcshclegacy</Name></Plugins>
  <Chain>
    <Component name="tcp.service" id="tcp"><next id="tls"/>
      <tcp:Listen><tcp:Interface>127.0.0.1</tcp:Interface><tcp:Port>{port}</tcp:Port></tcp:Listen></Component>
    <Component name="tls.service" id="tls"><next id="http"/>
      <KeyPath>{top}/ca/localhost.key</KeyPath><CertificatePath>{top}/ca/localhost.pem</CertificatePath>
      <CACertificatesDir PolicyGlobus="true">{top}/certificates</CACertificatesDir>
      <VOMSProcessing>standard</VOMSProcessing><ClientAuthn>false</ClientAuthn></Component>
    <Component name="http.service" id="http"><next id="soap">POST</next><next id="plexer"/>
      <SecHandler name="arclegacy.handler" event="incoming"><ConfigFile>{top}/run/arex.cfg</ConfigFile></SecHandler></Component>
    <Component name="soap.service" id="soap"><next id="plexer"/><ContinueNonSOAP>true</ContinueNonSOAP></Component>
    <Plexer name="plexer.service" id="plexer"><next id="a-rex">^/arex</next></Plexer>
    <Service name="a-rex" id="a-rex">
      <SecHandler name="arclegacy.map" event="incoming"><ConfigBlock>
        <ConfigFile>{top}/run/arex.cfg</ConfigFile><BlockName>mapping</BlockName></ConfigBlock></SecHandler>
      <arex:endpoint>https://localhost:{port}/arex</arex:endpoint><arex:gmconfig>{top}/run/arex.cfg</arex:gmconfig>
    </Service>
  </Chain>
</ArcConfig>
"""

# The back end looks for jobs that have ended every ten seconds: here every second.
SLEEP = """#!/bin/sh
[ "$1" != 10 ] || exec /bin/sleep 1
exec /bin/sleep "$@"
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def openssl(*words):
    return subprocess.run(["openssl", *words], check=True, capture_output=True, text=True).stdout


class Authority:
    """Signs certificates of the names under /DC=test."""

    def __init__(self, top):
        self.folder = os.path.join(top, "ca")
        self.trusted = os.path.join(top, "certificates")
        self.pem = self.path("authority.pem")
        os.mkdir(self.folder)
        os.mkdir(self.trusted)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path("authority.key"), "-out", self.pem, "-days", "30",
                "-subj", "/DC=test/CN=Test CA")
        name = openssl("x509", "-in", self.pem, "-noout", "-hash").strip()
        with open(self.pem, encoding="utf-8") as f:
            self.put(name + ".0", f.read())
        self.put(name + ".signing_policy", "access_id_CA X509 '/DC=test/CN=Test CA'\npos_rights globus CA:sign\n"
                                           "cond_subjects globus '\"/DC=test/*\"'\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, text):
        with open(os.path.join(self.trusted, name), "w", encoding="utf-8") as f:
            f.write(text)

    def sign(self, name):
        """A certificate and its key."""
        file = self.path(name.replace(" ", "-"))
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", file + ".key", "-out", file + ".csr", "-subj", f"/DC=test/CN={name}")
        with open(file + ".ext", "w", encoding="utf-8") as f:
            f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", file + ".csr", "-CA", self.pem, "-CAkey", self.path("authority.key"), "-CAcreateserial", "-days", "30",
                "-out", file + ".pem", "-extfile", file + ".ext")
        os.chmod(file + ".key", 0o600)
        return file + ".pem", file + ".key"


class Arex:
    def __init__(self, top):
        self.name, self.runner, self.quotes = "arex", "arc", False
        self.top, self.port, self.process = top, free_port(), None
        os.chmod(top, 0o755)  # the jobs are nobody's
        for name in ("control", "session", "log", "run", "bin"):
            os.mkdir(os.path.join(top, name))
        with open(os.open(os.path.join(top, "bin", "sleep"), os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as f:
            f.write(SLEEP)
        self.authority = Authority(top)
        self.authority.sign("localhost")
        self.certificate, self.key = self.authority.sign("Test User")
        values = {"top": top, "port": self.port, "user": USER}
        for name, text in (("arc.conf", CONF), ("arex.xml", XML)):
            with open(os.path.join(top, name), "w", encoding="utf-8") as f:
                f.write(text.format(**values))
        self.env = dict(os.environ)
        self.settings = {"rest": f"https://localhost:{self.port}", "ca_file": self.authority.pem, "certificate_file": self.certificate,
                         "key_file": self.key, "poll": "1", "watch": "1"}
        self.context = ssl.create_default_context(cafile=self.authority.pem)
        self.context.load_cert_chain(self.certificate, self.key)

    def start(self):
        path, ca = (lambda name: os.path.join(self.top, name)), self.authority
        subprocess.run(["/usr/lib/arc/arcconfig-parser", "--config", path("arc.conf"), "--runconfig", path("run/arex.cfg"), "--save"],
                       check=True, capture_output=True)
        env = {"PATH": path("bin") + ":/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOSTNAME": "localhost", "ARC_LOCATION": "/usr",
               "ARC_CONFIG": path("arc.conf"), "X509_CERT_DIR": ca.trusted, "X509_USER_CERT": ca.path("localhost.pem"),
               "X509_USER_KEY": ca.path("localhost.key")}
        with open(path("log/out"), "ab") as out:
            self.process = subprocess.Popen(["/usr/sbin/arched", "-f", "-c", path("arex.xml")], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            env=env, cwd=self.top, start_new_session=True)
        wait_until(self.answers)
        return self

    def stop(self, how=signal.SIGTERM):
        """What it runs goes on after a SIGKILL."""
        if self.process and self.process.poll() is None:
            os.kill(self.process.pid, how)
            self.process.wait(60)

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"{self.settings['rest']}/arex/rest/1.0{path}", method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"Accept": "application/json", "Content-Type": "application/json"})
        for last in (False, False, True):
            try:
                with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
                    return answer.read()
            except urllib.error.URLError as e:  # its TLS fails now and then when many connect
                if last or not isinstance(e.reason, ssl.SSLError):
                    raise
        return b""

    def answers(self):
        try:
            return self.ask("GET", "/jobs") is not None
        except OSError:
            return False

    def states(self):
        """The ids of all jobs, and their states."""
        text = self.ask("GET", "/jobs?state=" + STATES)
        found = json.loads(text)["job"] if text else []
        return {job["id"]: job["state"] for job in (found if isinstance(found, list) else [found])}

    def jobs(self):
        return [job for job, state in self.states().items() if state not in OVER]

    def act(self, action, ids):
        if ids:
            self.ask("POST", f"/jobs?action={action}", {"job": [{"id": job} for job in ids]})

    def cancel_all(self):
        self.act("kill", self.jobs())

    def emptied(self):
        """nothing is left, once all has been killed and removed"""
        states = self.states()
        self.act("kill", [job for job, state in states.items() if state not in OVER])
        self.act("clean", [job for job, state in states.items() if state in OVER])
        return not states

    def find(self, tail):
        """A file in the session folder of some job."""
        return next(iter(glob.glob(os.path.join(self.top, "session", "*", tail))), None)
