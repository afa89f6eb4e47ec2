"""What torch writes of a graph break: where, why, and what helps. It is prose for people: what is not found is None."""

from __future__ import annotations

import re
from typing import Any

from tracekit.capture.source_location import is_torch, portable
from tracekit.model.compilation import GraphBreak

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


def read_break(text: str, id_: str | None) -> GraphBreak:
    told = text.partition("Traceback (most recent call last)")[0]
    stack = STACK_FRAME.findall(told.partition("User code traceback:")[2])
    own = [frame for frame in stack if not is_torch(frame[0])]
    header = HEADER.search(told)
    where = place(*own[-1][:2]) if own else place(*header.groups()) if header else None
    reason = REASON.search(told)
    lines = [line.strip() for line in (reason[1] if reason else told).splitlines() if line.strip()]
    hints = [hint for hint in HINT.findall(told) if not NO_HELP.search(hint)]
    explanation, code = EXPLANATION.search(told), CODE.search(told)
    return GraphBreak(
        where=where,
        function=function_name(own[-1][2]) if own else None,
        reason=(lines or ["no reason was told"])[-1].rstrip("."),
        explanation=explanation[1].strip() if explanation else None,
        hint=hints[0].strip() if hints else None,
        code=code[1] if code else None,
        frames=(id_,) if id_ else (),
        called_from=_caller(own),
    )


def _caller(own: list[tuple[str, str, str]]) -> str | None:
    """The line of the innermost forward around what broke, or else the outermost line; None where that is the place of
    the break."""
    if len(own) < 2 or function_name(own[-1][2]) == "forward":
        return None
    around = next((frame for frame in reversed(own[:-1]) if function_name(frame[2]) == "forward"), own[0])
    return place(*around[:2])


def function_name(name: str | None) -> str | None:
    """The user's own function, also of what Dynamo made to go on after a break."""
    resumed = RESUMED.match(name or "")
    return resumed[1] if resumed else name


def place(file: str | None, line: Any) -> str | None:
    return f"{portable(file)}:{line}" if file and line is not None else None
