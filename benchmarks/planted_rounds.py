"""A model whose compiled calls, with a graph break, are longer by a plan: every fifth by half, or the first ones.

    tracekit profile benchmarks/planted_rounds.py:fifth --compiled --no-fullgraph --iterations 150
    tracekit profile benchmarks/planted_rounds.py:warming --compiled --no-fullgraph --iterations 300

`fifth` must tell outliers and the speed-up with them, `warming` the rounds that do not count; docs/notes has what came.
"""

import time

import torch
from torch import nn

#: So long takes what is neither model nor plan, and so many compiled calls does warming up take.
SECONDS, WARMING = 0.004, 300


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Planted(nn.Module):
    def __init__(self, plan: str) -> None:
        super().__init__()
        self.plan, self.calls = plan, 0
        self.one, self.two = nn.Linear(32, 32), nn.Linear(32, 32)

    @torch.compiler.disable
    def hold(self, *, compiled: bool) -> None:
        more = 0.0
        if compiled:
            self.calls += 1
            late = self.calls % 5 == 0 if self.plan == "fifth" else max(0.0, 1 - self.calls / WARMING)
            more = 0.5 * late
        spin(SECONDS * (1 + more))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.one(x))
        self.hold(compiled=torch.compiler.is_compiling())
        return self.two(x)


def fifth() -> tuple[nn.Module, torch.Tensor]:
    return Planted("fifth").eval(), torch.randn(4, 32)


def warming() -> tuple[nn.Module, torch.Tensor]:
    return Planted("warming").eval(), torch.randn(4, 32)
