"""A cell's process: `python -m tracekit.walks.cell_process JOB ANSWER [SECONDS]`, started by
`sweep/running/sweeping.py` alone. SECONDS is how long importing took where that was done before, for this process and
others (`sweep/running/fork_server.py`).

Whatever happens in it is an answer, for a cell that fails is a result too.
"""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from tracekit.errors import CompileError, DoesNotFitError, TheirCodeError, TracekitError
from tracekit.files import write_replaced
from tracekit.model.child import ChildForm
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload
from tracekit.report.words.noted import LOADING
from tracekit.sweep.cells import CellAnswer, CellFailure, CellJob, CellOutcome, CellRun
from tracekit.walks.building import choose_request_size, quiet_libraries
from tracekit.walks.plan import TimingPlan, stopping_rule
from tracekit.walks.processes import PART, WORD
from tracekit.workloads.registry import check_scope, find, load_builder, look_into
from tracekit.workloads.sizes import way_to_need_less
from tracekit.workloads.sources import read_sources

if TYPE_CHECKING:
    from tracekit.capture.forms import Form
    from tracekit.capture.lockstep import Ranks

#: Of a traceback so many lines are kept.
LAST_LINES = 30
#: Where packages are installed, in a line of a traceback.
PACKAGES = re.compile(r'(?<=File ")[^"]*/(site|dist)-packages/')


@dataclass
class ProgressFile(Silent):
    """Progress that another process shows: what is going on, in a file. `now` is the phase, in words."""

    path: Path
    now: str = "starting"

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None:
        self.now = name
        self.path.write_text(name)

    def detail(self, text: str) -> None:
        self.path.write_text(f"{self.now}, {text}")


#: Told of a cell's run each time it grows: what was found out before a failure, or before the process was killed, is
#: not lost.
Keep = Callable[[CellRun], None]


def attempt(
    job: CellJob, progress: ProgressFile, keep: Keep = lambda _: None, imported_seconds: float = 0.0
) -> CellAnswer:
    """What came of the cell. Only an interrupt is no answer."""
    runs: list[CellRun | None] = [None]

    def grow(run: CellRun) -> None:
        runs.append(run)
        keep(run)

    try:
        _build_and_measure(job, progress, grow, imported_seconds)
    except Exception as error:  # noqa: BLE001 - whatever a model or a compiler raises is what came of the cell.
        return CellAnswer(runs[-1], describe_failure(error, progress.now))
    return CellAnswer(runs[-1], None)


def measure_cell(job: CellJob, place: Path, ranks: Ranks) -> None:
    """One rank's part of a cell; the first leaves in `place` what it is doing, and what was found so far."""
    if ranks.rank:
        _build_and_measure(job, ProgressFile(Path(os.devnull)), lambda _: None, 0.0, ranks)
    else:
        _build_and_measure(job, ProgressFile(place / WORD), keeping(place), 0.0, ranks)


def keeping(place: Path) -> Keep:
    """Leaves in that folder what was found so far."""

    def keep(run: CellRun) -> None:
        write_replaced(place / PART, msgspec.json.encode(run))

    return keep


def _build_and_measure(
    job: CellJob, progress: ProgressFile, grow: Keep, imported_seconds: float, ranks: Ranks | None = None
) -> None:
    began = time.monotonic()
    quiet_libraries()
    progress.phase(LOADING)
    info = find(job.request.workload)
    builder, scope = load_builder(info), check_scope(info, job.request.scope)
    from tracekit.capture import device as devices
    from tracekit.capture import failures
    from tracekit.capture.lockstep import ALONE
    from tracekit.capture.process import call_in_one_chunk
    from tracekit.workloads.own_errors import their_calls
    from tracekit.workloads.scopes import build_scoped

    device = devices.pick_device()
    request = replace(job.request, scope=scope)
    info = look_into(info, request)
    ranks = ranks or ALONE
    # All ranks have the size that the first has room for.
    size, reason = ranks.decided(choose_request_size(info, request, device, devices.free_memory_bytes(device)))
    progress.phase(f"building {info.name} ({size})")
    with failures.out_of_memory_explained(size, way_to_need_less(info, size)):
        workload = build_scoped(builder, info, request, size, device, progress)
        rule = stopping_rule(TimingPlan(job.target_percent, job.budget_seconds), request, workload.settings)
        loaded = imported_seconds + time.monotonic() - began
        sources = read_sources(request.workload)
        settings = replace(workload.settings, nproc=request.nproc)
        environment, which = devices.read_environment(device), devices.gpu_uuid(device)
        run = CellRun(settings, reason, environment, loaded, rule, (), sources, which)
        grow(run)
        with their_calls(workload.settings, failures.is_out_of_memory):
            call_in_one_chunk(lambda: _measure(workload, run, job, progress, grow, ranks))


def _measure(
    workload: BuiltWorkload, run: CellRun, job: CellJob, progress: ProgressFile, grow: Keep, ranks: Ranks
) -> None:
    """Warms up with memory watched, and times."""
    from tracekit.capture import forms, timing
    from tracekit.walks.observers import FormObserver

    makers = {"eager": forms.eager_form, "compiled": forms.compiled_form}
    observer = FormObserver(workload, numerics=False)
    made: tuple[Form, ...] = ()
    for name in job.forms:
        form = makers[name](workload)
        with observer.warming(name):
            warm = forms.warm_up(form, progress, ranks)
        made = (*made, form)
        warmed = ChildForm(name, warm.wall_us, warm.compilation, None, **observer.seen(name))
        run = replace(run, forms=(*run.forms, warmed))
        grow(run)
    progress.phase("measuring memory")
    observer.settle(made)
    timings = timing.Timings()
    with observer.timing(made) as timed:
        timing.time_forms(timed, run.rule, job.order_seed, timings, progress, ranks=ranks)
    found = (replace(form, times=timings.process(form.name), **observer.seen(form.name)) for form in run.forms)
    grow(replace(run, forms=tuple(found)))


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether there was too little memory, the host's or a device's."""
    if isinstance(error, DoesNotFitError | MemoryError):
        return True
    if "torch" not in sys.modules:
        return False
    from tracekit.capture.failures import is_out_of_memory

    return is_out_of_memory(error)


def in_one_line(error: BaseException) -> str:
    """What it says; of an error that was not written for users its type, and the first line."""
    if isinstance(error, TracekitError):
        return " ".join(str(error).split())
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


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
    job = msgspec.json.decode(job_path.read_bytes(), type=CellJob)
    answer = attempt(job, ProgressFile(job_path.with_name(WORD)), keeping(job_path.parent), imported_seconds)
    answer_path.write_bytes(msgspec.json.encode(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(float, sys.argv[3:]))
