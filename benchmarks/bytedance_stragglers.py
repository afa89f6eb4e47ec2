"""What `tracekit ranks` tells of three jobs that ByteDance published, beside what their own analysis tells of them.

    git clone https://github.com/ByteDance-Seed/StragglerAnalysis
    python -m benchmarks.bytedance_stragglers StragglerAnalysis --json results/bytedance-stragglers.json \
        [--peers-python /path/to/python] [--keep FOLDER]

Lin and others, Understanding Stragglers in Large Model Training Using What-if Analysis (OSDI 2025), simulate each job
again with operators as long as the mean of their kind, communication as the median. The jobs are named by what was
wrong: ST a last stage with more work, SE sequences of unequal length, AR one worker that was slowed down on purpose. A
Python that has pandas below 2.3, pyarrow below 18, scipy, tqdm, ujson and PyYAML runs their program too.

They recorded operators, no kernels and no host: each becomes an activity of its rank's GPU, and idle time has no cause.
A rank that was recorded stands for all of its tensor or sequence parallel group.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from tracekit.interval import complement, union
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.digest_file import digest_bytes
from tracekit.ranks.digests import RankDigest

ROOT = Path(__file__).parents[1]
COMMAND = "python -m benchmarks.bytedance_stragglers StragglerAnalysis --json results/bytedance-stragglers.json"
JOBS, ROUNDS = ("ST", "SE", "AR"), 3
#: Of a rank's score, above one, by the highest: ranks that their heat map shows.
SHOWN = 0.5
#: What ranks do together; all other operators are a worker's own.
COLLECTIVES = {
    "params-all-gather": "all_gather",
    "grads-reduce-scatter": "reduce_scatter",
    "embedding-grads-all-reduce": "all_reduce",
    "optimizer-clip-main-grad": "all_reduce",
}
#: By how many stages the other end lies further on, and what it is to the rank.
PAIRS = {
    "forward-send": (1, "targets"),
    "forward-recv": (-1, "sources"),
    "backward-send": (-1, "targets"),
    "backward-recv": (1, "sources"),
}
TIMES = ("start_ns", "end_ns")
ACTIVITIES = {
    **dict.fromkeys(("kind", "name", "family", "grid"), pl.String),
    **dict.fromkeys(("stream", "step", "start_ns", "end_ns", "called_ns"), pl.Int64),
    "in_graph": pl.Boolean,
}
TALKS: dict[str, Any] = {
    **dict.fromkeys(("start_ns", "end_ns", "ready_ns", "stream", "step", "sequence", "size", "bytes"), pl.Int64),
    **dict.fromkeys(("root", "sent_bytes", "received_bytes"), pl.Int64),
    **dict.fromkeys(("kernel", "collective", "group", "dtype", "signature", "exchange"), pl.String),
    **dict.fromkeys(("ranks", "targets", "sources"), pl.List(pl.Int64)),
    "in_graph": pl.Boolean,
}
PLACES = {**dict.fromkeys(TIMES, pl.Int64), "cause": pl.String, "where": pl.String}
Json = dict[str, Any]


def places_of(every: pl.DataFrame) -> dict[tuple[int, int], int]:
    """Ranks by data parallel rank and stage."""
    return {(row["dp_rank"], row["stage"]): row["rank"] for row in every.unique("rank").iter_rows(named=True)}


def digests_of(checkout: Path, job: str) -> list[RankDigest]:
    """The job's recordings, one a rank. The steps that were recorded follow upon each other, 1 ms apart."""
    stated = (checkout / f"data/meta-{job}.yaml").read_text().splitlines()
    size = next(int(line.split(":")[1]) for line in stated if line.startswith("world_size"))
    start, duration = (
        (pl.col(name).cast(pl.Float64) * 1e9).round().cast(pl.Int64) for name in ("start_ts", "duration")
    )
    every = pl.read_parquet(checkout / f"data/trace-{job}.parquet").select(
        "rank", "dp_rank", "stage", "step", pl.col("optype").cast(pl.String), start_ns=start, end_ns=start + duration
    )
    lengths = every.group_by("step").agg(ns=pl.col("end_ns").max()).sort("step")
    begun = lengths.select("step", at=pl.int_range(pl.len()), begun=(pl.col("ns") + 10**6).cum_sum() - pl.col("ns"))
    every = every.join(begun, on="step").with_columns(pl.col(*TIMES) + pl.col("begun"))
    every = every.filter(pl.col("end_ns") > pl.col("start_ns")).sort(*TIMES, "optype")
    places = places_of(every)
    steps = tuple(lengths["step"])
    return [
        _digest(rank, size, steps, list(every.filter(rank=rank).iter_rows(named=True)), places)
        for rank in sorted(places.values())
    ]


def _digest(
    rank: int, size: int, steps: tuple[int, ...], rows: list[Json], places: dict[tuple[int, int], int]
) -> RankDigest:
    work = [row for row in rows if row["optype"] not in (*PAIRS, *COLLECTIVES)]
    talk: list[Json] = []
    for row in rows:
        if row["optype"] not in (*PAIRS, *COLLECTIVES):
            continue
        each = _collective(row, places)
        same = talk[-1] if talk and all(talk[-1][name] == each[name] for name in (*TIMES, "ranks")) else None
        if same is None:
            talk.append(each)
            continue
        # What sends and receives at once is two operators of theirs.
        same["kernel"] += f", {each['kernel']}"
        same |= {way: same[way] + each[way] for way in ("targets", "sources")}
    over = np.array([0, *(row["end_ns"] for row in work)], dtype=np.int64)
    for each in talk:
        each["ready_ns"] = int(over[np.searchsorted(over, each["start_ns"], side="right") - 1])
    activities = pl.DataFrame(
        [
            *({**row, "name": row["optype"], "family": "other", "step": row["at"]} for row in work),
            *({**each, "name": each["kernel"], "family": "communication"} for each in talk),
        ],
        schema=ACTIVITIES,
    ).with_columns(kind=pl.lit("kernel"), stream=pl.lit(0, pl.Int64), in_graph=pl.lit(False))
    bounds = pl.DataFrame(rows).group_by("at").agg(pl.col("start_ns").min(), pl.col("end_ns").max()).sort("at")
    windows = bounds.select(TIMES).to_numpy()
    idle = complement(union(*activities.select(TIMES).to_numpy().T), windows)
    # Gaps are cut wherever a collective starts or is ready.
    cuts = np.unique([each[name] for each in talk for name in ("start_ns", "ready_ns")])
    gaps = complement(np.stack((cuts, cuts), axis=1), idle) if len(cuts) else idle
    table = pl.DataFrame({"start_ns": gaps[:, 0], "end_ns": gaps[:, 1]})
    lasting = pl.col("end_ns") - pl.col("start_ns")
    causes = {cause: lasting if cause == "unattributed" else pl.lit(0, pl.Int64) for cause in IDLE_CAUSES}
    return RankDigest(
        path=f"rank{rank}",
        rank=rank,
        world_size=size,
        host_name=None,
        device_name=None,
        origin_ns=0,
        first_ns=rows[0]["start_ns"],
        groups={},
        window="steps",
        windows=tuple((int(start), int(end)) for start, end in windows),
        activities=activities.sort(*TIMES),
        collectives=pl.DataFrame(talk, schema=TALKS),
        gaps=table.with_columns(**causes),
        places=pl.DataFrame(schema=PLACES),
        skipped=0,
        truncated=False,
        steps=steps,
    )


def _collective(row: Json, places: dict[tuple[int, int], int]) -> Json:
    """A communication operator as a row of the digest's."""
    name, dp_rank, stage = row["optype"], row["dp_rank"], row["stage"]
    told = {
        "start_ns": row["start_ns"],
        "end_ns": row["end_ns"],
        "step": row["at"],
        "stream": 0,
        "in_graph": False,
        "kernel": name,
        "signature": name,
        "targets": [],
        "sources": [],
    }
    if name in PAIRS:
        further, way = PAIRS[name]
        other = places[dp_rank, stage + further]
        ranks = sorted((row["rank"], other))
        pair = {"collective": "send_recv", "group": "pipeline", "exchange": "pairs", "signature": "send_recv"}
        return told | pair | {"ranks": ranks, "size": 2, way: [other]}
    last = max(each for _, each in places)
    if name == "embedding-grads-all-reduce":
        group, ranks = "embedding", [places[dp_rank, each] for each in (0, last)]
    elif name == "optimizer-clip-main-grad":
        group, ranks = "world", sorted(places.values())
    else:
        group, ranks = "data", sorted(rank for (_, each), rank in places.items() if each == stage)
    return told | {
        "collective": COLLECTIVES[name],
        "group": group,
        "exchange": "all",
        "ranks": ranks,
        "size": len(ranks),
    }


def published(checkout: Path, job: str) -> Json:
    """What their own analysis says. A step takes `slowdown` times as long as in the job that they simulate. A rank's
    score is the smaller of what its stage and its data parallel rank cost by themselves: their heat map. And the
    share of a step that goes when the last stage, or the 3 % of ranks with the highest scores, have usual operators."""
    told, ms, mw = (json.loads((checkout / f"data/{name}-{job}.json").read_text()) for name in ("result", "ms", "mw"))
    by_stage, by_dp_rank = (told[f"blocking_decompose_by_{name}"] for name in ("stage", "dp_rank"))
    places = places_of(pl.read_parquet(checkout / f"data/trace-{job}.parquet"))
    scores = {rank: min(by_stage[str(at)], by_dp_rank[str(dp_rank)]) for (dp_rank, at), rank in places.items()}
    least = SHOWN * (max(scores.values()) - 1)
    return {
        "slowdown": told["blocking_slowdown"],
        "by_stage": [by_stage[stage] for stage in sorted(by_stage, key=int)],
        "slow_ranks": [rank for rank, score in sorted(scores.items()) if score - 1 >= least],
        "last_stage_share": 1 - ms["trem"] / ms["tori"],
        "slow_ranks_share": 1 - mw["trem"] / mw["tori"],
    }


def found(told: Json) -> Json:
    """What `tracekit ranks` says. Shares are of the span."""
    span_us = max(each["span_us"] for each in told["ranks"])
    by_code: dict[str, list[Json]] = {"slow_gpu": [], "uneven_stages": []}
    for each in told["findings"]:
        by_code.setdefault(each["code"], []).append(each)
    return {
        "slow_ranks": [
            {"rank": each["rank"], "slower": each["facts"]["slower"], "share": each["saving_us"] / span_us}
            for each in by_code["slow_gpu"]
        ],
        "slow_stage": [
            {"ranks": each["facts"]["ranks"], "longer": each["facts"]["share"], "share": each["saving_us"] / span_us}
            for each in by_code["uneven_stages"]
        ],
        "first_late_rank": told["late"][0]["rank"],
        "exposed_waiting_share": median(each["exposed_waiting_us"] / each["span_us"] for each in told["ranks"]),
        "unmatched": sum(each["count"] for each in told["unmatched"]),
    }


def run(command: list[str], environment: dict[str, str]) -> tuple[str, Json]:
    """What it prints, and seconds of the whole process by the clock and of processor time: the best of some."""
    times: list[tuple[float, float]] = []
    printed = ""
    for _ in range(ROUNDS):
        began, before = time.perf_counter(), os.times()
        made = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
        wall_s, after, printed = time.perf_counter() - began, os.times(), made.stdout
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        times.append((round(wall_s, 2), round(cpu_s, 2)))
    return printed, dict(zip(("wall_s", "cpu_s"), map(min, zip(*times, strict=True)), strict=True))


def hold(checkout: Path, job: str, folder: Path, peers_python: str | None) -> Json:
    """Both, of one job, and how long each takes."""
    folder.mkdir(parents=True, exist_ok=True)
    digests = digests_of(checkout, job)
    for digest in digests:
        (folder / f"rank{digest.rank}.digest").write_bytes(digest_bytes(digest))
    command = [sys.executable, "-P", "-m", "tracekit", "ranks", str(folder), "-q", "--no-cache", "--json", "-"]
    printed, took = run(command, {"PYTHONPATH": str(ROOT)})
    told: Json = {
        "job": job,
        "ranks": digests[0].world_size,
        "recorded": len(digests),
        "steps": len(digests[0].steps),
        "activities": sum(each.activities.height for each in digests),
        "published": published(checkout, job),
        "tracekit": found(json.loads(printed)) | took,
    }
    if peers_python:
        data = checkout / "data"
        command = [peers_python, "analyzer/wia.py", "--metadata", f"data/meta-{job}.yaml"]
        command += ["--trace", f"data/trace-{job}.parquet", "--dump-dir", str(folder)]
        with contextlib.chdir(checkout):
            _, took = run(command, {"PYTHONPATH": "."})
        same = (folder / f"{job}.json").read_text() == (data / f"result-{job}.json").read_text()
        told["published"] |= {"repeated": same, **took}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--peers-python", help="a Python that runs their program")
    parser.add_argument("--keep", type=Path, help="a folder for the digests, one a job")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        places = [(asked.keep or Path(temporary)).resolve() / job for job in JOBS]
        peers = asked.peers_python and str(Path(asked.peers_python).absolute())
        jobs = [hold(asked.checkout, job, place, peers) for job, place in zip(JOBS, places, strict=True)]
    lines = ",\n".join(json.dumps(each) for each in jobs)
    asked.json.write_text(f'{{"command": "{COMMAND}", "jobs": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
