"""The way to the terminal: whatever tracekit prints goes through here, or through `tracekit/console.py`.

Names of spans, kernels, files and folders, and all of a stranger's run.json, may hold characters that steer a terminal.
None of them reaches it.
"""

import codecs
import sys
import traceback
from types import TracebackType

import click

from tracekit.errors import TracekitError
from tracekit.names import printable

#: What stands in for signs that a terminal's encoding lacks, one character for each: a minus sign still is one.
ALIKE = dict(zip("−×→…·µ≈█░─│▏“”–—", '-x>.-u~#:-||""--', strict=True))


def _alike(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(ALIKE.get(each, "?") for each in error.object[error.start : error.end]), error.end


codecs.register_error("tracekit-alike", _alike)


def echo(line: str, *, err: bool = False) -> None:
    """One line on standard output, or on standard error."""
    click.echo(printable(line.expandtabs()), err=err)


def echo_lines(text: str, *, err: bool = False) -> None:
    """A text of several lines, such as a traceback."""
    click.echo(printable_lines(text), err=err)


def printable_lines(text: str) -> str:
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))


def check_standard_output() -> None:
    """Raises TracekitError where the program was started without a standard output: a document would be lost."""
    if sys.__stdout__ is None:
        raise TracekitError("standard output is closed: name a file instead of -, or redirect with > FILE")


def hand_over(text: str) -> None:
    """A document on standard output: a program gets it as it is, a terminal without what would steer it."""
    check_standard_output()
    # As bytes, for programs: JSON and tables are UTF-8 whatever the locale, and click takes nothing out of bytes.
    click.echo(printable_lines(text) if sys.stdout.isatty() else text.encode(), nl=False)


def print_traceback(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
    """What the interpreter prints of an error that nobody caught, for `sys.excepthook`: its message may quote a
    trace."""
    echo_lines("".join(traceback.format_exception(kind, error, frames)).rstrip("\n"), err=True)
