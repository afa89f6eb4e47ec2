"""The GPU while a form ran: its memory and its state. Field names are those of `run.json`."""

from typing import Literal

from msgspec import Struct

from tracekit.model.bounded import Amount, Count, Many, Microseconds, Seconds, Text, Whole


class MemoryUse(Struct, frozen=True):
    """The GPU memory of torch's allocator at its height."""

    allocated_bytes: Count  #: What tensors held.
    reserved_bytes: Count  #: What torch had from the driver, CUDA graphs' pools included.


class FormMemory(Struct, frozen=True):
    """One form's GPU memory. All of it counts the weights and inputs, which both forms share."""

    before_bytes: Count  #: Before the form first ran: weights, inputs, what other forms hold.
    warmup: MemoryUse  #: The height of its warm-up calls, compiling and autotuning included.
    steady: MemoryUse | None  #: That of calls after it; None where the run was interrupted before.
    graph_pool_bytes: Count | None  #: Held for good by this form's CUDA graphs.
    others_pool_bytes: Count | None  #: By those of earlier forms: in `reserved` as well.


#: Why the driver's samples say that the GPU was held back, where a counter of `GpuState.slowed_us` tells that exactly:
#: which one.
COUNTED_AS = {
    "power limit (software)": "power",
    "temperature (software)": "temperature",
    "temperature (hardware)": "temperature",
}

Moment = Literal["before", "during", "after"]


class GpuSample(Struct, frozen=True):
    """The GPU at one moment; None for what the driver does not tell."""

    moment: Moment
    seconds: Seconds  #: Since the first sample.
    sm_clock_mhz: Count | None
    memory_clock_mhz: Count | None
    power_w: Amount | None
    temperature_c: Whole | None
    slowed_by: Many[Text] | None  #: Why it ran below its highest clocks, in the driver's words.
    other_processes: Count | None  #: Processes besides this one that had the GPU open.


class GpuState(Struct, frozen=True):
    """The GPU before the forms were timed, between the timed calls of this form, and after all of them. Counters are of
    all forms together; None where they cannot be read."""

    source: Literal["nvml"]  #: The library asked.
    samples: Many[GpuSample]
    slowed_us: dict[Text, Microseconds] | None = None  #: By the driver's counter of each limit.
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
