"""Was the GPU quiet, at what clocks did it run, and what memory does a form take? NVML and torch's allocator are asked
between timed calls, never within one; nothing is set, and nothing is asked of a CPU."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
    """Looks at the GPU that torch uses around the calls of one run's forms: at their memory, and through NVML at its
    state. Without NVML there is no state, and on a CPU nothing at all."""

    device: str
    _memory: dict[FormName, FormMemory] = field(default_factory=dict)
    _gpu: Gpu | None = None
    _start: float = 0.0
    _around: list[GpuSample] = field(default_factory=list)
    _during: dict[FormName, list[GpuSample]] = field(default_factory=dict)
    _counters: list[dict[str, float] | None] = field(default_factory=list)

    @contextmanager
    def warming(self, name: FormName) -> Iterator[None]:
        """While a form is warmed up inside, the memory that takes is watched. What torch keeps unused from the form
        before is given back first, so that it does not count for this one."""
        if self.device == "cpu":
            yield
            return
        self._empty_cache()
        before, pools = torch.cuda.memory_allocated(), graph_pool_bytes()
        yield
        after = graph_pool_bytes()
        grown = after - pools if after is not None and pools is not None else None
        self._memory[name] = FormMemory(before, _peaks(), None, grown, pools)

    def settle(self, forms: tuple[Form, ...]) -> None:
        """Measures what each warm form's calls need: the height of one call more, untimed, from an empty cache. Leaves
        every form with its memory at hand."""
        if self.device == "cpu":
            return
        for form in forms:
            self._empty_cache()
            with form.ready():
                form.call()
                synchronize(self.device)
            self._memory[form.name] = replace(self._memory[form.name], steady=_peaks())
        # What was given back to measure the last form is taken from the driver again now, not in a timed call.
        for form in forms[:-1]:
            with form.ready():
                form.call()

    @contextmanager
    def timing(self, forms: tuple[Form, ...]) -> Iterator[tuple[Form, ...]]:
        """The forms to be timed inside: the same, with the GPU's state looked at between their calls, before and
        after."""

        def sample(moment: Moment) -> None:
            if self._gpu is not None:
                self._around.append(self._gpu.sample(moment, time.monotonic() - self._start))
                self._counters.append(self._gpu.slowed_us())

        self._start = time.monotonic()
        if self.device != "cpu":
            self._gpu = find_gpu(torch.cuda.get_device_properties(torch.cuda.current_device()))
        sample("before")
        try:
            yield tuple(map(self._watched, forms))
        finally:
            sample("after")

    def _watched(self, form: Form) -> Form:
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

    def seen(self, name: FormName) -> dict[str, Any]:
        """What is known of a form by now, by its fields: the memory it took, None on a CPU; the GPU while it was timed,
        None before that, and where nobody can be asked."""
        return {"memory": self._memory.get(name), "gpu_state": self.state_of(name)}

    def calling_bytes(self, name: FormName) -> int:
        """What one call of the form allocates beside the weights; 0 on a CPU, where nobody counts."""
        memory = self._memory.get(name)
        return max((memory.steady or memory.warmup).allocated_bytes - memory.before_bytes, 0) if memory else 0

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

    def _empty_cache(self) -> None:
        synchronize(self.device)
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
