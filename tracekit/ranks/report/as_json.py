"""What many ranks say as JSON, `tracekit.ranks/1`, and what a comparison's says of each. From the first release on
changes are additive only."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tracekit.ranks.compared import nouns
from tracekit.ranks.job_figures import OneCollective, Ranks, RanksFigures
from tracekit.report.contract import Waterfall, json_text, shown_as


class RanksFile(RanksFigures, frozen=True, kw_only=True, tag_field="schema", tag="tracekit.ranks/1"):
    """What the recordings of many ranks say together: sums over the window."""

    warnings: tuple[str, ...]  #: What the notes say.


class RankChange(nouns.RankChange, frozen=True):
    waterfall: Waterfall | None  #: None where either is.


class JobChange(nouns.JobChange, frozen=True):
    ranks: tuple[RankChange, ...]


def ranks_json(told: Ranks, each_alone: Iterable[OneCollective] | None = None) -> str:
    """What many ranks say together, sums over the window. `collectives` has a row for each kind of collective, or for
    `each_alone`."""
    file = shown_as(RanksFile, told)
    return json_text(file if each_alone is None else replace(file, collectives=tuple(each_alone)))
