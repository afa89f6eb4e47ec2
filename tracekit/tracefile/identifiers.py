"""What stands where a number is expected: numbers, numbers in words, words."""

from __future__ import annotations

import re

from tracekit.tracefile.events import Identifier

#: No machine has more GPUs; larger numbers are those of processes.
MOST_DEVICES = 1024

TRAILING_NUMBER = re.compile(r"(\d{1,4})\s*$")


def whole(value: Identifier | None) -> int | None:
    """An identifier as a number; None for a word, or for what fits no 64-bit column."""
    try:
        number = int(value) if value is not None else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and abs(number) < 2**62 else None


def device_number(value: Identifier | None) -> int | None:
    """A device's number: as it is, or at the end of a name (`GPU 1`); None for what numbers something else."""
    number = whole(value)
    if number is None and isinstance(value, str):
        found = TRAILING_NUMBER.search(value)
        number = int(found.group(1)) if found else None
    return number if number is not None and 0 <= number < MOST_DEVICES else None
