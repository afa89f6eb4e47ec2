"""What can be said of one side without another to compare it with?"""

from __future__ import annotations

from tracekit.comparison.cost.bound import find_bound
from tracekit.comparison.cost.noted_calls import note_calls
from tracekit.comparison.findings import find_alone
from tracekit.comparison.judging.disturbances import find_disturbance
from tracekit.comparison.judging.fairness import find_unsound
from tracekit.comparison.waiting_lines import with_waiting_lines
from tracekit.model.alone import Alone
from tracekit.model.comparison import Side


def look_at(side: Side) -> Alone:
    """The side with what holds it back, and what a reader should know or do."""
    noted = note_calls(side)
    told, _ = with_waiting_lines(noted, noted)
    bound = find_bound(told, told.sequence)
    notes = (*find_unsound(told), *find_disturbance(told, told))
    return Alone(told, bound, find_alone(told, bound), notes)
