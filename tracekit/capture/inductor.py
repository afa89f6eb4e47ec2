"""Can torch.compile make code here, and with which of Inductor's settings? Private parts of Inductor, guarded here and
nowhere else."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import torch

from tracekit.capture.compilation import is_switched_off
from tracekit.errors import TracekitError
from tracekit.model.noted import Noted
from tracekit.model.run import Settings

#: What Triton makes kernels for, as Inductor has it (`GPUTooOldForTriton`): Volta and newer.
OLDEST_CAPABILITY = (7, 0)


def check_compilers(device: str) -> None:
    """Raises TracekitError for whatever keeps torch.compile from making code for the device. Asked before anything is
    built, for building a model may take minutes."""
    if is_switched_off():
        raise TracekitError("torch.compile is switched off here: unset TORCH_COMPILE_DISABLE and TORCHDYNAMO_DISABLE")
    problem = cpp_compiler_problem() if device == "cpu" else (too_old() or triton_problem())
    if problem:
        raise TracekitError(problem)


def too_old() -> str | None:
    """Why Triton makes nothing for this GPU, or None. GPUs that are not NVIDIA's count differently."""
    if not torch.cuda.is_available() or torch.version.hip:
        return None
    capability = torch.cuda.get_device_capability()
    if capability >= OLDEST_CAPABILITY:
        return None
    return (
        f"{torch.cuda.get_device_name()} has compute capability {capability[0]}.{capability[1]}, and torch.compile"
        " makes kernels for 7.0 (Volta) and newer: leave --compiled out, or use another GPU"
    )


def triton_problem() -> str | None:
    """Why Inductor could not make GPU kernels here, or None."""
    if not torch.cuda.is_available():
        return None
    try:
        import triton  # noqa: F401
    except ImportError as error:
        # torch is tied to one version of triton; its requirement names it.
        named = (each.partition(";")[0].strip() for each in metadata.requires("torch") or ())
        wanted = next((each for each in named if each.startswith("triton")), "triton")
        return f"torch.compile needs triton on a GPU and it cannot be imported ({error}): pip install '{wanted}'"
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


def idle_mode(settings: Settings) -> Noted | None:
    """What of the mode does nothing on this device; None where all of it works."""
    if settings.device != "cpu" or settings.mode not in ("reduce-overhead", "max-autotune"):
        return None
    return Noted("no_cuda_graphs_on_cpu", {"mode": settings.mode})
