"""A model for two ranks, one of which can be made to do what the other does not."""

#: A layer whose outputs are all-reduced; compiled it needs no C++. Rank 1 comes late, or has a graph break
#: and compiles again, once in a timed call, when it is told to.
MODEL = """
import time

import torch
import torch.distributed as dist
from torch import nn

import tracekit

#: More calls than warm-up makes, and fewer than are made until the last timed one.
TIMED = 20


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.times, self.breaks = nn.Linear(8, 8).requires_grad_(False), 1, False

    def forward(self, x):
        if self.breaks:
            torch._dynamo.graph_break()
        for _ in range(self.times):
            x = self.layer(x)
        return x


def build(rank: int, world_size: int, late_ms: float = 0.0, uneven: bool = False):
    assert (world_size, rank in (0, 1)) == (2, True)
    model, calls = Model(), []
    model.breaks = uneven and rank == 1

    def step():
        calls.append(1)
        if rank == 1:
            time.sleep(late_ms / 1000)
            if uneven:
                model.times = 1 if len(calls) < 5 else 2 if len(calls) < TIMED else 3
        out = model(torch.ones(4, 8))
        dist.all_reduce(out)
        return out

    return tracekit.Workload(call=step, modules={"model": model})
"""
