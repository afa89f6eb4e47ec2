"""How fast and how lean is reading and analysing? Whole processes, side by side on one file, in one run.

    make bench
    python benchmarks/run.py --trace trace.json.gz --peers-python /path/to/python --tracelens /path/to/TraceLens

Times are medians; every round runs each program once, so that a busy machine meets all of them. Nothing here is a test:
the ratios are read by people.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.grown import grow
from tracekit.tracefile.source import opened
from tracekit.tracefile.unpack import unpacked

HERE = Path(__file__).parent
ROOT = HERE.parent
#: Measured once, on another machine, over Qwen2.5-VL eager: no ratio can be made of it here.
TRACELENS_ELSEWHERE = "Elsewhere its report took 19.8 s and 1,190 MiB for 71 MB of JSON."
SOURCE = ROOT / "tests" / "data" / "flux_eager.json.zst"


@dataclass(frozen=True)
class Measured:
    """One process: seconds by the clock, seconds of processor time, and the most memory it held."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Program:
    name: str
    command: list[str]
    rounds: int
    environment: dict[str, str]


def measure(program: Program) -> Measured:
    """Runs it once. Raises SystemExit with what it printed if it fails."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            program.command, stdout=output, stderr=output, env={**os.environ, **program.environment}
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{program.name} failed:\n{output.read().decode(errors='replace')[-3000:]}")
    return Measured(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def side_by_side(programs: list[Program], say: Callable[[str], None]) -> dict[str, Measured]:
    """The medians of each; in every round each program that still has rounds to go runs once."""
    found: dict[str, list[Measured]] = {program.name: [] for program in programs}
    for number in range(max(program.rounds for program in programs)):
        for program in programs:
            if number < program.rounds:
                say(f"round {number + 1}: {program.name}")
                found[program.name].append(measure(program))
    return {
        name: Measured(
            statistics.median(each.wall_s for each in runs),
            statistics.median(each.cpu_s for each in runs),
            max(each.peak_bytes for each in runs),
        )
        for name, runs in found.items()
    }


def tracekit(path: Path, *options: str, cache: Path, name: str = "tracekit analyze --json", rounds: int = 5) -> Program:
    command = [sys.executable, "-m", "tracekit", "analyze", str(path), "--window", "whole", "--json", "-", *options]
    environment = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}
    return Program(name, command, rounds, environment)


def peers(path: Path, python: str | None, tracelens: Path | None) -> list[Program]:
    """The peers that are there: json.load always."""
    found = [Program("json.load alone", [sys.executable, str(HERE / "peers/json_load.py"), str(path)], 5, {})]
    if python:
        found.append(Program("HTA, four analyses", [python, str(HERE / "peers/hta_four.py"), str(path)], 2, {}))
    if python and tracelens:
        script = "from TraceLens.Reporting.generate_perf_report_pytorch import main; main()"
        report = Path(tempfile.gettempdir()) / "tracelens-report.xlsx"
        command = [python, "-c", script, "--profile_json_path", str(path), "--output_xlsx_path", str(report)]
        found.append(Program("TraceLens report", command, 1, {"PYTHONPATH": str(tracelens)}))
    return found


def compare_with_peers(path: Path, size: int, asked: argparse.Namespace, console: Console, cache: Path) -> None:
    ours = tracekit(path, "--no-cache", cache=cache)
    found = side_by_side([ours, *peers(path, asked.peers_python, asked.tracelens)], console.log)
    table = Table("program", "wall", "processor", "peak memory", "memory / JSON", "wall against tracekit")
    for name, each in found.items():
        ratio = f"{each.wall_s / found[ours.name].wall_s:.1f}x"
        memory = f"{each.peak_bytes / 2**20:,.0f} MiB", f"{each.peak_bytes / size:.2f}x"
        table.add_row(name, f"{each.wall_s:.2f} s", f"{each.cpu_s:.2f} s", *memory, ratio)
    console.print(f"\n{path.name}: {size / 1e6:,.0f} MB of JSON", table)
    if not asked.tracelens:
        console.print(f"TraceLens was not given (TRACELENS=path). {TRACELENS_ELSEWHERE}")


def show_cache(path: Path, console: Console, folder: Path) -> None:
    """Reading alone, without starting Python: the first time, and from the cache."""
    script = (
        "import sys, time, threading; from pathlib import Path; from tracekit.tracefile.read import read_trace\n"
        "began = time.perf_counter(); read_trace(Path(sys.argv[1]), cache_folder=Path(sys.argv[2]))\n"
        "print(time.perf_counter() - began)\n"
        "[each.join() for each in threading.enumerate() if each.name == 'tracekit-cache']"
    )
    command = [sys.executable, "-c", script, str(path), str(folder / "reading")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    runs = [
        float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
        for _ in range(4)
    ]
    again = statistics.median(runs[1:])
    console.print(
        f"\nreading {path.name}: {runs[0]:.3f} s, from the cache {again:.4f} s, {runs[0] / again:.0f}x faster"
    )


def show_growth(megabytes: list[int], folder: Path, console: Console) -> None:
    table = Table("JSON", "packed", "wall", "processor", "per 100 MB", "peak memory", "memory / JSON")
    for each in megabytes:
        path = folder / f"{each}mb.json.gz"
        console.log(f"making a trace of {each} MB")
        size = grow(SOURCE, path, each * 10**6)
        program = tracekit(path, "--no-cache", cache=folder, name=path.name, rounds=3 if each < 1000 else 1)
        found = side_by_side([program], console.log)[path.name]
        table.add_row(
            f"{size / 1e6:,.0f} MB",
            f"{path.stat().st_size / 1e6:,.0f} MB",
            f"{found.wall_s:.2f} s",
            f"{found.cpu_s:.2f} s",
            f"{found.wall_s / size * 1e8:.2f} s",
            f"{found.peak_bytes / 2**20:,.0f} MiB",
            f"{found.peak_bytes / size:.2f}x",
        )
        path.unlink()
    console.print("\ntracekit analyze --json, growing", table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, help="compared on; a trace of 71 MB is made if not given")
    parser.add_argument("--peers-python", help="a Python that has HTA (pip install traceinsight)")
    parser.add_argument("--tracelens", type=Path, help="a checkout of TraceLens, whose packages that Python has too")
    parser.add_argument("--growth", type=int, nargs="*", default=[10, 100, 1000], metavar="MB")
    asked = parser.parse_args()
    console = Console(width=110)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = asked.trace or folder / "flux_eager-grown.json.gz"
        if asked.trace is None:
            grow(SOURCE, path, 71 * 10**6)
        with opened(path) as source, unpacked(source) as content:
            size = sum(map(len, content.pieces))
        compare_with_peers(path, size, asked, console, folder)
        show_cache(path, console, folder)
        if asked.growth:
            show_growth(asked.growth, folder, console)


if __name__ == "__main__":
    main()
