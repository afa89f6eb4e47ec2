from __future__ import annotations

import sys

import pytest

from tracekit.capture import visible_kernels
from tracekit.capture.visible_kernels import SEEN, UNSEEN, checked_meanwhile
from tracekit.errors import TracekitError


def answering(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(visible_kernels, "_command", lambda: [sys.executable, "-c", code])


def test_kernels_that_no_profiler_sees_end_the_run_when_the_block_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, f"raise SystemExit({UNSEEN})")
    built = []
    with pytest.raises(TracekitError, match="tracekit doctor"), checked_meanwhile("cuda"):
        built.append("model")
    assert built == ["model"]


@pytest.mark.parametrize("code", [f"raise SystemExit({SEEN})", "raise RuntimeError('this GPU is taken')"])
def test_kernels_that_are_seen_and_a_process_without_an_answer_let_the_run_go_on(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    answering(monkeypatch, code)
    with checked_meanwhile("cuda"):
        pass


def test_a_process_that_hangs_is_ended_and_what_fails_meanwhile_is_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "import time; time.sleep(600)")
    with pytest.raises(MemoryError), checked_meanwhile("cuda"):
        raise MemoryError
    monkeypatch.setattr(visible_kernels, "PATIENCE_SECONDS", 0.1)
    with checked_meanwhile("cuda"):
        pass


def test_a_cpu_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_kernels, "_command", lambda: ["/nowhere"])
    with checked_meanwhile("cpu"):
        pass
