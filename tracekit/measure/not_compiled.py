"""Why did torch.compile make no graph at all? What it said of each function that it gave up; where it said nothing,
what the functions themselves tell.

The words of graph breaks are private to torch: those used here are of 2.9 to 2.15.
"""

import ast
import inspect
import linecache
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec.structs import replace
from torch import nn

from tracekit.measure.branches import steers_branch, tree_of
from tracekit.measure.compile_log import BREAK, METRICS, LogEntry, failure_of, read_break
from tracekit.measure.source_location import function_name, is_python, place, user_frames
from tracekit.model.compilation import LONGEST_LINE, NotCompiled, NotCompiledCode
from tracekit.model.workload import CompileTarget

#: What torch calls its kinds of graph breaks, by ours: the first that fits.
KINDS: dict[NotCompiledCode, re.Pattern[str]] = {
    "compiler_disabled": re.compile(r"(compiler|_dynamo)\.disable"),
    "graph_break_call": re.compile(r"torch\._dynamo\.(graph_break|skip_frame|step_unsupported)"),
    "generator": re.compile(r"trace generator"),
    "scalar_read": re.compile(r"Tensor\.(item|tolist)\(|scalar_outputs|Data[- ]dependent (operator|expression)"),
    "data_dependent_branch": re.compile(r"Data-dependent (branching|assertion)"),
    "data_dependent_shape": re.compile(r"Dynamic (shape|slicing)|data-dependent output shape"),
    "context_manager": re.compile(r"context manager"),
    "untraceable_call": re.compile(
        r"builtin|marked as skipped|not implemented in python|unsupported (function|method) call|numpy|import",
        re.IGNORECASE,
    ),
}
#: What torch adds to a break from which it cannot go on.
IN_LOOP, IN_CONTEXT = re.compile(r"graph break in (a for/while )?loop"), re.compile(r"GenericContextWrappingVariable")
#: Functions of Python's own making that are loops: in 3.11 each has a frame.
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
#: The code around calls, whose frames stand between the user's program and the model.
AROUND = f"{Path(__file__).parents[1]}{os.sep}"
#: So many reasons are kept.
MOST_REASONS = 50

#: File, line and function.
Frame = tuple[str, int, str | None]


def find_reasons(
    entries: Iterable[LogEntry], targets: tuple[CompileTarget, ...], blocks: Iterable[nn.Module] = ()
) -> tuple[NotCompiled, ...]:
    """A place and reason each, in the order they were met; empty where nobody can tell. `blocks` are the modules that
    repeat."""
    entries = tuple(entries)
    broken = {each.id for each in entries if each.kind == BREAK}
    found: dict[tuple[str | None, str], NotCompiled] = {}
    for each in entries:
        if each.kind == BREAK:
            reason = _read(str(each.content), _frames_within(str(each.content)), targets)
        elif each.kind == METRICS and each.id not in broken and (failure := failure_of(each.content)):
            file, line = (each.content.get(f"fail_user_frame_{part}") for part in ("filename", "lineno"))
            frames = ((file, int(line), each.content.get("co_name")),) if file and line else ()
            reason = _read(f"Graph Break Reason: {failure}", frames, targets)
            if not str(each.content.get("fail_type")).endswith("Unsupported"):
                reason = NotCompiled("failed", reason.reason, reason.where, reason.function, reason.line)
        else:
            continue
        found.setdefault((reason.where, reason.reason), reason)
    codes = (getattr(inspect.unwrap(type(each).forward), "__code__", None) for each in blocks)
    of_blocks = {place(code.co_filename, line) for code in codes if code for *_, line in code.co_lines()}
    told = tuple(found.values())[:MOST_REASONS]
    within = (replace(each, in_block=(each.called_from or each.where) in of_blocks) for each in told)
    return tuple(within) or tuple(_untold(targets))


def _frames_within(text: str) -> tuple[Frame, ...]:
    """The frames of a break that are the model's own, the innermost last: below the last of tracekit's, and none of
    Python's own library."""
    frames = user_frames(text.partition("User code traceback:")[2].partition("Traceback (most recent call last)")[0])
    last = max((at for at, (file, *_) in enumerate(frames) if file.startswith(AROUND)), default=-1)
    within = (each for each in frames[last + 1 :] if not is_python(each[0]))
    return tuple((file, int(line), function_name(function)) for file, line, function in within)


def _read(text: str, frames: tuple[Frame, ...], targets: tuple[CompileTarget, ...]) -> NotCompiled:
    told = read_break(text, None)
    code: NotCompiledCode = next((code for code, kind in KINDS.items() if kind.search(told.reason)), "other")
    frames = frames or _functions(targets)[:1]
    if not frames:
        return NotCompiled(code, told.reason, told.where, explanation=told.explanation, hint=told.hint)
    if code == "scalar_read" and steers_branch(frames):
        code = "data_dependent_branch"
    file, line, function = frames[-1]
    forward = next((at for at in reversed(range(len(frames))) if frames[at][2] == "forward"), 0)
    called_from = place(*frames[forward][:2])
    inside: Literal["loop", "context_manager"] | None = None
    if IN_LOOP.search(text) or any(map(_in_loop, frames[forward:])):
        inside = "loop"
    elif IN_CONTEXT.search(text):
        inside = "context_manager"
    return NotCompiled(
        code=code,
        reason=told.reason,
        where=place(file, line),
        # Of a comprehension, or a lambda, the function that it stands in.
        function=next((name for *_, name in reversed(frames) if name and not name.startswith("<")), function),
        line=_code(file, line),
        called_from=called_from if called_from != place(file, line) else None,
        inside=inside,
        explanation=told.explanation,
        hint=told.hint,
    )


def _code(file: str, line: int) -> str | None:
    return linecache.getline(file, line).strip()[:LONGEST_LINE] or None


def _in_loop(frame: Frame) -> bool:
    """Whether its line stands in a loop's body."""
    file, line, function = frame
    if function in COMPREHENSIONS:
        return True
    loops = (each for each in ast.walk(tree_of(file)) if isinstance(each, ast.For | ast.While))
    return any(each.body[0].lineno <= line <= (each.body[-1].end_lineno or 0) for each in loops)


def _functions(targets: tuple[CompileTarget, ...]) -> tuple[Frame, ...]:
    """Where the functions begin that were to be compiled."""
    found = []
    for target in targets:
        function = inspect.unwrap(getattr(target.module, target.method))
        if code := getattr(function, "__code__", None):
            found.append((code.co_filename, code.co_firstlineno, code.co_name))
    return tuple(found)


def _untold(targets: tuple[CompileTarget, ...]) -> Iterable[NotCompiled]:
    """Of generators, and functions that the compiler is kept from, torch says nothing."""
    for target in targets:
        function = getattr(target.module, target.method)
        code: NotCompiledCode | None = None
        if getattr(function, "_torchdynamo_disable", False):
            code, reason = "compiler_disabled", "torch.compiler.disable is on the function"
        elif inspect.isgeneratorfunction(inspect.unwrap(function)):
            code, reason = "generator", "torch.compile compiles no generator"
        if code:
            for file, line, name in _functions((target,)):
                yield NotCompiled(code, reason, place(file, line), name, _code(file, line))
