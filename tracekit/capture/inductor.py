"""Inductor's settings for a run. Private configuration of torch, guarded here and nowhere else."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import torch


def recording_options(device: str, mode: str = "default", dynamic: bool | None = None) -> dict[str, Any]:
    """Options of torch.compile under which compiled code shows its kernels to the profiler, with those of the mode,
    since torch.compile takes the one or the other; empty where nothing is needed.

    On the CPU Inductor's fused C++ kernels record no event unless asked to at compile time; on a GPU they do. Without
    that setting in this torch, fused C++ kernels are simply absent from the recording. It is no setting for the time
    of a call: changing Inductor's configuration made the calls after it 13 % slower (the MLP, 0.16 ms).
    """
    if device != "cpu":
        return {}
    from torch._inductor import config, list_mode_options

    if not hasattr(config.cpp, "enable_kernel_profile"):
        return {}
    return {**list_mode_options(mode, dynamic), "cpp.enable_kernel_profile": True}


def _wanted_triton() -> str:
    """The requirement of this torch, which is tied to one version of triton."""
    named = (each.partition(";")[0].strip() for each in metadata.requires("torch") or ())
    return next((each for each in named if each.startswith("triton")), "triton")


def triton_problem() -> str | None:
    """Why Inductor could not make GPU kernels here, or None."""
    if not torch.cuda.is_available():
        return None
    try:
        import triton  # noqa: F401
    except ImportError as error:
        return (
            f"torch.compile needs triton on a GPU and it cannot be imported ({error}): pip install '{_wanted_triton()}'"
        )
    return None


def cpp_compiler_problem() -> str | None:
    """Why Inductor could not make CPU kernels here, or None; None too where this torch does not say."""
    try:
        from torch._inductor.cpp_builder import get_cpp_compiler
        from torch._inductor.exc import InvalidCxxCompiler
    except ImportError:
        return None
    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        return (
            "torch.compile needs a C++ compiler on a CPU and finds none that works: apt install g++, or set CXX;"
            " `tracekit doctor` says more"
        )
    return None
