"""The libraries that tell a GPU's state: NVIDIA's NVML and AMD's SMI. Everything they may not support is None.

NVML: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
AMD SMI: https://rocm.docs.amd.com/projects/amdsmi/en/latest/reference/amdsmi-py-api.html
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch

from tracekit.model.gpu_state import GpuSample, Moment

#: NVML's clock event reasons that mean the GPU was held back, by bit. Idle, clocks set by the user, synchronised boost
#: and display settings are no throttling.
REASONS = {
    0x4: "power limit (software)",
    0x8: "hardware slowdown",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}


class Driver(Protocol):
    """What is asked of one GPU."""

    @property
    def source(self) -> Any: ...

    def sample(self, moment: Moment, seconds: float) -> GpuSample: ...

    def slowed_us(self) -> dict[str, float] | None: ...

    def power_limit_w(self) -> float | None: ...


def find_driver(index: int) -> Driver | None:
    """What tells the state of torch's device `index`; None where the library for it is missing or does not answer."""
    return _Amd.find(index) if torch.version.hip else _Nvidia.find(index)


def count_others(pids: Iterable[int] | None, own: int) -> int | None:
    """How many processes besides our own have the GPU open. In a container our own is listed under a number that we do
    not know: of several then one is taken for ours, of one or none nothing can be said."""
    if pids is None:
        return None
    listed = set(pids)
    if own in listed:
        return len(listed) - 1
    return len(listed) - 1 if len(listed) > 1 else None


class _Nvidia:
    source = "nvml"

    def __init__(self, nvml: Any, handle: Any, whole: Any) -> None:
        # A part of a GPU (MIG) has processes of its own, and no clocks, power and temperature of its own.
        self._nvml, self._handle, self._whole = nvml, handle, whole

    @classmethod
    def find(cls, index: int) -> _Nvidia | None:
        try:
            import pynvml
        except ImportError:
            return None
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return None
        handle = _nvml_handle(pynvml, torch.cuda.get_device_properties(index))
        if handle is None:
            return None
        whole = _asked(pynvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
        return cls(pynvml, handle, whole if whole is not None else handle)

    def _ask(self, function: str, *arguments: Any) -> Any:
        return _asked(self._nvml, function, self._whole, *arguments)

    def sample(self, moment: Moment, seconds: float) -> GpuSample:
        nvml = self._nvml
        milliwatts = self._ask("nvmlDeviceGetPowerUsage")
        return GpuSample(
            moment=moment,
            seconds=seconds,
            sm_clock_mhz=self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            memory_clock_mhz=self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            power_w=milliwatts / 1e3 if milliwatts is not None else None,
            temperature_c=self._ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            slowed_by=self._reasons(),
            other_processes=self._others(),
        )

    def _reasons(self) -> tuple[str, ...] | None:
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            # The name it had before driver 535.
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return tuple(word for bit, word in REASONS.items() if bits & bit) if bits is not None else None

    def _others(self) -> int | None:
        listed = _asked(self._nvml, "nvmlDeviceGetComputeRunningProcesses", self._handle)
        return count_others([process.pid for process in listed] if listed is not None else None, os.getpid())

    def slowed_us(self) -> dict[str, float] | None:
        limits = {"power": self._nvml.NVML_PERF_POLICY_POWER, "temperature": self._nvml.NVML_PERF_POLICY_THERMAL}
        found = {name: self._ask("nvmlDeviceGetViolationStatus", policy) for name, policy in limits.items()}
        # `violationTime` counts nanoseconds.
        told = {name: status.violationTime / 1e3 for name, status in found.items() if status is not None}
        return told or None

    def power_limit_w(self) -> float | None:
        milliwatts = self._ask("nvmlDeviceGetEnforcedPowerLimit")
        return milliwatts / 1e3 if milliwatts is not None else None


def _nvml_handle(nvml: Any, properties: Any) -> Any:
    """The device that torch calls by these properties: by UUID, since CUDA_VISIBLE_DEVICES renumbers; else by its place
    on the bus. None if neither names one."""
    uuid = str(getattr(properties, "uuid", "")).removeprefix("GPU-").removeprefix("MIG-")
    for name in (f"GPU-{uuid}", f"MIG-{uuid}") if uuid else ():
        handle = _asked(nvml, "nvmlDeviceGetHandleByUUID", name)
        if handle is not None:
            return handle
    address = _bus_address(properties)
    return _asked(nvml, "nvmlDeviceGetHandleByPciBusId", address) if address else None


def _bus_address(properties: Any) -> str | None:
    domain, bus, device = (getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device"))
    if domain is None or bus is None or device is None:
        return None
    return f"{domain:04x}:{bus:02x}:{device:02x}.0"


def _asked(nvml: Any, function: str, *arguments: Any) -> Any:
    """What NVML answers; None where this GPU or this driver does not support the question."""
    try:
        return getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, AttributeError):
        return None


class _Amd:
    source = "amdsmi"

    def __init__(self, smi: Any, handle: Any) -> None:
        self._smi, self._handle = smi, handle

    @classmethod
    def find(cls, index: int) -> _Amd | None:
        try:
            import amdsmi
        except (ImportError, OSError, KeyError):
            # It loads ROCm's library while it is imported.
            return None
        address = _bus_address(torch.cuda.get_device_properties(index))
        try:
            amdsmi.amdsmi_init()
            handle = amdsmi.amdsmi_get_processor_handle_from_bdf(address) if address else None
        except amdsmi.AmdSmiException:
            return None
        return cls(amdsmi, handle) if handle is not None else None

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        try:
            return question(self._smi)
        except (self._smi.AmdSmiException, AttributeError, KeyError):
            return None

    def sample(self, moment: Moment, seconds: float) -> GpuSample:
        return GpuSample(
            moment=moment,
            seconds=seconds,
            sm_clock_mhz=_number(self._ask(lambda smi: self._clock(smi, smi.AmdSmiClkType.GFX))),
            memory_clock_mhz=_number(self._ask(lambda smi: self._clock(smi, smi.AmdSmiClkType.MEM))),
            power_w=_number(self._power()),
            temperature_c=_number(self._ask(self._temperature)),
            slowed_by=None,
            other_processes=self._others(),
        )

    def _clock(self, smi: Any, kind: Any) -> Any:
        return smi.amdsmi_get_clock_info(self._handle, kind)["clk"]

    def _temperature(self, smi: Any) -> Any:
        kind = smi.AmdSmiTemperatureType.HOTSPOT
        return smi.amdsmi_get_temp_metric(self._handle, kind, smi.AmdSmiTemperatureMetric.CURRENT)

    def _power(self) -> Any:
        told = self._ask(lambda smi: smi.amdsmi_get_power_info(self._handle)) or {}
        return next(
            (told[key] for key in ("current_socket_power", "average_socket_power") if _number(told.get(key))), None
        )

    def _others(self) -> int | None:
        listed = self._ask(lambda smi: [each["pid"] for each in smi.amdsmi_get_gpu_process_list(self._handle)])
        return count_others(listed, os.getpid())

    def slowed_us(self) -> dict[str, float] | None:
        return None

    def power_limit_w(self) -> float | None:
        return None


def _number(value: Any) -> Any:
    """AMD SMI answers `N/A` where there is nothing."""
    return value if isinstance(value, int | float) else None
