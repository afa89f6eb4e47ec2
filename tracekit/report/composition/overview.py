"""The answer of a comparison: the verdict, where a call's time goes, what to try next, and what was checked."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from tracekit.model.comparison import Bound, Comparison, Finding, Side
from tracekit.names import clipped_within
from tracekit.numbers import duration, figure_change, scale_of, size, size_change, times_within
from tracekit.report.composition.overview_account import call_account, operator_table, slower_words
from tracekit.report.document import Advice, Bar, Check, Overview
from tracekit.report.sections.call import call_times
from tracekit.report.sections.findings import listed
from tracekit.report.sections.headline import gate_text
from tracekit.report.sections.outputs import RESULTS as OUTPUTS
from tracekit.report.sections.outputs import on_rank
from tracekit.report.sections.timing import pays_after
from tracekit.report.words import common as words
from tracekit.report.words import short
from tracekit.report.words.common import both_sides
from tracekit.statements.findings.compiling import BrokenGraphs
from tracekit.wings import load, over_ranks

#: Notes below the headline, and things to try, that find room.
MOST_NOTES, MOST_ADVICE = 3, 3
#: A change of memory below this share is none.
SAME_MEMORY = 0.01
#: Findings whose advice makes compiling shorter, not calls, and those whose advice adds guards to each call.
OF_STARTS, GUARDED = ("cold_start", "compiled_again"), ("lost_attention",)
#: Characters of what a side is called.
LABEL = 40


def comparison_overview(comparison: Comparison, repeat: str = "") -> Overview:
    """`repeat` is the command that measures both sides again; empty where there is none."""
    a, b = (replace(side, label=clipped_within(side.label, LABEL)) for side in (comparison.a, comparison.b))
    comparison = replace(comparison, a=a, b=b)
    notes = short.headline_notes(comparison.notes, (comparison.a.label, comparison.b.label))
    differs = short.differences(comparison.notes)
    bound = comparison.b.bound
    advice = tuple(advice_of(comparison.findings, comparison.b, bound))
    headline, walls, interval = _answer(comparison)
    if words.different_models(comparison):
        # Nothing of the one is more or less of the other.
        return Overview(
            subject=words.subjects(comparison),
            headline=headline,
            differs=differs,
            result=(words.result_word(comparison), comparison.verdict.result),
            walls=" and ".join(f"{side.label} {duration(side.wall_us)}" for side in (a, b) if side.wall_us),
            evidence="Their figures do not compare: tracekit analyze shows each by itself",
            hidden=len(comparison.notes),
        )
    account = call_account(both_sides(comparison), comparison)
    is_open = comparison.verdict.established and comparison.verdict.in_this_process
    known = over_ranks() if comparison.job else None
    ranks = load(known.table)(comparison.job, (a.label, b.label)) if known else None
    torch = b.environment.packages.get("torch") if b.environment else None
    return Overview(
        subject=words.subjects(comparison),
        headline=headline,
        differs=differs,
        result=(words.result_word(comparison), "open" if is_open else comparison.verdict.result),
        gate=gate_text(comparison),
        walls=walls,
        spread=_spread(comparison, interval),
        interval=interval,
        elsewhere=_next_process(comparison) if interval else None,
        evidence=words.verdict_evidence(comparison),
        notes=notes[:MOST_NOTES],
        bars=bars((comparison,), (comparison.a, comparison.b)),
        account=account,
        tables=tuple(filter(None, (operator_table(both_sides(comparison)), ranks))),
        slower=slower_words(comparison, account),
        bottleneck=bottleneck_words(b, bound, b.label) if bound else "",
        graph_breaks=short.costly_breaks(comparison.findings),
        advice=advice,
        nothing_faster=comparison.verdict.result != "not_timed",
        checks=tuple(_checks(comparison)),
        repeat=repeat,
        measured_with=f"torch {torch}" if repeat and torch else "",
        hidden=hidden(comparison.notes, comparison.findings, notes, advice),
    )


def hidden(
    notes: Iterable[object], findings: Iterable[Finding], told: Iterable[object], advice: Iterable[object]
) -> int:
    """How many notes and findings are not shown; differences between the runs stand above the headline."""
    shown = min(len([*told]), MOST_NOTES) + len([*advice])
    others = [each for each in notes if not isinstance(each, short.DIFFERENCES)]
    return max(len(others) + len(listed(findings)) - shown, 0)


def _answer(comparison: Comparison) -> tuple[str, str, tuple[float, float, float] | None]:
    """`1.14× faster compiled`, `3.90 ms → 3.39 ms per call`, and the interval as it is told."""
    verdict, a, b = comparison.verdict, comparison.a.label, comparison.b.label
    whose = "recorded process: " if verdict.basis == "processes" else ""
    walls = f"{whose}{' → '.join(map(duration, words.told_walls(comparison)))} per call"
    if verdict.speedup is None or verdict.result == "not_timed" or (verdict.basis == "apart" and not verdict.apart):
        compiled, is_apart = comparison.compiled_while_timed, verdict.basis == "apart" and not verdict.apart
        if is_apart and not compiled and not words.different_models(comparison):
            return "no verdict: timed in separate runs", walls, None
        return words.verdict_sentence(comparison), "", None
    if verdict.apart is not None and verdict.result == "inconclusive":
        return words.verdict_sentence(comparison), walls, None
    value, ends = words.as_told(verdict)
    interval = (ends[0], value, ends[1]) if ends else None
    if verdict.result == "inconclusive":
        # The ratio of noise would contradict the times beside it.
        said = "no verdict" if comparison.compiled_while_timed else "no difference established"
        if verdict.ci95 is not None and not comparison.compiled_while_timed:
            said = words.undecided(verdict, words.where_measured(comparison))
        return said, walls, interval
    ratio = times_within(value, ends)
    beside = b if (a, b) == ("eager", "compiled") else f"B ({b})"
    return f"{ratio} {verdict.result} {beside}{words.where_measured(comparison)}", walls, interval


def _spread(comparison: Comparison, interval: tuple[float, float, float] | None) -> str:
    """`next process here 0.99-1.37× (95 %)`, on this host; the interval where nobody knows of the next one."""
    if interval is None:
        return ""
    beyond = _next_process(comparison)
    if beyond is None:
        if words.is_open(comparison.verdict):
            # The answer is the interval.
            return ""
        what = words.what_is_told(comparison.verdict).replace("in-process", "95 %")
        return f"{what} {interval[0]:.3f}-{interval[2]:.3f}"
    return f"next process here {words.ratio_span(*beyond)} (95 %)"


def _next_process(comparison: Comparison) -> tuple[float, float] | None:
    """Where another process's speed-up lies, on the interval's axis; None where nothing is known of that."""
    beyond = comparison.verdict.next_process95
    if beyond is None or comparison.verdict.result != "slower":
        return beyond
    return 1 / beyond[1], 1 / beyond[0]


def bottleneck_words(side: Side, bound: Bound, name: str = "") -> str:
    """`compiled is launch-bound: ...`, `Launch-bound: ...` where there is no other side."""
    kind, why = short.bottleneck(side, bound)
    if name:
        return f"{name}: {why}" if kind == short.UNKNOWN else f"{name} is {kind}: {why}"
    told = why if kind == short.UNKNOWN else f"{kind}: {why}"
    return f"{told[:1].upper()}{told[1:]}"


def bars(comparisons: Sequence[Comparison], sides: Sequence[Side]) -> tuple[Bar, ...]:
    """Each side's call by what it consists of; nothing where they have no common scale."""
    found = call_times(comparisons, sides)
    calls = found[1] if found else ()
    return tuple(
        Bar(side.label, call.whole_us, (*call.parts_us.items(),)) for side, call in zip(sides, calls, strict=False)
    )


def advice_of(findings: Iterable[Finding], side: Side, bound: Bound | None) -> Iterator[Advice]:
    """What was tried, the fastest first, then what is estimated, the largest first, then what has no figure."""

    def gain(finding: Finding) -> tuple[int, float]:
        if finding.verified is not None:
            return 0, -finding.verified.speedup
        return (1, -finding.saving_us) if finding.saving_us is not None else (2, 0.0)

    seen, in_program = set[str](), bool(side.settings and side.settings.in_program)
    for finding in sorted(findings, key=gain):
        what, why = short.advice_words(finding, in_program=in_program)
        if what and what not in seen and len(seen) < MOST_ADVICE:
            seen.add(what)
            # Of a break the command names it, and removes none.
            is_break = isinstance(finding.statement, BrokenGraphs) and not finding.environment
            is_copied = finding.advice is not None and finding.advice.to_be_copied and not is_break
            command = finding.advice.long() if finding.advice and is_copied else ""
            starts = finding.code in OF_STARTS
            words = "" if starts else _gain_words(finding, side, bound)
            yield Advice(what, why, words, finding.verified is not None, command, starts)


def _gain_words(finding: Finding, side: Side, bound: Bound | None) -> str:
    tried = finding.verified
    if tried is not None:
        unit, scale, decimals = scale_of(tried.eager_us)
        walls = f"{tried.eager_us / scale:,.{decimals}f} → {tried.measured_us / scale:,.{decimals}f} {unit}"
        return f"measured {times_within(tried.speedup, tried.ci95)}: eager {walls}, own process"
    if finding.saving_us is None:
        return "no estimate"
    guards = ", adds guards" if finding.code in GUARDED else ""
    if side.wall_us is None:
        return f"at most −{duration(finding.saving_us)}, est.{guards}"
    unit, scale, decimals = scale_of(side.wall_us)
    saving, call = (f"{us / scale:,.{decimals}f}" for us in (finding.saving_us, side.wall_us))
    if guards and bound is not None and bound.kind == "launch-bound":
        return f"at most −{saving} {unit} (est.) or slower: host-bound"
    return f"at most −{saving} {unit} est.{guards}" if guards else f"at most −{saving} of {call} {unit}, est."


def _checks(comparison: Comparison) -> Iterator[Check]:
    a, b, accuracy = comparison.a.form, comparison.b.form, comparison.accuracy
    if accuracy is not None:
        figures = accuracy.reason.short()
        figures = f": {figures}" if figures else ""
        # What several ranks run is called in no higher precision, whatever it is.
        if (missing := accuracy.reason.no_reference) and comparison.job is None:
            figures += f"; no higher precision: {missing.short()}"
        fine = accuracy.result in short.OUTPUTS
        told = short.OUTPUTS.get(accuracy.result, OUTPUTS[accuracy.result]) + on_rank(accuracy)
        if fine and accuracy.basis == "tolerance":
            told = "Outputs near eager's"
        if accuracy.result == "random":
            figures = ": they differ as under another seed"
        if b and b.numerics and b.numerics.drawn_as_eager:
            told += " with the same random numbers"
        yield Check("ok" if fine else "" if accuracy.result == "random" else "!!", f"{told}{figures}")
    peaks = [form.peak_memory_bytes if form else None for form in (a, b)]
    if peaks[0] is not None and peaks[1] is not None:
        change = peaks[1] - peaks[0]
        small = abs(change) < SAME_MEMORY * peaks[0]
        said = "unchanged" if change == 0 else size_change(change)
        said += "" if small else f" ({figure_change(change / peaks[0] * 100, 0)} %)"
        yield Check("ok" if small or change < 0 else "more", f"Peak memory {size(peaks[1])}, {said}")
    if told := compile_words(comparison):
        yield Check("", told)


def compile_words(comparison: Comparison) -> str:
    """`Compile time 16.3 s (cold cache); pays off after 887 to 908 calls`, with what starts took where they were
    measured; empty where nothing was compiled."""
    compilation = comparison.b.form.compilation if comparison.b.form else None
    if compilation is None:
        return ""
    paid = [each for each in comparison.break_even if each.calls is not None]
    even = ", ".join(f"after {pays_after(each)}{short.STARTS.get(each.kind or '', '')}" for each in paid[:2])
    # In another process it may never.
    pays = f"; pays off{words.where_measured(comparison)} {even}" if even else ""
    if paid and math.isinf(paid[0].calls or 0.0):
        pays = "; never pays off"
    # Of a comparison of one run's variants those of both.
    of_one_run = Path(comparison.a.path).parent == Path(comparison.b.path).parent
    starts, cache = start_words(comparison.b, *([comparison.a] if of_one_run else [])), ""
    if compilation.cache_hits:
        cache = f" ({words.cached_words(compilation.cache_hits, compilation.graphs)})"
    elif compilation.cache_was_empty is not False and not starts:
        cache = " (cold cache)"
    return f"Compile time {duration(compilation.seconds * 1e6)}{cache}{f'; {starts}' if starts else ''}{pays}"


def start_words(*sides: Side) -> str:
    """`first call compiled 14.5 s, warm cache 2.52 s, eager 360.2 ms`; empty where no start was measured."""
    starts = [start for side in sides for start in (side.form.startups if side.form else ())]
    told = ", ".join(f"{short.FIRST_CALLS[start.kind]} {duration(start.calls_us[0])}" for start in starts)
    return f"first call {told}" if told else ""
