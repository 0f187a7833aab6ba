"""drover classad: values, matches, and what is said of wrong words, files and expressions."""

JOB = """# a job, as old lines
RequestMemory = 128
Requirements = TARGET.Memory >= RequestMemory && TARGET.Arch == "X86_64"
"""


def test_eval(cli):
    assert cli("classad", "eval", "1 + 2", "-true", '{1,"a"}', "[ a = 1 ]", "1e3") == (
        '3\nerror\n{ 1,"a" }\n[ a = 1 ]\n1.000000000000000E+03\n')
    assert cli("classad", "eval", "--", "--1") == "1\n"
    assert cli("classad", "eval", "time() > 1700000000") == "true\n"
    assert cli("classad", "eval", "017") == "17\n"
    assert cli("classad", "eval", "--old", '"a\\n"') == '"a\\\\n"\n'
    cli("classad", "eval", "--old", "017", code=1)
    assert "leading zero" in cli.err


def test_eval_with_ads(cli):
    job = cli.write("job.ad", JOB)
    cli.write("node.ad", "[ Memory = 512; Half = Memory / 2; Twice = TARGET.RequestMemory * 2 ]")
    assert cli("classad", "eval", "--ad", job, "--target=node.ad", "RequestMemory", "Memory", "TARGET.Half",
               "TARGET.Twice", "Requirements", "MY.Memory") == "128\n512\n256\n256\nundefined\nundefined\n"
    assert cli("classad", "eval", "x * 2", "--ad", "-", stdin="x = 21") == "42\n"
    cli("classad", "eval", "x", "--ad", "-", "--target", "-", stdin="x = 21", code=2)
    assert "only be read once" in cli.err


def test_match(cli):
    cli.write("job.ad", JOB)
    cli.write("node.ad", '[ Memory = 512; Arch = "x86_64"; Requirements = true ]')
    assert cli("classad", "match", "job.ad", "node.ad") == "match\n"
    assert cli("classad", "match", "node.ad", "-", stdin=JOB) == "match\n"
    cli.write("small.ad", '[ Memory = 64; Arch = "X86_64"; Requirements = x ]')
    assert cli("classad", "match", "job.ad", "small.ad", code=1) == (
        "job.ad refuses: clause 1 of 2, TARGET.Memory >= RequestMemory, is false\n"
        "small.ad refuses: clause 1 of 1, x, is undefined\n")
    cli.write("mute.ad", '[ Memory = 512; Arch = "X86_64" ]')
    assert cli("classad", "match", "job.ad", "mute.ad", code=1) == "mute.ad refuses: it has no Requirements\n"


def test_what_is_wrong(cli):
    assert cli("classad", "eval", "1 +", code=1) == ""
    assert "line 1, column 4" in cli.err
    assert cli("classad", "eval", "1", "2 2", "3", code=1) == "1\n"
    for words in ([], ["evil", "1"], ["eval"], ["match", "one.ad"], ["eval", "--add", "x", "1"], ["eval", "1", "--ad"]):
        cli("classad", *words, code=2)
        assert cli.err.startswith("drover: ")
    cli("classad", "eval", "--ad", "none.ad", "1", code=1)
    assert "none.ad" in cli.err
    cli.write("bad.ad", "a = 1\nb = = 2\n")
    cli("classad", "match", "bad.ad", "bad.ad", code=1)
    assert "bad.ad: line 2, column 5" in cli.err
    assert "Usage: drover classad" in cli("classad", "--help")
