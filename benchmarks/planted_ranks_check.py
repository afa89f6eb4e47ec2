"""What `tracekit ranks` says of the jobs of `planted_ranks.py`, held against what was planted; a JSON of it all.

    python benchmarks/planted_ranks_check.py OUT [--json PATH] [--without-traces]

Each set's waiting is also computed from its traces by plain Python: the k-th communication kernel of a name is one
collective over ranks, a rank waits from its kernel's start to the last rank's start. Nothing here is a test.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
#: What names each plant: a cause of lateness, or a finding about the rank.
NAMED = {
    "gpu": ({"compute"}, {"uneven_work"}),
    "host": ({"python"}, {"held_up"}),
    "item": ({"sync_wait", "compute", "launch_call"}, {"uneven_work", "more_launches", "lone_sync"}),
    "loader": ({"python"}, {"held_up"}),
    "batch": ({"compute"}, {"uneven_work", "slow_gpu"}),
    "work": ({"compute"}, {"uneven_work", "more_launches", "slow_gpu"}),
    "recompile": ({"compile", "python", "guards"}, {"recompiled"}),
}


def told(folder: Path) -> dict[str, Any]:
    command = (sys.executable, "-P", "-m", "tracekit", "ranks", str(folder), "--collectives", "all", "--json", "-")
    paths = os.pathsep.join([str(ROOT), *sys.path])
    made = subprocess.run(
        [*command, "-q", "--no-cache"], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    if made.returncode:
        return {"error": made.stderr.strip()[-300:]}
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def waiting_by_hand(folder: Path) -> dict[int, float] | None:
    """Microseconds by rank; None where ranks recorded unequally many kernels."""
    ranks: dict[int, dict[str, list[tuple[float, float]]]] = {}
    for path in sorted(folder.glob("rank*.json.gz")):
        kernels = defaultdict(list)
        events = json.loads(gzip.decompress(path.read_bytes()))
        base = events.get("baseTimeNanoseconds", 0) / 1e3
        for each in events["traceEvents"]:
            if each.get("cat") == "kernel" and "nccl" in each["name"]:
                kernels[each["name"]].append((base + each["ts"], each["dur"]))
        ranks[int(path.name[4:].partition(".")[0])] = {name: sorted(some) for name, some in kernels.items()}
    if len({tuple(sorted((name, len(some)) for name, some in each.items())) for each in ranks.values()}) != 1:
        return None
    waited = dict.fromkeys(ranks, 0.0)
    for name, some in next(iter(ranks.values())).items():
        for k in range(len(some)):
            last = max(each[name][k][0] for each in ranks.values())
            for rank, each in ranks.items():
                start, lasted = each[name][k]
                waited[rank] += min(max(last - start, 0.0), lasted)
    return waited


def first_lags(said: dict[str, Any], late: int) -> list[float]:
    """By how many microseconds the rank was behind the first of the others at the first collective of each step."""
    first: dict[int, dict[str, Any]] = {}
    for each in sorted(said["collectives"], key=lambda each: each["number"]):
        first.setdefault(each["step"] if each["step"] is not None else -1, each)
    lags = []
    for each in first.values():
        starts = {part["rank"]: part["start_us"] for part in each["parts"]}
        if late in starts and None not in starts.values():
            lags.append(starts[late] - min(us for rank, us in starts.items() if rank != late))
    return lags


def judged(folder: Path, traces: bool) -> dict[str, Any]:
    said = told(folder)
    if "error" in said:
        return {"set": folder.name, **said}
    plant = folder.name.split("-", 2)[2]
    kind = plant.removeprefix("two_").partition("_")[0]
    found: dict[str, Any] = {
        "set": folder.name,
        "findings": [(each["code"], each["rank"]) for each in said["findings"] if each["rank"] is not None],
        "late": {each["rank"]: (each["waited_for_us"], each["behind_us"]) for each in said["late"]},
        "unmatched": sum(each["count"] for each in said["unmatched"]),
        "waiting_us": {each["rank"]: each["waiting_us"] for each in said["ranks"]},
        "span_us": max(each["span_us"] for each in said["ranks"]),
        "lags_us": first_lags(said, 1),
        "causes": {each["rank"]: [(it["cause"], it["us"]) for it in each["causes"][:4]] for each in said["late"]},
        "where": {each["rank"]: each["where"] for each in said["late"]},
    }
    if traces and (by_hand := waiting_by_hand(folder)) is not None:
        found["off_by_hand_us"] = max(abs(by_hand[rank] - (us or 0.0)) for rank, us in found["waiting_us"].items())
    if folder.name.startswith("bandwidth"):
        found["transfer_us"] = {
            name: [each["transfer_us"] / len(each["parts"]) for each in said["collectives"] if each["name"] == name]
            for name in {each["name"] for each in said["collectives"]}
        }
    elif kind != "clean":
        causes, codes = NAMED[kind]
        planted = (1, 2) if plant.startswith("two_") else (1,)
        found["named"] = all(
            any(rank == one and code in codes for code, rank in found["findings"])
            or (one in found["causes"] and bool(found["causes"][one]) and found["causes"][one][0][0] in causes)
            for one in planted
        )
        found["most_waited_for"] = next(iter(found["late"]), None) in planted
    found["wrongly_late"] = [
        rank
        for code, rank in found["findings"]
        if code == "late_rank" and (kind == "clean" or rank not in ((1, 2) if plant.startswith("two_") else (1,)))
    ]
    return found


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    planted = [each for each in found if "named" in each]
    cleans = [each for each in found if "-clean_" in each["set"] and "error" not in each]
    by_hand = [each["off_by_hand_us"] for each in found if "off_by_hand_us" in each]
    usual = defaultdict(list)
    for each in cleans:
        usual[each["set"].rpartition("-")[0]] += each["lags_us"]
    delays = []
    for each in planted:
        job, _, plant = each["set"].rpartition("-")
        kind, _, us = plant.partition("_")
        if kind in ("gpu", "host") and each["lags_us"] and usual[job]:
            got = median(each["lags_us"]) - median(usual[job])
            delays.append({"set": each["set"], "planted_us": int(us), "behind_us": got, "usual_us": sorted(usual[job])})
    return {
        "sets": len(found),
        "errors": [each["set"] for each in found if "error" in each],
        "waiting_by_hand": {"sets": len(by_hand), "most_off_us": max(by_hand, default=None)},
        "cause_named": [sum(each["named"] for each in planted), len(planted)],
        "not_named": [each["set"] for each in planted if not each["named"]],
        "most_waited_for": [sum(each["most_waited_for"] for each in planted), len(planted)],
        "clean_without_late_rank": [sum(not each["wrongly_late"] for each in cleans), len(cleans)],
        "wrongly_late": [each["set"] for each in found if each.get("wrongly_late")],
        "delays": delays,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--without-traces", action="store_true", help="do not sum the waiting by hand")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    folders = sorted(path for path in asked.out.iterdir() if path.is_dir())
    with ThreadPoolExecutor(asked.workers) as pool:
        found = list(pool.map(lambda each: judged(each, not asked.without_traces), folders))
    whole = {"summary": summary(found), "sets": found}
    if asked.json:
        asked.json.write_text(json.dumps(whole))
    sys.stdout.write(f"{json.dumps(whole['summary'], indent=1)}\n")


if __name__ == "__main__":
    main()
