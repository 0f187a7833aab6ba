"""drover classad: values, matches, and what is said of wrong words, files and expressions."""
import json
from xml.etree import ElementTree

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


def test_eval_old_syntax(cli):
    """The value may be the ad that is written in the expression."""
    assert cli("classad", "eval", "--old", "[a=1]", "{ [ b = 2 ] }", "1 + 1") == "[ a = 1 ]\n{ [ b = 2 ] }\n2\n"


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


ADS = """[ A = 1; s = "<&>\\n"; e = TARGET.x > A && true; l = { 1.0, undefined, [ n = absTime("2024-01-31T12:00:00+01:00") ] } ]
[ B = -2 ]
"""


def test_convert_there_and_back(cli):
    cli.write("ads", ADS)
    plain = cli("classad", "parse", "ads")
    assert plain.count("\n") == 2 and plain.startswith('[ A = 1; s = "<&>\\n"; e = TARGET.x > A && true; ')
    texts = {}
    for encoding in ("new", "json", "xml"):
        text = cli("classad", "convert", "--to", encoding, "ads")
        cli.write(encoding, text)
        texts[encoding] = text
        assert cli("classad", "parse", encoding) == plain
        assert cli("classad", "parse", "--from=" + encoding, "-", stdin=text) == plain
        assert cli("classad", "convert", "--to", "new", stdin=text) == plain
    docs = json.loads(texts["json"])
    assert docs[0]["e"] == "/Expr(TARGET.x > A && true)/" and docs[0]["l"][0] == 1.0 and docs[1] == {"B": -2}
    assert texts["json"].startswith("[\n{")
    root = ElementTree.fromstring(texts["xml"])
    assert [len(c) for c in root] == [4, 1]
    assert root.find("c/a[@n='s']/s").text == "<&>\\n"
    assert cli("classad", "unparse", stdin="[ b = 2; a = 1 ] [ c = 3 ]") == "a = 1\nb = 2\n\nc = 3\n"
    assert cli("classad", "convert", "--to", "json", stdin="") == "[\n]\n"
    assert cli("classad", "convert", "--to", "new", "json", "xml") == plain + plain


def test_any_encoding(cli):
    cli.write("job.json", '{"Requirements": "/Expr(TARGET.Memory > 3)/"}')
    cli.write("node.xml", '<c><a n="Memory"><i>4</i></a><a n="Requirements"><b v="t"/></a></c>')
    assert cli("classad", "match", "job.json", "node.xml") == "match\n"
    assert cli("classad", "eval", "--ad", "job.json", "--target", "node.xml", "Requirements") == "true\n"
    cli.write("two.json", "[{},{}]")
    cli("classad", "match", "two.json", "node.xml", code=1)


def test_convert_errors(cli):
    cli.write("ok", "a = 1\n")
    cli.write("bad", "a = 1\n\nb = 2\nc = \n")
    # parse goes on with the next file; convert stops, and what it wrote does not look whole
    assert cli("classad", "parse", "bad", "ok", code=1) == "[ a = 1 ]\n[ a = 1 ]\n"
    assert cli("classad", "convert", "--to", "json", "bad", "ok", code=1) == '[\n{"a":1}\n'
    for words in (["convert", "ok"], ["convert", "--to", "auto", "ok"], ["convert", "--to", "yaml", "ok"],
                  ["parse", "--from", "yaml", "ok"], ["parse", "--to", "xml", "ok"], ["parse", "--to"],
                  ["parse", "-", "-"], ["eval", "--from", "new", "1"], ["parse", "--old", "--from", "new", "ok"],
                  ["parse", "--ad", "ok", "ok"]):
        cli("classad", *words, code=2, stdin="")
    cli("classad", "parse", "none", code=1)
