from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from tracekit.comparison.fairness import find_other_work, find_unfairness
from tracekit.model.analysis import HealthFinding
from tracekit.model.comparison import Side
from tracekit.model.generation import Generation
from tracekit.model.option import WORK, words_of
from tracekit.model.own import Own
from tracekit.model.run import Settings

from ..sides import make_analysis, make_cpu_analysis, make_environment, make_form, make_settings, make_side


def changed(**changes: Any) -> Side:
    return replace(make_side("b", form=make_form()), **changes)


def only(b: Side) -> str:
    warnings = find_unfairness(make_side("a", form=make_form()), b)
    assert len(warnings) == 1, warnings
    return warnings[0]


def test_sides_of_one_run_are_fair():
    assert find_unfairness(make_side("a", form=make_form()), make_side("b", form=make_form())) == ()


def test_timed_calls_much_slower_than_recorded_ones_are_a_disturbed_machine():
    warning = only(replace(make_side("b", form=make_form(wall_us=(9000.0,) * 10)), path="other"))
    assert "something else used this machine" in warning


def test_a_few_slow_calls_are_first_calls_before_they_are_a_disturbed_machine():
    warning = only(replace(make_side("b", form=make_form(wall_us=(9000.0,))), path="other"))
    assert "only 1 call was timed, and first calls are slow" in warning
    assert "something else" not in warning


def test_a_gpu_that_seems_busier_than_the_call_lasted_is_said():
    warning = only(replace(make_side("b", form=make_form(wall_us=(700.0,) * 10)), path="other"))
    assert "longer than the unprofiled call" in warning


def test_another_gpu_is_named():
    assert only(changed(environment=make_environment(gpu="NVIDIA A100"))) == (
        "The sides differ in GPU: A has NVIDIA H200, B has NVIDIA A100."
    )


def test_another_torch_is_named():
    warning = only(changed(environment=make_environment(packages={"torch": "2.12.0", "triton": "3.7.0"})))
    assert warning == "The sides differ in torch: A has 2.13.0, B has 2.12.0."


def test_a_package_on_one_side_only_is_named():
    warning = only(changed(environment=make_environment(packages={"torch": "2.13.0"})))
    assert warning == "The sides differ in triton: A has 3.7.0, B has none recorded."


def test_other_shapes_are_named():
    assert "batch size: A has 1, B has 4" in only(changed(settings=make_settings(batch_size=4)))
    assert "width: A has 512, B has 1024" in only(changed(settings=make_settings(width=1024)))
    assert "dtype: A has bfloat16, B has float16" in only(changed(settings=make_settings(dtype="float16")))


def test_another_mode_is_what_is_compared():
    b = changed(settings=make_settings(mode="max-autotune", scope="all"))
    assert find_unfairness(make_side("a", form=make_form()), b) == ()


def test_bare_traces_name_their_gpus():
    a, b = make_side("a"), make_side("b", make_analysis(gpu_name="NVIDIA L4"))
    assert find_unfairness(a, b) == ("The sides differ in GPU: A has NVIDIA H200, B has NVIDIA L4.",)


def test_windows_of_different_kinds_are_told():
    warning = only(changed(analysis=make_analysis(window="whole")))
    assert "its marked steps" in warning
    assert "the whole recording" in warning


def test_another_number_of_steps_is_told():
    assert "over 2 steps, B over 3" in only(changed(analysis=make_analysis(steps=3)))


def test_whole_recordings_must_hold_the_same_work():
    a, b = make_side("a", make_analysis(window="whole")), make_side("b", make_analysis(window="whole"))
    assert "Figures are of the whole recordings" in find_unfairness(a, b)[0]


def test_errors_of_a_recording_are_passed_on():
    error = HealthFinding("skipped_events", "error", 3, {"reasons": {"no time": 3}})
    info = HealthFinding("whole_trace", "info", 1, {"spans": []})
    assert only(changed(analysis=make_analysis(health=[error, info]))) == "b: skipped_events"


def test_a_cpu_run_says_what_it_cannot_show():
    cpu = make_cpu_analysis()
    warnings = find_unfairness(make_side("a", cpu), make_side("b", cpu))
    assert warnings[0].startswith("This is a CPU run")
    assert "cannot show GPU kernels" in warnings[0]


def test_one_side_without_gpu_activity_is_told():
    assert "b has no GPU activity" in find_unfairness(make_side("a"), make_side("b", make_cpu_analysis()))[0]


def test_several_gpus_are_told():
    several = make_side("b", make_analysis(devices=2))
    assert "b ran on 2 GPUs" in find_unfairness(make_side("a"), several)[0]


def test_another_precision_of_float32_products_is_said_where_both_runs_hold_it():
    a, b = make_side(form=make_form()), changed()
    for one, other, said in (("highest", "high", True), (None, "high", False), ("high", "high", False)):
        told = find_unfairness(
            replace(a, environment=make_environment(float32_matmul_precision=one)),
            replace(b, environment=make_environment(float32_matmul_precision=other)),
        )
        assert any("precision of float32 products" in sentence for sentence in told) == said


def test_another_way_to_steer_torch_is_said() -> None:
    a = make_side(form=make_form())
    b = replace(a, settings=make_settings(variables={"CUDA_LAUNCH_BLOCKING": "1"}))
    (told,) = find_unfairness(a, b)[1:]
    assert told.endswith("variables of the environment that steer torch: A has none, B has CUDA_LAUNCH_BLOCKING=1.")


def test_another_phase_or_cache_of_generation_is_named():
    decode = make_settings(generation=Generation("decode", None, "dynamic", fast_processor=False))
    prefill = make_settings(generation=Generation("prefill", None, "static", fast_processor=True))
    a = replace(make_side("a", form=make_form()), settings=decode)
    warnings = find_unfairness(a, changed(settings=prefill))
    assert "The sides differ in phase: A has decode, B has prefill." in warnings
    assert "The sides differ in cache: A has dynamic, B has static." in warnings


def test_another_prompt_is_other_work_where_its_tokens_are_generated_from():
    asked = Generation("generate", 16, "dynamic", fast_processor=True)
    settings = make_settings(generation=asked, prompt="What is this?")
    a = replace(make_side("a", form=make_form()), settings=settings)
    longer = changed(settings=replace(settings, prompt="What is to be seen here, and where?"))
    told = "The sides differ in prompt: A has What is this?, B has What is to be seen here, and where?."
    assert told in find_unfairness(a, longer)
    drawn = replace(make_side("a", form=make_form()), settings=make_settings(prompt="a cat"))
    assert not any("prompt" in each for each in find_unfairness(drawn, changed(settings=make_settings(prompt="a dog"))))


#: What is no other work: how it is compiled and timed, and what is told of another way.
NO_OTHER_WORK = {
    "scope",
    "mode",
    "fullgraph",
    "dynamic",
    "prompt",
    "seed",
    "iterations",
    "generation",
    "own",
    "variables",
}


def test_every_setting_is_other_work_or_is_not() -> None:
    """A new setting is to be put on either side."""
    assert {field.name for field in fields(Settings)} == {*words_of(*WORK), *NO_OTHER_WORK}


@pytest.mark.parametrize(
    "change",
    [
        {"workload": "vit"},
        {"size": "tiny"},
        {"pretrained": "org/name"},
        {"device": "cpu"},
        {"dtype": "float16"},
        {"batch_size": 4},
        {"height": 1024},
        {"width": 1024},
        {"seq_length": 128},
        {"steps": 4},
        {"own": Own(options=("depth=2",))},
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
    settings = make_settings(own=Own(options=("depth=1",)), generation=asked)
    a = replace(make_side("a", form=make_form()), settings=settings)
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
        assert tuple(find_other_work(a, other)) == ("The sides differ in GPU: A has NVIDIA H200, B has NVIDIA L4.",)
        assert tuple(find_other_work(a, four)) == ("The sides differ in number of GPUs: A has 1, B has 4.",)


def test_a_trace_that_names_no_gpu_is_taken_for_the_same() -> None:
    unnamed = make_side("a", make_analysis(gpu_name=None))  # type: ignore[arg-type]
    assert tuple(find_other_work(unnamed, make_side("b"))) == ()
    # A run says itself what its trace does not.
    run = replace(unnamed, environment=make_environment(gpu="NVIDIA L4"))
    assert tuple(find_other_work(run, make_side("b"))) == (
        "The sides differ in GPU: A has NVIDIA L4, B has NVIDIA H200.",
    )


@pytest.mark.parametrize(("dtype", "refused"), [("float32", True), ("bfloat16", False)])
def test_another_precision_of_float32_products_is_other_work_to_a_model_of_float32(dtype: str, refused: bool) -> None:
    a, b = (
        replace(
            make_side(name, form=make_form()),
            settings=make_settings(dtype=dtype),
            environment=make_environment(float32_matmul_precision=precision),
        )
        for name, precision in (("a", "highest"), ("b", "high"))
    )
    assert bool(tuple(find_other_work(a, b))) == refused
    assert any("precision of float32 products" in each for each in find_unfairness(a, b))


@pytest.mark.parametrize("change", [{"driver": "590.1"}, {"cuda": "12.8"}, {"cpu": "another"}, {"python": "3.12.1"}])
def test_another_driver_or_the_like_is_named_and_is_the_same_work(change: dict[str, str]) -> None:
    b = changed(environment=make_environment(**change))
    assert next(iter(change.values())) in only(b)
    assert tuple(find_other_work(make_side("a", form=make_form()), b)) == ()


@pytest.mark.parametrize(("factor", "told"), [(1.2, False), (1.35, True)])
def test_a_quarter_more_than_recorded_is_disturbed(factor: float, told: bool) -> None:
    b = make_side("b")
    assert b.recorded_wall_us is not None
    timed = make_form(wall_us=(factor * b.recorded_wall_us,) * 10)
    warnings = find_unfairness(make_side("a", form=make_form()), replace(make_side("b", form=timed), path="other"))
    assert any("as long as recorded ones" in each for each in warnings) == told


def test_recordings_that_were_not_read_over_steps_do_not_stand_beside_unprofiled_times() -> None:
    a, b = (make_side(name, make_analysis(window="whole"), make_form()) for name in "ab")
    assert any("not read over their steps" in each for each in find_unfairness(a, b))
    assert not any("not read over their steps" in each for each in find_unfairness(make_side("a"), make_side("b")))
