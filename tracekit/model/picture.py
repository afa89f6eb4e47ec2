"""What a trace viewer shows of one recording or two: rows of slices, curves, and arrows between the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from tracekit.model.comparison import KernelGroup
    from tracekit.model.sequence import Sequence

#: Columns of `Track.slices`, sorted by start, longer first: `kind` is what a slice is (kernel, op, python, idle ...),
#: `details` a JSON object or None, `key` what arrows know a slice by (None: no arrow ends there).
SLICE_COLUMNS = ("kind", "name", "start_ns", "end_ns", "details", "key")

#: Columns of `Counter.points`, sorted: from `at_ns` on the value is `value`.
POINT_COLUMNS = ("at_ns", "value")

#: Columns of `Picture.arrows`: a slice of the first panel and one of the second.
ARROW_COLUMNS = ("name", "a_key", "b_key")


@dataclass(frozen=True, slots=True)
class Track:
    """Slices that belong together. Where `nests`, one inside another is drawn below it; any other that overlaps stands
    in a lane of its own."""

    name: str
    slices: pl.DataFrame
    nests: bool = False


@dataclass(frozen=True, slots=True)
class Counter:
    """A curve of steps. `unit` says what is counted."""

    name: str
    unit: str
    points: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Panel:
    """One recording. Times are nanoseconds since the first moment that is shown. Findings come first."""

    name: str
    tracks: tuple[Track, ...]
    counters: tuple[Counter, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """One panel, or two with arrows between them. `notes` say what is not shown, and why."""

    panels: tuple[Panel, ...]
    arrows: pl.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MatchedWork:
    """One piece of work: positions in the activities of either side's sequence, and the group it is in."""

    group: KernelGroup
    a: tuple[int, ...]
    b: tuple[int, ...]
    where: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """All work of two sides, piece by piece: every position of either sequence is in exactly one piece."""

    a: Sequence
    b: Sequence
    work: tuple[MatchedWork, ...]
