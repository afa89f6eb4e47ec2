"""What changes exposed communication, and which recordings tell it."""

import math
from typing import Any

import pytest
from tests.sides import make_analysis, make_form, make_side

from tracekit.ranks.compared.changes import RankSides, compare_ranks, exposed_parts
from tracekit.ranks.compared.nouns import RankCall
from tracekit.ranks.job_figures import (
    CauseShare,
    Clock,
    CollectiveUse,
    LateRank,
    Ranks,
    RankUse,
    StepsRead,
    UnmatchedCollectives,
    WaitedFor,
    World,
)


def make_call(transfer_us: float, exposed_us: float, waiting_us: float = 0.0) -> RankCall:
    return RankCall(
        1000.0,
        500.0,
        exposed_us + waiting_us,
        100.0,
        1000.0,
        transfer_us=transfer_us,
        exposed_transfer_us=exposed_us,
        exposed_waiting_us=waiting_us,
    )


@pytest.mark.parametrize(
    ("a", "b", "transfer", "overlap", "waiting"),
    [
        # Half as much is transferred, all of it exposed as before.
        (make_call(100, 100), make_call(50, 50), -50, 0, 0),
        # As much is transferred, and nothing is covered any more.
        (make_call(100, 20), make_call(100, 100), 0, 80, 0),
        (make_call(100, 50, 30), make_call(200, 50, 10), 37.5, -37.5, -20),
        # What communicates in one form alone has nothing to be held against.
        (make_call(0, 0), make_call(100, 40, 5), 40, 0, 5),
    ],
)
def test_exposed_communication_changes_by_transfer_by_overlap_and_by_waiting(
    a: RankCall, b: RankCall, transfer: float, overlap: float, waiting: float
) -> None:
    parts = exposed_parts(a, b)
    assert [part.delta_us for part in parts] == pytest.approx([transfer, overlap, waiting])
    assert math.fsum(part.delta_us for part in parts) == pytest.approx(b.exposed_us - a.exposed_us)


def make_ranks(*uses: tuple[float, float], unjoined_us: float = 0.0, **more: Any) -> Ranks:
    """Ranks with these microseconds of transfer and of exposed transfer, over two steps."""
    return Ranks(
        **{
            "world": World(len(uses), tuple(range(len(uses))), (), 1),
            "clock": Clock("one_host", 1.0),
            "steps": StepsRead("steps", 2),
            "ranks": tuple(_use(rank, *use) for rank, use in enumerate(uses)),
            "collectives": (),
            "late": (),
            "unmatched": (UnmatchedCollectives(0, "ends_disagree", 1, unjoined_us),) if unjoined_us else (),
            **more,
        }
    )


def _use(rank: int, transfer_us: float, exposed_us: float) -> RankUse:
    times = {"span_us": 2000.0, "compute_us": 1000.0, "communication_us": 400.0, "idle_us": 600.0}
    waits = {"waiting_us": 400.0 - transfer_us, "exposed_waiting_us": 400.0 - exposed_us, "exposed_us": 400.0}
    price = {"overlap_price_us": 60.0, "overlap_price_ci95": (40.0, 80.0)}
    rest = {"idle_causes": (), "slower": 0.0, "collectives": 4, "last_arrivals": 1}
    return RankUse(
        rank, f"rank{rank}", transfer_us=transfer_us, exposed_transfer_us=exposed_us, **times, **waits, **price, **rest
    )


def make_rank(rank: int) -> RankSides:
    a = make_side("eager", make_analysis(), make_form("eager"))
    return RankSides(rank, a, make_side("compiled", make_analysis(), make_form("compiled")))


def test_where_light_recordings_do_not_join_the_rich_ones_tell_transfer() -> None:
    joins, not_ = make_ranks((200, 100), (200, 100)), make_ranks((200, 100), (200, 100), unjoined_us=300)
    ranks = [make_rank(0), make_rank(1)]
    for light, rich, kind in ((joins, joins, "light"), (not_, joins, "rich"), (not_, not_, None)):
        found = compare_ranks(ranks, {"light": light, "rich": rich}, {"light": joins, "rich": rich})
        assert found.recording == kind
        assert [part.label for part in found.ranks[0].waterfall.parts if part.kind == "communication"] == (
            ["exposed_communication"] if kind is None else ["exposed_transfer", "transfer_overlap", "exposed_waiting"]
        )
    # Without a GPU nothing is told but times.
    assert compare_ranks(ranks, {}, {}).recording is None


@pytest.mark.parametrize(("there_us", "told"), [(300.0, True), (20.0, False)])
def test_why_a_rank_is_late_is_told_by_the_recording_in_which_it_is_late_too(there_us: float, told: bool) -> None:
    """The light recording has another rank late than the rich one."""
    late = LateRank(1, there_us, (CauseShare("compute", there_us),), ("gemm",))
    light = make_ranks((200, 100), (200, 100), waits=(WaitedFor(0, 1, 400.0),))
    rich = make_ranks((200, 100), (200, 100), waits=(WaitedFor(0, 1, there_us),), late=(late,))
    job = compare_ranks([make_rank(0), make_rank(1)], {"light": light, "rich": rich}, {"light": light, "rich": rich})
    call = job.ranks[0].b
    assert call is not None
    waits = call.waits[0]
    assert (waits.rank, waits.us, bool(waits.causes)) == (1, 200.0, told)


def test_what_kernels_lose_beside_communication_is_a_part_of_its_own() -> None:
    found = compare_ranks([make_rank(0)], {"light": make_ranks((200, 100))}, {"light": make_ranks((200, 100))})
    gpu = {part.label: part.delta_us for part in found.of_slowest.waterfall.parts if part.kind == "gpu"}
    assert gpu == {"compute": 0, "overlap_price": 0}
    assert found.of_slowest.a.overlap_price_us == 30


def test_collectives_are_counted_per_rank_and_step() -> None:
    def kind(name: str, count: int, bytes_: int) -> CollectiveUse:
        told = {"group": "0", "ranks": (0, 1), "dtype": "BFloat16"}
        nothing = dict.fromkeys(("late_ranks", "waiting_us", "rank_bytes"), ())
        rates = dict.fromkeys(("arrival_spread_us", "algbw_gbps", "busbw_gbps", "peak_gbps"))
        return CollectiveUse(
            name=name,
            count=count,
            bytes=bytes_,
            transfer_us=80.0,
            exposed_transfer_us=40.0,
            kind="transfer",
            matched_by="signature",
            **told,
            **rates,
            **nothing,
        )

    eager = make_ranks((200, 100), (200, 100), collectives=(kind("all_gather", 8, 100), kind("all_gather", 2, 10)))
    compiled = make_ranks((200, 100), (200, 100), collectives=(kind("all_reduce", 2, 400),))
    found = compare_ranks([make_rank(0), make_rank(1)], {"rich": eager}, {"rich": compiled})
    gather, reduce = found.collectives
    assert (gather.name, gather.a_count, gather.a_bytes, gather.b_count) == ("all_gather", 5, 410, 0)
    assert (gather.a_transfer_us, gather.a_exposed_transfer_us) == (40, 20)
    assert (reduce.name, reduce.a_count, reduce.b_count, reduce.b_bytes) == ("all_reduce", 0, 1, 400)
