"""What is said of ranks that did what others did not; and of a file that says what no rank does."""

from typing import Any

import msgspec
import pytest
from tests.sides import make_form, make_side

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.fairness import find_unsound
from tracekit.comparison.judging.rank_differences import note_rank_differences, with_worst_rank
from tracekit.comparison.judging.timed import calls_that_count
from tracekit.errors import TracekitError
from tracekit.model.compilation import CompilingCall, Diagnostics
from tracekit.model.note import Noted, WrittenNoted
from tracekit.model.numerics import Accuracy
from tracekit.model.run import FormResult, RankForm, RankOfRun
from tracekit.model.statement import builtins_of
from tracekit.report.words.short import headline_notes
from tracekit.statements.accuracy import Difference, Equal, NotComparable, NotFinite
from tracekit.statements.noted import InOneOutputOnly, ReferenceOfRanks, UnknownNoted, Warned
from tracekit.statements.rank_differences import (
    RankBroke,
    RankDifference,
    RankMemory,
    RankOutputs,
    RankRanEager,
    RankRecompiled,
)
from tracekit.wire import decode, encode

GUARD = "tensor 'x' size mismatch at index 0. expected 4, actual 5"
AGAIN = RankRecompiled("forward", "model.py:3", times=1, least=0, timed=1, guard=GUARD)
BROKE = RankBroke("model.py:3", "forward", "Call to print")
RAN_EAGER = RankRanEager("model.py:3", "forward", "Call to print")
HELD = RankMemory(2**31, 2**30)
WORSE = RankOutputs("less_accurate", "tolerance", Difference("", 0.9, 0.06))
APART = RankOutputs("less_accurate", "tolerance", NotComparable(".logits", InOneOutputOnly(), ReferenceOfRanks()))
NOT_FINITE = RankOutputs("less_accurate", "tolerance", NotFinite("", 3, None))
SOUND = (AGAIN, BROKE, RAN_EAGER, HELD, WORSE, APART, NOT_FINITE)


def with_ranks(*differs: tuple[Noted, ...], form: FormResult | None = None, compiling: Any = None) -> Any:
    """The compiled side of a run whose ranks did these things alone, and compiled in these timed calls."""
    ranks = tuple(
        RankOfRun(rank, "host", None, None, (RankForm("compiled", 1000.0, 5, 1, 0, None, calls, alone),))
        for rank, (alone, calls) in enumerate(zip(differs, compiling or [()] * len(differs), strict=True))
    )
    return make_side("compiled", form=form or make_form("compiled"), ranks=ranks, rank=0)


def test_a_note_names_all_ranks_that_differ_alike_and_the_check_that_failed() -> None:
    side = with_ranks((), (AGAIN,), (AGAIN,))
    (note,) = note_rank_differences(make_side("eager", form=make_form()), side)
    assert (note.code, note.subject, note.severity) == ("rank_recompiled", "compiled", "warning")
    assert (note.facts["ranks"], note.facts["of_ranks"], note.facts["least"]) == ([1, 2], 3, 0)
    assert note.facts["failed_check"] == {"kind": "size", "name": "x", "index": "0", "then": "4", "now": "5"}
    assert note in compare(make_side("eager", form=make_form()), side).notes


def test_outputs_are_judged_by_the_rank_whose_are_worst() -> None:
    own = Accuracy("equal", "bits", Equal())
    found = with_worst_rank(own, with_ranks((), (WORSE,)))
    assert found is not None and (found.result, found.rank) == ("less_accurate", 1)
    assert isinstance(found.reason, Difference) and found.reason.compiled == 0.9
    # Rank 0's are the side's own.
    assert with_worst_rank(own, with_ranks((WORSE,), ())) == own
    assert with_worst_rank(own, make_side("compiled", form=make_form("compiled"))) == own


def test_a_call_in_which_any_rank_compiled_does_not_count() -> None:
    calls = CompilingCall("timed", 2, 1, 0, 1000.0)
    own = make_form("compiled", tuple(range(1000, 1010)), diagnostics=Diagnostics(calls=(calls,)))
    assert len(calls_that_count(make_side("compiled", form=own))) == 9
    side = with_ranks((), (), form=own, compiling=[(2,), (2, 5)])
    assert sorted(calls_that_count(side)) == [1000, 1002, 1003, *range(1005, 1010)]


def said_of(noted: Noted) -> list[str]:
    """All that is said where rank 1 did this alone."""
    side = with_ranks((), (noted,))
    worst = with_worst_rank(Accuracy("equal", "bits", Equal()), side)
    assert worst is not None
    notes = tuple(note_rank_differences(make_side("eager", form=make_form()), side))
    long = (note.long() for note in notes)
    return [*long, *headline_notes(notes), worst.reason.long()]


@pytest.mark.parametrize("noted", SOUND, ids=lambda noted: str(noted.code))
def test_whatever_a_file_says_of_a_rank_is_said_or_refused(noted: Noted) -> None:
    assert {each.code for each in SOUND} == RankDifference.classes.keys()
    assert all(said_of(noted))
    told = builtins_of(noted)
    assert decode(encode(noted), Noted) == noted
    odd = (5, -1, 1e300, True, None, "x", ["a"], {"code": "x"})
    changed = [{**told["facts"], name: value} for name in (*told["facts"], "ranks", "more") for value in odd]
    changed += [{key: value for key, value in told["facts"].items() if key != name} for name in told["facts"]]
    refused = 0
    for facts in ({}, *changed):
        try:
            assert all(said_of(decode(msgspec.json.encode({**told, "facts": facts}), Noted)))
        except (TracekitError, msgspec.ValidationError):
            refused += 1
    assert refused > 10


def test_numbers_counted_beside_those_of_eager_code_have_no_reference_and_say_so() -> None:
    assert builtins_of(NOT_FINITE)["facts"]["reference"] is None
    assert "reference" not in builtins_of(WORSE)["facts"]


def test_a_code_that_no_rank_has_is_refused() -> None:
    with pytest.raises(TracekitError, match="on a rank of the run cannot be read; record the run again"):
        said_of(Warned("rank_flew"))


def test_a_code_of_another_version_is_shown_with_its_rank_beside_eager_and_of_one_side_alone() -> None:
    flew = UnknownNoted(WrittenNoted("rank_flew"))
    (note,) = note_rank_differences(make_side("eager", form=make_form()), with_ranks((), (flew,)))
    assert (note.code, note.facts) == ("rank_did_more", {"ranks": [1], "of_ranks": 2, "what": "rank_flew"})
    # A job of one process too.
    alone = with_ranks((flew,))
    assert [note.facts.get("what") for note in find_unsound(alone)] == ["rank_flew"]
