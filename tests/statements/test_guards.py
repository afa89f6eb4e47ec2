from syrupy.assertion import SnapshotAssertion
from tests.model.test_model import CHECKS

from tracekit.model.compilation import FailedGuard
from tracekit.statements.guards import check_sentence


def test_a_failed_check_is_told_in_words_without_addresses(snapshot: SnapshotAssertion) -> None:
    assert {text: check_sentence(FailedGuard("0/0", text).facts) for text in CHECKS} == snapshot
