"""The part of `tracekit profile` that happens in fresh processes: repeated timing, and starting up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec

import tracekit
from tracekit.errors import TracekitError
from tracekit.model.child import ChildForm, ChildJob, ChildResult
from tracekit.model.progress import Progress
from tracekit.model.run import FormName, FormResult, Run
from tracekit.model.timing import StartKind, Startup
from tracekit.model.workload import Request
from tracekit.walks.timing_plan import TimingPlan, stopping_rule

#: In this order: the second finds what the first has left.
COMPILED_STARTS: dict[StartKind, str] = {"compiled_no_cache": "no cache", "compiled_warm_cache": "warm cache"}
#: How often it is looked whether a process has ended.
LOOK_SECONDS = 0.2
#: How long a process may take to end when it is told to.
PATIENCE_SECONDS = 5.0
#: Beside its job, where a process may say what it is doing.
WORD = "word"
#: Beside its job, where a process may leave what it has found out, should it not live to answer.
PART = "part.json"
#: Of what a process that failed has printed, so much is told.
LAST_LINES = 3


def measure_in_processes(
    plan: TimingPlan, request: Request, run: Run, draft: Path, progress: Progress
) -> Iterator[Run]:
    """The run, larger by what each fresh process found, as soon as it has. `request` is the one the run was built from.

    Raises TracekitError with the last lines of a process that failed.
    """
    size, device = run.settings.size, run.settings.device
    names = tuple(form.name for form in run.forms)
    if plan.startup:
        job = ChildJob(request, size, device, (), None, 0)
        for name, start in _starts(job, names, draft, progress):
            run = _with_forms(run, {name: replace(_form(run, name), startups=(*_form(run, name).startups, start))})
            yield run
    rule = stopping_rule(plan, request, run.settings)
    for number in range(1, plan.repeats + 1):
        job = ChildJob(request, size, device, names, rule, run.settings.seed + number)
        found = run_child(job, draft, progress, f"timing in a process of its own, {number} of {plan.repeats}")
        run = _with_forms(run, {child.name: _repeated(_form(run, child.name), child) for child in found.forms})
        yield run


def _starts(
    job: ChildJob, names: tuple[FormName, ...], draft: Path, progress: Progress
) -> Iterator[tuple[FormName, Startup]]:
    """Each form's starts, the compiled form's first with an empty cache and then with what that left in it."""
    if "eager" in names:
        yield "eager", _start("eager", replace(job, forms=("eager",)), draft, progress, "starting up eager", {})
    if "compiled" not in names:
        return
    compiled = replace(job, forms=("compiled",))
    with tempfile.TemporaryDirectory(prefix="tracekit-cache-", ignore_cleanup_errors=True) as cache:
        caches = {"TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "TRITON_CACHE_DIR": f"{cache}/triton"}
        for kind, what in COMPILED_STARTS.items():
            yield "compiled", _start(kind, compiled, draft, progress, f"starting up compiled, {what}", caches)


def _start(
    kind: StartKind, job: ChildJob, draft: Path, progress: Progress, what: str, environment: dict[str, str]
) -> Startup:
    found = run_child(job, draft, progress, what, environment)
    form = found.forms[0]
    facts = form.compilation
    return Startup(
        kind=kind,
        load_seconds=found.load_seconds,
        calls_us=form.warmup_us,
        graphs=facts.graphs if facts else None,
        cache_hits=facts.cache_hits if facts else None,
    )


def _form(run: Run, name: FormName) -> FormResult:
    return next(form for form in run.forms if form.name == name)


def _with_forms(run: Run, changed: dict[FormName, FormResult]) -> Run:
    return replace(run, forms=tuple(changed.get(form.name, form) for form in run.forms))


def _repeated(form: FormResult, child: ChildForm) -> FormResult:
    if form.timing is None or child.times is None:
        raise AssertionError("a process is repeated only of a form that was timed, and times it")
    hits = child.compilation.cache_hits if child.compilation else None
    times = replace(child.times, cache_hits=hits)
    return replace(form, timing=replace(form.timing, processes=(*form.timing.processes, times)))


def run_child(
    job: ChildJob, draft: Path, progress: Progress, what: str, environment: dict[str, str] | None = None
) -> ChildResult:
    """What a fresh process found that did the job. What it printed goes on into this process's standard output.

    Raises TracekitError with its last lines if it failed. It does not outlive this call, whatever ends that.
    """
    progress.phase(what)
    ended = run_module("tracekit.walks.child", msgspec.json.encode(job), draft, environment or {})
    print(*ended.lines, sep="\n", flush=True)  # noqa: T201 - into the run's output.log.
    if ended.answer is None:
        raise TracekitError(f"{what} failed ({describe_ending(ended.code)}): {_last(ended.lines)}")
    return msgspec.json.decode(ended.answer, type=ChildResult)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its code (negative: the signal), what it printed, and its answer, None if it has none.
    `late` is whether it was ended here, because its time was up; `word` the last it said of what it was doing; `part`
    what it had found out by then, None where it left nothing."""

    code: int
    answer: bytes | None
    lines: tuple[str, ...]
    late: bool = False
    word: str = ""
    part: bytes | None = None


class Running(Protocol):
    """A process, as `subprocess.Popen` has one."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


#: Starts `python -m MODULE WORD...` with more in its environment, printing into a file; its group ends with the block.
Start = Callable[[str, Sequence[str], dict[str, str], Path], AbstractContextManager[Running]]


def run_module(
    module: str,
    job: bytes,
    draft: Path,
    environment: dict[str, str],
    *,
    limit_seconds: float | None = None,
    on_word: Callable[[str], None] = lambda _: None,
    start: Start | None = None,
) -> Ended:
    """Runs `python -m MODULE JOB ANSWER` until it ends, or its time is up. Neither it nor what it started outlives this
    call, and it does not outlive this process. `start` is how it is started: as a fresh process if nothing is said.

    `on_word` is told what the process has written into the file `word` beside its job, whenever that changes.
    """
    with tempfile.TemporaryDirectory(prefix=".child-", dir=draft, ignore_cleanup_errors=True) as place:
        names = ("job.json", "result.json", "output.log", WORD, PART)
        asked, answer, printed, word, part = (Path(place) / name for name in names)
        asked.write_bytes(job)
        printed.touch()
        said, late = "", False
        with (start or start_fresh)(module, (str(asked), str(answer)), environment, printed) as process:
            began = time.monotonic()
            while process.poll() is None:
                # Not wait(): a signal that another thread receives would not end it.
                time.sleep(LOOK_SECONDS)
                if word.exists() and (now := word.read_text(errors="replace")) != said:
                    said = now
                    on_word(said)
                if late := limit_seconds is not None and time.monotonic() - began > limit_seconds:
                    end_group(process)
        assert process.returncode is not None
        lines = tuple(printed.read_text(errors="replace").splitlines())
        whole = process.returncode == 0 and answer.is_file()
        left = part.read_bytes() if part.is_file() else None
        return Ended(process.returncode, answer.read_bytes() if whole else None, lines, late, said, left)


@contextmanager
def start_fresh(
    module: str, words: Sequence[str], environment: dict[str, str], printed: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, the leader of a group of its own: Inductor starts more, and all of them end with the block."""
    with printed.open("ab") as log:
        process = subprocess.Popen(
            tied_command(module, words),
            env=surroundings(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            end_group(process)


def tied_command(module: str, words: Sequence[str]) -> list[str]:
    """What runs `python -m MODULE WORD...` in a process that ends with this one."""
    return [sys.executable, "-P", "-m", "tracekit.walks.end_with_parent", str(os.getpid()), module, *words]


def surroundings(environment: dict[str, str]) -> dict[str, str]:
    """This process's environment with that in it, and this tracekit to be imported."""
    here = str(Path(tracekit.__file__).parents[1])
    paths = [path for path in (os.environ.get("PYTHONPATH"), here) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment}


def end_group(process: Running) -> None:
    """Ends the process and all of its group: what it started may live on after it, and may not hear a polite word."""
    if process.poll() is None:
        _signal_group(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_SECONDS)
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: Running, number: signal.Signals) -> None:
    """As long as anybody is in a group no other process is given its number; an empty one is gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def describe_ending(code: int) -> str:
    """How a process ended, in words."""
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _last(lines: Sequence[str]) -> str:
    if lines and lines[-1].startswith("error: "):
        return lines[-1].removeprefix("error: ")
    told = [line.strip().removeprefix("error: ") for line in lines if line.strip()][-LAST_LINES:]
    return " / ".join(told) or "it printed nothing"
