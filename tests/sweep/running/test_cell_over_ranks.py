"""A cell of several ranks: gloo on the CPU."""

from pathlib import Path

import pytest
from tests.uneven_ranks import MODEL

from tracekit.measure.plan import TimingPlan
from tracekit.model.progress import Silent
from tracekit.model.workload import Request
from tracekit.sweep.running.folder import SweepFolder
from tracekit.sweep.running.matrix import make_cell
from tracekit.sweep.running.sweeping import SweepPlan, find_left, run_cell

pytest.importorskip("torch")


@pytest.mark.slow
def test_a_cell_of_a_sweep_over_ranks_is_timed_on_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    request = Request("model.py:build", nproc=2, options=("late_ms=30",))
    plan = SweepPlan((make_cell("eager", request),), 0, 5, TimingPlan())
    result = run_cell(plan, *find_left(plan, SweepFolder(tmp_path / "sweep")), 1, tmp_path, Silent())
    assert result.failure is None and result.run is not None
    form = result.run.form("eager")
    # The time of the late rank, told by the first.
    assert form is not None and form.times is not None and min(form.times.wall_us) > 20_000
    assert result.run.settings.nproc == 2 and len(form.times.wall_us) == 5
