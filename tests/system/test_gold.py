"""Gold's commands: the walk through its user guide, with its words, over the bank; and who may not."""
import os
import re

import pytest

import agents
from drover import free_port, sh
from slurm_commands import Commands

RATES = "bank:\n  rates: [{charge: Cpus * WallSeconds}]\n"


@pytest.fixture
def gold(instance):
    os.makedirs(instance.dir, mode=0o700, exist_ok=True)
    with open(os.path.join(instance.dir, "droverd.yaml"), "w", encoding="utf-8") as f:
        f.write(RATES)
    port = free_port()
    instance.server("--api-listen", f"127.0.0.1:{port}")
    folder = os.path.join(instance.build, "bin", "gold")
    commands = Commands(folder, {**instance.env, "PATH": folder + ":" + instance.env["PATH"]}, instance.work)
    commands.port = port
    return commands


def cells(text):
    """The rows below the titles and the dashes."""
    return [re.split(r"  +", line.strip()) for line in text.splitlines()[2:]]


def test_the_walk_of_golds_guide(instance, gold):
    assert gold("gmkproject", "-d", "Biology Department", "-u", "amy,bob", "biology") == \
        "Successfully created 1 Project\nAuto-generated Account biology\n"
    assert gold("gmkproject", "-d", "again", "biology", code=1).err.startswith("gmkproject: biology exists")
    gold("gmkproject", "chemistry")
    assert gold("gchproject", "--addUsers", "amy,dave", "chemistry") == "Successfully created 2 ProjectUsers\n"
    assert gold("gchproject", "--delUsers", "dave", "chemistry") == "Successfully deleted 1 ProjectUsers\n"
    assert gold("gmkaccount", "-p", "chemistry", "-n", "colony", "-u", "MEMBERS") == "Successfully created Account chemistry.colony\n"
    assert cells(gold("glsproject"))[0] == ["biology", "True", "amy@local,bob@local", "ANY", "Biology Department"]
    assert gold("glsproject", "--show", "Name", "--quiet") == "biology\nchemistry\nchemistry.colony\n"
    assert gold("glsuser", "--raw", "--show", "Name,Active", "a*") == "Name|Active\namy@local|True\n"
    assert gold("gdeposit", "-s", "2040-01-01", "-e", "2040-02-01", "-z", "5", "-p", "biology") == "Successfully deposited 5 credits into account biology\n"
    gold("gdeposit", "-L", "1000", "-d", "grant 17", "-p", "chemistry", "360000")
    gold("gdeposit", "-h", "-z", "10", "-a", "biology")
    assert cells(gold("gbalance", "-u", "amy")) == [["biology", "biology", "36000", "0", "36000", "0", "36000"],
                                                    ["chemistry", "chemistry", "360000", "0", "360000", "1000", "361000"]]
    assert gold("gbalance", "-p", "chemistry", "--total", "--available", "--quiet") == "361000\n"
    assert gold("gbalance", "-p", "biology", "--total", "-h") == "The account balance is 10.00 hours\n"
    assert sorted(r[6] for r in cells(gold("glsalloc", "-a", "biology"))) == ["False", "True"]
    number = cells(gold("glsalloc", "-p", "chemistry"))[0][0]
    assert gold("gchalloc", "-L", "0", "-e", "infinity", "-i", number) == "Successfully modified 1 Allocation\n"
    use = ("-p", "chemistry", "-u", "amy", "-m", "colony", "-P", "16")
    assert gold("gquote", *use, "-t", "3600", "--guarantee").startswith("Successfully quoted 57600 credits\nCreated Quotation ")
    quote = cells(gold("glsquote", "-u", "amy", "-m", "colony"))[0]
    assert (quote[1], quote[2], quote[3]) == ("57600", "chemistry", "amy@local")
    assert gold("greserve", "-J", "PBS.1234.0", *use, "-t", "3600", "-q", quote[0]) == "Successfully reserved 57600 credits for job PBS.1234.0\n"
    assert cells(gold("gbalance", "chemistry"))[0][2:5] == ["360000", "57600", "302400"]
    reservation = cells(gold("glsres", "-n", "PBS.1234.0"))[0]
    assert reservation[1:3] == ["PBS.1234.0", "57600"]
    assert gold("gchres", "-e", "2031-01-01", "-r", reservation[0]) == "Successfully modified 1 Reservation\n"
    assert gold("gcharge", "-J", "PBS.1234.0", *use, "-t", "1234", "-X", "WallDuration=1234") == \
        "Successfully charged job PBS.1234.0 for 19744 credits\n1 reservations were removed\n"
    assert cells(gold("glsres")) == []
    assert gold("gbalance", "chemistry", "--total", "--quiet") == "340256\n"
    assert gold("gusage", "chemistry").splitlines()[-1].split() == ["amy@local", "19744"]
    assert [r[2:5] + r[7:8] for r in cells(gold("glstxn", "-O", "Job", "-J", "PBS.1234.0"))] == [["Charge", "PBS.1234.0", "chemistry", "-19744"]]
    assert gold("grefund", "-z", "19745", "-J", "PBS.1234.0", code=1).err
    assert gold("grefund", "-J", "PBS.1234.0") == "Successfully refunded 19744 credits for job PBS.1234.0\n"
    assert "all of it was given back" in gold("grefund", "-J", "PBS.1234.0", code=1).err
    said = gold("gstatement", "-p", "chemistry")
    assert re.search(r"Beginning Balance: +0\n-+ -+\nTotal Credits: +379744\nTotal Debits: +-19744\n-+ -+\nEnding Balance: +360000\n", said)
    assert re.search(r"Job +Charge +PBS.1234.0 +amy@local +colony +-19744 ", said)
    instance.cli("bank", "charge", "chemistry", "1", "--reason", "beam time")
    instance.cli("bank", "refund", "chemistry", "1")
    assert re.search(r"Job +Charge +root@local +-1 ", gold("gstatement", "-p", "chemistry"))  # a reason is no job
    late = gold("gstatement", "-p", "chemistry", "-s", "2030-01-01")
    assert re.search(r"Beginning Balance: +360000\n(.*\n)+Ending Balance: +360000\n", late)
    gold("gtransfer", "--fromProject", "chemistry", "--toProject", "biology", "10000")
    gold("gwithdraw", "-p", "biology", "-z", "1000", "-d", "Grid Tax")
    assert gold("gbalance", "biology", "--total", "--quiet") == "45005\n"  # the 5 of 2040 went first
    assert gold("greserve", "-J", "two", *use, "-t", "10") and gold("greserve", "--replace", "-J", "two", *use, "-t", "20")
    assert gold("grmres", "-n", "two") == "Successfully deleted 1 Reservation\n"
    assert "which is no" not in gold("gchargejob", "-J", "three", *use, "-t", "1")
    assert instance.json("bank", "balance", "chemistry")["balance"] == 360000 - 10000 - 16


def test_machines(instance, gold):
    """Registered, changed, listed and removed, with Gold's words; agents are listed while none is registered."""
    assert cells(gold("glsmachine")) == []
    assert gold("gmkmachine", "-d", "Linux Cluster", "--arch", "ia64", "--opsys", "linux", "colony") == "Successfully created 1 Machine\n"
    assert gold("gmkmachine", "-I", "-m", "blue") == "Successfully created 1 Machine\n"
    assert "already" in gold("gmkmachine", "blue", code=1).err
    assert gold("glsmachine", "--raw", "--quiet") == "blue|False|||\ncolony|True|ia64|linux|Linux Cluster\n"
    assert gold("glsmachine", "-I", "--quiet", "--show", "Name") == "blue\n" and gold("glsmachine", "-A", "--quiet", "--show", "Name") == "colony\n"
    gold("gmkproject", "p")
    gold("gdeposit", "-p", "p", "100")
    assert "inactive" in gold("gquote", "-p", "p", "-m", "blue", "-t", "1", code=1).err
    assert "no machine" in gold("gcharge", "-J", "j", "-p", "p", "-m", "green", "-t", "1", code=1).err
    assert gold("gchmachine", "-A", "-d", "IBM SP2", "blue") == "Successfully modified 1 Machine\n"
    gold("gquote", "-p", "p", "-m", "blue", "-t", "1")
    assert gold("glsmachine", "--raw", "--quiet", "b*") == "blue|True|||IBM SP2\n"
    assert gold("grmmachine", "blue") == "Successfully deleted 1 Machine\n"
    assert "no machine" in gold("grmmachine", "blue", code=1).err and gold("grmmachine", "-m", "colony")
    assert gold("gchmachine", code=1).err


def test_projects_are_closed(gold):
    gold("gmkproject", "p")
    gold("gmkproject", "q")
    gold("gdeposit", "-p", "p", "100")
    assert "has a balance of 100" in gold("gchproject", "-I", "p", code=1).err
    gold("gwithdraw", "-p", "p", "100")
    assert gold("gchproject", "-I", "p") == "Successfully modified 1 Project\n"
    assert "give one of" in gold("gchproject", "-A", "-I", "p", code=1).err
    assert gold("glsproject", "--raw", "--quiet", "--show", "Name,Active") == "p|False\nq|True\n"
    assert gold("glsproject", "-I", "--quiet", "--show", "Name") == "p\n" and gold("glsaccount", "-A", "--quiet", "--show", "Name") == "q\n"
    assert "is closed" in gold("gdeposit", "-p", "p", "100", code=1).err
    assert gold("gchproject", "-A", "p") == "Successfully modified 1 Project\n"
    gold("gdeposit", "-p", "p", "100")


def test_a_job_of_drovers_is_refunded(instance, gold):
    agents.start(instance, "jobs_max: 4\nkill_grace: 1s\n")
    agents.queues(instance, 1)
    gold("gmkproject", "-u", "root@local", "p")
    gold("gdeposit", "-p", "p", "100000")
    request = instance.run(sh("sleep 1.1", accounting_group="p"))
    charged = 100000 - instance.json("bank", "balance", "p")["balance"]
    assert charged > 0
    assert f"less than {charged + 1}" in gold("grefund", "-z", str(charged + 1), "-J", f"{request}.0", code=1).err
    assert gold("grefund", "-J", f"{request}.0") == f"Successfully refunded {charged} credits for job {request}.0\n"
    assert "all of it was given back" in gold("grefund", "-J", f"{request}.0", code=1).err
    assert [r[2:4] for r in cells(gold("glstxn", "-O", "Job", "-J", f"{request}.0"))] == [["Charge", f"{request}.0"], ["Refund", f"{request}.0"]]


def test_each_has_help_and_what_is_wrong_is_named(instance, gold):
    for name in os.listdir(gold.folder):
        assert gold(name, "--help").startswith(f"Usage: {name} ")
        assert gold(name, "-?") == gold(name, "--help")
        assert gold(name, "--version").startswith("Gold version")
        assert "--nonsense" in gold(name, "--nonsense", code=1).err
    gold("gmkproject", "p")
    gold("gdeposit", "-p", "p", "100")
    for call in (("gdeposit", "-p", "p", "-z", "-5"), ("gdeposit", "-p", "p"), ("gdeposit", "-p", "none", "5"), ("gdeposit", "-p", "p", "1e3"),
                 ("gwithdraw", "-p", "p", "101"), ("gquote", "-p", "p"), ("gquote", "-p", "p", "-t", "x"), ("gcharge", "-J", "j"),
                 ("gcharge", "-J", "j", "-p", "p", "-t", "1000"), ("gcharge", "-J", "j", "-t", "1", "-q", "1"), ("grmres", "-r", "77"),
                 ("grmres", "-n", "none"), ("gchalloc", "-i", "99"), ("gbalance", "--show", "Weather"), ("gmkproject", "-m", "colony", "q"),
                 ("gmkaccount", "-n", "x", "-u", "MEMBERS,-amy"), ("gstatement",), ("gstatement", "-p", "p", "-s", "yesterday-ish")):
        assert gold(*call, code=1).err, call
    assert gold("gbalance", "p", "--total", "--quiet") == "100\n"
    gold("gquote", "-p", "p", "-t", "1", "-Q", "high", "--guarantee")
    assert [q["qos"] for q in instance.json("bank", "quotes")["quotes"]] == ["high"]
    assert "--disk has no equivalent" in gold("gquote", "-p", "p", "-t", "1", "-D", "10").err


def test_a_user_sees_and_does_what_his_role_lets_him(instance, gold):
    gold("gmkproject", "-u", "bob@test", "p")
    gold("gdeposit", "-p", "p", "100")
    gold("gcharge", "-J", "j", "-p", "p", "-t", "1")
    token = instance.json("token", "user", "--name", "bob@test")["token"]
    bob = Commands(gold.folder, {"PATH": gold.env["PATH"], "DROVER_TOKEN": token, "DROVER_SERVER": f"https://127.0.0.1:{gold.port}"}, instance.work)
    assert bob("mybalance").splitlines()[-1].split() == ["p", "99"]
    for call in (("gdeposit", "-p", "p", "5"), ("gwithdraw", "-p", "p", "5"), ("gmkproject", "q"), ("gcharge", "-J", "x", "-p", "p", "-t", "1", "-u", "root@local"),
                 ("grefund", "-J", "j"), ("gmkmachine", "m"), ("gchmachine", "-I", "m"), ("grmmachine", "m"), ("gchproject", "--addUsers", "dave", "p")):
        assert bob(*call, code=1).err, call
    assert "Balance" not in bob("gstatement", "-p", "p") and "Balance" in gold("gstatement", "-p", "p")
    assert gold("gbalance", "p", "--total", "--quiet") == "99\n"
