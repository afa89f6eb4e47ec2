"""The look before a sweep: `python -m tracekit.walks.check_child JOB ANSWER`, started by `walks/sweep_check.py` alone.

In a process of its own: what it loads is large, and a user's own code is run in it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from tracekit.errors import TheirCodeError, TracekitError
from tracekit.model.sweep import CheckAnswer, CheckJob
from tracekit.walks.hushing import hush_libraries
from tracekit.walks.processes import WORD
from tracekit.workloads.registry import check_buildable


def check(job: CheckJob, word: Path) -> CheckAnswer:
    """The first thing that keeps a cell from being measured."""
    hush_libraries()
    try:
        _check_device(job.gpus)
        for request in job.requests:
            word.write_text(request.workload)
            check_buildable(request)
        if job.compiled:
            from tracekit.capture.device import pick_device
            from tracekit.capture.inductor import check_compilers

            check_compilers(pick_device())
    except TracekitError as error:
        return CheckAnswer(str(error), error.below, error.traceback if isinstance(error, TheirCodeError) else None)
    return CheckAnswer()


def _check_device(gpus: tuple[str, ...]) -> None:
    """Raises TracekitError where the other cells were measured on GPUs and here is none: what fails here for want of
    one would stand in their table as a result of theirs."""
    if not gpus:
        return
    from tracekit.capture.device import pick_device

    if pick_device() == "cpu":
        raise TracekitError(
            f"what this folder holds was measured on {', '.join(gpus)}, and torch sees no GPU here: `tracekit sweep"
            " --show FOLDER` shows what is there; to measure here, name the workloads and another --out"
        )


def main(job_path: Path, answer_path: Path) -> None:
    """Does the job and writes the answer."""
    job = msgspec.json.decode(job_path.read_bytes(), type=CheckJob)
    answer_path.write_bytes(msgspec.json.encode(check(job, job_path.with_name(WORD))))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
