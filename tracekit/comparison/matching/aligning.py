"""Two sequences to cells: library calls first, then what is alike between them, then what was fused, then the rest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tracekit.comparison.matching.anchors import tie_anchors
from tracekit.comparison.matching.assigning import MOST, REACH, Bounds, Kernels, Side, assign, list_kernels
from tracekit.comparison.matching.cell import Cell, check_partition
from tracekit.comparison.matching.likeness import likeness, named_by, spread_words
from tracekit.comparison.matching.segments import cut_into_segments
from tracekit.comparison.matching.subsequence import common_subsequence
from tracekit.comparison.matching.units import Unit, cut_into_units
from tracekit.model import sequence as work
from tracekit.model.comparison import MatchedBy

#: What is left of both sides in one place is one cell up to so many units; more of them is no place.
FEW = 40
#: How many kernels further one may take an operator from.
NEIGHBOURS = 8


def align(a: work.Sequence, b: work.Sequence) -> tuple[Cell, ...]:
    """Which activities of A and of B do the same work: every position of either side in exactly one cell, in order.

    Library calls (matrix products, attention, convolutions) with the same shapes tie the sides together. What stands
    between two of them is divided as finely as operators and the names of Triton kernels prove.
    """
    one, other = (cut_into_units(side, by_kernel=_named(a, b)) for side in (a, b))
    # Operators are assigned to fused kernels; where A is the compiled side, from B to A.
    if _fused_count(one) > _fused_count(other):
        groups = [(right, left, how) for left, right, how in _Alignment(other, one, _named(a, b)).groups()]
    else:
        groups = _Alignment(one, other, _named(a, b)).groups()
    cells = tuple(sorted((_cell(one, other, *group) for group in groups), key=lambda cell: (cell.a or cell.b, cell.b)))
    check_partition(cells, len(a.activities), len(b.activities))
    return cells


def _fused_count(units: Sequence[Unit]) -> int:
    return sum(unit.fused is not None for unit in units)


def _named(a: work.Sequence, b: work.Sequence) -> bool:
    """Whether a side knows the names of kernels alone."""
    return "none" in (a.operators, b.operators)


def _cell(one: Sequence[Unit], other: Sequence[Unit], a: Iterable[int], b: Iterable[int], how: MatchedBy) -> Cell:
    return Cell(
        tuple(sorted(at for each in a for at in one[each].positions)),
        tuple(sorted(at for each in b for at in other[each].positions)),
        how,
    )


_Group = tuple[Sequence[int], Sequence[int], MatchedBy]
_Node = tuple[str, int]


class _Alignment:
    """Units of two sides put together, step by step. The plain side's are put to the fused side's kernels."""

    def __init__(self, plain: Sequence[Unit], fused: Sequence[Unit], by_names: bool) -> None:
        self.plain, self.fused, self.by_names = plain, fused, by_names
        self.ties = tie_anchors(plain, fused)
        segments = cut_into_segments(self.ties, len(plain), len(fused))
        self.plain_segments, self.fused_segments = segments.a, segments.b
        self.together = _Together()
        self.plain_tied = {i for tie in self.ties for i in tie.a}
        self.fused_tied = {j for tie in self.ties for j in tie.b}
        self.apart = {j for tie in self.ties if len(tie.b) > 1 for j in tie.b}
        self.plain_done, self.fused_done = set(self.plain_tied), set(self.fused_tied)

    def groups(self) -> list[_Group]:
        for tie in self.ties:
            self._join(tie.a, tie.b)
        self._join_same()
        self._join_fused()
        self._join_helpers()
        self._join_own_work()
        found: list[_Group] = [(*sides, "anchors") for sides in self.together.groups()]
        return [*found, *self._left()]

    def _join(self, plain: Iterable[int], fused: Iterable[int]) -> None:
        plain, fused = list(plain), list(fused)
        self.together.join([("plain", i) for i in plain] + [("fused", j) for j in fused])
        self.plain_done.update(plain)
        self.fused_done.update(fused)

    def _join_same(self) -> None:
        """Units of one segment that are the same on both sides: by kernel and operator, then by operator alone."""
        for key in (self._whole_signature, _operator_signature):
            left, right = self._free_by_segment()
            for segment in left.keys() & right.keys():
                plain, fused = left[segment], right[segment]
                pairs = common_subsequence([key(self.plain[i]) for i in plain], [key(self.fused[j]) for j in fused])
                for i, j in pairs:
                    if key(self.plain[plain[i]]) is not None:
                        self._join([plain[i]], [fused[j]])

    def _whole_signature(self, unit: Unit) -> object:
        return unit.signature.names if self.by_names else unit.signature

    def _free_by_segment(self) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        left: dict[int, list[int]] = defaultdict(list)
        right: dict[int, list[int]] = defaultdict(list)
        for i, unit in enumerate(self.plain):
            if i not in self.plain_done and unit.kind is None:
                left[self.plain_segments[i]].append(i)
        for j, unit in enumerate(self.fused):
            if j not in self.fused_done and unit.kind is None:
                right[self.fused_segments[j]].append(j)
        return left, right

    def _join_fused(self) -> None:
        free = [i for i, unit in enumerate(self.plain) if i not in self.plain_done and unit.kind is None]
        # A product from a template of Inductor's is tied, and may do more than the product.
        candidates = [
            j for j, unit in enumerate(self.fused) if unit.fused and (j not in self.fused_done or unit.kind is not None)
        ]
        plain = Side(self.plain, self.plain_segments, free)
        fused = Side(self.fused, self.fused_segments, candidates)
        kernels = list_kernels(fused)
        found = assign(plain, fused, kernels, self._bounds(free), sorted(self.fused_tied))
        assigned: dict[int, list[int]] = defaultdict(list)
        for i, k in sorted(found.items()):
            assigned[k].append(i)
        self._share_out(kernels, assigned)
        for k, some in assigned.items():
            for operators, members in self._dealt(some, kernels[k].members):
                self._join(operators, members)

    def _bounds(self, free: Sequence[int]) -> list[Bounds]:
        """Where on the fused side each free unit would stand if the library calls around it were all that counted:
        behind the call before it, and before the next one that stands behind that."""
        partner = {i: tie.b for tie in self.ties for i in tie.a}
        tied = sorted(partner)
        ranks = sorted(self.fused_tied)
        found = []
        for i in free:
            at = bisect_left(tied, i)
            before = max(partner[tied[at - 1]]) if at else -1
            behind = (min(partner[each]) for each in tied[at : at + MOST])
            after = next((each for each in behind if each > before), len(self.fused))
            found.append(Bounds(bisect_left(ranks, before + 1), bisect_left(ranks, after)))
        return found

    def _share_out(self, kernels: Sequence[Kernels], assigned: dict[int, list[int]]) -> None:
        """A kernel that got nothing takes one operator for each time it ran from a kernel nearby, if it is named and
        sized as well by it: the last ones of a kernel before it, the first ones of a kernel behind it."""
        for k, each in enumerate(kernels):
            if assigned.get(k):
                continue
            near = [n for n in range(max(k - NEIGHBOURS, 0), min(k + NEIGHBOURS + 1, len(kernels))) if assigned.get(n)]
            spare = {n: self._spare(assigned[n], kernels[n], each) for n in near}
            best = max(near, key=lambda n: (self._likeness(spare[n], each), -abs(n - k)), default=None)
            if best is not None and spare[best]:
                assigned[k] = spare[best]
                assigned[best] = [i for i in assigned[best] if i not in spare[best]]

    def _likeness(self, some: list[int], kernels: Kernels) -> float:
        return max((likeness(self.plain[i], self.fused[kernels.members[0]]) for i in some), default=0.0)

    def _spare(self, some: list[int], owner: Kernels, other: Kernels) -> list[int]:
        """What `other` could do as well, and `owner` has one too many of to do the same each time it runs."""
        if abs(owner.segment - other.segment) > REACH:
            return []
        one, another = self.fused[owner.members[0]], self.fused[other.members[0]]
        by_kind: dict[object, list[int]] = defaultdict(list)
        for i in some:
            unit = self.plain[i]
            shared = not unit.sizes or not another.sizes or not unit.sizes.isdisjoint(another.sizes)
            if shared and likeness(unit, another) and not spread_words(one.fused or "") & unit.words:
                by_kind[unit.signature].append(i)
        wanted = len(other.members)
        for same in by_kind.values():
            over = len(same) % len(owner.members) if len(owner.members) > 1 else len(same) - 1
            if over >= wanted:
                return same[-wanted:] if other.members > owner.members else same[:wanted]
        return []

    def _dealt(self, some: list[int], members: tuple[int, ...]) -> Iterable[tuple[list[int], list[int]]]:
        """The operators dealt to equal kernels, in order, where there are as many of each for every one of them."""
        by_kind: dict[object, list[int]] = defaultdict(list)
        for i in some:
            by_kind[self.plain[i].signature].append(i)
        count = len(members)
        if count > 1 and all(len(same) % count == 0 for same in by_kind.values()):
            for at, member in enumerate(members):
                dealt = [i for same in by_kind.values() for i in _slice(same, at, count)]
                yield sorted(dealt), [member]
        elif some:
            yield some, list(members)

    def _join_helpers(self) -> None:
        """Kernels that got no operator but belong to one that did: part of a norm, of attention, of a product."""
        left = [j for j, unit in enumerate(self.fused) if j not in self.fused_done and unit.fused]
        while left:
            found = {j: other for j in left if (other := self._helped_by(j)) is not None}
            for j, other in found.items():
                self._join([], [j, other])
            # Of several that do a row together the next stands beside one that is placed now.
            left = [j for j in left if j not in found] if found else []

    def _helped_by(self, j: int) -> int | None:
        """The unit whose work kernel j has a part in; None where nothing says so."""
        around = (*self._near(range(j + 1, len(self.fused)), j), *self._near(range(j - 1, -1, -1), j))
        around = tuple(other for other in around if other in self.fused_done and self._shares_size(j, other))
        ways = (self._rest_of_row, self._taken_apart_near, self._library_call)
        return next((other for way in ways if (other := way(j, around)) is not None), None)

    def _rest_of_row(self, j: int, around: Sequence[int]) -> int | None:
        """The kernel that does the rest of what this one does of a row, and reads what it wrote or wrote what it reads:
        in the same place the next or the last one, else the next or the last within reach."""
        words = spread_words(self.fused[j].fused or "")
        for other in sorted(around, key=lambda each: self.fused_segments[each] != self.fused_segments[j]):
            if words & spread_words(self.fused[other].fused or ""):
                return other
        return None

    def _taken_apart_near(self, _: int, around: Sequence[int]) -> int | None:
        """A product of attention that was taken apart, which this kernel prepares or finishes."""
        return next((other for other in around if other in self.apart), None)

    def _library_call(self, j: int, around: Sequence[int]) -> int | None:
        """The library call whose operator the kernel's name lists: it lays out inputs, or adds what the call no longer
        does itself."""
        names = self.fused[j].fused or ""
        tied = (other for other in around if other in self.fused_tied)
        return next((other for other in tied if named_by(self.fused[other].words, names)), None)

    def _near(self, units: Iterable[int], j: int) -> Iterable[int]:
        """Those of the fused side within reach of unit j, as long as they follow one another."""
        for count, other in enumerate(units):
            if count == MOST or abs(self.fused_segments[other] - self.fused_segments[j]) > REACH:
                return
            yield other

    def _shares_size(self, one: int, other: int) -> bool:
        left, right = self.fused[one].sizes, self.fused[other].sizes
        return not left or not right or not left.isdisjoint(right)

    def _join_own_work(self) -> None:
        """Element-wise work of a library call that nobody else does stays with the call."""
        sides = (("plain", self.plain, self.plain_done), ("fused", self.fused, self.fused_done))
        for name, units, done in sides:
            for at in [at for at, unit in enumerate(units) if unit.own and at not in done]:
                beside = (each for each in (at - 1, at + 1) if 0 <= each < len(units))
                call = next((each for each in beside if units[each].call == units[at].call), None)
                if call is not None:
                    done.update((at, call))
                    self.together.join([(name, at), (name, call)])

    def _left(self) -> Iterable[_Group]:
        """What is left: of both sides in one place one cell; else of one side alone, eliminated or added if the other
        names nothing like it nearby."""
        places: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for i in range(len(self.plain)):
            if i not in self.plain_done:
                places[self.plain_segments[i]][0].append(i)
        for j in range(len(self.fused)):
            if j not in self.fused_done:
                places[self.fused_segments[j]][1].append(j)
        for plain, fused in places.values():
            if plain and fused and self._is_one_place(plain, fused):
                yield plain, fused, "anchors"
            else:
                yield from (([i], [], "anchors" if self._is_gone(i) else "unmatched") for i in plain)
                yield from (([], [j], "anchors" if self._is_new(j) else "unmatched") for j in fused)

    def _is_one_place(self, plain: list[int], fused: list[int]) -> bool:
        """Between two library calls that are the same ones on both sides, and without any of its own, nor copies."""
        units = [*(self.plain[i] for i in plain), *(self.fused[j] for j in fused)]
        return (
            bool(self.ties)
            and not any(unit.kind or unit.copies for unit in units)
            and max(len(plain), len(fused)) <= FEW
        )

    def _is_gone(self, i: int) -> bool:
        """Whether no fused kernel within reach names the operator."""
        unit = self.plain[i]
        if unit.kind is not None:
            return False
        low = bisect_left(self.fused_segments, self.plain_segments[i] - REACH)
        high = bisect_right(self.fused_segments, self.plain_segments[i] + REACH)
        near = (self.fused[j] for j in range(low, min(high, low + 4 * MOST)))
        return not any(each.fused and likeness(unit, each) for each in near)

    def _is_new(self, j: int) -> bool:
        """Whether the kernel names no operator of its sizes within reach."""
        unit = self.fused[j]
        if unit.kind is not None:
            return False
        low = bisect_left(self.plain_segments, self.fused_segments[j] - REACH)
        high = bisect_right(self.plain_segments, self.fused_segments[j] + REACH)
        near = (self.plain[i] for i in range(low, min(high, low + 4 * MOST)))
        return not unit.fused or not any(each.kind is None and likeness(each, unit) > 1 for each in near)


def _operator_signature(unit: Unit) -> object:
    """The operators with their inputs' shapes; None where nothing is known or a kernel is fused."""
    return None if unit.fused or not unit.signature.operators else unit.signature.operators


def _slice(things: list[int], at: int, count: int) -> list[int]:
    """One of `count` equal parts."""
    size = len(things) // count
    return things[at * size : (at + 1) * size]


class _Together:
    """Which units belong together: each knows another one of its group."""

    def __init__(self) -> None:
        self._other: dict[_Node, _Node] = {}

    def join(self, nodes: list[_Node]) -> None:
        for node in nodes:
            self._other.setdefault(node, node)
        for node in nodes[1:]:
            self._other[self._first(node)] = self._first(nodes[0])

    def _first(self, node: _Node) -> _Node:
        while (other := self._other[node]) != node:
            self._other[node] = node = self._other[other]
        return node

    def groups(self) -> list[tuple[list[int], list[int]]]:
        found: dict[_Node, tuple[list[int], list[int]]] = {}
        for node in self._other:
            plain, fused = found.setdefault(self._first(node), ([], []))
            (plain if node[0] == "plain" else fused).append(node[1])
        return list(found.values())
