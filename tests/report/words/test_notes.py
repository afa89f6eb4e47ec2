"""What each note says: read the snapshot when it changes."""

import re
from pathlib import Path

import pytest

import tracekit
from tracekit.model.note import Note, distinct
from tracekit.report.words.notes import SENTENCES, grave_sentences, note_sentence, other_sentences
from tracekit.statements.noted import GraphWithoutSites

SIDES, WAITS = ["eager", "compiled"], (False, True)

PLACE = {"function": "forward", "where": "model.py:12"}
CHECK = {"kind": "size", "name": "x", "index": "0", "then": "4", "now": "5"}
DIFFERENCE = {"result": "less_accurate", "basis": "tolerance", "reason": "difference", "path": "", "compiled": 0.5} | {
    "allowed": 0.07
}


def note(code: str, subject: str | None = None, **facts: object) -> Note:
    return Note(code, subject=subject, facts=facts)


TIMING = (
    note("not_timed"),
    note("not_alternated"),
    note("too_few_calls", calls=1, needed=5, repeats=0),
    note("too_few_calls", calls=4, needed=5, repeats=2),
    note("uneven_calls", rounds=9),
    *(note("compiled_while_timed", "compiled", compilations=compilations) for compilations in (1, 2)),
    *(note("ran_eager", reason=reason) for reason in (None, "Dynamo recompile limit exceeded")),
    note("part_ran_eager", "compiled", place="forward (model.py:12)", reason="Dynamo recompile limit exceeded"),
    *(note("drifted", "eager", share=share) for share in (0.08, -0.08)),
    *(note("two_speeds", "eager", fast_us=1e3, slow_us=1080.0, slow_share=0.4, lasting=each) for each in (True, False)),
    *(
        note("speedup_by_thirds", first=first, last=1.25 * first, beyond_ci=first < 1, slower=first < 1)
        for first in (1.044, 0.79)
    ),
    *(note("few_stretches", rounds=rounds, stretches=4.7, needed=10) for rounds in (9, 40)),
    note("coarse_clock", share=0.04),
    note("outliers", rounds=60, of_rounds=300, speedup=0.923),
    note("two_kinds", kinds=[{"speedup": 1.84, "processes": 2}, {"speedup": 2.05, "processes": 6}]),
    note("warming", "compiled", calls=20, of_calls=60),
    *(note("process_spread", "eager", fastest_us=3309.0, slowest_us=4253.0, waits_for_host=each) for each in WAITS),
    note("advice_process_spread", "eager", own_us=4560.0, advised_us=3800.0, waits_for_host=False),
    note("advice_process_spread", "eager", own_us=3800.0, advised_us=4560.0, waits_for_host=True),
    note("of_ranks", "eager", ranks=2, rank=1, times=19, calls=20, shown=0),
    note("first_rank_alone"),
    note("ranks_differ", a=2, b=4),
    *(
        note(code, "compiled", ranks=ranks, of_ranks=8, **facts)
        for code, ranks, facts in (
            ("rank_recompiled", [1], {**PLACE, "times": 2, "least": 0, "timed": 1, "failed_check": CHECK}),
            ("rank_recompiled", [1, 3], {**PLACE, "times": 1, "least": 0, "timed": 0, "failed_check": CHECK}),
            ("rank_broke", [1], {**PLACE, "reason": "Call to print."}),
            ("rank_ran_eager", [1], {**PLACE, "reason": "recompile limit"}),
            ("rank_memory", [1], {"peak_bytes": 3 * 2**30, "least_bytes": 2**31}),
            ("rank_outputs", [1], DIFFERENCE),
        )
    ),
    note("eager_differs_between_runs", slowest="regional", fastest="default", ratio=1.2),
    *(note("interrupted", runs=runs) for runs in (1, 2)),
)
GPU = (
    note("throttled", sides=SIDES, limit="power", share=0.74),
    note("throttled", limit="power", share=0.74),
    note("throttled_in_samples", sides=["compiled"], reason="power brake", samples=1, of_samples=2),
    note("gpu_shared", sides=SIDES, processes=1),
    note("gpu_shared", sides=["compiled"], processes=2),
    *(
        note("clocks_differ", sides=["A", "B"], clocks_mhz=[1980, 1770], lower="compiled", faster=faster)
        for faster in ("compiled", "eager", None)
    ),
)
RECORDINGS = (
    note("same_recording", path="trace.json"),
    note("cpu_run"),
    note("no_gpu_activity", "b"),
    note("several_gpus", "b", gpus=2),
    *(
        note("waiting_untold", "b", communication_us=9e3, compute_us=8e3, exposed_us=1e3, rank=rank, world_size=size)
        for rank, size in ((3, 16), (None, None))
    ),
    note("communication_not_judged", a_exposed_us=1e3, b_exposed_us=9e3),
    note("training_mode", modules=["model"], side=None),
    note("training_mode", modules=["encoder", "decoder"], side="compiled"),
    *(note("not_read_over_steps", window=window) for window in ("span", "whole")),
    note("windows_differ", a="steps", b="whole"),
    note("windows_differ", a="span", b="steps"),
    note("whole_recordings"),
    note("named_spans"),
    note("steps_differ", a=2, b=3),
    note("busier_than_the_call", "b", busy_us=709.0, wall_us=700.0, idle_taken_for_0=True),
    note("busier_than_the_call", "b", busy_us=809.0, wall_us=700.0, idle_taken_for_0=False),
    *(
        note("timed_slower_than_recorded", "b", wall_us=9e3, recorded_us=1e3, timed_calls=calls, first_calls=calls < 5)
        for calls in (1, 3, 10)
    ),
    note("damaged_recording", "b", health="truncated", count=1, facts={}),
    note("no_rich_recording", "compiled"),
)
DIFFERENCES = (
    note("setting_differs", setting="gpu", a="NVIDIA H200", b="NVIDIA A100"),
    note("setting_differs", setting="gpus", a=1, b=4),
    note("setting_differs", setting="batch_size", a=1, b=4),
    note("setting_differs", setting="options", a=["depth=1", "width=2"], b=[]),
    note("setting_differs", setting="float32_matmul_precision", a="highest", b="high"),
    note("setting_differs", setting="variables", a={}, b={"CUDA_LAUNCH_BLOCKING": "1"}),
    note("package_differs", package="torch", a="2.13.0", b=None),
    note("package_differs", package="torch", a="2.13.0", b="2.14.0", a_name="vit", b_name="vit-autotune"),
    note("one_side_generates", side="A"),
    note("one_side_is_own", side="B"),
)
MATCHING = (
    note("no_operators", "graphed"),
    note("no_shapes", "graphed"),
    note("little_matched", matched_shares={"A": 0.302, "B": 0.167}),
    note("little_matched", matched_shares={"B": 0.5}),
    note("matched_by_elimination", shares={"A": 0.79, "B": 0.8}, no_provenance=None, advise_profile=True),
    note("matched_by_elimination", shares={"A": 0.79}, no_provenance=None, advise_profile=False),
    note("matched_by_elimination", shares={"A": 0.79}, no_provenance="two_runs", advise_profile=False),
    note("provenance_unused", why="other_forms"),
    note("provenance_unused", why="steps_differ"),
    note("provenance_noted", noted=GraphWithoutSites(graph=0, why="cached_without_provenance")),
    note("provenance_without_work"),
    note("not_in_provenance", "eager", activities=1, of_activities=4),
    note("only_in_provenance", "eager", activities=1),
    note("ambiguous_launch_sites", groups=1),
    *(note("operators_linked_by_elimination", operators=operators, of_operators=2) for operators in (1, 2)),
    *(note("operators_of_other_sizes", operators=operators) for operators in (1, 2)),
    *(note("operators_without_counterpart", operators=operators) for operators in (1, 2)),
    *(note("unexplained_launch_sites", sites=sites) for sites in (1, 2)),
)
EVERY = {
    "timing": TIMING,
    "gpu": GPU,
    "recordings": RECORDINGS,
    "differences": DIFFERENCES,
    "matching": MATCHING,
}


@pytest.mark.parametrize("about", EVERY)
def test_every_note_reads_well(about: str, snapshot: object) -> None:
    told = "".join(f"{each.code}\n    {note_sentence(each)}\n" for each in EVERY[about])
    assert told == snapshot


def test_each_code_that_a_room_gives_has_a_sentence_and_each_sentence_an_example() -> None:
    package = Path(tracekit.__file__).parent
    paths = [
        path
        for room in ("comparison", "measure", "model", "reading", "statements")
        for path in (package / room).rglob("*.py")
    ]
    source = "".join(path.read_text(encoding="utf-8") for path in paths)
    given = set(re.findall(r'Note\(\s*"(\w+)"', source))
    assert len(given) > 50 and given <= SENTENCES.keys()
    # Tables of notes hold codes too.
    assert [code for code in SENTENCES if f'"{code}"' not in source] == []
    assert SENTENCES.keys() == {each.code for some in EVERY.values() for each in some}


def test_grave_notes_stand_apart_from_the_others() -> None:
    grave, other = Note("ran_eager", facts={"reason": None}, grave=True), Note("not_timed")
    assert grave_sentences((other, grave)) == (note_sentence(grave),)
    assert other_sentences((other, grave)) == (note_sentence(other),)


def test_notes_are_told_apart_by_what_they_are_about_and_not_by_what_they_say() -> None:
    near, far = (note("drifted", "eager", share=share) for share in (0.08001, 0.08002))
    assert note_sentence(near) == note_sentence(far)
    assert distinct((near, far, near)) == (near, far)
    assert distinct((near, note("drifted", "compiled", share=0.08001))) != (near,)


def test_calls_that_came_to_take_a_multiple_are_told_a_factor() -> None:
    assert note_sentence(note("drifted", "eager", share=112.5)).startswith("eager slowed down 113.50× during timing")
    assert note_sentence(note("drifted", "eager", share=0.5)).startswith("eager became 50.0 % slower during timing")
