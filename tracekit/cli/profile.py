"""`tracekit profile`: run a workload, time it, record it, compare it."""

from __future__ import annotations

from typing import Any

import click

from tracekit.cli import options
from tracekit.cli.options import grouped
from tracekit.model.option import MOST_PROCESSES


@click.command(
    cls=options.InGroups,
    epilog="Example: tracekit profile flux --compiled --mode reduce-overhead",
    context_settings=options.WIDE_HELP,
)
@click.argument("workload", shell_complete=options.complete_workload)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- NAME=VALUE...]")
@grouped("--compiled", is_flag=True, group="Compile", help="Also run under torch.compile, and compare with eager.")
@grouped("--no-baseline", is_flag=True, group="Compile", help="With --compiled: skip eager, compare nothing.")
@options.with_settings
@grouped("--warmup", metavar="SIZE=N,...", group="Compile", help="Warm up at other sizes (batch=4), to see recompiles.")
@options.with_target
@options.with_time_budget
@grouped(
    "--repeat-process",
    "repeats",
    type=click.IntRange(1, MOST_PROCESSES),
    metavar="K",
    group="Timing",
    help="Repeat timing in K more processes.",
)
@grouped("--startup", is_flag=True, group="Timing", help="Measure cold start in new processes, without and with cache.")
@grouped("--verify-advice", is_flag=True, group="Timing", help="Measure the speed-up of the most promising advice.")
@options.with_rank_timeout
@grouped("--no-provenance", is_flag=True, group="Compile", help="Skip Inductor provenance (the operators of a kernel).")
@grouped("--no-numerics", is_flag=True, group="Compile", help="Do not compare the outputs of eager and compiled.")
@grouped("--out", type=options.OutputPath(), help="Run folder to write (default traces/WORKLOAD-VARIANT).")
@options.with_html
@grouped("--force", is_flag=True, help="Replace an existing run.")
@options.with_json
@grouped("--strict", is_flag=True, help="Exit with code 1 if torch.compile compiled nothing.")
@options.with_detail
@click.pass_context
def profile(context: click.Context, /, **asked: Any) -> None:
    """Run WORKLOAD, time it without the profiler, then record it with the profiler.

    WORKLOAD is a name that `tracekit workloads` lists, or a function that builds your own model: my_model.py:build or
    package.module:build. It gets what stands after --, and sizes that it takes.

    With --compiled, eager and compiled are interleaved and compared in reports/RUN.html.
    """
    from tracekit.cli.running_workload import plan_and_run

    plan_and_run(context, **asked)
