"""After how many calls has compiling paid for itself?"""

import math
from collections.abc import Sequence

from tracekit.comparison.judging.processes import process_medians
from tracekit.comparison.judging.timed import Timed
from tracekit.model.comparison import Verdict
from tracekit.model.timing import BreakEven, StartKind, StartSource

#: Of the compiled form: what the caches held, its calls until quiet, its graphs, and how many of them a cache gave.
Start = tuple[StartKind | None, Sequence[float], int | None, int | None]


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
    eager_calls_us = [math.exp(each.middle) for each in process_medians(a)]
    eager = next((start for start in a.form.startups if start.kind == "eager"), None)
    if eager and b.form.startups:
        eager_us = extra_us(eager.calls_us, a.wall_us)
        starts = [(each.kind, each.calls_us, each.graphs, each.cache_hits) for each in b.form.startups]
        return tuple(_answer(each, "fresh_process", eager_us, b.wall_us, verdict, eager_calls_us) for each in starts)
    warmed_otherwise = b.diagnostics is not None and bool(b.diagnostics.warmed_up_at)
    facts = b.form.compilation
    if not (a.form.warmup_us and b.form.warmup_us and facts) or warmed_otherwise:
        return ()
    # A cache without these graphs may hold kernels and results of autotuning: only an empty one is none.
    kind: StartKind | None = "compiled_warm_cache" if facts.cache_hits == facts.graphs else None
    if facts.cache_hits == 0:
        kind = "compiled_no_cache" if facts.cache_was_empty is not False else None
    warm_up = (kind, b.form.warmup_us, facts.graphs, facts.cache_hits)
    eager_us = extra_us(a.form.warmup_us, a.wall_us)
    return (_answer(warm_up, "warm_up", eager_us, b.wall_us, verdict, eager_calls_us),)


def extra_us(calls_us: Sequence[float], steady_us: float) -> float:
    """How much longer these calls took than as many steady ones."""
    return math.fsum(calls_us) - len(calls_us) * steady_us


def _answer(
    start: Start,
    source: StartSource,
    eager_us: float,
    steady_us: float,
    verdict: Verdict,
    eager_calls_us: Sequence[float],
) -> BreakEven:
    kind, own_calls_us, graphs, cache_hits = start
    startup_us = extra_us(own_calls_us, steady_us)
    cost_us = startup_us - eager_us
    # A form that was quicker at its first call than later has no start-up to take off.
    most_us = max(cost_us, startup_us) if source == "warm_up" else cost_us
    calls = at_most = calls_ci95 = None
    # Where the verdict found a change; inf where that is none for the better.
    if verdict.result in ("faster", "slower") and verdict.speedup is not None and verdict.a_wall_us is not None:
        calls, at_most = (_calls(us, verdict.a_wall_us, verdict.speedup) for us in (cost_us, most_us))
    if verdict.result == "faster" and verdict.ci95 is not None and verdict.a_wall_us is not None:
        # From the least cost and the slowest eager call of any process at the greatest speed-up to the most cost and
        # the quickest one at the least.
        (low, high), every_us = verdict.ci95, (*eager_calls_us, verdict.a_wall_us)
        calls_ci95 = _calls(cost_us, max(every_us), high), _calls(most_us, min(every_us), low)
    return BreakEven(
        kind=kind,
        source=source,
        first_call_us=own_calls_us[0],
        startup_us=startup_us,
        eager_startup_us=eager_us,
        calls=calls,
        calls_ci95=calls_ci95,
        graphs=graphs,
        cache_hits=cache_hits,
        never=calls == math.inf,
        calls_at_most=at_most if source == "warm_up" else None,
    )


def _calls(cost_us: float, eager_us: float, speedup: float) -> float:
    """The calls after which what each one saves adds up to the cost; 0 where nothing is to be made up for."""
    saving_us = eager_us * (1 - 1 / speedup)
    return max(0.0, cost_us / saving_us) if saving_us > 0 else math.inf
