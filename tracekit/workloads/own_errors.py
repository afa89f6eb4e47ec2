"""What a user's own code raised, with their traceback and without tracekit's frames."""

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
    """`an int`, `a Linear`, `None`, `the class Linear`."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def their_error(doing: str, error: BaseException, given: str = "") -> TheirCodeError:
    """The error to raise in place of `error`, which came of `doing` something: `importing my_model.py`. It says the
    last line of theirs that it passed through, and `given` where it passed through none."""
    first = next(iter(str(error).strip().splitlines()), "")
    raised = f"{type(error).__name__}: {first}" if first else type(error).__name__
    place = f"; {given}" if given else ""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not _is_library(each.filename)]
    if frames:
        file = Path(frames[-1].filename)
        shown_file = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
        place = f", at {shown_file}:{frames[-1].lineno} in {frames[-1].name}"
    shown = traceback.TracebackException.from_exception(error)
    _leave_ours_out(shown, [])
    text = "".join(shown.format()).rstrip("\n")
    # Without a frame it would say the same as the message.
    return TheirCodeError(f"{doing} raised {raised}{place}", text if FRAME in text else "")


@contextmanager
def their_calls(settings: Settings, is_known: Callable[[BaseException], bool]) -> Iterator[None]:
    """What a user's own code raises in a call of their model becomes a TheirCodeError, whichever call it is. Passed on
    is what `is_known`, what a library raised by itself, and everything in a program, where its own handlers are."""
    try:
        yield
    except TracekitError:
        raise
    except (Exception, SystemExit) as error:
        own = settings.own
        files = [each.filename for each in traceback.extract_tb(error.__traceback__)]
        ours = max((at for at, file in enumerate(files) if file.startswith(OURS)), default=-1)
        theirs = not all(map(_is_library, files[ours + 1 :]))
        if own is None or own.in_program or is_known(error) or not theirs:
            raise
        raise their_error(f"a call of what {settings.workload}() returned", error) from None


def _is_library(file: str) -> bool:
    python = sysconfig.get_path("stdlib")
    return file.startswith((OURS, "<", python)) or "/site-packages/" in file or "/dist-packages/" in file


def _leave_ours_out(shown: traceback.TracebackException, seen: list[traceback.TracebackException]) -> None:
    """Leaves the frames from the first of the user's on, here and in what the error was raised from."""
    if shown in seen:
        return
    seen.append(shown)
    frames = [frame for frame in shown.stack if not frame.filename.startswith((OURS, "<frozen importlib"))]
    # torch's own are between tracekit's call of a module and the user's forward.
    torchs = ("/site-packages/torch/", "/dist-packages/torch/")
    theirs = (at for at, frame in enumerate(frames) if not any(each in frame.filename for each in torchs))
    shown.stack = traceback.StackSummary.from_list(frames[next(theirs, len(frames)) :])
    for other in filter(None, (shown.__cause__, shown.__context__)):
        _leave_ours_out(other, seen)
