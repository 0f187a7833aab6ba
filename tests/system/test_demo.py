"""The demo, with fewer files than usual, and what it leaves behind."""
import glob
import os
import re
import signal
import subprocess

from drover import wait_until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def test_demo(instance):
    p = subprocess.run([os.path.join(ROOT, "tools/demo/demo"), "--build", instance.build, "--files", "1000"],
                       env=instance.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    assert p.returncode == 0, p.stdout
    assert "request 1: 25 jobs" in p.stdout
    assert "The merged result is the same as the one computed directly." in p.stdout
    rows = re.findall(r"^(\S+/\S+) +(\d+) +(\d+)$", p.stdout, re.M)
    assert len(rows) == 2, "both agents should have had work:\n" + p.stdout
    assert sum(int(r[2]) for r in rows) == 1000
    assert not [n for n in os.listdir(instance.base) if n.startswith("drover-demo-")]


def test_demo_cleans_up_when_interrupted(instance):
    with open(os.path.join(instance.base, "demo.log"), "wb") as log:
        p = subprocess.Popen([os.path.join(ROOT, "tools/demo/demo"), "--build", instance.build], env=instance.env,
                             stdout=log, stderr=log)
    # its server runs: it is in the middle
    wait_until(lambda: glob.glob(f"{instance.base}/drover-demo-*/up.log") or p.poll() is not None)
    p.send_signal(signal.SIGINT)
    assert p.wait(90) in (130, 0)
    assert not [n for n in os.listdir(instance.base) if n.startswith("drover-demo-")]
