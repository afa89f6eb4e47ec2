"""Before a sweep: what would keep its cells from being measured, each for the same reason, is said once."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from tracekit.errors import TheirCodeError, TracekitError
from tracekit.model.progress import Progress
from tracekit.model.sweep import Cell, CellResult, CheckAnswer, CheckJob
from tracekit.model.workload import Request
from tracekit.walks.cell_caches import caches_in
from tracekit.walks.processes import Start, describe_ending, run_module
from tracekit.workloads.registry import all_workloads, check_scope, find

CHECK = "tracekit.walks.check_child"


def check_first(
    cells: Sequence[Cell], progress: Progress, start: Start | None = None, there: Sequence[CellResult] = ()
) -> str | None:
    """Asks a process of its own whether the cells can be built and compiled here, as far as that is known before.
    `there` are the folder's. Returns a sentence where it did not live to answer.

    Raises TracekitError for missing packages and compilers, configurations that are not here, wrong options and parts,
    and where there is no GPU but all that is there was measured on one.
    """
    if not cells:
        return None
    progress.phase("looking whether all that the cells need is here", still=True)
    job = CheckJob(_requests(cells), any(cell.form == "compiled" for cell in cells), _gpus(there))
    with tempfile.TemporaryDirectory(prefix="tracekit-check-", ignore_cleanup_errors=True) as place:
        caches = caches_in(Path(place))
        ended = run_module(CHECK, msgspec.json.encode(job), Path(place), caches, on_word=progress.detail, start=start)
    if ended.answer is None:
        last = next((line for line in reversed(ended.lines) if line.strip()), "it printed nothing")
        return f"whether all is here could not be seen ({describe_ending(ended.code)}: {last}): the cells will tell"
    answer = msgspec.json.decode(ended.answer, type=CheckAnswer)
    if answer.traceback is not None:
        raise TheirCodeError(answer.error or "", answer.traceback)
    if answer.error is not None:
        raise TracekitError(answer.error, answer.below)
    return None


def _gpus(there: Sequence[CellResult]) -> tuple[str, ...]:
    """The GPUs that all cells with times were measured on; empty where one had none."""
    found = {each.run.environment.gpu for each in there if each.run is not None and each.outcome == "done"}
    return () if None in found else tuple(sorted(name for name in found if name))


def _requests(cells: Sequence[Cell]) -> tuple[Request, ...]:
    """Each once of those that differ in what can be seen before."""
    return tuple(dict.fromkeys(_looked_at(cell.request) for cell in cells))


def _looked_at(request: Request) -> Request:
    """The request without what is no matter here: how it is compiled, and of a workload of the list its sizes, which
    were checked when it was asked for."""
    info = find(request.workload)
    asked = replace(request, mode="default", fullgraph=None, dynamic=None, scope=check_scope(info, request.scope))
    if info not in all_workloads():
        return asked
    return replace(asked, batch_size=1, height=None, width=None, steps=None, dtype=None, max_new_tokens=None)
