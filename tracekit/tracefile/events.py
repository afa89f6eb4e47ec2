"""The parts of a Chrome trace event that tracekit uses, typed so that the decoder builds nothing else, and the numbers
in what stands where an identifier is expected: numbers, numbers in words, words.

Field names are those of Kineto's JSON (libkineto/src/output_json.cpp).
"""

import re

import msgspec

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
    name: object = None
    device_type: Number | None = msgspec.field(name="Device Type", default=None)
    total_allocated: Number | None = msgspec.field(name="Total Allocated", default=None)


class ShapedArguments(Arguments, gc=False):
    """An event's arguments with an operator's inputs, left as the JSON they are: most are the same few texts."""

    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw(b""))
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw(b""))
    values: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=msgspec.Raw(b""))
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=msgspec.Raw(b""))


class Event(msgspec.Struct, gc=False):
    """One element of `traceEvents`. Times are microseconds, which some tools write in words ("1.5")."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: Identifier | None = None
    tid: Identifier | None = None
    ts: Identifier | None = None
    dur: Identifier | None = None
    args: Arguments | None = None


class ShapedEvent(Event, gc=False):
    """An event that is read with shapes."""

    args: ShapedArguments | None = None


class DeviceProperties(msgspec.Struct, gc=False):
    id: object = None
    name: object = None


class Header(msgspec.Struct, gc=False):
    """What a trace says of itself, beside its events."""

    deviceProperties: tuple[DeviceProperties, ...] = ()  # noqa: N815 (the file's own spelling)
    tracekit: dict[str, object] = {}
    record_shapes: Number | bool = 0
    with_stack: Number | bool = 0
    profile_memory: Number | bool = 0
    with_flops: Number | bool = 0
    with_modules: Number | bool = 0


#: The settings of the profiler that it states.
RECORD_FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")


class Ending(Header, gc=False):
    """The last events of a file in the object form, and what it says of itself behind them."""

    traceEvents: list[Event] = []  # noqa: N815


class ShapedEnding(Header, gc=False):
    """The same, read with shapes."""

    traceEvents: list[ShapedEvent] = []  # noqa: N815


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
