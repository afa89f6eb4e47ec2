"""`tracekit sweep`: measure a matrix of settings, each in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracekit.cli import options
from tracekit.cli.options import grouped
from tracekit.cli.output import check_output_path, page_asked
from tracekit.errors import TracekitError
from tracekit.model.option import BY_NAME, MOST_PROCESSES, TYPED

if TYPE_CHECKING:
    from tracekit.report.thirty_lines import Detail

#: Settings of cells, by the field of a Request; the others say how a sweep is ordered and timed.
IN_CELLS = tuple(each.name for each in TYPED if each.name not in ("seed", "iterations"))
#: What `--show` hears of.
SHOWING = ("verbose", "quiet", "show", "suite", "calls", "html_path", "out", "force", "json_path")
#: Where the words after -- are, beside the parameters.
OWN_OPTIONS = "tracekit.own_options"


class WithOwnOptions(options.InGroups):
    """A command whose words after -- are options of the user's own model, and no more workloads."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[OWN_OPTIONS] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- NAME=VALUE...]"]


@click.command(
    cls=WithOwnOptions,
    epilog="Example: tracekit sweep flux --mode eager,default,reduce-overhead --batch-size 1,5",
    context_settings=options.WIDE_HELP,
)
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@grouped("--suite", group="Model", metavar="NAME", help="Run a predefined sweep: vision or quick.")
@options.several("--only", click.STRING, "NAME,...", "Run only the cells of these workloads.", "Model")
@grouped(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Continue the sweep in FOLDER with its own settings.",
)
@grouped("--show", type=click.Path(path_type=Path), metavar="FOLDER", help="Run nothing. Report the cells in FOLDER.")
@options.with_settings_of_cells
@options.with_target
@options.with_time_budget
@grouped(
    "--repeat-process",
    "repeats",
    group="Timing",
    type=click.IntRange(1, MOST_PROCESSES),
    metavar="N",
    help="Measure each cell in N processes; ray: on N hosts.",
)
@grouped(
    "--cell-timeout",
    group="Timing",
    type=options.SECONDS,
    metavar="SECONDS",
    help="Stop a cell that takes longer, go to the next.",
)
@options.with_rank_timeout
@grouped(
    "--engine",
    group="Ranks",
    default="local",
    metavar="ENGINE",
    help="What runs cells: local, or ray, one cell a GPU of the cluster.",
)
@grouped("--again", group="Timing", is_flag=True, help="Measure existing cells again.")
@grouped("--retry-failed", group="Timing", is_flag=True, help="Run failed cells again.")
@grouped(
    "--calls",
    type=click.IntRange(min=1),
    default=1000,
    metavar="N",
    help="Rank cold starts over N calls (default 1000).",
)
@grouped(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder of the sweep (default sweeps/NAME); with --show the same as --html PATH.",
)
@options.with_html
@grouped("--force", is_flag=True, help="Replace an existing file that has the report's name.")
@options.with_json
@options.with_detail
@click.pass_context
def sweep(
    context: click.Context,
    /,
    workloads: tuple[str, ...],
    suite: str | None,
    only: tuple[str, ...] | None,
    resume: Path | None,
    show: Path | None,
    calls: int,
    engine: str,
    html_path: str | None,
    out: Path | None,
    force: bool,
    json_path: str | None,
    detail: Detail,
    **asked: Any,
) -> None:
    """Measure every combination of settings, each in its own process, and report the best one.

    Each combination of the listed values is a cell. Finished cells are kept: the same command continues after an
    interrupt. Several processes may fill one folder at once. Arguments after -- are passed to the function that builds
    your own model.
    """
    from tracekit.measure.engines import LOCAL, RAY, RAY_CLIENT, is_ray
    from tracekit.measure.plan import rank_here
    from tracekit.sweep.commands.asking import Ask, plan_sweep
    from tracekit.sweep.commands.measuring import sweep_and_show
    from tracekit.sweep.commands.showing import show_sweep

    check_output_path("--json", json_path)
    own: tuple[str, ...] = context.meta[OWN_OPTIONS]
    if show is not None:
        typed = click.core.ParameterSource.COMMANDLINE
        given = [each for each in context.command.params if context.get_parameter_source(each.name or "") is typed]
        idle = [
            each.human_readable_name if isinstance(each, click.Argument) else each.opts[0]
            for each in given
            if each.name not in SHOWING
        ]
        if idle or own:
            words = ", ".join([*idle, *(["-- " + " ".join(own)] if own else [])])
            raise TracekitError(f"--show runs nothing: leave {words} out, or pass --resume FOLDER in its place")
        show_sweep(show, calls, json_path, detail, page_asked(html_path, out), suite, force=force)
        return
    if (rank := rank_here()) is not None:
        raise TracekitError(f"a launcher has started this process as rank {rank}: run sweep by itself, with --nproc N")
    if engine != LOCAL and not is_ray(engine):
        raise TracekitError(f"--engine {engine}: pass {LOCAL}, {RAY} or {RAY_CLIENT}HOST:PORT")
    settings = {name: value for name in IN_CELLS if (value := asked.pop(name)) is not None}
    axes = {name: value for name, value in settings.items() if BY_NAME[name].several}
    fixed = {name: value for name, value in settings.items() if name not in axes}
    ask = Ask(workloads, suite, only or (), resume, out, axes, fixed, own, **asked)
    page = page_asked(html_path, None)
    sweep_and_show(plan_sweep(ask), calls, json_path, detail, engine, page, force=force)
