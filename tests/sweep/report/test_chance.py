"""What a sweep's reports say of changes that may be chance, and of a best that was measured again."""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.report.showing import text_of
from tests.sweep.report.showing import sweep_markdown, sweep_page
from tests.sweep.sweeps import compiled_cell, eager_cell, make_failure, make_result

from tracekit.report.contract import json_text
from tracekit.sweep.cells import CONFIRMING, CellResult
from tracekit.sweep.commands.showing import load_sweep
from tracekit.sweep.figures import Sweep
from tracekit.sweep.reading.works import read_sweep
from tracekit.sweep.report.matrices import heat_map
from tracekit.sweep.report.tables import best_table, cell_table, published_table
from tracekit.sweep.report.words import CHANCE_NOTE, THESE_PROCESSES_NOTE, chance_note, headline, spread_notes
from tracekit.sweep.suites import VISION

from .test_reports import MODES, rendered

ROOT = Path(__file__).parents[3]


def cells_of(*speedups: float, batch: int = 1, apart: float = 0.0) -> tuple[CellResult, ...]:
    """A compiled cell for each speed-up, in a mode of its own; eager took so much less time in a process of its own."""
    slow = 10_000.0 * (1 + apart)
    compiled = (
        make_result(compiled_cell(mode=mode, batch_size=batch), slow, slow / speedup, share=0.0)
        for mode, speedup in zip(MODES, speedups, strict=False)
    )
    return (make_result(eager_cell(batch_size=batch), 10_000.0, share=0.0), *compiled)


def sweep_of(*works: tuple[CellResult, ...], again: tuple[CellResult, ...] = ()) -> Sweep:
    return read_sweep("vit", None, [cell for work in works for cell in work], VISION, 1000, again)


def confirmed(speedup: float) -> Sweep:
    """Of modes that read 1.5, 2 and 1.4 the best, measured again."""
    there = make_result(compiled_cell(mode=MODES[1]), 10_000.0, 10_000.0 / speedup, share=0.0)
    return sweep_of(cells_of(1.5, 2.0, 1.4), again=(replace(there, process=CONFIRMING),))


def everywhere(sweep: Sweep) -> tuple[str, str, str]:
    """Its words in the terminal, on the page and in Markdown."""
    page, twin = text_of(sweep_page(sweep)), sweep_markdown(sweep).replace("\\", "")
    return " ".join(rendered(sweep).split()), page, twin


def test_the_mark_stands_after_the_speed_up_everywhere_and_is_explained() -> None:
    sweep = sweep_of(cells_of(1.1, 3.0, apart=0.2))
    assert "| 1.10×~ (inconclusive; 1.100 to 1.100; 12.000 to 10.909 ms) | 3.00× (" in everywhere(sweep)[2]
    drawn, cells, published = heat_map(sweep), cell_table(sweep), published_table(sweep)
    assert [(cell.text, cell.tone) for cell in drawn.rows[0][1]] == [("1.10×~", "even"), ("3.00×", "gain")]
    assert [(row[5].split(" ")[0], *row[6:8]) for row in cells.rows] == [
        ("1.10×~", "inconclusive", "24.7 %"),
        ("3.00×", "faster", "< 0.1 %"),
    ]
    assert published.rows[0][-1] == "1.10× (1.100 to 1.100), inconclusive"
    assert {*re.findall(r"\d×~? \(\d\.\d+ to", rendered(sweep))} >= {"0×~ (1.100 to", "0× (3.000 to"}
    assert all(CHANCE_NOTE in text for text in everywhere(sweep))
    told = [(cell["result"], cell["verdict"] and cell["verdict"]["result"]) for cell in cells_in_json(sweep)]
    assert told == [(None, None), ("inconclusive", "faster"), ("faster", "faster")]


def cells_in_json(sweep: Sweep) -> list[dict]:
    return json.loads(json_text(sweep))["works"][0]["cells"]


def test_without_such_a_change_there_is_no_mark_and_no_word_of_it() -> None:
    sweep = sweep_of(cells_of(1.5, 3.0))
    assert chance_note(sweep) == "" and spread_notes(sweep) == ()
    for text in (rendered(sweep), sweep_markdown(sweep), re.sub(r"<(style|script).*?</\1>", "", sweep_page(sweep))):
        assert "~" not in text


@pytest.mark.parametrize(
    ("works", "words"),
    [
        ([cells_of(1.5, 3.0)], "2 of 2 configs faster (up to 3.00×)."),
        ([cells_of(1.1, 1.5, 2.0)], "2 of 3 configs faster (up to 2.00×), 1 inconclusive."),
        ([cells_of(1.1, 0.5)], "0 of 2 configs faster, 1 slower, 1 inconclusive."),
        ([cells_of(1.1), cells_of(1.3, batch=4)], "1 of 2 configs faster (up to 1.30×), 1 inconclusive."),
        ([cells_of(0.9)], "0 of 1 config faster, 1 inconclusive."),
    ],
)
def test_a_count_of_what_is_faster_claims_no_marked_one(works: list[tuple[CellResult, ...]], words: str) -> None:
    assert headline(sweep_of(*works)) == f"vit: {words}"


def test_on_a_cpu_the_words_are_of_these_processes() -> None:
    def on_cpu(result: CellResult) -> CellResult:
        return replace(result, run=replace(result.run, settings=replace(result.run.settings, device="cpu")))

    sweep = sweep_of(tuple(map(on_cpu, cells_of(1.1, 3.0))))
    assert headline(sweep) == "vit: 2 of 2 configs faster in these processes (up to 3.00×)."
    assert all(THESE_PROCESSES_NOTE in text for text in everywhere(sweep))


def test_the_widest_work_is_named() -> None:
    (told,) = spread_notes(sweep_of(cells_of(1.1, apart=0.272), cells_of(2.0, batch=4, apart=0.1)))
    assert (told.code, told.facts) == (
        "eager_process_spread",
        {"work": "vit, batch 1", "spread": pytest.approx(0.272, abs=1e-3)},
    )
    assert spread_notes(sweep_of(cells_of(2.0, apart=0.049))) == ()
    assert spread_notes(read_sweep("vit", None, (make_result(compiled_cell()),), None, 1000)) == ()


@pytest.mark.parametrize(
    ("speedup", "told", "more", "most"),
    [
        (1.8, "5.556 ms, next process 1.52-2.13×", "", " (up to 1.80×, measured again)"),
        (1.45, "6.897 ms, next process 1.23-1.71×", ", not faster than the next", " (up to 1.45×, measured again)"),
        (0.9, "11.111 ms, next process 0.76-1.07×", ", not faster than eager then", ""),
    ],
)
def test_of_the_best_the_figure_of_the_other_process_is_told(speedup: float, told: str, more: str, most: str) -> None:
    sweep = confirmed(speedup)
    words = f"reduce-overhead, {speedup:.2f}× (measured again: {told}, 2.00× when chosen{more})"
    assert headline(sweep) == f"vit: 3 of 3 configs faster{most}."
    assert all(words in text for text in everywhere(sweep))
    assert json.loads(json_text(sweep))["works"][0]["best"][0]["confirmed"]["speedup"] == pytest.approx(speedup)


def test_that_the_best_was_not_measured_again_or_failed_then_is_told() -> None:
    sweep = sweep_of(cells_of(1.5, 2.0, 1.4))
    assert all("reduce-overhead, 2.00× (5.000 ms, not measured again)" in text for text in everywhere(sweep))
    failed = replace(make_failure(compiled_cell(mode=MODES[1])), process=CONFIRMING)
    sweep = sweep_of(cells_of(1.5, 2.0, 1.4), again=(failed,))
    assert all("2.00× (5.000 ms, measuring it again: out of memory)" in text for text in everywhere(sweep))
    assert headline(sweep) == "vit: 3 of 3 configs faster (up to 2.00×)."
    # Of two modes nobody says so.
    assert "again" not in str(best_table(sweep_of(cells_of(1.5, 2.0))).rows)


def test_of_the_committed_sweep_every_gain_is_beyond_chance() -> None:
    sweep = load_sweep(ROOT / "sweeps" / "h200-qwen2.5-vl", calls=1000)
    assert headline(sweep) == "h200-qwen2.5-vl: 3 of 3 configs faster (up to 5.77×)."
    assert [cell.result for cell in sweep.cells if cell.result != "faster"] == [None] * 4
    assert sweep.notes[0].facts["spread"] == pytest.approx(0.065, abs=1e-3)
