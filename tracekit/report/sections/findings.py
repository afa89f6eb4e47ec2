"""What stands below a finding: where the recording shows it, and what came of its advice."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from tracekit.model.advice import VerifiedAdvice
from tracekit.model.comparison import Finding
from tracekit.numbers import duration, times
from tracekit.report.document import Findings, FindingText
from tracekit.report.words.findings import finding_advice, finding_evidence, finding_title


def finding_texts(findings: Iterable[Finding], scope: str = "", level: int = 3) -> Findings:
    """The findings in words; `scope` is what savings are of."""
    return Findings(tuple(_text(finding, scope) for finding in findings), level)


def _text(finding: Finding, scope: str) -> FindingText:
    saving, savings = [], []
    if finding.saving_us is not None:
        saving.append(f"up to {duration(finding.saving_us)} {scope}".strip())
        savings.append(f"Could save up to {duration(finding.saving_us)} ({scope}).")
    if finding.start_saving_us is not None:
        saving.append(f"a warm cache saves {duration(finding.start_saving_us)} of a start")
        savings.append(f"A warm cache saved {duration(finding.start_saving_us)} of a start.")
    return FindingText(
        severity=finding.severity,
        title=finding_title(finding),
        evidence=finding_evidence(finding),
        saving="; ".join(saving),
        savings=tuple(savings),
        advice=finding_advice(finding) or "",
        is_command=finding.action is not None and finding.action.command is not None,
        notes=finding_notes(finding),
    )


def finding_notes(finding: Finding) -> tuple[str, ...]:
    """Sentences, of which there may be none."""
    return (*_places(finding), *_tried(finding))


def _places(finding: Finding) -> tuple[str, ...]:
    if not finding.places:
        return ()
    name = PurePath(finding.places[0].path).name
    told = ", ".join(f"at {duration(each.start_us)} for {duration(each.duration_us)}" for each in finding.places)
    return (f"In {name}, from the start of what was read: {told}.",)


def _tried(finding: Finding) -> tuple[str, ...]:
    tried = finding.verified
    if tried is None:
        return ()
    interval = f"95 % interval {tried.ci95[0]:.3f} to {tried.ci95[1]:.3f}" if tried.ci95 else "too few for an interval"
    compiled = (
        f" {tried.during_timing} compilations ran inside the timed calls: these times are not of compiled code alone."
        if tried.during_timing
        else ""
    )
    compiling = f" Compiling took {duration(tried.compile_seconds * 1e6)}." if tried.compile_seconds else ""
    told = (
        f"Tried in a fresh process: {times(tried.speedup)} as fast as eager there ({interval}, {tried.rounds:,} rounds)"
        f"{_predicted(tried)}; {duration(tried.measured_us)} a call, eager {duration(tried.eager_us)}. Processes differ"
        f" in speed: compare the speed-ups, not the times.{compiling}{compiled}"
    )
    return (told,)


def _predicted(tried: VerifiedAdvice) -> str:
    estimate = tried.predicted_speedup
    if estimate is None:
        return ""
    return f", {'more than the' if tried.speedup > estimate else 'estimated up to'} {times(estimate)}" + (
        " estimated from this run" if tried.speedup > estimate else ""
    )
