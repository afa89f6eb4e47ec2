"""What the GPU waits for."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tracekit.model.analysis import Place, made_at_words
from tracekit.model.comparison import FindingStatement
from tracekit.numbers import count, duration, duration_change, percent


class LaunchBound(FindingStatement):
    code = "launch_bound"
    wall_us: float
    idle_us: float
    host_share: float  #: Of idle time.
    launching_share: float  #: Of idle time.
    says_title = "Launch-bound: the GPU waits for the host"
    says_why = "CUDA graphs"

    def long(self) -> str:
        return (
            f"GPU idle {percent(self.idle_us / self.wall_us, 0)} of the unprofiled call ({duration(self.idle_us)} of"
            f" {duration(self.wall_us)}), {percent(self.launching_share, 0)} of it behind operator dispatch, launch"
            " calls, the compiled wrapper and launch latency. No CUDA graph."
        )


class GraphedLaunches(FindingStatement):
    code = "graphed_launches"
    usual_severity = "info"
    side: str
    graphed_share: float | None  #: Of kernels.
    a_launches: float | None
    b_launches: float | None
    idle_change_us: float | None

    def title(self) -> str:
        return f"CUDA graphs run {percent(self.graphed_share, 0)} of the kernels of {self.side}"

    def long(self) -> str:
        idle = "" if self.idle_change_us is None else f", GPU idle {duration_change(self.idle_change_us)}"
        return f"{count(self.a_launches)} -> {count(self.b_launches)} launches{idle}."


class SkippedGraphs(Struct, frozen=True):
    """Why CUDA graphs were skipped, and how often."""

    reason: str | None  #: None where torch gave none.
    times: int


class SkippedCudaGraphs(FindingStatement):
    code = "skipped_cuda_graphs"
    graphed_share: float | None  #: Of kernels.
    skips: Sequence[SkippedGraphs]

    def title(self) -> str:
        return f"CUDA graphs {'partly ' if self.graphed_share else ''}skipped"

    def long(self) -> str:
        reasons = "; ".join(f"{each.reason or 'no reason'} ({each.times}x)" for each in self.skips)
        why = f"torch skipped them: {reasons}." if reasons else "torch gave no reason."
        if self.graphed_share is None:
            return why
        return f"{why} {percent(self.graphed_share, 0)} of kernels ran in CUDA graphs."


class OperatorCall(Struct, frozen=True):
    """An eager operator that the host waited in, and the line that called it."""

    operator: str
    called_at: str

    @property
    def words(self) -> str:
        return f"{self.operator} at {self.called_at}"


class MadeAt(Struct, frozen=True):
    """Where calls were made that the host waited in."""

    place: Place | None
    lines: Mapping[str, int]  #: And how often.
    in_eager_code: bool  #: The lines are of the eager form.

    @property
    def words(self) -> str:
        return made_at_words(self.place, self.lines, in_eager_code=self.in_eager_code)


def from_words(made_by: Sequence[OperatorCall | MadeAt], between: str) -> str:
    return f" From {between.join(each.words for each in made_by)}." if made_by else ""


class SynchronisingCalls(FindingStatement):
    code = "synchronising_calls"
    side: str
    times: float  #: Per call.
    calls: Sequence[str]
    idle_us: float
    call_us: float
    made_by: Sequence[OperatorCall | MadeAt]
    says_title = "{side} synchronises inside a call"

    def long(self) -> str:
        return (
            f"{', '.join(self.calls)} drained the queue {count(self.times)}x per call: {duration(self.idle_us)} idle,"
            f" {percent(self.idle_us / self.call_us, 0)} of the call."
            f"{from_words(self.made_by, ', ') or ' Call site not recorded.'}"
        )


class PageableCopies(FindingStatement):
    code = "pageable_copies"
    side: str
    copies: float  #: Per call.
    copy_us: float
    idle_us: float
    call_us: float
    made_by: Sequence[MadeAt]
    says_title = "Pageable copies block the host of {side}"

    def long(self) -> str:
        return (
            f"{count(self.copies)} copies from or to pageable memory per call: {duration(self.copy_us)}, and the GPU is"
            f" idle for {duration(self.idle_us)} behind them, {percent(self.idle_us / self.call_us, 0)} of the call."
            f"{from_words(self.made_by, '; ')}"
        )
