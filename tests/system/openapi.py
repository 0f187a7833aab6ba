"""docs/openapi.json as something that requests and answers can be checked against."""
import json
import os
import re

from jsonschema import Draft202012Validator

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "openapi.json")
with open(PATH, encoding="utf-8") as f:
    DOCUMENT = json.load(f)


def operation(method, path):
    """The operation that a path (without its query) belongs to. Paths without braces come first."""
    for template in sorted(DOCUMENT["paths"], key=lambda t: t.count("{")):
        pattern = re.sub(r"\\\{[a-z]+\\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path) and method.lower() in DOCUMENT["paths"][template]:
            return DOCUMENT["paths"][template][method.lower()]
    raise AssertionError(f"docs/openapi.json has no {method} {path}")


def follow(node):
    while "$ref" in node:
        target = DOCUMENT
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def check(schema, value, what):
    whole = {**schema, "components": DOCUMENT["components"]}
    wrong = sorted(Draft202012Validator(whole).iter_errors(value), key=lambda e: list(map(str, e.absolute_path)))
    text = "; ".join(f"{'/'.join(map(str, e.absolute_path)) or 'it'}: {e.message}" for e in wrong[:5])
    assert not wrong, f"{what} is not as docs/openapi.json says: {text}"


def check_query(method, path, query):
    """Every parameter of a query (a dict) is known, and what is required is there."""
    known = {p["name"]: p for p in operation(method, path).get("parameters", []) if p["in"] == "query"}
    unknown = set(query) - set(known)
    assert not unknown, f"{method} {path} takes no {', '.join(sorted(unknown))}"
    missing = {n for n, p in known.items() if p.get("required")} - set(query)
    assert not missing, f"{method} {path} wants {', '.join(sorted(missing))}"


def check_request(method, path, body):
    """A request's body (parsed; None: none)."""
    wanted = operation(method, path).get("requestBody")
    if wanted and "application/json" in wanted["content"]:
        check(wanted["content"]["application/json"]["schema"], body, f"the body of {method} {path}")
    elif not wanted:
        assert body is None, f"{method} {path} takes no body"


def check_answer(method, path, status, body):
    """An answer's body (parsed; None: none)."""
    answers = operation(method, path)["responses"]
    if str(status) not in answers and status < 400:
        raise AssertionError(f"{method} {path} answered {status}, which docs/openapi.json doesn't have")
    answer = follow(answers.get(str(status), answers["default"]))
    content = answer.get("content", {}).get("application/json")
    if content:
        check(content["schema"], body, f"the answer {status} to {method} {path}")
