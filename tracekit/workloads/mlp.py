"""A few blocks of linear layers: what a transformer does between its attentions, small enough to know by heart. Torch
alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from tracekit.workloads.one_forward import Family, build_one_forward
from tracekit.workloads.one_forward_table import OneForward

#: How much wider a block is inside.
WIDENING = 4


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


def _make(row: OneForward, size: str) -> nn.Sequential:
    figures = row.figures_at(size)
    return nn.Sequential(*(Block(figures["width"]) for _ in range(figures["blocks"])))


def _draw(_row: OneForward, _model: Any, sizes: Mapping[str, int], count: int, seed: int) -> dict[str, torch.Tensor]:
    """Normally distributed hidden states."""
    generator = torch.Generator().manual_seed(seed)
    return {"input": torch.randn(count, sizes["tokens"], sizes["width"], generator=generator)}


FAMILY = Family(_make, _draw)
build = partial(build_one_forward, FAMILY)
