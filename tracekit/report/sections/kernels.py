"""Which kernels took the GPU's time, what Inductor's code of them is, and which operators took a CPU's."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from markupsafe import escape

from tracekit.model.analysis import KernelTime
from tracekit.model.comparison import Side
from tracekit.model.sequence import Operator
from tracekit.names import clipped, short_kernel_name
from tracekit.numbers import count, count_change, counted, duration, duration_change, percent
from tracekit.report.document import Explorer, ExplorerRow, Figure, KernelCode, Name, Table, columns, filled_table
from tracekit.report.words.common import FAMILY_WORDS, TEMPLATED, Sides, family_words, scope, scope_of, side_name

#: Rows of an explorer, so that the page stays small; the rest are in one line. Bytes of all of them before most are
#: packed, and what of these stands around the text of a row, of each of its cells and of each kernel.
MOST_ROWS = 500
MOST_BYTES = 1_200_000
AROUND_ROW = 250
AROUND_CELL = 120
AROUND_MEMBER = 60
#: Characters of a full name, and operators of a row, each with its sizes.
LONGEST_NAME = 200
MOST_OPERATORS = 6
#: Bytes of all code of Triton kernels in a page before it is packed, and characters of one kernel's.
MOST_CODE_BYTES = 600_000
LONGEST_CODE = 12_000
#: Where the kernel itself begins, after what tells its launcher of shapes and devices.
BEGINNING = "@triton.jit"
#: The ids of the code of each name.
CodeOf = dict[str, tuple[str, ...]]


def kernel_name(name: str, limit: int = 64) -> Name:
    return Name(full=name, short=short_kernel_name(name, limit))


def times_by_family(sides: Sides) -> dict[str, list[tuple[float, float]]]:
    """Of each kernel family as reports show it, and of memory copies and sets, count and microseconds per step on every
    side; unknown families last."""
    found: dict[str, list[tuple[float, float]]] = {}
    for at, (_, side) in enumerate(sides):
        kernels, copies = side.analysis.kernels, side.analysis.copies
        told = [(each.family, each.count, each.total_us) for each in (copies.by_name if copies else ())]
        for each in kernels.by_family if kernels else ():
            # What Inductor wrote from templates stands apart.
            written, written_us = (each.triton_count, each.triton_us) if each.family in TEMPLATED else (0, 0.0)
            if each.count > written:
                told.append((each.family, each.count - written, each.total_us - written_us))
            if written:
                told.append((FAMILY_WORDS[f"{each.family}_triton"], written, written_us))
        for family, count_, total_us in told:
            figures = found.setdefault(family, [(0.0, 0.0)] * len(sides))
            number, us = figures[at]
            figures[at] = (number + count_ / side.steps, us + total_us / side.steps)
    known = FAMILY_WORDS.values()
    return {each: found[each] for each in (*known, *sorted(found.keys() - set(known))) if each in found}


def family_table(sides: Sides) -> Table | None:
    """GPU time and counts by kernel family, of two sides their change too; None for a CPU run."""
    two, rows = len(sides) == 2, []
    for family, figures in times_by_family(sides).items():
        counts, times = zip(*figures, strict=True)
        time_change = (duration_change(times[1] - times[0]),) if two else ()
        changed = (count_change(counts[1] - counts[0]),) if two else ()
        rows.append((family, *map(duration, times), *time_change, *map(count, counts), *changed))
    change = ("change",) if two else ()
    labels = [[f"{what} {letter}".strip() for letter, _ in sides] for what in ("time", "count")]
    heads = columns("Family", figures=(*labels[0], *change, *labels[1], *change))
    caption = f"GPU time and kernels by family, {scope_of(sides)}"
    note = "Copies and memsets are not kernels."
    if any(row[0].endswith("(Triton)") for row in rows):
        note += " (Triton): Inductor wrote the kernel from a template."
    return filled_table(caption, heads, rows, note)


def top_kernels_table(side: Side, letter: str, limit: int = 15) -> Table | None:
    """The kernels with the largest total time; None when the side has no GPU figures."""
    kernels = side.analysis.kernels
    if kernels is None:
        return None
    rows = tuple(
        (
            kernel_name(each.name),
            family_words(each),
            count(each.count / side.steps),
            duration(each.total_us / side.steps),
            duration(each.mean_us),
            percent(each.total_us / kernels.total_us if kernels.total_us else None),
        )
        for each in kernels.by_name[:limit]
    )
    heads = columns("Kernel", "Family", figures=("Count", "Total", "Mean", "Share"))
    note = f"{len(rows)} of {kernels.unique:,} names; the share is of kernel time."
    return Table(f"Largest kernels of {side_name(letter, side)}, {scope(side)}", heads, rows, note)


def every_kernel(side: Side) -> Explorer | None:
    """Kernels, copies, memsets by name, largest total time first, and what those without a row come to. None for a CPU
    run."""
    kernels, copies = side.analysis.kernels, side.analysis.copies
    found = [*(kernels.by_name if kernels else ()), *(copies.by_name if copies else ())]
    found.sort(key=lambda each: -each.total_us)
    if not found:
        return None
    operators = defaultdict[str, Counter[Operator]](Counter)
    for each in side.sequence.activities if side.sequence else ():
        if each.operator is not None:
            operators[each.name][each.operator] += 1
    whole_us = sum(each.total_us for each in found)
    code, ids = kernel_code((side,), (each.name for each in found))
    rows = fitting(
        _kernel_row(at, each, side.steps, whole_us, operators[each.name], ids)
        for at, each in enumerate(found[:MOST_ROWS])
    )
    note, rest = "Share of all GPU time.", found[len(rows) :]
    if side.sequence and side.sequence.operators != "none":
        note += " A row opens to its operators and input sizes."
    if rest:
        us = sum(each.total_us for each in rest) / side.steps
        note += f" {counted(len(rest), 'shorter name')}, {duration(us)} in total, are not listed."
    return Explorer(
        caption=f"Kernels, copies and memsets by name, {scope(side)}",
        noun="names",
        hint="kernel, family, operator, size",
        head="Kernel",
        words=("Family",),
        figures=("count", "total", "mean", "share"),
        rows=rows,
        note=note,
        code=code,
        anchor="kernel",
    )


def _kernel_row(
    number: int, each: KernelTime, steps: int, whole_us: float, calls: Counter[Operator], code: CodeOf
) -> ExplorerRow:
    share = each.total_us / whole_us if whole_us else 0.0
    name, short, where = each.name, short_kernel_name(each.name, 90), []
    for operator, times in calls.most_common(MOST_OPERATORS):
        sizes = ", ".join("x".join(map(str, shape)) for shape in operator.dims if shape)
        called = f"{operator.name} ({sizes})" if sizes else operator.name
        where.append(clipped(f"{times}\N{MULTIPLICATION SIGN} {called}", 160))
    if len(calls) > MOST_OPERATORS:
        where.append(f"{len(calls) - MOST_OPERATORS} other calls")
    return ExplorerRow(
        number=number,
        label=short,
        is_code=True,
        words=(family_words(each),),
        figures=(
            Figure(count(each.count / steps), each.count / steps),
            Figure(duration(each.total_us / steps), each.total_us / steps),
            Figure(duration(each.mean_us), each.mean_us),
            Figure(percent(share), share),
        ),
        where=tuple(where),
        evidence=(clipped(name, LONGEST_NAME),) if name != short else (),
        code=code.get(each.name, ()),
    )


def kernel_code(sides: Sequence[Side], names: Iterable[str]) -> tuple[tuple[KernelCode, ...], CodeOf]:
    """Inductor's code of kernels of these names, each kernel once in a page, as many as leave the page small enough,
    the first names first; and the ids of each name's."""
    sources: dict[str, dict[tuple[str, ...], None]] = {}
    for side in sides:
        for name, of_name in (side.kernel_sources.sources if side.kernel_sources else {}).items():
            for source in of_name:
                alone = source[max(source.find(BEGINNING), 0) :]
                cut = ("# ... the rest is left out",) if len(alone) > LONGEST_CODE else ()
                lines = (*alone[:LONGEST_CODE].expandtabs().splitlines(), *cut)
                sources.setdefault(name, {})[lines] = None
    found: list[KernelCode] = []
    ids: CodeOf = {}
    room = MOST_CODE_BYTES
    for name in dict.fromkeys(names):
        own = list(sources.get(name, ()))
        if own and (room := room - sum(len(escape(line).encode()) + 1 for lines in own for line in lines)) < 0:
            break
        for number, lines in enumerate(own, 1):
            told = short_kernel_name(name, 160) + (f" ({number} of {len(own)} of this name)" if len(own) > 1 else "")
            found.append(KernelCode(f"triton-{len(found)}", told, lines))
            ids[name] = (*ids.get(name, ()), found[-1].id)
    return tuple(found), ids


def fitting(rows: Iterable[ExplorerRow]) -> tuple[ExplorerRow, ...]:
    """The first of the rows, as many as leave the page small enough; one at least."""
    shown: list[ExplorerRow] = []
    room = MOST_BYTES
    for row in rows:
        room -= bytes_of(row)
        if room < 0 and shown:
            break
        shown.append(row)
    return tuple(shown)


def bytes_of(row: ExplorerRow) -> int:
    """About how long the row is in the page."""
    texts = [row.label, row.place, *row.words, *row.where, *row.evidence, *(figure.text for figure in row.figures)]
    texts += [text for member in row.members for text in (member.name.full, member.name.short, member.text)]
    texts += [text for fact in row.facts for text in fact]
    texts += [text for each in row.excerpts for text in (each.title, *each.lines)]
    around = AROUND_ROW + AROUND_CELL * (len(row.words) + len(row.figures)) + AROUND_MEMBER * len(row.members)
    return around + sum(len(escape(text).encode()) for text in texts)


def operator_table(side: Side, letter: str, limit: int = 15) -> Table | None:
    """The operators with the most time of their own; None for a GPU run."""
    cpu = side.analysis.cpu
    if cpu is None:
        return None
    rows = tuple(
        (
            Name(full=each.name, short=clipped(each.name, 64)),
            count(each.count / side.steps),
            duration(each.self_us / side.steps),
            percent(each.self_us / cpu.operator_us if cpu.operator_us else None),
        )
        for each in cpu.top[:limit]
    )
    caption = f"Operators of {side_name(letter, side)}, {scope(side)}"
    heads = columns("Operator", figures=("Count", "Self time", "Share"))
    return Table(caption, heads, rows, "Self time excludes called operators.")
