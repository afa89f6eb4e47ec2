"""What a user's own code raised, told to them: their traceback, without tracekit's frames."""

from __future__ import annotations

import traceback
from pathlib import Path

import tracekit
from tracekit.errors import TheirCodeError

OURS = str(Path(tracekit.__file__).parent)


def their_error(doing: str, error: BaseException) -> TheirCodeError:
    """The error to raise in place of `error`, which came of `doing` something: `importing my_model.py`."""
    last = next(iter(str(error).strip().splitlines()), "")
    told = f"{type(error).__name__}: {last}" if last else type(error).__name__
    return TheirCodeError(f"{doing} raised {told}", their_traceback(error))


def their_traceback(error: BaseException) -> str:
    """As Python prints it, from the first frame of the user's on; where none is theirs, the last line alone."""
    told = traceback.TracebackException.from_exception(error)
    seen: list[traceback.TracebackException] = []
    _leave_ours_out(told, seen)
    return "".join(told.format()).rstrip("\n")


def _leave_ours_out(told: traceback.TracebackException, seen: list[traceback.TracebackException]) -> None:
    if told in seen:
        return
    seen.append(told)
    frames = [frame for frame in told.stack if not frame.filename.startswith((OURS, "<frozen importlib"))]
    first = next((number for number, frame in enumerate(frames) if not _is_torch(frame.filename)), len(frames))
    told.stack = traceback.StackSummary.from_list(frames[first:])
    for other in (told.__cause__, told.__context__):
        if other is not None:
            _leave_ours_out(other, seen)


def _is_torch(file: str) -> bool:
    """torch's own frames between tracekit's call of a module and the user's forward."""
    return "/site-packages/torch/" in file or "/dist-packages/torch/" in file


def line_in(file: str, error: BaseException) -> int | None:
    """The last line of this file that the error passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == file), None)
