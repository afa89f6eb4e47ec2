"""How is a job parallel, by its process groups? Each axis divides the ranks into groups of one size; a rank's place on
it is its place in its group, and ranks of one place do what a tensor, data, pipeline or expert rank does."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tracekit.ranks.digests import RankSummary
from tracekit.ranks.fleets.steps import Steps
from tracekit.ranks.fleets.stragglers import known_median, shares_of_steps
from tracekit.ranks.job_figures import RankGroup, RankUse

#: By what jobs call their groups (Megatron's, DeepSpeed's, and names of a DeviceMesh: `mesh_tp`), the first that fits.
NAMES = (
    ("expert", re.compile(r"expert|(^|_)(ep|moe|etp|edp|efsdp)(_|$)", re.IGNORECASE)),
    ("pipeline", re.compile(r"pipeline|(^|_)(pp|pipe)(_|$)", re.IGNORECASE)),
    ("context", re.compile(r"context|sequence|(^|_)(cp|sp)(_|$)", re.IGNORECASE)),
    ("tensor", re.compile(r"tensor|(^|_)e?tp(_|$)", re.IGNORECASE)),
    ("data", re.compile(r"data|(^|_)(dp|ddp|e?fsdp|edp|dp_shard|dp_replicate|shard|replicate)(_|$)", re.IGNORECASE)),
)

#: Figures of a rank of which groups have the medians.
OF_GROUPS = ("span_us", "compute_us", "exposed_transfer_us", "exposed_waiting_us", "idle_us")
#: Groups of several axes at once, or of a part of one.
OF_SEVERAL = re.compile(r"_and_|_in_|partial", re.IGNORECASE)


#: Of each axis each rank's place in its group. Axes are called tensor, data, pipeline, expert, context; of experts
#: alone `expert tensor`; else `groups of 16`.
Axes = dict[str, dict[int, int]]


def find_axes(summaries: dict[int, RankSummary], size: int) -> Axes:
    """One for each purpose that groups have; of groups without one, for each size whose groups are disjoint."""
    purposes: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    unnamed: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    pairs = _only_pairs(summaries.values())
    for each in summaries.values():
        for name, ranks in each.groups.items():
            if not 1 < len(ranks) < size:
                continue
            purpose = _purpose(each.purposes.get(name, "")) or ("pipeline" if ranks in pairs else None)
            (purposes[purpose] if purpose else unnamed[len(ranks)]).add(ranks)
    named = {ranks for some in purposes.values() for ranks in some}
    for length, some in sorted(unnamed.items()):
        if some - named:
            purposes.setdefault(f"groups of {length}", set()).update(some - named)
    return {name: places for name, some in purposes.items() if (places := _places(some))}


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


def group_ranks(
    summaries: dict[int, RankSummary], uses: Sequence[RankUse], axes: Axes, steps: Steps
) -> tuple[RankGroup, ...]:
    """Ranks by host, and by their place on each axis. Of a pipeline the places are compared with each other, of experts
    with the stage; else ranks with those that do the same work."""
    hosts = {rank: each.host_name for rank, each in summaries.items() if each.host_name is not None}
    divided: dict[str, Mapping[int, str | int]] = {"host": hosts, **axes}
    others = {"pipeline": np.zeros_like(steps.peers), "expert": steps.stages}
    usual = known_median(steps.shares, axis=1)
    apart = {name: known_median(shares_of_steps(steps.own, some), axis=1) for name, some in others.items()}
    found = []
    for name, places in divided.items():
        members: dict[str | int, list[int]] = defaultdict(list)
        for row, rank in enumerate(summaries):
            if rank in places:
                members[places[rank]].append(row)
        if len(members) < 2:
            continue
        excesses = apart.get(name, usual)
        for place, rows in sorted(members.items(), key=lambda item: f"{item[0]:0>9}"):
            some = [uses[row] for row in rows]
            medians: dict[str, Any] = {each: _middle(getattr(use, each) for use in some) for each in OF_GROUPS}
            ranks = tuple(use.rank for use in some)
            found.append(RankGroup(name, str(place), ranks, **medians, excess=_middle(excesses[rows])))
    return tuple(found)


def _middle(values: Iterable[float | None]) -> float | None:
    middle = float(known_median(np.array([*values], dtype=np.float64)))
    return None if math.isnan(middle) else middle
