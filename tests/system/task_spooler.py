"""Task Spooler in a folder, as the runner `tsp` sees it: its server begins with the first command."""
import os
import subprocess


class TaskSpooler:
    def __init__(self, folder, slots=8):
        self.name, self.runner, self.quotes = "spooler", "tsp", False
        self.socket = os.path.join(folder, "tsp.sock")
        self.env = {**os.environ, "TS_SOCKET": self.socket, "TS_SLOTS": str(slots), "TMPDIR": folder}
        self.settings = {"socket": self.socket, "poll": "1", "watch": "1"}

    def tool(self, *argv):
        return subprocess.run(["tsp", *argv], env=self.env, capture_output=True, text=True, check=False, timeout=90).stdout

    def jobs(self):
        """Number, state and label of what waits or runs."""
        rows = [line.split() for line in self.tool("-l").splitlines()[1:]]
        return [row for row in rows if row[1] in ("queued", "running")]

    def cancel_all(self):
        for number, state, *_ in self.jobs():
            self.tool("-k" if state == "running" else "-r", number)

    def stop(self):
        self.cancel_all()
        self.tool("-K")
