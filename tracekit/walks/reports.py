"""Where the report of a run lies, and that it replaces no other run's."""

from __future__ import annotations

from pathlib import Path

from tracekit.errors import TracekitError
from tracekit.files import write_replaced
from tracekit.model.run import Run


def place_of_report(asked: Path | None, name: str) -> tuple[Path, str]:
    """The folder and the name of a report: `x.html` names it, any other place is its folder; `reports` where none was
    asked for. `name` is what it is called then."""
    if asked is not None and asked.suffix in (".html", ".md"):
        return asked.parent, asked.stem
    return asked or Path("reports"), name.replace(" ", "-")


def write_pages(page: str, twin: str, folder: Path, name: str) -> tuple[Path, Path]:
    """Writes `NAME.html` and its markdown twin `NAME.md` into `folder`, and says where."""
    places = folder / f"{name}.html", folder / f"{name}.md"
    for place, text in zip(places, (page, twin), strict=True):
        try:
            write_replaced(place, text.encode())
        except OSError as error:
            raise TracekitError(f"cannot write {place}: {error.strerror}; name another place") from error
    return places


def reports_of(folder: Path) -> Path:
    """`reports` beside the folder `traces` that holds the run, or beside the run itself: runs of one name in different
    places do not replace each other's."""
    return (folder.parent.parent if folder.parent.name == "traces" else folder.parent) / "reports"


def refuse_report_there(folder: Path, *, force: bool) -> None:
    """Raises TracekitError where a run that is to be made would replace a report: its own folder is not there yet, so
    that is another run's."""
    page = reports_of(folder) / f"{folder.name}.html"
    if page.exists() and not folder.exists() and not force:
        raise TracekitError(
            f"{page} is there already, of another run; pass --force to replace it, or --out for another name"
        )


def refuse_other_report(run: Run, folder: Path, name: str) -> None:
    """Raises TracekitError where the report that would be written replaces that of another run."""
    from tracekit.report.page import is_of_run

    page = folder / f"{name}.html"
    if page.is_file() and not is_of_run(page.read_text(encoding="utf-8", errors="replace"), run):
        raise TracekitError(f"{page} is the report of another run; pass --out for another place")
