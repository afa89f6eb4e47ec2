"""The operators' table of two CPU runs adds up to the unprofiled call, as the verdict has it."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.sides import make_cpu_analysis, make_form, make_side, scaled

from tracekit.model.analysis import OperatorTime, StepUse, Window
from tracekit.model.comparison import Side
from tracekit.report.composition.overview_account import MOST_OPERATORS, operator_table
from tracekit.report.document import Table
from tracekit.report.words.common import with_letters


def side(label: Any, ms: float, span_us: float = 40_000.0, **changes: Any) -> Side:
    """Of two profiled steps; `ms` is the unprofiled call."""
    analysis = make_cpu_analysis(fused=12 if label == "compiled" else 0)
    cpu = replace(analysis.cpu, **changes)
    analysis = replace(analysis, cpu=cpu, window=Window("steps", 2, span_us))
    return make_side(label, analysis, make_form(label, scaled(ms)))


def table(a: Side, b: Side) -> Table:
    found = operator_table(with_letters(a, b))
    assert found is not None
    return found


def figures(found: Table) -> dict[str, list[float]]:
    """The figures of each row, with a change of its own."""
    cells = ((str(name), [str(each) for each in rest]) for name, *rest in found.rows)
    return {
        name: [0.0 if each == "\N{EM DASH}" else float(each.replace("\N{MINUS SIGN}", "-")) for each in rest]
        for name, rest in cells
    }


def check_sums(told: dict[str, list[float]], within: float) -> None:
    inner = [us for name, us in told.items() if name.startswith("  ")]
    outer = [us for name, us in told.items() if not name.startswith("  ") and name != "call"]
    for whole, parts in ((told["call"], outer), (told["operators"], inner)):
        assert [sum(each) for each in zip(*parts, strict=True)] == pytest.approx(whole, abs=within)


def test_rows_add_up_to_the_unprofiled_call_and_show_no_change_where_there_is_none() -> None:
    """Profiled, compiled took twice as long; by the verdict the two are one."""
    many = tuple(OperatorTime(f"aten::op{n}", 2, 8_000.0 - 100 * n) for n in range(MOST_OPERATORS + 2))
    operator_us = sum(each.self_us for each in many)
    a = side("eager", 20.0, 80_000.0, top=many, operator_us=operator_us)
    compiled = {"operator_us": 2 * operator_us, "compiled_wrapper_us": 9_000.0}
    b = side(
        "compiled", 20.0, 160_000.0, top=tuple(replace(each, self_us=2 * each.self_us) for each in many), **compiled
    )
    found = table(a, b)
    told = figures(found)
    assert told["call"] == pytest.approx([20.0, 20.0, 0.0], abs=0.01)
    assert told["operators"][2] == told["  aten::op0"][2] == 0.0
    assert len([name for name in told if name.startswith("  aten::")]) == MOST_OPERATORS
    check_sums(told, 0.06)
    assert "2.00" in found.note and "4.00" in found.note


def test_an_operator_of_one_side_alone_changes_by_all_of_its_time() -> None:
    gone = (OperatorTime("aten::gelu", 4, 10_000.0), OperatorTime("aten::mm", 40, 20_000.0))
    told = figures(table(side("eager", 20.0, top=gone), side("compiled", 20.0)))
    assert told["  aten::gelu"] == [5.0, 0.0, -5.0]
    check_sums(told, 0.03)


def test_operators_of_several_threads_may_take_longer_than_the_call() -> None:
    told = figures(table(side("eager", 20.0, operator_us=60_000.0), side("compiled", 20.0)))
    assert told["outside operators, less overlap"][0] == -10.0
    check_sums(told, 0.03)


def test_traces_that_nothing_was_timed_beside_are_told_as_recorded() -> None:
    a, b = (replace(each, form=None) for each in (side("eager", 10.0), side("compiled", 10.0)))
    found = table(a, b)
    assert figures(found)["call"][:2] == [20.0, 20.0]
    assert "profiler" in found.note


def test_c_kernels_that_record_nothing_are_said_to_be_in_the_wrapper() -> None:
    told = figures(table(side("eager", 20.0), side("compiled", 20.0, fused_us=None, fused_count=None)))
    assert "compiled wrapper, C++ kernels" in told


def test_a_gpu_has_no_such_table() -> None:
    assert operator_table(with_letters(make_side("a"), make_side("b"))) is None


def test_steps_that_differ_far_are_told_for_rows_are_means() -> None:
    a, b = side("eager", 20.0), side("compiled", 20.0)
    for longest, told in ((29_000.0, ""), (60_000.0, "Steps of compiled took 20.0 ms to 60.0 ms: rows are means")):
        steps = tuple(StepUse(at, us, None, None, None, None) for at, us in enumerate((20_000.0, longest)))
        found = table(a, replace(b, analysis=replace(b.analysis, steps=steps)))
        assert found.note is not None and ("Steps of" in found.note) is bool(told) and told in found.note
