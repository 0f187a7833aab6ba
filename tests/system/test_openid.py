"""Signing in at the page by OpenID Connect: what is believed of the provider and of the browser, and what is not."""
import functools
import hashlib
import hmac
import http.cookies
import json
import os
import threading
import time
import urllib.parse

import pytest
from browser import Page, chromium, https, with_page
from drover import LIMIT, free_port, made, wait_until
from guarded import texts
from openid import Glewlwyd, Key, Provider, base64url

SESSION, COOKIE = "__Host-drover", "__Host-drover-openid"
ADMITTED = ("user_domain: lab", "allow: {groups: [drover]}")


@pytest.fixture(scope="module")
def sso(tmp_path_factory):
    one = Provider(str(tmp_path_factory.mktemp("sso")))
    yield one
    one.stop()


@pytest.fixture(scope="module")
def served(request, sso):
    with made(request, "o-") as one:
        yield start(one, sso, *ADMITTED)


@pytest.fixture
def provider(sso):
    sso.reset()
    yield sso
    sso.reset()


def start(instance, provider, *settings):
    """An instance without an agent. Its page's port must be in its settings."""
    port = free_port()
    lines = provider.settings(port, *settings)
    instance.port = port
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    instance.write(f"{instance.dir}/droverd.yaml", "\n".join(["page: yes", *lines, ""]))
    instance.server("--api-listen", f"127.0.0.1:{port}")
    return instance


def cookies(headers):
    """The cookies that are set: {name: morsel}."""
    found = {}
    for line in headers.get_all("Set-Cookie") or []:
        found.update(http.cookies.SimpleCookie(line))
    return found


def begin(instance):
    """(the browser's cookie, the URL to which it is sent)."""
    status, headers, _ = https(instance, "GET", "/page/openid/begin")
    assert status == 303, headers
    return {"Cookie": f"{COOKIE}={cookies(headers)[COOKIE].value}"}, headers["Location"]


def come_back(instance, cookie, url):
    """(where the browser is sent, the cookies that it gets)."""
    parts = urllib.parse.urlsplit(url)
    status, headers, body = https(instance, "GET", f"{parts.path}?{parts.query}", cookie)
    assert status == 303 and body == b"" and headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    assert cookies(headers)[COOKIE]["max-age"] == "0"
    return headers["Location"], cookies(headers)


def sign_in(instance, provider):
    """The cookie of a session, or the word with which the browser is sent back."""
    cookie, url = begin(instance)
    if not url.startswith(provider.issuer):
        return url
    where, given = come_back(instance, cookie, provider.authorize(url))
    if where != "/":
        assert SESSION not in given
        return where
    return {"Cookie": f"{SESSION}={given[SESSION].value}"}


def you(instance, look):
    return json.loads(https(instance, "GET", "/page/session", look)[2])


# ---- the flow ---------------------------------------------------------------------------------------------------


def test_a_user_signs_in_and_out(served, provider):
    status, headers, _ = https(served, "GET", "/page/openid/begin")
    kept = cookies(headers)[COOKIE]
    assert status == 303 and kept["httponly"] and kept["secure"] and kept["samesite"] == "Lax" and kept["path"] == "/" and kept["max-age"] == "600"
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(headers["Location"]).query))
    assert headers["Location"].startswith(f"{provider.issuer}/auth?") and asked["scope"] == "openid profile email"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"], kept.value}) == 4 and kept.value not in headers["Location"]
    where, given = come_back(served, {"Cookie": f"{COOKIE}={kept.value}"}, provider.authorize(headers["Location"]))
    session = given[SESSION]
    assert where == "/" and session["httponly"] and session["secure"] and session["samesite"] == "Strict" and not session["domain"]
    look = {"Cookie": f"{SESSION}={session.value}"}
    told = you(served, look)
    assert told["you"] == "ann@lab" and told["role"] == "user" and "eyJ" not in json.dumps(told)
    listed = [t for t in served.json("token", "list")["tokens"] if t["name"] == "ann@lab"]
    assert [t["created_by"] for t in listed] == [f"openid:{provider.issuer}"] and listed[0]["role"] == "user"
    assert https(served, "GET", "/v1/requests", look)[0] == 200
    change = {**look, "X-Drover-Csrf": told["csrf"]}
    assert https(served, "POST", "/v1/actions", look, {"action": "hold", "ids": ["1"]})[0] == 403
    assert https(served, "DELETE", "/page/session", change)[0] == 200
    assert https(served, "GET", "/v1/requests", look)[0] == 401
    assert not [t for t in served.json("token", "list")["tokens"] if t["name"] == "ann@lab"]


def test_an_admin_ends_a_session(served, provider):
    look = sign_in(served, provider)
    token = next(t for t in served.json("token", "list")["tokens"] if t["name"] == "ann@lab")
    served.cli("token", "revoke", token["id"])
    assert https(served, "GET", "/v1/requests", look)[0] == 401


def test_ways_in(served, provider):
    sign_in(served, provider)
    told = json.loads(https(served, "GET", "/page/sign-in")[2])["openid"]
    assert told["name"] == "Example Lab" and told["sign_out"].startswith(f"{provider.issuer}/logout?x=1&client_id=drover&post_logout_redirect_uri=https%3A%2F%2F127")


def test_off_until_it_is_switched_on(instance):
    with_page(instance, agent=False)
    assert json.loads(https(instance, "GET", "/page/sign-in")[2]) == {"openid": None}
    for path in ("begin", "callback?code=1&state=2"):
        assert https(instance, "GET", f"/page/openid/{path}")[0] == 404


def test_a_real_provider(instance, tmp_path):
    """glewlwyd, from its document to its token."""
    instance.port = free_port()
    sso = Glewlwyd(str(tmp_path / "sso"), f"https://127.0.0.1:{instance.port}/page/openid/callback")
    try:
        os.makedirs(instance.dir, mode=0o700)
        secret = instance.write("secret", "s3cret", 0o600)
        instance.write(f"{instance.dir}/droverd.yaml", f"page: yes\nopenid: {{issuer: {sso.issuer}, address: 'https://127.0.0.1:{instance.port}', client_id: drover, "
                       f"client_secret_file: {secret}, ca_file: {sso.authority.file}, user_domain: lab, allow: {{email: ann@lab.example, preferred_username: ann}}}}\n")
        instance.server("--api-listen", f"127.0.0.1:{instance.port}")
        assert sign_in(instance, sso) == "/#/not-signed-in/not-allowed"  # it does not say that the address is verified
        instance.daemons.pop().stop()
        instance.write(f"{instance.dir}/droverd.yaml", texts(f"{instance.dir}/droverd.yaml").replace("email: ann@lab.example, ", ""))
        instance.server("--api-listen", f"127.0.0.1:{instance.port}")
        look = sign_in(instance, sso)
        assert you(instance, look)["you"] == "ann@lab" and https(instance, "GET", "/v1/requests", look)[0] == 200
        cookie, _ = begin(instance)
        assert come_back(instance, cookie, sso.authorize(begin(instance)[1]))[0] == "/#/not-signed-in/stale"
    finally:
        sso.stop()


# ---- what a browser brings --------------------------------------------------------------------------------------


def test_a_state_is_good_once_and_in_one_browser(served, provider):
    cookie, url = begin(served)
    other, _ = begin(served)
    back = provider.authorize(url)
    state = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(back).query))["state"]
    asked = len(provider.asked)
    until, mark = state.split(".")
    for changed in (f"{int(until, 16) + 60:x}.{mark}", f"{until}.{mark[:-1]}{'0' if mark[-1] != '0' else '1'}", f"{until}.", until, "", "x.y", "1." + mark, "." + mark, "%01", "f" * 3000):
        assert come_back(served, cookie, f"/page/openid/callback?code=1&state={changed}")[0] == "/#/not-signed-in/stale"
    for theirs in ({}, other, {"Cookie": f"{COOKIE}=x"}, {"Cookie": f"{COOKIE}="}, {"Cookie": f"x{cookie['Cookie']}"}):
        assert come_back(served, theirs, back)[0] == "/#/not-signed-in/stale"
    assert len(provider.asked) == asked  # for none of these the provider was asked
    assert come_back(served, cookie, back)[0] == "/"
    assert come_back(served, cookie, back)[0] == "/#/not-signed-in/stale"
    assert come_back(served, cookie, provider.authorize(url))[0] == "/#/not-signed-in/stale"


def test_what_comes_beside_the_state(served, provider):
    for more, word in (("", "denied"), ("&code=", "denied"), ("&error=access_denied&error_description=<script>", "denied"), ("&code=" + "x" * 3073, "denied"),
                       ("&code=x&iss=https://evil.example", "untrusted"), ("&code=made-up", "untrusted"), ("&code=a%0d%0aX-Evil:%201", "untrusted")):
        cookie, url = begin(served)
        state = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))["state"]
        where, given = come_back(served, cookie, f"/page/openid/callback?state={state}{more}")
        assert (where, SESSION in given) == (f"/#/not-signed-in/{word}", False), more


def test_nobody_says_where_the_browser_goes_then(served, provider):
    for more in ("redirect_uri=https://evil.example", "next=//evil.example", "return_to=https://evil.example", "RelayState=https://evil.example"):
        status, headers, _ = https(served, "GET", f"/page/openid/begin?{more}")
        assert status == 303 and headers["Location"].startswith(provider.issuer) and "evil" not in headers["Location"]
        cookie = {"Cookie": f"{COOKIE}={cookies(headers)[COOKIE].value}"}
        assert come_back(served, cookie, provider.authorize(headers["Location"]) + f"&{more}")[0] == "/"


def test_the_session_that_a_browser_had_is_not_taken_over(served, provider):
    """A cookie that somebody has put there does not become a session."""
    cookie, url = begin(served)
    planted = "0" * 64
    _, given = come_back(served, {"Cookie": f"{cookie['Cookie']}; {SESSION}={planted}"}, provider.authorize(url))
    assert given[SESSION].value != planted
    assert https(served, "GET", "/v1/requests", {"Cookie": f"{SESSION}={planted}"})[0] == 401


# ---- what the provider says -------------------------------------------------------------------------------------


def hs256(provider, claims, secret):
    text = ".".join(base64url(json.dumps(p).encode()) for p in ({"alg": "HS256", "kid": provider.key.kid}, claims))
    return f"{text}.{base64url(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def unsigned(claims, alg):
    return f"{base64url(json.dumps({'alg': alg}).encode())}.{base64url(json.dumps(claims).encode())}."


def other_claims(provider, claims):
    """The claims of one token with the signature of another."""
    head, _, signature = provider.key.token(claims).split(".")
    return f"{head}.{base64url(json.dumps({**claims, 'preferred_username': 'eve'}).encode())}.{signature}"


@functools.lru_cache
def key_of_eve(folder):
    return Key(folder, "eve")


TOKENS = {
    "of another key by the same name": lambda p, c: key_of_eve(p.folder).token(c, kid="first"),
    "with the key in its head": lambda p, c: key_of_eve(p.folder).token(c, kid="first", jwk=key_of_eve(p.folder).jwk()),
    "with other claims": other_claims,
    "alg none": lambda p, c: unsigned(c, "none"),
    "alg NONE": lambda p, c: unsigned(c, "NONE"),
    "HS256 with the public key": lambda p, c: hs256(p, c, p.key.pem()),
    "HS256 with the client's secret": lambda p, c: hs256(p, c, p.secret.encode()),
    "of a key that is not published": lambda p, c: key_of_eve(p.folder).token(c),
    "of an extension": lambda p, c: p.key.token(c, crit=["exp"]),
    "of another issuer": lambda p, c: p.key.token({**c, "iss": "https://evil.example"}),
    "for another client": lambda p, c: p.key.token({**c, "aud": "other"}),
    "for two clients": lambda p, c: p.key.token({**c, "aud": ["other", "drover"]}),
    "issued to another client": lambda p, c: p.key.token({**c, "azp": "other"}),
    "of another sign-in": lambda p, c: p.key.token({**c, "nonce": "0" * 64}),
    "without a nonce": lambda p, c: p.key.token({k: v for k, v in c.items() if k != "nonce"}),
    "expired": lambda p, c: p.key.token({**c, "iat": c["iat"] - 200, "exp": c["iat"] - 100}),
    "of the future": lambda p, c: p.key.token({**c, "iat": c["iat"] + 600, "exp": c["iat"] + 900}),
    "of yesterday": lambda p, c: p.key.token({**c, "iat": c["iat"] - 86400}),
    "without an end": lambda p, c: p.key.token({k: v for k, v in c.items() if k != "exp"}),
    "without a subject": lambda p, c: p.key.token({k: v for k, v in c.items() if k != "sub"}),
    "of 70 kB": lambda p, c: p.key.token({**c, "picture": "x" * 70000}),
    "no token": lambda p, c: "nonsense",
    "empty": lambda p, c: "",
    "a number": lambda p, c: 7,
}


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_that_are_not_believed(served, provider, name):
    provider.token = lambda claims: TOKENS[name](provider, claims)
    assert sign_in(served, provider) == "/#/not-signed-in/untrusted"


def test_keys_of_both_kinds_that_change(served, provider):
    assert "Cookie" in sign_in(served, provider)
    before = provider.asked.count("/realm/keys")
    assert "Cookie" in sign_in(served, provider)
    assert provider.asked.count("/realm/keys") == before  # they are kept
    second = Key(provider.folder, "second", "ES256")
    provider.keys, provider.token = [second], second.token
    assert "Cookie" in sign_in(served, provider)
    provider.token = provider.key.token  # of the key that is not published any more
    assert sign_in(served, provider) == "/#/not-signed-in/untrusted"
    provider.keys, provider.token = [{"kty": "oct", "k": base64url(b"x" * 32), "kid": "first"}, {"kty": 7}, provider.key], None
    assert "Cookie" in sign_in(served, provider)


def test_answers_that_are_none(served, provider):
    huge = json.dumps({"keys": [], "x": "x" * 300000})
    deep = "[" * 100000
    for path, word in (("/realm/token", "untrusted"), ("/realm/keys", "provider")):
        for status, text in ((200, huge), (200, deep), (200, "nonsense"), (200, ""), (200, "[]"), (500, "<h1>x</h1>"), (302, "")):
            third = Key(provider.folder, "third", "ES256")  # so that the keys are asked for
            provider.token, provider.said = third.token, {path: (status, {"Location": "file:///etc/passwd"}, text)}
            assert sign_in(served, provider) in (f"/#/not-signed-in/{word}", "/#/not-signed-in/provider"), (path, text[:20])
    provider.said = {"/realm/token": (400, {}, '{"error": "invalid_grant", "error_description": "\\u001b]0;evil\\u0007\\n2026-01-01 fake=line"}')}
    time.sleep(1.1)  # a line a second at most is written
    assert sign_in(served, provider) == "/#/not-signed-in/untrusted"
    log = served.daemons[0].output()
    assert "invalid_grant" in log and "\x1b" not in log and "\n2026-01-01 fake" not in log
    provider.reset()
    assert "Cookie" in sign_in(served, provider)


@pytest.mark.parametrize("change, word", [
    ({"issuer": "https://evil.example"}, "untrusted"), ({"token_endpoint": "http://localhost/token"}, "provider"), ({"jwks_uri": "file:///etc/passwd"}, "provider"),
    ({"authorization_endpoint": "javascript:alert(1)"}, "provider"), ({"authorization_endpoint": "https://a.example/\r\nX: 1"}, "provider"),
    ({"authorization_endpoint": None}, "provider"), ({"token_endpoint": "https://user@evil.example/"}, "provider"), ({"token_endpoint": 7}, "provider"),
    ({"x": "x" * 300000}, "provider")])
def test_documents_that_are_not_believed(instance, provider, change, word):
    start(instance, provider, *ADMITTED)
    provider.document = change
    assert sign_in(instance, provider) == f"/#/not-signed-in/{word}"
    provider.document = {}
    assert "Cookie" in sign_in(instance, provider)


def test_a_provider_that_does_not_answer(instance, provider):
    """Others go on, and so many sign-ins wait, of which no address has all."""
    start(instance, provider, *ADMITTED)
    provider.gate.clear()
    told = []

    def begins(source):
        told.append(https(instance, "GET", "/page/openid/begin", source=source)[1]["Location"])

    waiting = [threading.Thread(target=begins, args=("127.0.0.1",)) for _ in range(70)]
    for t in waiting:
        t.start()
    wait_until(lambda: told.count("/#/not-signed-in/busy") == 38)
    waiting.append(threading.Thread(target=begins, args=("127.0.0.2",)))
    waiting[-1].start()
    assert instance.json("token", "list")["tokens"] == [] and https(instance, "GET", "/")[0] == 200
    provider.gate.set()
    for t in waiting:
        t.join(LIMIT)
    assert len([t for t in told if t.startswith(provider.issuer)]) == 33 and len(told) == 71
    assert provider.asked.count("/realm/.well-known/openid-configuration") == 1
    provider.gate.clear()  # a server that is stopped does not wait for it
    cookie, url = begin(instance)
    back = urllib.parse.urlsplit(provider.authorize(url))
    asked = threading.Thread(target=lambda: pytest.raises(OSError, https, instance, "GET", f"{back.path}?{back.query}", cookie))
    asked.start()
    wait_until(lambda: "/realm/token" in provider.asked)
    instance.daemons[-1].stop()
    instance.daemons.pop()
    asked.join(LIMIT)


def test_a_provider_of_another_authority(instance, provider, tmp_path):
    other = Provider(str(tmp_path))
    try:
        other.authority = provider.authority
        start(instance, other, *ADMITTED)
        assert https(instance, "GET", "/page/openid/begin")[1]["Location"] == "/#/not-signed-in/provider"
        assert "certificate" in instance.daemons[0].output()
    finally:
        other.stop()


# ---- who is who -------------------------------------------------------------------------------------------------


def test_whom_the_settings_admit(served, provider):
    for claims in ({"groups": ["users"]}, {"groups": None}, {"groups": "Drover"}, {"groups": {"drover": 1}}, {"preferred_username": None},
                   {"preferred_username": "a b"}, {"preferred_username": "../x"}, {"preferred_username": "x" * 65}, {"preferred_username": ""}, {"preferred_username": 7},
                   {"preferred_username": "bob@elsewhere"}):
        provider.claims = claims
        assert sign_in(served, provider) == "/#/not-signed-in/not-allowed", claims
    provider.claims = {"groups": "drover", "preferred_username": "bob"}
    assert you(served, sign_in(served, provider))["you"] == "bob@lab"


def test_nobody_becomes_root_or_the_server(instance, provider):
    start(instance, provider, "user_domain: local", "allow: everybody", "role: admin")
    own = instance.json("token", "user")["id"]
    me = next(t["name"] for t in instance.json("token", "list")["tokens"] if t["id"] == own)
    for name in {"root", me.split("@")[0]}:
        provider.claims = {"preferred_username": name}
        assert sign_in(instance, provider) == "/#/not-signed-in/not-allowed"
    provider.claims = {"preferred_username": "ann"}
    assert you(instance, sign_in(instance, provider))["role"] == "user"  # role is the highest, and ann has no higher one here


def test_users_by_their_verified_address(instance, provider):
    start(instance, provider, "user_claim: email", "user_suffix: '@lab.example'", "user_domain: lab", "allow: everybody", "session: 1h", "userinfo: yes")
    provider.userinfo = {"email": "ann@lab.example", "email_verified": True, "nonce": "x", "iss": "https://evil.example"}
    told = you(instance, sign_in(instance, provider))
    assert told["you"] == "ann@lab" and 0 < told["expires_ms"] / 1000 - time.time() <= 3600
    provider.userinfo["email_verified"] = False
    assert sign_in(instance, provider) == "/#/not-signed-in/not-allowed"
    provider.userinfo = {"email": "ann@evil.example", "email_verified": True}
    assert sign_in(instance, provider) == "/#/not-signed-in/not-allowed"
    provider.userinfo = {"email": "ann@lab.example", "email_verified": True, "sub": "4712"}
    assert sign_in(instance, provider) == "/#/not-signed-in/untrusted"
    provider.claims, provider.userinfo = {"email": "bob@lab.example", "email_verified": True}, {"email": "eve@lab.example"}
    assert you(instance, sign_in(instance, provider))["you"] == "bob@lab"  # the token's own claims count


# ---- settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change, told", [
    ({"issuer": "http://sso.example"}, "issuer must be an https URL"), ({"issuer": None}, "needs issuer"), ({"client_id": None}, "needs client_id"),
    ({"address": "https://a.example/drover"}, "without a path"), ({"allow": None}, "needs allow"), ({"allow": "[drover]"}, "needs allow"), ({"user_domain": None}, "needs user_domain"),
    ({"user_domain": "'@'"}, "domain of users"), ({"role": "root"}, "must be user, operator or admin"), ({"client_secret_file": "secret"}, "begins with /"), ({"scope": "x"}, "scope")])
def test_settings_that_cannot_be_meant(instance, change, told):
    settings = {"issuer": "https://sso.example", "address": "https://a.example:7332", "client_id": "x", "user_domain": "lab", "allow": "everybody", **change}
    path = instance.write("droverd.yaml", "page: yes\napi_listen: 127.0.0.1:1\nopenid:\n" + "".join(f"  {k}: {v}\n" for k, v in settings.items() if v is not None))
    result = instance.cli("config", "check", path, code=2)
    assert told in result.out + result.err, result.err


def test_a_secret_that_others_may_read(instance, provider):
    os.makedirs(instance.dir, mode=0o700)
    instance.write(f"{instance.dir}/droverd.yaml", "\n".join(["page: yes", *provider.settings(1, *ADMITTED), ""]))
    os.chmod(os.path.join(provider.folder, "secret"), 0o644)
    daemon = instance.start("droverd", "--dir", instance.dir, "--api-listen", f"127.0.0.1:{free_port()}")
    wait_until(lambda: not daemon.running())
    assert "client_secret_file" in daemon.output() and "secret" in daemon.output()
    instance.daemons.remove(daemon)


# ---- in a browser -----------------------------------------------------------------------------------------------


def test_in_chromium(served, provider):
    with chromium(served) as window:
        page = Page(served, window)
        page.open()
        page.shows("Sign in with Example Lab", "#sign-in-openid")
        page.click("#sign-in-openid")
        page.click("form button")  # of the provider, whose host is another
        page.there("#sign-out")
        page.shows("ann@lab", ".you")
        page.shows("Overview", "h1")
        assert window.current_url == page.url and page.script("return document.cookie") == ""
        window.refresh()
        page.click("#sign-out")
        page.shows("sign out of Example Lab", "main")
        page.click("main a[href^=https]")
        page.shows("signed out of the lab")
        page.open()
        provider.claims = {"groups": []}
        page.click("#sign-in-openid")
        page.click("form button")
        page.shows("do not admit you", "#sign-in-error")
        assert window.current_url == page.url
        page.go("#/not-signed-in/constructor")
        page.shows("does not answer as it should", "#sign-in-error")
