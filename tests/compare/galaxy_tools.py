"""Tools of Galaxy, as its own templates and as drover-galaxy render them."""
import json
import os
import re
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.path.join(HERE, "galaxy")
RECORDED = os.path.join(HERE, "..", "data", "galaxy-commands.json")
FORMATS = os.path.join(HERE, "..", "..", "src", "jdl", "galaxy", "formats.def")
PLAIN = ("binary", "data", "tabular", "txt")  # the names that formats of one class go by


def theirs(root, library, paths):
    """What Galaxy makes of each tool; `library` and the paths are those within the root folder."""
    with open(os.path.join(HERE, "galaxy_oracle.py"), encoding="utf-8") as f:
        program = f.read()
    command = (["chroot", root] if root else []) + ["python3", "-c", program]
    out = subprocess.run(command, input="".join(path + "\n" for path in paths), env={**os.environ, "PYTHONPATH": library}, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=False).stdout
    answers = [json.loads(line[1:]) for line in out.split("\n") if line.startswith("=")]
    if len(answers) != len(paths):
        raise RuntimeError(f"Galaxy answered {len(answers)} of {len(paths)} tools")
    return answers


def write_formats(kinds):
    """kinds: of each format those that it is a kind of. Formats of one class are kinds of each other: all but one are its other names."""
    same = {name: sorted([name, *(other for other in kinds[name] if name in kinds[other])], key=lambda one: (one not in PLAIN, one))
            for name in kinds}
    rows = []
    for name in sorted(kinds):
        if same[name][0] != name:
            rows.append((name, same[name][0], "true"))
            continue
        above = [one for one in kinds[name] if one not in same[name] and same[one][0] == one]
        nearest = [one for one in above if not any(one in kinds[other] for other in above)]
        rows.extend((name, one, "false") for one in nearest)
    with open(FORMATS, "w", encoding="utf-8") as f:
        f.write("/* written by tools/compare-galaxy --record */\n")
        f.writelines(f'FORMAT("{name}", "{of}", {alias})\n' for name, of, alias in rows)


def mine(program, path, params, outputs, tables):
    """(command, configuration files) of drover-galaxy, with the names of the other's; an error instead of a command."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        json.dump(params, f)
        f.flush()
        ask = json.dumps({"tool": path, "params": f.name, "resolve": "none",
                          **({"tables": os.path.join(os.path.dirname(path), tables)} if tables else {})})
        answer = json.loads(subprocess.run([program], input=ask, stdout=subprocess.PIPE, text=True, check=True).stdout)
    if "error" in answer:
        return answer["error"], None
    configs = re.findall(r"^printf '%s' '((?:[^']|'\\'')*)' \| fill >\"\$box/\.drover_config", answer["script"], re.M)
    folder = os.path.dirname(os.path.abspath(path))
    texts = [text.replace(folder + "/", f"@box@/{os.path.basename(folder)}/") for text in (answer["command"], *configs)]
    files = re.findall(r'^: >"\$box/(.+)"$', answer["script"], re.M)
    return plain(texts[0], outputs, files), [plain(one.replace("'\\''", "'"), outputs, files, False) for one in texts[1:]]


def plain(text, outputs, files, words=True):
    """Without what is each program's own: where outputs are, whose files are NAME.FORMAT, and white space between words."""
    for name in sorted(outputs, key=len, reverse=True):
        text = text.replace(f"@box@/{name}_files", f"@out@{name}@_files")
        for file in files:
            if file.startswith(name + "."):
                text = re.sub(r"@box@/" + re.escape(file) + r"(?!\w*_files)", f"@out@{name}@", text)
    text = re.sub(r"@box@/\.drover_config\.\d+", "@config@", text)
    return " ".join(text.split()) if words else text


def same(program, path, answer):
    """None, or what drover-galaxy has in place of it."""
    command, configs = mine(program, path, answer["params"], answer["outputs"], answer.get("tables"))
    if configs is None:
        return "refused: " + command
    if command != " ".join(answer["command"].split()):
        return command
    return None if [one.split() for one in configs] == [one.split() for one in answer["configs"]] else "the configfiles: " + repr(configs)
