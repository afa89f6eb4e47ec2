"""Where a report lies, and that it replaces nothing but an older report of the same."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.files import write_replaced
from tracekit.report.marks import REACH, find_mark, marked_page, marked_twin


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a report goes: the page `NAME.html` and its markdown twin `NAME.md` in a folder.

    `identity` is what it is a report of, None where that is not known yet; `replaces` are reports of something else
    that it takes the place of, `force` is whether it takes that of anything. `ways` is how whoever asked for it does.
    """

    folder: Path
    name: str
    identity: str | None
    force: bool = False
    replaces: Collection[str] = ()
    ways: store.Ways = store.ON_THE_COMMAND_LINE

    @property
    def page(self) -> Path:
        return self.folder / f"{self.name}.html"

    @property
    def twin(self) -> Path:
        return self.folder / f"{self.name}.md"

    def check(self, *inputs: str | None) -> None:
        """Raises TracekitError where anything would be replaced but a report of the same, and for an input even where
        that is forced."""
        read = [Path(each).resolve() for each in inputs if each]
        for path in (self.page, self.twin):
            if not path.is_symlink() and path.resolve() in read:
                raise TracekitError(f"{path} would overwrite what is read; pass {self.ways.out}")
            # A link that leads nowhere is something too.
            if self.force or not os.path.lexists(path):
                continue
            mark = _mark_of(path)
            if mark is None or mark not in (self.identity, *self.replaces):
                what = "not marked as a report of tracekit" if mark is None else "the report of something else"
                raise TracekitError(
                    f"{path} is already there and is {what}; pass {self.ways.force} to replace it, or {self.ways.out}"
                )


def _mark_of(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        begin = file.read(REACH)
        file.seek(max(0, path.stat().st_size - REACH))
        return find_mark(begin, file.read(REACH))


def place_of_report(asked: Path | None, name: str) -> tuple[Path, str]:
    """The folder and the name of a report: `x.html` names it, any other place is its folder; `reports` where none was
    asked for. `name` is what it is called then."""
    if asked is not None and asked.suffix in (".html", ".md"):
        return asked.parent, asked.stem
    return asked or Path("reports"), name.replace(" ", "-")


def write_pages(page: str, twin: str, there: Destination) -> tuple[Path, Path]:
    """Writes the page and its twin, marked as what they are reports of, and says where. Raises TracekitError, before
    either is written, for what `check` refuses."""
    if there.identity is None:
        raise AssertionError("what is written is a report of something")
    there.check()
    texts = (there.page, marked_page(page, there.identity)), (there.twin, marked_twin(twin, there.identity))
    for path, text in texts:
        try:
            write_replaced(path, text.encode())
        except OSError as error:
            raise TracekitError(f"cannot write {path}: {error.strerror}; name another place") from error
    return there.page, there.twin


def reports_of(folder: Path) -> Path:
    """`reports` beside the folder `traces` that holds the run, or beside the run itself: runs of one name in different
    places do not replace each other's."""
    return (folder.parent.parent if folder.parent.name == "traces" else folder.parent) / "reports"


def refuse_report_there(folder: Path, *, force: bool) -> None:
    """Raises TracekitError where a run that is to be made would replace a report: its own folder is not there yet, so
    that is another run's."""
    if not folder.exists():
        Destination(reports_of(folder), folder.name, None, force).check()
