"""Notes on the state of the GPU while forms were timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracekit.numbers import percent


def throttled(*, limit: str, share: float, sides: Sequence[str] = ()) -> str:
    return _throttled(f"by its {limit} limit for {percent(share, 0)} of the time", sides)


def throttled_in_samples(*, reason: str, samples: int, of_samples: int, sides: Sequence[str] = ()) -> str:
    return _throttled(f"{reason}, in {samples} of {of_samples} samples between calls", sides)


def _throttled(how: str, sides: Sequence[str]) -> str:
    """In a table that is of one side anyway, it is not named."""
    if not sides:
        return how
    return f"{' and '.join(sides)}: the GPU was held back while it was timed: {how}. Times are of a throttled GPU."


def gpu_shared(*, sides: Sequence[str], processes: int) -> str:
    several = f"{processes} other processes" if processes > 1 else "another process"
    return f"{' and '.join(sides)}: {several} had the GPU open while it was timed; whether they computed is not known."


def clocks_differ(*, sides: Sequence[str], clocks_mhz: Sequence[float], lower: str, faster: str | None) -> str:
    """A lower clock makes calls longer as far as they wait for the GPU: it widens the difference of a form that is
    slower anyway, and hides some of what a faster one gains."""
    one, other = (f"{clock:,.0f} MHz between {name}'s" for name, clock in zip(sides, clocks_mhz, strict=True))
    if faster is None:
        effect = f"as far as calls wait for the GPU, {lower} is slower for its clock"
    elif faster == lower:
        effect = f"{faster} is faster at the lower clock, which hides a part of the difference"
    else:
        effect = f"a part of the difference may be the clock's, as far as {lower} waits for the GPU"
    return f"The GPU's clock was {one} calls and {other}: {effect}."


SENTENCES: dict[str, Callable[..., str]] = {
    each.__name__: each for each in (throttled, throttled_in_samples, gpu_shared, clocks_differ)
}
