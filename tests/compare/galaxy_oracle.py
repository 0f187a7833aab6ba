"""What Galaxy's own templates make of tools: runs where Galaxy's code is in PYTHONPATH, with Cheetah, lxml, SQLAlchemy and pydantic.

Each line of standard input is the path of a tool; a line of JSON comes back for each: its "params" in the form of drover submit --params,
of the first of its <tests> that fits, the "command", the "configs", the names of the "outputs" and of the file of data "tables" beside the
tool, if it has one; or "skip" and why. Files are where Drover has them: @box@/NAME, outputs @out@NAME@ and of collections
@out@NAME__ELEMENT@, files of configuration @config@.

The line "formats" is answered by the "formats" that Galaxy knows, each with those that it is a kind of."""
import importlib.abc
import importlib.machinery
import json
import logging
import os
import re
import sys
import tempfile
import types


class Nothing:
    """What a module that is not installed has."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *args, **_):
        return args[0] if len(args) == 1 and callable(args[0]) else Nothing()

    def __mro_entries__(self, _):
        return ()

    def __getitem__(self, _):
        return Nothing()

    def __iter__(self):
        return iter(())

    def __or__(self, _):
        return Nothing()

    __ror__ = __or__


class Missing(types.ModuleType):
    """A module that is not installed, of which templates need nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = Nothing() if name[0].islower() else type(name, (), {"__init__": lambda self, *args, **_: None,
                                                                   "__class_getitem__": classmethod(lambda cls, _: cls)})
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, _path, _target=None):
        top = name.split(".", maxsplit=1)[0]
        real = top in ("galaxy", "tool_shed", "pygments", "IPython", "cchardet") or (top in sys.modules and not isinstance(sys.modules[top], Missing))
        return None if real else importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return missing(spec.name)

    def exec_module(self, module):
        pass


def missing(name, **has):
    module = Missing(name)
    module.__path__ = []
    module.__dict__.update(has)
    sys.modules[name] = module
    return module


logging.disable(logging.CRITICAL)
sys.meta_path.append(Finder())
missing("past")
missing("past.translation", myfixes=[])
for part in ("", ".tasks", ".base_task", ".convert", ".helpers"):
    missing("galaxy.celery" + part)

# pylint: disable=wrong-import-position,import-error,wrong-import-order
import galaxy.datatypes.registry  # noqa: E402
import galaxy.model  # noqa: E402
import galaxy.model.unittest_utils.data_app  # noqa: E402
import galaxy.security.idencoding  # noqa: E402
from galaxy.app_unittest_utils.galaxy_mock import MockApp  # noqa: E402
from galaxy.job_execution.compute_environment import SimpleComputeEnvironment  # noqa: E402
from galaxy.model import (  # noqa: E402
    Dataset, DatasetCollection, DatasetCollectionElement, History, HistoryDatasetAssociation, HistoryDatasetCollectionAssociation, Job)
from galaxy.tool_util.data import ToolDataTableManager  # noqa: E402
from galaxy.tool_util.parser import get_tool_source  # noqa: E402
from galaxy.tool_util.parser.interface import TestCollectionDef  # noqa: E402
from galaxy.tool_util.verify.parse import parse_tool_test_descriptions  # noqa: E402
from galaxy.tools import create_tool_from_source  # noqa: E402
from galaxy.tools.evaluation import ToolEvaluator  # noqa: E402
from galaxy.tools.parameters.basic import DataCollectionToolParameter, DataToolParameter, SelectToolParameter  # noqa: E402
from galaxy.tools.parameters.grouping import Conditional, Repeat, Section  # noqa: E402
from galaxy.tools.wrappers import DatasetFilenameWrapper  # noqa: E402


class Skip(Exception):
    """This tool cannot be compared."""


def make_app():
    registry = galaxy.datatypes.registry.Registry()
    top = os.path.dirname(os.path.dirname(galaxy.__file__))
    registry.load_datatypes(root_dir=os.path.dirname(top), config=os.path.join(top, "galaxy/config/sample/datatypes_conf.xml.sample"))
    galaxy.security.idencoding.IdEncodingHelper = galaxy.model.unittest_utils.data_app.IdEncodingHelper = lambda **_: Nothing()
    held = {}
    MockApp.__setitem__ = lambda self, key, value: held.__setitem__(key, value)
    MockApp.__getitem__ = lambda self, key: held.get(key)
    app = MockApp()
    app.datatypes_registry = registry
    galaxy.model.set_datatypes_registry(registry)  # the one that MockApp has set knows few
    for name, value in {"interactivetools_enable": False, "nginx_upload_path": None, "admin_users": "", "new_file_path": "/tmp/new",
                        "drmaa_external_runjob_script": "", "tool_secret": "", "track_jobs_in_database": False}.items():
        setattr(app.config, name, value)
    return app


class Environment(SimpleComputeEnvironment):
    """Where a job's files are."""

    def __init__(self, folder, tool_folder):
        self.folder, self.tool_folder = folder, tool_folder

    def input_path_rewrite(self, dataset):
        return getattr(dataset, "at", None)

    output_path_rewrite = input_path_rewrite

    def input_extra_files_rewrite(self, dataset):
        return dataset.at + "_files"

    output_extra_files_rewrite = input_extra_files_rewrite

    def working_directory(self):
        return self.folder

    env_config_directory = home_directory = tmp_directory = new_file_path = version_path = working_directory

    def tool_directory(self):
        return self.tool_folder

    def galaxy_url(self):
        return "http://galaxy"

    def get_file_sources_dict(self):
        return {}

    def unstructured_path_rewrite(self, _):
        return None

    def input_metadata_rewrite(self, *_):
        return None


def metadata_of(dataset):
    """As Galaxy shows it to templates."""
    wrapper, found = DatasetFilenameWrapper.MetadataWrapper(dataset, None), {}
    for name in dataset.metadata.spec:
        try:
            value = getattr(wrapper, name)
        except Exception:  # pylint: disable=broad-except  (of files that are not there)
            continue
        found[name] = value if isinstance(value, (int, float)) else [str(one) for one in value] if isinstance(value, list) else str(value)
    return found


class Values:
    """The values of a test: `state` for Galaxy, `params` for Drover."""

    def __init__(self, app, tool, given, formats, folders):
        self.given, self.formats, self.files, self.names = given, formats, {}, set()
        self.folders, self.collections = folders, {}  # do files have folders of extra files? collections by their names
        self.trans = types.SimpleNamespace(app=app, user=None, history=History(), workflow_building_mode=False, sa_session=None,
                                           get_history=lambda *_, **__: None, get_user=lambda *_, **__: None)
        self.state, self.params = self.walk(tool.inputs, "", {})

    def walk(self, inputs, prefix, around):
        state, params = {}, {}
        for name, one in inputs.items():
            state[name], value = self.one(one, prefix + name, {**around, **state})
            if value is not None:
                params[name] = value
        return state, params

    def one(self, one, key, around):
        if isinstance(one, Section):
            return self.walk(one.inputs, key + "|", around)
        if isinstance(one, Conditional):
            test = one.test_param
            chosen, value = self.value(test, self.given.get(f"{key}|{test.name}"), f"{key}|{test.name}", around)
            case = one.get_current_case(chosen)
            state, params = self.walk(one.cases[case].inputs, key + "|", {**around, test.name: chosen})
            return {test.name: chosen, **state, "__current_case__": case}, {**({} if value is None else {test.name: value}), **params}
        if not isinstance(one, Repeat):
            return self.value(one, self.given.get(key), key, around)
        rows = []
        while len(rows) < max(one.min or 0, one.default or 0) or any(name.startswith(f"{key}_{len(rows)}|") for name in self.given):
            rows.append(self.walk(one.inputs, f"{key}_{len(rows)}|", around))
        return [{**state, "__index__": n} for n, (state, _) in enumerate(rows)], [params for _, params in rows]

    def dataset(self, param, value, key, ext=None):
        name, n = os.path.basename(value) or "file", len(self.files) + 1
        while name in self.names:
            name = f"{n}_{name}"
        self.names.add(name)
        ext = ext or self.formats.get(value, "auto")
        if ext == "auto":
            ext = next((one for one in param.extensions if one != "data"), "txt")
        made = HistoryDatasetAssociation(name=os.path.basename(value), extension=ext, create_dataset=False)
        made.dataset, made.id, made.at = Dataset(id=n), n, "@box@/" + name
        self.files[key if key not in self.files else f"{key}{n}"] = made
        return made, {"path": "/in/" + name, "ext": ext, "name": made.name, "metadata": metadata_of(made),
                      **({"extra_files": f"/in/{name}_files"} if self.folders else {})}

    def collection(self, param, given, key):
        """A collection for Galaxy, and for Drover."""
        made, elements = DatasetCollection(collection_type=given.collection_type), []
        for n, one in enumerate(given.elements):
            inner, identifier = one["element_definition"], one["element_identifier"]
            if isinstance(inner, TestCollectionDef):
                element, value = self.collection(param, inner, key)
            else:
                element, value = self.dataset(param, inner["value"], key, inner.get("attributes", {}).get("ftype"))
            DatasetCollectionElement(collection=made, element=element, element_identifier=identifier, element_index=n)
            elements.append({**value, "identifier": identifier})
        return made, {"collection_type": given.collection_type, "elements": elements}

    def value(self, param, value, key, around):
        if isinstance(param, DataCollectionToolParameter):
            value = value[0] if isinstance(value, list) and value else value
            if not isinstance(value, TestCollectionDef):
                if value or not param.optional:
                    raise Skip("there is no collection for an input")
                return None, None
            made, given = self.collection(param, value, key)
            self.collections[key.replace("|", ".")] = made
            return HistoryDatasetCollectionAssociation(name=value.name, collection=made), {**given, "name": value.name}
        if isinstance(param, DataToolParameter):
            given = [one for one in (value if isinstance(value, list) else [value]) if one not in ("", None)]
            if not all(isinstance(one, str) for one in given) or (not given and not param.optional):
                raise Skip("there is no file for an input")
            made = [self.dataset(param, one, key) for text in given for one in (text.split(",") if param.multiple else [text])]
            if not made:
                return None, None
            return ([one for one, _ in made], [one for _, one in made]) if param.multiple else made[0]
        if value is None:
            return param.get_initial_value(self.trans, around), None
        multiple = getattr(param, "multiple", False)
        if isinstance(value, list) and not multiple:
            value = value[0] if value else None
        if param.type == "select" and multiple and isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
            value = value[0].split(",")
        if param.type in ("data_column", "genomebuild") or (isinstance(param, SelectToolParameter) and getattr(param, "options", None) is not None and value):
            return (value if not multiple or isinstance(value, list) else [value]), value
        return param.from_json(value, self.trans, around), value


def is_wanted(output, values):
    wanted = True
    for rule in output.filters or []:
        try:
            wanted = wanted and eval(rule.text.strip(), {}, dict(values.state))  # pylint: disable=eval-used  (as Galaxy does)
        except Exception:  # pylint: disable=broad-except
            pass
    return wanted


class Outputs:
    """The outputs of a job: datasets and collections by their names."""

    def __init__(self, tool, values):
        self.values, self.files, self.collections, self.names = values, {}, {}, []
        for name, output in tool.outputs.items():
            if not is_wanted(output, values):
                continue
            if getattr(output, "collection", False):
                self.collections[name] = HistoryDatasetCollectionAssociation(name=name, collection=self.collection(name, output))
            else:
                self.files[name] = self.dataset(name, output, output.format)

    def dataset(self, name, output, ext):
        source = self.values.files.get(str(output.format_source).replace(".", "|"))
        first = next(iter(self.values.files.values()), None)
        ext = source.extension if source else first.extension if ext == "input" and first else ext or "data"
        made = HistoryDatasetAssociation(name=name, extension=ext, create_dataset=False)
        n = 1001 + len(self.names)
        made.dataset, made.id, made.at = Dataset(id=n), n, f"@out@{name}@"
        self.names.append(name)
        return made

    def collection(self, name, output):
        made = DatasetCollection(collection_type=output.structure.collection_type or "list")
        if output.dynamic_structure:
            return made
        if output.structure.structured_like:
            return self.like(name, output, self.values.collections[output.structure.structured_like])
        for n, (identifier, part) in enumerate(output.outputs.items()):
            DatasetCollectionElement(collection=made, element=self.dataset(f"{name}__{identifier}", part, part.format),
                                     element_identifier=identifier, element_index=n)
        return made

    def like(self, name, output, prototype):
        made = DatasetCollection(collection_type=prototype.collection_type)
        for n, one in enumerate(prototype.elements):
            below = f"{name}__{one.element_identifier}"
            element = self.like(below, output, one.child_collection) if one.is_collection else self.dataset(
                below, output, one.hda.extension if output.inherit_format else output.default_format)
            DatasetCollectionElement(collection=made, element=element, element_identifier=one.element_identifier, element_index=n)
        return made


def values_of(app, tool, path):
    formats = {str(one.get("value")): one["attributes"]["ftype"] for test in get_tool_source(path).parse_tests_to_dict().get("tests", [])
               for one in test["inputs"] if one.get("attributes", {}).get("ftype")}
    why = "it has no tests"
    with open(path, encoding="utf-8", errors="replace") as f:
        folders = "extra_files_path" in f.read()
    for test in parse_tool_test_descriptions(get_tool_source(path)):
        if test.exception or test.expect_failure:
            continue
        try:
            values = Values(app, tool, dict(test.inputs), formats, folders)
            return values, Outputs(tool, values)
        except Skip as problem:
            why = str(problem)
        except Exception as problem:  # pylint: disable=broad-except  (values that Galaxy refuses)
            why = repr(problem)[:100]
    raise Skip(why)


def read_tables(app, path):
    """The name of the file of data tables for tests beside the tool, or None."""
    file = os.path.join(os.path.dirname(path), "tool_data_table_conf.xml.test")
    there = os.path.exists(file)
    app.config.tool_data_path = os.path.dirname(path)
    app.tool_data_tables = ToolDataTableManager(tool_data_path=os.path.dirname(path), config_filename=file if there else None)
    return os.path.basename(file) if there else None


def evaluate(app, path):
    tables = read_tables(app, path)
    tool = create_tool_from_source(app, get_tool_source(path), config_file=path)
    if tool.tool_type != "default":
        raise Skip(f"its type is {tool.tool_type}")
    values, outputs = values_of(app, tool, path)
    job = Job()
    job.history, job.parameters, job.tool_id = History(), [], tool.id
    job.history.id = 1
    job.io_dicts = lambda *_, **__: (values.files, outputs.files, outputs.collections)
    tool.params_from_strings = lambda *_, **__: values.state
    tool.exec_before_job = tool.call_hook = lambda *_, **__: None
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "working"))
        evaluator = ToolEvaluator(app, tool, job, folder)
        # pylint: disable=protected-access
        evaluator._validate_incoming = evaluator._replaced_deferred_objects = lambda *_: None
        evaluator._deferred_objects = evaluator._materialize_objects = lambda *_: {}
        beside = "@box@/" + os.path.basename(os.path.dirname(path))
        evaluator.set_compute_environment(Environment(folder, beside))
        evaluator._build_config_files()
        configs = []
        for name in evaluator.extra_filenames:
            with open(name, encoding="utf-8") as f:
                configs.append(f.read())
        evaluator._build_command_line()
        command = (evaluator.command_line or "").replace(os.path.abspath(tool.tool_dir) + "/", beside + "/")
        command = re.sub(re.escape(folder) + r"/configs/\w+", "@config@", command).replace(folder, "@box@")
    return {"params": values.params, "command": command, "configs": configs, "outputs": sorted(outputs.names),
            **({"tables": tables} if tables else {})}


def formats(registry):
    known = registry.datatypes_by_extension
    return {name: sorted(other for other in known if other != name and known[name].matches_any([known[other]])) for name in sorted(known)}


def main():
    app = make_app()
    for line in sys.stdin:
        path = line.rstrip("\n")
        try:
            answer = {"formats": formats(app.datatypes_registry)} if path == "formats" else evaluate(app, path)
        except Skip as problem:
            answer = {"skip": str(problem)}
        except (Exception, SystemExit) as problem:  # pylint: disable=broad-except  (Galaxy refuses the tool)
            answer = {"skip": "Galaxy: " + repr(problem)[:200]}
        print("=" + json.dumps({"tool": path, **answer}, default=str), flush=True)


main()
