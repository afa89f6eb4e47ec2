"""The runs and the sweep that come with the checkout. Others lie beside them as soon as somebody measures something."""

from __future__ import annotations

from pathlib import Path

#: From the repository's top.
RUNS = tuple(
    Path("traces", name)
    for name in ("h200-flux-compiled", "h200-qwen2.5-vl-decode", "h200-vit", "h200-vit-reduce-overhead")
)
SWEEP = Path("sweeps/h200-qwen2.5-vl")
