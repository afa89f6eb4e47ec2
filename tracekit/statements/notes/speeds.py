"""Speeds that changed while calls were timed, or from process to process."""

from collections.abc import Sequence

from msgspec import Struct

from tracekit.model.note import Note
from tracekit.numbers import duration, percent, times

#: Where speed-ups hold though processes differ, and where they do not (docs/timing.md).
RATIOS_HOLD = "Speed-ups within one process vary less than absolute times."
RATIOS_MOVE = "It is host-bound: speed-ups vary between processes too."


class Drifted(Note):
    code = "drifted"
    subject: str
    share: float

    def long(self) -> str:
        return f"{self.short()} (last third of the calls over the first)."

    def short(self) -> str:
        return f"{self.subject} {self._change()} during timing"

    def _change(self) -> str:
        """A factor from twice as long on, where a percentage is hard to picture."""
        if self.share >= 1:
            return f"slowed down {times(1 + self.share)}"
        return f"became {percent(abs(self.share))} {'slower' if self.share > 0 else 'faster'}"


class TwoSpeeds(Note):
    code = "two_speeds"
    subject: str
    fast_us: float
    slow_us: float
    slow_share: float
    lasting: bool

    def long(self) -> str:
        return (
            f"{self.subject} is bimodal: {percent(1 - self.slow_share, 0)} of calls at {self.fast_us / 1e3:.3f} ms,"
            f" {percent(self.slow_share, 0)} at {self.slow_us / 1e3:.3f} ms"
            f"{'' if self.lasting else ', switching from call to call'}. Likely causes: clocks, other load."
        )

    def short(self) -> str:
        return f"{percent(self.slow_share, 0)} of {self.subject} at {duration(self.slow_us)}"


class SpeedupByThirds(Note):
    code = "speedup_by_thirds"
    usual_severity = "info"
    first: float
    last: float
    beyond_ci: bool
    slower: bool  #: B is the slower side: how much slower is told, as in the headline.

    def long(self) -> str:
        return (
            f"Interleaving cancels common drift: {'B was' if self.slower else 'the speed-up was'}"
            f" {self._thirds()}.{' The CI does not cover that.' if self.beyond_ci else ''}"
        )

    def short(self) -> str:
        begin = "not steady, beyond the CI: " if self.beyond_ci else "" if self.slower else "speed-up "
        return f"{begin}{self._thirds()}"

    def _thirds(self) -> str:
        first, last = (third_words(each, slower=self.slower) for each in (self.first, self.last))
        return f"{first} in the first third, {last} in the last"


def third_words(ratio: float, *, slower: bool) -> str:
    """The speed-up of a part of the rounds with the interval's digits; beside a slower B, how much slower it was."""
    if slower and ratio < 1:
        return f"{1 / ratio:.3f}\N{MULTIPLICATION SIGN} slower"
    return f"{ratio:.3f}\N{MULTIPLICATION SIGN}{' faster' if slower else ''}"


class KindOfProcess(Struct, frozen=True):
    """Processes of about one speed-up."""

    speedup: float
    processes: int


class TwoKinds(Note):
    code = "two_kinds"
    usual_severity = "info"
    kinds: Sequence[KindOfProcess]

    def long(self) -> str:
        return f"Processes are of two kinds: {self._kinds()}. No mean of them is any one's."

    def short(self) -> str:
        return f"processes are of two kinds: {self._kinds()}"

    def _kinds(self) -> str:
        """`2 at 1.84x and 6 at 2.05x`."""
        return " and ".join(f"{each.processes} at {times(each.speedup)}" for each in self.kinds)


class ProcessSpread(Note):
    code = "process_spread"
    subject: str
    fastest_us: float
    slowest_us: float
    waits_for_host: bool

    def long(self) -> str:
        return (
            f"{self.subject} took {duration(self.fastest_us)} to {duration(self.slowest_us)} per call between"
            f" processes, {apart_words(self.fastest_us, self.slowest_us, self.waits_for_host)}"
        )


class AdviceProcessSpread(Note):
    code = "advice_process_spread"
    subject: str
    own_us: float
    advised_us: float
    waits_for_host: bool

    def long(self) -> str:
        return (
            f"{self.subject} took {duration(self.own_us)} per call in the run's own process,"
            f" {duration(self.advised_us)} in the advice's,"
            f" {apart_words(self.own_us, self.advised_us, self.waits_for_host)}"
        )


def apart_words(one_us: float, other_us: float, waits_for_host: bool) -> str:
    share = percent(max(one_us, other_us) / min(one_us, other_us) - 1, 0)
    return f"{share} apart. {RATIOS_MOVE if waits_for_host else RATIOS_HOLD}"
