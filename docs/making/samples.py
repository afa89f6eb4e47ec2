"""The committed reports anew: `python -m docs.making.samples`, or `make samples`.

`samples/` holds the markdown twin of each committed run and sweep, as the command that measured it wrote it, with the
page as it is now. No command of tracekit writes there: `tracekit compare traces/h100-vit` writes `reports/`, which git
ignores. The pages themselves, a megabyte each, are made with the site (`make docs`).
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

from tests.traces import ROOT, RUNS, SWEEP

from tracekit import store
from tracekit.model.comparison import Comparison
from tracekit.reading.reports import Destination, identity_of_report_on, report_of_run, write_report
from tracekit.reading.sides import compare_forms

SAMPLES = ROOT / "samples"


def write_sample(folder: Path, reports: Path, comparison: Comparison | None = None) -> tuple[Path, Path]:
    """The page and the twin of a run folder, into `reports`; its forms are compared unless they were."""
    run = store.load(folder)
    comparison = comparison or compare_forms(folder, run)
    there = Destination(reports, folder.name, identity_of_report_on(run), force=True)
    return write_report(report_of_run(folder, run, comparison), there)


def write_samples(folder: Path) -> list[Path]:
    """The pages of all committed runs and of the sweep, each with its twin beside it."""
    from tracekit.sweep.commands.showing import show_sweep

    quietly = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(quietly), contextlib.redirect_stderr(quietly):
        pages = [write_sample(run, folder)[0] for run in RUNS]
        show_sweep(SWEEP, 1000, None, out=folder, force=True)
    return [*pages, folder / f"sweep-{SWEEP.name}.html"]


def main() -> None:
    for page in write_samples(SAMPLES):
        page.unlink()
    sys.stdout.writelines(f"{twin.relative_to(ROOT)}\n" for twin in sorted(SAMPLES.glob("*.md")))


if __name__ == "__main__":
    main()
