"""After how many calls has compiling paid for itself?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracekit.comparison.judging.processes import process_medians
from tracekit.comparison.judging.timed import Timed
from tracekit.model.comparison import Verdict
from tracekit.model.run import CompileFacts, FormResult
from tracekit.model.timing import BreakEven, StartKind, StartSource, Startup


def find_break_even(a: Timed, b: Timed, verdict: Verdict) -> tuple[BreakEven, ...]:
    """One answer for each start of the compiled form: those in fresh processes, or else the run's own warm-up.

    In the warm-up the eager form came first: its start-up holds what a process does once for both (CUDA's context,
    handles of libraries, code loaded at its first use), and taking it off the compiled one's takes off what that
    never paid. How much of it that is, nobody measured, so such an answer has two ends.

    Empty unless A is the eager form and B the compiled one, both timed. A warm-up at other sizes than the timed ones
    tells nothing of a start.
    """
    if not (a.form and b.form and a.form.name == "eager" and b.form.name == "compiled"):
        return ()
    if a.wall_us is None or b.wall_us is None:
        return ()
    of_a = tuple(math.exp(each.middle) for each in process_medians(a))
    eager = next((start for start in a.form.startups if start.kind == "eager"), None)
    if eager and b.form.startups:
        eager_us = extra_us(eager.calls_us, a.wall_us)
        return tuple(_of_start(start, eager_us, b.wall_us, verdict, of_a) for start in b.form.startups)
    if not (a.form.warmup_us and b.form.warmup_us and b.form.compilation):
        return ()
    if b.diagnostics and b.diagnostics.warmed_up_at:
        return ()
    return (_of_warm_up(b.form, extra_us(a.form.warmup_us, a.wall_us), b.wall_us, verdict, of_a),)


def extra_us(calls_us: Sequence[float], steady_us: float) -> float:
    """How much longer these calls took than as many steady ones."""
    return math.fsum(calls_us) - len(calls_us) * steady_us


def _of_start(
    start: Startup, eager_us: float, steady_us: float, verdict: Verdict, of_a: tuple[float, ...]
) -> BreakEven:
    found = (start.kind, start.graphs, start.cache_hits)
    return _break_even(found, "fresh_process", start.calls_us, eager_us, steady_us, verdict, of_a)


def _of_warm_up(
    form: FormResult, eager_us: float, steady_us: float, verdict: Verdict, of_a: tuple[float, ...]
) -> BreakEven:
    facts = form.compilation
    if facts is None:
        raise AssertionError("a form that was compiled has what compiling did")
    found = (_warm_up_kind(facts), facts.graphs, facts.cache_hits)
    return _break_even(found, "warm_up", form.warmup_us, eager_us, steady_us, verdict, of_a)


def _warm_up_kind(facts: CompileFacts) -> StartKind | None:
    """A cache without these graphs may hold kernels and results of autotuning: only an empty one is none."""
    if facts.cache_hits == 0:
        return "compiled_no_cache" if facts.cache_was_empty is not False else None
    return "compiled_warm_cache" if facts.cache_hits == facts.graphs else None


def _break_even(
    found: tuple[StartKind | None, int | None, int | None],
    source: StartSource,
    calls_us: tuple[float, ...],
    eager_us: float,
    steady_us: float,
    verdict: Verdict,
    of_a: tuple[float, ...],
) -> BreakEven:
    kind, graphs, hits = found
    startup_us = extra_us(calls_us, steady_us)
    cost_us = startup_us - eager_us
    # A form that was quicker at its first call than later has no start-up to take off.
    most_us = max(cost_us, startup_us) if source == "warm_up" else cost_us
    faster = verdict.result == "faster"
    calls, at_most = (
        _calls(us, verdict.a_wall_us, verdict.speedup) if faster or verdict.result == "slower" else None
        for us in (cost_us, most_us)
    )
    return BreakEven(
        kind=kind,
        source=source,
        first_call_us=calls_us[0],
        startup_us=startup_us,
        eager_startup_us=eager_us,
        calls=calls,
        calls_ci95=_range((cost_us, most_us), verdict, of_a) if faster else None,
        graphs=graphs,
        cache_hits=hits,
        never=calls == math.inf,
        calls_at_most=at_most if source == "warm_up" else None,
    )


def _calls(cost_us: float, eager_us: float | None, speedup: float | None) -> float | None:
    """The calls after which what each one saves adds up to the cost; 0 where nothing is to be made up for."""
    if speedup is None or eager_us is None:
        return None
    saving_us = eager_us * (1 - 1 / speedup)
    return max(0.0, cost_us / saving_us) if saving_us > 0 else math.inf


def _range(costs_us: tuple[float, float], verdict: Verdict, of_a: tuple[float, ...]) -> tuple[float, float] | None:
    """From the least cost and the slowest eager call of any process at the greatest speed-up to the most cost and the
    quickest one at the least."""
    if verdict.ci95 is None or verdict.a_wall_us is None:
        return None
    low, high = verdict.ci95
    eager_us = (*of_a, verdict.a_wall_us)
    fewest, most = _calls(costs_us[0], max(eager_us), high), _calls(costs_us[1], min(eager_us), low)
    return (fewest, most) if fewest is not None and most is not None else None
