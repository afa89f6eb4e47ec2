"""A trace: what a profiler recorded, as columnar tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

if TYPE_CHECKING:
    import polars as pl

#: Columns more of `Trace.host` where a trace was read with shapes: an operator's `Input Dims` and `Input type`, and of
#: convolutions and attention `Concrete Inputs` and `Input Strides`, as the JSON the file holds. None where nothing was
#: recorded, or what stands there is no list.
INPUT_COLUMNS = ("dims", "dtypes", "values", "strides")


class Thread(Struct, frozen=True):
    """A host thread. Identifiers are text because some tools write names where a number is expected."""

    pid: str
    tid: str


class Device(Struct, frozen=True):
    """A GPU as the trace describes it; `name` is None where the trace does not say."""

    id: int
    name: str | None


class CollectiveSignature(Struct, frozen=True):
    """What the profiler says of a collective, by the names of PyTorch's `ParamCommsUtils`. None, or an empty list, for
    what it does not say; a rank list that was cut off counts as not said."""

    collective: str | None  #: `allreduce`, `_allgather_base`, `all_to_allv`, `send` ...
    dtype: str | None  #: `BFloat16`.
    elements_in: int | None  #: Of one rank's input.
    elements_out: int | None  #: Of one rank's output.
    split_in: tuple[int, ...]  #: Of an all-to-all: how many elements go to each rank.
    split_out: tuple[int, ...]
    group: str | None  #: The process group's name.
    group_size: int | None
    group_ranks: tuple[int, ...]
    source: int | None  #: Of a receive or send: the rank at the other end, counted in the job.
    target: int | None
    #: Of what has a root, a send or a receive: that, or the other end, counted in the group; else the rank itself. Only
    #: the host's record has it.
    rank: int | None = None

    def with_rank(self, rank: int | None) -> CollectiveSignature:
        return replace(self, rank=rank)


class Distributed(Struct, frozen=True):
    """What a recording says of the job it is a part of (`distributedInfo`)."""

    rank: int
    world_size: int
    backend: str | None
    groups: dict[str, tuple[int, ...]]  #: The ranks of each process group, by its name.
    purposes: dict[str, str] = field(default_factory=dict)  #: What the job calls a group (`pg_desc`), by its name.


class Trace(Struct, frozen=True):
    """One recording. Times are integer nanoseconds since the first event, so sums are exact.

    Tables are sorted by start. `activities` has a row per GPU activity: `kind` (kernel, memcpy, memset), `name`,
    `device`, `stream` (None where the trace names none), `start_ns`, `end_ns`, `correlation`, `bytes`. `calls` has one
    per host API call (runtime or driver): `name`, `start_ns`, `end_ns`, `thread`, `correlation`. `host` has all other
    host events, longer ones first: `kind` (op, annotation, python, or the profiler's own overhead), `name`, `start_ns`,
    `end_ns`, `thread`.

    `skipped` counts the events that could not be read, by reason. `threads[i]` is the thread that a table's `thread`
    column calls `i`. `metadata` is what tracekit wrote into its own recordings, empty for traces made elsewhere.
    `unplaced` counts the activities that name no device; they stand under device 0. `truncated` says that the file
    ended before its JSON did. `record_flags` are the profiler settings the file states
    (`record_shapes`, `with_stack`, `profile_memory`, ...). `allocations` counts the profiler's GPU memory events, and
    `peak_allocated_bytes` is the largest total they state; None where there are none. `resolution_ns` is what the times
    are exact to. `origin_ns` is the moment that times are counted from, by the file's own clock, `host_name` the
    machine it names. `distributed` says which rank of which job it is. Read with collectives, activities and host
    events have `signature` (a position in `signatures`), `sequence` (of the group), `external` (the operator's id) and
    `grid`.
    """

    path: str
    events: int
    bytes: int
    skipped: dict[str, int]
    unplaced: int
    truncated: bool
    activities: pl.DataFrame
    calls: pl.DataFrame
    host: pl.DataFrame
    threads: tuple[Thread, ...]
    devices: tuple[Device, ...]
    allocations: int
    peak_allocated_bytes: int | None
    record_flags: dict[str, bool]
    resolution_ns: float
    metadata: dict[str, object]
    origin_ns: int = 0
    host_name: str | None = None
    distributed: Distributed | None = None
    signatures: tuple[CollectiveSignature, ...] = ()
