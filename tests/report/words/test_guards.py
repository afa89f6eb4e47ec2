from __future__ import annotations

from syrupy.assertion import SnapshotAssertion
from tests.model.test_compilation import CHECKS

from tracekit.model.compilation import FailedGuard
from tracekit.report.words.guards import guard_sentence


def test_a_failed_check_is_told_in_words_without_addresses(snapshot: SnapshotAssertion) -> None:
    assert {text: guard_sentence(FailedGuard("0/0", text)) for text in CHECKS} == snapshot
