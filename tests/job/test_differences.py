"""Ranks of a job that did what others did not; made by hand."""

from typing import Any

from msgspec.structs import replace
from tests.comparison.judging.test_accuracy import DOES_NOT_FIT, SAME, numerics, tensor
from tests.sides import make_form

from tracekit.job.measuring import find_rank_differences
from tracekit.model.compilation import (
    Diagnostics,
    EagerFallback,
    FailedGuard,
    FrameCompilation,
    GraphBreak,
)
from tracekit.model.run import FormResult
from tracekit.statements.accuracy import Difference
from tracekit.statements.rank_differences import RankOutputs

GUARD = FailedGuard("0/0", "tensor 'x' size mismatch at index 0. expected 4, actual 5  # return x")
BREAK = GraphBreak("model.py:7", "forward", "Call to print", None, None, None, ("0/0",))


def again(times: int) -> tuple[FrameCompilation, ...]:
    """A function that was compiled once, and once more so often, the last time in a timed call."""
    first = FrameCompilation("0/0", "forward", "model.py:3", "warm-up", 1, 1.0, 3)
    return (first, *(replace(first, id=f"0/{n}", phase="timed", because=(GUARD,)) for n in range(1, times + 1)))


def of_rank(times: int = 0, **told: Any) -> FormResult:
    return make_form("compiled", diagnostics=Diagnostics(frames=again(times), **told))


def differences(*ranks: FormResult, eager: FormResult | None = None) -> list[list[str]]:
    forms = [{"compiled": form, **({"eager": eager} if eager else {})} for form in ranks]
    return [[each.code for each in some] for some in find_rank_differences(forms, "compiled")]


def test_ranks_that_did_the_same_do_not_differ() -> None:
    one = of_rank(2, breaks=(BREAK,), fallbacks=(EagerFallback("skipped", "forward", "model.py:3", "a reason"),))
    held = replace(one, own_peak_memory_bytes=2**34)
    # A little more memory is that of any two allocators; eager code has no diagnostics.
    assert differences(held, replace(held, own_peak_memory_bytes=2**34 + 2**28)) == [[], []]
    forms = [{"eager": make_form()} for _ in range(2)]
    assert find_rank_differences(forms, "eager") == ([], [])


def test_what_only_some_ranks_did_is_told_of_these() -> None:
    fallback = EagerFallback("recompile_limit", "forward", "model.py:3", "the limit")
    uneven = replace(of_rank(3, breaks=(BREAK,), fallbacks=(fallback,)), own_peak_memory_bytes=2 * 2**30)
    even = replace(of_rank(1), own_peak_memory_bytes=2**30)
    codes = ["rank_recompiled", "rank_broke", "rank_ran_eager", "rank_memory"]
    assert differences(even, uneven, even, uneven) == [[], codes, [], codes]
    told = find_rank_differences([{"compiled": even}, {"compiled": uneven}], "compiled")[1]
    again, broke, _, memory = (each.facts for each in told)
    assert (again["times"], again["least"], again["timed"], again["where"]) == (3, 1, 3, "model.py:3")
    assert broke["where"] == "model.py:7" and memory == {"peak_bytes": 2 * 2**30, "least_bytes": 2**30}


def test_the_guard_named_is_one_that_the_other_ranks_did_not_fail() -> None:
    """Blocks that share code each fail the check of another's inputs, on every rank."""
    shared, other = (FailedGuard("0/0", f"tensor 'x' requires_grad mismatch. expected requires_grad={n}") for n in "01")
    usual, alone = (replace(again(1)[1], because=guards) for guards in ((shared,), (other, GUARD, shared)))
    ranks = [make_form("compiled", diagnostics=Diagnostics(frames=each)) for each in ((usual,), (usual, alone))]
    told = find_rank_differences([{"compiled": each} for each in ranks], "compiled")[1]
    assert [each.facts["guard"] for each in told] == ["tensor 'x' size mismatch at index 0. expected 4, actual 5"]


def test_outputs_that_are_worse_on_one_rank_are_told_and_judged_by_it() -> None:
    fine, wrong = (replace(of_rank(), numerics=numerics(eager=each)) for each in (SAME, tensor(0.9)))
    assert differences(fine, wrong) == [[], ["rank_outputs"]]
    assert differences(wrong, wrong) == differences(fine, fine) == [[], []]
    (noted,) = find_rank_differences([{"compiled": fine}, {"compiled": wrong}], "compiled")[1]
    judged = {"path": "", "compiled": 0.9, "allowed": 0.0625 + 0.00390625, "no_reference": DOES_NOT_FIT}
    assert noted == RankOutputs("less_accurate", "tolerance", Difference(**judged))
