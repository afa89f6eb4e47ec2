"""A recording of steps that a program makes, not we: begun at the end of one step and over at the end of another. A
step that says when it begins is marked from there."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch.profiler import profile, record_function

from tracekit import __version__
from tracekit.errors import TracekitError
from tracekit.measure.device import synchronize
from tracekit.measure.host import collections_noted, has_thread_clock, host_us
from tracekit.measure.recording import (
    STEP,
    UNPUBLISHED,
    begin_session,
    cause,
    export,
    profiler_of,
    spans_opened,
)
from tracekit.measure.sole_profiler import claim, is_active_here, release, watched_starts
from tracekit.model.host_marks import Collection, HostMarks
from tracekit.model.run import FormName, Recording, RecordingKind
from tracekit.tracefile.publish import publish

#: What is said where the program profiles, too.
PROFILES_ITSELF = "the program has a profiler of its own at work, and a process has one at a time"


def warm_steps(count: int) -> int:
    """How many steps of a session are made before so many that are published."""
    return max(count - 1, 1)


class ProgramRecording:
    """One variant, recorded once. What keeps it from being recorded or written is a TracekitError."""

    def __init__(self, form: FormName, kind: RecordingKind, device: str) -> None:
        self._form, self._kind, self._device = form, kind, device
        self._profiler: profile | None = None
        self._is_taken = self._is_torn = False
        self._marks = HostMarks()
        self._collections: list[Collection] = []
        #: Opens the mark of the step that comes; None where one is open, or none comes.
        self._open_mark: Callable[[], None] | None = None
        self.written: Recording | None = None

    @contextmanager
    def session(self) -> Iterator[None]:
        """What happens inside is recorded."""
        if not claim():
            raise TracekitError(PROFILES_ITSELF)
        with ExitStack() as session:
            session.callback(release)
            session.enter_context(watched_starts(self._give_way))
            # The program's output is its own.
            session.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", module="torch.profiler")
            # The first recording of a process is slow to start.
            with profiler_of(self._device, self._kind):
                torch.ones(16, device=self._device).add_(1)
                synchronize(self._device)
            if self._kind == "rich" or self._device == "cpu":
                session.enter_context(spans_opened())
            self._profiler = profiler_of(self._device, self._kind)
            self._profiler.start()
            session.callback(self._stop)
            begin_session(self._device)
            yield

    def begin_step(self) -> None:
        """The step begins now: what the program has done since the last one is none of it. One that began and never
        came to its end, as where it raised, cannot be taken out of the recording."""
        self._is_torn = self._open_mark is None
        self._mark()

    def _mark(self) -> None:
        opened, self._open_mark = self._open_mark, None
        if opened is not None:
            opened()

    def steps(self, count: int, *, say_their_beginning: bool) -> Generator[None, Any, None]:
        """Waits for the steps: the first ones of a session are slow, and are not published. A step that does not say
        when it begins does so where the last one ended."""
        on_gpu = self._device != "cpu"
        marked: list[tuple[int, int]] = []
        around_us: list[float] = []
        off_cpu_us: list[float] = []
        begin_ns = began_ns = on_cpu_ns = 0
        before_us = 0.0
        with collections_noted() as self._collections:
            for index in range(-warm_steps(count), count):
                if index == 0:
                    begin_ns = time.time_ns()
                    self._collections.clear()
                with ExitStack() as mark:

                    def open_mark(index: int = index, mark: ExitStack = mark) -> None:
                        nonlocal began_ns, on_cpu_ns, before_us
                        before_us = host_us() if on_gpu else 0.0
                        began_ns, on_cpu_ns = time.time_ns(), time.thread_time_ns()
                        mark.enter_context(record_function(STEP.format(index) if index >= 0 else UNPUBLISHED))

                    self._open_mark = open_mark
                    self._is_torn = False
                    if not say_their_beginning:
                        self._mark()
                    yield
                    self._mark()
                if self._is_torn:
                    raise TracekitError("a step raised while it was recorded")
                if self._is_taken:
                    raise TracekitError(PROFILES_ITSELF)
                ended_ns, on_cpu_ns = time.time_ns(), time.thread_time_ns() - on_cpu_ns
                if index >= 0:
                    marked.append((began_ns, ended_ns))
                    around_us += [(before_us + host_us()) / 2] if on_gpu else []
                    off_cpu_us.append(max(ended_ns - began_ns - on_cpu_ns, 0) / 1e3)
        if not (on_gpu and has_thread_clock()):
            off_cpu_us = []
        self._marks = HostMarks(begin_ns, tuple(marked), tuple(self._collections), tuple(around_us), tuple(off_cpu_us))

    def _stop(self) -> None:
        profiler, self._profiler = self._profiler, None
        # To export a profiler whose events another took ends the process.
        if profiler is not None and is_active_here() is not False:
            synchronize(self._device)
            profiler.stop()
            self._profiler = profiler

    def _give_way(self) -> None:
        """The program begins to profile: ours ends first."""
        if self._profiler is not None and not self._is_taken and is_active_here():
            self._is_taken = True
            self._profiler.stop()
            self._profiler = None

    def write(self, place: Path, workload: str) -> None:
        """As one more trace of a run."""
        if self._profiler is None:
            raise TracekitError(PROFILES_ITSELF)
        raw = place.with_name(f".{place.name}.raw")
        about = {
            "tracekit": __version__,
            "workload": workload,
            "form": self._form,
            "recording": self._kind,
            "device": self._device,
            "program": True,
        }
        try:
            place.parent.mkdir(exist_ok=True)
            export(self._profiler, raw)
            size = publish(raw, place, metadata=about, marks=self._marks)
        except (OSError, RuntimeError) as error:
            raise TracekitError(f"the profiler could not write {place.name}: {cause(error)}") from None
        finally:
            with suppress(OSError):
                raw.unlink(missing_ok=True)
            self._profiler = None
        marks = self._marks
        self.written = Recording(self._kind, place.name, len(marks.steps), size, marks.host_us, marks.off_cpu_us)
