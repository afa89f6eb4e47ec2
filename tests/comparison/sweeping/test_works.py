"""Cells that ran beside each other share a host, and it is said."""

from __future__ import annotations

from dataclasses import replace

from tests.sweeps import compiled_cell, eager_cell, make_failure, make_result

from tracekit.comparison.sweeping.works import find_side_by_side
from tracekit.model.note import Note

FIRST = replace(make_result(eager_cell()), started="2026-11-21T19:00:00+00:00", seconds=60.0)


def test_cells_that_ran_at_the_same_time_are_counted() -> None:
    beside = replace(make_result(compiled_cell()), started="2026-11-21T19:00:30+00:00", seconds=60.0)
    alone = replace(make_result(compiled_cell(batch_size=4)), started="2026-11-21T20:00:00+00:00")
    (told,) = find_side_by_side((FIRST, beside, alone))
    assert told == Note("cells_side_by_side", facts={"cells": 2, "of_cells": 3})


def test_one_after_the_other_is_not_beside_each_other_nor_is_another_file_of_the_same_cell() -> None:
    after = replace(make_result(compiled_cell()), started="2026-11-21T19:00:58+00:00")
    again = replace(FIRST, started="2026-11-21T19:00:10+00:00", seconds=40.0)
    assert list(find_side_by_side((FIRST, after, again))) == []


def test_a_cell_that_failed_disturbed_the_others_all_the_same() -> None:
    failed = replace(make_failure(compiled_cell()), started="2026-11-21T19:00:10+00:00", seconds=40.0)
    (told,) = find_side_by_side((FIRST, failed))
    assert told.facts == {"cells": 1, "of_cells": 1}
