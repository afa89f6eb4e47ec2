"""`tracekit profile`: run a workload, time it, record it, compare it."""

from __future__ import annotations

from pathlib import Path

import click

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
#: Options that say nothing without --compiled.
COMPILE_OPTIONS = ("no_baseline", "mode", "fullgraph", "dynamic", "scope")
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
@click.option("--batch-size", type=click.IntRange(min=1), metavar="N", default=1, help="Inputs in one call.")
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
@click.option("--no-provenance", is_flag=True, help="Do not ask torch which operators each kernel stands for.")
@click.option("--no-numerics", is_flag=True, help="Do not compare what the forms return.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder (default traces/WORKLOAD-FORM).")
@click.option("--force", is_flag=True, help="Replace the run that is there.")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the result as JSON.")
@click.pass_context
def profile(
    context: click.Context,
    /,
    workload: str,
    compiled: bool,
    no_baseline: bool,
    no_provenance: bool,
    no_numerics: bool,
    out: Path | None,
    force: bool,
    json_path: str | None,
    **asked: object,
) -> None:
    """Run WORKLOAD, time it without the profiler, then record it.

    With --compiled both forms are run in alternation and compared: reports/RUN.html.
    """
    from tracekit.cli.output import check_output_path, command_line
    from tracekit.cli.profiling import Plan, profile_workload
    from tracekit.errors import TracekitError
    from tracekit.model.workload import Request

    idle_options = _options_given(context, COMPILE_OPTIONS) if not compiled else []
    if idle_options:
        raise TracekitError(f"{', '.join(idle_options)} says how to compile: pass --compiled too, or leave it out")
    check_output_path("--json", json_path)
    plan = Plan(
        request=Request(workload=workload, **asked),  # type: ignore[arg-type]
        forms=("compiled",) if no_baseline else ("eager", "compiled") if compiled else ("eager",),
        out=out,
        force=force,
        json_path=json_path,
        command=command_line(),
        provenance=not no_provenance,
        numerics=not no_numerics,
    )
    profile_workload(plan)


def _options_given(context: click.Context, names: tuple[str, ...]) -> list[str]:
    """Which of these options the user has typed."""
    given = [name for name in names if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    return [f"--{name.replace('_', '-')}" for name in given]
