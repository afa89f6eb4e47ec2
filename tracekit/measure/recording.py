"""Recording with torch.profiler: a form's steps, or a part of somebody's own program; and whether it sees kernels here.

Once CUPTI has looked at a process it stays, and every launch costs more for the rest of that process's life, 10 to 20 %
of a step that waits for launches (pytorch/pytorch issue 144455). So nothing is profiled in a process before its calls
have been timed: another one finds out whether kernels are seen, `python -m tracekit.measure.recording`.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile, record_function

from tracekit.errors import TracekitError
from tracekit.measure.device import pick_device, synchronize
from tracekit.measure.forms import Form
from tracekit.measure.host import collections_noted, has_thread_clock, host_us
from tracekit.measure.ranks import ALONE, Ranks
from tracekit.measure.sole_profiler import claim, is_active, is_active_here, release, watched_starts
from tracekit.measure.spans import open_spans
from tracekit.model.host_marks import Collection, HostMarks
from tracekit.model.note import Noted
from tracekit.model.progress import Progress
from tracekit.model.run import RecordingKind
from tracekit.shell import environment_with
from tracekit.statements import noted as notes

STEP = "tracekit.step#{}"
#: How calls are marked that are made first, and left out of what is published.
UNPUBLISHED = "tracekit.unpublished"
#: What the process answers. Any other ending, such as of a GPU that only one process may use, is no answer.
SEEN, UNSEEN = 0, 3
#: How long it may go on after all else that happens meanwhile.
PATIENCE_SECONDS = 120.0
#: More than is left of a disk on which the profiler could not write a trace.
PROBE_BYTES = 2**20
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
) -> HostMarks:
    """Records `steps` calls into `path` (plain Chrome JSON). Returns when each began and ended, which a recording of
    CUDA activity alone does not hold, and when garbage was collected, which none does.

    light: kernels and the API calls that launch them; on the CPU operators alone. rich: operators and their shapes
    too. Never Python stacks: under them compiled code ran four times slower. As many calls but one, and one at least,
    are made first that are not published: the first ones of a session are slow. `ranks` begin each call together:
    profilers start at different moments, and the rank whose starts last would be waited for. Regions are spans of it
    where operators are in it too. Raises TracekitError where the file cannot be written.
    """
    progress.phase(f"recording {form.name} ({kind})", total=2, still=True)
    regions = spans_opened() if kind == "rich" or form.device == "cpu" else nullcontext()
    with form.ready(), profiler_of(form.device, kind) as profiler, watched_starts(_refuse_another), regions:
        begin_session(form.device)
        for _ in range(max(steps - 1, 1)):
            # Marked too: the first mark of a process takes 2 ms.
            _step(form, UNPUBLISHED, ranks)
        progress.advance()
        begin_ns = time.time_ns()
        with collections_noted() as collections:
            marked = [_step(form, STEP.format(index), ranks) for index in range(steps)]
        on_gpu = form.device != "cpu"
        off_cpu_us = tuple(off_us for *_, off_us, _ in marked) if on_gpu and has_thread_clock() else ()
    progress.phase(f"writing {form.name} ({kind})")
    try:
        export(profiler, path)
    except (OSError, RuntimeError) as error:
        raise TracekitError(f"the profiler could not write {path}: {cause(error)}") from None
    begun_and_over = tuple((begun_ns, over_ns) for begun_ns, over_ns, *_ in marked)
    around_us = tuple(around for *_, around in marked if around is not None)
    return HostMarks(begin_ns, begun_and_over, tuple(collections), around_us, off_cpu_us)


def profiler_of(device: str, kind: RecordingKind) -> profile:
    """The profiler as it makes a recording of this kind."""
    activities = [ProfilerActivity.CUDA]
    if device == "cpu":
        activities = [ProfilerActivity.CPU]
    elif kind == "rich":
        activities.insert(0, ProfilerActivity.CPU)
    return profile(activities=activities, record_shapes=kind == "rich")


@contextmanager
def spans_opened() -> Iterator[None]:
    """Regions inside are spans of what is recorded."""
    open_spans(record_function)
    try:
        yield
    finally:
        open_spans(None)


def begin_session(device: str) -> int:
    """Launches a small kernel in a session that has just started. Returns when it was over, Unix time in ns: what is
    published begins there.

    The first launch of every session, by whatever API and however warm the process is, takes 400 to 500 us inside the
    driver (H100, torch 2.11): in a step it would be idle time that no other call has.
    """
    if device != "cpu":
        torch.empty(1, device=device).fill_(0)
        synchronize(device)
    return time.time_ns()


def _refuse_another() -> None:
    raise TracekitError("what is profiled starts a profiler of its own: take torch.profiler out of its call")


def export(profiler: profile, path: Path) -> None:
    """Writes what was recorded to `path` (plain Chrome JSON). Raises OSError where it cannot be written: the profiler
    itself only logs that it could not, and leaves what it wrote until then beside `path`."""
    try:
        path.write_bytes(b"")
        profiler.export_chrome_trace(str(path))
        with path.open("r+b") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 8, 0))
            if not file.read().rstrip().endswith(b"}"):
                # The disk is as full as it was, and says so.
                file.write(bytes(PROBE_BYTES))
                file.flush()
                raise OSError("the profiler wrote no whole trace")
    finally:
        path.with_name(f"{path.name}.tmp").unlink(missing_ok=True)


def cause(error: Exception) -> str:
    """What went wrong, in a line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    first = next(iter(str(error).splitlines()), "")
    return first if isinstance(error, TracekitError) else f"{type(error).__name__}: {first}"


def _step(form: Form, name: str, ranks: Ranks) -> tuple[int, int, float, float | None]:
    """When it began and ended, how long its thread was off the CPU, and how long `host_us` took around it: None on a
    CPU, where nobody asks."""
    before_us = host_us() if form.device != "cpu" else None
    ranks.begin()
    begin_ns, began_ns = time.time_ns(), time.thread_time_ns()
    with record_function(name):
        form.call()
        synchronize(form.device)
    on_cpu_ns, end_ns = time.thread_time_ns() - began_ns, time.time_ns()
    around_us = (before_us + host_us()) / 2 if before_us is not None else None
    return begin_ns, end_ns, max(end_ns - begin_ns - on_cpu_ns, 0) / 1e3, around_us


class Recorder:
    """Records what runs inside `with`: all of it, or of a loop `steps` steps after the first `skip`. Nothing is timed:
    under the profiler the host is slower, and the trace says nothing of how long a step takes without it.

    The trace is handed to `publish` as the profiler wrote it, with the number of steps and the host's marks, when the
    block ends; not at all where an exception ends it. What cannot be recorded or written is told to `warn`, and nothing
    is raised for it: a training run is not to end, before it has saved what it trained, for want of a trace. A profiler
    of the loop's own goes first: where one is active nothing is recorded, and where one begins the recording ends.
    """

    def __init__(
        self,
        steps: int | None,
        skip: int,
        raw: Path,
        publish: Callable[[str, int, HostMarks], None],
        warn: Callable[[Noted], None],
    ) -> None:
        self._wanted, self._skip, self._raw, self._publish, self._warn = steps, skip, raw, publish, warn
        self._device = pick_device()
        #: What is undone when the recording ends; None while nothing is recorded.
        self._session: ExitStack | None = None
        self._profiler: profile | None = None
        self._made = self._recorded = self._begin_ns = 0
        self._collections: list[Collection] = []
        self._missed: Noted | None = None
        self._process = os.getpid()
        #: The thread that records, once one does.
        self._thread: threading.Thread | None = None
        #: Whether the trace was handed on.
        self.is_published = False

    def __enter__(self) -> Recorder:
        if self._device != "cpu" and claim():
            try:
                require_visible(kernels_are_visible())
            finally:
                release()
        if self._wanted is None:
            self._start()
        return self

    @contextmanager
    def step(self) -> Iterator[None]:
        """One step of the loop: `with recorder.step():` around all that belongs to it."""
        number, self._made = self._made, self._made + 1
        if self._wanted is not None and number == self._skip:
            self._start()
        if self._session is None or threading.current_thread() is not self._thread:
            yield
            return
        with record_function(STEP.format(self._recorded)):
            yield
        # Another profiler may have begun inside.
        if self._session is not None:
            self._recorded += 1
            if self._recorded == self._wanted:
                self._stop()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if os.getpid() != self._process:
            # Of a fork: the recording is its parent's.
            return
        self._stop()
        if self._profiler is None and self._thread not in (None, threading.current_thread()):
            self._miss(notes.EndedInAnotherThread())
        if kind is not None:
            return
        if self._profiler is None or (self._wanted is not None and not self._recorded):
            self._miss(notes.LoopTooShort(self._made, self._skip))
            return
        try:
            export(self._profiler, self._raw)
            marks = HostMarks(self._begin_ns, collections=tuple(self._collections))
            self._publish(self._device, self._recorded, marks)
        except Exception as failure:  # noqa: BLE001 - whatever failed, the loop's program goes on.
            self._warn(notes.TraceNotWritten(str(self._raw.parent), cause(failure)))
            return
        self.is_published = True
        if self._wanted is not None and self._recorded < self._wanted:
            self._miss(notes.FewerSteps(self._recorded, self._wanted, str(self._raw.parent)))

    def _miss(self, noted: Noted) -> None:
        """Says why something is not recorded, once."""
        if self._missed is None:
            self._missed = noted
            self._warn(noted)

    def _start(self) -> None:
        if not claim():
            self._miss(notes.RecordedByAnother())
            return
        self._thread = threading.current_thread()
        try:
            with ExitStack() as session:
                session.callback(release)
                # First in and last out: one that another thread starts while ours starts or stops ends the process.
                session.enter_context(watched_starts(self._give_way))
                if is_active():
                    self._miss(notes.RecordedByAnother())
                    return
                # The profiler's first recording in a process is slow to start.
                with profiler_of(self._device, "rich"):
                    torch.ones(16, device=self._device).add_(1)
                    synchronize(self._device)
                profiler = profiler_of(self._device, "rich")
                session.callback(self._end, profiler)
                profiler.start()
                # A process that ends while torch profiles ends with a segmentation fault.
                session.callback(atexit.unregister, self._stop)
                atexit.register(self._stop)
                self._begin_ns = begin_session(self._device)
                self._collections = session.enter_context(collections_noted())
                session.enter_context(spans_opened())
                self._session = session.pop_all()
        except Exception as error:  # noqa: BLE001 - whatever the profiler says.
            self._profiler = None
            self._miss(notes.ProfilerDidNotStart(cause(error)))

    def _stop(self) -> None:
        """Ends the recording. Torch can do so only in the thread that began it, so another leaves it to that one, which
        does it when the process ends at the latest."""
        if self._session is None or self._thread is None or os.getpid() != self._process:
            return
        if self._thread is not threading.current_thread() and self._thread.is_alive():
            return
        session, self._session = self._session, None
        try:
            session.close()
        except Exception as error:  # noqa: BLE001 - such as of a kernel of theirs, which their next call raises too.
            self._miss(notes.ProfilerDidNotStop(cause(error)))

    def _end(self, profiler: profile) -> None:
        try:
            # What was launched inside is to be in the recording whole.
            synchronize(self._device)
        finally:
            if threading.current_thread() is not self._thread:
                # Its thread has ended: there are no events, and a process that ends with it open ends badly.
                profiler.stop()
            # To export a profiler whose events another took ends the process.
            elif is_active_here() is not False:
                profiler.stop()
                self._profiler = profiler

    def _give_way(self) -> None:
        """Another profiler begins. Raises TracekitError in another thread than the recording's, which torch has no way
        to end from there."""
        if os.getpid() != self._process:
            return
        if threading.current_thread() is not self._thread:
            raise TracekitError("tracekit.record records in another thread: start this profiler when it has ended")
        if self._session is None:
            # It is ours that starts.
            return
        self._stop()
        self._miss(notes.EndedByAnother(self._recorded))


if __name__ == "__main__":
    sys.exit(SEEN if kernels_are_visible() else UNSEEN)
