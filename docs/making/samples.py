"""The sample reports of committed runs and sweeps anew: `python -m docs.making.samples`, or `make samples`.

A run's report is the one that `tracekit profile` wrote when it was measured, with the page as it is now. Of most only
the markdown twin is committed: a page stays where one is. Reports of runs that are not committed stay as they are.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from tracekit import store
from tracekit.cli.main import main as tracekit
from tracekit.comparison.commands import measuring_command
from tracekit.walks.identity import identity_of_report_on
from tracekit.walks.reports import Destination, reports_of
from tracekit.walks.sides import compare_forms, write_report

ROOT = Path(__file__).parents[2]
#: The modes of one model side by side, which no single run or sweep makes.
MODES = ("h200-vit", "h200-vit-reduce-overhead", "h200-vit-max-autotune", "h200-vit-max-autotune-no-cudagraphs")
SIDE_BY_SIDE = ["compare", *(f"traces/{name}" for name in MODES), "--out", "reports/h200-vit-modes.html"]


def sample_runs() -> list[Path]:
    """The folders of the committed runs, from the repository's top: pages show them."""
    return sorted(each.relative_to(ROOT) for each in (ROOT / "traces").glob("h200-*"))


def write_sample(folder: Path, reports: Path) -> Path:
    """The report of a run folder anew, into `reports`; says where the twin lies. There is a page where one was."""
    run = store.load(folder)
    page = reports / f"{folder.name}.html"
    had_page = page.is_file()
    there = Destination(reports, folder.name, identity_of_report_on(run), force=True)
    _, twin = write_report(compare_forms(folder, run), run, measuring_command(run), there)
    if not had_page:
        page.unlink()
    return twin


def main() -> None:
    with contextlib.chdir(ROOT):
        for folder in sample_runs():
            sys.stdout.write(f"{write_sample(folder, reports_of(folder))}\n")
        shows = (["sweep", "--show", str(sweep)] for sweep in sorted(Path("sweeps").glob("h200-*")))
        for words in (SIDE_BY_SIDE, *shows):
            # The page shows the command that made it.
            sys.argv = ["tracekit", *words]
            tracekit([*words, "--force"], standalone_mode=False)


if __name__ == "__main__":
    main()
