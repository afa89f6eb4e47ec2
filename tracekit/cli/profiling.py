"""What `tracekit profile` shows while it measures, and after."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Console

from tracekit.cli.output import say
from tracekit.cli.results import check_json_apart, report_run
from tracekit.walks.profiling import Plan, place_of_run, profile
from tracekit.walks.progress import console_of_its_own, shown


def profile_workload(plan: Plan, json_path: str | None = None) -> None:
    """Measures with its progress shown, writes the run folder, and reports. Raises TracekitError for whatever the user
    can mend."""
    if len(plan.forms) > 1:
        check_json_apart(place_of_run(plan), json_path)
    console = console_of_its_own()
    with shown(console) as progress:
        folder = profile(plan, progress, lambda part: _say_part(part, console))
    report_run(folder, json_path, force=plan.force)


def _say_part(part: Path, console: Console) -> None:
    say(console, f"what was measured until now is in {part}")
    say(console, f"to see it: {shlex.join(('tracekit', 'analyze', str(part)))}")
