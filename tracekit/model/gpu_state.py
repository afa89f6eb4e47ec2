"""What state the GPU was in while a form was timed. Field names are those of `run.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracekit.model.bounded import Amount, Count, Many, Microseconds, Seconds, Text, Whole

Moment = Literal["before", "during", "after"]


@dataclass(frozen=True, slots=True)
class GpuSample:
    """The GPU at one moment; None for what the driver does not tell.

    `seconds` is since the first sample. `slowed_by` are the driver's reasons for running below its highest clocks, in
    words, those that are none of the load's left out. `other_processes` is how many processes besides this one had
    the GPU open.
    """

    moment: Moment
    seconds: Seconds
    sm_clock_mhz: Count | None
    memory_clock_mhz: Count | None
    power_w: Amount | None
    temperature_c: Whole | None
    slowed_by: Many[Text] | None
    other_processes: Count | None


@dataclass(frozen=True, slots=True)
class GpuState:
    """The GPU before the forms were timed, between the timed calls of this form, and after all of them.

    `source` is the library asked. `slowed_us` is how long, by the driver's own counters, each limit held the GPU back
    from before to after, in all forms together; None where they cannot be read.
    """

    source: Literal["nvml"]
    samples: Many[GpuSample]
    slowed_us: dict[Text, Microseconds] | None = None
    power_limit_w: Amount | None = None

    def during(self) -> tuple[GpuSample, ...]:
        """The samples taken between timed calls."""
        return tuple(sample for sample in self.samples if sample.moment == "during")

    @property
    def sm_clock_mhz(self) -> float | None:
        """The median clock between timed calls; None where it was never read."""
        # Only here: the module takes a while to load.
        from statistics import median

        clocks = [sample.sm_clock_mhz for sample in self.during() if sample.sm_clock_mhz is not None]
        return median(clocks) if clocks else None

    @property
    def timed_us(self) -> float | None:
        """How long it was from the last sample before timing to the one after it; None without both."""
        before = [sample.seconds for sample in self.samples if sample.moment == "before"]
        after = [sample.seconds for sample in self.samples if sample.moment == "after"]
        return (after[0] - before[-1]) * 1e6 if before and after else None
