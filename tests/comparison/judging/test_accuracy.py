from typing import Any

import pytest
from msgspec.structs import replace
from tests.sides import ORDER, command_of, make_pair, make_settings, scaled

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.accuracy import judge_accuracy
from tracekit.model.comparison import Side
from tracekit.model.numerics import Accuracy, FormNumerics, Other, OutputDifference, TensorDifference
from tracekit.statements import accuracy as reasons
from tracekit.statements.noted import ReferenceDoesNotFit, ShapesDiffer

DOES_NOT_FIT = ReferenceDoesNotFit(dtype="float32", needs_bytes=90.0, free_bytes=40)
SHAPES_DIFFER = ShapesDiffer(shape=(1,), other_shape=(2,))


def tensor(relative: float | None = 0.0, **changes: Any) -> TensorDifference:
    errors = {"max_abs": relative, "mean_abs": relative, "relative": relative, "cosine": 1.0}
    numbers = {**errors, "other_max": 1.0, "equal_share": 0.5, "elements": 5000, **changes}
    return TensorDifference(**{"path": "", "dtype": "bfloat16", "shape": (1, 5000), **numbers})


SAME = tensor(0.0, equal_share=1.0)


def beside(other: Other, *tensors: TensorDifference) -> OutputDifference:
    return OutputDifference(other, tensors)


def numerics(reference=None, eager=None, itself: TensorDifference = SAME, dtype: str = "bfloat16") -> FormNumerics:
    return FormNumerics(
        dtype=dtype,
        against_itself=beside("itself", itself),
        against_eager=beside("eager", eager) if eager else None,
        against_reference=beside("reference", reference) if reference else None,
        reference_dtype="float32" if reference else None,
        reference_missing=None if reference else DOES_NOT_FIT,
    )


def sides(one: FormNumerics | None, other: FormNumerics | None) -> tuple[Side, Side]:
    a, b = make_pair(scaled(1.5), scaled(1.0))
    return replace(a, form=replace(a.form, numerics=one)), replace(b, form=replace(b.form, numerics=other))


def judged(one: FormNumerics | None, other: FormNumerics | None) -> Accuracy:
    return judge_accuracy(*sides(one, other))


APART = tensor(0.02)


def by_reference(one: TensorDifference, other: TensorDifference, eager=APART, **more: Any) -> Accuracy:
    return judged(numerics(one), numerics(other, eager, **more))


def test_an_error_up_to_three_times_eager_s_is_rounding_in_half_precision():
    assert judged(numerics(tensor(0.01)), numerics(tensor(0.01), SAME)).result == "equal"
    assert by_reference(tensor(0.01), tensor(0.033)).result == "as_accurate"
    found = by_reference(tensor(0.01), tensor(0.035))
    allowed = pytest.approx(0.0339, abs=1e-4)
    reason = reasons.Error("", compiled=0.035, eager=0.01, reference="float32", allowed=allowed)
    assert (found.result, found.basis, found.reason) == ("less_accurate", "reference", reason)


def test_full_precision_is_held_to_twice_and_small_tensors_to_three_times():
    def result(relative: float, **changes: Any) -> str:
        one, other = tensor(1e-5, dtype="float32", **changes), tensor(relative, dtype="float32", **changes)
        pair = numerics(one, dtype="float32"), numerics(other, tensor(1e-5), dtype="float32")
        return judged(*pair).result

    assert (result(1.9e-5), result(2.2e-5)) == ("as_accurate", "less_accurate")
    assert (result(2.9e-5, elements=999), result(3.2e-5, elements=999)) == ("as_accurate", "less_accurate")


def test_half_a_step_and_what_eager_differs_by_from_itself_is_allowed():
    assert by_reference(tensor(0.0), tensor(2**-8)).result == "as_accurate"
    assert by_reference(tensor(0.0), tensor(2**-8 * 1.1)).result == "less_accurate"
    assert by_reference(tensor(0.01), tensor(0.1)).result == "less_accurate"
    pair = numerics(tensor(0.01), itself=tensor(0.1)), numerics(tensor(0.1), tensor(0.02))
    assert judged(*pair).result == "as_accurate"


def test_what_compiled_differs_by_from_itself_excuses_nothing():
    """Code that returns noise differs from itself by as much as from the truth."""
    found = by_reference(tensor(0.01), tensor(1.4), itself=tensor(1.4))
    assert found.result == "undecided"
    assert found.reason.compiled_from_itself == 1.4
    assert by_reference(tensor(0.01), tensor(1.6), itself=tensor(1.4)).result == "less_accurate"
    for size in (1.0, 10.0):
        one, other = (tensor(0.01, max_abs=error * size, other_max=size) for error in (0.005, 0.5))
        assert by_reference(one, other, itself=tensor(0.5)).result == "undecided"
    bare = judged(numerics(), numerics(eager=tensor(1.4), itself=tensor(1.4)))
    assert (bare.result, bare.basis) == ("undecided", "tolerance")
    assert judged(numerics(itself=tensor(1.4)), numerics(eager=tensor(1.4))).result == "as_accurate"


def test_a_reference_of_zeros_is_held_against_by_the_largest_error():
    for eager, right, wrong in ((0.0, 0.0, 0.3), (0.1, 0.29, 0.31)):
        for error, result in ((right, "as_accurate"), (wrong, "less_accurate")):
            assert by_reference(tensor(None, max_abs=eager), tensor(None, max_abs=error)).result == result
    for error, result in ((0.3, "less_accurate"), (0.0, "as_accurate")):
        assert judged(numerics(), numerics(eager=tensor(None, max_abs=error))).result == result


def test_outputs_without_a_finite_number_prove_nothing():
    lost = tensor(None, equal_share=1.0)
    found = judged(numerics(lost), numerics(lost, lost))
    assert (found.result, found.reason.code) == ("undecided", "same_without_finite_numbers")
    differing = tensor(None, equal_share=0.5)
    assert judged(numerics(differing), numerics(differing, differing)).result == "undecided"
    assert judged(numerics(), numerics(eager=differing)).result == "undecided"
    empty = tensor(None, equal_share=None, elements=0, shape=(0,))
    assert judged(numerics(empty), numerics(empty, empty)).result == "as_accurate"
    # Another tensor that is wrong is not hidden by it.
    wrong = tensor(0.9, path="[1]")
    one = replace(numerics(lost), against_reference=beside("reference", lost, tensor(0.01, path="[1]")))
    both = {f"against_{other}": beside(other, lost, wrong) for other in ("eager", "reference")}
    assert judged(one, replace(numerics(lost, lost), **both)).result == "less_accurate"


def test_one_number_far_off_is_found_although_the_rest_is_right():
    found = by_reference(tensor(0.01, max_abs=0.05), tensor(0.011, max_abs=0.6))
    assert (found.result, found.reason.code, found.reason.compiled) == ("less_accurate", "largest_error", 0.6)
    assert by_reference(tensor(0.01, max_abs=0.05), tensor(0.011, max_abs=0.4)).result == "as_accurate"


def test_a_model_that_amplifies_rounding_is_undecided_but_zeros_never_pass_and_numbers_that_became_nan_are_found():
    found = by_reference(tensor(0.8), tensor(0.7))
    assert (found.result, found.reason.code) == ("undecided", "rounding_amplified")
    assert by_reference(tensor(0.31), tensor(0.1)).result == "undecided"
    for eager in (0.0, 0.01, 0.29, 0.3):
        assert by_reference(tensor(eager), tensor(1.0)).result == "less_accurate"
    assert by_reference(tensor(0.01), tensor(0.01, nonfinite=3)).result == "less_accurate"
    assert by_reference(tensor(0.01, nonfinite=3), tensor(0.01, nonfinite=3)).result == "as_accurate"


def test_a_missing_tensor_is_found_and_the_worst_tensor_decides():
    found = by_reference(tensor(0.01), tensor(None, mismatch=SHAPES_DIFFER))
    assert (found.result, found.reason.code) == ("less_accurate", "not_comparable")

    one, other = (
        replace(found, against_reference=beside("reference", tensor(0.01), tensor(error, path=".b")))
        for found, error in ((numerics(tensor(0.01)), 0.01), (numerics(tensor(0.01), tensor(0.02)), 0.9))
    )
    found = judged(one, other)
    assert (found.result, found.reason.path, found.reason.compiled) == ("less_accurate", ".b", 0.9)


@pytest.mark.parametrize(
    ("dtype", "tolerated"), [("bfloat16", 2**-4), ("float16", 2**-7), ("float32", 2**-14), ("float64", 2**-43)]
)
def test_without_a_reference_forms_may_be_apart_by_what_the_dtype_tolerates(dtype: str, tolerated: float):
    def result(relative: float) -> Accuracy:
        return judged(numerics(dtype=dtype), numerics(None, tensor(relative), dtype=dtype))

    floor = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 2**-24, "float64": 2**-53}[dtype]
    assert result(tolerated + 0.99 * floor).result == "as_accurate"
    found = result(tolerated + 1.01 * floor)
    assert (found.result, found.basis) == ("less_accurate", "tolerance")
    assert found.reason.no_reference == DOES_NOT_FIT


def test_tokens_that_diverge_are_undecided_unless_they_are_nearer_to_the_reference_than_eager_s():
    def tokens(share: float) -> TensorDifference:
        return TensorDifference("", "int64", (1, 100), 100, equal_share=share)

    found = judged(numerics(), numerics(None, tokens(0.4)))
    assert found == Accuracy("undecided", "tolerance", reasons.IntegersBesideEager("", 0.4, no_reference=DOES_NOT_FIT))
    assert by_reference(tokens(0.6), tokens(0.7), eager=tokens(0.6)).result == "as_accurate"
    assert by_reference(tokens(0.7), tokens(0.6), eager=tokens(0.6)).result == "undecided"
    assert by_reference(tokens(1.0), tokens(0.1), eager=tokens(0.1)).result == "less_accurate"


def test_outputs_as_far_apart_as_those_of_two_seeds_are_random_and_others_are_judged():
    def drawn(apart: float, seeds: TensorDifference | None, reference: TensorDifference = APART) -> Accuracy:
        one = replace(numerics(reference), against_another_seed=beside("another_seed", seeds) if seeds else None)
        return judged(one, numerics(replace(reference, relative=reference.relative + apart), tensor(apart)))

    assert drawn(0.95, None).result == "less_accurate"
    found = drawn(0.95, tensor(0.97))
    reason = reasons.RandomNumbers("", difference=0.95, another_seed=0.97)
    assert (found.result, found.reason) == ("random", reason)
    # A fault is far less, or far more, than what a seed changes.
    assert [drawn(apart, tensor(0.97)).result for apart in (0.09, 10.0)] == ["less_accurate"] * 2
    # A reference that drew other numbers than eager judges nothing.
    lost = drawn(1e-4, tensor(0.97), reference=tensor(0.96))
    assert (lost.result, lost.basis) == ("as_accurate", "tolerance")


def test_sampled_tokens_and_shapes_that_another_seed_changes_too_are_random():
    def drawn(apart: TensorDifference, seeds: TensorDifference) -> str:
        one = replace(numerics(), against_another_seed=beside("another_seed", seeds))
        return judged(one, numerics(eager=apart)).result

    tokens = tensor(None, dtype="int64", equal_share=0.4)
    assert (drawn(tokens, tokens), drawn(tokens, SAME)) == ("random", "undecided")
    longer = tensor(mismatch=SHAPES_DIFFER)
    assert (drawn(longer, longer), drawn(longer, tensor(0.97))) == ("random", "less_accurate")


def test_random_outputs_are_no_finding():
    one = replace(numerics(), against_another_seed=beside("another_seed", tensor(0.97)))
    found = compare(*sides(one, numerics(eager=tensor(0.95))), ORDER)
    assert found.accuracy is not None and found.accuracy.result == "random"
    assert "outputs_differ" not in [each.code for each in found.findings]


def test_errors_of_another_work_are_no_measure_and_nothing_is_said_of_outputs_that_nobody_compared():
    a, b = sides(numerics(tensor(0.01)), numerics(tensor(0.01), tensor(0.9)))
    assert judge_accuracy(a, b).result == "as_accurate"
    found = judge_accuracy(replace(a, settings=make_settings(seed=1)), b)
    assert (found.result, found.basis) == ("less_accurate", "tolerance")
    assert judge_accuracy(*sides(None, None)) is judge_accuracy(b, b) is None


def test_a_comparison_warns_of_outputs_that_differ_and_is_silent_of_others():
    found = compare(*sides(numerics(tensor(0.01)), numerics(tensor(0.5), tensor(0.5))), ORDER)
    (finding,) = [each for each in found.findings if each.code == "outputs_differ"]
    assert finding.severity == "warning"
    assert (finding.statement.a, finding.statement.b) == ("eager", "compiled")
    assert command_of(finding).startswith("TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1 tracekit profile flux --compiled")
    healthy = compare(*sides(numerics(tensor(0.01)), numerics(tensor(0.01), tensor(0.02))), ORDER)
    assert "outputs_differ" not in [each.code for each in healthy.findings]
