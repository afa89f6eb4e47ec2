"""Inductor's settings for a run. Private configuration of torch, guarded here and nowhere else."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


def recording_settings(device: str) -> AbstractContextManager[Any]:
    """Settings under which compiled code shows its kernels to the profiler.

    On the CPU Inductor's fused C++ kernels record no event unless asked to at compile time; on a GPU nothing is needed.
    Without that setting in this torch, fused C++ kernels are simply absent from the recording.
    """
    if device != "cpu":
        return nullcontext()
    from torch._inductor import config

    if not hasattr(config.cpp, "enable_kernel_profile"):
        return nullcontext()
    patch: AbstractContextManager[Any] = config.patch({"cpp.enable_kernel_profile": True})
    return patch


def triton_problem() -> str | None:
    """Why Inductor could not make GPU kernels here, or None."""
    if not torch.cuda.is_available():
        return None
    try:
        import triton  # noqa: F401
    except ImportError as error:
        return f"torch.compile needs triton on a GPU and it cannot be imported ({error}): pip install triton"
    return None
