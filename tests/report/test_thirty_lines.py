import itertools
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.report.conftest import three_times_matched
from tests.report.showing import PAGE, printed, terminal_text
from tests.sides import (
    COMPILED,
    ORDER,
    STEADY,
    make_analysis,
    make_cpu_analysis,
    make_form,
    make_pair,
    make_side,
    scaled,
)
from tests.traces import ROOT, RUNS

from tracekit import store
from tracekit.cli.profile import profile
from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.comparison.looking import look_at
from tracekit.model.comparison import Comparison
from tracekit.numbers import MISSING, duration
from tracekit.reading.pairs import load_comparisons
from tracekit.reading.reports import command_to_repeat
from tracekit.reading.traces import Reading
from tracekit.report.accounts import advised, shown_account
from tracekit.report.composition.one_side import side_overview
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.composition.overview_account import LESS_THAN_NONE
from tracekit.report.document import Overview, Table, columns
from tracekit.report.sections.idle import UNEXPLAINED
from tracekit.report.thirty_lines import overview_lines
from tracekit.shell import split_variables


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
    told = lines(terminal_text(comparison))
    assert (told[0].count("·") > 2, str(PAGE) in told[-1] or str(PAGE) in told[-2]) == (True, True)
    lines(terminal_text(comparison, width=80), 80, 38)
    assert len(lines(terminal_text(comparison, "verdict"))) in (3, 4)
    assert len(terminal_text(comparison, "all").splitlines()) > 60
    gated = replace(comparison, gate=check(comparison, parse_conditions("wall<=+3%")))
    assert any(line.startswith("Gate: ") for line in lines(terminal_text(gated))[1:3])
    for side in (comparison.a, comparison.b):
        lines(terminal_text(look_at(side)))


@pytest.mark.parametrize("name", RUNS)
def test_what_a_call_consists_of_adds_up_to_it(name: Path, compared: Callable[[Path], Comparison]) -> None:
    comparison = compared(name)
    overview, waterfall = comparison_overview(comparison), comparison.waterfall
    assert overview.account is not None and waterfall is not None
    wholes = [row for row in overview.account.rows if row.level == 0]
    change = math.fsum(row.delta_us for row in wholes)
    assert math.isclose(change, waterfall.b_us - waterfall.a_us, rel_tol=1e-9, abs_tol=1e-6)
    for at, us in enumerate((waterfall.a_us, waterfall.b_us)):
        assert math.isclose(math.fsum(row.us[at] for row in wholes), us, rel_tol=1e-9)
    at = overview.account.rows.index(wholes[1])
    modules = [row for row in overview.account.rows[1:at] if row.level == 1]
    by_module = math.fsum(row.delta_us for row in modules)
    assert math.isclose(by_module, wholes[0].delta_us, rel_tol=1e-9, abs_tol=1e-6)


def test_several_runs_are_told_in_thirty_lines() -> None:
    places = tuple(str(ROOT / name) for name in RUNS if "vit" in name.name)
    lines(terminal_text(load_comparisons(places, Reading(shapes=True))))


@pytest.mark.parametrize("factor", [0.9, 1.0, 1.3])
def test_idle_time_without_a_known_cause_is_part_of_the_idle_time(factor: float) -> None:
    account = comparison_overview(compare(*make_pair(STEADY, scaled(factor)), ORDER)).account
    assert account is not None
    names = [row.name for row in account.rows]
    change = {row.name: row.delta_us for row in account.rows}
    idle = next(at for at, name in enumerate(names) if name.startswith("GPU idle"))
    causes = math.fsum(change[name] for name in names[idle + 1 :])
    assert UNEXPLAINED in names and math.isclose(causes, change[names[idle]])


def test_gpu_time_beyond_a_short_call_is_a_row_that_closes_the_account() -> None:
    comparison = compare(*make_pair(scaled(0.84), STEADY), ORDER)
    account, waterfall = comparison_overview(comparison).account, comparison.waterfall
    assert account is not None and waterfall is not None and comparison.a.busy_us > waterfall.a_us
    wholes = [row for row in account.rows if row.level == 0]
    for at, us in enumerate((waterfall.a_us, waterfall.b_us)):
        assert math.isclose(math.fsum(row.us[at] for row in wholes), us)
    assert wholes[-1].us[0] < 0


@pytest.mark.parametrize("profiled", [False, True])
def test_families_and_causes_of_one_side_add_up_to_it(profiled: bool) -> None:
    account = side_overview(look_at(make_side("one", form=None if profiled else make_form()))).account
    assert account is not None
    for whole, parts in itertools.pairwise((*(at for at, row in enumerate(account.rows) if row.level == 0), None)):
        us = [row.us[0] for row in account.rows[whole:parts]]
        assert len(us) > 2 and math.isclose(math.fsum(us[1:]), us[0], rel_tol=1e-3)


@pytest.mark.parametrize("overlap_us", [1900.0, 3900.0])
def test_kernels_that_ran_at_once_make_a_row_without_a_share(overlap_us: float) -> None:
    kernels = {f"{family}_{at}": (family, 2, 1000.0) for family in ("gemm", "norm") for at in range(2)}
    side = make_side("a.json.gz", make_analysis(kernels, overlap_us=overlap_us, idle_us=100.0))
    account = side_overview(look_at(side), 3).account
    assert account is not None
    rest = next(row for row in account.rows if row.name == LESS_THAN_NONE)
    assert rest.us == (pytest.approx(-overlap_us / 2),)
    shown = {row.name: row.figures for row in shown_account(account).rows}
    assert shown[LESS_THAN_NONE][1] == MISSING
    assert not any("-" in share or "−" in share for _, share in shown.values())


def test_a_cpu_recording_is_told_by_its_operators() -> None:
    assert "aten::mm" in terminal_text(look_at(make_side("one", make_cpu_analysis())))


@pytest.mark.parametrize("width", [60, 80, 100])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    name = "a_trace_whose_name_is_as_long_as_names_of_files_may_be_" * 4
    kernels = {f"{name}{at}": ("pointwise", 2, 10.0 + at) for at in range(9)}
    one, other = make_side(f"{name}a", make_analysis(kernels)), make_side(f"{name}b", make_analysis(COMPILED))
    for found in (compare(one, other), look_at(one), three_times_matched()):
        lines(terminal_text(found, width=width), width)


def test_a_table_without_room_for_its_columns_says_how_many_are_left_out() -> None:
    heads = columns("", figures=("speed-up",) * 9)
    table = Table("", heads, (("reduce-overhead", *("1,234.5",) * 9),))
    told = printed(overview_lines(Overview("", "", tables=(table,)), None, 60), 60)
    assert (told.count("1,234.5"), "more columns" in told) == (4, True)


def test_without_an_established_difference_there_is_no_ratio_to_contradict_the_times() -> None:
    overview = comparison_overview(compare(*make_pair(STEADY, scaled(1.0)), ORDER))
    assert overview.result is not None and overview.result[1] == "inconclusive"
    assert "\N{MULTIPLICATION SIGN}" not in overview.headline and overview.interval is not None


@pytest.mark.parametrize("name", RUNS)
def test_each_cause_has_both_times_and_together_they_are_idle_time(
    name: Path, compared: Callable[[Path], Comparison]
) -> None:
    comparison = compared(name)
    account = comparison_overview(comparison).account
    assert account is not None
    at = next(at for at, row in enumerate(account.rows) if row.name.startswith("GPU idle"))
    causes = account.rows[at + 1 :]
    # Less than a thousandth of a call is not said to be unexplained.
    hidden_us = 0.0 if any(row.name == UNEXPLAINED for row in causes) else 1e-3 * (comparison.a.wall_us or 0.0)
    for side in (0, 1):
        us = math.fsum(row.us[side] for row in causes)
        assert math.isclose(us, account.rows[at].us[side], abs_tol=hidden_us + 1e-6)


def test_separate_runs_of_other_work_have_their_times_beside_the_answer() -> None:
    a, b = make_pair(STEADY, scaled(0.5))
    overview = comparison_overview(compare(a, replace(b, settings=replace(b.settings, batch_size=2))))
    assert overview.interval is None
    for side in (a, b):
        assert duration(side.wall_us) in overview.walls


def test_what_only_shortens_compiling_is_not_among_what_speeds_up_calls(compared: Callable[[Path], Comparison]) -> None:
    (name,) = (each for each in RUNS if "qwen" in each.name)
    overview = comparison_overview(compared(name), "tracekit profile x")
    assert [each.starts for each in overview.advice] == [True]
    assert [len(some) for _, some in advised(overview)] == [0, 1]
    assert "Repeat tracekit profile x" in printed(overview_lines(overview, ()))


@pytest.mark.parametrize("name", RUNS)
def test_the_command_that_repeats_a_run_runs_as_it_is_printed(
    name: Path, compared: Callable[[Path], Comparison]
) -> None:
    run = store.load(name)
    repeat = command_to_repeat(name, run)
    told = terminal_text(compared(name), repeat=repeat)
    lead = told[told.index("Repeat ") :].removeprefix("Repeat ")
    _, words = split_variables(lead.partition("\nReport ")[0])
    given = profile.make_context("profile", words[2:]).params
    assert (given["workload"], given["size"]) == (run.settings.workload, run.settings.size)
    assert given["compiled"] and not given["out"].exists() and not given["force"]
    assert run.environment.packages["torch"] in told


@pytest.mark.parametrize("name", RUNS)
def test_a_part_of_a_module_is_within_the_row_above_it(name: Path, compared: Callable[[Path], Comparison]) -> None:
    account = comparison_overview(compared(name)).account
    assert account is not None
    for above, row in itertools.pairwise(account.rows):
        if row.level == 2:
            assert above.level == 1 and 0.5 < row.delta_us / above.delta_us < 1.0
            assert all(part < whole for part, whole in zip(row.us, above.us, strict=True) if part and whole)


def test_where_another_process_may_be_slower_the_headline_says_so(
    compared: Callable[[Path], Comparison],
) -> None:
    told = {name.name: comparison_overview(compared(name)) for name in RUNS}
    results = {name: overview.result[1] for name, overview in told.items() if overview.result}
    assert [name for name, result in results.items() if result == "open"] == ["h100-vit"]
    assert [name for name, overview in told.items() if "in this process" in overview.headline] == ["h100-vit"]
    for overview in told.values():
        assert overview.elsewhere is not None and overview.interval is not None
        assert overview.elsewhere[0] <= overview.interval[0] < overview.interval[2] <= overview.elsewhere[1]
        assert (overview.elsewhere[0] < 1) == ("in this process" in overview.headline)
        assert overview.spread.startswith("next process ")
