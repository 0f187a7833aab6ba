"""Jobs of Galaxy tools: rendered at the submit, run, and their outputs collected."""
import json
import os
import resource
import shutil
import subprocess
import tarfile
import textwrap

import pytest


def tool(place, name, text, params=None, resolve="none"):
    os.makedirs(os.path.join(place.work, "tools"), exist_ok=True)
    place.write(f"tools/{name}.xml", textwrap.dedent(text))
    place.write(f"{name}.json", json.dumps(params or {}))
    return ["--galaxy", "--params", f"{name}.json", *(["--resolve", resolve] if resolve else []), f"tools/{name}.xml"]


def submit(place, words, code=0):
    done = place.cli("submit", "--wait", *words, code=code)
    return done.out.split()[1].rstrip(":") if code == 0 else done


SEVERAL = """\
    <tool id="several" profile="20.01">
      <requirements>@needs@</requirements>
      <command><![CDATA[
        cat '$first' #for $q in $more# '$q' #end for# | sort > '$sorted'
        && wc -l < '$sorted' > count && mkdir parts && cp '$first' parts/x.txt && cp '$first' parts/no.bin
        && echo '{"type": "dataset"}' > galaxy.json && echo "\\$GALAXY_SLOTS: $label" && ls / >&2
      ]]></command>
      <inputs>
        <param name="first" type="data" format="txt"/>
        <param name="more" type="data" multiple="true"/>
        <param name="label" type="text"/>
      </inputs>
      <outputs>
        <data name="sorted" format_source="first"/>
        <data name="count" format="tabular" from_work_dir="count"/>
        <data name="nothing" format="txt"/>
        <collection name="parts" type="list"><discover_datasets pattern="(?P&lt;designation&gt;.+)\\.txt" directory="parts"/></collection>
      </outputs>
    </tool>"""


def several(place, out, needs="", resolve="none"):
    """Kinds of cat and split: a loop over inputs, from_work_dir, found files, galaxy.json. Returns what its root
    folder had."""
    place.write("one.txt", "b\n")
    os.makedirs(f"{place.work}/data", exist_ok=True)
    place.write("data/two.txt", "a\n")
    words = tool(place, "several", SEVERAL.replace("@needs@", needs),
                 {"first": "one.txt", "more": ["data/two.txt"], "label": "$(reboot) `x` it's"}, resolve)
    os.makedirs(f"{place.work}/{out}", exist_ok=True)
    submit(place, words + ["-a", f"initialdir = {out}", "-a", "request_cpus = 1"])
    assert place.read(f"{out}/sorted.txt") == "a\nb\n"
    assert place.read(f"{out}/count.tabular").strip() == "2"
    assert place.read(f"{out}/nothing.txt") == ""
    assert place.read(f"{out}/parts__x.txt") == "b\n" and not place.exists(f"{out}/parts__no.bin")
    assert place.read(f"{out}/galaxy.json") == '{"type": "dataset"}\n'
    assert place.read(f"{out}/tool_stdout") == "1: X(reboot) XxX it__sq__s\n"
    assert not place.exists(f"{out}/one.txt")
    return place.read(f"{out}/tool_stderr").split()


def test_several_inputs_and_outputs(shared):
    assert "usr" in several(shared, "out")


def test_a_program_beside_the_tool(shared):
    """Kind of filter: a script in the tool's folder, a configuration file, what is known of the input."""
    words = tool(shared, "rows", """\
        <tool id="rows" profile="18.01">
          <command>sh '$__tool_directory__/rows.sh' '$input' '$conf' ${input.metadata.columns} > '$out'</command>
          <configfiles><configfile name="conf">at least $least
        </configfile></configfiles>
          <inputs>
            <param name="input" type="data"/>
            <param name="least" type="integer" value="0"/>
          </inputs>
          <outputs><data name="out" format="input"/></outputs>
        </tool>""", {"input": {"path": "rows.tsv", "metadata": {"columns": 2}}, "least": 3})
    shared.write("tools/rows.sh", 'read -r _ _ least <"$2"\necho "$3 columns"\nawk -v least="$least" \'$1 >= least\' "$1"\n')
    shared.write("rows.tsv", "1\tx\n5\ty\n")
    submit(shared, words)
    assert shared.read("out.tsv") == "2 columns\n5\ty\n"


def test_how_it_ended_is_the_tools_own_to_say(shared):
    """Exit codes and patterns of <stdio>, and what holds without it."""
    def status(head, command, stdio=""):
        words = tool(shared, "ends", f"""\
            <tool id="ends" {head}><command>{command}</command>{stdio}</tool>""")
        request = shared.cli("submit", *words).out.split()[1].rstrip(":")
        shared.wait(request, code=None)
        return shared.history(request)[0]["exit_code"]

    new = 'profile="20.01"'
    assert status(new, "exit 3") == 3
    assert status(new, "echo oops &gt;&amp;2") == 0
    assert status("", "echo oops &gt;&amp;2") == 1
    assert status("", "exit 3") == 0
    rules = '<stdio><exit_code range="2:" level="fatal"/><regex match="^bad [a-z]+" source="stdout"/></stdio>'
    assert status("", "echo oops &gt;&amp;2; exit 1", rules) == 0
    assert status("", "exit 2", rules) == 2
    assert status("", "echo bad luck", rules) == 1
    assert status("", "echo bad luck &gt;&amp;2", rules) == 0


def test_values_as_json_and_extra_files(shared):
    """The job finds all values in a file of that name, and what it puts beside an output comes back."""
    words = tool(shared, "values", """\
        <tool id="values" profile="21.05">
          <command><![CDATA[
            #import os.path
            cat values.json > '$out' && mkdir '$out.files_path' && cp '$input' '$out.files_path/${os.path.basename(str($input))}.copy'
          ]]></command>
          <configfiles><inputs name="all" filename="values.json" data_style="paths"/></configfiles>
          <inputs>
            <param name="input" type="data" format="txt"/>
            <section name="s"><param name="n" type="integer" value="3"/><param name="b" type="boolean"/></section>
          </inputs>
          <outputs><data name="out" format="json"/></outputs>
        </tool>""", {"input": "v.txt"}, "none")
    shared.write("v.txt", "v\n")
    os.makedirs(f"{shared.work}/values", exist_ok=True)
    submit(shared, words + ["-a", "initialdir = values"])
    values = json.loads(shared.read("values/out.json"))
    assert values.pop("input").endswith("/v.txt") and values == {"s": {"n": 3, "b": False}}
    with tarfile.open(f"{shared.work}/values/out_files.tar") as tar:
        assert tar.extractfile("out_files/v.txt.copy").read() == b"v\n"


def test_collections_tables_and_folders(shared):
    """A pair of files, a row of a data table, a folder and an index beside a file go with the job; a pair comes back, and what a regular
    expression finds."""
    words = tool(shared, "pair", """\
        <tool id="pair" version="1" profile="21.05">
          <command><![CDATA[
            cat '$reads.forward' '$index.fields.path' > '$both.forward' && cat '$reads['reverse']' '$graph.extra_files_path/part' > '$both.reverse'
            && cat '$graph.metadata.bai' > log && mkdir parts && echo 1 > parts/ab.txt && echo 2 > parts/abcd.txt
          ]]></command>
          <inputs>
            <param name="reads" type="data_collection" collection_type="paired"/>
            <param name="graph" type="data"/>
            <param name="index" type="select"><options from_data_table="indexes"/></param>
          </inputs>
          <outputs><collection name="both" type="paired">
            <data name="forward" format="txt"/><data name="reverse" format="txt"/>
          </collection><data name="log" format="txt" from_work_dir="log"/>
            <collection name="short" type="list"><discover_datasets pattern="(?P&lt;designation&gt;[a-z]{2})\\.txt" directory="parts"/></collection></outputs>
        </tool>""", {"reads": {"forward": "r_1.fq", "reverse": "r_2.fq"}, "index": "two",
                     "graph": {"path": "g.html", "extra_files": "g_files", "metadata": {"bai": {"path": "g.bai"}}}})
    for name in ("pair", "g_files", "config", "tool-data"):
        os.makedirs(f"{shared.work}/{name}", exist_ok=True)
    for name in ("r_1.fq", "r_2.fq", "g.html", "g_files/part", "g.bai", "row"):
        shared.write(name, f"{name}\n")
    shared.write("config/tables.xml", '<tables><table name="indexes"><columns>value, path</columns><file path="tool-data/x.loc"/></table></tables>')
    shared.write("tool-data/x.loc", f"#value\tpath\none\t/nowhere\ntwo\t{shared.work}/row\n")
    submit(shared, words + ["--tables", "config/tables.xml", "-a", "initialdir = pair"])
    assert shared.read("pair/both__forward.txt") == "r_1.fq\nrow\n"
    assert shared.read("pair/both__reverse.txt") == "r_2.fq\ng_files/part\n" and shared.read("pair/log.txt") == "g.bai\n"
    assert shared.read("pair/short__ab.txt") == "1\n" and not shared.exists("pair/short__abcd.txt")
    assert shared.cli("submit", "--tables", "config/tables.xml", "odd.sub", code=2).err
    assert "no-file: No such file" in shared.cli("submit", "-n", *words, "--tables", "no-file", code=1).err


def test_what_is_not_supported_is_named(shared):
    words = tool(shared, "odd", """\
        <tool id="odd"><command>
        #import subprocess
        echo</command></tool>""")
    assert "tools/odd.xml:2: the module subprocess is not supported" in submit(shared, words, code=1).err
    assert shared.cli("submit", "--params", "x.json", "odd.sub", code=2).err


def test_a_byte_order_mark_before_the_parameters_is_passed_over(shared):
    words = tool(shared, "mark", "<tool id='mark'><command>echo '$t'</command><inputs><param name='t' type='text'/></inputs></tool>")
    shared.write("mark.json", "\ufeff{\"t\": \"hello\"}")
    assert "echo 'hello'" in shared.cli("submit", "-n", *words).out


def test_dry_run_shows_the_command(shared):
    words = tool(shared, "dry", """\
        <tool id="dry">
          <requirements><requirement type="package" version="1.9">samtools</requirement></requirements>
          <command>sort -k $k</command>
          <inputs><param name="k" type="integer" value="2"/></inputs>
        </tool>""")
    words.remove("--resolve")
    words.remove("none")
    shown = shared.cli("submit", "--dry-run", *words).out
    assert "sort -k 2" in shown and 'CondaEnv = "__samtools@1.9"' in shown


def with_reader(place, text=None):
    """`drover` in a folder of its own, with this program in the place of drover-galaxy; without one: None."""
    folder = os.path.join(place.base, "alone")
    os.makedirs(folder)
    shutil.copy(os.path.realpath(place.program("drover")), folder)
    if text is not None:
        with open(os.open(f"{folder}/drover-galaxy", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as f:
            f.write(text)
    return os.path.join(folder, "drover")


@pytest.mark.parametrize("program, said", [
    (None, "drover-galaxy is not installed"),
    ("#!/bin/sh\nexit 3\n", "drover-galaxy failed: it ended with status 3"),
    ("#!/bin/sh\nkill -9 $$\n", "drover-galaxy failed: it was killed by signal 9"),
    ("#!/bin/sh\necho '<html>'\n", "drover-galaxy printed no answer"),
    ("#!/bin/sh\necho '{\"description\": 7, \"script\": {}}'\n", "drover-galaxy printed no answer"),
    ("#!/bin/sh\necho '{\"error\": \"no such tool\", \"warnings\": [{\"line\": -1}, 7]}'\n", "no such tool"),
    ("#!/bin/sh\nexec cat /dev/zero\n", "answered with more than 16 MiB"),
    ("not a program\n", "drover-galaxy: Exec format error"),
], ids=["none", "fails", "killed", "garbage", "types", "error", "endless", "format"])
def test_a_reader_that_is_missing_or_broken_is_named(instance, program, said):
    """And the submit ends with that: no job, no crash, no wait."""
    words = tool(instance, "echo", "<tool id='echo'><command>echo</command></tool>")
    done = subprocess.run([with_reader(instance, program), "submit", "-n", *words], cwd=instance.work, env={**instance.env, "PATH": "/usr/bin:/bin"},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, text=True)
    assert done.returncode == 1 and said in done.stderr, (done.returncode, done.stderr)


@pytest.mark.parametrize("question, said", [
    ("", "standard input is not"), ("{}", "standard input is not"), ('{"tool": "x.xml", "resolve": "magic"}', "standard input is not"),
    ('{"tool": "x.xml"}', "No such file"), ("[" * 60000, "standard input is not"), ("x" * 70000, "standard input is over"),
], ids=["empty", "nothing", "resolve", "file", "deep", "large"])
def test_what_the_reader_is_asked_wrongly(instance, question, said):
    answer = json.loads(subprocess.run([instance.program("drover-galaxy")], input=question, cwd=instance.work, stdout=subprocess.PIPE, timeout=60,
                                       check=True, text=True).stdout)
    assert said in answer["error"] and answer["warnings"] == []


def macros(*lines, inputs=""):
    return f"<tool id='large'><macros>{''.join(lines)}</macros><command>true @T0@ <expand macro='m0'>{inputs}</expand></command></tool>"


@pytest.mark.parametrize("text, said", [
    (macros("<xml name='m0'/>", *(f"<token name='@T{n}@'>@T{n + 1}@@T{n + 1}@</token>" for n in range(40))), "MiB of text"),
    (macros("<xml name='m0'>" + "<yield/>" * 50000 + "</xml>", inputs="<p/>" * 40000), "more than 100000 elements"),
    (macros("<xml name='m0' token_a='" + "x" * 1000000 + "'>" + "@A@" * 500000 + "</xml>"), "MiB of text"),
    (macros("<xml name='m0'>" + "<expand macro='m1'/>" * 1000 + f"</xml><xml name='m1'>{'x' * 1000000}</xml>"), "MiB of text"),
], ids=["tokens", "yields", "own_tokens", "texts"])
def test_a_small_tool_that_would_be_large_is_refused(instance, text, said):
    """Of a file of some MB, what its macros and tokens make of it is bounded: the reader has a GiB here."""
    instance.write("large.xml", text)
    answer = subprocess.run([instance.program("drover-galaxy")], input='{"tool": "large.xml"}', cwd=instance.work, stdout=subprocess.PIPE,
                            timeout=120, check=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
    assert said in json.loads(answer.stdout)["error"]


SORT = """\
cwlVersion: v1.2
class: CommandLineTool
baseCommand: [sort]
requirements:
  ResourceRequirement: {coresMin: 1, ramMin: 64}
inputs:
  files:
    type: File[]
    secondaryFiles: [".idx?", "^.none?"]
    inputBinding: {position: 2}
  reverse: {type: boolean?, inputBinding: {prefix: -r}}
  label: {type: string}
outputs:
  sorted: {type: stdout}
arguments: [{valueFrom: "--parallel=1", position: 1}]
stdout: sorted.txt
"""


def test_cwl_runs_through_cwltool(shared):
    """Files of the job order travel and are renamed in it, outputs come back, and what cwltool printed."""
    os.makedirs(f"{shared.work}/far/away", exist_ok=True)
    shared.write("tools/sort.cwl", SORT)
    shared.write("far/away/b.txt", "b\n")
    shared.write("far/away/b.txt.idx", "index\n")
    shared.write("far/c.txt", "c\n")
    shared.write("far/order.yml", "files:\n- {class: File, path: away/b.txt}\n- {class: File, location: c.txt}\n"
                                  "reverse: true\nlabel: '3'\n")
    shown = shared.cli("submit", "-n", "--cwl", "--params", "far/order.yml", "tools/sort.cwl").out
    assert "b.txt.idx" in shown and "TARGET.HasCWL" in shown and '"label":"3"' in shown.replace("\\", "")
    submit(shared, ["--cwl", "--params", "far/order.yml", "tools/sort.cwl"])
    assert shared.read("sorted.txt") == "c\nb\n"
    outputs = json.loads(shared.read("cwl_outputs.json"))
    assert outputs["sorted"]["path"] == "sorted.txt" and outputs["sorted"]["location"] == "sorted.txt"


def test_cwl_folders_failures_and_workflows(shared):
    shared.write("tools/make.cwl", "cwlVersion: v1.0\nclass: CommandLineTool\nrequirements: {ShellCommandRequirement: {}}\n"
                                   "baseCommand: []\narguments: [{shellQuote: false, valueFrom: 'mkdir made; echo x >made/f'}]\n"
                                   "inputs: []\noutputs:\n  folder: {type: Directory, outputBinding: {glob: made}}\n")
    submit(shared, ["--cwl", "tools/make.cwl"])
    assert shared.exists("made.tar")
    shared.write("tools/say.cwl", "cwlVersion: v1.0\nclass: CommandLineTool\nbaseCommand: [echo, one]\ninputs: []\nstdout: said.txt\n"
                                  "outputs:\n  said: {type: stdout}\n")
    shared.write("tools/twice.cwl", "cwlVersion: v1.0\nclass: CommandLineTool\nbaseCommand: [sed, p]\ninputs:\n"
                                    "  text: {type: File, inputBinding: {position: 1}}\nstdout: twice.txt\noutputs:\n  out: {type: stdout}\n")
    shared.write("tools/two.cwl", "cwlVersion: v1.0\nclass: Workflow\ninputs: []\noutputs:\n  out: {type: File, outputSource: two/out}\n"
                                  "steps:\n  one: {run: say.cwl, in: [], out: [said]}\n"
                                  "  two: {run: twice.cwl, in: {text: one/said}, out: [out]}\n")
    submit(shared, ["--cwl", "tools/two.cwl"])
    assert shared.read("twice.txt") == "one\none\n", "what one step makes is the next one's input, and comes back"
    shared.write("tools/fail.cwl", "cwlVersion: v1.0\nclass: CommandLineTool\nbaseCommand: ['false']\ninputs: []\noutputs: []\n")
    shared.write("tools/flow.cwl", "cwlVersion: v1.0\nclass: Workflow\ninputs: []\noutputs: []\n"
                                   "steps:\n  one: {run: fail.cwl, in: [], out: []}\n")
    done = shared.cli("submit", "--cwl", "tools/flow.cwl")
    request = done.out.split()[1].rstrip(":")
    assert "one job" in done.err
    shared.wait(request, code=None)
    assert shared.history(request)[0]["exit_code"] == 1
    shared.write("tools/bad.cwl", "class: Operation\n")
    assert "tools/bad.cwl:1: the class Operation" in shared.cli("submit", "--cwl", "tools/bad.cwl", code=1).err


COPY = """\
cwlVersion: v1.2
class: CommandLineTool
$schemas: [../ontology/terms.rdf]
requirements:
  InitialWorkDirRequirement: {listing: ["$(inputs.pair.text)"]}
  SchemaDefRequirement: {types: [{$import: types/pair.yml}]}
inputs:
  pair: types/pair.yml#pair
  script: {type: File, default: {class: File, location: ../lib/say%2Bit.sh}}
baseCommand: [sh]
arguments: ["$(inputs.script.path)", "$(inputs.pair.text.secondaryFiles[0].path)"]
outputs:
  same: {type: File, outputBinding: {glob: "$(inputs.pair.text.basename)"}}
  said: {type: stdout}
stdout: said.txt
"""


def test_cwl_files_above_the_tool_inputs_that_come_back_and_files_of_records(shared):
    shared.write("own/tools/copy.cwl", "#!/usr/bin/env cwl-runner\n" + COPY, mode=0o755)
    shared.write("own/tools/types/pair.yml", "type: record\nname: pair\nfields:\n  text: {type: File, secondaryFiles: [.idx]}\n")
    shared.write("own/ontology/terms.rdf", '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>\n')
    shared.write("own/lib/say+it.sh", "cat \"$1\"\n")
    shared.write("data/a+b.txt", "kept\n")
    shared.write("data/a+b.txt.idx", "index\n")
    shared.write("data/jobs/order.yml", "pair: {text: {class: File, location: ../a%2Bb.txt}}\n")
    submit(shared, ["--cwl", "--params", "data/jobs/order.yml", "own/tools/copy.cwl"])
    outputs = json.loads(shared.read("cwl_outputs.json"))
    assert shared.read("said.txt") == "index\n"
    assert outputs["same"]["basename"] == "a+b.txt" and shared.read("a+b.txt") == "kept\n"
    # A type by its name alone, and a list of such records.
    listed = COPY.replace("types/pair.yml#pair", "pair[]?").replace("inputs.pair.text", "inputs.pair[0].text")
    shared.write("own/tools/listed.cwl", listed)
    shared.write("data/jobs/list.yml", "pair: [{text: {class: File, location: ../a%2Bb.txt}}]\n")
    shown = shared.cli("submit", "-n", "--cwl", "--params", "data/jobs/list.yml", "own/tools/listed.cwl").out
    assert "data/a+b.txt.idx" in shown
    shared.write("own/tools/absolute.cwl", COPY.replace("types/pair.yml", "/etc/pair.yml"))
    assert "must be named by a relative path" in shared.cli("submit", "--cwl", "own/tools/absolute.cwl", code=1).err
