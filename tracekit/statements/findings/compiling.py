"""What was compiled, what was not, and what that costs."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from msgspec import Struct

from tracekit.model.comparison import FindingStatement
from tracekit.model.compilation import EagerFallback
from tracekit.model.statement import Severity
from tracekit.names import clipped_within
from tracekit.numbers import counted, duration, percent
from tracekit.statements.guards import Check

#: So many breaks are worth an action, and so many compilations of one kind: torch gives up at eight of one function.
MANY_BREAKS, MANY_COMPILATIONS = 3, 4
#: What is said of the advice where nothing can be switched on: it saves nothing by itself, and is not tried.
FULLGRAPH = " {} does not remove breaks: it raises an error that names the first one."
#: Of a value that decides which code runs next, whatever Dynamo hints at.
STEERS = "its value steers a branch: torch.where for both branches, or torch.cond for one of them"
#: Characters of the line of a graph break, where a line of the terminal is all there is, and of a reason told there.
LONGEST_LINE, LONGEST_REASON = 40, 100
FELL_BACK = {
    "recompile_limit": "{} hit the recompile limit (falls back to eager)",
    "skipped": "Dynamo skipped {} (falls back to eager)",
    "error": "{} failed to compile (falls back to eager)",
}


def _more(lines: int) -> str:
    return f", +{lines - 1} more" if lines > 1 else ""


class BreakingLine(Struct, frozen=True):
    """A line at which graphs break."""

    line: str | None  #: With the model's line that led there, where it is another.
    where: str | None
    reason: str
    per_step_us: float | None  #: Host time outside of graphs.
    cost_us: float | None  #: Of the call at most; None where not known.
    hint: str | None
    steers_branch: bool
    is_torchs: bool = False  #: In torch's own code.

    @property
    def place(self) -> str:
        """`model.py:20`, without its folder."""
        return clipped_within(PurePath(self.where or "an unknown line").name, LONGEST_LINE)

    def words(self, *, on_gpu: bool) -> str:
        idle = f", GPU idle in at most {duration(self.cost_us)}" if on_gpu else ""
        cost = f" ({duration(self.per_step_us)} per step outside of graphs{idle})" if self.per_step_us else ""
        hint = STEERS if self.steers_branch else self.hint
        hinted = f" (hint: {hint.rstrip('.')})" if hint else ""
        whose = ", in torch's own code" if self.is_torchs else ""
        return f"{self.line or 'unknown line'}{whose}: {self.reason}{cost}{hinted}"


class BrokenGraphs(FindingStatement):
    code = "broken_graphs"
    side: str
    lines: int
    longest: Sequence[BreakingLine]  #: Those that cost most.
    counted_by_dynamo: int  #: A line again for each function that is compiled up to it.
    can_be_switched: bool  #: By a setting that torch hints at.
    costly: bool
    on_gpu: bool
    in_torch: int = 0  #: So many of the lines are in torch's own code.
    others_costly: bool = True  #: Whether the other lines alone are.
    in_program: bool = False  #: That no command compiles.

    @property
    def severity(self) -> Severity:
        return "warning" if self.costly or self.lines >= MANY_BREAKS else "info"

    @property
    def place(self) -> str:
        """`model.py:20, +1 more`: the costliest line."""
        return self.longest[0].place + _more(self.lines)

    @property
    def removable(self) -> str:
        """`model.py:20, +1 more`: the costliest line that is not torch's own; empty where none is worth removing."""
        own = next((each for each in self.longest if not each.is_torchs), None)
        return own.place + _more(self.lines - self.in_torch) if own and self.others_costly else ""

    def title(self) -> str:
        return f"{counted(self.lines, 'graph break')} in {self.side}"

    def long(self) -> str:
        told = [each.words(on_gpu=self.on_gpu) for each in self.longest]
        told += [f"and {self.lines - len(told)} more"] if self.lines > len(told) else []
        text = f"{'; '.join(told)}."
        if self.counted_by_dynamo:
            # Other parts of a report show that count.
            breaks = counted(self.counted_by_dynamo, "break")
            text += f" Dynamo counts {breaks}, one for each function compiled up to such a line."
        if self.can_be_switched or self.lines == self.in_torch:
            return text
        return text + FULLGRAPH.format("torch.compile(..., fullgraph=True)" if self.in_program else "--fullgraph")

    def short(self) -> str:
        return self.briefly[0]

    @property
    def briefly(self) -> tuple[str, ...]:
        """The costliest line and what it costs, and how many more there are: with its reason, without it, and without
        the line that led there. A reason is told whole or not at all."""
        first = self.longest[0]
        line = clipped_within(first.line or "an unknown line", 2 * LONGEST_LINE)
        cost = f"at most {duration(first.cost_us)} {'GPU idle' if self.on_gpu else 'of host time'}{_more(self.lines)}"
        reason = f" ({first.reason})" if len(first.reason) <= LONGEST_REASON else ""
        words = (f"{line}: {cost}{reason}", f"{line}: {cost}", f"{first.place}: {cost}")
        return tuple(f"Graph break at {each}" for each in words)

    def why(self) -> str:
        return "may remove the graph break" if self.can_be_switched else ""

    def why_tried(self) -> str:
        return "values in the graph"


class CompiledAgain(FindingStatement):
    """Of several checks that failed the one that cost most."""

    code = "compiled_again"
    side: str
    times: int
    function: str | None
    where: str | None
    failed_check: Check
    dearest_s: float | None
    whole_s: float

    @property
    def severity(self) -> Severity:
        return "warning" if self.times >= MANY_COMPILATIONS else "info"

    def title(self) -> str:
        return f"{counted(self.times, 'recompile')} of {self.side} during warm-up"

    def long(self) -> str:
        dearest = f"{self.dearest_s:.1f} s of " if self.times > 1 and self.dearest_s is not None else ""
        return (
            f"{self.function or 'A function'} ({self.where or 'unknown line'}): {self.failed_check.long()}."
            f" Compile time: {dearest}{self.whole_s:.1f} s."
        )


class RecompilingCall(Struct, frozen=True):
    """A timed call in which something was compiled."""

    call: int
    wall_us: float | None
    failed_checks: Sequence[Check]
    cuda_graphs: int  #: How many were recorded.

    @property
    def words(self) -> str:
        took = f": {self.wall_us / 1e6:.2f} s" if self.wall_us is not None else ""
        graphs = f"{self.cuda_graphs} CUDA graphs recorded" if self.cuda_graphs else "unknown guard"
        checks = "; ".join(each.long() for each in self.failed_checks)
        return f"call {self.call} recompiled{took}: {checks or graphs}"


class RecompiledDuringTiming(FindingStatement):
    code = "recompiled_during_timing"
    side: str
    compilations: int
    calls: int  #: That compiled; 0 where torch did not say which.
    first: Sequence[RecompilingCall]
    cost_us: float | None  #: What these calls took longer in all.
    warmed_up_at: Mapping[str, int]  #: Sizes of warm-up calls that had their own.
    any_size: bool  #: Whether compiled code is for any size.
    failed_for_one: bool  #: Whether a check of a size that is or was 0 or 1 failed.
    says_title = "Recompiles of {side} inside timed calls"

    def long(self) -> str:
        if not self.calls:
            return f"{counted(self.compilations, 'compilation')}: times include compilation."
        told = [each.words for each in self.first]
        told += [f"and {self.calls - len(told)} more calls"] if self.calls > len(told) else []
        text = "; ".join(told)
        cost = self.cost_us
        costs = f" Cost: {cost / 1e6:.2f} s over {counted(self.calls, 'call')}." if cost is not None else ""
        return f"{text[:1].upper()}{text[1:]}.{costs} {self._how_to_warm_up()}"

    def _how_to_warm_up(self) -> str:
        told = "Warm up with the inputs you run"
        if self.warmed_up_at:
            sizes = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.warmed_up_at.items())
            told = f"Warm-up had other sizes ({sizes}): warm up with all sizes you run"
        if not self.any_size:
            return f"{told}, or compile with --dynamic."
        if self.failed_for_one:
            return f"{told}. Even with --dynamic torch specializes sizes 0 and 1."
        return f"{told}. --dynamic does not remove these guards."


class Fallback(FindingStatement):
    """What was to be compiled ran eager, in whole or in part."""

    side: str
    part: EagerFallback | None  #: None where torch named none.
    ran_eager: bool  #: All of it.
    eager_gpu_share: float | None  #: Of GPU time, outside of compiled code; None where not recorded.

    def title(self) -> str:
        part = self.part
        if part is None:
            return f"{self.side} ran eager"
        named = f"`{part.function}`" if part.function else "an unnamed frame"
        return FELL_BACK[part.kind].format(f"{named} ({part.where})" if part.where else named)

    def long(self) -> str:
        if self.ran_eager:
            share = "No recorded step ran a compiled graph."
        elif self.eager_gpu_share is None:
            share = "The rest ran compiled."
        else:
            share = f"{percent(self.eager_gpu_share, 0)} of GPU time is outside of compiled code."
        if self.part is None:
            return f"torch.compile gave no reason. {share}"
        at = f"At {self.part.line}: " if self.part.line else ""
        return f"{at}{self.part.reason}. {share}"


class FellBack(Fallback):
    code = "eager_fallback"


class HitRecompileLimit(Fallback):
    code = "recompile_limit"


class LittleCompiled(FindingStatement):
    code = "little_compiled"
    side: str
    compiled_share: float  #: Of GPU time.
    busy_us: float | None
    scope: str | None
    says_why = "compiles more of the model"

    def title(self) -> str:
        return f"{percent(self.compiled_share, 0)} of GPU time of {self.side} is compiled code"

    def long(self) -> str:
        busy = "" if self.busy_us is None else f" of {duration(self.busy_us)} per step"
        scope = "" if self.scope is None else f" Scope: {self.scope}."
        return f"{percent(1 - self.compiled_share, 0)}{busy} is outside of compiled code.{scope}"


class UncompiledComponent(FindingStatement):
    code = "uncompiled_component"
    usual_severity = "info"
    component: str
    partly_compiled: bool
    fusible_us: float  #: Of kernels there that could be fused.
    busy_us: float
    kept_share: float  #: What compiled modules kept of the time of such kernels.
    others: Sequence[str]  #: Other components that are not compiled.

    def title(self) -> str:
        return f"{'Part of ' if self.partly_compiled else ''}{self.component} is not compiled but has fusible kernels"

    def long(self) -> str:
        return (
            f"Pointwise kernels, norms, reductions and copies there take {duration(self.fusible_us)} per call,"
            f" {percent(self.fusible_us / self.busy_us, 0)} of GPU time. In compiled modules fusion cut such time to"
            f" {percent(self.kept_share, 0)}."
        )

    def why(self) -> str:
        return f"compiles {' and '.join([self.component, *self.others])} too"
