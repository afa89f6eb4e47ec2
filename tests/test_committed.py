"""The committed runs and reports: they must stay readable, agree with each other, and name nobody's machine."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docs.making.reports import write_reports
from docs.making.trimming import trimmed, unpacked
from tracekit import store
from tracekit.comparison.comparing import compare
from tracekit.model.comparison import Comparison
from tracekit.reading.sides import load_side
from tracekit.reading.traces import Reading
from tracekit.report.contract import comparison_json

from .traces import FLUX, PRIVATE, ROOT, RUNS, recording

RUN = ROOT / FLUX


@pytest.fixture
def flux(compared: Callable[[Path], Comparison]) -> Comparison:
    return compared(FLUX)


def test_the_sample_run_is_of_the_published_model_on_a_real_gpu() -> None:
    run = store.load(RUN)
    assert run.status == "complete"
    assert run.environment.gpu == "NVIDIA H100 80GB HBM3"
    assert (run.settings.size, run.settings.height, run.settings.width) == ("full", 512, 512)
    assert {part.name: part.parameters for part in run.components}["transformer"] == 11_901_408_320
    assert all(form.compilation is None or form.compilation.during_timing == 0 for form in run.forms)


def committed_reports() -> list[Path]:
    kept = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    return [ROOT / line[2:] for line in kept if line.startswith("!/reports/")]


def test_every_committed_report_is_one_that_readme_leads_to() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [path for path in committed_reports() if path.suffix == ".html"]
    assert [path.name for path in committed_reports() if f"reports/{path.stem}.md" not in text] == []
    assert len(pages) == 2 and all(0 < path.stat().st_size < 500_000 for path in pages)


def test_reading_a_committed_run_writes_its_report_byte_by_byte(tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in committed_reports()}
    write_reports()
    # However much the terminal shows, and whatever is written beside the report.
    command = ["compare", str(RUNS[2]), "-q", "--json", str(tmp_path / "told.json")]
    subprocess.run([sys.executable, "-m", "tracekit", *command], cwd=ROOT, check=True, capture_output=True)
    assert [path.name for path, content in before.items() if path.read_bytes() != content] == []


@pytest.mark.parametrize("form", ["eager", "compiled"])
def test_light_and_rich_recordings_of_the_sample_agree(form: str, flux: Comparison) -> None:
    side = flux.a if form == "eager" else flux.b
    light, rich = side.analysis, side.rich
    assert rich is not None and side.label == form
    assert {step.kernels for step in light.steps} == {step.kernels for step in rich.steps}
    for analysis in (light, rich):
        assert analysis.launches is not None and analysis.launches.unlinked_kernels == 0
        assert [finding for finding in analysis.health if finding.severity == "error"] == []
    # Profiling hardly moves the GPU's own time: within 4 % in the field notes' measurements.
    assert light.steps[0].busy_us == pytest.approx(rich.steps[0].busy_us, rel=0.04)


def test_the_waterfall_closes_and_idle_causes_keep_what_the_light_recording_measured(flux: Comparison) -> None:
    sides, waterfall = (flux.a, flux.b), flux.waterfall
    assert waterfall is not None
    closing = waterfall.a_us + sum(part.delta_us for part in waterfall.parts)
    assert closing + waterfall.residual_us == pytest.approx(waterfall.b_us)
    # What the causes of both sides do not explain, and nothing else.
    unexplained = [side.idle_residual_us for side in sides]
    assert waterfall.residual_us == pytest.approx(unexplained[1] - unexplained[0])
    for side in sides:
        idle = side.analysis.idle
        assert idle is not None
        light = {each.cause: each.us / side.steps for each in idle.causes}
        shown = side.idle_by_cause()
        assert (shown["device"], shown["launch_call"]) == (light["device"], light["launch_call"])
        assert sum(shown.values()) == pytest.approx(side.recorded_idle_us)
    # The rich eager recording has six times the idle time: its proportions would turn the change of device gaps around.
    eager, compiled = (side.idle_ranges() for side in sides)
    assert eager is not None and compiled is not None and compiled["device"].us < eager["device"].us


def test_committed_runs_and_reports_name_no_machine() -> None:
    paths = [*committed_reports(), *(path for run in RUNS for path in (ROOT / run).iterdir() if path.suffix != ".png")]
    texts = [(path, unpacked(path).decode()) for path in paths]
    assert len(texts) > 20
    private = [(path.name, PRIVATE.search(text)) for path, text in texts]
    assert [each for each in private if each[1]] == []
    assert [path.name for path, text in texts if "host_name" in text] == []


def test_a_trimmed_run_holds_what_is_read_and_nothing_else() -> None:
    for path in RUN.glob("*.json.zst"):
        trace = json.loads(unpacked(path))
        assert trimmed(trace) == trace
        assert len(trace["traceEvents"]) > 20_000


def test_trimming_leaves_the_figures(tmp_path: Path) -> None:
    names = ("vit_eager", "vit_default")
    whole = [recording(name) for name in names]
    small = [tmp_path / f"{name}.json" for name in names]
    for path, other in zip(whole, small, strict=True):
        trace = json.loads(unpacked(path))
        other.write_text(json.dumps(trimmed(trace)))
        assert len(other.read_text()) < len(json.dumps(trace))
    sides = ([load_side(path, reading=Reading(shapes=True)) for path in paths] for paths in (whole, small))
    one, other = (json.loads(comparison_json(compare(*each))) for each in sides)
    assert one["groups"] and one["traffic"]
    for key in ("verdict", "deltas", "waterfall", "coverage", "findings", "groups", "traffic", "break_even"):
        assert without_places(one[key]) == without_places(other[key]), key


def without_places(told: Any) -> Any:
    """The figures, without the paths of recordings."""
    if isinstance(told, dict):
        return {key: without_places(value) for key, value in told.items() if key != "path"}
    return [without_places(each) for each in told] if isinstance(told, list) else told
