"""Is compiled code as accurate as eager code? The rules, with reasons, are in docs/numerics.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Literal

from tracekit.model.comparison import Side
from tracekit.model.numerics import (
    UNIT_ROUNDOFF,
    Accuracy,
    FormNumerics,
    OutputDifference,
    TensorDifference,
)

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

Result = Literal["as_accurate", "less_accurate", "undecided"]
SEVEREST: tuple[Result, ...] = ("less_accurate", "undecided", "as_accurate")
#: Settings that change how a form computes, not what.
HOW = ("scope", "mode", "fullgraph", "dynamic", "iterations", "variables")


@dataclass(frozen=True, slots=True)
class _Judged:
    """One tensor's result; `excess` is how many times its error is what it may be, to tell the worst."""

    result: Result
    excess: float
    because: str


@dataclass(frozen=True, slots=True)
class _Floor:
    """What cannot be told from no error: half a `step` of the dtype, and what eager differs by from itself. What
    compiled differs by from itself excuses nothing: a form that returns noise would excuse itself."""

    step: float
    eager: float
    compiled: float

    @property
    def allowed(self) -> float:
        return self.step + self.eager

    def beyond(self, excess: float, told: str, *, chance: bool) -> _Judged:
        """An error that is more than allowed; `chance` where another call of the compiled form might be within."""
        if chance:
            told = f"{told}, and compiled differs from itself by {self.compiled:.2g} from call to call"
        return _Judged("undecided" if chance else "less_accurate", excess, f"{told}.")


def judge_accuracy(a: Side, b: Side) -> Accuracy | None:
    """What may be said of B's outputs; None unless A is eager, B is compiled, and their outputs were compared."""
    one, other = (side.form.numerics if side.form else None for side in (a, b))
    if other is None or other.against_eager is None or not (a.form and a.form.name == "eager"):
        return None
    beside = other.against_eager
    if beside.tensors and all(_equal(each) for each in beside.tensors):
        if lost := [each for each in beside.tensors if _is_lost(each)]:
            return Accuracy("undecided", "bits", f"{_place(lost[0])} is the same, but holds no finite number.")
        return Accuracy("equal", "bits", "Both forms return the same numbers, every one of them.")
    if not beside.tensors:
        return Accuracy("undecided", "tolerance", "The outputs hold no tensors that could be compared.")
    # A reference of whose output nothing could be compared judges nothing.
    referenced = other.against_reference is not None and bool(other.against_reference.tensors)
    if one and one.against_reference and referenced and _same_work(a, b):
        return _worst("reference", _by_reference(one, other), other)
    return _worst("tolerance", _by_tolerance(one, other), other)


def _equal(each: TensorDifference) -> bool:
    return each.problem is None and each.equal_share == 1


def _is_lost(each: TensorDifference) -> bool:
    """Whether the tensor is NaN or infinite throughout: that both forms return that proves nothing."""
    return not each.counts and each.elements > 0 and each.max_abs is None


def _same_work(a: Side, b: Side) -> bool:
    if a.settings is None or b.settings is None:
        return False
    names = [field.name for field in fields(a.settings) if field.name not in HOW]
    return all(getattr(a.settings, name) == getattr(b.settings, name) for name in names)


def _worst(basis: Literal["reference", "tolerance"], judged: Iterable[_Judged], numerics: FormNumerics) -> Accuracy:
    worst = min(judged, key=lambda each: (SEVEREST.index(each.result), -each.excess))
    why = f" No reference: {numerics.no_reference}." if basis == "tolerance" and numerics.no_reference else ""
    return Accuracy(worst.result, basis, worst.because + why)


def _by_reference(eager: FormNumerics, compiled: FormNumerics) -> Iterator[_Judged]:
    reference = compiled.reference_dtype or "the reference"
    ours = _by_path(eager.against_reference)
    for each in compiled.against_reference.tensors if compiled.against_reference else ():
        broken = _broken(each)
        base = ours.get(each.path)
        if broken and not (base and _broken(base)):
            yield broken
        elif base is None or broken:
            yield _Judged("undecided", 0.0, f"{_place(each)} could not be held against {reference} in either form.")
        elif each.counts:
            yield _judge_counts(each, base, reference)
        elif each.nonfinite > base.nonfinite:
            yield _Judged("less_accurate", float("inf"), _not_numbers(each, base.nonfinite, f"in {reference}"))
        else:
            floor = _Floor(UNIT_ROUNDOFF.get(compiled.dtype, 0.0), _own(eager, each.path), _own(compiled, each.path))
            yield _judge_errors(each, base, floor, _factor(each, compiled.dtype), reference)


def _judge_errors(
    each: TensorDifference, base: TensorDifference, floor: _Floor, factor: float, reference: str
) -> _Judged:
    if each.relative is None or base.relative is None or each.max_abs is None or base.max_abs is None:
        return _judge_zeros(each, base, factor, reference)
    allowed = factor * base.relative + floor.allowed
    largest = FACTOR_OF_LARGEST * base.max_abs + floor.allowed * (each.other_max or 0.0)
    told = (
        f"{_place(each)} is off by {each.relative:.2g} compiled and {base.relative:.2g} eager, relative to {reference}"
    )
    if each.relative > allowed:
        told = f"{told}; {allowed:.2g} is allowed"
        return floor.beyond(each.relative / allowed, told, chance=each.relative <= allowed + floor.compiled)
    if each.max_abs > largest:
        told = f"{_place(each)} has one number off by {each.max_abs:.2g} compiled and at most {base.max_abs:.2g} eager"
        told = f"{told}, from {reference}; {largest:.2g} is allowed"
        chance = each.max_abs <= largest + floor.compiled * (each.other_max or 0.0)
        return floor.beyond(each.max_abs / largest, told, chance=chance)
    if base.relative > LOST:
        return _Judged("undecided", 0.0, f"{told}: the model amplifies rounding until it hides everything else.")
    return _Judged("as_accurate", each.relative / allowed if allowed else 0.0, f"{told}; {allowed:.2g} is allowed.")


def _judge_zeros(each: TensorDifference, base: TensorDifference, factor: float, reference: str) -> _Judged:
    """Where there is no size to set an error against: an output of zeros, without elements, or without finite ones."""
    if not each.elements or (each.max_abs == 0 and base.max_abs is not None):
        return _Judged("as_accurate", 0.0, f"{_place(each)}: there is no number to measure an error by.")
    if each.max_abs is None or base.max_abs is None:
        return _Judged("undecided", 0.0, f"{_place(each)} holds no finite number to hold against {reference}.")
    told = (
        f"{_place(each)} is 0 in {reference}; compiled is off by up to {each.max_abs:.2g}, eager by {base.max_abs:.2g}"
    )
    result: Result = "as_accurate" if each.max_abs <= factor * base.max_abs else "less_accurate"
    return _Judged(result, each.max_abs / base.max_abs if base.max_abs else float("inf"), f"{told}.")


def _judge_counts(each: TensorDifference, base: TensorDifference, reference: str) -> _Judged:
    one, other = base.equal_share or 0.0, each.equal_share or 0.0
    told = f"{_place(each)}: {_share(other)} of the integers are {reference}'s compiled, {_share(one)} eager"
    if other >= one:
        return _Judged("as_accurate", 0.0, f"{told}.")
    if one == 1 and other < 0.5:
        return _Judged("less_accurate", 1 / max(other, 1e-9), f"{told}.")
    return _Judged("undecided", 1 - other, f"{told}: one choice between near equals changes all that follow.")


def _by_tolerance(eager: FormNumerics | None, compiled: FormNumerics) -> Iterator[_Judged]:
    steps = STEPS if compiled.dtype in ("bfloat16", "float16") else STEPS_OF_SUMS
    step = UNIT_ROUNDOFF.get(compiled.dtype, 0.0)
    for each in compiled.against_eager.tensors if compiled.against_eager else ():
        floor = _Floor(step, _own(eager, each.path), _own(compiled, each.path))
        allowed = steps * step + floor.allowed
        broken = _broken(each)
        if broken:
            yield broken
        elif each.counts:
            told = f"{_place(each)}: {_share(each.equal_share or 0.0)} of the integers are eager's"
            yield _Judged("as_accurate" if _equal(each) else "undecided", 1 - (each.equal_share or 0.0), f"{told}.")
        elif each.nonfinite:
            yield _Judged("less_accurate", float("inf"), _not_numbers(each, 0, "eager"))
        elif each.relative is None:
            yield _judge_zeros(each, replace(each, max_abs=None if each.max_abs is None else 0.0), 1.0, "eager")
        else:
            told = f"{_place(each)} differs by {each.relative:.2g} between the forms; {allowed:.2g} is tolerated"
            excess = each.relative / allowed if allowed else 0.0
            if each.relative > allowed:
                yield floor.beyond(excess, told, chance=each.relative <= allowed + floor.compiled)
            else:
                yield _Judged("as_accurate", excess, f"{told}.")


def _factor(each: TensorDifference, dtype: str) -> float:
    return FACTOR_WHERE_NOISY if each.elements < SMALL or dtype in ("bfloat16", "float16") else FACTOR


def _own(form: FormNumerics | None, path: str) -> float:
    """By how much the tensor differs between two calls of the form."""
    same = _by_path(form.against_itself).get(path) if form else None
    return (same.relative or 0.0) if same else 0.0


def _by_path(difference: OutputDifference | None) -> dict[str, TensorDifference]:
    return {each.path: each for each in difference.tensors} if difference else {}


def _broken(each: TensorDifference) -> _Judged | None:
    if each.problem is None:
        return None
    return _Judged("less_accurate", float("inf"), f"{_place(each)} {each.problem}.")


def _not_numbers(each: TensorDifference, before: int, other: str) -> str:
    more = each.nonfinite - before
    return f"{_place(each)}: {more:,} more numbers are NaN or infinite on one side and not {other}."


def _place(each: TensorDifference) -> str:
    return f"Output {each.path}" if each.path else "The output"


def _share(share: float) -> str:
    return f"{share * 100:.1f} %"
