from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.runs import make_run_folder
from tests.sides import make_form, make_run, make_settings
from tests.sweeps import compiled_cell, make_asked, make_result

from tracekit import store
from tracekit.walks.identity import identity_of_report, identity_of_run, identity_of_sweep, name_side, reports_of_run

RUN = make_run(forms=(make_form("eager"), make_form("compiled")))


@pytest.mark.parametrize(
    "other",
    [
        replace(RUN, started="2026-01-02T03:04:06+00:00"),
        replace(RUN, command="tracekit profile vit --compiled"),
        replace(RUN, settings=make_settings(batch_size=7)),
        replace(RUN, settings=make_settings(variables={"TRITON_X": "1"})),
        replace(RUN, environment=replace(RUN.environment, gpu="another")),
        replace(RUN, environment=replace(RUN.environment, cpu_threads=3)),
        replace(RUN, forms=(RUN.forms[0], make_form("compiled", (1.0, 2.0, 3.0)))),
    ],
)
def test_a_run_differs_by_all_that_makes_it_one(other: object) -> None:
    assert identity_of_run(other) != identity_of_run(RUN)  # type: ignore[arg-type]


def test_what_is_found_out_of_a_run_later_makes_it_no_other() -> None:
    told = replace(RUN, notes=("a note",), failure=None, repeated_parts=("x.*",), tracekit="9.9")
    assert identity_of_run(told) == identity_of_run(RUN)


def test_a_setting_that_is_not_told_makes_a_run_no_other() -> None:
    """As one that a later version notes, of a run of this one."""
    import json

    from tracekit.walks.identity import _told

    settings = {"mode": "default", "seed": 0, "later": None, "words": {}, "list": [], "deep": {"x": None, "y": False}}
    assert _told(settings) == {"mode": "default", "seed": 0, "deep": {"y": False}}
    assert json.dumps(_told([settings, None, 0])) == '[{"mode": "default", "seed": 0, "deep": {"y": false}}, null, 0]'


def test_a_run_is_the_same_when_it_is_read_again_and_wherever_it_lies(tmp_path: Path) -> None:
    one = make_run_folder(tmp_path, "one")
    two = one.rename(tmp_path / "two")
    before = identity_of_run(store.load(two))
    store.save(store.load(two), two)
    assert identity_of_run(store.load(two)) == before


def test_a_trace_is_where_it_lies_and_its_path_is_told_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert name_side("a.json", None).identity == name_side(str(tmp_path / "here" / ".." / "a.json"), None).identity
    assert name_side("a.json", None).identity != name_side("here/a.json", None).identity
    assert name_side("https://x/a.json", None).identity == name_side("https://x/a.json", None).identity
    assert set(name_side("a.json", None).identity) <= set("0123456789abcdef")


def test_a_report_is_of_its_kind_of_its_parts_and_of_their_order() -> None:
    told = {
        identity_of_report("analysis", ("a",)),
        identity_of_report("comparison", ("a",)),
        identity_of_report("comparison", ("a", "b")),
        identity_of_report("comparison", ("b", "a")),
        identity_of_report("several", ("a", "b")),
    }
    assert len(told) == 5
    assert len(reports_of_run(RUN)) == 3


def test_a_sweep_stays_one_while_its_cells_come_and_are_measured_anew() -> None:
    asked, first = make_asked([compiled_cell()]), make_result(compiled_cell())
    (call,) = asked.calls
    again = replace(first, started="2027-01-02T03:04:05+00:00")
    later = replace(asked, calls=(call, replace(call, started="2027-01-01T00:00:00+00:00")))
    assert (
        len({identity_of_sweep(asked, ()), identity_of_sweep(asked, [first]), identity_of_sweep(later, [again])}) == 1
    )
    other = replace(asked, calls=(replace(call, started="2026-01-02T03:04:06+00:00"),))
    assert identity_of_sweep(other, ()) != identity_of_sweep(asked, ())
    # Nobody knows what began it: then it is its cells.
    assert identity_of_sweep(None, [first]) != identity_of_sweep(None, [again])
