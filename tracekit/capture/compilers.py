"""Can torch.compile work here at all? Asked before anything is built, for building a model may take minutes."""

from __future__ import annotations

import torch

from tracekit.capture.compilation import is_switched_off
from tracekit.capture.inductor import cpp_compiler_problem, triton_problem
from tracekit.errors import TracekitError
from tracekit.model.run import Settings

#: What Triton makes kernels for, as Inductor has it (`GPUTooOldForTriton`): Volta and newer.
OLDEST_CAPABILITY = (7, 0)


def check_compilers(device: str) -> None:
    """Raises TracekitError for whatever keeps torch.compile from making code for the device."""
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


def idle_mode(settings: Settings) -> str | None:
    """What of the mode does nothing on this device, in words; None where all of it works."""
    if settings.device != "cpu" or settings.mode not in ("reduce-overhead", "max-autotune"):
        return None
    return f"A CPU has no CUDA graphs, which --mode {settings.mode} asks for: that part of the mode does nothing here."
