from __future__ import annotations

from dataclasses import replace

import pytest

from tracekit.comparison import compare
from tracekit.model.advice import Action
from tracekit.model.analysis import SyncTime
from tracekit.model.comparison import Finding, Side

from ...sides import COMPILED, make_analysis, make_form, make_side, scaled
from .test_synchronising_calls import with_syncs

COPY = SyncTime("cudaMemcpyAsync", count=2, idle_after_us=200.0, where="aten::copy_", drained=2)
PINNED = {"Memcpy HtoD (Pinned -> Device)": ("memcpy", 2, 6.0)}
NO_COPIES = {name: each for name, each in COMPILED.items() if each[0] != "memcpy"}


def found(b: Side) -> Finding | None:
    a = make_side("eager", make_analysis(), make_form("eager", scaled(1.5)))
    return next((each for each in compare(a, b).findings if each.code == "pageable_copies"), None)


def compiled(kernels=COMPILED) -> Side:
    return make_side("compiled", make_analysis(kernels), make_form("compiled", scaled(1.3)))


def test_copies_that_hold_the_host_are_found_with_what_they_cost():
    finding = found(with_syncs(compiled(), COPY))
    assert finding is not None
    assert finding.saving_us == pytest.approx(100)
    assert (finding.facts["copies"], finding.facts["copy_us"]) == (1, 3.0)
    assert finding.facts["made_by"] == ["aten::copy_"]
    assert finding.action == Action("pin_memory")


def test_copies_that_hold_nobody_up_are_not_told():
    assert found(with_syncs(compiled(), replace(COPY, drained=0, idle_after_us=0.0))) is None
    assert found(with_syncs(compiled(), replace(COPY, idle_after_us=20.0))) is None


def test_pinned_copies_are_not_told():
    assert found(with_syncs(compiled({**NO_COPIES, **PINNED}), COPY)) is None


def test_waits_that_are_no_copies_are_told_by_another_finding():
    assert found(with_syncs(compiled(), replace(COPY, call="cudaStreamSynchronize"))) is None


def test_values_that_are_read_back_are_not_mended_by_pinning():
    back = {**NO_COPIES, "Memcpy DtoH (Device -> Pageable)": ("memcpy", 2, 6.0)}
    finding = found(with_syncs(compiled(back), COPY))
    assert finding is not None and finding.action == Action("keep_on_gpu")
    both = found(with_syncs(compiled({**COMPILED, **back}), COPY))
    assert both is not None and both.action == Action("pin_memory")
