"""Other ways to compile the same work: runs that stand side by side, and advice that was tried. Which is fastest?"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from tracekit.comparison.judging.fairness import find_other_machine
from tracekit.comparison.judging.processes import find_process_spread_of_advice
from tracekit.comparison.judging.thresholds import EAGER_DIFFERS, FEWEST_CALLS, LEAST_BETWEEN_PROCESSES
from tracekit.comparison.judging.verdict import speedup_of
from tracekit.model.advice import Command, VerifiedAdvice
from tracekit.model.comparison import Comparison, Finding, Side, Verdict
from tracekit.model.comparisons import Comparisons
from tracekit.model.estimate import compare_estimates, exactly
from tracekit.model.note import Note
from tracekit.model.run import Settings
from tracekit.statements.notes.ranks import FirstRankAlone
from tracekit.statements.notes.timing import EagerDiffersBetweenRuns
from tracekit.statistics.steady import mean_interval

#: How a run compiles: what is being compared, and names it.
WAYS = ("mode", "scope", "dynamic", "fullgraph")
#: More columns no page can show.
MOST_RUNS = 8


def name_ways(settings: Sequence[Settings], folders: Sequence[str]) -> tuple[str, ...]:
    """What each run is called: what its way to compile differs in from the others, `reduce-overhead, regional`; the
    names of their folders where those are not all different."""

    def word(way: str, value: object) -> str:
        # What is on or off with its name.
        on_or_off = "not set" if value is None else "on" if value else "off"
        return str(value) if way in ("mode", "scope") else f"{way} {on_or_off}"

    differing = [way for way in WAYS if len({getattr(each, way) for each in settings}) > 1]
    names = tuple(", ".join(word(way, getattr(each, way)) for way in differing) for each in settings)
    return names if len(set(names)) == len(names) else tuple(folders)


def labelled(a: Side, b: Side, name: str, *, alike: bool) -> tuple[Side, Side]:
    """Both forms of a run with the labels they have beside those of the other runs."""
    return replace(a, label="eager" if alike else f"eager, {name}"), replace(b, label=name)


def find_differences(sides: Sequence[Side], names: Sequence[str]) -> tuple[Note, ...]:
    """One note for each thing besides the way to compile in which a run differs from the first."""
    return tuple(
        note.but(a_name=names[0], b_name=name)
        for side, name in zip(sides[1:], names[1:], strict=True)
        for note in find_other_machine(sides[0], side)
    )


def set_beside(comparisons: Sequence[Comparison], paths: Sequence[str], differences: Sequence[Note]) -> Comparisons:
    """The comparisons side by side, with what must be known of all of them. `differences` are those in machine and
    software."""
    # By their places: labels may be the same.
    walls = {at: each.a.wall_us for at, each in enumerate(comparisons) if each.a.wall_us}
    notes: list[Note] = list(differences)
    if any(len(each.b.ranks) > 1 for each in comparisons):
        notes.append(FirstRankAlone())
    if walls:
        slowest, fastest = max(walls, key=lambda at: walls[at]), min(walls, key=lambda at: walls[at])
        if compare_estimates(exactly(walls[slowest]), exactly(walls[fastest]), EAGER_DIFFERS):
            # Absolute times then differ for that too.
            labels = comparisons[slowest].b.label, comparisons[fastest].b.label
            notes.append(EagerDiffersBetweenRuns(*labels, walls[slowest] / walls[fastest]))
    return Comparisons(
        comparisons=tuple(comparisons),
        paths=tuple(paths),
        alike=not differences,
        notes=tuple(notes),
        fastest=find_fastest(comparisons),
        told_apart_by=_least_difference(comparisons),
    )


def find_fastest(comparisons: Sequence[Comparison]) -> tuple[int, ...]:
    """The places of those that the largest certain speed-up cannot be told from, undecided ones too; empty where none
    is faster than eager. Another is slower where the intervals leave room between them for what processes differ by: as
    much as eager code took longer in one than in another, and what each run says that a change must exceed. One that
    compiled inside its timed calls is not among them, whatever its times."""
    found = {
        at: estimate
        for at, each in enumerate(comparisons)
        if not each.compiled_while_timed and (estimate := speedup_of(each.verdict))
    }
    certain = [at for at in found if comparisons[at].verdict.result == "faster"]
    if not certain:
        return ()
    first = max(certain, key=lambda at: found[at].value)
    best = replace(found[first], low=found[first].low / (1 + _least_difference(comparisons)))
    return tuple(at for at, each in found.items() if at == first or compare_estimates(each, best) != "smaller")


def _least_difference(comparisons: Sequence[Comparison]) -> float:
    walls = [each.a.wall_us for each in comparisons if each.a.wall_us]
    spread = max(walls) / min(walls) - 1 if walls else 0.0
    return max(LEAST_BETWEEN_PROCESSES, spread, *(each.verdict.least_change or 0.0 for each in comparisons))


def top_advice(comparison: Comparison) -> Finding | None:
    """The finding whose advice is another run of `tracekit profile` and promises most; None without any."""
    tryable = [each for each in comparison.findings if (each.changes or each.environment) and each.saving_us]
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
    if wall_us is None or finding.saving_us is None or not isinstance(finding.advice, Command):
        raise AssertionError("only advice with a saving is tried, of runs that were timed")
    rounds = min(len(eager_us), len(advised_us))
    one, other = np.asarray(eager_us[:rounds]), np.asarray(advised_us[:rounds])
    ratios = np.log(one / other)
    interval = mean_interval(ratios) if rounds >= FEWEST_CALLS else None
    return VerifiedAdvice(
        code=finding.code,
        command=finding.advice.command,
        predicted_us=wall_us - finding.saving_us,
        measured_us=float(np.median(other)),
        eager_us=float(np.median(one)),
        speedup=math.exp(interval.middle if interval else float(ratios.mean())),
        ci95=(math.exp(interval.low), math.exp(interval.high)) if interval else None,
        rounds=rounds,
        compile_seconds=compile_seconds,
        during_timing=during_timing,
        predicted_speedup=_predicted_speedup(comparison.verdict, wall_us - finding.saving_us),
    )


def _predicted_speedup(verdict: Verdict, predicted_us: float) -> float | None:
    """The speed-up of a run whose compiled call takes so long; None where it would take no time."""
    if verdict.speedup is None or verdict.b_wall_us is None or predicted_us <= 0:
        return None
    return verdict.speedup * verdict.b_wall_us / predicted_us


def with_verified(comparison: Comparison, verified: VerifiedAdvice | None) -> Comparison:
    """The comparison with what came of the advice at the finding that gave it, beside what that finding predicts."""
    if verified is None:
        return comparison
    wall_us, findings = comparison.verdict.b_wall_us, []
    for each in comparison.findings:
        told = each.advice.command if isinstance(each.advice, Command) else None
        if (each.code, told) == (verified.code, verified.command):
            # A run from before may have predicted by another rule, and may not have kept the speed-up.
            us = verified.predicted_us if wall_us is None or each.saving_us is None else wall_us - each.saving_us
            speedup = _predicted_speedup(comparison.verdict, us)
            each = replace(each, verified=replace(verified, predicted_us=us, predicted_speedup=speedup))
        findings.append(each)
    spread = find_process_spread_of_advice(comparison.a, verified)
    return replace(comparison, findings=tuple(findings), notes=(*comparison.notes, *spread))
