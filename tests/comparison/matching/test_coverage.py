from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sequences import eager, make_sequence, product
from tests.sides import make_side

from tracekit.comparison.matching.coverage import find_doubts, find_inexact, find_little_matched, total_traffic
from tracekit.model.comparison import Coverage, GroupMember, KernelGroup, Side
from tracekit.model.note import Note
from tracekit.model.sequence import Sequence, Traffic

WORK = make_sequence([product(64, 64, 64, call=0), eager("add", (64, 64), call=1)])


def side(sequence: Sequence | None) -> Side:
    return replace(make_side("graphed"), sequence=sequence)


def test_operators_with_shapes_leave_no_doubt() -> None:
    assert find_doubts(side(WORK), side(None)) == ()


def test_a_side_without_operators_is_told_what_would_lend_them() -> None:
    (doubt,) = find_doubts(side(WORK), side(replace(WORK, operators="none")))
    assert doubt == Note("no_operators", subject="graphed")


def test_operators_without_shapes_are_said_to_be() -> None:
    bare = (
        replace(each, operator=each.operator and replace(each.operator, dims=(), dtypes=())) for each in WORK.activities
    )
    (doubt,) = find_doubts(side(replace(WORK, activities=tuple(bare))))
    assert doubt == Note("no_shapes", subject="graphed")


def test_sides_that_hardly_match_may_be_of_different_models() -> None:
    (warning,) = find_little_matched(Coverage(0.302, 0.167))
    assert warning == Note("little_matched", facts={"matched_shares": {"A": 0.302, "B": 0.167}})
    assert find_little_matched(Coverage(0.99, 0.95)) == find_little_matched(None) == ()


def test_only_the_side_that_hardly_matches_is_named_and_what_is_known_to_be_gone_counts_as_told() -> None:
    (warning,) = find_little_matched(Coverage(0.5, 1.0))
    assert warning.facts == {"matched_shares": {"A": 0.5}}
    assert find_little_matched(Coverage(0.5, 1.0, a_time_alone=0.45)) == ()


def group(how: str, us: float, *, exact: bool) -> KernelGroup:
    member = GroupMember("kernel", 1.0, us)
    return KernelGroup("substituted", "work", how, (member,), (member,), 0.0, 0.0, (), exact=exact)  # type: ignore[arg-type]


def test_work_that_is_mostly_aligned_by_elimination_is_doubted() -> None:
    (warning,) = find_inexact([group("anchors", 79.0, exact=False), group("anchors", 21.0, exact=True)])
    assert (warning.code, warning.facts["shares"]) == ("matched_by_elimination", {"A": 0.79, "B": 0.79})
    assert find_inexact([group("anchors", 50.0, exact=False), group("anchors", 50.0, exact=True)]) == ()
    assert find_inexact([group("names", 100.0, exact=False)]) == find_inexact([]) == ()


def test_one_note_tells_that_groups_are_doubtful_and_why_provenance_cannot_help() -> None:
    doubtful = [group("anchors", 100.0, exact=False)]
    (both,) = find_inexact(doubtful, "two_runs")
    assert both.facts == {"shares": {"A": 1.0, "B": 1.0}, "no_provenance": "two_runs", "advise_profile": False}
    # What is no use to advise of a run, brings something for a bare trace.
    (of_runs,), (of_traces,) = find_inexact(doubtful, bare=False), find_inexact(doubtful)
    assert (of_runs.facts["advise_profile"], of_traces.facts["advise_profile"]) == (False, True)
    sure = [group("anchors", 100.0, exact=True)]
    (why,) = find_inexact(sure, "two_runs")
    assert why == Note("provenance_unused", "info", facts={"why": "two_runs"})


def moving(a_us: float, b_us: float, traffic: Traffic | None) -> KernelGroup:
    a, b = ((GroupMember("kernel", 1, us),) if us else () for us in (a_us, b_us))
    return KernelGroup("fused", "some", "anchors", a, b, 0, b_us - a_us, (), traffic=traffic)


def test_only_groups_that_are_known_on_both_sides_count_and_their_share_of_the_time_is_told() -> None:
    total = total_traffic(
        [
            moving(30, 10, Traffic(1000, 400, 0, 0)),
            moving(10, 0, Traffic(200, 0, 0, 0)),
            moving(0, 5, Traffic(0, 50, 0, 0)),
            # A call of either side is not known.
            moving(40, 20, Traffic(5000, 100, 1, 0)),
            moving(10, 5, Traffic(5000, None, 0, 1)),
            moving(10, 10, None),
        ]
    )
    assert (total.eager_bytes, total.compiled_bytes, total.removed_bytes) == (1200, 450, 750)
    assert total.a_time_known == pytest.approx(0.4)
    assert total.b_time_known == pytest.approx(0.3)


def test_where_nothing_is_known_there_is_no_total() -> None:
    assert total_traffic([]) is None
    assert total_traffic([moving(10, 10, None), moving(1, 1, Traffic(0, 0, 0, 0))]) is None
