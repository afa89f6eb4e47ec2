"""What is kept of each rank's recording: a digest, and for a thousand ranks its summary."""

from typing import Annotated, Any, Literal, TypeVar

import polars as pl
from msgspec import Meta, Struct, field
from msgspec.structs import fields

from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.bounded import MOST, MOST_RANKS, Count, Text, Whole

#: In nanoseconds the year 2116.
MOST_ORIGIN = 2**62
#: Of the steps of one recording: a thousand ranks' tables of steps fit in memory.
MOST_STEPS = 1 << 13

Rank = Annotated[int, Meta(ge=0, lt=MOST_RANKS)]
#: Of a job, or of a group of its ranks.
Ranks = Annotated[int, Meta(ge=1, le=MOST_RANKS)]
#: Nanoseconds since a recording's origin: the 104 days that a double holds exactly, so that a thousand ranks' sums fit
#: 64 bits.
Moment = Annotated[int, Meta(ge=-MOST, le=MOST)]
#: Nanoseconds of a clock since its own origin: moments can be added.
Origin = Annotated[int, Meta(ge=-MOST_ORIGIN, le=MOST_ORIGIN)]

#: Who gives to whom: every rank to every other, a root to all others or they to it, one to some, nobody knows; or a
#: kernel writes and waits for nobody.
Exchange = Literal["all", "from_root", "to_root", "pairs", "unknown", "one_sided"]


class RankRecording(Struct, frozen=True, kw_only=True):
    """Whose recording it is, and which part of it was read. Times are whole nanoseconds since `origin_ns`, which is by
    the recording's own clock."""

    path: Text
    rank: Rank | None
    world_size: Ranks | None
    host_name: Text | None
    device_name: Text | None
    origin_ns: Origin
    #: When its first event was recorded.
    first_ns: Moment
    groups: dict[str, tuple[Rank, ...]]
    window: Literal["steps", "span", "whole"]
    #: The analysed stretches, in order; of a whole recording one.
    windows: Annotated[tuple[tuple[Moment, Moment], ...], Meta(min_length=1, max_length=MOST_STEPS)]
    skipped: Count
    truncated: bool
    #: Its number among the GPUs that the recording names.
    device: Count | None = None
    #: The numbers of the steps or spans, by which `step` counts from 0; none of a whole recording.
    steps: Annotated[tuple[Whole, ...], Meta(max_length=MOST_STEPS)] = ()
    purposes: dict[str, Text] = field(default_factory=dict)  #: What the job calls a group, by the group's name.

    @property
    def step_count(self) -> int:
        """How many steps, or named spans, were recorded; of a whole recording 1."""
        return len(self.steps) or 1

    def stated(self) -> dict[str, Any]:
        """These fields, for another that is of the same recording."""
        return {name: getattr(self, name) for name in RankRecording.__struct_fields__}


class Talk(Struct, frozen=True):
    """What a rank's communication kernels are known by, as columns of `RankDigest.collectives`."""

    collective: Text
    group: Text | None = None
    ranks: tuple[Rank, ...] = ()  #: Of the group.
    size: Ranks | None = None  #: How many they are.
    dtype: Text | None = None
    bytes: Count | None = None  #: Of the larger side; None where not recorded.
    signature: Text = ""  #: By which equal ones are told.
    exchange: Exchange = "all"
    root: Rank | None = None
    targets: tuple[Rank, ...] = ()  #: The ranks that it gives to, where that is not all.
    sources: tuple[Rank, ...] = ()  #: And takes from.
    sent_bytes: Count | None = None  #: Of an all-to-all: those of others say nothing more.
    received_bytes: Count | None = None


_TIMES: dict[str, Any] = {"start_ns": int, "end_ns": int}
#: The columns of a digest's tables, and what their values may be; plain numbers are bounded together (`fault.py`).
COLUMNS: dict[str, dict[str, Any]] = {
    "activities": {
        "kind": Text,
        "name": Text,
        "family": Text,
        "stream": Whole | None,
        "step": int,
        **_TIMES,
        "grid": Text | None,
        "in_graph": bool,
    },
    "collectives": {
        **_TIMES,
        "stream": Whole | None,
        "step": int,
        "in_graph": bool,
        "sequence": Count | None,
        "kernel": Text,
        "ready_ns": int,
        **{each.name: each.type for each in fields(Talk)},
    },
    "gaps": {**_TIMES, **dict.fromkeys(IDLE_CAUSES, int)},
    "places": {**_TIMES, "cause": Text, "where": Text | None},
}
_DTYPES: dict[Any, Any] = {
    **dict.fromkeys((Text, Text | None, Exchange), pl.String),
    bool: pl.Boolean,
    tuple[Rank, ...]: pl.List(pl.Int64),
}


def schema_of(table: str) -> dict[str, Any]:
    """The types that polars has for a table's columns."""
    return {name: _DTYPES.get(kind, pl.Int64) for name, kind in COLUMNS[table].items()}


class RankDigest(RankRecording, frozen=True, kw_only=True):
    """What one recording tells of its rank, small enough to hold those of all ranks at once; tables as COLUMNS says.

    `activities` has a row for each GPU activity of the rank's device in the window, sorted by start; of kind `outside`
    what was launched outside of the window and runs in it (`ranks/activities.py`). `collectives` has one for each
    communication kernel, by start: `kernel` is its name, `ready_ns` when all that was launched before it was done and
    its launch had begun, at most its start. `gaps` has the idle time, cut wherever a collective starts or is ready,
    with nanoseconds of each cause. `places` names the longest gaps.
    """

    activities: pl.DataFrame
    collectives: pl.DataFrame
    gaps: pl.DataFrame
    places: pl.DataFrame


class RankSummary(RankRecording, frozen=True, kw_only=True):
    """Of a digest what a thousand of them are reduced by. Rows of `spans_ns`, `compute_ns`, `idle_ns` (by IDLE_CAUSES)
    and `beside_ns` (communication that compute covers) are the steps, which last as `windows` say. `parts` has a row
    for each communication kernel: start, end, step, its number in `talk`, its sequence number (-1: not recorded), and
    how much of it compute covers."""

    spans_ns: Ints
    compute_ns: Ints
    idle_ns: Ints
    beside_ns: Ints
    talk: tuple[Talk, ...]
    parts: Ints


Recorded = TypeVar("Recorded", bound=RankDigest | RankSummary)


class DigestOrigin(Struct, frozen=True):
    """What a digest was made of: the recording's length, a sum over its beginning and end, and what was asked for."""

    bytes: int
    ends: str
    window: str
    steps: tuple[int, int] | None


class DigestsMade(Struct, frozen=True):
    """What came of many recordings: digests made, those that were there and kept, recordings that failed, and the bytes
    of all digests."""

    made: int
    kept: int
    failed: int
    bytes: int
