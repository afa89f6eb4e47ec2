"""Models of diffusers whose call is one forward: a denoising step, drawn as for any model of their class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import diffusers
import torch

from tracekit.workloads.diffusers_inputs import KNOWN, Step
from tracekit.workloads.one_forward import Family, build_one_forward
from tracekit.workloads.one_forward_table import OneForward


def _make(row: OneForward, size: str) -> Any:
    return getattr(diffusers, row.kind)(**row.figures(size))


def _draw(row: OneForward, model: Any, sizes: Mapping[str, int], count: int, seed: int) -> dict[str, Any]:
    known = KNOWN[row.kind]
    step = Step(
        count=(2 if known.guided else 1) * count,
        height=sizes["height"] // known.shrink,
        width=sizes["width"] // known.shrink,
        tokens=known.tokens,
        generator=torch.Generator().manual_seed(seed),
    )
    return known.draw(model.config, step)


FAMILY = Family(_make, _draw)
build = partial(build_one_forward, FAMILY)
