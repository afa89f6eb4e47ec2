"""Which kernels of the two sides do the same work, what became of them, and where in the model they are."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tracekit.model.comparison import Comparison, KernelGroup
from tracekit.model.provenance import SourceLines
from tracekit.model.sequence import Rates
from tracekit.names import clipped, short_kernel_name
from tracekit.numbers import MISSING, count, counted, duration, duration_change, percent, size
from tracekit.report.document import Excerpt, Explorer, ExplorerRow, Figure, Member, Name, Table, columns, filled_table
from tracekit.report.sections.kernels import LONGEST_NAME, MOST_ROWS, CodeOf, fitting, kernel_code, kernel_name
from tracekit.report.words.common import is_on_cpu, shared_scope
from tracekit.report.words.groups import label_words

DOT = " \N{MIDDLE DOT} "
#: So many modules of one group are named in a place, modules and lines in its row, and kernels of one side.
MOST_MODULES = 3
MOST_PLACES = 12
MOST_MEMBERS = 8
#: Places of one group whose lines are shown.
MOST_EXCERPTS = 3
#: Groups of matmuls that are listed.
MOST_MATMULS = 8

#: docs/kinds.md has the rules.
KINDS = {
    "unchanged": "same kernels, counts, sizes and types",
    "fused": "fewer kernels, or one by Inductor",
    "substituted": "another library kernel, template or input",
    "defused": "unfused or split: more kernels",
    "eliminated": "not in B",
    "added": "only in B",
    "communication": "waiting for other ranks included, so neither slower nor faster kernels",
    "unmatched": "no counterpart found",
}
#: How a group was told, and how far that goes.
WAYS = {
    "provenance": "Inductor provenance",
    "anchors": "library calls of equal shapes, and operators and order between them",
    "names": "kernel name or family only",
    "family": "all kernels of the family, on both sides",
    "unmatched": "not matched",
}
#: Marks a group that was not linked kernel by kernel.
INEXACT = "\N{ALMOST EQUAL TO}"
#: Smaller shares of GPU time are not told.
LEAST_SHARE = 0.0005
#: Sentences of evidence of one group, and characters of each.
MOST_EVIDENCE = 8
LONGEST_EVIDENCE = 500
#: What limits a kernel.
LIMITS = {"compute": "compute", "memory": "memory", "small": "too small", "neither": "neither"}
OF_KERNELS = "Every kernel and copy of both sides is in exactly one group."
OF_OPERATORS = (
    "Outermost operators with those that they call, with profiler, the median of the steps; every one but views is in"
    " exactly one group."
)
#: What is said of operators that are not the recording's own.
BORROWED = {
    "rich": "has the operators of its full trace",
    "lent": "has the operators of the --ops trace",
    "none": "has no operators: its kernels are matched by name",
}


def groups_name(comparison: Comparison) -> str:
    return "Operator groups" if is_on_cpu(comparison) else "Kernel groups"


def group_note(comparison: Comparison) -> str:
    """That the groups are a partition, how they were told, and how much of each side's time was matched."""
    ways = {group.how for group in comparison.groups}
    note, what, time = (
        (OF_OPERATORS, "operator", "operator") if is_on_cpu(comparison) else (OF_KERNELS, "kernel", "GPU")
    )
    if "names" in ways:
        note += f" Groups are matched by {what} name and order, or by family only: {what}s of one name can be paired"
        note += " wrongly."
    elif "provenance" in ways:
        note += f" xN: N repeats of the same {what}s. Groups are matched by provenance, recorded from Inductor and from"
        note += " an extra eager call."
        note += "" if ways == {"provenance"} else " The rest is aligned by operators and shapes."
    else:
        note += f" xN: N repeats of the same {what}s. Library calls of equal shapes align the sides; between them,"
        note += " operators and names of Inductor's kernels are matched."
        sides = {side.label: side.sequence.operators for side in (comparison.a, comparison.b) if side.sequence}
        note += "".join(f" {label} {BORROWED[whose]}." for label, whose in sides.items() if whose in BORROWED)
    inexact = any(not group.exact for group in comparison.groups if group.kind != "unmatched")
    note += f" {INEXACT}: approximate match, by elimination or by name only." if inexact else ""
    covered = comparison.coverage
    if covered is None:
        return note
    shares = (
        (INEXACT, covered.a_time_inexact, covered.b_time_inexact),
        ("gone or new", covered.a_time_alone, covered.b_time_alone),
    )
    matched = f"Matched: {percent(covered.a_time_matched)} of A's {time} time, {percent(covered.b_time_matched)} of B's"
    more = (f"{what} {percent(a)} and {percent(b)}" for what, a, b in shares if max(a, b) >= LEAST_SHARE)
    return f"{note} {'; '.join((matched, *more))}."


def bandwidth(rates: Rates | None) -> str:
    """`3,146 GB/s (65.5 %)`, the share of the device's peak."""
    if rates is None or rates.gb_per_s is None:
        return MISSING
    share = f" ({percent(rates.bandwidth_share)})" if rates.bandwidth_share is not None else ""
    return f"{rates.gb_per_s:,.0f} GB/s{share}"


def group_label(group: KernelGroup) -> str:
    """An unchanged group is called by its kernel's name; the others have labels made of words."""
    label = label_words(group.label)
    return short_kernel_name(label) if group.kind == "unchanged" else clipped(label, 64)


def every_group(comparison: Comparison) -> Explorer | None:
    """The groups, largest change first, and what those without a row come to. None where nothing was matched."""
    groups = comparison.groups
    if not groups:
        return None
    places, sides = distinct_places(groups), (comparison.a, comparison.b)
    lines = {place: found for side in sides for place, found in side.code.items()}
    code, ids = kernel_code(sides, (each.name for group in groups for each in (*group.a, *group.b)))
    rows = fitting(_group_row(at, group, places[at], ids, lines) for at, group in enumerate(groups[:MOST_ROWS]))
    kinds, ways = {group.kind for group in groups}, {group.how for group in groups}
    note, rest = group_note(comparison), groups[len(rows) :]
    what = "operator" if is_on_cpu(comparison) else "kernel"
    if rest:
        change = duration_change(sum(group.delta_us for group in rest))
        note += f" {len(rest):,} more groups with smaller changes, {change} in all, are not listed."
    return Explorer(
        caption=f"{groups_name(comparison)}, {shared_scope(comparison)}",
        noun="groups",
        hint=f"{what}, module, line, kind",
        head=f"{what}s".capitalize(),
        words=("Change kind", "Matched by"),
        figures=("count A", "count B", "time A", "time B", "change"),
        rows=rows,
        note=note,
        legends=(
            (
                "Change kind",
                {kind: told.replace("kernel", what) for kind, told in KINDS.items() if kind in kinds},
            ),
            ("Matched by", {way: meaning for way, meaning in WAYS.items() if way in ways}),
        ),
        code=code,
        anchor="group",
        in_timeline=True,
    )


def _group_row(
    number: int, group: KernelGroup, place: str, code: CodeOf, lines: Mapping[str, SourceLines]
) -> ExplorerRow:
    sides = (("A", group.a), ("B", group.b))
    counts = [sum(member.count for member in members) for _, members in sides]
    times = [sum(member.total_us for member in members) for _, members in sides]
    kernels = []
    for letter, members in sides:
        for each in members[:MOST_MEMBERS]:
            name = kernel_name(each.name, 120)
            text = f"{count(each.count)}\N{MULTIPLICATION SIGN}, {duration(each.total_us)}"
            kernels.append(Member(letter, Name(full=clipped(name.full, LONGEST_NAME), short=name.short), text))
    return ExplorerRow(
        number=number,
        label=group_label(group),
        is_code=group.kind == "unchanged",
        place=place,
        # Marked where kernels were linked by elimination.
        words=(group.kind if group.exact or group.kind == "unmatched" else f"{group.kind} {INEXACT}", group.how),
        figures=(
            *(Figure(count(each), each) for each in counts),
            *(Figure(duration(each), each) for each in times),
            Figure(duration_change(group.delta_us), group.delta_us),
        ),
        members=tuple(kernels),
        left_out=sum(max(len(members) - MOST_MEMBERS, 0) for _, members in sides),
        where=tuple(clipped(each, 120) for each in group.where[:MOST_PLACES]),
        facts=tuple(_facts(group)),
        # The first of the sentences, so that a row stays readable.
        evidence=tuple(clipped(each.long(), LONGEST_EVIDENCE) for each in group.evidence[:MOST_EVIDENCE]),
        excerpts=tuple(_excerpt(each, lines[each]) for each in group.where if each in lines)[:MOST_EXCERPTS],
        code=tuple(dict.fromkeys(id_ for each in (*group.a, *group.b) for id_ in code.get(each.name, ()))),
    )


def _facts(group: KernelGroup) -> Iterator[tuple[str, str]]:
    rates, traffic = group.rates, group.traffic
    if group.sizes:
        yield "Input sizes", clipped(group.sizes, 120)
    shares = []
    if rates and rates.gb_per_s is not None:
        shares.append(f"memory {bandwidth(rates)}")
    if rates and rates.tflop_per_s is not None:
        peak = f" ({percent(rates.arithmetic_share)})" if rates.arithmetic_share is not None else ""
        shares.append(f"arithmetic {rates.tflop_per_s:,.1f} TFLOP/s{peak}")
    if shares:
        if rates and rates.limit == "small":
            shares.append("too small to fill the GPU")
        yield "Roofline, est. (% of peak)", ", ".join(shares)
    if traffic and traffic.removed_bytes is not None:
        yield "Memory traffic, est.", f"{size(traffic.eager_bytes)} \N{RIGHTWARDS ARROW} {size(traffic.compiled_bytes)}"


def _excerpt(place: str, found: SourceLines) -> Excerpt:
    title = place + (", changed since the run" if found.changed else "")
    return Excerpt(title, found.first, found.line, tuple(each.expandtabs() for each in found.lines))


def group_place(group: KernelGroup) -> str:
    """`blocks.*.attn.norm_q, .norm_k`: the innermost modules, else the first line; empty where neither is known."""
    modules = group.modules
    leaves = [each for each in modules if not any(other.startswith(f"{each}.") for other in modules)]
    if not leaves:
        return next(iter(group.where), "")
    first, *others = leaves
    parent = first.rpartition(".")[0]
    near = [f".{each.rpartition('.')[2]}" if each.rpartition(".")[0] == parent else each for each in others]
    more = [f"{len(leaves) - MOST_MODULES} more"] if len(leaves) > MOST_MODULES else []
    return ", ".join([first, *near[: MOST_MODULES - 1], *more])


def distinct_places(groups: Sequence[KernelGroup]) -> tuple[str, ...]:
    """The place of each group; where label and place of several are the same, with sizes, and where these are too, by
    number."""
    places = [group_place(group) for group in groups]
    labels = [label_words(group.label) for group in groups]
    repeated = Counter(zip(labels, places, strict=True))
    keys = [
        (label, DOT.join(filter(None, (place, group.sizes))) if repeated[label, place] > 1 else place)
        for label, place, group in zip(labels, places, groups, strict=True)
    ]
    alike, seen = Counter(keys), Counter[tuple[str, str]]()
    told = []
    for key in keys:
        seen[key] += 1
        number = f"{seen[key]} of {alike[key]} alike" if alike[key] > 1 else ""
        told.append(DOT.join(filter(None, (key[1], number))))
    return tuple(told)


def matmul_table(comparison: Comparison) -> Table | None:
    """How fast the matmuls, attention and convolutions that take longest compute; None where no sizes are known."""
    known = [(group, group.rates) for group in comparison.groups if group.rates and group.rates.tflop_per_s is not None]
    known.sort(key=lambda each: -_rated_us(each[0]))
    rows = []
    for group, rates in known[:MOST_MATMULS]:
        share = f" ({percent(rates.arithmetic_share)})" if rates.arithmetic_share is not None else ""
        speed = f"{rates.tflop_per_s:,.1f} TFLOP/s{share}"
        giga = None if rates.flops is None else rates.flops / 1e9
        operations = MISSING if giga is None else f"{giga:,.1f} GFLOP" if giga >= 1 else f"{giga * 1e3:,.1f} MFLOP"
        met = LIMITS.get(rates.limit or "", MISSING)
        rows.append(
            (group_label(group), group.kind, met, duration(_rated_us(group)), operations, speed, bandwidth(rates))
        )
    figures = ("GPU time", "Operations", "Arithmetic", "Bandwidth")
    more = len(known) - MOST_MATMULS
    return filled_table(
        f"Roofline: matmuls, attention and convolutions, {shared_scope(comparison)}",
        columns("Kernels", "Change", "Limit", figures=figures),
        rows,
        "Estimated for the longest operator call of each group (B's if it has one); in brackets the share of the "
        "published peak. Too small: below 20 us and 30 % of both peaks. A multiply-add is two operations. — means: not "
        "known, or served by a cache."
        + (f" {counted(more, 'smaller group')} {'is' if more == 1 else 'are'} not listed." if more > 0 else ""),
    )


def _rated_us(group: KernelGroup) -> float:
    """GPU time of the side that the rates are of."""
    return sum(member.total_us for member in (group.b or group.a))
