"""What did some ranks of a job do that others did not? Ranks with the same work compile alike and hold as much."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from tracekit.comparison.judging.accuracy import judge_outputs
from tracekit.comparison.judging.rank_differences import severity_of
from tracekit.model.compilation import Diagnostics, FailedGuard, FrameCompilation
from tracekit.model.run import FormName, FormResult
from tracekit.statements.guards import OtherCheck, check_of
from tracekit.statements.rank_differences import (
    RankBroke,
    RankDifference,
    RankMemory,
    RankOutputs,
    RankRanEager,
    RankRecompiled,
)

Key = TypeVar("Key")
T = TypeVar("T")

#: Peaks of memory that are less apart than this share of the least, or than so many bytes, are alike.
LEAST_MEMORY, LEAST_BYTES = 0.03, 2**20
#: Of each rank, what it did that not all did.
Differences = tuple[list[RankDifference], ...]


def find_rank_differences(ranks: Sequence[Mapping[FormName, FormResult]], name: FormName) -> Differences:
    """What each rank's form of that name did that not all ranks' did; `ranks` have the forms of one rank each."""
    forms = [forms[name] for forms in ranks]
    noted: list[tuple[int, RankDifference]] = []
    told = [form.compilation.diagnostics if form.compilation else None for form in forms]
    if all(told):
        diagnostics = [each for each in told if each]
        noted += _recompiled(diagnostics)
        breaks = [{(each.line, each.function): each for each in told.breaks} for told in diagnostics]
        noted += [(rank, RankBroke(each.line, each.function, each.reason)) for rank, each in _of_some(breaks)]
        eager = [{(each.kind, each.function, each.where): each for each in told.fallbacks} for told in diagnostics]
        noted += [(rank, RankRanEager(each.where, each.function, each.reason)) for rank, each in _of_some(eager)]
    noted += _held_more(forms)
    noted += _returned_worse(ranks) if name == "compiled" else ()
    return tuple([difference for of_rank, difference in noted if of_rank == rank] for rank in range(len(ranks)))


def _recompiled(diagnostics: Sequence[Diagnostics]) -> Iterator[tuple[int, RankDifference]]:
    """Functions that a rank compiled again more often than the rank that did so least."""
    counts = [Counter(map(_key, told.recompiles)) for told in diagnostics]
    for key in dict.fromkeys(key for count in counts for key in count):
        least = min(count[key] for count in counts)
        # Checks at which the rank with fewest failed too are not what another is alone with.
        fewest = next(told for told, count in zip(diagnostics, counts, strict=True) if count[key] == least)
        usual = {_text(guard) for guard in _guards(fewest, key)}
        for rank, count in enumerate(counts):
            if count[key] > least:
                again = [each for each in diagnostics[rank].recompiles if _key(each) == key]
                guards = _guards(diagnostics[rank], key)
                own = [each for each in guards if _text(each) not in usual] or guards
                # A size, a type or a function says more than what torch alone has words for.
                known = [each for each in own if not isinstance(check_of(each), OtherCheck)] or own
                timed = sum(each.phase == "timed" for each in again)
                yield rank, RankRecompiled(*key, count[key], least, timed, _text(known[0]))


def _key(recompile: FrameCompilation) -> tuple[str | None, str | None]:
    return recompile.function, recompile.where


def _guards(told: Diagnostics, key: tuple[str | None, str | None]) -> list[FailedGuard]:
    """The checks that failed before that function was compiled again, the latest first."""
    return [guard for each in reversed(told.recompiles) if _key(each) == key for guard in each.because]


def _text(guard: FailedGuard) -> str:
    return guard.text.partition("\n")[0].partition("  #")[0].strip()


def _of_some(ranks: Sequence[Mapping[Key, T]]) -> Iterator[tuple[int, T]]:
    """What some ranks have and others have not."""
    for rank, own in enumerate(ranks):
        for key, each in own.items():
            if not all(key in others for others in ranks):
                yield rank, each


def _held_more(forms: Sequence[FormResult]) -> Iterator[tuple[int, RankDifference]]:
    """Ranks whose calls hold more memory than those of the rank that holds least."""
    peaks = [form.own_peak_memory_bytes for form in forms]
    least = min((peak for peak in peaks if peak is not None), default=0)
    for rank, peak in enumerate(peaks):
        if peak is not None and peak - least >= max(LEAST_MEMORY * least, LEAST_BYTES):
            yield rank, RankMemory(peak, least)


def _returned_worse(ranks: Sequence[Mapping[FormName, FormResult]]) -> Iterator[tuple[int, RankDifference]]:
    """Ranks whose compiled form returns what is less like eager's than on the rank that is most like it."""
    judged = []
    for forms in ranks:
        eager, compiled = (form.numerics if form else None for form in (forms.get("eager"), forms.get("compiled")))
        judged.append(judge_outputs(eager, compiled, same_work=True) if compiled else None)
    best = max((severity_of(each) for each in judged if each), default=0)
    for rank, each in enumerate(judged):
        if each is not None and each.result in ("less_accurate", "undecided") and severity_of(each) < best:
            yield rank, RankOutputs(each.result, each.basis, each.reason)
