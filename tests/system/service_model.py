"""Amazon's descriptions of its services (tests/data/aws): what a request may have, and must."""
import json
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "aws")


class Model:
    def __init__(self, name):
        with open(os.path.join(FOLDER, name + ".json"), encoding="utf-8") as f:
            text = json.load(f)
        self.operations, self.shapes = text["operations"], text["shapes"]

    def check(self, action, body, part="input"):
        """What is wrong with a request or an answer that is JSON."""
        return list(self._wrong(self.operations[action][part]["shape"], body, action))

    def _wrong(self, name, value, where):
        shape = self.shapes[name]
        kind = shape["type"]
        types = {"structure": dict, "map": dict, "list": list, "string": str, "boolean": bool, "integer": int, "long": int, "float": (int, float),
                 "double": (int, float)}
        if kind in types and (not isinstance(value, types[kind]) or (kind in ("integer", "long") and isinstance(value, bool))):
            yield f"{where}: no {kind}"
        elif kind == "structure":
            yield from (f"{where}: {n} is not there" for n in shape.get("required", []) if n not in value)
            for n, one in value.items():
                if n not in shape["members"]:
                    yield f"{where}: {n} is unknown"
                else:
                    yield from self._wrong(shape["members"][n]["shape"], one, f"{where}.{n}")
        elif kind in ("list", "map"):
            for one in value if kind == "list" else value.values():
                yield from self._wrong(shape["member" if kind == "list" else "value"]["shape"], one, where + "[]")
        elif "enum" in shape and value not in shape["enum"]:
            yield f"{where}: {value!r} is none of {shape['enum']}"
        elif "pattern" in shape and not re.fullmatch(shape["pattern"], value):
            yield f"{where}: {value!r} is not {shape['pattern']}"

    def check_query(self, action, words):
        """What is wrong with a request of EC2's Query API: names with points and numbers, all values as text."""
        wrong = []
        for name, value in words.items():
            at = {"shape": self.operations[action]["input"]["shape"]}
            for part in name.split(".") if name not in ("Action", "Version") else ():
                shape = self.shapes[at["shape"]]
                if shape["type"] == "list" and part.isdigit() and int(part) > 0:
                    at = shape["member"]
                elif shape["type"] == "structure":
                    at = next((m for n, m in shape["members"].items() if part == query_name(n, m)), None)
                else:
                    at = None
                if at is None:
                    break
            if name in ("Action", "Version"):
                continue
            shape = self.shapes[at["shape"]] if at else {"type": "nothing"}
            if shape["type"] in ("nothing", "structure", "list", "map"):
                wrong.append(f"{action}: {name} is unknown")
            elif "enum" in shape and value not in shape["enum"] or shape["type"] in ("integer", "long") and not re.fullmatch(r"-?\d+", value) or \
                    shape["type"] == "boolean" and value not in ("true", "false"):
                wrong.append(f"{action}: {name} cannot be {value!r}")
        shape = self.shapes[self.operations[action]["input"]["shape"]]
        given = {n.split(".")[0] for n in words}
        return wrong + [f"{action}: {n} is not there" for n in shape.get("required", []) if query_name(n, shape["members"][n]) not in given]


def query_name(name, member):
    """The EC2 protocol's: queryName, or locationName with a capital letter."""
    return member.get("queryName") or (lambda n: n[0].upper() + n[1:])(member.get("locationName", name))
