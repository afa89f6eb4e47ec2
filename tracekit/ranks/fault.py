"""Which of a digest's figures cannot be? Types and ranges of single values are checked where a file is decoded; here,
what several say together."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.errors import TracekitError
from tracekit.interval import Intervals, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.bounded import MOST, MOST_RANKS
from tracekit.ranks.digests import MOST_ORIGIN, MOST_STEPS, RankDigest, RankRecording, RankSummary, Recorded


def checked(recorded: Recorded, place: str) -> Recorded:
    """The digest, or summary. Raises TracekitError for one with a fault."""
    faults = _of_digest(recorded) if isinstance(recorded, RankDigest) else _of_summary(recorded)
    for fault in faults:
        raise TracekitError(f"{place} cannot be used: {fault}")
    return recorded


def _of_digest(digest: RankDigest) -> Iterator[str]:
    """What is wrong with it; of the rest nothing is known once there is something."""
    activities, collectives = digest.activities, digest.collectives
    yield from _of_recording(digest)
    tables = {"activities": activities, "collectives": collectives, "idle gaps": digest.gaps, "places": digest.places}
    for name, table in tables.items():
        times = _times(table)
        yield from _of_times(name, times)
        if (np.diff(times[:, 0]) < 0).any():
            yield f"{name} out of order"
    for name, table in (("activities", activities), ("collectives", collectives)):
        if not _within(table["step"].to_numpy(), 0, max(len(digest.steps), 1) - 1):
            yield f"{name} of no step"
    if not _within(collectives["ready_ns"].to_numpy(), -MOST, collectives["start_ns"].to_numpy()):
        yield "collectives that are ready after they start"
    if not np.array_equal(_times(activities.filter(pl.col("family") == "communication")), _times(collectives)):
        yield "collectives that are no activities"
    if not digest.places["cause"].is_in(IDLE_CAUSES).all():
        yield "places of no cause"
    # An account closes only if nothing ran in a gap, and gaps are of the window.
    times, causes = _times(digest.gaps), digest.gaps.select(IDLE_CAUSES).to_numpy()
    lasting = times[:, 1] - times[:, 0]
    busy = interval.union(*_times(activities).T)
    free = interval.complement(busy, np.array(digest.windows, dtype=np.int64))
    if lasting.sum() != interval.covered_within(interval.union(*times.T), free).sum():
        yield "idle gaps that are not idle, or not in the window"
    if not _within(causes, 0, MOST) or (causes.sum(axis=1) != lasting).any():
        yield "causes that do not add up to their idle gaps"


def _of_summary(summary: RankSummary) -> Iterator[str]:
    """The same."""
    yield from _of_recording(summary)
    count, spans, parts = len(summary.windows), summary.spans_ns, summary.parts
    if len(summary.steps) not in (0, count):
        yield "windows of no step"
    tables = (spans, summary.compute_ns, summary.beside_ns)
    if any(table.shape != (count,) for table in tables) or summary.idle_ns.shape != (count, len(IDLE_CAUSES)):
        yield "tables of another number of steps"
    # One by one, so that sums fit.
    if not all(_within(table, 0, MOST) for table in (*tables, summary.idle_ns)):
        yield "times that no step takes"
    own, whole = int(summary.compute_ns.sum() + summary.idle_ns.sum()), int(spans.sum())
    longer = (summary.compute_ns > spans) | (summary.beside_ns > summary.compute_ns)
    if own > whole or whole > MOST or longer.any():
        yield "steps shorter than what they are made of"
    if parts.ndim != 2 or parts.shape[1] != 6:
        yield "collectives of other columns"
    start, end, step, talk, sequence, covered = parts.T
    yield from _of_times("collectives", parts[:, :2])
    if not (_within(step, 0, count - 1) and _within(talk, 0, len(summary.talk) - 1)):
        yield "collectives of no step or no kind"
    if not _within(sequence, -1, MOST):
        yield "collectives of no number"
    if not _within(covered, 0, end - start):
        yield "collectives that are covered for longer than they last"


def _of_recording(recording: RankRecording) -> Iterator[str]:
    rank, size = recording.rank, recording.world_size
    if size is not None and size > MOST_RANKS:
        yield f"its job has {size:,} ranks (at most {MOST_RANKS:,})"
    if abs(recording.origin_ns) > MOST_ORIGIN or abs(recording.first_ns) > MOST:
        yield "its clock shows no time that can be"
    if max(len(recording.windows), len(recording.steps)) > MOST_STEPS:
        yield f"it has over {MOST_STEPS:,} steps; pass fewer, as in --steps 3-4"
    if rank is not None and size is not None and rank >= size:
        yield f"rank {rank} of {size} ranks"
    if (np.diff(np.array(recording.windows, dtype=np.int64).ravel()) < 0).any():
        yield "windows that end before they begin, or overlap"


def _of_times(name: str, times: Intervals) -> Iterator[str]:
    """Figures are sums of them over all ranks."""
    lasting = times[:, 1] - times[:, 0]
    if not _within(times, -MOST, MOST) or float(lasting.astype(float).sum()) > MOST:
        yield f"{name} that last for over 100 days"
    if (lasting < 0).any():
        yield f"{name} that end before they start"


def _times(table: pl.DataFrame) -> Intervals:
    return table.select("start_ns", "end_ns").to_numpy()


def _within(values: Ints, least: int, most: int | Ints) -> bool:
    return bool(((values >= least) & (values <= most)).all())
