"""Does the profiler see kernels? Found out by profiling one."""

from __future__ import annotations

from tracekit.doctor.accelerator import why_no_gpu
from tracekit.doctor.check import Check, ok, problem, skipped

NAME = "profiler"
FIX = (
    "run as root or with CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN), or let everyone profile:"
    " echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf,"
    " then reboot"
)


def check_profiler_access() -> Check:
    missing = why_no_gpu()
    if missing:
        return skipped(NAME, missing)
    try:
        kernels = count_recorded_kernels()
    except RuntimeError as error:
        return problem(NAME, f"does not start: {str(error).splitlines()[0]}", FIX)
    if kernels == 0:
        return problem(NAME, "records no kernels: CUPTI may not look at this GPU, or another profiler holds it", FIX)
    return ok(NAME, f"recorded {kernels} kernels of a small multiplication")


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
