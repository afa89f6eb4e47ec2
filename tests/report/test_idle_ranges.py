"""Causes of idle time of which ranges are known, on the first screen and in charts."""

import json
import math

import pytest
from msgspec.structs import replace
from tests.report.showing import comparison_markdown, comparison_page, terminal_text
from tests.sides import ORDER, make_analysis, make_form, make_pair, make_side, scaled

from tracekit.comparison.comparing import compare
from tracekit.comparison.looking import look_at
from tracekit.model.comparison import Comparison
from tracekit.model.idle_estimate import Between, IdleEstimate
from tracekit.report.accounts import ShownRow, shown_account
from tracekit.report.charts import cause_chart
from tracekit.report.composition.one_side import side_overview
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.composition.overview_account import NOT_TOLD_APART, OTHER
from tracekit.report.contract import analysis_json, comparison_json
from tracekit.report.document import Account, AccountRow
from tracekit.report.sections.headline import waterfall_note
from tracekit.report.sections.idle import UNEXPLAINED
from tracekit.report.words import short
from tracekit.report.words.common import with_letters

#: Milliseconds, and by how much they may be off.
Causes = dict[str, tuple[float, float]]


def between(ms: float, half_ms: float) -> Between:
    return Between(1e3 * ms, 1e3 * max(ms - half_ms, 0.0), 1e3 * (ms + half_ms))


def compared(a: Causes, b: Causes) -> Comparison:
    """Of calls of 20.0 and 10.0 ms, with 0.9 and 0.7 ms of GPU time."""
    sides = make_pair(scaled(20.0), scaled(10.0))
    estimates = (IdleEstimate({cause: between(*of) for cause, of in each.items()}) for each in (a, b))
    return compare(*(replace(s, idle_estimate=of) for s, of in zip(sides, estimates, strict=True)), ORDER)


def account_of(comparison: Comparison) -> Account:
    account = comparison_overview(comparison).account
    assert account is not None
    return account


def cause_rows(comparison: Comparison) -> dict[str, AccountRow]:
    rows = account_of(comparison).rows
    return {row.name: row for row in rows[next(at for at, row in enumerate(rows) if "GPU idle" in row.name) + 1 :]}


def shown(comparison: Comparison) -> dict[str, ShownRow]:
    return {row.name: row for row in shown_account(account_of(comparison)).rows}


def test_gpu_time_is_as_certain_as_two_traces_of_one_side_agree() -> None:
    comparison = compared({}, {})
    longer = make_analysis({"gemm": ("gemm", 2, 2 * (comparison.b.busy_us or 0.0) + 2 * 150.0)})
    told = replace(comparison, b=replace(comparison.b, rich=longer))
    before, row = account_of(comparison).rows[0], account_of(told).rows[0]
    assert (before.name, before.half_us, before.within_us) == (row.name, (), None)
    assert (*row.half_us, row.within_us) == pytest.approx((0.0, 150.0, 150.0, 150.0))
    assert shown(told)[row.name].figures[-1].startswith("±0.1")


A: Causes = {"python": (9.0, 0.4), "op_dispatch": (5.0, 1.0), "launch_call": (2.0, 0.5), "device": (1.52, 0.0)}
GAPS = "gaps between queued kernels"
B: Causes = {"python": (3.0, 0.3), "op_dispatch": (4.5, 1.2), "launch_call": (1.8, 0.5), "device": (0.52, 0.0)}


def test_causes_whose_change_may_be_none_are_one_row_without_what_all_are_too_much() -> None:
    comparison = compared(A, B)
    rows, excess = cause_rows(comparison), comparison.b.idle_residual_us
    assert list(rows) == ["Python", "gaps between queued kernels", NOT_TOLD_APART, UNEXPLAINED]
    assert excess == pytest.approx(-526.5)
    assert rows[NOT_TOLD_APART].us == pytest.approx((7000.0, 6300.0 + excess))
    assert rows[NOT_TOLD_APART].delta_us == pytest.approx(6300.0 + excess - 7000.0)
    # By what is taken off it is so much less certain.
    assert rows[NOT_TOLD_APART].within_us == pytest.approx(1000 + 1200 + 500 + 500 - excess)


def test_the_causes_and_what_they_do_not_explain_add_up_to_idle_time() -> None:
    comparison = compared(A, B)
    rows = cause_rows(comparison)
    for at, side in enumerate((comparison.a, comparison.b)):
        assert math.fsum(row.us[at] for row in rows.values()) == pytest.approx(side.unprofiled_idle_us)
    # What B's causes are too much is taken off those that are not told apart.
    assert rows[UNEXPLAINED].us == pytest.approx((comparison.a.idle_residual_us, 0.0))
    # Nobody says how much of it there is for certain, nor for whom it speaks.
    assert rows[UNEXPLAINED].within_us is None and rows[UNEXPLAINED].unjudged


def test_causes_that_explain_more_than_there_is_are_said_to() -> None:
    # Of those that are not told apart there are 1.7 ms to take until they are at their lows.
    comparison = compared(A, {**B, "python": (9.2, 0.1)})
    rows = cause_rows(comparison)
    assert rows[NOT_TOLD_APART].us[1] == pytest.approx(6300 - 1200 - 500)
    assert rows[UNEXPLAINED].us[1] == pytest.approx(comparison.b.idle_residual_us + 1700)
    row = next(each for each in shown_account(account_of(comparison)).rows if each.name == NOT_TOLD_APART)
    assert row.share == 0
    assert rows[UNEXPLAINED].what
    assert not cause_rows(compared(A, {**B, "python": (1.0, 0.1)}))[UNEXPLAINED].what


def test_the_largest_cause_of_a_side_has_a_row_though_its_change_may_be_none() -> None:
    rows = cause_rows(compared({**A, "python": (6.5, 0.4)}, {**B, "python": (6.2, 0.4)}))
    assert next(iter(rows)) == "Python"
    # Dispatch may be as much.
    rows = cause_rows(compared({**A, "python": (6.5, 0.6)}, {**B, "python": (6.2, 0.8)}))
    assert "Python" not in rows and NOT_TOLD_APART in rows


def test_at_most_four_rows_are_of_causes() -> None:
    causes = ("python", "op_dispatch", "compiled_wrapper", "launch_call", "guards", "gc")
    for number in (4, 5, 6):
        rows = cause_rows(compared({}, dict.fromkeys(causes[:number], (1.0, 0.01))))
        assert (len(rows), OTHER in rows, UNEXPLAINED in rows) == (5, number > 4, True)


def test_causes_of_the_gpu_are_no_host_work() -> None:
    of_gpu = {"device": (1.0, 0.9), "launch_latency": (0.9, 0.9)}
    rows = cause_rows(compared({"python": (9, 0.1), **of_gpu}, {"python": (3, 0.1), **of_gpu}))
    assert OTHER in rows and NOT_TOLD_APART not in rows


def test_figures_have_the_digits_that_their_ranges_support_one_below_the_other() -> None:
    rows, blank = shown(compared(A, B)), "\N{FIGURE SPACE}"
    assert rows["Python"].figures == (f"9.0{blank}", f"3.0{blank}", f"−6.0{blank}", f"±0.7{blank}")
    assert rows["gaps between queued kernels"].figures == ("1.52", "0.52", "−1.00", "")
    # A sum as its least certain part: of 1.0 and 0.5, of 1.2 and 0.5, and changes of 2.2 and 1.0.
    figures = (f"7{3 * blank}", f"6{3 * blank}", f"−1{3 * blank}", f"±4{3 * blank}")
    assert rows[NOT_TOLD_APART].figures == figures


def test_a_bound_that_is_wider_than_the_figures_is_not_shown_and_what_rounds_to_nothing_has_no_sign() -> None:
    wide = dict.fromkeys(("python", "op_dispatch", "launch_call"), (1.0, 0.7))
    row = shown(compared({**wide, "device": (9, 0.1)}, {**wide, "device": (2, 0.1)}))[NOT_TOLD_APART]
    assert [figure.strip() for figure in row.figures] == ["3.0", "3.0", "0", ""] and row.share == 0
    rest = shown(compared({"python": (19.14, 0.4)}, {"python": (3, 0.4)}))[UNEXPLAINED]
    assert rest.figures[0].strip() == "0.0"


def test_a_change_that_may_be_none_has_no_bar() -> None:
    rows = shown(compared(A, B))
    assert rows[NOT_TOLD_APART].share == 0 and rows["Python"].share < 0


def test_without_ranges_there_is_no_column_of_them() -> None:
    sides = make_pair(scaled(2.0), scaled(1.0))
    account = shown_account(account_of(compare(*sides, ORDER)))
    assert account.heads == ("eager", "compiled", "change")
    assert {len(row.figures) for row in account.rows} == {3}
    assert shown_account(account_of(compared(A, B))).heads[-1] == "±"


@pytest.mark.parametrize("width", [80, 100])
def test_decimal_points_stand_below_each_other_in_the_terminal(width: int) -> None:
    told = terminal_text(compared(A, B), width=width)
    lines = told.splitlines()
    at = next(at for at, line in enumerate(lines) if "GPU idle by cause" in line)
    # Those of eager, compiled and the change, after that of `(est.)`.
    whole, *causes = ([at for at, each in enumerate(line) if each == "."] for line in lines[at : at + 3])
    assert len(whole) == 4 and all(points[:3] == whole[1:] for points in causes)


def test_ranges_are_in_the_page_the_twin_the_json_and_in_all_of_the_terminal() -> None:
    comparison = compared(A, B)
    span = "(2.7\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}3.3)"
    for text in (comparison_page(comparison), comparison_markdown(comparison)):
        assert span in text and "±0.7" in text
    assert "2.7" not in terminal_text(comparison)
    assert span in terminal_text(comparison, "all", 140)
    told = json.loads(comparison_json(comparison))["b"]["per_step"]
    assert told["unprofiled_idle_by_cause_range_us"]["python"] == pytest.approx([2700, 3300])
    assert told["unprofiled_idle_residual_us"] == pytest.approx(comparison.b.idle_residual_us)


def test_one_side_has_its_largest_causes_and_what_they_do_not_explain() -> None:
    causes = {cause: between(*of) for cause, of in A.items()}
    side = make_side("one", form=make_form(wall_us=scaled(20.0)), idle_estimate=IdleEstimate(causes))
    account = side_overview(look_at(side)).account
    assert account is not None
    rows = {row.name: row for row in shown_account(account).rows}
    assert list(rows)[-5:] == ["Python", "operator dispatch", "launch calls", GAPS, UNEXPLAINED]
    assert [rows[name].figures[0].strip() for name in ("Python", "operator dispatch", GAPS)] == ["9.0", "5", "1.52"]
    idle = [row.us[0] for row in account.rows if row.name in list(rows)[-5:]]
    assert math.fsum(idle) == pytest.approx(side.unprofiled_idle_us)


def test_one_trace_alone_has_its_causes_as_recorded_and_their_ranges_in_the_json() -> None:
    side = make_side("one", recorded_idle_estimate=IdleEstimate({"op_dispatch": Between(300.0, 80.0, 300.0)}))
    account = side_overview(look_at(side)).account
    assert account is not None
    (row,) = (row for row in shown_account(account).rows if row.name == "operator dispatch")
    assert row.figures[0] == "0.300"
    told = json.loads(analysis_json(look_at(side)))["per_step"]
    assert told["recorded_idle_by_cause_range_us"] == {"op_dispatch": [80.0, 300.0]}
    chart = cause_chart(with_letters(side))
    assert chart is not None
    (bar,) = (row.bars[0] for row in chart.rows if row.label == "operator dispatch")
    assert bar.reach == pytest.approx((0.08, 0.3))


def test_bars_of_causes_end_in_their_ranges() -> None:
    comparison = compared(A, B)
    chart = cause_chart(with_letters(comparison.a, comparison.b))
    assert chart is not None
    (bar,) = (row.bars[0] for row in chart.rows if row.label == "Python")
    assert (bar.end, *bar.reach) == pytest.approx((9, 8.6, 9.4))
    exact = cause_chart(with_letters(*make_pair(scaled(2.0), scaled(1.0))))
    assert exact is not None and all(bar.reach is None for bar in exact.bars)


def test_bars_of_two_lengths_have_two_labels() -> None:
    comparison = compared({"python": (1.6, 1.0), "op_dispatch": (2.4, 1.0)}, {"python": (1.6, 1.0)})
    chart = cause_chart(with_letters(comparison.a, comparison.b))
    assert chart is not None
    texts = {row.label: [bar.text for bar in row.bars] for row in chart.rows}
    assert (texts["Python"], texts["operator dispatch"][0]) == (["1.6", "1.6"], "2.4")


def test_the_waterfall_says_what_the_residual_holds_of_each_side() -> None:
    note = waterfall_note(compared(A, B))
    assert "scaled alike" not in note and "Causes do not explain 1.62 ms of A's and −526.5 µs of B's idle time" in note


def test_a_reason_is_given_only_where_a_cause_became_more_for_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short, "slower_cause", lambda cause, comparison: cause)
    for half_ms, what in ((0.4, "python"), (0.6, "")):
        row = cause_rows(compared({"python": (6.0, half_ms)}, {"python": (7.0, half_ms)}))["Python"]
        assert row.what == what
