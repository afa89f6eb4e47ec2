"""Why a form is said to be bound by what it is: read the snapshot when it changes."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from tracekit.model.comparison import Bound, BoundIfSlowed, UnknownLimit
from tracekit.report.words.bounds import PARTS, UNKNOWN_BECAUSE, bound_because

NONE = dict.fromkeys((*PARTS, "unknown"), 0.0)


def bound(kind: str | None = "mixed", basis: str = "unprofiled", starved: float | None = None, **parts: float) -> Bound:
    return Bound(kind, basis, {**NONE, **parts}, starved)  # type: ignore[arg-type]


def test_every_reason_reads_well(text_file: object) -> None:
    by_part = [bound(**{part: 70.0}, launch=100.0) for part in PARTS if part != "launch"]
    unknown = [replace(bound(launch=90.0, unknown=10.0), unknown_because=why) for why in get_args(UnknownLimit)]
    alone = bound("launch-bound", "trace", 0.98, launch=95.0, compute=5.0)
    slowed = [BoundIfSlowed(2.0, "launch-bound", kind) for kind in ("launch-bound", "compute-bound", None)]
    traces = [replace(alone, if_slowed=each) for each in slowed]
    every = (bound(), bound("launch-bound", starved=0.98, launch=95.0, compute=5.0), *by_part, *unknown, *traces)
    assert "".join(f"{bound_because(each)}\n" for each in every) == text_file


def test_work_of_unknown_limit_is_worth_a_word_from_two_percent_on() -> None:
    known = bound(launch=60.0, compute=38.5, unknown=1.5)
    assert UNKNOWN_BECAUSE["no_sizes"] not in bound_because(replace(known, unknown_because="no_sizes"))
    told = bound(launch=60.0, compute=37.0, unknown=3.0)
    assert UNKNOWN_BECAUSE["no_sizes"] in bound_because(replace(told, unknown_because="no_sizes"))
