"""`tracekit sweep`: measure a matrix of settings, each in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracekit.cli.lists import several
from tracekit.cli.profile import CACHES, DTYPES, PERCENT, PHASES, SECONDS
from tracekit.model.workload import MODES

WHOLE = click.IntRange(min=1)
#: Every option that spans the matrix, by the field of a Request that it is.
AXES = ("mode", "scope", "batch_size", "height", "width", "steps", "dtype", "size", "cache", "phase", "max_new_tokens")
#: Settings that all cells share.
FIXED = ("fullgraph", "dynamic", "prompt", "pretrained", "use_fast")


@click.command(
    epilog="Example: tracekit sweep flux --mode eager,default,reduce-overhead --batch-size 1,5",
    context_settings={"max_content_width": 110},
)
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option("--suite", metavar="NAME", help="A sweep with a name: vision, quick.")
@several("--only", click.STRING, "NAME,...", "Run these workloads' cells alone.")
@click.option("--resume", type=click.Path(path_type=Path), metavar="FOLDER", help="Go on with what was asked there.")
@click.option("--show", type=click.Path(path_type=Path), metavar="FOLDER", help="Run nothing: show what is there.")
@several("--mode", click.Choice(("eager", *MODES)), "MODE,...", "eager and torch.compile's (default eager,default).")
@several("--scope", click.STRING, "PART,...", "What is compiled; `tracekit workloads` lists it.")
@several("--batch-size", WHOLE, "N,...", "Inputs in one call (default 1).")
@several("--height", WHOLE, "N,...", "Of the image, pixels.")
@several("--width", WHOLE, "N,...", "Of the image, pixels (default: as the height).")
@several("--steps", WHOLE, "N,...", "Denoising steps in one call.")
@several("--dtype", click.Choice(DTYPES), "DTYPE,...", ", ".join(DTYPES) + ".")
@several("--size", click.STRING, "SIZE,...", "full, small, tiny or auto: what fits (default auto).")
@several("--cache", click.Choice(CACHES), "KIND,...", "Of keys and values: dynamic, static.")
@several("--phase", click.Choice(PHASES), "PHASE,...", "generate, prefill, decode.")
@several("--max-new-tokens", WHOLE, "N,...", "Tokens that one call writes.")
@click.option("--fullgraph/--no-fullgraph", default=None, help="One graph or an error; or allow breaks.")
@click.option("--dynamic/--no-dynamic", default=None, help="Dynamic shapes; left to torch if not given.")
@click.option("--prompt", metavar="TEXT", help="What to draw, or to answer.")
@click.option("--pretrained", metavar="ID|PATH", help="Real weights instead of random ones.")
@click.option("--use-fast/--no-use-fast", default=None, help="The image processor: torchvision's or PIL's.")
@click.option("--seed", type=int, metavar="N", help="Of weights and of the order of cells and calls (default 0).")
@click.option("--iterations", type=WHOLE, metavar="N", help="Timed calls of each form, a fixed number.")
@click.option("--target", type=PERCENT, metavar="PERCENT", help="Time until the 95 % interval is ± this (default 1).")
@click.option("--time-budget", type=SECONDS, metavar="SECONDS", help="But no longer in a cell (default 30, CPU 3).")
@click.option("--cell-timeout", type=SECONDS, metavar="SECONDS", help="End a cell that takes longer, and go on.")
@click.option("--again", is_flag=True, help="Run cells that are there already anew.")
@click.option("--retry-failed", is_flag=True, help="Run cells anew that failed.")
@click.option("--calls", type=WHOLE, default=1000, metavar="N", help="Cold start: soonest done with N calls (1000).")
@click.option("--out", type=click.Path(path_type=Path), help="Folder (default sweeps/WORKLOAD or SUITE).")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the result as JSON.")
def sweep(
    workloads: tuple[str, ...],
    suite: str | None,
    only: tuple[str, ...] | None,
    resume: Path | None,
    show: Path | None,
    calls: int,
    out: Path | None,
    json_path: str | None,
    **asked: Any,
) -> None:
    """Measure every combination of settings, each in a fresh process, and say which is best for what.

    Options that take lists span the matrix. Cells are kept as they end: the same command goes on after an interrupt,
    and several processes may fill one folder at once.
    """
    from tracekit.cli.output import check_output_path
    from tracekit.cli.sweeping import Ask, plan_sweep, show_sweep, sweep_and_show

    check_output_path("--json", json_path)
    if show is not None:
        show_sweep(show, calls, json_path)
        return
    axes = {name: value for name in AXES if (value := asked.pop(name)) is not None}
    fixed = {name: value for name in FIXED if (value := asked.pop(name)) is not None}
    ask = Ask(workloads, suite, only or (), resume, out, axes, fixed, **asked)
    sweep_and_show(plan_sweep(ask), calls, json_path)
