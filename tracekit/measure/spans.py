"""Named parts of somebody's own code: spans in a recording while there is one, else nothing. Imports no torch."""

import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Span = Callable[[str], AbstractContextManager[Any]]

#: What opens a span, while something is recorded.
_span: Span | None = None
_NOTHING = nullcontext()
#: What torch's profiler refuses, or writes as "unknown" or as broken JSON, in a name; and how long one may be.
_UNWRITABLE = re.compile(r'[^ -~]|["&\\]')
_LONGEST_NAME = 200


def region(name: str) -> AbstractContextManager[Any]:
    """`with tracekit.region("forward"):` names what happens inside, in a recording by `tracekit.record`, or of what
    `tracekit profile` calls. It goes around calls of compiled code: inside, it is nothing. Any name will do, of which
    200 characters are kept."""
    # Before whether something is recorded is asked: compiled code would guard that, and be compiled again.
    if "torch" in sys.modules and sys.modules["torch"].compiler.is_compiling():
        return _NOTHING
    if _span is None:
        return _NOTHING
    # As torch's profiler can write it; `tracefile.publish` turns references into characters again.
    text = str(name) if isinstance(name, str | int) else type(name).__name__
    return _span(_UNWRITABLE.sub(lambda found: f"&#{ord(found[0])};", text[:_LONGEST_NAME]))


def open_spans(span: Span | None) -> None:
    """From now on regions are opened with `span`; with None they are nothing again."""
    global _span
    _span = span
