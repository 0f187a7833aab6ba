"""drover sim: real logs and workflows in virtual time, and what is told of bad ones."""
import csv
import json
import os
import statistics
import subprocess
import xml.etree.ElementTree as ET

import pytest

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
HPC2N, WAGAP = os.path.join(DATA, "swf", "hpc2n.swf"), os.path.join(DATA, "swf", "wagap.swf")
TWO = os.path.join(DATA, "swf", "two.yaml")


@pytest.fixture
def sim(build):
    def call(*words, code=0):
        done = subprocess.run([os.path.join(build, "bin", "drover"), "sim", *map(str, words)], capture_output=True,
                              text=True, timeout=300, check=False)
        assert done.returncode == code, done.stderr
        assert code == 0 or not done.stdout  # mistakes are found before the run
        return done.stdout if code == 0 else done.stderr

    return call


def compare(sim, *words):
    """The results by policy."""
    answer = json.loads(sim("--json", *words))
    return {p["policy"]: p for p in answer["policies"]}


def test_two_real_clusters_at_once(sim):
    """Drover's cost moves fewer bytes than blind placement, fewer of them far, and jobs end sooner."""
    by = compare(sim, HPC2N, WAGAP, "--site", TWO, "--hurry", 2, "--compare", "cost,blind,fifo,cached-bytes")
    cost, blind = by["cost"], by["blind"]
    assert set(by) == {"cost", "blind", "fifo", "cached-bytes"}
    assert cost["bytes_moved"] < blind["bytes_moved"]
    assert cost["bytes_far"] < 0.8 * blind["bytes_far"]
    assert cost["turnaround_s"]["mean"] < blind["turnaround_s"]["mean"]
    assert cost["wait_s"]["mean"] < blind["wait_s"]["mean"]
    assert cost["makespan_s"] <= blind["makespan_s"] * 1.001
    assert sum(s["count"] for s in cost["wait_by_processors_s"].values()) == cost["wait_s"]["count"]
    assert 0 < cost["utilisation"] < 1 and 0 < cost["fairness"] <= 1


def test_policies_of_sums(sim):
    """What is measured of queues shortens waits; policies that know nothing of files carry more of them far than Drover's cost."""
    by = compare(sim, HPC2N, WAGAP, "--site", TWO, "--hurry", 2, "--compare", "cost,passive,cluster-monitor,queue-monitor")
    wait = {policy: p["wait_s"]["mean"] for policy, p in by.items()}
    assert wait["queue-monitor"] < wait["passive"] and wait["queue-monitor"] < wait["cluster-monitor"], wait
    assert all(by["cost"]["bytes_far"] < 0.8 * by[policy]["bytes_far"] for policy in by if policy != "cost")


@pytest.mark.parametrize("estimates", [[], ["--no-estimates"]], ids=["estimates", "none"])
@pytest.mark.parametrize("hurry", [2, 4])
@pytest.mark.parametrize("log", [HPC2N, WAGAP], ids=["hpc2n", "wagap"])
def test_beside_the_reference_schedulers(sim, log, hurry, estimates):
    """The mean wait is no longer than with EASY, which is told the true run times where users give none; and fair shares shorten it
    there, as they should. With estimates it is that of the better of both; where few wait, one
    job's luck is 7 % of it. Where the references know what nobody can know, the slowdown of
    short jobs is theirs."""
    by = compare(sim, log, "--hurry", hurry, "--input", 0, *estimates, "--compare", "fcfs,easy,easy-fairshare,cost")
    wait = {policy: p["wait_s"]["mean"] for policy, p in by.items()}
    assert wait["cost"] < wait["easy"] < wait["fcfs"], wait
    assert wait["easy-fairshare"] < wait["easy"], wait
    assert estimates or wait["cost"] < (1.08 if hurry == 4 else 1.14) * wait["easy-fairshare"], wait
    assert by["cost"]["slowdown"]["mean"] < (1.4 if estimates else 0.9) * by["easy"]["slowdown"]["mean"]
    assert len({p["utilisation"] * p["makespan_s"] // 10 for p in by.values()}) == 1  # all have done the same work


def test_a_table_beside_the_reference_schedulers(build, tmp_path):
    """`make bench-sim` for whoever has a trace; one that cannot be played is told, and the others are played."""
    os.makedirs(tmp_path / "bin")
    os.symlink(os.path.abspath(os.path.join(build, "bin", "drover-sim")), tmp_path / "bin" / "drover-sim")
    tool = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "bench-sim")
    p = subprocess.run([tool, "--build", tmp_path, "--hurry", "1", "/nonexistent.swf", HPC2N], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=300, check=False)
    assert p.returncode == 1 and "cannot read /nonexistent.swf" in p.stderr
    assert p.stdout.count("| hpc2n, 1 |") == 2
    rows = json.loads((tmp_path / "bench-sim.json").read_text())
    assert [row["estimates"] for row in rows] == [True, False]
    assert all(row["cost"]["wait_s"] > 0 and row["easy"]["slowdown"] >= 1 for row in rows)


def test_when_and_where_each_job_ran(sim, tmp_path):
    """The file has what the table was made of; conservative backfilling starts nobody before he came."""
    file = tmp_path / "jobs.csv"
    by = compare(sim, HPC2N, WAGAP, "--site", TWO, "--hurry", 2, "--first", 300, "--input", 0, "--compare", "cost,conservative",
                 "--write-jobs", file)
    with open(file, encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    for policy, p in by.items():
        own = [row for row in rows if row["policy"] == policy]
        assert len(own) == p["wait_s"]["count"] == 600
        waits = [float(row["started_s"]) - float(row["submitted_s"]) for row in own]
        assert min(waits) >= 0
        assert sum(waits) / len(waits) == pytest.approx(p["wait_s"]["mean"], abs=0.01)
        assert max(float(row["ended_s"]) for row in own) == pytest.approx(p["makespan_s"], abs=1)
        assert {row["place"] for row in own} == {"hpc2n", "wagap"}


def test_reservations_for_a_guess_cost_little(sim, tmp_path):
    """Nobody says how long a job may run. Wide jobs wait less with reservations, and all together no longer."""
    log = tmp_path / "unsaid.swf"
    with open(HPC2N, encoding="utf-8") as f:
        log.write_text("".join(line if line.startswith(";") else " ".join(w if i != 8 else "-1" for i, w in enumerate(line.split())) + "\n"
                               for line in f))
    kept, never = (compare(sim, log, "--hurry", 2, "--input", 0, "--reserve-after", after)["cost"] for after in ("10m", 0))
    assert kept["wait_s"]["mean"] <= 1.05 * never["wait_s"]["mean"]
    assert kept["slowdown"]["mean"] <= 1.05 * never["slowdown"]["mean"]
    assert kept["wait_by_processors_s"][">64"]["max"] < never["wait_by_processors_s"][">64"]["max"]


@pytest.mark.parametrize("hurry", [1, 3, 4])
def test_expected_starts_and_ends(sim, hurry):
    """They are nearer than the last ten waits, and than the time that users asked for; and half of the jobs, or nine in ten, end by the
    times given for that."""
    error = compare(sim, HPC2N, WAGAP, "--site", TWO, "--hurry", hurry, "--eta")["cost"]["expected_median_error_s"]
    assert error["jobs"] > 2900
    assert error["wait"] < error["wait_by_last_ten"]
    assert error["run"] < error["run_as_asked"]
    assert error["run"] < error["run_by_last_two"]
    assert 0.45 < error["ended_by_half"] < 0.55 and 0.88 < error["ended_by_most"] < 0.95
    assert error["end"] < error["end_by_last_ten_and_asked"]


WORKFLOWS = {  # what less of: than blind placement, than fifo, than cached-bytes
    ("1000genome-2ch", "1m"): ("moved far turnaround makespan",) * 3,
    ("srasearch-10a", "0"): ("moved far turnaround makespan", "moved far turnaround makespan", "moved turnaround"),
    ("epigenomics-1seq", "0"): ("moved far turnaround makespan", "moved turnaround makespan", "moved far turnaround makespan"),
}


def over_sizes(sim, name, every):
    """Sums over several sizes, since one run is a matter of luck."""
    total = {}
    for copies in (6, 8, 10, 12):
        by = compare(sim, os.path.join(DATA, "workflows", name + ".json"), "--copies", copies, "--every", every, "--agents", 8,
                     "--cpus", 8, "--near", "200M", "--far", "20M", "--compare", "cost,blind,fifo,cached-bytes")
        for policy, run in by.items():
            sums = total.setdefault(policy, dict.fromkeys(("moved", "far", "turnaround", "makespan"), 0))
            sums["moved"] += run["bytes_moved"]
            sums["far"] += run["bytes_far"]
            sums["turnaround"] += run["turnaround_s"]["mean"]
            sums["makespan"] += run["makespan_s"]
    return total


@pytest.mark.parametrize("name,every", WORKFLOWS)
def test_real_workflows(sim, name, every):
    """The same on real workflows, that share what they read."""
    total = over_sizes(sim, name, every)
    for policy, less in zip(("blind", "fifo", "cached-bytes"), WORKFLOWS[name, every]):
        for what in less.split():
            assert total["cost"][what] < total[policy][what], (policy, what)


@pytest.mark.parametrize("copies,every", [(1, "0"), (4, "1m")])
@pytest.mark.parametrize("name", ["1000genome-2ch", "epigenomics-1seq", "soykb-10fastq", "srasearch-10a"])
def test_no_workflow_is_longer_for_its_files(sim, name, copies, every):
    """Placement by cost makes none more than 5 % longer than blind placement does, and moves less. SoyKB took twice as long: jobs that
    came behind some that wait for a better place saw no other."""
    by = compare(sim, os.path.join(DATA, "workflows", name + ".json"), "--copies", copies, "--every", every, "--agents", 8, "--cpus", 8,
                 "--near", "200M", "--far", "20M", "--compare", "cost,blind")
    assert by["cost"]["makespan_s"] <= 1.05 * by["blind"]["makespan_s"]
    assert by["cost"]["bytes_moved"] <= 1.05 * by["blind"]["bytes_moved"]


def test_a_workflow_on_an_idle_pool(sim):
    """Where all could start at once, what is small is not fetched for a place with more room, and nothing from afar."""
    total = over_sizes(sim, "epigenomics-1seq", "1m")
    assert total["cost"]["far"] == 0
    assert total["cost"]["moved"] < 1.02 * min(sums["moved"] for sums in total.values())
    assert total["cost"]["makespan"] < 1.001 * min(sums["makespan"] for sums in total.values())


def test_a_seed_is_the_same_run(sim):
    words = ["--jobs", 500, "--classes", 20, "--agents", 12, "--every", "1m", "--mtbf", "2h", "--start-delay", "5s"]
    runs = [compare(sim, *words, "--seed", seed)["cost"] for seed in (5, 5, 6)]
    for run in runs:
        for real in ("wall_s", "decisions_per_s", "memory_bytes"):
            del run[real]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert runs[0]["attempts_lost"] > 0


def test_sets_have_places_kept(sim):
    """Jobs that start together, among others: none later than planned, and sooner than where no places are kept."""
    words = ["--jobs", 1500, "--classes", 45, "--agents", 10, "--cpus", 8, "--every", "1m", "--users", 4, "--input", 0, "--gangs", 20,
             "--gang-size", 30]
    kept = compare(sim, *words)["cost"]["gangs"]
    without = compare(sim, *words, "--reserve-after", 0)["cost"]["gangs"]
    assert kept["late"] == 0 and kept["reserved"] > 0 and kept["backfilled"] > 0
    assert without["reserved"] == 0
    assert kept["wait_s"]["count"] == without["wait_s"]["count"] > 0
    assert kept["wait_s"]["mean"] < without["wait_s"]["mean"]
    assert "BACKFILLED" in sim(*words)
    assert "gangs" not in compare(sim, "--jobs", 50)["cost"]
    assert "100 jobs like job" in sim("--jobs", 200, "--classes", 2, "--agents", 4, "--cpus", 4, "--gangs", 100, "--gang-size", 100, code=2)


def test_the_table_and_the_plot(sim, tmp_path):
    plot = tmp_path / "p.svg"
    text = sim("--jobs", 200, "--compare", "cost,blind", "--plot", plot)
    assert "200 generated jobs" in text
    lines = [line.split() for line in text.split("\n")]
    assert ["POLICY", "MAKESPAN"] == next(line for line in lines if line[:1] == ["POLICY"])[:2]
    assert [line[0] for line in lines if line[:1] in (["cost"], ["blind"])][:2] == ["cost", "blind"]
    svg = ET.parse(plot).getroot()
    texts = {t.text for t in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert {"cost", "blind", "Jobs that wait", "Bytes moved so far", "GiB"} <= texts
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}path"))) > 10


def test_a_gantt_chart(sim, tmp_path):
    """Boxes of a job have its processors and its time, and none covers another's (but where rounding to pixels leaves none of it)."""
    chart, file = tmp_path / "g.svg", tmp_path / "jobs.csv"
    sim(HPC2N, "--first", 200, "--hurry", 4, "--input", 0, "--compare", "easy,cost", "--gantt", chart, "--write-jobs", file)
    svg = ET.parse(chart).getroot()
    boxes = {}
    areas = [r for r in svg.iter("{http://www.w3.org/2000/svg}rect") if len(r)]
    for r in areas:
        boxes.setdefault(r[0].text, []).append({key: float(r.get(key)) for key in ("x", "y", "width", "height")})
    with open(file, encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert set(boxes) == {f"job {row['job']}" for row in rows}
    by_hand = {}
    for row in rows:
        by_hand[f"job {row['job']}"] = by_hand.get(f"job {row['job']}", 0) + int(row["processors"])
    pixels = [sum(box["height"] for box in boxes[job]) / by_hand[job] for job in by_hand]  # of both policies
    assert max(pixels) == pytest.approx(min(pixels), rel=0.05)
    drawn = sorted(((b["x"], b["y"], b["width"], b["height"]) for all_of_it in boxes.values() for b in all_of_it if b["width"] > 0.02))
    for i, (x, y, width, height) in enumerate(drawn):
        for x2, y2, _, height2 in drawn[i + 1:]:
            if x2 >= x + width - 0.02:
                break
            assert y2 + height2 <= y + 0.02 or y2 >= y + height - 0.02
    assert "cannot write" in sim("--jobs", 50, "--gantt", tmp_path, code=1)


def test_games_with_faults(sim):
    first = sim("--faults", "--seed", 9, "--steps", 200, "-v")
    assert first == sim("--faults", "--seed", 9, "--steps", 200, "-v")
    assert "seed 9:" in first and "all invariants hold" in first
    assert json.loads(sim("--faults", "--seeds", 2, "--steps", 50, "--json"))["violations"] == 0


def _site(tmp_path, text):
    site = tmp_path / "site.yaml"
    site.write_text(text)
    return site


def test_several_seeds_have_intervals(sim, tmp_path):
    """Means and Student's intervals of what single runs with these seeds give."""
    words = ["--jobs", 100, "--agents", 4, "--cpus", 4, "--every", "10s", "--compare", "cost,blind"]
    all_seeds = json.loads(sim("--json", *words, "--seed", 7, "--repeats", 3))
    single = [compare(sim, *words, "--seed", seed) for seed in (7, 8, 9)]
    assert all_seeds["repeats"] == 3 and [p["policy"] for p in all_seeds["policies"]] == ["cost", "blind"]
    for p in all_seeds["policies"]:
        for key, values in (("wait_s", [run[p["policy"]]["wait_s"]["mean"] for run in single]),
                            ("makespan_s", [run[p["policy"]]["makespan_s"] for run in single])):
            assert p[key]["mean"] == pytest.approx(statistics.mean(values))
            assert p[key]["half_width"] == pytest.approx(4.303 * statistics.stdev(values) / 3 ** 0.5)
    assert " ± " in sim(*words, "--repeats", 2)
    assert "--repeats must be from 2" in sim("--repeats", 1, code=2)
    assert "--write-jobs is for one run" in sim("--repeats", 3, "--write-jobs", tmp_path / "x", code=2)
    assert "--eta is for one run" in sim("--repeats", 3, "--eta", code=2)


def test_outages_at_given_times(sim, tmp_path):
    """What runs is lost, and nothing starts until it is over; the other cluster goes on."""
    one = "clusters:\n  - {name: a, agents: 4, outages: [{from: 1m, for: 1d}, {from: 2m, for: 1h}]}\n"
    words = ["--jobs", 8, "--classes", 1, "--run", "30m", "--input", 0, "--write-jobs", tmp_path / "jobs.csv"]
    away = compare(sim, *words, "--site", _site(tmp_path, one))["cost"]
    assert away["attempts_lost"] == 4 and away["makespan_s"] > 86460
    with open(tmp_path / "jobs.csv", encoding="utf-8") as f:
        assert min(float(row["started_s"]) for row in csv.DictReader(f)) == pytest.approx(86460, abs=1)
    both = compare(sim, *words, "--site", _site(tmp_path, one + "  - {name: b, agents: 4}\n"))["cost"]
    assert 0 < both["attempts_lost"] <= 4 and both["makespan_s"] < 86400
    assert "knows nothing of failures, outages" in sim(*words, "--site", _site(tmp_path, one), "--compare", "fcfs", code=2)
    # As recorded, of one of four agents: what it runs is lost, and it runs nothing until it is back.
    log = tmp_path / "outages.txt"
    log.write_text("# agent, seconds\na-2 60 7200\n")
    part = compare(sim, *words, "--site", _site(tmp_path, "clusters:\n  - {name: a, agents: 4, cpus: 2}\n"), "--outages", log)["cost"]
    assert part["attempts_lost"] == 2
    log.write_text("a-4 60 7200\n")
    assert f'{log}:1: there is no cluster "a-4"' in sim(*words, "--site", _site(tmp_path, one), "--outages", log, code=2)
    assert ":2: an outage needs" in sim("--site", _site(tmp_path, "clusters:\n  - {name: a, outages: [{from: 1m}]}\n"), code=2)


def test_energy(sim, tmp_path):
    """Idle processors take theirs all the time, busy ones more while programs run: the same under any scheduler that takes as long."""
    site = _site(tmp_path, "clusters:\n  - {name: a, agents: 2, cpus: 4, watts: {idle: 2, busy: 10}}\n")
    words = ["--site", site, "--jobs", 50, "--users", 3, "--every", "5m", "--input", 0]
    for p in compare(sim, *words, "--compare", "cost,fcfs").values():
        at_all_times = 8 * p["makespan_s"]
        assert p["energy_kwh"] == pytest.approx((2 * at_all_times + 8 * p["utilisation"] * at_all_times) / 3.6e6, rel=1e-3)
    assert "kWh" in sim(*words)
    assert "energy_kwh" not in compare(sim, "--jobs", 5)["cost"]
    assert "of a busy one no fewer" in sim("--site", _site(tmp_path, "clusters:\n  - {name: a, watts: {idle: 5}}\n"), code=2)


@pytest.mark.parametrize("load", [0.4, 2])
def test_a_load_that_is_asked_for(sim, tmp_path, load):
    file = tmp_path / "jobs.csv"
    sim(HPC2N, "--load", load, "--first", 300, "--input", 0, "--compare", "fcfs", "--write-jobs", file)
    with open(file, encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    work = sum(int(row["processors"]) * (float(row["ended_s"]) - float(row["started_s"])) for row in rows)
    assert work / 240 / max(float(row["submitted_s"]) for row in rows) == pytest.approx(load, rel=1e-3)
    assert "--load and --hurry" in sim(HPC2N, "--load", load, "--hurry", 2, code=2)
    assert "all jobs come at once" in sim(os.path.join(DATA, "workflows", "epigenomics-1seq.json"), "--load", load, code=2)


def test_mistakes_are_told(sim, tmp_path):
    bad = tmp_path / "bad.swf"
    bad.write_text("; MaxProcs: 4\n1 0 0 60 1 -1 -1 1 60 -1 1 1 1 1 -1 1 -1 -1\n2 5 0 x 1\n")
    assert f"{bad}:3: field 4 (run time) is \"x\"" in sim(bad, code=2)
    bad.write_text("{\n \"workflow\": [}\n")
    assert f"{bad}:2: this is no JSON" in sim(bad, code=2)
    site = tmp_path / "site.yaml"
    site.write_text("clusters:\n  - name: a\n    speed: 1000\n")
    assert f"{site}:3: speed must be from 0.01 to 100" in sim("--site", site, code=2)
    assert "no agent has that" in sim(HPC2N, "--site", _small(tmp_path), code=2)
    assert "none of cost, blind" in sim("--compare", "best", code=2)
    assert "No such file" in sim(tmp_path / "none.swf", code=2)
    assert "a size is needed" in sim("--cache", "big", code=2)
    assert "--hurry is for traces" in sim("--hurry", 2, code=2)
    assert "--jobs is for jobs that are generated" in sim(HPC2N, "--jobs", 5, code=2)
    for plot in tmp_path / "none" / "p.svg", tmp_path:
        assert f"cannot write {plot}: " in sim("--jobs", 50, "--plot", plot, code=1)
    assert "easy: it knows nothing of files" in sim(HPC2N, "--compare", "easy", code=2)
    assert "easy: it knows nothing of failures" in sim("--jobs", 5, "--input", 0, "--mtbf", "1h", "--compare", "easy", code=2)
    assert "the agents fail so often" in sim("--jobs", 5, "--mtbf", "1s", code=1)


def _small(tmp_path):
    site = tmp_path / "small.yaml"
    site.write_text("clusters:\n  - {name: hpc2n, cpus: 2}\n")
    return site


CLOUD = "clusters:\n  - {{name: pool, agents: {n}, cpus: 128, memory: 1TiB, price: 4{more}}}\n"


def test_nodes_that_come_and_go(sim, tmp_path):
    """Two real logs on the nodes that the wishlist starts: hardly later than on a fixed pool of as many, for half of its hours. Spot nodes
    are taken away, and all jobs end."""
    words = ["--input", 0, f"pool={HPC2N}", f"pool={WAGAP}"]
    fixed = compare(sim, "--site", _site(tmp_path, CLOUD.format(n=19, more="")), *words)["cost"]
    wished = compare(sim, "--site", _site(tmp_path, CLOUD.format(n=19, more=", cloud: {boot: 2m}")), *words)["cost"]
    hours = 19 * fixed["makespan_s"] / 3600
    assert fixed["nodes"] == {"hours": pytest.approx(hours, rel=1e-3), "cost": pytest.approx(4 * hours, rel=1e-3), "started": 0, "interrupted": 0}
    assert wished["nodes"]["hours"] < 0.5 * fixed["nodes"]["hours"] and wished["nodes"]["started"] > 19
    assert wished["nodes"]["cost"] == pytest.approx(4 * wished["nodes"]["hours"], rel=0.01)  # whole minutes are paid
    assert wished["turnaround_s"]["mean"] < 1.01 * fixed["turnaround_s"]["mean"] and wished["wait_s"]["mean"] < 60
    spot = "clusters:\n  - {name: a, agents: 8, cpus: 16, price: 1, cloud: {boot: 2m, period: 1h, interrupted: 1h}}\n"
    taken = compare(sim, "--site", _site(tmp_path, spot), "--jobs", 200, "--input", 0)["cost"]  # all jobs end, or it fails
    assert taken["nodes"]["interrupted"] > 0 and taken["attempts_lost"] > 0
    assert taken["nodes"]["cost"] > taken["nodes"]["hours"]  # by whole hours
    table = sim("--site", _site(tmp_path, CLOUD.format(n=2, more=", cloud: {boot: 2m}")), "--jobs", 20, "--input", 0)
    assert "INTERRUPTED" in table
    for more, word in ((", cloud: {idle: 5m}", "needs \"boot\""), (", mtbf: 1d, cloud: {boot: 1m}", "no mtbf"), (", cloud: {boots: 1m}", "boots")):
        assert word in sim("--site", _site(tmp_path, CLOUD.format(n=2, more=more)), code=2)


def test_budgets_hold(sim, build, tmp_path):
    """Nodes that cost more than an hour or a month may would be an error of its own (as it is of an hour that pays for no node)."""
    site = _site(tmp_path, "clusters:\n  - {name: a, agents: 8, cpus: 16, price: 1, cloud: {boot: 2m, period: 10m}}\n"
                 "  - {name: b, agents: 8, cpus: 16, price: 0.3, cloud: {boot: 2m, period: 1h, interrupted: 3h}}\n"
                 "provision: {budget_hour: 2.5, budget_month: 3, max_nodes: 6}\n")
    codes = set()
    for seed in range(1, 7):
        done = subprocess.run([os.path.join(build, "bin", "drover"), "sim", "--site", site, "--jobs", "300", "--input", "0", "--seed", str(seed), "--json"],
                              capture_output=True, text=True, timeout=300, check=False)
        if done.returncode == 0:
            assert json.loads(done.stdout)["policies"][0]["nodes"]["cost"] <= 3
        else:
            assert "jobs never started, because the budget allows no more nodes" in done.stderr
        codes.add(done.returncode)
    assert codes == {0, 1}
    for more, word in (("budget_hour: -1", "budget_hour must be from 0"), ("max_nodes: 0", "max_nodes must be from 1"), ("min: 1", "min")):
        assert word in sim("--site", _site(tmp_path, CLOUD.format(n=2, more="") + f"provision: {{{more}}}\n"), code=2)
