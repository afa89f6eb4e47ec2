from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.sides import STEADY, make_form, make_side, scaled

from tracekit.comparison.judging.break_even import find_break_even
from tracekit.comparison.judging.verdict import judge
from tracekit.model.comparison import Side
from tracekit.model.compilation import Diagnostics
from tracekit.model.run import CompileFacts, FormName
from tracekit.model.timing import FormTiming, ProcessTimes, Startup

ORDER: tuple[FormName, ...] = ("eager", "compiled") * 10


def sides(factor: float, *, hits: int = 0, fresh: bool = False) -> tuple[Side, Side]:
    """Eager calls of 1 ms; the first took 101 ms, the compiled form's 10 s."""
    facts = CompileFacts(2, 0, 10.0, hits, 0)
    eager = replace(make_form("eager", STEADY), warmup_us=(101_000.0, 1000.0))
    steady = 1000.0 * factor
    compiled = replace(
        make_form("compiled", scaled(factor)), warmup_us=(10e6 + steady, steady, steady), compilation=facts
    )
    if fresh:
        eager = replace(eager, startups=(Startup("eager", 3.0, (201_000.0, 1000.0), None, None),))
        starts = (
            Startup("compiled_no_cache", 3.0, (20e6 + steady, steady), 2, 0),
            Startup("compiled_warm_cache", 3.0, (2e6 + steady, 1e6 + steady), 2, 2),
        )
        compiled = replace(compiled, startups=starts)
    return make_side("eager", form=eager), make_side("compiled", form=compiled)


def found(factor: float, **how: object):
    a, b = sides(factor, **how)
    return find_break_even(a, b, judge(a, b, ORDER)[0])


def test_a_warm_up_has_a_second_end_that_takes_nothing_of_eagers_start_off():
    (each,) = found(0.5)
    assert (each.startup_us, each.eager_startup_us) == pytest.approx((10e6, 100_000.0), rel=1e-3)
    assert each.calls is not None and each.calls_at_most is not None and each.calls_ci95 is not None
    assert (each.calls, each.calls_at_most) == pytest.approx(((10e6 - 100_000) / 500, 10e6 / 500), rel=1e-3)
    assert each.calls_ci95[0] <= each.calls < each.calls_at_most <= each.calls_ci95[1] * (1 + 1e-6)
    assert all(fresh.calls_at_most is None for fresh in found(0.5, fresh=True))


def test_a_slower_form_never_pays_and_without_an_established_saving_nothing_is_said():
    (slower,), (same,) = found(1.5), found(1.0)
    assert (slower.calls, slower.calls_ci95, slower.never) == (math.inf, None, True)
    assert (same.calls, same.calls_at_most, same.never) == (None, None, False)


def test_each_fresh_start_has_an_answer_of_its_own_and_counts_every_call_until_quiet():
    cold, warm = found(0.5, fresh=True)
    assert (cold.kind, warm.kind) == ("compiled_no_cache", "compiled_warm_cache")
    assert cold.source == warm.source == "fresh_process"
    assert cold.calls == pytest.approx((20e6 - 200_000) / 500, rel=1e-3)
    assert warm.calls == pytest.approx((3e6 - 200_000) / 500, rel=1e-3)


@pytest.mark.parametrize(("hits", "kind"), [(0, "compiled_no_cache"), (1, None), (2, "compiled_warm_cache")])
def test_a_warm_up_is_called_by_what_the_cache_held(hits: int, kind: str | None):
    (each,) = found(0.5, hits=hits)
    assert (each.kind, each.source) == (kind, "warm_up")


def test_a_cache_without_these_graphs_is_none_only_if_it_was_empty():
    a, b = sides(0.5)
    assert b.form is not None and b.form.compilation is not None
    for empty, kind in ((True, "compiled_no_cache"), (False, None)):
        facts = replace(b.form.compilation, cache_was_empty=empty)
        looked = replace(b, form=replace(b.form, compilation=facts))
        (each,) = find_break_even(a, looked, judge(a, looked, ORDER)[0])
        assert each.kind == kind


def test_a_start_that_costs_less_than_eagers_pays_at_once():
    a, b = sides(0.5)
    assert a.form is not None
    a = replace(a, form=replace(a.form, warmup_us=(20e6,)))
    (each,) = find_break_even(a, b, judge(a, b, ORDER)[0])
    assert each.calls == 0
    assert each.calls_at_most == pytest.approx(10e6 / 500, rel=1e-3), "but perhaps not, if eager paid for both"


def test_two_eager_forms_or_bare_traces_have_no_break_even():
    a, b = sides(0.5)
    assert find_break_even(a, a, judge(a, b, ORDER)[0]) == ()
    assert find_break_even(make_side("a"), make_side("b"), judge(a, b, ORDER)[0]) == ()


@pytest.mark.parametrize(("fresh", "answers"), [(False, 0), (True, 2)])
def test_a_warm_up_at_other_sizes_tells_nothing_of_a_start_but_fresh_processes_do(fresh: bool, answers: int):
    a, b = sides(0.5, fresh=fresh)
    assert b.form is not None and b.form.compilation is not None
    compilation = replace(b.form.compilation, diagnostics=Diagnostics(warmed_up_at={"batch_size": 1}))
    b = replace(b, form=replace(b.form, compilation=compilation))
    assert len(find_break_even(a, b, judge(a, b, ORDER)[0])) == answers


def test_the_range_holds_how_fast_eager_was_in_every_process():
    (single,) = found(0.5)
    a, b = sides(0.5)
    forms = []
    for side, factors in ((a, (0.8, 1.0)), (b, (0.4, 0.5))):
        repeats = tuple(ProcessTimes(scaled(each), None, (), "asked number", 1.0) for each in factors)
        timing = FormTiming("asked number", None, None, 1.0, (), repeats)
        forms.append(replace(side, form=replace(side.form, timing=timing)))
    (each,) = find_break_even(*forms, judge(*forms, ORDER)[0])
    assert each.calls is not None and each.calls_ci95 is not None
    assert single.calls is not None and single.calls_at_most is not None
    assert each.calls_ci95 == pytest.approx((single.calls, single.calls_at_most / 0.8), rel=0.01)
    assert each.calls_ci95[0] < each.calls < each.calls_ci95[1]
