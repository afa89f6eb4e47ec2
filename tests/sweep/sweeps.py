"""Cells of a sweep made by hand, and what stands for their processes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
from msgspec.structs import replace

from tracekit.measure.plan import TimingPlan, stopping_rule
from tracekit.measure.processes import Ended
from tracekit.model.cell import CellJob, CellRun, Source
from tracekit.model.child import ChildForm
from tracekit.model.gpu import FormMemory, GpuSample, GpuState, MemoryUse
from tracekit.model.run import CompileFacts, Environment, FormName
from tracekit.model.timing import ProcessTimes, StoppingRule
from tracekit.model.workload import Request
from tracekit.sweep import cells as sweep
from tracekit.sweep.running import requirements, sweeping
from tracekit.sweep.running.matrix import make_cell

from ..sides import make_settings

GIB = 2**30
BEGIN = datetime(2026, 11, 21, 19, tzinfo=UTC)


def make_environment(gpu: str | None = "NVIDIA H200", torch: str = "2.11.0") -> Environment:
    packages = {"torch": torch}
    return Environment("3.12", "Linux x86_64", "a CPU", 16, gpu, None, None, None, packages, None)


def scattered(us: float, *, calls: int = 40, share: float = 0.004, seed: int = 0) -> tuple[float, ...]:
    """So many calls around `us`, the same for the same seed."""
    return tuple(float(each) for each in us * np.exp(np.random.default_rng(seed).normal(0, share, calls)))


def make_child(
    name: FormName,
    wall_us: Sequence[float],
    *,
    first_us: float = 5_000.0,
    reserved: float = 2.0,
    during_timing: int = 0,
) -> ChildForm:
    """A form that was timed, with `reserved` GiB at its height."""
    use = MemoryUse(int(reserved * GIB) // 2, int(reserved * GIB))
    sample = GpuSample("during", 1.0, 1980, 2600, 400.0, 45, (), 0)
    facts = CompileFacts(1, 0, first_us / 1e6, 0, 0) if name == "compiled" else None
    return ChildForm(
        name,
        (first_us, wall_us[0], wall_us[0]),
        facts,
        ProcessTimes(tuple(wall_us), tuple(us * 0.9 for us in wall_us), (), "asked number", 1.0, during_timing),
        FormMemory(GIB, use, use, 0, 0),
        GpuState("nvml", (sample,)),
    )


def eager_cell(workload: str = "vit", **asked: Any) -> sweep.Cell:
    return make_cell("eager", Request(workload, **asked))


def compiled_cell(workload: str = "vit", mode: str = "default", **asked: Any) -> sweep.Cell:
    return make_cell("compiled", Request(workload, mode=mode, **{"scope": "model", **asked}))


def started(cell: sweep.Cell) -> str:
    """When it began: each cell at a time of its own, so that none runs beside another."""
    return (BEGIN - timedelta(seconds=crc32(cell.key.encode()) % 10**8)).isoformat()


def make_result(
    cell: sweep.Cell,
    eager_us: float = 10_000.0,
    compiled_us: float = 5_000.0,
    *,
    seconds: float = 20.0,
    compile_us: float = 20e6,
    reserved: float = 2.0,
    seed: int = 1,
    share: float = 0.004,
    environment: Environment | None = None,
    during_timing: int = 0,
) -> sweep.CellResult:
    """A cell that was measured: both forms, or eager alone, as the cell says."""
    asked = cell.request
    settings = replace(
        make_settings(),
        workload=asked.workload,
        batch_size=asked.batch_size,
        scope=asked.scope or "model",
        mode=asked.mode,
        height=asked.height,
        width=asked.width,
        steps=None,
        prompt=asked.prompt,
        iterations=40,
    )
    forms = [make_child("eager", scattered(eager_us, seed=seed, share=share))]
    if cell.form == "compiled":
        walls = scattered(compiled_us, seed=seed + 100, share=share)
        forms.append(make_child("compiled", walls, first_us=compile_us, reserved=reserved, during_timing=during_timing))
    run = CellRun(
        settings, "as asked", environment or make_environment(), 3.0, StoppingRule(40, 0.01, 30.0, 20), tuple(forms)
    )
    return sweep.CellResult("tracekit.sweep-cell/1", "0.1.0", cell, "done", started(cell), seconds, run, None)


def repeated(
    cell: sweep.Cell, *speedups: float, eager_us: float = 10_000.0, **more: Any
) -> tuple[sweep.CellResult, ...]:
    """The cell in a process for each speed-up, one after another, each on a host and a GPU of its own."""
    found = []
    for process, speedup in enumerate(speedups, 1):
        result = make_result(cell, eager_us, eager_us / speedup, seed=process, **more)
        assert result.run is not None
        run = replace(result.run, gpu_uuid=f"GPU-{process}")
        when = (datetime.fromisoformat(result.started) + timedelta(minutes=process)).isoformat()
        found.append(replace(result, started=when, run=run, process=process, host=f"host-{process}"))
    return tuple(found)


def make_failure(
    cell: sweep.Cell, kind: sweep.CellOutcome = "out_of_memory", message: str = "not enough GPU memory"
) -> sweep.CellResult:
    failure = sweep.CellFailure(kind, message, "compiling", ("Traceback", "the last line"))
    return sweep.CellResult("tracekit.sweep-cell/1", "0.1.0", cell, kind, started(cell), 12.0, None, failure)


CALL = sweep.AskedCall("tracekit sweep vit", "2026-11-21T19:00:00+00:00", 0, 40, None, None, None)


def make_asked(cells: Sequence[sweep.Cell], suite: str | None = None) -> sweep.Asked:
    return sweep.Asked("tracekit.sweep-asked/1", "vit", suite, tuple(cells), (CALL,))


@dataclass
class Children:
    """Stands for `run_module`: a cell was measured, twice as fast compiled, unless `ends` says how its process ends, or
    its mode has `no_memory`; the look before finds what `found` says. What was asked is kept."""

    found: sweep.CheckAnswer = field(default_factory=sweep.CheckAnswer)
    ends: list[Ended] = field(default_factory=list)
    no_memory: str | None = None
    sources: tuple[Source, ...] = ()
    interrupt_at: int | None = None
    jobs: list[CellJob] = field(default_factory=list)
    checked: list[sweep.CheckJob] = field(default_factory=list)
    environments: list[dict[str, str]] = field(default_factory=list)
    more: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, module: str, job: bytes, draft: Path, environment: dict[str, str], **more: Any) -> Ended:
        self.more.append(more)
        if module == requirements.MODULE:
            self.checked.append(msgspec.json.decode(job, type=sweep.CheckJob))
            return self.ends.pop(0) if self.ends else answered(self.found)
        assert module == sweeping.MODULE
        if len(self.jobs) == self.interrupt_at:
            raise KeyboardInterrupt
        asked = msgspec.json.decode(job, type=CellJob)
        self.jobs.append(asked)
        self.environments.append(environment)
        if self.ends:
            return self.ends.pop(0)
        if asked.request.mode == self.no_memory:
            return answered(
                sweep.CellAnswer(None, sweep.CellFailure("out_of_memory", "not enough GPU memory", "building"))
            )
        run = make_result(make_cell(asked.forms[-1], asked.request)).run
        assert run is not None
        rule = stopping_rule(TimingPlan(asked.target_percent, asked.budget_seconds), asked.request, run.settings)
        return answered(sweep.CellAnswer(replace(run, rule=rule, sources=self.sources), None))


def answered(answer: sweep.CellAnswer | sweep.CheckAnswer, *lines: str) -> Ended:
    """The end of a process that answered so, and printed these."""
    return Ended(0, msgspec.json.encode(answer), lines)
