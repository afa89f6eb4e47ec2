"""The price of overlap, of jobs in which it is known."""

import random
from statistics import median

import polars as pl
import pytest
from msgspec.structs import replace
from tests.ranks.jobs import make_digest

from tracekit.ranks.digests import RankDigest
from tracekit.ranks.overlap import price_overlap

STEPS, KERNELS, KINDS = 3, 9, 4


def overlapped(
    seed: int,
    *,
    noise: float = 0.01,
    slower: float = 0.15,
    marked: bool = True,
    later: int = 0,
    clock: float = 0.0,
    size: int = KERNELS,
) -> tuple[dict[int, RankDigest], float]:
    """Two ranks, the first of which waits in a collective from some kernel of each step to its end; and what that cost.
    Kernels of one name differ in shape, GPUs in speed, and a GPU's clock from step to step by a deviation of `clock`. A
    step has `size` kernels. The second rank's recording may begin so many kernels later."""
    draw = random.Random(seed)
    alone = [draw.uniform(20, 200) for _ in range(size)]
    names = [f"kernel {draw.randrange(KINDS)}" for _ in range(size)]
    digests, price = {}, 0.0
    for rank in (0, 1):
        speed, now, talk, kernels, steps = 1 + rank * draw.gauss(0, 0.02), 0.0, [], [], []
        for step in range(STEPS):
            first, began = draw.randrange(2, size - 2) if rank == 0 else size, None
            pace = speed * (1 + draw.gauss(0, clock)) if clock else speed
            for place, us in enumerate(alone):
                if rank == 1 and step == 0 and place < later:
                    continue
                lasting = us * pace * (1 + draw.gauss(0, noise))
                more = lasting * slower * draw.uniform(0.5, 1.5) if place >= first else 0.0
                began = now if place == first else began
                kernels.append((now, now + lasting + more, names[place]))
                steps.append(step)
                price += more
                now += lasting + more + 1
            talk.append((now if began is None else began, now + 5))
            now += 50
        digest = make_digest(rank, 2, talk=talk, kernels=kernels)
        numbers = pl.Series([*steps, *range(STEPS)])[pl.Series([each[0] for each in [*kernels, *talk]]).arg_sort()]
        digests[rank] = replace(digest, activities=digest.activities.with_columns(step=numbers if marked else 0))
    return digests, price


@pytest.mark.parametrize(
    ("noise", "slower", "marked", "later"), [(0.01, 0.2, True, 0), (0.02, 0.0, True, 0), (0.02, 0.2, False, 4)]
)
def test_the_interval_holds_the_price_in_nine_of_ten_jobs(
    noise: float, slower: float, marked: bool, later: int
) -> None:
    held = 0
    for seed in range(40):
        digests, price = overlapped(seed, noise=noise, slower=slower, marked=marked, later=later)
        told = price_overlap(digests)
        assert told[1] is None
        assert told[0] is not None
        held += told[0].low_us <= price <= told[0].high_us
    assert held >= 36


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize(("size", "clock"), [(120, 0.0), (120, 0.01), (120, 0.03), (KERNELS, 0.03)])
def test_it_does_where_the_clocks_of_steps_differ(size: int, clock: float, marked: bool) -> None:
    held = 0
    for seed in range(40):
        digests, price = overlapped(seed, slower=0.2, marked=marked, clock=clock, size=size)
        told = price_overlap(digests)[0]
        assert told is not None
        held += told.low_us <= price <= told.high_us
    assert held >= 36


def test_the_interval_of_steady_clocks_is_no_wider_than_it_need_be() -> None:
    widths = []
    for seed in range(20):
        digests, price = overlapped(seed, slower=0.2, size=120)
        told = price_overlap(digests)[0]
        assert told is not None
        widths.append((told.high_us - told.low_us) / 2 / price)
    assert median(widths) < 0.05


def test_kernels_of_one_surrounding_that_are_unlike_stand_for_none_of_them() -> None:
    # Twice in a step the same seven kernels around another; rank 0 runs the longer one beside a collective alone.
    row = [("a", 50.0), ("b", 60.0), ("c", 70.0)]
    lasting = [*row, ("x", 40.0), *row, *row, ("x", 400.0), *row]
    digests = {}
    for rank in (0, 1):
        now, kernels, talk = 0.0, [], []
        for _ in range(4):
            for place, (name, us) in enumerate(lasting):
                beside = rank == 0 and place == 10
                kernels.append((now, now + us * (1.1 if beside else 1.0), name))
                if beside:
                    talk.append((now, kernels[-1][1]))
                now = kernels[-1][1] + 1
            if rank == 1:
                talk.append((now + 1, now + 5))
            now += 50
        digests[rank] = make_digest(rank, 2, talk=talk, kernels=kernels)
    # Not 4 * 400 us for having taken ten times as long as the other.
    assert price_overlap(digests)[0] is None


def test_of_one_rank_its_other_steps_tell() -> None:
    digests, price = overlapped(5)
    (told,) = price_overlap({0: digests[0]}).values()
    assert told is None or told.low_us <= price <= told.high_us


def test_where_nothing_runs_alone_or_kernels_differ_there_is_no_price() -> None:
    always = make_digest(0, 2, talk=[(0, 1000)], kernels=[(at, at + 90, "gemm") for at in range(0, 1000, 100)])
    assert price_overlap({0: always, 1: replace(always, rank=1)}) == {0: None, 1: None}
    other = make_digest(1, 2, talk=[(1000, 1010)], kernels=[(at, at + 50, "copy") for at in range(0, 1000, 100)])
    assert price_overlap({0: always, 1: other}) == {0: None, 1: None}
    nothing = make_digest(0, 1, talk=[], kernels=[(0, 10, "gemm")])
    assert price_overlap({0: nothing}) == {0: None}


def test_a_kernel_that_elsewhere_ran_only_with_another_shape_has_no_price() -> None:
    # Of one name and grid; the longer one is beside a collective in every step.
    kernels = [
        (at * 1000.0 + begin, at * 1000.0 + end, "gemm") for at in range(4) for begin, end in ((0, 50), (60, 260))
    ]
    digest = make_digest(0, 2, talk=[(at * 1000.0 + 55, at * 1000.0 + 300) for at in range(4)], kernels=kernels)
    steps = digest.activities.with_columns(step=pl.col("start_ns") // 1_000_000)
    # Marked or not.
    assert price_overlap({0: replace(digest, activities=steps)}) == price_overlap({0: digest}) == {0: None}
