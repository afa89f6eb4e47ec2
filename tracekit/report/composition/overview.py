"""The answer of a comparison: the verdict, where a call's time goes, what to try next, and what was checked."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tracekit.model.comparison import Comparison, Finding, Side, WaterfallPart
from tracekit.names import clipped_within, printable
from tracekit.numbers import duration, figure_change, scale_of, size, size_change, times_within
from tracekit.report.document import Account, AccountRow, Advice, Bar, Check, Overview
from tracekit.report.sections.call import call_times
from tracekit.report.sections.findings import listed
from tracekit.report.sections.headline import gate_text
from tracekit.report.sections.kernels import times_by_family
from tracekit.report.sections.modules import main_parts, part_words
from tracekit.report.sections.outputs import RESULTS as OUTPUTS
from tracekit.report.sections.timing import pays_after
from tracekit.report.sides import both_sides
from tracekit.report.words import common as words
from tracekit.report.words import short

#: Notes below the headline, families of kernels, causes of idle time, and things to try that find room.
MOST_NOTES, MOST_FAMILIES, MOST_CAUSES, MOST_ADVICE = 3, 3, 3, 3
REST = "all other GPU work"
#: A cause of idle time has this share of the largest one's change at least.
LEAST_CAUSE = 0.05
#: The other causes are shown together from this share of it on.
LEAST_REST = 0.0005
#: What is not attributed is shown from this share of A's call on.
LEAST_RESIDUAL = 0.001
#: A change of memory below this share is none.
SAME_MEMORY = 0.01
#: Characters of what a side is called.
LABEL = 40

#: Notes that say already what one process is worth.
OF_ONE_PROCESS = ("one_process_waits_for_host", "one_process_small_change")

WINDOWS = {"steps": "call", "span": "span", "whole": "recording"}


def comparison_overview(comparison: Comparison) -> Overview:
    a, b = (replace(side, label=clipped_within(printable(side.label), LABEL)) for side in (comparison.a, comparison.b))
    comparison = replace(comparison, a=a, b=b)
    notes = short.headline_notes(comparison.notes, (comparison.a.label, comparison.b.label))
    advice = tuple(advice_of(comparison.findings, comparison.b))
    bound = comparison.b_bound
    headline, walls, interval = _answer(comparison)
    return Overview(
        subject=words.subjects(comparison),
        headline=headline,
        result=(words.result_word(comparison), comparison.verdict.result),
        gate=gate_text(comparison),
        walls=walls,
        spread=f"95 % CI {interval[0]:.3f}-{interval[2]:.3f}" if interval else "",
        interval=interval,
        evidence=words.verdict_evidence(comparison),
        notes=notes[:MOST_NOTES],
        bars=bars((comparison,), (comparison.a, comparison.b)),
        account=_account(comparison),
        bottleneck=f"Bottleneck of {comparison.b.label}: {short.bottleneck(comparison.b, bound)}" if bound else "",
        advice=advice,
        checks=tuple(_checks(comparison)),
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
    ratio = times_within(value, interval)
    beside = b if (a, b) == ("eager", "compiled") else f"B ({b})"
    said = {
        "faster": f"{ratio} faster {beside}",
        "slower": f"{ratio} slower {beside}",
        "inconclusive": f"no difference established, {ratio}",
    }[verdict.result]
    return said, walls, (interval[0], value, interval[1]) if interval else None


def bars(comparisons: Sequence[Comparison], sides: Sequence[Side]) -> tuple[Bar, ...]:
    """Each side's call: matrix work, all other GPU work, and idle time; nothing where they have no common scale."""
    found = call_times(comparisons, sides)
    return tuple(
        Bar(side.label, call.whole_us, (("library", call.matrix_us), ("other", call.other_us), ("idle", call.idle_us)))
        for side, call in zip(sides, found[1] if found else (), strict=False)
    )


def _account(comparison: Comparison) -> Account | None:
    """GPU kernels by module, idle time by cause. The changes add up to that of the call."""
    a, b, waterfall = comparison.a, comparison.b, comparison.waterfall
    if waterfall is None or a.busy_us is None or b.busy_us is None:
        return None
    a_idle, b_idle = a.idle_us(waterfall.basis), b.idle_us(waterfall.basis)
    parts = [*(_modules(comparison) or _families(comparison))]
    # What is in no part, copies among it, and less what ran at once.
    rest = [busy - math.fsum(row.us[at] or 0.0 for row in parts) for at, busy in enumerate((a.busy_us, b.busy_us))]
    rows = [AccountRow("GPU kernels", 0, (a.busy_us, b.busy_us), b.busy_us - a.busy_us), *parts]
    if parts:
        rows.append(AccountRow(REST, 1, tuple(rest), rest[1] - rest[0]))
    if a_idle is not None and b_idle is not None:
        rows.append(AccountRow("GPU idle", 0, (a_idle, b_idle), b_idle - a_idle))
    rows += _causes(waterfall.parts)
    # What the causes leave of the idle time's change.
    if abs(waterfall.residual_us) >= LEAST_RESIDUAL * waterfall.a_us:
        rows.append(AccountRow("not attributed", 1, (None, None), waterfall.residual_us))
    profiled = "" if waterfall.basis == "unprofiled" else ", with profiler"
    return Account(f"Where a {WINDOWS[a.analysis.window.kind]} goes{profiled}", (a.label, b.label), tuple(rows))


def _modules(comparison: Comparison) -> tuple[AccountRow, ...]:
    return tuple(
        AccountRow(
            f"{part.path} ({part.what})" if part.path and part.what else part.path or part.what,
            1,
            (part.a_us, part.b_us),
            part.delta_us,
            part_words(part, comparison.groups),
        )
        for part in main_parts(comparison)
    )


def _families(comparison: Comparison) -> tuple[AccountRow, ...]:
    """The families of kernels with the largest changes, where no module is known."""
    times = {family: (a, b) for family, ((_, a), (_, b)) in times_by_family(both_sides(comparison)).items()}
    largest = sorted(times.items(), key=lambda item: -abs(item[1][1] - item[1][0]))[:MOST_FAMILIES]
    return tuple(AccountRow(family, 1, us, us[1] - us[0]) for family, us in largest)


def _causes(parts: Iterable[WaterfallPart]) -> Iterator[AccountRow]:
    changed = [part for part in parts if part.kind == "idle" and part.delta_us]
    idle = sorted(changed, key=lambda part: -abs(part.delta_us))
    large = [part for part in idle[:MOST_CAUSES] if abs(part.delta_us) >= LEAST_CAUSE * abs(idle[0].delta_us)]
    for part in large:
        yield AccountRow(words.cause_words(str(part.label)), 1, (None, None), part.delta_us)
    rest = math.fsum(part.delta_us for part in idle[len(large) :])
    if idle and abs(rest) >= LEAST_REST * abs(idle[0].delta_us):
        yield AccountRow("other causes", 1, (None, None), rest)


def advice_of(findings: Iterable[Finding], side: Side) -> Iterator[Advice]:
    """What was tried, the fastest first, then what is estimated, the largest first, then what has no figure."""
    seen = set[str]()
    for finding in sorted(findings, key=_gain):
        what, why = short.advice_words(finding)
        if what and what not in seen and len(seen) < MOST_ADVICE:
            seen.add(what)
            command = finding.action.command if finding.action else None
            yield Advice(what, why, _gain_words(finding, side), finding.verified is not None, command or "")


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
            figures = f": differ by {facts['compiled']:.2g}"
        figures += f", tolerance {facts['allowed']:.2g}" if figures and "allowed" in facts else ""
        fine = accuracy.result in ("equal", "as_accurate")
        yield Check("ok" if fine else "!!", f"{OUTPUTS[accuracy.result]}{figures}")
    peaks = [form.peak_memory_bytes if form else None for form in (a, b)]
    if peaks[0] is not None and peaks[1] is not None:
        change = peaks[1] - peaks[0]
        small = abs(change) < SAME_MEMORY * peaks[0]
        said = "unchanged" if change == 0 else size_change(change)
        said += "" if small else f" ({figure_change(change / peaks[0] * 100, 0)} %)"
        yield Check("ok" if small or change < 0 else "+", f"Peak memory {size(peaks[1])}, {said}")
    compilation = b.compilation if b else None
    if compilation is not None:
        paid = [each for each in comparison.break_even if each.calls is not None]
        even = ", ".join(
            f"{pays_after(each, with_interval=False)}{short.STARTS.get(each.kind or '', '')}" for each in paid[:2]
        )
        pays = f"; pays off after {even}" if even else ""
        if paid and math.isinf(paid[0].calls or 0.0):
            pays = "; never pays off"
        yield Check("", f"Compile time {duration(compilation.seconds * 1e6)}{pays}")
    told = {note.code for note in comparison.notes} & set(OF_ONE_PROCESS)
    if comparison.verdict.basis == "rounds" and (comparison.verdict.processes or 1) == 1 and not told:
        yield Check("", short.ONE_PROCESS)
