"""What works and cells are called, so that each name tells no more than is needed to know them apart."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from tracekit.model.workload import Request
from tracekit.names import clipped
from tracekit.numbers import counted
from tracekit.sweep.cells import Cell
from tracekit.sweep.figures import CellFigures, Sweep, Work

#: Of a work's settings these are always said, the others where they differ.
ALWAYS = 2
#: Characters of a prompt, where prompts differ.
LONGEST_PROMPT = 40

#: What tells a work from the others of a sweep, its key first.
Identity = tuple[str | None, ...]


class Labels(Struct, frozen=True):
    """`common` is what all works share, for the heading. `works` are names by key and machine (`of`), of which all have
    the parts `begin` in front, and more."""

    common: tuple[str, ...]
    begin: tuple[str, ...]
    _works: dict[Identity, str]
    _scopes: bool

    def of(self, work: Work) -> str:
        """`vit, batch 4`."""
        return self._works[_identity(work)]

    def short(self, work: Work) -> str:
        """The name without what all begin with."""
        return self.of(work).removeprefix("".join(f"{part}, " for part in self.begin))

    def way(self, cell: Cell) -> str:
        """`reduce-overhead`, or `reduce-overhead of regional` where a workload was compiled in several scopes."""
        if cell.form == "eager":
            return "eager"
        asked = cell.request
        given = {"dynamic": asked.dynamic, "fullgraph": asked.fullgraph}
        more = "".join(f", {'' if value else 'no '}{name}" for name, value in given.items() if value is not None)
        return f"{asked.mode}{f' of {asked.scope}' if self._scopes and asked.scope else ''}{more}"


def named_cells(sweep: Sweep) -> list[tuple[str, str, CellFigures]]:
    """Every cell, after the name of its work and that of its way of compiling."""
    labels = label(sweep)
    return [(labels.of(work), labels.way(cell.cell), cell) for work in sweep.works for cell in work.cells]


def label(sweep: Sweep) -> Labels:
    """Names for the works and cells of this sweep."""
    parts = {_identity(work): _parts(work) for work in sweep.works}
    # Of works that never ran nobody knows what they would have had.
    shared = [len({*column} - {None}) <= 1 for column in zip(*parts.values(), strict=True)]
    named = {
        identity: ", ".join(part for at, part in enumerate(each) if part and (at < ALWAYS or not shared[at]))
        for identity, each in parts.items()
    }
    told = (next((each[at] for each in parts.values() if each[at]), None) for at in range(len(shared)))
    common = tuple(part for at, part in enumerate(told) if part and at >= ALWAYS and shared[at])
    scopes: dict[str, set[str | None]] = {}
    for cell in sweep.cells:
        if cell.cell.form == "compiled":
            scopes.setdefault(cell.cell.request.workload, set()).add(cell.cell.request.scope)
    # What is called the same gets the digest of its cells' files besides: it was asked for otherwise.
    number = Counter(named.values())
    distinct = {
        identity: name if number[name] == 1 else f"{name} [{str(identity[0]).rpartition('-')[2]}]"
        for identity, name in named.items()
    }
    begin = _beginning([*parts.values()], [*distinct.values()])
    return Labels(common, begin, distinct, any(len(each) > 1 for each in scopes.values()))


def _beginning(parts: Sequence[tuple[str | None, ...]], names: Sequence[str]) -> tuple[str, ...]:
    """Of what is always said of a work that which several share, as long as each of their names goes on behind it."""
    begin: tuple[str, ...] = ()
    for part, *others in zip(*(each[:ALWAYS] for each in parts), strict=True):
        longer = (*begin, part or "")
        if set(others) != {part} or not all(name.startswith(f"{', '.join(longer)}, ") for name in names):
            break
        begin = longer
    return begin


def _identity(work: Work) -> Identity:
    settings = work.settings
    return (work.key, work.machine, work.torch, *((settings.size, settings.dtype) if settings else ()), *work.apart)


def _parts(work: Work) -> tuple[str | None, ...]:
    """Each empty where the work has no such thing, and None where nobody knows."""
    asked, settings = work.cells[0].cell.request, work.settings
    unknown = "" if settings else None
    known = settings or asked
    generating = settings.generation if settings and settings.generation else asked
    fast = asked.use_fast if isinstance(generating, Request) else generating.fast_processor
    return (
        work.workload,
        f"batch {asked.batch_size}",
        f"{known.height}\N{MULTIPLICATION SIGN}{known.width}" if known.height and known.width else unknown,
        f"{known.seq_length} tokens" if known.seq_length else unknown,
        counted(known.steps, "step") if known.steps else unknown,
        generating.phase or unknown,
        f"{generating.max_new_tokens} new tokens" if generating.max_new_tokens else unknown,
        f"{generating.cache} cache" if generating.cache else unknown,
        counted(known.nproc, "rank") if known.nproc else unknown,
        known.parallel or unknown,
        unknown if fast is None else f"{'fast' if fast else 'slow'} processor",
        f"prompt {clipped(asked.prompt, LONGEST_PROMPT)!r}" if asked.prompt else "",
        " ".join(asked.options),
        f"{known.size} size" if known.size and known.size != "auto" else unknown,
        known.dtype or unknown,
        f"weights of {known.pretrained}" if known.pretrained else "random weights",
        work.machine or unknown,
        f"torch {work.torch}" if work.torch else unknown,
        ", ".join(work.apart),
    )
