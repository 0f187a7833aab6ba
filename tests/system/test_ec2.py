"""Machines of EC2 for the queue: the provisioner program that comes with Drover, against a server that checks every request (ec2.py).

With DROVER_MOTO, the address of a moto server, the instances are moto's: tools/prove-ec2."""
import base64
import json
import os
import signal
import subprocess

import pytest

import ec2
from drover import free_port, sh, wait_until
from test_provision import counted, nodes, plan, ran

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dist", "provisioners", "ec2")
MOTO = os.environ.get("DROVER_MOTO")
IMAGE = "ami-12c6146b" if MOTO else "ami-1"
KEYS = f"[default]\naws_access_key_id = {ec2.ACCESS}\naws_secret_access_key = {ec2.SECRET}\n"


@pytest.fixture
def sky(instance):
    one = ec2.Sky(os.path.join(instance.base, "sky"), behind=MOTO, page=3)
    instance.write("keys", KEYS)
    yield one
    for daemon in list(instance.daemons):
        daemon.stop(signal.SIGKILL)
        instance.daemons.remove(daemon)
    one.close()


def call(sky, verb, asked, keys=None):
    """The program alone; its answer's lines."""
    path = os.path.join(sky.folder, "keys")
    with open(path, "w", encoding="utf-8") as f:
        f.write(KEYS if keys is None else keys)
    p = subprocess.run([PROGRAM, "--endpoint", sky.address, "--region", ec2.REGION, "--credentials", path, verb], input=json.dumps(asked) + "\n",
                       capture_output=True, text=True, timeout=120, check=False)
    return p.returncode, [json.loads(line) for line in p.stdout.splitlines()], p.stderr


def launch(tag, **shape):
    return {"call": "start", "tag": tag, "name": "cloud-small-1", "shape": "small", "cpus": 2, "memory_mib": 2048, "disk_kib": 1 << 20,
            "server": "a.example:7331,b.example:7331", "token": "secret'token", "attributes": "GPUs = 1", "with": {"image": IMAGE, **shape}}


def test_calls(sky):
    """What a start says to EC2; a start that is made twice; lists in pages, of this server's machines only; a stop."""
    sky.boots = False
    code, said, _ = call(sky, "start", launch("drover.one.n.1", type="t2.micro", spot=True, spot_price="0.05", tags={"team": "physics"},
                                               **({} if MOTO else {"groups": ["sg-1", "sg-2"], "subnet": "subnet-1", "template": "lt-1:3"})))
    assert code == 0 and said[0]["instance"].startswith("i-")
    run = sky.calls[-1]
    assert run["InstanceMarketOptions.MarketType"] == "spot" and run["InstanceMarketOptions.SpotOptions.MaxPrice"] == "0.05"
    assert run["MetadataOptions.HttpTokens"] == "required" and run["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert MOTO or (run["SecurityGroupId.2"], run["LaunchTemplate.LaunchTemplateId"], run["LaunchTemplate.Version"]) == ("sg-2", "lt-1", "3")
    for price, spot_price, most in ((0.04, None, "0.04"), (0, None, None), (12, "0.50", "0.5")):
        asked = launch(f"drover.spot.n.{price}", spot=True, **({"spot_price": spot_price} if spot_price else {}))
        assert call(sky, "start", {**asked, "price": price})[0] == 0
        assert sky.calls[-1].get("InstanceMarketOptions.SpotOptions.MaxPrice") == most
    script = base64.b64decode(run["UserData"]).decode()
    assert "169.254.169.254 -m owner ! --uid-owner 0 -j REJECT" in script and "--server b.example:7331" in script
    assert call(sky, "start", launch("drover.one.n.1", type="t2.micro"))[1] == said or MOTO  # moto makes another: it does not look at the token
    more = [call(sky, "start", launch(f"drover.one.m.{n}"))[1][0]["instance"] for n in range(7)]
    call(sky, "start", launch("drover.other.n.1"))
    _, listed, _ = call(sky, "list", {"call": "list", "prefix": "drover.one."})
    assert listed[-1] == {"end": True} and {m["instance"] for m in listed[:-1]} >= {*more, said[0]["instance"]}
    assert {m["tag"] for m in listed[:-1]} == {"drover.one.n.1", *(f"drover.one.m.{n}" for n in range(7))}
    assert call(sky, "list", {"call": "list", "prefix": "drover.*"})[1] == [{"end": True}]  # no wildcard of ours
    for one in listed[:-1]:
        assert call(sky, "stop", {"call": "stop", **one}) == (0, [], "")
    assert call(sky, "list", {"call": "list", "prefix": "drover.one."})[1] == [{"end": True}]
    assert call(sky, "stop", {"call": "stop", "instance": "i-0123456789abcdef0", "tag": "drover.one.x.1"}) == (0, [], "")
    assert sky.wrong == []


@pytest.mark.skipif(MOTO is not None, reason="moto's spot prices are random")
def test_the_spot_market(sky):
    """What a spot machine may cost now; a market that asks more than the shape's price is closed."""
    def describe(*shapes):
        return call(sky, "describe", {"call": "describe", "shapes": [{"shape": "s", "cpus": 2, "price": 0.05, "machines": 0, "with": w} for w in shapes]})[1]
    assert describe({"type": "m6i.large"}, {"spot": True}) == []  # on demand; of a template whose type is not known
    assert describe({"type": "m6i.large", "spot": True}) == [{"shape": "s", "price": 0.036}]
    assert describe({"type": "m6i.large", "spot": True, "zone": "a"}) == [{"shape": "s", "price": 0.024}]
    assert describe({"type": "m6i.large", "spot": True, "spot_price": "0.04"}) == []  # what the admin pays is what is paid
    sky.spot["b"] = "0.045"
    assert describe({"type": "m6i.large", "spot": True}) == [{"shape": "s", "price": 0.05}]
    sky.spot["b"] = "0.06"
    said, = describe({"type": "m6i.large", "spot": True})
    assert said == {"shape": "s", "closed": "the spot market asks 0.06 for m6i.large, and at most 0.05 is paid"}
    sky.spot.clear()
    assert describe({"type": "m6i.large", "spot": True}) == [] and sky.wrong == []


def test_answers_that_are_errors(sky):
    sky.boots = False
    for kind, reason in (("throttled", "throttled"), ("capacity", "capacity")):
        sky.faults = [("RunInstances", kind)]
        assert call(sky, "start", launch("drover.one.n.1"))[1][0]["reason"] == reason
    for kind in ("cut before", "garbage", "half"):
        sky.faults = [("DescribeInstances", kind)]
        code, said, err = call(sky, "list", {"call": "list", "prefix": "drover.one."})
        assert code == 1 and said == [] and err.startswith("list: ")
    sky.faults = []
    assert "SignatureDoesNotMatch" in call(sky, "start", launch("t"), KEYS.replace("wJal", "wJam"))[1][0]["error"]
    code, said, err = call(sky, "start", launch("t"), "")
    assert code == 1 and "there are no credentials" in err
    assert not sky.alive()


def configure(instance, sky):
    port = free_port()
    agent = f"agent: {instance.program('drover-agent')}, folder: '@HOME@/agent', metadata: open, image: {IMAGE}, type: t2.micro"
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""listen: 127.0.0.1:{port}
provision: {{wait: 0s, horizon: 20s}}
provisioners:
  cloud:
    kind: exec
    command: [{PROGRAM}, --endpoint, '{sky.address}', --region, {ec2.REGION}, --credentials, {os.path.join(instance.work, "keys")}]
    server: 127.0.0.1:{port}
    max_nodes: 4
    poll: 1s
    period: 2s
    idle_after: 1s
    boot_limit: 30s
    retry: 1s
    shapes:
      small: {{cpus: 1, memory: 256M, price: 1, with: {{{agent}}}}}
      wide: {{cpus: 4, memory: 512M, price: 3, with: {{{agent}, spot: true}}}}
""")


def all_gone(instance, sky):
    wait_until(lambda: not [n for n in nodes(instance) if n["state"] != "retired"], 240)
    wait_until(lambda: not sky.alive(), 240)
    wait_until(lambda: plan(instance)["provisioners"][0]["instances"] == 0, 120)


def random_faults(instance, sky, count):
    """Jobs are submitted until all faults have come; then all are done, and nothing is left."""
    configure(instance, sky)
    instance.server()
    sky.fail_at_random(count, seed=21)
    total = []
    while sky.left or not total:
        total.append(counted(instance, 6))
        wait_until(lambda: not sky.left or instance.json("queue")["requests"] == [], 600)
    for request, lines in total:
        instance.wait(request, seconds=600)
        assert ran(lines) >= 6  # a job whose machine was one too many runs again
    assert len(sky.injected) == count and sky.wrong == []


def test_jobs_run_on_instances(instance, sky):
    """They boot from their user data, run jobs, and are gone, though a few requests fail; the key is in no log, and no job sees it."""
    random_faults(instance, sky, 4)
    shown = os.path.join(instance.work, "shown")
    request = instance.run(sh(f"env >{shown}"))
    with open(shown, encoding="utf-8") as f:
        assert ec2.SECRET not in f.read()
    assert {j["agent"].split("-")[0] for j in instance.history(request)} == {"cloud"}
    assert ec2.SECRET not in "".join(instance.logs())
    all_gone(instance, sky)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_two_hundred_random_faults(instance, sky):
    random_faults(instance, sky, 200)
    assert {f for kinds in ec2.FAULTS.values() for f in kinds} == {kind for _, kind in sky.injected}
    all_gone(instance, sky)
