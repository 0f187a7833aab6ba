"""Inputs and outputs of jobs fetched and sent with the credentials of their owners: https, S3, SFTP."""
import glob
import hashlib
import os
import signal
import time

import agents
import pytest
from drover import sh, wait_until
from guarded import S3, Authority, Guarded, Sftp, Xrootd
from hops import far, hop_queue, runs
from test_credentials import add, files_with, jwt
from test_urls import cat, held

SECRET = "s3cr3t-of-ann-"
QUICK = "transfer_retry: 10ms\ntransfer_tries: 2\nkill_grace: 1s\n"


@pytest.fixture
def authority(instance):
    return Authority(os.path.join(instance.base, "authority"))


@pytest.fixture
def store(instance, authority):
    server = Guarded(os.path.join(instance.base, "guarded"), authority, (SECRET + "one", SECRET + "two"))
    try:
        yield server.wait()
    finally:
        server.stop()


@pytest.fixture
def place(instance, authority, store):
    """A server that knows the store, so that what is open there is everybody's, and an agent."""
    os.makedirs(instance.dir, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(f"stores:\n  lab:\n    urls: {store.url[:-4]}\n")
    instance.server()
    instance.config = QUICK + f"ca_file: {authority.file}\nprobe: 0\n"
    instance.agent = agents.start(instance, instance.config)
    return instance


def give(instance, name, text, *urls, kind="token"):
    options = [word for url in urls for word in ("--for", url)]
    return instance.cli("credential", "add", name, "--type", kind, *options, "-", stdin=text)


def nowhere(instance, secret=SECRET, but=()):
    """Nothing of it is in what the daemons have written."""
    folders = [os.path.join(instance.base, n) for n in ("authority", "guarded", "ssh")]
    assert files_with(instance.base, secret, [*folders, instance.work, *but]) == []
    for command in (["queue"], ["history", "--json"], ["credential", "list"], ["agents", "--json"]):
        assert secret not in instance.cli(*command)


def test_only_who_may_has_it_from_the_cache(place, store):
    """What was fetched with a credential is there for its owner's jobs that have it, and for no others."""
    url = store.put("in/f", b"for ann\n")
    give(place, "grid", SECRET + "one", store.url)
    assert place.json("credential", "list")["credentials"][0]["urls"] == [store.url]
    mine = cat(url, more="credentials = grid")
    place.run(mine)
    place.run(mine)
    assert place.read("out.0") == "for ann\n" and store.gets("in/f") == 1
    # its checksum is no key to it either
    summed = url + "#sha256=" + hashlib.sha256(b"for ann\n").hexdigest()
    for theirs in (cat(url), cat(summed)):
        job = held(place, place.submit(theirs))
        assert job["hold_code"] == 13 and "HTTP 401" in job["hold_reason"]
        assert "no credential of the job is for it" in job["hold_reason"]
    place.run(cat(summed, more="credentials = grid"))
    assert store.gets("in/f") == 1
    # nor does it help to be started again
    wait_until(lambda: os.path.exists(os.path.join(place.base, "n1", "cache", "index")))
    place.agent.stop(signal.SIGKILL)
    place.agent = agents.start(place, place.config)
    assert "HTTP 401" in held(place, place.submit(cat(url)))["hold_reason"]
    place.run(mine)
    assert store.gets("in/f") == 1
    # with another of his it is asked for again; what is open is still everybody's
    give(place, "other", SECRET + "two", store.url)
    place.run(cat(url, more="credentials = other"))
    assert store.gets("in/f") == 2
    for more in ("", "credentials = grid"):
        place.run(cat(store.open + "in/f", more=more))
    assert len([r for r in store.requests() if r[1] == "/open/in/f"]) == 1
    nowhere(place)


def test_shown_only_where_it_is_for(place, store):
    """Not to a URL that its owner has not named, and not to a host that a store sends us on to."""
    store.put("f", b"x")
    give(place, "grid", SECRET + "one", store.url + "in/", store.moved, store.elsewhere)
    assert "HTTP 401" in held(place, place.submit(cat(store.url + "f", more="credentials = grid")))["hold_reason"]
    place.run(cat(store.moved + "f", more="credentials = grid"))
    assert place.read("out.0") == "x"
    job = held(place, place.submit(cat(store.elsewhere + "f", more="credentials = grid")))
    assert job["hold_code"] == 4 and "shown the token grid" in job["hold_reason"]
    assert not [r for r in store.requests() if r[3] == "localhost" and r[4] != "-"]
    said = give(place, "grid", SECRET + "two", "none")
    assert said.code == 0 and place.json("credential", "list")["credentials"][0]["urls"] == []
    place.cli("credential", "add", "grid", "--type", "token", "--for", "http://store.org/", "-", stdin="x", code=2)
    nowhere(place)


def test_a_token_that_is_refused_holds_the_job_until_it_is_replaced(place, store):
    url = store.put("f", b"contents")
    give(place, "grid", "not-" + SECRET, store.url)
    request = place.submit(cat(url, more="credentials = grid"))
    job = held(place, request)
    assert job["hold_code"] == 4
    assert f"cannot fetch {url}: the store does not allow it (HTTP 401), shown the token grid" in job["hold_reason"]
    assert "drover credential add grid" in job["hold_reason"]
    assert "1 jobs" in add(place, "grid", SECRET + "one").err  # what it is for stays as it was
    place.wait(request)
    assert place.read("out.0") == "contents"


def test_renewed_while_it_runs_and_the_agent_was_away(place, store):
    """The outputs go with the newest one, although agent and server were killed since the job began."""
    give(place, "grid", "not-" + SECRET, store.url)
    request = place.submit(sh(f"touch {place.work}/runs; while [ ! -e {place.work}/go ]; do sleep 0.05; done; echo made >made",
                              credentials="grid", transfer_output_files="made",
                              transfer_output_remaps=f"made={store.url}out/made"))
    wait_until(lambda: place.exists("runs"))
    place.agent.kill()
    place.write("go", "")
    box, = glob.glob(f"{place.base}/n1/jobs/{request}.0.*")
    wait_until(lambda: os.path.exists(os.path.join(box, "made")))
    add(place, "grid", SECRET + "one")
    place.agent = agents.start(place, place.config)
    place.wait(request)
    assert store.read("out/made") == b"made\n"
    assert {r[4] for r in store.requests()} == {"Bearer " + SECRET + "one"}
    assert place.history(request)[0]["starts"] == 1
    nowhere(place, "s3cr3t-of-ann-")


def test_one_that_expires_while_it_runs(place, store):
    """Its outputs cannot be sent: the job is held, says why, and is released by a new one."""
    give(place, "grid", jwt(3600), store.url)
    request = place.submit(sh(f"cp $BEARER_TOKEN_FILE first; touch {place.work}/runs; while [ ! -e {place.work}/new ] && "
                              f"cmp -s first $BEARER_TOKEN_FILE; do sleep 0.05; done; touch {place.work}/new; while [ ! -e {place.work}/go ]; do sleep 0.05; done; "
                              "echo made >made", credentials="grid",
                              transfer_output_files="made", transfer_output_remaps=f"made={store.url}made"))
    wait_until(lambda: place.exists("runs"))

    def has_one_that_ends_soon():
        """the job has been given it, which it is not when it has ended by then"""
        give(place, "grid", jwt(4), store.url)
        return place.exists("new")

    wait_until(has_one_that_ends_soon, every=1.0)
    end = time.time() + 4
    wait_until(lambda: time.time() > end)
    place.write("go", "")
    job = wait_until(lambda: (j := place.job(f"{request}.0"))["state"] == "held" and j)
    assert job["hold_code"] == 4 and "the credential grid has expired, at " in job["hold_reason"]
    assert f"{store.url}made is not to be had without: drover credential add grid" in job["hold_reason"]
    assert store.requests() == []
    add(place, "grid", SECRET + "two")
    place.wait(request)
    assert store.read("made") == b"made\n"


def test_a_job_that_is_handed_on(request, build, place, store):
    """Its agent here fetches and sends, and the next server's store of files has nothing of the credential."""
    end = far(request, build)
    runs(end)
    place.agent.stop()
    agents.start(place, place.config + "queues:\n" + hop_queue("east", end))
    agents.offering(place)
    give(place, "grid", SECRET + "one", store.url)
    number = place.submit(sh("tr y Y <f >g", credentials="grid", transfer_input_files=store.put("f", b"why\n"),
                             transfer_output_files="g", transfer_output_remaps=f"g={store.url}out/g"))
    place.wait(number)
    assert store.read("out/g") == b"whY\n" and {r[4] for r in store.requests()} == {"Bearer " + SECRET + "one"}
    assert files_with(end.base, SECRET, [end.work]) == []
    nowhere(place)


def test_certificates(place, store, authority):
    """A certificate with its key is the client's of https."""
    store.put("f", b"certified")
    give(place, "x509", authority.certified("ann"), store.certified, kind="proxy")
    place.run(cat(store.certified + "f", more="credentials = x509"))
    assert place.read("out.0") == "certified"
    assert "HTTP 403" in held(place, place.submit(cat(store.certified + "f")))["hold_reason"]


def test_xrootd_with_a_proxy(place):
    """A real proxy, over https, and over root:// by the program that comes with Drover."""
    helper = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "dist", "movers", "xrootd"))
    store = Xrootd(os.path.join(place.base, "xrootd"))
    try:
        os.chmod(os.path.dirname(place.base), 0o711)
        os.chmod(place.base, 0o711)
        store.wait()
        place.agent.stop()
        place.env.update(X509_CERT_DIR=store.authorities, XrdSecGSICRLCHECK="0", X509_USER_PROXY="/the/agents")
        agents.start(place, QUICK + f"ca_file: {store.authority.file}\nprobe: 0\nmovers:\n  root: {helper}\n")
        secret = store.authority.proxy("ann")
        give(place, "x509", secret, store.url, store.https, kind="proxy")
        with open(os.path.join(store.data, "f"), "wb") as f:
            f.write(b"by gsi\n" * 100000)
        place.run(f"""executable = /bin/sh
arguments = "-c 'tr y Y <f >g'"
credentials = x509
transfer_input_files = {store.url}f
transfer_output_files = g
transfer_output_remaps = "g={store.url}out/g"
queue
""")
        with open(os.path.join(store.data, "out", "g"), "rb") as f:
            assert f.read() == b"bY gsi\n" * 100000
        assert os.listdir(os.path.join(store.data, "out")) == ["g"]
        place.run(cat(store.https + "out/g", more="credentials = x509"))
        assert place.read("out.0") == "bY gsi\n" * 100000
        assert "HTTP 403" in held(place, place.submit(cat(store.https + "f")))["hold_reason"]
        key = secret.split("PRIVATE KEY-----")[1].strip().splitlines()[3]
        assert files_with(place.base, key, [store.folder]) == []
    finally:
        store.stop()


def test_xrootd_with_a_token(place):
    """One of WLCG's, which goes over TLS only: its file is what XRootD asks of such a file, and the owner's."""
    helper = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "dist", "movers", "xrootd"))
    store = Xrootd(os.path.join(place.base, "xrootd"), tokens=True)
    try:
        os.chmod(os.path.dirname(place.base), 0o711)
        os.chmod(place.base, 0o711)
        store.wait()
        place.agent.stop()
        place.env.update(X509_CERT_DIR=store.authorities, BEARER_TOKEN="the-agents")
        agents.start(place, QUICK + f"ca_file: {store.authority.file}\nprobe: 0\nmovers:\n  root: {helper}\n")
        token = store.issuer.token()
        give(place, "wlcg", token, store.url)
        with open(os.path.join(store.data, "f"), "wb") as f:
            f.write(b"by ztn\n" * 100000)
        copies = f"""executable = /bin/sh
arguments = "-c 'tr y Y <f >g'"
credentials = wlcg
transfer_input_files = {store.url}f
transfer_output_files = g
transfer_output_remaps = "g={store.url}out/g"
queue
"""
        place.run(copies)
        with open(os.path.join(store.data, "out", "g"), "rb") as f:
            assert f.read() == b"bY ztn\n" * 100000
        assert os.listdir(os.path.join(store.data, "out")) == ["g"]
        assert "Auth failed" in held(place, place.submit(cat(store.url + "f")))["hold_reason"]
        give(place, "wlcg", store.issuer.token(scope="storage.read:/store"), store.url)
        assert "permission denied" in held(place, place.submit(copies))["hold_reason"].lower()
        assert files_with(place.base, token.rsplit(".", 1)[1]) == []
    finally:
        store.stop()


def test_s3(place):
    keys = {"ANN:KEY": "s3cr3t/of+ann"}
    s3 = S3(keys)
    try:
        give(place, "lab", s3.file("ANN:KEY", "s3cr3t-session"), kind="s3")
        s3.objects["/bucket/dir/in put"] = b"an object\n" * 50000
        request = place.run("""executable = /bin/sh
arguments = "-c 'wc -c <in%20put; cat in%20put >copy'"
credentials = lab
transfer_input_files = s3://bucket/dir/in%20put
transfer_output_files = copy
transfer_output_remaps = "copy=s3://bucket/out/$(Cluster)"
output = out
queue
""")
        assert place.read("out").strip() == "500000"
        assert s3.objects[f"/bucket/out/{request}"] == s3.objects["/bucket/dir/in put"]
        assert not [s for s in s3.seen if s[2]]
        # without a key, and with one that has expired or has been changed
        assert "there is no key for it" in held(place, place.submit(cat("s3://bucket/other")))["hold_reason"]
        s3.expired.add("s3cr3t-session")
        with_key = cat("s3://bucket/other", more="credentials = lab")
        job = held(place, place.submit(with_key))
        assert job["hold_code"] == 4 and "ExpiredToken" in job["hold_reason"] and "the S3 key lab" in job["hold_reason"]
        keys["ANN:KEY"] = "another"
        s3.expired.clear()
        assert "SignatureDoesNotMatch" in held(place, place.submit(with_key))["hold_reason"]
        for secret in ("s3cr3t", "ANN:KEY"):
            nowhere(place, secret)
    finally:
        s3.stop()


def test_sftp_with_a_key(place):
    """A key that the job has, and a host that is known."""
    server = Sftp(os.path.join(place.base, "ssh"))
    try:
        server.wait()
        known = place.write("known_hosts", "")
        place.agent.stop()
        agents.start(place, place.config + f"known_hosts: {known}\n")
        with open(server.key, encoding="ascii") as f:
            give(place, "key", f.read(), server.url, kind="file")
        with open(os.path.join(server.data, "f"), "w", encoding="ascii") as f:
            f.write("by ssh\n")
        text = f"""executable = /bin/sh
arguments = "-c 'cat f >g'"
credentials = key
transfer_input_files = {server.url}f
transfer_output_files = g
transfer_output_remaps = "g={server.url}out/g"
queue
"""
        request = place.submit(text)
        job = held(place, request)
        assert job["hold_code"] == 13 and "SSH" in job["hold_reason"]
        place.write("known_hosts", server.known_host)
        place.cli("release", str(request))
        place.wait(request)
        with open(os.path.join(server.data, "out", "g"), encoding="ascii") as f:
            assert f.read() == "by ssh\n"
    finally:
        server.stop()


def test_a_program_is_given_a_file(place):
    """It has the contents as descriptor 4 and by the usual variable, and what the agent has of the kind it has not."""
    helper = place.write("helper", """#!/bin/sh
read request
cat $BEARER_TOKEN_FILE - <&4 >&3
echo " $X509_USER_PROXY$AWS_SECRET_ACCESS_KEY" >&3
case $request in *'"credential":{"type":"token","name":"grid"}'*) echo '{"event":"done"}';; esac
tr '\\0' '\\n' </proc/$$/environ | grep -c s3cr3t >&2
""", 0o755)
    place.agent.stop()
    place.env.update(X509_USER_PROXY="/the/agents", AWS_SECRET_ACCESS_KEY="the agents")
    try:
        agents.start(place, place.config + f"movers:\n  odd: {helper}\n")
    finally:
        del place.env["X509_USER_PROXY"], place.env["AWS_SECRET_ACCESS_KEY"]
    give(place, "grid", SECRET, "odd://somewhere/")
    place.run(cat("odd://somewhere/f", more="credentials = grid"))
    assert place.read("out.0").split() == [SECRET + SECRET]
