"""Several ways to compile the same work: may they stand side by side, and which is fastest?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracekit.comparison.judging.fairness import find_other_machine
from tracekit.model.comparison import Comparison, Side
from tracekit.model.comparisons import Comparisons
from tracekit.model.note import Note
from tracekit.model.run import Settings

#: How a run compiles: what is being compared, and names it.
WAYS = ("mode", "scope", "dynamic", "fullgraph")

#: More columns no page can show.
MOST_RUNS = 8

#: From here on it is worth a word that eager code took longer in one process than in another.
EAGER_DIFFERS = 0.05
#: What two processes may differ by where eager code shows no more.
LEAST_DIFFERENCE = 0.02


def name_ways(settings: Sequence[Settings], folders: Sequence[str]) -> tuple[str, ...]:
    """What each run is called: what its way to compile differs in from the others, `reduce-overhead, regional`; the
    names of their folders where that does not tell them apart."""
    differing = [way for way in WAYS if len({getattr(each, way) for each in settings}) > 1]
    names = tuple(", ".join(_word(way, getattr(each, way)) for way in differing) for each in settings)
    return names if len(set(names)) == len(names) else tuple(folders)


def _word(way: str, value: object) -> str:
    """`reduce-overhead`; what is on or off with its name."""
    if way in ("mode", "scope"):
        return str(value)
    return f"{way} {'not set' if value is None else 'on' if value else 'off'}"


def labelled(a: Side, b: Side, name: str, *, alike: bool) -> tuple[Side, Side]:
    """Both forms of a run with the labels they have beside those of the other runs."""
    return replace(a, label="eager" if alike else f"eager, {name}"), replace(b, label=name)


def find_differences(sides: Sequence[Side], names: Sequence[str]) -> tuple[Note, ...]:
    """One note for each thing besides the way to compile in which a run differs from the first."""
    return tuple(
        replace(note, facts={**note.facts, "a_name": names[0], "b_name": name})
        for side, name in zip(sides[1:], names[1:], strict=True)
        for note in find_other_machine(sides[0], side)
    )


def set_beside(comparisons: Sequence[Comparison], paths: Sequence[str], differences: Sequence[Note]) -> Comparisons:
    """The comparisons side by side, with what must be known of all of them together. `differences` are those in machine
    and software."""
    return Comparisons(
        comparisons=tuple(comparisons),
        paths=tuple(paths),
        alike=not differences,
        notes=(*differences, *_other_eager(comparisons)),
        fastest=find_fastest(comparisons),
        told_apart_by=_least_difference(comparisons),
    )


def find_fastest(comparisons: Sequence[Comparison]) -> tuple[int, ...]:
    """The places of those that the largest certain speed-up cannot be told from, undecided ones too; empty where none
    is faster than eager. Told apart are two whose intervals leave room between them for what processes differ by: as
    much as eager code took longer in one than in another, and what each run says that a change must exceed. One that
    compiled inside its timed calls is not among them, whatever its times."""
    judged = {
        at: (each.verdict.result, each.verdict.speedup, each.verdict.ci95)
        for at, each in enumerate(comparisons)
        if each.verdict.speedup is not None and each.verdict.ci95 and not each.compiled_while_timed
    }
    certain = {at: speedup for at, (result, speedup, _) in judged.items() if result == "faster"}
    if not certain:
        return ()
    best = max(certain, key=lambda at: certain[at])
    low = judged[best][2][0] / (1 + _least_difference(comparisons))
    return tuple(at for at, (_, _, ci95) in judged.items() if at == best or ci95[1] >= low)


def _least_difference(comparisons: Sequence[Comparison]) -> float:
    walls = [each.a.wall_us for each in comparisons if each.a.wall_us]
    apart = max(walls) / min(walls) - 1 if walls else 0.0
    return max(LEAST_DIFFERENCE, apart, *(each.verdict.least_change or 0.0 for each in comparisons))


def _other_eager(comparisons: Sequence[Comparison]) -> tuple[Note, ...]:
    """That eager code took another time in another process, where it did: absolute times then differ for that too."""
    # By their places: labels may be the same.
    walls = {at: each.a.wall_us for at, each in enumerate(comparisons) if each.a.wall_us}
    if len(walls) < 2 or max(walls.values()) <= (1 + EAGER_DIFFERS) * min(walls.values()):
        return ()
    slowest, fastest = max(walls, key=lambda at: walls[at]), min(walls, key=lambda at: walls[at])
    names = {"slowest": comparisons[slowest].b.label, "fastest": comparisons[fastest].b.label}
    return (Note("eager_differs_between_runs", facts={**names, "ratio": walls[slowest] / walls[fastest]}),)
