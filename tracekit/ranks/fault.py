"""Which of a digest's figures cannot be? Types and ranges of single values are checked where a file is decoded; here,
what several say together."""

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.errors import TracekitError
from tracekit.interval import Intervals, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.bounded import MOST, MOST_RANKS
from tracekit.ranks.digests import MOST_ORIGIN, MOST_STEPS, RankDigest, RankRecording, RankSummary


def checked(digest: RankDigest, place: str) -> RankDigest:
    """The digest. Raises TracekitError for one with a fault."""
    if (fault := _fault_of(digest)) is not None:
        raise TracekitError(f"{place} cannot be used: {fault}")
    return digest


def checked_summary(summary: RankSummary, place: str) -> RankSummary:
    """The same of a digest's summary."""
    if (fault := _fault_of_summary(summary)) is not None:
        raise TracekitError(f"{place} cannot be used: {fault}")
    return summary


def _fault_of(digest: RankDigest) -> str | None:
    activities, collectives, gaps = digest.activities, digest.collectives, digest.gaps
    if (fault := _of_recording(digest)) is not None:
        return fault
    tables = {"activities": activities, "collectives": collectives, "idle gaps": gaps, "places": digest.places}
    for name, table in tables.items():
        times = _times(table)
        if (fault := _of_times(times)) is not None:
            return f"{name} {fault}"
        if (np.diff(times[:, 0]) < 0).any():
            return f"{name} out of order"
    for name, table in (("activities", activities), ("collectives", collectives)):
        if not _within(table["step"].to_numpy(), 0, max(len(digest.steps), 1) - 1):
            return f"{name} of no step"
    if not _within(collectives["ready_ns"].to_numpy(), -MOST, collectives["start_ns"].to_numpy()):
        return "collectives that are ready after they start"
    talk = _times(activities.filter(pl.col("family") == "communication"))
    if not np.array_equal(talk, _times(collectives)):
        return "collectives that are no activities"
    if not digest.places["cause"].is_in(IDLE_CAUSES).all():
        return "places of no cause"
    return _of_gaps(digest)


def _of_gaps(digest: RankDigest) -> str | None:
    """An account closes only if nothing ran in a gap, and gaps are of the window."""
    times, causes = _times(digest.gaps), digest.gaps.select(IDLE_CAUSES).to_numpy()
    total = int((times[:, 1] - times[:, 0]).sum())
    busy = interval.union(*_times(digest.activities).T)
    free = interval.complement(busy, np.array(digest.windows, dtype=np.int64))
    if total != int(interval.covered_within(interval.union(*times.T), free).sum()):
        return "idle gaps that are not idle, or not in the window"
    if not _within(causes, 0, MOST) or (causes.sum(axis=1) != times[:, 1] - times[:, 0]).any():
        return "causes that do not add up to their idle gaps"
    return None


def _fault_of_summary(summary: RankSummary) -> str | None:
    if (fault := _of_recording(summary)) is not None:
        return fault
    count, spans, parts = len(summary.windows), summary.spans_ns, summary.parts
    if len(summary.steps) not in (0, count):
        return "windows of no step"
    each = {"spans": spans, "compute": summary.compute_ns, "communication": summary.beside_ns}
    if any(table.shape != (count,) for table in each.values()) or summary.idle_ns.shape != (count, len(IDLE_CAUSES)):
        return "tables of another number of steps"
    # One by one, so that sums fit.
    if not all(_within(table, 0, MOST) for table in (*each.values(), summary.idle_ns)):
        return "times that no step takes"
    if int(summary.compute_ns.sum() + summary.idle_ns.sum()) > int(spans.sum()) or int(spans.sum()) > MOST:
        return "steps shorter than what they are made of"
    if (summary.compute_ns > spans).any() or (summary.beside_ns > summary.compute_ns).any():
        return "steps shorter than what they are made of"
    if parts.ndim != 2 or parts.shape[1] != 6:
        return "collectives of other columns"
    start, end, step, talk, sequence, covered = parts.T
    if (fault := _of_times(parts[:, :2])) is not None:
        return f"collectives {fault}"
    if not (_within(step, 0, count - 1) and _within(talk, 0, len(summary.talk) - 1)):
        return "collectives of no step or no kind"
    if not _within(sequence, -1, MOST):
        return "collectives of no number"
    if not _within(covered, 0, end - start):
        return "collectives that are covered for longer than they last"
    return None


def _of_recording(recording: RankRecording) -> str | None:
    rank, size = recording.rank, recording.world_size
    if size is not None and size > MOST_RANKS:
        return f"its job has {size:,} ranks (at most {MOST_RANKS:,})"
    if abs(recording.origin_ns) > MOST_ORIGIN or abs(recording.first_ns) > MOST:
        return "its clock shows no time that can be"
    if max(len(recording.windows), len(recording.steps)) > MOST_STEPS:
        return f"it has over {MOST_STEPS:,} steps; pass fewer, as in --steps 3-4"
    if rank is not None and size is not None and rank >= size:
        return f"rank {rank} of {size} ranks"
    windows = np.array(recording.windows, dtype=np.int64)
    if (np.diff(windows.ravel()) < 0).any():
        return "windows that end before they begin, or overlap"
    return None


def _of_times(times: Intervals) -> str | None:
    """Figures are sums of them over all ranks."""
    lasting = times[:, 1] - times[:, 0]
    if not _within(times, -MOST, MOST) or float(lasting.astype(float).sum()) > MOST:
        return "that last for over 100 days"
    return "that end before they start" if (lasting < 0).any() else None


def _times(table: pl.DataFrame) -> Intervals:
    return np.stack([table[name].to_numpy() for name in ("start_ns", "end_ns")], axis=1)


def _within(values: Ints, least: int, most: int | Ints) -> bool:
    return bool(((values >= least) & (values <= most)).all())
