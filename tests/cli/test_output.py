from __future__ import annotations

import pytest

from tracekit.cli.output import command_line, measuring_command_line


def test_the_command_of_a_measurement_holds_what_steered_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_VEC_ISA_OK", raising=False)
    monkeypatch.setenv("TORCHINDUCTOR_GRAPH_PARTITION", "0")
    monkeypatch.setattr("sys.argv", ["tracekit", "profile", "beit", "--prompt", "a cat"])
    assert command_line() == "tracekit profile beit --prompt 'a cat'"
    assert measuring_command_line() == f"TORCHINDUCTOR_GRAPH_PARTITION=0 {command_line()}"
