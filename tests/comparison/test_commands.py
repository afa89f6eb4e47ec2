from __future__ import annotations

from tracekit.comparison.commands import SCOPES, has_scope, profile_command
from tracekit.model.generation import Generation
from tracekit.model.own import Own
from tracekit.workloads.registry import all_workloads

from ..sides import make_settings


def test_the_next_command_generates_as_this_run_did():
    whole = make_settings(workload="qwen2.5-vl", generation=Generation("generate", 16, "static", fast_processor=True))
    command = profile_command(whole, {"mode": "reduce-overhead"})
    assert "--phase generate --cache static --max-new-tokens 16 --use-fast" in command
    one = make_settings(workload="qwen2.5-vl", generation=Generation("decode", None, "dynamic", fast_processor=False))
    command = profile_command(one, {"mode": "reduce-overhead"})
    assert "--phase decode --cache dynamic --no-use-fast" in command
    assert "--max-new-tokens" not in command


def test_what_generates_nothing_is_asked_for_nothing_of_the_kind():
    command = profile_command(make_settings(), {"mode": "default"})
    assert "--phase" not in command and "--use-fast" not in command


def test_code_that_may_break_may_break_in_the_next_run_too():
    loose = make_settings(fullgraph=False)
    assert profile_command(loose, {"mode": "default"}).endswith("--no-fullgraph")
    assert profile_command(loose, more=("--fullgraph",)).count("fullgraph") == 1
    assert "fullgraph" not in profile_command(make_settings(fullgraph=True))


def test_real_weights_have_a_size_of_their_own():
    real = profile_command(make_settings(size="full", pretrained="org/name"), {"mode": "default"})
    assert "--pretrained org/name" in real
    assert "--size" not in real
    assert "--size full" in profile_command(make_settings(size="full"))


def test_a_command_names_each_option_once():
    fixed = make_settings(dynamic=False)
    command = profile_command(fixed, {"dynamic": "True"})
    assert "--dynamic" in command.split() and "--no-dynamic" not in command


def test_scopes_are_advised_to_the_workloads_that_have_them():
    known = {name: {info.name for info in all_workloads() if name in info.scopes} for name in SCOPES}
    assert {name: set(workloads) for name, workloads in SCOPES.items()} == known
    assert has_scope(make_settings(workload="causal-lm", scope="model"), "regional")
    assert not has_scope(make_settings(workload="causal-lm", scope="regional"), "regional")
    assert not has_scope(make_settings(workload="causal-lm", scope="model"), "all")


def test_a_model_of_ones_own_is_asked_for_with_its_options_and_what_it_takes():
    own = Own(options=("layers=3", "name=a b"), takes=("batch_size", "seed"))
    command = profile_command(make_settings(workload="my_model.py:build", own=own), {"mode": "reduce-overhead"})
    assert command == (
        "tracekit profile my_model.py:build --compiled --mode reduce-overhead --scope transformer --batch-size 1"
        " -- layers=3 'name=a b'"
    )
    again = profile_command(make_settings(workload="p.m:build", own=Own()), more=("--fullgraph",))
    assert again.endswith("--scope transformer --fullgraph")


def test_a_run_of_a_program_is_asked_for_in_it():
    settings = make_settings(workload="Net", dynamic=None, own=Own(in_program=True))
    assert profile_command(settings, {"mode": "reduce-overhead"}) == (
        "tracekit.profile(..., compile={'mode': 'reduce-overhead'})"
    )
    assert profile_command(settings, {"scope": "all"}) == "tracekit.profile(tracekit.Workload(..., compiled=None))"
    assert profile_command(settings, {"dynamic": "False"}) == "tracekit.profile(..., compile={'dynamic': False})"
    assert profile_command(settings, more=("--fullgraph",)) == "tracekit.profile(..., compile={'fullgraph': True})"
