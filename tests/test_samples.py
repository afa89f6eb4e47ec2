"""The committed runs and reports: they must stay readable, agree with each other, and name nobody's machine."""

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from docs.making.samples import SAMPLES, write_sample
from docs.making.trimming import main as trim
from docs.making.trimming import trimmed, unpacked
from tracekit import store
from tracekit.analysis import analyze
from tracekit.comparison import compare
from tracekit.report.contract import comparison_json
from tracekit.tracefile import read_trace
from tracekit.walks.sides import compare_forms, load_side

from .browser import open_page
from .traces import PRIVATE, RUNS

ROOT = Path(__file__).parents[1]
RUN = ROOT / "traces" / "h200-flux-compiled"


def test_the_sample_run_is_of_the_published_model_on_a_real_gpu() -> None:
    run = store.load(RUN)
    assert run.status == "complete"
    assert run.environment.gpu == "NVIDIA H200"
    assert (run.settings.size, run.settings.height, run.settings.width) == ("full", 512, 512)
    assert {part.name: part.parameters for part in run.components}["transformer"] == 11_901_408_320
    assert all(form.compilation is None or form.compilation.during_timing == 0 for form in run.forms)


def test_every_sample_is_one_that_readme_leads_to() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in SAMPLES.iterdir()]
    assert len(names) == 5
    assert [name for name in names if f"samples/{name}" not in text] == []


@pytest.mark.parametrize("form", ["eager", "compiled"])
def test_light_and_rich_recordings_of_the_sample_agree(form: str) -> None:
    run = store.load(RUN)
    result = next(each for each in run.forms if each.name == form)
    light, rich = (analyze(read_trace(store.recording_path(RUN, result, kind))) for kind in ("light", "rich"))  # type: ignore[arg-type]
    assert {step.kernels for step in light.steps} == {step.kernels for step in rich.steps}
    for analysis in (light, rich):
        assert analysis.launches is not None and analysis.launches.unlinked_kernels == 0
        assert [finding for finding in analysis.health if finding.severity == "error"] == []
    # Profiling hardly moves the GPU's own time: within 4 % in the field notes' measurements.
    assert light.steps[0].busy_us == pytest.approx(rich.steps[0].busy_us, rel=0.04)


def test_the_waterfall_closes_and_idle_causes_keep_what_the_light_recording_measured() -> None:
    sides = (load_side(RUN, form="eager"), load_side(RUN, form="compiled"))
    waterfall = compare(*sides, store.load(RUN).order).waterfall
    assert waterfall is not None
    closing = waterfall.a_us + sum(part.delta_us for part in waterfall.parts)
    assert closing + waterfall.residual_us == pytest.approx(waterfall.b_us)
    assert abs(waterfall.residual_us) < 0.03 * waterfall.a_us
    # The rich eager recording has six times the idle time: its proportions would turn the change of device gaps around.
    for side in sides:
        idle = side.analysis.idle
        assert idle is not None
        light = {each.cause: each.us / side.steps for each in idle.causes}
        shown = side.idle_by_cause()
        assert (shown["device"], shown["launch_call"]) == (light["device"], light["launch_call"])
        assert sum(shown.values()) == pytest.approx(side.recorded_idle_us)
    assert sides[1].idle_by_cause()["device"] < sides[0].idle_by_cause()["device"]


def test_samples_name_no_machine() -> None:
    paths = [*SAMPLES.iterdir(), *(path for run in RUNS for path in (ROOT / run).iterdir() if path.suffix != ".png")]
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


def test_trimming_a_run_leaves_its_figures(tmp_path: Path) -> None:
    whole = ROOT / "traces" / "h200-vit"
    folder = tmp_path / whole.name
    shutil.copytree(whole, folder)
    trim(folder)
    assert sum(path.stat().st_size for path in folder.iterdir()) < sum(path.stat().st_size for path in whole.iterdir())
    (one, other) = (json.loads(comparison_json(compare_forms(each, store.load(each)))) for each in (whole, folder))
    for key in ("verdict", "deltas", "waterfall", "coverage", "findings", "groups", "traffic", "break_even"):
        assert without_places(one[key]) == without_places(other[key]), key


def without_places(told: Any) -> Any:
    """The figures, without the paths of recordings."""
    if isinstance(told, dict):
        return {key: without_places(value) for key, value in told.items() if key != "path"}
    return [without_places(each) for each in told] if isinstance(told, list) else told


@pytest.fixture(scope="module", params=RUNS, ids=lambda folder: folder.name)
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The page of a committed run, and its twin; `make samples` writes them anew."""
    with contextlib.chdir(ROOT):
        return write_sample(request.param, tmp_path_factory.mktemp("sample"))


def test_a_committed_twin_is_what_its_run_says_now(sample: tuple[Path, Path]) -> None:
    _, twin = sample
    assert twin.read_text(encoding="utf-8") == (SAMPLES / twin.name).read_text(encoding="utf-8")


@pytest.mark.browser
def test_the_page_of_a_committed_run_opens_without_network_or_complaint(sample: tuple[Path, Path]) -> None:
    path, _ = sample
    visit = open_page(path)
    assert (visit.complaints, visit.requests, visit.spilled) == ((), (), ())
    assert len(visit.charts) >= 3 and "faster compiled" in visit.text
    assert path.stat().st_size < 2_000_000
