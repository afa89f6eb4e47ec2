"""What a sweep's report is a report of."""

from msgspec.structs import replace
from tests.sweep.sweeps import CALL, compiled_cell, make_asked, make_result

from tracekit.sweep.commands.showing import identity_of_sweep


def test_a_sweep_stays_one_while_its_cells_come_and_are_measured_anew() -> None:
    asked, first = make_asked([compiled_cell()]), make_result(compiled_cell())
    again = replace(first, started="2027-01-02T03:04:05+00:00")
    later = replace(asked, calls=(CALL, replace(CALL, started="2027-01-01T00:00:00+00:00")))
    one = identity_of_sweep(asked, ())
    assert identity_of_sweep(asked, [first]) == identity_of_sweep(later, [again]) == one
    other = replace(asked, calls=(replace(CALL, started="2026-01-02T03:04:06+00:00"),))
    assert identity_of_sweep(other, ()) != one
    # Nobody knows what began it: then it is its cells.
    assert identity_of_sweep(None, [first]) != identity_of_sweep(None, [again])
