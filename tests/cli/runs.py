"""Run folders made by hand, and the command line run as a user would."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from tests.sides import make_form, make_run, scaled
from tests.traces import make_call, make_kernel, make_span, write_trace

from tracekit import store
from tracekit.cli.main import main
from tracekit.model.run import FormName, FormResult, Recording

ROOT = Path(__file__).parents[2]


def make_run_folder(
    parent: Path, name: str = "flux-compiled", forms: tuple[FormName, ...] = ("eager", "compiled")
) -> Path:
    """A whole run: the compiled form has one kernel a step where the eager one has two, and is twice as fast."""
    with store.begun(parent / name, force=False) as draft:
        recorded = tuple(_record(form, draft) for form in forms)
        run = make_run(status="incomplete", components=(), notes=(), forms=recorded, order=forms * 10)
        return store.finish(run, draft)


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


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    """What a JSON file holds, written back as the block leaves it; of a run folder its manifest."""
    path = path / store.MANIFEST if path.is_dir() else path
    told = json.loads(path.read_text())
    yield told
    path.write_text(json.dumps(told))


def interrupted(folder: Path) -> Path:
    """The run as if it had been interrupted."""
    with edited(folder) as told:
        told["status"] = "incomplete"
    return folder.rename(folder.with_name(f"{folder.name}.incomplete"))


def invoke(*arguments: object) -> Result:
    """`tracekit ARGUMENTS` in this process."""
    return CliRunner().invoke(main, list(map(str, arguments)))


def assert_refused(result: Result, message: str) -> None:
    """One line of error that says so, on standard error."""
    assert (result.exit_code, message in result.stderr) == (1, True), result.output
    assert result.stderr.startswith("error: ") and len(result.stderr.splitlines()) == 1, result.stderr


def tracekit(*arguments: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`tracekit ARGUMENTS` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tracekit", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def tracekit_without(packages: set[str], *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`tracekit ARGUMENTS` where none of these packages is installed."""
    code = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, {str(ROOT)!r})
from tracekit.cli.main import main
main()
"""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def at_once(processes: int, *arguments: object, folder: Path) -> list[subprocess.CompletedProcess[str]]:
    """`tracekit ARGUMENTS` in so many processes at once."""
    with ThreadPoolExecutor(processes) as threads:
        return list(threads.map(lambda _: tracekit(*arguments, folder=folder), range(processes)))
