"""The batch system of dist/runners/processes in a folder, as the runner `exec` sees it."""
import json
import os
import subprocess

PROGRAM = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../dist/runners/processes"))


class Processes:
    gpus = 2

    def __init__(self, folder, slots=8):
        self.name, self.runner, self.folder = "local", "exec", os.path.join(folder, "jobs")
        os.makedirs(self.folder)
        self.env = dict(os.environ)
        self.settings = {"program": PROGRAM, "folder": self.folder, "slots": str(slots), "gpus": str(self.gpus), "verbs": "hold release nudge", "poll": "1",
                         "index_variable": "DROVER_TASK", "array_max": "100"}
        self.refused = {"BatchQueue": "nowhere"}, "there is no queue"

    def ask(self, op, **words):
        p = subprocess.run([PROGRAM, op], input=json.dumps({"settings": self.settings, **words}) + "\n", capture_output=True,
                           text=True, check=True, timeout=90)
        return [json.loads(line) for line in p.stdout.splitlines()]

    def jobs(self):
        return [[job["native"], job["state"], job["name"]] for job in self.ask("status") if job["state"] in ("waiting", "running")]

    def others(self, script, gpus=0):
        """Submits somebody else's job."""
        path = os.path.join(self.folder, "others")
        with open(path, "w", encoding="utf-8") as f:
            f.write(script)
        self.ask("submit", name="others", script=path, count=1, resources={"cpus": 1, "gpus": gpus})

    def cancel_all(self):
        self.ask("kill", natives=[job[0] for job in self.jobs()])

    def _flag(self, name, on):
        path = os.path.join(self.folder, name)
        if on:
            with open(path, "w", encoding="utf-8"):
                pass
        else:
            os.unlink(path)

    def kill_daemon(self):
        self._flag("down", True)

    def start_daemon(self):
        self._flag("down", False)

    def close(self):
        self._flag("closed", True)

    def open(self):
        self._flag("closed", False)

    def stop(self):
        self.cancel_all()
