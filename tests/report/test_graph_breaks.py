"""Graph breaks that cost much stand where a reader looks first: terminal, page and twin, of a GPU and of a CPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.report.showing import comparison_markdown, comparison_page, terminal_text, text_of
from tests.sides import COMPILED, EAGER, ORDER, make_analysis, make_cpu_analysis, make_form, make_settings, make_side
from tests.sides import scaled as calls
from tests.traces import RUNS

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.comparison.looking import look_at
from tracekit.model.comparison import Comparison
from tracekit.model.compilation import Diagnostics, GraphBreak
from tracekit.model.idle_estimate import Between, IdleEstimate
from tracekit.report.composition.one_side import side_overview
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.document import Line, Overview
from tracekit.report.thirty_lines import every_line

BREAK = GraphBreak("models/vit.py:20", "forward", "Skip calling", None, None, None, ("0/0",), 700.0, None, 600.0)
OTHER = replace(BREAK, where="models/vit.py:30", per_step_us=650.0, idle_per_step_us=90.0)
HIDDEN = replace(BREAK, idle_per_step_us=20.0)


def comparison(*breaks: GraphBreak, on_gpu: bool = True, python_us: float = 800.0) -> Comparison:
    """Of a call of 2 ms, in which the GPU is idle for 1.3 ms."""
    analyses: Any = [make_analysis(kernels, idle_us=4000.0) for kernels in (EAGER, COMPILED)]
    if not on_gpu:
        analyses = [make_cpu_analysis()] * 2
    causes = {cause: Between(us, us, us) for cause, us in (("python", python_us), ("launch_call", 1291.5 - python_us))}
    b = make_side("compiled", analyses[1], make_form("compiled", calls(2), diagnostics=Diagnostics(breaks=breaks)))
    b = replace(b, idle_estimate=IdleEstimate(causes)) if on_gpu else replace(b, settings=make_settings(device="cpu"))
    return compare(make_side("eager", analyses[0], make_form("eager", calls(2.2))), b, ORDER)


def first_screens(found: Comparison) -> list[str]:
    """The thirty lines, the page's first screen and the twin before its first heading below the title."""
    lines = terminal_text(found)
    assert len(lines.splitlines()) <= 30, lines
    page, twin = comparison_page(found), comparison_markdown(found)
    return [" ".join(lines.split()), text_of(page[: page.index("</header>")]), twin[: twin.index("\n## ")]]


@pytest.mark.parametrize(("on_gpu", "cost"), [(True, "600.0 µs"), (False, "700.0 µs")])
def test_the_costliest_break_is_on_every_first_screen_with_its_line_its_cost_and_how_many_more(on_gpu: bool, cost: str):
    breaks = (OTHER, BREAK) if on_gpu else tuple(replace(each, idle_per_step_us=None) for each in (OTHER, BREAK))
    for screen in first_screens(comparison(*breaks, on_gpu=on_gpu)):
        assert screen.count("models/vit.py:20") == 1
        assert all(words in screen for words in (cost, "+1 more", "Skip calling"))
        assert "models/vit.py:30" not in screen


@pytest.mark.parametrize("name", RUNS)
def test_it_is_among_the_thirty_lines_however_many_others_there_are(
    name: Path, compared: Callable[[Path], Comparison]
) -> None:
    found = next(each for each in comparison(OTHER, BREAK).findings if each.code == "broken_graphs")
    first, *others = found.statement.longest
    first = replace(first, reason="Skip calling `torch.compiler.disable()`d function " * 9)
    found = replace(found, statement=found.statement.but(longest=(first, *others)))
    run = compared(name)
    run = replace(run, findings=(found, *run.findings), gate=check(run, parse_conditions("wall<=+3%")))
    for width, most in ((100, 30), (80, 38)):
        lines = terminal_text(run, width=width).splitlines()
        assert len(lines) <= most
        assert any("models/vit.py:20" in line for line in lines)


def test_where_a_line_is_all_there_is_a_break_is_told_in_fewer_words_and_none_is_cut() -> None:
    far = replace(BREAK, where="torch/nn/utils/clip_grad.py:109", called_from=BREAK.where)
    whole, line, place = comparison_overview(comparison(far, OTHER)).graph_breaks
    assert whole == f"{line} (Skip calling)"
    assert (far.line or "") in line and far.line not in place and "clip_grad.py:109" in place
    overview = Overview("", "", graph_breaks=(whole, line, place))
    for width, told in ((len(whole), whole), (len(line), line), (len(place), place), (40, place)):
        assert Line(told) in every_line(overview, None, width, dense=True)
        assert Line(whole) in every_line(overview, None, width)


def test_a_break_that_queued_work_hides_or_that_costs_little_is_not_there():
    for few in (comparison(HIDDEN), comparison()):
        assert comparison_overview(few).graph_breaks == ()
        assert not any("vit.py" in screen for screen in first_screens(few))
    # A fiftieth of 2 ms.
    assert comparison_overview(comparison(replace(BREAK, idle_per_step_us=41.0))).graph_breaks


def test_one_side_by_itself_tells_its_break_too():
    assert "models/vit.py:20" in side_overview(look_at(comparison(BREAK).b)).graph_breaks[0]


@pytest.mark.parametrize(("python_us", "is_there"), [(800.0, True), (1250.0, False), (150.0, False)])
def test_idle_time_that_is_pythons_names_the_break_where_most_of_it_lies(python_us: float, is_there: bool):
    overview = comparison_overview(comparison(BREAK, python_us=python_us))
    assert overview.account is not None
    (row,) = (row for row in overview.account.rows if row.name == "Python")
    assert ("vit.py:20" in row.what) is is_there


def test_removing_the_break_is_advised_before_graphs_with_what_it_saves_at_most():
    first, *others = comparison_overview(comparison(BREAK)).advice
    assert ("vit.py:20" in first.what, "0.600 of 2.001 ms" in first.gain) == (True, True)
    # The command that names the break removes none.
    assert first.command == ""
    assert not any("reduce-overhead" in each.what for each in others)
    assert not any("vit.py" in each.what for each in comparison_overview(comparison(HIDDEN)).advice)
