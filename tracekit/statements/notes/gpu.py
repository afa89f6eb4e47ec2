"""What held the GPU back while calls were timed, who shared it, and how it was clocked."""

from collections.abc import Sequence

from tracekit.model.note import Note
from tracekit.numbers import percent


class Throttled(Note):
    """Made of a GPU's state it has no sides: in a table that is of one side anyway none is named."""

    code = "throttled"
    grave = True
    limit: str
    share: float
    sides: Sequence[str] | None = None

    def long(self) -> str:
        return throttled_words(self.limited(), self.sides)

    def short(self) -> str:
        return f"{self.limited()}: {' and '.join(self.sides)} throttled" if self.sides else self.limited()

    def limited(self) -> str:
        return f"{self.limit} limit active {percent(self.share, 0)} of the time"


class ThrottledInSamples(Note):
    code = "throttled_in_samples"
    grave = True
    reason: str
    samples: int
    of_samples: int
    sides: Sequence[str] | None = None
    says_short = "throttled in {samples} of {of_samples} samples: {reason}"

    def long(self) -> str:
        return throttled_words(
            f"{self.reason} in {self.samples} of {self.of_samples} samples between calls", self.sides
        )


def throttled_words(how: str, sides: Sequence[str] | None) -> str:
    return f"{' and '.join(sides)}: GPU throttled, {how}." if sides else how


class GpuShared(Note):
    code = "gpu_shared"
    grave = True
    sides: Sequence[str]
    processes: int

    def long(self) -> str:
        return (
            f"{' and '.join(self.sides)}: {self.processes} other {'process' if self.processes == 1 else 'processes'}"
            " had the GPU open during timing."
        )


class ClocksDiffer(Note):
    """A lower clock makes calls longer as far as they wait for the GPU: it widens the difference of a form that is
    slower anyway, and hides some of what a faster one gains."""

    code = "clocks_differ"
    grave = True
    sides: Sequence[str]
    clocks_mhz: Sequence[float]
    lower: str
    faster: str | None

    def long(self) -> str:
        clocks = ", ".join(f"{clock:,.0f} MHz {name}" for name, clock in self._by_side())
        effect = f"the clock may explain part of the difference, as far as {self.lower} is GPU-bound"
        if self.faster is None:
            effect = f"{self.lower} is slowed as far as it is GPU-bound"
        elif self.faster == self.lower:
            effect = f"this understates the gain of {self.faster}"
        return f"GPU clocks differ ({clocks}): {effect}."

    def short(self) -> str:
        told = ", ".join(f"{clock:,.0f} {name}" for name, clock in self._by_side()).replace(" ", " MHz ", 1)
        return f"clock {told}{' (gain larger at equal clocks)' if self.faster == self.lower else ''}"

    def _by_side(self) -> list[tuple[str, float]]:
        return list(zip(self.sides, self.clocks_mhz, strict=True))
