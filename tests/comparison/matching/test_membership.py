from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tracekit.comparison import compare
from tracekit.comparison.matching.groups import match_work
from tracekit.model.comparison import Side
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side

RUN = Path(__file__).parents[3] / "traces" / "h200-vit"


@pytest.fixture(scope="module")
def sides() -> tuple[Side, Side]:
    reading = Reading(shapes=True, cached=False)
    return load_side(RUN, form="eager", reading=reading), load_side(RUN, form="compiled", reading=reading)


def test_every_activity_is_in_one_piece_of_work(sides: tuple[Side, Side]) -> None:
    matching = match_work(*sides)
    assert matching is not None
    assert sorted(at for work in matching.work for at in work.a) == list(range(len(matching.a.activities)))
    assert sorted(at for work in matching.work for at in work.b) == list(range(len(matching.b.activities)))


def test_the_pieces_are_of_the_groups_that_the_comparison_shows(sides: tuple[Side, Side]) -> None:
    matching = match_work(*sides)
    assert matching is not None
    shown = {(group.kind, group.label, round(group.delta_us, 6)) for group in compare(*sides).groups}
    assert {(work.group.kind, work.group.label, round(work.group.delta_us, 6)) for work in matching.work} == shown
    lost = [work for work in matching.work if work.group.kind == "defused"]
    assert len(lost) == 12
    assert {(len(work.a), len(work.b)) for work in lost} == {(2, 7)}


def test_nothing_is_matched_where_activities_are_not_known_one_by_one(sides: tuple[Side, Side]) -> None:
    assert match_work(replace(sides[0], sequence=None), sides[1]) is None


def test_nothing_is_matched_between_a_step_and_a_whole_recording(sides: tuple[Side, Side]) -> None:
    whole = load_side(RUN, form="eager", reading=Reading(window="whole", shapes=True, cached=False))
    assert match_work(whole, sides[1]) is None
