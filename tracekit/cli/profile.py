"""`tracekit profile`: run a workload, time it, record it, compare it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.cli.options import (
    CACHES,
    DTYPES,
    MOST_RANKS,
    ORDERS,
    PARALLEL,
    PHASES,
    SECONDS,
    WIDE_HELP,
    OutputPath,
    complete_workload,
    with_checkpoint,
    with_compiled_autograd,
    with_detail,
    with_download,
    with_dynamic,
    with_fullgraph,
    with_iterations,
    with_json,
    with_pretrained,
    with_prompt,
    with_rank_timeout,
    with_repeat_process,
    with_target,
    with_use_fast,
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
from tracekit.model.option import MODES
from tracekit.shell import joined

if TYPE_CHECKING:
    from rich.console import Console

    from tracekit.model.run import Run
    from tracekit.report.thirty_lines import Detail
    from tracekit.walks.plan import Plan

#: Where runs lie that were given no other place.
TRACES = Path("traces")
COMMANDLINE = click.core.ParameterSource.COMMANDLINE
#: Options that say nothing without --compiled.
COMPILE_OPTIONS = (
    *("no_baseline", "mode", "fullgraph", "dynamic", "scope", "warmup"),
    *("compile_order", "compiled_autograd"),
)


@click.command(epilog="Example: tracekit profile flux --compiled --mode reduce-overhead", context_settings=WIDE_HELP)
@click.argument("workload", shell_complete=complete_workload)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- NAME=VALUE...]")
@click.option("--compiled", is_flag=True, help="Also run under torch.compile, and compare with eager.")
@click.option("--no-baseline", is_flag=True, help="With --compiled: skip eager, compare nothing.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="default",
    metavar="MODE",
    help=f"Mode of torch.compile: {', '.join(MODES)}.",
)
@with_fullgraph
@with_dynamic
@click.option(
    "--scope",
    metavar="PART",
    help="all, regional (repeated blocks) or modules: vit.layers.*,head.",
)
@click.option("--batch-size", type=click.IntRange(min=1), metavar="N", default=1, help="Inputs per call (default 1).")
@click.option("--height", type=click.IntRange(min=1), metavar="N", help="Image height in pixels.")
@click.option("--width", type=click.IntRange(min=1), metavar="N", help="Image width in pixels.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Diffusion models: denoising steps per call.")
@with_prompt
@click.option("--max-new-tokens", type=click.IntRange(min=1), metavar="N", help="Text generation: new tokens per call.")
@click.option(
    "--cache", type=click.Choice(CACHES), metavar="KIND", help="Text generation: KV cache, dynamic or static."
)
@click.option(
    "--phase", type=click.Choice(PHASES), metavar="PHASE", help="Text generation: measure generate, prefill or decode."
)
@with_use_fast
@click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    metavar="DTYPE",
    help="Data type: bfloat16 (default on a GPU), float16, float32.",
)
@click.option(
    "--size",
    default="auto",
    metavar="SIZE",
    help="full, small, tiny, or auto (default): the largest that fits.",
)
@click.option("--seq-length", type=click.IntRange(min=1), metavar="N", help="Input sequence length in tokens.")
@with_pretrained
@with_download
@click.option("--seed", type=int, default=0, metavar="N", help="Random seed of weights, noise and run order.")
@with_iterations
@with_target
@click.option(
    "--time-budget",
    type=SECONDS,
    metavar="SECONDS",
    help="Stop timing after SECONDS (default 30; CPU 3).",
)
@with_repeat_process
@click.option("--startup", is_flag=True, help="Measure cold start in new processes, without and with cache.")
@click.option("--verify-advice", is_flag=True, help="Measure the speed-up of the most promising advice.")
@click.option(
    "--warmup",
    metavar="SIZE=N,...",
    help="Warm up at other sizes (batch=4), to see recompiles.",
)
@click.option(
    "--nproc", type=click.IntRange(1, MOST_RANKS), metavar="N", help="Run N ranks, a GPU each; gloo on a CPU."
)
@click.option(
    "--parallel", type=click.Choice(PARALLEL), metavar="KIND", help="Over ranks: ddp, fsdp2, tp, ulysses or ring."
)
@with_checkpoint
@click.option(
    "--compile-order",
    type=click.Choice(ORDERS),
    metavar="ORDER",
    help="fsdp2, --scope regional: compile after-sharding (default) or before-sharding.",
)
@with_compiled_autograd
@with_rank_timeout
@click.option("--no-provenance", is_flag=True, help="Skip Inductor provenance (the operators of a kernel).")
@click.option("--no-numerics", is_flag=True, help="Do not compare the outputs of eager and compiled.")
@click.option("--out", type=OutputPath(), help="Run folder to write (default traces/WORKLOAD-VARIANT).")
@click.option("--force", is_flag=True, help="Replace an existing run.")
@with_json
@click.option("--strict", is_flag=True, help="Exit with code 1 if torch.compile compiled nothing.")
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
    timeout: float | None,
    no_numerics: bool,
    out: Path | None,
    force: bool,
    json_path: str | None,
    strict: bool,
    detail: Detail,
    **asked: object,
) -> None:
    """Run WORKLOAD, time it without the profiler, then record it with the profiler.

    WORKLOAD is a name that `tracekit workloads` lists, or a function that builds your own model: my_model.py:build or
    package.module:build. Arguments after -- are passed to that function.

    With --compiled, eager and compiled are interleaved and compared in reports/RUN.html.
    """
    from tracekit.asked import ON_THE_COMMAND_LINE, check_asked
    from tracekit.model.workload import Request
    from tracekit.walks.plan import RANKS_SECONDS, Plan, parse_warmup, plan_timing, rank_here
    from tracekit.workloads.own_function import parse_options

    typed = [name for name in COMPILE_OPTIONS if context.get_parameter_source(name) is COMMANDLINE]
    if typed and not compiled:
        idle = ", ".join(f"--{name.replace('_', '-')}" for name in typed)
        raise TracekitError(f"{idle} has no effect without --compiled: pass --compiled, or leave it out")
    check_output_path("--json", json_path)
    if timeout is not None and asked["nproc"] is None and rank_here() is None:
        raise TracekitError("--timeout has no effect without --nproc: pass --nproc, or leave it out")
    if verify_advice and (no_baseline or not compiled):
        raise TracekitError("--verify-advice needs eager and compiled: pass --compiled, and leave --no-baseline out")
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
        timeout_seconds=timeout or RANKS_SECONDS,
    )
    check_asked(plan, ON_THE_COMMAND_LINE)
    profile_workload(plan, json_path, detail, strict=strict)


def profile_workload(
    plan: Plan, json_path: str | None = None, detail: Detail = "brief", *, strict: bool = False
) -> None:
    """Measures with its progress shown, writes the run folder, and reports. Raises TracekitError for whatever the user
    can mend; where `strict`, after the report, if torch.compile compiled nothing."""
    from tracekit.model.progress import Silent
    from tracekit.walks import profiling
    from tracekit.walks.plan import place_of_run, rank_here
    from tracekit.walks.progress import console_of_its_own, shown
    from tracekit.walks.reports import reports_of

    rank = rank_here()
    if rank is not None and plan.request.nproc:
        raise TracekitError(f"a launcher has started this process as rank {rank}: leave --nproc out")
    if rank:
        # Rank 0 shows and reports.
        profiling.profile(plan, Silent(), lambda _part: None)
        return
    if len(plan.forms) > 1:
        folder = place_of_run(plan)
        page = reports_of(folder) / folder.name
        check_apart({"--json": json_path, "the page": f"{page}.html", "its twin": f"{page}.md"})
    console = console_of_its_own()

    def say_part(part: Path) -> None:
        say(console, f"measured so far: {part}")
        say(console, f"to analyze it: {joined(('tracekit', 'analyze', str(part)))}")

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
        raise TracekitError(f"torch.compile compiled nothing of {run.settings.workload} (--strict)")


def _report_comparison(folder: Path, run: Run, console: Console, detail: Detail, *, force: bool) -> str:
    from tracekit.comparison.commands import measuring_command
    from tracekit.report.composition.detail import comparison_text
    from tracekit.report.composition.reports import comparison_report
    from tracekit.report.contract import comparison_json
    from tracekit.report.words.noted import noted_sentence
    from tracekit.walks.reports import Destination, command_to_repeat, identity_of_report_on, reports_of
    from tracekit.walks.sides import compare_forms
    from tracekit.walks.timing_process import ADVICE_FAILED, NO_ADVICE

    comparison = compare_forms(folder, run)
    there = Destination(reports_of(folder), folder.name, identity_of_report_on(run), force)
    open_it, repeat = joined(("tracekit", "open", str(folder))), command_to_repeat(folder, run)
    summary = comparison_text(comparison, there.page, open_it, detail, console.width, repeat)
    publish(comparison_report(comparison, run, measuring_command(run), repeat), there, summary, console)
    for noted in run.noted:
        if noted.code in (NO_ADVICE, ADVICE_FAILED):
            say(console, noted_sentence(noted))
    return comparison_json(comparison)


def _report_form(folder: Path, run: Run, console: Console, detail: Detail) -> str:
    from tracekit.comparison.commands import profile_command
    from tracekit.comparison.looking import look_at
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
