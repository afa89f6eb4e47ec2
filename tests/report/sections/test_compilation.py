from msgspec.structs import replace
from tests.report.showing import comparison_markdown, comparison_page, rows_of
from tests.sides import COMPILED, STEADY, make_analysis, make_form, make_side

from tracekit.comparison.comparing import compare
from tracekit.model import compilation as facts
from tracekit.model.comparison import Comparison, Side
from tracekit.report.charts import phase_chart
from tracekit.report.sections.compilation import (
    break_table,
    compilation_table,
    compilation_tables,
    recompile_table,
)
from tracekit.report.words.common import both_sides, with_letters
from tracekit.statements.noted import CompileLogUnreadable

REGIONS = facts.CompiledRegions(
    (facts.RegionTime("0/0", 4, 500.0, 80.0),), 6, 4, 20.0, 10.0, 1063.5, 1418.0, 0.0, 40, 46
)
TOLD = facts.Diagnostics(
    frames=(
        facts.FrameCompilation("0/0", "forward", "model.py:12", "warm-up", 1, 2.0, 40),
        facts.FrameCompilation(
            *("0/1", "forward", "model.py:12", "timed", 3, 1.5, 44),
            because=(
                facts.FailedGuard("0/0", "tensor 'x' size mismatch at index 0. expected 1, actual 4"),
                facts.FailedGuard("0/9", "older"),
            ),
        ),
    ),
    breaks=(
        facts.GraphBreak("model.py:20", "forward", "Unsupported Tensor.item()", "Why.", None, "gb0124", ("0/0",), 40.0),
    ),
    fallbacks=(facts.EagerFallback("skipped", "generate", "model.py:90", "a break in a loop"),),
    phases=(facts.PhaseTime("triton", 3.0), facts.PhaseTime("dynamo", 1.0)),
    caches=(facts.CacheUse("fx_graph", 1, 2, 3),),
    calls=(facts.CompilingCall("timed", 3, 1, 0, 1.6e6),),
    cuda_graph_skips=(facts.CudaGraphSkip(None, 2),),
    warmed_up_at={"batch_size": 1},
)


def told_side(found: facts.Diagnostics | None = TOLD, regions: facts.CompiledRegions | None = REGIONS) -> Side:
    form = make_form("compiled", STEADY)
    form = replace(form, compilation=replace(form.compilation, diagnostics=found))
    return make_side("compiled", replace(make_analysis(COMPILED), regions=regions), form)


def told_comparison(found: facts.Diagnostics = TOLD) -> Comparison:
    return compare(make_side("eager", form=make_form("eager", STEADY)), told_side(found), ("eager", "compiled") * 10)


def test_what_compiled_code_does_is_told_per_step():
    told = {label: values[0] for label, values in rows_of(compilation_table(with_letters(told_side()))).items()}
    expected = {
        "Compiled regions entered, per call": "2",
        "Compiled graphs called, per call": "3",
        "GPU time launched from compiled code": "75.0 %",
        "Guards and cache lookup, per call": "10.0 µs",
        "Entering compiled code, per call": "5.00 µs",
        "Guards": "84",
        "FX graph cache": "hits 1, misses 2, bypassed 3",
        "CUDA graphs skipped": "2: no reason",
        "Warm-up sizes": "batch_size 1",
    }
    assert expected.items() <= told.items() and "GPU time without a known launch" not in told


def test_an_eager_side_has_no_table():
    eager = make_side("eager", form=make_form("eager"))
    assert compilation_table(with_letters(eager)) is None
    nothing = replace(REGIONS, regions=(), graphs=0)
    assert compilation_table(with_letters(replace(eager, analysis=replace(eager.analysis, regions=nothing)))) is None


def test_a_bare_trace_tells_what_its_recording_shows():
    bare = replace(told_side(), form=None)
    assert "Graphs compiled" not in rows_of(compilation_table(with_letters(bare)))
    assert "GPU time launched from compiled code" in rows_of(compilation_table(with_letters(bare)))
    assert break_table(bare, "B") is None


def test_a_recompilation_and_a_break_name_their_place_their_reason_and_what_they_cost():
    assert rows_of(recompile_table(told_side(), "B"))["timed call 3"] == (
        "forward (model.py:12)",
        "size 0 of x is 4, compiled for 1; 1 older version failed too",
        "1.50 s",
        "1.60 s",
    )
    # Without a hint torch's explanation stands there.
    told = rows_of(break_table(told_side(), "B"))["model.py:20"]
    assert told == ("Unsupported Tensor.item() (gb0124)", "Why.", "40.0 µs")
    # With a GPU, what of it the GPU was idle.
    breaks = tuple(replace(each, idle_per_step_us=3.0) for each in TOLD.breaks)
    told = rows_of(break_table(told_side(replace(TOLD, breaks=breaks)), "B"))["model.py:20"]
    assert told[-2:] == ("40.0 µs", "3.00 µs")


def test_all_of_it_is_on_the_page_and_in_markdown():
    comparison = told_comparison()
    page, markdown = comparison_page(comparison), comparison_markdown(comparison)
    assert 'id="compilation"' in page
    tables = compilation_tables(both_sides(comparison))
    assert len(tables) == 5
    assert all(each.caption in page and each.caption in markdown for each in tables)


def test_phases_are_drawn_in_seconds_of_the_side_that_was_compiled_alone():
    bars = phase_chart(both_sides(told_comparison())).bars
    assert {bar.kind for bar in bars} == {"B: compiled"} and sorted(bar.end for bar in bars) == [1.0, 3.0]
    assert phase_chart(with_letters(make_side("eager", form=make_form("eager")), told_side(None))) is None


def test_what_torch_s_log_did_not_tell_is_noted_below_the_figures():
    noted = CompileLogUnreadable("OSError")
    assert noted.long() in compilation_table(with_letters(told_side(replace(TOLD, noted=(noted,))))).note


def test_a_reached_recompile_limit_has_a_line_of_its_own():
    limit = facts.EagerFallback("recompile_limit", "forward", "model.py:12", "Dynamo recompile limit exceeded")
    reached = told_side(replace(TOLD, fallbacks=(*TOLD.fallbacks, limit)))
    told = rows_of(compilation_table(with_letters(reached)))
    assert told["Recompile limit"] == ("reached",)
    assert told["Fallbacks to eager"] == ("2",)
    assert "Recompile limit" not in rows_of(compilation_table(with_letters(told_side())))
