"""Three agents whose links to a store are of different width: with and without regard to where files are, the same
jobs, the bytes that really crossed the links, and when all was done."""
import os
import subprocess

import pytest
from drover import Daemon, Instance, wait_until
from netns import Net
from stores import Nginx

LINKS = {"near": "200mbit", "mid": "40mbit", "far": "4mbit"}
# Each agent runs as many jobs at once as there are files. So a blind choice has all files come over the thin link at
# once, which takes it four seconds for each, however fast or busy this machine is.
FILES, SIZE, ROUNDS = 3, 2 << 20, 6
JOBS = f"""executable = /bin/sh
arguments = "-c 'sleep 0.1; wc -c <$(file)'"
transfer_input_files = STORE$(file)
+TransferInputSizes = "{SIZE}"
+ExpectedRunTime = 1
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
TERMS = ("wait", "link", "fetch", "image", "environment", "run", "send", "price")


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
                instance.server_json()["agents"][0], "--token", token, "--jobs-max", str(FILES), "--cpus", str(FILES)]
        instance.daemons.append(Daemon(name, argv, path + ".log", instance.env, instance.base))

    def links(self, instance):
        return {x["agent"]: x["bytes_per_s"] for x in instance.json("stores")["stores"][0]["links"] or []
                if x["bytes_per_s"]}

    def explained(self, instance):
        """One job more for some files: where it goes is what the terms say that it was told, and these are those of
        the links and of what is held."""
        for n in range(FILES):
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
        """Runs the jobs. Returns what each agent received, what the store sent, how wide the links seemed, and how many
        seconds there were from the submit to the end of the last job."""
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
            took = (max(r["ended_ms"] for r in rows) - min(r["submitted_ms"] for r in rows)) / 1000
            if placement == "cost":
                self.explained(instance)
            return received, sent, widths, took
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
    return {name: received[name] * 8 / (int(rate.removesuffix("mbit")) * 1e6) for name, rate in LINKS.items()}


@pytest.mark.long
def test_it_ends_sooner_with_fewer_bytes(world):
    blind, blind_sent, _, blind_s = world.play("blind")
    aware, aware_sent, widths, aware_s = world.play("cost")
    told = f"blind {blind} ({blind_sent}) in {blind_s} s, by cost {aware} ({aware_sent}) in {aware_s} s, links {widths}"
    print(told)
    assert widths["far"] < widths["near"], told
    # each file has to come once; where nobody looks, all come to all agents
    assert aware_sent >= FILES * SIZE and blind_sent > aware_sent, told
    assert sum(aware.values()) < 0.9 * sum(blind.values()), told
    # least of all over the thin link, which is what takes long: nothing ends before it does
    assert aware["far"] < 0.7 * blind["far"], told
    assert blind_s > 0.9 * busy_s(blind)["far"] > 0.9 * FILES * SIZE * 8 / 4e6, told
    assert aware_s < blind_s, told
