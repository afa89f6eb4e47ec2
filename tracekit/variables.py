"""The variables of the environment that a measurement depends on."""

from __future__ import annotations

from collections.abc import Mapping

#: How the names begin of those that steer torch's compiler and the libraries below it, and of single ones the whole.
PREFIXES = (
    *("TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCH_DYNAMO_", "TORCH_COMPILE_", "TORCH_CUDNN_", "TORCH_BLAS_", "TRITON_"),
    "PYTORCH_TUNABLEOP_",
)
NAMES = (
    *("CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "NVIDIA_TF32_OVERRIDE"),
    *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"),
    *("CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
    *("DISABLE_ADDMM_CUDA_LT", "ATEN_CPU_CAPABILITY", "DIFFUSERS_ATTN_BACKEND", "ENABLE_PERSISTENT_TMA_MATMUL"),
)
#: How the names end, or what they hold, of those that say where something is kept or written, or which job this is:
#: the machine's matter.
PLACES = ("_DIR", "_PATH", "_HOME", "_FILE", "_JOB_ID")
ELSEWHERE = ("_REDIS_", "_SERVER_", "_LOG_")
#: What torch sets itself, in a module of its compiler that not every compilation imports
#: (`torch/_inductor/fx_passes/numeric_utils.py`, 2.11 and 2.13): no choice of anybody's.
OF_TORCH = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def steering_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those that are set and change how fast a model runs or what it returns, by name. Places on this machine are none
    of them: they mean nothing on another."""
    steering = ((name, value) for name, value in sorted(environment.items()) if _steers(name))
    return {name: value for name, value in steering if "/" not in value and OF_TORCH.get(name) != value}


def _steers(name: str) -> bool:
    if name.endswith(PLACES) or any(part in name for part in ELSEWHERE):
        return False
    return name.startswith(PREFIXES) or name in NAMES
