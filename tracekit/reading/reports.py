"""Where a report lies, what it is a report of, and that it replaces nothing but an older one of the same.

What it is of is a hash: equal for the same runs and traces, and for no others.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.files import why_unwritable, write_replaced
from tracekit.model.single_run import SingleRun
from tracekit.report.marks import REACH, find_mark, marked_page, marked_twin

if TYPE_CHECKING:
    from tracekit.model.comparison import Comparison
    from tracekit.model.run import FormName, Run
    from tracekit.report.document import Report


class Destination(Struct, frozen=True):
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
        if why := why_unwritable(self.page):
            raise TracekitError(f"cannot write {self.page}: {why}; pass {self.ways.out}")
        read = [Path(each).resolve() for each in inputs if each]
        for path in (self.page, self.twin):
            if not path.is_symlink() and path.resolve() in read:
                raise TracekitError(f"{path} would overwrite an input; pass {self.ways.out}")
            # A link that leads nowhere is something too.
            if self.force or not os.path.lexists(path):
                continue
            mark = None
            if path.is_file():
                with path.open("rb") as file:
                    begin = file.read(REACH)
                    file.seek(max(0, path.stat().st_size - REACH))
                    mark = find_mark(begin, file.read(REACH))
            if mark is None or mark not in (self.identity, *self.replaces):
                what = "not a report of tracekit" if mark is None else "the report of something else"
                raise TracekitError(
                    f"{path} already exists and is {what}; pass {self.ways.force} to replace it, or {self.ways.out}"
                )


def place_of_report(asked: Path | None, name: str, otherwise: Path = Path("reports")) -> tuple[Path, str]:
    """The folder and the name of a report: `x.html` names it, any other place is its folder; `otherwise` where none was
    asked for. `name` is what it is called then."""
    if asked is not None and asked.suffix in (".html", ".md"):
        return asked.parent, asked.stem
    return asked or otherwise, name


def place_of_run_report(folder: Path, asked: Path | None) -> tuple[Path, str]:
    """The same of the report of the run in `folder`."""
    return place_of_report(asked, folder.name, reports_of(folder))


def reports_of(folder: Path) -> Path:
    """`reports` beside the folder `traces` that holds the run, or beside the run itself: runs of one name in different
    places do not replace each other's."""
    return (folder.parent.parent if folder.parent.name == "traces" else folder.parent) / "reports"


def command_to_repeat(folder: Path, run: Run) -> str:
    """Measures the run again into a folder beside its own that is not there yet; empty where none is known."""
    from tracekit.comparison.commands import repeating_command

    names = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return repeating_command(run, str(next(each for each in names if not each.exists())))


def report_of_run(folder: Path, run: Run, made: Comparison | SingleRun, command: str | None = None) -> Report:
    """The report of a run: of both variants compared, or of one by itself. `command` makes it anew: the measuring one
    if not given."""
    from tracekit.comparison.commands import measuring_command
    from tracekit.report.composition.reports import comparison_report, side_report

    command = measuring_command(run) if command is None else command
    if isinstance(made, SingleRun):
        return side_report(made, run, command)
    return comparison_report(made, run, command, command_to_repeat(folder, run))


def refuse_report_there(folder: Path, page: Path | None = None, *, force: bool) -> None:
    """Raises TracekitError where a run that is to be made would replace a report: its own folder is not there yet, so
    that is another run's."""
    if not folder.exists():
        Destination(*place_of_run_report(folder, page), None, force).check()


def write_report(report: Report, there: Destination) -> tuple[Path, Path]:
    """Writes the page and its markdown twin, marked as what they are reports of, and says where. Raises TracekitError,
    before either is written, for what `check` refuses."""
    from tracekit.report.markdown import markdown_of
    from tracekit.report.page import page_of

    if there.identity is None:
        raise AssertionError("what is written is a report of something")
    there.check()
    page, twin = marked_page(page_of(report), there.identity), marked_twin(markdown_of(report), there.identity)
    for path, text in ((there.page, page), (there.twin, twin)):
        try:
            write_replaced(path, text.encode())
        except OSError as error:
            raise TracekitError(f"cannot write {path}: {error.strerror}; pass another path") from error
    return there.page, there.twin


def identity_of_report(kind: str, parts: Iterable[str]) -> str:
    """`kind` is what it is of: `analysis`, `comparison`, `several`, `ranks`, or what a wing has."""
    return digest([kind, *parts])


def identity_of_report_on(run: Run) -> str:
    """Of the report that a run of one form or of both has when it was made."""
    kind = "comparison" if len(run.forms) > 1 else "analysis"
    return identity_of_report(kind, (identity_of_form(run, form.name) for form in run.forms))


def reports_of_run(run: Run) -> frozenset[str]:
    """Of the report of a run, and of those of its forms alone."""
    forms = (identity_of_report("analysis", (identity_of_form(run, form.name),)) for form in run.forms)
    return frozenset({identity_of_report_on(run), *forms})


def identity_of_form(run: Run, form: FormName) -> str:
    return digest([identity_of_run(run), form])


def identity_of_run(run: Run) -> str:
    """By what nobody measures twice: its times, and when, where and how they were measured."""
    times = [[form.name, form.warmup_us, form.wall_us] for form in run.forms]
    measured = msgspec.to_builtins([run.started, run.command, run.settings, run.environment, times])
    return digest(_without_empty(measured))


def _without_empty(value: object) -> object:
    """Without what says nothing: a setting that is noted in later versions only changes no run of an earlier one."""
    if isinstance(value, dict):
        items = ((name, _without_empty(each)) for name, each in value.items())
        return {name: each for name, each in items if each not in (None, {}, [], ())}
    return [_without_empty(each) for each in value] if isinstance(value, list | tuple) else value


def digest(value: object) -> str:
    """The hash of what makes a report the same one."""
    # As ASCII: names of a system may hold bytes that are no UTF-8.
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
