from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tracekit.comparison import compare
from tracekit.comparison.judging.one_process import (
    SMALL_CHANGE,
    TWO_PROCESSES,
    WAITING_DIFFERS,
    find_unrepeated,
    waits_for_host,
)
from tracekit.comparison.judging.timed import TimedForm
from tracekit.comparison.judging.verdict import judge
from tracekit.model.comparison import Side, Verdict
from tracekit.model.compilation import Diagnostics
from tracekit.model.note import Note
from tracekit.model.run import FormName, FormResult

from ...sides import STEADY, make_analysis, make_form, make_side, scaled

ORDER: tuple[FormName, ...] = ("eager", "compiled") * 10


@dataclass(frozen=True)
class Form:
    """A form of which no more is known than for how much of its call the GPU was idle."""

    label: str
    idle_share: float | None
    form: FormResult | None = None
    wall_us: float | None = None
    diagnostics: Diagnostics | None = None


def verdict(speedup: float, processes: int | None = 1, result: str = "faster") -> Verdict:
    return Verdict(result, speedup, None, None, 1.0, 1.0, processes=processes)  # type: ignore[arg-type]


def told(a: float | None, b: float | None, found: Verdict) -> tuple[Note, ...]:
    return find_unrepeated(Form("eager", a), Form("compiled", b), found)


@pytest.mark.parametrize("speedup", [0.72, 0.989, 1.142, 1.211, 1.39])
@pytest.mark.parametrize(("a", "b", "name", "share"), [(0.82, 0.3, "eager", 0.82), (0.1, 0.2, "compiled", 0.2)])
def test_a_form_that_waits_for_the_host_is_not_believed_up_to_forty_percent(
    speedup: float, a: float, b: float, name: str, share: float
) -> None:
    facts = {"idle_share": share, "seen_apart": WAITING_DIFFERS}
    assert told(a, b, verdict(speedup)) == (Note("one_process_waits_for_host", subject=name, facts=facts),)


@pytest.mark.parametrize("speedup", [0.71, 1.41, 6.75])
def test_a_larger_change_of_such_a_form_needs_no_repeating(speedup: float) -> None:
    assert told(0.8, 0.8, verdict(speedup)) == ()


@pytest.mark.parametrize(("a", "b"), [(0.19, 0.02), (None, None), (None, 0.1), (0.142, 0.12)])
def test_forms_that_keep_the_gpu_busy_or_of_which_nobody_knows_are_believed_from_ten_percent_on(
    a: float | None, b: float | None
) -> None:
    assert told(a, b, verdict(1.09)) == told(a, b, verdict(1 / 1.09, result="slower")) == (SMALL_CHANGE,)
    assert told(a, b, verdict(1.11)) == told(a, b, verdict(1 / 1.11, result="slower")) == ()
    assert told(a, b, verdict(1.01, result="inconclusive")) == ()


def test_one_side_that_is_known_to_wait_is_enough() -> None:
    (note,) = told(None, 0.5, verdict(1.2))
    assert (note.code, note.subject) == ("one_process_waits_for_host", "compiled")


def test_what_one_process_found_inconclusive_may_be_a_change_in_another() -> None:
    assert len(told(0.85, 0.84, verdict(0.989, result="inconclusive"))) == 1


def test_several_processes_have_measured_it_and_two_tell_little() -> None:
    assert told(0.8, 0.8, verdict(1.1, processes=5)) == ()
    assert told(0.8, 0.8, verdict(1.1, processes=3)) == ()
    assert told(0.8, 0.8, verdict(1.1, processes=2)) == (TWO_PROCESSES,)


def test_nothing_is_said_of_sides_that_were_not_timed() -> None:
    assert told(0.8, 0.8, verdict(1.1, processes=None)) == ()
    assert told(0.8, 0.8, replace(verdict(1.1), speedup=None)) == ()


def of_run(wall_us: tuple[float, ...], name: FormName, busy_us: float, during_timing: int = 0) -> Side:
    """One step that kept the GPU busy for so long."""
    analysis = make_analysis({"gemm": ("gemm", 10, busy_us)}, steps=1, idle_us=1.0)
    return make_side(name, analysis, make_form(name, wall_us, during_timing=during_timing))


@pytest.mark.parametrize(("busy_us", "warned"), [(200.0, True), (850.0, False)])
def test_a_run_that_was_recorded_knows_how_long_its_gpu_waits(busy_us: float, warned: bool) -> None:
    sides = of_run(STEADY, "eager", busy_us), of_run(scaled(1 / 1.142), "compiled", busy_us)
    assert [waits_for_host(side) for side in sides] == [warned, warned]
    comparison = compare(*sides, ORDER)
    assert comparison.verdict.result == "faster", "the verdict stays"
    assert any(each.code == "one_process_waits_for_host" for each in comparison.notes) == warned


def test_a_form_that_was_never_recorded_is_held_to_ten_percent() -> None:
    for factor, said in ((1.09, True), (1.142, False)):
        forms = (make_form("eager", STEADY), make_form("compiled", scaled(1 / factor)))
        notes = judge(*(TimedForm(form.name, form) for form in forms), ORDER)[1]
        assert (SMALL_CHANGE in notes) == said
        assert not any(each.code == "one_process_waits_for_host" for each in notes)


def test_of_a_verdict_that_is_withheld_nothing_is_said_of_processes() -> None:
    sides = of_run(STEADY, "eager", 200.0), of_run(scaled(1 / 1.142), "compiled", 200.0, during_timing=1)
    found, notes = judge(*sides, ORDER)
    assert found.result == "inconclusive"
    assert {each.code for each in notes} == {"compiled_while_timed"}
