"""What `tracekit ranks` tells of jobs beside what HTA and TraceLens do, as a table.

    python benchmarks/ranks_beside.py FOLDER... --peers-python /path/to/python --tracelens /path/to/TraceLens

A Python with HTA is what `make .venv-peers/.made` makes; TraceLens is a checkout. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
HEAD = (
    "job",
    "rank",
    "waiting ms",
    "TraceLens",
    "last",
    "TraceLens",
    "overlapped",
    "HTA",
    "late rank",
    "HTA's stragglers",
)


def ours(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tracekit", "ranks", str(folder), "-q", "--no-cache", "--json", "-"]
    made = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True
    )
    told: dict[str, Any] = json.loads(made.stdout)
    return told


def of_peer(python: str, folder: Path, peer: str) -> dict[str, Any]:
    """What the peer tells; nothing where it fails."""
    command = [python, str(HERE / "peers/ranks_told.py"), str(folder), peer]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(made.stdout.splitlines()[-1]) if made.returncode == 0 else {}
    return told


def rows(folder: Path, python: str | None, tracelens: str | None) -> list[tuple[str, ...]]:
    told = ours(folder)
    hta = of_peer(python, folder, "hta") if python else {}
    lens = of_peer(python, folder, tracelens) if python and tracelens else {}
    late = [str(each["rank"]) for each in told["findings"] if each["code"] == "late_rank"]
    found = []
    for each in told["ranks"]:
        rank, busy = str(each["rank"]), each["communication_us"]
        waited, theirs = each["waiting_us"], lens.get("waiting", {}).get(rank)
        last, overlap = lens.get("last", {}).get(rank), hta.get("overlap", {}).get(rank)
        found.append(
            (
                folder.name,
                rank,
                "-" if waited is None else f"{waited / 1e3:.3f}",
                "-" if theirs is None else f"{theirs / 1e3:.3f}",
                str(each["last_arrivals"]),
                "-" if last is None else f"{last:.0f}",
                f"{100 * (1 - each['exposed_us'] / busy):.1f} %" if busy else "-",
                "-" if overlap is None else f"{overlap:.1f} %",
                ", ".join(late) or "none",
                ", ".join(map(str, hta["stragglers"])) if "stragglers" in hta else "-",
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--peers-python", help="a Python that has HTA (pip install traceinsight)")
    parser.add_argument("--tracelens", help="a checkout of TraceLens")
    asked = parser.parse_args()
    table = [HEAD]
    for folder in asked.folders:
        table += rows(folder, asked.peers_python, asked.tracelens)
    for row in (table[0], ("---",) * len(HEAD), *table[1:]):
        print("| " + " | ".join(row) + " |")  # noqa: T201


if __name__ == "__main__":
    main()
