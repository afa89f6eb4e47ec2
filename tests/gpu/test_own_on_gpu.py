"""A model of one's own, and a training loop of one's own, on a real GPU."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tracekit
from tracekit import store
from tracekit.cli.main import main
from tracekit.reading.sides import load_side
from tracekit.reading.traces import Reading

MODEL = """
import torch
from torch import nn

def build(width: int = 512, batch_size: int = 4):
    blocks = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(3)]
    return nn.Sequential(*blocks).eval(), (torch.randn(batch_size, 64, width),)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_model_built_on_the_cpu_is_brought_to_the_gpu_and_compiled_whole() -> None:
    Path("my_model.py").write_text(MODEL)
    options = ["--compiled", "--iterations", "20", "--mode", "reduce-overhead"]
    found = CliRunner().invoke(main, ["profile", "my_model.py:build", *options, "--", "width=256"])
    assert found.exit_code == 0, found.output
    folder = Path("traces/my_model-build-compiled-reduce-overhead")
    run: Any = store.load(folder)
    assert (run.settings.device, run.settings.dtype) == ("cuda", "float32")
    assert run.form("compiled").compilation.graphs == 1
    compiled: Any = load_side(folder, form="compiled").analysis
    assert compiled.launches.graph_launches == compiled.window.steps


def test_a_program_profiles_a_model_where_it_lies() -> None:
    from torch import nn, randn

    net = nn.Sequential(nn.Linear(256, 256), nn.GELU()).cuda().eval()
    run = tracekit.profile(net, randn(8, 256, device="cuda"), iterations=20, quiet=True)
    assert run.settings.device == "cuda"
    assert run.compare().verdict.speedup is not None


def window(name: str) -> Any:
    return load_side("traces/mine", reading=Reading(name, cached=False)).analysis


def test_backward_and_optimizer_kernels_of_a_loop_are_in_their_regions() -> None:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256)).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    with tracekit.record("traces/mine", steps=3) as recorder:
        for _ in range(8):
            with recorder.step():
                with tracekit.region("forward"):
                    loss = net(torch.randn(32, 256, device="cuda")).square().mean()
                with tracekit.region("backward"):
                    loss.backward()
                with tracekit.region("optimizer"):
                    optimizer.step()
                    optimizer.zero_grad()
    steps, regions = window("steps"), [window(name) for name in ("forward", "backward", "optimizer")]
    assert steps.window.steps == 3
    assert all(each.window.steps == 3 and each.kernels.count > 0 for each in regions)
    assert sum(each.kernels.count for each in regions) == steps.kernels.count
    assert steps.launches.unlinked_kernels == 0
    # Two products in the forward pass; three in the backward pass, for there is no gradient of the input.
    counts = [sum(each.count for each in one.kernels.by_family if each.family == "gemm") for one in regions]
    assert counts[0] >= 6 and counts[1] >= 9 and counts[2] == 0
