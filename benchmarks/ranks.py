"""How fast and how lean is `tracekit ranks`? Whole processes, side by side on the same recordings, in one run.

    python benchmarks/ranks.py tests/data/ranks/tp_reduce-overhead.rank*.json.gz --ranks 8 --megabytes 50
    python benchmarks/ranks.py FOLDER --peers-python /path/to/python

Recordings are grown from those that are named: each rank's events again and again, as much later on all ranks, ranks
beyond theirs being copies of them; a folder is taken as it is. `tracekit ranks` stands against `tracekit analyze` of
one recording after the other by the number of cores, and against HTA where a Python that has it is named. Memory is
the sum of what all processes hold at their worst moment.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.grown import grow_text, period_of, read_text

HERE = Path(__file__).parent
ROOT = HERE.parent


def grow_ranks(sources: list[Path], folder: Path, ranks: int, size: int) -> list[Path]:
    """Writes `ranks` recordings of at least `size` bytes of JSON each, of one job on one clock."""
    texts = [read_text(source) for source in sources]
    period = max(map(period_of, texts))
    every = ", ".join(map(str, range(ranks))).encode()
    made = []
    for rank in range(ranks):
        text = texts[rank % len(texts)]
        text = re.sub(rb'"rank": \d+, "world_size": \d+', b'"rank": %d, "world_size": %d' % (rank, ranks), text)
        text = re.sub(rb'"pg_size": \d+, "ranks": \[[^]]*\]', b'"pg_size": %d, "ranks": [%s]' % (ranks, every), text)
        text = re.sub(rb'"Group size": \d+', b'"Group size": %d' % ranks, text)
        text = re.sub(rb'("Process Group Ranks": "\[)[^]]*', rb"\g<1>%s" % every, text)
        made.append(folder / f"rank{rank}.json.gz")
        grow_text(text, made[-1], size, period)
    return made


@dataclass(frozen=True)
class Measured:
    """Seconds by the clock, of processor time, and bytes of all of its processes at their worst moment."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def measure(command: list[str], environment: dict[str, str]) -> Measured:
    """Runs it once. Raises SystemExit if it fails."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    peak, over = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.02):
            peak = max(peak, sum(map(_resident, _family(process.pid))))

    watching = threading.Thread(target=watch)
    watching.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    over.set()
    watching.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    return Measured(wall_s, usage.ru_utime + usage.ru_stime, peak)


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(each for child in children for each in _family(int(child)))]


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, nargs="+", help="a folder of recordings, or recordings to grow")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=50, help="of JSON, each rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers-python", help="a Python that has HTA (pip install traceinsight)")
    parser.add_argument("--keep", type=Path, help="a folder for the recordings that are grown")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.sources[0]
        if not folder.is_dir():
            folder = asked.keep or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            grow_ranks(asked.sources, folder, asked.ranks, asked.megabytes * 10**6)
        compare(folder, asked.rounds, asked.peers_python)


def compare(folder: Path, rounds: int, peers_python: str | None) -> None:
    start = [sys.executable, "-m", "tracekit"]
    options, ours = ("--window", "whole", "--no-cache"), {"PYTHONPATH": str(ROOT)}
    found: dict[str, list[Measured]] = {}
    for _ in range(rounds):
        found.setdefault("tracekit ranks", []).append(measure([*start, "ranks", str(folder), *options], ours))
        each = [measure([*start, "analyze", str(path), *options], ours) for path in sorted(folder.glob("*.json*"))]
        total = Measured(sum(it.wall_s for it in each), sum(it.cpu_s for it in each), max(it.peak_bytes for it in each))
        found.setdefault("tracekit analyze, one by one", []).append(total)
        if peers_python:
            command = [peers_python, str(HERE / "peers/hta_ranks.py"), str(folder)]
            found.setdefault("HTA", []).append(measure(command, {}))
    table = Table("program", "wall", "processor", "peak memory of all processes", "wall against tracekit ranks")
    first = median(it.wall_s for it in found["tracekit ranks"])
    for name, some in found.items():
        wall_s, cpu_s = median(it.wall_s for it in some), median(it.cpu_s for it in some)
        memory = f"{max(it.peak_bytes for it in some) / 2**20:,.0f} MiB"
        table.add_row(name, f"{wall_s:.2f} s", f"{cpu_s:.2f} s", memory, f"{wall_s / first:.1f}x")
    cores, pairs = os.cpu_count() or 1, zip(*list(found.values())[:2], strict=True)
    share = median(it.wall_s * cores / other.wall_s for it, other in pairs)
    Console(width=110).print(table, f"ranks / (analyze / {cores} cores) = {share:.2f}")


if __name__ == "__main__":
    main()
