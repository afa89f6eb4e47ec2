from __future__ import annotations

import pytest

from tracekit.model.workload import Request
from tracekit.variables import steering_variables
from tracekit.workloads.building import fill_in
from tracekit.workloads.registry import find

STEERING = {
    *("TORCHINDUCTOR_GRAPH_PARTITION", "TORCHDYNAMO_X", "TORCH_DYNAMO_X", "TORCH_COMPILE_X", "TORCH_CUDNN_X"),
    *("TORCH_BLAS_X", "TRITON_X", "PYTORCH_TUNABLEOP_X", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS"),
    *("PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG", "ATEN_CPU_CAPABILITY", "NVIDIA_TF32_OVERRIDE"),
}
OTHERS = {
    *("HOME", "TORCH_LOGS", "PYTORCH_NVML_BASED_CUDA_CHECK", "CUBLAS_VERSION", "CUBLASLT_LOG_LEVEL"),
    *("TORCHINDUCTOR_CACHE_DIR", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_HOME", "TORCHINDUCTOR_X_FILE"),
    *("TORCH_COMPILE_JOB_ID", "TORCHINDUCTOR_REDIS_HOST", "TRITON_SERVER_VERSION", "TRITON_LOG_X"),
}


def test_what_steers_torch_is_told_and_what_names_a_place_is_not() -> None:
    assert set(steering_variables(dict.fromkeys(STEERING | OTHERS, "1"))) == STEERING
    assert steering_variables({"TRITON_X": "/somewhere/else", "TORCH_BLAS_X": ""}) == {"TORCH_BLAS_X": ""}


def test_what_torch_sets_itself_is_no_choice() -> None:
    assert steering_variables({"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}) == {}


def test_a_run_s_settings_hold_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_INLINE_INBUILT_NN_MODULES", "0")
    settings = fill_in(find("vit"), Request("vit"), "tiny", "cpu")
    assert settings.variables["TORCHDYNAMO_INLINE_INBUILT_NN_MODULES"] == "0"
