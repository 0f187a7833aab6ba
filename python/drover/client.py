"""Requests and jobs."""
from __future__ import annotations

import base64
import dataclasses
import os
import re
import shutil
import socket
import time
import uuid
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence, Union

from .api import PATIENCE_S, ApiError, Connection, DroverError

SEPARATOR = "\x1f"  # between the values of a row of items
UNITS = {"": 1 << 20, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
WAIT_S = 30  # of one long poll


class JobFailed(DroverError):
    """A job did not end with exit code 0."""

    def __init__(self, job: "Job", output: Optional["Output"] = None):
        said = (output.stderr.strip().splitlines() or [""])[-1] if output else ""
        super().__init__(f"job {job.id}: {job.outcome}" + (f": {said}" if said else ""))
        self.job, self.output = job, output


def quoted(text: str) -> str:
    """A string as ClassAds write it."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return f'"{plain}"'


def size_bytes(value: Union[int, str]) -> int:
    """A number of bytes; a text may have a unit, as in "4G", and is in MiB without one."""
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"\s*([0-9.]+)\s*([BKMGT]?)(?:i?B)?\s*", value, re.I)
    if not match:
        raise ValueError(f"a size is a number of bytes or a text such as '512M', not {value!r}")
    return int(float(match[1]) * UNITS[match[2].upper()])


def _word(text: str) -> str:
    """A word of arguments or environment, as base/job/args.h reads them: single quotes around what needs them."""
    if "\n" in text or "\0" in text:
        raise ValueError(f"a word of a command has no line break: {text!r}")
    return text if re.fullmatch(r"[^\s'\"]+", text) else "'" + text.replace("'", "''") + "'"


def _no_macros(text: str) -> None:
    if "$(" in text or "$$" in text or re.search(r"\$[A-Za-z_]+\(", text):
        raise ValueError(f"$(...) and $$ have a meaning of their own in jobs: put {text!r} into a script or a variable")


def filesystem_domain() -> str:
    """Names what sees the files of this machine as we do, as agents do it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f"{f.read().strip()}:{os.stat('/proc/self/ns/mnt').st_ino}"
    except OSError:
        return ""


@dataclasses.dataclass(frozen=True)
class Counts:
    """Of a request's jobs, how many are in which state."""
    jobs: int
    idle: int
    running: int
    held: int
    succeeded: int
    failed: int
    removed: int
    done: bool


@dataclasses.dataclass(frozen=True)
class Output:
    """What a job has printed: all of it while it is short, else the end of it."""
    stdout: str
    stderr: str


@dataclasses.dataclass(frozen=True)
class Job:
    """A job as it was when it was asked for."""
    client: "Client" = dataclasses.field(repr=False)
    id: str
    state: str
    exit_code: Optional[int]
    exit_signal: Optional[int]
    hold_reason: Optional[str]
    agent: Optional[str]
    queue: Optional[str]

    @property
    def member(self) -> int:
        return int(self.id.split(".")[1])

    @property
    def over(self) -> bool:
        return self.state in ("completed", "removed")

    @property
    def succeeded(self) -> bool:
        return self.state == "completed" and self.exit_code == 0

    @property
    def outcome(self) -> str:
        """In words: "exit code 3", "held: …", "running"."""
        if self.state == "completed":
            return f"signal {self.exit_signal}" if self.exit_signal else f"exit code {self.exit_code}"
        return f"held: {self.hold_reason}" if self.state == "held" else self.state

    def output(self, last: int = 65536) -> Output:
        """What it has printed until now, up to `last` bytes from the end of each stream."""
        return self.client.output(self.id, last)


class Request:
    """A request that was accepted: one job or many."""

    def __init__(self, client: "Client", number: int, jobs: int):
        self.client, self.id, self.size = client, number, jobs

    def __repr__(self) -> str:
        return f"<drover.Request {self.id}: {self.size} jobs>"

    def counts(self) -> Counts:
        return self.client.counts([self.id])

    def wait(self, timeout: Optional[float] = None, check: bool = False) -> Counts:
        """Until all jobs are over, or all that are left are held. `check`: raises JobFailed for the first that failed.
        TimeoutError after so many seconds."""
        counts = self.client.wait([self.id], timeout)
        if check and counts.succeeded < counts.jobs:
            for job in self.jobs():
                if not job.succeeded:
                    raise JobFailed(job, job.output())
        return counts

    def jobs(self, state: Optional[str] = None) -> Iterator[Job]:
        """All of them, or those in a state, in the order of their numbers."""
        return self.client.jobs(self.id, state)

    def hold(self, reason: str = "") -> int:
        return self.client.act("hold", [self.id], reason)

    def release(self) -> int:
        return self.client.act("release", [self.id])

    def remove(self, reason: str = "") -> int:
        return self.client.act("remove", [self.id], reason)

    def file(self, member: int, name: str) -> bytes:
        """An output of a job whose outputs the server has."""
        return self.client.connection.raw("GET", f"/v1/jobs/{self.id}.{member}/files/{name}", most=None)


class Client:
    """A server. Threads may share one."""

    def __init__(self, server: Optional[str] = None, token: Optional[str] = None, folder: Optional[str] = None,
                 patience: float = PATIENCE_S):
        self.connection = Connection(server, token, folder, patience)

    # -- submitting

    def submit(self, command: Union[str, Sequence[str]], *, each: Optional[Iterable[str]] = None, cpus: int = 1,
               memory: Union[int, str, None] = None, disk: Union[int, str, None] = None, gpus: int = 0,
               time_limit: Optional[float] = None, name: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
               folder: Optional[str] = None, stdin: Optional[str] = None, stdout: Optional[str] = None,
               stderr: Optional[str] = None, after: Optional[str] = None, queue: Optional[str] = None,
               image: Optional[str] = None, files: Optional[Mapping[str, bytes]] = None, outputs: Sequence[str] = (),
               attributes: Optional[Mapping[str, str]] = None) -> Request:
        """Submits a command: a list of words; a text is run by /bin/sh.

        each: one job for each value, which stands for {} in the command and in stdin, stdout, stderr. time_limit: seconds.
        after: what it waits for, as `depends_on` in drover-submit-file(5). stdout, stderr: files; without them what is
        printed is kept by the server (Job.output). Jobs run in `folder` (default: the current one) where that is seen. With
        files ({name: contents}) they run in a folder of their own that has these, and `outputs` are kept by the server
        (Request.file). attributes: further attributes of the job's ad, as ClassAd expressions.
        """
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else [str(w) for w in command]
        if not words:
            raise ValueError("a command has at least one word")
        rows = None if each is None else [str(v) for v in each]
        if rows is not None:
            for row in rows:
                _no_macros(row)
                if "\n" in row or SEPARATOR in row or "'" in row or row == "":
                    raise ValueError(f"a value of `each` is not empty and has no line break or single quote: {row!r}")
            if not rows:
                raise ValueError("`each` has no value")
        spooled = [self.connection.upload(data, name) for name, data in (files or {}).items()]
        own = folder or os.getcwd()
        ad = {"JobUniverse": "5", "Iwd": quoted(os.path.abspath(own)), "RequestCpus": str(int(cpus)),
              "TransferExecutable": "false", "SubmitHost": quoted(socket.gethostname()),
              "Requirements": "TARGET.HasFileTransfer || TARGET.FileSystemDomain =?= MY.FileSystemDomain"}
        late: list[str] = []

        def text(attribute: str, value: str) -> None:
            _no_macros(value)
            if rows is not None and "{}" in value:
                value = value.replace("{}", "$(each)")
                late.append(attribute)
            ad[attribute] = quoted(value)

        ad["Cmd"] = quoted(self._program(words[0], own, image))
        arguments = []
        for word in words[1:]:
            _no_macros(word)
            if rows is not None and "{}" in word:
                arguments.append("'" + word.replace("'", "''").replace("{}", "$(each)") + "'")
                if "Arguments" not in late:
                    late.append("Arguments")
            else:
                arguments.append(_word(word))
        if arguments:
            ad["Arguments"] = quoted(" ".join(arguments))
        if env:
            for k, v in env.items():
                _no_macros(v)
            ad["Environment"] = quoted(" ".join(_word(f"{k}={v}") for k, v in env.items()))
        if memory is not None:
            ad["RequestMemory"] = str((size_bytes(memory) + (1 << 20) - 1) >> 20)
        if disk is not None:
            ad["RequestDisk"] = str((size_bytes(disk) + 1023) >> 10)
        if gpus:
            ad["RequestGPUs"] = str(int(gpus))
        if time_limit is not None:
            ad["AllowedExecuteDuration"] = str(int(time_limit))
        if queue:
            ad["Requirements"] = f"({ad['Requirements']}) && TARGET.QueueName == {quoted(queue)}"
        if image:
            ad["ContainerImage"] = quoted(image if "://" in image or image[:1] in "./" or image.endswith(".sif")
                                          else f"docker://{image}")
        if after:
            ad["DependsOn"] = quoted(after)
        for attribute, value in (("In", stdin), ("Out", stdout), ("Err", stderr)):
            if value is not None:
                text(attribute, value)
        if files is None:
            ad["ShouldTransferFiles"], ad["FileSystemDomain"] = quoted("IN_PLACE"), quoted(filesystem_domain())
        else:
            ad["ShouldTransferFiles"], ad["WhenToTransferOutput"] = quoted("YES"), quoted("ON_EXIT")
            ad["TransferInput"] = quoted(",".join(files))
            ad["TransferOutput"] = quoted(",".join(outputs))
        name = name or os.path.basename(words[0])
        ad["JobBatchName"] = quoted(name)
        ad.update(attributes or {})
        part = {"attributes": ad, "late": late, "variables": [], "rows": 1, "steps": 1}
        if rows is not None:
            part.update(variables=["each"], items="".join(f"{row}\n" for row in rows), rows=len(rows))
        return self.send({"uuid": str(uuid.uuid4()), "parts": [part], "spooled": spooled})

    def send(self, body: Mapping[str, Any]) -> Request:
        """Submits a request as the API takes it (submitRequest); one that is sent again under its uuid is the same one."""
        answer = self.connection.call("POST", "/v1/requests", body)
        return Request(self, answer["id"], answer["jobs"])

    @staticmethod
    def _program(word: str, folder: str, image: Optional[str]) -> str:
        if "/" in word:
            return word if os.path.isabs(word) or image else os.path.abspath(os.path.join(folder, word))
        found = None if image else shutil.which(word)
        if not found and not image:
            raise FileNotFoundError(f"there is no program {word} in the PATH")
        return os.path.abspath(found) if found else word

    # -- looking

    def request(self, number: int) -> Request:
        """One that was submitted before."""
        counts = self.counts([number])
        return Request(self, number, counts.jobs)

    def _wait(self, ids: Sequence[Union[int, str]], seen: Optional[str], timeout_s: float) -> dict:
        return self.connection.call("GET", "/v1/wait", ids=",".join(map(str, ids)), timeout_ms=int(timeout_s * 1000), seen=seen,
                                    timeout=timeout_s + 60)

    def counts(self, ids: Sequence[Union[int, str]]) -> Counts:
        """Of requests and jobs, as in [7, "8.0-9"]."""
        got = self._wait(ids, None, 0)
        return Counts(**{f.name: got[f.name] for f in dataclasses.fields(Counts)})

    def wait(self, ids: Sequence[Union[int, str]], timeout: Optional[float] = None) -> Counts:
        """Until all are over, or all that are left are held. TimeoutError after so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        seen = None
        while True:
            left = WAIT_S if end is None else min(WAIT_S, end - time.monotonic())
            got = self._wait(ids, seen, max(0.0, left) if seen else 0)
            seen = got["seen"]
            if got["done"] or (got["held"] and got["idle"] == got["running"] == 0):
                return Counts(**{f.name: got[f.name] for f in dataclasses.fields(Counts)})
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"{got['jobs'] - got['finished']} of {got['jobs']} jobs are not over after {timeout} s")

    def jobs(self, ids: Union[int, str], state: Optional[str] = None) -> Iterator[Job]:
        """Jobs of requests, as in 7 or "7.0-99", a page at a time."""
        after = None
        names = [f.name for f in dataclasses.fields(Job) if f.name != "client"]
        while True:
            page = self.connection.call("GET", "/v1/jobs", id=ids, state=state, limit=1000, after=after)
            for row in page["jobs"]:
                yield Job(self, **{name: row.get(name) for name in names})
            after = page["next"]
            if after is None:
                return

    def job(self, name: str) -> Job:
        for job in self.jobs(name):
            return job
        raise ApiError(404, "not_found", f"there is no job {name}")

    def output(self, job: str, last: int = 65536) -> Output:
        got = self.connection.call("GET", f"/v1/jobs/{job}/output", last=last)
        return Output(*(base64.b64decode((got.get(s) or {}).get("data", "")).decode(errors="replace") for s in ("stdout", "stderr")))

    def act(self, action: str, ids: Sequence[Union[int, str]], reason: str = "") -> int:
        """hold, release, remove, vacate, suspend, resume. Returns how many jobs it was done to."""
        body = {"action": action, "ids": [str(i) for i in ids]}
        return self.connection.call("POST", "/v1/actions", {**body, "reason": reason} if reason else body)["affected"]
