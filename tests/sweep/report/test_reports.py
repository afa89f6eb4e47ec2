"""A sweep in all its renderings: the same figures, nothing that acts, nothing from elsewhere."""

import base64
import hashlib
import json
import re
from functools import cache
from typing import Any

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace
from tests.browser import opened
from tests.report.conftest import HOSTILE_NAMES
from tests.report.showing import text_of, written
from tests.sweep.report.showing import sweep_markdown, sweep_page, sweep_terminal
from tests.sweep.sweeps import compiled_cell, eager_cell, make_asked, make_failure, make_result, repeated

from tracekit.numbers import MISSING
from tracekit.report.contract import json_text
from tracekit.report.document import Name
from tracekit.sweep.cells import Asked, CellResult
from tracekit.sweep.figures import Sweep
from tracekit.sweep.reading.works import read_sweep
from tracekit.sweep.report import tables
from tracekit.sweep.report.labels import label
from tracekit.sweep.report.matrices import eager_table, heat_map, matrices
from tracekit.sweep.report.sections import sweep_overview
from tracekit.sweep.report.words import MOST_WORKS, best_words, headline, progress_sentence
from tracekit.sweep.statements.notes import CacheNotEmpty
from tracekit.sweep.suites import VISION

from ...report.test_page_in_browser import violations, was_quiet
from ...report.test_schemas import faults

COMMAND = "tracekit sweep --resume sweeps/vision"
MODES = ("default", "reduce-overhead", "max-autotune")


def results(*batches: int) -> tuple[CellResult, ...]:
    """Twice as fast by default, three times with CUDA graphs that take memory; at batch 16 these do not fit."""
    found = []
    for seed, batch in enumerate(batches):
        us = 8_000.0 * batch**0.5
        found.append(make_result(eager_cell(batch_size=batch), us, seed=seed))
        found.append(make_result(compiled_cell(batch_size=batch), us, us / 2, seed=seed + 10))
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


def swept(*found: CellResult, name: str = "vit", asked: Asked | None = None) -> Sweep:
    return read_sweep(name, asked, found, None, 1000)


def with_run(result: CellResult, **changes: Any) -> CellResult:
    return replace(result, run=replace(result.run, **changes))


def rendered(sweep: Sweep, width: int = 100) -> str:
    return sweep_terminal(sweep, "all", width)


def test_the_json_keeps_to_its_schema():
    told = json.loads(json_text(vision()))
    assert faults("sweep", json_text(vision())) == []
    assert (told["schema"], told["missing"]) == ("tracekit.sweep/1", 1)
    assert told["works"][0]["cells"][1]["verdict"]["result"] == "faster"
    assert told["works"][1]["cells"][2]["failure"]["kind"] == "out_of_memory"


def test_colours_are_of_verdicts_and_stronger_for_more():
    drawn = heat_map(vision())
    assert drawn.columns == ("default", "reduce-overhead")
    (_, (double, triple)), (_, (_, failed)) = drawn.rows
    assert (double.tone, triple.tone, failed.tone) == ("gain", "gain", "failed")
    assert 0 < double.percent < triple.percent <= 55
    assert (failed.text, failed.percent) == ("out of memory", 0)
    even, slower, little = (
        heat_map(swept(make_result(compiled_cell(), eager_us, compiled_us, share=0.001)))
        for eager_us, compiled_us in ((5_000.0, 5_000.0), (5_000.0, 9_000.0), (12_500.0, 10_000.0))
    )
    cells = [each.rows[0][1][0] for each in (even, slower, little)]
    assert [(each.tone, each.percent >= 18) for each in cells] == [("even", False), ("loss", True), ("gain", True)]
    # Their key tells those that occur.
    assert [words for _, words, _ in little.keys] == ["slightly faster", "3x faster or more"]
    assert "no times" in [words for _, words, _ in drawn.keys]


def test_the_page_is_one_file_that_may_fetch_nothing_and_run_its_own_script_alone():
    page = sweep_page(vision(), COMMAND)
    assert page.startswith("<!doctype html>") and len(page) < 100_000
    assert re.findall(r'(?:src|href)="(?!#|data:,)[^"]*"', page) == []
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src &#39;none&#39;; script-src &#39;sha256-{digest}&#39;" in page
    assert all(
        words in text_of(page) for words in ("2.00", "out of memory", "tried to allocate 9 GiB", "9.325", COMMAND)
    )


def test_every_command_has_a_line_of_its_own():
    commands = "# one\ntracekit sweep vit\n# other\ntracekit sweep --resume sweeps/vit"
    assert f"```sh\n{commands}\n```" in sweep_markdown(vision(), commands)
    shown = re.search("<pre>\n(# one.*?)</pre>", re.sub("</?span[^>]*>", "", sweep_page(vision(), commands)), re.S)
    assert shown is not None and shown[1].strip() == commands


def test_what_a_failed_cell_left_is_shown_line_by_line():
    lines = ("Traceback (most recent call last):", "````", "RuntimeError: <b>no\x1b[31m")
    failed = make_failure(compiled_cell(), "failed")
    failure = replace(failed.failure, last_lines=lines)
    sweep = swept(replace(failed, failure=failure), make_result(eager_cell()))
    page, twin = sweep_page(sweep), sweep_markdown(sweep)
    assert "<summary>vit, batch 1, default: failed</summary>\n<pre>\nTraceback (most recent call last):\n" in page
    assert "RuntimeError: &lt;b&gt;no" in page
    assert "Traceback (most recent call last):\n" in twin
    assert "\n`````text\n" in twin and "\n````\n" in twin, "what was printed does not end the block"
    assert "\x1b" not in page + twin
    assert json.loads(json_text(sweep))["works"][0]["cells"][0]["failure"]["last_lines"] == list(lines)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_and_messages_do_nothing(name):
    cells = (eager_cell(name), compiled_cell(name, scope=name))
    sweep = swept(make_result(cells[0]), make_failure(cells[1], "failed", name), name=name)
    page = sweep_page(sweep, name)
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(sweep_markdown(sweep, name))
    assert (page.count("<script"), html.count("<script")) == (1, 0)
    assert "<img" not in page + html and "\x1b" not in page + rendered(sweep)


def test_beside_a_speed_up_stand_the_medians_of_its_own_process():
    # Eager took three times as long in the process of its own: no figure beside the speed-up may be of that.
    eager = make_result(eager_cell(), 24_000.0, share=0.0)
    sweep = swept(eager, make_result(compiled_cell(), 8_000.0, 4_000.0, share=0.0))
    assert r"| vit, batch 1 | 2.00× (2.000 to 2.000; 8.000 to 4.000 ms) |" in sweep_markdown(sweep)
    assert "2.00× (2.000 to 2.000; 8.000 to 4.000 ms)" in rendered(sweep)
    assert "8.000 to 4.000 ms" in text_of(sweep_page(sweep))
    for name in ("mean", "median"):
        ((_, *figures),) = matrices(sweep)[name].rows
        assert figures == ["24.000 (24.000 to 24.000)", "4.000 (4.000 to 4.000), eager 8.000"]


def test_what_is_inconclusive_is_called_so_where_it_ties_with_eager():
    doubtful = make_result(compiled_cell(), 10_000.0, 3_600.0, seed=7, share=1.5)
    sweep = swept(make_result(eager_cell(), seed=1), doubtful)
    told = " ".join(rendered(sweep).split())
    assert "0 of 1 config faster, 1 inconclusive" in told
    assert re.search(r"Lowest latency tie: eager, 1\.000×; default, \S+× \(\S+ ms, inconclusive\)", told)
    assert "even" not in matrices(sweep), "no break-even without a verdict"


def test_break_even_is_told_with_both_ends():
    result = make_result(compiled_cell(), 10_000.0, 5_000.0, compile_us=20e6, share=0.0)
    eager, compiled = result.run.forms
    sweep = swept(with_run(result, forms=(replace(eager, warmup_us=(5_000_000.0, 10_000.0)), compiled)))
    ((_, even),) = matrices(sweep)["even"].rows
    assert even == "3,000 to 4,000"


def test_without_compiled_times_there_is_nothing_of_compiling():
    sweep = swept(make_result(eager_cell()))
    page, table = sweep_page(sweep), eager_table(sweep)
    assert "Compiling and memory" not in page and '<a href="#cost">Memory</a>' in page
    # One process alone is not apart from itself.
    assert table.rows[0][-1] == MISSING
    failed = sweep_page(swept(make_failure(eager_cell())))
    assert not re.search('(href="#|id=")(cost|times)"', failed)


def test_a_cpu_has_no_columns_of_a_gpu():
    def on_cpu(result: CellResult) -> CellResult:
        forms = tuple(replace(form, gpu_state=None) for form in result.run.forms)
        settings = replace(result.run.settings, device="cpu")
        return replace(with_run(result, settings=settings, forms=forms), host_load=1.5)

    cells = tuple(on_cpu(make_result(each)) for each in (eager_cell(), compiled_cell()))
    table = tables.conditions_table(swept(*cells))
    assert [column.label for column in table.columns] == ["Workload", "Mode", "Host load"]
    assert table.caption == "Host during timing"
    assert tables.conditions_table(swept(*(replace(each, host_load=None) for each in cells))) is None
    assert "Clock, MHz" in [column.label for column in tables.conditions_table(vision()).columns]


def test_the_report_tells_why_a_size_was_taken_how_long_loading_took_and_what_was_cached():
    result = make_result(compiled_cell())
    eager, compiled = result.run.forms
    warm = replace(compiled, compilation=replace(compiled.compilation, graphs=3, cache_hits=3))
    sweep = swept(with_run(result, forms=(eager, warm), size_reason="full needs about 1 GiB"))
    assert tables.building_table(sweep).rows == (("vit, batch 1", "full", "full needs about 1 GiB", "3.0"),)
    assert matrices(sweep)["compile"].rows == (("vit, batch 1", "20.0, 3 of 3 cached"),)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ({"prompt": "a dog"}, {"prompt": "a cat"}, ("'a dog'", "'a cat'")),
        ({"prompt": "a dog"}, {}, ("'a dog'", "")),
        ({"use_fast": True}, {"use_fast": False}, ("fast processor", "slow processor")),
        ({"options": ("layers=3",)}, {"options": ("layers=9",)}, ("layers=3", "layers=9")),
        ({"size": "full"}, {}, ("[", "[")),
        ({"height": 512, "width": 512}, {}, ("512", "")),
    ],
)
def test_works_that_differ_are_not_called_the_same(one, other, words):
    sweep = swept(*(make_result(eager_cell("flux", **each)) for each in (one, other)))
    first, second = (label(sweep).of(work) for work in sweep.works)
    assert first != second and words[0] in first and words[1] in second
    assert not any("512" in part for part in label(sweep).common)


def test_forms_are_named_by_their_scope_where_several_have_one_mode():
    several = swept(*(make_result(compiled_cell("flux", scope=scope)) for scope in ("transformer", "regional")))
    named = label(several)
    assert [named.way(each.cell) for each in several.cells] == ["default of transformer", "default of regional"]
    # Denoising steps are told though nobody asked for a number.
    result = make_result(compiled_cell("flux"))
    few = with_run(result, settings=replace(result.run.settings, steps=4))
    assert "4 steps" in label(swept(few)).common


def test_each_way_has_its_own_command_even_where_two_commands_are_the_same():
    cells = (make_result(eager_cell()), make_failure(compiled_cell()), make_result(compiled_cell(fullgraph=False)))
    table = tables.command_table(swept(*cells))
    assert any("--no-fullgraph" in row[3].full for row in table.rows if isinstance(row[3], Name))


def test_commands_to_copy_are_whole_however_long_they_are():
    asked = compiled_cell(mode="max-autotune-no-cudagraphs", prompt="a lighthouse on a cliff at dawn, in the fog")
    sweep = swept(make_result(asked, 8_000.0, 4_000.0))
    (work,) = sweep.works
    commands = {best.candidates[at].command for best in work.best for at in best.tied}
    assert any(len(command) > 120 and "in the fog'" in command for command in commands)
    assert all(f"`{command}`" in sweep_markdown(sweep) for command in commands)


def test_a_sweep_of_which_nothing_succeeded_is_shown_too():
    sweep = swept(make_failure(compiled_cell()), make_failure(eager_cell(), "killed"))
    assert "no compiled config was timed" in rendered(sweep)
    assert "killed" in sweep_markdown(sweep)
    assert "Cells without times" in sweep_page(sweep)
    json.loads(json_text(sweep))


def test_a_large_suite_stays_within_what_a_comment_holds_and_the_page_small():
    found = [
        make_result(make(batch_size=batch, **mode), 8_000.0, 4_000.0, seed=batch)
        for batch in (1, 4, 16)
        for make, mode in ((eager_cell, {}), *((compiled_cell, {"mode": mode}) for mode in MODES))
    ]
    few = read_sweep("vision", None, found, VISION, 1000)
    names = ((name, work) for name in VISION.workloads for work in few.works)
    sweep = replace(few, works=tuple(replace(work, workload=name, key=f"{name} {work.key}") for name, work in names))
    assert len(sweep.cells) >= 108
    text = sweep_markdown(sweep, COMMAND)
    assert len(text) < 65_536
    assert len(sweep_page(sweep)) < 700_000
    # What answers is there whole, and what is left out is named.
    commands = tables.command_table(sweep)
    for title, rows in (
        (heat_map(sweep).caption, heat_map(sweep).rows),
        ("What is best for what", tables.best_table(sweep).rows),
        (commands.caption, commands.rows),
    ):
        body = re.split(r"\n\n(?:#|<)", text.partition(title)[2])[0]
        assert body.count("\n| ") == 1 + len(rows), title
    assert COMMAND in text
    folded = re.findall("<summary>(.*?)</summary>", text)
    assert folded[1] == "Commands to profile these"
    assert {"Eager over processes", "Break-even, calls", "How this was measured"} <= {*folded}
    (left_out,) = re.findall(r"\nLeft out for length: (.*)\. The HTML page has all of it\.\n$", text)
    assert "Verdicts" in left_out
    assert not {*left_out.split("; ")} & {*folded}


def test_what_was_not_gained_stands_beside_what_was():
    times = ((1, 4_000.0), (4, 16_000.0), (16, 8_000.0))
    sweep = swept(*(make_result(compiled_cell(batch_size=batch), 8_000.0, us) for batch, us in times))
    assert headline(sweep) == "vit: 1 of 3 configs faster (up to 2.00×), 1 slower, 1 inconclusive."
    # Where no colour tells it, words do.
    gained, lost, even = re.findall(r"^\| vit, batch \d+ \| (.*) \|$", sweep_markdown(sweep), re.MULTILINE)[:3]
    assert gained.startswith("2.00× (") and lost.startswith("0.50× (")
    assert "(inconclusive; " in even


def test_a_cell_that_is_to_run_is_told_from_one_that_nobody_asked_for():
    there = (compiled_cell("flux"), compiled_cell("flux", batch_size=5, scope="regional"))
    left = compiled_cell("flux", batch_size=5)
    sweep = swept(*map(make_result, there), asked=make_asked((*there, left)))
    told = "1 to run (flux, batch 5, default of model)"
    assert told in sweep_markdown(sweep) and told in sweep_page(sweep) and told in " ".join(rendered(sweep).split())
    drawn = heat_map(sweep)
    assert [[cell.tone for cell in cells] for _, cells in drawn.rows] == [["gain", "missing"], ["missing", "gain"]]
    assert (drawn.rows[1][1][0].text, drawn.rows[0][1][1].text) == ("to run", MISSING)
    # Of many the first are named.
    cells = [compiled_cell("flux", batch_size=batch) for batch in range(1, 7)]
    told = progress_sentence(swept(make_result(cells[0]), asked=make_asked(cells)))
    assert "5 to run (flux, batch 2, default; flux, batch 3, default; flux, batch 4, default; 2 more)" in told


def test_a_table_of_nothing_but_cells_to_run_is_left_out():
    def without_memory(result: CellResult) -> CellResult:
        forms = tuple(replace(form, memory=None) for form in result.run.forms)
        return with_run(result, forms=forms)

    there = (compiled_cell(), compiled_cell(mode="reduce-overhead"), compiled_cell(batch_size=4))
    asked = make_asked((*there, compiled_cell(batch_size=4, mode="reduce-overhead")))
    found = [make_result(cell) for cell in there]
    memory = matrices(swept(*found, asked=asked))["memory"]
    assert [row[1:] for row in memory.rows] == [("2.00 GiB", "2.00 GiB"), ("2.00 GiB", "to run")]
    assert "memory" not in matrices(swept(*map(without_memory, found), asked=asked))


def test_cells_that_failed_alike_share_a_row_and_their_last_words():
    cells = [make_failure(compiled_cell(batch_size=batch)) for batch in (1, 4)]
    other = make_failure(compiled_cell(batch_size=16), "failed", "another reason")
    sweep = swept(*cells, other, make_result(eager_cell()))
    assert [row[0] for row in tables.failure_table(sweep).rows] == ["vit, batch 1; vit, batch 4", "vit, batch 16"]
    assert [name for name, _ in tables.last_words(sweep)] == [
        "vit, batch 1; vit, batch 4, default: out of memory",
        "vit, batch 16, default: failed",
    ]


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (("failed",), "1 of these failed."),
        (("out_of_memory",), "1 of these failed (out of memory)."),
        (("failed", "killed", "killed"), "3 of these failed (2 killed)."),
        (("timed_out", "killed"), "2 of these failed (1 timed out, 1 killed)."),
    ],
)
def test_how_many_cells_failed_is_told_once_and_by_their_own_name(kinds, words):
    cells = [make_failure(compiled_cell(batch_size=batch), kind) for batch, kind in enumerate(kinds, 1)]
    sweep = swept(*cells, make_result(eager_cell()))
    assert progress_sentence(sweep).endswith(f", {words}")
    told = {check.text.partition(":")[0] for check in sweep_overview(sweep).checks}
    assert told == {"2 cells" if kinds.count(kind) == 2 else "1 cell" for kind in kinds}


def test_a_tie_says_within_how_much_and_beside_each_speed_up_stands_its_median():
    ways = ((compiled_cell(), 10_000.0, 4_000.0), (compiled_cell(mode="reduce-overhead"), 11_000.0, 4_300.0))
    found = [make_result(cell, eager, compiled, share=0.0002) for cell, eager, compiled in ways]
    sweep = swept(make_result(eager_cell(), 10_000.0, share=0.0002), *found)
    # Eager took 10 % longer in one process, so that 2 % between the two are nothing, whichever has fewer milliseconds.
    latency = r"tie within 10\.\d %: reduce-overhead, 2\.56× \(4\.\d+ ms\); default, 2\.50× \(4\.0"
    assert re.match(latency, str(tables.best_table(sweep).rows[0][1]))
    (work,) = sweep.works
    tie = work.best[0]
    closer = replace(tie, candidates=tuple(replace(each, needed=each.needed and 0.001) for each in tie.candidates))
    assert best_words(closer, label(sweep), work).startswith("tie, intervals meet: ")
    # Of several that tie the one that would have to be farthest behind tells within how much.
    first, second, third = (replace(each, key=str(at)) for at, each in enumerate(tie.candidates))
    wider = (first, replace(second, needed=0.3), replace(third, value=first.value, needed=0.02))
    of_three = best_words(replace(tie, candidates=wider, tied=(0, 1, 2)), label(sweep), work)
    assert of_three.startswith("tie within 30.0 %: ")
    # Starts are between two numbers: two whose larger ones are far apart tie by the smaller ones.
    start = replace(tie, goal="cold_start", calls=1)
    assert best_words(start, label(sweep), work).startswith("tie within 10.")
    start = replace(closer, goal="cold_start", calls=1)
    assert best_words(start, label(sweep), work).startswith("tie within 0.1 % at the lower ends: ")


def test_notes_are_named_where_they_are_folded_away():
    sweep = vision()
    (work, *more) = sweep.works
    noted = replace(work, cells=(replace(work.cells[0], notes=(CacheNotEmpty(),)), *work.cells[1:]))
    told = "1 cell has notes (Notes on single cells)."
    assert told not in sweep_markdown(sweep) + sweep_page(sweep)
    sweep = replace(sweep, works=(noted, *more))
    assert told in sweep_markdown(sweep) and told in sweep_page(sweep)


def test_of_many_works_eagers_commands_are_told_once():
    sweep = vision()
    table = tables.command_table(sweep)
    brief = tables.command_table(replace(sweep, works=sweep.works * (1 + MOST_WORKS)))
    assert {row[1] for row in table.rows} - {row[1] for row in brief.rows} == {"eager"}
    assert (table.note, "leave out --compiled" in brief.note) == ("", True)
    # What nothing but eager is best for keeps its command.
    slow = swept(make_result(eager_cell()), make_result(compiled_cell(), 8_000.0, 16_000.0, reserved=4.0))
    many = replace(slow, works=slow.works * (1 + MOST_WORKS))
    assert {row[1] for row in tables.command_table(many).rows} == {"eager"}


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_opens_quietly_and_reads_well(tmp_path, width, dark):
    with opened(written(tmp_path, sweep_page(vision(), COMMAND)), width=width, dark=dark) as visited:
        page = visited.page
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        for each in page.query_selector_all("summary"):
            each.click()
        assert violations(page) == []
        assert was_quiet(visited)


def test_each_process_of_a_cell_has_a_row_with_its_host_and_the_speed_up_its_margin():
    assert tables.process_table(vision()) is None and "±" not in rendered(vision())
    eager = repeated(eager_cell(), 1.0, 1.0, 1.0)
    sweep = swept(*eager, *repeated(compiled_cell(), 1.9, 2.0, 2.1), make_result(compiled_cell(batch_size=4)))
    rows = tables.process_table(sweep).rows
    assert [(row[1], row[2], row[7], row[8]) for row in rows[:6]] == [
        (way, str(number), f"host-{number}", f"GPU-{number}") for way in ("eager", "default") for number in (1, 2, 3)
    ]
    assert len(rows) == 7 and [row[6] for row in rows[3:6]] == ["1.90×", "2.00×", "2.10×"]
    assert [row[2] for row in tables.cell_table(sweep).rows] == ["120", "40"], "calls of all processes"
    assert len(tables.conditions_table(sweep).rows) == 7
    terminal = rendered(sweep)
    assert re.search(r"2\.0× ±1\d\.\d %", terminal) and "3 processes each" in terminal
    for text in (sweep_markdown(sweep), sweep_page(sweep)):
        assert "Several processes per cell" in text
    assert "1 process of these to run" in progress_sentence(replace(sweep, processes_missing=1))
