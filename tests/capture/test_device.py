from __future__ import annotations

import pytest
import torch

from tracekit.capture.device import read_environment


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
