"""register_outputs: what jobs have sent to URLs becomes files of the catalog, once, and only what was sent."""
import hashlib
import os
import shutil

import pytest
from drover import sh, wait_until
from stores import Nginx
from users import ONE, Site
from wire import Liar


@pytest.fixture
def web(tmp_path):
    one = Nginx(os.path.join(tmp_path, "web"))
    try:
        yield one.wait()
    finally:
        one.stop()


def work(url, script, name="res.$(Process)", register="production=P1", **more):
    return sh(script, output_destination=url, transfer_output_files=name, should_transfer_files="YES",
              when_to_transfer_output="ON_EXIT", register_outputs=register, **more)


def found(instance, query, count):
    """The files that a query gives, once there are so many."""
    def files():
        """the files are in the catalog"""
        return {f["name"]: f for f in instance.json("catalog", "query", query)["files"]}
    wait_until(lambda: len(files()) == count)
    return files()


def checksum(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def test_outputs_of_one_request_are_the_dataset_of_the_next(instance, web):
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"stores:\n  lab:\n    urls: [{web.base}]\n")
    instance.up()
    first = instance.run(work(web.url + "out", "echo printed; echo of $(Process) >res.$(Process)", output="log.$(Process)",
                              register="production=P1, pass=2, good=true, label='007', part=$(Process)", queue="queue 3"))
    assert sorted(found(instance, "production=P1,pass>1,storage=lab,good=true,label='007'", 3)) == [
        f"dav/out/res.{i}" for i in range(3)]
    assert web.read("out/log.0") == b"printed\n"  # which is no output that others read
    assert len(found(instance, "", 3)) == 3
    for i in range(3):
        data = web.read(f"out/res.{i}")
        file = instance.json("catalog", "show", f"dav/out/res.{i}")
        assert (file["size"], file["checksum"]) == (len(data), checksum(data))
        assert file["replicas"] == [{"url": f"{web.url}out/res.{i}", "store": "lab"}]
        assert file["metadata"].pop("owner").startswith("root@")
        assert file["metadata"] == {"production": "P1", "pass": 2, "good": True, "label": "007", "part": i, "request": first}
    second = instance.submit("executable = /bin/sh\narguments = \"-c 'cat $FILELIST | xargs cat'\"\noutput = sum\n"
                             f"request_memory = 32\ndataset = catalog:request={first}\nfiles_per_job = 10\nqueue\n")
    instance.wait(second)
    assert sorted(instance.read("sum").split("\n")) == ["", "of 0", "of 1", "of 2"]


def test_what_did_not_succeed_and_what_is_written_again(instance, web):
    instance.up()
    instance.run(work(web.url + "a", "echo bad >x; exit 3", "x"), code=None)
    instance.run(work(web.url + "a", "echo one >y", "y", "false"))
    instance.run(work(web.url + "a", "echo first >z", "z", "pass=1"))
    assert list(found(instance, "", 1)) == ["dav/a/z"] and web.read("a/x") == b"bad\n" and web.read("a/y") == b"one\n"
    # The same once more changes nothing but the request; other contents are another file in the place of the first.
    instance.run(work(web.url + "a", "echo first >z", "z", "again=1"))
    assert found(instance, "pass=1,again=1", 1)["dav/a/z"]["replicas"] == [{"url": web.url + "a/z"}]
    instance.run(work(web.url + "a", "echo second >z", "z", "pass=2"))
    assert found(instance, "pass=2", 1)["dav/a/z"]["checksum"] == checksum(b"second\n")
    assert list(found(instance, "", 1)) == ["dav/a/z"]
    # A file of that name that is known from elsewhere stays, and the URL is the name of the new one.
    instance.cli("catalog", "add", "dav/a/w", "--size", "1", "--url", "file:/nfs/w")
    instance.run(work(web.url + "a", "echo third >w", "w", "pass=3"))
    assert list(found(instance, "pass=3", 1)) == [web.url + "a/w"]
    assert instance.json("catalog", "show", "dav/a/w")["size"] == 1


def test_a_catalog_that_cannot_be_written_meanwhile(instance, web):
    """The result is taken all the same; the server is killed; the files are registered by the next one, once."""
    instance.up()
    blocked = os.path.join(instance.dir, "catalog.db")
    os.mkdir(blocked)
    request = instance.submit(work(web.url, "echo $(Process) >res.$(Process)", queue="queue 4"))
    instance.wait(request)
    wait_until(lambda: "outputs are not in the catalog yet" in instance.logs())
    instance.stop()
    os.rmdir(blocked)
    instance.up()
    files = found(instance, "production=P1", 4)
    assert [len(f["replicas"]) for f in files.values()] == [1] * 4
    instance.stop()
    shutil.copy(blocked, instance.base)
    instance.up()
    assert found(instance, "production=P1", 4) == files


def test_who_may(instance, web):
    settings = instance.write("server.yaml", "api_listen: 127.0.0.1:0\n")
    instance.server("--config", settings)
    token = instance.json("token", "user", "--name", "ann@elsewhere")["token"]
    env = {"DROVER_SERVER": f"https://{instance.server_json()['api_tls']}", "DROVER_TOKEN": token, "DROVER_DIR": ""}
    instance.write("job", work(web.url, "true"))
    out = instance.cli("submit", "job", code=None, env=env, cwd=instance.work)
    assert out.code and "catalog_write in droverd.yaml" in out.err
    out = instance.cli("submit", "--dry-run", "job", code=None, env=env, cwd=instance.work)
    assert out.code and "catalog_write" in out.err
    instance.write("plain", work(web.url, "true", register="false"))
    request = instance.cli("submit", "plain", env=env, cwd=instance.work, code=0)
    assert "1" in request
    out = instance.cli("edit", "1", "RegisterOutputs=true", env=env, code=None)
    assert out.code and "cannot be changed" in out.err
    for register, says in (("production", "is no metadata"), ("size=1", "is no metadata"), ("owner=me@x", "set by the server"),
                           ("a b=1", "is no metadata"), (",".join(f"k{i}=1" for i in range(65)), "more than 64 keys")):
        instance.write("job", work(web.url, "true", register=register))
        out = instance.cli("submit", "job", code=None, cwd=instance.work)
        assert out.code and says in out.err, (register, out.err)


def test_an_agent_that_lies(instance, web):
    """What an agent says that it has sent is believed where the job's description says that its outputs go."""
    instance.server()
    liar = Liar(instance, "liar", "--owners", "any")
    liar.hello()
    request = instance.submit(work(web.url + "out", "true", transfer_output_remaps="\"a=http://other/$(Process)/a\"", register="n=1"))
    liar.offer()
    has = {request: liar.take(request)[0]}
    plain = instance.submit(work(web.url + "out", "true", register="false"))
    liar.offer()
    has[plain] = liar.take(plain)[0]

    def sent(url, **more):
        return {"name": url, "sha256": b"\1" * 32, "size": 7, **more}

    lies = [sent(u) for u in ("file:///etc/passwd", "http://elsewhere/x", web.url + "outside", web.url + "out/../up", web.url + "out",
                              "no url", "", "x" * 5000, "http://other/1/a", "http://other/", web.url + "out/\nx")]
    good = [sent(web.url + "out/f"), sent(web.url + "out/d/g"), sent("http://other/0/a"), sent(web.url + "out/f")]
    short = [sent(web.url + "out/short", sha256=b"\1")]
    for attempt, files in ((has[request], lies + good + short), (has[plain], good)):
        liar.wire.send(result={"jobs": [{**attempt, "steps": [{"exit_code": 0}], "sent": files}]})
        liar.wire.until("result_ack")
    liar.wire.send(result={"jobs": [{**has[request], "fence": 99, "steps": [{"exit_code": 0}], "sent": [sent(web.url + "out/late")]}]})
    liar.wire.until("result_ack")
    files = found(instance, "", 3)
    assert sorted(files) == ["0/a", "dav/out/d/g", "dav/out/f"]
    assert {f["checksum"] for f in files.values()} == {"sha256:" + "01" * 32}
    assert [f["metadata"]["request"] for f in instance.json("catalog", "query", "n=1")["files"]] == [request] * 3


def test_many_outputs_to_many_places(instance, web):
    """An agent that says it has sent ten thousands of files of a job with thousands of destinations does not hold the server."""
    instance.server()
    liar = Liar(instance, "liar", "--owners", "any")
    liar.hello()
    remaps = ";".join(f"f{i}=http://other/{i}/a" for i in range(5000))
    request = instance.submit(work(web.url + "out", "true", transfer_output_remaps=f'"{remaps}"', register="n=1"))
    liar.offer()
    attempt = liar.take(request)[0]
    sent = [{"name": f"http://elsewhere/{i}", "sha256": b"\1" * 32, "size": 7} for i in range(20000)]
    liar.wire.send(result={"jobs": [{**attempt, "steps": [{"exit_code": 0}], "sent": sent}]})
    liar.wire.until("result_ack")
    assert instance.logs().count("an output is not registered") < 100


def test_with_users_the_checksum_is_the_agents(instance, web):
    """The user's own mover sends the file, and may say what it likes; the agent has summed what it was given."""
    site = Site(instance, "catalog_write: user\n")
    site.agent(more="transfer_retry: 20ms\n")
    site.run(ONE, "echo mine >a; echo other >b", TransferOutput="a,b", OutputDestination=web.url + "u", ShouldTransferFiles="YES",
             WhenToTransferOutput="ON_EXIT", RegisterOutputs="by=user")
    files = found(instance, "by=user", 2)
    assert {n: f["checksum"] for n, f in files.items()} == {"dav/u/a": checksum(b"mine\n"), "dav/u/b": checksum(b"other\n")}
    assert web.read("u/a") == b"mine\n"
