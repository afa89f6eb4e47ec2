"""`tracekit sweep`: measure a matrix of settings, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracekit.cli import options
from tracekit.cli.output import check_output_path
from tracekit.errors import TracekitError
from tracekit.model.option import MODES, MOST_PROCESSES

if TYPE_CHECKING:
    from tracekit.report.thirty_lines import Detail

    Kind = click.ParamType[Any]

WHOLE = click.IntRange(min=1)
#: Every option that spans the matrix, by the field of a Request that it is.
AXES = (
    *("mode", "scope", "batch_size", "height", "width", "seq_length", "steps", "dtype", "size", "cache", "phase"),
    *("max_new_tokens", "nproc", "parallel"),
)
#: Settings that all cells share.
FIXED = (
    *("fullgraph", "dynamic", "prompt", "pretrained", "use_fast", "download"),
    *("checkpoint", "compile_order", "compiled_autograd"),
)
#: What `--show` hears of.
SHOWING = ("verbose", "quiet", "show", "suite", "calls", "out", "force", "json_path")
#: Where the words after -- are, beside the parameters.
OWN_OPTIONS = "tracekit.own_options"


def several(option: str, one: Kind, metavar: str, text: str) -> Callable[[options.Function], options.Function]:
    """An option of values between commas, each as `one` reads it; one that is named twice counts once. None where the
    option is not given."""

    def split(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        if value is None:
            return None
        parts = (part.strip() for part in value.split(","))
        return tuple(dict.fromkeys(one.convert(part, parameter, context) for part in parts))

    return click.option(option, callback=split, metavar=metavar, help=text)


class WithOwnOptions(click.Command):
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
@click.option("--suite", metavar="NAME", help="Run a predefined sweep: vision or quick.")
@several("--only", click.STRING, "NAME,...", "Run only the cells of these workloads.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Continue the sweep in FOLDER with its own settings.",
)
@click.option(
    "--show", type=click.Path(path_type=Path), metavar="FOLDER", help="Run nothing. Report the cells in FOLDER."
)
@several(
    "--mode", click.Choice(("eager", *MODES)), "MODE,...", "eager, or modes of torch.compile (default eager,default)."
)
@several("--scope", click.STRING, "PART,...", "What to compile: A,B measures each, A+B both together.")
@several("--batch-size", WHOLE, "N,...", "Inputs per call (default 1).")
@several("--height", WHOLE, "N,...", "Image height in pixels.")
@several("--width", WHOLE, "N,...", "Image width in pixels (default: the height).")
@several("--seq-length", WHOLE, "N,...", "Input sequence length in tokens.")
@several("--steps", WHOLE, "N,...", "Diffusion models: denoising steps per call.")
@several("--dtype", click.Choice(options.DTYPES), "DTYPE,...", f"Data types: {', '.join(options.DTYPES)}.")
@several("--size", click.STRING, "SIZE,...", "full, small, tiny, or auto (default): the largest that fits.")
@several("--cache", click.Choice(options.CACHES), "KIND,...", "Text generation: KV cache, dynamic or static.")
@several("--phase", click.Choice(options.PHASES), "PHASE,...", "Text generation: generate, prefill or decode.")
@several("--max-new-tokens", WHOLE, "N,...", "Text generation: new tokens per call.")
@several("--nproc", click.IntRange(1, options.MOST_RANKS), "N,...", "Ranks of a cell, a GPU each; gloo on a CPU.")
@several("--parallel", click.Choice(options.PARALLEL), "KIND,...", f"With --nproc: {', '.join(options.PARALLEL)}.")
@options.with_fullgraph
@options.with_dynamic
@options.with_checkpoint
@click.option(
    "--compile-order",
    type=click.Choice(options.ORDERS),
    metavar="ORDER",
    help="fsdp2 in regional scope: after-sharding or before-sharding.",
)
@options.with_compiled_autograd
@options.with_prompt
@options.with_pretrained
@options.with_download
@options.with_use_fast
@click.option("--seed", type=int, metavar="N", help="Random seed of weights and run order (default 0).")
@options.with_iterations
@options.with_target
@click.option(
    "--time-budget",
    type=options.SECONDS,
    metavar="SECONDS",
    help="Stop timing a cell after SECONDS (default 30; CPU 3).",
)
@click.option(
    "--repeat-process",
    "repeats",
    type=click.IntRange(1, MOST_PROCESSES),
    metavar="N",
    help="Measure each cell in N processes; ray: on N hosts.",
)
@click.option(
    "--cell-timeout", type=options.SECONDS, metavar="SECONDS", help="Stop a cell that takes longer, go to the next."
)
@options.with_rank_timeout
@click.option(
    "--engine",
    default="local",
    metavar="ENGINE",
    help="What runs cells: local, or ray, one cell a GPU of the cluster.",
)
@click.option("--again", is_flag=True, help="Measure existing cells again.")
@click.option("--retry-failed", is_flag=True, help="Run failed cells again.")
@click.option(
    "--calls",
    type=WHOLE,
    default=1000,
    metavar="N",
    help="Rank cold starts over N calls (default 1000).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder (default sweeps/NAME); with --show: of the report.",
)
@click.option("--force", is_flag=True, help="Replace an existing file that has the report's name.")
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
        show_sweep(show, calls, json_path, detail, out, suite, force=force)
        return
    if (rank := rank_here()) is not None:
        raise TracekitError(f"a launcher has started this process as rank {rank}: run sweep by itself, with --nproc N")
    if engine != LOCAL and not is_ray(engine):
        raise TracekitError(f"--engine {engine}: pass {LOCAL}, {RAY} or {RAY_CLIENT}HOST:PORT")
    axes = {name: value for name in AXES if (value := asked.pop(name)) is not None}
    fixed = {name: value for name in FIXED if (value := asked.pop(name)) is not None}
    ask = Ask(workloads, suite, only or (), resume, out, axes, fixed, own, **asked)
    sweep_and_show(plan_sweep(ask), calls, json_path, detail, engine, force=force)
