"""What GPU memory does a form take? Asked of torch's allocator; nothing is asked of a CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from tracekit.capture.device import synchronize
from tracekit.capture.forms import Form
from tracekit.model.memory import FormMemory, MemoryUse

#: The pool that memory outside of CUDA graphs comes from.
COMMON_POOL = (0, 0)


@dataclass
class MemoryWatch:
    """What was seen so far; None on a CPU."""

    found: FormMemory | None = None


@contextmanager
def warm_up_watched(device: str) -> Iterator[MemoryWatch]:
    """Watches a form's warm-up. What torch keeps unused from the form before is given back first, so that it does not
    count for this one."""
    watch = MemoryWatch()
    if device == "cpu":
        yield watch
        return
    synchronize(device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, pools = torch.cuda.memory_allocated(), graph_pool_bytes()
    try:
        yield watch
    finally:
        after = graph_pool_bytes()
        grown = after - pools if after is not None and pools is not None else None
        watch.found = FormMemory(before, _peaks(), None, grown, pools)


def measure_steady(form: Form, memory: FormMemory | None) -> FormMemory | None:
    """The memory with the height of one call more, untimed, from an empty cache; None on a CPU."""
    if memory is None:
        return None
    synchronize(form.device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with form.ready():
        form.call()
        synchronize(form.device)
    return replace(memory, steady=_peaks())


def _peaks() -> MemoryUse:
    return MemoryUse(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


def graph_pool_bytes() -> int | None:
    """What CUDA graphs hold in pools of their own; None where torch does not tell segments by pool."""
    segments = torch.cuda.memory_snapshot()
    if any("segment_pool_id" not in segment for segment in segments):
        return None
    return sum(segment["total_size"] for segment in segments if tuple(segment["segment_pool_id"]) != COMMON_POOL)
