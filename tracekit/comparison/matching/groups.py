"""Which kernels of A and of B do the same work, and what became of them?

What happens again and again in the same way is one group, with its number of repeats. The groups are a partition:
every GPU activity of both sides is in exactly one of them.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from collections.abc import Sequence as PySequence
from functools import cache
from itertools import chain
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from tracekit.comparison.cost.operator_calls import Call, find_calls, note_calls
from tracekit.comparison.cost.roofline import peak_of_side, rates_of
from tracekit.comparison.matching.cells import find_cells, with_as_many_steps
from tracekit.comparison.matching.groups_by_name import group_by_names, group_communication, largest_first, time_of
from tracekit.comparison.matching.kinds import find_evidence, kind_of
from tracekit.comparison.matching.operators import (
    KIND_OF_FAMILY,
    is_generated,
    is_library,
    kind_of_operator,
    library_family,
    triton_operators,
    without_number,
)
from tracekit.comparison.matching.pairing import Cell, check_partition
from tracekit.comparison.matching.units import first_alike
from tracekit.model.comparison import GroupKind, GroupMember, KernelGroup, Side, comparable
from tracekit.model.groups import GroupLabel, KernelCounts, Label, label_order
from tracekit.model.matching import MatchedWork, Matching
from tracekit.model.sequence import Activity, Peak, Rates, Sequence, Traffic
from tracekit.names import plain_name

#: Of the devices that A and B ran on.
Peaks = tuple[Peak | None, Peak | None]

#: Work of more different shapes than this is a loop whose lengths grow: it is one group.
MOST_SHAPES = 4
#: The number of a block in a module's path; a line is `file.py:12`.
NUMBER = re.compile(r"\.\d+(?=\.|$)")

#: At most so many operators are named, and so many inputs.
MOST_NAMES = 4
MOST_INPUTS = 3
#: Operators that only view or prepare, which nobody needs to read.
UNTELLING = ("copy", "to", "view", "reshape", "contiguous", "clone", "_to_copy", "expand", "unsqueeze", "permute")


class Piece(Struct, frozen=True):
    """What a cell holds: the activities of either side, in order, and the operator calls whose main activities they
    are. What else a call launched may stand in other cells."""

    cell: Cell
    a: tuple[Activity, ...]
    b: tuple[Activity, ...]
    a_calls: tuple[Call, ...] = ()
    b_calls: tuple[Call, ...] = ()

    @property
    def kind(self) -> GroupKind:
        return "unmatched" if self.cell.how == "unmatched" else kind_of(self.a, self.b)

    @property
    def work(self) -> Hashable:
        """What became of it, the kernels of both sides and the operators of A: the numbers in names of Triton kernels
        say nothing."""
        a = tuple((without_number(each.name), each.operator and without_number(each.operator.name)) for each in self.a)
        b = tuple(without_number(each.name) for each in self.b)
        return self.cell.how, self.cell.exact, self.kind, _places((self,)), a, b

    @property
    def shapes(self) -> Hashable:
        return tuple(
            tuple((each.operator.dims, each.operator.dtypes) if each.operator else None for each in side)
            for side in (self.a, self.b)
        )


def group_kernels(a: Side, b: Side, cells: tuple[Cell, ...] | None = None) -> tuple[KernelGroup, ...]:
    """Every kernel and copy of both sides, or of CPU runs every outermost operator, in exactly one group, per step, the
    largest change of time first.

    `cells` say what belongs together; without them kernels are told by their names, and operators not at all. Empty
    where one side alone has GPU figures, and where C++ kernels were not recorded. Raises AssertionError if an activity
    is in no group or in two: the figures would not add up.
    """
    if a.on_cpu and b.on_cpu:
        # Where C++ kernels left no events, what they did would seem to be gone.
        if cells is None or any(side.analysis.cpu is None or side.analysis.cpu.fused_us is None for side in (a, b)):
            return ()
        assert a.sequence is not None and b.sequence is not None
        groups = group_by_cells(a.sequence, b.sequence, cells, on_cpu=True)
        return tuple(sorted(groups, key=lambda group: (-abs(group.delta_us), label_order(group.label))))
    if not (a.analysis.kernels and b.analysis.kernels):
        return ()
    if a.sequence is None or b.sequence is None or cells is None:
        groups = group_by_names(a, b)
    else:
        groups = group_by_cells(a.sequence, b.sequence, cells, (peak_of_side(a), peak_of_side(b)))
    for side, members in ((a, [m for g in groups for m in g.a]), (b, [m for g in groups for m in g.b])):
        kernels, copies = side.analysis.kernels, side.analysis.copies
        whole = ((kernels.total_us if kernels else 0.0) + (copies.total_us if copies else 0.0)) / side.steps
        if not math.isclose(time_of(members), whole, rel_tol=1e-6, abs_tol=1e-3):
            raise AssertionError(f"kernel groups of {side.label} add up to {time_of(members)} us, not to {whole} us")
    return tuple(sorted(groups, key=lambda group: (-abs(group.delta_us), label_order(group.label))))


def match_work(a: Side, b: Side) -> Matching | None:
    """The pieces behind the groups of a comparison, in the order of A and, where A has nothing, of B.

    None where kernels can only be told by their names: a side has no activities in order, or the two windows are not
    of one kind.
    """
    if not comparable(a, b):
        return None
    a, b = with_as_many_steps(note_calls(a), note_calls(b))
    cells, _ = find_cells(a, b)
    if a.sequence is None or b.sequence is None or cells is None:
        return None
    groups = group_by_cells(a.sequence, b.sequence, cells, (peak_of_side(a), peak_of_side(b)))
    of_a = {at: group for group in groups for at in group.a_at}
    of_b = {at: group for group in groups for at in group.b_at}
    work = [MatchedWork(of_a[c.a[0]] if c.a else of_b[c.b[0]], c.a, c.b, c.where) for c in cells]
    return Matching(a.sequence, b.sequence, tuple(sorted(work, key=lambda each: (not each.a, each.a or each.b))))


def group_by_cells(
    a: Sequence, b: Sequence, cells: tuple[Cell, ...], peaks: Peaks = (None, None), *, on_cpu: bool = False
) -> tuple[KernelGroup, ...]:
    """Cells with the same kernels, operators and shapes together, per step. The cells are a partition of both sides,
    however they were found. `peaks` are those of the two devices, for shares of them."""
    check_partition(cells, len(a.activities), len(b.activities))
    a_calls, b_calls = find_calls(a.activities), find_calls(b.activities)
    # Pieces of the same work, divided by shape as long as there are few; and where those of like activities are.
    by_work: dict[Hashable, dict[Hashable, list[Piece]]] = defaultdict(lambda: defaultdict(list))
    known: dict[Hashable, list[Piece]] = {}
    a_like, b_like = first_alike(a.activities), first_alike(b.activities)
    apart = [cell for cell in cells if cell.how == "family"]
    for cell in cells:
        if cell.how == "family":
            continue
        piece = Piece(
            cell,
            tuple(a.activities[at] for at in cell.a),
            tuple(b.activities[at] for at in cell.b),
            tuple(a_calls[at] for at in cell.a if at in a_calls),
            tuple(b_calls[at] for at in cell.b if at in b_calls),
        )
        like = tuple(a_like[at] for at in cell.a), tuple(b_like[at] for at in cell.b)
        key = cell.how, cell.exact, cell.where, *like
        if key not in known:
            known[key] = by_work[piece.work][piece.shapes]
        known[key].append(piece)
    groups: list[KernelGroup] = []
    for by_shape in by_work.values():
        few, some = len(by_shape) <= MOST_SHAPES, list(by_shape.values())
        divided = some if few else [list(chain.from_iterable(some))]
        groups += [_group(pieces, a.per_step, b.per_step, peaks, one_shape=few, on_cpu=on_cpu) for pieces in divided]
    a_at, b_at = (tuple(at for cell in apart for at in getattr(cell, side)) for side in ("a", "b"))
    a_apart = _members((a.activities[at] for at in a_at), a.per_step)
    b_apart = _members((b.activities[at] for at in b_at), b.per_step)
    return (*groups, *group_communication(a_apart, b_apart, a_at, b_at))


def _places(pieces: Iterable[Piece]) -> tuple[str, ...]:
    """Modules and lines, equal blocks of a model as one: `blocks.*.norm` for `blocks.0.norm`."""
    return tuple(dict.fromkeys(_without_numbers(place) for piece in pieces for place in piece.cell.where))


@cache
def _without_numbers(place: str) -> str:
    return NUMBER.sub(".*", place)


def _group(
    pieces: list[Piece], a_per_step: float, b_per_step: float, peaks: Peaks, *, one_shape: bool, on_cpu: bool
) -> KernelGroup:
    first, kind = pieces[0], pieces[0].kind
    a = _members((each for piece in pieces for each in piece.a), a_per_step)
    b = _members((each for piece in pieces for each in piece.b), b_per_step)
    repeats = len(pieces) * (a_per_step if first.a else b_per_step)
    # The activities of the first piece, with the mean times of all.
    typical = [
        [replace(some[0], duration_us=fmean(each.duration_us for each in some)) for some in zip(*sides, strict=True)]
        for sides in ([piece.a for piece in pieces], [piece.b for piece in pieces])
    ]
    return KernelGroup(
        kind=kind,
        label=label_of(kind, first.a, first.b, repeats, on_cpu=on_cpu),
        how="unmatched" if kind == "unmatched" else first.cell.how,
        a=a,
        b=b,
        delta_count=sum(member.count for member in b) - sum(member.count for member in a),
        delta_us=sum(member.total_us for member in b) - sum(member.total_us for member in a),
        where=first.cell.where if len(pieces) == 1 else _places(pieces),
        repeats=repeats,
        exact=first.cell.exact,
        evidence=find_evidence(kind, *typical),
        traffic=None if on_cpu else _traffic(pieces, a_per_step, b_per_step),
        rates=None if on_cpu else _rates(pieces, peaks),
        sizes=sizes_of(first.a or first.b) if one_shape else "",
        a_at=tuple(at for piece in pieces for at in piece.cell.a),
        b_at=tuple(at for piece in pieces for at in piece.cell.b),
    )


def _members(activities: Iterable[Activity], per_step: float) -> tuple[GroupMember, ...]:
    counts: Counter[str] = Counter()
    times: dict[str, float] = defaultdict(float)
    for each in activities:
        counts[each.name] += 1
        times[each.name] += each.duration_us
    return largest_first(GroupMember(name, count * per_step, times[name] * per_step) for name, count in counts.items())


def _traffic(pieces: list[Piece], a_per_step: float, b_per_step: float) -> Traffic | None:
    """Of all pieces together, each with its own sizes; None where those of no call are known."""
    totals: list[float | None] = []
    missing: list[float] = []
    for side, per_step in (("a_calls", a_per_step), ("b_calls", b_per_step)):
        sizes = [call.bytes for piece in pieces for call in getattr(piece, side)]
        known = [size for size in sizes if size is not None]
        totals.append(sum(known) * per_step if known or not sizes else None)
        missing.append(sizes.count(None) * per_step)
    return Traffic(totals[0], totals[1], *missing) if any(totals) or not any(missing) else None


def _rates(pieces: list[Piece], peaks: Peaks) -> Rates | None:
    """Those of the call that takes longest, over all pieces, if anything is known of it: one of B's, of A's where B has
    none."""
    on_b = bool(pieces[0].b)
    calls = [piece.b_calls if on_b else piece.a_calls for piece in pieces]
    if not calls[0] or len({len(some) for some in calls}) > 1:
        return None
    longest = max(zip(*calls, strict=True), key=lambda some: math.fsum(call.duration_us for call in some))
    found = rates_of(longest, peaks[on_b])
    return None if found.bytes is None and found.flops is None else found


def label_of(
    kind: GroupKind, a: PySequence[Activity], b: PySequence[Activity], repeats: float, *, on_cpu: bool = False
) -> Label:
    """The kernels of both sides and what asked for them; what is unchanged is called by its kernel's name."""
    if kind == "unchanged":
        return _main(a).name
    # Attention has one name, and a long one.
    names = [] if _main(a or b).family == "attention" else _operators(a) or _operators(b)
    counts: list[KernelCounts | None] = []
    for side in (a, b):
        kinds = Counter(KIND_OF_FAMILY[family] for each in side if (family := library_family(each)))
        generated = sum(is_generated(each.name) for each in side)
        libraries = tuple(sorted(kinds.items()))
        counts.append(KernelCounts(len(side), generated, libraries, on_cpu) if side else None)
    return GroupLabel(kind, repeats, counts[0], counts[1], tuple(names[:MOST_NAMES]), len(names) > MOST_NAMES)


def _main(activities: PySequence[Activity]) -> Activity:
    """The library kernel, or else the longest."""
    return max(activities, key=lambda each: (is_library(each), each.duration_us))


def _operators(activities: PySequence[Activity]) -> list[str]:
    """The outermost operators that tell something, as their user knows them, each once, in order; of Triton kernels
    alone the list in their names."""
    found: dict[str, None] = {}
    for each in activities:
        names = [name for name in each.within if not name.startswith("triton_")]
        library = next((name for name in names if kind_of_operator(name)), None)
        telling = (name for name in map(plain_name, names) if name not in UNTELLING)
        found[plain_name(library) if library else next(telling, "")] = None
    found.pop("", None)
    lists = (triton_operators(each.name) for each in activities) if not found else ()
    return list(found) or list(dict.fromkeys(each.strip("_") for each in lists if each))


def sizes_of(activities: PySequence[Activity]) -> str:
    """`512x3072, 3072x3072`: the tensors that the main activity's operator was called with; empty where they were not
    recorded."""
    operator = _main(activities).operator if activities else None
    shapes = ["x".join(map(str, dims)) for dims in operator.dims if dims] if operator else []
    return ", ".join([*shapes[:MOST_INPUTS], *(["..."] if len(shapes) > MOST_INPUTS else [])])
