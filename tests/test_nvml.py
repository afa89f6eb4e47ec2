"""NVIDIA's library pretended: what it answers, what it refuses."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tracekit.model.gpu import COUNTED_AS, GpuSample
from tracekit.nvml import REASONS, Driver, Gpu, NoDriver, count_others, driver_version, find_gpu, read_driver

UUID = "0123abcd-0000-0000-0000-000000000000"


class NVMLError(Exception):
    pass


def refuse(*_arguments: Any) -> Any:
    raise NVMLError("Not Supported")


def fake_nvml(**changes: Any) -> Any:
    """An NVML of two GPUs, of which torch has one: busy at 1,755 MHz and held back by its power limit."""
    pids = [os.getpid()]
    answers: dict[str, Any] = {
        "NVMLError": NVMLError,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "NVML_PERF_POLICY_POWER": 0,
        "NVML_PERF_POLICY_THERMAL": 1,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        # Older versions of the library answer in bytes.
        "nvmlSystemGetDriverVersion": lambda: b"570.1",
        "nvmlSystemGetCudaDriverVersion": lambda: 12080,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: f"gpu {index}",
        "nvmlDeviceGetName": lambda _gpu: "NVIDIA H200",
        "nvmlDeviceGetHandleByUUID": lambda uuid: "gpu" if uuid == f"GPU-{UUID}" else refuse(),
        "nvmlDeviceGetHandleByPciBusId": refuse,
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": refuse,
        "nvmlDeviceGetClockInfo": lambda _gpu, clock: {1: 1755, 2: 2619}[clock],
        "nvmlDeviceGetPowerUsage": lambda _gpu: 698_500,
        "nvmlDeviceGetTemperature": lambda _gpu, _sensor: 61,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda _gpu: 0x1 | 0x4 | 0x40,
        "nvmlDeviceGetComputeRunningProcesses": lambda _gpu: [SimpleNamespace(pid=pid) for pid in pids],
        "nvmlDeviceGetViolationStatus": lambda _gpu, policy: SimpleNamespace(violationTime=7000 * (policy + 1)),
        "nvmlDeviceGetEnforcedPowerLimit": lambda _gpu: 700_000,
    }
    return SimpleNamespace(**{**answers, **changes})


def pretend(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(**changes))


def found(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Gpu:
    pretend(monkeypatch, **changes)
    gpu = find_gpu(SimpleNamespace(uuid=UUID))
    assert gpu is not None
    return gpu


def test_a_sample_holds_what_the_driver_says_in_its_units_and_limits_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = found(monkeypatch)
    limits = ("power limit (software)", "temperature (hardware)")
    assert gpu.sample("during", 1.5) == GpuSample("during", 1.5, 1755, 2619, 698.5, 61, limits, 0)
    assert gpu.power_limit_w() == 700
    assert gpu.slowed_us() == {"power": 7.0, "temperature": 14.0}


def test_being_idle_is_no_reason_for_slowness_and_an_older_library_is_asked_by_the_older_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    idle = found(monkeypatch, nvmlDeviceGetCurrentClocksEventReasons=lambda _gpu: 0x1 | 0x2 | 0x10 | 0x100)
    assert idle.sample("before", 0).slowed_by == ()
    gpu = found(monkeypatch, nvmlDeviceGetCurrentClocksThrottleReasons=lambda _gpu: 0x8)
    del sys.modules["pynvml"].nvmlDeviceGetCurrentClocksEventReasons
    assert gpu.sample("before", 0).slowed_by == ("hardware slowdown",)
    # What a counter tells too is known by these very words.
    assert COUNTED_AS.keys() < {*REASONS.values()}


def test_what_the_gpu_does_not_support_is_missing_and_not_0(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [name for name in vars(fake_nvml()) if name.startswith("nvmlDeviceGet") and "Handle" not in name]
    gpu = found(monkeypatch, **dict.fromkeys(questions, refuse))
    sample = gpu.sample("after", 0)
    assert [getattr(sample, field) for field in sample.__struct_fields__[2:]] == [None] * 6
    assert (gpu.slowed_us(), gpu.power_limit_w()) == (None, None)


def test_the_gpu_is_found_by_its_place_on_the_bus_where_no_uuid_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    pretend(monkeypatch, nvmlDeviceGetHandleByPciBusId=lambda address: asked.append(address) or "gpu")
    assert find_gpu(SimpleNamespace(pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=0)) is not None
    assert asked == ["0000:1b:00.0"]


def test_a_part_of_a_gpu_has_its_own_processes_and_the_whole_one_s_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, str] = {}
    gpu = found(
        monkeypatch,
        nvmlDeviceGetHandleByUUID=lambda uuid: "part" if uuid == f"MIG-{UUID}" else refuse(),
        nvmlDeviceGetDeviceHandleFromMigDeviceHandle=lambda _part: "whole",
        nvmlDeviceGetClockInfo=lambda gpu, _clock: asked.setdefault("clock", gpu) and 1000,
        nvmlDeviceGetComputeRunningProcesses=lambda gpu: asked.setdefault("processes", gpu) and [],
    )
    gpu.sample("before", 0)
    assert asked == {"clock": "whole", "processes": "part"}


def test_without_the_library_the_driver_or_the_device_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    described = SimpleNamespace(uuid=UUID)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert (find_gpu(described), driver_version(), read_driver()) == (None, None, NoDriver("no_library"))
    pretend(monkeypatch, nvmlInit=refuse)
    assert (find_gpu(described), driver_version()) == (None, None)
    assert read_driver() == NoDriver("no_driver", "Not Supported")
    pretend(monkeypatch, nvmlDeviceGetHandleByUUID=refuse)
    assert (find_gpu(described), find_gpu(SimpleNamespace())) == (None, None)


def test_the_driver_is_read_with_its_gpus_and_has_a_version_where_they_do_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend(monkeypatch)
    assert read_driver() == Driver("570.1", (12, 8), ("NVIDIA H200", "NVIDIA H200"))
    pretend(monkeypatch, nvmlDeviceGetCount=refuse)
    assert read_driver() == NoDriver("no_answer", "Not Supported")
    assert driver_version() == "570.1"
    pretend(monkeypatch, nvmlSystemGetDriverVersion=refuse)
    assert driver_version() is None


@pytest.mark.parametrize(
    ("pids", "others"), [(None, None), ([], None), ([7], 0), ([7, 8, 9], 2), ([8], None), ([8, 9], 1)]
)
def test_other_processes_are_those_that_are_not_ours(pids: list[int] | None, others: int | None) -> None:
    assert count_others(pids, own=7) == others
