"""The JSON Schemas of what tracekit writes, made from the nouns themselves, so that they say what this version writes.

Every key that is written is required; more keys may come with later versions, none go.
"""

import ast
import functools
import re
import sys
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from tracekit import model
from tracekit.model import analysis, comparison, comparisons
from tracekit.model.gate import Outcome
from tracekit.model.groups import Evidence
from tracekit.model.job import Job
from tracekit.model.note import Note
from tracekit.model.run import FormResult, Run
from tracekit.model.sequence import OperatorSource
from tracekit.model.single_run import NothingCompiled, PerStep
from tracekit.model.statement import Statement
from tracekit.wings import load, over_ranks, wings

#: The dialect that msgspec writes.
#: Where a noun's own schema lies in a file.
PLACE = "#/$defs/{name}"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Measured(Struct, frozen=True):
    """The form that was read, of a run folder."""

    form: FormResult  #: What was measured of it.
    steps: int  #: What figures per step were divided by.
    per_step: PerStep  #: Its figures per step.
    rich: analysis.Analysis | None  #: Of the rich recording: sums over its window, as in `analysis`.


class AnalysisFile(analysis.Analysis, frozen=True, kw_only=True):
    """What one trace says, and what a reader should know or do. GPU parts are None for a CPU-only recording."""

    schema: Literal["tracekit.analysis/1"]
    findings: tuple[comparison.Finding, ...]  #: Those that need no other side to compare with.
    notes: tuple[Note, ...]  #: What a reader must know before believing the figures.
    warnings: tuple[str, ...]  #: What the notes say that are not grave.
    grave: tuple[str, ...]  #: What the grave notes say.
    per_step: PerStep  #: Figures per step; of a run folder they are in `run`.
    run: Measured  #: What a run folder says besides; not there for a bare trace.
    nothing_compiled: NothingCompiled  #: Why torch.compile compiled nothing; there only where it did.


class ComparisonFile(comparison.Comparison, frozen=True, kw_only=True):
    """What changed from A to B, and why."""

    schema: Literal["tracekit.comparison/1"]


class ComparisonsFile(comparisons.Comparisons, frozen=True, kw_only=True):
    """Several ways to compile the same work, each compared with the eager form of its own process."""

    schema: Literal["tracekit.comparisons/1"]
    names: tuple[str, ...]  #: Of the compiled forms, in the order of `paths` and `comparisons`.
    warnings: tuple[str, ...]  #: What the notes say.


#: What is written of a noun besides its own fields, or in their place: above all what its facts are in English. By key
#: its type and what it is.
BESIDE: dict[str, dict[str, tuple[object, str]]] = {
    "Comparison": {
        "warnings": (tuple[str, ...], "What the notes say."),
        "grave": (tuple[str, ...], "What the grave notes say, which `warnings` say too."),
    },
    "Side": {
        "operators": (OperatorSource | None, "Where the operators of its GPU work are known from."),
        "steps": (int, "What figures per step were divided by."),
        "per_step": (PerStep, "Its figures per step."),
        "rich": (analysis.Analysis | None, "Of the rich recording: sums over its window, as in `analysis`."),
        "bound": (comparison.Bound | None, "What holds it back; None where that is not known."),
    },
    "Gate": {"outcome": (Outcome, "Of all conditions."), "ends_as": (Outcome, "What the command ends with.")},
    "Checked": {"because": (str, "What the reasons say.")},
    "Accuracy": {"because": (str, "What the reasons say.")},
    "SeparateRunsChange": {"assumed": (str | None, "What the assumptions say; None without any.")},
    "NothingCompiled": {"because": (str, "Why, in one line.")},
    "Remedy": {"advice": (str, "What to do, in words.")},
    "WaterfallPart": {"label": (str, "What it is, in words.")},
    "KernelGroup": {
        "label": (str, ""),
        "evidence": (tuple[str, ...], "What shows that a library kernel was exchanged."),
        "evidence_facts": (tuple[Evidence, ...], ""),
    },
    "Bound": {"because": (str, "Why, in words.")},
    "SyncTime": {"where": (str | None, "Place and lines in words; None where not recorded.")},
}
BESIDE["ComparisonFile"] = BESIDE["Comparison"]
#: Every activity one by one is the trace over again, and bounds are written with their sides.
UNWRITTEN: dict[str, tuple[str, ...]] = {
    "Comparison": ("a_bound", "b_bound"),
    "ComparisonFile": ("a_bound", "b_bound"),
    "Side": ("sequence", "provenance", "timeline", "rich_timeline", "pictures", "kernel_sources", "code"),
    "KernelGroup": ("a_at", "b_at"),
}
#: Keys of an analysis that only some have.
OPTIONAL = ("per_step", "run", "nothing_compiled")


class Written(NamedTuple):
    """A file that is written: of which noun, and what stands besides the fields of nouns; None where a file holds
    nothing but fields, and those that say nothing may be left out."""

    noun: type
    beside: dict[str, dict[str, tuple[object, str]]] | None
    unwritten: dict[str, tuple[str, ...]] = UNWRITTEN  #: Of nouns, the fields that are not written.


FILES = {
    "analysis": Written(AnalysisFile, BESIDE),
    "comparison": Written(ComparisonFile, BESIDE),
    "comparisons": Written(ComparisonsFile, BESIDE),
    "run": Written(Run, None),
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


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of `tracekit.NAME/1`."""
    file = _files()[name]
    beside = file.beside or {}
    added = [
        msgspec.defstruct(f"Of{noun}", [(key, kind) for key, (kind, _) in keys.items()])
        for noun, keys in beside.items()
    ]
    instead = _written_instead()
    _, nouns = msgspec.json.schema_components(
        (file.noun, *added, *instead.values(), *_written_statements()), schema_hook=_as_written, ref_template=PLACE
    )
    said = _said_of_fields() | {
        f"Of{noun}": {key: told for key, (_, told) in keys.items()} for noun, keys in beside.items()
    }
    for noun in instead.keys() & nouns.keys():
        nouns[noun] = {**nouns[instead[noun].__name__], "title": noun}
        said[noun] = said[instead[noun].__name__]
    for noun, told in nouns.items():
        for key, each in told.get("properties", {}).items():
            if words := said[noun].get(key) or UNITS.get(key.rsplit("_", 1)[-1]):
                each["description"] = words
    # What `contract` writes of a noun in place of its fields.
    for noun, fields in nouns.items() if beside else ():
        told = fields["properties"]
        if noun in beside:
            told |= nouns[f"Of{noun}"]["properties"]
        for key in file.unwritten.get(noun, ()):
            del told[key]
        if "by_name" in told:
            told["top"] = told.pop("by_name")
        fields["required"] = [key for key in told if noun != "AnalysisFile" or key not in OPTIONAL]
        for each in told.values():
            each.pop("default", None)
    root = file.noun.__name__
    needed: set[str] = set()
    found = {root}
    while found:
        needed |= found
        found = {each for noun in found for each in re.findall(r"'#/\$defs/(\w+)'", str(nouns[noun]))} - needed
    for each in needed:
        nouns[each]["description"] = " ".join(nouns[each].get("description", "").split())
    return {
        "$schema": DIALECT,
        "$id": f"tracekit.{name}/1",
        "title": f"tracekit.{name}/1",
        "$ref": f"#/$defs/{root}",
        "$defs": {each: nouns[each] for each in sorted(needed)},
    }


def _written_instead() -> dict[str, type[Struct]]:
    """By noun what JSON holds of it; the job that a comparison holds is a wing's."""
    known = over_ranks()
    job = {Job.__name__: load(known.noun)} if known else {}
    return {comparison.Finding.__name__: comparison.WrittenFinding, **job}


def _written_statements() -> list[type[Struct]]:
    return [kind.as_written for kind in Statement.__subclasses__()]


def _as_written(kind: type) -> dict[str, str]:
    """The place of what JSON holds of a kind of statements."""
    if not issubclass(kind, Statement):
        raise NotImplementedError(f"no schema for {kind.__name__}")
    return {"$ref": PLACE.format(name=kind.as_written.__name__)}


def schema_text(name: str, *, for_reading: bool = False) -> str:
    """In one line, or `for_reading` with a line for each key."""
    return msgspec.json.format(msgspec.json.encode(schema(name)), indent=1 if for_reading else -1).decode() + "\n"


@functools.cache
def _files() -> dict[str, Written]:
    """Those of the core and of wings, by name."""
    return FILES | {name: load(place) for wing in wings() for name, place in wing.schemas.items()}


@functools.cache
def _said_of_fields() -> dict[str, dict[str, str]]:
    """By noun and field what stands beside it, `wall_us: float  #: The median.`: Python itself keeps no comments."""
    said: dict[str, dict[str, str]] = {}
    written: list[type] = [file.noun for file in _files().values()]
    written += [load(known.noun)] if (known := over_ranks()) else []
    own = [base for noun in written for base in noun.__mro__ if base.__module__.startswith("tracekit.")]
    of_files = sorted({sys.modules[noun.__module__].__file__ or "" for noun in own})
    for path in dict.fromkeys((*Path(model.__file__).parent.glob("*.py"), *map(Path, of_files))):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        for noun in ast.parse(source).body:
            if isinstance(noun, ast.ClassDef):
                found = said.setdefault(noun.name, {})
                for base in noun.bases:
                    found |= said.get(ast.unparse(base).rpartition(".")[2], {})
                for field in noun.body:
                    if isinstance(field, ast.AnnAssign) and (
                        words := lines[(field.end_lineno or 1) - 1].partition("  #: ")[2]
                    ):
                        found[ast.unparse(field.target)] = words
    return said
