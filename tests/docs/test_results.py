"""docs/results.md and README's table are what results/ holds, and that is what committed runs and sweeps say."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.making.collecting import RESULTS, asked_for, collect_run, collect_sweep, read_runs, shortened, write
from docs.making.results import PAGE, README, page, pays_after, readme, row, runs, sweep
from tracekit.model.comparison import Comparison
from tracekit.model.workload import Request

from ..traces import PRIVATE, RUNS, SWEEP
from .texts import ROOT


def test_the_page_is_what_the_results_make() -> None:
    # `make results` writes both.
    assert PAGE.read_text(encoding="utf-8") == page()
    text = README.read_text(encoding="utf-8")
    assert text == readme(text)


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_what_is_kept_of_a_run_is_what_its_folder_says(folder: Path, compared: Callable[[Path], Comparison]) -> None:
    kept = {run["name"]: run for run in read_runs()}
    found = collect_run(ROOT / folder, compared(folder))
    # Figures are kept with seven digits.
    text = json.dumps(kept[found["name"]])
    assert json.loads(json.dumps(found)) == json.loads(
        text, parse_float=lambda figure: pytest.approx(float(figure), rel=1e-6, abs=1e-3)
    )


def test_what_is_kept_of_a_sweep_is_what_its_folder_says() -> None:
    text = (RESULTS / f"sweep-{SWEEP.name}.json").read_text(encoding="utf-8")
    kept = json.loads(text, parse_float=lambda figure: pytest.approx(float(figure), rel=1e-6, abs=0))
    assert json.loads(json.dumps(collect_sweep(ROOT / SWEEP))) == kept


def test_every_run_has_its_command_and_every_figure_of_the_page() -> None:
    assert len(runs()) == 41
    for run in runs():
        assert shortened(run["command"]) == run["works_as"]
        assert run["works_as"] in row(run)
        low, high = run["verdict"]["ci95"]
        assert low <= run["verdict"]["speedup"] <= high


def test_results_name_no_machine() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in RESULTS.iterdir()}
    assert "runs.json" in texts
    assert {name: PRIVATE.search(text) for name, text in texts.items()} == dict.fromkeys(texts)


def test_a_sweep_has_a_row_for_each_work_and_a_column_for_each_form() -> None:
    lines = sweep("sweep-h200-qwen2.5-vl").splitlines()
    assert "| work | eager | default | reduce-overhead | reduce-overhead, language |" in lines
    assert "| qwen2.5-vl, batch 3, 448×448, decode, static | 27.9 ms | — | 5.77× | — |" in lines


def test_break_even_lies_between_two_numbers_and_may_never_come() -> None:
    assert pays_after({"calls": 320.2, "calls_at_most": 350.1, "never": False}) == "321 to 351"
    assert pays_after({"calls": 320.2, "calls_ci95": [300.5, 340.0], "never": False}) == "301 to 340"
    assert pays_after({"calls": 320.2, "never": False}) == "321"
    assert (pays_after({"never": True}), pays_after({"never": False}), pays_after(None)) == ("never", "—", "—")
    assert pays_after({"calls_at_most": 452.6, "never": False}) == "at most 453"


def test_no_faster_run_never_pays() -> None:
    for run in runs():
        assert run["verdict"]["speedup"] < 1 or "never" not in row(run), run["name"]


def test_a_file_of_results_has_a_line_for_each_entry(tmp_path: Path) -> None:
    told = {"schema": "x/1", "runs": [{"a": 0.1 + 0.2}, {"b": None}]}
    write(tmp_path / "runs.json", told, "runs")
    text = (tmp_path / "runs.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"schema": "x/1", "runs": [{"a": 0.3}, {"b": None}]}
    assert '  {"a":0.3},\n  {"b":null}\n' in text


def test_a_command_is_told_without_what_every_run_has() -> None:
    command = "tracekit profile flux --compiled --mode reduce-overhead --out traces/x --time-budget 20 --no-provenance"
    assert shortened(command) == "flux --mode reduce-overhead"
    assert shortened("tracekit profile qwen2.5-vl --size 3b --phase generate") == "qwen2.5-vl --size 3b"
    told = shortened("TRITON_A=1 TRITON_B='2 3' tracekit profile beit --compiled --mode reduce-overhead --out x")
    assert told == "TRITON_A=1 TRITON_B='2 3' tracekit profile beit --mode reduce-overhead"


def test_a_request_is_told_as_the_command_that_asks_for_it() -> None:
    asked = Request("flux", fullgraph=False, prompt="a red fox", iterations=7, batch_size=2)
    assert asked_for(asked) == "flux --no-fullgraph --batch-size 2 --prompt 'a red fox'"
    assert asked_for(Request("vit", fullgraph=True, size="full", scope="model")) == "vit --fullgraph"
    assert asked_for(Request("my.models:build", options=("depth=3",))) == "my.models:build -- depth=3"
