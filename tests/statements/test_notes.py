"""What each note says, in full and on the first screen: read the snapshot when it changes."""

from types import ModuleType

import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.model.compilation import FailedGuard
from tracekit.model.note import Note, distinct, grave_sentences, other_sentences
from tracekit.model.numerics import Accuracy
from tracekit.report.words.short import DIFFERENCES, GRAVEST_FIRST, headline_notes
from tracekit.statements.accuracy import Difference
from tracekit.statements.guards import check_of
from tracekit.statements.health import Truncated
from tracekit.statements.noted import GraphWithoutSites
from tracekit.statements.notes import gpu, matching, ranks, recordings, speeds, timing, work
from tracekit.statements.notes.gpu import ClocksDiffer, GpuShared, Throttled, ThrottledInSamples
from tracekit.statements.notes.speeds import Drifted, KindOfProcess, SpeedupByThirds, TwoSpeeds
from tracekit.statements.notes.work import PackageDiffers, SettingDiffers

WAITS, SIDES = (False, True), ("eager", "compiled")
ALONE, TWO = ("compiled", [1], 8), ("compiled", [1, 3], 8)
SIZE = check_of(FailedGuard("", "tensor 'x' size mismatch at index 0. expected 4, actual 5"))
WORSE = Accuracy("less_accurate", "tolerance", Difference("", 0.5, 0.07))
UNKNOWN = GraphWithoutSites(0, "cached_without_provenance")

EVERY: dict[ModuleType, tuple[Note, ...]] = {
    timing: (
        timing.NotTimed(),
        timing.NotAlternated(),
        timing.TooFewCalls(calls=1, needed=5, repeats=0),
        timing.TooFewCalls(calls=4, needed=5, repeats=2),
        timing.TooFewCalls(calls=4, needed=5, repeats=0, of_program=True),
        timing.UnevenCalls(rounds=9),
        *(timing.CompiledWhileTimed("compiled", compilations) for compilations in (1, 2)),
        *(timing.FewStretches(rounds, stretches=4.7, needed=10) for rounds in (9, 40)),
        *(timing.FewStretches(rounds, stretches=4.7, needed=10, of_program=True) for rounds in (9, 40)),
        timing.CoarseClock(share=0.04),
        timing.Outliers(rounds=60, of_rounds=300, speedup=0.923),
        timing.Warming("compiled", calls=20, of_calls=60),
        timing.EagerDiffersBetweenRuns(slowest="regional", fastest="default", ratio=1.2),
        *(timing.Interrupted(runs) for runs in (1, 2)),
    ),
    speeds: (
        *(Drifted("eager", share) for share in (0.08, -0.08, 0.5, 112.5)),
        *(TwoSpeeds("eager", fast_us=1e3, slow_us=1080.0, slow_share=0.4, lasting=each) for each in (True, False)),
        *(SpeedupByThirds(first, last=1.25 * first, beyond_ci=first < 1, slower=first < 1) for first in (1.044, 0.79)),
        speeds.TwoKinds([KindOfProcess(1.84, 2), KindOfProcess(2.05, 6)]),
        *(speeds.ProcessSpread("eager", fastest_us=3309.0, slowest_us=4253.0, waits_for_host=each) for each in WAITS),
        speeds.AdviceProcessSpread("eager", own_us=4560.0, advised_us=3800.0, waits_for_host=False),
        speeds.AdviceProcessSpread("eager", own_us=3800.0, advised_us=4560.0, waits_for_host=True),
    ),
    gpu: (
        Throttled("power", share=0.74, sides=SIDES),
        Throttled("power", share=0.74),
        ThrottledInSamples("power brake", samples=1, of_samples=2, sides=["compiled"]),
        GpuShared(SIDES, processes=1),
        GpuShared(["compiled"], processes=2),
        *(ClocksDiffer(("A", "B"), (1980, 1770), "compiled", faster) for faster in ("compiled", "eager", None)),
    ),
    recordings: (
        recordings.SameRecording("trace.json"),
        recordings.CpuRun(),
        recordings.NoGpuActivity("b"),
        recordings.SeveralGpus("b", gpus=2),
        recordings.NotReadOverSteps("span"),
        recordings.NotReadOverSteps("whole"),
        recordings.WindowsDiffer("steps", "whole"),
        recordings.WindowsDiffer("span", "steps"),
        recordings.WholeRecordings(),
        recordings.NamedSpans(),
        recordings.StepsDiffer(2, 3),
        recordings.BusierThanTheCall("b", busy_us=709.0, wall_us=700.0, idle_taken_for_0=True),
        recordings.BusierThanTheCall("b", busy_us=809.0, wall_us=700.0, idle_taken_for_0=False),
        *(
            recordings.TimedSlowerThanRecorded("b", wall_us=9e3, recorded_us=1e3, timed_calls=n, first_calls=n < 5)
            for n in (1, 3, 10)
        ),
        recordings.DamagedRecording("b", Truncated(1)),
        recordings.NoRichRecording("compiled"),
    ),
    work: (
        SettingDiffers("gpu", "NVIDIA H200", "NVIDIA A100"),
        SettingDiffers("gpus", 1, 4),
        SettingDiffers("batch_size", 1, 4),
        SettingDiffers("options", ("depth=1", "width=2"), ()),
        SettingDiffers("float32_matmul_precision", "highest", "high"),
        SettingDiffers("variables", {}, {"CUDA_LAUNCH_BLOCKING": "1"}),
        PackageDiffers("torch", "2.13.0", None),
        PackageDiffers("torch", "2.13.0", "2.14.0", a_name="vit", b_name="vit-autotune"),
        work.OneSideGenerates("A"),
        work.OneSideIsOwn("B"),
        work.TrainingMode(["model"], side=None),
        work.TrainingMode(["encoder", "decoder"], side="compiled"),
        *(work.RanEager(reason) for reason in (None, "Dynamo recompile limit exceeded")),
        work.PartRanEager("compiled", place="forward (model.py:12)", reason="Dynamo recompile limit exceeded"),
    ),
    ranks: (
        ranks.OfRanks("eager", ranks=2, rank=1, times=19, calls=20, shown=0),
        ranks.FirstRankAlone(),
        ranks.RanksDiffer(2, 4),
        *(
            ranks.WaitingUntold("b", communication_us=9e3, compute_us=8e3, exposed_us=1e3, rank=rank, world_size=size)
            for rank, size in ((3, 16), (None, None))
        ),
        ranks.CommunicationNotJudged(a_exposed_us=1e3, b_exposed_us=9e3),
        ranks.RankRecompiled(*ALONE, "forward", "model.py:12", times=2, least=0, timed=1, failed_check=SIZE),
        ranks.RankRecompiled(*TWO, "forward", "model.py:12", times=1, least=0, timed=0, failed_check=SIZE),
        ranks.RankBroke(*ALONE, "model.py:12", "forward", "Call to print."),
        ranks.RankRanEager(*ALONE, "model.py:12", "forward", "recompile limit"),
        ranks.RankMemory(*ALONE, peak_bytes=3 * 2**30, least_bytes=2**31),
        ranks.RankDidMore(*ALONE, "rank_flew"),
        ranks.RankOutputs(*ALONE, WORSE),
    ),
    matching: (
        matching.NoOperators("graphed"),
        matching.NoShapes("graphed"),
        matching.TooManyToMatch("eager", operators=600_000, activities=None),
        matching.TooManyToMatch("eager", operators=None, activities=700_000),
        matching.LittleMatched({"A": 0.302, "B": 0.167}),
        matching.LittleMatched({"B": 0.5}),
        matching.MatchedByElimination({"A": 0.79, "B": 0.8}, no_provenance=None, advise_profile=True),
        matching.MatchedByElimination({"A": 0.79}, no_provenance=None, advise_profile=False),
        matching.MatchedByElimination({"A": 0.79}, no_provenance="two_runs", advise_profile=False),
        matching.ProvenanceUnused("other_forms"),
        matching.ProvenanceUnused("steps_differ"),
        matching.ProvenanceNoted(UNKNOWN),
        matching.ProvenanceWithoutWork(),
        matching.NotInProvenance("eager", activities=1, of_activities=4),
        matching.OnlyInProvenance("eager", activities=1),
        matching.AmbiguousLaunchSites(groups=1),
        *(matching.OperatorsLinkedByElimination(operators, of_operators=2) for operators in (1, 2)),
        *(matching.OperatorsOfOtherSizes(operators) for operators in (1, 2)),
        *(matching.OperatorsWithoutCounterpart(operators) for operators in (1, 2)),
        *(matching.UnexplainedLaunchSites(sites) for sites in (1, 2)),
    ),
}


def told(note: Note) -> str:
    lines = note.code, note.long(), *([note.short()] if type(note) in GRAVEST_FIRST else [])
    return "\n    ".join(lines)


@pytest.mark.parametrize("about", EVERY, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_note_reads_well(about: ModuleType, snapshot: SnapshotAssertion) -> None:
    assert "\n".join(map(told, EVERY[about])) == snapshot


def test_every_class_has_an_example() -> None:
    for module, notes in EVERY.items():
        of_module = {each for each in Note.classes.values() if each.__module__ == module.__name__}
        assert of_module == {type(each) for each in notes}


def test_short_words_are_those_of_the_first_screen() -> None:
    core = [each for each in Note.classes.values() if each.__module__.startswith("tracekit.statements.")]
    assert {each for each in core if {"short", "says_short"} & vars(each).keys()} == {*GRAVEST_FIRST, *DIFFERENCES} - {
        Note
    }


def test_a_note_is_written_with_its_subject_and_its_facts() -> None:
    drifted = Drifted("eager", 0.08).written()
    assert (drifted.code, drifted.subject, drifted.facts) == ("drifted", "eager", {"share": 0.08})
    damaged = recordings.DamagedRecording("b", Truncated(3, recording="rich")).written()
    assert damaged.facts == {"health": "truncated", "count": 3, "facts": {"recording": "rich"}}
    outputs = ranks.RankOutputs(*ALONE, WORSE).written()
    assert outputs.facts == {"ranks": [1], "of_ranks": 8, "result": "less_accurate", "basis": "tolerance"} | {
        "reason": "difference",
        "path": "",
        "compiled": 0.5,
        "allowed": 0.07,
    }


def test_grave_notes_stand_apart_from_the_others() -> None:
    grave, other = work.RanEager(None), timing.NotTimed()
    assert grave_sentences((other, grave)) == (grave.long(),)
    assert other_sentences((other, grave)) == (other.long(),)


def test_notes_are_told_apart_by_what_they_are_about_and_not_by_what_they_say() -> None:
    near, far = (Drifted("eager", share) for share in (0.08001, 0.08002))
    assert near.long() == far.long()
    assert distinct((near, far, near)) == (near, far)
    assert distinct((near, Drifted("compiled", share=0.08001))) != (near,)


def test_the_gravest_stands_first_and_what_belongs_together_in_one_line() -> None:
    limit, clocks = Throttled("power", 0.74, SIDES), ClocksDiffer(SIDES, (1980, 1770), "compiled", "compiled")
    line = "power limit active 74 % of the time; clock 1,980 MHz a, 1,770 b (gain larger at equal clocks)"
    assert headline_notes((timing.NotTimed(), clocks, limit, work.RanEager(None)), ("a", "b")) == (
        work.RanEager(None).short(),
        line,
    )
    two = [TwoSpeeds(side, 1e3, 1080.0, 0.4, lasting=True) for side in SIDES]
    assert headline_notes(two) == ("calls are bimodal: 40 % of eager at 1.08 ms, 40 % of compiled at 1.08 ms",)


@pytest.mark.parametrize("beyond", [False, True])
def test_drifts_stand_beside_the_thirds_unless_these_are_beyond_the_interval(beyond: bool) -> None:
    drifts = [Drifted(side, 0.08) for side in SIDES]
    thirds = SpeedupByThirds(1.1, 1.2, beyond_ci=beyond, slower=False)
    together = "; ".join(each.short() for each in (*drifts, thirds))
    assert headline_notes((*drifts, thirds)) == ((thirds.short(),) if beyond else (together,))


def test_how_grave_each_is(snapshot: SnapshotAssertion) -> None:
    assert {note.code: (note.severity, note.grave) for notes in EVERY.values() for note in notes} == snapshot
