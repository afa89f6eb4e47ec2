"""The machine and the software a run was measured with."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import torch

from tracekit.model.run import Environment
from tracekit.nvml import driver_version

PACKAGES = ("torch", "triton", "diffusers", "transformers", "tokenizers", "numpy")


def read_environment(device: str) -> Environment:
    """What can be read of this machine; what cannot is None."""
    gpu = device != "cpu"
    properties = torch.cuda.get_device_properties(0) if gpu else None
    return Environment(
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        cpu=_cpu_name(),
        cpu_threads=torch.get_num_threads(),
        gpu=properties.name if properties else None,
        gpu_memory_bytes=properties.total_memory if properties else None,
        driver=driver_version() if gpu else None,
        cuda=torch.version.cuda or torch.version.hip,
        packages=_versions(),
        git_commit=_git_commit(),
        float32_matmul_precision=_float32_matmul_precision(),
    )


def _float32_matmul_precision() -> str | None:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        # Since 2.9 the same is set in two ways, and after the newer one was used the older cannot be read.
        return None


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    # torch's distribution may leave out the build (+cu130) that torch itself names.
    return {**found, "torch": str(torch.__version__)}


def _cpu_name() -> str | None:
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return platform.processor() or None
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0]}, {os.cpu_count()} logical cores" if names else None


def _git_commit() -> str | None:
    """The commit of the project the user stands in, if it is one."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() if found.returncode == 0 else None
