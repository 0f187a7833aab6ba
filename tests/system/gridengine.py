"""A private Grid Engine cell in a folder: one qmaster and an execd on each host, on free ports, classic spooling."""
import os
import re
import shutil
import socket

from drover import Daemon, free_port, wait_until
from slurm import run

LIB = "/usr/lib/gridengine"
SHARE = "/usr/share/gridengine"
BOOTSTRAP = """admin_user sgeadmin
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params {common};{top}/spool/qmaster
binary_path /usr/sbin
qmaster_spool_dir {top}/spool/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
HOST = "".join(f"{word}\n" for word in (
    "hostname {name}", "load_scaling NONE", "complex_values gpu=2,job_gpu=2", "user_lists NONE", "xuser_lists NONE", "projects NONE",
    "xprojects NONE", "usage_scaling NONE", "report_variables NONE"))


GPU = """name        {name}
shortcut    {name}
type        INT
relop       <=
requestable YES
consumable  {consumable}
default     0
urgency     0
"""  # a complex, in the form of util/resources/centry


def changed(text, values):
    """A configuration of lines `name value` with other values, and without comments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return "".join(f"{line.split()[0]} {values[line.split()[0]]}\n" if line.split()[0] in values else line + "\n" for line in lines)


class GridEngine:
    """Hosts with the queues all.q, and shut.q, which is disabled; two GPUs are counted, as they are given to slots and as they are given to
    jobs. The one host is this machine, or they are those of a Net (netns.py), with the master on the first."""

    gpus = 2
    quotes_never = False  # what cannot begin now may begin later, or never: it does not tell which

    def __init__(self, folder, name="grid", slots=8, net=None):
        self.name, self.slots, self.runner, self.net = name, slots, "gridengine", net
        self.hosts = list(net.hosts) if net else ["localhost"]
        self.top = os.path.join(folder, name)
        self.root = os.path.join(self.top, "sge")
        self.common = os.path.join(self.root, "default/common")
        self.env = {**os.environ, "SGE_ROOT": self.root, "SGE_CELL": "default", "SGE_CLUSTER_NAME": "test", "SGE_ND": "1",
                    "SGE_QMASTER_PORT": str(free_port()), "SGE_EXECD_PORT": str(free_port())}
        self.settings = {"root": self.root, "qmaster_port": self.env["SGE_QMASTER_PORT"], "watch": "1", "poll": "1",
                         "execd_port": self.env["SGE_EXECD_PORT"], "queue": "all.q", "parallel_environment": "smp"}
        self.refused = {"GridEngineQueue": "nowhere"}, "nowhere"
        self.master, self.execds = None, []
        for part in ("spool/qmaster/job_scripts", "spool/execd", "sge/default/common"):
            os.makedirs(os.path.join(self.top, part))
        for part in ("bin", "lib", "utilbin", "util"):
            os.symlink(f"/var/lib/gridengine/{part}", os.path.join(self.root, part))
        self._write("act_qmaster", f"{self.hosts[0]}\n")
        self._write("host_aliases", "" if net else f"localhost {socket.gethostname()}\n")
        self._write("cluster_name", "test\n")
        self._write("bootstrap", BOOTSTRAP.format(common=self.common, top=self.top))
        self._spool()

    def _write(self, name, text):
        with open(os.path.join(self.common, name), "w", encoding="utf-8") as f:
            f.write(text)

    def _file(self, name, text):
        path = os.path.join(self.top, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def _spool(self):
        """What the master finds at its first start. sgeadmin owns it."""
        with open(f"{SHARE}/default-configuration", encoding="utf-8") as f:
            text = changed(f.read(), {
                "execd_spool_dir": f"{self.top}/spool/execd", "mailer": "/bin/true", "min_uid": "0", "min_gid": "0",
                "load_report_time": "00:00:02", "administrator_mail": "none", "xterm": "/bin/true",
                "max_unheard": "00:01:00",
                "reporting_params": "accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00 "
                                    "joblog=false sharelog=00:00:00"})
        conf = self._file("global.conf", text)
        complexes = shutil.copytree(f"{SHARE}/util/resources/centry", os.path.join(self.top, "centry"))
        for name, consumable in (("gpu", "YES"), ("job_gpu", "JOB")):
            self._file(f"centry/{name}", GPU.format(name=name, consumable=consumable))
        for folder, _, files in os.walk(self.top):
            for name in (".", *files):
                shutil.chown(os.path.join(folder, name), "sgeadmin", "sgeadmin")
        for step in (["spoolinit", "classic", "libspoolc", f"{self.common};{self.top}/spool/qmaster", "init"],
                     ["spooldefaults", "configuration", conf],
                     ["spooldefaults", "complexes", complexes],
                     ["spooldefaults", "usersets", f"{SHARE}/util/resources/usersets"],
                     ["spooldefaults", "managers", "root", "sgeadmin"]):
            run("setpriv", "--reuid", "sgeadmin", "--regid", "sgeadmin", "--clear-groups", f"{LIB}/{step[0]}", *step[1:], env=self.env)

    def on(self, host):
        """What goes before a command to run it on that host."""
        return self.net.on(host) if self.net else []

    def tool(self, *argv, code=0):
        return run(*self.on(self.hosts[0]), *argv, env=self.env, code=code)

    def start(self):
        self.start_master()
        for host in self.hosts:
            self.tool("qconf", "-ah", host)
            self.tool("qconf", "-as", host)
            self.tool("qconf", "-Ae", self._file("host", HOST.format(name=host)))
        with open(f"{SHARE}/util/resources/pe/smp", encoding="utf-8") as f:
            smp = f.read()
        self.tool("qconf", "-Ap", self._file("pe", changed(smp, {})))
        self.tool("qconf", "-Ap", self._file("pe", changed(smp, {"pe_name": "pairs", "allocation_rule": "2", "control_slaves": "TRUE"})))
        self.tool("qconf", "-Ahgrp", self._file("group", f"group_name @allhosts\nhostlist {' '.join(self.hosts)}\n"))
        for name in ("all.q", "shut.q"):
            self.tool("qconf", "-Aq", self._file(name, changed(self.tool("qconf", "-sq"), {
                "qname": name, "hostlist": "@allhosts", "slots": str(self.slots), "pe_list": "smp pairs", "shell": "/bin/sh",
                "shell_start_mode": "unix_behavior", "load_thresholds": "NONE", "tmpdir": "/tmp", "rerun": "FALSE"})))
        self.tool("qmod", "-d", "shut.q")
        self.tool("qconf", "-Msconf", self._file("sched", changed(self.tool("qconf", "-ssconf"), {
            "schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1", "schedd_job_info": "true"})))
        self.execds = [self._daemon("execd", f"{LIB}/sge_execd", host) for host in self.hosts]

        def there():
            """the hosts report"""
            return len(re.findall(r"all\.q@\S+\s+BIP\s+\S+\s+\S+\s+lx-amd64\s*$", self.tool("qstat", "-f", code=None), re.M)) == len(self.hosts)

        wait_until(there)
        return self

    def _daemon(self, name, program, host):
        return Daemon(name, [*self.on(host), program], os.path.join(self.top, f"{name}.out"), self.env, self.top)

    def start_master(self):
        self.master = self._daemon("qmaster", f"{LIB}/sge_qmaster", self.hosts[0])
        wait_until(lambda: "rror" not in self.tool("qconf", "-sh", code=None))

    def kill_daemon(self):
        self.master.kill()

    def start_daemon(self):
        self.start_master()

    def set_slots(self, slots):
        self.tool("qconf", "-mattr", "queue", "slots", str(slots), "all.q")

    def close(self):
        self.tool("qmod", "-d", "all.q")

    def open(self):
        self.tool("qmod", "-e", "all.q")

    def others(self, script, gpus=0, queue="all.q", slots=1):
        """Submits somebody else's job."""
        self.tool("qsub", "-terse", "-o", "/dev/null", "-j", "y", "-q", queue, *(["-l", f"gpu={gpus}"] if gpus else []),
                  *(["-pe", "smp", str(slots)] if slots > 1 else []), "-b", "y", "/bin/sh", "-c", f"'{script}'")

    def jobs(self, states="prs"):
        """Lines 'id.task state name' of what the master has, arrays one by one."""
        found = []
        for line in self.tool("qstat", "-u", "*", "-s", states, "-g", "d").splitlines()[2:]:
            word = line.split()
            task = word[-1] if len(word) > 8 and word[-1].isdigit() and not word[-2].count("/") else ""
            found.append([f"{word[0]}.{task}".rstrip("."), word[4], word[2]])
        return found

    def cancel_all(self):
        self.tool("qdel", "-u", "*", code=None)

    def stop(self):
        if self.master and self.master.running():
            self.cancel_all()
            wait_until(lambda: not self.jobs())
        for d in (*self.execds, self.master):  # asked to end they take ten seconds
            if d:
                d.kill()
