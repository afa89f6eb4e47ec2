"""What was launched outside of the window and runs in it: each rank's account is that of its own analysis."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.traces import Json, make_call, make_kernel, make_op, make_span

from tracekit.analysis.analyzing import analyze
from tracekit.ranks.activities import OUTSIDE
from tracekit.ranks.reading.rank_digest import digest_rank
from tracekit.ranks.summary import summarise
from tracekit.ranks.telling import join_ranks
from tracekit.tracefile.read import read_trace

STEPS = 3
ALL_REDUCE: Json = {
    "Collective name": "allreduce",
    "In msg nelems": 64,
    "Out msg nelems": 64,
    "dtype": "BFloat16",
    "Process Group Name": "0",
    "In split size": "[]",
    "Group size": 2,
    "Process Group Ranks": "[0, 1]",
}


def computed(launch: float, start: float, end: float, number: int, stream: int = 7) -> list[Json]:
    kernel = make_kernel(start, end, name="gemm", stream=stream, correlation=number)
    return [make_call(launch, launch + 1, correlation=number), kernel]


def reduced(launch: float, start: float, end: float, number: int, sequence: int) -> list[Json]:
    stated = {**ALL_REDUCE, "Seq": sequence}
    op = {**make_op(launch - 1, launch + 2, name="record_param_comms"), "args": stated}
    kernel = make_kernel(start, end, name="ncclDevKernel_AllReduce_Sum", stream=20, correlation=number)
    kernel = {**kernel, "args": {**kernel["args"], **stated, "grid": [24, 1, 1]}}
    return [op, make_call(launch, launch + 1, correlation=number), kernel]


def steps_of(rank: int, first: int) -> list[Json]:
    """Three steps of 1 ms, in each of which one kernel, an all-reduce and a kernel follow; rank 0 is late."""
    late, events, number = 30 * (rank == 0), [], 10
    for step in range(STEPS):
        begin = 1000 + 1000 * step
        events.append(make_span(begin, begin + 1000, name=f"ProfilerStep#{step}"))
        events += computed(begin + 310, begin + 320, begin + 400 + late, number)
        events += reduced(begin + 350, begin + 400 + late, begin + 500, number + 1, first + step)
        events += computed(begin + 520, begin + 600, begin + 700, number + 2)
        number += 3
    return events


#: What is launched before the first step, and runs in it.
EARLY: dict[str, Callable[[], list[Json]]] = {
    "nothing": list,
    "compute": lambda: computed(900, 950, 1300, 1),
    "communication": lambda: reduced(900, 950, 1300, 1, 0),
    "compute over communication": lambda: computed(900, 950, 1450, 1, stream=9),
}


@pytest.mark.parametrize("what", EARLY)
def test_accounts_of_ranks_and_their_summaries_are_those_of_each_trace(what: str, tmp_path: Path) -> None:
    digests, traces = [], []
    for rank in (0, 1):
        groups = {"rank": rank, "world_size": 2, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]}
        events = [*steps_of(rank, int(what == "communication")), *EARLY[what]()]
        path = tmp_path / f"rank{rank}.json"
        device = {"id": 0, "name": "NVIDIA H200"}
        told = {"deviceProperties": [device], "traceEvents": events, "distributedInfo": groups}
        path.write_text(json.dumps(told))
        traces.append(read_trace(path, collectives=True))
        digests.append(digest_rank(traces[-1]))
    fleet = join_ranks([summarise(digest) for digest in digests]).ranks
    for each in (*join_ranks(digests).ranks, *fleet):
        # A part of it: what nothing covers of waiting.
        assert (each.exposed_waiting_us or 0.0) <= (each.waiting_us or 0.0) + 1e-6
        assert (each.exposed_waiting_us or 0.0) + (each.exposed_transfer_us or 0.0) <= each.exposed_us + 1e-6
    assert {each.waiting_us is None for each in fleet} == {False}
    for account, digest, trace in zip(join_ranks(digests).ranks, digests, traces, strict=True):
        found, summary = analyze(trace), summarise(digest)
        assert found.communication is not None and found.gpu is not None
        truth = (found.communication.compute_us, found.communication.exposed_us, found.gpu.idle_us)
        assert (account.compute_us, account.exposed_us, account.idle_us) == pytest.approx(truth)
        compute, idle = summary.compute_ns.sum() / 1e3, summary.idle_ns.sum() / 1e3
        assert (compute, summary.spans_ns.sum() / 1e3 - compute - idle, idle) == pytest.approx(truth)


def test_activities_without_a_stream_are_no_others(tmp_path: Path) -> None:
    events = [{**each, "args": {**each["args"]}} if "args" in each else each for each in steps_of(0, 0)]
    for each in (each for each in events if each.get("cat") == "kernel"):
        each["args"].pop("stream", None)
        each["tid"] = "a stream"
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": events}))
    trace = read_trace(path, collectives=True)
    assert trace.activities["stream"].null_count() == trace.activities.height > 0
    assert not (digest_rank(trace).activities["kind"] == OUTSIDE).any()
