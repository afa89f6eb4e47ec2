"""FLUX.1-schnell: FLUX.1 distilled to four steps, without guidance.

What differs from FLUX.1-dev is as in the published configuration files of black-forest-labs/FLUX.1-schnell; calls are
made as its model card and diffusers' documentation say: guidance 0, 4 steps, 256 tokens of T5 at most.
"""

from __future__ import annotations

from dataclasses import replace

from tracekit.model.progress import Progress
from tracekit.model.workload import BuiltWorkload, Request
from tracekit.workloads.flux import PUBLISHED, SMALL, TINY, Variant, build_variant
from tracekit.workloads.flux_schnell_info import FLUX_SCHNELL

TEXT_TOKENS = 256
ARCHITECTURES = {
    "full": replace(PUBLISHED, text_tokens=TEXT_TOKENS),
    "small": replace(SMALL, text_tokens=TEXT_TOKENS),
    "tiny": TINY,
}
SCHNELL = Variant(FLUX_SCHNELL, ARCHITECTURES, guided=False, guidance_scale=0.0, shift=1.0, shifts_with_size=False)


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The pipeline of FLUX.1-schnell; see `flux.build_variant`."""
    return build_variant(SCHNELL, request, size, device, progress)
