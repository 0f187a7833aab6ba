"""The guide "From a dataset to results", typed as it stands."""
import glob
import os
import re
import subprocess

from drover import LIMIT

GUIDE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "guides", "from-dataset-to-results.md")


def blocks(language):
    with open(GUIDE, encoding="utf-8") as f:
        return re.findall(rf"^```{language}\n(.*?)^```", f.read(), re.M | re.S)


def test_the_guide(instance):
    up, scan, dry, submit, again, results, sums, composite = blocks("sh")
    description, = blocks("text")
    xml, = blocks("xml")
    rdl, = blocks("yaml")
    assert up.startswith("drover up ")
    instance.up()
    instance.write("count.sub", description)
    instance.write("count.xml", xml)
    instance.write("hist.rdl.yaml", rdl)

    def typed(script):
        p = subprocess.run(["bash", "-ec", script], cwd=instance.work, env=instance.env, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=2 * LIMIT, check=False)
        assert p.returncode == 0, p.stdout
        return p.stdout

    files = [p for p in glob.glob("/usr/include/linux/**/*.h", recursive=True) if os.path.isfile(p) and os.path.getsize(p) < 100000]
    lines = size = 0
    for path in files:
        with open(path, "rb") as f:
            data = f.read()
        lines += data.count(b"\n")
        size += len(data)
    assert len(files) > 100 and re.search(r"^\d+ ", typed(scan), re.M)
    assert f"{len(files)} files" in typed(dry)
    assert f"{lines} lines" in typed(submit)
    assert "nothing has failed" in typed(again)
    assert len(re.findall(r"^file:\S+/counts/lines\.\d+$", typed(results), re.M)) == 3
    assert f"{lines} lines" in typed(sums)
    assert len(glob.glob(os.path.join(instance.work, "sched*"))) == 3  # with the report of the submit file
    said = typed(composite)
    assert "merge both: lines and bytes" in said and f"{lines + size} lines and bytes" in said
