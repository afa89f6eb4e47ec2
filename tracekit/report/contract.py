"""The JSON contract: `tracekit.analysis/1`, `tracekit.comparison/1` and `tracekit.comparisons/1`.

From the first release on changes are additive only.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec.structs import replace

from tracekit.model.analysis import Analysis
from tracekit.model.comparison import Bound, Comparison, ReasonShare, Side
from tracekit.model.comparisons import Comparisons
from tracekit.model.single_run import SingleRun, per_step
from tracekit.model.statement import builtins_of
from tracekit.model.waterfall import Waterfall
from tracekit.names import encodable
from tracekit.report.words.groups import label_words
from tracekit.report.words.not_compiled import because, remedy_words
from tracekit.report.words.notes import grave_sentences, note_sentences, other_sentences
from tracekit.statements.bounds import bound_because
from tracekit.statements.places import made_at_words
from tracekit.statements.reasons import reason_words


def analysis_json(alone: SingleRun, *, top: int = 20) -> str:
    """One trace's analysis, and what a reader should know or do; `top` is how many names of kernels and copies are
    listed, largest total time first. What a run folder says beside the trace stands under the key `run`, and under
    `nothing_compiled` why it has no compiled form, where torch.compile made none.
    """
    side = alone.side
    told = {
        "findings": builtins_of([each.written() for each in alone.findings]),
        "warnings": other_sentences(alone.notes),
        "grave": grave_sentences(alone.notes),
        "notes": builtins_of(alone.notes),
    }
    if alone.nothing_compiled is not None:
        nothing = alone.nothing_compiled
        told["nothing_compiled"] = {**builtins_of(nothing), "because": because(nothing.reasons)}
        for told_remedy, remedy in zip(told["nothing_compiled"]["remedies"], nothing.remedies, strict=True):
            told_remedy["advice"] = remedy_words(remedy)
    if side.form is None:
        told["per_step"] = builtins_of(per_step(side))
    else:
        told["run"] = {"form": builtins_of(side.form), "steps": side.steps, **_derived(side, top)}
    return json_text({"schema": "tracekit.analysis/1", **_analysis(side.analysis, top), **told})


def comparison_json(comparison: Comparison, *, top: int = 20) -> str:
    """A comparison; each side holds its analysis."""
    return json_text({"schema": "tracekit.comparison/1", **_comparison(comparison, top)})


def comparisons_json(told: Comparisons, *, top: int = 20) -> str:
    """Several comparisons side by side; `comparisons` are each as `tracekit.comparison/1` without its schema."""
    fields = {
        "schema": "tracekit.comparisons/1",
        "names": [each.b.label for each in told.comparisons],
        "paths": told.paths,
        "alike": told.alike,
        "warnings": note_sentences(told.notes),
        "notes": builtins_of(told.notes),
        "fastest": told.fastest,
        "told_apart_by": told.told_apart_by,
        "comparisons": [_comparison(each, top) for each in told.comparisons],
    }
    return json_text(fields)


def _comparison(comparison: Comparison, top: int) -> dict[str, Any]:
    fields: dict[str, Any] = builtins_of(comparison)
    fields |= {"warnings": note_sentences(comparison.notes), "grave": grave_sentences(comparison.notes)}
    if comparison.verdict.apart is not None:
        fields["verdict"]["apart"]["assumed"] = reason_words(comparison.verdict.apart.assumptions)
    if comparison.accuracy is not None:
        fields["accuracy"]["because"] = comparison.accuracy.reason.long()
    if comparison.gate is not None:
        for checked, said in zip(comparison.gate.checked, fields["gate"]["checked"], strict=True):
            said["because"] = reason_words(checked.reasons)
        fields["gate"] = {"outcome": comparison.gate.outcome, "ends_as": comparison.gate.ends_as, **fields["gate"]}
    waterfall, why = comparison.waterfall, comparison.reason
    divided: list[tuple[Waterfall | ReasonShare, Any]] = [(waterfall, fields["waterfall"])] if waterfall else []
    divided += zip(why.shares, fields["reason"]["shares"], strict=True) if why else ()
    for fall, said in zip(comparison.job.waterfalls(), fields["job"]["ranks"], strict=True) if comparison.job else ():
        divided += [(fall, said["waterfall"])] if fall else []
    for whole, said in divided:
        for part, told in zip(whole.parts, said["parts"], strict=True):
            told["label"] = label_words(part.label)
    for group, told in zip(comparison.groups, fields["groups"], strict=True):
        # Positions in sequences that are not written say nothing.
        del told["a_at"], told["b_at"]
        told["label"], told["evidence_facts"] = label_words(group.label), told["evidence"]
        told["evidence"] = [each.long() for each in group.evidence]
    fields["findings"] = builtins_of([each.written() for each in comparison.findings])
    del fields["a_bound"], fields["b_bound"]
    fields["a"] = _side(comparison.a, comparison.a_bound, top)
    fields["b"] = _side(comparison.b, comparison.b_bound, top)
    return fields


def _side(side: Side, bound: Bound | None, top: int) -> dict[str, Any]:
    bare = replace(side, sequence=None, provenance=None, timeline=None, rich_timeline=None, pictures=())
    bare = replace(bare, kernel_sources=None, code={})
    fields: dict[str, Any] = builtins_of(bare)
    # Every activity one by one is the trace over again; where their operators come from says how far to trust groups.
    for unwritten in ("sequence", "provenance", "timeline", "rich_timeline", "pictures", "kernel_sources", "code"):
        del fields[unwritten]
    fields["operators"] = side.sequence.operators if side.sequence else None
    fields |= {"steps": side.steps, "analysis": _analysis(side.analysis, top), **_derived(side, top)}
    return {**fields, "bound": {**builtins_of(bound), "because": bound_because(bound)} if bound else None}


def _derived(side: Side, top: int) -> dict[str, Any]:
    """`rich` is the analysis of the rich recording; like `analysis` it holds totals over its window's steps, so what
    reports show is beside it per step."""
    return {"per_step": builtins_of(per_step(side)), "rich": _analysis(side.rich, top) if side.rich else None}


def _analysis(analysis: Analysis, top: int) -> dict[str, Any]:
    fields: dict[str, Any] = builtins_of(analysis)
    if analysis.idle:
        for told, sync in zip(fields["idle"]["syncs"], analysis.idle.syncs, strict=True):
            told["where"] = made_at_words(sync.place, sync.lines, in_eager_code=sync.in_eager_code) or None
    for listed in (fields["kernels"], fields["copies"]):
        if listed is not None:
            listed["top"] = listed.pop("by_name")[:top]
    return fields


def json_text(fields: dict[str, Any]) -> str:
    """What is written: indented, whatever is no number as null."""
    # msgspec writes NaN and infinities as null: what is no number was not measured.
    try:
        encoded = msgspec.json.encode(fields)
    except UnicodeEncodeError:
        # A path that is no text, or a command line with one.
        encoded = msgspec.json.encode(json.loads(encodable(json.dumps(fields, ensure_ascii=False))))
    return msgspec.json.format(encoded, indent=1).decode() + "\n"
