"""What a sweep's reports say of changes that are no larger than processes of the eager form are apart."""

import json
import re
from pathlib import Path

import pytest
from tests.report.showing import sweep_markdown, sweep_page
from tests.sweeps import compiled_cell, eager_cell, make_result

from tracekit.cli.sweep_report import load_sweep
from tracekit.comparison.sweeping.works import read_sweep
from tracekit.model.sweep import CellResult
from tracekit.model.sweep_figures import Sweep
from tracekit.report.contract import sweep_json
from tracekit.report.sweep.figures import heat_map, speedup_table
from tracekit.report.sweep.tables import cell_table, published_table
from tracekit.report.sweep.words import SLIGHT_NOTE, headline, slight_note, spread_notes
from tracekit.workloads.suites import VISION

from .test_reports import MODES, rendered

ROOT = Path(__file__).parents[3]
WITHIN = "within eager's process spread"


def cells_of(apart: float, *speedups: float, batch: int = 1) -> tuple[CellResult, ...]:
    """A work whose eager processes are so far apart, and a compiled cell for each speed-up, in a mode of its own."""
    slow = 10_000.0 * (1 + apart)
    compiled = (
        make_result(compiled_cell(mode=mode, batch_size=batch), slow, slow / speedup, share=0.0)
        for mode, speedup in zip(MODES, speedups, strict=False)
    )
    return (make_result(eager_cell(batch_size=batch), 10_000.0, share=0.0), *compiled)


def sweep_of(*works: tuple[CellResult, ...]) -> Sweep:
    return read_sweep("vit", None, [cell for work in works for cell in work], VISION, 1000)


def test_the_mark_stands_after_the_speed_up_everywhere_and_is_explained() -> None:
    sweep = sweep_of(cells_of(0.2, 1.1, 3.0))
    assert [row[1:] for row in speedup_table(sweep).rows] == [
        ("1.10×~ (1.100 to 1.100); 12.000 to 10.909", "3.00× (3.000 to 3.000); 12.000 to 4.000")
    ]
    assert speedup_table(sweep).note.endswith(SLIGHT_NOTE)
    drawn, cells, published = heat_map(sweep), cell_table(sweep), published_table(sweep)
    assert [cell.text for cell in drawn.rows[0][1]] == ["1.10×~", "3.00×"]
    assert [row[5].split(" ")[0] for row in cells.rows] == ["1.10×~", "3.00×"]
    assert published.rows[0][-1].startswith("1.10×~ (") and SLIGHT_NOTE in published.note
    terminal = rendered(sweep)
    assert re.findall(r"\d×~? \(\d\.\d+ to", terminal) == ["0×~ (1.100 to", "0× (3.000 to"]
    assert SLIGHT_NOTE in " ".join(terminal.split())
    page, twin = sweep_page(sweep), sweep_markdown(sweep).replace("\\", "")
    assert ">1.10×~<" in page and SLIGHT_NOTE in page
    assert "| 1.10×~ (" in twin and SLIGHT_NOTE in twin
    told = [cell.get("within_eager_spread") for cell in json.loads(sweep_json(sweep))["works"][0]["cells"]]
    assert told == [None, True, False]


def test_without_such_a_change_there_is_no_mark_and_no_word_of_it() -> None:
    sweep = sweep_of(cells_of(0.04, 1.1, 3.0))
    assert slight_note(sweep) == "" and spread_notes(sweep) == ()
    for text in (rendered(sweep), sweep_markdown(sweep), re.sub(r"<(style|script).*?</\1>", "", sweep_page(sweep))):
        assert "~" not in text


@pytest.mark.parametrize(
    ("works", "words"),
    [
        ([cells_of(0.01, 1.1, 3.0, 2.0)], "3 of 3 configs faster (up to 3.00×)."),
        ([cells_of(0.2, 1.1, 1.5, 2.0)], f"2 of 3 configs faster (up to 2.00×), 1 {WITHIN}."),
        ([cells_of(0.2, 1.1, 0.5)], f"0 of 2 configs faster, 1 {WITHIN}, 1 slower."),
        # The largest gain of all is marked: another is the most.
        (
            [cells_of(1.0, 1.9), cells_of(0.01, 1.3, batch=4)],
            f"1 of 2 configs faster (up to 1.30×), 1 {WITHIN}.",
        ),
        # A loss within the spread is no gain.
        ([cells_of(0.2, 0.9)], "0 of 1 config faster, 1 slower."),
    ],
)
def test_a_count_of_what_is_faster_claims_no_marked_one(works: list[tuple[CellResult, ...]], words: str) -> None:
    assert headline(sweep_of(*works)) == f"vit: {words}"


@pytest.mark.parametrize(
    ("works", "work", "spread", "slight", "compared"),
    [
        ((cells_of(0.272, 1.1, 0.9, 3.0), cells_of(0.03, 1.02, batch=4)), "vit, batch 1", 0.272, 3, 4),
        ((cells_of(0.03, 1.02, 2.0),), "vit, batch 1", 0.03, 1, 2),
        ((cells_of(0.02, 2.0), cells_of(0.1, 2.0, batch=4)), "vit, batch 4", 0.1, 0, 2),
        ((cells_of(0.06, 2.0),), "vit, batch 1", 0.06, 0, 1),
    ],
)
def test_the_widest_work_is_named_with_how_many_changes_are_no_larger_than_their_own(
    works: tuple[tuple[CellResult, ...], ...], work: str, spread: float, slight: int, compared: int
) -> None:
    (told,) = spread_notes(sweep_of(*works))
    facts = {"work": work, "spread": pytest.approx(spread, abs=1e-3), "slight": slight, "compared": compared}
    assert (told.code, told.facts) == ("eager_process_spread", facts)


def test_one_process_and_processes_that_agree_are_not_mentioned() -> None:
    assert spread_notes(sweep_of(cells_of(0.049, 2.0))) == ()
    assert spread_notes(read_sweep("vit", None, (make_result(compiled_cell()),), None, 1000)) == ()


def test_of_the_committed_sweep_every_gain_is_larger_than_eager_s_spread() -> None:
    sweep = load_sweep(ROOT / "sweeps" / "h200-qwen2.5-vl", calls=1000)
    assert headline(sweep) == "h200-qwen2.5-vl: 3 of 3 configs faster (up to 5.77×)."
    assert [cell.cell.key for cell in sweep.cells if cell.within_eager_spread] == []
    assert sweep.notes[0].facts["spread"] == pytest.approx(0.065, abs=1e-3)
