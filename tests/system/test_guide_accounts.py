"""The guide "Accounts, quotes, reservations", typed as it stands."""
import os
import re
import subprocess

import agents
from drover import LIMIT

GUIDE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "guides", "accounts.md")


def test_the_guide(instance):
    with open(GUIDE, encoding="utf-8") as f:
        text = f.read()
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(re.search(r"^```yaml\n(.*?)^```", text, re.M | re.S)[1])
    instance.server()
    agents.start(instance, "jobs_max: 4\ncpus: 4\n")
    agents.queues(instance, 1)
    bin_folder = os.path.dirname(instance.program("drover"))
    env = {**instance.env, "PATH": f"{bin_folder}:{bin_folder}/gold:/usr/bin:/bin"}
    said = []
    for script in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        p = subprocess.run(["bash", "-ec", script], cwd=instance.work, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=LIMIT, check=False)
        assert p.returncode == 0, script + p.stdout
        said.append(p.stdout)
    assert "would reserve 600 credits" in said[2]
    assert "grant 17" in said[3] and "charge" in said[3] and "withdraws what it cost" in said[3]
    assert "course" in said[4]
    assert "reserves the best place" in said[5] and "prefer = cost" in said[5]
    assert "ask for a deposit" in said[8] and "charge" in said[9]
    assert "the first machine" in said[10] and "colony is inactive" in said[10]
    assert "left in May" in said[11] and "not needed any more" in said[12] and "canceled" in said[12]
    assert instance.json("bank", "quotes")["quotes"] and "not needed any more" not in instance.cli("bank", "quotes")
    account = instance.json("bank", "balance", "physics")
    assert account["charged"] > 2 and account["held"] == 0
    assert "physics" in instance.read("bill.html") and "physics" in said[6]
