"""The answer of a comparison: the verdict, where a call's time goes, what to try next, and what was checked."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.names import clipped_within, printable
from tracekit.numbers import duration, figure_change, scale_of, size, size_change, times_within
from tracekit.report.composition.overview_account import call_account, operator_table, slower_words
from tracekit.report.document import Advice, Bar, Check, Overview
from tracekit.report.sections.call import call_times
from tracekit.report.sections.findings import listed
from tracekit.report.sections.headline import gate_text
from tracekit.report.sections.outputs import RESULTS as OUTPUTS
from tracekit.report.sections.timing import pays_after
from tracekit.report.words import common as words
from tracekit.report.words import short
from tracekit.report.words.saying import say

#: Notes below the headline, and things to try, that find room.
MOST_NOTES, MOST_ADVICE = 3, 3
#: A change of memory below this share is none.
SAME_MEMORY = 0.01
#: Findings whose advice makes compiling shorter, not calls.
OF_STARTS = ("cold_start", "compiled_again")
#: Characters of what a side is called.
LABEL = 40

#: Notes that say already what one process is worth.
OF_ONE_PROCESS = ("one_process_waits_for_host", "one_process_large_change", "one_process_small_change")


def comparison_overview(comparison: Comparison, repeat: str = "") -> Overview:
    """`repeat` is the command that measures both sides again; empty where there is none."""
    a, b = (replace(side, label=clipped_within(printable(side.label), LABEL)) for side in (comparison.a, comparison.b))
    comparison = replace(comparison, a=a, b=b)
    notes = short.headline_notes(comparison.notes, (comparison.a.label, comparison.b.label))
    advice = tuple(advice_of(comparison.findings, comparison.b))
    bound = comparison.b_bound
    headline, walls, interval = _answer(comparison)
    if words.different_models(comparison):
        # Nothing of the one is more or less of the other.
        return Overview(
            subject=words.subjects(comparison),
            headline=headline,
            result=(words.result_word(comparison), comparison.verdict.result),
            walls=" and ".join(f"{side.label} {duration(side.wall_us)}" for side in (a, b) if side.wall_us),
            evidence="Their figures do not compare: tracekit analyze shows each by itself",
            hidden=len(comparison.notes),
        )
    account = call_account(comparison)
    return Overview(
        subject=words.subjects(comparison),
        headline=headline,
        result=(words.result_word(comparison), comparison.verdict.result),
        gate=gate_text(comparison),
        walls=walls,
        spread=_spread(comparison, interval),
        interval=interval,
        evidence=words.verdict_evidence(comparison),
        notes=notes[:MOST_NOTES],
        bars=bars((comparison,), (comparison.a, comparison.b)),
        account=account,
        tables=tuple(filter(None, (operator_table(comparison),))),
        slower=slower_words(comparison, account),
        bottleneck=f"{b.label} is {': '.join(short.bottleneck(b, bound))}" if bound else "",
        advice=advice,
        nothing_faster=comparison.verdict.result != "not_timed",
        checks=tuple(_checks(comparison)),
        repeat=repeat,
        hidden=hidden(comparison.notes, comparison.findings, notes, advice),
    )


def hidden(
    notes: Iterable[object], findings: Iterable[Finding], told: Iterable[object], advice: Iterable[object]
) -> int:
    """How many notes and findings are not shown."""
    shown = min(len([*told]), MOST_NOTES) + len([*advice])
    return max(len([*notes]) + len(listed(findings)) - shown, 0)


def _answer(comparison: Comparison) -> tuple[str, str, tuple[float, float, float] | None]:
    """`1.14× faster compiled`, `3.90 ms → 3.39 ms per call`, and the interval as it is told."""
    verdict, a, b = comparison.verdict, comparison.a.label, comparison.b.label
    if verdict.speedup is None or verdict.result == "not_timed" or (verdict.basis == "apart" and not verdict.apart):
        return words.verdict_sentence(comparison), "", None
    walls = f"{duration(verdict.a_wall_us)} → {duration(verdict.b_wall_us)} per call"
    if verdict.apart is not None and verdict.result == "inconclusive":
        return words.verdict_sentence(comparison), walls, None
    value, interval = words.as_told(verdict)
    if verdict.result == "inconclusive":
        # The ratio of noise would contradict the times beside it.
        return "no difference established", walls, (interval[0], value, interval[1]) if interval else None
    ratio = times_within(value, interval)
    beside = b if (a, b) == ("eager", "compiled") else f"B ({b})"
    said = {
        "faster": f"{ratio} faster {beside}",
        "slower": f"{ratio} slower {beside}",
    }[verdict.result]
    return said, walls, (interval[0], value, interval[1]) if interval else None


def _spread(comparison: Comparison, interval: tuple[float, float, float] | None) -> str:
    """`95 % CI 1.138-1.159`; of what, where no ratio stands beside it."""
    if interval is None:
        return ""
    of = " of the speed-up" if comparison.verdict.result == "inconclusive" else ""
    return f"95 % CI{of} {interval[0]:.3f}-{interval[2]:.3f}"


def bars(comparisons: Sequence[Comparison], sides: Sequence[Side]) -> tuple[Bar, ...]:
    """Each side's call: matrix work, all other GPU work, communication that had the GPU to itself, and idle time;
    nothing where they have no common scale."""
    found = call_times(comparisons, sides)
    calls = found[1] if found else ()
    communicates = any(call.communication_us for call in calls)
    kinds = {"library": "matrix", "other": "other", **({"communication": "communication"} if communicates else {})}
    kinds["idle"] = "idle"
    return tuple(
        Bar(side.label, call.whole_us, tuple((kind, getattr(call, f"{name}_us")) for kind, name in kinds.items()))
        for side, call in zip(sides, calls, strict=False)
    )


def advice_of(findings: Iterable[Finding], side: Side) -> Iterator[Advice]:
    """What was tried, the fastest first, then what is estimated, the largest first, then what has no figure."""
    seen = set[str]()
    for finding in sorted(findings, key=_gain):
        what, why = short.advice_words(finding)
        if what and what not in seen and len(seen) < MOST_ADVICE:
            seen.add(what)
            command = finding.action.command if finding.action else None
            starts = finding.code in OF_STARTS
            gain = "" if starts else _gain_words(finding, side)
            yield Advice(what, why, gain, finding.verified is not None, command or "", starts)


def _gain(finding: Finding) -> tuple[int, float]:
    if finding.verified is not None:
        return 0, -finding.verified.speedup
    return (1, -finding.saving_us) if finding.saving_us is not None else (2, 0.0)


def _gain_words(finding: Finding, side: Side) -> str:
    tried = finding.verified
    if tried is not None:
        interval = f" {tried.ci95[0]:.3f}-{tried.ci95[1]:.3f}" if tried.ci95 else ""
        return f"{times_within(tried.speedup, tried.ci95)} vs eager, measured{interval}"
    if finding.saving_us is None:
        return "no estimate"
    if side.wall_us is None:
        return f"at most −{duration(finding.saving_us)}, est."
    unit, scale, decimals = scale_of(side.wall_us)
    saving, call = (f"{us / scale:,.{decimals}f}" for us in (finding.saving_us, side.wall_us))
    return f"at most −{saving} of {call} {unit}, est."


def _checks(comparison: Comparison) -> Iterator[Check]:
    """Outputs, memory, what compiling costs, and what was not measured."""
    a, b, accuracy = comparison.a.form, comparison.b.form, comparison.accuracy
    if accuracy is not None:
        facts, figures = accuracy.reason.facts, ""
        if "compiled" in facts and "eager" in facts:
            reference = facts.get("reference", "the reference")
            figures = f": error {facts['compiled']:.2g} vs {reference}, eager {facts['eager']:.2g}"
        elif "compiled" in facts and "allowed" in facts:
            figures = f": no higher-precision reference; differ from eager's by {facts['compiled']:.2g}"
        figures += f", tolerance {facts['allowed']:.2g}" if figures and "allowed" in facts else ""
        fine = accuracy.result in ("equal", "as_accurate")
        told = "Outputs" if fine and "no higher" in figures else OUTPUTS[accuracy.result]
        yield Check("ok" if fine else "!!", f"{told}{figures}")
    peaks = [form.peak_memory_bytes if form else None for form in (a, b)]
    if peaks[0] is not None and peaks[1] is not None:
        change = peaks[1] - peaks[0]
        small = abs(change) < SAME_MEMORY * peaks[0]
        said = "unchanged" if change == 0 else size_change(change)
        said += "" if small else f" ({figure_change(change / peaks[0] * 100, 0)} %)"
        yield Check("ok" if small or change < 0 else "more", f"Peak memory {size(peaks[1])}, {said}")
    compilation = b.compilation if b else None
    if compilation is not None:
        paid = [each for each in comparison.break_even if each.calls is not None]
        even = ", ".join(
            f"{pays_after(each, with_interval=False)}{short.STARTS.get(each.kind or '', '')}" for each in paid[:2]
        )
        pays = f"; start-up pays off after {even}" if even else ""
        if paid and math.isinf(paid[0].calls or 0.0):
            pays = "; never pays off"
        yield Check("", f"Compile time {duration(compilation.seconds * 1e6)}{pays}")
    notes = {note.code: note for note in comparison.notes}
    for code, sentence in short.OF_ONE_PROCESS.items():
        if code in notes:
            yield Check("ok", say(sentence, notes[code].facts))
    known = notes.keys() & {*OF_ONE_PROCESS, *short.OF_ONE_PROCESS}
    if comparison.verdict.basis == "rounds" and (comparison.verdict.processes or 1) == 1 and not known:
        yield Check("", short.ONE_PROCESS)
