"""`tracekit open`: a trace, or several as one, shown in Perfetto."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.cli.options import FORMS, WIDE_HELP, OutputPath
from tracekit.errors import TracekitError
from tracekit.printing import echo
from tracekit.wings import load, together, together_of_run

if TYPE_CHECKING:
    from tracekit.model.run import FormName, RecordingKind

SHORT_WAIT_SECONDS = 0.2
#: A page that is let through has fetched by then, unless the link was not opened yet.
HINT_SECONDS = 15.0
ALLOW = "allow ui.perfetto.dev access to the local network and to this device in the browser's site settings"


@click.command(
    "open",
    epilog="Example: tracekit open traces/flux-compiled",
    context_settings=WIDE_HELP,
)
@click.argument("places", nargs=-1, required=True, metavar="RUN | A B | FOLDER|FILE... of ranks")
@click.option("--form", type=FORMS, help="Run folder: open only this variant, as recorded, or all its ranks.")
@click.option(
    "--recording",
    type=click.Choice(("light", "rich")),
    help="Run folder: kernel-only trace (light, less overhead) or full trace (rich).",
)
@click.option(
    "--window",
    default="auto",
    metavar="steps|whole|NAME",
    help="Several traces: what to show: marked steps, the whole trace, or spans by name.",
)
@click.option("--steps", metavar="N|N-M", help="Several traces: show only these marked steps.")
@click.option(
    "--out",
    type=OutputPath(),
    help="Where to write the merged trace (default: in the folder, or beside A).",
)
@click.option("--no-serve", is_flag=True, help="Write the merged trace and exit.")
@click.option("--no-browser", is_flag=True, help="Print the link. Do not start a browser.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop waiting for the browser after this long.",
)
def open_(
    places: tuple[str, ...],
    form: FormName | None,
    recording: RecordingKind | None,
    window: str,
    steps: str | None,
    out: Path | None,
    no_serve: bool,
    no_browser: bool,
    timeout: float | None,
) -> None:
    """Open a run, a trace, two traces, or all ranks of a job in Perfetto (ui.perfetto.dev).

    Eager and compiled of a run, A and B, or the ranks of a job are merged into one trace with the findings in it
    (docs/perfetto.md). The trace is served from 127.0.0.1:9001 to Perfetto's page alone until it is fetched or you
    press Ctrl-C. It does not leave this machine (docs/security.md).
    """
    from tracekit import store
    from tracekit.tracefile.places import is_url
    from tracekit.walks.reading import Reading, parse_steps

    # Of a run the variants beside each other are more than the ranks of one.
    run_of_ranks = together_of_run(places) if form is not None and recording is None else None
    of_ranks = run_of_ranks or together(places)
    if not of_ranks and any(map(is_url, places)):
        raise TracekitError("one URL, or two sides that are URLs, cannot be opened: copy the files here")
    if of_ranks and not run_of_ranks and (form or recording):
        raise TracekitError("these are recordings of ranks: leave --form and --recording out")
    if len(places) > 2 and not of_ranks:
        raise TracekitError("more than two traces must be of ranks: name their files, or the folder that holds them")
    trace, other = Path(places[0]), Path(places[1]) if len(places) == 2 else None
    of_two = other is not None or (form is None and store.is_run(trace) and len(store.load(trace).forms) == 2)
    if (of_ranks or of_two) and out is not None and out.exists() and not (out.is_file() or out.is_dir() or no_serve):
        raise TracekitError(f"--out {out} is not a regular file and cannot be served: pass --no-serve, or another path")
    if of_ranks:
        path = load(of_ranks.merge)(places, form, window, steps, out)
    elif of_two:
        from tracekit.cli.merged_trace import merge

        path = merge(trace, other, form, recording, Reading(window, parse_steps(steps)), out)
    elif trace.exists() and (no_serve or out is not None or steps is not None or window != "auto"):
        raise TracekitError("--window, --steps, --out and --no-serve need several traces: leave them out")
    else:
        path = _trace_path(trace, form, recording)
    if not no_serve:
        _serve(path, browser=not no_browser, timeout=timeout)


def _serve(path: Path, *, browser: bool, timeout: float | None) -> None:
    """Until the page has it."""
    import os
    import platform
    import webbrowser

    from tracekit.serving import perfetto

    has_screen = platform.system() != "Linux" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    with perfetto.offered(path, perfetto.PORT) as server:
        echo(f"serving {path}")
        echo(server.link)
        if browser and not has_screen:
            # Without a screen the standard library may start a text browser in this terminal.
            echo("this machine has no display: on yours, run this and then open the link")
            echo(f"  ssh -L {server.port}:127.0.0.1:{server.port} THIS-MACHINE")
        elif browser and not webbrowser.open(server.link):
            echo("no browser could be started: open the link by hand")
        echo("waiting for Perfetto to fetch the trace (allow it if the browser asks); Ctrl-C stops")
        # In short waits: under polars' signal handler Ctrl-C ends none that goes on.
        hint = time.monotonic() + HINT_SECONDS
        deadline = time.monotonic() + timeout if timeout is not None else math.inf
        while not server.fetched.is_set() and time.monotonic() < deadline:
            server.fetched.wait(min(SHORT_WAIT_SECONDS, max(deadline - time.monotonic(), 0)))
            if time.monotonic() >= hint and not server.fetched.is_set():
                echo(f"not fetched for {HINT_SECONDS:g} s: {ALLOW}, or open the file in Perfetto by hand")
                hint = math.inf
        if not server.fetched.is_set():
            raise TracekitError(
                f"no browser fetched {path} within {timeout:g} s: open the link on this machine, and {ALLOW}"
            )
    echo("fetched: the browser has the trace")


def _trace_path(trace: Path, form: FormName | None, recording: RecordingKind | None) -> Path:
    """The one file to show. Raises TracekitError when there is none."""
    from tracekit import store
    from tracekit.tracefile.read import check_is_trace
    from tracekit.walks.sides import choose_form

    if trace.is_dir():
        chosen = choose_form(store.load(trace), trace, form)
        has_rich = any(each.kind == "rich" for each in chosen.recordings)
        return store.recording_path(trace, chosen, recording or ("rich" if has_rich else "light"))
    if form or recording:
        raise TracekitError(f"{trace} is not a run folder: leave --form and --recording out")
    if not trace.is_file():
        raise TracekitError(f"{trace} does not exist: pass a run folder or a trace file")
    check_is_trace(trace)
    return trace
