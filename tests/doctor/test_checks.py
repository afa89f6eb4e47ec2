"""What is said of GPUs, with torch and the driver pretended."""

import shutil
import stat
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tracekit.doctor import Check, gpu, toolchain
from tracekit.doctor.checks import CHECKS, answer
from tracekit.doctor.environment import GIB
from tracekit.doctor.gpu import check_driver, check_gpu, check_gpu_memory
from tracekit.doctor.toolchain import check_c_compiler, check_cpp_compiler, check_setuptools
from tracekit.nvml import Driver, NoDriver


@pytest.mark.parametrize("ask", CHECKS.values(), ids=CHECKS)
def test_every_check_answers_with_one_line_and_what_mends_it(ask: Callable[[], Check]) -> None:
    found = ask()
    assert found.message and "\n" not in found.message + (found.fix or "")
    assert (found.fix is not None) == (found.status in ("warning", "problem")), found


def test_a_check_that_breaks_is_told_as_a_problem_and_ctrl_c_stops_the_checks() -> None:
    def broken() -> Check:
        raise RuntimeError("CUDA error: unknown\nmore of it")

    def interrupted() -> Check:
        raise KeyboardInterrupt

    found = answer(broken)
    assert (found.status, found.message.endswith(": RuntimeError: CUDA error: unknown")) == ("problem", True)
    with pytest.raises(KeyboardInterrupt):
        answer(interrupted)


H200 = Driver("570.1", (12, 8), ("NVIDIA H200",))
GONE = NoDriver("no_driver", "gone")


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Stands a machine in: what its driver says, what torch is built for, and whether that sees a GPU."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def machine(
        *,
        driver: Driver | NoDriver = H200,
        cuda: str | None = "12.8",
        no_gpu: str | None = None,
        capability: tuple[int, int] = (9, 0),
        hip: str | None = None,
        free_gib: int = 139,
        hidden: str | None = None,
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
        if hidden is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)

    return machine


OLD_CARD = {"capability": (6, 1)}
UNSEEN = {"no_gpu": "no GPU"}


@pytest.mark.parametrize(
    ("check", "machine", "status", "told"),
    [
        (check_gpu, {}, "ok", "card 0, and 1 more"),
        (check_gpu, OLD_CARD, "problem", "card 0 has compute capability 6.1"),
        # AMD's GPUs count in another way.
        (check_gpu, {**OLD_CARD, "cuda": None, "hip": "6.4"}, "ok", "card 0"),
        (check_gpu, {**UNSEEN, "driver": GONE, "cuda": None}, "warning", "CPU"),
        (check_gpu, {**UNSEEN, "hidden": ""}, "problem", "unset CUDA_VISIBLE_DEVICES"),
        (check_gpu, {**UNSEEN, "cuda": None}, "problem", "pip uninstall -y torch"),
        (check_driver, {"driver": GONE, "cuda": None}, "skipped", "no NVIDIA driver (gone)"),
        (check_driver, {"driver": NoDriver("no_library")}, "warning", "pip install nvidia-ml-py"),
        (check_driver, {"cuda": "13.0"}, "problem", "https://download.pytorch.org/whl/cu128"),
        # One of the same major version is enough.
        (check_driver, {"driver": Driver("525.1", (12, 0), ("NVIDIA H200",))}, "ok", "CUDA up to 12.0"),
        (check_gpu_memory, {}, "ok", "139.0 of 140.0 GiB free"),
        (check_gpu_memory, {"free_gib": 20}, "warning", "20.0 of 140.0 GiB free"),
    ],
)
def test_what_is_said_of_a_gpu_and_its_driver(
    pretend: Callable[..., None], check: Callable[[], Check], machine: dict[str, Any], status: str, told: str
) -> None:
    pretend(**machine)
    found = check()
    assert (found.status, told in f"{found.message}; {found.fix}") == (status, True), found


def make_compiler(folder: Path, script: str) -> Path:
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
def test_a_compiler_that_works_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++")
    found = check_cpp_compiler()
    assert (found.status, "g++" in found.message) == ("ok", True)


def test_a_missing_compiler_is_a_problem_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    found = check_c_compiler()
    assert (found.status, found.fix) == ("problem", "apt install gcc")
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
    assert (found.status, found.message.endswith(": cannot find cc1")) == ("problem", True)


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
