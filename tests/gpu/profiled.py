"""`tracekit profile` on this GPU, and a recording of what it left read back."""

import contextlib
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tracekit import store
from tracekit.analysis import analyze
from tracekit.cli.main import main
from tracekit.tracefile import read_trace

TINY = ("--compiled", "--size", "tiny")


def profile(place: Path, workload: str, *options: str) -> tuple[Path, Any]:
    """The folder and the run that `tracekit profile` makes in `place`."""
    folder = place / "run"
    with contextlib.chdir(place):
        command = ["profile", workload, "--out", str(folder), *options]
        found = CliRunner().invoke(main, command, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return folder, store.load(folder)


def analysis_of(ran: tuple[Path, Any], name: str, kind: str = "light") -> Any:
    folder, run = ran
    return analyze(read_trace(store.recording_path(folder, run.form(name), kind)))
