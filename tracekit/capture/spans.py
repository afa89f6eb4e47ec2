"""Named parts of somebody's own code: spans in a recording while there is one, else nothing. Imports no torch."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Span = Callable[[str], AbstractContextManager[Any]]

#: What opens a span, while something is recorded.
_span: Span | None = None
_NOTHING = nullcontext()


def region(name: str) -> AbstractContextManager[Any]:
    """`with tracekit.region("forward"):` names what happens inside, in a recording by `tracekit.record`. It goes around
    calls of compiled code: inside, torch.compile would compile again when recording begins."""
    return _NOTHING if _span is None else _span(name)


def is_recording() -> bool:
    """Whether regions are recorded now."""
    return _span is not None


def open_spans(span: Span | None) -> None:
    """From now on regions are opened with `span`; with None they are nothing again."""
    global _span
    _span = span
