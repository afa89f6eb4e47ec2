"""The JSON Schemas of what tracekit writes, made from the structs that are written.

Every key that is written is required; more keys may come with later versions, none go. Of files that tracekit reads
again, which an older version may have written, what has a default is not required.
"""

import functools
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tracekit import model
from tracekit.model.job import Job
from tracekit.model.run import Run
from tracekit.model.statement import Statement, Words
from tracekit.report.contract import AnalysisFile, ComparisonFile, ComparisonsFile, written_job
from tracekit.wings import load, wings

#: The dialect that msgspec writes.
DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: Where a struct's own schema lies in a file.
PLACE = "#/$defs/{name}"
FILES: dict[str, type[Struct]] = {
    "analysis": AnalysisFile,
    "comparison": ComparisonFile,
    "comparisons": ComparisonsFile,
    "run": Run,
}
#: What a figure is in whose name a unit stands, where nothing else is said of it.
UNITS = {
    "ci95": "The two ends of a 95 % interval.",
    "ms": "Milliseconds.",
    "us": "Microseconds.",
    "seconds": "Seconds.",
    "bytes": "Bytes.",
    "mhz": "Megahertz.",
    "w": "Watts.",
    "c": "Degrees Celsius.",
    "share": "A share, 0 to 1.",
    "fraction": "A share, 0 to 1.",
    "count": "How many.",
}
#: A class of the source, and a field with what stands beside it, `    wall_us: float  #: The median.`
CLASS = re.compile(r"^class (\w+)(\([^:]*\))?:\n((?:\n|    .*\n)*)", re.MULTILINE)
FIELD = re.compile(r'^    (\w+): (?:.*name="(\w+)")?.*  #: (.+)', re.MULTILINE)
DOCSTRING = re.compile(r'    """(.*?)"""', re.DOTALL)


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of `tracekit.NAME/1`."""
    file = _files()[name]
    # The others hold their `schema` in a field.
    is_only_written = file.__struct_config__.tag is not None
    of_others = (written_job(), *(kind.as_written for kind in Statement.__subclasses__()))
    _, told = msgspec.json.schema_components((file, *of_others), schema_hook=_as_written, ref_template=PLACE)
    needed: dict[str, Any] = {}
    found = {file.__name__}
    while found:
        needed |= {noun: told[noun] for noun in found}
        found = {each for noun in found for each in re.findall(r"'#/\$defs/(\w+)'", str(told[noun]))} - needed.keys()
    for noun, fields in needed.items():
        said = _said()[noun]
        fields["description"] = " ".join(said.get("", "").split())
        properties = fields.get("properties", {})
        for key, each in properties.items():
            if words := said.get(key) or UNITS.get(key.rsplit("_", 1)[-1]):
                each["description"] = words
        if is_only_written:
            # What has no default and need not be there is unset in some.
            always = {*fields.get("required", ()), *(key for key, each in properties.items() if "default" in each)}
            fields["required"] = [key for key in properties if key in always]
            for each in properties.values():
                each.pop("default", None)
    return {
        "$schema": DIALECT,
        "$id": f"tracekit.{name}/1",
        "title": f"tracekit.{name}/1",
        "$ref": PLACE.format(name=file.__name__),
        "$defs": dict(sorted(needed.items())),
    }


def _as_written(kind: Any) -> dict[str, str]:
    """The schema of what msgspec does not know: the words of a noun, or the place of what JSON holds of it."""
    if kind is Words:
        return {"type": "string"}
    written = written_job() if kind is Job else kind.as_written
    return {"$ref": PLACE.format(name=written.__name__)}


def schema_text(name: str, *, for_reading: bool = False) -> str:
    """In one line, or `for_reading` with a line for each key."""
    return msgspec.json.format(msgspec.json.encode(schema(name)), indent=1 if for_reading else -1).decode() + "\n"


@functools.cache
def _files() -> dict[str, type[Struct]]:
    """Those of the core and of wings, by name."""
    return FILES | {name: load(place) for wing in wings() for name, place in wing.schemas.items()}


@functools.cache
def _said() -> dict[str, dict[str, str]]:
    """By class and key what stands beside the field in the source, and under no key what the class is; both as its
    bases say where it does not. Python itself keeps no comments."""
    said: defaultdict[str, dict[str, str]] = defaultdict(dict)
    written = (*_files().values(), written_job())
    own = {base.__module__ for kind in written for base in kind.__mro__ if base.__module__.startswith("tracekit.")}
    paths = (*Path(model.__file__).parent.glob("*.py"), *(Path(sys.modules[each].__file__ or "") for each in own))
    for path in sorted(paths):
        for kind, bases, body in CLASS.findall(path.read_text(encoding="utf-8")):
            for base in re.findall(r"(\w+)(?=[,)])", bases):
                said[kind] |= said.get(base, {})
            said[kind] |= {key or field: words for field, key, words in FIELD.findall(body)}
            if docstring := DOCSTRING.match(body):
                said[kind][""] = docstring[1]
    return said
