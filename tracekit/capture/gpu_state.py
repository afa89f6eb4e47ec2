"""Was the GPU quiet, and at what clocks did it run? Asked between timed calls, never within one; nothing is set."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from tracekit.capture.forms import Form
from tracekit.model.gpu_state import GpuSample, GpuState, Moment
from tracekit.model.run import FormName
from tracekit.nvml import Gpu, find_gpu

#: A form's state is asked at most this often.
SECONDS_BETWEEN = 0.2


@dataclass
class GpuWatch:
    """Collects samples of the GPU that torch uses, through NVML. Without it, or without a GPU, it collects none."""

    device: str
    _gpu: Gpu | None = None
    _start: float = 0.0
    _around: list[GpuSample] = field(default_factory=list)
    _during: dict[FormName, list[GpuSample]] = field(default_factory=dict)
    _counters: list[dict[str, float] | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.device != "cpu":
            self._gpu = find_gpu(torch.cuda.get_device_properties(torch.cuda.current_device()))
        self._start = time.monotonic()

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Samples before and after the block, in which the forms are timed."""
        self._sample_around("before")
        try:
            yield
        finally:
            self._sample_around("after")

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
        during = self._during.get(name, [])
        samples = sorted((*self._around, *during), key=lambda sample: sample.seconds)
        return GpuState("nvml", tuple(samples), self._slowed_us(), self._gpu.power_limit_w())

    def _sample_around(self, moment: Moment) -> None:
        if self._gpu is not None:
            self._around.append(self._gpu.sample(moment, time.monotonic() - self._start))
            self._counters.append(self._gpu.slowed_us())

    def _slowed_us(self) -> dict[str, float] | None:
        """How much the driver's counters grew; None where they could not be read at both ends."""
        before, after = (self._counters[0], self._counters[-1]) if len(self._counters) > 1 else (None, None)
        if before is None or after is None:
            return None
        return {limit: after[limit] - before[limit] for limit in after if limit in before}
