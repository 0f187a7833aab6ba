"""Fixtures of the tests of the command line alone."""
import json
import os
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fake_server import Fake  # noqa: E402  (the path must be there first)


class Cli:
    def __init__(self, build, folder):
        self.program = os.path.join(build, "bin", "drover")
        self.folder = folder
        self.dir = os.path.join(folder, "state")
        self.work = os.path.join(folder, "work")
        os.makedirs(self.work)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("DROVER_", "XDG_"))}
        self.env.update(DROVER_DIR=self.dir, HOME=folder, TZ="UTC", LC_ALL="C.UTF-8")
        self.fakes = []

    def fake(self, **replies):
        """Starts a server with these replies: keys as get__v1__agents, or give a dict as `replies`."""
        one = Fake(self.dir, replies.pop("replies", replies))
        self.fakes.append(one)
        return one

    def __call__(self, *args, code=0, stdin=None, env=None):
        p = subprocess.run([self.program, *args], input=stdin, cwd=self.work, env={**self.env, **(env or {})},
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=90, check=False)
        for one in self.fakes:
            assert not one.wrong, one.wrong
        assert code is None or p.returncode == code, f"exit code {p.returncode}: {p.stdout}{p.stderr}"
        self.out, self.err, self.code = p.stdout, p.stderr, p.returncode
        return p.stdout

    def json(self, *args, **more):
        return json.loads(self(*args, "--json", **more))

    def write(self, name, text):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path


@pytest.fixture
def cli(request, build):
    one = Cli(build, tempfile.mkdtemp(prefix="c-", dir=request.config.drover_tmp))
    yield one
    for fake in one.fakes:
        fake.stop()
