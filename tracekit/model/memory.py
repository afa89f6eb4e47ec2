"""What memory a form takes. Field names are those of `run.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tracekit.model.bounded import Count, doc


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The GPU memory of torch's allocator at its height."""

    allocated_bytes: Annotated[Count, doc("What tensors held.")]
    reserved_bytes: Annotated[Count, doc("What torch had from the driver, CUDA graphs' pools included.")]


@dataclass(frozen=True, slots=True)
class FormMemory:
    """One form's GPU memory. All of it counts the weights and inputs, which both forms share."""

    before_bytes: Annotated[Count, doc("Before the form first ran: weights, inputs, what other forms hold.")]
    warmup: Annotated[MemoryUse, doc("The height of its warm-up calls, compiling and autotuning included.")]
    steady: Annotated[MemoryUse | None, doc("That of calls after it; None where the run was interrupted before.")]
    graph_pool_bytes: Annotated[Count | None, doc("Held for good by this form's CUDA graphs.")]
    others_pool_bytes: Annotated[Count | None, doc("By those of earlier forms: in `reserved` as well.")]
