"""How often `tracekit ranks` names a planted cause where hosts jitter: jobs of two and four ranks, made up.

    python -m benchmarks.simulated_ranks [--jobs 40]

A host runs operators and launches kernels, a GPU runs them in order, a collective ends when all ranks have come. Each
job is played twice with the same random numbers, with and without what is planted: a plant is felt where the steps are
longer by half of it at least. What nobody feels need not be told.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.traces import Json, make_call, make_event, make_kernel, make_op, make_span

from benchmarks.planted_ranks_check import NAMED
from tracekit.ranks.job_figures import Ranks
from tracekit.ranks.reading.loading import RanksReading, read_ranks
from tracekit.ranks.reading.recordings import find_recordings
from tracekit.ranks.telling import join_ranks

PLANTS = ("host_50", "host_250", "host_1000", "loader_250", "loader_1000", "item", "gpu_50", "gpu_250", "gpu_1000")
JITTERS_US = (0, 50, 500)
LATE, STEPS, LATENCY_US, CALL_US, WAITS = 1, 5, 3.0, 4.0, "waits for collectives"
#: How often a host is held up by chance, at an operator; hosts differ in speed by up to so much.
HICCUPS, FASTEST = 0.05, 0.3
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
#: Operator, kernel's and host's microseconds.
Program = Sequence[tuple[str, float, float]]
PROGRAMS: dict[str, Program] = {
    "tensor parallel": [
        (name, us, 40.0)
        for _ in range(8)
        for name, us in (("norm", 8.0), ("qkv", 25.0), ("attention", 20.0), ("out", 25.0), (NCCL, 30.0), (WAITS, 0.0))
    ],
    "data parallel": [
        *(("forward", 150.0, 30.0) for _ in range(24)),
        *(each for _ in range(4) for each in (*(("backward", 300.0, 40.0) for _ in range(6)), (NCCL, 400.0, 30.0))),
        (WAITS, 0.0, 10.0),
        *(("optimizer", 100.0, 60.0) for _ in range(4)),
    ],
}


@dataclass
class Rank:
    """What a rank's host and its GPU's streams have done until when, and the recording of it."""

    now_us: float = 100.0
    free_us: dict[int, float] = field(default_factory=lambda: {7: 0.0, 20: 0.0})
    events: list[Json] = field(default_factory=list)
    launched: int = 0

    def launch(self, name: str, host_us: float) -> float:
        """When its kernel may begin."""
        begun, self.now_us, self.launched = self.now_us, self.now_us + host_us + CALL_US, self.launched + 1
        self.events.append(make_op(begun, self.now_us, name=f"aten::{name[:12]}"))
        self.events.append(make_call(self.now_us - CALL_US, self.now_us, correlation=self.launched))
        return self.now_us + LATENCY_US

    def run(self, name: str, begin_us: float, end_us: float, stream: int = 7, **args: object) -> None:
        kernel = make_kernel(begin_us, end_us, name=name, stream=stream, correlation=self.launched)
        kernel["args"] |= args
        kernel["cat"] = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        self.events.append(kernel)
        self.free_us[stream] = end_us

    def compute(self, name: str, us: float, host_us: float) -> None:
        begin_us = max(self.launch(name, host_us), self.free_us[7])
        self.run(name, begin_us, begin_us + us)

    def wait(self, call: str) -> None:
        over_us = max(self.now_us, *self.free_us.values()) + CALL_US
        self.launched += 1
        self.events.append(make_call(self.now_us, over_us, name=call, correlation=self.launched))
        self.now_us = over_us


def play(program: Program, ranks: int, plant: str, jitter_us: float, seed: int, *, waits: bool) -> list[Rank]:
    """The ranks' recordings. Rank 1 does what is planted; where hosts do not wait at a step's end they run ahead."""
    random = np.random.default_rng(seed)
    at = 0 if plant.startswith("loader") else int(random.integers(len(program)))
    slower = 1 + FASTEST * random.random(ranks) * (jitter_us > 0)
    shape = (ranks, STEPS, len(program))
    pauses_us = random.exponential(max(jitter_us, 1e-9), shape) * (random.random(shape) < HICCUPS)
    uneven = 1 + 0.05 * random.random(shape)
    every = [Rank() for _ in range(ranks)]
    for step in range(STEPS):
        begun_us = [each.now_us for each in every]
        for number, (name, us, host_us) in enumerate(program):
            for index, rank in enumerate(every):
                rank.now_us += pauses_us[index, step, number]
                if index == LATE and number == at:
                    do(rank, plant)
            costs_us = [slower[index] * host_us * uneven[index, step, number] for index in range(ranks)]
            if name == NCCL:
                talk(every, us, costs_us)
                continue
            for index, rank in enumerate(every):
                if name == WAITS:
                    rank.free_us[7] = max(rank.free_us.values())
                else:
                    rank.compute(name, us * uneven[index, step, number], costs_us[index])
        for rank, began_us in zip(every, begun_us, strict=True):
            if waits or step == STEPS - 1:
                rank.wait("cudaDeviceSynchronize")
            rank.events.append(make_span(began_us, rank.now_us, name=f"tracekit.step#{step}"))
    return every


def talk(every: list[Rank], us: float, costs_us: Sequence[float]) -> None:
    begins_us = [
        max(rank.launch("all_reduce", host_us), *rank.free_us.values())
        for rank, host_us in zip(every, costs_us, strict=True)
    ]
    group = str([*range(len(every))])
    stated = {"Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20}
    stated |= {"Group size": len(every), "Process Group Name": "0", "Process Group Ranks": group}
    for rank, begin_us in zip(every, begins_us, strict=True):
        rank.run(NCCL, begin_us, max(begins_us) + us, stream=20, **stated)


def do(rank: Rank, plant: str) -> None:
    kind, _, us = plant.partition("_")
    if kind == "gpu":
        rank.compute("spin", float(us), 10.0)
    elif kind == "item":
        rank.compute("Memcpy DtoH (Device -> Pinned)", 2.0, 10.0)
        rank.wait("cudaStreamSynchronize")
    elif kind in ("host", "loader"):
        begun_us, rank.now_us = rank.now_us, rank.now_us + float(us)
        if kind == "loader":
            rank.events.append(make_event("user_annotation", begun_us, rank.now_us, name=LOADER))


def told(ranks: list[Rank], folder: Path) -> Ranks:
    for number, rank in enumerate(ranks):
        stated = {"rank": number, "world_size": len(ranks), "pg_config": []}
        events = sorted(rank.events, key=lambda each: (each["ts"], -each["dur"]))
        (folder / f"rank{number}.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": stated}))
    return join_ranks([*read_ranks(find_recordings([str(folder)]), RanksReading(cached=False)).values()])


def judged(found: Ranks, plant: str) -> str:
    """Whether the cause comes first, else another one does by a finding that is sure, else none."""
    causes, codes = NAMED.get(plant.partition("_")[0], (set(), set()))
    first = {each.rank: each.causes[0].cause for each in found.late if each.causes}
    sure = [each for each in found.findings if each.code in ("late_rank", "held_up", "lone_sync", "uneven_work")]
    if any(each.rank == LATE and each.code in codes for each in sure) or first.get(LATE) in causes:
        return "named"
    return "another" if sure else "nothing"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=40, help="of each plant and jitter")
    asked = parser.parse_args()
    names = [*PROGRAMS]
    for plant in ("clean", *PLANTS):
        for jitter_us in JITTERS_US:
            counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
            for job in range(asked.jobs):
                size, waits, program = (2, 4)[job // 2 % 2], job // 4 % 2 == 0, PROGRAMS[names[job % 2]]
                ranks = play(program, size, plant, jitter_us, job, waits=waits)
                without = play(program, size, "clean", jitter_us, job, waits=waits)
                longer_us = (ranks[LATE].now_us - without[LATE].now_us) / STEPS
                planted_us = float(plant.partition("_")[2] or 20)
                with tempfile.TemporaryDirectory() as folder:
                    counts[longer_us >= planted_us / 2][judged(told(ranks, Path(folder)), plant)] += 1
            sys.stdout.write(
                f"{plant:12} jitter {jitter_us:3} us, felt {dict(counts[True])}, not {dict(counts[False])}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
