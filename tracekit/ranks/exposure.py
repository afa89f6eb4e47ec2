"""What do the collectives cost where no compute runs beside them?"""

from collections.abc import Iterator
from statistics import median

from tracekit.ranks.activities import computing
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import CollectiveUse, RankFinding, RankUse
from tracekit.ranks.statements import findings as statements

#: Of the window: transfer that nothing covers.
LEAST_EXPOSED = 0.05
#: Of the window, and of their own transfer: all-gathers, which could have been issued earlier.
LEAST_GATHERS, LEAST_OF_GATHERS = 0.02, 1 / 3
#: In each step: weights are gathered layer by layer.
MANY_GATHERS = 4
#: Of transfer: more is no overlap at all. Of the window: less compute could hide nothing.
NO_OVERLAP, LEAST_COMPUTE = 0.95, 0.05
#: A collective that is over sooner than this is all latency; so many of them are worth one larger.
SMALL_BYTES, MANY = 64 * 1024, 50


def find_exposed(
    ranks: tuple[RankUse, ...], collectives: tuple[CollectiveUse, ...], digests: dict[int, RankDigest]
) -> Iterator[RankFinding]:
    """Transfer without compute beside it: that of all-gathers on all ranks, and what else the worst rank has."""
    told = [each for each in ranks if each.exposed_transfer_us is not None and each.span_us]
    held = [each for each in told if each.rank in digests]
    if not held or not collectives:
        return
    gathers = [each for each in collectives if each.name == "all_gather"]
    exposed_us = sum(each.exposed_transfer_us for each in gathers) / len(told)
    share = exposed_us / median(each.span_us for each in told)
    of_transfer = exposed_us * len(told) / max(sum(each.transfer_us or 0.0 for each in gathers), 1e-9)
    gathered_us = 0.0
    steps = median(len(each.windows) for each in digests.values())
    each_step = sum(each.count * len(each.ranks) for each in gathers) / len(told) / steps
    if share >= LEAST_GATHERS and of_transfer >= LEAST_OF_GATHERS and each_step >= MANY_GATHERS:
        gathered_us = exposed_us
        yield statements.ExposedAllGathers(
            None, exposed_us, exposed_transfer_us=exposed_us, share=share, of_transfer=of_transfer
        )
    worst = max(held, key=lambda each: (each.exposed_transfer_us or 0.0) / each.span_us)
    own_us, transfer_us = (worst.exposed_transfer_us or 0.0), worst.transfer_us or 0.0
    if own_us - gathered_us < LEAST_EXPOSED * worst.span_us:
        return
    others = [each for each in collectives if not gathered_us or each.name != "all_gather"]
    largest = max(others or gathers, key=lambda each: each.transfer_us or 0.0)
    own_share = own_us / worst.span_us
    if own_us >= NO_OVERLAP * transfer_us and worst.compute_us >= LEAST_COMPUTE * worst.span_us:
        # Whether most collectives run on the stream that most compute runs on.
        digest = digests[worst.rank]
        compute = computing(digest)["stream"].mode()
        together = digest.collectives["stream"].is_in(compute.implode())
        yield statements.NoOverlap(
            worst.rank,
            min(own_us, worst.compute_us),
            exposed_transfer_us=own_us,
            share=own_share,
            collective=largest.name,
            one_stream=int(together.sum()) > digest.collectives.height / 2,
        )
    else:
        yield statements.ExposedCommunication(
            worst.rank, own_us, exposed_transfer_us=own_us, share=own_share, collective=largest.name
        )


def find_small(collectives: tuple[CollectiveUse, ...]) -> Iterator[RankFinding]:
    """Many that are all latency."""
    count = sum(each.count for each in collectives if each.bytes is not None and each.bytes <= SMALL_BYTES)
    if count >= MANY and count > sum(each.count for each in collectives) / 2:
        yield statements.SmallCollectives(None, None, count=count, bytes=SMALL_BYTES)
