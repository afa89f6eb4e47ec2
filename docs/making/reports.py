"""The committed reports anew: `python -m docs.making.reports`, or `make reports`.

`reports/` holds the markdown twin of each committed run and sweep, and the pages of two, as the commands below write
them: the same bytes on any day and machine, so that whoever runs them leaves no change behind. Git ignores what else
lands there; the site has the pages of all (`make docs`).
"""

from __future__ import annotations

import subprocess
import sys

from tests.traces import ROOT, RUNS, SWEEP

REPORTS = ROOT / "reports"
COMMANDS = (*(("compare", str(run)) for run in RUNS), ("sweep", "--show", str(SWEEP)))


def write_reports() -> None:
    for command in COMMANDS:
        told = subprocess.run(
            [sys.executable, "-m", "tracekit", *command], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if told.returncode:
            sys.exit(f"tracekit {' '.join(command)}: {told.stderr}")


if __name__ == "__main__":
    write_reports()
