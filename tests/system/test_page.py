"""The web page: what the server sends of it, and what it does in a real Chromium."""
import base64
import http.cookies
import json
import os
import re

import hops
import pytest
from browser import Page, chromium, https, with_page
from drover import free_port, made, sh, wait_until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from stores import Nginx

COOKIE = "__Host-drover"
VIEWS = ("overview", "requests", "jobs", "submit", "places", "data", "shares")


def token_of(instance, *more):
    return instance.json("token", "user", *more)["token"]


def sign_in(instance, token):
    """(headers with the cookie, the same with the session's second secret)."""
    status, headers, body = https(instance, "POST", "/page/session", {"Authorization": f"Bearer {token}"})
    assert status == 201, body
    cookie = http.cookies.SimpleCookie(headers["Set-Cookie"])[COOKIE]
    look = {"Cookie": f"other=1; {COOKIE}={cookie.value}"}
    return look, {**look, "X-Drover-Csrf": json.loads(body)["csrf"]}


# ---- without a browser ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(request):
    """An instance with the page that the tests share; none of them may stop it."""
    with made(request, "p-") as one:
        yield with_page(one)


def test_a_page_that_is_off_says_so(instance):
    instance.port = free_port()
    instance.server("--api-listen", f"127.0.0.1:{instance.port}")
    assert "`page: yes` in droverd.yaml turns it on" in https(instance, "GET", "/")[2].decode()


def test_off_until_it_is_switched_on(instance):
    instance.port = free_port()
    instance.server("--api-listen", f"127.0.0.1:{instance.port}")
    token = token_of(instance)
    for path in ("/", "/page/app.js", "/page/session"):
        assert https(instance, "GET", path)[0] == 404
    assert https(instance, "POST", "/page/session", {"Authorization": f"Bearer {token}"})[0] == 404
    assert https(instance, "GET", "/v1/server", {"Cookie": f"{COOKIE}=" + "0" * 64})[0] == 401


def test_a_setting_that_is_no_yes_or_no(instance):
    os.makedirs(instance.dir, mode=0o700)
    instance.write(f"{instance.dir}/droverd.yaml", "page: perhaps\n")
    daemon = instance.start("droverd", "--dir", instance.dir)
    wait_until(lambda: not daemon.running())
    assert "droverd.yaml:1: page" in daemon.output()
    instance.daemons.remove(daemon)


def test_files_have_strict_headers_and_strict_names(served):
    for path, kind in (("/", "text/html"), ("/page/index.html", "text/html"), ("/page/app.js", "text/javascript"),
                       ("/page/style.css", "text/css"), ("/page/icon.svg", "image/svg+xml")):
        status, headers, body = https(served, "GET", path)
        assert status == 200 and headers["Content-Type"].startswith(kind) and body
        policy = headers["Content-Security-Policy"]
        for word in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
                     "form-action 'none'", "require-trusted-types-for 'script'"):
            assert word in policy
        assert "unsafe" not in policy and "http" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert https(served, "GET", path, {"If-None-Match": headers["ETag"]})[0] == 304
        assert https(served, "GET", path, {"If-None-Match": '"other"'})[2] == body
    assert b"<script>" not in https(served, "GET", "/")[2] and b"style=" not in https(served, "GET", "/")[2]
    for path in ("/page/", "/page", "/page/nothing.js", "/page/../droverd.yaml", "/page/%2e%2e%2fdroverd.yaml", "/page/app.js/", "/page//app.js",
                 "/page/app.js%00", "/page/..%2f..%2fetc%2fpasswd", "//", "/page/APP.JS"):
        assert https(served, "GET", path)[0] in (400, 404), path
    assert https(served, "POST", "/page/app.js")[0] == 405


def test_the_unix_socket_has_no_page(served):
    assert served.call("GET", "/")[0] == 404
    assert served.call("POST", "/page/session", {})[0] == 404


def test_a_token_becomes_a_cookie(served):
    token = token_of(served, "--expires", "1h")
    status, headers, body = https(served, "POST", "/page/session", {"Authorization": f"Bearer {token}"})
    assert status == 201 and headers["Cache-Control"] == "no-store"
    cookie = http.cookies.SimpleCookie(headers["Set-Cookie"])[COOKIE]
    assert cookie["httponly"] and cookie["secure"] and cookie["samesite"] == "Strict" and cookie["path"] == "/" and not cookie["domain"]
    told = json.loads(body)
    assert told["role"] == "user" and told["you"].endswith("@local") and token not in body.decode() and cookie.value not in body.decode()
    assert cookie.value not in token and told["csrf"] != cookie.value
    look = {"Cookie": f"{COOKIE}={cookie.value}"}
    assert json.loads(https(served, "GET", "/v1/server", look)[2])["you"] == told["you"]
    assert json.loads(https(served, "GET", "/page/session", look)[2])["csrf"] == told["csrf"]
    # The cookie is no token, and a token no cookie.
    assert https(served, "GET", "/v1/server", {"Authorization": f"Bearer {cookie.value}"})[0] == 401
    assert https(served, "GET", "/v1/server", {"Cookie": f"{COOKIE}={token}"})[0] == 401
    assert https(served, "GET", "/v1/server", {"Cookie": f"drover={cookie.value}; x{COOKIE}={cookie.value}"})[0] == 401


@pytest.mark.parametrize("bad", ["", "Bearer", "Bearer x", "Bearer drover-user-token.v1." + "0" * 64 + "." + "1" * 16 + "." + "2" * 64,
                                 "Basic cm9vdDo="])
def test_nothing_else_opens_a_session(served, bad):
    status, headers, _ = https(served, "POST", "/page/session", {"Authorization": bad} if bad else {})
    assert status == 401 and "Set-Cookie" not in headers


def test_an_agents_token_opens_no_session(served):
    token = served.json("token", "agent", "--name", "x")["token"]
    assert https(served, "POST", "/page/session", {"Authorization": f"Bearer {token}"})[0] == 401


def test_a_session_opens_no_session(served):
    _, change = sign_in(served, token_of(served))
    status, headers, _ = https(served, "POST", "/page/session", change)
    assert status == 401 and "Set-Cookie" not in headers


def test_a_change_needs_the_second_secret(served):
    look, change = sign_in(served, token_of(served))
    request = str(served.submit(sh("true"), "--hold"))
    body = {"action": "remove", "ids": [request]}
    _, other = sign_in(served, token_of(served))
    for headers in (look, {**look, "X-Drover-Csrf": ""}, {**look, "X-Drover-Csrf": "0" * 64}, {**look, "X-Drover-Csrf": other["X-Drover-Csrf"]}):
        for method, path in (("POST", "/v1/actions"), ("DELETE", "/page/session"), ("POST", "/v1/requests"), ("PUT", "/v1/credentials/x"), ("DELETE", "/v1/tokens/0")):
            status, _, answer = https(served, method, path, headers, body if path == "/v1/actions" else None)
            assert status == 403 and json.loads(answer)["error"]["code"] == "csrf", (method, path)
    assert served.job(f"{request}.0")["state"] == "held"
    assert https(served, "POST", "/v1/actions", change, body)[0] == 200
    assert served.job(f"{request}.0")["state"] == "removed"


def test_a_session_ends(served):
    made_ = served.json("token", "user")
    look, change = sign_in(served, made_["token"])
    again, _ = sign_in(served, made_["token"])
    status, headers, _ = https(served, "DELETE", "/page/session", change)
    assert status == 200 and "Max-Age=0" in headers["Set-Cookie"]
    assert https(served, "GET", "/v1/server", look)[0] == 401
    assert https(served, "GET", "/v1/server", again)[0] == 200
    served.cli("token", "revoke", made_["id"])
    assert https(served, "GET", "/v1/server", again)[0] == 401


def test_a_session_ends_with_its_token(served):
    look, _ = sign_in(served, token_of(served, "--expires", "2s"))
    wait_until(lambda: https(served, "GET", "/v1/server", look)[0] == 401)


def test_a_users_seventeenth_session_ends_the_first(served):
    token = token_of(served, "--name", "many")
    looks = [sign_in(served, token)[0] for _ in range(17)]
    assert https(served, "GET", "/v1/server", looks[0])[0] == 401
    assert all(https(served, "GET", "/v1/server", look)[0] == 200 for look in looks[1:])


def test_a_session_has_its_tokens_rights(served):
    look, change = sign_in(served, token_of(served, "--name", "guest"))
    request = served.submit(sh("true"), "--hold")
    assert https(served, "GET", f"/v1/requests/{request}", look)[0] == 404
    assert https(served, "POST", "/v1/agents/x/drain", change, {})[0] == 403
    assert https(served, "POST", "/v1/tokens", change, {"kind": "agent", "name": "evil"})[0] == 403
    served.cli("rm", str(request))


def test_what_jobs_wrote_is_never_a_page(served):
    request = served.run(sh("echo '<script>document.title=1</script>' > evil.html", transfer_output_files="evil.html", should_transfer_files="YES"))
    look, _ = sign_in(served, token_of(served))
    for path, kind in ((f"/v1/jobs/{request}.0/files/evil.html", "application/octet-stream"), (f"/v1/jobs/{request}.0", "application/json"),
                       (f"/v1/jobs/{request}.0/files/none", "application/json"), ("/metrics", "text/plain")):
        _, headers, _ = https(served, "GET", path, look)
        assert headers["Content-Type"].startswith(kind) and headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in headers["Content-Security-Policy"] and headers["Cache-Control"] == "no-store"
    assert https(served, "GET", "/v1/<script>", look)[1]["Content-Type"] == "application/json"


# ---- in a browser -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def window(served):
    with chromium(served) as driver:
        yield driver


@pytest.fixture
def page(served, window):
    """Signed in as an admin."""
    window.delete_all_cookies()
    one = Page(served, window)
    one.size(1280, 900)
    one.sign_in(token_of(served, "--role", "admin"))
    return one


def test_sign_in_and_out(served, window):
    page = Page(served, window)
    window.delete_all_cookies()
    page.open()
    page.there("#token")
    page.fill("#token", "drover-user-token.v1.wrong")
    page.click("form button")
    page.shows("this token is not valid", "#sign-in-error")
    token = token_of(served)
    page.fill("#token", token)
    page.click("form button")
    page.there("#sign-out")
    page.shows("Overview", "h1")
    kept = page.script("return document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
    assert kept == "{}{}" and token not in window.page_source
    window.refresh()  # the cookie is enough
    page.click("#sign-out")
    page.there("#token")
    assert page.fetch("GET", "/v1/server")[0] == 401
    page.go("#main")  # where "Skip to the content" leads
    window.refresh()
    page.there("#token")


def test_a_revoked_token_ends_the_page(served, window):
    page = Page(served, window)
    made_ = served.json("token", "user")
    window.delete_all_cookies()
    page.sign_in(made_["token"])
    served.cli("token", "revoke", made_["id"])
    page.go("#/requests")
    page.shows("The session is over", "main")


def test_scripts_of_the_page_need_the_second_secret_too(served, page):
    request = served.submit(sh("true"), "--hold")
    body = json.dumps({"action": "remove", "ids": [str(request)]})
    status, text = page.fetch("POST", "/v1/actions", {"Content-Type": "application/json"}, body)
    assert status == 403 and "csrf" in text and served.job(f"{request}.0")["state"] == "held"
    served.cli("rm", str(request))


def test_requests_are_listed_live(served, page):
    page.go("#/requests")
    page.shows("Requests", "h1")
    request = served.submit(sh("true", batch_name="comes later", queue="queue 4"), "--hold")
    page.shows("comes later", "table")
    page.shows("4 held", "table")
    served.cli("release", str(request))
    served.wait(request)
    page.until(lambda: "comes later" not in page.text("main"))
    page.click("#finished")
    page.shows("comes later", "table")


def test_jobs_are_filtered_sorted_and_paged(served, page):
    request = served.submit(sh("true", queue="queue 250"), "--hold")
    page.go(f"#/jobs?state=held&id={request}")
    page.shows(f"{request}.99", "table")
    assert len(page.all("tbody tr")) == 100 and page.text(".pager").startswith("‹ Back")
    page.click(".pager button:last-of-type")
    page.shows(f"{request}.100", "table")
    page.click(".pager button:last-of-type")
    page.until(lambda: len(page.all("tbody tr")) == 50)
    page.click(".pager button:first-child")
    page.shows(f"{request}.199", "table")
    page.click("th:nth-child(2) button")
    page.click("th:nth-child(2) button")
    page.until(lambda: page.all("tbody tr")[0].text.startswith(f"{request}.199"))
    page.fill("#constraint", "ProcId == 42")
    page.click(".filter button")
    page.until(lambda: [r.text.split()[0] for r in page.all("tbody tr")] == [f"{request}.42"])
    page.fill("#constraint", "ProcId ==")
    page.click(".filter button")
    page.there(".note.error")
    served.cli("rm", str(request))


def test_ten_thousand_rows_on_a_page(served, page):
    """Only the rows that are seen, and those around them, are in the document; each is reached by scrolling, sorting, and with its mark."""
    request = served.submit(sh("true", queue="queue 10000"), "--hold")
    page.go(f"#/jobs?state=held&id={request}")
    page.shows(f"{request}.99", "table")
    page.script("const s = document.querySelector('.pager select'); s.value = '10000'; s.dispatchEvent(new Event('change'))")
    page.until(lambda: page.there("table").get_attribute("aria-rowcount") == "10001")

    def rows():
        return page.script("return [...document.querySelectorAll('tbody tr:not(.gap)')].map(r => r.querySelector('.id').textContent)")
    assert rows()[0] == f"{request}.0" and len(rows()) < 300
    whole = page.script("return document.documentElement.scrollHeight")
    assert whole > 10000 * 20
    for part, number in ((0.5, 5000), (1, 9999), (0, 0), (0.25, 2500)):
        def there(part=part, number=number):
            page.script(f"window.scrollTo(0, {part} * document.documentElement.scrollHeight)")
            seen = page.script("""return [...document.querySelectorAll('tbody tr:not(.gap)')].filter(r => { const b = r.getBoundingClientRect();
                return b.bottom > 0 && b.top < innerHeight; }).map(r => r.querySelector('.id').textContent)""")
            return seen and min(abs(int(s.split(".")[1]) - number) for s in seen) < 60 and len(rows()) < 300
        page.until(there)
    page.script("window.scrollTo(0, 0)")
    page.click("th:nth-child(2) button")
    page.click("th:nth-child(2) button")
    page.until(lambda: rows()[0] == f"{request}.9999")
    page.click("thead input[type=checkbox]")
    page.shows("10,000 marked", ".bar")
    page.script("window.scrollTo(0, document.documentElement.scrollHeight)")
    page.until(lambda: rows()[-1] == f"{request}.0" and page.script(
        "return [...document.querySelectorAll('tbody tr:not(.gap) input')].every(b => b.checked)"))
    page.fill("#constraint", "ProcId == 42")
    page.click(".filter button")
    page.until(lambda: rows() == [f"{request}.42"] and not page.all(".gap"))
    served.cli("rm", str(request))


def test_a_job_tells_why_and_what_it_prints(served, page):
    waits = served.submit(sh("true", requirements='Arch == "PDP11"'))
    page.go(f"#/jobs/{waits}.0")
    page.shows("PDP11", "section[aria-label=Why]")
    page.shows("Nothing is printed yet", "section[aria-label=Output]")
    request = served.submit(sh("echo first; while [ ! -e go ]; do sleep 0.1; done; echo second; echo wrong >&2; exit 3", initialdir=served.work))
    page.go(f"#/jobs/{request}.0")
    page.shows("first", "#out-stdout")
    assert "second" not in page.text("#out-stdout")
    served.write("go", "")
    page.shows("second", "#out-stdout")
    page.shows("wrong", "#out-stderr")
    page.shows("failed", ".state-line")
    page.shows("exit 3", "section[aria-label='What happened']")
    page.shows("completed", "section[aria-label=Where]")
    served.cli("rm", str(waits))


def test_a_job_says_what_it_waits_for(served, page):
    first = served.submit(sh("true"), "--hold")
    second = served.submit(sh("true"), "--after", str(first))
    page.go(f"#/jobs?id={second}")
    page.shows(f"waits for request {first}", "table")
    assert "waits for waits for" not in page.text("table")
    served.cli("rm", str(second), str(first))


def test_a_job_shows_what_it_uses(served, page):
    """Processors and memory are drawn from when the page was opened; an answer has them, too."""
    go = os.path.join(served.work, "enough")
    request = served.submit(sh(f"x=$(head -c 30000000 /dev/zero | tr '\\0' x); while [ ! -e {go} ]; do :; done", request_memory="200 MB"))
    served.wait_state(f"{request}.0", "running")
    used = wait_until(lambda: (u := served.api("GET", f"/v1/jobs/{request}.0/output?timeout_ms=100").get("used")) and u["memory_bytes"] > 30e6 and u["cpu_ms"] and u)
    assert used["memory_bytes"] < 200e6
    page.go(f"#/jobs?id={request}")
    page.click("table a[href*='jobs/']")
    page.shows("Processors in use", ".charts", 120)
    page.shows("Memory in use, MiB", ".charts")
    assert all(d.text for d in page.all(".facts dd")) and "Start expected" not in page.text(".facts")
    page.until(lambda: 0 < float(re.search(r"used ([0-9.]+) now", page.there(".charts svg[role=img]").get_attribute("aria-label"))[1]) < 1.5)
    served.write("enough", "")
    served.wait(request)


def test_a_job_says_what_places_cost_and_what_goes_before_it(served, page):
    first = served.submit(sh("true", priority="3", requirements="TARGET.Never isnt undefined"))
    busy = served.submit(sh("sleep 30", queue="queue 20"))
    waits = f"{busy}.19"
    page.go(f"#/jobs/{waits}")
    page.click("summary")
    for element in page.all("details summary"):
        if element.text in ("Cost at each place", "Its place in the order"):
            element.click()
    page.shows("fair share", "section[aria-label=Why]")
    page.shows("jobs go before it", "section[aria-label=Why]")
    page.shows("In all", "section[aria-label=Why]")
    served.cli("rm", str(first), str(busy))


def test_accounts_in_the_bank(served, page):
    waits = served.submit(sh("true", requirements='Arch == "PDP11"'))
    page.go("#/shares")
    page.shows("Accounts and users")
    assert "credits" not in page.text()
    served.cli("bank", "account", "lab", "--new", "--member", "*@local=user")
    served.cli("bank", "deposit", "lab", "1250")
    page.shows("Accounts in the bank, in credits")
    page.shows("1,250")
    page.shows("in credit")
    served.cli("rm", str(waits))


def test_stores_links_and_limits(instance):
    """What is measured of a store, one that does not answer, and who has the units of a limit."""
    web, dead = Nginx(os.path.join(instance.base, "web")), free_port()
    try:
        with_page(instance, f"stores: {{lab: {{urls: ['{web.url}'], concurrency: 3}}, gone: {{urls: ['http://127.0.0.1:{dead}/']}}}}", "limits: {sw: 1}")
        url = web.put("in.bin", b"x" * 3000000)
        holds = instance.submit(sh("sleep 600", concurrency_limits="sw", transfer_input_files=url, request_disk="8M"))
        waits = instance.submit(sh("sleep 600", concurrency_limits="sw"))
        instance.submit(sh("true", transfer_input_files=f"http://127.0.0.1:{dead}/x"))
        instance.wait_state(f"{holds}.0", "running")
        with chromium(instance) as driver:
            page = Page(instance, driver)
            page.sign_in(token_of(instance))

            def has(words):
                page.until(lambda: re.search(words, " ".join(page.text("main").split())))
            page.go("#/places")
            page.click("td.number a")
            page.until(lambda: [r.text.split()[0] for r in page.all("tbody tr")] == [f"{holds}.0"])
            page.go("#/shares")
            has(r" sw 1 of 1 \S?full 1 root@local: 1 in 1 job")
            page.go("#/data")
            has(rf" lab {re.escape(web.url)} . 3 ")
            has(r" lab \S+ .answers [0-9.]+ ms [0-9.]+ [kMG]?i?B/s ")
            has(r" gone \S+ .no answer ")
            page.shows("copied to jobs", "main")
            page.go("#/overview")
            page.shows("no answer", ".problems")
        instance.cli("rm", str(holds), str(waits))
    finally:
        web.stop()


def test_submit_by_form_with_a_file(served, page):
    given = served.write("given.txt", "of the user\n")
    page.go("#/submit")
    page.click("#send")
    page.shows("Say a command first", "#told")
    page.fill("#command", "cat given.txt; echo 'it''s done' > result.txt\necho \"a b\"")
    page.fill("#name", "by form")
    page.fill("#count", "2")
    page.fill("#memory", "32")
    page.there("#files").send_keys(given)
    page.click("#check")
    page.shows("2 jobs", "#told")
    page.until(lambda: re.search(r"fits|busy", page.text("#told table")))  # the machine may have much else to do
    page.click("#send")
    page.shows("by form", ".facts")
    request = int(page.script("return location.hash").rsplit("/", 1)[1])
    served.wait(request)
    page.go(f"#/jobs/{request}.1")
    page.shows("of the user\na b", "#out-stdout")
    page.shows("result.txt", "main")
    page.click("button[aria-label='View result.txt']")
    page.shows("its done", "pre.file")
    assert served.job(f"{request}.1")["ad"]["RequestMemory"] == 32


def test_submit_a_job_for_each_file_of_a_dataset(served, page):
    """URLs and a query of the catalog; a shell's $( ) in the command stays the shell's."""
    web = Nginx(os.path.join(served.base, "web"))
    try:
        first, second = web.put("a,b.txt", b"first\n"), web.put("two.txt", b"second\n")
        there = served.write("three.txt", "third\n")
        served.cli("catalog", "add", "run/2", "--url", second, "--meta", "run=7")
        served.cli("catalog", "add", "run/3", "--url", f"file:{there}", "--meta", "run=7")
        page.go("#/submit")
        page.fill("#command", 'echo "$FILE $(cat "$FILE")"; ls | wc -l')
        for wrong, said in (("no url", "is no URL"), ("catalog:run=8", "no files"), ("http://h/", "does not end with the name"), ("catalog:run=", "run")):
            page.fill("#dataset", wrong)
            page.click("#check")
            page.shows(said, "#told .error-text")
        page.fill("#dataset", f"{first}\n catalog:run=7\n{second}#name=other")
        page.click("#check")
        page.shows("4 jobs", "#told")
        page.click("#send")
        page.shows("Request", "h1")
        request = int(page.script("return location.hash").rsplit("/", 1)[1])
        served.wait(request)
        said = [served.api("GET", f"/v1/jobs/{request}.{n}/output")["stdout"]["data"] for n in range(4)]
        assert [base64.b64decode(one).decode().split("\n")[:2] for one in said] == [
            ["a%2Cb.txt first", "1"], ["two.txt second", "1"], ["three.txt third", "1"], ["other second", "1"]]
    finally:
        web.stop()


def test_submit_a_file_as_one_types_it(served, page):
    page.go("#/submit")
    page.click("#tab-text")
    page.fill("#text", "executable = /bin/true\nqueue nonsense nonsense\n")
    page.click("#check")
    page.there("#told .error-text")
    page.shows("nonsense", "#valid.error-text")  # said without a click, too
    page.fill("#text", sh("true", batch_name="pasted", queue="queue 3"))
    page.shows("Valid: 3 jobs.", "#valid:not(.error-text)")
    page.click("#check")
    page.shows("3 jobs", "#told")
    before = len(served.api("GET", "/v1/requests?all=1")["requests"])
    page.click("#send")
    page.shows("pasted", ".facts")
    assert len(served.api("GET", "/v1/requests?all=1")["requests"]) == before + 1


def test_hold_release_and_remove(served, page):
    request = served.submit(sh("sleep 300", queue="queue 2"))
    served.wait_state(f"{request}.0", "running")
    page.go(f"#/jobs/{request}.0")
    page.click("[data-action=hold]")
    page.fill("dialog input", "as the user says")
    page.click("dialog [name=ok]")
    page.shows("as the user says", ".state-line")
    assert served.job(f"{request}.0")["state"] == "held"
    page.click("[data-action=release]")
    served.wait_state(f"{request}.0", "running")
    page.go(f"#/requests/{request}")
    page.shows(f"{request}.1", "table")
    page.click(f"input[aria-label='Mark job {request}.1']")
    page.click(".bar [data-action=remove]")
    page.there("dialog")
    page.script("document.activeElement.dispatchEvent(new KeyboardEvent('keydown'))")
    window_keys = page.driver.switch_to.active_element
    window_keys.send_keys(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog"))
    assert served.job(f"{request}.1")["state"] != "removed"
    page.click(".bar [data-action=remove]")
    page.click("dialog [name=ok]")
    served.wait_state(f"{request}.1", "removed")
    page.click(".view > .buttons [data-action=remove]")
    page.click("dialog [name=ok]")
    served.wait_state(f"{request}.0", "removed")
    page.shows("2 removed", "main")


# The boxes of a graph that a link crosses.
CROSSED = """
const boxes = [...document.querySelectorAll(".dag rect")].map(r => r.getBBox());
return [...document.querySelectorAll(".dag path")].flatMap(path => [...Array(201).keys()].map(i => path.getPointAtLength(i / 200 * path.getTotalLength()))
    .filter(p => boxes.some(b => p.x > b.x + 1 && p.x < b.x + b.width - 1 && p.y > b.y + 1 && p.y < b.y + b.height - 1))).map(p => [p.x, p.y]);
"""


def test_a_graph_has_live_states(served, page):
    served.write("go.sub", sh("true"))
    served.write("stop.sub", sh("exit 1"))
    served.write("g.dag", "JOB first go.sub\nJOB left go.sub\nJOB middle go.sub\nJOB right stop.sub\nJOB last go.sub\nPARENT first CHILD left middle right last\nPARENT left middle right CHILD last\n")
    shown = served.cli("dag", "submit", "--hold", "g.dag", code=None)
    request = max(r["id"] for r in served.api("GET", "/v1/requests?all=1")["requests"])
    assert "5 nodes" in shown.out + shown.err, shown.err
    page.go(f"#/requests/{request}")
    page.until(lambda: len(page.all(".dag a")) == 5)
    assert len(page.all(".dag path")) == 7
    assert page.script(CROSSED) == []
    served.cli("release", str(request))
    served.wait(request, code=None)
    page.until(lambda: {a.get_attribute("aria-label") for a in page.all(".dag a")} ==
               {"first: completed", "left: completed", "middle: completed", "right: failed", "last: removed"})


def test_a_graph_with_more_links_than_a_browser_has_time_for(served, page):
    for edges in ("0-2499>2500-4999", "0-999>4000-4900;" * 2 + "0-4998>4999;" * 1000):
        made_ = served.api("POST", "/v1/requests", {"parts": [{"attributes": {"Cmd": '"/bin/true"'}, "steps": 5000}], "hold": True, "edges": edges.rstrip(";")})
        page.go(f"#/requests/{made_['id']}")
        page.shows("more than 1,000,000 links", "main")
        served.cli("rm", str(made_["id"]))


def test_an_admin_drains_and_a_user_does_not(served, page):
    name = served.agents()[0]["name"]
    page.go("#/places")
    page.shows(name, "table")
    page.click("[data-action=drain]")
    page.fill("dialog input", "new disk")
    page.click("dialog [name=ok]")
    page.shows("new disk", "table")
    assert "new disk" in served.agents()[0]["drained"]
    page.go("#/overview")
    page.shows("new disk", ".problems")
    page.go("#/places")
    page.click("[data-action=resume]")
    page.there("[data-action=drain]")
    assert served.agents()[0]["drained"] is None
    page.driver.delete_all_cookies()
    page.sign_in(token_of(served, "--name", "guest"))
    page.go("#/places")
    page.shows(name, "table")
    assert not page.all("[data-action=drain]")


HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=2</script>'\"&amp;\u202egpj"


def test_hostile_texts_are_texts(served, page):
    part = {"values": {"JobUniverse": 5, "Cmd": "/bin/sh", "Iwd": "/", "TransferExecutable": False, "ShouldTransferFiles": "YES", "WhenToTransferOutput": "ON_EXIT",
                       "JobBatchName": HOSTILE, HOSTILE[1:4]: HOSTILE, "RequestMemory": 32, "DAGNodeName": HOSTILE,
                       "Arguments": "-c 'printf \"%s\\n\" \"$0\" \"$0\" >&2; printf \"%s\\n\" \"$0\"; echo \"$0\" > \"<b>bold&lt;.html\"; exit 3' '" + HOSTILE.replace("'", "''") + "'"}}
    answer = served.api("POST", "/v1/requests", {"parts": [part, part], "batch": HOSTILE, "edges": "0>1:any"})
    request = answer["id"]
    served.wait(request, code=None)
    held = served.submit(sh("true"), "--hold")
    served.api("POST", "/v1/actions", {"action": "release", "ids": [str(held)]})
    served.wait(held)
    other = served.submit(sh("sleep 300"))
    served.api("POST", "/v1/actions", {"action": "hold", "ids": [str(other)], "reason": HOSTILE})
    shown = "<img src=x onerror=window.hacked=1><script>window.hacked=2</script>"
    for view, text in ((f"requests/{request}", shown), (f"jobs/{request}.0", shown), ("jobs?from=history", shown), ("requests", ""), ("overview", shown),
                       (f"jobs/{other}.0", shown), ("jobs?state=held", shown), (f"jobs?constraint={shown}", ""), ("%3Cimg%20src=x%3E", ""),
                       (f"requests/{shown}", ""), ("jobs/%3Cimg%20src=x%20onerror=window.hacked=3%3E", "")):
        page.go(f"#/{view}")
        page.there("h1")
        if text:
            page.shows(text, "main")
        assert page.script("return window.hacked === undefined && document.querySelectorAll('main img, main script, main b').length === 0"), view
    page.go(f"#/jobs/{request}.0")
    page.shows(shown, "#out-stdout")
    page.shows("<b>bold&lt;.html", "main")
    page.click("button[aria-label^='View']")
    page.shows(shown, "pre.file")
    assert "\u202e" not in page.text("main") and "\ufffd" in page.text("#out-stdout")
    assert page.script("return window.hacked") is None
    served.cli("rm", str(other))


@pytest.mark.parametrize("view, words", [("jobs/%", "cannot be shown"), ("jobs/99999.0", "cannot be shown"), ("requests/x", "cannot be shown"),
                                         ("nothing/here", "Overview"), ("jobs?state=lost", "Jobs"), ("jobs?id=-", "Jobs")])
def test_addresses_that_lead_nowhere(page, view, words):
    page.go(f"#/{view}")
    page.shows(words, "h1")
    if words == "Jobs":
        page.there(".note.error")
    page.go("#/requests")  # it goes on
    page.shows("Requests", "h1")


def test_inline_scripts_and_html_are_refused_by_the_browser(page):
    page.there("h1")
    assert page.script("try { document.body.innerHTML = '<i>x</i>'; return 'set' } catch (e) { return e.name }") == "TypeError"
    assert page.script("try { document.body.setAttribute('onclick', 'window.hacked=1'); return 'set' } catch (e) { return e.name }") == "TypeError"
    page.script("const s = document.createElement('style'); s.textContent = 'body { display: none }'; document.head.append(s)")
    assert page.script("return window.hacked === undefined && getComputedStyle(document.body).display !== 'none'")


def test_everything_comes_from_the_server_and_nobody_complains(served, page):
    page.said()
    for view in VIEWS:
        page.go(f"#/{view}")
        page.there("h1")
    page.until(lambda: page.text("h1") == "Shares and limits")
    names = page.script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert names and all(n.startswith(page.url) for n in names)
    assert [m for m in page.said() if "401" not in m] == []


CONTRAST = """
const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const parse = t => { const n = t.match(/[\\d.]+/g).map(Number); return n.length === 3 ? [...n, 1] : n; };
const back = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
const bad = [];
for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.closest('svg, :disabled, .skip, option')) continue;
    const a = light(parse(getComputedStyle(e).color)), b = light(back(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${e.tagName}.${e.className} ${e.textContent.slice(0, 20)}: ${ratio.toFixed(2)}`);
}
return bad;
"""
NAMELESS = """
return [...document.querySelectorAll('input, select, textarea, button, a[href], meter, [role=img], dialog')].filter(e => e.checkVisibility()
    && !e.getAttribute('aria-label') && !(e.labels && e.labels.length) && !e.getAttribute('aria-labelledby') && !e.textContent.trim()).map(e => e.outerHTML);
"""


def test_contrast_labels_and_width(served, page):
    request = served.submit(sh("true", batch_name="x" * 120, queue="queue 3"), "--hold")
    for width in (390, 1280):
        page.size(width, 900)
        for scheme in ("light", "dark"):
            page.scheme(scheme)
            for view in (*VIEWS, f"requests/{request}", f"jobs/{request}.0", "jobs?state=held"):
                page.go(f"#/{view}")
                page.there("h1")
                page.until(lambda: page.all("main table, main form, main .tiles, main .empty"))
                assert page.script(CONTRAST) == [], (view, scheme)
                assert page.script(NAMELESS) == [], view
                assert page.script("return document.documentElement.scrollWidth") <= width, (view, width)
    page.scheme("light")
    served.cli("rm", str(request))


OPERABLE = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "tab", "spinbutton", "slider", "menuitem", "switch", "meter", "img", "dialog",
            "region", "table", "DisclosureTriangle"}


def heard(page):
    """What Chromium gives a screen reader, in its order: (role, name, properties)."""
    def property_(node, name):
        return next((p["value"].get("value") for p in node.get("properties", []) if p["name"] == name), None)

    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    of = {n["nodeId"]: n for n in nodes}
    out, open_ = [], [nodes[0]["nodeId"]]
    while open_:
        node = of.get(open_.pop())
        if not node:
            continue
        open_ += reversed(node.get("childIds", []))
        if not node["ignored"]:
            out.append((node["role"]["value"], node.get("name", {}).get("value", ""), {name: property_(node, name) for name in ("level", "live", "focused")}))
    return out


def test_what_a_screen_reader_is_told(served, page):
    """Each thing has a role and a name, headings are in order, tables have heads, and there is one main part."""
    done = served.submit(sh("echo printed", queue="queue 3"))
    served.wait(done)
    held = served.submit(sh("true"), "--hold")
    page.driver.execute_cdp_cmd("Accessibility.enable", {})
    for view in (*VIEWS, f"requests/{held}", f"jobs/{done}.0", f"jobs/{held}.0", "jobs?state=held"):
        page.go(f"#/{view}")
        page.there("h1")
        page.until(lambda: page.all("main table, main form, main .tiles, main .empty"))
        told = heard(page)
        assert [(role, view) for role, name, _ in told if role in OPERABLE and not name.strip()] == []
        levels = [p["level"] for role, _, p in told if role == "heading"]
        assert levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:])), (view, levels)
        roles = [role for role, _, _ in told]
        assert roles.count("main") == roles.count("banner") == roles.count("navigation") == 1, view
        for at in (i for i, role in enumerate(roles) if role == "table"):
            assert "columnheader" in roles[at:at + 40], (view, told[at])
    live = [p["live"] for role, _, p in told if role == "status"]
    assert len(live) >= 2 and set(live) == {"polite"}
    served.cli("rm", str(held))


def test_a_dialog_keeps_the_focus_and_gives_it_back(served, page):
    held = served.submit(sh("true"), "--hold")
    page.go(f"#/jobs/{held}.0")
    page.there('[data-action="remove"]')
    page.script("document.querySelector('[data-action=\"remove\"]').focus()")
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.there("dialog")
    assert [name for role, name, _ in heard(page) if role == "dialog"] == [page.text("dialog h2")]
    for _ in range(8):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        assert page.script("const e = document.activeElement; return e === document.body || !!e.closest('dialog')")
    page.there("dialog input").send_keys(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog"))
    assert page.script("return document.activeElement.dataset.action") == "remove"
    served.cli("rm", str(held))


def test_the_focus_is_seen_and_in_the_order_of_the_page(served, page):
    held = served.submit(sh("true"), "--hold")
    for view in ("jobs", f"jobs/{held}.0"):
        page.go(f"#/{view}")
        page.there("main button, main a")
        page.script("window.scrollTo(0, 0); document.activeElement.blur(); document.seen = []")
        for _ in range(25):
            page.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "rawKeyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9})
            bad = page.script("""
                const e = document.activeElement, s = getComputedStyle(e);
                if (e === document.body) return null;
                document.seen.push(e);
                if (parseFloat(s.outlineWidth) < 2 || s.outlineStyle === 'none') return `no outline: ${e.outerHTML.slice(0, 200)}`;
                if (e.tabIndex > 0) return `an order of its own: ${e.outerHTML.slice(0, 200)}`;
                return null;""")
            assert bad is None, (view, bad)
        assert page.script("return document.seen.length") > 8
    served.cli("rm", str(held))


def test_the_keyboard_is_enough(served, page):
    request = served.submit(sh("true"), "--hold")
    page.go("#/requests")
    page.shows("Requests", "h1")
    page.script("document.activeElement.blur()")

    def tab_to(what):
        """TAB, as often as it takes."""
        for _ in range(60):
            page.driver.switch_to.active_element.send_keys(Keys.TAB)
            at = page.driver.switch_to.active_element
            if what in (at.text, at.get_attribute("href"), at.get_attribute("data-action")):
                return at
        raise AssertionError(f"the keyboard does not get to {what}")

    tab_to("Skip to the content")
    tab_to(f"{page.url}#/requests/{request}").send_keys(Keys.ENTER)
    page.shows(f"Request {request}", "h1")
    page.there("table")
    tab_to("remove").send_keys(Keys.ENTER)
    page.there("dialog")
    assert page.driver.switch_to.active_element.get_attribute("id") == "ask-reason"
    page.driver.switch_to.active_element.send_keys("by keyboard", Keys.ENTER)
    served.wait_state(f"{request}.0", "removed")


def test_a_job_at_another_server_has_its_way(request, build, instance):
    far = hops.far(request, build)
    with_page(instance, agent=False)
    hops.runs(far)
    hops.link(instance, far)
    job = f"{instance.submit(sh('echo from far; sleep 300'))}.0"
    with chromium(instance) as driver:
        page = Page(instance, driver)
        page.sign_in(token_of(instance))
        page.go(f"#/jobs/{job}")
        page.until(lambda: len(page.all(".path li")) == 2)
        page.shows("from far", "#out-stdout")
        page.click("[data-action=remove]")
        page.click("dialog [name=ok]")
        page.shows("removed", ".state-line")


def test_charts_of_the_queue(served, page):
    served.run(sh("true"))
    samples = wait_until(lambda: [s for s in served.api("GET", "/v1/series")["samples"] if s["ended"]])  # half a minute at most
    assert samples[-1]["submitted"] >= samples[-1]["ended"] and samples[-1]["matched"] >= samples[-1]["ended"]
    page.go("#/overview")
    page.until(lambda: len(page.all(".chart polyline")) == 7)
    for label in page.all(".chart text.end"):  # inside the picture, however many lines end at its foot
        assert 8 <= float(label.get_attribute("y")) <= 180
    assert re.search(r"idle [\d,]+, running [\d,]+, held [\d,]+ now", page.there(".chart svg").get_attribute("aria-label"))
    assert re.fullmatch(r"(Decisions in the last half minute: [\d.,]+ a second.)?", page.text("#decisions"))
    page.click(".chart summary")
    page.shows("held", ".chart table")


def test_a_server_that_comes_back_asks_to_sign_in_again(instance):
    with_page(instance)
    token = token_of(instance)
    with chromium(instance) as driver:
        page = Page(instance, driver)
        page.sign_in(token)
        page.go("#/requests")
        page.shows("No requests", "main")
        instance.daemons[0].stop()
        page.shows("no connection", "#live")
        instance.up("--api-listen", f"127.0.0.1:{instance.port}")
        page.shows("The session is over", "main")
        page.fill("#token", token)
        page.click("form button")
        page.shows("Requests", "h1")
        assert driver.find_element(By.ID, "live").text == "live"
