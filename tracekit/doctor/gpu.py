"""Is there a GPU, does torch see it, is its memory free, and may the profiler look at it?"""

import os

from tracekit.doctor import Check
from tracekit.doctor.environment import GIB, find_torch, why_no_gpu
from tracekit.nvml import NoDriver, read_driver

#: What Triton makes kernels for, as Inductor has it (`GPUTooOldForTriton`): Volta and newer.
OLDEST_CAPABILITY = (7, 0)
#: Less than this free and another program most likely works on the GPU, which also disturbs timing.
QUIET_FRACTION = 0.9
WHY_NO_DRIVER = {
    "no_library": "nvidia-ml-py is not installed",
    "no_driver": "no NVIDIA driver ({})",
    "no_answer": "the NVIDIA driver does not answer ({})",
}
PROFILER_FIX = (
    "run as root or with CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN), or allow every user to profile:"
    " echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf,"
    " then reboot"
)


def check_driver() -> Check:
    """What the NVIDIA driver says, asked without torch."""
    torch, driver = find_torch(), read_driver()
    built_for = str(torch.version.cuda) if torch is not None and torch.version.cuda else None
    if isinstance(driver, NoDriver):
        why = WHY_NO_DRIVER[driver.code].format(driver.error)
        if built_for is None:
            return Check("skipped", why)
        missing = driver.code == "no_library"
        fix = "pip install nvidia-ml-py" if missing else "install or restart the driver; nvidia-smi tests it"
        return Check("warning", f"{why}, and torch is built for CUDA {built_for}", fix)
    message = f"{driver.version}, supports CUDA up to {driver.cuda[0]}.{driver.cuda[1]}"
    # Within one major version older drivers run newer builds.
    if built_for and int(built_for.partition(".")[0]) > driver.cuda[0]:
        index = f"https://download.pytorch.org/whl/cu{driver.cuda[0]}{driver.cuda[1]}"
        fix = f"update the driver, or install an older build: pip install torch --index-url {index}"
        return Check("problem", f"{message}; torch is built for CUDA {built_for}", fix)
    return Check("ok", message)


def check_gpu() -> Check:
    torch = find_torch()
    if torch is None:
        return Check("skipped", "needs torch")
    if why_no_gpu() is None:
        gpus = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        # AMD's GPUs count their architectures in another way.
        old = [gpu for gpu in gpus if not torch.version.hip and (gpu.major, gpu.minor) < OLDEST_CAPABILITY]
        if old:
            capability = f"{old[0].name} has compute capability {old[0].major}.{old[0].minor}"
            message = f"{capability}; torch.compile needs 7.0 or newer"
            return Check("problem", message, "profile without --compiled, or use a Volta or newer GPU")
        return Check("ok", f"{gpus[0].name}{f', and {len(gpus) - 1} more' if len(gpus) > 1 else ''}")
    driver = read_driver()
    if isinstance(driver, NoDriver) or not driver.gpus:
        message = "no GPU found: workloads run at size tiny on the CPU"
        return Check("warning", message, "to measure a GPU, run tracekit on a machine that has one")
    there = f"the driver reports {driver.gpus[0]}, torch sees no GPU"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return Check("problem", f"{there}: CUDA_VISIBLE_DEVICES is {hidden!r}", "unset CUDA_VISIBLE_DEVICES")
    if not torch.version.cuda:
        fix = "pip uninstall -y torch && pip install torch  # from PyPI"
        return Check("problem", f"{there}: torch was built without CUDA", fix)
    return Check("problem", there, 'python -c "import torch; torch.cuda.init()"  # prints the reason')


def check_gpu_memory() -> Check:
    torch, missing = find_torch(), why_no_gpu()
    if missing or torch is None:
        return Check("skipped", missing or "needs torch")
    free, total = map(int, torch.cuda.mem_get_info())
    message = f"{free / GIB:.1f} of {total / GIB:.1f} GiB free"
    if free < QUIET_FRACTION * total:
        return Check(
            "warning", f"{message}: other processes use this GPU and disturb timing", "nvidia-smi  # lists them"
        )
    return Check("ok", message)


def check_profiler_access() -> Check:
    """Whether the profiler sees kernels. Found out by profiling some."""
    if missing := why_no_gpu():
        return Check("skipped", missing)
    try:
        kernels = count_recorded_kernels()
    except RuntimeError as error:
        return Check("problem", f"does not start: {str(error).splitlines()[0]}", PROFILER_FIX)
    if kernels == 0:
        message = "records no kernels: CUPTI lacks permission, or another profiler is active"
        return Check("problem", message, PROFILER_FIX)
    return Check("ok", f"recorded {kernels} kernels of a small matmul")


def count_recorded_kernels() -> int:
    """How many GPU events torch.profiler records of a few small multiplications."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    values = torch.ones(64, 64, device="cuda")
    torch.cuda.synchronize()
    # The first session in a process may lose its first kernels: CUPTI is still starting.
    for _ in range(2):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as recording:
            for _ in range(3):
                values = values @ values * 0.5
            torch.cuda.synchronize()
    events = recording.events() or []
    return sum(event.device_type.name == "CUDA" for event in events)
