"""What memory a form takes. Field names are those of `run.json`."""

from __future__ import annotations

from dataclasses import dataclass

from tracekit.model.bounded import Count


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The GPU memory of torch's allocator at its height, in bytes.

    `allocated` is what tensors held, `reserved` what torch had taken from the driver for them, what it keeps for later
    and CUDA-graph pools included.
    """

    allocated_bytes: Count
    reserved_bytes: Count


@dataclass(frozen=True, slots=True)
class FormMemory:
    """One form's GPU memory. All of it counts the weights and inputs, which both forms share.

    `before_bytes` was allocated before the form first ran: weights and inputs, and what forms that ran before it hold
    (workspaces of libraries). `warmup` is the height of the warm-up calls, compilation and autotuning in this process
    included. `steady` is that of calls after it; None where the run was interrupted before. `graph_pool_bytes` is held
    for good by this form's CUDA graphs, `others_pool_bytes` by those of forms that ran before it: that is in `reserved`
    as well, and none of this form's.
    """

    before_bytes: Count
    warmup: MemoryUse
    steady: MemoryUse | None
    graph_pool_bytes: Count | None
    others_pool_bytes: Count | None
