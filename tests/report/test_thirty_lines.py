import math
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.committed import ROOT, RUNS, SWEEP
from tests.report.showing import printed

from tracekit.cli.sweep_report import load_sweep
from tracekit.comparison.comparing import look_at
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.model.comparison import Comparison
from tracekit.report.composition.detail import analysis_text, comparison_text, comparisons_text, sweep_text
from tracekit.report.composition.overview import comparison_overview
from tracekit.walks.pairs import load_comparisons
from tracekit.walks.reading import Reading

PAGE, OPEN = Path("reports/page.html"), "tracekit open traces/run"
WIDTHS = (100, 80)


def lines(text: str, width: int = 100, most: int = 30) -> list[str]:
    """Those that are shown: so many at most, none of them wider than the terminal."""
    found = text.splitlines()
    assert len(found) <= most, text
    assert max(map(len, found)) <= width, text
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_told_in_thirty_lines_that_end_with_where_its_report_is(
    name: Path, compared: Callable[[Path], Comparison]
) -> None:
    comparison = compared(name)
    told = lines(printed(comparison_text(comparison, PAGE, OPEN), 100))
    assert (told[0].count("·") > 2, str(PAGE) in told[-1] or str(PAGE) in told[-2]) == (True, True)
    lines(printed(comparison_text(comparison, PAGE, OPEN, width=80), 80), 80, 38)
    assert len(lines(printed(comparison_text(comparison, PAGE, OPEN, "verdict"), 100))) == 3
    assert len(printed(comparison_text(comparison, PAGE, OPEN, "all"), 100).splitlines()) > 60
    gated = check(comparison, parse_conditions("wall<=+3%"))
    assert gated.outcome
    for side in (comparison.a, comparison.b):
        lines(printed(analysis_text(look_at(side), PAGE), 100))


@pytest.mark.parametrize("name", RUNS)
def test_what_a_call_consists_of_adds_up_to_it(name: Path, compared: Callable[[Path], Comparison]) -> None:
    comparison = compared(name)
    overview, waterfall = comparison_overview(comparison), comparison.waterfall
    assert overview.account is not None and waterfall is not None
    wholes = [row for row in overview.account.rows if row.level == 0]
    change = math.fsum(row.delta_us or 0.0 for row in wholes)
    hidden = 0.0 if any(row.name == "not attributed" for row in wholes) else waterfall.residual_us
    assert math.isclose(change + hidden, waterfall.b_us - waterfall.a_us, rel_tol=1e-9, abs_tol=1e-6)
    for at, us in enumerate((waterfall.a_us, waterfall.b_us)):
        assert math.isclose(math.fsum(row.us[at] or 0.0 for row in wholes), us, rel_tol=1e-9)
    at = overview.account.rows.index(wholes[1])
    modules = overview.account.rows[1:at]
    by_module = math.fsum(row.delta_us or 0.0 for row in modules)
    assert math.isclose(by_module, wholes[0].delta_us or 0.0, rel_tol=1e-9, abs_tol=1e-6)


def test_several_runs_and_a_sweep_are_told_in_thirty_lines() -> None:
    places = tuple(str(ROOT / name) for name in RUNS if "vit" in name.name)
    several = comparisons_text(load_comparisons(places, Reading(shapes=True)), PAGE, "tracekit compare traces/run")
    sweep = sweep_text(load_sweep(ROOT / SWEEP, 1000), PAGE)
    for text in (several, sweep):
        lines(printed(text, 100))
