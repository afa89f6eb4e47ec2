"""What recording adds on this GPU, and where the first launch of a profiler session lies."""

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.gpu.conftest import analysis_of

import tracekit
from tracekit import store
from tracekit.analysis.window import find_steps
from tracekit.measure import recording_cost
from tracekit.model.progress import Silent
from tracekit.model.recording_cost import EventCosts
from tracekit.tracefile.read import read_trace

torch: Any = pytest.importorskip("torch")

KINDS = EventCosts.__struct_fields__


def test_every_kind_of_event_has_its_costs_in_both_kinds_of_recording() -> None:
    began = time.monotonic()
    found = recording_cost.measure_recording_cost("cuda", Silent(), triton=True)
    # Two or three; on a machine with other work several times that, but not for every event of its loops.
    assert time.monotonic() - began < 60
    print(found)  # noqa: T201
    assert found is not None
    for costs in (found.light, found.rich):
        for kind in KINDS:
            cost = getattr(costs, kind)
            assert 0 <= cost.low <= cost.us <= cost.high, kind


def test_where_no_graph_can_be_captured_all_else_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise torch.AcceleratorError("CUDA error: operation not permitted")

    monkeypatch.setattr(recording_cost, "_captured", failing)
    found = recording_cost.measure_recording_cost("cuda", Silent(), triton=True)
    assert found is not None
    assert (found.light.graph_launch, found.rich.graph_node) == (None, None)


def test_a_run_measures_what_its_recordings_add(flux: tuple[Path, Any]) -> None:
    # In its process nothing was recorded before.
    cost = flux[1].recording_cost
    assert cost is not None and 0.5 < cost.light.launch.us < 40
    # Differences of times: where little is added and the host is unsteady, the middle one may be none.
    assert all(getattr(cost.rich, kind).high > 0 for kind in ("launch", "driver_launch", "operator", "graph_node"))
    assert all(getattr(cost.light, kind).high > 0 for kind in ("driver_launch", "graph_node"))
    # Its host is measured where costs, times and recordings are.
    assert 1 < cost.host_us < 1000
    for form in flux[1].forms:
        assert 1 < form.host.low <= form.host.us <= form.host.high < 1000
        assert 0 <= form.collecting.low <= form.collecting.us <= form.collecting.high < max(form.wall_us)
        for each in form.recordings:
            assert len(each.host_us) == each.steps
            # A clock that is too coarse tells nothing.
            assert len(each.off_cpu_us) in (0, each.steps)


@pytest.mark.parametrize("kind", ["light", "rich"])
def test_the_first_launch_of_a_session_is_in_no_step_and_not_in_the_trace(flux: tuple[Path, Any], kind: str) -> None:
    longest = []
    for name in ("eager", "compiled"):
        trace = read_trace(store.recording_path(flux[0], flux[1].form(name), kind))
        begins = find_steps(trace)[0].start_ns
        assert trace.activities["start_ns"].min() > begins
        launches = trace.calls.filter(pl.col("name").str.contains("Launch"))
        assert launches["start_ns"].min() > begins
        longest.append(launches.select(pl.col("end_ns") - pl.col("start_ns")).head(3).max().item() / 1e3)
        health = {each.code for each in analysis_of(flux, name, kind).health}
        assert not health & {"launches_without_kernels", "unlinked_kernels", "work_from_outside"}
    # It takes 400 us and more, in every session.
    assert min(longest) < 200, longest


def test_a_trace_of_a_program_begins_with_its_own_first_kernel(tmp_path: Path) -> None:
    with tracekit.record(tmp_path / "mine"):
        torch.full((32,), 2.0, device="cuda").sin_()
        torch.cuda.synchronize()
    trace = read_trace(tmp_path / "mine" / "trace.json.gz")
    assert trace.activities.height == 2
    assert trace.host.filter(pl.col("name") == "aten::empty").height == 1
