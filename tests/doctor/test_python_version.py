from __future__ import annotations

import sys

import pytest

from tracekit.doctor.python_version import check_python_version


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10, 9), "problem"), ((3, 11, 0), "ok"), ((3, 13, 2), "ok"), ((3, 99, 0), "warning")]
)
def test_old_pythons_are_refused_and_untried_ones_named(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], status: str
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    assert check_python_version().status == status
