"""What a machine runs as root to become a node: user data of the programs beside this file (drover-provisioner(7))."""
import shlex

SCRIPT = """#!/bin/sh
set -eu
umask 077
{close}mkdir -p {folder}
printf '%s\\n' {token} >{folder}/token
{run}
"""
# User data have the token, and may have more that no job shall read: neither its processes, nor a container with a network of its own,
# whose packets the machine forwards.
CLOSE = """iptables -I OUTPUT -d 169.254.169.254 -m owner ! --uid-owner 0 -j REJECT
iptables -t raw -I PREROUTING -d 169.254.169.254 -j DROP
if [ -e /proc/net/if_inet6 ]; then
    for service in fd00:ec2::254 fe80::a9fe:a9fe; do
        ip6tables -I OUTPUT -d $service -m owner ! --uid-owner 0 -j REJECT
        ip6tables -t raw -I PREROUTING -d $service -j DROP
    done
fi
"""


def folder(shape):
    return shape.get("folder", "/var/lib/drover-agent")


def agent(asked):
    """The agent's words, of a start's request. The shape may say its path and folder, and options of its own."""
    shape = asked["with"]
    words = [shape.get("agent", "drover-agent"), "--dir", folder(shape), "--name", asked["name"], "--token-file", folder(shape) + "/token"]
    for one in asked["server"].split(","):
        words += ["--server", one]
    words += ["--cpus", str(asked["cpus"]), "--memory", f"{asked['memory_mib']}M"]
    if asked.get("attributes"):
        words += ["--attributes", asked["attributes"]]
    return words + list(map(str, shape.get("options", [])))


def user_data(asked):
    """For a machine with a metadata service, which is closed to all but root unless the shape says `metadata: open`."""
    return SCRIPT.format(close="" if asked["with"].get("metadata") == "open" else CLOSE, folder=shlex.quote(folder(asked["with"])),
                         token=shlex.quote(asked["token"]), run="exec " + shlex.join(agent(asked)))
