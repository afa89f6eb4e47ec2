from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.sequences import eager, make_activity, make_sequence, product, triton
from tests.sides import make_analysis, make_cpu_analysis, make_environment, make_form, make_settings, make_side

from tracekit.comparison.judging.disturbances import find_drift_of_ratio, find_unsteady_speeds
from tracekit.comparison.judging.fairness import find_other_work, find_unfairness, find_unsound, refuse_other_sizes
from tracekit.errors import TracekitError
from tracekit.model.comparison import Side
from tracekit.model.gpu import GpuSample, GpuState, Moment
from tracekit.model.note import Note
from tracekit.model.option import WORK, words_of
from tracekit.model.run import Generation, RankOfRun, Settings, UserModel
from tracekit.model.sequence import Activity, OperatorSource
from tracekit.statements.health import SkippedEvents, WholeTrace
from tracekit.statements.notes import recordings
from tracekit.statements.notes.gpu import ClocksDiffer, GpuShared, Throttled, ThrottledInSamples
from tracekit.statements.notes.work import PackageDiffers, SettingDiffers, TrainingMode


def changed(**changes: Any) -> Side:
    return make_side("b", **{"form": make_form(), **changes})


def only(b: Side) -> Note:
    notes = find_unfairness(make_side("a", form=make_form()), b)
    assert len(notes) == 1, notes
    return notes[0]


@pytest.mark.parametrize(("calls", "first"), [(10, False), (1, True)])
def test_timed_calls_a_quarter_slower_than_recorded_are_a_disturbed_machine_or_first_calls(calls: int, first: bool):
    recorded_us = make_side("b").recorded_wall_us
    note = only(changed(form=make_form(wall_us=(1.35 * recorded_us,) * calls)))
    assert (note.code, note.subject, note.facts["first_calls"]) == ("timed_slower_than_recorded", "b", first)
    assert (note.facts["wall_us"], note.facts["timed_calls"]) == (1.35 * recorded_us, calls)
    fair = changed(form=make_form(wall_us=(1.2 * recorded_us,)))
    assert find_unfairness(make_side("a", form=make_form()), fair) == ()


def test_a_gpu_that_seems_busier_than_the_call_lasted_is_said():
    note = only(changed(form=make_form(wall_us=(700.0,) * 10)))
    assert (note.code, note.subject) == ("busier_than_the_call", "b")
    assert note.facts["busy_us"] > note.facts["wall_us"] == 700.0


def test_of_runs_over_other_numbers_of_ranks_the_first_ranks_are_compared_and_the_headline_says_so():
    note = only(changed(ranks=tuple(RankOfRun(rank, "host", None, None, ()) for rank in (0, 1))))
    assert (note.code, note.facts, note.grave) == ("ranks_differ", {"a": 1, "b": 2}, True)


def test_another_package_or_one_on_one_side_only_is_named():
    older, without = ({"torch": "2.12.0", "triton": "3.7.0"}, {"torch": "2.13.0"})
    notes = PackageDiffers("torch", "2.13.0", "2.12.0"), PackageDiffers("triton", "3.7.0", None)
    for packages, note in zip((older, without), notes, strict=True):
        assert only(changed(environment=make_environment(packages=packages))) == note


@pytest.mark.parametrize(
    "change", [{"gpu": "NVIDIA A100"}, {"driver": "590.1"}, {"cuda": "12.8"}, {"cpu": "another"}, {"python": "3.12.1"}]
)
def test_another_machine_is_named_and_only_another_gpu_is_other_work(change: dict[str, str]) -> None:
    b = changed(environment=make_environment(**change))
    ((setting, value),) = change.items()
    assert only(b) == SettingDiffers(setting, getattr(make_environment(), setting), value)
    assert bool(tuple(find_other_work(make_side("a", form=make_form()), b))) == (setting == "gpu")


def test_another_mode_is_what_is_compared():
    a = make_side("a", form=make_form())
    assert find_unfairness(a, changed()) == ()
    assert find_unfairness(a, changed(settings=make_settings(mode="max-autotune", scope="all"))) == ()


def test_windows_that_differ_and_whole_recordings_are_told():
    whole = make_analysis(window="whole")
    assert only(changed(analysis=whole)) == recordings.WindowsDiffer("steps", "whole")
    assert only(changed(analysis=make_analysis(steps=3))) == recordings.StepsDiffer(2, 3)
    assert find_unfairness(make_side("a", whole), make_side("b", whole))[0].code == "whole_recordings"


def test_errors_of_a_recording_are_passed_on():
    error = SkippedEvents(3, reasons={"no time": 3})
    info = WholeTrace(1, spans=[])
    told = only(changed(analysis=make_analysis(health=[error, info])))
    assert told == recordings.DamagedRecording("b", error)


def test_sides_without_a_gpu_or_with_several_are_told():
    cpu, gpu, two = make_cpu_analysis(), make_analysis(), make_analysis(devices=2)
    notes = (
        (cpu, cpu, recordings.CpuRun()),
        (gpu, cpu, recordings.NoGpuActivity("b")),
        (gpu, two, recordings.SeveralGpus("b", 2)),
    )
    for a, b, note in notes:
        assert find_unfairness(make_side("a", a), make_side("b", b))[0] == note


def test_another_precision_of_float32_products_is_said_where_both_runs_hold_it():
    for one, other, said in (("highest", "high", True), (None, "high", False), ("high", "high", False)):
        a, b = (changed(environment=make_environment(float32_matmul_precision=each)) for each in (one, other))
        assert (SettingDiffers("float32_matmul_precision", one, other) in find_unfairness(a, b)) == said
        # To a model of float32 it is other work.
        assert not any(find_other_work(a, b))
        a, b = (replace(each, settings=make_settings(dtype="float32")) for each in (a, b))
        assert any(find_other_work(a, b)) == said


def test_another_way_to_steer_torch_is_said() -> None:
    a = make_side(form=make_form())
    b = replace(a, settings=make_settings(variables={"CUDA_LAUNCH_BLOCKING": "1"}))
    (told,) = find_unfairness(a, b)[1:]
    assert told == SettingDiffers("variables", {}, {"CUDA_LAUNCH_BLOCKING": "1"})


def test_another_prompt_is_other_work_where_its_tokens_are_generated_from():
    asked = Generation("generate", 16, "dynamic", fast_processor=True)
    settings = make_settings(generation=asked, prompt="What is this?")
    longer = changed(settings=replace(settings, prompt="What is to be seen here, and where?"))
    told = SettingDiffers("prompt", "What is this?", "What is to be seen here, and where?")
    assert told in find_unfairness(make_side("a", form=make_form(), settings=settings), longer)
    drawn, other = (changed(path=prompt, settings=make_settings(prompt=prompt)) for prompt in ("a cat", "a dog"))
    assert not any(each.facts.get("setting") == "prompt" for each in find_unfairness(drawn, other))


#: What is no other work: how it is compiled and timed, and what is told of another way.
NO_OTHER_WORK = {
    *("scope", "mode", "fullgraph", "dynamic", "prompt", "seed", "iterations", "generation", "own", "variables"),
    *("compile_order", "compiled_autograd"),
}


def test_every_setting_is_other_work_or_is_not() -> None:
    """A new setting is to be put on either side."""
    assert set(Settings.__struct_fields__) == {*words_of(*WORK), *NO_OTHER_WORK}


@pytest.mark.parametrize(
    "change",
    [
        *({name: text} for name, text in (("workload", "vit"), ("size", "tiny"), ("pretrained", "org/name"))),
        *({name: text} for name, text in (("device", "cpu"), ("dtype", "float16"))),
        *({name: 4096} for name in ("batch_size", "height", "width", "seq_length", "steps")),
        {"own": UserModel(options=("depth=2",))},
        {"generation": Generation("generate", 8, "dynamic", fast_processor=True)},
        {"generation": Generation("generate", 16, "static", fast_processor=True)},
        {"generation": Generation("decode", 16, "dynamic", fast_processor=True)},
        {"generation": None},
        {"own": None},
    ],
    ids=str,
)
def test_other_work_is_told_apart(change: dict[str, Any]) -> None:
    asked = Generation("generate", 16, "dynamic", fast_processor=True)
    settings = make_settings(own=UserModel(options=("depth=1",)), generation=asked)
    a = make_side("a", form=make_form(), settings=settings)
    b = replace(a, settings=replace(settings, **change))
    assert tuple(find_other_work(a, a)) == ()
    (told,) = find_other_work(a, b)
    assert told in find_unfairness(a, b)
    assert len(tuple(find_other_work(b, a))) == 1


def test_traces_of_another_gpu_or_of_more_are_other_work() -> None:
    trace, run = make_side("a"), make_side("b", form=make_form())
    other = make_side("c", make_analysis(gpu_name="NVIDIA L4"))
    four = make_side("d", make_analysis(devices=4))
    assert tuple(find_other_work(trace, run)) == ()
    for a in (trace, run):
        told = SettingDiffers("gpu", "NVIDIA H200", "NVIDIA L4")
        assert tuple(find_other_work(a, other)) == (told,) and told in find_unfairness(a, other)
        assert tuple(find_other_work(a, four)) == (SettingDiffers("gpus", 1, 4),)
    # A trace that names no GPU is taken for the same.
    unnamed = make_side("a", make_analysis(gpu_name=None))
    assert tuple(find_other_work(unnamed, make_side("b"))) == ()
    # A run says itself what its trace does not.
    run = replace(unnamed, environment=make_environment(gpu="NVIDIA L4"))
    assert tuple(find_other_work(run, make_side("b"))) == (SettingDiffers("gpu", "NVIDIA L4", "NVIDIA H200"),)


def test_recordings_that_were_not_read_over_steps_do_not_stand_beside_unprofiled_times() -> None:
    a, b = (make_side(name, make_analysis(window="whole"), make_form()) for name in "ab")
    note = recordings.NotReadOverSteps("whole")
    assert note in find_unfairness(a, b) and note in find_unsound(a)
    assert "not_read_over_steps" not in [each.code for each in find_unfairness(make_side("a"), make_side("b"))]


def test_a_module_in_training_mode_is_said_once_and_of_which_side() -> None:
    eager, compiled = (
        make_side(name, settings=make_settings(own=UserModel(training=("model",)))) for name in ("eager", "compiled")
    )
    both = TrainingMode(["model"], None)
    for notes in (find_unfairness(eager, compiled), find_unsound(compiled)):
        assert [note for note in notes if note.code == "training_mode"] == [both]
    other = replace(compiled, settings=make_settings(own=UserModel()))
    (one,) = [note for note in find_unfairness(eager, other) if note.code == "training_mode"]
    assert one.facts == {"modules": ["model"], "side": "eager"}


def side(*activities: Activity, label: str = "a", operators: OperatorSource = "own") -> Side:
    return replace(make_side(label), sequence=make_sequence(activities, operators))


def matmuls(batch: int) -> list[Activity]:
    return [product(batch * 64, 32 * at, 16, call=at) for at in range(1, 7)]


def refused(lender: Side, borrower: Side, other: Side) -> bool:
    """Whether the lender is of other sizes."""
    try:
        refuse_other_sizes("a trace", lender, borrower, other)
    except TracekitError:
        return True
    return False


GRAPHED = side(label="graphed", operators="none")


def test_a_lender_of_the_same_sizes_fits_also_where_the_compiler_exchanged_some() -> None:
    lender = side(*matmuls(1)[:3], product(7, 7, 7, call=8), product(7, 7, 8, call=9), triton("add", (64, 64), call=7))
    assert not refused(lender, GRAPHED, side(*matmuls(1), eager("add", (64, 64), call=7)))
    # One of another batch size does not. Twice as many operations are those of the next but one: what is summed up is
    # of another length.
    own = [product(64, 64 * at, 32, call=at) for at in range(1, 7)]
    for operators in ("own", "rich"):
        assert refused(side(*matmuls(2)), GRAPHED, side(*own, operators=operators))


def test_a_matmul_is_the_same_however_its_dimensions_are_put_together() -> None:
    shape = (1, 4, 64, 32)
    own = [
        make_activity("nvjet", "gemm", "linear", ((4, 16, 8), (32, 8)), 1),
        make_activity("nvjet", "gemm", "bmm", ((4, 16, 8), (4, 8, 64)), 2),
        make_activity("flash", "attention", "_scaled_dot_product_flash_attention", (shape,) * 3, 3),
        make_activity("gemm", "gemm", "mm", ((32, 8), (8, 9)), 4),
    ]
    lent = [
        make_activity("nvjet", "gemm", "mm", ((64, 8), (8, 32)), 1),
        make_activity("nvjet", "gemm", "bmm", ((4, 64, 8), (4, 8, 16)), 2),
        make_activity("flash", "attention", "_scaled_dot_product_cudnn_attention", (shape,) * 3, 3),
        make_activity("gemm", "gemm", "mm", ((5, 5), (5, 5)), 4),
    ]
    assert not refused(side(*lent), GRAPHED, side(*own))
    for one in range(3):
        assert not refused(side(*[lent[one]] * 4), GRAPHED, side(own[one])), lent[one]


def test_where_sizes_are_not_known_nothing_is_said() -> None:
    assert not refused(side(*matmuls(5)[:3]), GRAPHED, side(*matmuls(1)))
    assert not refused(side(*matmuls(5)), GRAPHED, side(eager("add", (64, 64), call=7)))
    assert not refused(side(*matmuls(5)), GRAPHED, GRAPHED)
    assert not refused(side(*matmuls(5)), GRAPHED, make_side())
    # Borrowed sizes prove nothing.
    assert not refused(side(*matmuls(5)), GRAPHED, side(*matmuls(1), operators="lent"))


def test_runs_with_other_settings_are_of_other_sizes() -> None:
    borrower = replace(GRAPHED, settings=make_settings())
    for change in ({"batch_size": 4}, {"height": 1024}, {"seq_length": 1024}, {"dtype": "float16"}):
        assert refused(replace(side(), settings=make_settings(**change)), borrower, side()), change
    assert not refused(replace(side(), settings=make_settings(mode="max-autotune")), borrower, side())


Times = np.ndarray


def sample(moment: Moment = "during", seconds: float = 0.5, **changes: Any) -> GpuSample:
    return replace(GpuSample(moment, seconds, 1980, 2619, 400.0, 50, (), 0), **changes)


def sampled_side(
    label: str, *during: GpuSample, slowed_us: dict[str, float] | None = None, us: float | None = None
) -> Side:
    """Sampled once where nothing else is said; all calls took `us`."""
    samples = (sample("before", 0.0, sm_clock_mhz=345), *(during or (sample(),)), sample("after", 1.0))
    form = make_form() if us is None else make_form("eager", (us,) * 10)
    return make_side(label, form=replace(form, gpu_state=GpuState("nvml", samples, slowed_us, 700.0)))


@pytest.mark.parametrize(("power_us", "share"), [(0.0, None), (9_000.0, None), (250_000.0, 0.25)])
def test_a_power_limit_is_told_once_with_the_time_it_held_unless_it_hardly_did(power_us, share) -> None:
    slowed = {"power": power_us, "temperature": 0.0}
    found = find_unfairness(*(sampled_side(name, slowed_us=slowed) for name in ("eager", "compiled")))
    assert found == ((Throttled("power", share, ["eager", "compiled"]),) if share else ())


def test_without_counters_the_reasons_given_between_calls_are_told() -> None:
    hot = (sample(slowed_by=("temperature (hardware)",)), sample(seconds=0.7))
    (found,) = find_unfairness(sampled_side("eager"), sampled_side("compiled", *hot))
    assert found == ThrottledInSamples("temperature (hardware)", 1, 2, ["compiled"])
    once = (*hot, *(sample(seconds=0.8) for _ in range(20)))
    assert find_unfairness(sampled_side("eager"), sampled_side("compiled", *once)) == ()
    # A counter tells what it counts exactly, whoever the driver says asked for it, and does not hide another limit.
    counted = {"power": 0.0, "temperature": 300_000.0}
    (exactly,) = find_unfairness(sampled_side("eager"), sampled_side("compiled", *hot, slowed_us=counted))
    assert (exactly.code, exactly.facts["limit"]) == ("throttled", "temperature")
    warm = (sample(slowed_by=("temperature (of the memory)",)), sample(seconds=0.7))
    _, sampled = find_unfairness(sampled_side("eager"), sampled_side("compiled", *warm, slowed_us=counted))
    assert sampled.facts["reason"] == "temperature (of the memory)"
    braked = (sample(slowed_by=("power brake", "power limit (software)")), sample(seconds=0.7))
    slowed = {"power": 300_000.0, "temperature": 0.0}
    one, other = find_unfairness(sampled_side("eager"), sampled_side("compiled", *braked, slowed_us=slowed))
    assert (one.code, one.facts["limit"], one.facts["share"]) == ("throttled", "power", 0.3)
    assert (other.code, other.facts["reason"]) == ("throttled_in_samples", "power brake")


def test_a_shared_gpu_is_told_and_processes_that_cannot_be_counted_are_not() -> None:
    (found,) = find_unfairness(sampled_side("eager"), sampled_side("compiled", sample(other_processes=2)))
    assert found == GpuShared(["compiled"], 2)
    unknown = sample(other_processes=None)
    assert find_unfairness(sampled_side("eager", unknown), sampled_side("compiled", unknown)) == ()


@pytest.mark.parametrize(
    ("clocks", "walls", "lower", "faster"),
    [
        ((1980, 1725), (1300.0, 1200.0), "compiled", "compiled"),
        ((1980, 1725), (1200.0, 1300.0), "compiled", "eager"),
        ((1725, 1980), (1200.0, 1300.0), "eager", "eager"),
    ],
)
def test_a_lower_clock_hides_or_widens_the_difference(clocks, walls, lower: str, faster: str) -> None:
    forms = zip(("eager", "compiled"), clocks, walls, strict=True)
    (found,) = find_unfairness(*(sampled_side(name, sample(sm_clock_mhz=mhz), us=us) for name, mhz, us in forms))
    assert found == ClocksDiffer(["A", "B"], [*clocks], lower, faster)


def test_clocks_are_the_middle_ones_and_little_is_no_difference() -> None:
    slower = (sample(sm_clock_mhz=1755), sample(sm_clock_mhz=1785, seconds=0.7))
    (found,) = find_unfairness(sampled_side("eager"), sampled_side("compiled", *slower))
    assert found.facts["clocks_mhz"] == [1980, 1770]
    assert find_unfairness(sampled_side("eager"), sampled_side("compiled", sample(sm_clock_mhz=1890))) == ()


def noisy(seed: int = 0) -> Times:
    return 1000 * np.exp(np.random.default_rng(seed).normal(0, 0.004, 60))


EVEN = np.ones(60)
DRIFT = np.linspace(1, 1.3, 60)
#: 8 % slower for ten calls at a time, and from call to call.
IN_BLOCKS = np.where(np.arange(60) // 10 % 2, 1.08, 1.0)
BY_CHANCE = np.where(np.random.default_rng(2).random(60) < 0.4, 1.08, 1.0)


@pytest.mark.parametrize(("factors", "lasting"), [(BY_CHANCE, False), (IN_BLOCKS, True)])
def test_two_speeds_are_told_and_whether_they_last(factors: Times, lasting: bool) -> None:
    (found,) = find_unsteady_speeds(make_side("a", form=make_form("eager", tuple(noisy() * factors))))
    assert (found.code, found.subject, found.facts["lasting"]) == ("two_speeds", "a", lasting)


@pytest.mark.parametrize(
    ("a", "b", "thirds"), [(DRIFT, DRIFT, [(0.999, 1.002)]), (DRIFT, EVEN, [(1.044, 1.25)]), (EVEN, EVEN, [])]
)
def test_where_a_form_drifted_its_ratio_is_told_by_thirds(a: Times, b: Times, thirds) -> None:
    found = [*find_drift_of_ratio(noisy() * a, noisy(seed=1) * b, (0.9, 1.3))]
    assert [each.code for each in found] == ["speedup_by_thirds"] * len(thirds)
    told = [(each.facts["first"], each.facts["last"]) for each in found]
    assert told == [pytest.approx(each, abs=5e-3) for each in thirds]
    assert not any(each.facts["beyond_ci"] for each in found)


def test_a_drift_beyond_the_interval_is_told() -> None:
    a, b = noisy() * DRIFT, noisy(seed=1) * EVEN
    for ci95, beyond in (((1.1, 1.2), True), ((1.1, 1.5), True), ((1.0, 1.5), False)):
        assert [each.facts["beyond_ci"] for each in find_drift_of_ratio(a, b, ci95)] == [beyond]
