#!/usr/bin/python3
"""A provider of machines for provisioners of kind exec, with faults: its machines are agents of this one.

    cloud.py FOLDER list|start|stop|describe

FOLDER has a JSON file for each machine, `faults` with the faults that are on (a JSON object), and `calls`, a line for
each call. A machine that shall boot is an agent below FOLDER.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from drover import all_pids, of_process


def read(folder, name, default):
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return default


def write(folder, name, value):
    with open(os.path.join(folder, name + ".new"), "w", encoding="utf-8") as f:
        json.dump(value, f)
    os.rename(os.path.join(folder, name + ".new"), os.path.join(folder, name))


def machines(folder):
    names = sorted(n for n in os.listdir(folder) if n.startswith("i-") and n.endswith(".json"))
    return [m for m in (read(folder, n, None) for n in names) if m]


def boot(folder, instance, asked):
    home = os.path.join(folder, instance)
    os.makedirs(home)
    token = os.path.join(home, "token")
    with open(token, "w", encoding="utf-8") as f:
        f.write(asked["token"])
    argv = [asked["with"]["agent"], "--server", asked["server"], "--dir", home, "--name", asked["name"], "--token-file", token,
            "--cpus", str(asked["cpus"]), "--memory", f"{asked['memory_mib']}M"]
    with open(os.path.join(home, "log"), "w", encoding="utf-8") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True).pid


def make(folder, faults, asked):
    instance = f"i-{os.getpid()}-{time.monotonic_ns()}"
    one = {"instance": instance, "tag": asked["tag"], "shape": asked["shape"], "pid": 0}
    write(folder, instance + ".json", one)
    if faults.get("never_boots"):
        with open(os.path.join(folder, instance + ".token"), "w", encoding="utf-8") as f:
            f.write(asked["token"])
    else:
        one["pid"] = boot(folder, instance, asked)
        write(folder, instance + ".json", one)
    return instance


def start(folder, faults, asked):
    if asked["shape"] in faults.get("no_capacity", []):
        return [{"error": f"no {asked['shape']} is left", "reason": "capacity"}]
    instance = make(folder, faults, asked)
    if faults.get("boots_twice"):
        make(folder, {"never_boots": True}, asked)
    if faults.get("lost_response"):
        sys.exit("the connection was reset")
    return [{"instance": instance}]


def power_off(folder, instance):
    """As a machine ends: everything at once."""
    home = os.path.join(folder, instance)
    for pid in all_pids():
        if home.encode() in of_process(pid, "cmdline"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    os.unlink(os.path.join(folder, instance + ".json"))
    shutil.rmtree(home, ignore_errors=True)


def stop(folder, faults, asked):
    if faults.get("cannot_be_deleted"):
        return [{"error": "it is in use"}]
    if os.path.exists(os.path.join(folder, asked["instance"] + ".json")):
        power_off(folder, asked["instance"])
    return []


def listing(folder, faults, asked):
    if faults.get("lies"):
        return [{"end": True}]
    if faults.get("half_a_list"):
        return []
    found = [{"instance": m["instance"], "tag": m["tag"]} for m in machines(folder) if m["tag"].startswith(asked["prefix"])]
    found += [{"instance": f"x-{n}", "tag": f"{asked['prefix']}x.{n}"} for n in range(faults.get("strangers", 0))]
    return found * (2 if faults.get("pages_repeat") else 1) + [{"end": True}]


def main():
    folder, call = sys.argv[1:]
    asked = json.loads(sys.stdin.readline())
    faults = read(folder, "faults", {})
    with open(os.path.join(folder, "calls"), "a", encoding="utf-8") as f:
        f.write(json.dumps({k: v for k, v in asked.items() if k != "token"}) + "\n")
    time.sleep(faults.get("slow", 0))
    if faults.get("throttled") and call != "describe":
        lines = [{"error": "slow down", "reason": "throttled"}]
    elif faults.get("garbage"):
        lines = ["}"]
    else:
        lines = {"start": start, "stop": stop, "list": listing,
                 "describe": lambda *_: faults.get("offers", [])}[call](folder, faults, asked)
    time.sleep(faults.get("slow_" + call, 0))
    for line in lines:
        print(line if isinstance(line, str) else json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
