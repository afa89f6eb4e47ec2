"""A comparison in thirty lines: the verdict, where a call's time goes, what to try next, and what was checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tracekit.model.comparison import Comparison, Finding, Side, WaterfallPart
from tracekit.model.timing import BreakEven
from tracekit.names import clipped_within, printable
from tracekit.numbers import MINUS, calls_span, count, duration, percent, size, size_change, times_within
from tracekit.report.document import Cell, Column, Line, Styled, Summary, Table
from tracekit.report.sections import headline
from tracekit.report.sections.findings import listed
from tracekit.report.sections.modules import main_parts, part_words
from tracekit.report.sections.outputs import RESULTS as OUTPUTS
from tracekit.report.words import common as words
from tracekit.report.words import short

RESULT_STYLES = {"faster": "bold green", "slower": "bold red", "inconclusive": "bold yellow", "not_timed": "bold"}
OUTCOME_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "bold yellow"}
OUTPUT_STYLES = {"equal": "green", "as_accurate": "green", "less_accurate": "bold red", "undecided": "yellow"}

#: Notes below the headline, causes of idle time, and things to try that find room.
MOST_NOTES, MOST_CAUSES, MOST_ADVICE = 3, 3, 3
#: A cause of idle time has this share of the largest one's change at least.
LEAST_CAUSE = 0.05
#: Characters of the longest bar, of what stands beside names, of figures and bars alone, and of a name at least.
BAR, BESIDE_NAMES, BESIDE_FIGURES, LEAST_NAME = 12, 66, 48, 24
#: Of a line.
WIDTH = 100
GAP = "   "

BLANK = Line("")
UNITS = {1.0: "µs", 1e3: "ms", 1e6: "s"}


def comparison_brief(comparison: Comparison, page: str, open_it: str, width: int = WIDTH) -> Summary:
    """At most thirty lines at 100 columns. `page` is where the page lies, `open_it` shows the timeline, `width` is that
    of the terminal."""
    notes = short.headline_notes(comparison.notes, (comparison.a.label, comparison.b.label))
    told = [Line(note, "", "  ! ", "yellow") for note in notes[:MOST_NOTES]]
    advice, checks = tuple(advice_lines(comparison.findings, comparison.b)), tuple(_checks(comparison))
    hidden = len(comparison.notes) + len(listed(comparison.findings)) - min(len(notes), MOST_NOTES) - len(advice)
    return (
        Line(clipped_within(words.subjects(comparison), WIDTH), "dim"),
        BLANK,
        *verdict_lines(comparison),
        *told,
        BLANK,
        *_account(comparison, width),
        *_bottleneck(comparison),
        *((BLANK, Line("Try next", "bold"), *advice) if advice else ()),
        *((BLANK, *checks) if checks else ()),
        BLANK,
        *last_lines(f"Report {page}", f"Timeline: {open_it}", more(hidden), width=width),
    )


def more(hidden: int) -> str:
    """How all of it is shown, and how many notes and findings were not."""
    return f"More: -v (+{hidden})" if hidden > 0 else "More: -v"


def last_lines(*pieces: str, width: int = WIDTH) -> tuple[Line, ...]:
    """Where all of it is; as many lines as it takes, none of which ends within a piece."""
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(GAP) + len(piece) <= width:
            lines[-1] += GAP + piece
        else:
            lines.append(piece)
    return tuple(Line(line, "dim", unbroken=True) for line in lines)


def verdict_lines(comparison: Comparison) -> tuple[Line, ...]:
    """The gate's outcome, the verdict, and what it rests on."""
    return (
        *_gate(comparison),
        Line(f"  {verdict_words(comparison)}", RESULT_STYLES[comparison.verdict.result]),
        *(Line(f"  {line}") for line in _timed(comparison)),
    )


def verdict_words(comparison: Comparison) -> str:
    """`1.14× faster compiled    3.90 → 3.39 ms per call    95 % CI 1.138-1.159`."""
    verdict, a, b = comparison.verdict, comparison.a.label, comparison.b.label
    if verdict.speedup is None or verdict.result == "not_timed" or (verdict.basis == "apart" and not verdict.apart):
        return words.verdict_sentence(comparison)
    walls = f"{duration(verdict.a_wall_us)} → {duration(verdict.b_wall_us)} per call"
    if verdict.apart is not None and verdict.result == "inconclusive":
        return f"{words.verdict_sentence(comparison)}   {walls}"
    slower = verdict.result == "slower"
    interval = verdict.ci95
    if interval and slower:
        interval = (1 / interval[1], 1 / interval[0])
    ratio = times_within(1 / verdict.speedup if slower else verdict.speedup, interval)
    beside = b if (a, b) == ("eager", "compiled") else f"B ({b})"
    said = {
        "faster": f"{ratio} faster {beside}",
        "slower": f"{ratio} slower {beside}",
        "inconclusive": f"no difference established, {ratio}",
    }[verdict.result]
    spread = f"    95 % CI {interval[0]:.3f}-{interval[1]:.3f}" if interval else ""
    return f"{said}    {walls}{spread}"


def _timed(comparison: Comparison) -> Iterator[str]:
    """`217 interleaved rounds, profiler off; noise floor 3 %`."""
    verdict = comparison.verdict
    if verdict.speedup is None:
        return
    if verdict.basis in ("rounds", "processes"):
        how = f"{count(verdict.n)} interleaved rounds"
        if (verdict.processes or 1) > 1:
            how += f" in {count(verdict.processes)} processes"
    else:
        how = "timed in separate runs, not interleaved"
    floor = f"; noise floor {verdict.noise_floor * 100:.1g} %" if verdict.noise_floor else ""
    stopped = "; stopped at the time budget" if verdict.stopped == "budget spent" else ""
    yield f"{how}, profiler off{floor}{stopped}"


def _gate(comparison: Comparison) -> Iterator[Line]:
    demanded = headline.gate_text(comparison)
    if demanded is None:
        return
    yield Line(demanded.words, OUTCOME_STYLES[demanded.ends_as])
    for outcome, said in demanded.conditions:
        yield Line(f"  {said}", OUTCOME_STYLES[outcome])
    yield BLANK


def _account(comparison: Comparison, width: int) -> Iterator[Table]:
    """Where a call goes: GPU kernels by module, idle time by cause. The changes add up to that of the call."""
    a, b, waterfall = comparison.a, comparison.b, comparison.waterfall
    if waterfall is None or a.busy_us is None or b.busy_us is None:
        return
    a_idle, b_idle = a.idle_us(waterfall.basis), b.idle_us(waterfall.basis)
    # What became of the kernels would part the rows of a narrower table.
    wide = width >= WIDTH
    room = max(width - (BESIDE_NAMES if wide else BESIDE_FIGURES), LEAST_NAME)
    rows = [_Row("  GPU kernels", b.busy_us - a.busy_us, a.busy_us, b.busy_us)]
    for part in main_parts(comparison):
        name = clipped_within(part.path, room - 8) if part.path else ""
        named = printable(" ".join(filter(None, (name, f"({part.what})" if name and part.what else part.what))))
        named = f"    {clipped_within(named, room)}"
        rows.append(_Row(named, part.delta_us, part.a_us, part.b_us, part_words(part, comparison.groups)))
    if a_idle is not None and b_idle is not None:
        rows.append(_Row("  GPU idle", b_idle - a_idle, a_idle, b_idle))
    rows += _causes(comparison)
    if abs(waterfall.residual_us) >= 0.01 * waterfall.a_us:
        rows.append(_Row("  not attributed", waterfall.residual_us))
    unit, scale, decimals = scale_of(max(waterfall.a_us, waterfall.b_us))
    longest = max(abs(row.delta_us) for row in rows) or 1.0
    what = {"steps": "call", "span": "span", "whole": "recording"}[a.analysis.window.kind]
    recorded = "" if waterfall.basis == "unprofiled" else " as recorded,"
    columns = (
        Column(f"Where a {what} goes,{recorded} {unit}", numeric=False),
        *(Column(each) for each in (a.label, b.label, "change")),
        *(Column("", numeric=False) for _ in range(2)),
    )
    shown = [_cells(row, scale, decimals, longest) for row in rows]
    if not wide:
        columns, shown = columns[:-1], [row[:-1] for row in shown]
    yield Table("", columns, tuple(shown))


def scale_of(longest_us: float) -> tuple[str, float, int]:
    """One unit for a table whose longest time this is, its microseconds, and how many decimals tell the times."""
    scale = max(scale for scale in UNITS if scale == 1 or longest_us >= scale)
    return UNITS[scale], scale, 1 if longest_us / scale >= 100 else 2 if longest_us / scale >= 10 else 3


@dataclass(frozen=True, slots=True)
class _Row:
    """A part of a call. Without times, what is known is the change alone."""

    name: str
    delta_us: float
    a_us: float | None = None
    b_us: float | None = None
    what: str = ""


def _cells(row: _Row, scale: float, decimals: int, longest: float) -> tuple[Cell, ...]:
    figures = ("" if us is None else f"{us / scale:,.{decimals}f}" for us in (row.a_us, row.b_us))
    change = f"{row.delta_us / scale:+,.{decimals}f}".replace("-", MINUS)
    sign, style = ("+", "red") if row.delta_us > 0 else ("-", "green")
    bar = sign * round(abs(row.delta_us) / longest * BAR)
    return row.name, *figures, change, Styled(((bar, style),)), row.what


def _causes(comparison: Comparison) -> Iterator[_Row]:
    waterfall = comparison.waterfall
    parts: list[WaterfallPart] = [each for each in (waterfall.parts if waterfall else ()) if each.kind == "idle"]
    parts.sort(key=lambda part: -abs(part.delta_us))
    for part in parts[:MOST_CAUSES]:
        if abs(part.delta_us) >= LEAST_CAUSE * abs(parts[0].delta_us):
            yield _Row(f"    {short.CAUSES.get(str(part.label), str(part.label))}", part.delta_us)
    rest = math.fsum(part.delta_us for part in parts[MOST_CAUSES:])
    if parts and abs(rest) >= LEAST_CAUSE * abs(parts[0].delta_us):
        yield _Row("    other causes", rest)


def _bottleneck(comparison: Comparison) -> Iterator[Line]:
    if comparison.b_bound is not None:
        yield Line(f"Bottleneck of {comparison.b.label}: {short.bottleneck(comparison.b, comparison.b_bound)}")


def advice_lines(findings: Iterable[Finding], side: Side) -> Iterator[Line]:
    """What was tried, the fastest first, then what is estimated, the largest first, then what has no figure."""
    seen, number = set[str](), 0
    for finding in sorted(findings, key=_gain):
        what, why = short.advice_words(finding)
        if not what or what in seen or number == MOST_ADVICE:
            continue
        seen.add(what)
        number += 1
        reason = f"({why})" if why else ""
        yield Line(f"  {number}  {what:<22} {reason:<33} {_gain_words(finding, side)}".rstrip())


def _gain(finding: Finding) -> tuple[int, float]:
    if finding.verified is not None:
        return 0, -finding.verified.speedup
    return (1, -finding.saving_us) if finding.saving_us is not None else (2, 0.0)


def _gain_words(finding: Finding, side: Side) -> str:
    tried = finding.verified
    if tried is not None:
        interval = f", CI {tried.ci95[0]:.3f}-{tried.ci95[1]:.3f}" if tried.ci95 else ""
        return f"{times_within(tried.speedup, tried.ci95)} measured{interval}"
    if finding.saving_us is None:
        return "no estimate"
    of = f" of {duration(side.wall_us)}" if side.wall_us is not None else ""
    return f"at most −{duration(finding.saving_us)}{of}, est."


def _checks(comparison: Comparison) -> Iterator[Line]:
    """Outputs, memory, and what compiling costs."""
    a, b, accuracy = comparison.a.form, comparison.b.form, comparison.accuracy
    if accuracy is not None:
        facts = accuracy.reason.facts
        figures = ""
        if "compiled" in facts and "eager" in facts:
            figures = (
                f": error {facts['compiled']:.2g} vs {facts.get('reference', 'the reference')}, "
                f"eager {facts['eager']:.2g}"
            )
            figures += f", tolerance {facts['allowed']:.2g}" if "allowed" in facts else ""
        elif "compiled" in facts and "allowed" in facts:
            figures = f": differ by {facts['compiled']:.2g}, tolerance {facts['allowed']:.2g}"
        mark = "ok" if accuracy.result in ("equal", "as_accurate") else "!!"
        yield Line(f"{OUTPUTS[accuracy.result]}{figures}", "", f"  {mark}   ", OUTPUT_STYLES[accuracy.result])
    peaks = [form.peak_memory_bytes if form else None for form in (a, b)]
    if peaks[0] is not None and peaks[1] is not None:
        change = peaks[1] - peaks[0]
        small = abs(change) < 0.01 * peaks[0]
        said = "unchanged" if change == 0 else size_change(change)
        said += "" if small else f" ({percent(change / peaks[0], 0)})"
        yield Line(
            f"Peak memory {size(peaks[1])}, {said}", "", "  ok   " if small or change < 0 else "  +    ", "green"
        )
    compilation = b.compilation if b else None
    if compilation is not None:
        paid = [each for each in comparison.break_even if each.calls is not None]
        even = ", ".join(f"{calls_to_pay(each)}{short.STARTS.get(each.kind or '', '')}" for each in paid[:2])
        pays = f"; pays off after {even}" if even else ""
        yield Line(f"Compile time {duration(compilation.seconds * 1e6)}{pays}", "", "       ")


def calls_to_pay(each: BreakEven) -> str:
    if each.calls is None or math.isinf(each.calls):
        return "never"
    return f"{calls_span(each.calls, each.calls_at_most)} calls"
