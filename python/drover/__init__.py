"""Drover from Python: submit commands and functions, wait for them, and read what they printed.

    import drover

    client = drover.Client()                                   # the server that the command `drover` talks to
    request = client.submit(["./align", "{}"], each=["a.fq", "b.fq"], cpus=2, memory="4G")
    request.wait()
    for job in request.jobs():
        print(job.id, job.exit_code, job.output().stdout)

    with drover.Executor(cpus=1) as pool:                      # a concurrent.futures.Executor
        print(list(pool.map(math.factorial, range(10))))

Only the standard library is used. The calls are those of the server's HTTP API, docs/openapi.json.
"""
from .api import ApiError, Connection, DroverError, NoServer
from .client import Client, Counts, Job, JobFailed, Output, Request
from .executor import Executor, RemoteError

__all__ = ["ApiError", "Client", "Connection", "Counts", "DroverError", "Executor", "Job", "JobFailed", "NoServer", "Output",
           "RemoteError", "Request"]
