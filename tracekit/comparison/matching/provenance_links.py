"""Which activities of the eager form and of the compiled form are the same work? Told by provenance alone.

Both forms were asked, in a call of its own, where each of their activities came from. The sequences to be linked are
of other recordings of the same forms, and run the same kernels in the same order.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct

from tracekit.comparison.matching.common_subsequence import places_in_table, same_launches
from tracekit.comparison.matching.launch_sites import Join, Joined, Placed, join_operators, place, positions_by
from tracekit.comparison.matching.pairing import Cell, UnionFind
from tracekit.model.note import Note
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.sequence import Sequence as GpuSequence
from tracekit.statements.notes import matching as notes

#: Of a cell's places so many are named.
MOST_PLACES = 12

#: An eager operator, a launch site, or activities that were placed together: what kind, and which.
Thing = tuple[Literal["op", "site", "launched"], Any]
#: For each position of a sequence the activity of the run with provenance; None where that has none.
Places = list[int | None]


def link(
    a: GpuSequence, b: GpuSequence, eager: EagerOps, compiled: CompiledSites
) -> tuple[tuple[Cell, ...], tuple[Note, ...]]:
    """Cells of the eager sequence `a` and the compiled sequence `b`, and what is amiss. No position is in two of them;
    what is in none is for others to match.

    A cell without positions in b is work that the compiled form does not need, one without positions in a is work that
    the compiler added. `where` are modules and lines of user code. `exact`: every piece of it was identified.
    """
    noted: list[Note] = [notes.ProvenanceNoted(each) for each in compiled.noted]
    if not eager.activities or not compiled.activities:
        return (), (*noted, notes.ProvenanceWithoutWork())
    places: list[Places] = []
    for side, sequence, asked in (("eager", a, eager.activities), ("compiled", b, compiled.activities)):
        steps = max(round(1 / sequence.per_step), 1)
        names = [each.name for each in sequence.activities]
        found = places_in_table(names, [each.name for each in asked], steps)
        places.append(found)
        if strange := found.count(None):
            noted.append(notes.NotInProvenance(side, strange, len(found)))
        if (missing := len(asked) * steps - (len(found) - strange)) > 0:
            noted.append(notes.OnlyInProvenance(side, missing))
    placed = place(compiled, {activity.name: activity.family for activity in b.activities})
    join = join_operators(eager, compiled)
    if ambiguous := sum(not each.exact for each in placed):
        noted.append(notes.AmbiguousLaunchSites(ambiguous))
    if inexact := sum(not each.exact for each in join.joined):
        noted.append(notes.OperatorsLinkedByElimination(inexact, len(join.joined)))
    if join.wrong_sizes:
        noted.append(notes.OperatorsOfOtherSizes(join.wrong_sizes))
    if join.unmatched:
        noted.append(notes.OperatorsWithoutCounterpart(len(join.unmatched)))
    if join.unexplained:
        noted.append(notes.UnexplainedLaunchSites(len(join.unexplained)))
    return _Linking(a, b, eager, compiled, places[0], places[1], placed, join).cells(), tuple(noted)


class _Linking(Struct, frozen=True):
    a: GpuSequence
    b: GpuSequence
    eager: EagerOps
    compiled: CompiledSites
    in_eager: Places
    in_compiled: Places
    placed: Sequence[Placed]
    join: Join

    def cells(self) -> tuple[Cell, ...]:
        """Those through graphs, those of what runs outside of them, and what only one side has."""
        ops = [None if at is None else self.eager.activities[at].op for at in self.in_eager]
        of_op, of_activity = positions_by(ops), positions_by(self.in_compiled)
        found = list(self._through_graphs(of_op, of_activity))
        a_taken, b_taken = {i for cell in found for i in cell.a}, {i for cell in found for i in cell.b}
        # What no graph call launched.
        b_outside = [
            i
            for i, at in enumerate(self.in_compiled)
            if at is not None and i not in b_taken and self.compiled.activities[at].call is None
        ]
        a_outside = [i for i, at in enumerate(self.in_eager) if at is not None and i not in a_taken]
        outside = list(self._outside_graphs(a_outside, b_outside, ops))
        a_taken |= {i for cell in outside for i in cell.a}
        b_taken |= {i for cell in outside for i in cell.b}
        found += outside
        # Where work outside of graphs has found no partner it may be that of an operator that no graph has.
        if b_taken.issuperset(b_outside):
            found += self._saved(of_op, a_taken)
        return (*found, *self._added(of_activity, b_taken))

    def _through_graphs(self, of_op: dict[int, list[int]], of_activity: dict[int, list[int]]) -> Iterator[Cell]:
        """Operators, sites and activities that hang together."""
        groups: UnionFind[Thing] = UnionFind()
        inexact: set[Thing] = set()
        things: list[tuple[Thing, Placed | Joined]] = [(("launched", at), each) for at, each in enumerate(self.placed)]
        things += [(("op", each.op), each) for each in self.join.joined]
        for thing, each in things:
            groups.join([thing, *(("site", site) for site in each.sites)])
            inexact |= set() if each.exact else {thing}
        for members in groups.groups():
            ops = [key for kind, key in members if kind == "op"]
            launched = [self.placed[key] for kind, key in members if kind == "launched"]
            a = sorted(i for op in ops for i in of_op.get(op, ()))
            b = sorted(i for each in launched for k in each.activities for i in of_activity.get(k, ()))
            exact = inexact.isdisjoint(members)
            # Nodes without a launch are work saved; launches of a graph's that are no site's are work added.
            no_site = all(kind != "site" for kind, _ in members)
            if (a and b) or ((a or (b and exact)) and no_site):
                yield Cell(tuple(a), tuple(b), "provenance", self._where(ops), exact)

    def _outside_graphs(self, a: list[int], b: list[int], ops: Places) -> Iterator[Cell]:
        """What neither form compiled runs alike in both: the same kernels in the same order. Between the graphs of a
        broken model that may be operators inside compiled modules too."""
        joined, unmatched = {each.op for each in self.join.joined}, set(self.join.unmatched)
        a = [i for i in a if ops[i] not in joined]
        certain = [i for i in a if ops[i] not in unmatched]
        b_names = [self.b.activities[j].name for j in b]
        if [self.a.activities[i].name for i in certain] == b_names:
            a = certain
        a_names = [self.a.activities[i].name for i in a]
        exact = a_names == b_names
        for i, j in same_launches(a_names, b_names):
            where = () if (op := ops[a[i]]) is None else self._where([op])
            yield Cell((a[i],), (b[j],), "provenance", where, exact)

    def _saved(self, of_op: dict[int, list[int]], taken: set[int]) -> Iterator[Cell]:
        """Operators that no graph has a node for, in modules where every site stands for others, one for one: nobody
        does their work."""
        doubtful = {self.eager.ops[each.op].module for each in self.join.joined if not each.exact}
        for op in self.join.unmatched:
            positions = [i for i in of_op.get(op, ()) if i not in taken]
            module = self.eager.ops[op].module
            explained = all(each.modules is not None and module not in each.modules for each in self.join.unexplained)
            if positions and explained and module not in doubtful:
                yield Cell(tuple(positions), (), "provenance", self._where([op]), exact=False)

    def _added(self, of_activity: dict[int, list[int]], taken: set[int]) -> Iterator[Cell]:
        """Sites that stand for no operator, in modules where every operator has others: work of the compiler's own."""
        modules = {self.eager.ops[op].module for op in self.join.unmatched}
        own = {
            each.site: (*filter(None, each.modules), *each.lines)
            for each in self.join.unexplained
            if each.modules is not None and modules.isdisjoint(each.modules)
        }
        for each in self.placed:
            positions = sorted(i for k in each.activities for i in of_activity.get(k, ()) if i not in taken)
            if positions and each.sites and own.keys() >= set(each.sites):
                where = dict.fromkeys(place for site in each.sites for place in own[site])
                yield Cell((), tuple(positions), "provenance", tuple(where)[:MOST_PLACES], exact=False)

    def _where(self, ops: Sequence[int]) -> tuple[str, ...]:
        """Modules, then lines, each once."""
        some = [self.eager.ops[op] for op in sorted(ops)]
        places = dict.fromkeys([op.module for op in some if op.module] + [op.line for op in some if op.line])
        return tuple(places)[:MOST_PLACES]
