"""A Triton kernel that does next to nothing, launched as those of compiled code are. Needs Triton."""

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def add_one(values, block: tl.constexpr) -> None:  # type: ignore[no-untyped-def]
    """Adds 1 to as many values as the block has."""
    at = values + tl.arange(0, block)
    tl.store(at, tl.load(at) + 1)


def launch(values: torch.Tensor) -> None:
    """Launches it over values whose number is a power of two."""
    add_one[1,](values, block=values.numel())
