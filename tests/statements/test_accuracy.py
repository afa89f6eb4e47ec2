from collections.abc import Sequence

from syrupy.assertion import SnapshotAssertion

from tracekit.model.note import Noted
from tracekit.model.numerics import AccuracyReason
from tracekit.statements import accuracy
from tracekit.statements.noted import ModulesNotNamed, ShapesDiffer
from tracekit.statements.rank_differences import RankOutputs
from tracekit.wire import decode, encode

ERRORS = ".b", 0.035, 0.01, "float32", 0.034
SHARES = "", 0.4, 1.0, "float32"
EVERY: Sequence[AccuracyReason] = (
    accuracy.Equal(),
    accuracy.SameWithoutFiniteNumbers(""),
    accuracy.NoTensors(),
    accuracy.NotComparable("", ShapesDiffer((1,), (2,))),
    accuracy.NotHeldAgainstReference("", "eager"),
    accuracy.Error(*ERRORS, compiled_from_itself=1.4),
    accuracy.LargestError(*ERRORS),
    accuracy.RoundingAmplified(*ERRORS),
    accuracy.NoNumbers("", "eager"),
    accuracy.NoFiniteNumbers("", "eager"),
    accuracy.Zeros(".b", "float32", compiled=0.035, eager=0.01),
    accuracy.NotFinite("", 3000, reference=None),
    accuracy.Integers(*SHARES),
    accuracy.IntegersDiverge(*SHARES),
    accuracy.IntegersBesideEager("", 0.4),
    accuracy.Difference("", compiled=0.07, allowed=0.06, no_reference=ModulesNotNamed()),
    accuracy.RandomNumbers("", difference=0.95, another_seed=0.97),
)


def test_every_answer_on_accuracy_reads_well(snapshot: SnapshotAssertion) -> None:
    assert {each.code for each in EVERY} == AccuracyReason.classes.keys()
    assert [each.long() for each in EVERY] == snapshot


def test_a_line_has_the_figures_alone(snapshot: SnapshotAssertion) -> None:
    assert {each.code: each.short() for each in EVERY} == snapshot


def test_a_run_keeps_the_reason_of_a_rank_whatever_it_is() -> None:
    for reason in EVERY:
        kept = RankOutputs("undecided", "tolerance", reason)
        assert decode(encode(kept), Noted) == kept
