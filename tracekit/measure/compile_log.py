"""What torch's compile log says, as nouns. Its fields and its prose are private to torch; those used here are of 2.9 to
2.15, and what a version has not is None."""

import json
import re
from collections import Counter
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tracekit.measure.branches import steers_branch
from tracekit.measure.compilation import is_of_torch
from tracekit.measure.source_location import (
    class_place,
    function_name,
    is_ours,
    is_python,
    is_torch,
    place,
    portable,
    torchs_frame,
    user_frames,
)
from tracekit.model import compilation as nouns
from tracekit.model.workload import CompileTarget

BREAK, RECOMPILE = "dynamo_graph_break_reason", "recompile_reasons"
#: `compilation_metrics`, with `bwd_` before it for backward graphs and `_runtime` behind for what runs later.
METRICS = "compilation_metrics"
CACHE = re.compile(r"^(fx_graph|aotautograd|autograd)_cache_(hit|miss|bypass)$")
CACHES: dict[str, nouns.CacheName] = {"fx_graph": "fx_graph", "aotautograd": "aot_autograd", "autograd": "aot_autograd"}
CACHE_ORDER: tuple[nouns.CacheName, ...] = ("aot_autograd", "fx_graph", "templates")
CUDA_GRAPH_SKIP = re.compile(r"^skipping cudagraphs?(?: due to)?:?\s*", re.IGNORECASE)
#: Counters of Inductor's.
SKIPS, AUTOTUNED = "cudagraph_skips", "select_algorithm_autotune"
TEMPLATE_HITS, TEMPLATE_MISSES = "generated_module_cache_hit", "generated_module_cache_miss"
COUNTERS = (SKIPS, AUTOTUNED, TEMPLATE_HITS, TEMPLATE_MISSES)

#: How torch begins what it says of a frame that was compiled too often, in 2.9 to 2.15 and before.
LIMIT = re.compile(r"(recompile|cache)[_ ](size[_ ])?limit", re.IGNORECASE)
#: A frame without tensors: nothing is lost by running it as it is.
NOTHING_TO_COMPILE = "SkipFrame"
VERSION = re.compile(r"^(\d+/\d+):\s*")
#: Dynamo's name of an argument as a graph's input.
ARGUMENT = re.compile(r"^l_(?P<name>.+?)_$", re.IGNORECASE)
PARAMETER = re.compile(r"parameters_|buffers_|_modules_", re.IGNORECASE)
#: A path within a guard's own comment, `# model.py:12 in forward`.
STACK_PATH = re.compile(r"(?<![\w.-])/[^\s:'\"]+\.py")
#: What torch writes of a graph break: where, why, and what helps.
BREAK_AT = re.compile(r"in user code at (.+):(\d+)\s*$", re.MULTILINE)
REASON = re.compile(r"Graph Break Reason:(.*?)(?=^\s*Explanation:|^User code traceback|\Z)", re.DOTALL | re.MULTILINE)
EXPLANATION = re.compile(r"^\s*Explanation: (.+)$", re.MULTILINE)
HINT = re.compile(r"^\s*Hint: (.+)$", re.MULTILINE)
#: Of what an explanation is, where the reason says only its kind.
NAMED = re.compile(r"\b(?:builtin|builtin operator|function|method) `([\w.]+)`")
#: Of hints that a user can do nothing with.
NO_HELP = ("report an issue", "file an issue", "graph break is fundamental", "may have encountered a bug")
CODE = re.compile(r"\b(gb\d{4})\b")
#: The setting that lets a graph hold a value that the host reads, as torch names it where it breaks for one.
READ_ON_HOST = "capture_scalar_outputs"
#: Where the frame lies that torch puts around a module of its own.
DYNAMO = "torch/_dynamo/"


class LogEntry(Struct):
    """One thing that torch logged, and during which of the form's calls."""

    kind: str
    id: str | None
    content: Any
    phase: nouns.CallPhase
    call: int


def read_log(
    entries: list[LogEntry], counted: Counter[str], targets: tuple[CompileTarget, ...] = ()
) -> nouns.Diagnostics:
    """What the log alone tells. `counted` is how much Inductor's counters have grown; of `targets` those that are
    torch's own modules have no frame of their own."""
    metrics = [each for each in entries if each.kind == METRICS]
    failed = {each.id for each in metrics if failure_of(each.content)}
    told = (CACHE.match(each.content) for each in entries if each.kind == "cache")
    uses = Counter((CACHES[found[1]], found[2]) for found in told if found)
    uses["templates", "hit"], uses["templates", "miss"] = counted[TEMPLATE_HITS], counted[TEMPLATE_MISSES]
    every = (nouns.CacheUse(name, *(uses[name, what] for what in ("hit", "miss", "bypass"))) for name in CACHE_ORDER)
    reasons = Counter(each.content for each in entries if each.kind == "skip")
    # Where the logger was silenced, the metrics have them.
    counts = Counter(each.content.get("cudagraph_skip_reason") for each in entries if each.kind == METRICS)
    for reason, count in counts.items():
        short = CUDA_GRAPH_SKIP.sub("", reason).partition("\n")[0] if reason else None
        if short and short not in reasons:
            reasons[short] = count
    skips = tuple(nouns.CudaGraphSkip(reason, count) for reason, count in reasons.most_common())
    unsaid = counted[SKIPS] - sum(reasons.values())
    return nouns.Diagnostics(
        frames=_frames(entries, failed, targets),
        breaks=_breaks(entries, failed),
        fallbacks=_fallbacks(entries, targets),
        phases=_phases(metrics),
        caches=tuple(use for use in every if use.hits or use.misses or use.bypasses),
        cuda_graph_skips=(*skips, nouns.CudaGraphSkip(None, unsaid)) if unsaid > 0 else skips,
        autotuned=counted[AUTOTUNED],
    )


def failure_of(metrics: dict[str, Any]) -> str | None:
    """What kept a frame from being compiled; None for those that were, and for those without anything to compile."""
    kind = metrics.get("fail_type")
    return None if not kind or kind.endswith(NOTHING_TO_COMPILE) else str(metrics.get("fail_reason") or kind)


def _function_of(metrics: dict[str, Any], targets: tuple[CompileTarget, ...]) -> tuple[str | None, str | None]:
    """Name and place of a compiled function. Of torch's frame around a module of its own those of the module's class;
    several classes share that frame, and have no one place."""
    file, classes = metrics.get("co_filename"), set[type]()
    if file and is_torch(file) and portable(file).startswith(DYNAMO):
        classes = {type(each.module) for each in targets if each.method == "forward" and is_of_torch(each.module)}
    if not classes:
        return function_name(metrics.get("co_name")), place(file, metrics.get("co_firstlineno"))
    return ", ".join(sorted(each.__name__ for each in classes)), class_place(*classes) if len(classes) == 1 else None


def _frames(
    entries: list[LogEntry], failed: set[str | None], targets: tuple[CompileTarget, ...]
) -> tuple[nouns.FrameCompilation, ...]:
    because = {each.id: _guards(each.content) for each in entries if each.kind == RECOMPILE}
    return tuple(
        nouns.FrameCompilation(
            id=each.id,
            function=function,
            where=where,
            phase=each.phase,
            call=each.call,
            seconds=None if metrics.get("duration_us") is None else metrics["duration_us"] / 1e6,
            guards=metrics.get("guard_count"),
            because=because.get(each.id, ()),
            inputs=_inputs(metrics),
        )
        for each, metrics in ((entry, entry.content) for entry in entries if entry.kind == METRICS)
        for function, where in (_function_of(metrics, targets),)
        if each.id is not None and each.id not in failed
        # Backward graphs, and what ran later, belong to a frame that is told already.
        if metrics.get("is_forward") is not False and not metrics.get("is_runtime")
    )


def _guards(payload: Any) -> tuple[nouns.FailedGuard, ...]:
    """The payload is one reason, a JSON list of them, or lines."""
    if isinstance(payload, str):
        with suppress(ValueError):
            payload = json.loads(payload)
    found = []
    for each in payload if isinstance(payload, list) else [payload]:
        if line := str(each).strip():
            version, text = VERSION.match(line), VERSION.sub("", line)
            text = STACK_PATH.sub(lambda path: portable(path[0]), text)
            found.append(nouns.FailedGuard(version[1] if version else "", text))
    return tuple(found)


def _inputs(metrics: dict[str, Any]) -> dict[str, str] | None:
    """The sizes of a graph's inputs by their names as arguments; None where torch tells none."""
    shapes, count = metrics.get("graph_node_shapes"), metrics.get("graph_input_count")
    if not isinstance(shapes, str) or count is None:
        return None
    named = re.findall(r"'(l_[^']*)': (\[[^\]]*\])", shapes, re.IGNORECASE)
    arguments = ((ARGUMENT.match(name), sizes) for name, sizes in named if not PARAMETER.search(name))
    return {
        found["name"]: " × ".join(re.findall(r"\w+", sizes)) or "scalar" for found, sizes in arguments if found
    } or None


def _breaks(entries: list[LogEntry], failed: set[str | None]) -> tuple[nouns.GraphBreak, ...]:
    """One a place and reason, in the order they were met. A frame that was given up for a break is no break: all of it
    runs eager."""
    found: dict[tuple[str | None, str], nouns.GraphBreak] = {}
    for each in entries:
        if each.kind != BREAK or each.id in failed:
            continue
        one = read_break(str(each.content), each.id)
        known = found.setdefault((one.where, one.reason), one)
        more = tuple(frame for frame in one.frames if frame not in known.frames)
        # A frame that was compiled by itself does not tell who calls it.
        caller = known.called_from or one.called_from
        found[one.where, one.reason] = replace(known, frames=(*known.frames, *more), called_from=caller)
    return tuple(found.values())


def read_break(text: str, id_: str | None) -> nouns.GraphBreak:
    """A graph break from torch's prose. What is not found in it is None."""
    text = text.partition("Traceback (most recent call last)")[0]
    stack = text.partition("User code traceback:")[2]
    own = [frame for frame in user_frames(stack) if not is_ours(frame[0]) and not is_python(frame[0])]
    torchs, break_at = torchs_frame(stack), BREAK_AT.search(text)
    broke = torchs or (own[-1] if own else None)
    where = place(*broke[:2]) if broke else place(*break_at.groups()) if break_at else None
    reason = REASON.search(text)
    lines = [line.strip() for line in (reason[1] if reason else text).splitlines() if line.strip()]
    explanation, code = EXPLANATION.search(text), CODE.search(text)
    caller = None
    if torchs and own:
        caller = place(*own[-1][:2])
    elif len(own) > 1 and function_name(own[-1][2]) != "forward":
        # The innermost forward around what broke, or else the outermost line.
        around = next((frame for frame in reversed(own[:-1]) if function_name(frame[2]) == "forward"), own[0])
        caller = place(*around[:2])
    return nouns.GraphBreak(
        where=where,
        function=function_name(broke[2]) if broke else None,
        reason=_named((lines or ["no reason given"])[-1].rstrip("."), explanation[1] if explanation else ""),
        explanation=explanation[1].strip() if explanation else None,
        hint=find_hint(text),
        code=code[1] if code else None,
        frames=(id_,) if id_ else (),
        called_from=caller,
        steers_branch=READ_ON_HOST in text and not torchs and steers_branch(own),
    )


def _named(reason: str, explanation: str) -> str:
    """`Failed to trace builtin operator: print`, whose name torch's explanation alone has."""
    name = NAMED.search(explanation)
    return reason if name is None or name[1] in reason else f"{reason}: {name[1].rstrip('.')}"


def find_hint(text: str) -> str | None:
    """The first hint that a user can do something with."""
    # Torch 2.11 to 2.13 name the setting without its module, which sets nothing.
    text = re.sub(r"(?<!config)\.trace_autograd_ops\b", ".config.trace_autograd_ops", text)
    hints = (hint.strip() for hint in HINT.findall(text))
    return next((hint for hint in hints if not any(each in hint for each in NO_HELP)), None)


def _fallbacks(entries: list[LogEntry], targets: tuple[CompileTarget, ...]) -> tuple[nouns.EagerFallback, ...]:
    """Each once. What was compiled too often is told without its name, which the frame's first compilation has."""
    metrics = [each for each in entries if each.kind == METRICS]
    number = {each.id: (each.id or "").partition("/")[0] for each in metrics}
    named = {number[each.id]: each.content for each in metrics if each.content.get("co_name")}
    broke = {each.id: each for each in reversed(entries) if each.kind == BREAK}
    found: dict[nouns.EagerFallback, None] = {}
    for each in metrics:
        failure = failure_of(each.content)
        if failure is None:
            continue
        known = each.content if each.content.get("co_name") else named.get(number[each.id], {})
        function, where = _function_of(_begun(known, metrics), targets)
        reason = next((line.strip() for line in failure.splitlines() if line.strip()), failure)
        kind: nouns.FallbackKind = "skipped" if str(each.content.get("fail_type")).endswith("Unsupported") else "error"
        line = place(*(each.content.get(f"fail_user_frame_{part}") for part in ("filename", "lineno")))
        if kind == "skipped" and each.id is not None and each.id in broke:
            # The first: what fails after it is to end the graph there, and to go on behind it.
            cause = read_break(str(broke[each.id].content), each.id)
            line = cause.line or line
            reason = cause.reason if cause.reason.startswith(reason.rstrip(".")) else f"{cause.reason}; {reason}"
        fallback = nouns.EagerFallback(
            kind="recompile_limit" if LIMIT.search(reason) else kind,
            function=function,
            where=where,
            reason=reason,
            line=line,
        )
        found[fallback] = None
    return tuple(found)


def _begun(metrics: dict[str, Any], frames: list[LogEntry]) -> dict[str, Any]:
    """Those of the function's own frame, of one that goes on after a graph break: the last that begins before it."""
    name = function_name(metrics.get("co_name"))
    if name == metrics.get("co_name"):
        return metrics
    own = {"co_name": name, "co_filename": metrics.get("co_filename")}
    same = (each.content for each in frames if own.items() <= each.content.items())
    lines = {each.get("co_firstlineno") or 0: each for each in same}
    before = [line for line in lines if line <= (metrics.get("co_firstlineno") or 0)]
    return lines[max(before)] if before else metrics


def _phases(metrics: list[LogEntry]) -> tuple[nouns.PhaseTime, ...]:
    """torch tells each phase with those inside of it: Dynamo holds AOTAutograd, that Inductor, and that Triton and
    autotuning."""
    totals: Counter[nouns.PhaseName] = Counter()
    for each in metrics:
        us = Counter({name: value for name, value in each.content.items() if name.endswith("_us") and value})
        parts = ("dynamo", "aot_autograd", "inductor", "backward")
        dynamo, aot, inductor, backward = (us[f"{part}_cumulative_compile_time_us"] for part in parts)
        triton, autotune = us["triton_compile_time_us"], us["compile_time_autotune_time_us"]
        totals["dynamo"] += max(dynamo - aot, 0)
        totals["aot_autograd"] += max(aot - inductor, 0)
        totals["inductor"] += max(max(inductor, 0 if dynamo else backward) - triton - autotune, 0)
        totals["triton"] += triton
        totals["autotune"] += autotune + us["runtime_triton_autotune_time_us"]
        totals["cuda_graphs"] += us["runtime_cudagraphify_time_us"]
    return tuple(nouns.PhaseTime(name, us / 1e6) for name, us in totals.most_common() if us)
