"""Slices of a track to lanes in which viewers can draw them: Perfetto leaves out what overlaps and does not nest."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

Times = Iterable[tuple[int, int]]


def side_by_side(times: Times) -> list[int]:
    """The lane of each (start, end), in order of start: the first one that is free by then. In no lane do two share
    time."""
    lanes: list[int] = []
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for start, end in times:
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (max(end, start + 1), lane))
        lanes.append(lane)
    return lanes


def nested(times: Times) -> list[int]:
    """The lane of each (start, end), in order of start, the longer first: the first lane in which it lies wholly inside
    what is open, or in which nothing is."""
    lanes: list[int] = []
    open_until: list[list[int]] = []
    for start, end in times:
        lane = next((lane for lane, ends in enumerate(open_until) if _has_room(ends, start, end)), len(open_until))
        if lane == len(open_until):
            open_until.append([])
        open_until[lane].append(end)
        lanes.append(lane)
    return lanes


def _has_room(ends: list[int], start: int, end: int) -> bool:
    """Whether it fits under what is open in the lane; what is over by then is taken off."""
    while ends and ends[-1] <= start:
        ends.pop()
    return not ends or end <= ends[-1]
