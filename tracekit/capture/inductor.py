"""Can torch.compile make code here, with which of Inductor's settings, and where is that code kept? Private parts of
Inductor (the same from 2.9 to 2.15), guarded here and nowhere else."""

from __future__ import annotations

import os
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from tracekit.capture.compilation import is_switched_off
from tracekit.errors import TracekitError
from tracekit.model.note import Noted
from tracekit.model.run import Settings

#: What Triton makes kernels for, as Inductor has it (`GPUTooOldForTriton`): Volta and newer.
OLDEST_CAPABILITY = (7, 0)
CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def check_compilers(device: str) -> None:
    """Raises TracekitError for whatever keeps torch.compile from making code for the device. Asked before anything is
    built, for building a model may take minutes."""
    if is_switched_off():
        raise TracekitError("torch.compile is switched off here: unset TORCH_COMPILE_DISABLE and TORCHDYNAMO_DISABLE")
    if device != "cpu":
        if torch.cuda.is_available():
            _check_triton()
        return
    try:
        from torch._inductor.cpp_builder import get_cpp_compiler
        from torch._inductor.exc import InvalidCxxCompiler
    except ImportError:
        return
    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        raise TracekitError(
            "torch.compile needs a C++ compiler on a CPU and finds none that works: apt install g++, or set CXX;"
            " `tracekit doctor` says more"
        ) from None


def _check_triton() -> None:
    # GPUs that are not NVIDIA's count their capabilities differently.
    major, minor = (99, 0) if torch.version.hip else torch.cuda.get_device_capability()
    if (major, minor) < OLDEST_CAPABILITY:
        raise TracekitError(
            f"{torch.cuda.get_device_name()} has compute capability {major}.{minor}, and torch.compile makes kernels"
            " for 7.0 (Volta) and newer: leave --compiled out, or use another GPU"
        )
    try:
        import triton  # noqa: F401
    except ImportError as error:
        # torch is tied to one version of triton; its requirement names it.
        named = (each.partition(";")[0].strip() for each in metadata.requires("torch") or ())
        wanted = next((each for each in named if each.startswith("triton")), "triton")
        raise TracekitError(
            f"torch.compile needs triton on a GPU and it cannot be imported ({error}): pip install '{wanted}'"
        ) from None


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


def cache_is_empty() -> bool | None:
    """Whether the folder of Inductor's cache holds no file at all; None where this torch does not say which folder it
    is. Results of autotuning and Triton's kernels lie there too, which no counter of cached graphs knows of."""
    try:
        from torch._inductor.runtime.cache_dir_utils import cache_dir
    except ImportError:
        return None
    return not any(path.is_file() for path in Path(cache_dir()).rglob("*"))


def check_cache() -> None:
    """Raises TracekitError where the folder that the user has chosen for Inductor's cache cannot be written to: torch
    makes it as soon as parts of it are loaded, also for a form that is not compiled."""
    folder = os.environ.get(CACHE_VARIABLE)
    if not folder:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TracekitError(
            f"Inductor cannot keep what it compiles in {folder} ({error.strerror}): set {CACHE_VARIABLE} to a folder "
            "that can be written to"
        ) from None
