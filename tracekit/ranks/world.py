"""Which recordings are of one job, and which ranks of it are there?"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Generic

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.ranks.digests import RankDigest, RankRecording, Recorded
from tracekit.ranks.job_figures import RankNote, World
from tracekit.ranks.statements import notes as statements

#: Recordings of one job are begun at about the same time, by clocks of hosts that differ by less.
APART_NS = 600 * 10**9


class Job(Struct, Generic[Recorded], frozen=True):
    """The recordings of one job by rank, and what a reader must know of those that are left out, or are no whole."""

    digests: dict[int, Recorded]
    size: int | None
    left_out: tuple[RankNote, ...]

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """Ranks of the job that are not there, from the first to the last of each row of them."""
        size: int = self.size or 0
        edges = [-1, *sorted(rank for rank in self.digests if rank < size), size]
        return tuple((one + 1, other - 1) for one, other in pairwise(edges) if other - one > 1)

    def world(self, hosts: int) -> World:
        """Who of the job was recorded, by so many clocks."""
        return World(self.size, tuple(self.digests), _listed(self.missing), hosts, self.missing)

    @property
    def notes(self) -> tuple[RankNote, ...]:
        """What was left out, and what is wrong with the others."""
        notes: list[RankNote] = [*self.left_out]
        for rank, each in self.digests.items():
            if each.truncated or each.skipped:
                notes.append(
                    statements.RankDamaged(each.path, rank=rank, truncated=each.truncated, skipped=each.skipped)
                )
        steps = {rank: each.step_count for rank, each in self.digests.items()}
        if len(set(steps.values())) > 1:
            usual = Counter(steps.values()).most_common(1)[0][0]
            others = [rank for rank, count in steps.items() if count != usual]
            notes.append(statements.StepsDiffer(usual=usual, ranks=others))
        if self.missing and len(self.digests) > 1:
            ranks = _listed(self.missing)
            notes.append(statements.RanksMissing(missing=len(ranks), size=self.size or 0, ranks=ranks))
        if len(self.digests) == 1:
            notes.append(statements.OneRank(rank=next(iter(self.digests)), size=self.size))
        return tuple(notes)

    def without(self, foreign: Collection[int]) -> "Job[Recorded]":
        """The job without ranks that turned out to be of another one."""
        told: list[RankNote] = [statements.Foreign(self.digests[rank].path, rank=rank) for rank in foreign]
        kept = {rank: each for rank, each in self.digests.items() if rank not in foreign}
        return Job(kept, self.size, (*self.left_out, *told))


def _listed(ranges: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """One by one: there are at most MOST_RANKS."""
    return tuple(rank for first, last in ranges for rank in range(first, last + 1))


def gather_job(digests: Sequence[Recorded], left_out: Iterable[RankNote] = ()) -> Job[Recorded]:
    """The ranks of the job that most recordings are of; `left_out` are those that could not be read. Raises
    TracekitError where there is none."""
    if not digests:
        raise TracekitError("no recording to read: name the traces of the ranks, or a folder with them")
    notes = [*left_out]
    sizes = Counter(each.world_size for each in digests if each.world_size is not None)
    size = sizes.most_common(1)[0][0] if sizes else None
    found: dict[int, Recorded] = {}
    alike = [place for place, each in enumerate(digests) if each.world_size in (None, size)]
    apart_ns = {alike[at]: ns for at, ns in _apart_ns([digests[place] for place in alike]).items()}
    now = {digests[place].host_name for place in alike if place not in apart_ns}
    # Of two recordings of a rank the one counts that was made with the others.
    for place, each in sorted(enumerate(digests), key=lambda one: one[0] in apart_ns):
        rank = each.rank
        if each.world_size is not None and size is not None and each.world_size != size:
            notes.append(statements.OtherJob(each.path, rank=rank, size=each.world_size, usual_size=size))
        elif place in apart_ns and each.host_name is not None and each.host_name in now:
            notes.append(statements.OtherTime(each.path, rank=rank, apart_us=apart_ns[place] / 1e3))
        elif rank is None and any(other.rank is not None for other in digests):
            notes.append(statements.RankUnknown(each.path))
        elif rank is None:
            found[place] = replace(each, rank=place)
        elif rank in found:
            notes.append(statements.RankTwice(each.path, rank=rank, kept=found[rank].path))
        else:
            found[rank] = each
    if len(found) > 1 and all(each.rank is None for each in digests):
        notes.append(statements.RanksNumbered(count=len(found)))
    return Job(dict(sorted(found.items())), size, tuple(notes))


def _apart_ns(digests: Sequence[RankRecording]) -> dict[int, int]:
    """By their places those that were begun at another time than most, and how much later by their clocks; none where
    no time has most of them."""
    if not digests:
        return {}
    begun = np.array([each.origin_ns + each.first_ns for each in digests], dtype=np.int64)
    order = np.argsort(begun, kind="stable")
    times = np.split(order, np.flatnonzero(np.diff(begun[order]) > APART_NS) + 1)
    most = max(times, key=len)
    if 2 * len(most) <= len(digests):
        return {}
    middle = int(np.median(begun[most]))
    return {at: int(begun[at]) - middle for at in order.tolist() if at not in most}


def notes_of_unread(errors: Iterable[TracekitError]) -> list[RankNote]:
    """Of recordings that are left out because they could not be read."""
    return [statements.Unreadable(reason=str(error)) for error in errors]


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
