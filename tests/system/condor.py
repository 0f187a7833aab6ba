"""HTCondor's commands: the look-alikes of an instance, or its own."""
import json
import os
import subprocess

from drover import Failed


class Commands:
    """The commands of a folder."""

    def __init__(self, folder, env, work):
        self.folder, self.env, self.work = folder, env, work

    def __call__(self, name, *args, code=0, stdin=None, cwd=None, timeout=90):
        """Runs condor_NAME ARGS in the working folder. The result is what it printed, with .err and .code."""
        program = os.path.join(self.folder, "condor_" + name)
        p = subprocess.run([program, *map(str, args)], cwd=cwd or self.work, env=self.env, input=stdin,
                           stdin=None if stdin is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=timeout, check=False, text=True)
        if code is not None and p.returncode != code:
            raise Failed(f"condor_{name} {args}: exit code {p.returncode}, not {code}\n{p.stdout}{p.stderr}")
        out = Printed(p.stdout)
        out.err, out.code = p.stderr, p.returncode
        return out

    def submit(self, text, *args):
        """Submits a description; returns the number of the cluster."""
        return int(self("submit", "-terse", *args, "-", stdin=text).split(".")[0])

    def json(self, *args):
        return json.loads(self(*args, "-json"))


class Condor(Commands):
    """The look-alikes of an instance."""

    def __init__(self, instance):
        folder = os.path.join(instance.build, "bin", "condor")
        super().__init__(folder, {**instance.env, "PATH": folder + ":" + instance.env["PATH"]}, instance.work)
        self.instance = instance


class Printed(str):
    """What a command printed, with .err and .code beside it."""

    err = ""
    code = 0
