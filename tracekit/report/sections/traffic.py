"""How much memory the kernels move, and how near their calls come to what the device can do. All of it is estimated."""

from tracekit.model.comparison import Comparison, KernelGroup
from tracekit.numbers import MISSING, counted, duration, percent, size, size_change
from tracekit.report.document import Table, columns, filled_table
from tracekit.report.sections.groups import bandwidth, group_label
from tracekit.report.words.common import shared_scope

#: From this share of a side's GPU time on, what is not known is not worth a word.
NEARLY_ALL = 0.995
#: What limits a kernel.
LIMITS = {"compute": "compute", "memory": "memory", "small": "too small", "neither": "neither"}


def traffic_row(comparison: Comparison) -> tuple[str, str, str, str] | None:
    """Both sides' memory traffic and what B saves of it; None where it is not known."""
    total = comparison.traffic
    if total is None:
        return None
    share = -total.removed_bytes / total.eager_bytes if total.eager_bytes else None
    change = size_change(-total.removed_bytes)
    if share is not None and change != "0":
        sign = "+" if share > 0 else "\N{MINUS SIGN}"
        change = f"{change} ({sign}{abs(share) * 100:.0f} %)"
    return "Memory traffic, est.", size(total.eager_bytes), size(total.compiled_bytes), change


def traffic_note(comparison: Comparison) -> str:
    """What the estimate is of; empty where there is none."""
    total = comparison.traffic
    if total is None:
        return ""
    text = "Memory traffic is estimated from operator sizes."
    if min(total.a_time_known, total.b_time_known) >= NEARLY_ALL:
        return text
    known = f"{percent(total.a_time_known, 0)} of A's GPU time and {percent(total.b_time_known, 0)} of B's"
    return f"{text} It covers {known}."


def matmul_table(comparison: Comparison, limit: int = 8) -> Table | None:
    """How fast the matmuls, attention and convolutions that take longest compute; None where no sizes are known."""
    known = [(group, group.rates) for group in comparison.groups if group.rates and group.rates.tflop_per_s is not None]
    known.sort(key=lambda each: -_time(each[0]))
    rows = []
    for group, rates in known[:limit]:
        share = f" ({percent(rates.arithmetic_share)})" if rates.arithmetic_share is not None else ""
        speed = f"{rates.tflop_per_s:,.1f} TFLOP/s{share}"
        giga = None if rates.flops is None else rates.flops / 1e9
        operations = MISSING if giga is None else f"{giga:,.1f} GFLOP" if giga >= 1 else f"{giga * 1e3:,.1f} MFLOP"
        met = LIMITS.get(rates.limit or "", MISSING)
        rows.append((group_label(group), group.kind, met, duration(_time(group)), operations, speed, bandwidth(rates)))
    figures = ("GPU time", "Operations", "Arithmetic", "Bandwidth")
    more = len(known) - limit
    return filled_table(
        f"Roofline: matmuls, attention and convolutions, {shared_scope(comparison)}",
        columns("Kernels", "Change", "Limit", figures=figures),
        rows,
        "Estimated for the longest operator call of each group (B's if it has one); in brackets the share of the "
        "published peak. Too small: below 20 us and 30 % of both peaks. A multiply-add is two operations. — means: not "
        "known, or served by a cache."
        + (f" {counted(more, 'smaller group')} {'is' if more == 1 else 'are'} not listed." if more > 0 else ""),
    )


def _time(group: KernelGroup) -> float:
    """GPU time of the side that the rates are of."""
    return sum(member.total_us for member in (group.b or group.a))
