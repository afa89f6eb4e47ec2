"""How much of the GPU's memory is free?"""

from __future__ import annotations

from tracekit.doctor.accelerator import find_torch, why_no_gpu
from tracekit.doctor.check import Check, ok, skipped, warning

NAME = "gpu memory"
GIB = 1 << 30
#: Less than this free and another program most likely works on the GPU, which also disturbs timing.
QUIET_FRACTION = 0.9


def check_gpu_memory() -> Check:
    torch = find_torch()
    missing = why_no_gpu()
    if missing or torch is None:
        return skipped(NAME, missing or "needs torch")
    free, total = torch.cuda.mem_get_info()
    return judge(int(free), int(total))


def judge(free: int, total: int) -> Check:
    """The check of a GPU with so many bytes free."""
    message = f"{free / GIB:.1f} of {total / GIB:.1f} GiB free"
    if free < QUIET_FRACTION * total:
        return warning(NAME, f"{message}: others use this GPU and disturb timing", "nvidia-smi  # names them")
    return ok(NAME, message)
