"""The part of `tracekit profile` that says what of the scope was compiled after all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracekit.model.run import Run
from tracekit.model.workload import BuiltWorkload

if TYPE_CHECKING:
    from tracekit.capture.forms import Form

#: So many parts are named in a note.
NAMED = 5


def with_uncalled(run: Run, workload: BuiltWorkload, form: Form) -> Run:
    """The run, which tells what of the scope no call of the warm form came to: that was never compiled."""
    from tracekit.workloads.scopes import with_shares

    uncalled = form.uncalled()
    if not uncalled:
        return run
    more = f" and {len(uncalled) - NAMED} more" if len(uncalled) > NAMED else ""
    note = f"No call comes to {', '.join(uncalled[:NAMED])}{more}: nothing of it was compiled."
    entered = tuple(target for target in workload.targets if target.component not in uncalled)
    components = with_shares(replace(workload, targets=entered)).components
    return replace(run, notes=(*run.notes, note), components=components)
