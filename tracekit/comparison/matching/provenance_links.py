"""Which activities of the eager form and of the compiled form are the same work? Told by provenance alone.

Both forms were asked, in a call of its own, where each of their activities came from. The sequences to be linked are
of other recordings of the same forms, and run the same kernels in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tracekit.comparison.matching.common_subsequence import places_in_table, same_launches
from tracekit.comparison.matching.launch_site_operators import Join, join_operators
from tracekit.comparison.matching.launch_sites import Placed, place
from tracekit.comparison.matching.pairing import UnionFind
from tracekit.model.note import Note
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.sequence import Sequence as GpuSequence

#: Of a link's places so many are named.
MOST_PLACES = 12


@dataclass(frozen=True, slots=True)
class Link:
    """Activities of the eager form and of the compiled form (positions in their sequences) that do the same work.

    Without positions in b the compiled form does not need the work; without positions in a the compiler added it.
    `where` are modules and lines of user code. `exact`: every piece of it was identified, none by elimination.
    """

    a_positions: tuple[int, ...]
    b_positions: tuple[int, ...]
    where: tuple[str, ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class Linked:
    """What provenance says of two sequences. No position is in two links; what is in none is for others to match.

    `a_aligned` and `b_aligned` are the positions that the runs with provenance hold too. `notes` say what is amiss.
    """

    links: tuple[Link, ...]
    a_aligned: int
    b_aligned: int
    notes: tuple[Note, ...]


def link(a: GpuSequence, b: GpuSequence, eager: EagerOps, compiled: CompiledSites) -> Linked:
    """The links between the eager sequence `a` and the compiled sequence `b`."""
    noted = [Note("provenance_noted", facts={"message": message}) for message in compiled.notes]
    if not eager.activities or not compiled.activities:
        return Linked((), 0, 0, (*noted, Note("provenance_without_work")))
    in_eager, in_compiled = (
        places_in_table([each.name for each in sequence.activities], [each.name for each in asked], _steps(sequence))
        for sequence, asked in ((a, eager.activities), (b, compiled.activities))
    )
    placed = place(compiled, {activity.name: activity.family for activity in b.activities})
    join = join_operators(eager, compiled)
    linking = _Linking(a, b, eager, compiled, in_eager, in_compiled)
    links = linking.links(placed, join)
    return Linked(
        links=links,
        a_aligned=sum(i is not None for i in in_eager),
        b_aligned=sum(i is not None for i in in_compiled),
        notes=(*noted, *_notes(linking, placed, join)),
    )


def _steps(sequence: GpuSequence) -> int:
    """How many steps follow one another in the sequence."""
    return max(round(1 / sequence.per_step), 1)


#: An eager operator, a launch site, or activities that were placed together: what kind, and which.
Thing = tuple[Literal["op", "site", "launched"], Any]


@dataclass(frozen=True)
class _Linking:
    """`in_eager` and `in_compiled` are, for each position, the activity of the run with provenance."""

    a: GpuSequence
    b: GpuSequence
    eager: EagerOps
    compiled: CompiledSites
    in_eager: list[int | None]
    in_compiled: list[int | None]

    def links(self, placed: tuple[Placed, ...], join: Join) -> tuple[Link, ...]:
        """Those through graphs, those of what runs outside of them, and what only one side has."""
        through = tuple(self._through_graphs(placed, join))
        # What no graph call launched.
        b_outside = [
            i
            for i in self._positions_without(self.in_compiled, (i for each in through for i in each.b_positions))
            if (place := self.in_compiled[i]) is not None and self.compiled.activities[place].call is None
        ]
        a_outside = self._positions_without(self.in_eager, (i for each in through for i in each.a_positions))
        outside = self._outside_graphs(a_outside, b_outside, join)
        a_taken = {i for each in (*through, *outside) for i in each.a_positions}
        b_taken = {i for each in (*through, *outside) for i in each.b_positions}
        # Where work outside of graphs has found no partner it may be that of an operator that no graph has.
        saved = () if set(b_outside) - b_taken else self._saved(a_taken, join)
        return (*through, *outside, *saved, *self._added(placed, b_taken, join))

    def _positions_without(self, places: Sequence[int | None], taken: Iterable[int]) -> list[int]:
        """What the run with provenance holds too, and is not taken."""
        known = set(taken)
        return [i for i, place in enumerate(places) if place is not None and i not in known]

    def _through_graphs(self, placed: tuple[Placed, ...], join: Join) -> Iterator[Link]:
        """Operators, sites and activities that hang together."""
        groups: UnionFind[Thing] = UnionFind()
        inexact: set[Thing] = set()
        for number, each in enumerate(placed):
            things: list[Thing] = [("launched", number), *(("site", site) for site in each.sites)]
            groups.join(things)
            inexact |= set() if each.exact else {things[0]}
        for joined in join.joined:
            things = [("op", joined.op), *(("site", site) for site in joined.sites)]
            groups.join(things)
            inexact |= set() if joined.exact else {things[0]}
        of_op, of_activity = self._positions_of_ops(), self._positions_of_activities()
        for members in groups.groups():
            ops = [key for kind, key in members if kind == "op"]
            launched = [placed[key] for kind, key in members if kind == "launched"]
            a = sorted(i for op in ops for i in of_op.get(op, ()))
            b = sorted(i for each in launched for k in each.activities for i in of_activity.get(k, ()))
            exact = inexact.isdisjoint(members)
            # Nodes without a launch are work saved; launches of a graph's that are no site's are work added.
            no_site = all(kind != "site" for kind, _ in members)
            if (a and b) or ((a or (b and exact)) and no_site):
                yield Link(tuple(a), tuple(b), self._where(ops), exact)

    def _saved(self, taken: set[int], join: Join) -> Iterator[Link]:
        """Operators that no graph has a node for, in modules where every site stands for others: nobody does their
        work."""
        of_op = self._positions_of_ops()
        for op in join.unmatched:
            positions = [i for i in of_op.get(op, ()) if i not in taken]
            if positions and not join.may_be_unexplained(self.eager.ops[op].module):
                yield Link(tuple(positions), (), self._where([op]), exact=False)

    def _added(self, placed: tuple[Placed, ...], taken: set[int], join: Join) -> Iterator[Link]:
        """Sites that stand for no operator, in modules where every operator has others: work of the compiler's own."""
        modules = {self.eager.ops[op].module for op in join.unmatched}
        own = {
            each.site: each
            for each in join.unexplained
            if each.modules is not None and modules.isdisjoint(each.modules)
        }
        of_activity = self._positions_of_activities()
        for each in placed:
            unexplained = [own[site] for site in each.sites if site in own]
            positions = sorted(i for k in each.activities for i in of_activity.get(k, ()) if i not in taken)
            if positions and unexplained and len(unexplained) == len(each.sites):
                where = dict.fromkeys(place for some in unexplained for place in (*(some.modules or ()), *some.lines))
                yield Link((), tuple(positions), tuple(filter(None, where))[:MOST_PLACES], exact=False)

    def _positions_of_ops(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for i in range(len(self.in_eager)):
            if (op := self._op_at(i)) is not None:
                found.setdefault(op, []).append(i)
        return found

    def _positions_of_activities(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for i, activity in enumerate(self.in_compiled):
            if activity is not None:
                found.setdefault(activity, []).append(i)
        return found

    def _where(self, ops: Sequence[int]) -> tuple[str, ...]:
        """Modules, then lines, each once."""
        some = [self.eager.ops[op] for op in sorted(ops)]
        places = dict.fromkeys([op.module for op in some if op.module] + [op.line for op in some if op.line])
        return tuple(places)[:MOST_PLACES]

    def _outside_graphs(self, a: list[int], b: list[int], join: Join) -> tuple[Link, ...]:
        """What neither form compiled runs alike in both: the same kernels in the same order. Between the graphs of a
        broken model that may be operators inside compiled modules too."""
        joined, unmatched = {each.op for each in join.joined}, set(join.unmatched)
        a = [i for i in a if self._op_at(i) not in joined]
        a_names, b_names = [self.a.activities[i].name for i in a], [self.b.activities[j].name for j in b]
        certain = [i for i in a if self._op_at(i) not in unmatched]
        if (certain_names := [self.a.activities[i].name for i in certain]) == b_names:
            a, a_names = certain, certain_names
        return tuple(
            Link((a[i],), (b[j],), () if (op := self._op_at(a[i])) is None else self._where([op]), a_names == b_names)
            for i, j in same_launches(a_names, b_names)
        )

    def _op_at(self, position: int) -> int | None:
        activity = self.in_eager[position]
        return None if activity is None else self.eager.activities[activity].op


def _notes(linking: _Linking, placed: tuple[Placed, ...], join: Join) -> Iterator[Note]:
    sides = (
        ("eager", linking.in_eager, len(linking.eager.activities) * _steps(linking.a)),
        ("compiled", linking.in_compiled, len(linking.compiled.activities) * _steps(linking.b)),
    )
    for side, found, asked in sides:
        strange = sum(i is None for i in found)
        missing = asked - (len(found) - strange)
        if strange:
            yield Note("not_in_provenance", subject=side, facts={"activities": strange, "of_activities": len(found)})
        if missing > 0:
            yield Note("only_in_provenance", subject=side, facts={"activities": missing})
    if inexact := sum(not each.exact for each in placed):
        yield Note("ambiguous_launch_sites", facts={"groups": inexact})
    if approximate := sum(not each.exact for each in join.joined):
        facts = {"operators": approximate, "of_operators": len(join.joined)}
        yield Note("operators_linked_by_elimination", facts=facts)
    if join.wrong_sizes:
        yield Note("operators_of_other_sizes", facts={"operators": join.wrong_sizes})
    if join.unmatched:
        yield Note("operators_without_counterpart", facts={"operators": len(join.unmatched)})
    if join.unexplained:
        yield Note("unexplained_launch_sites", facts={"sites": len(join.unexplained)})
