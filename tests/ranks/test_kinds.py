"""Every kind of collective, of jobs whose waits are known: what is told is right, and what cannot be is said."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.ranks.recordings import Job, Program, Talk, Work, play, record

from tracekit.ranks.job_figures import Ranks

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
ALL_REDUCE = Talk(0, (0, 1, 2, 3))
#: The true start of one rank may be a rounded nanosecond off.
NEAR = 0.01


def right(told: Ranks, job: Job) -> None:
    """Waits, and who was waited for, are those of the job; no rank is named that nobody waited for."""
    assert not told.unmatched
    assert {each.rank: each.waiting_us for each in told.ranks} == pytest.approx(
        {rank: job.waited[rank] for rank in job.kernels}, abs=NEAR
    )
    found = {(each.rank, each.late): each.us for each in told.waits}
    assert found == pytest.approx({pair: us for pair, us in job.waited_for.items() if us}, abs=NEAR)
    assert {each.rank for each in told.late} <= {late for _, late in job.waited_for}


def unmatched(told: Ranks) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in told.unmatched:
        counts[each.reason] = counts.get(each.reason, 0) + each.count
    return counts


def pair(key: object, sender: int, receiver: int, size: int, **more: Any) -> dict[int, Talk]:
    """Both ends of a send."""
    flow = frozenset({(sender, receiver)})
    told = {"key": key, "ranks": tuple(range(size)), "kernel": SEND_RECV, "flow": flow, **more}
    return {
        sender: Talk(**told, name="send", batch=(("send", receiver),)),
        receiver: Talk(**told, name="recv", batch=(("recv", sender),)),
    }


def ended_by_a_barrier(programs: dict[int, Program]) -> dict[int, Program]:
    """Clocks are compared by what all ranks leave together."""
    ranks = tuple(programs)
    return {rank: [*program, Work(20 + 7 * rank), Talk("end", ranks)] for rank, program in programs.items()}


def test_of_sends_alone_clocks_are_told_where_receivers_wait_and_else_nothing_is(tmp_path: Path) -> None:
    for slow, count in ((0, 4), (1, 0)):
        programs: dict[int, Program] = {0: [], 1: []}
        for step in range(4):
            ends = pair(step, 0, 1, 2)
            for rank in programs:
                programs[rank] += [Work(900 if rank == slow else 50), ends[rank]]
        job = play(programs)
        told = record(job, tmp_path)
        assert sum(each.count for each in told.collectives) == count
        if count:
            right(told, job)
        else:
            assert unmatched(told) == {"clocks_unknown": 8}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("stated", ["kernel", "host"])
def test_a_receiver_waits_for_its_sender_and_only_a_large_send_for_its_receiver(
    tmp_path: Path, large: bool, stated: str
) -> None:
    # A pipeline of three stages: the one in the middle is slow, and at first the last.
    programs: dict[int, Program] = {0: [], 1: [], 2: [Work(900)]}
    for step in range(4):
        first, second = (pair((step, at), at, at + 1, 3, large=large, stated=stated) for at in (0, 1))
        programs[0] += [Work(50), first[0]]
        programs[1] += [first[1], Work(200), second[1]]
        programs[2] += [second[2], Work(30)]
    job = play(ended_by_a_barrier(programs))
    told = record(job, tmp_path)
    right(told, job)
    sends = [each for each in told.collectives if each.name == "send_recv"]
    assert sum(each.count for each in sends) == 8 and {each.matched_by for each in sends} == {"pair"}


def test_a_small_send_that_was_over_long_before_its_receiver_came_is_no_mismatch(tmp_path: Path) -> None:
    ends = pair("one", 0, 1, 2)
    job = play(ended_by_a_barrier({0: [ends[0], Work(7000)], 1: [Work(5000), ends[1], Work(3000)]}))
    told = record(job, tmp_path)
    right(told, job)
    assert not [each for each in told.waits if each.late == 0]


def test_sends_and_receives_of_one_batch_are_one_exchange_by_pair(tmp_path: Path) -> None:
    ring = (0, 1, 2, 3)
    draw = random.Random(5)
    programs: dict[int, Program] = {rank: [] for rank in ring}
    for step in range(3):
        for rank in ring:
            right_, left = (rank + 1) % 4, (rank - 1) % 4
            flow = frozenset((a, (a + 1) % 4) for a in ring)
            batch = (("send", right_), ("recv", left))
            talk = Talk(step, ring, kernel=SEND_RECV, flow=flow, large=True, stated="before", batch=batch)
            programs[rank] += [Work(draw.uniform(50, 400)), talk]
    job = play(programs)
    told = record(job, tmp_path)
    right(told, job)
    # A rank waits for its neighbours alone: who is opposite is nobody's reason.
    assert not {(0, 2), (2, 0), (1, 3), (3, 1)} & {(each.rank, each.late) for each in told.waits}


def test_of_a_pipeline_with_a_missing_rank_its_sends_are_counted(tmp_path: Path) -> None:
    programs: dict[int, Program] = {0: [], 1: [], 2: []}
    for step in range(3):
        first, second = (pair((step, at), at, at + 1, 3) for at in (0, 1))
        programs[0] += [Work(50), first[0]]
        programs[1] += [first[1], Work(200), second[1]]
        programs[2] += [second[2]]
    told = record(play(ended_by_a_barrier(programs)), tmp_path, only=(0, 1))
    assert unmatched(told) == {"missing_rank": 3}
    assert {(each.rank, each.late) for each in told.waits} <= {(0, 1), (1, 0)}


@pytest.mark.parametrize(("name", "root"), [("broadcast", 2), ("scatter", 0), ("reduce", 1), ("gather", 3)])
@pytest.mark.parametrize("stated", ["kernel", "host"])
def test_with_a_root_ranks_wait_for_it_or_it_for_them(tmp_path: Path, name: str, root: int, stated: str) -> None:
    ranks = (4, 5, 6, 7)
    to_root = name in ("reduce", "gather")
    flow = frozenset(
        (rank, ranks[root]) if to_root else (ranks[root], rank) for rank in ranks if rank != ranks[root]
    )  # fmt: skip
    draw = random.Random(name)
    programs: dict[int, Program] = {rank: [] for rank in ranks}
    for step in range(6):
        talk = Talk(step, ranks, name, kernel=f"ncclDevKernel_{name}", flow=flow, root=root, stated=stated)
        for rank in ranks:
            programs[rank] += [Work(draw.uniform(20, 900)), talk]
    job = play(ended_by_a_barrier(programs))
    right(record(job, tmp_path), job)


def test_a_root_that_no_recording_names_is_said(tmp_path: Path) -> None:
    ranks = (0, 1)
    talk = Talk(0, ranks, kernel="ncclDevKernel_Broadcast_RING_LL", flow=frozenset({(0, 1)}), stated="nowhere")
    programs: dict[int, Program] = {rank: [Work(100 + 300 * rank), talk, Talk(1, ranks)] for rank in ranks}
    told = record(play(programs), tmp_path)
    assert unmatched(told) == {"peers_unknown": 2}


@pytest.mark.parametrize("sequenced", [False, True])
def test_an_all_to_all_tells_what_each_rank_sends_and_receives(tmp_path: Path, sequenced: bool) -> None:
    ranks = (0, 1, 2)
    # Who sends how much to whom, in rows of 8 elements.
    sent = [[4, 4, 16], [4, 4, 16], [4, 4, 16]]
    programs: dict[int, Program] = {rank: [] for rank in ranks}
    for step in range(3):
        for rank in ranks:
            taken = [sent[other][rank] for other in ranks]
            talk = Talk(
                step,
                ranks,
                "all_to_allv",
                kernel=SEND_RECV,
                elements=(8 * sum(sent[rank]), 8 * sum(taken)),
                splits=(sent[rank], taken),
                sequence=step if sequenced else None,
            )
            programs[rank] += [Work(100 + 50 * rank), talk]
    job = play(programs)
    told = record(job, tmp_path)
    right(told, job)
    (kind,) = told.collectives
    assert [(each.rank, each.sent, each.received) for each in kind.rank_bytes] == [
        (0, 3 * 8 * 24 * 2, 3 * 8 * 12 * 2),
        (1, 3 * 8 * 24 * 2, 3 * 8 * 12 * 2),
        (2, 3 * 8 * 24 * 2, 3 * 8 * 48 * 2),
    ]
    assert kind.count == 3 and kind.bytes == 8 * 48 * 2
    (uneven,) = (each for each in told.findings if each.code == "uneven_split")
    assert uneven.rank == 2 and uneven.facts["times"] == pytest.approx(2)


def test_in_an_all_to_all_nobody_waits_for_whom_it_takes_nothing_from(tmp_path: Path) -> None:
    # Rank 2 gives nothing to rank 0, is late, and holds up rank 1 alone.
    ranks, sent = (0, 1, 2), [[2, 2, 0], [2, 2, 2], [0, 2, 2]]
    flow = frozenset((a, b) for a in ranks for b in ranks if a != b and sent[a][b])
    programs: dict[int, Program] = {rank: [] for rank in ranks}
    for step in range(3):
        for rank in ranks:
            taken = [sent[other][rank] for other in ranks]
            elements = (sum(sent[rank]), sum(taken))
            splits = (sent[rank], taken)
            talk = Talk(step, ranks, "all_to_allv", kernel=SEND_RECV, flow=flow, elements=elements, splits=splits)
            programs[rank] += [Work(500 if rank == 2 else 100), talk, Work(10 - rank), Talk(f"end {step}", ranks)]
    job = play(programs)
    right(record(job, tmp_path), job)


@pytest.mark.parametrize("stated", ["kernel", "host", "before"])
@pytest.mark.parametrize("name", ["barrier", "allgather_into_tensor_coalesced", "_reduce_scatter_base"])
def test_barriers_and_coalesced_calls_are_matched_over_ranks(tmp_path: Path, name: str, stated: str) -> None:
    draw = random.Random(name)
    programs: dict[int, Program] = {rank: [] for rank in (0, 1, 2, 3)}
    kernels = {"barrier": "AllReduce", "_reduce_scatter_base": "ReduceScatter"}
    kernel = f"ncclDevKernel_{kernels.get(name, 'AllGather')}_RING_LL"
    for step in range(4):
        for rank, program in programs.items():
            talk = replace(ALL_REDUCE, key=step, name=name, kernel=kernel, stated=stated)
            program += [Work(draw.uniform(50, 100 + 200 * rank)), talk]
    job = play(programs)
    told = record(job, tmp_path)
    right(told, job)
    assert {each.matched_by for each in told.collectives} == {"signature"}


@pytest.mark.parametrize("stated", ["kernel", "host"])
def test_groups_of_a_mesh_are_told_apart(tmp_path: Path, stated: str) -> None:
    rows, columns = ((0, 1), (2, 3)), ((0, 2), (1, 3))
    draw = random.Random(1)
    programs: dict[int, Program] = {rank: [] for rank in range(4)}
    for step in range(5):
        for rank, program in programs.items():
            for kind, groups in (("tp", rows), ("dp", columns)):
                ranks = next(each for each in groups if rank in each)
                talk = Talk((step, kind, ranks), ranks, group=kind, stated=stated)
                program += [Work(draw.uniform(50, 500)), talk]
    job = play(programs)
    told = record(job, tmp_path)
    right(told, job)
    assert {each.ranks for each in told.collectives} == {*rows, *columns}


@pytest.mark.parametrize("together", [False, True])
def test_custom_all_reduces_of_two_groups_in_step_are_not_joined_into_one(tmp_path: Path, together: bool) -> None:
    # Neither kernel nor host says which ranks the all-reduce is of.
    groups = ((0, 1), (2, 3))
    draw = random.Random(2)
    programs: dict[int, Program] = {rank: [] for rank in range(4)}
    for step in range(12):
        for rank, program in programs.items():
            ranks = next(each for each in groups if rank in each)
            talk = Talk((step, ranks), ranks, kernel="void vllm::cross_device_reduce_1stage<half, 2>", stated="nowhere")
            # The second group is 30 us behind the first, or more than that.
            program += [Work(draw.uniform(50, 60 if together else 400)), replace(talk, us=5)]
    job = play(programs)
    known = [{"pg_name": str(at), "ranks": list(ranks)} for at, ranks in enumerate(groups)]
    told = record(job, tmp_path, pg_config=known if together else [])
    right(told, job)


REDUCE = Talk(0, (), kernel="void vllm::cross_device_reduce_1stage<half, 2>", stated="nowhere", us=5)


@pytest.mark.parametrize("seed", range(4))
def test_of_kernels_that_state_nothing_those_of_all_ranks_are_not_split_among_groups(tmp_path: Path, seed: int) -> None:
    groups, everybody = ((0, 1), (2, 3)), (0, 1, 2, 3)
    draw = random.Random(seed)
    programs: dict[int, Program] = {rank: [] for rank in everybody}
    for step in range(8):
        for rank, program in programs.items():
            ranks = next(each for each in groups if rank in each)
            program += [Work(draw.uniform(50, 900)), replace(REDUCE, key=(step, ranks), ranks=ranks)]
            program += [Work(draw.uniform(50, 900)), replace(REDUCE, key=step, ranks=everybody)]
    job = play(programs)
    told = record(job, tmp_path)
    # Of one at most both groups leave at once by chance: whose it is nobody knows.
    assert unmatched(told).get("group_unknown", 0) in (0, len(everybody))
    for each in told.waits:
        assert each.us <= job.waited_for[each.rank, each.late] + NEAR
    assert sum(each.us for each in told.waits) >= 0.9 * sum(job.waited_for.values())


def test_whose_kernels_are_that_state_nothing_is_not_guessed_from_a_few_that_end_together(tmp_path: Path) -> None:
    groups = ((0, 1), (2, 3))
    draw = random.Random(3)
    programs: dict[int, Program] = {rank: [] for rank in range(4)}
    for step in range(4):
        for rank, program in programs.items():
            ranks = next(each for each in groups if rank in each)
            program += [Work(1000 + draw.uniform(0, 2)), replace(REDUCE, key=(step, ranks), ranks=ranks)]
    told = record(play(programs), tmp_path)
    assert unmatched(told) == {"group_unknown": 16}
    assert not told.late


def graph(replay: int, ranks: tuple[int, ...], rank: int, draw: random.Random) -> Program:
    """A replay of three all-reduces, of which nothing is stated."""
    kernel = "void vllm::cross_device_reduce_2stage<half, 4>"
    talk = Talk(0, ranks, kernel=kernel, stated="nowhere", graph=replay, us=5)
    parts = [replace(talk, key=(replay, place)) for place in range(3)]
    return [each for part in parts for each in (Work(draw.uniform(20, 30 + 40 * rank)), part)]


@pytest.mark.parametrize("left_out", [(), (0,), (3,), (0, 1)])
def test_kernels_of_a_graph_are_matched_by_their_place_however_often_it_was_replayed(
    tmp_path: Path, left_out: tuple[int, ...]
) -> None:
    draw, ranks = random.Random(4), (0, 1)
    programs: dict[int, Program] = {
        rank: [each for replay in range(6) for each in graph(replay, ranks, rank, draw)] for rank in ranks
    }
    job = play(programs)
    # Rank 1's recording lacks some replays.
    kept = [each for each in job.kernels[1] if not (isinstance(each[2], Talk) and each[2].graph in left_out)]
    whole = dict(job.waited_for)
    cut = Job({0: job.kernels[0], 1: kept}, job.waited, job.waited_for)
    told = record(cut, tmp_path)
    assert sum(each.count for each in told.collectives) == 3 * (6 - len(left_out))
    assert unmatched(told) == ({"counts_differ": 3 * len(left_out)} if left_out else {})
    for each in told.waits:
        assert each.us <= whole[each.rank, each.late] + NEAR


def test_recordings_that_begin_with_another_step_are_not_taken_for_clocks_that_differ(tmp_path: Path) -> None:
    # Equally many collectives of one kind, of which three quarters are of the same moments.
    draw, ranks = random.Random(6), (0, 1)
    programs: dict[int, Program] = {rank: [] for rank in ranks}
    for step in range(12):
        for rank in ranks:
            programs[rank] += [Work(draw.uniform(100, 150) + 80 * rank), Talk(step, ranks)]
    job = play(programs)
    # Of each step a kernel and a collective.
    early = {**job.kernels, 0: job.kernels[0][:18], 1: job.kernels[1][6:]}
    told = record(Job(early), tmp_path)
    assert told.clock.basis == "one_host"
    assert sum(each.count for each in told.collectives) == 6
    assert {each.late for each in told.waits} == {1}
    assert {each.rank for each in told.findings} == {1}


def test_kernels_that_wait_for_nobody_are_counted(tmp_path: Path) -> None:
    put = Talk(0, (0, 1), kernel="deep_ep::internode_ll::dispatch<true, 7168>", flow=frozenset(), stated="nowhere")
    programs: dict[int, Program] = {
        rank: [each for step in range(4) for each in (Work(100 + 50 * rank), put, Talk(step, (0, 1)))]
        for rank in (0, 1)
    }
    told = record(play(programs), tmp_path)
    assert unmatched(told) == {"one_sided": 8}
    assert {(each.rank, each.late) for each in told.waits} == {(0, 1)}


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("deep_ep::intranode::dispatch<8, 768>", "dispatch"),
        ("void deep_ep::intranode::combine<__nv_bfloat16, 8>", "combine"),
        ("deep_ep::intranode::notify_dispatch<8>", "notify"),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "collective"),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16>", "all_reduce"),
    ],
)
def test_kernels_that_state_nothing_are_known_by_their_names(tmp_path: Path, kernel: str, name: str) -> None:
    draw = random.Random(name)
    programs: dict[int, Program] = {rank: [] for rank in (0, 1, 2)}
    for step in range(5):
        for rank, program in programs.items():
            program += [Work(draw.uniform(50, 400)), Talk((rank < 3, step), (0, 1, 2), kernel=kernel, stated="nowhere")]
    job = play(programs)
    told = record(job, tmp_path)
    right(told, job)
    assert {each.name for each in told.collectives} == {name}


@pytest.mark.parametrize("group", ["0", None])
def test_rocm_states_on_the_host_alone(tmp_path: Path, group: str | None) -> None:
    kernel = "ncclDevKernel_Generic_2(ncclDevKernelArgsStorage<4096ul>)"
    draw = random.Random(8)
    programs: dict[int, Program] = {rank: [] for rank in (0, 1)}
    for step in range(6):
        for name in ("allreduce", "_allgather_base"):
            for program in programs.values():
                talk = Talk((step, name), (0, 1), name, kernel=kernel, group=group, stated="host")
                program += [Work(draw.uniform(50, 200)), talk]
    job = play(programs)
    told = record(job, tmp_path)
    right(told, job)
    assert {each.name for each in told.collectives} == {"all_reduce", "all_gather"}
