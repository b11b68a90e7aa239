"""Reading a study file: YAML without its traps, errors with line numbers and near names."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from tropescope.errors import StudyError
from tropescope.models.entry import ModelEntry, plugin
from tropescope.study.checking import check
from tropescope.study.definition import Study

LARGEST_FILE = 4_000_000
_TRAPS = re.compile(r"(?:yes|no|on|off)\Z", re.IGNORECASE)

Place = tuple[str | int, ...]


class _PlainYaml(yaml.SafeLoader):
    """YAML whose only special plain scalars are null, true, false and decimal numbers.

    YAML 1.1 also reads `no` as false, `1:30` as 90 and `010` as 8; a study that names Norway by its
    code or a ratio by its parts would be changed without a word.
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _tag, _pattern, _first in (
    ("null", r"(?:~|null|)\Z", ["~", "n", ""]),
    ("bool", r"(?:true|false)\Z", list("tf")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)\Z", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z",
        list("-+.0123456789"),
    ),
):
    _PlainYaml.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


class _Source:
    """A parsed file: its data and the line on which each part stands."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Place, int] = {}

    def where(self, place: Place) -> str:
        """File and line of a place, or of the nearest part that encloses it."""
        for length in range(len(place), -1, -1):
            line = self.lines.get(place[:length])
            if line is not None:
                return f"{self.name}, line {line}"
        return self.name

    def build(self, node: yaml.Node, place: Place = ()) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(place, line)
        if isinstance(node, yaml.MappingNode):
            mapping: dict[Any, Any] = {}
            for key_node, value_node in node.value:
                key = self.build(key_node, (*place, "\0key"))
                if not isinstance(key, str):
                    raise StudyError(
                        f"{self.name}, line {key_node.start_mark.line + 1}: the key "
                        f"`{str(key_node.value)[:40]}` is not a word to YAML",
                        fix="write it in quotes",
                    )
                if key in mapping:
                    raise StudyError(
                        f"{self.name}, line {key_node.start_mark.line + 1}: "
                        f"'{key}' stands twice in the same block",
                        fix="remove or rename one of them",
                    )
                self.lines[(*place, key)] = key_node.start_mark.line + 1
                mapping[key] = self.build(value_node, (*place, key))
            return mapping
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*place, i)) for i, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        if node.style is None and _TRAPS.match(node.value):
            raise StudyError(
                f"{self.name}, line {line}: the bare word `{node.value}` means true or false to "
                "many YAML readers",
                fix=f'write "{node.value}" in quotes if you mean the word, or true / false',
            )
        try:
            return _construct_scalar(node)
        except ValueError:
            raise StudyError(
                f"{self.name}, line {line}: {node.value[:40]!r}… is not a usable number"
            ) from None


def _construct_scalar(node: yaml.ScalarNode) -> Any:
    match node.tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return node.value == "true"
        case "int":
            return int(node.value)
        case "float":
            return float(node.value)
        case _:
            return node.value


def parse(text: str, *, name: str = "study") -> tuple[dict[str, Any], _Source]:
    """YAML text to plain data, remembering lines; never runs or references anything."""
    source = _Source(name)
    try:
        for token in yaml.scan(text, Loader=_PlainYaml):
            if isinstance(token, yaml.TagToken):
                raise StudyError(
                    f"{name}, line {token.start_mark.line + 1}: YAML tags are not allowed",
                    fix="a study is plain data; remove the tag",
                )
            if isinstance(token, yaml.AliasToken | yaml.AnchorToken):
                raise StudyError(
                    f"{name}, line {token.start_mark.line + 1}: YAML anchors and aliases are not "
                    "allowed in a study",
                    fix="write the values out",
                )
        node = yaml.compose(text, Loader=_PlainYaml)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}, line {mark.line + 1}" if mark else name
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise StudyError(
            f"{where}: not readable as YAML: {problem}", fix="check indentation, quotes and colons"
        ) from error
    except RecursionError:
        raise StudyError(f"{name}: nested too deeply") from None
    data = source.build(node) if node is not None else None
    if not isinstance(data, dict):
        raise StudyError(
            f"{name}: a study must be a block of `key: value` lines",
            fix="start from a file in studies/",
        )
    return data, source


def load_study(path: str | Path) -> Study:
    """Read, validate and check a study file."""
    path = Path(path)
    if not path.is_file():
        raise StudyError(f"no study file at {path}", fix="give the path of a .yaml file")
    if path.stat().st_size > LARGEST_FILE:
        raise StudyError(f"{path} is larger than {LARGEST_FILE:,} bytes")
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise StudyError(
            f"{path}: byte {error.start} is not UTF-8", fix="save the file as UTF-8"
        ) from None
    study = load_study_text(text, name=path.name)
    study._folder = path.resolve().parent
    return study


def load_study_text(text: str, *, name: str = "study") -> Study:
    data, source = parse(text, name=name)
    problems: list[str] = []
    data = dict(data)
    if "models" in data:
        data["models"] = _entries(data["models"], source, problems)
    study: Study | None = None
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        problems += _explain(error, Study, (), source)
    if study is not None and not problems:
        problems += [f"{source.where(place)}: {message}" for place, message in check(study)]
    if problems or study is None:
        raise StudyError("\n".join(dict.fromkeys(problems)), fix="correct the study and run again")
    return study


def _entries(raw: Any, source: _Source, problems: list[str]) -> Any:
    """Validate each audited model with the schema of its own adapter."""
    if not isinstance(raw, dict):
        return raw
    entries: dict[str, ModelEntry] = {}
    for name, settings in raw.items():
        place: Place = ("models", name)
        if not isinstance(settings, dict) or not isinstance(settings.get("adapter"), str):
            problems.append(f"{source.where(place)}: model '{name}' needs an `adapter:`")
            continue
        try:
            schema = plugin(settings["adapter"]).entry
            entries[name] = schema.model_validate(settings)
        except StudyError as error:
            problems.append(f"{source.where((*place, 'adapter'))}: {error.message} ({error.fix})")
        except ValidationError as error:
            problems += _explain(error, schema, place, source)
    return entries if entries or not raw else dict.fromkeys(raw, ModelEntry(adapter="invalid"))


def _explain(
    error: ValidationError, schema: type[BaseModel], prefix: Place, source: _Source
) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False):
        place: Place = (*prefix, *problem["loc"])
        if place[:1] == ("judge",):  # pydantic names the kind of judge; the file has no such level
            place = ("judge", *place[2:])
        shown = " › ".join(str(part) for part in place)
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            fields = _fields_at(schema, problem["loc"][:-1])
            near = difflib.get_close_matches(str(place[-1]), fields, n=1)
            message = f"unknown key '{place[-1]}'" + (
                f", did you mean '{near[0]}'?" if near else ""
            )
            if not near and fields:
                message += f"; known keys: {', '.join(fields)}"
        elif problem["type"] == "missing":
            message = f"'{place[-1]}' is missing"
        elif problem["type"].startswith("literal") or problem["type"] == "union_tag_invalid":
            message = (
                f"{message}, not {problem['input']!r}"
                if len(str(problem["input"])) < 80
                else message
            )
        lines.append(f"{source.where(place)}: {shown}: {message}")
    return lines


def _fields_at(schema: Any, loc: Place) -> list[str]:
    """Names of the fields that a mapping at `loc` may have."""
    for part in loc:
        schema = _inner(schema, part)
    models = [option for option in _options(schema) if _is_model(option)]
    return sorted({name for model in models for name in model.model_fields})


def _is_model(option: Any) -> bool:
    return isinstance(option, type) and issubclass(option, BaseModel)


def _options(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _options(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [inner for option in get_args(annotation) for inner in _options(option)]
    return [annotation]


def _inner(annotation: Any, part: str | int) -> Any:
    for option in _options(annotation):
        if _is_model(option):
            if part in option.model_fields:
                return option.model_fields[str(part)].annotation
            if "kind" in option.model_fields and part in get_args(
                option.model_fields["kind"].annotation
            ):
                return option
        elif get_args(option):
            return get_args(option)[-1] if get_origin(option) is dict else get_args(option)[0]
    return None


class _PlainDumper(yaml.SafeDumper):
    """Writes YAML that `parse` reads back as it was: it quotes what `_PlainYaml` would change."""

    yaml_implicit_resolvers = {
        first: list(rules) for first, rules in _PlainYaml.yaml_implicit_resolvers.items()
    }


_PlainDumper.add_implicit_resolver("tag:yaml.org,2002:bool", _TRAPS, list("yYnNoO"))


def study_text(study: Study) -> str:
    """A study as YAML text."""
    data = study.model_dump(mode="json")
    return yaml.dump(data, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=100)
