"""What `tracekit analyze` reads, shows and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit import store
from tracekit.cli.output import check_output_path, console_beside, say, write_json
from tracekit.cli.publishing import commands_of_page, destination, show
from tracekit.comparison.looking import look_at
from tracekit.errors import TracekitError
from tracekit.reading.reports import identity_of_report, write_report
from tracekit.reading.sides import interrupted_run, is_run_folder, load_side, of_rank, raise_if_damaged
from tracekit.reading.single_run import look_at_run
from tracekit.reading.traces import Reading, parse_steps
from tracekit.report.composition.one_side import MOST_KERNELS, side_overview
from tracekit.report.contract import analysis_json
from tracekit.report.terminal import shown
from tracekit.report.words.not_compiled import because
from tracekit.shell import joined

if TYPE_CHECKING:
    from tracekit.model.run import FormName
    from tracekit.report.thirty_lines import Detail


def show_analysis(
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
    """Of one trace; raises in the end where the recording is damaged."""
    (trace,) = of_rank((trace,), rank)
    check_output_path("--json", json_path, trace)
    asked = _page_place(html_path, trace)
    # Sizes tell what limits a kernel: without them the bottleneck would not be the one that `compare` names.
    reading = Reading(window, parse_steps(steps), cpu, cached=not no_cache, shapes=True, drawn=html_path is not None)
    console = console_beside(json_path)
    interrupted = interrupted_run(trace)
    if interrupted:
        from tracekit.report.composition.one_side import interrupted_summary

        console.print(shown(interrupted_summary(interrupted)))
        if not any(each.recordings for each in interrupted.forms) and json_path is None:
            return
    there = None
    if html_path is not None:
        from tracekit.reading.pairs import name_side

        named = name_side(trace, form)
        name = f"{Path(trace).resolve().name}-{named.label}" if named.run else named.label
        identity = identity_of_report("analysis", (named.identity,))
        there = destination(f"{name}-analysis", identity, asked, json_path, force=force, option="--html PATH")
    run = store.load(Path(trace)) if is_run_folder(trace) else None
    single = (
        look_at_run(Path(trace), run, reading, form) if run else look_at(load_side(trace, form=form, reading=reading))
    )
    side = single.side
    report = None
    if there is not None or detail == "all":
        from tracekit.report.composition.reports import side_report

        report = side_report(single, run, commands_of_page(run) if there else None)
        if there is not None:
            write_report(report, there)
    overview = side_overview(replace(single, nothing_compiled=None), top or MOST_KERNELS)
    show(overview, report, there.page if there else None, console, detail)
    if single.nothing_compiled is not None:
        more = joined(("tracekit", "compare", trace))
        say(console, f"no compiled variant: {because(single.nothing_compiled.reasons)}; details: {more}")
    elif side.form and form is None and detail != "verdict":
        say(console, f"variant shown: {side.form.name}; choose with --form")
    if json_path is not None:
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
