"""What is drawn adds up to what it is drawn of, and no two bars go by one name."""

import gzip
import json
import math
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs_version
from tests.report.showing import written
from tests.traces import RUNS

from tracekit.model.comparison import Comparison
from tracekit.model.groups import ModuleTime
from tracekit.report.charts import (
    MOST_LEVELS,
    call_chart,
    comparison_charts,
    module_chart,
    waterfall_bars,
    waterfall_chart,
)
from tracekit.report.document import Chart, Overview, Report, standing_section
from tracekit.report.drawing import COLOUR, figures_of, light_scheme, told_apart
from tracekit.report.markdown import BAR, bars
from tracekit.report.page import PLOTLY, page_of
from tracekit.report.sections.call import call_time
from tracekit.report.sections.headline import waterfall_changes

from ..browser import opened
from .conftest import bare_comparison, cpu_comparison, timed_comparison


@pytest.fixture(scope="module", params=RUNS, ids=lambda folder: folder.name)
def recorded(request: pytest.FixtureRequest, compared: Callable[[Path], Comparison]) -> Comparison:
    return compared(request.param)


def figure(chart: Chart | None) -> dict:
    assert chart is not None
    return chart.figure.to_dict()


def test_what_a_call_consists_of_is_the_unprofiled_call(recorded):
    for side in (recorded.a, recorded.b):
        call = call_time(side, "unprofiled")
        assert math.isclose(math.fsum((call.matrix_us, call.other_us, call.idle_us)), side.wall_us, rel_tol=1e-9)
        assert call.idle_us == side.unprofiled_idle_us
        assert min(call.matrix_us, call.other_us, call.idle_us) >= 0
    drawn = figure(call_chart(recorded))["data"]
    for at, side in enumerate((recorded.a, recorded.b)):
        # The axis has one unit, whichever it is.
        scale = side.wall_us / math.fsum(bar["x"][at] for bar in drawn)
        assert any(math.isclose(scale, unit, rel_tol=1e-9) for unit in (1.0, 1e3, 1e6))


def test_a_waterfall_begins_at_zero_and_ends_at_the_change(recorded):
    waterfall, changes = recorded.waterfall, waterfall_changes(recorded)
    change = waterfall.b_us - waterfall.a_us
    assert math.isclose(math.fsum(us for _, us in changes), change, rel_tol=1e-9)
    told = figure(waterfall_chart(recorded))
    (falls,) = told["data"]
    assert math.isclose(math.fsum(falls["x"][:-1]), falls["x"][-1], rel_tol=1e-9)
    low, high = told["layout"]["xaxis"]["range"]
    assert low < 0 < high
    assert len(changes) < len(waterfall.parts) + 1
    assert len(told["layout"]["annotations"]) == len(changes) + 1


def test_no_two_bars_have_one_label(recorded):
    for chart in filter(None, comparison_charts(recorded)):
        labels = figure(chart)["layout"]["yaxis"].get("ticktext", [])
        assert len(set(labels)) == len(labels), chart.id


def every(module: ModuleTime) -> Iterator[ModuleTime]:
    yield module
    for child in module.children:
        yield from every(child)


def test_modules_stand_below_those_that_hold_them(recorded):
    told = figure(module_chart(recorded))
    cells = [
        (level, start, start + width)
        for bar in told["data"]
        for level, start, width in zip(bar["y"], bar["base"], bar["x"], strict=True)
    ]
    assert {level for level, _, _ in cells} == {*range(max(level for level, _, _ in cells) + 1)}
    assert 3 < len(cells) <= len(list(every(recorded.modules))) and max(cells)[0] < MOST_LEVELS
    for level, start, end in cells:
        held = [(low, high) for above, low, high in cells if above == level - 1]
        assert level == 0 or any(low - 1e-9 <= start and end <= high + 1e-9 for low, high in held)
        beside = [(low, high) for same, low, high in cells if same == level and (low, high) != (start, end)]
        assert not any(low < end - 1e-9 and start < high - 1e-9 for low, high in beside)


#: What the page's plotly took otherwise than it was given: it leaves out what it does not know.
NOT_UNDERSTOOD = """() => {
  const lost = (given, taken, at) => given && typeof given === "object" && !Array.isArray(given)
    ? Object.entries(given).flatMap(([name, each]) => lost(each, taken?.[name], `${at}.${name}`))
    : JSON.stringify(given) === JSON.stringify(taken) ? [] : [at];
  const drawn = [...document.querySelectorAll(".js-plotly-plot")];
  return drawn.flatMap((each) => each.data.flatMap((given, at) => lost(given, each._fullData[at], `${each.id} ${at}`)));
}"""


@pytest.mark.browser
def test_the_plotly_of_the_page_understands_every_chart(tmp_path, recorded):
    charts = [*filter(None, comparison_charts(recorded))]
    page = page_of(Report("charts", Overview("", "charts"), (standing_section("charts", "Charts", *charts),)))
    # Plotly's own template would be as long as all of them.
    assert sum(len(json.dumps(each.figure.to_dict())) for each in charts) < 60_000
    with opened(written(tmp_path, page), width=390) as visited:
        assert visited.page.locator("figure > .js-plotly-plot").count() == len(charts) == 7
        assert visited.page.evaluate(NOT_UNDERSTOOD) == []
        assert (visited.complaints, visited.requests) == ([], [])
        assert visited.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_plotly_of_the_page_is_that_of_the_package():
    begin = gzip.decompress((resources.files("tracekit.report") / "assets" / PLOTLY).read_bytes())[:200].decode()
    assert f" v{get_plotlyjs_version().partition('.')[0]}." in begin


def test_figures_have_colours_of_their_own_and_no_template(recorded):
    charts = list(filter(None, comparison_charts(recorded)))
    for chart in charts:
        named = set(COLOUR.findall(json.dumps(chart.figure.to_dict())))
        assert named and named <= light_scheme().keys()
        assert "template" not in chart.figure.to_dict()["layout"]
    for id_, made in figures_of(charts).items():
        assert not COLOUR.search(json.dumps(made.to_dict())), id_
        assert made.layout.title.text and made.layout.height


def test_bars_of_characters_begin_at_one_zero_line():
    lines = bars((("fused", "−2 ms", -2.0), ("lost", "+1 ms", 1.0), ("same", "0", 0.0))).splitlines()
    assert len({line.index("│") for line in lines}) == 1
    assert [line.count("█") for line in lines] == [BAR, BAR // 2, 0]
    found = waterfall_bars(timed_comparison())
    assert [label for label, _, _ in found.rows] == [label for label, _ in waterfall_changes(timed_comparison())]


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
