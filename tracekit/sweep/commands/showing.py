"""What `tracekit sweep` shows and writes of a folder's cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit.cli.output import console_beside, write_json
from tracekit.cli.publishing import destination, publish
from tracekit.errors import TracekitError
from tracekit.measure.engines import LOCAL
from tracekit.measure.progress import console_of_its_own, shown
from tracekit.reading.reports import digest, identity_of_report
from tracekit.report.contract import json_text
from tracekit.shell import joined, retyped, split, split_variables, with_variables
from tracekit.sweep.cells import Asked, CellResult
from tracekit.sweep.figures import Sweep
from tracekit.sweep.reading.works import read_sweep
from tracekit.sweep.report.sections import sweep_overview, sweep_report
from tracekit.sweep.report.words import spread_notes
from tracekit.sweep.running.folder import SweepFolder, changed_sources, find_doubts, is_outdated, is_sweep
from tracekit.sweep.suites import find_suite

if TYPE_CHECKING:
    from tracekit.report.thirty_lines import Detail


def show_sweep(
    path: Path,
    calls: int,
    json_path: str | None,
    detail: Detail = "brief",
    out: Path | None = None,
    suite: str | None = None,
    *,
    force: bool = False,
) -> None:
    """Shows and writes what the folder holds; `suite` is the one it is of where it does not say itself. Raises
    TracekitError for a folder that is no sweep's, or is empty, and for what `destination` refuses."""
    console = console_beside(json_path)
    folder, asked, results = _read(path)
    identity = identity_of_sweep(asked, results)
    there = destination(f"sweep-{folder.name}", identity, out or reports_of_sweep(path), json_path, force=force)
    with shown(console_of_its_own()) as progress:
        progress.phase(f"analyzing the cells of {path}")
        found = _figures(folder, asked, results, calls, suite)
    command = "\n".join(_commands(folder, asked, results, found))
    publish(sweep_report(found, command), there, console, detail, overview=sweep_overview(found))
    write_json(json_text(found), json_path)


def reports_of_sweep(path: Path) -> Path:
    """`reports` beside the folder `sweeps` that holds the sweep, or the sweep's own folder: sweeps of one name in
    different places do not replace each other's."""
    return path.parent.parent / "reports" if path.parent.name == "sweeps" else path


def identity_of_sweep(asked: Asked | None, results: Iterable[CellResult]) -> str:
    """By the call that began it: cells come, and are measured anew. Where nobody knows that, by its cells."""
    if asked is not None and asked.calls:
        first = asked.calls[0]
        return identity_of_report("sweep", [asked.name, first.started, first.command, str(first.seed)])
    return identity_of_report("sweep", sorted(digest([each.cell.key, each.started]) for each in results))


def load_sweep(path: Path, calls: int) -> Sweep:
    """What the folder's cells say, and with which doubts; errors as of `show_sweep`."""
    return _figures(*_read(path), calls, None)


def _read(path: Path) -> tuple[SweepFolder, Asked | None, tuple[CellResult, ...]]:
    """The folder, what was asked of it and the cells that it holds, one at least."""
    if not is_sweep(path):
        raise TracekitError(f"{path} is not a sweep folder: pass one that `tracekit sweep` wrote")
    folder = SweepFolder(path)
    results, asked = folder.load_all(), folder.asked()
    if not results:
        what = "readable cells" if folder.unreadable else "cells yet"
        how = f"run {resume_command(folder)}"
        if asked is None:
            how = "copy cells into it, or run the sweep's command"
        raise TracekitError(f"{path} holds no {what}: {how}")
    return folder, asked, results


def _figures(
    folder: SweepFolder, asked: Asked | None, results: tuple[CellResult, ...], calls: int, suite: str | None
) -> Sweep:
    name = (asked.suite if asked else None) or suite
    found = read_sweep(folder.name, asked, results, find_suite(name) if name else None, calls, folder.load_again())
    doubts = find_doubts(folder, asked, results)
    return replace(found, notes=(*doubts, *spread_notes(found), *found.notes))


def resume_command(folder: SweepFolder, *more: str) -> str:
    """What goes on with a sweep, with the variables that it was last asked for with."""
    asked = folder.asked()
    last = asked.calls[-1] if asked and asked.calls else None
    variables, _ = split_variables(last.command) if last else ({}, [])
    engine = ("--engine", last.engine) if last and last.engine != LOCAL else ()
    return with_variables(joined(["tracekit", "sweep", "--resume", str(folder.path), *engine, *more]), variables)


def show_command(path: Path) -> str:
    return joined(["tracekit", "sweep", "--show", str(path)])


def _commands(folder: SweepFolder, asked: Asked | None, results: tuple[CellResult, ...], found: Sweep) -> Iterator[str]:
    """What the sweep was asked by, the commands that only went on with it left out, and what goes on, tries failed
    cells again or shows it."""
    left = found.missing + found.processes_missing
    confirmed = (best.confirmed for work in found.works for best in work.best)
    commands = dict.fromkeys(retyped(call.command) for call in asked.calls) if asked else {}
    if first := [command for command in commands if command and "--resume" not in split(command)]:
        yield "# measure"
        yield from first
    unconfirmed = any(best.to_confirm and not best.confirmed for work in found.works for best in work.best)
    since = asked.anew_since if asked else {}
    due = any(is_outdated(each, since.get(each.cell.key)) or changed_sources(each) for each in results)
    if asked and (left or unconfirmed or due):
        yield "# run missing cells"
        yield resume_command(folder)
    if asked and (any(each.failure for each in results) or any(each and each.failure for each in confirmed)):
        yield "# retry failed cells"
        yield resume_command(folder, "--retry-failed")
    yield "# report existing cells"
    yield show_command(folder.path)
