"""The committed runs and reports: they must stay readable, agree with each other, and name nobody's machine."""

from __future__ import annotations

import contextlib
import gzip
import re
from pathlib import Path

import pytest

from docs.making.samples import write_sample
from tracekit import store
from tracekit.analysis import analyze
from tracekit.comparison import compare
from tracekit.report.words.common import verdict_evidence, verdict_sentence
from tracekit.tracefile import read_trace
from tracekit.walks.sides import load_side

from .browser import open_page

ROOT = Path(__file__).parents[1]
RUN = ROOT / "traces" / "h200-flux-compiled"
REPORTS = sorted((ROOT / "reports").glob("h200-*.html"))

#: What pages say whose names hold this; all others say that compiled is faster.
SAID = {
    "warmed-up-elsewhere": "the verdict is withheld",
    "deeplabv3-mobilenet-b16": "Compiled is slower than eager: a call takes 1.50× the time.",
}

#: Folders that only exist on the machine a run was made on.
PRIVATE = re.compile(r"/(home|root|tmp|work|opt|mnt|Users|var)/[\w.-]+")


def test_the_sample_run_is_of_the_published_model_on_a_real_gpu() -> None:
    run = store.load(RUN)
    assert run.status == "complete"
    assert run.environment.gpu == "NVIDIA H200"
    assert (run.settings.size, run.settings.height, run.settings.width) == ("full", 512, 512)
    assert {part.name: part.parameters for part in run.components}["transformer"] == 11_901_408_320
    assert all(form.compilation is None or form.compilation.during_timing == 0 for form in run.forms)


def test_every_committed_report_is_one_that_readme_or_docs_lead_to() -> None:
    """What is made in passing is committed as easily: git keeps all pages of these names."""
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    kept = [path for begin in ("h200-", "sweep-h200-") for path in (ROOT / "reports").glob(f"{begin}*")]
    assert len(kept) > 40
    assert [path.name for path in kept if f"reports/{path.stem}" not in text] == []


@pytest.mark.parametrize("form", ["eager", "compiled"])
def test_light_and_rich_recordings_of_the_sample_agree(form: str) -> None:
    run = store.load(RUN)
    result = next(each for each in run.forms if each.name == form)
    light, rich = (analyze(read_trace(store.recording_path(RUN, result, kind))) for kind in ("light", "rich"))  # type: ignore[arg-type]
    assert {step.kernels for step in light.steps} == {step.kernels for step in rich.steps}
    for analysis in (light, rich):
        assert analysis.launches is not None
        assert analysis.launches.unlinked_kernels == 0
        assert [finding for finding in analysis.health if finding.severity == "error"] == []
    # Profiling hardly moves the GPU's own time: within 4 % in the field notes' measurements.
    assert light.steps[0].busy_us == pytest.approx(rich.steps[0].busy_us, rel=0.04)


def test_the_committed_report_says_what_the_run_holds() -> None:
    run = store.load(RUN)
    comparison = compare(load_side(RUN, form="eager"), load_side(RUN, form="compiled"), run.order)
    told = (ROOT / "reports" / "h200-flux-compiled.md").read_text(encoding="utf-8")
    assert verdict_sentence(comparison) in told
    assert verdict_evidence(comparison) in told
    assert comparison.waterfall is not None
    closing = comparison.waterfall.a_us + sum(part.delta_us for part in comparison.waterfall.parts)
    assert closing + comparison.waterfall.residual_us == pytest.approx(comparison.waterfall.b_us)
    assert abs(comparison.waterfall.residual_us) < 0.03 * comparison.waterfall.a_us


def test_idle_causes_keep_what_the_light_recording_measured() -> None:
    # The rich eager recording has six times the idle time: its proportions would turn the change of device gaps around.
    sides = [load_side(RUN, form="eager"), load_side(RUN, form="compiled")]
    for side in sides:
        idle = side.analysis.idle
        assert idle is not None
        light = {each.cause: each.us / side.steps for each in idle.causes}
        shown = side.idle_by_cause()
        assert (shown["device"], shown["launch_call"]) == (light["device"], light["launch_call"])
        assert sum(shown.values()) == pytest.approx(side.recorded_idle_us)
    assert sides[1].idle_by_cause()["device"] < sides[0].idle_by_cause()["device"]


def test_samples_name_no_machine() -> None:
    texts = [(path, path.read_text(encoding="utf-8")) for path in [*REPORTS, *RUN.glob("*.json")]]
    texts += [(path, gzip.decompress(path.read_bytes()).decode()) for path in RUN.glob("*.json.gz")]
    assert len(texts) >= 6
    for path, text in texts:
        # The packed plotly.js holds no paths, but random letters may look like one.
        found = PRIVATE.search(re.sub(r"[A-Za-z0-9+/=]{1000,}", "", text))
        assert found is None, (path.name, found)
        assert "host_name" not in text, path.name


@pytest.mark.parametrize("name", sorted(each.name for each in (ROOT / "traces").glob("h200-*")))
def test_a_committed_twin_is_what_its_run_says_now(name: str, tmp_path: Path) -> None:
    """`make samples` writes them anew."""
    with contextlib.chdir(ROOT):
        twin = write_sample(Path("traces") / name, tmp_path)
    assert not twin.with_suffix(".html").exists()
    assert twin.read_text(encoding="utf-8") == (ROOT / "reports" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.browser
@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.name)
def test_a_committed_report_opens_without_network_or_complaint(path: Path) -> None:
    visit = open_page(path)
    assert visit.complaints == ()
    assert visit.requests == ()
    assert len(visit.charts) >= 3
    assert visit.spilled == ()
    said = next((words for part, words in SAID.items() if part in path.name), "as fast as eager")
    assert said in visit.text
    assert path.stat().st_size < 2_000_000
