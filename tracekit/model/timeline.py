"""What is drawn: one step of a GPU and its host thread, and what a trace viewer shows of one recording or two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import polars as pl

    from tracekit.model.comparison import KernelGroup
    from tracekit.model.sequence import Sequence


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


class Track(Struct, frozen=True):
    """Slices that belong together, in columns `kind` (kernel, op, python, idle ...), `name`, `start_ns`, `end_ns`,
    `details` (a JSON object or None) and `key` (by which arrows know it, or None), sorted by start, longer first. Where
    `nests`, one inside another is drawn below it; any other that overlaps stands in a lane of its own. `of_host` is
    what a viewer can do without."""

    name: str
    slices: pl.DataFrame
    nests: bool = False
    of_host: bool = False


class Counter(Struct, frozen=True):
    """A curve of steps: from `at_ns` on it is `value`. `unit` says what is counted."""

    name: str
    unit: str
    points: pl.DataFrame


class Panel(Struct, frozen=True):
    """One recording. Times are nanoseconds since the first moment that is shown. Findings come first. `about` is what
    more is said of it once."""

    name: str
    tracks: tuple[Track, ...]
    counters: tuple[Counter, ...]
    about: str = ""


class Picture(Struct, frozen=True):
    """Panels, and arrows between slices of them: `name`, the position of either one's panel and its key in there
    (`a_panel`, `a_key`, `b_panel`, `b_key`). `arrows_are` says what they mean. `notes` say what is not shown, and why.
    """

    panels: tuple[Panel, ...]
    arrows: pl.DataFrame
    arrows_are: str
    notes: tuple[str, ...] = ()


class MatchedWork(Struct, frozen=True):
    """One piece of work: positions in the activities of either side's sequence, and the group it is in."""

    group: KernelGroup
    a: tuple[int, ...]
    b: tuple[int, ...]
    where: tuple[str, ...]


class Matching(Struct, frozen=True):
    """All work of two sides, piece by piece: every position of either sequence is in exactly one piece."""

    a: Sequence
    b: Sequence
    work: tuple[MatchedWork, ...]
