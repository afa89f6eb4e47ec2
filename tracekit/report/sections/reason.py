"""Why one side is faster, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.model.comparison import Comparison, ReasonShare, WaterfallPart
from tracekit.numbers import duration, duration_change
from tracekit.report.sections.waterfall import part_labels


def reason_sentence(comparison: Comparison) -> str | None:
    """`Why: the GPU waits 2.69 ms less (...); its work takes 125.4 µs longer (...).`; None where no difference of
    unprofiled times was established."""
    reason = comparison.reason
    if reason is None:
        return None
    parts = comparison.waterfall.parts if comparison.waterfall else ()
    labels = dict(zip(parts, part_labels(comparison), strict=True))
    told = [_share(share, labels) for share in reason.shares]
    if reason.unexplained_us:
        told.append(f"{'another ' if told else ''}{duration_change(reason.unexplained_us)} is not explained")
    return f"Why: {'; '.join(told)}."


def _share(share: ReasonShare, labels: Mapping[WaterfallPart, str]) -> str:
    subject, verb = ("the GPU", "waits") if share.kind == "idle" else ("GPU work", "takes")
    less, more = ("less", "more") if share.kind == "idle" else ("less", "longer")
    said = f"{subject} {verb} {duration(abs(share.delta_us))} {less if share.delta_us < 0 else more}"
    # Without `GPU:` or `idle:`, which the sentence says.
    named = [f"{labels[part].partition(': ')[2]} {duration_change(part.delta_us)}" for part in share.parts]
    return f"{said} ({'; '.join(named)})" if named else said
