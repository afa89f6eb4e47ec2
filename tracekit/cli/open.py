"""`tracekit open`: a trace, shown in Perfetto."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracekit.model.run import FormName, RecordingKind
    from tracekit.serving.perfetto import TraceServer


SHORT_WAIT_SECONDS = 0.2


@click.command(
    "open",
    epilog="Example: tracekit open traces/flux-compiled --form eager",
    context_settings={"max_content_width": 110},
)
@click.argument("trace", type=click.Path(path_type=Path), metavar="RUN|TRACE")
@click.option("--form", type=click.Choice(("eager", "compiled")), help="Of a run folder; compiled if it has that.")
@click.option(
    "--recording",
    type=click.Choice(("light", "rich")),
    help="Of a run folder: light has the truer gaps, rich has operators; rich if it has that.",
)
@click.option("--no-browser", is_flag=True, help="Print the link and open nothing.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Give up waiting.")
def open_(
    trace: Path, form: FormName | None, recording: RecordingKind | None, no_browser: bool, timeout: float | None
) -> None:
    """Show RUN or TRACE in Perfetto (ui.perfetto.dev).

    The file is served to that page alone, from 127.0.0.1:9001, until it was fetched or Ctrl-C. It stays on this
    machine: Perfetto reads it in the browser.
    """
    from tracekit.errors import TracekitError
    from tracekit.serving import perfetto

    path = _trace_path(trace, form, recording)
    with perfetto.offered(path, perfetto.PORT) as server:
        click.echo(f"serving {path}")
        click.echo(server.link)
        _send_to_browser(server, wanted=not no_browser)
        click.echo("allow the page to reach this device if the browser asks; once refused, it fails without a word")
        click.echo("waiting until it is fetched; Ctrl-C stops")
        if not _wait(server.fetched, timeout):
            raise TracekitError(f"nobody fetched {path} within {timeout:g} s; open the link on this machine in time")
    click.echo("fetched; the browser has it now")


def _wait(fetched: threading.Event, timeout: float | None) -> bool:
    """Whether it was fetched in time. In short waits: under polars' signal handler Ctrl-C ends none that goes on."""
    deadline = time.monotonic() + timeout if timeout is not None else math.inf
    while not fetched.is_set() and time.monotonic() < deadline:
        fetched.wait(min(SHORT_WAIT_SECONDS, max(deadline - time.monotonic(), 0)))
    return fetched.is_set()


def _trace_path(trace: Path, form: FormName | None, recording: RecordingKind | None) -> Path:
    """The one file to show. Raises TracekitError when there is none."""
    from tracekit.errors import TracekitError
    from tracekit.tracefile.read import check_is_trace

    if trace.is_dir():
        return _recording_path(trace, form, recording)
    if form or recording:
        raise TracekitError(f"{trace} is no run folder: leave --form and --recording out")
    if not trace.is_file():
        raise TracekitError(f"there is no file {trace}; name a run folder or a trace file")
    check_is_trace(trace)
    return trace


def _recording_path(folder: Path, form: FormName | None, recording: RecordingKind | None) -> Path:
    from tracekit import store
    from tracekit.cli.sides import choose_form

    chosen = choose_form(store.load(folder), folder, form)
    has_rich = any(each.kind == "rich" for each in chosen.recordings)
    return store.recording_path(folder, chosen, recording or ("rich" if has_rich else "light"))


def _send_to_browser(server: TraceServer, *, wanted: bool) -> None:
    """Opens the link where there is a screen; says how to get there where there is none."""
    import os
    import platform
    import webbrowser

    has_screen = platform.system() != "Linux" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    # Without a screen the standard library may start a text browser in this terminal.
    if wanted and has_screen and webbrowser.open(server.link):
        return
    if wanted and not has_screen:
        click.echo("this machine has no screen: open the link elsewhere, after")
        click.echo(f"  ssh -L {server.port}:127.0.0.1:{server.port} THIS-MACHINE")
    elif wanted:
        click.echo("no browser could be started: open the link yourself")
