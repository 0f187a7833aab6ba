"""GET /metrics: what it says is what happened, in a form that promtool and a real Prometheus take."""
import json
import os
import re
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

import agents
from drover import Daemon, free_port, sh, wait_until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RULES = os.path.join(ROOT, "dist", "prometheus", "drover.rules.yaml")
DASHBOARD = os.path.join(ROOT, "dist", "grafana", "drover.json")
SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


def text_of(instance):
    status, data = instance.call("GET", "/metrics")
    assert status == 200
    return data.decode()


def parse(text):
    """{(name, ((label, value), …)): value}, and {family: type}. Each family stands together, after its help and type."""
    samples, types, current = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split()[2]
            assert current not in types, f"{current} twice"
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name == current
            types[name] = kind
        else:
            name, labels, value = SAMPLE.match(line).groups()
            pairs = tuple(LABEL.findall(labels or ""))
            assert "".join(f'{k}="{v}",' for k, v in pairs).rstrip(",") == (labels or "")
            base = re.sub(r"_(bucket|sum|count)$", "", name) if types[current] == "histogram" else name
            assert base == current, line
            assert (name, pairs) not in samples, line
            samples[name, pairs] = float(value)
    return samples, types


def value(samples, name, **labels):
    return samples.get((name, tuple(labels.items())), 0)


def test_the_numbers_are_what_happened(drover):
    drover.run(sh("exit 0", queue="queue 3"))
    drover.run(sh("exit 3"), code=1)
    held = drover.submit(sh("exit 0", hold="True"))
    drover.cli("rm", str(held))
    text = wait_until(lambda: (t := text_of(drover)).find('drover_attempts_ended_total{queue="default",outcome="exited"} 4') > 0 and t)
    samples, types = parse(text)
    owner = f"/{drover.server_info()['you']}"
    assert value(samples, "drover_jobs_submitted_total") == 5
    assert value(samples, "drover_attempts_started_total") == 4 and value(samples, "drover_jobs_matched_total") == 4
    assert value(samples, "drover_jobs_removed_total") == 1
    assert value(samples, "drover_agents", state="connected") == 1
    assert value(samples, "drover_queues_open", queue="default") == 1
    assert value(samples, "drover_nodes", state="idle") == 1 and value(samples, "drover_nodes", state="failed") == 0
    for name, label in (("drover_job_wait_seconds", {"queue": "default"}), ("drover_job_run_seconds", {"queue": "default"}),
                        ("drover_account_job_wait_seconds", {"account": owner}), ("drover_account_job_run_seconds", {"account": owner})):
        assert types[name] == "histogram"
        counts = [v for (n, pairs), v in samples.items() if n == f"{name}_bucket" and pairs[:-1] == tuple(label.items())]
        assert counts == sorted(counts) and counts[-1] == value(samples, f"{name}_count", **label) == 4, name
    assert value(samples, "drover_http_requests_total", method="POST", route="/v1/requests", code="201") == 3
    assert value(samples, "drover_store_commit_seconds_count") > 0 and value(samples, "drover_store_bytes") > 0
    assert value(samples, "process_resident_memory_bytes") > 1e6

    drover.call("GET", "/v1/jobs/77.0")
    drover.call("GET", "/nothing")
    later, _ = parse(text_of(drover))
    assert value(later, "drover_http_requests_total", method="GET", route="/v1/jobs/{id}", code="404") == 1
    assert value(later, "drover_http_requests_total", method="other", route="other", code="404") == 1
    assert all(later[key] >= v for key, v in samples.items() if types.get(key[0]) == "counter"), "a counter went back"


def test_accounts_beyond_two_hundred_share_a_name(instance):
    names = [f"a{n}" for n in range(205)]
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    instance.write(f"{instance.dir}/droverd.yaml", "accounts:\n" + "".join(f"  {name}: {{users: ['*']}}\n" for name in names))
    instance.up()
    instance.run(sh("true", accounting_group="$(name)", queue=f"queue name in ({' '.join(names)})"))

    def counts():
        samples, _ = parse(text_of(instance))
        found = {dict(pairs)["account"]: v for (name, pairs), v in samples.items() if name == "drover_account_job_run_seconds_count"}
        return sum(found.values()) == 205 and found
    found = wait_until(counts)
    assert len(found) == 201 and found["other"] == 5


def test_promtool_has_nothing_to_say(drover):
    drover.run(sh("true"))
    for argv, text in ((["promtool", "check", "metrics"], text_of(drover)), (["promtool", "check", "rules", RULES], None)):
        done = subprocess.run(argv, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0 and "no help" not in done.stdout and "error" not in done.stdout.lower(), done.stdout


def ask(port, expression):
    """The samples of a query, as a Prometheus answers it."""
    url = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(expression)}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            got = json.load(answer)
    except urllib.error.HTTPError as e:
        if e.code == 503:  # it has just been started
            return None
        raise AssertionError(f"{expression}: {e.read()}") from None
    except OSError:
        return None
    assert got["status"] == "success", got
    return got["data"]["result"]


@pytest.fixture
def prometheus(instance):
    """A server whose API is on TLS, scraped by a real Prometheus with a token of a plain user, as docs/guides/monitoring.md
    has it. Yields a function that asks it."""
    api, port = free_port(), free_port()
    instance.server("--api-listen", f"127.0.0.1:{api}", "--name", "127.0.0.1")
    instance.write("token", instance.json("token", "user", "--name", "prometheus@local", "--role", "user")["token"], mode=0o600)
    instance.write("prometheus.yml", f"""
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{RULES}]
scrape_configs:
  - job_name: drover
    scheme: https
    authorization: {{credentials_file: {instance.work}/token}}
    tls_config: {{ca_file: {instance.dir}/ca/ca.crt}}
    static_configs: [{{targets: ["127.0.0.1:{api}"]}}]
""")
    daemon = Daemon("prometheus", ["prometheus", f"--config.file={instance.work}/prometheus.yml",
                                   f"--storage.tsdb.path={instance.base}/tsdb", f"--web.listen-address=127.0.0.1:{port}"],
                    f"{instance.base}/prometheus.log", instance.env, instance.base)
    try:
        yield lambda expression: ask(port, expression)
    finally:
        daemon.stop()


def dashboard():
    """What the panels ask, of all servers."""
    with open(DASHBOARD, encoding="utf-8") as f:
        return [t["expr"].replace("$instance", ".*") for p in json.load(f)["panels"] for t in p["targets"]]


def test_every_panel_of_the_dashboard_has_data(instance, prometheus):
    agents.start(instance, "queues:\n  - name: here\n    cpus: 2\n")
    found = set()

    def empty():
        """all panels have data"""
        instance.run(sh("true"))  # a rate is known of a counter that grows between two looks at it
        for expression in dashboard():
            if any(sample["value"][1] != "NaN" for sample in prometheus(expression) or []):
                found.add(expression)
        return set(dashboard()) - found

    wait_until(lambda: not empty())


def test_a_real_prometheus_scrapes_it(instance, prometheus):
    instance.submit("executable = /bin/true\nqueue 7\n")
    got = wait_until(lambda: [s for s in prometheus('drover_jobs{state="idle"}') or [] if s["value"][1] == "7"])
    assert got[0]["metric"]["job"] == "drover"
    assert [s["value"][1] for s in prometheus('up{job="drover"}')] == ["1"]

    expressions = dashboard()
    assert len(expressions) > 15
    known = set(parse(text_of(instance))[1])
    for expression in expressions:
        names = {re.sub(r"_(bucket|sum|count)$", "", n) for n in re.findall(r"\b(?:drover|process)_[a-z_]+\b", expression)}
        assert names and names <= known, (expression, names - known)
    with open(RULES, encoding="utf-8") as f:
        names = {re.sub(r"_(bucket|sum|count)$", "", n) for n in re.findall(r"\bdrover_[a-z_]+\b", f.read())}
    assert names <= known, names - known


def test_who_has_no_token_sees_nothing(instance):
    port = free_port()
    instance.server("--api-listen", f"127.0.0.1:{port}")
    context = ssl.create_default_context(cafile=f"{instance.dir}/ca/ca.crt")
    context.check_hostname = False
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=context, timeout=30)


def agent_says(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.read().decode()


def test_an_agent_has_numbers_of_its_own(instance):
    """Of its queues, and of itself; before the server has answered, and when it is gone."""
    port = free_port()
    server = instance.server()
    sensor = os.path.join(instance.work, "sensor")
    instance.write("sensor", "#!/bin/sh\necho Free = 12.5\necho Good = true\necho 'Say = a; sFree = 3'\n", mode=0o755)
    agents.start(instance, f"metrics: 127.0.0.1:{port}\nsensors: {{s: {{command: {sensor}, interval: 1s}}}}\nhealth: {{command: /bin/true}}\nqueues:\n  - {{name: one, attributes: Rack = 1}}\n  - {{name: two, attributes: Rack = 2}}\n")
    agents.queues(instance, 2)
    instance.run(sh("exit 0", requirements="TARGET.Rack == 1", queue="queue 3"))
    instance.run(sh("exec sleep 600", requirements="TARGET.Rack == 2", allowed_execute_duration="1"), code=3)
    runs = instance.submit(sh("exec sleep 600", requirements="TARGET.Rack == 1", request_memory="64M"))
    instance.wait_state(f"{runs}.0", "running")
    wait_until(lambda: "drover_agent_sensor{" in agent_says(port))
    text = agent_says(port)
    samples, types = parse(text)
    assert value(samples, "drover_agent_sensor", sensor="s", attribute="sFree") == 12.5 and value(samples, "drover_agent_healthy") == 1
    assert value(samples, "drover_agent_sensor", sensor="s", attribute="sGood") == 1 and text.count("drover_agent_sensor{") == 2
    assert subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False).stdout == ""
    assert value(samples, "drover_agent_connected") == 1 and value(samples, "drover_agent_journal_writable") == 1
    assert value(samples, "drover_agent_attempts", queue="one", state="running") == 1
    assert value(samples, "drover_agent_attempts_ended_total", queue="one", outcome="exited") == 3
    assert value(samples, "drover_agent_attempts_ended_total", queue="two", outcome="limit_exceeded") == 1
    assert value(samples, "drover_agent_committed_memory_bytes", queue="one") == 64 << 20
    assert value(samples, "drover_agent_queue_ready", queue="two") == 1
    assert 0 < value(samples, "drover_agent_lease_seconds") and value(samples, "process_resident_memory_bytes") > 1 << 20
    assert types["drover_agent_attempts_ended_total"] == "counter"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        agent_says(port, "/v1/jobs")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/metrics", method="DELETE"), timeout=30)
    server.kill()
    wait_until(lambda: value(parse(agent_says(port))[0], "drover_agent_connected") == 0)


def test_an_address_that_an_agent_cannot_have(instance):
    instance.server()
    daemon = agents.start(instance, "metrics: 192.0.2.1:9\n")
    wait_until(lambda: not daemon.running())
    assert daemon.process.returncode != 0 and "192.0.2.1:9" in daemon.output()
