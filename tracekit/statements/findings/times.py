"""How long calls and their start take, and what recording adds to them."""

from collections.abc import Sequence

from msgspec import Struct

from tracekit.model.comparison import FindingStatement
from tracekit.model.timing import span_of_calls
from tracekit.numbers import calls_span, duration, times

TAKEN_ON_GPU = "Wall times are unprofiled; traces give GPU busy time and the causes of idle time."
TAKEN_ON_CPU = "Wall times are unprofiled; operator times are profiled, so overstated."


class CompileSlower(FindingStatement):
    code = "compile_slower"
    a_wall_us: float
    b_wall_us: float
    says_title = "Compiled is slower"

    def long(self) -> str:
        return (
            f"{duration(self.b_wall_us)} per call compiled, {duration(self.a_wall_us)} eager. Leave torch.compile off"
            " for this model, batch and mode."
        )


class WarmStart(Struct, frozen=True):
    """A start with a warm cache, and after how many calls it pays."""

    startup_us: float
    calls: float
    calls_at_most: float | None
    calls_ci95: tuple[float, float] | None


class ColdStart(FindingStatement):
    code = "cold_start"
    usual_severity = "info"
    startup_us: float
    calls: float  #: After which it pays.
    calls_at_most: float | None
    calls_ci95: tuple[float, float] | None
    call_saving_us: float  #: By the speed-up, as the number of calls is.
    medians_apart_us: float | None
    warm: WarmStart | None
    warm_was_measured: bool  #: In a fresh process, with what it saved.
    can_start_anew: bool  #: By `--startup`, which neither several ranks nor programs have.
    can_be_regional: bool
    says_why = "compiles one block, reuses it; adds guards"

    def title(self) -> str:
        return f"Break-even: {pays_after(self.calls, self.calls_at_most, self.calls_ci95)} calls"

    def long(self) -> str:
        saved, apart_us = duration(self.call_saving_us), self.medians_apart_us
        # Said where the two medians differ by something else.
        if apart_us is not None and duration(apart_us) != saved:
            saved += f" (by the speed-up; the medians are {duration(apart_us)} apart)"
        text = f"A cold start takes {duration(self.startup_us)} longer than steady calls. Each call saves {saved}."
        if warm := self.warm:
            pays = pays_after(warm.calls, warm.calls_at_most, warm.calls_ci95)
            text += f" With a warm cache: {duration(warm.startup_us)}, break-even after {pays} calls."
        return (
            f"{text} For fewer calls per process keep Inductor's cache (TORCHINDUCTOR_CACHE_DIR,"
            f" torch.compiler.save_cache_artifacts){', or compile one block of many' if self.can_be_regional else ''}."
            f"{'' if self.warm_was_measured or not self.can_start_anew else ' --startup measures a warm cache.'}"
        )


def pays_after(calls: float, calls_at_most: float | None, calls_ci95: Sequence[float] | None) -> str:
    return calls_span(*(span_of_calls(calls, calls_at_most, calls_ci95) or ()))


class Slowdown(Struct, frozen=True):
    """How much longer a recorded step took than an unprofiled call."""

    side: str
    slowdown: float


class ProfilerDistortion(FindingStatement):
    code = "profiler_distortion"
    usual_severity = "info"
    slowed: Sequence[Slowdown]
    on_gpu: bool
    says_title = "Profiler overhead"

    def long(self) -> str:
        told = "; ".join(f"{each.side} {times(each.slowdown)}" for each in self.slowed)
        return f"{told}. {TAKEN_ON_GPU if self.on_gpu else TAKEN_ON_CPU}"
