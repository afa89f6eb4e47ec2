"""Version numbers, compared as numbers."""

from __future__ import annotations

import re


def is_older(version: str, than: str) -> bool:
    """`2.13.0+cpu` is not older than `2.9`. Only the numbers count, so `2.9.0rc1` is not older than `2.9`."""
    return _numbers(version) < _numbers(than)


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"\d+(\.\d+)*", version)
    if release is None:
        raise ValueError(f"{version!r} does not begin with a number")
    numbers = [int(part) for part in release[0].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
