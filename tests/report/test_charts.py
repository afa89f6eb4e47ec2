"""What is drawn adds up to what it is drawn of, and no two bars go by one name."""

import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.report.showing import written
from tests.traces import RUNS

from tracekit.model.comparison import Comparison
from tracekit.model.groups import ModuleTime
from tracekit.report.charts import MOST_LEVELS, call_chart, comparison_charts, module_chart, waterfall_chart
from tracekit.report.document import Overview, Report, standing_section
from tracekit.report.markdown import CHART_BAR, bars
from tracekit.report.page import page_of
from tracekit.report.plotly_figures import figure_of, figures_of, light_scheme, told_apart
from tracekit.report.sections.call import call_time
from tracekit.report.sections.headline import waterfall_changes

from ..browser import opened
from .conftest import bare_comparison, cpu_comparison, timed_comparison


@pytest.fixture(scope="module", params=RUNS, ids=lambda folder: folder.name)
def recorded(request: pytest.FixtureRequest, compared: Callable[[Path], Comparison]) -> Comparison:
    return compared(request.param)


def test_what_a_call_consists_of_is_the_unprofiled_call(recorded):
    for side in (recorded.a, recorded.b):
        call = call_time(side, "unprofiled")
        assert math.isclose(math.fsum(call.parts_us.values()), side.wall_us, rel_tol=1e-9)
        assert call.parts_us["idle"] == side.unprofiled_idle_us
        assert min(call.parts_us.values()) >= 0
    for row, side in zip(call_chart(recorded).rows, (recorded.a, recorded.b), strict=True):
        # The axis has one unit, whichever it is.
        scale = side.wall_us / row.bars[-1].end
        assert all(before.end == bar.start for before, bar in itertools.pairwise(row.bars))
        assert any(math.isclose(scale, unit, rel_tol=1e-9) for unit in (1.0, 1e3, 1e6))


def test_a_waterfall_begins_at_zero_and_ends_at_the_change(recorded):
    waterfall, changes = recorded.waterfall, waterfall_changes(recorded)
    change = waterfall.b_us - waterfall.a_us
    assert math.isclose(math.fsum(us for _, us in changes), change, rel_tol=1e-9)
    *falls, whole = waterfall_chart(recorded).bars
    assert len(falls) == len(changes) < len(waterfall.parts) + 1
    assert (whole.start, whole.end) == (0.0, falls[-1].end) and whole.colour == "total"
    assert all(before.end == bar.start for before, bar in itertools.pairwise(falls))
    assert {bar.colour for bar in falls} == {"gain", "loss"}
    assert all((bar.end > bar.start) == (bar.colour == "loss") for bar in falls if bar.end != bar.start)


def test_no_two_bars_have_one_label(recorded):
    for chart in filter(None, comparison_charts(recorded)):
        labels = figure_of(chart).layout.yaxis.ticktext
        assert chart.id == "modules" or len(set(labels)) == len(labels) == len(chart.rows), chart.id


def every(module: ModuleTime) -> Iterator[ModuleTime]:
    yield module
    for child in module.children:
        yield from every(child)


def test_modules_stand_below_those_that_hold_them(recorded):
    cells = [(at, bar.start, bar.end) for at, row in enumerate(module_chart(recorded).rows) for bar in row.bars]
    assert {level for level, _, _ in cells} == {*range(max(level for level, _, _ in cells) + 1)}
    assert 3 < len(cells) <= len(list(every(recorded.modules))) and max(cells)[0] < MOST_LEVELS
    for level, start, end in cells:
        held = [(low, high) for above, low, high in cells if above == level - 1]
        assert level == 0 or any(low - 1e-9 <= start and end <= high + 1e-9 for low, high in held)
        beside = [(low, high) for same, low, high in cells if same == level and (low, high) != (start, end)]
        assert not any(low < end - 1e-9 and start < high - 1e-9 for low, high in beside)


@pytest.mark.browser
def test_a_page_draws_every_chart_within_its_width(tmp_path, recorded):
    charts = [*filter(None, comparison_charts(recorded))]
    page = page_of(Report("charts", Overview("", "charts"), (standing_section("charts", "Charts", *charts),)))
    with opened(written(tmp_path, page), width=390) as visited:
        drawn = visited.page.locator("figure.chart .bar").count()
        assert drawn == sum(len(chart.bars) for chart in charts)
        assert (visited.complaints, visited.requests) == ([], [])
        assert visited.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_figures_hold_every_bar_in_colours_of_their_own_and_no_template(recorded):
    charts = list(filter(None, comparison_charts(recorded)))
    figures = figures_of(charts)
    for chart in charts:
        figure = figures[chart.id]
        assert {bar.colour for bar in chart.bars} <= light_scheme().keys()
        assert "var(" not in json.dumps(figure.to_dict()) and figure.layout.title.text and figure.layout.height
        assert "template" not in figure.to_dict()["layout"]
        ends = sorted(start + length for bars in figure.data for start, length in zip(bars.base, bars.x, strict=True))
        assert ends == pytest.approx(sorted(max(bar.start, bar.end) for bar in chart.bars))
        assert {bars.name for bars in figure.data} >= {bar.kind for bar in chart.legend}
        # The first bar of a row on top, all of them within it.
        places = [place for bars in figure.data for place in bars.y]
        assert max(abs(place - round(place)) for place in places) < 0.5 and max(places) < len(chart.rows)
        for one, other in itertools.pairwise(figure.data) if chart.id == "family-times" else ():
            assert all(a < b for a, b in zip(one.y, other.y, strict=True))


def test_bars_of_characters_begin_at_one_zero_line():
    lines = bars((("fused", "−2 ms", -2.0), ("lost", "+1 ms", 1.0), ("same", "0", 0.0))).splitlines()
    assert len({line.index("│") for line in lines}) == 1
    assert [line.count("█") for line in lines] == [CHART_BAR, CHART_BAR // 2, 0]


def test_labels_that_begin_alike_are_told_apart_by_their_ends():
    long = "GPU: x72: 6 kernels -> 1 Triton (mul, add, layer_norm), transformer.blocks."
    one, other, again = told_apart([f"{long}norm1", f"{long}norm2", f"{long}norm1"])
    assert one.endswith("norm1") and other.endswith("norm2") and again.endswith("(2)")
    assert told_apart(["<b>"]) == ["&lt;b&gt;"]


def test_without_a_scale_that_both_sides_have_no_call_is_drawn():
    assert call_chart(cpu_comparison()) is None and waterfall_chart(cpu_comparison()) is None
    assert module_chart(timed_comparison()) is None
    # Bare traces have their own times alone, and the title says so.
    assert call_chart(bare_comparison()).title.endswith("(with profiler)")
