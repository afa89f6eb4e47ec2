"""A cell's process: `python -m tracekit.sweep.running.cell_process JOB ANSWER [SECONDS]`, started by `sweeping.py`
alone. SECONDS is how long importing took where that was done before, for this process and others (`fork_server.py`).

Whatever happens in it is an answer, for a cell that fails is a result too.
"""

import re
import sys
import traceback
from pathlib import Path

from tracekit.errors import CompileError, TheirCodeError, TracekitError
from tracekit.measure.processes import WORD
from tracekit.measure.timed_cell import Keep, ProgressFile, in_one_line, keeping, measure_cell, ran_out_of_memory
from tracekit.model.cell import CellJob, CellRun
from tracekit.sweep.cells import CellAnswer, CellFailure, CellOutcome
from tracekit.wire import decode, encode

#: Of a traceback so many lines are kept.
LAST_LINES = 30
#: Where packages are installed, in a line of a traceback.
PACKAGES = re.compile(r'(?<=File ")[^"]*/(site|dist)-packages/')


def attempt(
    job: CellJob, progress: ProgressFile, keep: Keep = lambda _: None, imported_seconds: float = 0.0
) -> CellAnswer:
    """What came of the cell. Only an interrupt is no answer."""
    runs: list[CellRun | None] = [None]

    def grow(run: CellRun) -> None:
        runs.append(run)
        keep(run)

    try:
        measure_cell(job, progress, grow, imported_seconds)
    except Exception as error:  # noqa: BLE001 - whatever a model or a compiler raises is what came of the cell.
        return CellAnswer(runs[-1], describe_failure(error, progress.now))
    return CellAnswer(runs[-1], None)


def describe_failure(error: Exception, during: str) -> CellFailure:
    """The error in one line, and what else it says: for an error written for users its lines below and what torch said,
    or the user's own traceback; else its traceback's end."""
    kind: CellOutcome = "out_of_memory" if ran_out_of_memory(error) else "failed"
    if not isinstance(error, TracekitError):
        return CellFailure(kind, in_one_line(error), during, _traceback_lines(error))
    if isinstance(error, TheirCodeError):
        more = tuple(error.traceback.splitlines()[-LAST_LINES:])
    else:
        # What an error of the compiler stands for is nowhere else: there is no log of a cell.
        more = _traceback_lines(error.__cause__) if isinstance(error, CompileError) and error.__cause__ else ()
    return CellFailure(kind, in_one_line(error), during, (*error.below, *more))


def _traceback_lines(error: BaseException) -> tuple[str, ...]:
    lines = "".join(traceback.format_exception(error)).splitlines()[-LAST_LINES:]
    # Where packages are installed is this machine's matter.
    return tuple(PACKAGES.sub("", line) for line in lines)


def main(job_path: Path, answer_path: Path, imported_seconds: float = 0.0) -> None:
    """Does the job and writes the answer."""
    job = decode(job_path.read_bytes(), CellJob)
    answer = attempt(job, ProgressFile(job_path.with_name(WORD)), keeping(job_path.parent), imported_seconds)
    answer_path.write_bytes(encode(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(float, sys.argv[3:]))
