from __future__ import annotations

import pytest

from tracekit.doctor.compile_switches import SWITCHES, check_compile_switches


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)


def test_nothing_set_is_ok() -> None:
    assert check_compile_switches().status == "ok"


def test_zero_is_not_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "0")
    assert check_compile_switches().status == "ok"


@pytest.mark.parametrize("name", SWITCHES)
def test_a_compiler_turned_off_is_a_problem(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    found = check_compile_switches()
    assert (found.status, found.fix) == ("problem", f"unset {name}")
