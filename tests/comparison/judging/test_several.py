from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sides import make_environment, make_form, make_pair, make_settings, make_side, scaled

from tracekit.comparison import compare
from tracekit.comparison.judging.several import (
    find_differences,
    find_fastest,
    name_ways,
    set_beside,
)
from tracekit.model.comparison import Comparison, Verdict
from tracekit.model.note import Note

ORDER = ("eager", "compiled") * 10
PATHS = ("one", "other")


def found(eager: float, compiled: float) -> Comparison:
    return compare(*make_pair(scaled(eager), scaled(compiled)), ORDER)


def test_runs_are_named_by_what_they_differ_in() -> None:
    modes = [make_settings(mode=mode) for mode in ("default", "reduce-overhead")]
    assert name_ways(modes, PATHS) == ("default", "reduce-overhead")
    both = [make_settings(mode="default", scope="all"), make_settings(mode="default", scope="vae", fullgraph=False)]
    assert name_ways(both, PATHS) == ("all, fullgraph on", "vae, fullgraph off")


def test_runs_that_differ_in_nothing_are_named_by_their_folders() -> None:
    assert name_ways([make_settings(), make_settings()], PATHS) == PATHS


def test_other_software_is_told() -> None:
    one = make_side("eager", form=make_form())
    newer = replace(one, environment=make_environment(packages={"torch": "2.14.0", "triton": "3.7.0"}))
    told = find_differences([one, newer], PATHS)
    facts = {"package": "torch", "a": "2.13.0", "b": "2.14.0", "a_name": "one", "b_name": "other"}
    assert told == (Note("package_differs", facts=facts),)
    beside = set_beside([found(1.5, 1), found(1.5, 1)], PATHS, told)
    assert (beside.alike, len(beside.sides), beside.notes[0]) == (False, 4, told[0])


def test_the_fastest_is_the_largest_speed_up_over_its_own_eager_form() -> None:
    assert find_fastest([found(1.5, 1.0), found(1.5, 0.5), found(1.5, 1.2)]) == (1,)
    assert find_fastest([found(1.0, 1.0), found(1.0, 1.5)]) == ()


def test_what_processes_differ_by_is_no_difference_between_forms() -> None:
    # 2.0 and 2.1 times as fast; intervals are narrow.
    assert find_fastest([found(1.0, 0.5), found(1.0, 1 / 2.1)]) == (1,)
    # The same speed-ups, but eager code took 10 % longer in one process.
    assert find_fastest([found(1.0, 0.5), found(1.1, 1.1 / 2.1)]) == (0, 1)


def judged(speedup: float, low: float, high: float, least: float = 0.0, result: str = "faster") -> Comparison:
    told = Verdict(result, speedup, (low, high), 0.01, 1000.0, 1000.0 / speedup, least_change=least)  # type: ignore[arg-type]
    return replace(found(1.0, 1 / speedup), verdict=told)


def test_two_are_told_apart_by_the_room_between_their_intervals() -> None:
    # From 1.8 down to 1.7 is room, from 2.0 down to 1.7 more: the interval's low end decides.
    assert find_fastest([judged(2.0, 1.8, 2.2), judged(1.75, 1.7, 1.79)]) == (0, 1)
    assert find_fastest([judged(2.0, 1.8, 2.2), judged(1.75, 1.7, 1.76)]) == (0,)


def test_processes_are_taken_to_differ_by_two_percent_at_least() -> None:
    assert find_fastest([judged(2.0, 2.0, 2.0), judged(1.965, 1.965, 1.965)]) == (0, 1)
    assert find_fastest([judged(2.0, 2.0, 2.0), judged(1.955, 1.955, 1.955)]) == (0,)


def test_what_a_run_says_a_change_must_exceed_is_no_difference_either() -> None:
    assert find_fastest([judged(2.0, 2.0, 2.0), judged(1.9, 1.9, 1.9, least=0.03)]) == (0,)
    assert find_fastest([judged(2.0, 2.0, 2.0), judged(1.9, 1.9, 1.9, least=0.06)]) == (0, 1)


def test_an_undecided_form_whose_interval_reaches_the_leader_cannot_be_told_from_it() -> None:
    wide, narrow = judged(1.061, 0.96, 1.12, result="inconclusive"), judged(1.042, 1.04, 1.044)
    told = set_beside([wide, narrow], PATHS, ())
    assert (told.fastest, told.leader, told.not_judged) == ((0, 1), 1, ())
    assert find_fastest([judged(1.0, 0.99, 1.01, result="inconclusive"), judged(1.5, 1.49, 1.51)]) == (1,)
    # Nobody leads where nothing is certain.
    assert find_fastest([wide, wide]) == ()


def test_a_form_that_compiled_inside_its_timed_calls_is_not_judged() -> None:
    a, b = make_pair(scaled(1.0), scaled(0.4))
    compiled = compare(a, replace(b, form=make_form("compiled", scaled(0.4), during_timing=1)), ORDER)
    told = set_beside([found(1.0, 0.5), compiled], PATHS, ())
    assert (told.fastest, told.leader, told.not_judged) == ((0,), 0, (1,))
    few = compare(*make_pair(scaled(1.0)[:3], scaled(0.4)[:3]), ORDER[:6])
    assert set_beside([found(1.0, 0.5), few], PATHS, ()).not_judged == (1,)


def test_what_is_on_off_or_not_set_is_named() -> None:
    ways = [make_settings(dynamic=dynamic) for dynamic in (None, True, False)]
    assert name_ways(ways, ("a", "b", "c")) == ("dynamic not set", "dynamic on", "dynamic off")


def test_eager_code_is_held_to_five_percent() -> None:
    assert set_beside([found(1.0, 0.5), found(1.04, 0.5)], PATHS, ()).notes == ()
    assert len(set_beside([found(1.0, 0.5), found(1.07, 0.5)], PATHS, ()).notes) == 1


def test_eager_code_is_told_apart_where_labels_are_the_same() -> None:
    assert len(set_beside([found(1.0, 0.5), found(1.4, 0.5)], PATHS, ()).notes) == 1


def test_eager_code_that_was_slower_in_one_process_is_told() -> None:
    alike = set_beside([found(1.0, 0.5), found(1.02, 0.5)], PATHS, ())
    assert alike.notes == ()
    apart = [found(1.0, 0.5), found(1.2, 0.5)]
    names = ("default", "regional")
    apart = [replace(each, b=replace(each.b, label=name)) for each, name in zip(apart, names, strict=True)]
    (told,) = set_beside(apart, PATHS, ()).notes
    assert (told.code, told.facts["slowest"], told.facts["fastest"]) == (
        "eager_differs_between_runs",
        "regional",
        "default",
    )
    assert told.facts["ratio"] == pytest.approx(1.2)
