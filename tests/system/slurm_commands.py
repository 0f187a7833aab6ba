"""Slurm's commands: the look-alikes of an instance, or those of a real cluster."""
import os
import subprocess

from drover import Failed


class Printed(str):
    """What a command printed, with .err and .code beside it."""

    err = ""
    code = 0


class Commands:
    """The commands of a folder; `work` is where they are called."""

    def __init__(self, folder, env, work):
        self.folder, self.env, self.work = folder, env, work

    def __call__(self, name, *args, code=0, stdin=None, cwd=None, env=None, timeout=120):
        program = os.path.join(self.folder, name) if self.folder else name
        p = subprocess.run([program, *map(str, args)], cwd=cwd or self.work, env={**self.env, **(env or {})}, input=stdin,
                           stdin=None if stdin is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=timeout, check=False, text=True)
        if code is not None and p.returncode != code:
            raise Failed(f"{name} {args}: exit code {p.returncode}, not {code}\n{p.stdout}{p.stderr}")
        out = Printed(p.stdout)
        out.err, out.code = p.stderr, p.returncode
        return out

    def batch(self, text, *args, **more):
        """Submits a script of these lines; returns the job's number."""
        return int(self("sbatch", "--parsable", *args, stdin="#!/bin/sh\n" + text, **more))

    def state(self, job):
        """The compact state of a job, or of each task of an array."""
        return self("squeue", "-h", "-r", "-t", "all", "-o", "%t", "-j", job).split()

    def file(self, name):
        with open(os.path.join(self.work, name), encoding="utf-8") as f:
            return f.read()


class LookAlikes(Commands):
    def __init__(self, instance):
        folder = os.path.join(instance.build, "bin", "slurm")
        super().__init__(folder, {**instance.env, "PATH": folder + ":" + instance.env["PATH"], "USER": "root"}, instance.work)
        self.instance = instance
