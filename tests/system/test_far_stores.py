"""Three agents whose links to a store are of different width: with and without regard to where files are, the same
jobs, and the bytes that really crossed the links."""
import os
import subprocess

import pytest
from drover import Daemon, Instance, wait_until
from netns import Net
from stores import Nginx

LINKS = {"near": "200mbit", "mid": "40mbit", "far": "8mbit"}
FILES, SIZE, ROUNDS = 10, 1 << 20, 5
JOBS = f"""executable = /bin/sh
arguments = "-c 'sleep 0.1; wc -c <$(file)'"
transfer_input_files = STORE$(file)
+TransferInputSizes = "{SIZE}"
transfer_output_files = ""
output = out.$(Process)
queue file from (
{chr(10).join(f"f{n}" for _ in range(ROUNDS) for n in range(FILES))}
)
"""

JOB = f"""executable = /bin/sh
arguments = "-c 'wc -c <FILE'"
transfer_input_files = STOREFILE
+TransferInputSizes = "{SIZE}"
transfer_output_files = ""
queue
"""
TERMS = ("wait", "fetch", "image", "run", "send", "price")


class World:
    """The store and the links, and one server after the other."""

    def __init__(self, build, folder):
        self.build, self.folder, self.net = build, str(folder), Net()
        self.store = None

    def start(self):
        address = self.net.add("store")
        for name, rate in LINKS.items():
            self.net.add(name, rate)
        self.store = Nginx(os.path.join(self.folder, "nginx"), address, 8080, self.net.inside("store"))
        port = ["bash", "-c", f"exec 3<>/dev/tcp/{address}/8080"]
        self.store.wait(lambda: subprocess.run([*self.net.inside("near"), *port], stderr=subprocess.DEVNULL,
                                               check=False).returncode == 0)
        for n in range(FILES):
            self.store.put(f"f{n}", os.urandom(SIZE))
        self.store.put("probe", os.urandom(SIZE // 4))
        return self

    def stop(self):
        if self.store:
            self.store.stop()
        self.net.remove()

    def agent(self, instance, name):
        path = os.path.join(instance.base, name)
        token = instance.json("token", "agent", "--name", name)["token"]
        argv = [*self.net.inside(name), instance.program("drover-agent"), "--dir", path, "--name", name, "--server",
                instance.server_json()["agents"][0], "--token", token, "--jobs-max", "1"]
        instance.daemons.append(Daemon(name, argv, path + ".log", instance.env, instance.base))

    def links(self, instance):
        return {x["agent"]: x["bytes_per_s"] for x in instance.json("stores")["stores"][0]["links"] or []
                if x["bytes_per_s"]}

    def explained(self, instance):
        """One job more for some files: where it goes is what the terms say that it was told, and these are those of
        the links and of what is held."""
        for n in range(0, FILES, 3):
            text = JOB.replace("STORE", self.store.url).replace("FILE", f"f{n}")
            path = instance.write(f"one{n}.sub", text)

            def places(path=path):
                """all agents are free, and their links did not change meanwhile"""
                links = instance.json("stores")["stores"][0]["links"]
                told = {p["name"]: p for p in instance.json("quote", path)["places"]}
                same = links == instance.json("stores")["stores"][0]["links"]
                return same and len(told) == len(LINKS) and all(p["verdict"] == "fits" for p in told.values()) and (links, told)

            links, told = wait_until(places, 30)
            for link in links:
                cost = told[link["agent"]]["cost"]
                fetch_ms = 0
                if not cost["bytes_held"]:
                    fetch_ms = link["latency_us"] / 1000 + SIZE * 1000 / link["bytes_per_s"]
                assert cost["bytes_in"] == SIZE and cost["fetch_ms"] == pytest.approx(fetch_ms, rel=0.34, abs=3), (link, cost)
                assert cost["total_ms"] == sum(cost[f"{term}_ms"] for term in TERMS), cost
            least = min(p["cost"]["total_ms"] for p in told.values())
            row = instance.history(instance.run(text, seconds=60))[0]
            assert told[row["agent"]]["cost"]["total_ms"] <= least + 4, (row["agent"], told)

    def play(self, placement):
        """Runs the jobs. Returns what each agent received, what the store sent, and how wide the links seemed."""
        folder = os.path.join(self.folder, placement)
        os.mkdir(folder)
        instance = Instance(self.build, folder)
        try:
            os.makedirs(instance.dir)
            with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
                f.write(f"placement: {placement}\nstores:\n  lab:\n    urls: {self.store.url}\n"
                        f"    probe: {self.store.url}probe\n")
            instance.server()
            for name in LINKS:
                self.agent(instance, name)
            widths = wait_until(lambda: len(w := self.links(instance)) == len(LINKS) and w, 30)
            before = {name: self.net.received(name) for name in LINKS}
            sent = sum(r[4] for r in self.store.requests("GET"))
            request = instance.run(JOBS.replace("STORE", self.store.url), seconds=120)
            rows = instance.history(request)
            assert len(rows) == FILES * ROUNDS and all(r["state"] == "completed" for r in rows)
            assert {instance.read(f"out.{n}").strip() for n in range(FILES * ROUNDS)} == {str(SIZE)}
            received = {name: self.net.received(name) - before[name] for name in LINKS}
            sent = sum(r[4] for r in self.store.requests("GET")) - sent
            if placement == "cost":
                self.explained(instance)
            return received, sent, widths
        except AssertionError as e:
            raise AssertionError(f"{e}\n{instance.logs()}") from e
        finally:
            try:
                instance.stop()
            finally:
                instance.destroy()


@pytest.fixture
def world(build, tmp_path_factory):
    one = World(build, tmp_path_factory.mktemp("far"))
    try:
        yield one.start()
    finally:
        one.stop()


def busy_s(received):
    """How long each link takes for that alone."""
    return [received[name] * 8 / (int(rate.removesuffix("mbit")) * 1e6) for name, rate in LINKS.items()]


def test_fewer_bytes_cross_the_links(world):
    blind, blind_sent, _ = world.play("blind")
    aware, aware_sent, widths = world.play("cost")
    told = f"blind {blind} ({blind_sent}), by cost {aware} ({aware_sent}), links {widths}"
    print(told)
    assert widths["far"] < widths["near"], told
    # each file has to come once; where nobody looks, most come to most agents
    assert aware_sent >= FILES * SIZE and blind_sent > aware_sent, told
    assert sum(aware.values()) < 0.75 * sum(blind.values()), told
    # the link that is busy longest: nothing ends before it does (clocks say too much of what else this machine does)
    assert max(busy_s(aware)) < 0.9 * max(busy_s(blind)), told
    # and least of all over the thin link
    assert aware["far"] < blind["far"], told
