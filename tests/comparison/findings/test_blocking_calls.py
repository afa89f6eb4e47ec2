from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from tests.sides import COMPILED, make_analysis, make_form, make_side, scaled

from tracekit.comparison import compare
from tracekit.comparison.waiting import with_waiting_lines
from tracekit.model.advice import Action
from tracekit.model.analysis import IdleGap, IdleSummary, Place, SyncTime
from tracekit.model.comparison import Finding, Side
from tracekit.model.provenance import EagerOp, EagerOps, TaggedActivity
from tracekit.report.sections.idle import sync_table

SCALAR, COPYING = (Place(name, None, None) for name in ("aten::_local_scalar_dense", "aten::copy_"))
ITEM = SyncTime("cudaStreamSynchronize", count=6, idle_after_us=240.0, place=SCALAR, drained=4)
END = SyncTime("cudaDeviceSynchronize", count=2, idle_after_us=0.0, place=None, drained=0)


def with_syncs(side: Side, *syncs: SyncTime) -> Side:
    idle = side.analysis.idle
    assert isinstance(idle, IdleSummary)
    gap = IdleGap(0, 12.5, 60.0, {"sync_wait": 60.0}, None, "gemm", sync="cudaStreamSynchronize")
    return replace(side, analysis=replace(side.analysis, idle=replace(idle, syncs=syncs, largest=(gap,))))


def sides(*syncs: SyncTime) -> tuple[Side, Side]:
    a = make_side("eager", make_analysis(), make_form("eager", scaled(1.5)))
    return a, with_syncs(make_side("compiled", make_analysis(), make_form("compiled", scaled(1.3))), *syncs)


def found(a: Side, b: Side) -> Finding | None:
    return next((each for each in compare(a, b).findings if each.code == "synchronising_calls"), None)


def test_a_wait_in_the_middle_of_a_call_is_found_with_what_it_costs():
    finding = found(*sides(ITEM, END))
    # 240 us behind four waits in two steps.
    assert finding.saving_us == pytest.approx(120)
    assert (finding.facts["times"], finding.facts["idle_us"]) == (2, pytest.approx(120))
    assert finding.facts["idle_us"] / finding.facts["call_us"] == pytest.approx(0.09, abs=0.005)
    assert finding.facts["made_by"] == [made_at(SCALAR)]
    assert [(place.start_us, place.duration_us) for place in finding.places] == [(12.5, 60.0)]


def made_at(place: Place, lines: dict[str, int] | None = None) -> dict[str, object]:
    return {"place": asdict(place), "lines": lines or {}, "in_eager_code": lines is not None}


def test_the_line_is_named_where_the_eager_call_was_asked():
    a, b = sides(ITEM)
    op = EagerOp("aten._local_scalar_dense.default", "head", "model.py:12", (), 2, None)
    other = EagerOp("aten.add.Tensor", "head", "model.py:13", (), 2, None)
    finding = found(replace(a, provenance=EagerOps(1, "2.13.0", (op, other, op))), b)
    assert finding.facts["made_by"] == [{"operator": "aten::_local_scalar_dense", "called_at": "model.py:12"}]


@pytest.mark.parametrize("sync", [END, replace(ITEM, idle_after_us=50.0), replace(ITEM, call="cudaMemcpyAsync")])
def test_the_wait_at_the_end_of_a_call_a_short_one_or_that_of_a_copy_is_not_told(sync: SyncTime):
    assert found(*sides(sync)) is None


def test_lines_are_those_of_the_copies_that_eager_operators_launched():
    # Operators alone do not say which copies wait: what they launched does.
    ops = tuple(
        EagerOp(name, "head", line, (), 2, None)
        for name, line in (
            ("aten._to_copy.default", "model.py:12"),
            ("aten._to_copy.default", "model.py:13"),
            ("aten.index.Tensor", "model.py:14"),
            ("aten._to_copy.default", "model.py:15"),
        )
    )
    names = (
        "DtoH (Device -> Pageable)",
        "HtoD (Pinned -> Device)",
        "DtoH (Device -> Pinned)",
        "DtoD (Device -> Device)",
    )
    activities = tuple(TaggedActivity(f"Memcpy {name}", op) for op, name in enumerate(names))
    a, b = sides(replace(ITEM, place=COPYING), END)
    eager = EagerOps(1, "2.13.0", ops, (*activities, activities[2]))
    compared = compare(replace(a, provenance=eager), b)
    finding = next(each for each in compared.findings if each.code == "synchronising_calls")
    assert finding.facts["made_by"] == [made_at(COPYING, {"model.py:14": 2, "model.py:12": 1})]
    table = sync_table(compared.b, "B")
    assert [row[-1] for row in table.rows] == [
        "aten::copy_, in eager code at model.py:14 (2), model.py:12",
        "the end of a recorded step, where tracekit waits",
    ]


def test_a_call_that_copies_by_itself_is_at_the_lines_of_pageable_copies():
    ops = tuple(EagerOp("aten._to_copy.default", "", f"model.py:{n}", (), 2, None) for n in range(6))
    told = tuple(TaggedActivity("Memcpy HtoD (Pageable -> Device)", n) for n in range(5))
    eager = EagerOps(1, "2.13.0", ops, (*told, TaggedActivity("Memcpy DtoH (Device -> Pinned)", 5)))
    a, b = sides(SyncTime("cudaMemcpyAsync", 6, 240.0, None, 4))
    one, other = with_waiting_lines(replace(a, provenance=eager), b)
    assert one.analysis.idle is not None and other.analysis.idle is not None
    (sync,) = other.analysis.idle.syncs
    assert sync.lines == {f"model.py:{n}": 1 for n in range(5)}
    assert sync.in_eager_code
    assert with_waiting_lines(a, b) == (a, b)


COPY = SyncTime("cudaMemcpyAsync", count=2, idle_after_us=200.0, place=COPYING, drained=2)
PINNED = {"Memcpy HtoD (Pinned -> Device)": ("memcpy", 2, 6.0)}
NO_COPIES = {name: each for name, each in COMPILED.items() if each[0] != "memcpy"}


def pageable(b: Side) -> Finding | None:
    a = make_side("eager", make_analysis(), make_form("eager", scaled(1.5)))
    return next((each for each in compare(a, b).findings if each.code == "pageable_copies"), None)


def compiled(kernels=COMPILED) -> Side:
    return make_side("compiled", make_analysis(kernels), make_form("compiled", scaled(1.3)))


def test_copies_that_hold_the_host_are_found_with_what_they_cost():
    finding = pageable(with_syncs(compiled(), COPY))
    assert finding.saving_us == pytest.approx(100)
    assert (finding.facts["copies"], finding.facts["copy_us"]) == (1, 3.0)
    assert finding.facts["made_by"] == [made_at(COPYING)]
    assert finding.action == Action("pin_memory")


def test_copies_that_hold_nobody_up_or_are_pinned_or_waits_that_are_no_copies_are_not_told():
    assert pageable(with_syncs(compiled(), replace(COPY, drained=0, idle_after_us=0.0))) is None
    assert pageable(with_syncs(compiled(), replace(COPY, idle_after_us=20.0))) is None
    assert pageable(with_syncs(compiled({**NO_COPIES, **PINNED}), COPY)) is None
    assert pageable(with_syncs(compiled(), replace(COPY, call="cudaStreamSynchronize"))) is None


def test_values_that_are_read_back_are_not_mended_by_pinning():
    back = {**NO_COPIES, "Memcpy DtoH (Device -> Pageable)": ("memcpy", 2, 6.0)}
    assert pageable(with_syncs(compiled(back), COPY)).action == Action("keep_on_gpu")
    assert pageable(with_syncs(compiled({**COMPILED, **back}), COPY)).action == Action("pin_memory")
