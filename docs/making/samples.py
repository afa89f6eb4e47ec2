"""The committed reports anew: `python -m docs.making.samples`, or `make samples`.

`samples/` holds the markdown twin of each committed run and sweep, as the command that measured it wrote it, with the
page as it is now. No command of tracekit writes there: `tracekit compare traces/h200-vit` writes `reports/`, which git
ignores.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from tests.committed import RUNS, SWEEP

from tracekit import store
from tracekit.cli.sweep_report import show_sweep
from tracekit.comparison.commands import measuring_command
from tracekit.report.composition.reports import comparison_report
from tracekit.walks.reports import Destination, identity_of_report_on, write_report
from tracekit.walks.sides import compare_forms

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"


def write_sample(folder: Path, reports: Path) -> tuple[Path, Path]:
    """The page and the twin of a run folder, into `reports`."""
    run = store.load(folder)
    there = Destination(reports, folder.name, identity_of_report_on(run), force=True)
    return write_report(comparison_report(compare_forms(folder, run), run, measuring_command(run)), there)


def main() -> None:
    with contextlib.chdir(ROOT):
        pages = [write_sample(folder, SAMPLES)[0] for folder in RUNS]
        show_sweep(SWEEP, 1000, None, SAMPLES, force=True)
    # A page takes a megabyte, and its command makes it in seconds.
    for page in (*pages, *SAMPLES.glob("sweep-*.html")):
        page.unlink()
    sys.stdout.writelines(f"{twin.relative_to(ROOT)}\n" for twin in sorted(SAMPLES.glob("*.md")))


if __name__ == "__main__":
    main()
