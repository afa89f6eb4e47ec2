"""The command for a cell holds what was asked for, whatever became of the cell."""

from __future__ import annotations

import shlex

from tests.sweeps import compiled_cell, eager_cell, make_failure, make_result

from tracekit.comparison.sweeping.cells import command_of


def test_a_cell_that_failed_before_it_was_built_is_asked_for_in_full() -> None:
    cell = compiled_cell(
        "flux",
        mode="max-autotune",
        scope="regional",
        dtype="float16",
        batch_size=5,
        height=1024,
        width=1024,
        steps=4,
        prompt="a dog",
        fullgraph=False,
        dynamic=True,
        size="small",
    )
    words = shlex.split(command_of(make_failure(cell), "compiled"))
    assert words[:4] == ["tracekit", "profile", "flux", "--compiled"]
    told = shlex.join(words)
    for asked in (
        "--size small",
        "--dtype float16",
        "--scope regional",
        "--mode max-autotune",
        "--no-fullgraph",
        "--dynamic",
        "--batch-size 5",
        "--height 1024 --width 1024",
        "--steps 4",
        "--prompt 'a dog'",
    ):
        assert asked in told, asked


def test_eager_is_asked_for_without_what_says_how_to_compile() -> None:
    asked = make_failure(eager_cell("qwen2.5-vl", batch_size=3, use_fast=True, phase="generate", pretrained="org/name"))
    assert command_of(asked, "eager") == (
        "tracekit profile qwen2.5-vl --batch-size 3 --pretrained org/name --use-fast --phase generate"
    )
    compiled = make_failure(compiled_cell("flux", mode="default", fullgraph=True))
    assert command_of(compiled, "eager") == "tracekit profile flux --batch-size 1"


def test_a_model_of_ones_own_keeps_its_options() -> None:
    asked = make_failure(compiled_cell("my_model.py:build", options=("layers=3",)))
    assert command_of(asked, "compiled").endswith("--batch-size 1 -- layers=3")


def test_a_cell_that_ran_keeps_prompt_and_fullgraph() -> None:
    told = command_of(make_result(compiled_cell("flux", prompt="a dog", fullgraph=True)), "compiled")
    assert "--prompt 'a dog'" in told and "--fullgraph" in told
