"""Two sites, each with a store and an agent, and an agent on a thin link between them: files are placed from one site at the other by a
mover at one of the two, bytes cross the link once, and no file is wrong or missing when the movers are killed."""
import os
import signal
import subprocess

import pytest
from drover import Daemon, wait_until
from netns import Net
from stores import Nginx

RATES = {"east": "80mbit", "west": "80mbit", "hub": "2mbit"}
FILES, SIZE = 6, 1 << 20
CONFIG = "cpus: 2\nqueues:\n  - name: default\n  - {name: transfers, runner: mover}\n"


class Sites:
    def __init__(self, instance):
        self.instance, self.net, self.stores, self.agents = instance, Net(), {}, {}

    def start(self):
        for name, rate in RATES.items():
            address = self.net.add(name, rate)
            if name == "hub":
                continue
            store = self.stores[name] = Nginx(os.path.join(self.instance.base, name + "-store"), address, 8080, self.net.inside(name))
            store.wait(lambda n=name, a=address: subprocess.run([*self.net.inside(n), "bash", "-c", f"exec 3<>/dev/tcp/{a}/8080"],
                                                                 stderr=subprocess.DEVNULL, check=False).returncode == 0)
            store.put("probe", os.urandom(SIZE // 4))
        os.makedirs(self.instance.dir)
        with open(os.path.join(self.instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
            f.write("stores:\n" + "".join(f"  {n}: {{urls: ['{s.url}'], probe: '{s.url}probe'}}\n" for n, s in self.stores.items()))
        self.instance.server()
        for name in RATES:
            self.agent(name)
        wait_until(lambda: all(len([x for x in s["links"] or [] if x["bytes_per_s"]]) == 3 for s in self.instance.json("stores")["stores"]), 60)
        return self

    def agent(self, name):
        instance, path = self.instance, os.path.join(self.instance.base, name)
        token = instance.json("token", "agent", "--name", name)["token"] if name not in self.agents else None
        argv = [*self.net.inside(name), instance.program("drover-agent"), "--dir", path, "--name", name, "--server", instance.server_json()["agents"][0],
                "--config", instance.write("agent.yaml", CONFIG), *(["--token", token] if token else [])]
        self.agents[name] = Daemon(name, argv, path + ".log", instance.env, instance.base)
        instance.daemons.append(self.agents[name])

    def ready(self):
        """Every agent offers its movers."""
        offers = [q for a in self.instance.agents("connected") for q in a["queues"] if q["name"] == "transfers" and q["offer"]]
        return len(offers) == len(RATES)

    def place(self, numbers, **more):
        """One request: a copy of each of these files at the other site."""
        names = "\n".join(f"f{n}" for n in numbers)
        words = "".join(f"{k} = {v}\n" for k, v in more.items())
        return self.instance.submit(f"universe = data\nsrc_url = {self.stores['east'].url}$(name)\ndest_url = {self.stores['west'].url}in/$(name)\n"
                                    f"{words}queue name from (\n{names}\n)\n")

    def stop(self):
        for store in self.stores.values():
            store.stop()
        self.net.remove()


@pytest.fixture(name="sites")
def _sites(instance):
    one = Sites(instance)
    try:
        yield one.start()
    finally:
        for daemon in list(instance.daemons):
            daemon.stop(signal.SIGKILL)
            instance.daemons.remove(daemon)
        one.stop()


@pytest.mark.long
def test_bytes_cross_the_link_once(sites):
    instance, east, west = sites.instance, sites.stores["east"], sites.stores["west"]
    contents = {n: os.urandom(SIZE) for n in range(FILES)}
    for n, text in contents.items():
        east.put(f"f{n}", text)
    instance.wait(sites.place([0]))  # so that something is known of how long one takes
    wait_until(sites.ready)
    before = {name: sites.net.received(name) for name in RATES}
    request = sites.place(range(FILES), TransferInputSizes=f'"{SIZE}"')
    instance.wait(request)
    assert {n: west.read(f"in/f{n}") for n in range(FILES)} == contents
    moved = {name: sites.net.received(name) - before[name] for name in RATES}
    assert {row["agent"] for row in instance.history(request)} <= {"east", "west"}
    assert FILES * SIZE <= moved["west"] < 1.3 * FILES * SIZE and moved["hub"] < SIZE, moved


@pytest.mark.long
def test_a_site_is_lost_in_the_middle(sites):
    """The agents of both sites are killed while files are under way; no file is wrong or missing, and nothing is left under another name."""
    instance, east, west = sites.instance, sites.stores["east"], sites.stores["west"]
    contents = {n: os.urandom(8 * SIZE) for n in range(FILES)}
    for n, text in contents.items():
        east.put(f"f{n}", text)
    request = sites.place(range(FILES))
    wait_until(lambda: os.path.isdir(os.path.join(west.data, "in")) and os.listdir(os.path.join(west.data, "in")))
    for name in ("east", "west"):
        sites.agents[name].stop(signal.SIGKILL)
        instance.daemons.remove(sites.agents[name])
        sites.agent(name)
    instance.wait(request, seconds=240)
    assert sorted(os.listdir(os.path.join(west.data, "in"))) == sorted(f"f{n}" for n in range(FILES))
    assert all(west.read(f"in/f{n}") == text for n, text in contents.items())
