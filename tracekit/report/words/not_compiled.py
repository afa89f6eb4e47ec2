"""Why torch.compile compiled nothing, and what to change, in English."""

from collections.abc import Iterator, Sequence

from tracekit.model.compilation import NotCompiled, NotCompiledCode
from tracekit.model.provenance import SourceLines
from tracekit.model.single_run import Remedy, RemedyCode
from tracekit.names import clipped, clipped_within

HEADLINE = "torch.compile compiled nothing: no verdict"
UNTOLD = "Torch did not say why"
#: Characters of torch's words.
MOST = 240

WHAT: dict[NotCompiledCode, str] = {
    "scalar_read": "a tensor's value is read on the host",
    "data_dependent_branch": "a branch depends on a tensor's value",
    "data_dependent_shape": "a tensor's size depends on values",
    "untraceable_call": "Dynamo cannot trace a call",
    "compiler_disabled": "torch.compile is disabled for it",
    "graph_break_call": "the code asks for a graph break",
    "generator": "the function is a generator",
    "context_manager": "Dynamo cannot trace a context manager",
    "failed": "compilation failed",
    "other": "Dynamo cannot trace it",
}
INSIDE = {"loop": "graph break in a loop", "context_manager": "graph break in a context manager"}

REMEDIES: dict[RemedyCode, str] = {
    "compute_on_gpu": "keep the value in its tensor: no .item(), .tolist(), int() or float() of it",
    "capture_in_graph": "may let the graph hold the value",
    "select_on_gpu": "torch.where for both branches, or torch.cond for one of them",
    "fix_sizes": "keep sizes independent of values: torch.where in place of nonzero(), unique(), x[mask]",
    "move_call": "remove the call (print, logging, files, NumPy), or move it out of the model",
    "allow_compiler": "remove torch.compiler.disable, or move it to the part that needs it",
    "remove_break": "remove the call that breaks the graph",
    "return_values": "return a tensor or a list: torch.compile does not compile generators",
    "move_context": "enter the context manager outside of the model",
    "compile_body": "compile the loop's body: a module of its own, named by --scope",
    "name_line": "raises torch's error, which names the line",
}
#: The same where an option does it.
WITH_OPTION: dict[RemedyCode, str] = {"compile_body": "compiles the blocks that the loop calls, one by one"}


def title(reason: NotCompiled) -> str:
    """`Dynamo skipped forward: graph break in a loop, a tensor's value is read on the host`."""
    return f"Dynamo skipped {clipped_within(reason.function or 'a function', 40)}: {what(reason)}"


def what(reason: NotCompiled) -> str:
    return f"{INSIDE[reason.inside]}, {WHAT[reason.code]}" if reason.inside else WHAT[reason.code]


def place(reason: NotCompiled) -> str:
    """`helper.py:12, called from model.py:40`."""
    called = f", called from {reason.called_from}" if reason.called_from else ""
    return clipped_within(f"{reason.where or 'unknown line'}{called}", MOST)


def because(reasons: Sequence[NotCompiled]) -> str:
    """Why, in one line: `model.py:12: graph break in a loop, a tensor's value is read on the host`."""
    if not reasons:
        return UNTOLD
    first, more = reasons[0], len(reasons) - 1
    return f"{place(first)}: {what(first)}{f' (+{more})' if more else ''}"


def remedy_words(remedy: Remedy) -> str:
    """`--scope regional: compiles the blocks that the loop calls, one by one`."""
    return f"{remedy.option}: {advice_words(remedy)}" if remedy.option else advice_words(remedy)


def advice_words(remedy: Remedy) -> str:
    """The same without the option."""
    return (WITH_OPTION if remedy.option else REMEDIES).get(remedy.code, REMEDIES[remedy.code])


def code_lines(source: SourceLines) -> Iterator[str]:
    """`> 12      x = x.item()`, the one that matters marked."""
    digits = len(str(source.first + len(source.lines)))
    for number, line in enumerate(source.lines, source.first):
        mark = ">" if number == source.line else " "
        yield clipped(f"{mark} {number:>{digits}}  {line.expandtabs(4)}", MOST)
