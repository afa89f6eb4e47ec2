"""What torch.compile says and recordings show of compiled code on a real GPU."""

from pathlib import Path
from typing import Any

import pytest
from tests.gpu.conftest import TINY, profile

from tracekit import store
from tracekit.measure.diagnostics import DiagnosticLog, watched
from tracekit.reading.sides import load_side


def profiled(place: Path, *options: str) -> Any:
    """The compiled side of `tracekit profile mlp --compiled`."""
    return load_side(profile(place, "mlp", *TINY, "--iterations", "6", *options)[0], form="compiled")


def test_all_of_a_compiled_models_gpu_time_is_launched_from_compiled_code(tmp_path: Path) -> None:
    side = profiled(tmp_path)
    assert side.entering is side.rich, "the light recording of a GPU holds no operators"
    assert side.rich.regions.gpu_share == pytest.approx(1.0, abs=0.05)
    assert side.rich.regions.graphs == side.rich.window.steps
    assert side.rich.regions.guards_us > 0
    phases = {each.phase for each in side.diagnostics.phases}
    assert {"dynamo", "aot_autograd", "inductor"} <= phases
    assert side.diagnostics.timed_calls() == ()
    assert side.diagnostics.noted == ()


def test_recorded_cuda_graphs_are_counted_and_none_in_timed_calls(tmp_path: Path) -> None:
    side = profiled(tmp_path, "--mode", "reduce-overhead")
    assert side.diagnostics.cuda_graphs_recorded >= 1
    assert side.diagnostics.cuda_graph_skips == ()
    assert side.diagnostics.timed_calls() == ()
    assert side.analysis.launches.kernels_in_graphs > 0


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_warm_up_of_another_batch_compiles_in_a_timed_call(tmp_path: Path, mode: str) -> None:
    side = profiled(tmp_path, "--batch-size", "4", "--warmup", "batch=2", "--mode", mode)
    assert side.form.compilation.during_timing >= 1
    first = side.diagnostics.timed_calls()[0]
    assert first.call == 1
    (frame,) = (each for each in side.diagnostics.frames if (each.phase, each.call) == ("timed", 1))
    assert frame.because[0].facts == {"kind": "size", "name": "kwargs['input']", "index": "0", "then": "2", "now": "4"}
    assert store.load(tmp_path / "run").status == "complete"


def test_a_cuda_graph_that_is_skipped_comes_with_torchs_reason() -> None:
    torch: Any = pytest.importorskip("torch")
    from tests.measure.conftest import make_workload

    from tracekit.measure.forms import compiled_form
    from tracekit.model.workload import CompileTarget

    class OnBoth(torch.nn.Module):  # type: ignore[misc, name-defined]
        """Takes a tensor on the host, which no CUDA graph can hold."""

        def forward(self, x: Any, y: Any) -> Any:
            return x * 2, y.sin() + 1

    module, x, y = OnBoth(), torch.ones(64, device="cuda"), torch.ones(64)
    log = DiagnosticLog()
    settings = {"device": "cuda", "mode": "reduce-overhead"}
    workload = make_workload(lambda: module(x, y), (CompileTarget("both", module),), **settings)
    form = watched(compiled_form(workload), log)
    # Partitions would leave the host's part out, and record the rest.
    with torch._inductor.config.patch(graph_partition=False), form.ready():
        form.call()
    skips = log.diagnose({}).cuda_graph_skips
    assert sum(skip.count for skip in skips) >= 1
    assert any(skip.reason and "cpu" in skip.reason for skip in skips), skips
