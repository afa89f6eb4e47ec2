"""A sweep in all its renderings: the same figures, nothing that acts, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from dataclasses import replace
from functools import cache

import pytest
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from rich.console import Console
from tests.browser import opened
from tests.report.conftest import HOSTILE_NAMES
from tests.sweeps import compiled_cell, eager_cell, make_asked, make_failure, make_result

from tracekit.comparison.sweeping import read_sweep
from tracekit.model.sweep import CellResult
from tracekit.model.sweep_figures import Sweep
from tracekit.report.schemas import schema
from tracekit.report.sweep.contract import sweep_json
from tracekit.report.sweep.heat import heat_map
from tracekit.report.sweep.labels import label
from tracekit.report.sweep.markdown import sweep_markdown
from tracekit.report.sweep.page import sweep_page
from tracekit.report.sweep.tables import best_table, command_table, speedup_table
from tracekit.report.sweep.terminal import sweep_summary
from tracekit.workloads.suites import VISION

from ..test_schemas import closed

COMMAND = "tracekit sweep --resume sweeps/vision"


def results(*batches: int) -> tuple[CellResult, ...]:
    """Twice as fast by default, three times with CUDA graphs that take memory; at batch 16 these do not fit."""
    found = []
    for seed, batch in enumerate(batches):
        us = 8_000.0 * batch**0.5
        found += [
            make_result(eager_cell(batch_size=batch), us, seed=seed),
            make_result(compiled_cell(batch_size=batch), us, us / 2, seed=seed + 10, compile_us=20e6),
        ]
        graphed = compiled_cell(mode="reduce-overhead", batch_size=batch)
        if batch == 16:
            found.append(make_failure(graphed, message="not enough GPU memory at size full (tried to allocate 9 GiB)"))
        else:
            found.append(make_result(graphed, us, us / 3, seed=seed + 20, compile_us=35e6, reserved=4.0))
    return tuple(found)


@cache
def vision() -> Sweep:
    found = results(1, 16)
    cells = [each.cell for each in found] + [compiled_cell("beit")]
    return read_sweep("vision", make_asked(cells, "vision"), found, VISION, 1000)


def rendered(sweep: Sweep, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(sweep_summary(sweep))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def test_the_terminal_shows_every_cell_and_what_is_best(text_file):
    assert rendered(vision()) == text_file


def test_the_markdown_twin_is_told_in_full(markdown_file):
    assert sweep_markdown(vision(), COMMAND) == markdown_file


def test_the_json_keeps_to_its_schema():
    told = json.loads(sweep_json(vision()))
    validator = Draft202012Validator(closed(schema("sweep")))
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(told)] == []
    assert (told["schema"], told["missing"]) == ("tracekit.sweep/1", 1)
    assert told["works"][0]["cells"][1]["verdict"]["result"] == "faster"
    assert told["works"][1]["cells"][2]["failure"]["kind"] == "out_of_memory"


def test_colours_are_of_verdicts_and_stronger_for_more():
    drawn = heat_map(vision())
    assert drawn is not None
    assert drawn.ways == ("default", "reduce-overhead")
    (_, (double, triple)), (_, (_, failed)) = drawn.rows
    assert (double.tone, triple.tone, failed.tone) == ("gain", "gain", "failed")
    assert 0 < double.percent < triple.percent <= 55
    assert (failed.text, failed.percent) == ("out of memory", 0)
    even = read_sweep("x", None, (make_result(compiled_cell(), 5_000.0, 5_000.0),), None, 1000)
    slower = read_sweep("x", None, (make_result(compiled_cell(), 5_000.0, 9_000.0),), None, 1000)
    tones = [heat.rows[0][1][0] for each in (even, slower) if (heat := heat_map(each))]
    assert [(each.tone, each.percent > 0) for each in tones] == [("even", False), ("loss", True)]


def test_names_tell_no_more_than_is_needed():
    labels = label(vision())
    assert [labels.of(work) for work in vision().works] == ["vit, batch 1", "vit, batch 16"]
    assert labels.common[:2] == ("512\N{MULTIPLICATION SIGN}512", "full size") or "full size" in labels.common
    assert "NVIDIA H200" in labels.common
    scopes = tuple(make_result(compiled_cell("flux", scope=scope)) for scope in ("transformer", "regional"))
    several = read_sweep("flux", None, scopes, None, 1000)
    named = label(several)
    assert [named.way(cell) for cell in several.cells] == ["default of transformer", "default of regional"]


def test_the_page_is_one_file_that_may_fetch_nothing_and_run_its_own_script_alone():
    page = sweep_page(vision(), COMMAND)
    assert page.startswith("<!doctype html>")
    assert len(page) < 100_000
    assert re.findall(r'(?:src|href)="(?!#|data:,)[^"]*"', page) == []
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src &#39;none&#39;; script-src &#39;sha256-{digest.replace('+', '+')}&#39;" in page
    for words in ("2.00", "3.00", "out of memory", "tried to allocate 9 GiB", "9.325", COMMAND):
        assert words in page, words


def test_every_command_has_a_line_of_its_own():
    commands = "# measures it\ntracekit sweep vit\n# goes on with what is missing\ntracekit sweep --resume sweeps/vit"
    assert f"```sh\n{commands}\n```" in sweep_markdown(vision(), commands)
    assert f"<pre>\n{commands}\n</pre>" in sweep_page(vision(), commands)


def test_what_a_failed_cell_left_is_shown_line_by_line():
    lines = ("Traceback (most recent call last):", "````", "RuntimeError: <b>no\x1b[31m")
    failed = make_failure(compiled_cell(), "failed")
    failure = replace(failed.failure, last_lines=lines)
    sweep = read_sweep("vit", None, (replace(failed, failure=failure), make_result(eager_cell())), None, 1000)
    page, twin = sweep_page(sweep), sweep_markdown(sweep)
    assert "<summary>vit, batch 1, default: failed</summary>\n<pre>\nTraceback (most recent call last):\n" in page
    assert "RuntimeError: &lt;b&gt;no" in page
    assert "Traceback (most recent call last):\n" in twin
    assert twin.count("````") == 2, "what was printed does not end the block"
    assert "\x1b" not in page + twin
    assert json.loads(sweep_json(sweep))["works"][0]["cells"][0]["failure"]["last_lines"] == list(lines)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_and_messages_do_nothing(name):
    cells = (eager_cell(name), compiled_cell(name, scope=name))
    sweep = read_sweep(name, None, (make_result(cells[0]), make_failure(cells[1], "failed", name)), None, 1000)
    page = sweep_page(sweep, name)
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "\x1b" not in page
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(sweep_markdown(sweep, name))
    assert "<script" not in html
    assert "<img" not in html
    assert "\x1b" not in rendered(sweep)


def test_commands_to_copy_are_whole_however_long_they_are():
    asked = compiled_cell(mode="max-autotune-no-cudagraphs", prompt="a lighthouse on a cliff at dawn, in the fog")
    sweep = read_sweep("flux", None, (make_result(asked, 8_000.0, 4_000.0),), None, 1000)
    (work,) = sweep.works
    commands = {best.candidates[at].command for best in work.best for at in best.tied}
    assert any(len(command) > 120 and "in the fog'" in command for command in commands)
    assert [command for command in commands if f"`{command}`" not in sweep_markdown(sweep)] == []


def test_a_sweep_of_which_nothing_succeeded_is_shown_too():
    sweep = read_sweep("vit", None, (make_failure(compiled_cell()), make_failure(eager_cell(), "killed")), None, 1000)
    assert "no compiled cell was timed" in rendered(sweep)
    assert "killed" in sweep_markdown(sweep)
    assert "Cells without times" in sweep_page(sweep)
    json.loads(sweep_json(sweep))


def test_a_large_suite_stays_within_what_a_comment_holds_and_the_page_small():
    modes = ("default", "reduce-overhead", "max-autotune")
    found = [
        make_result(cell, 8_000.0, 4_000.0 if cell.form == "compiled" else None, seed=seed)
        for seed, (name, batch) in enumerate((name, batch) for name in VISION.workloads for batch in (1, 4, 16))
        for cell in (
            eager_cell(name, batch_size=batch),
            *(compiled_cell(name, mode=mode, batch_size=batch) for mode in modes),
        )
    ]
    assert len(found) >= 108
    sweep = read_sweep("vision", None, found, VISION, 1000)
    text = sweep_markdown(sweep, COMMAND)
    assert len(text) < 65_536
    assert len(sweep_page(sweep)) < 700_000
    # What answers is there whole, and what is left out is named.
    for table in (speedup_table(sweep), best_table(sweep), command_table(sweep)):
        assert table is not None
        body = re.split(r"\n\n(?:#|</details>)", text.partition(table.caption)[2])[0]
        assert body.count("\n| ") == 1 + len(table.rows), table.caption
    assert COMMAND in text
    folded = re.findall("<summary>(.*?)</summary>", text)
    assert folded[:2] == ["How to use it", "Mean of calls, ms (95 % interval)"]
    (left_out,) = re.findall(r"\nLeft out for length: (.*)\. The HTML page has all of it\.\n$", text)
    assert "Cell by cell" in left_out
    assert not {*left_out.split("; ")} & {*folded}


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_opens_quietly_and_reads_well(tmp_path, width, dark):
    axe = pytest.importorskip("axe_playwright_python")
    from importlib import resources

    path = tmp_path / "sweep.html"
    path.write_text(sweep_page(vision(), COMMAND), encoding="utf-8")
    with opened(path, width=width, dark=dark) as visited:
        page = visited.page
        page.wait_for_selector("main > section:last-of-type.laid")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        for each in page.query_selector_all("summary"):
            each.click()
        page.evaluate((resources.files(axe.__name__) / "axe.min.js").read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
        assert (visited.complaints, visited.requests) == ([], [])
