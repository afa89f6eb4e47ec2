"""Whoever takes a sweep's folder for one of traces is told what shows it."""

from pathlib import Path

import pytest
from tests.cli.runs import assert_refused, invoke
from tests.traces import recording

VIT = str(recording("vit_eager"))


@pytest.mark.parametrize("places", [("swept",), ("swept", VIT), (VIT, "swept")])
def test_a_sweep_is_not_compared(places: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "swept" / "cells").mkdir(parents=True)
    (tmp_path / "swept" / "sweep.json").write_text("{}")
    assert_refused(invoke("compare", *places), "tracekit sweep --show swept")
    assert not (tmp_path / "reports").exists()
