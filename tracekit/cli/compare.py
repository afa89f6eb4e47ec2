"""`tracekit compare`: what changed from one side to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tracekit.cli import options
from tracekit.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.model.gate import Condition


def read_conditions(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Condition, ...]:
    """Those of all `--gate` together. What is no condition is a wrong value of the option: exit code 2."""
    if not values:
        return ()
    # Only for who asks for a gate.
    from tracekit.comparison.judging.gate import parse_conditions

    try:
        return tuple(condition for value in values for condition in parse_conditions(value))
    except TracekitError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from error


@click.command(epilog="Example: tracekit compare eager.json.gz compiled.json.gz", context_settings=options.WIDE_HELP)
@click.argument("a", metavar="A")
@click.argument("b", metavar="[B]", required=False)
@click.argument("more", metavar="[C]...", nargs=-1)
@click.option("--form-a", type=options.FORMS, help="Variant of run folder A (default: compiled, if recorded).")
@click.option("--form-b", type=options.FORMS, help="Variant of run folder B (default: compiled, if recorded).")
@options.with_window
@options.with_steps
@options.with_rank
@click.option(
    "--ops",
    metavar="TRACE",
    help="Trace or run folder of the same model compiled without CUDA graphs, to take operators from.",
)
@options.with_cpu
@click.option("--out", type=options.OutputPath(), help="Report to write: PATH.html, or a folder (default reports).")
@click.option("--force", is_flag=True, help="Replace an existing file that has the report's name.")
@click.option(
    "--gate",
    multiple=True,
    callback=read_conditions,
    metavar="CONDITION",
    help='Limit for B relative to A, like "wall<=+3%". Exit code 3: exceeded; 4: inconclusive (docs/gate.md).',
)
@click.option(
    "--inconclusive", type=click.Choice(("pass", "fail")), help="Treat an inconclusive gate as passed or failed."
)
@click.option("--json", "json_path", metavar="PATH|-", help="Write the comparison as JSON; - is standard output.")
@click.option("--strict", is_flag=True, help="Exit with code 2, not 1, if a recording is damaged.")
@options.with_no_cache
@options.with_detail
@click.pass_context
def compare(context: click.Context, /, **asked: Any) -> None:
    """Compare A (before) with B (after), and write a report of what changed and why.

    Each is a trace file, its URL, - for standard input, or a run folder. Of a single run folder, eager and compiled are
    compared. Of three or more run folders, each compiled variant is compared with eager of the same run: tracekit
    compare traces/vit traces/vit-reduce-overhead traces/vit-max-autotune
    """
    from tracekit.cli.showing_comparison import show_comparison

    show_comparison(context, **asked)
