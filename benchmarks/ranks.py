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
from pathlib import Path
from statistics import median

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


def measure(command: list[str], environment: dict[str, str]) -> tuple[float, int]:
    """Seconds, and bytes of all of its processes at their worst moment."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, sum(map(_resident, _family(process.pid))))
            time.sleep(0.02)

    watching = threading.Thread(target=watch)
    watching.start()
    code = process.wait()
    seconds = time.perf_counter() - began
    watching.join()
    if code:
        raise SystemExit(f"{' '.join(command)} failed with {code}")
    return seconds, peak


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
    together: list[tuple[float, int]] = []
    one_by_one: list[tuple[float, int]] = []
    hta: list[tuple[float, int]] = []
    for _ in range(rounds):
        together.append(measure([*start, "ranks", str(folder), *options], ours))
        each = [measure([*start, "analyze", str(path), *options], ours) for path in sorted(folder.glob("*.json*"))]
        one_by_one.append((sum(seconds for seconds, _ in each), max(peak for _, peak in each)))
        if peers_python:
            hta.append(measure([peers_python, str(HERE / "peers/hta_ranks.py"), str(folder)], {}))
    for name, some in (("tracekit ranks", together), ("tracekit analyze, one by one", one_by_one), ("HTA", hta)):
        if some:
            seconds, peak = median(each for each, _ in some), max(each for _, each in some)
            print(f"{name:<30} {seconds:6.2f} s {peak / 2**20:6,.0f} MiB")  # noqa: T201
    cores = os.cpu_count() or 1
    share = median(all_[0] * cores / each[0] for all_, each in zip(together, one_by_one, strict=True))
    print(f"ranks / (analyze / {cores} cores) = {share:.2f}")  # noqa: T201


if __name__ == "__main__":
    main()
