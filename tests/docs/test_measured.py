"""README's table of findings is what the runs say."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.making.measured import MARKS, Row, line, read_kept, read_row, shortened, table

from .texts import ROOT


def test_the_table_in_readme_is_made_of_what_was_kept() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.partition(MARKS[0])[2].partition(MARKS[1])[0] == table(read_kept())


@pytest.mark.parametrize("name", ["h200-vit", "h200-vit-reduce-overhead", "h200-causal-lm"])
def test_what_was_kept_is_what_a_committed_run_says(name: str) -> None:
    found = read_row(ROOT / "traces" / name)
    assert found in read_kept()


def test_a_run_that_established_no_difference_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.comparison.comparing.find_reason", lambda *_: None)
    with pytest.raises(SystemExit, match="which is no finding"):
        read_row(ROOT / "traces" / "h200-vit")


def test_a_command_is_told_without_what_every_row_has() -> None:
    command = "tracekit profile flux --compiled --mode reduce-overhead --out traces/x --time-budget 20 --no-provenance"
    assert shortened(command) == "flux --mode reduce-overhead"


def test_calls_are_rounded_up_and_may_never_pay() -> None:
    row = Row("vit", "NVIDIA H200", "2.11", 2000.0, 1000.0, 2.0, (1.9, 2.1), 12.3, 1000.2, "the GPU waits 1.00 ms less")
    assert "| 12 s | 1,001 calls | the GPU waits 1.00 ms less |" in line(row)
    assert "| never |" in line(Row("vit", "", "", 1.0, 2.0, 0.5, (0.4, 0.6), 1.0, None, ""))
