"""Which recordings are of one job, and which ranks of it are there?"""

from collections import Counter
from collections.abc import Sequence
from typing import Generic, TypeVar

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.model.digests import RankDigest, RankSummary
from tracekit.model.note import Note
from tracekit.model.ranks import Ranks

Recorded = TypeVar("Recorded", RankDigest, RankSummary)


class Job(Struct, Generic[Recorded], frozen=True):
    """The recordings of one job by rank, and what a reader must know of those that are left out, or are no whole."""

    digests: dict[int, Recorded]
    size: int | None
    missing: tuple[int, ...]
    notes: tuple[Note, ...]


def gather_job(digests: Sequence[Recorded]) -> Job[Recorded]:
    """The ranks of the job that most recordings are of. Raises TracekitError where there is none."""
    if not digests:
        raise TracekitError("no recording to read: name the traces of the ranks, or a folder with them")
    notes: list[Note] = []
    sizes = Counter(each.world_size for each in digests if each.world_size is not None)
    size = sizes.most_common(1)[0][0] if sizes else None
    found: dict[int, Recorded] = {}
    for place, each in enumerate(digests):
        rank = each.rank
        if each.world_size not in (None, size):
            facts = {"rank": rank, "size": each.world_size, "usual_size": size}
            notes.append(Note("other_job", "error", each.path, facts))
        elif rank is None and any(other.rank is not None for other in digests):
            notes.append(Note("rank_unknown", "error", each.path))
        elif rank is None:
            found[place] = replace(each, rank=place)
        elif rank in found:
            notes.append(Note("rank_twice", "error", each.path, {"rank": rank, "kept": found[rank].path}))
        else:
            found[rank] = each
    if len(found) > 1 and all(each.rank is None for each in digests):
        notes.append(Note("ranks_numbered", "warning", None, {"count": len(found)}))
    damaged = {rank: each for rank, each in found.items() if each.truncated or each.skipped}
    for rank, each in damaged.items():
        facts = {"rank": rank, "truncated": each.truncated, "skipped": each.skipped}
        notes.append(Note("rank_damaged", "warning", each.path, facts))
    steps = {rank: count_steps(each) for rank, each in found.items()}
    if len(set(steps.values())) > 1:
        usual = Counter(steps.values()).most_common(1)[0][0]
        others = [rank for rank, count in sorted(steps.items()) if count != usual]
        notes.append(Note("steps_differ", "warning", None, {"usual": usual, "ranks": others}))
    missing = tuple(rank for rank in range(size) if rank not in found) if size is not None else ()
    if missing and len(found) > 1:
        notes.append(Note("ranks_missing", "warning", None, {"missing": len(missing), "size": size, "ranks": missing}))
    if len(found) == 1:
        notes.append(Note("one_rank", "warning", None, {"rank": next(iter(found)), "size": size}))
    return Job(dict(sorted(found.items())), size, missing, tuple(notes))


def without_unread(told: Ranks, unread: Sequence[TracekitError]) -> Ranks:
    """What is told of the others, first of all which recordings could not be read."""
    left_out = (Note("unreadable", "error", None, {"reason": str(each)}) for each in unread)
    return replace(told, notes=(*left_out, *told.notes))


def count_steps(recorded: RankDigest | RankSummary) -> int:
    """How many steps, or named spans, were recorded; of a whole recording 1."""
    return len(recorded.steps) or 1


def begin_at(digest: RankDigest, moment_ns: int) -> RankDigest:
    """The digest without what came before this moment: a kernel that was running then begins there."""
    start = pl.col("start_ns").clip(moment_ns)
    clipped = {
        name: getattr(digest, name).filter(pl.col("end_ns") > moment_ns).with_columns(start_ns=start)
        for name in ("activities", "collectives")
    }
    windows = tuple((max(begin, moment_ns), end) for begin, end in digest.windows if end > moment_ns)
    gaps = digest.gaps.filter(pl.col("start_ns") >= moment_ns)
    return replace(digest, windows=windows, gaps=gaps, **clipped)
