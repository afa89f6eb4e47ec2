"""What a user's own code raised, told to them: their traceback, without tracekit's frames."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tracekit
from tracekit.errors import TheirCodeError, TracekitError
from tracekit.model.run import Settings

OURS = str(Path(tracekit.__file__).parent)
#: How Python begins the lines of a frame.
FRAME = '  File "'


def kind_of(value: object) -> str:
    """`an int`, `a Linear`, `None`."""
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def their_error(doing: str, error: BaseException, given: str = "") -> TheirCodeError:
    """The error to raise in place of `error`, which came of `doing` something: `importing my_model.py`. It says the
    last line of theirs that it passed through, and `given` where it passed through none."""
    last = next(iter(str(error).strip().splitlines()), "")
    told = f"{type(error).__name__}: {last}" if last else type(error).__name__
    line = _last_line(error)
    shown = their_traceback(error)
    place = f", at {line}" if line else f"; {given}" if given else ""
    # Without a frame it would say the same as the message.
    return TheirCodeError(f"{doing} raised {told}{place}", shown if FRAME in shown else "")


@contextmanager
def their_calls(settings: Settings, is_known: Callable[[BaseException], bool]) -> Iterator[None]:
    """What a user's own code raises in a call of their model becomes a TheirCodeError, whichever call it is. Passed on
    is what `is_known`, what a library raised by itself, and everything in a program, where its own handlers are."""
    try:
        yield
    except TracekitError:
        raise
    except Exception as error:
        own = settings.own
        if own is None or own.in_program or is_known(error) or not _passed_through_theirs(error):
            raise
        raise their_error(f"a call of what {settings.workload}() returned", error) from None


def _passed_through_theirs(error: BaseException) -> bool:
    """Whether tracekit called their code, not only a library, when it was raised."""
    files = [each.filename for each in traceback.extract_tb(error.__traceback__)]
    ours = max((at for at, file in enumerate(files) if file.startswith(OURS)), default=-1)
    return any(not _is_library(file) for file in files[ours + 1 :])


def _last_line(error: BaseException) -> str | None:
    """`my_model.py:9 in forward` for the last frame that is neither tracekit's nor a library's."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not _is_library(each.filename)]
    if not frames:
        return None
    file = Path(frames[-1].filename)
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return f"{shown}:{frames[-1].lineno} in {frames[-1].name}"


def _is_library(file: str) -> bool:
    python = sysconfig.get_path("stdlib")
    return file.startswith((OURS, "<", python)) or "/site-packages/" in file or "/dist-packages/" in file


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
    # torch's own are between tracekit's call of a module and the user's forward.
    torchs = ("/site-packages/torch/", "/dist-packages/torch/")
    theirs = (at for at, frame in enumerate(frames) if not any(each in frame.filename for each in torchs))
    first = next(theirs, len(frames))
    told.stack = traceback.StackSummary.from_list(frames[first:])
    for other in (told.__cause__, told.__context__):
        if other is not None:
            _leave_ours_out(other, seen)


def line_in(file: str, error: BaseException) -> int | None:
    """The last line of this file that the error passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == file), None)
