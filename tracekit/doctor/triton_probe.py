"""The smallest Triton kernel. Importing this file needs triton."""

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def _double(source, target, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    at = tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at) * 2)


def doubled(values: torch.Tensor) -> torch.Tensor:
    """Twice the values, whose count is a power of two, computed by a Triton kernel."""
    result = torch.empty_like(values)
    _double[(1,)](values, result, BLOCK=values.numel())
    return result
