"""The part of `tracekit profile` that happens in fresh processes, starting up, repeated timing and following advice:
what asks for them, and what each does (`python -m tracekit.measure.timing_process JOB RESULT`)."""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tracekit.errors import TheirCodeError, TracekitError
from tracekit.measure.building import quiet_libraries
from tracekit.measure.plan import TimingPlan, stopping_rule
from tracekit.measure.process import call_in_one_chunk
from tracekit.measure.processes import caches_in, run_module
from tracekit.measure.run_so_far import with_form, with_notes
from tracekit.model.child import ChildForm, ChildJob, ChildResult
from tracekit.model.progress import Progress, Silent
from tracekit.model.run import FormName, Run
from tracekit.model.timing import StartKind, Startup
from tracekit.model.workload import Request
from tracekit.printing import echo_lines
from tracekit.report.words.progress import STARTING, timing_process
from tracekit.shell import variable_words
from tracekit.statements.noted import AdviceFailed, NoAdvice
from tracekit.wire import decode, encode
from tracekit.workloads.own_errors import their_calls
from tracekit.workloads.registry import find, load_builder
from tracekit.workloads.sizes import way_to_need_less

MODULE = "tracekit.measure.timing_process"
#: How each form is started, in this order: the third finds what the second has left.
STARTS: tuple[tuple[FormName, StartKind], ...] = (
    ("eager", "eager"),
    ("compiled", "compiled_no_cache"),
    ("compiled", "compiled_warm_cache"),
)
#: Added to the seed for the order of the calls that follow advice, so that it is drawn anew.
ORDER_SEED = 1000


def measure_in_processes(
    plan: TimingPlan, request: Request, run: Run, draft: Path, progress: Progress
) -> Iterator[Run]:
    """The run, larger by what each fresh process found, as soon as it has. `request` is the one the run was built from.

    Raises TracekitError with the last lines of a process that failed.
    """
    settings, names = run.settings, tuple(form.name for form in run.forms)
    job = ChildJob(request, settings.size, settings.device, names, None, 0)
    if plan.startup:
        with tempfile.TemporaryDirectory(prefix="tracekit-cache-", ignore_cleanup_errors=True) as cache:
            for name, kind in (start for start in STARTS if start[0] in names):
                progress.stage(kind)
                environment = {} if kind == "eager" else caches_in(Path(cache))
                found = run_child(replace(job, forms=(name,)), draft, progress, STARTING[kind], environment)
                (child,), form = found.forms, run.form(name)
                assert form is not None
                facts = child.compilation
                graphs, hits = (facts.graphs, facts.cache_hits) if facts else (None, None)
                start = Startup(kind, found.load_seconds, child.warmup_us, graphs, hits)
                run = with_form(run, name, startups=(*form.startups, start))
                yield run
    job = replace(job, rule=stopping_rule(plan, request, settings))
    for number in range(1, plan.repeats + 1):
        job = replace(job, order_seed=settings.seed + number)
        own = ("load", "build", *(f"warm-up {name}" for name in names), "timing")
        progress.stage(f"process {number}", like=own if number == 1 else (f"process {number - 1}",))
        found = run_child(job, draft, progress, timing_process(number, plan.repeats))
        for child, form in zip(found.forms, run.forms, strict=True):
            if form.timing is None or child.times is None:
                raise AssertionError("a process is repeated only of a form that was timed, and times it")
            times = replace(child.times, cache_hits=child.compilation.cache_hits if child.compilation else None)
            timing = replace(form.timing, processes=(*form.timing.processes, times))
            run = with_form(run, form.name, timing=timing)
        yield run


def verify_advice(plan: TimingPlan, request: Request, run: Run, draft: Path, progress: Progress) -> Run:
    """The run with what came of its most promising advice, in a fresh process; with a note where there is none, or it
    could not be followed: that is an answer too, and nothing measured is lost for it."""
    from tracekit.comparison.judging.alternatives import judge_advice, top_advice
    from tracekit.reading.sides import compare_forms

    comparison = compare_forms(draft, run, cached=False)
    progress.stage("advice")
    finding = top_advice(comparison)
    if finding is None:
        return with_notes(run, NoAdvice())
    # A flag is `True` or `False` in a finding.
    flags = {"True": True, "False": False}
    advised = replace(request, **{name: flags.get(value, value) for name, value in finding.changes.items()})
    changes = [f"{name.replace('_', ' ')} {value}" for name, value in finding.changes.items()]
    changes += [variable_words(finding.environment)] if finding.environment else []
    settings, rule = run.settings, stopping_rule(plan, request, run.settings)
    seed = settings.seed + ORDER_SEED
    job = ChildJob(advised, settings.size, settings.device, ("eager", "compiled"), rule, seed)
    try:
        found = run_child(job, draft, progress, f"following the advice: {', '.join(changes)}", finding.environment)
    except TracekitError as error:
        return with_notes(run, AdviceFailed(str(error)))
    eager, compiled = found.forms
    if eager.times is None or compiled.times is None:
        raise AssertionError("a job with a rule times its forms")
    seconds = compiled.compilation.seconds if compiled.compilation else None
    recompiled = eager.times.during_timing + compiled.times.during_timing
    verified = judge_advice(comparison, finding, eager.times.steady_us, compiled.times.steady_us, seconds, recompiled)
    return replace(run, verified=verified)


def run_child(
    job: ChildJob, draft: Path, progress: Progress, what: str, environment: dict[str, str] | None = None
) -> ChildResult:
    """What a fresh process found that did the job. What it printed goes on into this process's standard output.

    Raises TracekitError with its last lines if it failed. It does not outlive this call, whatever ends that.
    """
    progress.phase(what)
    ended = run_module(MODULE, encode(job), draft, environment or {})
    print(*ended.lines, sep="\n", flush=True)  # noqa: T201 - into the run's output.log.
    if ended.answer is not None:
        return decode(ended.answer, ChildResult)
    raise TracekitError(f"{what} failed: {ended.how()}")


def work(job: ChildJob) -> ChildResult:
    """Builds, warms up and times as the run's own process does, but watches no provenance and records nothing."""
    began = time.monotonic()
    quiet_libraries()
    info = find(job.request.workload)
    builder = load_builder(info)
    from tracekit.measure import failures
    from tracekit.workloads.scopes import build_scoped

    def measured() -> tuple[ChildForm, ...]:
        # Not before: loading is what a run without tracekit does too.
        from tracekit.measure import forms, timing

        made = tuple(forms.MAKERS[name](workload) for name in job.forms)
        warm = {form.name: forms.warm_up(form, Silent()) for form in made}
        timings = timing.Timings()
        if job.rule:
            timing.time_forms(made, job.rule, job.order_seed, timings, Silent())
        return tuple(
            ChildForm(name, warm[name].wall_us, warm[name].compilation, timings.process(name) if job.rule else None)
            for name in job.forms
        )

    with failures.out_of_memory_explained(job.size, way_to_need_less(info, job.size)):
        workload = build_scoped(builder, info, job.request, job.size, job.device, Silent())
        load_seconds = time.monotonic() - began
        with their_calls(workload.settings, failures.is_out_of_memory):
            return ChildResult(load_seconds, call_in_one_chunk(measured))


def main(job_path: Path, result_path: Path) -> None:
    """Does the job and writes the result; a TracekitError becomes one line and exit code 1."""
    job = decode(job_path.read_bytes(), ChildJob)
    try:
        result_path.write_bytes(encode(work(job)))
    except TracekitError as error:
        if isinstance(error, TheirCodeError):
            echo_lines(error.traceback, err=True)
        # The last line that is printed, whatever the model has printed before.
        sys.stdout.flush()
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
