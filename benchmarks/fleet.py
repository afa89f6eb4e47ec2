"""A job of a thousand ranks with known truth, and what `tracekit ranks` finds of it.

    python -m benchmarks.fleet FOLDER --out digests              # 1,024 digests: 3 slow ranks, a slow host, a slow link
    python -m benchmarks.fleet FOLDER --clean 20                 # false alarms in 20 fleets in which nothing is slow
    python -m benchmarks.fleet FOLDER --out digests --json 32    # the first 32 through JSON of 50 MB each

FOLDER has recordings of one rank each (such as fsdp2.rank0.json.gz): kernels, and how kernels and gaps between them
scatter, are theirs. Ranks are placed as Megatron does: a host's 8 are one tensor-parallel group, then data, then
pipeline; each host has a clock of its own. JSON is grown one file at a time and deleted once it is digested.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.digest_file import digest_bytes
from tracekit.ranks.digests import RankDigest, RankSummary, Talk
from tracekit.ranks.job_figures import Ranks
from tracekit.ranks.reading.loading import RanksReading
from tracekit.ranks.telling import join_ranks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

US = 1000
#: Of a GPU against the others, by nature; and hosts' clocks, in nanoseconds and as a share.
GPU_SPREAD, CLOCK_OFFSET_NS, CLOCK_DRIFT = 0.005, 400_000, 2e-6
#: Gaps between kernels are no longer; what is longer is the host's doing, and sampled apart.
LONGEST_GAP_NS = 20_000
TENSOR_BYTES, PAIR_BYTES, DATA_BYTES, NORM_BYTES, EXPERT_BYTES = 16 << 20, 8 << 20, 256 << 20, 4, 12 << 20
#: Transfer of each, in nanoseconds, and how much it scatters.
TRANSFER_NS = {"tensor": 70_000, "pair": 45_000, "data": 5_200_000, "norm": 30_000, "expert": 60_000}
TRANSFER_SPREAD = 0.03
#: Ranks of the job that foreign recordings are of; processes that read JSON.
FOREIGN_SIZE, WORKERS = 64, 2
#: What GPUs of NVIDIA count time in.
TICK_NS = 32
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BASE_NS = 1_790_000_000_000_000_000


@dataclass(frozen=True)
class Shape:
    """How the job is parallel, and what a step of it is."""

    tensor: int = 8
    data: int = 16
    pipeline: int = 8
    steps: int = 9
    microbatches: int = 4
    segments: int = 6  #: Between two tensor-parallel all-reduces, of a microbatch's forward.
    kernels: int = 12  #: Of a segment.
    expert: int = 1  #: Ranks, neighbours in their data-parallel group, that have one part of the experts each.

    @property
    def size(self) -> int:
        return self.tensor * self.data * self.pipeline

    def groups(self, rank: int) -> dict[str, tuple[int, ...]]:
        """The rank's process groups by name, as Megatron calls them."""
        tensor, data = rank % self.tensor, rank // self.tensor % self.data
        stage = rank // (self.tensor * self.data)
        whole = self.tensor * self.data
        block = data // self.expert
        experts = (stage * whole + (block * self.expert + at) * self.tensor + tensor for at in range(self.expert))
        return {
            "0": tuple(range(self.size)),
            f"tp{rank // self.tensor}": tuple(rank - tensor + at for at in range(self.tensor)),
            f"dp{stage}_{tensor}": tuple(stage * whole + at * self.tensor + tensor for at in range(self.data)),
            f"pp{data}_{tensor}": tuple(rank - stage * whole + at * whole for at in range(self.pipeline)),
            **({f"ep{stage}_{block}_{tensor}": tuple(experts)} if self.expert > 1 else {}),
        }

    def purposes(self, rank: int) -> dict[str, str]:
        about = {
            "0": "default_pg",
            "t": "TENSOR_MODEL_PARALLEL_GROUP",
            "d": "DATA_PARALLEL_GROUP",
            "p": "PIPELINE_MODEL_PARALLEL_GROUP",
            "e": "EXPERT_MODEL_PARALLEL_GROUP",
        }
        return {name: about[name[0]] for name in self.groups(rank)}


@dataclass(frozen=True)
class Truth:
    """What was planted: ranks whose kernels take so many times as long, hosts that launch later by a share of the step,
    data-parallel groups (stage, tensor rank) and expert groups (stage, block, tensor rank) whose transfer takes so many
    times as long, ranks without recording."""

    slow_ranks: dict[int, float] = field(default_factory=dict)
    slow_hosts: dict[int, float] = field(default_factory=dict)
    slow_links: dict[tuple[int, int], float] = field(default_factory=dict)
    slow_experts: dict[tuple[int, int, int], float] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    cut_off: tuple[int, ...] = ()
    foreign: tuple[int, ...] = ()


def planted(shape: Shape, random: np.random.Generator) -> Truth:
    """3 slow ranks, 1 slow host, 1 slow link, 10 missing, 5 cut off, 5 foreign, in different places."""
    hosts = random.permutation(shape.size // shape.tensor)
    ranks = hosts[:3] * shape.tensor + random.integers(0, shape.tensor, 3)
    lost = [int(each) for each in random.permutation(shape.size) if each not in ranks][:20]
    return Truth(
        slow_ranks={int(rank): times for rank, times in zip(ranks, (1.06, 1.10, 1.20), strict=True)},
        slow_hosts={int(hosts[3]): 0.06},
        slow_links={(int(random.integers(shape.pipeline)), int(random.integers(shape.tensor))): 1.8},
        missing=tuple(sorted(lost[:10])),
        cut_off=tuple(sorted(lost[10:15])),
        foreign=tuple(sorted(lost[15:])),
    )


@dataclass(frozen=True)
class Recorded:
    """What real recordings tell: kernels in their order, how their durations scatter, gaps between them, and how long
    a host is held up."""

    kernels: pl.DataFrame
    ratios: Floats
    gaps_ns: Floats
    pauses_ns: Floats


def read_recorded(paths: list[Path]) -> Recorded:
    digests = [RanksReading(cached=False).digest(str(path)) for path in paths]
    lasting = pl.col("end_ns") - pl.col("start_ns")
    own = [
        each.activities.filter((pl.col("kind") == "kernel") & (pl.col("family") != "communication"))
        .with_columns(ns=lasting)
        .with_columns(usual=pl.col("ns").median().over("name", "grid"), n=pl.len().over("name", "grid"))
        for each in digests
    ]
    ratios = np.concatenate([(each["ns"] / each["usual"]).filter(each["n"] > 5).to_numpy() for each in own])
    gaps = np.concatenate([(each.gaps["end_ns"] - each.gaps["start_ns"]).to_numpy() for each in digests])
    kernels = own[0].filter(pl.col("usual").is_between(2_000, 300_000)).select("name", "family", "grid", ns="usual")
    return Recorded(kernels, ratios, gaps[gaps <= LONGEST_GAP_NS] * 1.0, gaps[gaps > LONGEST_GAP_NS] * 1.0)


class _Stage:
    """The ranks of one pipeline stage, of which all run the same: what ran when, an array of (what, rank)."""

    def __init__(self, now: Floats) -> None:
        self.now = now
        self.kinds: list[tuple[str, int]] = []  #: A kernel with its number, or a collective with the step.
        self.starts: list[Floats] = []
        self.ends: list[Floats] = []
        self.steps: list[int] = []
        self.widths: list[Ints] = []  #: Of each exchange of experts, by rank.

    def add(self, kind: str, number: int, step: int, starts: Floats, ends: Floats) -> None:
        self.kinds.append((kind, number))
        self.starts.append(starts)
        self.ends.append(ends)
        self.steps.append(step)
        self.now = ends


class Fleet:
    """The job as it ran, by the true clock; gives each rank's digest by the rank's own."""

    def __init__(self, shape: Shape, truth: Truth, recorded: Recorded, seed: int) -> None:
        self.shape, self.truth, self.recorded = shape, truth, recorded
        self.random = np.random.default_rng(seed)
        whole = (shape.pipeline, shape.data, shape.tensor)
        self.speed = 1 + GPU_SPREAD * self.random.standard_normal(whole)
        for rank, times in truth.slow_ranks.items():
            self.speed.reshape(-1)[rank] *= times
        hosts = shape.size // shape.tensor
        self.offsets = np.rint(CLOCK_OFFSET_NS * self.random.standard_normal(hosts)).astype(np.int64)
        self.drifts = CLOCK_DRIFT * self.random.standard_normal(hosts)
        self.begins: list[Floats] = []
        self.stages = [_Stage(np.full(whole[1:], 1e6)) for _ in range(shape.pipeline)]
        for step in range(shape.steps):
            self._step(step)

    def _step(self, step: int) -> None:
        shape = self.shape
        # A step's length as it would be without anything planted: what a host is late by is a share of it.
        each_ns = float(self.recorded.kernels["ns"].head(shape.kernels * shape.segments).sum())
        usual_ns = 3 * shape.microbatches * each_ns
        for number, stage in enumerate(self.stages):
            pause = self.random.choice(self.recorded.pauses_ns, stage.now.shape) / 10
            for host, share in self.truth.slow_hosts.items():
                if host // shape.data == number:
                    pause[host % shape.data] += (
                        share * usual_ns * (1 + 0.05 * self.random.standard_normal(shape.tensor))
                    )
            self.begins.append(stage.now.copy())
            stage.now = stage.now + pause
        sent: dict[tuple[int, int, str], Floats] = {}
        for way, order in (("forward", 1), ("backward", -1)):
            for batch in range(shape.microbatches):
                for at in range(shape.pipeline):
                    number = at if order == 1 else shape.pipeline - 1 - at
                    before, after = number - order, number + order
                    if 0 <= before < shape.pipeline:
                        self._receive(number, step, sent[before, batch, way], f"recv:{before}")
                    for segment in range(shape.segments * (1 if order == 1 else 2)):
                        self._compute(number, step, segment)
                        if segment < shape.segments:
                            self._meet(number, step, "tensor", axis=1)
                    if shape.expert > 1:
                        self._exchange(number, step)
                    if 0 <= after < shape.pipeline:
                        stage = self.stages[number]
                        begun = stage.now + self._gap(stage.now)
                        stage.add(f"send:{after}", 0, step, begun, begun + self._transfer("pair", begun.shape))
                        sent[number, batch, way] = stage.now
        for number in range(shape.pipeline):
            self._meet(number, step, "data", axis=0)
        begun = [stage.now + self._gap(stage.now) for stage in self.stages]
        over = max(float(each.max()) for each in begun) + self._transfer("norm", (1,))[0]
        for stage, each in zip(self.stages, begun, strict=True):
            stage.add("norm", 0, step, each, over + np.abs(self.random.normal(0, 300, each.shape)))

    def _gap(self, like: Floats) -> Floats:
        return self.random.choice(self.recorded.gaps_ns, like.shape)

    def _transfer(self, kind: str, shape: tuple[int, ...]) -> Floats:
        return TRANSFER_NS[kind] * np.exp(TRANSFER_SPREAD * self.random.standard_normal(shape))

    def _compute(self, number: int, step: int, segment: int) -> None:
        stage, count = self.stages[number], self.shape.kernels
        kernels = self.recorded.kernels
        for at in range(count):
            each = (segment * count + at) % kernels.height
            begun = stage.now + self._gap(stage.now)
            ratio = self.random.choice(self.recorded.ratios, begun.shape) * self.speed[number]
            stage.add("kernel", each, step, begun, begun + kernels["ns"][each] * ratio)

    def _receive(self, number: int, step: int, came: Floats, kind: str) -> None:
        stage = self.stages[number]
        begun = stage.now + self._gap(stage.now)
        over = np.maximum(begun + 5_000, came + np.abs(self.random.normal(0, 300, begun.shape)))
        stage.add(kind, 0, step, begun, over)

    def _meet(self, number: int, step: int, kind: str, axis: int) -> None:
        stage = self.stages[number]
        begun = stage.now + self._gap(stage.now)
        last = begun.max(axis=axis, keepdims=True)
        lasting = self._transfer(kind, last.shape)
        if kind == "data":
            for (slow, tensor), times in self.truth.slow_links.items():
                if slow == number:
                    lasting[0, tensor] *= times
        ends = last + lasting + np.abs(self.random.normal(0, 500, begun.shape))
        stage.add(kind, 0, step, begun, np.broadcast_to(ends, begun.shape))

    def _exchange(self, number: int, step: int) -> None:
        """All-to-all of each expert group, of as much as the step has for its experts."""
        stage, shape = self.stages[number], self.shape
        begun = stage.now + self._gap(stage.now)
        groups = (shape.data // shape.expert, shape.expert, shape.tensor)
        each = (groups[0], 1, groups[2])
        widths = np.rint(EXPERT_BYTES * np.exp(0.3 * self.random.standard_normal(each)))
        lasting = self._transfer("expert", each) * widths / EXPERT_BYTES
        for (slow, block, tensor), times in self.truth.slow_experts.items():
            if slow == number:
                lasting[block, 0, tensor] *= times
        ends = begun.reshape(groups).max(axis=1, keepdims=True) + lasting
        stage.add("expert", len(stage.widths), step, begun, np.broadcast_to(ends, groups).reshape(begun.shape))
        stage.widths.append(np.broadcast_to(widths, groups).reshape(begun.shape).astype(np.int64))

    def digests(self) -> Iterator[RankDigest]:
        """Of every rank that was recorded, in order; cut off or of another job where that was planted."""
        for rank, stage, starts, ends, begins in self._recorded(self.truth.missing):
            digest = self._digest(rank, stage, starts, ends, begins)
            if rank in self.truth.cut_off:
                digest = cut_off(digest)
            if rank in self.truth.foreign:
                digest = replace(digest, rank=rank % FOREIGN_SIZE, world_size=FOREIGN_SIZE)
            yield digest

    def summaries(self) -> Iterator[RankSummary]:
        """Of every rank that was recorded whole what its summary says, without making its kernels."""
        lost = (*self.truth.missing, *self.truth.cut_off, *self.truth.foreign)
        for rank, stage, starts, ends, begins in self._recorded(lost):
            yield self._summary(rank, stage, starts, ends, begins)

    def _recorded(self, lost: Collection[int]) -> Iterator[tuple[int, _Stage, Ints, Ints, Ints]]:
        """Each rank with its stage, what it did by its own clock, and when its steps began and the last was over."""
        shape = self.shape
        for number, stage in enumerate(self.stages):
            starts, ends = (np.stack(each) for each in (stage.starts, stage.ends))
            begins = np.stack([*self.begins[number :: shape.pipeline], stage.now])
            for at in range(shape.data * shape.tensor):
                rank = number * shape.data * shape.tensor + at
                if rank not in lost:
                    place = (slice(None), *divmod(at, shape.tensor))
                    yield rank, stage, *(self._by_own_clock(rank, each[place]) for each in (starts, ends, begins))

    def _by_own_clock(self, rank: int, true_ns: Floats) -> Ints:
        moved: Ints = np.rint(true_ns * (1 + self.drifts[rank // self.shape.tensor]) / TICK_NS).astype(np.int64)
        return moved * TICK_NS

    def _identity(self, rank: int, begins: Ints) -> dict[str, Any]:
        host = rank // self.shape.tensor
        return {
            "path": f"rank{rank}.json",
            "rank": rank,
            "world_size": self.shape.size,
            "host_name": f"host{host:03d}",
            "device_name": "NVIDIA H200",
            "origin_ns": BASE_NS + int(self.offsets[host]),
            "first_ns": int(begins[0]) - 1000,
            "device": rank % self.shape.tensor,
            "groups": self.shape.groups(rank),
            "purposes": self.shape.purposes(rank),
            "window": "steps",
            "windows": tuple((int(a), int(b)) for a, b in pairwise(begins)),
            "steps": tuple(range(self.shape.steps)),
            "skipped": 0,
            "truncated": False,
        }

    def _talk(self, rank: int, stage: _Stage) -> list[Talk]:
        """Of each of its communication kernels what it is."""
        _, tensor, data, pipeline, *expert = groups = [*self.shape.groups(rank)]
        ranks = self.shape.groups(rank)
        known: dict[str, Talk] = {}
        for what, group, width in (
            ("tensor", tensor, TENSOR_BYTES),
            ("data", data, DATA_BYTES),
            ("norm", groups[0], NORM_BYTES),
        ):
            signature = f"all_reduce BFloat16 {width}"
            known[what] = Talk(
                "all_reduce", group, (), len(ranks[group]), "BFloat16", width, signature, "all", None, (), ()
            )
        for what in {kind for kind, _ in stage.kinds if ":" in kind}:
            way, _, other = what.partition(":")
            peer = (ranks[pipeline][int(other)],)
            given, taken = (peer, ()) if way == "send" else ((), peer)
            of = (len(ranks[pipeline]), "BFloat16", PAIR_BYTES, f"{way} BFloat16 {PAIR_BYTES}")
            known[what] = Talk(way, pipeline, (), *of, "pairs", None, given, taken)
        place = divmod(rank % (self.shape.data * self.shape.tensor), self.shape.tensor)
        for at, widths in enumerate(stage.widths):
            width = int(widths[place])
            signature = f"all_to_all BFloat16 {width}"
            of_all = (len(ranks[expert[0]]), "BFloat16", width, signature, "all", None, (), ())
            known[f"expert {at}"] = Talk("all_to_all", expert[0], (), *of_all)
        kinds = (f"{kind} {at}" if kind == "expert" else kind for kind, at in stage.kinds)
        return [known[kind] for kind in kinds if kind != "kernel"]

    def _sequences(self, talk: list[Talk]) -> list[int]:
        """Numbers in the group's sequence; sends and receives have none."""
        seen: Counter[str | None] = Counter()
        found = []
        for each in talk:
            found.append(-1 if each.exchange == "pairs" else seen[each.group])
            seen[each.group] += 1
        return found

    def _summary(self, rank: int, stage: _Stage, starts: Ints, ends: Ints, begins: Ints) -> RankSummary:
        steps, count = np.array(stage.steps), self.shape.steps
        is_kernel = np.array([kind == "kernel" for kind, _ in stage.kinds])
        talk = self._talk(rank, stage)
        numbers: dict[Talk, int] = {}
        rows = [numbers.setdefault(each, len(numbers)) for each in talk]
        before = np.maximum(starts - np.append(begins[0], ends[:-1]), 0)
        fresh = np.append(True, np.diff(steps) != 0)
        idle = np.zeros((count, len(IDLE_CAUSES)), dtype=np.int64)
        idle[:, IDLE_CAUSES.index("python")] = np.bincount(steps[fresh], before[fresh], count)
        idle[:, IDLE_CAUSES.index("device")] = np.bincount(steps[~fresh], before[~fresh], count)
        own = ~is_kernel
        parts = (starts[own], ends[own], steps[own], rows, self._sequences(talk), np.zeros(len(rows)))
        return RankSummary(
            **self._identity(rank, begins),
            spans_ns=np.diff(begins),
            compute_ns=np.bincount(steps[is_kernel], (ends - starts)[is_kernel], count).astype(np.int64),
            idle_ns=idle,
            beside_ns=np.zeros(count, dtype=np.int64),
            talk=tuple(numbers),
            parts=np.stack(parts, axis=1).astype(np.int64),
        )

    def _digest(self, rank: int, stage: _Stage, starts: Ints, ends: Ints, begins: Ints) -> RankDigest:
        talk = self._talk(rank, stage)
        groups = self.shape.groups(rank)
        what, numbers = zip(*stage.kinds, strict=True)
        named = self.recorded.kernels.select("name", "family", "grid")
        before = np.append(begins[0], ends[:-1])
        table = pl.DataFrame(
            {"what": what, "start_ns": starts, "end_ns": ends, "step": stage.steps, "ready_ns": before}
        )
        table = pl.concat([table, named[list(numbers)]], how="horizontal")
        is_kernel = pl.col("what") == "kernel"
        kernel = pl.when(pl.col("what").str.contains(":")).then(pl.lit(SENDRECV)).otherwise(pl.lit(ALLREDUCE))
        activities = table.select(
            kind=pl.lit("kernel"),
            name=pl.when(is_kernel).then("name").otherwise(kernel),
            family=pl.when(is_kernel).then("family").otherwise(pl.lit("communication")),
            stream=pl.lit(7, dtype=pl.Int64),
            step="step",
            start_ns="start_ns",
            end_ns="end_ns",
            grid=pl.when(is_kernel).then("grid").otherwise(pl.lit("[24, 1, 1]")),
            in_graph=pl.lit(value=False),
        )
        sequence = [None if each < 0 else each for each in self._sequences(talk)]
        columns = {name: [getattr(each, name) for each in talk] for name in Talk.__struct_fields__}
        columns |= {"ranks": [list(groups[each.group or ""]) for each in talk], "sequence": sequence}
        lists, texts = ("ranks", "targets", "sources"), ("collective", "group", "dtype", "signature", "exchange")
        types = dict.fromkeys(lists, pl.List(pl.Int64)) | dict.fromkeys(texts, pl.String)
        said = pl.DataFrame(columns, schema_overrides={**dict.fromkeys(columns, pl.Int64), **types})
        collectives = pl.concat(
            [
                table.filter(~is_kernel).select("start_ns", "end_ns", "ready_ns", "step", kernel=kernel),
                said.with_columns(sent_bytes="bytes", received_bytes="bytes"),
            ],
            how="horizontal",
        ).with_columns(stream=pl.lit(7, dtype=pl.Int64), in_graph=pl.lit(value=False))
        idle = starts > before
        fresh = np.append(True, np.diff(stage.steps) != 0)[idle]
        lasting = (starts - before)[idle]
        made = {"python": np.where(fresh, lasting, 0), "device": np.where(fresh, 0, lasting)}
        gaps = pl.DataFrame({"start_ns": before[idle], "end_ns": starts[idle]}).with_columns(
            pl.Series(cause, made.get(cause, np.zeros(len(lasting), dtype=np.int64))) for cause in IDLE_CAUSES
        )
        places = {"start_ns": pl.Int64, "end_ns": pl.Int64, "cause": pl.String, "where": pl.String}
        return RankDigest(
            **self._identity(rank, begins),
            activities=activities,
            collectives=collectives,
            gaps=gaps,
            places=pl.DataFrame(schema=places),
        )


def cut_off(digest: RankDigest) -> RankDigest:
    """As of a file that ends in the middle of the recording."""
    count = len(digest.windows) // 2
    end = digest.windows[count - 1][1]
    tables = {
        name: getattr(digest, name).filter(pl.col("end_ns") <= end) for name in ("activities", "collectives", "gaps")
    }
    return replace(digest, **tables, windows=digest.windows[:count], steps=digest.steps[:count], truncated=True)


def trace_text(digest: RankDigest, size: int) -> bytes:
    """The digest's recording as torch.profiler writes it, of at least `size` bytes: operators of the host fill it."""
    stated = {"backend": "nccl", "rank": digest.rank, "world_size": digest.world_size}
    config = [
        {"pg_name": name, "pg_desc": digest.purposes[name], "pg_size": len(ranks), "ranks": ranks}
        for name, ranks in digest.groups.items()
    ]
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": digest.device, "name": digest.device_name}],
        "distributedInfo": {**stated, "pg_count": len(config), "pg_config": config},
        "host_name": digest.host_name,
        "baseTimeNanoseconds": digest.origin_ns,
    }
    events = [
        f'{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{number}","pid":1,"tid":1,'
        f'"ts":{begin / 1e3:.3f},"dur":{(end - begin) / 1e3:.3f},"args":{{}}}}'
        for number, (begin, end) in zip(digest.steps, digest.windows, strict=True)
    ]
    # Kernels were launched long before they ran, or, where a step begins, just before.
    talk = {row["start_ns"]: row for row in digest.collectives.iter_rows(named=True)}
    columns = digest.activities.select("name", "start_ns", "end_ns", "grid", "step").iter_rows()
    begins = [begin for begin, _ in digest.windows]
    called = 0
    for number, (name, start, end, grid, step) in enumerate(columns, start=1):
        first = called < begins[step]
        called = start - 4_000 if first else max(called + 2_000, min(start - 30_000, start))
        about = {"device": digest.device, "stream": 7, "correlation": number, "External id": number}
        about["grid"] = json.loads(grid)
        if (row := talk.get(start)) is not None:
            about |= _known_of(row)
        events.append(
            f'{{"ph":"X","cat":"kernel","name":{json.dumps(name)},"pid":{digest.device},"tid":7,"ts":{start / 1e3:.3f},'
            f'"dur":{(end - start) / 1e3:.3f},"args":{json.dumps(about)}}}'
        )
        events.append(
            f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{called / 1e3:.3f},'
            f'"dur":1.500,"args":{{"cbid":211,"correlation":{number},"External id":{number}}}}}'
        )
    text = ",\n".join(events)
    shapes = '"Input Dims":[[6,2048,2048],[],[]],"Input type":["c10::BFloat16","Scalar","Scalar"],"Concrete Inputs":[]'
    one = (
        '{"ph":"X","cat":"cpu_op","name":"aten::as_strided","pid":1,"tid":2,"ts":%.3f,"dur":1.203,'
        '"args":{"External id":%d,"Record function id":0,"Ev Idx":%d,' + shapes + "}}"
    )
    count = max(size - len(text), 0) // (len(one) + 20) + 1
    between = (digest.windows[-1][1] - begins[0]) / 1e3 / count
    fill = ",\n".join(one % (begins[0] / 1e3 + at * between, 10**7 + at, at) for at in range(count))
    return f'{json.dumps(head)[:-1]}, "traceEvents": [\n{text},\n{fill}\n  ]}}\n'.encode()


def _known_of(row: dict[str, Any]) -> dict[str, Any]:
    """What `record_param_comms` states of it on the kernel."""
    names = {"all_reduce": "allreduce", "all_to_all": "all_to_allv", "send": "send", "recv": "recv"}
    known = {
        "Collective name": names[row["collective"]],
        "In msg nelems": row["bytes"] // 2,
        "Out msg nelems": row["bytes"] // 2,
        "dtype": "BFloat16",
        "Group size": row["size"],
        "Process Group Name": row["group"],
        "Process Group Ranks": str(row["ranks"]),
    }
    for name, peers in (("Dst Rank", row["targets"]), ("Src Rank", row["sources"])):
        known |= {name: peers[0]} if peers else {}
    return known | ({"Seq": row["sequence"]} if row["sequence"] is not None else {})


def through_json(digest: RankDigest, folder: Path, megabytes: int) -> tuple[bytes, float]:
    """The content of the digest of its recording, which is deleted, and how many seconds that took."""
    path = folder / f"rank{digest.rank}.json"
    text = trace_text(digest, megabytes * 10**6)
    # Within the kernels, which stand first.
    path.write_bytes(text[: len(text) // 20] if digest.truncated else text)
    began = time.perf_counter()
    try:
        return digest_bytes(RanksReading(cached=False).digest(str(path))), time.perf_counter() - began
    finally:
        path.unlink()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def found_of(told: Ranks) -> set[tuple[str, object]]:
    return {(each.kind, each.ranks[0] if each.kind == "rank" else each.name) for each in told.stragglers}


def planted_of(truth: Truth) -> set[tuple[str, object]]:
    ranks: set[tuple[str, object]] = {("rank", rank) for rank in truth.slow_ranks}
    hosts = {("host", f"host{host:03d}") for host in truth.slow_hosts}
    links = {("link", f"dp{stage}_{tensor}") for stage, tensor in truth.slow_links}
    experts = {("link", f"ep{stage}_{block}_{tensor}") for stage, block, tensor in truth.slow_experts}
    return ranks | hosts | links | experts


def judge(shape: Shape, recorded: Recorded, seeds: range, *, clean: bool) -> None:
    """Prints what was missed and what was found that is not there, fleet by fleet."""
    for seed in seeds:
        truth = Truth() if clean else planted(shape, np.random.default_rng(seed))
        told = join_ranks(list(Fleet(shape, truth, recorded, seed).summaries()))
        missed, false = planted_of(truth) - found_of(told), found_of(told) - planted_of(truth)
        say(f"fleet {seed}: {len(told.stragglers)} found, missed {missed or 0}, false {false or 0}")


def write_digests(fleet: Fleet, folder: Path, through: int, megabytes: int) -> None:
    """Digests of all ranks that were recorded; or of the first `through` of them, made of JSON files by two processes
    at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    every = islice(fleet.digests(), through or None)
    sizes, seconds = [], []
    began = time.perf_counter()
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        while some := [*islice(every, WORKERS)]:
            if through:
                made = [*pool.map(partial(through_json, folder=folder, megabytes=megabytes), some)]
            else:
                made = [(digest_bytes(each), 0.0) for each in some]
            for content, spent in made:
                (folder / f"{len(sizes)}.digest").write_bytes(content)
                sizes.append(len(content))
                seconds.append(spent)
    say(f"{len(sizes)} digests of {min(sizes):,} to {max(sizes):,} bytes in {time.perf_counter() - began:.0f} s")
    if through:
        say(f"one of {megabytes} MB of JSON in {np.median(seconds):.2f} s (median)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path, help="a folder of recordings of one rank each")
    parser.add_argument("--out", type=Path, help="a folder for digests of a fleet with planted causes")
    parser.add_argument("--json", type=int, default=0, help="only so many of its digests, made of JSON files")
    parser.add_argument("--megabytes", type=int, default=50, help="of each JSON file")
    parser.add_argument("--clean", type=int, default=0, help="so many fleets in which nothing is slow")
    parser.add_argument("--planted", type=int, default=0, help="so many fleets with planted causes")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    names = ("fsdp2.rank0.json.gz", "fsdp2.rank1.json.gz", "tp_compiled.rank0.json.gz")
    recorded, shape = read_recorded([asked.recordings / name for name in names]), Shape()
    if asked.out:
        truth = planted(shape, np.random.default_rng(asked.seed))
        say(str(truth))
        write_digests(Fleet(shape, truth, recorded, asked.seed), asked.out, asked.json, asked.megabytes)
    judge(shape, recorded, range(asked.seed, asked.seed + asked.clean), clean=True)
    judge(shape, recorded, range(asked.seed, asked.seed + asked.planted), clean=False)


if __name__ == "__main__":
    main()
