"""Of a pipeline ranks are held against those of their own stage, and stages against each other."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from msgspec.structs import replace
from tests.ranks.jobs import simulate
from tests.ranks.recordings import Program, Talk, Work, play, record
from tests.ranks.test_kinds import SEND_RECV, pair

from tracekit.ranks.job_figures import RankFinding
from tracekit.ranks.telling import join_ranks

#: Two pipelines of two stages: 0 gives to 2, 1 gives to 3, whose ranks reduce together.
PIPELINES, STAGES = ((0, 2), (1, 3)), ((0, 1), (2, 3))


def findings(work_us: dict[int, float], folder: Path) -> dict[str, list[RankFinding]]:
    """Of a job whose ranks' kernels take so long."""
    programs: dict[int, Program] = {rank: [] for rank in work_us}
    for step in range(4):
        for first, last in PIPELINES:
            ends = pair((step, first), first, last, 4)
            programs[first] += [Work(work_us[first]), ends[first]]
            programs[last] += [ends[last], Work(work_us[last])]
        for stage in STAGES:
            for rank in stage:
                programs[rank].append(Talk((step, "data", stage), stage, group=f"data{stage}"))
        for program in programs.values():
            program.append(Talk((step, "world"), (0, 1, 2, 3), group="world"))
    found: dict[str, list[RankFinding]] = {}
    for each in record(play(programs), folder).findings:
        found.setdefault(each.code, []).append(each)
    return found


def test_a_stage_with_more_work_is_one_and_no_rank_of_it_is_slow(tmp_path: Path) -> None:
    found = findings({0: 900.0, 1: 900.0, 2: 1500.0, 3: 1500.0}, tmp_path)
    (stage,) = found["uneven_stages"]
    assert stage.facts["ranks"] == (2, 3) and stage.facts["share"] == pytest.approx(0.25)
    assert stage.saving_us == pytest.approx(4 * 300) and "slow_gpu" not in found


def test_a_slow_rank_is_slower_than_its_stage_which_is_no_longer_than_others(tmp_path: Path) -> None:
    found = findings({0: 900.0, 1: 1800.0, 2: 900.0, 3: 900.0}, tmp_path)
    (slow,) = found["slow_gpu"]
    assert slow.rank == 1 and "uneven_stages" not in found
    assert slow.saving_us is not None and slow.saving_us <= slow.facts["compute_us"], "it takes part of its time"


def test_a_rank_slower_in_some_steps_has_no_slow_gpu_where_kernels_may_have_more_to_do() -> None:
    def slow_ranks(work_us: Callable[[int, int], float], grid: str | None) -> list[int | None]:
        found = []
        for each in simulate(4, 10, work_us):
            # A kernel a step, and the collective after it.
            rows = each.activities.with_columns(step=pl.int_range(pl.len()) // 2, grid=pl.lit(grid, pl.String))
            found.append(replace(each, activities=rows, steps=tuple(range(10))))
        return [each.rank for each in join_ranks(found).findings if each.code == "slow_gpu"]

    def always(rank: int, step: int) -> float:
        return 1000.0 + rank + 100.0 * (rank == 2)

    def in_some(rank: int, step: int) -> float:
        return 1000.0 + rank + 400.0 * (rank == 2) * (step % 2) - 100.0 * (rank == 2)

    assert [slow_ranks(work_us, None) for work_us in (always, in_some)] == [[2], []]
    assert [slow_ranks(work_us, "[8, 1, 1]") for work_us in (always, in_some)] == [[2], [2]]


def test_ranks_in_a_ring_are_no_stages(tmp_path: Path) -> None:
    ring = (0, 1, 2, 3)
    flow = frozenset((rank, (rank + 1) % 4) for rank in ring)
    programs: dict[int, Program] = {rank: [] for rank in ring}
    for step in range(4):
        for rank in ring:
            batch = (("send", (rank + 1) % 4), ("recv", (rank - 1) % 4))
            talk = Talk(step, ring, kernel=SEND_RECV, flow=flow, large=True, stated="before", batch=batch)
            programs[rank] += [Work(900 if rank == 2 else 300), talk]
    assert [each.rank for each in record(play(programs), tmp_path).findings if each.code == "slow_gpu"] == [2]
