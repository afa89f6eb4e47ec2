"""What many ranks say as JSON, `tracekit.ranks/1`, and its schema. From the first release on changes are additive
only."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace

from tracekit.model.statement import builtins_of
from tracekit.ranks.job_figures import CollectiveClass, OneCollective, Ranks
from tracekit.report.contract import json_text
from tracekit.report.schemas import Written


class RanksFile(Ranks, frozen=True, kw_only=True):
    """What the recordings of many ranks say together: sums over the window."""

    schema: Literal["tracekit.ranks/1"]


#: What stands there besides the fields of its nouns, or in their place, and what does not.
OF_RANKS: dict[str, dict[str, tuple[object, str]]] = {
    "CollectiveUse": {"class": (CollectiveClass, "")},
    "OneCollective": {"class": (CollectiveClass, "")},
    "RanksFile": {"warnings": (tuple[str, ...], "What the notes say.")},
}
RANKS = Written(
    RanksFile,
    OF_RANKS,
    # Every activity one by one is the traces over again.
    {"CollectiveUse": ("kind",), "OneCollective": ("kind",), "RanksFile": ("stretches",)},
)


def ranks_json(told: Ranks, each_alone: Iterable[OneCollective] | None = None) -> str:
    """What many ranks say together, sums over the window. `collectives` has a row for each kind of collective, or for
    `each_alone`."""
    # Every activity one by one is the traces over again.
    fields: dict[str, Any] = builtins_of(replace(told, stretches=()))
    del fields["stretches"]
    if each_alone is not None:
        fields["collectives"] = list(map(builtins_of, each_alone))
    for each in (*fields["collectives"], *fields["worst"]):
        each["class"] = each.pop("kind")
    fields["warnings"] = [each.long() for each in told.notes]
    return json_text({"schema": "tracekit.ranks/1", **fields})
