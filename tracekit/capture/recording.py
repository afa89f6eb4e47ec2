"""Recording with torch.profiler: a form's steps, or a part of somebody's own program; and whether it sees kernels here.

Once CUPTI has looked at a process it stays, and every launch costs more for the rest of that process's life, 10 to 20 %
of a step that waits for launches (pytorch/pytorch issue 144455). So nothing is profiled in a process before its calls
have been timed: another one finds out whether kernels are seen, `python -m tracekit.capture.recording`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile, record_function

from tracekit.capture.device import pick_device, synchronize
from tracekit.capture.forms import Form
from tracekit.capture.lockstep import ALONE, Ranks
from tracekit.capture.spans import is_recording, open_spans
from tracekit.errors import TracekitError
from tracekit.model.note import Noted
from tracekit.model.progress import Progress
from tracekit.model.run import RecordingKind
from tracekit.shell import environment_with

STEP = "tracekit.step#{}"
#: What the process answers. Any other ending, such as of a GPU that only one process may use, is no answer.
SEEN, UNSEEN = 0, 3
#: How long it may go on after all else that happens meanwhile.
PATIENCE_SECONDS = 120.0
#: What looks, in a process of its own.
COMMAND = (sys.executable, "-P", "-m", __name__)


@contextmanager
def checked_meanwhile(device: str) -> Iterator[None]:
    """While the block runs, another process records one small kernel. Raises TracekitError, after the block, when the
    profiler is not allowed to see it. What the process prints goes to this one's output; where it finds no answer, the
    run goes on."""
    if device == "cpu":
        yield
        return
    code = None
    with subprocess.Popen(COMMAND, env=environment_with({}), stdin=subprocess.DEVNULL) as process:
        try:
            yield
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
    require_visible(code != UNSEEN)


def require_visible(visible: bool) -> None:
    """Raises TracekitError where the profiler does not see kernels."""
    if not visible:
        raise TracekitError("the profiler records no kernels on this GPU; `tracekit doctor` prints the fix")


def kernels_are_visible() -> bool:
    """Whether the profiler records a small kernel, in this process."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        torch.ones(16, device="cuda").add_(1)
        torch.cuda.synchronize()
    return any(event.device_type == DeviceType.CUDA for event in profiler.events() or ())


def record(
    form: Form, kind: RecordingKind, steps: int, path: Path, progress: Progress, ranks: Ranks = ALONE
) -> tuple[tuple[int, int], ...]:
    """Records `steps` calls into `path` (plain Chrome JSON). Returns when each began and ended, Unix time in ns: a
    recording of CUDA activity alone holds no host spans.

    light: kernels and the API calls that launch them; on the CPU operators alone. rich: operators and their shapes
    too. Never Python stacks: under them compiled code ran four times slower. One call is made and thrown away
    first, because the profiler's own first call is slow. `ranks` begin each step together: profilers start at different
    moments, and the rank whose starts last would be waited for. Raises TracekitError where the file cannot be written.
    """
    activities = [ProfilerActivity.CUDA] if form.device != "cpu" and kind == "light" else _activities(form.device)
    progress.phase(f"recording {form.name} ({kind})", total=2, still=True)
    with form.ready():
        with profile(activities=activities, record_shapes=kind == "rich"):
            _step(form, 0, ranks)
        progress.advance()
        with profile(activities=activities, record_shapes=kind == "rich") as profiler:
            synchronize(form.device)
            marks = tuple(_step(form, index, ranks) for index in range(steps))
    progress.phase(f"writing {form.name} ({kind})")
    try:
        profiler.export_chrome_trace(str(path))
    except (OSError, RuntimeError) as error:
        raise TracekitError(f"the profiler could not write {path}: {error}") from None
    return marks


def _activities(device: str) -> list[ProfilerActivity]:
    return [ProfilerActivity.CPU] if device == "cpu" else [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def _step(form: Form, index: int, ranks: Ranks) -> tuple[int, int]:
    ranks.begin()
    begin_ns = time.time_ns()
    with record_function(STEP.format(index)):
        form.call()
        synchronize(form.device)
    return begin_ns, time.time_ns()


class Recorder:
    """Records what runs inside `with`: all of it, or of a loop `steps` steps after the first `skip`. Nothing is timed:
    under the profiler the host is slower, and the trace says nothing of how long a step takes without it.

    The trace is handed to `publish` as the profiler wrote it, with the number of steps, when the block ends; not at all
    where an exception ends it. A loop in whose midst nothing can be recorded goes on, and `warn` is told why at its
    end: a training run is not to end, before it has saved what it trained, for want of a trace.
    """

    def __init__(
        self,
        steps: int | None,
        skip: int,
        raw: Path,
        publish: Callable[[str, int], None],
        warn: Callable[[Noted], None],
    ) -> None:
        self._wanted, self._skip, self._raw, self._publish, self._warn = steps, skip, raw, publish, warn
        self._device = pick_device()
        self._profiler: profile | None = None
        self._made = self._recorded = 0
        self._running = False
        self._missed: Noted | None = None

    def __enter__(self) -> Recorder:
        if is_recording():
            raise TracekitError("another recording is active: leave its `with tracekit.record` block first")
        require_visible(self._device == "cpu" or kernels_are_visible())
        if self._wanted is None:
            self._start()
        return self

    @contextmanager
    def step(self) -> Iterator[None]:
        """One step of the loop: `with recorder.step():` around all that belongs to it."""
        number, self._made = self._made, self._made + 1
        if self._wanted is not None and number == self._skip:
            if is_recording():
                self._missed = Noted("recorded_by_another")
            else:
                try:
                    self._start()
                except Exception as error:  # noqa: BLE001 - whatever the profiler says; it is told when the block ends.
                    self._missed = Noted("profiler_did_not_start", {"error": f"{type(error).__name__}: {error}"})
        if not self._running:
            yield
            return
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
            self._warn(self._missed or Noted("loop_too_short", {"steps": self._made, "skip": self._skip}))
            return
        try:
            self._profiler.export_chrome_trace(str(self._raw))
            self._publish(self._device, self._recorded)
        finally:
            self._raw.unlink(missing_ok=True)

    def _start(self) -> None:
        activities = _activities(self._device)
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


if __name__ == "__main__":
    sys.exit(SEEN if kernels_are_visible() else UNSEEN)
