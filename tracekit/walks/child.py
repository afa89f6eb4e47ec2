"""One fresh process of a run: `python -m tracekit.walks.child JOB RESULT`, started by `walks/processes.py` alone."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

from tracekit.errors import TheirCodeError, TracekitError
from tracekit.model.child import ChildForm, ChildJob, ChildResult
from tracekit.model.progress import Silent
from tracekit.model.run import FormName
from tracekit.model.workload import BuiltWorkload
from tracekit.printing import echo_lines
from tracekit.walks.hushing import hush_libraries
from tracekit.workloads.registry import find, load_builder
from tracekit.workloads.sizes import way_to_need_less


def main(job_path: Path, result_path: Path) -> None:
    """Does the job and writes the result; a TracekitError becomes one line and exit code 1."""
    job = msgspec.json.decode(job_path.read_bytes(), type=ChildJob)
    try:
        result_path.write_bytes(msgspec.json.encode(work(job)))
    except TracekitError as error:
        if isinstance(error, TheirCodeError):
            echo_lines(error.traceback, err=True)
        sys.exit(f"error: {error}")


def work(job: ChildJob) -> ChildResult:
    """Builds, warms up and times as the run's own process does, but watches no provenance and records nothing."""
    began = time.monotonic()
    hush_libraries()
    info = find(job.request.workload)
    builder = load_builder(info)
    from tracekit.capture import failures
    from tracekit.capture.process import call_in_one_chunk
    from tracekit.workloads.own_errors import their_calls
    from tracekit.workloads.scopes import build_scoped

    with failures.out_of_memory_explained(job.size, way_to_need_less(info, job.size)):
        workload = build_scoped(builder, info, job.request, job.size, job.device, Silent())
        load_seconds = time.monotonic() - began
        with their_calls(workload.settings, failures.is_out_of_memory):
            return ChildResult(load_seconds, call_in_one_chunk(lambda: _measure(workload, job)))


def _measure(workload: BuiltWorkload, job: ChildJob) -> tuple[ChildForm, ...]:
    from tracekit.capture import forms, timing, warmup

    makers = {"eager": forms.eager_form, "compiled": forms.compiled_form}
    made = tuple(makers[name](workload) for name in job.forms)
    warm = {form.name: warmup.warm_up(form, Silent()) for form in made}
    timings = timing.Timings()
    if job.rule:
        timing.time_forms(made, job.rule, job.order_seed, timings, Silent())

    def told(name: FormName) -> ChildForm:
        times = timings.process(name) if job.rule else None
        return ChildForm(name, warm[name].wall_us, warm[name].compilation, times)

    return tuple(map(told, job.forms))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
