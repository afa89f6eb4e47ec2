"""A job of a thousand ranks with known truth, and what `tracekit ranks` finds of it.

    python -m benchmarks.fleet FOLDER --out digests              # 1,024 digests: 3 slow ranks, a slow host, a slow link
    python -m benchmarks.fleet FOLDER --clean 20                 # false alarms in 20 fleets in which nothing is slow
    python -m benchmarks.fleet FOLDER --out digests --json 32    # so many of them through JSON of 50 MB each

FOLDER has recordings of one rank each (such as fsdp2.rank0.json.gz): kernels, and how kernels and gaps between them
scatter, are theirs. Ranks are placed as Megatron does: a host's 8 are one tensor-parallel group, then data, then
pipeline; each host has a clock of its own. JSON is grown one file at a time and deleted once it is digested.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.errors import TracekitError
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.ranks import RankDigest
from tracekit.ranks.digest_file import digest_bytes
from tracekit.ranks.joining import join_ranks
from tracekit.walks.ranks import RanksReading

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

US = 1000
#: Of a GPU against the others, by nature; and hosts' clocks, in nanoseconds and as a share.
GPU_SPREAD, CLOCK_OFFSET_NS, CLOCK_DRIFT = 0.005, 400_000, 2e-6
#: Gaps between kernels are no longer; what is longer is the host's doing, and sampled apart.
LONGEST_GAP_NS = 20_000
TENSOR_BYTES, PAIR_BYTES, DATA_BYTES, NORM_BYTES = 16 << 20, 8 << 20, 256 << 20, 4
#: Transfer of each, in nanoseconds, and how much it scatters.
TRANSFER_NS = {"tensor": 70_000, "pair": 45_000, "data": 5_200_000, "norm": 30_000}
TRANSFER_SPREAD = 0.03
#: What GPUs of NVIDIA count time in.
TICK_NS = 32
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

    @property
    def size(self) -> int:
        return self.tensor * self.data * self.pipeline

    def groups(self, rank: int) -> dict[str, tuple[int, ...]]:
        """The rank's process groups by name, as Megatron calls them."""
        tensor, data = rank % self.tensor, rank // self.tensor % self.data
        stage = rank // (self.tensor * self.data)
        whole = self.tensor * self.data
        return {
            "0": tuple(range(self.size)),
            f"tp{rank // self.tensor}": tuple(rank - tensor + at for at in range(self.tensor)),
            f"dp{stage}_{tensor}": tuple(stage * whole + at * self.tensor + tensor for at in range(self.data)),
            f"pp{data}_{tensor}": tuple(rank - stage * whole + at * whole for at in range(self.pipeline)),
        }

    def purposes(self, rank: int) -> dict[str, str]:
        about = {
            "0": "default_pg",
            "t": "TENSOR_MODEL_PARALLEL_GROUP",
            "d": "DATA_PARALLEL_GROUP",
            "p": "PIPELINE_MODEL_PARALLEL_GROUP",
        }
        return {name: about[name[0]] for name in self.groups(rank)}


@dataclass(frozen=True)
class Truth:
    """What was planted: ranks whose kernels take so many times as long, hosts that launch later by a share of the step,
    data-parallel groups (stage, tensor rank) whose transfer takes so many times as long, ranks without recording."""

    slow_ranks: dict[int, float] = field(default_factory=dict)
    slow_hosts: dict[int, float] = field(default_factory=dict)
    slow_links: dict[tuple[int, int], float] = field(default_factory=dict)
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
        self.over = [each.now for each in self.stages]

    def _step(self, step: int) -> None:
        shape = self.shape
        # A step's length as it would be without anything planted: what a host is late by is a share of it.
        each_ns = float(self.recorded.kernels["ns"].head(shape.kernels * shape.segments).sum())
        usual_ns = 3 * shape.microbatches * each_ns
        for number, stage in enumerate(self.stages):
            pause = self.random.choice(self.recorded.pauses_ns, stage.now.shape) / 10
            for host, share in self.truth.slow_hosts.items():
                if host // shape.data == number:
                    pause[host % shape.data] += share * usual_ns * (1 + 0.05 * self.random.standard_normal(shape.tensor))
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

    def digests(self) -> Iterator[RankDigest]:
        """Of every rank that was recorded whole, in order."""
        lost = {*self.truth.missing, *self.truth.cut_off, *self.truth.foreign}
        for number, stage in enumerate(self.stages):
            starts, ends = (np.rint(np.stack(each)).astype(np.int64) for each in (stage.starts, stage.ends))
            for at in range(self.shape.data * self.shape.tensor):
                rank = number * self.shape.data * self.shape.tensor + at
                if rank not in lost:
                    place = divmod(at, self.shape.tensor)
                    own = (slice(None), *place)
                    yield self._digest(rank, number, stage, starts[own], ends[own], place)

    def _digest(
        self, rank: int, number: int, stage: _Stage, starts: Ints, ends: Ints, place: tuple[int, int]
    ) -> RankDigest:
        shape, host = self.shape, rank // self.shape.tensor
        def own(true_ns: Ints) -> Ints:
            moved: Ints = np.rint(true_ns * (1 + self.drifts[host]) / TICK_NS).astype(np.int64) * TICK_NS
            return moved

        begins = np.array([round(float(self.begins[step * shape.pipeline + number][place])) for step in range(shape.steps)])
        edges = np.append(begins, round(float(stage.now[place])))
        starts, ends, edges = own(starts), own(ends), own(edges)
        kinds = pl.DataFrame({"what": [kind for kind, _ in stage.kinds], "number": [n for _, n in stage.kinds]})
        named = self.recorded.kernels.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64))
        is_kernel = (kinds["what"] == "kernel").to_numpy()
        before = np.append(edges[0], ends[:-1])
        table = kinds.with_columns(
            start_ns=pl.Series(starts), end_ns=pl.Series(ends), step=pl.Series(stage.steps, dtype=pl.Int64),
            ready_ns=pl.Series(before),
        ).join(named.drop("ns"), on="number", how="left", maintain_order="left")
        groups = shape.groups(rank)
        names = {"tensor": list(groups)[1], "data": list(groups)[2], "norm": "0"}
        activities = table.select(
            kind=pl.lit("kernel"),
            name=pl.when(pl.col("what") == "kernel").then("name").when(pl.col("what").str.contains(":"))
            .then(pl.lit("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"))
            .otherwise(pl.lit("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")),
            family=pl.when(pl.col("what") == "kernel").then("family").otherwise(pl.lit("communication")),
            stream=pl.lit(7, dtype=pl.Int64),
            step="step", start_ns="start_ns", end_ns="end_ns",
            grid=pl.when(pl.col("what") == "kernel").then("grid").otherwise(pl.lit("[24, 1, 1]")),
            in_graph=pl.lit(False),
        )
        talk = table.filter(pl.col("what") != "kernel").with_row_index("row")
        what = talk["what"].to_list()
        peer = [int(each.partition(":")[2]) if ":" in each else None for each in what]
        peers = [[groups[list(groups)[3]][each]] if each is not None else [] for each in peer]
        widths = {"tensor": TENSOR_BYTES, "data": DATA_BYTES, "norm": NORM_BYTES}
        group = [names.get(each, list(groups)[3]) for each in what]
        count = np.zeros(len(what), dtype=np.int64)
        seen: dict[str, int] = {}
        for row, each in enumerate(group):
            count[row] = seen[each] = seen.get(each, -1) + 1
        width = [widths.get(each, PAIR_BYTES) for each in what]
        name = [each.partition(":")[0] if ":" in each else "all_reduce" for each in what]
        collectives = talk.select(
            "start_ns", "end_ns", "ready_ns", "step",
            stream=pl.lit(7, dtype=pl.Int64), in_graph=pl.lit(False),
            sequence=pl.Series([None if ":" in each else int(k) for each, k in zip(what, count, strict=True)], dtype=pl.Int64),
            kernel=pl.Series(activities.filter(pl.Series(~is_kernel))["name"]),
            collective=pl.Series(name), group=pl.Series(group),
            ranks=pl.Series([list(groups[each]) for each in group], dtype=pl.List(pl.Int64)),
            size=pl.Series([len(groups[each]) for each in group], dtype=pl.Int64),
            dtype=pl.lit("BFloat16"), bytes=pl.Series(width, dtype=pl.Int64),
            signature=pl.Series([f"{a} BFloat16 {b}" for a, b in zip(name, width, strict=True)]),
            exchange=pl.Series(["pairs" if ":" in each else "all" for each in what]),
            root=pl.lit(None, dtype=pl.Int64),
            targets=pl.Series([p if each.startswith("send") else [] for each, p in zip(what, peers, strict=True)], dtype=pl.List(pl.Int64)),
            sources=pl.Series([p if each.startswith("recv") else [] for each, p in zip(what, peers, strict=True)], dtype=pl.List(pl.Int64)),
            sent_bytes=pl.Series(width, dtype=pl.Int64), received_bytes=pl.Series(width, dtype=pl.Int64),
        )
        idle = starts > before
        lasting = np.where(idle, starts - before, 0)
        fresh = np.append(True, np.diff(table["step"].to_numpy()) != 0)
        gaps = pl.DataFrame({"start_ns": before[idle], "end_ns": starts[idle]}).with_columns(
            pl.Series(
                cause,
                np.where(fresh, lasting, 0)[idle] if cause == "python"
                else np.where(fresh, 0, lasting)[idle] if cause == "device"
                else np.zeros(int(idle.sum()), dtype=np.int64),
            )
            for cause in IDLE_CAUSES
        )
        return RankDigest(
            path=f"rank{rank}.json", rank=rank, world_size=shape.size, host_name=f"host{host:03d}",
            device_name="NVIDIA H200", origin_ns=BASE_NS + int(self.offsets[host]), first_ns=int(edges[0]) - 1000,
            groups=groups, window="steps",
            windows=tuple((int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)),
            activities=activities, collectives=collectives, gaps=gaps,
            places=pl.DataFrame(schema={"start_ns": pl.Int64, "end_ns": pl.Int64, "cause": pl.String, "where": pl.String}),
            skipped=0, truncated=False, device=rank % 8, steps=tuple(range(shape.steps)),
            purposes=shape.purposes(rank),
        )
