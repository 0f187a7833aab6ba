"""A concurrent.futures.Executor whose calls are jobs."""
from __future__ import annotations

import concurrent.futures
import json
import os
import pickle
import threading
import time
from typing import Any, Callable, Iterable, Iterator, Optional

from .api import ApiError, DroverError, printable
from .client import Client, Job, JobFailed

CALL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "call.py")
WAIT_S = 1.0  # of one look at requests that are waited for: a new one waits so long for its turn at most
ASKED_MAX = 100  # requests in one look


class RemoteError(DroverError):
    """What a function has raised where it ran. `traceback` has the text of it."""

    def __init__(self, error: str, traceback: str):
        super().__init__(error)
        self.traceback = printable(traceback)


def _pickled(function: Callable, calls: list) -> bytes:
    """With cloudpickle where it is installed: functions of a notebook go by value then. Else they go by their name, and their
    module must be there where they run."""
    try:
        import cloudpickle
    except ImportError:
        if getattr(function, "__module__", None) == "__main__":
            raise DroverError("a function of the program itself can only be sent with the package cloudpickle; without it, put "
                              "the function into a module that is there where the jobs run") from None
        return pickle.dumps((function, calls))
    return cloudpickle.dumps((function, calls))


class Executor(concurrent.futures.Executor):
    """Runs functions as jobs. What a function gets is pickled; what it returns comes back as JSON, so that nothing which comes
    from another machine is ever unpickled here: numbers, strings, lists and dictionaries of these.

    options: those of Client.submit, for all jobs (cpus, memory, time_limit, queue, image, …). python: the interpreter there.
    """

    def __init__(self, client: Optional[Client] = None, python: str = "/usr/bin/python3", **options: Any):
        self.client = client or Client()
        self._python, self._options = python, options
        self._changed = threading.Condition()
        self._pending: dict[int, dict[int, concurrent.futures.Future]] = {}
        self._closed = False
        self._thread: Optional[threading.Thread] = None
        with open(CALL, "rb") as f:
            self._call = f.read()

    def submit(self, fn: Callable, /, *args: Any, **kwargs: Any) -> concurrent.futures.Future:
        return self._start(fn, [(args, kwargs)])[0]

    def map(self, fn: Callable, *iterables: Iterable, timeout: Optional[float] = None, chunksize: int = 1) -> Iterator:
        """One request with a job for each call: far quicker than a submit for each."""
        futures = self._start(fn, [(args, {}) for args in zip(*iterables)])

        def results() -> Iterator:
            end = None if timeout is None else time.monotonic() + timeout
            try:
                for future in futures:
                    yield future.result(None if end is None else end - time.monotonic())
            finally:
                for future in futures:
                    future.cancel()

        return results()

    def _start(self, fn: Callable, calls: list) -> list:
        if not calls:
            return []
        files = {"call.py": self._call, "call.pickle": _pickled(fn, calls)}
        with self._changed:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
        options = {"name": getattr(fn, "__name__", "call"), **self._options}
        request = self.client.submit([self._python, "call.py", "{}"], each=[str(i) for i in range(len(calls))], files=files,
                                     outputs=["result.json"], **options)
        futures: dict[int, concurrent.futures.Future] = {}
        for member in range(request.size):
            futures[member] = _JobFuture(self.client, f"{request.id}.{member}")
        with self._changed:
            self._pending[request.id] = dict(futures)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="drover", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return list(futures.values())

    # -- the thread that waits

    def _watch(self) -> None:
        seen: dict[tuple, str] = {}
        turn = 0
        while True:
            with self._changed:
                while not self._pending:
                    if self._closed:
                        return
                    self._changed.wait()
                numbers = sorted(self._pending)
            batch = tuple(numbers[turn % len(numbers):][:ASKED_MAX])
            turn = turn + ASKED_MAX if len(numbers) > ASKED_MAX else 0
            try:
                got = self.client._wait(batch, seen.get(batch), WAIT_S if len(numbers) <= ASKED_MAX else 0)
                if got["seen"] != seen.get(batch):
                    for number in batch:
                        self._settle(number)
                seen = {batch: got["seen"]}
            except Exception as e:  # whatever was answered, callers must not wait for ever
                self._fail_all(e)

    def _settle(self, number: int) -> None:
        with self._changed:
            waiting = self._pending.get(number, {})
        if not waiting:
            return
        for job in self.client.jobs(number, "completed,removed,held"):
            future = waiting.get(job.member)
            if future is None:
                continue
            self._finish(future, number, job)
            with self._changed:
                waiting.pop(job.member, None)
                if not waiting:
                    self._pending.pop(number, None)
                    self._changed.notify_all()

    def _finish(self, future: concurrent.futures.Future, number: int, job: Job) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            if not job.succeeded:
                failed = JobFailed(job, job.output())
                if job.state == "held":  # its caller has the reason, and nobody else knows of it
                    self.client.act("remove", [job.id], "its call has failed")
                raise failed
            answer = json.loads(self.client.connection.raw("GET", f"/v1/jobs/{job.id}/files/result.json"))
            if "error" in answer:
                raise RemoteError(str(answer["error"]), str(answer.get("traceback", "")))
            future.set_result(answer["value"])
        except Exception as e:  # whatever the job has left as its result
            future.set_exception(e)

    def _fail_all(self, error: Exception) -> None:
        """The server cannot be asked any more: the jobs go on, and nobody here will know of them."""
        with self._changed:
            pending, self._pending = self._pending, {}
            self._changed.notify_all()
        for futures in pending.values():
            for future in futures.values():
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._changed:
            self._closed = True
            futures = [f for members in self._pending.values() for f in members.values()]
            self._changed.notify_all()
        if cancel_futures:
            for future in futures:
                future.cancel()
        if wait:
            concurrent.futures.wait(futures)
            if self._thread is not None:
                self._thread.join()


class _JobFuture(concurrent.futures.Future):
    """Cancelling it removes the job."""

    def __init__(self, client: Client, job: str):
        super().__init__()
        self._client, self.job = client, job

    def cancel(self) -> bool:
        if not super().cancel():
            return False
        try:
            self._client.act("remove", [self.job], "cancelled")
        except ApiError:
            pass  # it is over
        return True
