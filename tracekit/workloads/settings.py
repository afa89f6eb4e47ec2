"""What the user asked for, with the defaults that all workloads share filled in."""

from __future__ import annotations

import os

from tracekit.model.run import Settings
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.shell import steering_variables

#: Timed calls of each form where nobody says how many.
GPU_ITERATIONS = 20
CPU_ITERATIONS = 10


def fill_in(
    info: WorkloadInfo, request: Request, size: str, device: str, *, gpu_iterations: int = GPU_ITERATIONS
) -> Settings:
    """The settings of a run of `request`. Image size, steps and prompt are as asked: their defaults are the workload's.

    `gpu_iterations` is for workloads with calls so short that their times scatter more than those of long ones.
    """
    gpu = device != "cpu"
    return Settings(
        workload=info.name,
        size=size,
        device=device,
        dtype=request.dtype or info.dtype or ("bfloat16" if gpu else "float32"),
        scope=request.scope or next(iter(info.scopes)),
        mode=request.mode,
        fullgraph=info.fullgraph if request.fullgraph is None else request.fullgraph,
        dynamic=request.dynamic,
        batch_size=request.batch_size,
        height=request.height,
        width=request.width,
        steps=request.steps,
        prompt=request.prompt,
        pretrained=request.pretrained,
        seed=request.seed,
        iterations=request.iterations or (gpu_iterations if gpu else CPU_ITERATIONS),
        variables=steering_variables(os.environ),
    )
