from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracekit.comparison.fairness import find_unfairness
from tracekit.model.analysis import HealthFinding
from tracekit.model.comparison import Side
from tracekit.model.generation import Generation

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
    error = HealthFinding("no_gpu_lane", "error", "kernels are missing", 3)
    info = HealthFinding("shapes", "info", "shapes were recorded", 1)
    assert only(changed(analysis=make_analysis(health=[error, info]))) == "b: kernels are missing"


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
