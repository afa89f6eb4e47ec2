"""Which group is each activity of either side in?"""

from __future__ import annotations

from tracekit.comparison.cost.noted_calls import note_calls
from tracekit.comparison.cost.peaks import peak_of_side
from tracekit.comparison.matching.by_cells import gather_cells
from tracekit.comparison.matching.cells import evened, find_cells
from tracekit.model.comparison import Side, comparable
from tracekit.model.picture import MatchedWork, Matching


def match_work(a: Side, b: Side) -> Matching | None:
    """The pieces behind the groups of a comparison, in the order of A and, where A has nothing, of B.

    None where kernels can only be told by their names: a side has no activities in order, or the two windows are not
    of one kind.
    """
    if not comparable(a, b):
        return None
    a, b = evened(note_calls(a), note_calls(b))
    cells, _ = find_cells(a, b)
    if a.sequence is None or b.sequence is None or cells is None:
        return None
    gathered = gather_cells(a.sequence, b.sequence, cells, (peak_of_side(a), peak_of_side(b)))
    work = [MatchedWork(group, cell.a, cell.b, cell.where) for group, some in gathered for cell in some]
    return Matching(a.sequence, b.sequence, tuple(sorted(work, key=_first)))


def _first(work: MatchedWork) -> tuple[bool, tuple[int, ...]]:
    return not work.a, work.a or work.b
