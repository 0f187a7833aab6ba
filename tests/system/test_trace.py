"""One word by which a job is found in the logs of all servers and agents on its way."""
import re

import agents
import hops
from drover import sh


def lines_of(log, trace):
    """Lines of a daemon's output that are about the trace, without the time."""
    return [line.split(" ", 1)[1] for line in log.splitlines() if f'trace="{trace}"' in line]


def test_a_job_is_followed_over_two_servers(instance, request):
    second = hops.far(request, instance.build)
    for one in (instance, second):
        one.server("--log-level", "debug")
    second.runner = agents.start(second, "log_level: debug\n" + hops.PROCESSES, name="r1")
    agents.offering(second)
    instance.agent = agents.start(instance, "log_level: debug\nqueues:\n" + hops.hop_queue("east", second))
    agents.offering(instance)
    # half a second: of a job that has ended before it is told of, the start may be left out
    number = instance.submit(sh("echo a; sleep 0.5; exit 3", queue="queue 2", **{"+DroverTrace": '"mine\\n fake=line"'}))
    other = instance.submit(sh("true"))
    instance.wait(number, code=None)
    instance.wait(other)
    trace = instance.api("GET", f"/v1/requests/{number}")["uuid"]
    logs = [d.output() for d in (instance.daemons[0], instance.agent, second.daemons[0], second.runner)]
    near, hands_on, far, runs = (lines_of(log, trace) for log in logs)
    assert [e for e in ("submitted", "matched", "started", "exited") if not any(f"event={e} job={number} " in line for line in near)] == []
    assert [e for e in ("submitted", "matched", "started", "exited") if not any(f"event={e} " in line for line in far)] == []
    for job in (f"{number}.0", f"{number}.1"):
        assert any(f"job={job} " in line and line.endswith("to=running") for line in hands_on)
    assert len([line for line in runs if line.endswith("to=done")]) == 2
    assert not any(re.search(rf" job={other}[ .]", line) for line in near + hands_on) and "fake=line" not in "".join(logs)
