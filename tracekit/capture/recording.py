"""Recording a form with torch.profiler."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from torch.profiler import ProfilerActivity, profile, record_function

from tracekit.capture.device import synchronize
from tracekit.capture.forms import Form
from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import RecordingKind

STEP = "tracekit.step#{}"


@dataclass(frozen=True)
class RawRecording:
    """What the profiler wrote, before it is published. `marks` are the steps' begin and end, Unix time in ns: a
    recording of CUDA activity alone holds no host spans, so steps are marked by the clock."""

    path: Path
    marks: tuple[tuple[int, int], ...]


def record(form: Form, kind: RecordingKind, steps: int, path: Path, progress: Progress) -> RawRecording:
    """Records `steps` calls into `path` (plain Chrome JSON).

    light: kernels and the API calls that launch them; on the CPU operators alone. rich: operators and their shapes
    too. Never Python stacks: under them compiled code ran four times slower. One call is made and thrown away
    first, because the profiler's own first call is slow.
    """
    progress.phase(f"recording {form.name} ({kind})", total=2, still=True)
    with form.ready():
        with profile(activities=_activities(form.device, kind), record_shapes=kind == "rich"):
            _step(form, 0)
        progress.advance()
        with profile(activities=_activities(form.device, kind), record_shapes=kind == "rich") as profiler:
            synchronize(form.device)
            marks = tuple(_step(form, index) for index in range(steps))
    progress.phase(f"writing {form.name} ({kind})")
    try:
        profiler.export_chrome_trace(str(path))
    except (OSError, RuntimeError) as error:
        raise TracekitError(f"the profiler could not write {path}: {error}") from None
    return RawRecording(path, marks)


def _activities(device: str, kind: RecordingKind) -> list[ProfilerActivity]:
    if device == "cpu":
        return [ProfilerActivity.CPU]
    if kind == "light":
        return [ProfilerActivity.CUDA]
    return [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def _step(form: Form, index: int) -> tuple[int, int]:
    begin_ns = time.time_ns()
    with record_function(STEP.format(index)):
        form.call()
        synchronize(form.device)
    return begin_ns, time.time_ns()
