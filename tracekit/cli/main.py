"""`tracekit`: finds the command that was asked for, and says what went wrong in one line."""

import contextlib
import gc
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from tracekit import __version__
from tracekit.errors import StrictError, TheirCodeError, TracekitError
from tracekit.interpreter import end_at_once, fill_closed_streams
from tracekit.printing import echo, echo_lines, print_traceback, printable_lines
from tracekit.wings import load, wings

#: What Ctrl-C ends with, as a shell has it.
INTERRUPTED = 130
STDOUT, STDERR = 1, 2
#: What a damaged recording ends with under --strict.
STRICT_EXIT = 2

#: Each command of the core and its line of help. Its file `tracekit/cli/NAME.py` is imported only when it is used.
OF_THE_CORE = {
    "profile": "Run a model: time it, record it, compare eager with compiled.",
    "analyze": "Analyze one trace.",
    "compare": "Compare two runs or traces: what changed and why.",
    "open": "Open a trace in Perfetto.",
    "export": "Export a trace for other tools.",
    "schema": "Print the JSON Schemas of tracekit's JSON output.",
    "workloads": "List the models that can be profiled.",
    "doctor": "Check that this machine can profile, and how to fix it.",
    "completion": "Print a shell completion script.",
}

#: Those of wings, by name.
OF_WINGS = {name: command for wing in wings() for name, command in wing.commands.items()}


def _in_their_order() -> dict[str, str]:
    listed = list(OF_THE_CORE.items())
    for name, command in OF_WINGS.items():
        at = [other for other, _ in listed].index(command.after)
        listed.insert(at + 1, (name, command.help))
    return dict(listed)


#: All commands, as they are listed.
COMMANDS = _in_their_order()

#: The commands that read traces and run no model, as they stand in sys.argv.
READERS = (["analyze"], ["compare"], ["export"], *([name] for name, command in OF_WINGS.items() if command.reads))


class MendableError(click.ClickException):
    """A TracekitError on its way to the terminal: one line, and what goes below it."""

    def __init__(self, message: str, below: tuple[str, ...] = (), exit_code: int = 1) -> None:
        super().__init__(message)
        self.below = below
        # click has it as the class's.
        self.exit_code = exit_code  # type: ignore[misc]

    def format_message(self) -> str:
        return " ".join(self.message.split())

    def show(self, file: Any = None) -> None:
        for line in (f"error: {self.format_message()}", *self.below):
            echo(line, err=True)


@contextmanager
def _usage_in_a_line() -> Iterator[None]:
    """What click says of a wrong command in a line as well, which quotes what was typed, and where its help is."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        told, hints = error.format_message().removesuffix("."), ("id you mean", "--help")
        where = f" ({error.ctx.command_path} --help)" if error.ctx and not any(each in told for each in hints) else ""
        raise MendableError(f"{told}{where}", exit_code=error.exit_code) from error
    except click.ClickException as error:
        # click declares it final, for those who subclass.
        error.message = printable_lines(error.message)  # type: ignore[misc]
        raise


class LazyGroup(click.Group):
    """A group that imports a command's file only when the command is used, so that help comes at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # `open` would hide the builtin in its own file.
        name = "open_" if cmd_name == "open" else cmd_name
        place = OF_WINGS[cmd_name].place if cmd_name in OF_WINGS else f"tracekit.cli.{cmd_name}:{name}"
        command: click.Command = load(place)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            # Only for what was mistyped.
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else "`tracekit --help` lists the commands"
            raise click.UsageError(f"no command named {args[0]}; {hint}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _usage_in_a_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _usage_in_a_line():
                return super().invoke(ctx)
        except TracekitError as error:
            if isinstance(error, TheirCodeError) and error.traceback:
                echo_lines(error.traceback, err=True)
            code = STRICT_EXIT if isinstance(error, StrictError) else 1
            raise MendableError(str(error), error.below, code) from error
        except OSError as error:
            # A folder that may not be entered, a name that is too long, a full disk. click sees to broken pipes.
            if error.errno is None or isinstance(error, BrokenPipeError):
                raise
            place = f"{str(error.filename)[:200]}: " if error.filename else ""
            raise MendableError(f"{place}{error.strerror}") from error
        except KeyboardInterrupt:
            echo("stopped", err=True)
            ctx.exit(INTERRUPTED)


@click.group(
    cls=LazyGroup,
    epilog="Start with: tracekit profile flux --compiled",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="tracekit")
def main() -> None:
    """Measure what torch.compile changes for a PyTorch model on this GPU, and explain why."""


def run() -> None:
    """The program."""
    fill_closed_streams()
    sys.excepthook = print_traceback
    if sys.argv[1:2] in READERS:
        # Reading a trace makes no garbage worth collecting, and looking for it took 70 ms of every start; numpy's
        # threads for matrix products took 100 ms of processor to start.
        gc.disable()
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A name of a file that is no text, or a sign that the terminal's encoding lacks, is replaced and ends nothing.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="tracekit-alike")
    code: str | int | None = None
    try:
        try:
            main(prog_name="tracekit")
        except SystemExit as end:
            code = end.code
            if code is None or isinstance(code, int):
                end_at_once(code or 0)
            raise
    except OSError as error:
        # A standard stream takes nothing more: a full disk, a device. Help and version are written before any command.
        # A reader that left wants to hear nothing, and code 1 has had its line.
        if not isinstance(error, BrokenPipeError) and code != 1:
            with contextlib.suppress(OSError):
                echo(f"error: cannot write to standard output: {error.strerror}", err=True)
        # What is left to be written would be tried again at the very end, and fail again.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (STDOUT, STDERR):
            os.dup2(nowhere, stream)
        end_at_once(1)
