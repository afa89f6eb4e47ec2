"""Was the GPU quiet, and at what clocks did it run? Asked between timed calls, never within one; nothing is set."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from tracekit.capture.forms import Form
from tracekit.capture.gpu_drivers import Driver, find_driver
from tracekit.model.gpu_state import GpuSample, GpuState, Moment
from tracekit.model.run import FormName

#: A form's state is asked at most this often.
SECONDS_BETWEEN = 0.2


@dataclass
class GpuWatch:
    """Collects samples of the GPU that torch uses. Without a GPU, or a library to ask about it, it collects none."""

    device: str
    _driver: Driver | None = None
    _start: float = 0.0
    _around: list[GpuSample] = field(default_factory=list)
    _during: dict[FormName, list[GpuSample]] = field(default_factory=dict)
    _counters: list[dict[str, float] | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._driver = find_driver(torch.cuda.current_device()) if self.device != "cpu" else None
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
        if self._driver is None:
            return form

        @contextmanager
        def ready() -> Iterator[None]:
            with form.ready():
                yield
            self._sample_during(form.name)

        return replace(form, ready=ready)

    def state_of(self, name: FormName) -> GpuState | None:
        """What was seen while this form was timed; None where nothing could be asked."""
        if self._driver is None or not self._around:
            return None
        during = self._during.get(name, [])
        samples = sorted((*self._around, *during), key=lambda sample: sample.seconds)
        return GpuState(self._driver.source, tuple(samples), self._slowed_us(), self._driver.power_limit_w())

    def _sample_around(self, moment: Moment) -> None:
        if self._driver is not None:
            self._around.append(self._sample(self._driver, moment))
            self._counters.append(self._driver.slowed_us())

    def _sample_during(self, name: FormName) -> None:
        taken = self._during.setdefault(name, [])
        now = time.monotonic() - self._start
        if self._driver is not None and (not taken or now - taken[-1].seconds >= SECONDS_BETWEEN):
            taken.append(self._sample(self._driver, "during"))

    def _sample(self, driver: Driver, moment: Moment) -> GpuSample:
        return driver.sample(moment, time.monotonic() - self._start)

    def _slowed_us(self) -> dict[str, float] | None:
        """How much the driver's counters grew; None where they could not be read at both ends."""
        before, after = (self._counters[0], self._counters[-1]) if len(self._counters) > 1 else (None, None)
        if before is None or after is None:
            return None
        return {limit: after[limit] - before[limit] for limit in after if limit in before}
