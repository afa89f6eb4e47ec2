from __future__ import annotations

import pytest

from tracekit.model.workload import Request
from tracekit.workloads.settings import fill_in
from tracekit.workloads.variables import steering_variables
from tracekit.workloads.vit_info import VIT


def test_what_steers_torch_is_told_and_what_names_a_place_is_not() -> None:
    steering = {
        "CUBLAS_WORKSPACE_CONFIG": ":16:8",
        "CUDA_LAUNCH_BLOCKING": "1",
        "TORCHINDUCTOR_GRAPH_PARTITION": "0",
    }
    others = {
        "HOME": "here",
        "TORCHINDUCTOR_CACHE_DIR": "cache",
        "TRITON_PTXAS_BLACKWELL_PATH": "ptxas",
        "TRITON_OVERRIDE": "/somewhere/else",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "TORCH_LOGS": "dynamo",
    }
    assert steering_variables({**others, **steering}) == steering


def test_what_torch_sets_itself_is_no_choice() -> None:
    assert steering_variables({"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}) == {}


def test_a_run_s_settings_hold_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_INLINE_INBUILT_NN_MODULES", "0")
    settings = fill_in(VIT, Request("vit"), "tiny", "cpu")
    assert settings.variables["TORCHDYNAMO_INLINE_INBUILT_NN_MODULES"] == "0"
