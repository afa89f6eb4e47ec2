"""What `tracekit ranks` advises: each finding where its cause is planted, none where it is not."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace
from tests.ranks.jobs import Stretch, make_digest, simulate

from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import RankFinding
from tracekit.ranks.telling import join_ranks

#: Ten steps of a kernel and a collective, which takes a fifth of the step.
STEPS = range(10)
TALK: tuple[Stretch, ...] = tuple((step * 100 + 80, step * 100 + 100) for step in STEPS)


def found(digests: Sequence[RankDigest]) -> dict[str, RankFinding]:
    """By their codes; each can be said."""
    findings = join_ranks(digests).findings
    assert all(each.title() and each.long() for each in findings)
    return {each.code: each for each in findings}


def collectives_of(digest: RankDigest, **columns: Any) -> RankDigest:
    return replace(digest, collectives=digest.collectives.with_columns(**columns))


def two_ranks(compute: Sequence[tuple[float, float, str]], **columns: Any) -> list[RankDigest]:
    """Ranks that do the same at the same time."""
    every = {name: pl.lit(value) for name, value in columns.items()}
    return [collectives_of(make_digest(rank, 2, talk=TALK, kernels=compute), **every) for rank in (0, 1)]


def serial() -> list[tuple[float, float, str]]:
    return [(step * 100, step * 100 + 80, "gemm") for step in STEPS]


@pytest.mark.parametrize(("stream", "one_stream"), [(7, True), (8, False)])
def test_communication_that_nothing_overlaps(stream: int, one_stream: bool):
    told = found(two_ranks(serial(), stream=stream))
    assert set(told) == {"no_overlap"}
    facts = told["no_overlap"].facts
    assert (facts["share"], facts["one_stream"]) == (pytest.approx(0.2), one_stream)
    assert told["no_overlap"].saving_us == 200


def test_communication_that_is_partly_overlapped():
    partly = [(step * 100, step * 100 + 90, "gemm") for step in STEPS]
    told = found(two_ranks(partly))
    assert set(told) == {"exposed_communication"} and told["exposed_communication"].facts["share"] == 0.1
    assert not found(two_ranks([(step * 100, step * 100 + 98, "gemm") for step in STEPS]))


def test_all_gathers_without_compute_are_a_matter_of_prefetching():
    told = found(two_ranks([(step * 100, step * 100 + 97, "gemm") for step in STEPS], collective="all_gather"))
    assert not told, "15 % of their transfer"
    told = found(two_ranks([(step * 100, step * 100 + 90, "gemm") for step in STEPS], collective="all_gather"))
    assert set(told) == {"exposed_all_gathers"}
    assert told["exposed_all_gathers"].facts == {
        "exposed_transfer_us": pytest.approx(100),
        "share": pytest.approx(0.1),
        "of_transfer": pytest.approx(0.5),
    }


def test_a_rank_that_compiles_while_the_others_do_not():
    def rank(number: int, stopped_us: float) -> RankDigest:
        # Compute stands still for a while, before a collective that all are at.
        kernels = [(0, 1000, "gemm"), (1000 + stopped_us, 9900, "gemm")]
        return make_digest(number, 3, talk=[(9900, 9910)], kernels=kernels, cause="compile")

    told = found([rank(0, 0), rank(1, 4000), rank(2, 0)])
    assert told["recompiled"].rank == 1 and told["recompiled"].saving_us == 4000
    assert told["recompiled"].facts["where"] == "train.py(12): step"
    assert "recompiled" not in found([rank(0, 4000), rank(1, 4000), rank(2, 4000)])
    assert "recompiled" not in found([rank(0, 0), rank(1, 500), rank(2, 0)])


@pytest.mark.parametrize(
    ("device", "busbw", "share"),
    [
        ("NVIDIA H200", 45, 0.1),
        ("NVIDIA H200", 200, None),
        ("NVIDIA H100 PCIe", 45, None),
        ("NVIDIA L4", 4, 0.125),
        ("AMD Instinct MI300X", 40, None),
        ("NVIDIA H200 MIG 1g.18gb", 1, None),
        ("A GPU nobody knows", 1, None),
    ],
)
def test_large_messages_far_below_the_peak_of_the_link(device: str, busbw: float, share: float | None):
    # An all-reduce of two ranks carries each byte once: algorithm and bus bandwidth are one.
    digests = [replace(each, device_name=device) for each in two_ranks([], bytes=round(busbw * 20_000))]
    assert "slow_link" not in found(digests), "small messages"
    large = [(step * 1e6, step * 1e6 + 1e5) for step in STEPS]
    digests = [
        collectives_of(replace(make_digest(rank, 2, talk=large), device_name=device), bytes=pl.lit(round(busbw * 1e8)))
        for rank in (0, 1)
    ]
    told = found(digests).get("slow_link")
    assert (told.facts["share"] if told else None) == (pytest.approx(share) if share else None)
    apart = [replace(each, host_name=f"host{each.rank}") for each in digests]
    assert "slow_link" not in found(apart), "what is between hosts is not known"


def test_a_group_that_is_slower_than_others_of_its_kind():
    def job(slow_us: float) -> dict[str, RankFinding]:
        digests = []
        for rank in range(6):
            pair = (rank // 2 * 2, rank // 2 * 2 + 1)
            lasting = slow_us if pair == (2, 3) else 100.0
            talk = [(step * 1000, step * 1000 + lasting) for step in STEPS]
            digest = make_digest(rank, 6, talk=talk, group=f"pair{pair[0]}")
            columns = {"ranks": pl.lit(list(pair)), "size": pl.lit(2), "bytes": pl.lit(32 << 20)}
            digests.append(collectives_of(digest, **columns))
        return found(digests)

    told = job(200)["slow_group"]
    assert told.facts["ranks"] == (2, 3) and told.facts["busbw_gbps"] == pytest.approx(told.facts["usual_gbps"] / 2)
    assert "slow_group" not in job(120)


def test_a_job_whose_ranks_are_even_has_nothing_to_mend():
    assert not found(simulate(4, 12, lambda rank, step: 4000.0, group="0"))


def in_steps(digest: RankDigest, numbers: tuple[int, ...]) -> RankDigest:
    """Its ten steps, of which only these were recorded."""
    step = pl.col("start_ns") // 100_000
    tables = {}
    for name in ("activities", "collectives"):
        table = getattr(digest, name).with_columns(step=step).filter(pl.col("step").is_in(numbers))
        tables[name] = table.with_columns(pl.col("step") - min(numbers))
    windows = ((min(numbers) * 100_000, (max(numbers) + 1) * 100_000),)
    return replace(digest, **tables, steps=numbers, window="steps", windows=windows)


def test_a_rank_that_recorded_fewer_steps_has_no_less_work():
    first, second = two_ranks([(step * 100, step * 100 + 98, "gemm") for step in STEPS])
    told = join_ranks([in_steps(first, tuple(STEPS)), in_steps(second, (5, 6, 7))])
    assert told.steps.count == 10 and "steps_differ" in {each.code for each in told.notes}
    assert not told.uneven and {each.slower for each in told.ranks} == {0.0}
