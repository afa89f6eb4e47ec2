"""Fleets with known truth, grown from made-up kernels; `benchmarks/fleet.py` does the same with recorded ones."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl

from benchmarks.fleet import Fleet, Recorded, Shape, Truth
from tracekit.ranks.job_figures import Ranks
from tracekit.ranks.telling import join_ranks

#: 96 ranks of 24 hosts.
SHAPE = Shape(tensor=4, data=6, pipeline=4, steps=7, microbatches=1, segments=2, kernels=6)
SLOW, SLOW_HOST, SLOW_LINK, SLOW_EXPERT, MISSING = 29, 5, (1, 2), (2, 1, 0), (0, 61, 62, 63)


@cache
def make_fleet(truth: str = "clean", seed: int = 0) -> Fleet:
    random = np.random.default_rng(7)
    kernels = pl.DataFrame(
        {
            "name": [f"gemm_{at}" for at in range(12)],
            "family": ["gemm"] * 12,
            "grid": ["[8, 1, 1]"] * 12,
            "ns": random.uniform(20_000, 200_000, 12),
        }
    )
    recorded = Recorded(
        kernels, random.lognormal(0, 0.02, 500), random.uniform(1_000, 3_000, 500), random.uniform(3e4, 2e5, 100)
    )
    if truth in ("experts", "slow experts"):
        shape = replace(SHAPE, expert=3)
        # What goes to the last part of the experts takes each of its ranks longer.
        more = {rank: 1.1 for rank in range(shape.size) if rank // shape.tensor % shape.data % shape.expert == 2}
        slow = Truth(more, slow_experts={SLOW_EXPERT: 1.8}) if truth == "slow experts" else Truth()
        return Fleet(shape, slow, recorded, seed)
    planted = Truth({SLOW: 1.2}, {SLOW_HOST: 0.2}, {SLOW_LINK: 1.8}, missing=MISSING)
    return Fleet(SHAPE, planted if truth == "planted" else Truth(), recorded, seed)


@cache
def told(truth: str = "clean", seed: int = 0) -> Ranks:
    return join_ranks(list(make_fleet(truth, seed).summaries()))
