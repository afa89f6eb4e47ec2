"""Runs a program under `tracekit run`, as a user would."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "data" / "programs"


def run(
    folder: Path, program: Path | str, *arguments: str, options: tuple[str, ...] = (), given: str = ""
) -> subprocess.CompletedProcess[str]:
    """In `folder`, with a small time budget; what it printed and how it ended."""
    budget = () if "--time-budget" in options else ("--time-budget", "0.2")
    words = [sys.executable, "-m", "tracekit", "run", *budget, "--out", "traces/it", *options, str(program), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        words, cwd=folder, env=environment, input=given, capture_output=True, text=True, check=False, timeout=500
    )
