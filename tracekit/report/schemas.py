"""The JSON Schemas of what tracekit writes, made from the nouns themselves, so that they say what this version writes.

Every key that is written is required; more keys may come with later versions, none go.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
import typing
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from tracekit.model import (
    action,
    advice,
    alone,
    analysis,
    comparison,
    comparisons,
    compilation,
    estimate,
    evidence,
    gate,
    generation,
    gpu_state,
    labels,
    memory,
    note,
    numerics,
    per_step,
    provenance,
    rates,
    regions,
    run,
    sequence,
    startup,
    sweep,
    sweep_figures,
    timeline,
    timing,
)
from tracekit.report.describing import described

SchemaName = Literal["analysis", "comparison", "comparisons", "run", "sweep", "sweep-cell"]
#: The modules of nouns, in the order in which a later one's name wins.
NOUNS = (
    action,
    evidence,
    advice,
    note,
    rates,
    sequence,
    provenance,
    compilation,
    regions,
    generation,
    gpu_state,
    labels,
    memory,
    numerics,
    startup,
    timing,
)
MORE_NOUNS = (advice, timeline, run, gate, estimate, analysis, comparison, comparisons, alone, sweep, sweep_figures)
#: Where names in annotations are found, whatever a module imports for itself.
NAMES = {name: value for module in (*NOUNS, *MORE_NOUNS) for name, value in vars(module).items()}
#: The dialect that msgspec writes.
DIALECT = "https://json-schema.org/draft/2020-12/schema"

#: Positions in sequences that are not written.
UNWRITTEN = ("a_at", "b_at")

#: What stands in JSON in English beside the notes that say it.
WARNINGS = "`warnings` are what the notes say."
GRAVE_TOO = "`warnings` are what the notes say, `grave` the grave ones among them once more."
GRAVE_APART = "`grave` is what the grave notes say, `warnings` what the others do."
HELD_BACK = "`held_back` is what the limits say."
BECAUSE = "`because` says it in words."
#: Keys of words that are written beside a noun's facts, or in their place.
WORDED: dict[type, dict[str, Any]] = {
    comparison.Finding: {"title": str, "evidence": str, "advice": str | None},
    comparison.WaterfallPart: {"label": str},
    comparison.KernelGroup: {
        "label": str,
        "evidence": tuple[str, ...],
        "evidence_facts": tuple[evidence.Evidence, ...],
    },
}

#: What is said of what stands in no noun.
RUN = "`run` is what a run folder says besides; not there for a bare trace."
MEASURED = (
    "The form that was read, of a run folder. `form` is what was measured of it, `steps` what figures per step were "
    "divided by, `rich` the analysis of its rich recording: sums over its window, like the analysis itself."
)
NAMED = "`names` are what the compiled forms are called, in the order of `paths` and `comparisons`."
SIDE = (
    "`operators` says where the operators of its GPU work are known from; None where they are not. `per_step` are its "
    "figures per step, `bound` is what holds it back; None where neither is known."
)
GATE = "`outcome` is of all conditions, `ends_as` what the command ends with, `checked` are the conditions one by one."

Fields = dict[str, Any]

#: What is written of a noun besides its own fields: its facts in English.
IN_ENGLISH: dict[type, Fields] = {
    analysis.HealthFinding: {"message": str},
    gate.Checked: {"because": str},
    estimate.SeparateRunsChange: {"assumed": str | None},
    sweep_figures.Sweep: {"differs": tuple[str, ...]},
}


def schema(name: SchemaName) -> dict[str, Any]:
    """The JSON Schema of `tracekit.NAME/1`."""
    makers: dict[SchemaName, Callable[[], type]] = {
        "analysis": _analysis_file,
        "comparison": _comparison_file,
        "comparisons": _comparisons_file,
        # What older versions did not write is no fault of a manifest.
        "run": lambda: run.Run,
        "sweep": lambda: _written(sweep_figures.Sweep),
        "sweep-cell": lambda: sweep.CellResult,
    }
    told = described(msgspec.json.schema(makers[name]()))
    return {"$schema": DIALECT, "$id": f"tracekit.{name}/1", "title": f"tracekit.{name}/1", **told}


def schema_text(name: SchemaName) -> str:
    return msgspec.json.format(msgspec.json.encode(schema(name)), indent=1).decode() + "\n"


def _analysis_file() -> type:
    """`run` is there for a run folder alone."""
    told = _fields(alone.Alone, without=("side", "bound"))
    parts = {"schema": Literal["tracekit.analysis/1"], **_fields(analysis.Analysis), **told, "grave": tuple[str, ...]}
    measured = _made("Measured", {"form": _as_written(run.FormResult), "steps": int, **_derived()}, MEASURED)
    return _made(
        "AnalysisFile", parts, f"{analysis.Analysis.__doc__} {alone.Alone.__doc__} {GRAVE_APART} {RUN}", run=measured
    )


def _comparison_file() -> type:
    written = {"schema": Literal["tracekit.comparison/1"], **_comparison()}
    return _made("ComparisonFile", written, f"{comparison.Comparison.__doc__} {GRAVE_TOO}")


def _comparisons_file() -> type:
    parts = _fields(comparisons.Comparisons, without=("comparisons",))
    each = _made("Comparison", _comparison(), f"{comparison.Comparison.__doc__} {GRAVE_TOO}")
    told = {"schema": Literal["tracekit.comparisons/1"], "names": tuple[str, ...], **parts}
    every = {**told, "comparisons": tuple[each, ...]}  # type: ignore[valid-type]
    return _made("ComparisonsFile", every, f"{comparisons.Comparisons.__doc__} {WARNINGS} {NAMED}")


def _comparison() -> Fields:
    parts = _fields(comparison.Comparison)
    bound = parts.pop("a_bound")
    del parts["b_bound"]
    side = _made("Side", {**_side_fields(), "bound": bound}, f"{comparison.Side.__doc__} {SIDE}")
    written = {"outcome": gate.Outcome, "ends_as": gate.Outcome, **_fields(gate.Gate)}
    checked = _made("Gate", written, f"{gate.Gate.__doc__} {GATE}")
    return {**parts, "grave": tuple[str, ...], "a": side, "b": side, "gate": checked | None}


def _side_fields() -> Fields:
    """As `contract` writes a side: without every activity one by one, with what is derived from it."""
    parts = _fields(comparison.Side, without=("sequence", "provenance", "timeline", "pictures"))
    return {**parts, "operators": sequence.OperatorSource | None, "steps": int, **_derived()}


def _derived() -> Fields:
    return {"per_step": _written(per_step.PerStep), "rich": _as_written(analysis.Analysis) | None}


def _made(name: str, parts: Fields, doc: str | None, **optional: Any) -> type:
    """A noun of these fields, which the docstring tells of."""
    every = [(key, kind) for key, kind in parts.items()]
    every += [(key, kind | msgspec.UnsetType, msgspec.UNSET) for key, kind in optional.items()]  # type: ignore[misc]
    made = dataclasses.make_dataclass(name, every)
    made.__doc__ = " ".join((doc or "").split())
    return made


@functools.cache
def _written(noun: type) -> type:
    """The noun as it stands in JSON: names of kernels are listed under `top`, the first of them."""
    # A dataclass without a docstring is given one that lists its fields, which tells nothing.
    own = None if (noun.__doc__ or "").startswith(f"{noun.__name__}(") else noun.__doc__
    fields = {**_fields(noun), **IN_ENGLISH.get(noun, {})}
    said = [WARNINGS] * ("warnings" in fields) + [HELD_BACK] * ("held_back" in fields)
    said += [BECAUSE] * (noun is comparison.Bound)
    return _made(noun.__name__, fields, " ".join([own or "", *said]).strip() or None)


def _fields(noun: type, without: tuple[str, ...] = ()) -> Fields:
    hints = typing.get_type_hints(noun, localns=NAMES)
    names = [field.name for field in dataclasses.fields(noun) if field.name not in (*without, *UNWRITTEN)]
    found = {name: _as_written(hints[name]) for name in names} | WORDED.get(noun, {})
    if noun is comparison.Bound:
        found["because"] = str
    # What notes say stands beside them.
    for name, said in (("notes", "warnings"), ("limits", "held_back")):
        if hints.get(name) == tuple[note.Note, ...]:
            found[said] = tuple[str, ...]
    return {"top" if name == "by_name" else name: kind for name, kind in found.items()}


def _as_written(kind: Any) -> Any:
    """The type with every noun in it as it stands in JSON."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _written(kind)
    arguments = typing.get_args(kind)
    if not arguments or typing.get_origin(kind) is Literal:
        return kind
    inner = tuple(each if each is Ellipsis else _as_written(each) for each in arguments)
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return functools.reduce(operator.or_, inner)
    return typing.get_origin(kind)[inner]
