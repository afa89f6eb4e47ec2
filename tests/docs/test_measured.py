"""README's table of findings is what the runs say."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from docs.making.measured import (
    MARKS,
    Row,
    _asked,
    _report,
    line,
    merged,
    read_cells,
    read_kept,
    read_row,
    shortened,
    table,
)
from tracekit.model.workload import Request

from .texts import ROOT


@cache
def cells(name: str) -> list[Row]:
    """The rows of a committed sweep."""
    return read_cells(ROOT / "sweeps" / name)


def test_the_table_in_readme_is_made_of_what_was_kept() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.partition(MARKS[0])[2].partition(MARKS[1])[0] == table(read_kept())


@pytest.mark.parametrize("name", sorted(place.name for place in (ROOT / "traces").glob("h200-*")))
def test_what_was_kept_is_what_a_committed_run_says(name: str) -> None:
    found = read_row(ROOT / "traces" / name)
    assert found in read_kept()


@pytest.mark.parametrize("name", ["h200-vision", "h200-flux", "h200-qwen2.5-vl", "h200-causal-lm"])
def test_what_was_kept_is_what_a_committed_sweep_says(name: str) -> None:
    kept = {row.command: row for row in read_kept()}
    for found in cells(name):
        there = kept[found.command]
        assert there == found or there.why is not None


def test_of_a_sweep_the_fastest_cell_of_each_work_at_its_smallest_batch_is_a_row() -> None:
    rows = {row.command.split()[0]: row for row in cells("h200-vision")}
    assert len(rows) == 12
    resnet = rows["resnet"]
    assert resnet.command == "resnet --mode reduce-overhead"
    cell = json.loads(next((ROOT / "sweeps/h200-vision/cells").glob("resnet-b1-*-reduce-overhead-*")).read_text())
    eager, compiled = (form["times"]["wall_us"] for form in cell["run"]["forms"])
    assert (resnet.eager_us, resnet.compiled_us) == (median(eager), median(compiled))
    assert resnet.compile_seconds == cell["run"]["forms"][1]["compilation"]["seconds"]
    assert (rows["beit"].command, rows["beit"].result) == ("beit", "faster")


def test_a_run_takes_the_place_of_a_cell_and_no_cell_that_of_a_run() -> None:
    run = replace(read_row(ROOT / "traces" / "h200-vit"), command="resnet --mode reduce-overhead")
    (cell,) = (row for row in cells("h200-vision") if row.command == run.command)
    assert merged([cell], [run]) == merged([run], [cell]) == [run]
    newer = replace(cell, eager_us=1.0)
    assert merged([cell], [newer]) == [newer]
    flux = replace(run, command="flux --scope all")
    theirs = replace(run, command="hf:google/vit-base-patch16-224")
    assert merged([run, theirs], [flux]) == [flux, run, theirs], "as `tracekit workloads` lists them, and others last"


def test_a_cell_is_told_as_the_command_that_asks_for_it() -> None:
    asked = Request("flux", fullgraph=False, prompt="a red fox", iterations=7, batch_size=2)
    assert _asked(asked) == "flux --no-fullgraph --batch-size 2 --prompt 'a red fox'"
    assert _asked(Request("vit", fullgraph=True, size="full", scope="model")) == "vit --fullgraph"
    assert _asked(Request("my.models:build", options=("depth=3",))) == "my.models:build -- depth=3"


def test_a_run_that_established_no_difference_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.comparison.comparing.find_reason", lambda *_: None)
    with pytest.raises(SystemExit, match="which is no finding"):
        read_row(ROOT / "traces" / "h200-vit")


def test_a_row_leads_to_the_page_that_shows_the_rest() -> None:
    run = read_row(ROOT / "traces" / "h200-vit")
    assert line(run).startswith("| [`vit`](reports/h200-vit.md) | ")
    assert line(replace(run, report=None)).startswith("| `vit` | ")
    assert (_report("h200-vit"), _report("h200-of-nothing")) == ("reports/h200-vit.md", None)
    assert {row.report for row in cells("h200-vision")} == {"reports/sweep-h200-vision.md"}
    for row in read_kept():
        assert row.report is None or (ROOT / row.report).is_file()


def test_a_command_is_told_without_what_every_row_has() -> None:
    command = "tracekit profile flux --compiled --mode reduce-overhead --out traces/x --time-budget 20 --no-provenance"
    assert shortened(command) == "flux --mode reduce-overhead"
    assert shortened("tracekit profile vit --batch-size 4 --mode reduce-overhead --repeat-process 4") == (
        "vit --mode reduce-overhead --batch-size 4"
    )
    assert shortened("tracekit profile qwen2.5-vl --size 3b --phase generate") == "qwen2.5-vl --size 3b"


def test_variables_of_a_command_stand_before_all_of_it_and_its_row_among_its_workload_s() -> None:
    told = shortened("TRITON_A=1 TRITON_B='2 3' tracekit profile beit --compiled --mode reduce-overhead --out x")
    assert told == "TRITON_A=1 TRITON_B='2 3' tracekit profile beit --mode reduce-overhead"
    row = replace(read_row(ROOT / "traces" / "h200-vit"), command=told)
    other = replace(row, command="vit")
    assert merged([other, replace(row, command="mlp")], [row])[:2] == [other, row]


def test_calls_are_rounded_up_and_may_never_pay() -> None:
    row = Row("vit", "NVIDIA H200", "2.11", 2000.0, 1000.0, 2.0, (1.9, 2.1), 12.3, 1000.2, "the GPU waits 1.00 ms less")
    assert "| 12 s | 1,001 calls | the GPU waits 1.00 ms less |" in line(row)
    assert line(replace(row, why=None, result="slower", pays_after_calls=None)).endswith("| never | not recorded |\n")
    undecided = line(replace(row, why=None, result="inconclusive", pays_after_calls=None))
    assert undecided.endswith("| not known | inconclusive, not recorded |\n")
    assert "| never |" in line(Row("vit", "", "", 1.0, 2.0, 0.5, (0.4, 0.6), 1.0, None, ""))
