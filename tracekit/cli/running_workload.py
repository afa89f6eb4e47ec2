"""What `tracekit profile` runs, by its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from tracekit.asked import ON_THE_COMMAND_LINE, check_asked
from tracekit.cli.output import check_apart, check_output_path, measuring_command_line, page_asked, say
from tracekit.errors import TracekitError
from tracekit.measure import profiling
from tracekit.measure.plan import RANKS_SECONDS, Plan, parse_warmup, place_of_run, plan_timing, rank_here
from tracekit.measure.progress import console_of_its_own, shown
from tracekit.model.option import words_of
from tracekit.model.progress import Silent
from tracekit.model.workload import Request
from tracekit.reading.reports import place_of_run_report, reports_of
from tracekit.shell import joined
from tracekit.workloads.own_function import parse_options

if TYPE_CHECKING:
    from tracekit.report.thirty_lines import Detail

COMMANDLINE = click.core.ParameterSource.COMMANDLINE
#: Options that say nothing without --compiled.
COMPILE_OPTIONS = ("no_baseline", *words_of("compiling"), "warmup")


def plan_and_run(
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
    html_path: str | None,
    out: Path | None,
    force: bool,
    json_path: str | None,
    strict: bool,
    detail: Detail,
    **asked: object,
) -> None:
    """Raises TracekitError, before anything is run, for options that have no effect."""
    typed = [name for name in COMPILE_OPTIONS if context.get_parameter_source(name) is COMMANDLINE]
    if typed and not compiled:
        idle = ", ".join(f"--{name.replace('_', '-')}" for name in typed)
        raise TracekitError(f"{idle} has no effect without --compiled: pass --compiled, or leave it out")
    check_output_path("--json", json_path)
    if timeout is not None and asked["nproc"] is None and rank_here() is None:
        raise TracekitError("--timeout has no effect without --nproc: pass --nproc, or leave it out")
    if verify_advice and (no_baseline or not compiled):
        raise TracekitError("--verify-advice needs eager and compiled: pass --compiled, and leave --no-baseline out")
    page = page_asked(html_path, None)
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
        page=page,
    )
    if html_path == "":
        plan = replace(plan, page=reports_of(place_of_run(plan)))
    check_asked(plan, ON_THE_COMMAND_LINE)
    profile_workload(plan, json_path, detail, strict=strict)


def profile_workload(
    plan: Plan, json_path: str | None = None, detail: Detail = "brief", *, strict: bool = False
) -> None:
    """Measures with its progress shown, writes the run folder, and reports. Raises TracekitError for whatever the user
    can mend; where `strict`, after the report, if torch.compile compiled nothing."""
    rank = rank_here()
    if rank is not None and plan.request.nproc:
        raise TracekitError(f"a launcher has started this process as rank {rank}: leave --nproc out")
    if rank:
        # Rank 0 shows and reports.
        profiling.profile(plan, Silent(), lambda _part: None)
        return
    if len(plan.forms) > 1 or plan.page is not None:
        place = place_of_run_report(place_of_run(plan), plan.page)
        page = Path(*place)
        check_apart({"--json": json_path, "the page": f"{page}.html", "its twin": f"{page}.md"})
    console = console_of_its_own()

    def say_part(part: Path) -> None:
        say(console, f"measured so far: {part}")
        say(console, f"to analyze it: {joined(('tracekit', 'analyze', str(part)))}")

    with shown(console) as progress:
        folder = profiling.profile(plan, progress, say_part)
    # Reading traces is loaded only now: it would stand beside what was measured.
    from tracekit.cli.reporting_run import report_run

    report_run(folder, json_path, detail, plan.page, force=plan.force, strict=strict)
