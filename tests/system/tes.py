"""Calls of the Task Execution Service, checked against the published OpenAPI documents (tests/data/tes)."""
import os
import urllib.parse

import yaml
from jsonschema import Draft4Validator, FormatChecker

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "tes")
BASE = "/ga4gh/tes/v1"
SERVICE = "https://raw.githubusercontent.com/ga4gh-discovery/ga4gh-service-info/v1.0.0/service-info.yaml"


def _document():
    """Both documents in one: their references are to each other's schemas, whose names differ."""
    with open(os.path.join(DATA, "task_execution_service.openapi.yaml"), encoding="utf-8") as f:
        text = f.read()
    document = yaml.safe_load(text.replace(SERVICE, ""))
    with open(os.path.join(DATA, "service-info.yaml"), encoding="utf-8") as f:
        document["components"]["schemas"].update(yaml.safe_load(f)["components"]["schemas"])
    return document


DOCUMENT = _document()
SCHEMAS = DOCUMENT["components"]["schemas"]


def check(name, value):
    """Is the value as the schema of this name says?"""
    schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    wrong = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in Draft4Validator(schema, format_checker=FormatChecker()).iter_errors(value)]
    assert not wrong, "; ".join(wrong[:5])
    return value


def answer_of(method, path):
    """The name of the schema that the document gives for an answer."""
    operation = DOCUMENT["paths"][path][method.lower()]
    return operation["responses"][200]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]


def checked(task, view):
    """A task of a view. The document wants executors in every task, and wants none of them in a minimal one."""
    if view in (None, "MINIMAL"):
        assert sorted(task) == ["id", "state"]
    check("tesTask", {"executors": [], **task})
    return task


def create(place, task, **more):
    check("tesTask", task)
    return check(answer_of("POST", "/tasks"), place.api("POST", f"{BASE}/tasks", task, 200, **more))["id"]


def get(place, task, view=None, **more):
    query = f"?view={view}" if view else ""
    return checked(place.api("GET", f"{BASE}/tasks/{task}{query}", None, 200, **more), view)


def tasks(place, query=None, **more):
    """A page; `query`: a dict, or a list of pairs."""
    path = f"{BASE}/tasks" + (f"?{urllib.parse.urlencode(query)}" if query else "")
    page = place.api("GET", path, None, 200, **more)
    check("tesListTasksResponse", {**page, "tasks": []})
    view = dict(query or {}).get("view")
    for task in page["tasks"]:
        checked(task, view)
    return page


def cancel(place, task, **more):
    return check(answer_of("POST", "/tasks/{id}:cancel"), place.api("POST", f"{BASE}/tasks/{task}:cancel", None, 200, **more))
