"""What keeps torch.compile or the profiler from working is said before anything is built; what the machine is."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
import torch
from tests.capture.conftest import make_settings

# Now: in a test that pretends another triton, torch would import that one.
from torch._inductor import cpp_builder, exc

from tracekit.capture import inductor, visible_kernels
from tracekit.capture.device import read_environment
from tracekit.capture.forms import compiled_form
from tracekit.capture.inductor import cache_is_empty, check_cache, check_compilers, idle_mode
from tracekit.capture.visible_kernels import SEEN, UNSEEN, checked_meanwhile
from tracekit.capture.warmup import warm_up
from tracekit.errors import TracekitError
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload


def test_a_missing_cpp_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise exc.InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", none)
    with pytest.raises(TracekitError, match=r"apt install g\+\+"):
        check_compilers("cpu")


@pytest.mark.parametrize(
    ("capability", "hip", "triton", "error"),
    [
        ((6, 0), None, True, r"Tesla P100 has compute capability 6\.0"),
        # AMD's GPUs count differently.
        ((6, 0), "6.4", True, None),
        ((9, 0), None, True, None),
        ((9, 0), None, False, r"pip install 'triton==3\.6\.0'"),
    ],
)
def test_a_gpu_that_triton_knows_no_more_and_a_missing_triton_are_named(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], hip: str | None, triton: bool, error: str | None
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla P100")
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setitem(sys.modules, "triton", types.ModuleType("triton") if triton else None)
    monkeypatch.setattr(inductor.metadata, "requires", lambda _name: ["numpy", "triton==3.6.0; platform_system"])
    if error is None:
        check_compilers("cuda")
        return
    with pytest.raises(TracekitError, match=error):
        check_compilers("cuda")


@pytest.mark.parametrize(("mode", "idle"), [("reduce-overhead", True), ("max-autotune", True), ("default", False)])
def test_a_mode_that_asks_a_cpu_for_cuda_graphs_is_said_to_do_nothing_there(mode: str, idle: bool) -> None:
    assert (idle_mode(make_settings(mode=mode)) is not None) is idle
    assert idle_mode(make_settings(mode=mode, device="cuda")) is None


def test_a_cache_that_cannot_be_written_to_is_said_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    check_cache()
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(TracekitError, match="set TORCHINDUCTOR_CACHE_DIR"):
        check_cache()


def test_what_lies_in_the_cache_is_looked_up_before_a_form_fills_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workload: BuiltWorkload
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    (tmp_path / "aa").mkdir()
    assert cache_is_empty() is True, "folders are no files"
    # One program in a cache of its own compiles sooner without headers that are compiled for all.
    with torch._inductor.config.patch(cpp_cache_precompile_headers=False):
        first = warm_up(compiled_form(workload), Silent()).compilation
    assert first is not None and first.cache_was_empty is True
    assert cache_is_empty() is False


def answering(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(visible_kernels, "COMMAND", [sys.executable, "-c", code])


def test_kernels_that_no_profiler_sees_end_the_run_when_the_block_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, f"raise SystemExit({UNSEEN})")
    built = []
    with pytest.raises(TracekitError, match="tracekit doctor"), checked_meanwhile("cuda"):
        built.append("model")
    assert built == ["model"]


@pytest.mark.parametrize("code", [f"raise SystemExit({SEEN})", "raise RuntimeError('this GPU is taken')"])
def test_kernels_that_are_seen_and_a_process_without_an_answer_let_the_run_go_on(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    answering(monkeypatch, code)
    with checked_meanwhile("cuda"):
        pass


def test_a_process_that_hangs_is_ended_and_what_fails_meanwhile_is_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "import time; time.sleep(600)")
    with pytest.raises(MemoryError), checked_meanwhile("cuda"):
        raise MemoryError
    monkeypatch.setattr(visible_kernels, "PATIENCE_SECONDS", 0.1)
    with checked_meanwhile("cuda"):
        pass


def test_a_cpu_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_kernels, "COMMAND", ["/nowhere"])
    with checked_meanwhile("cpu"):
        pass


def test_a_cpu_run_claims_no_gpu() -> None:
    environment = read_environment("cpu")
    assert (environment.gpu, environment.gpu_memory_bytes, environment.driver) == (None, None, None)
    assert environment.packages["torch"] == torch.__version__
    assert environment.cpu_threads == torch.get_num_threads()


def test_it_holds_how_float32_is_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert read_environment("cpu").float32_matmul_precision == "high"
    finally:
        torch.set_float32_matmul_precision(before)

    def mixed() -> str:
        raise RuntimeError("PyTorch is checking whether allow_tf32_new is enabled")

    monkeypatch.setattr(torch, "get_float32_matmul_precision", mixed)
    assert read_environment("cpu").float32_matmul_precision is None
