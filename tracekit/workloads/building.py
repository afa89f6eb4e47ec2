"""What every build begins with: its settings, and weights, random or real. Imports no library of models."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tracekit.asked import check_value
from tracekit.errors import TracekitError
from tracekit.model.bounded import Argument
from tracekit.model.run import Parallel, Settings
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.shell import steering_variables

#: Timed calls of each form where nobody says how many.
GPU_ITERATIONS = 20
CPU_ITERATIONS = 10
#: Settings that are as asked.
AS_ASKED = ("mode", "dynamic", "batch_size", "height", "width", "steps", "prompt", "pretrained", "seed")
WITHOUT = "leave --pretrained out: random weights run the same kernels"
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def fill_in(
    info: WorkloadInfo, request: Request, size: str, device: str, *, gpu_iterations: int = GPU_ITERATIONS
) -> Settings:
    """The settings of a run of `request`. Image size, steps and prompt are as asked: their defaults are the workload's.
    `gpu_iterations` is for workloads with calls so short that their times scatter more than those of long ones. Raises
    TracekitError for variables of the environment that no run could hold."""
    gpu, variables = device != "cpu", steering_variables(os.environ)
    for name, value in variables.items():
        check_value("environment=", f"{name}={value}", Argument)
    return Settings(
        workload=info.name,
        size=size,
        device=device,
        dtype=request.dtype or info.dtype or ("bfloat16" if gpu else "float32"),
        scope=request.scope or next(iter(info.scopes)),
        fullgraph=info.fullgraph if request.fullgraph is None else request.fullgraph,
        iterations=request.iterations or (gpu_iterations if gpu else CPU_ITERATIONS),
        variables=variables,
        **{name: getattr(request, name) for name in AS_ASKED},
    )


def parallel_here(info: WorkloadInfo, request: Request, device: str) -> Parallel | None:
    """How the workload is spread over the ranks of this job; None where this process is of none, or only looks at its
    names and shapes."""
    return (request.parallel or info.parallel[0]) if dist.is_initialized() and device != "meta" else None


@contextmanager
def random_weights(dtype: torch.dtype, device: str, seed: int) -> Iterator[None]:
    """Models built inside have random weights of `dtype` on `device`, the same for the same seed. Twelve billion
    parameters are drawn on the GPU in seconds; on the CPU they would take minutes."""
    before = torch.get_default_dtype()
    torch.manual_seed(seed)
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            yield
    finally:
        torch.set_default_dtype(before)


def load_pretrained(kind: Any, source: str, dtype: torch.dtype | None, **more: Any) -> Any:
    """`kind.from_pretrained(source, **more)`, of a repository or a folder; `dtype` is None for what has none.
    Raises TracekitError when it cannot be had."""
    if not Path(source).is_dir() and not REPOSITORY.fullmatch(source):
        raise TracekitError(f"--pretrained {source} is neither a folder nor a repository name (owner/model)")
    try:
        return kind.from_pretrained(source, **({"torch_dtype": dtype} if dtype else {}), **more)
    except OSError as error:
        from tracekit.workloads.hub_files import explain

        # huggingface_hub reports everything that is not there as some OSError, often one wrapped in another.
        raise TracekitError(explain(source, error, WITHOUT)) from None
    except ValueError as error:
        # Said of a configuration that is some other model's.
        reason = str(error).strip().splitlines()[0].rstrip(".: ")
        raise TracekitError(f"{source} holds no model for {kind.__name__}: {reason}") from None


def count_parameters(*modules: torch.nn.Module) -> int:
    """How many numbers these modules learn; what one module shares with itself counts once."""
    return sum(each.numel() for module in modules for each in module.parameters())
