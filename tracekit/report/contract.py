"""The JSON contract: `tracekit.analysis/1`, `tracekit.comparison/1` and `tracekit.comparisons/1`, and its JSON Schemas.

From the first release on changes are additive only. A noun is written as it is, or as the struct of its name here.

In the schemas every key that is written is required; more keys may come with later versions, none go. Of files that
tracekit reads again, which an older version may have written, what has a default is not required.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import asdict, replace

from tracekit import model
from tracekit.model import comparison as compared
from tracekit.model import comparisons, single_run, waterfall
from tracekit.model.analysis import Analysis
from tracekit.model.comparison import GroupFigures, PerStep, SideFigures, WrittenFinding
from tracekit.model.groups import Evidence
from tracekit.model.job import Job
from tracekit.model.note import Note, grave_sentences, note_sentences
from tracekit.model.run import FormResult, Run
from tracekit.model.sequence import OperatorSource
from tracekit.model.single_run import SingleRun
from tracekit.model.statement import Statement, Words, builtins_of, written
from tracekit.names import encodable
from tracekit.report.words.groups import label_words
from tracekit.report.words.not_compiled import because, remedy_words
from tracekit.wings import load, over_ranks, wings

Kind = TypeVar("Kind")


class Measured(Struct, frozen=True):
    """The form that was read, of a run folder."""

    form: FormResult  #: What was measured of it.
    steps: int  #: What figures per step were divided by.
    per_step: PerStep  #: Its figures per step.
    rich: Analysis | None  #: Of the rich recording: sums over its window, as in `analysis`.


class Remedy(single_run.Remedy, frozen=True):
    advice: str = ""  #: What to do, in words.


class NothingCompiled(single_run.NothingCompiled, frozen=True):
    remedies: tuple[Remedy, ...]
    because: str = ""  #: Why, in one line.


class AnalysisFile(Analysis, frozen=True, kw_only=True, tag_field="schema", tag="tracekit.analysis/1"):
    """What one trace says, and what a reader should know or do. GPU parts are None for a CPU-only recording."""

    findings: tuple[WrittenFinding, ...]  #: Those that need no other side to compare with.
    warnings: tuple[str, ...]  #: What the notes say.
    grave: tuple[str, ...]  #: What the grave notes say, which `warnings` say too.
    notes: tuple[Note, ...]  #: What a reader must know before believing the figures.
    nothing_compiled: NothingCompiled | UnsetType = UNSET  #: Why torch.compile compiled nothing, where so.
    per_step: PerStep | UnsetType = UNSET  #: Figures per step; of a run folder they are in `run`.
    run: Measured | UnsetType = UNSET  #: What a run folder says besides; not there for a bare trace.


class Side(SideFigures, frozen=True, kw_only=True):
    operators: OperatorSource | None  #: Where the operators of its GPU work are known from.
    steps: int  #: What figures per step were divided by.
    per_step: PerStep  #: Its figures per step.


class WaterfallPart(waterfall.WaterfallPart, frozen=True):
    label: Words  #: What it is, in words.


class Waterfall(waterfall.Waterfall, frozen=True):
    parts: tuple[WaterfallPart, ...]


class ReasonShare(compared.ReasonShare, frozen=True):
    parts: tuple[WaterfallPart, ...]  #: What made most of it, largest first; empty where none is large.


class Reason(compared.Reason, frozen=True):
    """Why a call takes another time."""

    shares: tuple[ReasonShare, ...]  #: The larger first.


class KernelGroup(GroupFigures, frozen=True, kw_only=True):
    evidence_words: tuple[str, ...] = field(name="evidence")  #: What shows that a library kernel was exchanged.
    evidence: tuple[Evidence, ...] = field(name="evidence_facts")
    label: Words


class Comparison(compared.Comparison, frozen=True):
    a: Side  # type: ignore[assignment]
    b: Side  # type: ignore[assignment]
    waterfall: Waterfall | None
    groups: tuple[KernelGroup, ...]  # type: ignore[assignment]
    findings: tuple[WrittenFinding, ...]  # type: ignore[assignment]
    reason: Reason | None = None
    warnings: tuple[str, ...] = ()  #: What the notes say.
    grave: tuple[str, ...] = ()  #: What the grave notes say, which `warnings` say too.


class ComparisonFile(Comparison, frozen=True, tag_field="schema", tag="tracekit.comparison/1"):
    pass


class ComparisonsFile(
    comparisons.Comparisons, frozen=True, kw_only=True, tag_field="schema", tag="tracekit.comparisons/1"
):
    names: tuple[str, ...]  #: Of the compiled forms, in the order of `paths` and `comparisons`.
    warnings: tuple[str, ...]  #: What the notes say.
    comparisons: tuple[Comparison, ...]  #: Of one run each; compiled sides' labels tell them apart.


def analysis_json(alone: SingleRun, *, top: int = 20) -> str:
    """One trace's analysis, and what a reader should know or do; `top` is how many names of kernels and copies are
    listed, largest total time first. What a run folder says beside the trace stands under the key `run`, and under
    `nothing_compiled` why it has no compiled form, where torch.compile made none.
    """
    side = _shortened(alone.side, top)
    measured = Measured(side.form, side.steps, side.per_step, side.rich) if side.form else UNSET
    nothing: NothingCompiled | UnsetType = UNSET
    if alone.nothing_compiled:
        reasons, source = alone.nothing_compiled.reasons, alone.nothing_compiled.source
        remedies = tuple(Remedy(**asdict(each), advice=remedy_words(each)) for each in alone.nothing_compiled.remedies)
        nothing = NothingCompiled(reasons, remedies, source, because(reasons))
    told = AnalysisFile(
        **asdict(side.analysis),
        findings=shown_as(tuple[WrittenFinding, ...], alone.findings),
        warnings=note_sentences(alone.notes),
        grave=grave_sentences(alone.notes),
        notes=alone.notes,
        nothing_compiled=nothing,
        per_step=side.per_step if measured is UNSET else UNSET,
        run=measured,
    )
    return json_text(told)


def comparison_json(comparison: compared.Comparison, *, top: int = 20) -> str:
    """A comparison; each side holds its analysis."""
    return json_text(shown_as(ComparisonFile, _with_short_sides(comparison, top)))


def comparisons_json(told: comparisons.Comparisons, *, top: int = 20) -> str:
    """Several comparisons side by side; `comparisons` are each as `tracekit.comparison/1` without its schema."""
    short = tuple(_with_short_sides(each, top) for each in told.comparisons)
    return json_text(shown_as(ComparisonsFile, replace(told, comparisons=short)))


def shown_as(kind: type[Kind], noun: object) -> Kind:
    """`kind`, each of its fields made of the noun's attribute of that name."""

    def of_what_msgspec_does_not_know(kind: type, part: Any) -> Any:
        if kind is Words:
            return Words(part.long() if isinstance(part, Statement) else label_words(part))
        return shown_as(written_job(), part) if kind is Job else part

    return msgspec.convert(noun, kind, from_attributes=True, dec_hook=of_what_msgspec_does_not_know)


class NoJob(Struct, frozen=True):
    """Where no wing compares jobs rank by rank."""


def written_job() -> type[Any]:
    """What JSON holds of a job: the wing's that compares jobs rank by rank."""
    known = over_ranks()
    return load(known.written) if known else NoJob


def _with_short_sides(comparison: compared.Comparison, top: int) -> compared.Comparison:
    return replace(comparison, a=_shortened(comparison.a, top), b=_shortened(comparison.b, top))


def _shortened(side: compared.Side, top: int) -> compared.Side:
    rich = _first_names(side.rich, top) if side.rich else None
    return replace(side, analysis=_first_names(side.analysis, top), rich=rich)


def _first_names(analysis: Analysis, top: int) -> Analysis:
    kernels, copies = (
        replace(each, by_name=each.by_name[:top]) if each else None for each in (analysis.kernels, analysis.copies)
    )
    return replace(analysis, kernels=kernels, copies=copies)


def json_text(told: Struct) -> str:
    """What is written: indented, whatever is no number as null."""
    # msgspec writes NaN and infinities as null: what is no number was not measured.
    try:
        encoded = msgspec.json.encode(told, enc_hook=written)
    except UnicodeEncodeError:
        # A path that is no text, or a command line with one.
        text = json.dumps(builtins_of(told), ensure_ascii=False)
        encoded = msgspec.json.encode(json.loads(encodable(text)))
    return msgspec.json.format(encoded, indent=1).decode() + "\n"


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
