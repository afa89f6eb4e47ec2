"""The device a run goes to, and the machine and the software around it."""

import gc
import os
import platform
import re
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import torch

from tracekit.model.run import Environment
from tracekit.nvml import driver_version

PACKAGES = ("torch", "triton", "diffusers", "transformers", "tokenizers", "numpy")


def pick_device() -> str:
    """`cuda` where torch sees a GPU (ROCm calls itself cuda too), else `cpu`."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def free_memory_bytes(device: str) -> int:
    """The GPU's free memory, or what the machine would give to a new program, file caches it would drop included."""
    if device != "cpu":
        return int(torch.cuda.mem_get_info()[0])
    meminfo = Path("/proc/meminfo")
    text = meminfo.read_text() if meminfo.is_file() else ""
    available = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    return int(available[1]) * 1024 if available else os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def release_memory(device: str) -> None:
    """Gives what torch holds and nobody uses any more back to the device: compiled code, CUDA graphs, cached blocks."""
    torch.compiler.reset()
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


def synchronize(device: str) -> None:
    """Waits until the device has nothing left to do; nothing to wait for on a CPU."""
    if device != "cpu":
        torch.cuda.synchronize()


def gpu_uuid(device: str) -> str | None:
    """Which of the machine's GPUs it is, as its driver calls it; None for a CPU, and where torch does not tell."""
    uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None) if device != "cpu" else None
    return str(uuid) if uuid is not None else None


def read_environment(device: str) -> Environment:
    """What can be read of this machine; what cannot is None."""
    properties = torch.cuda.get_device_properties(0) if device != "cpu" else None
    matmul_precision = None
    # Since 2.9 the same is set in two ways, and after the newer one was used the older cannot be read.
    with suppress(RuntimeError):
        matmul_precision = torch.get_float32_matmul_precision()
    packages = {}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            packages[name] = metadata.version(name)
    info, cpu = Path("/proc/cpuinfo"), platform.processor() or None
    if info.is_file():
        model = re.search(r"^model name[^:\n]*:(.*)$", info.read_text(), re.MULTILINE)
        cpu = f"{model[1].strip()}, {os.cpu_count()} logical cores" if model else None
    commit = None
    with suppress(OSError, subprocess.TimeoutExpired):
        # Of the project the user stands in, if it is one.
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False)
        commit = found.stdout.strip() if found.returncode == 0 else None
    return Environment(
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        cpu=cpu,
        cpu_threads=torch.get_num_threads(),
        gpu=properties.name if properties else None,
        gpu_memory_bytes=properties.total_memory if properties else None,
        driver=driver_version() if properties else None,
        cuda=torch.version.cuda or torch.version.hip,
        # torch's distribution may leave out the build (+cu130) that torch itself names.
        packages={**packages, "torch": str(torch.__version__)},
        git_commit=commit,
        float32_matmul_precision=matmul_precision,
        host_load=os.getloadavg()[0],
        logical_cores=os.cpu_count(),
    )
