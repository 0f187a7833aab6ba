"""The guide "Add your cluster in five minutes", typed as it stands, on a real Slurm."""
import os
import re
import subprocess

import agents
from drover import LIMIT, wait_until

pytest_plugins = ["batch_systems"]

GUIDE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "guides", "add-your-cluster.md")


def blocks(language):
    with open(GUIDE, encoding="utf-8") as f:
        return re.findall(rf"^```{language}\n(.*?)^```", f.read(), re.M | re.S)


def test_a_cluster_is_added(instance, alpha):
    """Only the server's folder is nobody's home."""
    up, token, start, look, submit = blocks("sh")
    file = blocks("yaml")[0]
    assert re.match(r"drover up\s+#", up) and "~/.local/state/drover" in up and start.startswith("(umask 077; cat > ~/drover-cluster/token) ")
    del instance.env["DROVER_DIR"]
    instance.env["SLURM_CONF"] = alpha.conf
    instance.dir = os.path.join(instance.base, ".local", "state", "drover")

    def typed(script, stdin=""):
        p = subprocess.run(["bash", "-ec", script], cwd=instance.work, env=instance.env, input=stdin, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
        assert p.returncode == 0, p.stdout
        return p.stdout

    instance.up()
    line = typed(token).splitlines(True)[-1]
    assert re.fullmatch(r"drover-agent-token\.v1\.\S+\n", line)
    folder = os.path.join(instance.base, "drover-cluster")
    os.mkdir(folder)
    with open(os.path.join(folder, "agent.yaml"), "w", encoding="utf-8") as f:
        f.write(file.replace("/home/me", instance.base))
    keep, run = start.splitlines()
    typed(keep, line)
    assert os.stat(os.path.join(folder, "token")).st_mode & 0o777 == 0o600
    program, *args = run.replace("~", instance.base).split()
    agent = instance.start(program, *args)
    agents.offering(instance, "mycluster")
    assert re.search(r"^mycluster ", typed(look), re.M)
    assert "100 jobs" in typed(submit)
    for n in range(100):
        assert re.fullmatch(rf"{n} on \S+\n", instance.read(f"out.{n}"))
    agent.kill()
    instance.start(program, *args[:2])
    wait_until(lambda: len(instance.agents("connected")) == 2)
    assert alpha.jobs("completed")
