"""Small models, and what provenance tells of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tracekit.capture.forms import (  # noqa: E402
    Form,
    Switch,
    switched_on,
)
from tracekit.capture.inductor import recording_options  # noqa: E402
from tracekit.capture.provenance import collected  # noqa: E402
from tracekit.capture.source_location import ModuleNames  # noqa: E402
from tracekit.capture.tagging import tag_eager, trace_calls  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.provenance import CompiledSites, EagerOps  # noqa: E402
from tracekit.model.workload import CompileTarget  # noqa: E402

NOWHERE = Path("never-written.json")


class Block(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 2 * width)
        self.fc2 = nn.Linear(2 * width, width)
        self.gate = nn.Parameter(torch.randn(width))

    def forward(self, x: Any) -> Any:
        h = self.fc1(self.norm(x))
        h = nn.functional.gelu(h, approximate="tanh")
        h = self.fc2(h)
        return x + self.gate.tanh() * h


class Mlp(nn.Module):
    def __init__(self, blocks: int = 3) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(blocks)])
        self.head = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(x).softmax(-1) * 2 + 1

    def decode(self, x: Any) -> Any:
        return self.blocks[0](x).sin() + 1


class BrokenInTwo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Block(), Block()

    def forward(self, x: Any) -> Any:
        y = self.first(x).cos()
        torch._dynamo.graph_break()
        return self.second(y).sin()


class ThreeAlike(nn.Module):
    """Equal operators on one line of one module, told apart by nothing but their order."""

    def forward(self, x: Any, y: Any, z: Any) -> Any:
        a, b, c = x.sin(), y.sin(), z.sin()
        p, q = (a * 2).relu(), (b * 3).relu()
        return p.sum() + q.sum() + (c * 4).sum()


def mlp() -> tuple[nn.Module, Callable[[], object]]:
    return _called(Mlp(), torch.randn(4, 16))


def broken_in_two() -> tuple[nn.Module, Callable[[], object]]:
    return _called(BrokenInTwo(), torch.randn(4, 16))


def three_alike() -> tuple[nn.Module, Callable[[], object]]:
    return _called(ThreeAlike(), torch.randn(3, 8), torch.randn(5, 8), torch.randn(7, 8))


def vit() -> tuple[nn.Module, Callable[[], object]]:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        image_size=32,
        patch_size=8,
    )
    return _called(transformers.ViTModel(config), torch.randn(1, 3, 32, 32))


def _called(model: nn.Module, *inputs: Any) -> tuple[nn.Module, Callable[[], object]]:
    model = model.eval()

    def call() -> object:
        with torch.no_grad():
            return model(*inputs)

    return model, call


def recording_settings(device: str) -> AbstractContextManager[Any]:
    """Inductor set for the block as a run asks torch.compile to set it for what it compiles."""
    from torch._inductor import config

    patched: AbstractContextManager[Any] = config.patch(recording_options(device))
    return patched


def eager_ops(names: ModuleNames, call: Callable[[], object]) -> EagerOps:
    return tag_eager(Form("eager", "cpu", call), names, NOWHERE, Silent())


def compiled_sites(
    names: ModuleNames,
    targets: Iterable[CompileTarget],
    call: Callable[[], object],
    *,
    warm_up: int = 2,
    **options: Any,
) -> CompiledSites:
    """What is told of `call` with the targets compiled."""
    torch.compiler.reset()
    switches = tuple(Switch(target, options) for target in targets)
    with switched_on(switches), recording_settings("cpu"):
        with collected(names) as collection:
            for _ in range(warm_up):
                call()
        return trace_calls(Form("compiled", "cpu", call, nullcontext), collection, NOWHERE, Silent())


def asked(
    model: nn.Module, call: Callable[[], object], targets: Iterable[CompileTarget] = (), **options: Any
) -> tuple[EagerOps, CompiledSites]:
    """Both forms of a model that is called `model`, compiled as a whole unless targets are named."""
    targets = tuple(targets) or (CompileTarget("model", model),)
    names = ModuleNames([("model", model)], targets)
    return eager_ops(names, call), compiled_sites(names, targets, call, **options)
