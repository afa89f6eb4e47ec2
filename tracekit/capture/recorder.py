"""Recording a part of somebody's own program: a block, or some steps of a loop, forward, backward and optimizer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from tracekit.capture.device import pick_device, synchronize
from tracekit.capture.recording import STEP
from tracekit.capture.spans import is_recording, open_spans
from tracekit.capture.visible_kernels import check_here
from tracekit.errors import TracekitError


class Recorder:
    """Records what runs inside `with`: all of it, or of a loop `steps` steps after the first `skip`. Nothing is timed:
    under the profiler the host is slower, and the trace says nothing of how long a step takes without it.

    The trace is handed to `publish` as the profiler wrote it, with the number of steps, when the block ends; not at all
    where an exception ends it.
    """

    def __init__(self, steps: int | None, skip: int, raw: Path, publish: Callable[[str, int], None]) -> None:
        self._wanted, self._skip, self._raw, self._publish = steps, skip, raw, publish
        self._device = pick_device()
        self._profiler: profile | None = None
        self._made = self._recorded = 0
        self._running = False
        self._missed: str | None = None

    def __enter__(self) -> Recorder:
        if is_recording():
            raise TracekitError("something is recorded already: end that `with tracekit.record` first")
        check_here(self._device)
        if self._wanted is None:
            self._start()
        return self

    def step(self) -> AbstractContextManager[Any]:
        """One step of the loop: `with recorder.step():` around all that belongs to it."""
        number, self._made = self._made, self._made + 1
        if self._wanted is not None and number == self._skip:
            self._start_if_free()
        return self._marked() if self._running else nullcontext()

    def _start_if_free(self) -> None:
        """In the midst of a loop nothing is raised: a training run is not to end for want of a trace."""
        if is_recording():
            self._missed = "something else was recorded when its steps came"
            return
        try:
            self._start()
        except Exception as error:  # noqa: BLE001 - whatever the profiler says; it is told when the block ends.
            self._missed = f"the profiler did not start: {type(error).__name__}: {error}"

    @contextmanager
    def _marked(self) -> Iterator[None]:
        with record_function(STEP.format(self._recorded)):
            yield
        self._recorded += 1
        if self._recorded == self._wanted:
            self._stop()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop()
        if kind is not None:
            return
        if self._profiler is None or (self._wanted is not None and not self._recorded):
            # A training run is not to end with an error, before it has saved what it trained, for want of a trace.
            too_short = (
                f"the loop made {self._made} steps, and recording begins after {self._skip};"
                " pass a smaller skip to tracekit.record"
            )
            warnings.warn(f"nothing was recorded: {self._missed or too_short}", stacklevel=2)
            return
        try:
            self._profiler.export_chrome_trace(str(self._raw))
            self._publish(self._device, self._recorded)
        finally:
            self._raw.unlink(missing_ok=True)

    def _start(self) -> None:
        activities = [ProfilerActivity.CPU]
        if self._device != "cpu":
            activities.append(ProfilerActivity.CUDA)
        # The profiler's first recording in a process is slow to start.
        with profile(activities=activities):
            torch.ones(16, device=self._device).add_(1)
            synchronize(self._device)
        profiler = profile(activities=activities, record_shapes=True)
        profiler.start()
        self._profiler, self._running = profiler, True
        open_spans(record_function)

    def _stop(self) -> None:
        if self._profiler is None or not self._running:
            return
        self._running = False
        open_spans(None)
        # What was launched inside is to be in the recording whole.
        synchronize(self._device)
        self._profiler.stop()
