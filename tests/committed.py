"""The runs and the sweep that come with the checkout. Others lie beside them as soon as somebody measures something."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Folders that only exist on the machine a run was made on.
PRIVATE = re.compile(r"/(home|root|tmp|work|opt|mnt|Users|var)/[\w.-]+")
#: From the repository's top.
RUNS = FLUX, QWEN, VIT, GRAPHED = tuple(
    Path("traces", name)
    for name in ("h200-flux-compiled", "h200-qwen2.5-vl-decode", "h200-vit", "h200-vit-reduce-overhead")
)
SWEEP = Path("sweeps/h200-qwen2.5-vl")
