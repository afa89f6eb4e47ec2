"""Does torch see a GPU?"""

from __future__ import annotations

import os
from types import ModuleType

from tracekit.doctor.accelerator import find_torch, why_no_gpu
from tracekit.doctor.check import Check, ok, problem, skipped, warning
from tracekit.doctor.driver import read_driver

NAME = "gpu"
#: What Triton makes kernels for.
OLDEST_CAPABILITY = (7, 0)


def check_gpu() -> Check:
    torch = find_torch()
    if torch is None:
        return skipped(NAME, "needs torch")
    if why_no_gpu() is None:
        return _seen(torch)
    driver = read_driver()
    if isinstance(driver, str) or not driver.gpus:
        return warning(
            NAME,
            "none seen: workloads run at size tiny on the CPU",
            "profile on a machine with a GPU for figures of one",
        )
    there = f"the driver has {driver.gpus[0]}, torch sees none"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return problem(NAME, f"{there}: CUDA_VISIBLE_DEVICES is {hidden!r}", "unset CUDA_VISIBLE_DEVICES")
    if not torch.version.cuda:
        return problem(
            NAME, f"{there}: it is a build without CUDA", "pip uninstall -y torch && pip install torch  # from PyPI"
        )
    return problem(NAME, there, 'python -c "import torch; torch.cuda.init()"  # says why')


def _seen(torch: ModuleType) -> Check:
    gpus = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    # AMD's GPUs count their architectures in another way.
    old = [gpu for gpu in gpus if not torch.version.hip and (gpu.major, gpu.minor) < OLDEST_CAPABILITY]
    if old:
        return problem(
            NAME,
            f"{old[0].name} has compute capability {old[0].major}.{old[0].minor}; torch.compile makes kernels for 7.0"
            " and newer",
            "profile it without --compiled, or use a GPU of Volta or newer",
        )
    others = f", and {len(gpus) - 1} more" if len(gpus) > 1 else ""
    return ok(NAME, f"{gpus[0].name}{others}")
