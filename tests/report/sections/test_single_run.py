"""The page of one side: the same look and safety as that of two, with what one side alone can say."""

import pytest
from msgspec.structs import replace
from tests.report.conftest import cpu_comparison, matched_comparison, timed_comparison
from tests.report.showing import side_markdown, side_page, text_of
from tests.sides import make_run, make_side

from tracekit.comparison.looking import look_at
from tracekit.model.compilation import NotCompiled
from tracekit.model.single_run import NothingCompiled, SingleRun
from tracekit.report.composition.one_side import side_headline, side_overview
from tracekit.report.markdown import LONGEST
from tracekit.report.sections import kernels as section
from tracekit.report.sections.kernels import every_kernel

COMMAND = "tracekit analyze traces/flux-compiled --html"


def real() -> SingleRun:
    """ViT-B/16 compiled, a real recording."""
    return look_at(matched_comparison().b)


def test_the_page_begins_with_what_a_call_takes_and_gives_no_verdict():
    page = side_page(look_at(timed_comparison().b), make_run(), COMMAND)
    assert '<h1 class="">1.00 ms per call</h1>' in page
    text = text_of(page)
    for told in ("flux · full size · NVIDIA H200", "marked steps", COMMAND):
        assert told in text
    assert "faster" not in text and "Speed-up" not in text and 'id="waterfall"' not in page
    # What one side has is told once, and not beside itself.
    assert "Both sides" not in text and "A:" not in text
    assert text.count("Wall time, median") == 1
    for heading in ("Figures", "Kernels", "GPU idle", "Setup", "How it was measured"):
        assert heading in text


def test_a_bare_trace_says_that_it_was_not_timed():
    assert side_headline(matched_comparison().b).startswith("vit_default: GPU busy ")
    text = text_of(side_page(real()))
    assert "with profiler, less without" in text
    assert "This is a bare trace file" in text


def test_every_kernel_has_a_row_whose_shares_close_and_that_unfolds_to_its_operators():
    side = matched_comparison().b
    told = every_kernel(side)
    assert len(told.rows) == side.analysis.kernels.unique + len(side.analysis.copies.by_name)
    assert sum(row.figures[3].value for row in told.rows) == pytest.approx(1)
    totals = [row.figures[1].value for row in told.rows]
    assert totals == sorted(totals, reverse=True)
    whole_us = side.analysis.kernels.total_us + side.analysis.copies.total_us
    assert sum(totals) == pytest.approx(whole_us / side.steps, rel=1e-6)
    products = next(row for row in told.rows if row.words == ("gemm",))
    assert any("aten::" in place for place in products.where)


def test_kernels_without_a_row_are_summed_up(monkeypatch):
    monkeypatch.setattr(section, "MOST_ROWS", 1)
    told = every_kernel(timed_comparison().b)
    assert len(told.rows) == 1
    assert "4 shorter names" in told.note


def test_findings_that_need_another_side_are_not_made_up():
    found = {finding.code for finding in real().findings}
    assert not found & {"lost_attention", "more_gpu_time", "fewer_kernels", "compile_slower"}


def test_a_cpu_run_says_what_it_cannot_show():
    text = text_of(side_page(look_at(cpu_comparison().b), make_run(), "x"))
    assert "says nothing about a GPU" in text
    assert "Kernel by kernel" not in text


def test_the_markdown_twin_tells_the_same_and_fits_a_comment():
    text = side_markdown(real(), None, COMMAND)
    assert len(text) < LONGEST
    assert text.startswith("# vit\\_default: GPU busy ")
    for part in ("Findings", "Kernels, copies and memsets by name", "Idle time by cause", "Reproduce", "Trace"):
        assert part in text


def test_of_several_reasons_why_nothing_was_compiled_the_first_stands_on_the_first_screen():
    reasons = tuple(NotCompiled("scalar_read", "item()", f"model.py:{line}", "forward") for line in (3, 9))
    single = replace(look_at(make_side("eager")), nothing_compiled=NothingCompiled(reasons, ()))
    text = " ".join(line.text for line in side_overview(single).why)
    assert "model.py:3" in text and text.count("Dynamo skipped") == 1
