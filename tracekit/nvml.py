"""What NVIDIA's driver says of itself and of its GPUs: the only file that imports pynvml. It imports no torch.

NVML: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from tracekit.model.gpu import GpuSample, Moment

#: Clock event reasons that mean the GPU was held back, by bit. Idle, clocks set by the user, synchronised boost and
#: display settings are no throttling.
REASONS = {
    0x4: "power limit (software)",
    0x8: "hardware slowdown",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}


class Driver(Struct, frozen=True):
    """The driver, the newest CUDA it can run as (major, minor), and the GPUs it has by name."""

    version: str
    cuda: tuple[int, int]
    gpus: tuple[str, ...]


class NoDriver(Struct, frozen=True):
    """Why there is no driver to be read, and the library's own words for it."""

    code: Literal["no_library", "no_driver", "no_answer"]
    error: str = ""


def read_driver() -> Driver | NoDriver:
    """The driver, or why there is none to be read."""
    nvml = _started()
    if isinstance(nvml, NoDriver):
        return nvml
    try:
        cuda = int(nvml.nvmlSystemGetCudaDriverVersion())
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        names = tuple(_text(nvml.nvmlDeviceGetName(handle)) for handle in handles)
        return Driver(_text(nvml.nvmlSystemGetDriverVersion()), (cuda // 1000, cuda % 1000 // 10), names)
    except nvml.NVMLError as error:
        return NoDriver("no_answer", str(error))
    finally:
        nvml.nvmlShutdown()


def driver_version() -> str | None:
    """The driver's version alone, also where its GPUs do not answer; None where there is none to be read."""
    nvml = _started()
    if isinstance(nvml, NoDriver):
        return None
    try:
        return _text(nvml.nvmlSystemGetDriverVersion())
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()


def find_gpu(properties: Any) -> Gpu | None:
    """The GPU that torch describes by these properties: by UUID, since CUDA_VISIBLE_DEVICES renumbers; else by its
    place on the bus. None where NVML is missing, does not answer or knows no such GPU."""
    nvml = _started()
    if isinstance(nvml, NoDriver):
        return None
    uuid = str(getattr(properties, "uuid", "")).removeprefix("GPU-").removeprefix("MIG-")
    names = (f"GPU-{uuid}", f"MIG-{uuid}") if uuid else ()
    by_name = (_asked(nvml, "nvmlDeviceGetHandleByUUID", name) for name in names)
    handle = next((each for each in by_name if each is not None), None)
    if handle is None:
        domain, bus, device = (getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device"))
        if domain is None or bus is None or device is None:
            return None
        handle = _asked(nvml, "nvmlDeviceGetHandleByPciBusId", f"{domain:04x}:{bus:02x}:{device:02x}.0")
    if handle is None:
        return None
    whole = _asked(nvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
    return Gpu(nvml, handle, whole if whole is not None else handle)


class Gpu:
    """One GPU to be asked. What it or its driver does not support is None."""

    def __init__(self, nvml: Any, handle: Any, whole: Any) -> None:
        # A part of a GPU (MIG) has processes of its own, and no clocks, power and temperature of its own.
        self._nvml, self._handle, self._whole = nvml, handle, whole

    def sample(self, moment: Moment, seconds: float) -> GpuSample:
        """The GPU as it is now: first what changes soonest."""
        nvml, power_w = self._nvml, self._watts("nvmlDeviceGetPowerUsage")
        processes = _asked(nvml, "nvmlDeviceGetComputeRunningProcesses", self._handle)
        pids = [process.pid for process in processes] if processes is not None else None
        return GpuSample(
            moment=moment,
            seconds=seconds,
            sm_clock_mhz=self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            memory_clock_mhz=self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            power_w=power_w,
            temperature_c=self._ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            slowed_by=self._slowed_by(),
            other_processes=count_others(pids, os.getpid()),
        )

    def _slowed_by(self) -> tuple[str, ...] | None:
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            # The name it had before driver 535.
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return tuple(word for bit, word in REASONS.items() if bits & bit) if bits is not None else None

    def slowed_us(self) -> dict[str, float] | None:
        """How long each limit has held the GPU back, by counters that only grow."""
        limits = {"power": self._nvml.NVML_PERF_POLICY_POWER, "temperature": self._nvml.NVML_PERF_POLICY_THERMAL}
        found = {name: self._ask("nvmlDeviceGetViolationStatus", policy) for name, policy in limits.items()}
        # `violationTime` counts nanoseconds.
        grown = {name: status.violationTime / 1e3 for name, status in found.items() if status is not None}
        return grown or None

    def power_limit_w(self) -> float | None:
        return self._watts("nvmlDeviceGetEnforcedPowerLimit")

    def _watts(self, function: str) -> float | None:
        milliwatts = self._ask(function)
        return milliwatts / 1e3 if milliwatts is not None else None

    def _ask(self, function: str, *arguments: Any) -> Any:
        return _asked(self._nvml, function, self._whole, *arguments)


def count_others(pids: Iterable[int] | None, own: int) -> int | None:
    """How many processes besides our own have the GPU open. In a container our own is listed under a number that we do
    not know: of several then one is taken for ours, of one or none nothing can be said."""
    if pids is None:
        return None
    listed = set(pids)
    return len(listed) - 1 if own in listed or len(listed) > 1 else None


def _started() -> Any | NoDriver:
    """pynvml, ready to be asked, or why there is nobody to ask."""
    try:
        import pynvml
    except ImportError:
        return NoDriver("no_library")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return NoDriver("no_driver", str(error))
    return pynvml


def _asked(nvml: Any, function: str, *arguments: Any) -> Any:
    """What NVML answers; None where this GPU or this driver does not support the question."""
    try:
        return getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, AttributeError):
        return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
