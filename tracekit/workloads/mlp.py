"""A few blocks of linear layers: what a transformer does between its attentions, small enough to know by heart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from tracekit.model.progress import Progress
from tracekit.model.run import Component, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request
from tracekit.workloads.mlp_info import MLP
from tracekit.workloads.settings import fill_in
from tracekit.workloads.weights import random_weights

#: How much wider a block is inside.
WIDENING = 4


@dataclass(frozen=True, slots=True)
class Architecture:
    """What differs between the sizes."""

    blocks: int
    width: int
    tokens: int


ARCHITECTURES = {
    "full": Architecture(blocks=4, width=1024, tokens=512),
    "tiny": Architecture(blocks=2, width=64, tokens=32),
}


class Block(nn.Module):
    """LayerNorm, Linear, GELU, Linear, and what came in added to what comes out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, WIDENING * width)
        self.gelu = nn.GELU()
        self.narrow = nn.Linear(WIDENING * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        narrowed: torch.Tensor = self.narrow(self.gelu(self.widen(self.norm(x))))
        return x + narrowed


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The blocks and their input on `device`, ready to be called. `size` is already chosen; `request.scope` checked."""
    # A call takes well under a millisecond.
    settings = fill_in(MLP, request, size, device, gpu_iterations=100)
    dtype: torch.dtype = getattr(torch, settings.dtype)
    architecture = ARCHITECTURES[size]
    with random_weights(dtype, device, request.seed):
        model = _model(architecture)
    model.requires_grad_(False).eval()

    def call_at(other: Request) -> Callable[[], object]:
        return _make_call(model, draw_tokens(other.batch_size, architecture, settings.seed).to(device, dtype))

    return BuiltWorkload(
        info=MLP,
        settings=settings,
        call=call_at(request),
        call_at=call_at,
        targets=(CompileTarget("model", model),),
        components=(Component("model", sum(p.numel() for p in model.parameters()), compiled=True),),
        notes=_notes(settings, architecture),
        modules=(("model", model),),
    )


def _model(architecture: Architecture) -> nn.Sequential:
    return nn.Sequential(*(Block(architecture.width) for _ in range(architecture.blocks)))


def draw_tokens(count: int, architecture: Architecture, seed: int) -> torch.Tensor:
    """Normally distributed input, the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, architecture.tokens, architecture.width, generator=generator)


def _make_call(model: nn.Module, tokens: torch.Tensor) -> Callable[[], object]:
    def call() -> object:
        with torch.no_grad():
            return model(tokens)

    return call


def _notes(settings: Settings, architecture: Architecture) -> tuple[str, ...]:
    call = (
        f"One call takes {settings.batch_size} times {architecture.tokens} tokens of width {architecture.width}, drawn"
        " by the seed and already on the device, through every block."
    )
    return (call, "Weights are random: the output means nothing, the work is the model's own.")
