"""How communication is shown: apart from compute, as neither gain nor loss, and with all sums closed."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report.showing import terminal_text
from tests.sides import make_side
from tests.traces import DATA

from tracekit.comparison.comparing import compare
from tracekit.comparison.looking import look_at
from tracekit.model.comparison import Comparison, Side
from tracekit.numbers import MISSING, duration
from tracekit.reading.sides import load_side
from tracekit.reading.traces import Reading
from tracekit.report.accounts import shown_account
from tracekit.report.charts import call_chart, waterfall_chart
from tracekit.report.composition.one_side import side_overview
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.document import Account
from tracekit.report.sections.call import call_time
from tracekit.report.sections.figures import comparison_figures


@pytest.fixture(scope="module")
def ranks() -> tuple[Side, Side]:
    files = (DATA / "ranks" / f"tp_reduce-overhead.rank{number}.json.gz" for number in (0, 1))
    one, other = (load_side(Path(file), reading=Reading(shapes=True)) for file in files)
    return one, other


@pytest.fixture(scope="module")
def between(ranks: tuple[Side, Side]) -> Comparison:
    return compare(*ranks)


def wholes(account: Account, side: int) -> list[float]:
    """The parts of a call, each after what it is made of was held against it."""
    found: list[list[float]] = []
    *parts, total = account.rows
    for row in parts:
        us = row.us[side]
        if row.level == 0:
            found.append([us])
        elif us is not None:
            found[-1].append(us)
    assert all(len(some) == 1 or math.isclose(math.fsum(some[1:]), some[0]) for some in found)
    # No headline of recordings has it.
    assert total.sums and math.isclose(math.fsum(some[0] for some in found), total.us[side])
    return [some[0] for some in found]


def test_figures_have_what_communication_kernels_take_and_none_of_a_side_without(
    ranks: tuple[Side, Side],
) -> None:
    one, _ = ranks
    table = comparison_figures(compare(one, make_side("other")))
    (row,) = (row for row in table.rows if row[0] == "Communication kernels, added up")
    assert one.analysis.communication is not None
    assert row[1:3] == (duration(one.analysis.communication.total_us / one.steps), MISSING)


def test_a_rank_s_account_is_compute_exposed_communication_and_idle_time(ranks: tuple[Side, Side]) -> None:
    for side in ranks:
        account = side_overview(look_at(side)).account
        told = wholes(account, 0)
        assert told == pytest.approx([side.compute_us, side.exposed_us, side.recorded_idle_us])
        assert math.fsum(told) == pytest.approx(side.span_us)
        assert "communication" not in {row.name for row in account.rows}


def test_the_account_of_two_ranks_closes_and_does_not_judge_communication(between: Comparison) -> None:
    account = comparison_overview(between).account
    for at, side in enumerate((between.a, between.b)):
        assert wholes(account, at) == pytest.approx([side.compute_us, side.exposed_us, side.recorded_idle_us])
    (row,) = (row for row in account.rows if row.unjudged)
    assert row.delta_us == pytest.approx(between.b.exposed_us - between.a.exposed_us)
    assert [each.unjudged for each in shown_account(account).rows].count(True) == 1


def test_a_call_s_bars_have_communication_where_there_is_any(between: Comparison) -> None:
    for bar, side in zip(comparison_overview(between).bars, (between.a, between.b), strict=True):
        assert dict(bar.segments)["communication"] == pytest.approx(side.exposed_us)
        assert math.fsum(us for _, us in bar.segments) == pytest.approx(bar.total_us)
        assert call_time(side, "trace").parts_us["communication"] == pytest.approx(side.exposed_us)
    without = compare(make_side("a"), make_side("b"))
    assert {kind for bar in comparison_overview(without).bars for kind, _ in bar.segments} == {
        "library",
        "other",
        "idle",
    }
    drawn = [len(call_chart(each).legend) for each in (between, without)]
    assert drawn == [4, 3]


def test_the_waterfall_draws_communication_as_neither_gain_nor_loss(between: Comparison) -> None:
    bars = waterfall_chart(between).bars
    (at,) = (at for at, bar in enumerate(bars) if bar.colour == "kind-communication")
    # It begins where the bars above it end.
    assert bars[at].start == pytest.approx(math.fsum(bar.end - bar.start for bar in bars[:at]))


def lines(between: Comparison, ranks: tuple[Side, Side]) -> Iterator[str]:
    yield terminal_text(between)
    yield from (terminal_text(look_at(side)) for side in ranks)


def test_the_command_for_all_ranks_stands_below_the_headline(between: Comparison, ranks: tuple[Side, Side]) -> None:
    for text in lines(between, ranks):
        told = text.splitlines()
        assert len(told) <= 30
        assert any("tracekit ranks" in line for line in told[:6])
