"""How do sides that were timed in separate runs compare, by all that a gate allows for?"""

from __future__ import annotations

from tracekit.comparison.judging.fairness import find_other_work
from tracekit.comparison.judging.ranges import find_wall_range, is_slight
from tracekit.model.apart import ApartChange
from tracekit.model.comparison import Side, Verdict


def find_apart_change(a: Side, b: Side, verdict: Verdict) -> ApartChange | None:
    """The ratio of the sides' calls, as `wall` of a gate is judged. None of sides that were timed together, of other
    work or another GPU, of too few calls, and where calls compiled."""
    if verdict.basis != "apart" or any(find_other_work(a, b)):
        return None
    wall = find_wall_range(a, b, verdict)
    if wall.beside is None or not wall.base or wall.new is None:
        return None
    low, high = (each / wall.base for each in wall.beside.held_to)
    clear = not low <= 1 <= high and not is_slight(abs(wall.new - wall.base), wall.base)
    return ApartChange(wall.new / wall.base, low, high, wall.beside.assumed, clear)
