"""Can Triton build and run a kernel? If not, torch.compile says `Cannot find a working triton installation`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tracekit.doctor.accelerator import find_torch, why_no_gpu
from tracekit.doctor.check import Check, ok, problem, skipped

NAME = "triton"


def check_triton_kernel() -> Check:
    missing = why_no_gpu()
    if missing:
        return skipped(NAME, f"{missing}: torch.compile uses the C++ compiler" if missing == "no GPU" else missing)
    try:
        import triton
    except ImportError as error:
        return problem(NAME, f"cannot be imported: {error}; torch.compile fails on the GPU", _install())
    version = str(triton.__version__)
    try:
        with _fresh_cache():
            _run_kernel()
    # A build may fail in the compiler, the linker, the assembler or the driver, each with errors of its own.
    except Exception as error:  # noqa: BLE001
        fix = f"mend what is said below of compiler and headers, else: pip install --force-reinstall triton=={version}"
        return problem(NAME, f"{version} cannot build a kernel: {_reason(error)}", fix)
    return ok(NAME, f"{version} built and ran a kernel")


def _run_kernel() -> None:
    import torch

    # Its kernel is defined at import, which needs triton.
    from tracekit.doctor import triton_probe

    values = torch.arange(64, device="cuda", dtype=torch.float32)
    if not torch.equal(triton_probe.doubled(values), values * 2):
        raise ArithmeticError("the kernel computed wrong numbers")


def _reason(error: Exception) -> str:
    # Its own text is the whole command line; what the compiler complained of is on the terminal already.
    if isinstance(error, subprocess.CalledProcessError):
        return f"{error.cmd[0]} ended with exit code {error.returncode}"
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


@contextmanager
def _fresh_cache() -> Iterator[None]:
    """A kernel built before would be found again and prove nothing."""
    before = os.environ.get("TRITON_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="tracekit-doctor-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["TRITON_CACHE_DIR"]
            else:
                os.environ["TRITON_CACHE_DIR"] = before


def _install() -> str:
    """torch is tied to one version of triton; its requirement names it."""
    from importlib import metadata

    torch = find_torch()
    required = metadata.requires("torch") or [] if torch is not None else []
    wanted = next((each.partition(";")[0].strip() for each in required if each.startswith("triton")), "triton")
    return f"pip install '{wanted}'"
