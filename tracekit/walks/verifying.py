"""The part of `tracekit profile` that follows its own advice, and says what came of it (`--verify-advice`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tracekit.comparison import compare
from tracekit.comparison.judging.alternatives import judge_advice, top_advice
from tracekit.errors import TracekitError
from tracekit.model.child import ChildJob
from tracekit.model.comparison import Comparison, Finding
from tracekit.model.note import Noted
from tracekit.model.progress import Progress
from tracekit.model.run import Run
from tracekit.model.workload import Request
from tracekit.shell import variable_words
from tracekit.walks.noting import with_notes
from tracekit.walks.processes import run_child
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side
from tracekit.walks.timing_plan import TimingPlan, stopping_rule

#: What a run notes that was to verify its advice, and had none, or could not follow it.
NO_ADVICE, ADVICE_FAILED = "no_advice", "advice_failed"
#: Added to the seed for the order of the calls, so that it is drawn anew.
ORDER = 1000


def verify_advice(plan: TimingPlan, request: Request, run: Run, draft: Path, progress: Progress) -> Run:
    """The run with what came of its most promising advice, in a fresh process; with a note where there is none, or it
    could not be followed: that is an answer too, and nothing measured is lost for it."""
    comparison = _compared(draft, run)
    finding = top_advice(comparison)
    if finding is None:
        return with_notes(run, Noted(NO_ADVICE))
    advised = replace(request, **_asked(finding.changes))
    rule = stopping_rule(plan, request, run.settings)
    job = ChildJob(
        advised, run.settings.size, run.settings.device, ("eager", "compiled"), rule, run.settings.seed + ORDER
    )
    try:
        found = run_child(job, draft, progress, f"following the advice: {_words(finding)}", finding.environment)
    except TracekitError as error:
        return with_notes(run, Noted(ADVICE_FAILED, {"error": str(error)}))
    eager, compiled = found.forms
    if eager.times is None or compiled.times is None:
        raise AssertionError("a job with a rule times its forms")
    seconds = compiled.compilation.seconds if compiled.compilation else None
    verified = judge_advice(
        comparison,
        finding,
        eager.times.wall_us,
        compiled.times.wall_us,
        seconds,
        eager.times.during_timing + compiled.times.during_timing,
    )
    return replace(run, verified=verified)


def _compared(draft: Path, run: Run) -> Comparison:
    reading = Reading(shapes=True, cached=False)
    eager, compiled = (load_side(draft, form=name, reading=reading) for name in ("eager", "compiled"))
    return compare(eager, compiled, run.order)


def _asked(changes: dict[str, str]) -> dict[str, Any]:
    """The fields of a request: a flag is `True` or `False` in a finding."""
    flags = {"True": True, "False": False}
    return {name: flags.get(value, value) for name, value in changes.items()}


def _words(finding: Finding) -> str:
    changes = [f"{name.replace('_', ' ')} {value}" for name, value in finding.changes.items()]
    return ", ".join([*changes, *([variable_words(finding.environment)] if finding.environment else [])])
