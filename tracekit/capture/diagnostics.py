"""What does torch.compile say of its own work? The only file that reads torch's structured compile log.

`torch.__trace` is the logger that TORCH_TRACE and tlparse read; its records and the names of their artifacts are
private to torch. Those used here were the same from 2.9 to 2.15. Each form listens only while it is switched on, and of
counters only differences are used, so nothing of another form or workload is told as this one's. Where something is
missing, a note says so; no measurement fails for it.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tracekit.capture.compilation import watch_compilation
from tracekit.capture.forms import Form
from tracekit.capture.whereabouts import is_torch, portable
from tracekit.model.compilation import (
    CacheName,
    CacheUse,
    CallPhase,
    CompilingCall,
    CudaGraphSkip,
    Diagnostics,
    EagerFallback,
    FailedGuard,
    FallbackKind,
    FrameCompilation,
    GraphBreak,
    PhaseName,
    PhaseTime,
)

BREAK, RECOMPILE = "dynamo_graph_break_reason", "recompile_reasons"
#: `compilation_metrics`, with `bwd_` before it for backward graphs and `_runtime` behind for what runs later.
METRICS = "compilation_metrics"
CACHE = re.compile(r"^(fx_graph|aotautograd|autograd)_cache_(hit|miss|bypass)$")
CACHES: dict[str, CacheName] = {
    "fx_graph": "fx_graph",
    "aotautograd": "aot_autograd",
    "autograd": "aot_autograd",
}
#: Loggers that say why a CUDA graph is not made, whichever of Inductor's files says it.
CUDA_GRAPH_LOGGERS = ("torch._inductor.cudagraph_utils.__cudagraphs", "torch._inductor.cudagraph_utils.__perf_hints")
CUDA_GRAPH_SKIP = re.compile(r"^skipping cudagraphs?(?: due to)?:?\s*", re.IGNORECASE)
#: Counters of Inductor's by what is told of them.
SKIPS, AUTOTUNED = "cudagraph_skips", "select_algorithm_autotune"
TEMPLATE_HITS, TEMPLATE_MISSES = "generated_module_cache_hit", "generated_module_cache_miss"
COUNTERS = (SKIPS, AUTOTUNED, TEMPLATE_HITS, TEMPLATE_MISSES)

#: How torch begins what it says of a frame that was compiled too often, in 2.9 to 2.15 and before.
LIMIT = re.compile(r"(recompile|cache)[_ ](size[_ ])?limit", re.IGNORECASE)
#: A frame without tensors: nothing is lost by running it as it is.
NOTHING_TO_COMPILE = "SkipFrame"
#: A resumed function is called after the one that broke.
RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")

STACK_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
HEADER = re.compile(r"Graph break in user code at (.+):(\d+)\s*$", re.MULTILINE)
REASON = re.compile(r"Graph Break Reason:(.*?)(?=^\s*Explanation:|^User code traceback|\Z)", re.DOTALL | re.MULTILINE)
EXPLANATION = re.compile(r"^\s*Explanation: (.+)$", re.MULTILINE)
HINT = re.compile(r"^\s*Hint: (.+)$", re.MULTILINE)
CODE = re.compile(r"\b(gb\d{4})\b")
#: Hints that a user can do nothing with.
NO_HELP = re.compile(r"report an issue|file an issue|This graph break is fundamental|may have encountered a bug")
VERSION = re.compile(r"^(\d+/\d+):\s*")
#: Dynamo's name of an argument as a graph's input.
ARGUMENT = re.compile(r"^l_(?P<name>.+?)_$", re.IGNORECASE)
PARAMETER = re.compile(r"parameters_|buffers_|_modules_", re.IGNORECASE)


@dataclass
class _Heard:
    """One thing that torch said, and during which of the form's calls."""

    kind: str
    id: str | None
    content: Any
    phase: CallPhase
    call: int


@dataclass
class DiagnosticLog:
    """What is said of one form, from its first call to its last. `phase` is the walk's to set; calls are counted anew
    in each."""

    phase: CallPhase = "warm-up"
    warmed_up_at: dict[str, int] | None = None
    _calls: Counter[CallPhase] = field(default_factory=Counter)
    _heard: list[_Heard] = field(default_factory=list)
    _compiling: dict[tuple[CallPhase, int], list[int]] = field(default_factory=dict)
    _counted: Counter[str] = field(default_factory=Counter)
    _problems: list[str] = field(default_factory=list)

    def counted(self, call: Callable[[], object]) -> Callable[[], object]:
        """The call, which is this form's next one whenever it is made. Nothing else is added to it."""
        calls = self._calls

        def next_call() -> object:
            calls[self.phase] += 1
            return call()

        return next_call

    @contextmanager
    def listening(self) -> Iterator[None]:
        """What torch says inside is this form's."""
        with self._attached(), self._counting(), watch_compilation() as watch:
            watch.on_start = self._note_compilation
            yield

    def _note_compilation(self, recording: bool) -> None:
        counts = self._compiling.setdefault((self.phase, self._calls[self.phase]), [0, 0])
        counts[recording] += 1

    @contextmanager
    def _counting(self) -> Iterator[None]:
        before = _inductor_counters()
        try:
            yield
        finally:
            after = _inductor_counters()
            self._counted.update({name: after[name] - before[name] for name in COUNTERS})

    @contextmanager
    def _attached(self) -> Iterator[None]:
        try:
            from torch._logging._internal import trace_log
        except ImportError:
            self._problem(f"torch {torch.__version__} has no structured compile log where tracekit knows it")
            yield
            return
        handlers = [(trace_log, _Listener(self._hear_record))]
        handlers += [(logging.getLogger(name), _Listener(self._hear_line)) for name in CUDA_GRAPH_LOGGERS]
        for logger, handler in handlers:
            logger.addHandler(handler)
        try:
            yield
        finally:
            for logger, handler in handlers:
                logger.removeHandler(handler)

    def _hear_record(self, record: logging.LogRecord) -> None:
        metadata: dict[str, Any] = getattr(record, "metadata", None) or {}
        artifact = (metadata.get("artifact") or {}).get("name", "")
        metrics = next((value for key, value in metadata.items() if METRICS in key), None)
        if metrics is not None:
            self._note(METRICS, metadata, metrics)
        elif artifact in (BREAK, RECOMPILE):
            self._note(artifact, metadata, getattr(record, "payload", None))
        elif CACHE.match(artifact):
            self._note("cache", metadata, artifact)

    def _hear_line(self, record: logging.LogRecord) -> None:
        message = record.getMessage().strip()
        if CUDA_GRAPH_SKIP.match(message):
            self._note("skip", {}, CUDA_GRAPH_SKIP.sub("", message).partition("\n")[0])

    def _note(self, kind: str, metadata: dict[str, Any], content: Any) -> None:
        self._heard.append(_Heard(kind, _compile_id(metadata), content, self.phase, self._calls[self.phase]))

    def _problem(self, text: str) -> None:
        if text not in self._problems:
            self._problems.append(text)

    def diagnose(self, walls_us: dict[CallPhase, tuple[float, ...]]) -> Diagnostics:
        """All that was said until now. `walls_us` are the times of the calls of each phase, in order."""
        try:
            return replace(_diagnosed(self), calls=self._compiling_calls(walls_us))
        except Exception as error:  # noqa: BLE001 (no measurement may fail for what torch says of itself)
            self._problem(f"torch's compile log could not be read ({type(error).__name__}: {error})")
            return Diagnostics(
                calls=self._compiling_calls(walls_us), warmed_up_at=self.warmed_up_at, notes=tuple(self._problems)
            )

    def _compiling_calls(self, walls_us: dict[CallPhase, tuple[float, ...]]) -> tuple[CompilingCall, ...]:
        return tuple(
            CompilingCall(phase, call, frames, graphs, _at(walls_us.get(phase, ()), call))
            for (phase, call), (frames, graphs) in self._compiling.items()
        )


class _Listener(logging.Handler):
    """Passes records on. What goes wrong in a handler is no business of the code that logs."""

    def __init__(self, hear: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(logging.DEBUG)
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._hear(record)
        except Exception:  # noqa: BLE001 (logging's own way: told on standard error, which is kept with the run)
            self.handleError(record)


def watched(form: Form, log: DiagnosticLog) -> Form:
    """The form, of which the log hears whatever torch says while it is ready, and counts the calls."""

    @contextmanager
    def ready() -> Iterator[None]:
        with form.ready(), log.listening():
            yield

    return replace(form, call=log.counted(form.call), ready=ready)


def _inductor_counters() -> Counter[str]:
    from torch._dynamo.utils import counters

    return Counter({name: int(counters["inductor"].get(name, 0)) for name in COUNTERS})


def _compile_id(metadata: dict[str, Any]) -> str | None:
    frame = metadata.get("frame_id")
    return None if frame is None else f"{frame}/{metadata.get('frame_compile_id', 0)}"


def _at(values: tuple[float, ...], call: int) -> float | None:
    return values[call - 1] if 0 < call <= len(values) else None


def _diagnosed(log: DiagnosticLog) -> Diagnostics:
    heard, counted = log._heard, log._counted
    metrics = [each for each in heard if each.kind == METRICS]
    failed = {each.id for each in metrics if _failure(each.content)}
    return Diagnostics(
        frames=_frames(heard, failed),
        breaks=_breaks(heard, failed),
        fallbacks=_fallbacks(metrics),
        phases=_phases(metrics),
        caches=_caches(heard, counted),
        cuda_graph_skips=_skips(heard, counted[SKIPS]),
        cuda_graphs_recorded=sum(graphs for _, graphs in log._compiling.values()),
        autotuned=counted[AUTOTUNED],
        warmed_up_at=log.warmed_up_at,
        notes=tuple(log._problems),
    )


def _failure(metrics: dict[str, Any]) -> str | None:
    """What kept a frame from being compiled; None for those that were, and for those without anything to compile."""
    kind = metrics.get("fail_type")
    return None if not kind or kind.endswith(NOTHING_TO_COMPILE) else str(metrics.get("fail_reason") or kind)


def _frames(heard: list[_Heard], failed: set[str | None]) -> tuple[FrameCompilation, ...]:
    because = {each.id: _guards(each.content) for each in heard if each.kind == RECOMPILE}
    return tuple(
        FrameCompilation(
            id=each.id,
            function=_function(each.content.get("co_name")),
            where=_place(each.content.get("co_filename"), each.content.get("co_firstlineno")),
            phase=each.phase,
            call=each.call,
            seconds=_seconds(each.content, "duration_us"),
            guards=each.content.get("guard_count"),
            because=because.get(each.id, ()),
            inputs=_inputs(each.content),
        )
        for each in heard
        if each.kind == METRICS and each.id is not None and each.id not in failed and _is_frame(each.content)
    )


def _is_frame(metrics: dict[str, Any]) -> bool:
    """Not a backward graph, nor something that ran later: those belong to a frame that is told already."""
    return metrics.get("is_forward") is not False and not metrics.get("is_runtime")


def _guards(payload: Any) -> tuple[FailedGuard, ...]:
    """The payload is one reason, a JSON list of them, or lines."""
    texts = payload
    if isinstance(payload, str):
        try:
            texts = json.loads(payload)
        except ValueError:
            texts = payload
    lines = texts if isinstance(texts, list) else [texts]
    return tuple(_guard(str(line).strip()) for line in lines if str(line).strip())


def _guard(line: str) -> FailedGuard:
    version = VERSION.match(line)
    text = VERSION.sub("", line)
    return FailedGuard(version[1] if version else "", STACK_PATH.sub(lambda found: portable(found[0]), text))


#: A path within a guard's own comment, `# model.py:12 in forward`.
STACK_PATH = re.compile(r"/[^\s:'\"]+\.py")


def _inputs(metrics: dict[str, Any]) -> dict[str, str] | None:
    shapes, count = metrics.get("graph_node_shapes"), metrics.get("graph_input_count")
    if not isinstance(shapes, str) or count is None:
        return None
    named = re.findall(r"'(l_[^']*)': (\[[^\]]*\])", shapes, re.IGNORECASE)
    arguments = ((ARGUMENT.match(name), sizes) for name, sizes in named if not PARAMETER.search(name))
    return {
        found["name"]: " × ".join(re.findall(r"\w+", sizes)) or "scalar" for found, sizes in arguments if found
    } or None


def _function(name: str | None) -> str | None:
    """The user's own function, also of what Dynamo made to go on after a break."""
    resumed = RESUMED.match(name or "")
    return resumed[1] if resumed else name


def _place(file: str | None, line: Any) -> str | None:
    return f"{portable(file)}:{line}" if file and line is not None else None


def _seconds(metrics: dict[str, Any], name: str) -> float | None:
    us = metrics.get(name)
    return None if us is None else us / 1e6


def _breaks(heard: list[_Heard], failed: set[str | None]) -> tuple[GraphBreak, ...]:
    """One a place and reason, in the order they were met. A frame that was given up for a break is no break: all of it
    runs eager."""
    found: dict[tuple[str | None, str], GraphBreak] = {}
    for each in heard:
        if each.kind != BREAK or each.id in failed:
            continue
        one = _break(str(each.content), each.id)
        known = found.setdefault((one.where, one.reason), one)
        if one.frames[:1] and one.frames[0] not in known.frames:
            found[one.where, one.reason] = replace(known, frames=(*known.frames, *one.frames))
    return tuple(found.values())


def _break(text: str, id_: str | None) -> GraphBreak:
    told = text.partition("Traceback (most recent call last)")[0]
    stack = STACK_FRAME.findall(told.partition("User code traceback:")[2])
    own = [frame for frame in stack if not is_torch(frame[0])]
    header = HEADER.search(told)
    where = _place(*own[-1][:2]) if own else _place(*header.groups()) if header else None
    reason = REASON.search(told)
    lines = [line.strip() for line in (reason[1] if reason else told).splitlines() if line.strip()]
    hints = [hint for hint in HINT.findall(told) if not NO_HELP.search(hint)]
    explanation, code = EXPLANATION.search(told), CODE.search(told)
    return GraphBreak(
        where=where,
        function=_function(own[-1][2]) if own else None,
        reason=(lines or ["no reason was told"])[-1].rstrip("."),
        explanation=explanation[1].strip() if explanation else None,
        hint=hints[0].strip() if hints else None,
        code=code[1] if code else None,
        frames=(id_,) if id_ else (),
    )


def _fallbacks(metrics: list[_Heard]) -> tuple[EagerFallback, ...]:
    """Each once. What was compiled too often is told without its name, which the frame's first compilation has."""
    named = {_frame_number(each.id): each.content for each in metrics if each.content.get("co_name")}
    found: dict[EagerFallback, None] = {}
    for each in metrics:
        failure = _failure(each.content)
        if failure is None:
            continue
        known = each.content if each.content.get("co_name") else named.get(_frame_number(each.id), {})
        fallback = EagerFallback(
            kind=_fallback_kind(each.content, failure),
            function=_function(known.get("co_name")),
            where=_place(
                each.content.get("fail_user_frame_filename") or known.get("co_filename"),
                each.content.get("fail_user_frame_lineno") or known.get("co_firstlineno"),
            ),
            reason=_first_line(failure),
        )
        found[fallback] = None
    return tuple(found)


def _frame_number(id_: str | None) -> str:
    return (id_ or "").partition("/")[0]


def _fallback_kind(metrics: dict[str, Any], failure: str) -> FallbackKind:
    if LIMIT.search(_first_line(failure)):
        return "recompile_limit"
    return "skipped" if str(metrics.get("fail_type")).endswith("Unsupported") else "error"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), text)


def _phases(metrics: list[_Heard]) -> tuple[PhaseTime, ...]:
    """torch tells each phase with those inside of it: Dynamo holds AOTAutograd, that Inductor, and that Triton and
    autotuning."""
    totals: Counter[PhaseName] = Counter()
    for each in metrics:
        times = {name: each.content.get(f"{name}_us") or 0 for name in NESTED}
        dynamo, aot, inductor, triton, autotune = times.values()
        backward = each.content.get("backward_cumulative_compile_time_us") or 0
        totals["dynamo"] += max(dynamo - aot, 0)
        totals["aot_autograd"] += max(aot - inductor, 0)
        totals["inductor"] += max(max(inductor, 0 if dynamo else backward) - triton - autotune, 0)
        totals["triton"] += triton
        totals["autotune"] += autotune + (each.content.get("runtime_triton_autotune_time_us") or 0)
        totals["cuda_graphs"] += each.content.get("runtime_cudagraphify_time_us") or 0
    return tuple(PhaseTime(name, us / 1e6) for name, us in totals.most_common() if us)


NESTED = (
    "dynamo_cumulative_compile_time",
    "aot_autograd_cumulative_compile_time",
    "inductor_cumulative_compile_time",
    "triton_compile_time",
    "compile_time_autotune_time",
)


def _caches(heard: list[_Heard], counted: Counter[str]) -> tuple[CacheUse, ...]:
    uses: Counter[tuple[CacheName, str]] = Counter()
    for each in heard:
        found = CACHE.match(each.content) if each.kind == "cache" else None
        if found:
            uses[CACHES[found[1]], found[2]] += 1
    uses["templates", "hit"] = counted[TEMPLATE_HITS]
    uses["templates", "miss"] = counted[TEMPLATE_MISSES]
    every = (CacheUse(name, *(uses[name, what] for what in ("hit", "miss", "bypass"))) for name in CACHE_ORDER)
    return tuple(use for use in every if use.hits or use.misses or use.bypasses)


CACHE_ORDER: tuple[CacheName, ...] = ("aot_autograd", "fx_graph", "templates")


def _skips(heard: list[_Heard], counted: int) -> tuple[CudaGraphSkip, ...]:
    reasons = Counter(each.content for each in heard if each.kind == "skip")
    # Told in the metrics alone where the logger was silenced.
    told = Counter(each.content.get("cudagraph_skip_reason") for each in heard if each.kind == METRICS)
    for reason, count in told.items():
        short = CUDA_GRAPH_SKIP.sub("", reason).partition("\n")[0] if reason else None
        if short and short not in reasons:
            reasons[short] = count
    skips = tuple(CudaGraphSkip(reason, count) for reason, count in reasons.most_common())
    unsaid = counted - sum(reasons.values())
    return (*skips, CudaGraphSkip(None, unsaid)) if unsaid > 0 else skips
