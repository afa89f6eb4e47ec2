"""From one side to what it says by itself. It knows nothing of matching: `analyze` starts without that."""

from msgspec.structs import replace

from tracekit.comparison.cost.bound import find_bound
from tracekit.comparison.cost.operator_calls import note_calls
from tracekit.comparison.findings import find_of_one_side
from tracekit.comparison.judging.disturbances import find_disturbance
from tracekit.comparison.judging.fairness import find_unsound
from tracekit.comparison.waiting import with_waiting_lines
from tracekit.model.comparison import Side
from tracekit.model.single_run import SingleRun


def look_at(side: Side) -> SingleRun:
    """The side with what holds it back, and what a reader should know or do."""
    side, _ = with_waiting_lines(note_calls(side), side)
    side = replace(side, bound=find_bound(side))
    notes = (*find_unsound(side), *find_disturbance(side, side))
    return SingleRun(side, find_of_one_side(side), notes)
