"""What a trace viewer shows of one recording or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import polars as pl


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
