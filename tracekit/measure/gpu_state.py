"""Was the GPU quiet, at what clocks did it run, and what memory does a form take? NVML and torch's allocator are asked
between timed calls, never within one; nothing is set, and nothing is asked of a CPU."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.measure.device import synchronize
from tracekit.measure.forms import Form
from tracekit.model.gpu import FormMemory, GpuSample, GpuState, MemoryUse, Moment
from tracekit.model.run import FormName
from tracekit.nvml import Gpu, find_gpu

#: A form's state is asked at most this often.
SECONDS_BETWEEN = 0.2
#: The pool that memory outside of CUDA graphs comes from.
COMMON_POOL = (0, 0)


class GpuWatch(Struct):
    """Collects samples of the GPU that torch uses, through NVML. Without it, or without a GPU, it collects none."""

    device: str
    _gpu: Gpu | None = None
    _start: float = field(default_factory=time.monotonic)
    _around: list[GpuSample] = field(default_factory=list)
    _during: dict[FormName, list[GpuSample]] = field(default_factory=dict)
    _counters: list[dict[str, float] | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.device != "cpu":
            self._gpu = find_gpu(torch.cuda.get_device_properties(torch.cuda.current_device()))

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Samples before and after the block, in which the forms are timed."""

        def sample(moment: Moment) -> None:
            if self._gpu is not None:
                self._around.append(self._gpu.sample(moment, time.monotonic() - self._start))
                self._counters.append(self._gpu.slowed_us())

        sample("before")
        try:
            yield
        finally:
            sample("after")

    def watched(self, form: Form) -> Form:
        """The form, with the GPU's state asked after its calls: when the form is switched off, which no timed call
        contains, and not more often than five times a second."""
        gpu = self._gpu
        if gpu is None:
            return form
        taken = self._during.setdefault(form.name, [])

        @contextmanager
        def ready() -> Iterator[None]:
            with form.ready():
                yield
            seconds = time.monotonic() - self._start
            if not taken or seconds - taken[-1].seconds >= SECONDS_BETWEEN:
                taken.append(gpu.sample("during", seconds))

        return replace(form, ready=ready)

    def state_of(self, name: FormName) -> GpuState | None:
        """What was seen while this form was timed; None where nothing could be asked."""
        if self._gpu is None or not self._around:
            return None
        samples = sorted((*self._around, *self._during.get(name, [])), key=lambda sample: sample.seconds)
        # How much the driver's counters grew; None where they could not be read at both ends.
        before, after = self._counters[0], self._counters[-1]
        slowed_us = None
        if before is not None and after is not None and before is not after:
            slowed_us = {limit: after[limit] - before[limit] for limit in after if limit in before}
        return GpuState("nvml", tuple(samples), slowed_us, self._gpu.power_limit_w())


@contextmanager
def warm_up_watched(device: str) -> Iterator[list[FormMemory]]:
    """Watches a form's warm-up, which is in the list at the end; nothing on a CPU. What torch keeps unused from the
    form before is given back first, so that it does not count for this one."""
    found: list[FormMemory] = []
    if device == "cpu":
        yield found
        return
    _empty_cache(device)
    before, pools = torch.cuda.memory_allocated(), graph_pool_bytes()
    try:
        yield found
    finally:
        after = graph_pool_bytes()
        grown = after - pools if after is not None and pools is not None else None
        found.append(FormMemory(before, _peaks(), None, grown, pools))


def measure_steady(form: Form, memory: FormMemory | None) -> FormMemory | None:
    """The memory with the height of one call more, untimed, from an empty cache; None on a CPU."""
    if memory is None:
        return None
    _empty_cache(form.device)
    with form.ready():
        form.call()
        synchronize(form.device)
    return replace(memory, steady=_peaks())


def _empty_cache(device: str) -> None:
    synchronize(device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def _peaks() -> MemoryUse:
    return MemoryUse(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


def graph_pool_bytes() -> int | None:
    """What CUDA graphs hold in pools of their own; None where torch does not tell segments by pool."""
    segments = torch.cuda.memory_snapshot()
    if any("segment_pool_id" not in segment for segment in segments):
        return None
    return sum(segment["total_size"] for segment in segments if tuple(segment["segment_pool_id"]) != COMMON_POOL)
