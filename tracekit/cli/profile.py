"""`tracekit profile`: run a workload, time it, record it, compare it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from tracekit.cli.completion import complete_workload
from tracekit.cli.place import Place
from tracekit.model.option import MODES, MOST_CALLS, OWN_WEIGHTS


class Finite(click.FloatRange):
    """A number in a range; `nan` is in none, though no comparison says so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number to measure by.", param, ctx)
        return number


#: Options that say nothing without --compiled.
COMPILE_OPTIONS = ("no_baseline", "mode", "fullgraph", "dynamic", "scope", "warmup")
CACHES = ("dynamic", "static")
PHASES = ("generate", "prefill", "decode")
PERCENT = Finite(min=0, min_open=True, max=100)
SECONDS = Finite(min=0, min_open=True)
DTYPES = ("bfloat16", "float16", "float32")
with_pretrained = click.option(
    "--pretrained",
    is_flag=False,
    flag_value=OWN_WEIGHTS,
    metavar="[ID|PATH]",
    help="Real weights instead of random ones; hf: and diffusers: know whose.",
)
with_download = click.option(
    "--download", is_flag=True, default=None, help="A configuration may be fetched (a few kB)."
)


@click.command(
    epilog="Example: tracekit profile flux --compiled --mode reduce-overhead",
    context_settings={"max_content_width": 110},
)
@click.argument("workload", shell_complete=complete_workload)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- NAME=VALUE...]")
@click.option("--compiled", is_flag=True, help="Compile it too, and compare with eager.")
@click.option("--no-baseline", is_flag=True, help="With --compiled: leave the eager form out.")
@click.option("--mode", type=click.Choice(MODES), default="default", metavar="MODE", help=", ".join(MODES) + ".")
@click.option("--fullgraph/--no-fullgraph", default=None, help="One graph or an error; or allow breaks.")
@click.option("--dynamic/--no-dynamic", default=None, help="Dynamic shapes; left to torch if not given.")
@click.option("--scope", metavar="PART", help="What is compiled: all, regional, or modules: vit.layers.*,classifier.")
@click.option("--batch-size", type=click.IntRange(min=1), metavar="N", default=1, help="Inputs in one call.")
@click.option("--height", type=click.IntRange(min=1), metavar="N", help="Of the image, pixels.")
@click.option("--width", type=click.IntRange(min=1), metavar="N", help="Of the image, pixels.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Denoising steps in one call.")
@click.option("--prompt", metavar="TEXT", help="What to draw, or to answer.")
@click.option("--max-new-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens that one call writes.")
@click.option("--cache", type=click.Choice(CACHES), metavar="KIND", help="Of keys and values: dynamic or static.")
@click.option("--phase", type=click.Choice(PHASES), metavar="PHASE", help="One call: generate, prefill or decode.")
@click.option("--use-fast/--no-use-fast", default=None, help="The image processor: torchvision's or PIL's.")
@click.option(
    "--dtype", type=click.Choice(DTYPES), metavar="DTYPE", help="bfloat16 (default on a GPU), float16, float32."
)
@click.option("--size", default="auto", metavar="SIZE", help="full, small, tiny or auto: what fits.")
@click.option("--seq-length", type=click.IntRange(min=1), metavar="N", help="Tokens of a text that is read.")
@with_pretrained
@with_download
@click.option("--seed", type=int, default=0, metavar="N", help="Of weights, noise and the order of timing.")
@click.option(
    "--iterations", type=click.IntRange(1, MOST_CALLS), metavar="N", help="Timed calls of each form, a fixed number."
)
@click.option("--target", type=PERCENT, metavar="PERCENT", help="Time until the 95 % interval is ± this (default 1).")
@click.option("--time-budget", type=SECONDS, metavar="SECONDS", help="But no longer (default 30, on a CPU 3).")
@click.option(
    "--repeat-process", "repeats", type=click.IntRange(1, 50), metavar="K", help="Time it in K more processes."
)
@click.option("--startup", is_flag=True, help="Start it up in fresh processes: no cache, warm cache.")
@click.option("--verify-advice", is_flag=True, help="Try the most promising advice, and say what it brought.")
@click.option(
    "--warmup", metavar="SIZE=N,...", help="Warm up at other sizes: batch=4,height=256. A mistake, explained."
)
@click.option("--no-provenance", is_flag=True, help="Do not ask torch which operators each kernel stands for.")
@click.option("--no-numerics", is_flag=True, help="Do not compare what the forms return.")
@click.option("--out", type=Place(), help="Run folder (default traces/WORKLOAD-FORM).")
@click.option("--force", is_flag=True, help="Replace the run that is there.")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the result as JSON.")
@click.pass_context
def profile(
    context: click.Context,
    /,
    workload: str,
    options: tuple[str, ...],
    compiled: bool,
    no_baseline: bool,
    no_provenance: bool,
    warmup: str | None,
    target: float | None,
    time_budget: float | None,
    repeats: int | None,
    startup: bool,
    verify_advice: bool,
    no_numerics: bool,
    out: Path | None,
    force: bool,
    json_path: str | None,
    **asked: object,
) -> None:
    """Run WORKLOAD, time it without the profiler, then record it.

    WORKLOAD is one that `tracekit workloads` lists, or a model of your own: my_model.py:build, package.module:build.
    What stands after -- goes to build().

    With --compiled both forms are run in alternation and compared: reports/RUN.html.
    """
    from tracekit.cli.output import check_output_path, measuring_command_line
    from tracekit.cli.profiling import profile_workload
    from tracekit.errors import TracekitError
    from tracekit.model.workload import Request
    from tracekit.walks.profiling import Plan
    from tracekit.walks.timing_plan import plan_timing
    from tracekit.walks.warming import parse_warmup
    from tracekit.workloads.own_function import parse_options

    idle_options = _options_given(context, COMPILE_OPTIONS) if not compiled else []
    if idle_options:
        raise TracekitError(f"{', '.join(idle_options)} says how to compile: pass --compiled too, or leave it out")
    check_output_path("--json", json_path)
    if verify_advice and (no_baseline or not compiled):
        raise TracekitError("--verify-advice needs both forms: pass --compiled, and leave --no-baseline out")
    plan = Plan(
        request=Request(workload=workload, options=parse_options(options), **asked),  # type: ignore[arg-type]
        forms=("compiled",) if no_baseline else ("eager", "compiled") if compiled else ("eager",),
        out=out,
        force=force,
        command=measuring_command_line(),
        provenance=not no_provenance,
        warmup=parse_warmup(warmup) if warmup is not None else None,
        timing=plan_timing(asked["iterations"] is not None, target, time_budget, repeats or 0, startup),
        numerics=not no_numerics,
        verify=verify_advice,
    )
    profile_workload(plan, json_path)


def _options_given(context: click.Context, names: tuple[str, ...]) -> list[str]:
    """Which of these options the user has typed."""
    given = [name for name in names if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    return [f"--{name.replace('_', '-')}" for name in given]
