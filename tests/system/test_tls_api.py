"""The API over TLS with bearer tokens, and the OpenAPI file."""
import hashlib
import http.client
import json
import os
import socket
import ssl

import jsonschema
import pytest

from drover import free_port, sh, wait_until


@pytest.fixture
def secure(instance):
    instance.port = free_port()
    instance.up("--api-listen", f"127.0.0.1:{instance.port}")
    return instance


def https(instance, method, path, token=None, body=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    c = http.client.HTTPSConnection("127.0.0.1", instance.port, timeout=90, context=context)
    try:
        c.request(method, path, json.dumps(body) if body else None,
                  {"Authorization": f"Bearer {token}"} if token else {})
        answer = c.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        c.close()


def user_token(instance, *more):
    return instance.json("token", "user", *more)


def test_a_token_is_needed_and_is_enough(secure):
    assert https(secure, "GET", "/v1/server")[0] == 401
    assert https(secure, "GET", "/v1/server", "drover-user-token.v1.x.y.z")[0] == 401
    made = user_token(secure, "--expires", "1h")
    status, info = https(secure, "GET", "/v1/server", made["token"])
    assert status == 200 and info["uuid"] == secure.server_info()["uuid"]


def test_the_certificate_has_this_machines_names(secure):
    """So a client that verifies names can call the server from here without a setting; not by any other name."""
    context = ssl.create_default_context(cafile=os.path.join(secure.dir, "ca", "ca.crt"))

    def verified(name):
        with socket.create_connection(("127.0.0.1", secure.port), 90) as raw, context.wrap_socket(raw, server_hostname=name) as tls:
            return tls.version()

    for name in ("localhost", "127.0.0.1", "::1", socket.gethostname(), "droverd"):
        assert verified(name) == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        verified("other.example.org")


def test_a_revoked_token_is_nothing(secure):
    made = user_token(secure)
    assert https(secure, "GET", "/v1/requests", made["token"])[0] == 200
    secure.cli("token", "revoke", made["id"])
    assert https(secure, "GET", "/v1/requests", made["token"])[0] == 401


def test_an_agents_token_is_no_users(secure):
    made = secure.json("token", "agent", "--name", "x")
    assert https(secure, "GET", "/v1/server", made["token"])[0] == 401


def test_a_user_touches_only_his_own(secure):
    mine = secure.submit(sh("true"), "--hold")
    made = user_token(secure, "--name", "guest", "--role", "user")
    status, _ = https(secure, "POST", "/v1/actions", made["token"], {"action": "remove", "ids": [str(mine)]})
    assert status in (403, 404)
    assert secure.job(f"{mine}.0")["state"] == "held"
    assert https(secure, "POST", "/v1/tokens", made["token"], {"kind": "agent", "name": "evil"})[0] == 403


def test_the_command_line_over_tls(secure):
    made = user_token(secure)
    env = {"DROVER_DIR": "", "DROVER_SERVER": f"https://127.0.0.1:{secure.port}", "DROVER_TOKEN": made["token"]}
    request = secure.run(sh("true"))
    out = json.loads(secure.cli("history", "--json", str(request), env=env))
    assert out["jobs"][0]["request"] == request
    bad = made["token"].split(".")
    bad[2] = "0" * 64
    assert secure.cli("queue", env={**env, "DROVER_TOKEN": ".".join(bad)}, code=None).code != 0


# ---- the OpenAPI file ------------------------------------------------------------------------------------------


def expand(spec, node):
    """A schema with its references to #/components followed, for jsonschema."""
    if isinstance(node, dict):
        if "$ref" in node:
            target = spec
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            return expand(spec, target)
        out = {k: expand(spec, v) for k, v in node.items()}
        if out.pop("nullable", False) and "type" in out:
            out["type"] = [out["type"], "null"] if isinstance(out["type"], str) else [*out["type"], "null"]
        return out
    if isinstance(node, list):
        return [expand(spec, v) for v in node]
    return node


def operation(spec, method, path):
    for template, item in spec["paths"].items():
        want, have = template.strip("/").split("/"), path.split("?")[0].strip("/").split("/")
        if len(want) == len(have) and all(w.startswith("{") or w == h for w, h in zip(want, have)):
            if method.lower() in item:
                return item[method.lower()]
    raise AssertionError(f"{method} {path} is not in the OpenAPI file")


def check(instance, spec, method, path, body=None):
    status, data = instance.call(method, path, body)
    responses = operation(spec, method, path)["responses"]
    response = responses.get(str(status)) or responses.get(f"{status // 100}XX") or responses.get("default")
    assert response, f"{method} {path}: status {status} is not described"
    response = expand(spec, response)
    schema = response["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator(schema).validate(data)
    return data


def test_openapi_describes_what_is_answered(shared):
    spec = shared.api("GET", "/v1/openapi.json")
    assert spec["openapi"].startswith("3.")
    done = shared.run(sh("echo x", output="api.out"))
    held = shared.submit(sh("true", queue="queue 3"), "--hold")
    check(shared, spec, "GET", "/v1/server")
    check(shared, spec, "GET", "/v1/requests?all=1")
    check(shared, spec, "GET", f"/v1/requests/{held}")
    check(shared, spec, "GET", f"/v1/jobs?id={held}&limit=2")
    check(shared, spec, "GET", f"/v1/jobs?id={held}&attributes=ProcId,Cmd")
    check(shared, spec, "GET", f"/v1/jobs/{held}.0")
    check(shared, spec, "GET", f"/v1/jobs/{done}.0")
    check(shared, spec, "GET", f"/v1/jobs/{done}.0/log")
    check(shared, spec, "GET", f"/v1/jobs/{held}.0/why")
    check(shared, spec, "GET", f"/v1/jobs/{done}.0/files")
    check(shared, spec, "GET", f"/v1/requests/{done}/files")
    check(shared, spec, "GET", f"/v1/wait?ids={done}&timeout_ms=0&seen=")
    check(shared, spec, "GET", f"/v1/history?id={done}")
    check(shared, spec, "GET", "/v1/agents")
    check(shared, spec, "GET", "/v1/tokens")
    check(shared, spec, "GET", "/v1/events?after=0&timeout_ms=0&limit=5")
    made = check(shared, spec, "POST", "/v1/tokens", {"kind": "agent", "name": "spec", "uses": 1, "expires_s": 60})
    check(shared, spec, "POST", "/v1/actions", {"action": "release", "ids": [str(held)]})
    check(shared, spec, "POST", "/v1/uploads")
    check(shared, spec, "GET", "/v1/jobs/77777.0")
    check(shared, spec, "GET", "/v1/requests/77777")
    check(shared, spec, "POST", "/v1/requests", {"uuid": 3})
    assert made["token"].startswith("drover-agent-token.v1.")
    shared.wait(held)


def test_every_operation_has_a_summary(shared):
    spec = shared.api("GET", "/v1/openapi.json")
    for path, item in spec["paths"].items():
        for method, op in item.items():
            if method in ("get", "put", "post", "delete"):
                assert op.get("summary"), f"{method} {path}"
                assert op.get("responses"), f"{method} {path}"


def test_uploads_in_pieces(shared):
    upload = shared.api("POST", "/v1/uploads")["id"]
    data = bytes(range(256)) * 40000
    at, step = 0, 4 << 20
    while at < len(data):
        size = shared.api("PUT", f"/v1/uploads/{upload}?offset={at}", data[at:at + step])["size"]
        at = min(at + step, len(data))
        assert size == at
    done = shared.api("POST", f"/v1/uploads/{upload}/finish", {})
    assert done == {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def test_paging_of_jobs(shared):
    request = shared.submit(sh("true", queue="queue 250"), "--hold")
    seen, after, pages = [], "", 0
    while True:
        page = shared.api("GET", f"/v1/jobs?id={request}&limit=100{after}")
        assert len(page["jobs"]) <= 100
        seen += [j["member"] for j in page["jobs"]]
        pages += 1
        if not page["next"]:
            break
        after = f"&after={page['next']}"
    assert seen == list(range(250)) and pages >= 3
    shared.cli("rm", str(request))
    wait_until(lambda: shared.api("GET", f"/v1/requests/{request}")["removed"] == 250)


def test_several_addresses_are_tried_in_turn(secure):
    """Of servers that stand in for each other the one that answers is asked; who is asked and refuses is not passed over."""
    token = user_token(secure)["token"]
    dead, live = f"https://127.0.0.1:{free_port()}", f"https://127.0.0.1:{secure.port}"
    for addresses in (f"{dead} {live}", f"{dead},{live}", f" {dead}, {dead} {live} "):
        env = {"DROVER_DIR": "", "DROVER_SERVER": addresses, "DROVER_TOKEN": token}
        done = secure.cli("submit", "--hold", "-", stdin=sh("true"), env=env)
        secure.cli("queue", env=env)
        assert "request" in done
    env = {"DROVER_DIR": "", "DROVER_SERVER": f"{dead} {dead}", "DROVER_TOKEN": token}
    assert "no Drover server answers at" in secure.cli("queue", env=env, code=1).err
    env["DROVER_SERVER"] = f"{dead} somewhere"
    assert "it must be https://host:port" in secure.cli("queue", env=env, code=1).err
    made = user_token(secure)
    secure.cli("token", "revoke", made["id"])
    env = {"DROVER_DIR": "", "DROVER_SERVER": f"{live} {dead}", "DROVER_TOKEN": made["token"]}
    assert "no Drover server" not in secure.cli("queue", env=env, code=1).err
