"""Which advice is worth trying, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tracekit.comparison.judging.process_spread import find_other_speed_of_advice
from tracekit.model.advice import VerifiedAdvice
from tracekit.model.comparison import Comparison, Finding, Verdict
from tracekit.statistics.interval import FEWEST, median_interval


def top_advice(comparison: Comparison) -> Finding | None:
    """The finding whose advice is another run of `tracekit profile` and promises most; None without any."""
    tryable = [
        finding for finding in comparison.findings if (finding.changes or finding.environment) and finding.saving_us
    ]
    return max(tryable, key=lambda finding: finding.saving_us or 0.0, default=None)


def judge_advice(
    comparison: Comparison,
    finding: Finding,
    eager_us: Sequence[float],
    advised_us: Sequence[float],
    compile_seconds: float | None,
    during_timing: int = 0,
) -> VerifiedAdvice:
    """What following the finding's advice brought, from calls of both forms in the same rounds of one process.
    `during_timing` is how much was compiled inside them."""
    wall_us = comparison.verdict.b_wall_us
    if wall_us is None or finding.saving_us is None or finding.action is None or finding.action.command is None:
        raise AssertionError("only advice with a saving is tried, of runs that were timed")
    rounds = min(len(eager_us), len(advised_us))
    one, other = np.asarray(eager_us[:rounds]), np.asarray(advised_us[:rounds])
    ratios = np.log(one / other)
    interval = median_interval(ratios) if rounds >= FEWEST else None
    return VerifiedAdvice(
        code=finding.code,
        command=finding.action.command,
        predicted_us=wall_us - finding.saving_us,
        measured_us=float(np.median(other)),
        eager_us=float(np.median(one)),
        speedup=math.exp(float(np.median(ratios))),
        ci95=(math.exp(interval.low), math.exp(interval.high)) if interval else None,
        rounds=rounds,
        compile_seconds=compile_seconds,
        during_timing=during_timing,
        predicted_speedup=predicted_speedup(comparison.verdict, wall_us - finding.saving_us),
    )


def predicted_speedup(verdict: Verdict, predicted_us: float) -> float | None:
    """The speed-up of a run whose compiled call takes so long; None where it would take no time."""
    if verdict.speedup is None or verdict.b_wall_us is None or predicted_us <= 0:
        return None
    return verdict.speedup * verdict.b_wall_us / predicted_us


def with_verified(comparison: Comparison, verified: VerifiedAdvice | None) -> Comparison:
    """The comparison with what came of the advice at the finding that gave it."""
    if verified is None:
        return comparison
    if verified.predicted_speedup is None:
        # Of a run from before it was kept.
        verified = replace(verified, predicted_speedup=predicted_speedup(comparison.verdict, verified.predicted_us))
    findings = (
        replace(each, verified=verified)
        if each.code == verified.code and each.action and each.action.command == verified.command
        else each
        for each in comparison.findings
    )
    spread = find_other_speed_of_advice(comparison.a, verified)
    return replace(comparison, findings=tuple(findings), notes=(*comparison.notes, *spread))
