"""The parts of a Chrome trace event that tracekit uses, typed so that the decoder builds nothing else, and the numbers
in what stands where an identifier is expected: numbers, numbers in words, words.

Field names are those of Kineto's JSON (libkineto/src/output_json.cpp).
"""

import re
from typing import Generic, Literal, TypeVar

import msgspec

#: How much of an event's arguments is read: `shapes` adds operators' inputs, `collectives` what collectives state.
Detail = Literal["plain", "shapes", "collectives"]
Number = int | float
Identifier = int | float | str

#: Stands in columns of identifiers where the file has none.
NONE = -(2**62)

#: No machine has more GPUs; larger numbers are those of processes.
MOST_DEVICES = 1024

TRAILING_NUMBER = re.compile(r"(\d{1,4})\s*$")
LONGEST_ENDING = 100


class Arguments(msgspec.Struct, gc=False):
    """An event's `args`, of every kind of event together."""

    device: Identifier | None = NONE
    stream: Identifier | None = NONE
    correlation: Identifier | None = NONE
    bytes: Number | None = NONE
    device_type: Number | None = msgspec.field(name="Device Type", default=None)
    total_allocated: Number | None = msgspec.field(name="Total Allocated", default=None)


class ShapedArguments(Arguments, gc=False):
    """An event's arguments with an operator's inputs, left as the JSON they are: most are the same few texts."""

    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw(b""))
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw(b""))
    values: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=msgspec.Raw(b""))
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=msgspec.Raw(b""))


class CollectiveArguments(Arguments, gc=False):
    """An event's arguments with those of a collective, as Kineto writes them on its kernels or, in older traces,
    only on the host's `record_param_comms`. Left as the JSON they are: most are the same few texts."""

    collective: msgspec.Raw = msgspec.field(name="Collective name", default=msgspec.Raw(b""))
    dtype: msgspec.Raw = msgspec.field(name="dtype", default=msgspec.Raw(b""))
    elements_in: msgspec.Raw = msgspec.field(name="In msg nelems", default=msgspec.Raw(b""))
    elements_out: msgspec.Raw = msgspec.field(name="Out msg nelems", default=msgspec.Raw(b""))
    split_in: msgspec.Raw = msgspec.field(name="In split size", default=msgspec.Raw(b""))
    split_out: msgspec.Raw = msgspec.field(name="Out split size", default=msgspec.Raw(b""))
    group: msgspec.Raw = msgspec.field(name="Process Group Name", default=msgspec.Raw(b""))
    group_size: msgspec.Raw = msgspec.field(name="Group size", default=msgspec.Raw(b""))
    group_ranks: msgspec.Raw = msgspec.field(name="Process Group Ranks", default=msgspec.Raw(b""))
    source: msgspec.Raw = msgspec.field(name="Src Rank", default=msgspec.Raw(b""))
    target: msgspec.Raw = msgspec.field(name="Dst Rank", default=msgspec.Raw(b""))
    rank: msgspec.Raw = msgspec.field(name="Rank", default=msgspec.Raw(b""))
    sequence: msgspec.Raw = msgspec.field(name="Seq", default=msgspec.Raw(b""))
    external: Identifier | None = msgspec.field(name="External id", default=NONE)
    grid: msgspec.Raw = msgspec.Raw(b"")


#: The arguments that tell one kind of collective from another.
SIGNATURE = (
    *("collective", "dtype", "elements_in", "elements_out", "split_in", "split_out"),
    *("group", "group_size", "group_ranks", "source", "target", "rank"),
)


Kind = TypeVar("Kind", bound=Arguments)


class EventWith(msgspec.Struct, Generic[Kind], gc=False):
    """One element of `traceEvents`, with arguments of this kind. Times are microseconds, which some tools write in
    words ("1.5")."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: Identifier | None = None
    tid: Identifier | None = None
    ts: Identifier | None = None
    dur: Identifier | None = None
    args: Kind | None = None


Event = EventWith[Arguments]


class DeviceProperties(msgspec.Struct, gc=False):
    id: object = None
    name: object = None


class Header(msgspec.Struct, gc=False):
    """What a trace says of itself, beside its events."""

    deviceProperties: tuple[DeviceProperties, ...] = ()  # noqa: N815 (the file's own spelling)
    tracekit: dict[str, object] = {}
    distributedInfo: object = None  # noqa: N815
    baseTimeNanoseconds: object = None  # noqa: N815
    host_name: object = None
    record_shapes: Number | bool = 0
    with_stack: Number | bool = 0
    profile_memory: Number | bool = 0
    with_flops: Number | bool = 0
    with_modules: Number | bool = 0


#: The settings of the profiler that it states.
RECORD_FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")


class Ending(Header, Generic[Kind], gc=False):
    """The last events of a file in the object form, and what it says of itself behind them."""

    traceEvents: list[EventWith[Kind]] = []  # noqa: N815


def whole(value: object) -> int | None:
    """An identifier as a number; None for a word, a fraction, or for what fits no 64-bit column."""
    if not isinstance(value, int | float | str):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    fraction = isinstance(value, float) and value != number
    return None if fraction or abs(number) >= 2**62 else number


def trailing_number(value: object) -> int | None:
    """A number as it is, or at the end of a name (`GPU 1`, `stream 7`)."""
    number = whole(value)
    if number is None and isinstance(value, str):
        # Of a long text the end, where the number is.
        found = TRAILING_NUMBER.search(value[-LONGEST_ENDING:])
        number = int(found.group(1)) if found else None
    return number


def device_number(value: object) -> int | None:
    """A device's number; None for what numbers something else."""
    number = trailing_number(value)
    return number if number is not None and 0 <= number < MOST_DEVICES else None
