"""What is to be known of timed calls: whether there are enough, which count, and what else ran in them."""

import math

from tracekit.model.note import Note
from tracekit.numbers import counted, percent, times


class NotTimed(Note):
    code = "not_timed"
    says = "Not both sides have unprofiled times: traces cannot show which is faster."


class NotAlternated(Note):
    code = "not_alternated"
    says = "The sides were not interleaved: drift counts as a difference."
    says_short = "the sides were not interleaved: drift counts as a difference"


class TooFewCalls(Note):
    code = "too_few_calls"
    calls: int
    needed: int
    repeats: int  #: Processes that timed again: their calls do not make up for it.
    of_program: bool = False  #: That `tracekit run` measured.

    def long(self) -> str:
        beside = f", not counting {counted(self.repeats, 'repeat')}" if self.repeats else ""
        calls = counted(self.calls, "timed call")
        return f"Only {calls} a side{beside}: a verdict needs {self.needed} ({self._more_with()})."

    def short(self) -> str:
        return f"{counted(self.calls, 'timed call')} a side, {self.needed} needed ({self._more_with()})"

    def _more_with(self) -> str:
        return "--time-budget" if self.of_program else "--iterations"


class UnevenCalls(Note):
    code = "uneven_calls"
    rounds: int

    def long(self) -> str:
        return f"Only the first {counted(self.rounds, 'call')} of each side count: the rest have no counterpart."


class CompiledWhileTimed(Note):
    code = "compiled_while_timed"
    subject: str
    compilations: int

    def long(self) -> str:
        return f"{self.short()}."

    def short(self) -> str:
        return f"{self.subject}: {counted(self.compilations, 'compilation')} inside timed calls: no verdict"


class FewStretches(Note):
    code = "few_stretches"
    rounds: int
    stretches: float
    needed: int
    of_program: bool = False  #: That `tracekit run` measured, in one process.

    def long(self) -> str:
        more = "a longer --time-budget, or --repeat-process 4"
        if self.of_program:
            more = "more with a longer --time-budget"
        elif self.rounds < self.needed:
            more = "more with --iterations"
        told = self._independent()
        return (
            f"{told[0].upper()}{told[1:]}: below {self.needed}, a change counts if it exceeds what processes differ by"
            f" ({more})."
        )

    def short(self) -> str:
        more = "--time-budget, --repeat-process 4"
        if self.of_program:
            more = "--time-budget"
        elif self.rounds < self.needed:
            more = "--iterations"
        return f"{self._independent()} (more with {more})"

    def _independent(self) -> str:
        """`only 5 rounds`; `40 rounds amount to 4 independent rounds`."""
        if self.rounds < self.needed:
            return f"only {counted(self.rounds, 'round')}"
        independent = counted(math.floor(self.stretches), "independent round")
        return f"{counted(self.rounds, 'round')} amount to {independent}"


class Outliers(Note):
    code = "outliers"
    rounds: int
    of_rounds: int
    speedup: float

    def long(self) -> str:
        return (
            f"{self.rounds:,} of {counted(self.of_rounds, 'round')} are outliers and no part of the speed-up; with them"
            f" it is {times(self.speedup)}. Some calls may do other work."
        )

    def short(self) -> str:
        left_out = f"{self.rounds:,} of {self.of_rounds:,} rounds are outliers, left out"
        ratio = times(max(self.speedup, 1 / self.speedup))
        which = "as fast" if ratio == times(1.0) else f"{ratio} {'faster' if self.speedup > 1 else 'slower'}"
        return f"{left_out}: {which} with them"


class CoarseClock(Note):
    code = "coarse_clock"
    share: float

    def long(self) -> str:
        return (
            f"The clock shows steps of up to {percent(self.share, 0)} of a call: smaller changes are not seen. Time"
            " larger calls (--batch-size)."
        )

    def short(self) -> str:
        return f"the clock shows steps of up to {percent(self.share, 0)} of a call"


class Warming(Note):
    code = "warming"
    usual_severity = "info"
    subject: str
    calls: int
    of_calls: int
    says = "{subject}: {calls:,} of {of_calls:,} timed calls, at the beginning, do not count: speeds had not settled."

    def short(self) -> str:
        left_out = f"{self.calls:,} of {self.of_calls:,} calls, at the beginning, left out"
        return f"{self.subject}: {left_out}: speeds had not settled"


class Interrupted(Note):
    code = "interrupted"
    runs: int

    def long(self) -> str:
        return f"{'A run was' if self.runs == 1 else 'Both runs were'} interrupted: calls or recordings are missing."

    def short(self) -> str:
        return f"{'a run was' if self.runs == 1 else 'both runs were'} interrupted: calls or recordings are missing"


class EagerDiffersBetweenRuns(Note):
    code = "eager_differs_between_runs"
    slowest: str
    fastest: str
    ratio: float
    says = "Eager took {ratio:.2f}x as long in {slowest}'s process as in {fastest}'s: compare speed-ups, not times."
