"""`tracekit compare` with three or more runs: one column a form."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.model.comparisons import Comparisons
    from tracekit.walks.reading import Reading
    from tracekit.walks.reports import Destination


def compare_several(
    places: tuple[str, ...],
    reading: Reading,
    out: Path | None,
    json_path: str | None,
    *,
    force: bool,
    strict: bool,
) -> None:
    """Shows the runs side by side, writes page, markdown and JSON."""
    from tracekit.cli.output import check_output_path, command_line, console_beside, say, write_json
    from tracekit.report.composition.reports import comparisons_report
    from tracekit.report.composition.summaries import comparisons_summary
    from tracekit.report.contract import comparisons_json
    from tracekit.report.markdown import markdown_of
    from tracekit.report.page import page_of
    from tracekit.report.terminal import shown
    from tracekit.walks.reports import write_pages
    from tracekit.walks.sides import raise_if_damaged

    check_output_path("--json", json_path, *places)
    there = _destination(places, out, json_path, force=force)
    told = load_comparisons(places, reading)
    report = comparisons_report(told, command_line())
    written = write_pages(page_of(report), markdown_of(report), there)
    console = console_beside(json_path)
    commands = [shlex.join(("tracekit", "compare", place)) for place in _best(told)]
    console.print(shown(comparisons_summary(told, commands)))
    for path in written:
        say(console, f"written: {path}")
    write_json(comparisons_json(told), json_path)
    raise_if_damaged(*told.sides, strict=strict)


def _destination(places: tuple[str, ...], out: Path | None, json_path: str | None, *, force: bool) -> Destination:
    """Raises TracekitError, before any recording is read, for what is no pair, where the JSON would replace the page or
    its twin, and where they would replace anything but a report of the same runs."""
    from tracekit import store
    from tracekit.cli.output import check_apart
    from tracekit.walks.identity import identity_of_report, identity_of_run
    from tracekit.walks.reports import Destination, place_of_report

    _refuse_what_is_no_pair(places)
    first = Path(places[0]).resolve().name
    identity = identity_of_report("several", [identity_of_run(store.load(Path(place))) for place in places])
    there = Destination(*place_of_report(out, f"{first}-and-{len(places) - 1}-more"), identity, force)
    check_apart({"--json": json_path, "the page": there.page, "its twin": there.twin})
    there.check(*places)
    return there


def load_comparisons(places: tuple[str, ...], reading: Reading) -> Comparisons:
    """Each run's eager form with its compiled one, side by side. Raises TracekitError for what holds no two forms, for
    a run that is named twice, and for runs that are not of the same work."""
    from tracekit import store
    from tracekit.comparison import compare
    from tracekit.comparison.judging.alternatives import (
        find_differences,
        labelled,
        name_ways,
        set_beside,
        with_verified,
    )
    from tracekit.walks.folder_names import short_names
    from tracekit.walks.same_work import refuse_side_by_side
    from tracekit.walks.sides import load_side

    _refuse_what_is_no_pair(places)
    runs = [store.load(Path(place)) for place in places]
    pairs = [[load_side(place, form=form, reading=reading) for form in ("eager", "compiled")] for place in places]
    eager = [pair[0] for pair in pairs]
    refuse_side_by_side(eager, places)
    names = name_ways([run.settings for run in runs], short_names(places))
    differences = find_differences(eager, names)
    comparisons = []
    for (one, other), run, name in zip(pairs, runs, names, strict=True):
        sides = labelled(one, other, name, alike=not differences)
        comparisons.append(with_verified(compare(*sides, run.order), run.verified))
    return set_beside(comparisons, places, differences)


def _refuse_what_is_no_pair(places: tuple[str, ...]) -> None:
    from tracekit import store
    from tracekit.comparison.judging.alternatives import MOST_RUNS
    from tracekit.errors import TracekitError
    from tracekit.walks.sides import interrupted_run, is_run_folder

    if len(places) > MOST_RUNS:
        raise TracekitError(f"{len(places)} runs are too many to stand side by side: name {MOST_RUNS} at most")
    folders = [Path(place).resolve() for place in places]
    for place, folder in zip(places, folders, strict=True):
        if folders.count(folder) > 1:
            raise TracekitError(f"{place} is named twice: name every run once")
        if interrupted_run(place):
            raise TracekitError(f"{place} was interrupted and is not whole: compare it by itself, or record it again")
        if not is_run_folder(place) or {form.name for form in store.load(folder).forms} != {"eager", "compiled"}:
            raise TracekitError(
                f"{place} is no run with both forms: three or more are compared by run folders of "
                "`tracekit profile ... --compiled`; traces are compared two at a time"
            )


def _best(told: Comparisons) -> list[str]:
    """The run to look at next: the fastest one's, else the first."""
    return [told.paths[told.leader or 0]]
