"""Before a sweep: what would keep its cells from being measured, each for the same reason, is said once.

It is looked at in a process of its own (`python -m tracekit.sweep.running.requirements JOB ANSWER`): what it loads is
large, and a user's own code is run in it.
"""

import importlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tracekit.errors import TheirCodeError, TracekitError
from tracekit.measure.building import quiet_libraries
from tracekit.measure.processes import WORD, Ended, Start, caches_in, run_module
from tracekit.model.progress import Progress
from tracekit.model.workload import Request
from tracekit.sweep.cells import Cell, CellResult, CheckAnswer, CheckJob
from tracekit.sweep.running.matrix import check_parts
from tracekit.workloads.registry import WORKLOADS, all_workloads, check_scope, find, load_builder, look_into
from tracekit.workloads.unlisted import is_own

MODULE = "tracekit.sweep.running.requirements"


def check_first(
    cells: Sequence[Cell],
    progress: Progress,
    start: Start | None = None,
    there: Sequence[CellResult] = (),
    cluster: Executor | None = None,
) -> str | None:
    """Asks a process of its own whether the cells can be built and compiled here, or on a node of the cluster, as far
    as that is known before. `there` are the folder's. Returns a sentence where it did not live to answer.

    Raises TracekitError for missing packages and compilers, configurations that are not here, wrong options and parts,
    and where there is no GPU but all that is there was measured on one.
    """
    if not cells:
        return None
    progress.phase("checking the requirements of the cells", still=True)
    # One of each that differ in what can be seen before.
    requests = tuple(dict.fromkeys(_without_tried_settings(cell.request) for cell in cells))
    # The GPUs that all cells with times were measured on; none where one had none.
    gpus = {each.run.environment.gpu for each in there if each.run is not None and each.outcome == "done"}
    named = () if None in gpus else tuple(sorted(filter(None, gpus)))
    job = msgspec.json.encode(CheckJob(requests, any(cell.form == "compiled" for cell in cells), named))
    ended = cluster.submit(_ask, job).result() if cluster else _ask(job, progress.detail, start)
    if ended.answer is None:
        return f"checking the requirements of the cells failed ({ended.how()}); continuing"
    answer = msgspec.json.decode(ended.answer, type=CheckAnswer)
    if answer.traceback is not None:
        raise TheirCodeError(answer.error or "", answer.traceback)
    if answer.error is not None:
        raise TracekitError(answer.error, answer.below)
    return None


def _ask(job: bytes, on_word: Callable[[str], None] = lambda _: None, start: Start | None = None) -> Ended:
    with tempfile.TemporaryDirectory(prefix="tracekit-check-", ignore_cleanup_errors=True) as place:
        return run_module(MODULE, job, Path(place), caches_in(Path(place)), on_word=on_word, start=start)


def _without_tried_settings(request: Request) -> Request:
    """The request without what is no matter here: how it is compiled, and of a workload of the list its sizes, which
    were checked when it was asked for."""
    info = find(request.workload)
    asked = replace(request, mode="default", fullgraph=None, dynamic=None, scope=check_scope(info, request.scope))
    if info not in all_workloads():
        return asked
    return replace(asked, batch_size=1, height=None, width=None, steps=None, dtype=None, max_new_tokens=None)


def check(job: CheckJob, word: Path) -> CheckAnswer:
    """The first thing that keeps a cell from being measured; `word` is a file that says what is looked at."""
    quiet_libraries()
    try:
        if job.gpus:
            from tracekit.measure.device import pick_device

            # What fails here for want of a GPU would stand in the table of cells that were measured on one.
            if pick_device() == "cpu":
                raise TracekitError(
                    f"the cells of this folder were measured on {', '.join(job.gpus)}, and torch sees no GPU here:"
                    " `tracekit sweep --show FOLDER` reports them; to measure here, pass the workloads and another"
                    " --out"
                )
        for request in job.requests:
            word.write_text(request.workload)
            check_buildable(request)
        if job.compiled:
            from tracekit.measure.compilation import check_compilers
            from tracekit.measure.device import pick_device

            check_compilers(pick_device())
    except TracekitError as error:
        return CheckAnswer(str(error), error.below, error.traceback if isinstance(error, TheirCodeError) else None)
    return CheckAnswer()


def check_buildable(request: Request) -> None:
    """Raises TracekitError for what would keep the workload from being built, before anything of it is. What real
    weights are made of, and what a user's own `build()` returns, is known only once they are there."""
    info = find(request.workload)
    builder = load_builder(info)
    if is_own(request.workload):
        importlib.import_module(info.module).prepared(request, "cpu")
        return
    info = look_into(info, request)
    other_scope = request.scope is not None and request.scope not in info.scopes
    if not request.pretrained and (info in WORKLOADS or other_scope):
        check_parts(builder, info, request)


def main(job_path: Path, answer_path: Path) -> None:
    """Does the job and writes the answer."""
    job = msgspec.json.decode(job_path.read_bytes(), type=CheckJob)
    answer_path.write_bytes(msgspec.json.encode(check(job, job_path.with_name(WORD))))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
