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
    gold("gchmachine", "-d", "", "blue")
    assert gold("glsmachine", "--raw", "--quiet", "b*") == "blue|True|||\n"
    assert gold("grmmachine", "blue") == "Successfully deleted 1 Machine\n"
    assert "no machine" in gold("grmmachine", "blue", code=1).err and gold("grmmachine", "-m", "colony")
    assert gold("gchmachine", code=1).err


def test_users(instance, gold):
    """Registered, changed, listed and removed; an inactive one gets no promises, and no jobs that a project pays for."""
    gold("gmkproject", "-u", "amy,root@local", "p")
    gold("gdeposit", "-p", "p", "1000")
    assert gold("gmkuser", "-d", "Amy & co", "amy") == "Successfully created 1 User\n"
    assert gold("gmkuser", "-I", "-u", "zoe@far") == "Successfully created 1 User\n"
    assert "already" in gold("gmkuser", "amy", code=1).err and "NAME@DOMAIN" in gold("gmkuser", "a b", code=1).err
    assert "--emailAddress has no equivalent" in gold("gmkuser", "-E", "e@x", "eve").err
    assert gold("glsuser", "--raw", "--quiet") == "amy@local|True|p|Amy & co\nroot@local|True|p|\neve@local|True||\nzoe@far|False||\n"
    assert gold("glsuser", "-I", "--quiet", "--show", "Name") == "zoe@far\n"
    use = ("-p", "p", "-m", "colony", "-t", "1")
    gold("greserve", "-J", "before", *use, "-u", "amy")
    assert gold("gchuser", "-I", "amy") == "Successfully modified 1 User\n"
    for call in (("gquote", *use, "-u", "amy"), ("greserve", "-J", "j", *use, "-u", "amy")):
        assert "amy@local is inactive" in gold(*call, code=1).err
    gold("gcharge", "-J", "before", *use, "-u", "amy")
    gold("gchuser", "-I", "-d", "left", "amy")
    gold("gmkuser", "-I", "root@local")
    assert "root@local is inactive in the bank" in instance.cli("submit", "-", stdin=sh("true", accounting_group="p"), code=None).err
    assert gold("gchuser", "-A", "amy") and gold("gquote", *use, "-u", "amy")
    assert gold("grmuser", "amy") == "Successfully deleted 1 User\n" and "no user" in gold("grmuser", "amy", code=1).err
    assert "drover token user" in gold("gchpasswd", "amy", code=1).err


def test_quotes_allocations_and_accounts_end(instance, gold):
    gold("gmkproject", "p")
    gold("gmkaccount", "-p", "p", "-n", "x")
    gold("gdeposit", "-p", "p", "1000")
    gold("gdeposit", "-p", "p", "-z", "10", "-s", "2040-01-01", "-e", "2040-02-01")
    use = ("-p", "p", "-m", "colony", "-t", "10")
    gold("gquote", *use, "--guarantee", "-d", "for May")
    number, = [r[0] for r in cells(gold("glsquote"))]
    assert gold("glsquote", "--raw", "--quiet", "--show", "Description,Amount") == "for May|10\n"
    assert gold("gchquote", "-e", "2031-01-01", "-d", "for June", "-q", number) == "Successfully modified 1 Quotation\n"
    assert gold("glsquote", "--raw", "--quiet", "--show", "EndTime,Description,Amount") == "2031-01-01 00:00:00|for June|10\n"
    assert gold("gchquote", "-q", number, code=1).err and gold("gchquote", "-s", "now", "-q", number, code=1).err
    assert "later than now" in gold("gchquote", "-e", "2020-01-01", number, code=1).err
    gold("greserve", "-J", "j", *use, "-q", number)
    assert "a lien holds quote" in gold("grmquote", number, code=1).err
    gold("grmres", "-n", "j")
    assert gold("grmquote", number) == "Successfully deleted 1 Quotation\n" and cells(gold("glsquote")) == []
    assert "no quote" in gold("grmquote", number, code=1).err and gold("greserve", "-J", "k", *use, "-q", number, code=1).err
    gold("greserve", "-J", "j", *use)
    now, later = [r[0] for r in cells(gold("glsalloc", "-p", "p"))][::-1] if cells(gold("glsalloc", "-p", "p"))[0][2].startswith("2040") else \
        [r[0] for r in cells(gold("glsalloc", "-p", "p"))]
    assert gold("grmalloc", now) == "Successfully ended 1 Allocation\n" and gold("grmalloc", "-i", later) == "Successfully ended 1 Allocation\n"
    assert "no allocation" in gold("grmalloc", later, code=1).err
    assert "has 0 to spend" in gold("greserve", "-J", "k", *use, code=1).err
    gold("gcharge", "-J", "j", "-t", "5")  # what was reserved in time is paid
    assert "is open" in gold("grmproject", "p", code=1).err
    assert gold("grmaccount", "p.x").startswith("Successfully closed 1 Account")
    assert instance.json("bank", "balance", "p")["balance"] == 995  # ended, and gone with the next deposit, or when it closes
    gold("gdeposit", "-p", "p", "7")
    assert instance.json("bank", "balance", "p")["balance"] == 7
    assert "has a balance of 7" in gold("grmproject", "p", code=1).err
    last = cells(gold("glsalloc", "-p", "p"))[0][0]
    gold("grmalloc", last)
    assert gold("grmproject", "p").startswith("Successfully closed 1 Project") and gold("grmproject", "p", code=1).err
    assert gold("glsproject", "-I", "--quiet", "--show", "Name") == "p\np.x\n"
    assert [m["what"] for m in instance.json("bank", "statement", "p")["movements"]] == ["deposit", "deposit", "withdraw", "charge", "withdraw", "deposit", "withdraw"]


def test_reservations_of_the_same_name(gold):
    """A member of a project can name a reservation after another one's job: it does not take that one's place."""
    gold("gmkproject", "-u", "amy,bob", "p")
    gold("gdeposit", "-p", "p", "1000")
    use = ("-J", "j", "-p", "p", "-m", "colony", "-t", "10")
    gold("greserve", *use, "-u", "amy")
    gold("greserve", *use, "-u", "bob")
    for call in (("gcharge", *use), ("gcharge", *use, "-u", "eve"), ("grmres", "-n", "j")):
        assert "2 reservations are for a job j" in gold(*call, code=1).err
    gold("gcharge", *use, "-u", "amy")
    assert gold("glsres", "--raw", "--quiet", "--show", "User") == "bob@local\n"
    assert gold("grmres", "-n", "j") == "Successfully deleted 1 Reservation\n"


def test_jobs_are_listed_and_have_no_records(gold):
    gold("gmkproject", "p")
    gold("gmkproject", "q")
    for project in ("p", "q"):
        gold("gdeposit", "-p", project, "1000")
    gold("gcharge", "-J", "one", "-p", "p", "-u", "amy", "-m", "colony", "-t", "10")
    gold("grefund", "-J", "one", "-z", "4")
    gold("greserve", "-J", "two", "-p", "q", "-u", "bob", "-m", "blue", "-t", "20")
    seen = ("--raw", "--quiet", "--show", "JobId,User,Project,Machine,Stage,Reserved,Charge,Refunded")
    one, two = "one|amy@local|p|colony|Refund|0|10|4\n", "two|bob@local|q|blue|Reserve|20|0|0\n"
    assert gold("glsjob", *seen) == one + two and gold("glsjob", "-J", "one", *seen) == one and gold("glsjob", "two", *seen) == two
    assert gold("glsjob", "-p", "q", *seen) == two and gold("glsjob", "-m", "col*", *seen) == one and gold("glsjob", "none", *seen) == ""
    for call in (("gmkjob", "-J", "x", "-p", "p", "-u", "amy", "-S", "Completed"), ("gchjob", "-J", "one", "-d", "text"), ("grmjob", "one")):
        assert re.fullmatch(call[0] + ": a job has no record .* glsjob lists it", gold(*call, code=1).err.splitlines()[-1])
    assert gold("glsjob", *seen) == one + two


def test_the_shell(gold):
    """Lines are the commands; what is wrong is named, and the lines behind it are run."""
    assert gold("goldsh", "Project", "Create", "Name=p", "Description=a b") == "Successfully created 1 Project\nAuto-generated Account p\n"
    said = gold("goldsh", stdin="""# the walk, in short
Account Deposit Name=p Amount=1000
project query Show:=Name,Description Quiet:=True
Job Quote Project=p WallDuration=10 Guarantee:=True Description='for "May"'
Quotation Query Show:=Amount,Description Quiet:=True Raw:=True
Machine Create Name=colony Active=False OpSys=linux

Machine Query Quiet:=True Raw:=True
Job Reserve JobId=j Project=p WallDuration=5
Job Charge JobId=j WallDuration=4
Account Balance Name==p Total:=True Quiet:=True
quit
Project Create Name=never
""")
    assert said.splitlines() == ["Successfully deposited 1000 credits into account p", "p  a b", "Successfully quoted 10 credits", said.splitlines()[3], '10|for "May"',
                                 "Successfully created 1 Machine", "colony|False||linux|", "Successfully reserved 5 credits for job j",
                                 "Successfully charged job j for 4 credits", "1 reservations were removed", "996"]
    said = gold("goldsh", code=1, stdin="Project\nCake Bake\nProject Query Name~p\nProject Query Weather==fair\nProject Query Active==x\nProject Query 'a\nMachine Delete Name=colony\n")
    assert said == "Successfully deleted 1 Machine\n"
    for part in ("OBJECT ACTION", "Cake Bake", "FIELD=VALUE", "Weather", "True or False", "not closed"):
        assert part in said.err
    assert gold("goldsh", "Project", "Delete", "Name=p", code=1).err and gold("goldsh", stdin="") == ""


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
    number, = gold("glsalloc", "--quiet", "--show", "Id").split()
    for call in (("gdeposit", "-p", "p", "-z", "-5"), ("gdeposit", "-p", "p"), ("gdeposit", "-p", "none", "5"), ("gdeposit", "-p", "p", "1e3"),
                 ("gwithdraw", "-p", "p", "101"), ("gquote", "-p", "p"), ("gquote", "-p", "p", "-t", "x"), ("gcharge", "-J", "j"),
                 ("gcharge", "-J", "j", "-p", "p", "-t", "1000"), ("gcharge", "-J", "j", "-t", "1", "-q", "1"), ("grmres", "-r", "77"),
                 ("grmres", "-n", "none"), ("gchalloc", "-i", "99"), ("gchalloc", "-i", number), ("gchalloc", "-i", number, "-d", "text"),
                 ("gcharge", "-J", "", "-p", "p", "-t", "1"), ("greserve", "-J", "", "-p", "p", "-t", "1"), ("grefund", "-J", ""), ("gbalance", "--show", "Weather"), ("gmkproject", "-m", "colony", "q"),
                 ("gmkaccount", "-n", "x", "-u", "MEMBERS,-amy"), ("gstatement",), ("gstatement", "-p", "p", "-s", "yesterday-ish")):
        assert gold(*call, code=1).err, call
    assert gold("gbalance", "p", "--total", "--quiet") == "100\n"
    gold("gquote", "-p", "p", "-t", "1", "-Q", "high", "--guarantee")
    assert [q["qos"] for q in instance.json("bank", "quotes")["quotes"]] == ["high"]
    assert "--disk has no equivalent" in gold("gquote", "-p", "p", "-t", "1", "-D", "10").err


def options_of(text):
    """Each option of a help by its name, and by its letter if it has one; with a value if it takes one."""
    values = {"NAME": "p", "TIME": "2031-01-01", "USER": "amy", "USERS": "amy", "NAMES": "Name"}
    for letter, name, value in re.findall(r"(?m)^  (?:-(.), )?--(\w+)(?:=(\w+))?", text):
        given = [values.get(value, "1")] if value else []
        yield ["--" + name] + given
        if letter:
            yield ["-" + letter] + given


def test_no_option_ends_a_command_by_a_signal(gold):
    """Each option of each command, by its name and by its letter, alone and beside a project; and each line of the shell."""
    gold("gmkproject", "p")
    seen = 0
    for name in sorted(os.listdir(gold.folder)):
        options = list(options_of(gold(name, "--help")))
        assert ["--quiet"] in options and ["-v"] in options, name
        for option in options:
            for words in ((), ("p",)) if name.endswith(("account", "project")) else (("p",),):
                said = gold(name, *option, *words, code=None)
                assert said.code in (0, 1), (name, option, words, said.code, said.err)
                seen += 1
    assert seen > 500
    lines = [f"{thing} {action} Name=q {field}\n" for field in ("", "Description=x", "Active=True", "Active=False", "Quiet:=True")
             for thing in ("Project", "Account", "Allocation", "Quotation", "Reservation", "User", "Machine", "Job", "Transaction")
             for action in ("Create", "Modify", "Delete", "Query", "Balance", "Statement", "Deposit", "Withdraw", "Transfer", "Usage", "Quote", "Reserve", "Charge", "Refund")]
    assert gold("goldsh", stdin="".join(lines), code=1).err


def test_accounts_are_changed(instance, gold):
    gold("gmkaccount", "-n", "p")
    assert gold("gchaccount", "-a", "p", "-d", "hello") == "Successfully modified 1 Account\n"
    assert gold("gchaccount", "--addUsers", "amy,bob", "p") == "Successfully created 2 AccountUsers\n"
    assert gold("gchaccount", "--delUsers", "bob", "p") == "Successfully deleted 1 AccountUsers\n"
    assert gold("glsaccount", "--raw", "--quiet", "--show", "Name,Users,Description") == "p|amy@local|hello\n"
    assert gold("gchaccount", "-I", "p") == "Successfully modified 1 Account\n" and gold("glsaccount", "-I", "--quiet", "--show", "Name") == "p\n"
    assert gold("goldsh", "Account", "Modify", "Name=p", "Active=True", "Description=again") == "Successfully modified 1 Account\n"
    assert [(a["description"], a.get("closed", False)) for a in instance.json("bank")["accounts"]] == [("again", False)]
    gold("gchaccount", "-I", "-d", "over", "p")
    gold("gchaccount", "-d", "quite over", "p")  # it stays closed
    assert [(a["description"], a["closed"]) for a in instance.json("bank")["accounts"]] == [("quite over", True)]
    assert "no Account none" in gold("gchaccount", "-d", "x", "none", code=1).err and "which Account" in gold("gchaccount", code=1).err


def test_a_user_sees_and_does_what_his_role_lets_him(instance, gold):
    gold("gmkproject", "-u", "bob@test", "p")
    gold("gdeposit", "-p", "p", "100")
    gold("gcharge", "-J", "j", "-p", "p", "-t", "1")
    token = instance.json("token", "user", "--name", "bob@test")["token"]
    bob = Commands(gold.folder, {"PATH": gold.env["PATH"], "DROVER_TOKEN": token, "DROVER_SERVER": f"https://127.0.0.1:{gold.port}"}, instance.work)
    assert bob("mybalance").splitlines()[-1].split() == ["p", "99"]
    for call in (("gdeposit", "-p", "p", "5"), ("gwithdraw", "-p", "p", "5"), ("gmkproject", "q"), ("gcharge", "-J", "x", "-p", "p", "-t", "1", "-u", "root@local"),
                 ("grefund", "-J", "j"), ("gmkmachine", "m"), ("gchmachine", "-I", "m"), ("grmmachine", "m"), ("gchproject", "--addUsers", "dave", "p"),
                 ("gmkuser", "u"), ("gchuser", "-A", "u"), ("grmuser", "u"), ("grmproject", "p"), ("grmaccount", "p"), ("grmalloc", "1")):
        assert bob(*call, code=1).err, call
    bob("gquote", "-p", "p", "-t", "5", "--guarantee")
    number = cells(bob("glsquote"))[0][0]
    gold("gquote", "-p", "p", "-t", "5", "--guarantee")
    other = [r[0] for r in cells(gold("glsquote")) if r[0] != number][0]
    assert "last longer" in bob("gchquote", "-e", "2040-01-01", number, code=1).err
    for call in (("gchquote", "-d", "mine now", other), ("grmquote", other)):
        assert "no quote" in bob(*call, code=1).err
    assert bob("gchquote", "-d", "shorter", number) and gold("gchquote", "-e", "2040-01-01", number)
    assert bob("grmquote", number) and [r[0] for r in cells(gold("glsquote"))] == [other]
    assert "Balance" not in bob("gstatement", "-p", "p") and "Balance" in gold("gstatement", "-p", "p")
    assert gold("gbalance", "p", "--total", "--quiet") == "99\n"
