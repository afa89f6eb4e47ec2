"""`tracekit analyze`: what one trace says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from tracekit.cli.options import (
    FORMS,
    WIDE_HELP,
    with_cpu,
    with_detail,
    with_no_cache,
    with_rank,
    with_steps,
    with_window,
)
from tracekit.cli.output import check_output_path, commands_of_page, console_beside, destination, say, write_json
from tracekit.errors import TracekitError
from tracekit.shell import joined

if TYPE_CHECKING:
    from tracekit.model.run import FormName
    from tracekit.report.thirty_lines import Detail


@click.command(epilog="Example: tracekit analyze trace.json.gz --json -", context_settings=WIDE_HELP)
@click.argument("trace", metavar="TRACE")
@click.option("--form", type=FORMS, help="Variant of a run folder to analyze (default: compiled, if recorded).")
@with_window
@with_steps
@with_rank
@with_cpu
@click.option("--top", type=click.IntRange(min=1), help="Number of kernel names to list (default 6; 20 in JSON).")
@click.option(
    "--html",
    "html_path",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Write an HTML page and its markdown twin: PATH.html, or into a folder (default reports). Put it last.",
)
@click.option("--force", is_flag=True, help="Replace an existing file that has the page's name.")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the analysis as JSON; - is standard output.")
@click.option("--strict", is_flag=True, help="Exit with code 2, not 1, if the recording is damaged.")
@with_no_cache
@with_detail
def analyze(
    trace: str,
    form: FormName | None,
    window: str,
    steps: str | None,
    rank: int | None,
    cpu: bool,
    top: int | None,
    html_path: str | None,
    force: bool,
    json_path: str | None,
    no_cache: bool,
    strict: bool,
    detail: Detail,
) -> None:
    """Analyze one trace: GPU busy and idle time, kernels, launches.

    TRACE is a Chrome JSON trace of torch.profiler (plain, gzip or zstd), its URL, - for standard input, or a run folder
    of `tracekit profile`.
    """
    from tracekit.tracefile.helpers import start_early

    # Before the imports below: sizes are read with the trace.
    start_early(trace, "shapes")

    from tracekit import store
    from tracekit.comparison.looking import look_at
    from tracekit.report.composition.detail import analysis_text
    from tracekit.report.terminal import shown
    from tracekit.walks.reading import Reading, parse_steps
    from tracekit.walks.sides import interrupted_run, is_run_folder, load_side, of_rank, raise_if_damaged
    from tracekit.walks.single_run import look_at_run

    (trace,) = of_rank((trace,), rank)
    check_output_path("--json", json_path, trace)
    asked = _page_place(html_path, trace)
    # Sizes tell what limits a kernel: without them the bottleneck would not be the one that `compare` names.
    reading = Reading(window, parse_steps(steps), cpu, cached=not no_cache, shapes=True, drawn=html_path is not None)
    console = console_beside(json_path)
    interrupted = interrupted_run(trace)
    if interrupted:
        from tracekit.report.composition.summaries import interrupted_summary

        console.print(shown(interrupted_summary(interrupted)))
        if not any(each.recordings for each in interrupted.forms) and json_path is None:
            return
    there = None
    if html_path is not None:
        from tracekit.walks.pairs import name_side
        from tracekit.walks.reports import identity_of_report

        named = name_side(trace, form)
        name = f"{Path(trace).resolve().name}-{named.label}" if named.run else named.label
        identity = identity_of_report("analysis", (named.identity,))
        there = destination(f"{name}-analysis", identity, asked, json_path, force=force, option="--html PATH")
    run = store.load(Path(trace)) if is_run_folder(trace) else None
    single = (
        look_at_run(Path(trace), run, reading, form) if run else look_at(load_side(trace, form=form, reading=reading))
    )
    side = single.side
    if there is not None:
        from tracekit.report.composition.reports import side_report
        from tracekit.walks.reports import write_report

        write_report(side_report(single, run, commands_of_page(run)), there)
    page = there.page if there else None
    figures = replace(single, nothing_compiled=None)
    console.print(shown(analysis_text(figures, page, detail=detail, top=top, width=console.width)), crop=False)
    if single.nothing_compiled is not None:
        from tracekit.report.words.not_compiled import because

        more = joined(("tracekit", "compare", trace))
        say(console, f"no compiled variant: {because(single.nothing_compiled.reasons)}; details: {more}")
    elif side.form and form is None and detail != "verdict":
        say(console, f"variant shown: {side.form.name}; choose with --form")
    if json_path is not None:
        from tracekit.report.contract import analysis_json

        write_json(analysis_json(single, top=top or 20), json_path)
    raise_if_damaged(side, strict=strict)


def _page_place(asked: str | None, trace: str) -> Path | None:
    """Where `--html` wants the page, None where it leaves that open. Raises TracekitError for a file that is no page:
    most likely the trace was meant."""
    if not asked:
        return None
    path = Path(asked)
    if path.suffix in (".html", ".md"):
        for each in (path.with_suffix(".html"), path.with_suffix(".md")):
            check_output_path("--html", str(each), trace)
    elif path.is_file():
        raise TracekitError(f"--html {asked} is an existing file: pass PATH.html or a folder, or put --html last")
    return path
