"""Which units multiply float32 on this GPU, as the kernels' names tell and as torch was told."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tracekit.analysis.kernels import family_of
from tracekit.comparison.cost.roofline import IN_MATRIX_UNITS, IN_VECTOR_UNITS


@pytest.fixture(autouse=True)
def restored_settings() -> Iterator[None]:
    import torch

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("this GPU has no tf32")
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


def library_kernels(call: Callable[[], Any], folder: Path) -> list[str]:
    import torch
    from torch.profiler import ProfilerActivity, profile

    # The first session in a process may lose its first kernels: CUPTI is still starting.
    for _ in range(2):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            call()
            torch.cuda.synchronize()
    profiler.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    names = [event["name"] for event in events if event.get("cat") == "kernel"]
    found = [name for name in names if family_of(name) in ("gemm", "convolution") and "reduce" not in name.lower()]
    assert found, names
    return found


def units(names: list[str]) -> set[str | None]:
    def of(name: str) -> str | None:
        if any(part in name.lower() for part in IN_MATRIX_UNITS):
            return "matrix"
        return "vector" if any(part in name.lower() for part in IN_VECTOR_UNITS) else None

    return {of(name) for name in names}


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (512, 768, 3072), (4096, 4096, 4096), (197, 768, 768)])
@pytest.mark.parametrize(("precision", "other"), [("highest", "matrix"), ("high", "vector")])
def test_no_product_is_told_to_run_in_units_that_torch_was_told_to_leave(
    m: int, n: int, k: int, precision: str, other: str, tmp_path: Path
) -> None:
    import torch

    torch.set_float32_matmul_precision(precision)
    a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    names = library_kernels(lambda: a @ b, tmp_path)
    # cuBLAS may keep to the vector units where tf32 is allowed; it never uses the others where it is not.
    if precision == "highest" or m >= 4096:
        assert other not in units(names), names


@pytest.mark.parametrize("allowed", [True, False])
def test_no_convolution_is_told_to_run_in_matrix_units_that_cudnn_may_not_use(allowed: bool, tmp_path: Path) -> None:
    import torch

    torch.backends.cudnn.allow_tf32 = allowed
    x, weight = torch.randn(8, 64, 56, 56, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda")
    names = library_kernels(lambda: torch.nn.functional.conv2d(x, weight, padding=1), tmp_path)
    assert "matrix" not in units(names) or allowed, names
