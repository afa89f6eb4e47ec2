from typing import get_args

from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from tracekit.model.comparison import Bound, BoundIfSlowed, UnknownLimit
from tracekit.statements.bounds import IDLE, UNKNOWN_BECAUSE, WORK, bound_because

NONE = dict.fromkeys((*IDLE, *WORK), 0.0)


def bound(kind: str | None = "mixed", basis: str = "unprofiled", starved: float | None = None, **parts: float) -> Bound:
    return Bound(kind, basis, {**NONE, **parts}, starved)  # type: ignore[arg-type]


def test_every_bound_reads_well(snapshot: SnapshotAssertion) -> None:
    by_part = [bound(**{part: 70.0}, launch=100.0) for part in NONE if part not in ("launch", "unknown")]
    unknown = [replace(bound(launch=90.0, unknown=10.0), unknown_because=why) for why in get_args(UnknownLimit)]
    alone = bound("launch-bound", "trace", 0.98, launch=95.0, compute=5.0)
    slowed = [BoundIfSlowed(2.0, "launch-bound", kind) for kind in ("launch-bound", "compute-bound", None)]
    traces = [replace(alone, if_slowed=each) for each in slowed]
    every = (bound(), bound("launch-bound", starved=0.98, launch=95.0, compute=5.0), *by_part, *unknown, *traces)
    assert "".join(f"{bound_because(each)}\n" for each in every) == snapshot


def test_every_part_has_few_words_too(snapshot: SnapshotAssertion) -> None:
    assert set(UNKNOWN_BECAUSE) == set(get_args(UnknownLimit))
    assert {code: told.short for table in (IDLE, WORK, UNKNOWN_BECAUSE) for code, told in table.items()} == snapshot


def test_work_of_unknown_limit_is_worth_a_word_from_two_percent_on() -> None:
    no_sizes = UNKNOWN_BECAUSE["no_sizes"].long
    known = bound(launch=60.0, compute=38.5, unknown=1.5)
    assert no_sizes not in bound_because(replace(known, unknown_because="no_sizes"))
    told = bound(launch=60.0, compute=37.0, unknown=3.0)
    assert no_sizes in bound_because(replace(told, unknown_because="no_sizes"))
