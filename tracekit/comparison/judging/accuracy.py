"""Is compiled code as accurate as eager code? The rules, with reasons, are in docs/numerics.md."""

import math
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tracekit.model.comparison import Side
from tracekit.model.numerics import UNIT_ROUNDOFF, Accuracy, FormNumerics, OutputDifference, TensorDifference
from tracekit.model.run import Settings
from tracekit.statements import accuracy as reasons

#: By how many times compiled code may be further from the reference than eager code: two orders of rounding are two
#: draws of one error, and torch's own accuracy checks allow 2, and 3 for half precisions and small tensors.
FACTOR, FACTOR_WHERE_NOISY = 2.0, 3.0
SMALL = 1000
#: The same for the one largest error, which scatters far more than the mean of all.
FACTOR_OF_LARGEST = 10.0
#: Where eager itself is this far from the reference, the model amplifies rounding until little is left to compare:
#: three times more would let an output of zeros pass, whose error is 1.
LOST = 0.3
#: Without a reference: how many half steps of the dtype two forms may be apart; half precisions round after every
#: operation and sum in float32, full ones sum in what they round to.
STEPS, STEPS_OF_SUMS = 16.0, 1024.0

#: Outputs are apart by their random numbers where they differ by no more than so many times what another seed changes,
#: and by no less than that part of it.
FACTOR_OF_SEEDS = 10.0

Result = Literal["as_accurate", "less_accurate", "undecided", "random"]
SEVEREST = ("less_accurate", "undecided", "random", "as_accurate", "equal")
#: Settings that change how a form computes, not what.
HOW = ("scope", "mode", "fullgraph", "dynamic", "compile_order", "compiled_autograd", "iterations", "variables")
HALF = ("bfloat16", "float16")


class _Judged(Struct, frozen=True):
    """One tensor's result; `excess` is how many times its error is what it may be, to find the worst."""

    result: Result
    excess: float
    reason: reasons.OfTensor


def _judge_error(
    reason: reasons.Error | reasons.LargestError | reasons.Difference, own: float, scale: float = 1.0
) -> _Judged:
    """An error beside what is allowed of it. `own` is what the compiled form differs by from itself: where another call
    of it might be within that, an error that is more proves nothing. It excuses nothing, or a form that returns noise
    would excuse itself. `scale` is what errors are of, where they are not relative."""
    error, allowed = reason.compiled, reason.allowed
    if error <= allowed:
        return _Judged("as_accurate", error / allowed if allowed else 0.0, reason)
    excess = error / allowed if allowed else math.inf
    if error <= allowed + own * scale:
        return _Judged("undecided", excess, reason.but(compiled_from_itself=own))
    return _Judged("less_accurate", excess, reason)


def judge_accuracy(a: Side, b: Side) -> Accuracy | None:
    """What may be said of B's outputs; None unless A is eager, B is compiled, and their outputs were compared."""
    one, other = (side.form.numerics if side.form else None for side in (a, b))
    if other is None or not (a.form and a.form.name == "eager"):
        return None
    same_work = a.settings is not None and b.settings is not None
    for name in (each for each in Settings.__struct_fields__ if each not in HOW):
        same_work = same_work and getattr(a.settings, name) == getattr(b.settings, name)
    return judge_outputs(one, other, same_work=same_work)


def judge_outputs(one: FormNumerics | None, other: FormNumerics, *, same_work: bool) -> Accuracy | None:
    """The same of what an eager form returned, and a compiled one; `same_work` is whether they computed one thing. None
    where the outputs were not compared."""
    if other.against_eager is None:
        return None
    tensors = other.against_eager.tensors
    if not tensors:
        return Accuracy("undecided", "tolerance", reasons.NoTensors())
    if all(each.mismatch is None and each.equal_share == 1 for each in tensors):
        # NaN or infinite throughout: that both forms return that proves nothing.
        for each in tensors:
            if not each.counts and each.elements > 0 and each.max_abs is None:
                return Accuracy("undecided", "bits", reasons.SameWithoutFiniteNumbers(path=each.path))
        return Accuracy("equal", "bits", reasons.Equal())
    # A reference of whose output nothing could be compared judges nothing, nor does one of other random numbers.
    referenced = other.against_reference is not None and bool(other.against_reference.tensors)
    seeds = _by_path(one.against_another_seed if one else None)
    references = one.against_reference.tensors if one and one.against_reference else ()
    drew_others = any(each.path in seeds and _as_of_another_seed(each, seeds[each.path]) for each in references)
    if one and one.against_reference and referenced and same_work and not drew_others:
        worst = _worst(_by_reference(one, other), one, other)
        return Accuracy(worst.result, "reference", worst.reason)
    worst, missing = _worst(_by_tolerance(one, other), one, other), other.reference_missing
    return Accuracy(worst.result, "tolerance", worst.reason.but(no_reference=missing) if missing else worst.reason)


def _worst(judged: Iterable[_Judged], eager: FormNumerics | None, compiled: FormNumerics) -> _Judged:
    """The worst of the results, of which those that random numbers explain are no fault."""
    results = []
    seeds, apart = _by_path(eager.against_another_seed if eager else None), _by_path(compiled.against_eager)
    for each in judged:
        path = each.reason.path
        one, other = apart.get(path), seeds.get(path)
        if each.result != "as_accurate" and one and other and _as_of_another_seed(one, other):
            reason = reasons.RandomNumbers(path=path, difference=one.relative, another_seed=other.relative)
            each = _Judged("random", each.excess, reason)
        results.append(each)
    return min(results, key=lambda each: (SEVEREST.index(each.result), -each.excess))


def _as_of_another_seed(each: TensorDifference, other: TensorDifference) -> bool:
    """Whether outputs are as far apart as those of two seeds."""
    if other.mismatch or each.mismatch:
        return bool(other.mismatch)
    if each.counts:
        return (other.equal_share or 0.0) < 1
    if each.nonfinite > other.nonfinite or not other.relative:
        return False
    return other.relative / FACTOR_OF_SEEDS <= (each.relative or 0.0) <= FACTOR_OF_SEEDS * other.relative


def _by_reference(eager: FormNumerics, compiled: FormNumerics) -> Iterator[_Judged]:
    reference = compiled.reference_dtype or "the reference"
    of_eager = _by_path(eager.against_reference)
    for each in compiled.against_reference.tensors if compiled.against_reference else ():
        base = of_eager.get(each.path)
        if each.mismatch and not (base and base.mismatch):
            yield _Judged("less_accurate", math.inf, reasons.NotComparable(each.path, each.mismatch))
        elif base is None or each.mismatch:
            yield _Judged("undecided", 0.0, reasons.NotHeldAgainstReference(path=each.path, reference=reference))
        elif each.counts:
            one, other = base.equal_share or 0.0, each.equal_share or 0.0
            yield _judge_integers(each, one, other, reference)
        elif each.nonfinite > base.nonfinite:
            reason = reasons.NotFinite(path=each.path, more=each.nonfinite - base.nonfinite, reference=reference)
            yield _Judged("less_accurate", math.inf, reason)
        else:
            # No error can be told from half a step of the dtype, and what eager differs by from itself.
            floor = UNIT_ROUNDOFF.get(compiled.dtype, 0.0) + _own(eager, each.path)
            noisy = each.elements < SMALL or compiled.dtype in HALF
            factor = FACTOR_WHERE_NOISY if noisy else FACTOR
            yield _judge_errors(each, base, floor, _own(compiled, each.path), factor, reference)


def _judge_integers(each: TensorDifference, eager: float, compiled: float, reference: str) -> _Judged:
    """By the shares of them that match."""
    shares = each.path, compiled, eager, reference
    if compiled >= eager:
        return _Judged("as_accurate", 0.0, reasons.Integers(*shares))
    if eager == 1 and compiled < 0.5:
        return _Judged("less_accurate", 1 / max(compiled, 1e-9), reasons.Integers(*shares))
    return _Judged("undecided", 1 - compiled, reasons.IntegersDiverge(*shares))


def _judge_errors(
    each: TensorDifference, base: TensorDifference, floor: float, own: float, factor: float, reference: str
) -> _Judged:
    if each.relative is None or base.relative is None or each.max_abs is None or base.max_abs is None:
        return _judge_zeros(each, base, factor, reference)
    size = each.other_max or 0.0
    errors = each.path, each.relative, base.relative, reference, factor * base.relative + floor
    mean = _judge_error(reasons.Error(*errors), own)
    if mean.result != "as_accurate":
        return mean
    most = FACTOR_OF_LARGEST * base.max_abs + floor * size
    largest = _judge_error(reasons.LargestError(each.path, each.max_abs, base.max_abs, reference, most), own, size)
    if largest.result != "as_accurate":
        return largest
    if base.relative > LOST:
        return _Judged("undecided", 0.0, reasons.RoundingAmplified(*errors))
    return mean


def _judge_zeros(each: TensorDifference, base: TensorDifference, factor: float, reference: str) -> _Judged:
    """Where there is no size to set an error against: an output of zeros, without elements, or without finite ones."""
    if not each.elements or (each.max_abs == 0 and base.max_abs is not None):
        return _Judged("as_accurate", 0.0, reasons.NoNumbers(path=each.path, reference=reference))
    if each.max_abs is None or base.max_abs is None:
        return _Judged("undecided", 0.0, reasons.NoFiniteNumbers(path=each.path, reference=reference))
    reason = reasons.Zeros(path=each.path, reference=reference, compiled=each.max_abs, eager=base.max_abs)
    result: Result = "as_accurate" if each.max_abs <= factor * base.max_abs else "less_accurate"
    return _Judged(result, each.max_abs / base.max_abs if base.max_abs else math.inf, reason)


def _by_tolerance(eager: FormNumerics | None, compiled: FormNumerics) -> Iterator[_Judged]:
    steps = STEPS if compiled.dtype in HALF else STEPS_OF_SUMS
    step = UNIT_ROUNDOFF.get(compiled.dtype, 0.0)
    for each in compiled.against_eager.tensors if compiled.against_eager else ():
        share = each.equal_share or 0.0
        if each.mismatch:
            yield _Judged("less_accurate", math.inf, reasons.NotComparable(each.path, each.mismatch))
        elif each.counts:
            reason = reasons.IntegersBesideEager(path=each.path, share=share)
            yield _Judged("as_accurate" if share == 1 else "undecided", 1 - share, reason)
        elif each.nonfinite:
            not_finite = reasons.NotFinite(path=each.path, more=each.nonfinite, reference=None)
            yield _Judged("less_accurate", math.inf, not_finite)
        elif each.relative is None:
            yield _judge_zeros(each, replace(each, max_abs=None if each.max_abs is None else 0.0), 1.0, "eager")
        else:
            allowed = steps * step + (step + _own(eager, each.path))
            difference = reasons.Difference(path=each.path, compiled=each.relative, allowed=allowed)
            yield _judge_error(difference, _own(compiled, each.path))


def _own(form: FormNumerics | None, path: str) -> float:
    """By how much the tensor differs between two calls of the form."""
    same = _by_path(form.against_itself).get(path) if form else None
    return (same.relative or 0.0) if same else 0.0


def _by_path(difference: OutputDifference | None) -> dict[str, TensorDifference]:
    return {each.path: each for each in difference.tensors} if difference else {}
