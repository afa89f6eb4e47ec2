"""What the NVIDIA driver says, asked without torch."""

from __future__ import annotations

from dataclasses import dataclass

from tracekit.doctor.accelerator import find_torch
from tracekit.doctor.check import Check, ok, problem, skipped, warning

NAME = "driver"


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver, the newest CUDA it can run as (major, minor), and the GPUs it has by name."""

    version: str
    cuda: tuple[int, int]
    gpus: tuple[str, ...]


def read_driver() -> Driver | str:
    """The driver, or in a few words why there is none to be read."""
    try:
        import pynvml
    except ImportError:
        return "nvidia-ml-py is not installed"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return f"no NVIDIA driver ({error})"
    try:
        cuda = int(pynvml.nvmlSystemGetCudaDriverVersion())
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        names = tuple(_text(pynvml.nvmlDeviceGetName(handle)) for handle in handles)
        return Driver(_text(pynvml.nvmlSystemGetDriverVersion()), (cuda // 1000, cuda % 1000 // 10), names)
    except pynvml.NVMLError as error:
        return f"the NVIDIA driver does not answer ({error})"
    finally:
        pynvml.nvmlShutdown()


def check_driver() -> Check:
    torch = find_torch()
    built_for = str(torch.version.cuda) if torch is not None and torch.version.cuda else None
    driver = read_driver()
    if isinstance(driver, str):
        if built_for is None:
            return skipped(NAME, driver)
        fix = "pip install nvidia-ml-py" if "nvidia-ml-py" in driver else "install or restart the driver: nvidia-smi"
        return warning(NAME, f"{driver}, and torch is built for CUDA {built_for}", fix)
    message = f"{driver.version}, runs CUDA up to {driver.cuda[0]}.{driver.cuda[1]}"
    # Within one major version older drivers run newer builds.
    if built_for and int(built_for.partition(".")[0]) > driver.cuda[0]:
        return problem(
            NAME,
            f"{message}; torch is built for CUDA {built_for}",
            "update the driver, or take an older build: pip install torch --index-url"
            f" https://download.pytorch.org/whl/cu{driver.cuda[0]}{driver.cuda[1]}",
        )
    return ok(NAME, message)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
