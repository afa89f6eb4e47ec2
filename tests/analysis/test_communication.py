from pathlib import Path

import pytest
from tests.traces import DATA, analyze, make_copy, make_kernel, make_span, make_trace

from tracekit.model.analysis import CommunicationUse
from tracekit.tracefile.read import read_trace

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def collective(start_us: float, end_us: float, **where: int) -> dict:
    return make_kernel(start_us, end_us, name=NCCL, **{"stream": 20, **where})


def test_busy_time_is_compute_and_communication_that_has_nothing_beside_it(tmp_path: Path) -> None:
    # 10 us alone, 10 beside a product and 5 beside a copy; two collectives at once count once where they are alone.
    events = [
        make_kernel(0, 30),
        collective(20, 40),
        make_copy(50, 60),
        collective(55, 70),
        collective(60, 70, stream=21),
    ]
    found = analyze(make_trace(tmp_path, events))
    assert found.communication == CommunicationUse(3, 45.0, 40.0, 20.0, rank=None, world_size=None)
    assert found.communication.compute_us + found.communication.exposed_us == found.gpu.busy_us == 60.0


def test_each_gpu_counts_what_runs_on_it_alone(tmp_path: Path) -> None:
    events = [make_kernel(0, 10), collective(10, 30), make_kernel(0, 20, device=1), collective(10, 30, device=1)]
    found = analyze(make_trace(tmp_path, events))
    assert (found.communication.compute_us, found.communication.exposed_us) == (30.0, 30.0)
    assert found.gpu.busy_us == 60.0


def test_work_from_outside_the_steps_is_compute_too(tmp_path: Path) -> None:
    # Nothing here has a launch: work belongs to the step it starts in, and the product starts before.
    events = [make_span(100, 150), make_kernel(90, 120), collective(110, 140)]
    found = analyze(make_trace(tmp_path, events))
    assert (found.communication.compute_us, found.communication.exposed_us) == (20.0, 20.0)
    assert found.gpu.busy_us == 40.0


@pytest.mark.parametrize(("stated", "may_wait"), [(None, True), (1, False), (16, True)])
def test_a_job_of_one_rank_waits_for_nobody(tmp_path: Path, stated: int | None, may_wait: bool) -> None:
    job = {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": stated}} if stated else {}
    found = analyze(make_trace(tmp_path, [collective(0, 10)], **job)).communication
    assert (found.world_size, found.may_wait) == (stated, may_wait)


def test_a_trace_without_collectives_has_none(tmp_path: Path) -> None:
    job = {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}}
    assert analyze(make_trace(tmp_path, [make_kernel(0, 10)], **job)).communication is None


@pytest.mark.parametrize(("rank", "communication_us", "compute_us"), [(0, 390.4, 1030.3), (1, 342.8, 1040.8)])
def test_a_real_rank_has_the_figures_that_a_plain_count_gives(
    rank: int, communication_us: float, compute_us: float
) -> None:
    found = analyze(read_trace(DATA / "ranks" / f"tp_reduce-overhead.rank{rank}.json.gz"))
    told = found.communication
    assert (told.kernels, told.rank, told.world_size) == (36, rank, 2)
    assert (told.total_us, told.compute_us) == pytest.approx((communication_us, compute_us), abs=0.05)
    assert told.exposed_us == pytest.approx(found.gpu.busy_us - compute_us, abs=0.05)
