"""How is a job parallel, by its process groups? Each axis divides the ranks into groups of one size; a rank's place on
it is its place in its group, and ranks of one place do what a tensor, data, pipeline or expert rank does."""

import re
from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from tracekit.ranks.digests import RankSummary

#: By what jobs call their groups (Megatron's, DeepSpeed's, and names of a DeviceMesh: `mesh_tp`), the first that fits.
NAMES = (
    ("expert", re.compile(r"expert|(^|_)(ep|moe|etp|edp|efsdp)(_|$)", re.IGNORECASE)),
    ("pipeline", re.compile(r"pipeline|(^|_)(pp|pipe)(_|$)", re.IGNORECASE)),
    ("context", re.compile(r"context|sequence|(^|_)(cp|sp)(_|$)", re.IGNORECASE)),
    ("tensor", re.compile(r"tensor|(^|_)e?tp(_|$)", re.IGNORECASE)),
    ("data", re.compile(r"data|(^|_)(dp|ddp|e?fsdp|edp|dp_shard|dp_replicate|shard|replicate)(_|$)", re.IGNORECASE)),
)

#: Groups of several axes at once, or of a part of one.
OF_SEVERAL = re.compile(r"_and_|_in_|partial", re.IGNORECASE)


class Axis(Struct, frozen=True):
    """`places` has each rank's place in its group."""

    name: str  #: tensor, data, pipeline, expert, context; of experts alone `expert tensor`; else `groups of 16`.
    places: dict[int, int]


def find_axes(summaries: dict[int, RankSummary], size: int) -> tuple[Axis, ...]:
    """One for each purpose that groups have; of groups without one, for each size whose groups are disjoint."""
    purposes: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    unnamed: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    pairs = _only_pairs(summaries.values())
    for each in summaries.values():
        for name, ranks in each.groups.items():
            if not 1 < len(ranks) < size:
                continue
            purpose = _purpose(each.purposes.get(name, ""))
            if purpose is None and ranks in pairs:
                purpose = "pipeline"
            if purpose is not None:
                purposes[purpose].add(ranks)
            else:
                unnamed[len(ranks)].add(ranks)
    named = {ranks for some in purposes.values() for ranks in some}
    for length, some in sorted(unnamed.items()):
        if some - named:
            purposes.setdefault(f"groups of {length}", set()).update(some - named)
    axes = (Axis(name, _places(some)) for name, some in purposes.items())
    return tuple(axis for axis in axes if axis.places)


def _purpose(text: str) -> str | None:
    plain = re.sub(r"_(model_)?parallel_group$", "", text, flags=re.IGNORECASE)
    if not plain or OF_SEVERAL.search(text) or plain.lower() in ("default_pg", "undefined", "world", "model"):
        return None
    found = [name for name, pattern in NAMES if pattern.search(plain)]
    # Experts have tensor and data parallel groups of their own; `data_context` groups are of both.
    most = 2 if found[:1] == ["expert"] else 1
    return " ".join(found) if 0 < len(found) <= most else None


def _only_pairs(summaries: Iterable[RankSummary]) -> set[tuple[int, ...]]:
    """The groups in which ranks only send and receive: stages of a pipeline."""
    pairs: set[tuple[int, ...]] = set()
    others: set[tuple[int, ...]] = set()
    for each in summaries:
        for talk in each.talk:
            ranks = talk.ranks or each.groups.get(talk.group or "", ())
            (pairs if talk.exchange == "pairs" else others).add(ranks)
    return pairs - others


def _places(groups: set[tuple[int, ...]]) -> dict[int, int]:
    """None where groups share ranks, or are of several sizes: these are no axis."""
    if sum(map(len, groups)) != len(set().union(*groups)) or len({len(each) for each in groups}) > 1:
        return {}
    return {rank: place for ranks in groups for place, rank in enumerate(ranks)}
