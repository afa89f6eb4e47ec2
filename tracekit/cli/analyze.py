"""`tracekit analyze`: what one trace says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracekit.model.run import FormName


@click.command(
    epilog="Example: tracekit analyze trace.json.gz --json -",
    context_settings={"max_content_width": 110},
)
@click.argument("trace", metavar="TRACE")
@click.option("--form", type=click.Choice(("eager", "compiled")), help="Of a run folder; compiled if it has that.")
@click.option(
    "--window",
    default="auto",
    metavar="steps|whole|NAME",
    help="What is counted: the marked steps, all of it, or spans by name or regular expression.",
)
@click.option("--steps", metavar="N|N-M", help="Only the marked steps with these numbers.")
@click.option("--cpu", is_flag=True, help="Look at host operators where a trace has no GPU activity.")
@click.option("--top", type=click.IntRange(min=1), help="Kernel names listed (default 10 here, 20 in the JSON).")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the analysis as JSON; - is standard output.")
@click.option("--strict", is_flag=True, help="End with exit code 2, not 1, if the recording is damaged.")
@click.option("--no-cache", is_flag=True, help="Read the file anew, and keep nothing of it.")
def analyze(
    trace: str,
    form: FormName | None,
    window: str,
    steps: str | None,
    cpu: bool,
    top: int | None,
    json_path: str | None,
    no_cache: bool,
    strict: bool,
) -> None:
    """Say what TRACE shows: busy and idle time, kernels, launches.

    TRACE is a Chrome JSON trace of torch.profiler, plain or packed with gzip or zstd, its URL, - for standard input, or
    a run folder of `tracekit profile`.
    """
    from tracekit.cli.output import check_output_path, console_beside, say, write_json
    from tracekit.report.contract import analysis_json
    from tracekit.report.terminal import analysis_summary, interrupted_summary
    from tracekit.walks.reading import Reading, parse_steps
    from tracekit.walks.sides import interrupted_run, load_side, raise_if_damaged

    check_output_path("--json", json_path, trace)
    reading = Reading(window, parse_steps(steps), cpu, cached=not no_cache)
    console = console_beside(json_path)
    interrupted = interrupted_run(trace)
    if interrupted:
        console.print(interrupted_summary(interrupted))
        if not any(each.recordings for each in interrupted.forms) and json_path is None:
            return
    side = load_side(trace, form=form, reading=reading)
    console.print(analysis_summary(side, top=top or 10))
    if side.form and form is None:
        say(console, f"this is its {side.form.name} form; --form chooses")
    write_json(analysis_json(side.analysis, top=top or 20, side=side), json_path)
    raise_if_damaged(side, strict=strict)
