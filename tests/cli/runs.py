"""Run folders made by hand, and the command line run as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.sides import make_environment, make_form, make_settings, scaled
from tests.traces import make_call, make_kernel, make_span, write_trace

from tracekit import store
from tracekit.model.run import FormName, FormResult, Recording, Run

ROOT = Path(__file__).parents[2]


def make_run_folder(
    parent: Path, name: str = "flux-compiled", forms: tuple[FormName, ...] = ("eager", "compiled")
) -> Path:
    """A whole run: the compiled form has one kernel a step where the eager one has two, and is twice as fast."""
    with store.begun(parent / name, force=False) as draft:
        return store.finish(_run(forms, draft), draft)


def _run(forms: tuple[FormName, ...], draft: Path) -> Run:
    return Run(
        schema="tracekit.run/1",
        status="incomplete",
        tracekit="0.1.0",
        command="tracekit profile flux --compiled",
        started="2026-01-02T03:04:05+00:00",
        settings=make_settings(),
        size_reason="asked for",
        environment=make_environment(),
        components=(),
        forms=tuple(_record(form, draft) for form in forms),
        order=tuple(form for _ in range(10) for form in forms),
        notes=(),
    )


def _record(name: FormName, draft: Path) -> FormResult:
    kernels = 2 if name == "eager" else 1
    recordings = []
    for kind, steps in (("light", 2), ("rich", 1)):
        events = [event for step in range(steps) for event in _step(step, kernels)]
        events += [make_span(5, 300, name="denoise")] if kind == "rich" else []
        path = write_trace(draft, events).rename(draft / f"{name}-{kind}.json")
        recordings.append(Recording(kind, path.name, steps, path.stat().st_size))  # type: ignore[arg-type]
    form = make_form(name, scaled(1.0 if name == "eager" else 0.5))
    return FormResult(
        form.name, form.warmup_us, form.wall_us, None, form.peak_memory_bytes, form.compilation, tuple(recordings)
    )


def _step(index: int, kernels: int) -> list[dict[str, object]]:
    start = 1000.0 * index
    events = [make_span(start, start + 500, name=f"tracekit.step#{index}")]
    for kernel in range(kernels):
        correlation = 10 * index + kernel + 1
        launched = start + 10 + 100 * kernel
        events += [
            make_call(launched, launched + 5, correlation=correlation),
            make_kernel(launched + 10, launched + 60, name=f"kernel_{kernel}", correlation=correlation),
        ]
    return events


def tracekit(*arguments: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`tracekit ARGUMENTS` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tracekit", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def at_once(processes: int, *arguments: object, folder: Path) -> list[subprocess.CompletedProcess[str]]:
    """`tracekit ARGUMENTS` in so many processes at once."""
    with ThreadPoolExecutor(processes) as threads:
        return list(threads.map(lambda _: tracekit(*arguments, folder=folder), range(processes)))
