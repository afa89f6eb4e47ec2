"""NVIDIA's and AMD's libraries pretended: what they answer, what they refuse."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tracekit.capture import gpu_drivers  # noqa: E402
from tracekit.capture.gpu_drivers import count_others, find_driver  # noqa: E402

UUID = "0123abcd-0000-0000-0000-000000000000"


class NVMLError(Exception):
    pass


def refuse(*_arguments: Any) -> Any:
    raise NVMLError("Not Supported")


def fake_nvml(**changes: Any) -> Any:
    """An NVML that knows one GPU, busy at 1,755 MHz and held back by its power limit."""
    pids = [os.getpid()]
    answers: dict[str, Any] = {
        "NVMLError": NVMLError,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "NVML_PERF_POLICY_POWER": 0,
        "NVML_PERF_POLICY_THERMAL": 1,
        "nvmlInit": lambda: None,
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


@pytest.fixture(autouse=True)
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, uuid=UUID)
    monkeypatch.setattr(torch.version, "hip", None)


def pretend(monkeypatch: pytest.MonkeyPatch, **properties: Any) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _index: SimpleNamespace(**properties))


def found(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Any:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(**changes))
    return find_driver(0)


def test_a_sample_holds_what_the_driver_says_in_its_units(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = found(monkeypatch)
    sample = driver.sample("during", 1.5)
    assert (sample.moment, sample.seconds) == ("during", 1.5)
    assert (sample.sm_clock_mhz, sample.memory_clock_mhz) == (1755, 2619)
    assert (sample.power_w, sample.temperature_c) == (698.5, 61)
    assert sample.other_processes == 0
    assert driver.power_limit_w() == 700
    assert driver.slowed_us() == {"power": 7.0, "temperature": 14.0}


def test_being_idle_is_no_reason_for_slowness_and_limits_are_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch).sample("before", 0).slowed_by == ("power limit (software)", "temperature (hardware)")
    idle = found(monkeypatch, nvmlDeviceGetCurrentClocksEventReasons=lambda _gpu: 0x1 | 0x2 | 0x10 | 0x100)
    assert idle.sample("before", 0).slowed_by == ()


def test_an_older_library_is_asked_by_the_older_name(monkeypatch: pytest.MonkeyPatch) -> None:
    older = fake_nvml(nvmlDeviceGetCurrentClocksThrottleReasons=lambda _gpu: 0x8)
    del older.nvmlDeviceGetCurrentClocksEventReasons
    monkeypatch.setitem(sys.modules, "pynvml", older)
    driver = find_driver(0)
    assert driver is not None
    assert driver.sample("before", 0).slowed_by == ("hardware slowdown",)


def test_what_the_gpu_does_not_support_is_missing_and_not_0(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [name for name in vars(fake_nvml()) if name.startswith("nvmlDeviceGet") and "Handle" not in name]
    driver = found(monkeypatch, **dict.fromkeys(questions, refuse))
    sample = driver.sample("after", 0)
    assert [getattr(sample, field) for field in sample.__slots__[2:]] == [None] * 6
    assert (driver.slowed_us(), driver.power_limit_w()) == (None, None)


def test_the_gpu_is_found_by_its_place_on_the_bus_where_no_uuid_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=0)
    asked: list[str] = []
    driver = found(monkeypatch, nvmlDeviceGetHandleByPciBusId=lambda address: asked.append(address) or "gpu")
    assert asked == ["0000:1b:00.0"]
    assert driver is not None


def test_a_part_of_a_gpu_has_its_own_processes_and_the_whole_one_s_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, str] = {}
    driver = found(
        monkeypatch,
        nvmlDeviceGetHandleByUUID=lambda uuid: "part" if uuid == f"MIG-{UUID}" else refuse(),
        nvmlDeviceGetDeviceHandleFromMigDeviceHandle=lambda _part: "whole",
        nvmlDeviceGetClockInfo=lambda gpu, _clock: asked.setdefault("clock", gpu) and 1000,
        nvmlDeviceGetComputeRunningProcesses=lambda gpu: asked.setdefault("processes", gpu) and [],
    )
    driver.sample("before", 0)
    assert asked == {"clock": "whole", "processes": "part"}


def test_without_the_library_the_driver_or_the_device_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find_driver(0) is None
    assert found(monkeypatch, nvmlInit=refuse) is None
    assert found(monkeypatch, nvmlDeviceGetHandleByUUID=refuse) is None


@pytest.mark.parametrize(
    ("pids", "others"),
    [(None, None), ([], None), ([7], 0), ([7, 8, 9], 2), ([8], None), ([8, 9], 1)],
)
def test_other_processes_are_those_that_are_not_ours(pids: list[int] | None, others: int | None) -> None:
    assert count_others(pids, own=7) == others


class AmdError(Exception):
    pass


def test_amd_s_library_is_asked_on_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    def metrics(_gpu: Any, _kind: Any, _metric: Any) -> Any:
        raise AmdError

    smi = SimpleNamespace(
        AmdSmiException=AmdError,
        AmdSmiClkType=SimpleNamespace(GFX="gfx", MEM="mem"),
        AmdSmiTemperatureType=SimpleNamespace(HOTSPOT=1),
        AmdSmiTemperatureMetric=SimpleNamespace(CURRENT=0),
        amdsmi_init=lambda: None,
        amdsmi_get_processor_handle_from_bdf=lambda address: f"gpu at {address}",
        amdsmi_get_clock_info=lambda _gpu, kind: {"clk": {"gfx": 2100, "mem": "N/A"}[kind]},
        amdsmi_get_power_info=lambda _gpu: {"current_socket_power": "N/A", "average_socket_power": 650},
        amdsmi_get_temp_metric=metrics,
        amdsmi_get_gpu_process_list=lambda _gpu: [{"pid": os.getpid()}, {"pid": -5}],
    )
    monkeypatch.setitem(sys.modules, "amdsmi", smi)
    monkeypatch.setattr(torch.version, "hip", "7.2")
    pretend(monkeypatch, pci_domain_id=0, pci_bus_id=1, pci_device_id=0)
    driver = find_driver(0)
    assert isinstance(driver, gpu_drivers._Amd)
    sample = driver.sample("before", 0)
    assert (sample.sm_clock_mhz, sample.memory_clock_mhz, sample.power_w) == (2100, None, 650)
    assert (sample.temperature_c, sample.slowed_by, sample.other_processes) == (None, None, 1)


def test_rocm_without_its_library_has_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    monkeypatch.setattr(torch.version, "hip", "7.2")
    assert find_driver(0) is None
