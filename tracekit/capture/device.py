"""The device a run goes to."""

from __future__ import annotations

import gc
import os
import re
from pathlib import Path

import torch


def pick_device() -> str:
    """`cuda` where torch sees a GPU (ROCm calls itself cuda too), else `cpu`."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def free_memory_bytes(device: str) -> int:
    """Free memory of the device: the GPU's as the driver tells it, or the machine's."""
    if device == "cpu":
        return _available_bytes() or os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free, _total = torch.cuda.mem_get_info()
    return int(free)


def _available_bytes() -> int | None:
    """What Linux would give to a new program, file caches it would drop for it included; None elsewhere."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.is_file():
        return None
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


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
