"""A cell's process: `python -m tracekit.walks.cell_process JOB ANSWER [SECONDS]`, started by `walks/sweeping.py` alone.
SECONDS is how long importing took where that was done before, for this process and others (`walks/fork_server.py`).

Whatever happens in it is an answer, for a cell that fails is a result too.
"""

from __future__ import annotations

import sys
import sysconfig
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tracekit.errors import CompileError, DoesNotFitError, TheirCodeError, TracekitError
from tracekit.files import write_replaced
from tracekit.model.child import ChildForm
from tracekit.model.sweep import CellAnswer, CellFailure, CellJob, CellOutcome, CellRun
from tracekit.model.workload import BuiltWorkload
from tracekit.report.words.noted import LOADING
from tracekit.walks.building import choose_request_size, quiet_libraries
from tracekit.walks.plan import TimingPlan, stopping_rule
from tracekit.walks.processes import PART, WORD
from tracekit.workloads.registry import check_scope, find, load_builder, look_into
from tracekit.workloads.sizes import way_to_need_less
from tracekit.workloads.sources import read_sources

if TYPE_CHECKING:
    from tracekit.capture.forms import Form

#: Of a traceback so many lines are kept.
LAST_LINES = 30


@dataclass
class ProgressFile:
    """Progress that another process shows: what is going on, in a file."""

    path: Path
    _phase: str = "starting"

    @property
    def now(self) -> str:
        """The phase that is going on, in words."""
        return self._phase

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None:
        self._phase = name
        self.path.write_text(name)

    def detail(self, text: str) -> None:
        self.path.write_text(f"{self._phase}, {text}")

    def advance(self) -> None: ...


class Attempt:
    """One cell, step by step. `run` grows, and `keep` is told each time: what was found out before a failure, or before
    the process was killed, is not lost."""

    def __init__(
        self, job: CellJob, progress: ProgressFile, keep: Callable[[CellRun], None], imported_seconds: float
    ) -> None:
        self._job, self._progress, self._keep, self._imported_seconds = job, progress, keep, imported_seconds
        self.run: CellRun | None = None

    def make(self) -> None:
        """Builds, warms up with memory watched, and times."""
        began = time.monotonic()
        quiet_libraries()
        self._progress.phase(LOADING)
        info = find(self._job.request.workload)
        builder, scope = load_builder(info), check_scope(info, self._job.request.scope)
        from tracekit.capture import device as devices
        from tracekit.capture import failures
        from tracekit.capture.device import read_environment
        from tracekit.capture.process import call_in_one_chunk
        from tracekit.workloads.own_errors import their_calls
        from tracekit.workloads.scopes import build_scoped

        device = devices.pick_device()
        request = replace(self._job.request, scope=scope)
        info = look_into(info, request)
        size, reason = choose_request_size(info, request, device, devices.free_memory_bytes(device))
        self._progress.phase(f"building {info.name} ({size})")
        with failures.out_of_memory_explained(size, way_to_need_less(info, size)):
            workload = build_scoped(builder, info, request, size, device, self._progress)
            plan = TimingPlan(self._job.target_percent, self._job.budget_seconds)
            rule = stopping_rule(plan, request, workload.settings)
            loaded = self._imported_seconds + time.monotonic() - began
            sources = read_sources(request.workload)
            self._grow(CellRun(workload.settings, reason, read_environment(device), loaded, rule, (), sources))
            with their_calls(workload.settings, failures.is_out_of_memory):
                call_in_one_chunk(lambda: self._measure(workload))

    def _measure(self, workload: BuiltWorkload) -> None:
        from tracekit.capture import forms, timing, warmup
        from tracekit.walks.observers import FormObserver

        assert self.run is not None
        makers = {"eager": forms.eager_form, "compiled": forms.compiled_form}
        observer = FormObserver(workload, numerics=False)
        made: list[Form] = []
        for name in self._job.forms:
            form = makers[name](workload)
            with observer.warming(name):
                warm = warmup.warm_up(form, self._progress)
            made.append(form)
            found = ChildForm(name, warm.wall_us, warm.compilation, None, observer.memory_of(name))
            self._grow(replace(self.run, forms=(*self.run.forms, found)))
        self._progress.phase("measuring memory")
        observer.settle(tuple(made))
        timings = timing.Timings()
        with observer.timing(tuple(made)) as timed:
            timing.time_forms(timed, self.run.rule, self._job.order_seed, timings, self._progress)
        timed_forms = tuple(
            replace(
                form,
                times=timings.process(form.name),
                memory=observer.memory_of(form.name),
                gpu_state=observer.state_of(form.name),
            )
            for form in self.run.forms
        )
        self._grow(replace(self.run, forms=timed_forms))

    def _grow(self, run: CellRun) -> None:
        self.run = run
        self._keep(run)


def attempt(
    job: CellJob,
    progress: ProgressFile,
    keep: Callable[[CellRun], None] = lambda _: None,
    imported_seconds: float = 0.0,
) -> CellAnswer:
    """What came of the cell. Only an interrupt is no answer."""
    cell = Attempt(job, progress, keep, imported_seconds)
    try:
        cell.make()
    except Exception as error:  # noqa: BLE001 - whatever a model or a compiler raises is what came of the cell.
        return CellAnswer(cell.run, describe_failure(error, progress.now))
    return CellAnswer(cell.run, None)


def describe_failure(error: Exception, during: str) -> CellFailure:
    """The error in one line, and what else it says: for an error written for users its lines below and what torch said,
    or the user's own traceback; else its traceback's end."""
    kind: CellOutcome = "out_of_memory" if _is_out_of_memory(error) else "failed"
    if not isinstance(error, TracekitError):
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        message = f"{type(error).__name__}: {first}" if first else type(error).__name__
        return CellFailure(kind, message, during, _traceback_lines(error))
    if isinstance(error, TheirCodeError):
        more = tuple(error.traceback.splitlines()[-LAST_LINES:])
    else:
        # What an error of the compiler stands for is nowhere else: there is no log of a cell.
        more = _traceback_lines(error.__cause__) if isinstance(error, CompileError) and error.__cause__ else ()
    return CellFailure(kind, " ".join(str(error).split()), during, (*error.below, *more))


def _traceback_lines(error: BaseException) -> tuple[str, ...]:
    lines = "".join(traceback.format_exception(error)).splitlines()[-LAST_LINES:]
    # Where packages are installed is this machine's matter.
    return tuple(line.replace(f"{sysconfig.get_path('purelib')}/", "") for line in lines)


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, DoesNotFitError) or "torch" not in sys.modules:
        return isinstance(error, DoesNotFitError | MemoryError)
    from tracekit.capture.failures import is_out_of_memory

    return is_out_of_memory(error)


def main(job_path: Path, answer_path: Path, imported_seconds: float = 0.0) -> None:
    """Does the job and writes the answer."""
    job = msgspec.json.decode(job_path.read_bytes(), type=CellJob)
    part = job_path.with_name(PART)

    def keep(run: CellRun) -> None:
        write_replaced(part, msgspec.json.encode(run))

    answer = attempt(job, ProgressFile(job_path.with_name(WORD)), keep, imported_seconds)
    answer_path.write_bytes(msgspec.json.encode(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(float, sys.argv[3:]))
