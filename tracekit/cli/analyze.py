"""`tracekit analyze`: what one trace says."""

from __future__ import annotations

from typing import Any

import click

from tracekit.cli import options


@click.command(epilog="Example: tracekit analyze trace.json.gz --json -", context_settings=options.WIDE_HELP)
@click.argument("trace", metavar="TRACE")
@click.option("--form", type=options.FORMS, help="Variant of a run folder to analyze (default: compiled, if recorded).")
@options.with_window
@options.with_steps
@options.with_rank
@options.with_cpu
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
@options.with_no_cache
@options.with_detail
def analyze(trace: str, **asked: Any) -> None:
    """Analyze one trace: GPU busy and idle time, kernels, launches.

    TRACE is a Chrome JSON trace of torch.profiler (plain, gzip or zstd), its URL, - for standard input, or a run folder
    of `tracekit profile`.
    """
    from tracekit.tracefile.helpers import start_early

    # Before the import below: sizes are read with the trace.
    start_early(trace, "shapes")

    from tracekit.cli.showing_analysis import show_analysis

    show_analysis(trace, **asked)
