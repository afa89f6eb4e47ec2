"""Recordings of many ranks made by hand, as Kineto writes them: every kind of collective, with who truly waited for
whom."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.traces import Json, make_call, make_kernel, make_op

from tracekit.ranks.job_figures import Ranks
from tracekit.ranks.reading.loading import RanksReading, read_ranks
from tracekit.ranks.reading.recordings import find_recordings
from tracekit.ranks.telling import join_ranks

#: Where a recording says what a collective is: on its kernel, on the host around its launch (older, AMD), on the host
#: before it (calls that are launched together), or nowhere.
Stated = Literal["kernel", "host", "before", "nowhere"]


@dataclass(frozen=True)
class Work:
    """A kernel that waits for nobody."""

    us: float
    name: str = "gemm"


@dataclass(frozen=True)
class Talk:
    """A rank's part in a collective: it is over `us` after all came that the rank takes something from, and where it
    is large also those that it gives something to."""

    key: object  #: The same on all ranks of one collective.
    ranks: tuple[int, ...]
    name: str = "allreduce"
    us: float = 20.0
    kernel: str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    group: str | None = "0"
    flow: frozenset[tuple[int, int]] | None = None
    large: bool = False
    root: int | None = None  #: Counted in the group.
    elements: tuple[int, int] = (1024, 1024)
    splits: tuple[Sequence[int], Sequence[int]] = ((), ())
    stated: Stated = "kernel"
    batch: tuple[tuple[str, int], ...] = ()  #: Of a batch each send and receive with the rank at its other end.
    sequence: int | None = None
    graph: int | None = None  #: Of a CUDA graph: which replay.

    def met(self, rank: int) -> list[int]:
        """Whom the rank cannot be done without."""
        others = [other for other in self.ranks if other != rank]
        if self.flow is None:
            return others
        return [
            other
            for other in others
            if (other, rank) in self.flow or (self.large and (rank, other) in self.flow)
        ]  # fmt: skip


Program = list[Work | Talk]


@dataclass
class Job:
    """What ran when, and who truly waited for whom how long, by pair of ranks."""

    kernels: dict[int, list[tuple[float, float, Work | Talk]]] = field(default_factory=lambda: defaultdict(list))
    waited: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    waited_for: dict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))


def play(programs: dict[int, Program]) -> Job:
    """Runs the ranks' programs, each kernel after the one before it."""
    job, now, at = Job(), dict.fromkeys(programs, 100.0), dict.fromkeys(programs, 0)
    came: dict[object, dict[int, float]] = defaultdict(dict)
    while any(at[rank] < len(programs[rank]) for rank in programs):
        moved = False
        for rank, program in programs.items():
            if at[rank] == len(program):
                continue
            each = program[at[rank]]
            began = over = now[rank]
            if isinstance(each, Talk):
                arrived = came[each.key]
                arrived.setdefault(rank, began)
                if not all(other in arrived for other in each.met(rank)):
                    continue
                late = max(each.met(rank), key=lambda other: arrived[other], default=rank)
                over = max(began, arrived[late])
                if over > began:
                    job.waited[rank] += over - began
                    job.waited_for[rank, late] += over - began
            over += each.us
            job.kernels[rank].append((began, over, each))
            now[rank], at[rank], moved = over + 1.0, at[rank] + 1, True
        assert moved, "the programs wait for each other"
    return job


def record(job: Job, folder: Path, *, only: Iterable[int] | None = None, **top: Any) -> Ranks:
    """Writes each rank's recording, reads them, and says what they tell together. `top` goes into every file."""
    for rank in job.kernels if only is None else only:
        events = events_of(rank, job.kernels[rank])
        stated = {"rank": rank, "world_size": max(job.kernels) + 1, **top}
        path = folder / f"rank{rank}.json"
        path.write_text(json.dumps({"traceEvents": events, "distributedInfo": stated}))
    return join_ranks([*read_ranks(find_recordings([str(folder)]), RanksReading(cached=False)).values()])


def events_of(rank: int, kernels: list[tuple[float, float, Work | Talk]]) -> list[Json]:
    events: list[Json] = []
    replays: dict[int, int] = {}
    for number, (began, over, each) in enumerate(kernels, start=1):
        # Launched in order, long before.
        call = 0.1 * number
        if isinstance(each, Talk) and each.graph is not None:
            if each.graph not in replays:
                replays[each.graph] = number
                events.append(make_call(call, call + 0.05, name="cudaGraphLaunch", correlation=number))
            number = replays[each.graph]
        else:
            events.append(make_call(call + 0.03, call + 0.05, correlation=number))
        name = each.kernel if isinstance(each, Talk) else each.name
        kernel = make_kernel(began, over, name=name, correlation=number)
        if isinstance(each, Talk) and each.stated != "nowhere":
            records = _records(rank, each)
            if each.stated in ("kernel", "host"):
                kernel["args"]["External id"] = 1000 + number
                host = {**records[0], "External id": 1000 + number}
                events.append(make_op(call + 0.02, call + 0.06, name="record_param_comms", **host))
                if each.stated == "kernel":
                    # Kineto copies all of it but the root.
                    kernel["args"] |= {key: value for key, value in records[0].items() if key != "Rank"}
            for place, some in enumerate(records if each.stated == "before" else []):
                begin = call + 0.001 * place
                host = {**some, "External id": 5000 + 100 * number + place}
                events.append(make_op(begin, begin + 0.0005, name="record_param_comms", **host))
        events.append(kernel)
    return events


def _records(rank: int, each: Talk) -> list[Json]:
    """What `record_param_comms` states of it."""
    base = {
        "dtype": "BFloat16",
        "In msg nelems": each.elements[0],
        "Out msg nelems": each.elements[1],
        "Group size": len(each.ranks),
        "In split size": str(list(each.splits[0])),
        "Out split size": str(list(each.splits[1])),
        "Rank": each.ranks.index(rank) if each.root is None else each.root,
        **({"Process Group Name": each.group, "Process Group Ranks": str(list(each.ranks))} if each.group else {}),
        **({"Seq": each.sequence} if each.sequence is not None else {}),
    }
    if not each.batch:
        return [{**base, "Collective name": each.name}]
    peer = {"send": "Dst Rank", "recv": "Src Rank"}
    return [
        {**base, "Collective name": way, "Rank": each.ranks.index(other), peer[way]: other} for way, other in each.batch
    ]
