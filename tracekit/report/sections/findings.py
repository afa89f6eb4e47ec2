"""Findings in words, with where the recording shows each, and what came of its advice."""

from collections.abc import Iterable
from pathlib import PurePath

from tracekit.model.comparison import Finding
from tracekit.numbers import counted, duration, percent, times
from tracekit.report.document import Findings, FindingText

#: Findings that say what figures of the report show, and ask for nothing: only the JSON has them.
STATED = frozenset(("fewer_kernels", "graphed_launches", "profiler_distortion"))


def listed(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that a reader can act on."""
    return tuple(each for each in findings if each.code not in STATED)


def finding_texts(
    findings: Iterable[Finding], scope: str = "", level: int = 3, call_us: float | None = None, place: str = ""
) -> Findings:
    """The findings in words; `scope` is what savings are of, and `call_us` what a call takes. `place` tells addresses
    of findings apart where a page has several lists of them."""
    texts = []
    for finding in findings:
        saving, savings, share = [], [], None
        if finding.saving_us is not None:
            saving.append(f"up to {duration(finding.saving_us)} {scope}".strip())
            told = f"Saves at most {duration(finding.saving_us)}"
            if call_us:
                share = min(finding.saving_us / call_us, 1.0)
                savings.append(f"{told} of {duration(call_us)}, {percent(share, 0)} of a call (est.).")
            else:
                savings.append(f"{told} {scope} (est.).")
        if finding.start_saving_us is not None:
            saving.append(f"a warm cache saves {duration(finding.start_saving_us)} per start")
            savings.append(f"A warm cache saved {duration(finding.start_saving_us)} per start.")
        text = FindingText(
            id=f"finding-{place}{finding.code}",
            severity=finding.severity,
            title=finding.statement.title(),
            evidence=finding.statement.long(),
            saving="; ".join(saving),
            savings=tuple(savings),
            advice=finding.advice.long() if finding.advice else "",
            is_command=finding.advice is not None and finding.advice.to_be_copied,
            notes=finding_notes(finding),
            share=share,
        )
        texts.append(text)
    return Findings(tuple(texts), level)


def finding_notes(finding: Finding) -> tuple[str, ...]:
    """Where the recording shows it, and what came of its advice where that was tried."""
    notes = []
    if finding.places:
        name = PurePath(finding.places[0].path).name
        places = ", ".join(f"at {duration(each.start_us)} for {duration(each.duration_us)}" for each in finding.places)
        notes.append(f"In {name}, from the start of the window: {places}.")
    tried = finding.verified
    if tried is None:
        return tuple(notes)
    interval = "95 % CI {:.3f}-{:.3f}".format(*tried.ci95) if tried.ci95 else "too few for an interval"
    # No speed-up: that of a host-bound eager form is another process's.
    least = f" (estimated: at least {duration(tried.predicted_us)})" if tried.predicted_us > 0 else ""
    note = (
        f"Measured in another process: {times(tried.speedup)} faster than its eager ({interval}, {tried.rounds:,}"
        f" interleaved rounds); {duration(tried.eager_us)} → {duration(tried.measured_us)} per call{least}."
    )
    if tried.compile_seconds:
        note += f" Compile time {duration(tried.compile_seconds * 1e6)}."
    if tried.during_timing:
        note += f" {counted(tried.during_timing, 'compilation')} inside timed calls."
    return (*notes, note)
