"""What a report is a report of, as a hash: equal for the same runs, traces and sweeps, and for no others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from tracekit import store
from tracekit.walks.sides import choose_form, file_label, is_run_folder

if TYPE_CHECKING:
    from tracekit.model.run import FormName, Run
    from tracekit.model.sweep import Asked, CellResult

ReportKind = Literal["analysis", "comparison", "several", "sweep"]


@dataclass(frozen=True, slots=True)
class Named:
    """What a user named as one side, before it is read: a trace, or a form of a run, and what it will be called."""

    place: str
    label: str
    form: FormName | None
    run: Run | None
    identity: str


def name_side(place: str, form: FormName | None) -> Named:
    """Raises TracekitError for a run that has no such form."""
    if not is_run_folder(place):
        # A path is nobody else's business: the report holds a hash of it alone.
        where = place if "://" in place else str(Path(place).resolve())
        return Named(place, file_label(Path(place)), form, None, _digest(["trace", where]))
    run = store.load(Path(place))
    chosen = choose_form(run, Path(place), form).name
    return Named(place, chosen, chosen, run, identity_of_form(run, chosen))


def identity_of_report(kind: ReportKind, parts: Iterable[str]) -> str:
    return _digest([kind, *parts])


def identity_of_report_on(run: Run) -> str:
    """Of the report that a run of one form or of both has when it was made."""
    kind: ReportKind = "comparison" if len(run.forms) > 1 else "analysis"
    return identity_of_report(kind, (identity_of_form(run, form.name) for form in run.forms))


def identity_of_form(run: Run, form: FormName) -> str:
    return _digest([identity_of_run(run), form])


def identity_of_run(run: Run) -> str:
    """By what nobody measures twice: its times, and when, where and how they were measured."""
    times = [[form.name, form.warmup_us, form.wall_us] for form in run.forms]
    told = msgspec.to_builtins([run.started, run.command, run.settings, run.environment, times])
    return _digest(_told(told))


def identity_of_sweep(asked: Asked | None, results: Iterable[CellResult]) -> str:
    """By the call that began it: cells come, and are measured anew. Where nobody knows that, by its cells."""
    if asked is not None and asked.calls:
        first = asked.calls[0]
        return identity_of_report("sweep", [asked.name, first.started, first.command, str(first.seed)])
    return identity_of_report("sweep", sorted(_digest([each.cell.key, each.started]) for each in results))


def reports_of_run(run: Run) -> frozenset[str]:
    """Of the report of a run, and of those of its forms alone."""
    forms = (identity_of_report("analysis", (identity_of_form(run, form.name),)) for form in run.forms)
    return frozenset({identity_of_report_on(run), *forms})


def _told(value: object) -> object:
    """Without what is not told: a setting that is noted in later versions only changes no run of an earlier one."""
    if isinstance(value, dict):
        items = ((name, _told(each)) for name, each in value.items())
        return {name: each for name, each in items if each not in (None, {}, [], ())}
    return [_told(each) for each in value] if isinstance(value, list | tuple) else value


def _digest(value: object) -> str:
    # As ASCII: names of a system may hold bytes that are no UTF-8.
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
