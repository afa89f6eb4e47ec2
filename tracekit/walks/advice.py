"""The part of `tracekit profile` that follows its own advice, and says what came of it (`--verify-advice`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tracekit.comparison import compare
from tracekit.comparison.judging.alternatives import judge_advice, top_advice
from tracekit.errors import TracekitError
from tracekit.model.child import ChildJob
from tracekit.model.note import Noted
from tracekit.model.progress import Progress
from tracekit.model.run import Run
from tracekit.model.workload import Request
from tracekit.shell import variable_words
from tracekit.walks.observers import with_notes
from tracekit.walks.plan import TimingPlan, stopping_rule
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side
from tracekit.walks.timing_process import run_child

#: What a run notes that was to verify its advice, and had none, or could not follow it.
NO_ADVICE, ADVICE_FAILED = "no_advice", "advice_failed"
#: Added to the seed for the order of the calls, so that it is drawn anew.
ORDER_SEED = 1000


def verify_advice(plan: TimingPlan, request: Request, run: Run, draft: Path, progress: Progress) -> Run:
    """The run with what came of its most promising advice, in a fresh process; with a note where there is none, or it
    could not be followed: that is an answer too, and nothing measured is lost for it."""
    reading = Reading(shapes=True, cached=False)
    sides = [load_side(draft, form=name, reading=reading) for name in ("eager", "compiled")]
    comparison = compare(sides[0], sides[1], run.order)
    finding = top_advice(comparison)
    if finding is None:
        return with_notes(run, Noted(NO_ADVICE))
    # A flag is `True` or `False` in a finding.
    flags = {"True": True, "False": False}
    advised = replace(request, **{name: flags.get(value, value) for name, value in finding.changes.items()})  # type: ignore[arg-type]
    changes = [f"{name.replace('_', ' ')} {value}" for name, value in finding.changes.items()]
    changes += [variable_words(finding.environment)] if finding.environment else []
    settings, rule = run.settings, stopping_rule(plan, request, run.settings)
    seed = settings.seed + ORDER_SEED
    job = ChildJob(advised, settings.size, settings.device, ("eager", "compiled"), rule, seed)
    try:
        found = run_child(job, draft, progress, f"following the advice: {', '.join(changes)}", finding.environment)
    except TracekitError as error:
        return with_notes(run, Noted(ADVICE_FAILED, {"error": str(error)}))
    eager, compiled = found.forms
    if eager.times is None or compiled.times is None:
        raise AssertionError("a job with a rule times its forms")
    seconds = compiled.compilation.seconds if compiled.compilation else None
    recompiled = eager.times.during_timing + compiled.times.during_timing
    verified = judge_advice(comparison, finding, eager.times.wall_us, compiled.times.wall_us, seconds, recompiled)
    return replace(run, verified=verified)
