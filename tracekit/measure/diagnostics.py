"""What does torch.compile say of its own work? The only file that reads torch's structured compile log.

`torch.__trace` is the logger that TORCH_TRACE and tlparse read; its records and the names of their artifacts are
private to torch. Those used here were the same from 2.9 to 2.15. Each form listens only while it is switched on, and of
counters only differences are used, so nothing of another form or workload is told as this one's. Where something is
missing, a note says so; no measurement fails for it.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from msgspec import Struct, field
from msgspec.structs import replace
from torch import nn

from tracekit.measure.compilation import dynamo_counters, watch_compilation
from tracekit.measure.compile_log import BREAK, CACHE, COUNTERS, CUDA_GRAPH_SKIP, METRICS, RECOMPILE, LogEntry, read_log
from tracekit.measure.forms import Form
from tracekit.measure.not_compiled import find_reasons
from tracekit.model.compilation import CallPhase, CompilingCall, Diagnostics, NotCompiled
from tracekit.model.note import Noted
from tracekit.model.workload import CompileTarget
from tracekit.statements import noted as notes

#: Loggers that say why a CUDA graph is not made, whichever of Inductor's files says it.
CUDA_GRAPH_LOGGERS = ("torch._inductor.cudagraph_utils.__cudagraphs", "torch._inductor.cudagraph_utils.__perf_hints")


class DiagnosticLog(Struct):
    """What is said of one form, which compiles `targets`, from its first call to its last. `phase` is the walk's to
    set; calls are counted anew in each."""

    targets: tuple[CompileTarget, ...] = ()
    phase: CallPhase = "warm-up"
    warmed_up_at: dict[str, int] | None = None
    _calls: Counter[CallPhase] = field(default_factory=Counter)
    _entries: list[LogEntry] = field(default_factory=list)
    _compiling: dict[tuple[CallPhase, int], list[int]] = field(default_factory=dict)
    _counted: Counter[str] = field(default_factory=Counter)
    _problems: list[Noted] = field(default_factory=list)

    def counted(self, call: Callable[[], object]) -> Callable[[], object]:
        """The call, which is this form's next one whenever it is made. Nothing else is added to it."""

        def next_call() -> object:
            self._calls[self.phase] += 1
            return call()

        return next_call

    @contextmanager
    def listening(self) -> Iterator[None]:
        """What torch says inside is this form's."""

        def note_compilation(_number: int, recording: bool) -> None:
            counts = self._compiling.setdefault((self.phase, self._calls[self.phase]), [0, 0])
            counts[recording] += 1

        counters = dynamo_counters()["inductor"]
        before = {name: counters.get(name, 0) for name in COUNTERS}
        try:
            with self._attached(), watch_compilation(note_compilation) as watch:
                yield
        finally:
            counters = dynamo_counters()["inductor"]
            self._counted.update({name: int(counters.get(name, 0) - before[name]) for name in COUNTERS})
        if watch.lost:
            self._problem(notes.CompileReset())

    @contextmanager
    def _attached(self) -> Iterator[None]:
        try:
            from torch._logging._internal import trace_log
        except ImportError:
            self._problem(notes.NoCompileLog(str(torch.__version__)))
            yield
            return
        records, lines = _Handler(self._read_record, self._problem), _Handler(self._read_line, self._problem)
        handlers = ((trace_log, records), *((logging.getLogger(name), lines) for name in CUDA_GRAPH_LOGGERS))
        with ExitStack() as attached:
            for logger, handler in handlers:
                logger.addHandler(handler)
                attached.callback(logger.removeHandler, handler)
            yield

    def _read_record(self, record: logging.LogRecord) -> None:
        metadata: dict[str, Any] = getattr(record, "metadata", None) or {}
        artifact = (metadata.get("artifact") or {}).get("name", "")
        metrics = next((value for key, value in metadata.items() if METRICS in key), None)
        if metrics is not None:
            self._note(METRICS, metadata, metrics)
        elif artifact in (BREAK, RECOMPILE):
            self._note(artifact, metadata, getattr(record, "payload", None))
        elif CACHE.match(artifact):
            self._note("cache", metadata, artifact)

    def _read_line(self, record: logging.LogRecord) -> None:
        message = record.getMessage().strip()
        if CUDA_GRAPH_SKIP.match(message):
            self._note("skip", {}, CUDA_GRAPH_SKIP.sub("", message).partition("\n")[0])

    def _note(self, kind: str, metadata: dict[str, Any], content: Any) -> None:
        frame = metadata.get("frame_id")
        id_ = None if frame is None else f"{frame}/{metadata.get('frame_compile_id', 0)}"
        self._entries.append(LogEntry(kind, id_, content, self.phase, self._calls[self.phase]))

    def _problem(self, noted: Noted) -> None:
        if noted not in self._problems:
            self._problems.append(noted)

    def why_nothing(self, blocks: Iterable[nn.Module] = ()) -> tuple[NotCompiled, ...]:
        """Why nothing of the targets, or of the `blocks` that repeat in them, was compiled; empty where nobody can
        tell."""
        try:
            return find_reasons(self._entries, self.targets, blocks)
        except Exception as error:  # noqa: BLE001 (no measurement may fail for what torch says of itself)
            self._problem(notes.CompileLogUnreadable(f"{type(error).__name__}: {error}"))
            return ()

    def diagnose(self, walls_us: dict[CallPhase, tuple[float, ...]]) -> Diagnostics:
        """All that was said until now. `walls_us` are the times of the calls of each phase, in order."""
        try:
            found = read_log(self._entries, self._counted, self.targets)
        except Exception as error:  # noqa: BLE001 (no measurement may fail for what torch says of itself)
            self._problem(notes.CompileLogUnreadable(f"{type(error).__name__}: {error}"))
            found = Diagnostics()
        compiled = sum(frames for frames, _graphs in self._compiling.values())
        if compiled and not self._problems and not any(each.kind == METRICS for each in self._entries):
            # That torch compiled and said nothing of it is no sign of health.
            self._problem(notes.CompileLogSilent(str(torch.__version__), compiled))
        calls = []
        for (phase, call), (frames, graphs) in self._compiling.items():
            walls = walls_us.get(phase, ())
            calls.append(
                CompilingCall(phase, call, frames, graphs, walls[call - 1] if 0 < call <= len(walls) else None)
            )
        return replace(
            found,
            calls=tuple(calls),
            cuda_graphs_recorded=sum(graphs for _, graphs in self._compiling.values()),
            warmed_up_at=self.warmed_up_at,
            noted=tuple(self._problems),
        )


class _Handler(logging.Handler):
    """Passes records on. What goes wrong in a handler is no business of the code that logs."""

    def __init__(self, read: Callable[[logging.LogRecord], None], problem: Callable[[Noted], None]) -> None:
        super().__init__(logging.DEBUG)
        self._read, self._problem = read, problem

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._read(record)
        except Exception as error:  # noqa: BLE001 (logging's own way: on standard error, which is kept with the run)
            self._problem(notes.CompileLogLineUnreadable(f"{type(error).__name__}: {error}"))
            self.handleError(record)


def watched(form: Form, log: DiagnosticLog) -> Form:
    """The form, of which the log keeps whatever torch says while it is ready, and counts the calls."""

    @contextmanager
    def ready() -> Iterator[None]:
        with form.ready(), log.listening():
            yield

    return replace(form, call=log.counted(form.call), ready=ready)
