"""Gold's commands: the walk through its user guide, with its words, over the bank; and who may not."""
import os
import re

import pytest

from drover import free_port
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
    late = gold("gstatement", "-p", "chemistry", "-s", "2030-01-01")
    assert re.search(r"Beginning Balance: +360000\n(.*\n)+Ending Balance: +360000\n", late)
    gold("gtransfer", "--fromProject", "chemistry", "--toProject", "biology", "10000")
    gold("gwithdraw", "-p", "biology", "-z", "1000", "-d", "Grid Tax")
    assert gold("gbalance", "biology", "--total", "--quiet") == "45005\n"  # the 5 of 2040 went first
    assert gold("greserve", "-J", "two", *use, "-t", "10") and gold("greserve", "--replace", "-J", "two", *use, "-t", "20")
    assert gold("grmres", "-n", "two") == "Successfully deleted 1 Reservation\n"
    assert "which is no" not in gold("gchargejob", "-J", "three", *use, "-t", "1")
    assert instance.json("bank", "balance", "chemistry")["balance"] == 360000 - 10000 - 16


def test_each_has_help_and_what_is_wrong_is_named(gold):
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
    assert "--qos has no equivalent" in gold("gquote", "-p", "p", "-t", "1", "-Q", "high").err


def test_a_user_sees_and_does_what_his_role_lets_him(instance, gold):
    gold("gmkproject", "-u", "bob@test", "p")
    gold("gdeposit", "-p", "p", "100")
    gold("gcharge", "-J", "j", "-p", "p", "-t", "1")
    token = instance.json("token", "user", "--name", "bob@test")["token"]
    bob = Commands(gold.folder, {"PATH": gold.env["PATH"], "DROVER_TOKEN": token, "DROVER_SERVER": f"https://127.0.0.1:{gold.port}"}, instance.work)
    assert bob("mybalance").splitlines()[-1].split() == ["p", "99"]
    for call in (("gdeposit", "-p", "p", "5"), ("gwithdraw", "-p", "p", "5"), ("gmkproject", "q"), ("gcharge", "-J", "x", "-p", "p", "-t", "1", "-u", "root@local"),
                 ("grefund", "-J", "j"), ("gchproject", "--addUsers", "dave", "p")):
        assert bob(*call, code=1).err, call
    assert "Balance" not in bob("gstatement", "-p", "p") and "Balance" in gold("gstatement", "-p", "p")
    assert gold("gbalance", "p", "--total", "--quiet") == "99\n"
