"""`tracekit profile`: run a workload, time it, record it, compare it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.cli.options import (
    CACHES,
    DTYPES,
    PERCENT,
    PHASES,
    SECONDS,
    WIDE_HELP,
    OutputPath,
    complete_workload,
    with_detail,
    with_download,
    with_pretrained,
)
from tracekit.cli.output import (
    check_apart,
    check_output_path,
    console_beside,
    measuring_command_line,
    publish,
    report_nothing_compiled,
    say,
    write_json,
)
from tracekit.errors import TracekitError
from tracekit.model.option import MODES, MOST_CALLS

if TYPE_CHECKING:
    from rich.console import Console

    from tracekit.model.run import Run
    from tracekit.report.composition.detail import Detail
    from tracekit.walks.plan import Plan

#: Where runs lie that were given no other place.
TRACES = Path("traces")
COMMANDLINE = click.core.ParameterSource.COMMANDLINE
#: Options that say nothing without --compiled.
COMPILE_OPTIONS = ("no_baseline", "mode", "fullgraph", "dynamic", "scope", "warmup")


@click.command(epilog="Example: tracekit profile flux --compiled --mode reduce-overhead", context_settings=WIDE_HELP)
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
@click.option("--out", type=OutputPath(), help="Run folder (default traces/WORKLOAD-FORM).")
@click.option("--force", is_flag=True, help="Replace the run that is there.")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the result as JSON.")
@click.option("--strict", is_flag=True, help="End with exit code 1 if torch.compile compiled nothing.")
@with_detail
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
    strict: bool,
    detail: Detail,
    **asked: object,
) -> None:
    """Run WORKLOAD, time it without the profiler, then record it.

    WORKLOAD is one that `tracekit workloads` lists, or a model of your own: my_model.py:build, package.module:build.
    What stands after -- goes to build().

    With --compiled both forms are run in alternation and compared: reports/RUN.html.
    """
    from tracekit.model.workload import Request
    from tracekit.walks.plan import Plan, parse_warmup, plan_timing
    from tracekit.workloads.own_function import parse_options

    typed = [name for name in COMPILE_OPTIONS if context.get_parameter_source(name) is COMMANDLINE]
    if typed and not compiled:
        idle = ", ".join(f"--{name.replace('_', '-')}" for name in typed)
        raise TracekitError(f"{idle} says how to compile: pass --compiled too, or leave it out")
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
    profile_workload(plan, json_path, detail, strict=strict)


def profile_workload(
    plan: Plan, json_path: str | None = None, detail: Detail = "brief", *, strict: bool = False
) -> None:
    """Measures with its progress shown, writes the run folder, and reports. Raises TracekitError for whatever the user
    can mend; where `strict`, after the report, if torch.compile compiled nothing."""
    from tracekit.walks import profiling
    from tracekit.walks.plan import place_of_run
    from tracekit.walks.progress import console_of_its_own, shown
    from tracekit.walks.reports import reports_of

    if len(plan.forms) > 1:
        folder = place_of_run(plan)
        page = reports_of(folder) / folder.name
        check_apart({"--json": json_path, "the page": f"{page}.html", "its twin": f"{page}.md"})
    console = console_of_its_own()

    def say_part(part: Path) -> None:
        say(console, f"what was measured until now is in {part}")
        say(console, f"to see it: {shlex.join(('tracekit', 'analyze', str(part)))}")

    with shown(console) as progress:
        folder = profiling.profile(plan, progress, say_part)
    report_run(folder, json_path, detail, force=plan.force, strict=strict)


def report_run(
    folder: Path, json_path: str | None, detail: Detail = "brief", *, force: bool, strict: bool = False
) -> None:
    """Analyses the run: compares its two forms if it has both, else describes the one. Writes reports and JSON; `force`
    is whether the report replaces whatever has its name. Raises TracekitError in the end where `strict` and nothing was
    compiled."""
    from tracekit import store
    from tracekit.comparison.commands import measuring_command
    from tracekit.report.contract import analysis_json
    from tracekit.walks.reading import Reading
    from tracekit.walks.reports import Destination, identity_of_report_on, reports_of

    run = store.load(folder)
    console = console_beside(json_path)
    if len(run.forms) == 2:
        written = _report_comparison(folder, run, console, detail, force=force)
    elif run.not_compiled is None:
        written = _report_form(folder, run, console, detail)
    else:
        there = Destination(reports_of(folder), folder.name, identity_of_report_on(run), force)
        command, reading = measuring_command(run), Reading(shapes=True)
        written = analysis_json(report_nothing_compiled(folder, run, reading, there, command, console, detail))
    write_json(written, json_path)
    if strict and run.not_compiled is not None:
        raise TracekitError(f"torch.compile compiled nothing of {run.settings.workload}, and --strict asks for more")


def _report_comparison(folder: Path, run: Run, console: Console, detail: Detail, *, force: bool) -> str:
    from tracekit.comparison.commands import measuring_command, repeating_command
    from tracekit.report.composition.detail import comparison_text
    from tracekit.report.composition.reports import comparison_report
    from tracekit.report.contract import comparison_json
    from tracekit.report.words.noted import noted_sentence
    from tracekit.walks.reports import Destination, identity_of_report_on, reports_of
    from tracekit.walks.sides import compare_forms
    from tracekit.walks.timing_process import ADVICE_FAILED, NO_ADVICE

    comparison = compare_forms(folder, run)
    there = Destination(reports_of(folder), folder.name, identity_of_report_on(run), force)
    open_it, repeat = shlex.join(("tracekit", "open", str(folder))), repeating_command(run)
    summary = comparison_text(comparison, there.page, open_it, detail, console.width, repeat)
    publish(comparison_report(comparison, run, measuring_command(run), repeat), there, summary, console)
    for noted in run.noted:
        if noted.code in (NO_ADVICE, ADVICE_FAILED):
            say(console, noted_sentence(noted))
    return comparison_json(comparison)


def _report_form(folder: Path, run: Run, console: Console, detail: Detail) -> str:
    from tracekit.comparison.commands import profile_command
    from tracekit.comparison.comparing import look_at
    from tracekit.report.composition.detail import analysis_text
    from tracekit.report.contract import analysis_json
    from tracekit.report.terminal import shown
    from tracekit.walks.reading import Reading
    from tracekit.walks.sides import load_side

    (form,) = run.forms
    single = look_at(load_side(folder, form=form.name, reading=Reading(shapes=True)))
    # Both forms of the same work, in a folder of its own where this run has the name it would take.
    taken = folder != TRACES / folder.name or form.name != "eager"
    out = ("--out", str(folder.with_name(f"{folder.name}-compared"))) if taken else ()
    commands = (f"Run {folder}", f"Compare: {profile_command(run.settings, more=out)}")
    console.print(shown(analysis_text(single, None, commands, detail, width=console.width)), crop=False)
    return analysis_json(single)
