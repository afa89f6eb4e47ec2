"""What `tracekit open` merges and serves."""

from __future__ import annotations

import math
import os
import platform
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.printing import echo
from tracekit.reading.sides import choose_form
from tracekit.reading.traces import Reading, parse_steps
from tracekit.serving import perfetto
from tracekit.tracefile.places import is_url
from tracekit.tracefile.read import check_is_trace
from tracekit.wings import load, together, together_of_run

if TYPE_CHECKING:
    from tracekit.model.run import FormName, RecordingKind

SHORT_WAIT_SECONDS = 0.2
#: A page that is let through has fetched by then, unless the link was not opened yet.
HINT_SECONDS = 15.0
ALLOW = "allow ui.perfetto.dev access to the local network and to this device in the browser's site settings"


def merge_and_serve(
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
    """One trace of all places, as it is where there is one, offered to Perfetto."""
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
