"""Builds a workload and times its forms, as a cell is asked to, in the process that calls it."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from tracekit.errors import DoesNotFitError, TracekitError
from tracekit.files import write_replaced
from tracekit.measure.building import choose_request_size, quiet_libraries
from tracekit.measure.plan import TimingPlan, stopping_rule
from tracekit.measure.process import call_in_one_chunk
from tracekit.measure.processes import PART
from tracekit.measure.ranks import ALONE, Ranks
from tracekit.model.cell import CellJob, CellRun
from tracekit.model.child import ChildForm
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload
from tracekit.report.words.progress import LOADING
from tracekit.wire import encode
from tracekit.workloads.own_errors import their_calls
from tracekit.workloads.registry import check_scope, find, load_builder, look_into
from tracekit.workloads.sizes import way_to_need_less
from tracekit.workloads.unlisted import read_sources


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


def keeping(place: Path) -> Keep:
    """Leaves in that folder what was found so far."""

    def keep(run: CellRun) -> None:
        write_replaced(place / PART, encode(run))

    return keep


def measure_cell(
    job: CellJob, progress: ProgressFile, grow: Keep, imported_seconds: float = 0.0, ranks: Ranks = ALONE
) -> None:
    """Tells `grow` of all that is known of the cell each time that there is more, its times at the end. Raises whatever
    keeps it from being measured; `imported_seconds` is how long importing took before."""
    began = time.monotonic()
    quiet_libraries()
    progress.phase(LOADING)
    info = find(job.request.workload)
    builder, scope = load_builder(info), check_scope(info, job.request.scope)
    from tracekit.measure import device as devices
    from tracekit.measure import failures
    from tracekit.workloads.scopes import build_scoped

    device = devices.pick_device()
    request = replace(job.request, scope=scope)
    info = look_into(info, request)
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
    from tracekit.measure import forms, timing
    from tracekit.measure.gpu_state import GpuWatch

    gpu = GpuWatch(workload.settings.device)
    made = []
    for name in job.forms:
        form = forms.MAKERS[name](workload)
        with gpu.warming(name):
            warm = forms.warm_up(form, progress, ranks)
        made.append(form)
        warmed = ChildForm(name, warm.wall_us, warm.compilation, None, **gpu.seen(name))
        run = replace(run, forms=(*run.forms, warmed))
        grow(run)
    progress.phase("measuring memory")
    gpu.settle(tuple(made))
    timings = timing.Timings()
    with gpu.timing(tuple(made)) as timed:
        timing.time_forms(timed, run.rule, job.order_seed, timings, progress, ranks=ranks)
    found = (replace(form, times=timings.process(form.name), **gpu.seen(form.name)) for form in run.forms)
    grow(replace(run, forms=tuple(found)))


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether there was too little memory, the host's or a device's."""
    if isinstance(error, DoesNotFitError | MemoryError):
        return True
    if "torch" not in sys.modules:
        return False
    from tracekit.measure.failures import is_out_of_memory

    return is_out_of_memory(error)


def in_one_line(error: BaseException) -> str:
    """What it says; of an error that was not written for users its type, and the first line."""
    if isinstance(error, TracekitError):
        return " ".join(str(error).split())
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
