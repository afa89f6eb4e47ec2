"""What stands where a number is expected: numbers, numbers in words, words."""

from __future__ import annotations

import re

#: No machine has more GPUs; larger numbers are those of processes.
MOST_DEVICES = 1024

TRAILING_NUMBER = re.compile(r"(\d{1,4})\s*$")
LONGEST_ENDING = 100


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
