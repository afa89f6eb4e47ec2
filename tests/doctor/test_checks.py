"""What is said of GPUs, with torch and the driver pretended."""

from __future__ import annotations

import shutil
import stat
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tracekit.doctor import Check, gpu, toolchain
from tracekit.doctor.checks import QUESTIONS, Question, answer
from tracekit.doctor.gpu import GIB, check_driver, check_gpu, check_gpu_memory
from tracekit.doctor.toolchain import check_c_compiler, check_cpp_compiler, check_setuptools
from tracekit.nvml import Driver, NoDriver


def test_every_check_answers_with_one_line_under_its_name_and_what_mends_it() -> None:
    for question, found in zip(QUESTIONS, map(answer, QUESTIONS), strict=True):
        assert found.name == question.name
        assert found.message and "\n" not in found.message + (found.fix or "")
        assert not found.message.startswith("the check broke"), found
        assert (found.fix is not None) == (found.status in ("warning", "problem")), found


def test_a_check_that_breaks_is_told_as_a_problem() -> None:
    def broken() -> Check:
        raise RuntimeError("CUDA error: unknown\nmore of it")

    found = answer(Question("gpu", broken))
    assert (found.name, found.status) == ("gpu", "problem")
    assert found.message == "the check broke: RuntimeError: CUDA error: unknown"


def test_ctrl_c_stops_the_checks() -> None:
    def interrupted() -> Check:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer(Question("gpu", interrupted))


H200 = Driver("570.1", (12, 8), ("NVIDIA H200",))


def pretend(
    monkeypatch: pytest.MonkeyPatch,
    *,
    driver: Driver | NoDriver,
    cuda: str | None,
    no_gpu: str | None = "no GPU",
    capability: tuple[int, int] = (9, 0),
    hip: str | None = None,
    free_gib: int = 139,
) -> None:
    major, minor = capability
    cards: Any = SimpleNamespace(
        device_count=lambda: 2,
        get_device_properties=lambda index: SimpleNamespace(name=f"card {index}", major=major, minor=minor),
        mem_get_info=lambda: (free_gib * GIB, 140 * GIB),
    )
    torch = SimpleNamespace(version=SimpleNamespace(cuda=cuda, hip=hip), cuda=cards)
    monkeypatch.setattr(gpu, "find_torch", lambda: torch)
    monkeypatch.setattr(gpu, "read_driver", lambda: driver)
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: no_gpu)


def test_gpus_that_torch_sees_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, driver=H200, cuda="12.8", no_gpu=None)
    assert (check_gpu().status, check_gpu().message) == ("ok", "card 0, and 1 more")


def test_a_gpu_too_old_for_triton_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, driver=H200, cuda="12.8", no_gpu=None, capability=(6, 1))
    assert check_gpu().status == "problem"
    assert check_gpu().message.startswith("card 0 has compute capability 6.1")
    pretend(monkeypatch, driver=H200, cuda=None, no_gpu=None, capability=(6, 1), hip="6.4")
    assert check_gpu().status == "ok"


def test_a_machine_without_a_gpu_is_only_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, driver=NoDriver("no_driver", "gone"), cuda=None)
    assert check_gpu().status == "warning"
    assert check_driver().status == "skipped"


def test_a_gpu_hidden_by_the_environment_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, driver=H200, cuda="12.8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert (check_gpu().status, check_gpu().fix) == ("problem", "unset CUDA_VISIBLE_DEVICES")


def test_a_torch_without_cuda_beside_a_gpu_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    pretend(monkeypatch, driver=H200, cuda=None)
    assert check_gpu().status == "problem"
    assert "build without CUDA" in check_gpu().message


def test_a_driver_too_old_for_torch_names_the_build_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, driver=H200, cuda="13.0")
    found = check_driver()
    assert found.status == "problem"
    assert (found.fix or "").endswith("https://download.pytorch.org/whl/cu128")
    pretend(monkeypatch, driver=Driver("525.1", (12, 0), ("NVIDIA H200",)), cuda="12.8")
    assert check_driver().status == "ok", "a driver of the same major version is enough"


def test_a_cuda_build_without_a_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, driver=NoDriver("no_library"), cuda="12.8")
    assert (check_driver().status, check_driver().fix) == ("warning", "pip install nvidia-ml-py")


def test_a_gpu_that_others_use_disturbs_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, driver=H200, cuda="12.8", no_gpu=None)
    assert check_gpu_memory().status == "ok"
    pretend(monkeypatch, driver=H200, cuda="12.8", no_gpu=None, free_gib=20)
    busy = check_gpu_memory()
    assert busy.status == "warning"
    assert busy.message == "20.0 of 140.0 GiB free: others use this GPU and disturb timing"


def make_compiler(folder: Path, script: str) -> Path:
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
def test_a_compiler_that_works_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++")
    found = check_cpp_compiler()
    assert found.status == "ok"
    assert "g++" in found.message


def test_a_missing_compiler_is_a_problem_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    found = check_c_compiler()
    assert (found.name, found.status, found.fix) == ("c compiler", "problem", "apt install gcc")
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_c_compiler().status == "problem"
    assert check_cpp_compiler().status == "problem"


def test_a_compiler_that_fails_is_told_with_its_first_complaint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", str(make_compiler(tmp_path, "echo 'cannot find cc1' >&2; echo more >&2; exit 1")))
    found = check_c_compiler()
    assert found.status == "problem"
    assert found.message.endswith("does not work: cannot find cc1")


def test_a_compiler_with_a_wrapper_in_front_is_understood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrapper = make_compiler(tmp_path, '[ "$1" = real ] && echo "cc 1.0"')
    monkeypatch.setenv("CC", f"{wrapper} real")
    assert check_c_compiler().message == "cc 1.0"


def test_setuptools_is_missed_only_where_python_brings_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    monkeypatch.setattr(toolchain, "SETUPTOOLS_NEEDED", False)
    assert check_setuptools().status == "ok"
    monkeypatch.setattr(toolchain, "SETUPTOOLS_NEEDED", True)
    assert (check_setuptools().status, check_setuptools().fix) == ("problem", "pip install setuptools")
