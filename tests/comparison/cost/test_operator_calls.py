from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sequences import eager, make_activity, make_sequence, product
from tests.sides import make_analysis, make_side

from tracekit.comparison import compare
from tracekit.comparison.cost.operator_calls import Call, bytes_of_noted, find_calls, note_calls
from tracekit.comparison.matching.cells import with_as_many_steps
from tracekit.model.comparison import Side
from tracekit.model.provenance import EagerOp, EagerOps, TaggedActivity, TensorShape
from tracekit.model.sequence import Activity

SHAPE = TensorShape((4, 8), "bfloat16")


def op(name: str, bytes_: int, flops: int | None = None, *outputs: TensorShape) -> EagerOp:
    return EagerOp(name, "block", "model.py:7", outputs or (SHAPE,), bytes_, flops)


def noted(activities: list[Activity], ops: list[EagerOp], launched: list[int | None], per_step: float = 1) -> Side:
    """`launched` are the operators of the activities of one step."""
    tagged = tuple(TaggedActivity(each.name, at) for each, at in zip(activities, launched, strict=False))
    side = replace(make_side(), sequence=make_sequence(activities, per_step=per_step))
    return note_calls(replace(side, provenance=EagerOps(1, "2.11", tuple(ops), tagged)))


def calls_of(side: Side) -> tuple[Call, ...]:
    return tuple(find_calls(activities_of(side)).values())


def activities_of(side: Side) -> tuple[Activity, ...]:
    return side.sequence.activities


def test_bytes_and_operations_are_as_torch_noted_them() -> None:
    side = noted(
        [eager("cat", call=0), product(4, 8, 8, call=1)],
        [op("aten.cat.default", 384), op("aten.addmm.default", 999, 777)],
        [0, 1],
    )
    cat, addmm = calls_of(side)
    # A list of tensors: their sizes are not recorded.
    assert (cat.bytes, cat.flops) == (384, None)
    assert (addmm.bytes, addmm.flops) == (999, 777)


def test_without_provenance_or_an_operator_nothing_is_noted() -> None:
    side = replace(make_side(), sequence=make_sequence([product(4, 8, 8, call=1)]))
    assert note_calls(side) is side
    assert note_calls(make_side()).sequence is None
    (copy,) = activities_of(noted([Activity("Memcpy HtoD", "memcpy", 1, None)], [], [None]))
    assert (copy.noted, copy.operator_call) == (None, None)


def test_an_operator_that_runs_others_gives_its_operations_to_the_product_and_its_bytes_to_none() -> None:
    convolving = make_activity(
        "sm80_xmma_fprop", "convolution", "conv2d>cudnn_convolution", ((1, 3, 8, 8), (4, 3, 3, 3)), 5
    )
    adding = replace(eager("add_", (1, 4, 6, 6), (1, 4, 1, 1), call=5), operator_call=6)
    result = TensorShape((1, 4, 6, 6), "bfloat16")
    side = noted([convolving, adding], [op("aten.convolution.default", 10_000, 7776, result)], [0, 0])
    convolution, addition = calls_of(side)
    assert convolution.flops == 7776
    assert convolution.bytes == 2 * (3 * 64 + 4 * 27 + 4 * 36)
    assert (addition.flops, addition.bytes) == (None, 2 * (2 * 4 * 36 + 4))


def test_operations_of_an_operator_that_runs_two_products_are_given_to_neither() -> None:
    two = [product(4, 8, 8, call=at) for at in (1, 2)]
    first, second = calls_of(noted(two, [op("mine.qkv.default", 999, 777)], [0, 0]))
    assert (first.flops, second.flops) == (2 * 4 * 8 * 8,) * 2
    assert first.noted is second.noted is None


def test_a_comparison_counts_what_was_noted() -> None:
    cat = eager("cat", call=0)
    analysis = make_analysis({cat.name: ("pointwise", 1, cat.duration_us)}, steps=1)
    a = replace(make_side("a", analysis), sequence=make_sequence([cat]))
    asked = EagerOps(1, "2.11", (op("aten.cat.default", 384),), (TaggedActivity(cat.name, 0),))
    (group,) = compare(replace(a, provenance=asked), replace(a, label="b")).groups
    assert (group.traffic.eager_bytes, group.traffic.compiled_missing) == (384, 1)


def test_what_a_recording_without_operators_holds_of_one_operator_is_one_call() -> None:
    kernels = [Activity(name, "normalization", 1, None) for name in ("moments", "normalize", "normalize")]
    side = noted(kernels, [op("aten.native_group_norm.default", 300), op("aten.relu.default", 128)], [0, 0, 1])
    assert [call.bytes for call in calls_of(side)] == [300, 128]


def test_steps_that_follow_one_another_hold_calls_of_their_own() -> None:
    kernels = [Activity("add", "pointwise", us, None) for us in (1, 2, 3)]
    side = noted(kernels * 2, [op("aten.add.Tensor", 300 + at) for at in range(3)], [0, 1, 2], per_step=0.5)
    assert [call.bytes for call in calls_of(side)] == [300, 301, 302] * 2


def test_a_step_of_one_call_that_is_repeated_beside_others_still_counts_in_each() -> None:
    side = noted([product(4, 8, 8, call=1)], [op("aten.addmm.default", 999, 777)], [0])
    other = replace(
        make_side("b"), sequence=make_sequence([product(4, 8, 8, call=at) for at in range(2)], per_step=0.5)
    )
    one, _ = with_as_many_steps(side, other)
    assert [call.bytes for call in calls_of(one)] == [999, 999]


@pytest.mark.parametrize(
    ("noted_op", "expected"),
    [
        (op("aten.add.Tensor", 192), 192),
        # Read and written: it is among the arguments and among the results.
        (op("aten.add_.Tensor", 192), 192),
        # Overwritten: the same, but it was not read.
        (op("aten.copy_.default", 192), 128),
        (op("aten.fill_.Scalar", 128), 64),
        (op("aten.add.out", 256), 192),
        # Some rows of a tensor, as many as there are places.
        (op("aten.embedding.default", 10_000), None),
        (op("aten.index.Tensor", 10_000), None),
        (op("aten.scatter_add_.default", 10_000), None),
        # What it writes it does not return.
        (EagerOp("aten._foreach_add_.List", "", None, (), 400, None), None),
        (op("aten.mul.Tensor", 192, None, TensorShape((4,), "float4_e2m1fn_x2")), None),
        (op("aten.mul.Tensor", 192, None, TensorShape((4, None), "float32")), None),
    ],
)
def test_bytes_are_those_read_and_written(noted_op: EagerOp, expected: int | None) -> None:
    assert bytes_of_noted(noted_op) == expected
