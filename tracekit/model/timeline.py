"""One step of a GPU and its host thread, to be drawn."""

from __future__ import annotations

from msgspec import Struct


class Label(Struct, frozen=True):
    """`name` is a kernel's or a host event's; `kind` its family, or the cause of idle time that it stands for."""

    name: str
    kind: str


class Bars(Struct, frozen=True):
    """Stretches of time in order of their start, as columns: bar i is `labels[i]` among the timeline's labels, and is
    drawn in lane `lanes[i]`. Times count from the start of the step. `left_out` are the shortest, beyond what is kept.
    """

    starts_us: tuple[float, ...]
    durations_us: tuple[float, ...]
    labels: tuple[int, ...]
    lanes: tuple[int, ...]
    left_out: int


class StepTimeline(Struct, frozen=True):
    """One step of a recording. `step` is its number, None where the recording marks none and all of it is told.

    `work` is what ran on the GPU, a lane for each of `streams`; `positions[i]` is the place of bar i in the side's
    `Sequence`, -1 where another recording's has nothing like it. `gaps` are its idle gaps, each with its leading cause;
    `host` is what the thread did that marks the step (else the one that launched most), by the innermost event, without
    the time in which nothing was recorded.
    `other_devices` is how many GPUs more there are, of which nothing is told.
    """

    step: int | None
    length_us: float
    device: int
    other_devices: int
    streams: tuple[int | None, ...]
    labels: tuple[Label, ...]
    work: Bars
    positions: tuple[int, ...]
    gaps: Bars
    host: Bars
