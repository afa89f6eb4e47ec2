"""What is shown of each rank's own call."""

import math
from collections.abc import Sequence

import pytest
from tests.sides import make_analysis, make_form, make_side

from tracekit.numbers import MINUS
from tracekit.ranks.compared import words
from tracekit.ranks.compared.changes import RankSides, compare_ranks
from tracekit.ranks.compared.nouns import JobChange
from tracekit.ranks.compared.tables import rank_lines


def job_of(*calls_us: float) -> JobChange:
    """Ranks without unprofiled idle time in eager where a call is short."""
    sides = []
    for rank, call_us in enumerate(calls_us):
        a = make_side("eager", make_analysis(), make_form("eager", (call_us,) * 10))
        sides.append(RankSides(rank, a, make_side("compiled", make_analysis(idle_us=100.0), make_form("compiled"))))
    return compare_ranks(sides, {}, {})


def figures(row: Sequence[object]) -> list[float]:
    return [float(str(cell).replace(",", "").replace(MINUS, "-")) for cell in row[1:]]


@pytest.mark.parametrize(("eager_us", "residual"), [(1400.0, False), (840.0, True)])
def test_a_rank_s_call_and_its_changes_are_its_compiled_call(eager_us: float, residual: bool) -> None:
    table = rank_lines(job_of(eager_us, 1400.0), ("eager", "compiled"))
    assert table is not None
    assert any(column.label == words.RESIDUAL for column in table.columns) == residual
    assert not table.note
    for row in table.rows:
        a, b, *changes = figures(row)
        assert math.isclose(a + math.fsum(changes), b, abs_tol=0.01 * len(changes))


def test_a_rank_that_is_told_as_recorded_is_explained_where_it_stands() -> None:
    table = rank_lines(job_of(500.0, 1400.0), ("eager", "compiled"))
    assert table is not None
    assert [words.PROFILED in str(row[0]) for row in table.rows] == [True, False]
    assert table.note == words.PROFILED_NOTE


def test_a_job_of_one_rank_has_no_table_of_ranks() -> None:
    assert rank_lines(job_of(1400.0), ("eager", "compiled")) is None
