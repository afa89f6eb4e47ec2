"""`tracekit profile`: run a workload, time it, record it, compare it."""

from __future__ import annotations

from pathlib import Path

import click

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
DTYPES = ("bfloat16", "float16", "float32")


@click.command(
    epilog="Example: tracekit profile flux --compiled --mode reduce-overhead",
    context_settings={"max_content_width": 110},
)
@click.argument("workload")
@click.option("--compiled", is_flag=True, help="Compile it too, and compare with eager.")
@click.option("--no-baseline", is_flag=True, help="With --compiled: leave the eager form out.")
@click.option("--mode", type=click.Choice(MODES), default="default", metavar="MODE", help=", ".join(MODES) + ".")
@click.option("--fullgraph/--no-fullgraph", default=None, help="One graph or an error; or allow breaks.")
@click.option("--dynamic/--no-dynamic", default=None, help="Dynamic shapes; left to torch if not given.")
@click.option("--scope", metavar="PART", help="What is compiled; `tracekit workloads` lists it.")
@click.option("--batch-size", type=click.IntRange(min=1), metavar="N", default=1, help="Prompts in one call.")
@click.option("--height", type=click.IntRange(min=1), metavar="N", help="Of the image, pixels.")
@click.option("--width", type=click.IntRange(min=1), metavar="N", help="Of the image, pixels.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Denoising steps in one call.")
@click.option("--prompt", metavar="TEXT", help="What to draw.")
@click.option(
    "--dtype", type=click.Choice(DTYPES), metavar="DTYPE", help="bfloat16 (default on a GPU), float16, float32."
)
@click.option("--size", default="auto", metavar="SIZE", help="full, small, tiny or auto: what fits.")
@click.option("--pretrained", metavar="ID|PATH", help="Real weights instead of random ones.")
@click.option("--seed", type=int, default=0, metavar="N", help="Of weights, noise and the order of timing.")
@click.option("--iterations", type=click.IntRange(min=1), metavar="N", help="Timed calls of each form.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder (default traces/WORKLOAD-FORM).")
@click.option("--force", is_flag=True, help="Replace the run that is there.")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the result as JSON.")
def profile(
    workload: str,
    compiled: bool,
    no_baseline: bool,
    out: Path | None,
    force: bool,
    json_path: str | None,
    **asked: object,
) -> None:
    """Run WORKLOAD, time it without the profiler, then record it.

    With --compiled both forms are run in alternation and compared: reports/RUN.html.
    """
    from tracekit.cli.output import command_line
    from tracekit.cli.profiling import Plan, profile_workload
    from tracekit.errors import TracekitError
    from tracekit.model.workload import Request

    if no_baseline and not compiled:
        raise TracekitError("--no-baseline leaves nothing to run without --compiled")
    plan = Plan(
        request=Request(workload=workload, **asked),  # type: ignore[arg-type]
        forms=("compiled",) if no_baseline else ("eager", "compiled") if compiled else ("eager",),
        out=out,
        force=force,
        json_path=json_path,
        command=command_line(),
    )
    profile_workload(plan)
